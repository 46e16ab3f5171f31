//! PostgreSQL as a node: data folder, configuration, command line.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

use crate::admin::{ADMIN, Admin, REPLICATION};
use crate::cluster::STATEMENT_LIMIT_S;
use crate::folder::{OrFailed, write, write_private};
use crate::mysql::{Stream, option_with_path};
use crate::process::{Launch, copy_data, run};
use crate::{Account, Cluster, Result, State, StateNode, machine};

const PROGRAMS: [&str; 3] = ["initdb", "postgres", "pg_basebackup"];

/// Checks that the programs of PostgreSQL are installed.
pub(crate) fn check(state: &State) -> Result<()> {
    program(state, PROGRAMS[0]).map(drop)
}

/// A program from the folder in which all of them are.
fn program(state: &State, name: &str) -> Result<PathBuf> {
    Ok(machine::postgres_folder(state.software.as_deref(), &PROGRAMS)?.join(name))
}

fn pass_file(node: &StateNode) -> PathBuf {
    node.folder.join("pgpass")
}

/// Makes the data folders of all nodes: the others begin as copies of the first one's, which was never started.
pub(crate) fn make_data(cluster: &Cluster, nodes: &[StateNode]) -> Result<()> {
    let Some(first) = nodes.first() else { return Ok(()) };
    let run_as = cluster.state.run_as;
    let password = first.folder.join("initial");
    write_private(&password, &cluster.secrets.admin, run_as)?;
    let mut arguments: Vec<OsString> =
        vec!["-D".into(), first.data().into(), option_with_path("--pwfile=", &password)];
    let words = "-A scram-sha-256 -E UTF8 --locale=C --no-instructions --no-sync -U";
    arguments.extend(words.split(' ').chain([ADMIN]).map(Into::into));
    let initdb = program(&cluster.state, "initdb")?;
    run(cluster, first, &first.launch(initdb, arguments))?;
    fs::remove_file(&password).or_failed("removed", &password)?;
    // Databases and replication alike, from wherever the server listens, never without a password.
    write(
        &first.data().join("pg_hba.conf"),
        "host all all all scram-sha-256\nhost replication all all scram-sha-256\n",
    )?;
    for node in nodes {
        let line = format!("*:*:*:{REPLICATION}:{}\n", cluster.secrets.replication);
        write_private(&pass_file(node), &line, run_as)?;
    }
    for node in &nodes[1..] {
        copy_data(cluster, first, node)?;
        if node.role == "read_only" {
            write(&node.data().join("standby.signal"), "")?;
        }
    }
    Ok(())
}

/// Writes the configuration of a node for its role; returns how its server is started.
pub(crate) fn launch(state: &State, node: &StateNode) -> Result<Launch> {
    write_configuration(state, node, replication_source(state, node))?;
    let program = program(state, "postgres")?;
    Ok(node.launch(program, vec!["-D".into(), node.data().into()]))
}

/// The node that a node follows by its role.
pub(crate) fn replication_source<'a>(state: &'a State, node: &StateNode) -> Option<&'a StateNode> {
    let is_standby = node.role == "read_only";
    state.nodes.iter().find(|other| is_standby && other.role == "primary")
}

pub(crate) fn write_configuration(
    state: &State,
    node: &StateNode,
    source: Option<&StateNode>,
) -> Result<()> {
    write(&node.data().join("postgresql.conf"), &configuration_text(state, node, source))
}

/// The configuration of the papers' servers (a large cache, few checkpoints), with default durability and sizes of this
/// machine.
fn configuration_text(state: &State, node: &StateNode, source: Option<&StateNode>) -> String {
    let mut text = format!(
        include_str!("postgresql.conf"),
        host = node.host,
        port = node.port,
        cache = state.cache_mib,
        wal = state.cache_mib.max(1024),
    );
    if let Some(source) = source {
        let _ = writeln!(
            text,
            // Quoted as a setting, and once more as a value of the connection string.
            "primary_conninfo = 'host={} port={} user={REPLICATION} application_name={} passfile=''{}'''",
            source.host,
            source.port,
            node.name,
            pass_file(node).display().to_string().replace('\'', "''''")
        );
        if source.role == "primary" {
            let _ = writeln!(text, "primary_slot_name = '{}'", node.name);
        }
    }
    if node.role == "primary" {
        let names = synchronous_names(state);
        let _ = writeln!(text, "synchronous_standby_names = '{names}'");
    }
    text.push_str(settings(&node.role));
    for (name, value) in &state.settings {
        let _ = writeln!(text, "{name} = '{}'", value.replace('\'', "''"));
    }
    text
}

/// Standbys that a commit waits for: none that were taken out, and none before the cluster is ready.
fn synchronous_names(state: &State) -> String {
    let standbys: Vec<&StateNode> =
        state.nodes.iter().filter(|node| node.role == "read_only").collect();
    let running = standbys.iter().filter(|node| node.pid != 0);
    let names: Vec<&str> = running.map(|node| node.name.as_str()).collect();
    let needed = state.replication.acknowledgements(standbys.len()).min(names.len());
    if needed == 0 || !state.is_ready {
        return String::new();
    }
    format!("ANY {needed} ({})", names.join(", "))
}

/// The accounts of replication and of the load, and its database.
pub(crate) fn make_database(cluster: &Cluster, primary: &StateNode) -> Result<()> {
    let account = cluster.account()?;
    let admin = cluster.admin(primary)?;
    let (user, database) = (&account.user, &account.database);
    let version: u32 = admin.query("SHOW server_version_num")?.single().parse().unwrap_or(0);
    let mut statements = vec![
        // A statement that fails is logged, and these hold passwords.
        "SET log_min_error_statement = panic".to_owned(),
        format!(
            "CREATE ROLE {REPLICATION} LOGIN REPLICATION PASSWORD '{}'",
            cluster.secrets.replication
        ),
        format!("CREATE ROLE {user} LOGIN CREATEDB PASSWORD '{}'", account.password),
        format!("GRANT pg_monitor, pg_signal_backend TO {user}"),
        format!("CREATE DATABASE {database} OWNER {user}"),
    ];
    if version >= 150_000 {
        statements.push(format!("GRANT pg_checkpoint TO {user}"));
    }
    admin.ask_all(&statements).map(drop)
}

/// Makes the data folder of a standby again from the running primary.
pub(crate) fn copy_primary(cluster: &Cluster, primary: &StateNode, node: &StateNode) -> Result<()> {
    let folder = node.data();
    if folder.exists() {
        fs::remove_dir_all(&folder).or_failed("removed", &folder)?;
    }
    let connection = format!("host={} port={} user={REPLICATION}", primary.host, primary.port);
    let mut arguments: Vec<OsString> = vec!["-d".into(), connection.into(), "-D".into()];
    arguments.push(folder.clone().into());
    arguments.extend("-X stream -c fast --no-sync -w".split(' ').map(Into::into));
    let program = program(&cluster.state, "pg_basebackup")?;
    let mut launch = node.launch(program, arguments);
    launch.environment.push(("PGPASSFILE".to_owned(), pass_file(node).into()));
    run(cluster, node, &launch)?;
    write(&folder.join("standby.signal"), "")
}

/// Makes the slots that keep the log for standbys.
pub(crate) fn make_slots(cluster: &Cluster, primary: &StateNode) -> Result<()> {
    let admin = cluster.admin(primary)?;
    for node in cluster.servers().filter(|node| node.name != primary.name) {
        let name = &node.name;
        admin.query(&format!(
            "SELECT pg_create_physical_replication_slot('{name}') WHERE NOT EXISTS \
             (SELECT 1 FROM pg_replication_slots WHERE slot_name = '{name}')"
        ))?;
    }
    Ok(())
}

/// The state of a standby's stream; `None` on a node that is none.
pub(crate) fn stream(admin: &Admin) -> Result<Option<Stream>> {
    let answer = admin.query(
        "SELECT pg_is_in_recovery(), (SELECT status FROM pg_stat_wal_receiver), \
         CASE WHEN pg_last_wal_receive_lsn() = pg_last_wal_replay_lsn() THEN 0 \
         ELSE extract(epoch FROM now() - pg_last_xact_replay_timestamp()) END",
    )?;
    let row = answer.rows().next().unwrap_or_default();
    let &["t", status, lag] = row.as_slice() else { return Ok(None) };
    let is_running = status == "streaming";
    let error = (!is_running).then(|| "it receives nothing from the primary".to_owned());
    Ok(Some(Stream { is_running, error, lag_s: lag.parse().ok() }))
}

/// The end of what a node has written (primary) or received (standby), in bytes.
pub(crate) fn position(admin: &Admin) -> Result<u64> {
    let answer = admin.query(
        "SELECT (CASE WHEN pg_is_in_recovery() THEN coalesce(pg_last_wal_receive_lsn(), \
         pg_last_wal_replay_lsn()) ELSE pg_current_wal_lsn() END - '0/0'::pg_lsn)::bigint",
    )?;
    parse_number(answer.single())
}

/// The end of what a standby has applied, in bytes.
pub(crate) fn applied(admin: &Admin) -> Result<u64> {
    parse_number(admin.query("SELECT (pg_last_wal_replay_lsn() - '0/0'::pg_lsn)::bigint")?.single())
}

fn parse_number(text: &str) -> Result<u64> {
    text.parse().map_err(|_| failed!("`{text}` isn't a position in the log."))
}

/// Rewrites the configuration of a running node for its role and reloads it.
pub(crate) fn reconfigure(cluster: &Cluster, node: &StateNode) -> Result<()> {
    follow(cluster, node, replication_source(cluster.state(), node))
}

/// Has a node follow another source than its role says.
pub(crate) fn follow(
    cluster: &Cluster,
    node: &StateNode,
    source: Option<&StateNode>,
) -> Result<()> {
    write_configuration(cluster.state(), node, source)?;
    cluster.admin(node)?.query("SELECT pg_reload_conf()").map(drop)
}

/// Number of standbys that acknowledge to this primary.
pub(crate) fn acknowledging(admin: &Admin) -> Result<usize> {
    let answer = admin.query(
        "SELECT count(*) FROM pg_stat_replication \
         WHERE state = 'streaming' AND sync_state IN ('sync', 'quorum')",
    )?;
    Ok(answer.single().parse().unwrap_or(0))
}

/// The first version whose postgres_fdw has all that is used here.
const VERSION_MIN: u32 = 140_000;
/// The first version that sends a commit to all shards at once.
const PARALLEL_COMMIT: u32 = 150_000;

/// Settings alongside those of every node, of the node with this role.
fn settings(role: &str) -> &'static str {
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
    let admin = Admin::with_account(coordinator, ADMIN, password, database, STATEMENT_LIMIT_S)?;
    let version = admin.query("SHOW server_version_num")?.single().parse().unwrap_or(0);
    if version < VERSION_MIN {
        return Err(failed!("A coordinator needs PostgreSQL 14 or newer."));
    }
    let shards: Vec<&StateNode> = cluster.servers().filter(|node| node.role == "shard").collect();
    let statements = join_statements(&shards, &account, version);
    admin.ask_all(&statements).map(drop)
}

fn join_statements(shards: &[&StateNode], account: &Account, version: u32) -> Vec<String> {
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
        let text = join_statements(&shards, &account(), 150_004).join(";\n");
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
        let older = join_statements(&shards, &account(), 140_010).join("\n");
        assert!(!older.contains("parallel_commit"), "{older}");
    }

    #[test]
    fn only_shards_give_up_waiting_for_locks() {
        assert!(settings("shard").contains("lock_timeout"));
        assert!(settings("endpoint").contains("enable_partitionwise_join = on"));
        assert_eq!((settings("primary"), settings("read_only")), ("", ""));
    }
}
