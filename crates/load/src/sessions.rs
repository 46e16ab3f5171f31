//! The sessions of a load.

use crate::{LoadError, LoadObserver, while_doing};
use dyno_core::{Dialect, Driver, Session};
use dyno_reactor::{block_on, run_spread, unless};
use std::num::NonZero;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

/// Opens the sessions of a load. Nothing of it may be called within an event loop.
pub struct LoadSessions<'a, D> {
    driver: &'a D,
    observer: &'a dyn LoadObserver,
    sessions: u32,
    at_first_node: bool,
}

impl<'a, D: Driver> LoadSessions<'a, D> {
    /// A load by up to `sessions` sessions; by one on SQLite, which has one writer at a time.
    pub fn new(driver: &'a D, observer: &'a dyn LoadObserver, sessions: u32) -> Self {
        let sessions = if driver.dialect() == Dialect::Sqlite { 1 } else { sessions.max(1) };
        LoadSessions { driver, observer, sessions, at_first_node: false }
    }

    /// Opens all sessions with number 0: where several nodes are given, they go to the first.
    #[must_use]
    pub fn at_first_node(self) -> Self {
        LoadSessions { at_first_node: true, ..self }
    }

    /// Does `work` on one session.
    pub fn one<T>(
        &self,
        work: impl AsyncFnOnce(&mut D::Session) -> Result<T, LoadError>,
    ) -> Result<T, LoadError> {
        block_on(self.session(0, work)).map_err(LoadError::Loop)?
    }

    /// Has each piece done by the next session that is free. Sessions are spread over a loop per core (sessions
    /// that block have a loop each), and begin with `set_up`. After the first error no session begins another piece.
    ///
    /// # Errors
    /// The first of the sessions, by number; see [`LoadSessions::one`].
    pub fn each<P: Sync, C>(
        &self,
        pieces: &[P],
        set_up: impl AsyncFn(&mut D::Session) -> Result<C, LoadError> + Sync,
        work: impl AsyncFn(&mut D::Session, &C, &P) -> Result<(), LoadError> + Sync,
    ) -> Result<(), LoadError> {
        let sessions = u32::try_from(pieces.len()).map_or(self.sessions, |n| n.min(self.sessions));
        let cores = thread::available_parallelism().map_or(1, NonZero::get);
        let loops = if self.driver.blocks() { sessions } else { cores as u32 };
        let (next, has_failed) = (AtomicUsize::new(0), AtomicBool::new(false));
        let turns = async |session: &mut D::Session| {
            let context = set_up(session).await?;
            while !has_failed.load(Ordering::Relaxed)
                && let Some(piece) = pieces.get(next.fetch_add(1, Ordering::Relaxed))
            {
                work(session, &context, piece).await?;
            }
            Ok(())
        };
        let one = async |number: u32| {
            let done = self.session(number, &turns).await;
            has_failed.fetch_or(done.is_err(), Ordering::Relaxed);
            done
        };
        run_spread(sessions, loops, one).map_err(LoadError::Loop)?.into_iter().collect()
    }

    async fn session<T>(
        &self,
        number: u32,
        work: impl AsyncFnOnce(&mut D::Session) -> Result<T, LoadError>,
    ) -> Result<T, LoadError> {
        let is_over = || self.observer.is_canceled();
        let canceled = || LoadError::Canceled { hint: None };
        let number = if self.at_first_node { 0 } else { number };
        let connected = unless(is_over, self.driver.connect(number)).await.ok_or_else(canceled)?;
        let mut session = connected.map_err(while_doing("connecting to the database"))?;
        match unless(is_over, work(&mut session)).await {
            Some(done) => {
                session.close().await;
                done
            }
            None => {
                session.cancel().await;
                Err(canceled())
            }
        }
    }
}
