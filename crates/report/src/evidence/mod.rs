//! What a paper says, before it is given a form.

pub(crate) mod published;

pub use published::{BesidePublished, Comparison, ComparisonRow, CostRow, Pair};

pub(crate) use dyno_judge::evidence::*;

use crate::forms::Templates;
use dyno_engine::record::Latencies;
use dyno_facts::{LatencySummary, PublishedTable, SAMPLES_BEYOND, StatementLatency};
use dyno_store::RunData;
use std::collections::BTreeMap;
use std::ops::Deref;

/// A paper about one or several runs: how they were judged, and how much of it is written in which form.
#[derive(Clone, Debug, PartialEq)]
pub struct Paper {
    pub judgment: Judgment,
    /// The distribution of latency at the best point of each experiment and target.
    pub distributions: Vec<LatencyDistribution>,
    pub edition: Edition,
    /// What page and print are written with.
    pub templates: Templates,
}

/// How much of a paper is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Edition {
    #[default]
    Full,
    /// Without the appendix, resource use, and what a page shows on demand.
    Short,
}

impl Deref for Paper {
    type Target = Judgment;

    fn deref(&self) -> &Judgment {
        &self.judgment
    }
}

impl Paper {
    /// A paper about these runs, beside these published figures.
    pub fn new(runs: &[RunData], published: &[PublishedTable]) -> Paper {
        Paper::named(runs, published, &[], &Naming::default())
    }

    /// A paper in the words of a publisher, with names of targets in one language, and with gates beside those of the
    /// suites, judged in every experiment.
    pub fn named(
        runs: &[RunData],
        published: &[PublishedTable],
        gates: &[String],
        naming: &Naming<'_>,
    ) -> Paper {
        let judgment = Judgment::of(runs, published, gates, naming);
        Paper {
            distributions: distributions(&judgment, runs),
            edition: Edition::Full,
            templates: Templates::default(),
            judgment,
        }
    }

    /// The same in another edition.
    #[must_use]
    pub fn in_edition(mut self, edition: Edition) -> Paper {
        self.edition = edition;
        self
    }

    /// Whether it is the edition for readers in a hurry.
    pub fn is_short(&self) -> bool {
        self.edition == Edition::Short
    }

    /// The target with this label.
    pub(crate) fn target(&self, label: &str) -> Option<&PaperTarget> {
        self.targets.iter().find(|target| target.label == label)
    }

    /// Numbers of those of these checks that forbid a figure.
    pub(crate) fn forbidding_numbers(&self, checks: &[usize]) -> Vec<usize> {
        self.forbidding(checks).map(|check| check.number).collect()
    }

    /// Says what leads from where the paper will stand to the folder of each run, in their order: a
    /// path with a slash at its end or an empty text; `None` leaves the files of a run unlinked.
    /// Without it the paper of one run links as if it stood in its folder, others don't link.
    #[must_use]
    pub fn linked(mut self, links: Vec<Option<String>>) -> Paper {
        for (run, link) in self.judgment.evidence.runs.iter_mut().zip(links) {
            run.link = link;
        }
        self
    }
}

/// The latencies of one kind of transaction at the best point of an experiment and a target.
#[derive(Clone, Debug, PartialEq)]
pub struct LatencyDistribution {
    /// Number of the experiment in the paper, from 0.
    pub experiment_index: usize,
    pub target: String,
    pub workers: u32,
    /// The kind of transaction; empty for all together.
    pub kind: String,
    pub count: u64,
    /// Shares of the transactions, 0 to 1, and the longest of each, microseconds.
    pub quantiles: Vec<(f64, f64)>,
}

/// Shares of a distribution: half, then ever finer towards the slowest.
const SHARES: [f64; 15] = [
    0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.975, 0.99, 0.995, 0.999, 0.9995, 0.9999, 0.99999,
    0.999_999,
];

/// One for each kind of each best point whose run folder still has the histograms; of others what
/// their summaries tell of all kinds together.
fn distributions(evidence: &Evidence, runs: &[RunData]) -> Vec<LatencyDistribution> {
    let mut found = Vec::new();
    for row in evidence.key_rows() {
        let point = row.point;
        let own = evidence.trials_of(point);
        let distribution = |kind: &str, count: u64, quantiles| LatencyDistribution {
            experiment_index: row.index,
            target: point.target.clone(),
            workers: point.workers,
            kind: kind.to_owned(),
            count,
            quantiles,
        };
        let kinds = histograms(&own, runs);
        if let ([only], true) = (own.as_slice(), kinds.is_empty()) {
            let latency = &only.summary.latency;
            let quantiles = of_summary(latency);
            found.extend(
                (!quantiles.is_empty()).then(|| distribution("", latency.count, quantiles)),
            );
        }
        let is_one = kinds.len() == 1;
        found.extend(kinds.iter().map(|(kind, latencies)| {
            let kind = if is_one { "" } else { kind.as_str() };
            distribution(kind, latencies.count(), of_histogram(latencies))
        }));
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

fn of_histogram(latencies: &Latencies) -> Vec<(f64, f64)> {
    let count = latencies.count() as f64;
    let is_enough = |share: &f64| count * (1.0 - share) >= SAMPLES_BEYOND;
    let quantile = |share: f64| match share {
        0.0 => (share, latencies.min() as f64 / 1e3),
        share => (share, latencies.percentile(share * 100.0) as f64 / 1e3),
    };
    let known = SHARES.into_iter().filter(is_enough).map(quantile);
    known.chain([(1.0, latencies.max() as f64 / 1e3)]).collect()
}

fn of_summary(latency: &LatencySummary) -> Vec<(f64, f64)> {
    let known = [
        (0.0, latency.min_us),
        (0.5, latency.p50_us),
        (0.9, latency.p90_us),
        (0.95, latency.p95_us),
        (0.99, latency.p99_us),
        (0.999, latency.p999_us),
    ];
    let is_enough = |(share, _): &(f64, f64)| latency.has_percentile(1.0 - share);
    let mut quantiles: Vec<(f64, f64)> = known.into_iter().filter(is_enough).collect();
    if !quantiles.is_empty() {
        quantiles.push((1.0, latency.max_us));
    }
    quantiles
}

/// Target, workers and latencies of a statement at a load level.
pub(crate) type StatementRow<'a> = (&'a str, u32, StatementLatency);

/// Each statement at each load level over its repeats, in the order of the trials and scripts.
/// As with points, trials that were cut off or failed stand back where there are complete ones.
pub(crate) fn statements<'a>(trials: impl Iterator<Item = &'a Trial>) -> Vec<StatementRow<'a>> {
    fn level(trial: &Trial) -> (&str, u32) {
        (&trial.target, trial.summary.workers)
    }
    let trials: Vec<&Trial> = trials.collect();
    let is_complete = |trial: &Trial| trial.status == "complete";
    let has_better =
        |trial: &Trial| trials.iter().any(|o| level(o) == level(trial) && is_complete(o));
    let mut rows: Vec<StatementRow<'_>> = Vec::new();
    for trial in trials.iter().filter(|trial| is_complete(trial) || !has_better(trial)) {
        let (target, workers) = level(trial);
        for statement in &trial.summary.statement_latencies {
            let same = |row: &&mut StatementRow<'_>| {
                let known = (row.0, row.1, &row.2.script, row.2.number);
                known == (target, workers, &statement.script, statement.number)
            };
            match rows.iter_mut().find(same) {
                Some(row) => add(&mut row.2, statement),
                None => rows.push((target, workers, statement.clone())),
            }
        }
    }
    rows
}

fn add(row: &mut StatementLatency, more: &StatementLatency) {
    let count = row.count + more.count;
    if more.count > 0 {
        let sum_us = row.mean_us * row.count as f64 + more.mean_us * more.count as f64;
        row.min_us = if row.count == 0 { more.min_us } else { row.min_us.min(more.min_us) };
        row.mean_us = sum_us / count as f64;
        row.max_us = row.max_us.max(more.max_us);
    }
    row.count = count;
    row.failures += more.failures;
    row.retries += more.retries;
}
