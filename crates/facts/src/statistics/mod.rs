//! Statistics of trials: pure functions over numbers, without runs, files or databases.
//!
//! The unit of analysis is the trial, never the second: within a trial seconds depend on each other, and a test on them
//! finds equal systems different in most comparisons.
//!
//! | question | module |
//! |---|---|
//! | Is B faster than A, by how much, or as fast? | [`ratio`], then [`holm`] over an experiment's comparisons |
//! | The estimate, interval and test behind it | [`rank`] |
//! | The same when somebody looks after every pair | [`anytime`] |
//! | Which of a pair, and which load level, comes first? | [`order`] |
//! | How much do two trials of the same system differ? | [`noise_floor`] |
//! | Are more pairs needed? | [`sequential`] |
//! | What do starts and loads add, and how many of each cost least? | [`levels`] |
//! | Which rate is held under an objective? | [`knee`], [`gate::Objective`] |
//! | Does a result break a gate? | [`gate`] |
//! | Has the order of trials left a mark on them? | [`history`] |
//! | Was the system steady in the window? | [`steady`], [`trend_line`] |
//! | Do more workers do less? | [`scaling_peak`] |
//!
//! Everything is deterministic: draws take a seed from the caller.

pub mod anytime;
pub mod gate;
pub mod history;
pub mod knee;
pub mod levels;
pub mod order;
pub mod rank;
pub mod ratio;
pub mod sequential;
pub mod steady;

pub use crate::{Better, Metric};

use schemars::JsonSchema;
use serde::Serialize;
use statrs::distribution::{Beta, ContinuousCDF, Normal, StudentsT};

/// The chance of a false verdict that is accepted.
pub const ALPHA: f64 = 0.05;

#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "Bounds")]
pub struct ConfidenceInterval {
    pub low: f64,
    pub high: f64,
}

impl ConfidenceInterval {
    /// Returns true if the value is in it, its ends included.
    pub fn contains(&self, value: f64) -> bool {
        self.low <= value && value <= self.high
    }
}

/// The arithmetic mean; `None` without values.
pub fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// The median, between the two middle values of an even number; `None` without values.
pub fn median(values: &[f64]) -> Option<f64> {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => None,
        n if n % 2 == 1 => Some(values[middle]),
        _ => Some(f64::midpoint(values[middle - 1], values[middle])),
    }
}

/// Standard deviation of the sample; `None` under two values.
pub fn deviation(values: &[f64]) -> Option<f64> {
    if values.len() < 2 {
        return None;
    }
    let mean = mean(values)?;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    Some((squares / (values.len() - 1) as f64).sqrt())
}

/// Coefficient of variation: the deviation as a share of the mean. `None` under two values or with a mean of zero.
pub fn variation(values: &[f64]) -> Option<f64> {
    let mean = mean(values)?;
    Some(deviation(values)? / mean.abs()).filter(|share| share.is_finite())
}

/// The bound of Student's t in magnitude that is exceeded with the chance `alpha`.
pub(crate) fn t_quantile(freedom: usize, alpha: f64) -> f64 {
    let t = StudentsT::new(0.0, 1.0, freedom.max(1) as f64);
    t.map_or(f64::INFINITY, |t| t.inverse_cdf(1.0 - alpha / 2.0))
}

/// Two-sided p of a value of Student's t.
pub(crate) fn t_p(t: f64, freedom: usize) -> f64 {
    let law = StudentsT::new(0.0, 1.0, freedom.max(1) as f64);
    law.map_or(1.0, |law| (2.0 * law.cdf(-t.abs())).min(1.0))
}

/// The value of the standard normal distribution below which this share lies.
pub(crate) fn normal_quantile(share: f64) -> f64 {
    Normal::standard().inverse_cdf(share)
}

/// Two-sided p of a value of the standard normal distribution.
pub(crate) fn normal_p(z: f64) -> f64 {
    (2.0 * Normal::standard().cdf(-z.abs())).min(1.0)
}

/// 95% t interval of the mean of a sample; `None` under two values.
pub fn mean_interval(values: &[f64]) -> Option<ConfidenceInterval> {
    let mean = mean(values)?;
    let error = deviation(values)? / (values.len() as f64).sqrt();
    let reach = t_quantile(values.len() - 1, ALPHA) * error;
    Some(ConfidenceInterval { low: mean - reach, high: mean + reach })
}

/// 95% interval of the probability of a success (Clopper and Pearson, 1934); `None` without a trial.
pub fn proportion_interval(successes: u64, trials: u64) -> Option<ConfidenceInterval> {
    let quantile =
        |a: u64, b: u64, p: f64| Some(Beta::new(a as f64, b as f64).ok()?.inverse_cdf(p));
    let failures = trials.checked_sub(successes).filter(|_| trials > 0)?;
    // Without a success, or without a failure, the beta distribution is undefined: that end is 0 or 1.
    let low = quantile(successes, failures + 1, ALPHA / 2.0).unwrap_or(0.0);
    let high = quantile(successes + 1, failures, 1.0 - ALPHA / 2.0).unwrap_or(1.0);
    Some(ConfidenceInterval { low, high })
}

/// Holm's correction (of twenty metrics, one shows a "difference" by chance): adjusts p values, so that the chance of
/// any false verdict among them all stays below the level.
pub fn holm(p: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|a, b| p[*a].total_cmp(&p[*b]));
    let mut adjusted = vec![1.0; p.len()];
    let mut highest = 0.0_f64;
    for (rank, index) in order.iter().enumerate() {
        let factor = (p.len() - rank) as f64;
        highest = highest.max((p[*index] * factor).min(1.0));
        adjusted[*index] = highest;
    }
    adjusted
}

/// The noise floor: the largest difference that an A/A comparison with this interval shows, such as 0.015: the end that
/// is farther from 1. Smaller effects are noise.
pub fn noise_floor(interval: ConfidenceInterval) -> f64 {
    interval.low.ln().abs().max(interval.high.ln().abs()).exp() - 1.0
}

/// Returns true if the ratio differs from 1 by less than the floor's share.
pub fn is_below_noise(ratio: f64, share: f64) -> bool {
    ratio.ln().abs() < share.ln_1p()
}

/// The cost grows with their square.
pub const MOST_TREND_POINTS: usize = 400;

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TrendLine {
    /// Growth of y per unit of x.
    pub slope: f64,
    /// Two-sided p of no trend (Mann-Kendall).
    pub p: f64,
}

/// The straight line through points that resists outliers, with the median of the slopes between all of them (Theil and
/// Sen) (x, y); `None` under four points with different x, or above [`MOST_TREND_POINTS`].
pub fn trend_line(points: &[(f64, f64)]) -> Option<TrendLine> {
    if points.len() < 4 || points.len() > MOST_TREND_POINTS {
        return None;
    }
    let mut slopes = Vec::with_capacity(points.len() * (points.len() - 1) / 2);
    let mut balance = 0_i64;
    for (index, (x, y)) in points.iter().enumerate() {
        for (other_x, other_y) in &points[index + 1..] {
            let slope = (other_y - y) / (other_x - x);
            if slope.is_finite() {
                balance += i64::from(slope > 0.0) - i64::from(slope < 0.0);
                slopes.push(slope);
            }
        }
    }
    slopes.sort_by(f64::total_cmp);
    let slope = median(&slopes)?;
    let n = points.len() as f64;
    let error = (n * (n - 1.0) * (2.0 * n + 5.0) / 18.0).sqrt();
    let continuity = balance.signum() as f64;
    let p = normal_p((balance as f64 - continuity) / error);
    Some(TrendLine { slope, p })
}

/// The load level with the most throughput, where trials prove that more workers do less.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ScalingPeak {
    pub workers: f64,
    /// Throughput of the most workers by that of the best level.
    pub left: f64,
    /// One-sided p of "nothing is lost", by the number of levels that could have been best.
    pub p: f64,
}

/// The peak of (workers, throughput) of single trials; `None` without evidence, so always where levels have one trial.
///
/// Welch's test of the logarithms (B. Welch, Biometrika 34, 1947), corrected for the choice of the best level.
pub fn scaling_peak(trials: &[(f64, f64)]) -> Option<ScalingPeak> {
    let levels = by_level(trials);
    let (last, lower_levels) = levels.split_last()?;
    let centers = lower_levels.iter().map(|level| (level, level_center(level)));
    let (best, center) = centers.max_by(|a, b| a.1.total_cmp(&b.1))?;
    let loss = center - level_center(last);
    let ((a, a_freedom), (b, b_freedom)) = (error_square(&best.1)?, error_square(&last.1)?);
    let freedom = (a + b).powi(2) / (a * a / a_freedom + b * b / b_freedom);
    let one_sided =
        if a + b > 0.0 { t_p(loss / (a + b).sqrt(), freedom as usize) / 2.0 } else { 0.0 };
    let p = one_sided * lower_levels.len() as f64;
    (loss > 0.0 && p <= ALPHA).then(|| ScalingPeak { workers: best.0, left: (-loss).exp(), p })
}

/// The mean of the logarithms of a level.
fn level_center((_, logs): &(f64, Vec<f64>)) -> f64 {
    mean(logs).unwrap_or(f64::NEG_INFINITY)
}

/// The square of the standard error of a mean, and its degrees of freedom; `None` under two values.
fn error_square(values: &[f64]) -> Option<(f64, f64)> {
    let count = values.len() as f64;
    Some((deviation(values)?.powi(2) / count, count - 1.0))
}

/// Logarithms of throughput by workers, fewest first.
fn by_level(trials: &[(f64, f64)]) -> Vec<(f64, Vec<f64>)> {
    let usable = trials.iter().filter(|(n, x)| *n >= 1.0 && *x > 0.0 && x.is_finite());
    let mut levels: Vec<(f64, Vec<f64>)> = Vec::new();
    for (workers, throughput) in usable {
        match levels.iter_mut().find(|level| level.0 == *workers) {
            Some(level) => level.1.push(throughput.ln()),
            None => levels.push((*workers, vec![throughput.ln()])),
        }
    }
    levels.sort_by(|a, b| a.0.total_cmp(&b.0));
    levels
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_core::Rng;

    #[test]
    fn quantiles_are_those_of_the_tables() {
        let table = [(1, 12.706), (4, 2.776), (5, 2.571), (9, 2.262), (28, 2.048), (1000, 1.962)];
        for (freedom, t) in table {
            let quantile = t_quantile(freedom, ALPHA);
            assert!((quantile - t).abs() < 6e-4, "{freedom}: {quantile}");
            assert!((t_p(t, freedom) - 0.05).abs() < 3e-4);
        }
        assert!((normal_p(1.96) - 0.05).abs() < 1e-4);
    }

    #[test]
    fn intervals_of_a_proportion_are_those_of_the_tables() {
        for ((successes, trials), expected) in
            [((3, 3), [0.292, 1.0]), ((0, 3), [0.0, 0.708]), ((7, 10), [0.348, 0.933])]
        {
            let interval = proportion_interval(successes, trials).expect("trials");
            for (end, expected) in [interval.low, interval.high].into_iter().zip(expected) {
                assert!((end - expected).abs() < 1e-3, "{successes} of {trials}: {interval:?}");
            }
        }
        assert_eq!([proportion_interval(0, 0), proportion_interval(2, 1)], [None, None]);
    }

    #[test]
    fn what_is_undefined_is_none() {
        assert_eq!((mean(&[]), median(&[]), deviation(&[1.0])), (None, None, None));
        assert_eq!(variation(&[0.0, 0.0]), None);
        assert_eq!(median(&[3.0, 1.0, 2.0, 10.0]), Some(2.5));
        assert_eq!(variation(&[9.0, 11.0]), Some(2.0_f64.sqrt() / 10.0));
    }

    #[test]
    fn smaller_ones_are_multiplied_by_more() {
        let adjusted = holm(&[0.01, 0.04, 0.03, 0.005]);
        let expected = [0.03, 0.06, 0.06, 0.02];
        for (p, expected) in adjusted.iter().zip(expected) {
            assert!((p - expected).abs() < 1e-12, "{adjusted:?}");
        }
        assert_eq!(holm(&[0.5, 0.9]), [1.0, 1.0]);
        assert!(holm(&[]).is_empty());
    }

    #[test]
    fn the_floor_is_the_far_end_of_the_interval() {
        let share = noise_floor(ConfidenceInterval { low: 0.99, high: 1.02 });
        assert!((share - 0.02).abs() < 1e-12, "{share}");
        assert!(is_below_noise(1.01, share) && is_below_noise(0.99, share));
        assert!(!is_below_noise(1.05, share) && !is_below_noise(0.9, share));
    }

    #[test]
    fn outliers_do_not_bend_it() {
        let mut points: Vec<(f64, f64)> =
            (0..30).map(|x| (f64::from(x), 5.0 + 2.0 * f64::from(x))).collect();
        points[7].1 = 1e6;
        points[20].1 = -1e6;
        let line = trend_line(&points).expect("points");
        assert!((line.slope - 2.0).abs() < 1e-9, "{line:?}");
        assert!(line.p < 1e-6);
    }

    #[test]
    fn noise_alone_has_a_trend_in_one_of_twenty() {
        let mut rng = Rng::new(3, "test", 0);
        let trends = (0..1000).filter(|_| {
            let points: Vec<(f64, f64)> = (0..20).map(|x| (f64::from(x), rng.unit())).collect();
            let line = trend_line(&points).expect("points");
            line.p < 0.05
        });
        let trends = trends.count();
        assert!((25..=75).contains(&trends), "{trends} of 1000");
    }

    #[test]
    fn too_few_points_have_no_line() {
        assert_eq!(trend_line(&[(0.0, 1.0), (1.0, 2.0), (2.0, 3.0)]), None);
        assert_eq!(trend_line(&[(1.0, 1.0); 9]), None);
    }

    /// A throughput that falls beyond about 50 workers.
    fn law(n: f64) -> f64 {
        1_000.0 * n / (1.0 + 0.03 * (n - 1.0) + 0.000_4 * n * (n - 1.0))
    }

    /// Three trials a level, with noise of 2%.
    fn trials(seed: u64, curve: impl Fn(f64) -> f64) -> Vec<(f64, f64)> {
        let mut rng = Rng::new(seed, "trials", 0);
        let levels = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0];
        let repeated = levels.iter().flat_map(|workers| [*workers; 3]);
        let trials = repeated.map(|workers| {
            let noise = 0.02 * ((0..12).map(|_| rng.unit()).sum::<f64>() - 6.0);
            (workers, curve(workers) * (1.0 + noise))
        });
        trials.collect()
    }

    #[test]
    fn a_peak_is_claimed_on_evidence_alone() {
        // One queue with a delay: saturated from 16 workers on.
        let saturated = [1.0, 1.98, 3.86, 7.11, 9.89, 10.0, 10.0, 10.0];
        let claims = (0..400).filter(|seed| {
            scaling_peak(&trials(*seed, |n| saturated[n.log2() as usize])).is_some()
        });
        let claims = claims.count();
        assert!(claims <= 20, "{claims} of 400");
        let peaks = (0..100).filter_map(|seed| scaling_peak(&trials(seed, law)));
        let peaks: Vec<ScalingPeak> = peaks.collect();
        assert!(peaks.len() > 90, "{}", peaks.len());
        assert!(peaks.iter().all(|peak| peak.workers == 32.0 || peak.workers == 64.0));
        assert_eq!(scaling_peak(&[(1.0, 1.0), (2.0, 3.0), (4.0, 2.0), (8.0, 1.0)]), None);
    }
}
