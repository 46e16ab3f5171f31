//! Loading many rows.

use super::row::Bound;
use super::translate;
use crate::queue::Params;
use duckdb::{Connection, appender_params_from_iter};
use dyno_core::{BulkMethod, BulkReport, DbResult, RowSource};

/// Streams rows through DuckDB's appender, which gives texts the types of their columns.
pub(super) fn load(
    connection: &Connection,
    table: &str,
    columns: &[&str],
    rows: &mut dyn RowSource,
) -> DbResult<BulkReport> {
    let mut append = || -> duckdb::Result<u64> {
        let mut appender = connection.appender_with_columns(table, columns)?;
        let mut row = Params::default();
        let mut count = 0;
        while rows.next_row(&mut row) {
            let params = row.range(0..row.len()).map(Bound);
            appender.append_row(appender_params_from_iter(params))?;
            row.clear();
            count += 1;
        }
        appender.flush()?;
        Ok(count)
    };
    let rows = append().map_err(translate)?;
    Ok(BulkReport { rows, method: BulkMethod::Appender, fallback: None })
}
