//! Closed loops: throughput, latency, warm-up, mix, random streams.

use crate::support::{Kind, Lists, MS, TRANSFER, closed, constant, run};
use dyno_core::{Outcome, SECOND};
use dyno_engine::{TrialEnd, TrialSpec};
use dyno_testkit::sim::{Fault, SimDriver, SimulatedAnswers, SimulatedStatement};
use std::collections::{BTreeMap, BTreeSet};

#[test]
fn throughput_is_workers_by_service_time() {
    let driver = constant(2 * MS, vec![]);
    let (result, seen) = run(&Lists::one_kind(&TRANSFER), &driver, &closed(5, 12));
    // 6 ms each: 2,000 per worker in 12 s, the last of which ends as the window closes.
    assert_eq!(result.total.counts().committed, 5 * 1_999);
    assert_eq!((result.in_flight, result.unfinished, &result.ended), (5, 0, &TrialEnd::Time));
    assert_eq!((result.offered, result.missed_rate()), (None, None));
    let latency = result.total.latency();
    assert_eq!((latency.min(), latency.max(), latency.mean()), (6 * MS, 6 * MS, 6e6));
    let work = result.total.work();
    assert_eq!((work.reads, work.writes, work.others), (0, 5 * 1_999, 2 * 5 * 1_999));
    assert_eq!(result.total.wasted().statements(), 0);
    assert!(seen.commits()[..11].iter().all(|&commits| (830..=835).contains(&commits)));
    for worker in &result.workers {
        assert_eq!((worker.transactions, worker.busy), (1_999, 1_999 * 6 * MS));
    }
}

#[test]
fn warm_up_is_not_measured() {
    // All that is unusual happens in the warm-up: a stall, an error, a lost connection.
    let driver = constant(
        10 * MS,
        vec![
            Fault::Stall { from: SECOND, until: 2 * SECOND },
            Fault::ErrorAt { statement: 3, class: dyno_core::ErrorClass::Deadlock },
            Fault::LostAt { at: 500 * MS, session: Some(1) },
        ],
    );
    let spec = TrialSpec { warmup: 3 * SECOND + 5 * MS, ..closed(2, 10) };
    let (result, seen) = run(&Lists::one_kind(&["SELECT 1"]), &driver, &spec);
    let counts = result.total.counts();
    assert_eq!((counts.retries, counts.reconnects, counts.failed), (0, 0, 0));
    assert_eq!(result.total.errors.total(), 0);
    // Latency counts from the begin, also when that was in the warm-up.
    assert_eq!(result.total.latency().max(), 10 * MS);
    assert_eq!(counts.committed, 2 * 1_000);
    assert_eq!(result.in_flight, 2);
    assert_eq!((result.window.opens, result.length()), (3 * SECOND + 5 * MS, 10 * SECOND));
    // 4 of warm-up (the last one short), 10 measured.
    let begins: Vec<_> = seen.0.iter().map(|interval| interval.begins_s).collect();
    assert_eq!((begins.len(), begins[0], begins[4], begins[13]), (14, -3.005, 0.0, 9.0));
}

#[test]
fn kinds_are_picked_by_weight() {
    let outcomes = [Outcome::Committed, Outcome::RolledBack, Outcome::Skipped];
    let kinds = [45, 43, 4, 4, 4, 0].iter().enumerate().map(|(number, &weight)| Kind {
        weight,
        statements: vec!["SELECT 1"],
        outcome: outcomes[number % 3],
    });
    let driver = constant(MS, vec![]);
    let (result, _) = run(&Lists::new(kinds.collect()), &driver, &closed(10, 20));
    let started: Vec<_> = result.total.kinds.iter().map(|kind| kind.counts.started).collect();
    let total: u64 = started.iter().sum();
    assert_eq!(started[5], 0);
    for (number, weight) in [45.0, 43.0, 4.0, 4.0, 4.0].into_iter().enumerate() {
        let percent = started[number] as f64 * 100.0 / total as f64;
        // 200,000 draws: a standard deviation of at most 0.11.
        assert!((percent - weight).abs() < 0.6, "kind {number}: {percent}%");
    }
    let counts = result.total.counts();
    assert!(counts.committed > 0 && counts.rolled_back > 0 && counts.skipped > 0);
    // Work that was skipped doesn't count as work.
    assert_eq!(result.total.work().reads, counts.committed + counts.rolled_back);
}

/// Runs a trial from this seed; returns the statements of the server.
fn log(seed: u64) -> Vec<SimulatedStatement> {
    let driver = SimDriver::new(SimulatedAnswers {
        service: dyno_testkit::sim::Service::Exponential(3 * MS),
        faults: vec![
            Fault::ErrorEvery { period: 50, class: dyno_core::ErrorClass::LockTimeout },
            Fault::LostAt { at: SECOND, session: None },
        ],
        keep_log: true,
        ..SimulatedAnswers::default()
    });
    let kinds = [(3, Outcome::Committed), (1, Outcome::RolledBack)];
    let kinds =
        kinds.map(|(weight, outcome)| Kind { weight, statements: TRANSFER.to_vec(), outcome });
    let workload = Lists::new(kinds.into());
    run(&workload, &driver, &TrialSpec { seed, rate_per_s: Some(300.0), ..closed(4, 3) });
    driver.log()
}

#[test]
fn the_same_seed_is_the_same_run() {
    let first = log(7);
    assert!(first.len() > 1_000, "{}", first.len());
    assert_eq!(first, log(7));
    assert_ne!(first, log(8));
}

#[test]
fn workers_have_streams_of_their_own() {
    let mut streams: BTreeMap<u32, Vec<String>> = BTreeMap::new();
    for line in log(7).into_iter().filter(|line| line.sql.starts_with("UPDATE")) {
        streams.entry(line.session).or_default().extend(line.params);
    }
    assert_eq!(streams.len(), 4);
    let begins: BTreeSet<_> = streams.values().map(|stream| stream[..20].to_vec()).collect();
    assert_eq!(begins.len(), 4);
}
