//! Open loops: what is offered, what is done, and how late.

use crate::support::{Lists, MS, closed, constant, run};
use dyno_core::SECOND;
use dyno_drivers::sim::Fault;
use dyno_engine::{TrialEnd, TrialResult, TrialSpec};

fn offer(rate: f64, workers: u32, service: u64, seconds: u64, faults: Vec<Fault>) -> TrialResult {
    let spec = TrialSpec { rate_per_s: Some(rate), ..closed(workers, seconds) };
    run(&Lists::of(&["SELECT 1"]), &constant(service, faults), &spec).0
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
    // Of the transactions themselves only those in service, at most one per worker, took long.
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
    // What fails 2 % of the rate short of it is found too.
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
    // While the last event runs, arrivals go on; they were never asked for.
    let spec = TrialSpec {
        rate_per_s: Some(1_000.0),
        duration: None,
        events: Some(500),
        ..closed(200, 1)
    };
    let (result, _) = run(&Lists::of(&["SELECT 1"]), &constant(100 * MS, vec![]), &spec);
    assert_eq!((result.total.counts().committed, &result.ended), (500, &TrialEnd::Events));
    assert_eq!((result.offered, result.missed_rate()), (Some(500), None));
}

#[test]
fn arrivals_of_the_warm_up_are_not_offered() {
    let spec = TrialSpec { rate_per_s: Some(100.0), warmup: 20 * SECOND, ..closed(8, 20) };
    let (result, _) = run(&Lists::of(&["SELECT 1"]), &constant(MS, vec![]), &spec);
    let offered = result.offered.unwrap();
    assert!((1_800..2_200).contains(&offered), "{offered}");
    assert!(offered.abs_diff(result.total.counts().started) <= 1);
}
