//! What the server's catalog says about the tables.

use dyno_core::{AdminSession, DbError, Dialect};
use dyno_load::catalog;
pub use dyno_load::catalog::tables;
pub(crate) use dyno_load::catalog::{columns, mysql_definition};
use dyno_load::query::{column, integers};
use std::collections::HashSet;

/// The names of a table's indexes.
pub(crate) async fn indexes(
    session: &mut AdminSession<'_>,
    table: &str,
) -> Result<HashSet<String>, DbError> {
    let sql = match session.dialect() {
        Dialect::Mysql => return catalog::mysql_indexes(session, table).await,
        Dialect::Postgres => format!(
            "SELECT indexname FROM pg_indexes \
             WHERE schemaname = ANY (current_schemas(false)) AND tablename = '{table}'"
        ),
        Dialect::Sqlite => {
            format!("SELECT name FROM sqlite_master WHERE type = 'index' AND tbl_name = '{table}'")
        }
    };
    column(session, &sql).await
}

/// What one chunk of a table holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ChunkCount {
    /// From 1; ids below 1 are in chunk 0 or a negative one.
    pub(crate) number: i64,
    pub(crate) rows: i64,
    pub(crate) lowest: i64,
    pub(crate) highest: i64,
}

/// Counts the rows of a table by chunks of `chunk_rows` ids: a scan of the whole table.
pub(crate) async fn chunk_counts(
    session: &mut AdminSession<'_>,
    table: &str,
    chunk_rows: u32,
) -> Result<Vec<ChunkCount>, DbError> {
    let divide = if session.dialect() == Dialect::Mysql { "DIV" } else { "/" };
    // Adding before dividing keeps the id 0 out of the first chunk, and works on unsigned columns.
    let chunk = format!("(id + {}) {divide} {chunk_rows}", chunk_rows - 1);
    let sql = format!("SELECT {chunk}, COUNT(*), MIN(id), MAX(id) FROM {table} GROUP BY {chunk}");
    let rows = integers(session, &sql, 0).await?;
    Ok(rows
        .into_iter()
        .filter_map(|row| match row[..] {
            [number, rows, lowest, highest] => Some(ChunkCount { number, rows, lowest, highest }),
            _ => None,
        })
        .collect())
}
