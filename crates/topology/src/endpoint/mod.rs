//! Endpoints: one address for all nodes of a cluster.
//!
//! Each endpoint is prepared in its folder (configuration, passwords in files that only its user can read) before
//! each start, for the roles of the moment. Nothing is downloaded: an error names how to get missing software.

mod pgpool;
pub(crate) mod router;
mod shardingsphere;

use crate::folder::{self, OrFailed, set_owner};
use crate::process::Launch;
use crate::{Account, ClusterError, NodeProduct, Result, StateNode, guarded};
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::path::{Path, PathBuf};

dyno_core::named! {
    /// Way in which ShardingSphere-Proxy commits transactions on several shards.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum CrossShardCommit {
        /// Commits in two phases: every shard prepares before the first one commits.
        #[default]
        Xa = "xa",
        /// One shard after the other; what fails in between stays half done.
        Local = "local",
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct EndpointOptions {
    /// The folder of the unpacked program; without it the program is searched on this machine.
    pub software: Option<PathBuf>,
    /// Client connections that it takes at once.
    pub clients_max: u32,
    /// Tables of sysbench that a sharded cluster spreads, `sbtest1` to this number.
    pub sysbench_tables: u32,
    /// ShardingSphere-Proxy over shards only.
    pub transactions: CrossShardCommit,
    /// The password of Router's account for its metadata.
    #[serde(skip)]
    pub metadata_password: String,
}

/// The 256 terminals of the papers, and sessions of those who load, look and check.
const CLIENTS_MAX: u32 = 272;

impl Default for EndpointOptions {
    fn default() -> Self {
        EndpointOptions {
            software: None,
            clients_max: CLIENTS_MAX,
            sysbench_tables: 256,
            transactions: CrossShardCommit::Xa,
            metadata_password: String::new(),
        }
    }
}

/// Checks that the endpoint's program is installed.
pub fn check(product: NodeProduct, options: &EndpointOptions) -> Result<()> {
    match product {
        NodeProduct::Pgpool => pgpool::PgpoolSoftware::find(options).map(drop),
        NodeProduct::Shardingsphere => shardingsphere::ProxySoftware::find(options).map(drop),
        NodeProduct::Router => router::RouterSoftware::find(options).map(drop),
        // The programs of servers are checked with those of the other nodes.
        NodeProduct::Mariadb | NodeProduct::Mysql | NodeProduct::Postgres => Ok(()),
    }
}

/// An endpoint and the nodes behind it: a primary and read-only nodes, or shards.
pub(crate) struct Front<'a> {
    pub(crate) node: &'a StateNode,
    pub(crate) run_as: Option<(u32, u32)>,
    pub(crate) backends: Vec<&'a StateNode>,
    pub(crate) account: Account,
    pub(crate) options: EndpointOptions,
}

/// Writes the configuration of an endpoint into its folder; returns how it is started.
pub(crate) fn prepare(front: &Front<'_>) -> Result<Launch> {
    let password = &front.account.password;
    if password.is_empty() || password.contains(|c: char| !c.is_ascii_alphanumeric() && c != '_') {
        // Every endpoint quotes in another way; passwords of dyno's clusters need no quotes.
        return Err(ClusterError::new(
            "The password of a cluster's account must consist of letters and digits.",
        ));
    }
    match front.node.product {
        NodeProduct::Pgpool => pgpool::prepare(front),
        NodeProduct::Router => router::prepare(front),
        _ => shardingsphere::prepare(front),
    }
}

impl Front<'_> {
    fn need_primary(&self) -> Result<&StateNode> {
        let primary = self.with_role("primary").next();
        primary.ok_or_else(|| ClusterError::new("An endpoint needs a primary behind it."))
    }

    fn with_role(&self, role: &str) -> impl Iterator<Item = &StateNode> {
        self.backends.iter().copied().filter(move |node| node.role == role)
    }

    /// Writes a file that only the endpoint's user can read.
    fn write_private(&self, name: &str, text: &str) -> Result<PathBuf> {
        let path = self.node.folder.join(name);
        if let Some(folder) = path.parent().filter(|folder| !folder.exists()) {
            let result = fs::create_dir(folder).and_then(|()| set_owner(folder, self.run_as));
            result.or_failed("made", folder)?;
        }
        folder::write_private(&path, text, self.run_as)?;
        Ok(path)
    }

    /// The file itself where the endpoint's user can read it, else a copy in the endpoint's folder: software in the
    /// home of root serves a cluster that doesn't run as root.
    fn within_reach(&self, file: &Path) -> Result<PathBuf> {
        if self.is_within_reach(file) {
            return Ok(file.to_owned());
        }
        let folder = self.node.folder.join("software");
        let copy = folder.join(file.file_name().unwrap_or_default());
        fs::create_dir_all(&folder)
            .and_then(|()| set_owner(&folder, self.run_as))
            .and_then(|()| guarded::copy(&mut File::open(file)?, &copy, 0o600, self.run_as))
            .or_failed("written", &copy)?;
        Ok(copy)
    }

    fn is_within_reach(&self, file: &Path) -> bool {
        let Some((user, group)) = self.run_as else { return true };
        let Ok(file) = file.canonicalize() else { return false };
        file.ancestors().enumerate().all(|(depth, path)| {
            // The file must be readable, its folders only passable.
            let right = if depth == 0 { 4 } else { 1 };
            fs::metadata(path).is_ok_and(|metadata| folder::may(&metadata, user, group, right))
        })
    }
}

/// The folder that the options or an environment variable name.
fn software(options: &EndpointOptions, variable: &str) -> Option<PathBuf> {
    options.software.clone().or_else(|| {
        let folder = std::env::var_os(variable).filter(|value| !value.is_empty());
        folder.map(PathBuf::from)
    })
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;

    /// An account with a password that needs no quotes.
    pub(crate) fn account() -> Account {
        Account { user: "dyno".into(), password: "s3cret".into(), database: "dyno".into() }
    }

    /// Nodes of these roles with the ports 5401, 5402 ..., the endpoint with 5499 last.
    pub(crate) fn nodes(folder: &Path, roles: &[&str]) -> Vec<StateNode> {
        let servers = (1..).zip(roles.iter().copied()).chain([(99, "endpoint")]);
        let nodes = servers.map(|(number, role): (u16, &str)| StateNode {
            name: format!("n{number}"),
            product: NodeProduct::Mariadb,
            role: role.to_owned(),
            host: "127.0.0.1".to_owned(),
            port: 5400 + number,
            folder: folder.to_owned(),
            pid: 1,
            pid_started_ticks: 1,
        });
        nodes.collect()
    }

    /// The last node as an endpoint in front of the others.
    pub(crate) fn front(nodes: &[StateNode]) -> Front<'_> {
        let (node, backends) = nodes.split_last().unwrap();
        let (account, options) = (account(), EndpointOptions::default());
        Front { node, run_as: None, backends: backends.iter().collect(), account, options }
    }

    #[test]
    fn files_with_passwords_are_their_owners() {
        let folder = tempfile::tempdir().unwrap();
        let path = front(&nodes(folder.path(), &[])).write_private("conf/a", "text").unwrap();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        assert_eq!(fs::read_to_string(path).unwrap(), "text");
    }

    #[test]
    fn a_password_that_would_need_quotes_is_refused_without_being_shown() {
        let folder = tempfile::tempdir().unwrap();
        let nodes = nodes(folder.path(), &["primary"]);
        let mut front = front(&nodes);
        front.account.password = "it's: {x}".into();
        let error = prepare(&front).unwrap_err();
        assert!(error.message.contains("letters and digits"), "{error}");
        assert!(!error.message.contains("it's"), "{error}");
    }

    #[test]
    fn software_in_a_private_folder_is_out_of_reach_and_copied() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o700)).unwrap();
        let file = folder.path().join("x.jar");
        fs::write(&file, "jar").unwrap();
        let nodes = nodes(folder.path(), &[]);
        assert_eq!(front(&nodes).within_reach(&file).unwrap(), file);
        // A number of no one: it has no rights in a private folder.
        let unprivileged = Front { run_as: Some((4_000_000, 4_000_000)), ..front(&nodes) };
        assert!(!unprivileged.is_within_reach(&file));
        if rustix::process::geteuid().is_root() {
            let copy = unprivileged.within_reach(&file).unwrap();
            assert_eq!(fs::read_to_string(&copy).unwrap(), "jar");
            assert_eq!(fs::metadata(&copy).unwrap().uid(), 4_000_000);
        }
    }
}
