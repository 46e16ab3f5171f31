//! Stopping a trial from outside.

use dyno_core::Nanos;
use std::sync::atomic::{AtomicBool, Ordering};

/// Shared with a signal handler: asks a running trial to stop and keep what was measured.
#[derive(Default)]
pub struct Control {
    stop: AtomicBool,
    start: Option<Start>,
}

/// Says when the workers start, once all are connected: is given the time at which they could, and returns
/// the time at which they do, both on the monotonic clock of this machine; `None` when they must not. May
/// wait.
pub type Start = Box<dyn Fn(Nanos) -> Option<Nanos> + Send + Sync>;

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
