//! Does the pieces of a step on several sessions.

use super::steps::{Piece, Step, Work};
use super::sums::{Summed, to_text};
use super::times::now_s;
use super::{LoadError, on_sessions, while_doing};
use crate::generate::{TableRows, part_row_count};
use crate::schema::Table;
use crate::state::{self, Done};
use dyno_core::{
    BulkReport, DbError, Dialect, Discard, Driver, ErrorClass, LoadObserver, Session,
    Table as Answer,
};
use dyno_reactor::Stop;
use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// Attempts at a piece that other sessions' locks get in the way of.
const ATTEMPTS: u32 = 5;

/// What a load's sessions share.
pub(super) struct Worker<'a, O> {
    pub(super) scale: f64,
    pub(super) sessions: u32,
    pub(super) observer: &'a O,
    pub(super) rows_loaded: AtomicU64,
    pub(super) how: Mutex<Option<BulkReport>>,
}

/// How much memory SQLite may use for its pages while it loads and sorts, in KiB.
pub(super) const SQLITE_CACHE_KIB: u32 = 128 << 10;

/// Tells a session what suits a load. SQLite checks keys by a step of their own, and sorts in memory.
/// PostgreSQL sorts and joins in memory too, where its sessions together need no more than it has
/// given to its shared buffers.
async fn set_up<S: Session>(session: &mut S, sessions: u32) -> Result<(), LoadError> {
    let sql = match session.dialect() {
        Dialect::Sqlite => {
            format!("PRAGMA foreign_keys = off; PRAGMA cache_size = -{SQLITE_CACHE_KIB}")
        }
        // Shared buffers are counted in blocks of 8 KiB; 2 GiB is the most that older versions take.
        Dialect::Postgres => format!(
            "SELECT set_config('maintenance_work_mem', greatest(m.setting::bigint, \
             least(b.setting::bigint * 8 / {}, 2097151)) || 'kB', false) FROM pg_settings m, \
             pg_settings b WHERE m.name = 'maintenance_work_mem' AND b.name = 'shared_buffers'",
            sessions.max(1)
        ),
        Dialect::Mysql => return Ok(()),
    };
    match session.query(&sql, &mut Discard).await {
        // Some that speak PostgreSQL's protocol know no such settings.
        Err(error) if session.dialect() == Dialect::Postgres && !error.is_fatal() => Ok(()),
        done => done.map(drop).map_err(while_doing("setting up the session")),
    }
}

impl<O: LoadObserver> Worker<'_, O> {
    /// Does the pieces of a step, each by the next session that is free.
    pub(super) fn step<D: Driver>(
        &self,
        driver: &D,
        step: Step,
        pieces: &[Piece],
    ) -> Result<(), LoadError> {
        let count = u32::try_from(pieces.len()).unwrap_or(u32::MAX);
        let sessions = match (driver.dialect(), step) {
            // One writer at a time; and tables take no time.
            (Dialect::Sqlite, _) | (_, Step::Create) => 1,
            _ => self.sessions.max(1).min(count),
        };
        let next = AtomicUsize::new(0);
        let work = async |session: &mut D::Session, stop: &Stop| {
            set_up(session, sessions).await?;
            let made = match session.dialect() {
                Dialect::Mysql => state::mysql_keys(session).await?,
                Dialect::Postgres | Dialect::Sqlite => HashSet::new(),
            };
            while !stop.is_wanted()
                && let Some(piece) = pieces.get(next.fetch_add(1, Ordering::Relaxed))
            {
                self.tell(step, piece);
                self.piece(session, piece, &made).await?;
            }
            Ok(())
        };
        on_sessions(driver, sessions, work).map_err(LoadError::with_resume_hint)
    }

    fn tell(&self, step: Step, piece: &Piece) {
        let table = piece.table.name();
        match step {
            Step::Create => self.observer.creating_table(table),
            Step::PrimaryKeys | Step::Indexes => self.observer.creating_index(table),
            Step::Load | Step::ForeignKeys | Step::Analyze => {}
        }
    }

    async fn piece<S: Session>(
        &self,
        session: &mut S,
        piece: &Piece,
        made: &HashSet<String>,
    ) -> Result<(), LoadError> {
        let mut attempt = 1;
        loop {
            let done = match &piece.work {
                Work::Rows { part, parts } => self.rows(session, piece, *part, *parts).await,
                Work::Sql { sql, made: key } => {
                    let is_made = made.contains(key);
                    self.sql(session, piece, sql, is_made).await
                }
                Work::Outside { sql } => outside(session, piece, sql).await,
            };
            match done {
                Err(error) if is_conflict(&error) && attempt < ATTEMPTS => {
                    let doing = while_doing(doing(piece));
                    session.rollback().await.map_err(doing)?;
                    attempt += 1;
                }
                other => return other,
            }
        }
    }

    async fn rows<S: Session>(
        &self,
        session: &mut S,
        piece: &Piece,
        part: u32,
        parts: u32,
    ) -> Result<(), LoadError> {
        let table = piece.table;
        let columns: Vec<&str> = table.columns().iter().map(|&(name, _)| name).collect();
        let expected = part_row_count(table, self.scale, part, parts);
        let failed = || while_doing(doing(piece));
        let began_s = now_s();
        session.query(begin(session.dialect()), &mut Discard).await.map_err(failed())?;
        let mut source = Summed::new(table, TableRows::new(table, self.scale, part, parts));
        let report = session.bulk_load(table.name(), &columns, &mut source).await;
        let report = report.map_err(failed())?;
        if report.rows != expected || source.count != expected {
            return Err(LoadError::Data {
                problem: format!(
                    "Table {} took {} of {expected} rows of a piece.",
                    table.name(),
                    report.rows
                ),
                hint: "look for triggers and rules on the table".to_owned(),
            });
        }
        let done = Done {
            name: piece.name.clone(),
            began_s,
            seconds: now_s() - began_s,
            rows: expected,
            sums: to_text(&source.sums()),
        };
        state::note(session, &done).await.map_err(failed())?;
        session.query("COMMIT", &mut Discard).await.map_err(failed())?;
        self.rows_loaded.fetch_add(expected, Ordering::Relaxed);
        self.observer.rows_done(expected);
        self.remember(report);
        Ok(())
    }

    /// Keeps the first report; its reason for a slower method is told once.
    fn remember(&self, report: BulkReport) {
        let mut how = self.how.lock().unwrap_or_else(PoisonError::into_inner);
        if how.is_none() {
            if let Some(reason) = &report.fallback_reason {
                self.observer.note(reason);
            }
            *how = Some(report);
        }
    }

    /// MySQL commits what a transaction did before and after such statements: what is made and not
    /// noted was made by a load that was interrupted in between.
    async fn sql<S: Session>(
        &self,
        session: &mut S,
        piece: &Piece,
        sql: &str,
        is_made: bool,
    ) -> Result<(), LoadError> {
        let failed = || while_doing(doing(piece));
        let began_s = now_s();
        let mut answer = Answer::default();
        let is_atomic = session.dialect() != Dialect::Mysql;
        if is_atomic {
            session.query(begin(session.dialect()), &mut Discard).await.map_err(failed())?;
        }
        if !is_made {
            match session.query(sql, &mut answer).await {
                Err(error) if is_made_before(&error) => {}
                executed => drop(executed.map_err(failed())?),
            }
        }
        if let Some(row) = answer.rows.first() {
            return Err(violated(piece.table, row));
        }
        note_end(session, piece, began_s).await?;
        if is_atomic {
            session.query("COMMIT", &mut Discard).await.map_err(failed())?;
        }
        Ok(())
    }
}

/// MySQL's errors 1061, 1068 and 1826: the index, primary or foreign key exists. The server was still
/// making it for a load that has been interrupted.
fn is_made_before(error: &DbError) -> bool {
    matches!(error.errno(), 1061 | 1068 | 1826)
}

/// What `PRAGMA foreign_key_check` answers: a row for each violation.
fn violated(table: Table, row: &[Option<String>]) -> LoadError {
    let cell = |index: usize| row.get(index).cloned().flatten().unwrap_or_default();
    LoadError::Data {
        problem: format!(
            "Row {} of table {} refers to a row of table {} that does not exist.",
            cell(1),
            table.name(),
            cell(2)
        ),
        hint: "drop the tables and load again".to_owned(),
    }
}

/// Statistics: repeatable, so that nothing is lost where they are made and not noted.
async fn outside<S: Session>(session: &mut S, piece: &Piece, sql: &str) -> Result<(), LoadError> {
    let began_s = now_s();
    let mut answer = Answer::default();
    session.query(sql, &mut answer).await.map_err(while_doing(doing(piece)))?;
    // MySQL answers with rows of table, operation, type and text.
    let is_error = |row: &&Vec<Option<String>>| {
        let kind = row.get(2).and_then(Option::as_deref).unwrap_or_default();
        kind.eq_ignore_ascii_case("error")
    };
    if let Some(row) = answer.rows.iter().find(is_error) {
        let text = row.last().cloned().flatten().unwrap_or_default();
        return Err(LoadError::Data {
            problem: format!("Table {} has no statistics: {text}.", piece.table.name()),
            hint: "load again with the same options: what is stored is kept".to_owned(),
        });
    }
    note_end(session, piece, began_s).await
}

async fn note_end<S: Session>(
    session: &mut S,
    piece: &Piece,
    began_s: f64,
) -> Result<(), LoadError> {
    let seconds = now_s() - began_s;
    let done = Done { name: piece.name.clone(), began_s, seconds, ..Done::default() };
    state::note(session, &done).await.map_err(while_doing(doing(piece)))
}

fn begin(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Sqlite => "BEGIN IMMEDIATE",
        Dialect::Mysql | Dialect::Postgres => "BEGIN",
    }
}

fn doing(piece: &Piece) -> String {
    format!("the step {}", piece.name)
}

fn is_conflict(error: &LoadError) -> bool {
    error.db_error().is_some_and(|error: &DbError| {
        matches!(
            error.class(),
            ErrorClass::Deadlock | ErrorClass::LockTimeout | ErrorClass::Serialization
        )
    })
}
