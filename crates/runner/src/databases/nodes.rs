//! Targets with several nodes.

use super::cluster::{check_clusters, secret_url};
use super::{Database, ReachedDatabase, ServerPlace, Typed, is_denied, open_first, reach};
use crate::failure::Failure;
use dyno_core::{Address, DbError};
use dyno_drivers::route::NodeRouting;
use dyno_drivers::target::TargetUrl;
use dyno_facts::{Role, Route, ServerFacts, TargetFacts, TargetNode};
use std::path::Path;

pub struct ReachedNode {
    /// Its name in the plan; of a target with one node, the target's.
    pub name: String,
    pub role: Role,
    /// How to speak to this node alone, wherever the load goes.
    pub database: Database,
    pub facts: ServerFacts,
    pub same_host: bool,
    pub(crate) server: ServerPlace,
}

/// Reaches all nodes of a target of a plan, in the plan's order; at least one.
///
/// # Errors
/// In words, with the remedy; of several nodes the message names the one.
pub fn reach_planned(target: &TargetFacts, run: &Path) -> Result<ReachedDatabase, Failure> {
    if target.nodes.is_empty() {
        let mut reached = reach(&target.name, target.url_in(run).expose())?;
        reached.nodes.push(ReachedNode {
            name: target.name.clone(),
            role: target.role,
            database: reached.database.clone(),
            facts: reached.facts.clone(),
            same_host: reached.same_host,
            server: reached.server.clone(),
        });
        return Ok(reached);
    }
    check_clusters(target)?;
    // The variable of the target is that of all its nodes, and so is what is typed.
    let others = format!(" and the other nodes of {} without a password", target.owner());
    let mut typed = Typed { others, of_user: None };
    let (mut places, mut nodes) = (Vec::new(), Vec::new());
    for node in &target.nodes {
        let (place, reached) = reach_node(target, node, &mut typed)
            .map_err(|failure| failure.at(format!("node {}", node.name)))?;
        places.push(place);
        nodes.push(reached);
    }
    let ways = Ways::of(target);
    let facts = nodes[ways.writable].facts.clone();
    let mut database = ways.database(&places).map_err(|error| Failure::from(&error))?;
    let shards = nodes.iter().enumerate().filter(|(_, node)| node.role == Role::Shard);
    let shards: Vec<_> = shards.map(|(number, node)| (node.name.clone(), number)).collect();
    if !shards.is_empty() {
        database = database.with_shards(shards, target.shard_map());
    }
    let same_host = nodes.iter().any(|node| node.same_host);
    let server = ServerPlace::Unknown;
    Ok(ReachedDatabase { database, facts, same_host, server, nodes })
}

/// Reaches one node. `typed` is what was typed for the nodes before it.
fn reach_node(
    target: &TargetFacts,
    node: &TargetNode,
    typed: &mut Typed,
) -> Result<(TargetUrl, ReachedNode), Failure> {
    let place: TargetUrl = secret_url(node).expose().parse()?;
    let own = std::env::var(target.node_password_variable(node));
    let name = match own.is_ok_and(|password| !password.is_empty()) {
        true => target.node_name(node),
        false => target.owner().to_owned(),
    };
    let (place, opened) = open_first(place, Some(&name), typed)?;
    let (database, facts) = opened.map_err(|error| {
        let failure = Failure::from(&error);
        let (all, own) = (target.password_variable(), target.node_password_variable(node));
        match place.password.is_none() && is_denied(&error) {
            true => failure.with_hint(format!(
                "{all} holds the password of all nodes of the target, {own} that of this one; no node is \
                 sent the password in the URL of another"
            )),
            false => failure,
        }
    })?;
    // Isolated nodes have addresses of their own, and are on this machine all the same.
    let same_host = node.cluster.is_some() || place.hosts.0.iter().all(Address::is_local);
    let (name, role) = (node.name.clone(), node.role);
    let server = ServerPlace::of_node(node, &place);
    Ok((place, ReachedNode { name, role, database, facts, same_host, server }))
}

struct Ways {
    way: NodeRouting,
    /// Of whoever loads, looks and checks.
    loads: NodeRouting,
    /// The node that takes writes, or the nearest to one.
    writable: usize,
}

impl Ways {
    fn of(target: &TargetFacts) -> Self {
        let numbers = |role: Role| -> Vec<usize> {
            let nodes = target.nodes.iter().enumerate();
            nodes.filter(|(_, node)| node.role == role).map(|(number, _)| number).collect()
        };
        let first = |role: Role| numbers(role).first().copied();
        let endpoint = first(Role::Endpoint);
        let primary = first(Role::Primary).filter(|_| first(Role::Shard).is_none());
        let writable = primary.or(endpoint).or(first(Role::ReadOnly)).unwrap_or(0);
        Ways {
            way: match target.route {
                Route::Primary => NodeRouting::Primary,
                Route::Endpoint => NodeRouting::Through(endpoint.unwrap_or(writable)),
                Route::Split => NodeRouting::Split(numbers(Role::ReadOnly)),
                Route::Spread => NodeRouting::Spread(numbers(Role::ReadOnly)),
            },
            loads: if primary.is_some() {
                NodeRouting::Primary
            } else {
                NodeRouting::Through(writable)
            },
            writable,
        }
    }

    fn database(self, places: &[TargetUrl]) -> Result<Database, DbError> {
        let Ways { way, loads, writable } = self;
        Database::open_nodes(places, writable, way, loads)
    }
}
