//! What keeps the page from being served, and the remedy.

use std::fmt;

/// A sentence, and a remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServeError {
    message: String,
    hint: String,
}

impl ServeError {
    pub(crate) fn new(message: impl Into<String>, hint: impl Into<String>) -> Self {
        ServeError { message: message.into(), hint: hint.into() }
    }

    /// What to do about it, without a leading `hint:`.
    pub fn hint(&self) -> &str {
        &self.hint
    }
}

impl fmt::Display for ServeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for ServeError {}
