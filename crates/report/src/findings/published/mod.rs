//! Published figures that stand beside one's own.

mod beside;
mod cost;
mod differences;

pub use beside::{Beside, PerVcpu};
pub use cost::{Cost, CostRow};

pub(crate) use beside::beside;
pub(crate) use cost::costs;

use std::collections::{BTreeMap, BTreeSet};

/// A published table, as far as it belongs beside an experiment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PublishedTable {
    /// The experiment it stands beside.
    pub experiment: String,
    /// What it shows.
    pub title: String,
    /// The document that published it.
    pub source: String,
    /// How its figures were measured.
    pub method: String,
    /// What a reader must know before comparing.
    pub note: Option<String>,
    /// In the order of the publication.
    pub rows: Vec<PublishedRow>,
}

/// One published row.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PublishedRow {
    /// Such as a node class.
    pub label: String,
    /// Number of the published row, from 1: rows that share it were printed as one. 0: unknown.
    pub number: usize,
    /// Conditions by name; one of [`LOAD_LEVELS`] is the number of workers.
    pub conditions: BTreeMap<String, String>,
    /// Results by metric; `tps`, `qps` and `data_qps` are per second, `tpmc` per minute.
    pub metrics: BTreeMap<String, f64>,
    /// Names of the targets that this row is the counterpart of; empty for context.
    pub targets: Vec<String>,
}

/// Conditions that state the number of workers; the first that is there counts. pgbench has clients,
/// and threads that drive them; BenchmarkSQL has terminals, perhaps several processes with as many.
pub const LOAD_LEVELS: [&str; 5] =
    ["clients", "threads", "workers", "terminals", "terminals_per_generator"];

impl PublishedRow {
    /// A condition that is a number.
    pub(crate) fn number(&self, name: &str) -> Option<f64> {
        self.conditions.get(name)?.parse().ok()
    }

    /// All virtual CPUs that it was measured on, those of a storage layer included.
    pub(crate) fn vcpu(&self) -> Option<f64> {
        let storage = self.number("storage_vcpu").unwrap_or(0.0);
        let storage = storage * self.number("storage_nodes").unwrap_or(1.0);
        let compute = self.number("vcpu").or_else(|| self.number("compute_vcpu"))?;
        Some(compute + storage).filter(|vcpu| *vcpu > 0.0)
    }

    /// The number of workers under which it was measured, where it is stated.
    pub(crate) fn workers(&self) -> Option<f64> {
        let number = |name: &str| self.number(name);
        let (name, workers) = LOAD_LEVELS.iter().find_map(|name| Some((*name, number(name)?)))?;
        let processes = match name {
            "terminals_per_generator" => number("load_generators").unwrap_or(1.0),
            _ => 1.0,
        };
        Some(workers * processes).filter(|workers| *workers >= 1.0)
    }
}

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
        let load_level = LOAD_LEVELS.iter().find(states).copied().unwrap_or_default();
        let conditions = conditions.into_iter().collect();
        Published { table: table.clone(), conditions, metrics, load_level }
    }
}
