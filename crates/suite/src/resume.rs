//! Going on with an interrupted run: is it the same plan, and what is left of it?

use std::collections::{BTreeMap, BTreeSet};

use dyno_facts::{ExperimentFacts, FaultPlan, PlanStep, StepAction, TargetFacts, mask_secrets};
use serde_json::json;

use crate::plan::{Overrides, Plan};
use crate::problem::{Problem, SuiteError, hint_of_known};
use crate::targets::{redirect, redirect_to_nodes};

/// FNV-1a over bytes, finished by a mix: the low bits of FNV alone are weak. Stable for ever, as
/// stored plans are compared by it; not meant to withstand anybody.
pub fn fnv1a(bytes: &[u8]) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for byte in bytes {
        hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    }
    hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^ (hash >> 31)
}

/// Of all that decides what is executed: addresses without passwords, loads, the steps without the guesses of
/// their length.
pub(crate) fn hash(plan: &Plan) -> String {
    let target = |target: &TargetFacts| {
        let nodes = target.nodes.iter().map(|node| (&node.name, node.role, &node.url));
        let rule = target.shard_rule.as_ref().map(ToString::to_string);
        json!((&target.name, &target.url, target.route, nodes.collect::<Vec<_>>(), rule))
    };
    let experiment = |one: &ExperimentFacts| {
        let options: BTreeMap<_, _> =
            one.options.iter().map(|(name, value)| (name, mask_secrets(value))).collect();
        let load = (&one.workload, &one.test, options, &one.scripts);
        // What may be lost decides an exit code, and nothing that is executed.
        let judged = |fault: &FaultPlan| FaultPlan { allow_lost: Vec::new(), ..fault.clone() };
        let fault = one.fault.as_ref().map(judged);
        let mut essence =
            vec![json!((&one.name, load, &one.comparison, &one.search, &one.restore, fault))];
        // Left out where there are none: plans of before there were stages keep their hash.
        essence.extend(one.stage_s.map(|stage_s| json!(stage_s)));
        essence.extend(one.repeats_s.map(|repeats_s| json!({ "repeats_s": repeats_s })));
        match essence.as_slice() {
            [whole] => whole.clone(),
            cut => json!(cut),
        }
    };
    let step = |step: &PlanStep| json!((&step.id, &step.action));
    let essence = json!({
        "suite": plan.suite.name,
        "seed": plan.seed,
        "targets": plan.targets.iter().map(target).collect::<Vec<_>>(),
        "experiments": plan.experiments.iter().map(experiment).collect::<Vec<_>>(),
        "steps": plan.steps.iter().map(step).collect::<Vec<_>>(),
    });
    format!("{:016x}", fnv1a(essence.to_string().as_bytes()))
}

impl Plan {
    /// The steps that are left when those with ids in `done` are complete, in order.
    ///
    /// A trial is left until it is done. Data are loaded again only where a trial that needs them
    /// is left and they have been removed meanwhile; they are removed where they may still exist.
    pub fn remaining(&self, done: &BTreeSet<String>) -> Vec<&PlanStep> {
        let mut left = vec![false; self.steps.len()];
        for target in self.targets.iter().filter(|target| target.owner() == target.name) {
            // What is measured under a second name needs the same data.
            let is_its =
                |(_, step): &(usize, &PlanStep)| self.owner(&step.target) == target.name.as_str();
            let of_target = self.steps.iter().enumerate().filter(is_its);
            for life in lives(of_target.collect()) {
                mark_left(&life, done, &mut left);
            }
        }
        let steps = self.steps.iter().zip(&left);
        steps.filter(|(_, left)| **left).map(|(step, _)| step).collect()
    }
}

impl Plan {
    /// The name under which the database of a target is known: that of the target whose twin or
    /// part it is, or its own.
    pub fn owner<'a>(&'a self, target: &'a str) -> &'a str {
        self.target(target).map_or(target, |found| found.owner())
    }

    /// The name of the target that is connected to for a target's trials.
    pub fn reached_as<'a>(&'a self, target: &'a str) -> &'a str {
        self.target(target).map_or(target, |found| found.reached_as())
    }

    /// The same plan on other addresses of its targets, or other nodes, under a hash of its own.
    ///
    /// # Errors
    /// The plan has no target of such a name, or the nodes don't have its route.
    pub fn redirected(mut self, given: &Overrides) -> Result<Plan, SuiteError> {
        for (name, url) in &given.targets {
            self.each_of(name, |target| redirect(target, url))?;
        }
        for (name, nodes) in &given.nodes {
            self.each_of(name, |target| redirect_to_nodes(target, nodes))?;
        }
        self.facts.hash = hash(&self);
        Ok(self)
    }

    /// Changes the target of a name, its twins and its parts.
    fn each_of(
        &mut self,
        name: &str,
        change: impl Fn(&mut TargetFacts) -> Result<(), Problem>,
    ) -> Result<(), SuiteError> {
        let known: Vec<String> = self.targets.iter().map(|target| target.name.clone()).collect();
        let is_its = |target: &&mut TargetFacts| target.name == *name || target.owner() == name;
        let mut is_known = false;
        for target in self.targets.iter_mut().filter(is_its) {
            change(target)?;
            is_known = true;
        }
        if is_known {
            return Ok(());
        }
        let known: Vec<&str> = known.iter().map(String::as_str).collect();
        let message = format!("The plan has no target `{name}`.");
        let hint = hint_of_known(name, "Its targets", &known);
        Err(Problem::new(message).hint(hint).into())
    }
}

type Numbered<'a> = (usize, &'a PlanStep);

/// Cuts the steps of one target into the lives of its data: from a prepare, or from the start, to
/// the next cleanup or prepare. Experiments may share data, so a life may span several.
fn lives(steps: Vec<Numbered<'_>>) -> Vec<Vec<Numbered<'_>>> {
    let mut lives: Vec<Vec<Numbered<'_>>> = vec![Vec::new()];
    let mut ended = false;
    for (index, step) in steps {
        if ended || step.action == StepAction::Prepare {
            lives.push(Vec::new());
        }
        ended = step.action == StepAction::Cleanup;
        if let Some(life) = lives.last_mut() {
            life.push((index, step));
        }
    }
    lives
}

fn mark_left(life: &[Numbered<'_>], done: &BTreeSet<String>, left: &mut [bool]) {
    let is_done = |action: &StepAction| {
        life.iter().any(|(_, step)| step.action == *action && done.contains(&step.id))
    };
    let missing = |step: &PlanStep| !done.contains(&step.id);
    let trials_left =
        life.iter().any(|(_, step)| matches!(step.action, StepAction::Trial(_)) && missing(step));
    let load = trials_left && (!is_done(&StepAction::Prepare) || is_done(&StepAction::Cleanup));
    for (index, step) in life {
        left[*index] = match step.action {
            StepAction::Prepare => load,
            StepAction::Trial(_) => missing(step),
            StepAction::Cleanup => load || missing(step),
        };
    }
}
