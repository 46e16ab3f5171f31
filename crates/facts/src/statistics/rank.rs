//! Wilcoxon's signed-rank test, exact, and the estimate that belongs to it: the pseudo-median of Hodges and Lehmann.
//!
//! The test and the estimate assume nothing but that differences lie alike on both sides of their center. With orders
//! drawn by chance this holds for the logarithms of the ratios of pairs whatever the distribution of trials is. One
//! wild trial of ten moves them little. Sources: F. Wilcoxon, Biometrics Bulletin 1 (1945); J. Hodges and E. Lehmann,
//! Annals of Mathematical Statistics 34 (1963); intervals: M. Hollander and D. Wolfe, Nonparametric Statistical
//! Methods, 3.3.

use crate::statistics::{ConfidenceInterval, median, normal_p, normal_quantile};

/// With more differences the normal approximation is exact enough.
const MOST_EXACT: usize = 200;

/// Two-sided p that the differences lie around zero. Zeros are left out, ties share their mean rank; 1 when nothing
/// remains. The least value with `n` differences is [`least_p`].
pub fn signed_rank_p(differences: &[f64]) -> f64 {
    let mut values: Vec<f64> =
        differences.iter().copied().filter(|value| *value != 0.0 && value.is_finite()).collect();
    values.sort_by(|a, b| a.abs().total_cmp(&b.abs()));
    if values.is_empty() {
        return 1.0;
    }
    let ranks = doubled_ranks(&values);
    let total: usize = ranks.iter().sum();
    let above = values.iter().zip(&ranks).filter(|(value, _)| **value > 0.0);
    let above: usize = above.map(|(_, rank)| rank).sum();
    let smaller = above.min(total - above);
    if values.len() > MOST_EXACT {
        let squares: f64 = ranks.iter().map(|rank| (*rank as f64).powi(2)).sum();
        return normal_p((smaller as f64 - total as f64 / 2.0) / (squares.sqrt() / 2.0));
    }
    (2.0 * shares(&ranks, smaller).iter().sum::<f64>()).min(1.0)
}

/// The least two-sided p that `count` differences can give: 0.031 with six, 0.0625 with five.
pub fn least_p(count: usize) -> f64 {
    2.0 * 0.5_f64.powi(i32::try_from(count).unwrap_or(i32::MAX))
}

/// The fewest differences with which p can reach `alpha`: six for 0.05.
pub fn least_count(alpha: f64) -> usize {
    (1..1_000).find(|count| least_p(*count) <= alpha).unwrap_or(1_000)
}

/// The estimate of Hodges and Lehmann: the median of the means of all two values, each with itself too. `None` without
/// values.
pub fn pseudo_median(values: &[f64]) -> Option<f64> {
    median(&walsh_averages(values))
}

/// The interval of the pseudo-median that fails to hold it with a chance of at most `alpha`; `None` under
/// [`least_count`] values.
pub fn pseudo_median_interval(values: &[f64], alpha: f64) -> Option<ConfidenceInterval> {
    let from_end = ranks_cut(values.len(), alpha)?;
    let mut averages = walsh_averages(values);
    let last = averages.len() - 1;
    let low = *averages.select_nth_unstable_by(from_end, f64::total_cmp).1;
    let high = *averages.select_nth_unstable_by(last - from_end, f64::total_cmp).1;
    Some(ConfidenceInterval { low, high })
}

/// The interval whatever `lost` further values would have been: its ends are those with all of
/// them below the others, and above. `None` if they may move an end any far: of one it can't with twelve values in
/// all.
pub fn interval_whatever(values: &[f64], lost: usize, alpha: f64) -> Option<ConfidenceInterval> {
    let with =
        |extreme: f64| pseudo_median_interval(&[values, &vec![extreme; lost]].concat(), alpha);
    let interval =
        ConfidenceInterval { low: with(f64::NEG_INFINITY)?.low, high: with(f64::INFINITY)?.high };
    (interval.low.is_finite() && interval.high.is_finite()).then_some(interval)
}

fn walsh_averages(values: &[f64]) -> Vec<f64> {
    let averages = values.iter().enumerate().flat_map(|(at, first)| {
        values[at..].iter().map(move |second| f64::midpoint(*first, *second))
    });
    averages.collect()
}

/// Number of the sorted averages outside of the interval at each end.
fn ranks_cut(count: usize, alpha: f64) -> Option<usize> {
    if least_p(count) > alpha {
        return None;
    }
    if count > MOST_EXACT {
        let n = count as f64;
        let spread = (n * (n + 1.0) * (2.0 * n + 1.0) / 24.0).sqrt();
        let cut = n * (n + 1.0) / 4.0 - normal_quantile(1.0 - alpha / 2.0) * spread;
        return Some(cut.max(0.0) as usize);
    }
    let ranks: Vec<usize> = (1..=count).collect();
    let mut below = 0.0;
    // A tail of the sums, from 0: the first that exceeds half of alpha is the bound.
    let shares = shares(&ranks, count * (count + 1) / 4);
    let within = shares.iter().take_while(|share| {
        below += **share;
        2.0 * below <= alpha + 1e-12
    });
    within.count().checked_sub(1)
}

/// Shares of all choices of signs by the sum of the ranks above zero, up to a sum of `most`.
fn shares(ranks: &[usize], most: usize) -> Vec<f64> {
    let mut shares = vec![0.0; most + 1];
    shares[0] = 1.0;
    for rank in ranks {
        for sum in (0..=most).rev() {
            let with = if sum >= *rank { shares[sum - rank] } else { 0.0 };
            shares[sum] = f64::midpoint(shares[sum], with);
        }
    }
    shares
}

/// Twice the rank of each value: with ties ranks are halves.
fn doubled_ranks(sorted: &[f64]) -> Vec<usize> {
    let mut ranks = vec![0; sorted.len()];
    let mut from = 0;
    while from < sorted.len() {
        let size = sorted[from].abs();
        let count = sorted[from..].iter().take_while(|value| value.abs() == size).count();
        ranks[from..from + count].fill(2 * from + count + 1);
        from += count;
    }
    ranks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p_is_that_of_the_tables() {
        for (count, p) in [(5, 0.0625), (6, 0.03125), (10, 2.0 / 1024.0)] {
            let all_above: Vec<f64> = (1..=count).map(f64::from).collect();
            assert_eq!(signed_rank_p(&all_above), p, "{count}");
        }
        // n = 8, W = 3: 5 of 256 choices on each side.
        let p_value = signed_rank_p(&[-1.0, -2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]);
        assert!((p_value - 10.0 / 256.0).abs() < 1e-12, "{p_value}");
    }

    #[test]
    fn ties_and_zeros_are_allowed() {
        assert_eq!(signed_rank_p(&[0.0, 0.0]), 1.0);
        assert_eq!(signed_rank_p(&[1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.0]), 0.03125);
        assert_eq!(signed_rank_p(&[1.0, -1.0, 1.0, -1.0]), 1.0);
    }

    #[test]
    fn the_approximation_joins_the_exact_values() {
        let [exact, near] = [200, 201].map(|count| {
            let signs = (1..=count).map(|v| if v % 5 < 2 { -f64::from(v) } else { f64::from(v) });
            signed_rank_p(&signs.collect::<Vec<f64>>())
        });
        assert!((exact.ln() - near.ln()).abs() < 0.5, "{exact} {near}");
    }

    #[test]
    fn the_interval_is_that_of_the_tables() {
        // Counts outside at each end for 95%: Hollander and Wolfe, table A.4.
        let cuts =
            [(5, None), (6, Some(0)), (7, Some(2)), (8, Some(3)), (10, Some(8)), (20, Some(52))];
        for (count, cut) in cuts {
            assert_eq!(ranks_cut(count, 0.05), cut, "{count}");
        }
        assert!(
            ranks_cut(201, 0.05).expect("many").abs_diff(ranks_cut(200, 0.05).expect("many")) < 120
        );
        let range = pseudo_median_interval(&[3.0, 1.0, 6.0, 2.0, 4.0, 5.0], 0.05).expect("six");
        assert_eq!((range.low, range.high), (1.0, 6.0));
        assert_eq!((least_count(0.05), least_count(0.03), least_count(0.1)), (6, 7, 5));
    }

    #[test]
    fn a_lost_value_moves_the_interval_little_among_many() {
        let numbers: Vec<f64> = (0..40).map(f64::from).collect();
        assert_eq!(interval_whatever(&numbers[..10], 1, 0.05), None);
        assert!(interval_whatever(&numbers[..11], 1, 0.05).is_some());
        assert_eq!(interval_whatever(&numbers[..5], 0, 0.05), None, "too few");
        let plain = pseudo_median_interval(&numbers, 0.05).expect("an interval");
        assert_eq!(interval_whatever(&numbers, 0, 0.05), Some(plain));
        for lost in [-1e9, 0.0, 20.0, 1e9] {
            let with =
                pseudo_median_interval(&[&numbers[1..], &[lost]].concat(), 0.05).expect("40");
            let whatever = interval_whatever(&numbers[1..], 1, 0.05).expect("40");
            assert!(whatever.low <= with.low && with.high <= whatever.high, "{lost}");
            assert!(whatever.high - whatever.low < 1.5 * (plain.high - plain.low));
        }
        assert!(interval_whatever(&numbers[..34], 6, 0.05).is_some());
        assert_eq!(interval_whatever(&numbers[..28], 12, 0.05), None);
    }

    #[test]
    fn one_wild_value_moves_the_pseudo_median_little() {
        let values = [0.01, 0.02, 0.03, 0.02, 0.01, 0.02, 0.03, 0.02, 0.02, -3.0];
        let center = pseudo_median(&values).expect("values");
        assert!((center - 0.02).abs() < 0.005, "{center}");
        assert_eq!(pseudo_median(&[]), None);
    }
}
