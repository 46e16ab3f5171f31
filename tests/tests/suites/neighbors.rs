//! Somebody else on the same tables: a second run is refused, as are front ends that would change or drop them, and
//! foreign transactions are found.

use dyno_testkit::{
    MariaDb, Postgres, ProcessOutput, RunningDyno, Scratch, commits, dyno, only_run, server_or_skip,
};
use rustix::process::Signal;
use std::fs;
use std::path::Path;

const SYSBENCH: &str = "workload = \"sysbench\"\ntest = \"oltp_point_select\"\n\
                        options = { tables = 1, table_size = 1000 }\nwarmup_s = 0.5\n";
const PGBENCH: &str = "workload = \"pgbench\"\ntest = \"tpcb-like\"\noptions = { scale = 1 }\n";

fn suite(folder: &Path, targets: &[(&str, &str)], load: &str, seconds: u32) {
    let targets: Vec<String> =
        targets.iter().map(|(name, url)| format!("[target.{name}]\nurl = \"{url}\"\n")).collect();
    let text = format!(
        "[suite]\nname = \"s\"\n{}[[experiment]]\nname = \"e\"\n{load}workers = 2\n\
         duration_s = {seconds}\ncleanup = false\n",
        targets.concat()
    );
    fs::write(folder.join("s.toml"), text).expect("a suite");
}

/// A run that has begun to measure.
fn measuring(folder: &Path, dir: &str) -> RunningDyno {
    let mut running = RunningDyno::start(folder, &["run", "s.toml", "--dir", dir]);
    running.wait_until("the window", |_| {
        only_run(&folder.join(dir)).is_some_and(|run| !commits(&run, 1).is_empty())
    });
    running
}

/// `dyno sysbench` on the tables of [`SYSBENCH`].
fn sysbench(folder: &Path, url: &str, command: &str) -> ProcessOutput {
    let (kind, user) =
        if url.starts_with("mysql") { ("mysql", "root") } else { ("pgsql", "postgres") };
    let port = url.rsplit_once(':').and_then(|(_, rest)| rest.split('/').next());
    let place = [
        format!("--db-driver={kind}"),
        format!("--{kind}-host=127.0.0.1"),
        format!("--{kind}-port={}", port.expect("a port")),
        format!("--{kind}-user={user}"),
    ];
    let test = ["--tables=1", "--table-size=1000", "--events=5", "oltp_point_select", command];
    let place = place.iter().map(String::as_str);
    let words: Vec<&str> = ["sysbench"].into_iter().chain(place).chain(test).collect();
    dyno(folder, &words)
}

/// While a run has the tables: what would change or drop them does not begin, a load is warned.
fn front_ends_keep_off(folder: &Path, url: &str, who: &str) {
    for command in ["prepare", "cleanup"] {
        let output = sysbench(folder, url, command);
        assert_eq!(output.code, 1, "{output}");
        let words = "FATAL: Another run or load works on these tables: ";
        assert!(output.stdout.contains(words), "{output}");
        assert!(output.stdout.contains(who), "no `{who}` in: {output}");
        assert!(output.stderr.contains("hint: wait for its end"), "{output}");
    }
    let output = sysbench(folder, url, "run");
    assert_eq!(output.code, 0, "{output}");
    let warned = output.stderr.lines().filter(|line| line.contains("a run or load works on the"));
    assert_eq!(warned.count(), 1, "{output}");
    assert!(!output.stdout.contains("works on the same"), "{output}");
}

fn a_second_run_is_refused(url: &str, who: &str) {
    let scratch = Scratch::new();
    let folder = scratch.path();
    // Longer than the others take, which it leaves the machine to: it is stopped after them.
    suite(folder, &[("main", url)], &format!("{SYSBENCH}rate = 200\n"), 600);
    let mut first = measuring(folder, "first");
    let second = dyno(folder, &["run", "s.toml", "--dir", "second"]);
    assert_eq!(second.code, 1, "{second}");
    let words = "error: Another run or load works on the same tables of target main: ";
    let details = second.stderr.split_once(words).map_or("", |(_, details)| details);
    assert!(details.contains(who), "no `{who}` in: {second}");
    assert!(details.contains("hint: Wait for its end"), "{second}");
    assert!(details.contains("`--share-target` measures alongside it"), "{second}");
    assert!(only_run(&folder.join("second")).is_none(), "nothing was begun");
    front_ends_keep_off(folder, url, who);
    // Behind an endpoint, whichever server it would answer from, the primary is locked.
    let behind = format!(
        "[suite]\nname = \"s\"\n[target.main]\nroute = \"endpoint\"\nnodes = [{{ name = \"proxy\", role = \
         \"endpoint\", url = \"{url}\" }}, {{ name = \"n1\", role = \"primary\", url = \"{url}\" }}]\n\
         [[experiment]]\nname = \"e\"\n{SYSBENCH}workers = 2\nduration_s = 1\nprepare = false\n"
    );
    fs::write(folder.join("proxy.toml"), behind).expect("a suite");
    let through = dyno(folder, &["run", "proxy.toml", "--dir", "second"]);
    assert_eq!(through.code, 1, "{through}");
    assert!(through.stderr.contains(words), "{through}");
    // Other tables of the same database are no one's business.
    let other_keys =
        SYSBENCH.replace("sysbench", "pgbench").replace("oltp_point_select", "select-only");
    let other_keys = other_keys.replace("tables = 1, table_size = 1000", "scale = 1");
    suite(folder, &[("main", url)], &other_keys, 1);
    let beside = dyno(folder, &["run", "s.toml", "--dir", "beside"]);
    assert_eq!(beside.code, 0, "{beside}");
    suite(folder, &[("main", url)], SYSBENCH, 1);
    let shared = dyno(folder, &["run", "s.toml", "--dir", "shared", "--share-target"]);
    assert_eq!(shared.code, 0, "{shared}");
    assert!(shared.stderr.contains("warning: target main: another run is on it: "), "{shared}");
    assert!(shared.stdout.contains("shared-target"), "{shared}");
    let first_commits = || commits(&only_run(&folder.join("first")).expect("a run"), 1);
    let before = first_commits().len();
    first.wait_until("commits beside the others", |_| {
        first_commits().iter().skip(before).any(|&count| count > 0)
    });
    first.signal(Signal::INT);
    assert_eq!(first.end().code, 130, "{}", first.stderr());
    // The lock has ended with its run.
    let free = sysbench(folder, url, "run");
    assert_eq!(free.code, 0, "{free}");
    assert!(!free.to_string().contains("works on the same tables"), "{free}");
    // Two names of one database are one run's own.
    let unprepared = format!("{SYSBENCH}prepare = false\n");
    suite(folder, &[("a", url), ("b", url)], &unprepared, 1);
    let after = dyno(folder, &["run", "s.toml", "--dir", "after"]);
    assert_eq!(after.code, 0, "{after}");
    assert!(!after.stdout.contains("shared-target"), "{after}");
}

#[test]
fn a_second_run_on_the_tables_of_mariadb_is_refused() {
    let server = server_or_skip!(MariaDb, "a_second_run_on_the_tables_of_mariadb_is_refused");
    a_second_run_is_refused(&server.url(), " of root from ");
}

#[test]
fn a_second_run_on_the_tables_of_postgres_is_refused() {
    let server = server_or_skip!(Postgres, "a_second_run_on_the_tables_of_postgres_is_refused");
    a_second_run_is_refused(&server.url(), "dyno run s, process ");
}

/// Loads of the same tables at once: the second one ends before it has changed anything, and so does a drop.
fn a_second_load_is_refused(url: &str, select: impl Fn(&str) -> Result<String, String>) {
    let scratch = Scratch::new();
    let folder = scratch.path();
    // The first ones are stopped long before they are done.
    let tpch = ["tpch", "load", "--scale", "10", "--target", url];
    let pgbench = ["pgbench", "-i", "-q", "-s", "2000", url];
    for (load, drop, table) in [
        (&tpch[..], &["tpch", "drop", "--target", url][..], "dyno_tpch"),
        (&pgbench[..], &["pgbench", "-i", "-I", "d", url][..], "pgbench_branches"),
    ] {
        let mut first = RunningDyno::start(folder, load);
        first.wait_until("the tables", |_| select(table).is_ok());
        for verb in [load, drop] {
            let output = dyno(folder, verb);
            assert_eq!(output.code, 1, "{output}");
            let words = "error: Another run or load works on these tables: ";
            let details = output.stderr.split_once(words).map_or("", |(_, details)| details);
            assert!(details.contains(" in database sbtest"), "{output}");
            assert!(details.contains("hint: wait for its end"), "{output}");
        }
        assert!(select(table).is_ok(), "nothing was dropped");
        first.signal(Signal::INT);
        assert_eq!(first.end().code, 130, "{}", first.stderr());
        // The lock has ended with its load.
        let dropped = dyno(folder, drop);
        assert_eq!(dropped.code, 0, "{dropped}");
        assert!(select(table).is_err(), "{dropped}");
    }
}

#[test]
fn a_second_load_into_mariadb_is_refused() {
    let server = server_or_skip!(MariaDb, "a_second_load_into_mariadb_is_refused");
    a_second_load_is_refused(&server.url(), |table| {
        server.sql(&format!("SELECT 1 FROM sbtest.{table} LIMIT 1"))
    });
}

#[test]
fn a_second_load_into_postgres_is_refused() {
    let server = server_or_skip!(Postgres, "a_second_load_into_postgres_is_refused");
    a_second_load_is_refused(&server.url(), |table| {
        // Without a lock, which a load holds for long.
        server.sbtest(&format!("SELECT '{table}'::regclass"))
    });
}

/// pgbench on the tables that a run measures: its rows stand in the history.
fn foreign_transactions_are_found(url: &str) {
    let scratch = Scratch::new();
    let folder = scratch.path();
    suite(folder, &[("main", url)], PGBENCH, 12);
    let mut run = measuring(folder, "runs");
    let anew = dyno(folder, &["pgbench", "-i", url]);
    assert_eq!(anew.code, 1, "{anew}");
    assert!(
        anew.stderr.contains("pgbench: error: Another run or load works on these tables: "),
        "{anew}"
    );
    let foreign = dyno(folder, &["pgbench", "-n", "-c", "1", "-t", "50", url]);
    assert_eq!(foreign.code, 0, "{foreign}");
    assert!(
        foreign.stderr.contains("pgbench: warning: a run or load works on the same tables"),
        "{foreign}"
    );
    let output: ProcessOutput = run.end();
    assert_eq!(output.code, 4, "{output}");
    assert!(output.stderr.contains("of them come from other clients"), "{output}");
    suite(folder, &[("main", url)], PGBENCH, 2);
    let alone = dyno(folder, &["run", "s.toml", "--dir", "alone"]);
    assert_eq!(alone.code, 0, "{alone}");
    assert!(alone.stderr.contains("check balances: passed"), "{alone}");
}

#[test]
fn foreign_transactions_on_mariadb_are_found() {
    let server = server_or_skip!(MariaDb, "foreign_transactions_on_mariadb_are_found");
    foreign_transactions_are_found(&server.url());
}

#[test]
fn foreign_transactions_on_postgres_are_found() {
    let server = server_or_skip!(Postgres, "foreign_transactions_on_postgres_are_found");
    foreign_transactions_are_found(&server.url());
}

/// Whatever dropped it: without its table nothing of the workload is measured.
fn a_dropped_table_fails_the_trial(url: &str, drop_table: impl Fn()) {
    let scratch = Scratch::new();
    let folder = scratch.path();
    suite(folder, &[("main", url)], SYSBENCH, 20);
    let mut run = measuring(folder, "runs");
    drop_table();
    let output: ProcessOutput = run.end();
    assert_eq!(output.code, 1, "{output}");
    assert!(output.stderr.contains("sbtest1"), "{output}");
}

#[test]
fn a_table_of_mariadb_that_is_dropped_fails_the_trial() {
    let server = server_or_skip!(MariaDb, "a_table_of_mariadb_that_is_dropped_fails_the_trial");
    a_dropped_table_fails_the_trial(&server.url(), || {
        server.sql("DROP TABLE sbtest.sbtest1").expect("dropped");
    });
}

#[test]
fn a_table_of_postgres_that_is_dropped_fails_the_trial() {
    let server = server_or_skip!(Postgres, "a_table_of_postgres_that_is_dropped_fails_the_trial");
    a_dropped_table_fails_the_trial(&server.url(), || {
        server.sbtest("DROP TABLE sbtest1").expect("dropped");
    });
}
