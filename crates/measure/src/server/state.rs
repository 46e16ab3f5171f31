//! What a node is like at one moment, and what follows from two of them.

use super::Sample;
use crate::{NodeConditions, ReplicaFacts};
use std::collections::BTreeMap;

/// What a node is like at one moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NodeState {
    /// Counters and gauges.
    pub sample: Sample,
    /// See [`NodeConditions::round_trip_us`].
    pub round_trip_us: Option<f64>,
    /// See [`NodeConditions::isolation`].
    pub isolation: Option<String>,
    /// See [`NodeConditions::cache_bytes`].
    pub cache_bytes: Option<u64>,
    /// See [`NodeConditions::checkpoint_interval_s`].
    pub checkpoint_interval_s: Option<f64>,
    /// Size of the database.
    pub data_bytes: Option<u64>,
    /// See [`NodeConditions::query_cache`].
    pub query_cache: Option<bool>,
    /// See [`NodeConditions::tables_without_statistics`].
    pub tables_without_statistics: Vec<String>,
    /// See [`NodeConditions::schema_checksum`].
    pub schema_checksum: Option<String>,
    /// See [`NodeConditions::table_rows`].
    pub table_rows: BTreeMap<String, u64>,
    /// See [`NodeConditions::replicas`].
    pub replicas: Vec<ReplicaFacts>,
    /// See [`NodeConditions::acknowledged_by`].
    pub acknowledged_by: Option<String>,
    /// See [`NodeConditions::transport`].
    pub transport: Option<String>,
    /// Statements that were asked to learn all this: servers count them too.
    pub asked: u64,
}

/// What was seen of a node while a trial ran.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Seen {
    /// When the window opened.
    pub opened: Option<Sample>,
    /// When it closed, or the last one before that.
    pub closed: Option<Sample>,
    /// Checkpoints that ended between the two.
    pub checkpoints: Option<u64>,
    /// Work of the server's own, at any moment of the window.
    pub background: Vec<String>,
    /// Statements that were asked.
    pub asked: u64,
    /// Questions that were refused, and why.
    pub not_readable: Vec<String>,
}

/// What surrounded a trial on one node.
pub fn node_conditions(before: &NodeState, after: &NodeState, seen: &Seen) -> NodeConditions {
    // Without samples from within, the window is taken to reach from before to after.
    let opened = seen.opened.as_ref().unwrap_or(&before.sample);
    let closed = seen.closed.as_ref().unwrap_or(&after.sample);
    let grown = |of: fn(&Sample) -> Option<u64>| of(closed)?.checked_sub(of(opened)?);
    let requests = grown(|sample| sample.page_requests);
    let missed = grown(|sample| sample.page_misses);
    let whole = |of: fn(&Sample) -> Option<u64>, own: u64| {
        Some(of(&after.sample)?.checked_sub(of(&before.sample)?)?.saturating_sub(own))
    };
    let own = before.asked + seen.asked;
    let own_commits = if before.sample.counts_own_commits { own } else { 0 };
    let size = |state: &NodeState| state.data_bytes.filter(|&bytes| bytes > 0);
    NodeConditions {
        round_trip_us: before.round_trip_us,
        cpu_share: None,
        isolation: before.isolation.clone(),
        cache_bytes: before.cache_bytes,
        data_bytes: before.data_bytes,
        hit_share: requests
            .zip(missed)
            .filter(|&(requests, _)| requests > 0)
            .map(|(requests, missed)| (1.0 - missed as f64 / requests as f64).max(0.0)),
        pages_read: grown(|sample| sample.pages_read),
        dirty_share: before.sample.dirty_share,
        purge_backlog: before.sample.purge_backlog,
        checkpoint_age_share: before.sample.checkpoint_age_share,
        checkpoints: seen.checkpoints.or_else(|| grown(|sample| sample.checkpoints)),
        checkpoint_interval_s: before.checkpoint_interval_s,
        background: seen.background.clone(),
        // Autocommit is no commit to MySQL: where it counted none, nothing can be compared.
        commits: whole(|sample| sample.commits, own_commits).filter(|&commits| commits > 0),
        client_commits: None,
        statements: whole(|sample| sample.statements, own),
        growth_share: size(before).zip(size(after)).map(|(old, new)| new as f64 / old as f64 - 1.0),
        query_cache: before.query_cache,
        tables_without_statistics: before.tables_without_statistics.clone(),
        schema_checksum: before.schema_checksum.clone(),
        table_rows: before.table_rows.clone(),
        replicas: after.replicas.clone(),
        acknowledged_by: weaker(&before.acknowledged_by, &after.acknowledged_by),
        transport: before.transport.clone(),
        ..NodeConditions::default()
    }
}

/// What a commit waits for, where that has changed in between: semi-synchronous replication falls
/// back to asynchronous when no replica answers in time, and says so nowhere else.
fn weaker(before: &Option<String>, after: &Option<String>) -> Option<String> {
    match (before, after) {
        (Some(old), Some(new)) if old != new => Some(format!("{old}, later {new}")),
        (Some(known), _) | (None, Some(known)) => Some(known.clone()),
        (None, None) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(commits: u64, requests: u64, misses: u64, bytes: u64) -> NodeState {
        NodeState {
            sample: Sample {
                commits: Some(commits),
                page_requests: Some(requests),
                page_misses: Some(misses),
                pages_read: Some(misses),
                ..Sample::default()
            },
            data_bytes: Some(bytes),
            acknowledged_by: Some("1 semi-sync replica".to_owned()),
            ..NodeState::default()
        }
    }

    #[test]
    fn growth_is_from_before_to_after() {
        let found =
            node_conditions(&state(10, 100, 0, 1000), &state(35, 300, 50, 1100), &Seen::default());
        assert_eq!(
            (found.commits, found.hit_share, found.pages_read),
            (Some(25), Some(0.75), Some(50))
        );
        assert!((found.growth_share.expect("known") - 0.1).abs() < 1e-9);
        assert_eq!(found.statements, None);
        assert_eq!(found.acknowledged_by.as_deref(), Some("1 semi-sync replica"));
    }

    #[test]
    fn the_window_is_narrower_where_it_was_watched() {
        let sample = |requests, misses| state(0, requests, misses, 0).sample;
        let seen = Seen {
            opened: Some(sample(200, 40)),
            closed: Some(sample(300, 41)),
            checkpoints: Some(2),
            ..Seen::default()
        };
        let found = node_conditions(&state(10, 0, 0, 0), &state(10, 900, 50, 0), &seen);
        assert_eq!((found.hit_share, found.pages_read), (Some(0.99), Some(1)));
        assert_eq!((found.checkpoints, found.growth_share), (Some(2), None));
        assert_eq!(found.commits, None, "nothing that the server counts as a commit");
    }

    #[test]
    fn own_questions_are_no_commits() {
        let mut before = state(10, 0, 0, 0);
        before.sample.counts_own_commits = true;
        before.asked = 3;
        let seen = Seen { asked: 2, ..Seen::default() };
        assert_eq!(node_conditions(&before, &state(35, 0, 0, 0), &seen).commits, Some(20));
    }

    #[test]
    fn a_server_that_was_restarted_has_grown_by_nothing_known() {
        let found = node_conditions(&state(100, 100, 9, 10), &state(5, 5, 1, 10), &Seen::default());
        assert_eq!((found.commits, found.hit_share, found.pages_read), (None, None, None));
    }

    #[test]
    fn a_fall_back_to_asynchronous_is_told() {
        let mut after = state(1, 0, 0, 0);
        after.acknowledged_by = Some("local".to_owned());
        let found = node_conditions(&state(0, 0, 0, 0), &after, &Seen::default());
        assert_eq!(found.acknowledged_by.as_deref(), Some("1 semi-sync replica, later local"));
    }
}
