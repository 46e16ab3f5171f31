//! Errors: retries, failures, the end of a trial, and what of it is counted where.

use crate::support::{Lists, MS, TRANSFER, closed, constant, run};
use dyno_core::{ErrorClass, SECOND};
use dyno_drivers::route::{NodeRouting, Routed};
use dyno_engine::{ErrorPolicy, ErrorSet, TrialEnd, TrialResult, TrialSpec};
use dyno_testkit::sim::Fault;

/// An error of this class at the statement with this number.
fn at(statement: u64, class: ErrorClass) -> Fault {
    Fault::ErrorAt { statement, class }
}

fn errors(result: &TrialResult) -> Vec<(ErrorClass, u32, &str, u64)> {
    let table = result.total.errors.0.iter();
    table.map(|line| (line.class, line.errno, line.sqlstate.as_str(), line.count)).collect()
}

#[test]
fn a_retry_is_counted_and_inside_the_latency() {
    // BEGIN, then the UPDATE meets a deadlock, ROLLBACK; the second attempt does all three.
    let driver = constant(MS, vec![at(1, ErrorClass::Deadlock)]);
    let (result, _) = run(&Lists::one_kind(&TRANSFER), &driver, &closed(1, 1));
    let counts = result.total.counts();
    assert_eq!((counts.retries, counts.failed, counts.reconnects), (1, 0, 0));
    let latency = result.total.latency();
    assert_eq!((latency.min(), latency.max()), (3 * MS, 6 * MS));
    assert_eq!(errors(&result), [(ErrorClass::Deadlock, 1213, "40001", 1)]);
    // The BEGIN of the first attempt was for nothing; ROLLBACK is the engine's, no work.
    let (work, wasted) = (result.total.work(), result.total.wasted());
    assert_eq!((wasted.others, wasted.statements()), (1, 1));
    assert_eq!((work.writes, work.others), (counts.committed, 2 * counts.committed));
    // (1000 ms - 3 ms of the first attempt) / 3 ms, the last one ends with the window.
    assert_eq!(counts.committed, 332);
}

#[test]
fn a_workload_may_go_on_with_its_transaction() {
    let driver = constant(MS, vec![at(1, ErrorClass::Deadlock)]);
    let mut lists = Lists::one_kind(&TRANSFER);
    lists.rolls_back = false;
    let (result, _) = run(&lists, &driver, &closed(1, 1));
    // BEGIN, then the UPDATE meets a deadlock; the second attempt does all three, without a ROLLBACK before.
    assert_eq!(result.total.latency().max(), 5 * MS);
    assert_eq!(result.total.counts().retries, 1);
}

#[test]
fn who_fails_for_ever_gives_up_after_ten_retries() {
    let driver =
        constant(MS, vec![Fault::ErrorEvery { period: 1, class: ErrorClass::LockTimeout }]);
    let (result, _) = run(&Lists::one_kind(&TRANSFER), &driver, &closed(2, 2));
    let counts = result.total.counts();
    // 11 attempts of 1 ms, then a pause of 10 ms: 95 times in 2 s, and 4 ms are left.
    assert_eq!((counts.failed, counts.committed, counts.retries), (2 * 95, 0, 2 * (95 * 10 + 4)));
    assert_eq!(result.total.latency().count(), 0);
    assert_eq!(result.total.errors.total(), counts.retries + counts.failed);
    assert_eq!(result.total.work().statements(), 0);
    assert_eq!(result.ended, TrialEnd::Time);
    assert!(result.workers.iter().all(|worker| worker.transactions == 0));
}

#[test]
fn errors_are_told_apart_by_class_and_code() {
    let driver = constant(
        MS,
        vec![
            at(1, ErrorClass::Deadlock),
            at(10, ErrorClass::LockTimeout),
            at(20, ErrorClass::Serialization),
            at(30, ErrorClass::Constraint),
            at(40, ErrorClass::Deadlock),
        ],
    );
    let (result, _) = run(&Lists::one_kind(&["UPDATE account"]), &driver, &closed(1, 1));
    assert_eq!(
        errors(&result),
        [
            (ErrorClass::Deadlock, 1213, "40001", 2),
            (ErrorClass::LockTimeout, 1205, "HY000", 1),
            (ErrorClass::Serialization, 0, "40001", 1),
            (ErrorClass::Constraint, 1062, "23000", 1),
        ]
    );
    let counts = result.total.counts();
    assert_eq!((counts.retries, counts.failed), (4, 1));
}

#[test]
fn a_surprise_ends_the_trial_and_keeps_what_was_measured() {
    let driver = constant(10 * MS, vec![at(50, ErrorClass::Other)]);
    let (result, _) = run(&Lists::one_kind(&["SELECT 1"]), &driver, &closed(1, 10));
    let TrialEnd::Aborted(error) = &result.ended else { panic!("{:?}", result.ended) };
    assert_eq!((error.class(), error.errno()), (ErrorClass::Other, 1105));
    let counts = result.total.counts();
    assert_eq!((counts.committed, counts.failed, result.in_flight), (50, 1, 0));
    assert_eq!(result.length(), 510 * MS);
}

#[test]
fn the_others_are_let_out_when_one_ends_the_trial() {
    let driver = constant(10 * MS, vec![at(50, ErrorClass::Other)]);
    let (result, _) = run(&Lists::one_kind(&TRANSFER), &driver, &closed(4, 3_600));
    assert!(matches!(result.ended, TrialEnd::Aborted(_)), "{:?}", result.ended);
    assert_eq!((result.total.counts().failed, result.unfinished), (1, 0));
    assert!(result.length() < SECOND, "{}", result.length());
    // Every transaction that was begun was also ended on the server.
    assert_eq!(driver.statements() % 3, (50 % 3 + 1 + 1) % 3);
}

/// A policy that repeats transactions after these errors only.
fn only(errnos: Vec<u32>) -> ErrorPolicy {
    ErrorPolicy {
        retry: ErrorSet { errnos, ..ErrorSet::default() },
        max_retries: None,
        tolerate: ErrorSet::default(),
        reconnect: false,
        retire: false,
        pause: 0,
        ..ErrorPolicy::resilient()
    }
}

#[test]
fn the_policy_decides_by_number() {
    let driver =
        constant(MS, vec![Fault::ErrorEvery { period: 7, class: ErrorClass::LockTimeout }]);
    let spec = TrialSpec { errors: only(vec![1205]), ..closed(1, 1) };
    let (result, _) = run(&Lists::one_kind(&["UPDATE account"]), &driver, &spec);
    assert_eq!((result.total.counts().retries, &result.ended), (142, &TrialEnd::Time));
    let driver = constant(MS, vec![at(3, ErrorClass::Deadlock)]);
    let (result, _) = run(&Lists::one_kind(&["UPDATE account"]), &driver, &spec);
    assert!(matches!(&result.ended, TrialEnd::Aborted(error) if error.errno() == 1213));
}

#[test]
fn no_second_attempt_begins_after_the_end() {
    // The only transaction meets a deadlock after the window has closed.
    let driver = constant(3 * SECOND, vec![at(0, ErrorClass::Deadlock)]);
    let (result, _) = run(&Lists::one_kind(&["SELECT 1"]), &driver, &closed(1, 2));
    assert_eq!((result.in_flight, result.total.counts().retries), (1, 0));
    assert_eq!(driver.statements(), 1);
}

#[test]
fn a_rollback_that_fails_is_an_error_too() {
    // UPDATE meets a deadlock, and the ROLLBACK after it finds the connection gone.
    let faults = vec![at(1, ErrorClass::Deadlock), at(2, ErrorClass::ConnectionLost)];
    let (result, _) =
        run(&Lists::one_kind(&TRANSFER), &constant(MS, faults.clone()), &closed(1, 1));
    assert_eq!(
        errors(&result),
        [(ErrorClass::Deadlock, 1213, "40001", 1), (ErrorClass::ConnectionLost, 0, "08006", 1)]
    );
    assert_eq!(result.total.counts().reconnects, 1);
    // Who must not connect again ends the trial with it.
    let policy = ErrorPolicy { reconnect: false, ..ErrorPolicy::resilient() };
    let with = |errors: ErrorPolicy| {
        let spec = TrialSpec { errors, ..closed(1, 1) };
        run(&Lists::one_kind(&TRANSFER), &constant(MS, faults.clone()), &spec).0
    };
    let result = with(policy.clone());
    assert!(matches!(&result.ended, TrialEnd::Aborted(error) if error.is_fatal()), "{result:?}");
    // Where workers leave one by one, only this one does: after a retry as after the last attempt.
    for max_retries in [Some(0), None] {
        let result = with(ErrorPolicy { retire: true, max_retries, ..policy.clone() });
        assert!(!matches!(result.ended, TrialEnd::Aborted(_)), "{result:?}");
        assert_eq!(result.retired, 1);
    }
}

/// Error 1047, like that of a node of Galera that is not ready, which refuses each statement.
#[test]
fn a_rollback_that_meets_an_ignored_error_ends_nothing() {
    let faults = vec![at(1, ErrorClass::Deadlock), at(2, ErrorClass::Deadlock)];
    let errors = ErrorPolicy { reconnect: false, ..ErrorPolicy::resilient() };
    let spec = TrialSpec { errors, ..closed(1, 1) };
    let (result, _) = run(&Lists::one_kind(&TRANSFER), &constant(MS, faults), &spec);
    assert!(!matches!(result.ended, TrialEnd::Aborted(_)), "{result:?}");
    assert_eq!(result.total.counts().retries, 1);
    assert_eq!(self::errors(&result), [(ErrorClass::Deadlock, 1213, "40001", 2)]);
}

#[test]
fn a_worker_that_ends_the_trial_rolls_its_transaction_back() {
    // BEGIN, UPDATE and ROLLBACK; pgbench's clients leave without the latter.
    for (retire, statements) in [(false, 3), (true, 2)] {
        let driver = constant(MS, vec![at(1, ErrorClass::Other)]);
        let errors = ErrorPolicy { retire, ..only(Vec::new()) };
        let (result, _) =
            run(&Lists::one_kind(&TRANSFER), &driver, &TrialSpec { errors, ..closed(1, 1) });
        assert_eq!(result.total.counts().failed, 1);
        assert_eq!(driver.statements(), statements);
    }
}

/// The server hangs from 2 s to 8 s; what asks it waits.
fn frozen() -> dyno_testkit::sim::SimDriver {
    constant(MS, vec![Fault::Stall { from: 2 * SECOND, until: 8 * SECOND }])
}

#[test]
fn without_a_limit_workers_wait_as_long_as_the_server_is_frozen() {
    let (result, _) = run(&Lists::one_kind(&["UPDATE account"]), &frozen(), &closed(2, 10));
    assert_eq!((result.total.errors.total(), result.total.counts().reconnects), (0, 0));
    assert!(result.total.latency().max() >= 6 * SECOND - MS);
}

#[test]
fn an_answer_that_takes_too_long_is_given_up_and_the_session_replaced() {
    let spec =
        TrialSpec { errors: ErrorPolicy::following(), answer_limit: Some(SECOND), ..closed(2, 10) };
    let (result, _) = run(&Lists::one_kind(&["UPDATE account"]), &frozen(), &spec);
    let counts = result.total.counts();
    // Each worker gives up one transaction, and then one session after the other, once a second.
    assert_eq!((counts.failed, counts.reconnects), (2, 2));
    let total = result.total.errors.total();
    assert!((8..=12).contains(&total), "{total}");
    assert_eq!(errors(&result), [(ErrorClass::ConnectionLost, 0, "08006", total)]);
    assert_eq!(result.ended, TrialEnd::Time);
    // The limit costs nothing where answers come in time.
    assert!(counts.committed >= 2 * 3_900, "{counts:?}");
    assert!(result.total.latency().max() <= SECOND + 100 * MS);
}

#[test]
fn sessions_to_a_server_that_takes_no_writes_are_replaced() {
    for (errnos, reconnects) in [(vec![], 0), (vec![1062], 1)] {
        let driver = constant(MS, vec![at(10, ErrorClass::Constraint)]);
        let replace = ErrorSet { errnos, ..ErrorSet::default() };
        let errors = ErrorPolicy { replace, ..ErrorPolicy::following() };
        let spec = TrialSpec { errors, ..closed(1, 1) };
        let (result, _) = run(&Lists::one_kind(&["UPDATE account"]), &driver, &spec);
        let counts = result.total.counts();
        assert_eq!(counts.reconnects, reconnects);
        assert!(reconnects == 0 || counts.failed == 1);
    }
    let policy = ErrorPolicy::following();
    for (errno, state, is_replaced) in
        [(1290, *b"HY000", true), (0, *b"25006", true), (1213, *b"40001", false)]
    {
        let error = dyno_core::DbError::server(ErrorClass::Other, errno, state, "no");
        assert_eq!(policy.replace.contains(&error), is_replaced, "{error}");
    }
}

#[test]
fn workers_of_a_node_that_is_gone_go_on_at_another_one() {
    let gone = vec![
        Fault::LostAt { at: SECOND, session: None },
        Fault::RefuseConnects { from: SECOND, until: 10 * SECOND },
    ];
    let nodes = vec![constant(MS, gone), constant(MS, Vec::new())];
    let routed = Routed::new(nodes, 0, NodeRouting::Spread(vec![0, 1]), NodeRouting::Primary)
        .expect("a route");
    let (result, _) = run(&Lists::one_kind(&["SELECT 1"]), &routed, &closed(4, 3));
    let counts = result.total.counts();
    // Two workers lose one transaction each, and a moment.
    assert_eq!((counts.failed, counts.reconnects, result.total.errors.total()), (2, 2, 2));
    assert!(counts.committed >= 4 * 3_000 - 2 * 100, "{counts:?}");
    let [first, second] = [0, 1].map(|node| routed.nodes[node].statements());
    assert!(first <= 2 * 1_001 && second >= 4 * 3_000 - 2 * 1_100, "{first}, {second}");
}
