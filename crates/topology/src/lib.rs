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
pub use launch::{Launch, Place};
pub use request::{REPLICAS_MAX, Replication, Request, Silent, Watch};
pub use state::{Account, Backend, EndpointKind, Home, Product, State, StateNode, TopologyKind};
pub use status::{Health, NodeStatus};
