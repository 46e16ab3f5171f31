//! Every sentence that a paper says of TPC-H alone.

use super::tables::{Column, Speedup, TpchTable, verdict};
use super::{QUERIES, TpchTrial};
use crate::check::KNOWN_SCALES;
use crate::facts::{CacheFacts, QueryOutcome, TpchFacts};
use dyno_facts::{CheckVerdict, Message, say};
use dyno_report::format::{self, unique};
use std::collections::BTreeSet;

/// The name of a test.
fn test(name: &str) -> Message {
    match name {
        "queries" => say!(q1_to_q22_in_order),
        "power" => say!(power_test),
        "throughput" => say!(throughput_test),
        "refresh" => say!(refresh_functions),
        "performance" => say!(performance_test),
        other => other.into(),
    }
}

/// Contents of the caches, in a word.
pub(super) fn proven_cache(facts: &CacheFacts) -> Message {
    match facts.verdict {
        Some(CheckVerdict::Failed) if facts.state == "warm" => say!(not_warm),
        _ => cache(&facts.state),
    }
}

/// The state of the caches in words.
pub(super) fn cache(state: &str) -> Message {
    match state {
        "" => say!(unknown),
        "warm" => say!(warm),
        "cold" => say!(cold),
        "as found" => say!(as_found),
        other => other.into(),
    }
}

/// The conditions that the columns of a table share.
pub(super) fn setup(facts: &TpchFacts, streams: u32) -> Message {
    let (test, scale) = (test(&facts.test), format::plain(facts.scale));
    let caches = proven_cache(&facts.cache);
    if streams == 1 {
        return say!(scale_factor_caches, test, scale, caches);
    }
    let streams = say!(n_streams, n = streams);
    say!(setup_with_streams, test, scale, streams, caches)
}

/// A list of numbers: `0`, `0 and 2`.
pub(super) fn numbers<T: ToString>(numbers: impl IntoIterator<Item = T>) -> Message {
    let words = numbers.into_iter().map(|number| Message::verbatim(number.to_string()));
    Message::list(&words.collect::<Vec<_>>())
}

/// Bounds at which queries of these trials were given up, such as `60 and 120`; `None` if there was none.
pub(super) fn bounds<'a>(trials: impl Iterator<Item = &'a TpchFacts>) -> Option<Message> {
    let mut bounds: Vec<f64> = trials.filter_map(|facts| facts.timeout_s).collect();
    bounds.sort_by(f64::total_cmp);
    bounds.dedup();
    (!bounds.is_empty()).then(|| numbers(bounds.into_iter().map(format::plain)))
}

/// The values in the queries of trials; `None` if no trial says.
pub(super) fn parameters<'a>(trials: impl Iterator<Item = &'a TpchFacts>) -> Option<Message> {
    let texts = trials.map(|facts| facts.parameters.clone()).filter(|text| !text.is_empty());
    let texts = unique(texts.collect());
    (!texts.is_empty()).then(|| Message::list(&texts))
}

/// `main at degree 2`.
pub(super) fn at_degree(column: &Column<'_>) -> Message {
    let (target, degree) = (&column.point.target, column.degree.to_string());
    say!(target_at_degree_degree, target, degree)
}

/// Settings of the degrees, with remarks.
pub(super) fn degrees_set(tables: &[TpchTable<'_>]) -> Vec<Message> {
    let columns = tables.iter().flat_map(|table| &table.columns);
    let sentences = columns.filter_map(|column| {
        let degree = &column.facts().next()?.degree;
        let statements = degree.statements.join("; ");
        let set = match (statements.is_empty(), degree.rule.is_empty()) {
            (true, _) => None,
            (false, true) => Some(say!(set_by_statements, statements)),
            (false, false) => Some(say!(set_by_rule, rule = &degree.rule, statements)),
        };
        let remarks =
            unique(column.facts().filter_map(|facts| facts.degree.remark.clone()).collect());
        let sentences: Vec<Message> = set.into_iter().chain(remarks).collect();
        let (target, degree) = (&column.point.target, column.degree.to_string());
        let text = Message::sentences(&sentences);
        let line = say!(target_degree_degree_told, target, degree, told = text);
        (!sentences.is_empty()).then_some(line)
    });
    unique(sentences.collect())
}

/// `Q3`, `Q3 and Q11`.
pub(super) fn queries(numbers: impl IntoIterator<Item = u8>) -> Message {
    self::numbers(numbers.into_iter().map(|query| format!("Q{query}")))
}

/// Compares the answers of trials: `21 of 22 correct; wrong: Q11`.
pub(crate) fn answers<'a>(trials: impl Iterator<Item = &'a TpchFacts> + Clone) -> Message {
    let verdicts =
        [Some(CheckVerdict::Passed), Some(CheckVerdict::Failed), Some(CheckVerdict::NotMade), None];
    let [right, wrong, not_compared, unanswered]: [Vec<u8>; 4] = verdicts.map(|wanted| {
        (1..=QUERIES).filter(|query| verdict(trials.clone(), *query) == wanted).collect()
    });
    let right = right.len();
    let is_known = trials.clone().any(|facts| KNOWN_SCALES.contains(&facts.scale));
    let is_none_compared = right == 0 && wrong.is_empty() && !not_compared.is_empty();
    let mut parts = vec![match (is_none_compared, is_known) {
        (true, false) => say!(none_compared),
        (true, true) => say!(none_compared_otherwise),
        (false, true) => say!(right_of_all_correct, right, all = QUERIES),
        (false, false) => say!(right_of_all_agree, right, all = QUERIES),
    }];
    if !wrong.is_empty() {
        let queries = queries(wrong);
        parts.push(if is_known {
            say!(wrong_queries, queries)
        } else {
            say!(queries_differ, queries)
        });
    }
    if !is_none_compared && !not_compared.is_empty() {
        parts.push(say!(not_compared_queries, queries = queries(not_compared)));
    }
    if !unanswered.is_empty() {
        parts.push(say!(without_an_answer, queries = queries(unanswered)));
    }
    Message::joined(&parts, "; ", "；")
}

/// The failure of a query that was not answered; `None` if it was.
pub(super) fn failure(outcome: &QueryOutcome, seconds: f64) -> Option<Message> {
    match outcome {
        QueryOutcome::Answered => None,
        QueryOutcome::TimedOut => {
            Some(say!(given_up_after_s_which_count, seconds = format::plain(seconds)))
        }
        QueryOutcome::Failed(why) => Some(say!(failed_why, why)),
        QueryOutcome::Interrupted => Some(say!(interrupted_without_time)),
    }
}

/// A step of a load; all without a name.
pub(super) fn step(name: &str) -> Message {
    match name {
        "" => say!(all_steps),
        "create" => say!(create_the_tables),
        "load" => say!(load_the_rows),
        "primary-keys" => say!(primary_keys),
        "foreign-keys" => say!(foreign_keys),
        "indexes" => say!(secondary_indexes),
        "analyze" => say!(statistics_for_the_optimizer),
        "warm-up" => say!(warm_up_count_every_index),
        other => other.into(),
    }
}

/// `1.57 (1.41 to 1.72)`, `at least 3.2`.
pub(super) fn speedup(Speedup { factor, bound }: Speedup) -> Message {
    let [min, median, max] = [factor.min, factor.median, factor.max].map(format::plain);
    let text = match bound {
        "≥" => say!(at_least_factor, factor = median),
        "≤" => say!(at_most_factor, factor = median),
        _ => median.into(),
    };
    if factor.min == factor.max {
        return text;
    }
    say!(factor_low_to_high, factor = text, low = min, high = max)
}

/// A table in a sentence or two.
pub(super) fn best(experiment: &Message, table: &TpchTable<'_>) -> Message {
    let totals = table.columns.iter().map(|column| {
        let degree = column.degree.to_string();
        let seconds = column.total_s().map(|total| format::plain(total.median));
        match (seconds, column.degree) {
            (Some(seconds), 0) => say!(s_without_parallel_workers, seconds),
            (None, 0) => say!(no_total_without_parallel_workers),
            (Some(seconds), _) => say!(s_at_degree, seconds, degree),
            (None, _) => say!(no_total_incomplete, degree),
        }
    });
    let mut took = Message::list(&totals.collect::<Vec<_>>());
    let last = table.columns.len() - 1;
    if let Some(faster) = table.speedup(last, Column::total_s) {
        let [first, degree] = [0, last].map(|place| table.columns[place].degree.to_string());
        took = if faster.factor.max < 0.995 && faster.bound.is_empty() {
            let percent = format!("{:.0}", 100.0 * (1.0 / faster.factor.median - 1.0));
            say!(longer_at_degree_than, totals = took, percent, degree, first)
        } else {
            let factor = speedup(faster);
            say!(times_as_fast_at_degree_as, totals = took, factor, degree, first)
        };
    }
    let (target, setup) = (table.target, setup(table.setup, table.streams));
    let mut sentences = vec![say!(table_took, experiment, target, setup, took)];
    let given_up: BTreeSet<u8> = table.columns.iter().flat_map(Column::penalized).collect();
    if !given_up.is_empty() {
        sentences.push(say!(given_up_at_the_bound, queries = queries(given_up)));
    }
    let counts = table.columns.iter().map(|column| answers(column.facts()));
    let counts = unique(counts.collect());
    sentences.push(say!(answers_answers, answers = Message::joined(&counts, " and ", "；")));
    Message::sentences(&sentences)
}

/// Returns sentences on the tests, scale factor, parameters, time limit, speed-up and seeds; without queries only on
/// tests and scale factor.
pub(super) fn method(trials: &[TpchTrial<'_>]) -> Vec<Message> {
    let all_facts = trials.iter().map(|(_, facts)| *facts);
    let tests = unique(all_facts.clone().map(|facts| facts.test.as_str()).collect());
    let mut sentences: Vec<Message> =
        tests.iter().map(|name| describe_test(name, trials)).collect();
    let scales = all_facts.clone().map(|facts| format::plain(facts.scale));
    let scales = numbers(unique(scales.collect()));
    if all_facts.clone().all(|facts| facts.queries.is_empty()) {
        sentences.push(say!(scale_factor_scales, scales));
        return sentences;
    }
    let parameters = parameters(all_facts.clone()).unwrap_or_else(|| say!(unknown));
    sentences.push(say!(scale_factor_parameters_of_the_queries, scales, parameters));
    sentences.push(match bounds(all_facts) {
        None => say!(no_query_is_given_up_however),
        Some(bounds) => say!(a_query_is_given_up_after, bounds),
    });
    sentences.push(say!(speed_up_definition));
    let seeds: BTreeSet<u64> = trials.iter().map(|(trial, _)| trial.summary.seed).collect();
    sentences.push(say!(seed_seeds, seeds = numbers(seeds.iter().take(6))));
    sentences
}

fn describe_test(name: &str, trials: &[TpchTrial<'_>]) -> Message {
    let test_trials = trials.iter().filter(|(_, facts)| facts.test == name);
    let has_refresh = test_trials.clone().any(|(_, facts)| !facts.refreshes.is_empty());
    let streams = numbers(unique(test_trials.map(|(trial, _)| trial.summary.workers).collect()));
    let executed = match (name, has_refresh) {
        ("refresh", _) => return say!(pairs_of_refresh_functions_are_applied),
        ("queries", _) => say!(the_22_queries_are_executed_one),
        ("power", true) => say!(in_a_power_test_one_session),
        ("power", false) => say!(in_a_power_test_one_session_executes),
        ("throughput", true) => say!(in_a_throughput_test_sessions_execute, streams),
        ("throughput", false) => say!(throughput_test_without_refresh, streams),
        ("performance", _) => say!(a_performance_test_is_runs, streams),
        (other, _) => say!(test_name, name = other),
    };
    Message::sentences(&[executed, say!(query_timing_definition)])
}
