//! Stopping and following a trial from outside.

use dyno_core::{DbError, DbResult, Nanos};
use std::sync::atomic::{AtomicBool, Ordering};

/// Shared with a signal handler: asks a running trial to stop and keep what was measured.
#[derive(Default)]
pub struct Control {
    stop: AtomicBool,
    start: Option<Start>,
    refused: Option<Refused>,
}

/// Says when the workers start, once all are connected: is given the time at which they could, and returns
/// the time at which they do, both on the monotonic clock of this machine; `None` when they must not. May
/// wait.
pub type Start = Box<dyn Fn(Nanos) -> Option<Nanos> + Send + Sync>;

/// Is called with the number of a worker whose connection failed, and why, on the thread of its loop.
pub type Refused = Box<dyn Fn(u32, &DbError) + Send + Sync>;

impl std::fmt::Debug for Control {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Control").field("stop", &self.stop).finish_non_exhaustive()
    }
}

impl Control {
    /// A control that has not been used.
    pub fn new() -> Self {
        Self::default()
    }

    /// A control that asks `start` when the workers start.
    pub fn starting(start: Start) -> Self {
        Control { start: Some(start), ..Control::default() }
    }

    /// A control that calls `refused` for each connection that fails.
    pub fn following(refused: Refused) -> Self {
        Control { refused: Some(refused), ..Control::default() }
    }

    /// What opening the session of worker `number` gave, reported where it failed.
    pub(crate) fn opened<S>(&self, number: u32, session: DbResult<S>) -> DbResult<S> {
        if let (Err(error), Some(refused)) = (&session, &self.refused) {
            refused(number, error);
        }
        session
    }

    /// When workers start that could at `now`.
    pub(crate) fn start_at(&self, now: Nanos) -> Option<Nanos> {
        match &self.start {
            Some(start) => start(now),
            None => Some(now),
        }
    }

    /// Asks for the end. Loops look at least every tenth of a second.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// True after [`Control::stop`].
    pub fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}
