//! Published figures: a CSV file, one row per published row, and a TOML file alongside it that says
//! where the figures come from and what each column means. Both live in `figures/`.

use crate::suite::{Link, SuiteExperiment, SuiteTarget};
use dyno_facts::{Message, PublishedRow, PublishedTable};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

#[derive(Clone, Debug, PartialEq)]
pub struct PublishedFigure {
    /// The files' name without extension.
    pub name: String,
    pub title: Message,
    pub source: Message,
    /// When that document appeared, as far as known: `2020-12`.
    pub date: Option<String>,
    /// Page, section or table of that document, as far as known.
    pub location: Option<String>,
    pub method: Message,
    pub note: Option<Message>,
    /// Names and kinds of the columns of the CSV file, in its order.
    pub columns: Vec<(String, PublishedColumn)>,
    /// Typed rows. A published row whose metrics belong to different conditions (read-only and
    /// read-write in two columns) gives one row for each.
    pub rows: Vec<PublishedRow>,
}

impl PublishedFigure {
    /// The names of all conditions by which rows can be chosen, in alphabetical order.
    pub fn condition_names(&self) -> Vec<&str> {
        let names: BTreeSet<&str> =
            self.rows.iter().flat_map(|row| row.conditions.keys().map(String::as_str)).collect();
        names.into_iter().collect()
    }

    /// Reads a figure from the texts of its two files.
    ///
    /// # Errors
    /// The first thing that is wrong, with the file, and in the table also the line.
    pub fn parse(name: &str, csv: &str, sidecar: &str) -> Result<PublishedFigure, String> {
        let mut sidecar: Sidecar =
            toml::from_str(sidecar).map_err(|error| format!("{name}.toml: {}", error.message()))?;
        let mut lines = csv.lines();
        let header: Vec<&str> = lines.next().unwrap_or("").split(',').collect();
        let mut columns = Vec::new();
        for column in &header {
            let Some(described) = sidecar.columns.remove_entry(*column) else {
                return Err(csv_error(
                    name,
                    1,
                    &format!("The column `{column}` is not described."),
                ));
            };
            columns.push(described);
        }
        if let Some(missing) = sidecar.columns.keys().next() {
            return Err(csv_error(name, 1, &format!("There is no column `{missing}`.")));
        }
        let labels = columns
            .iter()
            .filter(|(_, column)| matches!(column, PublishedColumn::Label { .. }))
            .count();
        if labels != 1 {
            return Err(csv_error(
                name,
                1,
                &format!("One column must be the label, not {labels}."),
            ));
        }
        let mut rows = Vec::new();
        for (number, line) in (1..).zip(lines) {
            let cells: Vec<&str> = line.split(',').collect();
            if cells.len() != columns.len() || line.contains('"') {
                let message = "A row must have a plain value without quotes for every column.";
                return Err(csv_error(name, number + 1, message));
            }
            add_rows(&mut rows, number, &columns, &cells, &sidecar.conditions)
                .map_err(|message| csv_error(name, number + 1, &message))?;
        }
        Ok(PublishedFigure {
            name: name.to_string(),
            title: sidecar.title.message(),
            source: sidecar.source.message(),
            date: sidecar.date,
            location: sidecar.location,
            method: sidecar.method.message(),
            note: sidecar.note.as_ref().map(FigureText::message),
            columns,
            rows,
        })
    }
}

/// Puts the place in the table of the figure `name` in front of a message; lines count from 1.
fn csv_error(name: &str, line: usize, message: &str) -> String {
    format!("{name}.csv:{line}: {message}")
}

/// Sentences are broken into lines for those who read the file.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Adds one row per group of metrics that share their conditions.
fn add_rows(
    rows: &mut Vec<PublishedRow>,
    number: usize,
    columns: &[(String, PublishedColumn)],
    cells: &[&str],
    fixed: &Conditions,
) -> Result<(), String> {
    let mut shared: BTreeMap<String, String> = condition_texts(fixed).collect();
    let mut label = String::new();
    for ((name, column), cell) in columns.iter().zip(cells) {
        match column {
            PublishedColumn::Label { .. } => {
                label = (*cell).to_string();
                shared.insert(name.clone(), label.clone());
            }
            PublishedColumn::Condition { .. } => {
                shared.insert(name.clone(), condition(cell));
            }
            PublishedColumn::Metric { .. } => {}
        }
    }
    let first = rows.len();
    for ((name, column), cell) in columns.iter().zip(cells) {
        let PublishedColumn::Metric { metric, when, .. } = column else { continue };
        let value = cell.parse().ok().filter(|value: &f64| value.is_finite());
        let value =
            value.ok_or_else(|| format!("`{cell}` in the column `{name}` is not a number."))?;
        let mut conditions = shared.clone();
        conditions.extend(condition_texts(when));
        let row = match rows[first..].iter_mut().find(|row| row.conditions == conditions) {
            Some(row) => row,
            None => {
                let label = label.clone();
                rows.push(PublishedRow { label, number, conditions, ..PublishedRow::default() });
                rows.last_mut().ok_or("There is no row.")?
            }
        };
        if row.metrics.insert(metric.clone(), value).is_some() {
            return Err(format!("Two columns give `{metric}` under the same conditions."));
        }
    }
    Ok(())
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Sidecar {
    title: FigureText,
    source: FigureText,
    date: Option<String>,
    location: Option<String>,
    method: FigureText,
    note: Option<FigureText>,
    #[serde(default)]
    conditions: Conditions,
    columns: BTreeMap<String, PublishedColumn>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FigureText {
    en: String,
    zh: String,
}

impl FigureText {
    /// The text in both languages, each in one line.
    fn message(&self) -> Message {
        Message::both(one_line(&self.en), one_line(&self.zh))
    }
}

/// A column of a published table, and what it means in words.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(tag = "role", rename_all = "snake_case", deny_unknown_fields)]
pub enum PublishedColumn {
    /// The row's name; also a condition.
    Label { meaning: String },
    Condition {
        meaning: String,
        /// For example `GiB`.
        unit: Option<String>,
    },
    Metric {
        /// dyno's name of the metric, such as `tps`.
        metric: String,
        meaning: String,
        /// For example `transactions/s`.
        unit: Option<String>,
        /// Conditions under which this column was measured.
        #[serde(default)]
        when: Conditions,
    },
}

type Conditions = BTreeMap<String, toml::Value>;

fn condition_texts(conditions: &Conditions) -> impl Iterator<Item = (String, String)> {
    conditions.iter().map(|(name, value)| {
        let text = match value {
            toml::Value::String(text) => text.clone(),
            number => condition(&number.to_string()),
        };
        (name.clone(), text)
    })
}

/// A condition's value as it is compared: a number in one spelling, `2.0` as `2`.
pub(crate) fn condition(text: &str) -> String {
    match text.parse::<f64>() {
        Ok(number) if number.is_finite() => number.to_string(),
        _ => text.to_owned(),
    }
}

macro_rules! texts {
    ($($name:literal),* $(,)?) => {
        &[$((
            $name,
            include_str!(concat!("../../../figures/", $name, ".csv")),
            include_str!(concat!("../../../figures/", $name, ".toml")),
        )),*]
    };
}

const TEXTS: &[(&str, &str, &str)] = texts![
    "polardb-for-oracle-pgbench",
    "polardb-mysql-8.0-tpch-sf100",
    "polardb-x-tpcc",
    "rds-mysql-5.6-sysbench",
];

static ALL: LazyLock<Vec<PublishedFigure>> = LazyLock::new(|| {
    // A bundled file that can't be read would be missing here; a test counts them.
    let figures =
        TEXTS.iter().map(|(name, csv, sidecar)| PublishedFigure::parse(name, csv, sidecar));
    figures.filter_map(Result::ok).collect()
});

/// The bundled figures.
pub fn all() -> &'static [PublishedFigure] {
    &ALL
}

/// The bundled figure of that name.
pub fn figure(name: &str) -> Option<&'static PublishedFigure> {
    ALL.iter().find(|figure| figure.name == name)
}

pub(crate) fn published_table(
    experiment: &SuiteExperiment,
    link: &Link,
    targets: &[&SuiteTarget],
) -> Option<PublishedTable> {
    let figure = figure(&link.figure.value)?;
    let rows = figure.rows.iter().filter(|row| {
        link.filter.iter().all(|(name, value)| row.conditions.get(&name.value) == Some(value))
    });
    let rows = rows.map(|row| PublishedRow {
        targets: targets
            .iter()
            .filter(|target| is_counterpart(link, row, target))
            .map(|target| target.name.value.clone())
            .collect(),
        ..row.clone()
    });
    let place = [figure.date.as_ref(), figure.location.as_ref()].into_iter().flatten();
    let source: Vec<Message> =
        [figure.source.clone()].into_iter().chain(place.map(Message::from)).collect();
    Some(PublishedTable {
        experiment: experiment.name.value.clone(),
        title: figure.title.clone(),
        source: Message::joined(&source, ", ", "，"),
        method: figure.method.clone(),
        note: figure.note.clone(),
        rows: rows.collect(),
    })
}

fn is_counterpart(link: &Link, row: &PublishedRow, target: &SuiteTarget) -> bool {
    let is_matched = !link.matching.is_empty()
        && link.matching.iter().all(|name| {
            let value = target.value(&name.value);
            value.is_some() && row.conditions.get(&name.value) == value.as_ref()
        });
    is_matched || link.targets.iter().any(|name| name.value == target.name.value)
}
