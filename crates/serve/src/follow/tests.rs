//! Following of runs that are really written.

use super::*;
use dyno_engine::record::{Frame, MeasuredInterval, Phase};
use dyno_facts::{
    Event, EventKind, HostSample, PlanStep, PlannedTrial, RunHeader, RunPlan, RunStatus,
    StepAction, TrialIdentity, TrialStart, TrialStatus,
};
use dyno_store::{Run, TrialWriter};
use serde_json::Value;
use std::io::Write;

/// A step of the plan: a trial of reads.
fn step(repeat: u32) -> PlanStep {
    let trial = PlannedTrial { number: repeat, workers: 8, repeat, ..PlannedTrial::default() };
    PlanStep {
        id: format!("reads/main/workers=8/repeat={repeat}"),
        experiment: "reads".to_owned(),
        target: "main".to_owned(),
        estimated_s: 60.0,
        action: StepAction::Trial(trial),
    }
}

/// A run of two steps.
fn begin(runs: &Path, suite: &str) -> Run {
    let header = RunHeader {
        plan: Some(RunPlan { steps: vec![step(1), step(2)], ..RunPlan::default() }),
        ..RunHeader::new(suite, Vec::new(), 1)
    };
    Run::create(runs, header, false).expect("a run")
}

/// The trial of [`step`].
fn start(repeat: u32) -> TrialStart {
    let identity = TrialIdentity {
        step: format!("reads/main/workers=8/repeat={repeat}"),
        experiment: "reads".to_owned(),
        target: "main".to_owned(),
        test: "oltp_read_only".to_owned(),
        workers: 8,
        repeat,
        ..TrialIdentity::default()
    };
    TrialStart { identity, kinds: vec!["oltp_read_only".to_owned()], ..TrialStart::default() }
}

/// Stores an interval with ten commits of 1 ms each.
fn interval(writer: &mut TrialWriter, index: u32) {
    let mut frame = Frame::new(1, false);
    frame.kinds[0].counts.started = 10;
    frame.kinds[0].counts.committed = 10;
    (0..10).for_each(|_| frame.kinds[0].latency.record(1_000_000));
    let host = HostSample::default();
    let begins_s = f64::from(index);
    let interval =
        MeasuredInterval { phase: Phase::Measured, index, begins_s, length_s: 1.0, frame, host };
    writer.interval(&interval).expect("written");
}

/// The names of the events of these updates.
fn names(updates: &[Update]) -> Vec<&'static str> {
    updates.iter().map(Update::name).collect()
}

/// The state of a page that has taken these updates: the run's status, trials by status, rows.
fn page_state(updates: &[Update]) -> (String, Vec<String>, usize) {
    let (mut run, mut trials, mut rows) = (String::new(), Vec::<(u64, String)>::new(), 0);
    for update in updates {
        let json: Value = serde_json::from_str(&update.json()).expect("JSON");
        match update {
            Update::State(_) => {
                run = status(&json["run"]);
                trials.clear();
                for trial in json["trials"].as_array().expect("trials") {
                    trials.push((trial["number"].as_u64().unwrap_or(0), status(trial)));
                }
                rows = json["rows"].as_array().expect("rows").len();
            }
            Update::Run(_) => run = status(&json),
            Update::Trial(_) | Update::Show(_) => {
                let number = json["number"].as_u64().unwrap_or(0);
                trials.retain(|(other, _)| *other != number);
                trials.push((number, status(&json)));
                if matches!(update, Update::Show(_)) {
                    rows = 0;
                }
            }
            Update::Rows(new) => rows += new.len(),
            _ => {}
        }
    }
    trials.sort();
    (run, trials.into_iter().map(|(_, status)| status).collect(), rows)
}

/// The status of a run or a trial; empty if there is none.
fn status(json: &Value) -> String {
    json["status"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn whoever_comes_late_knows_the_same_as_who_was_there_from_the_begin() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut early = Follower::new(folder.path(), None);
    let mut updates = early.poll();
    assert_eq!(page_state(&updates), (String::new(), vec![], 0));
    let mut run = begin(folder.path(), "s");
    updates.extend(early.poll());
    let mut writer = run.begin_trial(start(1)).expect("a trial");
    interval(&mut writer, 0);
    updates.extend(early.poll());
    interval(&mut writer, 1);
    interval(&mut writer, 2);
    updates.extend(early.poll());
    let so_far = ("running".to_owned(), vec!["running".to_owned()], 3);
    assert_eq!(page_state(&updates), so_far, "{:?}", names(&updates));
    assert_eq!(page_state(&Follower::new(folder.path(), None).poll()), so_far);
    assert!(early.poll().is_empty(), "nothing is sent twice");

    interval(&mut writer, 3);
    let summary = writer.start().clone().summary(TrialStatus::Complete);
    run.end_trial(writer, summary).expect("stored");
    updates.extend(early.poll());
    let one_ended = ("running".to_owned(), vec!["complete".to_owned()], 4);
    assert_eq!(
        page_state(&updates),
        one_ended,
        "the last rows come with the end: {:?}",
        names(&updates)
    );
    let mut writer = run.begin_trial(start(2)).expect("a trial");
    interval(&mut writer, 0);
    let summary = writer.start().clone().summary(TrialStatus::Failed("why".into()));
    // A whole trial between two looks.
    run.end_trial(writer, summary).expect("stored");
    run.event(Event::new(EventKind::Note, "a note")).expect("stored");
    run.finish(RunStatus::Failed("One trial failed.".into())).expect("stored");
    updates.extend(early.poll());
    let ended = ("failed".to_owned(), vec!["complete".to_owned(), "failed".to_owned()], 1);
    assert_eq!(page_state(&updates), ended, "{:?}", names(&updates));
    assert_eq!(page_state(&Follower::new(folder.path(), None).poll()), ended);
}

#[test]
fn the_end_of_a_run_is_survived_and_the_next_one_shown() {
    let folder = tempfile::tempdir().expect("a folder");
    let first = begin(folder.path(), "a");
    let mut follower = Follower::new(folder.path(), None);
    let name = first.path().file_name().expect("a name").to_string_lossy().into_owned();
    let mut pinned = Follower::new(folder.path(), Some(name));
    assert_eq!((names(&follower.poll()), names(&pinned.poll())), (vec!["state"], vec!["state"]));
    first.finish(RunStatus::Complete).expect("stored");
    assert_eq!(page_state(&follower.poll()).0, "complete");
    let progress = &follower.run.as_ref().expect("a run").progress;
    assert_eq!((progress.done, progress.total), (2, 2), "who is complete has done all");
    let mut second = begin(folder.path(), "b");
    second.begin_trial(start(1)).expect("a trial");
    let updates = follower.poll();
    assert_eq!((names(&updates), page_state(&updates).0.as_str()), (vec!["state"], "running"));
    assert_eq!(follower.run.as_ref().map(|run| run.path.as_path()), Some(second.path()));
    assert!(!names(&pinned.poll()).contains(&"state"), "who wants one run keeps it");
}

#[test]
fn a_killed_run_is_told_to_be_interrupted() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut run = begin(folder.path(), "s");
    let mut writer = run.begin_trial(start(1)).expect("a trial");
    interval(&mut writer, 0);
    let mut follower = Follower::new(folder.path(), None);
    let mut updates = follower.poll();
    assert_eq!(page_state(&updates).0, "running");
    // What a kill leaves: no summary, no end in run.json, and the lock is gone.
    drop((writer, run));
    updates.extend(follower.poll());
    let cut_off = ("interrupted".to_owned(), vec!["interrupted".to_owned()], 1);
    assert_eq!(page_state(&updates), cut_off);
    assert_eq!(page_state(&Follower::new(folder.path(), None).poll()), cut_off);
    let mut trials = updates.iter().filter(|update| matches!(update, Update::Trial(_)));
    let trial = trials.next_back().map(|trial| serde_json::from_str::<Value>(&trial.json()));
    let tps = trial.and_then(|trial| trial.ok()?["tps"].as_f64());
    assert_eq!(tps, Some(10.0), "what its intervals add up to");
    let remaining = follower.run.as_ref().map(|run| run.progress.remaining_s);
    assert_eq!(remaining, Some(None), "nothing is left to wait for");
}

#[test]
fn progress_and_events_are_told_when_they_change() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut run = begin(folder.path(), "s");
    let mut follower = Follower::new(folder.path(), None);
    follower.poll();
    assert_eq!((followed_progress(&follower).done, followed_progress(&follower).total), (0, 2));
    let skipped = "reads/main/workers=8/repeat=2".to_owned();
    run.update(|header| {
        header.skipped.insert(skipped, "The half-width was reached.".into());
    })
    .expect("stored");
    run.event(Event::new(EventKind::Note, "a note")).expect("stored");
    let updates = follower.poll();
    assert!(names(&updates).contains(&"progress") && names(&updates).contains(&"happened"));
    assert_eq!(followed_progress(&follower).skipped, 1);
    let left_s = followed_progress(&follower).remaining_s.expect("it runs");
    assert!((0.0..=60.0).contains(&left_s), "one trial is left: {left_s}");
}

/// The progress of the run that is followed.
fn followed_progress(follower: &Follower) -> Progress {
    follower.run.as_ref().expect("a run").progress.clone()
}

#[test]
fn names_of_runs_are_single_names() {
    let folder = tempfile::tempdir().expect("a folder");
    let runs = folder.path().join("runs");
    fs::create_dir_all(runs.join("one")).expect("made");
    for path in [runs.join("one/run.json"), runs.join("run.json"), folder.path().join("run.json")] {
        fs::write(path, "{}").expect("written");
    }
    assert!(run_folder(&runs, "one").is_some());
    for bad in ["", ".", "..", "../runs/one", "one/", "/etc", "one/../one", "two"] {
        assert_eq!(run_folder(&runs, bad), None, "{bad}");
    }
}

#[test]
fn what_is_old_is_told_once_and_what_is_new_until_it_has_settled() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("x");
    let mut changes = Changes::default();
    assert!(!changes.since_last(&path), "the file doesn't exist");
    let file = fs::File::create(&path).expect("made");
    assert!(changes.since_last(&path) && changes.since_last(&path));
    let long_ago = SystemTime::now() - Duration::from_secs(60);
    file.set_modified(long_ago).expect("set");
    assert!(changes.since_last(&path));
    assert!(!changes.since_last(&path));
}

#[test]
fn lines_come_once_and_whole() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("x.csv");
    let (mut lines, mut table) = (Tail::new(path.clone()), Tail::new(path.clone()));
    assert_eq!((lines.lines(), table.table()), (String::new(), None));
    let mut file = File::create(&path).expect("made");
    file.write_all(b"a,b\n1,2\n3,").expect("written");
    assert_eq!(lines.lines(), "a,b\n1,2\n");
    assert_eq!(table.table().as_deref(), Some("a,b\n1,2\n"));
    assert_eq!((lines.lines(), table.table()), (String::new(), None));
    file.write_all(b"4\n").expect("written");
    assert_eq!(lines.lines(), "3,4\n");
    assert_eq!(table.table().as_deref(), Some("a,b\n3,4\n"));
}
