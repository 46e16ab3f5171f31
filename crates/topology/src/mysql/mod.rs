//! MariaDB and MySQL as nodes: data folder, configuration, command line, replication.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use crate::admin::{ADMIN, Admin, REPLICATION};
use crate::folder::{fits_socket, write, write_private};
use crate::process::{Launch, copy_data, run};
use crate::{Cluster, ClusterError, NodeProduct, Replication, Result, State, StateNode, machine};

struct Server {
    program: PathBuf,
    before: Vec<OsString>,
    /// Lines of the configuration with the places of its files.
    files: String,
}

impl Server {
    /// A server that needs nothing but its program.
    fn installed(program: PathBuf) -> Self {
        Server { program, before: Vec::new(), files: String::new() }
    }
}

fn find_server(state: &State, product: NodeProduct) -> Result<Server> {
    let names = if product == NodeProduct::Mariadb { ["mariadbd"] } else { ["mysqld"] };
    if let Some(root) = &state.software {
        let files = format!("basedir={}\n", root.display());
        let server = machine::installed(root, &names)
            .map(|program| Server { files, ..Server::installed(program) });
        return server.map_or_else(|| unpacked(root), Ok);
    }
    if product == NodeProduct::Mariadb {
        return machine::need(&names, "mariadb-server-core").map(Server::installed);
    }
    // Some systems have MariaDB under MySQL's name.
    let program = machine::find(&names).filter(|path| {
        !path.canonicalize().is_ok_and(|path| path.to_string_lossy().ends_with("mariadbd"))
    });
    program.map(Server::installed).ok_or_else(|| {
        ClusterError::new("MySQL's program mysqld is not installed.").with_hint(
            "install mysql-server-core, or unpack it to a folder and name that with --software",
        )
    })
}

/// MySQL unpacked with the libraries that it was built for: their loader starts it.
fn unpacked(root: &Path) -> Result<Server> {
    let program = root.join("usr/sbin/mysqld");
    let folders = [machine::libraries(root), root.join("usr/lib/mysql/private")];
    let loaded = machine::loaded(root, &program, &folders).filter(|_| program.is_file());
    let show = root.display();
    let Some((program, before)) = loaded else {
        return Err(failed!("{show} holds neither an installed nor an unpacked server.").with_hint(
            "it must hold bin/mariadbd or bin/mysqld, or usr/sbin/mysqld and usr/lib with the libraries it was built for",
        ));
    };
    let files = format!(
        "basedir={show}/usr\nplugin-dir={show}/usr/lib/mysql/plugin\n\
         lc-messages-dir={show}/usr/share/mysql\ncharacter-sets-dir={show}/usr/share/mysql/charsets\n"
    );
    Ok(Server { program, before, files })
}

/// Checks that the programs of the server are installed.
pub(crate) fn check(state: &State, product: NodeProduct) -> Result<()> {
    find_server(state, product)?;
    if product == NodeProduct::Mariadb {
        find_installer(state)?;
    }
    Ok(())
}

fn find_installer(state: &State) -> Result<PathBuf> {
    let package = "mariadb-server-core and mariadb-client-core";
    let names = ["mariadb-install-db", "mysql_install_db"];
    let installed = state.software.as_deref().and_then(|root| machine::installed(root, &names));
    installed.map_or_else(|| machine::need(&names, package), Ok)
}

/// Makes the data folders of all nodes: the server makes one, the others are copies of it.
pub(crate) fn make_data(cluster: &Cluster, nodes: &[StateNode]) -> Result<()> {
    let Some(first) = nodes.first() else { return Ok(()) };
    let accounts = accounts(cluster, first.product)?;
    for node in nodes {
        write_private(&initial_statements(node), &accounts, cluster.state.run_as)?;
    }
    match first.product {
        NodeProduct::Mariadb => install_mariadb(cluster, first)?,
        _ => initialize_mysql(cluster, first, &initial_statements(first))?,
    }
    for node in &nodes[1..] {
        copy_data(cluster, first, node)?;
    }
    for node in nodes {
        // MySQL takes copies with the same identity for one server.
        let _ = fs::remove_file(node.data().join("auto.cnf"));
        if first.product == NodeProduct::Mysql {
            let _ = fs::remove_file(initial_statements(node));
        }
    }
    Ok(())
}

/// The file of statements that a server executes before its first log-in.
fn initial_statements(node: &StateNode) -> PathBuf {
    node.folder.join("accounts.sql")
}

fn install_mariadb(cluster: &Cluster, node: &StateNode) -> Result<()> {
    let mut arguments = vec![
        "--no-defaults".into(),
        // No server ever runs with the accounts that this makes: see `accounts`.
        "--auth-root-authentication-method=normal".into(),
        "--skip-test-db".into(),
        "--innodb-log-file-size=64M".into(),
        option_with_path("--tmpdir=", &node.folder),
        option_with_path("--datadir=", &node.data()),
    ];
    let state = &cluster.state;
    arguments.extend(state.software.as_deref().map(|root| option_with_path("--basedir=", root)));
    run(cluster, node, &node.launch(find_installer(state)?, arguments))
}

fn initialize_mysql(cluster: &Cluster, node: &StateNode, accounts: &Path) -> Result<()> {
    let server = find_server(&cluster.state, NodeProduct::Mysql)?;
    let configuration = node.folder.join("initialize.cnf");
    let text = format!(
        "[mysqld]\n{}datadir={}\ntmpdir={}\ninnodb_redo_log_capacity=128M\nmysqlx=OFF\nsecure-file-priv=NULL\n",
        server.files,
        node.data().display(),
        node.folder.display()
    );
    write(&configuration, &text)?;
    let mut arguments = server.before;
    arguments.push(option_with_path("--defaults-file=", &configuration));
    // The log holds the password of an account which the file removes.
    arguments.extend(["--initialize".into(), option_with_path("--init-file=", accounts)]);
    run(cluster, node, &node.launch(server.program, arguments))
}

pub(crate) fn option_with_path(option: &str, path: &Path) -> OsString {
    let mut word = OsString::from(option);
    word.push(path);
    word
}

/// Statements, one a line, that a server executes before the first log-in: the accounts of the cluster replace those
/// of a fresh data folder. They stay out of the binary log, since every node begins with them. The load's account has
/// all rights with data, and observes; it changes nothing of the server, and writes nothing where `read_only` forbids
/// it.
fn accounts(cluster: &Cluster, product: NodeProduct) -> Result<String> {
    let user = &cluster.state.user;
    let is_mariadb = product == NodeProduct::Mariadb;
    let fresh = "DELETE FROM mysql.global_priv WHERE User NOT IN ('mariadb.sys', 'PUBLIC');\n\
                 DELETE FROM mysql.db;\nDELETE FROM mysql.proxies_priv;\nFLUSH PRIVILEGES;\n";
    let mut text = format!(
        include_str!("accounts.sql"),
        fresh = if is_mariadb { fresh } else { "" },
        admin = ADMIN,
        admin_password = cluster.secrets.admin,
        replication = REPLICATION,
        replication_password = cluster.secrets.replication,
        user = user,
        password = cluster.folder.password()?,
        more = if is_mariadb { ", SLAVE MONITOR" } else { "" },
    );
    if !is_mariadb {
        let _ = writeln!(text, "GRANT XA_RECOVER_ADMIN ON *.* TO '{user}'@'%';");
        text.push_str("DROP USER root@localhost;\n");
    }
    Ok(text)
}

/// Writes the configuration of a node; returns how its server is started.
pub(crate) fn launch(state: &State, node: &StateNode, number: usize) -> Result<Launch> {
    fits_socket(&node.folder.join("s"), 0)?;
    let server = find_server(state, node.product)?;
    let configuration = node.folder.join("server.cnf");
    let first = initial_statements(node);
    write(&configuration, &configuration_text(state, node, number, &server.files))?;
    let mut arguments = server.before;
    arguments.push(option_with_path("--defaults-file=", &configuration));
    if first.is_file() {
        arguments.push(option_with_path("--init-file=", &first));
    }
    Ok(node.launch(server.program, arguments))
}

/// The configuration of the papers' RDS instances (every commit flushed in redo and binary log), with caches of this
/// machine's size.
fn configuration_text(state: &State, node: &StateNode, number: usize, files: &str) -> String {
    let mut text = format!(
        include_str!("server.cnf"),
        files = files,
        data = node.data().display(),
        folder = node.folder.display(),
        host = node.host,
        port = node.port,
        number = number,
        cache = state.cache_mib,
    );
    let is_mariadb = node.product == NodeProduct::Mariadb;
    let threads = std::thread::available_parallelism().map_or(1, usize::from).clamp(2, 8);
    text += &if is_mariadb {
        format!(include_str!("mariadb.cnf"), threads = threads)
    } else {
        format!(include_str!("mysql.cnf"), threads = threads)
    };
    text.push_str(match (node.role.as_str(), is_mariadb) {
        ("read_only", true) => "read-only=ON\n",
        ("read_only", false) => "super-read-only=ON\n",
        // What TPC-C asks for: ShardingSphere-Proxy does not pass the level of a session on.
        ("shard", _) => "transaction-isolation=READ-COMMITTED\n",
        _ => "",
    });
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
    let replicas: Vec<&StateNode> =
        state.nodes.iter().filter(|node| node.role == "read_only").collect();
    // Before the cluster is ready, or when all others were taken out, a primary has no one to wait for.
    let waits = !is_replica && state.is_ready && replicas.iter().any(|node| node.pid != 0);
    let [waits, acknowledges] = [waits, is_replica].map(|is_on| if is_on { "ON" } else { "OFF" });
    if node.product == NodeProduct::Mariadb {
        return format!(
            include_str!("semi-sync-mariadb.cnf"),
            waits = waits,
            acknowledges = acknowledges
        );
    }
    let count = state.replication.acknowledgements(replicas.len()).max(1);
    format!(
        include_str!("semi-sync-mysql.cnf"),
        count = count,
        waits = waits,
        acknowledges = acknowledges
    )
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Stream {
    pub(crate) is_running: bool,
    pub(crate) error: Option<String>,
    /// Seconds behind the primary, by the node's own account.
    pub(crate) lag_s: Option<f64>,
}

/// The words of MariaDB or MySQL for the same things.
struct Dialect {
    replica: &'static str,
    source: &'static str,
    /// The query for the transactions that a node has executed.
    position: &'static str,
    wait: &'static str,
    /// The setting that forbids writes, also those of administrators if the product has one for these.
    read_only: &'static str,
}

const MARIADB: Dialect = Dialect {
    replica: "slave",
    source: "master",
    // `gtid_current_pos` leaves out what another server wrote before this one's data were copied.
    position: "SELECT IF(@@GLOBAL.gtid_binlog_pos='', @@GLOBAL.gtid_current_pos, @@GLOBAL.gtid_binlog_pos)",
    wait: "MASTER_GTID_WAIT",
    read_only: "read_only",
};

const MYSQL: Dialect = Dialect {
    replica: "replica",
    source: "source",
    position: "SELECT @@GLOBAL.gtid_executed",
    wait: "WAIT_FOR_EXECUTED_GTID_SET",
    read_only: "super_read_only",
};

fn find_dialect(admin: &Admin) -> &'static Dialect {
    if is_mariadb(admin) { &MARIADB } else { &MYSQL }
}

fn is_mariadb(admin: &Admin) -> bool {
    admin.product == NodeProduct::Mariadb
}

/// Has a node follow `source` from what it has.
pub(crate) fn follow(admin: &Admin, source: &StateNode, password: &str) -> Result<()> {
    let (host, port, user) = (&source.host, source.port, REPLICATION);
    let change = if is_mariadb(admin) {
        format!(
            "CHANGE MASTER TO MASTER_HOST='{host}', MASTER_PORT={port}, MASTER_USER='{user}', \
             MASTER_PASSWORD='{password}', MASTER_USE_GTID=slave_pos, MASTER_CONNECT_RETRY=1"
        )
    } else {
        format!(
            "CHANGE REPLICATION SOURCE TO SOURCE_HOST='{host}', SOURCE_PORT={port}, SOURCE_USER='{user}', \
             SOURCE_PASSWORD='{password}', SOURCE_AUTO_POSITION=1, SOURCE_SSL=1, SOURCE_CONNECT_RETRY=1"
        )
    };
    let Dialect { replica, .. } = find_dialect(admin);
    admin.ask_all(&[&format!("STOP {replica}"), &change, &format!("START {replica}")]).map(drop)
}

/// The state of a node's replication; `None` if it has none.
pub(crate) fn stream(admin: &Admin) -> Result<Option<Stream>> {
    let answer = admin.query(&format!("SHOW {} STATUS", find_dialect(admin).replica))?;
    if answer.is_empty() {
        return Ok(None);
    }
    let [receives, applies] =
        [["Slave_IO_Running", "Replica_IO_Running"], ["Slave_SQL_Running", "Replica_SQL_Running"]]
            .map(|names| answer.column(&names).eq_ignore_ascii_case("yes"));
    let errors = [answer.column(&["Last_IO_Error"]), answer.column(&["Last_SQL_Error"])];
    let error = errors.into_iter().find(|error| !error.is_empty()).map(str::to_owned);
    let lag_s = answer.column(&["Seconds_Behind_Master", "Seconds_Behind_Source"]).parse().ok();
    Ok(Some(Stream { is_running: receives && applies, error, lag_s }))
}

/// Returns the transactions that a node has executed, in the form of its product.
pub(crate) fn position(admin: &Admin) -> Result<String> {
    Ok(admin.query(find_dialect(admin).position)?.single().replace(char::is_whitespace, ""))
}

/// Waits at most a second until a node has executed up to `position`; returns false if that takes longer.
pub(crate) fn wait_for(admin: &Admin, position: &str) -> Result<bool> {
    let sql = format!("SELECT {}('{position}', 1)", find_dialect(admin).wait);
    Ok(admin.query(&sql)?.single() == "0")
}

fn set_semi_sync(admin: &Admin, word: &str, is_on: bool) -> Result<()> {
    let value = if is_on { "ON" } else { "OFF" };
    admin.query(&format!("SET GLOBAL rpl_semi_sync_{word}_enabled={value}")).map(drop)
}

/// Has the primary wait for its read-only nodes from now on, or not any more.
pub(crate) fn wait_for_replicas(admin: &Admin, waits: bool) -> Result<()> {
    set_semi_sync(admin, find_dialect(admin).source, waits)
}

/// Has a node acknowledge what it receives, from its next connection to the primary on.
pub(crate) fn acknowledge(admin: &Admin, acknowledges: bool) -> Result<()> {
    set_semi_sync(admin, find_dialect(admin).replica, acknowledges)
}

/// Returns the number of read-only nodes that acknowledge to this primary.
pub(crate) fn acknowledging(admin: &Admin) -> Result<usize> {
    let word = find_dialect(admin).source;
    let answer = admin.query(&format!("SHOW STATUS LIKE 'Rpl_semi_sync_{word}_clients'"))?;
    Ok(answer.column(&["Value"]).parse().unwrap_or(0))
}

pub(crate) fn set_read_only(admin: &Admin, is_read_only: bool) -> Result<()> {
    let sql = if is_read_only {
        format!("SET GLOBAL {}=ON", find_dialect(admin).read_only)
    } else {
        // This leaves super_read_only, too.
        "SET GLOBAL read_only=OFF".to_owned()
    };
    admin.query(&sql).map(drop)
}

/// Ends receiving; transactions that were received are still applied. Returns those that a node has received, applied
/// or not.
pub(crate) fn stop_receiving(admin: &Admin) -> Result<String> {
    let replica = find_dialect(admin).replica;
    admin.query(&format!("STOP {replica} IO_THREAD"))?;
    let answer = admin.query(&format!("SHOW {replica} STATUS"))?;
    Ok(answer.column(&["Gtid_IO_Pos", "Retrieved_Gtid_Set"]).replace(char::is_whitespace, ""))
}

/// Ends replication and forgets whom the node followed.
pub(crate) fn follow_nobody(admin: &Admin) -> Result<()> {
    let word = find_dialect(admin).replica;
    admin.ask_all(&[&format!("STOP {word}"), &format!("RESET {word} ALL")]).map(drop)
}

/// Returns true if a node has executed everything in `target`.
pub(crate) fn has(admin: &Admin, target: &str) -> Result<bool> {
    if is_mariadb(admin) {
        return Ok(includes(&position(admin)?, target));
    }
    let sql = format!("SELECT GTID_SUBSET('{target}', @@GLOBAL.gtid_executed)");
    Ok(admin.query(&sql)?.single() == "1")
}

/// Returns true if a node has transactions that the primary lacks: written as the primary, received by no other node.
pub(crate) fn has_diverged(admin: &Admin, primary: &Admin) -> Result<bool> {
    if is_mariadb(admin) {
        let sql = "SELECT @@GLOBAL.gtid_binlog_state";
        let (own, its) = (admin.query(sql)?, primary.query(sql)?);
        return Ok(!includes_state(its.single(), own.single()));
    }
    Ok(!has(primary, &position(admin)?)?)
}

/// Lets replication continue after the last transaction that the node has, by any server.
pub(crate) fn begin_from_own(admin: &Admin) -> Result<()> {
    follow_nobody(admin)?;
    if is_mariadb(admin) {
        let position = position(admin)?;
        admin.query(&format!("SET GLOBAL gtid_slave_pos='{position}'"))?;
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

/// Returns true if position `a` isn't before `b` in any domain: numbers grow from server to server.
fn includes(a: &str, b: &str) -> bool {
    identifiers(b).all(|(domain, _, number)| {
        identifiers(a).any(|(other, _, reached)| other == domain && reached >= number)
    })
}

/// Returns true if binary log `a` has the last transaction of each server in `b`.
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
