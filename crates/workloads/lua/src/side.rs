//! A state of a run beside those of its workers: for `init` and `done`, and for reports.

use crate::machine::LuaError;
use crate::reports::{ReportHook, ReportStat};
use crate::script::{LuaScript, ScriptSettings};
use crate::worker::{LuaCommon, LuaWorker};
use dyno_core::Driver;
use dyno_drivers::{Database, with_driver};
use dyno_reactor::block_on;

/// A state in which functions of the script are executed one after the other. Its connections are closed after each,
/// and opened again when they are used.
pub trait SideState {
    /// Executes `init` or `done`, if the script has it.
    ///
    /// # Errors
    /// The script's own.
    fn step(&mut self, function: &'static str) -> Result<(), LuaError>;

    /// Whether the script has set this hook.
    ///
    /// # Errors
    /// Out of memory.
    fn has(&mut self, hook: ReportHook) -> Result<bool, LuaError>;

    /// Calls this hook, which the script has set.
    ///
    /// # Errors
    /// The script's own.
    fn report(&mut self, hook: ReportHook, stat: &ReportStat) -> Result<(), LuaError>;

    /// Ends what its reports have begun.
    ///
    /// # Errors
    /// Standard output is gone.
    fn close(&mut self) -> Result<(), LuaError>;
}

/// Makes such a state, whose `sysbench.tid` is `number`, and executes the script's top level in it.
///
/// # Errors
/// What the script's top level or the options' values have wrong.
pub fn side_state<'a>(
    database: &'a Database,
    script: &'a LuaScript,
    settings: &'a ScriptSettings,
    number: u32,
) -> Result<Box<dyn SideState + 'a>, LuaError> {
    with_driver!(database, driver => {
        Ok(Box::new(Side::new(driver, script, settings, number)?))
    })
}

pub(crate) struct Side<'a, D: Driver> {
    worker: LuaWorker<'a, D>,
}

impl<'a, D: Driver> Side<'a, D> {
    pub(crate) fn new(
        driver: &'a D,
        script: &'a LuaScript,
        settings: &'a ScriptSettings,
        number: u32,
    ) -> Result<Self, LuaError> {
        let common = LuaCommon::of_commands(driver, script, settings);
        let worker = block_on(async {
            let mut worker = LuaWorker::open(&common, number, None::<&mut D::Session>).await?;
            worker.park().await;
            Ok::<_, LuaError>(worker)
        })??;
        Ok(Side::of(worker))
    }

    /// The state of a worker whose connections are closed.
    pub(crate) fn of(worker: LuaWorker<'a, D>) -> Self {
        Side { worker }
    }

    fn execute(
        &mut self,
        name: &'static str,
        argument: &'static str,
    ) -> Result<Option<String>, LuaError> {
        let worker = &mut self.worker;
        block_on(async {
            let ended = worker.finish_step(None::<&mut D::Session>, (name, argument)).await;
            worker.park().await;
            ended
        })?
    }
}

impl<D: Driver> SideState for Side<'_, D> {
    fn step(&mut self, function: &'static str) -> Result<(), LuaError> {
        self.execute(function, "").map(|_| ())
    }

    fn has(&mut self, hook: ReportHook) -> Result<bool, LuaError> {
        Ok(self.execute("has", hook.name())?.is_some())
    }

    fn report(&mut self, hook: ReportHook, stat: &ReportStat) -> Result<(), LuaError> {
        self.worker.set_stat(*stat);
        self.execute("report", hook.name()).map(|_| ())
    }

    fn close(&mut self) -> Result<(), LuaError> {
        self.execute("close", "").map(|_| ())
    }
}
