use super::*;
use crate::profile::BMSQL_5_0;
use dyno_core::Rng;

const CONSTANTS: Constants = Constants { c_last: 77, c_id: 321, i_id: 5_000 };

fn new_expected(warehouses: u32) -> Expected {
    Expected::new(&BMSQL_5_0, warehouses, &CONSTANTS)
}

/// Titles of the figures that are wrong.
fn titles(audit: &Audit) -> Vec<String> {
    audit.lines_with(CheckVerdict::Failed).map(|line| line.name.to_string()).collect()
}

/// Equal numbers of New-Orders and Payments with what `draw` gives.
fn counters(expected: &Expected, draw: impl Fn(&mut Rng, u64, NuRand) -> u64) -> Counters {
    let mut rng = Rng::new(2, "audit", 0);
    let mut counters = Counters::default();
    for _ in 0..20_000 {
        let kind = rng.uniform(1, 100);
        if kind <= 45 {
            let customer = draw(&mut rng, 3_000, CONSTANTS.customer()) as i64;
            let is_rolled_back = rng.uniform(1, 100) == 1;
            counters.count_begin(TpccTransaction::NewOrder);
            counters.count_order(expected, customer, is_rolled_back);
            let lines = rng.uniform(5, 15) - u64::from(is_rolled_back);
            for _ in 0..lines {
                let item = draw(&mut rng, 100_000, CONSTANTS.item()) as i64;
                counters.count_line(expected, item, rng.uniform(1, 100) == 1);
            }
        } else if kind <= 88 {
            counters.count_begin(TpccTransaction::Payment);
            counters.count_payment(rng.uniform(1, 100) <= 15);
            let id = CustomerKey::Id(draw(&mut rng, 3_000, CONSTANTS.customer()) as i64);
            let name =
                CustomerKey::Name(CONSTANTS.last_name().sample(&mut rng), Default::default());
            let who = if rng.uniform(1, 100) <= 60 { name } else { id };
            counters.count_customer(expected, &who);
        } else if kind <= 92 {
            counters.count_begin(TpccTransaction::OrderStatus);
        } else if kind <= 96 {
            counters.count_begin(TpccTransaction::Delivery);
            counters.count_delivery(u32::from(kind == 96));
        } else {
            counters.count_begin(TpccTransaction::StockLevel);
        }
    }
    counters
}

#[test]
fn an_honest_run_passes() {
    let expected = new_expected(2);
    let audit =
        expected.audit(&counters(&expected, |rng, _, distribution| distribution.sample(rng)));
    assert_eq!(audit.problems(), Vec::<Message>::new());
    assert_eq!(audit.figures.len(), 14);
    assert!(audit.deliveries_with_skips > 0);
}

#[test]
fn uniform_items_and_customers_are_found() {
    let expected = new_expected(2);
    let uniform = counters(&expected, |rng, high, _| rng.uniform(1, high));
    assert_eq!(titles(&expected.audit(&uniform)), ["items", "customers"]);
}

#[test]
fn a_slightly_wrong_distribution_is_found() {
    // A tool that takes 8189 for 8191, and one with the constant of another field.
    let expected = new_expected(2);
    let wrong = counters(&expected, |rng, _, distribution| {
        NuRand { c: distribution.c / 2, ..distribution }.sample(rng)
    });
    let audit = expected.audit(&wrong);
    assert_eq!(titles(&audit), ["items", "customers"]);
}

#[test]
fn nothing_remote_is_found_and_right_with_one_warehouse() {
    let two = new_expected(2);
    let mut local = counters(&two, |rng, _, distribution| distribution.sample(rng));
    (local.lines[1], local.payments[1]) = (0, 0);
    assert_eq!(titles(&two.audit(&local)), ["remote order lines", "remote payments"]);
    assert_eq!(new_expected(1).audit(&local).problems(), Vec::<Message>::new());
    local.lines[1] = 1;
    assert_eq!(new_expected(1).audit(&local).problems().len(), 1);
}

/// Counters of `begun` transactions of each kind.
fn mixed(begun: [u64; 5]) -> Counters {
    Counters { begun, ..Counters::default() }
}

#[test]
fn a_mix_that_chance_does_not_explain_is_found_as_a_whole_too() {
    let expected = new_expected(2);
    let right = expected.audit(&mixed([4_500, 4_300, 410, 390, 400]));
    assert_eq!(right.problems(), Vec::<Message>::new());
    let mix = right.figures.last().expect("the mix as a whole");
    assert_eq!(mix.line.verdict, CheckVerdict::Passed);
    assert!(mix.observed < 1.0);
    // Each share within its bound, but all of them far off.
    let wrong = expected.audit(&mixed([4_280, 4_520, 495, 305, 400]));
    assert_eq!(titles(&wrong), ["mix as a whole"]);
    let small = expected.audit(&mixed([20, 19, 2, 2, 5]));
    assert_eq!(small.figures.last().unwrap().line.verdict, CheckVerdict::NotMade);
}

#[test]
fn what_crosses_shards_is_counted() {
    let mut counters = Counters::default();
    assert_eq!(counters.crossing_share(), None);
    [true, false, true, false].into_iter().for_each(|is_crossing| counters.spread(is_crossing));
    assert_eq!(counters.crossing_share(), Some(0.5));
}

#[test]
fn decks_are_within_the_bounds_of_dice() {
    let expected = Expected::new(&crate::profile::SPEC, 2, &CONSTANTS);
    let dealt = mixed([20_010, 20_009, 2_001, 1_998, 2_002]);
    assert_eq!(expected.audit(&dealt).problems(), Vec::<Message>::new());
}

/// The probability that `draws` draws leave the bound of a share, exactly.
fn probability_of_leaving(share: f64, draws: u64) -> f64 {
    let bound = chance_of_share(share, draws) * draws as f64;
    let mean = share * draws as f64;
    let (mut log, mut sum) = (draws as f64 * (1.0 - share).ln(), 0.0);
    for count in 0..=draws {
        if (count as f64 - mean).abs() > bound {
            sum += log.exp();
        }
        log += ((draws - count) as f64 / (count + 1) as f64 * share / (1.0 - share)).ln();
    }
    sum
}

#[test]
fn a_run_of_a_thousand_trials_has_a_false_alarm_in_less_than_one_percent() {
    let allowed = FALSE_ALARMS / (TRIALS * FIGURES);
    assert!((2.0 * (-level()).exp() / allowed - 1.0).abs() < 1e-9);
    for share in [0.01, 0.04, 0.095, 0.15, 0.43, 0.6] {
        for draws in [10, 100, 1_000, 10_000] {
            let probability = probability_of_leaving(share, draws);
            assert!(probability <= allowed, "{share} of {draws}: {probability}");
        }
    }
    // The values of tables that chi-square passes as rarely: 4 and 15 degrees of freedom.
    assert!(chi_square_limit(4.0) > 36.0 && chi_square_limit(15.0) > 59.0);
}

#[test]
fn honest_trials_of_a_long_run_have_no_false_alarm() {
    // For short trials, with their lopsided rare events. Bounds of four standard deviations were left in 4 of 1,000.
    let expected = new_expected(2);
    let mut rng = Rng::new(3, "false alarms", 0);
    let mut far = 0;
    for trial in 0..10_000 {
        let mut counters = Counters { orders: [40 + trial % 400, 0], ..Counters::default() };
        for _ in 0..counters.orders[0] {
            let is_rolled_back = rng.uniform(1, 100) == 1;
            counters.orders[1] += u64::from(is_rolled_back);
            counters.lines[0] += rng.uniform(5, 15) - u64::from(is_rolled_back);
            let kind = rng.uniform(1, 100);
            let kind = [45, 88, 92, 96, 100].iter().position(|last| kind <= *last).unwrap();
            counters.begun[kind] += 1;
        }
        let shares = expected.audit(&counters);
        far += usize::from(shares.figures[..9].iter().any(|share| {
            let cases = share.line.of;
            let variance = share.expected * (1.0 - share.expected) / cases.max(1) as f64;
            cases > 0 && (share.observed - share.expected).abs() > 4.0 * variance.sqrt()
        }));
        // Remote lines and payments are not drawn here.
        let mut wrong_titles = titles(&shares);
        wrong_titles.retain(|title| !title.contains("remote"));
        assert!(wrong_titles.is_empty(), "{wrong_titles:?}");
    }
    assert!(far > 10, "{far} trials were far off: the simulation reaches the tails");
}

#[test]
fn means_of_think_times_have_a_least() {
    let mut rng = Rng::new(4, "think", 0);
    for draws in [1, 10, 40, 1_000] {
        let minimum = least_mean_of_exponentials(draws);
        let pace = crate::profile::Pace { keying_s: 0.0, think_mean_s: 1.0 };
        for _ in 0..100_000 / draws {
            let mean = (0..draws).map(|_| pace.think_s(&mut rng)).sum::<f64>() / draws as f64;
            assert!(mean >= minimum, "{mean} of {draws}");
        }
    }
    assert!(least_mean_of_exponentials(100_000) > 0.98);
}
