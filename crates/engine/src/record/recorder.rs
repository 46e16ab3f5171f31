//! The recorder of one loop.
//!
//! CPU time of this process and its threads.

use super::Frame;
use dyno_core::{Cause, DbError, Nanos, Outcome, Tally, TransactionId};
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

/// When a transaction was due, began and ended, on the loop's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Times {
    /// When the schedule wanted it; without a schedule the same as `began`.
    pub due: Nanos,
    pub began: Nanos,
    pub ended: Nanos,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Phase {
    WarmUp,
    Measured,
}

/// The times of a trial, set when all workers are connected and prepared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Window {
    pub released: Nanos,
    /// When the measured window opens: `released` plus warm-up.
    pub opens: Nanos,
    /// When it closes; `Nanos::MAX` when it does so with the end of the last transaction.
    pub closes: Nanos,
    pub interval: Nanos,
}

impl Window {
    /// Moves its times to a clock that shows `by_ns` more; a window without an end keeps none.
    pub fn shift(&mut self, by_ns: i64) {
        let mut times = [&mut self.released, &mut self.opens, &mut self.closes];
        for time in times.iter_mut().filter(|time| ***time != Nanos::MAX) {
            **time = time.saturating_add_signed(by_ns);
        }
    }
}

/// The interval of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FramePlace {
    pub phase: Phase,
    /// Number within its phase, from 0.
    pub index: u32,
    /// Set if the window has closed.
    pub is_last: bool,
}

/// Exchanges a full frame for an empty one of the same kind.
pub trait FrameSink: FnMut(FramePlace, &mut Box<Frame>) {}

impl<S: FnMut(FramePlace, &mut Box<Frame>)> FrameSink for S {}

/// Counts and times of one loop. At interval boundaries the `sink` exchanges the frame for an empty one; nothing is
/// copied or allocated.
pub struct Recorder<S: FrameSink> {
    pub(crate) frame: Box<Frame>,
    window: Window,
    pub phase: Phase,
    index: u32,
    boundary: Nanos,
    began: Nanos,
    in_flight: Vec<u64>,
    in_flight_at_open: u64,
    /// Transactions that had begun and not ended when the window closed.
    pub in_flight_at_close: u64,
    last_begun: Nanos,
    /// The longest latency among those transactions, counted until their ends or until [`Recorder::cut`]. A stall that
    /// outlasts the window is in no other figure.
    pub longest_in_flight: Nanos,
    cpu_before: Nanos,
    finished: bool,
    sink: S,
}

impl<S: FrameSink> Recorder<S> {
    /// A recorder that begins with an empty frame. Nothing is recorded before [`Recorder::release`].
    pub fn new(frame: Box<Frame>, sink: S) -> Self {
        let never = Window { released: 0, opens: 0, closes: 0, interval: 1 };
        Recorder {
            in_flight: vec![0; frame.kinds.len()],
            frame,
            window: never,
            phase: Phase::WarmUp,
            index: 0,
            boundary: 0,
            began: 0,
            in_flight_at_open: 0,
            in_flight_at_close: 0,
            last_begun: 0,
            longest_in_flight: 0,
            cpu_before: 0,
            finished: true,
            sink,
        }
    }

    /// Begins to record at the release of the workers.
    pub fn release(&mut self, window: Window) {
        self.window = window;
        self.finished = false;
        self.began = window.released;
        self.cpu_before = thread_cpu();
        if window.opens > window.released {
            self.phase = Phase::WarmUp;
            self.boundary = window.released.saturating_add(window.interval).min(window.opens);
        } else {
            self.open();
        }
    }

    /// Begins the measured window.
    fn open(&mut self) {
        self.phase = Phase::Measured;
        self.index = 0;
        self.boundary =
            self.window.opens.saturating_add(self.window.interval).min(self.window.closes);
        // What is in flight when the window opens can end within it: it counts as started now.
        for (kind, &in_flight) in self.frame.kinds.iter_mut().zip(&self.in_flight) {
            kind.counts.started += in_flight;
            self.in_flight_at_open += in_flight;
        }
    }

    /// The next time at which [`Recorder::advance`] has something to do.
    pub fn boundary(&self) -> Nanos {
        if self.finished { Nanos::MAX } else { self.boundary }
    }

    /// Hands over all frames whose interval has passed at `now`.
    #[inline]
    pub fn advance(&mut self, now: Nanos) {
        while now >= self.boundary && !self.finished {
            self.hand_over();
        }
    }

    #[cold]
    fn hand_over(&mut self) {
        let cpu = thread_cpu();
        self.frame.cpu_ns = cpu.saturating_sub(self.cpu_before);
        self.cpu_before = cpu;
        self.frame.began = self.began;
        self.frame.ended = self.boundary;
        self.began = self.boundary;
        let is_last = self.boundary >= self.window.closes;
        let handover = FramePlace { phase: self.phase, index: self.index, is_last };
        (self.sink)(handover, &mut self.frame);
        self.index += 1;
        if is_last {
            self.finished = true;
            // What is stopped in its warm-up has no measured transactions, begun or ended.
            if self.phase == Phase::Measured {
                self.in_flight_at_close = self.in_flight.iter().sum();
            }
        } else if self.phase == Phase::WarmUp && self.boundary >= self.window.opens {
            self.open();
        } else {
            let limit = match self.phase {
                Phase::WarmUp => self.window.opens,
                Phase::Measured => self.window.closes,
            };
            self.boundary = self.boundary.saturating_add(self.window.interval).min(limit);
        }
    }

    /// Closes the window early, at `now` (count reached, interrupted, aborted).
    pub fn close(&mut self, now: Nanos) {
        self.advance(now);
        if !self.finished {
            self.window.closes = now;
            self.boundary = now;
            self.hand_over();
        }
    }

    pub fn is_finished(&self) -> bool {
        self.finished
    }

    /// Time at which the measured window ends.
    pub fn closes(&self) -> Nanos {
        self.window.closes
    }

    /// Transactions that had begun in the warm-up and not ended when the window opened; 0 when asked
    /// again.
    #[inline]
    pub fn take_in_flight_at_open(&mut self) -> u64 {
        std::mem::take(&mut self.in_flight_at_open)
    }

    /// Transactions that have not ended by `now` never will.
    pub fn cut(&mut self, now: Nanos) {
        if self.phase == Phase::Measured && self.in_flight.iter().any(|&count| count > 0) {
            // A lower bound: all of them had begun by then.
            let latency = now.saturating_sub(self.last_begun);
            self.longest_in_flight = self.longest_in_flight.max(latency);
        }
    }

    /// A transaction begins at `began`, the time that [`Recorder::advance`] was called with last.
    #[inline]
    pub fn begin(&mut self, kind: TransactionId, began: Nanos) {
        self.last_begun = began;
        self.in_flight[kind] += 1;
        self.frame.kinds[kind].counts.started += 1;
    }

    /// Attempt number `attempt` (from 0) failed and there will be another one.
    pub fn retry(
        &mut self,
        kind: TransactionId,
        attempt: u32,
        error: &DbError,
        wasted: &Tally,
        now: Nanos,
    ) {
        self.advance(now);
        if !self.finished {
            self.frame.errors.count(error);
            // What a script begins again by itself has not failed.
            if error.cause() != Cause::Again {
                self.frame.kinds[kind].counts.retries += 1;
                self.frame.kinds[kind].counts.retried += u64::from(attempt == 0);
            }
            self.frame.kinds[kind].wasted.add(wasted);
            self.record_handled(kind, wasted);
        }
    }

    /// The last attempt failed. Returns whether that was inside the measured window.
    pub fn fail(
        &mut self,
        kind: TransactionId,
        error: &DbError,
        wasted: &Tally,
        now: Nanos,
    ) -> bool {
        self.advance(now);
        self.in_flight[kind] -= 1;
        if self.finished {
            return false;
        }
        self.frame.errors.count(error);
        self.frame.kinds[kind].counts.failed += 1;
        self.frame.kinds[kind].wasted.add(wasted);
        self.record_handled(kind, wasted);
        self.phase == Phase::Measured
    }

    /// A transaction ended without an error. Returns whether that was inside the measured window.
    #[inline]
    pub fn end(
        &mut self,
        kind: TransactionId,
        outcome: Outcome,
        times: Times,
        work: &Tally,
    ) -> bool {
        self.advance(times.ended);
        self.in_flight[kind] -= 1;
        let latency = times.ended - times.due.min(times.ended);
        if self.finished {
            let has_succeeded = matches!(outcome, Outcome::Committed | Outcome::RolledBack);
            if has_succeeded && self.phase == Phase::Measured {
                self.longest_in_flight = self.longest_in_flight.max(latency);
            }
            return false;
        }
        let frame = &mut self.frame.kinds[kind];
        match outcome {
            Outcome::Committed => frame.counts.committed += 1,
            Outcome::RolledBack => frame.counts.rolled_back += 1,
            Outcome::Skipped => frame.counts.skipped += 1,
            Outcome::Failed(_) => frame.counts.failed += 1,
        }
        match outcome {
            Outcome::Committed | Outcome::RolledBack => {
                frame.work.add(work);
                frame.latency.record(latency);
                self.record_schedule(times);
            }
            Outcome::Failed(_) => frame.wasted.add(work),
            Outcome::Skipped => {}
        }
        self.record_handled(kind, work);
        self.phase == Phase::Measured
    }

    /// Counts what the workload has dealt with itself.
    #[inline]
    fn record_handled(&mut self, kind: TransactionId, work: &Tally) {
        self.frame.kinds[kind].counts.reconnects += work.reconnects;
        if work.handled_errors > 0 {
            self.frame.errors.count_handled(work.handled_errors);
        }
    }

    #[inline]
    fn record_schedule(&mut self, times: Times) {
        if let (Some(service), Some(lateness)) = (&mut self.frame.service, &mut self.frame.lateness)
        {
            service.record(times.ended.saturating_sub(times.began));
            lateness.record(times.began.saturating_sub(times.due));
        }
    }

    /// This many answers were ready when the loop's wait returned, at `woke`, and have been handled at `now`.
    #[inline]
    pub fn handled(&mut self, answers: u32, woke: Nanos, now: Nanos) {
        if answers > 0 && !self.finished {
            self.frame.handled(now.saturating_sub(woke), answers);
        }
    }

    /// A worker that waited for an arrival begins it, `lateness` after its due time.
    #[inline]
    pub fn awaited(&mut self, lateness: Nanos, now: Nanos) {
        self.advance(now);
        if !self.finished {
            self.frame.awaited(lateness);
        }
    }

    /// A worker sent what it had held back; the transactions concerned are counted already.
    pub fn finish(&mut self, work: &Tally, now: Nanos) {
        self.advance(now);
        if !self.finished {
            self.frame.kinds[0].work.add(work);
            self.record_handled(0, work);
        }
    }

    /// There will be no further attempt after all; the error of the last one has been counted.
    pub fn give_up(&mut self, kind: TransactionId, now: Nanos) {
        self.advance(now);
        self.in_flight[kind] -= 1;
        if !self.finished {
            self.frame.kinds[kind].counts.failed += 1;
        }
    }

    /// An error alongside the attempts: a connect or a rollback failed at `now`.
    pub fn error(&mut self, error: &DbError, now: Nanos) {
        self.advance(now);
        if !self.finished {
            self.frame.errors.count(error);
        }
    }

    /// Counts a session that was opened again.
    pub fn reconnected(&mut self, now: Nanos) {
        self.advance(now);
        if !self.finished {
            self.frame.kinds[0].counts.reconnects += 1;
        }
    }
}

pub fn thread_cpu() -> Nanos {
    clock_nanos(ClockId::ThreadCPUTime)
}

/// CPU time of this process, all its threads together, in nanoseconds.
pub fn process_cpu() -> Nanos {
    clock_nanos(ClockId::ProcessCPUTime)
}

fn clock_nanos(clock: ClockId) -> Nanos {
    let time = clock_gettime(clock);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
