//! Set-up work on several sessions at once.

use crate::load::{LoadError, while_doing};
use dyno_core::{Driver, Session};
use std::panic::resume_unwind;
use std::thread;

/// Opens `sessions` sessions and has each do `work`. Network sessions share one loop, because
/// making rows takes a fraction of what a server needs to store them; sessions that block get a
/// thread each.
///
/// # Errors
/// The first error, by number of session.
pub(crate) fn on_sessions<D: Driver>(
    driver: &D,
    sessions: u32,
    work: impl AsyncFn(&mut D::Session) -> Result<(), LoadError> + Sync,
) -> Result<(), LoadError> {
    let loops = if driver.blocks() { sessions } else { sessions.min(1) };
    let work = &work;
    let results = thread::scope(|scope| {
        let threads: Vec<_> = (0..loops)
            .map(|first| {
                let numbers = (first..sessions).step_by(loops as usize);
                scope.spawn(move || {
                    dyno_reactor::run_all(numbers.map(|number| one_session(driver, number, work)))
                })
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

async fn one_session<D: Driver>(
    driver: &D,
    number: u32,
    work: &impl AsyncFn(&mut D::Session) -> Result<(), LoadError>,
) -> Result<(), LoadError> {
    let mut session =
        driver.connect(number).await.map_err(while_doing("connecting to the database"))?;
    let result = work(&mut session).await;
    session.close().await;
    result
}
