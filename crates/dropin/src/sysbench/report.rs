//! The final report in sysbench's shape: the same labels, order and widths, because scripts
//! parse them.

use dyno_core::{DbError, ErrorClass, Nanos};
use dyno_engine::WorkerStats;
use dyno_engine::record::{ErrorCount, Frame, Latencies};
use std::fmt::{self, Write as _};

/// Everything a full report states.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Figures {
    /// Statements of committed transactions that had a result set.
    pub(super) reads: u64,
    /// Statements of committed transactions that changed rows.
    pub(super) writes: u64,
    /// All other statements of committed transactions.
    pub(super) others: u64,
    pub(super) transactions: u64,
    /// Errors of attempts, lost connections not among them.
    pub(super) errors: u64,
    pub(super) reconnects: u64,
    /// False: the statements are left out.
    pub(super) uses_database: bool,
    /// Seconds that the figures above cover.
    pub(super) covered_s: f64,
    /// Seconds since the start.
    pub(super) total_s: f64,
    /// Only after a forced shutdown.
    pub(super) unfinished: Option<u32>,
    pub(super) min_ms: f64,
    pub(super) avg_ms: f64,
    pub(super) max_ms: f64,
    pub(super) sum_ms: f64,
    /// Percent and milliseconds, in the order asked for. Without one, sysbench says so.
    pub(super) percentiles: Vec<(f64, f64)>,
    /// `--percentile=0`.
    pub(super) percentile_disabled: bool,
    pub(super) fairness: Fairness,
}

/// How evenly the work was spread over the workers.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Fairness {
    pub(super) events_mean: f64,
    /// Of the population.
    pub(super) events_stddev: f64,
    pub(super) busy_mean_s: f64,
    pub(super) busy_stddev_s: f64,
}

impl Fairness {
    pub(super) fn of_workers(workers: &[WorkerStats]) -> Self {
        let events = workers.iter().map(|worker| worker.transactions as f64);
        let busy = workers.iter().map(|worker| seconds(worker.busy));
        let (events_mean, events_stddev) = mean_and_deviation(events);
        let (busy_mean_s, busy_stddev_s) = mean_and_deviation(busy);
        Fairness { events_mean, events_stddev, busy_mean_s, busy_stddev_s }
    }
}

fn seconds(time: Nanos) -> f64 {
    time as f64 / 1e9
}

fn mean_and_deviation(values: impl ExactSizeIterator<Item = f64> + Clone) -> (f64, f64) {
    let count = values.len().max(1) as f64;
    let mean = values.clone().sum::<f64>() / count;
    let variance = values.map(|value| (value - mean).powi(2)).sum::<f64>() / count;
    (mean, variance.sqrt())
}

/// Errors of attempts as sysbench counts its "ignored errors": lost connections are counted as
/// reconnects instead.
pub(super) fn ignored_errors(frame: &Frame) -> u64 {
    let is_ignored = |class| class != ErrorClass::ConnectionLost;
    frame.errors.0.iter().filter(|error| is_ignored(error.class)).map(|error| error.count).sum()
}

/// Those among them that were not ignored: of the kind that has ended the run.
pub(super) fn fatal_errors(frame: &Frame, fatal: &DbError) -> u64 {
    let is_it = |error: &&ErrorCount| {
        fatal.class() != ErrorClass::ConnectionLost
            && (error.class, error.errno) == (fatal.class(), fatal.errno())
            && error.sqlstate == fatal.sqlstate()
    };
    frame.errors.0.iter().filter(is_it).map(|error| error.count).sum()
}

impl Figures {
    /// The figures of `frame`, which covers `covered_s` seconds and ended `total_s` after the
    /// start. `percentile` of 0 is none; `more` are shown after it.
    pub(super) fn new(
        frame: &Frame,
        covered_s: f64,
        total_s: f64,
        percentile: u32,
        more: &[f64],
        fairness: Fairness,
    ) -> Self {
        let (counts, work, latency) = (frame.counts(), frame.work(), frame.latency());
        let main = Some(f64::from(percentile)).filter(|_| percentile > 0);
        // In the order asked for, that of `--percentile` first unless the others name it.
        let first = main.filter(|main| !more.contains(main));
        let at = |percent| (percent, latency.percentile(percent) as f64 / 1e6);
        Figures {
            reads: work.reads,
            writes: work.writes,
            others: work.others,
            transactions: counts.committed,
            errors: ignored_errors(frame),
            reconnects: counts.reconnects,
            uses_database: true,
            covered_s,
            total_s,
            unfinished: None,
            min_ms: latency.min() as f64 / 1e6,
            avg_ms: latency.mean() / 1e6,
            max_ms: latency.max() as f64 / 1e6,
            sum_ms: latency.sum() as f64 / 1e6,
            percentiles: first.into_iter().chain(more.iter().copied()).map(at).collect(),
            percentile_disabled: main.is_none(),
            fairness,
        }
    }

    fn per_s(&self, count: u64) -> f64 {
        if self.covered_s > 0.0 { count as f64 / self.covered_s } else { 0.0 }
    }

    fn write_counts(&self, out: &mut String) -> fmt::Result {
        let queries = self.reads + self.writes + self.others;
        writeln!(out, "SQL statistics:")?;
        writeln!(out, "    queries performed:")?;
        for (label, count) in [
            ("read:", self.reads),
            ("write:", self.writes),
            ("other:", self.others),
            ("total:", queries),
        ] {
            writeln!(out, "        {label:<33}{count}")?;
        }
        for (label, count) in [
            ("transactions:", self.transactions),
            ("queries:", queries),
            ("ignored errors:", self.errors),
            ("reconnects:", self.reconnects),
        ] {
            writeln!(out, "    {label:<37}{count:<6} ({:.2} per sec.)", self.per_s(count))?;
        }
        writeln!(out)
    }

    fn write_latency(&self, out: &mut String) -> fmt::Result {
        writeln!(out, "Latency (ms):")?;
        writeln!(out, "         min: {:>39.2}", self.min_ms)?;
        writeln!(out, "         avg: {:>39.2}", self.avg_ms)?;
        writeln!(out, "         max: {:>39.2}", self.max_ms)?;
        if self.percentile_disabled {
            writeln!(out, "         percentile stats:               disabled")?;
        }
        for (percent, latency_ms) in &self.percentiles {
            writeln!(out, "{percent:>11}th percentile: {latency_ms:>27.2}")?;
        }
        writeln!(out, "         sum: {:>39.2}", self.sum_ms)?;
        writeln!(out)
    }

    fn write_fairness(&self, out: &mut String) -> fmt::Result {
        let Fairness { events_mean, events_stddev, busy_mean_s, busy_stddev_s } = self.fairness;
        writeln!(out, "Threads fairness:")?;
        writeln!(out, "    events (avg/stddev):           {events_mean:.4}/{events_stddev:.2}")?;
        writeln!(out, "    execution time (avg/stddev):   {busy_mean_s:.4}/{busy_stddev_s:.2}")?;
        writeln!(out)
    }

    fn write(&self, out: &mut String) -> fmt::Result {
        match self.uses_database {
            true => self.write_counts(out)?,
            false => writeln!(out)?,
        }
        if let Some(unfinished) = self.unfinished {
            writeln!(out, "Number of unfinished transactions on forced shutdown: {unfinished}\n")?;
        }
        writeln!(out, "General statistics:")?;
        writeln!(out, "    total time:                          {:.4}s", self.total_s)?;
        writeln!(out, "    total number of events:              {}", self.transactions)?;
        writeln!(out)?;
        self.write_latency(out)?;
        self.write_fairness(out)
    }
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = String::new();
        self.write(&mut out)?;
        f.write_str(&out)
    }
}

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
    const ORIGINAL: &str = include_str!("../../golden/sysbench/report.txt");

    #[test]
    fn the_error_that_ends_a_run_is_not_ignored() {
        let mut frame = Frame::new(1, false);
        let fatal = DbError::workload("my.lua:2: it failed");
        let ignored = DbError::server(ErrorClass::Deadlock, 1213, *b"40001", "Deadlock found");
        for error in [&ignored, &fatal, &ignored] {
            frame.errors.count(error);
        }
        assert_eq!((ignored_errors(&frame), fatal_errors(&frame, &fatal)), (3, 1));
        let lost = DbError::lost("gone");
        frame.errors.count(&lost);
        assert_eq!((ignored_errors(&frame), fatal_errors(&frame, &lost)), (3, 0));
    }

    /// The number after a label of the original's report.
    fn after(label: &str) -> f64 {
        let start = ORIGINAL.find(label).expect(label) + label.len();
        let rest = ORIGINAL[start..].trim_start();
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        rest[..end].parse().expect(label)
    }

    fn pair(label: &str) -> (f64, f64) {
        let line = ORIGINAL.lines().find(|line| line.contains(label)).expect(label);
        let (mean, deviation) =
            line.rsplit(' ').next().and_then(|pair| pair.split_once('/')).expect(label);
        (mean.parse().expect(label), deviation.parse().expect(label))
    }

    #[test]
    fn the_report_has_every_byte_of_the_originals() {
        let (events_mean, events_stddev) = pair("events (avg/stddev):");
        let (busy_mean_s, busy_stddev_s) = pair("execution time (avg/stddev):");
        let (_, queries) = ORIGINAL.split_once("    queries:").expect("a line for queries");
        let (_, queries) = queries.split_once('(').expect("a rate");
        let (queries_per_s, _) = queries.split_once(' ').expect("a unit");
        let queries_per_s: f64 = queries_per_s.parse().expect("a number");
        let figures = Figures {
            reads: after("read:") as u64,
            writes: after("write:") as u64,
            others: after("other:") as u64,
            transactions: after("transactions:") as u64,
            errors: after("ignored errors:") as u64,
            reconnects: after("reconnects:") as u64,
            uses_database: true,
            covered_s: after("total:") / queries_per_s,
            total_s: after("total time:"),
            unfinished: None,
            min_ms: after("min:"),
            avg_ms: after("avg:"),
            max_ms: after("max:"),
            sum_ms: after("sum:"),
            percentiles: vec![(95.0, after("95th percentile:"))],
            percentile_disabled: false,
            fairness: Fairness { events_mean, events_stddev, busy_mean_s, busy_stddev_s },
        };
        assert_eq!(figures.to_string(), ORIGINAL);
    }

    #[test]
    fn percentiles_stand_in_the_order_asked_for_and_none_is_said() {
        let frame = Frame::new(1, false);
        let lines = |percentile, more: &[f64]| -> Vec<String> {
            let text = Figures::new(&frame, 1.0, 1.0, percentile, more, Fairness::default());
            let text = text.to_string();
            text.lines().filter(|line| line.contains("percentile")).map(str::to_owned).collect()
        };
        assert_eq!(
            lines(95, &[50.0, 95.0, 99.9]),
            [
                "         50th percentile:                        0.00",
                "         95th percentile:                        0.00",
                "       99.9th percentile:                        0.00",
            ]
        );
        assert_eq!(lines(0, &[]), ["         percentile stats:               disabled"]);
        assert_eq!(lines(1, &[]), ["          1th percentile:                        0.00"]);
        assert_eq!(lines(100, &[]), ["        100th percentile:                        0.00"]);
    }

    #[test]
    fn a_forced_shutdown_states_what_was_cut() {
        let figures = Figures { unfinished: Some(3), ..Figures::default() };
        let expected = "\nNumber of unfinished transactions on forced shutdown: 3\n\n\
                        General statistics:\n";
        assert!(figures.to_string().contains(expected), "{figures}");
    }

    #[test]
    fn fairness_is_the_populations() {
        let worker =
            |transactions, busy| WorkerStats { transactions, busy, ..WorkerStats::default() };
        let fairness = Fairness::of_workers(&[worker(2, 1_000_000_000), worker(4, 3_000_000_000)]);
        let expected =
            Fairness { events_mean: 3.0, events_stddev: 1.0, busy_mean_s: 2.0, busy_stddev_s: 1.0 };
        assert_eq!(fairness, expected);
    }

    /// Printed by sysbench 1.0.20 on a real run.
    const HISTOGRAM: &str = include_str!("../../golden/sysbench/histogram.txt");

    #[test]
    fn the_histogram_has_every_byte_of_the_originals() {
        let mut buckets = vec![0; BUCKETS];
        for line in HISTOGRAM.lines().filter(|line| line.contains(" |")) {
            let words: Vec<&str> = line.split_whitespace().collect();
            let value: f64 = words[0].parse().expect(line);
            let count = words.last().and_then(|word| word.parse().ok()).expect(line);
            buckets[bucket_of(value)] = count;
        }
        assert_eq!(print(&buckets), HISTOGRAM);
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
