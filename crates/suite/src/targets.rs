//! The targets of a plan.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::nodes::{self, PlannedNode, Way, check_route};
use crate::plan::{Overrides, PlannedExperiment};
use crate::problem::{Problem, SuiteError};
use crate::secret::{SecretUrl, password_variable};
use crate::source::Span;
use crate::suite::{Experiment, Price, Role, Route, Suite, Target};

/// A target that is measured.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PlannedTarget {
    /// The name in the suite.
    pub name: String,
    /// One line; the name if the suite has none.
    pub title: String,
    /// Product and version as stated.
    pub product: Option<String>,
    /// The vendor's name of the node class.
    pub class: Option<String>,
    /// Virtual CPUs of a node.
    pub vcpu: Option<f64>,
    /// Memory of a node in GiB.
    pub memory_gib: Option<f64>,
    /// How a commit is made durable, as stated.
    pub durability: Option<String>,
    /// Facts that nobody can read from the server, by the name of the fact.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub stated: BTreeMap<String, String>,
    /// What the whole target costs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price: Option<Price>,
    /// The target whose database this is, under another name: to measure the noise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub twin_of: Option<String>,
    /// The target whose cluster this is, of which only the first read-only nodes are driven.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part_of: Option<String>,
    /// The role of the node that is driven.
    pub role: Role,
    /// All nodes, where there are several, or where a cluster of `dyno cluster` stands behind it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nodes: Vec<PlannedNode>,
    /// How the load reaches them.
    #[serde(default, skip_serializing_if = "is_default")]
    pub route: Route,
    /// The URL without its password; `{run}` still stands for the run folder.
    pub url: String,
    #[serde(skip)]
    secret: SecretUrl,
    #[serde(skip)]
    pub(crate) span: Option<Span>,
}

impl PlannedTarget {
    /// The URL to connect to, password included if it has one, with `{run}` replaced by the run
    /// folder, percent-encoded. A plan that was read back from a run has no passwords.
    pub fn url_in(&self, run: &Path) -> SecretUrl {
        let url = match self.secret.expose() {
            "" => &self.url,
            secret => secret,
        };
        // What has a meaning in a URL must not end the path.
        let path = run.to_string_lossy().replace('%', "%25").replace('?', "%3F");
        SecretUrl::new(url.replace("{run}", &path.replace('#', "%23")))
    }

    /// The name under which its database is known: its own, or that of the target whose twin or part
    /// it is.
    pub fn owner(&self) -> &str {
        self.twin_of.as_deref().or(self.part_of.as_deref()).unwrap_or(&self.name)
    }

    /// The name of the target that is connected to for its trials: a twin is the same connection, a
    /// part has nodes of its own.
    pub fn reached_as(&self) -> &str {
        self.twin_of.as_deref().unwrap_or(&self.name)
    }

    /// The same cluster, of which only the first `read_only` read-only nodes are driven and looked at.
    pub(crate) fn part(&self, read_only: u32) -> PlannedTarget {
        let words = if read_only == 1 { "node" } else { "nodes" };
        PlannedTarget {
            name: format!("{}-ro{read_only}", self.name),
            title: format!("{}, {read_only} read-only {words}", self.title),
            part_of: Some(self.name.clone()),
            nodes: first_readers(&self.nodes, read_only as usize),
            ..self.clone()
        }
    }

    /// What load generator `generator` of `generators`, counted from 0, needs of it. Where the load is spread these
    /// are read-only nodes of its own; where the numbers don't divide, all of them are everybody's, so that no
    /// node gets more than its share.
    #[must_use]
    pub fn of_generator(&self, generator: u32, generators: u32) -> PlannedTarget {
        let mut part = self.clone();
        if self.route == Route::Spread {
            part.nodes.retain(|node| node.role == Role::ReadOnly);
            part.nodes = dealt(part.nodes, generator as usize, generators.max(1) as usize);
        }
        part
    }

    /// The same database under another name.
    pub(crate) fn twin(&self) -> PlannedTarget {
        PlannedTarget {
            name: twin_name(&self.name),
            title: format!("{}, again", self.title),
            twin_of: Some(self.name.clone()),
            ..self.clone()
        }
    }

    /// The URL, without password, of the node on which its data are loaded; `None` where no node takes
    /// writes.
    pub fn loading_url(&self) -> Option<&str> {
        match self.nodes.as_slice() {
            [] => Some(&self.url),
            nodes => PlannedNode::loading(nodes).map(|node| node.url.as_str()),
        }
    }

    /// One URL for the same target.
    ///
    /// # Errors
    /// It stands for some nodes of a cluster, which can't be chosen behind one URL.
    pub(crate) fn redirect(&mut self, url: &SecretUrl) -> Result<(), Problem> {
        if self.part_of.is_some() {
            return Err(self.unlike_its_name(readers(&self.nodes), "one address"));
        }
        self.go(Way::single(self.role, url.clone(), None));
        Ok(())
    }

    /// Other nodes for the same target.
    ///
    /// # Errors
    /// They don't have its route, or fewer read-only nodes than its name says.
    pub(crate) fn redirect_to_nodes(&mut self, nodes: &[PlannedNode]) -> Result<(), Problem> {
        let route = (!self.nodes.is_empty()).then_some(self.route);
        let (wanted, given) = (readers(&self.nodes), readers(nodes));
        let nodes = match self.part_of {
            Some(_) if given < wanted => {
                return Err(self.unlike_its_name(wanted, &format!("a cluster with {given}")));
            }
            Some(_) => first_readers(nodes, wanted),
            None => nodes.to_vec(),
        };
        self.go(Way::through(&self.name, route, nodes)?);
        Ok(())
    }

    fn unlike_its_name(&self, wanted: usize, given: &str) -> Problem {
        let message = format!(
            "The plan drives {wanted} read-only nodes of `{}` as `{}`, but what was given is {given}.",
            self.owner(),
            self.name
        );
        let hint = "Give each node, `--target NAME:ROLE=URL`, or a cluster, `--target NAME=cluster:FOLDER`.";
        Problem::new(message).hint(hint)
    }

    fn go(&mut self, way: Way) {
        self.role = way.role;
        self.url = way.url.redacted();
        (self.nodes, self.route) = (way.nodes, way.route);
        (self.secret, self.span) = (way.url, way.span);
    }

    /// The name under which the password of one of its nodes is looked for first.
    pub fn node_name(&self, node: &PlannedNode) -> String {
        format!("{}_{}", self.owner(), node.name)
    }

    /// The environment variable that may hold the password of one of its nodes, if that has its own.
    pub fn node_password_variable(&self, node: &PlannedNode) -> String {
        password_variable(&self.node_name(node))
    }

    /// Gives it, or one of its nodes, a URL with a password, which plans that were read back have not.
    pub fn set_secret(&mut self, node: Option<&str>, url: &SecretUrl) {
        match node {
            None => self.secret = url.clone(),
            Some(name) => {
                for node in self.nodes.iter_mut().filter(|node| node.name == name) {
                    node.secret = url.clone();
                }
            }
        }
    }

    /// The environment variable that may hold the password: `DYNO_PASSWORD_` and the name in
    /// upper case, with `_` for everything that is no letter or digit. Of twins and parts it is that
    /// of their owner.
    pub fn password_variable(&self) -> String {
        password_variable(self.owner())
    }
}

/// How many of these nodes take no writes.
fn readers(nodes: &[PlannedNode]) -> usize {
    nodes.iter().filter(|node| node.role == Role::ReadOnly).count()
}

/// The nodes of load generator `generator` of `generators`: with more generators than nodes, some share one.
fn dealt(nodes: Vec<PlannedNode>, generator: usize, generators: usize) -> Vec<PlannedNode> {
    let count = nodes.len();
    if count == 0 || (!count.is_multiple_of(generators) && !generators.is_multiple_of(count)) {
        return nodes;
    }
    nodes.into_iter().skip(generator % count).step_by(generators).collect()
}

/// Nodes of a cluster of which no more than the first `count` read-only ones are driven and looked at.
fn first_readers(nodes: &[PlannedNode], count: usize) -> Vec<PlannedNode> {
    let mut left = count;
    let is_kept = |node: &&PlannedNode| match node.role {
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

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// The second name of a target that is compared with itself.
pub(crate) fn twin_name(name: &str) -> String {
    format!("{name}-again")
}

/// The targets that have a URL, and the names of those that have none.
pub(crate) fn plan_targets(
    suite: &Suite,
    overrides: &Overrides,
) -> Result<(Vec<PlannedTarget>, Vec<String>), SuiteError> {
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
        let message = format!("No target of the suite `{}` has a URL.", suite.name);
        let first = left_out.first().map_or("NAME", String::as_str);
        let hint = format!("Give one: `--target {first}=mysql://USER@HOST:3306/DATABASE`.");
        return Err(Problem::new(message).hint(hint).into());
    }
    Ok((planned, left_out))
}

/// How a target is reached; `None` where a node has no URL.
fn way_to(
    suite: &Suite,
    target: &Target,
    overrides: &Overrides,
) -> Result<Option<Way>, SuiteError> {
    let name = &target.name.value;
    let route = target.route.as_ref().map(|route| route.value);
    let roles: Vec<Role> = target.nodes.iter().map(|node| node.role).collect();
    let span = target.route.as_ref().map_or(&target.nodes_span, |route| &route.span);
    let placed = |problem: Problem| SuiteError::from(problem.at(&suite.text, span));
    if let Some((_, nodes)) = overrides.nodes.iter().find(|(other, _)| other == name) {
        return Way::through(name, route, nodes.clone()).map(Some).map_err(placed);
    }
    if let Some((_, url)) = overrides.targets.iter().find(|(other, _)| other == name) {
        let role = match roles.contains(&Role::Endpoint) {
            true => Role::Endpoint,
            false => roles.first().copied().unwrap_or(Role::Primary),
        };
        return Ok(Some(Way::single(role, url.clone(), None)));
    }
    let Some(nodes) = nodes::written(target) else { return Ok(None) };
    match (target.nodes.as_slice(), nodes.is_empty()) {
        (_, true) => Ok(None),
        ([node], _) => {
            let url = node.url.as_ref();
            route.map_or(Ok(()), |route| check_route(name, route, &roles)).map_err(placed)?;
            Ok(url.map(|url| Way::single(node.role, url.value.clone(), Some(url.span.clone()))))
        }
        _ => {
            let way = Way::through(name, route, nodes).map_err(placed)?;
            Ok(Some(way.at(target.nodes_span.clone())))
        }
    }
}

fn plan_target(target: &Target, way: Way) -> PlannedTarget {
    let name = target.name.value.clone();
    PlannedTarget {
        title: target.title.clone().unwrap_or_else(|| name.clone()),
        name,
        product: target.product.clone(),
        class: target.class.clone(),
        vcpu: target.vcpu,
        memory_gib: target.memory_gib,
        durability: target.durability.clone(),
        stated: target.stated.clone(),
        price: target.price.clone(),
        twin_of: None,
        part_of: None,
        role: way.role,
        nodes: way.nodes,
        route: way.route,
        url: way.url.redacted(),
        secret: way.url,
        span: way.span,
    }
}

/// Two targets on one database would load the same tables twice; read-only nodes take none.
pub(crate) fn check_data(
    suite: &Suite,
    experiment: &Experiment,
    planned: &PlannedExperiment,
    targets: &[PlannedTarget],
) -> Result<(), SuiteError> {
    let measured: Vec<&PlannedTarget> =
        targets.iter().filter(|target| planned.targets.contains(&target.name)).collect();
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
        let same = |other: &&&PlannedTarget| {
            other.loading_url() == target.loading_url() && other.owner() != target.owner()
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
