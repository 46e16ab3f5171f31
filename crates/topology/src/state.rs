//! `cluster.json`: what a cluster consists of.

use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// The shape of a cluster.
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
}

/// What stands in front of the nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EndpointKind {
    /// pgpool-II, for PostgreSQL.
    Pgpool,
    /// Apache ShardingSphere-Proxy, for MySQL's protocol.
    Shardingsphere,
    /// MySQL Router, where MySQL is installed.
    Router,
}

/// A program that a node executes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Product {
    /// `mariadbd`.
    Mariadb,
    /// `mysqld`.
    Mysql,
    /// `postgres`.
    Postgres,
    /// `pgpool`.
    Pgpool,
    /// ShardingSphere-Proxy, on Java.
    Shardingsphere,
    /// `mysqlrouter`.
    Router,
}

/// Who logs in. The password is made for each cluster and kept in a file that only its owner can read.
#[derive(Clone)]
pub struct Account {
    /// The user.
    pub user: String,
    /// Its password.
    pub password: String,
    /// The database that is made for the load.
    pub database: String,
}

/// A server that an endpoint stands in front of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Backend {
    /// Its name in the cluster.
    pub name: String,
    /// `primary`, `read_only` or `shard`.
    pub role: String,
    /// Its port on 127.0.0.1.
    pub port: u16,
}

/// A node as `cluster.json` has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StateNode {
    /// Such as `n1`, `endpoint`.
    pub name: String,
    /// What it executes.
    pub product: Product,
    /// `primary`, `read_only`, `endpoint` or `shard`; changes when a read-only node is promoted.
    pub role: String,
    /// Its port on 127.0.0.1.
    pub port: u16,
    /// Its folder: data, configuration, log.
    pub folder: PathBuf,
    /// Its process, while it was started; 0 when it was stopped.
    pub pid: u32,
    /// When that process began, in clock ticks after the start of the system: a process that has got the
    /// same number later isn't taken for it.
    pub pid_started_ticks: u64,
}

/// `cluster.json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct State {
    /// Version of this file.
    pub format: u32,
    /// The shape.
    pub topology: TopologyKind,
    /// What a commit waits for: `async`, `semi-sync` or `quorum`.
    pub replication: String,
    /// What stands in front.
    pub endpoint: Option<EndpointKind>,
    /// The user that logs in.
    pub user: String,
    /// The database that was made for the load.
    pub database: String,
    /// All nodes, the primary first, the endpoint last.
    pub nodes: Vec<StateNode>,
}
