//! Functions of a script outside of its events: its commands, `init` and `done`.

use crate::machine::LuaError;
use crate::script::{LuaScript, ScriptSettings};
use crate::worker::{LuaCommon, LuaWorker};
use crate::worker::{Side, SideState};
use dyno_core::Driver;
use dyno_drivers::{Database, with_driver};
use dyno_reactor::{block_on, run_spread};

/// Execution of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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

/// The rest of a command when the script's top level has been executed.
pub enum CommandOutcome<'a> {
    /// Nothing: its function has ended; without such a command, the script has.
    Done,
    /// Events, by [`crate::drive`]; the state is that of `init` and `done`.
    Run(Box<dyn SideState + 'a>),
    /// A function in each worker, by [`parallel`].
    Parallel,
}

/// The failed function: the script's top level without a `kind`, else the function of the command.
#[derive(Debug)]
pub struct CommandError {
    pub kind: Option<CommandKind>,
    pub error: LuaError,
}

impl From<LuaError> for CommandError {
    fn from(error: LuaError) -> Self {
        CommandError { kind: None, error }
    }
}

/// Executes the script's top level and, as the original does in the same state, what `settings.command` is, unless that
/// needs workers. If it `is_own`, a command is one of the script's own.
///
/// # Errors
/// The script's own, what the options' values have wrong, or that the command is unknown.
pub fn begin<'a>(
    database: &'a Database,
    script: &'a LuaScript,
    settings: &'a ScriptSettings,
    is_own: bool,
) -> Result<CommandOutcome<'a>, CommandError> {
    let step = match settings.command {
        None => "top",
        Some(_) if is_own => "implements",
        Some(_) => "look",
    };
    with_script_driver!(database, settings, driver => {
        begin_on(driver, script, settings, step)
    })
}

fn begin_on<'a, D: Driver>(
    driver: &'a D,
    script: &'a LuaScript,
    settings: &'a ScriptSettings,
    step: &'static str,
) -> Result<CommandOutcome<'a>, CommandError> {
    let common = LuaCommon::for_commands(driver, script, settings);
    let command = settings.command.as_deref().unwrap_or_default();
    let ended = block_on(async {
        let mut worker = LuaWorker::open(&common, 0, None::<&mut D::Session>).await?;
        let word = worker.finish_step(None::<&mut D::Session>, (step, command)).await?;
        let kind = parse_kind(word.as_deref());
        let function = match kind {
            Some(CommandKind::Run) => {
                worker.connections.park().await;
                return Ok(CommandOutcome::Run(Box::new(Side::from_worker(worker))));
            }
            Some(CommandKind::Once | CommandKind::Global) => Some("command"),
            Some(CommandKind::PrintOptions) => Some("options"),
            Some(CommandKind::Parallel) | None => None,
        };
        if let Some(function) = function {
            let result = worker.finish_step(None::<&mut D::Session>, (function, command)).await;
            result.map_err(|error| CommandError { kind, error })?;
        }
        worker.connections.close().await;
        Ok(match kind {
            Some(CommandKind::Parallel) => CommandOutcome::Parallel,
            _ => CommandOutcome::Done,
        })
    });
    ended.map_err(LuaError::from)?
}

/// The first of these commands that the script does not have. Without any, not even its top level is executed.
pub(crate) fn missing_command(
    database: &Database,
    script: &LuaScript,
    settings: &ScriptSettings,
    commands: &[String],
) -> Result<Option<String>, LuaError> {
    with_driver!(database, driver => missing_on(driver, script, settings, commands))
}

fn missing_on<D: Driver>(
    driver: &D,
    script: &LuaScript,
    settings: &ScriptSettings,
    commands: &[String],
) -> Result<Option<String>, LuaError> {
    if commands.is_empty() {
        return Ok(None);
    }
    let common = LuaCommon::for_commands(driver, script, settings);
    block_on(async {
        let mut worker = LuaWorker::open(&common, 0, None::<&mut D::Session>).await?;
        let mut missing = None;
        for name in commands {
            let step = ("implements", name.as_str());
            if worker.finish_step(None::<&mut D::Session>, step).await?.is_none() {
                missing = Some(name.clone());
                break;
            }
        }
        worker.connections.close().await;
        Ok(missing)
    })?
}

fn parse_kind(word: Option<&str>) -> Option<CommandKind> {
    Some(match word? {
        "run" => CommandKind::Run,
        "parallel" => CommandKind::Parallel,
        "global" => CommandKind::Global,
        "options" => CommandKind::PrintOptions,
        _ => CommandKind::Once,
    })
}

/// Executes a parallel command in `threads` states at once, each on a thread with its own connections as in the
/// original: a state that blocks holds up no other one. `report` gets each error when it happens.
///
/// # Errors
/// The error of the first state that has one, or the system's refusal of the threads.
pub fn parallel(
    database: &Database,
    script: &LuaScript,
    settings: &ScriptSettings,
    threads: u32,
    command: &str,
    report: &(dyn Fn(&LuaError) + Sync),
) -> Result<(), LuaError> {
    with_script_driver!(database, settings, driver => {
        parallel_on(driver, script, settings, threads, command, report)
    })
}

fn parallel_on<D: Driver>(
    driver: &D,
    script: &LuaScript,
    settings: &ScriptSettings,
    threads: u32,
    command: &str,
    report: &(dyn Fn(&LuaError) + Sync),
) -> Result<(), LuaError> {
    let common = &LuaCommon::for_commands(driver, script, settings);
    let ended = run_spread(threads, threads, async |number| {
        let command = async {
            let mut worker = LuaWorker::open(common, number, None::<&mut D::Session>).await?;
            worker.finish_step(None::<&mut D::Session>, ("command", command)).await?;
            worker.connections.close().await;
            Ok(())
        };
        command.await.inspect_err(report)
    });
    ended.map_err(LuaError::from).inspect_err(report)?.into_iter().collect()
}
