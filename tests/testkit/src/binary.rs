//! The binary under test, and other programs that tests run.

use crate::server::find_program;
use signal_hook::consts::SIGINT;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};

/// The end of a program, and its output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessOutput {
    /// -1 after a signal.
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl From<Output> for ProcessOutput {
    fn from(output: Output) -> Self {
        ProcessOutput {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

impl ProcessOutput {
    pub fn capture(command: &mut Command) -> Self {
        command.output().unwrap_or_else(|error| panic!("{command:?} doesn't start: {error}")).into()
    }

    /// Panics unless it has measured to the end, whatever the verdict is.
    pub fn assert_judged(&self) {
        assert!(matches!(self.code, 0 | 3 | 5), "{self}");
    }

    /// Panics on a failure.
    #[must_use]
    pub fn good(self) -> Self {
        assert_eq!(self.code, 0, "{self}");
        self
    }
}

impl fmt::Display for ProcessOutput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "exit code {}\n{}\n-- stderr --\n{}", self.code, self.stdout, self.stderr)
    }
}

/// Path of the dyno binary: that of the variable `DYNO_BINARY`, else built once per test process with the profile of
/// the tests. Such a build has fewer features than one of the workspace, so that most crates are compiled once more.
pub fn dyno_path() -> &'static Path {
    static PATH: OnceLock<PathBuf> = OnceLock::new();
    PATH.get_or_init(|| {
        heed_interrupts();
        if let Some(path) = std::env::var_os("DYNO_BINARY") {
            return path.into();
        }
        let test = std::env::current_exe().expect("a test knows its own path");
        // target/<profile>/deps/<test>
        let folder = test.ancestors().nth(2).expect("tests lie in target/<profile>/deps");
        let mut build = Command::new(env!("CARGO"));
        build.args(["build", "--quiet", "--package", "dyno"]);
        if folder.ends_with("release") {
            build.arg("--release");
        }
        // Cargo's variables of a test's package would look like a change to build scripts, and rebuild their crates.
        let is_package_variable =
            |name: &str| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_");
        for (name, _) in std::env::vars_os() {
            if name.to_str().is_some_and(is_package_variable) {
                build.env_remove(name);
            }
        }
        let status = build.current_dir(env!("CARGO_MANIFEST_DIR")).status();
        assert!(status.is_ok_and(|status| status.success()), "the dyno binary can't be built");
        folder.join("dyno")
    })
}

/// Lets programs that tests start be stopped by SIGINT also where these tests run in the background of a shell
/// that has it ignored: what a process catches has its default action in the programs it starts.
fn heed_interrupts() {
    if is_ignored(SIGINT) {
        signal_hook::flag::register(SIGINT, Arc::new(AtomicBool::new(false)))
            .expect("SIGINT can be caught");
    }
}

/// Returns true if this process ignores a signal, and so what it starts.
pub fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux");
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:\t"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask, 16).ok()).expect("a mask");
    mask & 1 << (signal - 1) != 0
}

/// A command for the dyno binary in `folder`, without passwords and configuration of the tester.
pub fn dyno_command(folder: &Path) -> Command {
    let mut command = Command::new(dyno_path());
    command
        .current_dir(folder)
        .stdin(Stdio::null())
        .env("HOME", folder)
        .env_remove("MYSQL_PWD")
        .env_remove("PGPASSWORD")
        .env_remove("DYNO_SERVE_TOKEN")
        .env("DYNO_FLEET_KEY", "5".repeat(64))
        .env("NO_COLOR", "1");
    command
}

pub fn dyno(folder: &Path, arguments: &[&str]) -> ProcessOutput {
    ProcessOutput::capture(dyno_command(folder).args(arguments))
}

/// Path of another program, such as the original tool, if it is installed.
pub fn peer(name: &str) -> Option<String> {
    find_program(&[name])
}

/// The output of a command; after a failure the error output.
pub(crate) fn run_for_stdout(command: &mut Command) -> Result<String, String> {
    let output = command
        .output()
        .map_err(|error| format!("{:?} can't be run: {error}", command.get_program()))?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    } else {
        Err(String::from_utf8_lossy(&output.stderr).into_owned())
    }
}
