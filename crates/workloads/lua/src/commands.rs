//! What a script does outside of its events: its commands, `init` and `done`.

use crate::machine::LuaError;
use crate::script::{LuaScript, ScriptSettings};
use crate::worker::{LuaCommon, LuaWorker};
use dyno_core::Driver;
use dyno_drivers::{Database, with_driver};
use dyno_engine::ErrorPolicy;
use dyno_reactor::{block_on, run_all};

/// How a command is executed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CommandKind {
    /// `run`: events, by [`crate::drive`]. Hooks of the script that are not called, with commas.
    Run { ignored_hooks: String },
    /// A function of the script, once.
    Once,
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
    let (first, second) = on_main_state(database, script, settings, "look", command)?;
    Ok(match first.as_deref() {
        Some("run") => CommandKind::Run { ignored_hooks: second.unwrap_or_default() },
        Some("parallel") => CommandKind::Parallel,
        Some("options") => CommandKind::PrintOptions,
        _ => CommandKind::Once,
    })
}

/// Executes a function of the script once: `command`, `options`, `init` or `done`, each in a state of its own.
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
    on_main_state(database, script, settings, step, command).map(|_| ())
}

type Texts = (Option<String>, Option<String>);

fn on_main_state(
    database: &Database,
    script: &LuaScript,
    settings: &ScriptSettings,
    step: &'static str,
    command: &str,
) -> Result<Texts, LuaError> {
    let policy = ErrorPolicy::resilient();
    with_driver!(database, driver => {
        let common = LuaCommon::new(driver, script, settings, &policy);
        waited(block_on(in_state(&common, 0, step, command)))
    })
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
    let policy = ErrorPolicy::resilient();
    with_driver!(database, driver => {
        let common = LuaCommon::new(driver, script, settings, &policy);
        let states = (0..threads).map(|number| in_state(&common, number, "command", command));
        let ended = run_all(states).map_err(|error| LuaError::new(error.to_string()))?;
        ended.into_iter().collect::<Result<Vec<_>, _>>().map(|_| ())
    })
}

fn waited<T>(ended: std::io::Result<Result<T, LuaError>>) -> Result<T, LuaError> {
    ended.map_err(|error| LuaError::new(error.to_string()))?
}

async fn in_state<D: Driver>(
    common: &LuaCommon<'_, D>,
    number: u32,
    step: &'static str,
    command: &str,
) -> Result<Texts, LuaError> {
    let mut worker = LuaWorker::open(common, number, None::<&mut D::Session>).await?;
    let texts = worker.finish_step(None::<&mut D::Session>, (step, command)).await?;
    worker.close().await;
    Ok(texts)
}
