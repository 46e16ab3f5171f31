//! When the requests of an open loop are due.

use std::time::{Duration, Instant};

/// Due times of a Poisson process.
pub(crate) struct Starts {
    rate_per_s: u32,
    length: Duration,
    due: Instant,
    end: Instant,
    random: u64,
}

impl Starts {
    pub(crate) fn new(rate_per_s: u32, length: Duration) -> Self {
        let due = Instant::now();
        Starts { rate_per_s, length, due, end: due + length, random: 0x9e37_79b9_7f4a_7c15 }
    }

    /// So many are to be expected, and a few more.
    pub(crate) fn expected(&self) -> usize {
        (f64::from(self.rate_per_s) * (self.length.as_secs_f64() + 1.0)) as usize
    }
}

impl Iterator for Starts {
    type Item = Instant;

    #[inline]
    fn next(&mut self) -> Option<Instant> {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        let uniform = ((self.random >> 11) + 1) as f64 / (1_u64 << 53) as f64;
        self.due += Duration::from_secs_f64(-uniform.ln() / f64::from(self.rate_per_s));
        (self.due < self.end).then_some(self.due)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn starts_have_the_rate_that_was_asked_for() {
        let starts: Vec<_> = Starts::new(1_000, Duration::from_secs(10)).collect();
        assert!((9_500..=10_500).contains(&starts.len()), "{}", starts.len());
        assert!(starts.is_sorted());
    }
}
