use super::*;
use crate::tests::{DatabaseFolder, counts, query, single, values_come_back, with_driver_session};
use dyno_core::{
    AnswerTable, BulkMethod, Cause, Discard, ErrorClass, Param, ParamType, RowSource, RowWriter,
    Session,
};
use dyno_reactor::block_on;
use dyno_testkit::{Headings, Transcript};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

impl DatabaseFolder {
    fn driver(&self, query: &str) -> SqliteDriver {
        SqliteDriver::new(&self.target("sqlite", query)).unwrap()
    }
}

fn with_session(steps: impl AsyncFnOnce(&mut SqliteSession)) {
    let scratch = DatabaseFolder::new();
    with_driver_session(&scratch.driver(""), steps);
}

#[test]
fn settings_are_as_documented_and_as_asked_for() {
    let scratch = DatabaseFolder::new();
    for (query, expected) in [
        ("", ["wal", "1", "1", "5000"]),
        ("?journal=delete&synchronous=full&busy_timeout_ms=7", ["delete", "2", "1", "7"]),
    ] {
        let driver = scratch.driver(query);
        let values = block_on(async {
            let mut session = driver.connect(0).await.unwrap();
            let mut values = Vec::new();
            for name in ["journal_mode", "synchronous", "foreign_keys", "busy_timeout"] {
                values.push(single(&mut session, &format!("PRAGMA {name}")).await);
            }
            values
        });
        assert_eq!(values.unwrap(), expected);
    }
}

#[test]
fn values_go_in_and_come_back() {
    with_session(async |session| {
        assert_eq!(session.product().name, "SQLite");
        assert!(session.product().version.starts_with("3."));
        query(session, "CREATE TABLE t (i INTEGER, d REAL, s TEXT, n TEXT)").await;
        let insert = "INSERT INTO t VALUES (?, ?, ?, ?)";
        values_come_back(session, insert, "SELECT * FROM t WHERE s = ?").await;
        let row = &query(session, "SELECT i, d, s, n, 2.0 FROM t").await.rows[0];
        let words: Vec<_> = row.iter().map(Option::as_deref).collect();
        let expected = [Some("-9223372036854775808"), Some("0.5"), Some("17"), None, Some("2.0")];
        assert_eq!(words, expected);
    });
}

#[test]
fn changes_are_counted_for_the_statement_that_made_them() {
    with_session(async |session| {
        let sql = "CREATE TABLE t (k INTEGER PRIMARY KEY, v INT); \
                   INSERT INTO t VALUES (1, 1), (2, 2), (3, 3); SELECT k FROM t; SELECT 1";
        let executed = session.query(sql, &mut Discard).await.unwrap();
        assert_eq!(counts(executed), (true, 4, 3));
        for (sql, expected) in [
            ("UPDATE t SET v = 9 WHERE k < 3", (false, 0, 2)),
            ("BEGIN", (false, 0, 0)),
            ("UPDATE t SET v = 9 WHERE k = 77", (false, 0, 0)),
            ("SELECT k FROM t WHERE k = 77", (true, 0, 0)),
            ("DELETE FROM t WHERE k = 1 RETURNING k", (true, 1, 1)),
            ("COMMIT", (false, 0, 0)),
            ("CREATE INDEX i ON t (v)", (false, 0, 0)),
        ] {
            let statement = session.prepare(sql, &[]).await.unwrap();
            let executed = session.execute(statement, &[], &mut Discard).await.unwrap();
            assert_eq!(counts(executed), expected, "{sql}");
        }
    });
}

#[test]
fn a_flight_runs_in_order_and_each_command_stands_alone() {
    with_session(async |session| {
        query(session, "CREATE TABLE t (k INTEGER PRIMARY KEY, s TEXT)").await;
        let insert = "INSERT INTO t VALUES (?, ?)";
        let insert = session.prepare(insert, &[ParamType::Int, ParamType::Text]).await.unwrap();
        let select = session.prepare("SELECT s FROM t ORDER BY k", &[]).await.unwrap();
        for (key, text) in [(1, "one"), (1, "again"), (2, "two")] {
            session.queue(insert, &[Param::Int(key), Param::Text(text.as_bytes())]).unwrap();
        }
        session.queue(select, &[]).unwrap();
        let (mut table, mut results) = (AnswerTable::default(), Vec::new());
        session.flush(&mut table, &mut results).await.unwrap();
        let words: Vec<_> = table.rows.iter().map(|row| row[0].as_deref().unwrap()).collect();
        assert_eq!(words, ["one", "two"]);
        assert_eq!(results.len(), 4);
        let error = results[1].as_ref().unwrap_err();
        assert_eq!((error.class(), error.errno()), (ErrorClass::Constraint, 1555));
        assert_eq!(error.sqlstate(), "23000");
        assert_eq!(counts(*results[3].as_ref().unwrap()), (true, 2, 0));
        results.clear();
        session.flush(&mut table, &mut results).await.unwrap();
        assert!(results.is_empty());
    });
}

#[test]
fn locks_run_into_the_time_limit_and_a_rollback_helps() {
    let scratch = DatabaseFolder::new();
    let driver = scratch.driver("?busy_timeout_ms=5");
    block_on(async {
        let mut writer = driver.connect(0).await.unwrap();
        let mut second = driver.connect(1).await.unwrap();
        query(&mut writer, "CREATE TABLE t (k INT)").await;
        query(&mut writer, "BEGIN IMMEDIATE; INSERT INTO t VALUES (1)").await;
        let error = second.query("BEGIN IMMEDIATE", &mut Discard).await.unwrap_err();
        assert_eq!((error.class(), error.errno()), (ErrorClass::LockTimeout, 5));
        assert!(!error.is_fatal() && error.hint().unwrap().contains("busy_timeout_ms"));
        second.rollback().await.unwrap();

        // A snapshot that is out of date can't become a writer.
        query(&mut second, "BEGIN; SELECT * FROM t").await;
        query(&mut writer, "COMMIT").await;
        let error = second.query("INSERT INTO t VALUES (2)", &mut Discard).await.unwrap_err();
        assert_eq!((error.class(), error.errno()), (ErrorClass::LockTimeout, 517));
        assert!(error.hint().unwrap().contains("BEGIN IMMEDIATE"));
        second.rollback().await.unwrap();
        query(&mut second, "BEGIN; INSERT INTO t VALUES (2)").await;
        second.rollback().await.unwrap();
        assert_eq!(single(&mut second, "SELECT count(*) FROM t").await, "1");
    })
    .unwrap();
}

#[test]
fn mistakes_are_errors_and_leave_the_session_usable() {
    with_session(async |session| {
        let error = session.prepare("SELEC 1", &[]).await.unwrap_err();
        assert_eq!((error.cause(), error.class()), (Cause::Server, ErrorClass::Other));
        assert!(error.message().contains("SELEC"), "{error}");
        let error = session.prepare("SELECT ?", &[]).await.unwrap_err();
        assert!(error.message().contains("1 placeholders for 0 parameters"), "{error}");
        let select = session.prepare("SELECT ?", &[ParamType::Int]).await.unwrap();
        let error = session.execute(select, &[], &mut Discard).await.unwrap_err();
        assert!(error.message().contains("takes 1 parameters"), "{error}");
        let stray = dyno_core::Statement(9);
        assert!(session.execute(stray, &[], &mut Discard).await.is_err());
        let executed = session.execute(select, &[Param::Int(1)], &mut Discard).await.unwrap();
        assert_eq!(counts(executed), (true, 1, 0));
    });
}

#[test]
fn files_that_can_not_be_used_are_explained() {
    let scratch = DatabaseFolder::new();
    let error = open_error(&scratch.0.path().join("no/such/folder.db"));
    assert_eq!(error.cause(), Cause::Unreachable);
    assert!(error.message().contains("no/such/folder.db"), "{error}");
    let text = scratch.0.path().join("text.db");
    std::fs::write(&text, "no database at all, but long enough for a header ".repeat(50)).unwrap();
    let error = open_error(&text);
    assert_eq!(error.cause(), Cause::Rejected);
    assert!(error.message().contains("isn't an SQLite database"), "{error}");
}

fn open_error(path: &Path) -> DbError {
    let url = format!("sqlite:{}", path.display());
    SqliteDriver::new(&url.parse().unwrap()).unwrap_err()
}

/// Rows (n, text, half, NULL); an error in the data at row `bad`.
struct Numbers {
    next: i64,
    end: i64,
    bad: i64,
}

impl RowSource for Numbers {
    fn next_row(&mut self, out: &mut dyn RowWriter) -> bool {
        if self.next == self.end {
            return false;
        }
        out.int(if self.next == self.bad { 0 } else { self.next });
        out.text(format!("row {}", self.next).as_bytes());
        out.double(self.next as f64 / 2.0);
        out.null();
        self.next += 1;
        true
    }

    fn restart(&mut self) {
        self.next = 0;
    }
}

#[test]
fn a_bulk_load_is_all_or_nothing_inside_and_outside_of_a_transaction() {
    with_session(async |session| {
        query(session, "CREATE TABLE t (k INTEGER PRIMARY KEY, s TEXT, d REAL, n INT)").await;
        let columns = ["k", "s", "d", "n"];
        let mut rows = Numbers { next: 0, end: 3, bad: -1 };
        let report = session.bulk_load("t", &columns, &mut rows).await.unwrap();
        assert_eq!((report.rows, report.method), (3, BulkMethod::MultiRowInsert));
        let last = query(session, "SELECT * FROM t WHERE k = 2").await;
        let words: Vec<_> = last.rows[0].iter().map(Option::as_deref).collect();
        assert_eq!(words, [Some("2"), Some("row 2"), Some("1.0"), None]);

        let mut rows = Numbers { next: 10, end: 20, bad: 15 };
        let error = session.bulk_load("t", &columns, &mut rows).await.unwrap_err();
        assert_eq!(error.class(), ErrorClass::Constraint);
        assert_eq!(single(session, "SELECT count(*) FROM t").await, "3");

        query(session, "BEGIN; DELETE FROM t WHERE k > 0").await;
        let mut rows = Numbers { next: 30, end: 40, bad: 35 };
        assert!(session.bulk_load("t", &columns, &mut rows).await.is_err());
        let mut rows = Numbers { next: 30, end: 31, bad: -1 };
        session.bulk_load("t", &columns, &mut rows).await.unwrap();
        query(session, "COMMIT").await;
        assert_eq!(single(session, "SELECT group_concat(k) FROM t").await, "0,30");

        let mut rows = Numbers { next: 50, end: 51, bad: -1 };
        let error = session.bulk_load("t", &["k"], &mut rows).await.unwrap_err();
        assert!(!error.message().is_empty());
        assert_eq!(single(session, "SELECT count(*) FROM t").await, "2");
    });
}

#[test]
fn batches_and_what_is_left_over_all_arrive() {
    with_session(async |session| {
        query(session, "CREATE TABLE t (k INTEGER PRIMARY KEY, s TEXT, d REAL, n INT)").await;
        // Rows are inserted 50 at a time.
        for (first, end) in [(0, 50), (50, 51), (51, 200), (200, 349)] {
            let mut rows = Numbers { next: first, end, bad: -1 };
            let report = session.bulk_load("t", &["k", "s", "d", "n"], &mut rows).await.unwrap();
            assert_eq!(report.rows, (end - first) as u64);
        }
        let sums = "SELECT count(*) || ' ' || sum(k) || ' ' || sum(s = 'row ' || k) || ' ' \
                    || sum(d = k / 2.0) || ' ' || sum(n IS NULL) FROM t";
        assert_eq!(single(session, sums).await, "349 60726 349 349 349");
        let mut rows = Numbers { next: 400, end: 480, bad: 460 };
        assert!(session.bulk_load("t", &["k", "s", "d", "n"], &mut rows).await.is_err());
        assert_eq!(single(session, "SELECT count(*) FROM t").await, "349");
    });
}

#[test]
fn scripts_are_told_names_and_ends() {
    with_session(async |session| {
        let chain = "CREATE TABLE t (id, c); INSERT INTO t VALUES (1, 'x'), (2, NULL); \
                     SELECT id AS a, c AS \"B c\" FROM t; SELECT id FROM t WHERE 0; DELETE FROM t WHERE id = 2";
        let expected = [
            "done",
            "done 2 changed",
            "columns a, B c",
            "row 1, x",
            "row 2, NULL",
            "done 2 rows",
            "columns id",
            "done 0 rows",
            "done 1 changed",
        ];
        let (mut transcript, mut headings) = (Transcript::default(), Headings::default());
        session.query(chain, &mut transcript).await.unwrap();
        assert_eq!(transcript.take(), expected);
        let sql = "SELECT id AS x FROM t WHERE id = ?";
        let select = session.prepare(sql, &[ParamType::Inferred]).await.unwrap();
        let expected = ["columns x", "row 1", "done 1 rows"];
        session.execute(select, &[Param::Int(1)], &mut transcript).await.unwrap();
        assert_eq!(transcript.take(), expected);
        session.execute(select, &[Param::Int(1)], &mut headings).await.unwrap();
        assert_eq!(headings.0.take(), [expected[0], expected[2]]);
        session.execute_once(sql, &[Param::Int(1)], &mut transcript).await.unwrap();
        assert_eq!(transcript.take(), expected);

        let chain = "INSERT INTO t VALUES (3, 3); SELECT nonsense; SELECT 1";
        session.query(chain, &mut transcript).await.unwrap_err();
        assert_eq!(transcript.take(), ["done 1 changed"]);
    });
}

#[test]
fn the_number_of_a_forgotten_statement_is_given_again() {
    with_session(async |session| {
        let first = session.prepare("SELECT 1", &[]).await.unwrap();
        let second = session.prepare("SELECT 2", &[]).await.unwrap();
        session.forget(first).await.unwrap();
        assert!(session.execute(first, &[], &mut Discard).await.is_err());
        assert_eq!(session.prepare("SELECT 3", &[]).await.unwrap(), first);
        for (statement, value) in [(first, "3"), (second, "2")] {
            let mut table = AnswerTable::default();
            session.execute(statement, &[], &mut table).await.unwrap();
            assert_eq!(table.single(), Some(value));
        }
    });
}

#[test]
fn statements_are_executed_once_and_queued() {
    with_session(async |session| {
        session.query("CREATE TABLE t (id UNIQUE, c)", &mut Discard).await.unwrap();
        let insert = "INSERT INTO t VALUES (?, ?)";
        for params in [[Param::Int(1), Param::Double(0.5)], [Param::Text(b"b"), Param::Null]] {
            let executed = session.execute_once(insert, &params, &mut Discard).await.unwrap();
            assert_eq!(counts(executed), (false, 0, 1));
        }
        let error = session.execute_once(insert, &[Param::Null], &mut Discard).await.unwrap_err();
        assert!(error.message().contains("takes 2 parameters"), "{error}");
        let two = session.execute_once("SELECT 1; SELECT 2", &[], &mut Discard).await;
        assert!(!two.unwrap_err().is_fatal(), "nothing of a chain is left out silently");

        let prepared = session.prepare(insert, &[ParamType::Inferred; 2]).await.unwrap();
        session.queue_once("SELECT c FROM t WHERE id = ?", &[Param::Int(1)]).unwrap();
        session.queue(prepared, &[Param::Int(2), Param::Text(b"two")]).unwrap();
        session.queue_once(insert, &[Param::Int(1), Param::Null]).unwrap();
        session.queue_sync().unwrap();
        session.queue_once("SELECT count(*) AS n FROM t", &[]).unwrap();
        let (mut transcript, mut results) = (Transcript::default(), Vec::new());
        session.flush(&mut transcript, &mut results).await.unwrap();
        assert_eq!(
            transcript.take(),
            [
                "columns c",
                "row 0.5",
                "done 1 rows",
                "done 1 changed",
                "columns n",
                "row 3",
                "done 1 rows"
            ]
        );
        assert_eq!(
            results.iter().map(Result::is_ok).collect::<Vec<_>>(),
            [true, true, false, true]
        );
        assert_eq!(results[2].as_ref().unwrap_err().class(), ErrorClass::Constraint);
        results.clear();
        session.flush(&mut transcript, &mut results).await.unwrap();
        assert!(results.is_empty() && transcript.0.is_empty());
    });
}

#[test]
fn transactions_are_seen() {
    with_session(async |session| {
        assert!(!session.is_in_transaction());
        session.query("BEGIN", &mut Discard).await.unwrap();
        assert!(session.is_in_transaction());
        session.query("SELECT nonsense", &mut Discard).await.unwrap_err();
        assert!(session.is_in_transaction());
        session.execute_once("END", &[], &mut Discard).await.unwrap();
        assert!(!session.is_in_transaction());
    });
}

#[test]
fn a_statement_is_interrupted_from_another_thread_and_the_session_goes_on() {
    with_session(async |session| {
        let interrupt = session.interrupter().expect("SQLite blocks its thread");
        let endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) \
                       SELECT count(*) FROM n";
        let is_over = Arc::new(AtomicBool::new(false));
        let stop = Arc::clone(&is_over);
        let interrupting = std::thread::spawn(move || {
            // It may come before the statement has begun, and does nothing then.
            while !stop.load(Ordering::Relaxed) {
                interrupt();
                std::thread::yield_now();
            }
        });
        let error = session.query(endless, &mut Discard).await.unwrap_err();
        is_over.store(true, Ordering::Relaxed);
        interrupting.join().unwrap();
        assert_eq!((error.errno(), error.is_fatal()), (9, false), "{error}");
        assert_eq!(query(session, "SELECT 7").await.single(), Some("7"));
    });
}
