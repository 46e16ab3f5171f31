//! Charts of a paper.

mod bars;
mod forest;
mod over_time;

pub use bars::forbidding;
pub(crate) use bars::{bars, comparison_charts, cover_chart, totals};
pub(crate) use forest::forests;
pub use over_time::{Rate, panel, rate_over_time, stretches};
pub(crate) use over_time::{TPS, trial_charts};

pub use crate::blocks::Drawing;
use crate::evidence::published::published_metric;
use crate::evidence::*;
use crate::format::{self, grouped, unique};
use crate::svg::{
    Axis, AxisScale, BarColumn, BarColumns, BarGroup, Chart, ChartRow, RowChart, Series, Shade,
    Stroke,
};
use bars::{classes, target_class_charts};
use dyno_facts::statistics::{Metric, mean_interval};
use dyno_facts::{Lang, Message, Purpose, SeriesRow, say};
use dyno_judge::findings::verdict::{bounds, ratio_of_row};
use forest::{deciding_rows_plot, throughput_interval};

pub const WIDE: (f64, f64) = (960.0, 360.0);
pub const SMALL: (f64, f64) = (470.0, 160.0);
const COLORS: usize = 7;
const PUBLISHED: &str = "published";

/// Draws throughput and latency of an experiment by load level or over time.
pub fn experiment_charts(paper: &Paper, experiment: &Experiment, lang: Lang) -> Vec<Drawing> {
    let curves = Curves { paper, experiment, levels: Levels::new(experiment), lang };
    if curves.levels.values.is_empty() || experiment.is_pass() {
        return Vec::new();
    }
    let mut figures: Vec<Drawing> = curves.scale_out().into_iter().collect();
    if curves.levels.values.len() == 1 {
        figures.extend(classes(paper, experiment, lang));
        return figures;
    }
    let measure = Measure::new(experiment);
    figures.push(curves.throughput(&measure));
    figures
        .extend(measure.statements_measure(experiment).map(|measure| curves.throughput(&measure)));
    figures.extend(target_class_charts(paper, experiment, lang));
    figures.extend(curves.latency());
    figures.extend(curves.latency_against_throughput());
    figures
}

/// An experiment whose curves are drawn.
struct Curves<'a> {
    paper: &'a Paper,
    experiment: &'a Experiment,
    levels: Levels,
    lang: Lang,
}

impl Curves<'_> {
    /// `None` unless targets differ in their number of nodes.
    fn scale_out(&self) -> Option<Drawing> {
        let (paper, experiment, lang) = (self.paper, self.experiment, self.lang);
        let rows = &experiment.node_scaling;
        let max_nodes = rows.iter().map(|row| row.nodes).max()?;
        let min_nodes = rows.iter().map(|row| row.nodes).min()?;
        let clusters: Vec<&[NodeScaling]> = rows.chunk_by(|a, b| a.cluster == b.cluster).collect();
        let mut series: Vec<Series> = Vec::new();
        for cluster in &clusters {
            series.push(measured_series(paper, cluster, lang));
            series.push(proportional_series(paper, cluster, clusters.len() > 1, lang));
        }
        let highest = rows.iter().map(|row| row.qps.max);
        let description = say!(scale_out_of_experiment, experiment = &experiment.title);
        let label = say!(statements_per_second).render(lang);
        let y = linear_axis(label.as_str(), Series::values(&series).into_iter().chain(highest), 5);
        let mut caption = vec![say!(scale_out_caption), say!(dashed_is_proportional)];
        if series.iter().any(|series| !series.band.is_empty()) {
            caption.push(say!(band_of_repeats));
        }
        let x = Axis {
            label: say!(read_only_nodes_axis).render(lang),
            scale: AxisScale::Linear { from: f64::from(min_nodes), to: f64::from(max_nodes) },
            ticks: (min_nodes..=max_nodes)
                .map(|nodes| (f64::from(nodes), nodes.to_string()))
                .collect(),
        };
        Some(self.wide(&description, [x, y], series, &caption))
    }

    /// Draws a measure of throughput against the load levels, a line for each target, published figures as dots.
    fn throughput(&self, measure: &Measure) -> Drawing {
        let (paper, experiment, levels, lang) =
            (self.paper, self.experiment, &self.levels, self.lang);
        let published = self.published_points(measure);
        let mut series: Vec<Series> = Vec::new();
        // Intervals are of what an experiment is ranked by.
        let is_main = measure.metric == Measure::new(experiment).metric;
        let has_intervals = is_main
            && experiment.points.iter().all(|point| throughput_interval(paper, point).is_some());
        for target in target_labels(experiment) {
            let target_points: Vec<&Point> =
                swept_points(experiment).filter(|point| point.target == target).collect();
            let x = levels.get;
            let is_repeated = target_points.iter().any(|point| point.repeats > 1);
            let band = target_points.iter().map(|point| {
                let spread = (measure.get)(point);
                let interval = if has_intervals { throughput_interval(paper, point) } else { None };
                let (low, high) = interval.unwrap_or((spread.min, spread.max));
                (x(point), low.max(0.0), high)
            });
            let points = target_points.iter();
            let points =
                points.map(|point| (x(point), Some((measure.get)(point).median))).collect();
            series.push(Series {
                band: if is_repeated { band.collect() } else { Vec::new() },
                has_dots: true,
                end_label: Some(target.to_owned()),
                ..Series::line(target.to_owned(), color(paper, target), points)
            });
        }
        let has_band = series.iter().any(|series| !series.band.is_empty());
        if !published.is_empty() {
            let points = published.iter().map(|(x, y)| (*x, Some(*y))).collect();
            series.push(Series {
                stroke: Stroke::Dotted,
                has_dots: true,
                is_bare: true,
                ..Series::line(say!(published).render(lang), PUBLISHED.to_owned(), points)
            });
        }
        let bands = series.iter().flat_map(|series| &series.band).map(|(_, _, high)| *high);
        let ends = experiment.points.iter().map(measure.get);
        let ends = ends.flat_map(|spread| [spread.min, spread.max]);
        let measured: Vec<f64> = ends.chain(bands).collect();
        let published_levels: Vec<f64> = published.iter().map(|(x, _)| *x).collect();
        let description = say!(
            measure_of_experiment_against_levels,
            measure = &measure.name,
            experiment = &experiment.title,
            levels = &levels.label
        );
        let y = throughput_axis(&measure.label, &measured, &published, lang);
        let bands = if has_intervals { say!(band_of_interval) } else { say!(band_of_repeats) };
        let caption = [
            Some(say!(measure_against_levels, measure = &measure.name, levels = &levels.label)),
            has_band.then_some(bands),
            (!published.is_empty()).then(|| say!(published_figures_in_gray)),
        ];
        let caption: Vec<Message> = caption.into_iter().flatten().collect();
        self.wide(&description, [levels.axis(&published_levels, lang), y], series, &caption)
    }

    /// Published throughputs that state their workers; those of counterparts if there are any.
    fn published_points(&self, measure: &Measure) -> Vec<(f64, f64)> {
        if !self.levels.is_clients {
            return Vec::new();
        }
        let published = self.experiment.published.iter();
        let rows: Vec<_> = published.flat_map(|published| &published.table.rows).collect();
        let has_counterparts = rows.iter().any(|row| !row.targets.is_empty());
        let rows = rows.into_iter().filter(|row| !has_counterparts || !row.targets.is_empty());
        rows.filter_map(|row| Some((row.workers()?, *row.metrics.get(measure.metric.name())?)))
            .collect()
    }

    /// Draws percentiles of latency against the load levels; `None` if no point has latencies.
    fn latency(&self) -> Option<Drawing> {
        let (paper, experiment, levels, lang) =
            (self.paper, self.experiment, &self.levels, self.lang);
        let targets = target_labels(experiment);
        let mut series = Vec::new();
        for target in &targets {
            for (name, stroke, percentile) in PERCENTILES {
                let points = swept_points(experiment).filter(|point| point.target == *target);
                let points = points.map(|point| {
                    let ms = percentile(point).map(|spread| spread.median / 1e3);
                    ((levels.get)(point), ms)
                });
                let full_name =
                    if targets.len() > 1 { format!("{target} {name}") } else { name.to_owned() };
                series.push(Series {
                    stroke,
                    has_dots: true,
                    end_label: Some(full_name.clone()),
                    ..Series::line(full_name, color(paper, target), points.collect())
                });
            }
        }
        let values = Series::values(&series);
        if values.is_empty() {
            return None;
        }
        let description = say!(
            latency_percentiles_of_against,
            experiment = &experiment.title,
            levels = &levels.label
        );
        let meaning = match (experiment.is_open_loop, experiment.has_terminals()) {
            (true, _) => say!(from_the_due_time),
            (false, true) => say!(response_time_of_all_kinds),
            (false, false) => say!(service_time),
        };
        let caption = say!(latency_against_levels, meaning, levels = &levels.label);
        let axes = [levels.axis(&[], lang), latency_axis(&values, 5, lang)];
        Some(self.wide(&description, axes, series, &[caption]))
    }

    /// Latency against throughput: one line per target, from the lowest to the highest load.
    fn latency_against_throughput(&self) -> Option<Drawing> {
        let (paper, experiment, levels, lang) =
            (self.paper, self.experiment, &self.levels, self.lang);
        let measure = Measure::new(experiment);
        let series = target_labels(experiment).into_iter().map(|target| {
            let points = swept_points(experiment).filter(|point| point.target == target);
            let mut points: Vec<(f64, f64, f64)> = points
                .filter_map(|point| {
                    let latency = point.p95_us?.median / 1e3;
                    Some(((levels.get)(point), (measure.get)(point).median, latency))
                })
                .collect();
            points.sort_by(|a, b| a.0.total_cmp(&b.0));
            let points = points.iter().map(|(_, tps, ms)| (*tps, Some(*ms))).collect();
            let line = Series::line(target.to_owned(), color(paper, target), points);
            Series { has_dots: true, ..line }
        });
        let series: Vec<Series> = series.collect();
        let values = Series::values(&series);
        if values.len() < 2 {
            return None;
        }
        let points = series.iter().flat_map(|series| &series.points);
        let x = linear_axis(measure.label.render(lang).as_str(), points.map(|(x, _)| *x), 8);
        let description =
            say!(p95_against_throughput_of_experiment, experiment = &experiment.title);
        let caption = say!(p95_against_throughput, levels = &levels.label);
        Some(self.wide(&description, [x, latency_axis(&values, 5, lang)], series, &[caption]))
    }

    /// A figure of one chart, and the same half as wide.
    fn wide(
        &self,
        description: &Message,
        [x, y]: [Axis; 2],
        series: Vec<Series>,
        caption: &[Message],
    ) -> Drawing {
        let ((width, height), description) = (WIDE, description.render(self.lang));
        let chart = Chart { width, height, description, x, y, series, ..Chart::default() };
        let drawing = figure(vec![chart.svg()], legend(&chart), caption, self.lang);
        Drawing { halves: vec![halved(chart).svg()], ..drawing }
    }
}

/// The points of a sweep or search: what was chosen and measured again at the same load is not a second
/// point of the curve.
fn swept_points(experiment: &Experiment) -> impl Iterator<Item = &Point> {
    // The closed loop that a search begins with has no place among scheduled rates.
    let points = experiment.points.iter();
    let points = points.filter(move |point| point.rate_per_s.is_some() == experiment.is_open_loop);
    points.filter(move |point| !is_confirmation(experiment, point))
}

/// Returns true if another point was measured at the same load before.
fn is_confirmation(experiment: &Experiment, point: &Point) -> bool {
    let other_points = experiment.points.iter().filter(|other| other.purpose != Purpose::Confirm);
    let mut other_points = other_points.filter(|other| other.target == point.target);
    point.purpose == Purpose::Confirm
        && other_points
            .any(|other| other.rate_per_s == point.rate_per_s && other.load() == point.load())
}

/// The throughput that a point is ranked by.
fn main_metric(point: &Point) -> Metric {
    point.main.map_or(Metric::Tps, |(metric, _)| metric)
}

/// The class of a target's color: one of the paper's, or `p` and its place where the publisher has chosen one.
pub fn color(paper: &Paper, target: &str) -> String {
    let place = paper.targets.iter().position(|known| known.label == target).unwrap_or(0);
    if paper.own_colors().any(|(colored, _)| colored == place) {
        format!("p{place}")
    } else {
        format!("s{}", place % COLORS)
    }
}

pub fn linear_axis(label: &str, values: impl Iterator<Item = f64>, ticks: usize) -> Axis {
    let scale = AxisScale::from_zero(0.0, values.fold(0.0, f64::max), ticks);
    Axis::new(label.to_owned(), scale, scale.ticks(ticks))
}

/// Linear; logarithmic if the values span more than a factor of 30.
pub(crate) fn latency_axis(values: &[f64], ticks: usize, lang: Lang) -> Axis {
    let above_zero: Vec<f64> = values.iter().copied().filter(|value| *value > 0.0).collect();
    let low = above_zero.iter().copied().fold(f64::INFINITY, f64::min);
    let high = above_zero.into_iter().fold(0.0, f64::max);
    if low.is_finite() && high / low > 30.0 {
        log_axis(say!(latency_ms), (low, high), ticks, lang)
    } else {
        linear_axis(&say!(latency_ms).render(lang), values.iter().copied(), ticks)
    }
}

fn log_axis(label: Message, (low, high): (f64, f64), ticks: usize, lang: Lang) -> Axis {
    let scale = AxisScale::round_log(low, high);
    let label = say!(axis_logarithmic, axis = label);
    Axis::new(label.render(lang), scale, scale.ticks(ticks + 2))
}

/// Published throughputs above this multiple of one's own would press these flat on a linear axis.
const MAX_LINEAR_RATIO: f64 = 8.0;

/// The axis of one's own results, least to highest, and published ones.
fn throughput_axis(
    label: &Message,
    measured: &[f64],
    published: &[(f64, f64)],
    lang: Lang,
) -> Axis {
    const TICKS: usize = 5;
    let low = measured.iter().copied().fold(f64::INFINITY, f64::min);
    let [measured_high, high] = [measured.to_vec(), published.iter().map(|(_, y)| *y).collect()]
        .map(|values: Vec<f64>| values.into_iter().fold(0.0, f64::max));
    if low > 0.0 && high > MAX_LINEAR_RATIO * measured_high {
        log_axis(label.clone(), (low, high), TICKS, lang)
    } else {
        linear_axis(&label.render(lang), [measured_high, high].into_iter(), TICKS)
    }
}

fn target_labels(experiment: &Experiment) -> Vec<&str> {
    unique(experiment.points.iter().map(|point| point.target.as_str()).collect())
}

/// Longer names at the ends of lines leave too little of a chart of half the width.
const MAX_HALF_LABEL: usize = 14;

/// Half as wide. If there are several lines, the legend above names them.
pub fn halved(chart: Chart) -> Chart {
    let has_one_line = chart.series.len() == 1;
    let series = chart.series.into_iter().map(|series| {
        let end_label = series.end_label;
        let end_label =
            end_label.filter(|name| has_one_line && name.chars().count() <= MAX_HALF_LABEL);
        Series { end_label, ..series }
    });
    Chart { width: SMALL.0, height: 300.0, series: series.collect(), ..chart }
}

/// A figure without a note.
fn figure(
    svgs: Vec<String>,
    legend: Vec<(String, String)>,
    caption: &[Message],
    lang: Lang,
) -> Drawing {
    let caption = Message::sentences(caption).render(lang);
    Drawing { caption, legend, svgs, ..Drawing::default() }
}

/// Names of the series in their order, with the class of their stroke.
pub fn legend(chart: &Chart) -> Vec<(String, String)> {
    let series = chart.series.iter();
    let series = series.filter(|series| series.points.iter().any(|(_, value)| value.is_some()));
    let entries = series.map(|series| {
        let stroke = if series.is_bare { " dots" } else { series.stroke.class() };
        (series.name.clone(), format!("{}{stroke}", series.class))
    });
    entries.collect()
}

/// A percentile: its name, its stroke, if it is found.
type Percentile<Source, Value> = (&'static str, Stroke, fn(&Source) -> Value);

const PERCENTILES: [Percentile<Point, Option<Spread>>; 3] = [
    ("p50", Stroke::Solid, |point| point.p50_us),
    ("p95", Stroke::Dashed, |point| point.p95_us),
    ("p99", Stroke::Dotted, |point| point.p99_us),
];

/// Statements of a transaction that has more than one.
const SEVERAL: f64 = 1.5;

/// The throughput that an experiment is about.
struct Measure {
    /// Label of the y axis.
    label: Message,
    /// Its name in captions.
    name: Message,
    get: fn(&Point) -> Spread,
    metric: Metric,
}

impl Measure {
    fn new(experiment: &Experiment) -> Measure {
        let metric = experiment.ranked_by();
        let (label, name) = match metric {
            Metric::Tpmc => (say!(new_orders_per_minute_tpmc), metric.title()),
            // Papers give reads as statements per second.
            Metric::Tps if experiment.only_reads() => {
                let (label, name) = (say!(statements_per_second), say!(throughput));
                return Measure { label, name, get: |point| point.qps, metric: Metric::Qps };
            }
            _ => (say!(transactions_per_second), say!(throughput)),
        };
        Measure { label, name, get: Point::throughput, metric }
    }

    /// Statements alongside transactions of several; papers of sysbench give both.
    fn statements_measure(&self, experiment: &Experiment) -> Option<Measure> {
        let mut points = experiment.points.iter();
        let is_apart = self.metric == Metric::Tps
            && points.all(|point| point.qps.median > SEVERAL * point.tps.median);
        is_apart.then(|| Measure {
            label: say!(statements_per_second),
            name: say!(statements_per_second_title),
            get: |point| point.qps,
            metric: Metric::Qps,
        })
    }
}

/// The x axis of an experiment: workers or terminals, or the offered rate or the scale of the data if those are
/// what changes.
struct Levels {
    label: Message,
    /// Set if they are virtual clients.
    is_clients: bool,
    get: fn(&Point) -> f64,
    values: Vec<f64>,
}

const RATE: fn(&Point) -> f64 = |point| point.rate_per_s.unwrap_or(0.0);
const LOAD: fn(&Point) -> f64 = Point::load;
const SCALE: fn(&Point) -> f64 = |point| point.scale().map_or(0.0, |scale| scale.value);

impl Levels {
    fn new(experiment: &Experiment) -> Levels {
        let [rates, loads, scales] = [RATE, LOAD, SCALE].map(|get| {
            let mut values: Vec<f64> = experiment.points.iter().map(get).collect();
            values.sort_by(f64::total_cmp);
            values.dedup();
            values
        });
        let first_scale = experiment.points.iter().find_map(Point::scale);
        let first_scale = first_scale.filter(|_| loads.len() == 1 && scales.len() > 1);
        let (label, is_clients, get, values) = match first_scale {
            _ if rates.len() > 1 => (say!(offered_transactions_per_second), false, RATE, rates),
            Some(first) => (first.label.clone(), false, SCALE, scales),
            None if experiment.has_terminals() => (say!(terminals_axis), true, LOAD, loads),
            None => (say!(workers_axis), true, LOAD, loads),
        };
        Levels { label, is_clients, get, values }
    }

    /// Load levels are usually doubled: a logarithmic axis gives them equal steps.
    fn axis(&self, published: &[f64], lang: Lang) -> Axis {
        let mut values = self.values.clone();
        values.extend_from_slice(published);
        values.sort_by(f64::total_cmp);
        values.dedup();
        let (low, high) = (values[0], values[values.len() - 1]);
        let is_log = low > 0.0 && high / low >= 8.0;
        let scale = if is_log {
            AxisScale::log(low, high)
        } else {
            AxisScale::Linear { from: low, to: high }
        };
        let ticks = if values.len() <= 12 { values } else { scale.ticks(8) };
        let ticks = ticks.into_iter().map(|value| (value, format::whole(value))).collect();
        Axis { label: self.label.render(lang), scale, ticks }
    }
}

fn measured_series(paper: &Paper, cluster: &[NodeScaling], lang: Lang) -> Series {
    let name = match cluster[0].cluster.as_str() {
        "" => say!(measured).render(lang),
        name => name.to_owned(),
    };
    let is_repeated = cluster.iter().any(|row| row.qps.max > row.qps.min);
    let band = cluster.iter().map(|row| (f64::from(row.nodes), row.qps.min, row.qps.max));
    let points = cluster.iter().map(|row| (f64::from(row.nodes), Some(row.qps.median))).collect();
    Series {
        band: if is_repeated { band.collect() } else { Vec::new() },
        has_dots: true,
        end_label: Some(name.clone()),
        ..Series::line(name, color(paper, &cluster[0].target), points)
    }
}

/// The proportional extrapolation from the fewest nodes to more of them.
fn proportional_series(
    paper: &Paper,
    cluster: &[NodeScaling],
    is_named: bool,
    lang: Lang,
) -> Series {
    let name = if is_named {
        say!(in_proportion_cluster, cluster = &cluster[0].cluster)
    } else {
        say!(in_proportion)
    };
    let points = cluster.iter().map(|row| {
        (f64::from(row.nodes), (row.efficiency > 0.0).then(|| row.qps.median / row.efficiency))
    });
    let points = points.collect();
    let line = Series::line(name.render(lang), color(paper, &cluster[0].target), points);
    Series { stroke: Stroke::Dashed, ..line }
}
