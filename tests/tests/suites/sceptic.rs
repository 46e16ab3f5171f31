//! Doubts about a comparison of two PostgreSQLs, and dyno's response: no verdict that something else can
//! explain.

use dyno_facts::TrialStatus;
use dyno_store::RunData;
use dyno_testkit::{
    Postgres, ProcessOutput, RunningDyno, Scratch, commits, dyno, only_run, server_or_skip,
};
use rustix::process::Signal;
use std::fs;
use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

/// Loads pgbench's tables into these servers, a and b, and writes a suite that finds them there.
fn suite(folder: &Path, servers: &[&Postgres], keys: &str) {
    for server in servers {
        let loaded = dyno(folder, &["pgbench", "-i", "-q", &server.url()]);
        assert_eq!(loaded.code, 0, "{loaded}");
    }
    let targets = ["a", "b"].iter().zip(servers);
    let targets =
        targets.map(|(name, server)| format!("[target.{name}]\nurl = \"{}\"\n", server.url()));
    let text = format!(
        "[suite]\nname = \"s\"\nretry_starved = 0\n{}[[experiment]]\nname = \"e\"\nworkload = \"pgbench\"\ntest = \"tpcb-like\"\n\
         options = {{ scale = 1 }}\nworkers = 2\nprepare = false\ncleanup = false\n{keys}\n",
        targets.collect::<String>()
    );
    fs::write(folder.join("s.toml"), text).expect("a suite can be written");
}

const COMPARE: [&str; 7] = ["run", "s.toml", "--dir", "runs", "--compare", "a", "b"];

fn arguments<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&COMPARE[..], more].concat()
}

fn data(folder: &Path) -> RunData {
    dyno_store::read(&only_run(&folder.join("runs")).expect("a run")).expect("a run")
}

/// The calls of the comparison, by metric, and the results of its gates, from the paper.
fn paper(folder: &Path) -> (Vec<String>, Vec<String>) {
    let file = only_run(&folder.join("runs")).expect("a run").join("paper.json");
    let paper: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(file).expect("a paper")).expect("JSON");
    let get_texts = |rows: &serde_json::Value, key: &str| -> Vec<String> {
        let rows = rows.as_array().expect("rows");
        rows.iter().map(|row| row[key].as_str().expect("a word").to_owned()).collect()
    };
    (get_texts(&paper["verdicts"][0]["rows"], "call"), get_texts(&paper["gates"], "result"))
}

/// A verdict is taken away by this check: nothing is certain, gates are inconclusive, and the exit code says so.
fn nothing_is_claimed(folder: &Path, output: &ProcessOutput, check: &str) {
    assert_eq!(output.code, 3, "{output}");
    let (calls, gates) = paper(folder);
    assert!(!calls.is_empty() && !gates.is_empty(), "{output}");
    for call in calls.iter().chain(&gates) {
        assert!(
            !["faster", "slower", "equivalent", "pass", "broken"].contains(&call.as_str()),
            "{output}"
        );
    }
    assert!(output.stdout.contains(check), "{output}");
    assert!(output.stderr.contains(check), "the hint names it: {output}");
    let compared = dyno(folder, &["compare", "last", "--dir", "runs"]);
    assert_eq!(compared.code, 3, "{compared}");
    assert!(
        compared.stdout.contains("Not to be claimed") && compared.stdout.contains(check),
        "{compared}"
    );
}

#[test]
fn a_strangers_load_on_one_of_two_servers_takes_the_verdict_away() {
    let name = "a_strangers_load_on_one_of_two_servers_takes_the_verdict_away";
    let (a, b) = (server_or_skip!(Postgres, name), server_or_skip!(Postgres, name));
    let scratch = Scratch::new();
    let folder = scratch.path();
    suite(folder, &[&a, &b], "duration_s = 0.5");
    let (other, url) = (Scratch::new(), b.url());
    let stranger = ["pgbench", "-n", "-S", "-c", "2", "-T", "600", &url];
    let _stranger = RunningDyno::start(other.path(), &stranger);
    // Bounds that are kept, and broken, whatever the machine does.
    let gates = ["--gate", "tps.ratio.low > 0.000001", "--gate", "tps.ratio.low > 1000000"];
    let output = dyno(folder, &arguments(&[&["--pairs", "6"][..], &gates].concat()));
    nothing_is_claimed(folder, &output, "uneven-foreign-load");
}

/// The CPU of a server is that of all its databases.
#[test]
fn a_strangers_load_in_another_database_of_one_server_takes_the_verdict_away() {
    let name = "a_strangers_load_in_another_database_of_one_server_takes_the_verdict_away";
    let (a, b) = (server_or_skip!(Postgres, name), server_or_skip!(Postgres, name));
    let scratch = Scratch::new();
    let folder = scratch.path();
    suite(folder, &[&a, &b], "duration_s = 2");
    a.sql("CREATE DATABASE elsewhere").expect("it is created");
    let (other, url) = (Scratch::new(), a.url().replace("/sbtest", "/elsewhere"));
    let loaded = dyno(other.path(), &["pgbench", "-i", "-q", &url]);
    assert_eq!(loaded.code, 0, "{loaded}");
    let stranger = ["pgbench", "-n", "-S", "-c", "2", "-T", "600", &url];
    let _stranger = RunningDyno::start(other.path(), &stranger);
    let gates = ["--gate", "tps.ratio.low > 0.000001", "--gate", "tps.ratio.low > 1000000"];
    let output = dyno(folder, &arguments(&[&["--pairs", "6"][..], &gates].concat()));
    nothing_is_claimed(folder, &output, "uneven-foreign-load");
}

#[test]
fn a_server_that_was_changed_while_a_run_was_interrupted_has_no_verdict() {
    let name = "a_server_that_was_changed_while_a_run_was_interrupted_has_no_verdict";
    let (a, b) = (server_or_skip!(Postgres, name), server_or_skip!(Postgres, name));
    let scratch = Scratch::new();
    let folder = scratch.path();
    suite(folder, &[&a, &b], "duration_s = 0.5");
    let change_server = |sql: &str| b.sbtest(sql).expect("it is changed");
    change_server(
        "CREATE FUNCTION slow() RETURNS trigger AS 'BEGIN RETURN NEW; END' LANGUAGE plpgsql",
    );
    change_server(
        "CREATE TRIGGER slow BEFORE UPDATE ON pgbench_accounts FOR EACH ROW EXECUTE FUNCTION slow()",
    );
    let gates = ["--pairs", "6", "--gate", "tps.ratio.low > 0.000001"];
    let command = arguments(&gates);
    let mut running = RunningDyno::start(folder, &command);
    let runs = folder.join("runs");
    running.wait_until("five trials", |_| {
        only_run(&runs).is_some_and(|run| run.join("trials/5.json").exists())
    });
    running.signal(Signal::INT);
    assert_eq!(running.end().code, 130);
    let last = data(folder).trials.iter().map(|trial| trial.summary.trial).max().expect("trials");
    change_server("ALTER TABLE pgbench_accounts DISABLE TRIGGER slow");
    change_server("CREATE RULE idle AS ON INSERT TO pgbench_history DO ALSO NOTHING");
    change_server("ALTER SYSTEM SET work_mem = '1MB'");
    change_server("SELECT pg_reload_conf()");
    let output = dyno(folder, &[&command[..], &["--long"]].concat());
    nothing_is_claimed(folder, &output, "target-changed");
    let between = format!("between trials {last} and {}", last + 1);
    let rule = "rule pgbench_history.idle";
    let trigger = "trigger pgbench_accounts.slow was ";
    for words in [&between, "work_mem was 4MB, is 1MB", rule, trigger, ", disabled"] {
        assert!(output.stdout.contains(words), "no `{words}` in: {output}");
    }
    // One side has a trigger that the other lacks.
    assert!(output.stdout.contains("schema: targets a and b: "), "{output}");
}

/// A parallel worker's commits are no one else's: without its index a table is read by workers.
#[test]
fn a_lost_index_is_slower_however_many_workers_read_the_table() {
    let name = "a_lost_index_is_slower_however_many_workers_read_the_table";
    let (a, b) = (server_or_skip!(Postgres, name), server_or_skip!(Postgres, name));
    let scratch = Scratch::new();
    let folder = scratch.path();
    // On a busy machine a transaction without the index takes some tenths of a second.
    suite(folder, &[&a, &b], "duration_s = 2");
    for server in [&a, &b] {
        server
            .sbtest("ALTER TABLE pgbench_accounts SET (parallel_workers = 2)")
            .expect("it is set");
        for setting in
            ["min_parallel_table_scan_size", "parallel_setup_cost", "parallel_tuple_cost"]
        {
            server.sbtest(&format!("ALTER SYSTEM SET {setting} = 0")).expect("it is set");
        }
        server.sbtest("SELECT pg_reload_conf()").expect("it is read");
    }
    b.sbtest("ALTER TABLE pgbench_accounts DROP CONSTRAINT pgbench_accounts_pkey")
        .expect("it is dropped");
    let output = dyno(folder, &arguments(&["--pairs", "6", "--gate", "tps.ratio.low > 0.9"]));
    assert_eq!(output.code, 5, "{output}");
    let (calls, gates) = paper(folder);
    assert_eq!((calls[0].as_str(), gates[0].as_str()), ("slower", "broken"), "{output}");
    assert!(!output.stdout.contains("foreign-load"), "{output}");
    let has_workers = data(folder).trials.iter().any(|trial| {
        let nodes = trial.summary.conditions.nodes.values();
        let commits = nodes.map(|node| (node.was_alone, node.commits.zip(node.client_commits)));
        commits.into_iter().any(|node| matches!(node, (true, Some((all, own))) if all > 2 * own))
    });
    assert!(has_workers, "no parallel worker has committed: nothing was tested");
    // A stranger on the other server is still found, and the workers are not taken for another one.
    let (again, url) = (Scratch::new(), a.url());
    fs::copy(folder.join("s.toml"), again.path().join("s.toml")).expect("the suite is copied");
    let stranger_scratch = Scratch::new();
    let stranger = ["pgbench", "-n", "-S", "-c", "2", "-T", "600", &url];
    let _stranger = RunningDyno::start(stranger_scratch.path(), &stranger);
    let output = dyno(again.path(), &arguments(&["--pairs", "2"]));
    // The lines of a sentence after the first one are indented.
    let text = output.stdout.replace("\n  ", " ");
    let shares = text.split("commits of others per commit").nth(1).unwrap_or_default();
    assert!(shares.lines().next().is_some_and(|line| line.ends_with(", b 0%)")), "{output}");
}

/// Events between two runs explain a difference as well as the planned change, however large it is.
#[test]
fn two_runs_of_a_server_prove_nothing() {
    let server = server_or_skip!(Postgres, "two_runs_of_a_server_prove_nothing");
    let scratch = Scratch::new();
    let folder = scratch.path();
    suite(folder, &[&server], "duration_s = 0.3\nrepeats = 6");
    // Slow without need for a CPU: each window has commits, however busy the machine is.
    server
        .sbtest(
            "CREATE FUNCTION rest() RETURNS trigger LANGUAGE plpgsql AS \
             'BEGIN PERFORM pg_sleep(0.01); RETURN NEW; END'",
        )
        .expect("the function is created");
    let [before, after] = ["before", "after"].map(|dir| {
        let output = dyno(folder, &["run", "s.toml", "--dir", dir]);
        assert_eq!(output.code, 0, "{output}");
        let sql = "CREATE OR REPLACE TRIGGER rest BEFORE UPDATE ON pgbench_accounts FOR EACH ROW \
                   EXECUTE FUNCTION rest()";
        server.sbtest(sql).expect("the trigger is created");
        only_run(&folder.join(dir)).expect("a run").display().to_string()
    });
    let gate = ["--gate", "tps.ratio.low > 0.97"];
    for more in [&[][..], &gate] {
        let output = dyno(folder, &[&["compare", &before, &after][..], more].concat());
        assert_eq!(output.code, 3, "{output}");
        assert!(output.stdout.contains("  undecided\n"), "{output}");
        assert!(output.stdout.contains("Not to be claimed: block-order"), "{output}");
    }
}

/// Runs a comparison, and stops dyno for a second in the window of its second trial.
fn run_frozen(folder: &Path, more: &[&str]) -> (ProcessOutput, RunData) {
    let mut running = RunningDyno::start(folder, &arguments(more));
    let runs = folder.join("runs");
    running.wait_until("the second window", |_| {
        only_run(&runs).is_some_and(|run| !commits(&run, 2).is_empty())
    });
    running.signal(Signal::STOP);
    sleep(Duration::from_secs(1));
    running.signal(Signal::CONT);
    (running.end(), data(folder))
}

#[test]
fn a_trial_in_which_dyno_was_stopped_is_made_again_in_comparisons() {
    let name = "a_trial_in_which_dyno_was_stopped_is_made_again_in_comparisons";
    let (a, b) = (server_or_skip!(Postgres, name), server_or_skip!(Postgres, name));
    let scratch = Scratch::new();
    let folder = scratch.path();
    suite(folder, &[&a, &b], "duration_s = 2\ninterval_s = 0.1\nretry_starved = 2");
    let (output, run) = run_frozen(folder, &["--pairs", "2"]);
    let second = &run.trials[1].summary;
    assert_eq!(second.status, TrialStatus::Starved, "{output}");
    assert!(output.stderr.contains("is repeated: The load generator stood still for"), "{output}");
    let complete: Vec<u32> = run
        .trials
        .iter()
        .filter(|trial| trial.summary.status == TrialStatus::Complete)
        .map(|trial| trial.summary.trial)
        .collect();
    assert_eq!(complete.len(), 4, "{output}");
    assert!(!complete.contains(&2));
}

#[test]
fn a_trial_in_which_dyno_was_stopped_takes_the_verdict_away_where_it_counts() {
    let name = "a_trial_in_which_dyno_was_stopped_takes_the_verdict_away_where_it_counts";
    let (a, b) = (server_or_skip!(Postgres, name), server_or_skip!(Postgres, name));
    let scratch = Scratch::new();
    let folder = scratch.path();
    suite(folder, &[&a, &b], "duration_s = 2\ninterval_s = 0.1");
    let (output, run) = run_frozen(folder, &["--pairs", "6", "--gate", "tps.ratio.low > 0.000001"]);
    assert_eq!(run.trials[1].summary.status, TrialStatus::Complete, "{output}");
    nothing_is_claimed(folder, &output, "generator-stopped");
    assert!(output.stdout.contains("dyno was stopped for"), "{output}");
    // Nor is a run anything alongside itself.
    let itself = dyno(
        folder,
        &["compare", "last", "last", "--dir", "runs", "--gate", "tps.ratio.low > 0.9"],
    );
    assert_eq!(itself.code, 2, "{itself}");
    assert!(itself.stderr.contains("These are the same run"), "{itself}");
}
