//! Trials that are cut into stages: they continue where a dyno was killed, add up exactly, and say where their seams
//! are.

use dyno_facts::{RunStatus, TrialStatus};
use dyno_store::{RunData, TrialData};
use dyno_testkit::{ProcessOutput, RunningDyno, Scratch, dyno, only_run};
use rustix::process::Signal;
use std::fs;
use std::path::Path;

fn suite(folder: &Path, for_experiment: &str) {
    let text = format!(
        "[suite]\nname = \"s\"\n[target.main]\nurl = \"sqlite:main.db\"\n[[experiment]]\nname = \"e\"\n\
         workload = \"sysbench\"\ntest = \"oltp_point_select\"\noptions = {{ tables = 1, table_size = 1000 }}\n\
         workers = 1\nwarmup_s = 0.2\ninterval_s = 0.2\n{for_experiment}\n"
    );
    fs::write(folder.join("s.toml"), text).expect("a suite can be written");
}

fn run(folder: &Path) -> (ProcessOutput, RunData) {
    let output = dyno(folder, &["run", "s.toml", "--dir", "runs"]);
    let path = only_run(&folder.join("runs")).expect("there is a run");
    (output, dyno_store::read(&path).expect("a run"))
}

fn stages(run: &RunData) -> Vec<&TrialData> {
    run.trials.iter().filter(|trial| trial.summary.status == TrialStatus::Stage).collect()
}

/// Every figure of the trial is the sum of its stages, by their summaries and by their files.
fn adds_up(run: &RunData, sum: &TrialData) {
    let stages = stages(run);
    let sum_of =
        |value: fn(&TrialData) -> u64| stages.iter().map(|stage| value(stage)).sum::<u64>();
    let counts = &sum.summary.counts;
    assert_eq!(counts.committed, sum_of(|stage| stage.summary.counts.committed));
    assert_eq!(counts.started, sum_of(|stage| stage.summary.counts.started));
    assert_eq!(sum.summary.in_flight, sum_of(|stage| stage.summary.in_flight));
    assert_eq!(sum.summary.statements.reads, sum_of(|stage| stage.summary.statements.reads));
    assert_eq!(sum.summary.latency.count, sum_of(|stage| stage.summary.latency.count));
    let window_s: f64 = stages.iter().map(|stage| stage.summary.window_s).sum();
    assert!((sum.summary.window_s - window_s).abs() < 1e-6, "{} {window_s}", sum.summary.window_s);
    let count_in_histograms = |trial: &TrialData| -> u64 {
        let kinds = trial.histograms().expect("histograms");
        kinds.values().map(|latencies| latencies.count()).sum()
    };
    assert_eq!(count_in_histograms(sum), counts.committed);
    let count_measured = |trial: &TrialData| -> u64 {
        let rows = trial.series.iter().filter(|row| row.phase == "measured");
        rows.map(|row| row.committed).sum()
    };
    assert_eq!(count_measured(sum), counts.committed);
    let begins: Vec<f64> = sum.series.iter().map(|row| row.begins_s).collect();
    assert!(begins.is_sorted(), "windows stand one after the other: {begins:?}");
    let largest = stages.iter().map(|stage| stage.summary.latency.max_us).fold(0.0, f64::max);
    assert_eq!(sum.summary.latency.max_us, largest);
}

#[test]
fn a_long_trial_goes_on_with_the_stage_in_which_dyno_was_killed() {
    let scratch = Scratch::new();
    let folder = scratch.path();
    suite(folder, "duration_s = 4\nstage_s = 1");
    let mut running = RunningDyno::start(folder, &["run", "s.toml", "--dir", "runs"]);
    let second_intervals = |folder: &Path| {
        let run = only_run(&folder.join("runs"))?;
        Some(fs::read_to_string(run.join("trials/2.csv")).ok()?.matches("measured").count())
    };
    running.wait_until("the second stage", |_| {
        second_intervals(folder).is_some_and(|lines| lines > 1)
    });
    running.signal(Signal::KILL);
    running.end();

    let (output, run) = run(folder);
    assert_eq!((output.code, run.status()), (0, RunStatus::Complete), "{output}");
    assert!(run.warnings.is_empty(), "{:?}", run.warnings);
    let continues = "e on main: continues with stage 2 of 4";
    assert!(output.stderr.contains(continues), "{output}");
    let status: Vec<&TrialStatus> = run.trials.iter().map(|trial| &trial.summary.status).collect();
    use TrialStatus::{Complete, Interrupted, Stage};
    assert_eq!(status, [&Stage, &Interrupted, &Stage, &Stage, &Stage, &Complete]);
    let numbers: Vec<_> =
        run.trials.iter().map(|trial| trial.summary.stage.map(|stage| stage.number)).collect();
    assert_eq!(numbers, [Some(1), Some(2), Some(2), Some(3), Some(4), None]);
    let sum = &run.trials[5];
    adds_up(&run, sum);
    let seams: Vec<u32> = sum.summary.stages.iter().map(|stage| stage.trial).collect();
    assert_eq!(seams, [1, 3, 4, 5]);
    assert_eq!(sum.summary.stages[0].gap_s, None);
    assert!(sum.summary.stages[1..].iter().all(|stage| stage.gap_s.is_some()));

    // The stage that was cut off is shown alongside those that count, and is in no figure.
    let path = run.path.to_string_lossy().into_owned();
    let summary = dyno(folder, &["show", &path]).good().stdout;
    for words in ["Stages of trials", "2 of 4", "interrupted", "counts within its trial"] {
        assert!(summary.contains(words), "no `{words}` in:\n{summary}");
    }
    assert!(!summary.contains("trial was cut off"), "{summary}");
    let paper = fs::read_to_string(run.path.join("paper.md")).expect("a paper");
    assert!(paper.contains("measured in 4 stages whose windows add up"), "{paper}");

    // It is complete: the same command begins another run.
    let again = dyno(folder, &["run", "s.toml", "--dir", "runs", "--plan"]);
    assert!(!again.to_string().contains("continues with stage"), "{again}");
}

#[test]
fn a_stage_whose_file_was_changed_is_not_added_up() {
    let scratch = Scratch::new();
    let folder = scratch.path();
    suite(folder, "duration_s = 3\nstage_s = 1");
    let mut running = RunningDyno::start(folder, &["run", "s.toml", "--dir", "runs"]);
    let has_first_stage = |folder: &Path| {
        only_run(&folder.join("runs")).is_some_and(|run| run.join("trials/1.json").exists())
    };
    running.wait_until("the first stage", |_| has_first_stage(folder));
    running.signal(Signal::INT);
    assert_eq!(running.end().code, 130);
    let file = only_run(&folder.join("runs")).expect("a run").join("trials/1.stage.json");
    let text = fs::read_to_string(&file).expect("what it has measured");
    fs::write(&file, text.replacen("\"committed\":", "\"committed\":1", 1)).expect("written");
    let (output, _) = run(folder);
    assert_eq!(output.code, 1, "{output}");
    assert!(output.stderr.contains("trials/1.stage.json is not what was written"), "{output}");
}

#[test]
fn short_trials_are_measured_in_one_piece() {
    let scratch = Scratch::new();
    let folder = scratch.path();
    suite(folder, "duration_s = 1\nstage_s = 2");
    let (output, run) = run(folder);
    assert_eq!(output.code, 0, "{output}");
    assert_eq!(run.trials.len(), 1);
    assert!(run.trials[0].summary.stages.is_empty() && run.trials[0].summary.stage.is_none());
    suite(folder, "events = 100\nstage_s = 2");
    let by_count = dyno(folder, &["run", "s.toml", "--dir", "runs"]);
    assert_eq!(by_count.code, 2, "{by_count}");
    let message = "A trial that ends after a count of transactions can't be cut into stages.";
    assert!(by_count.stderr.contains(message), "{by_count}");
}
