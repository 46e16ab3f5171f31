//! Wilcoxon's signed-rank test, exact: a second opinion that assumes no normal distribution.

use crate::normal_p;

/// With more pairs the normal approximation is exact enough.
const MOST_EXACT: usize = 200;

/// Two-sided p that the differences lie around zero. Zeros are left out, ties share their mean rank; 1 when nothing
/// remains. The least value is 0.0625 with five pairs, 0.031 with six.
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
    // Shares of all 2^n choices of signs by the sum of the ranks above zero.
    let mut shares = vec![0.0; total + 1];
    shares[0] = 1.0;
    for rank in &ranks {
        for sum in (0..=total).rev() {
            let with = if sum >= *rank { shares[sum - rank] } else { 0.0 };
            shares[sum] = f64::midpoint(shares[sum], with);
        }
    }
    (2.0 * shares[..=smaller].iter().sum::<f64>()).min(1.0)
}

/// Twice the rank of each value: with ties ranks are halves.
fn doubled_ranks(sorted: &[f64]) -> Vec<usize> {
    let mut ranks = vec![0; sorted.len()];
    let mut from = 0;
    while from < sorted.len() {
        let is_tied = |value: &&f64| value.abs() == sorted[from].abs();
        let count = sorted[from..].iter().take_while(is_tied).count();
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
        let all_above = |n: usize| signed_rank_p(&(1..=n).map(|v| v as f64).collect::<Vec<_>>());
        assert_eq!(all_above(5), 0.0625);
        assert_eq!(all_above(6), 0.03125);
        assert_eq!(all_above(10), 2.0 / 1024.0);
        // n = 8, W = 3: 5 of 256 choices on each side.
        let found = signed_rank_p(&[-1.0, -2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]);
        assert!((found - 10.0 / 256.0).abs() < 1e-12, "{found}");
    }

    #[test]
    fn ties_and_zeros_are_allowed() {
        assert_eq!(signed_rank_p(&[0.0, 0.0]), 1.0);
        assert_eq!(signed_rank_p(&[1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.0]), 0.03125);
        assert_eq!(signed_rank_p(&[1.0, -1.0, 1.0, -1.0]), 1.0);
    }

    #[test]
    fn the_approximation_joins_the_exact_values() {
        let values = |n: usize| -> Vec<f64> {
            (1..=n).map(|v| if v % 5 < 2 { -(v as f64) } else { v as f64 }).collect()
        };
        let (exact, near) = (signed_rank_p(&values(200)), signed_rank_p(&values(201)));
        assert!((exact.ln() - near.ln()).abs() < 0.5, "{exact} {near}");
    }
}
