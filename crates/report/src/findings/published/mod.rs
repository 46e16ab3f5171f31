//! Published figures that stand beside one's own.

mod beside;
mod cost;
mod differences;

pub use beside::{Beside, PerVcpu};
pub use cost::{Cost, CostRow};

pub(crate) use beside::beside;
pub(crate) use cost::costs;

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
