//! MySQL Router in front of a MySQL primary and its replicas, reads and writes split on one port.
//!
//! Router finds the nodes in tables that MySQL Shell makes elsewhere; [`metadata`] makes those that Router reads. It
//! splits only statements sent as text: prepared ones all go to the primary.

use super::{EndpointOptions, Front};
use crate::folder::set_owner;
use crate::machine::{find, libraries, loaded};
use crate::process::Launch;
use crate::{ClusterError, Result, StateNode};
use std::ffi::OsString;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The account that Router reads its metadata with.
const USER: &str = "dyno_router";
/// Any number that is the same in metadata and state.
const CLUSTER: &str = "6b1f9d3e-0f4a-11ef-9a53-64796e6f0001";

pub(super) struct RouterSoftware {
    router: PathBuf,
    keyring: PathBuf,
    /// The folder that it was unpacked to, if it isn't installed.
    root: Option<PathBuf>,
}

impl RouterSoftware {
    /// Searches the given folder, or this machine.
    pub(super) fn find(options: &EndpointOptions) -> Result<Self> {
        let programs = ["mysqlrouter", "mysqlrouter_keyring"].map(|name| match &options.software {
            Some(root) => Some(root.join("usr/bin").join(name)).filter(|path| path.is_file()),
            None => find(&[name]),
        });
        let [Some(router), Some(keyring)] = programs else {
            return Err(ClusterError::new("MySQL Router is not installed.").with_hint(
                "install the package mysql-router, or unpack it with all it depends on into a \
                 folder and name that with --software FOLDER",
            ));
        };
        Ok(RouterSoftware { router, keyring, root: options.software.clone() })
    }

    /// The program and what precedes its arguments: an unpacked program needs its own loader.
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

    /// Has the keyring's program work on the files `key` and `keyring`, with `input` as its input; returns false if it
    /// fails.
    fn run_keyring(
        &self,
        (key, keyring): (&Path, &Path),
        arguments: &[&str],
        input: &str,
    ) -> std::io::Result<bool> {
        let (program, before) = self.call(&self.keyring);
        let mut master = OsString::from("--master-key-file=");
        master.push(key);
        let mut child = Command::new(program)
            .args(before)
            .arg(arguments[0])
            .arg(master)
            .arg(keyring)
            .args(&arguments[1..])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        if let Some(mut stdin) = child.stdin.take() {
            stdin.write_all(input.as_bytes())?;
        }
        Ok(child.wait()?.success())
    }
}

/// The statements that recreate Router's metadata, for the primary; they replicate to all nodes. `server_uuids` has
/// the `@@server_uuid` of each backend.
pub(crate) fn metadata<'a>(
    backends: impl Iterator<Item = (&'a StateNode, String)>,
    password: &str,
) -> Vec<String> {
    let fixed = include_str!("metadata.sql").replace("$CLUSTER", CLUSTER).replace("$USER", USER);
    let mut statements: Vec<String> =
        fixed.replace("$PASSWORD", password).split_terminator(";\n").map(str::to_owned).collect();
    for (number, (node, uuid)) in (1..).zip(backends) {
        let StateNode { name, role, port, .. } = node;
        let role = if role == "primary" { "PRIMARY" } else { "SECONDARY" };
        statements.push(format!(
            "INSERT INTO v2_instances VALUES ({number}, '{CLUSTER}', '{name}', '127.0.0.1:{port}', NULL, '{{}}')"
        ));
        statements.push(format!(
            "INSERT INTO v2_ar_members VALUES (1, '{CLUSTER}', {number}, '{name}', '{uuid}', '{role}')"
        ));
    }
    statements
}

/// Writes the configuration, the state and the keyring. Before the start the metadata must exist, and in the folder
/// `client-cert.pem` and `client-key.pem`, a server's own, without which MySQL's accounts can't log in through Router.
pub(super) fn prepare(front: &Front<'_>) -> Result<Launch> {
    let software = RouterSoftware::find(&front.options)?;
    let servers: Vec<String> = std::iter::once(front.need_primary()?)
        .chain(front.with_role("read_only"))
        .map(|node| format!("\"mysql://127.0.0.1:{}\"", node.port))
        .collect();
    let state = format!(
        "{{\"metadata-cache\":{{\"group-replication-id\":\"{CLUSTER}\",\"cluster-metadata-servers\":[{}],\
     \"view-id\":1}},\"version\":\"1.0.0\"}}\n",
        servers.join(",")
    );
    front.write_private("state.json", &state)?;
    for folder in ["run", "data"] {
        // The folder is what is needed; the file makes it.
        front.write_private(&format!("{folder}/keep"), "")?;
    }
    let conf = front.write_private("mysqlrouter.conf", &configuration_text(front, &software))?;
    make_keyring(front, &software)?;
    let (program, mut arguments) = software.call(&software.router);
    arguments.extend(["-c".into(), conf.into()]);
    Ok(front.node.launch(program, arguments))
}

/// Pipes the password into Router's own encrypted file.
fn make_keyring(front: &Front<'_>, software: &RouterSoftware) -> Result<()> {
    let (folder, password) = (&front.node.folder, &front.options.metadata_password);
    let (key, keyring) = (folder.join("key"), folder.join("keyring"));
    for file in [&key, &keyring] {
        let _ = std::fs::remove_file(file);
    }
    let files = (key.as_path(), keyring.as_path());
    let created = software.run_keyring(files, &["init"], "").and_then(|is_made| {
        let (words, input) = (["set", USER, "password"], format!("{password}\n"));
        Ok(is_made && software.run_keyring(files, &words, &input)?)
    });
    let owned = [&key, &keyring].into_iter().try_for_each(|file| set_owner(file, front.run_as));
    match (created, owned) {
        (Ok(true), Ok(())) => Ok(()),
        (Err(error), _) | (_, Err(error)) => {
            Err(failed!("MySQL Router's keyring can't be made: {error}."))
        }
        _ => Err(ClusterError::new("MySQL Router's keyring can't be made.")
            .with_hint("the program mysqlrouter_keyring failed; is it of the same version?")),
    }
}

fn configuration_text(front: &Front<'_>, software: &RouterSoftware) -> String {
    let plugins = software.root.as_ref().map(|root| root.join("usr/lib/mysqlrouter/plugin"));
    format!(
        include_str!("mysqlrouter.conf"),
        folder = front.node.folder.display(),
        port = front.node.port,
        connections = front.options.clients_max.max(16) + 16,
        plugins = plugins
            .map(|plugins| format!("plugin_folder={}\n", plugins.display()))
            .unwrap_or_default(),
        user = USER,
    )
}
