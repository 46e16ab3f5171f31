//! The error type of code outside of the measured window.

use std::fmt;

/// The kind of an error, which determines the exit code.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ErrorKind {
    #[default]
    Failed,
    /// An argument or an option is invalid.
    Usage,
    /// The user interrupted the work.
    Stopped,
}

/// A sentence that names the place and the cause, and a remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    pub kind: ErrorKind,
    pub message: String,
    pub hint: Option<String>,
}

impl Error {
    pub fn new(message: impl Into<String>) -> Self {
        Error { kind: ErrorKind::Failed, message: message.into(), hint: None }
    }

    pub fn stopped(message: impl Into<String>) -> Self {
        Error { kind: ErrorKind::Stopped, ..Error::new(message) }
    }

    #[must_use]
    pub fn with_hint(self, hint: impl Into<String>) -> Self {
        Error { hint: Some(hint.into()), ..self }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}

/// Makes an [`Error`] of any cause.
pub trait Context<T> {
    /// `{problem}: {cause}.`
    ///
    /// # Errors
    /// That sentence.
    fn context(self, problem: impl fmt::Display) -> Result<T, Error>;
}

impl<T, E: fmt::Display> Context<T> for Result<T, E> {
    fn context(self, problem: impl fmt::Display) -> Result<T, Error> {
        self.map_err(|cause| Error::new(format!("{problem}: {cause}.")))
    }
}
