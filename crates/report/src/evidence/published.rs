//! Published figures, and what stands beside them.

use super::Spread;
use crate::text::Message;
use dyno_facts::{Price, PublishedRow, PublishedTable};
use std::collections::BTreeSet;

/// A published table with its columns, as a paper shows it.
#[derive(Clone, Debug, PartialEq)]
pub struct Published {
    pub table: PublishedTable,
    /// Names of the conditions that some row states, the row's label left out.
    pub conditions: Vec<String>,
    /// Names of the metrics that some row has.
    pub metrics: Vec<String>,
    /// The condition that states the number of workers; empty when none does.
    pub load_level: &'static str,
}

impl From<&PublishedTable> for Published {
    fn from(table: &PublishedTable) -> Self {
        let mut conditions = BTreeSet::new();
        let mut metrics = BTreeSet::new();
        for row in &table.rows {
            let is_no_label = |(_, value): &(&String, &String)| **value != row.label;
            conditions
                .extend(row.conditions.iter().filter(is_no_label).map(|(name, _)| name.clone()));
            metrics.extend(row.metrics.keys().cloned());
        }
        let mut metrics: Vec<String> = metrics.into_iter().collect();
        // Throughput first, as everywhere in the paper.
        metrics.sort_by_key(|name| match name.as_str() {
            "tps" => 0,
            "qps" => 1,
            "data_qps" => 2,
            _ => 3,
        });
        let states = |name: &&&str| conditions.contains(**name);
        let load_level = PublishedRow::LOAD_LEVELS.iter().find(states).copied().unwrap_or_default();
        let conditions = conditions.into_iter().collect();
        Published { table: table.clone(), conditions, metrics, load_level }
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

/// Tables that several runs of a suite stand beside, each once: a row is the counterpart of the targets of all runs.
pub(super) fn merged(tables: &[PublishedTable]) -> Vec<PublishedTable> {
    let mut merged: Vec<PublishedTable> = Vec::new();
    for table in tables {
        let is_same = |known: &&mut PublishedTable| {
            let is_row = |(a, b): (&PublishedRow, &PublishedRow)| {
                (&a.label, &a.conditions) == (&b.label, &b.conditions)
            };
            (&known.experiment, &known.title) == (&table.experiment, &table.title)
                && known.rows.len() == table.rows.len()
                && known.rows.iter().zip(&table.rows).all(is_row)
        };
        match merged.iter_mut().find(is_same) {
            Some(known) => {
                for (row, other) in known.rows.iter_mut().zip(&table.rows) {
                    for target in &other.targets {
                        if !row.targets.contains(target) {
                            row.targets.push(target.clone());
                        }
                    }
                }
            }
            None => merged.push(table.clone()),
        }
    }
    merged
}
