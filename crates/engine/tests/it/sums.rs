//! Sums of fixed measurements: totals of a trial, lines of its series, sums of stages and of load generators.

use dyno_core::{DbError, ErrorClass, SECOND, Tally};
use dyno_engine::record::{Awaited, Frame, MeasuredInterval, Phase, Window, set_totals};
use dyno_engine::{
    Action, Control, ErrorPolicy, TrialEnd, TrialResult, WorkerStats, join, merge, worsen,
};
use dyno_facts::{
    Counts, GeneratorConditions, HostSample, SeriesRow, StatementCounts, TableScans, TrialSummary,
};

fn counts(committed: u64) -> Counts {
    Counts {
        started: committed + 22,
        committed,
        rolled_back: 8,
        failed: 5,
        skipped: 2,
        retries: 6,
        retried: 4,
        reconnects: 1,
    }
}

/// Two kinds, one of them without a transaction.
fn frame() -> Frame {
    let mut frame = Frame::new(2, true).with_loop_queue();
    let kind = &mut frame.kinds[0];
    kind.counts = counts(40);
    kind.work = Tally { reads: 60, writes: 30, others: 10, rows_read: 3, ..Tally::default() };
    kind.wasted = Tally { reads: 15, writes: 10, ..Tally::default() };
    (1..=50).for_each(|ms| kind.latency.record(ms * 1_000_000));
    let histograms = [(&mut frame.service, 2_000_000), (&mut frame.lateness, 3_000_000)];
    histograms.into_iter().for_each(|(times, ns)| times.as_mut().expect("a schedule").record(ns));
    frame.awaited = Awaited { arrivals: 9, late: 4, latest: 1_500_000 };
    let deadlock = DbError::server(ErrorClass::Deadlock, 1213, *b"40001", "Deadlock found");
    (0..7).for_each(|_| frame.errors.count(&deadlock));
    frame.cpu_ns = 500_000_000;
    frame
}

#[track_caller]
fn assert_near(result: f64, expected: f64) {
    assert!((result / expected - 1.0).abs() < 0.002, "{result} in place of {expected}");
}

#[test]
fn totals_follow_from_counts_and_the_length_of_the_window() {
    let result = summarize_frame(Some(80), &frame());
    assert_eq!((result.window_s, result.tps, result.qps), (2.5, 16.0, 40.0));
    assert_eq!((result.counts, result.in_flight), (counts(40), 7));
    let statements =
        StatementCounts { reads: 60, writes: 30, others: 10, rows_read: 3, ..Default::default() };
    assert_eq!(result.statements, statements);
    assert_eq!((result.wasted.reads, result.wasted.writes), (15, 10));
    // Thirty of eighty have no latency: the median is at the share of 40 of 50.
    assert_eq!((result.latency.count, result.latency.missing), (50, 30));
    assert_near(result.latency.p50_us, 40_000.0);
    assert_near(result.latency.p90_us, 50_000.0);
    assert_near(result.latency.mean_us, 25_500.0);
    assert_near(result.latency.min_us, 1_000.0);
    assert_near(result.latency.sum_us, 1_275_000.0);
    assert_eq!(result.service.map(|times| times.count), Some(1));
    assert_near(result.lateness.expect("a schedule").max_us, 3_000.0);
    let awaited = result.generator.awaited.expect("a schedule");
    assert_eq!((awaited.count, awaited.late, awaited.latest_us), (9, 4, 1_500.0));
    assert_eq!(result.generator.loop_queue, None, "no answer was waited for");
    assert_eq!(result.generator.loops_cpu_s, 0.5);
    assert_eq!(result.generator.cpu_us_per_statement, 4_000.0);
    let [error] = result.errors.as_slice() else { panic!("one error: {:?}", result.errors) };
    assert_eq!(
        (error.class.as_str(), error.errno, error.sqlstate.as_str()),
        ("deadlock", 1213, "40001")
    );
    assert_eq!((error.message.to_string().as_str(), error.count), ("Deadlock found", 7));
    let kinds: Vec<_> = result.kinds.iter().map(|kind| (kind.name.as_str(), kind.counts)).collect();
    assert_eq!(kinds, [("new", counts(40)), ("old", Counts::default())]);
    assert_eq!((result.kinds[0].statements, result.kinds[0].latency.count), (statements, 50));
    assert_eq!(summarize_frame(None, &frame()).latency.missing, 0);
    let nothing = summarize_frame(None, &Frame::new(2, false));
    assert_eq!((nothing.tps, nothing.generator.cpu_us_per_statement), (0.0, 0.0));
    assert!(nothing.generator.awaited.is_none() && nothing.lateness.is_none());
}

/// The totals of a window of 2.5 s.
fn summarize_frame(offered: Option<u64>, frame: &Frame) -> TrialSummary {
    let names = ["new".to_owned(), "old".to_owned()];
    let mut summary = TrialSummary { offered, ..TrialSummary::default() };
    set_totals(&mut summary, frame, &names, 5 * SECOND / 2);
    summary
}

#[test]
fn a_line_of_the_series_has_the_figures_of_its_interval() {
    let host = HostSample { cpu_share: 0.5, steal_share: 0.25, ..HostSample::default() };
    let interval = MeasuredInterval {
        phase: Phase::Measured,
        index: 3,
        begins_s: 6.0,
        length_s: 2.0,
        frame: frame(),
        host,
    };
    let row = SeriesRow::from(&interval);
    assert_eq!((row.phase.as_str(), row.begins_s, row.length_s), ("measured", 6.0, 2.0));
    let result = [row.started, row.committed, row.rolled_back, row.failed, row.skipped];
    assert_eq!(result, [62, 40, 8, 5, 2]);
    assert_eq!([row.retries, row.reconnects, row.errors], [6, 1, 7]);
    assert_eq!([row.reads, row.writes, row.others, row.wasted], [60, 30, 10, 25]);
    assert_eq!([row.tps, row.qps, row.loops_cpu_s], [20.0, 50.0, 0.5]);
    assert_near(row.p50_us, 25_000.0);
    assert_near(row.mean_us, 25_500.0);
    assert_near(row.max_us, 50_000.0);
    assert_eq!([row.host_cpu_share, row.host_steal_share], [0.5, 0.25]);
    assert_eq!(row.committed_by_kind, [40, 0]);
    let mut single = Frame::new(1, false);
    single.kinds[0].counts = counts(1);
    let empty = MeasuredInterval { phase: Phase::WarmUp, length_s: 0.0, frame: single, ..interval };
    let row = SeriesRow::from(&empty);
    assert_eq!((row.phase.as_str(), row.tps, row.qps), ("warm_up", 0.0, 0.0));
    assert_eq!(row.committed_by_kind, [] as [u64; 0]);
}

/// A stage of this length.
fn stage(seconds: u64, committed: u64) -> TrialResult {
    let mut total = frame();
    total.kinds[0].counts = counts(committed);
    let opens = 10 * SECOND;
    let closes = opens + seconds * SECOND;
    let worker = WorkerStats {
        transactions: committed,
        busy: 3,
        connects: 4,
        connecting: 5,
        uncommitted: 0,
        scans: None,
    };
    TrialResult {
        total,
        window: Window { released: 9 * SECOND, opens, closes, interval: SECOND },
        connect: seconds,
        late: 2 * seconds,
        ended: TrialEnd::Time,
        workers: vec![worker],
        offered: Some(100),
        in_flight: 7,
        longest_in_flight: 11 * seconds,
        unfinished: 1,
        retired: 2,
        retired_transactions: 3,
        loops_cpu: vec![seconds],
        host: HostSample {
            cpu_share: 0.1 * seconds as f64,
            memory_available_mib: 100.0 / seconds as f64,
            network_sent_bytes_per_s: 8.0,
            ..HostSample::default()
        },
        conditions: GeneratorConditions::default(),
    }
}

#[test]
fn stages_are_joined_one_after_the_other() {
    let mut longer = stage(6, 60);
    longer.loops_cpu.push(9);
    longer.workers[0].scans = Some(TableScans { rows: 50, statements: 5 });
    let result = join(&[stage(2, 20), longer]).expect("alike");
    assert_eq!(result.length(), 8 * SECOND);
    assert_eq!((result.window.released, result.window.opens), (9 * SECOND, 10 * SECOND));
    let expected = WorkerStats {
        transactions: 80,
        busy: 6,
        connects: 8,
        connecting: 10,
        uncommitted: 0,
        scans: Some(TableScans { rows: 50, statements: 5 }),
    };
    assert_eq!(
        (result.workers.as_slice(), result.loops_cpu.as_slice()),
        (&[expected][..], &[8, 9][..])
    );
    assert_eq!((result.connect, result.late, result.longest_in_flight), (6, 12, 66));
    assert_eq!((result.offered, result.in_flight, result.unfinished), (Some(200), 14, 2));
    assert_eq!((result.retired, result.retired_transactions), (4, 6));
    assert_eq!(result.total.counts().committed, 80);
    // The mean by length: 0.2 for 2 s, 0.6 for 6 s.
    assert_near(result.host.cpu_share, 0.5);
    assert_near(result.host.network_sent_bytes_per_s, 8.0);
    assert_near(result.host.memory_available_mib, 100.0 / 6.0);
    assert_eq!(result.ended, TrialEnd::Time);
}

#[test]
fn generators_are_merged_side_by_side() {
    let mut late = stage(3, 30);
    late.window.released -= 1;
    late.window.opens += SECOND;
    let result = merge(&[stage(2, 20), late]).expect("alike");
    let window = result.window;
    assert_eq!(window.released, 9 * SECOND - 1);
    assert_eq!((window.opens, window.closes), (10 * SECOND, 13 * SECOND));
    assert_eq!((result.workers.len(), result.loops_cpu.as_slice()), (2, &[2, 3][..]));
    assert_near(result.host.cpu_share, 0.3);
    assert_eq!(merge_ends([TrialEnd::Time, TrialEnd::Events]), TrialEnd::Events);
    assert_eq!(merge_ends([TrialEnd::Events, TrialEnd::Interrupted]), TrialEnd::Interrupted);
}

fn merge_ends(ends: [TrialEnd; 2]) -> TrialEnd {
    let parts = ends.map(|ended| TrialResult { ended, ..stage(2, 20) });
    merge(&parts).expect("alike").ended
}

#[test]
fn what_a_server_discarded_fails_a_trial() {
    for (uncommitted, ended, expected) in [
        // One of a hundred may be.
        (2, TrialEnd::Time, TrialEnd::Time),
        (3, TrialEnd::Time, TrialEnd::Uncommitted(3)),
        (3, TrialEnd::Events, TrialEnd::Uncommitted(3)),
        (3, TrialEnd::Interrupted, TrialEnd::Interrupted),
    ] {
        let mut part = TrialResult { ended, ..stage(2, 200) };
        part.workers[0].uncommitted = uncommitted;
        assert_eq!(merge(&[part]).expect("one part").ended, expected);
    }
    assert!(TrialEnd::Uncommitted(3).failure().is_some());
    assert_eq!(TrialEnd::Interrupted.failure(), None);
}

#[test]
fn a_rate_is_missed_by_more_than_one_percent() {
    // 93 have ended, and 7 were in flight.
    let missed = [None, Some(0), Some(100), Some(101), Some(200)]
        .map(|offered| TrialResult { offered, ..stage(2, 78) }.missed_rate());
    assert_eq!(missed, [None, None, None, None, Some(0.5)]);
}

#[test]
fn the_worst_scans_are_told() {
    let mut result = stage(2, 20);
    assert_eq!((result.scans(), result.scan_note()), (None, None));
    let scans = [(100, 50), (90, 3), (1_000, 100)]
        .map(|(rows, statements)| TableScans { rows, statements });
    let worker = result.workers[0];
    result.workers = scans.map(|scans| WorkerStats { scans: Some(scans), ..worker }).to_vec();
    assert_eq!(result.scans(), Some(TableScans { rows: 90, statements: 3 }));
    assert!(result.scan_note().is_some_and(|note| note.contains("30 rows")));
}

#[test]
fn times_move_to_another_clock() {
    let mut result = stage(2, 20);
    (result.total.began, result.total.ended) = (10, 20);
    result.shift(5);
    result.shift(-7);
    let window = result.window;
    let expected = [9, 10, 12].map(|seconds| seconds * SECOND - 2);
    assert_eq!([window.released, window.opens, window.closes], expected);
    assert_eq!((result.total.began, result.total.ended), (8, 18));
    let mut open = TrialResult { total: Frame::new(1, false), ..stage(2, 20) };
    open.window.closes = u64::MAX;
    open.shift(-3);
    assert_eq!((open.window.closes, open.window.opens), (u64::MAX, 10 * SECOND - 3));
    assert_eq!((open.total.began, open.total.ended), (u64::MAX, 0), "an empty one stays empty");
}

#[test]
fn conditions_of_two_machines_are_those_of_the_worse() {
    let mut result = make_conditions(0.1, Some(3.0), None);
    worsen(&mut result, &make_conditions(0.2, Some(2.0), Some(7)));
    let expected = make_conditions(0.2, Some(2.0), Some(7));
    let run_delay_s = result.run_delay_s;
    assert_eq!(GeneratorConditions { run_delay_s: Some(0.2), ..result.clone() }, expected);
    assert_near(run_delay_s.expect("both"), 0.3);
    worsen(&mut result, &GeneratorConditions::default());
    assert_eq!((result.headroom, result.swapped_pages), (None, Some(7)));
    let mut unknown = GeneratorConditions::default();
    worsen(
        &mut unknown,
        &GeneratorConditions { headroom: Some(1.0), ..make_conditions(0.2, None, Some(7)) },
    );
    assert_eq!(
        unknown,
        GeneratorConditions { headroom: None, ..make_conditions(0.2, None, Some(7)) }
    );
}

fn make_conditions(share: f64, headroom: Option<f64>, pages: Option<u64>) -> GeneratorConditions {
    GeneratorConditions {
        cpu_pressure_share: Some(share),
        memory_pressure_share: Some(share + 1.0),
        io_pressure_share: Some(share + 2.0),
        hiccup_p999_us: Some(share + 3.0),
        hiccup_max_us: Some(share + 4.0),
        network_share: Some(share + 5.0),
        retransmitted_share: Some(share + 6.0),
        throttled_share: Some(share + 7.0),
        suspended_ms: Some(share + 8.0),
        run_delay_s: Some(share),
        swapped_pages: pages,
        headroom,
        governor: Some("performance".to_owned()),
        ..GeneratorConditions::default()
    }
}

#[test]
fn a_trial_may_begin_after_a_stop_of_another() {
    let control = Control::new();
    assert!(!control.is_stopped());
    control.stop();
    assert!(control.is_stopped());
    control.resume();
    assert!(!control.is_stopped());
}

#[test]
fn policies_over_failures_replace_sessions_to_servers_that_take_no_writes() {
    let policy = ErrorPolicy::following();
    let read_only = DbError::server(ErrorClass::Other, 0, *b"25006", "read-only");
    let are_replaced = [1290, 1792, 1836, 1053, 1146]
        .map(|errno| DbError::server(ErrorClass::Other, errno, *b"HY000", "words"))
        .map(|error| policy.replace.contains(&error));
    assert_eq!(are_replaced, [true, true, true, true, false]);
    assert!(policy.replace.contains(&read_only));
    assert_eq!(policy.action(&read_only, 0), Action::Fail);
    let endless = ErrorPolicy { max_retries: None, ..ErrorPolicy::resilient() };
    let deadlock = DbError::server(ErrorClass::Deadlock, 1213, *b"40001", "Deadlock found");
    assert_eq!(endless.action(&deadlock, u32::MAX), Action::Retry);
    let once = ErrorPolicy { max_retries: Some(1), tolerate: Default::default(), ..endless };
    assert_eq!(
        [0, 1].map(|attempt| once.action(&deadlock, attempt)),
        [Action::Retry, Action::Fail]
    );
}
