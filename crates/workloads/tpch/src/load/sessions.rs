//! Several loading sessions at once.

use super::error::{LoadError, while_doing};
use dyno_core::{Driver, Session};
use std::num::NonZero;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// Tells the sessions of a load that one of them has failed: the others stop at their next piece.
#[derive(Debug, Default)]
pub(crate) struct Stop(AtomicBool);

impl Stop {
    pub(crate) fn is_wanted(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Opens `sessions` sessions, spread over a loop per core, and has each do `work`.
///
/// # Errors
/// The first error, by number of session.
pub(crate) fn on_sessions<D: Driver>(
    driver: &D,
    sessions: u32,
    work: impl AsyncFn(&mut D::Session, &Stop) -> Result<(), LoadError> + Sync,
) -> Result<(), LoadError> {
    let cores = thread::available_parallelism().map_or(1, NonZero::get);
    let loops = if driver.blocks() { sessions } else { u32::try_from(cores).unwrap_or(u32::MAX) };
    let stop = Stop::default();
    let one = async |number: u32| {
        let done = match driver.connect(number).await {
            Ok(mut session) => {
                let done = work(&mut session, &stop).await;
                session.close().await;
                done
            }
            Err(error) => Err(while_doing("connecting to the database")(error)),
        };
        if done.is_err() {
            stop.0.store(true, Ordering::Relaxed);
        }
        done
    };
    let results = dyno_reactor::run_spread(sessions, loops, one).map_err(LoadError::Loop)?;
    results.into_iter().collect()
}
