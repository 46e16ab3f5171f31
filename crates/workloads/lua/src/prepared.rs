//! The statements that a script has prepared, by the numbers that it knows them by.

use dyno_core::{DbError, DbResult, ParamType, Statement, StatementTable};
use std::collections::VecDeque;

/// So many closed statements stay prepared, for a script that prepares the same texts again and again.
const CLOSED_MAX: usize = 64;

/// A statement that a script has prepared on one of its connections.
pub(crate) struct ScriptStatement {
    pub(crate) connection: usize,
    /// With the dialect's placeholders.
    pub(crate) sql: Vec<u8>,
    pub(crate) placeholders: usize,
    pub(crate) types: Vec<ParamType>,
    /// `None` until it is prepared, and again after its connection was lost.
    pub(crate) server: Option<Statement>,
    /// The script has closed it; it waits for the same text.
    is_closed: bool,
}

impl ScriptStatement {
    pub(crate) fn new(connection: usize, sql: Vec<u8>, placeholders: usize) -> Self {
        let types = vec![ParamType::Inferred; placeholders];
        ScriptStatement { connection, sql, placeholders, types, server: None, is_closed: false }
    }
}

/// Those of all connections of a state.
#[derive(Default)]
pub(crate) struct ScriptStatements {
    table: StatementTable<ScriptStatement>,
    /// Which of them nobody uses, the one first that was closed first.
    closed: VecDeque<Statement>,
}

/// What is left to do about a statement: to close the server's.
pub(crate) type ToClose = (usize, Statement);

#[cold]
fn unknown() -> DbError {
    DbError::workload("the statement is closed")
}

/// A script's number; one that is too large is that of no statement.
fn numbered(number: usize) -> Statement {
    Statement(u32::try_from(number).unwrap_or(u32::MAX))
}

impl ScriptStatements {
    #[inline]
    pub(crate) fn get(&self, number: usize) -> DbResult<&ScriptStatement> {
        self.table.get(numbered(number)).ok_or_else(unknown)
    }

    pub(crate) fn get_mut(&mut self, number: usize) -> DbResult<&mut ScriptStatement> {
        self.table.get_mut(numbered(number)).ok_or_else(unknown)
    }

    /// The number of a closed statement with this text, which is open now. Open ones are not shared: each has types of its
    /// own.
    pub(crate) fn again(&mut self, connection: usize, sql: &[u8]) -> Option<usize> {
        let mut all = self.table.all_mut();
        let is_same = |known: &ScriptStatement| {
            known.is_closed && known.connection == connection && known.sql == sql
        };
        let (statement, known) = all.find(|(_, known)| is_same(known))?;
        known.is_closed = false;
        self.closed.retain(|closed| *closed != statement);
        Some(statement.0 as usize)
    }

    pub(crate) fn add(&mut self, prepared: ScriptStatement) -> usize {
        self.table.add(prepared).0 as usize
    }

    /// Keeps it for the next one of its text. Returns what is to be closed on the server: what was closed longest ago, if
    /// too many are closed.
    pub(crate) fn close(&mut self, number: usize) -> Option<ToClose> {
        let statement = numbered(number);
        let prepared = self.table.get_mut(statement).filter(|known| !known.is_closed)?;
        prepared.is_closed = true;
        if prepared.server.is_none() {
            self.table.remove(statement);
            return None;
        }
        self.closed.push_back(statement);
        if self.closed.len() <= CLOSED_MAX {
            return None;
        }
        let oldest = self.closed.pop_front().and_then(|oldest| self.table.remove(oldest))?;
        Some((oldest.connection, oldest.server?))
    }

    /// A connection's statements are no longer on the server. Returns those that its session had.
    pub(crate) fn forget(&mut self, connection: usize) -> Vec<Statement> {
        let mut had = Vec::new();
        let mut unused = Vec::new();
        for (statement, prepared) in self.table.all_mut() {
            if prepared.connection == connection {
                had.extend(prepared.server.take());
                unused.extend(prepared.is_closed.then_some(statement));
            }
        }
        for statement in unused {
            self.table.remove(statement);
            self.closed.retain(|closed| *closed != statement);
        }
        had
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Prepares a text on connection 0, also on the server.
    fn prepared(statements: &mut ScriptStatements, text: usize) -> usize {
        let sql = format!("SELECT {text}").into_bytes();
        if let Some(number) = statements.again(0, &sql) {
            return number;
        }
        let number = statements.add(ScriptStatement::new(0, sql, 0));
        statements.get_mut(number).expect("added").server = Some(Statement(text as u32));
        number
    }

    #[test]
    fn closed_statements_stay_for_the_same_text_until_there_are_too_many() {
        let mut statements = ScriptStatements::default();
        let numbers: Vec<usize> = (0..CLOSED_MAX).map(|n| prepared(&mut statements, n)).collect();
        assert!(numbers.iter().all(|number| statements.close(*number).is_none()));
        // Used again, it is the one that was closed last.
        assert_eq!(prepared(&mut statements, 0), numbers[0]);
        assert_eq!(statements.close(numbers[0]), None);
        let more = prepared(&mut statements, 100);
        assert_eq!(statements.close(more), Some((0, Statement(1))));
        for text in 101..1_000 {
            let number = prepared(&mut statements, text);
            assert!(number <= CLOSED_MAX, "{number}");
            assert!(statements.close(number).is_some());
        }
        assert_eq!(statements.closed.len(), CLOSED_MAX);
        assert_eq!(statements.close(usize::MAX), None);
    }

    #[test]
    fn open_statements_of_one_text_are_two() {
        let mut statements = ScriptStatements::default();
        let (one, other) = (prepared(&mut statements, 1), prepared(&mut statements, 1));
        assert_ne!(one, other);
        assert_eq!((statements.close(one), statements.closed.len()), (None, 1));
        // Closed once too often.
        assert_eq!((statements.close(one), statements.closed.len()), (None, 1));
        assert_eq!((statements.close(other), statements.closed.len()), (None, 2));
        assert_eq!((prepared(&mut statements, 1), statements.closed.len()), (one, 1));
    }

    #[test]
    fn a_lost_connection_keeps_what_the_script_still_uses() {
        let mut statements = ScriptStatements::default();
        let (used, closed) = (prepared(&mut statements, 1), prepared(&mut statements, 2));
        let other = statements.add(ScriptStatement::new(1, b"SELECT 1".to_vec(), 0));
        assert_eq!(statements.close(closed), None);
        assert_eq!(statements.forget(0), [Statement(1), Statement(2)]);
        assert!(statements.get(used).is_ok_and(|kept| kept.server.is_none()));
        assert!(statements.get(closed).is_err() && statements.get(other).is_ok());
        assert_eq!((statements.close(used), statements.closed.len()), (None, 0));
        assert!(statements.get(used).is_err(), "it was not on the server");
    }
}
