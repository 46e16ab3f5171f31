//! Stopping a trial from outside.

use std::sync::atomic::{AtomicBool, Ordering};

/// Shared with a signal handler: asks a running trial to stop and keep what was measured.
#[derive(Debug, Default)]
pub struct Control {
    stop: AtomicBool,
}

impl Control {
    /// A control that has not been used.
    pub fn new() -> Self {
        Self::default()
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
