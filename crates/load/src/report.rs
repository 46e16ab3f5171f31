//! What a load did.

use dyno_core::BulkMethod;
use std::num::NonZero;
use std::thread;

/// What a load did with rows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LoadReport {
    /// Rows stored by this load.
    pub rows_loaded: u64,
    /// Rows that an earlier load had stored.
    pub rows_found: u64,
    /// How the rows got there; `None` when none had to.
    pub method: Option<BulkMethod>,
    /// Why a faster method was not used.
    pub fallback_reason: Option<String>,
    /// True when the data set was complete before.
    pub was_complete: bool,
}

impl LoadReport {
    /// In words, rows called `what`: `500 rows by COPY, 80 rows were there before`, or `500 accounts by multi-row
    /// INSERT; no faster way: why`.
    pub fn sentence(&self, what: &str) -> String {
        let mut text = match self.method {
            Some(method) => format!("{} {what} by {}", self.rows_loaded, method.name()),
            None => "nothing had to be loaded".to_owned(),
        };
        if self.rows_found > 0 {
            text.push_str(&format!(", {} {what} were there before", self.rows_found));
        }
        if let Some(reason) = &self.fallback_reason {
            text.push_str(&format!("; no faster way: {reason}"));
        }
        text
    }
}

/// Sessions of a load where the user does not say how many: two per core.
pub fn default_sessions() -> u32 {
    let cores = thread::available_parallelism().map_or(2, NonZero::get);
    (2 * cores).clamp(2, 16) as u32
}
