//! The content of a paper, before it is given a form.

pub(crate) mod published;

pub use published::{BesidePublished, Comparison, ComparisonRow, CostRow, Pair};

pub(crate) use dyno_judge::evidence::*;

use dyno_engine::record::Latencies;
use dyno_facts::{PublishedTable, SAMPLES_BEYOND, StatementLatency};
use dyno_store::RunData;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Deref;

/// A paper about one or several runs: how they were judged, and how much of it is written in which form.
#[derive(Clone, Debug, PartialEq)]
pub struct Paper {
    pub judgment: Judgment,
    /// The distribution of latency at the best point of each experiment and target.
    pub distributions: Vec<LatencyDistribution>,
    pub edition: Edition,
}

/// Extent of a paper.
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
    /// A paper about these runs, alongside these published figures.
    pub fn new(runs: &[RunData], published: &[PublishedTable]) -> Paper {
        Paper::named(runs, published, &[], &Naming::default())
    }

    /// A paper in the words of a publisher, with names of targets in one language, and with gates alongside those of
    /// the suites, judged in every experiment.
    pub fn named(
        runs: &[RunData],
        published: &[PublishedTable],
        gates: &[String],
        naming: &Naming<'_>,
    ) -> Paper {
        let judgment = Judgment::from_runs(runs, published, gates, naming);
        Paper { distributions: distributions(&judgment, runs), edition: Edition::Full, judgment }
    }

    /// The paper in another edition.
    #[must_use]
    pub fn in_edition(mut self, edition: Edition) -> Paper {
        self.edition = edition;
        self
    }

    /// Returns true if it is the edition for readers in a hurry.
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

    /// Sets the path from the paper's future folder to the folder of each run, in their order: with a slash at its
    /// end, or empty; `None` leaves the files of a run unlinked. Without it the paper of one run links as if it were
    /// in the run's folder, others don't link.
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

/// Shares of the transactions in the table of distributions.
pub(crate) const SHARES: [(f64, &str); 6] = [
    (0.5, "50%"),
    (0.9, "90%"),
    (0.95, "95%"),
    (0.99, "99%"),
    (0.999, "99.9%"),
    (0.9999, "99.99%"),
];

/// One for each kind of each best point whose run folder still has the histograms.
fn distributions(evidence: &Evidence, runs: &[RunData]) -> Vec<LatencyDistribution> {
    let mut distributions = Vec::new();
    for row in evidence.key_rows() {
        let kinds = histograms(&evidence.point_trials(row.point), runs);
        let has_one_kind = kinds.len() == 1;
        distributions.extend(kinds.into_iter().map(|(kind, latencies)| LatencyDistribution {
            experiment_index: row.index,
            target: row.point.target.clone(),
            workers: row.point.workers,
            kind: if has_one_kind { String::new() } else { kind },
            count: latencies.count(),
            quantiles: quantiles(&latencies),
        }));
    }
    distributions
}

/// The histograms of some trials by kind, repeats added up: percentiles can't be averaged.
fn histograms(trials: &[&Trial], runs: &[RunData]) -> BTreeMap<String, Latencies> {
    let mut kinds: BTreeMap<String, Latencies> = BTreeMap::new();
    for trial in trials {
        let data = runs.get(trial.run - 1).and_then(|run| {
            run.trials.iter().find(|data| data.summary.trial == trial.summary.trial)
        });
        let histograms = data.and_then(|data| data.histograms().ok()).unwrap_or_default();
        for (kind, latencies) in histograms {
            if trial.summary.kinds.iter().any(|known| known.name == kind) {
                kinds.entry(kind).or_default().add(&latencies);
            }
        }
    }
    kinds.retain(|_, latencies| latencies.count() > 0);
    kinds
}

/// The shortest, those of [`SHARES`] that enough are longer than, the longest.
fn quantiles(latencies: &Latencies) -> Vec<(f64, f64)> {
    let count = latencies.count() as f64;
    let shares = SHARES.into_iter().map(|(share, _)| share);
    let shares = shares.filter(|share| count * (1.0 - share) >= SAMPLES_BEYOND);
    let inner = shares.map(|share| (share, latencies.percentile(share * 100.0) as f64 / 1e3));
    let ends = [(0.0, latencies.min()), (1.0, latencies.max())];
    inner.chain(ends.map(|(share, ns)| (share, ns as f64 / 1e3))).collect()
}

/// Target, workers and latencies of a statement at a load level.
pub(crate) type StatementRow<'a> = (&'a str, u32, StatementLatency);

/// Each statement at each load level over its repeats, in the order of the trials and scripts.
/// Like for points, trials that were cut off or failed count only if no complete ones exist.
pub(crate) fn statements<'a>(trials: impl Iterator<Item = &'a Trial>) -> Vec<StatementRow<'a>> {
    fn load_level(trial: &Trial) -> (&str, u32) {
        (&trial.target, trial.summary.workers)
    }
    let trials: Vec<&Trial> = trials.collect();
    let complete = trials.iter().filter(|trial| trial.status == "complete");
    let complete: BTreeSet<(&str, u32)> = complete.map(|trial| load_level(trial)).collect();
    let mut rows: Vec<StatementRow<'_>> = Vec::new();
    for trial in &trials {
        let (target, workers) = load_level(trial);
        if trial.status != "complete" && complete.contains(&(target, workers)) {
            continue;
        }
        for statement in &trial.summary.statement_latencies {
            let entry = rows.iter_mut().find(|row| {
                let row_key = (row.0, row.1, &row.2.script, row.2.number);
                row_key == (target, workers, &statement.script, statement.number)
            });
            match entry {
                Some(row) => merge_latency(&mut row.2, statement),
                None => rows.push((target, workers, statement.clone())),
            }
        }
    }
    rows
}

fn merge_latency(row: &mut StatementLatency, other: &StatementLatency) {
    let count = row.count + other.count;
    if other.count > 0 {
        let sum_us = row.mean_us * row.count as f64 + other.mean_us * other.count as f64;
        row.min_us = if row.count == 0 { other.min_us } else { row.min_us.min(other.min_us) };
        row.mean_us = sum_us / count as f64;
        row.max_us = row.max_us.max(other.max_us);
    }
    row.count = count;
    row.failures += other.failures;
    row.retries += other.retries;
}
