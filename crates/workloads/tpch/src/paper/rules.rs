//! The checks that only TPC-H needs.

use super::tables::columns;
use super::words::{self, queries};
use super::{tpch_facts, tpch_trials};
use crate::check::KNOWN_SCALES;
use crate::facts::{QueryFacts, QueryOutcome, TpchFacts};
use crate::messages::checks;
use crate::parameters;
use crate::run::TpchTest;
use dyno_facts::{CheckVerdict, Message, say};
use dyno_report::format::{self, grouped};
use dyno_report::{Evidence, Experiment, Group, Level, Rule, Trial, differing_values, parts};
use std::collections::BTreeSet;

/// Sorted in the order of their weight.
pub(super) const RULES: &[Rule] = &[
    Rule::trial(Group::F, Level::E, checks::tpch_answers, |trial| {
        let is_known = KNOWN_SCALES.contains(&tpch_facts(trial)?.scale);
        let wrong = matching_queries(trial, |query| query.verdict() == Some(CheckVerdict::Failed))?;
        Some(if is_known {
            say!(queries_wrong, queries = wrong)
        } else {
            say!(queries_differ, queries = wrong)
        })
    }),
    Rule::trial(Group::F, Level::E, checks::tpch_failed, |trial| {
        let refreshes = &tpch_facts(trial)?.refreshes;
        let refreshes = refreshes.iter().filter(|r| matches!(r.outcome, QueryOutcome::Failed(_)));
        let refreshes: Vec<Message> = refreshes
            .map(|r| say!(rf_of_pair, function = r.function.to_string(), pair = r.pair.to_string()))
            .collect();
        let failed =
            matching_queries(trial, |query| matches!(query.outcome, QueryOutcome::Failed(_)));
        parts(failed.into_iter().chain(refreshes))
    }),
    Rule::trial(Group::F, Level::W, checks::tpch_not_compared, |trial| {
        matching_queries(trial, |query| query.verdict() == Some(CheckVerdict::NotMade))
    }),
    Rule::trial(Group::F, Level::W, checks::tpch_timeouts, |trial| {
        let timed_out = matching_queries(trial, |query| query.outcome == QueryOutcome::TimedOut)?;
        Some(match tpch_facts(trial)?.timeout_s {
            Some(bound) => {
                say!(queries_after_s_s, queries = timed_out, s = format::plain(bound))
            }
            None => timed_out,
        })
    }),
    Rule::trial(Group::F, Level::W, checks::tpch_degree, degree_not_reached),
    Rule::trial(Group::F, Level::W, checks::tpch_cache_failed, |trial| {
        let cache = &tpch_facts(trial)?.cache;
        (cache.verdict == Some(CheckVerdict::Failed)).then(|| {
            let (state, evidence) =
                (words::cache(&cache.state), Message::sentences(&cache.evidence));
            say!(not_state_evidence, state, evidence)
        })
    }),
    Rule::experiment_of_paper(Group::F, Level::W, checks::tpch_cache_mixed, caches_differ),
    Rule::experiment_of_paper(Group::F, Level::E, checks::tpch_unlike, unlike_facts),
    Rule::experiment_of_paper(Group::F, Level::W, checks::tpch_load_differs, loads_differ),
    Rule::experiment_of_paper(Group::F, Level::W, checks::tpch_plans, plans_changed),
    Rule::trial(Group::F, Level::W, checks::tpch_refreshed, |trial| {
        let facts = tpch_facts(trial)?;
        let pairs = facts.load.as_ref()?.refresh_pairs;
        let is_compared = facts.queries.iter().any(|query| query.answer.is_some());
        (pairs > 0 && is_compared).then(|| say!(pairs_applied_since_the_load, n = pairs))
    }),
    Rule::trial(Group::F, Level::W, checks::tpch_power, power_deviates),
    Rule::trial(Group::F, Level::W, checks::tpch_streams, streams_deviate),
    Rule::trial(Group::F, Level::I, checks::tpch_cache_unknown, |trial| {
        let cache = &tpch_facts(trial).filter(|facts| !facts.queries.is_empty())?.cache;
        (!matches!(cache.verdict, Some(CheckVerdict::Passed | CheckVerdict::Failed))).then(|| {
            match cache.state.as_str() {
                "" => say!(unknown),
                state => say!(state_not_proven, state = words::cache(state)),
            }
        })
    }),
];

/// The queries of a trial of which one execution is such.
fn matching_queries(trial: &Trial, matches: impl Fn(&QueryFacts) -> bool) -> Option<Message> {
    let matching = tpch_facts(trial)?.queries.iter().filter(|query| matches(query));
    let numbers: BTreeSet<u8> = matching.map(|query| query.query).collect();
    match numbers.len() {
        0 => None,
        22 => Some(say!(all_22_queries)),
        _ => Some(queries(numbers)),
    }
}

fn degree_not_reached(trial: &Trial) -> Option<Message> {
    let degree = &tpch_facts(trial)?.degree;
    let requested = degree.asked;
    let text = match degree.got {
        _ if requested > 0 && degree.rule.is_empty() => {
            say!(degree_unsupported, asked = requested.to_string())
        }
        Some(got) if requested > 0 && got < requested => {
            say!(asked_asked_got_got, asked = requested.to_string(), got = got.to_string())
        }
        // What counts as off is the product's own: one worker on some, none on others.
        Some(got) if requested == 0 && got > 0 => return degree.remark.clone(),
        _ => return None,
    };
    // The remark says more than the numbers do.
    Some(degree.remark.clone().unwrap_or(text))
}

/// Content of the caches at the experiment's points, if they differ: `cold: a; warm: b`.
fn caches_differ(evidence: &Evidence, experiment: &Experiment) -> Option<Message> {
    let columns = columns(experiment, &tpch_trials(evidence, experiment));
    let states = columns
        .iter()
        .map(|column| (words::proven_cache(&column.trials[0].1.cache), words::at_degree(column)));
    let by_state = grouped(states);
    let states = by_state
        .iter()
        .map(|(state, places)| say!(name_values, name = state, values = Message::list(places)));
    let states = parts(states).filter(|_| by_state.len() > 1);
    states.map(|states| say!(caches_states, states))
}

fn unlike_facts(evidence: &Evidence, experiment: &Experiment) -> Option<Message> {
    let trials = tpch_trials(evidence, experiment);
    type FactText = fn(&TpchFacts, &Trial) -> Message;
    let values: [(Message, FactText); 4] = [
        (say!(scale_factor), |facts, _| format::plain(facts.scale).into()),
        (say!(streams), |_, trial| trial.summary.workers.to_string().into()),
        (say!(parameters), |facts, _| facts.parameters.clone()),
        (say!(bound_in_s), |facts, _| match facts.timeout_s {
            Some(bound) => format::plain(bound).into(),
            None => say!(none),
        }),
    ];
    parts(values.into_iter().filter_map(|(name, value)| {
        let values = trials.iter();
        differing_values(
            Some(name),
            values.map(|(trial, facts)| (trial.target.as_str(), value(facts, trial))),
        )
    }))
}

fn loads_differ(evidence: &Evidence, experiment: &Experiment) -> Option<Message> {
    let trials = tpch_trials(evidence, experiment);
    differing_values(
        None,
        trials.iter().map(|(trial, facts)| (trial.target.as_str(), describe_load(facts))),
    )
}

/// The steps of a load that gave the tables their keys, indexes and statistics.
fn describe_load(facts: &TpchFacts) -> Message {
    const STEPS: [&str; 4] = ["primary-keys", "foreign-keys", "indexes", "analyze"];
    let Some(load) = &facts.load else { return say!(with_an_unknown_load) };
    let executed = STEPS
        .iter()
        .filter(|step| load.steps.iter().any(|known| known.name.split('/').next() == Some(**step)));
    let names: Vec<Message> = executed.map(|step| words::step(step)).collect();
    if names.is_empty() {
        say!(with_none_of_them)
    } else {
        say!(with_steps, steps = Message::list(&names))
    }
}

fn plans_changed(evidence: &Evidence, experiment: &Experiment) -> Option<Message> {
    let columns = columns(experiment, &tpch_trials(evidence, experiment));
    parts(columns.iter().filter_map(|column| {
        let (changed, target) = (column.changed_plans(), words::at_degree(column));
        (!changed.is_empty()).then(|| say!(queries_on_target, queries = queries(changed), target))
    }))
}

fn power_deviates(trial: &Trial) -> Option<Message> {
    let facts = tpch_facts(trial).filter(|facts| facts.test == "power")?;
    let order: Vec<u8> = facts.queries.iter().map(|query| query.query).collect();
    let is_begun = parameters::order(0).starts_with(&order);
    let first_s = facts.queries.first().map_or(f64::INFINITY, |query| query.began_s);
    let last_s = facts.queries.last().map_or(0.0, |query| query.began_s);
    let has_first = facts.refreshes.iter().any(|r| r.function == 1 && r.began_s <= first_s);
    let has_second = facts.refreshes.iter().any(|r| r.function == 2 && r.began_s >= last_s);
    let deviations = [
        (!is_begun).then(|| say!(the_queries_ran_in_another_order)),
        (!has_first).then(|| say!(refresh_function_1_did_not_run)),
        (!has_second).then(|| say!(refresh_function_2_did_not_run)),
    ];
    parts(deviations.into_iter().flatten())
}

fn streams_deviate(trial: &Trial) -> Option<Message> {
    let facts = tpch_facts(trial).filter(|facts| facts.test == "throughput")?;
    let (streams, minimum) = (trial.summary.workers, TpchTest::least_streams(facts.scale));
    let pairs = facts.refreshes.iter().filter(|refresh| refresh.function == 2).count();
    let in_words = say!(n_streams, n = streams);
    let deviations = [
        (streams < minimum).then(|| {
            say!(streams_instead_of_least, streams = &in_words, least = minimum.to_string())
        }),
        (pairs < streams as usize).then(|| {
            let pairs = say!(n_pairs, n = pairs);
            say!(refresh_pairs_of_streams, pairs, streams = &in_words)
        }),
    ];
    parts(deviations.into_iter().flatten())
}
