//! Errors of a fleet.

use std::fmt;

pub(crate) type FleetResult<T> = Result<T, FleetError>;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FleetError {
    pub message: String,
    pub hint: Option<String>,
}

impl FleetError {
    pub fn new(message: impl Into<String>) -> Self {
        FleetError { message: message.into(), hint: None }
    }

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
