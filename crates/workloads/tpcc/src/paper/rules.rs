//! The checks that only TPC-C needs.

use super::section::{are_short, kind_facts, p90_us, share_percent};
use super::{
    PER_WAREHOUSE, has_pauses_of_spec, isolation_text, kind_name, terminals_text, tpcc_facts,
    tpcc_point, warehouses_text,
};
use crate::DISTRICTS;
use crate::audit::{chance_of_share, chance_of_sum};
use crate::facts::{ConditionLine, ConditionState, TpccFacts};
use crate::messages::checks;
use dyno_facts::Message;
use dyno_facts::{CheckVerdict, KindSummary, say};
use dyno_report::counterpart;
use dyno_report::format::{self, whole};
use dyno_report::{Evidence, Experiment, Group, Level, TargetPlace, Trial};
use dyno_report::{Rule, differing_values, parts};

/// Deliveries that may find a district without an order (clause 2.7.4.2).
const SKIPS_ALLOWED: f64 = 0.01;

/// Sorted in the order of their weight.
pub(super) const RULES: &[Rule] = &[
    Rule::trial(Group::F, Level::E, checks::tpcc_audit, |trial| {
        audit_findings(trial, CheckVerdict::Failed)
    }),
    Rule::trial(Group::F, Level::W, checks::tpcc_terminals, |trial| {
        let facts = tpcc_facts(trial)?;
        let max_terminals = DISTRICTS * facts.warehouses.max(1);
        let (terminals, warehouses) =
            (terminals_text(facts.terminals), warehouses_text(facts.warehouses));
        (facts.terminals > max_terminals)
            .then(|| say!(terminals_on_warehouses, terminals, warehouses))
    }),
    Rule::trial(Group::F, Level::W, checks::tpcc_audit_not_made, |trial| {
        if tpcc_facts(trial)?.audit.is_empty() {
            Some(say!(no_audit))
        } else {
            audit_findings(trial, CheckVerdict::NotMade)
        }
    }),
    Rule::trial(Group::F, Level::E, checks::tpcc_conditions, |trial| {
        condition_findings(trial, CheckVerdict::Failed)
    }),
    Rule::trial(Group::F, Level::W, checks::tpcc_conditions_not_made, conditions_not_made),
    Rule::experiment_of_paper(Group::F, Level::E, checks::tpcc_unlike, unlike_setups),
    Rule::experiment_of_paper(Group::F, Level::W, checks::tpcc_unlike_published, unlike_published),
    Rule::trial(Group::F, Level::W, checks::tpcc_mix, below_least),
    Rule::trial(Group::F, Level::W, checks::tpcc_response, slow_kinds),
    Rule::trial(Group::F, Level::W, checks::tpcc_mean, |trial| {
        kinds_where(trial, |kind| {
            let p90_us = p90_us(&kind.latency).filter(|p90_us| kind.latency.mean_us > *p90_us)?;
            Some(say!(
                ms_on_average_90th_percentile_ms,
                mean = format::ms(kind.latency.mean_us),
                p90 = format::ms(p90_us)
            ))
        })
    }),
    Rule::trial(Group::F, Level::W, checks::tpcc_unknown, |trial| {
        let unknown = tpcc_facts(trial)?.orders_unknown;
        (unknown > 0).then(|| say!(new_orders_of_unknown_outcome, n = unknown))
    }),
    Rule::trial(Group::F, Level::W, checks::tpcc_skips, |trial| {
        let facts = tpcc_facts(trial)?;
        let share = facts.deliveries_with_skips as f64 / facts.deliveries.max(1) as f64;
        (share > SKIPS_ALLOWED).then(|| {
            say!(
                share_percent_of_all,
                share = format::percent(share),
                all = whole(facts.deliveries as f64)
            )
        })
    }),
    Rule::trial(Group::F, Level::E, checks::tpcc_above_bound, |trial| {
        let facts = tpcc_facts(trial)?;
        let limit = facts.tpmc_limit?;
        let minutes = trial.summary.window_s / 60.0;
        // Pauses vary less than exponential ones do, so that orders vary less than arrivals by chance.
        let chance = chance_of_sum(limit * minutes, 1.0) / minutes;
        (minutes > 0.0 && facts.tpmc > limit + chance).then(|| {
            say!(
                tpmc_at_most,
                tpmc = format::short(facts.tpmc),
                limit = whole(limit),
                chance = whole(chance)
            )
        })
    }),
    Rule::trial(Group::F, Level::W, checks::tpcc_pauses, |trial| {
        kinds_where(trial, |kind| short_pauses(trial, kind))
    }),
    Rule::trial(Group::F, Level::I, checks::tpcc_checkpoint, |trial| {
        tpcc_facts(trial)?;
        let nodes = trial.summary.conditions.nodes.iter();
        let without = nodes.filter(|(_, node)| node.checkpoints == Some(0));
        parts(without.map(|(name, _)| say!(no_checkpoint_ended, node = name)))
    }),
    Rule::trial(Group::F, Level::W, checks::tpcc_no_pauses, |trial| {
        per_warehouse(trial, |facts, tpmc| !has_pauses_of_spec(facts) && tpmc > PER_WAREHOUSE.1)
    }),
    Rule::trial(Group::F, Level::I, checks::tpcc_below_floor, |trial| {
        per_warehouse(trial, |facts, tpmc| has_pauses_of_spec(facts) && tpmc < PER_WAREHOUSE.0)
    }),
    Rule::trial(Group::F, Level::I, checks::tpcc_cached, fits_in_memory),
];

/// The tpmC of a warehouse if it is conspicuous.
fn per_warehouse(trial: &Trial, is_conspicuous: fn(&TpccFacts, f64) -> bool) -> Option<Message> {
    let facts = tpcc_facts(trial)?;
    let tpmc = facts.tpmc / f64::from(facts.warehouses.max(1));
    is_conspicuous(facts, tpmc).then(|| say!(tpmc_per_warehouse, tpmc = format::short(tpmc)))
}

fn audit_findings(trial: &Trial, verdict: CheckVerdict) -> Option<Message> {
    let lines = tpcc_facts(trial)?.audit.iter().filter(|line| line.verdict == verdict);
    let words = lines.map(|line| match verdict {
        CheckVerdict::NotMade => say!(name_not_made, name = &line.name),
        _ => say!(
            name_observed_expected_expected_bound,
            name = &line.name,
            observed = &line.observed,
            expected = &line.expected,
            bound = &line.bound
        ),
    });
    parts(words)
}

fn condition_findings(trial: &Trial, verdict: CheckVerdict) -> Option<Message> {
    let lines = &tpcc_facts(trial)?.conditions;
    let before = list_conditions(lines, verdict, |line| &line.before);
    let before = before.map(|found| say!(before_found, found));
    let after = list_conditions(lines, verdict, |line| &line.after);
    let after = after.map(|found| say!(after_found, found));
    parts(before.into_iter().chain(after))
}

/// The conditions that ended with a verdict: their names, or how many if these are all; `None` if none did.
fn list_conditions(
    lines: &[ConditionLine],
    verdict: CheckVerdict,
    get: fn(&ConditionLine) -> &Option<ConditionState>,
) -> Option<Message> {
    let states = lines.iter().filter_map(|line| Some((line, get(line).as_ref()?)));
    let count = states.clone().count();
    let failing = states.filter(|(_, state)| state.verdict == verdict);
    let ids: Vec<Message> = failing.map(|(line, _)| Message::verbatim(line.id.as_str())).collect();
    match ids.len() {
        0 => None,
        all if all == count => Some(say!(all_n, n = all.to_string())),
        _ => Some(Message::joined(&ids, ", ", "、")),
    }
}

/// Conditions after a trial prove more than those before it, which may then be left out.
fn conditions_not_made(trial: &Trial) -> Option<Message> {
    let lines = &tpcc_facts(trial)?.conditions;
    if lines.is_empty() {
        return Some(say!(none_is_on_record));
    }
    let mut after = lines.iter().filter_map(|line| line.after.as_ref()).peekable();
    let is_proven =
        after.peek().is_some() && after.all(|state| state.verdict == CheckVerdict::Passed);
    if is_proven { None } else { condition_findings(trial, CheckVerdict::NotMade) }
}

/// Findings of `find` for the kinds of a TPC-C trial.
fn kinds_where(trial: &Trial, find: impl Fn(&KindSummary) -> Option<Message>) -> Option<Message> {
    tpcc_facts(trial)?;
    parts(trial.summary.kinds.iter().filter_map(|kind| {
        Some(say!(kind_found, kind = kind_name(&kind.name), found = find(kind)?))
    }))
}

fn short_pauses(trial: &Trial, kind: &KindSummary) -> Option<Message> {
    let pauses = kind_facts(tpcc_facts(trial)?, &kind.name)?.pauses?;
    let (is_keying_short, is_think_short) = are_short(&pauses);
    let mut messages = Vec::new();
    if is_keying_short {
        let mean = format!("{:.2}", pauses.keying_s);
        messages.push(say!(keying_for_s, mean, least = format::plain(pauses.keying_clause_s)));
    }
    if is_think_short {
        let mean = format!("{:.2}", pauses.think_s);
        messages.push(say!(thinking_for_s, mean, least = format::plain(pauses.think_clause_s)));
    }
    (!messages.is_empty()).then(|| Message::list(&messages))
}

fn slow_kinds(trial: &Trial) -> Option<Message> {
    let facts = tpcc_facts(trial)?;
    kinds_where(trial, |kind| {
        let limit_s = kind_facts(facts, &kind.name)?.limit_p90_s;
        let p90_us = p90_us(&kind.latency).filter(|p90_us| *p90_us > limit_s * 1e6)?;
        Some(say!(s_limit_s, p90 = format::short(p90_us / 1e6), limit = format::plain(limit_s)))
    })
}

/// Kinds below their least share, by more than chance explains.
fn below_least(trial: &Trial) -> Option<Message> {
    let facts = tpcc_facts(trial)?;
    let total = trial.summary.counts.completed();
    kinds_where(trial, |kind| {
        let min_share = kind_facts(facts, &kind.name)?.least_share_percent;
        let share = share_percent(&trial.summary.kinds, &kind.name)?;
        let chance = 100.0 * chance_of_share(min_share / 100.0, total);
        (share < min_share - chance).then(|| {
            let (share, least) = (format!("{share:.2}"), min_share.to_string());
            say!(percent_at_least_percent, share, least)
        })
    })
}

fn unlike_setups(evidence: &Evidence, experiment: &Experiment) -> Option<Message> {
    /// A property that has to be equal on all targets.
    type Alike = (fn() -> Message, fn(&Trial, &TpccFacts) -> Message);
    const VALUES: [Alike; 3] = [
        (|| say!(profile), |_, setup| Message::verbatim(setup.profile.as_str())),
        (|| say!(isolation), isolation_in_force),
        (|| say!(warehouses), |_, setup| Message::verbatim(whole(setup.warehouses.into()))),
    ];
    // A sweep over the same values on each target is not a difference.
    parts(VALUES.iter().filter_map(|(name, value)| {
        let target_values = experiment.points.iter().filter_map(|point| {
            let trial = *evidence.point_trials(point).first()?;
            Some((point.target.as_str(), value(trial, tpcc_facts(trial)?)))
        });
        differing_values(Some(name()), target_values)
    }))
}

/// The level that sessions asked for, else the one that the server gives them.
fn isolation_in_force(trial: &Trial, facts: &TpccFacts) -> Message {
    let level = facts.isolation.clone().or_else(|| {
        let mut nodes = trial.summary.conditions.nodes.values();
        nodes.find_map(|node| Some(node.isolation.as_ref()?.replace('-', " ")))
    });
    isolation_text(level.as_deref())
}

fn unlike_published(evidence: &Evidence, experiment: &Experiment) -> Option<Message> {
    let rows = experiment.published.iter().flat_map(|shown| &shown.table.rows);
    let rows = rows.filter(|row| row.metrics.contains_key("tpmc"));
    let deviations = rows.flat_map(|row| {
        row.targets.iter().filter_map(|target| {
            let setup = tpcc_point(evidence, counterpart(experiment, row, target)?)?.facts;
            let loaded = row.conditions.get("warehouses").and_then(|text| text.parse().ok());
            let warehouses = unequal_texts(setup.warehouses, loaded);
            let terminals = unequal_texts(setup.terminals, row.workers());
            let differences = [
                warehouses.map(|(n, there)| say!(warehouse_difference, n, there)),
                terminals.map(|(n, there)| say!(terminal_difference, n, there)),
                setup.tpmc_limit.map(|_| say!(keying_and_think_times)),
            ];
            parts(differences.into_iter().flatten()).map(|differences| {
                say!(target_beside_row_differences, target, row = &row.label, differences)
            })
        })
    });
    parts(deviations)
}

/// A measured and a published number as texts; `None` if they are equal or nothing is published.
fn unequal_texts(measured: u32, published: Option<f64>) -> Option<(String, String)> {
    let published = published.filter(|published| *published != f64::from(measured))?;
    Some((whole(measured.into()), whole(published)))
}

/// Describes data that is smaller than the memory of the server; `None` if it is larger or not known.
fn fits_in_memory(trial: &Trial) -> Option<Message> {
    tpcc_facts(trial)?;
    let data = trial.summary.data.as_ref()?;
    let memory =
        data.memory_bytes.filter(|bytes| *bytes > 0 && trial.place != TargetPlace::Embedded)?;
    let size = data.size_bytes? as f64;
    (size < memory as f64).then(|| {
        say!(
            size_of_data_setting_memory,
            size = format::bytes(size),
            setting = &data.memory_setting,
            memory = format::bytes(memory as f64)
        )
    })
}
