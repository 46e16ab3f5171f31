//! The noise floor: what a comparison of a system with itself shows.

use crate::Interval;
use crate::ratio::PairedRatio;

/// The noise floor of a comparison of a system with itself (A/A).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Floor {
    pub pairs: usize,
    /// The largest difference that its interval holds, such as 0.015: effects below it can't be
    /// told from noise.
    pub share: f64,
}

/// The floor that an A/A comparison with this interval shows: the end that is farther from 1.
pub fn floor_of(pairs: usize, interval: Interval) -> Floor {
    let share = interval.low.ln().abs().max(interval.high.ln().abs()).exp() - 1.0;
    Floor { pairs, share }
}

/// The same of a ratio; `None` under two pairs.
pub fn floor(of_itself: &PairedRatio) -> Option<Floor> {
    Some(floor_of(of_itself.pairs, of_itself.interval?))
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
        let pairs = [(100.0, 101.0), (100.0, 99.0), (100.0, 102.0), (100.0, 100.0)];
        let ratio = PairedRatio::of(&pairs).expect("pairs");
        let floor = floor(&ratio).expect("two pairs");
        let interval = ratio.interval.expect("two pairs");
        assert!((floor.share - (interval.high - 1.0)).abs() < 1e-12, "{floor:?} {interval:?}");
        assert!(is_below(1.01, floor.share) && is_below(0.99, floor.share));
        assert!(!is_below(1.05, floor.share) && !is_below(0.9, floor.share));
    }
}
