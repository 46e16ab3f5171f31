//! From experiments to steps in the order of execution.

use crate::plan::fnv1a;
use dyno_core::offer::UsualPace;
use dyno_facts::statistics::order;
use dyno_facts::{ExperimentFacts, PlanStep, PlannedTrial, Purpose, Restore, StepAction};

const COUNTED_PER_S: f64 = 1_000.0;
/// Connecting, looking at the servers before and after, and storing what was measured.
const AROUND_TRIAL_S: f64 = 0.4;
/// Before the first row of a load, and for a cleanup.
const AROUND_LOAD_S: f64 = 0.5;
/// Until a server that a fault has hit serves as before.
const AFTER_FAULT_S: f64 = 3.5;
/// Steps that a search may take: its trials, the closed loop before them, and the one at which is noted how it ended.
const SEARCH_MOST: u32 = dyno_facts::statistics::knee::MOST_TRIALS as u32 + 2;
/// Trials that a search takes as a rule, alongside those that confirm its result.
const SEARCH_USUAL: u32 = 10;
const RESTART_S: f64 = 5.0;
/// Longest window of a closed loop that a rate is chosen by.
const CALIBRATION_S: f64 = 5.0;

/// Prepare all targets, run repeat after repeat, clean up all targets.
///
/// Repeats are the outer loop and the targets the inner one: what drifts in the course of a run then meets all points
/// and targets alike instead of looking like a difference between them. Orders are balanced: each target comes first
/// equally often, and so does each load level, which follows every other equally often.
///
/// `owner` says whose data a target has: they are loaded and removed once, under that name. `pace` is that of a target.
pub(crate) fn expand(
    experiment: &ExperimentFacts,
    pace: impl Fn(&str) -> UsualPace,
    seed: u64,
    owner: impl Fn(&str) -> String,
) -> Vec<PlanStep> {
    let mut maker = Maker { experiment, pace, seed, steps: Vec::new() };
    let mut owners: Vec<String> = Vec::new();
    for target in &experiment.targets {
        let owner = owner(target);
        if !owners.contains(&owner) {
            owners.push(owner);
        }
    }
    if experiment.prepare {
        for target in &owners {
            let load_s = AROUND_LOAD_S + maker.load_s(target);
            maker.add_step(target, "prepare", load_s, StepAction::Prepare);
        }
    }
    if experiment.search.is_some() {
        maker.add_searches();
    } else {
        let levels = levels(experiment);
        if experiment.is_together() {
            levels
                .iter()
                .filter(|level| level.rate.is_none())
                .for_each(|l| maker.add_calibration(l));
        }
        for repeat in 1..=experiment.repeats {
            let order = format!("{seed}/{}", experiment.name);
            // Once alone there is nothing to balance: the listed order is the one that people expect.
            let ordered = match experiment.repeats {
                1 if experiment.degrees.is_empty() => levels.iter().collect(),
                _ => balanced(&levels, maker.planned_repeats(), repeat, &order),
            };
            for (place, level) in ordered.into_iter().enumerate() {
                maker.add_points(level, repeat, place == 0);
            }
        }
        // If there is one point, it is not chosen.
        let confirmations = if levels.len() > 1 { experiment.confirm } else { 0 };
        (1..=confirmations).for_each(|repeat| maker.add_confirmation(repeat));
    }
    if experiment.cleanup {
        for target in &owners {
            maker.add_step(target, "cleanup", AROUND_LOAD_S, StepAction::Cleanup);
        }
    }
    maker.steps
}

struct Maker<'a, P> {
    experiment: &'a ExperimentFacts,
    pace: P,
    seed: u64,
    steps: Vec<PlanStep>,
}

impl<P: Fn(&str) -> UsualPace> Maker<'_, P> {
    fn add_step(&mut self, target: &str, tail: &str, estimated_s: f64, action: StepAction) {
        let experiment = self.experiment.name.clone();
        let id = format!("{experiment}/{target}/{tail}");
        self.steps.push(PlanStep {
            id,
            experiment,
            target: target.to_string(),
            estimated_s,
            action,
        });
    }

    fn total_rows(&self) -> f64 {
        self.experiment.data.map_or(0.0, |size| size.tables as f64 * size.rows_per_table as f64)
    }

    fn load_s(&self, target: &str) -> f64 {
        self.total_rows() / (self.pace)(target).loaded
    }

    /// A guess of the length of a trial, with what is done before it.
    fn trial_s(&self, target: &str, level: &Level) -> f64 {
        let (experiment, pace) = (self.experiment, (self.pace)(target));
        let counted_s = experiment.events.map_or(0.0, |events| events as f64 / COUNTED_PER_S);
        let window_s = experiment.warmup_s + experiment.duration_s.unwrap_or(counted_s);
        let is_each_trial = experiment.restore == Restore::Reload && experiment.reload_each == 0;
        let restored_s = if is_each_trial { self.load_s(target) } else { 0.0 };
        let fault_s = if experiment.fault.is_some() { AFTER_FAULT_S } else { 0.0 };
        let around_s = AROUND_TRIAL_S + fault_s + self.total_rows() / pace.checked;
        let passes_s = level.degree.map_or(window_s, |_| self.total_rows() / pace.queried);
        restored_s + around_s + passes_s
    }

    /// A guess of the time for restarts and reloads before a repeat of a level, if it is the first of some pairs.
    fn renewal_s(&self, target: &str, repeat: u32, is_first_level: bool) -> f64 {
        let experiment = self.experiment;
        let loads = experiment.restore == Restore::Reload;
        let load_s = if loads { self.load_s(target) } else { 0.0 };
        let renewals = [(experiment.restart_each, RESTART_S), (experiment.reload_each, load_s)];
        let due = renewals
            .into_iter()
            .filter(|&(each, _)| each == 1 || (each > 1 && is_first_level && repeat % each == 1));
        due.map(|(_, seconds)| seconds).sum()
    }

    /// Adds a trial; `work` decides what its workers draw.
    fn add_trial(
        &mut self,
        target: &str,
        (level, place, work): (&Level, &str, &str),
        (purpose, repeat): (Purpose, u32),
        estimated_s: f64,
    ) {
        let experiment = self.experiment;
        let trial = PlannedTrial {
            number: 0,
            purpose,
            point: format!("{}/{target}/{place}", experiment.name),
            workers: level.workers,
            degree: level.degree,
            rate: level.rate,
            repeat,
            warmup_s: experiment.warmup_s,
            duration_s: experiment.duration_s,
            events: experiment.events,
            interval_s: experiment.interval_s,
            is_together: purpose == Purpose::Measure && experiment.is_together(),
            // JSON readers in other languages keep 53 bits of a number.
            seed: fnv1a(work.as_bytes()) >> 11,
        };
        let tail = format!("{place}/repeat={repeat}");
        self.add_step(target, &tail, estimated_s, StepAction::Trial(trial));
    }

    fn add_points(&mut self, level: &Level, repeat: u32, is_first: bool) {
        let experiment = self.experiment;
        let name = level.name();
        // Degrees are compared on the same queries, so the level isn't part of their seed.
        let lot = if level.degree.is_some() { "pass" } else { &name };
        let work = format!("{}/{}/{lot}/repeat={repeat}", self.seed, experiment.name);
        let order = format!("{}/{}/{name}", self.seed, experiment.name);
        for target in balanced(&experiment.targets, self.planned_repeats(), repeat, &order) {
            let own_s = self.trial_s(target, level) + self.renewal_s(target, repeat, is_first);
            let at_once = if experiment.is_together() { experiment.targets.len() } else { 1 };
            let estimated_s = own_s / at_once as f64;
            let purpose = (Purpose::Measure, repeat);
            self.add_trial(target, (level, &name, &work), purpose, estimated_s);
        }
    }

    /// A closed loop on each target alone, by which the rate is chosen that all get at once.
    fn add_calibration(&mut self, level: &Level) {
        let place = format!("{}/calibrate", level.name());
        let work = format!("{}/{}/{place}", self.seed, self.experiment.name);
        for target in shuffle(&self.experiment.targets, &work) {
            let cut_s = self.experiment.duration_s.map_or(0.0, |s| (s - CALIBRATION_S).max(0.0));
            let estimated_s = self.trial_s(target, level) - cut_s;
            self.add_trial(target, (level, &place, &work), (Purpose::Search, 1), estimated_s);
            if let Some(StepAction::Trial(trial)) =
                self.steps.last_mut().map(|step| &mut step.action)
            {
                trial.duration_s = trial.duration_s.map(|seconds| seconds.min(CALIBRATION_S));
            }
        }
    }

    /// The repeats that are made in any case.
    fn planned_repeats(&self) -> u32 {
        match (&self.experiment.comparison, self.experiment.time_bound()) {
            (Some(comparison), _) => comparison.stop.pairs_least,
            (None, Some((least, _))) => least,
            (None, None) => self.experiment.repeats,
        }
    }

    /// The searches on all targets side by side, one after the other for each number of workers.
    fn add_searches(&mut self) {
        let experiment = self.experiment;
        let usual = SEARCH_USUAL + experiment.confirm;
        for &workers in &experiment.workers {
            let level = Level { workers, degree: None, rate: None };
            let place = format!("workers={workers}/search");
            for number in 1..=SEARCH_MOST {
                let work = format!("{}/{}/{place}/repeat={number}", self.seed, experiment.name);
                for target in shuffle(&experiment.targets, &work) {
                    let is_usual = number <= usual;
                    let estimated_s = if is_usual { self.trial_s(target, &level) } else { 0.0 };
                    let purpose = (Purpose::Search, number);
                    self.add_trial(target, (&level, &place, &work), purpose, estimated_s);
                }
            }
        }
    }

    fn add_confirmation(&mut self, repeat: u32) {
        let experiment = self.experiment;
        let work = format!("{}/{}/confirm={repeat}", self.seed, experiment.name);
        let workers = experiment.workers.iter().max().copied().unwrap_or(1);
        let level = Level { workers, degree: experiment.degrees.first().copied(), rate: None };
        for target in shuffle(&experiment.targets, &work) {
            let estimated_s = self.trial_s(target, &level);
            let purpose = (Purpose::Confirm, repeat);
            self.add_trial(target, (&level, "confirm", &work), purpose, estimated_s);
        }
    }
}

/// A guess of the seconds that steps take, given what each takes by itself. Repeats whose time is bounded take
/// what is left of it at most, unless the fewest of them take longer; `spent_s` of an experiment is gone.
pub fn estimate(
    experiments: &[ExperimentFacts],
    steps: &[(&PlanStep, f64)],
    spent_s: impl Fn(&str) -> f64,
) -> f64 {
    let bounded_s = experiments.iter().map(|experiment| {
        let (mut others_s, mut least_s, mut trials_s) = (0.0, 0.0, 0.0);
        let bound = experiment.time_bound();
        for &(step, own_s) in steps.iter().filter(|(step, _)| step.experiment == experiment.name) {
            match (&step.action, bound) {
                (StepAction::Trial(trial), Some((least, _)))
                    if trial.purpose == Purpose::Measure =>
                {
                    trials_s += own_s;
                    if trial.repeat <= least {
                        least_s += own_s;
                    }
                }
                _ => others_s += own_s,
            }
        }
        let left_s = bound.map_or(0.0, |(_, seconds)| seconds - spent_s(&experiment.name));
        others_s + trials_s.min(left_s.max(least_s))
    });
    let foreign = steps.iter().filter(|(step, _)| {
        experiments.iter().all(|experiment| experiment.name != step.experiment)
    });
    bounded_s.sum::<f64>() + foreign.map(|(_, own_s)| own_s).sum::<f64>()
}

/// The keys by which a point differs from the others of its experiment on its target.
struct Level {
    workers: u32,
    degree: Option<u32>,
    rate: Option<f64>,
}

impl Level {
    /// Its part of the names of points, such as `workers=4/rate=100`.
    fn name(&self) -> String {
        match (self.degree, self.rate) {
            (Some(degree), _) => format!("degree={degree}"),
            (None, Some(rate)) => format!("workers={}/rate={rate}", self.workers),
            (None, None) => format!("workers={}", self.workers),
        }
    }
}

/// The levels as they are listed.
fn levels(experiment: &ExperimentFacts) -> Vec<Level> {
    if !experiment.degrees.is_empty() {
        let degrees = experiment.degrees.iter();
        return degrees
            .map(|&degree| Level { workers: 1, degree: Some(degree), rate: None })
            .collect();
    }
    let rates: Vec<Option<f64>> = match experiment.rates.as_slice() {
        [] => vec![None],
        rates => rates.iter().copied().map(Some).collect(),
    };
    let workers = &experiment.workers;
    let levels = rates
        .into_iter()
        .flat_map(|rate| workers.iter().map(move |&workers| Level { workers, degree: None, rate }));
    levels.collect()
}

/// The items in the order of a repeat (from 1) of `planned` ones.
fn balanced<'a, T>(items: &'a [T], planned: u32, repeat: u32, work: &str) -> Vec<&'a T> {
    let repeat = repeat.saturating_sub(1) as usize;
    let order = order::balanced(items.len(), planned as usize, repeat, fnv1a(work.as_bytes()));
    order.into_iter().map(|at| &items[at]).collect()
}

/// The items in an order that `work` decides.
fn shuffle<'a, T: std::fmt::Display>(items: &'a [T], work: &str) -> Vec<&'a T> {
    let mut order: Vec<&T> = items.iter().collect();
    order.sort_by_cached_key(|item| fnv1a(format!("{work}/{item}").as_bytes()));
    order
}
