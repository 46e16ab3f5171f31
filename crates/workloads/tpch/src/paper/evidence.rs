//! What stands beside the figures: answers, failures, caches, formulas, refresh functions, rewrites
//! and deviations.

use super::{facts, words};
use crate::facts::{AnswerFacts, QueryFacts, QueryOutcome, RefreshFacts, TpchFacts};
use dyno_facts::CheckVerdict;
use dyno_facts::Message;
use dyno_report::outcomes::{CountedOutcome, Judged, outcomes};
use dyno_report::{Point, Trial};

/// An answer that differs from the one that it was held against.
pub(super) struct WrongAnswer<'a> {
    /// Labels of the trials in which it differs so.
    pub(super) trials: Vec<&'a str>,
    /// Label of the target.
    pub(super) target: &'a str,
    /// 1 to 22.
    pub(super) query: u8,
    pub(super) answer: &'a AnswerFacts,
}

/// The wrong answers; those that differ alike in several trials are told once.
pub(super) fn wrong<'a>(trials: &[&'a Trial]) -> Vec<WrongAnswer<'a>> {
    let mut rows: Vec<WrongAnswer<'a>> = Vec::new();
    for (trial, _, query) in executions(trials) {
        let wrong = query.answer.as_ref().filter(|own| own.verdict == CheckVerdict::Failed);
        let Some(answer) = wrong else { continue };
        let (label, target, query) = (trial.label.as_str(), trial.target.as_str(), query.query);
        let is_alike = |row: &&mut WrongAnswer<'_>| {
            (row.target, row.query, row.answer) == (target, query, answer)
        };
        match rows.iter_mut().find(is_alike) {
            Some(known) if known.trials.contains(&label) => {}
            Some(known) => known.trials.push(label),
            None => rows.push(WrongAnswer { trials: vec![label], target, query, answer }),
        }
    }
    rows.sort_by_key(|row| row.query);
    rows
}

fn executions<'a>(
    trials: &[&'a Trial],
) -> impl Iterator<Item = (&'a Trial, &'a TpchFacts, &'a QueryFacts)> {
    let with_facts = trials.iter().copied().filter_map(|trial| Some((trial, facts(trial)?)));
    with_facts
        .flat_map(|(trial, facts)| facts.queries.iter().map(move |query| (trial, facts, query)))
}

/// Executions of queries without an answer.
pub(super) fn failures<'a>(
    trials: &[&'a Trial],
) -> Vec<(&'a Trial, &'a TpchFacts, &'a QueryFacts)> {
    let is_one = |query: &QueryFacts| query.outcome != QueryOutcome::Answered;
    executions(trials).filter(|(_, _, query)| is_one(query)).collect()
}

/// What the caches held at one point.
#[derive(Clone)]
pub(super) struct CacheRow {
    /// Label of the target.
    pub(super) target: String,
    /// The parallel degree asked for.
    pub(super) degree: u32,
    /// `warm`, `cold`, `as found` or unknown.
    pub(super) state: Message,
    /// What was done and what proves it.
    pub(super) outcomes: Vec<CountedOutcome>,
}

pub(super) fn caches(trials: &[&Trial], points: &[Point]) -> Vec<CacheRow> {
    let row = |point: &Point| {
        let setup = super::setup_of(trials, point)?;
        let is_own =
            |trial: &&Trial| point.trials.contains(&trial.label) && super::is_measured(trial);
        let own: Vec<&Trial> = trials.iter().copied().filter(is_own).collect();
        if own.is_empty() {
            return None;
        }
        let told = |lines: &[Message]| (!lines.is_empty()).then(|| Message::sentences(lines));
        let judged = |trial: &Trial| -> Judged {
            match facts(trial).map(|facts| (facts.cache.verdict, told(&facts.cache.evidence))) {
                Some((None, None)) | None => (Some(CheckVerdict::NotMade), Some(words::no_cache())),
                Some(judged) => judged,
            }
        };
        Some(CacheRow {
            target: point.target.clone(),
            degree: setup.degree,
            state: words::cache(&setup.cache),
            outcomes: outcomes(&own, judged),
        })
    };
    points.iter().filter_map(row).collect()
}

/// How the metrics of trials were computed, with their numbers.
pub(super) fn formulas<'a>(trials: &[&'a Trial]) -> Vec<(&'a Trial, &'a TpchFacts, &'a [Message])> {
    let row = |trial: &&'a Trial| {
        let facts = facts(trial)?;
        let formulas = facts.metrics.as_ref()?.formulas.as_slice();
        (!formulas.is_empty()).then_some((*trial, facts, formulas))
    };
    trials.iter().filter_map(row).collect()
}

/// The refresh functions.
pub(super) fn refreshes<'a>(
    trials: &[&'a Trial],
) -> Vec<(&'a Trial, &'a TpchFacts, &'a RefreshFacts)> {
    let of_trial = |trial: &&'a Trial| {
        let (trial, facts) = (*trial, facts(trial));
        let own = facts.into_iter();
        own.flat_map(move |facts| facts.refreshes.iter().map(move |one| (trial, facts, one)))
    };
    trials.iter().flat_map(of_trial).collect()
}

/// A sentence, and the targets that it holds for.
#[derive(Clone)]
pub(super) struct Told {
    /// Labels of the targets; `None` where it holds for all.
    pub(super) targets: Option<Message>,
    pub(super) sentence: Message,
}

impl Told {
    pub(super) fn of_all(sentence: Message) -> Self {
        Told { targets: None, sentence }
    }
}

/// The sentences of all trials, each once, in their order.
pub(super) fn told(trials: &[&Trial], of: fn(&TpchFacts) -> &Vec<Message>) -> Vec<Told> {
    let mut known: Vec<(&Message, Vec<Message>)> = Vec::new();
    let mut targets: Vec<&String> = Vec::new();
    for trial in trials {
        if !targets.contains(&&trial.target) {
            targets.push(&trial.target);
        }
        let label = Message::from(&trial.target);
        for sentence in facts(trial).map(of).into_iter().flatten() {
            match known.iter_mut().find(|(other, _)| *other == sentence) {
                Some((_, labels)) if labels.contains(&label) => {}
                Some((_, labels)) => labels.push(label.clone()),
                None => known.push((sentence, vec![label.clone()])),
            }
        }
    }
    let told = |(sentence, labels): (&Message, Vec<Message>)| Told {
        targets: (labels.len() < targets.len()).then(|| Message::list(&labels)),
        sentence: sentence.clone(),
    };
    known.into_iter().map(told).collect()
}
