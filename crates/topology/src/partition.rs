//! Cutting a node off from the network.

use crate::{Cluster, ClusterError};

impl Cluster {
    /// Cuts the node's packets off.
    ///
    /// # Errors
    /// Where that can't be done.
    pub fn partition(&mut self, name: &str) -> Result<(), ClusterError> {
        let message = format!("The node {name} shares its network with the others.");
        Err(ClusterError::new(message).with_hint("freeze it instead"))
    }

    /// Ends a partition.
    ///
    /// # Errors
    /// Where there is none.
    pub fn heal(&mut self, name: &str) -> Result<(), ClusterError> {
        Err(ClusterError::new(format!("The node {name} is not cut off.")))
    }
}
