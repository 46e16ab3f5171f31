//! Kinds of transactions at a point (the mix, the response times, the pauses), and editions of a database beside each other:
//! what each carries at how many terminals, and what that costs.

use super::{TpccPoint, facts, kind_name, tpcc_of};
use crate::audit::least_mean_of_exponentials;
use crate::facts::{PauseFacts, TpccFacts, TpccKind};
use dyno_facts::{
    Counts, KindSummary, LatencySummary, Message, Metric, PublishedRow, SAMPLES_BEYOND, say,
};
use dyno_report::blocks::{Blocks, Cell, PaperRows, spread};
use dyno_report::charts;
use dyno_report::format::NumberFormat::{Percent, Plain, Short, Whole};
use dyno_report::format::unique;
use dyno_report::{Experiment, Paper, Point, Spread, Trial};

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
    pub(super) latencies: Vec<LatencySummary>,
    /// Pauses of terminals around it.
    pub(super) pauses: Option<PauseFacts>,
}

impl KindRow<'_> {
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

    /// A figure over the repeats, for the share of transactions beyond it; `None` where one has too few.
    pub(super) fn spread(&self, beyond: f64, value: fn(&LatencySummary) -> f64) -> Option<Spread> {
        let is_enough = |it: &LatencySummary| it.count as f64 * beyond >= SAMPLES_BEYOND;
        let values = self.latencies.iter().map(|it| is_enough(it).then(|| value(it)));
        Spread::of(values.collect::<Option<Vec<f64>>>()?)
    }

    pub(super) fn p90_us(&self) -> Option<Spread> {
        self.spread(0.1, |latency| latency.p90_us)
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
            kind: kind_name(&sum.name),
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

/// Transactions that ended as the profile wants: committed, and rolled back for an unused item.
pub(super) fn executed(counts: &Counts) -> u64 {
    counts.committed + counts.rolled_back
}

/// The 90th percentile of a kind, where it rests on enough transactions.
pub(super) fn p90_us(latency: &LatencySummary) -> Option<f64> {
    (latency.count as f64 * 0.1 >= SAMPLES_BEYOND).then_some(latency.p90_us)
}

/// An edition at a number of terminals: measured, published, or both.
struct EditionRow<'a> {
    name: Message,
    vcpu: Option<f64>,
    measured: Option<Measured<'a>>,
    terminals: f64,
    warehouses: Option<f64>,
    published: Option<f64>,
    /// The checks that forbid what was measured.
    marks: String,
}

struct Measured<'a> {
    point: &'a Point,
    own: TpccPoint<'a>,
}

/// The table, in the section of the first experiment that has some of them; nothing if there is one edition only.
pub(super) fn edition_blocks(paper: &Paper, experiment: &Experiment, blocks: &mut Blocks) {
    let rows = edition_rows(paper, experiment);
    if !rows.is_empty() {
        blocks.table(edition_table(&rows));
        blocks.fine(say!(an_edition_is_a_target));
    }
}

/// The points without pauses, which are about the same thing: what a database can carry.
fn measured<'a>(paper: &'a Paper, experiment: &'a Experiment) -> Vec<Measured<'a>> {
    let points = experiment.points.iter().filter(|point| !point.has_fault);
    let points = points.filter_map(|point| Some(Measured { point, own: tpcc_of(paper, point)? }));
    points.filter(|measured| measured.own.facts.tpmc_limit.is_none()).collect()
}

fn edition_rows<'a>(paper: &'a Paper, experiment: &Experiment) -> Vec<EditionRow<'a>> {
    let all: Vec<(&Experiment, Vec<Measured<'_>>)> = paper
        .experiments
        .iter()
        .map(|own| (own, measured(paper, own)))
        .filter(|(_, points)| !points.is_empty())
        .collect();
    let is_first = all.first().is_some_and(|(first, _)| first.name == experiment.name);
    let names = all.iter().flat_map(|(_, points)| points).map(|it| it.point.target.as_str());
    if !is_first || unique(names.collect()).len() < 2 {
        return Vec::new();
    }
    let tables = || all.iter().flat_map(|(own, _)| &own.published);
    let published: Vec<&PublishedRow> = {
        let rows = tables().flat_map(|table| &table.table.rows);
        unique(rows.filter(|row| row.metrics.contains_key("tpmc")).collect())
    };
    let place = |target: &str| paper.targets.iter().position(|known| known.label == target);
    let mut points: Vec<Measured<'_>> = all.into_iter().flat_map(|(_, points)| points).collect();
    points.sort_by_key(|one| place(&one.point.target));
    let is_of = |row: &PublishedRow, target: &str| row.targets.iter().any(|own| own == target);
    let mut rows: Vec<EditionRow<'_>> = points
        .into_iter()
        .map(|one| {
            let target = paper.targets.iter().find(|known| known.label == one.point.target);
            let name = target.map_or("", |target| target.facts.name.as_str());
            let counterpart = published.iter().find(|row| is_of(row, name));
            EditionRow {
                name: Message::from(&one.point.target),
                vcpu: target.and_then(|target| target.facts.vcpu),
                terminals: one.own.facts.terminals.into(),
                warehouses: Some(one.own.facts.warehouses.into()),
                published: counterpart.map(|row| row.metrics["tpmc"]),
                marks: charts::forbidding(paper, &one.point.checks),
                measured: Some(one),
            }
        })
        .collect();
    let is_shown =
        |row: &PublishedRow| paper.targets.iter().any(|target| is_of(row, &target.facts.name));
    rows.extend(published.iter().filter(|row| !is_shown(row)).map(|row| EditionRow {
        name: say!(published_edition, edition = &row.label),
        vcpu: row.vcpu(),
        measured: None,
        terminals: row.workers().unwrap_or_default(),
        warehouses: row.number("warehouses"),
        published: Some(row.metrics["tpmc"]),
        marks: String::new(),
    }));
    rows
}

fn edition_table<'a>(rows: &'a [EditionRow<'a>]) -> PaperRows<&'a EditionRow<'a>> {
    let own = |row: &'a EditionRow<'a>| row.measured.as_ref();
    let shown = |row: &'a EditionRow<'a>, of: fn(&TpccPoint<'_>) -> Spread| -> Option<Cell> {
        own(row).map(|one| spread(of(&one.own), one.point.repeats))
    };
    PaperRows::new(say!(editions_beside_each_other), rows)
        .text(say!(edition), |row| &row.name)
        .col(say!(shards), Whole, |row| own(row).and_then(|one| one.own.facts.shards))
        .col(say!(vcpu_stated), Plain, |row| row.vcpu)
        .col(say!(warehouses_used), Whole, |row| row.warehouses)
        .col(say!(terminals), Whole, |row| row.terminals)
        .col("tpmC", Short, move |row| {
            let marks = Message::verbatim(row.marks.trim());
            shown(row, |own| own.tpmc).map(|cell| cell.with(marks))
        })
        .class("strong")
        .col("tpmTOTAL", Short, move |row| shown(row, |own| own.tpm_total))
        .col(say!(published_tpmc), Short, |row| row.published)
        .class("theirs")
        .col(say!(across_shards_percent), Percent, |row| {
            own(row).and_then(|one| one.own.facts.crossing_share)
        })
        .col(say!(server_cpu_us_2), Short, |row| {
            own(row).and_then(|one| one.point.costs.get(&Metric::ServerCpuUs)).map(|us| us.median)
        })
}
