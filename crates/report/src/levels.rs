//! What an experiment's charts have as their axes.

use crate::evidence::{Experiment, Point, Spread};
use crate::format;
use crate::svg::{Axis, AxisScale};
use crate::text::{Lang, Message};
use dyno_facts::say;
use dyno_facts::statistics::Metric;

/// Statements of a transaction that has more than one.
const SEVERAL: f64 = 1.5;

/// The throughput that an experiment is about.
pub(crate) struct Measure {
    /// Of the y axis.
    pub(crate) label: Message,
    /// In captions.
    pub(crate) name: Message,
    pub(crate) of: fn(&Point) -> Spread,
    pub(crate) metric: Metric,
}

impl Measure {
    pub(crate) fn of(experiment: &Experiment) -> Measure {
        let metric = experiment.ranked_by();
        let (label, name) = match metric {
            Metric::Tpmc => (say!(new_orders_per_minute_tpmc), metric.title()),
            // Papers give reads as statements per second.
            Metric::Tps if experiment.only_reads() => {
                let (label, name) = (say!(statements_per_second), say!(throughput));
                return Measure { label, name, of: |point| point.qps, metric: Metric::Qps };
            }
            _ => (say!(transactions_per_second), say!(throughput)),
        };
        Measure { label, name, of: Point::throughput, metric }
    }

    /// Statements beside transactions of several; papers of sysbench give both.
    pub(crate) fn beside(&self, experiment: &Experiment) -> Option<Measure> {
        let has_several = |point: &Point| point.qps.median > SEVERAL * point.tps.median;
        let is_apart = self.metric == Metric::Tps && experiment.points.iter().all(has_several);
        is_apart.then(|| Measure {
            label: say!(statements_per_second),
            name: say!(statements_per_second_2),
            of: |point| point.qps,
            metric: Metric::Qps,
        })
    }
}

/// The x axis of an experiment: workers or terminals, or the offered rate or the scale of the data where those are
/// what changes.
pub(crate) struct Levels {
    pub(crate) label: Message,
    /// True when they are virtual clients.
    pub(crate) is_clients: bool,
    pub(crate) of: fn(&Point) -> f64,
    pub(crate) values: Vec<f64>,
}

impl Levels {
    pub(crate) fn of(experiment: &Experiment) -> Levels {
        let distinct = |of: fn(&Point) -> f64| {
            let mut values: Vec<f64> = experiment.points.iter().map(of).collect();
            values.sort_by(f64::total_cmp);
            values.dedup();
            values
        };
        let rate: fn(&Point) -> f64 = |point| point.rate_per_s.unwrap_or(0.0);
        let rates = distinct(rate);
        if rates.len() > 1 {
            return Levels {
                label: say!(offered_transactions_per_second),
                is_clients: false,
                of: rate,
                values: rates,
            };
        }
        let loads = distinct(Point::load);
        let scale: fn(&Point) -> f64 = |point| point.scale().map_or(0.0, |scale| scale.value);
        let scales = distinct(scale);
        let named = experiment.points.iter().find_map(Point::scale);
        if let Some(named) = named.filter(|_| loads.len() == 1 && scales.len() > 1) {
            return Levels {
                label: named.label.clone(),
                is_clients: false,
                of: scale,
                values: scales,
            };
        }
        let label = if experiment.has_terminals() { say!(terminals_2) } else { say!(workers_2) };
        Levels { label, is_clients: true, of: Point::load, values: loads }
    }

    /// Load levels are usually doubled: a logarithmic axis gives them equal steps.
    pub(crate) fn axis(&self, more: &[f64], lang: Lang) -> Axis {
        let mut values = self.values.clone();
        values.extend_from_slice(more);
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
