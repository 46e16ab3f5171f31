//! Kinds of transactions at a point: the mix, the response times, the pauses; and how far New-Orders and Payments reach.

use super::{facts, words};
use crate::audit::least_mean_of_exponentials;
use crate::facts::{PauseFacts, Reach, ReachLine, TpccFacts, TpccKind};
use dyno_facts::{Counts, KindSummary, LatencySummary, Message, SAMPLES_BEYOND, say};
use dyno_report::blocks::{Blocks, PaperRows, spread};
use dyno_report::format::NumberFormat::{Fixed, Ms, Short, Whole};
use dyno_report::{Spread, Trial};

/// One kind of transaction at a point, over all repeats.
pub(super) struct KindRow<'a> {
    /// Label of the target.
    pub(super) target: &'a str,
    pub(super) terminals: u32,
    /// Its name in the specification.
    pub(super) kind: Message,
    /// Limits of this kind, if the trials have them.
    pub(super) held: Option<&'a TpccKind>,
    pub(super) counts: Counts,
    /// Share of the mix, percent; `None` for kinds outside of the mix.
    pub(super) share_percent: Option<f64>,
    /// Commits sent and never answered, of the whole trials; `None` where that is not counted.
    pub(super) unknown: Option<u64>,
    /// Latencies of each repeat.
    latencies: Vec<LatencySummary>,
    /// Pauses of terminals around it.
    pub(super) pauses: Option<PauseFacts>,
}

impl KindRow<'_> {
    /// Transactions that ended as the profile wants: committed, and rolled back for an unused item.
    pub(super) fn executed(&self) -> u64 {
        executed(&self.counts)
    }

    /// The least share that the specification allows, percent; `None` without a bound.
    pub(super) fn least_percent(&self) -> Option<f64> {
        self.held.map(|held| held.least_share_percent).filter(|percent| *percent > 0.0)
    }

    pub(super) fn is_below_least(&self) -> bool {
        self.share_percent.zip(self.least_percent()).is_some_and(|(share, least)| share < least)
    }

    /// Transactions whose latency counts.
    pub(super) fn count(&self) -> u64 {
        self.latencies.iter().map(|latency| latency.count).sum()
    }

    pub(super) fn repeats(&self) -> usize {
        self.latencies.len()
    }

    /// A percentile over the repeats, for the share of transactions beyond it; `None` where one has too few.
    pub(super) fn spread(&self, beyond: f64, value: fn(&LatencySummary) -> f64) -> Option<Spread> {
        spread_of(&self.latencies, beyond, value)
    }

    pub(super) fn mean_us(&self) -> Option<Spread> {
        self.spread(SAMPLES_BEYOND, |latency| latency.mean_us)
    }

    pub(super) fn p90_us(&self) -> Option<Spread> {
        self.spread(0.1, |latency| latency.p90_us)
    }

    pub(super) fn p95_us(&self) -> Option<Spread> {
        self.spread(0.05, |latency| latency.p95_us)
    }

    pub(super) fn p99_us(&self) -> Option<Spread> {
        self.spread(0.01, |latency| latency.p99_us)
    }

    /// Largest of all repeats; `None` where there was none of its kind.
    pub(super) fn max_us(&self) -> Option<f64> {
        let latencies = self.latencies.iter().filter(|latency| latency.count > 0);
        latencies.map(|latency| latency.max_us).reduce(f64::max)
    }

    /// What the 90th percentile must not exceed, seconds; `None` where nothing is said.
    pub(super) fn limit_s(&self) -> Option<f64> {
        self.held.map(|held| held.limit_p90_s)
    }

    /// Whether it does not in any repeat; `None` with too few transactions to say.
    pub(super) fn is_within_limit(&self) -> Option<bool> {
        let limit_us = self.limit_s()? * 1e6;
        self.judge(|_, p90_us| p90_us <= limit_us)
    }

    /// Whether the mean is at most the 90th percentile in every repeat; `None` as above.
    pub(super) fn is_mean_below_p90(&self) -> Option<bool> {
        self.judge(|latency, p90_us| latency.mean_us <= p90_us)
    }

    fn judge(&self, is_right: impl Fn(&LatencySummary, f64) -> bool) -> Option<bool> {
        let verdicts = self.latencies.iter().map(|it| Some(is_right(it, p90_us(it)?)));
        Some(verdicts.collect::<Option<Vec<bool>>>()?.into_iter().all(|is_right| is_right))
    }
}

/// The kinds at a point, in the order of its first trial; without the deferred part of Delivery where nothing was
/// deferred.
pub(super) fn kinds<'a>(trials: &[&'a Trial]) -> Vec<KindRow<'a>> {
    let own: Vec<&TpccFacts> = trials.iter().filter_map(|trial| facts(trial)).collect();
    let Some(first) = own.first() else { return Vec::new() };
    let mut sums = trials[0].summary.kinds.clone();
    for more in trials[1..].iter().flat_map(|trial| &trial.summary.kinds) {
        if let Some(kind) = sums.iter_mut().find(|kind| kind.name == more.name) {
            kind.counts.add(&more.counts);
        }
    }
    sums.retain(|kind| kind.name != TpccFacts::DEFERRED || kind.counts.started > 0);
    let unknown = own.iter().map(|facts| facts.orders_unknown).sum();
    let row = |sum: &KindSummary| {
        let all = trials.iter().flat_map(|trial| &trial.summary.kinds);
        KindRow {
            target: &trials[0].target,
            terminals: first.terminals,
            kind: words::kind(&sum.name),
            held: facts_of(first, &sum.name),
            counts: sum.counts,
            share_percent: share_percent(&sums, &sum.name),
            unknown: (sum.name == TpccFacts::NEW_ORDER).then_some(unknown),
            latencies: all.filter(|kind| kind.name == sum.name).map(|kind| kind.latency).collect(),
            pauses: pauses(&own, &sum.name),
        }
    };
    sums.iter().map(row).collect()
}

/// The pauses around a kind over all repeats.
fn pauses(trials: &[&TpccFacts], kind: &str) -> Option<PauseFacts> {
    let mut sum: Option<PauseFacts> = None;
    for one in trials.iter().filter_map(|facts| facts_of(facts, kind)?.pauses) {
        let before = sum.unwrap_or_default();
        let (thinks, keyings) = (before.thinks + one.thinks, before.keyings + one.keyings);
        let mean = |sum_s: f64, count: u64| sum_s / count.max(1) as f64;
        let think_s = before.think_s * before.thinks as f64 + one.think_s * one.thinks as f64;
        let keying_s = before.keying_s * before.keyings as f64 + one.keying_s * one.keyings as f64;
        let (think_s, keying_s) = (mean(think_s, thinks), mean(keying_s, keyings));
        sum = Some(PauseFacts { thinks, think_s, keyings, keying_s, ..one });
    }
    sum
}

/// Keying times are waited for to the nanosecond; a mean that is shorter by this is no rounding.
const KEYING_EXACT_S: f64 = 0.001;

/// Whether keying and think times are shorter than clause 5.2.5.7 has them, the latter by more than chance explains.
pub(super) fn are_short(pauses: &PauseFacts) -> (bool, bool) {
    let least_think_s = pauses.think_clause_s * least_mean_of_exponentials(pauses.thinks);
    (
        pauses.keyings > 0 && pauses.keying_s < pauses.keying_clause_s - KEYING_EXACT_S,
        pauses.thinks > 0 && pauses.think_s < least_think_s,
    )
}

/// The facts of a kind; of one that the trial does not list, what is known of none.
pub(super) fn facts_of<'a>(facts: &'a TpccFacts, name: &str) -> Option<&'a TpccKind> {
    facts.kinds.iter().find(|kind| kind.name == name)
}

/// The share of a trial's kind in its mix, percent; `None` of what is no part of it.
pub(super) fn share_percent(kinds: &[KindSummary], name: &str) -> Option<f64> {
    let in_mix = || kinds.iter().filter(|kind| kind.name != TpccFacts::DEFERRED);
    let own = in_mix().find(|kind| kind.name == name)?;
    let all: u64 = in_mix().map(|kind| executed(&kind.counts)).sum();
    (all > 0).then(|| 100.0 * executed(&own.counts) as f64 / all as f64)
}

fn executed(counts: &Counts) -> u64 {
    counts.committed + counts.rolled_back
}

/// The 90th percentile of a kind, where it rests on enough transactions.
pub(super) fn p90_us(latency: &LatencySummary) -> Option<f64> {
    (latency.count as f64 * 0.1 >= SAMPLES_BEYOND).then_some(latency.p90_us)
}

/// A figure over the repeats, where each has enough transactions beyond.
fn spread_of<'a>(
    latencies: impl IntoIterator<Item = &'a LatencySummary>,
    beyond: f64,
    value: fn(&LatencySummary) -> f64,
) -> Option<Spread> {
    let is_enough = |latency: &LatencySummary| latency.count as f64 * beyond >= SAMPLES_BEYOND;
    let values = latencies.into_iter().map(|latency| is_enough(latency).then(|| value(latency)));
    Spread::of(values.collect::<Option<Vec<f64>>>()?)
}

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

/// The share of transactions of several shards among the New-Orders and Payments of a point; `None` if unknown.
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
pub(super) fn reach_blocks(points: &[Vec<&Trial>], blocks: &mut Blocks) {
    let mut trials = points.iter().flatten().filter_map(|trial| facts(trial));
    if !trials.any(|facts| facts.shards.is_some()) {
        return;
    }
    let rows: Vec<ReachRow> = points.iter().flat_map(|trials| reach_rows(trials)).collect();
    blocks.table(reach_table(&rows));
    blocks.fine(say!(a_transaction_reaches_another_shard));
}

fn reach_rows(trials: &[&Trial]) -> Vec<ReachRow> {
    let Some(first) = trials.first().and_then(|trial| facts(trial)) else { return Vec::new() };
    let row = |line: &ReachLine| {
        let own = lines_of(trials, &line.kind, Some(line.reach));
        let count = |lines: &[&ReachLine]| lines.iter().map(|line| line.latency.count).sum::<u64>();
        let (committed, all) = (count(&own), count(&lines_of(trials, &line.kind, None)));
        let median = |reach| {
            let lines = lines_of(trials, &line.kind, Some(reach));
            spread_of(lines.iter().map(|line| &line.latency), 0.5, |latency| latency.p50_us)
        };
        let spread_us = |beyond, value: fn(&LatencySummary) -> f64| {
            spread_of(own.iter().map(|line| &line.latency), beyond, value)
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
            mean_us: spread_us(SAMPLES_BEYOND, |latency| latency.mean_us),
            p50_us: median(line.reach),
            p95_us: spread_us(0.05, |latency| latency.p95_us),
            by_home: by_home
                .filter(|(_, home)| home.median > 0.0)
                .map(|(own, home)| own.median / home.median),
        }
    };
    first.reaches.iter().map(row).collect()
}

/// The lines of a kind over all repeats, of one reach or of all.
fn lines_of<'a>(trials: &[&'a Trial], kind: &str, reach: Option<Reach>) -> Vec<&'a ReachLine> {
    let lines = trials.iter().filter_map(|trial| facts(trial)).flat_map(|facts| &facts.reaches);
    lines
        .filter(|line| line.kind == kind && reach.is_none_or(|reach| reach == line.reach))
        .collect()
}

fn reach_table(rows: &[ReachRow]) -> PaperRows<&ReachRow> {
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
