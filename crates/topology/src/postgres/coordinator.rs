//! The coordinator of `sharded-postgres`: a PostgreSQL whose tables lie on others, by postgres_fdw.
//!
//! Each of its sessions opens one to each shard that it needs. There, transactions read from one snapshot (REPEATABLE
//! READ), whatever was asked for here: those that meet on a row fail with 40001 and have to be retried. A commit is sent
//! to all shards of a transaction at once, and none of them is prepared for it: one that dies then makes half of it lost.
//! Nobody finds deadlocks over shards, so waiting for a lock there has an end.

use crate::admin::{ADMIN, Admin};
use crate::make::STATEMENT_LIMIT_S;
use crate::{Account, Cluster, Result, StateNode};

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
