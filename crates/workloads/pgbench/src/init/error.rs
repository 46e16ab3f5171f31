//! Why an initialization failed.

use super::options::Step;
use dyno_core::DbError;
use std::fmt;
use std::io;

/// Why an initialization failed. [`fmt::Display`] is one sentence without a full stop; the remedy
/// is in [`InitError::hint`].
#[derive(Debug)]
pub enum InitError {
    /// The options can't be carried out; nothing was touched.
    Options {
        /// What is wrong.
        problem: String,
        /// The remedy.
        hint: String,
    },
    /// The database refused something or went away.
    Session {
        /// The step; `None` while connecting.
        step: Option<Step>,
        /// What was being done, such as `creating table pgbench_history`.
        doing: String,
        /// The statement, if it was one.
        sql: Option<String>,
        /// What the database or the way to it answered.
        error: DbError,
        /// A remedy, where one is known.
        hint: Option<String>,
    },
    /// A table exists and is not what the options describe.
    Table {
        /// The step that met it.
        step: Step,
        /// The table.
        table: &'static str,
        /// What is wrong with it, in words that follow the table's name.
        problem: String,
        /// The remedy.
        hint: String,
    },
    /// The kernel refused an event loop.
    Loop(io::Error),
}

impl InitError {
    pub(crate) fn options(problem: impl Into<String>, hint: impl Into<String>) -> Self {
        InitError::Options { problem: problem.into(), hint: hint.into() }
    }

    /// A remedy, for a line of its own after `hint:`.
    pub fn hint(&self) -> Option<&str> {
        match self {
            InitError::Options { hint, .. } | InitError::Table { hint, .. } => Some(hint),
            InitError::Session { error, hint, .. } => hint.as_deref().or(error.hint()),
            InitError::Loop(_) => None,
        }
    }

    /// The database's own error, if it was one.
    pub fn db_error(&self) -> Option<&DbError> {
        match self {
            InitError::Session { error, .. } => Some(error),
            _ => None,
        }
    }

    /// The statement that failed (pgbench prints it as `Query was: ...`).
    pub fn sql(&self) -> Option<&str> {
        match self {
            InitError::Session { sql, .. } => sql.as_deref(),
            _ => None,
        }
    }
}

impl fmt::Display for InitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            InitError::Options { problem, .. } => f.write_str(problem),
            InitError::Session { step, doing, error, .. } => {
                if let Some(step) = step {
                    write!(f, "step {} ({}): ", step.letter(), step.name())?;
                }
                write!(f, "{doing} failed: {error}")
            }
            InitError::Table { step, table, problem, .. } => {
                write!(f, "step {} ({}): table {table} {problem}", step.letter(), step.name())
            }
            InitError::Loop(error) => write!(f, "no event loop could be made: {error}"),
        }
    }
}

impl std::error::Error for InitError {}
