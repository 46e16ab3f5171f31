//! How long the rest of a run will take: by the guesses of its plan, corrected by how long its steps took so far.

use crate::progress::about;
use dyno_facts::{ExperimentFacts, PlanStep, StepAction};
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Guesses count as if so many seconds of each kind had taken as long as guessed.
const TRUSTED_S: f64 = 5.0;
/// How often a plain line tells it.
const TOLD_EVERY: Duration = Duration::from_secs(30);
/// A shorter rest is not worth a line.
const WORTH_TELLING_S: f64 = 10.0;

/// The rest of the run of this process, for its bars.
static REST: Mutex<Option<Rest>> = Mutex::new(None);

#[derive(Clone, Copy)]
struct Rest {
    since: Instant,
    left_s: f64,
}

/// `, run: about 6 min`; nothing outside of a run.
pub(crate) fn of_run() -> String {
    let rest = REST.lock().ok().and_then(|rest| *rest);
    rest.map_or(String::new(), |rest| {
        format!(", run: {}", told(rest.left_s - rest.since.elapsed().as_secs_f64()))
    })
}

fn told(left_s: f64) -> String {
    if left_s < 1.0 { "nearly done".to_owned() } else { about(left_s) }
}

#[derive(Clone, Copy, Default)]
struct Taken {
    guessed_s: f64,
    taken_s: f64,
}

impl Taken {
    fn factor(self) -> f64 {
        (self.taken_s + TRUSTED_S) / (self.guessed_s + TRUSTED_S)
    }
}

pub(crate) struct Remaining<'a> {
    experiments: &'a [ExperimentFacts],
    loads: Taken,
    trials: Taken,
    told: Option<Instant>,
}

impl<'a> Remaining<'a> {
    pub(crate) fn new(experiments: &'a [ExperimentFacts]) -> Self {
        let (loads, trials) = (Taken::default(), Taken::default());
        Remaining { experiments, loads, trials, told: None }
    }

    /// A step has been done.
    pub(crate) fn took(&mut self, step: &PlanStep, seconds: f64) {
        let taken = match step.action {
            StepAction::Prepare => &mut self.loads,
            StepAction::Trial(_) => &mut self.trials,
            StepAction::Cleanup => return,
        };
        taken.guessed_s += step.estimated_s;
        taken.taken_s += seconds.max(0.0);
    }

    /// `spent_s`: of the time that experiments have for their repeats, as the run folder has it.
    fn left_s(&self, steps: &[&PlanStep], spent_s: &BTreeMap<String, f64>) -> f64 {
        let of = |step: &PlanStep| match step.action {
            StepAction::Prepare => step.estimated_s * self.loads.factor(),
            StepAction::Trial(_) => step.estimated_s * self.trials.factor(),
            StepAction::Cleanup => step.estimated_s,
        };
        let each: Vec<_> = steps.iter().map(|&step| (step, of(step))).collect();
        let spent_s = |experiment: &str| spent_s.get(experiment).copied().unwrap_or(0.0);
        dyno_suite::estimate(self.experiments, &each, spent_s)
    }

    /// Shows what is left with the bars of the next step, and now and then says it in a line.
    pub(crate) fn show(
        &mut self,
        left: &[&PlanStep],
        of: usize,
        spent_s: &BTreeMap<String, f64>,
    ) -> Option<String> {
        let left_s = self.left_s(left, spent_s);
        let now = Instant::now();
        if let Ok(mut rest) = REST.lock() {
            *rest = Some(Rest { since: now, left_s });
        }
        let is_due = self.told.is_none_or(|told| now - told >= TOLD_EVERY);
        (is_due && left_s >= WORTH_TELLING_S).then(|| {
            self.told = Some(now);
            let place = match self.experiments.iter().any(ExperimentFacts::has_open_steps) {
                true => "the run".to_owned(),
                false => format!("step {} of {of}", of + 1 - left.len()),
            };
            format!("{place}: {} left", about(left_s))
        })
    }
}

impl Drop for Remaining<'_> {
    fn drop(&mut self) {
        if let Ok(mut rest) = REST.lock() {
            *rest = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_facts::{ComparisonFacts, PlannedTrial, StopRule};

    fn step(action: StepAction, estimated_s: f64) -> PlanStep {
        let (id, experiment, target) = (String::new(), String::new(), String::new());
        PlanStep { id, experiment, target, estimated_s, action }
    }

    #[test]
    fn what_took_longer_than_guessed_is_guessed_longer() {
        let load = step(StepAction::Prepare, 15.0);
        let trial = step(StepAction::Trial(PlannedTrial::default()), 10.0);
        let cleanup = step(StepAction::Cleanup, 1.0);
        let (mut remaining, none) = (Remaining::new(&[]), BTreeMap::new());
        assert_eq!(remaining.left_s(&[&load, &trial, &cleanup], &none), 26.0);
        // (35 + 5) / (15 + 5): twice as long; trials are another matter.
        remaining.took(&load, 35.0);
        remaining.took(&cleanup, 100.0);
        assert_eq!(remaining.left_s(&[&load, &trial, &cleanup], &none), 41.0);
        let told = remaining.show(&[&load, &trial, &cleanup], 5, &none);
        assert_eq!(told.as_deref(), Some("step 3 of 5: about 41 s left"));
        assert_eq!(remaining.show(&[&trial], 5, &none), None, "told a moment ago");
    }

    #[test]
    fn no_time_at_all_is_not_told_as_a_time() {
        assert_eq!([-3.0, 0.2, 41.0].map(told), ["nearly done", "nearly done", "about 41 s"]);
    }

    #[test]
    fn pairs_take_what_is_left_of_their_budget_at_most() {
        let pair = |repeat| {
            let trial = PlannedTrial { repeat, ..PlannedTrial::default() };
            step(StepAction::Trial(trial), 10.0)
        };
        let pairs: Vec<PlanStep> = (1..=200).map(pair).collect();
        let all: Vec<&PlanStep> = pairs.iter().collect();
        let stop = StopRule {
            pairs_least: 2,
            pairs_most: 200,
            budget_s: Some(60.0),
            ..StopRule::default()
        };
        let comparison = Some(ComparisonFacts { stop, ..ComparisonFacts::default() });
        let experiments = [ExperimentFacts { comparison, ..ExperimentFacts::default() }];
        let spent = |seconds: f64| BTreeMap::from([(String::new(), seconds)]);
        let mut remaining = Remaining::new(&experiments);
        assert_eq!(remaining.left_s(&all, &BTreeMap::new()), 60.0);
        let told = remaining.show(&all, all.len(), &BTreeMap::new());
        assert_eq!(told.as_deref(), Some("the run: about 60 s left"), "not all 200 are made");
        // A process that goes on with the run has made none of it.
        assert_eq!(remaining.left_s(&all[1..], &spent(40.0)), 20.0);
        remaining.took(&pairs[0], 10.0);
        assert_eq!(remaining.left_s(&all[1..], &spent(10.0)), 50.0);
        // The budget is nearly spent, and a pair of the fewest is left.
        remaining.took(&pairs[2], 45.0);
        assert_eq!(remaining.left_s(&all[2..], &spent(55.0)), 5.0);
        // (55 + 5) / (20 + 5) times as long as guessed.
        assert_eq!(remaining.left_s(&all[1..], &spent(55.0)), 24.0);
    }
}
