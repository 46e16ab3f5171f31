//! The promises of comparisons, kept in simulations with fixed seeds: how often equal systems are
//! called different, and how often a difference is found.

use dyno_core::Rng;
use dyno_statistics::ratio::{PairedRatio, RatioVerdict};
use dyno_statistics::sequential::{NextPair, StoppingPlan, decide};
use dyno_statistics::{Better, holm};

/// The baseline's throughput.
const LEVEL: f64 = 10_000.0;

/// A session of trials: every trial differs by noise, and the machine drifts while it lasts.
struct Session {
    rng: Rng,
    noise: f64,
    drift: f64,
    effect: f64,
    pairs: usize,
}

impl Session {
    fn normal(&mut self) -> f64 {
        // Twelve uniform numbers are normal enough: their sum has the variance 1.
        (0..12).map(|_| self.rng.unit()).sum::<f64>() - 6.0
    }

    fn trial(&mut self, place: usize, level: f64) -> f64 {
        let time = place as f64 / (2 * self.pairs - 1).max(1) as f64;
        level * (1.0 + self.drift * (time - 0.5)) * (1.0 + self.noise * self.normal())
    }

    /// A pair in drawn order.
    fn pair(&mut self, number: usize) -> (f64, f64) {
        let (first, second) = (2 * number, 2 * number + 1);
        let (a, b) = if self.rng.unit() < 0.5 { (first, second) } else { (second, first) };
        (self.trial(a, LEVEL), self.trial(b, LEVEL * (1.0 + self.effect)))
    }

    fn all(mut self) -> Vec<(f64, f64)> {
        (0..self.pairs).map(|number| self.pair(number)).collect()
    }
}

fn session(seed: u64, noise: f64, drift: f64, effect: f64, pairs: usize) -> Session {
    Session { rng: Rng::new(seed, "session", 0), noise, drift, effect, pairs }
}

fn verdict(pairs: &[(f64, f64)]) -> RatioVerdict {
    PairedRatio::of(pairs).expect("pairs").verdict(Better::More, None)
}

fn is_difference(verdict: RatioVerdict) -> bool {
    matches!(verdict, RatioVerdict::Faster | RatioVerdict::Slower)
}

/// Share of comparisons that come to a verdict of some kind.
fn share(count: u64, mut is_it: impl FnMut(u64) -> bool) -> f64 {
    (0..count).filter(|seed| is_it(*seed)).count() as f64 / count as f64
}

#[test]
fn equal_systems_are_called_different_in_one_of_twenty_comparisons() {
    for pairs in [4, 6, 10] {
        let found = share(2_000, |seed| {
            is_difference(verdict(&session(seed, 0.015, 0.05, 0.0, pairs).all()))
        });
        assert!((0.04..=0.065).contains(&found), "{pairs} pairs: {found}");
    }
}

#[test]
fn three_percent_are_found_with_ten_pairs() {
    let found = share(2_000, |seed| {
        verdict(&session(seed, 0.015, 0.05, 0.03, 10).all()) == RatioVerdict::Faster
    });
    assert!(found >= 0.90, "{found}");
}

#[test]
fn blocks_one_after_the_other_would_take_drift_for_a_difference() {
    // Why pairs are interleaved: the same trials, all of A before all of B.
    let found = share(500, |seed| {
        let mut session = session(seed, 0.015, 0.05, 0.0, 6);
        let a: Vec<f64> = (0..6).map(|place| session.trial(place, LEVEL)).collect();
        let b: Vec<f64> = (6..12).map(|place| session.trial(place, LEVEL)).collect();
        let pairs: Vec<(f64, f64)> = a.into_iter().zip(b).collect();
        is_difference(verdict(&pairs))
    });
    assert!(found > 0.3, "{found}");
}

#[test]
fn stopping_when_the_interval_is_narrow_costs_little_confidence() {
    let called = |noise: f64, half_width: f64| {
        let half_width = Some(half_width);
        let plan = StoppingPlan { pairs_least: 6, pairs_most: 30, half_width, budget_s: None };
        let mut all_pairs = 0;
        let found = share(2_000, |seed| {
            let mut session = session(seed, noise, 0.05, 0.0, 30);
            let mut pairs = vec![Vec::new()];
            while decide(&plan, &pairs, 0.0, 0.0).next == NextPair::Continue {
                let pair = session.pair(pairs[0].len());
                pairs[0].push(pair);
            }
            all_pairs += pairs[0].len();
            is_difference(verdict(&pairs[0]))
        });
        (found, all_pairs)
    };
    // It ends where the deviation happens to be small; the fewest pairs bound that.
    let (found, all_pairs) = called(0.015, 0.02);
    assert!((0.03..=0.065).contains(&found), "{found}");
    assert!((12_000..30_000).contains(&all_pairs), "{all_pairs}");
    // Worst where the half-width is reached after some twenty pairs of thirty.
    let (found, all_pairs) = called(0.015, 0.01);
    assert!((0.03..=0.09).contains(&found), "{found}");
    assert!((30_000..55_000).contains(&all_pairs), "{all_pairs}");
}

#[test]
fn many_metrics_find_no_more_by_chance_than_one() {
    let metrics = 12;
    let any = |seed: u64, is_corrected: bool| {
        let ratio = |metric: u64| {
            let pairs = session(seed * metrics + metric, 0.015, 0.05, 0.0, 6).all();
            PairedRatio::of(&pairs).expect("pairs")
        };
        let ratios: Vec<PairedRatio> = (0..metrics).map(ratio).collect();
        let p: Vec<f64> = ratios.iter().filter_map(|ratio| ratio.p).collect();
        let p = if is_corrected { holm::adjusted(&p) } else { p };
        ratios.iter().zip(&p).any(|(ratio, p)| is_difference(ratio.judged(Better::More, None, *p)))
    };
    let (plain, corrected) =
        (share(500, |seed| any(seed, false)), share(500, |seed| any(seed, true)));
    assert!(plain > 0.35, "{plain}");
    assert!(corrected < 0.08, "{corrected}");
}

#[test]
fn the_planned_number_of_pairs_gives_the_half_width() {
    let mut widths: Vec<f64> = (0..400)
        .filter_map(|seed| PairedRatio::of(&session(seed, 0.02, 0.0, 0.0, 11).all())?.half_width())
        .collect();
    widths.sort_by(f64::total_cmp);
    assert!((0.016..0.021).contains(&widths[200]), "{}", widths[200]);
}
