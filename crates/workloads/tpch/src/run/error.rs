//! How a trial fails to begin.

use dyno_core::DbError;
use std::{fmt, io};

/// Why a trial could not begin.
#[derive(Debug)]
pub enum RunError {
    /// The database refused something or went away.
    Session {
        /// What was being done, such as `setting the parallel degree`.
        doing: String,
        /// What the database or the way to it answered.
        error: DbError,
    },
    /// The database does not hold what the test needs, or an option can't be had.
    Refused {
        /// What is wrong, in a sentence.
        problem: String,
        hint: String,
    },
    /// The folder of answers can't be used, or the kernel refused an event loop.
    System {
        doing: String,
        error: io::Error,
    },
}

impl RunError {
    /// A remedy, for a line of its own after `hint:`.
    pub fn hint(&self) -> Option<&str> {
        match self {
            RunError::Session { error, .. } => error.hint(),
            RunError::Refused { hint, .. } => Some(hint),
            RunError::System { .. } => None,
        }
    }

    pub fn db_error(&self) -> Option<&DbError> {
        match self {
            RunError::Session { error, .. } => Some(error),
            _ => None,
        }
    }
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RunError::Session { doing, error } => write!(f, "{doing} failed: {error}"),
            RunError::Refused { problem, .. } => f.write_str(problem),
            RunError::System { doing, error } => write!(f, "{doing} failed: {error}"),
        }
    }
}

impl std::error::Error for RunError {}

/// Names what was being done when a session failed.
pub(crate) fn while_doing(doing: impl Into<String>) -> impl FnOnce(DbError) -> RunError {
    let doing = doing.into();
    move |error| RunError::Session { doing, error }
}
