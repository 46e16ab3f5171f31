//! Mistakes of users, and the response: one clear error, a remedy if one is known, an
//! exit code, and never a password.

use dyno_testkit::{
    MariaDb, Postgres, ProcessOutput, Scratch, dyno, dyno_command, free_port, server_or_skip,
};
use std::fs;
use std::path::Path;

const WRONG: &str = "wrong-geheim";
const RIGHT: &str = "right-geheim";

/// Form in which a URL or an option list reaches one kind of server.
struct Kind {
    scheme: &'static str,
    port: u16,
}

impl Kind {
    fn url(&self, password: &str, database: &str) -> String {
        self.url_at(self.port, password, database)
    }

    fn url_at(&self, port: u16, password: &str, database: &str) -> String {
        format!("{}://app:{password}@127.0.0.1:{port}/{database}", self.scheme)
    }

    /// Arguments of `dyno sysbench` with further ones.
    fn sysbench(&self, port: u16, password: &str, database: &str, more: &[&str]) -> Vec<String> {
        let prefix = if self.scheme == "mysql" { "mysql" } else { "pgsql" };
        let mut words = vec![
            "sysbench".to_owned(),
            format!("--db-driver={prefix}"),
            format!("--{prefix}-host=127.0.0.1"),
            format!("--{prefix}-port={port}"),
            format!("--{prefix}-user=app"),
            format!("--{prefix}-password={password}"),
            format!("--{prefix}-db={database}"),
            "--tables=2".to_owned(),
            "--time=1".to_owned(),
            "oltp_read_write".to_owned(),
        ];
        words.extend(more.iter().map(|&word| word.to_owned()));
        words
    }
}

fn mariadb() -> Result<(MariaDb, Kind), String> {
    let server = MariaDb::start_with(&["--max-connections=12"])?;
    server.sql(&format!(
        "CREATE USER app@'%' IDENTIFIED BY '{RIGHT}'; GRANT ALL ON *.* TO app@'%'"
    ))?;
    let kind = Kind { scheme: "mysql", port: server.port };
    Ok((server, kind))
}

fn postgres() -> Result<(Postgres, Kind), String> {
    let server = Postgres::start_with(&["-c", "fsync=off", "-c", "max_connections=12"])?;
    server.sql(&format!("CREATE USER app SUPERUSER PASSWORD '{RIGHT}'"))?;
    let rules = "host all app 127.0.0.1/32 scram-sha-256\nhost all all 127.0.0.1/32 trust\n\
                 local all all trust\n";
    fs::write(server.server.folder().join("data/pg_hba.conf"), rules)
        .map_err(|error| error.to_string())?;
    server.sql("SELECT pg_reload_conf()")?;
    let kind = Kind { scheme: "postgres", port: server.port };
    Ok((server, kind))
}

/// Writes a suite whose only target has no URL yet.
fn suite(folder: &Path, change: impl Fn(String) -> String) {
    let text = "[suite]\nname = \"mistakes\"\n\n[target.main]\n\n[[experiment]]\nname = \"rw\"\n\
                workload = \"sysbench\"\ntest = \"oltp_read_write\"\n\
                options = { tables = 2, table_size = 1000 }\nworkers = [2]\nduration_s = 1\n";
    fs::write(folder.join("s.toml"), change(text.to_owned())).expect("a suite can be written");
}

fn as_it_is(text: String) -> String {
    text
}

fn unprepared(text: String) -> String {
    format!("{text}prepare = false\n")
}

/// `dyno run s.toml` on a target.
fn run(folder: &Path, url: &str) -> ProcessOutput {
    dyno(folder, &["run", "s.toml", "--target", &format!("main={url}")])
}

/// No panic, no password; everything a user sees.
fn assert_decent(output: &ProcessOutput) {
    let text = output.to_string();
    for word in ["panicked", "RUST_BACKTRACE", "stack backtrace", "unwrap", WRONG, RIGHT] {
        assert!(!text.contains(word), "`{word}` in: {text}");
    }
}

/// One error of a verb of dyno, with these words, and its remedy (none where `hint` is empty). Data is
/// not mixed with it.
fn assert_one_error(output: &ProcessOutput, code: i32, words: &str, hint: &str) {
    assert_decent(output);
    let text = output.to_string();
    assert_eq!(output.code, code, "{text}");
    let errors: Vec<_> = output.stderr.lines().filter(|line| line.starts_with("error:")).collect();
    assert_eq!(errors.len(), 1, "{text}");
    assert!(errors[0].contains(words), "no `{words}` in: {text}");
    let error = errors[0].trim_end();
    assert!(error.ends_with(['.', '?']) && !error.ends_with(".."), "no sentence: {text}");
    assert!(!error.contains(".."), "{text}");
    assert!(!error.contains(". ("), "codes stand inside the sentence: {text}");
    let hints: Vec<_> = output.stderr.lines().filter(|line| line.starts_with("hint:")).collect();
    assert_eq!(hints.len(), usize::from(!hint.is_empty()), "{text}");
    assert!(hints.iter().all(|line| line.contains(hint)), "no hint `{hint}` in: {text}");
    assert_eq!(output.stdout, "", "{text}");
}

/// Nothing was measured, so nothing is left.
fn assert_no_run(folder: &Path) {
    let count = fs::read_dir(folder.join("dyno-runs")).map_or(0, Iterator::count);
    assert_eq!(count, 0, "a run folder was left");
}

/// FATAL lines as the original's, a remedy in terms of the command line, and no report.
fn assert_fatal(output: &ProcessOutput, words: &str, hint: &str) {
    assert_decent(output);
    let text = output.to_string();
    assert_eq!(output.code, 1, "{text}");
    let mut fatal = output.stdout.lines().filter(|line| line.starts_with("FATAL: "));
    assert!(fatal.any(|line| line.contains(words)), "no `{words}` in: {text}");
    let hints: Vec<_> = output.stderr.lines().filter(|line| line.starts_with("hint:")).collect();
    assert_eq!(hints.len(), 1, "{text}");
    assert!(hints[0].contains(hint), "no hint `{hint}` in: {text}");
    assert!(!output.stdout.contains("SQL statistics"), "{text}");
}

fn sysbench(folder: &Path, words: &[String]) -> ProcessOutput {
    dyno(folder, &words.iter().map(String::as_str).collect::<Vec<_>>())
}

/// Errors of logins; the first words are dyno's verbs', the second ones the front end's.
fn log_ins(kind: &Kind, denied: [&str; 2], unknown: [&str; 2]) {
    let scratch = Scratch::new();
    let folder = scratch.path();
    suite(folder, as_it_is);
    let is_mysql = kind.scheme == "mysql";
    assert_one_error(&run(folder, &kind.url(WRONG, "sbtest")), 1, denied[0], "check");
    let nobody = free_port();
    let message = format!("127.0.0.1:{nobody} can't be reached: Connection refused");
    let output = run(folder, &kind.url_at(nobody, RIGHT, "sbtest"));
    assert_one_error(&output, 1, &message, "is the server");
    assert!(output.stderr.starts_with("error:"), "what would be done is said before it: {output}");
    assert_one_error(&run(folder, &kind.url(RIGHT, "nodb")), 1, unknown[0], "create the database");
    assert_no_run(folder);

    let option = if is_mysql { "--mysql" } else { "--pgsql" };
    for command in ["prepare", "run"] {
        let output = sysbench(folder, &kind.sysbench(kind.port, WRONG, "sbtest", &[command]));
        assert_fatal(&output, denied[1], &format!("{option}-password"));
        let output = sysbench(folder, &kind.sysbench(nobody, RIGHT, "sbtest", &[command]));
        let message = if is_mysql {
            "error 2002: Can't connect to server on '127.0.0.1' (111)"
        } else {
            "failed: Connection refused"
        };
        assert_fatal(&output, message, &format!("{option}-port"));
        let output = sysbench(folder, &kind.sysbench(kind.port, RIGHT, "nodb", &[command]));
        assert_fatal(&output, unknown[1], &format!("{option}-db"));
    }
}

/// Errors about tables that are missing or too small, and about too many workers.
fn tables(kind: &Kind, too_many: &str) {
    let scratch = Scratch::new();
    let folder = scratch.path();
    let url = kind.url(RIGHT, "sbtest");
    let sysbench_words = |more: &[&str]| kind.sysbench(kind.port, RIGHT, "sbtest", more);

    suite(folder, unprepared);
    let missing = "rw on main: table 'sbtest1' doesn't exist, nor does 1 other.";
    one_error_after_talk(
        &run(folder, &url),
        missing,
        "a suite without `prepare = false` loads them",
    );
    let output = sysbench(folder, &sysbench_words(&["--table-size=1000", "run"]));
    assert_fatal(
        &output,
        "table 'sbtest1' doesn't exist, nor does 1 other",
        "run prepare with --tables=2",
    );

    let output = sysbench(folder, &sysbench_words(&["--table-size=1000", "prepare"]));
    assert_eq!(output.code, 0, "{output}");
    suite(folder, |text| unprepared(text).replace("1000", "5000"));
    let small = "the ids of table 'sbtest1' end at 1000, but --table-size is 5000";
    one_error_after_talk(&run(folder, &url), small, "a suite without `prepare = false` loads them");
    let output = sysbench(folder, &sysbench_words(&["--table-size=5000", "--events=5", "run"]));
    assert_eq!(output.code, 0, "as the original it runs: {output}");
    assert!(output.to_string().contains(&format!("WARNING: Note that {small}")), "{output}");

    suite(folder, |text| unprepared(text).replace("[2]", "[16]"));
    one_error_after_talk(&run(folder, &url), too_many, "max_connections");
    let output = sysbench(folder, &sysbench_words(&["--table-size=1000", "--threads=16", "run"]));
    assert_fatal(&output, too_many, "use fewer --threads");
}

/// Like [`one_error`], for runs that got as far as the first trial.
fn one_error_after_talk(output: &ProcessOutput, words: &str, hint: &str) {
    let quiet = ProcessOutput { stdout: String::new(), ..output.clone() };
    assert_decent(output);
    assert_one_error(&quiet, 1, words, hint);
}

#[test]
fn mistakes_on_mariadb() {
    let (_server, kind) = match mariadb() {
        Ok(started) => started,
        Err(why) => return dyno_testkit::skipped("mistakes_on_mariadb", &why),
    };
    log_ins(
        &kind,
        [
            "refused the log-in: Access denied for user 'app'@'127.0.0.1'",
            "error 1045: Access denied",
        ],
        ["refused the log-in: Unknown database 'nodb'", "error 1049: Unknown database 'nodb'"],
    );
    tables(&kind, "Too many connections");
}

#[test]
fn mistakes_on_postgres() {
    let (_server, kind) = match postgres() {
        Ok(started) => started,
        Err(why) => return dyno_testkit::skipped("mistakes_on_postgres", &why),
    };
    let denied = "password authentication failed for user \"app\"";
    let unknown = "database \"nodb\" does not exist";
    log_ins(&kind, [denied, denied], [unknown, unknown]);
    tables(&kind, "too many clients already");
}

#[test]
fn bad_urls() {
    let scratch = Scratch::new();
    let folder = scratch.path();
    suite(folder, as_it_is);
    let url = format!("mysql://app:{RIGHT}@127.0.0.1:port/sbtest");
    assert_one_error(&run(folder, &url), 2, "has a port that isn't a number", "IPv6");
    let url = format!("mysq://app:{RIGHT}@127.0.0.1/sbtest");
    assert_one_error(&run(folder, &url), 2, "has an unknown scheme", "mysql://");
    let output = run(folder, &format!("mysql://app:{RIGHT}@127.0.0.1/sbtest?tsl=require"));
    assert_one_error(&output, 2, "tsl", "did you mean `tls`");
    let output = dyno(folder, &["run", "s.toml", "--target", "main"]);
    assert_one_error(&output, 2, "does not name a target", "--target NAME=URL");
    let url = format!("mian=mysql://app:{RIGHT}@127.0.0.1/sbtest");
    let output = dyno(folder, &["run", "s.toml", "--target", &url]);
    assert_one_error(&output, 2, "has no target `mian`", "Did you mean `main`?");
    let output = dyno(folder, &["run", "s.toml"]);
    assert_one_error(&output, 2, "URL", "--target");
    assert_no_run(folder);
}

#[test]
fn bad_suites() {
    let scratch = Scratch::new();
    let folder = scratch.path();
    let run_changed = |from: &'static str, to: &'static str| {
        suite(folder, |text| text.replace(from, to));
        run(folder, "sqlite:{run}/x.db")
    };
    let output = run_changed("duration_s = 1", "duration_s = 1\nwramup_s = 1");
    assert_one_error(&output, 2, "unknown key `wramup_s`", "Did you mean `warmup_s`?");
    assert!(output.stderr.contains("s.toml:13:1"), "{}", output.stderr);
    let output = run_changed("table_size", "tabel_size");
    assert_one_error(&output, 2, "`oltp_read_write` has no option `tabel_size`", "`table_size`");
    let output = run_changed("tables = 2", "tables = \"two\"");
    assert_one_error(&output, 2, "`tables` can't be `two`: it takes a whole number", "");
    let output = run_changed("oltp_read_write", "oltp_raed_write");
    assert_one_error(&output, 2, "no test `oltp_raed_write`", "Did you mean `oltp_read_write`?");
    suite(folder, as_it_is);
    let output = dyno(folder, &["run", "quickstrat"]);
    assert_one_error(&output, 2, "`quickstrat`", "Did you mean the bundled suite `quickstart`?");
    let output = dyno(folder, &["run", "s.toml", "--shrink", "7"]);
    assert_one_error(&output, 2, "`--shrink 7`", "at most 1");
    let output = dyno(folder, &["paper", "nosuch"]);
    assert_one_error(&output, 2, "no run `nosuch`", "dyno quickstart");
    assert_no_run(folder);
    let output = dyno(folder, &["rnu", "quickstart"]);
    assert_decent(&output);
    assert_eq!((output.code, output.stdout.as_str()), (2, ""));
    assert!(output.stderr.starts_with("error: unrecognized subcommand 'rnu'"), "{}", output.stderr);
}

#[test]
fn passwords_are_nowhere() {
    let server = server_or_skip!(MariaDb, "passwords_are_nowhere");
    let user = format!("CREATE USER app@'%' IDENTIFIED BY '{RIGHT}'");
    server.sql(&format!("{user}; GRANT ALL ON *.* TO app@'%'")).expect("a user");
    let scratch = Scratch::new();
    let folder = scratch.path();
    suite(folder, |text| text.replace("duration_s = 1", "duration_s = 5"));
    let target = format!("--target=main=mysql://app:{RIGHT}@127.0.0.1:{}/sbtest", server.port);
    let mut running = dyno_testkit::RunningDyno::start(folder, &["run", "s.toml", &target]);
    running.wait_until("commits", |_| {
        let run = dyno_testkit::only_run(&folder.join("dyno-runs"));
        run.is_some_and(|run| !dyno_testkit::commits(&run, 1).is_empty())
    });
    let arguments = fs::read(format!("/proc/{}/cmdline", running.process())).expect("it runs");
    let arguments = String::from_utf8_lossy(&arguments).into_owned();
    assert!(arguments.contains("--target=main=mysql://app:x"), "{arguments}");
    assert!(!arguments.contains(RIGHT), "{arguments}");
    let output = running.end();
    assert_decent(&output);
    assert_eq!(output.code, 0, "{output}");
    let run = dyno_testkit::only_run(&folder.join("dyno-runs")).expect("a run");
    let mut folders = vec![run];
    let mut files = 0;
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let text = fs::read(&path).expect("a file");
            let has = text.windows(RIGHT.len()).any(|part| part == RIGHT.as_bytes());
            assert!(!has, "the password is in {}", path.display());
            files += 1;
        }
    }
    assert!(files >= 8, "only {files} files");
}

#[test]
fn a_full_disk_behind_standard_output_is_said() {
    let full = fs::File::options().write(true).open("/dev/full").expect("the device");
    let mut suites = dyno_command(Path::new("/"));
    let output = suites.arg("suites").stdout(full).output().expect("dyno has run");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    let error = "error: Standard output can't be written: No space left on device (os error 28).\n";
    assert!(stderr.starts_with(error), "{stderr}");
}

#[test]
fn messages_quote_no_password_of_the_command_line() {
    let folder = Scratch::new();
    let url = "mysql://bench:S3kret-PW@127.0.0.1:1/b";
    let target = format!("--target=a={url}");
    let commands: [&[&str]; 12] = [
        &["compare", url, url],
        &["compare", url],
        &["show", url],
        &["paper", url],
        &["ls", url],
        &["serve", url],
        &["run", url],
        &["run", "tpch", url],
        &["run", "tpch", &target, &target],
        &["bench", url, url, url],
        &["tpch", "load", url],
        &["benchmarksql", "run", url],
    ];
    for command in commands {
        let output = dyno(folder.path(), command);
        assert_ne!(output.code, 0, "{command:?}");
        assert!(!output.to_string().contains("S3kret"), "{command:?}: {output}");
    }
}
