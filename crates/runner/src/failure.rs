//! The one error that ends a verb, and exit codes.

use crate::databases::STOPPED;
use crate::{output, signals};
use dyno_core::{DbError, Error, ErrorKind, in_one_line};
use dyno_engine::DriveError;
use dyno_facts::{Message, say};
use dyno_load::{LoadError, LoadErrorKind};
use dyno_suite::SuiteError;
use std::process::ExitCode;

pub type Result<T, E = Failure> = std::result::Result<T, E>;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Full sentences; may have several lines.
    pub message: Message,
    /// All its lines are dyno's own: a place in a suite, underlined.
    pub is_laid_out: bool,
    pub hint: Option<String>,
    /// 1 failed, 2 wrong usage, 3 inconclusive, 4 a denied check, a check of the data or lost work, 5 a regression or
    /// a broken gate that is proven, 128 and a signal's number if that has ended it.
    pub code: u8,
}

impl Failure {
    pub fn new(message: impl Into<Message>) -> Self {
        Failure { message: message.into(), is_laid_out: false, hint: None, code: 1 }
    }

    /// The command can't be meant as it was given.
    pub fn usage(message: impl Into<Message>) -> Self {
        Failure { code: 2, ..Failure::new(message) }
    }

    /// A check that is denied has found something, or a check of the data failed.
    pub fn denied(message: impl Into<Message>) -> Self {
        Failure { code: 4, ..Failure::new(message) }
    }

    /// Something that has its own exit code.
    pub fn with_code(code: u8, message: impl Into<Message>) -> Self {
        Failure { code, ..Failure::new(message) }
    }

    /// Ctrl-C or SIGTERM has ended it.
    pub fn interrupted(message: impl Into<Message>) -> Self {
        Failure::with_code(signals::exit_code(), message)
    }

    /// Puts the place where it happened before the message.
    pub fn at(self, place: impl Into<Message>) -> Self {
        Failure { message: Message::joined(&[place.into(), self.message], ": ", "："), ..self }
    }

    pub fn with_hint(self, hint: impl Into<String>) -> Self {
        self.hinted(Some(hint))
    }

    /// Like [`Failure::with_hint`], if there is a hint; else the failure keeps the hint that it has.
    pub fn hinted(self, hint: Option<impl Into<String>>) -> Self {
        Failure { hint: hint.map(Into::into).or(self.hint), ..self }
    }
}

/// A sentence made of a server's or system's words, which end as they like.
pub fn sentence(text: &str) -> String {
    let text = text.trim_end();
    if text.ends_with(['.', '!', '?']) { text.to_owned() } else { format!("{text}.") }
}

/// `text`, which is about `error`, as a sentence that ends with the statement where the workload names it.
pub(crate) fn with_statement(text: &str, error: &DbError) -> String {
    /// A longer statement is cut.
    const MAX_LETTERS: usize = 200;
    let Some(statement) = error.statement.as_deref().filter(|text| !text.is_empty()) else {
        return sentence(text);
    };
    let statement = in_one_line(statement);
    let mut excerpt: String = statement.chars().take(MAX_LETTERS).collect();
    if excerpt.len() < statement.len() {
        excerpt.push_str(" ...");
    }
    format!("{}, in the statement `{excerpt}`.", text.trim_end().trim_end_matches('.'))
}

impl From<DbError> for Failure {
    fn from(error: DbError) -> Self {
        let mut message = with_statement(&error.to_string(), &error);
        if signals::has_come() && error.message() == STOPPED {
            return Failure::interrupted(message);
        }
        if let Some(detail) = &error.detail {
            message.push(' ');
            message.push_str(&sentence(&in_one_line(detail)));
        }
        let hint = error.hint().or(error.pooler_hint()).map(str::to_owned);
        Failure { hint, ..Failure::new(message) }
    }
}

impl From<DriveError> for Failure {
    fn from(error: DriveError) -> Self {
        match error {
            DriveError::Connect(error) => Failure::from(error),
            DriveError::Interrupted => Failure::interrupted(sentence(&error.to_string())),
            other => Failure::new(sentence(&other.to_string())),
        }
    }
}

impl From<&LoadError> for Failure {
    fn from(error: &LoadError) -> Self {
        let text = sentence(&error.to_string());
        let failure = match error.kind {
            LoadErrorKind::Option => Failure::usage(text),
            _ => Failure::new(text),
        };
        failure.hinted(error.hint())
    }
}

impl From<LoadError> for Failure {
    fn from(error: LoadError) -> Self {
        Failure::from(&error)
    }
}

impl From<SuiteError> for Failure {
    fn from(error: SuiteError) -> Self {
        // A suite's problems bring their places and hints along.
        Failure { is_laid_out: true, ..Failure::usage(error.to_string()) }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let failure = match error.kind {
            ErrorKind::Stopped => Failure::interrupted(say!(cluster_stopped)),
            ErrorKind::Usage => Failure::usage(sentence(&error.message)),
            ErrorKind::Failed => Failure::new(error.message),
        };
        failure.hinted(error.hint)
    }
}

/// End of the drop-ins of sysbench and pgbench, with the exit codes that their originals give to scripts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    Done,
    Failed,
    /// sysbench's forced shutdown, or workers that were not ready in time; a client of pgbench that stopped
    /// before the others.
    Aborted,
    Interrupted,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        ExitCode::from(match exit {
            Exit::Done => 0,
            Exit::Failed => 1,
            Exit::Aborted => 2,
            Exit::Interrupted => signals::exit_code(),
        })
    }
}

/// The exit code of a verb; says why it failed.
pub fn exit_code(done: Result<u8>) -> ExitCode {
    ExitCode::from(done.unwrap_or_else(|failure| {
        output::error(&failure);
        failure.code
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_statement_is_named_and_cut_where_it_is_long() {
        let error = DbError::lost("The server is gone.");
        assert_eq!(with_statement("The server is gone.", &error), "The server is gone.");
        let error_in_statement = error.clone().with_statement("SELECT 1\nFROM t");
        assert_eq!(
            with_statement("The server is gone.", &error_in_statement),
            "The server is gone, in the statement `SELECT 1 FROM t`."
        );
        let long = error.with_statement("x".repeat(300));
        assert!(with_statement("No", &long).ends_with("xx ...`."), "{long:?}");
    }
}
