//! One piece of a load: stored wholly or not at all.

use crate::{LoadError, LoadObserver, LoadReport, fallback_reason, while_doing};
use dyno_core::{AdminSession, BulkReport, DbError, ErrorClass, Session};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// Attempts at a piece that other sessions' locks get in the way of.
const ATTEMPTS: u32 = 5;

/// True when locks of other sessions were in the way: the same work may succeed.
pub fn is_conflict(error: &DbError) -> bool {
    use ErrorClass::{Deadlock, LockTimeout, Serialization};
    matches!(error.class(), Deadlock | LockTimeout | Serialization)
}

/// Does `work`, again from its begin where locks of other sessions are in the way, five times at most.
///
/// # Errors
/// Those of `work`; that of the rollback between two attempts.
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

/// Counts the rows that the sessions of a load have stored, and keeps how.
pub struct StoredRows<'a> {
    observer: &'a dyn LoadObserver,
    rows: AtomicU64,
    how: Mutex<Option<BulkReport>>,
}

impl<'a> StoredRows<'a> {
    pub fn new(observer: &'a dyn LoadObserver) -> Self {
        StoredRows { observer, rows: AtomicU64::new(0), how: Mutex::new(None) }
    }

    /// Counts the rows of a piece, which are committed. The reason of the first piece for a slower method is noted.
    pub fn add(&self, report: BulkReport) {
        let rows = report.rows;
        self.rows.fetch_add(rows, Ordering::Relaxed);
        let mut how = self.how.lock().unwrap_or_else(PoisonError::into_inner);
        if how.is_none() {
            if let Some(why) = &report.fallback {
                self.observer.note(&fallback_reason(why).to_string());
            }
            *how = Some(report);
        }
        drop(how);
        self.observer.rows_done(rows);
    }

    /// All in all, where an earlier load had stored `rows_found` rows.
    pub fn report(self, rows_found: u64) -> LoadReport {
        let how = self.how.into_inner().unwrap_or_else(PoisonError::into_inner);
        let loaded = how.map(LoadReport::from).unwrap_or_default();
        LoadReport { rows_loaded: self.rows.into_inner(), rows_found, ..loaded }
    }
}
