//! One session for a statement or two.

use dyno_core::{AnswerTable, DbError, Dialect, Driver, SECOND, Session};
use dyno_drivers::TargetUrl;
use dyno_drivers::mysql::MysqlDriver;
use dyno_drivers::postgres::PostgresDriver;
use dyno_drivers::sqlite::SqliteDriver;
use dyno_reactor::{block_on, now, timeout};

pub fn target(url: &str) -> TargetUrl {
    url.parse().unwrap_or_else(|error| panic!("{url}: {error}"))
}

/// Does something with one session.
pub fn with_session<D: Driver, T>(driver: &D, work: impl AsyncFn(&mut D::Session) -> T) -> T {
    let result = block_on(async {
        let mut session = driver.connect(0).await.expect("a session");
        let result = work(&mut session).await;
        session.close().await;
        result
    });
    result.expect("a loop")
}

/// The answer to a statement, within a minute.
pub fn query_url(url: &str, sql: &str) -> Result<AnswerTable, DbError> {
    let target = target(url);
    match target.dialect {
        Dialect::Postgres => query(&PostgresDriver::new(&target)?, sql),
        Dialect::Sqlite => query(&SqliteDriver::new(&target)?, sql),
        _ => query(&MysqlDriver::new(&target)?, sql),
    }
}

fn query<D: Driver>(driver: &D, sql: &str) -> Result<AnswerTable, DbError> {
    let request = async {
        let mut session = driver.connect(0).await?;
        let mut table = AnswerTable::default();
        session.query(sql, &mut table).await?;
        session.close().await;
        Ok(table)
    };
    let answer = block_on(async { timeout(now() + 60 * SECOND, request).await });
    answer.expect("a loop").unwrap_or_else(|_| Err(DbError::lost("no answer within a minute")))
}

/// The one number that a statement answers with.
pub fn number<D: Driver>(driver: &D, sql: &str) -> u64 {
    let table = query(driver, sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
    let number = table.single().and_then(|text| text.parse().ok());
    number.unwrap_or_else(|| panic!("{sql}: {table:?}"))
}
