//! Arguments of `dyno cluster up`.

use crate::{ClusterError, EndpointKind, Result, TopologyKind, endpoint, settings};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Most read-only nodes of a cluster, as many as the papers measured.
pub const REPLICAS_MAX: u32 = 8;
/// Most shards of a sharded cluster.
const SHARDS_MAX: u32 = 16;
/// Shards of a sharded cluster that says nothing of them, as many as the papers' smallest.
pub(crate) const SHARDS_USUAL: u32 = 4;

dyno_core::named! {
    /// What a commit on the primary waits for.
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
            // Of n + 1 nodes, floor((n + 1) / 2) + 1 are a majority; the primary is one of them.
            Replication::Quorum => replicas.div_ceil(2),
        }
    }
}

#[derive(Clone, Debug)]
pub struct Request {
    /// The folder of the cluster; must not exist or be empty.
    pub dir: PathBuf,
    pub topology: TopologyKind,
    /// Read-only nodes beside the primary, 0 to [`REPLICAS_MAX`]; a sharded cluster has none.
    pub replicas: u32,
    /// Shards of a sharded cluster, 1 to 16; `None` is four.
    pub shards: Option<u32>,
    pub replication: Replication,
    pub endpoint: Option<EndpointKind>,
    /// Settings of all servers beside those of the template: names and values.
    pub settings: Vec<(String, String)>,
    /// A network namespace for each node, which can be cut off. Needs root.
    pub isolated: bool,
    /// A folder that MySQL was unpacked to.
    pub mysql: Option<PathBuf>,
    pub endpoint_options: endpoint::EndpointOptions,
    /// True to give up, and take down what was started.
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
            mysql: None,
            endpoint_options: endpoint::EndpointOptions::default(),
            is_stopped: || false,
        }
    }

    pub(crate) fn check(&self) -> Result<()> {
        let wrong = |message: String, hint: &str| Err(ClusterError::new(message).with_hint(hint));
        if self.replicas > REPLICAS_MAX {
            return wrong(
                format!(
                    "A cluster has at most {REPLICAS_MAX} read-only nodes, not {}.",
                    self.replicas
                ),
                "the papers measured one to eight",
            );
        }
        if self.replicas == 0 && self.replication != Replication::Async {
            let name = self.replication.name();
            return wrong(
                format!("A cluster without read-only nodes has no {name} replication."),
                "add --replicas 1, or more",
            );
        }
        let is_sharded = self.topology.is_sharded();
        if self.shards.is_some_and(|shards| !(1..=SHARDS_MAX).contains(&shards)) {
            let message = format!("A sharded cluster has 1 to {SHARDS_MAX} shards.");
            return wrong(message, "leave --shards out for four of them");
        }
        let (message, hint) = match (self.topology, self.endpoint) {
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
            (TopologyKind::Postgres, Some(EndpointKind::Shardingsphere | EndpointKind::Router)) => {
                (
                    "ShardingSphere-Proxy and MySQL Router stand in front of MySQL's protocol.",
                    "use --endpoint pgpool for PostgreSQL",
                )
            }
            (TopologyKind::Mariadb | TopologyKind::Mysql, Some(EndpointKind::Pgpool)) => (
                "pgpool-II stands in front of PostgreSQL only.",
                "use --endpoint shardingsphere for MySQL's protocol",
            ),
            (TopologyKind::Mariadb, Some(EndpointKind::Router)) => (
                "MySQL Router stands in front of MySQL, not of MariaDB.",
                "use --endpoint shardingsphere, or the topology mysql",
            ),
            (TopologyKind::Sharded, Some(EndpointKind::Pgpool | EndpointKind::Router)) => {
                ("Only ShardingSphere-Proxy stands in front of shards.", "leave --endpoint out")
            }
            (TopologyKind::ShardedPostgres, Some(_)) => {
                ("The coordinator stands in front of its shards itself.", "leave --endpoint out")
            }
            _ if self.isolated && (self.endpoint.is_some() || is_sharded) => (
                "An isolated cluster has no endpoint: it would stand in another network than the nodes.",
                "leave --isolated out; --isolated is for partitions of a primary and its read-only nodes",
            ),
            _ => return settings::check(self.topology, &self.settings),
        };
        wrong(message.to_owned(), hint)
    }
}
