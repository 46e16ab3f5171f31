//! A script's `event` as a [`Workload`].

use crate::script::{LuaScript, ScriptSettings};
use crate::worker::{Ended, LuaCommon, LuaWorker, fatal};
use dyno_core::{
    DbError, Driver, Nanos, Outcome, Rng, Session, Tally, TransactionId, TransactionKind, WorkerId,
    Workload,
};
use dyno_drivers::{Database, with_driver};
use dyno_engine::{Control, DriveError, ErrorPolicy, ErrorSet, Observer, TrialResult, TrialSpec};
use dyno_reactor::now;

/// A script on one driver. Each worker has a Lua state of its own.
pub(crate) struct LuaWorkload<'a, D> {
    common: LuaCommon<'a, D>,
    kinds: [TransactionKind; 1],
    /// From the first event to the end of the run.
    length: Nanos,
}

/// Executes a script's `event` as a trial. `spec.errors` are the errors that the driver ignores.
///
/// # Errors
/// As [`dyno_engine::drive`]; an error of the script itself has [`dyno_core::Cause::Workload`].
pub fn drive(
    database: &Database,
    script: &LuaScript,
    settings: &ScriptSettings,
    spec: &TrialSpec,
    control: &Control,
    observer: &mut dyn Observer,
) -> Result<TrialResult, DriveError> {
    // The script decides which errors are ignored; those that are not have another cause.
    let errors = ErrorPolicy {
        retry: ErrorSet { all: true, ..ErrorSet::default() },
        reconnect: true,
        ..spec.errors.clone()
    };
    let driven = TrialSpec { errors, ..spec.clone() };
    with_driver!(database, driver => {
        let workload = LuaWorkload::new(LuaCommon::new(driver, script, settings, &spec.errors), spec);
        dyno_engine::drive(&workload, driver, &driven, control, observer)
    })
}

impl<'a, D: Driver> LuaWorkload<'a, D> {
    pub(crate) fn new(common: LuaCommon<'a, D>, spec: &TrialSpec) -> Self {
        let length =
            spec.duration.map_or(Nanos::MAX, |duration| duration.saturating_add(spec.warmup));
        let kinds = [TransactionKind { name: common.script.name().to_owned(), weight: 1 }];
        LuaWorkload { common, kinds, length }
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
        worker.finish_step(Some(session), "thread_init").await.map_err(fatal)?;
        Ok(worker)
    }

    async fn reopen<S: Session>(
        &self,
        worker: &mut LuaWorker<'a, D>,
        _session: &mut S,
    ) -> Result<(), DbError> {
        worker.engine_reconnected();
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
        if !worker.has_begun {
            worker.end_at(now().saturating_add(self.length));
        }
        // An attempt that the engine has given up at the end of a run has no second one.
        let is_again = std::mem::take(&mut worker.has_failed) && attempt > 0;
        if is_again {
            worker.recover().await?;
        }
        let name = if is_again { "restart" } else { "event" };
        match worker.step(Some(session), name, tally).await {
            Ended::Done(..) => Ok(Outcome::Committed),
            Ended::Restart(error) => {
                worker.has_failed = true;
                Err(error)
            }
            Ended::Failed(error) => Err(fatal(error)),
        }
    }

    async fn finish<S: Session>(
        &self,
        worker: &mut LuaWorker<'a, D>,
        session: &mut S,
        _tally: &mut Tally,
    ) -> Result<(), DbError> {
        worker.end_at(Nanos::MAX);
        worker.finish_step(Some(session), "thread_done").await.map_err(fatal)?;
        worker.close().await;
        Ok(())
    }
}
