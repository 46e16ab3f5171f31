//! How large a data set is beside the server's memory for data.

use dyno_core::{AdminSession, DbError, Dialect, Session};
use dyno_load::query::{answer_if_any, whole};

/// The size of the tables beside the server's memory for data, both in bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Footprint {
    /// The tables with their indexes, on SQLite all that is in the file; `None` when the server
    /// doesn't say.
    pub size_bytes: Option<u64>,
    pub memory_setting: &'static str,
    /// Its value; `None` when the server doesn't say.
    pub memory_bytes: Option<u64>,
}

/// Asks the server for the size of the tables whose names are `LIKE` a pattern, in which `@` escapes, and for its
/// memory for data. What it refuses to say is left out.
///
/// # Errors
/// Only when the connection is lost.
pub async fn footprint(
    session: &mut AdminSession<'_>,
    pattern: &str,
) -> Result<Footprint, DbError> {
    let (memory_setting, size, memory) = match session.dialect() {
        Dialect::Postgres => (
            "shared_buffers",
            // Partitions are tables of their own; their parent has no rows.
            format!(
                "SELECT CAST(sum(pg_total_relation_size(oid)) AS bigint) FROM pg_class WHERE relkind = 'r' \
             AND relname LIKE '{pattern}' ESCAPE '@' AND pg_table_is_visible(oid)"
            ),
            "SELECT pg_size_bytes(current_setting('shared_buffers'))",
        ),
        Dialect::Mysql => (
            "innodb_buffer_pool_size",
            format!(
                "SELECT CAST(SUM(data_length + index_length) AS SIGNED) FROM information_schema.tables \
             WHERE table_schema = DATABASE() AND table_name LIKE '{pattern}' ESCAPE '@'"
            ),
            "SELECT @@innodb_buffer_pool_size",
        ),
        Dialect::Sqlite => (
            "cache_size",
            // All tables of the file: it doesn't say whose its pages are.
            "SELECT (page_count - freelist_count) * page_size FROM pragma_page_count, \
             pragma_freelist_count, pragma_page_size"
                .to_owned(),
            // Pages, or KiB when negative.
            "SELECT CASE WHEN cache_size < 0 THEN -1024 * cache_size ELSE cache_size * page_size END \
             FROM pragma_cache_size, pragma_page_size",
        ),
    };
    let size_bytes = number(session, &size).await?;
    let memory_bytes = number(session, memory).await?;
    Ok(Footprint { size_bytes, memory_setting, memory_bytes })
}

async fn number(session: &mut AdminSession<'_>, sql: &str) -> Result<Option<u64>, DbError> {
    let answer = answer_if_any(session, sql).await?;
    Ok(answer.and_then(|answer| answer.single().and_then(whole)))
}
