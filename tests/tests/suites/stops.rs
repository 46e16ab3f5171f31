//! Servers that hang: dyno says what it waits for, and Ctrl-C ends it at any moment. The same command continues.

use super::silent::mute_server;
use dyno_facts::TrialStatus;
use dyno_store::TrialData;
use dyno_testkit::{
    MariaDb, Postgres, RunningDyno, Scratch, commits, dyno, dyno_command, is_ignored, only_run,
    server_or_skip, skipped,
};
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::time::{Duration, Instant};

/// More than the ten seconds that are promised, for machines that are busy.
const ENDED_WITHIN: Duration = Duration::from_secs(60);

fn signal(process: u32, signal: Signal) {
    let process = i32::try_from(process).ok().and_then(Pid::from_raw).expect("a process");
    // One of a session that has ended since it was listed is gone.
    let _ = kill_process(process, signal);
}

/// A server that is stopped in its tracks while this lives.
pub(crate) struct Frozen(Vec<u32>);

impl Frozen {
    /// All processes of a server: those of PostgreSQL's sessions answer without the first.
    pub(crate) fn new(first: u32) -> Self {
        let mut pids = vec![first];
        let children = format!("/proc/{first}/task/{first}/children");
        let children = fs::read_to_string(children).unwrap_or_default();
        pids.extend(children.split_whitespace().filter_map(|pid| pid.parse::<u32>().ok()));
        pids.iter().for_each(|&pid| signal(pid, Signal::STOP));
        Frozen(pids)
    }
}

impl Drop for Frozen {
    fn drop(&mut self) {
        self.0.iter().for_each(|&pid| signal(pid, Signal::CONT));
    }
}

fn suite(folder: &Path, url: &str, experiment: &str) {
    let text = format!(
        "[suite]\nname = \"stops\"\n\n[target.main]\nurl = \"{url}\"\n\n[[experiment]]\nname = \"e\"\n{experiment}\n"
    );
    fs::write(folder.join("stops.toml"), text).expect("the suite can be written");
}

const TPCC: &str = "workload = \"tpcc\"\ntest = \"bmsql-5.0\"\nterminals = 2\nwarmup_s = 0.5\nduration_s = 3\n\
                    options = { warehouses = 2, load_workers = 2 }";
const SYSBENCH: &str = "workload = \"sysbench\"\ntest = \"oltp_read_write\"\nworkers = [4]\ninterval_s = 0.5\nduration_s = 4\n\
                        options = { tables = 2, table_size = 1000 }";

/// Starts a run that looks at its server after a second without progress.
fn start(folder: &Path) -> RunningDyno {
    let mut command = dyno_command(folder);
    command.env("DYNO_LOAD_PATIENCE_S", "1").args(["run", "stops.toml"]);
    RunningDyno::spawn(folder, command)
}

/// Ends a run by a signal; what it has said.
fn end_by_signal(running: &mut RunningDyno, with: Signal) -> String {
    let signaled_at = Instant::now();
    running.signal(with);
    let output = running.end();
    assert!(signaled_at.elapsed() < ENDED_WITHIN, "after {:?}: {output}", signaled_at.elapsed());
    assert_ne!(output.code, 0, "{output}");
    assert!(output.stderr.contains("Stopping; what was loaded and measured is kept."), "{output}");
    output.to_string()
}

fn goes_on(folder: &Path) {
    let output = dyno(folder, &["run", "stops.toml"]);
    assert_eq!(output.code, 0, "{output}");
    assert!(output.stderr.contains("Resuming "), "{output}");
}

/// TPC-C on as little as can be loaded.
fn load_of_tpcc() -> String {
    TPCC.replace("warehouses = 2", "warehouses = 1")
}

/// A load on a server that hangs names what is waited for, and TERM ends it.
fn load_on_a_server_that_hangs(url: &str, process: u32) {
    let scratch = Scratch::new();
    let folder = scratch.path();
    suite(folder, url, &load_of_tpcc());
    let mut running = start(folder);
    running.wait_until("the load", |running| running.stderr().contains("target main"));
    // Somewhere in the load; every moment of it must do.
    std::thread::sleep(Duration::from_millis(700));
    let frozen = Frozen::new(process);
    running.wait_until("the look at the server", |running| {
        running.stderr().contains("no progress for ")
    });
    let texts = end_by_signal(&mut running, Signal::TERM);
    assert!(texts.contains("main does not answer a new connection within"), "{texts}");
    assert!(texts.contains("session 0: "), "{texts}");
    drop(frozen);
    goes_on(folder);
}

#[test]
fn term_ends_a_load_on_a_mariadb_that_hangs() {
    let server = server_or_skip!(MariaDb, "term_ends_a_load_on_a_mariadb_that_hangs");
    load_on_a_server_that_hangs(&server.url(), server.server.process().expect("it runs"));
}

#[test]
fn term_ends_a_load_on_a_postgres_that_hangs() {
    let server = server_or_skip!(Postgres, "term_ends_a_load_on_a_postgres_that_hangs");
    load_on_a_server_that_hangs(&server.url(), server.server.process().expect("it runs"));
}

#[test]
fn a_load_on_a_server_that_hangs_for_long_ends_by_itself() {
    let server = server_or_skip!(MariaDb, "a_load_on_a_server_that_hangs_for_long_ends_by_itself");
    let scratch = Scratch::new();
    let folder = scratch.path();
    suite(folder, &server.url(), &load_of_tpcc());
    let mut running = start(folder);
    running.wait_until("the load", |running| running.stderr().contains("target main"));
    std::thread::sleep(Duration::from_millis(700));
    let frozen = Frozen::new(server.server.process().expect("it runs"));
    let output = running.end();
    assert_eq!(output.code, 1, "{output}");
    let error = output.stderr.lines().find(|line| line.starts_with("error: ")).unwrap_or_default();
    assert!(error.contains("main does not answer a new connection"), "{output}");
    assert!(error.contains("the load made no progress for"), "{output}");
    drop(frozen);
    goes_on(folder);
}

/// Starts a run, and waits until its trial commits.
fn amid_a_trial(folder: &Path, url: &str) -> RunningDyno {
    suite(folder, url, SYSBENCH);
    let mut running = start(folder);
    let runs = folder.join("dyno-runs");
    running.wait_until("commits", |_| {
        only_run(&runs).is_some_and(|run| commits(&run, 1).iter().any(|&count| count > 0))
    });
    running
}

/// A trial on a server that hangs ends with INT, is kept as interrupted, and is repeated.
fn trial_on_a_server_that_hangs(url: &str, process: u32) {
    let scratch = Scratch::new();
    let folder = scratch.path();
    let mut running = amid_a_trial(folder, url);
    let frozen = Frozen::new(process);
    // Until after the end of its window, which begun transactions outlast.
    std::thread::sleep(Duration::from_secs(5));
    let texts = end_by_signal(&mut running, Signal::INT);
    assert!(texts.contains("error: The run was interrupted"), "{texts}");
    drop(frozen);
    goes_on(folder);
}

#[test]
fn a_stall_that_outlasts_the_window_is_the_maximum_of_the_trial() {
    let name = "a_stall_that_outlasts_the_window_is_the_maximum_of_the_trial";
    let server = server_or_skip!(MariaDb, name);
    let scratch = Scratch::new();
    let folder = scratch.path();
    let mut running = amid_a_trial(folder, &server.url());
    let frozen = Frozen::new(server.server.process().expect("it runs"));
    // Each of the four workers waits for an answer from then on.
    std::thread::sleep(Duration::from_secs(1));
    let stalled = Instant::now();
    std::thread::sleep(Duration::from_secs(6));
    let stall_us = stalled.elapsed().as_micros() as f64;
    drop(frozen);
    let output = running.end();
    let run = only_run(&folder.join("dyno-runs")).expect("one run");
    let summary = &dyno_store::read(&run).expect("a run").trials[0].summary;
    assert!(summary.in_flight > 0, "{output}");
    assert!(summary.latency.max_us >= stall_us, "{:?} {output}", summary.latency);
    let note = "in flight at the end of the window took at least";
    assert!(
        summary.notes.iter().any(|told| told.to_string().contains(note)),
        "{:?}",
        summary.notes
    );
    let paper = fs::read_to_string(run.join("paper.md")).expect("a paper");
    assert!(paper.contains(note), "{paper}");
}

#[test]
fn int_ends_a_trial_on_a_mariadb_that_hangs() {
    let server = server_or_skip!(MariaDb, "int_ends_a_trial_on_a_mariadb_that_hangs");
    trial_on_a_server_that_hangs(&server.url(), server.server.process().expect("it runs"));
}

#[test]
fn int_ends_a_trial_on_a_postgres_that_hangs() {
    let server = server_or_skip!(Postgres, "int_ends_a_trial_on_a_postgres_that_hangs");
    trial_on_a_server_that_hangs(&server.url(), server.server.process().expect("it runs"));
}

#[test]
fn term_ends_the_first_look_at_a_server_that_takes_connections_and_says_nothing() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("bound").port();
    for scheme in ["mysql", "postgres"] {
        let scratch = Scratch::new();
        let url = format!("{scheme}://u@127.0.0.1:{port}/d?connect_timeout_s=3600");
        suite(scratch.path(), &url, SYSBENCH);
        let mut running = start(scratch.path());
        let _taken = listener.accept().expect("dyno connects");
        std::thread::sleep(Duration::from_millis(300));
        let texts = end_by_signal(&mut running, Signal::TERM);
        assert!(texts.contains("stopped by the user"), "{texts}");
    }
}

#[test]
fn a_server_that_logs_in_and_says_nothing_ends_the_first_look() {
    let scratch = Scratch::new();
    let url = format!("postgres://u@127.0.0.1:{}/d?connect_timeout_s=1", mute_server("postgres"));
    suite(scratch.path(), &url, SYSBENCH);
    let output = start(scratch.path()).end();
    assert_eq!(output.code, 1, "{output}");
    let message = "takes the log-in, and answers no question within 1 s";
    assert!(output.stderr.contains("target main") && output.stderr.contains(message), "{output}");
}

#[test]
fn a_lost_terminal_ends_a_run_as_ctrl_c_does() {
    if is_ignored(Signal::HUP.as_raw()) {
        return skipped("a_lost_terminal_ends_a_run_as_ctrl_c_does", "SIGHUP is ignored here");
    }
    let scratch = Scratch::new();
    let folder = scratch.path();
    let mut running = amid_a_trial(folder, "sqlite:main.db");
    end_by_signal(&mut running, Signal::HUP);
    goes_on(folder);
}

#[test]
fn a_trial_that_failed_is_made_again_by_the_same_command() {
    let scratch = Scratch::new();
    let folder = scratch.path();
    let script = "function event() if io.open('broken') then error('it is broken') end end\n";
    fs::write(folder.join("own.lua"), script).expect("a script");
    fs::write(folder.join("broken"), "").expect("a file");
    let experiment =
        "workload = \"lua\"\nscript = \"own.lua\"\nworkers = 1\nevents = 10\nrepeats = 5";
    suite(folder, "sqlite:main.db", experiment);
    let output = dyno(folder, &["run", "stops.toml"]);
    assert_eq!(output.code, 1, "{output}");
    assert!(output.stderr.contains("it is broken"), "{output}");
    assert!(output.stderr.contains("three trials in a row failed"), "{output}");
    fs::remove_file(folder.join("broken")).expect("removed");
    goes_on(folder);
    let run = only_run(&folder.join("dyno-runs")).expect("one run");
    let trials = dyno_store::read(&run).expect("a run").trials;
    let is_complete = |trial: &&TrialData| trial.summary.status == TrialStatus::Complete;
    assert_eq!(trials.iter().filter(is_complete).count(), 5);
    let is_failed = |trial: &&TrialData| matches!(trial.summary.status, TrialStatus::Failed(_));
    assert_eq!(trials.iter().filter(is_failed).count(), 3, "no more were tried, and they are kept");
}

/// Starts TPC-C, and waits for the end of its window.
fn beyond_the_window(folder: &Path, url: &str) -> RunningDyno {
    suite(folder, url, TPCC);
    let mut running = start(folder);
    let runs = folder.join("dyno-runs");
    running.wait_until("the end of the window", |_| {
        only_run(&runs).is_some_and(|run| commits(&run, 1).len() >= 3)
    });
    running
}

#[test]
fn int_ends_the_conditions_on_a_server_that_hangs() {
    let server = server_or_skip!(MariaDb, "int_ends_the_conditions_on_a_server_that_hangs");
    let scratch = Scratch::new();
    let folder = scratch.path();
    let mut running = beyond_the_window(folder, &server.url());
    let frozen = Frozen::new(server.server.process().expect("it runs"));
    std::thread::sleep(Duration::from_secs(2));
    end_by_signal(&mut running, Signal::INT);
    drop(frozen);
    goes_on(folder);
}

#[test]
fn int_in_the_checks_keeps_what_was_measured() {
    let server = server_or_skip!(MariaDb, "int_in_the_checks_keeps_what_was_measured");
    let scratch = Scratch::new();
    let folder = scratch.path();
    let mut running = beyond_the_window(folder, &server.url());
    let texts = end_by_signal(&mut running, Signal::INT);
    let not_made = "not made: The check was stopped by the user.";
    assert_eq!(texts.matches(not_made).count(), 1, "one line for all of them: {texts}");
    let trials = only_run(&folder.join("dyno-runs")).expect("a run").join("trials");
    let text = fs::read_to_string(trials.join("1.json")).expect("a summary");
    assert!(text.contains("\"status\": \"complete\"") && text.contains("\"not_made\""), "{text}");
    goes_on(folder);
    assert!(!trials.join("2.json").exists(), "it is not measured again");
}
