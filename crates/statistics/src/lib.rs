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
//! | How much do two trials of the same system differ? | [`noise`] |
//! | Are more pairs needed? | [`sequential`] |
//! | What do starts and loads add, and how many of each cost least? | [`levels`] |
//! | Which rate is held under an objective? | [`knee`], [`objective`] |
//! | Does a result break a gate? | [`gate`] |
//! | Has the order of trials left a mark on them? | [`history`] |
//! | Was the system steady in the window? | [`steady`], [`theil_sen`] |
//! | How does throughput scale? | [`usl`] |
//!
//! Everything is deterministic: draws take a seed from the caller.

pub mod anytime;
pub mod bootstrap;
pub mod gate;
pub mod history;
pub mod holm;
pub mod knee;
pub mod levels;
pub mod noise;
pub mod objective;
pub mod order;
pub mod rank;
pub mod ratio;
pub mod sequential;
pub mod steady;
pub mod theil_sen;
pub mod usl;

mod words;

pub use dyno_facts::{Better, Metric};

use statrs::distribution::{ContinuousCDF, Normal, StudentsT};

/// The share of intervals that hold the true value: 95 %.
pub const CONFIDENCE: f64 = 0.95;
/// The chance of a false verdict that is accepted.
pub const ALPHA: f64 = 0.05;

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ConfidenceInterval {
    pub low: f64,
    pub high: f64,
}

impl ConfidenceInterval {
    pub fn contains(&self, value: f64) -> bool {
        self.low <= value && value <= self.high
    }
}

pub fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

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

/// 95 % t interval of the mean of a sample; `None` under two values.
pub fn mean_interval(values: &[f64]) -> Option<ConfidenceInterval> {
    let mean = mean(values)?;
    let error = deviation(values)? / (values.len() as f64).sqrt();
    let reach = t_quantile(values.len() - 1, ALPHA) * error;
    Some(ConfidenceInterval { low: mean - reach, high: mean + reach })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_the_tables() {
        let table = [(1, 12.706), (4, 2.776), (5, 2.571), (9, 2.262), (28, 2.048), (1000, 1.962)];
        for (freedom, t) in table {
            let found = t_quantile(freedom, ALPHA);
            assert!((found - t).abs() < 6e-4, "{freedom}: {found}");
            assert!((t_p(t, freedom) - 0.05).abs() < 3e-4);
        }
        assert!((normal_p(1.96) - 0.05).abs() < 1e-4);
    }

    #[test]
    fn what_is_undefined_is_none() {
        assert_eq!((mean(&[]), median(&[]), deviation(&[1.0])), (None, None, None));
        assert_eq!(variation(&[0.0, 0.0]), None);
        assert_eq!(median(&[3.0, 1.0, 2.0, 10.0]), Some(2.5));
        assert_eq!(variation(&[9.0, 11.0]), Some(2.0_f64.sqrt() / 10.0));
    }
}
