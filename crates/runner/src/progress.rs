//! Progress for a person: bars on a terminal, plain lines elsewhere; and the time that the rest of a run will
//! take, by the guesses of its plan, corrected by how long its steps took so far.

use crate::failure::{Failure, Result};
use crate::output::{ProgressView, streams};
use crate::watch::{WatchedNode, dead_node, look_at_nodes};
use crate::{output, signals};
use dyno_core::{NodeSight, counted};
use dyno_engine::record::{MeasuredInterval, Phase};
use dyno_facts::format::short;
use dyno_facts::{ExperimentFacts, PlanStep};
use dyno_load::query::MARK;
use dyno_load::{LoadError, LoadErrorKind, LoadObserver};
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Interval of the plain lines on something that takes long.
const PLAIN_EVERY: Duration = Duration::from_secs(10);

/// The progress of one thing: a bar on a terminal, a plain line every ten seconds elsewhere.
pub struct ProgressBar {
    bar: Option<Box<dyn ProgressView>>,
    title: String,
    printed_at: Mutex<Instant>,
    began_at: Instant,
}

impl ProgressBar {
    /// Something with `length` units (0: unknown yet) named `title`.
    pub fn new(title: &str, length: u64, unit: &str) -> Self {
        let bar = streams().and_then(|streams| streams.bar(title, length, unit));
        let now = Instant::now();
        ProgressBar { bar, title: title.to_owned(), printed_at: Mutex::new(now), began_at: now }
    }

    pub fn set_length(&self, length: u64) {
        if let Some(bar) = &self.bar {
            bar.set_length(length);
        }
    }

    /// Shows the position of `length` units in all; without a bar, in a line every few seconds.
    pub fn at(&self, position: u64, length: u64, message: &str) {
        if let Some(bar) = &self.bar {
            bar.set(position, message);
            return;
        }
        let Ok(mut printed_at) = self.printed_at.lock() else { return };
        if printed_at.elapsed() >= PLAIN_EVERY {
            *printed_at = Instant::now();
            let share = if length > 0 { position as f64 / length as f64 * 100.0 } else { 0.0 };
            // By the measured part.
            let left_s = self.began_at.elapsed().as_secs_f64() * (100.0 / share - 1.0);
            // The first rows say nothing of the rest.
            let remaining =
                if share >= 1.0 { format!(", {} left", about(left_s)) } else { String::new() };
            output::print_step(&format!("{}: {share:.0}% {message}{remaining}", self.title));
        }
    }

    /// Calls `print` while the bar is out of the way.
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

    /// Removes the bar without a line.
    pub fn clear(self) {
        if let Some(bar) = self.bar {
            bar.clear();
        }
    }

    /// Done: the bar goes, a line stays.
    pub fn finish(self, text: &str) {
        self.finish_with(text, output::print_step);
    }

    /// Like `finish`, but for what did not end well: the line is printed even if steps are hidden.
    pub fn fail(self, text: &str) {
        self.finish_with(text, output::talk);
    }

    fn finish_with(self, text: &str, print: fn(&str)) {
        let seconds = self.began_at.elapsed().as_secs_f64();
        let line = format!("{}: {text} ({seconds:.1} s)", self.title);
        self.clear();
        print(&line);
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

pub struct LoadProgress {
    progress: ProgressBar,
    planned: AtomicU64,
    rows: AtomicU64,
    /// If nothing moves, these are looked at.
    nodes: Vec<WatchedNode>,
    /// Tables that are created get this comment.
    mark: String,
}

impl LoadProgress {
    pub fn new(title: &str) -> Self {
        LoadProgress::watching(title, Vec::new(), format!("{MARK}load"))
    }

    /// The progress of a load that looks at `nodes` if nothing moves, and marks its tables with `mark`.
    pub(crate) fn watching(title: &str, nodes: Vec<WatchedNode>, mark: String) -> Self {
        let progress = ProgressBar::new(title, 0, "rows");
        let (planned, rows) = (AtomicU64::new(0), AtomicU64::new(0));
        LoadProgress { progress, planned, rows, nodes, mark }
    }

    /// Done: the bar goes, a line with `text` stays.
    pub fn finish(self, text: &str) {
        self.progress.finish(text);
    }

    /// Not done, or nothing to say about it.
    pub fn clear(self) {
        self.progress.clear();
    }

    /// Calls `print` while the bar is out of the way.
    pub fn suspend(&self, print: impl FnOnce()) {
        self.progress.suspend(print);
    }
}

impl LoadObserver for LoadProgress {
    fn table_mark(&self) -> Option<&str> {
        Some(&self.mark)
    }

    fn rows_planned(&self, rows: u64) {
        self.planned.store(rows, Ordering::Relaxed);
        self.progress.set_length(rows);
    }

    fn rows_done(&self, rows: u64) {
        let loaded = self.rows.fetch_add(rows, Ordering::Relaxed) + rows;
        let rate = loaded as f64 / self.progress.began_at.elapsed().as_secs_f64().max(0.001);
        let message = format!("{} rows/s", short(rate));
        self.progress.at(loaded, self.planned.load(Ordering::Relaxed), &message);
    }

    fn creating_index(&self, table: &str) {
        let loaded = self.rows.load(Ordering::Relaxed);
        self.progress.at(
            loaded,
            self.planned.load(Ordering::Relaxed),
            &format!("indexing {table}"),
        );
    }

    fn note(&self, text: &str) {
        self.progress.suspend(|| output::print_step(&format!("note: {text}")));
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

/// Makes a load that the same command continues with after Ctrl-C, shows its progress, and what `describe` says of it.
pub fn follow_load<R>(
    load: impl FnOnce(&LoadProgress) -> Result<R, LoadError>,
    describe: impl FnOnce(&R) -> String,
) -> Result<R> {
    let watched = signals::end_on_interrupt("what is stored is kept", || {});
    if let Err(error) = watched {
        output::talk(&format!("warning: Ctrl-C will end the load without a word: {error}"));
    }
    let progress = LoadProgress::new("load");
    match load(&progress) {
        Ok(report) => {
            progress.finish(&describe(&report));
            Ok(report)
        }
        Err(error) => {
            progress.clear();
            Err(match error.kind {
                LoadErrorKind::Canceled => Failure::interrupted("The load was stopped.")
                    .with_hint("The same command continues the load."),
                _ => error.into(),
            })
        }
    }
}

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

    /// Shows how many workers are connected.
    pub fn connected(&self, connected: u32, total: u32) {
        self.progress.at(0, self.seconds, &format!("connected {connected} of {total} workers"));
    }

    /// An interval is complete; `warmup_s` was requested.
    pub fn interval(&self, interval: &MeasuredInterval, warmup_s: f64) {
        let counts = interval.frame.counts();
        let tps = counts.committed as f64 / interval.length_s.max(1e-9);
        let p95_ms = interval.frame.latency().percentile(95.0) as f64 / 1e6;
        let phase = if interval.phase == Phase::WarmUp { "warm-up, " } else { "" };
        let errors = match interval.frame.errors.total() {
            0 => String::new(),
            errors => format!(", {}", counted(errors, "error")),
        };
        let elapsed_s = (interval.begins_s + warmup_s + interval.length_s).max(0.0);
        let message = format!("{phase}{} tx/s, p95 {} ms{errors}", short(tps), short(p95_ms));
        self.progress.at(elapsed_s.round() as u64, self.seconds, &message);
    }
}

/// Seconds that count as having taken as long as guessed.
const TRUSTED_S: f64 = 5.0;
/// Interval of the plain lines that print it.
const PRINT_INTERVAL: Duration = Duration::from_secs(30);
/// A shorter time is not worth a line.
const MIN_ESTIMATED_S: f64 = 10.0;

/// Estimates the rest of a run, from the guesses for its steps and the time that steps have taken so far.
pub(crate) struct Remaining<'a> {
    experiments: &'a [ExperimentFacts],
    /// Seconds that steps so far were guessed to take, and that they have taken.
    guessed_s: f64,
    taken_s: f64,
    printed_at: Option<Instant>,
}

impl<'a> Remaining<'a> {
    pub(crate) fn new(experiments: &'a [ExperimentFacts]) -> Self {
        Remaining { experiments, guessed_s: TRUSTED_S, taken_s: TRUSTED_S, printed_at: None }
    }

    pub(crate) fn record_duration(&mut self, step: &PlanStep, seconds: f64) {
        self.guessed_s += step.estimated_s;
        self.taken_s += seconds;
    }

    /// `spent_s`: of the time that experiments have for their repeats, as the run folder has it.
    fn remaining_s(&self, steps: &[&PlanStep], spent_s: &BTreeMap<String, f64>) -> f64 {
        let factor = self.taken_s / self.guessed_s;
        let estimates: Vec<_> =
            steps.iter().map(|&step| (step, step.estimated_s * factor)).collect();
        dyno_suite::estimate(self.experiments, &estimates, |experiment| {
            spent_s.get(experiment).copied().unwrap_or(0.0)
        })
    }

    /// Returns what is left, now and then, in a line.
    pub(crate) fn show(
        &mut self,
        steps: &[&PlanStep],
        total: usize,
        spent_s: &BTreeMap<String, f64>,
    ) -> Option<String> {
        let remaining_s = self.remaining_s(steps, spent_s);
        let now = Instant::now();
        let is_due = self.printed_at.is_none_or(|printed_at| now - printed_at >= PRINT_INTERVAL);
        (is_due && remaining_s >= MIN_ESTIMATED_S).then(|| {
            self.printed_at = Some(now);
            let place = if self.experiments.iter().any(ExperimentFacts::has_open_steps) {
                "the run".to_owned()
            } else {
                format!("step {} of {total}", total + 1 - steps.len())
            };
            format!("{place}: {} left", about(remaining_s))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_facts::{ComparisonFacts, PlannedTrial, StepAction, StopRule};

    #[test]
    fn times_are_round() {
        let texts = [40.4, 100.0, 7200.0].map(about);
        assert_eq!(texts, ["about 40 s", "about 2 min", "about 2.0 h"]);
    }

    fn new_step(action: StepAction, estimated_s: f64) -> PlanStep {
        let (id, experiment, target) = (String::new(), String::new(), String::new());
        PlanStep { id, experiment, target, estimated_s, action }
    }

    #[test]
    fn what_took_longer_than_guessed_is_guessed_longer() {
        let load = new_step(StepAction::Prepare, 15.0);
        let trial = new_step(StepAction::Trial(PlannedTrial::default()), 10.0);
        let cleanup = new_step(StepAction::Cleanup, 1.0);
        let (mut remaining, none) = (Remaining::new(&[]), BTreeMap::new());
        assert_eq!(remaining.remaining_s(&[&load, &trial, &cleanup], &none), 26.0);
        // (35 + 5) / (15 + 5): twice as long.
        remaining.record_duration(&load, 35.0);
        assert_eq!(remaining.remaining_s(&[&load, &trial, &cleanup], &none), 52.0);
        let line = remaining.show(&[&load, &trial, &cleanup], 5, &none);
        assert_eq!(line.as_deref(), Some("step 3 of 5: about 52 s left"));
        assert_eq!(remaining.show(&[&trial], 5, &none), None, "shown a moment ago");
    }

    #[test]
    fn pairs_take_what_is_left_of_their_budget_at_most() {
        let pairs = (1..=200).map(|repeat| {
            let trial = PlannedTrial { repeat, ..PlannedTrial::default() };
            new_step(StepAction::Trial(trial), 10.0)
        });
        let pairs: Vec<PlanStep> = pairs.collect();
        let steps: Vec<&PlanStep> = pairs.iter().collect();
        let stop = StopRule {
            pairs_least: 2,
            pairs_most: 200,
            budget_s: Some(60.0),
            ..StopRule::default()
        };
        let comparison = Some(ComparisonFacts { stop, ..ComparisonFacts::default() });
        let experiments = [ExperimentFacts { comparison, ..ExperimentFacts::default() }];
        fn new_spent_s(seconds: f64) -> BTreeMap<String, f64> {
            BTreeMap::from([(String::new(), seconds)])
        }
        let mut remaining = Remaining::new(&experiments);
        assert_eq!(remaining.remaining_s(&steps, &BTreeMap::new()), 60.0);
        let line = remaining.show(&steps, steps.len(), &BTreeMap::new());
        assert_eq!(line.as_deref(), Some("the run: about 60 s left"), "not all 200 are made");
        // A process that continues the run has made none of it.
        assert_eq!(remaining.remaining_s(&steps[1..], &new_spent_s(40.0)), 20.0);
        remaining.record_duration(&pairs[0], 10.0);
        assert_eq!(remaining.remaining_s(&steps[1..], &new_spent_s(10.0)), 50.0);
        // The budget is nearly spent, and a pair of the fewest is left.
        remaining.record_duration(&pairs[2], 45.0);
        assert_eq!(remaining.remaining_s(&steps[2..], &new_spent_s(55.0)), 5.0);
        // (55 + 5) / (20 + 5) times as long as guessed.
        assert_eq!(remaining.remaining_s(&steps[1..], &new_spent_s(55.0)), 24.0);
    }
}
