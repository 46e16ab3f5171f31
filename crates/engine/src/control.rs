//! Stopping and following a trial from outside.
//!
//! The meeting of loops between connecting and running.

use crate::record::Window;
use crate::trial::TrialSpec;
use dyno_core::{DbError, DbResult, Nanos};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, OnceLock, PoisonError};

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
