//! tpmC over time, and response times beside their limits.

use super::rows::KindRow;
use super::words;
use crate::facts::TpccFacts;
use dyno_facts::{Lang, Message};
use dyno_facts::{SeriesRow, say};
use dyno_report::charts::{self, Drawing, Rate};
use dyno_report::format;
use dyno_report::svg::{Axis, AxisScale, Mark, MarkRow, Series, Stroke, marks};
use dyno_report::{Experiment, Paper, Trial};

/// tpmC over time, a chart per trial.
pub(super) fn all_over_time(paper: &Paper, experiment: &Experiment, lang: Lang) -> Vec<Drawing> {
    let own: Vec<&Trial> = paper.trials_in(experiment).collect();
    let width = if own.len() == 1 { charts::WIDE.0 } else { charts::SMALL.0 };
    own.iter().filter_map(|trial| over_time(paper, trial, width, lang)).collect()
}

/// How many of so many intervals make a stretch that has some twenty orders; at least ten stretches.
fn sparse(intervals: usize, orders: f64) -> usize {
    const ORDERS: f64 = 20.0;
    let wanted = (ORDERS * intervals as f64 / orders.max(1.0)).ceil() as usize;
    wanted.clamp(1, (intervals / 10).max(1))
}

/// New-Orders per minute of a trial; `None` where its intervals do not tell kinds apart.
fn over_time(paper: &Paper, trial: &Trial, width: f64, lang: Lang) -> Option<Drawing> {
    let facts = trial.summary.own::<TpccFacts>()?;
    let kinds = &trial.summary.kinds;
    let place = kinds.iter().position(|kind| kind.name == TpccFacts::NEW_ORDER)?;
    let is_told = |row: &SeriesRow| row.committed_by_kind.len() == kinds.len();
    if trial.series.len() < 2 || !trial.series.iter().all(is_told) {
        return None;
    }
    let series = &trial.series;
    let orders = |row: &SeriesRow| row.committed_by_kind[place] as f64;
    let usual = charts::stretches(series);
    let sparse = sparse(series.len(), series.iter().map(orders).sum());
    let is_sparse = sparse > usual[0].len();
    let stretches = if is_sparse { series.chunks(sparse).collect() } else { usual };
    let longest = stretches[0].len();
    let tpmc = Rate { name: "tpmC", of: &orders, per_s: 60.0 };
    let class = charts::colour(paper, &trial.target);
    let mut line = charts::rate_over_time(&stretches, &tpmc, &class);
    if is_sparse {
        // Of a few orders the range of single intervals shows chance alone.
        line.band.clear();
    }
    let deferred = kinds.iter().position(|kind| kind.name == TpccFacts::DEFERRED);
    let transactions = |row: &SeriesRow| {
        let of_all = row.committed_by_kind.iter().enumerate();
        of_all.filter(|(kind, _)| Some(*kind) != deferred).map(|(_, count)| *count as f64).sum()
    };
    let total = Rate { name: "tpmTOTAL", of: &transactions, per_s: 60.0 };
    let mut total = charts::rate_over_time(&stretches, &total, &class);
    total.band.clear();
    total.stroke = Stroke::Dotted;
    let drawn = total.points.iter().filter_map(|(_, value)| *value);
    let highest = drawn.chain(line.band.iter().map(|(_, _, high)| *high)).fold(0.0, f64::max);
    let mut lines = vec![line, total];
    let last = &series[series.len() - 1];
    let span = (series[0].begins_s, last.begins_s + last.length_s);
    lines.extend(facts.tpmc_limit.map(|limit| limit_line(limit, span, lang)));
    let y = charts::linear_axis(
        say!(per_minute_tpmc_and_tpmtotal).render(lang).as_str(),
        [highest, facts.tpmc_limit.unwrap_or(0.0)].into_iter(),
        4,
    );
    let mut chart = charts::panel(trial, &"tpmC".into(), y, lines, lang);
    chart.width = width;
    chart.height += 40.0;
    let thinned = match (longest, is_sparse) {
        (1, _) => None,
        (n, true) => Some(say!(drawn_in_stretches_of_intervals_means, n = n.to_string())),
        (n, false) => Some(say!(drawn_in_stretches_of_intervals_mean_with, n = n.to_string())),
    };
    let caption = say!(
        trial_tpmc_over_time_repeat,
        trial = &trial.label,
        target = &trial.target,
        terminals = words::terminals(facts.terminals),
        repeat = trial.summary.repeat.to_string()
    );
    let caption: Vec<Message> = [caption].into_iter().chain(thinned).collect();
    Some(Drawing {
        caption: Message::sentences(&caption).render(lang),
        legend: charts::legend(&chart),
        svgs: vec![chart.svg()],
        halves: vec![charts::halved(chart).svg()],
        ..Drawing::default()
    })
}

/// The most tpmC that keying and think times allow.
fn limit_line(limit: f64, (begin_s, end_s): (f64, f64), lang: Lang) -> Series {
    Series {
        name: say!(most_that_keying_and_think_times).render(lang),
        class: "published".to_owned(),
        stroke: Stroke::Dashed,
        points: vec![(begin_s, Some(limit)), (end_s, Some(limit))],
        band: Vec::new(),
        has_dots: false,
        has_line: true,
        end_label: None,
    }
}

/// Of each target the point with the most tpmC: mean, percentiles, maximum and limit of each kind.
pub(super) fn responses(
    paper: &Paper,
    experiment: &Experiment,
    rows: &[KindRow<'_>],
    lang: Lang,
) -> Option<Drawing> {
    let best: Vec<(&str, u32)> = paper
        .key_rows()
        .iter()
        .filter(|row| row.experiment.name == experiment.name)
        .filter_map(|row| Some((row.point.target.as_str(), row.point.terminals()?)))
        .collect();
    let chosen: Vec<&KindRow<'_>> = rows
        .iter()
        .filter(|row| row.count() > 0 && best.contains(&(row.target, row.terminals)))
        .collect();
    let has_targets = best.len() > 1;
    let mut drawn: Vec<MarkRow> = Vec::new();
    for kind in format::unique(chosen.iter().map(|row| row.kind.clone()).collect()) {
        for row in chosen.iter().filter(|row| row.kind == kind) {
            drawn.push(mark_row(paper, row, has_targets, lang));
        }
    }
    let values = || {
        let of = |row: &MarkRow| {
            let marks: Vec<f64> = row.marks.iter().map(|(_, value)| *value).collect();
            marks.into_iter().chain(row.limit)
        };
        drawn.iter().flat_map(of).filter(|value| *value > 0.0).collect::<Vec<f64>>()
    };
    let (low, high) =
        (values().into_iter().reduce(f64::min)?, values().into_iter().reduce(f64::max)?);
    let scale = AxisScale::round_log(low, high);
    let ticks = scale.ticks(7).into_iter().map(|ms| (ms, duration(ms))).collect();
    let axis = Axis { label: say!(response_time_logarithmic).render(lang), scale, ticks };
    let legend = [
        (Some(Mark::Ring), say!(mean)),
        (Some(Mark::Disc), say!(n_90th_percentile)),
        (Some(Mark::Tick), say!(n_95th_99th_percentile_and_maximum)),
        (None, say!(limit_of_the_90th)),
    ];
    let legend = legend.map(|(mark, words)| (mark, words.render(lang)));
    let legend = legend.each_ref().map(|(mark, words)| (*mark, words.as_str()));
    let caption = match has_targets {
        true => say!(response_times_beside_the_limits_of),
        false => say!(response_times_beside_the_limits_of_their),
    };
    let description = say!(response_times_of, experiment = &experiment.title);
    let description = description.render(lang);
    let chart = marks(charts::WIDE.0, &description, &axis, &legend, &drawn);
    Some(Drawing { caption: caption.render(lang), svgs: vec![chart], ..Drawing::default() })
}

fn mark_row(paper: &Paper, row: &KindRow<'_>, has_targets: bool, lang: Lang) -> MarkRow {
    let figures = [
        (Mark::Tick, row.p95_us()),
        (Mark::Tick, row.p99_us()),
        (Mark::Ring, row.mean_us()),
        (Mark::Disc, row.p90_us()),
    ];
    let longest = row.max_us().map(|max_us| (Mark::Tick, max_us / 1e3));
    let mut marks: Vec<(Mark, f64)> = longest.into_iter().collect();
    marks.extend(
        figures.into_iter().filter_map(|(mark, spread)| Some((mark, spread?.median / 1e3))),
    );
    marks.retain(|(_, ms)| *ms > 0.0);
    let p90 =
        row.p90_us().map_or_else(|| format::DASH.to_owned(), |p90| duration(p90.median / 1e3));
    MarkRow {
        name: match has_targets {
            true => Message::joined(&[row.kind.clone(), Message::from(row.target)], ", ", "，"),
            false => row.kind.clone(),
        }
        .render(lang),
        class: charts::colour(paper, row.target),
        marks,
        limit: row.limit_s().filter(|limit| *limit > 0.0).map(|limit| limit * 1e3),
        text: p90,
    }
}

/// Milliseconds in the unit that suits them.
fn duration(ms: f64) -> String {
    if ms >= 1000.0 {
        format!("{} s", format::plain(ms / 1e3))
    } else {
        format!("{} ms", format::plain(ms))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_orders_are_drawn_in_long_stretches() {
        assert_eq!(sparse(200, 100_000.0), 1, "500 in each interval");
        assert_eq!(sparse(200, 400.0), 10, "2 in each interval");
        assert_eq!(sparse(200, 0.0), 20, "ten stretches, whatever is in them");
        assert_eq!(sparse(5, 1.0), 1);
    }
}
