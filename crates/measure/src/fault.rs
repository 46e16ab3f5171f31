//! A fault that was injected in a trial, and what followed.

use crate::ErrorSummary;
use serde::{Deserialize, Serialize};

/// What was done to a node in a trial, and how the load fared. Seconds count from the opening of the
/// window unless something else is said.
#[derive(Clone, Debug, Default, PartialEq, Serialize, schemars::JsonSchema, Deserialize)]
#[serde(default)]
pub struct FaultFacts {
    /// `kill`, `stop`, `restart`, `freeze`, `partition` or `command`.
    pub action: String,
    /// The node it was done to.
    pub node: String,
    /// When it began.
    pub at_s: f64,
    /// When what ends it began: start, thaw, the end of the partition; `None` where nothing does.
    pub healed_at_s: Option<f64>,
    /// The node that took over, where one did.
    pub promoted: Option<String>,
    /// When that node took writes.
    pub promoted_at_s: Option<f64>,
    /// Resolution of the times below: the length of an interval.
    pub resolution_s: f64,
    /// Committed transactions per second in the window before the fault.
    pub tps_before: f64,
    /// The same from recovery to the end of the window.
    pub tps_after: Option<f64>,
    /// Seconds from the fault to the end of the longest time without a commit that followed; `None` where
    /// no commit followed, 0 where there was no such time.
    pub first_success_after_s: Option<f64>,
    /// Seconds from the fault until the throughput was 90 % of that before, and stayed there for a second.
    pub recovered_after_s: Option<f64>,
    /// Errors from the fault to the end of the window.
    pub errors: Vec<ErrorSummary>,
    /// Transactions that the database had acknowledged in the trial.
    pub acknowledged: Option<u64>,
    /// Of these, those that were not found in it afterwards.
    pub lost: Option<u64>,
    /// Commits that were sent and not answered: they may or may not be there.
    pub unknown: Option<u64>,
    /// How the lost ones were looked for, in a sentence, or why nobody could look.
    pub evidence: String,
    /// What happened, in the order of time: `12.0 s: killed n1`.
    pub steps: Vec<String>,
}
