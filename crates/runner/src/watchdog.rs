//! Ends a trial whose server hangs or died although no fault was planned: its sessions would wait for ever.

use crate::failure::Failure;
use crate::nodes::Over;
use crate::output;
use crate::signals;
use crate::watched::{self, WatchedNode};
use dyno_core::{Nanos, SECOND};
use dyno_engine::Control;
use dyno_facts::{Message, say};
use dyno_load::{NodeHealth, NodeSight, Patience};
use dyno_reactor::monotonic_now;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::Builder;
use std::time::Duration;

/// How often it looks whether nodes are alive.
const LOOK: Duration = Duration::from_millis(250);

/// The server for which a trial was ended.
#[derive(Clone, Debug)]
pub(crate) struct LostNode {
    pub(crate) name: String,
    /// What became of it.
    pub(crate) why: Message,
}

#[derive(Default)]
pub(crate) struct Watchdog {
    /// When something was committed last, on [`monotonic_now`].
    moved_at: AtomicU64,
    lost: OnceLock<LostNode>,
}

impl Watchdog {
    pub(crate) fn moved(&self) {
        self.moved_at.store(monotonic_now(), Ordering::Relaxed);
    }

    /// Why the trial was ended.
    pub(crate) fn lost(&self) -> Option<&LostNode> {
        self.lost.get()
    }

    /// Does `work`, and stops it by `control` when one of its nodes is lost. A node is lost when its process is gone,
    /// or when it answers no question while no transaction commits.
    pub(crate) fn during<T>(
        &self,
        nodes: &[WatchedNode],
        control: &Control,
        work: impl FnOnce() -> T,
    ) -> T {
        self.moved();
        let is_over = AtomicBool::new(false);
        let done = std::thread::scope(|scope| {
            let watch = || self.watch(nodes, control, &is_over);
            // Without the thread the trial is what it was before there was one.
            let _ = Builder::new().name("watchdog".to_owned()).spawn_scoped(scope, watch);
            let _over = Over::new(&is_over);
            work()
        });
        if self.lost.get().is_some() {
            control.resume();
            if signals::has_come() {
                control.stop();
            }
        }
        done
    }

    fn idle(&self) -> Nanos {
        monotonic_now().saturating_sub(self.moved_at.load(Ordering::Relaxed))
    }

    fn watch(&self, nodes: &[WatchedNode], control: &Control, is_over: &AtomicBool) {
        let patience = Patience::of_trial();
        let mut due = patience.says_after;
        while !is_over.load(Ordering::Relaxed) && !control.is_stopped() {
            std::thread::sleep(LOOK);
            let idle = self.idle();
            let mut sights: Vec<_> = watched::lost(nodes).into_iter().collect();
            if idle < patience.says_after {
                due = patience.says_after;
            } else if idle >= due && sights.is_empty() {
                // Ever more rarely: transactions may be long.
                due = idle + idle / 2;
                sights = watched::look(nodes, patience.answer_within);
            }
            // A look takes seconds, and something may have been committed meanwhile.
            let idle = self.idle();
            let lost = patience.lost(idle, &sights);
            if let Some(node) = lost.filter(|_| !is_over.load(Ordering::Relaxed)) {
                let (name, why) = (node.name.clone(), sentence(node, idle));
                output::talk(&why.to_string());
                let _ = self.lost.set(LostNode { name, why });
                control.stop();
            }
        }
    }
}

/// An error of a server, with what its nodes look like where one of them is not well.
pub(crate) fn explained(failure: Failure, nodes: &[WatchedNode]) -> Failure {
    let Some(node) = watched::ailing(nodes) else { return failure };
    Failure { message: Message::sentences(&[failure.message, watched::sentence(&node)]), ..failure }
}

/// Waits a minute at most until all nodes answer again, so that the data can be looked at. False when one of them did
/// not come back, or the user won't wait.
pub(crate) fn are_back(nodes: &[WatchedNode], place: &str) -> bool {
    let patience = Patience::of_trial();
    let within = 6 * patience.says_after;
    let until = monotonic_now() + within;
    let mut is_said = false;
    while monotonic_now() < until && !signals::has_come() {
        let away = watched::away(nodes, patience.answer_within);
        if away.is_empty() {
            return true;
        }
        if !is_said {
            let (names, seconds) = (away.join(", "), within / SECOND);
            output::talk(&format!(
                "{place}: waiting up to {seconds} s for {names}: what was acknowledged is then held against the data"
            ));
            output::talk(&format!(
                "hint: start it again (of a cluster of dyno: `dyno cluster start {}`), or press Ctrl-C: the next run of \
                 the same command looks then",
                away[0]
            ));
            is_said = true;
        }
        std::thread::sleep(LOOK);
    }
    false
}

fn sentence(node: &NodeSight, idle: Nanos) -> Message {
    let NodeSight { name, health, evidence } = node;
    match health {
        NodeHealth::Dead => say!(node_dead_in_trial, node = name, evidence = evidence),
        _ => {
            say!(node_lost_in_trial, node = name, evidence = evidence, idle_s = idle / SECOND)
        }
    }
}
