//! The checks that only TPC-H needs.

use super::words::{self, most_of, queries};
use super::{QUERIES, TpchSetup, facts, plans};
use crate::checks::{Find, Rule};
use crate::format::{self, unique};
use crate::model::{Experiment, Finding, Group, Level, Paper, Spot, Trial};
use crate::points::chosen;
use crate::say;
use crate::text::{Text, stored};
use crate::tpcc::{named, target_has};
use dyno_measure::{QueryFacts, QueryOutcome, TpchFacts, Verdict};

/// Below this a query's time is that of the round trip and of planning rather than of executing.
const SHORT_S: f64 = 0.01;

/// In the order of their weight.
pub(crate) const RULES: &[Rule] = &[
    Rule {
        id: "tpch-answers",
        group: Group::F,
        level: Level::E,
        rule: "Every answer of a TPC-H query equals the one that it is held against, row by row.",
        meaning: "A wrong answer has no speed: times of this query, and sums with it, say nothing.",
        advice: "Compare the rows that differ with the reference. If the server is right, report the reference; if not, report the server's error and leave its times out.",
        find: Find::Trial(|trial| {
            of_queries(trial, |query| has_verdict(query, Verdict::Failed))
                .map(|queries| say!("{queries} wrong", queries = queries))
        }),
    },
    Rule {
        id: "tpch-failed",
        group: Group::F,
        level: Level::E,
        rule: "Every TPC-H query ends with an answer or at its bound.",
        meaning: "A query that failed has no time; a pass without it has no total and no metric.",
        advice: "Read the error, give the server what it lacks (memory, temporary space, a longer bound) and run the test again.",
        find: Find::Trial(|trial| {
            let is_failed = |query: &QueryFacts| matches!(query.outcome, QueryOutcome::Failed(_));
            let refreshes = &facts(trial)?.refreshes;
            let refreshes =
                refreshes.iter().filter(|r| matches!(r.outcome, QueryOutcome::Failed(_)));
            let refreshes: Vec<Text> = refreshes
                .map(|r| {
                    say!(
                        "RF{function} of pair {pair}",
                        function = r.function.to_string(),
                        pair = r.pair.to_string()
                    )
                })
                .collect();
            some(of_queries(trial, is_failed).into_iter().chain(refreshes).collect())
        }),
    },
    Rule {
        id: "tpch-not-compared",
        group: Group::F,
        level: Level::W,
        rule: "Every answer of a TPC-H query is held against another one.",
        meaning: "Nobody knows whether these answers are right.",
        advice: "Use a scale factor and parameters for which there are reference answers, or let another product's answers stand against these.",
        find: Find::Trial(|trial| of_queries(trial, |query| has_verdict(query, Verdict::NotMade))),
    },
    Rule {
        id: "tpch-timeouts",
        group: Group::F,
        level: Level::W,
        rule: "Every TPC-H query ends before it is given up.",
        meaning: "The bound counts as the time of these queries, which is a penalty too small: totals, means and speed-ups with them are bounds and no measurements.",
        advice: "Raise the bound (option timeout_s) until all queries end, or say beside every sum that it is a lower bound.",
        find: Find::Trial(|trial| {
            let found = of_queries(trial, |query| query.outcome == QueryOutcome::TimedOut)?;
            Some(match facts(trial)?.timeout_s {
                Some(bound) => {
                    say!("{queries} after {s} s", queries = found, s = format::plain(bound))
                }
                None => found,
            })
        }),
    },
    Rule {
        id: "tpch-degree",
        group: Group::F,
        level: Level::W,
        rule: "A parallel degree has the effect that is asked for: some plan has as many workers, and with degree 0 none has any.",
        meaning: "The column is not what its heading says. Servers cap degrees, or find a query too cheap for more workers.",
        advice: "Raise the server's limits of parallel workers, or name the column after the degree that was reached.",
        find: Find::Trial(degree),
    },
    Rule {
        id: "tpch-cache-failed",
        group: Group::F,
        level: Level::W,
        rule: "Where caches were to be warm or cold before a TPC-H trial, the server's counters prove it.",
        meaning: "The first queries read from the disk, or did not, other than the heading says.",
        advice: "Give the server a buffer pool that holds the data before a warm test; restart it and drop the system's page cache before a cold one.",
        find: Find::Trial(|trial| {
            let cache = &facts(trial)?.cache;
            (cache.verdict == Some(Verdict::Failed)).then(|| {
                let told: Vec<Text> = cache.evidence.iter().map(|line| stored(line)).collect();
                say!(
                    "not {state}: {evidence}",
                    state = words::cache(&cache.state),
                    evidence = Text::sentences(&told)
                )
            })
        }),
    },
    Rule {
        id: "tpch-cache-mixed",
        group: Group::F,
        level: Level::W,
        rule: "All trials of a TPC-H experiment begin with their caches in the same state.",
        meaning: "A difference between these figures may come from the caches.",
        advice: "Give all trials the same cache state (option cache).",
        find: Find::Experiment(|experiment| {
            differing(experiment, &|setup| words::cache(&setup.cache))
                .map(|states| say!("caches {states}", states = states))
        }),
    },
    Rule {
        id: "tpch-unlike",
        group: Group::F,
        level: Level::E,
        rule: "Targets of one TPC-H experiment run the same: scale factor, streams, parameters, bound.",
        meaning: "The comparison is unfair: a difference between these targets may come from what they ran.",
        advice: "Run all targets with the same scale factor, streams, parameters and bound.",
        find: Find::Paper(unlike),
    },
    Rule {
        id: "tpch-load-differs",
        group: Group::F,
        level: Level::W,
        rule: "Targets of one TPC-H experiment have the same keys, indexes and statistics.",
        meaning: "A difference between these targets may come from how their data were loaded.",
        advice: "Load all targets with the same steps: primary keys, foreign keys, indexes, statistics.",
        find: Find::Paper(loads_differ),
    },
    Rule {
        id: "tpch-plans",
        group: Group::F,
        level: Level::W,
        rule: "Repeats of a TPC-H query with the same parameters and degree have the same plan.",
        meaning: "The optimizer changed its mind between trials: their median mixes plans.",
        advice: "Take statistics anew before the trials and let no background job change them in between; or tell the two plans' times apart.",
        find: Find::Paper(plans_changed),
    },
    Rule {
        id: "tpch-once",
        group: Group::F,
        level: Level::W,
        rule: "Every TPC-H test is repeated at every degree.",
        meaning: "One pass shows no noise: nobody knows how far the next one would be off.",
        advice: "Repeat every test at least three times at every degree.",
        find: Find::Experiment(|experiment| {
            let own = experiment.points.iter().filter(|point| point.tpch.is_some());
            let once: Vec<Text> = own
                .filter(|point| point.repeats == 1)
                .filter_map(|point| {
                    Some(words::at_degree(&point.target, point.tpch.as_ref()?.degree))
                })
                .collect();
            (!once.is_empty())
                .then(|| say!("one trial: {points}", points = Text::list(&unique(once))))
        }),
    },
    Rule {
        id: "tpch-refreshed",
        group: Group::F,
        level: Level::W,
        rule: "Queries whose answers are compared run on data that no refresh function has changed.",
        meaning: "The reference holds for the data as they were loaded; after refresh functions other answers are right.",
        advice: "Load the data anew before answers are compared, or apply refresh functions last.",
        find: Find::Trial(|trial| {
            let facts = facts(trial)?;
            let pairs = facts.load.as_ref()?.refresh_pairs;
            let is_compared = facts.queries.iter().any(|query| query.answer.is_some());
            (pairs > 0 && is_compared).then(|| {
                Text::count(
                    pairs.into(),
                    "{n} pair applied since the load",
                    "{n} pairs applied since the load",
                )
            })
        }),
    },
    Rule {
        id: "tpch-power",
        group: Group::F,
        level: Level::W,
        rule: "A power test runs refresh function 1, the queries in the order of stream 0, and refresh function 2.",
        meaning: "Its figure is not what the specification calls power.",
        advice: "Run the power test with refresh functions and in the order of stream 0, or give its figure another name.",
        find: Find::Trial(power),
    },
    Rule {
        id: "tpch-streams",
        group: Group::F,
        level: Level::W,
        rule: "A throughput test has as many streams as its scale factor asks for (two at 1, three at 10, five at 100), and a pair of refresh functions for each.",
        meaning: "Its figure is not what the specification calls throughput.",
        advice: "Use as many streams as the specification asks for and a pair of refresh functions for each, or give the figure another name.",
        find: Find::Trial(streams),
    },
    Rule {
        id: "tpch-unlike-published",
        group: Group::F,
        level: Level::I,
        rule: "What stands beside published times of TPC-H queries has their scale factor and degrees.",
        meaning: "Times of another amount of data stand beside each other; at best the pattern of the speed-ups can be compared.",
        advice: "Compare the pattern of the speed-ups alone, or run at the published scale factor and degrees.",
        find: Find::Experiment(unlike_published),
    },
    Rule {
        id: "tpch-plans-by-degree",
        group: Group::F,
        level: Level::I,
        rule: "TPC-H queries keep their plan from degree to degree.",
        meaning: "Other plans are what a parallel degree is for; their speed-up is that of the plan and of the workers together.",
        advice: "Read the plans beside the speed-ups.",
        find: Find::Experiment(plans_by_degree),
    },
    Rule {
        id: "tpch-degree-unknown",
        group: Group::F,
        level: Level::I,
        rule: "Plans tell how many workers TPC-H queries had.",
        meaning: "Whether the degree that was asked for was reached is not known.",
        advice: "Let plans be taken (option plans), or look at the server's own record of parallel workers.",
        find: Find::Trial(|trial| {
            let degree = &facts(trial)?.degree;
            (degree.asked > 0 && !degree.rule.is_empty() && degree.got.is_none())
                .then(|| say!("asked {n}, got an unknown number", n = degree.asked.to_string()))
        }),
    },
    Rule {
        id: "tpch-cache-unknown",
        group: Group::F,
        level: Level::I,
        rule: "What the caches held when a TPC-H trial began is known.",
        meaning: "The first queries may have read from the disk or not.",
        advice: "Let the caches be warmed or emptied before every trial (option cache) and give dyno the right to read the server's counters.",
        find: Find::Trial(|trial| {
            let cache = &facts(trial).filter(|facts| !facts.queries.is_empty())?.cache;
            (!matches!(cache.verdict, Some(Verdict::Passed | Verdict::Failed))).then(|| match cache
                .state
                .as_str()
            {
                "" => words::unknown(),
                state => say!("{state}, not proven", state = words::cache(state)),
            })
        }),
    },
    Rule {
        id: "tpch-short",
        group: Group::F,
        level: Level::I,
        rule: "Every TPC-H query takes at least 10 ms.",
        meaning: "Round trips and planning are a large part of such a time; a larger scale factor shows more of the executing.",
        advice: "Use a larger scale factor.",
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

fn some(words: Vec<Text>) -> Option<Text> {
    (!words.is_empty()).then(|| Text::joined(&words, "; ", "；"))
}

/// The queries of a trial of which one execution is such.
fn of_queries(trial: &Trial, is_such: impl Fn(&QueryFacts) -> bool) -> Option<Text> {
    let found = &facts(trial)?.queries;
    let numbers: Vec<u8> = (1..=QUERIES)
        .filter(|query| found.iter().any(|facts| facts.query == *query && is_such(facts)))
        .collect();
    (!numbers.is_empty()).then(|| most_of(&numbers))
}

fn degree(trial: &Trial) -> Option<Text> {
    let degree = &facts(trial)?.degree;
    let asked = degree.asked;
    // The remark says more than the numbers do.
    let remark = || degree.remark.as_deref().map(stored);
    let number = |number: u32| number.to_string();
    match degree.got {
        _ if asked > 0 && degree.rule.is_empty() => Some(remark().unwrap_or_else(|| {
            say!("asked {asked}, and the product has no degree", asked = number(asked))
        })),
        Some(got) if asked > 0 && got < asked => Some(remark().unwrap_or_else(|| {
            say!("asked {asked}, got {got}", asked = number(asked), got = number(got))
        })),
        // What counts as off is the product's own: one worker on some, none on others.
        Some(got) if asked == 0 && got > 0 => remark(),
        _ => None,
    }
}

/// Values of the experiment's points, where there are several: `cold: a; warm: b`.
fn differing(experiment: &Experiment, of: &dyn Fn(&TpchSetup) -> Text) -> Option<Text> {
    let mut by_value: Vec<(Text, Vec<Text>)> = Vec::new();
    for point in &experiment.points {
        let Some(setup) = &point.tpch else { continue };
        let (value, place) = (of(setup), words::at_degree(&point.target, setup.degree));
        match by_value.iter_mut().find(|(known, _)| *known == value) {
            Some((_, places)) => places.push(place),
            None => by_value.push((value, vec![place])),
        }
    }
    let is_one = by_value.len() < 2;
    let told = by_value.into_iter().map(|(value, places)| named(value, Text::list(&places)));
    some(told.collect()).filter(|_| !is_one)
}

/// What is found in each TPC-H experiment of a paper.
fn by_experiment(paper: &Paper, find: impl Fn(&[&Trial]) -> Option<Text>) -> Vec<Finding> {
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
fn by_target(trials: &[&Trial], of: &dyn Fn(&Trial) -> Text) -> Option<Text> {
    let mut targets: Vec<(&str, Vec<Text>)> = Vec::new();
    for trial in trials {
        let value = of(trial);
        match targets.iter_mut().find(|(target, _)| *target == trial.target) {
            Some((_, values)) if values.contains(&value) => {}
            Some((_, values)) => values.push(value),
            None => targets.push((&trial.target, vec![value])),
        }
    }
    let first = targets.first().map(|(_, values)| values.clone())?;
    let told: Vec<Text> =
        targets.iter().map(|(target, values)| target_has(target, values)).collect();
    let is_same = targets.iter().all(|(_, values)| *values == first);
    (!is_same).then(|| Text::joined(&told, ", ", "，"))
}

fn unlike(paper: &Paper) -> Vec<Finding> {
    type Alike = (fn() -> Text, fn(&TpchFacts, &Trial) -> Text);
    const VALUES: [Alike; 4] = [
        (|| say!("scale factor"), |facts, _| Text::same(format::plain(facts.scale))),
        (|| say!("streams"), |_, trial| Text::same(trial.summary.workers.to_string())),
        (|| say!("parameters"), |facts, _| stored(&facts.parameters)),
        (
            || say!("bound in s"),
            |facts, _| match facts.timeout_s {
                Some(bound) => Text::same(format::plain(bound)),
                None => say!("none"),
            },
        ),
    ];
    by_experiment(paper, |trials| {
        let difference = |(name, of): &Alike| {
            let of = |trial: &Trial| facts(trial).map_or(Text::default(), |facts| of(facts, trial));
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
        let found: Vec<Text> = STEPS.iter().filter(has).map(|step| words::step(step)).collect();
        match (load, found.is_empty()) {
            (None, _) => say!("with an unknown load"),
            (Some(_), true) => say!("with none of them"),
            (Some(_), false) => say!("with {steps}", steps = Text::list(&found)),
        }
    };
    by_experiment(paper, |trials| by_target(trials, &steps))
}

fn plans_changed(paper: &Paper) -> Vec<Finding> {
    by_experiment(paper, |trials| {
        let changed = crate::points::groups(trials).into_iter().filter_map(|group| {
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
fn on(queries: Text, target: Text) -> Text {
    say!("{queries} on {target}", queries = queries, target = target)
}

fn plans_by_degree(experiment: &Experiment) -> Option<Text> {
    let section = experiment.tpch.as_ref()?;
    let of_table = |table: &super::TpchTable| {
        let differs = |row: &&super::PlanRow| row.cells.iter().any(|cell| cell.differs_from_first);
        let numbers: Vec<u8> = table.plans.iter().filter(differs).map(|row| row.query).collect();
        (!numbers.is_empty()).then(|| on(most_of(&numbers), Text::from(&table.target)))
    };
    some(section.tables.iter().filter_map(of_table).collect())
}

fn power(trial: &Trial) -> Option<Text> {
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
        (!is_begun).then(|| say!("the queries ran in another order")),
        (!ran(1, &|began_s| began_s <= first_s))
            .then(|| say!("refresh function 1 did not run before them")),
        (!ran(2, &|began_s| began_s >= last_s))
            .then(|| say!("refresh function 2 did not run after them")),
    ];
    some(found.into_iter().flatten().collect())
}

fn streams(trial: &Trial) -> Option<Text> {
    let facts = facts(trial).filter(|facts| facts.test == "throughput")?;
    let (streams, least) = (trial.summary.workers, words::least_streams(facts.scale));
    let pairs = facts.refreshes.iter().filter(|refresh| refresh.function == 2).count();
    let found = [
        (streams < least).then(|| {
            say!(
                "{streams} instead of {least}",
                streams = words::count_streams(streams),
                least = least.to_string()
            )
        }),
        (pairs < streams as usize).then(|| {
            say!(
                "{pairs} of refresh functions for {streams}",
                pairs = Text::count(pairs as u64, "{n} pair", "{n} pairs"),
                streams = words::count_streams(streams)
            )
        }),
    ];
    some(found.into_iter().flatten().collect())
}

fn unlike_published(experiment: &Experiment) -> Option<Text> {
    let section = experiment.tpch.as_ref()?;
    let of_table = |table: &super::TpchTable| {
        let published = section.published.first()?;
        let here = table.setup.scale;
        let scale = published.scale.filter(|there| *there != here).map(|there| {
            say!(
                "scale factor {here} instead of {there}",
                here = format::plain(here),
                there = format::plain(there)
            )
        });
        let measured: Vec<u32> = table.degrees.iter().map(|degree| degree.degree).collect();
        let degrees = (measured != published.degrees).then(|| {
            say!(
                "degrees {here} instead of {there}",
                here = words::numbers(&measured),
                there = words::numbers(&published.degrees)
            )
        });
        some([scale, degrees].into_iter().flatten().collect())
            .map(|told| named(Text::from(&table.target), told))
    };
    some(section.tables.iter().filter_map(of_table).collect())
}
