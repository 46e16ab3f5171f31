//! What `run.json` says of targets and experiments.

use crate::databases::Reached;
use dyno_facts::{
    ComparisonFacts, ExperimentFacts, FaultPlan, Price, ScriptFacts, TargetFacts, TargetNode,
};
use dyno_suite::{Fault, Plan, PlannedComparison, PlannedExperiment, PlannedNode, PlannedTarget};
use std::collections::BTreeMap;
use std::path::Path;

/// The targets as they were found.
pub(super) fn targets(
    plan: &Plan,
    reached: &BTreeMap<String, Reached>,
    run: &Path,
) -> Vec<TargetFacts> {
    let facts = |target: &PlannedTarget| {
        let found = reached.get(target.reached_as());
        TargetFacts {
            name: target.name.clone(),
            urls: vec![target.url_in(run).redacted()],
            nodes: nodes(target, found),
            route: match target.nodes.is_empty() {
                true => String::new(),
                false => target.route.name().to_owned(),
            },
            part_of: target.part_of.clone(),
            product: found.map(|found| found.facts.product.clone()).unwrap_or_default(),
            version: found.map(|found| found.facts.version.clone()).unwrap_or_default(),
            class: target.class.clone().unwrap_or_default(),
            same_host: found.is_some_and(|found| found.same_host),
            vcpu: target.vcpu,
            memory_gib: target.memory_gib,
            durability: target.durability.clone(),
            stated: target.stated.clone(),
            price: target
                .price
                .as_ref()
                .map(|price| Price { per_hour: price.per_hour, currency: price.currency.clone() }),
        }
    };
    plan.targets.iter().map(facts).collect()
}

/// The nodes of a target with several, or of a cluster.
fn nodes(target: &PlannedTarget, found: Option<&Reached>) -> Vec<TargetNode> {
    let facts = |node: &PlannedNode| {
        let reached = found.and_then(|found| found.nodes.iter().find(|at| at.name == node.name));
        TargetNode {
            name: node.name.clone(),
            role: node.role.name().to_owned(),
            url: node.url.clone(),
            product: reached.map(|found| found.facts.product.clone()).unwrap_or_default(),
            version: reached.map(|found| found.facts.version.clone()).unwrap_or_default(),
            same_host: reached.is_some_and(|found| found.same_host),
        }
    };
    target.nodes.iter().map(facts).collect()
}

/// The experiments as a reader needs them.
pub fn experiments(plan: &Plan) -> Vec<ExperimentFacts> {
    let facts = |experiment: &PlannedExperiment| ExperimentFacts {
        name: experiment.name.clone(),
        title: experiment.title.clone(),
        test: format!("{} {}", experiment.workload, experiment.test),
        options: experiment
            .options
            .iter()
            .map(|option| (option.name.clone(), option.value.clone()))
            .collect(),
        scripts: experiment
            .scripts
            .iter()
            .map(|script| ScriptFacts {
                name: script.name.clone(),
                weight: script.weight,
                text: script.text.clone(),
            })
            .collect(),
        warmup_s: experiment.warmup_s,
        window_s: experiment.duration_s,
        comparison: experiment.comparison.as_ref().map(|compared| comparison(experiment, compared)),
        gates: experiment.gates.clone(),
        fault: experiment.fault.as_ref().map(fault),
        objective: experiment.search.as_ref().map(|search| search.objective.clone()),
    };
    plan.experiments.iter().map(facts).collect()
}

fn comparison(experiment: &PlannedExperiment, compared: &PlannedComparison) -> ComparisonFacts {
    ComparisonFacts {
        baseline: compared.baseline.clone(),
        candidates: compared.candidates.clone(),
        is_aa: compared.is_aa,
        pairs_least: compared.stop.pairs_least,
        pairs_most: compared.stop.pairs_most,
        half_width: compared.stop.half_width,
        budget_s: compared.stop.budget_s,
        data_state: experiment.data_state(),
    }
}

fn fault(plan: &Fault) -> FaultPlan {
    FaultPlan {
        action: plan.action.name().to_owned(),
        node: plan.node.clone(),
        at_s: plan.at_s,
        heal_after_s: plan.heal_after_s,
        promote: plan.promote.is_some(),
    }
}
