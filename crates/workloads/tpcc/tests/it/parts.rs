//! Several load generators: their parts together are the trial of one, and what their workloads keep
//! adds up to what one keeps.

use crate::common::FakeDriver;
use dyno_core::{Dialect, MILLISECOND, SECOND};
use dyno_engine::{Control, TrialResult, TrialSpec, drive_simulated, merge};
use dyno_tpcc::load::TpccDatabase;
use dyno_tpcc::profile::{BMSQL_5_0, Profile, SPEC};
use dyno_tpcc::{Handover, Tpcc, TpccOptions};

const LOADED: TpccDatabase = TpccDatabase { warehouses: 20, c_last: 100 };

fn new_workload(profile: Profile) -> Tpcc {
    Tpcc::new(TpccOptions::new(profile, &LOADED, 3), &LOADED, Dialect::Mysql).unwrap()
}

fn run_trial(tpcc: &Tpcc, spec: &TrialSpec) -> TrialResult {
    let round_trip = 4 * MILLISECOND;
    let driver = FakeDriver { dialect: Dialect::Mysql, round_trip, on_round_trip: None };
    drive_simulated(tpcc, &driver, spec, &Control::new(), &mut ()).unwrap()
}

/// The handover of a part's workload, after it has traveled.
fn traveled(tpcc: &Tpcc) -> Handover {
    serde_json::from_str(&serde_json::to_string(&tpcc.leave().unwrap()).unwrap()).unwrap()
}

/// Drives a trial alone and in parts, and compares.
fn compare(profile: Profile, spec: &TrialSpec, generators: u32) -> (Tpcc, TrialResult) {
    let alone = new_workload(profile);
    let expected = run_trial(&alone, spec);
    let combined = new_workload(profile);
    let mut results = Vec::new();
    for generator in 0..generators {
        let part = new_workload(profile);
        results.push(run_trial(&part, &spec.part(generator, generators).unwrap()));
        combined.absorb(traveled(&part)).unwrap();
    }
    let merged = merge(&results).unwrap();
    assert_eq!(merged.total.counts(), expected.total.counts());
    assert_eq!(merged.total.latency(), expected.total.latency());
    assert_eq!(merged.offered, expected.offered);
    assert_eq!(combined.acknowledged(), alone.acknowledged());
    assert_eq!(combined.deliveries_left(), alone.deliveries_left());
    assert_eq!(format!("{:?}", combined.audit()), format!("{:?}", alone.audit()));
    (combined, merged)
}

#[test]
fn terminals_of_three_generators_are_those_of_one() {
    // Sessions enough, so that no terminal waits for one, whoever else is at the same generator.
    let spec =
        TrialSpec { terminals: Some(200), duration: Some(90 * SECOND), ..TrialSpec::closed(90) };
    let (tpcc, merged) = compare(SPEC, &spec, 3);
    assert!(tpcc.audit().deliveries > 10 && merged.total.counts().committed > 500);
    assert!(tpcc.audit().problems().is_empty());
}

#[test]
fn workers_of_four_generators_are_those_of_one() {
    let spec = TrialSpec {
        events_per_worker: Some(25),
        duration: None,
        loops: Some(1),
        ..TrialSpec::closed(10)
    };
    let (tpcc, merged) = compare(BMSQL_5_0, &spec, 4);
    assert_eq!(merged.total.counts().ended(), 250);
    assert!(tpcc.acknowledged().orders.acknowledged > 50);
}

#[test]
fn what_more_warehouses_have_left_is_refused_as_a_whole() {
    let large = new_workload(BMSQL_5_0);
    let spec = TrialSpec { events_per_worker: Some(20), duration: None, ..TrialSpec::closed(40) };
    run_trial(&large, &spec);
    let options = TpccOptions { warehouses: 1, ..TpccOptions::new(BMSQL_5_0, &LOADED, 3) };
    let small = Tpcc::new(options, &LOADED, Dialect::Mysql).unwrap();
    let before = small.leave().unwrap();
    let error = small.absorb(large.leave().unwrap()).unwrap_err().message;
    assert_eq!(error, "Another load generator has used more warehouses than this run.");
    assert_eq!(small.leave().unwrap(), before);
}
