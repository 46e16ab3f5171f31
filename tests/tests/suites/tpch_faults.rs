//! TPC-H when something breaks in the middle: servers and loads that are killed, queries that are
//! stopped, disks that are full. Nothing may hang, nothing that was stored may be lost or counted
//! twice, and nothing may be left at work on a server.

use crate::tiny_disk::TinyDisk;
use dyno_testkit::{
    MariaDb, Postgres, ProcessOutput, RunningDyno, Scratch, dyno, only_run, server_or_skip,
    skipped, wait_until,
};
use rustix::process::Signal;
use serde_json::Value;
use std::cell::RefCell;
use std::fs;
use std::path::Path;

/// A server of either kind, and what differs between them.
struct Server<'a> {
    url: String,
    /// Runs statements in the database of the test.
    sql: &'a dyn Fn(&str) -> String,
    kill: &'a dyn Fn(),
    restart: &'a dyn Fn() -> bool,
    /// An expression that sleeps for an hour.
    sleep: &'static str,
    /// Counts the sessions that execute such a one.
    asleep: &'static str,
    /// Makes table lineitem sleep at its first row.
    trap: &'static [&'static str],
    /// Takes that back.
    untrap: &'static str,
}

impl Server<'_> {
    fn asleep(&self) -> u32 {
        (self.sql)(self.asleep).trim().parse().expect("a number")
    }

    /// Kills statements of the server that a killed dyno has left at work.
    fn kill_sleepers(&self) {
        if self.url.starts_with("mysql") {
            let sleepers = self.asleep.replace("count(*)", "id");
            for id in (self.sql)(&sleepers).lines() {
                (self.sql)(&format!("KILL {id}"));
            }
        } else {
            (self.sql)(&self.asleep.replace("count(*)", "pg_terminate_backend(pid)"));
        }
        wait_until("nobody at work", || self.asleep() == 0);
    }

    /// From now on, who reads table region sleeps.
    fn put_region_to_sleep(&self) {
        (self.sql)("ALTER TABLE region RENAME TO regions");
        (self.sql)(&format!(
            "CREATE VIEW region AS SELECT regions.* FROM regions, (SELECT {} AS s) nap",
            self.sleep
        ));
    }

    fn wake_region(&self) {
        (self.sql)("DROP VIEW region");
        (self.sql)("ALTER TABLE regions RENAME TO region");
    }
}

fn with_postgres(name: &str, test: impl FnOnce(&Server<'_>)) {
    let server = server_or_skip!(Postgres, name);
    let url = server.url();
    let server = RefCell::new(server);
    test(&Server {
        url,
        sql: &|text| {
            let answer = server.borrow().sbtest(text);
            answer.unwrap_or_else(|error| panic!("{text}: {error}"))
        },
        kill: &|| server.borrow_mut().kill(),
        restart: &|| server.borrow_mut().restart().is_ok(),
        sleep: "pg_sleep(3600)",
        asleep: "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep' AND \
                 backend_type = 'client backend'",
        trap: &[
            "CREATE FUNCTION nap() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM \
             pg_sleep(3600); RETURN NULL; END'",
            "CREATE TRIGGER nap BEFORE INSERT ON lineitem FOR EACH STATEMENT EXECUTE FUNCTION nap()",
        ],
        untrap: "DROP TRIGGER nap ON lineitem",
    });
}

fn with_mariadb(name: &str, test: impl FnOnce(&Server<'_>)) {
    let server = server_or_skip!(MariaDb, name);
    let url = server.url();
    let server = RefCell::new(server);
    test(&Server {
        url,
        sql: &|text| {
            let answer = server.borrow().sql(&format!("USE sbtest; {text}"));
            answer.unwrap_or_else(|error| panic!("{text}: {error}"))
        },
        kill: &|| server.borrow_mut().kill(),
        restart: &|| server.borrow_mut().restart().is_ok(),
        sleep: "SLEEP(3600)",
        asleep: "SELECT count(*) FROM information_schema.processlist WHERE state = 'User sleep'",
        trap: &["CREATE TRIGGER nap BEFORE INSERT ON lineitem FOR EACH ROW SET @nap = SLEEP(3600)"],
        untrap: "DROP TRIGGER nap",
    });
}

const RUN: [&str; 8] = ["tpch", "run", "--scale", "0.01", "--cache", "as-is", "--plans", "none"];

/// `dyno tpch run`, and what is added to it.
fn run<'a>(server: &'a Server<'_>, more: &[&'a str]) -> Vec<&'a str> {
    [&RUN, more, &["--target", &server.url]].concat()
}

fn load<'a>(server: &'a Server<'_>, more: &[&'a str]) -> Vec<&'a str> {
    let words = ["tpch", "load", "--scale", "0.01", "--sessions", "4", "--target", &server.url];
    [&words, more].concat()
}

fn assert_succeeds(output: &ProcessOutput) {
    assert_eq!(output.code, 0, "{output}");
}

/// Ends with code 1 and one error.
fn assert_fails(output: &ProcessOutput, words: &str) {
    ends_with(output, 1, words);
}

/// Ends with this code and one error.
fn ends_with(output: &ProcessOutput, code: i32, words: &str) {
    assert_eq!(output.code, code, "{output}");
    let errors: Vec<&str> =
        output.stderr.lines().filter(|line| line.starts_with("error:")).collect();
    assert_eq!(errors.len(), 1, "{output}");
    assert!(output.stderr.contains(words), "no `{words}`: {output}");
}

fn all_are_correct(output: &ProcessOutput) {
    assert_succeeds(output);
    assert!(output.stdout.ends_with("answers: 22 of 22 correct\n"), "{output}");
}

/// The record of the trial in the only run in a folder.
fn trial(runs: &Path) -> Value {
    let path = only_run(runs).expect("there is a run").join("trials/1.json");
    let text = fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_slice(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Outcome of each query of a trial: the names of those that ended so.
fn queries_with_outcome(trial: &Value, outcome: &str) -> Vec<u64> {
    let queries = trial["own"]["facts"]["queries"].as_array().expect("a list");
    let has_outcome = |query: &&Value| {
        let actual = &query["outcome"];
        actual == outcome || actual.get(outcome).is_some()
    };
    queries
        .iter()
        .filter(has_outcome)
        .map(|query| query["query"].as_u64().expect("a number"))
        .collect()
}

/// Waits until the run is in a query that sleeps.
fn wait_for_sleep(running: &mut RunningDyno, server: &Server<'_>) {
    running.wait_until("a query that sleeps", |_| server.asleep() > 0);
}

fn queries_end_as_they_should(server: &Server<'_>) {
    let scratch = Scratch::new();
    let folder = scratch.path();
    assert_succeeds(&dyno(folder, &load(server, &[])));
    server.put_region_to_sleep();
    ctrl_c_leaves_nothing_at_work(folder, server);
    bounds_leave_nothing_at_work(folder, server);
    a_killed_dyno_has_stored_what_had_ended(folder, server);
    a_server_that_dies_fails_its_queries(folder, server);
}

fn ctrl_c_leaves_nothing_at_work(folder: &Path, server: &Server<'_>) {
    let words = run(server, &["--dir", "stopped"]);
    let mut running = RunningDyno::start(folder, &words);
    wait_for_sleep(&mut running, server);
    running.signal(Signal::INT);
    let output = running.end();
    ends_with(&output, 130, "interrupted");
    wait_until("nobody at work", || server.asleep() == 0);
    let stopped = trial(&folder.join("stopped"));
    assert_eq!(stopped["status"], "interrupted", "{stopped:#}");
    assert_eq!(queries_with_outcome(&stopped, "answered"), [1]);
    assert_eq!(queries_with_outcome(&stopped, "interrupted"), [2]);
    // The same command continues with the run.
    server.wake_region();
    all_are_correct(&dyno(folder, &words));
    assert!(only_run(&folder.join("stopped")).is_some());
    server.put_region_to_sleep();
}

fn bounds_leave_nothing_at_work(folder: &Path, server: &Server<'_>) {
    let output = dyno(folder, &run(server, &["--timeout", "5", "--dir", "bounded"]));
    wait_until("nobody at work", || server.asleep() == 0);
    let bounded = trial(&folder.join("bounded"));
    let given_up = queries_with_outcome(&bounded, "timed_out");
    // Those that read region; on a slow machine others may pass the bound too.
    assert!([2, 5, 8].iter().all(|query| given_up.contains(query)), "{output}");
    assert_eq!(queries_with_outcome(&bounded, "answered").len(), 22 - given_up.len());
    assert_eq!(bounded["own"]["facts"]["metrics"]["penalized"], serde_json::json!(given_up));
    let line = format!("answers: {} of 22 correct; without an answer: ", 22 - given_up.len());
    assert!(output.stdout.contains(&line), "{line}{output}");
    for query in bounded["own"]["facts"]["queries"].as_array().expect("a list") {
        if query["outcome"] == "timed_out" {
            assert_eq!(query["seconds"].as_f64(), Some(5.0), "{query:#}");
        }
    }
}

fn a_killed_dyno_has_stored_what_had_ended(folder: &Path, server: &Server<'_>) {
    let words = run(server, &["--dir", "killed"]);
    let mut running = RunningDyno::start(folder, &words);
    wait_for_sleep(&mut running, server);
    running.signal(Signal::KILL);
    running.end();
    server.kill_sleepers();
    server.wake_region();
    all_are_correct(&dyno(folder, &words));
    let killed = only_run(&folder.join("killed")).expect("it is gone on with, not begun anew");
    let summary = dyno(folder, &["show", &killed.display().to_string()]);
    assert_succeeds(&summary);
    let first = trial(&folder.join("killed"));
    assert_eq!(first["status"], "interrupted", "{first:#}");
    assert_eq!(queries_with_outcome(&first, "answered"), [1], "{first:#}");
    server.put_region_to_sleep();
}

fn a_server_that_dies_fails_its_queries(folder: &Path, server: &Server<'_>) {
    let mut running = RunningDyno::start(folder, &run(server, &["--dir", "died"]));
    wait_for_sleep(&mut running, server);
    (server.kill)();
    let output = running.end();
    assert_fails(&output, "Q2");
    let died = trial(&folder.join("died"));
    assert_eq!(queries_with_outcome(&died, "answered"), [1], "{died:#}");
    let failed = queries_with_outcome(&died, "failed");
    assert_eq!(failed.first(), Some(&2), "{died:#}");
    assert!(died["own"]["facts"]["metrics"].is_null(), "no metric over fewer queries: {died:#}");
    wait_until("the server to come back", || (server.restart)());
    server.wake_region();
    all_are_correct(&dyno(folder, &run(server, &["--dir", "again"])));
}

#[test]
fn queries_on_postgres_are_stopped_killed_and_lost() {
    with_postgres("queries_on_postgres_are_stopped_killed_and_lost", queries_end_as_they_should);
}

#[test]
fn queries_on_mariadb_are_stopped_killed_and_lost() {
    with_mariadb("queries_on_mariadb_are_stopped_killed_and_lost", queries_end_as_they_should);
}

/// A load that hangs in lineitem is killed, meets the death of its server and is stopped; each time
/// it continues, and at the end every row is there once.
fn loads_go_on(server: &Server<'_>) {
    let scratch = Scratch::new();
    let folder = scratch.path();
    let created = dyno(folder, &load(server, &["--steps", "create"]));
    assert_succeeds(&created);
    let early = dyno(folder, &[&RUN[..], &["--target", &server.url]].concat());
    assert_eq!(early.code, 1, "a load that is not complete: {early}");

    server.trap.iter().for_each(|sql| drop((server.sql)(sql)));
    let start_hanging_load = || {
        let before = server.asleep();
        let mut loading = RunningDyno::start(folder, &load(server, &[]));
        // All other tables are loaded meanwhile.
        loading.wait_until("a load that sleeps", |_| {
            let count_orders = "SELECT count(*) FROM orders";
            server.asleep() > before && (server.sql)(count_orders).trim() == "15000"
        });
        loading
    };
    let mut killed = start_hanging_load();
    killed.signal(Signal::KILL);
    killed.end();
    let mut died = start_hanging_load();
    (server.kill)();
    assert_fails(&died.end(), "hint: ");
    wait_until("the server to come back", || (server.restart)());
    let mut stopped = start_hanging_load();
    stopped.signal(Signal::INT);
    let output = stopped.end();
    assert_ne!(output.code, 0, "{output}");
    assert!(output.stderr.contains("The same command continues the load"), "{output}");

    // The killed ones are still asleep on the server, with their locks.
    server.kill_sleepers();
    (server.sql)(server.untrap);
    let loaded = dyno(folder, &load(server, &[]));
    assert_succeeds(&loaded);
    assert!(loaded.stderr.contains("rows were there"), "{loaded}");
    assert_eq!((server.sql)("SELECT count(*) FROM lineitem").trim(), "60175");
    let again = dyno(folder, &load(server, &[]));
    assert_succeeds(&again);
    assert!(again.stderr.contains("nothing was missing"), "{again}");
    all_are_correct(&dyno(folder, &run(server, &[])));
}

#[test]
fn loads_on_postgres_go_on() {
    with_postgres("loads_on_postgres_go_on", loads_go_on);
}

#[test]
fn loads_on_mariadb_go_on() {
    with_mariadb("loads_on_mariadb_go_on", loads_go_on);
}

#[test]
fn full_disks_are_one_error() {
    let scratch = Scratch::new();
    let folder = scratch.path();
    let tiny = match TinyDisk::mount(folder.join("tiny"), "6m") {
        Ok(tiny) => tiny,
        Err(why) => return skipped("full_disks_are_one_error", &why),
    };
    let load = ["tpch", "load", "--scale", "0.01", "--target", "sqlite:tiny/tpch.db"];
    assert_fails(&dyno(folder, &load), "disk is full");

    let out = ["tpch", "gen", "--scale", "0.01", "--out", "tiny/files"];
    assert_fails(&dyno(folder, &out), "No space left on device");
    let files = fs::read_dir(folder.join("tiny/files")).expect("the folder was made");
    assert!(files.flatten().all(|file| file.file_name() != "lineitem.tbl"), "an unfinished file");

    // A run whose folder can't be written any more: a few blocks are left.
    let load = ["tpch", "load", "--scale", "0.01", "--target", "sqlite:tpch.db"];
    assert_succeeds(&dyno(folder, &load));
    for file in fs::read_dir(folder.join("tiny")).expect("a folder").flatten() {
        let _ = fs::remove_dir_all(file.path()).or_else(|_| fs::remove_file(file.path()));
    }
    fs::write(folder.join("tiny/ballast"), vec![0; 6_200_000]).expect("it fits");
    let run =
        ["tpch", "run", "--scale", "0.01", "--target", "sqlite:tpch.db", "--dir", "tiny/runs"];
    let output = dyno(folder, &run);
    assert_fails(&output, "No space left on device");
    assert!(output.stderr.contains("hint: Free some space there"), "{output}");
    drop(tiny);
    let run = ["tpch", "run", "--scale", "0.01", "--target", "sqlite:tpch.db"];
    all_are_correct(&dyno(folder, &run));
}
