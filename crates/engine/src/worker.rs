//! One worker: connect, wait for the others, then transaction after transaction.

use crate::arrival::Schedule;
use crate::policy::Action;
use crate::trial::{TrialSpec, WorkerStats};
use dyno_core::{
    DbError, Driver, MILLISECOND, Nanos, Outcome, Rng, Session, Tally, TransactionId, Workload,
};
use dyno_measure::{Frame, Phase, Recorder, Times, Window};
use dyno_reactor::{now, sleep_until, timeout, yield_now};
use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::task::Poll;

/// Connects under way at once on one loop: enough to hide round trips, few enough for a server's
/// accept queue.
const CONNECTS_AT_ONCE: u32 = 32;
/// Transactions between two looks at the loop where sessions block their thread.
const BLOCKING_STRIDE: u32 = 16;
const LONGEST_PAUSE: Nanos = 500 * MILLISECOND;

/// What all loops of a trial share.
pub(crate) struct Shared<'a, W, D> {
    pub(crate) workload: &'a W,
    pub(crate) driver: &'a D,
    pub(crate) spec: &'a TrialSpec,
    pub(crate) connected: AtomicU32,
    pub(crate) stop: AtomicBool,
    events_left: AtomicU64,
    events_done: AtomicBool,
    error: Mutex<Option<DbError>>,
}

impl<'a, W: Workload, D: Driver> Shared<'a, W, D> {
    pub(crate) fn new(workload: &'a W, driver: &'a D, spec: &'a TrialSpec) -> Self {
        Shared {
            workload,
            driver,
            spec,
            connected: AtomicU32::new(0),
            stop: AtomicBool::new(false),
            events_left: AtomicU64::new(spec.events.unwrap_or(u64::MAX)),
            events_done: AtomicBool::new(false),
            error: Mutex::new(None),
        }
    }

    /// Keeps the first error and stops all loops.
    fn abort(&self, error: DbError) {
        let mut slot = self.error.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        slot.get_or_insert(error);
        self.stop.store(true, Ordering::Relaxed);
    }

    pub(crate) fn take_error(&self) -> Option<DbError> {
        self.error.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take()
    }

    pub(crate) fn events_done(&self) -> bool {
        self.events_done.load(Ordering::Relaxed)
    }

    /// Takes one of the asked transactions; false when all have been taken. `carried_over` have
    /// begun in the warm-up and end in the window: they are among the asked ones.
    #[inline]
    fn take_event(&self, carried_over: u64) -> bool {
        if self.spec.events.is_none() {
            return true;
        }
        if carried_over > 0 {
            let _ = self.events_left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
                Some(left.saturating_sub(carried_over))
            });
        }
        let taken = self
            .events_left
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
        if taken.is_err() {
            self.events_done.store(true, Ordering::Relaxed);
        }
        taken.is_ok()
    }
}

/// What the workers of one loop share.
pub(crate) struct Local<S: FnMut(Phase, u32, &Frame)> {
    pub(crate) recorder: RefCell<Recorder<S>>,
    pub(crate) schedule: RefCell<Option<Schedule>>,
    pub(crate) stats: RefCell<Vec<WorkerStats>>,
    pub(crate) ready: Cell<u32>,
    /// Arrivals taken that are due only after the window.
    pub(crate) untaken: Cell<u64>,
    first: u32,
    released: Cell<bool>,
    closed: Cell<bool>,
    closes: Cell<Nanos>,
    connecting: Cell<u32>,
}

impl<S: FnMut(Phase, u32, &Frame)> Local<S> {
    pub(crate) fn new(recorder: Recorder<S>, first: u32, workers: u32) -> Self {
        Local {
            recorder: RefCell::new(recorder),
            schedule: RefCell::new(None),
            stats: RefCell::new(vec![WorkerStats::default(); workers as usize]),
            ready: Cell::new(0),
            untaken: Cell::new(0),
            first,
            released: Cell::new(false),
            closed: Cell::new(false),
            closes: Cell::new(Nanos::MAX),
            connecting: Cell::new(0),
        }
    }

    pub(crate) fn release(&self, window: Window) {
        self.closes.set(window.closes);
        self.recorder.borrow_mut().release(window);
        self.released.set(true);
    }

    /// No new transaction begins from now on.
    pub(crate) fn close(&self, at: Nanos) {
        self.closes.set(self.closes.get().min(at));
        self.closed.set(true);
        self.released.set(true);
    }

    pub(crate) fn closes(&self) -> Nanos {
        self.closes.get()
    }

    #[inline]
    fn is_closed(&self, now: Nanos) -> bool {
        self.closed.get() || now >= self.closes.get()
    }

    async fn wait_for_release(&self) {
        poll_fn(|_| if self.released.get() { Poll::Ready(()) } else { Poll::Pending }).await;
    }

    /// Waits until `due` or the end of the trial, whichever comes first.
    async fn wait_until(&self, due: Nanos) {
        let mut sleep = pin!(sleep_until(due));
        poll_fn(
            |context| {
                if self.closed.get() { Poll::Ready(()) } else { sleep.as_mut().poll(context) }
            },
        )
        .await;
    }
}

/// Picks kinds of transactions by weight.
struct Mix {
    cumulative: Vec<u64>,
    rng: Rng,
}

impl Mix {
    fn new<W: Workload>(workload: &W, rng: Rng) -> Self {
        let mut sum = 0;
        let cumulative = workload
            .transactions()
            .iter()
            .map(|kind| {
                sum += u64::from(kind.weight);
                sum
            })
            .collect();
        Mix { cumulative, rng }
    }

    #[inline]
    fn pick(&mut self) -> TransactionId {
        match self.cumulative.as_slice() {
            [] | [_] => 0,
            [.., total] => {
                let point = self.rng.uniform(1, *total);
                self.cumulative.partition_point(|&sum| sum < point)
            }
        }
    }
}

/// The whole life of worker `id`.
pub(crate) async fn worker<W: Workload, D: Driver, S: FnMut(Phase, u32, &Frame)>(
    shared: &Shared<'_, W, D>,
    local: &Local<S>,
    id: u32,
) {
    let (session, state) = match open(shared, local, id).await {
        Ok(opened) => opened,
        Err(error) => return shared.abort(error),
    };
    local.ready.set(local.ready.get() + 1);
    shared.connected.fetch_add(1, Ordering::Relaxed);
    local.wait_for_release().await;
    let mix = Mix::new(shared.workload, Rng::new(shared.spec.seed, "mix", u64::from(id)));
    let mut worker = Worker { shared, local, id, session: Some(session), state, mix };
    worker.drive().await;
    worker.finish().await;
}

async fn open<W: Workload, D: Driver, S: FnMut(Phase, u32, &Frame)>(
    shared: &Shared<'_, W, D>,
    local: &Local<S>,
    id: u32,
) -> Result<(D::Session, W::Worker), DbError> {
    while local.connecting.get() >= CONNECTS_AT_ONCE {
        sleep_until(now() + MILLISECOND / 5).await;
    }
    local.connecting.set(local.connecting.get() + 1);
    let opened = async {
        // Hosts rotate by the worker's number, so that the same worker always meets the same host.
        let mut session = shared.driver.connect(id).await?;
        let rng = Rng::new(shared.spec.seed, "worker", u64::from(id));
        let state = shared.workload.open(&mut session, id, shared.spec.workers, rng).await?;
        Ok((session, state))
    };
    let result = timeout(now() + shared.spec.connect_limit, opened).await;
    local.connecting.set(local.connecting.get() - 1);
    result.unwrap_or_else(|_| Err(too_slow(shared.spec)))
}

fn too_slow(spec: &TrialSpec) -> DbError {
    let seconds = spec.connect_limit / dyno_core::SECOND;
    DbError::unreachable(format!("connecting and preparing took over {seconds} s"))
}

/// What follows a failed attempt.
enum After {
    Retry,
    Next,
    Stop,
}

struct Worker<'a, W: Workload, D: Driver, S: FnMut(Phase, u32, &Frame)> {
    shared: &'a Shared<'a, W, D>,
    local: &'a Local<S>,
    id: u32,
    /// Empty only between a lost connection and the next one.
    session: Option<D::Session>,
    state: W::Worker,
    mix: Mix,
}

impl<W: Workload, D: Driver, S: FnMut(Phase, u32, &Frame)> Worker<'_, W, D, S> {
    async fn drive(&mut self) {
        let blocks = self.shared.driver.blocks();
        let mut stride = 0;
        let mut last = now();
        while !self.local.is_closed(last) {
            let Some((due, began)) = self.next_begin(last).await else { return };
            if !self.may_begin(due, began) {
                return;
            }
            let kind = self.mix.pick();
            self.local.recorder.borrow_mut().begin(kind, began);
            match self.transaction(kind, due, began).await {
                Some(ended) => last = ended,
                None => return,
            }
            stride += 1;
            if blocks && stride % BLOCKING_STRIDE == 0 {
                yield_now().await;
            }
        }
    }

    /// False when all transactions that were asked for have begun.
    #[inline]
    fn may_begin(&self, due: Nanos, began: Nanos) -> bool {
        let mut recorder = self.local.recorder.borrow_mut();
        // The window may have opened since the loop last looked.
        recorder.advance(began);
        if recorder.phase() == Phase::WarmUp
            || self.shared.take_event(recorder.take_in_flight_at_open())
        {
            return true;
        }
        if let Some(schedule) = self.local.schedule.borrow_mut().as_mut() {
            schedule.refuse(due);
        }
        false
    }

    /// Lets the workload send what it has held back, then takes leave.
    async fn finish(mut self) {
        let Some(mut session) = self.session.take() else { return };
        let mut tally = Tally::default();
        let finished = self.shared.workload.finish(&mut self.state, &mut session, &mut tally).await;
        self.local.recorder.borrow_mut().finish(&tally, now());
        match finished {
            Ok(()) => session.close().await,
            Err(error) => self.shared.abort(error),
        }
    }

    /// When the next transaction is due and when it begins. `None` at the end of the trial.
    #[inline]
    async fn next_begin(&mut self, last: Nanos) -> Option<(Nanos, Nanos)> {
        let due = match self.local.schedule.borrow_mut().as_mut() {
            None => return Some((last, last)),
            Some(schedule) => schedule.take(),
        };
        if due <= last {
            return Some((due, last));
        }
        // A worker with nothing left to do stays until the end: the window is not cut short.
        self.local.wait_until(due.min(self.local.closes())).await;
        let began = now();
        if due >= self.local.closes() {
            self.local.untaken.set(self.local.untaken.get() + 1);
            return None;
        }
        if self.local.is_closed(began) { None } else { Some((due, began)) }
    }

    /// One transaction with all its attempts. Returns when it ended; `None` ends the worker.
    #[inline]
    async fn transaction(
        &mut self,
        kind: TransactionId,
        due: Nanos,
        began: Nanos,
    ) -> Option<Nanos> {
        let mut attempt = 0;
        loop {
            let mut tally = Tally::default();
            let session = self.session.as_mut()?;
            let run =
                self.shared.workload.run(&mut self.state, session, kind, attempt, &mut tally).await;
            let ended = now();
            match run {
                Ok(outcome) => {
                    let times = Times { due, began, ended };
                    self.ended(kind, outcome, times, &tally);
                    return Some(ended);
                }
                Err(error) => match self.failed(kind, error, attempt, &tally).await {
                    After::Retry => attempt += 1,
                    After::Next => return Some(now()),
                    After::Stop => return None,
                },
            }
        }
    }

    #[inline]
    fn ended(&mut self, kind: TransactionId, outcome: Outcome, times: Times, tally: &Tally) {
        let measured = self.local.recorder.borrow_mut().end(kind, outcome, times, tally);
        if measured {
            let index = (self.id - self.local.first) as usize;
            let stats = &mut self.local.stats.borrow_mut()[index];
            stats.transactions += u64::from(!matches!(outcome, Outcome::Failed(_)));
            stats.busy += times.ended - times.began;
        }
    }

    #[cold]
    async fn failed(
        &mut self,
        kind: TransactionId,
        error: DbError,
        attempt: u32,
        tally: &Tally,
    ) -> After {
        let at = now();
        let policy = &self.shared.spec.errors;
        let action = match policy.action(&error, attempt) {
            // After the end there is no second attempt: what is in flight is let out, not renewed.
            Action::Retry if self.local.is_closed(at) => Action::Fail,
            action => action,
        };
        match action {
            Action::Retry => {
                self.local.recorder.borrow_mut().retry(kind, &error, tally, at);
                if self.recover(&error).await {
                    return After::Retry;
                }
                self.local.recorder.borrow_mut().give_up(kind, now());
                After::Stop
            }
            Action::Fail => {
                self.local.recorder.borrow_mut().fail(kind, &error, tally, at);
                if !self.recover(&error).await {
                    return After::Stop;
                }
                self.local.wait_until(now() + policy.pause).await;
                After::Next
            }
            Action::Abort => {
                self.local.recorder.borrow_mut().fail(kind, &error, tally, at);
                self.shared.abort(error);
                After::Stop
            }
        }
    }

    /// Brings the session back to a clean state. False when the trial has ended before that.
    async fn recover(&mut self, error: &DbError) -> bool {
        if !error.is_fatal()
            && let Some(session) = &mut self.session
        {
            // A server that refuses ROLLBACK leaves no clean state: a new session has one.
            let Err(error) = session.rollback().await else { return true };
            self.local.recorder.borrow_mut().error(&error, now());
            if !self.shared.spec.errors.reconnect {
                self.shared.abort(error);
                return false;
            }
        }
        self.session = None;
        self.reconnect().await
    }

    async fn reconnect(&mut self) -> bool {
        let mut pause = MILLISECOND;
        while !self.local.is_closed(now()) {
            let attempt = async {
                let mut session = self.shared.driver.connect(self.id).await?;
                self.shared.workload.reopen(&mut self.state, &mut session).await?;
                Ok::<_, DbError>(session)
            };
            let limit = now() + self.shared.spec.connect_limit;
            match timeout(limit.min(self.local.closes()), attempt).await {
                Ok(Ok(session)) => {
                    self.session = Some(session);
                    self.local.recorder.borrow_mut().reconnected(now());
                    return true;
                }
                Ok(Err(error)) => self.local.recorder.borrow_mut().error(&error, now()),
                Err(_) => {
                    self.local.recorder.borrow_mut().error(&too_slow(self.shared.spec), now())
                }
            }
            self.local.wait_until(now() + pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
        false
    }
}
