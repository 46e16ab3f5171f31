//! The thread of a fault, and what follows the trial.

use super::hands::Hands;
use super::writable::{takes_writes, wait_for};
use super::{Injection, done};
use crate::signals;
use dyno_core::{Nanos, SECOND};
use dyno_facts::{FaultAction, Message, Role, say};
use std::time::Duration;

/// How often the thread looks whether something is due.
const LOOK: Duration = Duration::from_millis(50);
/// How long a node may take to come back after the trial.
const BACK_WITHIN: Nanos = 60 * SECOND;

impl Injection<'_> {
    pub(super) fn run(&self) {
        let is_due = |at_s: f64| self.window.get().is_some() && self.now_s() >= at_s;
        while !is_due(self.plan.at_s) {
            if self.is_over() {
                return;
            }
            let left_s = self.plan.at_s - self.now_s();
            match self.window.get() {
                Some(_) => std::thread::sleep(LOOK.min(Duration::from_secs_f64(left_s.max(0.0)))),
                None => std::thread::sleep(LOOK),
            }
        }
        if !self.inject() {
            return;
        }
        self.promote();
        let heal_at_s = self.plan.heal_after_s.map(|after_s| self.plan.at_s + after_s);
        while !self.is_over() {
            if heal_at_s.is_some_and(is_due) && self.may_heal() {
                self.heal();
            }
            self.follow();
            std::thread::sleep(LOOK);
        }
    }

    fn name(&self, node: usize) -> &str {
        &self.nodes[node].name
    }

    fn inject(&self) -> bool {
        let (action, name) = (self.plan.action, self.name(self.node));
        // The moment is that before it is done: the load feels it while it is being done.
        let at_s = self.now_s();
        let result = self.hands().inject(action, name);
        match result {
            Ok(()) => {
                self.told().at_s = Some(at_s);
                let done_s = self.step(done(action, name));
                self.told().done_s = done_s;
                if action == FaultAction::Restart {
                    let mut told = self.told();
                    (told.healed_at_s, told.is_ended) = (Some(done_s), true);
                }
                true
            }
            Err(why) => {
                let fault = action.name();
                self.fail(say!(fault_failed, fault = fault, node = name, why = why.message));
                false
            }
        }
    }

    fn promote(&self) {
        let Some(heir) = self.heir else { return };
        let name = self.name(heir);
        let result = self.hands().promote(name);
        match result {
            Ok(()) => {
                self.step(say!(node_promoted, node = name));
                self.follow();
            }
            Err(why) => {
                self.step(say!(node_not_promoted, node = name, why = why.message));
            }
        }
    }

    /// Looks whether another node takes writes, and sends new sessions there.
    fn follow(&self) {
        let current = self.database.writable();
        // Whoever has taken over stays: a node that comes back and takes writes too is a second primary.
        if self.told().promoted.is_some() || current != self.node {
            return;
        }
        let others = (0..self.nodes.len()).filter(|node| *node != current && self.may_write(*node));
        for node in others {
            if self.takes_writes(node) {
                self.database.switch_primary(node);
                let at_s = self.step(say!(node_takes_writes, node = self.name(node)));
                self.told().promoted = Some((node, at_s));
                return;
            }
        }
    }

    /// Whether a node says that it takes writes. Its answers are noted: it counts them among its reads.
    fn takes_writes(&self, node: usize) -> bool {
        let answer = takes_writes(&self.nodes[node].database);
        *self.told().answers.entry(node).or_default() += u64::from(answer.is_some());
        answer.unwrap_or(false)
    }

    /// Waits until a node takes writes, or takes none.
    fn waits_for(&self, node: usize, wanted: bool) -> bool {
        let (is_so, answers) = wait_for(&self.nodes[node].database, wanted, BACK_WITHIN);
        *self.told().answers.entry(node).or_default() += answers;
        is_so
    }

    /// True for nodes that hold all data.
    fn may_write(&self, node: usize) -> bool {
        matches!(self.nodes[node].role, Role::Primary | Role::ReadOnly)
    }

    /// Ends the fault, once; why that failed, in a sentence.
    fn heal(&self) -> Option<Message> {
        let name = self.name(self.node);
        // Only what takes its time: a server that recovers.
        let asked_at_s = match self.hands().starts(self.plan.action) {
            true => self.step(say!(node_start_asked, node = name)),
            false => self.now_s(),
        };
        self.told().heal_asked_at_s = Some(asked_at_s);
        let result = self.hands().heal(self.plan.action, name);
        self.told().is_ended = true;
        match result {
            Ok(Some(healed)) => {
                let at_s = self.step(healed);
                self.told().healed_at_s = Some(at_s);
            }
            Ok(None) => {
                self.step(say!(node_left_by_command, node = name));
            }
            Err(why) => {
                let why = say!(node_not_brought_back, node = name, why = why.message);
                self.step(why.clone());
                return Some(why);
            }
        }
        None
    }

    /// True while the fault should be ended by what ends it. A dead node whose place another one has taken
    /// is left alone until the trial is over: to follow the new primary, it may need a copy of its data.
    fn may_heal(&self) -> bool {
        let is_dead = matches!(self.plan.action, FaultAction::Kill | FaultAction::Stop);
        let told = self.told();
        !(told.is_ended || (is_dead && told.promoted.is_some()))
    }

    /// After the trial: has somebody take writes, so that the data can be looked at. Where nobody has taken
    /// over, that is the node itself.
    pub(crate) fn settle(&self) {
        if self.told().at_s.is_none() {
            return;
        }
        self.follow();
        let writable = self.database.writable();
        if self.told().promoted.is_none() && !self.told().is_ended {
            self.heal();
        }
        if !self.waits_for(writable, true) {
            self.step(say!(node_takes_no_writes_after_trial, node = self.name(writable)));
        }
    }

    /// Brings the nodes back to the roles they had before. What could not be done is said in sentences, and
    /// to whoever has stopped the run how the nodes are left.
    pub(crate) fn restore(&self) -> Option<Message> {
        let why = self.bring_back();
        let is_touched = self.told().at_s.is_some() || self.told().failure.is_some();
        if !(signals::has_come() && is_touched) {
            return why;
        }
        Some(Message::sentences(&why.into_iter().chain(self.left()).collect::<Vec<_>>()))
    }

    /// How the nodes are left, in sentences.
    fn left(&self) -> Vec<Message> {
        let mut left = vec![say!(run_stopped_nodes_left)];
        for node in (0..self.nodes.len()).filter(|node| self.may_write(*node)) {
            let name = self.name(node);
            left.push(match takes_writes(&self.nodes[node].database) {
                Some(true) => say!(node_takes_writes, node = name),
                Some(false) => say!(node_takes_reads_only, node = name),
                None => say!(node_does_not_answer, node = name),
            });
        }
        if matches!(*self.hands(), Hands::Cluster(_)) {
            left.push(say!(run_stopped_cluster_hint));
        }
        left
    }

    fn bring_back(&self) -> Option<Message> {
        let told = self.told().clone();
        if told.at_s.is_none() {
            return told.failure.and_then(|_| self.undo());
        }
        // A frozen primary that was replaced is not let go on: it would commit what nobody waits for any more.
        let is_replaced_and_frozen =
            told.promoted.is_some() && self.plan.action == FaultAction::Freeze;
        let is_wanted = self.may_heal() && !is_replaced_and_frozen;
        let unhealed = is_wanted.then(|| self.heal()).flatten();
        let Some((heir, _)) = told.promoted else { return unhealed };
        if matches!(*self.hands(), Hands::Commands(_)) {
            let primary = say!(heir_still_primary, node = self.name(heir));
            return Some(Message::sentences(
                &unhealed.into_iter().chain([primary]).collect::<Vec<_>>(),
            ));
        }
        self.back(heir).err().map(|why| {
            let (node, other) = (self.name(heir), self.name(self.node));
            say!(heir_still_primary_because, node = node, other = other, why = why)
        })
    }

    /// A fault that failed may have been done in part, such as a restart: the node is brought back. Commands
    /// of the suite end only what theirs have done.
    fn undo(&self) -> Option<Message> {
        if matches!(*self.hands(), Hands::Commands(_)) {
            return None;
        }
        let name = self.name(self.node);
        let healed = self.hands().heal(self.plan.action, name);
        healed.err().map(|why| say!(node_not_brought_back, node = name, why = why.message))
    }

    /// The node that the fault was done to becomes the primary again.
    fn back(&self, heir: usize) -> Result<(), Message> {
        let name = self.name(self.node);
        self.hands().rejoin(name).map_err(|why| why.message)?;
        if !self.waits_for(self.node, false) {
            return Err(say!(node_no_replica));
        }
        // The cluster passes the last writes on before the roles change.
        self.hands().promote(name).map_err(|why| why.message)?;
        if !self.waits_for(self.node, true) {
            return Err(say!(node_refuses_writes));
        }
        self.database.switch_primary(self.node);
        self.hands().rejoin(self.name(heir)).map_err(|why| why.message)?;
        match self.waits_for(heir, false) {
            true => Ok(()),
            false => Err(say!(node_follows_not, node = self.name(heir))),
        }
    }
}
