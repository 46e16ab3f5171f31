//! Gates of suites and of the command line, judged.

use super::*;

/// Every gate at every load level of its experiment: those of the suite, or those given in their place.
pub(super) fn all(
    evidence: &Evidence,
    comparisons: &[PairedComparison],
    more: &[String],
) -> Vec<GateRow> {
    let mut rows = Vec::new();
    for (index, experiment) in evidence.experiments.iter().enumerate() {
        let facts = evidence.runs.iter().flat_map(|run| &run.header.experiments);
        let own =
            facts.filter(|facts| facts.name == experiment.name).flat_map(|facts| &facts.gates);
        let mut gates: Vec<&String> = Vec::new();
        for gate in own.filter(|_| more.is_empty()).chain(more) {
            if !gates.contains(&gate) {
                gates.push(gate);
            }
        }
        for text in gates {
            match text.parse::<Gate>() {
                Ok(gate) if gate.figure == GateFigure::Value => {
                    rows.extend(of_values(evidence, experiment, &gate));
                }
                Ok(gate) => {
                    let here = comparisons.iter().filter(|of| of.experiment_index == index);
                    rows.extend(of_ratios(evidence, experiment, &here.collect::<Vec<_>>(), &gate));
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

fn row(
    experiment: &Experiment,
    gate: &Gate,
    level: Message,
    target: String,
    found: &JudgedGate,
) -> GateRow {
    let (result, why) = match found.verdict {
        GateVerdict::Pass => (GateResult::Pass, Message::default()),
        GateVerdict::Broken => (GateResult::Broken, Message::default()),
        GateVerdict::Inconclusive(why) => {
            (GateResult::Inconclusive, reason_words(why, gate, found))
        }
    };
    GateRow {
        gate: gate.text.clone(),
        title: experiment.title.clone(),
        level,
        target,
        is_ratio: gate.figure != GateFigure::Value,
        comparison: None,
        value: found.value,
        interval: found.interval,
        count: found.count,
        needed: found.needed,
        result,
        why,
    }
}

/// At each load level of each target. What was run again counts in its place.
fn of_values(evidence: &Evidence, experiment: &Experiment, gate: &Gate) -> Vec<GateRow> {
    let own: Vec<&Trial> = evidence
        .trials
        .iter()
        .filter(|trial| trial.summary.experiment == experiment.name)
        .filter(|trial| trial.summary.purpose != Purpose::Search)
        .collect();
    let mut groups =
        format::grouped(own.iter().map(|trial| ((&trial.target, trial.load_level()), *trial)));
    if groups.is_empty() {
        let found = gate.judge(&[], None);
        return vec![row(experiment, gate, Message::default(), String::new(), &found)];
    }
    groups.sort_by(|a, b| level_size(a.1[0]).total_cmp(&level_size(b.1[0])));
    let judge_group = |((target, _), mut trials): ((&String, LoadLevel<'_>), Vec<&Trial>)| {
        let is_again = |trial: &&Trial| trial.summary.purpose == Purpose::Confirm;
        if trials.iter().any(is_again) {
            trials.retain(is_again);
        }
        let complete = || trials.iter().copied().filter(|trial| trial.status == "complete");
        let values: Vec<f64> =
            complete().filter_map(|trial| trial.summary.figure(gate.metric)).collect();
        let bounds: Vec<FigureBound> =
            complete().filter_map(|trial| bound_of(&trial.summary, gate.metric)).collect();
        let is_any = |end| bounds.iter().any(|bound| *bound != end);
        let bound = FigureBound::of([is_any(FigureBound::AtMost), is_any(FigureBound::AtLeast)]);
        let found = gate.judge_values(&values, bound);
        let row = row(experiment, gate, level_words(trials[0]), target.clone(), &found);
        let row = without(row, left_out(complete(), gate.metric));
        match row.result == GateResult::Pass && trials.iter().any(|trial| has_failed(trial, &own)) {
            true => GateRow {
                result: GateResult::Inconclusive,
                why: say!(a_trial_failed_here_the_others),
                ..row
            },
            false => row,
        }
    };
    groups.into_iter().map(judge_group).collect()
}

/// Trials whose figure can't be judged, by the reason.
fn left_out<'a>(trials: impl Iterator<Item = &'a Trial>, metric: Metric) -> Option<Message> {
    // Zero is the best value of a fact.
    let is_judged = |trial: &&Trial| {
        trial.summary.figure(metric).is_some_and(|figure| figure > 0.0 || metric.is_fact())
    };
    let groups = format::grouped(
        trials
            .filter(|trial| !is_judged(trial))
            .map(|trial| (why_no_figure(&trial.summary, metric), Message::from(&trial.label))),
    );
    let sentence = |(why, labels): &(Message, Vec<Message>)| {
        say!(left_out_trials, trials = Message::list(&format::unique(labels.clone())), why)
    };
    let sentences: Vec<Message> = groups.iter().map(sentence).collect();
    (!sentences.is_empty()).then(|| Message::sentences(&sentences))
}

/// A gate without some figures: the others prove nothing, as those may be the figures that break the gate.
fn without(row: GateRow, left_out: Option<Message>) -> GateRow {
    let Some(left_out) = left_out else { return row };
    let why = match row.why.is_empty() {
        true => left_out,
        false => Message::sentences(&[row.why, left_out]),
    };
    let result = row.result.max(GateResult::Inconclusive);
    GateRow { result, why, ..row }
}

/// Returns true if a trial failed and was not made again: leaving it out would let a gate pass by what broke.
fn has_failed(trial: &Trial, own: &[&Trial]) -> bool {
    let is_again = |other: &&Trial| {
        other.status == "complete"
            && other.run == trial.run
            && other.summary.step == trial.summary.step
    };
    trial.status == "failed" && !own.iter().any(is_again)
}

/// At each comparison of the experiment; those of a system with itself only where there is no other.
fn of_ratios(
    evidence: &Evidence,
    experiment: &Experiment,
    here: &[&PairedComparison],
    gate: &Gate,
) -> Vec<GateRow> {
    let has_others = here.iter().any(|of| !of.is_aa);
    let own: Vec<_> = here.iter().filter(|of| !of.is_aa || !has_others).collect();
    let judged = |of: &&&PairedComparison| {
        let target = format!("{} / {}", of.candidate, of.baseline);
        let mut found = gate.judge(&[], ratio_of_gate(evidence, of, gate).as_ref());
        found.needed = match found.verdict {
            GateVerdict::Inconclusive(GateReason::TooFewPairs) => Some(of.least_pairs()),
            _ => found.needed.map(|units| units * of.unit_pairs as usize),
        };
        let row = row(experiment, gate, of.level.clone(), target, &found);
        let row = proven(GateRow { comparison: Some(of.number), ..row }, of, gate);
        let trials = of.pairs.iter().flatten().filter_map(|label| evidence.trial(label));
        without(row, left_out(trials, gate.metric))
    };
    let rows: Vec<GateRow> = own.iter().map(judged).collect();
    match rows.is_empty() {
        true => {
            vec![row(experiment, gate, Message::default(), String::new(), &gate.judge(&[], None))]
        }
        false => rows,
    }
}

/// A gate and the verdict of the same ratio never disagree: where the ratio differs from 1 by its own interval and not
/// after Holm's correction, no gate rests on that difference. It does where a ratio of 1 would have given another
/// result.
fn proven(row: GateRow, of: &PairedComparison, gate: &Gate) -> GateRow {
    let verdict = of.rows.iter().find(|row| row.metric == gate.metric);
    let by_one = gate.relation.holds(1.0, gate.bound);
    let is_by_difference = match row.result {
        GateResult::Pass => !by_one,
        GateResult::Broken => by_one,
        GateResult::Inconclusive => false,
    };
    match verdict.filter(|row| is_by_difference && row.call == Call::Unproven) {
        Some(unproven) => GateRow {
            result: GateResult::Inconclusive,
            why: say!(gate_not_proven_among_comparisons),
            needed: Some(digest::pairs_to_prove(of, unproven)),
            ..row
        },
        None => row,
    }
}

fn ratio_of_gate(evidence: &Evidence, of: &PairedComparison, gate: &Gate) -> Option<PairedRatio> {
    let pairs: Vec<(&Trial, &Trial)> = evidence.pairs(of).collect();
    let earlier = earlier(evidence, *pairs.first()?, gate.metric);
    ratio_of(&pairs, gate.metric, of.stop, (of.unit_pairs, &earlier))
}

fn reason_words(why: GateReason, gate: &Gate, found: &JudgedGate) -> Message {
    let needed = found.needed.map(|needed| format::whole(needed as f64));
    match (why, needed) {
        (GateReason::NoValue, _) => say!(no_complete_trial_has_this_figure),
        (GateReason::TooFewTrials, needed) => {
            let least = needed.unwrap_or_else(|| LEAST_TRIALS.to_string());
            say!(trials_without_an_interval, n = found.count, least)
        }
        (GateReason::NoPair, _) => say!(nothing_is_compared_here_there_is),
        (GateReason::TooFewPairs, needed) => {
            let least = needed.unwrap_or_else(|| LEAST_PAIRS.to_string());
            say!(there_are_too_few_pairs, least)
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

    #[test]
    fn no_gate_rests_on_a_difference_that_is_not_proven() {
        let kept = |text: &str, result, call| {
            let gate: Gate = text.parse().expect(text);
            let row =
                VerdictRow { call, p: 0.02, p_adjusted: Some(0.08), ..verdict_row(Metric::Tps) };
            let of = comparison(vec![row]);
            let found = proven(GateRow { result, ..GateRow::default() }, &of, &gate);
            match found.result == result {
                true => assert_eq!((found.why, found.needed), (Message::default(), None)),
                false => {
                    assert_eq!(found.result, GateResult::Inconclusive);
                    assert_eq!(found.why, say!(gate_not_proven_among_comparisons));
                    assert_eq!(found.needed, Some(digest::pairs_to_prove(&of, &of.rows[0])));
                }
            }
            found.result == result
        };
        // A ratio of 1 would have kept the one and broken the other.
        let (lax, strict) = ("tps.ratio > 0.97", "tps.ratio > 1.05");
        assert!(kept(lax, GateResult::Pass, Call::Unproven));
        assert!(!kept(lax, GateResult::Broken, Call::Unproven));
        assert!(!kept(strict, GateResult::Pass, Call::Unproven));
        assert!(kept(strict, GateResult::Broken, Call::Unproven));
        assert!(kept(strict, GateResult::Pass, Call::Faster));
        assert!(kept("p99_ms.ratio < 0.9", GateResult::Pass, Call::Unproven), "another metric");
    }
}
