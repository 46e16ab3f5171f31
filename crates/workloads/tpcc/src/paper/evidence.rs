//! What speaks for a trial: conditions before and after, the books, the ledger, the audit.

use super::words;
use crate::facts::{AuditLine, ConditionLine, ConditionState, TpccFacts};
use dyno_facts::Message;
use dyno_facts::{DataCheck, Verdict, say};
use dyno_report::Trial;
use dyno_report::outcomes::{Outcome, outcomes};

/// One condition over the trials of an experiment.
#[derive(Clone)]
pub(super) struct ConditionRow {
    /// `C1` to `C12` of clause 3.3.2, `X1` and on for further ones.
    pub(super) id: String,
    /// What has to hold.
    pub(super) rule: Message,
    /// Before the trials.
    pub(super) before: Vec<Outcome>,
    /// After them.
    pub(super) after: Vec<Outcome>,
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
            None => (Some(Verdict::NotMade), Some(words::no_condition())),
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

fn common_reason<'a>(outcomes: impl Iterator<Item = &'a mut Outcome>) -> Option<Message> {
    let mut judged: Vec<&mut Outcome> =
        outcomes.filter(|outcome| outcome.verdict.is_some()).collect();
    let reason = judged.first()?.evidence.clone()?;
    let is_same = |outcome: &&mut Outcome| {
        outcome.verdict == Some(Verdict::NotMade) && outcome.evidence.as_ref() == Some(&reason)
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
    pub(super) outcomes: Vec<Outcome>,
}

/// The books and the ledger.
pub(super) fn proofs(trials: &[&Trial]) -> Vec<Proof> {
    let made = |trial: &Trial, name: &str, absent: fn() -> Message| {
        let check = trial.summary.checks.iter().find(|check| check.name == name);
        match check {
            // The figures differ from trial to trial; they stand with the checks of each.
            Some(check) if check.verdict == Verdict::Passed && trials.len() > 1 => {
                (Some(Verdict::Passed), None)
            }
            Some(check) => (Some(check.verdict), found(&check.evidence)),
            None => (Some(Verdict::NotMade), Some(absent())),
        }
    };
    let proof = |what, name: &'static str, absent: fn() -> Message| Proof {
        what,
        outcomes: outcomes(trials, |trial| made(trial, name, absent)),
    };
    vec![
        proof(say!(books_what_was_acknowledged_by_district), DataCheck::BOOKS, words::no_books),
        proof(say!(ledger_every_acknowledged_order_is_found), TpccFacts::LEDGER, words::no_ledger),
    ]
}

/// The audit of a trial.
#[derive(Clone)]
pub(super) struct AuditTable {
    /// Label of the trial.
    pub(super) trial: String,
    /// Label of its target.
    pub(super) target: String,
    /// Lines whose observation lies within its bound.
    pub(super) passed: usize,
    /// Out of it.
    pub(super) failed: usize,
    /// Lines that could not be judged.
    pub(super) not_made: usize,
    /// Its lines; empty where it was not made.
    pub(super) lines: Vec<AuditRow>,
}

/// A figure of an audit.
#[derive(Clone)]
pub(super) struct AuditRow {
    /// What is observed.
    pub(super) name: Message,
    /// What was observed, with its unit.
    pub(super) observed: Message,
    /// What was expected.
    pub(super) expected: Message,
    /// How far from it chance may lead, or the range that is allowed.
    pub(super) bound: Message,
    /// Observations it rests on.
    pub(super) of: u64,
    /// Whether the observation lies within the bound.
    pub(super) verdict: Verdict,
}

impl From<&AuditLine> for AuditRow {
    fn from(line: &AuditLine) -> Self {
        AuditRow {
            name: line.name.clone(),
            observed: line.observed.clone(),
            expected: line.expected.clone(),
            bound: line.bound.clone(),
            of: line.of,
            verdict: line.verdict,
        }
    }
}

/// One table per trial.
pub(super) fn audits(trials: &[&Trial]) -> Vec<AuditTable> {
    let table = |trial: &&Trial| {
        let facts = trial.summary.own::<TpccFacts>();
        let lines: Vec<AuditRow> =
            facts.into_iter().flat_map(|facts| &facts.audit).map(AuditRow::from).collect();
        let count = |verdict| lines.iter().filter(|line| line.verdict == verdict).count();
        AuditTable {
            trial: trial.label.clone(),
            target: trial.target.clone(),
            passed: count(Verdict::Passed),
            failed: count(Verdict::Failed),
            not_made: count(Verdict::NotMade),
            lines,
        }
    };
    trials.iter().map(table).collect()
}
