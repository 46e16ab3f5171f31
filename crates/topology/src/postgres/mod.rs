//! PostgreSQL as a node: data folder, configuration, command line.

pub(crate) mod replication;

use crate::admin::{ADMIN, REPLICATION};
use crate::folder::{OrFailed, write, write_private};
use crate::mysql::joined;
use crate::process::{Launch, copy_data, run};
use crate::{Cluster, Result, State, StateNode, machine};
use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

const PROGRAMS: [&str; 3] = ["initdb", "postgres", "pg_basebackup"];

pub(crate) fn check() -> Result<()> {
    machine::postgres_folder(&PROGRAMS).map(drop)
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
        vec!["-D".into(), first.data().into(), joined("--pwfile=", &password)];
    let words = "-A scram-sha-256 -E UTF8 --locale=C --no-instructions --no-sync -U";
    arguments.extend(words.split(' ').chain([ADMIN]).map(Into::into));
    let initdb = machine::postgres_folder(&PROGRAMS)?.join("initdb");
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
        if (cluster.is_stopped)() {
            return Err(crate::stopped());
        }
        copy_data(cluster, first, node)?;
        if node.role == "read_only" {
            write(&node.data().join("standby.signal"), "")?;
        }
    }
    Ok(())
}

pub(crate) fn launch(state: &State, node: &StateNode) -> Result<Launch> {
    configure(state, node, source_of(state, node))?;
    let program = machine::postgres_folder(&PROGRAMS)?.join("postgres");
    Ok(node.launch(program, vec!["-D".into(), node.data().into()]))
}

/// The node that a node follows by its role.
pub(crate) fn source_of<'a>(state: &'a State, node: &StateNode) -> Option<&'a StateNode> {
    let is_standby = node.role == "read_only";
    state.nodes.iter().find(|other| is_standby && other.role == "primary")
}

pub(crate) fn configure(state: &State, node: &StateNode, source: Option<&StateNode>) -> Result<()> {
    write(&node.data().join("postgresql.conf"), &configuration_text(state, node, source))
}

/// As the papers' servers (a large cache, few checkpoints), with default durability and sizes of this machine.
fn configuration_text(state: &State, node: &StateNode, source: Option<&StateNode>) -> String {
    let cache = state.cache_mib;
    let mut text = format!(
        "# Written by dyno when this node starts or changes its role.\nlisten_addresses = '{}'\nport = {}\n\
         unix_socket_directories = ''\nmax_connections = 1000\nshared_buffers = {cache}MB\n\
         dynamic_shared_memory_type = posix\nmax_wal_size = {}MB\ncheckpoint_timeout = 15min\n\
         wal_level = replica\nmax_wal_senders = 20\nmax_replication_slots = 20\nwal_keep_size = 256MB\n\
         max_slot_wal_keep_size = 8GB\nhot_standby = on\nhot_standby_feedback = on\n\
         wal_retrieve_retry_interval = 200ms\nwal_receiver_timeout = 10s\nwal_sender_timeout = 10s\n\
         log_line_prefix = '%m [%p] '\n",
        node.host,
        node.port,
        cache.max(1024),
    );
    if let Some(source) = source {
        let _ = writeln!(
            text,
            // Quoted as a setting, and once more as a value of the connection string.
            "primary_conninfo = 'host={} port={} user={REPLICATION} application_name={} \
       passfile=''{}'''",
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
    text.push_str(replication::settings(&node.role));
    for (name, value) in &state.settings {
        let _ = writeln!(text, "{name} = '{}'", value.replace('\'', "''"));
    }
    text
}

/// Standbys that a commit waits for: none that were taken out, and none before the cluster is ready.
fn synchronous_names(state: &State) -> String {
    let standbys = || state.nodes.iter().filter(|node| node.role == "read_only");
    let names: Vec<&str> =
        standbys().filter(|node| node.pid != 0).map(|node| node.name.as_str()).collect();
    let wanted = state.replication.acknowledgements(standbys().count()).min(names.len());
    if wanted == 0 || !state.is_ready {
        return String::new();
    }
    format!("ANY {wanted} ({})", names.join(", "))
}

/// The accounts of replication and of the load, and its database.
pub(crate) fn make_database(cluster: &Cluster, primary: &StateNode) -> Result<()> {
    let account = cluster.account()?;
    let admin = cluster.admin(primary)?;
    let (user, database) = (&account.user, &account.database);
    let version: u32 = admin.ask("SHOW server_version_num")?.single().parse().unwrap_or(0);
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
    let statements: Vec<&str> = statements.iter().map(String::as_str).collect();
    admin.ask_all(&statements).map(drop)
}

/// Makes the data folder of a standby anew from the running primary.
pub(crate) fn copy_primary(cluster: &Cluster, primary: &StateNode, node: &StateNode) -> Result<()> {
    let folder = node.data();
    if folder.exists() {
        fs::remove_dir_all(&folder).or_failed("removed", &folder)?;
    }
    let connection = format!("host={} port={} user={REPLICATION}", primary.host, primary.port);
    let mut arguments: Vec<OsString> = vec!["-d".into(), connection.into(), "-D".into()];
    arguments.push(folder.clone().into());
    arguments.extend("-X stream -c fast --no-sync -w".split(' ').map(Into::into));
    let program = machine::postgres_folder(&PROGRAMS)?.join("pg_basebackup");
    let mut launch = node.launch(program, arguments);
    launch.environment.push(("PGPASSFILE".to_owned(), pass_file(node).into()));
    run(cluster, node, &launch)?;
    write(&folder.join("standby.signal"), "")
}
