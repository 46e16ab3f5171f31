//! Trials of several targets at once: they begin at one moment and get the same arrivals, so that whatever else the
//! machine does meets both alike, and each interval of both is a pair.

use crate::fleet::Team;
use crate::trial::{Job, TrialDone};
use crate::{Runner, failure::Result};
use dyno_core::{MILLISECOND, Nanos};
use dyno_engine::Control;
use dyno_facts::{PlanStep, PlannedTrial, Purpose, TrialStatus};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// From the moment when all are ready to the start, for loops that wait.
const HEAD_START: Nanos = 20 * MILLISECOND;
const LOOK: Duration = Duration::from_millis(50);

/// Meeting point at which trials wait for each other.
#[derive(Default)]
struct Rendezvous {
    meeting: Mutex<Meeting>,
    changed: Condvar,
}

#[derive(Default)]
struct Meeting {
    /// Trials whose workers are all connected.
    ready: usize,
    starts_at: Nanos,
    is_called_off: bool,
}

impl Rendezvous {
    /// The start of `expected` trials, one of which is ready `now`; `None` if one of them never will be.
    fn wait_for_all(&self, expected: usize, now: Nanos) -> Option<Nanos> {
        let mut meeting = self.meeting.lock().unwrap_or_else(PoisonError::into_inner);
        meeting.ready += 1;
        meeting.starts_at = meeting.starts_at.max(now + HEAD_START);
        self.changed.notify_all();
        let waited = self
            .changed
            .wait_while(meeting, |meeting| !meeting.is_called_off && meeting.ready < expected);
        let meeting = waited.unwrap_or_else(PoisonError::into_inner);
        (!meeting.is_called_off).then_some(meeting.starts_at)
    }

    /// No one waits any longer. What has begun continues.
    fn call_off(&self) {
        let mut meeting = self.meeting.lock().unwrap_or_else(PoisonError::into_inner);
        meeting.is_called_off = true;
        self.changed.notify_all();
    }
}

impl Runner<'_> {
    /// Makes the trials of a repeat at once. Returns how the worst of them has ended.
    pub(super) fn together(&mut self, trials: &[(&PlanStep, PlannedTrial)]) -> Result<TrialDone> {
        let mut grounds = Vec::new();
        for (earlier, (step, planned)) in (0..).zip(trials) {
            match self.prepare_ground(step, planned, None, earlier)? {
                Some(ground) => grounds.push((*step, ground)),
                None => return Ok(TrialDone::INTERRUPTED),
            }
        }
        // The same seed gives all targets the same arrivals. It must be new to the data of each.
        let planned_seed = trials.first().map(|(_, planned)| planned.seed);
        let mut seeds = grounds.iter().map(|(_, ground)| ground.planned.seed);
        if let Some(seed) = seeds.find(|seed| Some(*seed) != planned_seed).or(planned_seed) {
            grounds.iter_mut().for_each(|(_, ground)| ground.planned.seed = seed);
        }
        let mut sides = Vec::new();
        for (step, ground) in &grounds {
            sides.push((*step, ground, self.catch_up_nodes(step, ground)?));
        }
        let rendezvous = Arc::new(Rendezvous::default());
        let expected = sides.len();
        let controls = sides.iter().map(|_| {
            let rendezvous = Arc::clone(&rendezvous);
            Control::starting(Box::new(move |now| rendezvous.wait_for_all(expected, now)))
        });
        let controls: Vec<Control> = controls.collect();
        let (plan, folder) = (self.plan, self.run.path().to_owned());
        let run = Mutex::new(&mut self.run);
        let outcomes: Vec<Result<TrialDone>> = thread::scope(|scope| {
            let mut threads = Vec::new();
            for ((step, ground, nodes), control) in sides.into_iter().zip(&controls) {
                let trial = &ground.planned;
                let job = Job {
                    step,
                    planned: trial,
                    purpose: Purpose::Measure,
                    stage: None,
                    nodes,
                    fault: None,
                    team: Team::new(None, plan, (step, trial), &folder),
                    // Repeated alone, it would have no partner.
                    starving: ground.starving.never_again(),
                    number: ground.number,
                    run: &run,
                    control,
                };
                let (experiment, database) = (&*ground.experiment, &ground.reached.database);
                let rendezvous = &rendezvous;
                threads.push(scope.spawn(move || {
                    let outcome = experiment.trial(database, job);
                    rendezvous.call_off();
                    outcome
                }));
            }
            while threads.iter().any(|thread| !thread.is_finished()) {
                if self.control.is_stopped() {
                    controls.iter().for_each(Control::stop);
                    rendezvous.call_off();
                }
                thread::sleep(LOOK);
            }
            let outcomes = threads.into_iter().map(thread::ScopedJoinHandle::join);
            outcomes
                .map(|outcome| outcome.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
                .collect()
        });
        let outcomes = outcomes.into_iter().collect::<Result<Vec<TrialDone>>>()?;
        if self.control.is_stopped() {
            return Ok(TrialDone::INTERRUPTED);
        }
        Ok(outcomes.into_iter().max_by_key(severity).unwrap_or(TrialDone::INTERRUPTED))
    }
}

/// Severity of an outcome: if one has failed, the pair counts for nothing; one that was called off for that says less.
fn severity(outcome: &TrialDone) -> u32 {
    match outcome {
        TrialDone::Ended { status: TrialStatus::Failed(_), .. } => 3,
        TrialDone::Skipped(_) => 2,
        TrialDone::Ended { status: TrialStatus::Interrupted, .. } => 1,
        TrialDone::Ended { .. } => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trials_start_at_one_moment_after_the_last_is_ready() {
        let rendezvous = Rendezvous::default();
        let starts = thread::scope(|scope| {
            let early = scope.spawn(|| rendezvous.wait_for_all(2, 1_000));
            let late = scope.spawn(|| rendezvous.wait_for_all(2, 5_000));
            [early.join().expect("it meets"), late.join().expect("it meets")]
        });
        assert_eq!(starts, [Some(5_000 + HEAD_START); 2]);
    }

    #[test]
    fn a_trial_that_is_never_ready_lets_the_other_go() {
        let rendezvous = Rendezvous::default();
        let start = thread::scope(|scope| {
            let waits = scope.spawn(|| rendezvous.wait_for_all(2, 1_000));
            rendezvous.call_off();
            waits.join().expect("it returns")
        });
        assert_eq!(start, None);
    }
}
