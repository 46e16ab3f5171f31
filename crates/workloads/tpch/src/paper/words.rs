//! Every sentence that a paper says of TPC-H alone.

use super::tables::{AnswerCount, Column, Speedup, TpchTable};
use super::{QUERIES, TpchSetup, facts};
use crate::facts::QueryOutcome;
use dyno_facts::Message;
use dyno_facts::say;
use dyno_report::Trial;
use dyno_report::format::{self, unique};

/// What a reader must know before anything else.
pub(super) fn disclosure() -> Message {
    say!(this_is_not_a_tpc_result_data)
}

/// What the specification asks for and no run of dyno does.
pub(super) fn never() -> [Message; 2] {
    [say!(the_tests_of_atomicity_consistency_isolation), say!(times_are_printed_as_they_were)]
}

/// Why nothing is known of the caches.
pub(super) fn no_cache() -> Message {
    say!(the_trial_has_no_record_of_what)
}

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

/// What the caches held, in a word.
pub(super) fn cache(state: &str) -> Message {
    match state {
        "" => unknown(),
        "warm" => say!(warm),
        "cold" => say!(cold),
        "as found" => say!(as_found),
        other => Message::verbatim(other),
    }
}

/// Where nothing is known.
pub(super) fn unknown() -> Message {
    say!(unknown)
}

/// What the columns of a table share.
pub(super) fn setup(setup: &TpchSetup) -> Message {
    let (test, scale) = (test(&setup.test), format::plain(setup.scale));
    let caches = cache(&setup.cache);
    match setup.streams {
        1 => say!(scale_factor_caches, test = test, scale = scale, caches = caches),
        streams => say!(
            scale_factor_caches_2,
            test = test,
            scale = scale,
            streams = count_streams(streams),
            caches = caches
        ),
    }
}

/// `1 stream`, `2 streams`.
pub(super) fn count_streams(number: u32) -> Message {
    say!(n_streams, n = number)
}

/// `0`, `0 and 2`.
pub(super) fn numbers(numbers: &[u32]) -> Message {
    Message::list(
        &numbers.iter().map(|number| Message::verbatim(number.to_string())).collect::<Vec<_>>(),
    )
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
    Message::list(
        &numbers.iter().map(|query| Message::verbatim(format!("Q{query}"))).collect::<Vec<_>>(),
    )
}

/// The same, shorter where they are most: `all 22 queries`, `all but Q16 and Q22`.
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
        (false, _) => {
            say!(right_of_all_correct, right = count.right.to_string(), all = QUERIES.to_string())
        }
    };
    let wrong = Some(&count.wrong).filter(|numbers| !numbers.is_empty());
    let others = [
        wrong.map(|numbers| match is_all(numbers) {
            true => say!(all_wrong),
            false => say!(wrong_queries, queries = queries(numbers)),
        }),
        Some(&count.not_compared)
            .filter(|numbers| !is_none_compared && !numbers.is_empty())
            .map(|numbers| say!(not_compared_queries, queries = queries(numbers))),
        Some(&count.unanswered).filter(|numbers| !numbers.is_empty()).map(|numbers| {
            match is_all(numbers) {
                true => say!(all_without_an_answer),
                false => say!(without_an_answer, queries = queries(numbers)),
            }
        }),
    ];
    let all: Vec<Message> = [right].into_iter().chain(others.into_iter().flatten()).collect();
    Message::joined(&all, "; ", "；")
}

fn is_all(numbers: &[u8]) -> bool {
    numbers.len() == usize::from(QUERIES)
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
    let told = match speedup.bound {
        Some("at least") => say!(at_least_factor, factor = median),
        Some(_) => say!(at_most_factor, factor = median),
        None => Message::verbatim(median),
    };
    match speedup.is_spread {
        true => say!(
            factor_low_to_high,
            factor = told,
            low = format::plain(speedup.min),
            high = format::plain(speedup.max)
        ),
        false => told,
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
    let (experiment, target) = (experiment.clone(), Message::from(table.target));
    let setup = setup(&table.setup);
    let mut sentences = vec![match table.setup.test.as_str() {
        "throughput" | "performance" => say!(
            the_test_took,
            experiment = experiment,
            target = target,
            setup = setup,
            took = took
        ),
        _ => say!(
            the_22_queries_took,
            experiment = experiment,
            target = target,
            setup = setup,
            took = took
        ),
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
    let scales = unique(all().map(|facts| Message::verbatim(format::plain(facts.scale))).collect());
    let scales = Message::list(&scales);
    let parameters = unique(all().map(|facts| facts.parameters.clone()).collect());
    if !has_queries {
        sentences.push(say!(scale_factor_scales, scales = scales));
        return sentences;
    }
    sentences.push(say!(
        scale_factor_parameters_of_the_queries,
        scales = scales,
        parameters = match parameters.iter().all(Message::is_empty) {
            true => unknown(),
            false => Message::list(&parameters),
        }
    ));
    sentences.extend(order(trials));
    let mut bounds: Vec<f64> = all().filter_map(|facts| facts.timeout_s).collect();
    bounds.sort_by(f64::total_cmp);
    bounds.dedup();
    let bounds: Vec<Message> =
        bounds.iter().map(|bound| Message::verbatim(format::plain(*bound))).collect();
    sentences.push(match bounds.len() {
        0 => say!(no_query_is_given_up_however),
        _ => say!(a_query_is_given_up_after, bounds = Message::list(&bounds)),
    });
    sentences.push(say!(speed_ups_are_the_median_at));
    let mut seeds: Vec<u64> = trials.iter().map(|trial| trial.summary.seed).collect();
    seeds.sort_unstable();
    seeds.dedup();
    let seeds: Vec<Message> =
        seeds.iter().take(6).map(|seed| Message::verbatim(seed.to_string())).collect();
    sentences.push(say!(seed_seeds, seeds = Message::list(&seeds)));
    sentences
}

fn tested(name: &str, trials: &[&Trial]) -> Message {
    let own: Vec<&&Trial> = trials
        .iter()
        .filter(|trial| facts(trial).is_some_and(|facts| facts.test == name))
        .collect();
    let has_refresh =
        own.iter().any(|trial| facts(trial).is_some_and(|facts| !facts.refreshes.is_empty()));
    let streams = || {
        let streams = own.iter().map(|trial| Message::verbatim(trial.summary.workers.to_string()));
        Message::list(&unique(streams.collect()))
    };
    let executed = match (name, has_refresh) {
        ("refresh", _) => {
            return say!(pairs_of_refresh_functions_are_applied);
        }
        ("queries", _) => {
            say!(the_22_queries_are_executed_one)
        }
        ("power", true) => say!(in_a_power_test_one_session),
        ("power", false) => say!(in_a_power_test_one_session_executes),
        ("throughput", true) => say!(in_a_throughput_test_sessions_execute, streams = streams()),
        ("throughput", false) => {
            say!(in_a_throughput_test_sessions_execute_the, streams = streams())
        }
        ("performance", _) => say!(a_performance_test_is_runs, streams = streams()),
        (other, _) => say!(test_name, name = other),
    };
    let timed = say!(each_query_is_timed_whole_from);
    Message::sentences(&[executed, timed])
}

/// Number of the run, of the trial, and its degree.
type Turn = (usize, u32, u32);

/// The order in which the degrees were measured, by target.
fn order(trials: &[&Trial]) -> Vec<Message> {
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
                on_everything_ran_at_parallel_degree,
                target = target,
                degree = degree.to_string()
            ),
            _ => say!(on_the_trials_ran_at_parallel, target = target, degrees = numbers(&in_turn)),
        }
    };
    by_target.into_iter().map(sentence).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_compared_is_not_called_incorrect() {
        let all: Vec<u8> = (1..=QUERIES).collect();
        let none = AnswerCount { not_compared: all, ..AnswerCount::default() };
        let said = "none compared (there are no reference answers for this scale factor)";
        assert_eq!(answers(&none).to_string(), said);
        let known = AnswerCount { has_reference: true, ..none.clone() };
        assert_eq!(answers(&known).to_string(), "none compared");
        let cut = AnswerCount { not_compared: vec![1, 2], unanswered: vec![3], ..known };
        assert_eq!(answers(&cut).to_string(), "none compared; without an answer: Q3");
        let some = AnswerCount { right: 20, not_compared: vec![1, 2], ..none };
        assert_eq!(answers(&some).to_string(), "20 of 22 correct; not compared: Q1 and Q2");
    }
}
