//! Set-up work on several sessions at once.

use crate::load::{LoadError, while_doing};
use dyno_core::{Driver, Session};

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
    let loops = if driver.blocks() { sessions } else { 1 };
    let one = async |number| one_session(driver, number, &work).await;
    let results = dyno_reactor::run_spread(sessions, loops, one).map_err(LoadError::Loop)?;
    results.into_iter().collect()
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
