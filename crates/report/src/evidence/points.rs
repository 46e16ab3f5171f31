//! Trials to points: repeats of the same load level become one line.

use crate::evidence::{Point, PointData, Spread, Trial};
use crate::format;
use crate::text::Message;
use crate::tpcc::{self, TpccSetup};
use crate::tpch::{self, TpchSetup};
use dyno_facts::{LatencySummary, Purpose, say};
use dyno_tpcc::facts::TpccFacts;

/// A percentile rests on at least this many samples beyond it.
pub(crate) const SAMPLES_BEYOND: f64 = 10.0;

/// The trials of one experiment by load level, in the order of targets in which they come.
pub(crate) fn groups<'a>(trials: &[&'a Trial]) -> Vec<Vec<&'a Trial>> {
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
pub(crate) fn points(trials: &[&Trial]) -> Vec<Point> {
    let groups = groups(trials);
    let mut points: Vec<Point> = groups.iter().filter_map(|group| point(group)).collect();
    // A stable sort: the order of targets is kept.
    points.sort_by(|a, b| {
        let level = |point: &Point| {
            let degree = point.tpch.as_ref().map_or(0, |setup| setup.degree);
            (point.rate_per_s.unwrap_or(0.0), point.load(), degree)
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

type Key<'a> = (&'a str, u32, Option<u64>, Purpose, Option<TpccSetup>, Option<TpchSetup>);

fn key(trial: &Trial) -> Key<'_> {
    let rate = trial.summary.rate_per_s.map(f64::to_bits);
    let setup = trial.summary.own::<TpccFacts>().map(TpccSetup::of);
    let purpose = trial.summary.purpose;
    (&trial.target, trial.summary.workers, rate, purpose, setup, TpchSetup::of(&trial.summary))
}

/// The trials of a load level that its figures rest on, and how they ended: complete ones; only
/// where there is none, those that were cut off or failed. A trial that measured nothing has no
/// figures.
pub(crate) fn chosen<'a>(group: &[&'a Trial]) -> Option<(&'static str, Vec<&'a Trial>)> {
    let with = |status: &str| -> Vec<&Trial> {
        let is_measured = |trial: &&Trial| trial.summary.window_s > 0.0 || tpch::is_measured(trial);
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
        let is_enough = |latency: &LatencySummary| latency.count as f64 * beyond >= SAMPLES_BEYOND;
        let values = trials.iter().map(|trial| &trial.summary.latency);
        let values: Option<Vec<f64>> =
            values.map(|latency| is_enough(latency).then(|| value(latency))).collect();
        Spread::of(values?)
    };
    let sum = |value: fn(&Trial) -> u64| trials.iter().map(|trial| value(trial)).sum();
    Some(Point {
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
        checks: Vec::new(),
        tpcc: tpcc::point(&trials),
        tpch: TpchSetup::of(&first.summary),
    })
}

impl Point {
    /// The number of virtual clients: terminals of TPC-C, workers of others.
    pub(crate) fn load(&self) -> f64 {
        f64::from(self.tpcc.as_ref().map_or(self.workers, |tpcc| tpcc.setup.terminals))
    }

    /// At which load it is: workers or terminals and an offered rate, or a degree.
    pub(crate) fn load_words(&self) -> Message {
        if let Some(setup) = &self.tpch {
            return say!(degree_degree, degree = setup.degree.to_string());
        }
        let clients = match &self.tpcc {
            Some(tpcc) => say!(n_terminals, n = tpcc.setup.terminals),
            None => say!(n_workers, n = self.workers),
        };
        match self.rate_per_s {
            Some(rate) => say!(per_second_offered, workers = clients, rate = format::plain(rate)),
            None => clients,
        }
    }

    /// A figure by its name among published metrics.
    pub(crate) fn metric(&self, name: &str) -> Option<Spread> {
        match name {
            "tps" => Some(self.tps),
            "qps" => Some(self.qps),
            "data_qps" => Some(self.data_qps),
            "tpmc" => self.tpcc.as_ref().map(|tpcc| tpcc.tpmc),
            _ => None,
        }
    }

    /// What points of an experiment are ranked by.
    pub(crate) fn throughput(&self) -> Spread {
        self.tpcc.as_ref().map_or(self.tps, |tpcc| tpcc.tpmc)
    }
}

impl Spread {
    /// Median, lowest and highest; `None` of nothing.
    pub(crate) fn of(mut values: Vec<f64>) -> Option<Spread> {
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
