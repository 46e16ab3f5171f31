//! What a run knows of the runs that it goes on with.

use crate::{Environment, NodeFacts};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A finished or interrupted run whose pairs count beside those of the run that goes on with it. Complete in itself.
#[derive(Clone, Debug, Default, PartialEq, Serialize, schemars::JsonSchema, Deserialize)]
#[serde(default)]
pub struct EarlierSession {
    /// The name of its folder.
    pub folder: String,
    /// RFC 3339, UTC.
    pub started_at: String,
    pub environment: Environment,
    /// By target: product and version, as the server stated them.
    pub versions: BTreeMap<String, String>,
    pub comparisons: Vec<SessionPairs>,
    /// By target: settings and tables of its nodes before its first trial.
    pub looks: BTreeMap<String, NodeFacts>,
}

/// The pairs of two targets at one load level.
#[derive(Clone, Debug, Default, PartialEq, Serialize, schemars::JsonSchema, Deserialize)]
#[serde(default)]
pub struct SessionPairs {
    pub experiment: String,
    /// Such as `workers=8`.
    pub level: String,
    /// The name of the target that ratios are taken to.
    pub baseline: String,
    pub candidate: String,
    /// By metric: baseline and candidate of each pair, in their order.
    pub metrics: BTreeMap<String, Vec<(f64, f64)>>,
}

/// The pairs of each earlier session of a comparison by a metric; a session without any is left out.
pub fn earlier_pairs(
    sessions: &[EarlierSession],
    [experiment, level, baseline, candidate]: [&str; 4],
    metric: &str,
) -> Vec<Vec<(f64, f64)>> {
    let is_own = |of: &&SessionPairs| {
        [&of.experiment, &of.level, &of.baseline, &of.candidate].map(String::as_str)
            == [experiment, level, baseline, candidate]
    };
    let of = |session: &EarlierSession| {
        let own = session.comparisons.iter().find(is_own)?;
        own.metrics.get(metric).filter(|pairs| !pairs.is_empty()).cloned()
    };
    sessions.iter().filter_map(of).collect()
}
