//! What a workload adds to the summary of a trial: its data, its statements, its checks.

use crate::Message;
use serde::{Deserialize, Serialize};

/// The data that a trial ran on, as the server had them before it began.
#[derive(Clone, Debug, Default, PartialEq, Serialize, schemars::JsonSchema, Deserialize)]
#[serde(default)]
pub struct DataFacts {
    /// Rows of the table that keys are drawn from.
    pub rows: u64,
    /// Rows of that table within the range that keys are drawn from; `None` when that is unknown.
    pub hot_rows: Option<u64>,
    /// How keys are drawn and what that means, in sentences.
    pub access: Message,
    /// Size of all tables of the data set with their indexes, bytes.
    pub size_bytes: Option<u64>,
    /// The server's memory for data: its setting's name, such as `shared_buffers`.
    pub memory_setting: String,
    /// Value of that setting, bytes.
    pub memory_bytes: Option<u64>,
}

impl DataFacts {
    /// The share of the rows that is hot, 0 to 1.
    pub fn hot_share(&self) -> Option<f64> {
        let hot_rows = self.hot_rows.filter(|_| self.rows > 0)?;
        Some(hot_rows as f64 / self.rows as f64)
    }

    /// How many times the data fill the server's memory for them.
    pub fn size_to_memory(&self) -> Option<f64> {
        let memory_bytes = self.memory_bytes.filter(|bytes| *bytes > 0)?;
        Some(self.size_bytes? as f64 / memory_bytes as f64)
    }
}

/// One command of a script within the measured window.
#[derive(Clone, Debug, Default, PartialEq, Serialize, schemars::JsonSchema, Deserialize)]
#[serde(default)]
pub struct StatementLatency {
    pub script: String,
    /// Place in the script, from 1.
    pub number: u32,
    /// The command as it is written.
    pub text: String,
    /// Executions that succeeded.
    pub count: u64,
    /// Arithmetic mean of their latencies, microseconds.
    pub mean_us: f64,
    pub min_us: f64,
    pub max_us: f64,
    /// Executions that ended their transaction with an error.
    pub failures: u64,
    /// Executions after which the transaction was tried again.
    pub retries: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CheckVerdict {
    /// The data are as they must be.
    Passed,
    /// They are not: something was lost, invented or changed by somebody else.
    Failed,
    /// It could not be made; the evidence says why.
    NotMade,
}

impl CheckVerdict {
    pub fn name(self) -> &'static str {
        match self {
            CheckVerdict::Passed => "passed",
            CheckVerdict::Failed => "failed",
            CheckVerdict::NotMade => "not made",
        }
    }
}

/// A workload's own check of its data after a trial.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema, Deserialize)]
pub struct DataCheck {
    pub name: String,
    pub verdict: CheckVerdict,
    /// The figures it rests on, in sentences.
    pub evidence: Message,
}

impl DataCheck {
    /// Name of the check of the database against what was acknowledged.
    pub const BOOKS: &'static str = "books";
    /// Name of the check of a family's consistency conditions.
    pub const CONDITIONS: &'static str = "conditions";
    /// Name of the check that each row lies on its shard, where the endpoint finds it.
    pub const SHARD_PLACEMENT: &'static str = "shard-placement";
    /// Name of the check of each shard by itself.
    pub const SHARD_CONDITIONS: &'static str = "shard-conditions";
    /// Name of the check of transactions whose rows lie on several shards.
    pub const ACROSS: &'static str = "across-shards";
    /// Name of the check of every acknowledged order by itself, where they were recorded.
    pub const LEDGER: &'static str = "ledger";
}
