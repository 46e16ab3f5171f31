//! Arguments of `dyno cluster up`.
//!
//! Settings of servers that `--set` names.

use crate::cluster::server_product;
use crate::{ClusterError, NodeProduct, Result, TopologyKind, endpoint};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Most read-only nodes of a cluster, as many as the papers measured.
pub const REPLICAS_MAX: u32 = 8;
/// Most shards of a sharded cluster.
const SHARDS_MAX: u32 = 16;
/// Shards of a sharded cluster that says nothing of them, as many as the papers' smallest.
pub(crate) const SHARDS_USUAL: u32 = 4;

dyno_core::named! {
    /// The event that a commit on the primary waits for.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum Replication {
        #[default]
        Async = "async",
        /// Until one read-only node has received it.
        SemiSync = "semi-sync",
        /// Until a majority of all nodes, the primary among them, has it.
        Quorum = "quorum",
    }
}

impl Replication {
    /// Number of read-only nodes that must acknowledge a commit.
    pub fn acknowledgements(self, replicas: usize) -> usize {
        match self {
            Replication::Async => 0,
            Replication::SemiSync => replicas.min(1),
            // Among n + 1 nodes, floor((n + 1) / 2) + 1 are a majority; the primary is one of them.
            Replication::Quorum => replicas.div_ceil(2),
        }
    }
}

#[derive(Clone, Debug)]
pub struct Request {
    /// The folder of the cluster; must not exist or be empty.
    pub dir: PathBuf,
    pub topology: TopologyKind,
    /// Read-only nodes alongside the primary, 0 to [`REPLICAS_MAX`]; a sharded cluster has none.
    pub replicas: u32,
    /// Shards of a sharded cluster, 1 to 16; `None` is four.
    pub shards: Option<u32>,
    pub replication: Replication,
    /// The product in front of the nodes: pgpool-II, ShardingSphere-Proxy or MySQL Router.
    pub endpoint: Option<NodeProduct>,
    /// Settings of all servers alongside those of the template: names and values.
    pub settings: Vec<(String, String)>,
    /// A network namespace for each node, which can be cut off. Needs root.
    pub isolated: bool,
    /// The folder that the servers are installed in (`bin`), or that MySQL was unpacked to; else they are looked for.
    pub software: Option<PathBuf>,
    /// The folder of a stopped cluster of one server of this product: the new one begins with its data and passwords.
    pub copy_of: Option<PathBuf>,
    pub endpoint_options: endpoint::EndpointOptions,
    /// Returns true to give up, and take down what was started.
    pub is_stopped: fn() -> bool,
}

impl Request {
    /// A cluster with nothing but its first nodes.
    pub fn new(dir: impl Into<PathBuf>, topology: TopologyKind) -> Self {
        Request {
            dir: dir.into(),
            topology,
            replicas: 0,
            shards: None,
            replication: Replication::Async,
            endpoint: None,
            settings: Vec::new(),
            isolated: false,
            software: None,
            copy_of: None,
            endpoint_options: endpoint::EndpointOptions::default(),
            is_stopped: || false,
        }
    }

    /// Checks that the options fit together, and the settings.
    pub(crate) fn check(&self) -> Result<()> {
        use NodeProduct::{Pgpool, Router, Shardingsphere};
        let is_sharded = self.topology.is_sharded();
        let waits = self.replication != Replication::Async;
        let (replicas, replication) = (self.replicas, self.replication.name());
        let too_many =
            format!("A cluster has at most {REPLICAS_MAX} read-only nodes, not {replicas}.");
        let no_replicas =
            format!("A cluster without read-only nodes has no {replication} replication.");
        let shards = format!("A sharded cluster has 1 to {SHARDS_MAX} shards.");
        let (message, hint) = match (self.topology, self.endpoint) {
            _ if replicas > REPLICAS_MAX => (too_many.as_str(), "the papers measured one to eight"),
            _ if replicas == 0 && waits => (no_replicas.as_str(), "add --replicas 1, or more"),
            _ if self.shards.is_some_and(|shards| !(1..=SHARDS_MAX).contains(&shards)) => {
                (shards.as_str(), "leave --shards out for four of them")
            }
            _ if is_sharded && self.replicas > 0 => {
                ("Shards have no read-only nodes.", "leave --replicas out")
            }
            _ if !is_sharded && self.shards.is_some() => (
                "Only a sharded cluster has shards.",
                "use the topology sharded or sharded-postgres",
            ),
            (TopologyKind::Mariadb, _) if self.replication == Replication::Quorum => (
                "MariaDB waits for one read-only node, not for a quorum.",
                "use --replication semi-sync",
            ),
            (TopologyKind::Postgres, Some(Shardingsphere | Router)) => (
                "ShardingSphere-Proxy and MySQL Router work in front of MySQL's protocol.",
                "use --endpoint pgpool for PostgreSQL",
            ),
            (TopologyKind::Mariadb | TopologyKind::Mysql, Some(Pgpool)) => (
                "pgpool-II works in front of PostgreSQL only.",
                "use --endpoint shardingsphere for MySQL's protocol",
            ),
            (TopologyKind::Mariadb, Some(Router)) => (
                "MySQL Router works in front of MySQL, not of MariaDB.",
                "use --endpoint shardingsphere, or the topology mysql",
            ),
            (TopologyKind::Sharded, Some(Pgpool | Router)) => {
                ("Only ShardingSphere-Proxy works in front of shards.", "leave --endpoint out")
            }
            (TopologyKind::ShardedPostgres, Some(_)) => {
                ("The coordinator is in front of its shards itself.", "leave --endpoint out")
            }
            _ if self.isolated && (self.endpoint.is_some() || is_sharded) => (
                "An isolated cluster has no endpoint: it would be in another network than the nodes.",
                "leave --isolated out; --isolated is for partitions of a primary and its read-only nodes",
            ),
            _ => return check_settings(self.topology, &self.settings),
        };
        Err(ClusterError::new(message).with_hint(hint))
    }
}

/// Settings of MySQL and MariaDB that dyno owns: where a server listens, its part in the cluster, where its files are.
const OF_MYSQL: &str = include_str!("mysql/own-settings.txt");
/// Like [`OF_MYSQL`], but of PostgreSQL.
const OF_POSTGRES: &str = include_str!("postgres/own-settings.txt");

/// A value must not add its own lines to a configuration, nor change what dyno itself arranges.
pub(crate) fn check_settings(topology: TopologyKind, settings: &[(String, String)]) -> Result<()> {
    for (name, value) in settings {
        let mut letters = name.chars();
        let is_name = !name.is_empty()
            && letters.all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.'));
        if !is_name || value.contains(|c: char| c.is_control()) {
            return Err(failed!("`{name}={value}` isn't a setting of a server.")
                .with_hint("write --set NAME=VALUE, such as --set max_connections=1000"));
        }
        if let Some(owned) = owned(topology, name) {
            let full_name = if owned == name { String::new() } else { format!(" ({owned})") };
            return Err(failed!(
                "`{name}`{full_name} is dyno's own setting: it says where servers listen, where their files are \
                 and whom they follow."
            )
            .with_hint(format!("leave --set {name} out: servers of a cluster listen on loopback only, on free ports")));
        }
    }
    Ok(())
}

/// dyno's setting that a name means. MySQL takes every beginning of a name that fits only one, and words before it.
fn owned(topology: TopologyKind, name: &str) -> Option<&'static str> {
    let name = name.to_ascii_lowercase().replace('_', "-");
    if server_product(topology) == NodeProduct::Postgres {
        return OF_POSTGRES.split_whitespace().find(|owned| *owned == name);
    }
    let words = ["loose-", "enable-", "disable-", "skip-", "maximum-"];
    let mut bare = name.as_str();
    while let Some(rest) = words.iter().find_map(|word| bare.strip_prefix(word)) {
        bare = rest;
    }
    OF_MYSQL.split_whitespace().find(|owned| owned.starts_with(bare) || owned.starts_with(&name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn owned_settings_are_whole_names() {
        for name in OF_MYSQL.split_whitespace().chain(OF_POSTGRES.split_whitespace()) {
            let words = name.split('-');
            let is_word =
                |word: &str| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_lowercase());
            assert!(words.into_iter().all(is_word), "`{name}` is cut");
        }
        for name in ["gtid_domain_id", "server_id"] {
            assert_eq!(owned(TopologyKind::Mysql, name), Some(&*name.replace('_', "-")));
        }
        for name in ["include_if_exists", "synchronous_standby_names"] {
            assert_eq!(owned(TopologyKind::Postgres, name), Some(&*name.replace('_', "-")));
        }
    }

    #[test]
    fn settings_that_dyno_owns_are_refused() {
        fn check_setting(topology: TopologyKind, name: &str) -> Option<ClusterError> {
            check_settings(topology, &[(name.to_owned(), "x".to_owned())]).err()
        }
        for name in [
            "bind-address",
            "bind_address",
            "BIND_ADDRESS",
            "loose-bind-address",
            "bind-addr",
            "port",
            "loose_loose_port",
            "skip-grant-tables",
            "skip_networking",
            "skip-log-bin",
            "datadir",
        ] {
            let error =
                check_setting(TopologyKind::Mariadb, name).unwrap_or_else(|| panic!("{name}"));
            assert!(error.message.contains("is dyno's own setting"), "{error}");
            assert!(error.hint.expect("a hint").contains(name));
        }
        for name in ["listen_addresses", "Port", "hba_file", "include", "primary_conninfo"] {
            assert!(check_setting(TopologyKind::ShardedPostgres, name).is_some(), "{name}");
        }
        for name in ["innodb_buffer_pool_size", "max_connections", "sync_binlog", "slow-query-log"]
        {
            assert!(check_setting(TopologyKind::Mysql, name).is_none(), "{name}");
        }
        for name in ["shared_buffers", "port_x", "wal_level", "fsync"] {
            assert!(check_setting(TopologyKind::Postgres, name).is_none(), "{name}");
        }
    }
}
