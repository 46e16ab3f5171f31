//! What throughput costs, where the suite states a target's price.

use crate::evidence::{Cost, CostRow, Paper, Point, Target};
use dyno_facts::{Price, say};

/// One for each target with a price and each experiment with a result of it.
pub(crate) fn costs(paper: &Paper) -> Vec<Cost> {
    let priced = || paper.targets.iter().filter_map(|target| Some((target, price(target)?)));
    let mut found = Vec::new();
    for (index, experiment) in paper.experiments.iter().enumerate() {
        for (target, price) in priced() {
            let key = paper
                .key_rows()
                .into_iter()
                .find(|row| row.index == index && row.point.target == target.label);
            let mut rows = key.map_or(Vec::new(), |key| of_point(price, key.point));
            let tables = experiment.tpch.iter().flat_map(|section| &section.tables);
            let own = tables.filter(|table| table.target == target.label);
            let degrees = own.flat_map(|table| &table.degrees);
            let qphh = degrees.filter_map(|degree| degree.qphh).map(|spread| spread.median);
            rows.extend(qphh.reduce(f64::max).and_then(|best| {
                let amount = of_rate(price, best)?;
                Some(CostRow { what: say!(hourly_price_per_1_000_qphh), amount })
            }));
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

fn price(target: &Target) -> Option<&Price> {
    target.facts.price.as_ref().filter(|price| price.per_hour > 0.0)
}

fn of_point(price: &Price, point: &Point) -> Vec<CostRow> {
    const PER_HOUR: f64 = 3600.0;
    let tps = point.tps.median;
    let transactions = (tps > 0.0).then(|| CostRow {
        what: say!(per_million_transactions),
        amount: price.per_hour / (tps * PER_HOUR) * 1e6,
    });
    let tpmc = point.tpcc.as_ref().and_then(|tpcc| {
        let amount = of_rate(price, tpcc.tpmc.median)?;
        Some(CostRow { what: say!(hourly_price_per_1_000_tpmc), amount })
    });
    transactions.into_iter().chain(tpmc).collect()
}

/// The hourly price of a thousand of what is done in each unit of time.
fn of_rate(price: &Price, rate: f64) -> Option<f64> {
    (rate > 0.0).then(|| price.per_hour / rate * 1e3)
}
