//! Throughput against concurrency, described by the Universal Scalability Law.

use crate::evidence::{Evidence, Experiment, Point, Scaling};
use crate::format;
use crate::text::Message;
use dyno_facts::say;
use dyno_statistics::usl::Usl;

/// Places at which a curve is drawn.
const STEPS: usize = 48;

/// Every experiment and target with enough load levels in a closed loop without pauses.
pub(super) fn all(evidence: &Evidence) -> Vec<Scaling> {
    let mut rows = Vec::new();
    for (index, experiment) in evidence.experiments.iter().enumerate() {
        for target in &evidence.targets {
            rows.extend(of_target(experiment, index, &target.label));
        }
    }
    rows
}

fn of_target(experiment: &Experiment, experiment_index: usize, target: &str) -> Option<Scaling> {
    let is_own = |point: &&Point| {
        point.target == target
            && point.status == "complete"
            && !point.has_fault
            && point.rate_per_s.is_none()
            && !experiment.is_pass()
            // With pauses throughput follows the number of terminals, whatever the system does.
            && !point.is_paced
    };
    let own = experiment.points.iter().filter(is_own);
    let points: Vec<(f64, f64)> =
        own.map(|point| (point.load(), point.throughput().median)).collect();
    let fit = Usl::fit(&points)?;
    Some(Scaling {
        experiment_index,
        title: experiment.title.clone(),
        target: target.to_owned(),
        single: fit.single,
        contention: fit.contention,
        coherency: fit.coherency,
        peak: fit.peak(),
        workers: [fit.least_workers, fit.most_workers],
        r2: fit.r2,
        largest_miss: fit.largest_miss,
        words: words(&fit),
        curve: fit.curve(STEPS),
    })
}

fn words(fit: &Usl) -> Message {
    match fit.peak() {
        Some(peak) => say!(throughput_peaks_at_about_workers_measured, peak = format::whole(peak)),
        None => say!(no_peak_up_to_workers_the, most = format::whole(fit.most_workers)),
    }
}
