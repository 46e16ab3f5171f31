//! How far New-Orders and Payments reach, and what that costs them.

use super::{facts, words};
use crate::facts::{Reach, ReachLine, TpccFacts};
use dyno_facts::{Message, SAMPLES_BEYOND, say};
use dyno_report::blocks::{Blocks, PaperRows, spread};
use dyno_report::format::NumberFormat::{Fixed, Ms, Short, Whole};
use dyno_report::{Spread, Trial};

/// Transactions of one kind at a point that reach equally far, over all repeats.
struct ReachRow {
    target: String,
    terminals: u32,
    kind: Message,
    reach: Message,
    committed: u64,
    failed: u64,
    share_percent: Option<f64>,
    expected_percent: f64,
    mean_us: Option<Spread>,
    p50_us: Option<Spread>,
    p95_us: Option<Spread>,
    /// The median by that of transactions that stay at home.
    by_home: Option<f64>,
}

/// The share of transactions of several shards among the New-Orders and Payments of a point; `None` where nobody knows.
pub(super) fn crossing(trials: &[&Trial]) -> Option<f64> {
    let all: Vec<&TpccFacts> = trials.iter().filter_map(|trial| facts(trial)).collect();
    all.iter().all(|facts| facts.shards.is_some()).then_some(())?;
    let lines = || all.iter().flat_map(|facts| &facts.reaches);
    let sum = |of: &dyn Fn(&&ReachLine) -> bool| -> u64 {
        lines().filter(of).map(|line| line.latency.count).sum()
    };
    let whole = sum(&|_| true);
    (whole > 0).then(|| sum(&|line| line.reach == Reach::Shard) as f64 / whole as f64)
}

/// The table, where some target has shards; those of the others are the other half of the comparison.
pub(super) fn blocks(points: &[Vec<&Trial>], blocks: &mut Blocks) {
    let known = points.iter().flatten().filter_map(|trial| facts(trial));
    if !known.into_iter().any(|facts| facts.shards.is_some()) {
        return;
    }
    let rows: Vec<ReachRow> = points.iter().flat_map(|trials| rows(trials)).collect();
    blocks.table(table(&rows));
    blocks.fine(say!(a_transaction_reaches_another_shard));
}

fn rows(trials: &[&Trial]) -> Vec<ReachRow> {
    let Some(first) = trials.first().and_then(|trial| facts(trial)) else { return Vec::new() };
    let row = |line: &ReachLine| {
        let own = of(trials, &line.kind, Some(line.reach));
        let count = |lines: &[&ReachLine]| lines.iter().map(|line| line.latency.count).sum::<u64>();
        let (committed, all) = (count(&own), count(&of(trials, &line.kind, None)));
        let median = |reach| {
            spread_of(&of(trials, &line.kind, Some(reach)), 0.5, |line| line.latency.p50_us)
        };
        let by_home = median(line.reach).zip(median(Reach::Home));
        ReachRow {
            target: trials[0].target.clone(),
            terminals: first.terminals,
            kind: words::kind(&line.kind),
            reach: words::reach(line.reach, first.shards.is_some()),
            committed,
            failed: own.iter().map(|line| line.failed).sum(),
            share_percent: (all > 0).then(|| 100.0 * committed as f64 / all as f64),
            expected_percent: 100.0 * line.expected_share,
            mean_us: spread_of(&own, SAMPLES_BEYOND, |line| line.latency.mean_us),
            p50_us: median(line.reach),
            p95_us: spread_of(&own, 0.05, |line| line.latency.p95_us),
            by_home: by_home
                .filter(|(_, home)| home.median > 0.0)
                .map(|(own, home)| own.median / home.median),
        }
    };
    first.reaches.iter().map(row).collect()
}

/// The lines of a kind over all repeats, of one reach or of all.
fn of<'a>(trials: &[&'a Trial], kind: &str, reach: Option<Reach>) -> Vec<&'a ReachLine> {
    let lines = trials.iter().filter_map(|trial| facts(trial)).flat_map(|facts| &facts.reaches);
    lines
        .filter(|line| line.kind == kind && reach.is_none_or(|reach| reach == line.reach))
        .collect()
}

/// Of the repeats, where each has enough transactions beyond.
fn spread_of(lines: &[&ReachLine], beyond: f64, value: fn(&ReachLine) -> f64) -> Option<Spread> {
    let is_enough = |line: &ReachLine| line.latency.count as f64 * beyond >= SAMPLES_BEYOND;
    let values: Option<Vec<f64>> =
        lines.iter().map(|line| is_enough(line).then(|| value(line))).collect();
    Spread::of(values?)
}

fn table(rows: &[ReachRow]) -> PaperRows<&ReachRow> {
    PaperRows::new(say!(how_far_new_orders_and_payments_reach), rows)
        .text(say!(target_2), |row| &row.target)
        .col(say!(terminals), Whole, |row| row.terminals)
        .text(say!(transaction_2), |row| &row.kind)
        .text(say!(it_reaches), |row| &row.reach)
        .col(say!(committed_transactions), Whole, |row| row.committed)
        .col(say!(failed_transactions), Whole, |row| row.failed)
        .col(say!(share_of_its_kind_percent), Fixed(3), |row| row.share_percent)
        .class("strong")
        .col(say!(expected_percent), Fixed(3), |row| row.expected_percent)
        .col(say!(mean_ms_2), Ms, |row| row.mean_us.map(|us| spread(us, 1)))
        .col(say!(median_ms_2), Ms, |row| row.p50_us.map(|us| spread(us, 1)))
        .class("strong")
        .col(say!(p95_ms_2), Ms, |row| row.p95_us.map(|us| spread(us, 1)))
        .col(say!(median_by_that_at_home), Short, |row| row.by_home)
}
