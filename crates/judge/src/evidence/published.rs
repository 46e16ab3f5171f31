//! Published figures, and what stands beside them.

use super::{Experiment, Point};
use dyno_facts::{PublishedRow, PublishedTable};
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

/// What was measured in the place of a published row.
pub fn counterpart<'a>(
    experiment: &'a Experiment,
    row: &PublishedRow,
    target: &str,
) -> Option<&'a Point> {
    let is_own = |point: &&Point| {
        point.target_name == target && point.status == "complete" && !point.has_fault
    };
    let own = || experiment.points.iter().filter(is_own);
    let is_level = |point: &&Point| row.workers().is_none_or(|workers| workers == point.load());
    // With a cap on workers no point has the published number: the nearest is shown.
    own().find(is_level).or_else(|| own().max_by(|a, b| a.load().total_cmp(&b.load())))
}
