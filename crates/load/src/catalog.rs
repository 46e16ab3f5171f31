//! What the catalog of a database says about tables.
//!
//! On MySQL's protocol it is asked with SHOW: proxies answer that for a table that is spread over shards, and refuse or
//! send anywhere what reads `information_schema`.

use crate::{LoadError, LoadObserver, query, while_doing};
use dyno_core::{AdminSession, DbError, Dialect, Session};
use std::collections::HashSet;

const NO_SUCH_TABLE: u32 = 1146;

/// One column of MySQL's answer, from 0, about a table that need not exist.
async fn mysql_column<C: FromIterator<String>>(
    session: &mut AdminSession<'_>,
    sql: &str,
    number: usize,
) -> Result<C, DbError> {
    let answer = match query::answer(session, sql).await {
        Err(error) if error.errno() == NO_SUCH_TABLE => Default::default(),
        answer => answer?,
    };
    Ok(answer.rows.into_iter().filter_map(|row| row.into_iter().nth(number)?).collect())
}

/// The tables that statements without a schema name can reach; MySQL's views are among them.
pub async fn tables(session: &mut AdminSession<'_>) -> Result<HashSet<String>, DbError> {
    let sql = match session.dialect() {
        Dialect::Mysql => "SHOW TABLES",
        Dialect::Postgres => {
            "SELECT tablename FROM pg_tables WHERE schemaname = ANY (current_schemas(false))"
        }
        Dialect::Sqlite => "SELECT name FROM sqlite_master WHERE type = 'table'",
    };
    query::column(session, sql).await
}

/// Gives a table that was just created the observer's mark. Servers that keep no comments refuse.
///
/// # Errors
/// The session is lost.
pub async fn mark(
    session: &mut AdminSession<'_>,
    table: &str,
    observer: &dyn LoadObserver,
) -> Result<(), LoadError> {
    let Some(mark) = observer.table_mark() else { return Ok(()) };
    let sql = match session.dialect() {
        Dialect::Mysql => format!("ALTER TABLE {table} COMMENT = '{mark}'"),
        Dialect::Postgres => format!("COMMENT ON TABLE {table} IS '{mark}'"),
        Dialect::Sqlite => return Ok(()),
    };
    let marked = query::answer_if_any(session, &sql).await;
    marked.map(drop).map_err(while_doing(format!("marking table {table}")))
}

/// The tables that have another mark, or none; none of a server that keeps no comments.
///
/// # Errors
/// The session is lost.
pub async fn unmarked(
    session: &mut AdminSession<'_>,
    mark: &str,
) -> Result<HashSet<String>, DbError> {
    let (sql, column) = match session.dialect() {
        Dialect::Mysql => ("SHOW TABLE STATUS", 17),
        Dialect::Postgres => (
            "SELECT c.relname, obj_description(c.oid, 'pg_class') FROM pg_class c JOIN pg_namespace n \
             ON n.oid = c.relnamespace WHERE c.relkind IN ('r', 'p') AND n.nspname = ANY (current_schemas(false))",
            1,
        ),
        Dialect::Sqlite => return Ok(HashSet::new()),
    };
    let tables = query::answer_if_any(session, sql).await?.unwrap_or_default().rows.into_iter();
    let others = tables.filter(|row| row.get(column).is_some_and(|it| it.as_deref() != Some(mark)));
    Ok(others.filter_map(|row| row.into_iter().next().flatten()).collect())
}

/// The columns of a table on MySQL, in their order; none if it doesn't exist.
pub async fn mysql_columns(
    session: &mut AdminSession<'_>,
    table: &str,
) -> Result<Vec<String>, DbError> {
    mysql_column(session, &format!("SHOW COLUMNS FROM {table}"), 0).await
}

/// The names of a table's indexes on MySQL, `PRIMARY` among them; none if it doesn't exist.
pub async fn mysql_indexes(
    session: &mut AdminSession<'_>,
    table: &str,
) -> Result<HashSet<String>, DbError> {
    mysql_column(session, &format!("SHOW INDEX FROM {table}"), 2).await
}

/// The names of a table's foreign keys on MySQL; none if it doesn't exist.
pub async fn mysql_foreign_keys(
    session: &mut AdminSession<'_>,
    table: &str,
) -> Result<Vec<String>, DbError> {
    Ok(foreign_keys_in(&mysql_definition(session, table).await?))
}

/// The CREATE TABLE of a table as MySQL prints it; empty if it doesn't exist.
pub async fn mysql_definition(
    session: &mut AdminSession<'_>,
    table: &str,
) -> Result<String, DbError> {
    mysql_column(session, &format!("SHOW CREATE TABLE {table}"), 1).await
}

/// ``CONSTRAINT `name` FOREIGN KEY (...)``; quoted as the session's SQL mode wants it.
fn foreign_keys_in(create: &str) -> Vec<String> {
    let name = |line: &str| {
        let (name, _) = line.trim().strip_prefix("CONSTRAINT ")?.split_once(" FOREIGN KEY")?;
        Some(name.trim_matches(['`', '"']).to_owned())
    };
    create.lines().filter_map(name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn foreign_keys_are_read_with_any_quotes() {
        let create = "CREATE TABLE `t` (\n  `a` int,\n  PRIMARY KEY (`a`),\n  KEY `k` (`a`),\n  CONSTRAINT \
                      `first` FOREIGN KEY (`a`) REFERENCES `u` (`a`),\n  CONSTRAINT \"second\" FOREIGN KEY \
                      (\"a\") REFERENCES \"u\" (\"a\"),\n  CONSTRAINT `c` CHECK (`a` > 0)\n)";
        assert_eq!(foreign_keys_in(create), ["first", "second"]);
    }
}
