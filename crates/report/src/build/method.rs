//! How an experiment was measured, in sentences.

use crate::format::{self, whole};
use crate::model::{Paper, Trial};
use crate::say;
use crate::text::Text;
use crate::{tpcc, tpch};
use dyno_store::ExperimentFacts;

/// How transactions arrive, how long, what latency means.
pub(super) fn sentences(facts: &ExperimentFacts, trials: &[&Trial]) -> Vec<Text> {
    let Some(first) = trials.first() else {
        return vec![say!("No trial of this experiment has been executed.")];
    };
    if let Some(own) = tpch::method(trials) {
        return own;
    }
    let all = |value: fn(&Trial) -> f64| trials.iter().map(|trial| value(trial)).collect();
    let warm_s = range(all(|trial| trial.summary.warmup_s), format::plain);
    let window_s = range(all(|trial| trial.summary.window_s), format::plain);
    let workers = range(all(|trial| f64::from(trial.summary.workers)), whole);
    let workers = match workers == "1" {
        true => say!("1 worker"),
        false => say!("{n} workers", n = workers),
    };
    let test = if facts.test.is_empty() { &first.summary.test } else { &facts.test };
    let mut sentences = vec![match facts.window_s {
        Some(planned_s) => say!(
            "{test} with {workers}: {warm} s of warm-up, then a measured window of {window} s ({planned} s planned).",
            test = test,
            workers = workers,
            warm = warm_s,
            window = window_s,
            planned = format::plain(planned_s),
        ),
        None => say!(
            "{test} with {workers}: {warm} s of warm-up, then a measured window of {window} s.",
            test = test,
            workers = workers,
            warm = warm_s,
            window = window_s,
        ),
    }];
    sentences.push(say!("Connecting, preparing and warm-up lie outside of the window."));
    sentences.push(say!("Seed {seeds}.", seeds = seeds(trials)));
    let rates: Vec<f64> = trials.iter().filter_map(|trial| trial.summary.rate_per_s).collect();
    if let Some(own) = tpcc::method(trials) {
        sentences.extend(own);
    } else if rates.is_empty() {
        sentences.push(say!(
            "Closed loop: a worker begins its next transaction as soon as the last one has ended."
        ));
        sentences.push(say!("Latency is service time, from the begin of a transaction to its end, retries included; requests that were not sent while the server stood still have none."));
    } else {
        sentences.push(say!(
            "Open loop: transactions fall due at random times (Poisson) at {rate} per second, whether earlier ones have ended or not.",
            rate = range(rates, format::plain),
        ));
        sentences.push(say!("Latency is counted from the due time to the end, retries included, so that a stall shows in full."));
    }
    sentences
}

/// What holds for all experiments: order of the trials, the unit of statistics, percentiles.
pub(super) fn of_all(paper: &Paper) -> Vec<Text> {
    let mut sentences = Vec::new();
    let has_transactions = paper.trials.iter().any(|trial| trial.summary.tpch.is_none());
    if has_transactions || paper.trials.is_empty() {
        sentences.push(say!("Counted are transactions whose commit was acknowledged within the measured window, and the statements of transactions that did not fail."));
        sentences.push(say!("Statements of failed attempts are counted apart."));
        sentences.push(say!("A retry belongs to its transaction and to its latency."));
    }
    if paper.trials.iter().any(|trial| trial.summary.data.is_some()) {
        sentences.push(say!("The size of the data is that of all tables of the data set with their indexes, as the server measures it."));
        sentences.push(say!("Reads and writes are SELECT, INSERT, UPDATE and DELETE, without BEGIN, END and the like."));
    }
    if paper.trials.len() > 1 {
        sentences.push(say!("The unit of all statistics is the trial: noise within a run says nothing about the noise between runs. Repeats are shown as their median with the lowest and the highest."));
    }
    if paper.experiments.iter().any(|experiment| experiment.comparison.is_some()) {
        sentences.push(say!("Trials of what is compared run in pairs, in an order that is drawn anew inside each pair, so that drift of the machines meets both alike."));
        sentences.push(say!("The ratio of two targets is the mean of the logarithms of the ratios of the pairs, with a t interval of 95 %; p values are corrected by Holm over all that is judged. Fewer than 4 pairs carry no verdict."));
    }
    sentences
}

/// One value, or the lowest and the highest.
fn range(values: Vec<f64>, text: fn(f64) -> String) -> Text {
    let low = text(values.iter().copied().fold(f64::INFINITY, f64::min));
    let high = text(values.iter().copied().fold(0.0, f64::max));
    match low == high {
        true => Text::same(low),
        false => say!("{low} to {high}", low = low, high = high),
    }
}

/// The first few.
fn seeds(trials: &[&Trial]) -> Text {
    const MOST: usize = 6;
    let mut seeds: Vec<u64> = trials.iter().map(|trial| trial.summary.seed).collect();
    seeds.sort_unstable();
    seeds.dedup();
    let seeds: Vec<Text> =
        seeds.iter().take(MOST).map(|seed| Text::same(seed.to_string())).collect();
    Text::list(&seeds)
}
