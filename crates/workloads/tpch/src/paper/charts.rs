//! Times and speed-ups of the 22 queries as bars.

use super::tables::{PublishedSeconds, QueryTimes, Speedup, TpchTable};
use super::{QUERIES, TpchSection, words};
use dyno_facts::say;
use dyno_facts::{Lang, Message};
use dyno_report::Paper;
use dyno_report::charts::{self, Drawing};
use dyno_report::format;
use dyno_report::svg::{Axis, AxisScale, BarColumn, BarColumns, BarGroup};

/// The charts of a table.
pub(super) fn of_table(
    paper: &Paper,
    section: &TpchSection<'_>,
    table: &TpchTable<'_>,
    lang: Lang,
) -> impl Iterator<Item = Drawing> {
    let both = [times(paper, section, table, lang), speedups(paper, section, table, lang)];
    both.into_iter().flatten()
}

fn place(table: &TpchTable<'_>) -> Message {
    say!(target_setup, target = table.target, setup = words::setup(&table.setup))
}

fn said(text: Message, lang: Lang) -> String {
    text.render(lang)
}

fn all_said(texts: &[Message], lang: Lang) -> Vec<String> {
    texts.iter().map(|text| text.render(lang)).collect()
}

/// A logarithmic axis whose begin lies clearly below all values, or at `base` where one is given.
fn log_axis(label: String, values: &[f64], base: Option<f64>) -> Option<Axis> {
    const ROOM: f64 = 1.6;
    let low = values.iter().copied().chain(base).filter(|value| *value > 0.0).reduce(f64::min)?;
    let high = values.iter().copied().chain(base).reduce(f64::max)?;
    let scale = match base {
        // Labels stand beyond the ends of the bars.
        Some(_) => AxisScale::round_log(if low < 1.0 { low / ROOM } else { low }, high * ROOM),
        None => AxisScale::round_log(low / ROOM, high),
    };
    let ticks = scale.ticks(9).into_iter().map(|value| (value, format::plain(value))).collect();
    Some(Axis { label, scale, ticks })
}

fn published_name(published: &PublishedSeconds, degree: u32) -> Message {
    let degree = degree.to_string();
    match published.scale {
        Some(scale) => say!(published_at_sf_degree, scale = format::plain(scale), degree = degree),
        None => say!(published_degree_degree, degree = degree),
    }
}

fn times(
    paper: &Paper,
    section: &TpchSection<'_>,
    table: &TpchTable<'_>,
    lang: Lang,
) -> Option<Drawing> {
    let published = section.published.first();
    let degrees = published.map_or(&[][..], |published| published.degrees.as_slice());
    let group = |query: u8| BarGroup {
        name: format!("Q{query}"),
        detail: String::new(),
        columns: table
            .columns
            .iter()
            .map(|column| time(query, &column.times(query), column.degree, lang))
            .collect(),
        marks: degrees
            .iter()
            .map(|degree| published.and_then(|published| published.at(query, *degree)))
            .collect(),
    };
    let groups: Vec<BarGroup> = (1..=QUERIES).map(group).collect();
    let values = heights(&groups)?;
    let y = log_axis(said(say!(seconds_logarithmic_axis), lang), &values, None)?;
    let base = y.scale.ends().0;
    let has_bound = groups.iter().flat_map(|group| &group.columns).any(|column| column.is_bound);
    let limit = match table.timeouts_s()[..] {
        [bound] if has_bound => Some(bound),
        _ => None,
    };
    let bound_name = match limit {
        Some(bound) => {
            say!(given_up_after_s_the_true, s = format::plain(bound))
        }
        None => say!(given_up_the_true_time_lies),
    };
    let names: Vec<Message> = table
        .columns
        .iter()
        .map(|column| say!(degree_degree, degree = column.degree.to_string()))
        .collect();
    let mark_names: Vec<Message> = published.map_or(Vec::new(), |published| {
        degrees.iter().map(|degree| published_name(published, *degree)).collect()
    });
    let is_repeated = groups_are_spread(&groups);
    let chart = BarColumns {
        width: charts::WIDE.0,
        height: charts::WIDE.1,
        description: said(say!(seconds_of_the_22_queries_of, place = place(table)), lang),
        class: charts::colour(paper, table.target),
        base,
        y,
        limit,
        bound_name: said(bound_name, lang),
        names: all_said(&names, lang),
        mark_names: all_said(&mark_names, lang),
        groups,
    };
    let mut note = vec![say!(the_axis_is_logarithmic_and_begins, base = format::plain(base))];
    if is_repeated {
        note.push(say!(bars_end_at_the_median_strokes));
    }
    Some(Drawing {
        caption: said(say!(seconds_of_each_query, place = place(table)), lang),
        note: said(Message::sentences(&note), lang),
        svgs: vec![chart.svg()],
        ..Drawing::default()
    })
}

fn groups_are_spread(groups: &[BarGroup]) -> bool {
    let mut columns = groups.iter().flat_map(|group| &group.columns);
    columns.any(|column| column.low_high.is_some_and(|(low, high)| low < high))
}

fn time(query: u8, cell: &QueryTimes, degree: u32, lang: Lang) -> BarColumn {
    let seconds = match cell.seconds {
        Some(seconds) => say!(seconds_s, seconds = format::short(seconds.median)),
        None => say!(no_time),
    };
    let seconds = match cell.timed_out {
        0 => seconds,
        timed_out => say!(
            given_up_in_of,
            seconds = seconds,
            n = timed_out.to_string(),
            all = cell.executions.to_string()
        ),
    };
    let title = say!(
        q_at_degree,
        query = query.to_string(),
        degree = degree.to_string(),
        seconds = seconds
    );
    BarColumn {
        value: cell.seconds.map(|seconds| seconds.median).filter(|median| *median > 0.0),
        low_high: cell
            .seconds
            .filter(|seconds| seconds.min > 0.0)
            .map(|seconds| (seconds.min, seconds.max)),
        is_bound: cell.timed_out > 0,
        absent: (cell.failed > 0).then_some("\u{d7}"),
        text: String::new(),
        title: said(title, lang),
        ..BarColumn::default()
    }
}

/// Speed-ups over the first degree; none where there is one degree.
fn speedups(
    paper: &Paper,
    section: &TpchSection<'_>,
    table: &TpchTable<'_>,
    lang: Lang,
) -> Option<Drawing> {
    let first = table.columns.first()?.degree;
    let published = section.published.first().filter(|published| published.degrees.len() > 1);
    let is_alone = table.columns.len() == 2;
    let column = |query: u8, place: usize| {
        let speedup = table.query_speedup(place, query);
        speedup_bar(query, speedup, table.columns[place].degree, is_alone, lang)
    };
    let group = |query: u8| BarGroup {
        name: format!("Q{query}"),
        detail: String::new(),
        columns: (1..table.columns.len()).map(|place| column(query, place)).collect(),
        marks: published
            .map(|published| published.speedups[usize::from(query) - 1])
            .into_iter()
            .collect(),
    };
    let groups: Vec<BarGroup> = (1..=QUERIES).map(group).collect();
    let values = heights(&groups)?;
    let from = first.to_string();
    let names: Vec<Message> = table.columns[1..]
        .iter()
        .map(|own| say!(degree_to_over_from, to = own.degree.to_string(), from = &from))
        .collect();
    let description = say!(speed_up_of_the_22_queries, place = place(table));
    let axis = said(say!(times_as_fast_logarithmic_axis), lang);
    let chart = BarColumns {
        width: charts::WIDE.0,
        height: charts::WIDE.1 - 60.0,
        description: said(description, lang),
        class: charts::colour(paper, table.target),
        y: log_axis(axis, &values, Some(1.0))?,
        base: 1.0,
        limit: None,
        bound_name: String::new(),
        names: all_said(&names, lang),
        mark_names: all_said(&published_names(published), lang),
        groups,
    };
    let mut note = vec![say!(bars_begin_at_1_those_below)];
    if groups_are_spread(&chart.groups) {
        note.push(say!(strokes_span_the_lowest_and_the));
    }
    if published.is_some() {
        note.push(say!(published_ones_in_grey));
    }
    let caption =
        say!(speed_up_of_each_query_over, degree = first.to_string(), place = place(table));
    Some(Drawing {
        caption: said(caption, lang),
        note: said(Message::sentences(&note), lang),
        svgs: vec![chart.svg()],
        ..Drawing::default()
    })
}

/// All that the axis has to reach: columns with their ranges, and marks; `None` where no column has a value.
fn heights(groups: &[BarGroup]) -> Option<Vec<f64>> {
    let columns = groups.iter().flat_map(|group| &group.columns);
    let ends = columns.filter(|column| column.value.is_some()).flat_map(|column| {
        column.value.into_iter().chain(column.low_high.into_iter().flat_map(|(a, b)| [a, b]))
    });
    let mut values: Vec<f64> = ends.collect();
    if values.is_empty() {
        return None;
    }
    values.extend(groups.iter().flat_map(|group| &group.marks).copied().flatten());
    Some(values)
}

fn published_names(published: Option<&PublishedSeconds>) -> Vec<Message> {
    let ends = published.and_then(|own| Some((own.degrees.first()?, own.degrees.last()?)));
    let name = |(from, to): (&u32, &u32)| {
        say!(published_degree_over, to = to.to_string(), from = from.to_string())
    };
    ends.map(name).into_iter().collect()
}

fn speedup_bar(
    query: u8,
    speedup: Option<Speedup>,
    degree: u32,
    is_alone: bool,
    lang: Lang,
) -> BarColumn {
    let Some(speedup) = speedup else {
        let title = said(say!(q_no_speed_up, query = query.to_string()), lang);
        return BarColumn { title, ..BarColumn::default() };
    };
    let sign = match speedup.bound {
        Some("at least") => "\u{2265}",
        Some(_) => "\u{2264}",
        None => "",
    };
    let title = say!(
        q_at_degree_times_as_fast,
        query = query.to_string(),
        degree = degree.to_string(),
        factor = words::speedup(&speedup)
    );
    let text = match is_alone {
        true => format!("{sign}{}", format::plain(speedup.median)),
        false => sign.to_owned(),
    };
    BarColumn {
        value: Some(speedup.median),
        low_high: speedup.is_spread.then_some((speedup.min, speedup.max)),
        text,
        title: said(title, lang),
        ..BarColumn::default()
    }
}
