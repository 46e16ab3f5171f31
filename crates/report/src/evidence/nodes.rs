//! The nodes of a target, and how the load reaches them.

use crate::text::Message;
use dyno_facts::{Route, TargetFacts, say};

const ROLES: [&str; 4] = ["primary", "read_only", "shard", "endpoint"];

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
    let words = match target.route {
        Route::Primary => say!(all_load_goes_to_the_primary),
        Route::Endpoint => say!(all_load_goes_through_the_endpoint),
        Route::Split => say!(transactions_and_writes_go_to_the),
        Route::Spread => say!(all_load_goes_to_the_read),
    };
    (!target.nodes.is_empty()).then_some(words)
}
