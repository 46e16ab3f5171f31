//! Balances on real databases.

use dyno_core::{AdminSession, Discard, Driver, Session};
use dyno_drivers::mysql::MysqlDriver;
use dyno_drivers::postgres::PostgresDriver;
use dyno_drivers::sqlite::SqliteDriver;
use dyno_pgbench::check::{Balances, Ledger, balances};
use dyno_pgbench::script::{QueryMode, Script};
use dyno_reactor::block_on;
use dyno_testkit::{MariaDb, MySql, Postgres, Scratch, server_or_skip, target};

const PAYMENT: &str = include_str!("../../../suites/pgbench/read-write.sql");

async fn execute_all<S: Session>(session: &mut S, statements: &[&str]) {
    for sql in statements {
        let result = session.query(sql, &mut Discard).await;
        result.unwrap_or_else(|error| panic!("{sql}: {error}"));
    }
}

/// Pays twice; then books something at a teller only.
pub(crate) fn books_are_compared<D: Driver>(driver: &D) {
    let result = block_on(async {
        let mut session = driver.connect(0).await.expect("connected");
        let missing =
            balances(&mut AdminSession::lent(&mut session)).await.expect_err("there are no tables");
        assert!(!missing.is_fatal(), "{missing}");
        execute_all(
            &mut session,
            &[
                "CREATE TABLE pgbench_accounts (aid int PRIMARY KEY, abalance int)",
                "CREATE TABLE pgbench_tellers (tid int PRIMARY KEY, tbalance int)",
                "CREATE TABLE pgbench_branches (bid int PRIMARY KEY, bbalance int)",
                "CREATE TABLE pgbench_history (delta int)",
            ],
        )
        .await;
        assert_eq!(
            balances(&mut AdminSession::lent(&mut session)).await.expect("sums"),
            Balances::default()
        );
        execute_all(
            &mut session,
            &[
                "INSERT INTO pgbench_accounts VALUES (1, 2000000000), (2, 2000000000), (3, -7)",
                "INSERT INTO pgbench_tellers VALUES (1, 5), (2, 5)",
                "INSERT INTO pgbench_branches VALUES (1, 0)",
                "INSERT INTO pgbench_history VALUES (9)",
            ],
        )
        .await;
        let before = balances(&mut AdminSession::lent(&mut session)).await.expect("sums");
        assert_eq!((before.sums[0], before.sums[1]), (3_999_999_993, 10), "more than 32 bits");
        execute_all(
            &mut session,
            &[
                "UPDATE pgbench_accounts SET abalance = abalance - 4000 WHERE aid IN (1, 2)",
                "UPDATE pgbench_tellers SET tbalance = tbalance - 4000",
                "UPDATE pgbench_branches SET bbalance = bbalance - 8000",
                "INSERT INTO pgbench_history VALUES (-4000), (-4000)",
            ],
        )
        .await;
        let payment =
            Script::parse(PAYMENT.as_bytes(), "payment.sql", QueryMode::Simple).expect("a script");
        let ledger = Ledger::from_scripts([&payment]);
        let paid = balances(&mut AdminSession::lent(&mut session))
            .await
            .expect("sums")
            .change_since(&before);
        assert_eq!((paid.sums[2], paid.history_rows), (-8000, 2));
        assert!(paid.verdict(&ledger).expect("a verdict").is_balanced);
        execute_all(
            &mut session,
            &["UPDATE pgbench_tellers SET tbalance = tbalance + 1 WHERE tid = 2"],
        )
        .await;
        let broken = balances(&mut AdminSession::lent(&mut session))
            .await
            .expect("sums")
            .change_since(&before);
        let verdict = broken.verdict(&ledger).expect("a verdict");
        assert!(
            !verdict.is_balanced && verdict.evidence.to_string().contains("tellers by -7999"),
            "{verdict:?}"
        );
        session.close().await;
    });
    result.expect("an event loop");
}

#[test]
fn on_sqlite() {
    let scratch = Scratch::new();
    let url = format!("sqlite:{}", scratch.file("small.db").display());
    books_are_compared(&SqliteDriver::new(&target(&url)).expect("a driver"));
}

#[test]
fn on_mariadb() {
    let server = server_or_skip!(MariaDb, "on_mariadb");
    let driver = MysqlDriver::new(&target(&server.url())).expect("a driver");
    books_are_compared(&driver);
}

#[test]
fn on_mysql() {
    let server = server_or_skip!(MySql, "on_mysql");
    let driver = MysqlDriver::new(&target(&server.url())).expect("a driver");
    books_are_compared(&driver);
}

#[test]
fn on_postgres() {
    let server = server_or_skip!(Postgres, "on_postgres");
    let driver = PostgresDriver::new(&target(&server.url())).expect("a driver");
    books_are_compared(&driver);
}
