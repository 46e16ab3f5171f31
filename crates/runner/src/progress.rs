//! What a person sees while dyno works: bars on a terminal, plain lines elsewhere.

use crate::failure::Failure;
use crate::output::{self, ProgressView, streams};
use crate::signals;
use dyno_facts::format::short;
use dyno_load::{LoadError, LoadObserver};
use dyno_record::{MeasuredInterval, Phase};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// How often a plain line tells of something that takes long.
const PLAIN_EVERY: Duration = Duration::from_secs(10);

/// The progress of one thing: a bar on a terminal, a plain line every ten seconds elsewhere.
pub struct ProgressBar {
    bar: Option<Box<dyn ProgressView>>,
    title: String,
    told: Mutex<Instant>,
    begun: Instant,
}

impl ProgressBar {
    /// Something with `length` units (0: unknown yet) named `title`.
    pub fn new(title: &str, length: u64, unit: &str) -> Self {
        let bar = streams().and_then(|streams| streams.bar(title, length, unit));
        let now = Instant::now();
        ProgressBar { bar, title: title.to_owned(), told: Mutex::new(now), begun: now }
    }

    pub fn set_length(&self, length: u64) {
        if let Some(bar) = &self.bar {
            bar.set_length(length);
        }
    }

    pub fn at(&self, position: u64, length: u64, message: &str) {
        if let Some(bar) = &self.bar {
            bar.set(position, message);
            return;
        }
        let Ok(mut told) = self.told.lock() else { return };
        if told.elapsed() >= PLAIN_EVERY {
            *told = Instant::now();
            let share = if length > 0 { position as f64 / length as f64 * 100.0 } else { 0.0 };
            output::talk(&format!("{}: {share:.0} % {message}", self.title));
        }
    }

    pub fn suspend(&self, print: impl FnOnce()) {
        match &self.bar {
            Some(bar) => {
                let mut print = Some(print);
                bar.suspend(&mut || {
                    if let Some(print) = print.take() {
                        print();
                    }
                });
            }
            None => print(),
        }
    }

    /// A line that stays.
    pub fn note(&self, text: &str) {
        self.suspend(|| output::talk(text));
    }

    pub fn clear(self) {
        if let Some(bar) = self.bar {
            bar.clear();
        }
    }

    /// Done: the bar goes, a line stays.
    pub fn finish(self, text: &str) {
        if let Some(bar) = self.bar {
            bar.clear();
        }
        let seconds = self.begun.elapsed().as_secs_f64();
        output::talk(&format!("{}: {text} ({seconds:.1} s)", self.title));
    }
}

pub struct LoadProgress {
    progress: ProgressBar,
    planned: AtomicU64,
    rows: AtomicU64,
}

impl LoadProgress {
    pub fn new(title: &str) -> Self {
        let progress = ProgressBar::new(title, 0, "rows");
        LoadProgress { progress, planned: AtomicU64::new(0), rows: AtomicU64::new(0) }
    }

    pub fn finish(self, text: &str) {
        self.progress.finish(text);
    }

    /// Not done, or nothing to say about it.
    pub fn clear(self) {
        self.progress.clear();
    }

    pub fn suspend(&self, print: impl FnOnce()) {
        self.progress.suspend(print);
    }
}

impl LoadObserver for LoadProgress {
    fn rows_planned(&self, rows: u64) {
        self.planned.store(rows, Ordering::Relaxed);
        self.progress.set_length(rows);
    }

    fn rows_done(&self, rows: u64) {
        let done = self.rows.fetch_add(rows, Ordering::Relaxed) + rows;
        let rate = done as f64 / self.progress.begun.elapsed().as_secs_f64().max(0.001);
        let message = format!("{} rows/s", short(rate));
        self.progress.at(done, self.planned.load(Ordering::Relaxed), &message);
    }

    fn creating_index(&self, table: &str) {
        let done = self.rows.load(Ordering::Relaxed);
        self.progress.at(done, self.planned.load(Ordering::Relaxed), &format!("indexing {table}"));
    }

    fn note(&self, text: &str) {
        self.progress.note(&format!("note: {text}"));
    }
}

/// Makes a load that the same command goes on with after Ctrl-C, shows its progress, and what `told` says of it.
pub fn follow_load<R>(
    load: impl FnOnce(&LoadProgress) -> Result<R, LoadError>,
    told: impl FnOnce(&R) -> String,
) -> Result<R, Failure> {
    let watched = signals::on_interrupt(|| {
        output::talk("Stopped. The same command goes on with the load: what is stored is kept.");
        std::process::exit(i32::from(signals::exit_code()));
    });
    if let Err(error) = watched {
        output::talk(&format!("warning: Ctrl-C will end the load without a word: {error}"));
    }
    let progress = LoadProgress::new("load");
    match load(&progress) {
        Ok(report) => {
            progress.finish(&told(&report));
            Ok(report)
        }
        Err(error) => {
            progress.clear();
            Err(error.into())
        }
    }
}

/// Prints the tables that are dropped.
pub struct DroppedTables;

impl LoadObserver for DroppedTables {
    fn dropping_table(&self, table: &str) {
        output::data(&format!("drop table {table};\n"));
    }
}

pub struct TrialProgress {
    pub(crate) progress: ProgressBar,
    seconds: u64,
}

impl TrialProgress {
    /// A trial named `title` of about that many seconds, warm-up included.
    pub fn new(title: &str, seconds: f64) -> Self {
        let seconds = seconds.round() as u64;
        TrialProgress { progress: ProgressBar::new(title, seconds, "s"), seconds }
    }

    pub fn connected(&self, connected: u32, of: u32) {
        self.progress.at(0, self.seconds, &format!("connected {connected} of {of} workers"));
    }

    /// An interval is complete; `warmup_s` was asked for.
    pub fn interval(&self, interval: &MeasuredInterval, warmup_s: f64) {
        let counts = interval.frame.counts();
        let tps = counts.committed as f64 / interval.length_s.max(1e-9);
        let p95_ms = interval.frame.latency().percentile(95.0) as f64 / 1e6;
        let phase = if interval.phase == Phase::WarmUp { "warm-up, " } else { "" };
        let errors = match interval.frame.errors.total() {
            0 => String::new(),
            errors => format!(", {errors} errors"),
        };
        let done = (interval.begins_s + warmup_s + interval.length_s).max(0.0);
        let message = format!("{phase}{} tx/s, p95 {} ms{errors}", short(tps), short(p95_ms));
        self.progress.at(done.round() as u64, self.seconds, &message);
    }
}
