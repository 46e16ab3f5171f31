//! The plan of a run, whose targets are next to it in the header: its steps and experiments.

use crate::{Message, PaperTexts, Purpose, SecretCommand};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema, Deserialize)]
#[serde(default)]
pub struct RunPlan {
    /// 16 hexadecimal digits over all that decides what is executed: equal in runs that may continue with each
    /// other. Titles, published figures and passwords do not change it.
    pub hash: String,
    pub suite: SuiteFacts,
    /// Set if servers are asked each second of a trial what they do.
    pub sample_servers: bool,
    /// 1, or the share of the suite's data and durations that is executed.
    pub shrink: f64,
    /// Planned time of the run, if that decided its size.
    pub budget_s: Option<f64>,
    pub steps: Vec<PlanStep>,
    /// A guess of the whole time in seconds: windows and warm-ups as stated, loads, checks and passes at the usual pace
    /// of their workload, counted windows at 1,000 transactions/s; comparisons as long as they may take.
    pub estimated_s: f64,
    /// Notes for the user, in sentences: what was left out, capped or shrunk.
    pub notes: Vec<Message>,
}

impl RunPlan {
    /// The steps of trials that need not be executed any more: those that are `complete`, those that were
    /// `skipped`, and what follows in a search after a step of it was skipped.
    pub fn settled(
        &self,
        complete: &BTreeSet<String>,
        skipped: &BTreeSet<String>,
    ) -> BTreeSet<String> {
        let mut ended: BTreeSet<&str> = BTreeSet::new();
        let mut settled = BTreeSet::new();
        for step in &self.steps {
            let StepAction::Trial(trial) = &step.action else { continue };
            if skipped.contains(&step.id) && trial.purpose == Purpose::Search {
                ended.insert(&trial.point);
            }
            if complete.contains(&step.id)
                || skipped.contains(&step.id)
                || ended.contains(trial.point.as_str())
            {
                settled.insert(step.id.clone());
            }
        }
        settled
    }
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema, Deserialize)]
#[serde(default)]
pub struct SuiteFacts {
    pub name: String,
    /// One line.
    pub title: String,
    /// The title in Chinese, or empty.
    pub title_zh: String,
    /// Paragraphs, or empty.
    pub description: String,
    pub description_zh: String,
    /// The published paper that is reproduced.
    pub paper: Option<String>,
    /// Source of that paper.
    pub source: Option<String>,
    /// Texts of the publisher for the papers (`[paper]`).
    #[serde(skip_serializing_if = "PaperTexts::is_empty")]
    pub publication: PaperTexts,
    /// The file as the user named it, or `bundled:NAME.toml`; empty if there is none.
    pub file: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema, Deserialize)]
pub struct PlanStep {
    /// Unique in the plan and stable from run to run: `EXPERIMENT/TARGET/prepare`,
    /// `EXPERIMENT/TARGET/workers=8/repeat=1`, `EXPERIMENT/TARGET/workers=8/rate=100/repeat=1`,
    /// `EXPERIMENT/TARGET/degree=16/repeat=1`, `EXPERIMENT/TARGET/workers=8/search/repeat=1`,
    /// `EXPERIMENT/TARGET/confirm/repeat=1`, `EXPERIMENT/TARGET/cleanup`.
    pub id: String,
    pub experiment: String,
    pub target: String,
    /// A guess of its length in seconds.
    pub estimated_s: f64,
    pub action: StepAction,
}

impl PlanStep {
    /// Its trial; `None` if it loads or removes data.
    pub fn trial(&self) -> Option<&PlannedTrial> {
        match &self.action {
            StepAction::Trial(trial) => Some(trial),
            StepAction::Prepare | StepAction::Cleanup => None,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema, Deserialize)]
#[serde(rename_all = "snake_case", tag = "do")]
pub enum StepAction {
    Prepare,
    /// One timed execution of a point.
    Trial(PlannedTrial),
    Cleanup,
}

/// One timed execution of a point.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema, Deserialize)]
#[serde(default)]
pub struct PlannedTrial {
    /// From 1, over the whole plan, in the order of execution.
    pub number: u32,
    /// Decides where the load comes from: the plan, the trials of the search before it (a search that has ended
    /// leaves its other steps out), or the best point of the sweep before it.
    pub purpose: Purpose,
    /// The point's id: the step's id without the repeat.
    pub point: String,
    /// Workers (of [`Purpose::Confirm`] the most that it may be); 1 in a pass over queries, whose test knows its
    /// sessions.
    pub workers: u32,
    /// Parallel degree of a pass over queries; 0 is off.
    pub degree: Option<u32>,
    /// Offered rate in transactions per second; `None` is a closed loop.
    pub rate: Option<f64>,
    /// Number of the repeat of the point, from 1.
    pub repeat: u32,
    /// Seconds before the measured window.
    pub warmup_s: f64,
    /// Seconds of the measured window.
    pub duration_s: Option<f64>,
    /// The window ends after this many transactions, if that is sooner.
    pub events: Option<u64>,
    /// Seconds between two lines of the interval series.
    pub interval_s: f64,
    /// Set if the trials of all targets run concurrently.
    pub is_together: bool,
    /// The seed of this trial's random streams, below 2^53. Repeats have different ones; the
    /// targets of one repeat of a point share one, so that they are given the same work.
    pub seed: u64,
}

/// An experiment of a plan, shrunk and capped as it is executed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema, Deserialize)]
#[serde(default)]
pub struct ExperimentFacts {
    pub name: String,
    pub title: String,
    /// The title in Chinese, or empty.
    pub title_zh: String,
    /// Paragraphs, or empty.
    pub description: String,
    pub description_zh: String,
    /// For example `sysbench`.
    pub workload: String,
    /// For example `oltp_read_only`.
    pub test: String,
    /// Options of the workload, all that were given; `NAME.KEY` is what stands in a table, `NAME.1` in a list.
    #[serde(serialize_with = "crate::secret::serialize_masked")]
    pub options: BTreeMap<String, String>,
    /// The scripts that it runs, where the suite brings its own.
    pub scripts: Vec<ScriptFacts>,
    /// The size of the data that the options state, if the test has one.
    pub data: Option<DataSize>,
    /// Names of the targets that are measured.
    pub targets: Vec<String>,
    /// Numbers of workers; empty if a trial is a pass over queries.
    pub workers: Vec<u32>,
    /// Parallel degrees of a pass over queries; 0 is off. Empty otherwise.
    pub degrees: Vec<u32>,
    /// Offered rates in transactions per second; empty means a closed loop.
    pub rates: Vec<f64>,
    /// Seconds of warm-up planned before each window.
    pub warmup_s: f64,
    /// Seconds planned for each window; `None` when a count of transactions ends a trial.
    pub duration_s: Option<f64>,
    /// Its trials are cut into stages of at most so many seconds; `None` if they are measured in one piece.
    pub stage_s: Option<f64>,
    /// The window ends after this many transactions.
    pub events: Option<u64>,
    /// The most of them where time ends them.
    pub repeats: u32,
    /// Seconds after which the experiment begins no further repeat; the first is made in any case. For pairs the
    /// comparison says it.
    pub repeats_s: Option<f64>,
    /// Seconds between two lines of the interval series.
    pub interval_s: f64,
    /// The data are loaded before the first trial.
    pub prepare: bool,
    /// The data are removed after the last trial.
    pub cleanup: bool,
    /// Percentiles of the latency, in (0, 100].
    pub percentiles: Vec<f64>,
    /// The comparison, if the suite compares.
    pub comparison: Option<ComparisonFacts>,
    /// Gates as they are written, such as `tps.ratio.low > 0.97`.
    pub gates: Vec<String>,
    /// The search for the highest rate that an objective allows.
    pub search: Option<RateSearch>,
    /// Number of repeats of the best point of a sweep, or of the result of a search.
    pub confirm: u32,
    /// Way in which the data return to their first state before each trial.
    pub restore: Restore,
    /// Servers are restarted before the first of so many pairs; 0 is never.
    pub restart_each: u32,
    /// Data are restored before the first of so many pairs; 0 is before each trial, if they are restored.
    pub reload_each: u32,
    /// Number of repeats of a trial whose load generator was starved.
    pub retry_starved: u32,
    pub fault: Option<FaultPlan>,
    /// Published figures to stand alongside the results.
    pub published: Vec<PublishedTable>,
}

impl ExperimentFacts {
    /// Workload and test, such as `sysbench oltp_read_only`.
    pub fn load(&self) -> String {
        format!("{} {}", self.workload, self.test).trim().to_owned()
    }

    /// Number of pairs in the unit of statistics: pairs that share a server start or a data load are not independent.
    pub fn pairs_per_unit(&self) -> u32 {
        self.restart_each.max(self.reload_each).max(1)
    }

    /// Returns true if servers are restarted or data are reloaded between pairs.
    pub fn is_renewed(&self) -> bool {
        self.restart_each > 0 || self.reload_each > 0
    }

    /// Returns true if the trials of a repeat run concurrently.
    pub fn is_together(&self) -> bool {
        self.comparison.as_ref().is_some_and(|of| of.design == Design::Together)
    }

    /// The fewest repeats, and the seconds after which no further one is begun, where time ends them.
    pub fn time_bound(&self) -> Option<(u32, f64)> {
        match &self.comparison {
            Some(comparison) => {
                let stop = comparison.stop;
                stop.budget_s.map(|seconds| (stop.pairs_least, seconds))
            }
            None => self.repeats_s.map(|seconds| (1, seconds)),
        }
    }

    /// Returns true if fewer repeats may be made than are planned.
    pub fn has_open_repeats(&self) -> bool {
        match &self.comparison {
            Some(comparison) => comparison.stop.pairs_least < comparison.stop.pairs_most,
            None => self.repeats_s.is_some(),
        }
    }

    /// Returns true if fewer steps may be made than are planned: what they find, or the time, ends them.
    pub fn has_open_steps(&self) -> bool {
        self.has_open_repeats() || self.search.is_some()
    }

    /// The commands of the shell that restore its data and do its fault.
    pub fn commands(&self) -> impl Iterator<Item = &str> {
        let restore = match &self.restore {
            Restore::Command(command) => Some(command.expose()),
            Restore::None | Restore::Reload => None,
        };
        restore.into_iter().chain(self.fault.iter().flat_map(FaultPlan::commands))
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema, Deserialize)]
#[serde(default)]
pub struct ScriptFacts {
    /// Its file, relative to the suite.
    pub name: String,
    /// Its share of the transactions, relative to the other scripts.
    pub weight: u32,
    /// Stored and shown without secrets in its commands of the shell.
    #[serde(serialize_with = "crate::secret::serialize_script")]
    pub text: String,
    /// SHA-256 of the text, as hexadecimal digits; empty in runs of older versions.
    pub sha256: String,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema, Deserialize)]
pub struct DataSize {
    pub tables: u64,
    pub rows_per_table: u64,
}

/// Compared targets of an experiment, and the length of its repetition.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema, Deserialize)]
#[serde(default)]
pub struct ComparisonFacts {
    /// The target that ratios are taken to.
    pub baseline: String,
    /// The targets whose ratios are taken.
    pub candidates: Vec<String>,
    /// Set if both are the same system: the comparison measures the noise floor.
    pub is_aa: bool,
    pub design: Design,
    #[serde(flatten)]
    pub stop: StopRule,
    /// An experiment before this one whose time is part of the budget, too.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shares_budget_with: Option<String>,
    /// Ratios that differ from 1 by less are equivalent, such as 0.03.
    pub equivalence: Option<f64>,
    /// Way in which the data return to the same state before each trial:
    /// `untouched` (nothing is written), `reloaded`, `grows`, or a command.
    pub data_state: String,
}

impl Design {
    /// The question that it answers.
    pub fn purpose(self) -> &'static str {
        match self {
            Design::InTurn => "capacity",
            Design::Together => "cost",
        }
    }
}

dyno_core::named! {
    /// The order of the trials of a comparison.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Design {
        /// One after the other: compares capacity.
        #[default]
        InTurn = "in_turn",
        /// Concurrently, with the same arrivals at one rate: compares the cost of a transaction and its latency
        /// (Bulej et al., Duet benchmarking, arXiv 2001.05811).
        Together = "together",
    }
}

/// When pairs have been repeated often enough.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, JsonSchema, Deserialize)]
#[serde(default)]
pub struct StopRule {
    pub pairs_least: u32,
    pub pairs_most: u32,
    /// Half-width of the 95% interval of the ratio at which repetition ends, such as 0.02.
    pub half_width: Option<f64>,
    /// Set if a verdict ends the repetition.
    pub is_until_decided: bool,
    /// Seconds after which the experiment begins no further pair.
    pub budget_s: Option<f64>,
}

impl StopRule {
    /// Returns true if what is found may end the pairs before their time or their number does.
    pub fn may_end_sooner(&self) -> bool {
        let is_judged = self.is_until_decided || self.half_width.is_some();
        is_judged && self.pairs_least < self.pairs_most
    }
}

/// The search for the highest rate that an objective allows.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema, Deserialize)]
#[serde(default)]
pub struct RateSearch {
    /// Text as it is written: `p99 < 20ms`.
    pub objective: String,
    /// The first rate, per second; without it half of what a closed loop does.
    pub start_rate: Option<f64>,
    /// No higher rate is tried.
    pub most_rate: Option<f64>,
}

/// Way in which the data return to their first state before each trial.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Restore {
    /// Not at all: what a trial writes, the next one finds.
    #[default]
    None,
    /// The tables are dropped and loaded again.
    Reload,
    Command(SecretCommand),
}

impl Restore {
    pub fn is_none(&self) -> bool {
        *self == Restore::None
    }
}

dyno_core::named! {
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum FaultAction {
        /// Its process is ended at once, by SIGKILL.
        #[default]
        Kill = "kill",
        /// Is shut down as its product wants it.
        Stop = "stop",
        /// Is shut down and started again at once.
        Restart = "restart",
        /// Its process is held: connections stay open and nothing is answered.
        Freeze = "freeze",
        /// No packet reaches it or leaves it.
        Partition = "partition",
        /// Effect of a command of the suite.
        Command = "command",
    }
}

impl FaultAction {
    /// The action of that name.
    pub fn parse(name: &str) -> Option<Self> {
        FaultAction::ALL.into_iter().find(|action| action.name() == name)
    }
}

/// A fault that is injected into each trial of an experiment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema, Deserialize)]
#[serde(default)]
pub struct FaultPlan {
    pub action: FaultAction,
    /// The node, by its name or its role; the first one of that role.
    pub node: String,
    /// Seconds from the opening of the window.
    pub at_s: f64,
    /// Seconds from the fault until it is ended: the node started, let continue, reached again.
    pub heal_after_s: Option<f64>,
    /// The node that is made the primary after the fault: its name, or empty for the first read-only
    /// node. `None` makes none.
    pub promote: Option<String>,
    /// A transaction that takes longer is given up, and its session replaced.
    pub answer_limit_s: f64,
    /// A command of the shell that does it, for clusters that dyno has not started.
    pub command: Option<SecretCommand>,
    /// The command that ends it.
    pub heal_command: Option<SecretCommand>,
    /// The command that makes another node the primary.
    pub promote_command: Option<SecretCommand>,
    /// Targets of which a loss of acknowledged transactions is the expected answer; `*` are all.
    pub allow_lost: Vec<String>,
}

impl FaultPlan {
    /// Returns true if the loss of acknowledged transactions ends a run with exit code 4.
    pub fn allows_lost(&self, target: &str) -> bool {
        self.allow_lost.iter().any(|allowed| allowed == "*" || allowed == target)
    }

    /// The commands of the suite that do part of it.
    pub fn commands(&self) -> impl Iterator<Item = &str> {
        let commands = [&self.command, &self.heal_command, &self.promote_command];
        commands.into_iter().flatten().map(SecretCommand::expose)
    }
}

/// A published table, cut to the rows that an experiment refers to. Complete in itself, so that
/// a stored run can be printed by a dyno whose bundled figures have changed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema, Deserialize)]
#[serde(default)]
pub struct PublishedTable {
    pub experiment: String,
    /// Its content in one line.
    pub title: Message,
    /// The document that published it, with date and location as far as known.
    pub source: Message,
    /// Method by which its figures were measured.
    pub method: Message,
    /// A caveat to read before comparing.
    pub note: Option<Message>,
    /// Sorted in the order of the publication.
    pub rows: Vec<PublishedRow>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema, Deserialize)]
#[serde(default)]
pub struct PublishedRow {
    /// For example a node class.
    pub label: String,
    /// Number of the published row, from 1: rows that share it were printed as one. 0: unknown.
    pub number: usize,
    /// Conditions by name; one of [`PublishedRow::LOAD_LEVELS`] is the number of workers.
    pub conditions: BTreeMap<String, String>,
    /// Results by metric; `tps`, `qps` and `data_qps` are per second, `tpmc` per minute.
    pub metrics: BTreeMap<String, f64>,
    /// Names of the targets that this row is the counterpart of; empty for context.
    pub targets: Vec<String>,
}

impl PublishedRow {
    /// Conditions that state the number of workers; the first that is there counts. pgbench has clients,
    /// and threads that drive them; BenchmarkSQL has terminals, perhaps several processes with as many.
    pub const LOAD_LEVELS: [&str; 5] =
        ["clients", "threads", "workers", "terminals", "terminals_per_generator"];

    /// The value of a condition, if it is a number.
    pub fn number(&self, name: &str) -> Option<f64> {
        self.conditions.get(name)?.parse().ok()
    }

    /// All virtual CPUs that it was measured on, those of a storage layer included.
    pub fn vcpu(&self) -> Option<f64> {
        let storage = self.number("storage_vcpu").unwrap_or(0.0);
        let storage = storage * self.number("storage_nodes").unwrap_or(1.0);
        let compute = self.number("vcpu").or_else(|| self.number("compute_vcpu"))?;
        Some(compute + storage).filter(|vcpu| *vcpu > 0.0)
    }

    /// The number of workers under which it was measured, if it is stated.
    pub fn workers(&self) -> Option<f64> {
        let mut levels = PublishedRow::LOAD_LEVELS.iter();
        let (name, workers) = levels.find_map(|name| Some((*name, self.number(name)?)))?;
        let processes = match name {
            "terminals_per_generator" => self.number("load_generators").unwrap_or(1.0),
            _ => 1.0,
        };
        Some(workers * processes).filter(|workers| *workers >= 1.0)
    }
}
