//! What speaks for a trial: conditions before and after, the books, the ledger, the audit.

use super::words;
use crate::model::Trial;
use crate::outcomes::{Outcome, outcomes};
use dyno_measure::{AuditLine, ConditionLine, ConditionState, TpccFacts, Verdict};
use serde::Serialize;

/// One condition over the trials of an experiment.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ConditionRow {
    /// `C1` to `C12` of clause 3.3.2, `X1` and on for further ones.
    pub id: String,
    /// What has to hold.
    pub rule: String,
    /// Before the trials.
    pub before: Vec<Outcome>,
    /// After them.
    pub after: Vec<Outcome>,
}

/// Every condition that some trial has recorded.
pub(super) fn conditions(trials: &[&Trial]) -> Vec<ConditionRow> {
    let lines = |trial: &Trial| -> Vec<ConditionLine> {
        trial.summary.tpcc.as_ref().map(|facts| facts.conditions.clone()).unwrap_or_default()
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
            Some(Some(state)) => (Some(state.verdict), state.evidence),
            Some(None) => (None, words::NEED_NOT_HOLD.to_owned()),
            None => (Some(Verdict::NotMade), words::NO_CONDITION.to_owned()),
        };
    let row = |line: ConditionLine| ConditionRow {
        before: outcomes(trials, |trial| state(trial, &line.id, |line| line.before)),
        after: outcomes(trials, |trial| state(trial, &line.id, |line| line.after)),
        id: line.id,
        rule: line.rule,
    };
    known.into_iter().map(row).collect()
}

/// Where no condition was checked at a moment, and for one reason, that is said once: the sentences,
/// and the reason is taken out of the rows.
pub(super) fn common_reasons(rows: &mut [ConditionRow]) -> Vec<String> {
    type At = fn(&mut ConditionRow) -> &mut Vec<Outcome>;
    let moments: [(&str, At); 2] =
        [("Before", |row| &mut row.before), ("After", |row| &mut row.after)];
    let mut sentences = Vec::new();
    for (moment, at) in moments {
        let mut judged: Vec<&mut Outcome> = rows
            .iter_mut()
            .flat_map(|row| at(row).iter_mut())
            .filter(|outcome| outcome.verdict.is_some())
            .collect();
        let Some(reason) = judged.first().map(|outcome| outcome.evidence.clone()) else { continue };
        let is_common =
            judged.iter().all(|o| (o.verdict, &o.evidence) == (Some(Verdict::NotMade), &reason));
        if is_common && judged.len() > 1 && !reason.is_empty() {
            judged.iter_mut().for_each(|outcome| outcome.evidence.clear());
            sentences.push(format!("{moment}: not made: {reason}"));
        }
    }
    sentences
}

/// A comparison of what was acknowledged with what the database holds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Proof {
    /// What is compared.
    pub what: &'static str,
    /// How that ended.
    pub outcomes: Vec<Outcome>,
}

/// The books and the ledger.
pub(super) fn proofs(trials: &[&Trial]) -> Vec<Proof> {
    let made = |trial: &Trial, name: &str, absent: &str| {
        let check = trial.summary.checks.iter().find(|check| check.name == name);
        match check {
            // The figures differ from trial to trial; they stand with the checks of each.
            Some(check) if check.verdict == Verdict::Passed && trials.len() > 1 => {
                (Some(Verdict::Passed), String::new())
            }
            Some(check) => (Some(check.verdict), check.evidence.clone()),
            None => (Some(Verdict::NotMade), absent.to_owned()),
        }
    };
    let proof = |what, name: &'static str, absent: &'static str| Proof {
        what,
        outcomes: outcomes(trials, |trial| made(trial, name, absent)),
    };
    vec![
        proof(
            "Books: what was acknowledged, by district, against the database",
            TpccFacts::BOOKS,
            words::NO_BOOKS,
        ),
        proof("Ledger: every acknowledged order is found", TpccFacts::LEDGER, words::NO_LEDGER),
    ]
}

/// The audit of a trial.
#[derive(Clone, Debug, PartialEq, Serialize)]
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
    pub lines: Vec<AuditLine>,
}

/// One table per trial.
pub(super) fn audits(trials: &[&Trial]) -> Vec<AuditTable> {
    let table = |trial: &&Trial| {
        let facts = trial.summary.tpcc.as_ref();
        let lines = facts.map(|facts| facts.audit.clone()).unwrap_or_default();
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
