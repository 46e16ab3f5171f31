//! Verdicts that hold whenever one looks: the t e-process of paired differences.
//!
//! An e-value is what a fair bet against "no difference" would have gained. A bet that is worth 20 times its stake
//! comes with a chance of at most 5% however often one looks, stops and continues, so a budget, an interruption or a
//! second session spoil nothing; e-values of sessions multiply. The price: intervals about 1.7 times as wide as those
//! of a fixed number of pairs. Sources: J. ter Schure, M. Pérez-Ortiz, A. Ly and P. Grünwald, "The safe t-test" (2020);
//! H. Wang and A. Ramdas, "Anytime-valid t-tests and confidence sequences for Gaussian means with unknown variance"
//! (2023).

use crate::statistics::{ConfidenceInterval, deviation, mean};

/// The bet: differences of 1/√c standard deviations are as likely as a normal distribution says.
const C: f64 = 1.0;

/// The facts of its differences that a bet needs.
struct Bet {
    count: f64,
    mean: f64,
    deviation: f64,
}

impl Bet {
    /// `None` under two differences.
    fn from_differences(differences: &[f64]) -> Option<Bet> {
        let (mean, deviation) = (mean(differences)?, deviation(differences)?);
        Some(Bet { count: differences.len() as f64, mean, deviation })
    }

    fn log_e_value(&self, center: f64) -> f64 {
        let Bet { count: n, mean, deviation } = self;
        let share = C / (n + C);
        let square = n * (mean - center).powi(2) / deviation.powi(2) / (n - 1.0);
        let gained = match square {
            // Every difference is the center itself.
            square if square.is_nan() => 0.0,
            square if square.is_infinite() => share.ln(),
            square => ((1.0 + square * share) / (1.0 + square)).ln(),
        };
        0.5 * share.ln() - n / 2.0 * gained
    }

    /// An upper bound for every center, however far away.
    fn most(&self) -> f64 {
        (self.count - 1.0) / 2.0 * ((self.count + C) / C).ln()
    }
}

/// The logarithm of the e-value against a center of `center`. Differences in units of their deviation are expected to
/// be normal, N(0, 1/c); the deviation has the right Haar prior. 0, which says nothing, under two differences.
///
/// `log E = ½ log(c/(n+c)) − (n/2) [log(1 + t²/ν · c/(n+c)) − log(1 + t²/ν)]` with ν = n − 1.
pub fn log_e_value(differences: &[f64], center: f64) -> f64 {
    Bet::from_differences(differences).map_or(0.0, |bet| bet.log_e_value(center))
}

/// The p of this e-value: at most `alpha` with a chance of `alpha`, whenever it is computed.
pub fn p(differences: &[f64]) -> f64 {
    (-log_e_value(differences, 0.0)).exp().min(1.0)
}

/// The centers against which less than `1 / alpha` was gained; `None` where too few differences exclude any.
pub fn interval(differences: &[f64], alpha: f64) -> Option<ConfidenceInterval> {
    let (center, deviation) = (mean(differences)?, deviation(differences)?);
    let reach = reach(differences.len(), alpha)? * deviation;
    Some(ConfidenceInterval { low: center - reach, high: center + reach })
}

/// Returns the half-width, in standard deviations of the differences, of the interval that holds however often it is
/// looked at; `None` for too few differences.
pub(crate) fn reach(count: usize, alpha: f64) -> Option<f64> {
    let n = count as f64;
    let share = C / (n + C);
    // Where log E = log(1 / alpha), solved for t²/ν.
    let bound = (-(2.0 / n) * ((1.0 / alpha).ln() - 0.5 * share.ln())).exp();
    let square = (1.0 - bound) / (bound - share);
    (count > 1 && bound > share).then(|| (square * (n - 1.0) / n).sqrt())
}

/// Sessions of the same comparison, each with its own bet: another day has another deviation. Their e-values
/// multiply, so that a further session may follow whatever the ones before have shown.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SessionsEstimate {
    /// The center against which the least was gained.
    pub center: f64,
    /// From the least to the greatest center against which less than `1 / alpha` was gained; `None` where too few
    /// differences exclude any.
    pub interval: Option<ConfidenceInterval>,
    /// p of a center of 0; 1 if the interval holds it.
    pub p: f64,
}

/// Centers that are tried between the means of sessions.
const STEPS: u32 = 256;

/// The joint estimate of sessions; `None` if none has two differences.
pub fn joint_estimate(sessions: &[Vec<f64>], alpha: f64) -> Option<SessionsEstimate> {
    let bound = (1.0 / alpha).ln();
    let bets: Vec<Bet> =
        sessions.iter().filter_map(|differences| Bet::from_differences(differences)).collect();
    let low = bets.iter().map(|bet| bet.mean).reduce(f64::min)?;
    let high = bets.iter().map(|bet| bet.mean).reduce(f64::max)?;
    // Left and right of all means the gain grows with the distance; between them it may have several lows.
    let steps = if low < high { STEPS } else { 0 };
    let centers = (0..=steps).map(|step| low + (high - low) * f64::from(step) / f64::from(STEPS));
    let candidates: Vec<(f64, f64)> =
        centers.map(|center| (center, joint_log_e_value(&bets, center))).collect();
    let (center, _) = *candidates.iter().min_by(|a, b| a.1.total_cmp(&b.1))?;
    let mut open = candidates.iter().filter(|(_, gain)| *gain < bound).map(|(center, _)| *center);
    let max_gain: f64 = bets.iter().map(Bet::most).sum();
    let interval = (max_gain > bound).then(|| match open.next() {
        // The sessions contradict each other: no center suits all.
        None => ConfidenceInterval { low, high },
        Some(first) => {
            let last = open.next_back().unwrap_or(first);
            ConfidenceInterval {
                low: end(&bets, bound, first, -1.0),
                high: end(&bets, bound, last, 1.0),
            }
        }
    });
    let p = (-joint_log_e_value(&bets, 0.0)).exp().min(1.0);
    let is_excluded = interval.is_some_and(|interval| !interval.contains(0.0));
    let p = if is_excluded { p } else { p.max(alpha.next_up()) };
    Some(SessionsEstimate { center, interval, p })
}

fn joint_log_e_value(bets: &[Bet], center: f64) -> f64 {
    bets.iter().map(|bet| bet.log_e_value(center)).sum()
}

/// The center on the side of `inner` at which `bound` is gained.
fn end(bets: &[Bet], bound: f64, inner: f64, side: f64) -> f64 {
    let mut reach = f64::EPSILON;
    // Where the deviations are 0 the first step is far enough; the gain has an end, which is above the bound.
    while joint_log_e_value(bets, inner + side * reach) < bound && reach < 1e9 {
        reach *= 2.0;
    }
    let (mut inside, mut outside) = (inner, inner + side * reach);
    for _ in 0..100 {
        let middle = f64::midpoint(inside, outside);
        if joint_log_e_value(bets, middle) < bound { inside = middle } else { outside = middle }
    }
    outside
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::ALPHA;

    fn differences_around(center: f64, count: usize) -> Vec<f64> {
        (0..count).map(|k| center + 0.01 * (k as f64 * 2.399).sin()).collect()
    }

    #[test]
    fn the_ends_of_the_interval_are_worth_twenty() {
        for count in [5, 6, 12, 60] {
            let differences = differences_around(0.02, count);
            let bounds = interval(&differences, ALPHA).expect("pairs enough");
            for end in [bounds.low, bounds.high] {
                assert!((log_e_value(&differences, end) - 20.0_f64.ln()).abs() < 1e-9, "{count}");
            }
            assert!(bounds.contains(0.02));
        }
        assert_eq!(interval(&differences_around(0.0, 4), ALPHA), None);
    }

    #[test]
    fn one_session_is_judged_as_ever_and_more_of_them_know_more() {
        let first = differences_around(0.02, 12);
        let alone = joint_estimate(std::slice::from_ref(&first), ALPHA).expect("differences");
        let single_interval = interval(&first, ALPHA).expect("pairs enough");
        let joint_interval = alone.interval.expect("pairs enough");
        assert!(
            (joint_interval.low - single_interval.low).abs() < 1e-9
                && (joint_interval.high - single_interval.high).abs() < 1e-9
        );
        assert!((alone.p - p(&first)).abs() < 1e-12 && (alone.center - 0.02).abs() < 0.01);
        // Neither of two short sessions decides anything; together they do.
        let short = [differences_around(0.02, 4), differences_around(0.021, 4)];
        assert!(short.iter().all(|logs| interval(logs, ALPHA).is_none() && p(logs) > ALPHA));
        let together = joint_estimate(&short, ALPHA).expect("differences");
        let joint_interval = together.interval.expect("pairs enough");
        assert!(
            together.p <= ALPHA
                && joint_interval.low > 0.0
                && joint_interval.contains(together.center)
        );
        let gained: f64 =
            short.iter().map(|differences| log_e_value(differences, joint_interval.low)).sum();
        assert!((gained - 20.0_f64.ln()).abs() < 1e-6, "{gained}");
        // A single pair says nothing, and takes nothing away.
        let with_one = joint_estimate(&[first.clone(), vec![5.0]], ALPHA).expect("differences");
        assert_eq!(with_one.interval.map(|interval| interval.low < 0.02), Some(true));
        assert_eq!(joint_estimate(&[vec![1.0], Vec::new()], ALPHA), None);
    }

    #[test]
    fn sessions_that_contradict_each_other_prove_no_direction() {
        let estimate =
            joint_estimate(&[differences_around(0.2, 12), differences_around(-0.2, 12)], ALPHA)
                .expect("differences");
        assert!(
            estimate.interval.is_some_and(|interval| interval.contains(0.0)) && estimate.p > ALPHA,
            "{estimate:?}"
        );
    }

    #[test]
    fn what_has_no_deviation_is_as_sure_as_its_number_allows() {
        assert!(p(&[0.1; 4]) > ALPHA);
        assert!(p(&[0.1; 5]) < ALPHA);
        assert_eq!(p(&[0.0; 9]), 1.0);
        assert_eq!(p(&[1.0]), 1.0);
    }
}
