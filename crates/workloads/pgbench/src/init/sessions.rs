//! Several loading sessions at once.

use super::cancel::unless_canceled;
use super::error::InitError;
use super::observer::InitObserver;
use dyno_core::{DbError, Driver, Session};
use std::num::NonZero;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// Loops of a load: one could keep up with the servers that one knows, two are never the limit on
/// a machine that has the cores.
const LOOPS_MIN: u32 = 2;

/// Tells the sessions of a load that one of them has failed: the others stop at the next chunk.
#[derive(Debug, Default)]
pub(crate) struct Stop(AtomicBool);

impl Stop {
    pub(crate) fn is_wanted(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    fn ask(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Opens `sessions` sessions on several loops and has each do `work`.
///
/// # Errors
/// The first error, by number of session; that the observer wanted the end. `refused` makes one of a failed connection.
pub(crate) fn on_sessions<D: Driver>(
    driver: &D,
    observer: &dyn InitObserver,
    sessions: u32,
    refused: impl Fn(DbError) -> InitError + Sync,
    work: impl AsyncFn(&mut D::Session, &Stop) -> Result<(), InitError> + Sync,
) -> Result<(), InitError> {
    let cores = thread::available_parallelism().map_or(1, NonZero::get);
    let loops = u32::try_from(cores).unwrap_or(u32::MAX).max(LOOPS_MIN);
    let stop = Stop::default();
    let one = async |_| {
        let done = match unless_canceled(observer, driver.connect(0)).await {
            Some(Ok(mut session)) => {
                let done = unless_canceled(observer, work(&mut session, &stop)).await;
                match done {
                    Some(_) => session.close().await,
                    None => session.cancel().await,
                }
                done.unwrap_or(Err(InitError::Canceled { is_stored: false }))
            }
            Some(Err(error)) => Err(refused(error)),
            None => Err(InitError::Canceled { is_stored: false }),
        };
        if done.is_err() {
            stop.ask();
        }
        done
    };
    let results = dyno_reactor::run_spread(sessions, loops, one).map_err(InitError::Loop)?;
    results.into_iter().collect()
}
