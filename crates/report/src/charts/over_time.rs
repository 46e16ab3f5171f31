//! Trials over time.

use super::*;

/// A series with more intervals is drawn in as many stretches; papers of many trials draw fewer, so
/// that they stay small.
const MAX_STRETCHES: usize = 120;
const MIN_STRETCHES: usize = 24;
/// Stretches of all trials of a paper together.
const MAX_STRETCHES_IN_TOTAL: usize = 6_000;

/// At most this many trials are drawn.
const MAX_DRAWN: usize = 120;

/// Returns the charts of the first trials over time, and the number of trials that are not drawn.
pub(crate) fn trial_charts(paper: &Paper, lang: Lang) -> (Vec<Drawing>, usize) {
    let trials: Vec<&Trial> = paper.trials.iter().filter(|trial| trial.series.len() > 1).collect();
    let charts = trials.iter().take(MAX_DRAWN).map(|trial| trial_chart(paper, trial, lang));
    (charts.collect(), trials.len().saturating_sub(MAX_DRAWN))
}

/// Throughput and latency of a trial over time.
fn trial_chart(paper: &Paper, trial: &Trial, lang: Lang) -> Drawing {
    let share = MAX_STRETCHES_IN_TOTAL / paper.trials.len().clamp(1, MAX_DRAWN);
    let max_stretches = share.clamp(MIN_STRETCHES, MAX_STRETCHES);
    let length = trial.series.len().div_ceil(max_stretches);
    let stretches: Vec<&[SeriesRow]> = trial.series.chunks(length).collect();
    let class = color(paper, &trial.target);
    let per_s = say!(transactions_per_second);
    let mut throughput = rate_over_time(&stretches, &TPS, &class);
    throughput.name = per_s.render(lang);
    let percentiles = latency_over_time(&stretches, &class);
    let values = Series::values(&percentiles);
    let tps = trial.series.iter().map(|row| row.tps);
    let axis = linear_axis(per_s.render(lang).as_str(), tps, 3);
    let mut tps = panel(trial, &say!(throughput), axis, vec![throughput], lang);
    let axis = latency_axis(&values, 3, lang);
    let mut latency = panel(trial, &say!(latency), axis, percentiles, lang);
    // One time axis for both.
    tps.x.label.clear();
    tps.height -= 14.0;
    tps.left_letters = latency.y.letters();
    latency.left_letters = tps.y.letters();
    let summary = &trial.summary;
    let workers = say!(n_workers, n = summary.workers);
    let load = match summary.rate_per_s {
        Some(rate) => say!(per_second_offered, workers, rate = format::plain(rate)),
        None => workers,
    };
    let mut caption = vec![say!(
        trial_over_time_caption,
        trial = &trial.label,
        experiment = &summary.experiment,
        target = &trial.target,
        load,
        repeat = summary.repeat.to_string()
    )];
    if length > 1 {
        caption.push(say!(drawn_in_stretches, n = length.to_string()));
    }
    figure(vec![tps.svg(), latency.svg()], legend(&latency), &caption, lang)
}

/// Returns a chart of a trial over its whole time, as small as one of several in a figure.
pub fn panel(trial: &Trial, what: &Message, y: Axis, series: Vec<Series>, lang: Lang) -> Chart {
    let from = trial.series[0].begins_s;
    let last = &trial.series[trial.series.len() - 1];
    let scale = AxisScale::Linear { from, to: (last.begins_s + last.length_s).max(from + 1e-3) };
    Chart {
        width: SMALL.0,
        height: SMALL.1,
        description: say!(of_trial_over_time, what, trial = &trial.label).render(lang),
        x: Axis::new(say!(seconds).render(lang), scale, scale.ticks(6)),
        y,
        left_letters: 0,
        shades: shades(trial, lang),
        series,
    }
}

/// Divides a series into as many stretches as are drawn at most.
pub fn stretches(series: &[SeriesRow]) -> Vec<&[SeriesRow]> {
    series.chunks(series.len().div_ceil(MAX_STRETCHES)).collect()
}

/// Returns the middle of a stretch, in seconds of the trial.
fn middle(stretch: &[SeriesRow]) -> f64 {
    let last = &stretch[stretch.len() - 1];
    f64::midpoint(stretch[0].begins_s, last.begins_s + last.length_s)
}

/// A rate over time: the name of the series, what it counts in an interval, per how many seconds.
pub struct Rate<'a> {
    pub name: &'static str,
    pub of: &'a dyn Fn(&SeriesRow) -> f64,
    pub per_s: f64,
}

pub(crate) const TPS: Rate<'static> =
    Rate { name: "transactions per second", of: &|row| row.committed as f64, per_s: 1.0 };

impl Rate<'_> {
    /// Over some intervals; `None` if they have no length.
    pub(crate) fn over(&self, rows: &[SeriesRow]) -> Option<f64> {
        let seconds: f64 = rows.iter().map(|row| row.length_s).sum();
        let count: f64 = rows.iter().map(self.of).sum();
        (seconds > 0.0).then(|| count * self.per_s / seconds)
    }
}

pub fn rate_over_time(stretches: &[&[SeriesRow]], rate: &Rate<'_>, class: &str) -> Series {
    let is_thinned = stretches.iter().any(|stretch| stretch.len() > 1);
    let band = stretches.iter().filter_map(|stretch| {
        let rates: Vec<f64> = stretch.chunks(1).filter_map(|row| rate.over(row)).collect();
        let low = rates.iter().copied().reduce(f64::min)?;
        Some((middle(stretch), low, rates.into_iter().reduce(f64::max)?))
    });
    let points = stretches.iter().map(|stretch| (middle(stretch), rate.over(stretch))).collect();
    Series {
        band: if is_thinned { band.collect() } else { Vec::new() },
        ..Series::line(rate.name.to_owned(), class.to_owned(), points)
    }
}

fn latency_over_time(stretches: &[&[SeriesRow]], class: &str) -> Vec<Series> {
    let percentiles: [Percentile<SeriesRow, f64>; 3] = [
        ("p50", Stroke::Solid, |row| row.p50_us),
        ("p95", Stroke::Dashed, |row| row.p95_us),
        ("p99", Stroke::Dotted, |row| row.p99_us),
    ];
    let lines = percentiles.map(|(name, stroke, percentile)| {
        let points = stretches.iter().map(|stretch| {
            // An interval without a commit has no latency; the line breaks there.
            let values = stretch.iter().filter(|row| row.max_us > 0.0).map(percentile);
            (middle(stretch), values.reduce(f64::max).map(|us| us / 1e3))
        });
        Series { stroke, ..Series::line(name.to_owned(), class.to_owned(), points.collect()) }
    });
    lines.into()
}

/// Warm-up, stretches without a commit, and intervals with errors or reconnects.
fn shades(trial: &Trial, lang: Lang) -> Vec<Shade> {
    let mut shades = Vec::new();
    let warm = trial.series.iter().filter(|row| row.phase != "measured");
    let end_of_warm_up = warm.map(|row| row.begins_s + row.length_s).reduce(f64::max);
    if let Some(to) = end_of_warm_up {
        let title = say!(warm_up_not_measured).render(lang);
        shades.push(Shade { from: trial.series[0].begins_s, to, class: "warm", title });
    }
    for gap in &trial.gaps {
        let title = say!(
            no_commit_from_s_to_s,
            from = format::plain(gap.from_s),
            to = format::plain(gap.to_s)
        )
        .render(lang);
        shades.push(Shade { from: gap.from_s, to: gap.to_s, class: "gap", title });
    }
    let mut marks: Vec<Shade> = Vec::new();
    for row in trial.series.iter().filter(|row| row.errors + row.reconnects > 0) {
        let to = row.begins_s + row.length_s;
        match marks.last_mut().filter(|mark| (mark.to - row.begins_s).abs() < 1e-6) {
            // Neighbors become one mark, so that a trial full of errors stays a small drawing.
            Some(mark) => mark.to = to,
            None => {
                let title = say!(intervals_with_errors_or_reconnects).render(lang);
                marks.push(Shade { from: row.begins_s, to, class: "error", title });
            }
        }
    }
    shades.extend(marks);
    shades
}
