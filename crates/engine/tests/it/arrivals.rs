//! Open loops: what is offered, what is done, and how late.

use crate::support::{Lists, MS, closed, constant, run};
use dyno_core::SECOND;
use dyno_engine::record::{Awaited, Frame};
use dyno_engine::{TrialEnd, TrialResult, TrialSpec};
use dyno_testkit::sim::{Fault, Service, SimDriver, SimulatedAnswers};

/// Runs a trial at this rate on a server with this service time.
fn offer(rate: f64, workers: u32, service: u64, seconds: u64, faults: Vec<Fault>) -> TrialResult {
    let spec = TrialSpec { rate_per_s: Some(rate), ..closed(workers, seconds) };
    run(&Lists::one_kind(&["SELECT 1"]), &constant(service, faults), &spec).0
}

#[test]
fn a_rate_within_capacity_is_delivered_on_time() {
    let result = offer(1_000.0, 64, 5 * MS, 60, vec![]);
    let offered = result.offered.unwrap();
    // 60,000 with a standard deviation of 245.
    assert!((58_800..61_200).contains(&offered), "{offered}");
    let counts = result.total.counts();
    assert_eq!(counts.started, offered);
    assert_eq!(result.missed_rate(), None);
    // Never 64 at once: nothing waits, every latency is the service time.
    assert_eq!(result.total.latency().max(), 5 * MS);
    assert_eq!(result.total.lateness.unwrap().max(), 0);
}

#[test]
fn latency_counts_from_the_due_time() {
    let stall = Fault::Stall { from: 4 * SECOND, until: 5 * SECOND };
    let result = offer(1_000.0, 32, MS, 10, vec![stall]);
    assert_eq!(result.missed_rate(), None);
    // The arrivals of one second of ten waited for 0 to 1 s, evenly: the last per cent over 0.9 s.
    let p99_ms = result.total.latency().percentile(99.0) / MS;
    assert!((870..960).contains(&p99_ms), "{p99_ms} ms");
    // Among the transactions only those in service, at most one per worker, took long.
    let service = result.total.service.as_ref().unwrap();
    assert!(service.percentile(99.0) <= MS + MS / 100);
    assert!((990 * MS..=1_001 * MS).contains(&service.max()), "{}", service.max());
    let lateness = result.total.lateness.as_ref().unwrap();
    assert!(lateness.percentile(99.0) > 800 * MS);
}

#[test]
fn a_missed_rate_is_found() {
    // Two workers of 10 ms do 200 per second.
    let result = offer(250.0, 2, 10 * MS, 60, vec![]);
    let share = result.missed_rate().expect("the rate was missed");
    assert!((0.77..0.83).contains(&share), "{share}");
    // Arrivals pile up until the end: the last ones wait for a fifth of a minute.
    assert!(result.total.latency().max() > 10 * SECOND);
    let fine = offer(150.0, 2, 10 * MS, 60, vec![]);
    assert_eq!(fine.missed_rate(), None);
    // What fails 2% of the rate short of it is found too.
    assert!(offer(204.0, 2, 10 * MS, 600, vec![]).missed_rate().is_some());
}

#[test]
fn what_is_in_flight_at_the_end_does_not_miss_a_rate() {
    // About 40 arrivals of 400 ms: eight of them are in flight at the end, all begun on time.
    let result = offer(20.0, 64, 400 * MS, 2, vec![]);
    assert!(result.in_flight > 2, "{}", result.in_flight);
    assert_eq!(result.missed_rate(), None);
}

#[test]
fn a_count_of_events_does_not_miss_a_rate() {
    // While the last event runs, arrivals continue; they were never asked for.
    let spec = TrialSpec {
        rate_per_s: Some(1_000.0),
        duration: None,
        events: Some(500),
        ..closed(200, 1)
    };
    let (result, _) = run(&Lists::one_kind(&["SELECT 1"]), &constant(100 * MS, vec![]), &spec);
    assert_eq!((result.total.counts().committed, &result.ended), (500, &TrialEnd::Events));
    assert_eq!((result.offered, result.missed_rate()), (Some(500), None));
}

#[test]
fn arrivals_of_the_warm_up_are_not_offered() {
    let spec = TrialSpec { rate_per_s: Some(100.0), warmup: 20 * SECOND, ..closed(8, 20) };
    let (result, _) = run(&Lists::one_kind(&["SELECT 1"]), &constant(MS, vec![]), &spec);
    let offered = result.offered.unwrap();
    assert!((1_800..2_200).contains(&offered), "{offered}");
    assert!(offered.abs_diff(result.total.counts().started) <= 1);
}

/// 64 workers of 10 ms on average, busy for nine tenths of the time, on this number of loops.
fn at_ninety_per_cent(loops: u32, rate_each_loop: bool) -> TrialResult {
    let spec = TrialSpec {
        rate_per_s: Some(0.9 * 64.0 / 0.010),
        loops: Some(loops),
        rate_each_loop,
        warmup: SECOND,
        ..closed(64, 6)
    };
    let service = Service::Exponential(10 * MS);
    let driver = SimDriver::new(SimulatedAnswers { service, ..SimulatedAnswers::default() });
    run(&Lists::one_kind(&["SELECT 1"]), &driver, &spec).0
}

fn p99_wait_ms(result: &TrialResult) -> f64 {
    result.total.lateness.as_ref().unwrap().percentile(99.0) as f64 / MS as f64
}

#[test]
fn waits_do_not_depend_on_the_number_of_loops() {
    let single = at_ninety_per_cent(1, false);
    assert!(single.total.counts().committed > 30_000);
    // Erlang's C says 5 ms: half a service time.
    let wait_ms = p99_wait_ms(&single);
    assert!((2.5..10.0).contains(&wait_ms), "{wait_ms}");
    for loops in [4, 16, 64] {
        let many = at_ninety_per_cent(loops, false);
        let apart = p99_wait_ms(&many) / wait_ms;
        assert!((0.9..1.1).contains(&apart), "{loops} loops: {apart}");
        assert_eq!(many.offered, single.offered, "the same arrivals");
        // Time is free here: who waits for an arrival begins it at once, and others wait for workers only.
        let awaited = many.total.awaited;
        assert!(awaited.arrivals > 0 && awaited.latest == 0, "{awaited:?}");
        assert!(figures(&many) == figures(&single), "{loops} loops");
    }
    // A queue for each loop, as pgbench's threads have it: four workers wait longer than 64, one the longest.
    let (sixteen, per_loop) = (at_ninety_per_cent(16, true), at_ninety_per_cent(64, true));
    assert!(p99_wait_ms(&sixteen) > 8.0 * wait_ms, "{}", p99_wait_ms(&sixteen));
    assert!(p99_wait_ms(&per_loop) > 2.0 * p99_wait_ms(&sixteen), "{}", p99_wait_ms(&per_loop));
}

/// All but the CPU that loops used.
fn figures(result: &TrialResult) -> (Frame, u64, Awaited) {
    let total = Frame { cpu_ns: 0, ..result.total.clone() };
    (total, result.in_flight, result.total.awaited)
}
