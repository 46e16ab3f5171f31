//! Which node takes writes.

use super::is_given_up;
use crate::databases::{self, Database};
use dyno_core::{AdminDriver, AnswerTable, DbError, Dialect, Driver, MILLISECOND, Nanos, Session};
use dyno_reactor::{block_on, now, sleep_until, timeout};

/// How long a node may take to say so; one that is dead or frozen takes all of it.
const PATIENCE: Nanos = 500 * MILLISECOND;

/// Whether a node says that it takes writes; `None` when it doesn't answer.
pub(super) fn takes_writes(node: &Database) -> Option<bool> {
    block_on(answer(node)).ok()?
}

/// Waits until a node says that it takes writes (or that it takes none), `patience` at most, and no longer than
/// whoever has stopped the run; also tells how often it has answered.
pub(super) fn wait_for(node: &Database, wanted: bool, patience: Nanos) -> (bool, u64) {
    let waited = block_on(async {
        let (until, mut answers) = (now() + patience, 0);
        loop {
            let answer = answer(node).await;
            answers += u64::from(answer.is_some());
            if answer == Some(wanted) {
                return (true, answers);
            }
            if now() >= until || is_given_up() {
                return (false, answers);
            }
            sleep_until(now() + 100 * MILLISECOND).await;
        }
    });
    waited.unwrap_or((false, 0))
}

async fn answer(node: &Database) -> Option<bool> {
    timeout(now() + PATIENCE, ask(&node.admin())).await.ok()?.ok()
}

async fn ask(driver: &AdminDriver<'_>) -> Result<bool, DbError> {
    let sql = match driver.dialect() {
        Dialect::Mysql => "SELECT CASE WHEN @@global.read_only THEN 0 ELSE 1 END",
        Dialect::Postgres => "SELECT CASE WHEN pg_is_in_recovery() THEN 0 ELSE 1 END",
        // An embedded database is its only node.
        Dialect::Sqlite => "SELECT 1",
    };
    Ok(text(driver, sql).await?.as_deref() == Some("1"))
}

async fn text(driver: &AdminDriver<'_>, sql: &str) -> Result<Option<String>, DbError> {
    let mut answer = AnswerTable::default();
    databases::in_session(driver, async |session| session.query(sql, &mut answer).await).await?;
    Ok(answer.single().map(str::to_owned))
}
