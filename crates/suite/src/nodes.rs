//! The nodes of a target, and how the load reaches them.

use serde::{Deserialize, Serialize};

use crate::problem::Problem;
use crate::secret::SecretUrl;
use crate::source::Span;
use crate::suite::{Role, Route, Target};

/// A node of a target with several.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlannedNode {
    /// Unique in its target.
    pub name: String,
    /// What it does.
    pub role: Role,
    /// The URL without its password.
    pub url: String,
    /// The folder of the cluster of `dyno cluster` that it belongs to, under the same name there: only such
    /// a node can be killed, stopped or started by dyno itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster: Option<String>,
    #[serde(skip)]
    pub(crate) secret: SecretUrl,
}

impl PlannedNode {
    /// A node that nobody but its operator can start or stop.
    pub fn new(name: impl Into<String>, role: Role, url: &SecretUrl) -> Self {
        let name = name.into();
        PlannedNode { name, role, url: url.redacted(), cluster: None, secret: url.clone() }
    }

    /// The same as a node of the cluster of `dyno cluster` in `folder`.
    #[must_use]
    pub fn in_cluster(self, folder: impl Into<String>) -> Self {
        PlannedNode { cluster: Some(folder.into()), ..self }
    }

    /// The URL to connect to, password included if one is known. A node of a plan that was read back from a
    /// run has none.
    pub fn secret_url(&self) -> SecretUrl {
        match self.secret.expose() {
            "" => SecretUrl::new(&self.url),
            _ => self.secret.clone(),
        }
    }

    /// The one on which data are loaded, looked at and checked: the node that takes writes, or an endpoint
    /// before shards.
    pub fn loading(nodes: &[PlannedNode]) -> Option<&PlannedNode> {
        let first = |role: Role| nodes.iter().find(|node| node.role == role);
        let primary = first(Role::Primary).filter(|_| first(Role::Shard).is_none());
        primary.or(first(Role::Endpoint))
    }

    /// The scheme of its URL, one word for the two names of a protocol.
    fn protocol(&self) -> &str {
        match self.url.split(':').next().unwrap_or("") {
            "mariadb" => "mysql",
            "postgresql" => "postgres",
            other => other,
        }
    }
}

/// How a target is reached.
pub(crate) struct Way {
    /// Empty where there is one node that isn't of a cluster.
    pub(crate) nodes: Vec<PlannedNode>,
    pub(crate) route: Route,
    /// Of the node that the load reaches, or of the first one.
    pub(crate) role: Role,
    pub(crate) url: SecretUrl,
    pub(crate) span: Option<Span>,
}

impl Way {
    /// One node, given beside the suite or written there.
    pub(crate) fn single(role: Role, url: SecretUrl, span: Option<Span>) -> Self {
        Way { nodes: Vec::new(), route: Route::default(), role, url, span }
    }

    /// Several nodes, or those of a cluster.
    ///
    /// # Errors
    /// They have no such route, or nobody could load data there.
    pub(crate) fn through(
        target: &str,
        route: Option<Route>,
        nodes: Vec<PlannedNode>,
    ) -> Result<Self, Problem> {
        let roles: Vec<Role> = nodes.iter().map(|node| node.role).collect();
        let route = route.unwrap_or_else(|| Route::of(&roles));
        check_together(target, &nodes)?;
        check_route(target, route, &roles)?;
        let role = driven_role(route);
        match nodes.iter().find(|node| node.role == role) {
            Some(driven) => Ok(Way { route, role, url: driven.secret_url(), span: None, nodes }),
            None => Err(Problem::new(format!("The target `{target}` has no nodes."))),
        }
    }

    /// The same, and where a suite has written it.
    pub(crate) fn at(self, span: Span) -> Self {
        Way { span: Some(span), ..self }
    }
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
pub(crate) fn written(target: &Target) -> Option<Vec<PlannedNode>> {
    let roles: Vec<Role> = target.nodes.iter().map(|node| node.role).collect();
    let planned = target.nodes.iter().enumerate().map(|(index, node)| {
        let url = &node.url.as_ref()?.value;
        let name = node.name.as_ref().map(|name| name.value.clone());
        Some(PlannedNode::new(name.unwrap_or_else(|| usual_name(&roles, index)), node.role, url))
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

/// Nodes of one target have names of their own and speak one protocol.
fn check_together(target: &str, nodes: &[PlannedNode]) -> Result<(), Problem> {
    let Some(first) = nodes.first() else { return Ok(()) };
    let is_second = |at: &usize| nodes[..*at].iter().any(|earlier| earlier.name == nodes[*at].name);
    if let Some(at) = (0..nodes.len()).find(is_second) {
        let message =
            format!("Two nodes of the target `{target}` are called `{}`.", nodes[at].name);
        return Err(Problem::new(message).hint("Give each a name of its own."));
    }
    if let Some(other) = nodes.iter().find(|node| node.protocol() != first.protocol()) {
        let message = format!(
            "The nodes `{}` and `{}` of the target `{target}` speak different protocols.",
            first.name, other.name
        );
        let hint = "Nodes of a target hold the same data. Make two targets of two systems.";
        return Err(Problem::new(message).hint(hint));
    }
    if nodes.len() > 1 && ["sqlite", "duckdb"].contains(&first.protocol()) {
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
