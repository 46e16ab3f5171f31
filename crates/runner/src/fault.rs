//! The fault of a suite on a node in the middle of a trial. A thread does it at its time, looks which node
//! takes writes from then on, ends it after its time, and brings the nodes back afterwards.
//!
//! While it lasts workers survive (`ErrorPolicy::following`): every error is counted, lost sessions and those to a
//! server that became read-only are replaced, and what takes longer than `TrialSpec::answer_limit` is given up. The
//! times of a fault follow from the intervals (`dyno_engine::record::FaultWatch`). What was acknowledged is looked for
//! after the trial, on the node that takes writes then and before the nodes are brought back: order by order (TPC-C) or
//! row by row (pgbench). What is lost is the result of such a trial and doesn't make it fail; the check
//! `lost-acknowledged` says it.

use crate::command::{BACK_WITHIN, ShellCommand, execute};
use crate::databases::{self, Database, ReachedDatabase, ReachedNode, on_loop};
use crate::failure::{Failure, Result};
use crate::nodes::EndOnDrop;
use crate::signals;
use dyno_core::{AnswerTable, Dialect, MILLISECOND, Nanos, SECOND};
use dyno_engine::record::{FaultWatch, Window};
use dyno_engine::{ErrorPolicy, TrialSpec};
use dyno_facts::{
    CrossShardLosses, Event, EventKind, FaultAction, FaultFacts, FaultPlan, FaultStep, Message,
    PlanStep, Role, SecretCommand, TargetFacts, say,
};
use dyno_observe::Asked;
use dyno_reactor::monotonic_now;
use dyno_suite::Plan;
use dyno_topology::Cluster;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

/// Interval of the thread's looks while the fault lasts.
const LOOK: Duration = Duration::from_millis(50);
/// Longest time for a node to come back after the trial.
const NODE_BACK_WITHIN: Nanos = 60 * SECOND;
/// Longest time for a node to say whether it takes writes; one that is dead or frozen takes all of it.
const PATIENCE: Nanos = 500 * MILLISECOND;
/// Time for which work on a cluster continues when the user has stopped the run: most of it is done by then, and work
/// that is broken off leaves nodes that no one wants.
const GRACE: Duration = Duration::from_secs(10);

fn is_given_up() -> bool {
    signals::came_before(GRACE)
}

/// Acknowledged work that is not there, as far as a workload can tell.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LostWork {
    pub acknowledged: Option<u64>,
    /// The ones among these that were not found.
    pub lost: Option<u64>,
    /// Transactions whose outcome was not reported to anyone; see [`FaultFacts::unknown`].
    pub unknown: Option<u64>,
    /// The ones among these with rows on several shards.
    pub across_shards: Option<CrossShardLosses>,
    /// The search for them, or the reason why no one could look: sentences.
    pub evidence: Message,
}

impl LostWork {
    /// No one can tell, for this reason.
    pub fn unknown(why: impl Into<Message>) -> Self {
        LostWork { evidence: why.into(), ..LostWork::default() }
    }
}

pub(crate) struct Injection<'a> {
    plan: &'a FaultPlan,
    target: String,
    database: &'a Database,
    nodes: &'a [ReachedNode],
    node: usize,
    /// The node that takes over, where the suite wants one to.
    successor: Option<usize>,
    /// Whose node it is; `None` where commands of the suite do it.
    cluster: Option<Mutex<Cluster>>,
    window: OnceLock<Window>,
    is_over: AtomicBool,
    times: Mutex<FaultTimes>,
}

#[derive(Clone, Debug, Default)]
struct FaultTimes {
    /// When the fault began, in seconds from the opening of the window.
    at_s: Option<f64>,
    done_s: f64,
    heal_asked_at_s: Option<f64>,
    healed_at_s: Option<f64>,
    /// True once that was tried: it is tried once.
    is_ended: bool,
    /// The node that took over, and when it took writes.
    promoted: Option<(usize, f64)>,
    steps: Vec<FaultStep>,
    events: Vec<Event>,
    /// Reason why the fault itself did not happen.
    failure: Option<Message>,
    /// Number of answers of nodes whether they take writes.
    answers: BTreeMap<usize, u64>,
}

impl<'a> Injection<'a> {
    /// The fault of the experiment of a step; `None` if it has none.
    ///
    /// # Errors
    /// The target has no such node, or no one could do that to it.
    pub(super) fn for_step(
        plan: &'a Plan,
        step: &PlanStep,
        reached: &'a ReachedDatabase,
    ) -> Result<Option<Self>> {
        let experiment = plan.experiment(&step.experiment);
        let Some(fault) = experiment.and_then(|experiment| experiment.fault.as_ref()) else {
            return Ok(None);
        };
        let owner = plan.owner(&step.target);
        let target = plan
            .target(owner)
            .ok_or_else(|| Failure::new(format!("The plan has no target {owner}.")))?;
        let plan = fault;
        let nodes = &reached.nodes[..];
        let primary = reached.database.writable();
        let node = find_node(nodes, &plan.node, primary)
            .ok_or_else(|| missing_node(target, &plan.node))?;
        if plan.promote.is_some() && node != primary {
            // Sessions follow when a primary is replaced by the fault done to it, not when a healthy one is.
            let message =
                "The fault promotes another node, and is done to one that is not the primary.";
            let hint = "Leave `promote` out of the fault, or write `node = \"primary\"`.";
            return Err(Failure::usage(message).with_hint(hint));
        }
        let successor = match plan.promote.as_deref() {
            None => None,
            Some(name) => Some(
                find_successor(nodes, name, node, primary)
                    .ok_or_else(|| missing_node(target, name))?,
            ),
        };
        Ok(Some(Injection {
            cluster: cluster_for_fault(plan, target, &nodes[node].name)?.map(Mutex::new),
            plan,
            target: target.name.clone(),
            database: &reached.database,
            nodes,
            node,
            successor,
            window: OnceLock::new(),
            is_over: AtomicBool::new(false),
            times: Mutex::default(),
        }))
    }

    /// The node that it is done to.
    pub(super) fn node(&self) -> &str {
        self.node_name(self.node)
    }

    fn node_name(&self, node: usize) -> &str {
        &self.nodes[node].name
    }

    pub(super) fn new_watch(&self) -> FaultWatch {
        FaultWatch::new(self.plan.at_s)
    }

    /// Has workers survive it: every error is counted, sessions are replaced, no one waits without end.
    pub(super) fn tune(&self, spec: &mut TrialSpec) {
        spec.errors = ErrorPolicy::following();
        spec.answer_limit = Some((self.plan.answer_limit_s * 1e9) as Nanos);
    }

    /// All workers start: the time of the fault is known from now on.
    pub(super) fn released(&self, window: Window) {
        // Only the first call counts.
        let _ = self.window.set(window);
    }

    /// Does `work` while a thread injects the fault.
    pub(super) fn meanwhile<T>(&self, work: impl FnOnce() -> T) -> T {
        std::thread::scope(|scope| {
            let thread = std::thread::Builder::new().name("fault".to_owned());
            if let Err(error) = thread.spawn_scoped(scope, || self.carry_out_fault()) {
                self.record_failure(say!(fault_without_thread, why = error.to_string()));
            }
            // Also when `work` panics: else the scope would wait for ever.
            let _over = EndOnDrop(&self.is_over);
            work()
        })
    }

    pub(super) fn take_events(&self) -> Vec<Event> {
        std::mem::take(&mut self.lock_times().events)
    }

    /// The number of questions to each node so far about whether it takes writes.
    pub(super) fn statements(&self) -> BTreeMap<usize, Asked> {
        let times = self.lock_times();
        let statements = times
            .answers
            .iter()
            .map(|(node, count)| (*node, Asked { all: *count, reads: *count, ..Asked::default() }));
        statements.collect()
    }

    /// The facts of the fault for its trial, with the work that was lost.
    pub(super) fn facts(&self, watch: &FaultWatch, lost: Option<LostWork>) -> FaultFacts {
        let has_happened = self.failure().is_none();
        let mut times = self.lock_times().clone();
        // A clean shutdown is a fault from its begin on, however long it takes.
        if !matches!(
            self.plan.action,
            FaultAction::Kill | FaultAction::Freeze | FaultAction::Partition
        ) {
            times.done_s = f64::NEG_INFINITY;
        }
        let loss = lost.unwrap_or_else(|| LostWork::unknown(say!(losses_untraceable)));
        let mut facts = FaultFacts {
            action: self.plan.action.name().to_owned(),
            node: self.nodes[self.node].name.clone(),
            at_s: times.at_s.unwrap_or(self.plan.at_s),
            heal_asked_at_s: times.heal_asked_at_s,
            healed_at_s: times.healed_at_s,
            promoted: times.promoted.map(|(node, _)| self.nodes[node].name.clone()),
            promoted_at_s: times.promoted.map(|(_, at_s)| at_s),
            acknowledged: loss.acknowledged,
            lost: loss.lost,
            unknown: loss.unknown,
            across_shards: loss.across_shards,
            evidence: loss.evidence,
            // A fault that did not happen had no effect: the status of its trial says why.
            steps: if has_happened { times.steps } else { Vec::new() },
            ..FaultFacts::default()
        };
        watch.tell(&mut facts, times.done_s);
        facts
    }

    /// The reason why the trial does not belong to this fault: it did not happen.
    pub(super) fn failure(&self) -> Option<Message> {
        let times = self.lock_times();
        let failure = times.failure.clone();
        failure.or_else(|| times.at_s.is_none().then(|| say!(fault_never_came)))
    }

    /// Notes a step that has just been made, and tells when that was.
    fn step(&self, description: Message) -> f64 {
        let at_s = self.now_s();
        let mut times = self.lock_times();
        let event = Event { at_s: Some(at_s), ..Event::new(EventKind::Server, &description) };
        times.events.push(event);
        times.steps.push(FaultStep { at_s, what: description });
        at_s
    }

    fn record_failure(&self, reason: Message) {
        self.step(reason.clone());
        self.lock_times().failure.get_or_insert(reason);
    }

    /// Seconds from the opening of the window.
    fn now_s(&self) -> f64 {
        let opens = self.window.get().map_or(0, |window| window.opens);
        (monotonic_now() as f64 - opens as f64) / 1e9
    }

    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    fn lock_times(&self) -> MutexGuard<'_, FaultTimes> {
        self.times.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_cluster(&self) -> Option<MutexGuard<'_, Cluster>> {
        Some(self.cluster.as_ref()?.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn carry_out_fault(&self) {
        while !self.is_due(self.plan.at_s) {
            if self.is_over() {
                return;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        if !self.inject_fault() {
            return;
        }
        self.promote_successor();
        let heal_at_s = self.plan.heal_after_s.map(|after_s| self.plan.at_s + after_s);
        while !self.is_over() {
            if heal_at_s.is_some_and(|at_s| self.is_due(at_s)) && self.may_heal() {
                self.heal();
            }
            self.follow();
            std::thread::sleep(LOOK);
        }
    }

    fn is_due(&self, at_s: f64) -> bool {
        self.window.get().is_some() && self.now_s() >= at_s
    }

    fn inject_fault(&self) -> bool {
        let (action, name) = (self.plan.action, self.node_name(self.node));
        // The moment is that before it is done: the load feels it while it is being done.
        let at_s = self.now_s();
        match self.do_fault(action, name) {
            Ok(()) => {
                self.lock_times().at_s = Some(at_s);
                let done_s = self.step(describe_fault(action, name));
                self.lock_times().done_s = done_s;
                if action == FaultAction::Restart {
                    let mut times = self.lock_times();
                    (times.healed_at_s, times.is_ended) = (Some(done_s), true);
                }
                true
            }
            Err(failure) => {
                let fault = action.name();
                self.record_failure(say!(fault_failed, fault, node = name, why = failure.message));
                false
            }
        }
    }

    fn promote_successor(&self) {
        let Some(successor) = self.successor else { return };
        let name = self.node_name(successor);
        match self.make_primary(name) {
            Ok(()) => self.step(say!(node_promoted, node = name)),
            Err(failure) => self.step(say!(node_not_promoted, node = name, why = failure.message)),
        };
        self.follow();
    }

    /// Looks whether another node takes writes, and sends new sessions there.
    fn follow(&self) {
        let current = self.database.writable();
        // Whoever has taken over stays: a node that comes back and takes writes too is a second primary.
        if self.lock_times().promoted.is_some() || current != self.node {
            return;
        }
        for node in 0..self.nodes.len() {
            let may_write = node != current && holds_all_data(&self.nodes[node]);
            if may_write && self.takes_writes(node) == Some(true) {
                self.database.switch_primary(node);
                let at_s = self.step(say!(node_takes_writes, node = self.node_name(node)));
                self.lock_times().promoted = Some((node, at_s));
                return;
            }
        }
    }

    /// Asks a node if it takes writes. Its answers are noted, as it counts them among its reads.
    fn takes_writes(&self, node: usize) -> Option<bool> {
        let admin = self.nodes[node].database.admin();
        let reply = databases::ask_within(&admin, PATIENCE, async |session| {
            let sql = match session.dialect() {
                Dialect::Mysql => "SELECT CASE WHEN @@global.read_only THEN 0 ELSE 1 END",
                Dialect::Postgres => "SELECT CASE WHEN pg_is_in_recovery() THEN 0 ELSE 1 END",
                // An embedded database is its only node.
                Dialect::Sqlite => "SELECT 1",
            };
            let mut answer = AnswerTable::default();
            session.query(sql, &mut answer).await?;
            Ok(answer.single() == Some("1"))
        });
        let answer = reply.ok();
        *self.lock_times().answers.entry(node).or_default() += u64::from(answer.is_some());
        answer
    }

    /// Waits until a node says that it takes writes (or that it takes none), and no longer than whoever has stopped the
    /// run.
    fn wait_for(&self, node: usize, expected: bool) -> bool {
        let due = monotonic_now() + NODE_BACK_WITHIN;
        loop {
            if self.takes_writes(node) == Some(expected) {
                return true;
            }
            if monotonic_now() >= due || is_given_up() {
                return false;
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// Ends the fault, once; why that failed, in a sentence.
    fn heal(&self) -> Option<Message> {
        let name = self.node_name(self.node);
        // Only what takes its time: a server that recovers.
        let is_up = matches!(self.plan.action, FaultAction::Freeze | FaultAction::Partition);
        let asked_at_s = if self.cluster.is_some() && !is_up {
            self.step(say!(node_start_asked, node = name))
        } else {
            self.now_s()
        };
        self.lock_times().heal_asked_at_s = Some(asked_at_s);
        let result = self.end_fault(name);
        self.lock_times().is_ended = true;
        match result {
            Ok(Some(healed)) => {
                let at_s = self.step(healed);
                self.lock_times().healed_at_s = Some(at_s);
            }
            Ok(None) => {
                self.step(say!(node_left_by_command, node = name));
            }
            Err(failure) => {
                let failure = say!(node_not_brought_back, node = name, why = failure.message);
                self.step(failure.clone());
                return Some(failure);
            }
        }
        None
    }

    /// Returns true while the fault should be ended by its own means. A dead node that another one has replaced
    /// is left alone until the trial is over: to follow the new primary, it may need a copy of its data.
    fn may_heal(&self) -> bool {
        let is_dead = matches!(self.plan.action, FaultAction::Kill | FaultAction::Stop);
        let times = self.lock_times();
        !(times.is_ended || (is_dead && times.promoted.is_some()))
    }

    /// After the trial: has somebody take writes, so that the data can be looked at. If no one has taken
    /// over, that is the node itself.
    pub(crate) fn wait_until_writable(&self) {
        if self.lock_times().at_s.is_none() {
            return;
        }
        self.follow();
        let writable = self.database.writable();
        if self.lock_times().promoted.is_none() && !self.lock_times().is_ended {
            self.heal();
        }
        if !self.wait_for(writable, true) {
            self.step(say!(node_takes_no_writes_after_trial, node = self.node_name(writable)));
        }
    }

    /// Brings the nodes back to the roles they had before; what could not be done, in sentences.
    pub(crate) fn restore(&self) -> Option<Message> {
        let times = self.lock_times().clone();
        if times.at_s.is_none() {
            // A fault that failed may have been done in part. Commands of the suite end only what theirs have done.
            times.failure.filter(|_| self.cluster.is_some())?;
            let name = self.node_name(self.node);
            let reason = self.end_fault(name).err()?.message;
            return Some(say!(node_not_brought_back, node = name, why = reason));
        }
        // A frozen primary that was replaced is not let continue: it would commit what no one waits for any more.
        let is_replaced_and_frozen =
            times.promoted.is_some() && self.plan.action == FaultAction::Freeze;
        let is_wanted = self.may_heal() && !is_replaced_and_frozen;
        let unhealed = is_wanted.then(|| self.heal()).flatten();
        let Some((successor, _)) = times.promoted else { return unhealed };
        if self.cluster.is_none() {
            let primary = say!(heir_still_primary, node = self.node_name(successor));
            return Some(Message::sentences(
                &unhealed.into_iter().chain([primary]).collect::<Vec<_>>(),
            ));
        }
        self.swap_back(successor).err().map(|reason| {
            let (node, other) = (self.node_name(successor), self.node_name(self.node));
            say!(heir_still_primary_because, node, other, why = reason)
        })
    }

    /// The node that the fault was done to becomes the primary again.
    fn swap_back(&self, successor: usize) -> Result<(), Message> {
        let name = self.node_name(self.node);
        self.rejoin(name).map_err(|failure| failure.message)?;
        if !self.wait_for(self.node, false) {
            return Err(say!(node_no_replica));
        }
        // The cluster passes the last writes on before the roles change.
        self.make_primary(name).map_err(|failure| failure.message)?;
        if !self.wait_for(self.node, true) {
            return Err(say!(node_refuses_writes));
        }
        self.database.switch_primary(self.node);
        self.rejoin(self.node_name(successor)).map_err(|failure| failure.message)?;
        if self.wait_for(successor, false) {
            return Ok(());
        }
        Err(say!(node_not_following, node = self.node_name(successor)))
    }

    fn do_fault(&self, action: FaultAction, node: &str) -> Result<()> {
        let Some(mut cluster) = self.lock_cluster() else {
            let does = say!(command_does_fault, node);
            let command = self.plan.command.as_ref();
            return self.run_command(command, does, "command", "", signals::has_come);
        };
        Ok(match action {
            FaultAction::Kill => cluster.kill(node),
            FaultAction::Stop => cluster.stop(node),
            FaultAction::Restart => cluster.stop(node).and_then(|()| cluster.start(node)),
            FaultAction::Freeze => cluster.freeze(node),
            FaultAction::Partition => cluster.partition(node),
            FaultAction::Command => Ok(()),
        }?)
    }

    /// Ends the fault, and says what became of the node; `None` if no one knows how to end it.
    fn end_fault(&self, node: &str) -> Result<Option<Message>> {
        let Some(mut cluster) = self.lock_cluster() else {
            let Some(command) = &self.plan.heal_command else { return Ok(None) };
            let does = say!(command_heals, node);
            self.run_command(Some(command), does, "heal_command", "", is_given_up)?;
            return Ok(Some(say!(node_brought_back_by_command, node)));
        };
        let (outcome, healed) = match self.plan.action {
            FaultAction::Freeze => (cluster.thaw(node), say!(node_thawed, node)),
            FaultAction::Partition => (cluster.heal(node), say!(node_reached_again, node)),
            _ => (cluster.start(node), say!(node_started_again, node)),
        };
        outcome?;
        Ok(Some(healed))
    }

    fn make_primary(&self, node: &str) -> Result<()> {
        let Some(mut cluster) = self.lock_cluster() else {
            let does = say!(command_promotes, node);
            let command = self.plan.promote_command.as_ref();
            return self.run_command(command, does, "promote_command", node, signals::has_come);
        };
        Ok(cluster.promote(node).map(drop)?)
    }

    /// Makes a node a replica of the one that has taken its place.
    fn rejoin(&self, node: &str) -> Result<()> {
        Ok(self.lock_cluster().map_or(Ok(()), |mut cluster| cluster.rejoin(node))?)
    }

    fn run_command(
        &self,
        text: Option<&SecretCommand>,
        does: Message,
        key: &str,
        successor: &str,
        is_stopped: fn() -> bool,
    ) -> Result<()> {
        let Some(text) = text.map(SecretCommand::expose) else { return Ok(()) };
        let variables = [("DYNO_NODE", self.node()), ("DYNO_PROMOTE", successor)];
        let (target, limit) = (&self.target, Some(BACK_WITHIN));
        let command = ShellCommand { target, told: &variables, text, does, key, limit };
        if on_loop(execute(&command, is_stopped))?? {
            return Ok(());
        }
        Err(Failure::new(say!(command_killed, does = command.does)))
    }
}

/// The cluster that can do what `plan` wants; `None` where commands of the suite do it.
///
/// # Errors
/// dyno has not started the node, and the suite has no command for it.
fn cluster_for_fault(
    plan: &FaultPlan,
    target: &TargetFacts,
    node: &str,
) -> Result<Option<Cluster>> {
    if plan.action == FaultAction::Command {
        if plan.promote.is_some() && plan.promote_command.is_none() {
            let message = "The fault promotes a node, and the suite has no command for that.";
            let hint = "Add `promote_command`, or leave `promote` out of the fault.";
            return Err(Failure::usage(message).with_hint(hint));
        }
        return Ok(None);
    }
    let target_node = target.nodes.iter().find(|target_node| target_node.name == node);
    if let Some(folder) = target_node.and_then(|target_node| target_node.cluster.as_deref()) {
        return Ok(Some(Cluster::open(Path::new(folder))?.stopped_by(is_given_up)));
    }
    Err(Failure::usage(format!(
        "dyno has not started the node {node} of the target {}, so it can't {} it.",
        target.name,
        plan.action.name()
    ))
    .with_hint(
        "Give a cluster of `dyno cluster`: `--target NAME=cluster:DIR`, or write `action = \
         \"command\"` with your own `command`.",
    ))
}

/// The node of this name, or the first one of this role. The primary is whoever takes writes now.
fn find_node(nodes: &[ReachedNode], wanted: &str, primary: usize) -> Option<usize> {
    let by_name = nodes.iter().position(|node| node.name == wanted);
    by_name.or_else(|| match wanted {
        "primary" => Some(primary).filter(|primary| *primary < nodes.len()),
        role => nodes.iter().position(|node| node.role.name() == role),
    })
}

/// The node that takes over: the one of this name, or the first one that holds the data and isn't the one
/// that the fault is done to.
fn find_successor(
    nodes: &[ReachedNode],
    wanted: &str,
    node: usize,
    primary: usize,
) -> Option<usize> {
    let mut able = nodes
        .iter()
        .enumerate()
        .filter(|(index, other)| ![node, primary].contains(index) && holds_all_data(other));
    able.find(|(_, other)| wanted.is_empty() || other.name == wanted).map(|(index, _)| index)
}

fn holds_all_data(node: &ReachedNode) -> bool {
    matches!(node.role, Role::Primary | Role::ReadOnly)
}

/// `name` is empty if any node could take over.
fn missing_node(target: &TargetFacts, name: &str) -> Failure {
    let nodes: Vec<&str> = target.nodes.iter().map(|node| node.name.as_str()).collect();
    let message = match name {
        "" => format!("The target {} has no other node that could take over.", target.name),
        name => format!("The target {} has no node `{name}` for the fault.", target.name),
    };
    Failure::usage(message).with_hint(format!(
        "Its nodes: {}. List its servers as `nodes`, give a cluster with replicas (`--target NAME=cluster:DIR`), or \
         leave `promote` out of the fault.",
        nodes.join(", ")
    ))
}

fn describe_fault(action: FaultAction, node: &str) -> Message {
    match action {
        FaultAction::Kill => say!(fault_killed, node),
        FaultAction::Stop => say!(fault_stopped, node),
        FaultAction::Restart => say!(fault_restarted, node),
        FaultAction::Freeze => say!(fault_frozen, node),
        FaultAction::Partition => say!(fault_partitioned, node),
        FaultAction::Command => say!(fault_by_command, node),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_facts::ServerFacts;

    /// Nodes of these names and roles, none of which is ever connected to.
    fn nodes(roles: &[(&str, Role)]) -> Vec<ReachedNode> {
        let nodes = roles.iter().map(|(name, role)| ReachedNode {
            name: (*name).to_owned(),
            role: *role,
            database: Database::open(&"sqlite:none.db".parse().expect("a URL")).expect("a driver"),
            facts: ServerFacts::default(),
            same_host: true,
            server: crate::databases::ServerPlace::Unknown,
        });
        nodes.collect()
    }

    #[test]
    fn nodes_are_found_by_name_and_by_role() {
        let nodes = nodes(&[
            ("n1", Role::Primary),
            ("n2", Role::ReadOnly),
            ("n3", Role::ReadOnly),
            ("door", Role::Endpoint),
        ]);
        assert_eq!(find_node(&nodes, "primary", 0), Some(0));
        assert_eq!(find_node(&nodes, "primary", 2), Some(2), "whoever takes writes now");
        assert_eq!(find_node(&nodes, "n3", 0), Some(2));
        assert_eq!(find_node(&nodes, "read_only", 0), Some(1));
        assert_eq!(find_node(&nodes, "n4", 0), None);
        assert_eq!(find_successor(&nodes, "", 0, 0), Some(1));
        assert_eq!(find_successor(&nodes, "n3", 0, 0), Some(2));
        assert_eq!(
            find_successor(&nodes, "", 0, 1),
            Some(2),
            "not the one that takes writes already"
        );
        assert_eq!(find_successor(&nodes, "door", 0, 0), None, "an endpoint holds no data");
    }
}
