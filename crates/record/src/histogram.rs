//! Latencies in an HDR histogram: nanoseconds in, percentiles out.

use dyno_core::{Nanos, SECOND};
use hdrhistogram::Histogram;

/// Longest latency told apart, in nanoseconds (one hour); longer ones are recorded as this.
const LONGEST: Nanos = 3_600 * SECOND;

/// A histogram of latencies in nanoseconds, 1 ns to one hour, exact to three digits.
///
/// Beside the histogram the exact sum, minimum and maximum are kept, and no percentile ever lies
/// outside minimum and maximum.
#[derive(Clone, Debug, PartialEq)]
pub struct Latencies {
    histogram: Histogram<u64>,
    sum: u128,
    min: Nanos,
    max: Nanos,
}

impl Default for Latencies {
    fn default() -> Self {
        Self::new()
    }
}

impl Latencies {
    /// An empty histogram. All memory (about 270 kB) is allocated here.
    pub fn new() -> Self {
        let histogram = Histogram::new_with_bounds(1, LONGEST, 3).expect("the bounds are constant");
        Latencies { histogram, sum: 0, min: Nanos::MAX, max: 0 }
    }

    /// Takes over a histogram that was read from a file; `sum`, `min` and `max` follow from its
    /// cells and are exact to three digits.
    pub fn from_histogram(histogram: Histogram<u64>) -> Self {
        let mut sum = 0_u128;
        for cell in histogram.iter_recorded() {
            let value = histogram.median_equivalent(cell.value_iterated_to());
            sum += u128::from(value) * u128::from(cell.count_at_value());
        }
        let (min, max) = match histogram.len() {
            0 => (Nanos::MAX, 0),
            _ => (histogram.min(), histogram.max()),
        };
        Latencies { histogram, sum, min, max }
    }

    /// Puts together what [`Latencies::histogram`], [`Latencies::sum`] and `bounds` gave.
    pub(crate) fn from_parts(
        histogram: Histogram<u64>,
        sum: u128,
        (min, max): (Nanos, Nanos),
    ) -> Self {
        Latencies { histogram, sum, min, max }
    }

    /// Minimum and maximum as they are kept, also of an empty one.
    pub(crate) fn bounds(&self) -> (Nanos, Nanos) {
        (self.min, self.max)
    }

    #[inline]
    pub fn record(&mut self, latency: Nanos) {
        self.histogram.saturating_record(latency);
        self.sum += u128::from(latency);
        self.min = self.min.min(latency);
        self.max = self.max.max(latency);
    }

    /// Adds another histogram: exact, unlike averaging percentiles.
    pub fn add(&mut self, other: &Latencies) {
        self.histogram.add(&other.histogram).expect("both have the same bounds");
        self.sum = self.sum.saturating_add(other.sum);
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
    }

    /// Forgets everything, keeps the memory.
    pub fn clear(&mut self) {
        // An empty one is left alone: writing zeros would make the system give it memory.
        if self.count() > 0 {
            self.histogram.reset();
        }
        self.sum = 0;
        self.min = Nanos::MAX;
        self.max = 0;
    }

    pub fn count(&self) -> u64 {
        self.histogram.len()
    }

    /// Smallest latency; 0 when empty.
    pub fn min(&self) -> Nanos {
        if self.count() == 0 { 0 } else { self.min }
    }

    /// Largest latency; 0 when empty.
    pub fn max(&self) -> Nanos {
        self.max
    }

    pub fn sum(&self) -> u128 {
        self.sum
    }

    /// Arithmetic mean in nanoseconds; 0 when empty.
    pub fn mean(&self) -> f64 {
        match self.count() {
            0 => 0.0,
            count => self.sum as f64 / count as f64,
        }
    }

    /// The latency that `percent` (0 to 100) of the recorded ones do not exceed; 0 when empty.
    pub fn percentile(&self, percent: f64) -> Nanos {
        if self.count() == 0 {
            return 0;
        }
        self.histogram.value_at_percentile(percent).clamp(self.min, self.max)
    }

    pub fn histogram(&self) -> &Histogram<u64> {
        &self.histogram
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_stay_within_minimum_and_maximum() {
        let mut latencies = Latencies::new();
        latencies.record(1_234_567);
        for percent in [0.0, 1.0, 50.0, 95.0, 99.9, 100.0] {
            assert_eq!(latencies.percentile(percent), 1_234_567);
        }
        latencies.record(9_876_543_210);
        assert_eq!(latencies.percentile(100.0), 9_876_543_210);
        assert_eq!(latencies.percentile(0.0), 1_234_567);
    }

    #[test]
    fn an_empty_histogram_says_zero() {
        let empty = Latencies::new();
        assert_eq!((empty.min(), empty.max(), empty.percentile(99.0)), (0, 0, 0));
        assert!(empty.mean().abs() < f64::EPSILON);
    }

    #[test]
    fn merging_equals_recording_everything_in_one() {
        let (mut left, mut right, mut all) = (Latencies::new(), Latencies::new(), Latencies::new());
        for value in 1..5_000_u64 {
            let latency = value * value;
            all.record(latency);
            if value % 3 == 0 { left.record(latency) } else { right.record(latency) }
        }
        left.add(&right);
        assert_eq!(left, all);
    }

    #[test]
    fn more_than_an_hour_is_kept_in_the_maximum() {
        let mut latencies = Latencies::new();
        latencies.record(2 * LONGEST);
        assert_eq!(latencies.max(), 2 * LONGEST);
        assert_eq!(latencies.count(), 1);
    }
}
