//! Gates of suites and of the command line, judged.

use super::*;

/// Every gate at every load level of its experiment: those of the suite, or those given in their place.
pub(super) fn judge_gates(
    evidence: &Evidence,
    comparisons: &[PairedComparison],
    more_gates: &[String],
) -> Vec<GateRow> {
    let mut rows = Vec::new();
    for (index, experiment) in evidence.experiments.iter().enumerate() {
        let facts = evidence.runs.iter().flat_map(|run| &run.header.experiments);
        let suite_gates =
            facts.filter(|facts| facts.name == experiment.name).flat_map(|facts| &facts.gates);
        let gates = suite_gates.filter(|_| more_gates.is_empty()).chain(more_gates);
        for text in format::unique(gates.collect()) {
            match text.parse::<Gate>() {
                Ok(gate) if gate.figure == GateFigure::Value => {
                    rows.extend(value_rows(evidence, experiment, &gate));
                }
                Ok(gate) => {
                    let comparisons = comparisons.iter();
                    let comparisons: Vec<_> = comparisons
                        .filter(|comparison| comparison.experiment_index == index)
                        .collect();
                    rows.extend(ratio_rows(evidence, experiment, &comparisons, &gate));
                }
                // A gate of a run folder that this dyno can't read proves nothing.
                Err(_) => rows.push(GateRow {
                    gate: text.clone(),
                    title: experiment.title.clone(),
                    why: say!(the_gate_cant_be_read),
                    ..GateRow::default()
                }),
            }
        }
    }
    rows
}

fn gate_row(
    experiment: &Experiment,
    gate: &Gate,
    level: Message,
    target: String,
    judgment: &JudgedGate,
) -> GateRow {
    let (result, reason) = match judgment.verdict {
        GateVerdict::Pass => (GateResult::Pass, Message::default()),
        GateVerdict::Broken => (GateResult::Broken, Message::default()),
        GateVerdict::Inconclusive(reason) => {
            (GateResult::Inconclusive, reason_words(reason, gate, judgment))
        }
    };
    GateRow {
        gate: gate.text.clone(),
        title: experiment.title.clone(),
        level,
        target,
        is_ratio: gate.figure != GateFigure::Value,
        comparison: None,
        value: judgment.value,
        interval: judgment.interval,
        count: judgment.count,
        needed: judgment.needed,
        result,
        why: reason,
    }
}

/// At each load level of each target. What was run again counts in its place.
fn value_rows(evidence: &Evidence, experiment: &Experiment, gate: &Gate) -> Vec<GateRow> {
    let trials: Vec<&Trial> = evidence
        .trials
        .iter()
        .filter(|trial| trial.summary.experiment == experiment.name)
        .filter(|trial| trial.summary.purpose != Purpose::Search)
        .collect();
    let mut groups =
        format::grouped(trials.iter().map(|trial| ((&trial.target, trial.load_level()), *trial)));
    if groups.is_empty() {
        return vec![row_without_figure(experiment, gate)];
    }
    groups.sort_by(|a, b| level_size(a.1[0]).total_cmp(&level_size(b.1[0])));
    let rows = groups.into_iter().map(|((target, _), mut group)| {
        if group.iter().any(|trial| trial.summary.purpose == Purpose::Confirm) {
            group.retain(|trial| trial.summary.purpose == Purpose::Confirm);
        }
        let complete = group.iter().copied().filter(|trial| trial.status == "complete");
        let values = complete.clone().filter_map(|trial| trial.summary.figure(gate.metric));
        let values: Vec<f64> = values.collect();
        let bounds = complete.clone().filter_map(|trial| figure_bound(&trial.summary, gate.metric));
        let bounds: Vec<FigureBound> = bounds.collect();
        let ends = [FigureBound::AtMost, FigureBound::AtLeast]
            .map(|end| bounds.iter().any(|bound| *bound != end));
        let judgment = gate.judge_values(&values, FigureBound::from_ends(ends));
        let row = gate_row(experiment, gate, level_words(group[0]), target.clone(), &judgment);
        let row = without_figures(row, left_out(complete, gate.metric));
        if row.result == GateResult::Pass && group.iter().any(|trial| has_failed(trial, &trials)) {
            GateRow {
                result: GateResult::Inconclusive,
                why: say!(a_trial_failed_here_the_others),
                ..row
            }
        } else {
            row
        }
    });
    rows.collect()
}

/// The row of a gate that no trial or pair has a figure for.
fn row_without_figure(experiment: &Experiment, gate: &Gate) -> GateRow {
    gate_row(experiment, gate, Message::default(), String::new(), &gate.judge(&[], None))
}

/// Trials whose figure can't be judged, by the reason.
fn left_out<'a>(trials: impl Iterator<Item = &'a Trial>, metric: Metric) -> Option<Message> {
    let unjudged = trials.filter(|trial| {
        let figure = trial.summary.figure(metric);
        // Zero is the best value of a fact.
        let is_judged = figure.is_some_and(|figure| figure > 0.0 || metric.is_fact());
        !is_judged
    });
    let groups = format::grouped(
        unjudged.map(|trial| (why_no_figure(&trial.summary, metric), Message::from(&trial.label))),
    );
    let sentences = groups.into_iter().map(|(reason, labels)| {
        say!(left_out_trials, trials = Message::list(&format::unique(labels)), why = reason)
    });
    let sentences: Vec<Message> = sentences.collect();
    (!sentences.is_empty()).then(|| Message::sentences(&sentences))
}

/// A gate without some figures: the others prove nothing, as those may be the figures that break the gate.
fn without_figures(row: GateRow, left_out: Option<Message>) -> GateRow {
    let Some(left_out) = left_out else { return row };
    let reason =
        if row.why.is_empty() { left_out } else { Message::sentences(&[row.why, left_out]) };
    let result = row.result.max(GateResult::Inconclusive);
    GateRow { result, why: reason, ..row }
}

/// Returns true if a trial failed and was not repeated: leaving it out would let a gate pass by what broke.
fn has_failed(trial: &Trial, trials: &[&Trial]) -> bool {
    trial.status == "failed"
        && !trials.iter().any(|other| {
            other.status == "complete"
                && other.run == trial.run
                && other.summary.step == trial.summary.step
        })
}

/// At each comparison of the experiment; comparisons of a system with itself only without any other.
fn ratio_rows(
    evidence: &Evidence,
    experiment: &Experiment,
    comparisons: &[&PairedComparison],
    gate: &Gate,
) -> Vec<GateRow> {
    let is_aa_only = comparisons.iter().all(|comparison| comparison.is_aa);
    let mut rows = Vec::new();
    for comparison in comparisons.iter().filter(|comparison| !comparison.is_aa || is_aa_only) {
        let target = format!("{} / {}", comparison.candidate, comparison.baseline);
        let mut judgment = gate.judge(&[], gate_ratio(evidence, comparison, gate).as_ref());
        judgment.needed = match judgment.verdict {
            GateVerdict::Inconclusive(GateReason::TooFewPairs) => Some(comparison.least_pairs()),
            _ => judgment.needed.map(|units| units * comparison.unit_pairs as usize),
        };
        let row = gate_row(experiment, gate, comparison.level.clone(), target, &judgment);
        let row = GateRow { comparison: Some(comparison.number), ..row };
        let row = require_proof(row, comparison, gate);
        let trials = comparison.pairs.iter().flatten().filter_map(|label| evidence.trial(label));
        rows.push(without_figures(row, left_out(trials, gate.metric)));
    }
    if rows.is_empty() { vec![row_without_figure(experiment, gate)] } else { rows }
}

/// A gate and the verdict of the same ratio never disagree: where the ratio differs from 1 by its own interval and not
/// after Holm's correction, no gate rests on that difference. It does where a ratio of 1 would have given another
/// result.
fn require_proof(row: GateRow, comparison: &PairedComparison, gate: &Gate) -> GateRow {
    let verdict = comparison.rows.iter().find(|row| row.metric == gate.metric);
    let holds_for_one = gate.relation.holds(1.0, gate.bound);
    let rests_on_difference = match row.result {
        GateResult::Pass => !holds_for_one,
        GateResult::Broken => holds_for_one,
        GateResult::Inconclusive => false,
    };
    match verdict.filter(|row| rests_on_difference && row.call == Call::Unproven) {
        Some(unproven) => GateRow {
            result: GateResult::Inconclusive,
            why: say!(gate_not_proven_among_comparisons),
            needed: Some(digest::pairs_to_prove(comparison, unproven)),
            ..row
        },
        None => row,
    }
}

fn gate_ratio(
    evidence: &Evidence,
    comparison: &PairedComparison,
    gate: &Gate,
) -> Option<PairedRatio> {
    let pairs: Vec<(&Trial, &Trial)> = evidence.pairs(comparison).collect();
    let earlier = earlier(evidence, *pairs.first()?, gate.metric);
    paired_ratio(&pairs, gate.metric, comparison.stop, (comparison.unit_pairs, &earlier))
}

fn reason_words(reason: GateReason, gate: &Gate, judgment: &JudgedGate) -> Message {
    let needed = judgment.needed.map(|needed| format::whole(needed as f64));
    match (reason, needed) {
        (GateReason::NoValue, _) => say!(no_complete_trial_has_this_figure),
        (GateReason::TooFewTrials, needed) => {
            let min_trials = needed.unwrap_or_else(|| LEAST_TRIALS.to_string());
            say!(trials_without_an_interval, n = judgment.count, least = min_trials)
        }
        (GateReason::NoPair, _) => say!(no_pair_to_compare),
        (GateReason::TooFewPairs, needed) => {
            let min_pairs = needed.unwrap_or_else(|| LEAST_PAIRS.to_string());
            say!(there_are_too_few_pairs, least = min_pairs)
        }
        (GateReason::IntervalHoldsBound, Some(needed)) if gate.figure == GateFigure::Value => {
            say!(the_interval_holds_the_bound_trials, needed)
        }
        (GateReason::IntervalHoldsBound, Some(needed)) => {
            say!(the_interval_holds_the_bound_pairs, needed)
        }
        (GateReason::IntervalHoldsBound, None) => say!(the_interval_holds_the_bound_more),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::tests::{comparison, row as verdict_row};

    fn keeps_result(text: &str, result: GateResult, call: Call) -> bool {
        let gate: Gate = text.parse().expect(text);
        let row = VerdictRow { call, p: 0.02, p_adjusted: Some(0.08), ..verdict_row(Metric::Tps) };
        let comparison = comparison(vec![row]);
        let row = require_proof(GateRow { result, ..GateRow::default() }, &comparison, &gate);
        if row.result == result {
            assert_eq!((row.why, row.needed), (Message::default(), None));
        } else {
            assert_eq!(row.result, GateResult::Inconclusive);
            assert_eq!(row.why, say!(gate_not_proven_among_comparisons));
            let needed = digest::pairs_to_prove(&comparison, &comparison.rows[0]);
            assert_eq!(row.needed, Some(needed));
        }
        row.result == result
    }

    #[test]
    fn no_gate_rests_on_a_difference_that_is_not_proven() {
        // A ratio of 1 would have kept the one and broken the other.
        let (lax, strict) = ("tps.ratio > 0.97", "tps.ratio > 1.05");
        assert!(keeps_result(lax, GateResult::Pass, Call::Unproven));
        assert!(!keeps_result(lax, GateResult::Broken, Call::Unproven));
        assert!(!keeps_result(strict, GateResult::Pass, Call::Unproven));
        assert!(keeps_result(strict, GateResult::Broken, Call::Unproven));
        assert!(keeps_result(strict, GateResult::Pass, Call::Faster));
        assert!(
            keeps_result("p99_ms.ratio < 0.9", GateResult::Pass, Call::Unproven),
            "another metric"
        );
    }
}
