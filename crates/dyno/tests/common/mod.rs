//! What tests on clusters share.

use dyno_core::{DbError, Driver, Session, Table};
use dyno_drivers::Target;
use dyno_drivers::mysql::MysqlDriver;
use dyno_drivers::postgres::PostgresDriver;

/// The first value of a server's answer; empty where there is none.
pub(crate) fn ask(url: &str, sql: &str) -> Result<String, DbError> {
    let target: Target = url.parse().expect("a URL");
    match target.dialect {
        dyno_core::Dialect::Postgres => asked(&PostgresDriver::new(&target)?, sql),
        _ => asked(&MysqlDriver::new(&target)?, sql),
    }
}

fn asked<D: Driver>(driver: &D, sql: &str) -> Result<String, DbError> {
    let asked = dyno_reactor::block_on(async {
        let mut session = driver.connect(0).await?;
        let mut table = Table::default();
        session.query(sql, &mut table).await?;
        session.close().await;
        Ok(table.single().unwrap_or_default().to_owned())
    });
    asked.expect("a loop")
}
