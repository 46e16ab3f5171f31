//! Variation of pairs, level by level: loads of the data, starts of the servers, pairs of one start.
//!
//! Pairs of one start share what that start has made of the server, so they are not separate evidence: the mean of
//! a unit, of everything that shares the outermost level, is. How much each level adds is a nested analysis of
//! variance; the numbers that cost least for a half-width follow from that and from what a pair, a start and a load
//! take (T. Kalibera and R. Jones, Rigorous benchmarking in reasonable time, ISMM 2013).

use crate::statistics::ratio::{LEAST_PAIRS, RANKS_BY_T, pairs_needed};
use crate::statistics::{deviation, mean};
use schemars::JsonSchema;
use serde::Serialize;

/// Numbers of a level within the next one that are tried.
const TRIED: [usize; 13] = [1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 30, 50];

/// Deviations of the logarithms that the levels add, from pairs outwards. `within` says how many of each level make one
/// of the next, and `logs` are in order; what is left of an incomplete unit at the end is left out. `None` under two
/// units.
pub fn components(logs: &[f64], within: &[usize]) -> Option<Vec<f64>> {
    let unit: usize = within.iter().product();
    let units = logs.len() / unit.max(1);
    if units < 2 || within.contains(&0) {
        return None;
    }
    let mut values = logs[..units * unit].to_vec();
    let (mut found, mut below) = (Vec::new(), 0.0);
    for size in within.iter().copied().chain([units]) {
        // One alone shows nothing: what it adds is part of the next level.
        if size == 1 {
            found.push(0.0);
            continue;
        }
        let squares: Option<Vec<f64>> =
            values.chunks(size).map(|own| Some(deviation(own)?.powi(2))).collect();
        let square = mean(&squares?)?;
        found.push((square - below).max(0.0).sqrt());
        below = square / size as f64;
        values = values.chunks(size).filter_map(mean).collect();
    }
    Some(found)
}

/// Numbers of each level, and the time that they take.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "LevelNumbers")]
pub struct Allocation {
    /// Number of elements of each level in one of the next.
    pub within: Vec<usize>,
    /// Units: of the outermost level.
    pub units: usize,
    pub total_s: f64,
}

/// The numbers needed for a half-width, if levels vary as `deviations` say and cost `seconds` each, from pairs
/// outwards; `None` if no number of units gives it.
pub fn needed(
    deviations: &[f64],
    seconds: &[f64],
    within: &[usize],
    half_width: f64,
) -> Option<Allocation> {
    let (mut square, mut unit_s) = (0.0, 0.0);
    for (level, (deviation, cost_s)) in deviations.iter().zip(seconds).enumerate() {
        square += deviation.powi(2);
        unit_s += cost_s;
        if let Some(count) = within.get(level) {
            square /= *count as f64;
            unit_s *= *count as f64;
        }
    }
    let by_t = pairs_needed(square.sqrt(), half_width)?;
    let units = ((by_t as f64 * RANKS_BY_T).ceil() as usize).max(LEAST_PAIRS);
    Some(Allocation { within: within.to_vec(), units, total_s: units as f64 * unit_s })
}

/// The numbers that give a half-width in the shortest time; the fewer if that is the same.
pub fn cheapest(deviations: &[f64], seconds: &[f64], half_width: f64) -> Option<Allocation> {
    let mut candidates: Vec<Vec<usize>> = vec![Vec::new()];
    for _ in 1..deviations.len() {
        candidates = candidates
            .iter()
            .flat_map(|counts| TRIED.map(|count| [&counts[..], &[count]].concat()))
            .collect();
    }
    let allocations =
        candidates.iter().filter_map(|within| needed(deviations, seconds, within, half_width));
    allocations.min_by(|a, b| a.total_s.total_cmp(&b.total_s))
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_core::Rng;

    /// A draw from the standard normal distribution (Box and Muller).
    fn normal(rng: &mut Rng) -> f64 {
        let radius = (-2.0 * (1.0 - rng.unit()).ln()).sqrt();
        radius * (std::f64::consts::TAU * rng.unit()).cos()
    }

    #[test]
    fn components_are_those_that_made_the_pairs() {
        let mut rng = Rng::new(7, "levels", 0);
        let mut logs = Vec::new();
        for _ in 0..2_000 {
            let load = 0.03 * normal(&mut rng);
            for _ in 0..3 {
                let start = load + 0.02 * normal(&mut rng);
                logs.extend((0..2).map(|_| start + 0.01 * normal(&mut rng)));
            }
        }
        let deviations = components(&logs, &[2, 3]).expect("units");
        for (estimate, truth) in deviations.iter().zip([0.01, 0.02, 0.03]) {
            assert!((estimate / truth - 1.0).abs() < 0.05, "{estimate} for {truth}");
        }
        // Two levels: what is not told apart is in the outer one.
        let two = components(&logs, &[6]).expect("units");
        assert!((two[1] - 0.03).abs() < 0.004, "{two:?}");
    }

    #[test]
    fn what_is_alone_is_part_of_the_next_level() {
        let logs = [0.01, 0.03, -0.01, 0.02];
        let parts = components(&logs, &[1]).expect("units");
        assert_eq!(parts[0], 0.0);
        assert!((parts[1] - deviation(&logs).expect("four")).abs() < 1e-12);
        assert_eq!(components(&logs, &[4]), None, "one unit");
        assert_eq!(components(&[0.0; 8], &[2]), Some(vec![0.0, 0.0]));
    }

    #[test]
    fn the_cheapest_numbers_follow_from_costs_and_deviations() {
        // sqrt(60 / 10 * 0.02² / 0.01²) = 4.9: the formula of Kalibera and Jones.
        let allocation = cheapest(&[0.02, 0.01], &[10.0, 60.0], 0.005).expect("numbers");
        assert!((4..=6).contains(&allocation.within[0]), "{allocation:?}");
        // Starts that vary and cost nothing: a pair each. Starts that cost and don't vary: as few as can be.
        assert_eq!(cheapest(&[0.01, 0.02], &[10.0, 0.1], 0.005).expect("numbers").within, [1]);
        let dear = cheapest(&[0.02, 0.0], &[10.0, 600.0], 0.005).expect("numbers");
        assert_eq!(dear.units, LEAST_PAIRS);
        let single_pair = needed(&[0.02, 0.01], &[10.0, 60.0], &[1], 0.005).expect("numbers");
        assert!(single_pair.total_s > allocation.total_s);
        assert_eq!(single_pair.total_s, single_pair.units as f64 * 70.0);
        let three = cheapest(&[0.02, 0.01, 0.001], &[10.0, 30.0, 600.0], 0.005).expect("numbers");
        assert!(three.within[1] > 1, "few loads: {three:?}");
    }
}
