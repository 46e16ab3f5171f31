//! How latency is distributed at the best points.

use crate::evidence::{Evidence, Trial};
use dyno_engine::record::Latencies;
use dyno_facts::{LatencySummary, SAMPLES_BEYOND};
use dyno_store::RunData;
use std::collections::BTreeMap;

/// The latencies of one kind of transaction at the best point of an experiment and a target.
#[derive(Clone, Debug, PartialEq)]
pub struct LatencyDistribution {
    /// Number of the experiment in the paper, from 0.
    pub experiment_index: usize,
    pub target: String,
    pub workers: u32,
    /// The kind of transaction; empty for all together.
    pub kind: String,
    /// Labels of the trials, whose histograms are added up.
    pub trials: Vec<String>,
    pub count: u64,
    pub quantiles: Vec<Quantile>,
}

/// A latency and the share of transactions that it covers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Quantile {
    /// Share of the transactions that take no longer, 0 to 1.
    pub share: f64,
    /// Their longest, microseconds.
    pub us: f64,
}

/// Shares of a distribution: half, then ever finer towards the slowest.
const SHARES: [f64; 15] = [
    0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.975, 0.99, 0.995, 0.999, 0.9995, 0.9999, 0.99999,
    0.999_999,
];

/// One for each kind of each best point whose run folder still has the histograms; of others what
/// their summaries tell of all kinds together.
pub(crate) fn distributions(evidence: &Evidence, runs: &[RunData]) -> Vec<LatencyDistribution> {
    let mut found = Vec::new();
    for row in evidence.key_rows() {
        let point = row.point;
        let own: Vec<&Trial> =
            evidence.trials.iter().filter(|trial| point.trials.contains(&trial.label)).collect();
        let distribution = |kind: &str, count: u64, quantiles: Vec<Quantile>| LatencyDistribution {
            experiment_index: row.index,
            target: point.target.clone(),
            workers: point.workers,
            kind: kind.to_owned(),
            trials: point.trials.clone(),
            count,
            quantiles,
        };
        let kinds = histograms(&own, runs);
        if kinds.is_empty() {
            let Some(first) = own.first() else { continue };
            let latency = &first.summary.latency;
            let quantiles = of_summary(latency);
            if own.len() == 1 && !quantiles.is_empty() {
                found.push(distribution("", latency.count, quantiles));
            }
            continue;
        }
        let is_one = kinds.len() == 1;
        for (kind, latencies) in &kinds {
            let kind = if is_one { "" } else { kind.as_str() };
            found.push(distribution(kind, latencies.count(), of_histogram(latencies)));
        }
    }
    found
}

/// The histograms of some trials by kind, repeats added up: percentiles can't be averaged.
fn histograms(trials: &[&Trial], runs: &[RunData]) -> BTreeMap<String, Latencies> {
    let mut kinds: BTreeMap<String, Latencies> = BTreeMap::new();
    for trial in trials {
        let data = runs.get(trial.run - 1).and_then(|run| {
            run.trials.iter().find(|data| data.summary.trial == trial.summary.trial)
        });
        let own = data.and_then(|data| data.histograms().ok()).unwrap_or_default();
        for (kind, latencies) in own {
            if trial.summary.kinds.iter().any(|known| known.name == kind) {
                kinds.entry(kind).or_default().add(&latencies);
            }
        }
    }
    kinds.retain(|_, latencies| latencies.count() > 0);
    kinds
}

fn of_histogram(latencies: &Latencies) -> Vec<Quantile> {
    let count = latencies.count() as f64;
    let is_enough = |share: &&f64| count * (1.0 - **share) >= SAMPLES_BEYOND;
    let mut quantiles: Vec<Quantile> = SHARES
        .iter()
        .filter(is_enough)
        .map(|share| Quantile {
            share: *share,
            us: match *share {
                0.0 => latencies.min() as f64 / 1e3,
                share => latencies.percentile(share * 100.0) as f64 / 1e3,
            },
        })
        .collect();
    quantiles.push(Quantile { share: 1.0, us: latencies.max() as f64 / 1e3 });
    quantiles
}

fn of_summary(latency: &LatencySummary) -> Vec<Quantile> {
    let known = [
        (0.0, latency.min_us),
        (0.5, latency.p50_us),
        (0.9, latency.p90_us),
        (0.95, latency.p95_us),
        (0.99, latency.p99_us),
        (0.999, latency.p999_us),
    ];
    let is_enough = |(share, _): &(f64, f64)| latency.has_percentile(1.0 - share);
    let mut quantiles: Vec<Quantile> =
        known.into_iter().filter(is_enough).map(|(share, us)| Quantile { share, us }).collect();
    if !quantiles.is_empty() {
        quantiles.push(Quantile { share: 1.0, us: latency.max_us });
    }
    quantiles
}
