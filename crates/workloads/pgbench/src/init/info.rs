//! What a run asks of the tables before it begins.

use super::error::is_missing_table;
use super::options::PartitionMethod;
use super::schema::{ACCOUNTS, BRANCHES, HISTORY, TELLERS};
use dyno_core::{AdminSession, DbError, Dialect, Discard, Session};
use dyno_load::query::{answer, number};
use std::fmt;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableInfo {
    /// Rows of `pgbench_branches`.
    pub scale: i64,
    /// Partitions of `pgbench_accounts`, 0 when it has none.
    pub partitions: u32,
    /// How it is partitioned, if it is and by a method that pgbench knows.
    pub partition_method: Option<PartitionMethod>,
}

/// Why the tables say nothing.
#[derive(Debug)]
pub enum TableInfoError {
    /// `could not count number of branches: ...`
    Count(DbError),
    /// `no pgbench_accounts table found in search_path`
    NoAccounts,
}

impl TableInfoError {
    pub fn hint(&self, database: &str) -> Option<String> {
        let no_tables = match self {
            TableInfoError::Count(error) => is_missing_table(error),
            TableInfoError::NoAccounts => true,
        };
        no_tables.then(|| {
            format!(
                "Perhaps you need to do initialization (\"pgbench -i\") in database \"{database}\"."
            )
        })
    }
}

impl fmt::Display for TableInfoError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TableInfoError::Count(error) => {
                write!(f, "could not count number of branches: {error}")
            }
            TableInfoError::NoAccounts => {
                f.write_str("no pgbench_accounts table found in search_path")
            }
        }
    }
}

impl std::error::Error for TableInfoError {}

/// pgbench 15's question to PostgreSQL: how the first such table of the search path is partitioned.
const POSTGRES_PARTITIONS: &str = "select o.n, p.partstrat, pg_catalog.count(i.inhparent) from \
    pg_catalog.pg_class as c join pg_catalog.pg_namespace as n on (n.oid = c.relnamespace) cross \
    join lateral (select pg_catalog.array_position(pg_catalog.current_schemas(true), n.nspname)) \
    as o(n) left join pg_catalog.pg_partitioned_table as p on (p.partrelid = c.oid) left join \
    pg_catalog.pg_inherits as i on (c.oid = i.inhparent) where c.relname = 'pgbench_accounts' and \
    o.n is not null group by 1, 2 order by 1 asc limit 1";

/// The same columns; an ordinary table has one line there, without a method.
const MYSQL_PARTITIONS: &str = "select 1, partition_method, count(partition_name) from \
    information_schema.partitions where table_schema = database() and table_name = \
    'pgbench_accounts' group by partition_method";

const SQLITE_PARTITIONS: &str =
    "select 1, null, 0 from sqlite_master where type = 'table' and name = 'pgbench_accounts'";

/// How many partitions the accounts have, and by which method; `None` when there is no such table.
pub(crate) async fn partitioning(
    session: &mut AdminSession<'_>,
) -> Result<Option<(u32, Option<PartitionMethod>)>, DbError> {
    let sql = match session.dialect() {
        Dialect::Postgres => POSTGRES_PARTITIONS,
        Dialect::Mysql => MYSQL_PARTITIONS,
        Dialect::Sqlite => SQLITE_PARTITIONS,
    };
    let found = answer(session, sql).await?;
    let Some([_, method, count]) = found.rows.first().map(Vec::as_slice) else {
        return Ok(None);
    };
    let method = match method.as_deref() {
        Some("r" | "RANGE") => Some(PartitionMethod::Range),
        Some("h" | "HASH") => Some(PartitionMethod::Hash),
        _ => None,
    };
    let count = count.as_deref().and_then(|count| count.parse().ok()).unwrap_or(0);
    Ok(Some((count, method)))
}

/// Counts the branches and reads how accounts are partitioned. As in pgbench, a server that can't
/// say how they are is taken to have no partitions.
pub async fn table_info(session: &mut AdminSession<'_>) -> Result<TableInfo, TableInfoError> {
    let sql = format!("select count(*) from {BRANCHES}");
    let scale = number(session, &sql).await.map_err(TableInfoError::Count)?.unwrap_or(0);
    let (partitions, partition_method) = match partitioning(session).await {
        Ok(Some(found)) => found,
        Ok(None) => return Err(TableInfoError::NoAccounts),
        Err(error) if error.is_fatal() => return Err(TableInfoError::Count(error)),
        Err(_) => (0, None),
    };
    Ok(TableInfo { scale, partitions, partition_method })
}

/// What pgbench does to the tables before a run without `-n`: vacuums branches and tellers and
/// empties the history. MySQL and SQLite have nothing to vacuum there. Returns the errors, which
/// pgbench prints and ignores.
pub async fn vacuum_before_run(session: &mut AdminSession<'_>) -> Vec<DbError> {
    let statements = match session.dialect() {
        Dialect::Postgres => vec![
            format!("vacuum {BRANCHES}"),
            format!("vacuum {TELLERS}"),
            format!("truncate {HISTORY}"),
        ],
        Dialect::Mysql => vec![format!("truncate table {HISTORY}")],
        Dialect::Sqlite => vec![format!("delete from {HISTORY}")],
    };
    try_all(session, &statements).await
}

/// What `-v` adds: vacuums and analyzes the accounts on PostgreSQL; nothing elsewhere. Returns the
/// errors, to be ignored.
pub async fn vacuum_accounts(session: &mut AdminSession<'_>) -> Vec<DbError> {
    match session.dialect() {
        Dialect::Postgres => try_all(session, &[format!("vacuum analyze {ACCOUNTS}")]).await,
        Dialect::Mysql | Dialect::Sqlite => Vec::new(),
    }
}

async fn try_all(session: &mut AdminSession<'_>, statements: &[String]) -> Vec<DbError> {
    let mut errors = Vec::new();
    for sql in statements {
        errors.extend(session.query(sql, &mut Discard).await.err());
    }
    errors
}
