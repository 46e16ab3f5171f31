//! Conditions of a trial: the load generator's machine, the servers' state, and their other work.
//!
//! Everything is optional: what could not be read is `None` and is not taken for zero. Shares are 0
//! to 1. "Window" is the measured window of the trial.

use crate::{LatencySummary, Measures, Message};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The purpose of a trial.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    /// To measure a point of the plan.
    #[default]
    Measure,
    /// A step of the search for the highest rate under an objective.
    Search,
    /// To measure again what a sweep or a search had chosen: only this figure is without bias.
    Confirm,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema, Deserialize)]
#[serde(default)]
pub struct Conditions {
    pub generator: GeneratorConditions,
    pub nodes: BTreeMap<String, NodeConditions>,
    /// The load generators, if several made the load together; empty if one made all of it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub members: Vec<GeneratorMember>,
    /// Counts of all nodes together, if there are several; each node's share is with the node.
    pub together: Option<Together>,
    /// Transactions that the servers rolled back from before to after the trial, beyond those that the client knows as
    /// rolled back or failed, or that only read; `None` if that isn't known.
    pub unknown_rollbacks: Option<u64>,
    /// The freshness of reads after writes; `None` if it was not probed.
    pub freshness: Option<Freshness>,
}

/// Counts of several nodes together from before to after a trial, and the client's counts over
/// the same time. dyno's own questions and what replicas apply are left out.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema, Deserialize)]
#[serde(default)]
pub struct Together {
    /// Commits that the servers counted.
    pub commits: Option<u64>,
    /// Commits that the client counted.
    pub client_commits: Option<u64>,
    /// Commits that its sessions may have made while they prepared, which no one has counted.
    pub preparing_commits: u64,
    /// Set if an endpoint stands between, which may make commits of its own: only missing ones say
    /// something.
    pub through_endpoint: bool,
}

/// Reads after writes through the target as the load reaches it, while the trial ran: a row of a table of
/// dyno's own was written and read again at once, in autocommit.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema, Deserialize)]
#[serde(default)]
pub struct Freshness {
    /// Writes that were read again by the session that wrote.
    pub asked: u64,
    /// Reads among these that did not show the write.
    pub stale: u64,
    /// Writes that were read again by another session.
    pub asked_other: u64,
    /// Reads among these that did not show the write.
    pub stale_other: u64,
    /// The longest time after which a write was still not shown.
    pub stale_max_ms: Option<f64>,
    /// Statements of this that went through an endpoint: no one knows which nodes executed them, so that
    /// they are among what the nodes counted. On other ways each node's own are left out of its counts.
    pub unplaced: u64,
}

/// One of several load generators that made the load of a trial together.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema, Deserialize)]
#[serde(default)]
pub struct GeneratorMember {
    pub name: String,
    /// Name of its machine.
    pub host: String,
    pub workers: u32,
    /// The read-only nodes over which its workers were spread; empty if the load isn't spread over nodes.
    pub nodes: Vec<String>,
    /// Statements that it counted in its own window, of transactions that did not fail.
    pub statements: u64,
    /// Latency of its transactions.
    pub latency: Option<LatencySummary>,
    /// Delay of its workers' start after the agreed moment, by its own clock.
    pub late_ms: Option<f64>,
    /// Half of the shortest round trip in which its clock was read: the skew is known as well as this.
    pub clock_bound_ms: Option<f64>,
    /// CPU seconds of its loops in the window.
    pub cpu_s: Option<f64>,
    /// Load of its machine in the window.
    pub host_load: Option<HostSample>,
    /// The limits that it met in the window.
    pub conditions: GeneratorConditions,
    /// Reason for giving it up, in a sentence, if it died or stopped answering.
    pub lost: Option<Message>,
    /// Transactions that it counted as committed in its own window.
    pub committed: u64,
    /// When its window opened, seconds from the opening of the trial's.
    pub from_s: f64,
    /// When its window closed, seconds from the opening of the trial's.
    pub to_s: f64,
    /// Its clock minus that of the first load generator.
    pub clock_skew_ms: Option<f64>,
}

/// The load generator and its machine in the window.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema, Deserialize)]
#[serde(default)]
pub struct GeneratorConditions {
    /// Share of the window in which some task waited for a CPU (`/proc/pressure/cpu`, some).
    pub cpu_pressure_share: Option<f64>,
    /// Share of the window in which some task waited for memory (`/proc/pressure/memory`, some).
    pub memory_pressure_share: Option<f64>,
    /// Share of the window in which some task waited for input or output (`/proc/pressure/io`, some).
    pub io_pressure_share: Option<f64>,
    /// Share of the machine's CPUs that neither the load generator nor the target's servers used; `None` if a server
    /// of the target is elsewhere, or its own share can't be known.
    pub foreign_cpu_share: Option<f64>,
    /// Seconds that the loops waited for a CPU although they could run (`schedstat`), all together.
    pub run_delay_s: Option<f64>,
    /// The load generator's own hiccups: 99.9th percentile of how late a thread woke that asked to be
    /// woken every 10 ms.
    pub hiccup_p999_us: Option<f64>,
    pub hiccup_max_us: Option<f64>,
    /// Share of the link's speed that the busiest network interface used.
    pub network_share: Option<f64>,
    /// TCP segments sent again, by those sent; `None` if these are too few to tell.
    pub retransmitted_share: Option<f64>,
    pub swapped_pages: Option<u64>,
    /// Share of the window in which the process was held back by a CPU quota (`cpu.stat`).
    pub throttled_share: Option<f64>,
    /// Time for which the machine was suspended from the first connect to the end of the window (CLOCK_BOOTTIME minus
    /// CLOCK_MONOTONIC), which no other clock shows.
    pub suspended_ms: Option<f64>,
    /// The CPUs' frequency governor, such as `performance`; several are joined with a comma.
    pub governor: Option<String>,
    /// Times of the highest rate reached against the null server, by that of this trial: the
    /// head-room that `dyno calibrate` has proven for as many workers; `None` without a proof.
    pub headroom: Option<f64>,
    /// The cause that starved it, if that was so severe that the trial is not to be trusted. Found from conditions
    /// alone, never from what was measured.
    pub starved: Option<Message>,
    /// The share of the window (0 to 1) that it lost by that, which is what took the most; with several load generators
    /// of the one that lost the most, with stages of that stage. It is 1 where the load generator stood still or its
    /// machine was suspended: any other attempt is better.
    pub starved_share: Option<f64>,
}

impl GeneratorConditions {
    /// Share of the window that loops which could run may wait for a CPU: as much is in the latency. As much of its
    /// time a load generator may lose in other ways: it is what comparisons try to tell apart.
    pub const LOST_TIME: f64 = 0.05;
    /// Share of all CPUs that may be busy: a queue grows without bounds near 100%, and at 80% an M/M/1 queue is four
    /// times as long as its service (catalog of checks).
    pub const BUSY_CPU: f64 = 0.80;
    /// A load generator that stalled for this many seconds has missed more than any percentile forgives, however long
    /// the window was.
    const STOPPED_S: f64 = 2.0;
    /// Shorter than this the scheduler of a busy machine lets a thread wait now and then.
    const LEAST_STOPPED_S: f64 = 0.25;

    /// The longest time in a window of `window_s` for which it did not run at all, if that is too much.
    pub fn stopped_s(&self, window_s: f64) -> Option<f64> {
        let least_s = (Self::LOST_TIME * window_s).clamp(Self::LEAST_STOPPED_S, Self::STOPPED_S);
        self.hiccup_max_us
            .map(|longest_us| longest_us / 1e6)
            .filter(|longest_s| *longest_s >= least_s)
    }

    /// Clocks are read one after the other, so that less than this can't be distinguished from nothing.
    const SUSPENDED_MS: f64 = 1.0;

    /// The time for which the machine was suspended, if it was.
    pub fn suspension_ms(&self) -> Option<f64> {
        self.suspended_ms.filter(|ms| *ms > Self::SUSPENDED_MS)
    }
}

/// State of a node before a trial, and its work in the window.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema, Deserialize)]
#[serde(default)]
pub struct NodeConditions {
    /// Counts in the window, or before it began.
    #[serde(flatten)]
    pub measures: Measures,
    /// `primary`, `read_only`, `endpoint` or `shard`; `None` in runs of before there were several nodes.
    pub role: Option<String>,
    /// Statements that only read, as the server counted them from before to after the trial
    /// (`Com_select`); `None` if it doesn't tell them apart.
    pub reads: Option<u64>,
    /// Statements that write, likewise (`Com_insert`, `Com_update`, `Com_delete`, ...).
    pub writes: Option<u64>,
    /// Rows that were fetched by an index over the same time (PostgreSQL, `tup_fetched`).
    pub rows_fetched: Option<u64>,
    /// Rows that were inserted, updated and deleted, likewise.
    pub rows_written: Option<u64>,
    /// Largest replica lag that was sampled in the window.
    pub lag_max_s: Option<f64>,
    /// 95th percentile of the replica lags that were sampled in the window.
    pub lag_p95_s: Option<f64>,
    /// Transactions that it applied from another node over the same time; they are in none of the counts
    /// above and below. `None` if it applies none, or doesn't say.
    pub replicated: Option<u64>,
    /// Commits over the same time that did not wait for a semi-synchronous replica, though they should
    /// have: none answered in time, or none was there.
    pub unacknowledged: Option<u64>,
    /// Reason why it could not be queried at some time from before to after the trial, in a sentence, if it was
    /// away or began again.
    pub down: Option<Message>,
    /// The settings that decide what a commit promises, each state of them that was seen from before to after the
    /// trial.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub commit_settings: Vec<String>,
    /// Set if it reloaded its configuration over the same time, without a restart (PostgreSQL).
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub was_reloaded: bool,
    /// Median of the round trip of the smallest statement, before the trial.
    pub round_trip_us: Option<f64>,
    /// Share of all CPUs that were busy; only where dyno can see the machine.
    pub cpu_share: Option<f64>,
    /// The process whose CPU the measures have, with all that descend from it; its control group, if it has one of
    /// its own.
    pub cpu_of: Option<String>,
    pub isolation: Option<String>,
    /// The server's memory for data, bytes.
    pub cache_bytes: Option<u64>,
    /// Size of the database before the trial, bytes.
    pub data_bytes: Option<u64>,
    /// Share of page requests in the window that its memory answered.
    pub hit_share: Option<f64>,
    /// Pages read from disk (or the system's cache) in the window.
    pub pages_read: Option<u64>,
    /// Share of its memory for data that was dirty when the trial began.
    pub dirty_share: Option<f64>,
    /// Old row versions waiting to be purged when the trial began (InnoDB history list, dead rows).
    pub purge_backlog: Option<u64>,
    /// Log written since the last checkpoint when the trial began, as a share of what forces one.
    pub checkpoint_age_share: Option<f64>,
    /// Checkpoints that ended in the window.
    pub checkpoints: Option<u64>,
    /// Seconds between two checkpoints, as the settings want it.
    pub checkpoint_interval_s: Option<f64>,
    /// Its own work that was seen at some moment of the window: `autovacuum: sbtest3`.
    pub background: Vec<String>,
    /// Commits that the server counted from before to after the trial, warm-up among them.
    pub commits: Option<u64>,
    /// Transactions that it rolled back, likewise.
    pub rollbacks: Option<u64>,
    /// The client's commits over the same time, for the comparison with `commits`.
    pub client_commits: Option<u64>,
    /// Commits that the client's sessions may have made while they prepared, which no one has counted.
    pub preparing_commits: u64,
    /// Transactions over the same time in other databases of the server, where `commits` are those of the measured one
    /// alone (PostgreSQL): no one's but others', and its CPU is theirs too.
    pub transactions_elsewhere: Option<u64>,
    /// Seconds over which these were counted.
    pub elsewhere_s: Option<f64>,
    /// Set if it is certain that no one else executed anything in this database meanwhile: what the server counts
    /// beyond the client's commits is its own work, such as that of parallel workers.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub was_alone: bool,
    /// Statements that the server counted over the same time.
    pub statements: Option<u64>,
    /// Size of the database after the trial by that before it, minus 1.
    pub growth_share: Option<f64>,
    /// Set if a cache of whole answers is on; `None` if the product has no such cache.
    pub query_cache: Option<bool>,
    /// Tables of the workload that the optimizer has no statistics of.
    pub tables_without_statistics: Vec<String>,
    /// Tables and indexes of the workload as the server describes them, as one checksum.
    pub schema_checksum: Option<String>,
    /// Rows of the workload's tables as the server estimates or counts them.
    pub table_rows: BTreeMap<String, u64>,
    /// Mean length of the first rows of larger tables of the workload (of their texts on MySQL and MariaDB), bytes.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub row_bytes: BTreeMap<String, f64>,
    /// The copies of the data; empty if there are none or none could be read.
    pub replicas: Vec<ReplicaFacts>,
    pub acknowledged_by: Option<CommitWait>,
    /// Transport of the connection: `tcp`, `unix socket`, with `, tls` if it is encrypted.
    pub transport: Option<String>,
    /// The servers that an endpoint reaches by postgres_fdw.
    pub foreign_servers: Vec<String>,
}

/// The event that a commit waits for, in words of the product: `local`, `1 semi-sync replica`, `any 2 of 3`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CommitWait {
    /// This node alone, or nothing at all.
    Local(Message),
    /// Other copies too.
    Copies(Message),
}

impl CommitWait {
    /// The event in words of the product.
    pub fn words(&self) -> &Message {
        match self {
            CommitWait::Local(words) | CommitWait::Copies(words) => words,
        }
    }

    pub fn has_copy(&self) -> bool {
        matches!(self, CommitWait::Copies(_))
    }
}

/// A copy as the node that feeds it describes it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema, Deserialize)]
#[serde(default)]
pub struct ReplicaFacts {
    /// Its name or address.
    pub name: String,
    /// `async`, `semi-sync`, `sync`, `quorum` or `potential`.
    pub mode: String,
    /// Text of the server, such as `streaming`.
    pub state: String,
    pub lag_s: Option<f64>,
}

impl NodeConditions {
    /// Returns true if it reaches several other servers by postgres_fdw.
    pub fn joins_foreign_shards(&self) -> bool {
        self.foreign_servers.len() > 1
    }
}

/// Settings of the machine that bear on measurements. `None` if the kernel doesn't say.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema, Deserialize)]
#[serde(default)]
pub struct Machine {
    /// The CPUs' frequency governor, such as `performance`; several are joined with a comma.
    pub governor: Option<String>,
    /// Transparent huge pages: `always`, `madvise` or `never`.
    pub huge_pages: Option<String>,
    /// Memory that can be swapped out to disk, MiB; 0 without swap.
    pub swap_mib: Option<u64>,
    /// For example `virtual machine (Google Compute Engine)`, `container`; `none` on bare metal.
    pub virtualization: Option<String>,
    /// The disk of the root's file system: `vda, ext4`, with the model if it has one.
    pub disk: Option<String>,
    /// CPUs that the kernel hands received packets to (`rps_cpus`), by interface: `eth0 f`. `0` is
    /// the one that took the interrupt.
    pub packet_steering: Option<String>,
}

/// Activity of the host since the previous sample. Shares are of all CPUs together, 0 to 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, JsonSchema, Deserialize)]
pub struct HostSample {
    /// Busy CPU: everything but idle and waiting for disks.
    pub cpu_share: f64,
    /// CPU taken by the hypervisor for others.
    pub steal_share: f64,
    /// CPU idle while a disk request was open.
    pub iowait_share: f64,
    /// Memory that programs can still get, MiB.
    pub memory_available_mib: f64,
    /// Bytes received on all interfaces but loopback, per second.
    pub network_received_bytes_per_s: f64,
    /// Bytes sent on all interfaces but loopback, per second.
    pub network_sent_bytes_per_s: f64,
}

/// The load generator's machine and binary. What can't be found out is empty or 0.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema, Deserialize)]
#[serde(default)]
pub struct Environment {
    pub host: String,
    /// For example `Debian GNU/Linux 12 (bookworm)`.
    pub system: String,
    /// For example `Linux 6.1.0-18-amd64 x86_64`.
    pub kernel: String,
    /// For example `AMD EPYC 7B13`.
    pub cpu_model: String,
    /// Processors that dyno may use.
    pub cores: u32,
    /// Memory of the machine, MiB.
    pub memory_mib: f64,
    /// Settings of the machine that bear on measurements.
    pub machine: Machine,
    /// Backend of the loops: `io_uring` (loops of one or two workers use epoll unless `--io uring` was given), or
    /// `epoll` and why it is not io_uring.
    pub loops_io: String,
    pub dyno_version: String,
    /// SHA-256 of the running binary, hexadecimal.
    pub binary_sha256: String,
}
