//! `run.json`, what it knows of earlier sessions, and `events.jsonl`.

use crate::{
    Environment, ExperimentFacts, Message, NodeFacts, PublishedTable, RunPlan, SCHEMA_VERSION,
    TargetFacts,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunStatus {
    /// Begun and not ended; when no one writes to the folder any more, it was killed.
    #[default]
    Running,
    /// All steps of the plan were executed.
    Complete,
    /// Stopped by the user; the same command continues with it.
    Interrupted,
    /// Ended by an error; the text says which.
    Failed(Message),
}

/// Whose a table is: a run drops only its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TableOrigin {
    /// Was there before the run first prepared its data.
    Found,
    /// The run makes or has made it; written before it is made.
    Made,
    /// The run had made it and has dropped it.
    Dropped,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema, Deserialize)]
#[serde(default)]
pub struct FleetMember {
    pub name: String,
    pub environment: Environment,
}

/// The state that is renewed before a pair, so that verdicts hold for more than one of its kind.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum Renewed {
    Data,
    Server,
}

/// Servers that were restarted, or data that were restored, before the first of some pairs.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema, Deserialize)]
pub struct RenewalFacts {
    pub renewed: Renewed,
    /// The target; of twins and parts the one whose database it is.
    pub target: String,
    /// The id of the first step that it was made for.
    pub step: String,
    /// Until the servers answered again, or the data were there.
    pub took_s: f64,
}

/// Outcome of a known effect on the whole way from the load to a verdict (`dyno calibrate --effects`).
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema, Deserialize)]
#[serde(default)]
pub struct EffectFacts {
    /// `null server`, or the product and the redacted address.
    pub target: String,
    /// The share that the effect takes of the throughput; 0 is a comparison of the same with itself.
    pub effect: f64,
    /// `tps` or `server_cpu_us`.
    pub metric: String,
    /// Set if a difference was proven, in either direction.
    pub is_found: bool,
    /// After so many pairs it was found, or the time was over.
    pub pairs: usize,
    /// With the effect by without it, and the 95% interval, which holds whenever one looks.
    pub ratio: f64,
    pub low: Option<f64>,
    pub high: Option<f64>,
    /// Length of a trial, seconds.
    pub trial_s: f64,
    /// RFC 3339, UTC.
    pub at: String,
}

/// `run.json`: everything that is known before the first trial.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema, Deserialize)]
#[serde(default)]
pub struct RunHeader {
    /// [`SCHEMA_VERSION`] of the writer.
    pub schema_version: u32,
    pub suite: String,
    /// Title of the paper.
    pub title: String,
    /// The suite's plan; `None` if a drop-in front end ran.
    pub plan: Option<RunPlan>,
    pub environment: Environment,
    /// Known effects that this binary had found on this machine before the run; empty if that was not tried.
    pub effects: Vec<EffectFacts>,
    /// The command as it was given, passwords removed by the caller.
    pub command_line: Vec<String>,
    pub seed: u64,
    /// Its targets as they were found.
    pub targets: Vec<TargetFacts>,
    /// The load generators that make the load together; empty where this machine makes all of it.
    pub fleet: Vec<FleetMember>,
    /// The folder of the run whose plan is executed again, if it is.
    pub reproduces: Option<String>,
    /// The runs whose pairs count alongside its own, the oldest first (`--continue`).
    pub continues: Vec<EarlierSession>,
    /// The experiments in the order of the plan.
    pub experiments: Vec<ExperimentFacts>,
    /// Per target: the tables of the experiments that the run has prepared so far.
    pub tables: BTreeMap<String, BTreeMap<String, TableOrigin>>,
    /// Per id: steps of the plan that can't be executed on their target, and why, in a sentence.
    pub skipped: BTreeMap<String, Message>,
    /// Per experiment, where time ends its repeats: seconds that its trials have taken in all processes of the run,
    /// with what was done around them. Trials that failed or were interrupted are in it, but none that a kill -9 has
    /// cut off.
    pub spent_s: BTreeMap<String, f64>,
    /// Per experiment: the seconds of `spent_s` that completed trials have taken, and those that were guessed for them.
    pub paces: BTreeMap<String, [f64; 2]>,
    /// Trials that count for nothing: both of their pair are made again, or an attempt that was starved less counts.
    pub set_aside: BTreeSet<u32>,
    /// Servers that were restarted and data that were restored before pairs, in order.
    pub renewals: Vec<RenewalFacts>,
    /// Per id: steps whose trial lost a server that did not come back, and the record of what was acknowledged in it,
    /// in the run folder: it is held against the data before these are used again.
    pub owed: BTreeMap<String, String>,
    /// Checks whose findings end the run with exit code 4.
    pub denied: Vec<String>,
    /// Checks whose findings are accepted; they are shown as such.
    pub allowed: Vec<String>,
    /// Per target: another run that held its tables when this one began, if that was allowed (`--share-target`).
    pub shared: BTreeMap<String, Message>,
    /// RFC 3339, UTC.
    pub started_at: String,
    /// RFC 3339, UTC: each time the run was taken up again.
    pub resumed_at: Vec<String>,
    /// RFC 3339, UTC.
    pub finished_at: Option<String>,
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

    /// The comment of the tables that the run makes, where servers keep comments.
    pub fn table_mark(&self) -> String {
        let suite = self.suite.replace(['\'', '\\'], "");
        format!("dyno run of {suite}, seed {}, {}", self.seed, self.started_at)
    }

    /// Tables that the run has made on a target and not dropped.
    pub fn made(&self, target: &str) -> impl Iterator<Item = &str> {
        let tables = self.tables.get(target).into_iter().flatten();
        tables.filter(|(_, origin)| **origin == TableOrigin::Made).map(|(table, _)| table.as_str())
    }

    /// The published figures that its plan names.
    pub fn published(&self) -> impl Iterator<Item = &PublishedTable> {
        self.experiments.iter().flat_map(|experiment| &experiment.published)
    }
}

/// A finished or interrupted run whose pairs count alongside those of the run that continues with it. Complete in
/// itself.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema, Deserialize)]
#[serde(default)]
pub struct EarlierSession {
    /// The name of its folder.
    pub folder: String,
    /// RFC 3339, UTC.
    pub started_at: String,
    pub environment: Environment,
    /// Per target: product and version, as the server stated them.
    pub versions: BTreeMap<String, String>,
    pub comparisons: Vec<SessionPairs>,
    /// Per target: settings and tables of its nodes before its first trial.
    pub looks: BTreeMap<String, NodeFacts>,
}

/// The pairs of two targets at one load level.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema, Deserialize)]
#[serde(default)]
pub struct SessionPairs {
    pub experiment: String,
    /// For example `workers=8`.
    pub level: String,
    /// The name of the target that ratios are taken to.
    pub baseline: String,
    pub candidate: String,
    /// Per metric: baseline and candidate of each pair, in their order.
    pub metrics: BTreeMap<String, Vec<(f64, f64)>>,
}

/// The pairs of each earlier session of a comparison by a metric; a session without any is left out.
pub fn earlier_pairs(
    sessions: &[EarlierSession],
    [experiment, level, baseline, candidate]: [&str; 4],
    metric: &str,
) -> Vec<Vec<(f64, f64)>> {
    let pairs = sessions.iter().filter_map(|session| {
        let comparison = session.comparisons.iter().find(|comparison| {
            comparison.experiment == experiment
                && comparison.level == level
                && comparison.baseline == baseline
                && comparison.candidate == candidate
        })?;
        comparison.metrics.get(metric).filter(|pairs| !pairs.is_empty()).cloned()
    });
    pairs.collect()
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EventKind {
    /// Attempts or connects that met an error: one event per interval, class and code.
    Error,
    /// Sessions that were connected again: one event per interval.
    Reconnect,
    /// Something the server did or had done to it (checkpoint, restart, failover).
    Server,
    /// A remark of dyno.
    #[default]
    Note,
    /// Written by a newer dyno.
    #[serde(other)]
    Other,
}

/// One line of `events.jsonl`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema, Deserialize)]
#[serde(default)]
pub struct Event {
    /// RFC 3339, UTC: when it was written; filled by the store when empty.
    pub at: String,
    pub trial: Option<u32>,
    /// Seconds from the opening of the trial's window; negative in warm-up.
    pub at_s: Option<f64>,
    pub kind: EventKind,
    /// Text in words; of an error the server's message.
    pub text: Message,
    /// The id of the step of the plan that has loaded its data by now.
    pub prepared: Option<String>,
    /// Class of an error, such as `deadlock`.
    pub class: String,
    /// MySQL's or SQLite's number of an error; 0 if there is none.
    pub errno: u32,
    pub sqlstate: String,
    /// Number of occurrences in the interval.
    pub count: u64,
}

impl Event {
    /// An event of that kind that happened once, outside of any trial.
    pub fn new(kind: EventKind, text: impl Into<Message>) -> Self {
        Event { kind, text: text.into(), count: 1, ..Event::default() }
    }
}
