//! What speaks for a trial: conditions before and after, the books, the ledger, the audit.

use super::words;
use crate::facts::{ConditionLine, ConditionState, TpccFacts};
use dyno_facts::Message;
use dyno_facts::{CheckVerdict, DataCheck, say};
use dyno_report::Trial;
use dyno_report::outcomes::{CountedOutcome, outcomes};

/// One condition over the trials of an experiment.
#[derive(Clone)]
pub(super) struct ConditionRow {
    /// `C1` to `C12` of clause 3.3.2, `X1` and on for further ones.
    pub(super) id: String,
    /// What has to hold.
    pub(super) rule: Message,
    /// Before the trials.
    pub(super) before: Vec<CountedOutcome>,
    /// After them.
    pub(super) after: Vec<CountedOutcome>,
}

/// Every condition that some trial has recorded.
pub(super) fn conditions(trials: &[&Trial]) -> Vec<ConditionRow> {
    let lines = |trial: &Trial| -> Vec<ConditionLine> {
        trial.summary.own::<TpccFacts>().map(|facts| facts.conditions.clone()).unwrap_or_default()
    };
    let mut known: Vec<ConditionLine> = Vec::new();
    for line in trials.iter().flat_map(|trial| lines(trial)) {
        if !known.iter().any(|other| other.id == line.id) {
            known.push(line);
        }
    }
    let state =
        |trial: &Trial, id: &str, of: fn(ConditionLine) -> Option<ConditionState>| match lines(
            trial,
        )
        .into_iter()
        .find(|line| line.id == id)
        .map(of)
        {
            Some(Some(state)) => (Some(state.verdict), found(&state.evidence)),
            Some(None) => (None, Some(words::need_not_hold())),
            None => (Some(CheckVerdict::NotMade), Some(words::no_condition())),
        };
    let row = |line: ConditionLine| ConditionRow {
        before: outcomes(trials, |trial| state(trial, &line.id, |line| line.before)),
        after: outcomes(trials, |trial| state(trial, &line.id, |line| line.after)),
        id: line.id,
        rule: line.rule.clone(),
    };
    known.into_iter().map(row).collect()
}

/// Evidence as it was stored.
fn found(evidence: &Message) -> Option<Message> {
    (!evidence.is_empty()).then(|| evidence.clone())
}

/// Where no condition was checked at a moment, and for one reason, that is said once: the sentences,
/// and the reason is taken out of the rows.
pub(super) fn common_reasons(rows: &mut [ConditionRow]) -> Option<Message> {
    let before = common_reason(rows.iter_mut().flat_map(|row| &mut row.before));
    let after = common_reason(rows.iter_mut().flat_map(|row| &mut row.after));
    let sentences: Vec<Message> = [
        before.map(|reason| say!(before_not_made, reason = reason)),
        after.map(|reason| say!(after_not_made, reason = reason)),
    ]
    .into_iter()
    .flatten()
    .collect();
    (!sentences.is_empty()).then(|| Message::sentences(&sentences))
}

fn common_reason<'a>(outcomes: impl Iterator<Item = &'a mut CountedOutcome>) -> Option<Message> {
    let mut judged: Vec<&mut CountedOutcome> =
        outcomes.filter(|outcome| outcome.verdict.is_some()).collect();
    let reason = judged.first()?.evidence.clone()?;
    let is_same = |outcome: &&mut CountedOutcome| {
        outcome.verdict == Some(CheckVerdict::NotMade) && outcome.evidence.as_ref() == Some(&reason)
    };
    let is_common = judged.len() > 1 && judged.iter().all(is_same);
    if is_common {
        judged.iter_mut().for_each(|outcome| outcome.evidence = None);
    }
    is_common.then_some(reason)
}

/// A comparison of what was acknowledged with what the database holds.
#[derive(Clone)]
pub(super) struct Proof {
    /// What is compared.
    pub(super) what: Message,
    /// How that ended.
    pub(super) outcomes: Vec<CountedOutcome>,
}

/// The books and the ledger.
pub(super) fn proofs(trials: &[&Trial]) -> Vec<Proof> {
    let made = |trial: &Trial, name: &str, absent: fn() -> Message| {
        let check = trial.summary.checks.iter().find(|check| check.name == name);
        match check {
            // The figures differ from trial to trial; they stand with the checks of each.
            Some(check) if check.verdict == CheckVerdict::Passed && trials.len() > 1 => {
                (Some(CheckVerdict::Passed), None)
            }
            Some(check) => (Some(check.verdict), found(&check.evidence)),
            None => (Some(CheckVerdict::NotMade), Some(absent())),
        }
    };
    let proof = |what, name: &'static str, absent: fn() -> Message| Proof {
        what,
        outcomes: outcomes(trials, |trial| made(trial, name, absent)),
    };
    vec![
        proof(say!(books_what_was_acknowledged_by_district), DataCheck::BOOKS, words::no_books),
        proof(say!(ledger_every_acknowledged_order_is_found), DataCheck::LEDGER, words::no_ledger),
    ]
}
