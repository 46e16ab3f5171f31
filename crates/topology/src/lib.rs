//! Local clusters of real servers: found on this machine, started on loopback with data folders and ports of
//! their own, torn down completely. Nothing that makes or measures load depends on this crate.
//!
//! A cluster is a folder. Its `cluster.json` is written before each start, so that [`Cluster::down`] finds
//! everything also after a kill.
//!
//! - `request`: the arguments of `up`. `cluster`: made, opened, taken down, its nodes started.
//! - `mysql`, `postgres`, `endpoint`: what each product needs.
//! - `roles`: kill, stop, start, freeze, promotion and return. `network`: partitions. `status`: health; process, memory and
//!   log of a node that somebody waits for.
//!
//! Every process carries the cluster's random identity in its environment, so that `down` also finds processes
//! that no file names. Only children of PostgreSQL, which overwrite their environment, are found by the node's
//! folder that they work in. Changes happen under a lock of the folder, and each reads `cluster.json` again: a
//! fault of a run and a terminal may act on the same cluster.
//!
//! Accounts are made before the first log-in is possible: no server ever listens with an empty password.
//! Primaries wait for acknowledgements only while a read-only node can give them. Promotion loses nothing that
//! any living node has received: the node applies all that it has, then fetches the rest from the node that is
//! furthest. A node that returns with transactions that no other has gets a new data folder.

/// A [`ClusterError`] with a formatted message.
macro_rules! failed {
    ($($text:tt)*) => { $crate::ClusterError::new(format!($($text)*)) };
}

mod admin;
mod cluster;
pub mod endpoint;
mod folder;
mod guarded;
mod machine;
mod mysql;
mod network;
mod postgres;
mod process;
mod request;
mod roles;
mod status;

pub use cluster::Cluster;
pub use dyno_core::Error as ClusterError;
pub use folder::{Account, Home, NodeProduct, State, StateNode, TopologyKind};
pub use machine::installed;
pub use request::{REPLICAS_MAX, Replication, Request};
pub use status::{Health, NodeStatus, NodeWatch};

pub(crate) type Result<T, E = ClusterError> = std::result::Result<T, E>;

fn stopped_error() -> ClusterError {
    ClusterError::stopped("Stopped before the cluster was ready.")
}
