//! Verdicts in words.

use super::*;

/// Larger ratios, and smaller ones, are expressed as factors.
const LARGE_FACTOR: f64 = 10.0;
/// Number of pairs beyond which longer windows are the better remedy.
pub(super) const MAX_PAIRS: usize = 100;

/// The verdict of one metric, for a table's cell.
pub(super) fn call_words(row: &VerdictRow, margin: f64) -> Message {
    let is_cost = row.metric.is_cost();
    match row.call {
        Call::Faster if is_cost => say!(uses_less),
        Call::Slower if is_cost => say!(uses_more),
        Call::Faster => say!(faster),
        Call::Slower => say!(slower),
        Call::Equivalent => say!(equivalent_within, margin = format::percent(margin)),
        Call::TooFewPairs => say!(undecided_too_few_pairs),
        Call::Undecided | Call::Explained => say!(undecided),
        Call::Unproven => say!(undecided_not_proven),
    }
}

/// Like `1.023`: three digits behind the point, fewer of large ones; of small ones three that count.
pub(crate) fn ratio(ratio: f64) -> String {
    NumberFormat::Ratio.show(ratio)
}

/// The ratio of a row, with `≥` or `≤` before a ratio that is only a bound.
pub fn ratio_of_row(row: &VerdictRow) -> String {
    format!("{}{}{}", row.bound, if row.bound.is_empty() { "" } else { " " }, ratio(row.ratio))
}

/// A ratio as a change: `+4.9%`.
pub fn change(ratio: f64) -> String {
    format!("{:+.1}%", 100.0 * (ratio - 1.0))
}

/// Returns the change of a row, with `≥` or `≤` in front if its ratio is only a bound.
pub fn change_of_row(row: &VerdictRow) -> String {
    format!("{}{}", row.bound, change(row.ratio))
}

pub fn interval_of_change(interval: Bounds) -> String {
    let [low, high] = [interval.low, interval.high].map(|ratio| 100.0 * (ratio - 1.0));
    if interval.high.is_finite() {
        format!("{low:+.1} to {high:+.1}%")
    } else {
        format!("{low:+.1}% to ∞")
    }
}

/// The interval of a ratio in brackets: `[1.010, 1.050]`.
pub fn bounds(interval: Bounds) -> String {
    if interval.high.is_finite() {
        format!("[{}, {}]", ratio(interval.low), ratio(interval.high))
    } else {
        format!("[{}, ∞)", ratio(interval.low))
    }
}

/// The reason why no pair counts: the ends of these trials of both sides.
pub(super) fn no_pair(spoilt: &[&Trial]) -> Message {
    let failures = spoilt.iter().filter_map(|trial| match &trial.summary.status {
        TrialStatus::Failed(why) => Some(why),
        _ => None,
    });
    let failures: Vec<&Message> = failures.collect();
    let cut = spoilt.iter().filter(|trial| trial.status == "interrupted").count();
    match failures.first() {
        Some(why) => say!(no_pair_counts_trials_failed, n = failures.len(), why = *why),
        None if cut > 0 => say!(no_pair_counts_trials_were_cut_off, n = cut),
        None => say!(no_pair_of_trials_has_figures),
    }
}

/// The experiment and its load level; titles of suites may name the level themselves.
pub(super) fn place(comparison: &PairedComparison) -> Message {
    let PairedComparison { title, level, .. } = comparison;
    if names_level(&title.to_string(), &level.to_string()) {
        title.clone()
    } else {
        say!(experiment_level, experiment = title, level)
    }
}

/// `2 to 4 workers` names all levels, not the last one.
fn names_level(title: &str, level: &str) -> bool {
    title.strip_suffix(level).is_some_and(|before| !before.ends_with(" to "))
}

/// The comparison in a sentence: what is decided, before the metric that should decide if that does not.
pub(super) fn comparison_sentence(comparison: &PairedComparison) -> Message {
    let place = place(comparison);
    let (Some(first), Some(row)) =
        (comparison.rows.first(), comparison.rows_by_decision().first().copied())
    else {
        return say!(place_found, place, found = &comparison.no_pair);
    };
    let (is_first, margin) = (row.metric == first.metric, format::percent(comparison.margin));
    let (candidate, baseline, metric) = (&comparison.candidate, &comparison.baseline, &row.name);
    // At one rate neither target is faster: the sentence names the cost of a transaction.
    let is_together = comparison.order == PairOrder::Together;
    let decision = match (row.call, is_first && !is_together) {
        (Call::Faster | Call::Slower, is_speed) => difference_sentence(comparison, row, is_speed),
        (Call::Equivalent, true) => {
            say!(both_are_equivalent_within, place, candidate, baseline, margin)
        }
        (Call::Equivalent, false) => {
            say!(both_are_equivalent_in_metric, place, candidate, baseline, margin, metric)
        }
        (_, true) => say!(
            whether_or_is_faster_is_undecided,
            place,
            candidate,
            baseline,
            why = undecided_reason(comparison, row)
        ),
        (_, false) => say!(
            whether_they_differ_is_undecided,
            place,
            candidate,
            baseline,
            metric,
            why = undecided_reason(comparison, row)
        ),
    };
    let mut sentences =
        vec![say!(said_evidence, said = decision, evidence = describe_evidence(row))];
    if !is_first {
        let decision = match first.call {
            Call::Equivalent => {
                say!(by_metric_equivalent, margin = format::percent(comparison.margin))
            }
            _ => say!(by_metric_undecided, why = undecided_reason(comparison, first)),
        };
        let evidence = describe_evidence(first);
        sentences.push(say!(said_evidence, said = decision, evidence));
    }
    if is_together {
        let remaining_rows = comparison
            .rows
            .iter()
            .filter(|other| ![first.metric, row.metric].contains(&other.metric));
        // Waits that need no CPU show only in the latency, so an undecided latency is reported too.
        let reported_rows =
            remaining_rows.filter(|row| row.call.is_difference() || row.metric == Metric::MeanMs);
        sentences.extend(reported_rows.map(|row| {
            let evidence = describe_evidence(row);
            if row.call.is_undecided() {
                say!(also_undecided, evidence)
            } else {
                say!(also_certain, evidence)
            }
        }));
        sentences.push(say!(capacity_was_not_measured));
    }
    // Behind the evidence of the metric that decides, and of the same.
    sentences.extend(stability(comparison, first));
    if !comparison.sessions.is_empty() {
        sentences.push(say!(pairs_are_of_sessions, n = comparison.sessions.len()));
    }
    if comparison.has_unlike_sessions() {
        sentences.push(say!(sessions_are_unlike));
    }
    // Otherwise the order of trials is the reason why nothing is decided.
    if comparison.order == PairOrder::Blocks && row.call != Call::Explained {
        sentences.push(say!(trials_not_interleaved));
    }
    Message::sentences(&sentences)
}

/// Variation of the sides, if one of them is unstable: it takes no verdict away.
fn stability(comparison: &PairedComparison, row: &VerdictRow) -> Option<Message> {
    let (a, b) = (row.variation_baseline?, row.variation_candidate?);
    if a.max(b) <= MOST_VARIATION || row.pairs < LEAST_PAIRS {
        return None;
    }
    let (more, less, high, low) = if b >= a {
        (&comparison.candidate, &comparison.baseline, b, a)
    } else {
        (&comparison.baseline, &comparison.candidate, a, b)
    };
    let shares = [high, low].map(format::percent);
    // A few trials tell a deviation to a factor of two or so.
    Some(match high / low.max(f64::MIN_POSITIVE) {
        times if times < 2.0 || low == 0.0 => {
            say!(variation_of_both_sides, high = &shares[0], more, low = &shares[1], less)
        }
        times => say!(
            varies_times_as_much_as,
            more,
            less,
            times = format::short(times),
            high = &shares[0],
            low = &shares[1]
        ),
    })
}

/// A difference that is certain. For times the ratio is of seconds: half the time is not "50% faster".
fn difference_sentence(comparison: &PairedComparison, row: &VerdictRow, is_first: bool) -> Message {
    let place = say!(experiment_level, experiment = &comparison.title, level = &comparison.level);
    let (candidate, baseline, percent) = (&comparison.candidate, &comparison.baseline, sizes(row));
    let (is_faster, is_higher, metric) = (row.call == Call::Faster, row.ratio > 1.0, &row.name);
    match (factor(row), is_faster, row.is_less_better) {
        _ if !is_first && is_higher => {
            say!(metric_is_percent_higher, place, candidate, baseline, metric, percent)
        }
        _ if !is_first => {
            say!(metric_is_percent_lower, place, candidate, baseline, metric, percent)
        }
        (Some(factor), true, _) => say!(is_times_faster, place, candidate, baseline, factor),
        (Some(factor), false, _) => say!(is_times_slower, place, candidate, baseline, factor),
        (None, true, false) => say!(is_percent_faster_than, place, candidate, baseline, percent),
        (None, false, false) => say!(is_percent_slower_than, place, candidate, baseline, percent),
        (None, true, true) => say!(is_faster_by_less_time, place, candidate, baseline, percent),
        (None, false, true) => {
            say!(is_slower_by_more_time, place, candidate, baseline, percent)
        }
    }
}

/// The ratio as a factor, with its interval, if a share would say little: `1,380 times (240 to 8,100)`.
fn factor(row: &VerdictRow) -> Option<Message> {
    let is_large = !(1.0 / LARGE_FACTOR..=LARGE_FACTOR).contains(&row.ratio);
    let interval = row.interval.filter(|_| is_large && row.bound.is_empty())?;
    let [times, a, b] = [row.ratio, interval.low, interval.high]
        .map(|ratio| if row.ratio < 1.0 { 1.0 / ratio } else { ratio });
    Some(say!(
        times_with_interval,
        times = format::short(times),
        low = format::short(a.min(b)),
        high = format::short(a.max(b))
    ))
}

/// From which to which share the difference is.
fn sizes(row: &VerdictRow) -> Message {
    let Some(interval) = row.interval else {
        return format::percent((row.ratio - 1.0).abs()).into();
    };
    let [a, b] = [interval.low, interval.high].map(|ratio| (ratio - 1.0).abs());
    match (format::percent(a.min(b)), format::percent(a.max(b))) {
        (low, _) if !row.bound.is_empty() => say!(at_least_share, share = low),
        (low, high) if low == high => high.into(),
        (low, high) => say!(low_to_high, low, high),
    }
}

fn describe_evidence(row: &VerdictRow) -> Message {
    let pairs = pairs(row);
    match row.interval {
        Some(interval) => say!(
            ratio_of_95_percent_interval,
            metric = &row.name,
            ratio = ratio_of_row(row),
            interval = bounds(interval),
            pairs
        ),
        None => {
            say!(ratio_of_metric_ratio_pairs, metric = &row.name, ratio = ratio_of_row(row), pairs)
        }
    }
}

/// The number of pairs of a row, and of units if these are of several pairs.
pub(super) fn pairs(row: &VerdictRow) -> Message {
    let pairs = say!(n_pairs, n = row.pairs);
    if row.units == row.pairs {
        pairs
    } else {
        say!(pairs_that_count_as, pairs, units = row.units.to_string())
    }
}

/// A comparison of a system with itself: what of it there is twice.
pub fn aa(comparison: &PairedComparison) -> Message {
    match comparison.aa {
        AaKind::Trials => say!(same_system_aa),
        AaKind::Starts => say!(restarted_system_aa),
        AaKind::Clone => say!(second_clone_aa),
    }
}

/// The reason why a verdict is open, with what would decide it.
fn undecided_reason(comparison: &PairedComparison, row: &VerdictRow) -> Message {
    match (row.call, row.pairs_needed) {
        (Call::Explained, _) => describe_vetoes(comparison.deciding_vetoes()),
        (Call::Undecided, _) if !row.bound.is_empty() => say!(what_was_given_up_is_only_a_bound),
        (Call::TooFewPairs, _) => {
            let too_few = say!(fewer_than_6_pairs, least = comparison.least_pairs().to_string());
            // More pairs alone would not do.
            match comparison.final_vetoes().next() {
                Some(_) => Message::joined(
                    &[too_few, describe_vetoes(comparison.final_vetoes())],
                    "; ",
                    "；",
                ),
                None => too_few,
            }
        }
        (Call::Unproven, _) => say!(not_proven_among_comparisons),
        (_, Some(pairs)) if pairs > MAX_PAIRS => {
            let (pairs, margin) = (format::whole(pairs as f64), format::percent(comparison.margin));
            say!(longer_windows_would_decide, pairs, margin)
        }
        (_, Some(pairs)) if pairs > row.pairs => {
            let (pairs, margin) = (format::whole(pairs as f64), format::percent(comparison.margin));
            say!(the_interval_holds_1_about_pairs, pairs, margin)
        }
        _ => say!(interval_contains_one),
    }
}

fn describe_vetoes<'a>(vetoes: impl Iterator<Item = &'a Veto>) -> Message {
    let texts =
        vetoes.map(|veto| say!(the_check_with_finding, id = veto.check, found = &veto.found));
    let texts: Vec<Message> = texts.collect();
    say!(other_cause_can_explain, found = Message::joined(&texts, "; ", "；"))
}

/// All comparisons in a sentence, for the cover; `None` if nothing is compared.
pub(super) fn summary_sentence(comparisons: &[PairedComparison]) -> Option<Message> {
    // The difference of a system from itself is reported only if nothing else is.
    let is_aa_only = comparisons.iter().all(|comparison| comparison.is_aa);
    let comparisons: Vec<&PairedComparison> =
        comparisons.iter().filter(|comparison| !comparison.is_aa || is_aa_only).collect();
    let first = match comparisons.as_slice() {
        [] => return None,
        [only] => return Some(only.sentence.clone()),
        [first, ..] => *first,
    };
    let (candidate, baseline) = (&first.candidate, &first.baseline);
    let have_same_targets = comparisons
        .iter()
        .all(|comparison| (&comparison.baseline, &comparison.candidate) == (baseline, candidate));
    let calls: Vec<Call> =
        comparisons.iter().filter_map(|comparison| Some(comparison.rows.first()?.call)).collect();
    let without = comparisons.len() - calls.len();
    let mut counts = count_calls(&calls, without);
    if let Some(speed) = decided_speed(&comparisons) {
        counts = say!(counts_and_speed_where_decided, counts, speed);
    }
    let n = format::whole(comparisons.len() as f64);
    let mut sentences = vec![if have_same_targets {
        say!(compared_at_load_levels, n, candidate, baseline, counts)
    } else {
        say!(in_comparisons_the_candidate_was_compared, n, counts)
    }];
    let vetoes = comparisons.iter().flat_map(|comparison| comparison.deciding_vetoes());
    let vetoes: Vec<&Veto> = vetoes.collect();
    for id in format::unique(vetoes.iter().map(|veto| veto.check).collect()) {
        // If only secondary metrics fall, the verdict remains.
        let vetoed = comparisons.iter().filter(|comparison| {
            let first_row = comparison.rows.first();
            first_row.is_some_and(|row| row.call == Call::Explained)
                && comparison.deciding_vetoes().any(|veto| veto.check == id)
        });
        let n = vetoed.count();
        let first = vetoes.iter().find(|veto| veto.check == id).filter(|_| n > 0);
        sentences.extend(first.map(|veto| say!(check_takes_verdicts, id, found = &veto.found, n)));
    }
    if without > 0 {
        sentences.push(say!(levels_without_a_pair, n = without));
    }
    Some(Message::sentences(&sentences))
}

/// Number of verdicts of each kind; comparisons without any are undecided.
fn count_calls(calls: &[Call], without: usize) -> Message {
    let undecided = calls.iter().filter(|call| call.is_undecided()).count() + without;
    let [faster, slower, equivalent] = [Call::Faster, Call::Slower, Call::Equivalent]
        .map(|kind| calls.iter().filter(|call| **call == kind).count());
    let counts = [
        (faster > 0).then(|| say!(faster_at_n, n = faster)),
        (slower > 0).then(|| say!(slower_at_n, n = slower)),
        (equivalent > 0).then(|| say!(equivalent_at_n, n = equivalent)),
        (undecided > 0).then(|| say!(undecided_at_n, n = undecided)),
    ];
    let counts: Vec<Message> = counts.into_iter().flatten().collect();
    Message::joined(&counts, ", ", "，")
}

/// From the slowest to the fastest of the comparisons whose first metric is decided.
fn decided_speed(comparisons: &[&PairedComparison]) -> Option<Message> {
    let rows = comparisons.iter().filter_map(|comparison| comparison.rows.first());
    let speeds = rows.filter(|row| !row.call.is_undecided()).map(|row| {
        // Half of the time is twice as fast.
        if row.is_less_better { 1.0 / row.ratio } else { row.ratio }
    });
    let mut speeds: Vec<f64> = speeds.collect();
    speeds.sort_unstable_by(f64::total_cmp);
    let [low, high] = [speeds.first()?, speeds.last()?].map(|speed| ratio(*speed));
    Some(if low == high { low.into() } else { say!(speed_range, low, high) })
}

/// A gate with its result, its place and its figure, in a line.
pub(super) fn gate(row: &GateRow) -> Message {
    let result = match row.result {
        GateResult::Pass => say!(passed),
        GateResult::Inconclusive => say!(inconclusive),
        GateResult::Broken => say!(broken),
    };
    let format_value = if row.is_ratio { ratio } else { format::short };
    let value = row.value.map_or(format::DASH.to_owned(), format_value);
    let figure = match row.interval {
        Some(interval) => say!(
            value_with_interval,
            value,
            low = format_value(interval.low),
            high = format_value(interval.high)
        ),
        None => Message::verbatim(value),
    };
    let place: Vec<Message> = [row.title.clone(), row.level.clone(), Message::from(&row.target)]
        .into_iter()
        .filter(|part| !part.is_empty())
        .collect();
    let line = say!(
        gate_gate_result_place_found,
        gate = &row.gate,
        result,
        place = Message::joined(&place, ", ", "，"),
        found = figure
    );
    if row.why.is_empty() { line } else { Message::sentences(&[line, row.why.clone()]) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::tests::{comparison, row, trial};

    #[test]
    fn a_title_with_a_span_of_levels_names_none() {
        assert!(names_level("Orders, 4 workers", "4 workers"));
        assert!(!names_level("Orders, 2 to 4 workers", "4 workers"));
        assert!(!names_level("Orders", "4 workers"));
    }

    fn describe_stability(a: Option<f64>, b: Option<f64>, pairs: usize) -> Option<Message> {
        let row =
            VerdictRow { variation_baseline: a, variation_candidate: b, pairs, ..row(Metric::Tps) };
        stability(&comparison(Vec::new()), &row)
    }

    fn vary_by(high: f64, more: &str, low: f64, less: &str) -> Option<Message> {
        let [high, low] = [high, low].map(format::percent);
        Some(say!(variation_of_both_sides, high, more, low, less))
    }

    fn vary_times(more: &str, less: &str, times: f64, high: f64, low: f64) -> Option<Message> {
        let ([high, low], times) = ([high, low].map(format::percent), format::short(times));
        Some(say!(varies_times_as_much_as, more, less, times, high, low))
    }

    #[test]
    fn sides_that_vary_are_told_with_the_wilder_first() {
        assert_eq!(describe_stability(Some(0.05), Some(0.05), 8), None);
        assert_eq!(describe_stability(Some(0.06), None, 8), None);
        assert_eq!(describe_stability(Some(0.06), Some(0.06), 5), None, "too few pairs");
        assert_eq!(describe_stability(Some(0.06), Some(0.05), 6), vary_by(0.06, "a", 0.05, "b"));
        assert_eq!(describe_stability(Some(0.05), Some(0.06), 8), vary_by(0.06, "b", 0.05, "a"));
        assert_eq!(describe_stability(Some(0.06), Some(0.0), 8), vary_by(0.06, "a", 0.0, "b"));
        assert_eq!(
            describe_stability(Some(0.125), Some(0.0625), 8),
            vary_times("a", "b", 2.0, 0.125, 0.0625)
        );
        assert_eq!(
            describe_stability(Some(0.01), Some(0.08), 8),
            vary_times("b", "a", 8.0, 0.08, 0.01)
        );
    }

    fn size_words(low: f64, high: f64, bound: &'static str) -> Message {
        let interval = Some(Bounds { low, high });
        sizes(&VerdictRow { interval, bound, ..row(Metric::Tps) })
    }

    fn span_words(low: f64, high: f64) -> Message {
        let [low, high] = [low, high].map(format::percent);
        say!(low_to_high, low, high)
    }

    #[test]
    fn sizes_of_differences_are_those_of_the_interval() {
        assert_eq!(size_words(1.5, 1.75, ""), span_words(0.5, 0.75));
        assert_eq!(size_words(0.25, 0.5, ""), span_words(0.5, 0.75));
        assert_eq!(size_words(1.5, 1.5, ""), Message::from(format::percent(0.5)));
        let at_least = say!(at_least_share, share = format::percent(0.5));
        assert_eq!(size_words(1.5, f64::INFINITY, "≥"), at_least);
        let alone = VerdictRow { interval: None, ratio: 0.75, ..row(Metric::Tps) };
        assert_eq!(sizes(&alone), Message::from(format::percent(0.25)));
    }

    fn factor_words(ratio: f64, low: f64, high: f64, bound: &'static str) -> Option<Message> {
        let interval = Some(Bounds { low, high });
        factor(&VerdictRow { ratio, interval, bound, ..row(Metric::Tps) })
    }

    fn expect_factor(times: f64, low: f64, high: f64) -> Option<Message> {
        let [times, low, high] = [times, low, high].map(format::short);
        Some(say!(times_with_interval, times, low, high))
    }

    #[test]
    fn large_ratios_are_told_as_times() {
        assert_eq!(factor_words(10.0, 8.0, 16.0, ""), None);
        assert_eq!(factor_words(12.0, 8.0, 16.0, ""), expect_factor(12.0, 8.0, 16.0));
        assert_eq!(factor_words(0.0625, 0.03125, 0.125, ""), expect_factor(16.0, 8.0, 32.0));
        assert_eq!(factor_words(12.0, 8.0, 16.0, "≥"), None);
    }

    fn describe_difference(call: Call, ratio: f64, metric: Metric, is_first: bool) -> Message {
        let interval = Some(Bounds { low: ratio - 0.25, high: ratio + 0.25 });
        difference_sentence(
            &comparison(Vec::new()),
            &VerdictRow { call, ratio, interval, ..row(metric) },
            is_first,
        )
    }

    #[test]
    fn differences_are_told_by_what_is_better() {
        let place = &say!(experiment_level, experiment = "X", level = "8 workers");
        let (candidate, baseline) = ("b", "a");
        let [low, high] = [0.25, 0.75].map(format::percent);
        let percent = &say!(low_to_high, low, high);
        let faster = say!(is_percent_faster_than, place, candidate, baseline, percent);
        assert_eq!(describe_difference(Call::Faster, 1.5, Metric::Tps, true), faster);
        let slower = say!(is_percent_slower_than, place, candidate, baseline, percent);
        assert_eq!(describe_difference(Call::Slower, 0.5, Metric::Tps, true), slower);
        let faster = say!(is_faster_by_less_time, place, candidate, baseline, percent);
        assert_eq!(describe_difference(Call::Faster, 0.5, Metric::MeanMs, true), faster);
        let slower = say!(is_slower_by_more_time, place, candidate, baseline, percent);
        assert_eq!(describe_difference(Call::Slower, 1.5, Metric::MeanMs, true), slower);
        let metric = "mean_ms";
        let higher = say!(metric_is_percent_higher, place, candidate, baseline, metric, percent);
        assert_eq!(describe_difference(Call::Slower, 1.5, Metric::MeanMs, false), higher);
        let lower = say!(metric_is_percent_lower, place, candidate, baseline, metric, percent);
        assert_eq!(describe_difference(Call::Faster, 0.5, Metric::MeanMs, false), lower);
    }

    fn describe_reason(call: Call, pairs_needed: Option<usize>, bound: &'static str) -> Message {
        undecided_reason(
            &comparison(Vec::new()),
            &VerdictRow { call, pairs_needed, bound, ..row(Metric::Tps) },
        )
    }

    #[test]
    fn why_nothing_is_decided_is_told_with_what_would() {
        let margin = &format::percent(0.03);
        let longer = say!(longer_windows_would_decide, pairs = "101", margin);
        assert_eq!(describe_reason(Call::Undecided, Some(101), ""), longer);
        for pairs in [100_usize, 9] {
            let pairs_text = pairs.to_string();
            let about = say!(the_interval_holds_1_about_pairs, pairs = pairs_text, margin);
            assert_eq!(describe_reason(Call::Undecided, Some(pairs), ""), about);
        }
        assert_eq!(describe_reason(Call::Undecided, Some(8), ""), say!(interval_contains_one));
        assert_eq!(describe_reason(Call::Undecided, None, ""), say!(interval_contains_one));
        let bound = say!(what_was_given_up_is_only_a_bound);
        assert_eq!(describe_reason(Call::Undecided, Some(9), "≥"), bound);
        assert_eq!(
            describe_reason(Call::Unproven, Some(9), ""),
            say!(not_proven_among_comparisons)
        );
        let too_few = say!(fewer_than_6_pairs, least = "6");
        assert_eq!(describe_reason(Call::TooFewPairs, None, ""), too_few);
    }

    fn ended_trial(status: &'static str, failure: Option<&str>) -> Trial {
        let mut trial = Trial { status, ..trial(Default::default()) };
        if let Some(why) = failure {
            trial.summary.status = TrialStatus::Failed(why.into());
        }
        trial
    }

    #[test]
    fn trials_that_failed_are_told_before_those_that_were_cut_off() {
        let (failed, cut, complete) = (
            ended_trial("failed", Some("w")),
            ended_trial("interrupted", None),
            ended_trial("complete", None),
        );
        let expected = say!(no_pair_counts_trials_failed, n = 2_usize, why = "w");
        assert_eq!(no_pair(&[&cut, &failed, &failed]), expected);
        let expected = say!(no_pair_counts_trials_were_cut_off, n = 1_usize);
        assert_eq!(no_pair(&[&cut, &complete]), expected);
        assert_eq!(no_pair(&[&complete]), say!(no_pair_of_trials_has_figures));
    }

    #[test]
    fn costs_are_less_or_more_and_others_faster_or_slower() {
        for (metric, call, expected) in [
            (Metric::Tps, Call::Faster, say!(faster)),
            (Metric::Tps, Call::Slower, say!(slower)),
            (Metric::ServerCpuUs, Call::Faster, say!(uses_less)),
            (Metric::ServerCpuUs, Call::Slower, say!(uses_more)),
            (Metric::Tps, Call::Explained, say!(undecided)),
            (Metric::Tps, Call::TooFewPairs, say!(undecided_too_few_pairs)),
        ] {
            assert_eq!(call_words(&VerdictRow { call, ..row(metric) }, 0.03), expected);
        }
    }

    fn join_counts(counts: &[Message]) -> Message {
        Message::joined(counts, ", ", "，")
    }

    #[test]
    fn verdicts_are_counted_by_kind() {
        let calls = [Call::Faster, Call::Faster, Call::Slower, Call::Equivalent, Call::Unproven];
        let expected = join_counts(&[
            say!(faster_at_n, n = 2_usize),
            say!(slower_at_n, n = 1_usize),
            say!(equivalent_at_n, n = 1_usize),
            say!(undecided_at_n, n = 4_usize),
        ]);
        assert_eq!(count_calls(&calls, 3), expected);
        assert_eq!(count_calls(&[Call::Slower], 0), join_counts(&[say!(slower_at_n, n = 1_usize)]));
        assert_eq!(count_calls(&[], 2), join_counts(&[say!(undecided_at_n, n = 2_usize)]));
    }

    fn speed_words(rows: &[(Metric, Call, f64)]) -> Option<Message> {
        let comparisons = rows.iter().map(|&(metric, call, ratio)| {
            comparison(vec![VerdictRow { call, ratio, ..row(metric) }])
        });
        let comparisons: Vec<PairedComparison> = comparisons.collect();
        decided_speed(&comparisons.iter().collect::<Vec<_>>())
    }

    fn faster_tps(ratio: f64) -> (Metric, Call, f64) {
        (Metric::Tps, Call::Faster, ratio)
    }

    #[test]
    fn speeds_of_decided_comparisons_span_from_the_slowest() {
        let half = (Metric::MeanMs, Call::Faster, 0.5);
        assert_eq!(speed_words(&[faster_tps(2.0), half]), Some(Message::from(ratio(2.0))));
        let span = say!(speed_range, low = ratio(1.5), high = ratio(3.0));
        assert_eq!(speed_words(&[faster_tps(3.0), half, faster_tps(1.5)]), Some(span));
        assert_eq!(speed_words(&[(Metric::Tps, Call::Undecided, 2.0)]), None);
    }
}
