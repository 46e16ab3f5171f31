//! Mistakes of users, and the response: one clear error, a remedy if one is known, an
//! exit code, and never a password.

use dyno_testkit::{
    MariaDb, Postgres, Ran, Scratch, dyno, dyno_command, free_port, server_or_skip,
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
fn run(folder: &Path, url: &str) -> Ran {
    dyno(folder, &["run", "s.toml", "--target", &format!("main={url}")])
}

/// No panic, no password; everything a user sees.
fn decent(ran: &Ran) {
    let said = ran.all();
    for word in ["panicked", "RUST_BACKTRACE", "stack backtrace", "unwrap", WRONG, RIGHT] {
        assert!(!said.contains(word), "`{word}` in: {said}");
    }
}

/// One error of a verb of dyno, with these words, and its remedy (none where `hint` is empty). Data is
/// not mixed with it.
fn one_error(ran: &Ran, code: i32, words: &str, hint: &str) {
    decent(ran);
    let said = ran.all();
    assert_eq!(ran.code, code, "{said}");
    let errors: Vec<_> = ran.stderr.lines().filter(|line| line.starts_with("error:")).collect();
    assert_eq!(errors.len(), 1, "{said}");
    assert!(errors[0].contains(words), "no `{words}` in: {said}");
    let error = errors[0].trim_end();
    assert!(error.ends_with(['.', '?']) && !error.ends_with(".."), "no sentence: {said}");
    assert!(!error.contains(".."), "{said}");
    assert!(!error.contains(". ("), "codes stand inside the sentence: {said}");
    let hints: Vec<_> = ran.stderr.lines().filter(|line| line.starts_with("hint:")).collect();
    assert_eq!(hints.len(), usize::from(!hint.is_empty()), "{said}");
    assert!(hints.iter().all(|line| line.contains(hint)), "no hint `{hint}` in: {said}");
    assert_eq!(ran.stdout, "", "{said}");
}

/// Nothing was measured, so nothing is left.
fn no_run(folder: &Path) {
    let left = fs::read_dir(folder.join("dyno-runs")).map_or(0, Iterator::count);
    assert_eq!(left, 0, "a run folder was left");
}

/// FATAL lines as the original's, a remedy in terms of the command line, and no report.
fn fatal(ran: &Ran, words: &str, hint: &str) {
    decent(ran);
    let said = ran.all();
    assert_eq!(ran.code, 1, "{said}");
    let mut fatal = ran.stdout.lines().filter(|line| line.starts_with("FATAL: "));
    assert!(fatal.any(|line| line.contains(words)), "no `{words}` in: {said}");
    let hints: Vec<_> = ran.stderr.lines().filter(|line| line.starts_with("hint:")).collect();
    assert_eq!(hints.len(), 1, "{said}");
    assert!(hints[0].contains(hint), "no hint `{hint}` in: {said}");
    assert!(!ran.stdout.contains("SQL statistics"), "{said}");
}

fn sysbench(folder: &Path, words: &[String]) -> Ran {
    dyno(folder, &words.iter().map(String::as_str).collect::<Vec<_>>())
}

/// Errors of logins; the first words are dyno's verbs', the second ones the front end's.
fn log_ins(kind: &Kind, denied: [&str; 2], unknown: [&str; 2]) {
    let scratch = Scratch::new();
    let folder = scratch.path();
    suite(folder, as_it_is);
    let is_mysql = kind.scheme == "mysql";
    one_error(&run(folder, &kind.url(WRONG, "sbtest")), 1, denied[0], "check");
    let nobody = free_port();
    let refused = format!("127.0.0.1:{nobody} can't be reached: Connection refused");
    let ran = run(folder, &kind.url_at(nobody, RIGHT, "sbtest"));
    one_error(&ran, 1, &refused, "is the server");
    assert!(
        ran.stderr.starts_with("error:"),
        "what would be done is said before it: {}",
        ran.all()
    );
    one_error(&run(folder, &kind.url(RIGHT, "nodb")), 1, unknown[0], "create the database");
    no_run(folder);

    let option = if is_mysql { "--mysql" } else { "--pgsql" };
    for command in ["prepare", "run"] {
        let ran = sysbench(folder, &kind.sysbench(kind.port, WRONG, "sbtest", &[command]));
        fatal(&ran, denied[1], &format!("{option}-password"));
        let ran = sysbench(folder, &kind.sysbench(nobody, RIGHT, "sbtest", &[command]));
        let refused = match is_mysql {
            true => "error 2002: Can't connect to server on '127.0.0.1' (111)",
            false => "failed: Connection refused",
        };
        fatal(&ran, refused, &format!("{option}-port"));
        let ran = sysbench(folder, &kind.sysbench(kind.port, RIGHT, "nodb", &[command]));
        fatal(&ran, unknown[1], &format!("{option}-db"));
    }
}

/// Errors about tables that are missing or too small, and about too many workers.
fn tables(kind: &Kind, too_many: &str) {
    let scratch = Scratch::new();
    let folder = scratch.path();
    let url = kind.url(RIGHT, "sbtest");
    let words = |more: &[&str]| kind.sysbench(kind.port, RIGHT, "sbtest", more);

    suite(folder, unprepared);
    let missing = "rw on main: table 'sbtest1' doesn't exist, nor does 1 other.";
    one_error_after_talk(
        &run(folder, &url),
        missing,
        "a suite without `prepare = false` loads them",
    );
    let ran = sysbench(folder, &words(&["--table-size=1000", "run"]));
    fatal(&ran, "table 'sbtest1' doesn't exist, nor does 1 other", "run prepare with --tables=2");

    let ran = sysbench(folder, &words(&["--table-size=1000", "prepare"]));
    assert_eq!(ran.code, 0, "{}", ran.all());
    suite(folder, |text| unprepared(text).replace("1000", "5000"));
    let small = "the ids of table 'sbtest1' end at 1000, but --table-size is 5000";
    one_error_after_talk(&run(folder, &url), small, "a suite without `prepare = false` loads them");
    let ran = sysbench(folder, &words(&["--table-size=5000", "--events=5", "run"]));
    assert_eq!(ran.code, 0, "as the original it runs: {}", ran.all());
    assert!(ran.all().contains(&format!("WARNING: Note that {small}")), "{}", ran.all());

    suite(folder, |text| unprepared(text).replace("[2]", "[16]"));
    one_error_after_talk(&run(folder, &url), too_many, "max_connections");
    let ran = sysbench(folder, &words(&["--table-size=1000", "--threads=16", "run"]));
    fatal(&ran, too_many, "use fewer --threads");
}

/// Like [`one_error`], for runs that got as far as the first trial.
fn one_error_after_talk(ran: &Ran, words: &str, hint: &str) {
    let quiet = Ran { stdout: String::new(), ..ran.clone() };
    decent(ran);
    one_error(&quiet, 1, words, hint);
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
    one_error(&run(folder, &url), 2, "has a port that is no number", "IPv6");
    let url = format!("mysq://app:{RIGHT}@127.0.0.1/sbtest");
    one_error(&run(folder, &url), 2, "has an unknown scheme", "mysql://");
    let ran = run(folder, &format!("mysql://app:{RIGHT}@127.0.0.1/sbtest?tsl=require"));
    one_error(&ran, 2, "tsl", "did you mean `tls`");
    let ran = dyno(folder, &["run", "s.toml", "--target", "main"]);
    one_error(&ran, 2, "does not name a target", "--target NAME=URL");
    let url = format!("mian=mysql://app:{RIGHT}@127.0.0.1/sbtest");
    let ran = dyno(folder, &["run", "s.toml", "--target", &url]);
    one_error(&ran, 2, "has no target `mian`", "Did you mean `main`?");
    let ran = dyno(folder, &["run", "s.toml"]);
    one_error(&ran, 2, "URL", "--target");
    no_run(folder);
}

#[test]
fn bad_suites() {
    let scratch = Scratch::new();
    let folder = scratch.path();
    let changed = |from: &'static str, to: &'static str| {
        suite(folder, |text| text.replace(from, to));
        run(folder, "sqlite:{run}/x.db")
    };
    let ran = changed("duration_s = 1", "duration_s = 1\nwramup_s = 1");
    one_error(&ran, 2, "unknown key `wramup_s`", "Did you mean `warmup_s`?");
    assert!(ran.stderr.contains("s.toml:13:1"), "{}", ran.stderr);
    let ran = changed("table_size", "tabel_size");
    one_error(&ran, 2, "`oltp_read_write` has no option `tabel_size`", "`table_size`");
    let ran = changed("tables = 2", "tables = \"two\"");
    one_error(&ran, 2, "`tables` can't be `two`: it takes a whole number", "");
    let ran = changed("oltp_read_write", "oltp_raed_write");
    one_error(&ran, 2, "no test `oltp_raed_write`", "Did you mean `oltp_read_write`?");
    suite(folder, as_it_is);
    let ran = dyno(folder, &["run", "quickstrat"]);
    one_error(&ran, 2, "`quickstrat`", "Did you mean the bundled suite `quickstart`?");
    let ran = dyno(folder, &["run", "s.toml", "--shrink", "7"]);
    one_error(&ran, 2, "`--shrink 7`", "at most 1");
    let ran = dyno(folder, &["paper", "nosuch"]);
    one_error(&ran, 2, "no run `nosuch`", "dyno quickstart");
    no_run(folder);
    let ran = dyno(folder, &["rnu", "quickstart"]);
    decent(&ran);
    assert_eq!((ran.code, ran.stdout.as_str()), (2, ""));
    assert!(ran.stderr.starts_with("error: unrecognized subcommand 'rnu'"), "{}", ran.stderr);
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
    let ran = running.end();
    decent(&ran);
    assert_eq!(ran.code, 0, "{}", ran.all());
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
    let ran = suites.arg("suites").stdout(full).output().expect("dyno has run");
    let said = String::from_utf8_lossy(&ran.stderr);
    assert_eq!(ran.status.code(), Some(1), "{said}");
    let error = "error: Standard output can't be written: No space left on device (os error 28).\n";
    assert!(said.starts_with(error), "{said}");
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
        let ran = dyno(folder.path(), command);
        assert_ne!(ran.code, 0, "{command:?}");
        assert!(!ran.all().contains("S3kret"), "{command:?}: {}", ran.all());
    }
}
