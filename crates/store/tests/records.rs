//! Intervals, stages and attempts that a run keeps, and its notes on trials that were set aside or cut off.

use dyno_core::{DbError, ErrorClass};
use dyno_engine::record::{Frame, MeasuredInterval, Phase};
use dyno_facts::{
    Event, EventKind, HostSample, NodeConditions, NodeFacts, NodeRow, RunHeader, RunStatus,
    SCHEMA_VERSION, ServerFacts, StageFacts, StageOf, TrialIdentity, TrialStart, TrialStatus,
    TrialSummary,
};
use dyno_store::{Moment, Run, now_utc, read};
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::chown;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};
use time::{OffsetDateTime, format_description::well_known::Rfc3339};

/// A run without trials.
fn created(dir: &Path) -> Run {
    Run::create(dir, RunHeader::new("a suite/1", Vec::new(), 1), false).expect("created")
}

/// A trial of this step, or a stage of one.
fn start(step: &str, stage: Option<StageOf>) -> TrialStart {
    let identity = TrialIdentity { step: step.to_owned(), stage, ..TrialIdentity::default() };
    TrialStart { identity, kinds: vec!["reads".to_owned()], ..TrialStart::default() }
}

/// An interval whose commits took 1 ms each.
fn interval(begins_s: f64, length_s: f64, committed: u64) -> MeasuredInterval {
    let mut frame = Frame::new(1, false);
    frame.kinds[0].counts.started = committed;
    frame.kinds[0].counts.committed = committed;
    (0..committed).for_each(|_| frame.kinds[0].latency.record(1_000_000));
    let phase = if begins_s < 0.0 { Phase::WarmUp } else { Phase::Measured };
    let host = HostSample::default();
    MeasuredInterval { phase, index: 0, begins_s, length_s, frame, host }
}

/// The events of a trial of these intervals.
fn events(intervals: &[MeasuredInterval]) -> Vec<Event> {
    let dir = tempfile::tempdir().expect("a folder");
    let mut run = created(dir.path());
    let mut trial = run.begin_trial(start("a", None)).expect("begun");
    intervals.iter().for_each(|interval| trial.interval(interval).expect("stored"));
    drop(trial);
    read(run.path()).expect("read").events
}

#[test]
fn errors_and_reconnects_of_an_interval_are_events() {
    let mut broken = interval(3.0, 1.0, 5);
    let deadlock = DbError::server(ErrorClass::Deadlock, 1213, *b"40001", "Deadlock found");
    (0..3).for_each(|_| broken.frame.errors.count(&deadlock));
    broken.frame.kinds[0].counts.reconnects = 2;
    let stored = events(&[interval(2.0, 1.0, 5), broken]);
    let [error, reconnect] = stored.as_slice() else { panic!("{stored:?}") };
    let expected = Event {
        at: error.at.clone(),
        trial: Some(1),
        at_s: Some(3.0),
        class: "deadlock".to_owned(),
        errno: 1213,
        sqlstate: "40001".to_owned(),
        count: 3,
        ..Event::new(EventKind::Error, "Deadlock found")
    };
    assert_eq!(*error, expected);
    assert!(!error.at.is_empty());
    assert_eq!((reconnect.kind, reconnect.count), (EventKind::Reconnect, 2));
    assert_eq!((reconnect.trial, reconnect.at_s), (Some(1), Some(3.0)));
}

#[test]
fn gaps_are_intervals_that_chance_does_not_leave_empty() {
    const NONE: [f64; 0] = [];
    assert_eq!(gap_times(0.0, &[(1.0, 7), (1.0, 0)]), [1.0]);
    assert_eq!(gap_times(0.0, &[(1.0, 6), (1.0, 0)]), NONE);
    // By its length.
    assert_eq!(gap_times(0.0, &[(2.0, 8), (2.0, 0)]), [2.0]);
    assert_eq!(gap_times(0.0, &[(2.0, 6), (2.0, 0)]), NONE);
    // Much shorter ones prove nothing.
    assert_eq!(gap_times(0.0, &[(1.0, 14), (0.5, 0)]), [1.0]);
    assert_eq!(gap_times(0.0, &[(1.0, 40), (0.4, 0)]), NONE);
    // By all intervals before that were not gaps.
    assert_eq!(gap_times(0.0, &[(1.0, 10), (1.0, 6), (1.0, 0)]), [2.0]);
    assert_eq!(gap_times(0.0, &[(1.0, 13), (0.4, 0), (0.6, 0)]), NONE);
    assert_eq!(gap_times(0.0, &[(1.0, 8), (1.0, 0), (1.0, 0)]), [1.0, 2.0]);
    // Nothing was committed yet; gaps of the warm-up don't count.
    assert_eq!(gap_times(0.0, &[(1.0, 0), (1.0, 0)]), [0.0, 1.0]);
    assert_eq!(gap_times(-1.0, &[(1.0, 0), (1.0, 0)]), [0.0]);
}

/// The times at which gaps begin in intervals with these lengths in seconds and commits.
fn gap_times(from_s: f64, lengths: &[(f64, u64)]) -> Vec<f64> {
    let mut begins_s = from_s;
    let intervals = lengths.iter().map(|&(length_s, committed)| {
        let next = interval(begins_s, length_s, committed);
        begins_s += length_s;
        next
    });
    let stored = events(&intervals.collect::<Vec<_>>());
    let gaps = stored.iter().filter(|event| event.kind == EventKind::Server);
    gaps.map(|event| event.at_s.expect("a time")).collect()
}

#[test]
fn a_trial_of_stages_has_their_lines_one_after_the_other() {
    let dir = tempfile::tempdir().expect("a folder");
    let mut run = created(dir.path());
    for number in 1..=2 {
        let stage = Some(StageOf { number, of: 2 });
        let mut trial = run.begin_trial(start("a", stage)).expect("begun");
        for begins_s in [-1.0, 0.0, 1.0, 2.0] {
            trial.interval(&interval(begins_s, 1.0, 10 * u64::from(number))).expect("stored");
        }
        let mut nodes = trial.node_series().expect("made");
        for at_s in [-0.5, 0.5, 1.5] {
            let row = NodeRow { at_s, node: "main".to_owned(), ..NodeRow::default() };
            nodes.append(&row).expect("stored");
        }
        trial.server(Moment::Before, &node_facts(&format!("before {number}"))).expect("stored");
        trial.server(Moment::After, &node_facts(&format!("after {number}"))).expect("stored");
        trial.stage(&(number, 0.25)).expect("stored");
        let summary = TrialSummary {
            window_s: 2.0,
            ..start("a", stage).identity.summary(TrialStatus::Stage)
        };
        run.end_trial(trial, summary).expect("stored");
    }
    let stages: Vec<TrialSummary> = run.data().stages("a").into_iter().cloned().collect();
    assert_eq!(stages.iter().map(|stage| stage.trial).collect::<Vec<_>>(), [1, 2]);
    assert_eq!(run.stage::<(u32, f64)>(&stages[1]).expect("stored"), (2, 0.25));
    fs::write(run.path().join("trials/1.stage.json"), "[1,0.5]").expect("written");
    assert!(run.stage::<(u32, f64)>(&stages[0]).is_err(), "it is not what was written");
    let stages = [(1, 0.0, None), (2, 2.0, Some(5.0))];
    let joined = TrialSummary {
        window_s: 4.0,
        stages: stages.map(|(trial, from_s, gap_s)| StageFacts { trial, from_s, gap_s }).to_vec(),
        ..start("a", None).identity.summary(TrialStatus::Complete)
    };
    run.store_joined(joined).expect("stored");
    assert_eq!(run.last_trial(), 3);
    let path = run.finish(RunStatus::Complete).expect("stored");
    let data = read(&path).expect("read");
    let trial = &data.trials[2];
    let series: Vec<(f64, u64)> =
        trial.series.iter().map(|row| (row.begins_s, row.committed)).collect();
    let first = [(-1.0, 10), (0.0, 10), (1.0, 10), (2.0, 10)];
    assert_eq!(series, [&first[..], &[(2.0, 20), (3.0, 20)]].concat());
    let nodes: Vec<f64> = trial.nodes.iter().map(|row| row.at_s).collect();
    assert_eq!(nodes, [-0.5, 0.5, 1.5, 2.5, 3.5]);
    assert_eq!((&trial.before, &trial.after), (&node_facts("before 1"), &node_facts("after 2")));
    assert_eq!(trial.histograms().expect("read")["reads"].count(), 90);
    assert_eq!((data.complete().count(), data.is_complete("a")), (1, true));
}

/// A node with this product.
fn node_facts(product: &str) -> NodeFacts {
    let facts = ServerFacts { product: product.to_owned(), ..ServerFacts::default() };
    NodeFacts::from([("main".to_owned(), facts)])
}

#[test]
fn what_was_set_aside_counts_for_nothing() {
    let dir = tempfile::tempdir().expect("a folder");
    let mut run = created(dir.path());
    let steps = [
        ("a", TrialStatus::Complete),
        ("a", TrialStatus::Complete),
        ("b", TrialStatus::Starved),
        ("b", TrialStatus::Interrupted),
        ("b", TrialStatus::Starved),
        ("c", TrialStatus::Starved),
        ("c", TrialStatus::Failed("no".into())),
    ];
    for (step, status) in steps {
        let trial = run.begin_trial(start(step, None)).expect("begun");
        run.end_trial(trial, start(step, None).identity.summary(status)).expect("stored");
    }
    let data = run.data();
    assert_eq!(data.complete_trial("a").map(|trial| trial.trial), Some(2));
    assert_eq!(starved_trials(&run, "b"), [3, 5]);
    assert!(starved_trials(&run, "c").is_empty(), "a later attempt counts");
    assert!(run.data().starved("b", Some(StageOf { number: 1, of: 2 })).is_empty());
    assert_eq!(data.repeated().map(|trial| trial.trial).collect::<Vec<_>>(), [3, 5, 6]);
    run.set_aside(&BTreeSet::from(["a".to_owned(), "b".to_owned()])).expect("stored");
    assert_eq!(run.data().complete_trial("a").map(|trial| trial.trial), Some(1));
    assert!(starved_trials(&run, "b").is_empty());
    assert_eq!(run.data().repeated().count(), 3);
    let header = read(run.path()).expect("read").header;
    assert_eq!(header.set_aside.into_iter().collect::<BTreeSet<u32>>(), [2, 3, 5].into());
}

/// The numbers of the starved attempts at a step.
fn starved_trials(run: &Run, step: &str) -> Vec<u32> {
    run.data().starved(step, None).iter().map(|trial| trial.trial).collect()
}

#[test]
fn folders_have_separate_names() {
    let dir = tempfile::tempdir().expect("a folder");
    let header = RunHeader {
        started_at: "2026-11-21T21:10:30Z".to_owned(),
        ..RunHeader::new("a suite/1.2_x", Vec::new(), 1)
    };
    let runs: Vec<Run> =
        (0..3).map(|_| Run::create(dir.path(), header.clone(), false).expect("created")).collect();
    let names = runs.iter().filter_map(|run| run.path().file_name());
    let names: Vec<String> = names.map(|name| name.display().to_string()).collect();
    let first = "2026-11-21T211030Z-a-suite-1.2_x";
    assert_eq!(names, [first.to_owned(), format!("{first}-2"), format!("{first}-3")]);
    assert_eq!(runs[0].header().started_at, "2026-11-21T21:10:30Z");
    for run in runs {
        let path = run.path().to_owned();
        run.discard().expect("removed");
        assert!(!path.exists());
    }
}

#[test]
fn a_trial_that_was_cut_off_before_its_window_has_done_nothing() {
    let dir = tempfile::tempdir().expect("a folder");
    let mut run = created(dir.path());
    let mut trial = run.begin_trial(start("a", None)).expect("begun");
    trial.interval(&interval(-1.0, 1.0, 10)).expect("stored");
    drop(trial);
    let summary = &read(run.path()).expect("read").trials[0].summary;
    assert_eq!((summary.window_s, summary.tps, summary.qps), (0.0, 0.0, 0.0));
    assert_eq!((summary.counts.committed, summary.latency.count), (0, 0));
    assert_eq!(summary.notes.len(), 1, "{:?}", summary.notes);
}

#[test]
fn histograms_that_miss_transactions_are_noted() {
    let dir = tempfile::tempdir().expect("a folder");
    let mut run = created(dir.path());
    let path = run.path().to_owned();
    let mut trial = run.begin_trial(start("a", None)).expect("begun");
    trial.interval(&interval(0.0, 1.0, 10)).expect("stored");
    drop(trial);
    assert_eq!(count_notes(&path), 1);
    let log = path.join("trials/1.hlog");
    let text = fs::read_to_string(&log).expect("read");
    for damaged in [format!("{text}nonsense\n"), String::new()] {
        fs::write(&log, damaged).expect("written");
        assert_eq!(count_notes(&path), 2);
    }
}

/// The number of notes of the first trial.
fn count_notes(path: &Path) -> usize {
    read(path).expect("read").trials[0].summary.notes.len()
}

#[test]
fn a_folder_of_an_unknown_user_is_trusted() {
    let unknown = fs::read_to_string("/proc/sys/kernel/overflowuid").expect("a number");
    let unknown: u32 = unknown.trim().parse().expect("a number");
    let dir = tempfile::tempdir().expect("a folder");
    if !rustix::process::geteuid().is_root() {
        // No one else can give a folder away.
        return;
    }
    chown(dir.path(), Some(unknown), None).expect("given away");
    drop(created(dir.path()));
}

#[test]
fn what_servers_said_is_missed_where_nodes_were_asked() {
    let dir = tempfile::tempdir().expect("a folder");
    let mut run = created(dir.path());
    let mut trial = run.begin_trial(start("a", None)).expect("begun");
    trial.server(Moment::After, &NodeFacts::new()).expect("stored");
    let mut summary = start("a", None).identity.summary(TrialStatus::Complete);
    summary.conditions.nodes.insert("main".to_owned(), NodeConditions::default());
    run.end_trial(trial, summary).expect("stored");
    let path = run.finish(RunStatus::Complete).expect("stored");
    let warnings = read(&path).expect("read").warnings;
    let warnings: Vec<String> = warnings.iter().map(|text| text.to_string()).collect();
    assert!(warnings.len() == 1 && warnings[0].contains("server/1-before.json"), "{warnings:?}");
}

#[test]
fn a_folder_without_trials_is_read_and_one_that_can_not_be_read_is_an_error() {
    let dir = tempfile::tempdir().expect("a folder");
    let mut run = created(dir.path());
    let path = run.path().to_owned();
    drop(run.begin_trial(start("a", None)).expect("begun"));
    drop(run);
    // Something that is there and is not a file: its intervals are not none.
    fs::remove_file(path.join("trials/1.csv")).expect("removed");
    fs::create_dir(path.join("trials/1.csv")).expect("made");
    let error = read(&path).expect_err("a folder isn't a file");
    assert!(error.to_string().contains("trials/1.csv"), "{error}");
    fs::remove_dir_all(path.join("trials")).expect("removed");
    assert_eq!(read(&path).expect("read").trials.len(), 0);
}

#[test]
fn a_log_of_latencies_says_of_what_it_is_and_in_which_unit() {
    let dir = tempfile::tempdir().expect("a folder");
    let mut run = created(dir.path());
    drop(run.begin_trial(start("a", None)).expect("begun"));
    let log = fs::read_to_string(run.path().join("trials/1.hlog")).expect("read");
    assert!(log.starts_with("#Latencies of trial 1 in nanoseconds"), "{log}");
    // Readers of HdrHistogram logs look for this line.
    let columns =
        "\"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\"Interval_Compressed_Histogram\"";
    assert!(log.contains(columns), "{log}");
}

#[test]
fn a_summary_has_the_version_of_what_wrote_it() {
    let dir = tempfile::tempdir().expect("a folder");
    let mut run = created(dir.path());
    let trial = run.begin_trial(start("a", None)).expect("begun");
    let summary = start("a", None).identity.summary(TrialStatus::Complete);
    run.end_trial(trial, TrialSummary { schema_version: SCHEMA_VERSION + 1, ..summary })
        .expect("stored");
    let path = run.finish(RunStatus::Complete).expect("stored");
    assert_eq!(read(&path).expect("read").trials[0].summary.schema_version, SCHEMA_VERSION);
}

#[test]
fn times_are_those_of_the_clock_in_whole_seconds() {
    let (before, text, after) = (clock_s(), now_utc(), clock_s());
    let time = OffsetDateTime::parse(&text, &Rfc3339).expect("a time");
    assert!((before..=after).contains(&time.unix_timestamp()), "{text}");
    assert_eq!((time.nanosecond(), text.len()), (0, "2026-11-21T21:10:30Z".len()));
}

/// Seconds since 1970 by the clock.
fn clock_s() -> i64 {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970");
    i64::try_from(since_epoch.as_secs()).expect("a time")
}
