//! Local clusters of real servers: found on this machine, started on loopback with data folders and ports of
//! their own, torn down completely. Nothing that makes or measures load depends on this crate.
//!
//! A cluster is a folder: `cluster.json` says what was started, and is written before each start, so that
//! [`Cluster::down`] finds everything also after a kill.

pub mod endpoint;
mod error;
mod launch;
mod state;

pub use error::ClusterError;
pub use launch::{Launch, Place};
pub use state::{Account, Backend, EndpointKind, Product, State, StateNode, TopologyKind};
