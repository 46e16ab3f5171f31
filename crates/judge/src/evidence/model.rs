//! The content of a paper, before it is given a form.

use super::*;

/// The evidence read of one or several runs.
#[derive(Clone, Debug, PartialEq)]
pub struct Evidence {
    pub title: Message,
    /// Below the title; may be empty.
    pub subtitle: Message,
    /// The publisher's texts.
    pub texts: PaperTexts,
    pub runs: Vec<RunFacts>,
    pub targets: Vec<PaperTarget>,
    pub experiments: Vec<Experiment>,
    pub trials: Vec<Trial>,
    /// Trials that were repeated (the load generator was starved, they failed, or the other trial of their pair did):
    /// shown, and in no figure, check or verdict.
    pub set_aside: Vec<Trial>,
    /// Stages of long trials, which count within their sum, and attempts at them that were cut off or failed.
    pub stages: Vec<Trial>,
    /// Published tables that belong to no experiment of these runs.
    pub other_published: Vec<Published>,
}

/// The judgment of the evidence.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdicts {
    /// Targets held against each other, pair by pair of trials.
    pub comparisons: Vec<PairedComparison>,
    pub gates: Vec<GateRow>,
    /// Throughput against concurrency, per experiment and target.
    pub scaling: Vec<Scaling>,
    /// Steadiness of the targets in the windows, per trial.
    pub steady: Vec<SteadyRow>,
}

/// Runs as they were judged: their evidence, and what was found in it.
#[derive(Clone, Debug, PartialEq)]
pub struct Judgment {
    pub evidence: Evidence,
    pub verdicts: Verdicts,
    /// Every check that was made; those without findings have nothing to remark.
    pub checks: Vec<Check>,
}

impl Deref for Judgment {
    type Target = Evidence;

    fn deref(&self) -> &Evidence {
        &self.evidence
    }
}

/// A run as the paper shows it.
#[derive(Clone, Debug, PartialEq)]
pub struct RunFacts {
    /// `1`, `2` ...
    pub number: usize,
    pub folder: String,
    /// `run.json`.
    pub header: RunHeader,
    pub status: Message,
    pub command: String,
    /// Events that are not errors of single intervals: notes, server events.
    pub events: Vec<Event>,
    /// The path from the paper to the run's files, with a slash at its end or empty; `None` if
    /// that is not known.
    pub link: Option<String>,
    /// Damaged or missing parts of the folder.
    pub warnings: Vec<Message>,
}

/// A target as the paper shows it.
#[derive(Clone, Debug, PartialEq)]
pub struct PaperTarget {
    /// Its label in tables and charts, unique in the paper.
    pub label: String,
    pub run: usize,
    /// The facts that the run has, with nodes in the order of their roles.
    pub facts: TargetFacts,
    pub product: String,
    /// Route of the load to the nodes, in a sentence.
    pub route_words: Option<Message>,
    /// Label of the target whose cluster this is, of which only the first read-only nodes are driven.
    pub part_of: Option<String>,
    /// Settings that decide durability, isolation and memory.
    pub settings: Vec<SettingRow>,
    /// All settings of its first node, as the server states them.
    pub all_settings: BTreeMap<String, String>,
    /// Columns and indexes of its first node, and how they are defined.
    pub schema: BTreeMap<String, String>,
    /// Facts that the server did not let dyno read.
    pub not_readable: Vec<Message>,
}

impl PaperTarget {
    /// The part of the version that decides how a server behaves: `8.0` of MySQL, `10.11` of MariaDB, `15` of
    /// PostgreSQL from 10 on.
    pub(crate) fn major_version(&self) -> Option<String> {
        Some(split_major(&self.product)?.1)
    }

    /// Product and major version: `PostgreSQL 15`.
    pub fn major_product(&self) -> Option<String> {
        major_product(&self.product)
    }

    /// Returns true if its sessions have the isolation level of its shards, whatever they ask for.
    pub fn passes_no_isolation_on(&self) -> bool {
        let has_shards = self.facts.nodes.iter().any(|node| node.role == Role::Shard);
        has_shards && is_shardingsphere(&self.product)
    }
}

/// Product and major version of a product with its version: `PostgreSQL 15`.
pub(super) fn major_product(words: &str) -> Option<String> {
    let (product, version) = split_major(words)?;
    Some(format!("{product} {version}"))
}

fn split_major(words: &str) -> Option<(&str, String)> {
    // The version is the first word with a digit in front: a product may have a name of several words.
    let mut spaces = words.match_indices(' ').map(|(at, _)| at);
    let at = spaces.find(|at| words[at + 1..].starts_with(|c: char| c.is_ascii_digit()))?;
    let (product, version) = (&words[..at], words[at + 1..].split(' ').next()?);
    let parts: Vec<&str> = version.split(['.', '-']).collect();
    let first = parts.first()?;
    let is_single_number = product == "PostgreSQL" && first.parse::<u32>().is_ok_and(|n| n >= 10);
    Some(match parts.get(1).filter(|_| !is_single_number) {
        Some(second) => (product, format!("{first}.{second}")),
        None => (product, (*first).to_owned()),
    })
}

/// A setting that matters.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct SettingRow {
    pub name: String,
    /// Its value before the first trial.
    pub value: String,
    /// The decision in words.
    pub meaning: Message,
    /// Set if a commit may be lost or torn with this value.
    pub is_weak: bool,
}

/// The best point of an experiment on a target.
#[derive(Clone, Copy, Debug)]
pub struct KeyRow<'a> {
    pub experiment: &'a Experiment,
    /// Number of the experiment in the paper, from 0.
    pub index: usize,
    pub point: &'a Point,
}

/// An experiment and its points.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Experiment {
    /// The plan of the first run that has it.
    pub facts: ExperimentFacts,
    pub title: Message,
    /// Paragraphs; may be empty.
    pub description: Message,
    /// Workload and test.
    pub test: String,
    /// Set if transactions follow a schedule.
    pub is_open_loop: bool,
    /// Length of the shortest measured window, seconds.
    pub shortest_window_s: Option<f64>,
    pub points: Vec<Point>,
    pub published: Vec<Published>,
    /// The objective of a search, as it is written.
    pub objective: Option<String>,
    /// Throughput by the number of read-only nodes, where targets differ in it.
    pub node_scaling: Vec<NodeScaling>,
    /// `None` if no registered family knows it.
    pub family: Option<&'static KnownFamily>,
}

/// Data up to this share of the memory for them stay in it; the rest of it is the server's own.
pub const IN_MEMORY: f64 = 0.8;
/// Data larger than this multiple of the memory can't be held by it.
pub const BEYOND_MEMORY: f64 = 1.2;

/// A word and what it means here.
pub type GlossaryRow = (Message, Message);

pub fn glossary_row(word: Message, meaning: Message) -> GlossaryRow {
    (word, meaning)
}

/// A load level: workload, target, workers, rate. Latencies are microseconds; a percentile with
/// fewer than ten samples beyond it is `None`.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// The label of its target.
    pub target: String,
    /// The name of its target in the suite.
    pub target_name: String,
    /// Set if something was done to a node in its trials: what is committed in a window with an outage is
    /// no capacity, and is compared with nothing.
    pub has_fault: bool,
    pub workers: u32,
    /// Offered transactions per second; `None` in a closed loop.
    pub rate_per_s: Option<f64>,
    /// The purpose of its trials: points that a search or a sweep has chosen are measured
    /// again and are separate points.
    pub purpose: Purpose,
    /// Trials that the figures rest on.
    pub repeats: usize,
    pub trials: Vec<String>,
    /// `complete`, `interrupted` or `failed`: of the trials that the figures rest on.
    pub status: &'static str,
    /// Committed transactions per second.
    pub tps: Spread,
    /// Statements per second of transactions that did not fail.
    pub qps: Spread,
    /// The ones among these that read or changed data: without BEGIN, COMMIT and the like.
    pub data_qps: Spread,
    /// The data before the first of these trials; `None` if the workload says nothing of them.
    pub data: Option<PointData>,
    pub mean_us: Option<Spread>,
    pub p50_us: Option<Spread>,
    pub p95_us: Option<Spread>,
    pub p99_us: Option<Spread>,
    pub p999_us: Option<Spread>,
    /// Largest latency of all repeats.
    pub max_us: f64,
    pub errors: u64,
    /// Transactions given up, of all repeats.
    pub failed: u64,
    pub retries: u64,
    pub reconnects: u64,
    /// The load generator's own CPU per statement.
    pub cpu_us_per_statement: Spread,
    /// Costs of a transaction on all nodes together, from trials in which they are known.
    pub costs: BTreeMap<Metric, Spread>,
    /// Numbers of the checks that found something in these trials.
    pub checks: Vec<usize>,
    /// The family's part of the load level, besides workers and rate.
    pub level: Option<FamilyLevel>,
    /// Set if sessions are idle by design.
    pub is_paced: bool,
    /// The figure that ranks points of its family, if that is not transactions per second.
    pub main: Option<(Metric, Spread)>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct PointData {
    pub facts: DataFacts,
    /// The share of the rows that is hot, 0 to 1.
    pub hot_share: Option<f64>,
    /// Ratio of the data to the server's memory for them.
    pub size_to_memory: Option<f64>,
}

/// A trial as the paper shows it.
#[derive(Clone, Debug, PartialEq)]
pub struct Trial {
    /// Its number, with the number of the run before it when there are several.
    pub label: String,
    pub run: usize,
    pub target: String,
    /// Location of its target: the load generator's machine, this process, or another machine.
    pub place: TargetPlace,
    /// `complete`, `interrupted`, `failed`, `starved`, `stage` or `running`.
    pub status: &'static str,
    pub summary: TrialSummary,
    /// The family's part of its load level, besides workers and rate.
    pub level: Option<FamilyLevel>,
    /// Set if started = committed + rolled back + failed + skipped + in flight.
    pub adds_up: bool,
    pub gaps: Vec<Gap>,
    pub series: Vec<SeriesRow>,
    /// Samples of the nodes while it ran.
    pub nodes: Vec<NodeRow>,
    pub counters: Vec<Counter>,
    /// Numbers of the checks that found something in it.
    pub checks: Vec<usize>,
}

/// The key by which trials are compared with each other: workers, rate, and the level of their family.
pub(crate) type LoadLevel<'a> = (u32, Option<u64>, Option<&'a FamilyLevel>);

impl Trial {
    pub(crate) fn load_level(&self) -> LoadLevel<'_> {
        let rate = self.summary.rate_per_s.map(f64::to_bits);
        (self.summary.workers, rate, self.level.as_ref())
    }

    /// Returns true if it did not come to its end, or has not yet.
    pub fn is_cut_off(&self) -> bool {
        matches!(self.status, "interrupted" | "running")
    }
}

/// Location of a target, seen from the load generator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TargetPlace {
    /// Inside the process of the load generator.
    Embedded,
    /// On the load generator's machine.
    SameHost,
    /// On another machine.
    Elsewhere,
}

/// A stretch of the measured window without a commit.
#[derive(Clone, Debug, PartialEq)]
pub struct Gap {
    /// Seconds from the opening of the window.
    pub from_s: f64,
    /// Seconds from the opening of the window.
    pub to_s: f64,
    pub errors: u64,
    /// Reconnects in it and in the interval after it.
    pub reconnects: u64,
}

/// Amount by which a counter of the server grew from before a trial's connects to after its end.
#[derive(Clone, Debug, PartialEq)]
pub struct Counter {
    pub name: String,
    pub growth: f64,
}

/// Weight of a check's finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
pub enum Level {
    /// Not usable for a claim.
    E,
    /// A caveat alongside the number.
    W,
    /// Disclosed.
    I,
}

/// Largest effect of a finding on the figures that it concerns. A larger effect is greater.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// It moves no measured figure: it limits what figures may be used for, or intervals hold it already.
    Nothing,
    /// High percentiles and maxima, by any amount.
    Tail,
    /// Any figure, by at most this share.
    AtMost(f64),
    /// Any figure, by any amount, on all sides alike.
    Unbounded,
    /// Figures of one side of a comparison, by any amount.
    OneSided,
}

/// The subject of a check: the chapters of the catalog of checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
pub enum Group {
    A,
    /// Time: warm-up, steadiness, length.
    B,
    /// Repetition and statistics.
    C,
    /// Same for same: what is compared differs in nothing else.
    D,
    /// State of data, caches and machines.
    E,
    /// Truth of the workload.
    F,
    G,
    H,
}

/// A computed verdict on fairness or correctness.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Check {
    /// Number in this paper, from 1.
    pub number: usize,
    /// Stable name, for `--deny` and `--allow`.
    pub id: &'static str,
    pub group: Group,
    pub level: Level,
    /// The expectation, threshold included.
    pub rule: Message,
    /// The meaning of a finding.
    pub meaning: Message,
    /// The remedy.
    pub advice: Message,
    /// Effect of its findings on the figures.
    pub effect: Effect,
    /// Set if every run of the paper accepts what it found (`--allow`).
    pub is_accepted: bool,
    /// Places of the findings; empty when there is nothing to remark.
    pub findings: Vec<Finding>,
    /// Findings for printing: places with the same value share a line.
    pub lines: Vec<Message>,
}

impl Check {
    /// True if it found something that no one has accepted.
    pub fn is_open(&self) -> bool {
        !self.findings.is_empty() && !self.is_accepted
    }
}

/// A place where a check found something.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Finding {
    /// A trial, a target, an experiment, a run.
    pub place: Spot,
    /// The value that was found.
    pub value: Message,
    /// Largest effect on a ratio, if its check takes verdicts away.
    #[serde(skip)]
    pub reach: VetoReach,
}

impl Finding {
    pub fn new(place: Spot, value: Message) -> Finding {
        Finding { place, value, reach: VetoReach::default() }
    }

    /// The finding with its place, unless that is all that the reader looks at.
    pub(crate) fn describe(&self) -> Message {
        match self.place.kind {
            SpotKind::Comparison => self.value.clone(),
            _ => say!(place_value, place = self.place.text(), value = &self.value),
        }
    }
}

/// Place of a finding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Spot {
    pub kind: SpotKind,
    /// Its name; several where they are one finding.
    pub names: Vec<String>,
}

/// Kind of a [`Spot`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SpotKind {
    Trial,
    Target,
    Experiment,
    Run,
    /// Comparisons of two targets, by experiment, load level and targets.
    Comparison,
}

impl SpotKind {
    /// The spot of this name.
    pub fn at(self, name: &str) -> Spot {
        Spot { kind: self, names: vec![name.to_owned()] }
    }
}

impl Spot {
    /// The spot of a finding about two targets together.
    pub fn targets(labels: [&str; 2]) -> Spot {
        Spot { kind: SpotKind::Target, names: labels.map(str::to_owned).to_vec() }
    }

    /// Text in words: `trials 1 and 4`.
    pub fn text(&self) -> Message {
        let names: Vec<Message> = self.names.iter().map(Message::from).collect();
        let names = Message::list(&names);
        match (self.kind, self.names.len()) {
            // A range of labels is one name.
            (SpotKind::Trial, 1) if !self.names[0].contains('–') => say!(trial_names, names),
            (SpotKind::Trial, _) => say!(trials_names, names),
            (SpotKind::Target, 1) => say!(target_names, names),
            (SpotKind::Target, _) => say!(targets_names, names),
            (SpotKind::Experiment, 1) => say!(experiment_names, names),
            (SpotKind::Experiment, _) => say!(experiments_names, names),
            (SpotKind::Run, 1) => say!(run_names, names),
            (SpotKind::Run, _) => say!(runs_names, names),
            (SpotKind::Comparison, 1) => say!(comparison_names, names),
            (SpotKind::Comparison, _) => say!(comparisons_names, names),
        }
    }
}

/// Makes a point of each load level, in the order of targets in which their trials come.
pub(super) fn points(trials: &[&Trial]) -> Vec<Point> {
    let groups = format::grouped(trials.iter().map(|trial| {
        let place = trials.iter().position(|first| first.target == trial.target);
        ((place, trial.load_level(), trial.summary.purpose), *trial)
    }));
    let numbered =
        groups.iter().filter_map(|((place, ..), group)| Some((place, make_point(group)?)));
    let mut points: Vec<(_, Point)> = numbered.collect();
    points.sort_by(|(place_a, a), (place_b, b)| {
        let by_level = level_order(a).partial_cmp(&level_order(b));
        place_a.cmp(place_b).then(by_level.unwrap_or(std::cmp::Ordering::Equal))
    });
    points.into_iter().map(|(_, point)| point).collect()
}

/// The offered rate, the clients and the size of a point: points of a target are listed in this order.
fn level_order(point: &Point) -> (f64, f64, f64) {
    let size = point.level.as_ref().map_or(0.0, |level| level.size);
    (point.rate_per_s.unwrap_or(0.0), point.load(), size)
}

/// The trials of a load level that its figures rest on, and how they ended: complete ones; if there
/// are none, those that were cut off or failed. A trial that measured nothing has no figures.
fn choose_trials<'a>(group: &[&'a Trial]) -> Option<(&'static str, Vec<&'a Trial>)> {
    ["complete", "failed", "interrupted", "running"].into_iter().find_map(|status| {
        let measured = group.iter().copied().filter(|trial| {
            trial.summary.window_s > 0.0
                || KnownFamily::from_summary(&trial.summary)
                    .is_some_and(|family| family.is_measured(&trial.summary))
        });
        let trials: Vec<&'a Trial> = measured.filter(|trial| trial.status == status).collect();
        (!trials.is_empty()).then_some((status, trials))
    })
}

fn make_point(group: &[&Trial]) -> Option<Point> {
    let (status, trials) = choose_trials(group)?;
    let first = trials[0];
    let family = KnownFamily::from_summary(&first.summary);
    Some(Point {
        target_name: first.summary.target.clone(),
        target: first.target.clone(),
        has_fault: trials.iter().any(|trial| trial.summary.fault.is_some()),
        workers: first.summary.workers,
        rate_per_s: first.summary.rate_per_s,
        purpose: first.summary.purpose,
        repeats: trials.len(),
        trials: trials.iter().map(|trial| trial.label.clone()).collect(),
        status,
        tps: spread_over(&trials, |trial| trial.summary.tps),
        qps: spread_over(&trials, |trial| trial.summary.qps),
        data_qps: spread_over(&trials, |trial| trial.summary.data_qps()),
        data: first.summary.data.as_ref().map(|facts| PointData {
            facts: facts.clone(),
            hot_share: facts.hot_share(),
            size_to_memory: facts.size_to_memory(),
        }),
        mean_us: latency_spread(&trials, SAMPLES_BEYOND, |latency| latency.mean_us),
        p50_us: latency_spread(&trials, 0.5, |latency| latency.p50_us),
        p95_us: latency_spread(&trials, 0.05, |latency| latency.p95_us),
        p99_us: latency_spread(&trials, 0.01, |latency| latency.p99_us),
        p999_us: latency_spread(&trials, 0.001, |latency| latency.p999_us),
        max_us: trials.iter().map(|trial| trial.summary.latency.max_us).fold(0.0, f64::max),
        errors: trials
            .iter()
            .flat_map(|trial| &trial.summary.errors)
            .map(|error| error.count)
            .sum(),
        failed: trials.iter().map(|trial| trial.summary.counts.failed).sum(),
        retries: trials.iter().map(|trial| trial.summary.counts.retries).sum(),
        reconnects: trials.iter().map(|trial| trial.summary.counts.reconnects).sum(),
        cpu_us_per_statement: spread_over(&trials, |trial| {
            trial.summary.generator.cpu_us_per_statement
        }),
        costs: Metric::costs().filter_map(|metric| metric_spread(&trials, metric)).collect(),
        checks: Vec::new(),
        level: first.level.clone(),
        is_paced: family.is_some_and(|family| family.is_paced(&first.summary)),
        main: family.and_then(|family| metric_spread(&trials, family.throughput()?)),
    })
}

fn spread_over(trials: &[&Trial], value: fn(&Trial) -> f64) -> Spread {
    Spread::from_values(trials.iter().map(|trial| value(trial)).collect()).unwrap_or_default()
}

/// Spread of a latency; `None` if a trial has too few samples for it.
fn latency_spread(
    trials: &[&Trial],
    beyond: f64,
    value: fn(&LatencySummary) -> f64,
) -> Option<Spread> {
    let values = trials.iter().map(|trial| &trial.summary.latency);
    let values: Option<Vec<f64>> =
        values.map(|latency| latency.has_percentile(beyond).then(|| value(latency))).collect();
    Spread::from_values(values?)
}

/// Spread of a metric over the trials that have it; `None` if none has.
fn metric_spread(trials: &[&Trial], metric: Metric) -> Option<(Metric, Spread)> {
    let values = trials.iter().filter_map(|trial| trial.summary.figure(metric));
    Some((metric, Spread::from_values(values.collect())?))
}

impl Point {
    /// Users whose work the workers execute by turns.
    pub fn terminals(&self) -> Option<u32> {
        self.level.as_ref()?.terminals
    }

    /// The size of the data that it works on, if the family knows one.
    pub fn scale(&self) -> Option<&FamilyScale> {
        self.level.as_ref()?.scale.as_ref()
    }

    /// The number of virtual clients: terminals, if there are any, else workers.
    pub fn load(&self) -> f64 {
        f64::from(self.terminals().unwrap_or(self.workers))
    }

    /// At which load it is: workers or what the family has for them, and an offered rate.
    pub fn load_words(&self) -> Message {
        let clients = match &self.level {
            Some(level) => level.load.clone(),
            None => say!(n_workers, n = self.workers),
        };
        match self.rate_per_s {
            Some(rate) => say!(per_second_offered, workers = clients, rate = format::plain(rate)),
            None => clients,
        }
    }

    /// A figure by its name among published metrics.
    pub fn metric(&self, name: &str) -> Option<Spread> {
        match name {
            "tps" => Some(self.tps),
            "qps" => Some(self.qps),
            "data_qps" => Some(self.data_qps),
            _ => self.main.filter(|(metric, _)| metric.name() == name).map(|(_, spread)| spread),
        }
    }

    /// The figure that ranks points of an experiment.
    pub fn throughput(&self) -> Spread {
        self.main.map_or(self.tps, |(_, spread)| spread)
    }
}

impl Deref for Experiment {
    type Target = ExperimentFacts;

    fn deref(&self) -> &ExperimentFacts {
        &self.facts
    }
}

impl Experiment {
    /// Returns true for passes over statements that are timed one by one, without transactions.
    pub fn is_pass(&self) -> bool {
        self.family.is_some_and(|family| family.is_pass())
    }

    /// Returns true for the read-only tests of sysbench: a transaction is a bundle of reads, or one of them.
    pub fn only_reads(&self) -> bool {
        let is_named =
            ["oltp_read_only", "oltp_point_select"].iter().any(|t| self.test.contains(t));
        let mut options = self.options.iter();
        let option = options.find(|(name, _)| name.replace('-', "_") == "oltp_read_only");
        let is_enabled =
            option.is_some_and(|(_, value)| matches!(value.as_str(), "on" | "true" | "1"));
        is_named || self.test.starts_with("sysbench oltp") && is_enabled
    }

    /// The benchmark of the TPC behind it.
    pub fn derived_from(&self) -> Option<&'static str> {
        self.family?.derived_from(&self.test)
    }

    pub fn has_terminals(&self) -> bool {
        self.points.iter().any(|point| point.terminals().is_some())
    }

    /// The throughput that its points are ranked by.
    pub fn ranked_by(&self) -> Metric {
        let mut main_figures = self.points.iter().filter_map(|point| point.main);
        main_figures.next().map_or(Metric::Tps, |(metric, _)| metric)
    }
}

/// Median of the repeats of a point, with the lowest and the highest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Spread {
    pub min: f64,
    pub median: f64,
    pub max: f64,
}

impl Spread {
    /// Median, lowest and highest; `None` of nothing.
    pub fn from_values(mut values: Vec<f64>) -> Option<Spread> {
        values.sort_by(f64::total_cmp);
        let (min, max) = (*values.first()?, *values.last()?);
        let median = median(&values)?;
        Some(Spread { min, median, max })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_of_an_even_number_lies_between() {
        assert_eq!(
            Spread::from_values(vec![4.0, 1.0, 2.0, 8.0]),
            Some(Spread { min: 1.0, median: 3.0, max: 8.0 })
        );
        assert_eq!(
            Spread::from_values(vec![7.0]),
            Some(Spread { min: 7.0, median: 7.0, max: 7.0 })
        );
        assert_eq!(Spread::from_values(Vec::new()), None);
    }
}
