//! Requests of scripts to sessions, on a real PostgreSQL: parameters whose types the server infers,
//! names and ends of results, statements that are executed once, flights with several ends, COPY
//! where it has no place.

use dyno_core::{
    AnswerTable, Cause, DbError, Discard, Driver, ErrorClass, Executed, Param, ParamType, Session,
};
use dyno_drivers::TargetUrl;
use dyno_drivers::postgres::{PostgresDriver, PostgresSession};
use dyno_drivers::target::LibpqOptions;
use dyno_reactor::block_on;
use dyno_testkit::{Headings, Postgres, Transcript, server_or_skip};

async fn session(server: &Postgres) -> PostgresSession {
    let target: TargetUrl = server.socket_url().parse().unwrap();
    let driver = PostgresDriver::new(&target).unwrap();
    driver.connect(0).await.unwrap()
}

async fn run(session: &mut PostgresSession, sql: &str) -> Result<Executed, DbError> {
    session.query(sql, &mut Discard).await
}

async fn single(session: &mut PostgresSession, sql: &str) -> String {
    let mut table = AnswerTable::default();
    session.query(sql, &mut table).await.unwrap();
    table.single().unwrap().to_owned()
}

const READ: Executed = Executed { has_rows: true, rows: 1, affected: 0 };
const CHANGED: Executed = Executed { has_rows: false, rows: 0, affected: 1 };
const NOTHING: Executed = Executed { has_rows: false, rows: 0, affected: 0 };

#[test]
fn scripts() {
    let server = server_or_skip!(Postgres, "scripts");
    block_on(async {
        let mut session = session(&server).await;
        run(&mut session, "DROP TABLE IF EXISTS t; CREATE TABLE t (id int, d numeric, c text)")
            .await
            .unwrap();
        types_are_inferred(&mut session).await;
        names_and_ends_are_told(&mut session).await;
        statements_are_executed_once(&mut session).await;
        flights_mix_and_have_several_ends(&mut session).await;
        errors_end_at_the_next_sync(&mut session).await;
        a_commit_fails_at_its_own_sync(&mut session).await;
        transactions_are_seen(&mut session).await;
        copies_are_refused(&mut session).await;
        session.close().await;
        a_copy_among_other_statements_ends_the_session(&server).await;
        connection_strings_lead_to_the_server(&server).await;
    })
    .unwrap();
}

async fn connection_strings_lead_to_the_server(server: &Postgres) {
    let (folder, port) = (server.socket_folder.display(), server.port);
    let options = LibpqOptions { fallback_application_name: Some("pgbench"), ..Default::default() };
    for (text, name) in [
        (format!("host={folder} port={port} user=postgres dbname=sbtest"), "pgbench"),
        (format!("postgres://postgres@127.0.0.1:{port}/sbtest?application_name=a%20b"), "a b"),
    ] {
        let mut target = TargetUrl::from_libpq(Some(&text), &options).unwrap();
        target.options.insert("options".to_owned(), "-c work_mem=7MB".to_owned());
        let mut session = PostgresDriver::new(&target).unwrap().connect(0).await.unwrap();
        assert_eq!(single(&mut session, "SHOW application_name").await, name);
        assert_eq!(single(&mut session, "SHOW work_mem").await, "7MB");
        assert_eq!(single(&mut session, "SELECT current_database()").await, "sbtest");
        session.close().await;
    }
}

async fn types_are_inferred(session: &mut PostgresSession) {
    let values = [
        [Param::Int(-7), Param::Double(0.1), Param::Text("ü'\\".as_bytes())],
        [Param::Text(b"42"), Param::Int(i64::MIN), Param::Double(1e15)],
        [Param::Null; 3],
    ];
    let sql = "INSERT INTO t VALUES ($1, $2, $3)";
    let insert = session.prepare(sql, &[ParamType::Inferred; 3]).await.unwrap();
    for params in &values {
        assert_eq!(session.execute(insert, params, &mut Discard).await.unwrap(), CHANGED);
        assert_eq!(session.execute_once(sql, params, &mut Discard).await.unwrap(), CHANGED);
        session.queue(insert, params).unwrap();
        session.queue_once(sql, params).unwrap();
    }
    let mut results = Vec::new();
    session.flush(&mut Discard, &mut results).await.unwrap();
    assert!(results.iter().all(|result| result.as_ref() == Ok(&CHANGED)), "{results:?}");
    let mut transcript = Transcript::default();
    let sql = "SELECT count(*) AS n, id, d, c FROM t GROUP BY 2, 3, 4 ORDER BY id";
    session.query(sql, &mut transcript).await.unwrap();
    let rows = [
        "row 4, -7, 0.1, ü'\\",
        "row 4, 42, -9223372036854775808, 1e+15",
        "row 4, NULL, NULL, NULL",
    ];
    assert_eq!(transcript.0[1..4], rows);
    let no_number = [Param::Text(b"x"), Param::Null, Param::Null];
    let error = session.execute(insert, &no_number, &mut Discard).await.unwrap_err();
    assert_eq!((error.sqlstate(), error.is_fatal()), ("22P02", false), "{error}");
    let error = session.execute(insert, &[Param::Null], &mut Discard).await.unwrap_err();
    assert!(!error.is_fatal(), "{error}");
    run(session, "TRUNCATE t").await.unwrap();
}

async fn names_and_ends_are_told(session: &mut PostgresSession) {
    let chain = "SELECT 1 AS a, NULL AS \"B c\"; INSERT INTO t VALUES (1), (2); \
                 SELECT id FROM t WHERE false; BEGIN; SELECT; COMMIT";
    let lines = [
        "columns a, B c",
        "row 1, NULL",
        "done 1 rows",
        "done 2 changed",
        "columns id",
        "done 0 rows",
        "done",
        "columns ",
        "row ",
        "done 1 rows",
        "done",
    ];
    let mut transcript = Transcript::default();
    session.query(chain, &mut transcript).await.unwrap();
    assert_eq!(transcript.take(), lines);
    let mut headings = Headings::default();
    session.query(chain, &mut headings).await.unwrap();
    let without_rows: Vec<_> = lines.into_iter().filter(|line| !line.starts_with("row")).collect();
    assert_eq!(headings.0.take(), without_rows);

    let sql = "SELECT id AS x, c FROM t WHERE id = $1 LIMIT 1";
    let select = session.prepare(sql, &[ParamType::Inferred]).await.unwrap();
    let update = session.prepare("UPDATE t SET c = 'new' WHERE id = 1", &[]).await.unwrap();
    let lines = ["columns x, c", "row 1, NULL", "done 1 rows"];
    for _ in 0..2 {
        session.execute(select, &[Param::Int(1)], &mut transcript).await.unwrap();
        assert_eq!(transcript.take(), lines);
        session.execute(select, &[Param::Int(1)], &mut headings).await.unwrap();
        assert_eq!(headings.0.take(), [lines[0], lines[2]]);
        session.execute_once(sql, &[Param::Int(1)], &mut transcript).await.unwrap();
        assert_eq!(transcript.take(), lines);
    }
    session.execute(select, &[Param::Int(99)], &mut transcript).await.unwrap();
    assert_eq!(transcript.take(), ["columns x, c", "done 0 rows"]);
    session.execute(update, &[], &mut transcript).await.unwrap();
    session.execute_once("", &[], &mut transcript).await.unwrap();
    assert_eq!(transcript.take(), ["done 2 changed", "done"]);
    // What fails is begun, and not done.
    let chain = "SELECT 1 AS a; SELECT 2 / (2 - g) AS b FROM generate_series(1, 3) g; SELECT 3";
    let error = session.query(chain, &mut transcript).await.unwrap_err();
    assert_eq!(error.sqlstate(), "22012");
    assert_eq!(transcript.take(), ["columns a", "row 1", "done 1 rows", "columns b", "row 2"]);
}

async fn statements_are_executed_once(session: &mut PostgresSession) {
    let before = single(session, "SELECT count(*) FROM pg_prepared_statements").await;
    let mut table = AnswerTable::default();
    for value in 0..3 {
        let params = [Param::Int(value), Param::Text(b"x"), Param::Double(0.5), Param::Null];
        let sql = "SELECT $1::int + 1, $2::text, $3::float8, $4::date, true";
        assert_eq!(session.execute_once(sql, &params, &mut table).await.unwrap(), READ);
    }
    let texts: Vec<_> = table.rows[2].iter().map(Option::as_deref).collect();
    assert_eq!(texts, [Some("3"), Some("x"), Some("0.5"), None, Some("t")]);
    let select = session.execute_once("SELECT 1", &[], &mut Discard).await.unwrap();
    assert_eq!(select, READ);
    let drop = session.execute_once("DROP TABLE IF EXISTS nothing", &[], &mut Discard).await;
    assert_eq!(drop.unwrap(), NOTHING);
    let two = session.execute_once("SELECT 1; SELECT 2", &[], &mut Discard).await.unwrap_err();
    assert_eq!(two.sqlstate(), "42601", "{two}");
    let too_few = session.execute_once("SELECT $2::int", &[Param::Int(1)], &mut Discard).await;
    assert!(!too_few.unwrap_err().is_fatal());
    let zero = session.execute_once("SELECT '\0'", &[], &mut Discard).await.unwrap_err();
    assert!(!zero.is_fatal() && zero.message().contains("zero byte"), "{zero}");
    assert!(session.queue_once("SELECT '\0'", &[]).is_err());
    let mut results = Vec::new();
    session.flush(&mut Discard, &mut results).await.unwrap();
    assert!(results.is_empty(), "what can't be sent is not queued");
    // A statement is closed also in a transaction that has failed.
    let first = session.prepare("SELECT 1", &[]).await.unwrap();
    session.query("BEGIN", &mut Discard).await.unwrap();
    session.query("SELECT nonsense", &mut Discard).await.unwrap_err();
    session.forget(first).await.unwrap();
    session.rollback().await.unwrap();
    assert!(!session.execute(first, &[], &mut Discard).await.unwrap_err().is_fatal());
    assert_eq!(single(session, "SELECT count(*) FROM pg_prepared_statements").await, before);
}

async fn flights_mix_and_have_several_ends(session: &mut PostgresSession) {
    let prepared = session.prepare("SELECT 2 AS p", &[]).await.unwrap();
    session.queue_sync().unwrap();
    session.queue_once("SELECT $1::int AS o", &[Param::Int(1)]).unwrap();
    session.queue(prepared, &[]).unwrap();
    session.queue_once("CREATE TEMP TABLE IF NOT EXISTS once (id int)", &[]).unwrap();
    session.queue_sync().unwrap();
    session.queue_sync().unwrap();
    session.queue_once("INSERT INTO once VALUES ($1)", &[Param::Int(5)]).unwrap();
    session.queue_sync().unwrap();
    session.queue(prepared, &[]).unwrap();
    let (mut transcript, mut results) = (Transcript::default(), Vec::new());
    session.flush(&mut transcript, &mut results).await.unwrap();
    let outcomes: Vec<_> = results.drain(..).map(Result::unwrap).collect();
    assert_eq!(outcomes, [READ, READ, NOTHING, CHANGED, READ]);
    assert_eq!(
        transcript.take(),
        [
            "columns o",
            "row 1",
            "done 1 rows",
            "columns p",
            "row 2",
            "done 1 rows",
            "done",
            "done 1 changed",
            "columns p",
            "row 2",
            "done 1 rows"
        ]
    );
    // Ended by the caller: no further Sync is needed, and only a Sync is not a flight.
    session.queue(prepared, &[]).unwrap();
    session.queue_sync().unwrap();
    session.flush(&mut Discard, &mut results).await.unwrap();
    session.queue_sync().unwrap();
    session.flush(&mut Discard, &mut results).await.unwrap();
    assert_eq!(results, [Ok(READ)]);
    let sql = "SELECT count(*) FROM once";
    assert_eq!(session.execute_once(sql, &[], &mut Discard).await.unwrap(), READ);
    run(session, "DROP TABLE once").await.unwrap();
}

async fn errors_end_at_the_next_sync(session: &mut PostgresSession) {
    run(session, "DROP TABLE IF EXISTS e; CREATE TABLE e (id int PRIMARY KEY)").await.unwrap();
    let insert =
        session.prepare("INSERT INTO e VALUES ($1)", &[ParamType::Inferred]).await.unwrap();
    let mut results = Vec::new();
    let drain_outcomes = |results: &mut Vec<Result<Executed, DbError>>| -> Vec<String> {
        let describe_outcome = |result: Result<Executed, DbError>| match result {
            Ok(executed) => format!("{} changed", executed.affected),
            Err(error) if error.message().contains("not executed") => "not executed".to_owned(),
            Err(error) => error.sqlstate().to_owned(),
        };
        results.drain(..).map(describe_outcome).collect()
    };
    for (id, sync) in
        [(1, false), (2, true), (3, false), (1, false), (4, false), (5, true), (6, false)]
    {
        session.queue(insert, &[Param::Int(id)]).unwrap();
        if sync {
            session.queue_sync().unwrap();
        }
    }
    session.queue_once("SELECT nonsense", &[]).unwrap();
    session.queue_once("INSERT INTO e VALUES (7)", &[]).unwrap();
    session.queue_sync().unwrap();
    session.queue(insert, &[Param::Int(8)]).unwrap();
    let mut transcript = Transcript::default();
    session.flush(&mut transcript, &mut results).await.unwrap();
    assert_eq!(
        drain_outcomes(&mut results),
        [
            "1 changed",
            "1 changed",
            "1 changed",
            "23505",
            "not executed",
            "not executed",
            "1 changed",
            "42703",
            "not executed",
            "1 changed"
        ]
    );
    assert_eq!(transcript.take(), ["done 1 changed"; 5]);
    let stored_ids = single(session, "SELECT string_agg(id::text, ',' ORDER BY id) FROM e").await;
    assert_eq!(stored_ids, "1,2,8", "each part stands or falls alone");
    assert!(!session.is_in_transaction());

    // A transaction block continues over the ends of the parts, and stays failed over them.
    session.queue_once("BEGIN", &[]).unwrap();
    session.queue(insert, &[Param::Int(1)]).unwrap();
    session.queue_sync().unwrap();
    session.queue(insert, &[Param::Int(9)]).unwrap();
    session.flush(&mut Discard, &mut results).await.unwrap();
    assert_eq!(drain_outcomes(&mut results), ["0 changed", "23505", "25P02"]);
    assert!(session.is_in_transaction());
    session.rollback().await.unwrap();
    assert!(!session.is_in_transaction());
}

async fn a_commit_fails_at_its_own_sync(session: &mut PostgresSession) {
    let create = "DROP TABLE IF EXISTS d; \
                  CREATE TABLE d (id int UNIQUE DEFERRABLE INITIALLY DEFERRED)";
    run(session, create).await.unwrap();
    let mut results = Vec::new();
    for sync in [false, true] {
        session.queue_once("INSERT INTO d VALUES (1)", &[]).unwrap();
        if sync {
            session.queue_sync().unwrap();
        }
    }
    session.queue_once("INSERT INTO d VALUES (2)", &[]).unwrap();
    session.flush(&mut Discard, &mut results).await.unwrap();
    assert_eq!(results[0], Ok(CHANGED));
    assert_eq!(results[1].as_ref().unwrap_err().class(), ErrorClass::Constraint);
    assert_eq!(results[2], Ok(CHANGED));
    assert_eq!(single(session, "SELECT sum(id) FROM d").await, "2");
}

async fn transactions_are_seen(session: &mut PostgresSession) {
    assert!(!session.is_in_transaction());
    run(session, "BEGIN; SELECT 1").await.unwrap();
    assert!(session.is_in_transaction());
    run(session, "SELECT 1/0").await.unwrap_err();
    assert!(session.is_in_transaction(), "failed, but not ended");
    run(session, "END").await.unwrap();
    assert!(!session.is_in_transaction());
    session.execute_once("BEGIN", &[], &mut Discard).await.unwrap();
    assert!(session.is_in_transaction());
    session.execute_once("COMMIT", &[], &mut Discard).await.unwrap();
    assert!(!session.is_in_transaction());
}

/// Neither direction hangs, and the session continues.
async fn copies_are_refused(session: &mut PostgresSession) {
    let check = |error: &DbError| {
        assert!(!error.is_fatal() && error.hint().is_some(), "{error}");
        assert_eq!((error.cause(), error.sqlstate()), (Cause::ClientCopy, "0A000"), "{error}");
        assert!(error.message().contains("COPY"), "{error}");
    };
    run(session, "TRUNCATE t; INSERT INTO t SELECT g FROM generate_series(1, 5000) g")
        .await
        .unwrap();
    let mut results = Vec::new();
    for sql in
        ["COPY t FROM STDIN", "COPY t TO STDOUT", "COPY (SELECT 1/(id-4000) FROM t) TO STDOUT"]
    {
        let fails = sql.contains('/');
        let check_or_division = |error: &DbError| {
            if fails && error.sqlstate() == "22012" {
                return;
            }
            check(error);
        };
        check_or_division(&run(session, sql).await.unwrap_err());
        check_or_division(&run(session, &format!("SELECT 1; {sql}; SELECT 2")).await.unwrap_err());
        check_or_division(
            &session.execute_once(sql, &[], &mut Transcript::default()).await.unwrap_err(),
        );
        let prepared = session.prepare(sql, &[]).await.unwrap();
        check_or_division(&session.execute(prepared, &[], &mut Discard).await.unwrap_err());
        session.queue_once("SELECT 1", &[]).unwrap();
        session.queue_sync().unwrap();
        session.queue(prepared, &[]).unwrap();
        session.flush(&mut Discard, &mut results).await.unwrap();
        check_or_division(results.pop().unwrap().as_ref().unwrap_err());
        assert_eq!(results.pop(), Some(Ok(READ)), "{sql}");
        assert_eq!(single(session, "SELECT count(*) FROM t").await, "5000");
        assert!(!session.is_in_transaction());
    }
    // Rows that are sent are received, and what comes behind them in the flight is executed.
    session.queue_once("COPY t TO STDOUT", &[]).unwrap();
    session.queue_once("SELECT 1", &[]).unwrap();
    session.flush(&mut Discard, &mut results).await.unwrap();
    check(results[0].as_ref().unwrap_err());
    assert_eq!(results[1], Ok(READ));
}

async fn a_copy_among_other_statements_ends_the_session(server: &Postgres) {
    let mut session = session(server).await;
    session.queue_once("COPY t FROM STDIN", &[]).unwrap();
    session.queue_sync().unwrap();
    session.queue_once("SELECT 1", &[]).unwrap();
    let error = session.flush(&mut Discard, &mut Vec::new()).await.unwrap_err();
    assert!(error.is_fatal() && error.message().contains("COPY"), "{error}");
    let error = run(&mut session, "SELECT 1").await.unwrap_err();
    assert_eq!(error.class(), ErrorClass::ConnectionLost);
}
