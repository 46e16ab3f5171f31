//! How a load fails.

use crate::sessions::is_conflict;
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
        /// The statement, where its text matters to the user.
        sql: Option<String>,
        /// What the database or the way to it answered.
        error: DbError,
        /// A remedy of the loader's own.
        hint: Option<String>,
        /// Rows may be stored that the same load goes on with.
        is_resumable: bool,
    },
    /// What the database holds is not what was asked for, or not what was sent.
    Data {
        /// What is wrong, in a sentence.
        problem: String,
        hint: String,
    },
    /// The data do not fit the disk or the memory of this machine.
    Room {
        /// What is needed and what there is, in a sentence.
        problem: String,
        hint: String,
    },
    /// An option that can't be had, or a setting of the server that is in the way; nothing was touched.
    Option {
        /// What is wrong, in a sentence.
        problem: String,
        hint: Option<String>,
    },
    /// A node of the target is dead or makes no progress; nothing of the pieces at work is stored.
    Node {
        /// Which node, and what was seen of it: a sentence without its full stop, perhaps lines of a log.
        problem: String,
        hint: String,
    },
    /// [`crate::LoadObserver::is_canceled`] was true: nothing of the pieces at work is stored.
    Canceled {
        /// How to continue, where rows are stored.
        hint: Option<String>,
    },
    /// The kernel refused an event loop.
    Loop(io::Error),
}

impl LoadError {
    /// An error of [`LoadError::Data`].
    pub fn data(problem: impl Into<String>, hint: impl Into<String>) -> Self {
        LoadError::Data { problem: problem.into(), hint: hint.into() }
    }

    /// An error of [`LoadError::Option`] without a remedy.
    pub fn option(problem: impl Into<String>) -> Self {
        LoadError::Option { problem: problem.into(), hint: None }
    }

    /// A remedy, for a line of its own after `hint:`.
    pub fn hint(&self) -> Option<&str> {
        match self {
            LoadError::Session { error, hint, .. } => hint.as_deref().or(error.hint()),
            LoadError::Data { hint, .. }
            | LoadError::Room { hint, .. }
            | LoadError::Node { hint, .. } => Some(hint),
            LoadError::Option { hint, .. } | LoadError::Canceled { hint } => hint.as_deref(),
            LoadError::Loop(_) => None,
        }
    }

    pub fn db_error(&self) -> Option<&DbError> {
        match self {
            LoadError::Session { error, .. } => Some(error),
            _ => None,
        }
    }

    /// The statement that failed, where it is known.
    pub fn sql(&self) -> Option<&str> {
        match self {
            LoadError::Session { sql, .. } => sql.as_deref(),
            _ => None,
        }
    }

    /// True when locks of other sessions were in the way: the same work may succeed.
    pub fn is_conflict(&self) -> bool {
        self.db_error().is_some_and(is_conflict)
    }

    /// Adds the statement that failed.
    #[must_use]
    pub fn with_sql(mut self, text: &str) -> Self {
        if let LoadError::Session { sql, .. } = &mut self {
            *sql = Some(text.to_owned());
        }
        self
    }

    /// Adds how to continue, because what is stored is not lost. What the database advises stands for itself.
    #[must_use]
    pub fn with_resume_hint(mut self, resume: &str) -> Self {
        if let LoadError::Session { hint, error, is_resumable, .. } = &mut self {
            *is_resumable = true;
            *hint = match hint.take() {
                Some(remedy) => Some(format!("{remedy}; then {resume}")),
                None => error.hint().is_none().then(|| resume.to_owned()),
            };
        }
        self
    }
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LoadError::Session { doing, error, .. } => write!(f, "{doing} failed: {error}"),
            LoadError::Data { problem, .. }
            | LoadError::Room { problem, .. }
            | LoadError::Node { problem, .. }
            | LoadError::Option { problem, .. } => f.write_str(problem),
            LoadError::Canceled { .. } => f.write_str("canceled"),
            LoadError::Loop(error) => write!(f, "no event loop could be made: {error}"),
        }
    }
}

impl std::error::Error for LoadError {}

/// Names what was being done when a session failed.
pub fn while_doing(doing: impl Into<String>) -> impl FnOnce(DbError) -> LoadError {
    move |error| LoadError::Session {
        doing: doing.into(),
        sql: None,
        error,
        hint: None,
        is_resumable: false,
    }
}
