//! Exit codes.

use crate::failure::Failure;
use crate::{output, signals};
use std::process::ExitCode;

/// How the drop-ins of sysbench and pgbench end, as their originals say it to scripts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    Done,
    Failed,
    /// sysbench's forced shutdown, or workers that were not ready in time; a client of pgbench that stopped
    /// before the others.
    Aborted,
    /// Ctrl-C or SIGTERM.
    Interrupted,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        ExitCode::from(match exit {
            Exit::Done => 0,
            Exit::Failed => 1,
            Exit::Aborted => 2,
            Exit::Interrupted => signals::exit_code(),
        })
    }
}

/// The exit code of a verb; says why it failed.
pub fn exit_code(done: Result<u8, Failure>) -> ExitCode {
    ExitCode::from(done.unwrap_or_else(|failure| {
        output::error(&failure);
        failure.code
    }))
}
