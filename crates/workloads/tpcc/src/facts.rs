//! Facts of a TPC-C trial beyond those of every trial.

use dyno_facts::{CheckVerdict, Counts, FamilyRecord, KindSummary, Message};
use serde::{Deserialize, Serialize};

/// The record of a trial.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TpccFacts {
    /// `bmsql-5.0` or `spec`.
    pub profile: String,
    /// The isolation level that sessions asked for; `None` is the server's own.
    pub isolation: Option<String>,
    /// Warehouses used.
    pub warehouses: u32,
    pub warehouses_loaded: u32,
    pub terminals: u32,
    /// Sessions that executed the transactions of the terminals.
    pub sessions: u32,
    /// New-Orders per minute that were completed in the measured window: those that were rolled back for an unused
    /// item (clause 2.4.1.4) count, as the specification computes throughput (clause 5.4) and every published figure
    /// has it.
    pub tpmc: f64,
    /// New-Orders per minute whose commit was acknowledged: about 1% fewer.
    pub tpmc_committed: f64,
    /// Transactions of all kinds per minute that were committed or rolled back as in `tpmc`; a Delivery counts once.
    pub tpm_total: f64,
    /// The tpmC that keying and think times allow (12.86 for each warehouse); `None` without them.
    pub tpmc_limit: Option<f64>,
    pub kinds: Vec<TpccKind>,
    /// New-Orders of the whole trial, warm-up among them, whose commit was acknowledged.
    pub orders_acknowledged: u64,
    /// New-Orders of the whole trial whose commit was sent and never answered.
    pub orders_unknown: u64,
    /// Deliveries executed, and those among them that found a district without an order.
    pub deliveries: u64,
    pub deliveries_with_skips: u64,
    /// Shards that the warehouses lie on; `None` if no one knows.
    pub shards: Option<u32>,
    /// Share of the New-Orders and Payments whose rows lie on several shards, 0 to 1; `None` if unknown.
    pub crossing_share: Option<f64>,
    /// Executed work compared with the profile.
    pub audit: Vec<AuditLine>,
    /// The consistency conditions before and after the trial, in their order.
    pub conditions: Vec<ConditionLine>,
}

impl FamilyRecord for TpccFacts {
    const FAMILY: &'static str = "tpcc";
}

impl TpccFacts {
    /// The kind that is counted in tpmC.
    pub const NEW_ORDER: &'static str = "new_order";
    /// The kind that Deliveries queued by terminals are executed as; no part of the mix.
    pub const DEFERRED: &'static str = "delivery_deferred";

    /// Sets the rates by the trial's kinds and the length of its window: both tpmC, and tpmTOTAL.
    pub fn set_rates(&mut self, kinds: &[KindSummary], window_s: f64) {
        let per_minute =
            |count: u64| if window_s > 0.0 { count as f64 * 60.0 / window_s } else { 0.0 };
        let orders =
            kinds.iter().find(|kind| kind.name == Self::NEW_ORDER).map(|kind| &kind.counts);
        let in_mix = kinds.iter().filter(|kind| kind.name != Self::DEFERRED);
        self.tpmc = per_minute(orders.map_or(0, Counts::completed));
        self.tpmc_committed = per_minute(orders.map_or(0, |counts| counts.committed));
        self.tpm_total = per_minute(in_mix.map(|kind| kind.counts.completed()).sum());
    }
}

/// One consistency condition.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ConditionLine {
    /// `C1` to `C12` of clause 3.3.2, `X1` and on for further ones.
    pub id: String,
    pub rule: Message,
    /// Before the trial; `None` if it need not hold then.
    pub before: Option<ConditionState>,
    /// After it; `None` if it need not hold then, as those of a fresh database.
    pub after: Option<ConditionState>,
}

/// Outcome of a condition.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ConditionState {
    pub verdict: CheckVerdict,
    /// The number of violations with the first of them by key, or why it was not made; empty where
    /// it held.
    pub evidence: Message,
}

/// Bounds of one kind of transaction of TPC-C; its figures are in the trial's kinds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TpccKind {
    /// The name of the kind, such as `new_order` or `delivery_deferred`.
    pub name: String,
    /// Limit of the 90th percentile of its response time, seconds.
    pub limit_p90_s: f64,
    /// Its share of the mix as the profile wants it, percent; 0 outside of the mix.
    pub share_percent: f64,
    /// The least share that the specification allows, percent; 0 is not a bound.
    pub least_share_percent: f64,
    /// `None` where terminals make no pauses.
    pub pauses: Option<PauseFacts>,
}

/// Means of the pauses around the transactions of a kind in the measured window, seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct PauseFacts {
    pub thinks: u64,
    pub think_s: f64,
    /// The least mean of clause 5.2.5.7.
    pub think_clause_s: f64,
    /// The first transactions of terminals are not among them.
    pub keyings: u64,
    pub keying_s: f64,
    /// The least of clause 5.2.5.7.
    pub keying_clause_s: f64,
}

/// One figure of an audit alongside its expected value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AuditLine {
    /// For example `remote order lines`.
    pub name: Message,
    /// The observation with its unit (`1.02%`).
    pub observed: Message,
    pub expected: Message,
    /// Largest deviation by chance, or the permitted range.
    pub bound: Message,
    /// Observations it rests on.
    pub of: u64,
    /// Passed if the observation lies within the bound.
    pub verdict: CheckVerdict,
}
