//! Which node takes writes.

use super::is_given_up;
use crate::databases::{self, Database};
use dyno_core::{AdminSession, AnswerTable, DbError, Dialect, MILLISECOND, Nanos, Session};
use dyno_reactor::monotonic_now;
use std::time::Duration;

/// How long a node may take to say so; one that is dead or frozen takes all of it.
const PATIENCE: Nanos = 500 * MILLISECOND;

/// Whether a node says that it takes writes; `None` when it doesn't answer.
pub(super) fn takes_writes(node: &Database) -> Option<bool> {
    databases::ask_within(&node.admin(), PATIENCE, ask).ok()
}

/// Waits until a node says that it takes writes (or that it takes none), `patience` at most, and no longer than
/// whoever has stopped the run; also tells how often it has answered.
pub(super) fn wait_for(node: &Database, wanted: bool, patience: Nanos) -> (bool, u64) {
    let (until, mut answers) = (monotonic_now() + patience, 0);
    loop {
        let answer = takes_writes(node);
        answers += u64::from(answer.is_some());
        if answer == Some(wanted) {
            return (true, answers);
        }
        if monotonic_now() >= until || is_given_up() {
            return (false, answers);
        }
        std::thread::sleep(Duration::from_millis(100));
    }
}

async fn ask(session: &mut AdminSession<'_>) -> Result<bool, DbError> {
    let sql = match session.dialect() {
        Dialect::Mysql => "SELECT CASE WHEN @@global.read_only THEN 0 ELSE 1 END",
        Dialect::Postgres => "SELECT CASE WHEN pg_is_in_recovery() THEN 0 ELSE 1 END",
        // An embedded database is its only node.
        Dialect::Sqlite => "SELECT 1",
    };
    let mut answer = AnswerTable::default();
    session.query(sql, &mut answer).await?;
    Ok(answer.single() == Some("1"))
}
