//! Tables of the targets.

use crate::evidence::{Target, Trial};
use std::collections::BTreeMap;

/// Tables and indexes of a node.
#[derive(Clone, Debug, PartialEq)]
pub struct SchemaRow {
    /// Label of the target.
    pub target: String,
    /// Name of the experiment.
    pub experiment: String,
    pub node: String,
    /// Checksum over tables and indexes as the server describes them.
    pub checksum: Option<String>,
    /// Rows by table, as the server counts or estimates them.
    pub rows: BTreeMap<String, u64>,
}

/// The tables before the first trial of each experiment on each target.
pub(super) fn rows(targets: &[Target], trials: &[Trial]) -> Vec<SchemaRow> {
    let mut rows: Vec<SchemaRow> = Vec::new();
    for target in targets {
        for trial in trials.iter().filter(|trial| trial.target == target.label) {
            let experiment = &trial.summary.experiment;
            let is_told =
                |row: &SchemaRow| row.target == target.label && row.experiment == *experiment;
            if rows.iter().any(is_told) {
                continue;
            }
            let nodes = trial.summary.conditions.nodes.iter();
            let known = nodes
                .filter(|(_, node)| node.schema_checksum.is_some() || !node.table_rows.is_empty());
            rows.extend(known.map(|(name, node)| SchemaRow {
                target: target.label.clone(),
                experiment: experiment.clone(),
                node: name.clone(),
                checksum: node.schema_checksum.clone(),
                rows: node.table_rows.clone(),
            }));
        }
    }
    rows
}
