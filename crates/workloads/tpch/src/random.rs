//! The random numbers of dbgen and qgen: s' = s * 16807 mod 2^31 - 1.

/// Numbers are from 1 to one less than this.
pub(crate) const MODULUS: u64 = 2_147_483_647;
const MULTIPLIER: u64 = 16_807;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Stream(u64);

impl Stream {
    /// The stream that begins after the first `skipped` numbers of a seed.
    pub(crate) fn after(seed: u64, skipped: u64) -> Stream {
        Stream(seed % MODULUS * power(skipped) % MODULUS)
    }

    #[inline]
    pub(crate) fn draw(&mut self) -> u64 {
        self.0 = self.0 * MULTIPLIER % MODULUS;
        self.0
    }

    /// A number from `low` to `high`. In doubles, as qgen draws it.
    pub(crate) fn uniform(&mut self, low: i64, high: i64) -> i64 {
        let share = self.draw() as f64 / MODULUS as f64;
        low + (share * (high - low + 1) as f64) as i64
    }

    /// One of some values that are equally likely.
    pub(crate) fn pick<T: Copy>(&mut self, values: &[T]) -> T {
        values[(self.uniform(1, values.len() as i64) - 1) as usize]
    }

    /// The first `count` of the numbers 0 to `n` - 1 in random order.
    pub(crate) fn permutation(&mut self, n: i64, count: usize) -> Vec<i64> {
        let mut numbers: Vec<i64> = (0..n).collect();
        for at in 0..n {
            numbers.swap(at as usize, self.uniform(at, n - 1) as usize);
        }
        numbers.truncate(count);
        numbers
    }
}

/// The multiplier to the power of `exponent`, modulo the modulus.
fn power(mut exponent: u64) -> u64 {
    let (mut base, mut result) = (MULTIPLIER, 1);
    while exponent > 0 {
        if exponent % 2 == 1 {
            result = result * base % MODULUS;
        }
        base = base * base % MODULUS;
        exponent /= 2;
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_are_those_of_the_minimal_standard_generator() {
        // Park and Miller: after 10,000 draws from 1 the number is 1043618065.
        let mut drawn = Stream::after(1, 0);
        let last = (0..10_000).map(|_| drawn.draw()).last();
        assert_eq!(last, Some(1_043_618_065));
        assert_eq!(Stream::after(1, 9_999).draw(), 1_043_618_065);
    }
}
