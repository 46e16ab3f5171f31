//! The nodes of a target, and how the load reaches them.

use super::Trial;
use crate::text::Message;
use dyno_facts::{KindSummary, NodeConditions, Route, TargetFacts, say};

const ROLES: [&str; 4] = ["primary", "read_only", "shard", "endpoint"];

/// Where nodes of a role stand: the primary first, endpoints last.
pub fn place_of_role(role: &str) -> usize {
    ROLES.iter().position(|known| *known == role).unwrap_or(ROLES.len())
}

/// A role in words.
pub fn node_role(role: &str) -> Message {
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

/// The nodes of a trial by name: those that take writes first, endpoints last.
pub fn nodes_of(trial: &Trial) -> impl Iterator<Item = (&str, &NodeConditions)> {
    let nodes = trial.summary.conditions.nodes.iter();
    let mut nodes: Vec<_> = nodes.map(|(name, node)| (name.as_str(), node)).collect();
    nodes.sort_by_key(|(_, node)| match node.role.as_deref() {
        None | Some("primary") => 0,
        Some("endpoint") => 2,
        Some(_) => 1,
    });
    nodes.into_iter()
}

/// Statements that a node executed in place of others; of a load of single reads in autocommit, commits
/// are that to a server that counts no statements.
pub fn reads(node: &NodeConditions, commits_are_reads: bool) -> Option<u64> {
    node.reads.or_else(|| node.commits.filter(|_| commits_are_reads))
}

/// A kind of transactions without BEGIN and COMMIT.
pub fn is_autocommit(kind: &KindSummary) -> bool {
    kind.statements.others.saturating_sub(kind.statements.misses) == 0
}

/// True where the load is nothing but single reads.
pub fn only_reads(trial: &Trial) -> bool {
    let statements = trial.summary.statements;
    statements.reads > 0 && statements.writes == 0 && trial.summary.kinds.iter().all(is_autocommit)
}

/// How the reads of a node in this trial are known.
pub fn reads_of(trial: &Trial) -> impl Fn(&NodeConditions) -> Option<u64> {
    let commits_are_reads = only_reads(trial);
    move |node| reads(node, commits_are_reads)
}
