//! Trials to points: repeats of the same load level become one line.

use crate::evidence::{Experiment, figure_of};
use crate::evidence::{Point, PointData, Trial};
use crate::families::{FamilyLevel, FamilyScale, KnownFamily};
use crate::format;
use crate::text::Message;
use dyno_facts::{LatencySummary, Purpose, SAMPLES_BEYOND, say};
use dyno_statistics::Metric;
use serde::Serialize;

/// The trials of one experiment by load level, in the order of targets in which they come.
pub fn groups<'a>(trials: &[&'a Trial]) -> Vec<Vec<&'a Trial>> {
    let mut groups: Vec<Vec<&Trial>> = Vec::new();
    for trial in trials {
        let same = |group: &&mut Vec<&Trial>| key(group[0]) == key(trial);
        match groups.iter_mut().find(same) {
            Some(group) => group.push(trial),
            None => groups.push(vec![trial]),
        }
    }
    groups
}

/// Makes a point of each load level.
pub fn points(trials: &[&Trial]) -> Vec<Point> {
    let groups = groups(trials);
    let mut points: Vec<Point> = groups.iter().filter_map(|group| point(group)).collect();
    // A stable sort: the order of targets is kept.
    points.sort_by(|a, b| {
        let level = |point: &Point| {
            let size = point.level.as_ref().map_or(0.0, |level| level.size);
            (point.rate_per_s.unwrap_or(0.0), point.load(), size)
        };
        let order = |point: &Point| points_order(point, trials);
        order(a)
            .cmp(&order(b))
            .then(level(a).partial_cmp(&level(b)).unwrap_or(std::cmp::Ordering::Equal))
    });
    points
}

fn points_order(point: &Point, trials: &[&Trial]) -> usize {
    trials.iter().position(|trial| trial.target == point.target).unwrap_or(usize::MAX)
}

type Key<'a> = (&'a str, u32, Option<u64>, Purpose, Option<&'a FamilyLevel>);

fn key(trial: &Trial) -> Key<'_> {
    let rate = trial.summary.rate_per_s.map(f64::to_bits);
    (&trial.target, trial.summary.workers, rate, trial.summary.purpose, trial.level.as_ref())
}

/// The trials of a load level that its figures rest on, and how they ended: complete ones; only
/// where there is none, those that were cut off or failed. A trial that measured nothing has no
/// figures.
pub fn chosen<'a>(group: &[&'a Trial]) -> Option<(&'static str, Vec<&'a Trial>)> {
    let with = |status: &str| -> Vec<&Trial> {
        let is_measured = |trial: &&Trial| {
            let has_own = |family: KnownFamily| family.is_measured(&trial.summary);
            trial.summary.window_s > 0.0 || KnownFamily::of(&trial.summary).is_some_and(has_own)
        };
        let measured = group.iter().copied().filter(is_measured);
        measured.filter(|trial| trial.status == status).collect()
    };
    ["complete", "failed", "interrupted", "running"]
        .into_iter()
        .map(|status| (status, with(status)))
        .find(|(_, trials)| !trials.is_empty())
}

fn point(group: &[&Trial]) -> Option<Point> {
    let (status, trials) = chosen(group)?;
    let first = trials[0];
    let of = |value: fn(&Trial) -> f64| {
        Spread::of(trials.iter().map(|trial| value(trial)).collect()).unwrap_or_default()
    };
    let latency = |beyond: f64, value: fn(&LatencySummary) -> f64| {
        let values = trials.iter().map(|trial| &trial.summary.latency);
        let values: Option<Vec<f64>> =
            values.map(|latency| latency.has_percentile(beyond).then(|| value(latency))).collect();
        Spread::of(values?)
    };
    let sum = |value: fn(&Trial) -> u64| trials.iter().map(|trial| value(trial)).sum();
    let family = KnownFamily::of(&first.summary);
    let main = |metric: Metric| {
        let values = trials.iter().filter_map(|trial| figure_of(&trial.summary, metric));
        Some((metric, Spread::of(values.collect())?))
    };
    Some(Point {
        target_name: first.summary.target.clone(),
        target: first.target.clone(),
        has_fault: trials.iter().any(|trial| trial.summary.fault.is_some()),
        workers: first.summary.workers,
        rate_per_s: first.summary.rate_per_s,
        purpose: first.summary.purpose,
        repeats: trials.len(),
        trials: trials.iter().map(|trial| trial.label.clone()).collect(),
        status,
        tps: of(|trial| trial.summary.tps),
        qps: of(|trial| trial.summary.qps),
        data_qps: of(|trial| trial.summary.data_qps()),
        data: first.summary.data.as_ref().map(|facts| PointData {
            facts: facts.clone(),
            hot_share: facts.hot_share(),
            size_to_memory: facts.size_to_memory(),
        }),
        mean_us: latency(SAMPLES_BEYOND, |latency| latency.mean_us),
        p50_us: latency(0.5, |latency| latency.p50_us),
        p95_us: latency(0.05, |latency| latency.p95_us),
        p99_us: latency(0.01, |latency| latency.p99_us),
        p999_us: latency(0.001, |latency| latency.p999_us),
        max_us: trials.iter().map(|trial| trial.summary.latency.max_us).fold(0.0, f64::max),
        errors: sum(|trial| trial.summary.errors.iter().map(|error| error.count).sum()),
        failed: sum(|trial| trial.summary.counts.failed),
        retries: sum(|trial| trial.summary.counts.retries),
        reconnects: sum(|trial| trial.summary.counts.reconnects),
        cpu_us_per_statement: of(|trial| trial.summary.generator.cpu_us_per_statement),
        costs: Metric::costs().filter_map(main).collect(),
        checks: Vec::new(),
        level: first.level.clone(),
        is_paced: family.is_some_and(|family| family.is_paced(&first.summary)),
        main: family.and_then(|family| main(family.throughput()?)),
    })
}

impl Point {
    /// Users whose work the workers execute by turns.
    pub fn terminals(&self) -> Option<u32> {
        self.level.as_ref()?.terminals
    }

    pub fn scale(&self) -> Option<&FamilyScale> {
        self.level.as_ref()?.scale.as_ref()
    }

    /// The number of virtual clients: terminals, where there are any, else workers.
    pub fn load(&self) -> f64 {
        f64::from(self.terminals().unwrap_or(self.workers))
    }

    /// At which load it is: workers or what the family has for them, and an offered rate.
    pub fn load_words(&self) -> Message {
        let clients = match &self.level {
            Some(level) => level.load.clone(),
            None => say!(n_workers, n = self.workers),
        };
        match self.rate_per_s {
            Some(rate) => say!(per_second_offered, workers = clients, rate = format::plain(rate)),
            None => clients,
        }
    }

    /// A figure by its name among published metrics.
    pub fn metric(&self, name: &str) -> Option<Spread> {
        match name {
            "tps" => Some(self.tps),
            "qps" => Some(self.qps),
            "data_qps" => Some(self.data_qps),
            _ => self.main.filter(|(metric, _)| metric.name() == name).map(|(_, spread)| spread),
        }
    }

    /// What points of an experiment are ranked by.
    pub fn throughput(&self) -> Spread {
        self.main.map_or(self.tps, |(_, spread)| spread)
    }
}

impl Experiment {
    /// True of passes over statements that are timed one by one: there are no transactions.
    pub fn is_pass(&self) -> bool {
        self.family.is_some_and(|family| family.is_pass())
    }

    /// True of the read-only tests of sysbench: a transaction is a bundle of reads, or one of them.
    pub fn only_reads(&self) -> bool {
        let is_on = |name: &str| {
            let value = self.options.iter().find(|(own, _)| own.replace('-', "_") == name);
            value.is_some_and(|(_, value)| matches!(value.as_str(), "on" | "true" | "1"))
        };
        let is_named =
            ["oltp_read_only", "oltp_point_select"].iter().any(|t| self.test.contains(t));
        is_named || self.test.starts_with("sysbench oltp") && is_on("oltp_read_only")
    }

    /// The benchmark of the TPC behind it.
    pub fn derived_from(&self) -> Option<&'static str> {
        self.family?.derived_from(&self.test)
    }

    pub fn has_terminals(&self) -> bool {
        self.points.iter().any(|point| point.terminals().is_some())
    }

    /// The throughput that its points are ranked by.
    pub fn ranked_by(&self) -> Metric {
        let mut own = self.points.iter().filter_map(|point| point.main);
        own.next().map_or(Metric::Tps, |(metric, _)| metric)
    }
}

/// Median of the repeats of a point, with the lowest and the highest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Spread {
    pub min: f64,
    pub median: f64,
    pub max: f64,
}

impl Spread {
    /// Median, lowest and highest; `None` of nothing.
    pub fn of(mut values: Vec<f64>) -> Option<Spread> {
        values.sort_by(f64::total_cmp);
        let (min, max) = (*values.first()?, *values.last()?);
        let middle = values.len() / 2;
        let median = match values.len() % 2 {
            0 => f64::midpoint(values[middle - 1], values[middle]),
            _ => values[middle],
        };
        Some(Spread { min, median, max })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_of_an_even_number_lies_between() {
        assert_eq!(
            Spread::of(vec![4.0, 1.0, 2.0, 8.0]),
            Some(Spread { min: 1.0, median: 3.0, max: 8.0 })
        );
        assert_eq!(Spread::of(vec![7.0]), Some(Spread { min: 7.0, median: 7.0, max: 7.0 }));
        assert_eq!(Spread::of(Vec::new()), None);
    }
}
