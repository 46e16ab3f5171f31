//! Leftovers of an interrupted initialization, and questions of a run about the tables before it begins.

use super::data::{SmallTable, chunk};
use super::failed;
use super::options::{ACCOUNTS_PER_BRANCH, InitOptions, InitStep, PartitionMethod};
use super::run_command;
use super::schema::{ACCOUNTS, BRANCHES, HISTORY, TABLES, TELLERS};
use dyno_core::{AdminSession, DbError, Dialect, Discard};
use dyno_load::query::{answer, column, integers, number};
use dyno_load::{LoadError, catalog};
use std::collections::HashSet;

const STEP: InitStep = InitStep::ClientData;

/// Remedy for rows that don't fit.
const START_OVER: &str =
    "run without --resume to load from the beginning, or use the options of the first run";

/// Returns those of pgbench's tables that exist.
pub async fn existing_tables(session: &mut AdminSession<'_>) -> Result<HashSet<String>, DbError> {
    let mut tables = catalog::tables(session).await?;
    tables.retain(|name| TABLES.contains(&name.as_str()));
    Ok(tables)
}

/// The keys that the tables have: the table's name for a primary key, else the key's own.
pub(crate) async fn keys(session: &mut AdminSession<'_>) -> Result<HashSet<String>, DbError> {
    let sql = match session.dialect() {
        Dialect::Postgres => format!(
            "select case contype when 'p' then c.relname else k.conname end from \
             pg_catalog.pg_constraint as k join pg_catalog.pg_class as c on c.oid = k.conrelid \
             where contype in ('p', 'f') and c.oid in ({})",
            list("to_regclass('", "')")
        ),
        Dialect::Mysql => {
            let mut keys = HashSet::new();
            for name in TABLES {
                if catalog::mysql_indexes(session, name).await?.contains("PRIMARY") {
                    keys.insert(name.to_owned());
                }
                keys.extend(catalog::mysql_foreign_keys(session, name).await?);
            }
            return Ok(keys);
        }
        Dialect::Sqlite => format!(
            "select tbl_name from sqlite_master where type = 'index' and tbl_name in ({})",
            list("'", "'")
        ),
    };
    column(session, &sql).await
}

/// The names of all tables, each with text around it.
fn list(before: &str, after: &str) -> String {
    TABLES.map(|name| format!("{before}{name}{after}")).join(", ")
}

fn other_contents(step: InitStep, table: &str, problem: &str) -> LoadError {
    LoadError::data(format!("{step}: table {table} {problem}"), START_OVER)
}

/// Remedy for a table that only has the name of one of pgbench's.
pub(super) const NOT_OURS: &str = "rename or drop it, or use another database";

/// Refuses tables that lack what loads and scripts need; what they have besides is the user's business.
pub(crate) async fn check_columns(
    session: &mut AdminSession<'_>,
    existing: &HashSet<String>,
) -> Result<(), LoadError> {
    for (table, needed) in NEEDED_COLUMNS {
        if !existing.contains(table) {
            continue;
        }
        let columns = catalog::columns(session, table).await;
        let doing = format!("listing the columns of table {table}");
        let columns = columns.map_err(failed(InitStep::CreateTables, doing))?;
        // Servers that are only compatible may list none.
        let lacking = needed
            .iter()
            .find(|name| !columns.iter().any(|other| other.eq_ignore_ascii_case(name)));
        if let Some(name) = lacking.filter(|_| !columns.is_empty()) {
            let problem = format!("The table {table} is not pgbench's (it has no column {name})");
            return Err(LoadError::data(problem, NOT_OURS));
        }
    }
    Ok(())
}

const NEEDED_COLUMNS: [(&str, &[&str]); 4] = [
    (ACCOUNTS, &["aid", "bid", "abalance"]),
    (BRANCHES, &["bid", "bbalance"]),
    (HISTORY, &["tid", "bid", "aid", "delta"]),
    (TELLERS, &["tid", "bid", "tbalance"]),
];

/// Refuses accounts that are partitioned otherwise than the options say.
pub(crate) async fn check_partitions(
    session: &mut AdminSession<'_>,
    options: &InitOptions,
) -> Result<(), LoadError> {
    let doing = "reading how the accounts are partitioned";
    let existing = partitioning(session).await.map_err(failed(InitStep::CreateTables, doing))?;
    let method = (options.partitions > 0).then_some(options.partition_method);
    let expected = (options.partitions, method);
    let Some(existing) = existing.filter(|existing| *existing != expected) else { return Ok(()) };
    let tables = [(existing, " partitions"), (expected, "")];
    let [existing, expected] = tables.map(|((partitions, method), noun)| {
        let method = method.map_or(String::new(), |method| format!(" by {}", method.name()));
        format!("{partitions}{noun}{method}")
    });
    let problem = format!("has {existing}, the options say {expected}");
    Err(other_contents(InitStep::CreateTables, ACCOUNTS, &problem))
}

/// The counts of a table; what is not a number is -1, which fits nowhere.
async fn counts(
    session: &mut AdminSession<'_>,
    table: &str,
    sql: &str,
) -> Result<Vec<Vec<i64>>, LoadError> {
    let rows = integers(session, sql, -1).await;
    let doing = format!("counting the rows of table {table}");
    rows.map_err(|error| failed(STEP, doing)(error).with_sql(sql))
}

/// Returns true if a small table holds all its rows, false when it holds none.
///
/// # Errors
/// When it holds others.
pub(crate) async fn is_small_complete(
    session: &mut AdminSession<'_>,
    small: &SmallTable,
    rows: i64,
) -> Result<bool, LoadError> {
    let (table, column) = (small.name, small.columns[0]);
    let sql = format!("select count(*), min({column}), max({column}) from {table}");
    let existing = counts(session, table, &sql).await?;
    match existing.first().map(Vec::as_slice) {
        Some([0, _, _]) => Ok(false),
        Some(&[count, 1, last]) if count == rows && last == rows => Ok(true),
        found => {
            let count = found.and_then(|row| row.first()).copied().unwrap_or(0);
            let problem = format!(
                "has other rows than these options make: {count} instead of {rows}, or not \
                 numbered from 1 to {rows}"
            );
            Err(other_contents(STEP, table, &problem))
        }
    }
}

/// Waits until no transaction writes to the accounts any more. The last chunk of a load that was
/// killed may be on its way to its commit while the rows are counted; it would be loaded twice.
pub(crate) async fn wait_for_writers(session: &mut AdminSession<'_>) -> Result<(), LoadError> {
    match session.dialect() {
        Dialect::Postgres => {
            let sql = format!("begin; lock table {ACCOUNTS} in share mode; commit");
            run_command(session, STEP, "waiting for other writers of the accounts", &sql).await
        }
        Dialect::Mysql => {
            // Not every user may lock tables; then step p still finds rows that are there twice.
            let lock = format!("lock tables {ACCOUNTS} read");
            if session.query(&lock, &mut Discard).await.is_ok() {
                run_command(session, STEP, "unlocking the accounts", "unlock tables").await?;
            }
            Ok(())
        }
        // A process that is gone holds no lock and has committed nothing since.
        Dialect::Sqlite => Ok(()),
    }
}

/// The branches whose accounts are all there. Reads the whole table.
///
/// # Errors
/// When a branch has some of its accounts, or others than its own.
pub(crate) async fn complete_chunks(
    session: &mut AdminSession<'_>,
    options: &InitOptions,
) -> Result<HashSet<u32>, LoadError> {
    let sql = format!("select bid, count(*), min(aid), max(aid) from {ACCOUNTS} group by bid");
    let chunks = counts(session, ACCOUNTS, &sql).await?;
    chunks.into_iter().map(|row| complete_chunk(&row, options.scale)).collect()
}

fn complete_chunk(row: &[i64], scale: u32) -> Result<u32, LoadError> {
    let &[bid, count, lowest, highest] = row else {
        return Err(other_contents(STEP, ACCOUNTS, "gave no counts"));
    };
    let branch = u32::try_from(bid).ok().filter(|branch| (1..=scale).contains(branch));
    let rows = (i64::from(ACCOUNTS_PER_BRANCH), lowest, highest);
    match branch.filter(|&branch| rows == (count, chunk(branch).0, chunk(branch).1)) {
        Some(branch) => Ok(branch),
        None => Err(other_contents(
            STEP,
            ACCOUNTS,
            &format!(
                "has other rows than these options make at scale {scale}: {count} of branch {bid}, \
                 from {lowest} to {highest}"
            ),
        )),
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableInfo {
    /// Rows of `pgbench_branches`.
    pub scale: i64,
    /// Partitions of `pgbench_accounts`, 0 when it has none.
    pub partitions: u32,
    /// Method by which it is partitioned, if it is and pgbench knows the method.
    pub partition_method: Option<PartitionMethod>,
}

/// pgbench 15's question to PostgreSQL: how the first such table of the search path is partitioned.
const POSTGRES_PARTITIONS: &str = "select o.n, p.partstrat, pg_catalog.count(i.inhparent) from \
    pg_catalog.pg_class as c join pg_catalog.pg_namespace as n on (n.oid = c.relnamespace) cross \
    join lateral (select pg_catalog.array_position(pg_catalog.current_schemas(true), n.nspname)) \
    as o(n) left join pg_catalog.pg_partitioned_table as p on (p.partrelid = c.oid) left join \
    pg_catalog.pg_inherits as i on (c.oid = i.inhparent) where c.relname = 'pgbench_accounts' and \
    o.n is not null group by 1, 2 order by 1 asc limit 1";

/// The columns of [`POSTGRES_PARTITIONS`]; nothing else has partitions as pgbench makes them.
const MYSQL_PARTITIONS: &str = "select 1, null, 0 from information_schema.tables where \
    table_schema = database() and table_name = 'pgbench_accounts'";

const SQLITE_PARTITIONS: &str =
    "select 1, null, 0 from sqlite_master where type = 'table' and name = 'pgbench_accounts'";

/// Number of partitions of the accounts, and their method; `None` if the table is missing.
pub(crate) async fn partitioning(
    session: &mut AdminSession<'_>,
) -> Result<Option<(u32, Option<PartitionMethod>)>, DbError> {
    let sql = match session.dialect() {
        Dialect::Postgres => POSTGRES_PARTITIONS,
        Dialect::Mysql => MYSQL_PARTITIONS,
        Dialect::Sqlite => SQLITE_PARTITIONS,
    };
    let table = answer(session, sql).await?;
    let Some([_, method, count]) = table.rows.first().map(Vec::as_slice) else {
        return Ok(None);
    };
    let method = match method.as_deref() {
        Some("r") => Some(PartitionMethod::Range),
        Some("h") => Some(PartitionMethod::Hash),
        _ => None,
    };
    let count = count.as_deref().and_then(|count| count.parse().ok()).unwrap_or(0);
    Ok(Some((count, method)))
}

/// Counts the branches and reads how accounts are partitioned; `None` without a table of accounts. As in pgbench, a
/// server that can't say how they are is taken to have no partitions.
pub async fn table_info(session: &mut AdminSession<'_>) -> Result<Option<TableInfo>, DbError> {
    let scale = number(session, &format!("select count(*) from {BRANCHES}")).await?.unwrap_or(0);
    let partitions = match partitioning(session).await {
        Err(error) if !error.is_fatal() => Some((0, None)),
        partitions => partitions?,
    };
    Ok(partitions.map(|(partitions, partition_method)| TableInfo {
        scale,
        partitions,
        partition_method,
    }))
}

/// Prepares the tables as pgbench does before a run without `-n`: vacuums branches and tellers and
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

/// The additional work of `-v`: vacuums and analyzes the accounts on PostgreSQL; nothing elsewhere. Returns the
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chunk_fits_or_says_what_is_wrong() {
        assert_eq!(complete_chunk(&[2, 100_000, 100_001, 200_000], 2).unwrap(), 2);
        let cases: [(&[i64], &str); 6] = [
            (&[3, 100_000, 200_001, 300_000], "scale 2: 100000 of branch 3"),
            (&[0, 1, 5, 5], "1 of branch 0"),
            (&[-1, 7, 1, 7], "7 of branch -1"),
            (&[1, 99_999, 1, 100_000], "99999 of branch 1, from 1 to 100000"),
            (&[2, 100_000, 100_000, 200_000], "from 100000 to 200000"),
            (&[], "no counts"),
        ];
        for (row, words) in cases {
            let error = complete_chunk(row, 2).unwrap_err();
            assert!(error.to_string().contains(words), "{error}");
            assert!(error.hint().is_some_and(|hint| hint.contains("--resume")));
        }
    }
}
