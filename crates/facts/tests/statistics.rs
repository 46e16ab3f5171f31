//! Statistics of fixed figures, to nine digits: a changed sign, bound or constant changes one of them.

use dyno_facts::statistics::gate::{Gate, GateReason, GateVerdict};
use dyno_facts::statistics::history::{PlacedFigure, drift, lag1, second_of_pair};
use dyno_facts::statistics::knee::{self, KneeOutcome, KneeStep, Search, TestedRate};
use dyno_facts::statistics::levels::{cheapest, components, needed};
use dyno_facts::statistics::ratio::{Judging, PairedRatio, pairs_to_prove};
use dyno_facts::statistics::sequential::{CandidatePairs, NextPair, Stop, StoppingPlan, decide};
use dyno_facts::statistics::steady::{Second, steady};
use dyno_facts::statistics::{
    ConfidenceInterval, MOST_TREND_POINTS, anytime, mean_interval, order, rank, scaling_peak,
    trend_line,
};

/// Noise that is the same everywhere, between -1 and 1.
fn noise(at: usize) -> f64 {
    (at as f64 * 2.399).sin()
}

/// Values around `center`, at most `size` away.
fn values(count: usize, center: f64, size: f64) -> Vec<f64> {
    (0..count).map(|at| center + size * noise(at)).collect()
}

#[track_caller]
fn assert_near(result: &[f64], expected: &[f64]) {
    let are_near = result
        .iter()
        .zip(expected)
        .all(|(a, b)| a == b || (a - b).abs() <= 1e-9 * b.abs().max(1e-3));
    assert!(result.len() == expected.len() && are_near, "{result:?}");
}

/// The ends of an interval; NaN without one.
fn ends(interval: Option<ConfidenceInterval>) -> [f64; 2] {
    interval.map_or([f64::NAN; 2], |both| [both.low, both.high])
}

/// Pairs with this ratio, whose sides vary by `size`.
fn pairs(count: usize, ratio: f64, size: f64) -> Vec<(f64, f64)> {
    let pairs = (0..count).map(|at| {
        let [baseline, candidate] = [2 * at, 2 * at + 1].map(|at| 100.0 * (1.0 + size * noise(at)));
        (baseline, ratio * candidate)
    });
    pairs.collect()
}

fn estimate_ratio(count: usize, ratio: f64, judging: Judging) -> PairedRatio {
    PairedRatio::from_pairs(&pairs(count, ratio, 0.03), judging).expect("pairs")
}

/// The ratio, p values, the deviation, and the ends of all intervals.
fn numbers(ratio: &PairedRatio) -> Vec<f64> {
    let student = ratio.t.expect("two pairs");
    let mut figures = vec![ratio.ratio, ratio.p, student.p, ratio.deviation.expect("two pairs")];
    figures.extend(ends(ratio.interval));
    figures.extend(ends(ratio.one_sided));
    figures.extend(ends(Some(student.interval)));
    figures
}

#[test]
fn ratios_of_pairs() {
    assert_near(
        &numbers(&estimate_ratio(9, 1.02, Judging::FIXED)),
        &[
            1.0201584162,
            0.203125,
            0.17621167564,
            0.040249539964,
            0.98653275245,
            1.0530736804,
            0.99331654025,
            1.0486588898,
            0.98902658927,
            1.0521576996,
        ],
    );
    assert_near(
        &numbers(&estimate_ratio(14, 1.02, Judging::Level(0.03))),
        &[
            1.022023271,
            0.11271158854,
            0.05721540064,
            0.040421878981,
            0.99437472812,
            1.0520326521,
            0.99728213968,
            1.0486588898,
            0.99623103509,
            1.0500667865,
        ],
    );
    assert_near(
        &numbers(&estimate_ratio(9, 1.02, Judging::Anytime)),
        &[
            1.0201038874,
            1.0,
            0.17621167564,
            0.040249539964,
            0.96652808898,
            1.0766494558,
            0.96652808898,
            1.0766494558,
            0.98902658927,
            1.0521576996,
        ],
    );
    assert_near(
        &numbers(&estimate_ratio(205, 1.02, Judging::FIXED)),
        &[
            1.02036511,
            5.3991118594e-10,
            7.261323447e-12,
            0.039654349305,
            1.0156843987,
            1.0247430819,
            1.0165293637,
            1.0241845411,
            1.0147994875,
            1.025943204,
        ],
    );
}

#[test]
fn ratios_of_sessions_together() {
    let earlier = [pairs(7, 1.04, 0.02), pairs(1, 9.0, 0.0), pairs(8, 1.01, 0.01)];
    let session = pairs(9, 1.02, 0.03);
    let ratio = PairedRatio::from_pairs(&session, Judging::Anytime).expect("pairs");
    assert_near(
        &numbers(&ratio.continued(&earlier, &session)),
        &[
            1.0142658986,
            0.029464608024,
            0.21330281062,
            0.43566371094,
            1.0013246486,
            1.0390231066,
            1.0013246486,
            1.0390231066,
            0.93385429237,
            1.3380742129,
        ],
    );
}

#[test]
fn numbers_of_pairs_that_would_decide() {
    for (count, ratio, judging, expected) in [
        (6, 1.02, Judging::FIXED, [6.0, 19.0, 7.0, 151.0, 41.0, 10.0]),
        (9, 1.02, Judging::FIXED, [6.0, 37.0, 6.0, 138.0, 37.0, 9.0]),
        (24, 1.005, Judging::FIXED, [6.0, -1.0, 6.0, 133.0, 36.0, 9.0]),
        (9, 1.02, Judging::Anytime, [7.0, 94.0, 10.0, 407.0, 95.0, 17.0]),
    ] {
        assert_near(&decisive_counts(&estimate_ratio(count, ratio, judging)), &expected);
    }
    // One wild pair moves the interval less than the deviation.
    let mut wild = pairs(12, 1.02, 0.03);
    wild[4].1 *= 3.0;
    let wild = PairedRatio::from_pairs(&wild, Judging::FIXED).expect("pairs");
    assert_near(&decisive_counts(&wild), &[6.0, 42.0, 10.0, 303.0, 79.0, 16.0]);
    for (pairs, p, adjusted, expected) in [
        (9, 0.02, 0.1, [20, 11]),
        (10, 0.2, 0.2, [48, 19]),
        (40, 0.001, 0.02, [56, 40]),
        (8, rank::least_p(8), 0.5, [12, 12]),
    ] {
        let counts = [false, true].map(|is_anytime| pairs_to_prove(pairs, p, adjusted, is_anytime));
        assert_eq!(counts, expected);
    }
}

/// Pairs that would tell the ratio from others, then pairs that would decide with some margins; -1 if there are none.
fn decisive_counts(ratio: &PairedRatio) -> Vec<f64> {
    let pair_counts = [0.9, 1.0, 1.1].map(|other| ratio.pairs_to_tell_from(other));
    let margins = [0.01, 0.02, 0.05].map(|margin| ratio.pairs_to_decide(margin));
    let counts = pair_counts.into_iter().chain(margins);
    counts.map(|count| count.map_or(-1.0, |count| count as f64)).collect()
}

#[test]
fn ranks_of_many_and_of_few() {
    for (count, alpha, expected) in [
        (13, 0.05, [16.0, 80.0]),
        (200, 0.05, [10594.0, 14652.5]),
        (201, 0.05, [10705.0, 14796.5]),
        (260, 0.01, [17417.0, 25330.5]),
        // The level is reached exactly: 2 / 2^6.
        (6, 0.03125, [0.0, 25.0]),
    ] {
        let squares: Vec<f64> = (0..count).map(|at| f64::from(at * at)).collect();
        assert_near(&ends(rank::pseudo_median_interval(&squares, alpha)), &expected);
    }
    assert_near(
        &[20, 200, 201, 300].map(|count| rank::signed_rank_p(&values(count, 0.1, 1.0))),
        &[0.36827659607, 0.021256011539, 0.01717985304, 0.0040511784704],
    );
}

#[test]
fn sessions_that_are_judged_at_any_time() {
    let [a, b] = [values(9, 0.02, 0.01), values(12, 0.03, 0.02)];
    for (sessions, alpha, expected) in [
        (
            vec![a.clone(), b.clone()],
            0.05,
            [0.022354142882, 1.2459216773e-06, 0.015808851314, 0.032811429286],
        ),
        (
            vec![b, a.clone(), values(5, -0.2, 0.01)],
            0.01,
            [0.022015988124, 3.5064587147e-08, 0.018291078765, 0.028083872506],
        ),
    ] {
        let result = anytime::joint_estimate(&sessions, alpha).expect("differences");
        let [low, high] = ends(result.interval);
        assert_near(&[result.center, result.p, low, high], &expected);
    }
    let e_values = [-0.01, 0.0, 0.018, 0.03].map(|center| anytime::log_e_value(&a, center));
    assert_near(&e_values, &[7.5675535731, 6.2545366308, -0.75620098264, 3.023430784]);
    assert_near(&ends(anytime::interval(&a, 0.01)), &[0.0064121868954, 0.033986032526]);
}

#[test]
fn rows_of_a_square_are_permutations() {
    for items in 1..=9 {
        for row in order::williams(items) {
            let mut sorted = row.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, (0..items).collect::<Vec<usize>>(), "{row:?}");
        }
    }
    for (items, planned, expected) in [
        (2, 5, [1, 0, 0, 1, 0, 1, 0, 1, 1, 0, 1, 0, 1, 0]),
        (3, 6, [0, 1, 2, 1, 0, 2, 1, 1, 0, 2, 2, 0, 1, 2]),
        (4, 0, [3, 1, 0, 2, 0, 1, 2, 3, 2, 0, 3, 1, 0, 3]),
    ] {
        let firsts = (0..14).map(|repeat| order::balanced(items, planned, repeat, 7)[0]);
        assert_eq!(firsts.collect::<Vec<usize>>(), expected);
    }
}

#[test]
fn lines_through_few_and_many_points() {
    for (count, slope, expected) in [
        (4, 0.5, Some([1.3217659161, 0.30817954749])),
        (17, -0.05, Some([-0.10240068815, 0.26605176014])),
        (MOST_TREND_POINTS, 0.001, Some([0.00201696759, 0.00011226940079])),
        (MOST_TREND_POINTS + 1, 0.001, None),
    ] {
        let points: Vec<(f64, f64)> =
            (0..count).map(|at| (at as f64 / 2.0, slope * at as f64 + noise(at))).collect();
        let line = trend_line(&points);
        assert_eq!(line.is_some(), expected.is_some(), "{count} points");
        for (line, expected) in line.iter().zip(expected) {
            assert_near(&[line.slope, line.p], &expected);
        }
    }
    let flat: Vec<(f64, f64)> = (0..8).map(|at| (f64::from(at), 1.0)).collect();
    assert_eq!(trend_line(&flat).map(|line| (line.slope, line.p)), Some((0.0, 1.0)));
    assert_near(&ends(mean_interval(&values(7, 5.0, 0.5))), &[4.7112152443, 5.3927460477]);
    let mut trials = vec![(0.5, 1e9), (8.0, 0.0), (8.0, f64::INFINITY)];
    for (level, throughput) in [(1.0, 100.0), (2.0, 190.0), (4.0, 240.0), (8.0, 225.0)] {
        trials.extend((0..4).map(|at| (level, throughput * (1.0 + 0.01 * noise(at + 3)))));
    }
    let peak = scaling_peak(&trials).expect("a peak");
    assert_near(&[peak.workers, peak.left, peak.p], &[4.0, 0.9375, 2.4156940944e-05]);
}

fn placed_figures(count: usize, log: fn(usize) -> f64) -> Vec<PlacedFigure> {
    (0..count).map(|at| PlacedFigure { group: at * at % 3, log: log(at) }).collect()
}

#[test]
fn marks_of_the_order() {
    let grown = placed_figures(17, |at| 0.02 * noise(at) + 0.003 * at as f64);
    let result = drift(&grown, 3).expect("figures");
    assert_near(&[result.size, result.p], &[0.048269842603, 0.003]);
    let result = lag1(&grown, 3).expect("figures");
    assert_near(&[result.size, result.p], &[-0.73412267069, 0.0024]);
    let waves = placed_figures(30, |at| (at as f64 / 3.0).sin());
    let result = lag1(&waves, 5).expect("figures");
    assert_near(&[result.size, result.p], &[0.89691392276, 0.0001]);
    let pairs: Vec<(PlacedFigure, bool)> = placed_figures(15, |at| 0.02 * noise(at))
        .into_iter()
        .enumerate()
        .map(|(at, figure)| (figure, at % 4 < 2))
        .collect();
    let result = second_of_pair(&pairs, 5).expect("pairs");
    assert_near(&[result.size, result.p], &[-0.0018237396154, 0.92165898618]);
    // Many figures: the line goes through some of them.
    let result =
        drift(&placed_figures(900, |at| 0.02 * noise(at) + 1e-5 * at as f64), 3).expect("figures");
    assert_near(&[result.size, result.p], &[0.009038501605, 0.0001]);
}

/// The rates of a search in their order, and its end.
fn searched(search: &Search, is_held: impl Fn(f64, usize) -> bool) -> (Vec<f64>, KneeOutcome) {
    let mut tested_rates = Vec::new();
    loop {
        let (rate_per_s, is_confirmation) = match knee::next(search, &tested_rates) {
            KneeStep::Search { rate_per_s } => (rate_per_s, false),
            KneeStep::Confirm { rate_per_s, .. } => (rate_per_s, true),
            KneeStep::Done(outcome) => {
                return (
                    tested_rates.iter().map(|trial: &TestedRate| trial.rate_per_s).collect(),
                    outcome,
                );
            }
        };
        let is_held = is_held(rate_per_s, tested_rates.len());
        tested_rates.push(TestedRate { rate_per_s, is_confirmation, is_held });
    }
}

#[test]
fn rates_of_a_search() {
    let (rates, outcome) = searched(&Search::from(1_234.0), |rate, _| rate <= 3_000.0);
    assert_near(
        &rates,
        &[
            1230.0, 2460.0, 4920.0, 4920.0, 3480.0, 3480.0, 2930.0, 3190.0, 3190.0, 3060.0, 3060.0,
            2930.0, 2930.0, 2930.0,
        ],
    );
    assert_eq!(outcome, KneeOutcome::Held { rate_per_s: 2930.0, failed_per_s: Some(3060.0) });
    let fine = Search { precision: 0.001, confirmations: 1, ..Search::from(7.0) };
    let (rates, outcome) = searched(&fine, |rate, at| rate <= 5.5 && at != 3);
    assert_near(
        &rates,
        &[
            7.0, 7.0, 3.5, 4.95, 4.95, 4.95, 5.89, 5.89, 5.4, 5.64, 5.64, 5.52, 5.52, 5.46, 5.49,
            5.5, 5.51, 5.51, 5.5,
        ],
    );
    assert_eq!(outcome, KneeOutcome::Held { rate_per_s: 5.5, failed_per_s: Some(5.51) });
    let (rates, outcome) = searched(&Search::from(512.0), |_, _| false);
    assert_near(
        &rates,
        &[
            512.0, 512.0, 256.0, 256.0, 128.0, 128.0, 64.0, 64.0, 32.0, 32.0, 16.0, 16.0, 8.0, 8.0,
            4.0, 4.0, 2.0, 2.0, 1.0, 1.0, 0.5, 0.5,
        ],
    );
    assert_eq!(outcome, KneeOutcome::NoneHeld { lowest_per_s: 0.5 });
    let (rates, outcome) = searched(&Search::from(50.0), |_, at| at % 3 == 0);
    assert_near(
        &rates,
        &[
            50.0, 100.0, 100.0, 70.7, 84.1, 84.1, 77.1, 80.5, 80.5, 77.1, 77.1, 77.1, 73.8, 73.8,
            73.8, 70.7, 70.7, 70.7, 59.5, 64.9, 64.9, 62.1, 62.1, 62.1, 59.5, 59.5, 59.5, 54.5,
            56.9, 56.9, 54.5, 54.5, 54.5, 52.2, 52.2, 52.2, 50.0, 50.0, 50.0, 25.0, 35.4, 35.4,
            29.7, 32.4, 32.4, 31.0, 31.0, 31.0, 29.7, 29.7, 29.7, 27.2, 28.4, 28.4, 27.2, 27.2,
            27.2, 26.1, 26.1, 26.1,
        ],
    );
    assert_eq!(outcome, KneeOutcome::Unsteady);
    let search = Search::from(100.0);
    let below =
        |is_confirmation, is_held| TestedRate { rate_per_s: 100.0, is_confirmation, is_held };
    let above = TestedRate { rate_per_s: 104.0, is_confirmation: false, is_held: false };
    let tested_rates = [below(false, true), above, above, below(true, false), below(true, true)];
    let repeats = [3, 4, 5].map(|count| match knee::next(&search, &tested_rates[..count]) {
        KneeStep::Confirm { repeat, .. } => repeat,
        _ => 0,
    });
    assert_eq!(repeats, [1, 2, 3]);
}

#[test]
fn what_levels_add_and_cost() {
    let logs: Vec<f64> =
        (0..26).map(|at| noise(at) + noise(at / 2 + 9) + 2.0 * noise(at / 6)).collect();
    assert_near(
        &components(&logs, &[2, 3]).expect("units"),
        &[0.92523605635, 0.61079025872, 1.5907240937],
    );
    assert_near(
        &components(&logs, &[2, 1, 3]).expect("units"),
        &[0.92523605635, 0.0, 0.61079025872, 1.5907240937],
    );
    assert_near(&components(&logs, &[]).expect("units"), &[1.721949102]);
    assert_eq!([components(&logs, &[0]), components(&logs[..7], &[4])], [None, None]);
    let result =
        needed(&[0.02, 0.01, 0.005], &[10.0, 30.0, 600.0], &[4, 2], 0.005).expect("numbers");
    assert_near(&[result.units as f64, result.total_s], &[24.0, 17760.0]);
    let result = cheapest(&[0.02, 0.01, 0.005], &[10.0, 30.0, 600.0], 0.005).expect("numbers");
    assert_eq!(result.within, [3, 8]);
    assert_near(&[result.units as f64, result.total_s], &[12.0, 12960.0]);
}

fn parse_gate(text: &str) -> Gate {
    text.parse().expect(text)
}

#[test]
fn trials_that_a_gate_needs() {
    let result = parse_gate("p99_ms < 20").judge(&[19.0, 19.5, 20.9, 19.2], None);
    let [low, high] = ends(result.interval);
    assert_near(
        &[result.value.expect("trials"), low, high],
        &[19.63626714, 18.339739321, 21.024452988],
    );
    assert_eq!(result.needed, Some(24));
    let open = GateVerdict::Inconclusive(GateReason::IntervalHoldsBound);
    let ratio = PairedRatio::from_pairs(&pairs(9, 1.02, 0.03), Judging::FIXED).expect("pairs");
    let result = parse_gate("tps.ratio > 0.99").judge(&[], Some(&ratio));
    assert_eq!((result.verdict, result.needed), (open, Some(18)));
    let short_ratio =
        PairedRatio::from_pairs(&pairs(5, 1.02, 0.03), Judging::FIXED).expect("pairs");
    assert_eq!(parse_gate("tps.ratio > 0.99").judge(&[], Some(&short_ratio)).needed, Some(6));
    for (relation, below, same, above) in [
        ("<", GateVerdict::Pass, GateVerdict::Broken, GateVerdict::Broken),
        ("<=", GateVerdict::Pass, GateVerdict::Pass, GateVerdict::Broken),
        (">", GateVerdict::Broken, GateVerdict::Broken, GateVerdict::Pass),
        (">=", GateVerdict::Broken, GateVerdict::Pass, GateVerdict::Pass),
    ] {
        let gate = parse_gate(&format!("max_ms {relation} 8"));
        let verdicts = [7.0, 8.0, 9.0].map(|value| gate.judge(&[value; 3], None).verdict);
        assert_eq!(verdicts, [below, same, above]);
    }
    assert_eq!(parse_gate("p99 < 3min").bound, 180_000.0);
    assert_eq!(parse_gate("errors < 5%").bound, 0.05);
    assert_eq!(parse_gate("tps.ratio > 97%").bound, 0.97);
    for text in ["tps > 5%", "tps > 5ms", "p99 < 3", "p99.ratio < 3ms", "tps.ratio > 1s"] {
        assert!(text.parse::<Gate>().is_err(), "{text}");
    }
}

#[test]
fn plans_end_at_their_bounds() {
    let plan = StoppingPlan {
        pairs_least: 6,
        pairs_most: 9,
        half_width: Some(0.02),
        is_until_decided: false,
        comparisons: 1,
        margin: 0.03,
        budget_s: None,
    };
    let [eight, nine] = [8, 9].map(|count| {
        [CandidatePairs { pairs: pairs(count, 1.0, 0.05), ..CandidatePairs::default() }]
    });
    let decision = decide(&plan, &eight, 1e9, 1e9);
    assert_eq!(decision.next, NextPair::Continue);
    assert_eq!(decide(&plan, &nine, 1e9, 1e9).next, NextPair::Stop(Stop::MostPairs));
    assert_near(&[decision.half_width.expect("eight pairs")], &[0.090475690701]);
    assert_eq!(decide(&plan, &[], 0.0, 1.0).pairs, 0);
    let exact = StoppingPlan { half_width: decision.half_width, ..plan };
    let ended = decide(&exact, &eight, 0.0, 1.0).next;
    assert_eq!(ended, NextPair::Stop(Stop::HalfWidthReached));
    for (least, most, level) in [(10, 17, 0.032), (10, 18, 0.025), (10, 10, 0.05), (0, 1, 0.05)] {
        let plan = StoppingPlan { pairs_least: least, pairs_most: most, ..plan };
        assert_eq!(plan.judging(), Judging::Level(level));
    }
}

/// Intervals of half a second with a noise of 2%.
fn seconds(count: usize, level: impl Fn(usize) -> f64) -> Vec<Second> {
    let seconds = (0..count).map(|at| Second {
        begins_s: at as f64 / 2.0,
        length_s: 0.5,
        count: 0.5 * level(at) * (1.0 + 0.02 * noise(at)),
    });
    seconds.collect()
}

fn warm_up_numbers(seconds: &[Second]) -> [f64; 5] {
    let result = steady(seconds);
    let warm_up = result.warm_up.expect("a window long enough");
    let is_over = f64::from(u8::from(warm_up.is_over));
    [result.median_per_s, warm_up.drift, warm_up.slope, warm_up.p, is_over]
}

/// Time, level before and level after of each shift.
fn shift_numbers(seconds: &[Second]) -> Vec<f64> {
    let shifts = steady(seconds).changes;
    let numbers =
        shifts.iter().flat_map(|shift| [shift.at_s, shift.before_per_s, shift.after_per_s]);
    numbers.collect()
}

#[test]
fn steadiness_of_windows() {
    assert_near(
        &warm_up_numbers(&seconds(12, |at| 900.0 + 3.0 * at as f64)),
        &[914.14518247, 0.027112852981, 0.040741081181, 0.06410357671, 1.0],
    );
    assert_near(
        &warm_up_numbers(&seconds(150, |at| 900.0 + at as f64)),
        &[973.15366966, 0.10862631269, 0.15047854346, 1.3316845932e-24, 0.0],
    );
    assert_near(
        &warm_up_numbers(&seconds(20, |_| 500.0)),
        &[500.28836239, 0.0086211444557, 0.0024956797055, 0.77028772647, 1.0],
    );
    let steps = seconds(150, |at| match at {
        0..50 => 1000.0,
        50..90 => 800.0,
        _ => 1200.0,
    });
    assert_near(
        &shift_numbers(&steps),
        &[25.5, 996.15391439, 799.85333398, 45.0, 799.85333398, 1199.9133182],
    );
    assert_near(
        &shift_numbers(&seconds(10, |at| if at < 5 { 1000.0 } else { 700.0 })),
        &[2.5, 1001.2052609, 700.74882838],
    );
    assert_near(&shift_numbers(&seconds(9, |at| if at < 5 { 1000.0 } else { 700.0 })), &[]);
    let ten_percent = seconds(16, |at| if at < 8 { 1000.0 } else { 1096.0 });
    assert_near(&shift_numbers(&ten_percent), &[4.0, 999.6085212, 1095.6827083]);
    // Halves that differ by 15% but vary by 30% do not count as a level shift.
    let noisy = seconds(10, |at| {
        [700.0, 1300.0, 700.0, 1300.0, 1000.0][at % 5] * if at < 5 { 1.0 } else { 1.15 }
    });
    assert_near(&shift_numbers(&noisy), &[]);
    // Twenty commits in an interval are too few for stalls, forty are enough.
    for (level, is_stalled) in [(79.0, false), (82.0, true), (200.0, true)] {
        let result = steady(&seconds(31, |at| if at == 7 || at == 9 { 0.0 } else { level }));
        assert_eq!(!result.stalls.is_empty(), is_stalled, "{level}");
        if is_stalled {
            let spans: Vec<(f64, f64)> =
                result.stalls.iter().map(|stall| (stall.from_s, stall.to_s)).collect();
            assert_eq!(spans, [(3.5, 4.0), (4.5, 5.0)]);
        }
    }
}
