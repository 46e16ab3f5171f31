//! Trials that fail. Of a pair both are made again, and neither alone. A point whose trials fail one after the other is
//! given up: a statement that no server takes, a table that isn't there. What has failed so often fails again, and a
//! comparison would try it for all the pairs that it may take.

use super::Runner;
use crate::failure::Failure;
use crate::output;
use crate::repetition::{self, level};
use dyno_facts::{PlanStep, PlannedTrial, Purpose, StepAction, TrialStatus};
use dyno_suite::Plan;
use std::collections::{BTreeMap, BTreeSet};

/// Failures of a point in a row after which it is given up.
const FAILURES: u32 = 3;

#[derive(Debug, Default)]
pub(super) struct Failing {
    /// Failures in a row by experiment, load level and target.
    in_a_row: BTreeMap<(String, Level), BTreeMap<String, u32>>,
    /// Steps whose trials have failed in this process; the next one makes them again.
    steps: BTreeSet<String>,
}

type Level = (u32, Option<u32>, Option<u64>);

impl Failing {
    /// Notes how a trial has ended; true where its point is given up from now on.
    pub(super) fn ended(
        &mut self,
        step: &PlanStep,
        trial: &PlannedTrial,
        status: &TrialStatus,
    ) -> bool {
        // A search goes to where trials fail.
        if trial.purpose == Purpose::Search {
            return false;
        }
        let of_level = self.in_a_row.entry((step.experiment.clone(), level(trial))).or_default();
        let failures = of_level.entry(step.target.clone()).or_default();
        match status {
            TrialStatus::Failed(_) => {
                *failures += 1;
                self.steps.insert(step.id.clone());
            }
            TrialStatus::Complete => *failures = 0,
            _ => return false,
        }
        *failures == FAILURES
    }

    /// Whether a trial belongs to a point that is given up; where targets are compared, to one on any of them.
    pub(super) fn is_given_up(
        &self,
        step: &PlanStep,
        trial: &PlannedTrial,
        is_compared: bool,
    ) -> bool {
        let Some(of_level) = self.in_a_row.get(&(step.experiment.clone(), level(trial))) else {
            return false;
        };
        let mut own = of_level.iter().filter(|(target, _)| is_compared || **target == step.target);
        trial.purpose != Purpose::Search && own.any(|(_, failures)| *failures >= FAILURES)
    }

    /// Whether all that a trial is compared with in its round has failed: by itself it is no pair, and takes its time.
    pub(super) fn is_alone(&self, plan: &Plan, step: &PlanStep, trial: &PlannedTrial) -> bool {
        let planned = plan.experiment(&step.experiment);
        let Some(comparison) = planned.and_then(|planned| planned.comparison.as_ref()) else {
            return false;
        };
        let others: Vec<&String> = match step.target == comparison.baseline {
            true => comparison.candidates.iter().collect(),
            false if comparison.candidates.contains(&step.target) => vec![&comparison.baseline],
            false => return false,
        };
        let has_failed = |target: &&String| {
            let mut round = repetition::round(plan, step, trial);
            round.any(|other| other.target == **target && self.steps.contains(&other.id))
        };
        trial.purpose == Purpose::Measure && others.iter().all(has_failed)
    }
}

impl Runner<'_> {
    /// Of a pair of which one trial failed or was cut off, both are made again, one right after the other: made alone, the
    /// second one would meet whatever has changed since.
    pub(super) fn set_half_pairs_aside(&mut self) -> Result<(), Failure> {
        let mut halves = BTreeSet::new();
        for step in &self.plan.steps {
            let StepAction::Trial(trial) = &step.action else { continue };
            let is_left = !self.run.is_complete(&step.id)
                && !self.run.header().skipped.contains_key(&step.id);
            if !is_left || !self.is_compared(step) || trial.purpose != Purpose::Measure {
                continue;
            }
            let others = repetition::round(self.plan, step, trial);
            let made = others.filter_map(|other| self.run.complete_trial(&other.id));
            // What was added up from stages has its stages still.
            let whole = made.filter(|made| made.stages.is_empty());
            let whole: Vec<String> = whole.map(|made| made.step.clone()).collect();
            if !whole.is_empty() {
                // Its starved attempts belong to the pair that is given up.
                halves.insert(step.id.clone());
            }
            halves.extend(whole);
        }
        if !halves.is_empty() {
            self.run.set_aside(&halves)?;
        }
        Ok(())
    }

    fn is_compared(&self, step: &PlanStep) -> bool {
        let experiment = self.plan.experiment(&step.experiment);
        experiment.is_some_and(|planned| planned.comparison.is_some())
    }

    /// Notes how a trial has ended, and says so where its point is given up.
    pub(super) fn give_up(&mut self, step: &PlanStep, status: &TrialStatus) {
        if let StepAction::Trial(trial) = &step.action
            && self.failing.ended(step, trial, status)
        {
            output::talk(&format!(
                "{}: three trials in a row failed, so its others are left out. The same command makes them again.",
                trial.point
            ));
        }
    }

    pub(super) fn is_given_up(&self, step: &PlanStep, trial: &PlannedTrial) -> bool {
        if self.failing.is_given_up(step, trial, self.is_compared(step)) {
            return true;
        }
        let is_alone = self.failing.is_alone(self.plan, step, trial);
        if is_alone {
            output::talk(&format!(
                "{}: left out, since the other trial of its pair failed. The same command makes both again, if time is left.",
                step.id
            ));
        }
        is_alone
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(target: &str, workers: u32) -> (PlanStep, PlannedTrial) {
        let trial = PlannedTrial { workers, ..PlannedTrial::default() };
        let step = PlanStep {
            id: String::new(),
            experiment: "e".to_owned(),
            target: target.to_owned(),
            estimated_s: 1.0,
            action: StepAction::Trial(trial.clone()),
        };
        (step, trial)
    }

    #[test]
    fn three_failures_in_a_row_end_a_point_and_its_comparison() {
        let mut failing = Failing::default();
        let failed = TrialStatus::Failed("no table".into());
        let (old, trial) = step("old", 2);
        let (new, _) = step("new", 2);
        let mut ended = |status: &TrialStatus| failing.ended(&old, &trial, status);
        let all = [&failed, &failed, &TrialStatus::Complete, &failed, &failed, &failed, &failed];
        assert_eq!(all.map(&mut ended), [false, false, false, false, false, true, false]);
        assert!(failing.is_given_up(&old, &trial, false));
        assert!(!failing.is_given_up(&new, &trial, false), "the other target may do");
        assert!(failing.is_given_up(&new, &trial, true), "alone it is no pair");
        let (other, level) = step("old", 4);
        assert!(!failing.is_given_up(&other, &level, true), "another level");
        let search = PlannedTrial { purpose: Purpose::Search, ..trial.clone() };
        assert!(!failing.is_given_up(&old, &search, true));
        assert!((0..4).all(|_| !failing.ended(&other, &search, &failed)));
    }
}
