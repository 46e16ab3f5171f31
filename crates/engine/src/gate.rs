//! The meeting of loops between connecting and running.

use crate::record::Window;
use crate::trial::TrialSpec;
use dyno_core::Nanos;
use std::sync::{Condvar, Mutex, OnceLock, PoisonError};

pub(crate) struct StartGate {
    /// Loops that have arrived, and all loops.
    meeting: Mutex<(usize, usize)>,
    complete: Condvar,
    /// Set by the first loop after the meeting; `None` when the trial can't begin.
    release: OnceLock<Option<Release>>,
    pub(crate) begin: Nanos,
}

/// The start of the workers.
#[derive(Clone, Copy)]
pub(crate) struct Release {
    /// The time at which all could start.
    pub(crate) ready: Nanos,
    pub(crate) window: Window,
}

impl StartGate {
    pub(crate) fn new(loops: usize, begin: Nanos) -> Self {
        StartGate {
            meeting: Mutex::new((0, loops)),
            complete: Condvar::new(),
            release: OnceLock::new(),
            begin,
        }
    }

    /// Expects `loops` loops only.
    pub(crate) fn expect_only(&self, loops: usize) {
        self.meeting.lock().unwrap_or_else(PoisonError::into_inner).1 = loops;
        self.complete.notify_all();
    }

    pub(crate) fn arrive(&self) {
        self.meeting.lock().unwrap_or_else(PoisonError::into_inner).0 += 1;
        self.complete.notify_all();
    }

    pub(crate) fn is_complete(&self) -> bool {
        let meeting = self.meeting.lock().unwrap_or_else(PoisonError::into_inner);
        meeting.0 >= meeting.1
    }

    pub(crate) fn loops(&self) -> usize {
        self.meeting.lock().unwrap_or_else(PoisonError::into_inner).1
    }

    /// Waits for all loops.
    pub(crate) fn wait(&self) {
        let meeting = self.meeting.lock().unwrap_or_else(PoisonError::into_inner);
        drop(
            self.complete
                .wait_while(meeting, |(arrived, expected)| *arrived < *expected)
                .unwrap_or_else(PoisonError::into_inner),
        );
    }

    /// Agrees on the window at `now`, after the meeting.
    pub(crate) fn pass(
        &self,
        now: impl Fn() -> Nanos,
        spec: &TrialSpec,
        start: impl Fn(Nanos) -> Option<Nanos>,
    ) -> Option<Window> {
        let release = self.release.get_or_init(|| {
            let ready = now();
            let released = start(ready)?;
            let opens = released + spec.warmup;
            let closes = if spec.finish_begun { Nanos::MAX } else { spec.ends(opens) };
            Some(Release {
                ready,
                window: Window { released, opens, closes, interval: spec.interval },
            })
        });
        release.map(|release| release.window)
    }

    /// The start, where there was one.
    pub(crate) fn release(&self) -> Option<Release> {
        self.release.get().copied().flatten()
    }
}
