//! Which node takes writes.

use crate::databases::{Database, with_driver};
use dyno_core::{DbError, Dialect, Driver, MILLISECOND, Nanos, Session, Table};
use dyno_reactor::{block_on, now, sleep_until, timeout};

/// How long a node may take to say so; one that is dead or frozen takes all of it.
const PATIENCE: Nanos = 500 * MILLISECOND;

/// True when a node says that it takes writes; false also when it doesn't answer.
pub(super) fn takes_writes(node: &Database) -> bool {
    with_driver!(node, driver => answer(driver, PATIENCE)).unwrap_or(false)
}

/// Waits until a node says that it takes writes (or that it takes none), `patience` at most.
pub(super) fn wait_for(node: &Database, wanted: bool, patience: Nanos) -> bool {
    let waited = block_on(async {
        let until = now() + patience;
        loop {
            let said = with_driver!(node, driver => timeout(now() + PATIENCE, ask(driver)).await);
            if matches!(said, Ok(Ok(answer)) if answer == wanted) {
                return true;
            }
            if now() >= until {
                return false;
            }
            sleep_until(now() + 100 * MILLISECOND).await;
        }
    });
    waited.unwrap_or(false)
}

/// Waits until a replica has all that the primary has, `patience` at most.
pub(super) fn catch_up(primary: &Database, replica: &Database, patience: Nanos) -> bool {
    let until = dyno_reactor::monotonic_now() + patience;
    let position = |database: &Database, is_primary: bool| {
        let found = with_driver!(database, driver => block_on(async {
            match timeout(now() + PATIENCE, text(driver, position_of(driver, is_primary))).await {
                Ok(found) => found.unwrap_or_default(),
                Err(_) => None,
            }
        }));
        found.ok().flatten()
    };
    loop {
        let [of_primary, of_replica] = [position(primary, true), position(replica, false)];
        if of_primary.is_some() && of_primary == of_replica {
            return true;
        }
        if dyno_reactor::monotonic_now() >= until {
            return false;
        }
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
}

/// The statement that tells how far a node's data are. Nobody writes meanwhile, so both sides become equal.
fn position_of<D: Driver>(driver: &D, is_primary: bool) -> &'static str {
    match (driver.dialect(), is_primary) {
        (Dialect::Postgres, true) => "SELECT pg_current_wal_lsn()",
        (Dialect::Postgres, false) => "SELECT pg_last_wal_replay_lsn()",
        // What a replica has applied is in its own binary log where that logs it, as dyno's clusters do.
        (_, _) => "SELECT @@global.gtid_current_pos",
    }
}

fn answer<D: Driver>(driver: &D, patience: Nanos) -> Option<bool> {
    let asked = block_on(async { timeout(now() + patience, ask(driver)).await });
    asked.ok()?.ok()?.ok()
}

async fn ask<D: Driver>(driver: &D) -> Result<bool, DbError> {
    let sql = match driver.dialect() {
        Dialect::Mysql => "SELECT CASE WHEN @@global.read_only THEN 0 ELSE 1 END",
        Dialect::Postgres => "SELECT CASE WHEN pg_is_in_recovery() THEN 0 ELSE 1 END",
        // An embedded database is its only node.
        Dialect::Sqlite => "SELECT 1",
    };
    Ok(text(driver, sql).await?.as_deref() == Some("1"))
}

async fn text<D: Driver>(driver: &D, sql: &str) -> Result<Option<String>, DbError> {
    let mut session = driver.connect(0).await?;
    let mut answer = Table::default();
    let asked = session.query(sql, &mut answer).await;
    session.close().await;
    asked?;
    Ok(answer.single().map(str::to_owned))
}
