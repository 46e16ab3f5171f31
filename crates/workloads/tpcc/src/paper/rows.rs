//! The mix and the response times, by point and kind of transaction.

use super::words;
use crate::audit::least_mean_of_exponentials;
use crate::facts::{PauseFacts, TpccFacts, TpccKind};
use dyno_facts::{Counts, KindSummary, LatencySummary, Message, SAMPLES_BEYOND};
use dyno_report::{Spread, Trial};

/// One kind of transaction in the mix of a point, over all repeats.
#[derive(Clone)]
pub(super) struct MixRow {
    /// Label of the target.
    pub(super) target: String,
    pub(super) terminals: u32,
    /// Its name in the specification.
    pub(super) kind: Message,
    /// Transactions that ended as the profile wants: committed, and rolled back for an unused item.
    pub(super) executed: u64,
    /// Their share of those of all kinds, percent; `None` of what is no part of the mix.
    pub(super) share_percent: Option<f64>,
    /// The share that the profile wants, percent.
    pub(super) wanted_percent: f64,
    /// The least share that the specification allows, percent; `None` is no bound.
    pub(super) least_percent: Option<f64>,
    /// Whether the share is below that.
    pub(super) is_below_least: bool,
    pub(super) committed: u64,
    /// Rolled back as the profile asks.
    pub(super) rolled_back: u64,
    /// Given up with an error.
    pub(super) failed: u64,
    /// Attempts beyond the first one of a transaction.
    pub(super) retries: u64,
    /// Commits sent and never answered, of the whole trials; `None` where that is not counted.
    pub(super) unknown: Option<u64>,
}

/// Response times of one kind of transaction at a point. Microseconds, medians of the repeats.
#[derive(Clone)]
pub(super) struct ResponseRow {
    /// Label of the target.
    pub(super) target: String,
    pub(super) terminals: u32,
    /// Its name in the specification.
    pub(super) kind: Message,
    /// Transactions, over all repeats.
    pub(super) count: u64,
    /// Trials.
    pub(super) repeats: usize,
    pub(super) mean_us: Option<Spread>,
    /// 90th percentile.
    pub(super) p90_us: Option<Spread>,
    /// 95th percentile.
    pub(super) p95_us: Option<Spread>,
    /// 99th percentile.
    pub(super) p99_us: Option<Spread>,
    /// Largest of all repeats; `None` where there was none of its kind.
    pub(super) max_us: Option<f64>,
    /// What the 90th percentile must not exceed, seconds; `None` where nothing is said.
    pub(super) limit_s: Option<f64>,
    /// Whether it does not in any repeat; `None` with too few transactions to say.
    pub(super) is_within_limit: Option<bool>,
    /// Whether the mean is at most the 90th percentile in every repeat; `None` as above.
    pub(super) is_mean_below_p90: Option<bool>,
}

/// Pauses of terminals around one kind of transaction at a point, over all repeats.
#[derive(Clone)]
pub(super) struct PauseRow {
    pub(super) target: String,
    pub(super) terminals: u32,
    pub(super) kind: Message,
    pub(super) pauses: PauseFacts,
    pub(super) is_keying_short: bool,
    pub(super) is_think_short: bool,
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

/// The pauses at a point, a row for each kind.
pub(super) fn pauses(trials: &[&Trial]) -> Vec<PauseRow> {
    let all: Vec<&TpccFacts> = trials.iter().filter_map(|trial| trial.summary.own()).collect();
    let Some(facts) = all.first() else { return Vec::new() };
    let row = |kind: &TpccKind| {
        let mut sum = PauseFacts::default();
        let of_kind = all.iter().filter_map(|facts| facts_of(facts, &kind.name)?.pauses);
        for one in of_kind {
            sum.think_s += one.think_s * one.thinks as f64;
            sum.keying_s += one.keying_s * one.keyings as f64;
            sum = PauseFacts {
                thinks: sum.thinks + one.thinks,
                think_s: sum.think_s,
                keyings: sum.keyings + one.keyings,
                keying_s: sum.keying_s,
                ..one
            };
        }
        sum.think_s /= sum.thinks.max(1) as f64;
        sum.keying_s /= sum.keyings.max(1) as f64;
        let (is_keying_short, is_think_short) = are_short(&sum);
        kind.pauses.map(|_| PauseRow {
            target: trials[0].target.clone(),
            terminals: facts.terminals,
            kind: words::kind(&kind.name),
            pauses: sum,
            is_keying_short,
            is_think_short,
        })
    };
    facts.kinds.iter().filter_map(row).collect()
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

/// Kinds of a point with their sums, in the order of its first trial; without the deferred part of
/// Delivery where nothing was deferred.
fn sums(trials: &[&Trial]) -> Vec<KindSummary> {
    let mut kinds = trials[0].summary.kinds.clone();
    for more in trials[1..].iter().flat_map(|trial| &trial.summary.kinds) {
        if let Some(kind) = kinds.iter_mut().find(|kind| kind.name == more.name) {
            kind.counts.add(&more.counts);
        }
    }
    kinds.retain(|kind| kind.name != TpccFacts::DEFERRED || kind.counts.started > 0);
    kinds
}

/// The mix of a point, a row for each kind.
pub(super) fn mix(trials: &[&Trial]) -> Vec<MixRow> {
    let Some(facts) = trials.first().and_then(|trial| trial.summary.own::<TpccFacts>()) else {
        return Vec::new();
    };
    let unknown: u64 = trials
        .iter()
        .filter_map(|trial| trial.summary.own::<TpccFacts>())
        .map(|facts| facts.orders_unknown)
        .sum();
    let kinds = sums(trials);
    let row = |kind: &KindSummary| {
        let known = facts_of(facts, &kind.name);
        let least_percent =
            known.map(|kind| kind.least_share_percent).filter(|percent| *percent > 0.0);
        let share_percent = share_percent(&kinds, &kind.name);
        MixRow {
            target: trials[0].target.clone(),
            terminals: facts.terminals,
            kind: words::kind(&kind.name),
            executed: executed(&kind.counts),
            share_percent,
            wanted_percent: known.map_or(0.0, |kind| kind.share_percent),
            least_percent,
            is_below_least: share_percent
                .zip(least_percent)
                .is_some_and(|(share, least)| share < least),
            committed: kind.counts.committed,
            rolled_back: kind.counts.rolled_back,
            failed: kind.counts.failed,
            retries: kind.counts.retries,
            unknown: (kind.name == TpccFacts::NEW_ORDER).then_some(unknown),
        }
    };
    kinds.iter().map(row).collect()
}

/// The 90th percentile of a kind, where it rests on enough transactions.
pub(super) fn p90_us(latency: &LatencySummary) -> Option<f64> {
    (latency.count as f64 * 0.1 >= SAMPLES_BEYOND).then_some(latency.p90_us)
}

/// The response times of a point, a row for each kind.
pub(super) fn responses(trials: &[&Trial]) -> Vec<ResponseRow> {
    let Some(facts) = trials.first().and_then(|trial| trial.summary.own::<TpccFacts>()) else {
        return Vec::new();
    };
    let row = |kind: &KindSummary| {
        let same = |trial: &&Trial| {
            trial
                .summary
                .kinds
                .iter()
                .find(|other| other.name == kind.name)
                .map(|kind| kind.latency)
        };
        let latencies: Vec<LatencySummary> = trials.iter().filter_map(same).collect();
        let spread = |beyond: f64, value: fn(&LatencySummary) -> f64| {
            let is_enough =
                |latency: &LatencySummary| latency.count as f64 * beyond >= SAMPLES_BEYOND;
            let values: Option<Vec<f64>> = latencies
                .iter()
                .map(|latency| is_enough(latency).then(|| value(latency)))
                .collect();
            Spread::of(values?)
        };
        let limit_s = facts_of(facts, &kind.name).map(|kind| kind.limit_p90_s);
        let judge = |is_right: &dyn Fn(&LatencySummary) -> bool| {
            let judged: Option<Vec<bool>> = latencies
                .iter()
                .map(|latency| p90_us(latency).map(|_| is_right(latency)))
                .collect();
            judged.map(|judged| judged.into_iter().all(|is_right| is_right))
        };
        ResponseRow {
            target: trials[0].target.clone(),
            terminals: facts.terminals,
            kind: words::kind(&kind.name),
            count: latencies.iter().map(|latency| latency.count).sum(),
            repeats: trials.len(),
            mean_us: spread(SAMPLES_BEYOND, |latency| latency.mean_us),
            p90_us: spread(0.1, |latency| latency.p90_us),
            p95_us: spread(0.05, |latency| latency.p95_us),
            p99_us: spread(0.01, |latency| latency.p99_us),
            max_us: latencies
                .iter()
                .filter(|latency| latency.count > 0)
                .map(|latency| latency.max_us)
                .reduce(f64::max),
            limit_s,
            is_within_limit: limit_s
                .and_then(|limit_s| judge(&|latency| latency.p90_us <= limit_s * 1e6)),
            is_mean_below_p90: judge(&|latency| latency.mean_us <= latency.p90_us),
        }
    };
    sums(trials).iter().map(row).collect()
}

/// The kinds of some rows, each once, in their order.
pub(super) fn kinds(rows: &[&ResponseRow]) -> Vec<Message> {
    let mut kinds: Vec<Message> = Vec::new();
    for row in rows {
        if !kinds.contains(&row.kind) {
            kinds.push(row.kind.clone());
        }
    }
    kinds
}
