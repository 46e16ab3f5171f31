//! The checks that only TPC-C needs.

use super::rows::{facts_of, p90_us, share_percent};
use super::{TpccSetup, has_pauses_of_spec, words};
use crate::checks::{Find, Rule};
use crate::comparison::counterpart;
use crate::format::{self, whole};
use crate::model::{Experiment, Group, Level, Place, Trial};
use crate::say;
use crate::text::{Text, stored};
use dyno_measure::{ConditionLine, ConditionState, KindSummary, TpccFacts, Verdict};

/// About what a warehouse takes with its indexes when it is loaded, bytes.
const WAREHOUSE_BYTES: f64 = 100e6;
/// Deviations of chance, in standard deviations, that are taken for none.
const DEVIATIONS: f64 = 4.0;
/// Deliveries that may find a district without an order (clause 2.7.4.2).
const SKIPS_ALLOWED: f64 = 0.01;

/// In the order of their weight.
pub(crate) const RULES: &[Rule] = &[
    Rule {
        id: "tpcc-audit",
        group: Group::F,
        level: Level::E,
        rule: "What a TPC-C trial executed is what its profile says: shares of remote lines and payments, of rollbacks and names, the skew of what was drawn.",
        meaning: "Another workload was executed than the one that is named: its figures say nothing about TPC-C.",
        advice: "Run a build of dyno whose workload was not changed, with the options of the profile, and look at the audit's lines to see which share is off.",
        find: Find::Trial(|trial| audit(trial, Verdict::Failed)),
    },
    Rule {
        id: "tpcc-audit-not-made",
        group: Group::F,
        level: Level::W,
        rule: "Every TPC-C trial is audited in full.",
        meaning: "Nobody knows whether the workload was what it is called.",
        advice: "Let every trial end by itself, and run it long enough for the audit to judge each share.",
        find: Find::Trial(|trial| match trial.summary.tpcc.as_ref()?.audit.is_empty() {
            true => Some(say!("no audit")),
            false => audit(trial, Verdict::NotMade),
        }),
    },
    Rule {
        id: "tpcc-conditions",
        group: Group::F,
        level: Level::E,
        rule: "The consistency conditions hold before and after every TPC-C trial.",
        meaning: "The database broke its own rules, or was broken before: what was counted is not what it holds.",
        advice: "Load the data anew. If a condition breaks again during a run, the server loses or mixes up what it has acknowledged: look at its isolation level, its replication and its log.",
        find: Find::Trial(|trial| conditions(trial, Verdict::Failed)),
    },
    Rule {
        id: "tpcc-conditions-not-made",
        group: Group::F,
        level: Level::W,
        rule: "All consistency conditions are checked before and after every TPC-C trial.",
        meaning: "Whether the data were right is not known.",
        advice: "Leave the checks before and after the trials on (option checks), and give them the time that they take.",
        find: Find::Trial(|trial| match trial.summary.tpcc.as_ref()?.conditions.is_empty() {
            true => Some(say!("none is on record")),
            false => conditions(trial, Verdict::NotMade),
        }),
    },
    Rule {
        id: "tpcc-unlike",
        group: Group::F,
        level: Level::E,
        rule: "Targets of one TPC-C experiment are run alike: profile, flight mode, isolation, warehouses.",
        meaning: "The comparison is unfair: a difference between these targets may come from how they were run.",
        advice: "Run all targets of the experiment with the same profile, flight mode, isolation level and number of warehouses.",
        find: Find::Experiment(unlike),
    },
    Rule {
        id: "tpcc-unlike-published",
        group: Group::F,
        level: Level::W,
        rule: "What stands beside a published tpmC is run as that was: as many warehouses and terminals, one round trip per statement, no pauses.",
        meaning: "The ratio of the two figures compares different loads.",
        advice: "Load as many warehouses and use as many terminals as the published run did, with one round trip per statement and no pauses; or compare with another row.",
        find: Find::Experiment(unlike_published),
    },
    Rule {
        id: "tpcc-mix",
        group: Group::F,
        level: Level::W,
        rule: "No kind's share of the TPC-C mix is below its least share (43, 4, 4 and 4 %) by more than chance explains.",
        meaning: "More New-Orders were entered than the specification allows: tpmC is too high.",
        advice: "Use decks (profile spec) instead of dice, or shares above the least ones, and see whether some kind fails more often than the others.",
        find: Find::Trial(|trial| below_least(trial, true)),
    },
    Rule {
        id: "tpcc-mix-least",
        group: Group::F,
        level: Level::I,
        rule: "Every kind's share of the TPC-C mix is at least the least one.",
        meaning: "Chance led below a least share. With dice that have the least share as their mean that is so half of the time; decks avoid it.",
        advice: "Use decks (profile spec), which keep the shares exactly, or run longer.",
        find: Find::Trial(|trial| below_least(trial, false)),
    },
    Rule {
        id: "tpcc-response",
        group: Group::F,
        level: Level::W,
        rule: "The 90th percentile of each TPC-C transaction's response time is within its limit (5 s; Stock-Level 20 s; deferred Delivery 80 s).",
        meaning: "The specification takes no throughput for a result that is bought with such response times.",
        advice: "Publish the highest load at which the limits are kept: use fewer terminals or, with keying and think times, fewer warehouses.",
        find: Find::Trial(slow_kinds),
    },
    Rule {
        id: "tpcc-mean",
        group: Group::F,
        level: Level::W,
        rule: "The mean response time of each TPC-C transaction is at most its 90th percentile.",
        meaning: "A few transactions took very long; the 90th percentile hides them.",
        advice: "Look at the maximum, the stalls and the server's events of these trials: checkpoints, lock waits and failovers are the usual causes.",
        find: Find::Trial(|trial| {
            kinds_where(trial, |kind| {
                let p90_us =
                    p90_us(&kind.latency).filter(|p90_us| kind.latency.mean_us > *p90_us)?;
                Some(say!(
                    "{mean} ms on average, 90th percentile {p90} ms",
                    mean = format::ms(kind.latency.mean_us),
                    p90 = format::ms(p90_us)
                ))
            })
        }),
    },
    Rule {
        id: "tpcc-unknown",
        group: Group::F,
        level: Level::W,
        rule: "Every commit of a New-Order that is sent is answered.",
        meaning: "Whether these orders exist nobody has said. They are in no figure; a durable ledger and dyno check settle them one by one.",
        advice: "Keep a durable ledger (option --ledger) and let dyno check settle these orders after the run.",
        find: Find::Trial(|trial| {
            let unknown = trial.summary.tpcc.as_ref()?.orders_unknown;
            (unknown > 0).then(|| {
                Text::count(
                    unknown,
                    "{n} New-Order of unknown outcome",
                    "{n} New-Orders of unknown outcome",
                )
            })
        }),
    },
    Rule {
        id: "tpcc-skips",
        group: Group::F,
        level: Level::W,
        rule: "At most 1 % of the Deliveries find a district without an order to deliver.",
        meaning: "Deliveries did less work than they should: New-Orders came too slowly for them, or were delivered elsewhere.",
        advice: "Load the warehouses anew before the run, and let nothing else deliver their orders.",
        find: Find::Trial(|trial| {
            let facts = trial.summary.tpcc.as_ref()?;
            let share = facts.deliveries_with_skips as f64 / facts.deliveries.max(1) as f64;
            (share > SKIPS_ALLOWED).then(|| {
                say!(
                    "{share} % of {all}",
                    share = format::percent(share),
                    all = whole(facts.deliveries as f64)
                )
            })
        }),
    },
    Rule {
        id: "tpcc-above-bound",
        group: Group::F,
        level: Level::E,
        rule: "With keying and think times tpmC is at most what they allow: 12.86 for each warehouse with those of the specification.",
        meaning: "The pauses allow no more in the long run: the window is too short for an average, or they were not kept.",
        advice: "Measure for longer, so that the random pauses average out, and see that the terminals keep their pauses.",
        find: Find::Trial(|trial| {
            let facts = trial.summary.tpcc.as_ref()?;
            let limit = facts.tpmc_limit.filter(|limit| facts.tpmc > *limit)?;
            Some(say!(
                "{tpmc} tpmC, at most {limit}",
                tpmc = format::short(facts.tpmc),
                limit = whole(limit)
            ))
        }),
    },
    Rule {
        id: "tpcc-no-pauses",
        group: Group::F,
        level: Level::W,
        rule: "tpmC is at most 12.86 for each warehouse, as the specification's keying and think times have it.",
        meaning: "Not possible with the specification's think times; this run has none, or shorter ones. The load falls on fewer warehouses than the specification would need for it, which makes some things easier for a server (the data fit into memory) and others harder (rows are contended for).",
        advice: "Say beside the figure that there were no keying and think times; for one that is nearer to the specification turn them on and load more warehouses.",
        find: Find::Trial(|trial| {
            let facts = trial.summary.tpcc.as_ref()?;
            let per_warehouse = facts.tpmc / f64::from(facts.warehouses.max(1));
            let is_above = !has_pauses_of_spec(facts) && per_warehouse > words::PER_WAREHOUSE.1;
            is_above.then(|| of_warehouse(per_warehouse))
        }),
    },
    Rule {
        id: "tpcc-below-floor",
        group: Group::F,
        level: Level::I,
        rule: "With keying and think times tpmC is at least 9 for each warehouse.",
        meaning: "More warehouses than the load needs: the specification takes no such result.",
        advice: "Use fewer warehouses, or find out why the terminals wait: response times count against their pauses.",
        find: Find::Trial(|trial| {
            let facts = trial.summary.tpcc.as_ref()?;
            let per_warehouse = facts.tpmc / f64::from(facts.warehouses.max(1));
            let is_below = has_pauses_of_spec(facts) && per_warehouse < words::PER_WAREHOUSE.0;
            is_below.then(|| of_warehouse(per_warehouse))
        }),
    },
    Rule {
        id: "tpcc-interval",
        group: Group::F,
        level: Level::I,
        rule: "A TPC-C trial with keying and think times is measured for at least 120 min.",
        meaning: "Shorter than the specification's measurement interval: checkpoints and the growth of the data show less.",
        advice: "Measure for at least 120 min after a ramp-up of steady load.",
        find: Find::Trial(|trial| {
            let facts = trial.summary.tpcc.as_ref()?;
            let is_short =
                facts.tpmc_limit.is_some() && trial.summary.window_s < words::LEAST_INTERVAL_S;
            is_short.then(|| {
                say!("{minutes} min", minutes = format::plain(trial.summary.window_s / 60.0))
            })
        }),
    },
    Rule {
        id: "tpcc-cached",
        group: Group::F,
        level: Level::I,
        rule: "The warehouses do not fit into the server's memory for data.",
        meaning: "Reads are answered from memory: the figures do not hold for data that are larger than it.",
        advice: "Load more warehouses than fit into the memory, or say beside the figure that the data lay in memory.",
        find: Find::Trial(cached),
    },
];

fn of_warehouse(tpmc: f64) -> Text {
    say!("{tpmc} tpmC per warehouse", tpmc = format::short(tpmc))
}

fn audit(trial: &Trial, verdict: Verdict) -> Option<Text> {
    let lines = trial.summary.tpcc.as_ref()?.audit.iter().filter(|line| line.verdict == verdict);
    let words = lines.map(|line| match verdict {
        Verdict::NotMade => say!("{name}: not made", name = stored(&line.name)),
        _ => say!(
            "{name}: {observed}, expected {expected} ({bound})",
            name = stored(&line.name),
            observed = stored(&line.observed),
            expected = stored(&line.expected),
            bound = stored(&line.bound)
        ),
    });
    some(words.collect())
}

fn conditions(trial: &Trial, verdict: Verdict) -> Option<Text> {
    let lines = &trial.summary.tpcc.as_ref()?.conditions;
    let at = |of: fn(&ConditionLine) -> &Option<ConditionState>| {
        let judged = lines.iter().filter_map(|line| Some((line, of(line).as_ref()?)));
        let found: Vec<Text> = judged
            .clone()
            .filter(|(_, state)| state.verdict == verdict)
            .map(|(line, _)| Text::same(line.id.as_str()))
            .collect();
        match found.len() {
            0 => None,
            all if all == judged.count() => Some(say!("all {n}", n = all.to_string())),
            _ => Some(Text::joined(&found, ", ", "、")),
        }
    };
    let found = [
        at(|line| &line.before).map(|found| say!("before: {found}", found = found)),
        at(|line| &line.after).map(|found| say!("after: {found}", found = found)),
    ];
    some(found.into_iter().flatten().collect())
}

fn some(words: Vec<Text>) -> Option<Text> {
    (!words.is_empty()).then(|| Text::joined(&words, "; ", "；"))
}

/// What `find` says of the kinds of a TPC-C trial.
fn kinds_where(trial: &Trial, find: impl Fn(&KindSummary) -> Option<Text>) -> Option<Text> {
    trial.summary.tpcc.as_ref()?;
    let found = trial.summary.kinds.iter().filter_map(|kind| {
        Some(say!("{kind} {found}", kind = words::kind(&kind.name), found = find(kind)?))
    });
    some(found.collect())
}

fn slow_kinds(trial: &Trial) -> Option<Text> {
    let facts = trial.summary.tpcc.as_ref()?;
    kinds_where(trial, |kind| {
        let limit_s = facts_of(facts, &kind.name)?.limit_p90_s;
        let p90_us = p90_us(&kind.latency).filter(|p90_us| *p90_us > limit_s * 1e6)?;
        Some(say!(
            "{p90} s, limit {limit} s",
            p90 = format::short(p90_us / 1e6),
            limit = format::plain(limit_s)
        ))
    })
}

/// Kinds below their least share, by more than chance explains or not.
fn below_least(trial: &Trial, is_beyond_chance: bool) -> Option<Text> {
    let facts = trial.summary.tpcc.as_ref()?;
    let all = trial.summary.counts.committed + trial.summary.counts.rolled_back;
    kinds_where(trial, |kind| {
        let least = facts_of(facts, &kind.name)?.least_share_percent;
        let share = share_percent(&trial.summary.kinds, &kind.name)?;
        let chance = DEVIATIONS * (least * (100.0 - least) / all.max(1) as f64).sqrt();
        let is_found = share < least && (share < least - chance) == is_beyond_chance;
        is_found.then(|| {
            say!(
                "{share} %, at least {least} %",
                share = format!("{share:.2}"),
                least = least.to_string()
            )
        })
    })
}

/// What has to be the same on all targets: its name, and how it is told of a setup.
type Alike = (fn() -> Text, fn(&TpccSetup) -> Text);

fn unlike(experiment: &Experiment) -> Option<Text> {
    let setups: Vec<(&str, &TpccSetup)> = experiment
        .points
        .iter()
        .filter_map(|point| Some((point.target.as_str(), &point.tpcc.as_ref()?.setup)))
        .collect();
    let values: [Alike; 4] = [
        (|| say!("profile"), |setup| Text::same(setup.profile.as_str())),
        (|| say!("flight mode"), |setup| Text::same(setup.flight.as_str())),
        (|| say!("isolation"), |setup| setup.isolation.clone()),
        (|| say!("warehouses"), |setup| Text::same(whole(setup.warehouses.into()))),
    ];
    let difference = |(name, value): &Alike| {
        // What each target was run with; a sweep over the same values on each is no difference.
        let mut by_target: Vec<(&str, Vec<Text>)> = Vec::new();
        for (target, setup) in &setups {
            let value = value(setup);
            match by_target.iter_mut().find(|(known, _)| known == target) {
                Some((_, values)) if values.contains(&value) => {}
                Some((_, values)) => values.push(value),
                None => by_target.push((target, vec![value])),
            }
        }
        let first = &by_target.first()?.1;
        let is_same = by_target.iter().all(|(_, values)| values == first);
        let told: Vec<Text> =
            by_target.iter().map(|(target, values)| target_has(target, values)).collect();
        (!is_same).then(|| named(name(), Text::joined(&told, ", ", "，")))
    };
    some(values.iter().filter_map(difference).collect())
}

/// `main 1, 2`: what a target has of something.
pub(crate) fn target_has(target: &str, values: &[Text]) -> Text {
    say!("{target} {values}", target = target, values = Text::joined(values, ", ", "、"))
}

/// `warehouses: main 1, other 2`.
pub(crate) fn named(name: Text, values: Text) -> Text {
    say!("{name}: {values}", name = name, values = values)
}

fn unlike_published(experiment: &Experiment) -> Option<Text> {
    let rows = experiment.published.iter().flat_map(|shown| &shown.table.rows);
    let rows = rows.filter(|row| row.metrics.contains_key("tpmc"));
    let found = rows.flat_map(|row| {
        row.targets.iter().filter_map(|target| {
            let point = counterpart(experiment, row, target)?.tpcc.as_ref()?;
            let setup = &point.setup;
            let is_other = |here: u32, there: Option<f64>| there.filter(|t| *t != f64::from(here));
            let loaded = row.conditions.get("warehouses").and_then(|text| text.parse().ok());
            let differences = [
                is_other(setup.warehouses, loaded).map(|there| {
                    say!(
                        "{here} warehouses instead of {there}",
                        here = whole(setup.warehouses.into()),
                        there = whole(there)
                    )
                }),
                is_other(setup.terminals, row.workers()).map(|there| {
                    say!(
                        "{here} terminals instead of {there}",
                        here = whole(setup.terminals.into()),
                        there = whole(there)
                    )
                }),
                (setup.flight != "statement").then(|| words::flight(&setup.flight)),
                point.limit.map(|_| say!("keying and think times")),
            ];
            some(differences.into_iter().flatten().collect()).map(|differences| {
                say!(
                    "{target} beside {row}: {differences}",
                    target = target,
                    row = &row.label,
                    differences = differences
                )
            })
        })
    });
    some(found.collect())
}

fn cached(trial: &Trial) -> Option<Text> {
    let facts: &TpccFacts = trial.summary.tpcc.as_ref()?;
    let data = trial.summary.data.as_ref()?;
    let memory = data.memory_bytes.filter(|bytes| *bytes > 0 && trial.place != Place::Embedded)?;
    let about = WAREHOUSE_BYTES * f64::from(facts.warehouses);
    let size = data.size_bytes.map_or(about, |size| size as f64);
    let told = format::bytes(size);
    (size < memory as f64).then(|| {
        say!(
            "{size} of data, {setting} = {memory}",
            size = match data.size_bytes {
                Some(_) => Text::same(told),
                None => say!("about {size}", size = told),
            },
            setting = &data.memory_setting,
            memory = format::bytes(memory as f64)
        )
    })
}
