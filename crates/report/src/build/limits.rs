//! How far the claims of a paper reach.

use crate::model::Paper;
use crate::say;
use crate::text::Text;
use dyno_measure::Purpose;

/// How far the claims reach.
pub(super) fn sentences(paper: &Paper) -> Vec<Text> {
    let mut limits = Vec::new();
    let has_found =
        |id: &str| paper.checks.iter().any(|check| check.id == id && !check.findings.is_empty());
    let tests: Vec<&str> =
        paper.experiments.iter().map(|experiment| experiment.test.as_str()).collect();
    let is_tpc = |test: &&str| {
        let test = test.to_ascii_lowercase();
        ["tpc", "pgbench"].iter().any(|family| test.contains(family))
    };
    if tests.iter().any(is_tpc) || paper.experiments.iter().any(|e| e.tpcc.is_some()) {
        limits.push(say!("This is not a TPC result: the workload is derived from a TPC benchmark, was neither audited nor run under all rules of its specification, and is not comparable with published TPC results."));
    }
    if has_found("few-repeats") {
        limits.push(say!("Points were repeated too seldom for a verdict: from a difference between two figures nothing follows about which target is faster. Differences between runs of the same system are often larger than the noise within one run."));
    }
    let is_sweep = paper.key_rows.iter().any(|row| {
        let points = &paper.experiments[row.experiment_index].points;
        let own = points.iter().filter(|point| point.target == row.point.target);
        own.count() > 1 && row.point.purpose != Purpose::Confirm
    });
    if is_sweep {
        limits.push(say!("The best of several load levels was chosen after measuring and not measured again; such a choice overstates the maximum by some 2 to 3 %."));
    }
    if has_found("same-host") {
        limits.push(say!("Load generator and server shared a machine; the figures hold for this arrangement only."));
    }
    if paper.experiments.iter().any(|experiment| !experiment.published.is_empty()) {
        limits.push(say!("Published figures come from other machines, versions and years. They stand here for orientation; a ratio to them is no comparison of products."));
    }
    let has_transactions = paper.trials.iter().any(|trial| trial.summary.tpch.is_none());
    if has_transactions || paper.trials.is_empty() {
        limits.push(say!("Percentiles with fewer than 10 samples beyond them are not printed."));
    }
    limits.push(match tests.len() {
        1 => say!(
            "A test of another workload, data size or setting than this one may rank differently."
        ),
        _ => say!(
            "A test of another workload, data size or setting than these may rank differently."
        ),
    });
    limits
}
