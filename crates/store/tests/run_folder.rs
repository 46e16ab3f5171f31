//! A run folder is whole at any moment: round trips, kills, resumes, other versions, full disks.

use dyno_core::{DbError, ErrorClass, Tally};
use dyno_engine::record::{Frame, MeasuredInterval, Phase};
use dyno_facts::{
    Event, EventKind, HostSample, Message, NodeFacts, NodeRow, RunHeader, RunStatus,
    SCHEMA_VERSION, ServerFacts, TrialIdentity, TrialStart, TrialStatus, TrialSummary,
};
use dyno_store::{Moment, Run, list, read};
use proptest::prelude::*;
use proptest::sample::Index;
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{PermissionsExt, chown, lchown, symlink};
use std::path::{Path, PathBuf};

/// The header of a run that has just begun.
fn header() -> RunHeader {
    let command = vec!["dyno".to_owned(), "run".to_owned(), "quickstart".to_owned()];
    RunHeader::new("quickstart", command, 42)
}

/// A trial of reads on 8 workers.
fn start(step: &str) -> TrialStart {
    let identity = TrialIdentity {
        step: step.to_owned(),
        experiment: "reads".to_owned(),
        target: "main".to_owned(),
        test: "oltp_read_only".to_owned(),
        workers: 8,
        repeat: 1,
        seed: 42,
        ..TrialIdentity::default()
    };
    TrialStart {
        identity,
        loops: 2,
        kinds: vec!["oltp_read_only".to_owned()],
        ..TrialStart::default()
    }
}

/// An interval of a second with this many commits, a failure and a deadlock.
fn interval(phase: Phase, index: u32, begins_s: f64, committed: u64) -> MeasuredInterval {
    let mut frame = Frame::new(1, false);
    let kind = &mut frame.kinds[0];
    kind.counts.started = committed + 2;
    kind.counts.committed = committed;
    kind.counts.failed = 1;
    kind.counts.reconnects = u64::from(index == 1);
    kind.work = Tally { reads: 14 * committed, ..Tally::default() };
    kind.wasted = Tally { writes: 1, ..Tally::default() };
    for number in 0..committed {
        kind.latency.record(1_000_000 + number * 1_000);
    }
    frame.errors.count(&DbError::server(ErrorClass::Deadlock, 1213, *b"40001", "Deadlock found"));
    frame.cpu_ns = 5_000_000;
    let host = HostSample { cpu_share: 0.5, ..HostSample::default() };
    MeasuredInterval { phase, index, begins_s, length_s: 1.0, frame, host }
}

/// The summary of a complete trial of these intervals.
fn summary(trial: u32, step: &str, intervals: &[MeasuredInterval]) -> TrialSummary {
    let mut total = Frame::new(1, false);
    intervals.iter().for_each(|interval| total.add(&interval.frame));
    let mut summary = TrialSummary {
        trial,
        started_at: "2026-11-21T21:10:30Z".to_owned(),
        connect_s: 0.1,
        ..start(step).summary(TrialStatus::Complete)
    };
    summary.warmup_s = 1.0;
    let names = ["oltp_read_only".to_owned()];
    dyno_engine::record::set_totals(
        &mut summary,
        &total,
        &names,
        intervals.len() as u64 * 1_000_000_000,
    );
    summary
}

/// Three intervals of the measured window.
fn measured() -> Vec<MeasuredInterval> {
    vec![
        interval(Phase::Measured, 0, 0.0, 100),
        interval(Phase::Measured, 1, 1.0, 50),
        interval(Phase::Measured, 2, 2.0, 75),
    ]
}

/// A run with one trial that wrote a warm-up interval and three measured ones.
fn run_with_trial(dir: &Path, ends: bool) -> std::path::PathBuf {
    let mut run = Run::create(dir, header(), false).expect("created");
    let path = run.path().to_owned();
    let mut trial = run.begin_trial(start("reads/main/8/1")).expect("begun");
    assert_eq!(trial.start().trial, 1);
    trial.interval(&interval(Phase::WarmUp, 0, -1.0, 10)).expect("stored");
    measured().iter().for_each(|interval| trial.interval(interval).expect("stored"));
    if ends {
        run.end_trial(trial, summary(7, "reads/main/8/1", &measured())).expect("stored");
    }
    path
}

/// A folder and everything within it.
fn all_within(folder: &Path) -> Vec<PathBuf> {
    let mut paths = vec![folder.to_owned()];
    let entries = fs::read_dir(folder).expect("a folder");
    for path in entries.map(|entry| entry.expect("an entry").path()) {
        if path.is_dir() { paths.extend(all_within(&path)) } else { paths.push(path) }
    }
    paths.sort();
    paths
}

/// Permissions of everything within `path`, each once: of folders, and of files.
fn permissions(path: &Path) -> [BTreeSet<u32>; 2] {
    let mut modes = [BTreeSet::new(), BTreeSet::new()];
    for path in all_within(path) {
        let metadata = fs::metadata(&path).expect("there");
        modes[usize::from(metadata.is_file())].insert(metadata.permissions().mode() & 0o777);
    }
    modes
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// A byte of any file may be wrong, too much or the last.
    #[test]
    fn damaged_folders_are_read_or_refused(
        file in any::<Index>(),
        at in any::<Index>(),
        damage in 0..3_u8,
        byte in any::<u8>(),
    ) {
        let dir = tempfile::tempdir().expect("a folder");
        let run = run_with_trial(dir.path(), true);
        let files: Vec<_> = all_within(&run).into_iter().filter(|path| path.is_file()).collect();
        let damaged = file.get(&files);
        let mut bytes = fs::read(damaged).expect("it is there");
        let at = at.index(bytes.len() + 1);
        match damage {
            0 => bytes.truncate(at),
            1 => bytes.insert(at, byte),
            _ => bytes.iter_mut().skip(at).take(1).for_each(|other| *other = byte),
        }
        fs::write(damaged, bytes).expect("written");
        let _ = (read(&run), list(dir.path()));
        let _ = Run::open(&run);
    }
}

#[test]
fn a_run_folder_is_for_its_owner_unless_it_is_shared() {
    let usual = tempfile::tempdir().expect("a folder");
    let usual = usual.path().join("usual");
    fs::create_dir(&usual).expect("made");
    fs::write(usual.join("file"), "").expect("written");
    let owner = [BTreeSet::from([0o700]), BTreeSet::from([0o600])];
    for (is_shared, wanted) in [(false, owner), (true, permissions(&usual))] {
        let dir = tempfile::tempdir().expect("a folder");
        let mut run = Run::create(dir.path(), header(), is_shared).expect("created");
        let mut trial = run.begin_trial(start("a")).expect("begun");
        measured().iter().for_each(|interval| trial.interval(interval).expect("stored"));
        trial.plan("q01.json", "{}").expect("stored");
        trial.executed("streams", &1).expect("stored");
        run.end_trial(trial, summary(7, "a", &measured())).expect("stored");
        assert_eq!(permissions(run.path()), wanted, "{is_shared}");
    }
}

#[test]
fn a_complete_run_round_trips() {
    let dir = tempfile::tempdir().expect("a folder");
    let mut run = Run::create(dir.path(), header(), false).expect("created");
    let mut trial = run.begin_trial(start("a")).expect("begun");
    let facts = ServerFacts { product: "MariaDB".to_owned(), ..ServerFacts::default() };
    let nodes = NodeFacts::from([("primary".to_owned(), facts)]);
    trial.server(Moment::Before, &nodes).expect("stored");
    measured().iter().for_each(|interval| trial.interval(interval).expect("stored"));
    let row = NodeRow { at_s: 1.0, node: "main".to_owned(), ..NodeRow::default() };
    let mut series = trial.node_series().expect("made");
    series.append(&row).expect("stored");
    trial.event(Event::new(EventKind::Note, "line\nend \u{1F600}")).expect("stored");
    run.end_trial(trial, summary(9, "a", &measured())).expect("stored");
    assert!(run.data().is_complete("a") && !run.data().is_complete("b"));
    run.update(|header| header.title = "Title".to_owned()).expect("stored");
    assert!(list(dir.path()).expect("listed")[0].is_growing);
    let path = run.finish(RunStatus::Complete).expect("stored");

    let data = read(&path).expect("read");
    assert_eq!(data.warnings, Vec::<Message>::new());
    assert_eq!((data.status(), data.header.title.as_str()), (RunStatus::Complete, "Title"));
    assert_eq!((data.header.seed, data.header.schema_version), (42, SCHEMA_VERSION));
    let trial = &data.trials[0];
    let ends: Vec<&str> = trial.summary.files.keys().map(String::as_str).collect();
    assert_eq!(ends, ["csv", "hlog", "nodes.csv"]);
    assert_eq!(trial.summary.measures, trial.summary.figures());
    let unsealed = TrialSummary {
        files: Default::default(),
        measures: Default::default(),
        ..trial.summary.clone()
    };
    assert_eq!(unsealed, summary(1, "a", &measured()));
    assert!(!trial.is_partial);
    assert_eq!((trial.series.len(), trial.series[1].committed), (3, 50));
    assert_eq!((trial.before.clone(), trial.after.len()), (nodes, 0));
    assert_eq!(trial.nodes, [row]);
    let histograms = trial.histograms().expect("read");
    assert_eq!(histograms["oltp_read_only"].count(), 225);
    let note = data.events.iter().find(|event| event.kind == EventKind::Note).expect("the note");
    assert_eq!((&note.text, note.trial), (&"line\nend \u{1F600}".into(), Some(1)));

    let entries = list(dir.path()).expect("listed");
    assert_eq!((entries.len(), entries[0].trials_ended, entries[0].is_growing), (1, 1, false));
    assert_eq!(entries[0].status(), Some(RunStatus::Complete));
}

#[test]
fn files_that_are_missing_are_named() {
    let dir = tempfile::tempdir().expect("a folder");
    let mut run = Run::create(dir.path(), header(), false).expect("created");
    for step in ["a", "b"] {
        let mut trial = run.begin_trial(start(step)).expect("begun");
        measured().iter().for_each(|interval| trial.interval(interval).expect("stored"));
        run.end_trial(trial, summary(9, step, &measured())).expect("stored");
    }
    let path = run.finish(RunStatus::Complete).expect("stored");
    assert_eq!(warnings(&path), Vec::<String>::new());
    fs::remove_file(path.join("trials/2.hlog")).expect("removed");
    assert_eq!(warnings(&path), ["trials/2.hlog is missing."]);
    fs::remove_file(path.join("trials/1.json")).expect("removed");
    fs::remove_file(path.join("events.jsonl")).expect("removed");
    let missing = ["events.jsonl", "trials/1.json", "trials/2.hlog"];
    assert_eq!(warnings(&path), missing.map(|file| format!("{file} is missing.")));
}

/// Warnings of a reader.
fn warnings(path: &Path) -> Vec<String> {
    read(path).expect("read").warnings.iter().map(Message::to_string).collect()
}

#[test]
fn a_summary_seals_the_files_of_its_trial() {
    let dir = tempfile::tempdir().expect("a folder");
    let path = run_with_trial(dir.path(), true);
    assert_eq!(warnings(&path), Vec::<String>::new());
    let file = path.join("trials/1.csv");
    let text = fs::read_to_string(&file).expect("read");
    // A digit that somebody improved, and a line that a power loss took.
    let last = text[..text.len() - 1].rfind('\n').expect("lines") + 1;
    for other in [text.replacen("100", "900", 1), text[..last].to_owned()] {
        assert_ne!(other, text);
        fs::write(&file, other).expect("written");
        let expected =
            ["trials/1.csv is not as it was when its trial ended: its length or SHA-256 differs."];
        assert_eq!(warnings(&path), expected);
    }
    fs::write(&file, text).expect("written");
    assert_eq!(warnings(&path), Vec::<String>::new());
}

#[test]
fn who_can_not_claim_a_run_repairs_nothing_in_it() {
    let dir = tempfile::tempdir().expect("a folder");
    let run = Run::create(dir.path(), header(), false).expect("created");
    // The writer is in the middle of a line.
    let file = run.path().join("events.jsonl");
    fs::write(&file, "{\"kind\":\"no").expect("written");
    Run::open(run.path()).expect_err("claimed");
    assert_eq!(fs::read_to_string(&file).expect("read"), "{\"kind\":\"no");
}

#[test]
fn a_killed_trial_is_summarized_from_what_it_wrote() {
    let dir = tempfile::tempdir().expect("a folder");
    let path = run_with_trial(dir.path(), false);
    let data = read(&path).expect("read");
    assert_eq!(data.status(), RunStatus::Interrupted);
    let trial = &data.trials[0];
    let partial = &trial.summary;
    let expected = summary(1, "reads/main/8/1", &measured());
    assert!(trial.is_partial);
    assert_eq!(partial.status, TrialStatus::Interrupted);
    assert_eq!((partial.counts, partial.in_flight), (expected.counts, expected.in_flight));
    assert_eq!(partial.counts.started, partial.counts.ended() + partial.in_flight);
    assert_eq!((partial.tps, partial.qps, partial.window_s), (expected.tps, expected.qps, 3.0));
    assert_eq!(partial.wasted.total(), expected.wasted.total());
    assert_eq!(partial.latency.count, expected.latency.count);
    assert!((partial.latency.p99_us / expected.latency.p99_us - 1.0).abs() < 0.002);
}

/// Two kinds, the second of which is rolled back in half of its transactions.
fn two_kinds_interval(index: u32, orders: u64, payments: u64) -> MeasuredInterval {
    let mut mixed = interval(Phase::Measured, index, f64::from(index), 0);
    mixed.frame.kinds = Frame::new(2, false).kinds;
    for (kind, count) in mixed.frame.kinds.iter_mut().zip([payments, orders]) {
        kind.counts.started = count;
        kind.counts.committed = count;
        (0..count).for_each(|_| kind.latency.record(2_000_000));
    }
    let kind = &mut mixed.frame.kinds[1];
    (kind.counts.committed, kind.counts.rolled_back) = (orders / 2, orders - orders / 2);
    mixed
}

#[test]
fn a_killed_trial_knows_what_each_kind_has_committed() {
    let dir = tempfile::tempdir().expect("a folder");
    let mut run = Run::create(dir.path(), header(), false).expect("created");
    let path = run.path().to_owned();
    let kinds = vec!["payment".to_owned(), "new_order".to_owned()];
    let mixed = TrialStart { kinds, ..start("orders/main/8/1") };
    let mut trial = run.begin_trial(mixed).expect("begun");
    trial.interval(&two_kinds_interval(0, 40, 30)).expect("stored");
    trial.interval(&two_kinds_interval(1, 60, 70)).expect("stored");
    drop(trial);
    let data = read(&path).expect("read");
    let trial = &data.trials[0];
    assert_eq!(trial.series[1].committed_by_kind, [70, 30]);
    let counts: Vec<(u64, u64)> = trial
        .summary
        .kinds
        .iter()
        .map(|kind| (kind.counts.committed, kind.counts.rolled_back))
        .collect();
    assert_eq!(counts, [(100, 0), (50, 50)]);
}

#[test]
fn a_kill_at_any_byte_of_the_last_lines_costs_at_most_one_interval() {
    let dir = tempfile::tempdir().expect("a folder");
    let path = run_with_trial(dir.path(), false);
    for (name, committed_after) in
        [("trials/1.csv", 150), ("trials/1.hlog", 225), ("events.jsonl", 225)]
    {
        let file = path.join(name);
        let bytes = fs::read(&file).expect("read");
        let last_line =
            bytes[..bytes.len() - 1].iter().rposition(|&byte| byte == b'\n').expect("lines") + 1;
        for length in last_line..=bytes.len() {
            fs::write(&file, &bytes[..length]).expect("written");
            let data = read(&path).expect("readable");
            assert_eq!(data.warnings, Vec::<Message>::new(), "{name} cut at {length}");
            let summary = &data.trials[0].summary;
            let expected = if length == bytes.len() { 225 } else { committed_after };
            assert_eq!(summary.counts.committed, expected, "{name} cut at {length}");
            assert_eq!(summary.counts.started, summary.counts.ended() + summary.in_flight);
            if name == "trials/1.csv" {
                assert_eq!(
                    summary.latency.count, expected,
                    "histograms and series cover the same window"
                );
            }
        }
    }
}

#[test]
fn a_run_goes_on_after_a_kill() {
    let dir = tempfile::tempdir().expect("a folder");
    let path = run_with_trial(dir.path(), true);
    {
        let mut run = Run::open(&path).expect("opened");
        assert!(run.data().is_complete("reads/main/8/1"));
        let mut cut_off = run.begin_trial(start("reads/main/8/2")).expect("begun");
        cut_off.interval(&measured()[0]).expect("stored");
    }
    let torn = fs::read_to_string(path.join("events.jsonl")).expect("read") + "{\"kind\":\"no";
    fs::write(path.join("events.jsonl"), torn).expect("written");
    let mut run = Run::open(&path).expect("opened");
    assert!(!run.data().is_complete("reads/main/8/2"));
    run.event(Event::new(EventKind::Note, "resumed")).expect("stored");
    let again = run.begin_trial(start("reads/main/8/2")).expect("begun");
    assert_eq!(again.start().trial, 3);
    run.end_trial(again, summary(3, "reads/main/8/2", &measured())).expect("stored");
    run.finish(RunStatus::Complete).expect("stored");

    let data = read(&path).expect("read");
    assert_eq!(data.warnings, Vec::<Message>::new());
    let status: Vec<_> =
        data.trials.iter().map(|trial| (trial.is_partial, &trial.summary.status)).collect();
    assert_eq!(
        status,
        [
            (false, &TrialStatus::Complete),
            (false, &TrialStatus::Interrupted),
            (false, &TrialStatus::Complete)
        ]
    );
    assert_eq!(data.header.resumed_at.len(), 2);
    assert_eq!(data.events.last().map(|event| &event.text), Some(&"resumed".into()));
}

#[test]
fn attempts_whose_load_generator_was_starved_are_counted_over_processes() {
    let dir = tempfile::tempdir().expect("a folder");
    let mut run = Run::create(dir.path(), header(), false).expect("created");
    add_starved_trial(&mut run);
    let path = run.path().to_owned();
    drop(run);
    let mut run = Run::open(&path).expect("opened");
    add_starved_trial(&mut run);
    let attempts =
        ["reads/main/8/1", "reads/main/8/2"].map(|step| run.data().starved(step, None).len());
    assert_eq!(attempts, [2, 0]);
    assert!(!run.data().is_complete("reads/main/8/1"));
}

/// Adds an attempt whose load generator was starved.
fn add_starved_trial(run: &mut Run) {
    let writer = run.begin_trial(start("reads/main/8/1")).expect("begun");
    let starved = TrialStatus::Starved;
    let summary = summary(writer.start().trial, "reads/main/8/1", &measured());
    run.end_trial(writer, TrialSummary { status: starved, ..summary }).expect("stored");
}

#[test]
fn only_one_process_writes() {
    let dir = tempfile::tempdir().expect("a folder");
    let run = Run::create(dir.path(), header(), false).expect("created");
    let error = Run::open(run.path()).expect_err("claimed");
    assert!(error.to_string().starts_with("Another dyno is writing to "), "{error}");
    assert!(read(run.path()).expect("readable").is_growing);
}

#[test]
fn folders_of_other_versions_are_refused_in_one_sentence() {
    let dir = tempfile::tempdir().expect("a folder");
    let path = run_with_trial(dir.path(), true);
    let current = format!("\"schema_version\": {SCHEMA_VERSION}");
    for (name, other) in [("trials/1.json", 99), ("run.json", 99), ("run.json", 1)] {
        let file = path.join(name);
        let text = fs::read_to_string(&file).expect("read");
        let changed = text.replace(&current, &format!("\"schema_version\": {other}"));
        assert_ne!(changed, text);
        fs::write(&file, changed).expect("written");
        let error = read(&path).expect_err("another version").to_string();
        assert!(error.contains(&format!("{} was written by another", path.display())), "{error}");
        assert!(error.contains("must be measured again"), "{error}");
        fs::write(&file, text).expect("written");
    }
}

#[test]
fn damage_is_told_and_costs_only_what_is_damaged() {
    let dir = tempfile::tempdir().expect("a folder");
    let path = run_with_trial(dir.path(), true);
    fs::write(path.join("trials/1.json"), "{").expect("written");
    fs::write(path.join("events.jsonl"), "nonsense\n{\"kind\":\"note\",\"text\":\"kept\"}\n")
        .expect("written");
    let data = read(&path).expect("read");
    assert_eq!((data.trials.len(), data.events.len()), (0, 1));
    assert_eq!(data.warnings.len(), 3, "{:?}", data.warnings);
}

#[test]
fn what_is_not_a_run_is_reported() {
    let dir = tempfile::tempdir().expect("a folder");
    let error = read(dir.path()).expect_err("empty");
    assert!(error.to_string().ends_with("is not a run: it has no run.json."), "{error}");
    assert!(Run::open(dir.path()).is_err());
    assert_eq!(fs::read_dir(dir.path()).expect("listed").count(), 0, "nothing was written to it");
    assert!(list(&dir.path().join("nowhere")).expect("listed").is_empty());
}

#[test]
fn a_place_that_can_not_be_written_is_one_error() {
    let dir = tempfile::tempdir().expect("a folder");
    let file = dir.path().join("file");
    fs::write(&file, "").expect("written");
    let error = Run::create(&file.join("runs"), header(), false).expect_err("a file is in the way");
    assert!(error.to_string().contains("file/runs"), "{error}");
    assert!(error.hint.is_some(), "{error:?}");
}

#[test]
fn a_folder_of_another_user_is_refused_and_a_link_of_ones_own_is_not() {
    if !rustix::process::geteuid().is_root() {
        // No one else can give a folder away.
        return;
    }
    const STRANGER: u32 = 54_321;
    let dir = tempfile::tempdir().expect("a folder");
    let (disk, runs) = (dir.path().join("disk"), dir.path().join("runs"));
    fs::create_dir(&disk).expect("made");
    symlink(&disk, &runs).expect("linked");
    let path = Run::create(&runs, header(), false).expect("a link of one's own").path().to_owned();
    drop(Run::open(&path).expect("resumed"));
    let assert_refused = |what: &str| {
        let whose =
            format!("The {what} {} belongs to another user (number 54321).", runs.display());
        for error in [Run::create(&runs, header(), false).err(), Run::open(&path).err()] {
            let error = error.expect("it is refused");
            assert_eq!(error.to_string(), whose);
            assert!(error.hint.as_ref().is_some_and(|hint| hint.contains("--dir")), "{error:?}");
        }
    };
    lchown(&runs, Some(STRANGER), None).expect("given away");
    assert_refused("link");
    lchown(&runs, Some(0), None).expect("taken back");
    chown(&disk, Some(STRANGER), None).expect("given away");
    assert_refused("folder");
    chown(&disk, Some(0), None).expect("taken back");
    chown(&path, Some(STRANGER), None).expect("given away");
    let error = Run::open(&path).expect_err("a run of another user").to_string();
    assert!(
        error.starts_with("The folder ") && error.contains("belongs to another user"),
        "{error}"
    );
}

#[test]
fn a_disk_that_fills_up_keeps_what_was_written() {
    let dir = tempfile::tempdir().expect("a folder");
    let mut run = Run::create(dir.path(), header(), false).expect("created");
    let path = run.path().to_owned();
    let mut trial = run.begin_trial(start("a")).expect("begun");
    trial.interval(&measured()[0]).expect("stored");
    drop(trial);
    // The next trial's series lies on a full disk.
    std::os::unix::fs::symlink("/dev/full", path.join("trials/2.csv")).expect("linked");
    let error = run.begin_trial(start("b")).err().expect("full");
    assert!(error.to_string().contains("trials/2.csv"), "{error}");
    assert!(error.hint.as_ref().is_some_and(|hint| hint.contains("space")), "{error:?}");
    drop(run);
    let data = read(&path).expect("read");
    assert_eq!(data.trials[0].summary.counts.committed, 100);
}
