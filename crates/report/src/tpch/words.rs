//! Every sentence that a paper says of TPC-H alone.

use super::{AnswerCount, QUERIES, Speedup, TpchSetup, TpchTable, facts};
use crate::format::{self, list_of, unique};
use crate::model::Trial;
use dyno_measure::QueryOutcome;

/// What a reader must know before anything else.
pub(super) const DISCLOSURE: &str = "This is not a TPC result. Data and queries are derived from TPC-H: no auditor has seen the run, nothing was filed with the TPC, and neither the times nor the metrics may be compared with published TPC results. Figures of different scale factors are not comparable with each other either.";

/// What the specification asks for and no run of dyno does.
pub(super) const NEVER: [&str; 2] = [
    "The tests of atomicity, consistency, isolation and durability of clause 3 are not part of a run, nor are prices and an audit.",
    "Times are printed as they were measured; the specification rounds them to a tenth of a second.",
];

/// Why nothing is known of the caches.
pub(super) const NO_CACHE: &str = "The trial has no record of what the caches held.";

/// The orders in which streams execute queries begin with that of the power test (appendix A).
pub(super) const POWER_ORDER: [u8; QUERIES as usize] =
    [14, 2, 9, 20, 6, 17, 18, 8, 21, 13, 3, 22, 16, 4, 11, 15, 1, 10, 19, 5, 7, 12];

/// The name of a test.
pub(crate) fn test(name: &str) -> &str {
    match name {
        "queries" => "Q1 to Q22 in order",
        "power" => "power test",
        "throughput" => "throughput test",
        "refresh" => "refresh functions",
        other => other,
    }
}

/// What the columns of a table share.
pub(super) fn setup(setup: &TpchSetup) -> String {
    let streams = match setup.streams {
        1 => String::new(),
        streams => format!(", {streams} streams"),
    };
    format!(
        "{}, scale factor {}{streams}, caches {}",
        test(&setup.test),
        format::plain(setup.scale),
        if setup.cache.is_empty() { "unknown" } else { &setup.cache }
    )
}

/// `degree 0`, `degrees 0 and 2`.
fn degrees(degrees: &[u32]) -> String {
    let words: Vec<String> = degrees.iter().map(u32::to_string).collect();
    format!("{} {}", if words.len() == 1 { "degree" } else { "degrees" }, list_of(&words))
}

/// How the degrees were set and what is to be said of them.
pub(super) fn degrees_set(tables: &[TpchTable]) -> Vec<String> {
    let of_table = |table: &TpchTable| -> Vec<String> {
        let sentence = |degree: &super::DegreeColumn| {
            let set = match (degree.statements.is_empty(), degree.rule.is_empty()) {
                (true, _) => String::new(),
                (false, true) => format!(" Set by {}.", degree.statements.join("; ")),
                (false, false) => {
                    format!(" Set by rule {}: {}.", degree.rule, degree.statements.join("; "))
                }
            };
            let remarks: String =
                degree.remarks.iter().map(|remark| format!(" {remark}")).collect();
            let told = format!("{}, degree {}:{set}{remarks}", table.target, degree.degree);
            (!set.is_empty() || !remarks.is_empty()).then_some(told)
        };
        table.degrees.iter().filter_map(sentence).collect()
    };
    unique(tables.iter().flat_map(of_table).collect())
}

/// `Q3`, `Q3 and Q11`.
pub(crate) fn queries(numbers: &[u8]) -> String {
    list_of(&numbers.iter().map(|query| format!("Q{query}")).collect::<Vec<_>>())
}

/// The same, shorter where they are most: `all 22 queries`, `all but Q16 and Q22`.
pub(super) fn most_of(numbers: &[u8]) -> String {
    let others: Vec<u8> = (1..=QUERIES).filter(|query| !numbers.contains(query)).collect();
    match others.len() {
        0 => "all 22 queries".to_owned(),
        few if few <= usize::from(QUERIES / 3) => format!("all but {}", queries(&others)),
        _ => queries(numbers),
    }
}

/// `21 of 22 correct; wrong: Q11`.
pub(super) fn answers(count: &AnswerCount) -> String {
    let mut words = format!("{} of {QUERIES} correct", count.right);
    let others = [
        ("wrong", &count.wrong),
        ("not compared", &count.not_compared),
        ("without an answer", &count.unanswered),
    ];
    for (what, numbers) in others {
        match numbers.len() {
            0 => {}
            all if all == usize::from(QUERIES) => words.push_str(&format!("; all {what}")),
            _ => words.push_str(&format!("; {what}: {}", queries(numbers))),
        }
    }
    words
}

/// How a query ended that was not answered; `None` where it was.
pub(super) fn failure(outcome: &QueryOutcome, seconds: f64) -> Option<String> {
    match outcome {
        QueryOutcome::Answered => None,
        QueryOutcome::TimedOut => {
            Some(format!("given up after {} s, which count as its time", format::plain(seconds)))
        }
        QueryOutcome::Failed(why) => Some(format!("failed: {why}")),
        QueryOutcome::Interrupted => Some("interrupted by the user; it has no time".to_owned()),
    }
}

/// A step of a load, or the table of one of its parts.
pub(super) fn step(name: &str) -> String {
    if let Some((_, table)) = name.split_once('/') {
        return table.to_owned();
    }
    match name {
        "create-database" => "create the database",
        "create" => "create the tables",
        "load" => "load the rows",
        "primary-keys" => "primary keys",
        "foreign-keys" => "foreign keys",
        "indexes" => "secondary indexes",
        "analyze" => "statistics for the optimizer",
        "warm-up" => "warm-up: count every index",
        other => other,
    }
    .to_owned()
}

/// `1.57 (1.41 to 1.72)`, `at least 3.2`.
pub(crate) fn speedup(speedup: &Speedup) -> String {
    let mut words = match speedup.bound {
        Some(bound) => format!("{bound} {}", format::plain(speedup.median)),
        None => format::plain(speedup.median),
    };
    if speedup.is_spread {
        words.push_str(&format!(
            " ({} to {})",
            format::plain(speedup.min),
            format::plain(speedup.max)
        ));
    }
    words
}

/// A table in a sentence or two.
pub(crate) fn best(experiment: &str, table: &TpchTable) -> String {
    let totals: Vec<String> = table
        .degrees
        .iter()
        .map(|degree| match degree.total_s {
            Some(total) => {
                format!("{} s at degree {}", format::plain(total.median), degree.degree)
            }
            None => format!("no total at degree {}, as not all queries ended", degree.degree),
        })
        .collect();
    let last = table.degrees.last();
    let faster = last.and_then(|last| Some((last.degree, last.total_speedup?)));
    let faster = faster.map_or(String::new(), |(degree, faster)| {
        let first = table.degrees[0].degree;
        format!(", {} times as fast at degree {degree} as at {first}", speedup(&faster))
    });
    let given_up: Vec<u8> = {
        let mut numbers: Vec<u8> =
            table.degrees.iter().flat_map(|degree| degree.penalised.clone()).collect();
        numbers.sort_unstable();
        numbers.dedup();
        numbers
    };
    let given_up = match given_up.len() {
        0 => String::new(),
        _ => format!(
            " {} {} given up at the bound, which counts as the time.",
            queries(&given_up),
            if given_up.len() == 1 { "was" } else { "were" }
        ),
    };
    let mut answers: Vec<String> =
        table.degrees.iter().map(|degree| degree.answers.words.clone()).collect();
    answers.dedup();
    let what = match table.setup.test.as_str() {
        "throughput" => "The test took",
        _ => "The 22 queries took",
    };
    format!(
        "{experiment}, {} ({}): {} {}{faster}.{given_up} Answers: {}.",
        table.target,
        setup(&table.setup),
        what,
        list_of(&totals),
        answers.join(" and ")
    )
}

/// What is executed, how it is timed, and in which order the degrees were measured.
pub(super) fn method(trials: &[&Trial]) -> Vec<String> {
    let all = || trials.iter().filter_map(|trial| facts(trial));
    let mut sentences = Vec::new();
    for name in unique(all().map(|facts| facts.test.clone()).collect()) {
        sentences.push(tested(&name, trials));
    }
    let has_queries = all().any(|facts| !facts.queries.is_empty());
    let scales = unique(all().map(|facts| format::plain(facts.scale)).collect());
    let parameters = unique(all().map(|facts| facts.parameters.clone()).collect());
    if !has_queries {
        sentences.push(format!("Scale factor {}.", list_of(&scales)));
        return sentences;
    }
    sentences.push(format!(
        "Scale factor {}; parameters of the queries: {}.",
        list_of(&scales),
        if parameters.iter().all(String::is_empty) {
            "unknown".to_owned()
        } else {
            list_of(&parameters)
        }
    ));
    sentences.extend(order(trials));
    let mut bounds: Vec<f64> = all().filter_map(|facts| facts.timeout_s).collect();
    bounds.sort_by(f64::total_cmp);
    bounds.dedup();
    let words: Vec<String> = bounds.iter().map(|bound| format::plain(*bound)).collect();
    sentences.push(match words.len() {
        0 => "No query is given up, however long it takes.".to_owned(),
        _ => format!(
            "A query is given up after {} s and cancelled on the server; the bound then counts as its time.",
            list_of(&words)
        ),
    });
    sentences.push("Speed-ups are the median at the first degree by the median at the other; behind them stand the lowest and the highest that any two repeats give.".to_owned());
    let mut seeds: Vec<u64> = trials.iter().map(|trial| trial.summary.seed).collect();
    seeds.sort_unstable();
    seeds.dedup();
    let seeds: Vec<String> = seeds.iter().take(6).map(u64::to_string).collect();
    sentences.push(format!("Seed {}.", list_of(&seeds)));
    sentences
}

fn tested(name: &str, trials: &[&Trial]) -> String {
    let own: Vec<&&Trial> = trials
        .iter()
        .filter(|trial| facts(trial).is_some_and(|facts| facts.test == name))
        .collect();
    let has_refresh =
        own.iter().any(|trial| facts(trial).is_some_and(|facts| !facts.refreshes.is_empty()));
    let timed =
        "Each query is timed whole: from its first character sent to its last row received.";
    match name {
        "queries" => format!(
            "The 22 queries are executed one after another, Q1 to Q22, in one session. {timed}"
        ),
        "power" => format!(
            "In a power test one session executes {}the 22 queries in the order of stream 0{}. {timed}",
            if has_refresh { "refresh function 1, " } else { "" },
            if has_refresh {
                ", then refresh function 2"
            } else {
                "; refresh functions were left out"
            },
        ),
        "throughput" => {
            let streams: Vec<String> =
                unique(own.iter().map(|trial| trial.summary.workers.to_string()).collect());
            format!(
                "In a throughput test {} sessions execute the 22 queries side by side, each in the order of its stream{}. {timed}",
                list_of(&streams),
                if has_refresh {
                    ", while another one applies pairs of refresh functions"
                } else {
                    "; refresh functions were left out"
                },
            )
        }
        "refresh" => "Pairs of refresh functions are applied: function 1 inserts orders and their lines, function 2 deletes as many others.".to_owned(),
        other => format!("Test {other}. {timed}"),
    }
}

/// Number of the run, of the trial, and its degree.
type Turn = (usize, u32, u32);

/// The order in which the degrees were measured, by target.
fn order(trials: &[&Trial]) -> Vec<String> {
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
        if distinct.len() == 1 {
            return format!("On {target} everything ran at parallel degree {}.", distinct[0]);
        }
        format!("On {target} the trials ran at parallel {}, in this order.", degrees(&in_turn))
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
