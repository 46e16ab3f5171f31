//! The sessions of a load.

use crate::activity::{Activity, noted};
use crate::{LoadError, LoadObserver, NodeSight, doing, stall, while_doing};
use dyno_core::{Dialect, Driver, Nanos, SECOND, Session};
use dyno_reactor::{block_on, now, run_spread, timeout, unless};
use std::num::NonZero;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

/// How long a server may take to note that a statement is canceled: one that hangs never does.
const CANCEL_WITHIN: Nanos = 2 * SECOND;
/// How long after the loss of a connection the process behind it may still be seen.
const DIES_WITHIN: Duration = Duration::from_secs(1);

/// Opens the sessions of a load. Nothing of it may be called within an event loop.
pub struct LoadSessions<'a, D> {
    driver: &'a D,
    observer: &'a dyn LoadObserver,
    sessions: u32,
    at_first_node: bool,
    activity: Arc<Activity>,
    is_watched: AtomicBool,
}

impl<'a, D: Driver> LoadSessions<'a, D> {
    /// A load by up to `sessions` sessions; by one on SQLite, which has one writer at a time.
    pub fn new(driver: &'a D, observer: &'a dyn LoadObserver, sessions: u32) -> Self {
        let sessions = if driver.dialect() == Dialect::Sqlite { 1 } else { sessions.max(1) };
        LoadSessions {
            driver,
            observer,
            sessions,
            at_first_node: false,
            activity: Arc::default(),
            is_watched: AtomicBool::new(false),
        }
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
        self.watched(|| block_on(self.session(0, work)).map_err(LoadError::Loop)?)
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
        self.watched(|| {
            run_spread(sessions, loops, one).map_err(LoadError::Loop)?.into_iter().collect()
        })
    }

    /// Does `load` while a thread watches its progress, unless one does already.
    fn watched<T>(&self, load: impl FnOnce() -> Result<T, LoadError>) -> Result<T, LoadError> {
        if self.is_watched.swap(true, Ordering::Relaxed) {
            return load();
        }
        self.activity.moved();
        let done = thread::scope(|scope| {
            let (_alive, ended) = mpsc::channel();
            scope.spawn(move || stall::watch(self.driver, self.observer, &self.activity, &ended));
            load()
        });
        self.is_watched.store(false, Ordering::Relaxed);
        done.map_err(|error| self.explained(error))
    }

    /// Names the node whose end is behind a failure, where that can be seen.
    fn explained(&self, error: LoadError) -> LoadError {
        let Some(db_error) = error.db_error() else { return error };
        let began = Instant::now();
        let is_lost = db_error.is_fatal() || db_error.is_connect();
        loop {
            if let Some(NodeSight { name, evidence, .. }) = self.observer.dead_node() {
                let problem = format!("{name} {evidence}");
                return LoadError::Node { problem, hint: stall::REMEDY.to_owned() };
            }
            if !is_lost || self.observer.is_canceled() || began.elapsed() >= DIES_WITHIN {
                return error;
            }
            thread::sleep(DIES_WITHIN / 20);
        }
    }

    async fn session<T>(
        &self,
        number: u32,
        work: impl AsyncFnOnce(&mut D::Session) -> Result<T, LoadError>,
    ) -> Result<T, LoadError> {
        let place = if self.at_first_node { 0 } else { number };
        let connecting = async {
            doing("connecting");
            self.driver.connect(place).await
        };
        let connecting = noted(&self.activity, number, connecting);
        let done = match unless(|| self.is_over(), connecting).await {
            None => Err(self.ending()),
            Some(Err(error)) => Err(while_doing("connecting to the database")(error)),
            Some(Ok(mut session)) => {
                self.activity.opened(number, &session);
                match unless(|| self.is_over(), noted(&self.activity, number, work(&mut session)))
                    .await
                {
                    Some(done) => {
                        // A server that hangs takes no good-bye either.
                        unless(|| self.is_over(), session.close()).await;
                        // A statement that was interrupted has failed.
                        done.map_err(|error| if self.is_over() { self.ending() } else { error })
                    }
                    None => {
                        let _ = timeout(now() + CANCEL_WITHIN, session.cancel()).await;
                        Err(self.ending())
                    }
                }
            }
        };
        self.activity.left(number);
        done
    }

    fn is_over(&self) -> bool {
        self.observer.is_canceled() || self.activity.verdict.get().is_some()
    }

    /// Why sessions end before their work is done.
    fn ending(&self) -> LoadError {
        match self.activity.verdict.get() {
            Some((problem, hint)) => {
                LoadError::Node { problem: problem.clone(), hint: hint.clone() }
            }
            None => LoadError::Canceled { hint: None },
        }
    }
}
