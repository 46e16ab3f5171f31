//! The noise floor: the result of a comparison of a system with itself (A/A).

use crate::ConfidenceInterval;

/// The largest difference that an A/A comparison with this interval shows, such as 0.015: the end that is farther from
/// 1. Smaller effects are noise.
pub fn floor(interval: ConfidenceInterval) -> f64 {
    interval.low.ln().abs().max(interval.high.ln().abs()).exp() - 1.0
}

/// True when the ratio differs from 1 by less than the floor's share.
pub fn is_below(ratio: f64, share: f64) -> bool {
    ratio.ln().abs() < share.ln_1p()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_floor_is_the_far_end_of_the_interval() {
        let share = floor(ConfidenceInterval { low: 0.99, high: 1.02 });
        assert!((share - 0.02).abs() < 1e-12, "{share}");
        assert!(is_below(1.01, share) && is_below(0.99, share));
        assert!(!is_below(1.05, share) && !is_below(0.9, share));
    }
}
