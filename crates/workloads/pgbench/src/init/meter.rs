//! Counts accounts that are on their way and tells the observer.

use super::observer::{InitObserver, Progress};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Rows between two calls: a lock every few milliseconds costs nothing, and pgbench's lines, one
/// per 100,000 rows, fall on a call.
pub(crate) const STEP_ROWS: u32 = 10_000;

/// Shared by the loading sessions.
pub(crate) struct Meter<'a> {
    observer: &'a dyn InitObserver,
    total: u64,
    /// Rows of an earlier load: they say nothing about the speed of this one.
    found: u64,
    begin: Instant,
    done: Mutex<u64>,
}

impl<'a> Meter<'a> {
    /// Begins to count now.
    pub(crate) fn new(observer: &'a dyn InitObserver, total: u64, found: u64) -> Self {
        Meter { observer, total, found, begin: Instant::now(), done: Mutex::new(found) }
    }

    /// Counts more rows. The observer is called under the lock, so that it hears of rising numbers.
    pub(crate) fn add(&self, rows: u64) {
        let mut done = self.done.lock().unwrap_or_else(PoisonError::into_inner);
        *done += rows;
        let elapsed = self.begin.elapsed();
        let remaining = remaining(elapsed, *done - self.found, self.total.saturating_sub(*done));
        let progress = Progress { rows_done: *done, rows_total: self.total, elapsed, remaining };
        self.observer.rows_done(&progress);
    }

    /// Takes rows back that have to be sent again.
    pub(crate) fn take_back(&self, rows: u64) {
        let mut done = self.done.lock().unwrap_or_else(PoisonError::into_inner);
        *done = done.saturating_sub(rows).max(self.found);
    }
}

fn remaining(elapsed: Duration, loaded: u64, missing: u64) -> Duration {
    if loaded == 0 {
        return Duration::ZERO;
    }
    let seconds = elapsed.as_secs_f64() * missing as f64 / loaded as f64;
    Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Said(Mutex<Vec<(u64, u64)>>);

    impl InitObserver for Said {
        fn rows_done(&self, progress: &Progress) {
            self.0.lock().unwrap().push((progress.rows_done, progress.rows_total));
        }
    }

    #[test]
    fn counts_up_from_what_was_found() {
        let said = Said::default();
        let meter = Meter::new(&said, 1_000, 400);
        meter.add(100);
        meter.take_back(100);
        meter.take_back(5_000);
        meter.add(600);
        assert_eq!(*said.0.lock().unwrap(), [(500, 1_000), (1_000, 1_000)]);
    }

    #[test]
    fn the_rest_is_estimated_from_this_loads_own_speed() {
        let second = Duration::from_secs(1);
        assert_eq!(remaining(2 * second, 200, 800), 8 * second);
        assert_eq!(remaining(2 * second, 200, 0), Duration::ZERO);
        assert_eq!(remaining(2 * second, 0, 800), Duration::ZERO);
        assert_eq!(remaining(Duration::MAX, 1, u64::MAX), Duration::MAX);
    }
}
