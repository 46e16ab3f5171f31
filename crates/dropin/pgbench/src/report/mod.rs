//! The report at the end of a run, in pgbench 15's shape: plain numbers in, text out.

use super::settings::{Length, Settings};
use super::setup::Tables;
use std::fmt::{self, Write};

/// Transactions by how they ended, of a run or of one script.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) processed: u64,
    pub(super) skipped: u64,
    pub(super) serialization_failures: u64,
    pub(super) deadlock_failures: u64,
    /// Only with `--continue-on-error`.
    pub(super) other_failures: u64,
    /// Transactions that were tried more than once.
    pub(super) retried: u64,
    /// Tries beyond the first ones.
    pub(super) retries: u64,
}

impl Counts {
    pub(super) fn failures(&self) -> u64 {
        self.serialization_failures + self.deadlock_failures + self.other_failures
    }

    pub(super) fn total(&self) -> u64 {
        self.processed + self.skipped + self.failures()
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Latency {
    pub(super) average_ms: f64,
    pub(super) stddev_ms: f64,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Command {
    /// Its first line.
    pub(super) text: String,
    /// 0 when it was never executed.
    pub(super) average_ms: f64,
    pub(super) failures: u64,
    pub(super) retries: u64,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Script {
    pub(super) description: String,
    pub(super) weight: u32,
    pub(super) counts: Counts,
    /// `None` when nothing of it was processed.
    pub(super) latency: Option<Latency>,
    /// Filled when they are to be reported.
    pub(super) commands: Vec<Command>,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Report<'a> {
    pub(super) settings: &'a Settings,
    pub(super) tables: Tables,
    /// Loops of the run.
    pub(super) threads: u32,
    pub(super) counts: Counts,
    /// Processed transactions that took longer than `-L`.
    pub(super) late: u64,
    /// `None` when nothing was processed.
    pub(super) latency: Option<Latency>,
    /// Percent and milliseconds of each percentile that was asked for.
    pub(super) percentiles: &'a [(f64, f64)],
    /// Average and maximum.
    pub(super) lag_ms: (f64, f64),
    /// Initial, or with `-C` on average.
    pub(super) connection_ms: f64,
    /// Length of the run, connecting left out unless `-C`.
    pub(super) seconds: f64,
    pub(super) scripts: &'a [Script],
}

/// A share in percent; of nothing it is 0, where pgbench prints `NaN`.
fn percent(part: u64, whole: u64) -> f64 {
    100.0 * part as f64 / whole.max(1) as f64
}

/// A line `LABEL: N (P%)`.
fn share(f: &mut impl Write, label: &str, part: u64, whole: u64) -> fmt::Result {
    writeln!(f, "{label}: {part} ({:.3}%)", percent(part, whole))
}

/// The lines about failed and repeated transactions; `prefix` stands before each.
fn failures(f: &mut impl Write, prefix: &str, counts: &Counts, settings: &Settings) -> fmt::Result {
    let total = counts.total();
    let mut line = |label: &str, part| share(f, &format!("{prefix}{label}"), part, total);
    line("number of failed transactions", counts.failures())?;
    if settings.failures_detailed {
        line("number of serialization failures", counts.serialization_failures)?;
        line("number of deadlock failures", counts.deadlock_failures)?;
        if settings.continue_on_error {
            line("number of other failures", counts.other_failures)?;
        }
    }
    if settings.max_tries != 1 {
        line("number of transactions retried", counts.retried)?;
        writeln!(f, "{prefix}total number of retries: {}", counts.retries)?;
    }
    Ok(())
}

impl Report<'_> {
    fn tps(&self, processed: u64) -> f64 {
        processed as f64 / self.seconds
    }

    fn head(&self, f: &mut impl Write) -> fmt::Result {
        let description = match self.scripts {
            [only] => only.description.as_str(),
            _ => "multiple scripts",
        };
        writeln!(f, "transaction type: {description}\nscaling factor: {}", self.tables.scale)?;
        if let Some((method, number)) = self.tables.partitions {
            writeln!(f, "partition method: {method}\npartitions: {number}")?;
        }
        let Settings { mode, clients, max_tries, .. } = self.settings;
        writeln!(f, "query mode: {}", mode.name())?;
        writeln!(f, "number of clients: {clients}\nnumber of threads: {}", self.threads)?;
        if *max_tries > 0 {
            writeln!(f, "maximum number of tries: {max_tries}")?;
        }
        let processed = self.counts.processed;
        match self.settings.length() {
            Length::Transactions(each) => {
                let asked = u64::from(each) * u64::from(*clients);
                writeln!(f, "number of transactions per client: {each}")?;
                writeln!(f, "number of transactions actually processed: {processed}/{asked}")
            }
            Length::Seconds(seconds) => {
                writeln!(f, "duration: {seconds} s")?;
                writeln!(f, "number of transactions actually processed: {processed}")
            }
        }
    }

    fn times(&self, f: &mut impl Write) -> fmt::Result {
        let Report { settings, counts, latency, .. } = self;
        if settings.skips() {
            share(f, "number of transactions skipped", counts.skipped, counts.total())?;
        }
        if settings.late_limit_us > 0 {
            let late_percent = percent(self.late, counts.processed.max(1));
            let limit_ms = settings.late_limit_us as f64 / 1000.0;
            let (late, processed) = (self.late, counts.processed);
            writeln!(
                f,
                "number of transactions above the {limit_ms:.1} ms latency limit: \
                 {late}/{processed} ({late_percent:.3}%)"
            )?;
        }
        let is_computed = settings.connect_each || counts.failures() > 0;
        if is_computed && !settings.has_deviation() {
            // Not measured, so that connecting is part of it, as it is of tps, and so are failures.
            let all = f64::from(settings.clients) * self.seconds;
            let average_ms = 1_000.0 * all / counts.total() as f64;
            let note = if counts.failures() > 0 { " (including failures)" } else { "" };
            writeln!(f, "latency average = {average_ms:.3} ms{note}")?;
        } else if let Some(latency) = latency {
            writeln!(f, "latency average = {:.3} ms", latency.average_ms)?;
            if settings.has_deviation() {
                writeln!(f, "latency stddev = {:.3} ms", latency.stddev_ms)?;
            }
        }
        for (percent, latency_ms) in self.percentiles {
            writeln!(f, "latency percentile {percent} = {latency_ms:.3} ms")?;
        }
        if settings.rate_per_s.is_some() {
            let (average, max) = self.lag_ms;
            writeln!(f, "rate limit schedule lag: avg {average:.3} (max {max:.3}) ms")?;
        }
        let (label, note) = match settings.connect_each {
            true => ("average connection time", "including reconnection times"),
            false => ("initial connection time", "without initial connection time"),
        };
        writeln!(f, "{label} = {:.3} ms", self.connection_ms)?;
        writeln!(f, "tps = {:.6} ({note})", self.tps(counts.processed))
    }

    fn script(&self, f: &mut impl Write, number: usize, script: &Script) -> fmt::Result {
        let Script { counts, weight, .. } = script;
        let weights: u64 = self.scripts.iter().map(|script| u64::from(script.weight)).sum();
        writeln!(f, "SQL script {number}: {}", script.description)?;
        let target = percent(u64::from(*weight), weights);
        writeln!(f, " - weight: {weight} (targets {target:.1}% of total)")?;
        writeln!(
            f,
            " - {} transactions ({:.1}% of total, tps = {:.6})",
            counts.processed,
            percent(counts.processed, self.counts.processed),
            self.tps(counts.processed)
        )?;
        failures(f, " - ", counts, self.settings)?;
        if self.settings.skips() && counts.total() > 0 {
            share(f, " - number of transactions skipped", counts.skipped, counts.total())?;
        }
        if let Some(latency) = script.latency {
            writeln!(f, " - latency average = {:.3} ms", latency.average_ms)?;
            writeln!(f, " - latency stddev = {:.3} ms", latency.stddev_ms)?;
        }
        Ok(())
    }

    fn commands(&self, f: &mut impl Write, prefix: &str, commands: &[Command]) -> fmt::Result {
        let has_retries = self.settings.max_tries != 1;
        let what = if has_retries { ", failures and retries" } else { " and failures" };
        writeln!(f, "{prefix}statement latencies in milliseconds{what}:")?;
        for Command { text, average_ms, failures, retries } in commands {
            write!(f, "   {average_ms:>11.3}  {failures:>10}")?;
            if has_retries {
                write!(f, "  {retries:>10}")?;
            }
            writeln!(f, "  {text}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Report<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.head(f)?;
        failures(f, "", &self.counts, self.settings)?;
        // What follows has no meaning when nothing was executed.
        if self.counts.processed + self.counts.skipped == 0 {
            return Ok(());
        }
        self.times(f)?;
        let per_script = self.scripts.len() > 1;
        for (index, script) in self.scripts.iter().enumerate() {
            if per_script {
                self.script(f, index + 1, script)?;
            }
            if self.settings.report_per_command {
                let prefix = if per_script { " - " } else { "" };
                self.commands(f, prefix, &script.commands)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
