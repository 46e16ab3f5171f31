//! Comparisons, gates, denied checks, searches and reproductions, from the suite to the exit code.

use dyno_facts::{Purpose, RunStatus, TrialStatus};
use dyno_store::RunData;
use dyno_testkit::{MariaDb, ProcessOutput, RunningDyno, Scratch, dyno, only_run, server_or_skip};
use rustix::process::Signal;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// Writes `s.toml` with one experiment of point selects on two databases.
fn suite(folder: &Path, keys: &str) {
    let text = format!(
        "[suite]\nname = \"s\"\nretry_starved = 0\n[target.old]\nurl = \"sqlite:old.db\"\n[target.new]\n\
         url = \"sqlite:new.db\"\n[[experiment]]\nname = \"e\"\nworkload = \"sysbench\"\n\
         test = \"oltp_point_select\"\noptions = {{ tables = 1, table_size = 1000 }}\n{keys}\n"
    );
    fs::write(folder.join("s.toml"), text).expect("a suite can be written");
}

fn run(folder: &Path, dir: &str, more: &[&str]) -> ProcessOutput {
    dyno(folder, &[&["run", "s.toml", "--dir", dir][..], more].concat())
}

fn data(folder: &Path, dir: &str) -> RunData {
    let path = only_run(&folder.join(dir)).expect("there is a run");
    dyno_store::read(&path).expect("a run")
}

const PAIRS: &str = "workers = 1\nevents = 200\n\
                     compare = { baseline = \"old\", candidates = \"new\", pairs = 4 }";

#[test]
fn gates_decide_the_exit_code() {
    let scratch = Scratch::new();
    let folder = scratch.path();
    // Facts of the trials, whatever the machine does: nothing takes an hour, and no error comes.
    for (dir, gate, code, told) in [
        ("kept", "[\"errors < 1%\", \"max_ms < 3600000\"]", 0, ""),
        ("broken", "[\"errors < 1%\", \"max_ms > 3600000\"]", 5, "gates are proven broken"),
    ] {
        suite(folder, &format!("{PAIRS}\ngate = {gate}"));
        let output = run(folder, dir, &[]);
        assert_eq!(output.code, code, "{output}");
        assert!(output.stderr.contains(told), "{output}");
    }
    // Three pairs prove nothing, however narrow their interval is.
    let three = PAIRS.replace("pairs = 4", "pairs = 3");
    suite(folder, &format!("{three}\ngate = \"tps.ratio.low > 0.000001\""));
    let output = run(folder, "open", &[]);
    assert_eq!(output.code, 3, "{output}");
    assert!(output.stderr.contains("inconclusive"), "{output}");
    let run = data(folder, "broken");
    let facts = &run.header.experiments[0];
    let comparison = facts.comparison.as_ref().expect("a comparison");
    assert_eq!(
        (comparison.baseline.as_str(), comparison.data_state.as_str()),
        ("old", "untouched")
    );
    assert_eq!(facts.gates, ["errors < 1%", "max_ms > 3600000"]);
    let order: Vec<(u32, &str)> = run
        .trials
        .iter()
        .map(|trial| (trial.summary.repeat, trial.summary.target.as_str()))
        .collect();
    for (number, pair) in (1..).zip(order.chunks(2)) {
        assert_eq!((pair[0].0, pair[1].0), (number, number), "pairs follow each other: {order:?}");
        assert_ne!(pair[0].1, pair[1].1);
    }
}

#[test]
fn a_denied_check_ends_a_run_with_4_and_an_allowed_one_does_not() {
    let scratch = Scratch::new();
    let folder = scratch.path();
    suite(folder, "targets = \"old\"\nworkers = 1\nevents = 200");
    let undenied = run(folder, "first", &[]);
    assert_eq!(undenied.code, 0, "{undenied}");
    // Embedded SQLite runs on the load generator's own machine.
    let denied = run(folder, "second", &["--deny", "same-host"]);
    assert_eq!(denied.code, 4, "{denied}");
    assert!(denied.stderr.contains("Denied checks have found something: same-host."));
    assert_eq!(data(folder, "second").header.denied, ["same-host"]);
    let allowed = run(folder, "third", &["--allow", "same-host", "--long"]);
    assert_eq!(allowed.code, 0, "{allowed}");
    assert!(allowed.stdout.contains("Accepted: same-host"), "{allowed}");
    let unknown = run(folder, "fourth", &["--deny", "same-hots"]);
    assert_eq!(unknown.code, 2, "{unknown}");
    assert!(unknown.stderr.contains("There is no check `same-hots`."), "{unknown}");
    assert!(unknown.stderr.contains("hint: Did you mean `same-host`?"), "{unknown}");
    assert!(only_run(&folder.join("fourth")).is_none(), "nothing was begun");
}

#[test]
fn a_comparison_that_is_killed_goes_on_and_names_from_nowhere_are_targets() {
    let scratch = Scratch::new();
    let folder = scratch.path();
    suite(folder, "workers = [1, 2]\nduration_s = 0.5");
    let command = [
        "run",
        "s.toml",
        "--dir",
        "runs",
        "--compare",
        "red",
        "blue",
        "--target",
        "red=sqlite:red.db",
        "--target",
        "blue=sqlite:blue.db",
        "--pairs",
        "4..5",
        "--half-width",
        "50%",
    ];
    let mut running = RunningDyno::start(folder, &command);
    let has_fifth_trial = |folder: &Path| {
        only_run(&folder.join("runs")).is_some_and(|path| path.join("trials/5.json").exists())
    };
    running.wait_until("five trials", |_| has_fifth_trial(folder));
    running.signal(Signal::KILL);
    running.end();
    let output = dyno(folder, &command);
    output.assert_judged();
    assert!(output.stderr.contains("Resuming "), "{output}");
    let run = data(folder, "runs");
    assert_eq!(run.status(), RunStatus::Complete);
    let complete_trials = || {
        let trials = run.trials.iter().map(|trial| &trial.summary);
        // Both of a pair that was cut in two are repeated.
        let is_counted = |trial: &u32| !run.header.set_aside.contains(trial);
        trials
            .filter(move |trial| trial.status == TrialStatus::Complete && is_counted(&trial.trial))
    };
    let count_complete = |target: &str, workers: u32| {
        complete_trials().filter(|trial| trial.target == target && trial.workers == workers).count()
    };
    for workers in [1, 2] {
        assert_eq!(count_complete("red", workers), count_complete("blue", workers));
        assert!((4..=5).contains(&count_complete("red", workers)));
    }
    let steps = 2 * 2 * 5;
    let complete_count = complete_trials().count();
    assert_eq!(complete_count + run.header.skipped.len(), steps, "{:?}", run.header.skipped);
    assert!(
        run.header.skipped.values().all(|why| why.to_string().contains("reached after 4 pairs"))
    );
}

#[test]
fn a_run_can_be_reproduced_from_its_folder() {
    let scratch = Scratch::new();
    let folder = scratch.path();
    suite(folder, "targets = \"old\"\nworkers = [1, 2]\nevents = 100\nrepeats = 2\nconfirm = 1");
    assert_eq!(run(folder, "runs", &["--seed", "7"]).code, 0);
    let first = data(folder, "runs");
    let name = first.path.file_name().expect("a name").to_string_lossy().into_owned();
    let output =
        dyno(folder, &["reproduce", &name, "--dir", "runs", "--target", "old=sqlite:other.db"]);
    // Two pairs of trials leave the comparison undecided.
    assert_eq!(output.code, 3, "{output}");
    let runs: Vec<RunData> = fs::read_dir(folder.join("runs"))
        .expect("runs")
        .map(|entry| dyno_store::read(&entry.expect("an entry").path()).expect("a run"))
        .collect();
    let second = runs.iter().find(|run| run.header.reproduces.is_some()).expect("the second");
    assert_eq!(second.header.reproduces.as_deref(), Some(name.as_str()));
    assert!(second.header.targets[0].url.expose().contains("other.db"));
    let step_seeds = |run: &RunData| -> Vec<(String, u64)> {
        run.trials.iter().map(|trial| (trial.summary.step.clone(), trial.summary.seed)).collect()
    };
    assert_eq!(step_seeds(&first), step_seeds(second));
    let count_confirmed = |run: &RunData| {
        run.trials.iter().filter(|trial| trial.summary.purpose == Purpose::Confirm).count()
    };
    assert_eq!((count_confirmed(&first), count_confirmed(second)), (1, 1));
}

#[test]
fn commands_of_a_stored_plan_are_run_only_where_that_is_allowed() {
    let scratch = Scratch::new();
    let folder = scratch.path();
    suite(
        folder,
        "targets = \"old\"\nworkers = [1]\nevents = 10\nrepeats = 2\nrestore = \"touch restored\"",
    );
    assert_eq!(run(folder, "runs", &[]).code, 0);
    let restored = folder.join("restored");
    fs::remove_file(&restored).expect("the command was run by the suite");
    let reproduction = dyno(folder, &["reproduce", "last", "--dir", "runs"]);
    assert_eq!(reproduction.code, 2, "{reproduction}");
    for words in ["`touch restored`", "Nothing was executed", "--allow-commands"] {
        assert!(reproduction.stderr.contains(words), "no `{words}` in: {reproduction}");
    }
    assert!(!restored.exists());
    let allowed = dyno(folder, &["reproduce", "last", "--dir", "runs", "--allow-commands"]);
    assert!(restored.exists(), "{allowed}");
}

#[test]
fn bundled_suites_are_listed_with_what_they_need() {
    let scratch = Scratch::new();
    let output = dyno(scratch.path(), &["suites"]);
    assert_eq!(output.code, 0, "{output}");
    for name in ["quickstart", "polardb-2018", "polardb-mysql-scaleout", "polardb-x-tpcc"] {
        assert!(output.stdout.contains(&format!("{name}: ")), "{output}");
    }
    assert!(output.stdout.contains("640,000,000 rows"), "{output}");
    let output = dyno(scratch.path(), &["suites", "rds-mysql-5.6", "--toml"]);
    assert_eq!(output.stdout, include_str!("../../../suites/rds-mysql-5.6.toml"));
    let output = dyno(scratch.path(), &["suites", "polardb-mysql-oltp"]);
    assert!(output.stdout.contains("read-write-5-7"), "{output}");
}

#[test]
fn data_that_were_there_before_are_not_reloaded() {
    let scratch = Scratch::new();
    let folder = scratch.path();
    suite(folder, "targets = \"old\"\nworkers = 1\nevents = 50\ncleanup = false");
    assert_eq!(run(folder, "first", &[]).code, 0);
    suite(folder, "targets = \"old\"\nworkers = 1\nevents = 50\nrestore = \"reload\"");
    let output = run(folder, "second", &[]);
    assert_eq!(output.code, 1, "{output}");
    assert!(output.stderr.contains("sbtest1 was there before this run"), "{output}");
    let restored = "restore = \"echo $DYNO_TARGET >> restored.txt\"";
    suite(folder, &format!("targets = \"old\"\nworkers = 1\nevents = 50\nrepeats = 3\n{restored}"));
    let output = run(folder, "third", &[]);
    assert_eq!(output.code, 0, "{output}");
    assert_eq!(fs::read_to_string(folder.join("restored.txt")).expect("run"), "old\nold\nold\n");
}

/// The verdicts of a comparison of a server with itself, by the paper.
fn calls_of_aa(folder: &Path, dir: &str, url: &str) -> Vec<String> {
    let target = format!("main={url}");
    let options = ["--compare", "main", "main", "--target", &target, "--pairs", "6"];
    run(folder, dir, &options).assert_judged();
    let run = data(folder, dir);
    assert!(
        run.header.experiments[0].comparison.as_ref().is_some_and(|comparison| comparison.is_aa)
    );
    assert_eq!(run.trials.len(), 12);
    assert!(run.trials.iter().all(|trial| trial.summary.status == TrialStatus::Complete));
    assert_eq!(run.header.tables.keys().collect::<Vec<_>>(), ["main"], "the data were loaded once");
    let paper = fs::read_to_string(run.path.join("paper.json")).expect("a paper");
    let paper: serde_json::Value = serde_json::from_str(&paper).expect("JSON");
    let verdicts = paper["verdicts"].as_array().expect("verdicts");
    assert_eq!(verdicts.len(), 1);
    assert_eq!(verdicts[0]["is_aa"], true);
    let rows = verdicts[0]["rows"].as_array().expect("rows");
    rows.iter().map(|row| row["call"].as_str().expect("a verdict").to_owned()).collect()
}

#[test]
fn a_server_does_not_differ_from_itself() {
    let server = server_or_skip!(MariaDb, "a_server_does_not_differ_from_itself");
    let scratch = Scratch::new();
    let folder = scratch.path();
    suite(folder, "workers = 2\nwarmup_s = 0.5\nduration_s = 1");
    let differs = |dir: &str| {
        let calls = calls_of_aa(folder, dir, &server.url());
        assert!(!calls.is_empty());
        calls.iter().any(|call| call == "faster" || call == "slower")
    };
    // At 95% one comparison in twenty finds a difference where there is none; two in a row would
    // be one in four hundred.
    assert!(!differs("first") || !differs("second"), "the server differs from itself twice");
}

/// With the seed of the first side, the second one would give each row the value that it has.
#[test]
fn no_trial_writes_what_another_has_written() {
    let scratch = Scratch::new();
    let folder = scratch.path();
    suite(folder, "targets = \"old\"\nworkers = 1\nevents = 50\ncleanup = false");
    let text = fs::read_to_string(folder.join("s.toml")).expect("a suite");
    let text = text.replace("oltp_point_select", "oltp_update_non_index");
    fs::write(folder.join("s.toml"), text).expect("a suite");
    // The second run finds what the first one has left.
    let seeds = ["first", "second"].map(|dir| {
        let output = run(folder, dir, &["--compare", "old", "old", "--pairs", "2"]);
        assert_eq!(output.code, 3, "{output}");
        let run = data(folder, dir);
        run.trials.iter().map(|trial| trial.summary.seed).collect::<Vec<u64>>()
    });
    let distinct_seeds: BTreeSet<u64> = seeds.iter().flatten().copied().collect();
    assert_eq!(distinct_seeds.len(), 8, "{seeds:?}");
}
