//! Trials: their identity, known before they run, and their stored facts.

use crate::{Conditions, HostSample, Measures, Message, Purpose};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::any::Any;
use std::collections::BTreeMap;
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, OnceLock};

/// Identity of a trial, known before it runs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema, Deserialize)]
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
    /// The purpose of its execution.
    pub purpose: Purpose,
    /// Set if trials of other targets ran concurrently.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_together: bool,
    /// Seconds of warm-up before the window.
    pub warmup_s: f64,
    /// Seed of the random streams.
    pub seed: u64,
    /// The part of a long trial, if that was cut.
    pub stage: Option<StageOf>,
    /// The data it runs on; `None` if the workload says nothing of them.
    pub data: Option<DataFacts>,
    /// Facts that only the family of the workload records: before it begins, those known by then.
    pub own: Option<FamilyFacts>,
}

/// A part of a trial that was cut into stages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema, Deserialize)]
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

/// A trial that has begun, as it is stored in `trials/<n>.partial.json`: enough to summarize it after a kill -9.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema, Deserialize)]
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

/// Version of everything that is written to a run folder.
pub const SCHEMA_VERSION: u32 = 2;

/// Percentiles of a set of latencies in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, JsonSchema, Deserialize)]
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
    /// Returns true if enough samples lie beyond a percentile and those without a latency, which are slower than all,
    /// leave it among the measured ones.
    pub fn has_percentile(&self, beyond: f64) -> bool {
        self.count as f64 * beyond >= SAMPLES_BEYOND && self.is_known(beyond)
    }

    /// Returns true if the percentile with the share `beyond` above it is a measured latency. Else it lies among
    /// arrivals without one, and its field holds the largest measured latency, which is too small.
    pub fn is_known(&self, beyond: f64) -> bool {
        self.missing as f64 <= beyond * (self.count + self.missing) as f64
    }
}

/// Arrivals that a free worker waited for. How late they began is the load generator's own doing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, JsonSchema, Deserialize)]
pub struct AwaitedArrivals {
    pub count: u64,
    /// Begun over 1 ms late.
    pub late: u64,
    pub latest_us: f64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema, Deserialize)]
pub struct ErrorSummary {
    /// For example `deadlock`.
    pub class: String,
    /// MySQL's or SQLite's number, 0 if there is none.
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

#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema, Deserialize)]
pub struct KindSummary {
    pub name: String,
    /// Outcomes of its transactions.
    pub counts: Counts,
    /// Statements of transactions that did not fail.
    pub statements: StatementCounts,
    pub latency: LatencySummary,
}

/// The load generator during the measured window.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema, Deserialize)]
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
    pub loop_queue: Option<LatencySummary>,
    /// Only if there is a schedule.
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

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TrialStatus {
    #[default]
    Complete,
    /// Stopped by the user; what was measured until then is kept.
    Interrupted,
    /// Not usable for a claim; the text says why.
    Failed(Message),
    /// The load generator was starved, and another attempt counts or will: it counts for nothing. Its conditions say by
    /// what.
    Starved,
    /// A stage of a long trial that ended well: it counts within that trial, which is stored behind its last stage.
    Stage,
}

/// A stage of a trial.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, JsonSchema, Deserialize)]
pub struct StageFacts {
    /// Its number within the run.
    pub trial: u32,
    /// Begin of its window within the trial's, seconds: lengths of windows without the gaps between them.
    pub from_s: f64,
    /// Seconds from the end of the previous window to the opening of this one, to about a second; `None` for the first.
    pub gap_s: Option<f64>,
}

/// Rows that a server read by scanning whole tables, as it counted them for dyno's own sessions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema, Deserialize)]
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
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema, Deserialize)]
pub struct TrialSummary {
    /// [`SCHEMA_VERSION`] of the writer.
    pub schema_version: u32,
    /// Number within the run, from 1.
    pub trial: u32,
    #[serde(flatten)]
    pub identity: TrialIdentity,
    pub status: TrialStatus,
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
    /// Its figures, by the names in gates; filled by the store.
    #[serde(default)]
    pub measures: Measures,
    /// From the due time if there is a schedule, else from the begin (service time).
    pub latency: LatencySummary,
    /// From the begin; only if there is a schedule.
    pub service: Option<LatencySummary>,
    /// Lateness of transactions; only if there is a schedule.
    pub lateness: Option<LatencySummary>,
    pub kinds: Vec<KindSummary>,
    /// Errors of all attempts, by class and code.
    pub errors: Vec<ErrorSummary>,
    pub generator: GeneratorSummary,
    /// Set if statements read far more rows than the workload has to.
    pub scans: Option<TableScans>,
    /// Notes for the reader, in sentences.
    pub notes: Vec<Message>,
    /// Command by command; empty if the workload doesn't measure them one by one.
    #[serde(default)]
    pub statement_latencies: Vec<StatementLatency>,
    #[serde(default)]
    pub conditions: Conditions,
    /// The fault injected into it, if a suite asks for one.
    pub fault: Option<FaultFacts>,
    /// The workload's checks of the data after the trial.
    #[serde(default)]
    pub checks: Vec<DataCheck>,
    /// The trials that it is the sum of, in the order of its window; their files are its own. Empty if it was
    /// measured in one piece.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stages: Vec<StageFacts>,
    /// The trial's other files as they were when this was written, by their ends, such as `csv`; filled by the store.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub files: BTreeMap<String, FileSeal>,
}

/// Fingerprint of a file: another length or hash is another file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema, Deserialize)]
pub struct FileSeal {
    pub bytes: u64,
    /// The hash in hexadecimal digits.
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

/// Transactions by how they ended.
///
/// Identity; a trial in which it does not hold has failed:
/// `started = committed + rolled_back + failed + skipped + in_flight`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema, Deserialize)]
pub struct Counts {
    /// Transactions begun in the measured window, and those in flight when it opened.
    pub started: u64,
    /// Acknowledged by the server within the window.
    pub committed: u64,
    /// Rolled back as the profile asks.
    pub rolled_back: u64,
    /// Given up with an error.
    pub failed: u64,
    /// Not executed, as the profile allows.
    pub skipped: u64,
    /// Attempts beyond the first one of a transaction.
    pub retries: u64,
    /// Transactions that took more than one attempt.
    #[serde(default)]
    pub retried: u64,
    /// Sessions connected again after a loss.
    pub reconnects: u64,
}

impl Counts {
    /// Transactions that ended as their profile asks.
    pub fn completed(&self) -> u64 {
        self.committed.saturating_add(self.rolled_back)
    }

    /// Transactions that ended in any way.
    pub fn ended(&self) -> u64 {
        let parts = [self.committed, self.rolled_back, self.failed, self.skipped];
        // What another load generator claims may be anything.
        parts.into_iter().fold(0, u64::saturating_add)
    }

    pub fn in_flight(&self) -> u64 {
        self.started.saturating_sub(self.ended())
    }

    /// Adds the counts of another part of the load.
    pub fn add(&mut self, more: &Counts) {
        self.started = self.started.saturating_add(more.started);
        self.committed = self.committed.saturating_add(more.committed);
        self.rolled_back = self.rolled_back.saturating_add(more.rolled_back);
        self.failed = self.failed.saturating_add(more.failed);
        self.skipped = self.skipped.saturating_add(more.skipped);
        self.retries = self.retries.saturating_add(more.retries);
        self.retried = self.retried.saturating_add(more.retried);
        self.reconnects = self.reconnects.saturating_add(more.reconnects);
    }
}

/// Statements by what they turned out to be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema, Deserialize)]
pub struct StatementCounts {
    /// Answered with a result set.
    pub reads: u64,
    /// Changed at least one row.
    pub writes: u64,
    /// All others.
    pub others: u64,
    pub rows_read: u64,
    pub rows_written: u64,
    /// Reads that returned no row.
    #[serde(default)]
    pub empty_reads: u64,
    /// Updates and deletes that met no row.
    pub misses: u64,
}

impl StatementCounts {
    /// Statements of all kinds.
    pub fn total(&self) -> u64 {
        self.reads + self.writes + self.others
    }
}

/// The data that a trial ran on, as the server had them before it began.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema, Deserialize)]
#[serde(default)]
pub struct DataFacts {
    /// Rows of the table that keys are drawn from.
    pub rows: u64,
    /// Rows of that table within the range that keys are drawn from; `None` when that is unknown.
    pub hot_rows: Option<u64>,
    /// Distribution of the keys and its meaning, in sentences.
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

    /// Ratio of the data to the server's memory for them.
    pub fn size_to_memory(&self) -> Option<f64> {
        let memory_bytes = self.memory_bytes.filter(|bytes| *bytes > 0)?;
        Some(self.size_bytes? as f64 / memory_bytes as f64)
    }
}

/// One command of a script within the measured window.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema, Deserialize)]
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

dyno_core::named! {
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum CheckVerdict {
        /// The data are as they must be.
        Passed = "passed",
        /// Something was lost, invented or changed by somebody else.
        Failed = "failed",
        /// Could not be made; the evidence says why.
        NotMade = "not made",
    }
}

/// A workload's own check of its data after a trial.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema, Deserialize)]
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
    /// Name of the check of every acknowledged order by itself, if they were recorded.
    pub const LEDGER: &'static str = "ledger";
}

/// A record that a family keeps of each of its trials.
pub trait FamilyRecord: Serialize + DeserializeOwned + Send + Sync + 'static {
    /// Name of the workload in suites.
    const FAMILY: &'static str;

    /// Set if a trial is a pass over statements that are timed one by one: it has no transactions.
    const IS_PASS: bool = false;
}

/// The record of one family; only that family reads it.
#[derive(Clone, Debug, Serialize, JsonSchema, Deserialize)]
pub struct FamilyFacts {
    /// Name of the workload in suites.
    pub family: String,
    /// Like [`FamilyRecord::IS_PASS`] says.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    is_pass: bool,
    facts: Value,
    /// The facts as the type of the family, once they were requested.
    #[serde(skip)]
    read: OnceLock<Option<Arc<dyn Any + Send + Sync>>>,
}

impl FamilyFacts {
    pub fn new<T: FamilyRecord>(record: &T) -> Self {
        // Records are numbers, texts and lists of them: they can always be written as JSON.
        let facts = serde_json::to_value(record).unwrap_or_default();
        let family = T::FAMILY.to_owned();
        FamilyFacts { family, is_pass: T::IS_PASS, facts, read: OnceLock::new() }
    }

    /// The record; `None` if it is another family's, or damaged.
    pub fn read<T: FamilyRecord>(&self) -> Option<&T> {
        if self.family != T::FAMILY {
            return None;
        }
        let read = self.read.get_or_init(|| {
            let record: T = serde_json::from_value(self.facts.clone()).ok()?;
            Some(Arc::new(record) as Arc<dyn Any + Send + Sync>)
        });
        read.as_ref()?.downcast_ref()
    }

    /// The number at a JSON pointer.
    pub fn number(&self, pointer: &str) -> Option<f64> {
        self.facts.pointer(pointer)?.as_f64()
    }

    /// Adds to the record's lists: each field of `line` is an element of the list of that name. False
    /// if the record has no such list.
    pub fn append(&mut self, line: Value) -> bool {
        self.read = OnceLock::new();
        let Value::Object(elements) = line else { return false };
        elements.into_iter().all(|(list, element)| match self.facts.get_mut(list) {
            Some(Value::Array(list)) => {
                list.push(element);
                true
            }
            _ => false,
        })
    }
}

impl PartialEq for FamilyFacts {
    fn eq(&self, other: &Self) -> bool {
        (&self.family, &self.facts) == (&other.family, &other.facts)
    }
}

impl TrialSummary {
    /// The record of this family; `None` if the trial is another family's.
    pub fn own<T: FamilyRecord>(&self) -> Option<&T> {
        self.own.as_ref()?.read()
    }

    /// Returns true for a pass over statements that are timed one by one: it has no transactions.
    pub fn is_pass(&self) -> bool {
        self.own.as_ref().is_some_and(|own| own.is_pass)
    }
}

/// The fault of a trial, and how the load fared. Seconds count from the opening of the
/// window unless stated otherwise.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema, Deserialize)]
#[serde(default)]
pub struct FaultFacts {
    /// `kill`, `stop`, `restart`, `freeze`, `partition` or `command`.
    pub action: String,
    pub node: String,
    pub at_s: f64,
    /// When its end was requested: start, thaw, the end of the partition; `None` if no one did.
    pub heal_asked_at_s: Option<f64>,
    /// When that was done; a node that was started answers again.
    pub healed_at_s: Option<f64>,
    /// The node that took over, if one did.
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
    /// Committed transactions per second from recovery to the end of the window.
    pub tps_after: Option<f64>,
    /// Seconds from the fault to the end of the longest time without a commit that followed; `None` where
    /// no commit followed, 0 if there was no such time of `noticed_s` or more.
    pub first_success_after_s: Option<f64>,
    /// Seconds from the fault until the throughput was 90% of that before, and stayed there for a second.
    pub recovered_after_s: Option<f64>,
    /// Outage of those whose home lies on the node, if it is a shard, whatever the others did.
    pub shard: Option<ShardOutage>,
    /// Errors from the fault to the end of the window.
    pub errors: Vec<ErrorSummary>,
    /// Transactions that the database had acknowledged in the trial, warm-up included, by the load
    /// generator's own books: New-Orders of TPC-C (its ledger; on shards its payments, too), transactions of pgbench
    /// that write a row of the history (its journal). `None` if a workload keeps no such books.
    pub acknowledged: Option<u64>,
    /// The ones among these that were not found in it afterwards.
    pub lost: Option<u64>,
    /// Transactions of the same books whose outcome the load generator was not told, so that they may or may
    /// not be there; none of them is in `acknowledged` or `lost`. Of TPC-C, New-Orders whose COMMIT was sent,
    /// and neither acknowledged nor refused. In pgbench: transactions whose connection was lost, or given up
    /// without an answer, after the values of their row were drawn, also where COMMIT was not sent yet.
    pub unknown: Option<u64>,
    /// On shards: what became of those whose rows lie on several of them. What is lost of these is in `lost`, too.
    pub across_shards: Option<CrossShardLosses>,
    /// Search for the lost ones, in a sentence, or the reason why no one could look.
    pub evidence: Message,
    pub steps: Vec<FaultStep>,
}

impl FaultFacts {
    /// Returns true if a check of this name fails by what the fault has cost: that is its result.
    pub fn explains(&self, check: &str) -> bool {
        let is_torn = self.across_shards.as_ref().is_some_and(CrossShardLosses::is_torn);
        let torn_checks = [DataCheck::CONDITIONS, DataCheck::SHARD_CONDITIONS, DataCheck::ACROSS];
        match check {
            DataCheck::BOOKS | DataCheck::LEDGER => {
                is_torn || self.lost.is_some_and(|lost| lost > 0)
            }
            check => is_torn && torn_checks.contains(&check),
        }
    }
}

/// Outage of the load of one shard after a fault, by the load generator's own count of acknowledged work: for
/// TPC-C the New-Orders and Payments of terminals whose warehouse lies on it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema, Deserialize)]
#[serde(default)]
pub struct ShardOutage {
    /// Acknowledged per second in the window before the fault.
    pub per_s_before: f64,
    /// Like [`FaultFacts::noticed_s`].
    pub noticed_s: f64,
    /// Like [`FaultFacts::first_success_after_s`].
    pub first_success_after_s: Option<f64>,
}

/// Outcome of transactions with rows on several shards, by the load generator's ledger and each shard's
/// own rows.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema, Deserialize)]
#[serde(default)]
pub struct CrossShardLosses {
    /// The ones among them that the endpoint had acknowledged.
    pub acknowledged: u64,
    /// Acknowledged ones that no shard has.
    pub lost: u64,
    /// Acknowledged ones that some shards have and others don't.
    pub half_done: u64,
    /// Transactions that miss their parts on shards where as many branches are prepared, neither committed nor rolled
    /// back.
    pub in_doubt: u64,
    /// Transactions whose outcome the load generator did not learn.
    pub unknown: u64,
    /// The ones among these that all their shards have.
    pub unknown_committed: u64,
    /// The ones among these that some shards have and others don't.
    pub unknown_half_done: u64,
    /// Prepared branches on all shards when the load had ended and the fault was over; `None` if no one said it.
    pub branches: Option<u64>,
    /// Branches that were left when the shards were queried.
    pub branches_left: Option<u64>,
    /// Seconds until no branch was left, or that were waited for it in vain.
    pub branches_s: Option<f64>,
}

impl CrossShardLosses {
    /// Returns true if transactions are not whole.
    pub fn is_torn(&self) -> bool {
        self.lost + self.half_done + self.in_doubt + self.unknown_half_done > 0
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema, Deserialize)]
pub struct FaultStep {
    pub at_s: f64,
    /// `n1 was killed.`
    pub what: Message,
}

/// Throughput counts as recovered at this share of that before the fault.
pub const RECOVERED_SHARE: f64 = 0.9;

/// One line of `trials/<n>.csv`: an interval. Columns that an older file lacks read as 0.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema, Deserialize)]
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
    pub committed_by_kind: Vec<u64>,
}

/// A line of `trials/<n>.nodes.csv`: what a node said at one moment of a trial. Counters are growth
/// since the line before.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema, Deserialize)]
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

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Pings {
        answered: Vec<u32>,
        longest_s: f64,
    }

    impl FamilyRecord for Pings {
        const FAMILY: &'static str = "ping";
    }

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Other;

    impl FamilyRecord for Other {
        const FAMILY: &'static str = "other";
    }

    #[test]
    fn a_record_is_read_by_its_family_and_grows_by_lines() {
        let mut facts = FamilyFacts::new(&Pings { answered: vec![1], longest_s: 0.5 });
        assert_eq!(facts.read::<Other>(), None);
        assert_eq!(facts.read::<Pings>().expect("pings").answered, [1]);
        assert!(facts.append(serde_json::json!({ "answered": 2 })));
        assert!(!facts.append(serde_json::json!({ "longest_s": 2 })), "no list");
        assert_eq!(facts.read::<Pings>().expect("pings").answered, [1, 2]);
        assert_eq!(facts.number("/longest_s"), Some(0.5));
    }
}
