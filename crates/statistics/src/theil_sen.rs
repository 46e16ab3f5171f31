//! A straight line that resists outliers: the median of the slopes between all pairs of points.

use crate::{median, normal_p};

/// The cost grows with their square.
pub const MOST_POINTS: usize = 400;

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TrendLine {
    /// Growth of y per unit of x.
    pub slope: f64,
    /// Two-sided p of no trend (Mann-Kendall).
    pub p: f64,
}

/// The line through points (x, y); `None` under four points with different x, or above [`MOST_POINTS`].
pub fn line(points: &[(f64, f64)]) -> Option<TrendLine> {
    if points.len() < 4 || points.len() > MOST_POINTS {
        return None;
    }
    let mut slopes = Vec::with_capacity(points.len() * (points.len() - 1) / 2);
    let mut balance = 0_i64;
    for (index, (x, y)) in points.iter().enumerate() {
        for (other_x, other_y) in &points[index + 1..] {
            let slope = (other_y - y) / (other_x - x);
            if slope.is_finite() {
                balance += i64::from(slope > 0.0) - i64::from(slope < 0.0);
                slopes.push(slope);
            }
        }
    }
    slopes.sort_by(f64::total_cmp);
    let slope = median(&slopes)?;
    let n = points.len() as f64;
    let error = (n * (n - 1.0) * (2.0 * n + 5.0) / 18.0).sqrt();
    let continuity = balance.signum() as f64;
    let p = normal_p((balance as f64 - continuity) / error);
    Some(TrendLine { slope, p })
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_core::Rng;

    #[test]
    fn outliers_do_not_bend_it() {
        let mut points: Vec<(f64, f64)> =
            (0..30).map(|x| (f64::from(x), 5.0 + 2.0 * f64::from(x))).collect();
        points[7].1 = 1e6;
        points[20].1 = -1e6;
        let line = line(&points).expect("points");
        assert!((line.slope - 2.0).abs() < 1e-9, "{line:?}");
        assert!(line.p < 1e-6);
    }

    #[test]
    fn noise_alone_has_a_trend_in_one_of_twenty() {
        let mut rng = Rng::new(3, "test", 0);
        let trends = (0..1000).filter(|_| {
            let points: Vec<(f64, f64)> = (0..20).map(|x| (f64::from(x), rng.unit())).collect();
            let line = line(&points).expect("points");
            line.p < 0.05
        });
        let trends = trends.count();
        assert!((25..=75).contains(&trends), "{trends} of 1000");
    }

    #[test]
    fn too_few_points_have_no_line() {
        assert_eq!(line(&[(0.0, 1.0), (1.0, 2.0), (2.0, 3.0)]), None);
        assert_eq!(line(&[(1.0, 1.0); 9]), None);
    }
}
