//! The plan of a run, without its targets and experiments, which stand beside it in the header.

use crate::{Message, PaperTexts, Purpose};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

#[derive(Clone, Debug, Default, PartialEq, Serialize, schemars::JsonSchema, Deserialize)]
#[serde(default)]
pub struct RunPlan {
    /// 16 hexadecimal digits over all that decides what is executed: equal in runs that may go on with each
    /// other. Titles, published figures and passwords do not change it.
    pub hash: String,
    pub suite: SuiteFacts,
    /// Whether servers are asked each second of a trial what they do.
    pub sample_servers: bool,
    /// 1, or the share of the suite's data and durations that is executed.
    pub shrink: f64,
    /// How long the run was to take, where that decided its size.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budget_s: Option<f64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<PlanStep>,
    /// A guess of the whole time in seconds: windows and warm-ups as stated, loads, checks and passes at the usual pace
    /// of their workload, counted windows at 1,000 transactions/s; comparisons as long as they may take.
    pub estimated_s: f64,
    /// What the user should know, in sentences: what was left out, capped or shrunk.
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

#[derive(Clone, Debug, Default, PartialEq, Serialize, schemars::JsonSchema, Deserialize)]
#[serde(default)]
pub struct SuiteFacts {
    pub name: String,
    /// One line.
    pub title: String,
    /// The same in Chinese, or empty.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub title_zh: String,
    /// Paragraphs, or empty.
    pub description: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub description_zh: String,
    /// The published paper that is reproduced.
    pub paper: Option<String>,
    /// Where that paper is to be found.
    pub source: Option<String>,
    /// What the publisher of its papers says (`[paper]`).
    #[serde(skip_serializing_if = "PaperTexts::is_empty")]
    pub publication: PaperTexts,
    /// The file as the user named it, or `bundled:NAME.toml`; empty where there is none.
    pub file: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema, Deserialize)]
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

#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema, Deserialize)]
#[serde(rename_all = "snake_case", tag = "do")]
pub enum StepAction {
    Prepare,
    /// One timed execution of a point.
    Trial(PlannedTrial),
    Cleanup,
}

/// One timed execution of a point.
#[derive(Clone, Debug, Default, PartialEq, Serialize, schemars::JsonSchema, Deserialize)]
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
    #[serde(skip_serializing_if = "Option::is_none")]
    pub degree: Option<u32>,
    /// Offered rate in transactions per second; `None` is a closed loop.
    pub rate: Option<f64>,
    /// Which repeat of the point, from 1.
    pub repeat: u32,
    /// Seconds before the measured window.
    pub warmup_s: f64,
    /// Seconds of the measured window.
    pub duration_s: Option<f64>,
    /// The window ends after this many transactions, if that is sooner.
    pub events: Option<u64>,
    /// Seconds between two lines of the interval series.
    pub interval_s: f64,
    /// The seed of this trial's random streams, below 2^53. Repeats have different ones; the
    /// targets of one repeat of a point share one, so that they are given the same work.
    pub seed: u64,
}
