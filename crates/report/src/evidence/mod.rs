//! What a paper says, before it is given a form.

pub(crate) mod comparison;
pub(crate) mod distributions;
mod published;
pub(crate) mod statements;

pub use distributions::{LatencyDistribution, Quantile};
pub(crate) use dyno_judge::Judgment;
pub(crate) use dyno_judge::evidence::*;

use crate::text::Message;
use dyno_facts::{Price, PublishedTable};
use dyno_store::RunData;
use std::ops::Deref;

/// A paper about one or several runs: how they were judged, and what is shown beside.
#[derive(Clone, Debug, PartialEq)]
pub struct Paper {
    pub judgment: Judgment,
    /// Published rows beside their counterparts, over all experiments.
    pub comparisons: Vec<Comparison>,
    /// Results beside the nearest published rows, with the conditions that differ.
    pub beside: Vec<BesidePublished>,
    /// What the work costs, where targets have a price.
    pub costs: Vec<Cost>,
    /// The distribution of latency at the best point of each experiment and target.
    pub distributions: Vec<LatencyDistribution>,
    /// How much of it is written.
    pub edition: Edition,
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
        Paper::gated(runs, published, &[])
    }

    /// The same with gates beside those of the suites, judged in every experiment.
    pub fn gated(runs: &[RunData], published: &[PublishedTable], gates: &[String]) -> Paper {
        Paper::named(runs, published, gates, &Naming::default())
    }

    /// The same in the words of a publisher, with names of targets in one language.
    pub fn named(
        runs: &[RunData],
        published: &[PublishedTable],
        gates: &[String],
        naming: &Naming<'_>,
    ) -> Paper {
        let judgment = Judgment::of(runs, published, gates, naming);
        Paper {
            comparisons: comparison::comparisons(&judgment.experiments),
            beside: published::beside(&judgment),
            costs: published::costs(&judgment),
            distributions: distributions::distributions(&judgment, runs),
            edition: Edition::Full,
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

/// A result beside a published one.
#[derive(Clone, Debug, PartialEq)]
pub struct BesidePublished {
    /// Number of the experiment in the paper, from 0.
    pub experiment_index: usize,
    /// Title of the experiment.
    pub experiment: Message,
    /// Label of the target.
    pub target: String,
    /// What the published table shows.
    pub table: Message,
    /// The published row.
    pub row: String,
    /// True when the suite names the row as the target's counterpart; else it is the nearest one.
    pub is_named: bool,
    /// What is counted.
    pub metric: Message,
    /// What was measured.
    pub measured: Spread,
    /// Trials that it rests on.
    pub repeats: usize,
    /// What was published.
    pub published: f64,
    /// The median of what was measured, by what was published.
    pub ratio: f64,
    /// Both by the virtual CPUs that they were measured on; `None` where one side doesn't state them.
    pub per_vcpu: Option<PerVcpu>,
    /// Conditions that differ, as far as both sides state them.
    pub differences: Vec<Message>,
    /// Numbers of the checks that found something.
    pub checks: Vec<usize>,
}

/// Figures by virtual CPUs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PerVcpu {
    /// Virtual CPUs of the target.
    pub vcpu_here: f64,
    /// Virtual CPUs of the published system.
    pub vcpu_there: f64,
    /// What was measured, by the first.
    pub measured: f64,
    /// What was published, by the second.
    pub published: f64,
    /// The ratio of both.
    pub ratio: f64,
}

/// What an experiment's work costs on a target.
#[derive(Clone, Debug, PartialEq)]
pub struct Cost {
    /// Number of the experiment in the paper, from 0.
    pub experiment_index: usize,
    /// Title of the experiment.
    pub experiment: Message,
    /// Label of the target.
    pub target: String,
    /// Of the whole target, as stated.
    pub price: Price,
    /// What it costs, by what is counted.
    pub rows: Vec<CostRow>,
}

/// A price of work.
#[derive(Clone, Debug, PartialEq)]
pub struct CostRow {
    /// Such as `per million transactions`.
    pub what: Message,
    /// In the currency of the target's price.
    pub amount: f64,
}

/// A published table and what was measured in its place.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// What the published table shows.
    pub title: Message,
    /// The document that published it.
    pub source: Message,
    /// How its figures were measured.
    pub method: Message,
    /// What a reader must know before comparing.
    pub note: Option<Message>,
    /// What the load level is: `Workers` or `Terminals`.
    pub load: Message,
    /// What the columns count, in a sentence; empty where the titles say it.
    pub counts: Message,
    /// Names of the conditions that differ between rows of the same label.
    pub conditions: Vec<String>,
    /// Titles of the measured quantities: the metric and what tells apart the columns of one row.
    pub columns: Vec<Message>,
    /// In the order of the publication.
    pub rows: Vec<ComparisonRow>,
}

/// One published row with a counterpart.
#[derive(Clone, Debug, PartialEq)]
pub struct ComparisonRow {
    /// Such as a node class.
    pub label: String,
    /// The row's other conditions.
    pub description: String,
    /// Number of the published row.
    pub number: usize,
    /// Values of the conditions, in their order; empty where the row doesn't state one.
    pub conditions: Vec<String>,
    /// Label of the target that was measured.
    pub target: String,
    /// Its terminals where it has any, else its workers.
    pub workers: u32,
    /// How it was run, where that stands beside every number; empty for most workloads.
    pub setup: Message,
    /// Share of the rows that is hot, 0 to 1, where it is known.
    pub hot_share: Option<f64>,
    /// How many times the data fill the server's memory for them, where that is known.
    pub size_to_memory: Option<f64>,
    /// In the order of the columns.
    pub pairs: Vec<Pair>,
}

/// One quantity, measured and published.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Pair {
    /// What was measured; `None` when no trial of it ended well.
    pub measured: Option<Spread>,
    /// Trials that it rests on.
    pub repeats: usize,
    /// What was published.
    pub published: Option<f64>,
    /// Median of what was measured, by what was published.
    pub ratio: Option<f64>,
    /// Numbers of the checks that found something.
    pub checks: Vec<usize>,
}
