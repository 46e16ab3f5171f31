//! Users' own sysbench scripts, executed by LuaJIT.
//!
//! Each worker has a Lua state in which the functions of its script are executed, in one coroutine: what has to wait
//! for a database yields a request to the worker's task on dyno's loop, and the answer resumes it. The interface of
//! sysbench 1.0.20 is in `prelude.lua`, `options.lua`, `modules.lua`, `legacy.lua` and `reports.lua`.
//!
//! - [`LuaScript`], [`ScriptSettings`]: a file, and what its states are given.
//! - [`look`], [`once`], [`parallel`]: commands.
//! - [`drive()`][drive]: `run`; [`side_state`] for what it does alongside its events.
//! - [`FAMILY`]: scripts in suites.
//!
//! The folder's README says what is supported, and every deviation.

/// The driver of `--mysql-dry-run`.
static DRY: dyno_drivers::dry::DryDriver =
    dyno_drivers::dry::DryDriver { dialect: dyno_core::Dialect::Mysql, blocks: true };

/// Evaluates an expression with the driver that a script's calls go to.
macro_rules! with_script_driver {
    ($database:expr, $settings:expr, $driver:ident => $body:expr) => {
        if $settings.is_dry {
            let $driver = &crate::DRY;
            $body
        } else {
            dyno_drivers::with_driver!($database, $driver => $body)
        }
    };
}

mod commands;
mod connections;
mod family;
mod machine;
mod prepared;
mod random;
mod raw;
mod script;
mod sql;
mod watch;
mod worker;
mod workload;

pub use commands::{CommandError, CommandKind, CommandOutcome, begin, parallel};
pub use family::{FAMILY, OFFER, PAPER};
pub use machine::LuaError;
pub use script::{
    INSTALLED, LuaScript, OptionValue, RANDOM_OPTIONS, STANDARD_INPUT, ScriptSettings, module_file,
};
pub use watch::ReportStat;
pub use worker::{SideState, side_state};
pub use workload::{LateError, drive};
