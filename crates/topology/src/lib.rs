//! Local clusters of real servers: found on this machine, started on loopback with data folders and ports of
//! their own, torn down completely. Nothing that makes or measures load depends on this crate.
//!
//! A cluster is a folder: `cluster.json` says what was started, and is written before each start, so that
//! [`Cluster::down`] finds everything also after a kill.
//!
//! - `request`: what is asked for. `cluster`: made, opened, taken down. `make`: how nodes come to life.
//! - `mysql`, `postgres`, `endpoint`: what each product needs.
//! - `fault`: kill, stop, start, freeze. `network`: partitions. `roles`: promotion and return. `status`: how it is.
//! - `folder`, `process`, `programs`, `machine`, `admin`: what all of them stand on.
//!
//! Every process carries the cluster's drawn identity in its environment, so that `down` also finds what
//! nobody lived to write down; nobody is found by name. Only children of PostgreSQL, which overwrite their
//! environment, are found by the node's folder that they work in. Changes happen under a lock of the
//! folder, and each reads `cluster.json` anew: a fault of a run and a terminal may act on the same cluster.
//!
//! Accounts are made before the first log-in is possible, so that no server ever listens with an empty
//! password. Primaries wait for acknowledgements only once there is somebody to give them. Promotion loses
//! nothing that any living node has received: the node applies all of its own, then fetches the rest from
//! the node that is furthest. A node that comes back with transactions that nobody else has gets its data
//! folder made anew.

/// A [`ClusterError`] with a formatted message.
macro_rules! failed {
    ($($text:tt)*) => { $crate::ClusterError::new(format!($($text)*)) };
}

mod admin;
mod cluster;
pub mod endpoint;
mod error;
mod fault;
mod folder;
mod front;
mod launch;
mod machine;
mod make;
mod mysql;
mod network;
mod postgres;
mod process;
mod programs;
mod request;
mod roles;
mod state;
mod status;

pub use cluster::Cluster;
pub use error::ClusterError;
pub(crate) use error::Result;
pub use launch::{Launch, Place};
pub use request::{REPLICAS_MAX, Replication, Request, Silent, Watch};
pub use state::{Account, Backend, EndpointKind, Home, Product, State, StateNode, TopologyKind};
pub use status::{Health, NodeStatus};
