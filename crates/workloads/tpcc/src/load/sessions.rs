//! Several loading sessions at once.

use super::error::{LoadError, while_doing};
use dyno_core::{Driver, Session};
use std::num::NonZero;
use std::panic::resume_unwind;
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
/// The first error, by number of loop.
pub(crate) fn on_sessions<D: Driver>(
    driver: &D,
    sessions: u32,
    work: impl AsyncFn(&mut D::Session, &Stop) -> Result<(), LoadError> + Sync,
) -> Result<(), LoadError> {
    let cores = thread::available_parallelism().map_or(1, NonZero::get);
    let loops = if driver.blocks() { sessions as usize } else { cores.min(sessions as usize) };
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
    let one = &one;
    let results = thread::scope(|scope| {
        let threads: Vec<_> = (0..loops)
            .map(|first| {
                let mine = (first as u32..sessions).step_by(loops);
                scope.spawn(move || dyno_reactor::run_all(mine.map(one)))
            })
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|panic| resume_unwind(panic)))
            .collect::<Vec<_>>()
    });
    for result in results {
        result.map_err(LoadError::Loop)?.into_iter().collect::<Result<(), _>>()?;
    }
    Ok(())
}
