//! What can go wrong with a fleet.

use std::fmt;

/// A sentence about what failed, and what can be done about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FleetError {
    /// What failed.
    pub message: String,
    /// What can be done about it.
    pub hint: Option<String>,
}

impl FleetError {
    /// An error without a remedy.
    pub fn new(message: impl Into<String>) -> Self {
        FleetError { message: message.into(), hint: None }
    }

    /// The same with a remedy.
    #[must_use]
    pub fn with_hint(self, hint: impl Into<String>) -> Self {
        FleetError { hint: Some(hint.into()), ..self }
    }
}

impl fmt::Display for FleetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for FleetError {}
