//! How a load fails.

use dyno_core::DbError;
use std::fmt;
use std::io;

/// Why a load, a look at its state or a removal failed.
#[derive(Debug)]
pub enum LoadError {
    /// The database refused something or went away.
    Session {
        /// What was being done, such as `creating table region`.
        doing: String,
        /// What the database or the way to it answered.
        error: DbError,
        /// A remedy, where one is known.
        hint: Option<String>,
    },
    /// What the database holds is not what was asked for, or not what was sent.
    Data {
        /// What is wrong, in a sentence.
        problem: String,
        /// The remedy.
        hint: String,
    },
    /// The data do not fit the disk or the memory of this machine.
    Room {
        /// What is needed and what there is, in a sentence.
        problem: String,
        /// The remedy.
        hint: String,
    },
    /// An option that can't be had, in a sentence.
    Option(String),
    /// The kernel refused an event loop.
    Loop(io::Error),
}

impl LoadError {
    /// A remedy, for a line of its own after `hint:`.
    pub fn hint(&self) -> Option<&str> {
        match self {
            LoadError::Session { error, hint, .. } => error.hint().or(hint.as_deref()),
            LoadError::Data { hint, .. } | LoadError::Room { hint, .. } => Some(hint),
            LoadError::Option(_) | LoadError::Loop(_) => None,
        }
    }

    /// The database's own error, if it was one.
    pub fn db_error(&self) -> Option<&DbError> {
        match self {
            LoadError::Session { error, .. } => Some(error),
            _ => None,
        }
    }

    /// What is stored is not lost: a second load goes on from there.
    pub(crate) fn with_resume_hint(self) -> Self {
        match self {
            LoadError::Session { doing, error, hint: None } => {
                let hint = "load again with the same options: what is stored is kept, the rest is \
                            loaded";
                LoadError::Session { doing, error, hint: Some(hint.to_owned()) }
            }
            other => other,
        }
    }
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LoadError::Session { doing, error, .. } => write!(f, "{doing} failed: {error}"),
            LoadError::Data { problem: text, .. }
            | LoadError::Room { problem: text, .. }
            | LoadError::Option(text) => f.write_str(text),
            LoadError::Loop(error) => write!(f, "no event loop could be made: {error}"),
        }
    }
}

impl std::error::Error for LoadError {}

/// Names what was being done when a session failed.
pub(crate) fn while_doing(doing: impl Into<String>) -> impl FnOnce(DbError) -> LoadError {
    let doing = doing.into();
    move |error| LoadError::Session { doing, error, hint: None }
}
