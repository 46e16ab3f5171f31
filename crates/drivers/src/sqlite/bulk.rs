//! Loading many rows.

use super::row::Bound;
use super::translate;
use dyno_core::{BulkMethod, BulkReport, DbError, Param, RowSource, RowWriter};
use rusqlite::{Connection, Statement};

/// Opens and ends the unit that makes a load all or nothing: a transaction, or a savepoint inside
/// the transaction that is open already.
const UNIT: &str = "dyno_load";

/// Streams rows through one prepared INSERT.
pub(super) fn load<R: RowSource>(
    connection: &Connection,
    table: &str,
    columns: &[&str],
    rows: &mut R,
) -> Result<BulkReport, DbError> {
    let command = |sql: &str| connection.execute_batch(sql).map_err(|error| translate(&error));
    command(&format!("SAVEPOINT {UNIT}"))?;
    match insert_all(connection, table, columns, rows) {
        Ok(rows) => {
            command(&format!("RELEASE {UNIT}"))?;
            let method = BulkMethod::PreparedInsert;
            Ok(BulkReport { rows, method, fallback_reason: None })
        }
        Err(error) => {
            // The first error is the one to report; a dead transaction has no savepoint any more.
            let _ = command(&format!("ROLLBACK TO {UNIT}; RELEASE {UNIT}"));
            Err(translate(&error))
        }
    }
}

fn insert_all<R: RowSource>(
    connection: &Connection,
    table: &str,
    columns: &[&str],
    rows: &mut R,
) -> rusqlite::Result<u64> {
    let places = vec!["?"; columns.len()].join(", ");
    let sql = format!("INSERT INTO {table} ({}) VALUES ({places})", columns.join(", "));
    let mut statement = connection.prepare(&sql)?;
    let mut count = 0;
    loop {
        let mut writer = Binder { statement: &mut statement, column: 0, failed: None };
        if !rows.next_row(&mut writer) {
            return Ok(count);
        }
        let (bound, failed) = (writer.column, writer.failed);
        if let Some(error) = failed {
            return Err(error);
        }
        if bound != columns.len() {
            return Err(rusqlite::Error::InvalidParameterCount(bound, columns.len()));
        }
        count += statement.raw_execute()? as u64;
    }
}

/// Binds the columns of a row as they are written.
struct Binder<'a, 'connection> {
    statement: &'a mut Statement<'connection>,
    column: usize,
    failed: Option<rusqlite::Error>,
}

impl Binder<'_, '_> {
    #[inline]
    fn bind(&mut self, param: Param<'_>) {
        self.column += 1;
        if let Err(error) = self.statement.raw_bind_parameter(self.column, Bound(param)) {
            self.failed.get_or_insert(error);
        }
    }
}

impl RowWriter for Binder<'_, '_> {
    #[inline]
    fn int(&mut self, value: i64) {
        self.bind(Param::Int(value));
    }

    #[inline]
    fn double(&mut self, value: f64) {
        self.bind(Param::Double(value));
    }

    #[inline]
    fn text(&mut self, value: &[u8]) {
        self.bind(Param::Text(value));
    }

    #[inline]
    fn null(&mut self) {
        self.bind(Param::Null);
    }
}
