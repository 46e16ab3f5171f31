//! Several sessions at once, for set-up work.

use crate::run_spread;
use dyno_core::{DbError, Driver, Session};
use std::io;
use std::num::NonZero;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// Tells sessions that work together that one of them has failed: the others stop at their next
/// piece.
#[derive(Debug, Default)]
pub struct Stop(AtomicBool);

impl Stop {
    /// True once a session has failed.
    pub fn is_wanted(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Opens `sessions` sessions, spread over a loop per core (sessions that block have a loop each), and
/// has each do `work`. `refused` makes an error of a failed connection. Must not be called within
/// an event loop.
///
/// # Errors
/// When the kernel grants no epoll descriptor; within it the first error of the sessions, by number.
pub fn on_sessions<D: Driver, E: Send>(
    driver: &D,
    sessions: u32,
    refused: impl Fn(DbError) -> E + Sync,
    work: impl AsyncFn(&mut D::Session, &Stop) -> Result<(), E> + Sync,
) -> io::Result<Result<(), E>> {
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
            Err(error) => Err(refused(error)),
        };
        if done.is_err() {
            stop.0.store(true, Ordering::Relaxed);
        }
        done
    };
    Ok(run_spread(sessions, loops, one)?.into_iter().collect())
}
