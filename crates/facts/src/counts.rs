//! Counts of transactions and statements.

use serde::{Deserialize, Serialize};

/// Transactions by how they ended.
///
/// Identity; a trial in which it does not hold has failed:
/// `started = committed + rolled_back + failed + skipped + in_flight`.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, schemars::JsonSchema, Deserialize,
)]
pub struct Counts {
    /// Transactions begun in the measured window, and those in flight when it opened.
    pub started: u64,
    /// Acknowledged by the server within the window.
    pub committed: u64,
    /// Rolled back as the profile asks.
    pub rolled_back: u64,
    /// Given up with an error.
    pub failed: u64,
    /// Not executed, as the profile allows.
    pub skipped: u64,
    /// Attempts beyond the first one of a transaction.
    pub retries: u64,
    /// Transactions that took more than one attempt.
    #[serde(default)]
    pub retried: u64,
    /// Sessions connected again after a loss.
    pub reconnects: u64,
}

impl Counts {
    pub fn ended(&self) -> u64 {
        let parts = [self.committed, self.rolled_back, self.failed, self.skipped];
        // What another load generator claims may be anything.
        parts.into_iter().fold(0, u64::saturating_add)
    }

    pub fn in_flight(&self) -> u64 {
        self.started.saturating_sub(self.ended())
    }

    pub fn add(&mut self, more: &Counts) {
        self.started = self.started.saturating_add(more.started);
        self.committed = self.committed.saturating_add(more.committed);
        self.rolled_back = self.rolled_back.saturating_add(more.rolled_back);
        self.failed = self.failed.saturating_add(more.failed);
        self.skipped = self.skipped.saturating_add(more.skipped);
        self.retries = self.retries.saturating_add(more.retries);
        self.retried = self.retried.saturating_add(more.retried);
        self.reconnects = self.reconnects.saturating_add(more.reconnects);
    }
}

/// Statements by what they turned out to be.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, schemars::JsonSchema, Deserialize,
)]
pub struct StatementCounts {
    /// Answered with a result set.
    pub reads: u64,
    /// Changed at least one row.
    pub writes: u64,
    /// All others.
    pub others: u64,
    pub rows_read: u64,
    pub rows_written: u64,
    /// Updates and deletes that met no row.
    pub misses: u64,
}

impl StatementCounts {
    pub fn total(&self) -> u64 {
        self.reads + self.writes + self.others
    }
}
