//! What is stored and shown of a trial.

use crate::{
    Conditions, Counts, DataCheck, FaultFacts, HostSample, Measures, Message, StatementCounts,
    StatementLatency, TrialIdentity,
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ops::{Deref, DerefMut};

/// Version of everything that is written to a run folder.
pub const SCHEMA_VERSION: u32 = 2;

/// Percentiles of a set of latencies in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, schemars::JsonSchema, Deserialize)]
pub struct LatencySummary {
    pub count: u64,
    /// Arrivals of a schedule without a latency: failed, skipped, unfinished or never begun. In percentiles they are
    /// slower than all others.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub missing: u64,
    pub min_us: f64,
    pub mean_us: f64,
    pub p50_us: f64,
    pub p90_us: f64,
    pub p95_us: f64,
    pub p99_us: f64,
    pub p999_us: f64,
    /// A trial's includes the longest transaction in flight when the window closed, which the other figures leave out.
    pub max_us: f64,
    pub sum_us: f64,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// A percentile rests on at least this many samples beyond it.
pub const SAMPLES_BEYOND: f64 = 10.0;

impl LatencySummary {
    /// True when enough samples lie beyond a percentile and those without a latency, which are slower than all, leave it
    /// among the measured ones.
    pub fn has_percentile(&self, beyond: f64) -> bool {
        self.count as f64 * beyond >= SAMPLES_BEYOND && self.is_known(beyond)
    }

    /// True when the percentile with the share `beyond` above it is a measured latency. Else it lies among arrivals
    /// without one, and its field holds the largest measured latency, which is too small.
    pub fn is_known(&self, beyond: f64) -> bool {
        self.missing as f64 <= beyond * (self.count + self.missing) as f64
    }
}

/// Arrivals that a free worker waited for. How late they began is the load generator's own doing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, schemars::JsonSchema, Deserialize)]
pub struct AwaitedArrivals {
    pub count: u64,
    /// Begun over 1 ms late.
    pub late: u64,
    pub latest_us: f64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema, Deserialize)]
pub struct ErrorSummary {
    /// Such as `deadlock`.
    pub class: String,
    /// MySQL's or SQLite's number, 0 where there is none.
    pub errno: u32,
    pub sqlstate: String,
    /// First message of this kind, in the server's words.
    pub message: Message,
    /// Attempts and connects that met it.
    pub count: u64,
}

impl ErrorSummary {
    /// A conflict that the workload found by itself: no server gave it a number.
    pub fn is_own_conflict(&self) -> bool {
        (&*self.class, self.errno, &*self.sqlstate) == ("serialization", 0, "00000")
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema, Deserialize)]
pub struct KindSummary {
    pub name: String,
    /// How its transactions ended.
    pub counts: Counts,
    /// Statements of transactions that did not fail.
    pub statements: StatementCounts,
    pub latency: LatencySummary,
}

/// The load generator during the measured window.
#[derive(Clone, Debug, Default, PartialEq, Serialize, schemars::JsonSchema, Deserialize)]
pub struct GeneratorSummary {
    /// Loops (threads) that drove the load.
    pub loops: u32,
    /// CPU seconds of all loops.
    pub loops_cpu_s: f64,
    /// CPU seconds of the busiest loop, as a share of the window (0 to 1).
    pub busiest_loop_share: f64,
    /// Own CPU per statement, microseconds; 0 when nothing ran.
    pub cpu_us_per_statement: f64,
    /// Resident memory of the process at the end, MiB.
    pub resident_mib: f64,
    /// Answers in dyno's own queue: from the return of a loop's wait to the handling of each answer. `None` of sessions
    /// that block their thread.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loop_queue: Option<LatencySummary>,
    /// Only where there is a schedule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub awaited: Option<AwaitedArrivals>,
    /// The machine, averaged over the window.
    pub host: HostSample,
    /// Transactions per worker: mean.
    pub worker_transactions_mean: f64,
    /// Transactions per worker: standard deviation of the population.
    pub worker_transactions_stddev: f64,
    /// Seconds a worker spent inside transactions: mean.
    pub worker_busy_s_mean: f64,
    /// Seconds a worker spent inside transactions: standard deviation of the population.
    pub worker_busy_s_stddev: f64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, schemars::JsonSchema, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TrialStatus {
    #[default]
    Complete,
    /// Stopped by the user; what was measured until then is kept.
    Interrupted,
    /// Not usable for a claim; the text says why.
    Failed(Message),
    /// The load generator was starved, and another attempt counts or will: it counts for nothing. By what stands in its
    /// conditions.
    Starved,
    /// A stage of a long trial that ended well: it counts within that trial, which is stored behind its last stage.
    Stage,
}

/// A stage of a trial.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, schemars::JsonSchema, Deserialize)]
pub struct StageFacts {
    /// Its number within the run.
    pub trial: u32,
    /// Where its window begins within the trial's, seconds: lengths of windows without the gaps between them.
    pub from_s: f64,
    /// Seconds from the end of the window before it to the opening of its own, to about a second; `None` of the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gap_s: Option<f64>,
}

/// Rows that a server read by scanning whole tables, as it counted them for dyno's own sessions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema, Deserialize)]
pub struct TableScans {
    pub rows: u64,
    /// The statements that read them: those of the session (MySQL), or the scans alone (PostgreSQL).
    pub statements: u64,
}

impl TableScans {
    pub fn rows_each(self) -> u64 {
        self.rows / self.statements.max(1)
    }
}

/// One trial as it is stored in `trials/<n>.json`. Fields of its identity read as its own.
#[derive(Clone, Debug, Default, PartialEq, Serialize, schemars::JsonSchema, Deserialize)]
pub struct TrialSummary {
    /// [`SCHEMA_VERSION`] of the writer.
    pub schema_version: u32,
    /// Number within the run, from 1.
    pub trial: u32,
    #[serde(flatten)]
    pub identity: TrialIdentity,
    pub status: TrialStatus,
    /// That its rate was missed, of an attempt with status `starved`: if it is the one that counts, it has failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missed: Option<Message>,
    /// RFC 3339, UTC: when the measured window opened.
    pub started_at: String,
    /// Seconds to connect and prepare all workers.
    pub connect_s: f64,
    /// Length of the measured window in seconds.
    pub window_s: f64,
    /// Transactions by how they ended.
    pub counts: Counts,
    /// Begun and not ended when the window closed.
    pub in_flight: u64,
    /// Committed transactions per second.
    pub tps: f64,
    /// Statements of transactions that did not fail, per second.
    pub qps: f64,
    /// Arrivals that fell into the window; `None` in a closed loop.
    pub offered: Option<u64>,
    /// Statements of transactions that did not fail.
    pub statements: StatementCounts,
    /// Statements of attempts that failed.
    pub wasted: StatementCounts,
    /// What it has figures of, by the names in gates; filled by the store.
    #[serde(default)]
    pub measures: Measures,
    /// From the due time where there is a schedule, else from the begin (service time).
    pub latency: LatencySummary,
    /// From the begin; only where there is a schedule.
    pub service: Option<LatencySummary>,
    /// How late transactions began; only where there is a schedule.
    pub lateness: Option<LatencySummary>,
    pub kinds: Vec<KindSummary>,
    /// Errors of all attempts, by class and code.
    pub errors: Vec<ErrorSummary>,
    pub generator: GeneratorSummary,
    /// Set if statements read far more rows than the workload has to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scans: Option<TableScans>,
    /// Notes for the reader, in sentences.
    pub notes: Vec<Message>,
    /// Command by command; empty where the workload doesn't measure them one by one.
    #[serde(default)]
    pub statement_latencies: Vec<StatementLatency>,
    #[serde(default)]
    pub conditions: Conditions,
    /// What was done to a node in it, where a suite asks for that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault: Option<FaultFacts>,
    /// The workload's checks of the data after the trial.
    #[serde(default)]
    pub checks: Vec<DataCheck>,
    /// The trials that it is the sum of, in the order of its window; their files are its own. Empty where it was measured
    /// in one piece.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stages: Vec<StageFacts>,
    /// The trial's other files as they were when this was written, by their ends, such as `csv`; filled by the store.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub files: BTreeMap<String, FileSeal>,
}

/// What a file held: another length or hash is another file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, schemars::JsonSchema, Deserialize)]
pub struct FileSeal {
    pub bytes: u64,
    /// In hexadecimal digits.
    pub sha256: String,
}

impl Deref for TrialSummary {
    type Target = TrialIdentity;

    fn deref(&self) -> &TrialIdentity {
        &self.identity
    }
}

impl DerefMut for TrialSummary {
    fn deref_mut(&mut self) -> &mut TrialIdentity {
        &mut self.identity
    }
}

impl TrialSummary {
    /// Statements per second that read or changed data: SELECT, INSERT, UPDATE and DELETE, without
    /// BEGIN, COMMIT and the like, of transactions that did not fail.
    pub fn data_qps(&self) -> f64 {
        let statements = self.statements.reads + self.statements.writes + self.statements.misses;
        if self.window_s > 0.0 { statements as f64 / self.window_s } else { 0.0 }
    }
}
