//! Who makes the load of a trial: this process, or a fleet of load generators.
//!
//! With a fleet a run prepares, looks, samples, checks and stores as ever. `TrialSpec::part` shares the
//! trial out; the order carries an excerpt of the plan, without steps and commands; each load generator
//! makes its workload by `Driven::part`. What workloads keep themselves (ledgers, latencies of statements)
//! is handed over by `Driven::leave` and `Driven::absorb`, so that the checks after a trial see one
//! workload. Passes over TPC-H's queries and trials with faults stay with the coordinator.

use super::family::{Driven, Trials};
use crate::databases::Database;
use crate::failure::Failure;
use crate::muster::{Muster, OnLostGenerator, secrets};
use crate::output;
use crate::permits::Permits;
use dyno_core::{DbError, Workload};
use dyno_engine::{Control, DriveError, Observer, TrialResult, TrialSpec};
use dyno_facts::{GeneratorMember, Message, PlanStep, PlannedTrial, Route, TargetFacts};
use dyno_fleet::{DrivenTogether, Fleet, Performance, Task};
use dyno_suite::Plan;
use std::path::{Path, PathBuf};

pub struct RunFleet {
    pub(super) generators: Fleet,
    lost: OnLostGenerator,
    /// Sentences of the load generators that were lost in the last trial, or between it and the one before.
    last_lost: Vec<Message>,
}

impl RunFleet {
    /// Waits for the load generators; `None` when the user has stopped it.
    ///
    /// # Errors
    /// Too few come, or the user of one of them does not let it reach a target of the plan.
    pub fn gather(
        muster: &Muster,
        plan: &Plan,
        control: &Control,
    ) -> Result<Option<Self>, Failure> {
        let gathered = Fleet::gather(&muster.options, &output::talk, &|| control.is_stopped())?;
        let Some(generators) = gathered else { return Ok(None) };
        output::talk(&format!("load generators: {}", generators.names().join(", ")));
        let members = generators.names().len() as u32;
        for (number, hello) in (0..).zip(generators.hellos()) {
            let permits = Permits::told(&hello.only_hosts)?;
            for target in &plan.targets {
                let checked = permits.check(&target.of_generator(number, members));
                checked.map_err(|failure| {
                    failure.at(format!("target {}: load generator {}", target.name, hello.name))
                })?;
            }
        }
        Ok(Some(RunFleet { generators, lost: muster.lost, last_lost: Vec::new() }))
    }

    /// That the run ends here, where a load generator was lost and it was asked to end then.
    pub(super) fn verdict(&mut self) -> Result<(), Failure> {
        let lost = std::mem::take(&mut self.last_lost);
        match self.lost {
            OnLostGenerator::Fail if !lost.is_empty() => Err(Failure::new(Message::sentences(&lost)).with_hint(
                "The same command goes on with the run; `--lost continue` would have gone on at once.",
            )),
            _ => Ok(()),
        }
    }
}

pub(crate) struct Team<'a> {
    fleet: Option<&'a mut RunFleet>,
    plan: &'a Plan,
    step: &'a PlanStep,
    planned: &'a PlannedTrial,
    run: PathBuf,
    performance: Option<Box<Performance>>,
}

impl<'a> Team<'a> {
    pub(super) fn new(
        fleet: Option<&'a mut RunFleet>,
        plan: &'a Plan,
        (step, planned): (&'a PlanStep, &'a PlannedTrial),
        run: &Path,
    ) -> Self {
        Team { fleet, plan, step, planned, run: run.to_owned(), performance: None }
    }

    pub(super) fn is_fleet(&self) -> bool {
        self.fleet.is_some()
    }

    pub(super) fn drive<F: Driven>(
        &mut self,
        family: &F,
        workload: &F::Workload,
        database: &Database,
        spec: &TrialSpec,
        control: &Control,
        observer: &mut dyn Observer,
    ) -> Result<TrialResult, DriveError> {
        let Some(fleet) = &mut self.fleet else {
            return family.drive(database, workload, spec, control, observer);
        };
        let reached_as = self.plan.reached_as(&self.step.target);
        let target = self.plan.target(reached_as);
        let task = Task {
            plan: excerpt(self.plan, &self.step.experiment, reached_as),
            experiment: &self.step.experiment,
            target: reached_as,
            planned: self.planned,
            secrets: target.map(|target| secrets(target, &self.run)).unwrap_or_default(),
            spec,
            kinds: workload.transactions().len(),
            tell: &output::talk,
        };
        match fleet.generators.drive(&task, control, observer) {
            Ok(DrivenTogether::Driven(performance)) => {
                let result = performance.result.clone();
                let lost = performance.lost_before.iter().chain(&performance.lost);
                fleet.last_lost = lost.cloned().collect();
                self.performance = Some(performance);
                Ok(result)
            }
            Ok(DrivenTogether::Interrupted) => Err(DriveError::Interrupted),
            Err(error) => {
                let failed = DbError::workload(error.message);
                Err(DriveError::Connect(match error.hint {
                    Some(hint) => failed.with_hint(hint),
                    None => failed,
                }))
            }
        }
    }

    /// What only a fleet has to say. Gives the workload what it would know had this process driven the trial.
    pub(super) fn share<F: Driven>(
        self,
        family: &F,
        workload: &F::Workload,
    ) -> Result<FleetShare, Failure> {
        let Some(performance) = self.performance else { return Ok(FleetShare::default()) };
        let Performance { mut members, left, lost, notes, .. } = *performance;
        for left in left.iter().filter(|left| !left.is_empty()) {
            let kept = serde_json::from_slice(left).map_err(|error| {
                Failure::new(format!(
                    "What a load generator has left of its workload can't be read: {error}."
                ))
            })?;
            family.absorb(workload, kept)?;
        }
        let target = self.plan.target(self.plan.reached_as(&self.step.target));
        if let Some(target) = target.filter(|target| target.route == Route::Spread) {
            let generators = members.len() as u32;
            for (number, member) in (0..).zip(&mut members) {
                let part = target.of_generator(number, generators);
                member.nodes = part.nodes.into_iter().map(|node| node.name).collect();
            }
        }
        let lost = (!lost.is_empty()).then(|| Message::sentences(&lost));
        Ok(FleetShare { members, notes, lost })
    }
}

/// What a fleet adds to a trial; nothing where this process made the load.
#[derive(Default)]
pub(crate) struct FleetShare {
    pub(crate) members: Vec<GeneratorMember>,
    pub(crate) notes: Vec<Message>,
    /// Why not all that was done is known: load generators were lost.
    pub(crate) lost: Option<Message>,
}

/// Whether load generators share the trials of an experiment. A pass over queries is one client's, and who
/// takes over after a fault only this process knows.
pub(super) fn is_shared(plan: &Plan, name: &str, experiment: &dyn Trials) -> Result<bool, Failure> {
    let has_fault = plan.experiment(name).is_some_and(|planned| planned.fault.is_some());
    Ok(experiment.takes_fleet()? && !has_fault)
}

/// What of a plan a load generator needs: one experiment and its target. Commands stay here.
fn excerpt(plan: &Plan, experiment: &str, target: &str) -> serde_json::Value {
    let mut plan = plan.clone();
    plan.facts.steps.clear();
    plan.facts.notes.clear();
    plan.experiments.retain(|one| one.name == experiment);
    plan.targets.retain(|one: &TargetFacts| one.name == target);
    for experiment in &mut plan.experiments {
        experiment.restore = dyno_facts::Restore::None;
        experiment.published.clear();
    }
    // A plan is stored in this form in each run.
    serde_json::to_value(plan).unwrap_or_default()
}
