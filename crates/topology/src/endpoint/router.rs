//! MySQL Router in front of a MySQL primary and its replicas, reads and writes apart on one port.
//!
//! Router reads which nodes there are from tables that MySQL Shell would make; [`metadata`] makes the few that it asks
//! for. It splits statements sent as text only: prepared ones all go to the primary.

use super::{Options, primary_and_readers, write_private};
use crate::programs::{find, libraries, loaded};
use crate::{Account, Backend, ClusterError, Launch, Place, Result};
use std::ffi::OsString;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The account that Router reads its metadata with.
pub const USER: &str = "dyno_router";
/// The metadata's schema, of whose name Router has no other.
const SCHEMA: &str = "mysql_innodb_cluster_metadata";
/// Any number that is the same in metadata and state: there is one such cluster behind a Router.
const CLUSTER: &str = "6b1f9d3e-0f4a-11ef-9a53-64796e6f0001";

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Software {
    router: PathBuf,
    keyring: PathBuf,
    /// Where it was unpacked to with all its libraries, if it isn't installed.
    root: Option<PathBuf>,
}

impl Software {
    /// Finds Router in the given folder, else where packages put it.
    pub fn find(options: &Options) -> Result<Self> {
        let missing = || {
            ClusterError::new("MySQL Router is not installed.").with_hint(
                "install the package mysql-router, or unpack it with all it depends on into a \
                 folder and name that with --mysql FOLDER",
            )
        };
        let Some(root) = &options.software else {
            return Ok(Software {
                router: find(&["mysqlrouter"]).ok_or_else(missing)?,
                keyring: find(&["mysqlrouter_keyring"]).ok_or_else(missing)?,
                root: None,
            });
        };
        let inside = |name| Some(root.join("usr/bin").join(name)).filter(|path| path.is_file());
        Ok(Software {
            router: inside("mysqlrouter").ok_or_else(missing)?,
            keyring: inside("mysqlrouter_keyring").ok_or_else(missing)?,
            root: Some(root.clone()),
        })
    }

    /// The program and what comes before its arguments: one that was unpacked beside the system needs its own loader.
    fn call(&self, program: &Path) -> (PathBuf, Vec<OsString>) {
        let Some(root) = &self.root else { return (program.to_owned(), Vec::new()) };
        let folders = [
            libraries(root),
            libraries(root).join("mysql-router/private"),
            root.join("usr/lib/mysql-router"),
            root.join("usr/lib/mysql-router/private"),
            root.join("usr/lib/mysqlrouter/private"),
            root.join("usr/lib/mysqlrouter/plugin"),
            root.join("usr/lib/mysql/private"),
        ];
        loaded(root, program, &folders).unwrap_or_else(|| (program.to_owned(), Vec::new()))
    }
}

/// The statements that make or renew what Router reads, for the primary; they replicate to all nodes. `server_uuids` has
/// the `@@server_uuid` of each backend, in their order. Repeatable, also when roles have changed.
pub fn metadata(
    backends: &[Backend],
    server_uuids: &[String],
    password: &str,
) -> Result<Vec<String>> {
    if backends.len() != server_uuids.len() {
        return Err(ClusterError::new("Router needs the server_uuid of each node."));
    }
    let tables = [
        "schema_version(major int, minor int, patch int)",
        "v2_this_instance(cluster_id char(36), instance_id int, cluster_name varchar(40), cluster_type \
         varchar(8))",
        "v2_ar_clusters(cluster_id char(36), cluster_name varchar(40))",
        "v2_instances(instance_id int, cluster_id char(36), label varchar(64), endpoint varchar(256), \
         xendpoint varchar(256), attributes json)",
        "v2_ar_members(view_id int, cluster_id char(36), instance_id int, label varchar(64), member_id \
         char(36), member_role varchar(10))",
        "v2_router_options(router_id int, router_options json)",
        "v2_routers(router_id int, address varchar(256), attributes json, options json, router_name \
         varchar(64), version varchar(40), last_check_in datetime)",
    ];
    let mut statements =
        vec![format!("DROP DATABASE IF EXISTS {SCHEMA}"), format!("CREATE DATABASE {SCHEMA}")];
    statements.extend(tables.map(|table| format!("CREATE TABLE {SCHEMA}.{table}")));
    for row in [
        "schema_version VALUES (2, 2, 0)".to_owned(),
        "v2_router_options VALUES (1, '{}')".to_owned(),
        format!("v2_this_instance VALUES ('{CLUSTER}', 1, 'dyno', 'ar')"),
        format!("v2_ar_clusters VALUES ('{CLUSTER}', 'dyno')"),
        "v2_routers VALUES (1, '127.0.0.1', '{}', '{}', 'dyno', NULL, NULL)".to_owned(),
    ] {
        statements.push(format!("INSERT INTO {SCHEMA}.{row}"));
    }
    for (number, (backend, uuid)) in (1..).zip(backends.iter().zip(server_uuids)) {
        let Backend { name, role, port } = backend;
        let role = if role == "primary" { "PRIMARY" } else { "SECONDARY" };
        statements.push(format!(
            "INSERT INTO {SCHEMA}.v2_instances VALUES ({number}, '{CLUSTER}', '{name}', \
             '127.0.0.1:{port}', NULL, '{{}}')"
        ));
        statements.push(format!(
            "INSERT INTO {SCHEMA}.v2_ar_members VALUES (1, '{CLUSTER}', {number}, '{name}', '{uuid}', \
             '{role}')"
        ));
    }
    statements.extend([
        format!("CREATE USER IF NOT EXISTS '{USER}'@'%' IDENTIFIED BY '{password}'"),
        format!("GRANT SELECT ON {SCHEMA}.* TO '{USER}'@'%'"),
        format!("GRANT UPDATE ON {SCHEMA}.v2_routers TO '{USER}'@'%'"),
        format!("GRANT SELECT ON performance_schema.* TO '{USER}'@'%'"),
    ]);
    Ok(statements)
}

/// Writes the configuration, the state and the keyring. When it is started the metadata has to be there, and in its folder
/// `client-cert.pem` and `client-key.pem`, a server's own, without which MySQL's accounts can't log in through Router.
pub fn prepare(
    place: &Place,
    backends: &[Backend],
    _account: &Account,
    options: &Options,
) -> Result<Launch> {
    let software = Software::find(options)?;
    let (primary, readers) = primary_and_readers(backends)?;
    let servers: Vec<String> = std::iter::once(primary)
        .chain(readers)
        .map(|backend| format!("\"mysql://127.0.0.1:{}\"", backend.port))
        .collect();
    let state = format!(
        "{{\"metadata-cache\":{{\"group-replication-id\":\"{CLUSTER}\",\"cluster-metadata-servers\":[{}],\
         \"view-id\":1}},\"version\":\"1.0.0\"}}\n",
        servers.join(",")
    );
    write_private(place, "state.json", &state)?;
    for folder in ["run", "data"] {
        // The folder is what is needed; the file makes it.
        write_private(place, &format!("{folder}/keep"), "")?;
    }
    let plugins = software.root.as_ref().map(|root| root.join("usr/lib/mysqlrouter/plugin"));
    let text = configuration(place, plugins.as_deref(), options);
    let conf = write_private(place, "mysqlrouter.conf", &text)?;
    make_keyring(place, &software, &options.metadata_password)?;
    let (program, mut arguments) = software.call(&software.router);
    arguments.extend(["-c".into(), conf.into()]);
    Ok(Launch {
        program,
        arguments,
        environment: Vec::new(),
        folder: place.folder.clone(),
        log: place.folder.join("mysqlrouter.log"),
    })
}

/// The password goes through a pipe into Router's own encrypted file.
fn make_keyring(place: &Place, software: &Software, password: &str) -> Result<()> {
    let key = place.folder.join("key");
    let keyring = place.folder.join("keyring");
    for file in [&key, &keyring] {
        let _ = std::fs::remove_file(file);
    }
    let run = |arguments: &[&str], input: &str| -> std::io::Result<bool> {
        let (program, before) = software.call(&software.keyring);
        let mut master = OsString::from("--master-key-file=");
        master.push(&key);
        let mut child = Command::new(program)
            .args(before)
            .arg(arguments[0])
            .arg(master)
            .arg(&keyring)
            .args(&arguments[1..])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        if let Some(mut stdin) = child.stdin.take() {
            stdin.write_all(input.as_bytes())?;
        }
        Ok(child.wait()?.success())
    };
    let made = run(&["init"], "").and_then(|is_made| {
        Ok(is_made && run(&["set", USER, "password"], &format!("{password}\n"))?)
    });
    let owned = [&key, &keyring].into_iter().try_for_each(|file| super::hand_over(place, file));
    match (made, owned) {
        (Ok(true), Ok(())) => Ok(()),
        (Err(error), _) | (_, Err(error)) => {
            Err(failed!("MySQL Router's keyring can't be made: {error}."))
        }
        _ => Err(ClusterError::new("MySQL Router's keyring can't be made.")
            .with_hint("the program mysqlrouter_keyring failed; is it of the same version?")),
    }
}

fn configuration(place: &Place, plugins: Option<&Path>, options: &Options) -> String {
    let folder = place.folder.display();
    let mut text = format!(
        "[DEFAULT]\n\
         name=dyno\n\
         connect_timeout=5\n\
         read_timeout=30\n\
         keyring_path={folder}/keyring\n\
         master_key_path={folder}/key\n\
         dynamic_state={folder}/state.json\n\
         runtime_folder={folder}/run\n\
         data_folder={folder}/data\n\
         logging_folder=\n\
         unknown_config_option=warning\n\
         max_total_connections={}\n\
         client_ssl_mode=DISABLED\n\
         server_ssl_mode=PREFERRED\n\
         server_ssl_verify=DISABLED\n",
        options.clients_max.max(16) + 16
    );
    if let Some(plugins) = plugins {
        let _ = writeln!(text, "plugin_folder={}", plugins.display());
    }
    let _ = write!(
        text,
        "[logger]\nlevel=WARNING\n\
         [metadata_cache:bootstrap]\n\
         cluster_type=rs\n\
         router_id=1\n\
         user={USER}\n\
         metadata_cluster=dyno\n\
         ttl=0.5\n\
         auth_cache_ttl=-1\n\
         auth_cache_refresh_interval=2\n\
         [routing:split]\n\
         bind_address=127.0.0.1\n\
         bind_port={}\n\
         destinations=metadata-cache://dyno/?role=PRIMARY_AND_SECONDARY\n\
         routing_strategy=round-robin\n\
         protocol=classic\n\
         connection_sharing=1\n\
         access_mode=auto\n\
         client_ssl_mode=PREFERRED\n\
         client_ssl_cert={folder}/client-cert.pem\n\
         client_ssl_key={folder}/client-key.pem\n",
        place.port
    );
    text
}
