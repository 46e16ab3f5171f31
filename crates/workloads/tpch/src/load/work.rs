//! Does the pieces of a step on several sessions.

use super::order::{NextPiece, Order};
use super::rows::SentRows;
use super::steps::{Piece, TpchStep, Work, orphan, with_primary_key};
use super::{RESUME, now_s};
use crate::generate::{TpchRows, part_row_count};
use crate::schema::{Key, SchemaTable};
use crate::state::{self, CompletedPiece, begin};
use dyno_core::{
    AdminDriver, AdminSession, BulkMethod, BulkReport, DbError, Dialect, Discard, MILLISECOND,
    Nanos,
};
use dyno_load::catalog;
use dyno_load::query::{analyze_error, answer, execute};
use dyno_load::settings::wants_keys_first;
use dyno_load::{
    LoadError, LoadObserver, LoadSessions, StoredRows, all_taken, bulk_load, doing as note, noting,
    retrying, while_doing,
};
use dyno_reactor::{now, sleep_until};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Data that a load's sessions share.
pub(super) struct Worker<'a> {
    pub(super) scale: f64,
    pub(super) sessions: u32,
    pub(super) observer: &'a dyn LoadObserver,
    pub(super) stored: StoredRows<'a>,
}

/// Time for which a session waits before it asks again for something to do.
const WAIT: Nanos = 5 * MILLISECOND;

/// A piece that a session is doing. However that ends, the others hear of it.
struct ActivePiece<'o, 'p> {
    order: &'o Mutex<Order<'p>>,
    piece: &'p Piece,
    is_good: bool,
}

impl Drop for ActivePiece<'_, '_> {
    fn drop(&mut self) {
        let mut order = lock_order(self.order);
        if !self.is_good {
            order.stop();
        }
        order.complete(self.piece);
    }
}

fn lock_order<'l, 'p>(order: &'l Mutex<Order<'p>>) -> MutexGuard<'l, Order<'p>> {
    order.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Memory that SQLite may use for its pages while it loads and sorts, in KiB.
pub(super) const SQLITE_CACHE_KIB: u32 = 128 << 10;

/// Sets up a session for a load. SQLite checks keys in a separate step, and sorts in memory.
/// PostgreSQL sorts and joins in memory too, if its sessions together need no more than it has
/// given to its shared buffers. MySQL makes foreign keys without checking them: each piece proves its keys.
async fn set_up(session: &mut AdminSession<'_>, sessions: u32) -> Result<(), LoadError> {
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
        Dialect::Mysql => "SET foreign_key_checks = 0".to_owned(),
    };
    match session.query(&sql, &mut Discard).await {
        // Some that speak PostgreSQL's protocol know no such settings.
        Err(error) if session.dialect() == Dialect::Postgres && !error.is_fatal() => Ok(()),
        done => done.map(drop).map_err(while_doing("setting up the session")),
    }
}

impl Worker<'_> {
    /// Does the pieces, each by the next session that is free. With `overlaps` those of a table are done while other
    /// tables are still filled; otherwise each step waits for the one before.
    pub(super) fn execute(
        &self,
        driver: &AdminDriver<'_>,
        pieces: &[Piece],
        overlaps: bool,
    ) -> Result<(), LoadError> {
        let order = Mutex::new(Order::new(pieces, overlaps));
        let loader = LoadSessions::new(driver, self.observer, self.sessions);
        // Each time that a session is free: which piece it does is decided here.
        let work = async |session: &mut AdminSession<'_>, (): &(), _: &Piece| {
            let mut waits = false;
            loop {
                let next = if loader.has_failed() {
                    NextPiece::End
                } else {
                    lock_order(&order).next_piece()
                };
                match next {
                    NextPiece::Take(piece) => {
                        self.report_begin(piece);
                        let mut active = ActivePiece { order: &order, piece, is_good: false };
                        retrying(session, async |session| self.execute_piece(session, piece).await)
                            .await?;
                        active.is_good = true;
                        return Ok(());
                    }
                    NextPiece::Wait => {
                        // Once: each note counts as progress.
                        if !std::mem::replace(&mut waits, true) {
                            note("waiting for the pieces of other sessions");
                        }
                        sleep_until(now() + WAIT).await;
                    }
                    NextPiece::End => return Ok(()),
                }
            }
        };
        loader
            .each_at(
                &[(driver, pieces)],
                async |session: &mut AdminSession<'_>| set_up(session, self.sessions).await,
                work,
            )
            .map_err(|error| error.with_resume_hint(RESUME))
    }

    fn report_begin(&self, piece: &Piece) {
        let table = piece.table.name();
        match piece.step {
            TpchStep::Create => self.observer.creating_table(table),
            TpchStep::PrimaryKeys | TpchStep::Indexes => self.observer.creating_index(table),
            TpchStep::Load | TpchStep::ForeignKeys | TpchStep::Analyze => {}
        }
    }

    async fn execute_piece(
        &self,
        session: &mut AdminSession<'_>,
        piece: &Piece,
    ) -> Result<(), LoadError> {
        match &piece.work {
            Work::Rows { part, parts } => self.load_rows(session, piece, *part, *parts).await,
            Work::Sql { sql, .. } if piece.step == TpchStep::Create => {
                let keys_first =
                    wants_keys_first(session).await.map_err(while_doing(step_label(piece)))?;
                let with_key = keys_first.then(|| with_primary_key(sql, piece.table));
                let sql = with_key.as_ref().unwrap_or(sql);
                let (table, began_s) = (piece.table.name(), now_s());
                let created = catalog::create_table(session, table, sql, self.observer).await;
                created.map_err(while_doing(step_label(piece)))?;
                note_end(session, piece, began_s, 0, String::new()).await
            }
            Work::Sql { sql, proofs } => execute_sql(session, piece, sql, proofs).await,
            Work::Outside { sql } => execute_outside(session, piece, sql).await,
        }
    }

    async fn load_rows(
        &self,
        session: &mut AdminSession<'_>,
        piece: &Piece,
        part: u32,
        parts: u32,
    ) -> Result<(), LoadError> {
        let table = piece.table;
        let columns: Vec<&str> = table.columns().iter().map(|&(name, _)| name).collect();
        let expected = part_row_count(table, self.scale, part, parts);
        let began_s = now_s();
        // Servers that only speak PostgreSQL's protocol get no binary rows.
        let is_binary =
            session.dialect() == Dialect::Postgres && session.product().name == "PostgreSQL";
        execute(session, step_label(piece), begin(session.dialect())).await?;
        let rows = TpchRows::for_part(table, self.scale, part, parts);
        let mut rows = SentRows::new(table, rows, is_binary);
        let report = if is_binary {
            note(step_label(piece));
            let (name, columns) = (table.name(), columns.join(", "));
            let sql = format!("COPY {name} ({columns}) FROM STDIN (FORMAT binary)");
            let rows = session.copy_in(&sql, &mut noting(&mut rows)).await;
            let rows = rows.map_err(while_doing(step_label(piece)))?;
            BulkReport { rows, method: BulkMethod::Copy, fallback: None }
        } else {
            bulk_load(session, &step_label(piece), table.name(), &columns, &mut rows).await?
        };
        all_taken(table.name(), report.rows, expected)?;
        note_end(session, piece, began_s, expected, rows.sums_text()).await?;
        execute(session, step_label(piece), "COMMIT").await?;
        self.stored.add(report);
        Ok(())
    }
}

/// MySQL commits what a transaction did before and after such statements: what is made and not
/// noted was made by a load that was interrupted in between.
async fn execute_sql(
    session: &mut AdminSession<'_>,
    piece: &Piece,
    sql: &str,
    proofs: &[&Key],
) -> Result<(), LoadError> {
    let began_s = now_s();
    let is_atomic = session.dialect() != Dialect::Mysql;
    if is_atomic {
        execute(session, step_label(piece), begin(session.dialect())).await?;
    }
    note(step_label(piece));
    match answer(session, sql).await {
        Err(error) if is_made_before(&error) => {}
        made => {
            // What `PRAGMA foreign_key_check` answers: a row for each violation.
            if let Some(row) = made.map_err(while_doing(step_label(piece)))?.rows.first() {
                let parent = row.get(2).and_then(Option::as_deref).unwrap_or_default();
                return Err(missing_parent(piece.table, "a row", parent));
            }
        }
    }
    for key in proofs {
        let orphans =
            answer(session, &orphan(key)).await.map_err(while_doing(step_label(piece)))?;
        if let Some(row) = orphans.rows.first() {
            let row: Vec<&str> = row.iter().map(|cell| cell.as_deref().unwrap_or("NULL")).collect();
            let row = format!("the row {}", row.join(", "));
            return Err(missing_parent(key.table, &row, key.parent.name()));
        }
    }
    note_end(session, piece, began_s, 0, String::new()).await?;
    if is_atomic {
        execute(session, step_label(piece), "COMMIT").await?;
    }
    Ok(())
}

/// MySQL's errors 1061, 1068 and 1826: the index, primary or foreign key exists. A load that was interrupted has made
/// it, or the server was still making it then. For a foreign key MariaDB says 1005 with errno 121
/// (`HA_ERR_FOUND_DUPP_KEY`).
fn is_made_before(error: &DbError) -> bool {
    match error.errno() {
        1005 => error.message().contains("errno: 121 "),
        number => matches!(number, 1061 | 1068 | 1826),
    }
}

fn missing_parent(table: SchemaTable, row: &str, parent: &str) -> LoadError {
    let table = table.name();
    LoadError::data(
        format!("Table {table} refers to {row} of table {parent}, which does not exist."),
        "drop the tables and load again",
    )
}

/// Statistics: repeatable, so nothing is lost if they are made and not noted.
async fn execute_outside(
    session: &mut AdminSession<'_>,
    piece: &Piece,
    sql: &str,
) -> Result<(), LoadError> {
    let began_s = now_s();
    note(step_label(piece));
    let answer = answer(session, sql).await.map_err(while_doing(step_label(piece)))?;
    if let Some(text) = analyze_error(&answer) {
        return Err(LoadError::data(
            format!("Table {} has no statistics: {text}.", piece.table.name()),
            "load again with the same options: what is stored is kept",
        ));
    }
    note_end(session, piece, began_s, 0, String::new()).await
}

async fn note_end(
    session: &mut AdminSession<'_>,
    piece: &Piece,
    began_s: f64,
    rows: u64,
    sums: String,
) -> Result<(), LoadError> {
    let completed = CompletedPiece {
        name: piece.name.clone(),
        began_s,
        seconds: now_s() - began_s,
        rows,
        sums,
    };
    state::note_piece(session, &completed).await.map_err(while_doing(step_label(piece)))
}

fn step_label(piece: &Piece) -> String {
    format!("the step {}", piece.name)
}

#[cfg(test)]
mod tests {
    use super::is_made_before;
    use dyno_core::{DbError, ErrorClass};

    #[test]
    fn a_key_that_a_stopped_load_has_made_meanwhile_is_no_error() {
        let error =
            |errno, message: &str| DbError::server(ErrorClass::Other, errno, *b"HY000", message);
        let exists =
            "Can't create table `d`.`lineitem` (errno: 121 \"Duplicate key on write or update\")";
        let unmatched = "Can't create table `d`.`lineitem` (errno: 150 \"Foreign key constraint is incorrectly formed\")";
        assert!(is_made_before(&error(1005, exists)));
        assert!(!is_made_before(&error(1005, unmatched)));
        assert!(is_made_before(&error(1826, "Duplicate FOREIGN KEY constraint name")));
        assert!(!is_made_before(&error(1452, "Cannot add or update a child row")));
    }
}
