//! Connections: refused, slow, lost, found again.

use crate::support::{Lists, MS, TRANSFER, closed, constant, run, try_run};
use dyno_core::{Cause, ErrorClass, SECOND};
use dyno_engine::{Control, DriveError, ErrorPolicy, TrialEnd, TrialSpec};
use dyno_testkit::sim::{Fault, SimDriver, SimulatedAnswers};

#[test]
fn lost_connections_are_replaced() {
    let driver = constant(10 * MS, vec![Fault::LostAt { at: 3 * SECOND + MS, session: None }]);
    let (result, _) = run(&Lists::one_kind(&TRANSFER), &driver, &closed(4, 10));
    let counts = result.total.counts();
    assert_eq!((counts.failed, counts.reconnects, counts.retries), (4, 4, 0));
    assert_eq!((&result.ended, driver.connects()), (&TrialEnd::Time, 8));
    let error = &result.total.errors.0[0];
    assert_eq!((error.class, error.count), (ErrorClass::ConnectionLost, 4));
    // BEGIN, UPDATE and COMMIT of 100 transactions in 3 s each; 7 s - 10 ms of pause after it.
    assert_eq!(counts.committed, 4 * (100 + 232));
}

#[test]
fn a_server_that_is_away_is_a_gap() {
    let faults = vec![
        Fault::LostAt { at: 3 * SECOND, session: None },
        Fault::RefuseConnects { from: 0, until: 0 },
        Fault::RefuseConnects { from: 3 * SECOND, until: 6 * SECOND },
    ];
    let (result, seen) = run(&Lists::one_kind(&TRANSFER), &constant(MS, faults), &closed(8, 10));
    let commits = seen.commits();
    assert!(commits[..3].iter().all(|&commits| commits > 2_600), "{commits:?}");
    assert_eq!(commits[3..6], [0, 0, 0]);
    assert!(commits[7..].iter().all(|&commits| commits > 2_600), "{commits:?}");
    let counts = result.total.counts();
    assert_eq!((counts.failed, counts.reconnects), (8, 8));
    // Refused connects are errors, and grow rarer: at most every half second in the end.
    let refused_connects = result.total.errors.0.iter().find(|error| error.sqlstate == "08001");
    let refused_connects = refused_connects.expect("connects were refused").count;
    assert!((8 * 9..8 * 18).contains(&refused_connects), "{refused_connects}");
}

#[test]
fn a_server_that_stays_away_does_not_hang_the_trial() {
    let faults = vec![
        Fault::LostAt { at: 3 * SECOND, session: None },
        Fault::RefuseConnects { from: 3 * SECOND, until: u64::MAX },
    ];
    let (result, seen) = run(&Lists::one_kind(&TRANSFER), &constant(MS, faults), &closed(8, 10));
    assert_eq!((&result.ended, result.total.counts().reconnects), (&TrialEnd::Time, 0));
    assert_eq!((result.in_flight, result.unfinished), (0, 0));
    assert_eq!(seen.commits()[3..], [0; 7]);
}

#[test]
fn a_server_that_is_away_for_20_s_ends_the_trial_unless_the_policy_endures_it() {
    let faults = vec![
        Fault::LostAt { at: 3 * SECOND, session: None },
        Fault::RefuseConnects { from: 3 * SECOND, until: u64::MAX },
    ];
    let (result, seen) =
        run(&Lists::one_kind(&TRANSFER), &constant(MS, faults.clone()), &closed(8, 60));
    let TrialEnd::Aborted(error) = &result.ended else { panic!("{:?}", result.ended) };
    assert_eq!(error.cause(), Cause::Unreachable);
    assert!((23..25).contains(&seen.commits().len()), "{:?}", seen.commits());
    let spec = TrialSpec { errors: ErrorPolicy::enduring(), ..closed(8, 60) };
    let (result, _) = run(&Lists::one_kind(&TRANSFER), &constant(MS, faults), &spec);
    assert_eq!(result.ended, TrialEnd::Time);
}

#[test]
fn a_connect_that_hangs_is_counted_and_given_up() {
    // The server takes connections and says nothing for eight seconds.
    let faults = vec![
        Fault::LostAt { at: SECOND, session: None },
        Fault::Stall { from: SECOND, until: 9 * SECOND },
    ];
    let driver = SimDriver::new(SimulatedAnswers {
        connect_time: MS,
        faults,
        ..SimulatedAnswers::default()
    });
    let spec = TrialSpec { connect_limit: 2 * SECOND, ..closed(1, 20) };
    let (result, _) = run(&Lists::one_kind(&TRANSFER), &driver, &spec);
    let counts = result.total.counts();
    assert_eq!((counts.failed, counts.reconnects), (1, 1));
    let hung: u64 = result
        .total
        .errors
        .0
        .iter()
        .filter(|error| error.sqlstate == "08001")
        .map(|error| error.count)
        .sum();
    assert_eq!(hung, 3, "{:?}", result.total.errors);
    // One that only the end cuts off is none of these errors.
    let spec = TrialSpec { connect_limit: 2 * SECOND, ..closed(1, 2) };
    let (result, _) = run(&Lists::one_kind(&TRANSFER), &driver, &spec);
    assert!(result.total.errors.0.iter().all(|error| error.sqlstate != "08001"), "{result:?}");
}

#[test]
fn without_reconnect_a_lost_connection_ends_the_trial() {
    let driver = constant(10 * MS, vec![Fault::LostAt { at: 3 * SECOND, session: Some(2) }]);
    let policy = ErrorPolicy { reconnect: false, ..ErrorPolicy::resilient() };
    let spec = TrialSpec { errors: policy, ..closed(4, 10) };
    let (result, _) = run(&Lists::one_kind(&TRANSFER), &driver, &spec);
    assert!(matches!(&result.ended, TrialEnd::Aborted(error) if error.is_fatal()));
    assert_eq!(result.total.counts().failed, 1);
    assert_eq!(driver.connects(), 4);
}

#[test]
fn lost_connections_of_idle_workers_are_noticed_with_the_next_transaction() {
    let driver = constant(MS, vec![Fault::LostAt { at: 3 * SECOND, session: None }]);
    let spec = TrialSpec { rate_per_s: Some(10.0), ..closed(5, 60) };
    let (result, _) = run(&Lists::one_kind(&TRANSFER), &driver, &spec);
    let counts = result.total.counts();
    assert_eq!((counts.failed, counts.reconnects), (5, 5));
    assert_eq!(result.missed_rate(), None);
}

#[test]
fn a_refused_connect_before_the_start_is_an_error() {
    let driver = constant(MS, vec![Fault::RefuseConnects { from: 0, until: SECOND }]);
    let (result, _) =
        try_run(&Lists::one_kind(&TRANSFER), &driver, &closed(40, 10), &Control::new());
    let Err(DriveError::Connect(error)) = result else { panic!("{result:?}") };
    assert_eq!(error.cause(), Cause::Unreachable);
    assert_eq!(driver.statements(), 0);
}

#[test]
fn a_connect_that_hangs_before_the_start_is_an_error() {
    let driver = SimDriver::new(SimulatedAnswers {
        connect_time: 100 * SECOND,
        ..SimulatedAnswers::default()
    });
    let (result, _) =
        try_run(&Lists::one_kind(&TRANSFER), &driver, &closed(40, 10), &Control::new());
    let Err(DriveError::Connect(error)) = result else { panic!("{result:?}") };
    assert!(error.message().contains("60 s"), "{error}");
}

#[test]
fn connecting_is_outside_of_the_window() {
    let driver = SimDriver::new(SimulatedAnswers {
        connect_time: 2 * SECOND,
        ..SimulatedAnswers::default()
    });
    // 40 workers, 32 of which connect at once.
    let (result, _) = run(&Lists::one_kind(&["SELECT 1"]), &driver, &closed(40, 1));
    assert!((4 * SECOND..5 * SECOND).contains(&result.connect), "{}", result.connect);
    assert_eq!((result.length(), result.total.counts().committed), (SECOND, 40 * 999));
}
