//! The lines that `-l` writes: one per transaction, or sums per interval. Pure: transactions in,
//! text out.

use crate::random::PgRng;
use dyno_core::{ErrorClass, Outcome};
use std::fmt::Write;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransactionEntry {
    /// Number of the client, from 0.
    pub client: u32,
    /// Number of the transaction among those of its client, from 1.
    pub number: u64,
    /// Number of the script, from 0.
    pub script: usize,
    pub outcome: Outcome,
    /// From the scheduled begin, if there is one, in microseconds.
    pub latency_us: u64,
    /// When, in microseconds since 1970.
    pub ended_us: u64,
    /// Lateness of its begin, in microseconds.
    pub lag_us: u64,
    /// Tries beyond the first one.
    pub retries: u32,
}

/// Columns of the log, which follow from the options of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogColumns {
    /// `-R`: how late transactions began.
    pub lag: bool,
    /// `-L`: skipped transactions are summed.
    pub skipped: bool,
    /// `--max-tries` is not 1.
    pub retries: bool,
    /// `--failures-detailed`.
    pub failures: bool,
}

impl LogColumns {
    /// Writes the line of one transaction.
    pub fn push(&self, out: &mut String, entry: &TransactionEntry) {
        let TransactionEntry { client, number, script, ended_us, latency_us, .. } = entry;
        let is_processed = matches!(entry.outcome, Outcome::Committed | Outcome::RolledBack);
        // Writing to a String can't fail.
        let _ = write!(out, "{client} {number} ");
        let _ = match entry.outcome {
            Outcome::Committed | Outcome::RolledBack => write!(out, "{latency_us}"),
            Outcome::Skipped => write!(out, "skipped"),
            Outcome::Failed(_) if !self.failures => write!(out, "failed"),
            Outcome::Failed(ErrorClass::Serialization) => write!(out, "serialization"),
            Outcome::Failed(ErrorClass::Deadlock) => write!(out, "deadlock"),
            // With `--continue-on-error`.
            Outcome::Failed(_) => write!(out, "other"),
        };
        let _ = write!(out, " {script} {} {}", ended_us / 1_000_000, ended_us % 1_000_000);
        if self.lag {
            // As in pgbench: what was not processed has no latency, and no lag.
            let _ = write!(out, " {}", if is_processed { entry.lag_us } else { 0 });
        }
        if self.retries {
            let _ = write!(out, " {}", entry.retries);
        }
        out.push('\n');
    }
}

/// Returns true if a log of this rate keeps the next transaction.
pub fn is_sampled(rate: f64, stream: &mut PgRng) -> bool {
    stream.double() <= rate
}

/// Sum, sum of squares, minimum and maximum of microseconds. As in pgbench the sums are doubles:
/// squares of long times would not fit into integers.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Sums {
    count: u64,
    sum: f64,
    squares: f64,
    min: f64,
    max: f64,
}

impl Sums {
    /// Adds a value in microseconds.
    fn add(&mut self, value_us: u64) {
        let value = value_us as f64;
        self.min = if self.count == 0 { value } else { self.min.min(value) };
        self.max = self.max.max(value);
        self.count += 1;
        self.sum += value;
        self.squares += value * value;
    }

    /// Appends sum, sum of squares, minimum and maximum.
    fn push(&self, out: &mut String) {
        let Sums { sum, squares, min, max, .. } = self;
        let _ = write!(out, " {sum:.0} {squares:.0} {min:.0} {max:.0}");
    }
}

/// Sums transactions over intervals of whole seconds (`--aggregate-interval`).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Aggregate {
    columns: LogColumns,
    length_us: u64,
    begin_us: u64,
    latency: Sums,
    lag: Sums,
    skipped: u64,
    retried: u64,
    retries: u64,
    serialization_failures: u64,
    deadlock_failures: u64,
}

impl Aggregate {
    /// Intervals of `length_s` seconds, the first of which begins with the second in which the
    /// run began (`begin_us`, microseconds since 1970).
    pub fn new(columns: LogColumns, length_s: u32, begin_us: u64) -> Self {
        Aggregate {
            columns,
            length_us: u64::from(length_s.max(1)) * 1_000_000,
            begin_us: begin_us / 1_000_000 * 1_000_000,
            ..Aggregate::default()
        }
    }

    /// Takes one transaction; writes the lines of the intervals that were over before it ended.
    pub fn take(&mut self, out: &mut String, entry: &TransactionEntry) {
        self.advance(out, entry.ended_us);
        if entry.outcome != Outcome::Skipped {
            self.retried += u64::from(entry.retries > 0);
            self.retries += u64::from(entry.retries);
        }
        match entry.outcome {
            Outcome::Committed | Outcome::RolledBack => {
                self.latency.add(entry.latency_us);
                self.lag.add(entry.lag_us);
            }
            Outcome::Skipped => self.skipped += 1,
            Outcome::Failed(ErrorClass::Serialization) => self.serialization_failures += 1,
            Outcome::Failed(ErrorClass::Deadlock) => self.deadlock_failures += 1,
            // The format has no column for these.
            Outcome::Failed(_) => {}
        }
    }

    /// Writes the lines of all intervals that are over at `now_us`, empty ones too. As in pgbench
    /// one that was cut short is not written.
    pub fn advance(&mut self, out: &mut String, now_us: u64) {
        while self.begin_us + self.length_us <= now_us {
            self.push(out);
            let next_us = self.begin_us + self.length_us;
            let length_s = (self.length_us / 1_000_000) as u32;
            *self = Aggregate::new(self.columns, length_s, next_us);
        }
    }

    /// Appends the line of an interval.
    fn push(&self, out: &mut String) {
        let LogColumns { lag, skipped, retries, failures } = self.columns;
        let _ = write!(out, "{} {}", self.begin_us / 1_000_000, self.latency.count);
        self.latency.push(out);
        if lag { self.lag } else { Sums::default() }.push(out);
        for (is_enabled, count) in [
            (skipped, self.skipped),
            (retries, self.retried),
            (retries, self.retries),
            (failures, self.serialization_failures),
            (failures, self.deadlock_failures),
        ] {
            let _ = write!(out, " {}", if is_enabled { count } else { 0 });
        }
        out.push('\n');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: LogColumns = LogColumns { lag: true, skipped: true, retries: true, failures: true };

    const SKIPPED: (Outcome, u64) = (Outcome::Skipped, 0);

    fn processed(latency_us: u64) -> (Outcome, u64) {
        (Outcome::Committed, latency_us)
    }

    fn failed(class: ErrorClass) -> (Outcome, u64) {
        (Outcome::Failed(class), 0)
    }

    fn entry((outcome, latency_us): (Outcome, u64), ended_us: u64) -> TransactionEntry {
        TransactionEntry {
            client: 3,
            number: 2,
            script: 1,
            outcome,
            latency_us,
            ended_us,
            lag_us: 40,
            retries: 2,
        }
    }

    /// The line of a logged transaction.
    fn line(columns: LogColumns, logged: (Outcome, u64)) -> String {
        let mut out = String::new();
        columns.push(&mut out, &entry(logged, 1_795_287_049_000_111));
        out
    }

    #[test]
    fn columns_follow_from_the_options() {
        let plain = LogColumns::default();
        // Microseconds are their own number, without zeros before it.
        assert_eq!(line(plain, processed(2_209)), "3 2 2209 1 1795287049 111\n");
        assert_eq!(line(plain, failed(ErrorClass::Deadlock)), "3 2 failed 1 1795287049 111\n");
        assert_eq!(line(ALL, processed(7)), "3 2 7 1 1795287049 111 40 2\n");
        assert_eq!(line(ALL, SKIPPED), "3 2 skipped 1 1795287049 111 0 2\n");
        let conflict = line(ALL, failed(ErrorClass::Serialization));
        assert_eq!(conflict, "3 2 serialization 1 1795287049 111 0 2\n");
        assert_eq!(line(ALL, failed(ErrorClass::Deadlock)).split(' ').nth(2), Some("deadlock"));
        assert_eq!(line(ALL, failed(ErrorClass::Other)).split(' ').nth(2), Some("other"));
    }

    #[test]
    fn intervals_begin_with_whole_seconds_and_empty_ones_are_written() {
        let mut out = String::new();
        let mut aggregate = Aggregate::new(ALL, 2, 100_700_000);
        aggregate.take(&mut out, &entry(processed(100), 101_000_000));
        aggregate.take(&mut out, &entry(processed(300), 101_999_999));
        aggregate.take(&mut out, &entry(SKIPPED, 101_999_999));
        aggregate.take(&mut out, &entry(failed(ErrorClass::Serialization), 101_999_999));
        assert_eq!(out, "");
        aggregate.take(&mut out, &entry(processed(7), 104_000_000));
        assert_eq!(
            out,
            "100 2 400 100000 100 300 80 3200 40 40 1 3 6 1 0\n102 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n"
        );
        out.clear();
        aggregate.advance(&mut out, 105_999_999);
        assert_eq!(out, "");
        aggregate.advance(&mut out, 106_000_000);
        assert_eq!(out, "104 1 7 49 7 7 40 1600 40 40 0 1 2 0 0\n");
    }

    #[test]
    fn what_is_not_asked_for_is_0() {
        let mut out = String::new();
        let mut aggregate = Aggregate::new(LogColumns::default(), 1, 0);
        aggregate.take(&mut out, &entry(failed(ErrorClass::Deadlock), 1));
        aggregate.take(&mut out, &entry(SKIPPED, 1));
        aggregate.take(&mut out, &entry(processed(9), 2));
        aggregate.advance(&mut out, 1_000_000);
        assert_eq!(out, "0 1 9 81 9 9 0 0 0 0 0 0 0 0 0\n");
    }

    #[test]
    fn a_sample_has_its_share_and_all_is_all() {
        let mut stream = PgRng::new(7);
        let mut count_sampled =
            |rate| (0..10_000).filter(|_| is_sampled(rate, &mut stream)).count();
        assert_eq!(count_sampled(1.0), 10_000);
        // 1,000 with a standard deviation of 30.
        assert!((820..1_180).contains(&count_sampled(0.1)));
    }
}
