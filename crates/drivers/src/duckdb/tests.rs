use super::*;
use crate::tests::{DatabaseFolder, query, single, values_come_back, with_session_of};
use dyno_core::{BulkMethod, Cause, DbError, Discard, ErrorClass, RowSource, RowWriter, Session};
use dyno_reactor::block_on;
use dyno_testkit::Transcript;
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

impl DatabaseFolder {
    fn duckdb(&self, query: &str) -> DuckdbDriver {
        DuckdbDriver::new(&self.target("duckdb", query)).unwrap()
    }
}

fn with_session(steps: impl AsyncFnOnce(&mut DuckdbSession)) {
    let scratch = DatabaseFolder::new();
    with_session_of(&scratch.duckdb(""), steps);
}

async fn refused(session: &mut DuckdbSession, sql: &str) -> DbError {
    session.query(sql, &mut Discard).await.unwrap_err()
}

#[test]
fn variables_of_the_url_are_set_and_wrong_ones_are_refused() {
    let scratch = DatabaseFolder::new();
    let threads = |driver: DuckdbDriver| {
        block_on(async {
            let mut session = driver.connect(0).await.unwrap();
            single(&mut session, "SELECT current_setting('threads')").await
        })
        .unwrap()
    };
    assert_eq!(threads(scratch.duckdb("?set.threads=3")), "3");
    let error = DuckdbDriver::new(&scratch.target("duckdb", "?set.no_such=1")).unwrap_err();
    assert!(error.message().contains("no_such"), "{error}");
}

#[test]
fn values_go_in_and_come_back() {
    with_session(async |session| {
        assert_eq!(
            (session.product().name.as_str(), session.dialect()),
            ("DuckDB", Dialect::Postgres)
        );
        assert!(session.product().version.starts_with("1."), "{:?}", session.product());
        query(session, "CREATE TABLE t (i bigint, d double, s varchar, n integer)").await;
        let insert = "INSERT INTO t VALUES ($1, $2, $3, $4)";
        values_come_back(session, insert, "SELECT * FROM t WHERE s = $1").await;
    });
}

/// Sums of TPC-H are wider than 64 bits' decimals, and its dates reach back before 1970 nowhere.
#[test]
fn values_print_as_duckdb_prints_them() {
    let printed = [
        ("-0.05::decimal(15,2)", "-0.05"),
        ("sum(9999999999.99::decimal(15,2)) FROM range(1000)", "9999999999990.00"),
        (
            "170141183460469231731687303715884105727::hugeint",
            "170141183460469231731687303715884105727",
        ),
        ("avg(x) FROM (VALUES (1), (2)) v(x)", "1.5"),
        ("date '1992-02-29'", "1992-02-29"),
        ("date '1969-12-31'", "1969-12-31"),
        ("date '2000-03-01'", "2000-03-01"),
        ("timestamp '1998-12-01 07:05:09.25'", "1998-12-01 07:05:09.250000"),
        ("1 < 2", "true"),
        ("NULL", "NULL"),
    ];
    with_session(async |session| {
        for (expression, text) in printed {
            assert_eq!(
                single(session, &format!("SELECT {expression}")).await,
                text,
                "{expression}"
            );
        }
        // The calendar, against DuckDB's own over 400 years.
        let days = "SELECT d::date, d::date::varchar FROM range(date '1700-01-01', date '2100-03-02', \
                    interval 17 day) r(d)";
        let days = query(session, days).await;
        assert!(days.rows.len() > 8_000);
        for row in &days.rows {
            assert_eq!(row[0], row[1]);
        }
    });
}

#[test]
fn every_answer_is_described() {
    with_session(async |session| {
        let mut transcript = Transcript::default();
        for (sql, told) in [
            ("CREATE TABLE t (a integer, k integer)", &["done"] as &[_]),
            ("INSERT INTO t VALUES (1, 1), (2, 2)", &["done 2 changed"]),
            (
                "SELECT a, a + 1 AS b FROM t ORDER BY a",
                &["columns a, b", "row 1, 2", "row 2, 3", "done 2 rows"],
            ),
            ("SELECT a FROM t WHERE a > 7", &["columns a", "done 0 rows"]),
            ("BEGIN", &["done"]),
            ("UPDATE t SET k = 3 WHERE a = 7", &["done"]),
            ("DELETE FROM t WHERE a = 1 RETURNING a", &["columns a", "row 1", "done 1 rows"]),
            ("COMMIT", &["done"]),
            ("SET threads = 1", &["done"]),
            ("CREATE INDEX i ON t (a)", &["done"]),
        ] {
            session.query(sql, &mut transcript).await.unwrap();
            assert_eq!(transcript.take(), told, "{sql}");
        }
        let several = "INSERT INTO t VALUES (5, 5); SELECT count(*) FROM t";
        assert_eq!(single(session, several).await, "2");
    });
}

/// As many rows as it is told, and a wrong one where it is told.
struct Numbers {
    next: i64,
    rows: i64,
    wrong: Option<i64>,
}

impl RowSource for Numbers {
    fn next_row(&mut self, out: &mut dyn RowWriter) -> bool {
        if self.next == self.rows {
            return false;
        }
        self.next += 1;
        out.int(self.next);
        let money: &[u8] = if self.wrong == Some(self.next) { b"x" } else { b"-12.34" };
        out.text(money);
        out.text(b"1995-06-17");
        out.null();
        true
    }

    fn restart(&mut self) {
        self.next = 0;
    }
}

const COLUMNS: [&str; 4] = ["i", "money", "day", "n"];

#[test]
fn rows_are_appended_all_or_none() {
    with_session(async |session| {
        let create =
            "CREATE TABLE t (n varchar, i integer NOT NULL, money decimal(15,2), day date)";
        query(session, create).await;
        let mut rows = Numbers { next: 0, rows: 300_000, wrong: None };
        let report = session.bulk_load("t", &COLUMNS, &mut rows).await.unwrap();
        assert_eq!((report.rows, report.method), (300_000, BulkMethod::Appender));
        let sums =
            "SELECT count(*) || ' ' || sum(money) || ' ' || min(day) || ' ' || count(n) FROM t";
        let sums = single(session, sums).await;
        assert_eq!(sums, "300000 -3702000.00 1995-06-17 0");

        // More rows than the appender's buffer holds come before the wrong one.
        let mut rows = Numbers { next: 0, rows: 300_000, wrong: Some(299_999) };
        let error = session.bulk_load("t", &COLUMNS, &mut rows).await.unwrap_err();
        assert!(error.message().contains('x'), "{error}");
        assert!(!session.is_in_transaction());
        assert_eq!(single(session, "SELECT count(*) FROM t").await, "300000");

        query(session, "BEGIN").await;
        let mut rows = Numbers { next: 0, rows: 5, wrong: None };
        session.bulk_load("t", &COLUMNS, &mut rows).await.unwrap();
        assert!(session.is_in_transaction());
        session.rollback().await.unwrap();
        assert!(!session.is_in_transaction());
        assert_eq!(single(session, "SELECT count(*) FROM t").await, "300000");
        session.rollback().await.unwrap();
    });
}

#[test]
fn sessions_of_all_drivers_share_one_file() {
    let scratch = DatabaseFolder::new();
    let (first, second) = (scratch.duckdb(""), scratch.duckdb(""));
    block_on(async {
        let mut writer = first.connect(0).await.unwrap();
        let mut reader = second.connect(0).await.unwrap();
        drop((first, second));
        query(&mut writer, "CREATE TABLE t AS SELECT 7 AS a").await;
        assert_eq!(single(&mut reader, "SELECT a FROM t").await, "7");
        drop((writer, reader));
        // Closed for good, and opened anew.
        let again = scratch.duckdb("");
        let mut session = again.connect(0).await.unwrap();
        assert_eq!(single(&mut session, "SELECT a FROM t").await, "7");
    })
    .unwrap();
}

#[test]
fn a_statement_is_interrupted_from_another_thread_and_the_session_lives() {
    with_session(async |session| {
        let interrupt = session.interrupter().unwrap();
        let (done, is_done) = std::sync::mpsc::channel::<()>();
        let interrupting = std::thread::spawn(move || {
            // Again and again: the first one may come before the statement has begun.
            while is_done.recv_timeout(Duration::from_millis(20)) == Err(RecvTimeoutError::Timeout)
            {
                interrupt();
            }
        });
        let endless = "SELECT count(*) FROM range(10000000000) a, range(1000) b";
        let error = refused(session, endless).await;
        drop(done);
        interrupting.join().unwrap();
        assert_eq!(error.sqlstate(), "57014", "{error}");
        assert!(!error.is_fatal());
        assert_eq!(single(session, "SELECT 1").await, "1");
    });
}

#[test]
fn errors_have_their_class() {
    with_session(async |session| {
        query(session, "CREATE TABLE t (a integer PRIMARY KEY)").await;
        query(session, "INSERT INTO t VALUES (1)").await;
        let twice = refused(session, "INSERT INTO t VALUES (1)").await;
        assert_eq!((twice.class(), twice.sqlstate()), (ErrorClass::Constraint, "23000"));
        let unknown = refused(session, "SELECT * FROM no_such_table").await;
        assert_eq!(unknown.class(), ErrorClass::Other);
        assert!(unknown.message().contains("no_such_table"), "{unknown}");
        let _ = refused(session, "").await;
        assert_eq!(single(session, "SELECT count(*) FROM t").await, "1");
    });
}

#[test]
fn what_is_no_database_is_refused() {
    let scratch = DatabaseFolder::new();
    std::fs::write(scratch.0.path().join("test.db"), vec![b'x'; 20_000]).unwrap();
    let error = DuckdbDriver::new(&scratch.target("duckdb", "")).unwrap_err();
    assert_eq!(error.cause(), Cause::Rejected, "{error}");
    assert!(error.message().contains("no DuckDB database"), "{error}");

    let target: TargetUrl = "duckdb:/no/such/folder/x.db".parse().unwrap();
    let error = DuckdbDriver::new(&target).unwrap_err();
    assert_eq!(error.cause(), Cause::Unreachable, "{error}");
    assert!(error.message().contains("/no/such/folder/x.db"), "{error}");
}
