//! The files of `-l`, and what `-L` counts.

use super::options::Settings;
use super::refusal::Refusal;
use super::scripts::words;
use dyno_core::{EndedTransaction, ErrorClass, Nanos, Outcome};
use dyno_pgbench::log::{Aggregate, LogColumns, LoggedOutcome, TransactionEntry, is_sampled};
use dyno_pgbench::random::{PgRng, Seeds};
use dyno_pgbench::run::{ThreadLog, TransactionLogger};
use dyno_reactor::monotonic_now;
use std::fs::File;
use std::io::{self, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{SystemTime, UNIX_EPOCH};

/// Text is handed to the system in pieces of about this size.
const PIECE: usize = 64 << 10;

#[derive(Debug)]
pub(super) struct Shared {
    /// Processed transactions that took longer than `-L`.
    pub(super) late: AtomicU64,
    /// When the workers were released.
    pub(super) opens: OnceLock<Nanos>,
    /// Nanoseconds from the epoch to the zero of the loops' clock.
    shift: u64,
}

impl Shared {
    pub(super) fn new() -> Arc<Self> {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let shift = (since.as_nanos() as u64).saturating_sub(monotonic_now());
        Arc::new(Shared { late: AtomicU64::new(0), opens: OnceLock::new(), shift })
    }

    /// Microseconds since 1970.
    pub(super) fn epoch_us(&self, at: Nanos) -> u64 {
        (at + self.shift) / 1_000
    }
}

/// One follower per thread, where anything follows transactions; none else.
pub(super) fn open(
    settings: &Settings,
    threads: u32,
    shared: &Arc<Shared>,
) -> Result<Vec<ThreadLog>, Refusal> {
    if !settings.log.wanted && settings.late_limit_us == 0 {
        return Ok(Vec::new());
    }
    let is_seeded = settings.variable("default_seed").is_none();
    let seeds = Seeds::new(settings.seed, settings.clients, threads, is_seeded);
    let follower = |(thread, streams): (usize, dyno_pgbench::random::ThreadStreams)| {
        let file = match settings.log.wanted {
            true => Some(LogFile::create(settings, thread, streams.sampling)?),
            false => None,
        };
        let late_limit = match settings.late_limit_us {
            0 => Nanos::MAX,
            limit_us => limit_us * 1_000,
        };
        let follower = Follower { file, late_limit, numbers: Vec::new(), shared: shared.clone() };
        Ok(Mutex::new(Box::new(follower) as Box<dyn TransactionLogger>))
    };
    seeds.threads.into_iter().enumerate().map(follower).collect()
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
        let logged = match ended.outcome {
            Outcome::Committed | Outcome::RolledBack => LoggedOutcome::Processed(latency / 1_000),
            Outcome::Skipped => LoggedOutcome::Skipped,
            Outcome::Failed(ErrorClass::Serialization) => LoggedOutcome::SerializationFailure,
            Outcome::Failed(ErrorClass::Deadlock) => LoggedOutcome::DeadlockFailure,
            Outcome::Failed(_) => LoggedOutcome::OtherFailure,
        };
        let opens = self.shared.opens.get().copied().unwrap_or(ended.began);
        let entry = TransactionEntry {
            client,
            number: self.numbers[index],
            script,
            logged,
            ended_us: self.shared.epoch_us(ended.ended),
            lag_us: ended.began.saturating_sub(ended.due) / 1_000,
            retries: ended.attempts.saturating_sub(1),
        };
        file.take(&entry, self.shared.epoch_us(opens));
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        if let Some(file) = &mut self.file {
            file.end(self.shared.epoch_us(monotonic_now()));
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

    fn take(&mut self, entry: &TransactionEntry, opens_us: u64) {
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

    fn write(&mut self) {
        let written = self.file.write_all(self.text.as_bytes());
        self.text.clear();
        self.error = self.error.take().or(written.err());
    }

    fn end(&mut self, now_us: u64) {
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
    }
}
