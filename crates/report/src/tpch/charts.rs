//! Times and speed-ups of the 22 queries as bars.

use super::words;
use super::{PublishedSeconds, QueryCell, TpchSection, TpchTable};
use crate::charts::{self, Figure};
use crate::format;
use crate::model::{Experiment, Paper};
use crate::say;
use crate::svg::{Axis, Column, Columns, Group, Scale};
use crate::text::{Lang, Text};
use serde::Serialize;

/// The charts of an experiment's section on TPC-H, in the order of its tables.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Drawings {
    tables: Vec<Vec<Figure>>,
}

/// Those of an experiment; none where it is no TPC-H.
pub(crate) fn drawings(paper: &Paper, experiment: &Experiment, lang: Lang) -> Drawings {
    let Some(section) = &experiment.tpch else { return Drawings::default() };
    let of = |table: &TpchTable| {
        [times(paper, section, table, lang), speedups(paper, section, table, lang)]
            .into_iter()
            .flatten()
            .collect()
    };
    Drawings { tables: section.tables.iter().map(of).collect() }
}

fn place(table: &TpchTable) -> Text {
    say!("{target}, {setup}", target = &table.target, setup = words::setup(&table.setup))
}

fn said(text: Text, lang: Lang) -> String {
    text.in_lang(lang).to_owned()
}

fn all_said(texts: &[Text], lang: Lang) -> Vec<String> {
    texts.iter().map(|text| text.in_lang(lang).to_owned()).collect()
}

/// A logarithmic axis whose begin lies clearly below all values, or at `base` where one is given.
fn log_axis(label: String, values: &[f64], base: Option<f64>) -> Option<Axis> {
    const ROOM: f64 = 1.6;
    let low = values.iter().copied().chain(base).filter(|value| *value > 0.0).reduce(f64::min)?;
    let high = values.iter().copied().chain(base).reduce(f64::max)?;
    let scale = match base {
        // Labels stand beyond the ends of the bars.
        Some(_) => Scale::round_log(if low < 1.0 { low / ROOM } else { low }, high * ROOM),
        None => Scale::round_log(low / ROOM, high),
    };
    let ticks = scale.ticks(9).into_iter().map(|value| (value, format::plain(value))).collect();
    Some(Axis { label, scale, ticks })
}

fn published_name(published: &PublishedSeconds, degree: u32) -> Text {
    let degree = degree.to_string();
    match published.scale {
        Some(scale) => say!(
            "published at SF {scale}, degree {degree}",
            scale = format::plain(scale),
            degree = degree
        ),
        None => say!("published, degree {degree}", degree = degree),
    }
}

fn times(paper: &Paper, section: &TpchSection, table: &TpchTable, lang: Lang) -> Option<Figure> {
    let published = section.published.first();
    let degrees = published.map_or(&[][..], |published| published.degrees.as_slice());
    let group = |row: &super::QueryRow| Group {
        name: format!("Q{}", row.query),
        columns: row
            .cells
            .iter()
            .zip(&table.degrees)
            .map(|(cell, degree)| time(row.query, cell, degree.degree, lang))
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
    let y = log_axis(said(say!("seconds (logarithmic axis)"), lang), &values, None)?;
    let base = y.scale.ends().0;
    let has_bound = groups.iter().flat_map(|group| &group.columns).any(|column| column.is_bound);
    let limit = table.timeouts_s.first().copied();
    let limit = limit.filter(|_| has_bound && table.timeouts_s.len() == 1);
    let bound_name = match limit {
        Some(bound) => {
            say!("given up after {s} s: the true time lies beyond", s = format::plain(bound))
        }
        None => say!("given up: the true time lies beyond"),
    };
    let names: Vec<Text> = table
        .degrees
        .iter()
        .map(|degree| say!("degree {degree}", degree = degree.degree.to_string()))
        .collect();
    let mark_names: Vec<Text> = published.map_or(Vec::new(), |published| {
        degrees.iter().map(|degree| published_name(published, *degree)).collect()
    });
    let is_repeated = groups_are_spread(&groups);
    let chart = Columns {
        width: charts::WIDE.0,
        height: charts::WIDE.1,
        description: said(
            say!("Seconds of the 22 queries of TPC-H on {place}", place = place(table)),
            lang,
        ),
        class: charts::colour(paper, &table.target),
        base,
        y,
        limit,
        bound_name: said(bound_name, lang),
        names: all_said(&names, lang),
        mark_names: all_said(&mark_names, lang),
        groups,
    };
    let mut note = vec![say!(
        "The axis is logarithmic and begins at {base} s: where a bar ends is its time, and its length is no measure.",
        base = format::plain(base)
    )];
    if is_repeated {
        note.push(say!("Bars end at the median, strokes span the shortest and the longest time."));
    }
    Some(Figure {
        caption: said(say!("Seconds of each query, {place}", place = place(table)), lang),
        note: said(Text::sentences(&note), lang),
        svgs: vec![chart.svg()],
        legend: Vec::new(),
    })
}

fn groups_are_spread(groups: &[Group]) -> bool {
    let mut columns = groups.iter().flat_map(|group| &group.columns);
    columns.any(|column| column.low_high.is_some_and(|(low, high)| low < high))
}

fn time(query: u8, cell: &QueryCell, degree: u32, lang: Lang) -> Column {
    let seconds = match cell.seconds {
        Some(seconds) => say!("{seconds} s", seconds = format::short(seconds.median)),
        None => say!("no time"),
    };
    let seconds = match cell.timed_out {
        0 => seconds,
        timed_out => say!(
            "{seconds}, given up in {n} of {all}",
            seconds = seconds,
            n = timed_out.to_string(),
            all = cell.executions.to_string()
        ),
    };
    let title = say!(
        "Q{query} at degree {degree}: {seconds}",
        query = query.to_string(),
        degree = degree.to_string(),
        seconds = seconds
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
        title: said(title, lang),
    }
}

/// Speed-ups over the first degree; none where there is one degree.
fn speedups(paper: &Paper, section: &TpchSection, table: &TpchTable, lang: Lang) -> Option<Figure> {
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
            .map(|(cell, degree)| speedup(row.query, cell, degree.degree, is_alone, lang))
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
    let over = |to: u32, from: u32| (to.to_string(), from.to_string());
    let names: Vec<Text> = table.degrees[1..]
        .iter()
        .map(|degree| {
            let (to, from) = over(degree.degree, first);
            say!("degree {to} over {from}", to = to, from = from)
        })
        .collect();
    let mark_names: Vec<Text> = published
        .iter()
        .map(|published| {
            let degrees = &published.degrees;
            let (to, from) = over(degrees[degrees.len() - 1], degrees[0]);
            say!("published, degree {to} over {from}", to = to, from = from)
        })
        .collect();
    let description = say!("Speed-up of the 22 queries of TPC-H on {place}", place = place(table));
    let axis = said(say!("times as fast (logarithmic axis)"), lang);
    let chart = Columns {
        width: charts::WIDE.0,
        height: charts::WIDE.1 - 60.0,
        description: said(description, lang),
        class: charts::colour(paper, &table.target),
        y: log_axis(axis, &values, Some(1.0))?,
        base: 1.0,
        limit: None,
        bound_name: String::new(),
        names: all_said(&names, lang),
        mark_names: all_said(&mark_names, lang),
        groups,
    };
    let mut note = vec![say!(
        "Bars begin at 1; those below it are of queries that became slower. On the logarithmic axis twice as fast is as long as half as fast."
    )];
    if groups_are_spread(&chart.groups) {
        note.push(say!("Strokes span the lowest and the highest that two trials give."));
    }
    if published.is_some() {
        note.push(say!("Published ones in grey."));
    }
    let caption = say!(
        "Speed-up of each query over degree {degree}, {place}",
        degree = first.to_string(),
        place = place(table)
    );
    Some(Figure {
        caption: said(caption, lang),
        note: said(Text::sentences(&note), lang),
        svgs: vec![chart.svg()],
        legend: Vec::new(),
    })
}

fn speedup(query: u8, cell: &QueryCell, degree: u32, is_alone: bool, lang: Lang) -> Column {
    let Some(speedup) = cell.speedup else {
        let title = said(say!("Q{query}: no speed-up", query = query.to_string()), lang);
        return Column { title, ..Column::default() };
    };
    let sign = match speedup.bound {
        Some("at least") => "\u{2265}",
        Some(_) => "\u{2264}",
        None => "",
    };
    let title = say!(
        "Q{query} at degree {degree}: {factor} times as fast",
        query = query.to_string(),
        degree = degree.to_string(),
        factor = words::speedup(&speedup)
    );
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
        title: said(title, lang),
    }
}
