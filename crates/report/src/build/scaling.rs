//! Throughput by the number of read-only nodes.

use crate::model::{Point, Spread, Target};
use serde::Serialize;

/// What a target with so many read-only nodes reached.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct NodeScaling {
    /// Label of the target.
    pub target: String,
    /// Its read-only nodes, as the suite states them (`read_only_nodes`).
    pub nodes: u32,
    /// Workers of its best load level.
    pub workers: u32,
    /// Statements per second there.
    pub qps: Spread,
    /// Times the throughput of the fewest nodes.
    pub speedup: f64,
    /// That, by how many times the nodes are; 1 is perfect.
    pub efficiency: f64,
}

/// One row per target; empty unless targets differ in their number of nodes.
pub(super) fn by_nodes(points: &[Point], targets: &[Target]) -> Vec<NodeScaling> {
    let nodes = |target: &Target| {
        let stated = target.stated.get("read_only_nodes")?;
        stated.trim().parse::<u32>().ok().filter(|nodes| *nodes > 0)
    };
    let best = |target: &Target| {
        let own = points.iter().filter(|p| p.target == target.label && p.status == "complete");
        own.max_by(|a, b| a.qps.median.total_cmp(&b.qps.median))
    };
    let mut rows: Vec<(u32, &Target, &Point)> =
        targets.iter().filter_map(|t| Some((nodes(t)?, t, best(t)?))).collect();
    rows.sort_by_key(|row| row.0);
    let (Some(first), Some(last)) = (rows.first(), rows.last()) else { return Vec::new() };
    let (fewest, base) = (f64::from(first.0), first.2.qps.median);
    if first.0 == last.0 || base <= 0.0 {
        return Vec::new();
    }
    let row = |(nodes, target, point): &(u32, &Target, &Point)| {
        let speedup = point.qps.median / base;
        NodeScaling {
            target: target.label.clone(),
            nodes: *nodes,
            workers: point.workers,
            qps: point.qps,
            speedup,
            efficiency: speedup / (f64::from(*nodes) / fewest),
        }
    };
    rows.iter().map(row).collect()
}
