//! Random numbers, hashes and permutations, equal bit for bit to those of pgbench 15 to 18.
//!
//! The generator is xoroshiro128** (Blackman and Vigna, <https://prng.di.unimi.it/>), seeded by
//! splitmix64; the hashes are FNV-1a and MurmurHash64A over the eight bytes of an integer. What is
//! pgbench's own is how numbers are derived from them; its test vector is among the tests.

/// Largest value of the parameter of [`PgRng::zipfian`].
pub const MAX_ZIPFIAN: f64 = 1000.0;
/// Smallest value of the parameter of [`PgRng::zipfian`].
pub const MIN_ZIPFIAN: f64 = 1.001;
/// Smallest value of the parameter of [`PgRng::gaussian`].
pub const MIN_GAUSSIAN: f64 = 2.0;

const FNV_OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
const FNV_PRIME: u64 = 0x0100_0000_01b3;
const MURMUR: u64 = 0xc6a4_a793_5bd1_e995;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PgRng {
    pub(crate) s0: u64,
    pub(crate) s1: u64,
}

/// The next number of SplitMix64, as pgbench seeds its generator.
fn splitmix64(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

impl PgRng {
    pub fn new(seed: u64) -> Self {
        let mut state = seed;
        let (s0, s1) = (splitmix64(&mut state), splitmix64(&mut state));
        match (s0, s1) {
            // The one state from which the generator doesn't move.
            (0, 0) => PgRng { s0: 0x5851_f42d_4c95_7f2d, s1: 0x1405_7b7e_f767_814f },
            (s0, s1) => PgRng { s0, s1 },
        }
    }

    /// 64 random bits.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        let (s0, x) = (self.s0, self.s1 ^ self.s0);
        self.s0 = s0.rotate_left(24) ^ x ^ (x << 16);
        self.s1 = x.rotate_left(37);
        s0.wrapping_mul(5).rotate_left(7).wrapping_mul(9)
    }

    /// A number from 0 to `last`, both included. Nothing is drawn when `last` is 0.
    #[inline]
    pub fn range(&mut self, last: u64) -> u64 {
        if last == 0 {
            return 0;
        }
        let shift = last.leading_zeros();
        loop {
            let value = self.next_u64() >> shift;
            if value <= last {
                return value;
            }
        }
    }

    /// A number from 0 to 1, 1 not included, with 52 bits.
    #[inline]
    pub fn double(&mut self) -> f64 {
        // 2^-52
        (self.next_u64() >> 12) as f64 * f64::EPSILON
    }

    /// An evenly distributed number from `low` to `high`, both included. `high - low` must not
    /// overflow.
    #[inline]
    pub fn random(&mut self, low: i64, high: i64) -> i64 {
        low.wrapping_add(self.range(high.wrapping_sub(low) as u64) as i64)
    }

    /// Numbers around the middle of the range. `parameter` is at least [`MIN_GAUSSIAN`]: the
    /// standard deviation is the size of the range divided by twice of it.
    #[inline]
    pub fn gaussian(&mut self, low: i64, high: i64, parameter: f64) -> i64 {
        let deviate = loop {
            let u1 = 1.0 - self.double();
            let u2 = 1.0 - self.double();
            let z = (-2.0 * u1.ln()).sqrt() * (2.0 * std::f64::consts::PI * u2).sin();
            if z >= -parameter && z < parameter {
                break z;
            }
        };
        let share = (deviate + parameter) / (parameter * 2.0);
        low.wrapping_add((range_size(low, high) as f64 * share) as i64)
    }

    /// Small numbers more often than large ones. `parameter` is greater than 0.
    #[inline]
    pub fn exponential(&mut self, low: i64, high: i64, parameter: f64) -> i64 {
        let cut = (-parameter).exp();
        let uniform = 1.0 - self.double();
        let share = -(cut + (1.0 - cut) * uniform).ln() / parameter;
        low.wrapping_add((range_size(low, high) as f64 * share) as i64)
    }

    /// Zipf's law by rejection (Devroye, "Non-Uniform Random Variate Generation", X.6.1).
    /// `parameter` is from [`MIN_ZIPFIAN`] to [`MAX_ZIPFIAN`]; near 1 it takes many tries.
    #[inline]
    pub fn zipfian(&mut self, low: i64, high: i64, parameter: f64) -> i64 {
        let size = range_size(low, high);
        if size <= 1 {
            return low;
        }
        let b = 2.0_f64.powf(parameter - 1.0);
        let x = loop {
            let u = self.double();
            let v = self.double();
            let x = u.powf(-1.0 / (parameter - 1.0)).floor();
            let t = (1.0 + 1.0 / x).powf(parameter - 1.0);
            if v * x * (t - 1.0) / (b - 1.0) <= t / b && x <= size as f64 {
                break x;
            }
        };
        low.wrapping_sub(1).wrapping_add(x as i64)
    }
}

#[inline]
fn range_size(low: i64, high: i64) -> i64 {
    high.wrapping_sub(low).wrapping_add(1)
}

/// FNV-1a over the bytes of `value`, lowest first.
#[inline]
pub fn hash_fnv1a(value: i64, seed: i64) -> i64 {
    let mut hash = FNV_OFFSET ^ seed as u64;
    for byte in value.to_le_bytes() {
        hash = (hash ^ u64::from(byte)).wrapping_mul(FNV_PRIME);
    }
    hash as i64
}

/// MurmurHash64A over the bytes of `value`.
#[inline]
pub fn hash_murmur2(value: i64, seed: i64) -> i64 {
    let mut hash = seed as u64 ^ MURMUR.wrapping_mul(8);
    let mut k = (value as u64).wrapping_mul(MURMUR);
    k ^= k >> 47;
    k = k.wrapping_mul(MURMUR);
    hash = (hash ^ k).wrapping_mul(MURMUR);
    hash ^= hash >> 47;
    hash = hash.wrapping_mul(MURMUR);
    hash ^= hash >> 47;
    hash as i64
}

/// Image of `value` in a pseudo-random permutation of 0 to `size - 1`. `value` may be any
/// number; `size` is at least 1.
pub fn permute(value: i64, size: i64, seed: i64) -> i64 {
    const ROUNDS: u32 = 6;
    if size < 2 {
        return 0;
    }
    let size = size as u64;
    let mut v = value as u64 % size;
    let mut rng = PgRng::new(seed as u64);
    // Each round works on the largest power of two that fits, once from either end.
    let bits = size.ilog2();
    let mask = (1_u64 << bits) - 1;
    for _ in 0..ROUNDS {
        let (m, r) = draw_pair(&mut rng, mask);
        if v <= mask {
            v = scramble(v, m, r, mask);
            v = ((v << 1) & mask) | (v >> (bits - 1));
        }
        let (m, r) = draw_pair(&mut rng, mask);
        let t = size - 1 - v;
        if t <= mask {
            let t = scramble(t, m, r, mask);
            v = size - 1 - (((t << 1) & mask) | (t >> (bits - 1)));
        }
        let offset = rng.range(size - 1);
        v = ((u128::from(v) + u128::from(offset)) % u128::from(size)) as u64;
    }
    v as i64
}

fn draw_pair(rng: &mut PgRng, mask: u64) -> (u64, u64) {
    let m = (rng.next_u64() & mask) | 1;
    (m, rng.next_u64() & mask)
}

/// One step of pgbench's `permute()`.
fn scramble(v: u64, m: u64, r: u64, mask: u64) -> u64 {
    (v.wrapping_mul(m) ^ r) & mask
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadStreams {
    /// Choice of the next script.
    pub choose: PgRng,
    /// Waits of an open arrival.
    pub throttle: PgRng,
    /// Choice of transactions that a log keeps.
    pub sampling: PgRng,
}

/// All streams of a run, derived from one seed in the order in which pgbench derives them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seeds {
    /// The stream of each client's scripts: depends on the seed and the client's number only.
    pub clients: Vec<PgRng>,
    /// Value of the variable `default_seed`; `None` when it was defined otherwise.
    pub default_seed: Option<i64>,
    pub threads: Vec<ThreadStreams>,
}

impl Seeds {
    /// The streams for `clients` clients on `threads` threads. `define_default_seed` is false when
    /// the variable `default_seed` was defined by the user: then nothing is drawn for it.
    pub fn new(base: u64, clients: u32, threads: u32, define_default_seed: bool) -> Self {
        let mut base = PgRng::new(base);
        let clients = (0..clients).map(|_| PgRng::new(base.next_u64())).collect();
        let default_seed = define_default_seed.then(|| base.next_u64() as i64);
        let threads = (0..threads)
            .map(|_| ThreadStreams {
                choose: PgRng::new(base.next_u64()),
                throttle: PgRng::new(base.next_u64()),
                sampling: PgRng::new(base.next_u64()),
            })
            .collect();
        Seeds { clients, default_seed, threads }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Printed by pgbench 15.20 and 18.6 with `--random-seed=12345 -c 1`.
    #[test]
    fn draws_equal_the_originals() {
        const BIG: i64 = 1 << 62;
        let seeds = Seeds::new(12345, 1, 1, true);
        let seed = seeds.default_seed.unwrap();
        assert_eq!(seed, 8_784_320_640_503_919_345);
        let mut rng = seeds.clients[0];
        let first = [
            453_054,
            458_357,
            930,
            302,
            2_483_138_467_232_871_937,
            140_059_708_278_669_153,
            955_459,
            745_604,
            7_385_811_209_399_961_970,
            6_517_403_276_766_810_587,
        ];
        let second = [
            273_343,
            545_650,
            33_874,
            25,
            2_253_018_431_125_550_337,
            427_977_790_108_758_273,
            434_031,
            347_040,
            -1_151_798_341_312_168_124,
            1_696_598_440_006_506_746,
        ];
        for expected in [first, second] {
            let a = rng.random(1, 1_000_000);
            let values = [
                a,
                rng.gaussian(1, 1_000_000, 10.0),
                rng.exponential(1, 1_000_000, 10.0),
                rng.zipfian(1, 1_000_000, 1.1),
                rng.gaussian(1, BIG, 10.0),
                rng.exponential(1, BIG, 10.0),
                permute(a, 1_000_000, seed),
                permute(a, 1_000_000, 42),
                hash_murmur2(a, seed),
                hash_fnv1a(a, seed),
            ];
            assert_eq!(values, expected);
        }
    }

    #[test]
    fn streams_depend_on_the_seed_and_the_number_of_clients() {
        let two = Seeds::new(12345, 2, 1, true);
        assert_eq!(two.default_seed, Some(-2_238_700_299_075_589_035));
        assert_eq!(two.clients[1].clone().random(1, 1_000_000), 287_770);
        assert_eq!(two.clients[0], Seeds::new(12345, 1, 8, false).clients[0]);
        assert_eq!(Seeds::new(12345, 2, 1, false).default_seed, None);
    }

    #[test]
    fn permutations_hit_every_number_once() {
        for size in [1, 2, 3, 7, 8, 9, 100, 1000] {
            let mut hits: Vec<i64> = (0..size).map(|value| permute(value, size, 7)).collect();
            hits.sort_unstable();
            assert_eq!(hits, (0..size).collect::<Vec<_>>());
        }
        assert_eq!(permute(-1, i64::MAX, 5), permute(-1_i64, i64::MAX, 5));
    }
}
