//! How far the claims of a paper reach.

use crate::evidence::Paper;
use crate::families::is_pass;
use crate::text::Message;
use dyno_facts::{Purpose, say};

/// How far the claims reach.
pub(super) fn sentences(paper: &Paper) -> Vec<Message> {
    let mut limits = Vec::new();
    let has_found =
        |id: &str| paper.checks.iter().any(|check| check.id == id && !check.findings.is_empty());
    let tests: Vec<&str> =
        paper.experiments.iter().map(|experiment| experiment.test.as_str()).collect();
    if paper.experiments.iter().any(|own| own.derived_from().is_some()) {
        limits.push(say!(this_is_not_a_tpc_result));
    }
    if has_found("few-repeats") {
        limits.push(say!(points_were_repeated_too_seldom_for));
    }
    let is_sweep = paper.key_rows().iter().any(|row| {
        let own = row.experiment.points.iter().filter(|point| point.target == row.point.target);
        own.count() > 1 && row.point.purpose != Purpose::Confirm
    });
    if is_sweep {
        limits.push(say!(the_best_of_several_load_levels));
    }
    if has_found("same-host") {
        limits.push(say!(load_generator_and_server_shared_a));
    }
    if paper.experiments.iter().any(|experiment| !experiment.published.is_empty()) {
        limits.push(say!(published_figures_come_from_other_machines));
    }
    let has_transactions = paper.trials.iter().any(|trial| !is_pass(&trial.summary));
    if has_transactions || paper.trials.is_empty() {
        limits.push(say!(percentiles_with_fewer_than_10_samples));
    }
    limits.push(match tests.len() {
        1 => say!(a_test_of_another_workload_data),
        _ => say!(a_test_of_another_workload_data_size),
    });
    limits
}
