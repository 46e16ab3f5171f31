//! `run.json`.

use crate::{Environment, Message, SCHEMA_VERSION};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// How a run stands.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, schemars::JsonSchema, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunStatus {
    /// Begun and not ended; when nobody writes to the folder any more, it was killed.
    #[default]
    Running,
    /// All steps of the plan were executed.
    Complete,
    /// Stopped by the user; the same command goes on with it.
    Interrupted,
    /// Ended by an error; the text says which.
    Failed(Message),
}

/// Whose a table is: a run drops only its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TableOrigin {
    /// It was there before the run first prepared its data.
    Found,
    /// The run makes or has made it; written before it is made.
    Made,
    /// The run had made it and has dropped it.
    Dropped,
}

/// A target as it was found when the run began.
#[derive(Clone, Debug, Default, PartialEq, Serialize, schemars::JsonSchema, Deserialize)]
#[serde(default)]
pub struct TargetFacts {
    /// Its name in the suite.
    pub name: String,
    /// URLs of its nodes, without passwords.
    pub urls: Vec<String>,
    /// Such as `MariaDB`.
    pub product: String,
    /// As the server states it.
    pub version: String,
    /// Node class, where the suite names one.
    pub class: String,
    /// Its nodes; empty in runs of before there were several.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub nodes: Vec<TargetNode>,
    /// How the load reaches them: `primary`, `endpoint`, `split` or `spread`; empty where there is one.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub route: String,
    /// The target whose cluster this is, of which only the first read-only nodes are driven.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub part_of: Option<String>,
    /// True when a node is on the load generator's own machine.
    pub same_host: bool,
    /// Virtual CPUs of a node, where the suite states them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vcpu: Option<f64>,
    /// Memory of a node in GiB, where the suite states it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_gib: Option<f64>,
    /// How a commit is made durable, where the suite states it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub durability: Option<String>,
    /// Facts that the suite states because nobody can read them, by the name of the fact.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub stated: BTreeMap<String, String>,
    /// What an hour costs, where the suite states it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub price: Option<Price>,
}

/// A node of a target as it was found when the run began.
#[derive(Clone, Debug, Default, PartialEq, Serialize, schemars::JsonSchema, Deserialize)]
#[serde(default)]
pub struct TargetNode {
    /// Its name in the suite, or its role and number.
    pub name: String,
    /// `primary`, `read_only`, `endpoint` or `shard`.
    pub role: String,
    /// Its URL without password.
    pub url: String,
    /// Such as `MariaDB`.
    pub product: String,
    /// As the server states it.
    pub version: String,
    /// True when it is on the load generator's own machine.
    pub same_host: bool,
}

/// A load generator of a fleet.
#[derive(Clone, Debug, Default, PartialEq, Serialize, schemars::JsonSchema, Deserialize)]
#[serde(default)]
pub struct FleetMember {
    pub name: String,
    /// Its machine and binary.
    pub environment: Environment,
}

/// A fault that an experiment injects into each of its trials.
#[derive(Clone, Debug, Default, PartialEq, Serialize, schemars::JsonSchema, Deserialize)]
#[serde(default)]
pub struct FaultPlan {
    /// `kill`, `stop`, `restart`, `freeze`, `partition` or `command`.
    pub action: String,
    /// The node: a name, or a role.
    pub node: String,
    /// Seconds from the opening of the window.
    pub at_s: f64,
    /// Seconds from the fault to what ends it, where something does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub heal_after_s: Option<f64>,
    /// True where a read-only node is made the primary.
    pub promote: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, schemars::JsonSchema, Deserialize)]
#[serde(default)]
pub struct Price {
    /// Of the whole target for an hour.
    pub per_hour: f64,
    /// Such as `USD`.
    pub currency: String,
}

/// Which two targets an experiment compares, and how long it repeats.
#[derive(Clone, Debug, Default, PartialEq, Serialize, schemars::JsonSchema, Deserialize)]
#[serde(default)]
pub struct ComparisonFacts {
    /// The target that ratios are taken to.
    pub baseline: String,
    /// The targets whose ratios are told.
    pub candidates: Vec<String>,
    /// True when both are the same system: the comparison measures the noise floor.
    pub is_aa: bool,
    /// Fewest pairs.
    pub pairs_least: u32,
    pub pairs_most: u32,
    /// Half-width of the 95 % interval of the ratio at which repetition ends, such as 0.02.
    pub half_width: Option<f64>,
    /// Seconds after which repetition ends.
    pub budget_s: Option<f64>,
    /// How the data come back to the same state before each trial, as the suite declares:
    /// `untouched` (nothing is written), `reloaded`, `grows`, or a command.
    pub data_state: String,
}

/// A script of an experiment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, schemars::JsonSchema, Deserialize)]
#[serde(default)]
pub struct ScriptFacts {
    pub name: String,
    /// Its share of the transactions, relative to the other scripts.
    pub weight: u32,
    /// What is in it.
    pub text: String,
}

/// An experiment of the plan, as a reader needs it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, schemars::JsonSchema, Deserialize)]
#[serde(default)]
pub struct ExperimentFacts {
    /// Its name in the suite.
    pub name: String,
    pub title: String,
    /// Workload and test, such as `sysbench oltp_read_only`.
    pub test: String,
    /// Options of the workload, all that were given.
    pub options: BTreeMap<String, String>,
    /// The scripts that it runs, where the suite brings its own.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub scripts: Vec<ScriptFacts>,
    /// Seconds of warm-up planned before each window.
    pub warmup_s: f64,
    /// Seconds planned for each window; `None` when a count of transactions ends a trial.
    pub window_s: Option<f64>,
    /// What is compared, where the suite compares.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub comparison: Option<ComparisonFacts>,
    /// Gates as they are written, such as `tps.ratio.low > 0.97`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub gates: Vec<String>,
    /// The objective of a search for the highest rate, as it is written: `p99 < 20ms`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub objective: Option<String>,
    /// What is done to a node in each trial, where the suite asks for that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fault: Option<FaultPlan>,
}

/// The plan of a run, without passwords: what readers need of it, and the whole.
#[derive(Clone, Debug, Default, PartialEq, Serialize, schemars::JsonSchema, Deserialize)]
#[serde(default)]
pub struct StoredPlan {
    /// 16 hexadecimal digits over all that decides what is executed: equal in runs that may go on with each other.
    pub hash: String,
    /// 1, or the share of the suite's data and durations that is executed.
    pub shrink: f64,
    /// The plan as the suite made it. Only a suite reads it.
    pub whole: serde_json::Value,
}

/// `run.json`: everything that is known before the first trial.
#[derive(Clone, Debug, Default, PartialEq, Serialize, schemars::JsonSchema, Deserialize)]
#[serde(default)]
pub struct RunHeader {
    /// [`SCHEMA_VERSION`] of the writer.
    pub schema_version: u32,
    /// Name of the suite.
    pub suite: String,
    /// Title of the paper.
    pub title: String,
    /// The suite's plan; `None` where a drop-in front end ran.
    pub plan: Option<StoredPlan>,
    /// The load generator's machine and binary.
    pub environment: Environment,
    /// The command as it was given, passwords removed by the caller.
    pub command_line: Vec<String>,
    /// Seed of all random streams.
    pub seed: u64,
    pub targets: Vec<TargetFacts>,
    /// The load generators that make the load together; empty where this machine makes all of it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub fleet: Vec<FleetMember>,
    /// The folder of the run whose plan is executed again, where it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reproduces: Option<String>,
    /// The experiments in the order of the plan.
    pub experiments: Vec<ExperimentFacts>,
    /// By target: the tables of the experiments that the run has prepared so far.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub tables: BTreeMap<String, BTreeMap<String, TableOrigin>>,
    /// By id: steps of the plan that can't be executed on their target, and why, in a sentence.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub skipped: BTreeMap<String, Message>,
    /// Checks whose findings end the run with exit code 4.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub denied: Vec<String>,
    /// Checks whose findings are accepted; they are shown as such.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allowed: Vec<String>,
    /// RFC 3339, UTC.
    pub started_at: String,
    /// RFC 3339, UTC: each time the run was taken up again.
    pub resumed_at: Vec<String>,
    /// RFC 3339, UTC.
    pub finished_at: Option<String>,
    /// How it stands.
    pub status: RunStatus,
}

impl RunHeader {
    /// A header; the store fills in when the run begins.
    pub fn new(suite: &str, command_line: Vec<String>, seed: u64) -> Self {
        RunHeader {
            schema_version: SCHEMA_VERSION,
            suite: suite.to_owned(),
            title: suite.to_owned(),
            command_line,
            seed,
            ..RunHeader::default()
        }
    }
}
