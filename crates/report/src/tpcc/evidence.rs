//! What speaks for a trial: conditions before and after, the books, the ledger, the audit.

use super::words;
use crate::evidence::Trial;
use crate::outcomes::{Outcome, outcomes};
use crate::text::Message;
use dyno_facts::{DataCheck, Verdict, say};
use dyno_tpcc::facts::{AuditLine, ConditionLine, ConditionState, TpccFacts};
use serde::Serialize;

/// One condition over the trials of an experiment.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct ConditionRow {
    /// `C1` to `C12` of clause 3.3.2, `X1` and on for further ones.
    pub id: String,
    /// What has to hold.
    pub rule: Message,
    /// Before the trials.
    pub before: Vec<Outcome>,
    /// After them.
    pub after: Vec<Outcome>,
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
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Proof {
    /// What is compared.
    pub what: Message,
    /// How that ended.
    pub outcomes: Vec<Outcome>,
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
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct AuditTable {
    /// Label of the trial.
    pub trial: String,
    /// Label of its target.
    pub target: String,
    /// Lines whose observation lies within its bound.
    pub passed: usize,
    /// Out of it.
    pub failed: usize,
    /// Lines that could not be judged.
    pub not_made: usize,
    /// Its lines; empty where it was not made.
    pub lines: Vec<AuditRow>,
}

/// A figure of an audit.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct AuditRow {
    /// What is observed.
    pub name: Message,
    /// What was observed, with its unit.
    pub observed: Message,
    /// What was expected.
    pub expected: Message,
    /// How far from it chance may lead, or the range that is allowed.
    pub bound: Message,
    /// Observations it rests on.
    pub of: u64,
    /// Whether the observation lies within the bound.
    pub verdict: Verdict,
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
