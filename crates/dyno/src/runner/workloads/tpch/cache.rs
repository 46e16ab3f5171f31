//! What the caches hold when a trial begins.

use super::options::Cache;
use crate::failure::{Failure, sentence};
use dyno_core::{DbError, Driver, SECOND, Session};
use dyno_engine::Control;
use dyno_measure::CacheFacts;
use dyno_reactor::{Output, block_on, now, shell, sleep_until, timeout};
use dyno_tpch::warm::warm;
use std::ffi::OsString;
use std::pin::pin;

/// How often a stop is looked for while something else is waited for.
const LOOK_EVERY: u64 = SECOND / 10;
/// How long a server may take to come back after the command that empties its caches.
const BACK_WITHIN: u64 = 120 * SECOND;

/// Brings the caches into the state that is asked for; `None` when the user has stopped it.
///
/// # Errors
/// A command that fails, a server that does not come back, what it answers.
pub(super) fn bring<D: Driver>(
    driver: &D,
    target: &str,
    cache: &Cache,
    control: &Control,
) -> Result<Option<CacheFacts>, Failure> {
    let brought = block_on(async {
        match cache {
            Cache::AsFound => Ok(Some(as_found())),
            Cache::Warm => match unless_stopped(warmed(driver), control).await {
                Some(warmed) => warmed.map(Some).map_err(|error| Failure::from(&error)),
                None => Ok(None),
            },
            Cache::Cold(command) => cooled(driver, target, command, control).await,
        }
    });
    brought.map_err(|error| Failure::new(format!("No event loop: {error}.")))?
}

fn as_found() -> CacheFacts {
    CacheFacts {
        state: "as found".to_owned(),
        evidence: vec!["Nothing was done to the caches before the trial.".to_owned()],
        verdict: None,
    }
}

/// What `work` gives; `None` when the user has stopped it.
async fn unless_stopped<T>(work: impl Future<Output = T>, control: &Control) -> Option<T> {
    let mut work = pin!(work);
    loop {
        match timeout(now() + LOOK_EVERY, work.as_mut()).await {
            Ok(done) => return Some(done),
            Err(_) if control.is_stopped() => return None,
            Err(_) => {}
        }
    }
}

async fn warmed<D: Driver>(driver: &D) -> Result<CacheFacts, DbError> {
    let mut session = driver.connect(0).await?;
    let facts = warm(&mut session).await;
    session.close().await;
    facts
}

async fn cooled<D: Driver>(
    driver: &D,
    target: &str,
    command: &str,
    control: &Control,
) -> Result<Option<CacheFacts>, Failure> {
    let began = now();
    // Standard output belongs to dyno's data; a server that the command starts may keep it open.
    let script = OsString::from(format!("export DYNO_TARGET={target}; exec 1>&2\n{command}"));
    let running = shell(&script, Output::Inherited);
    let Some(ended) = unless_stopped(running, control).await else { return Ok(None) };
    let ended = ended.map_err(|error| {
        Failure::new(format!("The command that empties the caches can't be run: {error}."))
    })?;
    if !ended.status.success() {
        let message = format!("The command that empties the caches failed: {}.", ended.status);
        return Err(Failure::new(message).with_hint(
            "`cold_command` is run by sh -c; what it says stands above. DYNO_TARGET holds the \
             name of the target.",
        ));
    }
    let seconds = (now() - began) as f64 / 1e9;
    let Some(error) = back(driver, control).await else {
        if control.is_stopped() {
            return Ok(None);
        }
        return Ok(Some(CacheFacts {
            state: "cold".to_owned(),
            evidence: vec![format!(
                "`{command}` was run before the trial and succeeded in {seconds:.1} s; the server \
                 was reachable again {:.1} s after its begin.",
                (now() - began) as f64 / 1e9
            )],
            verdict: None,
        }));
    };
    let failure = Failure::new(format!(
        "The server was not back {} s after the command that empties the caches: {}",
        BACK_WITHIN / SECOND,
        sentence(&error.to_string())
    ));
    Err(failure.with_hint("`cold_command` must end with a server that answers."))
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
