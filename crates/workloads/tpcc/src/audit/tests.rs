use super::*;
use crate::profile::BMSQL_5_0;
use dyno_core::Rng;

const CONSTANTS: Constants = Constants { c_last: 77, c_id: 321, i_id: 5_000 };

fn expected(warehouses: u32) -> Expected {
    Expected::new(&BMSQL_5_0, warehouses, &CONSTANTS)
}

fn audit(expected: &Expected, found: &Counters) -> Audit {
    expected.audit(found, Some(10))
}

/// Titles of the figures that are wrong.
fn titles(audit: &Audit) -> Vec<String> {
    audit.with(CheckVerdict::Failed).map(|figure| figure.title.to_string()).collect()
}

/// As many New-Orders and Payments with what `draw` gives.
fn counters(expected: &Expected, draw: impl Fn(&mut Rng, u64, NuRand) -> u64) -> Counters {
    let mut rng = Rng::new(2, "audit", 0);
    let mut counters = Counters::default();
    for _ in 0..20_000 {
        let kind = rng.uniform(1, 100);
        if kind <= 45 {
            let customer = draw(&mut rng, 3_000, CONSTANTS.customer()) as i64;
            let is_rolled_back = rng.uniform(1, 100) == 1;
            counters.begin(TpccTransaction::NewOrder);
            counters.order(expected, customer, is_rolled_back);
            let lines = rng.uniform(5, 15) - u64::from(is_rolled_back);
            for _ in 0..lines {
                let item = draw(&mut rng, 100_000, CONSTANTS.item()) as i64;
                counters.line(expected, item, rng.uniform(1, 100) == 1);
            }
        } else if kind <= 88 {
            counters.begin(TpccTransaction::Payment);
            counters.payment(rng.uniform(1, 100) <= 15);
            let id = CustomerKey::Id(draw(&mut rng, 3_000, CONSTANTS.customer()) as i64);
            let name = CustomerKey::Name(CONSTANTS.last_name().draw(&mut rng), Default::default());
            let who = if rng.uniform(1, 100) <= 60 { name } else { id };
            counters.customer(expected, &who);
        } else if kind <= 92 {
            counters.begin(TpccTransaction::OrderStatus);
        } else if kind <= 96 {
            counters.begin(TpccTransaction::Delivery);
            counters.delivered(u32::from(kind == 96));
        } else {
            counters.begin(TpccTransaction::StockLevel);
        }
    }
    counters
}

#[test]
fn an_honest_run_passes() {
    let expected = expected(2);
    let audit =
        audit(&expected, &counters(&expected, |rng, _, distribution| distribution.draw(rng)));
    assert_eq!(audit.problems(), Vec::<Message>::new());
    assert_eq!(audit.figures.len(), 14);
    assert!(audit.deliveries_with_skips > 0);
}

#[test]
fn uniform_items_and_customers_are_found() {
    let expected = expected(2);
    let uniform = counters(&expected, |rng, high, _| rng.uniform(1, high));
    assert_eq!(titles(&audit(&expected, &uniform)), ["items", "customers"]);
}

#[test]
fn a_slightly_wrong_distribution_is_found() {
    // A tool that takes 8189 for 8191, and one with the constant of another field.
    let expected = expected(2);
    let wrong = counters(&expected, |rng, _, distribution| {
        NuRand { c: distribution.c / 2, ..distribution }.draw(rng)
    });
    let audit = audit(&expected, &wrong);
    assert_eq!(titles(&audit), ["items", "customers"]);
}

#[test]
fn nothing_remote_is_found_and_right_with_one_warehouse() {
    let two = expected(2);
    let mut local = counters(&two, |rng, _, distribution| distribution.draw(rng));
    (local.remote_lines, local.remote_payments) = (0, 0);
    assert_eq!(titles(&audit(&two, &local)), ["remote order lines", "remote payments"]);
    assert_eq!(audit(&expected(1), &local).problems(), Vec::<Message>::new());
    local.remote_lines = 1;
    assert_eq!(audit(&expected(1), &local).problems().len(), 1);
}

/// So many transactions of each kind.
fn mixed(begun: [u64; 5]) -> Counters {
    Counters { begun, ..Counters::default() }
}

#[test]
fn a_mix_that_chance_does_not_explain_is_found_as_a_whole_too() {
    let expected = expected(2);
    let right = audit(&expected, &mixed([4_500, 4_300, 410, 390, 400]));
    assert_eq!(right.problems(), Vec::<Message>::new());
    let mix = |audit: &Audit| audit.figures.last().expect("the mix as a whole").clone();
    assert_eq!(mix(&right).verdict, CheckVerdict::Passed);
    assert!(mix(&right).observed < 1.0);
    // Each share within its bound, but all of them far off.
    let wrong = audit(&expected, &mixed([4_280, 4_520, 495, 305, 400]));
    assert_eq!(titles(&wrong), ["mix as a whole"]);
    let few = audit(&expected, &mixed([20, 19, 2, 2, 5]));
    assert_eq!(mix(&few).verdict, CheckVerdict::NotMade);
}

#[test]
fn what_crosses_shards_is_judged_by_the_warehouses_of_each() {
    // Six warehouses on four shards: 4; 1 and 5; 2 and 6; 3.
    let expected = expected(6).on_shards(vec![1, 2, 3, 0, 1, 2]);
    assert_eq!((&expected.elsewhere[..], expected.shards()), (&[1.0, 0.8, 0.8, 1.0][..], Some(4)));
    let counted = |shards: &[CrossingCounts]| {
        let counters = Counters { shards: shards.to_vec(), ..Counters::default() };
        expected.crossings(&counters)
    };
    let counts = |payments: u64, crossing_payments: u64| CrossingCounts {
        payments: [payments, crossing_payments],
        orders: [10_000, 860],
        lines: [100_000, 900],
    };
    // 15 % of 10,000, of which all leave the first shard and 4 in 5 the second.
    let right = counted(&[counts(10_000, 1_500), counts(10_000, 1_200)]);
    assert!((right[2].expected - 0.135).abs() < 1e-9, "{right:?}");
    assert!(right[2].verdict == CheckVerdict::Passed && right[2].observed == 0.135, "{right:?}");
    // 1 % of lines, so 9.5 % of orders have one that is remote; 9 in 10 of these cross.
    assert!(
        (right[0].expected - 0.009).abs() < 1e-9 && (right[1].expected - 0.0862).abs() < 2e-4,
        "{right:?}"
    );
    // As if half of the remote payments stayed on their shard.
    assert_eq!(
        counted(&[counts(10_000, 750), counts(10_000, 600)])[2].verdict,
        CheckVerdict::Failed
    );
}

#[test]
fn what_crosses_shards_is_counted() {
    let expected = expected(4).on_shards(vec![0, 1, 0, 1]);
    let mut counters = expected.counters();
    counters.spread_order(&expected, 2, [2, 1, 4, 3].into_iter(), true);
    counters.spread_order(&expected, 2, [2, 4].into_iter(), true);
    counters.spread_payment(&expected, 2, 4);
    counters.spread_payment(&expected, 1, 2);
    let [first, second] = counters.shards[..] else { panic!("two shards") };
    assert_eq!(second, CrossingCounts { lines: [6, 2], orders: [2, 1], payments: [1, 0] });
    assert_eq!((first.payments, counters.crossing_share()), ([1, 1], Some(0.5)));
    assert_eq!(Counters::default().crossing_share(), None);
}

#[test]
fn decks_vary_less_than_dice() {
    let expected = Expected::new(&crate::profile::SPEC, 2, &CONSTANTS);
    // 20 terminals with 100 decks each, and some more cards.
    let dealt = mixed([20_010, 20_009, 2_001, 1_998, 2_002]);
    let right = expected.audit(&dealt, Some(20));
    assert_eq!(right.problems(), Vec::<Message>::new());
    let bound = right.figures[0].bound * 46_020.0;
    assert!((40.0..60.0).contains(&bound), "of 46,020: {bound}");
    // As good as any with dice.
    let dice = mixed([20_100, 19_910, 2_001, 1_998, 2_011]);
    assert_eq!(expected.audit(&dice, Some(20)).problems().len(), 2);
    assert_eq!(expected.audit(&dice, None).problems(), Vec::<Message>::new());
    // Many terminals that have hardly begun are not bound by their decks.
    let many = expected.audit(&dice, Some(100_000));
    assert_eq!(many.problems(), Vec::<Message>::new());
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
    let most = FALSE_ALARMS / (TRIALS * FIGURES);
    assert!((2.0 * (-level()).exp() / most - 1.0).abs() < 1e-9);
    for share in [0.01, 0.04, 0.095, 0.15, 0.43, 0.6] {
        for draws in [10, 100, 1_000, 10_000] {
            let probability = probability_of_leaving(share, draws);
            assert!(probability <= most, "{share} of {draws}: {probability}");
        }
    }
    // The values of tables that chi-square passes as rarely: 4 and 15 degrees of freedom.
    assert!(chi_square_limit(4.0) > 36.0 && chi_square_limit(15.0) > 59.0);
}

#[test]
fn honest_trials_of_a_long_run_have_no_false_alarm() {
    // Of short trials, whose rare events are most lopsided. Bounds of four standard deviations were left in 4 of 1,000.
    let expected = expected(2);
    let mut rng = Rng::new(3, "false alarms", 0);
    let mut far = 0;
    for trial in 0..10_000 {
        let mut found = Counters { orders: 40 + trial % 400, ..Counters::default() };
        for _ in 0..found.orders {
            let is_rolled_back = rng.uniform(1, 100) == 1;
            found.rolled_back += u64::from(is_rolled_back);
            found.lines += rng.uniform(5, 15) - u64::from(is_rolled_back);
            let kind = rng.uniform(1, 100);
            let kind = [45, 88, 92, 96, 100].iter().position(|last| kind <= *last).unwrap();
            found.begun[kind] += 1;
        }
        let shares = expected.audit(&found, None);
        far += usize::from(shares.figures[..9].iter().any(|share| {
            let variance = share.expected * (1.0 - share.expected) / share.of.max(1) as f64;
            share.of > 0 && (share.observed - share.expected).abs() > 4.0 * variance.sqrt()
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
        let least = least_mean_of_exponentials(draws);
        let pace = crate::profile::Pace { keying_s: 0.0, think_mean_s: 1.0 };
        for _ in 0..100_000 / draws {
            let mean = (0..draws).map(|_| pace.think_s(&mut rng)).sum::<f64>() / draws as f64;
            assert!(mean >= least, "{mean} of {draws}");
        }
    }
    assert!(least_mean_of_exponentials(100_000) > 0.98);
}
