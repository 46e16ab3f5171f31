//! The targets of a plan.

use dyno_facts::{ExperimentFacts, Role, SecretUrl, TargetFacts, TargetNode};

use crate::nodes::{self, TargetRoute, check_route, check_rule, check_shards};
use crate::plan::Overrides;
use crate::problem::{Problem, SuiteError};
use crate::suite::{Suite, SuiteExperiment, SuiteTarget};

/// The same cluster, of which only the first `read_only` read-only nodes are driven and looked at.
pub(crate) fn part(whole: &TargetFacts, read_only: u32) -> TargetFacts {
    TargetFacts {
        name: format!("{}-ro{read_only}", whole.name),
        title: String::new(),
        title_zh: String::new(),
        part_of: Some(whole.name.clone()),
        nodes: first_readers(&whole.nodes, read_only as usize),
        ..whole.clone()
    }
}

pub(crate) fn twin(target: &TargetFacts) -> TargetFacts {
    TargetFacts {
        name: twin_name(&target.name),
        title: String::new(),
        title_zh: String::new(),
        twin_of: Some(target.name.clone()),
        ..target.clone()
    }
}

/// One URL for the same target.
///
/// # Errors
/// It stands for some nodes of a cluster, which can't be chosen behind one URL.
pub(crate) fn redirect(target: &mut TargetFacts, url: &SecretUrl) -> Result<(), Problem> {
    if target.part_of.is_some() {
        return Err(unlike_its_name(target, readers(&target.nodes), "one address"));
    }
    take(target, TargetRoute::single(target.role, url.clone()));
    Ok(())
}

/// Other nodes for the same target.
///
/// # Errors
/// They don't have its route, or fewer read-only nodes than its name says.
pub(crate) fn redirect_to_nodes(
    target: &mut TargetFacts,
    nodes: &[TargetNode],
) -> Result<(), Problem> {
    let route = (!target.nodes.is_empty()).then_some(target.route);
    let (wanted, given) = (readers(&target.nodes), readers(nodes));
    let nodes = match target.part_of {
        Some(_) if given < wanted => {
            return Err(unlike_its_name(target, wanted, &format!("a cluster with {given}")));
        }
        Some(_) => first_readers(nodes, wanted),
        None => nodes.to_vec(),
    };
    check_shards(target, &nodes)?;
    let way = TargetRoute::through(&target.name, route, target.shard_rule.clone(), nodes)?;
    take(target, way);
    Ok(())
}

fn unlike_its_name(target: &TargetFacts, wanted: usize, given: &str) -> Problem {
    let message = format!(
        "The plan drives {wanted} read-only nodes of `{}` as `{}`, but what was given is {given}.",
        target.owner(),
        target.name
    );
    let hint =
        "Give each node, `--target NAME:ROLE=URL`, or a cluster, `--target NAME=cluster:FOLDER`.";
    Problem::new(message).hint(hint)
}

fn take(target: &mut TargetFacts, way: TargetRoute) {
    (target.role, target.url) = (way.role, way.url);
    (target.nodes, target.route, target.shard_rule) = (way.nodes, way.route, way.shard_rule);
}

fn readers(nodes: &[TargetNode]) -> usize {
    nodes.iter().filter(|node| node.role == Role::ReadOnly).count()
}

/// Nodes of a cluster of which no more than the first `count` read-only ones are driven and looked at.
fn first_readers(nodes: &[TargetNode], count: usize) -> Vec<TargetNode> {
    let mut left = count;
    let is_kept = |node: &&TargetNode| match node.role {
        Role::ReadOnly => {
            let is_kept = left > 0;
            left = left.saturating_sub(1);
            is_kept
        }
        // It would not know that the other nodes are left out.
        Role::Endpoint => false,
        Role::Primary | Role::Shard => true,
    };
    nodes.iter().filter(is_kept).cloned().collect()
}

/// The second name of a target that is compared with itself.
pub(crate) fn twin_name(name: &str) -> String {
    format!("{name}-again")
}

/// The targets that have a URL, and the names of those that have none.
pub(crate) fn plan_targets(
    suite: &Suite,
    overrides: &Overrides,
) -> Result<(Vec<TargetFacts>, Vec<String>), SuiteError> {
    let mut planned = Vec::new();
    let mut left_out = Vec::new();
    for target in &suite.targets {
        let name = &target.name.value;
        match way_to(suite, target, overrides)? {
            Some(way) => planned.push(plan_target(target, way)),
            None => left_out.push(name.clone()),
        }
    }
    if planned.is_empty() {
        let message = format!("No target of the suite `{}` has a URL.", suite.facts.name);
        let first = left_out.first().map_or("NAME", String::as_str);
        let hint = format!("Give one: `--target {first}=mysql://USER@HOST:3306/DATABASE`.");
        return Err(Problem::new(message).hint(hint).into());
    }
    Ok((planned, left_out))
}

/// How a target is reached; `None` where a node has no URL.
fn way_to(
    suite: &Suite,
    target: &SuiteTarget,
    overrides: &Overrides,
) -> Result<Option<TargetRoute>, SuiteError> {
    let name = &target.name.value;
    let route = target.route.as_ref().map(|route| route.value);
    let roles: Vec<Role> = target.nodes.iter().map(|node| node.role).collect();
    let span = target.route.as_ref().map_or(&target.nodes_span, |route| &route.span);
    let placed = |problem: Problem| SuiteError::from(problem.at(&suite.text, span));
    let rule = target.facts.shard_rule.clone();
    if let Some((_, nodes)) = overrides.nodes.iter().find(|(other, _)| other == name) {
        check_shards(&target.facts, nodes)?;
        return TargetRoute::through(name, route, rule, nodes.clone()).map(Some).map_err(placed);
    }
    if let Some((_, url)) = overrides.targets.iter().find(|(other, _)| other == name) {
        let role = match roles.contains(&Role::Endpoint) {
            true => Role::Endpoint,
            false => roles.first().copied().unwrap_or(Role::Primary),
        };
        return Ok(Some(TargetRoute::single(role, url.clone())));
    }
    let Some(nodes) = nodes::written(target) else { return Ok(None) };
    match (target.nodes.as_slice(), nodes.is_empty()) {
        (_, true) => Ok(None),
        ([node], _) => {
            let url = node.url.as_ref();
            route.map_or(Ok(()), |route| check_route(name, route, &roles)).map_err(placed)?;
            check_rule(name, rule.as_ref(), &roles).map_err(placed)?;
            Ok(url.map(|url| TargetRoute::single(node.role, url.value.clone())))
        }
        _ => TargetRoute::through(name, route, rule, nodes).map(Some).map_err(placed),
    }
}

fn plan_target(target: &SuiteTarget, way: TargetRoute) -> TargetFacts {
    let mut planned = target.facts.clone();
    take(&mut planned, way);
    planned
}

/// Two targets on one database would load the same tables twice; read-only nodes take none.
pub(crate) fn check_data(
    suite: &Suite,
    experiment: &SuiteExperiment,
    planned: &ExperimentFacts,
    targets: &[TargetFacts],
) -> Result<(), SuiteError> {
    let measured: Vec<&TargetFacts> =
        targets.iter().filter(|target| planned.targets.contains(&target.name)).collect();
    let address = |target: &TargetFacts| target.loading_url().map(SecretUrl::redacted);
    for (index, target) in measured.iter().enumerate() {
        if planned.prepare && target.loading_url().is_none() {
            let message = format!(
                "The experiment `{}` would load its data on read-only nodes: the target `{}` lists no other.",
                planned.name, target.name
            );
            let hint = "List the primary or the endpoint too, which `route = \"spread\"` leaves without \
                        load, or set `prepare = false`.";
            let problem = Problem::new(message).hint(hint);
            return Err(problem.at(&suite.text, &experiment.name.span).into());
        }
        let same = |other: &&&TargetFacts| {
            address(other) == address(target) && other.owner() != target.owner()
        };
        if let Some(other) = measured[..index].iter().find(same).filter(|_| planned.prepare) {
            let message = format!(
                "The targets `{}` and `{}` are the same database, and the experiment `{}` would \
                 load its data there twice.",
                other.name, target.name, planned.name
            );
            let hint = "Give each target a database of its own, or set `prepare = false`.";
            let problem = Problem::new(message).hint(hint);
            return Err(problem.at(&suite.text, &experiment.name.span).into());
        }
    }
    Ok(())
}
