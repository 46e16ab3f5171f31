//! Small questions and commands, and what the catalog of a database says about tables.
//!
//! On MySQL's protocol the catalog is read with SHOW: proxies answer that for a table that is spread over shards, and
//! refuse or send anywhere what reads `information_schema`. Functions that bear a refusal fail only if the session is
//! lost.

use crate::{LoadError, LoadObserver, doing as note, while_doing};
use dyno_core::{AdminDriver, AdminSession, AnswerTable, DbError, Dialect};
use std::collections::{HashMap, HashSet};
use std::str::FromStr;

/// Executes a statement that has few rows, if any, and they don't matter.
pub async fn execute(
    session: &mut AdminSession<'_>,
    doing: impl Into<String>,
    sql: &str,
) -> Result<(), LoadError> {
    let doing = doing.into();
    note(&*doing);
    // Whatever comes without end ends the session.
    let rows = &mut AnswerTable::default();
    session.query(sql, rows).await.map(drop).map_err(while_doing(doing))
}

/// PostgreSQL locks each table that a statement drops, and has room for a few thousand locks.
const DROPPED_AT_ONCE: usize = 16;

/// Drops these tables, if they exist, in this order. A few of PostgreSQL's are dropped all or none.
pub async fn drop_tables(
    session: &mut AdminSession<'_>,
    names: &[String],
    observer: &dyn LoadObserver,
) -> Result<(), LoadError> {
    let at_once = match session.dialect() {
        Dialect::Postgres if names.len() <= DROPPED_AT_ONCE => names.len().max(1),
        _ => 1,
    };
    for names in names.chunks(at_once) {
        names.iter().for_each(|name| observer.dropping_table(name));
        let sql = format!("DROP TABLE IF EXISTS {}", names.join(", "));
        let dropped = execute(session, format!("`{sql}`"), &sql).await;
        dropped.map_err(|error| error.with_sql(&sql))?;
    }
    Ok(())
}

/// # Errors
/// Also of an answer that is too long to be kept.
pub async fn answer(session: &mut AdminSession<'_>, sql: &str) -> Result<AnswerTable, DbError> {
    let mut answer = AnswerTable::default();
    session.query(sql, &mut answer).await?;
    if answer.is_cut() {
        let mib = AnswerTable::BYTES_MAX >> 20;
        return Err(DbError::protocol(format!("the answer to `{sql}` has more than {mib} MiB")));
    }
    Ok(answer)
}

/// The rows of an answer; `None` if the database refuses, as compatible ones may.
pub async fn answer_if_any(
    session: &mut AdminSession<'_>,
    sql: &str,
) -> Result<Option<AnswerTable>, DbError> {
    match answer(session, sql).await {
        Err(error) if !error.is_fatal() => Ok(None),
        answered => answered.map(Some),
    }
}

/// Returns true if a pooler gives this session's server to other clients between transactions: if this session
/// and another one that is in a transaction are, one after the other, the same process of the server. Each session of a
/// server's own has a process for itself.
pub async fn is_pooled(
    driver: &AdminDriver<'_>,
    session: &mut AdminSession<'_>,
) -> Result<bool, DbError> {
    const PROCESS: &str = "SELECT pg_backend_pid()";
    if session.dialect() != Dialect::Postgres || session.product().name != "PostgreSQL" {
        return Ok(false);
    }
    let Some(process) = answer_if_any(session, PROCESS).await? else { return Ok(false) };
    // The log-in has named the process, if no pooler made another one up.
    let login_process =
        session.proof().and_then(|proof| proof.process).map(|process| process.to_string());
    if login_process.is_some() && login_process.as_deref() == process.single() {
        return Ok(false);
    }
    // The same number, and so the same host.
    let mut second = driver.connect(0).await?;
    match answer(&mut second, "BEGIN").await {
        Err(error) if error.message().contains("pooling mode") => return Ok(true),
        began => began?,
    };
    // Where both are one process, a question of this session would wait for the other's transaction.
    let is_pooled = answer(&mut second, PROCESS).await? == process
        || answer(session, PROCESS).await? != process;
    answer(&mut second, "ROLLBACK").await?;
    second.close().await;
    Ok(is_pooled)
}

/// The first column of an answer; NULL is left out.
pub async fn column<C: FromIterator<String>>(
    session: &mut AdminSession<'_>,
    sql: &str,
) -> Result<C, DbError> {
    let rows = answer(session, sql).await?.rows.into_iter();
    Ok(rows.filter_map(|row| row.into_iter().next().flatten()).collect())
}

/// The rows of an answer as integers; what is not an integer is `otherwise`.
pub async fn integers(
    session: &mut AdminSession<'_>,
    sql: &str,
    otherwise: i64,
) -> Result<Vec<Vec<i64>>, DbError> {
    let number =
        |cell: Option<String>| cell.and_then(|text| text.parse().ok()).unwrap_or(otherwise);
    let rows = answer(session, sql).await?.rows.into_iter();
    Ok(rows.map(|row| row.into_iter().map(number).collect()).collect())
}

/// The first two columns of an answer as names and values; NULL is an empty value.
pub async fn pairs(
    session: &mut AdminSession<'_>,
    sql: &str,
) -> Result<HashMap<String, String>, DbError> {
    let pairs = answer(session, sql).await?.rows.into_iter().filter_map(|row| {
        let mut cells = row.into_iter();
        Some((cells.next()??, cells.next().flatten().unwrap_or_default()))
    });
    Ok(pairs.collect())
}

/// The whole number in a cell; a sum is a decimal number on some servers.
pub fn whole<T: FromStr>(cell: &str) -> Option<T> {
    cell.split('.').next()?.parse().ok()
}

/// The single whole number of an answer; `None` when it is NULL or there is none.
pub async fn number<T: FromStr>(
    session: &mut AdminSession<'_>,
    sql: &str,
) -> Result<Option<T>, DbError> {
    Ok(answer(session, sql).await?.single().and_then(whole))
}

/// Looks whether `sessions` sessions can have `each` prepared statements: MySQL counts those of all sessions together.
/// `remedy` follows that of a higher limit.
pub async fn check_prepared(
    session: &mut AdminSession<'_>,
    sessions: u32,
    each: u64,
    remedy: &str,
) -> Result<(), LoadError> {
    if session.dialect() != Dialect::Mysql || each == 0 {
        return Ok(());
    }
    let mut numbers = [None; 2];
    let names = ["VARIABLES LIKE 'max_prepared_stmt_count'", "STATUS LIKE 'Prepared_stmt_count'"];
    for (number, name) in numbers.iter_mut().zip(names) {
        let answer = pairs(session, &format!("SHOW GLOBAL {name}")).await;
        let answer = answer.map_err(while_doing("reading the limit of prepared statements"))?;
        *number = answer.values().next().and_then(|value| whole::<u64>(value));
    }
    let [limit, used] = numbers;
    let Some(limit) = limit else { return Ok(()) };
    prepared_shortage((sessions, each), limit, used.unwrap_or(0), remedy).map_or(Ok(()), Err)
}

fn prepared_shortage(
    (sessions, each): (u32, u64),
    limit: u64,
    used: u64,
    remedy: &str,
) -> Option<LoadError> {
    let needed = u64::from(sessions) * each;
    let free = limit.saturating_sub(used);
    if needed <= free {
        return None;
    }
    let problem = format!(
        "{sessions} sessions need {needed} prepared statements ({each} each), but the server takes only {free} more \
         (max_prepared_stmt_count is {limit})"
    );
    let raise = (needed + used).div_ceil(1_000) * 1_000;
    let hint =
        format!("execute SET GLOBAL max_prepared_stmt_count = {raise} on the server, {remedy}");
    Some(LoadError::data(problem, hint))
}

/// The error in the answer to ANALYZE TABLE of MySQL, which never fails itself.
pub fn analyze_error(answer: &AnswerTable) -> Option<&str> {
    let row = answer.rows.iter().find(|row| {
        let kind = row.get(2).and_then(Option::as_deref);
        kind.is_some_and(|kind| kind.eq_ignore_ascii_case("error"))
    })?;
    Some(row.get(3).and_then(Option::as_deref).unwrap_or("ANALYZE TABLE failed"))
}

const NO_SUCH_TABLE: u32 = 1146;

/// One column of MySQL's answer, from 0, about a table that need not exist.
async fn mysql_column<C: FromIterator<String>>(
    session: &mut AdminSession<'_>,
    sql: &str,
    number: usize,
) -> Result<C, DbError> {
    let answer = match answer(session, sql).await {
        Err(error) if error.errno() == NO_SUCH_TABLE => Default::default(),
        answer => answer?,
    };
    Ok(answer.rows.into_iter().filter_map(|row| row.into_iter().nth(number)?).collect())
}

/// The tables, foreign ones among them, and views that statements without a schema name can reach.
pub async fn tables(session: &mut AdminSession<'_>) -> Result<HashSet<String>, DbError> {
    let sql = match session.dialect() {
        Dialect::Mysql => "SHOW TABLES",
        Dialect::Postgres => {
            "SELECT c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.relkind \
             IN ('r', 'p', 'v', 'f') AND n.nspname = ANY (current_schemas(false))"
        }
        Dialect::Sqlite => "SELECT name FROM sqlite_master WHERE type = 'table'",
    };
    column(session, sql).await
}

/// Begins the marks of all tables that dyno makes.
pub const MARK: &str = "dyno ";

/// Creates a table that has the observer's mark from its first moment, so that an interruption leaves none without it.
/// Servers that understand no comment there get the mark afterwards; those that keep no comments have none.
pub async fn create_table(
    session: &mut AdminSession<'_>,
    table: &str,
    sql: &str,
    observer: &dyn LoadObserver,
) -> Result<(), DbError> {
    let Some(mark) = observer.table_mark() else { return answer(session, sql).await.map(drop) };
    let postgres_comment = format!("COMMENT ON TABLE {table} IS '{mark}'");
    let (marked, comment) = match session.dialect() {
        Dialect::Mysql => {
            let comment = format!("COMMENT = '{mark}'");
            (format!("{sql} {comment}"), format!("ALTER TABLE {table} {comment}"))
        }
        // Statements that are sent together are one transaction.
        Dialect::Postgres => (format!("{sql}; {postgres_comment}"), postgres_comment),
        Dialect::Sqlite => return answer(session, sql).await.map(drop),
    };
    if answer_if_any(session, &marked).await?.is_none() {
        answer(session, sql).await?;
        answer_if_any(session, &comment).await?;
    }
    Ok(())
}

/// Tables that dyno has not made, views among them; none where the observer marks none. They are used as they are or
/// refused.
pub async fn foreign(
    session: &mut AdminSession<'_>,
    observer: &dyn LoadObserver,
) -> Result<HashSet<String>, LoadError> {
    match observer.table_mark() {
        Some(_) => {
            unmarked(session, MARK).await.map_err(while_doing("looking whose the tables are"))
        }
        None => Ok(HashSet::new()),
    }
}

/// The tables whose comment does not begin with this mark; none of a server that keeps no comments.
pub async fn unmarked(
    session: &mut AdminSession<'_>,
    mark: &str,
) -> Result<HashSet<String>, DbError> {
    let (sql, column) = match session.dialect() {
        Dialect::Mysql => ("SHOW TABLE STATUS", 17),
        Dialect::Postgres => (
            "SELECT c.relname, obj_description(c.oid, 'pg_class') FROM pg_class c JOIN pg_namespace n \
             ON n.oid = c.relnamespace WHERE c.relkind IN ('r', 'p', 'v', 'f') AND n.nspname = ANY (current_schemas(false))",
            1,
        ),
        Dialect::Sqlite => return Ok(HashSet::new()),
    };
    let tables = answer_if_any(session, sql).await?.unwrap_or_default().rows.into_iter();
    let rows = tables.filter(|row| {
        let comment = row.get(column).map(Option::as_deref);
        comment.is_some_and(|comment| comment.is_none_or(|comment| !comment.starts_with(mark)))
    });
    Ok(rows.filter_map(|row| row.into_iter().next().flatten()).collect())
}

/// The columns of a table, in their order; none if it doesn't exist.
pub async fn columns(session: &mut AdminSession<'_>, table: &str) -> Result<Vec<String>, DbError> {
    let sql = match session.dialect() {
        Dialect::Mysql => {
            return mysql_column(session, &format!("SHOW COLUMNS FROM {table}"), 0).await;
        }
        Dialect::Postgres => format!(
            "SELECT attname FROM pg_attribute WHERE attrelid = to_regclass('{table}') AND attnum > 0 \
             AND NOT attisdropped ORDER BY attnum"
        ),
        Dialect::Sqlite => format!("SELECT name FROM pragma_table_info('{table}')"),
    };
    column(session, &sql).await
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
    let names = create.lines().filter_map(|line| {
        let (name, _) = line.trim().strip_prefix("CONSTRAINT ")?.split_once(" FOREIGN KEY")?;
        Some(name.trim_matches(['`', '"']).to_owned())
    });
    names.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prepared_statements_that_do_not_fit_are_told() {
        assert!(prepared_shortage((511, 32), 16_382, 0, "").is_none());
        let error = prepared_shortage((1_000, 32), 16_382, 12, "or use fewer").unwrap();
        assert_eq!(
            error.to_string(),
            "1000 sessions need 32000 prepared statements (32 each), but the server takes only \
             16370 more (max_prepared_stmt_count is 16382)"
        );
        let hint = "execute SET GLOBAL max_prepared_stmt_count = 33000 on the server, or use fewer";
        assert_eq!(error.hint(), Some(hint));
    }

    #[test]
    fn foreign_keys_are_read_with_any_quotes() {
        let create = "CREATE TABLE `t` (\n  `a` int,\n  PRIMARY KEY (`a`),\n  KEY `k` (`a`),\n  CONSTRAINT \
                      `first` FOREIGN KEY (`a`) REFERENCES `u` (`a`),\n  CONSTRAINT \"second\" FOREIGN KEY \
                      (\"a\") REFERENCES \"u\" (\"a\"),\n  CONSTRAINT `c` CHECK (`a` > 0)\n)";
        assert_eq!(foreign_keys_in(create), ["first", "second"]);
    }
}
