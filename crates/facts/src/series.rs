//! Lines of the series of a trial.

use serde::{Deserialize, Serialize};

/// One line of `trials/<n>.csv`: an interval. Columns that an older file lacks read as 0.
#[derive(Clone, Debug, Default, PartialEq, Serialize, schemars::JsonSchema, Deserialize)]
#[serde(default)]
pub struct SeriesRow {
    /// Seconds from the opening of the window to the interval's begin; negative in warm-up.
    pub begins_s: f64,
    /// Length in seconds.
    pub length_s: f64,
    /// `warm_up` or `measured`.
    pub phase: String,
    /// Transactions begun; in the first measured interval also those in flight when it opened.
    pub started: u64,
    pub committed: u64,
    /// Transactions rolled back as asked.
    pub rolled_back: u64,
    pub failed: u64,
    /// Transactions not executed, as the profile allows.
    pub skipped: u64,
    /// Attempts repeated.
    pub retries: u64,
    /// Sessions replaced.
    pub reconnects: u64,
    /// Errors of attempts and connects.
    pub errors: u64,
    /// Statements with a result set.
    pub reads: u64,
    /// Statements that changed rows.
    pub writes: u64,
    /// Other statements.
    pub others: u64,
    /// Statements of attempts that failed.
    pub wasted: u64,
    /// Committed transactions per second.
    pub tps: f64,
    pub qps: f64,
    pub mean_us: f64,
    pub p50_us: f64,
    pub p95_us: f64,
    pub p99_us: f64,
    pub max_us: f64,
    /// CPU of the loops in this interval, seconds.
    pub loops_cpu_s: f64,
    /// CPU of the generator's machine, 0 to 1.
    pub host_cpu_share: f64,
    /// CPU stolen by the hypervisor, 0 to 1.
    pub host_steal_share: f64,
    /// Transactions committed of each kind, in the order of the summary's kinds. Empty where there
    /// is one kind only, and in older files.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub committed_by_kind: Vec<u64>,
}

/// A line of `trials/<n>.nodes.csv`: what a node said at one moment of a trial. Counters are growth
/// since the line before.
#[derive(Clone, Debug, Default, PartialEq, Serialize, schemars::JsonSchema, Deserialize)]
#[serde(default)]
pub struct NodeRow {
    /// Seconds from the opening of the window; negative in warm-up.
    pub at_s: f64,
    pub node: String,
    /// Sessions that execute something.
    pub active_sessions: Option<f64>,
    /// Sessions that wait for a lock.
    pub waiting_sessions: Option<f64>,
    /// Share of the machine's CPU, where dyno can see it.
    pub cpu_share: Option<f64>,
    /// Pages read into the server's memory for data.
    pub pages_read: Option<f64>,
    /// Pages written from it.
    pub pages_written: Option<f64>,
    pub log_bytes: Option<f64>,
    /// Dirty share of the memory for data.
    pub dirty_share: Option<f64>,
    pub lag_s: Option<f64>,
}
