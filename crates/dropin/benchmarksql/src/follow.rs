//! What is shown and kept while a run goes on.

use super::console::{Console, Running, memory_mb};
use super::report;
use super::results::{Results, RunInfo};
use dyno_engine::Observer;
use dyno_engine::record::{MeasuredInterval, Phase, Window};
use dyno_facts::SeriesRow;
use dyno_runner::failure::Failure;

/// Shows the running average, and keeps the intervals where they are asked for.
pub(super) struct Follower<'a, 'b> {
    pub(super) console: &'a mut Console<'b>,
    pub(super) keeps: bool,
    pub(super) rows: Vec<SeriesRow>,
    /// The result directory and what it is told at the begin.
    pub(super) results: Option<(&'a Results, RunInfo)>,
    /// Why the result directory can't be written.
    pub(super) failure: Option<Failure>,
    committed: u64,
}

impl<'a, 'b> Follower<'a, 'b> {
    pub(super) fn new(
        console: &'a mut Console<'b>,
        keeps: bool,
        results: Option<(&'a Results, RunInfo)>,
    ) -> Self {
        Follower { console, keeps, rows: Vec::new(), results, failure: None, committed: 0 }
    }
}

impl Observer for Follower<'_, '_> {
    fn released(&mut self, window: &Window) {
        if let Some((results, info)) = &self.results {
            self.failure = results.opened(window.opens, info).err();
        }
    }

    fn interval(&mut self, interval: &MeasuredInterval) {
        if self.keeps {
            self.rows.push(SeriesRow::from(interval));
        }
        let committed = report::committed(&interval.frame);
        if interval.phase == Phase::Measured {
            self.committed += committed;
        }
        let elapsed_s = interval.begins_s + interval.length_s;
        if !self.console.is_watched() || elapsed_s <= 0.0 || interval.length_s <= 0.0 {
            return;
        }
        let running = Running {
            average: self.committed as f64 * 60.0 / elapsed_s,
            current: (committed as f64 * 60.0 / interval.length_s).round() as u64,
            memory_mb: memory_mb(),
        };
        self.console.running(&running.text());
    }
}
