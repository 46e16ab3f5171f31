//! The nodes of a target, and how the load reaches them.

use crate::text::Message;
use dyno_facts::{TargetFacts, TargetNode, say};

/// A node of a target with several.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NodeFacts {
    /// Its name in its target.
    pub name: String,
    /// `primary`, `read_only`, `endpoint` or `shard`.
    pub role: String,
    /// The role in words.
    pub role_words: Message,
    /// Product and version.
    pub product: String,
    /// Its URL without password.
    pub url: String,
    /// True when it is on the load generator's machine.
    pub same_host: bool,
}

const ROLES: [&str; 4] = ["primary", "read_only", "shard", "endpoint"];

/// The nodes of a target; none where it has one.
pub(super) fn facts(target: &TargetFacts) -> Vec<NodeFacts> {
    let node = |node: &TargetNode| NodeFacts {
        name: node.name.clone(),
        role: node.role.clone(),
        role_words: node_role(&node.role),
        product: format!("{} {}", node.product, node.version).trim().to_owned(),
        url: node.url.clone(),
        same_host: node.same_host,
    };
    let mut nodes: Vec<NodeFacts> = target.nodes.iter().map(node).collect();
    nodes.sort_by_key(|node| place_of_role(&node.role));
    nodes
}

/// Where nodes of a role stand: the primary first, endpoints last.
pub(crate) fn place_of_role(role: &str) -> usize {
    ROLES.iter().position(|known| *known == role).unwrap_or(ROLES.len())
}

/// A role in words.
pub(crate) fn node_role(role: &str) -> Message {
    match role {
        "primary" => say!(primary),
        "read_only" => say!(read_only_node),
        "shard" => say!(shard),
        "endpoint" => say!(endpoint),
        other => Message::from(other),
    }
}

/// How the load reaches the nodes of a target, in a sentence.
pub(super) fn route(target: &TargetFacts) -> Option<Message> {
    match target.route.as_str() {
        "primary" => Some(say!(all_load_goes_to_the_primary)),
        "endpoint" => Some(say!(all_load_goes_through_the_endpoint)),
        "split" => Some(say!(transactions_and_writes_go_to_the)),
        "spread" => Some(say!(all_load_goes_to_the_read)),
        _ => None,
    }
}
