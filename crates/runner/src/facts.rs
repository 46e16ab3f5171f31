//! What `run.json` says of targets that were reached.

use crate::databases::ReachedDatabase;
use dyno_facts::TargetFacts;
use dyno_suite::Plan;
use std::collections::BTreeMap;

pub(super) fn targets(
    plan: &Plan,
    reached: &BTreeMap<String, ReachedDatabase>,
) -> Vec<TargetFacts> {
    let mut targets = plan.targets.clone();
    for target in &mut targets {
        let Some(found) = reached.get(target.reached_as()) else { continue };
        target.product.clone_from(&found.facts.product);
        target.version.clone_from(&found.facts.version);
        target.log_in.clone_from(&found.facts.log_in);
        target.same_host = found.same_host;
        for node in &mut target.nodes {
            let Some(found) = found.nodes.iter().find(|at| at.name == node.name) else { continue };
            node.product.clone_from(&found.facts.product);
            node.version.clone_from(&found.facts.version);
            node.log_in.clone_from(&found.facts.log_in);
            node.same_host = found.same_host;
        }
    }
    targets
}
