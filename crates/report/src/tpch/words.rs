//! Every sentence that a paper says of TPC-H alone.

use super::{AnswerCount, QUERIES, Speedup, TpchSetup, TpchTable, facts};
use crate::format::{self, unique};
use crate::model::Trial;
use crate::say;
use crate::text::{Text, stored};
use dyno_measure::QueryOutcome;

/// What a reader must know before anything else.
pub(super) fn disclosure() -> Text {
    say!(
        "This is not a TPC result. Data and queries are derived from TPC-H: no auditor has seen the run, nothing was filed with the TPC, and neither the times nor the metrics may be compared with published TPC results. Figures of different scale factors are not comparable with each other either."
    )
}

/// What the specification asks for and no run of dyno does.
pub(super) fn never() -> [Text; 2] {
    [
        say!(
            "The tests of atomicity, consistency, isolation and durability of clause 3 are not part of a run, nor are prices and an audit."
        ),
        say!(
            "Times are printed as they were measured; the specification rounds them to a tenth of a second."
        ),
    ]
}

/// Why nothing is known of the caches.
pub(super) fn no_cache() -> Text {
    say!("The trial has no record of what the caches held.")
}

/// The orders in which streams execute queries begin with that of the power test (appendix A).
pub(super) const POWER_ORDER: [u8; QUERIES as usize] =
    [14, 2, 9, 20, 6, 17, 18, 8, 21, 13, 3, 22, 16, 4, 11, 15, 1, 10, 19, 5, 7, 12];

/// The name of a test.
pub(crate) fn test(name: &str) -> Text {
    match name {
        "queries" => say!("Q1 to Q22 in order"),
        "power" => say!("power test"),
        "throughput" => say!("throughput test"),
        "refresh" => say!("refresh functions"),
        other => Text::same(other),
    }
}

/// What the caches held, in a word.
pub(super) fn cache(state: &str) -> Text {
    match state {
        "" => unknown(),
        "warm" => say!("warm"),
        "cold" => say!("cold"),
        "as found" => say!("as found"),
        other => Text::same(other),
    }
}

/// Where nothing is known.
pub(super) fn unknown() -> Text {
    say!("unknown")
}

/// What the columns of a table share.
pub(super) fn setup(setup: &TpchSetup) -> Text {
    let (test, scale) = (test(&setup.test), format::plain(setup.scale));
    let caches = cache(&setup.cache);
    match setup.streams {
        1 => say!(
            "{test}, scale factor {scale}, caches {caches}",
            test = test,
            scale = scale,
            caches = caches
        ),
        streams => say!(
            "{test}, scale factor {scale}, {streams}, caches {caches}",
            test = test,
            scale = scale,
            streams = count_streams(streams),
            caches = caches
        ),
    }
}

/// `1 stream`, `2 streams`.
pub(super) fn count_streams(number: u32) -> Text {
    Text::count(number.into(), "{n} stream", "{n} streams")
}

/// `0`, `0 and 2`.
pub(super) fn numbers(numbers: &[u32]) -> Text {
    Text::list(&numbers.iter().map(|number| Text::same(number.to_string())).collect::<Vec<_>>())
}

/// `main at degree 2`.
pub(super) fn at_degree(target: &str, degree: u32) -> Text {
    say!("{target} at degree {degree}", target = target, degree = degree.to_string())
}

/// How the degrees were set and what is to be said of them.
pub(super) fn degrees_set(tables: &[TpchTable]) -> Vec<Text> {
    let of_table = |table: &TpchTable| -> Vec<Text> {
        let sentence = |degree: &super::DegreeColumn| {
            let statements = || degree.statements.join("; ");
            let set = match (degree.statements.is_empty(), degree.rule.is_empty()) {
                (true, _) => None,
                (false, true) => Some(say!("Set by {statements}.", statements = statements())),
                (false, false) => Some(say!(
                    "Set by rule {rule}: {statements}.",
                    rule = &degree.rule,
                    statements = statements()
                )),
            };
            let told: Vec<Text> = set.into_iter().chain(degree.remarks.iter().cloned()).collect();
            (!told.is_empty()).then(|| {
                say!(
                    "{target}, degree {degree}: {told}",
                    target = &table.target,
                    degree = degree.degree.to_string(),
                    told = Text::sentences(&told)
                )
            })
        };
        table.degrees.iter().filter_map(sentence).collect()
    };
    unique(tables.iter().flat_map(of_table).collect())
}

/// `Q3`, `Q3 and Q11`.
pub(crate) fn queries(numbers: &[u8]) -> Text {
    Text::list(&numbers.iter().map(|query| Text::same(format!("Q{query}"))).collect::<Vec<_>>())
}

/// The same, shorter where they are most: `all 22 queries`, `all but Q16 and Q22`.
pub(super) fn most_of(numbers: &[u8]) -> Text {
    let others: Vec<u8> = (1..=QUERIES).filter(|query| !numbers.contains(query)).collect();
    match others.len() {
        0 => say!("all 22 queries"),
        few if few <= usize::from(QUERIES / 3) => {
            say!("all but {queries}", queries = queries(&others))
        }
        _ => queries(numbers),
    }
}

/// `21 of 22 correct; wrong: Q11`.
pub(super) fn answers(count: &AnswerCount) -> Text {
    let right = say!(
        "{right} of {all} correct",
        right = count.right.to_string(),
        all = QUERIES.to_string()
    );
    let wrong = Some(&count.wrong).filter(|numbers| !numbers.is_empty());
    let others = [
        wrong.map(|numbers| match is_all(numbers) {
            true => say!("all wrong"),
            false => say!("wrong: {queries}", queries = queries(numbers)),
        }),
        Some(&count.not_compared).filter(|numbers| !numbers.is_empty()).map(
            |numbers| match is_all(numbers) {
                true => say!("all not compared"),
                false => say!("not compared: {queries}", queries = queries(numbers)),
            },
        ),
        Some(&count.unanswered).filter(|numbers| !numbers.is_empty()).map(|numbers| {
            match is_all(numbers) {
                true => say!("all without an answer"),
                false => say!("without an answer: {queries}", queries = queries(numbers)),
            }
        }),
    ];
    let all: Vec<Text> = [right].into_iter().chain(others.into_iter().flatten()).collect();
    Text::joined(&all, "; ", "；")
}

fn is_all(numbers: &[u8]) -> bool {
    numbers.len() == usize::from(QUERIES)
}

/// How a query ended that was not answered; `None` where it was.
pub(super) fn failure(outcome: &QueryOutcome, seconds: f64) -> Option<Text> {
    match outcome {
        QueryOutcome::Answered => None,
        QueryOutcome::TimedOut => Some(say!(
            "given up after {seconds} s, which count as its time",
            seconds = format::plain(seconds)
        )),
        QueryOutcome::Failed(why) => Some(say!("failed: {why}", why = stored(why))),
        QueryOutcome::Interrupted => Some(say!("interrupted by the user; it has no time")),
    }
}

/// A step of a load, or the table of one of its parts.
pub(super) fn step(name: &str) -> Text {
    if let Some((_, table)) = name.split_once('/') {
        return Text::same(table);
    }
    match name {
        "create-database" => say!("create the database"),
        "create" => say!("create the tables"),
        "load" => say!("load the rows"),
        "primary-keys" => say!("primary keys"),
        "foreign-keys" => say!("foreign keys"),
        "indexes" => say!("secondary indexes"),
        "analyze" => say!("statistics for the optimizer"),
        "warm-up" => say!("warm-up: count every index"),
        other => Text::same(other),
    }
}

/// `1.57 (1.41 to 1.72)`, `at least 3.2`.
pub(crate) fn speedup(speedup: &Speedup) -> Text {
    let median = format::plain(speedup.median);
    let told = match speedup.bound {
        Some("at least") => say!("at least {factor}", factor = median),
        Some(_) => say!("at most {factor}", factor = median),
        None => Text::same(median),
    };
    match speedup.is_spread {
        true => say!(
            "{factor} ({low} to {high})",
            factor = told,
            low = format::plain(speedup.min),
            high = format::plain(speedup.max)
        ),
        false => told,
    }
}

/// A table in a sentence or two.
pub(crate) fn best(experiment: &str, table: &TpchTable) -> Text {
    let total = |degree: &super::DegreeColumn| match degree.total_s {
        Some(total) => say!(
            "{seconds} s at degree {degree}",
            seconds = format::plain(total.median),
            degree = degree.degree.to_string()
        ),
        None => say!(
            "no total at degree {degree}, as not all queries ended",
            degree = degree.degree.to_string()
        ),
    };
    let mut took = Text::list(&table.degrees.iter().map(total).collect::<Vec<_>>());
    let last = table.degrees.last();
    if let Some((degree, faster)) = last.and_then(|last| Some((last.degree, last.total_speedup?))) {
        took = say!(
            "{totals}, {factor} times as fast at degree {degree} as at {first}",
            totals = took,
            factor = speedup(&faster),
            degree = degree.to_string(),
            first = table.degrees[0].degree.to_string()
        );
    }
    let (experiment, target) = (Text::same(experiment), Text::from(&table.target));
    let setup = setup(&table.setup);
    let mut sentences = vec![match table.setup.test.as_str() {
        "throughput" => say!(
            "{experiment}, {target} ({setup}): The test took {took}.",
            experiment = experiment,
            target = target,
            setup = setup,
            took = took
        ),
        _ => say!(
            "{experiment}, {target} ({setup}): The 22 queries took {took}.",
            experiment = experiment,
            target = target,
            setup = setup,
            took = took
        ),
    }];
    let mut given_up: Vec<u8> =
        table.degrees.iter().flat_map(|degree| degree.penalised.clone()).collect();
    given_up.sort_unstable();
    given_up.dedup();
    match given_up.len() {
        0 => {}
        1 => sentences.push(say!(
            "{queries} was given up at the bound, which counts as the time.",
            queries = queries(&given_up)
        )),
        _ => sentences.push(say!(
            "{queries} were given up at the bound, which counts as the time.",
            queries = queries(&given_up)
        )),
    }
    let mut answers: Vec<Text> =
        table.degrees.iter().map(|degree| degree.answers.words.clone()).collect();
    answers.dedup();
    sentences.push(say!("Answers: {answers}.", answers = Text::joined(&answers, " and ", "；")));
    Text::sentences(&sentences)
}

/// What is executed, how it is timed, and in which order the degrees were measured.
pub(super) fn method(trials: &[&Trial]) -> Vec<Text> {
    let all = || trials.iter().filter_map(|trial| facts(trial));
    let mut sentences = Vec::new();
    for name in unique(all().map(|facts| facts.test.clone()).collect()) {
        sentences.push(tested(&name, trials));
    }
    let has_queries = all().any(|facts| !facts.queries.is_empty());
    let scales = unique(all().map(|facts| Text::same(format::plain(facts.scale))).collect());
    let scales = Text::list(&scales);
    let parameters = unique(all().map(|facts| stored(&facts.parameters)).collect());
    if !has_queries {
        sentences.push(say!("Scale factor {scales}.", scales = scales));
        return sentences;
    }
    sentences.push(say!(
        "Scale factor {scales}; parameters of the queries: {parameters}.",
        scales = scales,
        parameters = match parameters.iter().all(Text::is_empty) {
            true => unknown(),
            false => Text::list(&parameters),
        }
    ));
    sentences.extend(order(trials));
    let mut bounds: Vec<f64> = all().filter_map(|facts| facts.timeout_s).collect();
    bounds.sort_by(f64::total_cmp);
    bounds.dedup();
    let bounds: Vec<Text> = bounds.iter().map(|bound| Text::same(format::plain(*bound))).collect();
    sentences.push(match bounds.len() {
        0 => say!("No query is given up, however long it takes."),
        _ => say!(
            "A query is given up after {bounds} s and cancelled on the server; the bound then counts as its time.",
            bounds = Text::list(&bounds)
        ),
    });
    sentences.push(say!("Speed-ups are the median at the first degree by the median at the other; behind them stand the lowest and the highest that any two repeats give."));
    let mut seeds: Vec<u64> = trials.iter().map(|trial| trial.summary.seed).collect();
    seeds.sort_unstable();
    seeds.dedup();
    let seeds: Vec<Text> = seeds.iter().take(6).map(|seed| Text::same(seed.to_string())).collect();
    sentences.push(say!("Seed {seeds}.", seeds = Text::list(&seeds)));
    sentences
}

fn tested(name: &str, trials: &[&Trial]) -> Text {
    let own: Vec<&&Trial> = trials
        .iter()
        .filter(|trial| facts(trial).is_some_and(|facts| facts.test == name))
        .collect();
    let has_refresh =
        own.iter().any(|trial| facts(trial).is_some_and(|facts| !facts.refreshes.is_empty()));
    let streams = || {
        let streams = own.iter().map(|trial| Text::same(trial.summary.workers.to_string()));
        Text::list(&unique(streams.collect()))
    };
    let executed = match (name, has_refresh) {
        ("refresh", _) => {
            return say!(
                "Pairs of refresh functions are applied: function 1 inserts orders and their lines, function 2 deletes as many others."
            );
        }
        ("queries", _) => {
            say!("The 22 queries are executed one after another, Q1 to Q22, in one session.")
        }
        ("power", true) => say!(
            "In a power test one session executes refresh function 1, the 22 queries in the order of stream 0, then refresh function 2."
        ),
        ("power", false) => say!(
            "In a power test one session executes the 22 queries in the order of stream 0; refresh functions were left out."
        ),
        ("throughput", true) => say!(
            "In a throughput test {streams} sessions execute the 22 queries side by side, each in the order of its stream, while another one applies pairs of refresh functions.",
            streams = streams()
        ),
        ("throughput", false) => say!(
            "In a throughput test {streams} sessions execute the 22 queries side by side, each in the order of its stream; refresh functions were left out.",
            streams = streams()
        ),
        (other, _) => say!("Test {name}.", name = other),
    };
    let timed =
        say!("Each query is timed whole: from its first character sent to its last row received.");
    Text::sentences(&[executed, timed])
}

/// Number of the run, of the trial, and its degree.
type Turn = (usize, u32, u32);

/// The order in which the degrees were measured, by target.
fn order(trials: &[&Trial]) -> Vec<Text> {
    let mut by_target: Vec<(&str, Vec<Turn>)> = Vec::new();
    for trial in trials {
        let Some(degree) = facts(trial).map(|facts| facts.degree.asked) else { continue };
        let one = (trial.run, trial.summary.trial, degree);
        match by_target.iter_mut().find(|(target, _)| *target == trial.target) {
            Some((_, order)) => order.push(one),
            None => by_target.push((&trial.target, vec![one])),
        }
    }
    let sentence = |(target, mut order): (&str, Vec<Turn>)| {
        order.sort_unstable();
        let in_turn: Vec<u32> = order.iter().map(|(_, _, degree)| *degree).collect();
        let mut distinct = in_turn.clone();
        distinct.sort_unstable();
        distinct.dedup();
        match distinct.as_slice() {
            [degree] => say!(
                "On {target} everything ran at parallel degree {degree}.",
                target = target,
                degree = degree.to_string()
            ),
            _ => say!(
                "On {target} the trials ran at parallel degrees {degrees}, in this order.",
                target = target,
                degrees = numbers(&in_turn)
            ),
        }
    };
    by_target.into_iter().map(sentence).collect()
}

/// Least streams of a throughput test at a scale factor (clause 5.3.4).
pub(super) fn least_streams(scale: f64) -> u32 {
    const LEAST: [(f64, u32); 10] = [
        (1.0, 2),
        (10.0, 3),
        (30.0, 4),
        (100.0, 5),
        (300.0, 6),
        (1000.0, 7),
        (3000.0, 8),
        (10_000.0, 9),
        (30_000.0, 10),
        (100_000.0, 11),
    ];
    let reached = LEAST.iter().rfind(|(from, _)| scale >= *from);
    reached.map_or(LEAST[0].1, |(_, streams)| *streams)
}
