//! Commands of the shell that a suite names: they empty a server's caches or restore its data.

use crate::failure::{Failure, sentence};
use dyno_core::{DbError, Driver, SECOND, Session};
use dyno_engine::Control;
use dyno_reactor::{Output, now, shell, sleep_until, timeout};
use std::ffi::OsString;
use std::pin::pin;

/// How often a stop is looked for while something else is waited for.
const LOOK_EVERY: u64 = SECOND / 10;
/// How long a server may take to come back after a command.
const BACK_WITHIN: u64 = 120 * SECOND;

/// A command and how messages call it.
pub(super) struct Command<'a> {
    /// Told to the command as `DYNO_TARGET`.
    pub(super) target: &'a str,
    /// What is executed by `sh -c`.
    pub(super) text: &'a str,
    /// Such as `empties the caches`.
    pub(super) does: &'a str,
    /// The suite's key.
    pub(super) key: &'a str,
}

/// How long a command took, in seconds from its begin.
pub(super) struct Took {
    /// Until it had ended.
    pub(super) ended_s: f64,
    /// Until the server could be reached again.
    pub(super) back_s: f64,
}

/// Runs the command and waits until the server answers; `None` when the user has stopped it.
///
/// # Errors
/// A command that fails, a server that does not come back.
pub(super) async fn run<D: Driver>(
    driver: &D,
    command: &Command<'_>,
    control: &Control,
) -> Result<Option<Took>, Failure> {
    let Command { target, text, does, key } = command;
    let began = now();
    // Standard output belongs to dyno's data; a server that the command starts may keep it open.
    // A stored plan may come from anywhere: its names are no part of what the shell executes.
    let target = target.replace('\'', "'\\''");
    let script = OsString::from(format!("export DYNO_TARGET='{target}'; exec 1>&2\n{text}"));
    let running = shell(&script, Output::Inherited);
    let Some(ended) = unless_stopped(running, control).await else { return Ok(None) };
    let ended = ended
        .map_err(|error| Failure::new(format!("The command that {does} can't be run: {error}.")))?;
    if !ended.status.success() {
        let message = format!("The command that {does} failed: {}.", ended.status);
        return Err(Failure::new(message).with_hint(format!(
            "`{key}` is run by sh -c; what it says stands above. DYNO_TARGET holds the name of the \
             target."
        )));
    }
    let seconds = || (now() - began) as f64 / 1e9;
    let ended_s = seconds();
    let Some(error) = back(driver, control).await else {
        return Ok((!control.is_stopped()).then(|| Took { ended_s, back_s: seconds() }));
    };
    let failure = Failure::new(format!(
        "The server was not back {} s after the command that {does}: {}",
        BACK_WITHIN / SECOND,
        sentence(&error.to_string())
    ));
    Err(failure.with_hint(format!("`{key}` must end with a server that answers.")))
}

/// What `work` gives; `None` when the user has stopped it.
pub(super) async fn unless_stopped<T>(
    work: impl Future<Output = T>,
    control: &Control,
) -> Option<T> {
    let mut work = pin!(work);
    loop {
        match timeout(now() + LOOK_EVERY, work.as_mut()).await {
            Ok(done) => return Some(done),
            Err(_) if control.is_stopped() => return None,
            Err(_) => {}
        }
    }
}

/// Waits until the server can be reached; why it can't, when that takes too long.
async fn back<D: Driver>(driver: &D, control: &Control) -> Option<DbError> {
    let until = now() + BACK_WITHIN;
    loop {
        match driver.connect(0).await {
            Ok(session) => {
                session.close().await;
                return None;
            }
            Err(_) if control.is_stopped() => return None,
            Err(error) if now() >= until => return Some(error),
            Err(_) => sleep_until(now() + LOOK_EVERY).await,
        }
    }
}
