//! Scales and their ticks.

/// Maps values to 0 (begin of the axis) to 1 (its end).
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum AxisScale {
    Linear { from: f64, to: f64 },
    Log { from: f64, to: f64 },
}

impl Default for AxisScale {
    fn default() -> Self {
        AxisScale::Linear { from: 0.0, to: 1.0 }
    }
}

impl AxisScale {
    /// A linear scale from 0 (or `lowest`, when that is below) to the tick above `highest`, for
    /// about `ticks` ticks.
    pub fn from_zero(lowest: f64, highest: f64, ticks: usize) -> Self {
        let from = lowest.min(0.0);
        let to = if highest > from { highest } else { from + 1.0 };
        let step = step((to - from) / ticks.max(1) as f64);
        AxisScale::Linear { from: (from / step).floor() * step, to: (to / step).ceil() * step }
    }

    /// A logarithmic scale that holds both values, which must be above 0, at its ends.
    pub fn log(lowest: f64, highest: f64) -> Self {
        let from = lowest.max(f64::MIN_POSITIVE);
        AxisScale::Log { from, to: if highest > from { highest } else { from * 10.0 } }
    }

    /// A logarithmic scale that ends at 1, 2 or 5 times a power of ten.
    pub fn round_log(lowest: f64, highest: f64) -> Self {
        let below = ladder(&ROUND, lowest, lowest * 10.0).into_iter().rfind(|at| *at <= lowest);
        let above =
            ladder(&ROUND, highest / 10.0, highest * 10.0).into_iter().find(|at| *at >= highest);
        AxisScale::log(below.unwrap_or(lowest), above.unwrap_or(highest))
    }

    pub fn position(self, value: f64) -> f64 {
        match self {
            AxisScale::Linear { from, to } => (value - from) / (to - from),
            AxisScale::Log { from, to } => (value.max(from / 2.0) / from).ln() / (to / from).ln(),
        }
    }

    pub fn ends(self) -> (f64, f64) {
        match self {
            AxisScale::Linear { from, to } | AxisScale::Log { from, to } => (from, to),
        }
    }

    pub fn is_log(self) -> bool {
        matches!(self, AxisScale::Log { .. })
    }

    /// Round values for about `wanted` ticks, all within the scale.
    pub fn ticks(self, wanted: usize) -> Vec<f64> {
        let (from, to) = self.ends();
        match self {
            AxisScale::Linear { .. } => {
                let step = step((to - from) / wanted.max(1) as f64);
                let first = (from / step).ceil() as i64;
                let last = (to / step + 1e-9).floor() as i64;
                (first..=last).map(|index| index as f64 * step).collect()
            }
            AxisScale::Log { .. } => {
                let near = 1e-9;
                let is_within = |at: &f64| *at >= from * (1.0 - near) && *at <= to * (1.0 + near);
                let ladders: [&[f64]; 3] = [&[1.0], &ROUND, &FINE];
                let [powers, round, fine] = ladders.map(|factors| {
                    ladder(factors, from, to).into_iter().filter(is_within).collect::<Vec<f64>>()
                });
                match round.len() {
                    few if few < FEWEST => fine,
                    many if many > wanted && powers.len() > 1 => powers,
                    _ => round,
                }
            }
        }
    }
}

/// The smallest of 1, 2, 5 times a power of ten that is at least `rough`.
fn step(rough: f64) -> f64 {
    if !(rough.is_finite() && rough > 0.0) {
        return 1.0;
    }
    let power = 10_f64.powf(rough.log10().floor());
    let factor = rough / power;
    let round = [1.0, 2.0, 5.0].into_iter().find(|round| factor <= round * (1.0 + 1e-9));
    round.unwrap_or(10.0) * power
}

/// Factors of the ticks of a logarithmic scale.
const ROUND: [f64; 3] = [1.0, 2.0, 5.0];
/// The same where fewer than [`FEWEST`] of those lie on it: fewer say nothing of what lies between them.
const FINE: [f64; 6] = [1.0, 1.5, 2.0, 3.0, 5.0, 7.0];
const FEWEST: usize = 4;

/// These factors times powers of ten from one decade below `from` to one above `to`.
fn ladder(factors: &[f64], from: f64, to: f64) -> Vec<f64> {
    let decade = |value: f64| value.max(f64::MIN_POSITIVE).log10().floor() as i32;
    let decades = decade(from) - 1..=decade(to) + 1;
    let of_decade = |power| factors.iter().map(move |factor| factor * 10_f64.powi(power));
    decades.flat_map(of_decade).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(found: &[f64], wanted: &[f64]) {
        let same = |(a, b): (&f64, &f64)| (a - b).abs() <= 1e-9 * b.abs().max(1.0);
        assert!(found.len() == wanted.len() && found.iter().zip(wanted).all(same), "{found:?}");
    }

    #[test]
    fn linear_scales_begin_at_zero_and_end_round() {
        let scale = AxisScale::from_zero(120.0, 873.0, 5);
        assert_eq!(scale.ends(), (0.0, 1000.0));
        near(&scale.ticks(5), &[0.0, 200.0, 400.0, 600.0, 800.0, 1000.0]);
        assert!((scale.position(250.0) - 0.25).abs() < 1e-12);
        near(&AxisScale::from_zero(0.0, 0.0, 2).ticks(2), &[0.0, 0.5, 1.0]);
    }

    #[test]
    fn negative_values_have_room() {
        let (from, to) = AxisScale::from_zero(-7.0, 30.0, 4).ends();
        assert!(from <= -7.0 && to >= 30.0);
    }

    #[test]
    fn the_last_tick_is_the_end_of_the_axis() {
        for highest in [0.7, 1.0, 3.3, 5.9, 7.1, 9.4, 6_100.0, 123_456.0] {
            for wanted in [2, 3, 5] {
                let scale = AxisScale::from_zero(0.0, highest, wanted);
                let last = *scale.ticks(wanted).last().expect("ticks");
                assert!((last / scale.ends().1 - 1.0).abs() < 1e-9, "{highest} {wanted}");
            }
        }
    }

    #[test]
    fn log_ticks_are_1_2_5() {
        near(&AxisScale::round_log(1.3, 18.0).ticks(8), &[1.0, 2.0, 5.0, 10.0, 20.0]);
        near(
            &AxisScale::round_log(0.011, 9_000.0).ticks(6),
            &[0.01, 0.1, 1.0, 10.0, 100.0, 1000.0, 10_000.0],
        );
        assert!((AxisScale::log(1.0, 100.0).position(10.0) - 0.5).abs() < 1e-12);
    }

    #[test]
    fn a_short_log_scale_has_ticks_between_them() {
        near(&AxisScale::log(0.25, 4.0).ticks(8), &[0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0]);
    }

    #[test]
    fn values_below_a_log_scale_do_not_run_away() {
        assert!(AxisScale::log(1.0, 100.0).position(0.0) > -0.2);
    }
}
