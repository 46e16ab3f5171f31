//! What a person sees while dyno works: bars on a terminal, plain lines elsewhere.

use crate::failure::Failure;
use crate::output::{self, ProgressView, streams};
use crate::remaining;
use crate::signals;
use crate::watch::{WatchedNode, dead_node, look_at_nodes};
use dyno_core::{NodeSight, counted};
use dyno_engine::record::{MeasuredInterval, Phase};
use dyno_facts::format::short;
use dyno_load::{LoadError, LoadObserver};
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
            bar.set(position, &(message.to_owned() + &remaining::of_run()));
            return;
        }
        let Ok(mut told) = self.told.lock() else { return };
        if told.elapsed() >= PLAIN_EVERY {
            *told = Instant::now();
            let share = if length > 0 { position as f64 / length as f64 * 100.0 } else { 0.0 };
            // Of what was measured so far.
            let left_s = self.begun.elapsed().as_secs_f64() * (100.0 / share - 1.0);
            // The first rows say nothing of the rest.
            let left =
                if share >= 1.0 { format!(", {} left", about(left_s)) } else { String::new() };
            output::talk(&format!("{}: {share:.0} % {message}{left}", self.title));
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
        self.end(text, output::step);
    }

    /// The same of what did not end well, which is told in any case.
    pub fn fail(self, text: &str) {
        self.end(text, output::talk);
    }

    fn end(self, text: &str, tell: fn(&str)) {
        if let Some(bar) = self.bar {
            bar.clear();
        }
        let seconds = self.begun.elapsed().as_secs_f64();
        tell(&format!("{}: {text} ({seconds:.1} s)", self.title));
    }
}

/// `about 40 s`, `about 12 min`.
pub(crate) fn about(seconds: f64) -> String {
    match seconds {
        s if s < 90.0 => format!("about {s:.0} s"),
        s if s < 5400.0 => format!("about {:.0} min", s / 60.0),
        s => format!("about {:.1} h", s / 3600.0),
    }
}

/// How long rows are watched before the time of a load is estimated from them.
const PROBE: Duration = Duration::from_secs(2);
/// Loads that are shorter are not estimated.
const WORTH_TELLING_S: f64 = 10.0;

pub struct LoadProgress {
    progress: ProgressBar,
    planned: AtomicU64,
    rows: AtomicU64,
    probe: Mutex<FirstRows>,
    nodes: Vec<WatchedNode>,
    mark: Option<String>,
}

/// Estimates the time of a load from its first rows.
#[derive(Default)]
enum FirstRows {
    #[default]
    Waiting,
    Since(Instant, u64),
    Told,
}

impl FirstRows {
    /// Rows per second, once, when `sent` rows were seen at `now` and the first of them long enough before.
    fn rate(&mut self, now: Instant, sent: u64) -> Option<f64> {
        match *self {
            FirstRows::Waiting if sent > 0 => *self = FirstRows::Since(now, sent),
            FirstRows::Since(since, first) if now >= since + PROBE && sent > first => {
                *self = FirstRows::Told;
                return Some((sent - first) as f64 / (now - since).as_secs_f64());
            }
            FirstRows::Waiting | FirstRows::Since(..) | FirstRows::Told => {}
        }
        None
    }
}

impl LoadProgress {
    pub fn new(title: &str) -> Self {
        let progress = ProgressBar::new(title, 0, "rows");
        LoadProgress {
            progress,
            planned: AtomicU64::new(0),
            rows: AtomicU64::new(0),
            probe: Mutex::default(),
            nodes: Vec::new(),
            mark: None,
        }
    }

    /// Tables that are created get this comment.
    pub(crate) fn marking(self, mark: String) -> Self {
        LoadProgress { mark: Some(mark), ..self }
    }

    /// Where nothing goes on, these are looked at.
    pub(crate) fn of_nodes(self, nodes: Vec<WatchedNode>) -> Self {
        LoadProgress { nodes, ..self }
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
    fn table_mark(&self) -> Option<&str> {
        self.mark.as_deref()
    }

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

    fn rows_sent(&self, rows: u64) {
        let rate = self.probe.lock().ok().and_then(|mut probe| probe.rate(Instant::now(), rows));
        let Some(rate) = rate else { return };
        let planned = self.planned.load(Ordering::Relaxed);
        let all_s = planned as f64 / rate;
        if all_s >= WORTH_TELLING_S {
            let (title, rate, time) = (&self.progress.title, short(rate), about(all_s));
            self.progress.note(&format!(
                "{title}: {time} for the {planned} rows alone, at the {rate} rows/s of its first {} s",
                PROBE.as_secs()
            ));
        }
    }

    fn note(&self, text: &str) {
        self.progress.suspend(|| output::step(&format!("note: {text}")));
    }

    fn is_canceled(&self) -> bool {
        signals::has_come()
    }

    fn lost_node(&self) -> Option<NodeSight> {
        dead_node(&self.nodes)
    }

    fn watches_nodes(&self) -> bool {
        !self.nodes.is_empty()
    }

    fn nodes(&self) -> Vec<NodeSight> {
        look_at_nodes(&self.nodes, self.patience().answer_within)
    }
}

/// Makes a load that the same command goes on with after Ctrl-C, shows its progress, and what `told` says of it.
pub fn follow_load<R>(
    load: impl FnOnce(&LoadProgress) -> Result<R, LoadError>,
    told: impl FnOnce(&R) -> String,
) -> Result<R, Failure> {
    let watched = signals::end_on_interrupt("what is stored is kept", || {});
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
            Err(match error {
                LoadError::Canceled { .. } => Failure::interrupted("The load was stopped.")
                    .with_hint("The same command goes on with the load."),
                error => error.into(),
            })
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
            errors => format!(", {}", counted(errors, "error")),
        };
        let done = (interval.begins_s + warmup_s + interval.length_s).max(0.0);
        let message = format!("{phase}{} tx/s, p95 {} ms{errors}", short(tps), short(p95_ms));
        self.progress.at(done.round() as u64, self.seconds, &message);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_load_is_estimated_once_from_its_first_two_seconds() {
        let begin = Instant::now();
        let at = |ms| begin + Duration::from_millis(ms);
        let mut probe = FirstRows::default();
        assert_eq!(probe.rate(at(0), 0), None);
        assert_eq!(probe.rate(at(500), 64), None, "the first row begins it");
        assert_eq!(probe.rate(at(2_400), 640), None);
        assert_eq!(probe.rate(at(2_500), 1_064), Some(500.0));
        assert_eq!(probe.rate(at(9_000), 9_999), None, "once");
    }

    #[test]
    fn a_probe_waits_for_rows() {
        let begin = Instant::now();
        let mut probe = FirstRows::Since(begin, 64);
        assert_eq!(probe.rate(begin + 5 * PROBE, 64), None);
        assert_eq!(probe.rate(begin + 5 * PROBE, 74), Some(1.0));
    }

    #[test]
    fn times_are_round() {
        let told = [40.4, 100.0, 7200.0].map(about);
        assert_eq!(told, ["about 40 s", "about 2 min", "about 2.0 h"]);
    }
}
