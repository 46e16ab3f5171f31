//! Trials whose load generator was starved, by a dyno that is stopped in its tracks.

use dyno_facts::{RunStatus, TrialStatus};
use dyno_store::RunData;
use dyno_testkit::{Ran, RunningDyno, Scratch, dyno, only_run};
use rustix::process::Signal;
use std::fs;
use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

fn suite(folder: &Path, retries: &str) {
    let text = format!(
        "[suite]\nname = \"s\"\n{retries}\n[target.main]\nurl = \"sqlite:main.db\"\n[[experiment]]\nname = \"e\"\n\
         workload = \"sysbench\"\ntest = \"oltp_point_select\"\noptions = {{ tables = 1, table_size = 1000 }}\n\
         workers = 1\nduration_s = 4\ninterval_s = 0.5\nrepeats = 2\n"
    );
    fs::write(folder.join("s.toml"), text).expect("a suite can be written");
}

fn the_same_suite_is_not_begun_a_second_time(folder: &Path) {
    let again = dyno(folder, &["run", "s.toml", "--dir", "runs"]);
    assert_eq!(again.code, 1, "{}", again.all());
    assert!(again.stderr.contains("The same run is being executed, in runs/"), "{}", again.all());
    assert!(again.stderr.contains("`--new` begins another run"), "{}", again.all());
}

/// Runs the suite, and stops dyno for two seconds in the window of its first trial.
fn frozen(folder: &Path) -> (Ran, RunData) {
    let mut running = RunningDyno::start(folder, &["run", "s.toml", "--dir", "runs"]);
    let series = |folder: &Path| {
        let run = only_run(&folder.join("runs"))?;
        Some(fs::read_to_string(run.join("trials/1.csv")).ok()?.lines().count())
    };
    running.wait_until("an interval", |_| series(folder).is_some_and(|lines| lines > 1));
    running.signal(Signal::STOP);
    the_same_suite_is_not_begun_a_second_time(folder);
    sleep(Duration::from_secs(2));
    running.signal(Signal::CONT);
    let ran = running.end();
    let path = only_run(&folder.join("runs")).expect("there is a run");
    (ran, dyno_store::read(&path).expect("a run"))
}

#[test]
fn a_trial_in_which_dyno_stood_still_is_made_again() {
    let scratch = Scratch::new();
    let folder = scratch.path();
    suite(folder, "retry_starved = 2");
    let (ran, run) = frozen(folder);
    assert_eq!((ran.code, run.status()), (0, RunStatus::Complete), "{}", ran.all());
    let first = &run.trials[0].summary;
    assert_eq!(first.status, TrialStatus::Starved);
    let why = first.conditions.generator.starved.as_ref().expect("a reason").to_string();
    assert!(why.contains("The load generator stood still for"), "{why}");
    assert!(
        ran.stderr.contains("starved, is made again: The load generator stood"),
        "{}",
        ran.all()
    );
    // The machine may starve others too: each step has one trial that counts.
    let counted = run.trials.iter().filter(|trial| trial.summary.status == TrialStatus::Complete);
    let repeats: Vec<u32> = counted.map(|trial| trial.summary.repeat).collect();
    assert_eq!(repeats, [1, 2], "{}", ran.all());
    assert!(run.trials.len() >= 3);
    let path = run.path.to_string_lossy().into_owned();
    let shown = dyno(folder, &["show", &path]);
    assert!(shown.stdout.contains("starved, repeated"), "{}", shown.all());
}

#[test]
fn without_a_retry_it_counts_with_a_caveat() {
    let scratch = Scratch::new();
    let folder = scratch.path();
    suite(folder, "");
    let (ran, run) = frozen(folder);
    assert_eq!(ran.code, 0, "{}", ran.all());
    assert_eq!((run.trials.len(), &run.trials[0].summary.status), (2, &TrialStatus::Complete));
    assert!(ran.stdout.contains("generator-starved"), "{}", ran.all());
}
