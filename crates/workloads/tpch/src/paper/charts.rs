//! Times and speed-ups of the 22 queries as bars.

use super::QUERIES;
use super::tables::{PublishedSeconds, TpchTable};
use super::words;
use dyno_facts::{Lang, Message, say};
use dyno_report::Paper;
use dyno_report::charts::{self, Drawing};
use dyno_report::format;
use dyno_report::svg::{Axis, AxisScale, BarColumn, BarColumns, BarGroup};

/// The bars of a query and the published values next to them.
type QueryBars = (Vec<BarColumn>, Vec<Option<f64>>);

fn query_groups(bars: impl Fn(u8) -> QueryBars) -> Vec<BarGroup> {
    let groups = (1..=QUERIES).map(|query| {
        let (columns, marks) = bars(query);
        BarGroup { name: format!("Q{query}"), columns, marks, ..BarGroup::default() }
    });
    groups.collect()
}

/// A logarithmic axis that reaches all columns with their ranges and marks. Its begin lies clearly below all values, or
/// at `base` if one is given. `None` if no bar has a value.
fn log_axis(label: String, groups: &[BarGroup], base: Option<f64>) -> Option<Axis> {
    const ROOM: f64 = 1.6;
    let ends = groups.iter().flat_map(|group| &group.columns).flat_map(|column| {
        let range = column.low_high.map(|(low, high)| [low, high]);
        column.value.into_iter().chain(range.into_iter().flatten())
    });
    let mut values: Vec<f64> = ends.collect();
    values.first()?;
    values.extend(groups.iter().flat_map(|group| &group.marks).copied().flatten());
    values.extend(base);
    let low = values.iter().copied().filter(|value| *value > 0.0).reduce(f64::min)?;
    let high = values.iter().copied().reduce(f64::max)?;
    let scale = match base {
        // Labels are beyond the ends of the bars.
        Some(_) => AxisScale::round_log(if low < 1.0 { low / ROOM } else { low }, high * ROOM),
        None => AxisScale::round_log(low / ROOM, high),
    };
    let ticks = scale.ticks(9).into_iter().map(|value| (value, format::plain(value))).collect();
    Some(Axis { label, scale, ticks })
}

/// Draws what the rows of a table hold, below it.
pub(super) fn table_charts(
    paper: &Paper,
    published: Option<&PublishedSeconds<'_>>,
    table: &TpchTable<'_>,
    lang: Lang,
) -> Vec<Drawing> {
    let setup = words::setup(table.setup, table.streams);
    let place = say!(target_setup, target = table.target, setup);
    let class = charts::color(paper, table.target);
    let times = times_chart(published, table, &place, lang);
    let speedups = speedups_chart(published, table, &place, lang);
    let drawings = times.into_iter().chain(speedups).map(|(mut chart, caption, notes)| {
        chart.class = class.clone();
        let (caption, note) = (caption.render(lang), Message::sentences(&notes).render(lang));
        Drawing { caption, note, svgs: vec![chart.svg()], ..Drawing::default() }
    });
    drawings.collect()
}

/// Returns a chart of the seconds of each query of one target, with its caption and notes: a bar for each degree on a
/// logarithmic axis, published times as marks. `None` without any time.
fn times_chart(
    published: Option<&PublishedSeconds<'_>>,
    table: &TpchTable<'_>,
    place: &Message,
    lang: Lang,
) -> Option<(BarColumns, Message, Vec<Message>)> {
    let degrees = published.map_or(&[][..], |published| published.degrees.as_slice());
    let groups = query_groups(|query| {
        let columns = (0..table.columns.len()).map(|at| time_bar(table, at, query, lang)).collect();
        let mark =
            |degree: &u32| published.and_then(|published| published.at(Some(query), *degree));
        (columns, degrees.iter().map(mark).collect())
    });
    let y = log_axis(say!(seconds_logarithmic_axis).render(lang), &groups, None)?;
    let base = y.scale.ends().0;
    let bounds: Vec<f64> = table.facts().filter_map(|facts| facts.timeout_s).collect();
    let has_bound = table.columns.iter().any(|column| column.is_penalized());
    let is_uniform = bounds.iter().all(|bound| *bound == bounds[0]);
    let limit = bounds.first().copied().filter(|_| has_bound && is_uniform);
    let bound_name = match limit {
        Some(bound) => say!(given_up_after_s_the_true, s = format::plain(bound)),
        None => say!(given_up_the_true_time_lies),
    };
    let mark_names = degrees.iter().map(|degree| {
        let degree = degree.to_string();
        let name = match published.and_then(|published| published.scale) {
            Some(scale) => {
                say!(published_at_sf_degree, scale = format::plain(scale), degree)
            }
            None => say!(published_degree_degree, degree),
        };
        name.render(lang)
    });
    let degrees = table.columns.iter().map(|column| column.degree.to_string());
    let chart = BarColumns {
        width: charts::WIDE.0,
        height: charts::WIDE.1,
        description: say!(query_seconds_title, place).render(lang),
        base,
        y,
        limit,
        bound_name: bound_name.render(lang),
        names: degrees.map(|degree| say!(degree_degree, degree).render(lang)).collect(),
        mark_names: mark_names.collect(),
        groups,
        ..BarColumns::default()
    };
    let begins = say!(the_axis_is_logarithmic_and_begins, base = format::plain(base));
    let notes = vec![begins, say!(bars_end_at_the_median_strokes)];
    Some((chart, say!(seconds_of_each_query, place), notes))
}

fn time_bar(table: &TpchTable<'_>, place: usize, query: u8, lang: Lang) -> BarColumn {
    let column = &table.columns[place];
    let times = column.times(query);
    let mut seconds = match times.seconds {
        Some(seconds) => say!(seconds_s, seconds = format::short(seconds.median)),
        None => say!(no_time),
    };
    if times.timed_out > 0 {
        seconds = say!(given_up_share, seconds, n = times.timed_out, all = times.executions);
    }
    let degree = column.degree.to_string();
    let title = say!(q_at_degree, query, degree, seconds);
    let positive = times.seconds.filter(|seconds| seconds.min > 0.0);
    BarColumn {
        value: positive.map(|seconds| seconds.median),
        low_high: positive.map(|seconds| (seconds.min, seconds.max)),
        is_bound: times.timed_out > 0,
        absent: (times.failed > 0).then_some("\u{d7}"),
        title: title.render(lang),
        ..BarColumn::default()
    }
}

/// Speed-ups over the first degree.
fn speedups_chart(
    published: Option<&PublishedSeconds<'_>>,
    table: &TpchTable<'_>,
    place: &Message,
    lang: Lang,
) -> Option<(BarColumns, Message, Vec<Message>)> {
    let published = published.filter(|published| published.degrees.len() > 1);
    let groups = query_groups(|query| {
        let places = 1..table.columns.len();
        let columns = places.map(|at| speedup_bar(table, at, query, lang)).collect();
        (columns, published.map(|published| published.speedup(Some(query))).into_iter().collect())
    });
    let y = log_axis(say!(times_as_fast_logarithmic_axis).render(lang), &groups, Some(1.0))?;
    let from = table.columns[0].degree.to_string();
    let name =
        |degree: u32| say!(degree_speed_up, to = degree.to_string(), from = &from).render(lang);
    let mark_names = published.and_then(|published| {
        let [from, .., to] = published.degrees[..] else { return None };
        let (to, from) = (to.to_string(), from.to_string());
        Some(say!(published_degree_over, to, from).render(lang))
    });
    let chart = BarColumns {
        width: charts::WIDE.0,
        height: charts::WIDE.1 - 60.0,
        description: say!(speed_up_of_the_22_queries, place).render(lang),
        base: 1.0,
        y,
        names: table.columns[1..].iter().map(|column| name(column.degree)).collect(),
        mark_names: mark_names.into_iter().collect(),
        groups,
        ..BarColumns::default()
    };
    let mut notes = vec![say!(bars_begin_at_1_those_below), say!(strokes_span_trials)];
    notes.extend(published.map(|_| say!(published_ones_in_gray)));
    Some((chart, say!(speed_up_of_each_query_over, degree = &from, place), notes))
}

fn speedup_bar(table: &TpchTable<'_>, place: usize, query: u8, lang: Lang) -> BarColumn {
    let Some(speedup) = table.query_speedup(place, query) else {
        let title = say!(q_no_speed_up, query).render(lang);
        return BarColumn { title, ..BarColumn::default() };
    };
    let (degree, factor) = (table.columns[place].degree.to_string(), speedup.factor);
    let words = words::speedup(speedup);
    let title = say!(q_at_degree_times_as_fast, query, degree, factor = words);
    // Several bars of a query leave no room for numbers.
    let is_single = table.columns.len() == 2;
    let number = if is_single { format::plain(factor.median) } else { String::new() };
    BarColumn {
        value: Some(factor.median),
        low_high: (factor.min < factor.max).then_some((factor.min, factor.max)),
        text: format!("{}{number}", speedup.bound),
        title: title.render(lang),
        ..BarColumn::default()
    }
}
