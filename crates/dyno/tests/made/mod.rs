//! A cluster of real servers that a test has to itself.

use crate::common::ask;
use dyno_core::DbError;
use dyno_testkit::Scratch;
use dyno_topology::{Cluster, Replication, Request, Silent, TopologyKind};
use std::path::PathBuf;

/// A cluster that is taken down at the end, whatever becomes of the test.
pub(crate) struct Made {
    pub(crate) cluster: Cluster,
    pub(crate) folder: PathBuf,
}

impl Drop for Made {
    fn drop(&mut self) {
        let down = Cluster::down(&self.folder);
        assert!(down.is_ok() || std::thread::panicking(), "the cluster stays: {down:?}");
    }
}

impl Made {
    /// A primary, which is `n1`, and two read-only nodes.
    pub(crate) fn up(scratch: &Scratch, topology: TopologyKind) -> Made {
        let folder = scratch.file("cluster");
        let replication = Replication::Async;
        let request = Request { replicas: 2, replication, ..Request::new(&folder, topology) };
        let cluster = Cluster::up(&request, &mut Silent).expect("a cluster");
        Made { cluster, folder }
    }

    /// Asks a node, by its number from 1.
    pub(crate) fn ask(&self, node: usize, sql: &str) -> Result<u64, DbError> {
        let url = self.cluster.node_url(&format!("n{node}")).expect("a node");
        ask(&url, sql).map(|text| text.parse().expect("a number"))
    }
}
