//! Breakdowns in the middle: servers that die, a dyno that is killed or
//! stopped, a disk that is full. Nothing that was measured may be lost, and all of it must add up.

use crate::tiny_disk::TinyDisk;
use dyno_testkit::{
    MariaDb, Postgres, RunningDyno, Scratch, commits, dyno, only_run, server_or_skip, skipped,
    wait_until,
};
use rustix::process::Signal;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

/// Writes a suite with one experiment.
fn suite(folder: &Path, url: &str, load: &str) {
    let text = format!(
        "[suite]\nname = \"faults\"\n\n[target.main]\nurl = \"{url}\"\n\n[[experiment]]\n\
         name = \"read-write\"\nworkload = \"sysbench\"\ntest = \"oltp_read_write\"\n\
         options = {{ tables = 2, table_size = 1000 }}\ninterval_s = 0.5\n{load}\n"
    );
    fs::write(folder.join("faults.toml"), text).expect("the suite can be written");
}

fn json(path: &Path) -> Value {
    let text = fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_slice(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn count(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value} is no count"))
}

/// The summary of a trial, whose accounting identity holds.
fn trial(run: &Path, number: u32) -> Value {
    let trial = json(&run.join(format!("trials/{number}.json")));
    adds_up(&trial);
    trial
}

fn adds_up(trial: &Value) {
    let counts = &trial["counts"];
    let ended: u64 = ["committed", "rolled_back", "failed", "skipped"]
        .map(|name| count(&counts[name]))
        .iter()
        .sum();
    assert_eq!(count(&counts["started"]), ended + count(&trial["in_flight"]), "{trial:#}");
}

/// Errors of a class in a trial.
fn errors(trial: &Value, class: &str) -> u64 {
    let errors = trial["errors"].as_array().expect("a list");
    errors.iter().filter(|error| error["class"] == class).map(|error| count(&error["count"])).sum()
}

fn events(run: &Path) -> Vec<Value> {
    let text = fs::read_to_string(run.join("events.jsonl")).expect("there are events");
    text.lines().map(|line| serde_json::from_str(line).expect("whole lines of JSON")).collect()
}

fn runs(folder: &Path) -> PathBuf {
    folder.join("dyno-runs")
}

/// Waits until the run has measured commits in two intervals of a trial.
fn wait_for_commits(running: &mut RunningDyno, folder: &Path, trial: u32) -> PathBuf {
    running.wait_until("commits", |_| {
        let run = only_run(&runs(folder));
        run.is_some_and(|run| commits(&run, trial).iter().filter(|&&count| count > 0).count() >= 2)
    });
    only_run(&runs(folder)).expect("there is a run")
}

/// The load survives a server that dies and comes back; a trial that no one had planned a fault for fails.
fn survives_the_death_of_a_server(
    url: &str,
    kill: impl FnOnce(),
    mut restart: impl FnMut() -> Result<(), String>,
) {
    let scratch = Scratch::new();
    let folder = scratch.path();
    suite(folder, url, "workers = [8]\nduration_s = 25");
    let mut running = RunningDyno::start(folder, &["run", "faults.toml"]);
    let run = wait_for_commits(&mut running, folder, 1);
    let measured = commits(&run, 1).len();
    kill();
    running
        .wait_until("an interval without commits", |_| commits(&run, 1)[measured..].contains(&0));
    // Children of the dead server may hold its files for a moment.
    wait_until("the server to come back", || restart().is_ok());
    let output = running.end();
    assert_ne!(output.code, 0, "{}\n{}", output.stdout, output.stderr);
    let trial = trial(&run, 1);
    let status = trial["status"].to_string();
    assert!(status.contains("runner.node_died_in_trial"), "{status}");
    assert_eq!(count(&trial["counts"]["reconnects"]), 8, "{trial:#}");
    assert!(errors(&trial, "connection_lost") >= 8, "{trial:#}");
    // A transaction that had just lost a deadlock is tried again on the new session: it doesn't fail.
    assert!((1..=8).contains(&count(&trial["counts"]["failed"])), "{trial:#}");
    let commits = commits(&run, 1);
    let gap = commits.iter().position(|&count| count == 0).expect("there is a gap");
    assert!(commits[gap..].iter().any(|&count| count > 0), "it goes on: {commits:?}");
    assert_eq!(commits.iter().sum::<u64>(), count(&trial["counts"]["committed"]));
    let events = events(&run);
    let count_events = |kind: &str| events.iter().filter(|event| event["kind"] == kind).count();
    assert!(count_events("error") > 0 && count_events("reconnect") > 0, "{events:?}");
    let gaps = events.iter().filter(|event| event["text"]["en"] == "No transaction was committed.");
    assert_eq!(gaps.count(), commits.iter().filter(|&&count| count == 0).count());
    for paper in ["paper.md", "paper.html"] {
        // Markdown escapes underlines.
        let text = fs::read_to_string(run.join(paper)).expect("the paper was written");
        let text = text.replace("\\_", "_");
        for words in ["s without a commit", "reconnects", "connection_lost"] {
            assert!(text.contains(words), "{paper} has no `{words}`");
        }
    }
    assert_eq!(dyno(folder, &["show"]).code, 0);
}

#[test]
fn a_run_survives_the_death_of_mariadb() {
    let server = server_or_skip!(MariaDb, "a_run_survives_the_death_of_mariadb");
    // It tells its age in whole seconds: one that is born again within two of them looks the same.
    wait_until("the server to be some seconds old", || {
        let uptime = server.sql("SELECT VARIABLE_VALUE FROM information_schema.GLOBAL_STATUS WHERE VARIABLE_NAME = 'UPTIME'");
        uptime.is_ok_and(|seconds| seconds.trim().parse::<u64>().is_ok_and(|seconds| seconds >= 6))
    });
    let url = server.url();
    let server = std::cell::RefCell::new(server);
    let kill = || server.borrow_mut().kill();
    survives_the_death_of_a_server(&url, kill, || server.borrow_mut().restart());
}

#[test]
fn a_run_survives_the_death_of_postgres() {
    let server = server_or_skip!(Postgres, "a_run_survives_the_death_of_postgres");
    let url = server.url();
    let server = std::cell::RefCell::new(server);
    let kill = || server.borrow_mut().kill();
    survives_the_death_of_a_server(&url, kill, || server.borrow_mut().restart());
}

/// A suite of two trials on SQLite, and the arguments to run it.
fn two_trials(folder: &Path, duration_s: u32) -> [&'static str; 2] {
    let url = format!("sqlite:{}", folder.join("data.db").display());
    suite(folder, &url, &format!("workers = [1, 2]\nduration_s = {duration_s}"));
    ["run", "faults.toml"]
}

/// Repeats the command, which finishes the run and repeats nothing that was complete.
fn goes_on(folder: &Path, arguments: &[&str], run: &Path) {
    let first = fs::read(run.join("trials/1.json")).expect("the first trial is complete");
    let output = dyno(folder, arguments);
    assert_eq!(output.code, 0, "{}\n{}", output.stdout, output.stderr);
    assert!(output.stderr.contains("Resuming "), "{}", output.stderr);
    assert_eq!(only_run(&runs(folder)).as_deref(), Some(run));
    assert_eq!(json(&run.join("run.json"))["status"], "complete");
    assert_eq!(fs::read(run.join("trials/1.json")).expect("still there"), first);
    assert_eq!(trial(run, 2)["status"], "interrupted");
    let (second, third) = (trial(run, 2), trial(run, 3));
    assert_eq!((&third["status"], &third["step"]), (&Value::from("complete"), &second["step"]));
    assert!(!run.join("trials/4.csv").exists(), "only what was missing is measured");
    // A complete run is not gone on with.
    assert_eq!(fs::read_dir(runs(folder)).expect("a folder").count(), 1);
}

#[test]
fn a_killed_run_is_printed_and_gone_on_with() {
    let scratch = Scratch::new();
    let folder = scratch.path();
    let arguments = two_trials(folder, 3);
    let mut running = RunningDyno::start(folder, &arguments);
    let run = wait_for_commits(&mut running, folder, 2);
    running.signal(Signal::KILL);
    assert_eq!(running.end().code, -1);

    assert!(!run.join("trials/2.json").exists());
    let output = dyno(folder, &["paper", "last", "--out", "paper"]);
    assert_eq!(output.code, 0, "{}", output.stderr);
    let csv = fs::read_to_string(folder.join("paper/paper.csv")).expect("the trials");
    let mut lines = csv.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let names = lines.next().expect("names of columns");
    let cut = lines.find(|line| line[0] == "2").expect("the cut trial is in the paper");
    let get_cell =
        |name: &str| cut[names.iter().position(|known| *known == name).expect("a column")];
    assert_eq!((get_cell("status"), get_cell("adds_up")), ("interrupted", "true"));
    assert_ne!(get_cell("counts.committed"), "0");
    let output = dyno(folder, &["show"]);
    assert_eq!(output.code, 0, "{}", output.stderr);
    assert!(output.stdout.contains("interrupted"), "{}", output.stdout);
    let listed = dyno(folder, &["ls"]);
    assert!(listed.stdout.contains("interrupted"), "{}", listed.stdout);

    goes_on(folder, &arguments, &run);
    let second = trial(&run, 2);
    assert!(count(&second["counts"]["committed"]) > 0, "{second:#}");
    assert_eq!(count(&second["counts"]["committed"]), commits(&run, 2).iter().sum::<u64>());
}

#[test]
fn ctrl_c_keeps_what_was_measured() {
    let scratch = Scratch::new();
    let folder = scratch.path();
    let arguments = two_trials(folder, 4);
    let mut running = RunningDyno::start(folder, &arguments);
    let run = wait_for_commits(&mut running, folder, 2);
    running.signal(Signal::INT);
    let output = running.end();
    assert_eq!(output.code, 130, "{}\n{}", output.stdout, output.stderr);
    assert_eq!(error_lines(&output.stderr), 1, "{}", output.stderr);
    assert!(output.stderr.contains("hint: The same command goes on with it."), "{}", output.stderr);
    assert!(output.stdout.contains("was cut off"), "{}", output.stdout);
    assert_eq!(json(&run.join("run.json"))["status"], "interrupted");
    let second = trial(&run, 2);
    assert_eq!(second["status"], "interrupted");
    assert!(count(&second["counts"]["committed"]) > 0, "{second:#}");
    assert!(run.join("paper.md").is_file());
    goes_on(folder, &arguments, &run);
}

#[test]
fn a_run_that_a_server_ended_early_is_gone_on_with() {
    let test = "a_run_that_a_server_ended_early_is_gone_on_with";
    let server = match MariaDb::start_with(&["--max-connections=12"]) {
        Ok(server) => server,
        Err(why) => return skipped(test, &why),
    };
    let scratch = Scratch::new();
    let folder = scratch.path();
    suite(folder, &server.url(), "workers = [2, 16]\nduration_s = 2");
    let arguments = ["run", "faults.toml"];
    let output = dyno(folder, &arguments);
    assert_eq!(output.code, 1, "{}\n{}", output.stdout, output.stderr);
    assert_eq!(error_lines(&output.stderr), 1, "{}", output.stderr);
    let words = "refused the log-in: Too many connections";
    assert!(output.stderr.contains(words), "{}", output.stderr);
    let run = only_run(&runs(folder)).expect("there is a run");
    assert_eq!(trial(&run, 1)["status"], "complete");
    server.sql("SET GLOBAL max_connections = 200").expect("the limit can be raised");
    goes_on(folder, &arguments, &run);
}

fn error_lines(text: &str) -> usize {
    text.lines().filter(|line| line.starts_with("error:")).count()
}

#[test]
fn a_full_disk_is_one_error_and_nothing_written_is_lost() {
    let scratch = Scratch::new();
    let folder = scratch.path();
    let tiny = match TinyDisk::mount(runs(folder), "2m") {
        Ok(tiny) => tiny,
        Err(why) => return skipped("a_full_disk_is_one_error_and_nothing_written_is_lost", &why),
    };
    let arguments = two_trials(folder, 6);
    let mut running = RunningDyno::start(folder, &arguments);
    // The run is the only folder; the file that fills the disk lies inside it.
    let run = wait_for_commits(&mut running, folder, 2);
    let filler = run.join("filler");
    // Whatever dyno frees between is taken again.
    let fill = || {
        use std::io::Write;
        let file = fs::File::options().create(true).append(true).open(&filler);
        let mut file = file.expect("the filler can be opened");
        while file.write_all(&[0; 512]).is_ok() {}
    };
    running.wait_until("the complaint", |running| {
        fill();
        running.stderr().contains("No space left")
            || running.stderr().contains("can't be written any more")
    });
    let before = commits(&run, 2);
    let output = running.end();
    assert_eq!(output.code, 1, "{}\n{}", output.stdout, output.stderr);
    assert_eq!(error_lines(&output.stderr), 1, "{}", output.stderr);
    assert!(output.stderr.contains("No space left on device"), "{}", output.stderr);
    assert!(output.stderr.contains("hint: Free some space there"), "{}", output.stderr);
    assert!(!output.stderr.contains("panicked"), "{}", output.stderr);
    assert!(commits(&run, 2).starts_with(&before), "whole lines stay");
    fill();
    let paper = dyno(folder, &["paper", "last"]);
    assert_eq!((paper.code, error_lines(&paper.stderr)), (1, 1), "{}", paper.stderr);
    assert!(paper.stderr.contains("No space left on device"), "{}", paper.stderr);
    assert!(paper.stderr.contains("hint: "), "{}", paper.stderr);
    for part in ["paper.html", "paper.html.tmp"] {
        assert!(!run.join(part).exists(), "no part of a paper stays");
    }
    fs::remove_file(&filler).expect("removed");
    let _ = dyno(folder, &["paper", "last"]).good();
    assert!(run.join("paper.html").exists());
    let summary = dyno(folder, &["show"]);
    assert_eq!(summary.code, 0, "{}", summary.stderr);
    assert!(!summary.stderr.contains("damaged"), "{}", summary.stderr);
    // As the hint says.
    goes_on(folder, &arguments, &run);
    drop(tiny);
}
