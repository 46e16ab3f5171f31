//! Tests for marks that the order of trials left on them: dependence of successive trials, drift over a session, and
//! what it costs to be the second of a pair.
//!
//! All three are permutation tests of ranks: figures change places within their group (the same target at the same
//! load), so that p is exact whatever the distribution of trials is, and no short session fires by chance. A family of
//! such tests is judged at [`FAMILY_ALPHA`] together (Bonferroni). Sources: E. Pitman, Supplement to the Journal of the
//! Royal Statistical Society 4 (1937); A. Wald and J. Wolfowitz, Annals of Mathematical Statistics 14 (1943), for the
//! first; J. Besag and P. Clifford, Biometrika 78 (1991), for when to stop permuting.

use crate::statistics::{MOST_TREND_POINTS, deviation, median, trend_line};
use dyno_core::Rng;

/// The chance that any test of a run's family fires although there is nothing.
pub const FAMILY_ALPHA: f64 = 0.01;
/// Fewer figures say nothing of their order.
pub const LEAST_PLACED: usize = 12;
const PERMUTATIONS: usize = 19_999;
/// Once this many are as extreme as what was found, to both sides, p is not a small one.
const ENOUGH: usize = 100;

/// A figure in the order in which figures were made.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PlacedFigure {
    /// Figures of one group differ by noise and by their place alone.
    pub group: usize,
    /// The logarithm of the figure.
    pub log: f64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HistoryMark {
    /// The correlation of successive figures, or the change as a share: -0.02 is 2% less.
    pub size: f64,
    /// Two-sided p of no mark.
    pub p: f64,
    pub figures: usize,
}

/// Tests whether each figure resembles the one before it, apart from a drift of all; `None` under [`LEAST_PLACED`]
/// figures.
pub fn lag1(figures: &[PlacedFigure], seed: u64) -> Option<HistoryMark> {
    let slope = Permuted::new(figures)?.slope()?;
    let without_drift = figures
        .iter()
        .enumerate()
        .map(|(at, figure)| PlacedFigure { log: figure.log - slope * at as f64, ..*figure });
    let figures: Vec<PlacedFigure> = without_drift.collect();
    let session = Permuted::new(&figures)?;
    let size = session.successive_correlation(&session.ranks);
    let p = session.p(seed, |values| session.successive_correlation(values));
    Some(HistoryMark { size, p, figures: figures.len() })
}

/// Amount by which figures grew from the first to the last; `None` under [`LEAST_PLACED`] figures.
pub fn drift(figures: &[PlacedFigure], seed: u64) -> Option<HistoryMark> {
    let session = Permuted::new(figures)?;
    let size = (session.slope()? * (figures.len() - 1) as f64).exp_m1();
    let p = session.p(seed, |values| {
        values.iter().zip(&session.places).map(|(value, place)| value * place).sum()
    });
    Some(HistoryMark { size, p, figures: figures.len() })
}

/// The cost of being second in a pair. `pairs` are log ratios, candidate by baseline, with whether the candidate was
/// second; `None` under [`LEAST_PLACED`] / 2 pairs, or if one of the orders is missing.
pub fn second_of_pair(pairs: &[(PlacedFigure, bool)], seed: u64) -> Option<HistoryMark> {
    let figures: Vec<PlacedFigure> = pairs.iter().map(|(figure, _)| *figure).collect();
    let session = Permuted::with_minimum(&figures, LEAST_PLACED / 2)?;
    let shifts: Vec<f64> = differences(&session.centered, pairs).collect();
    // Candidates gain by it what they lose by being first.
    let size = (median(&shifts)? / 2.0).exp_m1();
    let p = session.p(seed, |values| values_with(values, pairs, true).sum());
    Some(HistoryMark { size, p, figures: figures.len() })
}

/// Between all pairs with the candidate second and all with it first (Hodges and Lehmann).
fn differences<'a>(
    centered: &'a [f64],
    pairs: &'a [(PlacedFigure, bool)],
) -> impl Iterator<Item = f64> + 'a {
    values_with(centered, pairs, true).flat_map(move |second| {
        values_with(centered, pairs, false).map(move |first| second - first)
    })
}

/// The values of the pairs that have the candidate second, or first.
fn values_with<'a>(
    values: &'a [f64],
    pairs: &'a [(PlacedFigure, bool)],
    is_candidate_second: bool,
) -> impl Iterator<Item = f64> + 'a {
    let placed_values = values.iter().zip(pairs);
    placed_values
        .filter(move |(_, (_, is_second))| *is_second == is_candidate_second)
        .map(|(value, _)| *value)
}

/// Figures that may change places within their groups.
struct Permuted {
    /// Without the medians of their groups.
    centered: Vec<f64>,
    /// Their ranks around zero.
    ranks: Vec<f64>,
    /// The places of each group.
    groups: Vec<Vec<usize>>,
    /// The place of each figure alongside the mean of its group's.
    places: Vec<f64>,
}

impl Permuted {
    fn new(figures: &[PlacedFigure]) -> Option<Permuted> {
        Permuted::with_minimum(figures, LEAST_PLACED)
    }

    fn with_minimum(figures: &[PlacedFigure], min_figures: usize) -> Option<Permuted> {
        if figures.len() < min_figures || figures.iter().any(|figure| !figure.log.is_finite()) {
            return None;
        }
        let last_group = figures.iter().map(|figure| figure.group).max()?;
        let mut groups = vec![Vec::new(); last_group + 1];
        for (place, figure) in figures.iter().enumerate() {
            groups[figure.group].push(place);
        }
        let mut centered: Vec<f64> = figures.iter().map(|figure| figure.log).collect();
        let mut offsets: Vec<f64> = (0..figures.len()).map(|place| place as f64).collect();
        for places in groups.iter().filter(|places| !places.is_empty()) {
            let group_values: Vec<f64> = places.iter().map(|place| centered[*place]).collect();
            let middle = median(&group_values)?;
            let mean = places.iter().sum::<usize>() as f64 / places.len() as f64;
            for place in places {
                centered[*place] -= middle;
                offsets[*place] -= mean;
            }
        }
        deviation(&centered).filter(|deviation| *deviation > 0.0)?;
        let ranks = ranks(&centered);
        Some(Permuted { centered, ranks, groups, places: offsets })
    }

    /// Growth of the logarithm from one place to the next.
    fn slope(&self) -> Option<f64> {
        let stride = self.places.len().div_ceil(MOST_TREND_POINTS);
        let points = self.places.iter().copied().zip(self.centered.iter().copied());
        Some(trend_line(&points.step_by(stride).collect::<Vec<_>>())?.slope)
    }

    /// The residuals of a straight line through them, with one slope for all groups (least squares).
    fn without_line(&self, values: &[f64]) -> Vec<f64> {
        let slope: f64 = values.iter().zip(&self.places).map(|(value, place)| value * place).sum();
        let squares: f64 = self.places.iter().map(|place| place * place).sum();
        let placed_values = values.iter().zip(&self.places);
        placed_values.map(|(value, place)| value - slope / squares * place).collect()
    }

    /// Returns the correlation between neighboring residuals (lag 1), from -1 to 1; 0 without residuals.
    fn successive_correlation(&self, values: &[f64]) -> f64 {
        let residuals = self.without_line(values);
        let together: f64 = residuals.windows(2).map(|two| two[0] * two[1]).sum();
        let total: f64 = residuals.iter().map(|value| value * value).sum();
        if total > 0.0 { together / total } else { 0.0 }
    }

    /// Two-sided p of a statistic of the figures in their order.
    fn p(&self, seed: u64, statistic: impl Fn(&[f64]) -> f64) -> f64 {
        let observed = statistic(&self.ranks);
        let slack = 1e-9 * observed.abs();
        let mut rng = Rng::new(seed, "history", 0);
        let mut values = self.ranks.clone();
        let (mut below, mut above, mut draws) = (1, 1, 1);
        while draws <= PERMUTATIONS && below.min(above) < ENOUGH {
            for places in &self.groups {
                for last in (1..places.len()).rev() {
                    values.swap(places[last], places[rng.uniform(0, last as u64) as usize]);
                }
            }
            let permuted = statistic(&values);
            below += usize::from(permuted <= observed + slack);
            above += usize::from(permuted >= observed - slack);
            draws += 1;
        }
        (2.0 * below.min(above) as f64 / draws as f64).min(1.0)
    }
}

/// From 1, around zero; ties share their mean.
fn ranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|a, b| values[*a].total_cmp(&values[*b]));
    let mut ranks = vec![0.0; values.len()];
    let middle = (values.len() as f64 + 1.0) / 2.0;
    let mut below = 0;
    for tied in order.chunk_by(|a, b| values[*a] == values[*b]) {
        let rank = below as f64 + (tied.len() as f64 + 1.0) / 2.0;
        tied.iter().for_each(|place| ranks[*place] = rank - middle);
        below += tied.len();
    }
    ranks
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Figures of two groups in turns, by their place.
    fn figures(count: usize, log: impl Fn(usize) -> f64) -> Vec<PlacedFigure> {
        (0..count)
            .map(|at| PlacedFigure { group: at % 2, log: (at % 2) as f64 + log(at) })
            .collect()
    }

    fn trial_noise(at: usize) -> f64 {
        0.01 * Rng::new(at as u64, "noise", 0).unit()
    }

    #[test]
    fn a_drift_is_found_with_its_size() {
        let mark =
            drift(&figures(20, |at| trial_noise(at) + 0.1 * at as f64 / 19.0), 1).expect("figures");
        assert!((mark.size - 0.1_f64.exp_m1()).abs() < 0.02 && mark.p < 0.001, "{mark:?}");
        let none = drift(&figures(20, trial_noise), 1).expect("figures");
        assert!(none.p > 0.01, "{none:?}");
    }

    #[test]
    fn waves_are_dependence_and_a_drift_is_none() {
        let waves = lag1(&figures(40, |at| (at as f64 / 4.0).sin()), 1).expect("figures");
        assert!(waves.size > 0.5 && waves.p < 0.001, "{waves:?}");
        let drift = lag1(&figures(40, |at| trial_noise(at) + at as f64), 1).expect("figures");
        assert!(drift.p > 0.01, "{drift:?}");
    }

    fn placed_pairs(count: usize) -> Vec<(PlacedFigure, bool)> {
        let pairs = (0..count).map(|at| {
            let is_second = !at.is_multiple_of(3);
            let log = 0.5 + trial_noise(at) / 10.0 + if is_second { -0.02 } else { 0.02 };
            (PlacedFigure { group: 0, log }, is_second)
        });
        pairs.collect()
    }

    #[test]
    fn the_second_of_a_pair_loses_two_percent() {
        let mark = second_of_pair(&placed_pairs(20), 1).expect("pairs");
        assert!((mark.size + 0.02).abs() < 0.003 && mark.p < 0.001, "{mark:?}");
        let undecided = second_of_pair(&placed_pairs(6), 1).expect("pairs");
        assert!(undecided.p > 0.05, "six pairs can't tell: {undecided:?}");
        assert_eq!(second_of_pair(&placed_pairs(5), 1), None);
    }

    #[test]
    fn what_never_varies_has_no_history() {
        assert_eq!(drift(&figures(20, |_| 0.0), 1), None);
        assert_eq!(lag1(&figures(11, trial_noise), 1), None);
    }
}
