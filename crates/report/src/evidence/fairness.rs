//! What makes a comparison of the targets fair or unfair: what a commit is worth on each of them, in
//! which settings they differ, how the data relate to memory.

use crate::evidence::settings;
use crate::evidence::{Experiment, Target, Trial};
use crate::findings::checks::nodes_of;
use crate::text::{Message, stored};
use dyno_facts::{NodeConditions, say};
use std::collections::BTreeSet;

/// What makes the comparison of the targets fair or unfair.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Fairness {
    /// What a commit is worth, by target.
    pub commits: Vec<CommitRow>,
    /// Settings that differ, by product.
    pub differences: Vec<DifferenceTable>,
    /// Size of the data against memory, by experiment and target.
    pub memory: Vec<MemoryRow>,
}

/// What a commit is worth on a target.
#[derive(Clone, Debug, PartialEq)]
pub struct CommitRow {
    /// Label of the target.
    pub target: String,
    /// Whether a commit is on disk when it is acknowledged, by the settings; `None` where none is known.
    pub on_disk: Option<Message>,
    /// True when a commit may be lost or torn.
    pub is_weak: bool,
    /// The settings that say so.
    pub settings: Vec<String>,
    /// What a commit waits for beside the node's own disk.
    pub acknowledged_by: Option<Message>,
    /// How copies are kept: their modes.
    pub copies: Vec<Message>,
    /// How a commit is made durable in the suite's words: stated, not read.
    pub stated: Option<String>,
    /// The isolation level of sessions.
    pub isolation: Option<String>,
    /// How connections are made.
    pub transport: Option<String>,
    /// Round trip of the smallest statement, microseconds.
    pub round_trip_us: Option<f64>,
}

/// Settings in which targets of one product differ.
#[derive(Clone, Debug, PartialEq)]
pub struct DifferenceTable {
    /// Labels of the targets.
    pub targets: Vec<String>,
    /// Settings that differ, those that decide what a commit is worth first.
    pub rows: Vec<Difference>,
    /// How many settings are the same on all of them.
    pub same: usize,
    /// Settings that name a machine, a file or a moment, and are left out.
    pub left_out: usize,
}

/// A setting that differs.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    pub name: String,
    /// Its values in the order of the targets; `None` where a target has no such setting.
    pub values: Vec<Option<String>>,
    /// What it decides, where that is known.
    pub meaning: Option<Message>,
}

/// Size of the data against memory.
#[derive(Clone, Debug, PartialEq)]
pub struct MemoryRow {
    /// Title of the experiment.
    pub experiment: String,
    /// Label of the target.
    pub target: String,
    /// Size of the data with their indexes, bytes.
    pub size_bytes: Option<f64>,
    /// The server's memory for data, bytes.
    pub memory_bytes: Option<f64>,
    /// How many times the data fill it.
    pub size_to_memory: Option<f64>,
    /// In memory, at the edge, or disk-bound.
    pub class: Option<Message>,
    /// Share of page requests that memory answered, 0 to 1: the lowest of the trials.
    pub hit_share: Option<f64>,
}

/// Data up to this share of the memory for them stay in it; the rest of it is the server's own.
pub(crate) const IN_MEMORY: f64 = 0.8;
/// Data of more than so many times the memory can't be held by it.
pub(crate) const DISK_BOUND: f64 = 1.2;

pub(super) fn fairness(
    targets: &[Target],
    trials: &[Trial],
    experiments: &[Experiment],
) -> Fairness {
    Fairness {
        commits: targets.iter().map(|target| commit(target, trials)).collect(),
        differences: differences(targets),
        memory: memory(experiments, trials),
    }
}

fn nodes<'a>(target: &Target, trials: &'a [Trial]) -> impl Iterator<Item = &'a NodeConditions> {
    let label = target.label.clone();
    let own = trials.iter().filter(move |trial| trial.target == label);
    own.flat_map(|trial| nodes_of(trial).map(|(_, node)| node))
}

fn commit(target: &Target, trials: &[Trial]) -> CommitRow {
    let own = || nodes(target, trials);
    let of_commits = || target.settings.iter().filter(|row| settings::is_of_commits(&row.name));
    let is_weak = of_commits().any(|row| row.is_weak);
    let shown = of_commits().filter(|row| !is_weak || row.is_weak);
    let mut copies: Vec<Message> = Vec::new();
    for replica in own().next().map(|node| node.replicas.as_slice()).unwrap_or_default() {
        copies.push(say!(
            name_mode_state,
            name = &replica.name,
            mode = &replica.mode,
            state = &replica.state
        ));
    }
    CommitRow {
        target: target.label.clone(),
        on_disk: of_commits().next().map(|_| match is_weak {
            true => say!(may_be_lost_or_torn),
            false => say!(on_disk),
        }),
        is_weak,
        settings: shown.map(|row| format!("{}={}", row.name, row.value)).collect(),
        acknowledged_by: own().find_map(|node| node.acknowledged_by.as_ref()).map(stored),
        copies,
        stated: target.durability.clone(),
        isolation: own().find_map(|node| node.isolation.clone()).or_else(|| {
            let mut names = settings::ISOLATION.iter();
            names.find_map(|name| target.all_settings.get(*name).cloned())
        }),
        transport: own().find_map(|node| node.transport.clone()),
        round_trip_us: own().find_map(|node| node.round_trip_us),
    }
}

/// Among targets whose servers call themselves the same: settings of different products have nothing
/// to do with each other.
fn differences(targets: &[Target]) -> Vec<DifferenceTable> {
    let product = |target: &Target| target.product.split(' ').next().unwrap_or_default().to_owned();
    let known = || targets.iter().filter(|target| !target.all_settings.is_empty());
    let products = crate::format::unique(known().map(product).collect());
    let table = |name: String| {
        let own: Vec<&Target> = known().filter(|target| product(target) == name).collect();
        (own.len() > 1).then(|| compare(&own))
    };
    products.into_iter().filter_map(table).collect()
}

fn compare(targets: &[&Target]) -> DifferenceTable {
    let names: BTreeSet<&String> =
        targets.iter().flat_map(|target| target.all_settings.keys()).collect();
    let (mut same, mut left_out) = (0, 0);
    let mut rows: Vec<Difference> = Vec::new();
    for name in names {
        let values: Vec<Option<String>> =
            targets.iter().map(|target| target.all_settings.get(name).cloned()).collect();
        if values.windows(2).all(|pair| pair[0] == pair[1]) {
            same += 1;
        } else if settings::names_a_place(name) {
            left_out += 1;
        } else {
            rows.push(Difference { name: name.clone(), values, meaning: settings::meaning(name) });
        }
    }
    rows.sort_by_key(|row| row.meaning.is_none());
    let targets = targets.iter().map(|target| target.label.clone()).collect();
    DifferenceTable { targets, rows, same, left_out }
}

/// Of the first load level of each target that tells it.
fn memory(experiments: &[Experiment], trials: &[Trial]) -> Vec<MemoryRow> {
    let mut rows: Vec<MemoryRow> = Vec::new();
    for experiment in experiments {
        for point in &experiment.points {
            let Some(data) = &point.data else { continue };
            let same =
                |row: &MemoryRow| row.experiment == experiment.title && row.target == point.target;
            if rows.iter().any(same) {
                continue;
            }
            let own = trials.iter().filter(|trial| {
                trial.summary.experiment == experiment.name && trial.target == point.target
            });
            let hits = own.flat_map(|trial| trial.summary.conditions.nodes.values());
            rows.push(MemoryRow {
                experiment: experiment.title.clone(),
                target: point.target.clone(),
                size_bytes: data.facts.size_bytes.map(|bytes| bytes as f64),
                memory_bytes: data.facts.memory_bytes.map(|bytes| bytes as f64),
                size_to_memory: data.size_to_memory,
                class: data.size_to_memory.map(class),
                hit_share: hits.filter_map(|node| node.hit_share).reduce(f64::min),
            });
        }
    }
    rows
}

fn class(size_to_memory: f64) -> Message {
    match size_to_memory {
        ratio if ratio <= IN_MEMORY => say!(in_memory),
        ratio if ratio <= DISK_BOUND => say!(at_the_edge),
        _ => say!(disk_bound),
    }
}
