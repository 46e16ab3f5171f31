//! Trials that are cut into stages: each is driven, looked at and stored as a trial of its own, and the last one is
//! followed by their sum. A run that goes on makes the stages that are missing.
//!
//! A stage that was cut off or failed is made again, and what it did counts for nothing: its trial stays in the run folder
//! and in the paper. Data are restored and servers restarted before the first stage only. Sessions are opened anew for each,
//! so each has a warm-up: the whole one where the process has just begun, else a tenth of the stage at most.

use super::Runner;
use crate::failure::Failure;
use crate::joined::joined;
use crate::output;
use crate::seeds::BITS_OF_SEEDS;
use crate::trial::{TrialDone, figures};
use dyno_core::Error;
use dyno_engine::TrialResult;
use dyno_facts::{PlanStep, PlannedTrial, Purpose, StageOf, TrialStatus, TrialSummary};
use std::collections::BTreeSet;

/// Share of a stage that its warm-up may take when the server has just served the stage before it.
const WARM_SHARE: f64 = 0.1;

impl Runner<'_> {
    /// Makes a trial, whole or in stages.
    pub(super) fn made(
        &mut self,
        step: &PlanStep,
        trial: &PlannedTrial,
        purpose: Purpose,
    ) -> Result<TrialDone, Failure> {
        let planned = self.plan.experiment(&step.experiment);
        let cut = planned.and_then(|planned| planned.stage_s).zip(trial.duration_s);
        let Some((stage_s, duration_s)) = cut else {
            return self.attempts(step, trial, purpose, None);
        };
        let of = (duration_s / stage_s).ceil() as u32;
        let done: BTreeSet<u32> = self
            .run
            .data()
            .stages(&step.id)
            .iter()
            .filter_map(|stage| Some(stage.stage?.number))
            .collect();
        let left = (1..=of).filter(|number| !done.contains(number));
        if let (false, Some(first)) = (done.is_empty(), left.clone().next()) {
            let place = format!("{} on {}", step.experiment, step.target);
            output::talk(&format!("{place}: goes on with stage {first} of {of}"));
        }
        let mut follows = false;
        for number in left {
            if self.control.is_stopped() {
                return Ok(TrialDone::INTERRUPTED);
            }
            let stage = StageOf { number, of };
            let part = part(trial, stage, follows);
            match self.attempts(step, &part, purpose, Some(stage))? {
                TrialDone::Ended { status: TrialStatus::Stage, .. } => follows = true,
                done => return Ok(done),
            }
        }
        self.join(step, trial)
    }

    /// Stores the sum of all stages.
    fn join(&mut self, step: &PlanStep, trial: &PlannedTrial) -> Result<TrialDone, Failure> {
        let place = format!("{} on {}", step.experiment, step.target);
        let stages: Vec<TrialSummary> =
            self.run.data().stages(&step.id).into_iter().cloned().collect();
        let results = stages.iter().map(|stage| self.run.stage(stage));
        let results: Vec<TrialResult> = results.collect::<Result<_, _>>()?;
        let sum = joined(trial, &stages, &results).map_err(|error: Error| {
            Failure::new(format!("The stages can't be added up: {error}.")).at(&place)
        })?;
        let status = sum.status.clone();
        output::step(&format!("{place}: {} stages: {}", stages.len(), figures(&sum, None)));
        self.run.store_joined(sum)?;
        Ok(TrialDone::Ended { status, is_denied: false })
    }
}

/// A stage as it is driven. Each has a seed of its own, so that none repeats the work of another.
fn part(trial: &PlannedTrial, stage: StageOf, follows: bool) -> PlannedTrial {
    let length_s = trial.duration_s.map(|duration_s| duration_s / f64::from(stage.of));
    let warm_most_s =
        length_s.filter(|_| follows).map_or(f64::INFINITY, |length_s| length_s * WARM_SHARE);
    let stride = 0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(u64::from(stage.number - 1));
    PlannedTrial {
        duration_s: length_s,
        warmup_s: trial.warmup_s.min(warm_most_s),
        seed: trial.seed.wrapping_add(stride) & BITS_OF_SEEDS,
        ..trial.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stages_are_equal_parts_with_seeds_of_their_own() {
        let trial = PlannedTrial {
            duration_s: Some(1_000.0),
            warmup_s: 60.0,
            seed: 7,
            ..PlannedTrial::default()
        };
        let of = |number, follows| part(&trial, StageOf { number, of: 4 }, follows);
        let (first, second) = (of(1, false), of(2, true));
        assert_eq!((first.duration_s, first.warmup_s, first.seed), (Some(250.0), 60.0, 7));
        assert_eq!((second.duration_s, second.warmup_s), (Some(250.0), 25.0));
        assert_ne!(second.seed, first.seed);
        assert_eq!(of(2, false).warmup_s, 60.0, "a process that has just begun");
        assert!(second.seed < 1 << 53);
    }
}
