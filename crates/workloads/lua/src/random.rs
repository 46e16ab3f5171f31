//! Random numbers as sysbench 1.0.20 gives them to scripts: for a seed, the same values.
//!
//! A worker's generator is xoroshiro128+ (Blackman and Vigna), whose state are four numbers of the C library's
//! `random()`: worker 0 has the first four after `srandom(seed)`, worker 1 the next four. The rules of the
//! distributions are those of the original, in its 32-bit arithmetic that wraps around.

use dyno_sysbench::{KeyDistribution, RandomOptions, Zipf};
use std::sync::atomic::{AtomicU32, Ordering};

/// Numbers that one worker's state takes.
const DRAWS_PER_WORKER: usize = 4;

/// The C library's `random()` after `srandom(seed)`: an additive feedback generator of 31 words.
struct LibcRandom {
    words: [u32; 31],
    front: usize,
    rear: usize,
}

impl LibcRandom {
    fn new(seed: u32) -> Self {
        let mut words = [0_u32; 31];
        words[0] = seed.max(1);
        for index in 1..words.len() {
            let last = i64::from(words[index - 1].cast_signed());
            words[index] = (16_807 * last).rem_euclid(2_147_483_647) as u32;
        }
        let mut random = LibcRandom { words, front: 3, rear: 0 };
        (0..310).for_each(|_| {
            random.next_number();
        });
        random
    }

    /// A number of 31 bits.
    fn next_number(&mut self) -> u32 {
        let sum = self.words[self.front].wrapping_add(self.words[self.rear]);
        self.words[self.front] = sum;
        self.front = (self.front + 1) % self.words.len();
        self.rear = (self.rear + 1) % self.words.len();
        sum >> 1
    }
}

/// The generator of one Lua state.
#[derive(Clone, Debug)]
pub(crate) struct Numbers {
    state: [u64; 2],
    options: RandomOptions,
    pareto_power: f64,
    /// The law that was drawn from last, and its number of values.
    zipf: Option<(u64, Zipf)>,
}

impl Numbers {
    /// The stream of worker `worker` (from 0).
    pub(crate) fn new(seed: u32, worker: u32, options: RandomOptions) -> Self {
        let mut libc = LibcRandom::new(seed);
        (0..DRAWS_PER_WORKER * worker as usize).for_each(|_| {
            libc.next_number();
        });
        let state = std::array::from_fn(|_| {
            u64::from(libc.next_number()) << 32 | u64::from(libc.next_number())
        });
        let h = options.pareto_h;
        let pareto_power = h.ln() / (1.0 - h).ln();
        Numbers { state, options, pareto_power, zipf: None }
    }

    /// 64 random bits.
    pub(crate) fn bits(&mut self) -> u64 {
        next_bits(&mut self.state)
    }

    /// From 0 up to but not 1.
    pub(crate) fn unit(&mut self) -> f64 {
        (self.bits() >> 12) as f64 / (1_u64 << 52) as f64
    }

    /// Draws uniformly from `low` to `high`.
    pub(crate) fn uniform(&mut self, low: u32, high: u32) -> u32 {
        let offset = self.unit() * f64::from(values(low, high));
        low.wrapping_add(offset as u32)
    }

    fn mean_unit(&mut self) -> f64 {
        let iterations = self.options.iterations.max(1);
        let sum: f64 = (0..iterations).map(|_| self.unit()).sum();
        sum / f64::from(iterations)
    }

    /// Draws from `low` to `high`, mostly near the middle.
    pub(crate) fn gaussian(&mut self, low: u32, high: u32) -> u32 {
        let offset = f64::from(values(low, high)) * self.mean_unit();
        low.wrapping_add(offset as u32)
    }

    /// Draws from `low` to `high`, hot numbers more often.
    pub(crate) fn special(&mut self, low: u32, high: u32) -> u32 {
        let span = f64::from(high.wrapping_sub(low));
        let unit = self.unit();
        let cold = f64::from(100_u32.saturating_sub(self.options.hot_share_percent)) / 100.0;
        if unit < cold {
            return low.wrapping_add((span * self.mean_unit()) as u32);
        }
        // The same number again, as in the original: hot values fill only a part of the window.
        let width = span * f64::from(self.options.hot_width_percent) / 100.0;
        low.wrapping_add((unit * (width + 1.0) + span / 2.0 - width / 2.0) as u32)
    }

    /// Draws from `low` to `high`, low numbers more often.
    pub(crate) fn pareto(&mut self, low: u32, high: u32) -> u32 {
        let offset = f64::from(values(low, high)) * self.unit().powf(self.pareto_power);
        low.wrapping_add(offset as u32)
    }

    /// The distribution of later versions of the original.
    pub(crate) fn zipfian(&mut self, low: u32, high: u32) -> u32 {
        let values = u64::from(high.wrapping_sub(low)) + 1;
        let zipf = match self.zipf {
            Some((known, zipf)) if known == values => zipf,
            _ => Zipf::new(values, self.options.zipfian_exponent),
        };
        self.zipf = Some((values, zipf));
        low.wrapping_add(zipf.sample(|| self.unit()) as u32).wrapping_sub(1)
    }

    /// The distribution of `--rand-type`.
    pub(crate) fn by_default(&mut self, low: u32, high: u32) -> u32 {
        match self.options.distribution {
            KeyDistribution::Uniform => self.uniform(low, high),
            KeyDistribution::Zipfian => self.zipfian(low, high),
            KeyDistribution::Gaussian => self.gaussian(low, high),
            KeyDistribution::Special => self.special(low, high),
            KeyDistribution::Pareto => self.pareto(low, high),
        }
    }

    /// Fills a text by a template of its length: `#` becomes a digit, `@` a small letter.
    pub(crate) fn fill(&mut self, template: &[u8], text: &mut [u8]) {
        let mut state = self.state;
        for (letter, byte) in text.iter_mut().zip(template) {
            *letter = match byte {
                b'#' => b'0' + draw_below(10, &mut state),
                b'@' => b'a' + draw_below(26, &mut state),
                other => *other,
            };
        }
        self.state = state;
    }
}

/// Draws one of the numbers below `count`, as `uniform` does, but by whole numbers.
#[inline]
fn draw_below(count: u64, state: &mut [u64; 2]) -> u8 {
    (((next_bits(state) >> 12) * count) >> 52) as u8
}

#[inline]
fn next_bits(state: &mut [u64; 2]) -> u64 {
    let [first, second] = *state;
    let mixed = first ^ second;
    *state = [first.rotate_left(55) ^ mixed ^ (mixed << 14), mixed.rotate_left(36)];
    first.wrapping_add(second)
}

/// Number of values in the range; 0 for the whole range of 32 bits.
fn values(low: u32, high: u32) -> u32 {
    high.wrapping_sub(low).wrapping_add(1)
}

/// A sequence of 32-bit numbers without repetition, shared by all workers: quadratic residues modulo a prime
/// (Preshing).
#[derive(Debug)]
pub(crate) struct UniqueNumbers {
    index: AtomicU32,
    offset: u32,
}

impl UniqueNumbers {
    /// The original's sequence begins elsewhere in each process; this one's begin follows from the seed, and from the
    /// workers that other load generators of a fleet have before this one's: a million numbers each.
    pub(crate) fn new(seed: u32, workers_before: u32) -> Self {
        let mut libc = LibcRandom::new(seed.wrapping_add(0x5eed));
        let start = permute(permute(libc.next_number()).wrapping_add(0x682f_0161));
        let offset = permute(permute(libc.next_number()).wrapping_add(0x4679_0905));
        let index = start.wrapping_add(workers_before << 20);
        UniqueNumbers { index: AtomicU32::new(index), offset }
    }

    pub(crate) fn next_number(&self) -> u32 {
        let index = self.index.fetch_add(1, Ordering::Relaxed);
        permute(permute(index).wrapping_add(self.offset) ^ 0x5bf0_3635)
    }
}

/// Permutes the whole numbers of 32 bits, so that no two become equal.
fn permute(x: u32) -> u32 {
    const PRIME: u32 = 4_294_967_291;
    if x >= PRIME {
        return x;
    }
    let residue = (u64::from(x) * u64::from(x) % u64::from(PRIME)) as u32;
    if x <= PRIME / 2 { residue } else { PRIME - residue }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    fn six(mut draw: impl FnMut() -> u32) -> Vec<u32> {
        (0..6).map(|_| draw()).collect()
    }

    /// The values of sysbench 1.0.20 for worker 0 with `--rand-seed`, in this order of calls.
    #[test]
    fn values_of_a_seed_are_the_originals() {
        let mut numbers = Numbers::new(12_345, 0, RandomOptions::default());
        let units = [0.17249704625129225, 0.901_584_527_870_595_6, 0.4757102690843025];
        units.iter().for_each(|unit| assert_eq!(numbers.unit().to_bits(), f64::to_bits(*unit)));
        assert_eq!(numbers.unit().to_bits(), 0.6947997851617651_f64.to_bits());
        assert_eq!(numbers.bits(), 16_826_766_867_662_483_730);
        assert_eq!(six(|| numbers.uniform(1, 1000)), [619, 616, 110, 728, 5, 953]);
        assert_eq!(six(|| numbers.by_default(1, 1000)), [415, 505, 502, 491, 498, 504]);
        assert_eq!(six(|| numbers.gaussian(1, 1000)), [475, 551, 614, 614, 364, 449]);
        assert_eq!(six(|| numbers.special(1, 1000)), [426, 505, 559, 502, 355, 498]);
        assert_eq!(six(|| numbers.pareto(1, 1000)), [1, 21, 54, 9, 3, 193]);
        let mut text = [0; 10];
        for expected in [b"447-vje x4", b"715-yic x7", b"925-fwj x3"] {
            numbers.fill(b"###-@@@ x#", &mut text);
            assert_eq!(&text, expected);
        }
        numbers.fill(&[b'#'; 21], &mut [0; 21]);
        // 21 draws, as the original's last three texts of 7 took.
        assert_eq!(six(|| numbers.uniform(0, u32::MAX)), [0; 6]);
        assert_eq!(
            six(|| numbers.uniform(5, 3)),
            [3125677799, 3311272001, 999577488, 1855846133, 1458462259, 1356328991]
        );
    }

    /// Under Zipf's law with the exponent 0.8, the first of ten values has the share 1 / (1 + 2^-0.8 + ... + 10^-0.8).
    #[test]
    fn the_first_values_of_zipfian_are_the_most_frequent() {
        let mut numbers = Numbers::new(7, 0, RandomOptions::default());
        let samples: Vec<u32> = (0..100_000).map(|_| numbers.zipfian(11, 20)).collect();
        assert!(samples.iter().all(|value| (11..=20).contains(value)));
        for value in 1..=3_u32 {
            let total: f64 = (1..=10_u32).map(|value| f64::from(value).powf(-0.8)).sum();
            let expected = f64::from(value).powf(-0.8) / total;
            let share = samples.iter().filter(|sample| **sample == 10 + value).count() as f64 / 1e5;
            assert!((share - expected).abs() < 0.01, "{value}: {share} for {expected}");
        }
    }

    #[test]
    fn the_second_worker_has_the_next_four_numbers() {
        let mut numbers = Numbers::new(1, 1, RandomOptions::default());
        assert_eq!(numbers.unit().to_bits(), 0.6234350566479587_f64.to_bits());
        let mut first = Numbers::new(1, 0, RandomOptions::default());
        assert_eq!(first.unit().to_bits(), 0.8116434702175694_f64.to_bits());
    }

    #[test]
    fn unique_numbers_do_not_repeat() {
        let unique = UniqueNumbers::new(7, 0);
        let numbers: HashSet<u32> = (0..100_000).map(|_| unique.next_number()).collect();
        assert_eq!(numbers.len(), 100_000);
    }
}
