//! The checks that only TPC-C needs.

use super::rows::{facts_of, p90_us, share_percent};
use super::{TpccSetup, has_pauses_of_spec, words};
use crate::checks::{Find, Rule};
use crate::comparison::counterpart;
use crate::format::{self, count_of, whole};
use crate::model::{Experiment, Group, Level, Place, Trial};
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
        advice: "",
        find: Find::EnglishTrial(|trial| audit(trial, Verdict::Failed)),
    },
    Rule {
        id: "tpcc-audit-not-made",
        group: Group::F,
        level: Level::W,
        rule: "Every TPC-C trial is audited in full.",
        meaning: "Nobody knows whether the workload was what it is called.",
        advice: "",
        find: Find::EnglishTrial(|trial| match trial.summary.tpcc.as_ref()?.audit.is_empty() {
            true => Some("no audit".to_owned()),
            false => audit(trial, Verdict::NotMade),
        }),
    },
    Rule {
        id: "tpcc-conditions",
        group: Group::F,
        level: Level::E,
        rule: "The consistency conditions hold before and after every TPC-C trial.",
        meaning: "The database broke its own rules, or was broken before: what was counted is not what it holds.",
        advice: "",
        find: Find::EnglishTrial(|trial| conditions(trial, Verdict::Failed)),
    },
    Rule {
        id: "tpcc-conditions-not-made",
        group: Group::F,
        level: Level::W,
        rule: "All consistency conditions are checked before and after every TPC-C trial.",
        meaning: "Whether the data were right is not known.",
        advice: "",
        find: Find::EnglishTrial(|trial| {
            match trial.summary.tpcc.as_ref()?.conditions.is_empty() {
                true => Some("none is on record".to_owned()),
                false => conditions(trial, Verdict::NotMade),
            }
        }),
    },
    Rule {
        id: "tpcc-unlike",
        group: Group::F,
        level: Level::E,
        rule: "Targets of one TPC-C experiment are run alike: profile, flight mode, isolation, warehouses.",
        meaning: "The comparison is unfair: a difference between these targets may come from how they were run.",
        advice: "",
        find: Find::EnglishExperiment(unlike),
    },
    Rule {
        id: "tpcc-unlike-published",
        group: Group::F,
        level: Level::W,
        rule: "What stands beside a published tpmC is run as that was: as many warehouses and terminals, one round trip per statement, no pauses.",
        meaning: "The ratio of the two figures compares different loads.",
        advice: "",
        find: Find::EnglishExperiment(unlike_published),
    },
    Rule {
        id: "tpcc-mix",
        group: Group::F,
        level: Level::W,
        rule: "No kind's share of the TPC-C mix is below its least share (43, 4, 4 and 4 %) by more than chance explains.",
        meaning: "More New-Orders were entered than the specification allows: tpmC is too high.",
        advice: "",
        find: Find::EnglishTrial(|trial| below_least(trial, true)),
    },
    Rule {
        id: "tpcc-mix-least",
        group: Group::F,
        level: Level::I,
        rule: "Every kind's share of the TPC-C mix is at least the least one.",
        meaning: "Chance led below a least share. With dice that have the least share as their mean that is so half of the time; decks avoid it.",
        advice: "",
        find: Find::EnglishTrial(|trial| below_least(trial, false)),
    },
    Rule {
        id: "tpcc-response",
        group: Group::F,
        level: Level::W,
        rule: "The 90th percentile of each TPC-C transaction's response time is within its limit (5 s; Stock-Level 20 s; deferred Delivery 80 s).",
        meaning: "The specification takes no throughput for a result that is bought with such response times.",
        advice: "",
        find: Find::EnglishTrial(slow_kinds),
    },
    Rule {
        id: "tpcc-mean",
        group: Group::F,
        level: Level::W,
        rule: "The mean response time of each TPC-C transaction is at most its 90th percentile.",
        meaning: "A few transactions took very long; the 90th percentile hides them.",
        advice: "",
        find: Find::EnglishTrial(|trial| {
            kinds_where(trial, |kind| {
                let p90_us =
                    p90_us(&kind.latency).filter(|p90_us| kind.latency.mean_us > *p90_us)?;
                Some(format!(
                    "{} ms on average, 90th percentile {} ms",
                    format::ms(kind.latency.mean_us),
                    format::ms(p90_us)
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
        advice: "",
        find: Find::EnglishTrial(|trial| {
            let unknown = trial.summary.tpcc.as_ref()?.orders_unknown;
            (unknown > 0).then(|| {
                count_of(unknown, "New-Order of unknown outcome", "New-Orders of unknown outcome")
            })
        }),
    },
    Rule {
        id: "tpcc-skips",
        group: Group::F,
        level: Level::W,
        rule: "At most 1 % of the Deliveries find a district without an order to deliver.",
        meaning: "Deliveries did less work than they should: New-Orders came too slowly for them, or were delivered elsewhere.",
        advice: "",
        find: Find::EnglishTrial(|trial| {
            let facts = trial.summary.tpcc.as_ref()?;
            let share = facts.deliveries_with_skips as f64 / facts.deliveries.max(1) as f64;
            (share > SKIPS_ALLOWED).then(|| {
                format!("{} % of {}", format::percent(share), whole(facts.deliveries as f64))
            })
        }),
    },
    Rule {
        id: "tpcc-above-bound",
        group: Group::F,
        level: Level::W,
        rule: "With keying and think times tpmC is at most what they allow: 12.86 for each warehouse with those of the specification.",
        meaning: "The pauses allow no more in the long run: the window is too short for an average, or they were not kept.",
        advice: "",
        find: Find::EnglishTrial(|trial| {
            let facts = trial.summary.tpcc.as_ref()?;
            let limit = facts.tpmc_limit.filter(|limit| facts.tpmc > *limit)?;
            Some(format!("{} tpmC, at most {}", format::short(facts.tpmc), whole(limit)))
        }),
    },
    Rule {
        id: "tpcc-no-pauses",
        group: Group::F,
        level: Level::W,
        rule: "tpmC is at most 12.86 for each warehouse, as the specification's keying and think times have it.",
        meaning: "Not possible with the specification's think times; this run has none, or shorter ones. The load falls on fewer warehouses than the specification would need for it, which makes some things easier for a server (the data fit into memory) and others harder (rows are contended for).",
        advice: "",
        find: Find::EnglishTrial(|trial| {
            let facts = trial.summary.tpcc.as_ref()?;
            let per_warehouse = facts.tpmc / f64::from(facts.warehouses.max(1));
            let is_above = !has_pauses_of_spec(facts) && per_warehouse > words::PER_WAREHOUSE.1;
            is_above.then(|| format!("{} tpmC per warehouse", format::short(per_warehouse)))
        }),
    },
    Rule {
        id: "tpcc-below-floor",
        group: Group::F,
        level: Level::I,
        rule: "With keying and think times tpmC is at least 9 for each warehouse.",
        meaning: "More warehouses than the load needs: the specification takes no such result.",
        advice: "",
        find: Find::EnglishTrial(|trial| {
            let facts = trial.summary.tpcc.as_ref()?;
            let per_warehouse = facts.tpmc / f64::from(facts.warehouses.max(1));
            let is_below = has_pauses_of_spec(facts) && per_warehouse < words::PER_WAREHOUSE.0;
            is_below.then(|| format!("{} tpmC per warehouse", format::short(per_warehouse)))
        }),
    },
    Rule {
        id: "tpcc-interval",
        group: Group::F,
        level: Level::I,
        rule: "A TPC-C trial with keying and think times is measured for at least 120 min.",
        meaning: "Shorter than the specification's measurement interval: checkpoints and the growth of the data show less.",
        advice: "",
        find: Find::EnglishTrial(|trial| {
            let facts = trial.summary.tpcc.as_ref()?;
            let is_short =
                facts.tpmc_limit.is_some() && trial.summary.window_s < words::LEAST_INTERVAL_S;
            is_short.then(|| format!("{} min", format::plain(trial.summary.window_s / 60.0)))
        }),
    },
    Rule {
        id: "tpcc-cached",
        group: Group::F,
        level: Level::I,
        rule: "The warehouses do not fit into the server's memory for data.",
        meaning: "Reads are answered from memory: the figures do not hold for data that are larger than it.",
        advice: "",
        find: Find::EnglishTrial(cached),
    },
];

fn audit(trial: &Trial, verdict: Verdict) -> Option<String> {
    let lines = trial.summary.tpcc.as_ref()?.audit.iter().filter(|line| line.verdict == verdict);
    let words = lines.map(|line| match verdict {
        Verdict::NotMade => format!("{}: not made", line.name),
        _ => {
            format!("{}: {}, expected {} ({})", line.name, line.observed, line.expected, line.bound)
        }
    });
    some(words.collect())
}

fn conditions(trial: &Trial, verdict: Verdict) -> Option<String> {
    let lines = &trial.summary.tpcc.as_ref()?.conditions;
    let at = |moment: &str, of: fn(&ConditionLine) -> &Option<ConditionState>| {
        let judged = lines.iter().filter_map(|line| Some((line, of(line).as_ref()?)));
        let found: Vec<&str> = judged
            .clone()
            .filter(|(_, state)| state.verdict == verdict)
            .map(|(line, _)| line.id.as_str())
            .collect();
        match found.len() {
            0 => None,
            all if all == judged.count() => Some(format!("{moment}: all {all}")),
            _ => Some(format!("{moment}: {}", found.join(", "))),
        }
    };
    let found = [at("before", |line| &line.before), at("after", |line| &line.after)];
    some(found.into_iter().flatten().collect())
}

fn some(words: Vec<String>) -> Option<String> {
    (!words.is_empty()).then(|| words.join("; "))
}

/// What `find` says of the kinds of a TPC-C trial.
fn kinds_where(trial: &Trial, find: impl Fn(&KindSummary) -> Option<String>) -> Option<String> {
    trial.summary.tpcc.as_ref()?;
    let found = trial
        .summary
        .kinds
        .iter()
        .filter_map(|kind| Some(format!("{} {}", words::kind(&kind.name), find(kind)?)));
    some(found.collect())
}

fn slow_kinds(trial: &Trial) -> Option<String> {
    let facts = trial.summary.tpcc.as_ref()?;
    kinds_where(trial, |kind| {
        let limit_s = facts_of(facts, &kind.name)?.limit_p90_s;
        let p90_us = p90_us(&kind.latency).filter(|p90_us| *p90_us > limit_s * 1e6)?;
        Some(format!("{} s, limit {} s", format::short(p90_us / 1e6), format::plain(limit_s)))
    })
}

/// Kinds below their least share, by more than chance explains or not.
fn below_least(trial: &Trial, is_beyond_chance: bool) -> Option<String> {
    let facts = trial.summary.tpcc.as_ref()?;
    let all = trial.summary.counts.committed + trial.summary.counts.rolled_back;
    kinds_where(trial, |kind| {
        let least = facts_of(facts, &kind.name)?.least_share_percent;
        let share = share_percent(&trial.summary.kinds, &kind.name)?;
        let chance = DEVIATIONS * (least * (100.0 - least) / all.max(1) as f64).sqrt();
        let is_found = share < least && (share < least - chance) == is_beyond_chance;
        is_found.then(|| format!("{share:.2} %, at least {least} %"))
    })
}

/// What has to be the same on all targets: its name, and how it is told of a setup.
type Alike = (&'static str, fn(&TpccSetup) -> String);

fn unlike(experiment: &Experiment) -> Option<String> {
    let setups: Vec<(&str, &TpccSetup)> = experiment
        .points
        .iter()
        .filter_map(|point| Some((point.target.as_str(), &point.tpcc.as_ref()?.setup)))
        .collect();
    let values: [Alike; 4] = [
        ("profile", |setup| setup.profile.clone()),
        ("flight mode", |setup| setup.flight.clone()),
        ("isolation", |setup| setup.isolation.clone()),
        ("warehouses", |setup| whole(setup.warehouses.into())),
    ];
    let difference = |(name, value): &Alike| {
        // What each target was run with; a sweep over the same values on each is no difference.
        let mut by_target: Vec<(&str, Vec<String>)> = Vec::new();
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
        let told =
            by_target.iter().map(|(target, values)| format!("{target} {}", values.join(", ")));
        (!is_same).then(|| format!("{name}: {}", told.collect::<Vec<_>>().join(", ")))
    };
    some(values.iter().filter_map(difference).collect())
}

fn unlike_published(experiment: &Experiment) -> Option<String> {
    let rows = experiment.published.iter().flat_map(|shown| &shown.table.rows);
    let rows = rows.filter(|row| row.metrics.contains_key("tpmc"));
    let found = rows.flat_map(|row| {
        row.targets.iter().filter_map(|target| {
            let point = counterpart(experiment, row, target)?.tpcc.as_ref()?;
            let differ = |noun: &str, here: f64, there: Option<f64>| {
                let there = there.filter(|there| *there != here)?;
                Some(format!("{} {noun} instead of {}", whole(here), whole(there)))
            };
            let warehouses = row.conditions.get("warehouses").and_then(|text| text.parse().ok());
            let differences = [
                differ("warehouses", point.setup.warehouses.into(), warehouses),
                differ("terminals", point.setup.terminals.into(), row.workers()),
                (point.setup.flight != "statement")
                    .then(|| format!("{} flight", point.setup.flight)),
                point.limit.map(|_| "keying and think times".to_owned()),
            ];
            let differences: Vec<String> = differences.into_iter().flatten().collect();
            some(differences)
                .map(|differences| format!("{target} beside {}: {differences}", row.label))
        })
    });
    some(found.collect())
}

fn cached(trial: &Trial) -> Option<String> {
    let facts: &TpccFacts = trial.summary.tpcc.as_ref()?;
    let data = trial.summary.data.as_ref()?;
    let memory = data.memory_bytes.filter(|bytes| *bytes > 0 && trial.place != Place::Embedded)?;
    let (size, how) = match data.size_bytes {
        Some(size) => (size as f64, ""),
        None => (WAREHOUSE_BYTES * f64::from(facts.warehouses), "about "),
    };
    (size < memory as f64).then(|| {
        format!(
            "{how}{} of data, {} = {}",
            format::bytes(size),
            data.memory_setting,
            format::bytes(memory as f64)
        )
    })
}
