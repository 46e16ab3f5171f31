//! A fault that was injected in a trial, and what followed.

use crate::{DataCheck, ErrorSummary, Message};
use serde::{Deserialize, Serialize};

/// What was done to a node in a trial, and how the load fared. Seconds count from the opening of the
/// window unless something else is said.
#[derive(Clone, Debug, Default, PartialEq, Serialize, schemars::JsonSchema, Deserialize)]
#[serde(default)]
pub struct FaultFacts {
    /// `kill`, `stop`, `restart`, `freeze`, `partition` or `command`.
    pub action: String,
    pub node: String,
    pub at_s: f64,
    /// When it was asked to end: start, thaw, the end of the partition; `None` where nobody did.
    pub heal_asked_at_s: Option<f64>,
    /// When that was done; a node that was started answers again.
    pub healed_at_s: Option<f64>,
    /// The node that took over, where one did.
    pub promoted: Option<String>,
    /// When that node took writes.
    pub promoted_at_s: Option<f64>,
    /// Resolution of the times below: the length of an interval.
    pub resolution_s: f64,
    /// The shortest outage that is sure to be noticed: one interval and those in which 10 commits would have been
    /// expected, at most the window after the fault.
    pub noticed_s: f64,
    /// Committed transactions per second in the window before the fault.
    pub tps_before: f64,
    /// The same from recovery to the end of the window.
    pub tps_after: Option<f64>,
    /// Seconds from the fault to the end of the longest time without a commit that followed; `None` where
    /// no commit followed, 0 where there was no such time of `noticed_s` or more.
    pub first_success_after_s: Option<f64>,
    /// Seconds from the fault until the throughput was 90 % of that before, and stayed there for a second.
    pub recovered_after_s: Option<f64>,
    /// Where the node is a shard: how those fared whose home lies on it, whatever the others did.
    pub shard: Option<ShardOutage>,
    /// Errors from the fault to the end of the window.
    pub errors: Vec<ErrorSummary>,
    /// Transactions that the database had acknowledged in the trial, warm-up included, by the load
    /// generator's own books: New-Orders of TPC-C (its ledger; on shards its payments, too), transactions of pgbench that write a row of
    /// the history (its journal). `None` where a workload keeps no such books.
    pub acknowledged: Option<u64>,
    /// Of these, those that were not found in it afterwards.
    pub lost: Option<u64>,
    /// Transactions of the same books whose outcome the load generator was not told, so that they may or may
    /// not be there; none of them is in `acknowledged` or `lost`. Of TPC-C, New-Orders whose COMMIT was sent,
    /// and neither acknowledged nor refused. Of pgbench, transactions whose connection was lost, or given up
    /// without an answer, after the values of their row were drawn, also where COMMIT was not sent yet.
    pub unknown: Option<u64>,
    /// On shards: what became of those whose rows lie on several of them. What is lost of these is in `lost`, too.
    pub across_shards: Option<CrossShardLosses>,
    /// How the lost ones were looked for, in a sentence, or why nobody could look.
    pub evidence: Message,
    pub steps: Vec<FaultStep>,
}

impl FaultFacts {
    /// True where a check of this name fails by what the fault has cost: that is its result.
    pub fn explains(&self, check: &str) -> bool {
        let is_torn = self.across_shards.as_ref().is_some_and(CrossShardLosses::is_torn);
        let of_torn = [DataCheck::CONDITIONS, DataCheck::SHARD_CONDITIONS, DataCheck::ACROSS];
        match check {
            DataCheck::BOOKS | DataCheck::LEDGER => {
                is_torn || self.lost.is_some_and(|lost| lost > 0)
            }
            check => is_torn && of_torn.contains(&check),
        }
    }
}

/// How the load of one shard fared after a fault, by the load generator's own count of what was acknowledged: of
/// TPC-C the New-Orders and Payments of terminals whose warehouse lies on it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, schemars::JsonSchema, Deserialize)]
#[serde(default)]
pub struct ShardOutage {
    /// Acknowledged per second in the window before the fault.
    pub per_s_before: f64,
    /// As [`FaultFacts::noticed_s`].
    pub noticed_s: f64,
    /// As [`FaultFacts::first_success_after_s`].
    pub first_success_after_s: Option<f64>,
}

/// What became of transactions whose rows lie on several shards, by the load generator's ledger and each shard's
/// own rows.
#[derive(Clone, Debug, Default, PartialEq, Serialize, schemars::JsonSchema, Deserialize)]
#[serde(default)]
pub struct CrossShardLosses {
    /// Those of them that the endpoint had acknowledged.
    pub acknowledged: u64,
    /// Of the acknowledged ones, those that no shard has.
    pub lost: u64,
    /// Of the acknowledged ones, those that some shards have and others don't.
    pub half_done: u64,
    /// Those that miss their parts on shards where as many branches are prepared, neither committed nor rolled back.
    pub in_doubt: u64,
    /// Those whose outcome the load generator was not told.
    pub unknown: u64,
    /// Of these, those that all their shards have.
    pub unknown_committed: u64,
    /// Of these, those that some shards have and others don't.
    pub unknown_half_done: u64,
    /// Prepared branches on all shards when the load had ended and the fault was over; `None` where nobody said it.
    pub branches: Option<u64>,
    /// Those that were left when the shards were looked at.
    pub branches_left: Option<u64>,
    /// Seconds until no branch was left, or that were waited for it in vain.
    pub branches_s: Option<f64>,
}

impl CrossShardLosses {
    /// True where transactions are not whole.
    pub fn is_torn(&self) -> bool {
        self.lost + self.half_done + self.in_doubt + self.unknown_half_done > 0
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema, Deserialize)]
pub struct FaultStep {
    pub at_s: f64,
    /// `n1 was killed.`
    pub what: Message,
}

/// Throughput counts as recovered at this share of that before the fault.
pub const RECOVERED_SHARE: f64 = 0.9;
