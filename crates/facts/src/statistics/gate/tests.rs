use super::*;
use crate::statistics::ratio::Judging;

fn gate(text: &str) -> Gate {
    text.parse().expect(text)
}

#[test]
fn gates_are_read() {
    let read = |text: &str| {
        let gate = gate(text);
        (gate.metric, gate.figure, gate.relation, gate.bound)
    };
    assert_eq!(
        read("tps.ratio.low > 0.97"),
        (Metric::Tps, GateFigure::RatioLow, Relation::Above, 0.97)
    );
    assert_eq!(read("p99_ms<20"), (Metric::P99Ms, GateFigure::Value, Relation::Below, 20.0));
    assert_eq!(
        read("errors <= 0.1%"),
        (Metric::Errors, GateFigure::Value, Relation::AtMost, 0.001)
    );
    assert_eq!(
        read("qphh.ratio >= 97%"),
        (Metric::Qphh, GateFigure::Ratio, Relation::AtLeast, 0.97)
    );
    assert_eq!(read("total_s < 2min"), (Metric::TotalS, GateFigure::Value, Relation::Below, 120.0));
    assert_eq!(read("p50_ms < 300us").3, 0.3);
    assert_eq!(read("p99 <= 3ms"), (Metric::P99Ms, GateFigure::Value, Relation::AtMost, 3.0));
    let near = |text: &str, wanted: f64| (read(text).3 / wanted - 1.0).abs() < 1e-12;
    assert!(near("server_cpu_us < 0.08 ms", 80.0) && near("server_cpu < 80us", 80.0));
    assert!(near("total < 2min", 120.0) && near("p99 < 0.02s", 20.0));
    assert_eq!(read("p99.ratio < 1.05").3, 1.05);
}

#[test]
fn mistakes_name_the_known_words() {
    let mistake = |text: &str| text.parse::<Gate>().expect_err(text);
    let cases = [
        ("speed > 3", "`speed` is no metric.", "tps, qps, tpmc"),
        ("", "`` is no metric.", "tps, qps"),
        ("tps.ration > 1", "`ration` is no figure", "`tps.ratio.low`"),
        ("tps.ratio.mid > 1", "`ratio.mid` is no figure", "`tps.ratio.high`"),
        ("tps = 3", "`tps = 3` is no metric.", "tps, qps"),
        ("tps", "A comparison was expected.", "<, <=, > and >="),
        ("tps >", "`` is no number.", "tps.ratio.low > 0.97"),
        ("tps > 3 ms", "`ms` is no unit", "It has no unit."),
        ("p99_ms < 3 m", "`m` is no unit", "us, ms, s"),
        ("tps > 3 and more", "`and more` is no unit", "no unit"),
        ("p99 < 3", "The number has no unit.", "Units are us, ms, s"),
        ("errors < 1% today", "`% today` is no unit", "%"),
        ("延迟 < 3", "`延迟` is no metric.", "tps"),
    ];
    for (text, message, hint) in cases {
        let error = mistake(text);
        assert!(error.to_string().contains(message), "{text}: {error}");
        assert!(error.hint.contains(hint), "{text}: {}", error.hint);
    }
    let message = "`tps > fast` is no gate: `fast` is no number.";
    assert_eq!(mistake("tps > fast").to_string(), message);
}

fn ratio(center: f64, noise: f64, count: usize) -> PairedRatio {
    let sign = |k: usize| if k.is_multiple_of(2) { noise } else { -noise };
    let pairs: Vec<(f64, f64)> =
        (0..count).map(|k| (100.0, 100.0 * center * (1.0 + sign(k)))).collect();
    PairedRatio::from_pairs(&pairs, Judging::FIXED).expect("pairs")
}

#[test]
fn a_gate_on_a_ratio_is_proven_by_the_interval() {
    let judge = |text: &str, ratio: &PairedRatio| gate(text).judge(&[], Some(ratio)).verdict;
    let low = "tps.ratio.low > 0.97";
    let unclear = GateVerdict::Inconclusive(GateReason::IntervalHoldsBound);
    assert_eq!(judge(low, &ratio(1.0, 0.01, 8)), GateVerdict::Pass);
    assert_eq!(judge(low, &ratio(0.90, 0.01, 8)), GateVerdict::Broken);
    assert_eq!(judge(low, &ratio(0.97, 0.01, 8)), unclear);
    // The same interval, and a gate that asks only that no loss is proven.
    assert_eq!(judge("tps.ratio.high > 0.97", &ratio(0.97, 0.01, 8)), GateVerdict::Pass);
    assert_eq!(judge("tps.ratio > 0.97", &ratio(0.97, 0.01, 8)), unclear);
    assert_eq!(judge("p99_ms.ratio < 1.05", &ratio(1.2, 0.01, 8)), GateVerdict::Broken);
}

#[test]
fn without_a_comparison_worth_the_name_a_gate_is_inconclusive() {
    let judge = |ratio: Option<&PairedRatio>| gate("tps.ratio > 0.5").judge(&[], ratio).verdict;
    assert_eq!(judge(None), GateVerdict::Inconclusive(GateReason::NoPair));
    assert_eq!(
        judge(Some(&ratio(1.0, 0.01, 5))),
        GateVerdict::Inconclusive(GateReason::TooFewPairs)
    );
    // Trials that vary are not excuse where the interval is clear.
    assert_eq!(judge(Some(&ratio(1.0, 0.2, 8))), GateVerdict::Pass);
    assert_eq!(judge(Some(&ratio(0.1, 0.2, 8))), GateVerdict::Broken);
}

#[test]
fn a_gate_on_values_needs_repeats() {
    let judge = |text: &str, trials: &[f64]| gate(text).judge(trials, None).verdict;
    assert_eq!(judge("p99_ms < 20", &[11.0, 11.5, 10.9]), GateVerdict::Pass);
    assert_eq!(judge("p99_ms < 20", &[31.0, 31.5, 30.9]), GateVerdict::Broken);
    let unclear = GateVerdict::Inconclusive(GateReason::IntervalHoldsBound);
    assert_eq!(judge("p99_ms < 20", &[19.0, 19.5, 20.9]), unclear);
    let too_few = GateVerdict::Inconclusive(GateReason::TooFewTrials);
    assert_eq!(judge("p99_ms < 20", &[11.0]), too_few);
    // Two trials alike decide, and two that differ have no interval worth showing.
    assert_eq!(judge("tpmc > 5000", &[10_000.0, 10_010.0]), GateVerdict::Pass);
    let result = gate("tpmc > 9000").judge(&[9_000.0, 12_000.0], None);
    assert_eq!((result.verdict, result.interval), (too_few, None));
    assert!(result.needed.is_some_and(|trials| (3..20).contains(&trials)), "{result:?}");
    let result = gate("p99_ms < 20").judge(&[19.0, 19.5, 20.9], None);
    assert!(result.needed.is_some_and(|trials| trials > 3), "{result:?}");
    assert_eq!(judge("p99_ms < 20", &[]), GateVerdict::Inconclusive(GateReason::NoValue));
}

#[test]
fn facts_need_one_trial() {
    let judge = |trials: &[f64]| gate("errors < 0.1%").judge(trials, None).verdict;
    assert_eq!(judge(&[0.0]), GateVerdict::Pass);
    assert_eq!(judge(&[0.0, 0.002]), GateVerdict::Broken);
    assert_eq!(judge(&[]), GateVerdict::Inconclusive(GateReason::NoValue));
}

#[test]
fn units_are_understood() {
    let bound = |text: &str| text.parse::<Objective>().expect(text).bound;
    assert_eq!(bound("p99 < 20ms"), 20.0);
    assert_eq!(bound("p95<=0.5 s"), 500.0);
    assert_eq!(bound(" p999_ms < 7"), 7.0);
    assert_eq!(bound("max < 800us"), 0.8);
    assert_eq!(bound("errors < 0.1%"), 0.001);
}

#[test]
fn mistakes_name_the_remedy() {
    let mistake = |text: &str| {
        let mistake = text.parse::<Objective>().expect_err(text);
        (mistake.to_string(), mistake.hint)
    };
    let (text, hint) = mistake("p98 < 20ms");
    assert_eq!(text, "`p98 < 20ms` is no objective: `p98` is no latency.");
    assert_eq!(hint, "Known are mean, p50, p95, p99, p999, max, errors.");
    assert!(mistake("p99 > 20ms").1.contains("p99_ms < "));
    assert!(mistake("p99.ratio < 2").0.contains("from above"));
    assert_eq!(mistake("p99 < 20").1, "Units are us, ms, s, min, h.");
    for text in ["p99 < 20 parsecs", "p99 < fast", "p99 < 20ms, p95 < 3ms", ""] {
        assert!(!mistake(text).1.is_empty(), "{text}");
    }
}
