//! Every sentence that a paper says of TPC-H alone.

use super::tables::{AnswerCount, Column, Speedup, TpchTable};
use super::{QUERIES, facts};
use crate::facts::{CacheFacts, QueryOutcome, TpchFacts};
use dyno_facts::{CheckVerdict, Message, say};
use dyno_report::Trial;
use dyno_report::format::{self, unique};

/// The name of a test.
pub(super) fn test(name: &str) -> Message {
    match name {
        "queries" => say!(q1_to_q22_in_order),
        "power" => say!(power_test),
        "throughput" => say!(throughput_test),
        "refresh" => say!(refresh_functions),
        "performance" => say!(performance_test),
        other => Message::verbatim(other),
    }
}

/// Contents of the caches, in a word.
pub(super) fn proven_cache(facts: &CacheFacts) -> Message {
    if facts.state == "warm" && facts.verdict == Some(CheckVerdict::Failed) {
        return say!(not_warm);
    }
    cache(&facts.state)
}

pub(super) fn cache(state: &str) -> Message {
    match state {
        "" => say!(unknown),
        "warm" => say!(warm),
        "cold" => say!(cold),
        "as found" => say!(as_found),
        other => Message::verbatim(other),
    }
}

/// What the columns of a table share.
pub(super) fn setup(facts: &TpchFacts, streams: u32) -> Message {
    let (test, scale) = (test(&facts.test), format::plain(facts.scale));
    let caches = proven_cache(&facts.cache);
    match streams {
        1 => say!(scale_factor_caches, test = test, scale = scale, caches = caches),
        streams => say!(
            scale_factor_caches_2,
            test = test,
            scale = scale,
            streams = say!(n_streams, n = streams),
            caches = caches
        ),
    }
}

/// A list of numbers: `0`, `0 and 2`.
pub(super) fn numbers<T: ToString>(numbers: impl IntoIterator<Item = T>) -> Message {
    let words = numbers.into_iter().map(|number| Message::verbatim(number.to_string()));
    Message::list(&words.collect::<Vec<_>>())
}

/// `main at degree 2`.
pub(super) fn at_degree(target: &str, degree: u32) -> Message {
    say!(target_at_degree_degree, target = target, degree = degree.to_string())
}

/// How the degrees were set and what is to be said of them.
pub(super) fn degrees_set(tables: &[TpchTable<'_>]) -> Vec<Message> {
    let sentence = |target: &str, column: &Column<'_>| {
        let degree = &column.facts().next()?.degree;
        let statements = degree.statements.join("; ");
        let set = match (statements.is_empty(), degree.rule.is_empty()) {
            (true, _) => None,
            (false, true) => Some(say!(set_by_statements, statements = statements)),
            (false, false) => Some(say!(set_by_rule, rule = &degree.rule, statements = statements)),
        };
        let sentences: Vec<Message> = set.into_iter().chain(column.remarks()).collect();
        (!sentences.is_empty()).then(|| {
            say!(
                target_degree_degree_told,
                target = target,
                degree = column.degree.to_string(),
                told = Message::sentences(&sentences)
            )
        })
    };
    let of_table = |table: &TpchTable<'_>| -> Vec<Message> {
        table.columns.iter().filter_map(|column| sentence(table.target, column)).collect()
    };
    unique(tables.iter().flat_map(of_table).collect())
}

/// `Q3`, `Q3 and Q11`.
pub(super) fn queries(numbers: &[u8]) -> Message {
    self::numbers(numbers.iter().map(|query| format!("Q{query}")))
}

/// [`queries`], but shorter where they are most: `all 22 queries`, `all but Q16 and Q22`.
pub(super) fn most_of(numbers: &[u8]) -> Message {
    let others: Vec<u8> = (1..=QUERIES).filter(|query| !numbers.contains(query)).collect();
    match others.len() {
        0 => say!(all_22_queries),
        few if few <= usize::from(QUERIES / 3) => {
            say!(all_but_queries, queries = queries(&others))
        }
        _ => queries(numbers),
    }
}

/// `21 of 22 correct; wrong: Q11`.
pub(crate) fn answers(count: &AnswerCount) -> Message {
    let is_none_compared =
        count.right == 0 && count.wrong.is_empty() && !count.not_compared.is_empty();
    let right = match (is_none_compared, count.has_reference) {
        (true, false) => say!(none_compared),
        (true, true) => say!(none_compared_otherwise),
        (false, true) => {
            say!(right_of_all_correct, right = count.right.to_string(), all = QUERIES.to_string())
        }
        (false, false) => {
            say!(right_of_all_agree, right = count.right.to_string(), all = QUERIES.to_string())
        }
    };
    let mut all = vec![right];
    let is_all = |numbers: &[u8]| numbers.len() == usize::from(QUERIES);
    all.extend(match count.wrong.as_slice() {
        [] => None,
        wrong if is_all(wrong) && count.has_reference => Some(say!(all_wrong)),
        wrong if count.has_reference => Some(say!(wrong_queries, queries = queries(wrong))),
        wrong => Some(say!(queries_differ, queries = queries(wrong))),
    });
    if !is_none_compared && !count.not_compared.is_empty() {
        all.push(say!(not_compared_queries, queries = queries(&count.not_compared)));
    }
    all.extend(match count.unanswered.as_slice() {
        [] => None,
        unanswered if is_all(unanswered) => Some(say!(all_without_an_answer)),
        unanswered => Some(say!(without_an_answer, queries = queries(unanswered))),
    });
    Message::joined(&all, "; ", "；")
}

/// How a query ended that was not answered; `None` where it was.
pub(super) fn failure(outcome: &QueryOutcome, seconds: f64) -> Option<Message> {
    match outcome {
        QueryOutcome::Answered => None,
        QueryOutcome::TimedOut => {
            Some(say!(given_up_after_s_which_count, seconds = format::plain(seconds)))
        }
        QueryOutcome::Failed(why) => Some(say!(failed_why, why = why)),
        QueryOutcome::Interrupted => Some(say!(interrupted_by_the_user_it_has)),
    }
}

/// A step of a load, or the table of one of its parts.
pub(super) fn step(name: &str) -> Message {
    if let Some((_, table)) = name.split_once('/') {
        return Message::verbatim(table);
    }
    match name {
        "create-database" => say!(create_the_database),
        "create" => say!(create_the_tables),
        "load" => say!(load_the_rows),
        "primary-keys" => say!(primary_keys),
        "foreign-keys" => say!(foreign_keys),
        "indexes" => say!(secondary_indexes),
        "analyze" => say!(statistics_for_the_optimizer),
        "warm-up" => say!(warm_up_count_every_index),
        other => Message::verbatim(other),
    }
}

/// `1.57 (1.41 to 1.72)`, `at least 3.2`.
pub(super) fn speedup(speedup: &Speedup) -> Message {
    let median = format::plain(speedup.median);
    let factor = match speedup.bound {
        "≥" => say!(at_least_factor, factor = median),
        "≤" => say!(at_most_factor, factor = median),
        _ => Message::verbatim(median),
    };
    match speedup.is_spread {
        true => say!(
            factor_low_to_high,
            factor = factor,
            low = format::plain(speedup.min),
            high = format::plain(speedup.max)
        ),
        false => factor,
    }
}

/// A table in a sentence or two.
pub(super) fn best(experiment: &Message, table: &TpchTable<'_>) -> Message {
    let total = |column: &Column<'_>| {
        let seconds = column.total_s().map(|total| format::plain(total.median));
        match (seconds, column.degree) {
            (Some(seconds), 0) => say!(s_without_parallel_workers, seconds = seconds),
            (None, 0) => say!(no_total_without_parallel_workers),
            (Some(seconds), degree) => {
                say!(s_at_degree, seconds = seconds, degree = degree.to_string())
            }
            (None, degree) => say!(no_total_at_degree_as_not, degree = degree.to_string()),
        }
    };
    let mut took = Message::list(&table.columns.iter().map(total).collect::<Vec<_>>());
    let last = table.columns.len() - 1;
    if let Some(faster) = table.total_speedup(last) {
        took = say!(
            times_as_fast_at_degree_as,
            totals = took,
            factor = speedup(&faster),
            degree = table.columns[last].degree.to_string(),
            first = table.columns[0].degree.to_string()
        );
    }
    let setup = setup(table.setup, table.streams);
    let target = table.target;
    let mut sentences = vec![match table.setup.test.as_str() {
        "throughput" | "performance" => {
            say!(
                the_test_took,
                experiment = experiment,
                target = target,
                setup = setup,
                took = took
            )
        }
        _ => {
            say!(
                the_22_queries_took,
                experiment = experiment,
                target = target,
                setup = setup,
                took = took
            )
        }
    }];
    let mut given_up: Vec<u8> = table.columns.iter().flat_map(Column::penalised).collect();
    given_up.sort_unstable();
    given_up.dedup();
    match given_up.len() {
        0 => {}
        1 => sentences.push(say!(was_given_up_at_the_bound, queries = queries(&given_up))),
        _ => sentences.push(say!(were_given_up_at_the_bound, queries = queries(&given_up))),
    }
    let mut counts: Vec<Message> =
        table.columns.iter().map(|column| answers(&column.answers())).collect();
    counts.dedup();
    sentences.push(say!(answers_answers, answers = Message::joined(&counts, " and ", "；")));
    Message::sentences(&sentences)
}

/// What is executed, how it is timed, and in which order the degrees were measured.
pub(super) fn method(trials: &[&Trial]) -> Vec<Message> {
    let all = || trials.iter().filter_map(|trial| facts(trial));
    let mut sentences = Vec::new();
    for name in unique(all().map(|facts| facts.test.clone()).collect()) {
        sentences.push(tested(&name, trials));
    }
    let has_queries = all().any(|facts| !facts.queries.is_empty());
    let scales = numbers(unique(all().map(|facts| format::plain(facts.scale)).collect()));
    let parameters = unique(all().map(|facts| facts.parameters.clone()).collect());
    if !has_queries {
        sentences.push(say!(scale_factor_scales, scales = scales));
        return sentences;
    }
    sentences.push(say!(
        scale_factor_parameters_of_the_queries,
        scales = scales,
        parameters = match parameters.iter().all(Message::is_empty) {
            true => say!(unknown),
            false => Message::list(&parameters),
        }
    ));
    sentences.extend(order(trials));
    let mut bounds: Vec<f64> = all().filter_map(|facts| facts.timeout_s).collect();
    bounds.sort_by(f64::total_cmp);
    bounds.dedup();
    sentences.push(match bounds.len() {
        0 => say!(no_query_is_given_up_however),
        _ => {
            say!(a_query_is_given_up_after, bounds = numbers(bounds.into_iter().map(format::plain)))
        }
    });
    sentences.push(say!(speed_ups_are_the_median_at));
    let mut seeds: Vec<u64> = trials.iter().map(|trial| trial.summary.seed).collect();
    seeds.sort_unstable();
    seeds.dedup();
    sentences.push(say!(seed_seeds, seeds = numbers(seeds.iter().take(6))));
    sentences
}

fn tested(name: &str, trials: &[&Trial]) -> Message {
    let own = || {
        trials.iter().filter_map(|own| Some((own, facts(own)?))).filter(|own| own.1.test == name)
    };
    let has_refresh = own().any(|(_, facts)| !facts.refreshes.is_empty());
    let streams = || numbers(unique(own().map(|(trial, _)| trial.summary.workers).collect()));
    let executed = match (name, has_refresh) {
        ("refresh", _) => return say!(pairs_of_refresh_functions_are_applied),
        ("queries", _) => say!(the_22_queries_are_executed_one),
        ("power", true) => say!(in_a_power_test_one_session),
        ("power", false) => say!(in_a_power_test_one_session_executes),
        ("throughput", true) => say!(in_a_throughput_test_sessions_execute, streams = streams()),
        ("throughput", false) => {
            say!(in_a_throughput_test_sessions_execute_the, streams = streams())
        }
        ("performance", _) => say!(a_performance_test_is_runs, streams = streams()),
        (other, _) => say!(test_name, name = other),
    };
    Message::sentences(&[executed, say!(each_query_is_timed_whole_from)])
}

/// The order in which the degrees were measured, by target.
fn order(trials: &[&Trial]) -> Vec<Message> {
    let targets = unique(trials.iter().map(|trial| trial.target.as_str()).collect());
    let sentence = |target: &str| {
        let own = trials.iter().filter(|trial| trial.target == target);
        let mut turns: Vec<(usize, u32, u32)> = own
            .filter_map(|own| Some((own.run, own.summary.trial, facts(own)?.degree.asked)))
            .collect();
        turns.sort_unstable();
        let degrees: Vec<u32> = turns.iter().map(|(.., degree)| *degree).collect();
        match unique(degrees.clone()).as_slice() {
            [degree] => say!(
                on_everything_ran_at_parallel_degree,
                target = target,
                degree = degree.to_string()
            ),
            _ => say!(on_the_trials_ran_at_parallel, target = target, degrees = numbers(degrees)),
        }
    };
    targets.into_iter().map(sentence).collect()
}
