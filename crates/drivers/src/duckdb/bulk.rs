//! Loading many rows.

use super::row::Bound;
use super::translate;
use crate::queue::Params;
use duckdb::{Connection, appender_params_from_iter};
use dyno_core::{BulkMethod, BulkReport, DbError, Param, RowSource, RowWriter};

/// Streams rows through DuckDB's appender, which gives texts the types of their columns.
pub(super) fn load<R: RowSource>(
    connection: &Connection,
    table: &str,
    columns: &[&str],
    rows: &mut R,
) -> Result<BulkReport, DbError> {
    let rows = append_all(connection, table, columns, rows).map_err(|error| translate(&error))?;
    Ok(BulkReport { rows, method: BulkMethod::Appender, fallback_reason: None })
}

fn append_all<R: RowSource>(
    connection: &Connection,
    table: &str,
    columns: &[&str],
    rows: &mut R,
) -> duckdb::Result<u64> {
    let mut appender = connection.appender_with_columns(table, columns)?;
    let mut row = OneRow::default();
    let mut count = 0;
    while rows.next_row(&mut row) {
        let params = row.0.range(0..row.0.len()).map(Bound);
        appender.append_row(appender_params_from_iter(params))?;
        row.0.clear();
        count += 1;
    }
    appender.flush()?;
    Ok(count)
}

/// The columns of the row that is being made.
#[derive(Default)]
struct OneRow(Params);

impl RowWriter for OneRow {
    #[inline]
    fn int(&mut self, value: i64) {
        self.0.push(Param::Int(value));
    }

    #[inline]
    fn double(&mut self, value: f64) {
        self.0.push(Param::Double(value));
    }

    #[inline]
    fn text(&mut self, value: &[u8]) {
        self.0.push(Param::Text(value));
    }

    #[inline]
    fn null(&mut self) {
        self.0.push(Param::Null);
    }
}
