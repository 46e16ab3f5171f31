//! A script's `event` as a [`Workload`].

use std::cell::Cell;
use std::rc::Rc;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dyno_core::{
    Cause, DbError, Dialect, Driver, ErrorClass, Executed, Nanos, Outcome, Rng, SECOND, Session,
    StatementKind, Tally, TransactionId, TransactionKind, WorkerId, Workload,
};
use dyno_drivers::Database;
use dyno_drivers::dry::DryDriver;
use dyno_engine::{Control, DriveError, ErrorPolicy, ErrorSet, Observer, TrialResult, TrialSpec};
use dyno_reactor::{monotonic_now, now, yield_now};
use mlua::{Lua, Table};

use crate::machine::LuaError;
use crate::random::UniqueNumbers;
use crate::script::{LuaScript, ScriptSettings};
use crate::watch::is_too_long;
use crate::worker::{Ended, LuaCommon, LuaWorker, OwnLoop, fatal, outside_of_events};

/// The script API's error if no connection can be opened.
const UNOPENED: &str = "connection creation failed";

/// A function, and the error by which it has failed.
pub type LateError = (&'static str, LuaError);

/// For functions that compute after the end of a run that nothing ends.
const PATIENCE: Nanos = 60 * SECOND;

/// A script on one driver. Each worker has its own Lua state.
pub(crate) struct LuaWorkload<'a, D> {
    common: LuaCommon<'a, D>,
    kinds: [TransactionKind; 1],
    /// From the first event to the end of the run.
    length: Nanos,
    /// Time after that for which a function may compute.
    patience: Nanos,
    /// The first error after the last event that counts, and its function; the measurements remain valid.
    late_error: Mutex<Option<LateError>>,
}

/// Executes a script's `event` as a trial. `spec.errors` are the errors that the driver ignores.
///
/// The first error of a `thread_done()`, or of an event that did not end, is alongside the result.
///
/// # Errors
/// Like [`dyno_engine::drive`]; an error of the script itself has [`dyno_core::Cause::Workload`].
pub fn drive(
    database: &Database,
    script: &LuaScript,
    settings: &ScriptSettings,
    spec: &TrialSpec,
    control: &Control,
    observer: &mut dyn Observer,
) -> Result<(TrialResult, Option<LateError>), DriveError> {
    // The script decides which errors are ignored; those that are not have another cause.
    let errors = ErrorPolicy {
        retry: ErrorSet { all: true, ..ErrorSet::default() },
        reconnect: true,
        ..spec.errors.clone()
    };
    let driven = TrialSpec { errors, ..spec.clone() };
    with_script_driver!(database, settings, driver => {
        let common = LuaCommon::new(driver, script, settings, &spec.errors);
        let workload = LuaWorkload::new(LuaCommon { lends: false, ..common }, spec);
        // The script opens its own sessions.
        let engine = DryDriver { dialect: driver.dialect(), blocks: driver.blocks() };
        let result = dyno_engine::drive(&workload, &engine, &driven, control, observer)?;
        Ok((result, workload.take_late_error()))
    })
}

impl<'a, D: Driver> LuaWorkload<'a, D> {
    pub(crate) fn new(mut common: LuaCommon<'a, D>, spec: &TrialSpec) -> Self {
        common.script.begin_trial();
        let before = spec.share.workers_before;
        common.unique = Arc::new(UniqueNumbers::new(common.settings.seed, before));
        let length =
            spec.duration.map_or(Nanos::MAX, |duration| duration.saturating_add(spec.warmup));
        let patience = if spec.drain == Nanos::MAX { PATIENCE } else { spec.drain };
        let kinds = [TransactionKind { name: common.script.name().to_owned(), weight: 1 }];
        LuaWorkload { common, kinds, length, patience, late_error: Mutex::default() }
    }
}

impl<D: Driver> LuaWorkload<'_, D> {
    pub(crate) fn take_late_error(&self) -> Option<LateError> {
        self.lock_late_error().take()
    }

    fn lock_late_error(&self) -> MutexGuard<'_, Option<LateError>> {
        self.late_error.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<'a, D: Driver> Workload for LuaWorkload<'a, D> {
    type Worker = LuaWorker<'a, D>;
    type Terminal = ();

    fn transactions(&self) -> &[TransactionKind] {
        &self.kinds
    }

    async fn open<S: Session>(
        &self,
        session: &mut S,
        id: WorkerId,
        _workers: u32,
        _rng: Rng,
    ) -> Result<LuaWorker<'a, D>, DbError> {
        let mut worker =
            LuaWorker::open(&self.common, id, Some(&mut *session)).await.map_err(fatal)?;
        match worker.finish_step(Some(session), "thread_init").await {
            Ok(_) => Ok(worker),
            // Its own words say more than those that the script has raised, which begin with the place.
            Err(error) => Err(match worker.connections.unopened.take() {
                Some(unopened) => match error.message.find(UNOPENED) {
                    Some(at) => unopened.with_context(&error.message[..at]),
                    None => unopened,
                },
                None => fatal(error),
            }),
        }
    }

    async fn reopen<S: Session>(
        &self,
        worker: &mut LuaWorker<'a, D>,
        _session: &mut S,
    ) -> Result<(), DbError> {
        worker.connections.engine_reconnected();
        Ok(())
    }

    async fn run<S: Session>(
        &self,
        worker: &mut LuaWorker<'a, D>,
        session: &mut S,
        _transaction: TransactionId,
        attempt: u32,
        tally: &mut Tally,
    ) -> Result<Outcome, DbError> {
        let is_first = !std::mem::replace(&mut worker.has_begun, true);
        if is_first {
            // Functions that compute for long after that are ended.
            worker.machine.watch.begin(now().saturating_add(self.length), self.patience);
        }
        // What only computes leaves the other workers of its loop no time.
        if worker.turns.has_held_up(monotonic_now) {
            yield_now().await;
        }
        // An attempt that the engine has given up at the end of a run has no second one.
        let has_failed = std::mem::take(&mut worker.has_failed);
        let is_retry = has_failed && attempt > 0;
        if has_failed {
            // What it has given up it has rolled back on its own session.
            worker.rolls_back |= !is_retry;
            if let Err(error) = worker.recover().await {
                worker.has_failed = true;
                return Err(error);
            }
        }
        if !is_retry && !is_first {
            worker.machine.draw_between_events();
        }
        let ended = match worker.own_loop {
            OwnLoop::None => worker.event(session, is_retry, tally).await,
            OwnLoop::NotBegun => {
                worker.own_loop = OwnLoop::Waits;
                worker.step(Some(session), "thread_run", tally).await
            }
            OwnLoop::Waits => worker.step(Some(session), true, tally).await,
        };
        let is_event = match &ended {
            Ended::Done(_) => worker.own_loop == OwnLoop::None,
            Ended::Stopped => true,
            _ => false,
        };
        let is_error = match &ended {
            Ended::Restart(error) => error.cause() != Cause::Again,
            Ended::Failed(_) => true,
            Ended::Done(_) | Ended::Last | Ended::Stopped => false,
        };
        worker.count(tally, is_event, is_error);
        match ended {
            Ended::Done(_) | Ended::Stopped if is_event => Ok(Outcome::Committed),
            Ended::Done(_) | Ended::Last | Ended::Stopped => {
                worker.has_ended = true;
                worker.last_work = *tally;
                Ok(Outcome::Skipped)
            }
            Ended::Restart(error) => {
                worker.has_failed = true;
                worker.rolls_back = self.rolls_back(&error);
                Err(error)
            }
            // It alone does not count.
            Ended::Failed(error) if is_too_long(&error) => {
                let function =
                    if worker.own_loop == OwnLoop::None { "event" } else { "thread_run" };
                self.lock_late_error().get_or_insert((function, error));
                worker.has_ended = true;
                worker.last_work = *tally;
                Ok(Outcome::Skipped)
            }
            Ended::Failed(error) => {
                worker.has_died = true;
                Err(fatal(error))
            }
        }
    }

    // As in the original, whose driver for PostgreSQL rolls back where an error is ignored, and no other one. It has
    // none for SQLite, where a transaction that has met a busy database can't continue.
    fn rolls_back(&self, error: &DbError) -> bool {
        match self.common.driver.dialect() {
            Dialect::Mysql => false,
            Dialect::Postgres => error.cause() != Cause::Again,
            Dialect::Sqlite => error.class() == ErrorClass::LockTimeout,
        }
    }

    #[inline]
    fn has_ended(&self, worker: &LuaWorker<'a, D>) -> bool {
        worker.has_ended
    }

    async fn finish<S: Session>(
        &self,
        worker: &mut LuaWorker<'a, D>,
        session: &mut S,
        tally: &mut Tally,
    ) -> Result<(), DbError> {
        self.common.script.note_steps(worker.machine.watch.end());
        tally.add(&worker.last_work);
        // As in the original: a thread that a failure has ended has no thread_done().
        if worker.has_died {
            worker.connections.close().await;
            return Ok(());
        }
        if worker.own_loop == OwnLoop::Waits && !worker.has_ended {
            worker.leave_loop(session, tally).await.map_err(fatal)?;
        }
        let ended = worker.step(Some(session), "thread_done", tally).await;
        if let Err(error) = outside_of_events(ended) {
            self.lock_late_error().get_or_insert(("thread_done", error));
        }
        worker.count(tally, false, false);
        tally.is_open = worker.connections.close().await;
        Ok(())
    }
}

/// The numbers of counters in the original.
pub(crate) const OTHER: usize = 0;
pub(crate) const READ: usize = 1;
pub(crate) const WRITE: usize = 2;
pub(crate) const EVENT: usize = 3;
pub(crate) const ERROR: usize = 4;
pub(crate) const RECONNECT: usize = 5;

#[derive(Debug, Default)]
pub(crate) struct ScriptCounters {
    values: [Cell<u64>; 6],
    /// Counts that the script itself has added and the engine does not know yet.
    added: [Cell<u64>; 6],
    /// Statements that have failed, which the engine does not know yet.
    failed: Cell<u64>,
}

impl ScriptCounters {
    /// Gives the prelude `count` and `counted`.
    pub(crate) fn offer(self: &Rc<Self>, lua: &Lua, host: &Table) -> mlua::Result<()> {
        let counters = Rc::clone(self);
        let count = lua.create_function(move |_, kind: Option<usize>| {
            counters.add(check_kind(kind)?);
            Ok(())
        })?;
        let counters = Rc::clone(self);
        let read_count = lua.create_function(move |_, kind: Option<usize>| {
            Ok(counters.values[check_kind(kind)?].get())
        })?;
        host.set("count", count)?;
        host.set("counted", read_count)
    }

    /// Adds one to a counter of this worker: reads, writes, others, events, errors or reconnects.
    #[inline]
    pub(crate) fn raise(&self, kind: usize) {
        self.values[kind].set(self.values[kind].get() + 1);
    }

    pub(crate) fn count_statement(&self, done: Executed) {
        self.raise(match done.kind() {
            StatementKind::Read => READ,
            StatementKind::Write => WRITE,
            StatementKind::Other => OTHER,
        });
    }

    #[cold]
    pub(crate) fn count_error(&self) {
        self.raise(ERROR);
        self.failed.set(self.failed.get() + 1);
    }

    /// A connection was opened again at the script's wish.
    #[cold]
    pub(crate) fn count_reconnect(&self) {
        self.add(RECONNECT);
    }

    /// Raises a counter that the engine does not know of.
    fn add(&self, kind: usize) {
        self.raise(kind);
        self.added[kind].set(self.added[kind].get() + 1);
    }

    /// Hands what the script has added to the engine, and the errors that it has caught. The one that an event has
    /// ended with is the engine's to count.
    #[inline]
    pub(crate) fn hand_over(&self, tally: &mut Tally, is_error: bool) {
        tally.others += self.added[OTHER].take();
        tally.reads += self.added[READ].take();
        tally.writes += self.added[WRITE].take();
        tally.reconnects += self.added[RECONNECT].take();
        let caught = self.failed.take().saturating_sub(u64::from(is_error));
        tally.handled_errors += self.added[ERROR].take() + caught;
    }
}

fn check_kind(kind: Option<usize>) -> mlua::Result<usize> {
    let unknown = "sb_counter_inc() and sb_counter_val() know the counters 0 to 5";
    kind.filter(|kind| *kind < 6).ok_or_else(|| mlua::Error::runtime(unknown))
}
