//! The published figures that an experiment stands beside.

use dyno_facts::{PublishedRow, PublishedTable};

use crate::figures::{self, Row};
use crate::suite::{Experiment, Link, Target};

pub(crate) fn table(
    experiment: &Experiment,
    link: &Link,
    targets: &[&Target],
) -> Option<PublishedTable> {
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
        conditions: row
            .conditions
            .iter()
            .map(|(name, value)| (name.clone(), value.to_string()))
            .collect(),
        metrics: row.metrics.clone(),
        targets: targets
            .iter()
            .filter(|target| counterpart(row, target))
            .map(|target| target.name.value.clone())
            .collect(),
    };
    let parts = [Some(&figure.source), figure.date.as_ref(), figure.location.as_ref()];
    Some(PublishedTable {
        experiment: experiment.name.value.clone(),
        title: figure.title.clone(),
        source: parts.into_iter().flatten().cloned().collect::<Vec<_>>().join(", "),
        method: figure.method.clone(),
        note: figure.note.clone(),
        rows: figure.rows.iter().filter(chosen).map(publish).collect(),
    })
}
