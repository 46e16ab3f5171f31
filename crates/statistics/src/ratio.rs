//! The ratio of two systems from interleaved pairs of trials.
//!
//! A pair is a trial of each, one right after the other in drawn order: drifts over a session meet both alike and
//! cancel out in their ratio.

use crate::{Better, CONFIDENCE, ConfidenceInterval, deviation, mean, t_p, t_quantile, variation};

/// With fewer pairs there is no verdict: with three, no rank test can reach 5 %.
pub const LEAST_PAIRS: usize = 4;
/// The default, the fewest with which the signed-rank test can reach 5 % (p = 0.031).
pub const DEFAULT_PAIRS: usize = 6;
/// Above this variation of the trials of one side there is no verdict.
pub const MOST_VARIATION: f64 = 0.05;
/// An interval around 1 with a larger half-width is no proof of "no difference", where no half-width was asked for.
pub const DEFAULT_HALF_WIDTH: f64 = 0.05;

/// Candidate by baseline.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PairedRatio {
    pub pairs: usize,
    pub ratio: f64,
    /// 95 % interval of the ratio: Student's t on the logarithms of the pairs' ratios. `None` under two pairs, as are
    /// `p` and `deviation`.
    pub interval: Option<ConfidenceInterval>,
    /// Two-sided p of a ratio of 1.
    pub p: Option<f64>,
    /// Standard deviation of the logarithms.
    pub deviation: Option<f64>,
    pub variation_baseline: Option<f64>,
    pub variation_candidate: Option<f64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RatioVerdict {
    Faster,
    Slower,
    /// A difference larger than the half-width would have been found.
    NoDifference,
    Undecided(UndecidedReason),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UndecidedReason {
    TooFewPairs,
    DeviationTooHigh,
    /// The interval holds 1 and is too wide.
    Wide,
}

impl PairedRatio {
    /// Of pairs (baseline, candidate) with values above zero; `None` without any.
    pub fn of(pairs: &[(f64, f64)]) -> Option<PairedRatio> {
        let is_usable =
            |(a, b): &(f64, f64)| *a > 0.0 && *b > 0.0 && a.is_finite() && b.is_finite();
        let pairs: Vec<(f64, f64)> = pairs.iter().copied().filter(is_usable).collect();
        let logs: Vec<f64> = pairs.iter().map(|(a, b)| (b / a).ln()).collect();
        let centre = mean(&logs)?;
        let deviation = deviation(&logs);
        let error = deviation.map(|deviation| deviation / (logs.len() as f64).sqrt());
        let freedom = logs.len() - 1;
        let interval = error.map(|error| {
            let reach = t_quantile(freedom) * error;
            ConfidenceInterval { low: (centre - reach).exp(), high: (centre + reach).exp() }
        });
        let p = error.map(|error| match (error > 0.0, centre == 0.0) {
            (true, _) => t_p(centre / error, freedom),
            (false, true) => 1.0,
            (false, false) => 0.0,
        });
        let side =
            |of: fn(&(f64, f64)) -> f64| variation(&pairs.iter().map(of).collect::<Vec<f64>>());
        Some(PairedRatio {
            pairs: pairs.len(),
            ratio: centre.exp(),
            interval,
            p,
            deviation,
            variation_baseline: side(|pair| pair.0),
            variation_candidate: side(|pair| pair.1),
        })
    }

    /// Half of the interval's width as a share of the ratio, such as 0.02.
    pub fn half_width(&self) -> Option<f64> {
        self.interval.map(|interval| (interval.high - interval.low) / (2.0 * self.ratio))
    }

    pub fn variation(&self) -> Option<f64> {
        Some(self.variation_baseline?.max(self.variation_candidate?))
    }

    /// The verdict at 95 %. `half_width` is the one that was asked for: see [`DEFAULT_HALF_WIDTH`].
    pub fn verdict(&self, better: Better, half_width: Option<f64>) -> RatioVerdict {
        self.judged(better, half_width, self.p.unwrap_or(1.0))
    }

    /// The same with a p that was adjusted for all other verdicts ([`crate::holm`]).
    pub fn judged(&self, better: Better, half_width: Option<f64>, adjusted_p: f64) -> RatioVerdict {
        let Some(reached) = self.half_width().filter(|_| self.pairs >= LEAST_PAIRS) else {
            return RatioVerdict::Undecided(UndecidedReason::TooFewPairs);
        };
        if self.variation().is_none_or(|variation| variation > MOST_VARIATION) {
            return RatioVerdict::Undecided(UndecidedReason::DeviationTooHigh);
        }
        if adjusted_p < 1.0 - CONFIDENCE {
            return match (self.ratio > 1.0, better) {
                (true, Better::More) | (false, Better::Less) => RatioVerdict::Faster,
                (true, Better::Less) | (false, Better::More) => RatioVerdict::Slower,
            };
        }
        match PairedRatio::is_narrow(Some(reached), half_width) {
            true => RatioVerdict::NoDifference,
            false => RatioVerdict::Undecided(UndecidedReason::Wide),
        }
    }

    /// Whether an interval around 1 of this half-width means "no difference".
    pub fn is_narrow(reached: Option<f64>, wanted: Option<f64>) -> bool {
        reached.is_some_and(|reached| reached <= wanted.unwrap_or(DEFAULT_HALF_WIDTH))
    }

    /// Pairs that would give this half-width with the same deviation, up to a million; `None` under two pairs.
    pub fn pairs_needed(&self, half_width: f64) -> Option<usize> {
        pairs_needed(self.deviation?, half_width)
    }
}

/// Pairs needed for a half-width when the logarithms of the pairs' ratios have this deviation (about 1.41 times the
/// variation of single trials).
pub fn pairs_needed(deviation: f64, half_width: f64) -> Option<usize> {
    const MOST: usize = 1_000_000;
    let reached = |pairs: usize| {
        (t_quantile(pairs - 1) * deviation / (pairs as f64).sqrt()).sinh() <= half_width
    };
    // It shrinks with every pair: the number is between the last power of two that is too small and the next.
    let mut high = 2;
    while !reached(high) {
        high *= 2;
        if high > MOST {
            return None;
        }
    }
    let mut low = high / 2;
    while high - low > 1 {
        let middle = usize::midpoint(low, high);
        if reached(middle) { high = middle } else { low = middle }
    }
    Some(high)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn constant(count: usize, ratio: f64) -> PairedRatio {
        let pairs: Vec<(f64, f64)> = (0..count)
            .map(|k| (100.0 + k as f64 / 10.0, ratio * 100.0 - k as f64 / 10.0))
            .collect();
        PairedRatio::of(&pairs).expect("pairs")
    }

    #[test]
    fn under_two_pairs_there_is_no_interval_and_under_four_no_verdict() {
        assert_eq!(PairedRatio::of(&[]), None);
        assert_eq!(PairedRatio::of(&[(0.0, 1.0), (1.0, f64::NAN)]), None);
        let one = constant(1, 1.5);
        assert_eq!((one.interval, one.p, one.half_width()), (None, None, None));
        let few = RatioVerdict::Undecided(UndecidedReason::TooFewPairs);
        assert_eq!(constant(3, 1.5).verdict(Better::More, None), few);
        assert!(constant(3, 1.5).interval.is_some());
        assert_eq!(constant(4, 1.5).verdict(Better::More, None), RatioVerdict::Faster);
    }

    #[test]
    fn more_throughput_and_less_time_are_faster() {
        assert_eq!(constant(6, 1.1).verdict(Better::More, None), RatioVerdict::Faster);
        assert_eq!(constant(6, 1.1).verdict(Better::Less, None), RatioVerdict::Slower);
        assert_eq!(constant(6, 0.9).verdict(Better::Less, None), RatioVerdict::Faster);
        assert_eq!(constant(6, 0.9).verdict(Better::More, None), RatioVerdict::Slower);
    }

    #[test]
    fn without_a_difference_the_width_decides() {
        let pairs = [(100.0, 101.0), (100.0, 99.0), (101.0, 102.0), (99.0, 98.0), (100.0, 100.5)];
        let ratio = PairedRatio::of(&pairs).expect("pairs");
        assert_eq!(ratio.verdict(Better::More, None), RatioVerdict::NoDifference);
        assert_eq!(
            ratio.verdict(Better::More, Some(0.001)),
            RatioVerdict::Undecided(UndecidedReason::Wide)
        );
        let adjusted = constant(6, 1.02);
        assert_eq!(adjusted.judged(Better::More, None, 0.2), RatioVerdict::NoDifference);
    }

    #[test]
    fn wild_trials_have_no_verdict() {
        let pairs = [(100.0, 200.0), (120.0, 240.0), (80.0, 160.0), (110.0, 220.0), (90.0, 180.0)];
        let ratio = PairedRatio::of(&pairs).expect("pairs");
        assert!((ratio.ratio - 2.0).abs() < 1e-12);
        let wild = RatioVerdict::Undecided(UndecidedReason::DeviationTooHigh);
        assert_eq!(ratio.verdict(Better::More, None), wild);
    }

    #[test]
    fn pairs_needed_are_those_that_were_computed_before() {
        // Variation of single trials, wanted half-width, pairs.
        for (variation, half_width, pairs) in
            [(0.01, 0.02, 5), (0.02, 0.02, 11), (0.037, 0.02, 29), (0.037, 0.05, 7)]
        {
            let found = pairs_needed(variation * 2.0_f64.sqrt(), half_width);
            assert_eq!(found, Some(pairs), "{variation} {half_width}");
        }
        assert_eq!(pairs_needed(0.0, 0.02), Some(2));
        assert_eq!(pairs_needed(1e9, 0.02), None);
    }
}
