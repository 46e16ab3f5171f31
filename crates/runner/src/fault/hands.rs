//! Who does it: a cluster of `dyno cluster`, or commands of the suite.

use super::is_given_up;
use crate::command::{BACK_WITHIN, ShellCommand, execute};
use crate::databases::{ReachedNode, on_loop};
use crate::failure::Failure;
use crate::signals;
use dyno_facts::{FaultAction, FaultPlan, Message, SecretCommand, TargetFacts, say};
use dyno_topology::Cluster;
use std::path::Path;

pub(super) enum Hands {
    Cluster(Box<Cluster>),
    Commands(Box<Commands>),
}

pub(super) struct Commands {
    target: String,
    node: String,
    plan: FaultPlan,
}

impl Hands {
    /// Whoever can do what `plan` wants.
    ///
    /// # Errors
    /// dyno has not started the node, and the suite has no command for it.
    pub(super) fn of(
        plan: &FaultPlan,
        target: &TargetFacts,
        nodes: &[ReachedNode],
        node: usize,
    ) -> Result<Self, Failure> {
        let name = &nodes[node].name;
        let planned = target.nodes.iter().find(|planned| planned.name == *name);
        let folder = planned.and_then(|planned| planned.cluster.as_deref());
        let commands =
            || Commands { target: target.name.clone(), node: name.clone(), plan: plan.clone() };
        match (plan.action, folder) {
            (FaultAction::Command, _)
                if plan.promote.is_some() && plan.promote_command.is_none() =>
            {
                let message = "The fault promotes a node, and the suite has no command for that.";
                Err(Failure::usage(message)
                    .with_hint("Add `promote_command`, or leave `promote` out of the fault."))
            }
            (FaultAction::Command, _) => Ok(Hands::Commands(Box::new(commands()))),
            (_, Some(folder)) => {
                let cluster = Cluster::open(Path::new(folder))?.stopped_by(is_given_up);
                Ok(Hands::Cluster(Box::new(cluster)))
            }
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

    pub(super) fn inject(&mut self, action: FaultAction, node: &str) -> Result<(), Failure> {
        let cluster = match self {
            Hands::Commands(commands) => return commands.inject(),
            Hands::Cluster(cluster) => cluster,
        };
        let done = match action {
            FaultAction::Kill => cluster.kill(node),
            FaultAction::Stop => cluster.stop(node),
            FaultAction::Restart => cluster.stop(node).and_then(|()| cluster.start(node)),
            FaultAction::Freeze => cluster.freeze(node),
            FaultAction::Partition => cluster.partition(node),
            FaultAction::Command => Ok(()),
        };
        Ok(done?)
    }

    /// True where a server has to start for a fault to end.
    pub(super) fn starts(&self, action: FaultAction) -> bool {
        let is_up = matches!(action, FaultAction::Freeze | FaultAction::Partition);
        matches!(self, Hands::Cluster(_)) && !is_up
    }

    /// Ends the fault, and says what became of the node; `None` where nobody knows how to end it.
    pub(super) fn heal(
        &mut self,
        action: FaultAction,
        node: &str,
    ) -> Result<Option<Message>, Failure> {
        let cluster = match self {
            Hands::Commands(commands) => return commands.heal(),
            Hands::Cluster(cluster) => cluster,
        };
        let (done, healed) = match action {
            FaultAction::Freeze => (cluster.thaw(node), say!(node_thawed, node = node)),
            FaultAction::Partition => (cluster.heal(node), say!(node_reached_again, node = node)),
            _ => (cluster.start(node), say!(node_started_again, node = node)),
        };
        done?;
        Ok(Some(healed))
    }

    pub(super) fn promote(&mut self, node: &str) -> Result<(), Failure> {
        match self {
            Hands::Cluster(cluster) => Ok(cluster.promote(node).map(drop)?),
            Hands::Commands(commands) => commands.promote(node),
        }
    }

    /// Makes a node a replica of the one that has taken its place.
    pub(super) fn rejoin(&mut self, node: &str) -> Result<(), Failure> {
        match self {
            Hands::Cluster(cluster) => Ok(cluster.rejoin(node)?),
            Hands::Commands(_) => Ok(()),
        }
    }
}

impl Commands {
    fn inject(&self) -> Result<(), Failure> {
        let does = say!(command_does_fault, node = &self.node);
        self.run(self.plan.command.as_ref(), does, "command", "", signals::has_come)
    }

    fn heal(&self) -> Result<Option<Message>, Failure> {
        if self.plan.heal_command.is_none() {
            return Ok(None);
        }
        let does = say!(command_heals, node = &self.node);
        self.run(self.plan.heal_command.as_ref(), does, "heal_command", "", is_given_up)?;
        Ok(Some(say!(node_brought_back_by_command, node = &self.node)))
    }

    fn promote(&self, heir: &str) -> Result<(), Failure> {
        let does = say!(command_promotes, node = heir);
        self.run(
            self.plan.promote_command.as_ref(),
            does,
            "promote_command",
            heir,
            signals::has_come,
        )
    }

    fn run(
        &self,
        text: Option<&SecretCommand>,
        does: Message,
        key: &str,
        heir: &str,
        is_stopped: fn() -> bool,
    ) -> Result<(), Failure> {
        let Some(text) = text.map(SecretCommand::expose) else { return Ok(()) };
        let told = [("DYNO_NODE", self.node.as_str()), ("DYNO_PROMOTE", heir)];
        let (target, limit) = (&self.target, Some(BACK_WITHIN));
        let command = ShellCommand { target, told: &told, text, does, key, limit };
        match on_loop(execute(&command, is_stopped))? {
            Ok(true) => Ok(()),
            Ok(false) => Err(Failure::new(say!(command_killed, does = command.does))),
            Err(failure) => Err(failure),
        }
    }
}
