//! What an initialization tells while it works, and at its end.

use super::options::Step;
use dyno_load::LoadReport;
use std::time::Duration;

/// Accounts so far.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Progress {
    /// Rows sent or found. Rises by 10,000 or less from call to call.
    pub rows_done: u64,
    /// Rows of the table when it is full.
    pub rows_total: u64,
    /// Since the first account was about to be sent.
    pub elapsed: Duration,
    /// What the rest will take at the speed so far.
    pub remaining: Duration,
}

/// Follows an initialization. Called from all loading threads, but by one at a time. Every method
/// does nothing unless it is written.
pub trait InitObserver: Sync {
    /// A step begins.
    fn step_began(&self, _step: Step) {}
    /// A step is done.
    fn step_ended(&self, _step: Step, _elapsed: Duration) {}
    /// As many partitions of the accounts are about to be created.
    fn creating_partitions(&self, _partitions: u32) {}
    /// More accounts have been sent.
    fn rows_done(&self, _progress: &Progress) {}
    /// What the server remarked on the step that ends now, as its own client prints it:
    /// `NOTICE:  table "pgbench_accounts" does not exist, skipping`.
    fn server_notice(&self, _line: &str) {}
    /// True when the user wants the end of it now. Asked about ten times a second.
    fn is_canceled(&self) -> bool {
        false
    }
    /// Something the user should know, in one sentence without its full stop.
    fn note(&self, _text: &str) {}
}

/// Watches nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct NobodyWatches;

impl InitObserver for NobodyWatches {}

/// What an initialization did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InitReport {
    /// The steps in the order in which they ran, and how long each took.
    pub steps: Vec<(Step, Duration)>,
    /// What became of the accounts.
    pub loaded: LoadReport,
    /// Sessions that loaded accounts.
    pub connections: u32,
}
