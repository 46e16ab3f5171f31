//! Verdicts that hold whenever one looks: the t e-process of paired differences.
//!
//! An e-value is what a fair bet against "no difference" would have gained. A bet that is worth 20 times its stake comes
//! with a chance of at most 5 % however often one looks, stops and goes on, so a budget, an interruption or a second
//! session spoil nothing; e-values of sessions multiply. The price: intervals about 1.7 times as wide as those of a fixed
//! number of pairs. Sources: J. ter Schure, M. Pérez-Ortiz, A. Ly and P. Grünwald, "The safe t-test" (2020);
//! H. Wang and A. Ramdas, "Anytime-valid t-tests and confidence sequences for Gaussian means with unknown variance" (2023).

use crate::{ConfidenceInterval, deviation, mean};

/// The bet: differences of 1/√c standard deviations are as likely as a normal distribution says.
const C: f64 = 1.0;

/// The logarithm of the e-value against a centre of `centre`. Differences in units of their deviation are expected to be
/// normal, N(0, 1/c); the deviation has the right Haar prior. 0, which says nothing, under two differences.
///
/// `log E = ½ log(c/(n+c)) − (n/2) [log(1 + t²/ν · c/(n+c)) − log(1 + t²/ν)]` with ν = n − 1.
pub fn log_e_value(differences: &[f64], centre: f64) -> f64 {
    let (Some(found), Some(deviation)) = (mean(differences), deviation(differences)) else {
        return 0.0;
    };
    let n = differences.len() as f64;
    let share = C / (n + C);
    let square = n * (found - centre).powi(2) / deviation.powi(2) / (n - 1.0);
    let gained = match square.is_nan() {
        // Every difference is the centre itself.
        true => 0.0,
        // Also of an endless t.
        false => ((share + 1.0 / square) / (1.0 + 1.0 / square)).ln(),
    };
    0.5 * share.ln() - n / 2.0 * gained
}

/// The p of this e-value: at most `alpha` with a chance of `alpha`, whenever it is computed.
pub fn p(differences: &[f64]) -> f64 {
    (-log_e_value(differences, 0.0)).exp().min(1.0)
}

/// The centres against which less than `1 / alpha` was gained; `None` where too few differences exclude any.
pub fn interval(differences: &[f64], alpha: f64) -> Option<ConfidenceInterval> {
    let (centre, deviation) = (mean(differences)?, deviation(differences)?);
    let n = differences.len() as f64;
    let share = C / (n + C);
    // Where log E = log(1 / alpha), solved for t²/ν.
    let bound = (-(2.0 / n) * ((1.0 / alpha).ln() - 0.5 * share.ln())).exp();
    let square = (1.0 - bound) / (bound - share);
    let reach = (square * (n - 1.0) / n).sqrt() * deviation;
    (bound > share).then_some(ConfidenceInterval { low: centre - reach, high: centre + reach })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ALPHA;

    fn around(centre: f64, count: usize) -> Vec<f64> {
        (0..count).map(|k| centre + 0.01 * (k as f64 * 2.399).sin()).collect()
    }

    #[test]
    fn the_ends_of_the_interval_are_worth_twenty() {
        for count in [5, 6, 12, 60] {
            let found = around(0.02, count);
            let both = interval(&found, ALPHA).expect("pairs enough");
            for end in [both.low, both.high] {
                assert!((log_e_value(&found, end) - 20.0_f64.ln()).abs() < 1e-9, "{count}");
            }
            assert!(both.contains(0.02));
        }
        assert_eq!(interval(&around(0.0, 4), ALPHA), None);
    }

    #[test]
    fn what_has_no_deviation_is_as_sure_as_its_number_allows() {
        assert!(p(&[0.1; 4]) > ALPHA);
        assert!(p(&[0.1; 5]) < ALPHA);
        assert_eq!(p(&[0.0; 9]), 1.0);
        assert_eq!(p(&[1.0]), 1.0);
    }
}
