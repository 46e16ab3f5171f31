//! The most that each target did.

use crate::evidence::{Paper, Spread, Target};
use crate::text::Message;
use dyno_facts::{Purpose, say};

/// The most that a target did in an experiment.
#[derive(Clone, Debug, PartialEq)]
pub struct Capacity {
    /// Number of the experiment in the paper, from 0.
    pub experiment_index: usize,
    /// Title of the experiment.
    pub experiment: String,
    /// Label of the target.
    pub target: String,
    /// At which load, in words.
    pub load: Message,
    pub throughput: Spread,
    /// What it counts.
    pub unit: Message,
    /// Trials that it rests on.
    pub repeats: usize,
    /// The objective that limits it, as it is written; `None` for the most of a list of load levels.
    pub objective: Option<String>,
    /// True when it was measured again after it had been chosen.
    pub is_confirmed: bool,
    /// Virtual CPUs of a node, as stated; of all read-only nodes where the load is spread over these.
    pub vcpu: Option<f64>,
    /// The throughput by these.
    pub per_vcpu: Option<f64>,
    /// Numbers of the checks that found something.
    pub checks: Vec<usize>,
}

/// One row per experiment and target with figures of throughput.
pub(super) fn rows(paper: &Paper) -> Vec<Capacity> {
    let row = |row: &crate::KeyRow| {
        let point = &row.point;
        let experiment = &paper.experiments[row.experiment_index];
        let target = paper.targets.iter().find(|target| target.label == point.target);
        let vcpu = target.and_then(vcpu).filter(|vcpu| *vcpu > 0.0);
        let throughput = point.throughput();
        Capacity {
            experiment_index: row.experiment_index,
            experiment: row.experiment.clone(),
            target: point.target.clone(),
            load: point.load_words(),
            throughput,
            unit: match point.tpcc {
                Some(_) => Message::from("tpmC"),
                None => say!(transactions_s),
            },
            repeats: point.repeats,
            objective: experiment.objective.clone(),
            is_confirmed: point.purpose == Purpose::Confirm,
            vcpu,
            per_vcpu: vcpu.map(|vcpu| throughput.median / vcpu),
            checks: point.checks.clone(),
        }
    };
    paper.key_rows.iter().map(row).collect()
}

fn vcpu(target: &Target) -> Option<f64> {
    let readers = target.nodes.iter().filter(|node| node.role == "read_only").count();
    // Nothing of the load is done by other nodes, and all of it by these.
    let nodes = if target.route == "spread" { readers.max(1) } else { 1 };
    target.vcpu.map(|vcpu| vcpu * nodes as f64)
}
