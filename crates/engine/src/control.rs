//! Stopping and following a trial from outside.

use dyno_core::{DbError, DbResult, Nanos};
use std::sync::atomic::{AtomicBool, Ordering};

/// Shared with a signal handler: stops a running trial and keeps its measurements.
#[derive(Default)]
pub struct Control {
    stop: AtomicBool,
    start: Option<Start>,
    refused: Option<Refused>,
}

/// Gets the time at which all connected workers could start; returns the time at which they start, on this machine's
/// monotonic clock, or `None` for a trial that must not start. May wait.
pub type Start = Box<dyn Fn(Nanos) -> Option<Nanos> + Send + Sync>;

/// Gets the number and the error of a worker whose connection failed, on the thread of its loop.
pub type Refused = Box<dyn Fn(u32, &DbError) + Send + Sync>;

impl std::fmt::Debug for Control {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Control").field("stop", &self.stop).finish_non_exhaustive()
    }
}

impl Control {
    pub fn new() -> Self {
        Self::default()
    }

    pub fn starting(start: Start) -> Self {
        Control { start: Some(start), ..Control::default() }
    }

    pub fn following(refused: Refused) -> Self {
        Control { refused: Some(refused), ..Control::default() }
    }

    /// Reports the failed session of worker `number`.
    pub(crate) fn opened<S>(&self, number: u32, session: DbResult<S>) -> DbResult<S> {
        if let (Err(error), Some(refused)) = (&session, &self.refused) {
            refused(number, error);
        }
        session
    }

    /// The start of workers that could start at `now`.
    pub(crate) fn start_at(&self, now: Nanos) -> Option<Nanos> {
        match &self.start {
            Some(start) => start(now),
            None => Some(now),
        }
    }

    /// Loops check at least every tenth of a second.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// After a stop that was meant for one trial: the next one may begin.
    pub fn resume(&self) {
        self.stop.store(false, Ordering::Relaxed);
    }

    pub fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}
