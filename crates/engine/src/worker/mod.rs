//! One worker: connects, waits for the others, executes transactions.

use std::cell::RefMut;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::atomic::Ordering;
use std::task::Poll;

use dyno_core::{
    AnswerTable, DbError, Dialect, Driver, EndedTransaction, MILLISECOND, Nanos, Outcome, Rng,
    Session, Tally, TerminalPlan, TransactionId, Workload,
};
use dyno_facts::TableScans;
use dyno_reactor::{now, sleep_until, timeout, yield_now};

use crate::policy::Action;
use crate::record::{FrameSink, Phase, Times};
use crate::shared::{Local, Shared};
use crate::terminals::{Job, Owner};
use crate::trial::{TrialSpec, WorkerStats};

/// Concurrent connects of one loop: enough to hide round trips, few enough for a server's accept queue.
const CONNECTS_AT_ONCE: u32 = 32;
/// Transactions between two returns to the loop, for sessions that block their thread.
const BLOCKING_STRIDE: u32 = 16;

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

    /// Draws the kind of the next transaction.
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
pub(crate) async fn worker<W: Workload, D: Driver, S: FrameSink>(
    shared: &Shared<'_, W, D>,
    local: &Local<S>,
    id: u32,
) {
    while local.connecting.get() >= CONNECTS_AT_ONCE {
        sleep_until(now() + MILLISECOND / 5).await;
    }
    // Boxes keep what is rare out of the worker's future: its few lines in the cache are those of the usual way. Those
    // who wait for their turn have none yet.
    let (session, state) = match Box::pin(open(shared, local, id)).await {
        Ok(opened) => opened,
        Err(_) if shared.spec.survives_refusals() => return stay_away(shared, local).await,
        Err(error) => return shared.abort(error),
    };
    local.ready.set(local.ready.get() + 1);
    shared.connected.fetch_add(1, Ordering::Relaxed);
    local.wait_for_release().await;
    let mix =
        Mix::new(shared.workload, Rng::new(shared.spec.seed, "mix", u64::from(shared.number(id))));
    let session = Some(session);
    let schedule = shared.schedule(local.number);
    let mut worker = Worker {
        begins_at_once: shared.spec.terminals.is_none() && schedule.is_none(),
        shared,
        local,
        id,
        session,
        state,
        mix,
        job: None,
        at_once: None,
        counted: 0,
        on_session: 0,
        uncommitted: 0,
    };
    let error = worker.drive().await;
    Box::pin(worker.finish(error)).await;
}

/// The life of a worker that got no session: the others begin without it.
async fn stay_away<W: Workload, D: Driver, S: FrameSink>(
    shared: &Shared<'_, W, D>,
    local: &Local<S>,
) {
    local.ready.set(local.ready.get() + 1);
    local.wait_for_release().await;
    local.retired.set(local.retired.get() + 1);
    local.stop_driving(shared.spec.finish_begun, now());
}

/// Opens a session and the workload's worker on it.
async fn open<W: Workload, D: Driver, S: FrameSink>(
    shared: &Shared<'_, W, D>,
    local: &Local<S>,
    id: u32,
) -> Result<(D::Session, W::Worker), DbError> {
    local.connecting.set(local.connecting.get() + 1);
    let opened = async {
        // Hosts rotate by the worker's number, so that the same worker always meets the same host.
        let number = shared.number(id);
        let mut session = shared.control.opened(number, shared.driver.connect(number).await)?;
        let rng = Rng::new(shared.spec.seed, "worker", u64::from(number));
        let workers = shared.spec.all_workers();
        let state = shared.workload.open(&mut session, number, workers, rng).await?;
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

/// Gives `attempt` up once `limit` has passed. Without a timer, which would cost each attempt a place in
/// the loop's heap: the loop polls all its workers again and again if there is such a limit.
async fn with_deadline<T>(
    attempt: impl Future<Output = Result<T, DbError>>,
    limit: Nanos,
) -> Result<T, DbError> {
    let deadline = now().saturating_add(limit);
    let mut attempt = pin!(attempt);
    poll_fn(|context| match attempt.as_mut().poll(context) {
        Poll::Pending if now() >= deadline => Poll::Ready(Err(unanswered_error(limit))),
        polled => polled,
    })
    .await
}

fn unanswered_error(limit: Nanos) -> DbError {
    let seconds = limit as f64 / dyno_core::SECOND as f64;
    DbError::lost(format!("no answer within {seconds} s"))
}

/// The step after a failed attempt.
enum After {
    Retry,
    Next,
    Stop(Option<DbError>),
}

/// When a transaction is due and when it begins.
#[derive(Clone, Copy)]
struct Begin {
    due: Nanos,
    began: Nanos,
}

impl Begin {
    /// The times of a transaction that ended at `ended`.
    fn finish(self, ended: Nanos) -> Times {
        Times { due: self.due, began: self.began, ended }
    }
}

struct Worker<'a, W: Workload, D: Driver, S: FrameSink> {
    shared: &'a Shared<'a, W, D>,
    local: &'a Local<S>,
    id: u32,
    /// Empty only between two connections.
    session: Option<D::Session>,
    state: W::Worker,
    mix: Mix,
    /// Nothing but the end of a transaction decides when the next one begins.
    begins_at_once: bool,
    /// The terminal's job; always empty without terminals.
    job: Option<Job>,
    /// An errand that it does before anything else.
    at_once: Option<Job>,
    /// Transactions that count and are over.
    counted: u64,
    /// Transactions that have begun on this session, if that is bounded.
    on_session: u64,
    /// Transactions with writes since the server last reported that none is open.
    uncommitted: u64,
}

impl<W: Workload, D: Driver, S: FrameSink> Worker<'_, W, D, S> {
    /// Transaction after transaction. Returns the error that ended this worker before the others.
    async fn drive(&mut self) -> Option<DbError> {
        let spec = self.shared.spec;
        let blocks = self.shared.driver.blocks();
        let renews_sessions = spec.connect_each || spec.reconnect_every > 0;
        let mut stride = 0;
        let mut last = now();
        while !self.local.is_over(last) && !self.has_done_all() {
            let mut begin = self.next_begin(last).await?;
            let kind = self.next_kind();
            if !self.begins(kind, begin) {
                return None;
            }
            if spec.late_limit.is_some_and(|limit| begin.began > begin.due.saturating_add(limit)) {
                last = begin.began;
                self.end_transaction(
                    kind,
                    Outcome::Skipped,
                    begin.finish(last),
                    0,
                    &Tally::default(),
                );
                continue;
            }
            if renews_sessions {
                match Box::pin(self.renewed(begin)).await {
                    Ok(connected) => begin = connected,
                    Err(error) => return self.leave(kind, error),
                }
            }
            let mut attempt = 0;
            last = loop {
                let mut tally = Tally::default();
                let session = self.session.as_mut()?;
                let (workload, state) = (self.shared.workload, &mut self.state);
                // The future of a run that has a name is moved once more before it is awaited.
                let run = match spec.answer_limit {
                    None => workload.run(state, session, kind, attempt, &mut tally).await,
                    Some(limit) => {
                        let run = workload.run(state, session, kind, attempt, &mut tally);
                        with_deadline(run, limit).await
                    }
                };
                let ended = now();
                let error = match run {
                    Ok(outcome) => {
                        self.end_transaction(
                            kind,
                            outcome,
                            begin.finish(ended),
                            attempt + 1,
                            &tally,
                        );
                        break ended;
                    }
                    Err(error) => error,
                };
                match Box::pin(self.handle_failure(kind, error, begin, attempt, &tally)).await {
                    After::Retry => attempt += 1,
                    After::Next => break now(),
                    After::Stop(error) => return error,
                }
            };
            if let Some(error) = self.shared.workload.leaves(&mut self.state) {
                self.leave_nothing_open(&error).await;
                return self.end_worker(error, false);
            }
            if spec.connect_each
                && let Some(session) = self.session.take()
            {
                self.lose_uncommitted();
                session.close().await;
                last = now();
            }
            stride += 1;
            if blocks && stride % BLOCKING_STRIDE == 0 {
                yield_now().await;
            }
        }
        None
    }

    /// The kind of the next transaction, which a terminal has planned before.
    #[inline]
    fn next_kind(&mut self) -> TransactionId {
        match &self.job {
            Some(job) => job.transaction,
            None => self.shared.workload.choose(&mut self.state).unwrap_or_else(|| self.mix.pick()),
        }
    }

    /// Returns true if this worker has executed all its wanted transactions, or has ended by itself.
    #[inline]
    fn has_done_all(&self) -> bool {
        let is_done = self.shared.spec.events_per_worker.is_some_and(|limit| self.counted >= limit)
            || self.shared.workload.has_ended(&self.state);
        if is_done {
            self.shared.events_done.store(true, Ordering::Relaxed);
        }
        is_done
    }

    /// Ends this worker, or the whole trial, with a transaction that can't begin.
    fn leave(&mut self, kind: TransactionId, error: DbError) -> Option<DbError> {
        let counts = self.local.recorder.borrow_mut().fail(kind, &error, &Tally::default(), now());
        self.end_worker(error, counts)
    }

    /// Ends this worker, or the whole trial, after a failed transaction; `counts`: it was measured.
    fn end_worker(&mut self, error: DbError, counts: bool) -> Option<DbError> {
        if !self.shared.spec.errors.retire {
            self.shared.abort(error);
            return None;
        }
        let local = self.local;
        // Others continue with the terminal of this worker.
        self.give_back(now());
        local.retired.set(local.retired.get() + 1);
        local.retired_transactions.set(local.retired_transactions.get() + u64::from(counts));
        Some(error)
    }

    /// Counts the begin of a transaction. False when all that are wanted have begun; errands come on top of these.
    #[inline]
    fn begins(&self, kind: TransactionId, begin: Begin) -> bool {
        let mut recorder = self.local.recorder.borrow_mut();
        // The window may have opened since the last round of the loop.
        recorder.advance(begin.began);
        let is_errand = matches!(&self.job, Some(Job { owner: Owner::DeferredTransaction(_), .. }));
        if is_errand
            || recorder.phase == Phase::WarmUp
            || self.shared.take_event(recorder.take_in_flight_at_open())
        {
            recorder.begin(kind, begin.began);
            return true;
        }
        if let Some(schedule) = self.shared.schedule(self.local.number) {
            schedule.refuse(begin.due);
            let offered = u64::from(schedule.is_offered(begin.due));
            self.local.offered.set(self.local.offered.get() - offered);
        }
        if let Some(terminals) = &self.shared.terminals {
            terminals.refuse(begin.due);
            let offered = u64::from(terminals.is_offered(begin.due));
            self.local.offered.set(self.local.offered.get() - offered);
        }
        false
    }

    /// Lets the workload send the rest of its data, then closes the session.
    async fn finish(mut self, error: Option<DbError>) {
        let workload = self.shared.workload;
        let mut session = self.session.take();
        let mut finished = Ok(());
        if let (Some(session), None) = (&mut session, &error) {
            let mut tally = Tally::default();
            finished = workload.finish(&mut self.state, session, &mut tally).await;
            self.local.recorder.borrow_mut().finish(&tally, now());
            if tally.is_open || session.is_in_transaction() {
                self.lose_uncommitted();
            }
        }
        self.local.stop_driving(self.shared.spec.finish_begun, now());
        match (finished, session) {
            (Err(error), _) => self.shared.abort(error),
            (Ok(()), Some(mut session)) => {
                let scans = self.table_scans(&mut session).await;
                self.stats().scans = scans;
                session.close().await;
            }
            (Ok(()), None) => {}
        }
        workload.retire(self.state, error.as_ref());
    }

    /// The due time and the begin of the next transaction. `None` at the end of the trial.
    #[inline]
    async fn next_begin(&mut self, last: Nanos) -> Option<Begin> {
        if self.begins_at_once {
            return Some(Begin { due: last, began: last });
        }
        if self.shared.spec.terminals.is_some() {
            return self.next_job(last).await;
        }
        let schedule = self.shared.schedule(self.local.number)?;
        let due = schedule.take_next();
        let is_awaited = due > last;
        if is_awaited {
            // An idle worker stays until the end: the window is not cut short.
            self.local.wait_until(due.min(self.local.ends())).await;
        }
        if due >= self.local.ends() {
            return None;
        }
        let offered = u64::from(schedule.is_offered(due));
        self.local.offered.set(self.local.offered.get() + offered);
        if !is_awaited {
            return Some(Begin { due, began: last });
        }
        self.begin_awaited(due)
    }

    /// Begins what this worker has waited for. `None` at the end of the trial.
    #[inline]
    fn begin_awaited(&self, due: Nanos) -> Option<Begin> {
        let began = now();
        if self.local.is_over(began) {
            return None;
        }
        self.local.recorder.borrow_mut().awaited(began.saturating_sub(due), began);
        Some(Begin { due, began })
    }

    /// Takes the next job of the terminals. `None` at the end of the trial.
    #[inline]
    async fn next_job(&mut self, last: Nanos) -> Option<Begin> {
        let terminals = self.shared.terminals.as_ref()?;
        let task = self.id - self.local.first;
        let (job, was_idle) = match self.at_once.take().or_else(|| terminals.take_job()) {
            Some(job) => (job, false),
            None => (self.local.wait_for_job(task, terminals).await?, true),
        };
        let due = job.due;
        if due > last {
            self.local.wait_until(due.min(self.local.ends())).await;
        }
        if due >= self.local.ends() || due > last && terminals.is_closed() && due > now() {
            return None;
        }
        let offered = u64::from(terminals.is_offered(due));
        self.local.offered.set(self.local.offered.get() + offered);
        let begin = if was_idle || due > last {
            self.begin_awaited(due)?
        } else {
            Begin { due, began: last }
        };
        self.job = Some(job);
        match job.owner {
            Owner::Seat(seat) => {
                let (workload, state) = (self.shared.workload, &mut self.state);
                terminals.with_seat(seat, |terminal| workload.swap(state, terminal));
            }
            Owner::DeferredTransaction(ticket) => {
                self.shared.workload.take_errand(&mut self.state, ticket, due);
            }
        }
        Some(begin)
    }

    /// Gives the terminal of this worker back, with its next plan, after a transaction that ended at `ended`.
    fn give_back(&mut self, ended: Nanos) {
        let Some(Job { owner: Owner::Seat(seat), .. }) = self.job.take() else { return };
        let Some(terminals) = &self.shared.terminals else { return };
        let (workload, state) = (self.shared.workload, &mut self.state);
        let plans = terminals.with_seat(seat, |terminal| {
            workload.swap(state, terminal);
            (workload.errand(state), workload.plan(terminal))
        });
        let Some((errand, TerminalPlan { transaction, pause })) = plans else { return };
        // Before the seat, which others may take from then on.
        self.at_once = errand.and_then(|errand| terminals.push_errand(seat, ended, errand));
        terminals.push(seat, ended.saturating_add(pause), transaction);
    }

    /// The statistics of this worker.
    #[inline]
    fn stats(&self) -> RefMut<'_, WorkerStats> {
        let index = (self.id - self.local.first) as usize;
        RefMut::map(self.local.stats.borrow_mut(), |stats| &mut stats[index])
    }

    #[inline]
    fn end_transaction(
        &mut self,
        kind: TransactionId,
        outcome: Outcome,
        times: Times,
        attempts: u32,
        tally: &Tally,
    ) {
        let is_measured = self.local.recorder.borrow_mut().end(kind, outcome, times, tally);
        let busy = tally.is_open || self.session.as_ref().is_some_and(Session::is_in_transaction);
        self.uncommitted = if busy { self.uncommitted + u64::from(tally.writes > 0) } else { 0 };
        if is_measured && !matches!(outcome, Outcome::Skipped) {
            let mut stats = self.stats();
            stats.transactions += u64::from(!matches!(outcome, Outcome::Failed(_)));
            stats.busy += times.ended - times.began;
        }
        self.notify_workload(kind, outcome, times, attempts, is_measured);
    }

    /// Informs the workload of a finished transaction.
    #[inline]
    fn notify_workload(
        &mut self,
        transaction: TransactionId,
        outcome: Outcome,
        times: Times,
        attempts: u32,
        is_measured: bool,
    ) {
        let Times { due, began, ended } = times;
        let ended =
            EndedTransaction { transaction, outcome, due, began, ended, attempts, is_measured };
        self.counted += u64::from(is_measured);
        self.shared.workload.ended(&mut self.state, &ended);
        if self.job.is_some() {
            self.give_back(times.ended);
        }
    }

    #[cold]
    async fn handle_failure(
        &mut self,
        kind: TransactionId,
        error: DbError,
        begin: Begin,
        attempt: u32,
        tally: &Tally,
    ) -> After {
        let at = now();
        let policy = &self.shared.spec.errors;
        let limit = self.shared.spec.late_limit;
        let is_too_late = limit.is_some_and(|limit| at > begin.due.saturating_add(limit));
        let action = match policy.action(&error, attempt) {
            // Nothing is tried again after the end.
            Action::Retry if self.local.is_over(at) || is_too_late => Action::Fail,
            action => action,
        };
        // pgbench looks at the time first: a client whose time is over leaves its transaction unchanged, unfinished.
        if action == Action::Fail && policy.retire && self.local.is_over(at) {
            let recovered = self.recover(&error).await;
            return After::Stop(recovered.err().and_then(|error| self.end_worker(error, false)));
        }
        if action == Action::Retry {
            self.local.recorder.borrow_mut().retry(kind, attempt, &error, tally, at);
            let goes_on = !self.loses_session(&error) && !self.shared.workload.rolls_back(&error);
            if goes_on {
                return After::Retry;
            }
            let recovered = self.recover(&error).await;
            if recovered == Ok(true) {
                return After::Retry;
            }
            self.local.recorder.borrow_mut().give_up(kind, now());
            let broken = recovered.err().and_then(|error| self.end_worker(error, false));
            return After::Stop(broken);
        }
        let counts = self.local.recorder.borrow_mut().fail(kind, &error, tally, at);
        if action != Action::Fail {
            self.leave_nothing_open(&error).await;
            return After::Stop(self.end_worker(error, counts));
        }
        let outcome = Outcome::Failed(error.class());
        self.notify_workload(kind, outcome, begin.finish(at), attempt + 1, counts);
        match self.recover(&error).await {
            Ok(true) => {}
            Ok(false) => return After::Stop(None),
            Err(error) => return After::Stop(self.end_worker(error, false)),
        }
        self.local.wait_until(now() + policy.pause).await;
        After::Next
    }

    /// Counts the transactions whose writes the server discards because the session ends or is rolled back.
    fn lose_uncommitted(&mut self) {
        let uncommitted = std::mem::take(&mut self.uncommitted);
        self.stats().uncommitted += uncommitted;
    }

    /// Rolls back before the session ends with its worker: a proxy may hand its connection to others, with what the
    /// transaction has done. pgbench's clients just leave.
    async fn leave_nothing_open(&mut self, error: &DbError) {
        self.lose_uncommitted();
        if !error.is_fatal()
            && !self.shared.spec.errors.retire
            && let Some(session) = &mut self.session
        {
            // The error that ends the worker is the one that counts.
            let _ = session.rollback().await;
        }
    }
}

impl<W: Workload, D: Driver, S: FrameSink> Worker<'_, W, D, S> {
    /// Replaces the session once it has had all its transactions.
    async fn renewed(&mut self, begin: Begin) -> Result<Begin, DbError> {
        let every = self.shared.spec.reconnect_every;
        if every == 0 {
            return self.connect_for_one(begin).await;
        }
        if self.on_session == every {
            self.connect_for_one(begin).await?;
            self.local.recorder.borrow_mut().reconnected(now());
            self.on_session = 0;
        }
        self.on_session += 1;
        // As in sysbench, connecting is a part of the event.
        Ok(begin)
    }

    /// Replaces the session by one for a single transaction, which begins once it is connected.
    async fn connect_for_one(&mut self, begin: Begin) -> Result<Begin, DbError> {
        if let Some(session) = self.session.take() {
            self.lose_uncommitted();
            session.close().await;
        }
        let before = now();
        let shared = self.shared;
        let connect = async {
            let mut session = shared.reconnect(shared.number(self.id), 0).await?;
            shared.workload.reopen(&mut self.state, &mut session).await?;
            Ok::<_, DbError>(session)
        };
        let session = timeout(before + shared.spec.connect_limit, connect).await;
        self.session = Some(session.unwrap_or_else(|_| Err(too_slow(shared.spec)))?);
        let began = now();
        self.stats().connects += 1;
        self.stats().connecting += began - before;
        let due = if shared.spec.is_scheduled() { begin.due } else { began };
        Ok(Begin { due, began })
    }

    /// Returns true if a session with this error is replaced.
    fn loses_session(&self, error: &DbError) -> bool {
        error.is_fatal() || self.shared.spec.errors.replace.contains(error)
    }

    /// Restores a clean session. False when the trial has ended before that; an error when the session can't be
    /// cleaned and must not be replaced.
    async fn recover(&mut self, error: &DbError) -> Result<bool, DbError> {
        self.lose_uncommitted();
        if !self.loses_session(error)
            && let Some(session) = &mut self.session
        {
            // A server that refuses ROLLBACK leaves no clean state, but a new session is clean.
            let rolled_back = match self.shared.spec.answer_limit {
                None => session.rollback().await,
                Some(limit) => with_deadline(session.rollback(), limit).await,
            };
            let Err(error) = rolled_back else { return Ok(true) };
            self.local.recorder.borrow_mut().error(&error, now());
            let policy = &self.shared.spec.errors;
            if !policy.reconnect {
                // Transactions continue after this error, as the user wants.
                let is_ignored = policy.retry.contains(&error) && !error.is_fatal();
                return if is_ignored { Ok(true) } else { Err(error) };
            }
        }
        self.session = None;
        Ok(self.reconnect().await)
    }

    /// Opens a session again; false if the trial or the patience ends first.
    async fn reconnect(&mut self) -> bool {
        let (mut pause, number) = (MILLISECOND, self.shared.number(self.id));
        let outage_max = self.shared.spec.errors.outage_max;
        let given_up_at = outage_max.map_or(Nanos::MAX, |limit| now().saturating_add(limit));
        for attempt in 0.. {
            if self.local.is_over(now()) {
                break;
            }
            let opened = async {
                let mut session = self.shared.reconnect(number, attempt).await?;
                self.shared.workload.reopen(&mut self.state, &mut session).await?;
                Ok::<_, DbError>(session)
            };
            let spec = self.shared.spec;
            let limit = spec.answer_limit.unwrap_or(spec.connect_limit).min(spec.connect_limit);
            let limit = now() + limit;
            let error = match timeout(limit.min(self.local.ends()), opened).await {
                Ok(Ok(session)) => {
                    self.session = Some(session);
                    self.local.recorder.borrow_mut().reconnected(now());
                    return true;
                }
                Ok(Err(error)) => error,
                // The trial has ended: an attempt that this cuts off has not failed.
                Err(_) if self.local.is_over(now()) => break,
                Err(_) => match spec.answer_limit {
                    None => too_slow(spec),
                    Some(limit) => unanswered_error(limit),
                },
            };
            self.local.recorder.borrow_mut().error(&error, now());
            if now() >= given_up_at {
                self.shared.abort(error);
                return false;
            }
            self.local.wait_until(now() + pause).await;
            pause = (pause * 2).min(spec.errors.reconnect_pause_max);
        }
        false
    }
}

/// Sessions of a trial that are queried: all do the same, and a question takes time.
const ASKED: u32 = 16;
/// Multiple of the rows that a statement touches up to which planners scan with reason: tables of a few pages.
const EXCESS: u64 = 10;
/// The least number of rows that counts as a scan of a large table.
const ROWS_MIN: u64 = 1_000;

/// Counted by session: other clients do not matter. The answer itself is read by a scan of some hundred rows.
const MYSQL: &str =
    "SHOW SESSION STATUS WHERE Variable_name IN ('Handler_read_rnd_next', 'Questions')";
/// Counters that the session has not yet added to the statistics of the server, which it does once a second.
const POSTGRES: &str = "SELECT 'rows', sum(seq_tup_read) FROM pg_stat_xact_user_tables \
     UNION ALL SELECT 'scans', sum(seq_scan) FROM pg_stat_xact_user_tables";

impl<W: Workload, D: Driver, S: FrameSink> Worker<'_, W, D, S> {
    /// Returns scans that the statements of the workload do not explain. A server that refuses the question has none.
    async fn table_scans(&self, session: &mut D::Session) -> Option<TableScans> {
        let touched = self.shared.workload.rows_touched().filter(|_| self.id < ASKED)?;
        let question = match session.dialect() {
            Dialect::Mysql => MYSQL,
            Dialect::Postgres if session.capabilities().server_views => POSTGRES,
            Dialect::Postgres | Dialect::Sqlite => return None,
        };
        let mut answer = AnswerTable::default();
        session.query(question, &mut answer).await.ok()?;
        let [rows, statements] =
            [0, 1].map(|row: usize| answer.rows.get(row)?.get(1)?.as_ref()?.parse().ok());
        let scans = TableScans { rows: rows?, statements: statements? };
        Some(scans).filter(|scans| scans.rows_each() > (EXCESS * touched).max(ROWS_MIN))
    }
}
