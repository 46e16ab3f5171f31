//! Health of a cluster's nodes.

use crate::{Cluster, Result, StateNode};
use serde::Serialize;

dyno_core::named! {
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Health {
        /// It takes log-ins; a read-only node streams.
        Up = "up",
        /// It runs and doesn't work; the status says why.
        Failing = "failing",
        Frozen = "frozen",
        Down = "down",
    }
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct NodeStatus {
    pub name: String,
    pub product: String,
    pub role: String,
    pub url: String,
    /// Its process; 0 when it was stopped.
    pub pid: u32,
    pub health: Health,
    /// Seconds behind the primary, by the node's own account.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lag_s: Option<f64>,
    /// Why it doesn't work.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

impl Cluster {
    /// Fails where a run would wait in vain: for a node that is frozen, or for data of one that follows nobody.
    pub fn check_followers(&self) -> Result<()> {
        let dir = self.folder().display();
        for node in &self.state.nodes {
            let name = &node.name;
            if node.process().is_frozen() {
                return Err(failed!("Node {name} is frozen: a dyno that froze it was killed, or somebody did it by hand.")
                    .with_hint(format!("`dyno cluster thaw {name} --dir {dir}` lets it go on")));
            }
            let asked = || self.probe(node).and_then(|admin| self.stream(node, &admin));
            // What can't be asked is said by whoever connects to it.
            if node.role == "read_only" && matches!(asked(), Ok(None)) {
                return Err(failed!("Node {name} follows nobody: what is read there is old.")
                    .with_hint(format!(
                        "`dyno cluster rejoin {name} --dir {dir}` has it follow the primary"
                    )));
            }
        }
        Ok(())
    }

    /// The status of each node. Nodes that don't answer cost a few seconds each.
    pub fn status(&self) -> Vec<NodeStatus> {
        self.state.nodes.iter().map(|node| self.status_of(node)).collect()
    }

    fn status_of(&self, node: &StateNode) -> NodeStatus {
        let process = node.process();
        let mut status = NodeStatus {
            name: node.name.clone(),
            product: node.product.name().to_owned(),
            role: node.role.clone(),
            url: self.url(node, None),
            pid: node.pid,
            health: Health::Up,
            lag_s: None,
            problem: None,
        };
        if !process.is_alive() {
            let problem = format!(
                "it was stopped or killed, or ended by itself: its log may say why; `dyno cluster start {}` starts it \
                 again",
                node.name
            );
            (status.health, status.problem) = (Health::Down, Some(problem));
        } else if process.is_frozen() {
            status.health = Health::Frozen;
        } else {
            match self.look(node) {
                Ok((lag_s, None)) => status.lag_s = lag_s,
                Ok((lag_s, Some(problem))) => {
                    (status.lag_s, status.health) = (lag_s, Health::Failing);
                    status.problem = Some(problem);
                }
                Err(error) => {
                    (status.health, status.problem) = (Health::Failing, Some(error.message));
                }
            }
        }
        status
    }

    fn look(&self, node: &StateNode) -> Result<(Option<f64>, Option<String>)> {
        if node.role == "endpoint" {
            return self.ask_endpoint(node).map(|()| (None, None));
        }
        let admin = self.probe(node)?;
        if node.role != "read_only" {
            return admin.ask("SELECT 1").map(|_| (None, None));
        }
        let Some(stream) = self.stream(node, &admin)? else {
            return Ok((None, Some("it follows nobody".to_owned())));
        };
        let why =
            || Some(stream.error.clone().unwrap_or("it doesn't follow the primary".to_owned()));
        Ok((stream.lag_s, if stream.is_running { None } else { why() }))
    }
}
