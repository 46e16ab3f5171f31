//! The nodes of a target, and how the load reaches them.

use dyno_core::{ShardMap, ShardRule, counted};
use dyno_facts::{Role, Route, SecretUrl, TargetFacts, TargetNode};

use crate::problem::{Problem, hint_of_known};
use crate::reader::{Reader, short};
use crate::suite::{SuiteTarget, WithSpan};

pub(crate) struct TargetRoute {
    /// Empty where there is one node that isn't of a cluster.
    pub(crate) nodes: Vec<TargetNode>,
    pub(crate) route: Route,
    pub(crate) shard_rule: Option<ShardRule>,
    /// Of the node that the load reaches, or of the first one.
    pub(crate) role: Role,
    pub(crate) url: SecretUrl,
}

impl TargetRoute {
    /// One node, given beside the suite or written there.
    pub(crate) fn single(role: Role, url: SecretUrl) -> Self {
        TargetRoute { nodes: Vec::new(), route: Route::default(), shard_rule: None, role, url }
    }

    /// Several nodes, or those of a cluster.
    ///
    /// # Errors
    /// They have no such route, nobody could load data there, or the rule is for other shards.
    pub(crate) fn through(
        target: &str,
        route: Option<Route>,
        shard_rule: Option<ShardRule>,
        nodes: Vec<TargetNode>,
    ) -> Result<Self, Problem> {
        let roles: Vec<Role> = nodes.iter().map(|node| node.role).collect();
        let route = route.unwrap_or_else(|| Route::of(&roles));
        check_together(target, &nodes)?;
        check_route(target, route, &roles)?;
        let shard_rule = shard_rule.or_else(|| rule_of_clusters(&nodes));
        check_rule(target, shard_rule.as_ref(), &roles)?;
        let role = driven_role(route);
        match nodes.iter().find(|node| node.role == role) {
            Some(driven) => {
                Ok(TargetRoute { route, shard_rule, role, url: driven.url.clone(), nodes })
            }
            None => Err(Problem::new(format!("The target `{target}` has no nodes."))),
        }
    }
}

/// Shards that `dyno cluster` has made.
fn rule_of_clusters(nodes: &[TargetNode]) -> Option<ShardRule> {
    let mut shards = nodes.iter().filter(|node| node.role == Role::Shard).peekable();
    let is_some = shards.peek().is_some();
    (is_some && shards.all(|shard| shard.cluster.is_some())).then_some(ShardRule::OF_CLUSTERS)
}

/// Whether the rule, if there is one, is for the shards among nodes of these roles.
pub(crate) fn check_rule(
    target: &str,
    rule: Option<&ShardRule>,
    roles: &[Role],
) -> Result<(), Problem> {
    let shards = roles.iter().filter(|role| **role == Role::Shard).count();
    let checked = rule.map_or(Ok(()), |rule| ShardMap::new(rule.clone(), shards).map(drop));
    checked.map_err(|message| {
        let hint = "List every shard in `nodes`, in the order of the rule: `{ role = \"shard\", url = ... }`.";
        Problem::new(format!("The target `{target}`: {message}")).hint(hint)
    })
}

/// Whether there are as many shards among the nodes as the target stands for.
pub(crate) fn check_shards(target: &TargetFacts, nodes: &[TargetNode]) -> Result<(), Problem> {
    let given = nodes.iter().filter(|node| node.role == Role::Shard).count();
    let Some(wanted) = target.shards.filter(|wanted| *wanted as usize != given) else {
        return Ok(());
    };
    let message = format!(
        "The target `{}` stands for {}, and what was given has {given}.",
        target.name,
        counted(wanted, "shard")
    );
    let hint = format!(
        "Give it a cluster of so many: `dyno cluster up sharded --shards {wanted}`, or name a target of the suite for \
         {given}."
    );
    Err(Problem::new(message).hint(hint))
}

/// What the node does that the load reaches first.
fn driven_role(route: Route) -> Role {
    match route {
        Route::Primary | Route::Split => Role::Primary,
        Route::Endpoint => Role::Endpoint,
        Route::Spread => Role::ReadOnly,
    }
}

/// The nodes that a suite has written; `None` where one has no URL.
pub(crate) fn written(target: &SuiteTarget) -> Option<Vec<TargetNode>> {
    let roles: Vec<Role> = target.nodes.iter().map(|node| node.role).collect();
    let planned = target.nodes.iter().enumerate().map(|(index, node)| {
        let url = &node.url.as_ref()?.value;
        let name = node.name.as_ref().map(|name| name.value.clone());
        Some(TargetNode::new(
            name.unwrap_or_else(|| usual_name(&roles, index)),
            node.role,
            url.clone(),
        ))
    });
    planned.collect()
}

/// The name of a node that has none: its role, with a number where there are several of it.
pub(crate) fn usual_name(roles: &[Role], index: usize) -> String {
    let role = roles[index];
    match roles.iter().filter(|other| **other == role).count() {
        1 => role.name().to_owned(),
        _ => {
            let before = roles[..index].iter().filter(|other| **other == role).count();
            format!("{}-{}", role.name(), before + 1)
        }
    }
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
    let message = format!("There is no route `{}`.", short(&route.value));
    let hint = hint_of_known(&route.value, "Routes", &Route::NAMES);
    table.note(&route.span, Problem::new(message).hint(hint));
    None
}

pub(crate) fn read_shard_rule(table: &mut Reader<'_, '_>) -> Option<ShardRule> {
    let text = table.text("shard_rule")?;
    let rule = text.value.parse();
    rule.map_err(|message: String| {
        let hint = "Rules: `modulo` (the warehouse modulo the number of shards), and `ranges 5, 10, 15` (the last \
                    warehouse of each shard but the last one).";
        table.note(&text.span, Problem::new(message).hint(hint));
    })
    .ok()
}

/// Nodes of one target have names of their own and speak one protocol.
fn check_together(target: &str, nodes: &[TargetNode]) -> Result<(), Problem> {
    let Some(first) = nodes.first() else { return Ok(()) };
    let is_second = |at: &usize| nodes[..*at].iter().any(|earlier| earlier.name == nodes[*at].name);
    if let Some(at) = (0..nodes.len()).find(is_second) {
        let message =
            format!("Two nodes of the target `{target}` are called `{}`.", nodes[at].name);
        return Err(Problem::new(message).hint("Give each a name of its own."));
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

/// Whether nodes of these roles have such a route.
pub(crate) fn check_route(target: &str, route: Route, roles: &[Role]) -> Result<(), Problem> {
    let count = |role: Role| roles.iter().filter(|other| **other == role).count();
    for role in [Role::Primary, Role::Endpoint] {
        if count(role) > 1 {
            let message =
                format!("The target `{target}` has {} nodes of role {}.", count(role), role.name());
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
    let Some(missing) = needed.iter().find(|role| count(**role) == 0) else { return Ok(()) };
    if count(Role::Shard) == roles.len() {
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
        Route::of(roles).name()
    );
    Err(Problem::new(message).hint(hint))
}
