//! Throughput against concurrency, described by the Universal Scalability Law.

use crate::evidence::{Bounds, Evidence, Experiment, Point, Scaling, figure_of};
use crate::format;
use crate::text::Message;
use dyno_facts::say;
use dyno_statistics::Metric;
use dyno_statistics::usl::{self, AsymptoticBounds, ScalingPeak, Usl};

/// Places at which a curve is drawn.
const STEPS: usize = 48;

/// Every experiment and target with enough load levels in a closed loop without pauses.
pub(super) fn all(evidence: &Evidence) -> Vec<Scaling> {
    let mut rows = Vec::new();
    for (index, experiment) in evidence.experiments.iter().enumerate() {
        for target in &evidence.targets {
            rows.extend(of_target(evidence, experiment, index, &target.label));
        }
    }
    rows
}

fn of_target(
    evidence: &Evidence,
    experiment: &Experiment,
    experiment_index: usize,
    target: &str,
) -> Option<Scaling> {
    let is_own = |point: &&Point| {
        point.target == target
            && point.status == "complete"
            && !point.has_fault
            && point.rate_per_s.is_none()
            && !experiment.is_pass()
            // With pauses throughput follows the number of terminals, whatever the system does.
            && !point.is_paced
    };
    let own = || experiment.points.iter().filter(is_own);
    let points: Vec<(f64, f64)> =
        own().map(|point| (point.load(), point.throughput().median)).collect();
    let fit = Usl::fit(&points)?;
    let trials: Vec<(f64, f64)> = own().flat_map(|point| of_trials(evidence, point)).collect();
    let peak = usl::peak(&trials);
    let intervals = usl::intervals(&trials, evidence.trials.first()?.summary.seed);
    Some(Scaling {
        experiment_index,
        title: experiment.title.clone(),
        target: target.to_owned(),
        single: fit.single,
        contention: fit.contention,
        coherency: fit.coherency,
        intervals: intervals.map(|both| both.map(|of| Bounds { low: of.low, high: of.high })),
        peak: peak.map(|peak| peak.workers),
        bound_workers: AsymptoticBounds::of(&points)?.workers(),
        workers: [fit.least_workers, fit.most_workers],
        r2: fit.r2,
        largest_miss: fit.largest_miss,
        words: words(&fit, peak),
        curve: fit.curve(STEPS),
    })
}

/// Workers and throughput of each trial of a point.
fn of_trials<'a>(
    evidence: &'a Evidence,
    point: &'a Point,
) -> impl Iterator<Item = (f64, f64)> + 'a {
    let metric = point.main.map_or(Metric::Tps, |(metric, _)| metric);
    let own = evidence.trials.iter().filter(|trial| point.trials.contains(&trial.label));
    own.filter_map(move |trial| Some((point.load(), figure_of(&trial.summary, metric)?)))
}

fn words(fit: &Usl, peak: Option<ScalingPeak>) -> Message {
    match peak {
        Some(peak) => say!(
            throughput_peaks_at_workers_measured,
            n = format::whole(peak.workers),
            most = format::whole(fit.most_workers),
            lost = format::percent(1.0 - peak.left)
        ),
        None => say!(no_peak_up_to_workers_the, most = format::whole(fit.most_workers)),
    }
}
