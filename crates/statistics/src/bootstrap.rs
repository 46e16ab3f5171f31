//! Intervals of anything that is computed from trials, by drawing the trials again and again.

use crate::{CONFIDENCE, ConfidenceInterval};
use dyno_core::Rng;

const DRAWS: usize = 500;

/// 95 % intervals of the figures that `of` computes from groups of trials: trials are drawn within their group. Draws
/// without figures are left out; `None` where that is more than half of them. Equal values and seeds give equal intervals.
pub fn intervals<const N: usize>(
    groups: &[Vec<f64>],
    seed: u64,
    of: impl Fn(&[Vec<f64>]) -> Option<[f64; N]>,
) -> Option<[ConfidenceInterval; N]> {
    let mut rng = Rng::new(seed, "bootstrap", 0);
    let mut drawn = groups.to_vec();
    let mut found: [Vec<f64>; N] = std::array::from_fn(|_| Vec::new());
    for _ in 0..DRAWS {
        for (sample, group) in drawn.iter_mut().zip(groups) {
            let last = group.len().saturating_sub(1) as u64;
            sample.fill_with(|| group[rng.uniform(0, last) as usize]);
        }
        for (values, value) in found.iter_mut().zip(of(&drawn).into_iter().flatten()) {
            values.push(value);
        }
    }
    let tail = (1.0 - CONFIDENCE) / 2.0;
    let is_enough = found.iter().all(|values| 2 * values.len() > DRAWS);
    is_enough.then(|| {
        found.map(|mut values| {
            values.sort_by(f64::total_cmp);
            let at = |share: f64| values[((values.len() - 1) as f64 * share).round() as usize];
            ConfidenceInterval { low: at(tail), high: at(1.0 - tail) }
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mean;

    #[test]
    fn the_same_seed_gives_the_same_interval() {
        let groups = [(1..=12).map(f64::from).collect(), vec![100.0]];
        let of = |groups: &[Vec<f64>]| Some([mean(&groups[0])?, mean(&groups[1])?]);
        let [first, second] = intervals(&groups, 7, of).expect("draws");
        assert_eq!(Some([first, second]), intervals(&groups, 7, of));
        assert!((3.5..6.0).contains(&first.low) && (7.0..9.5).contains(&first.high), "{first:?}");
        assert_eq!((second.low, second.high), (100.0, 100.0));
        assert_eq!(intervals(&groups, 7, |_| None::<[f64; 1]>), None);
    }
}
