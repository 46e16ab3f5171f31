//! Who does it: a cluster of `dyno cluster`, or commands of the suite.

use crate::databases::ReachedNode;
use crate::failure::Failure;
use dyno_suite::{Fault, FaultAction, PlannedTarget};
use dyno_topology::{Cluster, ClusterError};
use std::path::Path;
use std::process::{Command, Stdio};

/// Who kills, starts and promotes nodes.
pub(super) enum Hands {
    /// dyno itself.
    Cluster(Box<Cluster>),
    /// The suite's commands.
    Commands(Commands),
}

/// The suite's commands, and what they are told.
pub(super) struct Commands {
    target: String,
    node: String,
    command: Option<String>,
    heal: Option<String>,
    promote: Option<String>,
}

impl Hands {
    /// Whoever can do what `plan` wants.
    ///
    /// # Errors
    /// dyno has not started the node, and the suite has no command for it.
    pub(super) fn of(
        plan: &Fault,
        target: &PlannedTarget,
        nodes: &[ReachedNode],
        node: usize,
    ) -> Result<Self, Failure> {
        let name = &nodes[node].name;
        let planned = target.nodes.iter().find(|planned| planned.name == *name);
        let folder = planned.and_then(|planned| planned.cluster.as_deref());
        let commands = || Commands {
            target: target.name.clone(),
            node: name.clone(),
            command: plan.command.clone(),
            heal: plan.heal_command.clone(),
            promote: plan.promote_command.clone(),
        };
        match (plan.action, folder) {
            (FaultAction::Command, _)
                if plan.promote.is_some() && plan.promote_command.is_none() =>
            {
                let message = "The fault promotes a node, and the suite has no command for that.";
                Err(Failure::usage(message)
                    .with_hint("Add `promote_command`, or leave `promote` out of the fault."))
            }
            (FaultAction::Command, _) => Ok(Hands::Commands(commands())),
            (_, Some(folder)) => Cluster::open(Path::new(folder))
                .map(|cluster| Hands::Cluster(Box::new(cluster)))
                .map_err(failure),
            (action, None) => Err(Failure::usage(format!(
                "dyno has not started the node {name} of the target {}, so it can't {} it.",
                target.name,
                action.name()
            ))
            .with_hint(
                "Give a cluster of `dyno cluster`: `--target NAME=cluster:DIR`, or write `action = \
                 \"command\"` with a `command` of your own.",
            )),
        }
    }

    /// Does the fault to a node.
    pub(super) fn inject(&mut self, action: FaultAction, node: &str) -> Result<(), ClusterError> {
        match self {
            Hands::Commands(commands) => commands.run(commands.command.as_deref(), node),
            Hands::Cluster(cluster) => match action {
                FaultAction::Kill => cluster.kill(node),
                FaultAction::Stop => cluster.stop(node),
                FaultAction::Restart => cluster.stop(node).and_then(|()| cluster.start(node)),
                FaultAction::Freeze => cluster.freeze(node),
                FaultAction::Partition => cluster.partition(node),
                FaultAction::Command => Ok(()),
            },
        }
    }

    /// Ends the fault, and says what became of the node: `was started again`. `None` where nobody knows how
    /// to end it.
    pub(super) fn heal(
        &mut self,
        action: FaultAction,
        node: &str,
    ) -> Result<Option<&'static str>, ClusterError> {
        match self {
            Hands::Cluster(cluster) => match action {
                FaultAction::Freeze => cluster.thaw(node).map(|()| Some("goes on")),
                FaultAction::Partition => cluster.heal(node).map(|()| Some("is reached again")),
                _ => cluster.start(node).map(|()| Some("was started again")),
            },
            Hands::Commands(commands) => match &commands.heal {
                Some(text) => commands
                    .run(Some(text), node)
                    .map(|()| Some("was brought back by the suite's command")),
                None => Ok(None),
            },
        }
    }

    /// Makes a node the primary.
    pub(super) fn promote(&mut self, node: &str) -> Result<(), ClusterError> {
        match self {
            Hands::Cluster(cluster) => cluster.promote(node),
            Hands::Commands(commands) => commands.run(commands.promote.as_deref(), node),
        }
    }

    /// Makes a node a replica of the one that has taken its place.
    pub(super) fn rejoin(&mut self, node: &str) -> Result<(), ClusterError> {
        match self {
            Hands::Cluster(cluster) => cluster.rejoin(node),
            Hands::Commands(_) => Ok(()),
        }
    }
}

impl Commands {
    /// Executes one; `node` is told as `DYNO_PROMOTE` where it is not the node of the fault.
    fn run(&self, command: Option<&str>, node: &str) -> Result<(), ClusterError> {
        let Some(text) = command else { return Ok(()) };
        let ended = Command::new("sh")
            .arg("-c")
            .arg(text)
            .env("DYNO_TARGET", &self.target)
            .env("DYNO_NODE", &self.node)
            .env("DYNO_PROMOTE", if node == self.node { "" } else { node })
            .stdin(Stdio::null())
            // Standard output belongs to dyno's data.
            .stdout(std::io::stderr())
            .status();
        match ended {
            Ok(status) if status.success() => Ok(()),
            Ok(status) => Err(ClusterError::new(format!("the suite's command failed: {status}"))),
            Err(error) => Err(ClusterError::new(format!("sh can't be run: {error}"))),
        }
    }
}

fn failure(error: ClusterError) -> Failure {
    let failure = Failure::new(error.message);
    match error.hint {
        Some(hint) => failure.with_hint(hint),
        None => failure,
    }
}
