//! Trials whose load generator was starved, by a dyno that is stopped in its tracks.

use dyno_facts::{RunStatus, TrialStatus};
use dyno_store::RunData;
use dyno_testkit::{ProcessOutput, RunningDyno, Scratch, dyno, only_run};
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
    assert_eq!(again.code, 1, "{again}");
    assert!(again.stderr.contains("The same run is being executed, in runs/"), "{again}");
    assert!(again.stderr.contains("`--new` begins another run"), "{again}");
}

/// Runs the suite, and stops dyno for two seconds in the window of its first trial.
fn run_frozen(folder: &Path) -> (ProcessOutput, RunData) {
    let mut running = RunningDyno::start(folder, &["run", "s.toml", "--dir", "runs"]);
    let count_lines = |folder: &Path| {
        let run = only_run(&folder.join("runs"))?;
        Some(fs::read_to_string(run.join("trials/1.csv")).ok()?.lines().count())
    };
    running.wait_until("an interval", |_| count_lines(folder).is_some_and(|lines| lines > 1));
    running.signal(Signal::STOP);
    the_same_suite_is_not_begun_a_second_time(folder);
    sleep(Duration::from_secs(2));
    running.signal(Signal::CONT);
    let output = running.end();
    let path = only_run(&folder.join("runs")).expect("there is a run");
    (output, dyno_store::read(&path).expect("a run"))
}

#[test]
fn a_trial_in_which_dyno_stood_still_is_made_again() {
    let scratch = Scratch::new();
    let folder = scratch.path();
    suite(folder, "retry_starved = 2");
    let (output, run) = run_frozen(folder);
    assert_eq!((output.code, run.status()), (0, RunStatus::Complete), "{output}");
    let first = &run.trials[0].summary;
    assert_eq!(first.status, TrialStatus::Starved);
    let reason = first.conditions.generator.starved.as_ref().expect("a reason").to_string();
    assert!(reason.contains("The load generator stood still for"), "{reason}");
    assert!(output.stderr.contains("starved, is repeated: The load generator stood"), "{output}");
    // The machine may starve others too: each step has one trial that counts.
    let complete = run.trials.iter().filter(|trial| trial.summary.status == TrialStatus::Complete);
    let repeats: Vec<u32> = complete.map(|trial| trial.summary.repeat).collect();
    assert_eq!(repeats, [1, 2], "{output}");
    assert!(run.trials.len() >= 3);
    let path = run.path.to_string_lossy().into_owned();
    let summary = dyno(folder, &["show", &path]);
    assert!(summary.stdout.contains("starved, repeated"), "{summary}");
}

#[test]
fn without_a_retry_it_counts_with_a_caveat() {
    let scratch = Scratch::new();
    let folder = scratch.path();
    suite(folder, "");
    let (output, run) = run_frozen(folder);
    assert_eq!(output.code, 0, "{output}");
    assert_eq!((run.trials.len(), &run.trials[0].summary.status), (2, &TrialStatus::Complete));
    assert!(output.stdout.contains("generator-starved"), "{output}");
}
