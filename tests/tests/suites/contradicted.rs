//! Figures that the server's own words contradict: writes that nothing commits, tables without their keys, tables that
//! a crash empties. Whatever setting is behind it, neither a drop-in nor a suite lets such a run look right.

use dyno_facts::{RunStatus, TrialStatus};
use dyno_testkit::{
    MariaDb, MySql, Postgres, ProcessOutput, RunningDyno, Scratch, commits, dyno, only_run,
    query_url, server_or_skip, skipped,
};
use serde_json::Value;
use std::fs;
use std::thread::sleep;
use std::time::Duration;

const DISCARDED: &str = "The server has discarded the writes of ";
const SCANNED: &str = "The server scanned whole tables, ";

fn good(output: ProcessOutput) -> ProcessOutput {
    assert_eq!(output.code, 0, "{output}");
    output
}

/// The ids of the checks of a level that found something in the only run of this folder.
fn checks_with_findings(folder: &Scratch, level: &str) -> Vec<String> {
    let run = only_run(&folder.file("dyno-runs")).expect("a run");
    let run = run.display().to_string();
    good(dyno(folder.path(), &["paper", &run, "--format", "json", "--out", "paper"]));
    let text = fs::read_to_string(folder.file("paper/paper.json")).expect("a paper");
    let paper: Value = serde_json::from_str(&text).expect("JSON");
    let checks = paper["checks"].as_array().expect("checks").iter();
    let findings = checks.filter(|check| {
        check["level"] == level && check["findings"].as_array().is_some_and(|all| !all.is_empty())
    });
    findings.map(|check| check["id"].as_str().expect("an id").to_owned()).collect()
}

fn sysbench(folder: &Scratch, server: &MariaDb, words: &str) -> ProcessOutput {
    let socket = format!("--mysql-socket={}", server.socket.display());
    let common = ["sysbench", &socket, "--mysql-user=root", "--tables=1", "--table-size=5000"];
    let words: Vec<&str> = common.into_iter().chain(words.split_whitespace()).collect();
    dyno(folder.path(), &words)
}

fn rows(server: &MariaDb) -> u64 {
    let count = server.sql("SELECT count(*) FROM sbtest.sbtest1").expect("a count");
    count.trim().parse().expect("a number")
}

#[test]
fn writes_that_nothing_commits_are_no_result() {
    let server = server_or_skip!(MariaDb, "writes_that_nothing_commits_are_no_result");
    let folder = Scratch::new();
    good(sysbench(&folder, &server, "oltp_insert prepare"));
    server.sql("SET GLOBAL autocommit = 0").expect("set");
    let before = rows(&server);
    let output = sysbench(&folder, &server, "--time=0 --events=200 oltp_insert run");
    // The setting is refused before anything is executed.
    assert!(output.code == 1 && output.to_string().contains("autocommit = OFF"), "{output}");
    assert_eq!(rows(&server), before);
    // A script may say it itself, and closes its connection in the end.
    let script_ending_with = |end: &str| {
        format!(
            "function thread_init()\n  con = sysbench.sql.driver():connect()\n  con:query('SET autocommit = 0')\nend\n\
             function event() con:query('INSERT INTO sbtest1 (k, c, pad) VALUES (1, \"c\", \"p\")') end\n\
             function thread_done()\n  {end}\n  con:disconnect()\nend\n"
        )
    };
    let run_script = |end: &str| {
        fs::write(folder.file("own.lua"), script_ending_with(end)).expect("a script");
        sysbench(&folder, &server, "--threads=2 --time=0 --events=50 own.lua run")
    };
    let before = rows(&server);
    let output = run_script("");
    assert!(output.code == 1 && output.stderr.contains(&format!("{DISCARDED}50 ")), "{output}");
    assert_eq!(rows(&server), before);
    good(run_script("con:query('COMMIT')"));
    assert_eq!(rows(&server), before + 50);

    // In a suite such a trial has failed.
    fs::write(folder.file("own.lua"), script_ending_with("")).expect("a script");
    let suite = "[suite]\nname = \"own\"\n[[experiment]]\nname = \"a\"\nworkload = \"lua\"\nscript = \"own.lua\"\n\
                 prepare = false\ncleanup = false\nworkers = 2\nevents = 50\n";
    fs::write(folder.file("own.toml"), suite).expect("a suite");
    let target = format!("main={}", server.url());
    let output = dyno(folder.path(), &["run", "own.toml", "--target", &target]);
    assert!(output.code == 1 && output.stderr.contains(DISCARDED), "{output}");
    let run = dyno_store::read(&only_run(&folder.file("dyno-runs")).expect("a run")).expect("read");
    assert!(matches!(run.trials[0].summary.status, TrialStatus::Failed(_)));
    assert!(matches!(run.header.status, RunStatus::Failed(_)));
    assert_eq!(checks_with_findings(&folder, "E"), ["trial-failed"]);
}

/// Measures pgbench's accounts without their key, as a server that generates keys makes them: a warning, and the exit
/// code of the original, since the figures are those of these tables. In a suite they are not usable.
fn tables_without_keys_are_seen(url: &str, drop_key: &str) {
    let folder = Scratch::new();
    let target = format!("--target={url}");
    let pgbench =
        |words: &[&str]| dyno(folder.path(), &[&["pgbench", &target][..], words].concat());
    good(pgbench(&["-i", "-q"]));
    for script in ["tpcb-like", "select-only"] {
        let output = good(pgbench(&["-n", "-c", "2", "-t", "20", "-b", script]));
        assert!(!output.stderr.contains(SCANNED), "{output}");
    }
    query_url(url, drop_key).expect("dropped");
    for script in ["tpcb-like", "select-only"] {
        let output = good(pgbench(&["-n", "-c", "2", "-t", "20", "-b", script]));
        assert!(output.stderr.contains(SCANNED), "{output}");
    }
    // PostgreSQL may have forgotten the scans of a session after a second: whole runs are too long for a certain
    // answer.
    if !url.starts_with("postgres") {
        good(pgbench(&["-n", "-c", "2", "-T", "1", "-S", "--paper"]));
        assert_eq!(checks_with_findings(&folder, "E"), ["table-scans"]);
    }
}

#[test]
fn mariadb_tables_without_keys_are_seen() {
    let server = server_or_skip!(MariaDb, "mariadb_tables_without_keys_are_seen");
    let sql = "ALTER TABLE pgbench_accounts DROP PRIMARY KEY";
    tables_without_keys_are_seen(&server.url(), sql);
}

#[test]
fn mysql_tables_with_generated_keys_are_seen() {
    let server = server_or_skip!(MySql, "mysql_tables_with_generated_keys_are_seen");
    let sql = "ALTER TABLE pgbench_accounts DROP PRIMARY KEY, \
               ADD my_row_id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT INVISIBLE PRIMARY KEY FIRST";
    tables_without_keys_are_seen(&server.url(), sql);
}

#[test]
fn postgres_tables_without_keys_are_seen() {
    let server = server_or_skip!(Postgres, "postgres_tables_without_keys_are_seen");
    let sql = "ALTER TABLE pgbench_accounts DROP CONSTRAINT pgbench_accounts_pkey";
    tables_without_keys_are_seen(&server.url(), sql);
}

/// Engines are read from the tables that were measured, whatever the server's settings promise.
fn tables_that_a_crash_empties_are_seen(url: &str, empties: &str, engine: &str) {
    let folder = Scratch::new();
    let target = format!("--target={url}");
    let run_pgbench = |words: &[&str]| {
        good(dyno(folder.path(), &[&["pgbench", "-n", &target][..], words].concat()))
    };
    run_pgbench(&["-i", "-q"]);
    query_url(url, empties).expect("changed");
    run_pgbench(&["-c", "2", "-T", "1", "-N", "--paper"]);
    assert!(checks_with_findings(&folder, "W").contains(&"unsafe-tables".to_owned()));
    let run = only_run(&folder.file("dyno-runs")).expect("a run");
    let run = run.display().to_string();
    good(dyno(folder.path(), &["paper", &run, "--format", "md", "--out", "paper"]));
    let paper = fs::read_to_string(folder.file("paper/paper.md")).expect("a paper");
    assert!(paper.contains(&format!("{engine} (pgbench_accounts)")), "{paper}");
    assert!(!paper.contains("commits survive a power loss"), "{paper}");
}

#[test]
fn mariadb_tables_that_a_crash_empties_are_seen() {
    let server = server_or_skip!(MariaDb, "mariadb_tables_that_a_crash_empties_are_seen");
    let sql = "ALTER TABLE pgbench_accounts ENGINE = Aria";
    tables_that_a_crash_empties_are_seen(&server.url(), sql, "Aria");
}

#[test]
fn postgres_tables_that_a_crash_empties_are_seen() {
    let server = server_or_skip!(Postgres, "postgres_tables_that_a_crash_empties_are_seen");
    let sql = "ALTER TABLE pgbench_accounts SET UNLOGGED";
    tables_that_a_crash_empties_are_seen(&server.url(), sql, "unlogged");
}

/// Runs statements of the user's own on these targets, an `[[experiment]]` with these further keys.
fn own_statements(folder: &Scratch, urls: &[String], keys: &str) -> ProcessOutput {
    let targets = ["a", "b"].iter().zip(urls);
    let targets = targets.map(|(name, url)| format!("[target.{name}]\nurl = \"{url}\"\n"));
    let suite = format!(
        "[suite]\nname = \"s\"\nretry_starved = 0\n{}[[experiment]]\nname = \"mine\"\nworkers = 2\nwarmup_s = 0\nduration_s = 0.5\n\
         parameters = {{ id = \"uniform(1, 1000)\" }}\n{keys}\n",
        targets.collect::<String>()
    );
    fs::write(folder.file("s.toml"), suite).expect("a suite");
    dyno(folder.path(), &["run", "s.toml"])
}

/// Makes a table of as many rows.
fn fill(url: &str, rows: usize) {
    query_url(url, "CREATE TABLE t (id INT PRIMARY KEY, n INT, c INT)").expect("a table");
    let values: Vec<String> = (1..=rows).map(|id| format!("({id}, 0, 0)")).collect();
    if rows > 0 {
        query_url(url, &format!("INSERT INTO t VALUES {}", values.join(", "))).expect("rows");
    }
}

/// One of two servers has no rows, so that it answers sooner.
fn an_empty_side_is_no_winner(urls: [String; 2]) {
    let folder = Scratch::new();
    fill(&urls[0], 1000);
    fill(&urls[1], 0);
    let keys = "statements = [\"SELECT c FROM t WHERE id = :id @9\", \"BEGIN; UPDATE t SET n = n + 1 WHERE id = :id; COMMIT\"]\n\
                compare = { baseline = \"a\", candidates = \"b\", pairs = \"6..6\" }\ngate = \"tps.ratio > 0.1\"";
    let output = own_statements(&folder, &urls, keys);
    assert_eq!(output.code, 3, "{output}");
    assert!(output.stdout.contains("unlike-rows"), "{output}");
    assert_eq!(checks_with_findings(&folder, "E"), ["unlike-rows"]);
    assert!(checks_with_findings(&folder, "W").contains(&"no-rows".to_owned()));
}

#[test]
fn an_empty_postgres_is_no_winner() {
    let name = "an_empty_postgres_is_no_winner";
    let (a, b) = (server_or_skip!(Postgres, name), server_or_skip!(Postgres, name));
    an_empty_side_is_no_winner([a.url(), b.url()]);
}

#[test]
fn an_empty_mariadb_is_no_winner() {
    let name = "an_empty_mariadb_is_no_winner";
    let (a, b) = (server_or_skip!(MariaDb, name), server_or_skip!(MariaDb, name));
    an_empty_side_is_no_winner([a.url(), b.url()]);
}

/// Statements that roll back what they did, which is not a commit, and queries that lose nothing by it.
fn rollbacks_are_no_commits(url: &str) {
    let find_errors = |keys: &str| {
        let folder = Scratch::new();
        good(own_statements(&folder, &[url.to_owned()], keys));
        checks_with_findings(&folder, "E")
    };
    fill(url, 1000);
    let update = "UPDATE t SET n = n + 1 WHERE id = :id;";
    let ending_with = |what: &str, end: &str| format!("statements = [\"BEGIN; {what} {end}\"]");
    assert_eq!(find_errors(&ending_with(update, "ROLLBACK")), ["rolled-back"]);
    assert_eq!(find_errors(&ending_with(update, "COMMIT")), [""; 0]);
    assert_eq!(find_errors(&ending_with("SELECT c FROM t WHERE id = :id;", "ROLLBACK")), [""; 0]);
}

#[test]
fn postgres_rollbacks_are_no_commits() {
    let server = server_or_skip!(Postgres, "postgres_rollbacks_are_no_commits");
    rollbacks_are_no_commits(&server.url());
}

#[test]
fn mariadb_rollbacks_are_no_commits() {
    let server = server_or_skip!(MariaDb, "mariadb_rollbacks_are_no_commits");
    rollbacks_are_no_commits(&server.url());
}

/// Every second row is missing below the highest id.
#[test]
fn half_deleted_tables_of_sysbench_are_seen() {
    let server = server_or_skip!(MariaDb, "half_deleted_tables_of_sysbench_are_seen");
    let folder = Scratch::new();
    good(sysbench(&folder, &server, "oltp_point_select prepare"));
    server.sql("DELETE FROM sbtest.sbtest1 WHERE id % 2 = 1").expect("deleted");
    good(sysbench(&folder, &server, "--rand-type=uniform --time=1 --paper oltp_point_select run"));
    assert!(checks_with_findings(&folder, "W").contains(&"no-rows".to_owned()));
}

/// A suite that loads a table of sysbench where it is missing and measures it, targets a and b where there are two.
fn sysbench_suite(folder: &Scratch, urls: &[String], keys: &str) {
    let targets = ["a", "b"].iter().zip(urls);
    let targets = targets.map(|(name, url)| format!("[target.{name}]\nurl = \"{url}\"\n"));
    let suite = format!(
        "[suite]\nname = \"s\"\nretry_starved = 0\n{}[[experiment]]\nname = \"e\"\nworkload = \"sysbench\"\ntest = \"oltp_update_index\"\n\
         options = {{ tables = 1, table_size = 5000 }}\nworkers = 2\nwarmup_s = 0\n{keys}\n",
        targets.collect::<String>()
    );
    fs::write(folder.file("s.toml"), suite).expect("a suite");
}

const FEW_PAIRS: &str =
    "duration_s = 0.5\ncompare = { baseline = \"a\", candidates = \"b\", pairs = \"2..2\" }";

/// Durability is off in the window alone, and as promised at both looks.
fn settings_of_a_while_are_seen(url: &str, [off, on]: [&[&str]; 2]) -> Vec<String> {
    let folder = Scratch::new();
    sysbench_suite(&folder, &[url.to_owned()], "duration_s = 6");
    let mut running = RunningDyno::start(folder.path(), &["run", "s.toml"]);
    let runs = folder.file("dyno-runs");
    let has_begun = || only_run(&runs).is_some_and(|run| !commits(&run, 1).is_empty());
    running.wait_until("the window", |_| has_begun());
    for sql in off {
        query_url(url, sql).expect("changed");
    }
    sleep(Duration::from_millis(2500));
    for sql in on {
        query_url(url, sql).expect("changed");
    }
    running.end();
    assert_eq!(checks_with_findings(&folder, "E"), ["durability-changed"]);
    checks_with_findings(&folder, "W")
}

#[test]
fn durability_that_postgres_lacks_for_a_while_is_seen() {
    let server = server_or_skip!(Postgres, "durability_that_postgres_lacks_for_a_while_is_seen");
    let off = ["ALTER SYSTEM SET synchronous_commit = off", "SELECT pg_reload_conf()"];
    let on = ["ALTER SYSTEM RESET synchronous_commit", off[1]];
    let caveats = settings_of_a_while_are_seen(&server.url(), [&off, &on]);
    assert!(caveats.contains(&"settings-reloaded".to_owned()), "{caveats:?}");
}

#[test]
fn durability_that_mariadb_lacks_for_a_while_is_seen() {
    let server = server_or_skip!(MariaDb, "durability_that_mariadb_lacks_for_a_while_is_seen");
    let [off, on] = [0, 2].map(|to| format!("SET GLOBAL innodb_flush_log_at_trx_commit = {to}"));
    settings_of_a_while_are_seen(&server.url(), [&[&off], &[&on]]);
}

/// The log of one of two servers is in memory, which no setting of it says.
#[test]
fn a_log_in_memory_is_not_durable() {
    let name = "a_log_in_memory_is_not_durable";
    let start_server = || Postgres::start_with(&["-c", "max_connections=100"]);
    let (a, b) = (start_server(), start_server());
    let (Ok(a), Ok(mut b)) = (a, b) else { return skipped(name, "PostgreSQL is not installed") };
    let memory = std::path::PathBuf::from(format!("/dev/shm/dyno-{}", std::process::id()));
    let log = b.server.folder().join("data/pg_wal");
    b.kill();
    // Unlike a new one, the folder keeps its owner.
    let moved = ProcessOutput::capture(std::process::Command::new("mv").args([&log, &memory]));
    if moved.code != 0 {
        return skipped(name, "there is no /dev/shm");
    }
    std::os::unix::fs::symlink(&memory, &log).expect("a link");
    b.restart().expect("it starts");
    let folder = Scratch::new();
    sysbench_suite(&folder, &[a.url(), b.url()], FEW_PAIRS);
    let output = dyno(folder.path(), &["run", "s.toml"]);
    drop(b);
    fs::remove_dir_all(memory).expect("removed");
    assert!(output.stdout.contains("log_file_system = tmpfs"), "{output}");
    assert_eq!(checks_with_findings(&folder, "E"), ["durability"]);
}

/// One side has lost an index, which the run makes again, and its texts are shorter than the other's.
fn altered_data_are_seen(urls: [String; 2], changes: &[&str], wanted: &[&str]) {
    let folder = Scratch::new();
    sysbench_suite(&folder, &urls, &format!("cleanup = false\n{FEW_PAIRS}"));
    let run_suite = || {
        let _ = fs::remove_dir_all(folder.file("dyno-runs"));
        dyno(folder.path(), &["run", "s.toml"]);
        let mut findings = checks_with_findings(&folder, "W");
        findings.retain(|id| ["data-repaired", "rows"].contains(&id.as_str()));
        findings
    };
    assert_eq!(run_suite(), [""; 0], "the same data");
    for sql in changes {
        query_url(&urls[1], sql).expect("changed");
    }
    assert_eq!(run_suite(), wanted);
}

#[test]
fn altered_data_of_mariadb_are_seen() {
    let name = "altered_data_of_mariadb_are_seen";
    let (a, b) = (server_or_skip!(MariaDb, name), server_or_skip!(MariaDb, name));
    let changes = ["DROP INDEX k_1 ON sbtest1", "UPDATE sbtest1 SET c = 'x'"];
    altered_data_are_seen([a.url(), b.url()], &changes, &["rows", "data-repaired"]);
}

#[test]
fn altered_data_of_postgres_are_seen() {
    let name = "altered_data_of_postgres_are_seen";
    let (a, b) = (server_or_skip!(Postgres, name), server_or_skip!(Postgres, name));
    altered_data_are_seen([a.url(), b.url()], &["DROP INDEX k_1"], &["data-repaired"]);
}
