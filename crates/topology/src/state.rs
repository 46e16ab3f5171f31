//! `cluster.json`.

use crate::process::{Launch, Process};
use crate::{Replication, endpoint};
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::path::PathBuf;

/// The version of `cluster.json` that this program writes, the newest that it reads.
pub(crate) const FORMAT: u32 = 1;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TopologyKind {
    /// MariaDB: a primary and read-only nodes.
    Mariadb,
    /// MySQL: a primary and read-only nodes.
    Mysql,
    /// PostgreSQL: a primary and streaming standbys.
    Postgres,
    /// A stateless SQL layer over MariaDB nodes that hold a part of the data each.
    Sharded,
    /// PostgreSQL nodes that hold a part of the data each, behind another one that reaches them by postgres_fdw.
    ShardedPostgres,
}

impl TopologyKind {
    /// Whether each node holds a part of the data.
    pub fn is_sharded(self) -> bool {
        matches!(self, TopologyKind::Sharded | TopologyKind::ShardedPostgres)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EndpointKind {
    Pgpool,
    Shardingsphere,
    Router,
}

dyno_core::named! {
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum NodeProduct {
        Mariadb = "MariaDB",
        Mysql = "MySQL",
        Postgres = "PostgreSQL",
        Pgpool = "pgpool-II",
        Shardingsphere = "ShardingSphere-Proxy",
        Router = "MySQL Router",
    }
}

impl NodeProduct {
    /// Whether it holds data: a proxy doesn't.
    pub(crate) fn is_server(self) -> bool {
        matches!(self, NodeProduct::Mariadb | NodeProduct::Mysql | NodeProduct::Postgres)
    }

    pub fn scheme(self) -> &'static str {
        match self {
            NodeProduct::Postgres | NodeProduct::Pgpool => "postgres",
            NodeProduct::Mariadb
            | NodeProduct::Mysql
            | NodeProduct::Shardingsphere
            | NodeProduct::Router => "mysql",
        }
    }
}

/// The load's account. The password is made for each cluster and kept in a file that only its owner can read.
#[derive(Clone)]
pub struct Account {
    pub user: String,
    pub password: String,
    pub database: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StateNode {
    pub name: String,
    pub product: NodeProduct,
    /// `primary`, `read_only`, `endpoint` or `shard`; changes when a read-only node is promoted.
    pub role: String,
    /// 127.0.0.1, or the address in its own network namespace.
    pub host: String,
    pub port: u16,
    pub folder: PathBuf,
    /// Its process; 0 when it was stopped.
    pub pid: u32,
    /// Start of that process, in clock ticks after the start of the system: identifies it beside its number.
    pub pid_started_ticks: u64,
}

impl StateNode {
    pub(crate) fn process(&self) -> Process {
        Process { pid: self.pid, started_ticks: self.pid_started_ticks }
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.folder.join("data")
    }

    pub(crate) fn log(&self) -> PathBuf {
        self.folder.join("server.log")
    }

    /// A program in the node's folder, whose output goes to the node's log.
    pub(crate) fn launch(&self, program: PathBuf, arguments: Vec<OsString>) -> Launch {
        let (folder, log) = (self.folder.clone(), self.log());
        Launch { program, arguments, environment: Vec::new(), folder, log }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Home {
    pub path: PathBuf,
    pub device: u64,
    /// Its number there, which a moved folder keeps.
    pub inode: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct State {
    pub format: u32,
    /// Random: the mark by which its processes are known.
    pub id: String,
    /// The start of the machine that its processes belong to.
    pub boot_id: String,
    /// The place where it was made: a copy of that folder is no cluster.
    pub home: Option<Home>,
    pub topology: TopologyKind,
    pub replication: Replication,
    pub endpoint: Option<EndpointKind>,
    pub user: String,
    pub database: String,
    /// User and group of the servers, where root made the cluster.
    pub run_as: Option<(u32, u32)>,
    /// True when each node has a network namespace of its own.
    pub isolated: bool,
    /// A folder that MySQL was unpacked to.
    pub mysql: Option<PathBuf>,
    /// Memory for the cache of one server, MiB.
    pub cache_mib: u64,
    /// True once all nodes were ready; before, it can only be taken down.
    pub is_ready: bool,
    pub endpoint_options: endpoint::EndpointOptions,
    /// Settings of the servers beside those of the template.
    pub settings: Vec<(String, String)>,
    /// All nodes, the primary first, the endpoint last.
    pub nodes: Vec<StateNode>,
}

impl State {
    /// Processes of an earlier start of the machine are gone, whoever has their numbers now.
    pub(crate) fn forget_earlier_boots(&mut self, now: &str) {
        if self.boot_id != now {
            for node in &mut self.nodes {
                (node.pid, node.pid_started_ticks) = (0, 0);
            }
            now.clone_into(&mut self.boot_id);
        }
    }
}
