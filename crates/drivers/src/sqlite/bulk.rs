//! Loading many rows.

use super::row::Bound;
use super::translate;
use crate::queue::Params;
use dyno_core::{BulkMethod, BulkReport, DbResult, Param, RowSource};
use rusqlite::{Connection, Statement};

/// The savepoint that makes a load all or nothing, also inside an open transaction.
const UNIT: &str = "dyno_load";

/// Rows per INSERT. 50 take a quarter less CPU per row than single ones; 10 and 200 save less.
const BATCH_ROWS: usize = 50;
/// SQLite's limit on the parameters of one statement.
const PARAMS_MAX: usize = 32_766;

pub(super) fn load(
    connection: &Connection,
    table: &str,
    columns: &[&str],
    rows: &mut dyn RowSource,
) -> DbResult<BulkReport> {
    let command = |sql: &str| connection.execute_batch(sql).map_err(translate);
    command(&format!("SAVEPOINT {UNIT}"))?;
    match insert_all(connection, table, columns, rows) {
        Ok(rows) => {
            command(&format!("RELEASE {UNIT}"))?;
            let method = BulkMethod::MultiRowInsert;
            Ok(BulkReport { rows, method, fallback: None })
        }
        Err(error) => {
            // The first error counts; a dead transaction has no savepoint any more.
            let _ = command(&format!("ROLLBACK TO {UNIT}; RELEASE {UNIT}"));
            Err(translate(error))
        }
    }
}

fn insert_all(
    connection: &Connection,
    table: &str,
    columns: &[&str],
    rows: &mut dyn RowSource,
) -> rusqlite::Result<u64> {
    let width = columns.len();
    let insert = |rows: usize| {
        let row = format!("({})", vec!["?"; width].join(", "));
        let rows = vec![row; rows].join(", ");
        connection.prepare(&format!("INSERT INTO {table} ({}) VALUES {rows}", columns.join(", ")))
    };
    let batch_rows = (PARAMS_MAX / width.max(1)).clamp(1, BATCH_ROWS);
    let mut many = insert(batch_rows)?;
    // The columns of waiting rows, and their number.
    let (mut params, mut waiting) = (Params::default(), 0);
    let mut count = 0;
    while rows.next_row(&mut params) {
        waiting += 1;
        if params.len() != waiting * width {
            let found = params.len() - (waiting - 1) * width;
            return Err(rusqlite::Error::InvalidParameterCount(found, width));
        }
        if waiting == batch_rows {
            count += execute(&mut many, params.range(0..params.len()))?;
            params.clear();
            waiting = 0;
        }
    }
    let mut single = insert(1)?;
    for row in 0..waiting {
        count += execute(&mut single, params.range(row * width..(row + 1) * width))?;
    }
    Ok(count)
}

fn execute<'a>(
    insert: &mut Statement<'_>,
    params: impl Iterator<Item = Param<'a>>,
) -> rusqlite::Result<u64> {
    for (index, param) in params.enumerate() {
        insert.raw_bind_parameter(index + 1, Bound(param))?;
    }
    Ok(insert.raw_execute()? as u64)
}
