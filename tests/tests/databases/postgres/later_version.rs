//! The same on PostgreSQL 18, and each family's whole way.

use super::statements::{every_end, every_statement};
use dyno_drivers::postgres::PostgresDriver;
use dyno_testkit::{Postgres, skipped, target};

#[test]
fn postgres_18_answers_cancels_and_runs() {
    let mut server = match Postgres::start_fetched() {
        Ok(server) => server,
        Err(why) => return skipped("postgres_18_answers_cancels_and_runs", &why),
    };
    assert!(server.sql("SHOW server_version").unwrap().starts_with("18."));
    every_statement(&server);
    let driver = PostgresDriver::new(&target(&server.url())).unwrap();
    crate::sysbench::whole_way(&driver);
    crate::pgbench::books_are_compared(&driver);
    every_end(&mut server);
}
