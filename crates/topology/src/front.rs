//! What stands in front of the nodes.

use crate::request::Watch;
use crate::{Cluster, ClusterError, Launch, StateNode};

impl Cluster {
    pub(crate) fn make_endpoint(&mut self, _watch: &mut dyn Watch) -> Result<(), ClusterError> {
        match self.state.endpoint {
            None => Ok(()),
            Some(_) => Err(ClusterError::new("This dyno starts no endpoints.")),
        }
    }

    pub(crate) fn endpoint_launch(&self, node: &StateNode) -> Result<Launch, ClusterError> {
        Err(ClusterError::new(format!("Node {} can't be started.", node.name)))
    }

    pub(crate) fn wait_for_endpoint(&self, _is_stopped: &dyn Fn() -> bool) -> Result<(), ClusterError> {
        Ok(())
    }

    pub(crate) fn ask_endpoint(&self, _node: &StateNode) -> Result<(), ClusterError> {
        Ok(())
    }
}
