//! How it was measured.

use super::{clauses, names, separated};
use crate::blocks::{Blocks, Span, TextLine, code};
use crate::evidence::{Experiment, Paper, Trial};
use crate::families::{Method, family_of};
use crate::format::{self, whole};
use crate::text::{Lang, Message};
use dyno_facts::say;

pub(super) fn blocks(paper: &Paper, _: Lang) -> Blocks {
    let mut blocks = Blocks::default();
    blocks.section("5", say!(method), "method");
    blocks.paragraph(Message::sentences(&of_all(paper)));
    for experiment in &paper.experiments {
        blocks.heading(3, "", &experiment.title, "");
        blocks.paragraph(Message::sentences(&of_experiment(paper, experiment)));
        blocks.paragraph(Message::sentences(&comparison(experiment)));
        blocks.paragraph(Message::sentences(&renewals(experiment)));
        if let Some(objective) = &experiment.objective {
            blocks.paragraph(say!(objective_of_the_search_for_the, objective = objective));
        }
        if !experiment.gates.is_empty() {
            let gates: Vec<Message> = experiment.gates.iter().map(Message::from).collect();
            blocks.paragraph(say!(gates_gates, gates = clauses(&gates)));
        }
        if !experiment.options.is_empty() {
            let options = experiment.options.iter();
            let options = options.map(|(name, value)| code(format!("{name}={value}")));
            let mut line: TextLine =
                vec![Span::plain(say!(options_of_the_workload)), Span::plain(" ")];
            line.extend(separated(options, " "));
            blocks.paragraph(line);
        }
        scripts(experiment, &mut blocks);
    }
    blocks.heading(3, "", say!(commands_as_they_were_given), "");
    paper.runs.iter().for_each(|run| blocks.code(&run.command));
    blocks
}

/// What is compared, and when repetition ends.
pub(super) fn comparison(experiment: &Experiment) -> Vec<Message> {
    let Some(facts) = &experiment.comparison else { return Vec::new() };
    let mut sentences = vec![
        say!(
            compared_with_baseline_candidates,
            baseline = &facts.baseline,
            candidates = names(&facts.candidates)
        ),
        say!(
            at_least_and_at_most_pairs,
            least = facts.stop.pairs_least.to_string(),
            most = facts.stop.pairs_most.to_string()
        ),
    ];
    sentences.extend(facts.stop.half_width.map(|share| {
        let percent = format::percent(share);
        say!(repetition_ends_when_the_95_percent, percent = percent)
    }));
    sentences.extend(
        facts
            .stop
            .budget_s
            .map(|seconds| say!(it_also_ends_after_s, seconds = format::whole(seconds))),
    );
    if !facts.data_state.is_empty() {
        let state = match facts.data_state.as_str() {
            "untouched" => say!(data_untouched),
            "reloaded" => say!(data_reloaded),
            "grows" => say!(data_grown),
            command => Message::verbatim(command),
        };
        sentences.push(say!(the_data_before_each_trial, state = state));
    }
    sentences
}

/// What is made anew before pairs, and what counts as one then.
pub(super) fn renewals(experiment: &Experiment) -> Vec<Message> {
    let (restart, reload) = (experiment.restart_each, experiment.reload_each);
    let told = |each: u32, of_each: fn() -> Message, of_some: fn(String) -> Message| match each {
        0 => None,
        1 => Some(of_each()),
        each => Some(of_some(each.to_string())),
    };
    let mut sentences: Vec<Message> = [
        told(reload, || say!(data_restored_each_pair), |n| say!(data_restored_each, n = n)),
        told(
            restart,
            || say!(servers_restarted_each_pair),
            |n| say!(servers_restarted_each, n = n),
        ),
    ]
    .into_iter()
    .flatten()
    .collect();
    let unit = restart.max(reload);
    if unit > 1 && experiment.comparison.is_some() {
        sentences.push(say!(pairs_of_a_unit_count_as_one, n = unit.to_string()));
    }
    sentences
}

fn scripts(experiment: &Experiment, blocks: &mut Blocks) {
    for script in &experiment.scripts {
        let title = match experiment.scripts.len() {
            1 => say!(script_name, name = &script.name),
            _ => say!(
                script_name_weight_weight,
                name = &script.name,
                weight = script.weight.to_string()
            ),
        };
        let mut inner = Blocks::default();
        if !script.sha256.is_empty() {
            inner.paragraph(say!(script_sha256, sha256 = &script.sha256));
        }
        inner.code(&script.text);
        blocks.details(title, false, inner);
    }
}

/// How transactions arrive, how long, what latency means.
fn of_experiment(paper: &Paper, experiment: &Experiment) -> Vec<Message> {
    let trials: Vec<&Trial> = paper.trials_in(experiment).collect();
    let trials = trials.as_slice();
    let Some(first) = trials.first() else {
        return vec![say!(no_trial_of_this_experiment_has)];
    };
    if let Some(Method::Whole(own)) = family_of(experiment).and_then(|family| family.method(trials))
    {
        return own;
    }
    let all = |value: fn(&Trial) -> f64| trials.iter().map(|trial| value(trial)).collect();
    let warm_s = range(all(|trial| trial.summary.warmup_s), format::plain);
    let window_s = range(all(|trial| trial.summary.window_s), format::plain);
    let workers = range(all(|trial| f64::from(trial.summary.workers)), whole);
    let workers = match workers == "1" {
        true => say!(n_1_worker),
        false => say!(n_workers, n = workers),
    };
    let test = if experiment.test.is_empty() { &first.summary.test } else { &experiment.test };
    let mut sentences = vec![match experiment.planned_window_s {
        Some(planned_s) => say!(
            with_s_of_warm_up_then,
            test = test,
            workers = workers,
            warm = warm_s,
            window = window_s,
            planned = format::plain(planned_s),
        ),
        None => say!(
            with_s_of_warm_up_then_a,
            test = test,
            workers = workers,
            warm = warm_s,
            window = window_s,
        ),
    }];
    sentences.push(say!(seed_seeds, seeds = seeds(trials)));
    sentences.extend(of_every_trial(paper, experiment));
    sentences
}

/// When transactions begin and what latency means, in sentences that experiments of one kind share.
pub(super) fn of_every_trial(paper: &Paper, experiment: &Experiment) -> Vec<Message> {
    let trials: Vec<&Trial> = paper.trials_in(experiment).collect();
    let mut sentences = vec![say!(connecting_preparing_and_warm_up_lie)];
    let rates: Vec<f64> = trials.iter().filter_map(|trial| trial.summary.rate_per_s).collect();
    match family_of(experiment).and_then(|family| family.method(&trials)) {
        _ if trials.is_empty() => return Vec::new(),
        Some(Method::Whole(own)) => return own,
        Some(Method::Arrival(own)) => sentences.extend(own),
        None if rates.is_empty() => {
            sentences.push(say!(closed_loop_a_worker_begins_its));
            sentences.push(say!(latency_is_service_time_from_the));
        }
        None => {
            let rate = range(rates, format::plain);
            sentences.push(say!(open_loop_transactions_fall_due_at, rate = rate));
            sentences.push(say!(latency_is_counted_from_the_due));
        }
    }
    sentences
}

/// What holds for all experiments: order of the trials, the unit of statistics, percentiles.
pub(super) fn of_all(paper: &Paper) -> Vec<Message> {
    let mut sentences = Vec::new();
    let has_transactions = paper.trials.iter().any(|trial| !trial.summary.is_pass());
    if has_transactions || paper.trials.is_empty() {
        sentences.push(say!(counted_are_transactions_whose_commit_was));
        sentences.push(say!(statements_of_failed_attempts_are_counted));
        sentences.push(say!(a_retry_belongs_to_its_transaction));
    }
    if paper.trials.iter().any(|trial| trial.summary.data.is_some()) {
        sentences.push(say!(the_size_of_the_data_is));
        sentences.push(say!(reads_and_writes_are_select_insert));
    }
    if paper.trials.len() > 1 {
        sentences.push(say!(the_unit_of_all_statistics_is));
    }
    if paper.experiments.iter().any(|experiment| experiment.comparison.is_some()) {
        sentences.push(say!(trials_of_what_is_compared_run));
        sentences.extend(estimators(paper));
    }
    sentences
}

/// How ratios are judged, by the methods that were used.
fn estimators(paper: &Paper) -> Vec<Message> {
    let least_pairs = |is_anytime: bool| {
        let own = paper.verdicts.comparisons.iter();
        let own = own.filter(|of| of.stop.is_until_decided == is_anytime);
        let least: Vec<f64> = own.map(|of| of.least_pairs() as f64).collect();
        (!least.is_empty()).then(|| range(least, whole))
    };
    let by_ranks = least_pairs(false).map(|least| say!(ratios_are_by_ranks, least = least));
    let anytime = least_pairs(true).map(|least| say!(ratios_are_judged_anytime, least = least));
    let mut sentences: Vec<Message> = by_ranks.into_iter().chain(anytime).collect();
    if !sentences.is_empty() {
        sentences.push(say!(p_values_are_corrected));
    }
    sentences
}

/// One value, or the lowest and the highest.
fn range(values: Vec<f64>, text: fn(f64) -> String) -> Message {
    let low = text(values.iter().copied().fold(f64::INFINITY, f64::min));
    let high = text(values.iter().copied().fold(0.0, f64::max));
    match low == high {
        true => Message::verbatim(low),
        false => say!(low_to_high, low = low, high = high),
    }
}

/// The first few.
fn seeds(trials: &[&Trial]) -> Message {
    const MOST: usize = 6;
    let mut seeds: Vec<u64> = trials.iter().map(|trial| trial.summary.seed).collect();
    seeds.sort_unstable();
    seeds.dedup();
    let seeds: Vec<Message> =
        seeds.iter().take(MOST).map(|seed| Message::verbatim(seed.to_string())).collect();
    Message::list(&seeds)
}
