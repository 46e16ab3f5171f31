//! Whether a run can be made on a database, before anybody connects a thousand times.

use crate::load::{TpccDatabase, foreign_keys};
use crate::{Isolation, prepared_statements};
use dyno_core::{AdminSession, DbError, Dialect, Session, counted, is_shardingsphere};
use dyno_load::query::{answer, answer_if_any, whole};
use dyno_load::settings::ServerNeed;
use dyno_runner::failure::Failure;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Need {
    pub sessions: u32,
    /// The isolation that is asked for; `None` is what is usual for the dialect.
    pub isolation: Option<Isolation>,
    /// Whether foreign keys are expected; `None` where nobody has said.
    pub foreign_keys: Option<bool>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Preflight {
    pub loaded: TpccDatabase,
    /// The isolation that sessions ask for; `None` is what is usual for the dialect.
    pub isolation: Option<Isolation>,
    /// What the user should know, in sentences.
    pub warnings: Vec<String>,
}

/// The needs of a trial at the isolation that is asked for.
pub fn trial_needs(isolation: Option<Isolation>) -> &'static [ServerNeed] {
    match isolation {
        None | Some(Isolation::ReadCommitted) => {
            &[ServerNeed::WHOLE_ANSWERS, ServerNeed::READ_COMMITTED_WRITES]
        }
        _ => &[ServerNeed::WHOLE_ANSWERS],
    }
}

/// Looks at a database that `loaded` describes, and at its server.
///
/// # Errors
/// The server's limits are too low; the session failed.
pub async fn preflight(
    session: &mut AdminSession<'_>,
    loaded: TpccDatabase,
    need: &Need,
) -> Result<Preflight, Failure> {
    let mut warnings = Vec::new();
    check_prepared(session, need.sessions).await?;
    warnings.extend(connections(session, need.sessions).await?);
    let keys = foreign_keys(session).await?;
    warnings.extend(about_foreign_keys(keys, need.foreign_keys));
    let is_passed_on = !is_shardingsphere(&session.product().version);
    warnings.extend(match is_passed_on {
        true => about_isolation(session.dialect(), need.isolation),
        false => need.isolation.and_then(about_a_proxy),
    });
    if session.dialect() == Dialect::Postgres {
        warnings.extend(about_statistics(session).await?);
        warnings.extend(about_small_tables(session).await?);
    }
    let isolation = if is_passed_on { need.isolation } else { Some(Isolation::ServerDefault) };
    Ok(Preflight { loaded, isolation, warnings })
}

/// MySQL counts the prepared statements of all sessions together.
async fn check_prepared(session: &mut AdminSession<'_>, sessions: u32) -> Result<(), Failure> {
    if session.dialect() != Dialect::Mysql {
        return Ok(());
    }
    let Some(limit) = variable(session, "max_prepared_stmt_count").await? else { return Ok(()) };
    let used = status(session, "Prepared_stmt_count").await?.unwrap_or(0);
    let each = prepared_statements(Dialect::Mysql);
    prepared_shortage(sessions, each, limit, used).map_or(Ok(()), Err)
}

fn prepared_shortage(sessions: u32, each: u32, limit: u64, used: u64) -> Option<Failure> {
    let needed = u64::from(sessions) * u64::from(each);
    let free = limit.saturating_sub(used);
    if needed <= free {
        return None;
    }
    let raise = (needed + used).div_ceil(1_000) * 1_000;
    let failure = Failure::new(format!(
        "{sessions} sessions need {needed} prepared statements ({each} each), but the server takes \
         only {free} more (max_prepared_stmt_count is {limit})."
    ));
    Some(failure.with_hint(format!(
        "Execute SET GLOBAL max_prepared_stmt_count = {raise} on the server, or use fewer sessions."
    )))
}

/// Only a warning, because a pooler between us and the server may take more sessions than the server
/// whose limit it shows; without one the next thing to happen is the server's own refusal.
async fn connections(
    session: &mut AdminSession<'_>,
    sessions: u32,
) -> Result<Option<String>, DbError> {
    let (limit, used) = match session.dialect() {
        Dialect::Mysql => {
            let limit = variable(session, "max_connections").await?;
            (limit, status(session, "Threads_connected").await?)
        }
        Dialect::Postgres => (
            number(
                session,
                "SELECT current_setting('max_connections')::bigint - \
                 current_setting('superuser_reserved_connections')::bigint",
            )
            .await?,
            number(session, "SELECT count(*) FROM pg_stat_activity WHERE datname IS NOT NULL")
                .await?,
        ),
        Dialect::Sqlite => (None, None),
    };
    Ok(limit.and_then(|limit| connection_shortage(sessions, limit, used.unwrap_or(0))))
}

fn connection_shortage(sessions: u32, limit: u64, used: u64) -> Option<String> {
    // One of those in use is the one that asks.
    let others = used.saturating_sub(1);
    let free = limit.saturating_sub(others);
    (u64::from(sessions) > free).then(|| {
        format!(
            "{sessions} sessions are asked for, and the server takes {free} (max_connections allows \
             {limit} to users, {others} are in use). Raise max_connections to {} or more, or use \
             fewer sessions, unless a pooler in between makes do with less.",
            u64::from(sessions) + others + 10
        )
    })
}

fn about_foreign_keys(found: usize, expected: Option<bool>) -> Option<String> {
    match (found, expected) {
        (0, Some(true)) => Some(
            "Foreign keys are asked for, but the tables were loaded without them: they are made at \
             the end of a load only."
                .to_owned(),
        ),
        (found, Some(false) | None) if found > 0 => Some(format!(
            "The tables have {found} foreign keys, which every transaction pays for: compare the \
             figures only with those of databases that have them, too."
        )),
        _ => None,
    }
}

fn about_isolation(dialect: Dialect, asked: Option<Isolation>) -> Option<String> {
    let asked = asked?;
    match (dialect, asked) {
        (Dialect::Mysql, Isolation::ServerDefault | Isolation::RepeatableRead) => Some(
            "At REPEATABLE READ, MySQL's own default, a Delivery can meet an order again and again \
             that another session has delivered: it is then tried again as a conflict. Without the \
             option `isolation` sessions ask for READ COMMITTED."
                .to_owned(),
        ),
        (Dialect::Sqlite, Isolation::ReadCommitted | Isolation::RepeatableRead) => Some(
            "SQLite's transactions are serializable: it knows no other isolation, and the option \
             `isolation` does not count."
                .to_owned(),
        ),
        _ => None,
    }
}

/// ShardingSphere-Proxy takes the level that a session asks for, and its sessions at the shards keep theirs.
fn about_a_proxy(asked: Isolation) -> Option<String> {
    let name = asked.name()?;
    Some(format!(
        "ShardingSphere-Proxy passes no isolation on: the option `isolation` ({name}) does not count, and sessions keep \
         the level of the shards."
    ))
}

/// PostgreSQL's planner guesses without them, and its guesses are not the same from run to run.
async fn about_statistics(session: &mut AdminSession<'_>) -> Result<Option<String>, DbError> {
    let missing = number(
        session,
        "SELECT count(*) FROM pg_class WHERE relkind = 'r' AND reltuples < 0 AND relname LIKE \
         'bmsql@_%' ESCAPE '@' AND relname <> 'bmsql_config' AND pg_table_is_visible(oid)",
    )
    .await?
    .unwrap_or(0);
    Ok((missing > 0).then(|| {
        format!(
            "{missing} tables have no statistics: the server guesses how to read them. Execute \
             VACUUM ANALYZE before the run."
        )
    }))
}

/// Up to here PostgreSQL reads the whole table rather than a row by the index.
const DISTRICT_PAGES_READ_AS_A_WHOLE: u64 = 4;

/// A table that was small when it was vacuumed last grows fiftyfold by updates, and what prepared statements have planned
/// for it stays.
async fn about_small_tables(session: &mut AdminSession<'_>) -> Result<Option<String>, DbError> {
    let pages = number(
        session,
        "SELECT max(relpages) FROM pg_class WHERE relkind = 'r' AND reltuples > 0 AND relname = \
         'bmsql_district' AND pg_table_is_visible(oid)",
    )
    .await?;
    Ok(pages.filter(|pages| *pages <= DISTRICT_PAGES_READ_AS_A_WHOLE).map(|pages| {
        format!(
            "bmsql_district has {}: PostgreSQL reads all of it for a row, also when updates have made \
             it much longer, until it is vacuumed, which autovacuum looks for once a minute. \
             Throughput can double then: warm up for two minutes or longer.",
            counted(pages, "page")
        )
    }))
}

async fn variable(session: &mut AdminSession<'_>, name: &str) -> Result<Option<u64>, DbError> {
    read_named_number(session, &format!("SHOW GLOBAL VARIABLES LIKE '{name}'")).await
}

async fn status(session: &mut AdminSession<'_>, name: &str) -> Result<Option<u64>, DbError> {
    read_named_number(session, &format!("SHOW GLOBAL STATUS LIKE '{name}'")).await
}

async fn read_named_number(
    session: &mut AdminSession<'_>,
    sql: &str,
) -> Result<Option<u64>, DbError> {
    let answer = answer(session, sql).await?;
    let cell = answer.rows.first().and_then(|row| row.get(1)?.as_deref());
    Ok(cell.and_then(whole))
}

/// `None` also where the server refuses to say, as compatible ones may.
async fn number(session: &mut AdminSession<'_>, sql: &str) -> Result<Option<u64>, DbError> {
    let answer = answer_if_any(session, sql).await?;
    Ok(answer.and_then(|answer| answer.single().and_then(whole)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prepared_statements_that_do_not_fit_are_told_before_anybody_connects() {
        assert_eq!(prepared_shortage(511, 32, 16_382, 0), None);
        let failure = prepared_shortage(1_000, 32, 16_382, 12).unwrap();
        assert_eq!(
            failure.message,
            "1000 sessions need 32000 prepared statements (32 each), but the server takes only \
             16370 more (max_prepared_stmt_count is 16382)."
        );
        let hint = failure.hint.unwrap();
        assert!(hint.contains("SET GLOBAL max_prepared_stmt_count = 33000 "), "{hint}");
    }

    #[test]
    fn too_many_sessions_are_warned_of() {
        assert_eq!(connection_shortage(151, 151, 1), None);
        let warning = connection_shortage(1_000, 151, 3).unwrap();
        assert!(warning.contains("the server takes 149 "), "{warning}");
        assert!(warning.contains("Raise max_connections to 1012 or more"), "{warning}");
    }

    #[test]
    fn foreign_keys_are_as_asked_for_or_told() {
        assert_eq!(about_foreign_keys(0, None), None);
        assert_eq!(about_foreign_keys(0, Some(false)), None);
        assert_eq!(about_foreign_keys(10, Some(true)), None);
        assert!(about_foreign_keys(10, None).unwrap().contains("10 foreign keys"));
        assert!(about_foreign_keys(0, Some(true)).unwrap().contains("without them"));
    }

    #[test]
    fn isolation_that_harms_or_is_not_to_be_had_is_told() {
        let repeatable = Some(Isolation::RepeatableRead);
        assert!(about_isolation(Dialect::Mysql, repeatable).is_some());
        assert_eq!(about_isolation(Dialect::Postgres, repeatable), None);
        assert_eq!(about_isolation(Dialect::Mysql, None), None);
        assert!(about_isolation(Dialect::Sqlite, repeatable).is_some());
        assert_eq!(about_isolation(Dialect::Sqlite, Some(Isolation::Serializable)), None);
    }
}
