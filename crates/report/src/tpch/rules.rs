//! The checks that only TPC-H needs.

use super::words::{self, most_of, queries};
use super::{QUERIES, TpchSetup, facts, plans};
use crate::evidence::points::chosen;
use crate::evidence::{Experiment, Finding, Group, Level, Paper, Spot, Trial};
use crate::findings::checks::{Find, Rule};
use crate::format::{self, unique};
use crate::messages;
use crate::text::Message;
use crate::tpcc::{named, target_has};
use dyno_facts::{Verdict, say};
use dyno_tpch::facts::{QueryFacts, QueryOutcome, TpchFacts};

/// Below this a query's time is that of the round trip and of planning rather than of executing.
const SHORT_S: f64 = 0.01;

/// In the order of their weight.
pub(crate) const RULES: &[Rule] = &[
    Rule {
        id: "tpch-answers",
        group: Group::F,
        level: Level::E,
        rule: messages::tpch_answers_rule,
        meaning: messages::tpch_answers_meaning,
        advice: messages::tpch_answers_advice,
        find: Find::Trial(|trial| {
            of_queries(trial, |query| has_verdict(query, Verdict::Failed))
                .map(|queries| say!(queries_wrong, queries = queries))
        }),
    },
    Rule {
        id: "tpch-failed",
        group: Group::F,
        level: Level::E,
        rule: messages::tpch_failed_rule,
        meaning: messages::tpch_failed_meaning,
        advice: messages::tpch_failed_advice,
        find: Find::Trial(|trial| {
            let is_failed = |query: &QueryFacts| matches!(query.outcome, QueryOutcome::Failed(_));
            let refreshes = &facts(trial)?.refreshes;
            let refreshes =
                refreshes.iter().filter(|r| matches!(r.outcome, QueryOutcome::Failed(_)));
            let refreshes: Vec<Message> = refreshes
                .map(|r| {
                    say!(rf_of_pair, function = r.function.to_string(), pair = r.pair.to_string())
                })
                .collect();
            some(of_queries(trial, is_failed).into_iter().chain(refreshes).collect())
        }),
    },
    Rule {
        id: "tpch-not-compared",
        group: Group::F,
        level: Level::W,
        rule: messages::tpch_not_compared_rule,
        meaning: messages::tpch_not_compared_meaning,
        advice: messages::tpch_not_compared_advice,
        find: Find::Trial(|trial| of_queries(trial, |query| has_verdict(query, Verdict::NotMade))),
    },
    Rule {
        id: "tpch-timeouts",
        group: Group::F,
        level: Level::W,
        rule: messages::tpch_timeouts_rule,
        meaning: messages::tpch_timeouts_meaning,
        advice: messages::tpch_timeouts_advice,
        find: Find::Trial(|trial| {
            let found = of_queries(trial, |query| query.outcome == QueryOutcome::TimedOut)?;
            Some(match facts(trial)?.timeout_s {
                Some(bound) => {
                    say!(queries_after_s_s, queries = found, s = format::plain(bound))
                }
                None => found,
            })
        }),
    },
    Rule {
        id: "tpch-degree",
        group: Group::F,
        level: Level::W,
        rule: messages::tpch_degree_rule,
        meaning: messages::tpch_degree_meaning,
        advice: messages::tpch_degree_advice,
        find: Find::Trial(degree),
    },
    Rule {
        id: "tpch-cache-failed",
        group: Group::F,
        level: Level::W,
        rule: messages::tpch_cache_failed_rule,
        meaning: messages::tpch_cache_failed_meaning,
        advice: messages::tpch_cache_failed_advice,
        find: Find::Trial(|trial| {
            let cache = &facts(trial)?.cache;
            (cache.verdict == Some(Verdict::Failed)).then(|| {
                let told: Vec<Message> = cache.evidence.to_vec();
                say!(
                    not_state_evidence,
                    state = words::cache(&cache.state),
                    evidence = Message::sentences(&told)
                )
            })
        }),
    },
    Rule {
        id: "tpch-cache-mixed",
        group: Group::F,
        level: Level::W,
        rule: messages::tpch_cache_mixed_rule,
        meaning: messages::tpch_cache_mixed_meaning,
        advice: messages::tpch_cache_mixed_advice,
        find: Find::Experiment(|experiment| {
            differing(experiment, &|setup| words::cache(&setup.cache))
                .map(|states| say!(caches_states, states = states))
        }),
    },
    Rule {
        id: "tpch-unlike",
        group: Group::F,
        level: Level::E,
        rule: messages::tpch_unlike_rule,
        meaning: messages::tpch_unlike_meaning,
        advice: messages::tpch_unlike_advice,
        find: Find::Paper(unlike),
    },
    Rule {
        id: "tpch-load-differs",
        group: Group::F,
        level: Level::W,
        rule: messages::tpch_load_differs_rule,
        meaning: messages::tpch_load_differs_meaning,
        advice: messages::tpch_load_differs_advice,
        find: Find::Paper(loads_differ),
    },
    Rule {
        id: "tpch-plans",
        group: Group::F,
        level: Level::W,
        rule: messages::tpch_plans_rule,
        meaning: messages::tpch_plans_meaning,
        advice: messages::tpch_plans_advice,
        find: Find::Paper(plans_changed),
    },
    Rule {
        id: "tpch-once",
        group: Group::F,
        level: Level::W,
        rule: messages::tpch_once_rule,
        meaning: messages::tpch_once_meaning,
        advice: messages::tpch_once_advice,
        find: Find::Experiment(|experiment| {
            let own = experiment.points.iter().filter(|point| point.tpch.is_some());
            let once: Vec<Message> = own
                .filter(|point| point.repeats == 1)
                .filter_map(|point| {
                    Some(words::at_degree(&point.target, point.tpch.as_ref()?.degree))
                })
                .collect();
            (!once.is_empty())
                .then(|| say!(one_trial_points, points = Message::list(&unique(once))))
        }),
    },
    Rule {
        id: "tpch-refreshed",
        group: Group::F,
        level: Level::W,
        rule: messages::tpch_refreshed_rule,
        meaning: messages::tpch_refreshed_meaning,
        advice: messages::tpch_refreshed_advice,
        find: Find::Trial(|trial| {
            let facts = facts(trial)?;
            let pairs = facts.load.as_ref()?.refresh_pairs;
            let is_compared = facts.queries.iter().any(|query| query.answer.is_some());
            (pairs > 0 && is_compared).then(|| say!(pairs_applied_since_the_load, n = pairs))
        }),
    },
    Rule {
        id: "tpch-power",
        group: Group::F,
        level: Level::W,
        rule: messages::tpch_power_rule,
        meaning: messages::tpch_power_meaning,
        advice: messages::tpch_power_advice,
        find: Find::Trial(power),
    },
    Rule {
        id: "tpch-streams",
        group: Group::F,
        level: Level::W,
        rule: messages::tpch_streams_rule,
        meaning: messages::tpch_streams_meaning,
        advice: messages::tpch_streams_advice,
        find: Find::Trial(streams),
    },
    Rule {
        id: "tpch-unlike-published",
        group: Group::F,
        level: Level::I,
        rule: messages::tpch_unlike_published_rule,
        meaning: messages::tpch_unlike_published_meaning,
        advice: messages::tpch_unlike_published_advice,
        find: Find::Experiment(unlike_published),
    },
    Rule {
        id: "tpch-plans-by-degree",
        group: Group::F,
        level: Level::I,
        rule: messages::tpch_plans_by_degree_rule,
        meaning: messages::tpch_plans_by_degree_meaning,
        advice: messages::tpch_plans_by_degree_advice,
        find: Find::Experiment(plans_by_degree),
    },
    Rule {
        id: "tpch-degree-unknown",
        group: Group::F,
        level: Level::I,
        rule: messages::tpch_degree_unknown_rule,
        meaning: messages::tpch_degree_unknown_meaning,
        advice: messages::tpch_degree_unknown_advice,
        find: Find::Trial(|trial| {
            let degree = &facts(trial)?.degree;
            (degree.asked > 0 && !degree.rule.is_empty() && degree.got.is_none())
                .then(|| say!(asked_got_an_unknown_number, n = degree.asked.to_string()))
        }),
    },
    Rule {
        id: "tpch-cache-unknown",
        group: Group::F,
        level: Level::I,
        rule: messages::tpch_cache_unknown_rule,
        meaning: messages::tpch_cache_unknown_meaning,
        advice: messages::tpch_cache_unknown_advice,
        find: Find::Trial(|trial| {
            let cache = &facts(trial).filter(|facts| !facts.queries.is_empty())?.cache;
            (!matches!(cache.verdict, Some(Verdict::Passed | Verdict::Failed))).then(|| match cache
                .state
                .as_str()
            {
                "" => words::unknown(),
                state => say!(state_not_proven, state = words::cache(state)),
            })
        }),
    },
    Rule {
        id: "tpch-short",
        group: Group::F,
        level: Level::I,
        rule: messages::tpch_short_rule,
        meaning: messages::tpch_short_meaning,
        advice: messages::tpch_short_advice,
        find: Find::Trial(|trial| {
            of_queries(trial, |query| {
                query.outcome == QueryOutcome::Answered && query.seconds < SHORT_S
            })
        }),
    },
];

fn has_verdict(query: &QueryFacts, wanted: Verdict) -> bool {
    let verdict = query.answer.as_ref().map_or(Verdict::NotMade, |answer| answer.verdict);
    query.outcome == QueryOutcome::Answered && verdict == wanted
}

fn some(words: Vec<Message>) -> Option<Message> {
    (!words.is_empty()).then(|| Message::joined(&words, "; ", "；"))
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

/// Values of the experiment's points, where there are several: `cold: a; warm: b`.
fn differing(experiment: &Experiment, of: &dyn Fn(&TpchSetup) -> Message) -> Option<Message> {
    let mut by_value: Vec<(Message, Vec<Message>)> = Vec::new();
    for point in &experiment.points {
        let Some(setup) = &point.tpch else { continue };
        let (value, place) = (of(setup), words::at_degree(&point.target, setup.degree));
        match by_value.iter_mut().find(|(known, _)| *known == value) {
            Some((_, places)) => places.push(place),
            None => by_value.push((value, vec![place])),
        }
    }
    let is_one = by_value.len() < 2;
    let told = by_value.into_iter().map(|(value, places)| named(value, Message::list(&places)));
    some(told.collect()).filter(|_| !is_one)
}

/// What is found in each TPC-H experiment of a paper.
fn by_experiment(paper: &Paper, find: impl Fn(&[&Trial]) -> Option<Message>) -> Vec<Finding> {
    let of_one = |experiment: &Experiment| {
        let is_own =
            |trial: &&Trial| trial.summary.experiment == experiment.name && facts(trial).is_some();
        let own: Vec<&Trial> = paper.trials.iter().filter(is_own).collect();
        let place = Spot::experiment(&experiment.name);
        find(&own).map(|value| Finding { place, value })
    };
    paper.experiments.iter().filter_map(of_one).collect()
}

/// What the targets of some trials have, where it is not the same of all: `a 1, b 0.1`.
fn by_target(trials: &[&Trial], of: &dyn Fn(&Trial) -> Message) -> Option<Message> {
    let mut targets: Vec<(&str, Vec<Message>)> = Vec::new();
    for trial in trials {
        let value = of(trial);
        match targets.iter_mut().find(|(target, _)| *target == trial.target) {
            Some((_, values)) if values.contains(&value) => {}
            Some((_, values)) => values.push(value),
            None => targets.push((&trial.target, vec![value])),
        }
    }
    let first = targets.first().map(|(_, values)| values.clone())?;
    let told: Vec<Message> =
        targets.iter().map(|(target, values)| target_has(target, values)).collect();
    let is_same = targets.iter().all(|(_, values)| *values == first);
    (!is_same).then(|| Message::joined(&told, ", ", "，"))
}

fn unlike(paper: &Paper) -> Vec<Finding> {
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
    by_experiment(paper, |trials| {
        let difference = |(name, of): &Alike| {
            let of =
                |trial: &Trial| facts(trial).map_or(Message::default(), |facts| of(facts, trial));
            by_target(trials, &of).map(|told| named(name(), told))
        };
        some(VALUES.iter().filter_map(difference).collect())
    })
}

/// The steps of a load that give a table its keys, indexes and statistics.
fn loads_differ(paper: &Paper) -> Vec<Finding> {
    const STEPS: [&str; 4] = ["primary-keys", "foreign-keys", "indexes", "analyze"];
    let steps = |trial: &Trial| {
        let load = facts(trial).and_then(|facts| facts.load.as_ref());
        let has = |step: &&&str| {
            load.is_some_and(|load| {
                load.steps.iter().any(|s| super::load::step_of(&s.name) == **step)
            })
        };
        let found: Vec<Message> = STEPS.iter().filter(has).map(|step| words::step(step)).collect();
        match (load, found.is_empty()) {
            (None, _) => say!(with_an_unknown_load),
            (Some(_), true) => say!(with_none_of_them),
            (Some(_), false) => say!(with_steps, steps = Message::list(&found)),
        }
    };
    by_experiment(paper, |trials| by_target(trials, &steps))
}

fn plans_changed(paper: &Paper) -> Vec<Finding> {
    by_experiment(paper, |trials| {
        let changed = crate::evidence::points::groups(trials).into_iter().filter_map(|group| {
            let (_, own) = chosen(&group)?;
            let numbers: Vec<u8> =
                (1..=QUERIES).filter(|query| plans::is_changed(*query, &own)).collect();
            let setup = TpchSetup::of(&own[0].summary)?;
            (!numbers.is_empty())
                .then(|| on(queries(&numbers), words::at_degree(&own[0].target, setup.degree)))
        });
        some(changed.collect())
    })
}

/// `Q5 on main`.
fn on(queries: Message, target: Message) -> Message {
    say!(queries_on_target, queries = queries, target = target)
}

fn plans_by_degree(experiment: &Experiment) -> Option<Message> {
    let section = experiment.tpch.as_ref()?;
    let of_table = |table: &super::TpchTable| {
        let differs = |row: &&super::PlanRow| row.cells.iter().any(|cell| cell.differs_from_first);
        let numbers: Vec<u8> = table.plans.iter().filter(differs).map(|row| row.query).collect();
        (!numbers.is_empty()).then(|| on(most_of(&numbers), Message::from(&table.target)))
    };
    some(section.tables.iter().filter_map(of_table).collect())
}

fn power(trial: &Trial) -> Option<Message> {
    let facts = facts(trial).filter(|facts| facts.test == "power")?;
    let order: Vec<u8> = facts.queries.iter().map(|query| query.query).collect();
    let is_begun = order.len() <= words::POWER_ORDER.len()
        && order.iter().zip(words::POWER_ORDER).all(|(found, wanted)| *found == wanted);
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
    some(found.into_iter().flatten().collect())
}

fn streams(trial: &Trial) -> Option<Message> {
    let facts = facts(trial).filter(|facts| facts.test == "throughput")?;
    let (streams, least) = (trial.summary.workers, words::least_streams(facts.scale));
    let pairs = facts.refreshes.iter().filter(|refresh| refresh.function == 2).count();
    let found = [
        (streams < least).then(|| {
            say!(
                streams_instead_of_least,
                streams = words::count_streams(streams),
                least = least.to_string()
            )
        }),
        (pairs < streams as usize).then(|| {
            say!(
                of_refresh_functions_for,
                pairs = say!(n_pairs, n = pairs),
                streams = words::count_streams(streams)
            )
        }),
    ];
    some(found.into_iter().flatten().collect())
}

fn unlike_published(experiment: &Experiment) -> Option<Message> {
    let section = experiment.tpch.as_ref()?;
    let of_table = |table: &super::TpchTable| {
        let published = section.published.first()?;
        let here = table.setup.scale;
        let scale = published.scale.filter(|there| *there != here).map(|there| {
            say!(scale_factor_instead_of, here = format::plain(here), there = format::plain(there))
        });
        let measured: Vec<u32> = table.degrees.iter().map(|degree| degree.degree).collect();
        let degrees = (measured != published.degrees).then(|| {
            say!(
                degrees_instead_of,
                here = words::numbers(&measured),
                there = words::numbers(&published.degrees)
            )
        });
        some([scale, degrees].into_iter().flatten().collect())
            .map(|told| named(Message::from(&table.target), told))
    };
    some(section.tables.iter().filter_map(of_table).collect())
}
