//! A paper that can't be made.

use std::fmt;

/// A paper that can't be rendered or stored.
#[derive(Debug)]
pub struct ReportError {
    message: String,
    hint: Option<String>,
}

impl ReportError {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        ReportError { message: message.into(), hint: None }
    }

    pub(crate) fn with_hint(mut self, hint: &str) -> Self {
        self.hint = Some(hint.to_owned());
        self
    }

    /// What to do about it, without a leading `hint:`.
    pub fn hint(&self) -> Option<&str> {
        self.hint.as_deref()
    }
}

impl fmt::Display for ReportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for ReportError {}
