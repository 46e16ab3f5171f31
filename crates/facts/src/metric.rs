//! Metrics: each is a row of [`Metric`], declared once.
//!
//! Run folders, tables, CSV, JSON, gates, comparisons and `/metrics` loop over the rows. A new metric is a row here,
//! and the place that counts, if nothing counts it yet.

use crate::statistics::gate::Objective;
use crate::statistics::knee::{self, TestedRate};
use crate::{LatencySummary, Message, MessageTexts, Purpose, SAMPLES_BEYOND, TrialSummary};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use std::collections::BTreeMap;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    More,
    Less,
}

/// A latency in microseconds.
pub type LatencyUs = fn(&LatencySummary) -> f64;

/// Source of a metric.
#[derive(Clone, Copy)]
enum Source {
    /// A value that a trial has stored.
    Trial(fn(&TrialSummary) -> Option<f64>),
    /// The latency that this share of the transactions exceeds.
    Percentile(f64, LatencyUs),
    /// A number in the record of its family: the family, and a JSON pointer.
    Record(&'static str, &'static str),
    /// Counted on each node: the sum of nodes, and of stages that follow each other; `None` if one isn't known.
    Node,
    /// The count of all nodes, times this, for a transaction.
    Cost(Metric, f64),
}

struct MetricRow {
    title: MessageTexts,
    better: Better,
    /// Set for an observation that estimates nothing: it has no interval, and one trial suffices.
    is_fact: bool,
    source: Source,
}

macro_rules! metrics {
    ($($(#[$about:meta])* $Metric:ident = $name:literal, $en:literal, $zh:literal, $kind:ident, $source:expr;)+) => {
        dyno_core::named! {
            /// Sorted in the order of tables; names are those in gates, CSV and JSON, and end with the unit.
            #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
            pub enum Metric {
                $($(#[$about])* $Metric = $name,)+
            }
        }

        static ROWS: [MetricRow; Metric::ALL.len()] = [$(MetricRow {
            title: MessageTexts {
                key: concat!("metric.", $name),
                one: None,
                en: $en,
                zh: $zh,
                places: &[],
            },
            better: metrics!(better $kind),
            is_fact: metrics!(is_fact $kind),
            source: $source,
        }),+];
    };
    (better more) => { Better::More };
    (better $kind:ident) => { Better::Less };
    (is_fact fact) => { true };
    (is_fact $kind:ident) => { false };
}

// `more` and `less` are estimates, by what is better; of a `fact` less is.
metrics! {
    Tps = "tps", "transactions per second", "每秒事务数", more,
        Source::Trial(|trial| trial.has_rates().then_some(trial.tps));
    Qps = "qps", "statements per second", "每秒语句数", more,
        Source::Trial(|trial| trial.has_rates().then_some(trial.qps));
    /// New-Orders per minute of TPC-C, those that are rolled back as the specification asks among them.
    Tpmc = "tpmc", "tpmC", "tpmC", more, Source::Record("tpcc", "/tpmc");
    /// New-Orders per minute whose commit was acknowledged.
    TpmcCommitted = "tpmc_committed", "New-Orders acknowledged per minute", "每分钟得到确认的 New-Order 数", more,
        Source::Record("tpcc", "/tpmc_committed");
    /// Seconds of all queries of TPC-H.
    TotalS = "total_s", "total time, s", "总耗时（s）", less, Source::Record("tpch", "/metrics/total_s");
    /// Geometric mean of the seconds of the queries of TPC-H.
    GeometricMeanS = "geometric_mean_s", "geometric mean, s", "几何平均（s）", less,
        Source::Record("tpch", "/metrics/geometric_mean_s");
    /// Queries per hour of TPC-H, scaled by the size of the data.
    Qphh = "qphh", "QphH", "QphH", more, Source::Record("tpch", "/metrics/qphh");
    MeanMs = "mean_ms", "mean latency, ms", "平均延迟（ms）", less, Source::Trial(|trial| {
        (trial.latency.count > 0).then_some(trial.latency.mean_us / 1e3)
    });
    P50Ms = "p50_ms", "median latency, ms", "延迟中位数（ms）", less,
        Source::Percentile(0.5, |latency| latency.p50_us);
    P95Ms = "p95_ms", "95th percentile of latency, ms", "延迟 95 分位（ms）", less,
        Source::Percentile(0.05, |latency| latency.p95_us);
    P99Ms = "p99_ms", "99th percentile of latency, ms", "延迟 99 分位（ms）", less,
        Source::Percentile(0.01, |latency| latency.p99_us);
    P999Ms = "p999_ms", "99.9th percentile of latency, ms", "延迟 99.9 分位（ms）", less,
        Source::Percentile(0.001, |latency| latency.p999_us);
    MaxMs = "max_ms", "largest latency, ms", "最大延迟（ms）", fact, Source::Trial(|trial| {
        let latency = &trial.latency;
        (latency.count > 0 && latency.is_known(0.0)).then_some(latency.max_us / 1e3)
    });
    /// User and system time of all processes of the servers.
    ServerCpuUs = "server_cpu_us", "server CPU per transaction, µs", "每事务服务器 CPU（µs）", less,
        Source::Cost(Metric::CpuS, 1e6);
    /// CPU time of statements, as servers count it themselves: `events_statements_cpu` of MySQL, `userstat` of MariaDB,
    /// `pg_stat_kcache`. Background work is not in it. Asked only of servers whose processes can't be seen.
    ServerStatementCpuUs = "server_statement_cpu_us", "CPU of statements per transaction, µs",
        "每事务语句 CPU（µs）", less, Source::Cost(Metric::StatementCpuS, 1e6);
    /// Number of times that threads of the servers left a CPU, by themselves or not; `None` if one of them has ended in
    /// the window.
    ServerContextSwitches = "server_context_switches", "context switches of the server per transaction",
        "每事务服务器上下文切换次数", less, Source::Cost(Metric::ContextSwitches, 1.0);
    /// Bytes that the servers gave to the file system or read from its devices, the log among them; `None` if the
    /// kernel does not let this user see them.
    ServerWrittenBytes = "server_written_bytes", "bytes written by the server per transaction",
        "每事务服务器写入字节数", less, Source::Cost(Metric::WrittenBytes, 1.0);
    ServerReadBytes = "server_read_bytes", "bytes read by the server per transaction",
        "每事务服务器读取字节数", less, Source::Cost(Metric::ReadBytes, 1.0);
    /// Bytes of WAL (PostgreSQL) or redo log (InnoDB), a replica's own among them.
    ServerLogBytes = "server_log_bytes", "WAL or redo bytes per transaction", "每事务 WAL 或 redo 字节数", less,
        Source::Cost(Metric::LogBytes, 1.0);
    /// Errors of all attempts by transactions begun, 0 to 1.
    Errors = "errors", "errors by transactions begun", "错误数与发起事务数之比", fact, Source::Trial(|trial| {
        let errors: u64 = trial.errors.iter().map(|error| error.count).sum();
        (trial.counts.started > 0).then(|| errors as f64 / trial.counts.started as f64)
    });
    /// CPU seconds (user and system) of all processes of a node in the window; `None` if they can't be seen: on
    /// another machine, in a container, shared with another node, begun again.
    CpuS = "cpu_s", "CPU of a node, s", "节点 CPU（s）", fact, Source::Node;
    ContextSwitches = "context_switches", "context switches of a node", "节点上下文切换次数", fact,
        Source::Node;
    WrittenBytes = "written_bytes", "bytes written by a node", "节点写入字节数", fact, Source::Node;
    ReadBytes = "read_bytes", "bytes read by a node", "节点读取字节数", fact, Source::Node;
    StatementCpuS = "statement_cpu_s", "CPU of a node's statements, s", "节点语句 CPU（s）", fact, Source::Node;
    LogBytes = "log_bytes", "WAL or redo bytes of a node", "节点 WAL 或 redo 字节数", fact, Source::Node;
}

impl Metric {
    /// The metrics of a whole trial: gates, comparisons and tables are about them.
    pub fn trial_metrics() -> impl Iterator<Item = Metric> {
        Metric::ALL.into_iter().filter(|metric| !matches!(metric.row().source, Source::Node))
    }

    /// Metrics of what a transaction costs the servers.
    pub fn costs() -> impl Iterator<Item = Metric> {
        Metric::ALL.into_iter().filter(|metric| metric.is_cost())
    }

    pub fn from_name(name: &str) -> Option<Metric> {
        Metric::trial_metrics().find(|metric| metric.name() == name)
    }

    /// Returns the row that declares the metric.
    fn row(self) -> &'static MetricRow {
        &ROWS[self as usize]
    }

    /// Text in words, with its unit.
    pub fn title(self) -> Message {
        Message::of(&self.row().title, [])
    }

    /// The unit that ends its name: `us`, `ms` or `s`.
    pub fn unit(self) -> Option<&'static str> {
        let unit = self.name().rsplit_once('_')?.1;
        matches!(unit, "us" | "ms" | "s").then_some(unit)
    }

    /// Returns which figures are better; of a fact, smaller ones.
    pub fn better(self) -> Better {
        self.row().better
    }

    /// Returns true for an observation that estimates nothing: it has no interval, and one trial suffices.
    pub fn is_fact(self) -> bool {
        self.row().is_fact
    }

    /// The share of the transactions that are slower, and the latency, if it is a percentile.
    pub fn percentile(self) -> Option<(f64, LatencyUs)> {
        match self.row().source {
            Source::Percentile(beyond, latency_us) => Some((beyond, latency_us)),
            _ => None,
        }
    }

    /// Returns true for what a transaction costs the servers. It is its own question: it may differ where
    /// throughput does not, and what others had the same servers do may be in it.
    pub fn is_cost(self) -> bool {
        matches!(self.row().source, Source::Cost(..))
    }
}

impl Serialize for Metric {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl TrialSummary {
    /// A figure; `None` if the trial has none: a percentile with too few samples beyond it, a metric of another
    /// workload, what not every node tells.
    pub fn figure(&self, metric: Metric) -> Option<f64> {
        match metric.row().source {
            Source::Trial(value) => value(self),
            Source::Percentile(beyond, latency_us) => {
                self.latency.has_percentile(beyond).then(|| latency_us(&self.latency) / 1e3)
            }
            Source::Record(family, pointer) => {
                self.own.as_ref().filter(|own| own.family == family)?.number(pointer)
            }
            Source::Node => self.sum_of_nodes(|node| node.get(metric)),
            Source::Cost(..) => {
                let cost = self.sum_of_nodes(|node| self.cost(node, metric));
                cost.filter(|_| self.has_rates())
            }
        }
    }

    /// Returns the figures of this trial and of the same repeat on another target, with the number of the unit they
    /// belong to. `unit` is the number of repeats in a unit. `None` if either side has no figure.
    pub fn paired_figures(
        &self,
        other: &TrialSummary,
        metric: Metric,
        unit: u32,
    ) -> Option<(u32, (f64, f64))> {
        let figures = self.figure(metric).zip(other.figure(metric))?;
        Some((self.repeat.saturating_sub(1) / unit, figures))
    }

    /// Like [`Self::figure`], for an objective: arrivals without a latency are slower than any bound. `None` if the
    /// window holds too few transactions for it.
    pub fn searched_figure(&self, metric: Metric) -> Option<f64> {
        let latency = &self.latency;
        let arrivals = (latency.count + latency.missing) as f64;
        let (beyond, latency_us, is_enough) = match metric.percentile() {
            Some((share, read)) => (share, read(latency), arrivals * share >= SAMPLES_BEYOND),
            None if metric == Metric::MaxMs => (0.0, latency.max_us, arrivals > 0.0),
            None => return self.figure(metric),
        };
        let latency_ms = if latency.is_known(beyond) { latency_us / 1e3 } else { f64::INFINITY };
        is_enough.then_some(latency_ms)
    }

    /// The findings of a step of a search; `None` of the closed loop before it.
    pub fn tested_rate(&self, objective: &Objective) -> Option<TestedRate> {
        // Compared with the arrivals in the window: a Poisson process has its own luck.
        let offered = self.offered.filter(|&offered| offered > 0)?;
        let ended = self.counts.completed() + self.counts.skipped + self.in_flight;
        let meets_objective = objective.is_satisfied_by(self.searched_figure(objective.metric));
        let (ended, failed) = (ended as f64, self.counts.failed as f64);
        Some(TestedRate {
            rate_per_s: self.rate_per_s?,
            is_confirmation: self.purpose == Purpose::Confirm,
            is_held: knee::is_held(offered as f64, ended, failed, objective, meets_objective),
        })
    }

    fn sum_of_nodes(&self, figure: impl Fn(&Measures) -> Option<f64>) -> Option<f64> {
        let nodes = &self.conditions.nodes;
        let sum = nodes.values().map(|node| figure(&node.measures)).sum::<Option<f64>>();
        sum.filter(|_| !nodes.is_empty())
    }

    /// Cost, on the node that measured this, of a transaction that was committed, or rolled back as its profile asks.
    pub fn cost(&self, node: &Measures, metric: Metric) -> Option<f64> {
        let Source::Cost(counter, factor) = metric.row().source else { return None };
        let transactions = self.counts.completed();
        let count = node.get(counter).filter(|_| transactions > 0)?;
        Some(count * factor / transactions as f64)
    }

    /// All that it has figures of.
    pub fn figures(&self) -> Measures {
        let figures = Metric::trial_metrics();
        figures.map(|metric| (metric, self.figure(metric))).collect()
    }

    /// Returns false if nothing was measured, and for a pass over statements, which has no transactions.
    fn has_rates(&self) -> bool {
        self.window_s > 0.0 && !self.is_pass()
    }
}

/// Figures by metric: those that are known.
#[derive(Clone, Debug, Default, PartialEq, JsonSchema)]
pub struct Measures(#[schemars(with = "BTreeMap<String, f64>")] BTreeMap<Metric, f64>);

impl Measures {
    /// The figure of a metric, if it is known.
    pub fn get(&self, metric: Metric) -> Option<f64> {
        self.0.get(&metric).copied()
    }

    /// Replaces the figure of a metric, or removes it.
    pub fn set(&mut self, metric: Metric, figure: Option<f64>) {
        match figure {
            Some(figure) => drop(self.0.insert(metric, figure)),
            None => drop(self.0.remove(&metric)),
        }
    }

    /// Sorted in the order of the rows.
    pub fn iter(&self) -> impl Iterator<Item = (Metric, f64)> {
        self.0.iter().map(|(metric, figure)| (*metric, *figure))
    }

    /// All of them multiplied by `factor`: counted a little longer than the window.
    pub fn scaled(mut self, factor: f64) -> Self {
        self.0.values_mut().for_each(|figure| *figure *= factor);
        self
    }

    /// With others instead, if those are known.
    pub fn extend(&mut self, others: &Measures) {
        self.0.extend(&others.0);
    }

    /// Adds those of a node in the next stage.
    pub fn append(&mut self, next: &Measures) {
        for metric in Metric::ALL {
            if matches!(metric.row().source, Source::Node) {
                let sum = self.get(metric).zip(next.get(metric)).map(|(one, next)| one + next);
                self.set(metric, sum);
            }
        }
    }
}

impl FromIterator<(Metric, Option<f64>)> for Measures {
    fn from_iter<I: IntoIterator<Item = (Metric, Option<f64>)>>(figures: I) -> Self {
        let measured = figures.into_iter().filter_map(|(metric, figure)| Some((metric, figure?)));
        Measures(measured.collect())
    }
}

impl<const N: usize> From<[(Metric, Option<f64>); N]> for Measures {
    fn from(figures: [(Metric, Option<f64>); N]) -> Self {
        Measures::from_iter(figures)
    }
}

impl Serialize for Measures {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer
            .collect_map(self.0.iter().map(|(metric, figure)| (metric.name(), Figure(*figure))))
    }
}

/// Counts are written as counts.
struct Figure(f64);

impl Serialize for Figure {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        const MOST: f64 = (1_u64 << f64::MANTISSA_DIGITS) as f64;
        if self.0.fract() == 0.0 && (0.0..MOST).contains(&self.0) {
            serializer.serialize_u64(self.0 as u64)
        } else {
            serializer.serialize_f64(self.0)
        }
    }
}

/// Leaves out metrics that this version does not know.
impl<'de> Deserialize<'de> for Measures {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let figures = BTreeMap::<String, Value>::deserialize(deserializer)?;
        let measures = Metric::ALL
            .into_iter()
            .filter_map(|metric| Some((metric, figures.get(metric.name())?.as_f64())));
        Ok(measures.collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::NodeConditions;

    fn stage_measures(cpu_s: f64, switches: Option<f64>) -> Measures {
        let cpu_s = (Metric::CpuS, Some(cpu_s));
        [cpu_s, (Metric::ContextSwitches, switches), (Metric::Tps, Some(1.0))].into()
    }

    #[test]
    fn stages_add_up_where_both_are_known() {
        let mut sum = stage_measures(1.0, Some(5.0));
        sum.append(&stage_measures(2.0, None));
        assert_eq!(sum, stage_measures(3.0, None));
    }

    #[test]
    fn a_node_stores_its_measures_among_its_fields_and_counts_as_counts() {
        let node = NodeConditions {
            role: Some("primary".to_owned()),
            measures: [(Metric::CpuS, Some(2.0))].into(),
            ..NodeConditions::default()
        };
        let stored = serde_json::to_string(&node).expect("JSON");
        assert!(stored.contains(r#""cpu_s":2"#) && !stored.contains("2.0"), "{stored}");
        assert_eq!(serde_json::from_str::<NodeConditions>(&stored).expect("a node"), node);
    }

    #[test]
    fn each_row_has_a_title_in_both_languages_and_its_own_name() {
        let mut names = Metric::ALL.map(Metric::name);
        names.sort_unstable();
        assert!(names.windows(2).all(|two| two[0] != two[1]));
        assert!(Metric::ALL.iter().all(|metric| !metric.title().is_empty()));
    }

    #[test]
    fn arrivals_without_a_latency_are_slower_than_any_bound() {
        let latency = LatencySummary {
            count: 99_900,
            missing: 100,
            p99_us: 2e3,
            p999_us: 3e3,
            max_us: 4e3,
            ..LatencySummary::default()
        };
        let mut trial = TrialSummary { latency, ..TrialSummary::default() };
        assert_eq!(trial.searched_figure(Metric::P999Ms), Some(3.0));
        trial.latency.missing = 101;
        assert_eq!(trial.searched_figure(Metric::P999Ms), Some(f64::INFINITY));
        assert_eq!(
            (trial.searched_figure(Metric::P99Ms), trial.searched_figure(Metric::MaxMs)),
            (Some(2.0), Some(f64::INFINITY))
        );
        trial.latency = LatencySummary { missing: 5_000, ..LatencySummary::default() };
        assert_eq!(
            trial.searched_figure(Metric::P95Ms),
            Some(f64::INFINITY),
            "nothing was answered"
        );
    }
}
