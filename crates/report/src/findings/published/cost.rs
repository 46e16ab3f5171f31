//! What throughput costs, where the suite states a target's price.

use crate::evidence::{Cost, CostRow, Evidence, PaperTarget, Point, Spread, figure_of};
use crate::families::family_of;
use dyno_facts::{Price, say};
use dyno_statistics::Metric;

/// One for each target with a price and each experiment with a result of it.
pub(crate) fn costs(evidence: &Evidence) -> Vec<Cost> {
    let priced = || evidence.targets.iter().filter_map(|target| Some((target, price(target)?)));
    let mut found = Vec::new();
    for (index, experiment) in evidence.experiments.iter().enumerate() {
        for (target, price) in priced() {
            let key = evidence
                .key_rows()
                .into_iter()
                .find(|row| row.index == index && row.point.target == target.label);
            let transactions = key.and_then(|key| of_transactions(price, key.point));
            let own = experiment.points.iter().filter(|point| point.target == target.label);
            // Passes have no best point: each may have the figure.
            let points = match key {
                Some(key) => vec![key.point],
                None => own.filter(|_| experiment.is_pass()).collect(),
            };
            let metric = family_of(experiment).and_then(|family| family.priced());
            let priced = metric.and_then(|metric| of_metric(evidence, price, metric, &points));
            let rows: Vec<CostRow> = transactions.into_iter().chain(priced).collect();
            if !rows.is_empty() {
                found.push(Cost {
                    experiment_index: index,
                    experiment: experiment.title.clone(),
                    target: target.label.clone(),
                    price: price.clone(),
                    rows,
                });
            }
        }
    }
    found
}

fn price(target: &PaperTarget) -> Option<&Price> {
    target.facts.price.as_ref().filter(|price| price.per_hour > 0.0)
}

fn of_transactions(price: &Price, point: &Point) -> Option<CostRow> {
    const PER_HOUR: f64 = 3600.0;
    let tps = point.tps.median;
    (tps > 0.0).then(|| CostRow {
        what: say!(per_million_transactions),
        amount: price.per_hour / (tps * PER_HOUR) * 1e6,
    })
}

/// The hourly price of a thousand of what is done in each unit of time, at the best of these points.
fn of_metric(
    evidence: &Evidence,
    price: &Price,
    metric: Metric,
    points: &[&Point],
) -> Option<CostRow> {
    let median = |point: &&Point| {
        let trials = evidence.trials_of(point).into_iter();
        let figures = trials.filter_map(|trial| figure_of(&trial.summary, metric));
        Spread::of(figures.collect()).map(|spread| spread.median)
    };
    let best = points.iter().filter_map(median).reduce(f64::max).filter(|best| *best > 0.0)?;
    let what = match metric {
        Metric::Qphh => say!(hourly_price_per_1_000_qphh),
        _ => say!(hourly_price_per_1_000, metric = metric.title()),
    };
    Some(CostRow { what, amount: price.per_hour / best * 1e3 })
}
