//! Random scripts of faults: whatever happens, all transactions are accounted for, the trial ends, and
//! the commits are those that the server saw.

use crate::support::{Lists, MS, TRANSFER, closed, constant, run, try_run};
use dyno_core::{ErrorClass, Nanos, SECOND};
use dyno_engine::{Control, ErrorPolicy, TrialEnd, TrialSpec};
use dyno_testkit::sim::{Fault, Service, SimDriver, SimulatedAnswers};
use proptest::prelude::*;

fn class() -> impl Strategy<Value = ErrorClass> {
    proptest::sample::select(ErrorClass::ALL.to_vec())
}

/// Times that begin before `latest` and last at most 3 s.
fn span(latest: Nanos) -> impl Strategy<Value = (Nanos, Nanos)> {
    (0..latest, 0..3 * SECOND).prop_map(|(from, length)| (from, from + length))
}

fn fault() -> impl Strategy<Value = Fault> {
    prop_oneof![
        (0..2_000_u64, class()).prop_map(|(statement, class)| Fault::ErrorAt { statement, class }),
        (1..200_u64, class()).prop_map(|(period, class)| Fault::ErrorEvery { period, class }),
        (1..5 * SECOND, proptest::option::of(0..8_u32))
            .prop_map(|(at, session)| Fault::LostAt { at, session }),
        span(5 * SECOND).prop_map(|(from, until)| Fault::RefuseConnects { from: from + 1, until }),
        span(5 * SECOND).prop_map(|(from, until)| Fault::Stall { from, until }),
    ]
}

/// Servers with all kinds of answers and faults.
fn script() -> impl Strategy<Value = SimulatedAnswers> {
    let service = prop_oneof![
        (MS..20 * MS).prop_map(Service::Constant),
        (MS..20 * MS).prop_map(Service::Exponential),
    ];
    (service, proptest::collection::vec(fault(), 0..6), 0..2 * MS, any::<u64>()).prop_map(
        |(service, faults, connect_time, seed)| SimulatedAnswers {
            service,
            faults,
            connect_time,
            seed,
            keep_log: true,
            ..SimulatedAnswers::default()
        },
    )
}

/// Trials of a few seconds with all kinds of limits.
fn spec() -> impl Strategy<Value = TrialSpec> {
    let flags = (any::<bool>(), any::<bool>());
    let policy = (proptest::option::of(0..3_u32), flags, 0..2 * MS).prop_map(
        |(max_retries, (reconnect, retire), pause)| ErrorPolicy {
            max_retries,
            reconnect,
            retire,
            pause,
            ..ErrorPolicy::resilient()
        },
    );
    let ends = (proptest::option::of(0..500_u64), proptest::option::of(0..6 * SECOND))
        .prop_map(|(events, duration)| (events, duration.or(Some(5 * SECOND))));
    let rate = (proptest::option::of(10.0..2_000.0_f64), proptest::option::of(0..50 * MS));
    let pgbench = (any::<bool>(), any::<bool>(), proptest::option::of(0..200_u64));
    let fields = (1..9_u32, rate, 0..3 * SECOND, ends, 100 * MS..2 * SECOND, policy, pgbench);
    fields.prop_map(
        |(
            workers,
            (rate_per_s, late_limit),
            warmup,
            (events, duration),
            interval,
            errors,
            more,
        )| TrialSpec {
            late_limit,
            finish_begun: more.0,
            connect_each: more.1,
            events_per_worker: more.2,
            rate_per_s,
            warmup,
            events,
            duration,
            interval,
            errors,
            drain: SECOND,
            ..TrialSpec::closed(workers)
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    // The identity itself is asserted by `try_run`.
    #[test]
    fn every_transaction_is_accounted_for(script in script(), spec in spec(), transfer: bool) {
        let driver = SimDriver::new(script);
        let statements: &[&str] = if transfer { &crate::support::TRANSFER } else { &["COMMIT"] };
        let (result, _) = try_run(&Lists::one_kind(statements), &driver, &spec, &Control::new());
        let Ok(result) = result else { return Ok(()) };
        let counts = result.total.counts();
        let window = result.window.opens..result.window.closes;
        let commits = driver.log().iter().filter(|line| {
            line.sql == "COMMIT" && line.error.is_none() && window.contains(&line.ended)
        }).count() as u64;
        // A window that closes early closes with its last answer.
        let last = driver.log().iter().filter(|line| {
            line.sql == "COMMIT" && line.error.is_none() && line.ended == window.end
        }).count() as u64;
        prop_assert!((commits..=commits + last).contains(&counts.committed), "{commits} + {last}: {counts:?}");
        if let Some(events) = spec.events {
            prop_assert!(counts.started <= events.max(u64::from(spec.workers)), "{counts:?} of {events}");
            let is_total = spec.events_per_worker.is_none() && events > u64::from(spec.workers);
            if result.ended == TrialEnd::Events && is_total {
                prop_assert_eq!(counts.started, events);
            }
        }
        if counts.failed == 0 && matches!(result.ended, TrialEnd::Time | TrialEnd::Events) && counts.retries == 0 {
            prop_assert_eq!(result.total.wasted().statements(), 0);
        }
    }
}

/// The writes of a session are gone if it ends within a transaction, as with autocommit = 0: those figures are none.
#[test]
fn what_the_server_never_committed_fails_the_trial() {
    const OPEN: [&str; 2] = ["BEGIN", "UPDATE account"];
    let spec = closed(2, 2);
    assert_eq!(run_to_end(&Lists::one_kind(&TRANSFER), &spec), TrialEnd::Time);
    // All but those in flight at the end: 2 ms each.
    let discarded_count = count_discarded(run_to_end(&Lists::one_kind(&OPEN), &spec));
    assert!((1_996..=2_002).contains(&discarded_count), "{discarded_count}");
    let reconnecting = TrialSpec { connect_each: true, ..spec.clone() };
    assert!(count_discarded(run_to_end(&Lists::one_kind(&OPEN), &reconnecting)) > 1_900);
    // Who reads only has lost nothing, and who commits at the end neither.
    assert_eq!(run_to_end(&Lists::one_kind(&["BEGIN", "SELECT 1"]), &spec), TrialEnd::Time);
    let mut batch = Lists::one_kind(&OPEN);
    batch.farewell = Some("COMMIT");
    assert_eq!(run_to_end(&batch, &spec), TrialEnd::Time);
}

fn run_to_end(workload: &Lists<'_>, spec: &TrialSpec) -> TrialEnd {
    let (result, _) = run(workload, &constant(MS, vec![]), spec);
    assert!(result.total.counts().committed > 100);
    result.ended
}

fn count_discarded(ended: TrialEnd) -> u64 {
    match ended {
        TrialEnd::Uncommitted(transactions) => transactions,
        other => panic!("{other:?}"),
    }
}

#[test]
fn scans_that_statements_do_not_explain_are_told() {
    for (touches, scans, is_reported) in [
        // More than ten times what they have to read, and more than a small table has.
        (Some(1), [100_100, 100], true),
        (Some(1), [100_000, 100], false),
        (Some(200), [200_100, 100], true),
        (Some(200), [200_000, 100], false),
        // The user's own statements.
        (None, [100_100, 100], false),
    ] {
        let answers = SimulatedAnswers { scans, ..SimulatedAnswers::default() };
        let mut workload = Lists::one_kind(&["SELECT 1"]);
        workload.touches = touches;
        let reported = run(&workload, &SimDriver::new(answers), &closed(2, 1)).0.scans();
        let reported = reported.map(|reported| [reported.rows, reported.statements]);
        assert_eq!(reported, is_reported.then_some(scans));
    }
}
