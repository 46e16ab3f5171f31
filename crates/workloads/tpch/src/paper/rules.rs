//! The checks that only TPC-H needs.

use super::tables::{Column, TpchTable, published};
use super::words::{self, most_of, queries};
use super::{QUERIES, facts, tables_of, trials_of};
use crate::check::KNOWN_SCALES;
use crate::facts::{QueryFacts, QueryOutcome, TpchFacts};
use crate::messages::checks;
use crate::parameters;
use crate::run::TpchTest;
use dyno_facts::{CheckVerdict, Message, say};
use dyno_report::format::{self, unique};
use dyno_report::{Evidence, Experiment, Group, Level, Rule, Trial, parts, unlike};

/// Below this a query's time is that of the round trip and of planning rather than of executing.
const SHORT_S: f64 = 0.01;

/// In the order of their weight.
pub(super) const RULES: &[Rule] = &[
    Rule::trial(Group::F, Level::E, checks::tpch_answers, |trial| {
        let is_known = KNOWN_SCALES.contains(&facts(trial)?.scale);
        of_queries(trial, |query| has_verdict(query, CheckVerdict::Failed)).map(|queries| {
            if is_known {
                say!(queries_wrong, queries = queries)
            } else {
                say!(queries_differ, queries = queries)
            }
        })
    }),
    Rule::trial(Group::F, Level::E, checks::tpch_failed, |trial| {
        let is_failed = |query: &QueryFacts| matches!(query.outcome, QueryOutcome::Failed(_));
        let refreshes = &facts(trial)?.refreshes;
        let refreshes = refreshes.iter().filter(|r| matches!(r.outcome, QueryOutcome::Failed(_)));
        let refreshes: Vec<Message> = refreshes
            .map(|r| say!(rf_of_pair, function = r.function.to_string(), pair = r.pair.to_string()))
            .collect();
        parts(of_queries(trial, is_failed).into_iter().chain(refreshes))
    }),
    Rule::trial(Group::F, Level::W, checks::tpch_not_compared, |trial| {
        of_queries(trial, |query| has_verdict(query, CheckVerdict::NotMade))
    }),
    Rule::trial(Group::F, Level::W, checks::tpch_timeouts, |trial| {
        let found = of_queries(trial, |query| query.outcome == QueryOutcome::TimedOut)?;
        Some(match facts(trial)?.timeout_s {
            Some(bound) => {
                say!(queries_after_s_s, queries = found, s = format::plain(bound))
            }
            None => found,
        })
    }),
    Rule::trial(Group::F, Level::W, checks::tpch_degree, degree),
    Rule::trial(Group::F, Level::W, checks::tpch_cache_failed, |trial| {
        let cache = &facts(trial)?.cache;
        (cache.verdict == Some(CheckVerdict::Failed)).then(|| {
            let (state, evidence) =
                (words::cache(&cache.state), Message::sentences(&cache.evidence));
            say!(not_state_evidence, state = state, evidence = evidence)
        })
    }),
    Rule::experiment_of_paper(Group::F, Level::W, checks::tpch_cache_mixed, caches_differ),
    Rule::experiment_of_paper(Group::F, Level::E, checks::tpch_unlike, unlike_facts),
    Rule::experiment_of_paper(Group::F, Level::W, checks::tpch_load_differs, loads_differ),
    Rule::experiment_of_paper(Group::F, Level::W, checks::tpch_plans, plans_changed),
    Rule::experiment_of_paper(Group::F, Level::W, checks::tpch_once, |evidence, experiment| {
        let trials = trials_of(evidence, experiment);
        let once = experiment.points.iter().filter(|point| point.repeats == 1);
        let columns = once.map(|point| (&point.target, Column::new(0, point, &trials)));
        let once: Vec<Message> = columns
            .filter(|(_, column)| !column.trials.is_empty())
            .map(|(target, column)| words::at_degree(target, column.degree))
            .collect();
        (!once.is_empty()).then(|| say!(one_trial_points, points = Message::list(&unique(once))))
    }),
    Rule::trial(Group::F, Level::W, checks::tpch_refreshed, |trial| {
        let facts = facts(trial)?;
        let pairs = facts.load.as_ref()?.refresh_pairs;
        let is_compared = facts.queries.iter().any(|query| query.answer.is_some());
        (pairs > 0 && is_compared).then(|| say!(pairs_applied_since_the_load, n = pairs))
    }),
    Rule::trial(Group::F, Level::W, checks::tpch_power, power),
    Rule::trial(Group::F, Level::W, checks::tpch_streams, streams),
    Rule::experiment_of_paper(Group::F, Level::I, checks::tpch_unlike_published, unlike_published),
    Rule::experiment_of_paper(Group::F, Level::I, checks::tpch_plans_by_degree, plans_by_degree),
    Rule::trial(Group::F, Level::I, checks::tpch_degree_unknown, |trial| {
        let degree = &facts(trial)?.degree;
        (degree.asked > 0 && !degree.rule.is_empty() && degree.got.is_none())
            .then(|| say!(asked_got_an_unknown_number, n = degree.asked.to_string()))
    }),
    Rule::trial(Group::F, Level::I, checks::tpch_cache_unknown, |trial| {
        let cache = &facts(trial).filter(|facts| !facts.queries.is_empty())?.cache;
        (!matches!(cache.verdict, Some(CheckVerdict::Passed | CheckVerdict::Failed))).then(|| {
            match cache.state.as_str() {
                "" => say!(unknown),
                state => say!(state_not_proven, state = words::cache(state)),
            }
        })
    }),
    Rule::trial(Group::F, Level::I, checks::tpch_short, |trial| {
        of_queries(trial, |query| {
            query.outcome == QueryOutcome::Answered && query.seconds < SHORT_S
        })
    }),
];

fn has_verdict(query: &QueryFacts, wanted: CheckVerdict) -> bool {
    let verdict = query.answer.as_ref().map_or(CheckVerdict::NotMade, |answer| answer.verdict);
    query.outcome == QueryOutcome::Answered && verdict == wanted
}

/// The queries of a trial of which one execution is such.
fn of_queries(trial: &Trial, is_such: impl Fn(&QueryFacts) -> bool) -> Option<Message> {
    let found = &facts(trial)?.queries;
    let numbers: Vec<u8> = (1..=QUERIES)
        .filter(|query| found.iter().any(|facts| facts.query == *query && is_such(facts)))
        .collect();
    (!numbers.is_empty()).then(|| most_of(&numbers))
}

fn degree(trial: &Trial) -> Option<Message> {
    let degree = &facts(trial)?.degree;
    let asked = degree.asked;
    // The remark says more than the numbers do.
    let remark = || degree.remark.clone();
    let number = |number: u32| number.to_string();
    match degree.got {
        _ if asked > 0 && degree.rule.is_empty() => Some(
            remark().unwrap_or_else(|| say!(asked_and_the_product_has_no, asked = number(asked))),
        ),
        Some(got) if asked > 0 && got < asked => Some(remark().unwrap_or_else(|| {
            say!(asked_asked_got_got, asked = number(asked), got = number(got))
        })),
        // What counts as off is the product's own: one worker on some, none on others.
        Some(got) if asked == 0 && got > 0 => remark(),
        _ => None,
    }
}

/// What the caches held at the experiment's points, where they differ: `cold: a; warm: b`.
fn caches_differ(evidence: &Evidence, experiment: &Experiment) -> Option<Message> {
    let trials = trials_of(evidence, experiment);
    let mut by_state: Vec<(Message, Vec<Message>)> = Vec::new();
    for point in &experiment.points {
        let column = Column::new(0, point, &trials);
        let Some(facts) = column.facts().next() else { continue };
        let state = words::proven_cache(&facts.cache);
        let place = words::at_degree(&point.target, column.degree);
        match by_state.iter_mut().find(|(known, _)| *known == state) {
            Some((_, places)) => places.push(place),
            None => by_state.push((state, vec![place])),
        }
    }
    let differ = by_state.len() > 1;
    let places = by_state
        .iter()
        .map(|(state, places)| say!(name_values, name = state, values = Message::list(places)));
    parts(places).filter(|_| differ).map(|states| say!(caches_states, states = states))
}

fn unlike_facts(evidence: &Evidence, experiment: &Experiment) -> Option<Message> {
    type Alike = (fn() -> Message, fn(&TpchFacts, &Trial) -> Message);
    const VALUES: [Alike; 4] = [
        (|| say!(scale_factor), |facts, _| Message::verbatim(format::plain(facts.scale))),
        (|| say!(streams), |_, trial| Message::verbatim(trial.summary.workers.to_string())),
        (|| say!(parameters), |facts, _| facts.parameters.clone()),
        (
            || say!(bound_in_s),
            |facts, _| match facts.timeout_s {
                Some(bound) => Message::verbatim(format::plain(bound)),
                None => say!(none),
            },
        ),
    ];
    let trials = trials_of(evidence, experiment);
    let of = |value: fn(&TpchFacts, &Trial) -> Message| {
        let trials = trials.iter();
        trials.filter_map(move |own| Some((own.target.as_str(), value(facts(own)?, own))))
    };
    parts(VALUES.iter().filter_map(|(name, value)| unlike(Some(name()), of(*value))))
}

/// The steps of a load that give a table its keys, indexes and statistics.
fn loads_differ(evidence: &Evidence, experiment: &Experiment) -> Option<Message> {
    const STEPS: [&str; 4] = ["primary-keys", "foreign-keys", "indexes", "analyze"];
    let steps = |trial: &Trial| {
        let load = facts(trial).and_then(|facts| facts.load.as_ref());
        let has = |step: &&&str| {
            load.is_some_and(|load| {
                load.steps.iter().any(|known| known.name.split('/').next() == Some(**step))
            })
        };
        let found: Vec<Message> = STEPS.iter().filter(has).map(|step| words::step(step)).collect();
        match (load, found.is_empty()) {
            (None, _) => say!(with_an_unknown_load),
            (Some(_), true) => say!(with_none_of_them),
            (Some(_), false) => say!(with_steps, steps = Message::list(&found)),
        }
    };
    let trials = trials_of(evidence, experiment);
    unlike(None, trials.iter().map(|trial| (trial.target.as_str(), steps(trial))))
}

fn plans_changed(evidence: &Evidence, experiment: &Experiment) -> Option<Message> {
    let changed = experiment.points.iter().enumerate().filter_map(|(place, point)| {
        let column = Column::new(place, point, &evidence.trials_of(point));
        let numbers = column.changed_plans();
        (!numbers.is_empty()).then(|| {
            let target = words::at_degree(&point.target, column.degree);
            say!(queries_on_target, queries = queries(&numbers), target = target)
        })
    });
    parts(changed)
}

fn plans_by_degree(evidence: &Evidence, experiment: &Experiment) -> Option<Message> {
    let of_table = |table: &TpchTable<'_>| {
        let differs = |query: &u8| {
            (1..table.columns.len()).any(|place| table.differs_from_first(place, *query))
        };
        let numbers: Vec<u8> = (1..=QUERIES).filter(differs).collect();
        (!numbers.is_empty())
            .then(|| say!(queries_on_target, queries = most_of(&numbers), target = table.target))
    };
    parts(tables_of(evidence, experiment).iter().filter_map(of_table))
}

fn power(trial: &Trial) -> Option<Message> {
    let facts = facts(trial).filter(|facts| facts.test == "power")?;
    let order: Vec<u8> = facts.queries.iter().map(|query| query.query).collect();
    let is_begun = parameters::order(0).starts_with(&order);
    let first_s = facts.queries.first().map_or(f64::INFINITY, |query| query.began_s);
    let last_s = facts.queries.last().map_or(0.0, |query| query.began_s);
    let ran = |function: u8, is_there: &dyn Fn(f64) -> bool| {
        facts.refreshes.iter().any(|r| r.function == function && is_there(r.began_s))
    };
    let found = [
        (!is_begun).then(|| say!(the_queries_ran_in_another_order)),
        (!ran(1, &|began_s| began_s <= first_s)).then(|| say!(refresh_function_1_did_not_run)),
        (!ran(2, &|began_s| began_s >= last_s)).then(|| say!(refresh_function_2_did_not_run)),
    ];
    parts(found.into_iter().flatten())
}

fn streams(trial: &Trial) -> Option<Message> {
    let facts = facts(trial).filter(|facts| facts.test == "throughput")?;
    let (streams, least) = (trial.summary.workers, TpchTest::least_streams(facts.scale));
    let pairs = facts.refreshes.iter().filter(|refresh| refresh.function == 2).count();
    let in_words = say!(n_streams, n = streams);
    let found = [
        (streams < least).then(|| {
            say!(streams_instead_of_least, streams = &in_words, least = least.to_string())
        }),
        (pairs < streams as usize).then(|| {
            let pairs = say!(n_pairs, n = pairs);
            say!(of_refresh_functions_for, pairs = pairs, streams = &in_words)
        }),
    ];
    parts(found.into_iter().flatten())
}

fn unlike_published(evidence: &Evidence, experiment: &Experiment) -> Option<Message> {
    let published = published(experiment);
    let published = published.first()?;
    let of_table = |table: &TpchTable<'_>| {
        let here = table.setup.scale;
        let scale = published.scale.filter(|there| *there != here).map(|there| {
            say!(scale_factor_instead_of, here = format::plain(here), there = format::plain(there))
        });
        let measured: Vec<u32> = table.columns.iter().map(|column| column.degree).collect();
        let degrees = (measured != published.degrees).then(|| {
            say!(
                degrees_instead_of,
                here = words::numbers(&measured),
                there = words::numbers(&published.degrees)
            )
        });
        parts([scale, degrees].into_iter().flatten())
            .map(|told| say!(name_values, name = table.target, values = told))
    };
    parts(tables_of(evidence, experiment).iter().filter_map(of_table))
}
