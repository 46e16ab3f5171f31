//! Latencies in an HDR histogram: nanoseconds in, percentiles out.

use dyno_core::{Nanos, SECOND};
use hdrhistogram::Histogram;
use std::ops::Range;

/// Longest latency told apart, in nanoseconds (one hour); longer ones are recorded as this.
const LONGEST: Nanos = 3_600 * SECOND;

/// Values below this have a cell each; above, each doubling has half as many cells, so that three digits are exact.
const EXACT: u64 = 2_048;
/// Doublings until the longest latency is distinguished.
const DOUBLINGS: u32 = (LONGEST / EXACT).ilog2() + 1;
const CELLS: usize = (DOUBLINGS as usize + 2) * (EXACT as usize / 2);

/// A histogram of latencies in nanoseconds, 1 ns to one hour, exact to three digits.
///
/// Its cells are those of HdrHistogram. They are kept here because two values of each query are recorded, by a third of
/// that crate's instructions. Alongside the cells the exact sum, minimum and maximum are kept, and no percentile ever
/// lies outside minimum and maximum. All cells but those of these two and between them are zero: most of the memory is
/// never touched, and the thread that sums all loops up takes the less time from one that shares its core.
#[derive(Debug, PartialEq)]
pub struct Latencies {
    cells: Box<[u64]>,
    count: u64,
    sum: u128,
    min: Nanos,
    max: Nanos,
}

impl Default for Latencies {
    fn default() -> Self {
        Self::new()
    }
}

impl Clone for Latencies {
    fn clone(&self) -> Self {
        let Latencies { count, sum, min, max, .. } = *self;
        let mut copy = Latencies { count, sum, min, max, ..Latencies::new() };
        copy.cells[self.used()].copy_from_slice(&self.cells[self.used()]);
        copy
    }
}

/// The number of the cell that counts `latency`.
#[inline]
fn cell_index(latency: Nanos) -> usize {
    let latency = latency.min(LONGEST);
    let doublings = EXACT.leading_zeros() + 1 - (latency | (EXACT - 1)).leading_zeros();
    ((doublings as usize) << (EXACT.ilog2() - 1)) + (latency >> doublings) as usize
}

/// The largest latency of a cell.
fn largest_latency(cell: usize) -> Nanos {
    let half = EXACT as usize / 2;
    let doublings = (cell / half).saturating_sub(1);
    let within = (cell - doublings * half) as u64;
    ((within + 1) << doublings) - 1
}

impl Latencies {
    /// An empty histogram. All memory (about 270 kB) is allocated here.
    pub fn new() -> Self {
        Latencies {
            cells: vec![0; CELLS].into_boxed_slice(),
            count: 0,
            sum: 0,
            min: Nanos::MAX,
            max: 0,
        }
    }

    /// Takes over a histogram that was read from a file; `sum`, `min` and `max` follow from its
    /// cells and are exact to three digits.
    pub fn from_histogram(histogram: &Histogram<u64>) -> Self {
        let mut sum = 0_u128;
        for cell in histogram.iter_recorded() {
            let value = histogram.median_equivalent(cell.value_iterated_to());
            sum += u128::from(value) * u128::from(cell.count_at_value());
        }
        let bounds = match histogram.len() {
            0 => (Nanos::MAX, 0),
            _ => (histogram.min(), histogram.max()),
        };
        Latencies::from_parts(histogram, sum, bounds)
    }

    /// Puts together what [`Latencies::to_histogram`], [`Latencies::sum`] and `bounds` gave.
    pub(crate) fn from_parts(
        histogram: &Histogram<u64>,
        sum: u128,
        (min, max): (Nanos, Nanos),
    ) -> Self {
        let mut latencies = Latencies { sum, min, max, ..Latencies::new() };
        for cell in histogram.iter_recorded() {
            let (value, count) = (cell.value_iterated_to(), cell.count_at_value());
            let at = cell_index(value);
            latencies.cells[at] = latencies.cells[at].saturating_add(count);
            latencies.count = latencies.count.saturating_add(count);
            // Bounds that contradict the cells come from a damaged file.
            if at < cell_index(latencies.min) {
                latencies.min = value;
            }
            if at > cell_index(latencies.max) {
                latencies.max = value;
            }
        }
        latencies
    }

    /// Minimum and maximum as they are kept, also of an empty one.
    pub(crate) fn bounds(&self) -> (Nanos, Nanos) {
        (self.min, self.max)
    }

    /// Counts one latency, in nanoseconds.
    #[inline]
    pub fn record(&mut self, latency: Nanos) {
        self.cells[cell_index(latency)] += 1;
        self.count += 1;
        self.sum += u128::from(latency);
        self.min = self.min.min(latency);
        self.max = self.max.max(latency);
    }

    /// The cells that may count something.
    fn used(&self) -> Range<usize> {
        if self.count == 0 { 0..0 } else { cell_index(self.min)..cell_index(self.max) + 1 }
    }

    /// Adds another histogram: exact, unlike averaging percentiles.
    pub fn add(&mut self, other: &Latencies) {
        let used = other.used();
        for (cell, more) in self.cells[used.clone()].iter_mut().zip(&other.cells[used]) {
            *cell = cell.saturating_add(*more);
        }
        self.count = self.count.saturating_add(other.count);
        self.sum = self.sum.saturating_add(other.sum);
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
    }

    /// Forgets everything, keeps the memory.
    pub fn clear(&mut self) {
        // What is zero is left alone: writing zeros would make the system give it memory.
        let used = self.used();
        self.cells[used].fill(0);
        self.count = 0;
        self.sum = 0;
        self.min = Nanos::MAX;
        self.max = 0;
    }

    /// Number of recorded latencies.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Smallest latency; 0 when empty.
    pub fn min(&self) -> Nanos {
        if self.count() == 0 { 0 } else { self.min }
    }

    /// Largest latency; 0 when empty.
    pub fn max(&self) -> Nanos {
        self.max
    }

    /// Sum of the recorded latencies, in nanoseconds.
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
        if self.count() == 0 || percent <= 0.0 {
            return self.min();
        }
        let rank = ((percent / 100.0).min(1.0) * self.count as f64).ceil().max(1.0) as u64;
        let mut cumulative = 0_u64;
        let cell = self.used().find(|&cell| {
            cumulative = cumulative.saturating_add(self.cells[cell]);
            cumulative >= rank
        });
        cell.map_or(self.max, largest_latency).clamp(self.min, self.max)
    }

    /// The histogram in the form that files and other programs know.
    pub fn to_histogram(&self) -> Histogram<u64> {
        let mut histogram = empty_histogram();
        for (cell, &count) in self.cells.iter().enumerate().filter(|(_, count)| **count > 0) {
            histogram.saturating_record_n(largest_latency(cell), count);
        }
        histogram
    }
}

/// One with the bounds of [`Latencies`].
pub(crate) fn empty_histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, LONGEST, 3).expect("the bounds are constant")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Cells, percentiles and bounds are those of HdrHistogram.
        #[test]
        fn cells_are_those_of_hdrhistogram(
            values in prop::collection::vec((any::<u64>(), 0..64_u32), 1..50),
            percent in 0.1..100.0_f64,
        ) {
            let (mut latencies, mut known) = (Latencies::new(), empty_histogram());
            for value in values.iter().map(|(value, shift)| (value >> shift).min(LONGEST)) {
                latencies.record(value);
                known.saturating_record(value);
            }
            let [counts, known_counts] = [&latencies.to_histogram(), &known].map(|histogram| {
                let cells = histogram.iter_recorded();
                let counts = cells.map(|cell| (cell.value_iterated_to(), cell.count_at_value()));
                counts.collect::<Vec<_>>()
            });
            prop_assert_eq!(counts, known_counts);
            let expected = known.value_at_percentile(percent).clamp(latencies.min, latencies.max);
            prop_assert_eq!(latencies.percentile(percent), expected);
            let bounds = latencies.bounds();
            let back = Latencies::from_parts(&latencies.to_histogram(), latencies.sum(), bounds);
            prop_assert_eq!(back, latencies);
        }
    }

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
        assert_eq!(left.clone(), all);
        left.clear();
        assert_eq!(left, Latencies::new());
    }

    #[test]
    fn bounds_that_contradict_the_cells_give_way() {
        let mut latencies = Latencies::new();
        latencies.record(1_000);
        latencies.record(1_000_000);
        for bounds in [(Nanos::MAX, 0), (50_000, 60_000)] {
            let read = Latencies::from_parts(&latencies.to_histogram(), latencies.sum(), bounds);
            assert_eq!(read.percentile(50.0), 1_000);
            let mut sum = Latencies::new();
            sum.add(&read);
            assert_eq!((sum.clone(), sum.to_histogram().len()), (read, 2));
        }
    }

    #[test]
    fn more_than_an_hour_is_kept_in_the_maximum() {
        let mut latencies = Latencies::new();
        latencies.record(2 * LONGEST);
        assert_eq!(latencies.max(), 2 * LONGEST);
        assert_eq!(latencies.count(), 1);
    }
}
