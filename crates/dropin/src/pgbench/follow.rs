//! Output while a trial runs: progress, the files of `-l`, the counts of `-L`.

use super::Refusal;
use super::options::Settings;
use super::scripts::words;
use dyno_core::{EndedTransaction, ErrorClass, Nanos, Outcome};
use dyno_engine::record::{Frame, MeasuredInterval, Phase, Window};
use dyno_engine::{Observer, TrialSpec};
use dyno_facts::SeriesRow;
use dyno_pgbench::log::{Aggregate, LogColumns, TransactionEntry, is_sampled};
use dyno_pgbench::random::{PgRng, Seeds};
use dyno_pgbench::run::{ThreadLog, TransactionLogger};
use dyno_reactor::monotonic_now;
use dyno_runner::output;
use dyno_store::HistogramLog;
use std::fmt;
use std::fs::File;
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{SystemTime, UNIX_EPOCH};

pub(super) struct Reporter<'a> {
    settings: &'a Settings,
    length: Nanos,
    shared: &'a Shared,
    is_running: &'a AtomicBool,
    hdr: Option<HistogramLog>,
    /// A row per interval, if they are requested.
    pub(super) rows: Vec<SeriesRow>,
}

impl<'a> Reporter<'a> {
    pub(super) fn new(
        settings: &'a Settings,
        spec: &TrialSpec,
        shared: &'a Shared,
        is_running: &'a AtomicBool,
        hdr: Option<HistogramLog>,
    ) -> Self {
        Reporter { settings, length: spec.interval, shared, is_running, hdr, rows: Vec::new() }
    }

    /// Returns the line of `-P` for an interval.
    fn line(&self, interval: &MeasuredInterval) -> ProgressLine {
        let Settings { progress_timestamp, max_tries, continue_on_error, .. } = *self.settings;
        let frame = &interval.frame;
        let (counts, latency) = (frame.counts(), frame.latency());
        let at_s = if progress_timestamp {
            self.shared.epoch_us(monotonic_now()) as f64 / 1e6
        } else {
            interval.begins_s + interval.length_s
        };
        let lateness = self.settings.rate_per_s.and(frame.lateness.as_ref());
        ProgressLine {
            at_s,
            is_timestamp: progress_timestamp,
            tps: latency.count() as f64 / interval.length_s,
            latency_ms: latency.mean() / 1e6,
            stddev_ms: if latency.count() == 0 {
                0.0
            } else {
                latency.to_histogram().stdev() / 1e6
            },
            failed: counts.failed.saturating_sub(retired(frame, continue_on_error)),
            lag_ms: lateness.map(|lateness| lateness.mean() / 1e6),
            skipped: self.settings.skips().then_some(counts.skipped),
            retries: (max_tries != 1).then_some((counts.retried, counts.retries)),
        }
    }
}

/// Transactions whose error ended their client: pgbench counts these nowhere.
fn retired(frame: &Frame, continue_on_error: bool) -> u64 {
    let ending = frame.errors.0.iter().filter(|error| match error.class {
        ErrorClass::Serialization | ErrorClass::Deadlock | ErrorClass::LockTimeout => false,
        ErrorClass::ConnectionLost => true,
        // Without an SQLSTATE: the script itself could not continue.
        _ => !continue_on_error || error.sqlstate == "00000",
    });
    ending.map(|error| error.count).sum()
}

impl Observer for Reporter<'_> {
    fn released(&mut self, window: &Window) {
        let _ = self.shared.opens.set(window.opens);
        self.is_running.store(true, Ordering::Relaxed);
    }

    fn interval(&mut self, interval: &MeasuredInterval) {
        if self.settings.json.is_some() {
            self.rows.push(SeriesRow::from(interval));
        }
        if interval.phase == Phase::WarmUp {
            return;
        }
        if let Some(hdr) = &mut self.hdr
            && let Err(error) = hdr.interval(interval)
        {
            output::talk(&format!("pgbench: error: could not write the file of --hdr: {error}"));
            self.shared.has_lost_lines.store(true, Ordering::Relaxed);
            self.hdr = None;
        }
        let is_whole = interval.length_s > self.length as f64 / 1e9 - 1e-6;
        if self.settings.progress_s.is_some() && is_whole {
            output::talk_lines(&self.line(interval).to_string());
        }
    }
}

/// The figures of a line of `-P`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct ProgressLine {
    /// Seconds since the start or, as a time stamp, since 1970.
    pub(super) at_s: f64,
    pub(super) is_timestamp: bool,
    pub(super) tps: f64,
    pub(super) latency_ms: f64,
    pub(super) stddev_ms: f64,
    pub(super) failed: u64,
    /// With `-R`.
    pub(super) lag_ms: Option<f64>,
    /// With `-R` and `-L`.
    pub(super) skipped: Option<u64>,
    /// With `--max-tries`: transactions retried, and retries.
    pub(super) retries: Option<(u64, u64)>,
}

impl fmt::Display for ProgressLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let decimals = if self.is_timestamp { 3 } else { 1 };
        write!(
            f,
            "progress: {:.decimals$} s, {:.1} tps, lat {:.3} ms stddev {:.3}, {} failed",
            self.at_s, self.tps, self.latency_ms, self.stddev_ms, self.failed
        )?;
        if let Some(lag_ms) = self.lag_ms {
            write!(f, ", lag {lag_ms:.3} ms")?;
        }
        if let Some(skipped) = self.skipped {
            write!(f, ", {skipped} skipped")?;
        }
        if let Some((retried, retries)) = self.retries {
            write!(f, ", {retried} retried, {retries} retries")?;
        }
        Ok(())
    }
}

/// Text is handed to the system in pieces of about this size.
const PIECE: usize = 64 << 10;

#[derive(Debug)]
pub(super) struct Shared {
    /// Processed transactions that took longer than `-L`.
    pub(super) late: AtomicU64,
    /// A file of the run could not be written whole.
    pub(super) has_lost_lines: AtomicBool,
    /// When the workers were released.
    pub(super) opens: OnceLock<Nanos>,
    /// Nanoseconds from the epoch to the zero of the loops' clock.
    shift: u64,
}

impl Shared {
    pub(super) fn new() -> Arc<Self> {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let shift = (since.as_nanos() as u64).saturating_sub(monotonic_now());
        Arc::new(Shared {
            late: AtomicU64::new(0),
            has_lost_lines: AtomicBool::new(false),
            opens: OnceLock::new(),
            shift,
        })
    }

    /// Microseconds since 1970.
    pub(super) fn epoch_us(&self, at: Nanos) -> u64 {
        (at + self.shift) / 1_000
    }
}

/// One follower per thread, where anything follows transactions; none else.
pub(super) fn open_logs(
    settings: &Settings,
    threads: u32,
    shared: &Arc<Shared>,
) -> Result<Vec<ThreadLog>, Refusal> {
    if !settings.log.wanted && settings.late_limit_us == 0 {
        return Ok(Vec::new());
    }
    let is_seeded = settings.variable("default_seed").is_none();
    let seeds = Seeds::new(settings.seed, settings.clients, threads, is_seeded);
    let late_limit = match settings.late_limit_us {
        0 => Nanos::MAX,
        limit_us => limit_us * 1_000,
    };
    let mut logs = Vec::new();
    for (thread, streams) in seeds.threads.into_iter().enumerate() {
        let file = if settings.log.wanted {
            Some(LogFile::create(settings, thread, streams.sampling)?)
        } else {
            None
        };
        let follower = Follower { file, late_limit, numbers: Vec::new(), shared: shared.clone() };
        logs.push(Mutex::new(Box::new(follower) as Box<dyn TransactionLogger>));
    }
    Ok(logs)
}

struct Follower {
    file: Option<LogFile>,
    late_limit: Nanos,
    /// Transactions of each client so far.
    numbers: Vec<u64>,
    shared: Arc<Shared>,
}

impl TransactionLogger for Follower {
    fn ended(&mut self, client: u32, script: usize, ended: &EndedTransaction) {
        if !ended.is_measured {
            return;
        }
        let latency = ended.ended.saturating_sub(ended.due);
        let is_processed = matches!(ended.outcome, Outcome::Committed | Outcome::RolledBack);
        if is_processed && latency > self.late_limit {
            self.shared.late.fetch_add(1, Ordering::Relaxed);
        }
        let Some(file) = &mut self.file else { return };
        let index = client as usize;
        if self.numbers.len() <= index {
            self.numbers.resize(index + 1, 0);
        }
        self.numbers[index] += 1;
        let opens = self.shared.opens.get().copied().unwrap_or(ended.began);
        let entry = TransactionEntry {
            client,
            number: self.numbers[index],
            script,
            outcome: ended.outcome,
            latency_us: latency / 1_000,
            ended_us: self.shared.epoch_us(ended.ended),
            lag_us: ended.began.saturating_sub(ended.due) / 1_000,
            retries: ended.attempts.saturating_sub(1),
        };
        file.write_entry(&entry, self.shared.epoch_us(opens));
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        if let Some(file) = &mut self.file {
            let is_whole = file.end(self.shared.epoch_us(monotonic_now()));
            self.shared.has_lost_lines.fetch_or(!is_whole, Ordering::Relaxed);
        }
    }
}

struct LogFile {
    file: File,
    name: String,
    text: String,
    columns: LogColumns,
    sampling: Option<(f64, PgRng)>,
    aggregate_s: Option<u32>,
    aggregate: Option<Aggregate>,
    error: Option<io::Error>,
}

impl LogFile {
    /// Creates the log file of a thread; `sampling` decides which transactions are logged.
    fn create(settings: &Settings, thread: usize, sampling: PgRng) -> Result<Self, Refusal> {
        let prefix = settings.log.prefix.as_deref().unwrap_or("pgbench_log");
        let mut name = format!("{prefix}.{}", std::process::id());
        if let Some(level) = settings.log.level {
            name.push_str(&format!(".level{level}"));
        }
        if thread > 0 {
            name.push_str(&format!(".{thread}"));
        }
        let file = File::create(&name)
            .map_err(|error| format!("could not open logfile \"{name}\": {}", words(&error)))?;
        Ok(LogFile {
            file,
            name,
            text: String::with_capacity(PIECE + 256),
            columns: LogColumns {
                lag: settings.rate_per_s.is_some(),
                skipped: settings.late_limit_us > 0,
                retries: settings.max_tries != 1,
                failures: settings.failures_detailed,
            },
            sampling: settings.log.sampling_rate.map(|rate| (rate, sampling)),
            aggregate_s: settings.log.aggregate_s,
            aggregate: None,
            error: None,
        })
    }

    fn write_entry(&mut self, entry: &TransactionEntry, opens_us: u64) {
        if let Some((rate, stream)) = &mut self.sampling
            && !is_sampled(*rate, stream)
        {
            return;
        }
        match self.aggregate_s {
            None => self.columns.push(&mut self.text, entry),
            Some(length_s) => self
                .aggregate
                .get_or_insert_with(|| Aggregate::new(self.columns, length_s, opens_us))
                .take(&mut self.text, entry),
        }
        if self.text.len() >= PIECE {
            self.write();
        }
    }

    /// Writes the lines that are kept; the first error is kept for the end.
    fn write(&mut self) {
        let written = self.file.write_all(self.text.as_bytes());
        self.text.clear();
        self.error = self.error.take().or(written.err());
    }

    /// Writes the rest; false if not all lines could be written.
    fn end(&mut self, now_us: u64) -> bool {
        if let Some(aggregate) = &mut self.aggregate {
            aggregate.advance(&mut self.text, now_us);
        }
        self.write();
        if let Some(error) = &self.error {
            dyno_runner::output::talk_lines(&format!(
                "pgbench: error: could not write logfile \"{}\": {}",
                self.name,
                words(error)
            ));
        }
        self.error.is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The number that follows a word of a line.
    fn after(line: &str, word: &str) -> Option<f64> {
        let tail = line.split_once(word)?.1.trim_start();
        let end = tail.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(tail.len());
        tail[..end].parse().ok()
    }

    /// The number before a word of a line.
    fn before(line: &str, word: &str) -> Option<u64> {
        line.split_once(word)?.0.rsplit(' ').next()?.parse().ok()
    }

    #[test]
    fn lines_have_every_byte_of_the_originals() {
        for original in include_str!("../../golden/pgbench/progress.txt").lines() {
            let [at_s, tps, latency_ms, stddev_ms] = ["progress:", "s,", "lat", "stddev"]
                .map(|word| after(original, word).unwrap_or_else(|| panic!("{original}")));
            let retries = before(original, " retried").zip(before(original, " retries"));
            let line = ProgressLine {
                at_s,
                is_timestamp: at_s > 1e6,
                tps,
                latency_ms,
                stddev_ms,
                failed: before(original, " failed").unwrap_or_else(|| panic!("{original}")),
                lag_ms: after(original, "lag"),
                skipped: before(original, " skipped"),
                retries,
            };
            assert_eq!(line.to_string(), original);
        }
    }
}
