//! Runs of two targets in interleaved pairs.

use super::{Shape, run, trial};
use dyno_facts::ComparisonFacts;
use dyno_store::{RunData, TrialData};

/// A run of `maria` and `postgres` at one load level, pair after pair, in which each pair's
/// throughputs are given.
pub(crate) fn paired(pairs: &[(f64, f64)]) -> RunData {
    paired_at(8, 40, pairs)
}

/// Pairs at this many workers, in windows of this many seconds.
pub(crate) fn paired_at(workers: u32, seconds: u32, pairs: &[(f64, f64)]) -> RunData {
    let mut trials = Vec::new();
    for (index, (a, b)) in pairs.iter().enumerate() {
        let sides = [("maria", *a), ("postgres", *b)];
        // Every other pair begins with the other one, as drawn lots do.
        let order = if index % 2 == 0 { [0, 1] } else { [1, 0] };
        for place in order {
            let (target, tps) = sides[place];
            let number = trials.len() as u32 + 1;
            trials.push(at_rate(number, target, workers, index as u32 + 1, seconds, tps));
        }
    }
    run(&["maria", "postgres"], trials)
}

/// A trial with exactly this throughput.
pub(crate) fn at_rate(
    number: u32,
    target: &str,
    workers: u32,
    repeat: u32,
    seconds: u32,
    tps: f64,
) -> TrialData {
    let shape = Shape {
        experiment: "read_only",
        target,
        workers,
        repeat,
        rate_per_s: None,
        speed: 1.0,
        seconds,
        away_at: None,
    };
    let mut data = trial(number, &shape);
    let factor = tps / data.summary.tps;
    data.summary.tps = tps;
    data.summary.qps *= factor;
    for us in [
        &mut data.summary.latency.mean_us,
        &mut data.summary.latency.p50_us,
        &mut data.summary.latency.p95_us,
        &mut data.summary.latency.p99_us,
    ] {
        *us /= factor;
    }
    data
}

/// Says in the run's header what is compared.
pub(crate) fn comparing(run: &mut RunData, facts: ComparisonFacts) {
    run.header.experiments[0].comparison = Some(facts);
}

/// Six pairs with every kind of gate: kept, broken, inconclusive, unreadable.
pub(crate) fn gated_run() -> RunData {
    let mut run = paired(&[
        (1000.0, 1101.0),
        (1004.0, 1098.0),
        (997.0, 1103.0),
        (1002.0, 1095.0),
        (999.0, 1104.0),
        (1001.0, 1100.0),
    ]);
    let gates = ["tps.ratio.low > 0.97", "tps.ratio < 1.05", "p99_ms < 23.1", "speed > 1"];
    run.header.experiments[0].gates = gates.map(str::to_owned).to_vec();
    run
}
