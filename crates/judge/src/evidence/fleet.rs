//! How the load generators of a fleet started together, and whose nodes executed what.

use super::Trial;
use dyno_facts::NodeConditions;
use std::collections::BTreeMap;

/// Between the first and the last start of a trial's load generators, as their clocks were known.
pub fn start_spread_ms(trial: &Trial) -> Option<f64> {
    let members = trial.summary.conditions.members.iter();
    let late: Vec<f64> = members.filter_map(|member| member.late_ms).collect();
    let first = late.iter().copied().reduce(f64::min)?;
    let last = late.iter().copied().reduce(f64::max)?;
    (late.len() > 1).then_some(last - first)
}

/// Statements of the load generators by the nodes over which their workers were spread. Those with the same nodes
/// are counted together.
pub fn by_nodes(trial: &Trial) -> BTreeMap<&[String], f64> {
    let mut groups: BTreeMap<&[String], f64> = BTreeMap::new();
    for member in trial.summary.conditions.members.iter().filter(|one| !one.nodes.is_empty()) {
        *groups.entry(&member.nodes).or_default() += member.statements as f64;
    }
    groups
}

/// Where load generators have nodes of their own: by how much the servers' counts of reads on these differ from what
/// their load generators did, the largest share of all reads, and the nodes of that.
pub fn strayed(
    trial: &Trial,
    reads: impl Fn(&NodeConditions) -> Option<u64>,
) -> Option<(f64, String)> {
    let conditions = &trial.summary.conditions;
    let groups = by_nodes(trial);
    if groups.len() < 2 || conditions.members.iter().any(|member| member.lost.is_some()) {
        return None;
    }
    let counted = |names: &[String]| {
        let counts = names.iter().map(|name| conditions.nodes.get(name).and_then(&reads));
        counts.sum::<Option<u64>>().map(|count| count as f64)
    };
    let counts = groups.keys().map(|names| counted(names)).collect::<Option<Vec<f64>>>()?;
    let (done, all) = (groups.values().sum::<f64>(), counts.iter().sum::<f64>());
    if done <= 0.0 || all <= 0.0 {
        return None;
    }
    let differs = groups.iter().zip(&counts);
    let differs = differs.map(|((names, done_there), counted)| {
        ((counted / all - done_there / done).abs(), names.join(", "))
    });
    differs.reduce(|one, other| if other.0 > one.0 { other } else { one })
}
