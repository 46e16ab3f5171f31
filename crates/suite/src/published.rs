//! The published figures that an experiment stands beside.

use dyno_facts::{Message, PublishedRow, PublishedTable};

use crate::figures;
use crate::suite::{Link, SuiteExperiment, SuiteTarget};

pub(crate) fn table(
    experiment: &SuiteExperiment,
    link: &Link,
    targets: &[&SuiteTarget],
) -> Option<PublishedTable> {
    let figure = figures::figure(&link.figure.value)?;
    let chosen = |row: &&PublishedRow| {
        link.filter.iter().all(|(name, value)| row.conditions.get(&name.value) == Some(value))
    };
    let named =
        |target: &SuiteTarget| link.targets.iter().any(|name| name.value == target.name.value);
    let counterpart = |row: &PublishedRow, target: &SuiteTarget| {
        let is_matched = !link.matching.is_empty()
            && link.matching.iter().all(|name| {
                let value = target.value(&name.value);
                value.is_some() && row.conditions.get(&name.value) == value.as_ref()
            });
        is_matched || named(target)
    };
    let publish = |row: &PublishedRow| PublishedRow {
        targets: targets
            .iter()
            .filter(|target| counterpart(row, target))
            .map(|target| target.name.value.clone())
            .collect(),
        ..row.clone()
    };
    let place = [figure.date.as_ref(), figure.location.as_ref()].into_iter().flatten();
    let source: Vec<Message> =
        [figure.source.clone()].into_iter().chain(place.map(Message::from)).collect();
    Some(PublishedTable {
        experiment: experiment.name.value.clone(),
        title: figure.title.clone(),
        source: Message::joined(&source, ", ", "，"),
        method: figure.method.clone(),
        note: figure.note.clone(),
        rows: figure.rows.iter().filter(chosen).map(publish).collect(),
    })
}
