//! Requests of scripts to sessions, on a real MariaDB: parameters without types, names and ends of
//! results, statements that are executed once, chains that fail in the middle.

use super::support::{connect, query_rows, run, run_sql, text};
use dyno_core::{Discard, ErrorClass, Executed, Param, ParamType, Session};
use dyno_drivers::mysql::MysqlSession;
use dyno_testkit::{Headings, MariaDb, Transcript, server_or_skip};

const READ: Executed = Executed { has_rows: true, rows: 1, affected: 0 };
const CHANGED: Executed = Executed { has_rows: false, rows: 0, affected: 1 };

#[test]
fn scripts() {
    let server = server_or_skip!(MariaDb, "scripts");
    run(async {
        let mut session = connect(&server.url()).await.unwrap();
        run_sql(&mut session, &["CREATE TABLE t (id INT, d DOUBLE, c VARCHAR(20)) ENGINE=InnoDB"])
            .await;
        types_are_those_of_the_values(&mut session).await;
        names_and_ends_are_told(&mut session).await;
        statements_are_executed_once(&mut session).await;
        chains_fail_in_the_middle(&mut session).await;
        transactions_are_seen(&mut session).await;
        session.close().await;
        changed_records_are_serialization_failures(&server).await;
    });
}

async fn types_are_those_of_the_values(session: &mut MysqlSession) {
    let sql = "INSERT INTO t VALUES (?, ?, ?)";
    let insert = session.prepare(sql, &[ParamType::Inferred; 3]).await.unwrap();
    for params in [
        [Param::Null; 3],
        [Param::Int(-7), Param::Double(0.1), Param::Text("ü".as_bytes())],
        [Param::Text(b"42"), Param::Int(3), Param::Double(0.5)],
    ] {
        assert_eq!(session.execute(insert, &params, &mut Discard).await.unwrap(), CHANGED);
        assert_eq!(session.execute_once(sql, &params, &mut Discard).await.unwrap(), CHANGED);
    }
    let rows =
        query_rows(session, "SELECT COUNT(*), id, d, c FROM t GROUP BY 2, 3, 4 ORDER BY id").await;
    let expected = [
        [text("2"), None, None, None],
        [text("2"), text("-7"), text("0.1"), text("ü")],
        [text("2"), text("42"), text("3"), text("0.5")],
    ];
    assert_eq!(rows, expected);
}

async fn names_and_ends_are_told(session: &mut MysqlSession) {
    let chain = "SELECT 1 AS a, NULL AS `B c`; UPDATE t SET d = 1 WHERE id = 42; \
                 SELECT id FROM t WHERE false; BEGIN; COMMIT";
    let lines = [
        "columns a, B c",
        "row 1, NULL",
        "done 1 rows",
        "done 2 changed",
        "columns id",
        "done 0 rows",
        "done",
        "done",
    ];
    let (mut transcript, mut headings) = (Transcript::default(), Headings::default());
    session.query(chain, &mut transcript).await.unwrap();
    assert_eq!(transcript.take(), lines);
    session.query("UPDATE t SET d = 2 WHERE id = 42", &mut Discard).await.unwrap();
    session.query(chain, &mut headings).await.unwrap();
    let without_rows: Vec<_> = lines.into_iter().filter(|line| !line.starts_with("row")).collect();
    assert_eq!(headings.0.take(), without_rows);

    let sql = "SELECT id AS x, c AS y FROM t WHERE id = ? LIMIT 1";
    let select = session.prepare(sql, &[ParamType::Inferred]).await.unwrap();
    let lines = ["columns x, y", "row 42, 0.5", "done 1 rows"];
    // The server sends the definitions of the columns once at most; a consumer that does not want
    // them may be the first.
    session.execute(select, &[Param::Int(42)], &mut Discard).await.unwrap();
    for _ in 0..2 {
        session.execute(select, &[Param::Int(42)], &mut transcript).await.unwrap();
        assert_eq!(transcript.take(), lines);
        session.execute(select, &[Param::Int(42)], &mut headings).await.unwrap();
        assert_eq!(headings.0.take(), [lines[0], lines[2]]);
        session.execute_once(sql, &[Param::Int(42)], &mut transcript).await.unwrap();
        assert_eq!(transcript.take(), lines);
        session.queue(select, &[Param::Int(0)]).unwrap();
        session.flush(&mut transcript, &mut Vec::new()).await.unwrap();
        assert_eq!(transcript.take(), ["columns x, y", "done 0 rows"]);
    }
    // The definitions change, and with them the names.
    run_sql(session, &["CREATE TABLE s (one INT)", "INSERT INTO s VALUES (1)"]).await;
    let star = session.prepare("SELECT * FROM s", &[]).await.unwrap();
    session.execute(star, &[], &mut transcript).await.unwrap();
    run_sql(session, &["ALTER TABLE s ADD two INT DEFAULT 2"]).await;
    session.execute(star, &[], &mut Discard).await.unwrap();
    session.execute(star, &[], &mut transcript).await.unwrap();
    let twice =
        ["columns one", "row 1", "done 1 rows", "columns one, two", "row 1, 2", "done 1 rows"];
    assert_eq!(transcript.take(), twice);
}

async fn statements_are_executed_once(session: &mut MysqlSession) {
    let count = "SHOW GLOBAL STATUS LIKE 'Prepared_stmt_count'";
    let before = query_rows(session, count).await;
    for value in 0..3 {
        let mut transcript = Transcript::default();
        let params = [Param::Int(value), Param::Text(b"x"), Param::Null];
        let executed = session.execute_once("SELECT ? + 1 AS n, ?, ?", &params, &mut transcript);
        assert_eq!(executed.await.unwrap(), READ);
        assert_eq!(transcript.0[1], format!("row {}, x, NULL", value + 1));
    }
    assert_eq!(session.execute_once("SELECT 1", &[], &mut Discard).await.unwrap(), READ);
    // What can't be prepared is sent as text.
    session.execute_once("LOCK TABLES t READ", &[], &mut Discard).await.unwrap();
    session.execute_once("UNLOCK TABLES", &[], &mut Discard).await.unwrap();
    let too_few = session.execute_once("SELECT ?", &[], &mut Discard).await.unwrap_err();
    assert!(!too_few.is_fatal() && too_few.message().contains("1 placeholders"), "{too_few}");
    let wrong = session.execute_once("SELECT nonsense", &[], &mut Discard).await.unwrap_err();
    assert_eq!(wrong.errno(), 1054);
    let first = session.prepare("SELECT 1", &[]).await.unwrap();
    assert_ne!(query_rows(session, count).await, before);
    session.forget(first).await.unwrap();
    assert_eq!(session.execute(first, &[], &mut Discard).await.unwrap_err().errno(), 0);
    assert_eq!(query_rows(session, count).await, before, "all are closed");
    let queued = session.queue_once("SELECT 1", &[]).unwrap_err();
    assert_eq!((queued.sqlstate(), queued.is_fatal()), ("0A000", false));
    session.queue_sync().unwrap();
}

async fn chains_fail_in_the_middle(session: &mut MysqlSession) {
    let mut transcript = Transcript::default();
    let chain = "INSERT INTO t VALUES (77, 0, ''); SELECT 1 AS a; SELECT nonsense; SELECT 2";
    let error = session.query(chain, &mut transcript).await.unwrap_err();
    assert_eq!((error.errno(), error.is_fatal()), (1054, false));
    assert_eq!(transcript.take(), ["done 1 changed", "columns a", "row 1", "done 1 rows"]);
    // Each statement stood alone.
    assert_eq!(query_rows(session, "SELECT COUNT(*) FROM t WHERE id = 77").await, [[text("1")]]);
}

async fn transactions_are_seen(session: &mut MysqlSession) {
    assert!(!session.is_in_transaction());
    run_sql(session, &["BEGIN"]).await;
    assert!(session.is_in_transaction());
    session.execute_once("SELECT COUNT(*) FROM t", &[], &mut Discard).await.unwrap();
    assert!(session.is_in_transaction(), "the end of rows says it too");
    session.query("SELECT nonsense", &mut Discard).await.unwrap_err();
    assert!(session.is_in_transaction(), "an error does not end it");
    let commit = session.prepare("COMMIT", &[]).await.unwrap();
    session.execute(commit, &[], &mut Discard).await.unwrap();
    assert!(!session.is_in_transaction());
    run_sql(session, &["START TRANSACTION"]).await;
    session.rollback().await.unwrap();
    assert!(!session.is_in_transaction());
}

/// MariaDB's snapshot isolation (ER_CHECKREAD): run again, it may go well.
async fn changed_records_are_serialization_failures(server: &MariaDb) {
    let (mut one, mut two) =
        (connect(&server.url()).await.unwrap(), connect(&server.url()).await.unwrap());
    let on = "SET innodb_snapshot_isolation=ON";
    if one.query(on, &mut Discard).await.is_err() {
        return dyno_testkit::skipped("changed records", "this MariaDB has no snapshot isolation");
    }
    run_sql(&mut one, &["BEGIN", "SELECT * FROM t"]).await;
    run_sql(&mut two, &["UPDATE t SET d = d + 1 WHERE id = 77"]).await;
    let update = "UPDATE t SET d = d + 2 WHERE id = 77";
    let error = one.query(update, &mut Discard).await.unwrap_err();
    assert_eq!((error.errno(), error.class()), (1020, ErrorClass::Serialization), "{error}");
    one.rollback().await.unwrap();
}
