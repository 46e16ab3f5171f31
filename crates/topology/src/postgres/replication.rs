//! Streaming replication of PostgreSQL.

use crate::admin::Admin;
use crate::mysql::replication::Stream;
use crate::postgres::{configure, source_of};
use crate::{Cluster, Result, StateNode};

/// Makes the slots that keep the log for standbys.
pub(crate) fn make_slots(cluster: &Cluster, primary: &StateNode) -> Result<()> {
    let admin = cluster.admin(primary)?;
    for node in cluster.servers().filter(|node| node.name != primary.name) {
        let name = &node.name;
        admin.ask(&format!(
            "SELECT pg_create_physical_replication_slot('{name}') WHERE NOT EXISTS \
             (SELECT 1 FROM pg_replication_slots WHERE slot_name = '{name}')"
        ))?;
    }
    Ok(())
}

/// The state of a standby's stream; `None` on a node that is none.
pub(crate) fn stream(admin: &Admin) -> Result<Option<Stream>> {
    let answer = admin.ask(
        "SELECT pg_is_in_recovery(), (SELECT status FROM pg_stat_wal_receiver), \
         CASE WHEN pg_last_wal_receive_lsn() = pg_last_wal_replay_lsn() THEN 0 \
         ELSE extract(epoch FROM now() - pg_last_xact_replay_timestamp()) END",
    )?;
    let Some(row) = answer.rows().next() else { return Ok(None) };
    let (&[is_standby, status, lag], true) = (row.as_slice(), row.len() == 3) else {
        return Ok(None);
    };
    if is_standby != "t" {
        return Ok(None);
    }
    let is_running = status == "streaming";
    let error = (!is_running).then(|| "it receives nothing from the primary".to_owned());
    Ok(Some(Stream { is_running, error, lag_s: lag.parse().ok() }))
}

/// The end of what a node has written (primary) or received (standby), in bytes.
pub(crate) fn position(admin: &Admin) -> Result<u64> {
    let answer = admin.ask(
        "SELECT (CASE WHEN pg_is_in_recovery() THEN coalesce(pg_last_wal_receive_lsn(), \
         pg_last_wal_replay_lsn()) ELSE pg_current_wal_lsn() END - '0/0'::pg_lsn)::bigint",
    )?;
    number(answer.single())
}

/// The end of what a standby has applied, in bytes.
pub(crate) fn applied(admin: &Admin) -> Result<u64> {
    number(admin.ask("SELECT (pg_last_wal_replay_lsn() - '0/0'::pg_lsn)::bigint")?.single())
}

fn number(text: &str) -> Result<u64> {
    text.parse().map_err(|_| failed!("`{text}` is no position in the log."))
}

/// Rewrites the configuration of a running node for its role and reloads it.
pub(crate) fn reconfigure(cluster: &Cluster, node: &StateNode) -> Result<()> {
    follow(cluster, node, source_of(cluster.state(), node))
}

/// Has a node follow another source than its role says.
pub(crate) fn follow(
    cluster: &Cluster,
    node: &StateNode,
    source: Option<&StateNode>,
) -> Result<()> {
    configure(cluster.state(), node, source)?;
    cluster.admin(node)?.ask("SELECT pg_reload_conf()").map(drop)
}

/// How many standbys acknowledge to this primary.
pub(crate) fn acknowledging(admin: &Admin) -> Result<usize> {
    let answer = admin.ask(
        "SELECT count(*) FROM pg_stat_replication \
         WHERE state = 'streaming' AND sync_state IN ('sync', 'quorum')",
    )?;
    Ok(answer.single().parse().unwrap_or(0))
}
