//! What is stored and shown of a trial.

use crate::{
    Conditions, Counts, DataCheck, DataFacts, ErrorTable, FaultFacts, Frame, HostSample, Interval,
    Latencies, Phase, Purpose, StatementLatency, TpccFacts, TpchFacts,
};
use dyno_core::{Nanos, Tally};
use serde::{Deserialize, Serialize};

/// Version of everything that is written to a run folder.
pub const SCHEMA_VERSION: u32 = 1;

/// Percentiles of a set of latencies in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, schemars::JsonSchema, Deserialize)]
pub struct LatencySummary {
    /// Number of transactions.
    pub count: u64,
    /// Smallest.
    pub min_us: f64,
    /// Arithmetic mean.
    pub mean_us: f64,
    /// Median.
    pub p50_us: f64,
    /// 90th percentile.
    pub p90_us: f64,
    /// 95th percentile.
    pub p95_us: f64,
    /// 99th percentile.
    pub p99_us: f64,
    /// 99.9th percentile.
    pub p999_us: f64,
    /// Largest.
    pub max_us: f64,
    /// Sum.
    pub sum_us: f64,
}

impl From<&Latencies> for LatencySummary {
    fn from(latencies: &Latencies) -> Self {
        let at = |percent| latencies.percentile(percent) as f64 / 1e3;
        LatencySummary {
            count: latencies.count(),
            min_us: latencies.min() as f64 / 1e3,
            mean_us: latencies.mean() / 1e3,
            p50_us: at(50.0),
            p90_us: at(90.0),
            p95_us: at(95.0),
            p99_us: at(99.0),
            p999_us: at(99.9),
            max_us: latencies.max() as f64 / 1e3,
            sum_us: latencies.sum() as f64 / 1e3,
        }
    }
}

/// Statements by what they turned out to be.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, schemars::JsonSchema, Deserialize,
)]
pub struct StatementCounts {
    /// Answered with a result set.
    pub reads: u64,
    /// Changed at least one row.
    pub writes: u64,
    /// All others.
    pub others: u64,
    /// Rows received.
    pub rows_read: u64,
    /// Rows changed.
    pub rows_written: u64,
    /// Updates and deletes that met no row.
    pub misses: u64,
}

impl StatementCounts {
    /// Statements of all kinds.
    pub fn total(&self) -> u64 {
        self.reads + self.writes + self.others
    }
}

impl From<Tally> for StatementCounts {
    fn from(tally: Tally) -> Self {
        StatementCounts {
            reads: tally.reads,
            writes: tally.writes,
            others: tally.others,
            rows_read: tally.rows_read,
            rows_written: tally.rows_written,
            misses: tally.misses,
        }
    }
}

/// One kind of error in a trial.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema, Deserialize)]
pub struct ErrorSummary {
    /// Such as `deadlock`.
    pub class: String,
    /// MySQL's or SQLite's number, 0 where there is none.
    pub errno: u32,
    /// SQLSTATE.
    pub sqlstate: String,
    /// First message of this kind.
    pub message: String,
    /// Attempts and connects that met it.
    pub count: u64,
}

/// Turns an error table into what is stored.
pub(crate) fn error_summaries(table: &ErrorTable) -> Vec<ErrorSummary> {
    let summary = |error: &crate::ErrorCount| ErrorSummary {
        class: error.class.name().to_owned(),
        errno: error.errno,
        sqlstate: error.sqlstate.clone(),
        message: error.message.clone(),
        count: error.count,
    };
    table.0.iter().map(summary).collect()
}

/// One kind of transaction in a trial.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema, Deserialize)]
pub struct KindSummary {
    /// Its name.
    pub name: String,
    /// How its transactions ended.
    pub counts: Counts,
    /// Statements of transactions that did not fail.
    pub statements: StatementCounts,
    /// Its latency.
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

/// How a trial ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TrialStatus {
    /// As planned.
    Complete,
    /// Stopped by the user; what was measured until then is kept.
    Interrupted,
    /// Not usable for a claim; the text says why.
    Failed(String),
}

/// One trial as it is stored in `trials/<n>.json`.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema, Deserialize)]
pub struct TrialSummary {
    /// [`SCHEMA_VERSION`] of the writer.
    pub schema_version: u32,
    /// Number within the run, from 1.
    pub trial: u32,
    /// The plan's stable name of the point and repeat, for resuming.
    pub step: String,
    /// Experiment it belongs to.
    pub experiment: String,
    /// Target it ran on.
    pub target: String,
    /// Workload and test, such as `oltp_read_only`.
    pub test: String,
    /// Workers.
    pub workers: u32,
    /// Repeat of the same point, from 1.
    pub repeat: u32,
    /// Offered transactions per second; `None` in a closed loop.
    pub rate_per_s: Option<f64>,
    /// What it was executed for.
    #[serde(default)]
    pub purpose: Purpose,
    /// How it ended.
    pub status: TrialStatus,
    /// RFC 3339, UTC: when the measured window opened.
    pub started_at: String,
    /// Seconds to connect and prepare all workers.
    pub connect_s: f64,
    /// Seconds of warm-up before the window.
    pub warmup_s: f64,
    /// Length of the measured window in seconds.
    pub window_s: f64,
    /// Seed of the random streams.
    pub seed: u64,
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
    /// From the due time where there is a schedule, else from the begin (service time).
    pub latency: LatencySummary,
    /// From the begin; only where there is a schedule.
    pub service: Option<LatencySummary>,
    /// How late transactions began; only where there is a schedule.
    pub lateness: Option<LatencySummary>,
    /// Per kind of transaction.
    pub kinds: Vec<KindSummary>,
    /// Errors of all attempts, by class and code.
    pub errors: Vec<ErrorSummary>,
    /// The load generator.
    pub generator: GeneratorSummary,
    /// Notes for the reader, in sentences.
    pub notes: Vec<String>,
    /// The data; `None` where the workload says nothing of them.
    #[serde(default)]
    pub data: Option<DataFacts>,
    /// Command by command; empty where the workload doesn't measure them one by one.
    #[serde(default)]
    pub statement_latencies: Vec<StatementLatency>,
    /// What surrounded it.
    #[serde(default)]
    pub conditions: Conditions,
    /// What was done to a node in it, where a suite asks for that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault: Option<FaultFacts>,
    /// The workload's checks of the data after the trial.
    #[serde(default)]
    pub checks: Vec<DataCheck>,
    /// What only TPC-C has to say.
    #[serde(default)]
    pub tpcc: Option<TpccFacts>,
    /// What only TPC-H has to say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tpch: Option<TpchFacts>,
}

impl TrialSummary {
    /// Statements per second that read or changed data: SELECT, INSERT, UPDATE and DELETE, without
    /// BEGIN, COMMIT and the like, of transactions that did not fail.
    pub fn data_qps(&self) -> f64 {
        let statements = self.statements.reads + self.statements.writes + self.statements.misses;
        if self.window_s > 0.0 { statements as f64 / self.window_s } else { 0.0 }
    }

    /// Fills what follows from the total frame and the window's length.
    pub fn set_totals(&mut self, total: &Frame, names: &[String], window: Nanos) {
        let seconds = (window as f64 / 1e9).max(1e-9);
        self.window_s = window as f64 / 1e9;
        self.counts = total.counts();
        self.in_flight = self.counts.in_flight();
        self.statements = total.work().into();
        self.wasted = total.wasted().into();
        self.tps = self.counts.committed as f64 / seconds;
        self.qps = self.statements.total() as f64 / seconds;
        self.latency = (&total.latency()).into();
        self.service = total.service.as_ref().map(LatencySummary::from);
        self.lateness = total.lateness.as_ref().map(LatencySummary::from);
        self.errors = error_summaries(&total.errors);
        self.kinds = names
            .iter()
            .zip(&total.kinds)
            .map(|(name, kind)| KindSummary {
                name: name.clone(),
                counts: kind.counts,
                statements: kind.work.into(),
                latency: (&kind.latency).into(),
            })
            .collect();
        let statements = self.statements.total() + self.wasted.total();
        self.generator.loops_cpu_s = total.cpu_ns as f64 / 1e9;
        self.generator.cpu_us_per_statement =
            if statements == 0 { 0.0 } else { total.cpu_ns as f64 / 1e3 / statements as f64 };
    }
}

/// One line of `trials/<n>.csv`: an interval. Columns that an older file lacks read as 0.
#[derive(Clone, Debug, Default, PartialEq, Serialize, schemars::JsonSchema, Deserialize)]
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
    /// Transactions committed.
    pub committed: u64,
    /// Transactions rolled back as asked.
    pub rolled_back: u64,
    /// Transactions failed.
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
    /// Statements per second.
    pub qps: f64,
    /// Mean latency.
    pub mean_us: f64,
    /// Median latency.
    pub p50_us: f64,
    /// 95th percentile.
    pub p95_us: f64,
    /// 99th percentile.
    pub p99_us: f64,
    /// Largest latency.
    pub max_us: f64,
    /// CPU of the loops in this interval, seconds.
    pub loops_cpu_s: f64,
    /// CPU of the generator's machine, 0 to 1.
    pub host_cpu_share: f64,
    /// CPU stolen by the hypervisor, 0 to 1.
    pub host_steal_share: f64,
    /// Transactions committed of each kind, in the order of the summary's kinds. Empty where there
    /// is one kind only, and in older files.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub committed_by_kind: Vec<u64>,
}

impl From<&Interval> for SeriesRow {
    fn from(interval: &Interval) -> Self {
        let counts = interval.frame.counts();
        let work = interval.frame.work();
        let latency = LatencySummary::from(&interval.frame.latency());
        let per_s =
            |n: u64| if interval.length_s > 0.0 { n as f64 / interval.length_s } else { 0.0 };
        SeriesRow {
            begins_s: interval.begins_s,
            length_s: interval.length_s,
            phase: match interval.phase {
                Phase::WarmUp => "warm_up".to_owned(),
                Phase::Measured => "measured".to_owned(),
            },
            started: counts.started,
            committed: counts.committed,
            rolled_back: counts.rolled_back,
            failed: counts.failed,
            skipped: counts.skipped,
            retries: counts.retries,
            reconnects: counts.reconnects,
            errors: interval.frame.errors.total(),
            reads: work.reads,
            writes: work.writes,
            others: work.others,
            wasted: interval.frame.wasted().statements(),
            tps: per_s(counts.committed),
            qps: per_s(work.statements()),
            mean_us: latency.mean_us,
            p50_us: latency.p50_us,
            p95_us: latency.p95_us,
            p99_us: latency.p99_us,
            max_us: latency.max_us,
            loops_cpu_s: interval.frame.cpu_ns as f64 / 1e9,
            host_cpu_share: interval.host.cpu_share,
            host_steal_share: interval.host.steal_share,
            committed_by_kind: match interval.frame.kinds.as_slice() {
                [_] => Vec::new(),
                kinds => kinds.iter().map(|kind| kind.counts.committed).collect(),
            },
        }
    }
}
