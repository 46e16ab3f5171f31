//! What a trial is, known before it runs.

use crate::{
    Conditions, Counts, DataFacts, FamilyFacts, GeneratorSummary, LatencySummary, Purpose,
    SCHEMA_VERSION, StatementCounts, TrialStatus, TrialSummary,
};
use serde::{Deserialize, Serialize};

/// What a trial is, known before it runs: enough to summarise it after a kill -9.
#[derive(Clone, Debug, Default, PartialEq, Serialize, schemars::JsonSchema, Deserialize)]
#[serde(default)]
pub struct TrialIdentity {
    /// The plan's stable name of the point and repeat, for resuming.
    pub step: String,
    /// Experiment it belongs to.
    pub experiment: String,
    /// Target it runs on.
    pub target: String,
    /// Workload and test, such as `oltp_read_only`.
    pub test: String,
    pub workers: u32,
    /// Repeat of the same point, from 1.
    pub repeat: u32,
    /// Offered transactions per second; `None` in a closed loop.
    pub rate_per_s: Option<f64>,
    /// What it is executed for.
    pub purpose: Purpose,
    /// Seconds of warm-up before the window.
    pub warmup_s: f64,
    /// Seed of the random streams.
    pub seed: u64,
    /// Loops (threads) that drive the load.
    pub loops: u32,
    /// Names of the kinds of transactions, in the order of the frames.
    pub kinds: Vec<String>,
    /// RFC 3339, UTC: when it began; filled by the store when empty.
    pub began_at: String,
    /// The data it runs on; `None` where the workload says nothing of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<DataFacts>,
    /// What the family of the workload records, as far as that is known before it begins.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub own: Option<FamilyFacts>,
}

impl TrialIdentity {
    /// The summary of a trial of which nothing was measured.
    pub fn summary(self, status: TrialStatus) -> TrialSummary {
        TrialSummary {
            schema_version: SCHEMA_VERSION,
            trial: 0,
            step: self.step,
            experiment: self.experiment,
            target: self.target,
            test: self.test,
            workers: self.workers,
            repeat: self.repeat,
            rate_per_s: self.rate_per_s,
            purpose: self.purpose,
            status,
            started_at: self.began_at,
            connect_s: 0.0,
            warmup_s: self.warmup_s,
            window_s: 0.0,
            seed: self.seed,
            counts: Counts::default(),
            in_flight: 0,
            tps: 0.0,
            qps: 0.0,
            offered: None,
            statements: StatementCounts::default(),
            wasted: StatementCounts::default(),
            latency: LatencySummary::default(),
            service: None,
            lateness: None,
            kinds: Vec::new(),
            errors: Vec::new(),
            generator: GeneratorSummary { loops: self.loops, ..GeneratorSummary::default() },
            notes: Vec::new(),
            data: self.data,
            statement_latencies: Vec::new(),
            conditions: Conditions::default(),
            checks: Vec::new(),
            fault: None,
            own: self.own,
        }
    }
}
