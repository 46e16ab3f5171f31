//! A Lua state with its connections: executes one function of a script after the other.

use std::sync::{Arc, LazyLock};

use dyno_core::{DbError, Driver, ErrorParts, MILLISECOND, Nanos, Session, Tally};
use dyno_drivers::Database;
use dyno_engine::ErrorPolicy;
use dyno_reactor::{block_in_task, block_on, now, sleep_until};
use mlua::IntoLuaMulti;

use crate::connections::Connections;
use crate::machine::{AGAIN, EVENT, LuaAnswer, LuaError, LuaMachine, LuaStep};
use crate::random::UniqueNumbers;
use crate::raw::{AnswerInPlace, Plain};
use crate::script::{LuaScript, ScriptSettings};
use crate::watch::{ReportStat, Watch};
use crate::workload::EVENT as EVENT_COUNTER;

/// Data that all workers of a script share.
pub(crate) struct LuaCommon<'a, D> {
    pub(crate) driver: &'a D,
    pub(crate) script: &'a LuaScript,
    pub(crate) settings: &'a ScriptSettings,
    /// Errors after which a script's event is restarted.
    pub(crate) policy: &'a ErrorPolicy,
    pub(crate) unique: Arc<UniqueNumbers>,
    /// A worker's first connection is the session of the engine.
    pub(crate) lends: bool,
}

/// The error policy of commands, `init` and `done`.
static COMMAND_POLICY: LazyLock<ErrorPolicy> = LazyLock::new(ErrorPolicy::resilient);

impl<'a, D: Driver> LuaCommon<'a, D> {
    pub(crate) fn new(
        driver: &'a D,
        script: &'a LuaScript,
        settings: &'a ScriptSettings,
        policy: &'a ErrorPolicy,
    ) -> Self {
        let unique = Arc::new(UniqueNumbers::new(settings.seed, 0));
        LuaCommon { driver, script, settings, policy, unique, lends: true }
    }

    /// For what is not an event.
    pub(crate) fn for_commands(
        driver: &'a D,
        script: &'a LuaScript,
        settings: &'a ScriptSettings,
    ) -> Self {
        LuaCommon::new(driver, script, settings, &COMMAND_POLICY)
    }
}

/// Between two attempts to open a lost connection again.
const RECONNECT_PAUSE: Nanos = 10 * MILLISECOND;

/// Events that a `thread_run()` may still begin after it has learned that no more are wanted.
const MAX_EVENTS_AFTER_STOP: u32 = 1000;

/// End of a function of a script.
pub(crate) enum Ended {
    Done(Option<String>),
    /// The worker's last event, which does not count.
    Last,
    /// An event of a `thread_run()`, which continues.
    Stopped,
    /// With an error of a database that is ignored, or with the script's own wish ([`dyno_core::Cause::Again`]).
    Restart(DbError),
    Failed(LuaError),
}

/// One Lua state; the worker of a [`dyno_core::Workload`].
pub(crate) struct LuaWorker<'a, D: Driver> {
    pub(crate) machine: LuaMachine,
    pub(crate) connections: Connections<'a, D>,
    /// The error after which the event begins again.
    pub(crate) has_failed: bool,
    /// Set if an open transaction is rolled back before that.
    pub(crate) rolls_back: bool,
    pub(crate) has_begun: bool,
    /// The script has a `thread_run()`, in which it waits between two events.
    pub(crate) own_loop: OwnLoop,
    /// Begins no further event.
    pub(crate) has_ended: bool,
    /// Ended by an error that nothing ignores.
    pub(crate) has_died: bool,
    /// Statements executed in the event that has ended it, which does not count itself.
    pub(crate) last_work: Tally,
    pub(crate) turns: Turns,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OwnLoop {
    None,
    NotBegun,
    Waits,
}

/// The databases of a worker that computes.
struct InPlace<'w, 'a, D: Driver, S> {
    connections: &'w mut Connections<'a, D>,
    engine: Option<&'w mut S>,
    tally: &'w mut Tally,
    watch: &'w Watch,
}

impl<D: Driver, S: Session> AnswerInPlace for InPlace<'_, '_, D, S> {
    fn answer(&mut self, request: LuaStep) -> LuaAnswer {
        let limit = self.watch.patience_ends();
        let answer = self.connections.answer(self.engine.as_deref_mut(), request, self.tally);
        let error = match block_in_task(answer, limit) {
            Ok(Some(answer)) => return answer,
            Ok(None) => DbError::lost("The answer did not come long after the end of the run."),
            Err(error) => DbError::lost(error.to_string()),
        };
        self.connections.answer_error(error)
    }
}

impl<'a, D: Driver> LuaWorker<'a, D> {
    /// The state of worker `number`, in which the script's top level has been executed.
    pub(crate) async fn open<S: Session>(
        common: &LuaCommon<'a, D>,
        number: u32,
        engine: Option<&mut S>,
    ) -> Result<Self, LuaError> {
        let LuaCommon { script, settings, unique, .. } = common;
        let (machine, chunk) = LuaMachine::new(script, settings, unique, number)?;
        let connections = Connections::new(common, number, &machine);
        let mut worker = LuaWorker {
            machine,
            connections,
            has_failed: false,
            rolls_back: false,
            has_begun: false,
            own_loop: OwnLoop::None,
            has_ended: false,
            has_died: false,
            last_work: Tally::default(),
            turns: Turns::default(),
        };
        worker.finish_step(engine, ("load", chunk)).await?;
        if worker.finish_step(None::<&mut S>, "has_own_loop").await?.is_some() {
            worker.own_loop = OwnLoop::NotBegun;
        }
        Ok(worker)
    }

    /// Hands on what the script has counted.
    #[inline]
    pub(crate) fn count(&self, tally: &mut Tally, is_event: bool, is_error: bool) {
        if is_event {
            self.machine.counters.raise(EVENT_COUNTER);
        }
        tally.is_open = self.connections.is_in_transaction();
        self.machine.counters.hand_over(tally, is_error);
    }

    /// Executes a function of the prelude's `steps` to its end.
    pub(crate) async fn step<S: Session>(
        &mut self,
        mut engine: Option<&mut S>,
        arguments: impl IntoLuaMulti,
        tally: &mut Tally,
    ) -> Ended {
        let lent = engine.as_deref_mut();
        let step = self.compute(lent, tally, |machine| machine.resume(arguments));
        self.finish(engine, step, tally).await
    }

    /// Executes an event to its end, or again one that begins again.
    #[inline]
    pub(crate) async fn event<S: Session>(
        &mut self,
        session: &mut S,
        is_retry: bool,
        tally: &mut Tally,
    ) -> Ended {
        let function = if is_retry { AGAIN } else { EVENT };
        let argument = Plain::Number(function);
        let lent = Some(&mut *session);
        let step = self.compute(lent, tally, |machine| machine.resume_plain(argument));
        self.finish(Some(session), step, tally).await
    }

    /// Continues the script until it yields.
    #[inline]
    fn compute<S: Session>(
        &mut self,
        engine: Option<&mut S>,
        tally: &mut Tally,
        resume: impl FnOnce(&LuaMachine) -> Result<LuaStep, LuaError>,
    ) -> Result<LuaStep, LuaError> {
        let LuaWorker { machine, connections, .. } = self;
        let mut in_place = InPlace { connections, engine, tally, watch: &machine.watch };
        machine.shared.compute(&mut in_place, || resume(machine))
    }

    /// Answers all requests of a function that has begun.
    async fn finish<S: Session>(
        &mut self,
        mut engine: Option<&mut S>,
        mut step: Result<LuaStep, LuaError>,
        tally: &mut Tally,
    ) -> Ended {
        loop {
            step = match step {
                Ok(LuaStep::Done(text)) => return Ended::Done(text),
                Ok(LuaStep::Last) => return Ended::Last,
                Ok(LuaStep::Stopped) => return Ended::Stopped,
                Ok(LuaStep::Restart { is_own: true }) => return Ended::Restart(own_restart()),
                Ok(LuaStep::Restart { is_own: false } | LuaStep::Ignored) => {
                    let failure = self.connections.failure.clone();
                    return Ended::Restart(failure.unwrap_or_else(own_restart));
                }
                Ok(LuaStep::Failed(error)) | Err(error) => {
                    return Ended::Failed(self.with_failure(error));
                }
                Ok(request) => {
                    self.turns.waited();
                    let lent = engine.as_deref_mut();
                    // If this future is dropped here, the script stays within its request for good.
                    self.machine.is_dead.set(true);
                    let answer = self.connections.answer(lent, request, tally).await;
                    self.machine.is_dead.set(false);
                    let lent = engine.as_deref_mut();
                    self.compute(lent, tally, |machine| machine.answer(answer))
                }
            };
        }
    }

    /// Adds the error of a database that the script has handed on.
    fn with_failure(&self, error: LuaError) -> LuaError {
        let failure = self
            .connections
            .failure
            .as_ref()
            .filter(|failure| reports_error(&error.message, failure));
        LuaError { failure: failure.cloned(), ..error }
    }

    /// Executes a function in which no error may happen; returns its text.
    pub(crate) async fn finish_step<S: Session>(
        &mut self,
        engine: Option<&mut S>,
        arguments: impl IntoLuaMulti,
    ) -> Result<Option<String>, LuaError> {
        outside_of_events(self.step(engine, arguments, &mut Tally::default()).await)
    }

    /// Lets a `thread_run()` end that waits for an event or for what is done about an error: there is no more.
    pub(crate) async fn leave_loop<S: Session>(
        &mut self,
        session: &mut S,
        tally: &mut Tally,
    ) -> Result<(), LuaError> {
        for _ in 0..MAX_EVENTS_AFTER_STOP {
            // What ends an event that was to begin again is not an error of the script's.
            let had_failed = self.has_failed;
            match self.step(Some(&mut *session), false, tally).await {
                Ended::Stopped => {}
                Ended::Restart(_) => self.has_failed = true,
                Ended::Failed(error) if !had_failed => return Err(error),
                Ended::Done(_) | Ended::Last | Ended::Failed(_) => return Ok(()),
            }
        }
        Err(LuaError::new("thread_run() continues after sb_more_events() has returned false"))
    }

    /// Brings the state's own sessions out of what a failed event has left, as long as there is time and no outage is
    /// too long.
    pub(crate) async fn recover(&mut self) -> Result<(), DbError> {
        let outage_max = self.connections.policy.outage_max;
        let given_up_at = outage_max.map_or(Nanos::MAX, |limit| now().saturating_add(limit));
        loop {
            match self.connections.recover(self.rolls_back).await {
                Err(error) if self.machine.watch.is_late() || now() >= given_up_at => {
                    return Err(error);
                }
                Err(_) => sleep_until(now() + RECONNECT_PAUSE).await,
                Ok(()) => {
                    // It is dealt with: no later restart has to.
                    self.connections.failure = None;
                    return Ok(());
                }
            }
        }
    }
}

/// The text of a function in which no error may happen.
pub(crate) fn outside_of_events(ended: Ended) -> Result<Option<String>, LuaError> {
    match ended {
        Ended::Done(text) => Ok(text),
        Ended::Failed(error) => Err(error),
        Ended::Last | Ended::Stopped => Ok(None),
        Ended::Restart(error) => {
            Err(LuaError::new(format!("an error outside of event() can't be ignored: {error}")))
        }
    }
}

/// The error by which a script restarts an event, without a failure of a database.
#[cold]
fn own_restart() -> DbError {
    DbError::again("begun again by the script itself: RESTART_EVENT")
}

/// Returns true if a script's error says what a database has answered.
fn reports_error(message: &str, failure: &DbError) -> bool {
    message.contains(" error, errno = ") && message.contains(failure.message())
}

/// A script's error as the engine hands it on: it ends the run.
pub(crate) fn fatal(error: LuaError) -> DbError {
    let LuaError { message, trace, failure, .. } = error;
    let ended = DbError::workload(message);
    let ended = if trace.is_empty() { ended } else { ended.with_context(trace) };
    let Some(failure) = failure else { return ended };
    let ErrorParts { class, errno, sqlstate, statement, .. } = (*failure).clone();
    ErrorParts { class, errno, sqlstate, statement, ..(*ended).clone() }.into()
}

/// A state in which functions of the script are executed one after the other. Its connections are closed after each,
/// and opened again when they are used.
pub trait SideState {
    /// Executes a step of the prelude and returns its text: `init` or `done`, if the script has it; `has`, which has a
    /// text if the script has set this hook; `close`, which ends what reports have begun.
    ///
    /// # Errors
    /// The script's own; standard output is gone.
    fn step(
        &mut self,
        name: &'static str,
        argument: &'static str,
    ) -> Result<Option<String>, LuaError>;

    /// Calls this hook, which the script has set.
    ///
    /// # Errors
    /// The script's own.
    fn report(&mut self, hook: &'static str, stat: &ReportStat) -> Result<(), LuaError>;
}

/// Makes such a state, whose `sysbench.tid` is `number`, and executes the script's top level in it.
///
/// # Errors
/// Errors of the script's top level or of the options' values.
pub fn side_state<'a>(
    database: &'a Database,
    script: &'a LuaScript,
    settings: &'a ScriptSettings,
    number: u32,
) -> Result<Box<dyn SideState + 'a>, LuaError> {
    with_script_driver!(database, settings, driver => {
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
        let common = LuaCommon::for_commands(driver, script, settings);
        let worker = block_on(async {
            let mut worker = LuaWorker::open(&common, number, None::<&mut D::Session>).await?;
            worker.connections.park().await;
            Ok::<_, LuaError>(worker)
        })??;
        Ok(Side::from_worker(worker))
    }

    /// The state of a worker whose connections are closed.
    pub(crate) fn from_worker(worker: LuaWorker<'a, D>) -> Self {
        Side { worker }
    }
}

impl<D: Driver> SideState for Side<'_, D> {
    fn step(
        &mut self,
        name: &'static str,
        argument: &'static str,
    ) -> Result<Option<String>, LuaError> {
        let worker = &mut self.worker;
        block_on(async {
            let ended = worker.finish_step(None::<&mut D::Session>, (name, argument)).await;
            worker.connections.park().await;
            ended
        })?
    }

    fn report(&mut self, hook: &'static str, stat: &ReportStat) -> Result<(), LuaError> {
        self.worker.machine.set_stat(*stat);
        self.step("report", hook).map(drop)
    }
}

/// Time for which it keeps its loop. A turn of the loop costs one or two microseconds.
const TURN: Nanos = MILLISECOND / 20;
/// Most events between two looks at the clock, which cost as much as a tenth of an empty event.
const MAX_EVENTS: u32 = 16;

#[derive(Debug)]
pub(crate) struct Turns {
    /// Events since the worker last waited for something, or looked at the clock.
    events: u32,
    /// Events until it looks again: as many as take half a turn.
    events_max: u32,
    last_check: Nanos,
    /// When others last had their turn.
    last_turn: Nanos,
}

impl Default for Turns {
    fn default() -> Self {
        Turns { events: 0, events_max: MAX_EVENTS, last_check: 0, last_turn: 0 }
    }
}

impl Turns {
    /// Others have had their turn.
    #[inline]
    pub(crate) fn waited(&mut self) {
        (self.events, self.events_max) = (0, MAX_EVENTS);
    }

    /// An event begins: true when the others have waited for this worker for long.
    #[inline]
    pub(crate) fn has_held_up(&mut self, clock: impl FnOnce() -> Nanos) -> bool {
        self.events += 1;
        self.events >= self.events_max && self.check_clock(clock())
    }

    fn check_clock(&mut self, now: Nanos) -> bool {
        let elapsed = now.saturating_sub(self.last_check).max(1);
        let events_max = u64::from(self.events) * (TURN / 2) / elapsed;
        self.events_max = events_max.clamp(1, u64::from(MAX_EVENTS)) as u32;
        (self.events, self.last_check) = (0, now);
        let is_long = now.saturating_sub(self.last_turn) >= TURN;
        if is_long {
            self.last_turn = now;
        }
        is_long
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Looks at the clock and turns in 100 ms of events of this length.
    fn looks_and_turns(event: Nanos) -> (u64, u64) {
        let mut turns = Turns::default();
        let (mut looks, mut held_up) = (0, 0);
        let mut clock = 0;
        while clock < 100 * MILLISECOND {
            clock += event;
            held_up += u64::from(turns.has_held_up(|| {
                looks += 1;
                clock
            }));
        }
        (looks, held_up)
    }

    #[test]
    fn others_have_their_turn_however_long_an_event_is() {
        let (looks, turns) = looks_and_turns(300);
        assert!(looks <= 100_000_000 / 300 / 16 + 1, "{looks}: the clock has its price");
        assert!((1_500..=2_000).contains(&turns), "{turns}");
        // An event of a loop in Lua: 16 of them would be a sixth of a millisecond.
        let (_, turns) = looks_and_turns(MILLISECOND / 100);
        assert!((1_000..=2_000).contains(&turns), "{turns}");
        assert!(looks_and_turns(MILLISECOND).1 >= 80);
    }

    #[test]
    fn a_worker_that_waits_never_looks() {
        let mut turns = Turns::default();
        for _ in 0..100 {
            assert!(!turns.has_held_up(|| unreachable!("no look")));
            turns.waited();
        }
    }
}
