//! From experiments to steps in the order of execution.

use serde::{Deserialize, Serialize};

use crate::plan::PlannedExperiment;
use crate::resume::fnv1a;

/// One thing to do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// Unique in the plan and stable from run to run: `EXPERIMENT/TARGET/prepare`,
    /// `EXPERIMENT/TARGET/threads=8/repeat=1`, `EXPERIMENT/TARGET/threads=8/rate=100/repeat=1`,
    /// `EXPERIMENT/TARGET/degree=16/repeat=1`, `EXPERIMENT/TARGET/cleanup`.
    pub id: String,
    /// Name of the experiment.
    pub experiment: String,
    /// Name of the target.
    pub target: String,
    /// A guess of its length in seconds.
    pub estimated_s: f64,
    /// What to do.
    pub action: Action,
}

/// What a step does.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "do")]
pub enum Action {
    /// Create and load the tables.
    Prepare,
    /// One timed execution of a point.
    Trial(Trial),
    /// Drop the tables.
    Cleanup,
}

/// One timed execution of a point.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Trial {
    /// From 1, over the whole plan, in the order of execution: the `n` of `trials/n.json`.
    pub number: u32,
    /// The point's id: the step's id without the repeat.
    pub point: String,
    /// Workers; 1 in a pass over queries, whose test knows its sessions.
    pub threads: u32,
    /// Parallel degree of a pass over queries; 0 is off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
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

const LOAD_ROWS_PER_S: f64 = 100_000.0;
const COUNTED_PER_S: f64 = 1_000.0;
/// Rows of the largest table for each second of a pass over the queries: 48 s at scale factor 1 on
/// PostgreSQL without parallel workers.
const QUERIED_ROWS_PER_S: f64 = 125_000.0;

/// Prepare all targets, run repeat after repeat, clean up all targets.
///
/// Repeats are the outer loop and the targets the inner one, in an order drawn for each point and
/// repeat: what drifts in the course of a run then meets all points and targets alike instead of
/// looking like a difference between them.
pub(crate) fn expand(experiment: &PlannedExperiment, seed: u64) -> Vec<Step> {
    let step = |target: &str, tail: &str, estimated_s: f64, action: Action| Step {
        id: format!("{}/{target}/{tail}", experiment.name),
        experiment: experiment.name.clone(),
        target: target.to_string(),
        estimated_s,
        action,
    };
    let mut steps = Vec::new();
    let size = experiment.data;
    let rows = size.map_or(0.0, |size| size.tables as f64 * size.rows_per_table as f64);
    if experiment.prepare {
        for target in &experiment.targets {
            steps.push(step(target, "prepare", 1.0 + rows / LOAD_ROWS_PER_S, Action::Prepare));
        }
    }
    let counted_s = experiment.events.map_or(0.0, |events| events as f64 / COUNTED_PER_S);
    let window_s = experiment.warmup_s + experiment.duration_s.unwrap_or(counted_s);
    for repeat in 1..=experiment.repeats {
        for level in levels(experiment, seed, repeat) {
            let name = level.name();
            // Degrees are compared on the same queries, so the level is no part of their seed.
            let lot = if level.degree.is_some() { "pass" } else { &name };
            let work = format!("{seed}/{}/{lot}/repeat={repeat}", experiment.name);
            let estimated_s = level.degree.map_or(window_s, |_| rows / QUERIED_ROWS_PER_S);
            for target in shuffled(&experiment.targets, &work) {
                let trial = Trial {
                    number: 0,
                    point: format!("{}/{target}/{name}", experiment.name),
                    threads: level.threads,
                    degree: level.degree,
                    rate: level.rate,
                    repeat,
                    warmup_s: experiment.warmup_s,
                    duration_s: experiment.duration_s,
                    events: experiment.events,
                    interval_s: experiment.interval_s,
                    // JSON readers in other languages keep 53 bits of a number.
                    seed: fnv1a(work.as_bytes()) >> 11,
                };
                let tail = format!("{name}/repeat={repeat}");
                steps.push(step(target, &tail, estimated_s, Action::Trial(trial)));
            }
        }
    }
    if experiment.cleanup {
        for target in &experiment.targets {
            steps.push(step(target, "cleanup", 1.0, Action::Cleanup));
        }
    }
    steps
}

/// What a point differs in from the others of its experiment on its target.
struct Level {
    threads: u32,
    degree: Option<u32>,
    rate: Option<f64>,
}

impl Level {
    fn name(&self) -> String {
        match (self.degree, self.rate) {
            (Some(degree), _) => format!("degree={degree}"),
            (None, Some(rate)) => format!("threads={}/rate={rate}", self.threads),
            (None, None) => format!("threads={}", self.threads),
        }
    }
}

/// The levels in the order in which one repeat meets them.
fn levels(experiment: &PlannedExperiment, seed: u64, repeat: u32) -> Vec<Level> {
    if !experiment.degrees.is_empty() {
        return degrees(experiment, seed, repeat);
    }
    let rates: Vec<Option<f64>> = match experiment.rates.as_slice() {
        [] => vec![None],
        rates => rates.iter().copied().map(Some).collect(),
    };
    let threads = &experiment.threads;
    let at = |rate| threads.iter().map(move |&threads| Level { threads, degree: None, rate });
    rates.into_iter().flat_map(at).collect()
}

/// Degrees in a drawn order, and backwards in every second repeat: what one pass leaves in the
/// caches of the next, and what drifts, helps no degree.
fn degrees(experiment: &PlannedExperiment, seed: u64, repeat: u32) -> Vec<Level> {
    let pair = repeat.div_ceil(2);
    let mut order =
        shuffled(&experiment.degrees, &format!("{seed}/{}/pair={pair}", experiment.name));
    if repeat.is_multiple_of(2) {
        order.reverse();
    }
    let level = |&degree: &u32| Level { threads: 1, degree: Some(degree), rate: None };
    order.into_iter().map(level).collect()
}

fn shuffled<'a, T: std::fmt::Display>(items: &'a [T], work: &str) -> Vec<&'a T> {
    let mut order: Vec<&T> = items.iter().collect();
    order.sort_by_cached_key(|item| fnv1a(format!("{work}/{item}").as_bytes()));
    order
}

/// Gives every trial its number.
pub(crate) fn numbered(mut steps: Vec<Step>) -> Vec<Step> {
    let mut number = 0;
    for step in &mut steps {
        if let Action::Trial(trial) = &mut step.action {
            number += 1;
            trial.number = number;
        }
    }
    steps
}
