//! Restarts of servers and reloads of data before pairs: what differs from start to start is part of what is measured.
//!
//! Before the first pair of each interval all targets are renewed alike. A target that is compared with itself has one
//! server: with a restart for each pair, each of its two trials gets its own. What was renewed and used by a complete
//! trial is not renewed again by a run that continues.

use super::Runner;
use crate::command::{self, BACK_WITHIN, ShellCommand};
use crate::databases::on_loop;
use crate::failure::{Failure, Result};
use crate::schedule::{level, repeat_steps};
use crate::signals::hold_process;
use dyno_facts::format::short;
use dyno_facts::{PlanStep, PlannedTrial, Purpose, RenewalFacts, Renewed, TargetFacts, say};
use dyno_topology::Cluster;
use std::collections::BTreeSet;
use std::path::Path;
use std::time::Instant;

/// The folders of clusters of `dyno cluster` that are the servers of a target; `None` if a command restarts them.
fn clusters(target: &TargetFacts) -> Result<Option<BTreeSet<&str>>> {
    let folders = target.nodes.iter().map(|node| node.cluster.as_deref());
    let folders: Option<BTreeSet<&str>> = folders.collect();
    let folders = folders.filter(|folders| !folders.is_empty());
    if folders.is_some() || target.restart.is_some() {
        return Ok(folders);
    }
    let name = &target.name;
    Err(Failure::usage(format!(
        "dyno has not started the servers of the target {name}, so it can't restart them."
    ))
    .with_hint(
        "Give a cluster of `dyno cluster`: `--target NAME=cluster:DIR`, or write `restart = \"COMMAND\"` into the \
         target's table.",
    ))
}

fn start_all(cluster: &mut Cluster) -> Result<()> {
    Ok(node_names(cluster).iter().try_for_each(|name| cluster.start(name))?)
}

fn node_names(cluster: &Cluster) -> Vec<String> {
    cluster.nodes().iter().map(|node| node.name.clone()).collect()
}

impl<'a> Runner<'a> {
    /// Looks whether all servers that are to be restarted can be, and starts nodes that a run has left stopped when it
    /// was killed.
    pub(super) fn see_who_restarts(&self) -> Result<()> {
        for planned in self.plan.experiments.iter().filter(|planned| planned.restart_each > 0) {
            for target in planned.targets.iter().filter_map(|name| self.plan.target(name)) {
                for folder in clusters(target)?.into_iter().flatten() {
                    start_all(&mut Cluster::open(Path::new(folder))?)?;
                }
            }
        }
        Ok(())
    }

    /// Renews what is due before a trial, for all targets of its pair; false when the user has stopped it.
    pub(super) fn renew(&mut self, step: &PlanStep, trial: &PlannedTrial) -> Result<bool> {
        let Some(experiment) = self.plan.experiment(&step.experiment) else { return Ok(true) };
        if trial.purpose != Purpose::Measure {
            return Ok(true);
        }
        let intervals =
            [(Renewed::Data, experiment.reload_each), (Renewed::Server, experiment.restart_each)];
        for (renewed, interval) in intervals.into_iter().filter(|(_, interval)| *interval > 0) {
            for (other, first) in self.due(step, trial, renewed, interval) {
                if self.control.is_stopped() || !self.renew_one(other, first, renewed)? {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// Steps of the pair whose targets are to be renewed, each with the first step that this is made for.
    fn due(
        &self,
        step: &PlanStep,
        trial: &PlannedTrial,
        renewed: Renewed,
        interval: u32,
    ) -> Vec<(&'a PlanStep, &'a PlanStep)> {
        let plan = self.plan;
        let due_steps = repeat_steps(plan, step, trial, trial.repeat).filter_map(|other| {
            let owner = plan.owner(&other.target);
            // It has its turn before its own trial.
            if other.id != step.id && owner == plan.owner(&step.target) {
                return None;
            }
            let steps = plan.steps.iter().filter(|candidate| {
                candidate.experiment == step.experiment
                    && candidate.trial().is_some_and(|other| {
                        other.purpose == Purpose::Measure
                            && match interval {
                                1 => other.repeat == trial.repeat && level(other) == level(trial),
                                _ => (other.repeat - 1) / interval == (trial.repeat - 1) / interval,
                            }
                    })
                    && if interval == 1 {
                        candidate.target == other.target
                    } else {
                        plan.owner(&candidate.target) == owner
                    }
            });
            let first = steps.clone().next()?;
            let is_done = self.renewed.contains(&(renewed, first.id.clone()))
                || steps.clone().any(|step| self.run.data().is_complete(&step.id));
            (!is_done).then_some((other, first))
        });
        due_steps.collect()
    }

    fn renew_one(&mut self, step: &PlanStep, first: &PlanStep, renewed: Renewed) -> Result<bool> {
        let target = self.plan.owner(&step.target).to_owned();
        let began_at = Instant::now();
        let is_needed = renewed == Renewed::Server || !self.fresh.contains(&target);
        let is_done = match renewed {
            Renewed::Data => self.restore(step)?,
            Renewed::Server => self.restart(step)?,
        };
        if !is_done {
            return Ok(false);
        }
        self.renewed.insert((renewed, first.id.clone()));
        if is_needed {
            let took_s = began_at.elapsed().as_secs_f64();
            let took = short(took_s);
            let note = match renewed {
                Renewed::Data => say!(data_renewed, target = &target, s = took),
                Renewed::Server => say!(server_renewed, target = &target, s = took),
            };
            self.record_note(note)?;
            let facts = RenewalFacts { renewed, target, step: first.id.clone(), took_s };
            self.run.update(|header| header.renewals.push(facts))?;
        }
        Ok(true)
    }

    /// Restarts the servers of a target, and waits until all of them answer.
    fn restart(&mut self, step: &PlanStep) -> Result<bool> {
        let owner = self.plan.owner(&step.target);
        let Some(target) = self.plan.target(owner).or_else(|| self.plan.target(&step.target))
        else {
            return Ok(true);
        };
        let names: Vec<String> = self.targets.keys().cloned().collect();
        // The server may be that of other targets too.
        names.iter().for_each(|name| self.locks.release(name));
        let has_ended = match (clusters(target)?, &target.restart) {
            (None, Some(command)) => {
                let command =
                    ShellCommand::new(owner, command.expose(), say!(command_restarts), "restart");
                self.run_on(step, &ShellCommand { limit: Some(BACK_WITHIN), ..command })?
            }
            (folders, _) => {
                // No cluster is left behind with a dead node.
                let _held = hold_process();
                for folder in folders.into_iter().flatten() {
                    let mut cluster = Cluster::open(Path::new(folder))?;
                    // Those that need others first.
                    node_names(&cluster).iter().rev().try_for_each(|name| cluster.stop(name))?;
                    start_all(&mut cluster)?;
                }
                true
            }
        };
        if has_ended {
            names.iter().try_for_each(|name| self.lock(name))?;
        }
        Ok(has_ended && !self.control.is_stopped())
    }

    /// Runs a command, and waits until the servers of the step's target answer; false when it was stopped.
    pub(super) fn run_on(&self, step: &PlanStep, command: &ShellCommand<'_>) -> Result<bool> {
        let (_, reached) = self.family_and_database(step)?;
        let ran = on_loop(command::run(&reached.database.primary_admin(), command, self.control));
        Ok(ran??.is_some())
    }
}
