//! Questions to servers outside the engine: checks, proofs, looks, passes of TPC-H. Where no answer comes, the user hears
//! which session waits for what and how the nodes are; where a node is lost, nobody waits any longer.

use crate::databases::ReachedDatabase;
use crate::failure::{Failure, sentence};
use crate::output;
use crate::signals;
use crate::watched::{self, WatchedNode};
use dyno_core::Driver;
use dyno_facts::TargetFacts;
use dyno_load::{Activity, LOST_NODE_REMEDY, LoadObserver, NodeSight};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What is asked now, of whom.
struct Asked {
    place: String,
    work: &'static str,
    nodes: Vec<WatchedNode>,
    activity: Arc<Activity>,
}

/// Questions within questions: the last ones are asked now.
static ASKED: Mutex<Vec<Arc<Asked>>> = Mutex::new(Vec::new());

fn asked() -> MutexGuard<'static, Vec<Arc<Asked>>> {
    ASKED.lock().unwrap_or_else(PoisonError::into_inner)
}

fn now() -> Option<Arc<Asked>> {
    asked().last().cloned()
}

/// Why questions are given up: what has become of a server that some of them need.
pub fn given_up() -> Option<String> {
    now()?.activity.verdict().map(|(problem, _)| problem.to_owned())
}

/// Notes of a session, for who watches, that it waits for `what`; [`dyno_load::doing`] within `waiting` notes what
/// follows.
pub async fn noted<F: Future>(what: &str, waiting: F) -> F::Output {
    match now() {
        Some(asked) => asked.activity.with_session(what, waiting).await,
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
    asks(&Arc::default(), (place, work), nodes, ask)
}

fn asks<T>(
    activity: &Arc<Activity>,
    (place, work): (&str, &'static str),
    nodes: &[WatchedNode],
    ask: impl FnOnce() -> T,
) -> T {
    struct Pushed;
    impl Drop for Pushed {
        fn drop(&mut self) {
            asked().pop();
        }
    }
    let (place, nodes, activity) = (place.to_owned(), nodes.to_vec(), Arc::clone(activity));
    let asking = Arc::new(Asked { place, work, nodes, activity });
    asked().push(Arc::clone(&asking));
    let _pushed = Pushed;
    dyno_load::watched(&asking.activity, &AskedNodes, || AskedNodes.nodes(), ask)
}

/// The same for what may fail: the failure names a node that is lost. A proxy may wait for a dead one for minutes.
pub(crate) fn guarded<T>(
    place: &str,
    work: &'static str,
    nodes: &[WatchedNode],
    ask: impl FnOnce() -> Result<T, Failure>,
) -> Result<T, Failure> {
    let activity = Arc::default();
    let asked = asks(&activity, (place, work), nodes, ask);
    asked.map_err(|failure| match watched::lost(nodes).filter(|_| !signals::has_come()) {
        Some(node) => Failure::new(watched::sentence(&node)).with_hint(LOST_NODE_REMEDY),
        None => match activity.verdict().filter(|_| !signals::has_come()) {
            Some((problem, hint)) => Failure::new(sentence(problem)).with_hint(hint),
            None => failure,
        },
    })
}

/// The same for a target that `dyno check` or `dyno bench` looks at; `planned` names its nodes where there are several.
///
/// # Errors
/// Those of `ask`, or that a node is lost.
pub fn asking<T>(
    place: &str,
    planned: Option<&TargetFacts>,
    reached: &ReachedDatabase,
    ask: impl FnOnce() -> Result<T, Failure>,
) -> Result<T, Failure> {
    let mut nodes = watched::watched(planned, reached);
    if nodes.is_empty() {
        let place = reached.database.admin().place();
        nodes.push(WatchedNode::only(&place, &reached.database));
    }
    guarded(place, "the check", &nodes, ask)
}

/// Follows what is asked now: proofs that are made like loads.
#[derive(Clone, Copy, Debug)]
pub struct AskedNodes;

impl LoadObserver for AskedNodes {
    fn note(&self, text: &str) {
        if let Some(asked) = now() {
            output::talk(&format!("note: {}: {text}", asked.place));
        }
    }

    fn work(&self) -> &'static str {
        now().map_or("the check", |asked| asked.work)
    }

    fn is_canceled(&self) -> bool {
        signals::has_come() || given_up().is_some()
    }

    fn lost_node(&self) -> Option<NodeSight> {
        watched::lost(&now()?.nodes)
    }

    fn watches_nodes(&self) -> bool {
        true
    }

    fn nodes(&self) -> Vec<NodeSight> {
        now().map_or(Vec::new(), |asked| watched::look(&asked.nodes, self.patience().answer_within))
    }
}
