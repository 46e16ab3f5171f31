//! What can go wrong with a cluster.

use std::fmt;

/// A sentence about what failed, and what can be done about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterError {
    /// What failed, with its place.
    pub message: String,
    /// What can be done about it.
    pub hint: Option<String>,
    /// True when the work was given up because somebody asked for that.
    pub is_stopped: bool,
}

impl ClusterError {
    /// An error without a remedy.
    pub fn new(message: impl Into<String>) -> Self {
        ClusterError { message: message.into(), hint: None, is_stopped: false }
    }

    /// The work was given up on request.
    pub(crate) fn stopped() -> Self {
        ClusterError { is_stopped: true, ..Self::new("Stopped before the cluster was ready.") }
    }

    /// The same with a remedy.
    #[must_use]
    pub fn with_hint(self, hint: impl Into<String>) -> Self {
        ClusterError { hint: Some(hint.into()), ..self }
    }
}

impl fmt::Display for ClusterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for ClusterError {}
