//! Random streams: xoshiro256++ seeded by splitmix64 from (seed, purpose, worker).

/// A random stream of one worker for one purpose, the same on every machine. Streams of different purposes or workers
/// are independent.
#[derive(Clone, Debug)]
pub struct Rng {
    s: [u64; 4],
}

/// The next number of SplitMix64, which spreads the bits of a seed.
fn splitmix64(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

impl Rng {
    /// The stream of `worker` for `purpose` (a short constant name) under the run's `seed`.
    pub fn new(seed: u64, purpose: &str, worker: u64) -> Self {
        // FNV-1a: any fixed, well-spread map from names to numbers will do here.
        let mut name = 0xcbf2_9ce4_8422_2325_u64;
        for byte in purpose.bytes() {
            name = (name ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
        let mut state = seed;
        let a = splitmix64(&mut state);
        state ^= name;
        let b = splitmix64(&mut state);
        state ^= worker.wrapping_mul(0xd6e8_feb8_6659_fd93);
        let mut s = [a, b, splitmix64(&mut state), splitmix64(&mut state)];
        let mut mix = s[0] ^ s[1].rotate_left(17) ^ s[2].rotate_left(31) ^ s[3].rotate_left(47);
        for word in &mut s {
            *word = splitmix64(&mut mix);
        }
        Rng { s }
    }

    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        let result = self.s[0].wrapping_add(self.s[3]).rotate_left(23).wrapping_add(self.s[0]);
        let t = self.s[1] << 17;
        self.s[2] ^= self.s[0];
        self.s[3] ^= self.s[1];
        self.s[1] ^= self.s[2];
        self.s[0] ^= self.s[3];
        self.s[2] ^= t;
        self.s[3] = self.s[3].rotate_left(45);
        result
    }

    /// A uniform number in [0, 1) with 53 random bits.
    #[inline]
    pub fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 * (1.0 / (1_u64 << 53) as f64)
    }

    /// A uniform number in [0, 1) that follows from `key` and `place` alone: for a sequence that several threads share.
    #[inline]
    pub fn unit_at(key: u64, place: u64) -> f64 {
        let mut state = key ^ place.wrapping_mul(0xd6e8_feb8_6659_fd93);
        splitmix64(&mut state);
        (splitmix64(&mut state) >> 11) as f64 * (1.0 / (1_u64 << 53) as f64)
    }

    /// A uniform integer in `low..=high`. `low` when the range is empty.
    #[inline]
    pub fn uniform(&mut self, low: u64, high: u64) -> u64 {
        if high <= low {
            return low;
        }
        let span = (high - low).wrapping_add(1);
        if span == 0 {
            return self.next_u64();
        }
        // Multiply-shift: the bias is below span / 2^64.
        low + ((u128::from(self.next_u64()) * u128::from(span)) >> 64) as u64
    }

    /// An exponentially distributed number with the given mean: the gap of a Poisson process.
    #[inline]
    pub fn exponential(&mut self, mean: f64) -> f64 {
        -mean * (1.0 - self.unit()).ln()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_differ_by_seed_purpose_and_worker_and_repeat() {
        let base = Rng::new(1, "keys", 0).next_u64();
        assert_eq!(base, Rng::new(1, "keys", 0).next_u64());
        for (seed, purpose, worker) in [(2, "keys", 0), (1, "arrival", 0), (1, "keys", 1)] {
            assert_ne!(base, Rng::new(seed, purpose, worker).next_u64());
        }
    }

    #[test]
    fn uniform_covers_its_range_evenly() {
        let mut rng = Rng::new(7, "test", 0);
        let mut counts = [0_u32; 10];
        for _ in 0..100_000 {
            counts[(rng.uniform(5, 14) - 5) as usize] += 1;
        }
        // Ten cells of 10,000 +- 95: six standard deviations either way.
        assert!(counts.iter().all(|&n| (9_430..=10_570).contains(&n)), "{counts:?}");
        assert_eq!(rng.uniform(3, 3), 3);
        assert_eq!(rng.uniform(3, 2), 3);
    }

    #[test]
    fn exponential_has_its_mean() {
        let mut rng = Rng::new(7, "test", 0);
        let mean = (0..100_000).map(|_| rng.exponential(50.0)).sum::<f64>() / 100_000.0;
        assert!((mean - 50.0).abs() < 1.0, "{mean}");
    }
}
