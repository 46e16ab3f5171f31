//! Throughput by the number of read-only nodes.

use crate::format;
use crate::model::{Experiment, Point, Spread, Target};
use crate::say;
use crate::text::Text;
use serde::Serialize;

/// What a target with so many read-only nodes reached.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct NodeScaling {
    /// Label of the target.
    pub target: String,
    /// Label of the cluster of which the target is a part; empty where each target is a cluster of its
    /// own.
    pub cluster: String,
    /// Its read-only nodes.
    pub nodes: u32,
    /// True when the suite states their number (`read_only_nodes`), and false when it lists them.
    pub is_stated: bool,
    /// Workers of its best load level.
    pub workers: u32,
    /// Statements per second there.
    pub qps: Spread,
    /// Median statements per second by the number of nodes.
    pub qps_per_node: f64,
    /// Times the throughput of the fewest nodes.
    pub speedup: f64,
    /// That, by how many times the nodes are; 1 is perfect.
    pub efficiency: f64,
}

/// One row per target, cluster by cluster; empty unless targets differ in their number of nodes.
pub(super) fn by_nodes(points: &[Point], targets: &[Target]) -> Vec<NodeScaling> {
    let mut clusters: Vec<&str> = Vec::new();
    for target in targets {
        let cluster = target.part_of.as_deref().unwrap_or_default();
        if !clusters.contains(&cluster) {
            clusters.push(cluster);
        }
    }
    let of = |cluster: &str| {
        let is_own = |target: &&Target| target.part_of.as_deref().unwrap_or_default() == cluster;
        of_cluster(cluster, points, &targets.iter().filter(is_own).collect::<Vec<_>>())
    };
    clusters.into_iter().flat_map(of).collect()
}

/// The number of read-only nodes that a target's load can reach, and whether it is only stated.
fn nodes(target: &Target) -> Option<(u32, bool)> {
    if target.nodes.is_empty() {
        let stated = target.stated.get("read_only_nodes")?;
        return stated.trim().parse::<u32>().ok().filter(|nodes| *nodes > 0).map(|n| (n, true));
    }
    let count = target.nodes.iter().filter(|node| node.role == "read_only").count() as u32;
    (count > 0 && target.route != "primary").then_some((count, false))
}

fn of_cluster(cluster: &str, points: &[Point], targets: &[&Target]) -> Vec<NodeScaling> {
    let best = |target: &Target| {
        let is_usable = |p: &&Point| p.status == "complete" && !p.has_fault;
        let own = points.iter().filter(|p| p.target == target.label).filter(is_usable);
        own.max_by(|a, b| a.qps.median.total_cmp(&b.qps.median))
    };
    let mut rows: Vec<((u32, bool), &Target, &Point)> = targets
        .iter()
        .filter_map(|target| Some((nodes(target)?, *target, best(target)?)))
        .collect();
    rows.sort_by_key(|row| row.0.0);
    let (Some(first), Some(last)) = (rows.first(), rows.last()) else { return Vec::new() };
    let (fewest, base) = (f64::from(first.0.0), first.2.qps.median);
    if first.0.0 == last.0.0 || base <= 0.0 {
        return Vec::new();
    }
    let row = |((nodes, is_stated), target, point): &((u32, bool), &Target, &Point)| {
        let speedup = point.qps.median / base;
        NodeScaling {
            target: target.label.clone(),
            cluster: cluster.to_owned(),
            nodes: *nodes,
            is_stated: *is_stated,
            workers: point.workers,
            qps: point.qps,
            qps_per_node: point.qps.median / f64::from(*nodes),
            speedup,
            efficiency: speedup / (f64::from(*nodes) / fewest),
        }
    };
    rows.iter().map(row).collect()
}

/// What the most nodes of each cluster did beside the fewest.
pub(super) fn sentences(experiment: &Experiment) -> Vec<Text> {
    let rows = &experiment.node_scaling;
    let of_cluster = |part: &[NodeScaling]| {
        let (first, last) = (part.first()?, part.last()?);
        Some(say!(
            "{experiment}: {most} executed {factor} times the statements per second of {fewest} ({efficiency} % of what the number of nodes promises).",
            experiment = &experiment.title,
            most = Text::count(last.nodes.into(), "{n} read-only node", "{n} read-only nodes"),
            factor = format::plain(last.speedup),
            fewest = first.nodes.to_string(),
            efficiency = format::percent(last.efficiency),
        ))
    };
    rows.chunk_by(|a, b| a.cluster == b.cluster).filter_map(of_cluster).collect()
}
