//! Verdicts in words.

use super::model::{Bounds, Call, GateResult, GateRow, PairOrder, PairedComparison, VerdictRow};
use crate::format;
use crate::say;
use crate::text::Text;

/// The verdict of one metric, for a table's cell.
pub(super) fn call(row: &VerdictRow) -> Text {
    match row.call {
        Call::Faster => say!("faster"),
        Call::Slower => say!("slower"),
        Call::NoDifference => say!("no difference"),
        Call::TooFewPairs => say!("undecided: too few pairs"),
        Call::DeviationTooHigh => say!("undecided: deviation too high"),
        Call::Wide => say!("undecided: the interval holds 1"),
        Call::Unproven => say!("undecided: not proven among all that is judged"),
        Call::BelowNoiseFloor => say!("undecided: below the noise floor"),
    }
}

/// Like `1.023`: three digits behind the point, fewer of large ones.
pub(super) fn ratio(ratio: f64) -> String {
    if ratio < 100.0 { format!("{ratio:.3}") } else { format::short(ratio) }
}

fn bounds(interval: Bounds) -> String {
    format!("[{}, {}]", ratio(interval.low), ratio(interval.high))
}

/// The comparison in a sentence.
pub(super) fn comparison(of: &PairedComparison) -> Text {
    let place = say!("{experiment}, {level}", experiment = &of.title, level = &of.level);
    let Some(row) = of.rows.first() else {
        return say!("{place}: no pair of trials has figures to compare.", place = place);
    };
    let said = match row.call {
        Call::Faster | Call::Slower => difference(of, row),
        Call::NoDifference => say!(
            "{place}: no difference between {candidate} and {baseline} was found",
            place = place,
            candidate = &of.candidate,
            baseline = &of.baseline
        ),
        _ => say!(
            "{place}: whether {candidate} or {baseline} is faster is undecided ({why})",
            place = place,
            candidate = &of.candidate,
            baseline = &of.baseline,
            why = why(row)
        ),
    };
    let evidence = evidence(row);
    let sentence = say!("{said}; {evidence}.", said = said, evidence = evidence);
    match of.order {
        PairOrder::Interleaved => sentence,
        PairOrder::Blocks => Text::sentences(&[
            sentence,
            say!("The trials were not interleaved: a drift would look like a difference."),
        ]),
    }
}

fn difference(of: &PairedComparison, row: &VerdictRow) -> Text {
    let by = format::percent((row.ratio - 1.0).abs());
    let place = say!("{experiment}, {level}", experiment = &of.title, level = &of.level);
    // Of times the ratio is of seconds: half the time is not "50 % faster".
    match (row.call, row.is_less_better) {
        (Call::Faster, false) => say!(
            "{place}: {candidate} is {percent} % faster than {baseline}",
            place = place,
            candidate = &of.candidate,
            baseline = &of.baseline,
            percent = by
        ),
        (_, false) => say!(
            "{place}: {candidate} is {percent} % slower than {baseline}",
            place = place,
            candidate = &of.candidate,
            baseline = &of.baseline,
            percent = by
        ),
        (Call::Faster, true) => say!(
            "{place}: {candidate} is faster than {baseline}, its time is {percent} % shorter",
            place = place,
            candidate = &of.candidate,
            baseline = &of.baseline,
            percent = by
        ),
        (_, true) => say!(
            "{place}: {candidate} is slower than {baseline}, its time is {percent} % longer",
            place = place,
            candidate = &of.candidate,
            baseline = &of.baseline,
            percent = by
        ),
    }
}

fn evidence(row: &VerdictRow) -> Text {
    let pairs = Text::count(row.pairs as u64, "{n} pair", "{n} pairs");
    match row.interval {
        Some(interval) => say!(
            "ratio of {metric} {ratio}, 95 % interval {interval}, {pairs}",
            metric = &row.name,
            ratio = ratio(row.ratio),
            interval = bounds(interval),
            pairs = pairs
        ),
        None => say!(
            "ratio of {metric} {ratio}, {pairs}",
            metric = &row.name,
            ratio = ratio(row.ratio),
            pairs = pairs
        ),
    }
}

fn why(row: &VerdictRow) -> Text {
    let share = |share: Option<f64>| format::percent(share.unwrap_or_default());
    match row.call {
        Call::TooFewPairs => say!("fewer than 4 pairs"),
        Call::DeviationTooHigh => say!(
            "deviation too high: trials vary by {share} %",
            share = share(
                row.variation_baseline.into_iter().chain(row.variation_candidate).reduce(f64::max)
            )
        ),
        Call::Unproven => say!("not proven among all that is judged"),
        Call::BelowNoiseFloor => say!(
            "the same system differs from itself by up to {share} %",
            share = share(row.noise_floor)
        ),
        _ => match row.pairs_needed {
            Some(pairs) if pairs > row.pairs => say!(
                "the interval holds 1; about {pairs} pairs would do",
                pairs = format::whole(pairs as f64)
            ),
            _ => say!("the interval holds 1"),
        },
    }
}

/// All comparisons in a sentence, for the cover; `None` where nothing is compared.
pub(super) fn of_all(verdicts: &[PairedComparison]) -> Option<Text> {
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
        "faster at {faster}, slower at {slower}, no different at {same}, undecided at {undecided}; ratios from {low} to {high}",
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
            "Of {n} load levels {candidate} was, compared with {baseline}, {counts}.",
            n = n,
            candidate = &first.candidate,
            baseline = &first.baseline,
            counts = counts
        ),
        false => say!(
            "In {n} comparisons the candidate was, compared with its baseline, {counts}.",
            n = n,
            counts = counts
        ),
    })
}

/// A gate in a line.
pub(super) fn gate(row: &GateRow) -> Text {
    let result = match row.result {
        GateResult::Pass => say!("passed"),
        GateResult::Inconclusive => say!("INCONCLUSIVE"),
        GateResult::Broken => say!("BROKEN"),
    };
    let shown = if row.is_ratio { ratio } else { format::short };
    let value = row.value.map_or(format::DASH.to_owned(), shown);
    let found = match row.interval {
        Some(interval) => say!(
            "{value}, 95 % interval [{low}, {high}]",
            value = value,
            low = shown(interval.low),
            high = shown(interval.high)
        ),
        None => Text::same(value),
    };
    let place: Vec<Text> = [Text::from(&row.title), row.level.clone(), Text::from(&row.target)]
        .into_iter()
        .filter(|part| !part.is_empty())
        .collect();
    let line = say!(
        "gate `{gate}` {result}: {place}: {found}.",
        gate = &row.gate,
        result = result,
        place = Text::joined(&place, ", ", "，"),
        found = found
    );
    match row.why.is_empty() {
        true => line,
        false => Text::sentences(&[line, row.why.clone()]),
    }
}
