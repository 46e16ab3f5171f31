//! Times and speed-ups of the 22 queries as bars.

use super::tables::TpchTable;
use super::{QUERIES, TpchSection, words};
use dyno_facts::{Lang, Message, say};
use dyno_report::Paper;
use dyno_report::charts::{self, Drawing};
use dyno_report::format;
use dyno_report::svg::{Axis, AxisScale, BarColumn, BarColumns, BarGroup};

/// A chart with a group of bars for each query.
struct QueryBars<'a> {
    caption: Message,
    /// For those who can't see it.
    description: Message,
    axis: Message,
    /// Where bars begin; `None` is clearly below all values.
    base: Option<f64>,
    height: f64,
    limit: Option<f64>,
    bound_name: String,
    bars: &'a dyn Fn(u8) -> Vec<BarColumn>,
    names: Vec<Message>,
    marks: &'a dyn Fn(u8) -> Vec<Option<f64>>,
    mark_names: Vec<Message>,
    /// Said of the place where bars begin, of bars with a range, and at the end.
    notes: (fn(String) -> Message, Message, Option<Message>),
}

impl QueryBars<'_> {
    /// `None` where no bar has a value.
    fn draw(self, paper: &Paper, target: &str, lang: Lang) -> Option<Drawing> {
        let group = |query: u8| BarGroup {
            name: format!("Q{query}"),
            columns: (self.bars)(query),
            marks: (self.marks)(query),
            ..BarGroup::default()
        };
        let groups: Vec<BarGroup> = (1..=QUERIES).map(group).collect();
        let y = log_axis(self.axis.render(lang), &groups, self.base)?;
        let base = self.base.unwrap_or(y.scale.ends().0);
        let mut columns = groups.iter().flat_map(|group| &group.columns);
        let is_spread = columns.any(|column| column.low_high.is_some_and(|(low, high)| low < high));
        let (of_base, of_spread, last) = self.notes;
        let notes: Vec<Message> = [of_base(format::plain(base))]
            .into_iter()
            .chain(is_spread.then_some(of_spread))
            .chain(last)
            .collect();
        let render = |texts: &[Message]| texts.iter().map(|text| text.render(lang)).collect();
        let chart = BarColumns {
            width: charts::WIDE.0,
            height: self.height,
            description: self.description.render(lang),
            class: charts::colour(paper, target),
            base,
            y,
            limit: self.limit,
            bound_name: self.bound_name,
            names: render(&self.names),
            mark_names: render(&self.mark_names),
            groups,
        };
        Some(Drawing {
            caption: self.caption.render(lang),
            note: Message::sentences(&notes).render(lang),
            svgs: vec![chart.svg()],
            ..Drawing::default()
        })
    }
}

/// A logarithmic axis that reaches all columns with their ranges and marks. Its begin lies clearly below all values, or
/// at `base` where one is given.
fn log_axis(label: String, groups: &[BarGroup], base: Option<f64>) -> Option<Axis> {
    const ROOM: f64 = 1.6;
    let columns = groups.iter().flat_map(|group| &group.columns);
    let ends = columns.filter(|column| column.value.is_some()).flat_map(|column| {
        column.value.into_iter().chain(column.low_high.into_iter().flat_map(|(a, b)| [a, b]))
    });
    let mut values: Vec<f64> = ends.collect();
    if values.is_empty() {
        return None;
    }
    values.extend(groups.iter().flat_map(|group| &group.marks).copied().flatten());
    values.extend(base);
    let low = values.iter().copied().filter(|value| *value > 0.0).reduce(f64::min)?;
    let high = values.iter().copied().reduce(f64::max)?;
    let scale = match base {
        // Labels stand beyond the ends of the bars.
        Some(_) => AxisScale::round_log(if low < 1.0 { low / ROOM } else { low }, high * ROOM),
        None => AxisScale::round_log(low / ROOM, high),
    };
    let ticks = scale.ticks(9).into_iter().map(|value| (value, format::plain(value))).collect();
    Some(Axis { label, scale, ticks })
}

/// The charts of a table.
pub(super) fn of_table(
    paper: &Paper,
    section: &TpchSection<'_>,
    table: &TpchTable<'_>,
    lang: Lang,
) -> impl Iterator<Item = Drawing> {
    let place =
        say!(target_setup, target = table.target, setup = words::setup(table.setup, table.streams));
    let speedups = (table.columns.len() > 1).then(|| speedups(paper, section, table, &place, lang));
    [times(paper, section, table, &place, lang), speedups.flatten()].into_iter().flatten()
}

fn times(
    paper: &Paper,
    section: &TpchSection<'_>,
    table: &TpchTable<'_>,
    place: &Message,
    lang: Lang,
) -> Option<Drawing> {
    let published = section.published.first();
    let degrees = published.map_or(&[][..], |published| published.degrees.as_slice());
    let has_bound = table.columns.iter().any(|column| column.is_penalised());
    let limit = match table.timeouts_s()[..] {
        [bound] if has_bound => Some(bound),
        _ => None,
    };
    let bound_name = match limit {
        Some(bound) => say!(given_up_after_s_the_true, s = format::plain(bound)),
        None => say!(given_up_the_true_time_lies),
    };
    let published_name = |degree: &u32| match published.and_then(|published| published.scale) {
        Some(scale) => {
            say!(published_at_sf_degree, scale = format::plain(scale), degree = degree.to_string())
        }
        None => say!(published_degree_degree, degree = degree.to_string()),
    };
    let degree_name = |degree: u32| say!(degree_degree, degree = degree.to_string());
    let bars = QueryBars {
        caption: say!(seconds_of_each_query, place = place),
        description: say!(seconds_of_the_22_queries_of, place = place),
        axis: say!(seconds_logarithmic_axis),
        base: None,
        height: charts::WIDE.1,
        limit,
        bound_name: bound_name.render(lang),
        bars: &|query| (0..table.columns.len()).map(|at| time(table, at, query, lang)).collect(),
        names: table.columns.iter().map(|column| degree_name(column.degree)).collect(),
        marks: &|query| {
            let at = |place| published.and_then(|published| published.at(Some(query), place));
            (0..degrees.len()).map(at).collect()
        },
        mark_names: degrees.iter().map(published_name).collect(),
        notes: (
            |base| say!(the_axis_is_logarithmic_and_begins, base = base),
            say!(bars_end_at_the_median_strokes),
            None,
        ),
    };
    bars.draw(paper, table.target, lang)
}

fn time(table: &TpchTable<'_>, place: usize, query: u8, lang: Lang) -> BarColumn {
    let column = &table.columns[place];
    let times = column.times(query);
    let mut seconds = match times.seconds {
        Some(seconds) => say!(seconds_s, seconds = format::short(seconds.median)),
        None => say!(no_time),
    };
    if times.timed_out > 0 {
        seconds = say!(
            given_up_in_of,
            seconds = seconds,
            n = times.timed_out.to_string(),
            all = times.executions.to_string()
        );
    }
    let degree = column.degree.to_string();
    let title = say!(q_at_degree, query = query.to_string(), degree = degree, seconds = seconds);
    let range = times.seconds.filter(|seconds| seconds.min > 0.0);
    BarColumn {
        value: times.seconds.map(|seconds| seconds.median).filter(|median| *median > 0.0),
        low_high: range.map(|seconds| (seconds.min, seconds.max)),
        is_bound: times.timed_out > 0,
        absent: (times.failed > 0).then_some("\u{d7}"),
        title: title.render(lang),
        ..BarColumn::default()
    }
}

/// Speed-ups over the first degree.
fn speedups(
    paper: &Paper,
    section: &TpchSection<'_>,
    table: &TpchTable<'_>,
    place: &Message,
    lang: Lang,
) -> Option<Drawing> {
    let from = table.columns[0].degree.to_string();
    let published = section.published.first().filter(|published| published.degrees.len() > 1);
    let name = |degree: u32| say!(degree_to_over_from, to = degree.to_string(), from = &from);
    let mark_name = published.map(|published| {
        let (from, to) = (published.degrees.first(), published.degrees.last());
        let text = |degree: Option<&u32>| degree.map(u32::to_string).unwrap_or_default();
        say!(published_degree_over, to = text(to), from = text(from))
    });
    let bars = QueryBars {
        caption: say!(speed_up_of_each_query_over, degree = &from, place = place),
        description: say!(speed_up_of_the_22_queries, place = place),
        axis: say!(times_as_fast_logarithmic_axis),
        base: Some(1.0),
        height: charts::WIDE.1 - 60.0,
        limit: None,
        bound_name: String::new(),
        bars: &|query| (1..table.columns.len()).map(|at| speedup(table, at, query, lang)).collect(),
        names: table.columns[1..].iter().map(|column| name(column.degree)).collect(),
        marks: &|query| published.map(|own| own.speedup(Some(query))).into_iter().collect(),
        mark_names: mark_name.into_iter().collect(),
        notes: (
            |_| say!(bars_begin_at_1_those_below),
            say!(strokes_span_the_lowest_and_the),
            published.is_some().then(|| say!(published_ones_in_grey)),
        ),
    };
    bars.draw(paper, table.target, lang)
}

fn speedup(table: &TpchTable<'_>, place: usize, query: u8, lang: Lang) -> BarColumn {
    let Some(speedup) = table.query_speedup(place, query) else {
        let title = say!(q_no_speed_up, query = query.to_string()).render(lang);
        return BarColumn { title, ..BarColumn::default() };
    };
    let title = say!(
        q_at_degree_times_as_fast,
        query = query.to_string(),
        degree = table.columns[place].degree.to_string(),
        factor = words::speedup(&speedup)
    );
    // Several bars of a query leave no room for numbers.
    let number = match table.columns.len() {
        2 => format::plain(speedup.median),
        _ => String::new(),
    };
    BarColumn {
        value: Some(speedup.median),
        low_high: speedup.is_spread.then_some((speedup.min, speedup.max)),
        text: format!("{}{number}", speedup.bound),
        title: title.render(lang),
        ..BarColumn::default()
    }
}
