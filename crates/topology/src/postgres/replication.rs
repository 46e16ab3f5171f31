//! Streaming replication of PostgreSQL.
//!
//! The coordinator of `sharded-postgres`: a PostgreSQL whose tables lie on others, by postgres_fdw.
//!
//! Each of its sessions opens one to each shard that it needs. There, transactions read from one snapshot (REPEATABLE
//! READ), whatever was asked for here: those that meet on a row fail with 40001 and have to be retried. A commit is sent
//! to all shards of a transaction at once, and none of them is prepared for it: one that dies then makes half of it lost.
//! Nobody finds deadlocks over shards, so waiting for a lock there has an end.

use crate::admin::{ADMIN, Admin};
use crate::cluster::STATEMENT_LIMIT_S;
use crate::mysql::replication::Stream;
use crate::postgres::{configure, source_of};
use crate::{Account, Cluster, Result, StateNode};

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

/// The first version whose postgres_fdw has all that is used here.
const VERSION_MIN: u32 = 140_000;
/// The first version that sends a commit to all shards at once.
const PARALLEL_COMMIT: u32 = 150_000;

/// Settings beside those of every node, of the node with this role.
pub(super) fn settings(role: &str) -> &'static str {
    match role {
        // Costs of remote tables look like those of hours of work to the compiler of expressions.
        "endpoint" => {
            "enable_partitionwise_join = on\nenable_partitionwise_aggregate = on\njit = off\n"
        }
        "shard" => "lock_timeout = 10s\n",
        _ => "",
    }
}

/// Has the coordinator know the shards.
pub(crate) fn join(cluster: &Cluster, coordinator: &StateNode) -> Result<()> {
    let account = cluster.account()?;
    let (password, database) = (&cluster.secrets.admin, &account.database);
    let admin = Admin::of(coordinator, ADMIN, password, database, STATEMENT_LIMIT_S)?;
    let version = admin.ask("SHOW server_version_num")?.single().parse().unwrap_or(0);
    if version < VERSION_MIN {
        return Err(failed!("A coordinator needs PostgreSQL 14 or newer."));
    }
    let shards: Vec<&StateNode> = cluster.servers().filter(|node| node.role == "shard").collect();
    let statements = statements(&shards, &account, version);
    let statements: Vec<&str> = statements.iter().map(String::as_str).collect();
    admin.ask_all(&statements).map(drop)
}

fn statements(shards: &[&StateNode], account: &Account, version: u32) -> Vec<String> {
    let Account { user, password, database } = account;
    let mut statements = vec![
        // A statement that fails is logged, and these hold passwords.
        "SET log_min_error_statement = panic".to_owned(),
        include_str!("coordinator.sql").replace("{user}", user),
    ];
    // Many rows a round trip, and shards that are read side by side.
    let mut options = "fetch_size '10000', batch_size '1000', async_capable 'true'".to_owned();
    if version >= PARALLEL_COMMIT {
        options.push_str(", parallel_commit 'true'");
    }
    for (number, StateNode { name, host, port, .. }) in shards.iter().enumerate() {
        statements.extend([
            format!(
                "CREATE SERVER {name} FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host '{host}', \
                 port '{port}', dbname '{database}', {options})"
            ),
            format!("GRANT USAGE ON FOREIGN SERVER {name} TO {user}"),
            format!(
                "CREATE USER MAPPING FOR {user} SERVER {name} OPTIONS (user '{user}', \
                 password '{password}')"
            ),
            format!("INSERT INTO dyno_shards.shards VALUES ({number}, '{name}')"),
        ]);
    }
    statements
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::endpoint::tests::{account, nodes};

    #[test]
    fn each_shard_is_a_server_with_its_number() {
        let nodes = nodes("".as_ref(), &["shard"; 3]);
        let shards: Vec<&StateNode> = nodes[..3].iter().collect();
        let text = statements(&shards, &account(), 150_004).join(";\n");
        for (number, name, port) in [(0, "n1", 5401), (1, "n2", 5402), (2, "n3", 5403)] {
            let server = format!(
                "CREATE SERVER {name} FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host '127.0.0.1', port '{port}', dbname 'dyno',"
            );
            assert!(text.contains(&server), "{server} in {text}");
            assert!(text.contains(&format!("shards VALUES ({number}, '{name}')")), "{text}");
        }
        assert_eq!(text.matches("parallel_commit 'true'").count(), 3);
        assert_eq!(text.matches("password 's3cret'").count(), 3);
        assert!(text.contains("AUTHORIZATION dyno;") && !text.contains("{user}"), "{text}");
        let older = statements(&shards, &account(), 140_010).join("\n");
        assert!(!older.contains("parallel_commit"), "{older}");
    }

    #[test]
    fn only_shards_give_up_waiting_for_locks() {
        assert!(settings("shard").contains("lock_timeout"));
        assert!(settings("endpoint").contains("enable_partitionwise_join = on"));
        assert_eq!((settings("primary"), settings("read_only")), ("", ""));
    }
}
