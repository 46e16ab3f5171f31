//! What an experiment's charts have as their axes.

use crate::evidence::{Experiment, Point, Spread};
use crate::format;
use crate::svg::{Axis, Scale};
use crate::text::{Lang, Message};
use dyno_facts::say;

/// The throughput that an experiment is about.
pub(crate) struct Measure {
    /// Of the y axis.
    pub(crate) label: Message,
    /// In captions.
    pub(crate) name: Message,
    /// In front of a caption, with its unit.
    pub(crate) head: Message,
    pub(crate) of: fn(&Point) -> Spread,
    /// Its name among published metrics.
    pub(crate) metric: &'static str,
}

impl Measure {
    pub(crate) fn of(experiment: &Experiment) -> Measure {
        let (label, head, name, metric) = match &experiment.tpcc {
            Some(_) => (
                say!(new_orders_per_minute_tpmc),
                say!(new_orders_per_minute_tpmc),
                Message::from("tpmC"),
                "tpmc",
            ),
            None => (
                say!(transactions_per_second),
                say!(transactions_per_second_2),
                say!(throughput),
                "tps",
            ),
        };
        Measure { label, head, name, of: Point::throughput, metric }
    }
}

/// The x axis of an experiment: workers (terminals of TPC-C), or the offered rate or the warehouses
/// where those are what changes.
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
        let warehouses: fn(&Point) -> f64 =
            |point| point.tpcc.as_ref().map_or(0.0, |tpcc| tpcc.setup.warehouses.into());
        let of_warehouses = distinct(warehouses);
        if loads.len() == 1 && of_warehouses.len() > 1 {
            return Levels {
                label: say!(warehouses),
                is_clients: false,
                of: warehouses,
                values: of_warehouses,
            };
        }
        let label = if experiment.tpcc.is_some() { say!(terminals_2) } else { say!(workers_2) };
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
        let scale =
            if is_log { Scale::log(low, high) } else { Scale::Linear { from: low, to: high } };
        let ticks = if values.len() <= 12 { values } else { scale.ticks(8) };
        let ticks = ticks.into_iter().map(|value| (value, format::whole(value))).collect();
        Axis { label: self.label.render(lang), scale, ticks }
    }
}
