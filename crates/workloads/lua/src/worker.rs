//! A Lua state with its connections: executes one function of a script after the other.

use crate::connections::Connections;
use crate::machine::{LuaError, LuaMachine, LuaStep};
use crate::random::UniqueNumbers;
use crate::script::{LuaScript, ScriptSettings};
use dyno_core::{DbError, Driver, Nanos, Session, Tally};
use dyno_engine::ErrorPolicy;
use mlua::IntoLuaMulti;
use std::sync::Arc;

/// What all workers of a script share.
pub(crate) struct LuaCommon<'a, D> {
    pub(crate) driver: &'a D,
    pub(crate) script: &'a LuaScript,
    pub(crate) settings: &'a ScriptSettings,
    /// Which errors a script's event begins anew after.
    pub(crate) policy: &'a ErrorPolicy,
    pub(crate) unique: Arc<UniqueNumbers>,
}

impl<'a, D: Driver> LuaCommon<'a, D> {
    pub(crate) fn new(
        driver: &'a D,
        script: &'a LuaScript,
        settings: &'a ScriptSettings,
        policy: &'a ErrorPolicy,
    ) -> Self {
        let unique = Arc::new(UniqueNumbers::new(settings.seed));
        LuaCommon { driver, script, settings, policy, unique }
    }
}

/// How a function of a script ended.
pub(crate) enum Ended {
    Done(Option<String>, Option<String>),
    /// With an error of a database that is ignored.
    Restart(DbError),
    Failed(LuaError),
}

/// One Lua state; the worker of a [`dyno_core::Workload`].
pub(crate) struct LuaWorker<'a, D: Driver> {
    machine: LuaMachine,
    connections: Connections<'a, D>,
    /// The error after which the event begins anew.
    pub(crate) has_failed: bool,
    pub(crate) has_begun: bool,
}

impl<'a, D: Driver> LuaWorker<'a, D> {
    /// The state of worker `number`, in which the script's top level has been executed.
    pub(crate) async fn open<S: Session>(
        common: &LuaCommon<'a, D>,
        number: u32,
        engine: Option<&mut S>,
    ) -> Result<Self, LuaError> {
        let LuaCommon { driver, script, settings, policy, unique } = common;
        let (machine, chunk) = LuaMachine::new(script, settings, unique, number)?;
        let connections = Connections::new(*driver, number, policy, settings.prepares);
        let mut worker = LuaWorker { machine, connections, has_failed: false, has_begun: false };
        worker.finish_step(engine, ("load", chunk)).await?;
        Ok(worker)
    }

    /// Has functions ended that compute for long after `ends`.
    pub(crate) fn end_at(&mut self, ends: Nanos) {
        self.has_begun = true;
        self.machine.end_at(ends);
    }

    /// Executes a function of the prelude's `steps` to its end.
    pub(crate) async fn step<S: Session>(
        &mut self,
        mut engine: Option<&mut S>,
        given: impl IntoLuaMulti,
        tally: &mut Tally,
    ) -> Ended {
        let mut step = self.machine.resume(given);
        loop {
            step = match step {
                Ok(LuaStep::Done(first, second)) => return Ended::Done(first, second),
                Ok(LuaStep::Restart) => {
                    let unknown = || DbError::workload("an error without a cause was ignored");
                    return Ended::Restart(
                        self.connections.failure.clone().unwrap_or_else(unknown),
                    );
                }
                Ok(LuaStep::Failed(error)) | Err(error) => return Ended::Failed(error),
                Ok(request) => {
                    let engine = engine.as_deref_mut();
                    let answer = self.connections.answer(engine, request, tally).await;
                    self.machine.resume(answer)
                }
            };
        }
    }

    /// Executes a function in which no error may happen; returns its two texts.
    pub(crate) async fn finish_step<S: Session>(
        &mut self,
        engine: Option<&mut S>,
        given: impl IntoLuaMulti,
    ) -> Result<(Option<String>, Option<String>), LuaError> {
        match self.step(engine, given, &mut Tally::default()).await {
            Ended::Done(first, second) => Ok((first, second)),
            Ended::Failed(error) => Err(error),
            Ended::Restart(error) => {
                Err(LuaError::new(format!("an error outside of event() can't be ignored: {error}")))
            }
        }
    }

    pub(crate) fn engine_reconnected(&mut self) {
        self.connections.engine_reconnected();
    }

    pub(crate) async fn recover(&mut self) -> Result<(), DbError> {
        self.connections.recover().await
    }

    pub(crate) async fn close(&mut self) {
        self.connections.close().await;
    }
}

/// A script's error as the engine hands it on: it ends the run.
pub(crate) fn fatal(error: LuaError) -> DbError {
    let ended = DbError::workload(error.message);
    if error.trace.is_empty() { ended } else { ended.with_context(error.trace) }
}
