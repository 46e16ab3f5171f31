use std::fmt;

pub(crate) type Result<T, E = ClusterError> = std::result::Result<T, E>;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterError {
    pub message: String,
    pub hint: Option<String>,
    /// True when the user asked to stop.
    pub is_stopped: bool,
}

impl ClusterError {
    pub fn new(message: impl Into<String>) -> Self {
        ClusterError { message: message.into(), hint: None, is_stopped: false }
    }

    pub(crate) fn stopped() -> Self {
        ClusterError { is_stopped: true, ..Self::new("Stopped before the cluster was ready.") }
    }

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
