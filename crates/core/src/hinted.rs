//! Errors in words.

use std::fmt;

/// A sentence, and a remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HintedError {
    pub message: String,
    pub hint: Option<String>,
}

impl HintedError {
    pub fn new(message: impl Into<String>) -> Self {
        HintedError { message: message.into(), hint: None }
    }

    #[must_use]
    pub fn with_hint(self, hint: impl Into<String>) -> Self {
        HintedError { hint: Some(hint.into()), ..self }
    }
}

impl fmt::Display for HintedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for HintedError {}
