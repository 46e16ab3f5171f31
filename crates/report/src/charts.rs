//! Which charts a paper has.

use crate::format;
use crate::levels::{Levels, Measure};
use crate::model::{Experiment, Paper, Point, Spread, Trial};
use crate::say;
use crate::svg::{Axis, Bar, Chart, Scale, Series, Shade, Stroke, bars};
use crate::text::{Lang, Text};
use crate::verdict;
use dyno_measure::SeriesRow;
use serde::Serialize;

/// A figure: drawings, and what is written around them.
#[derive(Debug, Serialize)]
pub(crate) struct Figure {
    pub(crate) caption: String,
    /// How to read it, below it; may be empty.
    pub(crate) note: String,
    pub(crate) svgs: Vec<String>,
    /// Name and colour class.
    pub(crate) legend: Vec<(String, String)>,
}

pub(crate) const WIDE: (f64, f64) = (960.0, 360.0);
pub(crate) const SMALL: (f64, f64) = (470.0, 160.0);
/// A series with more intervals is drawn in as many stretches.
const MOST_POINTS: usize = 120;
const COLOURS: usize = 7;
const PUBLISHED: &str = "published";

/// The charts of an experiment.
pub(crate) fn of_experiment(paper: &Paper, experiment: &Experiment, lang: Lang) -> Vec<Figure> {
    let levels = Levels::of(experiment);
    if levels.values.is_empty() || experiment.tpch.is_some() {
        return Vec::new();
    }
    if levels.values.len() == 1 {
        return throughput_bars(paper, experiment, lang).into_iter().collect();
    }
    let mut figures = vec![throughput(paper, experiment, &levels, lang)];
    figures.extend(latency(paper, experiment, &levels, lang));
    figures
}

pub(crate) fn colour(paper: &Paper, target: &str) -> String {
    let place = paper.targets.iter().position(|known| known.label == target).unwrap_or(0);
    format!("s{}", place % COLOURS)
}

pub(crate) fn linear_axis(label: &str, values: impl Iterator<Item = f64>, ticks: usize) -> Axis {
    let scale = Scale::from_zero(0.0, values.fold(0.0, f64::max), ticks);
    let ticks = scale.ticks(ticks).into_iter().map(|value| (value, format::plain(value))).collect();
    Axis { label: label.to_owned(), scale, ticks }
}

/// Linear; logarithmic where the values span more than a factor of 30.
pub(crate) fn latency_axis(values: &[f64], ticks: usize, lang: Lang) -> Axis {
    let label = say!("latency, ms");
    let above_zero = || values.iter().copied().filter(|value| *value > 0.0);
    let low = above_zero().fold(f64::INFINITY, f64::min);
    let high = above_zero().fold(0.0, f64::max);
    if !(low.is_finite() && high / low > 30.0) {
        return linear_axis(label.in_lang(lang), values.iter().copied(), ticks);
    }
    let scale = Scale::round_log(low, high);
    let ticks =
        scale.ticks(ticks + 2).into_iter().map(|value| (value, format::plain(value))).collect();
    let label = say!("{axis} (logarithmic)", axis = label);
    Axis { label: label.in_lang(lang).to_owned(), scale, ticks }
}

fn targets_of(experiment: &Experiment) -> Vec<&str> {
    let mut targets: Vec<&str> = Vec::new();
    for point in &experiment.points {
        if !targets.contains(&point.target.as_str()) {
            targets.push(&point.target);
        }
    }
    targets
}

fn throughput(paper: &Paper, experiment: &Experiment, levels: &Levels, lang: Lang) -> Figure {
    let measure = Measure::of(experiment);
    let published = published_points(experiment, levels, &measure);
    let mut series: Vec<Series> = Vec::new();
    let interval = |point: &Point| verdict::throughput_interval(paper, point);
    let has_intervals = experiment.points.iter().all(|point| interval(point).is_some());
    for target in targets_of(experiment) {
        let own: Vec<&Point> =
            experiment.points.iter().filter(|point| point.target == target).collect();
        let x = levels.of;
        let is_repeated = own.iter().any(|point| point.repeats > 1);
        let y = |point: &Point| (measure.of)(point);
        let band = own.iter().map(|point| {
            let (low, high) = if has_intervals { interval(point) } else { None }
                .unwrap_or((y(point).min, y(point).max));
            (x(point), low, high)
        });
        series.push(Series {
            name: target.to_owned(),
            class: colour(paper, target),
            stroke: Stroke::Solid,
            points: own.iter().map(|point| (x(point), Some(y(point).median))).collect(),
            band: if is_repeated { band.collect() } else { Vec::new() },
            has_dots: true,
            has_line: true,
            end_label: Some(target.to_owned()),
        });
        if levels.is_clients {
            series.extend(verdict::curve_of(paper, &experiment.name, target, lang));
        }
    }
    let has_curve = series.iter().any(|series| series.stroke == Stroke::Dashed);
    let has_band = series.iter().any(|series| !series.band.is_empty());
    if !published.is_empty() {
        series.push(Series {
            name: say!("published").in_lang(lang).to_owned(),
            class: PUBLISHED.to_owned(),
            stroke: Stroke::Dotted,
            points: published.iter().map(|(x, y)| (*x, Some(*y))).collect(),
            band: Vec::new(),
            has_dots: true,
            has_line: false,
            end_label: None,
        });
    }
    let measured = experiment.points.iter().map(|point| (measure.of)(point).max);
    let highest = measured.chain(published.iter().map(|(_, y)| *y));
    let more: Vec<f64> = published.iter().map(|(x, _)| *x).collect();
    let chart = Chart {
        width: WIDE.0,
        height: WIDE.1,
        description: say!(
            "{measure} of {experiment} against {levels}",
            measure = &measure.name,
            experiment = &experiment.title,
            levels = &levels.label,
        )
        .in_lang(lang)
        .to_owned(),
        x: levels.axis(&more, lang),
        y: linear_axis(measure.label.in_lang(lang), highest, 5),
        left_letters: 0,
        shades: Vec::new(),
        series,
    };
    let mut caption =
        vec![say!("{measure} against {levels}.", measure = &measure.name, levels = &levels.label,)];
    if has_band {
        caption.push(match has_intervals {
            true => say!("Lines join the medians; the band is the 95 % interval of the mean."),
            false => {
                say!("Lines join the medians; the band spans the lowest and the highest repeat.")
            }
        });
    }
    if has_curve {
        caption
            .push(say!("Dashed: the Universal Scalability Law, as far as points were measured."));
    }
    if !published.is_empty() {
        caption.push(say!("Published figures in grey."));
    }
    Figure {
        note: String::new(),
        caption: Text::sentences(&caption).in_lang(lang).to_owned(),
        legend: legend(&chart),
        svgs: vec![chart.svg()],
    }
}

/// Names of the series in their order, with the class of their stroke.
pub(crate) fn legend(chart: &Chart) -> Vec<(String, String)> {
    let entry = |series: &Series| {
        let stroke = if series.has_line { series.stroke.class() } else { " dots" };
        (series.name.clone(), format!("{}{stroke}", series.class))
    };
    chart.series.iter().map(entry).collect()
}

/// Published throughputs that state their workers; those of counterparts where there are any.
fn published_points(
    experiment: &Experiment,
    levels: &Levels,
    measure: &Measure,
) -> Vec<(f64, f64)> {
    if !levels.is_clients {
        return Vec::new();
    }
    let rows = || experiment.published.iter().flat_map(|shown| &shown.table.rows);
    let has_counterparts = rows().any(|row| !row.targets.is_empty());
    let chosen = rows().filter(|row| !has_counterparts || !row.targets.is_empty());
    chosen.filter_map(|row| Some((row.workers()?, *row.metrics.get(measure.metric)?))).collect()
}

/// A percentile: its name, its stroke, where it is found.
type Percentile<Of, Is> = (&'static str, Stroke, fn(&Of) -> Is);

const PERCENTILES: [Percentile<Point, Option<Spread>>; 3] = [
    ("p50", Stroke::Solid, |point| point.p50_us),
    ("p95", Stroke::Dashed, |point| point.p95_us),
    ("p99", Stroke::Dotted, |point| point.p99_us),
];

fn latency(paper: &Paper, experiment: &Experiment, levels: &Levels, lang: Lang) -> Option<Figure> {
    let targets = targets_of(experiment);
    let mut series = Vec::new();
    for target in &targets {
        for (name, stroke, percentile) in PERCENTILES {
            let own = experiment.points.iter().filter(|point| point.target == *target);
            let points: Vec<(f64, Option<f64>)> = own
                .map(|point| {
                    ((levels.of)(point), percentile(point).map(|spread| spread.median / 1e3))
                })
                .collect();
            let full = if targets.len() > 1 { format!("{target} {name}") } else { name.to_owned() };
            series.push(Series {
                name: full.clone(),
                class: colour(paper, target),
                stroke,
                points,
                band: Vec::new(),
                has_dots: true,
                has_line: true,
                end_label: Some(full),
            });
        }
    }
    let values: Vec<f64> =
        series.iter().flat_map(|series| &series.points).filter_map(|(_, value)| *value).collect();
    if values.is_empty() {
        return None;
    }
    let chart = Chart {
        width: WIDE.0,
        height: WIDE.1,
        description: say!(
            "Latency percentiles of {experiment} against {levels}",
            experiment = &experiment.title,
            levels = &levels.label,
        )
        .in_lang(lang)
        .to_owned(),
        x: levels.axis(&[], lang),
        y: latency_axis(&values, 5, lang),
        left_letters: 0,
        shades: Vec::new(),
        series,
    };
    let meaning = match (experiment.is_open_loop, &experiment.tpcc) {
        (true, _) => say!("from the due time"),
        (false, Some(_)) => say!("response time of all kinds"),
        (false, None) => say!("service time"),
    };
    Some(Figure {
        note: String::new(),
        caption: say!(
            "Latency ({meaning}) against {levels}: median (solid), 95th (dashed) and 99th percentile (dotted).",
            meaning = meaning,
            levels = &levels.label,
        )
        .in_lang(lang)
        .to_owned(),
        legend: legend(&chart),
        svgs: vec![chart.svg()],
    })
}

/// With a single load level there is no curve; bars show it beside the published figures. A bar
/// alone shows nothing.
fn throughput_bars(paper: &Paper, experiment: &Experiment, lang: Lang) -> Option<Figure> {
    let measure = Measure::of(experiment);
    let own = experiment.points.iter().map(|point| {
        let spread = (measure.of)(point);
        Bar {
            name: point.target.clone(),
            class: colour(paper, &point.target),
            value: spread.median,
            low_high: (point.repeats > 1).then_some((spread.min, spread.max)),
            text: format::short(spread.median),
        }
    });
    let rows = experiment.published.iter().flat_map(|shown| &shown.table.rows);
    let published = rows.filter_map(|row| {
        let value = *row.metrics.get(measure.metric)?;
        Some(Bar {
            name: say!("{row}, published", row = &row.label).in_lang(lang).to_owned(),
            class: PUBLISHED.to_owned(),
            value,
            low_high: None,
            text: format::short(value),
        })
    });
    let all: Vec<Bar> = own.chain(published).collect();
    if all.len() < 2 {
        return None;
    }
    let has_published = all.iter().any(|bar| bar.class == PUBLISHED);
    let mut caption = vec![say!("{measure} at the only load level.", measure = measure.head)];
    if has_published {
        caption.push(say!("Published figures in grey."));
    }
    let description =
        say!("{measure} of {experiment}", measure = measure.name, experiment = &experiment.title);
    Some(Figure {
        note: String::new(),
        caption: Text::sentences(&caption).in_lang(lang).to_owned(),
        svgs: vec![bars(WIDE.0, description.in_lang(lang), &all)],
        legend: Vec::new(),
    })
}

/// Throughput and latency of a trial over time; `None` when it has fewer than two intervals.
pub(crate) fn of_trial(paper: &Paper, trial: &Trial, lang: Lang) -> Option<Figure> {
    if trial.series.len() < 2 {
        return None;
    }
    let stretches = stretches(&trial.series);
    let class = colour(paper, &trial.target);
    let longest = stretches.iter().map(|stretch| stretch.len()).max().unwrap_or(1);
    let per_s = say!("transactions per second");
    let mut throughput = rate_over_time(&stretches, &TPS, &class);
    throughput.name = per_s.in_lang(lang).to_owned();
    let percentiles = latency_over_time(&stretches, &class);
    let points = percentiles.iter().flat_map(|series| &series.points);
    let values: Vec<f64> = points.filter_map(|(_, value)| *value).collect();
    let tps = trial.series.iter().map(|row| row.tps);
    let axis = linear_axis(per_s.in_lang(lang), tps, 3);
    let mut tps = panel(trial, &say!("Throughput"), axis, vec![throughput], lang);
    let axis = latency_axis(&values, 3, lang);
    let mut latency = panel(trial, &say!("Latency"), axis, percentiles, lang);
    // One time axis for both.
    tps.x.label.clear();
    tps.height -= 14.0;
    tps.left_letters = latency.y.letters();
    latency.left_letters = tps.y.letters();
    let summary = &trial.summary;
    let workers = Text::count(summary.workers.into(), "{n} worker", "{n} workers");
    let load = match summary.rate_per_s {
        Some(rate) => say!(
            "{workers}, {rate} per second offered",
            workers = workers,
            rate = format::plain(rate),
        ),
        None => workers,
    };
    let mut caption = vec![say!(
        "Trial {trial}: {experiment}, {target}, {load}, repeat {repeat}.",
        trial = &trial.label,
        experiment = &summary.experiment,
        target = &trial.target,
        load = load,
        repeat = summary.repeat.to_string(),
    )];
    if longest > 1 {
        caption.push(say!(
            "Drawn in stretches of {n} intervals: mean throughput with its range, highest percentile.",
            n = longest.to_string(),
        ));
    }
    Some(Figure {
        note: String::new(),
        caption: Text::sentences(&caption).in_lang(lang).to_owned(),
        legend: legend(&latency),
        svgs: vec![tps.svg(), latency.svg()],
    })
}

pub(crate) fn panel(trial: &Trial, what: &Text, y: Axis, series: Vec<Series>, lang: Lang) -> Chart {
    let from = trial.series[0].begins_s;
    let last = &trial.series[trial.series.len() - 1];
    let scale = Scale::Linear { from, to: (last.begins_s + last.length_s).max(from + 1e-3) };
    let seconds = scale.ticks(6).into_iter().map(|value| (value, format::plain(value))).collect();
    Chart {
        width: SMALL.0,
        height: SMALL.1,
        description: say!("{what} of trial {trial} over time", what = what, trial = &trial.label)
            .in_lang(lang)
            .to_owned(),
        x: Axis { label: say!("seconds").in_lang(lang).to_owned(), scale, ticks: seconds },
        y,
        left_letters: 0,
        shades: shades(trial, lang),
        series,
    }
}

pub(crate) fn stretches(series: &[SeriesRow]) -> Vec<&[SeriesRow]> {
    series.chunks(series.len().div_ceil(MOST_POINTS)).collect()
}

pub(crate) fn middle(stretch: &[SeriesRow]) -> f64 {
    let last = &stretch[stretch.len() - 1];
    f64::midpoint(stretch[0].begins_s, last.begins_s + last.length_s)
}

/// A rate over time: the name of the series, what it counts in an interval, per how many seconds.
pub(crate) struct Rate<'a> {
    pub(crate) name: &'static str,
    pub(crate) of: &'a dyn Fn(&SeriesRow) -> f64,
    pub(crate) per_s: f64,
}

const TPS: Rate<'static> =
    Rate { name: "transactions per second", of: &|row| row.committed as f64, per_s: 1.0 };

impl Rate<'_> {
    /// Over some intervals; `None` where they have no length.
    pub(crate) fn over(&self, rows: &[SeriesRow]) -> Option<f64> {
        let seconds: f64 = rows.iter().map(|row| row.length_s).sum();
        let count: f64 = rows.iter().map(self.of).sum();
        (seconds > 0.0).then(|| count * self.per_s / seconds)
    }
}

pub(crate) fn rate_over_time(stretches: &[&[SeriesRow]], rate: &Rate<'_>, class: &str) -> Series {
    let is_thinned = stretches.iter().any(|stretch| stretch.len() > 1);
    let mean = |stretch: &&[SeriesRow]| (middle(stretch), rate.over(stretch));
    let range = |stretch: &&[SeriesRow]| {
        let each = || stretch.chunks(1).filter_map(|row| rate.over(row));
        Some((middle(stretch), each().reduce(f64::min)?, each().reduce(f64::max)?))
    };
    Series {
        name: rate.name.to_owned(),
        class: class.to_owned(),
        stroke: Stroke::Solid,
        points: stretches.iter().map(mean).collect(),
        band: if is_thinned { stretches.iter().filter_map(range).collect() } else { Vec::new() },
        has_dots: false,
        has_line: true,
        end_label: None,
    }
}

fn latency_over_time(stretches: &[&[SeriesRow]], class: &str) -> Vec<Series> {
    let percentiles: [Percentile<SeriesRow, f64>; 3] = [
        ("p50", Stroke::Solid, |row| row.p50_us),
        ("p95", Stroke::Dashed, |row| row.p95_us),
        ("p99", Stroke::Dotted, |row| row.p99_us),
    ];
    let series = |(name, stroke, percentile): Percentile<SeriesRow, f64>| Series {
        name: name.to_owned(),
        class: class.to_owned(),
        stroke,
        points: stretches
            .iter()
            .map(|stretch| {
                // An interval without a commit has no latency; the line breaks there.
                let values = stretch.iter().filter(|row| row.max_us > 0.0).map(percentile);
                (middle(stretch), values.reduce(f64::max).map(|us| us / 1e3))
            })
            .collect(),
        band: Vec::new(),
        has_dots: false,
        has_line: true,
        end_label: None,
    };
    percentiles.map(series).into()
}

/// Warm-up, stretches without a commit, and intervals with errors or reconnects.
fn shades(trial: &Trial, lang: Lang) -> Vec<Shade> {
    let mut shades = Vec::new();
    let warm = trial.series.iter().filter(|row| row.phase != "measured");
    let end_of_warm_up = warm.map(|row| row.begins_s + row.length_s).reduce(f64::max);
    if let Some(to) = end_of_warm_up {
        let title = say!("warm-up, not measured").in_lang(lang).to_owned();
        shades.push(Shade { from: trial.series[0].begins_s, to, class: "warm", title });
    }
    for gap in &trial.gaps {
        let title = say!(
            "no commit from {from} s to {to} s",
            from = format::plain(gap.from_s),
            to = format::plain(gap.to_s),
        )
        .in_lang(lang)
        .to_owned();
        shades.push(Shade { from: gap.from_s, to: gap.to_s, class: "gap", title });
    }
    let mut marks: Vec<Shade> = Vec::new();
    for row in trial.series.iter().filter(|row| row.errors + row.reconnects > 0) {
        let to = row.begins_s + row.length_s;
        match marks.last_mut().filter(|mark| (mark.to - row.begins_s).abs() < 1e-6) {
            // Neighbours become one mark, so that a trial full of errors stays a small drawing.
            Some(mark) => mark.to = to,
            None => {
                marks.push(Shade { from: row.begins_s, to, class: "error", title: String::new() })
            }
        }
    }
    for mark in &mut marks {
        let within =
            |row: &&SeriesRow| row.begins_s >= mark.from - 1e-6 && row.begins_s < mark.to - 1e-6;
        let rows = || trial.series.iter().filter(within);
        let errors: u64 = rows().map(|row| row.errors).sum();
        let reconnects: u64 = rows().map(|row| row.reconnects).sum();
        let both = [
            Text::count(errors, "{n} error", "{n} errors"),
            Text::count(reconnects, "{n} reconnect", "{n} reconnects"),
        ];
        mark.title = Text::list(&both).in_lang(lang).to_owned();
    }
    shades.extend(marks);
    shades
}
