//! Shared state of the workers of a trial and of a loop.
//!
//! One load generator's part of a trial.

use crate::arrival::{Schedule, schedules};
use crate::control::Control;
use crate::record::{Frame, FrameSink, Recorder, Window};
use crate::terminals::{Job, Terminals};
use crate::trial::{TrialSpec, WorkerStats};
use dyno_core::{DbError, DbResult, Driver, Nanos, Rng, Workload};
use dyno_reactor::{now, sleep_until, wake};
use serde::{Deserialize, Serialize};
use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock};
use std::task::Poll;

/// Shared by all loops of a trial.
pub(crate) struct Shared<'a, W: Workload, D> {
    pub(crate) workload: &'a W,
    pub(crate) driver: &'a D,
    pub(crate) spec: &'a TrialSpec,
    pub(crate) control: &'a Control,
    pub(crate) connected: AtomicU32,
    stop: AtomicBool,
    events_left: AtomicU64,
    pub(crate) events_done: AtomicBool,
    error: Mutex<Option<DbError>>,
    /// `None` without terminals.
    pub(crate) terminals: Option<Terminals<W::Terminal>>,
    /// The queues of arrivals, from the release on.
    schedules: OnceLock<Vec<Schedule>>,
}

impl<'a, W: Workload, D: Driver> Shared<'a, W, D> {
    pub(crate) fn new(
        workload: &'a W,
        driver: &'a D,
        spec: &'a TrialSpec,
        control: &'a Control,
    ) -> Self {
        let seated = seat(workload, spec);
        let error = seated.as_ref().err().cloned();
        Shared {
            workload,
            driver,
            spec,
            control,
            terminals: seated.ok().flatten(),
            connected: AtomicU32::new(0),
            stop: AtomicBool::new(error.is_some()),
            events_left: AtomicU64::new(spec.events.unwrap_or(u64::MAX)),
            events_done: AtomicBool::new(false),
            error: Mutex::new(error),
            schedules: OnceLock::new(),
        }
    }

    /// An empty frame for a loop with a real clock or a virtual one.
    pub(crate) fn new_frame(&self, is_real: bool) -> Box<Frame> {
        let kinds = self.workload.transactions().len();
        let frame = Frame::new(kinds, self.spec.is_scheduled());
        let waits = is_real && !self.driver.blocks();
        Box::new(if waits { frame.with_loop_queue() } else { frame })
    }

    /// Begins with the arrivals of a trial over `loops` loops.
    pub(crate) fn schedule_arrivals(&self, window: Window, loops: usize) {
        if let Some(terminals) = &self.terminals {
            terminals.start(window.released, window.opens);
        }
        self.schedules.get_or_init(|| schedules(self.spec, window, loops));
    }

    /// The queue that the workers of loop `number` take from; `None` without a rate.
    #[inline]
    pub(crate) fn schedule(&self, number: usize) -> Option<&Schedule> {
        let schedules = self.schedules.get()?;
        schedules.get(number).or(schedules.first())
    }

    /// Arrivals in the window that closes at `closes` that no one has taken.
    pub(crate) fn untaken_arrivals(&self, closes: Nanos) -> u64 {
        let jobs = self.terminals.as_ref().map_or(0, |terminals| terminals.untaken(closes));
        let schedules = self.schedules.get().into_iter().flatten();
        jobs + schedules.map(|schedule| schedule.untaken(closes)).sum::<u64>()
    }

    /// The number of worker `id` among the workers of all load generators.
    #[inline]
    pub(crate) fn number(&self, id: u32) -> u32 {
        self.spec.share.workers_before + id
    }

    /// Opens a session for worker `number` instead of its last one.
    pub(crate) async fn reconnect(&self, number: u32, attempt: u32) -> DbResult<D::Session> {
        self.control.opened(number, self.driver.reconnect(number, attempt).await)
    }

    /// Returns true if a loop or the user has stopped the trial.
    pub(crate) fn is_stopped(&self) -> bool {
        self.control.is_stopped() || self.stop.load(Ordering::Relaxed)
    }

    /// Keeps the first error and stops all loops.
    pub(crate) fn abort(&self, error: DbError) {
        let mut slot = self.error.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        slot.get_or_insert(error);
        self.stop.store(true, Ordering::Relaxed);
    }

    pub(crate) fn first_error(&self) -> Option<DbError> {
        self.error.lock().unwrap_or_else(std::sync::PoisonError::into_inner).clone()
    }

    pub(crate) fn events_done(&self) -> bool {
        self.events_done.load(Ordering::Relaxed)
    }

    /// Takes one of the wanted transactions; false when all are taken. `carried_over` counts wanted ones that have
    /// begun in the warm-up and end in the window.
    #[inline]
    pub(crate) fn take_event(&self, carried_over: u64) -> bool {
        if self.spec.events.is_none() {
            return true;
        }
        if carried_over > 0 {
            let _ = self.events_left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
                Some(left.saturating_sub(carried_over))
            });
        }
        let claim = self
            .events_left
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
        if claim.is_err() {
            self.events_done.store(true, Ordering::Relaxed);
        }
        claim.is_ok()
    }
}

/// The terminals of a trial.
fn seat<W: Workload>(workload: &W, spec: &TrialSpec) -> DbResult<Option<Terminals<W::Terminal>>> {
    let Some(count) = spec.terminals else { return Ok(None) };
    let first = spec.share.terminals_before;
    let seats = (first..first + count).map(|number| {
        let seat = workload.seat(number, Rng::new(spec.seed, "terminal", u64::from(number)));
        seat.ok_or_else(|| DbError::workload("This workload has no terminals with pauses."))
    });
    Ok(Some(Terminals::new(seats.collect::<DbResult<Vec<_>>>()?)))
}

/// Shared by the workers of one loop.
pub(crate) struct Local<S: FrameSink> {
    pub(crate) recorder: RefCell<Recorder<S>>,
    /// Tasks of workers that have found no job of a terminal.
    idle: RefCell<Vec<u32>>,
    /// The jobs that they have been given since, by their tasks.
    handed: RefCell<Vec<Option<Job>>>,
    /// Tasks that know that all wanted transactions have begun.
    is_closed: Cell<bool>,
    pub(crate) stats: Rc<RefCell<Vec<WorkerStats>>>,
    pub(crate) ready: Cell<u32>,
    /// Taken arrivals that were due in the window.
    pub(crate) offered: Cell<u64>,
    /// Workers that an error has ended, and their last measured transactions.
    pub(crate) retired: Cell<u32>,
    pub(crate) retired_transactions: Cell<u64>,
    /// The number of the loop, and of its first worker.
    pub(crate) number: usize,
    pub(crate) first: u32,
    released: Cell<bool>,
    ended: Cell<bool>,
    ends: Cell<Nanos>,
    pub(crate) connecting: Cell<u32>,
    /// Workers that may still send a statement.
    driving: Cell<u32>,
}

impl<S: FrameSink> Local<S> {
    pub(crate) fn new(
        recorder: Recorder<S>,
        number: usize,
        first: u32,
        stats: Rc<RefCell<Vec<WorkerStats>>>,
    ) -> Self {
        let workers = stats.borrow().len();
        Local {
            recorder: RefCell::new(recorder),
            idle: RefCell::new(Vec::with_capacity(workers)),
            handed: RefCell::new(vec![None; workers]),
            is_closed: Cell::new(false),
            stats,
            ready: Cell::new(0),
            offered: Cell::new(0),
            retired: Cell::new(0),
            retired_transactions: Cell::new(0),
            number,
            first,
            released: Cell::new(false),
            ended: Cell::new(false),
            ends: Cell::new(Nanos::MAX),
            connecting: Cell::new(0),
            driving: Cell::new(workers as u32),
        }
    }

    /// Starts the workers; nothing begins from `ends` on.
    pub(crate) fn release(&self, window: Window, ends: Nanos) {
        self.ends.set(ends);
        self.recorder.borrow_mut().release(window);
        self.released.set(true);
    }

    /// Nothing begins from now on.
    pub(crate) fn end(&self, at: Nanos) {
        self.ends.set(self.ends.get().min(at));
        self.ended.set(true);
        self.released.set(true);
    }

    /// Counts out a worker that has sent its last statement. The last worker closes a window that stayed open for begun
    /// transactions: closing sessions (SQLite's last checkpoint) is not measured.
    pub(crate) fn stop_driving(&self, finish_begun: bool, at: Nanos) {
        self.driving.set(self.driving.get() - 1);
        if finish_begun && self.driving.get() == 0 {
            self.recorder.borrow_mut().close(at);
        }
    }

    /// The time after which nothing begins.
    pub(crate) fn ends(&self) -> Nanos {
        self.ends.get()
    }

    #[inline]
    pub(crate) fn is_over(&self, now: Nanos) -> bool {
        self.ended.get() || now >= self.ends.get()
    }

    /// Gives jobs of terminals to workers for whom there was none. They are left by workers that have failed, and by
    /// errands.
    #[inline]
    pub(crate) fn hand_out<T>(&self, terminals: &Terminals<T>, now: Nanos) {
        if terminals.is_closed() && !self.is_closed.replace(true) {
            (0..self.handed.borrow().len() as u32).for_each(wake);
        }
        let mut idle = self.idle.borrow_mut();
        if self.is_over(now) || self.is_closed.get() {
            idle.drain(..).for_each(wake);
        }
        while let Some(&task) = idle.last() {
            let Some(job) = terminals.take_job() else { return };
            idle.pop();
            self.handed.borrow_mut()[task as usize] = Some(job);
            wake(task);
        }
    }

    /// Waits for a job for the worker of this task. `None` at the end of the trial.
    pub(crate) async fn wait_for_job<T>(&self, task: u32, terminals: &Terminals<T>) -> Option<Job> {
        self.idle.borrow_mut().push(task);
        poll_fn(|_| match self.handed.borrow_mut()[task as usize].take() {
            Some(job) => Poll::Ready(Some(job)),
            None if terminals.is_closed() || self.is_over(now()) => Poll::Ready(None),
            None => Poll::Pending,
        })
        .await
    }

    pub(crate) async fn wait_for_release(&self) {
        poll_fn(|_| if self.released.get() { Poll::Ready(()) } else { Poll::Pending }).await;
    }

    /// Waits until `due` or the end of the trial, whichever comes first.
    pub(crate) async fn wait_until(&self, due: Nanos) {
        let mut sleep = pin!(sleep_until(due));
        poll_fn(|context| {
            if self.ended.get() || self.is_closed.get() {
                Poll::Ready(())
            } else {
                sleep.as_mut().poll(context)
            }
        })
        .await;
    }
}

/// One load generator's part of a trial. [`TrialSpec::workers`], `terminals`, `rate_per_s` and `events` are those of
/// the part; random streams, keys and numbers of workers follow the whole, so that the parts never overlap and N
/// generators do the work of one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrialShare {
    /// From 0.
    pub generator: u32,
    /// 0 counts as 1.
    pub generators: u32,
    /// Workers of the load generators before this one.
    pub workers_before: u32,
    /// Workers of all load generators; 0 if this is the only one.
    pub workers_total: u32,
    /// Terminals of the load generators before this one.
    pub terminals_before: u32,
    /// Terminals of all load generators; 0 if this is the only one.
    pub terminals_total: u32,
}

impl TrialShare {
    /// Returns true if others drive the rest.
    pub fn is_part(&self) -> bool {
        self.generators > 1
    }
}

impl TrialSpec {
    /// The part of load generator `generator` (from 0) of `generators`: an even share of the workers, rounded up for
    /// the first ones; terminals, rate and transactions in proportion. `None` with fewer workers than generators before
    /// it.
    pub fn part(&self, generator: u32, generators: u32) -> Option<TrialSpec> {
        let workers = self.workers.max(1);
        if generator >= generators.min(workers) {
            return None;
        }
        let first = first_worker(generator, workers, generators);
        let next = first_worker(generator + 1, workers, generators);
        let terminals = self.terminals.map(u64::from);
        let [cut_terminals, cut_events] = [terminals, self.events].map(|total| {
            Some(share_before(total?, next, workers) - share_before(total?, first, workers))
        });
        Some(TrialSpec {
            workers: next - first,
            terminals: cut_terminals.map(|count| count as u32),
            rate_per_s: self
                .rate_per_s
                .map(|rate| rate * f64::from(next - first) / f64::from(workers)),
            events: cut_events,
            share: TrialShare {
                generator,
                generators,
                workers_before: first,
                workers_total: workers,
                terminals_before: terminals
                    .map_or(0, |total| share_before(total, first, workers) as u32),
                terminals_total: self.terminals.unwrap_or(0),
            },
            ..self.clone()
        })
    }

    pub fn all_workers(&self) -> u32 {
        self.share.workers_total.max(self.workers)
    }

    /// Terminals of all load generators, where the trial has terminals.
    pub fn all_terminals(&self) -> Option<u32> {
        self.terminals.map(|terminals| self.share.terminals_total.max(terminals))
    }
}

/// The first worker of part `number` of `parts`. As in pgbench the first parts get one more if the numbers don't
/// divide.
pub(crate) fn first_worker(number: u32, workers: u32, parts: u32) -> u32 {
    let parts = parts.max(1);
    number * (workers / parts) + number.min(workers % parts)
}

/// The share of `all` that belongs to the workers before number `worker` of `workers`.
pub(crate) fn share_before(all: u64, worker: u32, workers: u32) -> u64 {
    (u128::from(all) * u128::from(worker) / u128::from(workers.max(1))) as u64
}
