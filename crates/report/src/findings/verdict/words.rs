//! Verdicts in words.

use crate::evidence::{Bounds, Call, GateResult, GateRow, PairOrder, PairedComparison, VerdictRow};
use crate::format;
use crate::text::Message;
use dyno_facts::say;

/// The verdict of one metric, for a table's cell.
pub(super) fn call(row: &VerdictRow) -> Message {
    match row.call {
        Call::Faster => say!(faster),
        Call::Slower => say!(slower),
        Call::NoDifference => say!(no_difference),
        Call::TooFewPairs => say!(undecided_too_few_pairs),
        Call::DeviationTooHigh => say!(undecided_deviation_too_high),
        Call::Wide => say!(undecided_the_interval_holds_1),
        Call::Unproven => say!(undecided_not_proven_among_all_that),
        Call::BelowNoiseFloor => say!(undecided_below_the_noise_floor),
    }
}

/// Like `1.023`: three digits behind the point, fewer of large ones.
pub(crate) fn ratio(ratio: f64) -> String {
    if ratio < 100.0 { format!("{ratio:.3}") } else { format::short(ratio) }
}

pub(crate) fn bounds(interval: Bounds) -> String {
    format!("[{}, {}]", ratio(interval.low), ratio(interval.high))
}

/// The comparison in a sentence.
pub(super) fn comparison(of: &PairedComparison) -> Message {
    let place = say!(experiment_level, experiment = &of.title, level = &of.level);
    let Some(row) = of.rows.first() else {
        return say!(no_pair_of_trials_has_figures, place = place);
    };
    let said = match row.call {
        Call::Faster | Call::Slower => difference(of, row),
        Call::NoDifference => say!(
            no_difference_between_and_was_found,
            place = place,
            candidate = &of.candidate,
            baseline = &of.baseline
        ),
        _ => say!(
            whether_or_is_faster_is_undecided,
            place = place,
            candidate = &of.candidate,
            baseline = &of.baseline,
            why = why(row)
        ),
    };
    let evidence = evidence(row);
    let sentence = say!(said_evidence, said = said, evidence = evidence);
    match of.order {
        PairOrder::Interleaved => sentence,
        PairOrder::Blocks => {
            Message::sentences(&[sentence, say!(the_trials_were_not_interleaved_a)])
        }
    }
}

fn difference(of: &PairedComparison, row: &VerdictRow) -> Message {
    let by = format::percent((row.ratio - 1.0).abs());
    let place = say!(experiment_level, experiment = &of.title, level = &of.level);
    // Of times the ratio is of seconds: half the time is not "50 % faster".
    match (row.call, row.is_less_better) {
        (Call::Faster, false) => say!(
            is_percent_faster_than,
            place = place,
            candidate = &of.candidate,
            baseline = &of.baseline,
            percent = by
        ),
        (_, false) => say!(
            is_percent_slower_than,
            place = place,
            candidate = &of.candidate,
            baseline = &of.baseline,
            percent = by
        ),
        (Call::Faster, true) => say!(
            is_faster_than_its_time_is,
            place = place,
            candidate = &of.candidate,
            baseline = &of.baseline,
            percent = by
        ),
        (_, true) => say!(
            is_slower_than_its_time_is,
            place = place,
            candidate = &of.candidate,
            baseline = &of.baseline,
            percent = by
        ),
    }
}

fn evidence(row: &VerdictRow) -> Message {
    let pairs = say!(n_pairs, n = row.pairs);
    match row.interval {
        Some(interval) => say!(
            ratio_of_95_percent_interval,
            metric = &row.name,
            ratio = ratio(row.ratio),
            interval = bounds(interval),
            pairs = pairs
        ),
        None => say!(
            ratio_of_metric_ratio_pairs,
            metric = &row.name,
            ratio = ratio(row.ratio),
            pairs = pairs
        ),
    }
}

fn why(row: &VerdictRow) -> Message {
    let share = |share: Option<f64>| format::percent(share.unwrap_or_default());
    match row.call {
        Call::TooFewPairs => say!(fewer_than_4_pairs),
        Call::DeviationTooHigh => say!(
            deviation_too_high_trials_vary_by,
            share = share(
                row.variation_baseline.into_iter().chain(row.variation_candidate).reduce(f64::max)
            )
        ),
        Call::Unproven => say!(not_proven_among_all_that_is),
        Call::BelowNoiseFloor => {
            say!(the_same_system_differs_from_itself, share = share(row.noise_floor))
        }
        _ => match row.pairs_needed {
            Some(pairs) if pairs > row.pairs => {
                say!(the_interval_holds_1_about_pairs, pairs = format::whole(pairs as f64))
            }
            _ => say!(the_interval_holds_1),
        },
    }
}

/// All comparisons in a sentence, for the cover; `None` where nothing is compared.
pub(super) fn of_all(verdicts: &[PairedComparison]) -> Option<Message> {
    // What a system differs from itself is told only where nothing else is.
    let is_told = |of: &&PairedComparison| !of.is_aa || verdicts.iter().all(|of| of.is_aa);
    let all: Vec<&PairedComparison> = verdicts.iter().filter(is_told).collect();
    let first = match all.as_slice() {
        [] => return None,
        [only] => return Some(only.sentence.clone()),
        [first, ..] => *first,
    };
    let is_one_duel =
        all.iter().all(|of| (&of.baseline, &of.candidate) == (&first.baseline, &first.candidate));
    let calls: Vec<Call> = all.iter().filter_map(|of| Some(of.rows.first()?.call)).collect();
    let count = |is: fn(Call) -> bool| calls.iter().filter(|call| is(**call)).count().to_string();
    let ratios: Vec<f64> = all.iter().filter_map(|of| Some(of.rows.first()?.ratio)).collect();
    let low = ratios.iter().copied().reduce(f64::min).unwrap_or(1.0);
    let high = ratios.iter().copied().reduce(f64::max).unwrap_or(1.0);
    let counts = say!(
        faster_at_slower_at_no_different,
        faster = count(|call| call == Call::Faster),
        slower = count(|call| call == Call::Slower),
        same = count(|call| call == Call::NoDifference),
        undecided = count(Call::is_undecided),
        low = ratio(low),
        high = ratio(high),
    );
    let n = format::whole(all.len() as f64);
    Some(match is_one_duel {
        true => say!(
            of_load_levels_was_compared_with,
            n = n,
            candidate = &first.candidate,
            baseline = &first.baseline,
            counts = counts
        ),
        false => say!(in_comparisons_the_candidate_was_compared, n = n, counts = counts),
    })
}

/// A gate in a line.
pub(super) fn gate(row: &GateRow) -> Message {
    let result = match row.result {
        GateResult::Pass => say!(passed),
        GateResult::Inconclusive => say!(inconclusive),
        GateResult::Broken => say!(broken),
    };
    let shown = if row.is_ratio { ratio } else { format::short };
    let value = row.value.map_or(format::DASH.to_owned(), shown);
    let found = match row.interval {
        Some(interval) => say!(
            n_95_percent_interval_2,
            value = value,
            low = shown(interval.low),
            high = shown(interval.high)
        ),
        None => Message::verbatim(value),
    };
    let place: Vec<Message> =
        [Message::from(&row.title), row.level.clone(), Message::from(&row.target)]
            .into_iter()
            .filter(|part| !part.is_empty())
            .collect();
    let line = say!(
        gate_gate_result_place_found,
        gate = &row.gate,
        result = result,
        place = Message::joined(&place, ", ", "，"),
        found = found
    );
    match row.why.is_empty() {
        true => line,
        false => Message::sentences(&[line, row.why.clone()]),
    }
}
