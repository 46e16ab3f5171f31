use super::*;
use crate::statistics::ratio::Judging;

fn parse_gate(text: &str) -> Gate {
    text.parse().expect(text)
}

fn read_gate(text: &str) -> (Metric, GateFigure, Relation, f64) {
    let gate = parse_gate(text);
    (gate.metric, gate.figure, gate.relation, gate.bound)
}

#[test]
fn gates_are_read() {
    assert_eq!(
        read_gate("tps.ratio.low > 0.97"),
        (Metric::Tps, GateFigure::RatioLow, Relation::Above, 0.97)
    );
    assert_eq!(read_gate("p99_ms<20"), (Metric::P99Ms, GateFigure::Value, Relation::Below, 20.0));
    assert_eq!(
        read_gate("errors <= 0.1%"),
        (Metric::Errors, GateFigure::Value, Relation::AtMost, 0.001)
    );
    assert_eq!(
        read_gate("qphh.ratio >= 97%"),
        (Metric::Qphh, GateFigure::Ratio, Relation::AtLeast, 0.97)
    );
    assert_eq!(
        read_gate("total_s < 2min"),
        (Metric::TotalS, GateFigure::Value, Relation::Below, 120.0)
    );
    assert_eq!(read_gate("p50_ms < 300us").3, 0.3);
    assert_eq!(read_gate("p99 <= 3ms"), (Metric::P99Ms, GateFigure::Value, Relation::AtMost, 3.0));
    for (text, bound) in [
        ("server_cpu_us < 0.08 ms", 80.0),
        ("server_cpu < 80us", 80.0),
        ("total < 2min", 120.0),
        ("p99 < 0.02s", 20.0),
    ] {
        assert!((parse_gate(text).bound / bound - 1.0).abs() < 1e-12, "{text}");
    }
    assert_eq!(read_gate("p99.ratio < 1.05").3, 1.05);
}

#[test]
fn mistakes_name_the_known_words() {
    let cases = [
        ("speed > 3", "`speed` is not a metric.", "tps, qps, tpmc"),
        ("", "`` is not a metric.", "tps, qps"),
        ("tps.ration > 1", "`ration` is not a figure", "`tps.ratio.low`"),
        ("tps.ratio.mid > 1", "`ratio.mid` is not a figure", "`tps.ratio.high`"),
        ("tps = 3", "`tps = 3` is not a metric.", "tps, qps"),
        ("tps", "A comparison was expected.", "<, <=, > and >="),
        ("tps >", "`` is not a number.", "tps.ratio.low > 0.97"),
        ("tps > 3 ms", "`ms` is not a unit", "It has no unit."),
        ("p99_ms < 3 m", "`m` is not a unit", "us, ms, s"),
        ("tps > 3 and more", "`and more` is not a unit", "no unit"),
        ("p99 < 3", "The number has no unit.", "Units are us, ms, s"),
        ("errors < 1% today", "`% today` is not a unit", "%"),
        ("延迟 < 3", "`延迟` is not a metric.", "tps"),
    ];
    for (text, message, hint) in cases {
        let error = text.parse::<Gate>().expect_err(text);
        assert!(error.to_string().contains(message), "{text}: {error}");
        assert!(error.hint.contains(hint), "{text}: {}", error.hint);
    }
    let message = "`tps > fast` is not a gate: `fast` is not a number.";
    assert_eq!("tps > fast".parse::<Gate>().expect_err("no number").to_string(), message);
}

/// The ratio of pairs that lie `noise` above and below `center` in turns.
fn ratio(center: f64, noise: f64, count: usize) -> PairedRatio {
    let noises = [noise, -noise].into_iter().cycle().take(count);
    let pairs: Vec<(f64, f64)> =
        noises.map(|noise| (100.0, 100.0 * center * (1.0 + noise))).collect();
    PairedRatio::from_pairs(&pairs, Judging::FIXED).expect("pairs")
}

fn judge_ratio(text: &str, ratio: &PairedRatio) -> GateVerdict {
    parse_gate(text).judge(&[], Some(ratio)).verdict
}

fn judge_values(text: &str, trials: &[f64]) -> GateVerdict {
    parse_gate(text).judge(trials, None).verdict
}

#[test]
fn a_gate_on_a_ratio_is_proven_by_the_interval() {
    let low = "tps.ratio.low > 0.97";
    let unclear = GateVerdict::Inconclusive(GateReason::IntervalHoldsBound);
    assert_eq!(judge_ratio(low, &ratio(1.0, 0.01, 8)), GateVerdict::Pass);
    assert_eq!(judge_ratio(low, &ratio(0.90, 0.01, 8)), GateVerdict::Broken);
    assert_eq!(judge_ratio(low, &ratio(0.97, 0.01, 8)), unclear);
    // The same interval, and a gate that asks only that no loss is proven.
    assert_eq!(judge_ratio("tps.ratio.high > 0.97", &ratio(0.97, 0.01, 8)), GateVerdict::Pass);
    assert_eq!(judge_ratio("tps.ratio > 0.97", &ratio(0.97, 0.01, 8)), unclear);
    assert_eq!(judge_ratio("p99_ms.ratio < 1.05", &ratio(1.2, 0.01, 8)), GateVerdict::Broken);
}

#[test]
fn without_a_comparison_worth_the_name_a_gate_is_inconclusive() {
    let text = "tps.ratio > 0.5";
    let without = parse_gate(text).judge(&[], None).verdict;
    assert_eq!(without, GateVerdict::Inconclusive(GateReason::NoPair));
    assert_eq!(
        judge_ratio(text, &ratio(1.0, 0.01, 5)),
        GateVerdict::Inconclusive(GateReason::TooFewPairs)
    );
    // Trials that vary are not an excuse if the interval is clear.
    assert_eq!(judge_ratio(text, &ratio(1.0, 0.2, 8)), GateVerdict::Pass);
    assert_eq!(judge_ratio(text, &ratio(0.1, 0.2, 8)), GateVerdict::Broken);
}

#[test]
fn a_gate_on_values_needs_repeats() {
    assert_eq!(judge_values("p99_ms < 20", &[11.0, 11.5, 10.9]), GateVerdict::Pass);
    assert_eq!(judge_values("p99_ms < 20", &[31.0, 31.5, 30.9]), GateVerdict::Broken);
    let unclear = GateVerdict::Inconclusive(GateReason::IntervalHoldsBound);
    assert_eq!(judge_values("p99_ms < 20", &[19.0, 19.5, 20.9]), unclear);
    let too_few = GateVerdict::Inconclusive(GateReason::TooFewTrials);
    assert_eq!(judge_values("p99_ms < 20", &[11.0]), too_few);
    // Two trials alike decide, and two that differ have no interval worth showing.
    assert_eq!(judge_values("tpmc > 5000", &[10_000.0, 10_010.0]), GateVerdict::Pass);
    let result = parse_gate("tpmc > 9000").judge(&[9_000.0, 12_000.0], None);
    assert_eq!((result.verdict, result.interval), (too_few, None));
    assert!(result.needed.is_some_and(|trials| (3..20).contains(&trials)), "{result:?}");
    let result = parse_gate("p99_ms < 20").judge(&[19.0, 19.5, 20.9], None);
    assert!(result.needed.is_some_and(|trials| trials > 3), "{result:?}");
    assert_eq!(judge_values("p99_ms < 20", &[]), GateVerdict::Inconclusive(GateReason::NoValue));
}

#[test]
fn facts_need_one_trial() {
    let text = "errors < 0.1%";
    assert_eq!(judge_values(text, &[0.0]), GateVerdict::Pass);
    assert_eq!(judge_values(text, &[0.0, 0.002]), GateVerdict::Broken);
    assert_eq!(judge_values(text, &[]), GateVerdict::Inconclusive(GateReason::NoValue));
}

#[test]
fn units_are_understood() {
    for (text, bound) in [
        ("p99 < 20ms", 20.0),
        ("p95<=0.5 s", 500.0),
        (" p999_ms < 7", 7.0),
        ("max < 800us", 0.8),
        ("errors < 0.1%", 0.001),
    ] {
        assert_eq!(text.parse::<Objective>().expect(text).bound, bound);
    }
}

#[test]
fn mistakes_name_the_remedy() {
    let (text, hint) = objective_mistake("p98 < 20ms");
    assert_eq!(text, "`p98 < 20ms` is not an objective: `p98` is not a latency.");
    assert_eq!(hint, "Known are mean, p50, p95, p99, p999, max, errors.");
    assert!(objective_mistake("p99 > 20ms").1.contains("p99_ms < "));
    assert!(objective_mistake("p99.ratio < 2").0.contains("from above"));
    assert_eq!(objective_mistake("p99 < 20").1, "Units are us, ms, s, min, h.");
    for text in ["p99 < 20 parsecs", "p99 < fast", "p99 < 20ms, p95 < 3ms", ""] {
        assert!(!objective_mistake(text).1.is_empty(), "{text}");
    }
}

fn objective_mistake(text: &str) -> (String, String) {
    let mistake = text.parse::<Objective>().expect_err(text);
    (mistake.to_string(), mistake.hint)
}
