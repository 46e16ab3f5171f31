//! Published rows beside their counterparts, over all experiments that share a published table.

use crate::evidence::{Comparison, ComparisonRow, Experiment, Pair, Point, Published, counterpart};
use crate::format;
use crate::text::Message;
use dyno_facts::statistics::Metric;
use dyno_facts::{PublishedRow, say};
use std::collections::BTreeSet;

/// One published result, where it belongs, and its counterpart.
struct Cell<'a> {
    row: &'a PublishedRow,
    metric: &'a str,
    target: &'a str,
    point: Option<&'a Point>,
}

impl Cell<'_> {
    /// What the paper calls its target.
    fn shown(&self) -> &str {
        self.point.map_or(self.target, |point| &point.target)
    }
}

/// Published tables of which at least two experiments measure some row. A table of one experiment
/// stands beside that alone, unless its family is ranked by a metric of its own: there a row is a whole benchmark.
pub(crate) fn comparisons(experiments: &[Experiment]) -> Vec<Comparison> {
    let mut tables: Vec<&Published> = Vec::new();
    let mut found: Vec<Comparison> = Vec::new();
    // Those of passes stand in the tables of their family.
    let experiments = || experiments.iter().filter(|experiment| !experiment.is_pass());
    for published in experiments().flat_map(|experiment| &experiment.published) {
        if !tables.iter().any(|table| table.table.title == published.table.title) {
            tables.push(published);
        }
    }
    for table in tables {
        let of_table = |published: &&Published| published.table.title == table.table.title;
        let users = experiments().filter(|e| e.published.iter().any(|p| of_table(&p)));
        let is_whole = users.clone().any(|experiment| experiment.ranked_by() != Metric::Tps);
        if users.clone().count() < 2 && !is_whole {
            continue;
        }
        let cells: Vec<Cell<'_>> = users.flat_map(|e| cells(e, of_table)).collect();
        if cells.iter().any(|cell| cell.point.is_some()) {
            found.push(compare(table, &cells));
        }
    }
    found
}

fn cells<'a>(experiment: &'a Experiment, of_table: impl Fn(&&Published) -> bool) -> Vec<Cell<'a>> {
    let mut cells = Vec::new();
    let rows = experiment.published.iter().filter(of_table).flat_map(|p| &p.table.rows);
    for row in rows {
        for target in &row.targets {
            let point = counterpart(experiment, row, target);
            for metric in row.metrics.keys() {
                cells.push(Cell { row, metric, target, point });
            }
        }
    }
    cells
}

fn compare(table: &Published, cells: &[Cell<'_>]) -> Comparison {
    let mut columns: Vec<Message> = Vec::new();
    let mut rows: Vec<ComparisonRow> = Vec::new();
    let splitting = splitting(cells);
    let conditions = distinguishing(cells, &splitting);
    for cell in cells {
        let column = column(cell, &splitting);
        if !columns.contains(&column) {
            columns.push(column);
        }
    }
    for cell in cells {
        let same = |row: &&mut ComparisonRow| {
            row.target == cell.shown()
                && row.label == cell.row.label
                && row.number == cell.row.number
        };
        let at = columns.iter().position(|name| *name == column(cell, &splitting)).unwrap_or(0);
        let pair = pair(cell);
        if let Some(row) = rows.iter_mut().find(same) {
            row.pairs[at] = pair;
            continue;
        }
        let mut pairs = vec![Pair::default(); columns.len()];
        pairs[at] = pair;
        let data = cell.point.and_then(|point| point.data.as_ref());
        let value = |name: &String| cell.row.conditions.get(name).cloned().unwrap_or_default();
        rows.push(ComparisonRow {
            label: cell.row.label.clone(),
            description: description(cell.row, &[&splitting, &conditions]),
            number: cell.row.number,
            conditions: conditions.iter().map(|name| readable(&value(name))).collect(),
            target: cell.shown().to_owned(),
            workers: cell.point.map_or(0, |point| point.load() as u32),
            setup: cell
                .point
                .and_then(|point| point.level.as_ref())
                .map_or(Message::default(), |level| level.setup.clone()),
            hot_share: data.and_then(|data| data.hot_share),
            size_to_memory: data.and_then(|data| data.size_to_memory),
            pairs,
        });
    }
    rows.sort_by_key(|row| row.number);
    let has = |metric: &str| cells.iter().any(|cell| cell.metric == metric);
    Comparison {
        title: table.table.title.clone(),
        source: table.table.source.clone(),
        method: table.table.method.clone(),
        note: table.table.note.clone(),
        load: if has("tpmc") { say!(terminals) } else { say!(workers) },
        counts: match (has("tpmc"), has("data_qps")) {
            (true, _) => say!(tpmc_are_new_orders_per_minute),
            (_, true) => say!(qps_counts_the_statements_that_read),
            _ => Message::default(),
        },
        conditions,
        columns,
        rows,
    }
}

fn pair(cell: &Cell<'_>) -> Pair {
    let measured = cell.point.and_then(|point| point.metric(cell.metric));
    let published = cell.row.metrics.get(cell.metric).copied();
    let by = published.filter(|published| *published > 0.0);
    Pair {
        measured,
        repeats: cell.point.map_or(0, |point| point.repeats),
        published,
        ratio: measured.zip(by).map(|(measured, published)| measured.median / published),
        checks: cell.point.map(|point| point.checks.clone()).unwrap_or_default(),
    }
}

/// Conditions that differ between results printed in the same row: they name columns.
fn splitting(cells: &[Cell<'_>]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for (index, cell) in cells.iter().enumerate() {
        let same_row = |other: &&Cell<'_>| {
            (other.row.number, &other.row.label) == (cell.row.number, &cell.row.label)
        };
        for other in cells[..index].iter().filter(same_row) {
            for (name, value) in &cell.row.conditions {
                if other.row.conditions.get(name) != Some(value) && !names.contains(name) {
                    names.push(name.clone());
                }
            }
        }
    }
    names
}

/// Conditions that differ between rows of the same label: the others describe the label.
fn distinguishing(cells: &[Cell<'_>], splitting: &[String]) -> Vec<String> {
    let mut names: BTreeSet<&String> = BTreeSet::new();
    for cell in cells {
        let same_label = cells.iter().filter(|other| other.row.label == cell.row.label);
        for other in same_label {
            let differs = |(name, value): &(&String, &String)| {
                other.row.conditions.get(*name) != Some(*value) && !splitting.contains(name)
            };
            names.extend(cell.row.conditions.iter().filter(differs).map(|(name, _)| name));
        }
    }
    names.into_iter().cloned().collect()
}

/// The conditions of a row that are told nowhere else.
fn description(row: &PublishedRow, elsewhere: &[&[String]]) -> String {
    let is_told = |name: &String| elsewhere.iter().any(|names| names.contains(name));
    let told = row.conditions.iter().filter(|(name, value)| **value != row.label && !is_told(name));
    told.map(|(name, value)| format!("{name} {}", readable(value))).collect::<Vec<_>>().join(", ")
}

fn column(cell: &Cell<'_>, splitting: &[String]) -> Message {
    let value = |name: &String| cell.row.conditions.get(name).cloned();
    let told: Vec<String> = splitting.iter().filter_map(value).collect();
    let metric = published_metric(cell.metric);
    match told.is_empty() {
        true => metric,
        false => Message::joined(&[Message::verbatim(told.join(", ")), metric], ", ", "，"),
    }
}

/// A metric of published figures, in columns and beside one's own.
pub(crate) fn published_metric(name: &str) -> Message {
    match name {
        "tps" => say!(transactions_s),
        "qps" => say!(statements_s),
        "data_qps" => Message::from("QPS"),
        "tpmc" => Message::from("tpmC"),
        other => Message::from(other),
    }
}

/// A condition of published figures, as the head of a column.
pub(crate) fn condition_name(name: &str) -> Message {
    match name {
        "class" => say!(condition_class),
        "edition" => say!(condition_edition),
        "vcpu" | "compute_vcpu" => say!(condition_vcpu),
        "memory_gib" | "compute_memory_gib" => say!(condition_memory),
        "rows" => say!(rows),
        "hot_rows" => say!(hot_rows),
        "clients" => say!(condition_clients),
        "threads" => say!(condition_threads),
        "workers" => say!(workers),
        "duration_s" => say!(condition_duration),
        "scale" => say!(condition_scale),
        "warehouses" => say!(condition_warehouses),
        "load_generators" => say!(condition_load_generators),
        "terminals_per_generator" => say!(condition_terminals_each),
        "max_connections" => say!(condition_max_connections),
        "storage_nodes" => say!(condition_storage_nodes),
        "storage_vcpu" => say!(condition_storage_vcpu),
        "storage_memory_gib" => say!(condition_storage_memory),
        "iops" => Message::from("IOPS"),
        other => Message::from(other.replace('_', " ")),
    }
}

/// Large numbers with thousands set apart.
fn readable(value: &str) -> String {
    match value.parse::<f64>() {
        Ok(number) if number.fract() == 0.0 => format::whole(number),
        _ => value.to_owned(),
    }
}
