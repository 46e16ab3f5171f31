//! Throughput against concurrency: Gunther's Universal Scalability Law beside plain bounds.
//!
//! `X(N) = λN / (1 + σ(N − 1) + κN(N − 1))`: λ is the throughput of one worker, σ the serial share (contention), κ the
//! cost of agreement between workers (coherency). With κ the curve has a peak at `√((1 − σ)/κ)`, and a fit to a system
//! that is merely saturated has one too: from noise of 2 %, always. So a peak is told only on evidence of trials: those
//! of the most workers lie significantly below those of the best level. The asymptotic bounds (P. Denning and J. Buzen,
//! Computing Surveys 10, 1978) assume nothing of agreement: `X(N) ≤ min(N·X(1), X_most)`. Sources: N. Gunther, Guerrilla
//! Capacity Planning (2007); intervals by drawing trials again (B. Efron, Annals of Statistics 7, 1979).

use crate::{ALPHA, ConfidenceInterval, bootstrap, deviation, mean, t_p};

/// The least for a fit of three parameters.
pub const LEAST_LEVELS: usize = 4;

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Usl {
    /// λ: throughput of one worker.
    pub single: f64,
    /// σ, not below 0.
    pub contention: f64,
    /// κ, not below 0.
    pub coherency: f64,
    pub least_workers: f64,
    pub most_workers: f64,
    /// Share of the throughputs' variance that the curve explains; negative where it explains nothing.
    pub r2: f64,
    /// Largest distance of a point from the curve, as a share of the point.
    pub largest_miss: f64,
}

impl Usl {
    /// Fits (workers, throughput), one point or several for each load level. `None` under [`LEAST_LEVELS`] levels, or
    /// where no such curve fits.
    ///
    /// Least squares of the relative misses of N/X, linear in 1/λ, σ/λ and κ/λ; none of the three may be negative.
    pub fn fit(points: &[(f64, f64)]) -> Option<Usl> {
        let is_usable = |(n, x): &(f64, f64)| *n >= 1.0 && *x > 0.0 && x.is_finite();
        let points: Vec<(f64, f64)> = points.iter().copied().filter(is_usable).collect();
        let mut levels: Vec<f64> = points.iter().map(|point| point.0).collect();
        levels.sort_by(f64::total_cmp);
        levels.dedup();
        if levels.len() < LEAST_LEVELS {
            return None;
        }
        // Divided by N/X, each row says 1 where the curve meets the point.
        let row = |(n, x): &(f64, f64)| [x / n, (n - 1.0) * x / n, (n - 1.0) * x];
        let rows: Vec<[f64; 3]> = points.iter().map(row).collect();
        let [a, b, c] = non_negative_least_squares(&rows)?;
        let mut fit = Usl {
            single: 1.0 / a,
            contention: b / a,
            coherency: c / a,
            least_workers: levels[0],
            most_workers: levels[levels.len() - 1],
            r2: 0.0,
            largest_miss: 0.0,
        };
        let centre = mean(&points.iter().map(|point| point.1).collect::<Vec<_>>())?;
        let total: f64 = points.iter().map(|point| (point.1 - centre).powi(2)).sum();
        let rest: f64 = points.iter().map(|point| (point.1 - fit.at(point.0)).powi(2)).sum();
        fit.r2 = if total > 0.0 { 1.0 - rest / total } else { 0.0 };
        let miss = |point: &(f64, f64)| (fit.at(point.0) / point.1 - 1.0).abs();
        fit.largest_miss = points.iter().map(miss).fold(0.0, f64::max);
        Some(fit)
    }

    pub fn at(&self, workers: f64) -> f64 {
        let agreed = self.coherency * workers * (workers - 1.0);
        self.single * workers / (1.0 + self.contention * (workers - 1.0) + agreed)
    }

    /// The curve at `steps` + 1 places of equal ratio over the measured numbers of workers.
    pub fn curve(&self, steps: usize) -> Vec<(f64, f64)> {
        let span = self.most_workers / self.least_workers;
        let place = |step: usize| self.least_workers * span.powf(step as f64 / steps as f64);
        (0..=steps).map(|step| (place(step), self.at(place(step)))).collect()
    }
}

/// The load level with the most throughput, where trials prove that more workers do less.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ScalingPeak {
    pub workers: f64,
    /// Throughput of the most workers by that of the best level.
    pub left: f64,
    /// One-sided p of "nothing is lost", by the number of levels that could have been best.
    pub p: f64,
}

/// The peak of (workers, throughput) of single trials; `None` without evidence, so always where levels have one trial.
///
/// Welch's test of the logarithms (B. Welch, Biometrika 34, 1947), corrected for the choice of the best level.
pub fn peak(trials: &[(f64, f64)]) -> Option<ScalingPeak> {
    let levels = by_level(trials);
    let (last, others) = levels.split_last()?;
    let centre = |level: &(f64, Vec<f64>)| mean(&level.1).unwrap_or(f64::NEG_INFINITY);
    let best = others.iter().max_by(|a, b| centre(a).total_cmp(&centre(b)))?;
    let lost = centre(best) - centre(last);
    let part = |level: &(f64, Vec<f64>)| {
        let count = level.1.len() as f64;
        Some((deviation(&level.1)?.powi(2) / count, count - 1.0))
    };
    let ((a, a_freedom), (b, b_freedom)) = (part(best)?, part(last)?);
    let freedom = (a + b).powi(2) / (a * a / a_freedom + b * b / b_freedom);
    let one_sided =
        if a + b > 0.0 { t_p(lost / (a + b).sqrt(), freedom as usize) / 2.0 } else { 0.0 };
    let p = one_sided * others.len() as f64;
    (lost > 0.0 && p <= ALPHA).then(|| ScalingPeak { workers: best.0, left: (-lost).exp(), p })
}

/// What bounds throughput without any agreement between workers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AsymptoticBounds {
    /// Throughput of one worker, from the fewest workers measured.
    pub single: f64,
    /// The most throughput of any level.
    pub most: f64,
}

impl AsymptoticBounds {
    /// Geometric means of levels; `None` without trials.
    pub fn of(trials: &[(f64, f64)]) -> Option<AsymptoticBounds> {
        let levels = by_level(trials);
        let centres = levels.iter().filter_map(|level| Some((level.0, mean(&level.1)?.exp())));
        let (fewest, first) = centres.clone().next()?;
        let most = centres.map(|level| level.1).fold(0.0, f64::max);
        Some(AsymptoticBounds { single: first / fewest, most })
    }

    /// From so many workers on, more of them can't do more.
    pub fn workers(&self) -> f64 {
        self.most / self.single
    }
}

/// 95 % intervals of σ and κ by fits to drawn trials; `None` where no level has two trials.
pub fn intervals(trials: &[(f64, f64)], seed: u64) -> Option<[ConfidenceInterval; 2]> {
    let levels = by_level(trials);
    if levels.iter().all(|level| level.1.len() < 2) {
        return None;
    }
    let fit = |drawn: &[Vec<f64>]| {
        let points = levels.iter().zip(drawn);
        let points = points.flat_map(|(level, logs)| logs.iter().map(|log| (level.0, log.exp())));
        let fit = Usl::fit(&points.collect::<Vec<_>>())?;
        Some([fit.contention, fit.coherency])
    };
    let logs: Vec<Vec<f64>> = levels.iter().map(|level| level.1.clone()).collect();
    bootstrap::intervals(&logs, seed, fit)
}

/// Logarithms of throughput by workers, fewest first.
fn by_level(trials: &[(f64, f64)]) -> Vec<(f64, Vec<f64>)> {
    let is_usable = |(n, x): &&(f64, f64)| *n >= 1.0 && *x > 0.0 && x.is_finite();
    let mut levels: Vec<(f64, Vec<f64>)> = Vec::new();
    for (workers, throughput) in trials.iter().filter(is_usable) {
        match levels.iter_mut().find(|level| level.0 == *workers) {
            Some(level) => level.1.push(throughput.ln()),
            None => levels.push((*workers, vec![throughput.ln()])),
        }
    }
    levels.sort_by(|a, b| a.0.total_cmp(&b.0));
    levels
}

/// The non-negative x with the rows' products closest to 1, by a try of every choice of zero parameters. The first is
/// never zero: a system without it would be infinitely fast.
fn non_negative_least_squares(rows: &[[f64; 3]]) -> Option<[f64; 3]> {
    let choices: [&[usize]; 4] = [&[0], &[0, 1], &[0, 2], &[0, 1, 2]];
    let solved = choices.into_iter().filter_map(|free| least_squares(rows, free));
    let allowed = solved.filter(|x| x[0] > 0.0 && x.iter().all(|part| *part >= 0.0));
    let rest = |x: &[f64; 3]| -> f64 {
        let product = |row: &[f64; 3]| row.iter().zip(x).map(|(a, b)| a * b).sum::<f64>();
        rows.iter().map(|row| (1.0 - product(row)).powi(2)).sum()
    };
    allowed.min_by(|x, y| rest(x).total_cmp(&rest(y)))
}

/// Normal equations by Gauss with pivots, columns scaled to the same length.
fn least_squares(rows: &[[f64; 3]], free: &[usize]) -> Option<[f64; 3]> {
    let length = |column: &usize| rows.iter().map(|row| row[*column].powi(2)).sum::<f64>().sqrt();
    let scales: Vec<f64> = free.iter().map(length).collect();
    let n = free.len();
    let mut system = vec![vec![0.0; n + 1]; n];
    for row in rows {
        let scaled: Vec<f64> = free.iter().zip(&scales).map(|(c, scale)| row[*c] / scale).collect();
        for (i, equation) in system.iter_mut().enumerate() {
            for (j, other) in scaled.iter().enumerate() {
                equation[j] += scaled[i] * other;
            }
            equation[n] += scaled[i];
        }
    }
    for step in 0..n {
        let pivot =
            (step..n).max_by(|a, b| system[*a][step].abs().total_cmp(&system[*b][step].abs()))?;
        system.swap(step, pivot);
        if system[step][step].abs() < 1e-12 {
            return None;
        }
        for other in (0..n).filter(|other| *other != step) {
            let factor = system[other][step] / system[step][step];
            let (from, row) = (system[step].clone(), &mut system[other]);
            for (cell, subtracted) in row.iter_mut().zip(&from).skip(step) {
                *cell -= factor * subtracted;
            }
        }
    }
    let mut x = [0.0; 3];
    for (index, column) in free.iter().enumerate() {
        x[*column] = system[index][n] / system[index][index] / scales[index];
    }
    x.iter().all(|part| part.is_finite()).then_some(x)
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_core::Rng;

    fn law(n: f64) -> f64 {
        1_000.0 * n / (1.0 + 0.03 * (n - 1.0) + 0.000_4 * n * (n - 1.0))
    }

    #[test]
    fn noise_of_two_percent_moves_the_parameters_little() {
        let levels = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0];
        for seed in 0..50 {
            let mut rng = Rng::new(seed, "test", 0);
            let points = levels.map(|n| (n, law(n) * (1.0 + 0.04 * (rng.unit() - 0.5))));
            let fit = Usl::fit(&points).expect("levels");
            assert!((fit.single / 1_000.0 - 1.0).abs() < 0.05, "{fit:?}");
            assert!((fit.contention - 0.03).abs() < 0.015, "{fit:?}");
            assert!(fit.r2 > 0.98 && fit.largest_miss < 0.1, "{fit:?}");
        }
    }

    /// Three trials a level, with noise of 2 %.
    fn trials(seed: u64, of: impl Fn(f64) -> f64) -> Vec<(f64, f64)> {
        let mut rng = Rng::new(seed, "trials", 0);
        let mut noise = || 1.0 + 0.02 * ((0..12).map(|_| rng.unit()).sum::<f64>() - 6.0);
        let levels = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0];
        levels.iter().flat_map(|n| [0, 1, 2].map(|_| (*n, of(*n) * noise()))).collect()
    }

    #[test]
    fn a_peak_is_told_on_evidence_alone() {
        // One queue with a delay: saturated from 16 workers on.
        let saturated = [1.0, 1.98, 3.86, 7.11, 9.89, 10.0, 10.0, 10.0];
        let queue = |n: f64| saturated[n.log2() as usize];
        let claims = (0..400).filter(|seed| peak(&trials(*seed, queue)).is_some()).count();
        assert!(claims <= 20, "{claims} of 400");
        let found = (0..100).filter_map(|seed| peak(&trials(seed, law)));
        let found: Vec<ScalingPeak> = found.collect();
        assert!(found.len() > 90, "{}", found.len());
        assert!(found.iter().all(|peak| peak.workers == 32.0 || peak.workers == 64.0));
        assert_eq!(peak(&[(1.0, 1.0), (2.0, 3.0), (4.0, 2.0), (8.0, 1.0)]), None);
        let bounds = AsymptoticBounds::of(&trials(1, queue)).expect("trials");
        assert!((9.5..10.8).contains(&bounds.workers()), "{bounds:?}");
    }

    #[test]
    fn intervals_hold_the_law() {
        let held = (0..20).filter(|seed| {
            let [contention, coherency] = intervals(&trials(*seed, law), *seed).expect("trials");
            contention.contains(0.03) && coherency.contains(0.000_4)
        });
        assert!(held.count() >= 14);
        assert_eq!(intervals(&[(1.0, 1.0), (2.0, 2.0), (4.0, 3.0), (8.0, 4.0)], 1), None);
    }

    #[test]
    fn the_curve_ends_where_measured_points_do() {
        let points = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0].map(|n| (n, law(n)));
        let fit = Usl::fit(&points).expect("levels");
        let curve = fit.curve(10);
        assert_eq!(curve.len(), 11);
        assert!((curve[0].0 - 1.0).abs() < 1e-9 && (curve[10].0 - 32.0).abs() < 1e-9);
    }

    #[test]
    fn perfect_scaling_has_no_contention() {
        let fit = Usl::fit(&[1.0, 2.0, 4.0, 8.0].map(|n| (n, 500.0 * n))).expect("levels");
        assert!(fit.contention < 1e-9 && fit.coherency < 1e-9, "{fit:?}");
    }

    #[test]
    fn super_linear_points_do_not_make_parameters_negative() {
        let fit = Usl::fit(&[(1.0, 100.0), (2.0, 260.0), (4.0, 600.0), (8.0, 1300.0)]);
        let fit = fit.expect("levels");
        assert!(fit.contention >= 0.0 && fit.coherency >= 0.0, "{fit:?}");
    }

    #[test]
    fn three_levels_are_too_few() {
        assert_eq!(Usl::fit(&[(1.0, 1.0), (2.0, 2.0), (4.0, 3.0), (4.0, 3.1)]), None);
        assert_eq!(Usl::fit(&[]), None);
    }
}
