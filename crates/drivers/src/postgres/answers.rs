//! The content of a flight and the progress of its answers.
//!
//! libpq's `target_session_attrs`: the kinds of servers that a target accepts.

use super::PostgresSession;
use dyno_core::{AnswerTable, DbError, DbResult, Executed, Session, Statement, StatementTable};
use dyno_wire::Names;
use dyno_wire::postgres::WireError;
use dyno_wire::postgres::frontend::Execution;
use dyno_wire::postgres::types::PostgresColumn;

#[derive(Debug)]
pub(super) struct Prepared {
    /// On the server.
    pub(super) name: Box<str>,
    pub(super) execution: Execution,
    /// The columns of its answer, in the wanted formats; `None` without a result set.
    pub(super) columns: Option<Vec<PostgresColumn>>,
    pub(super) names: Names,
}

/// One part of a flight with its own answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Prepared(Statement),
    /// A statement with its execution: its columns are announced.
    Once,
    /// Ends parts that stand or fall together.
    Sync,
}

#[derive(Clone, Copy)]
pub(super) enum Expect<'a> {
    /// Answers to text, with announced columns.
    Text,
    /// The answer to Parse and Describe, or to Close.
    Description,
    /// Answers to these steps in order; the last is a Sync, and no two Syncs are neighbours.
    Flight { statements: &'a StatementTable<Prepared>, steps: &'a [Step] },
}

#[derive(Debug, Default)]
pub(super) struct Progress {
    /// Number of answered steps.
    at: usize,
    pub(super) rows: u64,
    /// The outcome of the last answered step. The last one before a Sync may still fail: Sync commits and checks
    /// deferred constraints.
    held: Option<DbResult<Executed>>,
    /// The first error of a text, or since the last Sync.
    pub(super) error: Option<DbError>,
    pub(super) is_copy: bool,
    /// Missing bytes of an unwanted row.
    pub(super) skip: usize,
}

impl Progress {
    #[inline]
    pub(super) fn fail(&mut self, error: DbError) {
        self.error.get_or_insert(error);
    }

    /// The prepared statement of the next answer.
    #[inline]
    pub(super) fn prepared<'a>(&self, expect: Expect<'a>) -> Option<&'a Prepared> {
        let Expect::Flight { statements, steps } = expect else { return None };
        match steps.get(self.at) {
            Some(&Step::Prepared(statement)) => statements.get(statement),
            _ => None,
        }
    }

    /// True when the step of the next answer is the last before the final Sync.
    pub(super) fn is_last(&self, steps: &[Step]) -> bool {
        self.at + 2 == steps.len()
    }

    #[inline]
    pub(super) fn answered(
        &mut self,
        steps: &[Step],
        outcome: DbResult<Executed>,
        done: &mut impl FnMut(DbResult<Executed>),
    ) -> Result<(), WireError> {
        if matches!(steps.get(self.at), None | Some(Step::Sync)) {
            return Err(WireError("an answer came to a statement that was not sent"));
        }
        self.at += 1;
        if let Some(earlier) = self.held.replace(outcome) {
            done(earlier);
        }
        Ok(())
    }

    /// Takes the answer to a Sync and reports the held outcomes. Returns true at the end of the flight.
    #[inline]
    pub(super) fn synced(
        &mut self,
        steps: &[Step],
        done: &mut impl FnMut(DbResult<Executed>),
    ) -> Result<bool, WireError> {
        let rest = steps.get(self.at..).unwrap_or_default();
        let Some(unanswered) = rest.iter().position(|step| *step == Step::Sync) else {
            return Err(WireError("the server was ready once more than it was asked"));
        };
        self.at += unanswered + 1;
        self.rows = 0;
        self.is_copy = false;
        let held = self.held.take();
        match self.error.take() {
            None if unanswered > 0 => return Err(WireError("a statement was not answered")),
            None => held.into_iter().for_each(done),
            Some(error) => failed(held, &error, unanswered, done),
        }
        Ok(self.at == steps.len())
    }
}

/// Reports the outcomes up to a Sync, `unanswered` of which are missing because of an error.
#[cold]
fn failed(
    held: Option<DbResult<Executed>>,
    error: &DbError,
    unanswered: usize,
    done: &mut impl FnMut(DbResult<Executed>),
) {
    if unanswered == 0 {
        return held.into_iter().for_each(|outcome| done(outcome.and(Err(error.clone()))));
    }
    held.into_iter().for_each(&mut *done);
    done(Err(error.clone()));
    for _ in 1..unanswered {
        done(Err(not_executed(error)));
    }
}

/// A statement behind one that failed before the same Sync.
fn not_executed(error: &DbError) -> DbError {
    let sqlstate = error.sqlstate().as_bytes().try_into().unwrap_or(*b"00000");
    let message = "The statement was not executed: an earlier one of the same flight failed.";
    DbError::server(error.class(), 0, sqlstate, message).with_detail(error.message())
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum SessionAttributes {
    #[default]
    Any,
    ReadWrite,
    ReadOnly,
    Primary,
    Standby,
    /// A standby, or any server if there is none.
    PreferStandby,
}

impl SessionAttributes {
    /// The attributes with this name, which was checked before.
    pub(super) fn from_name(name: Option<&str>) -> Self {
        match name {
            Some("read-write") => SessionAttributes::ReadWrite,
            Some("read-only") => SessionAttributes::ReadOnly,
            Some("primary") => SessionAttributes::Primary,
            Some("standby") => SessionAttributes::Standby,
            Some("prefer-standby") => SessionAttributes::PreferStandby,
            _ => SessionAttributes::Any,
        }
    }

    /// The wishes for a first round over the hosts and for a second one.
    pub(super) fn rounds(self) -> (SessionAttributes, Option<SessionAttributes>) {
        match self {
            SessionAttributes::PreferStandby => {
                (SessionAttributes::Standby, Some(SessionAttributes::PreferStandby))
            }
            wanted => (wanted, None),
        }
    }

    /// The objection to this server, in libpq's words.
    pub(super) async fn objection(
        self,
        session: &mut PostgresSession,
    ) -> DbResult<Option<&'static str>> {
        Ok(match self {
            SessionAttributes::Any | SessionAttributes::PreferStandby => None,
            SessionAttributes::ReadWrite => {
                is_read_only(session).await?.then_some("session is read-only")
            }
            SessionAttributes::ReadOnly => {
                (!is_read_only(session).await?).then_some("session is not read-only")
            }
            SessionAttributes::Primary => {
                is_standby(session).await?.then_some("server is in hot standby mode")
            }
            SessionAttributes::Standby => {
                (!is_standby(session).await?).then_some("server is not in hot standby mode")
            }
        })
    }
}

/// Servers report it since PostgreSQL 14.
async fn is_standby(session: &mut PostgresSession) -> DbResult<bool> {
    match session.parameter("in_hot_standby") {
        Some(value) => Ok(value == "on"),
        None => is_true(session, "SELECT pg_catalog.pg_is_in_recovery()").await,
    }
}

async fn is_read_only(session: &mut PostgresSession) -> DbResult<bool> {
    let by_default = session.parameter("default_transaction_read_only");
    match (session.parameter("in_hot_standby"), by_default) {
        (Some(standby), Some(by_default)) => Ok(standby == "on" || by_default == "on"),
        _ => is_true(session, "SHOW transaction_read_only").await,
    }
}

async fn is_true(session: &mut PostgresSession, sql: &str) -> DbResult<bool> {
    let mut answer = AnswerTable::default();
    session.query(sql, &mut answer).await?;
    Ok(matches!(answer.single(), Some("on" | "t")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_core::ErrorClass;
    use proptest::prelude::*;

    const SYNC_ONLY: [Step; 1] = [Step::Sync];

    fn error(number: usize) -> DbError {
        DbError::server(ErrorClass::Other, 0, *b"XX000", format!("error {number}"))
    }

    fn executed(number: usize) -> Executed {
        Executed { has_rows: false, rows: 0, affected: number as u64 }
    }

    /// `3` for an execution that changed 3 rows, else the words of the error.
    fn words(outcome: DbResult<Executed>) -> String {
        match outcome {
            Ok(executed) => executed.affected.to_string(),
            Err(error) => error.message().to_owned(),
        }
    }

    #[test]
    fn answers_out_of_turn_are_errors() {
        let mut none = |_: DbResult<Executed>| ();
        let mut progress = Progress::default();
        assert!(progress.answered(&SYNC_ONLY, Ok(executed(1)), &mut none).is_err());
        assert_eq!(progress.synced(&SYNC_ONLY, &mut none), Ok(true));
        assert!(progress.synced(&SYNC_ONLY, &mut none).is_err());
        let mut progress = Progress::default();
        assert!(progress.synced(&[Step::Once, Step::Sync], &mut none).is_err());
    }

    proptest! {
        /// Each execution has one outcome, in order, whichever of each part fails: none, one of
        /// its executions, or (behind all of them) its commit.
        #[test]
        fn each_execution_has_one_outcome(
            parts in prop::collection::vec((1..5_usize, prop::option::of(0..6_usize)), 1..5),
        ) {
            let mut steps = Vec::new();
            for (count, _) in &parts {
                steps.extend(std::iter::repeat_n(Step::Once, *count));
                steps.push(Step::Sync);
            }
            let (mut progress, mut told, mut expected) = (Progress::default(), Vec::new(), Vec::new());
            let mut done = |outcome| told.push(words(outcome));
            let mut number = 0;
            for (part, (count, fails)) in parts.iter().enumerate() {
                let fails = fails.filter(|at| at <= count);
                for at in 0..*count {
                    number += 1;
                    match fails {
                        Some(failed) if at == failed || (failed == *count && at + 1 == failed) => {
                            expected.push(format!("error {number}"));
                        }
                        Some(failed) if at > failed => {
                            expected.push(words(Err(not_executed(&error(0)))));
                        }
                        _ => expected.push(number.to_string()),
                    }
                    if fails == Some(at) {
                        progress.fail(error(number));
                    } else if fails.is_none_or(|failed| at < failed) {
                        progress.answered(&steps, Ok(executed(number)), &mut done).unwrap();
                    }
                }
                if fails == Some(*count) {
                    progress.fail(error(number));
                }
                let is_over = progress.synced(&steps, &mut done).unwrap();
                prop_assert_eq!(is_over, part + 1 == parts.len());
            }
            prop_assert_eq!(told, expected);
        }
    }
}
