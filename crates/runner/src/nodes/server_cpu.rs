//! What each node's processes use in the measured window, where they run on this machine.

use super::{Nodes, Sampling};
use dyno_core::Nanos;
use dyno_facts::Measures;
use dyno_observe::{ServerProcess, ServerUsage};
use dyno_reactor::monotonic_now;
use std::time::Duration;

/// How long the thread sleeps at most before it looks whether the trial is over.
const LOOK: Nanos = 20_000_000;

/// What a node has used in the window.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct NodeUse {
    pub(super) measures: Measures,
    /// Whose it is, with all that descend from it.
    pub(super) process: String,
}

/// Waits for the window and counts what each node uses in it; in the order of the nodes.
pub(super) fn watch(nodes: &Nodes<'_>, sampling: &Sampling) -> Vec<Option<NodeUse>> {
    let Some(window) = sampling.begun() else { return Vec::new() };
    // Searched for before the window opens: that takes some milliseconds.
    let processes: Vec<Option<ServerProcess>> =
        nodes.list.iter().map(|node| node.server.process()).collect();
    // Of nodes that share a process nobody knows which one used what.
    let is_shared =
        |one: &ServerProcess| processes.iter().flatten().filter(|it| *it == one).count() > 1;
    let read = || -> Vec<Option<ServerUsage>> {
        let own = processes.iter().map(|process| process.as_ref().filter(|it| !is_shared(it)));
        own.map(|process| process?.usage()).collect()
    };
    wait(window.opens, sampling);
    let (began, before) = (monotonic_now(), read());
    // Sessions end with the window, and what their processes counted may end with them.
    let length = window.closes - window.opens;
    let looks_at = window.closes - LOOK.min(length / 10);
    wait(looks_at, sampling);
    let (ended, after) = (monotonic_now(), read());
    // This thread may have woken late, like any other.
    let share = match ended >= looks_at {
        true => length as f64 / (ended - began).max(1) as f64,
        false => 1.0,
    };
    let both =
        || before.iter().zip(&after).map(|(before, after)| before.as_ref().zip(after.as_ref()));
    // What one of them uses makes the sum known well enough.
    let is_told = both().flatten().any(|(before, after)| after.used_s(before).is_some());
    let used = |looked: Option<(&ServerUsage, &ServerUsage)>| {
        let (before, after) = looked.filter(|_| is_told)?;
        let measures = after.since(before)?.scaled(share);
        Some(NodeUse { measures, process: after.counted() })
    };
    both().map(used).collect()
}

/// Until a moment, or the end of the trial.
fn wait(until: Nanos, sampling: &Sampling) {
    loop {
        let now = monotonic_now();
        if now >= until || sampling.is_over() {
            break;
        }
        std::thread::sleep(Duration::from_nanos((until - now).min(LOOK)));
    }
}
