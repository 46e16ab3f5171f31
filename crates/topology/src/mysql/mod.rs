//! MariaDB and MySQL as nodes: data folder, configuration, command line.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use crate::admin::{ADMIN, Admin, Answer, REPLICATION};
use crate::folder::{fits_socket, write, write_private};
use crate::process::{Launch, copy_data, run};
use crate::{Cluster, ClusterError, NodeProduct, Replication, Result, State, StateNode, machine};

/// Rights of the load's account: everything with data, and observation; no change of the server itself, and no
/// writing where `read_only` forbids it.
const PRIVILEGES: &str = "SELECT, INSERT, UPDATE, DELETE, CREATE, DROP, RELOAD, PROCESS, REFERENCES, INDEX, \
    ALTER, SHOW DATABASES, CREATE TEMPORARY TABLES, LOCK TABLES, EXECUTE, REPLICATION CLIENT, CREATE VIEW, \
    SHOW VIEW, CREATE ROUTINE, ALTER ROUTINE, EVENT, TRIGGER";

#[derive(Default)]
struct Server {
    program: PathBuf,
    before: Vec<OsString>,
    /// Lines of the configuration with the places of its files.
    files: String,
}

fn server(state: &State, product: NodeProduct) -> Result<Server> {
    if product == NodeProduct::Mariadb {
        let program = machine::need(&["mariadbd"], "mariadb-server-core")?;
        return Ok(Server { program, ..Server::default() });
    }
    let Some(root) = &state.mysql else {
        let program = machine::find(&["mysqld"]).filter(|path| !is_mariadb(path));
        let program = program.ok_or_else(|| {
            ClusterError::new("MySQL's program mysqld is not installed.").with_hint(
                "install mysql-server-core, or unpack it to a folder and name that with --mysql",
            )
        })?;
        return Ok(Server { program, ..Server::default() });
    };
    unpacked(root)
}

/// Some systems have MariaDB under MySQL's name.
fn is_mariadb(path: &Path) -> bool {
    path.canonicalize().is_ok_and(|path| {
        path.file_name().is_some_and(|name| name.to_string_lossy().contains("mariadb"))
    })
}

/// MySQL unpacked with the libraries of its own system: its loader starts it.
fn unpacked(root: &Path) -> Result<Server> {
    let program = root.join("usr/sbin/mysqld");
    let libraries = machine::libraries(root);
    let folders = [libraries, root.join("usr/lib/mysql/private")];
    let loaded = machine::loaded(root, &program, &folders).filter(|_| program.is_file());
    let Some((program, before)) = loaded else {
        return Err(failed!("{} holds no unpacked MySQL.", root.display()).with_hint(
            "it must hold usr/sbin/mysqld and usr/lib with the libraries it was built for",
        ));
    };
    let show = root.display();
    let files = format!(
        "basedir={show}/usr\nplugin-dir={show}/usr/lib/mysql/plugin\n\
         lc-messages-dir={show}/usr/share/mysql\ncharacter-sets-dir={show}/usr/share/mysql/charsets\n"
    );
    Ok(Server { program, before, files })
}

pub(crate) fn check(state: &State, product: NodeProduct) -> Result<()> {
    server(state, product)?;
    if product == NodeProduct::Mariadb {
        machine::need(
            &["mariadb-install-db", "mysql_install_db"],
            "mariadb-server-core and mariadb-client-core",
        )?;
    }
    Ok(())
}

/// Makes the data folders of all nodes: the server makes one, the others are copies of it.
pub(crate) fn make_data(cluster: &Cluster, nodes: &[StateNode]) -> Result<()> {
    let Some(first) = nodes.first() else { return Ok(()) };
    let run_as = cluster.state.run_as;
    let accounts = accounts(cluster, first.product)?;
    let initial = |node: &StateNode| node.folder.join("accounts.sql");
    for node in nodes {
        write_private(&initial(node), &accounts, run_as)?;
    }
    match first.product {
        NodeProduct::Mariadb => install_mariadb(cluster, first)?,
        _ => initialize_mysql(cluster, first, &initial(first))?,
    }
    for node in &nodes[1..] {
        if (cluster.is_stopped)() {
            return Err(crate::stopped());
        }
        copy_data(cluster, first, node)?;
    }
    for node in nodes {
        // MySQL takes copies with the same identity for one server.
        let _ = fs::remove_file(node.data().join("auto.cnf"));
        if first.product == NodeProduct::Mysql {
            let _ = fs::remove_file(initial(node));
        }
    }
    Ok(())
}

fn install_mariadb(cluster: &Cluster, node: &StateNode) -> Result<()> {
    let names = ["mariadb-install-db", "mysql_install_db"];
    let arguments = vec![
        "--no-defaults".into(),
        // No server ever runs with the accounts that this makes: see `accounts`.
        "--auth-root-authentication-method=normal".into(),
        "--skip-test-db".into(),
        "--innodb-log-file-size=64M".into(),
        joined("--tmpdir=", &node.folder),
        joined("--datadir=", &node.data()),
    ];
    let launch = node.launch(machine::need(&names, "mariadb-server-core")?, arguments);
    run(cluster, node, &launch)
}

fn initialize_mysql(cluster: &Cluster, node: &StateNode, accounts: &Path) -> Result<()> {
    let server = server(&cluster.state, NodeProduct::Mysql)?;
    let configuration = node.folder.join("initialize.cnf");
    let text = format!(
        "[mysqld]\n{}datadir={}\ntmpdir={}\ninnodb_redo_log_capacity=128M\nmysqlx=OFF\nsecure-file-priv=NULL\n",
        server.files,
        node.data().display(),
        node.folder.display()
    );
    write(&configuration, &text)?;
    let mut arguments = server.before;
    arguments.push(joined("--defaults-file=", &configuration));
    // The log holds the password of an account which the file removes.
    arguments.push("--initialize".into());
    arguments.push(joined("--init-file=", accounts));
    run(cluster, node, &node.launch(server.program, arguments))
}

pub(crate) fn joined(option: &str, path: &Path) -> OsString {
    let mut word = OsString::from(option);
    word.push(path);
    word
}

/// Statements, one a line, that a server executes before the first log-in: the accounts of the cluster replace those
/// of a fresh data folder. They stay out of the binary log, since every node begins with them.
fn accounts(cluster: &Cluster, product: NodeProduct) -> Result<String> {
    let (password, secrets) = (cluster.folder.password()?, &cluster.secrets);
    let (user, admin, repl) = (&cluster.state.user, ADMIN, REPLICATION);
    let is_mariadb = product == NodeProduct::Mariadb;
    let monitor = if is_mariadb { ", SLAVE MONITOR" } else { "" };
    let mut lines = vec!["SET SESSION sql_log_bin=0".to_owned()];
    if is_mariadb {
        let fresh = "DELETE FROM mysql.global_priv WHERE User NOT IN ('mariadb.sys', 'PUBLIC')";
        let tables = ["DELETE FROM mysql.db", "DELETE FROM mysql.proxies_priv", "FLUSH PRIVILEGES"];
        lines.extend([fresh].into_iter().chain(tables).map(str::to_owned));
    }
    lines.extend([
        format!("CREATE USER '{admin}'@'%' IDENTIFIED BY '{}'", secrets.admin),
        format!("GRANT ALL PRIVILEGES ON *.* TO '{admin}'@'%' WITH GRANT OPTION"),
        format!("CREATE USER '{repl}'@'%' IDENTIFIED BY '{}'", secrets.replication),
        format!("GRANT REPLICATION SLAVE ON *.* TO '{repl}'@'%'"),
        format!("CREATE USER '{user}'@'%' IDENTIFIED BY '{password}'"),
        format!("GRANT {PRIVILEGES}{monitor} ON *.* TO '{user}'@'%'"),
    ]);
    if product == NodeProduct::Mysql {
        lines.push(format!("GRANT XA_RECOVER_ADMIN ON *.* TO '{user}'@'%'"));
        lines.push("DROP USER root@localhost".to_owned());
    }
    Ok(lines.into_iter().map(|line| line + ";\n").collect())
}

pub(crate) fn launch(state: &State, node: &StateNode, number: usize) -> Result<Launch> {
    let socket = node.folder.join("s");
    fits_socket(&socket, 0)?;
    let server = server(state, node.product)?;
    let configuration = node.folder.join("server.cnf");
    let first = node.folder.join("accounts.sql");
    let text = configuration_text(state, node, number, &server.files);
    write(&configuration, &text)?;
    let mut arguments = server.before;
    arguments.push(joined("--defaults-file=", &configuration));
    if first.is_file() {
        arguments.push(joined("--init-file=", &first));
    }
    Ok(node.launch(server.program, arguments))
}

/// As the papers' RDS instances (every commit flushed in redo and binary log), with caches of this machine's size.
fn configuration_text(state: &State, node: &StateNode, number: usize, files: &str) -> String {
    let (folder, data) = (node.folder.display(), node.data());
    let mut text = format!(
        "# Written by dyno at each start of this node.\n[mysqld]\n{files}datadir={}\ntmpdir={folder}\n\
         socket={folder}/s\npid-file={folder}/pid\nbind-address={}\nport={}\nskip-name-resolve\n\
         server-id={number}\nreport-host={}\nreport-port={}\nlog-bin=bin\nrelay-log=relay\n\
         max-connections=2000\nback-log=1000\ncharacter-set-server=utf8mb4\n\
         innodb-buffer-pool-size={}M\ninnodb-flush-log-at-trx-commit=1\nsync-binlog=1\n",
        data.display(),
        node.host,
        node.port,
        node.host,
        node.port,
        state.cache_mib,
    );
    let threads = machine::processors().clamp(2, 8);
    if node.product == NodeProduct::Mariadb {
        let _ = write!(
            text,
            "log-slave-updates=ON\nbinlog-format=ROW\ngtid-domain-id=1\ngtid-strict-mode=ON\n\
             innodb-log-file-size=64M\nslave-parallel-threads={threads}\nslave-net-timeout=10\n"
        );
    } else {
        let _ = write!(
            text,
            "gtid-mode=ON\nenforce-gtid-consistency=ON\ninnodb-redo-log-capacity=128M\nmysqlx=OFF\n\
             local-infile=ON\nsecure-file-priv=NULL\nreplica-parallel-workers={threads}\nreplica-net-timeout=10\n"
        );
    }
    if node.role == "read_only" {
        text.push_str(if node.product == NodeProduct::Mariadb {
            "read-only=ON\n"
        } else {
            "super-read-only=ON\n"
        });
    }
    if node.role == "shard" {
        // What TPC-C asks for: ShardingSphere-Proxy does not pass the level of a session on.
        text.push_str("transaction-isolation=READ-COMMITTED\n");
    }
    if state.replication != Replication::Async {
        text.push_str(&semi_sync(state, node));
    }
    for (name, value) in &state.settings {
        let _ = writeln!(text, "{name}={value}");
    }
    text
}

fn semi_sync(state: &State, node: &StateNode) -> String {
    let is_replica = node.role == "read_only";
    // Before the cluster is ready, or when all others were taken out, a primary has nobody to wait for.
    let is_alone = !state.nodes.iter().any(|node| node.role == "read_only" && node.pid != 0);
    let waits = if is_replica || is_alone || !state.is_ready { "OFF" } else { "ON" };
    let acknowledges = if is_replica { "ON" } else { "OFF" };
    if node.product == NodeProduct::Mariadb {
        return format!(
            "rpl-semi-sync-master-wait-point=AFTER_SYNC\nrpl-semi-sync-master-timeout=10000\n\
             rpl-semi-sync-master-enabled={waits}\nrpl-semi-sync-slave-enabled={acknowledges}\n"
        );
    }
    let replicas = state.nodes.iter().filter(|node| node.role == "read_only").count();
    let count = state.replication.acknowledgements(replicas);
    format!(
        "plugin-load-add=semisync_source.so\nplugin-load-add=semisync_replica.so\n\
         rpl-semi-sync-source-wait-point=AFTER_SYNC\nrpl-semi-sync-source-timeout=10000\n\
         rpl-semi-sync-source-wait-for-replica-count={}\n\
         rpl-semi-sync-source-enabled={waits}\nrpl-semi-sync-replica-enabled={acknowledges}\n",
        count.max(1)
    )
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Stream {
    pub(crate) is_running: bool,
    pub(crate) error: Option<String>,
    /// Seconds behind the primary, by the node's own account.
    pub(crate) lag_s: Option<f64>,
}

fn replica(product: NodeProduct) -> &'static str {
    if product == NodeProduct::Mariadb { "slave" } else { "replica" }
}

fn source(product: NodeProduct) -> &'static str {
    if product == NodeProduct::Mariadb { "master" } else { "source" }
}

/// Has a node follow `source` from what it has.
pub(crate) fn follow(
    admin: &Admin,
    product: NodeProduct,
    source: &StateNode,
    password: &str,
) -> Result<()> {
    let (host, port, user, replica) = (&source.host, source.port, REPLICATION, replica(product));
    let change = match product {
        NodeProduct::Mariadb => format!(
            "CHANGE MASTER TO MASTER_HOST='{host}', MASTER_PORT={port}, MASTER_USER='{user}', \
       MASTER_PASSWORD='{password}', MASTER_USE_GTID=slave_pos, MASTER_CONNECT_RETRY=1"
        ),
        _ => format!(
            "CHANGE REPLICATION SOURCE TO SOURCE_HOST='{host}', SOURCE_PORT={port}, SOURCE_USER='{user}', \
       SOURCE_PASSWORD='{password}', SOURCE_AUTO_POSITION=1, SOURCE_SSL=1, SOURCE_CONNECT_RETRY=1"
        ),
    };
    let (stop, start) = (format!("STOP {replica}"), format!("START {replica}"));
    admin.ask_all(&[&stop, &change, &start]).map(drop)
}

/// The state of a node's replication; `None` where it has none.
pub(crate) fn stream(admin: &Admin, product: NodeProduct) -> Result<Option<Stream>> {
    let answer = admin.ask(&show(product))?;
    Ok((!answer.is_empty()).then(|| read(&answer)))
}

fn show(product: NodeProduct) -> String {
    format!("SHOW {} STATUS", replica(product))
}

fn read(answer: &Answer) -> Stream {
    let is_yes = |names: &[&str]| answer.named(names).eq_ignore_ascii_case("yes");
    let receives = is_yes(&["Slave_IO_Running", "Replica_IO_Running"]);
    let applies = is_yes(&["Slave_SQL_Running", "Replica_SQL_Running"]);
    let errors = [answer.named(&["Last_IO_Error"]), answer.named(&["Last_SQL_Error"])];
    let error = errors.into_iter().find(|error| !error.is_empty()).map(str::to_owned);
    let lag_s = answer.named(&["Seconds_Behind_Master", "Seconds_Behind_Source"]).parse().ok();
    Stream { is_running: receives && applies, error, lag_s }
}

/// What a node has executed, in the form of its product.
pub(crate) fn position(admin: &Admin, product: NodeProduct) -> Result<String> {
    let sql = if product == NodeProduct::Mariadb {
        // `gtid_current_pos` leaves out what another server wrote before this one's data were copied.
        "SELECT IF(@@GLOBAL.gtid_binlog_pos='', @@GLOBAL.gtid_current_pos, @@GLOBAL.gtid_binlog_pos)"
    } else {
        "SELECT @@GLOBAL.gtid_executed"
    };
    Ok(admin.ask(sql)?.single().replace(char::is_whitespace, ""))
}

/// Waits until a node has executed up to `position`; false when that took longer than `limit_s`.
pub(crate) fn wait_for(
    admin: &Admin,
    product: NodeProduct,
    position: &str,
    limit_s: u32,
) -> Result<bool> {
    let sql = if product == NodeProduct::Mariadb {
        format!("SELECT MASTER_GTID_WAIT('{position}', {limit_s})")
    } else {
        format!("SELECT WAIT_FOR_EXECUTED_GTID_SET('{position}', {limit_s})")
    };
    Ok(admin.ask(&sql)?.single() == "0")
}

/// Has the primary wait for its read-only nodes from now on, or not any more.
pub(crate) fn wait_for_replicas(admin: &Admin, product: NodeProduct, waits: bool) -> Result<()> {
    let word = source(product);
    let value = if waits { "ON" } else { "OFF" };
    admin.ask(&format!("SET GLOBAL rpl_semi_sync_{word}_enabled={value}")).map(drop)
}

/// How many read-only nodes acknowledge to this primary.
pub(crate) fn acknowledging(admin: &Admin, product: NodeProduct) -> Result<usize> {
    let word = source(product);
    let answer = admin.ask(&format!("SHOW STATUS LIKE 'Rpl_semi_sync_{word}_clients'"))?;
    Ok(answer.named(&["Value"]).parse().unwrap_or(0))
}

pub(crate) fn set_read_only(product: NodeProduct, is_read_only: bool) -> &'static str {
    match (product, is_read_only) {
        (NodeProduct::Mariadb, true) => "SET GLOBAL read_only=ON",
        (NodeProduct::Mariadb, false) => "SET GLOBAL read_only=OFF",
        (_, true) => "SET GLOBAL super_read_only=ON",
        // This leaves super_read_only, too.
        (_, false) => "SET GLOBAL read_only=OFF",
    }
}

/// Ends receiving; what was received goes on being applied.
pub(crate) fn stop_receiving(admin: &Admin, product: NodeProduct) -> Result<()> {
    admin.ask(&format!("STOP {} IO_THREAD", replica(product))).map(drop)
}

/// What a node has received, applied or not.
pub(crate) fn received(admin: &Admin, product: NodeProduct) -> Result<String> {
    let answer = admin.ask(&show(product))?;
    Ok(answer.named(&["Gtid_IO_Pos", "Retrieved_Gtid_Set"]).replace(char::is_whitespace, ""))
}

/// Ends replication and forgets whom the node followed.
pub(crate) fn follow_nobody(admin: &Admin, product: NodeProduct) -> Result<()> {
    let word = replica(product);
    admin.ask_all(&[&format!("STOP {word}"), &format!("RESET {word} ALL")]).map(drop)
}

/// Has a node acknowledge what it receives, from its next connection to the primary on.
pub(crate) fn acknowledge(admin: &Admin, product: NodeProduct, acknowledges: bool) -> Result<()> {
    let word = replica(product);
    let value = if acknowledges { "ON" } else { "OFF" };
    admin.ask(&format!("SET GLOBAL rpl_semi_sync_{word}_enabled={value}")).map(drop)
}

/// True when a node has executed everything in `position`.
pub(crate) fn has(admin: &Admin, product: NodeProduct, target: &str) -> Result<bool> {
    let own = position(admin, product)?;
    if product == NodeProduct::Mariadb {
        return Ok(includes(&own, target));
    }
    let sql = format!("SELECT GTID_SUBSET('{target}', @@GLOBAL.gtid_executed)");
    Ok(admin.ask(&sql)?.single() == "1")
}

/// True when a node has transactions that the primary lacks: written as the primary, received by no other node.
pub(crate) fn has_diverged(admin: &Admin, primary: &Admin, product: NodeProduct) -> Result<bool> {
    if product == NodeProduct::Mariadb {
        let sql = "SELECT @@GLOBAL.gtid_binlog_state";
        let (own, its) = (admin.ask(sql)?, primary.ask(sql)?);
        return Ok(!includes_state(its.single(), own.single()));
    }
    let own = position(admin, product)?;
    Ok(!has(primary, product, &own)?)
}

/// Lets replication go on after the last transaction that the node has, by any server.
pub(crate) fn begin_from_own(admin: &Admin, product: NodeProduct) -> Result<()> {
    follow_nobody(admin, product)?;
    if product == NodeProduct::Mariadb {
        let own = position(admin, product)?;
        admin.ask(&format!("SET GLOBAL gtid_slave_pos='{own}'"))?;
    }
    Ok(())
}

/// Domain, server and number of each of MariaDB's identifiers.
fn identifiers(text: &str) -> impl Iterator<Item = (u64, u64, u64)> {
    text.split(',').filter_map(|part| {
        let mut numbers = part.trim().split('-').map(str::parse);
        Some((numbers.next()?.ok()?, numbers.next()?.ok()?, numbers.next()?.ok()?))
    })
}

/// True when position `a` isn't before `b` in any domain: numbers grow from server to server.
fn includes(a: &str, b: &str) -> bool {
    identifiers(b).all(|(domain, _, number)| {
        identifiers(a).any(|(other, _, reached)| other == domain && reached >= number)
    })
}

/// True when binary log `a` has the last transaction of each server in `b`.
fn includes_state(a: &str, b: &str) -> bool {
    identifiers(b).all(|(domain, server, number)| {
        identifiers(a)
            .any(|(other, by, reached)| (other, by) == (domain, server) && reached >= number)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_are_compared_by_domain() {
        assert!(includes("1-2-700", "1-1-500"));
        assert!(!includes("1-1-499", "1-1-500"));
        assert!(!includes("", "1-1-1"));
        assert!(includes("1-1-1", ""));
    }

    #[test]
    fn a_transaction_that_only_one_server_has_is_seen() {
        assert!(includes_state("1-1-498,1-2-700", "1-1-498"));
        assert!(!includes_state("1-1-498,1-2-700", "1-1-500"));
        assert!(!includes_state("1-2-700", "1-1-500"));
    }
}
