//! Statements, results, errors and flights on a real MariaDB.

use super::support::{Ints, big_packets, connect, driver, query_rows, run, run_sql, text};
use dyno_core::{
    AnswerRow, AnswerTable, Cause, Discard, Driver, ErrorClass, Executed, Param, ParamType, Rows,
    Session,
};
use dyno_drivers::mysql::MysqlSession;
use dyno_testkit::{MariaDb, allocations, server_or_skip, skipped};

#[test]
fn statements() {
    let server = match MariaDb::start_with(&["--max-allowed-packet=64M"]) {
        Ok(server) => server,
        Err(why) => return skipped("statements", &why),
    };
    let sizes = [20_000_000, (1 << 24) - 20, (1 << 24) - 1, 1 << 24, (1 << 25) - 100];
    run(async {
        for (url, sizes) in [(server.url(), &sizes[..]), (server.socket_url(), &sizes[..1])] {
            let mut session = connect(&url).await.unwrap();
            assert_eq!(session.product().name, "MariaDB");
            assert!(!session.product().version.starts_with("5.5.5-"));
            every_statement(&mut session).await;
            big_packets(&mut session, sizes).await;
            session.close().await;
        }
        session_variables(&server).await;
        every_end(&server.url()).await;
        no_allocations(&server).await;
    });
}

/// Statements that every product must execute.
pub(crate) async fn every_statement(session: &mut MysqlSession) {
    prepared_values(session).await;
    prepared_numbers(session).await;
    several_results(session).await;
    text_only_statements(session).await;
    errors(session).await;
    flights(session).await;
}

async fn prepared_values(session: &mut MysqlSession) {
    run_sql(
        session,
        &[
            "DROP TABLE IF EXISTS v",
            "CREATE TABLE v (a BIGINT, b DOUBLE, c VARCHAR(50) CHARACTER SET utf8mb4, d DATETIME(3),
             e DECIMAL(6,2), f TINYINT UNSIGNED, g TIME, h FLOAT, i DATE) ENGINE=InnoDB",
        ],
    )
    .await;
    let types = [ParamType::Int, ParamType::Double, ParamType::Text];
    let insert = session
        .prepare("INSERT INTO v (a,b,c,d,e,f,g,h,i) VALUES (?,?,?,'2026-02-28 01:02:03.456',-1.5,254,'-26:03:04',0.1,'2026-02-28')", &types)
        .await
        .unwrap();
    let executed = session
        .execute(
            insert,
            &[Param::Int(i64::MIN), Param::Double(0.5), Param::Text("Zürich 🎈".as_bytes())],
            &mut Discard,
        )
        .await
        .unwrap();
    assert_eq!(executed, Executed { has_rows: false, rows: 0, affected: 1 });
    let nulls = [Param::Null, Param::Null, Param::Null];
    session.execute(insert, &nulls, &mut Discard).await.unwrap();
    // Other types than declared: they are sent again.
    let odd = [Param::Text(b"-7"), Param::Int(3), Param::Int(12)];
    session.execute(insert, &odd, &mut Discard).await.unwrap();

    let expected = [
        vec![text("-9223372036854775808"), text("0.5"), text("Zürich 🎈")],
        vec![None, None, None],
        vec![text("-7"), text("3"), text("12")],
    ];
    let last_columns =
        ["2026-02-28 01:02:03.456", "-1.50", "254", "-26:03:04", "0.1", "2026-02-28"];
    let select = session.prepare("SELECT * FROM v", &[]).await.unwrap();
    // Twice: the second answer has no column definitions.
    for _ in 0..2 {
        let mut binary = AnswerTable::default();
        let executed = session.execute(select, &[], &mut binary).await.unwrap();
        assert_eq!(executed, Executed { has_rows: true, rows: 3, affected: 0 });
        for (row, first) in binary.rows.iter().zip(&expected) {
            assert_eq!(row[..3], first[..]);
            assert!(
                row[3..]
                    .iter()
                    .zip(last_columns)
                    .all(|(value, last)| value.as_deref() == Some(last))
            );
        }
        assert_eq!(query_rows(session, "SELECT * FROM v").await, binary.rows);
        let discarded = session.execute(select, &[], &mut Discard).await.unwrap();
        assert_eq!(discarded, executed);
    }
    let by_id = session.prepare("SELECT a FROM v WHERE a = ?", &[ParamType::Int]).await.unwrap();
    let mut ints = Ints::default();
    session.execute(by_id, &[Param::Int(-7)], &mut ints).await.unwrap();
    session.execute(by_id, &[Param::Int(5)], &mut ints).await.unwrap();
    assert_eq!(ints.0, [Some(-7)]);
    let wrong = session.execute(by_id, &[], &mut Discard).await.unwrap_err();
    assert!(!wrong.is_fatal() && wrong.message().contains("1 placeholders, but 0"), "{wrong}");
    let wrong = session.prepare("SELECT ?", &[]).await.unwrap_err();
    assert!(!wrong.is_fatal(), "{wrong}");
}

/// Numbers made by the client library are equal to those that the server sends as text.
async fn prepared_numbers(session: &mut MysqlSession) {
    run_sql(
        session,
        &[
            "DROP TABLE IF EXISTS n",
            "CREATE TABLE n (a INT(5) ZEROFILL, b YEAR, c FLOAT, d FLOAT, e FLOAT(9,2)) ENGINE=InnoDB",
            "INSERT INTO n VALUES (42, 0, 16777216, 1e20, 0.5)",
        ],
    )
    .await;
    let select = session.prepare("SELECT * FROM n", &[]).await.unwrap();
    let mut binary = AnswerTable::default();
    session.execute(select, &[], &mut binary).await.unwrap();
    assert_eq!(binary.rows, [["00042", "0000", "16777200", "1e20", "0.50"].map(text)]);
    assert_eq!(query_rows(session, "SELECT * FROM n").await, binary.rows);
}

async fn several_results(session: &mut MysqlSession) {
    let mut table = AnswerTable::default();
    let sql = "SELECT 1 UNION SELECT 2; UPDATE v SET a=1 WHERE a=-7; SELECT 'x'";
    let executed = session.query(sql, &mut table).await.unwrap();
    assert_eq!(executed, Executed { has_rows: true, rows: 3, affected: 1 });
    assert_eq!(table.rows, [[text("1")], [text("2")], [text("x")]]);
    run_sql(
        session,
        &[
            "DROP PROCEDURE IF EXISTS p",
            "CREATE PROCEDURE p() BEGIN SELECT 1, 2; SELECT 'three'; END",
        ],
    )
    .await;
    let call = session.prepare("CALL p()", &[]).await.unwrap();
    for _ in 0..2 {
        let mut table = AnswerTable::default();
        let executed = session.execute(call, &[], &mut table).await.unwrap();
        assert_eq!((executed.has_rows, executed.rows), (true, 2));
        assert_eq!(table.rows, [vec![text("1"), text("2")], vec![text("three")]]);
    }
    let error = session.query("SELECT 1; SELECT * FROM nowhere; SELECT 2", &mut Discard).await;
    assert_eq!(error.unwrap_err().errno(), 1146);
    assert_eq!(query_rows(session, "SELECT 3").await, [[text("3")]]);
}

/// Error 1295: what can't be prepared is sent as text.
async fn text_only_statements(session: &mut MysqlSession) {
    let lock = session.prepare("PREPARE x FROM 'SELECT 1'", &[]).await.unwrap();
    session.execute(lock, &[], &mut Discard).await.unwrap();
    assert_eq!(query_rows(session, "EXECUTE x").await, [[text("1")]]);
    let plain = session.prepare("SELECT 41 + ?", &[ParamType::Int]).await.unwrap();
    session.queue(lock, &[]).unwrap();
    session.queue(plain, &[Param::Int(1)]).unwrap();
    let (mut ints, mut results) = (Ints::default(), Vec::new());
    session.flush(&mut ints, &mut results).await.unwrap();
    assert!(results.iter().all(Result::is_ok), "{results:?}");
    assert_eq!(ints.0, [Some(42)]);
}

async fn errors(session: &mut MysqlSession) {
    run_sql(
        session,
        &["DROP TABLE IF EXISTS u", "CREATE TABLE u (id INT PRIMARY KEY) ENGINE=InnoDB"],
    )
    .await;
    let insert = session.prepare("INSERT INTO u VALUES (?)", &[ParamType::Int]).await.unwrap();
    session.execute(insert, &[Param::Int(1)], &mut Discard).await.unwrap();
    let twice = session.execute(insert, &[Param::Int(1)], &mut Discard).await.unwrap_err();
    assert_eq!((twice.class(), twice.errno()), (ErrorClass::Constraint, 1062));
    assert_eq!(twice.sqlstate(), "23000");
    session.execute(insert, &[Param::Int(2)], &mut Discard).await.unwrap();
    run_sql(session, &["BEGIN", "INSERT INTO u VALUES (3)"]).await;
    session.rollback().await.unwrap();
    assert_eq!(query_rows(session, "SELECT COUNT(*) FROM u").await, [[text("2")]]);
    let missing = session.prepare("SELECT * FROM nowhere", &[]).await.unwrap_err();
    assert_eq!((missing.errno(), missing.sqlstate()), (1146, "42S02"));
    assert_eq!(missing.cause(), Cause::Server);
}

async fn flights(session: &mut MysqlSession) {
    run_sql(session, &["DELETE FROM u"]).await;
    let insert = session.prepare("INSERT INTO u VALUES (?)", &[ParamType::Int]).await.unwrap();
    let select = session.prepare("SELECT ?, REPEAT('x', 9000)", &[ParamType::Int]).await.unwrap();
    for id in [1, 2, 1, 3] {
        session.queue(insert, &[Param::Int(id)]).unwrap();
    }
    let early = session.query("SELECT 1", &mut Discard).await.unwrap_err();
    assert!(!early.is_fatal() && early.message().contains("flushed"), "{early}");
    let mut results = Vec::new();
    session.flush(&mut Discard, &mut results).await.unwrap();
    let classes: Vec<_> = results
        .iter()
        .map(|result| result.as_ref().map(|done| done.affected).map_err(|e| e.class()))
        .collect();
    assert_eq!(classes, [Ok(1), Ok(1), Err(ErrorClass::Constraint), Ok(1)]);
    // Answers and commands that fill the queues of both sides many times over.
    let long = vec![b'y'; 3000];
    let wide = session
        .prepare("SELECT ?, ?, REPEAT('x', 3000)", &[ParamType::Int, ParamType::Text])
        .await
        .unwrap();
    let mut ints = Ints::default();
    for id in 0..1000 {
        session.queue(wide, &[Param::Int(id), Param::Text(&long)]).unwrap();
        session.queue(select, &[Param::Int(-id)]).unwrap();
    }
    results.clear();
    session.flush(&mut ints, &mut results).await.unwrap();
    assert_eq!(results.len(), 2000);
    assert!(results.iter().all(|result| result.as_ref().is_ok_and(|done| done.rows == 1)));
    let expected: Vec<_> = (0..1000).flat_map(|id| [Some(id), Some(-id)]).collect();
    assert_eq!(ints.0, expected);
}

async fn session_variables(server: &MariaDb) {
    let url = format!("{}?set.sort_buffer_size=1048576&set.sql_mode=ANSI", server.url());
    let mut session = connect(&url).await.unwrap();
    let rows =
        query_rows(&mut session, "SELECT @@sort_buffer_size, @@sql_mode, @@character_set_client")
            .await;
    assert_eq!(rows[0][0], text("1048576"));
    assert!(rows[0][1].as_ref().unwrap().contains("ANSI"));
    assert_eq!(rows[0][2], text("utf8mb4"));
    let url = format!("{}?set.no_such_variable=1", server.url());
    let error = connect(&url).await.unwrap_err();
    assert_eq!((error.cause(), error.errno()), (Cause::Rejected, 1193));
    assert!(error.message().contains("no_such_variable") && error.hint().is_some());
}

/// Statements that are given up or killed.
pub(crate) async fn every_end(url: &str) {
    an_abandoned_call(url).await;
    kill_query(url).await;
}

/// A call that was dropped half-way leaves a session that says so, and does not answer the next
/// call with the earlier one's rows.
async fn an_abandoned_call(url: &str) {
    let mut session = connect(url).await.unwrap();
    let due = dyno_reactor::now() + 50 * dyno_core::MILLISECOND;
    let mut rows = Discard;
    let slow = session.query("SELECT SLEEP(60)", &mut rows);
    assert!(dyno_reactor::timeout(due, slow).await.is_err());
    let error = session.query("SELECT 1", &mut Discard).await.unwrap_err();
    assert_eq!(error.class(), ErrorClass::ConnectionLost);
    assert!(session.rollback().await.is_err());
}

async fn kill_query(url: &str) {
    let mut session = driver(url).connect(0).await.unwrap();
    let mut observer = connect(url).await.unwrap();
    let id = query_rows(&mut session, "SELECT CONNECTION_ID()").await[0][0].clone().unwrap();
    let mut rows = Ints::default();
    let answer = {
        let mut slow = std::pin::pin!(session.query("SELECT SLEEP(100)", &mut rows));
        let sleeping_sql = format!(
            "SELECT 1 FROM information_schema.processlist WHERE id = {id} AND info LIKE 'SELECT SLEEP%'"
        );
        loop {
            let due = dyno_reactor::now() + 10 * dyno_core::MILLISECOND;
            assert!(dyno_reactor::timeout(due, slow.as_mut()).await.is_err());
            if !query_rows(&mut observer, &sleeping_sql).await.is_empty() {
                break;
            }
        }
        run_sql(&mut observer, &[&format!("KILL QUERY {id}")]).await;
        slow.await
    };
    match answer {
        Ok(_) => assert_eq!(rows.0, [Some(1)]),
        Err(error) => assert_eq!((error.errno(), error.class()), (1317, ErrorClass::Other)),
    }
    assert_eq!(query_rows(&mut session, "SELECT 5").await, [[text("5")]]);
}

async fn no_allocations(server: &MariaDb) {
    let mut session = connect(&server.socket_url()).await.unwrap();
    let select = session.prepare("SELECT ?, 'abc'", &[ParamType::Int]).await.unwrap();
    let inferred = session.prepare("SELECT ?, ?", &[ParamType::Inferred; 2]).await.unwrap();
    let mut total = 0;
    let mut results = Vec::new();
    for round in 0..3 {
        let before = allocations();
        for id in 0..100 {
            session.execute(select, &[Param::Int(id)], &mut Discard).await.unwrap();
            let mut sum = Sum::default();
            session.execute(select, &[Param::Int(id)], &mut sum).await.unwrap();
            total += sum.0;
            let params = [Param::Int(id), Param::Double(0.5)];
            session.execute(inferred, &params, &mut Discard).await.unwrap();
            session.query("SELECT 1", &mut Discard).await.unwrap();
            for id in 0..10 {
                session.queue(select, &[Param::Int(id)]).unwrap();
            }
            session.flush(&mut Discard, &mut results).await.unwrap();
            results.clear();
        }
        if round > 0 {
            assert_eq!(allocations() - before, 0);
        }
    }
    assert_eq!(total, 3 * 4950);
}

#[derive(Default)]
struct Sum(i64);

impl Rows for Sum {
    fn row<R: AnswerRow>(&mut self, row: &R) {
        self.0 += row.int(0).unwrap_or(0);
    }
}

#[test]
fn a_server_that_dies() {
    let mut server = server_or_skip!(MariaDb, "a_server_that_dies");
    let url = server.url();
    run(async {
        let mut session = connect(&url).await.unwrap();
        let due = dyno_reactor::now() + 200 * dyno_core::MILLISECOND;
        let mut rows = Discard;
        let mut slow = std::pin::pin!(session.query("SELECT SLEEP(30)", &mut rows));
        assert!(dyno_reactor::timeout(due, slow.as_mut()).await.is_err());
        server.kill();
        let error = slow.await.unwrap_err();
        assert_eq!((error.class(), error.cause()), (ErrorClass::ConnectionLost, Cause::Lost));
        assert_eq!(connect(&url).await.unwrap_err().cause(), Cause::Unreachable);
        server.restart().unwrap();
        let mut session = connect(&url).await.unwrap();
        // Asked to stop, it tells or hangs up; both are a lost connection.
        let prepared = session.prepare("SELECT 1", &[]).await.unwrap();
        server.sql("SHUTDOWN").unwrap();
        let mut loss = None;
        for _ in 0..3_000 {
            match session.execute(prepared, &[], &mut Discard).await {
                Err(error) => {
                    loss = Some(error);
                    break;
                }
                Ok(_) => {
                    let due = dyno_reactor::now() + 20 * dyno_core::MILLISECOND;
                    dyno_reactor::sleep_until(due).await;
                }
            }
        }
        assert_eq!(loss.unwrap().class(), ErrorClass::ConnectionLost);
        assert!(session.execute(prepared, &[], &mut Discard).await.unwrap_err().is_fatal());
    });
}
