//! The published figures that an experiment stands beside.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::figures::{self, Row, Value};
use crate::suite::{Link, Target};

/// A published figure, cut to the rows that an experiment refers to. Complete in itself, so that
/// a stored run can be printed by a dyno whose bundled figures have changed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PublishedSeries {
    /// The figure's name.
    pub figure: String,
    /// What it shows, in one line.
    pub title: String,
    /// The document, with date and location as far as known.
    pub source: String,
    /// How the figures were measured.
    pub method: String,
    /// What a reader must know before comparing.
    pub note: Option<String>,
    /// In the order of the publication.
    pub rows: Vec<PublishedRow>,
}

/// One published row.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PublishedRow {
    /// Such as a node class.
    pub label: String,
    /// Number of the published row, from 1: rows that share it were printed as one.
    #[serde(default)]
    pub number: usize,
    /// Conditions by name; `clients`, or else `threads`, is the load level; of
    /// TPC-C, `terminals_per_generator` times `load_generators`.
    pub conditions: BTreeMap<String, Value>,
    /// Results by metric: `tps`, `qps` and `data_qps` per second, `tpmc` (New-Orders) per minute,
    /// others as their figure says.
    pub metrics: BTreeMap<String, f64>,
    /// The planned targets that this row is the counterpart of; empty for context.
    pub targets: Vec<String>,
}

pub(crate) fn series(link: &Link, targets: &[&Target]) -> Option<PublishedSeries> {
    let figure = figures::figure(&link.figure.value)?;
    let chosen = |row: &&Row| {
        link.filter.iter().all(|(name, value)| row.conditions.get(&name.value) == Some(value))
    };
    let named = |target: &Target| link.targets.iter().any(|name| name.value == target.name.value);
    let counterpart = |row: &Row, target: &Target| {
        let is_matched = !link.matching.is_empty()
            && link.matching.iter().all(|name| {
                let value = target.value(&name.value);
                value.is_some() && row.conditions.get(&name.value) == value.as_ref()
            });
        is_matched || named(target)
    };
    let publish = |row: &Row| PublishedRow {
        label: row.label.clone(),
        number: row.number,
        conditions: row.conditions.clone(),
        metrics: row.metrics.clone(),
        targets: targets
            .iter()
            .filter(|target| counterpart(row, target))
            .map(|target| target.name.value.clone())
            .collect(),
    };
    let parts = [Some(&figure.source), figure.date.as_ref(), figure.location.as_ref()];
    Some(PublishedSeries {
        figure: figure.name.clone(),
        title: figure.title.clone(),
        source: parts.into_iter().flatten().cloned().collect::<Vec<_>>().join(", "),
        method: figure.method.clone(),
        note: figure.note.clone(),
        rows: figure.rows.iter().filter(chosen).map(publish).collect(),
    })
}
