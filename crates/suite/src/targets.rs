//! The targets of a plan: their nodes, and how the load reaches them.
//!
//! `read_only = [1, 2, 4]` is one cluster, driven on the first one, two and four of its read-only nodes. A number of
//! nodes is a target like any other: `NAME-ro2` is the same cluster with its first two read-only nodes, reached by
//! itself (`TargetFacts::reached_as`), while its data belong to NAME (`TargetFacts::owner`), which loads and removes
//! them once. So trials are interleaved, and figures and verdicts need no further dimension.

use crate::plan::Overrides;
use crate::reader::{Problem, Reader, Source, SuiteError};
use crate::suite::{Suite, SuiteExperiment, SuiteTarget, WithSpan};
use dyno_core::{ShardMap, ShardRule, counted};
use dyno_facts::{ExperimentFacts, Message, Role, Route, SecretUrl, TargetFacts, TargetNode, say};

/// This cluster, of which only the first `read_only` read-only nodes are driven and observed.
fn cluster_part(whole: &TargetFacts, read_only: u32) -> TargetFacts {
    TargetFacts {
        name: format!("{}-ro{read_only}", whole.name),
        title: String::new(),
        title_zh: String::new(),
        part_of: Some(whole.name.clone()),
        nodes: first_readers(&whole.nodes, read_only as usize),
        ..whole.clone()
    }
}

pub(crate) fn twin_target(target: &TargetFacts) -> TargetFacts {
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
/// The target represents some nodes of a cluster, which can't be chosen behind one URL.
pub(crate) fn redirect(target: &mut TargetFacts, url: &SecretUrl) -> Result<(), Problem> {
    if target.part_of.is_some() {
        return Err(unlike_its_name(target, count_readers(&target.nodes), "one address"));
    }
    set_address(target, target.role, url.clone());
    Ok(())
}

/// Other nodes for the same target.
///
/// # Errors
/// The nodes don't have its route, or there are fewer read-only ones than its name says.
pub(crate) fn redirect_to_nodes(
    target: &mut TargetFacts,
    nodes: &[TargetNode],
) -> Result<(), Problem> {
    let route = (!target.nodes.is_empty()).then_some(target.route);
    let (wanted, given) = (count_readers(&target.nodes), count_readers(nodes));
    let nodes = match target.part_of {
        Some(_) if given < wanted => {
            return Err(unlike_its_name(target, wanted, &format!("a cluster with {given}")));
        }
        Some(_) => first_readers(nodes, wanted),
        None => nodes.to_vec(),
    };
    check_shards(target, &nodes)?;
    set_nodes(target, route, nodes)
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

/// One address, given alongside the suite or written there.
fn set_address(target: &mut TargetFacts, role: Role, url: SecretUrl) {
    (target.role, target.url) = (role, url);
    (target.nodes, target.route, target.shard_rule) = (Vec::new(), Route::default(), None);
}

/// Several nodes, or those of a cluster.
///
/// # Errors
/// The nodes have no such route, no one could load data there, or the rule is for other shards.
fn set_nodes(
    target: &mut TargetFacts,
    route: Option<Route>,
    nodes: Vec<TargetNode>,
) -> Result<(), Problem> {
    let roles: Vec<Role> = nodes.iter().map(|node| node.role).collect();
    let route = route.unwrap_or_else(|| Route::default_for(&roles));
    check_together(&target.name, &nodes)?;
    check_route(&target.name, route, &roles)?;
    // Shards that `dyno cluster` has made.
    let mut shards = nodes.iter().filter(|node| node.role == Role::Shard).peekable();
    let is_made = shards.peek().is_some() && shards.all(|shard| shard.cluster.is_some());
    let cluster_rule = is_made.then_some(ShardRule::OF_CLUSTERS);
    let shard_rule = target.shard_rule.clone().or(cluster_rule);
    check_rule(&target.name, shard_rule.as_ref(), &roles)?;
    // The node that the load reaches first.
    let role = match route {
        Route::Primary | Route::Split => Role::Primary,
        Route::Endpoint => Role::Endpoint,
        Route::Spread => Role::ReadOnly,
    };
    let driven = nodes.iter().find(|node| node.role == role);
    let driven = driven
        .ok_or_else(|| Problem::new(format!("The target `{}` has no nodes.", target.name)))?;
    let url = driven.url.clone();
    (target.role, target.url) = (role, url);
    (target.nodes, target.route, target.shard_rule) = (nodes, route, shard_rule);
    Ok(())
}

fn count_readers(nodes: &[TargetNode]) -> usize {
    nodes.iter().filter(|node| node.role == Role::ReadOnly).count()
}

/// Nodes of a cluster of which no more than the first `count` read-only ones are driven and looked at.
fn first_readers(nodes: &[TargetNode], count: usize) -> Vec<TargetNode> {
    let mut remaining = count;
    let nodes = nodes.iter().filter(|node| match node.role {
        Role::ReadOnly => {
            let is_kept = remaining > 0;
            remaining = remaining.saturating_sub(1);
            is_kept
        }
        // It would not know that the other nodes are left out.
        Role::Endpoint => false,
        Role::Primary | Role::Shard => true,
    });
    nodes.cloned().collect()
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
    let mut planned_targets = Vec::new();
    let mut left_out = Vec::new();
    for target in &suite.targets {
        let name = &target.name.value;
        match plan_target(suite, target, overrides)? {
            Some(target) => planned_targets.push(target),
            None => left_out.push(name.clone()),
        }
    }
    if planned_targets.is_empty() {
        let message = format!("No target of the suite `{}` has a URL.", suite.facts.name);
        let first = left_out.first().map_or("NAME", String::as_str);
        let hint = format!("Give one: `--target {first}=mysql://USER@HOST:3306/DATABASE`.");
        return Err(Problem::new(message).hint(hint).into());
    }
    Ok((planned_targets, left_out))
}

/// A target as it is reached; `None` if a node has no URL.
fn plan_target(
    suite: &Suite,
    target: &SuiteTarget,
    overrides: &Overrides,
) -> Result<Option<TargetFacts>, SuiteError> {
    let mut facts = target.facts.clone();
    let name = &target.name.value;
    let route = target.route.as_ref().map(|route| route.value);
    let roles: Vec<Role> = target.nodes.iter().map(|node| node.role).collect();
    let span = target.route.as_ref().map_or(&target.nodes_span, |route| &route.span);
    let placed = |problem: Problem| SuiteError::from(problem.at(&suite.text, span));
    if let Some((_, nodes)) = overrides.nodes.iter().find(|(other, _)| other == name) {
        check_shards(&facts, nodes)?;
        set_nodes(&mut facts, route, nodes.clone()).map_err(placed)?;
        return Ok(Some(facts));
    }
    if let Some((_, url)) = overrides.targets.iter().find(|(other, _)| other == name) {
        let role = if roles.contains(&Role::Endpoint) {
            Role::Endpoint
        } else {
            roles.first().copied().unwrap_or(Role::Primary)
        };
        set_address(&mut facts, role, url.clone());
        return Ok(Some(facts));
    }
    let Some(nodes) = written_nodes(target) else { return Ok(None) };
    match (target.nodes.as_slice(), nodes.is_empty()) {
        (_, true) => return Ok(None),
        ([node], _) => {
            let Some(url) = &node.url else { return Ok(None) };
            route.map_or(Ok(()), |route| check_route(name, route, &roles)).map_err(placed)?;
            check_rule(name, facts.shard_rule.as_ref(), &roles).map_err(placed)?;
            set_address(&mut facts, node.role, url.value.clone());
        }
        _ => set_nodes(&mut facts, route, nodes).map_err(placed)?,
    }
    Ok(Some(facts))
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
    for (index, target) in measured.iter().enumerate().filter(|_| planned.prepare) {
        let (name, place) = (&target.name, &planned.name);
        let address = target.loading_url().map(SecretUrl::redacted);
        let twin = measured[..index].iter().find(|other| {
            other.loading_url().map(SecretUrl::redacted) == address
                && other.owner() != target.owner()
        });
        let problem = match twin {
            _ if address.is_none() => {
                let message = format!(
                    "The experiment `{place}` would load its data on read-only nodes: the target `{name}` lists no other."
                );
                Problem::new(message).hint(
                    "List the primary or the endpoint too, which `route = \"spread\"` leaves without load, or set \
                     `prepare = false`.",
                )
            }
            Some(other) => {
                let message = format!(
                    "The targets `{}` and `{name}` are the same database, and the experiment `{place}` would load its data \
                     there twice.",
                    other.name
                );
                Problem::new(message)
                    .hint("Give each target its own database, or set `prepare = false`.")
            }
            None => continue,
        };
        return Err(problem.at(&suite.text, &experiment.name.span).into());
    }
    Ok(())
}

/// Checks that the rule, if there is one, is for the shards among nodes of these roles.
fn check_rule(target: &str, rule: Option<&ShardRule>, roles: &[Role]) -> Result<(), Problem> {
    let shards = count_role(roles, Role::Shard);
    let checked = rule.map_or(Ok(()), |rule| ShardMap::new(rule.clone(), shards).map(drop));
    checked.map_err(|message| {
        let hint = "List every shard in `nodes`, in the order of the rule: `{ role = \"shard\", url = ... }`.";
        Problem::new(format!("The target `{target}`: {message}")).hint(hint)
    })
}

/// Checks that there are as many shards among the nodes as the target represents.
fn check_shards(target: &TargetFacts, nodes: &[TargetNode]) -> Result<(), Problem> {
    let count = nodes.iter().filter(|node| node.role == Role::Shard).count();
    let Some(wanted) = target.shards.filter(|wanted| *wanted as usize != count) else {
        return Ok(());
    };
    let message = format!(
        "The target `{}` represents {}, and what was given has {count}.",
        target.name,
        counted(wanted, "shard")
    );
    let hint = format!(
        "Give it a cluster with that many: `dyno cluster up sharded --shards {wanted}`, or name a target of the suite for \
         {count}."
    );
    Err(Problem::new(message).hint(hint))
}

/// The nodes that a suite has written; `None` if one has no URL.
fn written_nodes(target: &SuiteTarget) -> Option<Vec<TargetNode>> {
    let roles: Vec<Role> = target.nodes.iter().map(|node| node.role).collect();
    let nodes = target.nodes.iter().enumerate().map(|(index, node)| {
        let url = &node.url.as_ref()?.value;
        let name = node.name.as_ref().map(|name| name.value.clone());
        Some(TargetNode::new(
            name.unwrap_or_else(|| usual_name(&roles, index)),
            node.role,
            url.clone(),
        ))
    });
    nodes.collect()
}

/// The name of a node that has none: its role, with a number if several nodes have it.
pub(crate) fn usual_name(roles: &[Role], index: usize) -> String {
    let role = roles[index];
    match count_role(roles, role) {
        1 => role.name().to_owned(),
        _ => {
            let before = count_role(&roles[..index], role);
            format!("{}-{}", role.name(), before + 1)
        }
    }
}

fn count_role(roles: &[Role], role: Role) -> usize {
    roles.iter().filter(|other| **other == role).count()
}

/// The scheme of its URL, one word for the two names of a protocol.
fn protocol(node: &TargetNode) -> &str {
    match node.url.expose().split(':').next().unwrap_or("") {
        "mariadb" => "mysql",
        "postgresql" => "postgres",
        other => other,
    }
}

pub(crate) fn read_route(table: &mut Reader<'_, '_>) -> Option<WithSpan<Route>> {
    let route = table.text("route")?;
    if let Some(value) = Route::parse(&route.value) {
        return Some(WithSpan { value, span: route.span });
    }
    table.sheet.report_unknown(&route, ("route", "Routes"), &Route::ALL.map(Route::name));
    None
}

pub(crate) fn read_shard_rule(table: &mut Reader<'_, '_>) -> Option<ShardRule> {
    let text = table.text("shard_rule")?;
    let rule = text.value.parse();
    rule.map_err(|message: String| {
        let hint = "Rules: `modulo` (the warehouse modulo the number of shards), and `ranges 5, 10, 15` (the last \
                    warehouse of each shard but the last one).";
        table.report(&text.span, message, hint);
    })
    .ok()
}

/// Checks that nodes of one target have different names and speak one protocol.
fn check_together(target: &str, nodes: &[TargetNode]) -> Result<(), Problem> {
    let Some(first) = nodes.first() else { return Ok(()) };
    let mut numbered = nodes.iter().enumerate();
    let second = numbered
        .find(|(index, node)| nodes[..*index].iter().any(|earlier| earlier.name == node.name));
    if let Some((_, node)) = second {
        let message = format!("Two nodes of the target `{target}` are called `{}`.", node.name);
        return Err(Problem::new(message).hint("Give each its own name."));
    }
    if let Some(other) = nodes.iter().find(|node| protocol(node) != protocol(first)) {
        let message = format!(
            "The nodes `{}` and `{}` of the target `{target}` speak different protocols.",
            first.name, other.name
        );
        let hint = "Nodes of a target hold the same data. Make two targets of two systems.";
        return Err(Problem::new(message).hint(hint));
    }
    if nodes.len() > 1 && protocol(first) == "sqlite" {
        let message = format!("An embedded database has one node, and `{target}` lists several.");
        return Err(Problem::new(message).hint("Keep one of them."));
    }
    Ok(())
}

/// Checks that nodes of these roles have such a route.
fn check_route(target: &str, route: Route, roles: &[Role]) -> Result<(), Problem> {
    for role in [Role::Primary, Role::Endpoint] {
        let count = count_role(roles, role);
        if count > 1 {
            let message =
                format!("The target `{target}` has {count} nodes of role {}.", role.name());
            let hint = match role {
                Role::Endpoint => {
                    "List the hosts of equal endpoints in one URL: `mysql://user@host1,host2/db`."
                }
                _ => "One node takes the writes; what spreads over several is an endpoint.",
            };
            return Err(Problem::new(message).hint(hint));
        }
    }
    let needed: &[Role] = match route {
        Route::Primary => &[Role::Primary],
        Route::Endpoint => &[Role::Endpoint],
        Route::Split => &[Role::Primary, Role::ReadOnly],
        Route::Spread => &[Role::ReadOnly],
    };
    let Some(missing) = needed.iter().find(|role| !roles.contains(role)) else { return Ok(()) };
    if count_role(roles, Role::Shard) == roles.len() {
        let message = format!("The target `{target}` has only shards, and no load reaches those.");
        let hint = "Add the node in front of them: `{ role = \"endpoint\", url = ... }`.";
        return Err(Problem::new(message).hint(hint));
    }
    let message = format!(
        "The route `{}` of the target `{target}` needs a node of role {}, and there is none.",
        route.name(),
        missing.name()
    );
    let hint = format!(
        "List one in `nodes`, or write `route = \"{}\"`, for which all are there.",
        Route::default_for(roles).name()
    );
    Err(Problem::new(message).hint(hint))
}

/// Replaces the experiment's targets by parts of them, one for each number of read-only nodes that the
/// target has. A target that is a single address stays unchanged: the nodes behind it are not known.
///
/// # Errors
/// The load does not go to the read-only nodes, so their number would change nothing.
pub(crate) fn plan_parts(
    source: &Source,
    experiment: &SuiteExperiment,
    planned: &mut ExperimentFacts,
    targets: &mut Vec<TargetFacts>,
    notes: &mut Vec<Message>,
) -> Result<(), SuiteError> {
    let Some(first) = experiment.read_only.first() else { return Ok(()) };
    for name in std::mem::take(&mut planned.targets) {
        let Some(whole) = targets.iter().find(|target| target.name == name).cloned() else {
            continue;
        };
        if whole.nodes.is_empty() {
            notes.push(say!(one_address, target = &name, name = &planned.name));
            planned.targets.push(name);
            continue;
        }
        if !matches!(whole.route, Route::Split | Route::Spread) {
            let message = format!(
                "`read_only` of the experiment `{}` chooses among the read-only nodes of `{name}`, but the load goes to \
                 its {}.",
                experiment.name.value,
                whole.route.name()
            );
            let hint = "Write `route = \"spread\"` or `route = \"split\"` in the target's table, or leave `read_only` out.";
            return Err(Problem::new(message).hint(hint).at(source, &first.span).into());
        }
        for nodes in part_sizes(experiment, &whole, notes) {
            let part = cluster_part(&whole, nodes);
            planned.targets.push(part.name.clone());
            if !targets.iter().any(|target| target.name == part.name) {
                let last = targets.iter().rposition(|target| target.owner() == name);
                targets.insert(last.map_or(targets.len(), |last| last + 1), part);
            }
        }
    }
    Ok(())
}

/// The numbers that the target has nodes for; all of its nodes if it has fewer than the least.
fn part_sizes(
    experiment: &SuiteExperiment,
    whole: &TargetFacts,
    notes: &mut Vec<Message>,
) -> Vec<u32> {
    let reader_count = count_readers(&whole.nodes) as u32;
    let numbers = experiment.read_only.iter().map(|nodes| nodes.value as u32);
    let (mut sizes, left_out): (Vec<u32>, Vec<u32>) =
        numbers.partition(|nodes| *nodes <= reader_count);
    if sizes.is_empty() {
        sizes.push(reader_count);
    }
    if !left_out.is_empty() {
        notes.push(say!(
            too_few_read_only_nodes,
            target = &whole.name,
            n = reader_count,
            name = &experiment.name.value,
            numbers = left_out.iter().map(u32::to_string).collect::<Vec<_>>().join(", "),
        ));
    }
    sizes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Overrides, Plan};
    use crate::steps::expand;
    use crate::suite::Suite;
    use dyno_core::offer::{UsualPace, WorkloadOffer};

    use dyno_facts::{SecretUrl, StepAction, TargetNode};

    const OFFERS: &[WorkloadOffer] = &[dyno_sysbench::OFFER];
    const SUITE: &str = "
        [suite]
        name = 'growing'
        [target.cluster]
        url = 'mysql://u@h/d'
        [[experiment]]
        name = 'read'
        workload = 'sysbench'
        test = 'oltp_read_only'
        workers = 4
        duration_s = 1
        read_only = [1, 2, 4]
    ";

    fn test_node(name: &str, role: Role) -> TargetNode {
        TargetNode::new(name, role, SecretUrl::new(format!("mysql://u@{name}/d")))
    }

    struct PlannedParts {
        targets: Vec<TargetFacts>,
        experiment: ExperimentFacts,
        notes: Vec<Message>,
    }

    fn plan_read_only_parts(route: Route, read_only: usize) -> Result<PlannedParts, SuiteError> {
        let suite = Suite::parse("growing.toml", SUITE, OFFERS).expect("a suite");
        let plan = Plan::build(&suite, &Overrides::default()).expect("a plan");
        let (mut targets, mut experiment) = (plan.targets, plan.experiments[0].clone());
        let mut notes = Vec::new();
        targets[0].route = route;
        targets[0].nodes =
            vec![test_node("endpoint", Role::Endpoint), test_node("n1", Role::Primary)];
        let names: Vec<String> = (2..2 + read_only).map(|number| format!("n{number}")).collect();
        targets[0].nodes.extend(names.iter().map(|name| test_node(name, Role::ReadOnly)));
        let written = &suite.experiments[0];
        plan_parts(&suite.text, written, &mut experiment, &mut targets, &mut notes)?;
        Ok(PlannedParts { targets, experiment, notes })
    }

    #[test]
    fn parts_have_the_first_nodes_and_share_the_data() {
        let parts = plan_read_only_parts(Route::Spread, 4).expect("planned");
        assert_eq!(parts.experiment.targets, ["cluster-ro1", "cluster-ro2", "cluster-ro4"]);
        assert_eq!(parts.notes, Vec::<Message>::new());
        let names: Vec<&str> = parts.targets.iter().map(|target| target.name.as_str()).collect();
        assert_eq!(names, ["cluster", "cluster-ro1", "cluster-ro2", "cluster-ro4"]);
        let two = &parts.targets[2];
        let nodes: Vec<&str> = two.nodes.iter().map(|node| node.name.as_str()).collect();
        assert_eq!(nodes, ["n1", "n2", "n3"], "the endpoint would reach the others");
        assert_eq!((two.owner(), two.reached_as()), ("cluster", "cluster-ro2"));
        assert_eq!(two.password_variable(), "DYNO_PASSWORD_CLUSTER");

        let steps = expand(
            &parts.experiment,
            |_| UsualPace::loading(1e5),
            1,
            |name| {
                let target = parts.targets.iter().find(|target| target.name == name);
                target.expect("a target").owner().to_owned()
            },
        );
        for action in [StepAction::Prepare, StepAction::Cleanup] {
            let matching = steps.iter().filter(|step| step.action == action);
            let names: Vec<&str> = matching.map(|step| step.target.as_str()).collect();
            assert_eq!(names, ["cluster"]);
        }
        let trials = steps.iter().filter_map(|step| match &step.action {
            StepAction::Trial(trial) => Some((step.target.as_str(), trial.seed)),
            _ => None,
        });
        let trials: Vec<(&str, u64)> = trials.collect();
        assert_eq!(trials.len(), 3);
        assert!(trials.iter().all(|(_, seed)| *seed == trials[0].1), "all get the same work");
    }

    fn read_only_nodes(count: usize) -> Vec<TargetNode> {
        (0..count).map(|number| test_node(&format!("m{number}"), Role::ReadOnly)).collect()
    }

    #[test]
    fn a_part_has_as_many_nodes_as_its_name_says_wherever_it_goes() {
        let parts = plan_read_only_parts(Route::Spread, 4).expect("planned");
        let mut two = parts.targets[2].clone();
        let url = SecretUrl::new("mysql://u@h/d");
        let error = redirect(&mut two, &url).expect_err("refused").to_string();
        assert!(error.contains("drives 2 read-only nodes of `cluster`"), "{error}");
        let error =
            redirect_to_nodes(&mut two, &read_only_nodes(1)).expect_err("refused").to_string();
        assert!(error.contains("a cluster with 1"), "{error}");
        redirect_to_nodes(&mut two, &read_only_nodes(3)).expect("there are enough");
        assert_eq!(two.nodes, read_only_nodes(2));
    }

    #[test]
    fn what_a_cluster_has_not_is_left_out_and_told() {
        let parts = plan_read_only_parts(Route::Split, 2).expect("planned");
        assert_eq!(parts.experiment.targets, ["cluster-ro1", "cluster-ro2"]);
        assert_eq!(
            parts.notes,
            ["The target `cluster` has 2 read-only nodes: the experiment `read` leaves out 4."]
        );
    }

    #[test]
    fn the_load_must_reach_the_read_only_nodes() {
        for route in [Route::Primary, Route::Endpoint] {
            let error =
                plan_read_only_parts(route, 4).map(|_| ()).expect_err("refused").to_string();
            let goes = format!("but the load goes to its {}.", route.name());
            assert!(error.contains(&goes), "{error}");
            assert!(error.contains("growing.toml:12:22"), "{error}");
            assert!(error.contains("route = \"spread\""), "{error}");
        }
    }

    #[test]
    fn a_single_address_is_measured_as_it_stands() {
        let suite = Suite::parse("growing.toml", SUITE, OFFERS).expect("a suite");
        let plan = Plan::build(&suite, &Overrides::default()).expect("a plan");
        assert_eq!(plan.experiments[0].targets, ["cluster"]);
        assert!(plan.notes[0].to_string().contains("is one address"), "{:?}", plan.notes);
    }

    #[test]
    fn a_comparison_names_its_targets() {
        let suite = format!("{SUITE}compare = {{ baseline = 'cluster', aa = true }}");
        let error = Suite::parse("growing.toml", &suite, OFFERS).expect_err("refused").to_string();
        assert!(error.contains("has both `compare` and `read_only`"), "{error}");
    }
}
