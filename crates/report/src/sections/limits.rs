//! How far the claims of a paper reach.

use crate::blocks::{Blocks, PaperRows, Style, coded};
use crate::evidence::{AaKind, Paper};
use crate::format::{self, NumberFormat};
use crate::text::Message;
use dyno_facts::statistics::Metric;
use dyno_facts::{EffectFacts, Purpose, say};

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
    limits.extend(of_comparisons(paper));
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
    let has_transactions = paper.trials.iter().any(|trial| !trial.summary.is_pass());
    if has_transactions || paper.trials.is_empty() {
        limits.push(say!(percentiles_with_fewer_than_10_samples));
    }
    limits.push(match tests.len() {
        1 => say!(a_test_of_another_workload_data),
        _ => say!(a_test_of_another_workload_data_size),
    });
    limits
}

/// What comparisons don't know: other starts of the servers, and other machines; and with what the noise was measured.
fn of_comparisons(paper: &Paper) -> Vec<Message> {
    let compared = || paper.experiments.iter().filter(|own| own.comparison.is_some());
    let mut limits = Vec::new();
    if compared().any(|own| own.restart_each == 0) {
        limits.push(say!(starts_are_not_in_intervals));
    }
    if compared().any(|own| own.restart_each > 0) {
        limits.push(say!(starts_are_in_intervals));
    }
    for kind in [AaKind::Trials, AaKind::Starts, AaKind::Clone] {
        if paper.verdicts.comparisons.iter().any(|of| of.is_aa && of.aa == kind) {
            limits.push(match kind {
                AaKind::Trials => say!(aa_of_trials),
                AaKind::Starts => say!(aa_of_starts),
                AaKind::Clone => say!(aa_of_clones),
            });
        }
    }
    limits
}

/// What the plans have left out, capped or shrunk, in dyno's own words.
pub(super) fn of_plans(paper: &Paper, blocks: &mut Blocks) {
    let plans = paper.runs.iter().filter_map(|run| run.header.plan.as_ref());
    let notes = format::unique(plans.flat_map(|plan| plan.notes.clone()).collect());
    if !notes.is_empty() {
        blocks.paragraph(say!(notes_of_the_plan));
        blocks.list(Style::Plain, notes.iter().map(|note| vec![coded(note)]).collect());
    }
}

/// What the load generators' machines have found of known effects.
pub(super) fn known_effects(paper: &Paper, blocks: &mut Blocks) {
    let all = paper.runs.iter().flat_map(|run| &run.header.effects);
    let rows: Vec<&EffectFacts> = format::unique(all.collect());
    let interval = |of: &EffectFacts| {
        let (low, high) = of.low.zip(of.high)?;
        Some(format!("[{low:.3}, {high:.3}]"))
    };
    if !rows.is_empty() {
        let table = PaperRows::new(say!(known_effects_and_what_was_found), rows)
            .text(say!(effect_on), |of| &of.target)
            .text(say!(effect_share), |of| match of.effect > 0.0 {
                true => Message::from(format::percent(of.effect)),
                false => say!(no_effect),
            })
            .text(say!(metric), |of| match Metric::of_name(&of.metric) {
                Some(metric) => metric.title(),
                None => Message::verbatim(&of.metric),
            })
            .text(say!(effect_found), |of| if of.is_found { say!(yes) } else { say!(no) })
            .col(say!(pairs), NumberFormat::Whole, |of| of.pairs)
            .col(say!(ratio_2), NumberFormat::Fixed(3), |of| of.ratio)
            .col(say!(n_95_percent_interval), NumberFormat::Right, interval)
            .text(say!(effect_tried_at), |of| &of.at);
        blocks.table(table);
        blocks.fine(say!(known_effects_were_injected));
    }
}
