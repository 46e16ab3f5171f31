//! What a trial is, known before it runs.

use crate::{
    DataFacts, FamilyFacts, GeneratorSummary, Purpose, SCHEMA_VERSION, TrialStatus, TrialSummary,
};
use serde::{Deserialize, Serialize};

/// What a trial is, known before it runs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, schemars::JsonSchema, Deserialize)]
#[serde(default)]
pub struct TrialIdentity {
    /// The plan's stable name of the point and repeat, for resuming.
    pub step: String,
    pub experiment: String,
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
    /// Which part of a long trial it is, where that was cut.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stage: Option<StageOf>,
    /// The data it runs on; `None` where the workload says nothing of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<DataFacts>,
    /// What only the family of the workload records: before it begins, what is known by then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub own: Option<FamilyFacts>,
}

/// A part of a trial that was cut into stages.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, schemars::JsonSchema, Deserialize,
)]
pub struct StageOf {
    /// From 1.
    pub number: u32,
    /// Stages of the trial.
    pub of: u32,
}

impl TrialIdentity {
    /// The summary of a trial of which nothing was measured.
    pub fn summary(self, status: TrialStatus) -> TrialSummary {
        let schema_version = SCHEMA_VERSION;
        TrialSummary { schema_version, identity: self, status, ..TrialSummary::default() }
    }
}

/// A trial that has begun, as it is stored in `trials/<n>.partial.json`: enough to summarise it after a kill -9.
#[derive(Clone, Debug, Default, PartialEq, Serialize, schemars::JsonSchema, Deserialize)]
#[serde(default)]
pub struct TrialStart {
    /// [`SCHEMA_VERSION`] of the writer; filled by the store.
    pub schema_version: u32,
    /// Number within the run, from 1; filled by the store.
    pub trial: u32,
    #[serde(flatten)]
    pub identity: TrialIdentity,
    /// Loops (threads) that drive the load.
    pub loops: u32,
    /// Names of the kinds of transactions, in the order of the frames.
    pub kinds: Vec<String>,
    /// RFC 3339, UTC: when it began; filled by the store when empty.
    pub began_at: String,
}

impl TrialStart {
    /// The summary of the trial as long as nothing was measured.
    pub fn summary(self, status: TrialStatus) -> TrialSummary {
        TrialSummary {
            trial: self.trial,
            started_at: self.began_at,
            generator: GeneratorSummary { loops: self.loops, ..GeneratorSummary::default() },
            ..self.identity.summary(status)
        }
    }
}
