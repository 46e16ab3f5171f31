//! What a suite has done to a node in the middle of a trial. A thread does it at its time, looks which node
//! takes writes from then on, ends it after its time, and brings the nodes back afterwards.
//!
//! While it lasts workers survive (`ErrorPolicy::following`): every error is counted, lost sessions and
//! those to a server that became read-only are replaced, and what takes longer than
//! `TrialSpec::answer_limit` is given up. The times of a fault follow from the intervals
//! (`dyno_engine::record::FaultWatch`). What was acknowledged is looked for after the trial, on the node that
//! takes writes then and before the nodes are brought back: order by order (TPC-C) or row by row (pgbench).
//! What is lost is the result of such a trial and doesn't make it fail; the check `lost-acknowledged` says
//! it.

mod act;
mod hands;
mod writable;

use crate::databases::{Database, ReachedDatabase, ReachedNode};
use crate::failure::Failure;
use crate::nodes::Over;
use crate::signals;
use dyno_core::Nanos;
use dyno_engine::record::{FaultWatch, Window};
use dyno_engine::{ErrorPolicy, TrialSpec};
use dyno_facts::{
    CrossShardLosses, Event, EventKind, FaultAction, FaultFacts, FaultPlan, FaultStep, Message,
    PlanStep, Role, TargetFacts, say,
};
use dyno_observe::Asked;
use dyno_reactor::monotonic_now;
use dyno_suite::Plan;
use hands::Hands;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

/// How long work on a cluster goes on when the user has stopped the run: most of it is done by then, and what
/// is broken off leaves nodes that nobody wants.
const GRACE: Duration = Duration::from_secs(10);

fn is_given_up() -> bool {
    signals::came_before(GRACE)
}

/// What was acknowledged and is not there, as far as a workload can tell.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LostWork {
    pub acknowledged: Option<u64>,
    /// Of these, those that were not found.
    pub lost: Option<u64>,
    /// Transactions whose outcome nobody was told; see [`FaultFacts::unknown`].
    pub unknown: Option<u64>,
    /// Of these, those whose rows lie on several shards.
    pub across_shards: Option<CrossShardLosses>,
    /// How they were looked for, or why nobody could look: sentences.
    pub evidence: Message,
}

impl LostWork {
    /// Nobody can tell, for this reason.
    pub fn untold(why: impl Into<Message>) -> Self {
        LostWork { evidence: why.into(), ..LostWork::default() }
    }
}

pub(crate) struct Injection<'a> {
    plan: &'a FaultPlan,
    database: &'a Database,
    nodes: &'a [ReachedNode],
    node: usize,
    /// The node that takes over, where the suite wants one to.
    heir: Option<usize>,
    hands: Mutex<Hands>,
    window: OnceLock<Window>,
    is_over: AtomicBool,
    told: Mutex<FaultTimes>,
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
    /// Why the fault itself did not happen.
    failure: Option<Message>,
    /// How often nodes have said whether they take writes.
    answers: BTreeMap<usize, u64>,
}

impl<'a> Injection<'a> {
    /// The fault of the experiment of a step; `None` where it has none.
    ///
    /// # Errors
    /// The target has no such node, or nobody could do that to it.
    pub(super) fn of(
        plan: &'a Plan,
        step: &PlanStep,
        reached: &'a ReachedDatabase,
    ) -> Result<Option<Self>, Failure> {
        let experiment = plan.experiment(&step.experiment);
        let Some(fault) = experiment.and_then(|experiment| experiment.fault.as_ref()) else {
            return Ok(None);
        };
        let owner = plan.owner(&step.target);
        let target = plan
            .target(owner)
            .ok_or_else(|| Failure::new(format!("The plan has no target {owner}.")))?;
        Injection::new(fault, target, reached).map(Some)
    }

    fn new(
        plan: &'a FaultPlan,
        target: &TargetFacts,
        reached: &'a ReachedDatabase,
    ) -> Result<Self, Failure> {
        let nodes = &reached.nodes[..];
        let primary = reached.database.writable();
        let node = find(nodes, &plan.node, primary).ok_or_else(|| missing(target, &plan.node))?;
        if plan.promote.is_some() && node != primary {
            return Err(not_the_primary(target, &nodes[node].name));
        }
        let heir = match plan.promote.as_deref() {
            None => None,
            Some(name) => Some(heir(nodes, name, node, primary).ok_or_else(|| match name {
                "" => no_heir(target),
                name => missing(target, name),
            })?),
        };
        Ok(Injection {
            hands: Mutex::new(Hands::of(plan, target, nodes, node)?),
            plan,
            database: &reached.database,
            nodes,
            node,
            heir,
            window: OnceLock::new(),
            is_over: AtomicBool::new(false),
            told: Mutex::default(),
        })
    }

    /// The node that it is done to.
    pub(super) fn node(&self) -> &str {
        &self.nodes[self.node].name
    }

    pub(super) fn watch(&self) -> FaultWatch {
        FaultWatch::new(self.plan.at_s)
    }

    /// Has workers survive it: every error is counted, sessions are replaced, nobody waits without end.
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
            if let Err(error) = thread.spawn_scoped(scope, || self.run()) {
                self.fail(say!(fault_without_thread, why = error.to_string()));
            }
            // Also when `work` panics: else the scope would wait for ever.
            let _over = Over::new(&self.is_over);
            work()
        })
    }

    pub(super) fn take_events(&self) -> Vec<Event> {
        std::mem::take(&mut self.told().events)
    }

    /// What nodes were asked so far to know who takes writes.
    pub(super) fn asked(&self) -> BTreeMap<usize, Asked> {
        let reads = |(node, count): (&usize, &u64)| {
            (*node, Asked { all: *count, reads: *count, ..Asked::default() })
        };
        self.told().answers.iter().map(reads).collect()
    }

    pub(super) fn facts(&self, watch: &FaultWatch, lost: Option<LostWork>) -> FaultFacts {
        let has_happened = self.failure().is_none();
        let mut told = self.told().clone();
        // A clean shutdown is a fault from its begin on, however long it takes.
        if !matches!(
            self.plan.action,
            FaultAction::Kill | FaultAction::Freeze | FaultAction::Partition
        ) {
            told.done_s = f64::NEG_INFINITY;
        }
        let lost = lost.unwrap_or_else(|| LostWork::untold(say!(losses_untraceable)));
        let mut facts = FaultFacts {
            action: self.plan.action.name().to_owned(),
            node: self.nodes[self.node].name.clone(),
            at_s: told.at_s.unwrap_or(self.plan.at_s),
            heal_asked_at_s: told.heal_asked_at_s,
            healed_at_s: told.healed_at_s,
            promoted: told.promoted.map(|(node, _)| self.nodes[node].name.clone()),
            promoted_at_s: told.promoted.map(|(_, at_s)| at_s),
            acknowledged: lost.acknowledged,
            lost: lost.lost,
            unknown: lost.unknown,
            across_shards: lost.across_shards,
            evidence: lost.evidence,
            // Of a fault that did not happen, nothing came: the status of its trial says why.
            steps: if has_happened { told.steps } else { Vec::new() },
            ..FaultFacts::default()
        };
        watch.tell(&mut facts, told.done_s);
        facts
    }

    /// Why the trial is none of this fault: it did not happen.
    pub(super) fn failure(&self) -> Option<Message> {
        let told = self.told();
        let never = || told.at_s.is_none().then(|| say!(fault_never_came));
        told.failure.clone().or_else(never)
    }

    /// Notes a step that has just been made, and tells when that was.
    fn step(&self, what: Message) -> f64 {
        let at_s = self.now_s();
        let mut told = self.told();
        let event = Event { at_s: Some(at_s), ..Event::new(EventKind::Server, &what) };
        told.events.push(event);
        told.steps.push(FaultStep { at_s, what });
        at_s
    }

    fn fail(&self, why: Message) {
        self.step(why.clone());
        self.told().failure.get_or_insert(why);
    }

    /// Seconds from the opening of the window.
    fn now_s(&self) -> f64 {
        let opens = self.window.get().map_or(0, |window| window.opens);
        (monotonic_now() as f64 - opens as f64) / 1e9
    }

    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    fn told(&self) -> MutexGuard<'_, FaultTimes> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn hands(&self) -> MutexGuard<'_, Hands> {
        self.hands.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The node of this name, or the first one of this role. The primary is whoever takes writes now.
fn find(nodes: &[ReachedNode], wanted: &str, primary: usize) -> Option<usize> {
    let by_name = nodes.iter().position(|node| node.name == wanted);
    let by_role = || match wanted {
        "primary" => Some(primary).filter(|primary| *primary < nodes.len()),
        role => nodes.iter().position(|node| node.role.name() == role),
    };
    by_name.or_else(by_role)
}

/// The node that takes over: the one of this name, or the first one that holds the data and isn't the one
/// that the fault is done to.
fn heir(nodes: &[ReachedNode], wanted: &str, node: usize, primary: usize) -> Option<usize> {
    let holds_data = |role: Role| matches!(role, Role::Primary | Role::ReadOnly);
    let mut able = nodes
        .iter()
        .enumerate()
        .filter(|(index, other)| *index != node && *index != primary && holds_data(other.role));
    able.find(|(_, other)| wanted.is_empty() || other.name == wanted).map(|(index, _)| index)
}

fn missing(target: &TargetFacts, name: &str) -> Failure {
    let nodes: Vec<&str> = target.nodes.iter().map(|node| node.name.as_str()).collect();
    let hint = match nodes.as_slice() {
        [] => "List its servers as `nodes`, or give a cluster: `--target NAME=cluster:DIR`."
            .to_owned(),
        nodes => format!("Its nodes: {}.", nodes.join(", ")),
    };
    Failure::usage(format!("The target {} has no node `{name}` for the fault.", target.name))
        .with_hint(hint)
}

/// Sessions follow when a primary is replaced by the fault done to it, not when a healthy one is.
fn not_the_primary(target: &TargetFacts, name: &str) -> Failure {
    let message = format!(
        "The fault promotes another node, but {name} of the target {} is not the primary.",
        target.name
    );
    Failure::usage(message)
        .with_hint("Leave `promote` out of the fault, or write `node = \"primary\"`.")
}

fn no_heir(target: &TargetFacts) -> Failure {
    let message = format!("The target {} has no other node that could take over.", target.name);
    if target.nodes.iter().any(|node| node.role == Role::Shard) {
        return Failure::usage(message)
            .with_hint("Leave `promote` out of the fault: shards have no read-only nodes.");
    }
    Failure::usage(message).with_hint(
        "Leave `promote` out of the fault, or give a cluster with replicas: `dyno cluster up mariadb \
         --replicas 1`, then `--target NAME=cluster:DIR`.",
    )
}

fn done(action: FaultAction, node: &str) -> Message {
    match action {
        FaultAction::Kill => say!(fault_killed, node = node),
        FaultAction::Stop => say!(fault_stopped, node = node),
        FaultAction::Restart => say!(fault_restarted, node = node),
        FaultAction::Freeze => say!(fault_frozen, node = node),
        FaultAction::Partition => say!(fault_partitioned, node = node),
        FaultAction::Command => say!(fault_by_command, node = node),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_facts::ServerFacts;

    /// Nodes of these names and roles, none of which is ever asked.
    fn nodes(roles: &[(&str, Role)]) -> Vec<ReachedNode> {
        let node = |(name, role): &(&str, Role)| ReachedNode {
            name: (*name).to_owned(),
            role: *role,
            database: Database::open(&"sqlite:none.db".parse().expect("a URL")).expect("a driver"),
            facts: ServerFacts::default(),
            same_host: true,
            server: crate::databases::ServerPlace::Unknown,
        };
        roles.iter().map(node).collect()
    }

    #[test]
    fn nodes_are_found_by_name_and_by_role() {
        let nodes = nodes(&[
            ("n1", Role::Primary),
            ("n2", Role::ReadOnly),
            ("n3", Role::ReadOnly),
            ("door", Role::Endpoint),
        ]);
        assert_eq!(find(&nodes, "primary", 0), Some(0));
        assert_eq!(find(&nodes, "primary", 2), Some(2), "whoever takes writes now");
        assert_eq!(find(&nodes, "n3", 0), Some(2));
        assert_eq!(find(&nodes, "read_only", 0), Some(1));
        assert_eq!(find(&nodes, "n4", 0), None);
        assert_eq!(heir(&nodes, "", 0, 0), Some(1));
        assert_eq!(heir(&nodes, "n3", 0, 0), Some(2));
        assert_eq!(heir(&nodes, "", 0, 1), Some(2), "not the one that takes writes already");
        assert_eq!(heir(&nodes, "door", 0, 0), None, "an endpoint holds no data");
    }
}
