//! Ends of a trial: by time, by events, by the user, and the work in flight then.

use crate::support::{Lists, MS, TRANSFER, closed, constant, run, try_run};
use dyno_core::SECOND;
use dyno_engine::{Control, DriveError, TrialEnd, TrialSpec, drive};
use dyno_testkit::sim::{Fault, Service, SimDriver, SimulatedAnswers};

/// A trial that ends after this number of transactions.
fn events(events: u64, workers: u32) -> TrialSpec {
    TrialSpec { duration: None, events: Some(events), ..closed(workers, 1) }
}

#[test]
fn exactly_as_many_events_as_asked_for() {
    for (count, workers) in [(1, 1), (1, 8), (1_000, 7), (1_001, 7)] {
        let driver = SimDriver::new(SimulatedAnswers {
            service: Service::Exponential(5 * MS),
            ..SimulatedAnswers::default()
        });
        let (result, _) = run(&Lists::one_kind(&TRANSFER), &driver, &events(count, workers));
        let counts = result.total.counts();
        assert_eq!((counts.started, counts.committed), (count, count));
        assert_eq!((result.in_flight, &result.ended), (0, &TrialEnd::Events));
        assert_eq!(driver.statements(), 3 * count);
    }
}

#[test]
fn events_are_exact_after_a_warm_up_too() {
    for service in [Service::Constant(10 * MS), Service::Exponential(10 * MS)] {
        let driver = SimDriver::new(SimulatedAnswers { service, ..SimulatedAnswers::default() });
        let spec = TrialSpec { warmup: SECOND + MS, ..events(1_000, 9) };
        let (result, _) = run(&Lists::one_kind(&["SELECT 1"]), &driver, &spec);
        assert_eq!(result.total.counts().committed, 1_000);
        assert_eq!((result.in_flight, &result.ended), (0, &TrialEnd::Events));
    }
}

#[test]
fn failed_transactions_are_events() {
    let errors = Fault::ErrorEvery { period: 10, class: dyno_core::ErrorClass::Constraint };
    let driver = constant(MS, vec![errors]);
    let (result, _) = run(&Lists::one_kind(&["INSERT x"]), &driver, &events(1_000, 4));
    let counts = result.total.counts();
    assert_eq!((counts.committed, counts.failed), (900, 100));
}

#[test]
fn time_ends_what_events_do_not() {
    let spec = TrialSpec { events: Some(1_000_000), ..closed(2, 3) };
    let (result, _) = run(&Lists::one_kind(&["SELECT 1"]), &constant(10 * MS, vec![]), &spec);
    assert_eq!((result.total.counts().committed, &result.ended), (2 * 299, &TrialEnd::Time));
    assert_eq!(result.length(), 3 * SECOND);
    let spec = TrialSpec { events: Some(100), ..closed(2, 3) };
    let (result, _) = run(&Lists::one_kind(&["SELECT 1"]), &constant(10 * MS, vec![]), &spec);
    assert_eq!((result.total.counts().committed, &result.ended), (100, &TrialEnd::Events));
    assert_eq!(result.length(), 500 * MS);
}

#[test]
fn what_is_in_flight_at_the_end_is_reported_and_not_counted() {
    let driver = constant(3 * SECOND, vec![]);
    let (result, _) = run(&Lists::one_kind(&["SELECT 1"]), &driver, &closed(2, 10));
    let counts = result.total.counts();
    assert_eq!((counts.started, counts.committed), (8, 6));
    // They were let out after the end, with their connections whole.
    assert_eq!((result.in_flight, result.unfinished), (2, 0));
    assert_eq!(result.longest_in_flight, 3 * SECOND);
}

#[test]
fn what_does_not_end_is_cut() {
    let stall = Fault::Stall { from: 5 * SECOND - MS, until: 500 * SECOND };
    let spec = TrialSpec { drain: 7 * SECOND, ..closed(3, 10) };
    let driver = constant(10 * MS, vec![stall]);
    let (result, seen) = run(&Lists::one_kind(&["SELECT 1"]), &driver, &spec);
    assert_eq!((result.in_flight, result.unfinished, &result.ended), (3, 3, &TrialEnd::Time));
    assert_eq!(result.total.counts().committed, 3 * 499);
    assert_eq!(seen.commits()[5..], [0; 5]);
    assert_eq!(result.length(), 10 * SECOND);
    // From the begin of the stall to the end of the drain.
    let in_flight = 12 * SECOND..=12 * SECOND + 20 * MS;
    assert!(in_flight.contains(&result.longest_in_flight), "{}", result.longest_in_flight);
}

#[test]
fn a_stall_that_outlasts_the_window_is_seen_in_open_and_closed_loops() {
    let stall = Fault::Stall { from: 9_900 * MS, until: 18 * SECOND };
    for rate_per_s in [None, Some(100.0)] {
        for finish_begun in [false, true] {
            let spec = TrialSpec { rate_per_s, finish_begun, ..closed(4, 10) };
            let driver = constant(10 * MS, vec![stall]);
            let (result, seen) = run(&Lists::one_kind(&["SELECT 1"]), &driver, &spec);
            let measured = result.total.latency().max();
            let longest = if finish_begun { measured } else { result.longest_in_flight };
            assert!(longest >= 8 * SECOND, "{longest}");
            assert_eq!((result.in_flight > 0, measured < SECOND), (!finish_begun, !finish_begun));
            assert_eq!(result.unfinished, 0);
            // There are intervals as long as the window is open.
            assert_eq!(seen.0.len(), if finish_begun { 19 } else { 10 });
        }
    }
}

#[test]
fn the_user_stops_and_keeps_what_was_measured() {
    for rate_per_s in [None, Some(100.0)] {
        let control = Control::new();
        let mut workload = Lists::one_kind(&TRANSFER);
        workload.stop = Some((4 * SECOND, &control));
        let spec = TrialSpec { rate_per_s, ..closed(4, 3_600) };
        let (result, seen) = run(&workload, &constant(10 * MS, vec![]), &spec);
        assert_eq!(result.ended, TrialEnd::Interrupted);
        // Loops look every tenth of a second; nothing new begins after that.
        let length = result.length();
        assert!((4 * SECOND..=4 * SECOND + 150 * MS).contains(&length), "{length}");
        assert!(result.total.counts().committed > 300);
        assert_eq!((result.unfinished, seen.commits().len()), (0, 5));
        assert_eq!(result.missed_rate(), None);
    }
}

#[test]
fn a_stop_after_the_window_takes_nothing_from_it() {
    let control = Control::new();
    let mut workload = Lists::one_kind(&TRANSFER);
    workload.stop = Some((10 * SECOND, &control));
    let (result, _) = run(&workload, &constant(7 * MS, vec![]), &closed(4, 10));
    assert!(control.is_stopped(), "transactions outlast the window");
    assert_eq!((&result.ended, result.length()), (&TrialEnd::Time, 10 * SECOND));
}

#[test]
fn the_user_does_not_wait_for_what_takes_long() {
    for finish_begun in [false, true] {
        let control = Control::new();
        let mut workload = Lists::one_kind(&["SELECT 1"]);
        workload.stop = Some((5 * SECOND - 15 * MS, &control));
        let stall = Fault::Stall { from: 5 * SECOND - 5 * MS, until: 500 * SECOND };
        let stuck = constant(10 * MS, vec![stall]);
        let spec = TrialSpec { drain: u64::MAX, finish_begun, ..closed(3, 3_600) };
        let (result, _) = run(&workload, &stuck, &spec);
        assert_eq!((&result.ended, result.unfinished), (&TrialEnd::Interrupted, 3));
        assert_eq!((result.in_flight, result.total.counts().committed), (3, 3 * 499));
    }
}

#[test]
fn the_user_stops_in_the_warm_up() {
    let control = Control::new();
    let mut workload = Lists::one_kind(&TRANSFER);
    workload.stop = Some((SECOND, &control));
    let spec = TrialSpec { warmup: 10 * SECOND, ..closed(4, 10) };
    let (result, _) = run(&workload, &constant(MS, vec![]), &spec);
    assert_eq!((result.ended, result.total.counts().started), (TrialEnd::Interrupted, 0));
    assert_eq!(result.window.closes.saturating_sub(result.window.opens), 0);
}

#[test]
fn the_user_stops_before_the_workers_are_connected() {
    let driver = SimDriver::new(SimulatedAnswers {
        connect_time: 5 * SECOND,
        ..SimulatedAnswers::default()
    });
    let control = Control::new();
    control.stop();
    let (result, _) = try_run(&Lists::one_kind(&TRANSFER), &driver, &closed(4, 10), &control);
    assert!(matches!(result, Err(DriveError::Interrupted)), "{result:?}");
    assert_eq!(driver.statements(), 0);
}

#[test]
fn what_a_worker_held_back_is_sent_and_counted_as_work() {
    let mut workload = Lists::one_kind(&["SELECT 1"]);
    workload.farewell = Some("INSERT rest");
    for finish_begun in [false, true] {
        let driver = constant(MS, vec![]);
        let spec = TrialSpec { finish_begun, ..events(100, 3) };
        let (result, _) = run(&workload, &driver, &spec);
        assert_eq!((result.total.work().reads, driver.statements()), (100, 103));
        assert_eq!((result.total.work().writes, result.total.counts().committed), (3, 100));
    }
}

#[test]
fn a_panic_before_the_start_fails_the_trial_and_no_loop_waits_for_it() {
    let spec = TrialSpec { loops: Some(3), ..closed(6, 60) };
    let mut workload = Lists::one_kind(&TRANSFER);
    workload.panics_at = Some(0);
    let control = Control::new();
    let (simulated, _) = try_run(&workload, &constant(MS, vec![]), &spec, &control);
    let control = Control::new();
    let real = drive(&workload, &constant(MS, vec![]), &spec, &control, &mut ());
    for result in [simulated, real] {
        let Err(DriveError::Connect(error)) = result else { panic!("{result:?}") };
        assert!(error.message().contains("panicked"), "{error}");
        assert_eq!(error.detail.as_deref(), Some("worker 0 is broken"));
    }
}

#[test]
fn a_panic_within_the_window_keeps_what_was_measured() {
    let spec = TrialSpec { loops: Some(3), ..closed(6, 60) };
    let mut workload = Lists::one_kind(&TRANSFER);
    workload.panics_at = Some(2_500 * MS);
    let (result, seen) = run(&workload, &constant(MS, vec![]), &spec);
    assert!(
        matches!(&result.ended, TrialEnd::Aborted(error) if error.message().contains("panicked")),
        "{:?}",
        result.ended
    );
    // 6 workers, 3 ms a transaction.
    assert!((4_900..5_300).contains(&result.total.counts().committed), "{:?}", seen.commits());
    assert_eq!(seen.commits()[..2], [1_998, 1_998], "{:?}", seen.commits());
    assert!(result.unfinished > 0);
}
