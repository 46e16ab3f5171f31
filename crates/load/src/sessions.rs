//! The sessions of a load.
//!
//! One piece of a load: stored wholly or not at all.

use crate::settings::ServerNeed;
use crate::watch::{LOST_NODE_REMEDY, in_session};
use crate::{
    Activity, LoadError, LoadErrorKind, LoadObserver, LoadReport, bulk_load, doing,
    fallback_reason, opened, settings, watch, while_doing,
};
use dyno_core::{
    AdminDriver, AdminSession, BulkReport, DbError, Dialect, ErrorClass, Nanos, RowSource, SECOND,
};
use dyno_reactor::{block_on, now, run_spread, timeout, unless};
use std::num::NonZero;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

/// Opens the sessions of a load. Nothing of it may be called within an event loop.
pub struct LoadSessions<'a> {
    driver: AdminDriver<'a>,
    observer: &'a dyn LoadObserver,
    sessions: u32,
    at_first_node: bool,
    needs: Vec<ServerNeed>,
    activity: Arc<Activity>,
    is_watched: AtomicBool,
    has_failed: AtomicBool,
}

impl<'a> LoadSessions<'a> {
    /// A load by up to `sessions` sessions; by one on SQLite, which has one writer at a time.
    pub fn new(driver: &AdminDriver<'a>, observer: &'a dyn LoadObserver, sessions: u32) -> Self {
        let sessions = if driver.dialect() == Dialect::Sqlite { 1 } else { sessions.max(1) };
        LoadSessions {
            driver: *driver,
            observer,
            sessions,
            at_first_node: false,
            needs: Vec::new(),
            activity: Arc::default(),
            is_watched: AtomicBool::new(false),
            has_failed: AtomicBool::new(false),
        }
    }

    /// Opens all sessions with number 0: if several nodes are given, they go to the first.
    #[must_use]
    pub fn at_first_node(self) -> Self {
        LoadSessions { at_first_node: true, ..self }
    }

    /// Refuses a server whose settings take one of these away.
    #[must_use]
    pub fn needing(self, needs: &[ServerNeed]) -> Self {
        LoadSessions { needs: needs.to_vec(), ..self }
    }

    /// Does `work` on one session.
    pub fn one<T>(
        &self,
        work: impl AsyncFnOnce(&mut AdminSession<'_>) -> Result<T, LoadError>,
    ) -> Result<T, LoadError> {
        self.watched(|| {
            block_on(self.run_session(&self.driver, 0, work)).map_err(LoadError::from)?
        })
    }

    /// Has each piece done by the next session that is free. Sessions are spread over a loop per core (sessions
    /// that block have a loop each). After the first error no session begins another piece.
    ///
    /// # Errors
    /// The first of the sessions, by number; see [`LoadSessions::one`].
    pub fn each<P: Sync>(
        &self,
        pieces: &[P],
        work: impl AsyncFn(&mut AdminSession<'_>, &P) -> Result<(), LoadError> + Sync,
    ) -> Result<(), LoadError> {
        let at_once =
            async |session: &mut AdminSession<'_>, (): &(), piece: &P| work(session, piece).await;
        self.each_at(&[(&self.driver, pieces)], async |_| Ok(()), at_once)
    }

    /// [`LoadSessions::each`] for pieces that belong to several places: each is done by a session of its place, which
    /// has begun with `set_up`. The sessions are dealt out to the places by turns, one at least to each that has
    /// pieces.
    ///
    /// # Errors
    /// Like [`LoadSessions::each`].
    pub fn each_at<P: Sync, C>(
        &self,
        places: &[(&AdminDriver<'_>, &[P])],
        set_up: impl AsyncFn(&mut AdminSession<'_>) -> Result<C, LoadError> + Sync,
        work: impl AsyncFn(&mut AdminSession<'_>, &C, &P) -> Result<(), LoadError> + Sync,
    ) -> Result<(), LoadError> {
        let pieces: Vec<usize> = places.iter().map(|(_, pieces)| pieces.len()).collect();
        let seats = seats(self.sessions, &pieces);
        let sessions = seats.len() as u32;
        let cores = thread::available_parallelism().map_or(1, NonZero::get);
        let loops = if self.driver.blocks() { sessions } else { cores as u32 };
        self.has_failed.store(false, Ordering::Relaxed);
        let next: Vec<AtomicUsize> = places.iter().map(|_| AtomicUsize::new(0)).collect();
        let run_seat = async |number: u32| {
            let place = seats[number as usize];
            let (driver, pieces) = places[place];
            let turns = self.run_session(driver, number, async |session: &mut AdminSession<'_>| {
                let context = set_up(session).await?;
                while !self.has_failed()
                    && let Some(piece) = pieces.get(next[place].fetch_add(1, Ordering::Relaxed))
                {
                    // A session that blocks its thread is not asked while it works.
                    if self.is_over() {
                        return Err(self.ending());
                    }
                    work(session, &context, piece).await?;
                }
                Ok(())
            });
            let outcome = turns.await;
            self.has_failed.fetch_or(outcome.is_err(), Ordering::Relaxed);
            outcome
        };
        self.watched(|| {
            run_spread(sessions, loops, run_seat).map_err(LoadError::from)?.into_iter().collect()
        })
    }

    /// Does `load` while a thread watches its progress, unless one does already.
    fn watched<T>(&self, load: impl FnOnce() -> Result<T, LoadError>) -> Result<T, LoadError> {
        if self.is_watched.swap(true, Ordering::Relaxed) {
            return load();
        }
        let outcome = watch::watched(
            &self.activity,
            self.observer,
            || watch::look_at_all(&self.driver, self.observer),
            load,
        );
        self.is_watched.store(false, Ordering::Relaxed);
        outcome.map_err(|error| self.explained(error))
    }

    /// Names the node whose end is behind a failure, if that can be seen.
    fn explained(&self, error: LoadError) -> LoadError {
        let Some(db_error) = &error.error else { return error };
        let is_lost =
            self.observer.watches_nodes() && (db_error.is_fatal() || db_error.is_connect());
        let loss = watch::await_loss(
            || self.observer.lost_node(),
            || is_lost && !self.observer.is_canceled(),
        );
        let Some(node) = loss else { return error };
        lost_node_error(format!("{} {}", node.name, node.evidence))
    }

    /// Does `work` on a new session; ends it early once [`LoadSessions::is_over`].
    async fn run_session<T>(
        &self,
        driver: &AdminDriver<'_>,
        number: u32,
        work: impl AsyncFnOnce(&mut AdminSession<'_>) -> Result<T, LoadError>,
    ) -> Result<T, LoadError> {
        let place = if self.at_first_node { 0 } else { number };
        let connecting = async {
            doing("connecting");
            let connected = driver.connect(place).await;
            let mut session = connected.map_err(while_doing("connecting to the database"))?;
            doing("setting up the session");
            let adopted = settings::adopt(&mut session).await;
            adopted.map_err(while_doing("setting up the session"))?.check(&self.needs)?;
            Ok(session)
        };
        let connecting = in_session(&self.activity, number, connecting);
        let outcome = match unless(|| self.is_over(), connecting).await {
            None => Err(self.ending()),
            Some(Err(error)) => Err(error),
            Some(Ok(mut session)) => {
                let working = async {
                    opened(&session);
                    doing("waiting for an answer");
                    work(&mut session).await
                };
                match unless(|| self.is_over(), in_session(&self.activity, number, working)).await {
                    Some(outcome) => {
                        // A server that hangs takes no good-bye either.
                        unless(|| self.is_over(), session.close()).await;
                        // A statement that was interrupted has failed.
                        outcome.map_err(|error| if self.is_over() { self.ending() } else { error })
                    }
                    None => {
                        cancel(session).await;
                        Err(self.ending())
                    }
                }
            }
        };
        self.activity.remove_session(number);
        outcome
    }

    /// Returns true if a session of the present [`LoadSessions::each`] has failed, so that the others end after what
    /// they are doing.
    pub fn has_failed(&self) -> bool {
        self.has_failed.load(Ordering::Relaxed)
    }

    fn is_over(&self) -> bool {
        self.observer.is_canceled() || self.activity.verdict().is_some()
    }

    /// The reason for sessions to end before their work is done.
    fn ending(&self) -> LoadError {
        match self.activity.verdict() {
            Some(node) => lost_node_error(node.problem.clone()),
            None => LoadError::new(LoadErrorKind::Canceled, "canceled", None),
        }
    }
}

fn lost_node_error(problem: String) -> LoadError {
    LoadError::new(LoadErrorKind::Node, problem, Some(LOST_NODE_REMEDY.to_owned()))
}

/// Ends a session whose statement is not waited for any more.
pub async fn cancel(session: AdminSession<'_>) {
    // A server that hangs never notes that a statement is canceled.
    const WITHIN: Nanos = SECOND;
    let _ = timeout(now() + WITHIN, session.cancel()).await;
}

/// The place of each of the `sessions` sessions, which are dealt out by turns: each place with pieces has one, and none
/// has more of them than pieces.
fn seats(sessions: u32, pieces: &[usize]) -> Vec<usize> {
    let max_pieces = pieces.iter().copied().max().unwrap_or(0);
    let slots =
        (0..max_pieces).flat_map(|round| (0..pieces.len()).map(move |place| (round, place)));
    let filled = slots.filter(|&(round, place)| round < pieces[place]);
    let first = pieces.iter().filter(|pieces| **pieces > 0).count();
    filled.take(first.max(sessions as usize)).map(|(_, place)| place).collect()
}

/// Attempts at a piece that other sessions' locks get in the way of.
const ATTEMPTS: u32 = 5;

/// Returns true if locks of other sessions were in the way: the same work may succeed.
pub fn is_conflict(error: &DbError) -> bool {
    use ErrorClass::{Deadlock, LockTimeout, Serialization};
    matches!(error.class(), Deadlock | LockTimeout | Serialization)
}

/// Does `work`, again from its begin where locks of other sessions are in the way, five times at most.
///
/// # Errors
/// The errors of `work`, and of the rollback between two attempts.
pub async fn retrying<T>(
    session: &mut AdminSession<'_>,
    mut work: impl AsyncFnMut(&mut AdminSession<'_>) -> Result<T, LoadError>,
) -> Result<T, LoadError> {
    for _ in 1..ATTEMPTS {
        match work(session).await {
            Err(error) if error.is_conflict() => {
                let undoing = while_doing("undoing a piece that met a lock");
                session.rollback().await.map_err(undoing)?;
            }
            done => return done,
        }
    }
    work(session).await
}

/// Stores a piece of `sent` rows by a bulk load, again where locks of other sessions are in the way.
pub async fn store(
    session: &mut AdminSession<'_>,
    what: &str,
    (table, columns): (&str, &[&str]),
    rows: &mut dyn RowSource,
    sent: u64,
) -> Result<BulkReport, LoadError> {
    let report = retrying(session, async |session| {
        rows.restart();
        bulk_load(session, what, table, columns, rows).await
    })
    .await?;
    all_taken(table, report.rows, sent)?;
    Ok(report)
}

/// An error when a table did not take all rows of a load.
pub fn all_taken(table: &str, taken: u64, sent: u64) -> Result<(), LoadError> {
    if taken == sent {
        Ok(())
    } else {
        Err(LoadError::data(
            format!("table {table} took {taken} of {sent} rows of a load"),
            "look for triggers and rules on the table",
        ))
    }
}

/// Counts the rows that the sessions of a load have stored, and keeps the first report.
pub struct StoredRows<'a> {
    observer: &'a dyn LoadObserver,
    rows: AtomicU64,
    first_report: Mutex<Option<BulkReport>>,
}

impl<'a> StoredRows<'a> {
    pub fn new(observer: &'a dyn LoadObserver) -> Self {
        StoredRows { observer, rows: AtomicU64::new(0), first_report: Mutex::new(None) }
    }

    /// Counts the rows of a piece, which are committed. The reason of the first piece for a slower method is noted.
    pub fn add(&self, report: BulkReport) {
        let rows = report.rows;
        self.rows.fetch_add(rows, Ordering::Relaxed);
        let mut first_report = self.first_report.lock().unwrap_or_else(PoisonError::into_inner);
        if first_report.is_none() {
            if let Some(fallback) = &report.fallback {
                self.observer.note(&fallback_reason(fallback).to_string());
            }
            *first_report = Some(report);
        }
        drop(first_report);
        self.observer.rows_done(rows);
    }

    /// All in all, where an earlier load had stored `rows_found` rows.
    pub fn report(self, rows_found: u64) -> LoadReport {
        let first_report = self.first_report.into_inner().unwrap_or_else(PoisonError::into_inner);
        let loaded = first_report.map(LoadReport::from).unwrap_or_default();
        LoadReport { rows_loaded: self.rows.into_inner(), rows_found, ..loaded }
    }
}

#[cfg(test)]
mod tests {
    use super::seats;

    #[test]
    fn sessions_are_dealt_out_to_places_by_turns() {
        assert_eq!(seats(4, &[9]), [0; 4]);
        assert_eq!(seats(4, &[2]), [0; 2]);
        assert_eq!(seats(5, &[9, 1, 9]), [0, 1, 2, 0, 2]);
        assert_eq!(seats(2, &[9, 0, 9, 9]), [0, 2, 3]);
        assert_eq!(seats(4, &[0, 0]), [0_usize; 0]);
        assert_eq!(seats(4, &[]), [0_usize; 0]);
    }
}
