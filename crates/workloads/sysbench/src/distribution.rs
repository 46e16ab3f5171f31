//! Random numbers as sysbench draws them.
//!
//! The shapes are those of sysbench 1.0.20 (and of 0.5 for its own scripts), written from the
//! published formulas. The generator behind them is dyno's own, so the numbers differ, their
//! distribution does not.

use dyno_core::Rng;

dyno_core::named! {
    /// Distribution of ids and keys over their range (`--rand-type`).
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum KeyDistribution {
        /// All values alike.
        Uniform = "uniform",
        /// The mean of several uniform numbers: a bell around the middle.
        Gaussian = "gaussian",
        /// Most draws hit a small window in the middle. The default of sysbench 1.0 and 0.5.
        Special = "special",
        /// A power law: the lowest values are the hottest.
        Pareto = "pareto",
        /// A Zipf law: the lowest values are the hottest. Known from sysbench's master branch.
        Zipfian = "zipfian",
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RandomOptions {
    pub distribution: KeyDistribution,
    /// Uniform numbers per mean, for gaussian and special; at least 1 (`--rand-spec-iter`).
    pub iterations: u32,
    /// Width of the hot window of special, percent of the range, 0..=100 (`--rand-spec-pct`).
    pub hot_width_percent: u32,
    /// Share of special's draws that go to the hot window, percent, 0..=100 (`--rand-spec-res`).
    pub hot_share_percent: u32,
    /// The h of pareto, between 0 and 1 (`--rand-pareto-h`).
    pub pareto_h: f64,
    /// The exponent of zipfian, at least 0 (`--rand-zipfian-exp`).
    pub zipfian_exponent: f64,
}

impl Default for RandomOptions {
    fn default() -> Self {
        RandomOptions {
            distribution: KeyDistribution::Special,
            iterations: 12,
            hot_width_percent: 1,
            hot_share_percent: 75,
            pareto_h: 0.2,
            zipfian_exponent: 0.8,
        }
    }
}

/// Whose arithmetic is followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Era {
    /// sysbench 1.0.20.
    V1,
    /// sysbench 0.5: integers throughout, and a special distribution that fills its whole window.
    V05,
}

/// Draws integers of one distribution from one range; what does not change between draws is
/// computed once.
#[derive(Clone, Copy, Debug)]
pub struct Sampler {
    low: u64,
    high: u64,
    rule: Rule,
}

#[derive(Clone, Copy, Debug)]
enum Rule {
    Uniform,
    Gaussian { iterations: u32 },
    GaussianV05 { iterations: u32 },
    Special { iterations: u32, cold: f64, hot_width: f64, hot_start: f64 },
    SpecialV05 { iterations: u32, cold: f64, hot_width: u64, hot_start: u64 },
    Pareto { power: f64 },
    Zipfian(Zipf),
}

impl Sampler {
    /// A sampler over `low..=high`. Parameters outside of what [`RandomOptions`] allows and empty
    /// ranges give values inside the range all the same.
    pub fn new(random: &RandomOptions, era: Era, low: u32, high: u32) -> Self {
        let (low, high) = (u64::from(low), u64::from(high.max(low)));
        let iterations = random.iterations.max(1);
        let cold = f64::from(100_u32.saturating_sub(random.hot_share_percent)) / 100.0;
        let percent = u64::from(random.hot_width_percent.min(100));
        let rule = match (random.distribution, era) {
            (KeyDistribution::Uniform, _) => Rule::Uniform,
            (KeyDistribution::Gaussian, Era::V1) => Rule::Gaussian { iterations },
            (KeyDistribution::Gaussian, Era::V05) => Rule::GaussianV05 { iterations },
            (KeyDistribution::Special, Era::V1) => {
                let span = (high - low) as f64;
                let hot_width = span * percent as f64 / 100.0;
                let hot_start = span / 2.0 - span * percent as f64 / 200.0;
                Rule::Special { iterations, cold, hot_width, hot_start }
            }
            (KeyDistribution::Special, Era::V05) => {
                let values = high - low + 1;
                let hot_width = (values * percent / 100).max(1);
                let hot_start = values / 2 - values * percent / 200;
                Rule::SpecialV05 { iterations, cold, hot_width, hot_start }
            }
            (KeyDistribution::Pareto, _) => {
                let h = random.pareto_h;
                Rule::Pareto { power: h.ln() / (1.0 - h).ln() }
            }
            (KeyDistribution::Zipfian, _) => {
                Rule::Zipfian(Zipf::new(high - low + 1, random.zipfian_exponent))
            }
        };
        Sampler { low, high, rule }
    }

    /// The next value, within the range the sampler was made for.
    #[inline]
    pub fn sample(&self, rng: &mut Rng) -> i64 {
        let values = self.high - self.low + 1;
        let offset = match self.rule {
            Rule::Uniform => rng.uniform(0, values - 1),
            Rule::Gaussian { iterations } => (random_mean(rng, iterations) * values as f64) as u64,
            Rule::GaussianV05 { iterations } => integer_mean(rng, iterations, values),
            Rule::Special { iterations, cold, hot_width, hot_start } => {
                let u = rng.unit();
                if u < cold {
                    ((values - 1) as f64 * random_mean(rng, iterations)) as u64
                } else {
                    // sysbench uses the same u again, which is at least `cold` here: hot values
                    // fill only the upper part of the window.
                    (u * (hot_width + 1.0) + hot_start) as u64
                }
            }
            Rule::SpecialV05 { iterations, cold, hot_width, hot_start } => {
                if rng.unit() < cold {
                    integer_mean(rng, iterations, values)
                } else {
                    hot_start + rng.uniform(0, hot_width - 1)
                }
            }
            Rule::Pareto { power } => (values as f64 * rng.unit().powf(power)) as u64,
            Rule::Zipfian(zipf) => zipf.sample(|| rng.unit()) - 1,
        };
        (self.low + offset).min(self.high) as i64
    }
}

#[inline]
fn random_mean(rng: &mut Rng, iterations: u32) -> f64 {
    // Each word of the stream has two numbers of 32 bits: twice as fast, and finer than any table.
    let halves = (0..iterations / 2).map(|_| {
        let word = rng.next_u64();
        (word >> 32) + (word & u64::from(u32::MAX))
    });
    let mut sum: u64 = halves.sum();
    if iterations % 2 == 1 {
        sum += rng.next_u64() >> 32;
    }
    sum as f64 / (f64::from(iterations) * (1_u64 << 32) as f64)
}

#[inline]
fn integer_mean(rng: &mut Rng, iterations: u32, values: u64) -> u64 {
    let sum: u64 = (0..iterations).map(|_| rng.uniform(0, values - 1)).sum();
    sum / u64::from(iterations)
}

/// Rejection-inversion sampling of a Zipf law (W. Hoermann, G. Derflinger, 1996).
#[derive(Clone, Copy, Debug)]
pub struct Zipf {
    values: f64,
    exponent: f64,
    /// Integral of the hat at the two ends of the range.
    first: f64,
    last: f64,
    shortcut: f64,
}

impl Zipf {
    /// The law over 1 to `values`, with an exponent of at least 0.
    pub fn new(values: u64, exponent: f64) -> Self {
        let zipf = Zipf { values: values as f64, exponent, first: 0.0, last: 0.0, shortcut: 0.0 };
        Zipf {
            first: zipf.integral(1.5) - 1.0,
            last: zipf.integral(values as f64 + 0.5),
            shortcut: 2.0 - zipf.inverse(zipf.integral(2.5) - zipf.density(2.0)),
            ..zipf
        }
    }

    /// Relative probability of `x`, as a real number.
    fn density(&self, x: f64) -> f64 {
        x.powf(-self.exponent)
    }

    /// Integral of the density, up to a constant.
    fn integral(&self, x: f64) -> f64 {
        let power = 1.0 - self.exponent;
        if power.abs() < 1e-9 { x.ln() } else { (x.powf(power) - 1.0) / power }
    }

    /// The `x` with this integral.
    fn inverse(&self, y: f64) -> f64 {
        let power = 1.0 - self.exponent;
        if power.abs() < 1e-9 { y.exp() } else { (1.0 + y * power).max(0.0).powf(1.0 / power) }
    }

    /// A value in `1..=values`, made of numbers from 0 up to but not 1.
    #[inline]
    pub fn sample(&self, mut unit: impl FnMut() -> f64) -> u64 {
        loop {
            let y = self.last + unit() * (self.first - self.last);
            let x = self.inverse(y);
            let k = (x + 0.5).floor().clamp(1.0, self.values);
            if k - x <= self.shortcut || y >= self.integral(k + 0.5) - self.density(k) {
                return k as u64;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DRAWS: u32 = 200_000;

    /// Numbers drawn from one seed.
    fn draws(random: RandomOptions, era: Era, low: u32, high: u32) -> Vec<i64> {
        let sampler = Sampler::new(&random, era, low, high);
        let mut rng = Rng::new(11, "distribution", 0);
        (0..DRAWS).map(|_| sampler.sample(&mut rng)).collect()
    }

    fn with_distribution(distribution: KeyDistribution) -> RandomOptions {
        RandomOptions { distribution, ..RandomOptions::default() }
    }

    /// Share of the values in this range.
    fn share(values: &[i64], range: std::ops::RangeInclusive<i64>) -> f64 {
        values.iter().filter(|value| range.contains(value)).count() as f64 / values.len() as f64
    }

    #[test]
    fn special_reuses_its_number_and_fills_three_quarters_of_the_window() {
        let values = draws(with_distribution(KeyDistribution::Special), Era::V1, 1, 25_000);
        // 75% hot, plus the bell of the cold ones: sigma is 25,000 / 12, of which 189 ids in the
        // middle hold 25% * 189 / (2083 * 2.507) = 0.9%.
        let hot = share(&values, 12_438..=12_626);
        assert!((hot - 0.759).abs() < 0.005, "{hot}");
        // The lower quarter of the window, which the reuse leaves to the bell: 0.3%.
        let cold = share(&values, 12_375..=12_437);
        assert!(cold < 0.005, "{cold}");
        let hot_values: Vec<_> =
            values.iter().copied().filter(|v| (12_438..=12_626).contains(v)).collect();
        assert_eq!(hot_values.iter().min(), Some(&12_438));
        assert_eq!(hot_values.iter().max(), Some(&12_626));
    }

    #[test]
    fn special_of_0_5_fills_the_whole_window_evenly() {
        let values = draws(with_distribution(KeyDistribution::Special), Era::V05, 1, 25_000);
        // 25,000 values: the window starts at 1 + 12,500 - 125 and is 250 wide.
        let window = 12_376..=12_625_i64;
        let hot = share(&values, window.clone());
        assert!((hot - 0.762).abs() < 0.005, "{hot}");
        let lower = share(&values, 12_376..=12_500) / hot;
        assert!((lower - 0.5).abs() < 0.01, "{lower}");
    }

    #[test]
    fn uniform_and_gaussian_have_their_means_and_spreads() {
        for (distribution, era, deviation) in [
            (KeyDistribution::Uniform, Era::V1, 10_000.0 / 12_f64.sqrt()),
            (KeyDistribution::Uniform, Era::V05, 10_000.0 / 12_f64.sqrt()),
            (KeyDistribution::Gaussian, Era::V1, 10_000.0 / 12.0),
            (KeyDistribution::Gaussian, Era::V05, 10_000.0 / 12.0),
        ] {
            let values = draws(with_distribution(distribution), era, 1, 10_000);
            let mean = values.iter().sum::<i64>() as f64 / f64::from(DRAWS);
            let variance = values.iter().map(|&v| (v as f64 - mean).powi(2)).sum::<f64>();
            let measured_deviation = (variance / f64::from(DRAWS)).sqrt();
            assert!((mean - 5_000.5).abs() < 30.0, "{distribution:?} {era:?} mean {mean}");
            assert!(
                (measured_deviation / deviation - 1.0).abs() < 0.02,
                "{distribution:?} {era:?} {measured_deviation}"
            );
        }
    }

    #[test]
    fn pareto_gives_the_first_h_of_the_values_all_but_h_of_the_draws() {
        let values = draws(with_distribution(KeyDistribution::Pareto), Era::V1, 1, 10_000);
        // The meaning of h = 0.2: 80% of the draws fall on the first 20% of the range.
        let first_fifth = share(&values, 1..=2_000);
        assert!((first_fifth - 0.8).abs() < 0.005, "{first_fifth}");
    }

    #[test]
    fn zipfian_follows_its_law() {
        for exponent in [0.0, 0.5, 0.8, 1.0, 1.5] {
            let random = RandomOptions {
                zipfian_exponent: exponent,
                ..with_distribution(KeyDistribution::Zipfian)
            };
            let values = draws(random, Era::V1, 1, 1_000);
            let weights: Vec<f64> = (1..=1_000).map(|k| f64::from(k).powf(-exponent)).collect();
            let total: f64 = weights.iter().sum();
            for (from, to) in [(1, 1), (2, 2), (3, 10), (11, 100), (101, 1_000)] {
                let expected = weights[from as usize - 1..to as usize].iter().sum::<f64>() / total;
                let measured_share = share(&values, from..=to);
                assert!(
                    (measured_share - expected).abs() < 0.005,
                    "{exponent} {from}: {measured_share} {expected}"
                );
            }
        }
    }

    #[test]
    fn every_distribution_stays_inside_its_range() {
        for distribution in KeyDistribution::ALL {
            for era in [Era::V1, Era::V05] {
                for (low, high) in [(1, 1), (0, 1), (1, 2), (5, 3), (7, 107), (0, u32::MAX)] {
                    for percent in [0, 1, 50, 100] {
                        let random = RandomOptions {
                            hot_width_percent: percent,
                            hot_share_percent: 100 - percent,
                            ..with_distribution(distribution)
                        };
                        let sampler = Sampler::new(&random, era, low, high);
                        let mut rng = Rng::new(3, "range", 0);
                        for _ in 0..2_000 {
                            let value = sampler.sample(&mut rng);
                            let range = i64::from(low)..=i64::from(high.max(low));
                            assert!(range.contains(&value), "{distribution:?} {era:?} {value}");
                        }
                    }
                }
            }
        }
    }
}
