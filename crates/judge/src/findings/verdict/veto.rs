//! Vetoes: the one place that says which checks take which verdicts away.
//!
//! **The rule.** A statistical test excludes chance and nothing else. What a check of level E finds forbids to quote a
//! result, mostly because it can make a difference all by itself, or hide one. Each comparison that it concerns (its
//! place is the comparison, one of its trials or its targets) is then undecided in every metric, and every gate on its
//! ratios inconclusive, unless the check knows how far it reaches: what it found can have moved a ratio by at most that
//! much, perhaps to one side only, and a verdict that holds also when its interval is moved so far remains. How far,
//! and from when on sides are taken for unlike, is documented with each check. A finding that is accepted (`--allow`)
//! takes nothing away: it is reported as a caveat.

use super::*;

/// The check that itself reports the state of a comparison.
const AA_DIFFERS: &str = "aa-differs";
/// Caveats that take away what they reach.
const CAVEATS: [&str; 2] = ["uneven-foreign-cpu-secondary", "foreign-load"];
/// The only one that more pairs help against.
pub(super) const STOPPED: &str = "generator-stopped";

/// Takes away what can be explained otherwise. Checks have left their numbers at the comparisons.
pub(crate) fn apply(verdicts: &mut Verdicts, checks: &[Check]) {
    for comparison in &mut verdicts.comparisons {
        comparison.vetoes = find_vetoes(comparison, checks);
        let is_hopeless = comparison.final_vetoes().next().is_some();
        for row in &mut comparison.rows {
            if is_hopeless && row.call == Call::TooFewPairs {
                row.pairs_needed = None;
            }
            if let Some(veto) =
                comparison.vetoes.iter().find(|veto| explains(veto.reach, row, comparison.margin))
            {
                row.pairs_needed = None;
                // If the interval contains 1, no difference needs an explanation.
                if row.call != Call::Undecided {
                    row.call = Call::Explained;
                    row.words = say!(undecided_by_check, id = veto.check);
                }
            }
        }
        comparison.sentence = super::words::comparison_sentence(comparison);
        let gates = verdicts.gates.iter_mut();
        for gate in gates.filter(|gate| gate.comparison == Some(comparison.number)) {
            let mut vetoes = comparison.vetoes.iter();
            let veto = vetoes.find(|veto| explains_gate(veto.reach, gate, &comparison.rows));
            if let Some(veto) = veto {
                (gate.result, gate.needed) = (GateResult::Inconclusive, None);
                gate.why = say!(check_can_explain, id = veto.check, found = &veto.found);
            }
        }
    }
}

/// Returns what takes the verdict of this level of an experiment away as a run is now, or which gate on it is open that
/// until decided means too, and whether further pairs help: the rule that ends pairs asks before it takes them for
/// decided.
pub fn veto_of_level(run: &RunData, experiment: &str, level: &str) -> Option<(Message, bool)> {
    let paper = Judgment::from_runs(std::slice::from_ref(run), &[], &[], &Naming::default());
    let name = format!("{experiment} {level}: ");
    let mut comparisons: Vec<&PairedComparison> = paper.verdicts.comparisons.iter().collect();
    comparisons.retain(|comparison| comparison.name.starts_with(&name));
    let veto = comparisons.iter().find_map(|comparison| {
        let first = comparison.rows.first()?;
        if !matches!(first.call, Call::Explained | Call::TooFewPairs) {
            return None;
        }
        let final_veto = comparison.final_vetoes().next();
        let veto = final_veto.or_else(|| comparison.deciding_vetoes().next())?;
        let text = say!(check_with_finding, id = veto.check, found = &veto.found);
        Some((text, veto.reach != VetoReach::AnyFar))
    });
    veto.or_else(|| {
        let gate = paper.verdicts.gates.iter().find(|gate| {
            let mut comparisons = comparisons.iter();
            let comparison =
                comparisons.find(|comparison| gate.comparison == Some(comparison.number));
            gate.result == GateResult::Inconclusive
                && comparison.is_some_and(|comparison| {
                    let mut vetoes = comparison.vetoes.iter();
                    comparison.stop.is_until_decided
                        && !vetoes.any(|veto| explains_gate(veto.reach, gate, &comparison.rows))
                })
        })?;
        Some((Message::verbatim(&gate.gate), true))
    })
}

/// Returns true if a verdict of a comparison (only that of the metric that decides, if `is_deciding`) or a gate on it
/// falls by something that reaches so far.
pub(crate) fn explains_any(
    reach: VetoReach,
    comparison: &PairedComparison,
    verdicts: &Verdicts,
    is_deciding: bool,
) -> bool {
    let row_count = if is_deciding { 1 } else { comparison.rows.len() };
    let mut gates = verdicts.gates.iter().filter(|gate| gate.comparison == Some(comparison.number));
    comparison.rows.iter().take(row_count).any(|row| explains(reach, row, comparison.margin))
        || gates.any(|gate| explains_gate(reach, gate, &comparison.rows))
}

fn find_vetoes(comparison: &PairedComparison, checks: &[Check]) -> Vec<Veto> {
    let open = checks.iter().filter(|check| {
        let forbids = check.level == Level::E && check.id != AA_DIFFERS;
        (forbids || CAVEATS.contains(&check.id))
            && !check.is_accepted
            && comparison.checks.contains(&check.number)
    });
    let vetoes = open.filter_map(|check| {
        let first = check.findings.iter().find(|finding| {
            // A caveat takes away only what its finding says that it reaches.
            let reaches = check.level == Level::E || finding.reach != VetoReach::AnyFar;
            comparison.has(&finding.place) && reaches
        })?;
        let reach = match check.id {
            STOPPED => VetoReach::Pairs,
            _ => first.reach,
        };
        let is_touched = comparison.rows.is_empty()
            || comparison.rows.iter().any(|row| reach.touches(row.metric));
        is_touched.then(|| Veto { check: check.id, found: first.describe(), reach })
    });
    vetoes.collect()
}

/// Returns true if something that reaches so far can have made this verdict.
pub(crate) fn explains(reach: VetoReach, row: &VerdictRow, margin: f64) -> bool {
    // Too few pairs claim nothing, and a remedy of what was found would leave them too few.
    if !reach.touches(row.metric) || row.call == Call::TooFewPairs {
        return false;
    }
    let moved = reach.moved(row.metric, row.interval, row.withstood);
    let Some((low, high)) = moved else { return true };
    match row.call {
        Call::Faster | Call::Slower => low <= 1.0 && high >= 1.0,
        Call::Equivalent => low < 1.0 / (1.0 + margin) || high > 1.0 + margin,
        // Nothing is claimed.
        _ => false,
    }
}

/// Like [`explains`] for a gate on a ratio; `rows` are the verdicts of its comparison.
pub(crate) fn explains_gate(reach: VetoReach, row: &GateRow, rows: &[VerdictRow]) -> bool {
    let Ok(gate) = row.gate.parse::<Gate>() else { return false };
    if !reach.touches(gate.metric) {
        return false;
    }
    let verdict = rows.iter().find(|row| row.metric == gate.metric);
    match reach.moved(gate.metric, row.interval, verdict.and_then(|row| row.withstood)) {
        None => true,
        Some((low, high)) => low <= gate.bound && gate.bound <= high,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::tests::{comparison, row};

    fn explains_interval(call: Call, low: f64, high: f64, factor: f64) -> bool {
        let interval = Some(Bounds { low, high });
        let row = VerdictRow { call, interval, ..row(Metric::Tps) };
        explains(VetoReach::HeldUp(factor.ln()), &row, 0.25)
    }

    #[test]
    fn a_verdict_falls_where_its_interval_moved_reaches_one_or_the_margin() {
        // The candidate was held up: its ratio may be higher.
        assert!(
            explains_interval(Call::Slower, 0.5, 0.8, 1.3)
                && !explains_interval(Call::Slower, 0.5, 0.8, 1.2)
        );
        assert!(explains_interval(Call::Slower, 0.5, 0.5, 2.0), "just as far");
        assert!(!explains_interval(Call::Faster, 1.5, 2.0, 1.3));
        // The baseline was: it may be lower.
        assert!(
            explains_interval(Call::Faster, 2.0, 2.5, 0.5)
                && !explains_interval(Call::Faster, 2.1, 2.5, 0.5)
        );
        assert!(
            explains_interval(Call::Equivalent, 0.9, 1.1, 1.2)
                && !explains_interval(Call::Equivalent, 0.9, 1.1, 1.1)
        );
        assert!(
            explains_interval(Call::Equivalent, 0.9, 1.1, 0.8)
                && !explains_interval(Call::Equivalent, 0.9, 1.1, 0.9)
        );
        for call in [Call::Undecided, Call::TooFewPairs, Call::Unproven, Call::Explained] {
            assert!(!explains_interval(call, 0.9, 1.1, 2.0), "nothing is claimed: {call:?}");
        }
    }

    fn make_row(call: Call) -> VerdictRow {
        VerdictRow { call, ..row(Metric::Tps) }
    }

    #[test]
    fn what_reaches_any_far_explains_all_but_too_few_pairs() {
        assert!(explains(VetoReach::AnyFar, &make_row(Call::Faster), 0.03));
        assert!(explains(VetoReach::AnyFar, &make_row(Call::Undecided), 0.03));
        assert!(!explains(VetoReach::AnyFar, &make_row(Call::TooFewPairs), 0.03));
        assert!(!explains(VetoReach::Costs, &make_row(Call::Faster), 0.03));
        let cost = VerdictRow { call: Call::Faster, ..row(Metric::ServerCpuUs) };
        assert!(explains(VetoReach::Costs, &cost, 0.03));
    }

    fn make_gate(text: &str, low: f64, high: f64) -> GateRow {
        let interval = Some(Bounds { low, high });
        GateRow { gate: text.to_owned(), interval, comparison: Some(1), ..GateRow::default() }
    }

    fn explains_text(text: &str, reach: VetoReach) -> bool {
        explains_gate(reach, &make_gate(text, 0.4, 0.5), &[])
    }

    #[test]
    fn a_gate_falls_where_its_bound_is_within_reach() {
        let reach = VetoReach::HeldUp(2.0_f64.ln());
        assert!(explains_text("tps.ratio > 0.9", reach) && explains_text("tps.ratio > 1", reach));
        assert!(
            explains_text("tps.ratio > 0.4", reach) && !explains_text("tps.ratio > 0.3", reach)
        );
        assert!(!explains_text("tps.ratio > 1.1", reach) && !explains_text("nonsense", reach));
        assert!(explains_text("tps.ratio > 9", VetoReach::AnyFar));
        assert!(!explains_text("tps.ratio > 9", VetoReach::Costs));
        let withstood = Some(Bounds { low: 0.3, high: 0.6 });
        let rows = [row(Metric::P99Ms), VerdictRow { withstood, ..row(Metric::Tps) }];
        let by_pairs =
            |text: &str| explains_gate(VetoReach::Pairs, &make_gate(text, 0.4, 0.5), &rows);
        assert!(by_pairs("tps.ratio > 0.35") && !by_pairs("tps.ratio > 0.7"));
    }

    #[test]
    fn any_verdict_or_gate_of_a_comparison_may_fall() {
        let calm = VerdictRow { call: Call::TooFewPairs, ..row(Metric::Tps) };
        let claims = VerdictRow { call: Call::Faster, ..row(Metric::P99Ms) };
        let comparison = comparison(vec![calm, claims]);
        let mut verdicts = Verdicts {
            comparisons: Vec::new(),
            gates: Vec::new(),
            scaling: Vec::new(),
            steady: Vec::new(),
        };
        let any = |verdicts: &Verdicts, is_deciding| {
            explains_any(VetoReach::AnyFar, &comparison, verdicts, is_deciding)
        };
        assert!(any(&verdicts, false) && !any(&verdicts, true));
        verdicts.gates =
            vec![GateRow { comparison: Some(2), ..make_gate("tps.ratio > 1", 0.4, 0.5) }];
        assert!(!any(&verdicts, true), "another's");
        verdicts.gates[0].comparison = Some(1);
        assert!(any(&verdicts, true));
    }

    fn make_check(id: &'static str, level: Level, place: Spot, reach: VetoReach) -> Check {
        let text = Message::default;
        Check {
            number: 1,
            id,
            group: Group::A,
            level,
            rule: text(),
            meaning: text(),
            advice: text(),
            effect: Effect::Unbounded,
            is_accepted: false,
            findings: vec![Finding { reach, ..Finding::new(place, "found".into()) }],
            lines: Vec::new(),
        }
    }

    #[test]
    fn checks_take_away_what_they_concern() {
        let mut comparison = comparison(vec![row(Metric::Tps)]);
        comparison.checks = vec![1];
        let place = SpotKind::Target.at("a");
        let count = |check: Check| find_vetoes(&comparison, &[check]).len();
        let any = VetoReach::AnyFar;
        assert_eq!(count(make_check("c", Level::E, place.clone(), any)), 1);
        assert_eq!(count(make_check("c", Level::W, place.clone(), any)), 0);
        assert_eq!(count(make_check("c", Level::E, SpotKind::Target.at("z"), any)), 0);
        assert_eq!(
            count(make_check("c", Level::E, place.clone(), VetoReach::Costs)),
            0,
            "no cost is judged"
        );
        assert_eq!(count(make_check(AA_DIFFERS, Level::E, place.clone(), any)), 0);
        assert_eq!(
            count(make_check(CAVEATS[0], Level::W, place.clone(), any)),
            0,
            "it does not say how far"
        );
        assert_eq!(
            count(make_check(CAVEATS[0], Level::W, place.clone(), VetoReach::HeldUp(0.1))),
            1
        );
        assert_eq!(
            count(Check { is_accepted: true, ..make_check("c", Level::E, place.clone(), any) }),
            0
        );
        assert_eq!(count(Check { number: 2, ..make_check("c", Level::E, place.clone(), any) }), 0);
        let stopped =
            find_vetoes(&comparison, &[make_check(STOPPED, Level::E, place.clone(), any)]);
        assert_eq!(stopped[0].reach, VetoReach::Pairs);
    }
}
