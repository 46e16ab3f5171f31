//! Workers as pgbench's clients: each with its own count, a session for each transaction, the
//! skipped slots of a schedule, and what a single one's end means for the others.

use crate::support::{Lists, MS, TRANSFER, closed, constant, run, try_run};
use dyno_core::{ErrorClass, Outcome, SECOND};
use dyno_engine::{Control, DriveError, ErrorPolicy, TrialEnd, TrialSpec};
use dyno_testkit::sim::{Fault, Service, SimDriver, SimulatedAnswers};

/// Errors end the worker that meets them, conflicts are tried `tries` times.
fn retiring(tries: u32) -> ErrorPolicy {
    let resilient = ErrorPolicy::resilient();
    let max_retries = Some(tries - 1);
    ErrorPolicy { max_retries, reconnect: false, retire: true, pause: 0, ..resilient }
}

#[test]
fn each_worker_does_its_own_count() {
    // Workers of very different speed: a shared count would go to the fast ones.
    let service = Service::Uniform(MS, 50 * MS);
    let driver = SimDriver::new(SimulatedAnswers { service, ..SimulatedAnswers::default() });
    let spec = TrialSpec { duration: None, events_per_worker: Some(100), ..closed(7, 1) };
    let (result, _) = run(&Lists::one_kind(&TRANSFER), &driver, &spec);
    let transactions: Vec<_> = result.workers.iter().map(|worker| worker.transactions).collect();
    assert_eq!(transactions, [100; 7]);
    assert_eq!((result.ended, result.in_flight), (TrialEnd::Events, 0));
}

#[test]
fn the_count_of_a_worker_begins_with_the_window() {
    let spec = TrialSpec {
        duration: None,
        events_per_worker: Some(10),
        warmup: SECOND + MS,
        ..closed(3, 1)
    };
    let (result, _) = run(&Lists::one_kind(&TRANSFER), &constant(MS, Vec::new()), &spec);
    assert_eq!(result.total.counts().committed, 30);
}

#[test]
fn what_has_begun_is_finished_and_counted() {
    // Transactions of 3 s in a run of 4 s: the second one of each worker ends after 6 s.
    let spec = TrialSpec { finish_begun: true, ..closed(5, 4) };
    let (result, seen) =
        run(&Lists::one_kind(&["SELECT 1"]), &constant(3 * SECOND, Vec::new()), &spec);
    let counts = result.total.counts();
    assert_eq!((counts.committed, result.in_flight, result.unfinished), (10, 0, 0));
    assert_eq!((result.length(), &result.ended), (6 * SECOND, &TrialEnd::Time));
    assert_eq!(seen.commits(), [0, 0, 0, 5, 0, 0, 5]);
}

#[test]
fn a_run_that_finishes_can_still_be_stopped() {
    let control = Control::new();
    let spec = TrialSpec { finish_begun: true, drain: SECOND, ..closed(1, 3_600) };
    let mut workload = Lists::one_kind(&["SELECT 1"]);
    workload.stop = Some((5 * SECOND, &control));
    let (result, _) = run(&workload, &constant(MS, Vec::new()), &spec);
    assert_eq!(result.ended, TrialEnd::Interrupted);
    assert!(result.length() < 6 * SECOND);
}

#[test]
fn every_transaction_has_a_session_of_its_own() {
    let service = Service::Constant(MS);
    let driver = SimDriver::new(SimulatedAnswers {
        connect_time: 9 * MS,
        service,
        ..SimulatedAnswers::default()
    });
    let spec = TrialSpec { connect_each: true, finish_begun: true, ..closed(2, 1) };
    let (result, _) = run(&Lists::one_kind(&["SELECT 1"]), &driver, &spec);
    let counts = result.total.counts();
    // 10 ms for each one, of which 1 ms is latency.
    assert_eq!((counts.committed, result.total.latency().max()), (200, MS));
    let connects: u64 = result.workers.iter().map(|worker| worker.connects).sum();
    let connecting: u64 = result.workers.iter().map(|worker| worker.connecting).sum();
    assert_eq!((connects, connecting), (200, 200 * 9 * MS));
    // Those of the beginning make sure that the log-in works.
    assert_eq!(driver.connects(), 202);
    // With a schedule clients wait for the connection too.
    let spec = TrialSpec { rate_per_s: Some(20.0), ..spec };
    let (result, _) = run(&Lists::one_kind(&["SELECT 1"]), &driver, &spec);
    assert!(result.total.latency().min() >= 10 * MS, "{}", result.total.latency().min());
}

#[test]
fn sessions_are_replaced_after_so_many_transactions() {
    let driver = SimDriver::new(SimulatedAnswers {
        connect_time: 9 * MS,
        service: Service::Constant(MS),
        ..SimulatedAnswers::default()
    });
    let spec = TrialSpec { reconnect_every: 10, finish_begun: true, ..closed(2, 1) };
    let (result, _) = run(&Lists::one_kind(&["SELECT 1"]), &driver, &spec);
    let counts = result.total.counts();
    // 10 transactions of 1 ms and one reconnect of 9 ms take 19 ms: 53 times in a second on each session, less its end.
    assert!((2 * 520..=2 * 540).contains(&counts.committed), "{counts:?}");
    assert!((2 * 51..=2 * 53).contains(&counts.reconnects), "{counts:?}");
    assert_eq!(driver.connects(), counts.reconnects + 2);
    let latency = result.total.latency();
    assert_eq!((latency.min(), latency.max()), (MS, 10 * MS), "one in ten has the reconnect");
    assert_eq!(result.ended, TrialEnd::Time);
}

#[test]
fn late_slots_are_skipped() {
    // 500 a second are requested and a single worker does 100: nothing that is done was late.
    let limit = 30 * MS;
    let spec = TrialSpec { rate_per_s: Some(500.0), late_limit: Some(limit), ..closed(1, 20) };
    let workload = Lists::one_kind(&["SELECT 1"]);
    let (result, _) = run(&workload, &constant(10 * MS, Vec::new()), &spec);
    let counts = result.total.counts();
    assert!(counts.committed >= 1_990, "{counts:?}");
    assert!((7_000..9_000).contains(&counts.skipped), "{counts:?}");
    assert_eq!(counts.failed, 0);
    assert!(result.total.latency().max() <= limit + 10 * MS);
    let over = workload.over.lock().expect("no thread panicked");
    let skipped = over.iter().filter(|ended| ended.outcome == Outcome::Skipped);
    assert!(skipped.clone().all(|slot| slot.attempts == 0 && slot.ended > slot.due + limit));
    assert_eq!(skipped.filter(|slot| slot.is_measured).count() as u64, counts.skipped);
}

#[test]
fn what_fails_after_the_end_is_no_failure_of_clients_that_leave() {
    let driver =
        constant(30 * MS, vec![Fault::ErrorEvery { period: 1, class: ErrorClass::Deadlock }]);
    for (tries, failed, retries) in [(1, 33, 0), (2, 16, 17)] {
        let spec = TrialSpec { errors: retiring(tries), finish_begun: true, ..closed(1, 1) };
        let workload = Lists::one_kind(&["UPDATE account"]);
        let (result, _) = run(&workload, &driver, &spec);
        let counts = result.total.counts();
        // Attempts end each 30 ms; the one that ends at 1,020 ms is left unfinished.
        assert_eq!((counts.failed, counts.retries, result.in_flight), (failed, retries, 1));
        assert_eq!(workload.over.lock().expect("no thread panicked").len() as u64, failed);
    }
}

#[test]
fn nothing_is_tried_again_after_the_limit() {
    let driver =
        constant(10 * MS, vec![Fault::ErrorEvery { period: 1, class: ErrorClass::Deadlock }]);
    let errors = retiring(100);
    let spec = TrialSpec { late_limit: Some(35 * MS), errors, ..closed(1, 1) };
    let workload = Lists::one_kind(&["UPDATE account"]);
    let (result, _) = run(&workload, &driver, &spec);
    let counts = result.total.counts();
    // Attempts end 10, 20, 30 and 40 ms after the begin: the last one is too late for another.
    // The last one ends with the window, and so after it: it is left unfinished.
    assert_eq!((counts.failed, counts.retries, counts.retried), (24, 75, 25));
    let over = workload.over.lock().expect("no thread panicked");
    assert_eq!(over.len(), 24);
    assert!(over.iter().all(|ended| ended.attempts == 4));
}

#[test]
fn an_error_ends_its_worker_only() {
    // Statements 0..4 are those of five workers; the third one's second statement fails.
    let driver = constant(MS, vec![Fault::ErrorAt { statement: 7, class: ErrorClass::Other }]);
    let spec = TrialSpec { errors: retiring(1), events_per_worker: Some(100), ..closed(5, 10) };
    let workload = Lists::one_kind(&["SELECT 1"]);
    let (result, _) = run(&workload, &driver, &spec);
    let counts = result.total.counts();
    assert_eq!((result.retired, result.retired_transactions), (1, 1));
    assert_eq!((counts.committed, counts.failed), (401, 1));
    assert_eq!(result.ended, TrialEnd::Events);
    let retired = workload.left.lock().expect("no thread panicked");
    let classes: Vec<_> = retired.iter().flatten().map(dyno_core::DbError::class).collect();
    assert_eq!((retired.len(), classes), (5, vec![ErrorClass::Other]));
}

#[test]
fn a_trial_ends_when_all_workers_have_left() {
    let faults = vec![Fault::LostAt { at: 3 * SECOND + MS / 2, session: None }];
    let spec = TrialSpec { errors: retiring(1), finish_begun: true, ..closed(4, 3_600) };
    let (result, _) = run(&Lists::one_kind(&["SELECT 1"]), &constant(MS, faults), &spec);
    assert_eq!((result.retired, result.total.counts().failed), (4, 4));
    assert!(result.length() < 4 * SECOND, "{}", result.length());
}

#[test]
fn a_session_that_can_not_be_had_ends_its_worker() {
    let faults = vec![Fault::RefuseConnects { from: 500 * MS, until: 600 * MS }];
    let errors = retiring(1);
    let spec = TrialSpec { connect_each: true, errors, ..closed(3, 1) };
    let (result, _) = run(&Lists::one_kind(&["SELECT 1"]), &constant(MS, faults.clone()), &spec);
    assert_eq!((result.retired, result.retired_transactions), (3, 3));
    // Without such a policy it ends the trial.
    let errors = ErrorPolicy { retire: false, ..retiring(1) };
    let spec = TrialSpec { errors, ..spec };
    let workload = Lists::one_kind(&["SELECT 1"]);
    let (result, _) = try_run(&workload, &constant(MS, faults), &spec, &Control::new());
    assert!(matches!(result.expect("it began").ended, TrialEnd::Aborted(_)));
}

#[test]
fn a_first_session_that_is_lost_at_once_ends_its_worker() {
    let spec = TrialSpec { finish_begun: true, errors: retiring(1), ..closed(3, 1) };
    let mut workload = Lists::one_kind(&["SELECT 1"]);
    workload.loses = Some(1);
    let reconnecting = TrialSpec { connect_each: true, ..spec.clone() };
    let (result, _) = run(&workload, &constant(MS, Vec::new()), &reconnecting);
    assert_eq!((result.retired, &result.ended), (1, &TrialEnd::Time));
    assert_eq!(result.total.counts().committed, 2_000);
    // Sessions that should last are all needed.
    let (result, _) = try_run(&workload, &constant(MS, Vec::new()), &spec, &Control::new());
    assert!(matches!(result, Err(DriveError::Connect(_))), "{result:?}");
}

#[test]
fn a_worker_that_gets_no_first_session_leaves_the_others_alone() {
    // 32 connect at once and take 9 ms; the last 8 ask when the server refuses.
    let errors = retiring(1);
    let spec = TrialSpec { connect_each: true, finish_begun: true, errors, ..closed(40, 1) };
    let workload = Lists::one_kind(&["SELECT 1"]);
    let (result, _) = run(&workload, &refusing_driver(1, 15 * MS), &spec);
    assert_eq!((result.retired, result.retired_transactions, result.in_flight), (8, 0, 0));
    assert_eq!((&result.ended, result.total.counts().committed), (&TrialEnd::Time, 3_200));
    assert_eq!(workload.left.lock().expect("no thread panicked").len(), 32);
    // A trial without any worker has a result too.
    let spec = TrialSpec { workers: 3, ..spec };
    let (result, _) = run(&Lists::one_kind(&["SELECT 1"]), &refusing_driver(0, MS), &spec);
    assert_eq!((result.retired, result.total.counts().committed), (3, 0));
    // Sessions that should last are all needed, and so they are where an error ends the trial.
    let lasting = TrialSpec { connect_each: false, ..spec.clone() };
    let errors = ErrorPolicy { retire: false, ..retiring(1) };
    for spec in [lasting, TrialSpec { errors, ..spec }] {
        let workload = Lists::one_kind(&["SELECT 1"]);
        let (result, _) = try_run(&workload, &refusing_driver(0, MS), &spec, &Control::new());
        assert!(matches!(result, Err(DriveError::Connect(_))), "{result:?}");
    }
}

/// A server that refuses connections for a time.
fn refusing_driver(from: u64, until: u64) -> SimDriver {
    SimDriver::new(SimulatedAnswers {
        connect_time: 9 * MS,
        service: Service::Constant(MS),
        faults: vec![Fault::RefuseConnects { from, until }],
        ..SimulatedAnswers::default()
    })
}
