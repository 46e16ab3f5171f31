//! `--histogram`: sysbench's 1,024 buckets, each 1.8 % wider than the one before.

use dyno_engine::record::Latencies;
use std::fmt::Write as _;

const BUCKETS: usize = 1_024;
const LOWEST_MS: f64 = 0.001;
const HIGHEST_MS: f64 = 100_000.0;
const BAR: f64 = 40.0;

fn buckets_per_e() -> f64 {
    (BUCKETS - 1) as f64 / (HIGHEST_MS.ln() - LOWEST_MS.ln())
}

fn bucket_of(latency_ms: f64) -> usize {
    let index = ((latency_ms.ln() - LOWEST_MS.ln()) * buckets_per_e() + 0.5).floor();
    // A latency of 0 gives minus infinity.
    index.clamp(0.0, (BUCKETS - 1) as f64) as usize
}

fn value_of(bucket: usize) -> f64 {
    (bucket as f64 / buckets_per_e() + LOWEST_MS.ln()).exp()
}

fn fill(latencies: &Latencies) -> Vec<u64> {
    let mut buckets = vec![0; BUCKETS];
    let histogram = latencies.to_histogram();
    for cell in histogram.iter_recorded() {
        let latency_ns = histogram.median_equivalent(cell.value_iterated_to());
        buckets[bucket_of(latency_ns as f64 / 1e6)] += cell.count_at_value();
    }
    buckets
}

fn print(buckets: &[u64]) -> String {
    let mut text = String::from(
        "Latency histogram (values are in milliseconds)\n       \
         value  ------------- distribution ------------- count\n",
    );
    let highest = buckets.iter().copied().max().unwrap_or(0);
    for (bucket, &count) in buckets.iter().enumerate().filter(|(_, count)| **count > 0) {
        let stars = (count as f64 * BAR / highest as f64 + 0.5).floor() as usize;
        let bar = "*".repeat(stars);
        // Writing to a String can't fail.
        let _ = writeln!(text, "{:>12.3} |{bar:<40} {count}", value_of(bucket));
    }
    text.push_str(" \n");
    text
}

pub(super) fn histogram(latencies: &Latencies) -> String {
    print(&fill(latencies))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Printed by sysbench 1.0.20 on a real run.
    const ORIGINAL: &str = include_str!("../golden/histogram.txt");

    #[test]
    fn the_histogram_has_every_byte_of_the_originals() {
        let mut buckets = vec![0; BUCKETS];
        for line in ORIGINAL.lines().filter(|line| line.contains(" |")) {
            let words: Vec<&str> = line.split_whitespace().collect();
            let value: f64 = words[0].parse().expect(line);
            let count = words.last().and_then(|word| word.parse().ok()).expect(line);
            buckets[bucket_of(value)] = count;
        }
        assert_eq!(print(&buckets), ORIGINAL);
    }

    #[test]
    fn latencies_beyond_the_ends_fall_into_the_outermost_buckets() {
        let mut latencies = Latencies::new();
        for latency in [0, 1, 200_000_000_000] {
            latencies.record(latency);
        }
        let buckets = fill(&latencies);
        assert_eq!((buckets[0], buckets[BUCKETS - 1]), (2, 1));
        assert_eq!(buckets.iter().sum::<u64>(), 3);
    }

    #[test]
    fn nothing_measured_is_an_empty_histogram() {
        assert_eq!(histogram(&Latencies::new()).lines().count(), 3);
    }
}
