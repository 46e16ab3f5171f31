//! MariaDB and MySQL as nodes: data folder, configuration, command line.

pub(crate) mod replication;

use crate::admin::{ADMIN, REPLICATION};
use crate::folder::{fits_socket, write, write_private};
use crate::process::{Launch, copy_data, run};
use crate::{Cluster, ClusterError, NodeProduct, Replication, Result, State, StateNode, machine};
use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

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
