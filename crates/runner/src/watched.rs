//! The nodes of a target that a load looks at.

use crate::databases::{self, Database, ReachedDatabase};
use crate::signals;
use dyno_core::{DbError, Discard, Driver, Nanos, Session};
use dyno_facts::{Message, TargetFacts, say};
use dyno_load::{NodeHealth, NodeSight, look_at};
use dyno_reactor::{now, timeout};
use dyno_topology::{Health, NodeWatch, Vitals};
use std::path::Path;

#[derive(Clone)]
pub(crate) struct WatchedNode {
    name: String,
    database: Database,
    /// Of a node of a cluster of this machine.
    watch: Option<NodeWatch>,
}

/// The nodes of a target that has been reached, as the plan has it.
pub(crate) fn watched(
    planned: Option<&TargetFacts>,
    reached: &ReachedDatabase,
) -> Vec<WatchedNode> {
    let planned = planned.map_or(&[][..], |planned| &planned.nodes);
    let node = |(at, reached): (usize, &crate::databases::ReachedNode)| {
        let cluster = planned.get(at).and_then(|planned| planned.cluster.as_deref());
        WatchedNode {
            name: reached.name.clone(),
            database: reached.database.clone(),
            watch: cluster.and_then(|folder| NodeWatch::new(Path::new(folder), &reached.name)),
        }
    };
    reached.nodes.iter().enumerate().map(node).collect()
}

/// A node that is dead.
pub(crate) fn lost(nodes: &[WatchedNode]) -> Option<NodeSight> {
    nodes.iter().find_map(|node| Some(node.sight(node.watch.as_ref()?.lost()?)))
}

/// The names of those that do not answer.
pub(crate) fn away(nodes: &[WatchedNode], answer_within: Nanos) -> Vec<&str> {
    let is_away = |node: &&WatchedNode| node.is_lost() || !node.answers(answer_within);
    nodes.iter().filter(is_away).map(|node| node.name.as_str()).collect()
}

/// Those that are not lost: a fault may leave a node down.
pub(crate) fn without_lost(nodes: &[WatchedNode]) -> Vec<WatchedNode> {
    nodes.iter().filter(|node| !node.is_lost()).cloned().collect()
}

pub(crate) fn sentence(sight: &NodeSight) -> Message {
    say!(node_looks, node = &sight.name, evidence = &sight.evidence)
}

/// Looks at all nodes at the same time.
pub(crate) fn look(nodes: &[WatchedNode], answer_within: Nanos) -> Vec<NodeSight> {
    std::thread::scope(|scope| {
        let looks: Vec<_> =
            nodes.iter().map(|node| scope.spawn(move || node.look(answer_within))).collect();
        looks.into_iter().filter_map(|look| look.join().ok().flatten()).collect()
    })
}

/// The node of a cluster that is worst, by its process, memory and log; `None` where all look well.
pub(crate) fn ailing(nodes: &[WatchedNode]) -> Option<NodeSight> {
    let sights = nodes.iter().filter_map(|node| Some(node.sight(node.watch.as_ref()?.look()?)));
    sights.filter(|sight| sight.health != NodeHealth::Works).max_by_key(|sight| sight.health)
}

impl WatchedNode {
    fn is_lost(&self) -> bool {
        self.watch.as_ref().is_some_and(|watch| watch.lost().is_some())
    }

    /// A target that is one server without a cluster.
    pub(crate) fn only(name: &str, database: &Database) -> Self {
        WatchedNode { name: name.to_owned(), database: database.clone(), watch: None }
    }

    fn sight(&self, vitals: Vitals) -> NodeSight {
        let health = match vitals.health {
            Health::Down => NodeHealth::Dead,
            _ if vitals.is_out_of_memory => NodeHealth::OutOfMemory,
            Health::Failing | Health::Frozen => NodeHealth::Stuck,
            Health::Up => NodeHealth::Works,
        };
        NodeSight { name: self.name.clone(), health, evidence: vitals.text }
    }

    /// Whether it answers a question again.
    pub(crate) fn answers(&self, within: Nanos) -> bool {
        databases::run(async {
            let admin = self.database.admin();
            let question = databases::in_session(&admin, async |session| {
                session.query("SELECT 1", &mut Discard).await
            });
            timeout(now() + within, question)
                .await
                .unwrap_or_else(|_| Err(DbError::unreachable("no answer")))
        })
        .is_ok()
    }

    /// What is seen of its process, and whether it answers. An embedded database is no node.
    fn look(&self, answer_within: Nanos) -> Option<NodeSight> {
        let seen = self.watch.as_ref().and_then(NodeWatch::look).map(|vitals| self.sight(vitals));
        if seen.as_ref().is_some_and(|seen| seen.health == NodeHealth::Dead) {
            return seen;
        }
        let admin = self.database.admin();
        if admin.blocks() {
            return None;
        }
        let sight = look_at(&admin, &self.name, answer_within, signals::has_come);
        Some(match seen {
            None => sight,
            Some(seen) => NodeSight {
                health: seen.health.max(sight.health),
                evidence: format!("{}; {}", seen.evidence, sight.evidence),
                ..seen
            },
        })
    }
}
