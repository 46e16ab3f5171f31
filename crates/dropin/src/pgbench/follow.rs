//! What is printed and written while a trial runs.

use super::logs::Shared;
use super::options::Settings;
use dyno_core::{ErrorClass, Nanos};
use dyno_engine::record::{ErrorCount, Frame, MeasuredInterval, Phase, Window};
use dyno_engine::{Observer, TrialSpec};
use dyno_facts::SeriesRow;
use dyno_reactor::monotonic_now;
use dyno_runner::output;
use dyno_store::HistogramLog;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};

pub(super) struct Reporter<'a> {
    settings: &'a Settings,
    length: Nanos,
    shared: &'a Shared,
    is_running: &'a AtomicBool,
    hdr: Option<HistogramLog>,
    rows: Vec<SeriesRow>,
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

    /// A row per interval, where they are asked for.
    pub(super) fn into_rows(self) -> Vec<SeriesRow> {
        self.rows
    }

    fn line(&self, interval: &MeasuredInterval) -> ProgressLine {
        let Settings { progress_timestamp, max_tries, continue_on_error, .. } = *self.settings;
        let frame = &interval.frame;
        let (counts, latency) = (frame.counts(), frame.latency());
        let at_s = match progress_timestamp {
            true => self.shared.epoch_us(monotonic_now()) as f64 / 1e6,
            false => interval.begins_s + interval.length_s,
        };
        let lag = |lateness: &dyno_engine::record::Latencies| lateness.mean() / 1e6;
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
            lag_ms: self.settings.rate_per_s.and(frame.lateness.as_ref()).map(lag),
            skipped: self.settings.skips().then_some(counts.skipped),
            retries: (max_tries != 1).then_some((counts.retried, counts.retries)),
        }
    }
}

/// Transactions whose error ended their client: pgbench counts these nowhere.
fn retired(frame: &Frame, continue_on_error: bool) -> u64 {
    let ends_client = |error: &&ErrorCount| match error.class {
        ErrorClass::Serialization | ErrorClass::Deadlock | ErrorClass::LockTimeout => false,
        ErrorClass::ConnectionLost => true,
        // Without an SQLSTATE: the script itself could not go on.
        _ => !continue_on_error || error.sqlstate == "00000",
    };
    frame.errors.0.iter().filter(ends_client).map(|error| error.count).sum()
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
            self.hdr = None;
        }
        let is_whole = interval.length_s > self.length as f64 / 1e9 - 1e-6;
        if self.settings.progress_s.is_some() && is_whole {
            output::talk_lines(&self.line(interval).to_string());
        }
    }
}

/// What one line of `-P` says.
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

#[cfg(test)]
mod tests {
    use super::*;

    /// The number that follows a word of a line.
    fn after(line: &str, word: &str) -> Option<f64> {
        let rest = line.split_once(word)?.1.trim_start();
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        rest[..end].parse().ok()
    }

    /// The number before a word of a line.
    fn before(line: &str, word: &str) -> Option<u64> {
        line.split_once(word)?.0.rsplit(' ').next()?.parse().ok()
    }

    #[test]
    fn lines_have_every_byte_of_the_originals() {
        for original in include_str!("../../golden/pgbench/progress.txt").lines() {
            let need = |word: &str| after(original, word).unwrap_or_else(|| panic!("{original}"));
            let retries = before(original, " retried").zip(before(original, " retries"));
            let line = ProgressLine {
                at_s: need("progress:"),
                is_timestamp: need("progress:") > 1e6,
                tps: need("s,"),
                latency_ms: need("lat"),
                stddev_ms: need("stddev"),
                failed: before(original, " failed").unwrap_or_else(|| panic!("{original}")),
                lag_ms: after(original, "lag"),
                skipped: before(original, " skipped"),
                retries,
            };
            assert_eq!(line.to_string(), original);
        }
    }
}
