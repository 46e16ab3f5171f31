//! Times and speed-ups of the 22 queries as bars.

use super::words;
use super::{PublishedSeconds, QueryCell, TpchSection, TpchTable};
use crate::charts::{self, Figure};
use crate::format;
use crate::model::{Experiment, Paper};
use crate::svg::{Axis, Column, Columns, Group, Scale};
use crate::text::Lang;
use serde::Serialize;

/// The charts of an experiment's section on TPC-H, in the order of its tables.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Drawings {
    tables: Vec<Vec<Figure>>,
}

/// Those of an experiment; none where it is no TPC-H.
pub(crate) fn drawings(paper: &Paper, experiment: &Experiment, _lang: Lang) -> Drawings {
    let Some(section) = &experiment.tpch else { return Drawings::default() };
    let of = |table: &TpchTable| {
        [times(paper, section, table), speedups(paper, section, table)]
            .into_iter()
            .flatten()
            .collect()
    };
    Drawings { tables: section.tables.iter().map(of).collect() }
}

fn place(table: &TpchTable) -> String {
    format!("{}, {}", table.target, words::setup(&table.setup))
}

/// A logarithmic axis whose begin lies clearly below all values, or at `base` where one is given.
fn log_axis(label: &str, values: &[f64], base: Option<f64>) -> Option<Axis> {
    const ROOM: f64 = 1.6;
    let low = values.iter().copied().chain(base).filter(|value| *value > 0.0).reduce(f64::min)?;
    let high = values.iter().copied().chain(base).reduce(f64::max)?;
    let scale = match base {
        // Labels stand beyond the ends of the bars.
        Some(_) => Scale::round_log(if low < 1.0 { low / ROOM } else { low }, high * ROOM),
        None => Scale::round_log(low / ROOM, high),
    };
    let ticks = scale.ticks(9).into_iter().map(|value| (value, format::plain(value))).collect();
    Some(Axis { label: label.to_owned(), scale, ticks })
}

fn published_name(published: &PublishedSeconds, degree: u32) -> String {
    let scale =
        published.scale.map_or(String::new(), |scale| format!(" at SF {}", format::plain(scale)));
    format!("published{scale}, degree {degree}")
}

fn times(paper: &Paper, section: &TpchSection, table: &TpchTable) -> Option<Figure> {
    let published = section.published.first();
    let degrees = published.map_or(&[][..], |published| published.degrees.as_slice());
    let group = |row: &super::QueryRow| Group {
        name: format!("Q{}", row.query),
        columns: row
            .cells
            .iter()
            .zip(&table.degrees)
            .map(|(cell, degree)| time(row.query, cell, degree.degree))
            .collect(),
        marks: degrees
            .iter()
            .map(|degree| published.and_then(|published| published.at(row.query, *degree)))
            .collect(),
    };
    let groups: Vec<Group> = table.queries.iter().map(group).collect();
    let measured = groups.iter().flat_map(|group| &group.columns);
    if measured.clone().all(|column| column.value.is_none()) {
        return None;
    }
    let ends = measured.flat_map(|column| {
        column.value.into_iter().chain(column.low_high.into_iter().flat_map(|(a, b)| [a, b]))
    });
    let marks = groups.iter().flat_map(|group| &group.marks).copied().flatten();
    let values: Vec<f64> = ends.chain(marks).collect();
    let y = log_axis("seconds (logarithmic axis)", &values, None)?;
    let base = y.scale.ends().0;
    let has_bound = groups.iter().flat_map(|group| &group.columns).any(|column| column.is_bound);
    let limit = table.timeouts_s.first().copied();
    let limit = limit.filter(|_| has_bound && table.timeouts_s.len() == 1);
    let after = limit.map_or(String::new(), |bound| format!(" after {} s", format::plain(bound)));
    let is_repeated = groups_are_spread(&groups);
    let chart = Columns {
        width: charts::WIDE.0,
        height: charts::WIDE.1,
        description: format!("Seconds of the 22 queries of TPC-H on {}", place(table)),
        class: charts::colour(paper, &table.target),
        base,
        y,
        limit,
        bound_name: format!("given up{after}: the true time lies beyond"),
        names: table.degrees.iter().map(|degree| format!("degree {}", degree.degree)).collect(),
        mark_names: published.map_or(Vec::new(), |published| {
            degrees.iter().map(|degree| published_name(published, *degree)).collect()
        }),
        groups,
    };
    let spread = if is_repeated {
        " Bars end at the median, strokes span the shortest and the longest time."
    } else {
        ""
    };
    Some(Figure {
        caption: format!("Seconds of each query, {}", place(table)),
        note: format!(
            "The axis is logarithmic and begins at {} s: where a bar ends is its time, and its length is no measure.{spread}",
            format::plain(base)
        ),
        svgs: vec![chart.svg()],
        legend: Vec::new(),
    })
}

fn groups_are_spread(groups: &[Group]) -> bool {
    let mut columns = groups.iter().flat_map(|group| &group.columns);
    columns.any(|column| column.low_high.is_some_and(|(low, high)| low < high))
}

fn time(query: u8, cell: &QueryCell, degree: u32) -> Column {
    let given_up = match cell.timed_out {
        0 => String::new(),
        timed_out => format!(", given up in {timed_out} of {}", cell.executions),
    };
    let seconds = cell.seconds.map_or_else(
        || "no time".to_owned(),
        |seconds| format!("{} s", format::short(seconds.median)),
    );
    Column {
        value: cell.seconds.map(|seconds| seconds.median).filter(|median| *median > 0.0),
        low_high: cell
            .seconds
            .filter(|seconds| seconds.min > 0.0)
            .map(|seconds| (seconds.min, seconds.max)),
        is_bound: cell.timed_out > 0,
        absent: (cell.failed > 0).then_some("\u{d7}"),
        text: String::new(),
        title: format!("Q{query} at degree {degree}: {seconds}{given_up}"),
    }
}

/// Speed-ups over the first degree; none where there is one degree.
fn speedups(paper: &Paper, section: &TpchSection, table: &TpchTable) -> Option<Figure> {
    let first = table.degrees.first()?.degree;
    let published = section.published.first().filter(|published| published.degrees.len() > 1);
    let is_alone = table.degrees.len() == 2;
    let group = |row: &super::QueryRow| Group {
        name: format!("Q{}", row.query),
        columns: row
            .cells
            .iter()
            .zip(&table.degrees)
            .skip(1)
            .map(|(cell, degree)| speedup(row.query, cell, degree.degree, is_alone))
            .collect(),
        marks: published
            .map(|published| published.speedups[usize::from(row.query) - 1])
            .into_iter()
            .collect(),
    };
    let groups: Vec<Group> = table.queries.iter().map(group).collect();
    let measured = groups.iter().flat_map(|group| &group.columns);
    let ends = measured.filter(|column| column.value.is_some()).flat_map(|column| {
        column.value.into_iter().chain(column.low_high.into_iter().flat_map(|(a, b)| [a, b]))
    });
    let mut values: Vec<f64> = ends.collect();
    if values.is_empty() {
        return None;
    }
    values.extend(groups.iter().flat_map(|group| &group.marks).copied().flatten());
    let chart = Columns {
        width: charts::WIDE.0,
        height: charts::WIDE.1 - 60.0,
        description: format!("Speed-up of the 22 queries of TPC-H on {}", place(table)),
        class: charts::colour(paper, &table.target),
        y: log_axis("times as fast (logarithmic axis)", &values, Some(1.0))?,
        base: 1.0,
        limit: None,
        bound_name: String::new(),
        names: table.degrees[1..]
            .iter()
            .map(|degree| format!("degree {} over {first}", degree.degree))
            .collect(),
        mark_names: published.map_or(Vec::new(), |published| {
            let (from, to) = (published.degrees[0], published.degrees[published.degrees.len() - 1]);
            vec![format!("published, degree {to} over {from}")]
        }),
        groups,
    };
    let published = if published.is_some() { " Published ones in grey." } else { "" };
    let spread = if groups_are_spread(&chart.groups) {
        " Strokes span the lowest and the highest that two trials give."
    } else {
        ""
    };
    Some(Figure {
        caption: format!("Speed-up of each query over degree {first}, {}", place(table)),
        note: format!(
            "Bars begin at 1; those below it are of queries that became slower. On the logarithmic axis twice as fast is as long as half as fast.{spread}{published}"
        ),
        svgs: vec![chart.svg()],
        legend: Vec::new(),
    })
}

fn speedup(query: u8, cell: &QueryCell, degree: u32, is_alone: bool) -> Column {
    let Some(speedup) = cell.speedup else {
        return Column { title: format!("Q{query}: no speed-up"), ..Column::default() };
    };
    let sign = match speedup.bound {
        Some("at least") => "\u{2265}",
        Some(_) => "\u{2264}",
        None => "",
    };
    Column {
        value: Some(speedup.median),
        low_high: speedup.is_spread.then_some((speedup.min, speedup.max)),
        is_bound: false,
        absent: None,
        text: if is_alone {
            format!("{sign}{}", format::plain(speedup.median))
        } else {
            sign.to_owned()
        },
        title: format!("Q{query} at degree {degree}: {} times as fast", words::speedup(&speedup)),
    }
}
