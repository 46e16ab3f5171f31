//! Watching the nodes of a target while something waits for them: loads, trials, and questions outside the engine
//! (checks, proofs, looks, passes of TPC-H). The watcher itself is [`dyno_load::watched`]. If no answer comes, the
//! user hears who waits for what and how the nodes are; if a node is lost, no one waits any longer.

use crate::databases::{self, Database, ReachedDatabase, ServerPlace};
use crate::failure::{Failure, Result, sentence};
use crate::{output, signals};
use dyno_core::{Discard, Nanos, NodeHealth, NodeSight, SECOND};
use dyno_engine::Control;
use dyno_facts::{Message, say};
use dyno_load::{
    Activity, LOST_NODE_REMEDY, LoadObserver, LostNode, StallTimeouts, await_loss, look_at,
};
use dyno_reactor::monotonic_now;
use dyno_topology::NodeWatch;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// A node, and its process if that is known.
#[derive(Clone)]
pub(crate) struct WatchedNode {
    name: String,
    database: Database,
    /// Process of a node of a cluster of this machine.
    process: Option<NodeWatch>,
}

impl WatchedNode {
    pub(crate) fn from_database(reached: &ReachedDatabase) -> Vec<Self> {
        let nodes = reached.nodes.iter().map(|node| WatchedNode {
            name: node.name.clone(),
            database: node.database.clone(),
            process: match &node.server {
                ServerPlace::Cluster { folder, node } => NodeWatch::new(folder, node),
                ServerPlace::Unknown | ServerPlace::Listening(_) => None,
            },
        });
        nodes.collect()
    }

    fn dead_process(&self) -> Option<NodeSight> {
        self.process.as_ref()?.lost()
    }

    /// Returns true if the node answers a query in this time.
    fn answers(&self, within: Nanos) -> bool {
        let answer = databases::ask_within(&self.database.admin(), within, async |session| {
            session.query("SELECT 1", &mut Discard).await
        });
        answer.is_ok()
    }

    /// Looks at its process, and whether it answers. An embedded database is not a node.
    fn inspect(&self, answer_within: Nanos) -> Option<NodeSight> {
        let process = self.process.as_ref().and_then(NodeWatch::look);
        let admin = self.database.admin();
        if admin.blocks() || process.as_ref().is_some_and(|seen| seen.health == NodeHealth::Dead) {
            return process;
        }
        let sight = look_at(&admin, &self.name, answer_within, signals::has_come);
        Some(match process {
            None => sight,
            Some(process) => NodeSight {
                health: process.health.max(sight.health),
                evidence: format!("{}; {}", process.evidence, sight.evidence),
                ..process
            },
        })
    }
}

pub(crate) fn dead_node(nodes: &[WatchedNode]) -> Option<NodeSight> {
    nodes.iter().find_map(WatchedNode::dead_process)
}

/// The nodes that are not dead: a fault may leave a node down.
pub(crate) fn living(nodes: &[WatchedNode]) -> Vec<WatchedNode> {
    nodes.iter().filter(|node| node.dead_process().is_none()).cloned().collect()
}

/// Looks at all nodes at the same time.
pub(crate) fn look_at_nodes(nodes: &[WatchedNode], answer_within: Nanos) -> Vec<NodeSight> {
    thread::scope(|scope| {
        let threads = nodes.iter().map(|node| scope.spawn(move || node.inspect(answer_within)));
        let threads: Vec<_> = threads.collect();
        threads.into_iter().filter_map(|thread| thread.join().ok().flatten()).collect()
    })
}

fn describe_sight(sight: &NodeSight) -> Message {
    say!(node_looks, node = &sight.name, evidence = &sight.evidence)
}

/// An error of a server, with how its nodes are by process, memory and log if one of them is not well.
pub(crate) fn explain(failure: Failure, nodes: &[WatchedNode]) -> Failure {
    let sights = nodes.iter().filter_map(|node| node.process.as_ref()?.look());
    let worst =
        sights.filter(|sight| sight.health != NodeHealth::Works).max_by_key(|sight| sight.health);
    let Some(node) = worst else { return failure };
    Failure { message: Message::sentences(&[failure.message, describe_sight(&node)]), ..failure }
}

/// Waits a minute at most until all nodes answer again, so that the data can be looked at. False when one of them did
/// not come back, or the user won't wait.
pub(crate) fn wait_for_return(nodes: &[WatchedNode], place: &str) -> bool {
    let patience = StallTimeouts::for_trial();
    let within = 6 * patience.says_after;
    let due = monotonic_now() + within;
    let mut is_reported = false;
    while monotonic_now() < due && !signals::has_come() {
        let away = nodes
            .iter()
            .filter(|node| node.dead_process().is_some() || !node.answers(patience.answer_within));
        let away: Vec<&str> = away.map(|node| node.name.as_str()).collect();
        if away.is_empty() {
            return true;
        }
        if !is_reported {
            let (names, seconds) = (away.join(", "), within / SECOND);
            output::talk(&format!(
                "{place}: waiting up to {seconds} s for {names}: what was acknowledged is then held against the data"
            ));
            output::talk(&format!(
                "hint: start it again (of a cluster of dyno: `dyno cluster start {}`), or press Ctrl-C: the next run of \
                 the same command looks then",
                away[0]
            ));
            is_reported = true;
        }
        thread::sleep(Duration::from_millis(250));
    }
    false
}

/// Stops a trial whose server hangs or died although no fault was planned: its sessions would wait for ever.
struct TrialWatch<'a> {
    nodes: &'a [WatchedNode],
    control: &'a Control,
}

impl LoadObserver for TrialWatch<'_> {
    fn is_canceled(&self) -> bool {
        self.control.is_stopped()
    }

    fn patience(&self) -> StallTimeouts {
        StallTimeouts::for_trial()
    }

    fn lost_node(&self) -> Option<NodeSight> {
        dead_node(self.nodes)
    }

    fn give_up(&self, node: &LostNode) {
        output::talk(&trial_verdict(node).to_string());
        self.control.stop();
    }
}

/// The reason for ending a trial.
pub(crate) fn trial_verdict(lost: &LostNode) -> Message {
    let (NodeSight { name, health, evidence }, idle_s) = (&lost.sight, lost.idle / SECOND);
    match health {
        NodeHealth::Dead => say!(node_dead_in_trial, node = name, evidence),
        _ => say!(node_lost_in_trial, node = name, evidence, idle_s),
    }
}

/// Does `drive`, and stops it by `control` when one of its nodes is lost: when its process is gone, or when it answers
/// no question while nothing is noted in `activity`.
pub(crate) fn watch_trial<T>(
    activity: &Activity,
    nodes: &[WatchedNode],
    control: &Control,
    drive: impl FnOnce() -> T,
) -> T {
    activity.note(0, "a commit".to_owned());
    let watch = TrialWatch { nodes, control };
    let result = dyno_load::watched(
        activity,
        &watch,
        || look_at_nodes(nodes, watch.patience().answer_within),
        drive,
    );
    if activity.verdict().is_some() {
        control.resume();
        if signals::has_come() {
            control.stop();
        }
    }
    result
}

/// A question to servers that has no answer yet.
struct Question {
    place: String,
    work: &'static str,
    nodes: Vec<WatchedNode>,
    activity: Arc<Activity>,
}

/// Questions within questions: the last one waits for its answer.
static QUESTIONS: Mutex<Vec<Arc<Question>>> = Mutex::new(Vec::new());

fn lock_questions() -> MutexGuard<'static, Vec<Arc<Question>>> {
    QUESTIONS.lock().unwrap_or_else(PoisonError::into_inner)
}

fn current_question() -> Option<Arc<Question>> {
    lock_questions().last().cloned()
}

/// The reason for giving up questions: the fate of a server that some of them need.
pub fn given_up() -> Option<String> {
    current_question()?.activity.verdict().map(|lost| lost.problem.clone())
}

/// Notes of a session, for who watches, that it waits for `description`; [`dyno_load::doing`] within `waiting` notes what
/// follows.
pub async fn note_waiting<F: Future>(description: &str, waiting: F) -> F::Output {
    match current_question() {
        Some(question) => question.activity.with_session(description, waiting).await,
        None => waiting.await,
    }
}

/// Asks the servers of `nodes`, watched. `work` is what is done, in sentences.
pub(crate) fn watching<T>(
    place: &str,
    work: &'static str,
    nodes: &[WatchedNode],
    ask: impl FnOnce() -> T,
) -> T {
    watch_question(&Arc::default(), (place, work), nodes, ask)
}

fn watch_question<T>(
    activity: &Arc<Activity>,
    (place, work): (&str, &'static str),
    nodes: &[WatchedNode],
    ask: impl FnOnce() -> T,
) -> T {
    struct PopOnDrop;
    impl Drop for PopOnDrop {
        fn drop(&mut self) {
            lock_questions().pop();
        }
    }
    let (place, nodes, activity) = (place.to_owned(), nodes.to_vec(), Arc::clone(activity));
    let question = Arc::new(Question { place, work, nodes, activity });
    lock_questions().push(Arc::clone(&question));
    let _pushed = PopOnDrop;
    dyno_load::watched(&question.activity, &AskedNodes, || AskedNodes.nodes(), ask)
}

/// Like [`watching`], for what may fail: the failure names the place, and a node that is lost. A proxy may wait for a
/// dead one for minutes.
pub(crate) fn guarded<T>(
    place: &Message,
    work: &'static str,
    nodes: &[WatchedNode],
    ask: impl FnOnce() -> Result<T>,
) -> Result<T> {
    ask_explained(&place.to_string(), work, nodes, ask).map_err(|failure| failure.at(place))
}

fn ask_explained<T>(
    place: &str,
    work: &'static str,
    nodes: &[WatchedNode],
    ask: impl FnOnce() -> Result<T>,
) -> Result<T> {
    let activity = Arc::default();
    let answer = watch_question(&activity, (place, work), nodes, ask);
    answer.map_err(|failure| {
        let dead = await_loss(
            || dead_node(nodes),
            || nodes.iter().any(|node| node.process.is_some()) && !signals::has_come(),
        );
        let loss = match dead {
            Some(node) => Some(describe_sight(&node)),
            None => activity.verdict().map(|loss| sentence(&loss.problem).into()),
        };
        match loss.filter(|_| !signals::has_come()) {
            Some(loss) => Failure::new(loss).with_hint(LOST_NODE_REMEDY),
            None => failure,
        }
    })
}

/// Looks at a target for `dyno check` or `dyno bench` while its nodes are watched.
///
/// # Errors
/// The errors of `ask`, and the loss of a node.
pub fn asking<T>(
    place: &str,
    reached: &ReachedDatabase,
    ask: impl FnOnce() -> Result<T>,
) -> Result<T> {
    ask_explained(place, "the check", &WatchedNode::from_database(reached), ask)
}

/// Follows the question that waits for its answer: proofs that are made like loads.
#[derive(Clone, Copy, Debug)]
pub struct AskedNodes;

impl LoadObserver for AskedNodes {
    fn note(&self, text: &str) {
        if let Some(question) = current_question() {
            output::talk(&format!("note: {}: {text}", question.place));
        }
    }

    fn work(&self) -> &'static str {
        current_question().map_or("the check", |question| question.work)
    }

    fn is_canceled(&self) -> bool {
        signals::has_come() || given_up().is_some()
    }

    fn lost_node(&self) -> Option<NodeSight> {
        dead_node(&current_question()?.nodes)
    }

    fn watches_nodes(&self) -> bool {
        true
    }

    fn nodes(&self) -> Vec<NodeSight> {
        let within = self.patience().answer_within;
        current_question().map_or(Vec::new(), |question| look_at_nodes(&question.nodes, within))
    }
}
