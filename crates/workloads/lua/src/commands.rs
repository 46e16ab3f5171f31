//! What a script does outside of its events: its commands, `init` and `done`.

use crate::machine::LuaError;
use crate::script::{LuaScript, ScriptSettings};
use crate::worker::{LuaCommon, LuaWorker};
use dyno_core::Driver;
use dyno_drivers::{Database, with_driver};
use dyno_reactor::{block_on, run_all};

/// How a command is executed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CommandKind {
    /// `run`: events, by [`crate::drive`].
    Run,
    /// A function that the script has put among its commands, once.
    Once,
    /// A global function of the script with the command's name, once.
    Global,
    /// A function of the script, in each worker.
    Parallel,
    /// `help` of a script that only declares options.
    PrintOptions,
}

/// Finds out how the script executes this command, by executing its top level.
///
/// # Errors
/// What the script's top level or the options' values have wrong, or that there is no such command.
pub fn look(
    database: &Database,
    script: &LuaScript,
    settings: &ScriptSettings,
    command: &str,
) -> Result<CommandKind, LuaError> {
    let word = with_driver!(database, driver => {
        in_own_state(driver, script, settings, "look", command)
    })?;
    Ok(kind_of(word.as_deref()).unwrap_or(CommandKind::Once))
}

/// How the script executes a command of its own; `None` where it has none of this name.
pub(crate) fn kind_on<D: Driver>(
    driver: &D,
    script: &LuaScript,
    settings: &ScriptSettings,
    command: &str,
) -> Result<Option<CommandKind>, LuaError> {
    Ok(kind_of(in_own_state(driver, script, settings, "implements", command)?.as_deref()))
}

fn kind_of(word: Option<&str>) -> Option<CommandKind> {
    Some(match word? {
        "run" => CommandKind::Run,
        "parallel" => CommandKind::Parallel,
        "global" => CommandKind::Global,
        "options" => CommandKind::PrintOptions,
        _ => CommandKind::Once,
    })
}

/// Executes a function of the script once: `command`, `options`, or `top` (nothing beyond its top level), each in a state of its own.
///
/// # Errors
/// The script's own.
pub fn once(
    database: &Database,
    script: &LuaScript,
    settings: &ScriptSettings,
    step: &'static str,
    command: &str,
) -> Result<(), LuaError> {
    with_driver!(database, driver => once_on(driver, script, settings, step, command))
}

pub(crate) fn once_on<D: Driver>(
    driver: &D,
    script: &LuaScript,
    settings: &ScriptSettings,
    step: &'static str,
    command: &str,
) -> Result<(), LuaError> {
    in_own_state(driver, script, settings, step, command).map(|_| ())
}

fn in_own_state<D: Driver>(
    driver: &D,
    script: &LuaScript,
    settings: &ScriptSettings,
    step: &'static str,
    command: &str,
) -> Result<Option<String>, LuaError> {
    let common = LuaCommon::of_commands(driver, script, settings);
    let ended = block_on(in_state(&common, 0, step, command));
    ended.map_err(|error| LuaError::new(error.to_string()))?
}

/// Executes a parallel command in `threads` states.
///
/// # Errors
/// The first error of a worker.
pub fn parallel(
    database: &Database,
    script: &LuaScript,
    settings: &ScriptSettings,
    threads: u32,
    command: &str,
) -> Result<(), LuaError> {
    with_driver!(database, driver => parallel_on(driver, script, settings, threads, command))
}

pub(crate) fn parallel_on<D: Driver>(
    driver: &D,
    script: &LuaScript,
    settings: &ScriptSettings,
    threads: u32,
    command: &str,
) -> Result<(), LuaError> {
    let common = LuaCommon::of_commands(driver, script, settings);
    let states = (0..threads).map(|number| in_state(&common, number, "command", command));
    let ended = run_all(states).map_err(|error| LuaError::new(error.to_string()))?;
    ended.into_iter().collect::<Result<Vec<_>, _>>().map(|_| ())
}

async fn in_state<D: Driver>(
    common: &LuaCommon<'_, D>,
    number: u32,
    step: &'static str,
    command: &str,
) -> Result<Option<String>, LuaError> {
    let mut worker = LuaWorker::open(common, number, None::<&mut D::Session>).await?;
    let texts = worker.finish_step(None::<&mut D::Session>, (step, command)).await?;
    worker.close().await;
    Ok(texts)
}
