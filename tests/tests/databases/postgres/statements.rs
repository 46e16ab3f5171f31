//! Sessions on a real PostgreSQL: statements, flights, copies, errors and lost connections.

use dyno_core::{
    AnswerRow, AnswerTable, BulkMethod, Cause, DbError, Discard, Driver, ErrorClass, Executed,
    Param, ParamType, RowSource, RowWriter, Rows, Session, Statement,
};
use dyno_drivers::TargetUrl;
use dyno_drivers::postgres::{CancelToken, PostgresDriver, PostgresSession};
use dyno_reactor::{block_on, now, run_all, sleep_until, timeout};
use dyno_testkit::{Postgres, server_or_skip};
use std::cell::{Cell, RefCell};

fn driver(url: &str) -> PostgresDriver {
    PostgresDriver::new(&url.parse::<TargetUrl>().unwrap()).unwrap()
}

async fn session(server: &Postgres) -> PostgresSession {
    driver(&server.socket_url()).connect(0).await.unwrap()
}

async fn table(session: &mut PostgresSession, sql: &str) -> AnswerTable {
    let mut table = AnswerTable::default();
    session.query(sql, &mut table).await.unwrap();
    table
}

async fn single(session: &mut PostgresSession, sql: &str) -> String {
    table(session, sql).await.single().unwrap().to_owned()
}

async fn run(session: &mut PostgresSession, sql: &str) -> Result<Executed, DbError> {
    session.query(sql, &mut Discard).await
}

const READ: Executed = Executed { has_rows: true, rows: 1, affected: 0 };
const NOTHING: Executed = Executed { has_rows: false, rows: 0, affected: 0 };

fn rows_changed(affected: u64) -> Executed {
    Executed { affected, ..NOTHING }
}

#[test]
fn statements() {
    every_statement(&server_or_skip!(Postgres, "statements"));
}

/// Statements that every version must execute.
pub(crate) fn every_statement(server: &Postgres) {
    block_on(async {
        let mut session = session(server).await;
        introduces_itself(&session);
        text_queries(&mut session).await;
        prepared_statements(&mut session).await;
        every_type_reads_back(&mut session).await;
        floats_print_as_the_server_prints_them(&mut session).await;
        errors_keep_their_fields(&mut session).await;
        transactions_roll_back(&mut session).await;
        notices_and_parameters(&mut session).await;
        long_answers(&mut session).await;
        session.close().await;
    })
    .unwrap();
}

fn introduces_itself(session: &PostgresSession) {
    assert_eq!(session.product().name, "PostgreSQL");
    let major = session.product().version.split('.').next().unwrap();
    assert!(major.parse::<u32>().unwrap() >= 14, "{:?}", session.product());
    assert_eq!(session.parameter("default_transaction_read_only"), Some("off"));
    assert!(!session.is_in_transaction());
}

async fn text_queries(session: &mut PostgresSession) {
    run(session, "CREATE TABLE t (id int PRIMARY KEY, c text)").await.unwrap();
    let inserted = run(session, "INSERT INTO t VALUES (1, 'a'), (2, NULL)").await.unwrap();
    assert_eq!(inserted, rows_changed(2));
    let executed = run(session, "SELECT * FROM t; UPDATE t SET c = 'b'; SELECT 1").await.unwrap();
    assert_eq!(executed, Executed { has_rows: true, rows: 3, affected: 2 });
    assert_eq!(run(session, "").await.unwrap(), NOTHING);
    assert_eq!(run(session, "BEGIN").await.unwrap(), NOTHING);
    assert_eq!(run(session, "COMMIT").await.unwrap(), NOTHING);
    let empty = run(session, "SELECT * FROM t WHERE false").await.unwrap();
    assert_eq!(empty, Executed { rows: 0, ..READ });
    assert_eq!(run(session, "SHOW work_mem").await.unwrap(), READ);
    assert_eq!(run(session, "CREATE TABLE t2 AS SELECT * FROM t").await.unwrap(), rows_changed(2));
    assert_eq!(run(session, "DELETE FROM t RETURNING id").await.unwrap().rows, 2);
    let failed = run(session, "SELECT '\0'").await.unwrap_err();
    assert!(!failed.is_fatal() && failed.message().contains("zero byte"), "{failed}");
}

async fn prepared_statements(session: &mut PostgresSession) {
    let types = [ParamType::Int, ParamType::Double, ParamType::Text];
    let sql = "SELECT $1, $2, $3, $1 IS NULL, $3 = ''";
    let select = session.prepare(sql, &types).await.unwrap();
    for (params, expected) in [
        (
            [Param::Int(i64::MIN), Param::Double(-0.5), Param::Text("ü\\\t".as_bytes())],
            [Some("-9223372036854775808"), Some("-0.5"), Some("ü\\\t"), Some("f"), Some("f")],
        ),
        ([Param::Null; 3], [None, None, None, Some("t"), None]),
        (
            [Param::Int(7), Param::Int(3), Param::Text(b"")],
            [Some("7"), Some("3"), Some(""), Some("f"), Some("t")],
        ),
    ] {
        let mut answer = AnswerTable::default();
        assert_eq!(session.execute(select, &params, &mut answer).await.unwrap(), READ);
        assert_eq!(answer.rows, [expected.map(|text| text.map(str::to_owned))]);
        assert_eq!(session.execute(select, &params, &mut Discard).await.unwrap(), READ);
    }

    let begin = session.prepare("BEGIN", &[]).await.unwrap();
    let commit = session.prepare("COMMIT", &[]).await.unwrap();
    let types = [ParamType::Int, ParamType::Text];
    let insert = session.prepare("INSERT INTO t VALUES ($1, $2)", &types).await.unwrap();
    let empty = session.prepare("", &[]).await.unwrap();
    assert_eq!(session.execute(begin, &[], &mut Discard).await.unwrap(), NOTHING);
    assert!(session.is_in_transaction());
    let params = [Param::Int(1), Param::Null];
    assert_eq!(session.execute(insert, &params, &mut Discard).await.unwrap(), rows_changed(1));
    assert_eq!(session.execute(commit, &[], &mut Discard).await.unwrap(), NOTHING);
    assert_eq!(session.execute(empty, &[], &mut Discard).await.unwrap(), NOTHING);
    assert_eq!(single(session, "SELECT count(*) FROM t WHERE c IS NULL").await, "1");

    let failed = session.prepare("SELECT FROM nowhere", &[]).await.unwrap_err();
    assert_eq!(failed.sqlstate(), "42P01");
    let select = session.prepare("SELECT $1", &[]).await.unwrap();
    let failed = session.execute(select, &[], &mut Discard).await.unwrap_err();
    assert_eq!((failed.sqlstate(), failed.is_fatal()), ("08P01", false), "{failed}");
    assert!(failed.message().contains("supplies 0 parameters"), "{failed}");
    for wrong in [&[][..], &[Param::Text(b"1"), Param::Null]] {
        let failed = session.execute(insert, wrong, &mut Discard).await.unwrap_err();
        assert_eq!((failed.class(), failed.cause()), (ErrorClass::Other, Cause::Protocol));
    }
    assert!(session.execute(Statement(99), &[], &mut Discard).await.is_err());
    let commit = session.prepare("COMMIT", &[]).await.unwrap();
    assert_eq!(session.execute(commit, &[], &mut Discard).await.unwrap(), NOTHING);
}

/// Integer, double and bytes of each column of the last row.
struct Typed(Vec<(Option<i64>, Option<f64>, Option<String>)>);

impl Rows for Typed {
    fn row<R: AnswerRow>(&mut self, row: &R) {
        let bytes = |column| row.bytes(column).map(|b| String::from_utf8_lossy(b).into_owned());
        self.0 = (0..row.columns()).map(|at| (row.int(at), row.double(at), bytes(at))).collect();
    }
}

async fn every_type_reads_back(session: &mut PostgresSession) {
    let sql = "SELECT -2::int2, 3::int4, 4::int8, 5::oid, 1.5::float4, 2.5::float8, true, \
               'x'::\"char\", 'name'::name, 'v'::varchar, 'b'::char(3), 12.50::numeric, \
               date '2024-02-29', null::int4, 'u'";
    let select = session.prepare(sql, &[]).await.unwrap();
    let mut typed = Typed(Vec::new());
    session.execute(select, &[], &mut typed).await.unwrap();
    let text = |text: &str| (None, None, Some(text.to_owned()));
    assert_eq!(
        typed.0,
        [
            (Some(-2), Some(-2.0), None),
            (Some(3), Some(3.0), None),
            (Some(4), Some(4.0), None),
            (Some(5), Some(5.0), None),
            (None, Some(1.5), Some("1.5".to_owned())),
            (None, Some(2.5), Some("2.5".to_owned())),
            text("t"),
            text("x"),
            text("name"),
            text("v"),
            text("b  "),
            (None, Some(12.5), Some("12.50".to_owned())),
            text("2024-02-29"),
            (None, None, None),
            text("u"),
        ]
    );
    let mut prepared = AnswerTable::default();
    session.execute(select, &[], &mut prepared).await.unwrap();
    assert_eq!(prepared, table(session, sql).await, "both protocols print the same");
}

async fn floats_print_as_the_server_prints_them(session: &mut PostgresSession) {
    let numbers = "SELECT x, x::text, y, y::text FROM (SELECT x, CASE WHEN abs(x) BETWEEN 1e-30 \
        AND 1e30 THEN x::float4 END y FROM unnest(array[0, '-0', 1, -12.5, 0.0001, 0.00012, \
        0.00001, 123456789, 1e14, 1e15, 999999999999999, -1.5e300, 1e-300, 0.1, 100000, 999999, \
        1e6, 1234567, 1.5e-7, 'NaN', 'Infinity', '-Infinity', 123456.789]::float8[]) x) n";
    let select = session.prepare(numbers, &[]).await.unwrap();
    let mut answer = AnswerTable::default();
    session.execute(select, &[], &mut answer).await.unwrap();
    assert_eq!(answer.rows.len(), 23);
    for row in answer.rows {
        assert_eq!((&row[0], &row[2]), (&row[1], &row[3]));
    }
}

async fn errors_keep_their_fields(session: &mut PostgresSession) {
    let syntax = run(session, "SELEKT 1").await.unwrap_err();
    assert_eq!((syntax.sqlstate(), syntax.cause()), ("42601", Cause::Server));
    assert_eq!(syntax.detail.as_deref(), Some("At character 1."));
    let twice = run(session, "INSERT INTO t VALUES (1, '')").await.unwrap_err();
    assert_eq!((twice.class(), twice.sqlstate()), (ErrorClass::Constraint, "23505"));
    assert_eq!(twice.detail.as_deref(), Some("Key (id)=(1) already exists."));
    let missing = run(session, "SELECT nofunction(1)").await.unwrap_err();
    assert!(missing.hint().unwrap().contains("No function matches"), "{missing:?}");
    // The second of three fails: the first is undone with it, the third is not tried.
    let text = "INSERT INTO t VALUES (5, ''); SELECT 1 / 0; INSERT INTO t VALUES (6, '')";
    assert_eq!(run(session, text).await.unwrap_err().sqlstate(), "22012");
    assert_eq!(single(session, "SELECT count(*) FROM t WHERE id IN (5, 6)").await, "0");
    // A result set that ends in an error leaves nothing behind for the next statement.
    let halfway = "SELECT 1 / (3 - g) FROM generate_series(1, 5) g";
    assert_eq!(run(session, halfway).await.unwrap_err().sqlstate(), "22012");
    assert_eq!(run(session, "BEGIN; COMMIT").await.unwrap(), NOTHING);
    // A deferred constraint fails at the commit that ends the flight.
    let deferred = "CREATE TABLE d (id int UNIQUE DEFERRABLE INITIALLY DEFERRED)";
    run(session, deferred).await.unwrap();
    let insert = session.prepare("INSERT INTO d VALUES (1), (1)", &[]).await.unwrap();
    let failed = session.execute(insert, &[], &mut Discard).await.unwrap_err();
    assert_eq!(failed.class(), ErrorClass::Constraint);
}

async fn transactions_roll_back(session: &mut PostgresSession) {
    session.rollback().await.unwrap();
    run(session, "BEGIN; INSERT INTO t VALUES (10, '')").await.unwrap();
    assert!(run(session, "SELECT 1 / 0").await.is_err());
    assert!(session.is_in_transaction());
    assert_eq!(run(session, "SELECT 1").await.unwrap_err().sqlstate(), "25P02");
    session.rollback().await.unwrap();
    assert!(!session.is_in_transaction());
    assert_eq!(single(session, "SELECT count(*) FROM t WHERE id = 10").await, "0");
}

async fn notices_and_parameters(session: &mut PostgresSession) {
    session.take_notice_lines();
    run(session, "DO $$ BEGIN RAISE WARNING 'careful %', 7; END $$").await.unwrap();
    let notices = session.take_notice_lines();
    assert_eq!(notices, ["WARNING:  careful 7"]);
    let many = "DO $$ BEGIN FOR i IN 1..200 LOOP RAISE NOTICE 'n'; END LOOP; END $$";
    run(session, many).await.unwrap();
    assert_eq!(session.take_notice_lines().len(), 100);
    for value in ["on", "off"] {
        run(session, &format!("SET default_transaction_read_only = {value}")).await.unwrap();
        assert_eq!(session.parameter("default_transaction_read_only"), Some(value));
    }
}

async fn long_answers(session: &mut PostgresSession) {
    let rows = "SELECT g, repeat('x', 5000) FROM generate_series(1, 400) g";
    let select = session.prepare(rows, &[]).await.unwrap();
    let mut answer = AnswerTable::default();
    session.execute(select, &[], &mut answer).await.unwrap();
    let sizes = answer.rows.iter().map(|row| row[1].as_ref().unwrap().len());
    assert_eq!(sizes.sum::<usize>(), 400 * 5000);
    assert_eq!(session.execute(select, &[], &mut Discard).await.unwrap().rows, 400);
    // One value of 3 MB, once wanted and once passed over.
    assert_eq!(single(session, "SELECT repeat('y', 3000000)").await.len(), 3_000_000);
    assert_eq!(run(session, "SELECT repeat('y', 3000000)").await.unwrap(), READ);
}

#[test]
fn flights() {
    let server = server_or_skip!(Postgres, "flights");
    block_on(async {
        let mut session = session(&server).await;
        run(&mut session, "CREATE TABLE f (id int PRIMARY KEY)").await.unwrap();
        let insert = session.prepare("INSERT INTO f VALUES ($1)", &[ParamType::Int]).await.unwrap();
        let select = session.prepare("SELECT id FROM f ORDER BY id", &[]).await.unwrap();
        let begin = session.prepare("BEGIN", &[]).await.unwrap();
        let commit = session.prepare("COMMIT", &[]).await.unwrap();
        let mut results = Vec::new();
        session.flush(&mut Discard, &mut results).await.unwrap();
        assert!(results.is_empty());

        session.queue(begin, &[]).unwrap();
        session.queue(insert, &[Param::Int(1)]).unwrap();
        session.queue(select, &[]).unwrap();
        assert!(session.queue(insert, &[]).is_err(), "a wrong one does not spoil the flight");
        session.queue(commit, &[]).unwrap();
        let mut rows = AnswerTable::default();
        session.flush(&mut rows, &mut results).await.unwrap();
        let outcomes: Vec<_> = results.drain(..).map(Result::unwrap).collect();
        assert_eq!(outcomes, [NOTHING, rows_changed(1), READ, NOTHING]);
        assert_eq!(rows.rows, [[Some("1".to_owned())]]);

        flight_with_an_error(&mut session, insert, select).await;
        long_flight(&mut session).await;
    })
    .unwrap();
}

async fn flight_with_an_error(session: &mut PostgresSession, insert: Statement, select: Statement) {
    let mut results = Vec::new();
    for id in [2, 1, 3] {
        session.queue(insert, &[Param::Int(id)]).unwrap();
    }
    session.queue(select, &[]).unwrap();
    session.flush(&mut Discard, &mut results).await.unwrap();
    assert_eq!(results.len(), 4);
    assert_eq!(results[0].as_ref().unwrap(), &rows_changed(1));
    for result in &results[1..] {
        let error = result.as_ref().unwrap_err();
        assert_eq!((error.class(), error.sqlstate()), (ErrorClass::Constraint, "23505"));
    }
    assert!(results[1].as_ref().unwrap_err().message().contains("duplicate key"));
    assert!(results[2].as_ref().unwrap_err().message().contains("not executed"));
    assert!(!session.is_in_transaction());
    // One implicit transaction: the first insert is undone as well.
    assert_eq!(single(session, "SELECT count(*) FROM f").await, "1");
    // Rollback forgets what was queued.
    session.queue(insert, &[Param::Int(9)]).unwrap();
    session.rollback().await.unwrap();
    session.flush(&mut Discard, &mut results).await.unwrap();
    assert_eq!(results.len(), 4);
}

/// Larger in both directions than the sockets' buffers: sending without receiving would never end.
async fn long_flight(session: &mut PostgresSession) {
    let echo = session.prepare("SELECT $1 || $1 || $1", &[ParamType::Text]).await.unwrap();
    let text = vec![b'z'; 20_000];
    for _ in 0..200 {
        session.queue(echo, &[Param::Text(&text)]).unwrap();
    }
    let mut results = Vec::new();
    session.flush(&mut Discard, &mut results).await.unwrap();
    assert_eq!(results.len(), 200);
    assert!(results.iter().all(|result| result.as_ref() == Ok(&READ)));
}

/// Rows of number, text and number or NULL.
struct Numbered {
    next: i64,
    end: i64,
    text: &'static [u8],
}

impl RowSource for Numbered {
    fn next_row(&mut self, out: &mut dyn RowWriter) -> bool {
        if self.next == self.end {
            return false;
        }
        out.int(self.next);
        out.text(self.text);
        if self.next % 2 == 0 {
            out.null();
        } else {
            out.double(self.next as f64 / 2.0);
        }
        self.next += 1;
        true
    }

    fn restart(&mut self) {
        self.next = 0;
    }
}

#[test]
fn copies() {
    let server = server_or_skip!(Postgres, "copies");
    block_on(async {
        let mut session = session(&server).await;
        let create = "CREATE TABLE c (extra int DEFAULT 7, id int UNIQUE, t text, d float8)";
        run(&mut session, create).await.unwrap();
        let columns = ["id", "t", "d"];
        let text = "tab\t newline\n return\r back\\slash \\N \\. ü '\"";
        let mut source = Numbered { next: 0, end: 20_000, text: text.as_bytes() };
        let report = session.bulk_load("c", &columns, &mut source).await.unwrap();
        assert_eq!((report.rows, report.method), (20_000, BulkMethod::Copy));
        assert_eq!(report.fallback, None);
        let check = "SELECT count(*), count(d), sum(d), min(t), max(t), sum(extra) FROM c";
        let expected = ["20000", "10000", "50000000", text, text, "140000"];
        let rows = table(&mut session, check).await.rows;
        assert_eq!(rows, [expected.map(|text| Some(text.to_owned()))]);

        // An error in the first rows of a long copy ends it soon, and nothing of it stays.
        let mut source = Numbered { next: 19_999, end: 5_000_000, text: b"x" };
        let failed = session.bulk_load("c", &columns, &mut source).await.unwrap_err();
        assert_eq!(failed.class(), ErrorClass::Constraint);
        assert!(source.next < 4_000_000, "all rows were sent after the error: {}", source.next);
        assert_eq!(single(&mut session, "SELECT count(*) FROM c").await, "20000");

        let mut none = Numbered { next: 0, end: 0, text: b"" };
        assert_eq!(session.bulk_load("c", &columns, &mut none).await.unwrap().rows, 0);
        let failed = session.bulk_load("nowhere", &[], &mut none).await.unwrap_err();
        assert_eq!(failed.sqlstate(), "42P01");
        noisy_copy(&mut session).await;
    })
    .unwrap();
}

/// A trigger that says more than the sockets hold: the copy must listen while it sends.
async fn noisy_copy(session: &mut PostgresSession) {
    let trigger = "CREATE FUNCTION say() RETURNS trigger LANGUAGE plpgsql AS \
         $$ BEGIN RAISE WARNING '%', repeat('w', 2000); RETURN new; END $$; \
         CREATE TRIGGER say BEFORE INSERT ON c FOR EACH ROW EXECUTE FUNCTION say()";
    run(session, trigger).await.unwrap();
    let mut source = Numbered { next: 20_000, end: 23_000, text: &[b'q'; 1000] };
    let report = session.bulk_load("c", &["id", "t", "d"], &mut source).await.unwrap();
    assert_eq!(report.rows, 3_000);
    assert_eq!(session.take_notice_lines().len(), 100);
}

#[test]
fn canceled_and_lost() {
    every_end(&mut server_or_skip!(Postgres, "canceled_and_lost"));
}

/// Statements that are canceled, refused or killed.
pub(crate) fn every_end(server: &mut Postgres) {
    cancel(server);
    block_on(query_is_abandoned(server)).unwrap();
    block_on(session_is_terminated(server)).unwrap();
    block_on(lock_timeouts_and_stale_snapshots(server)).unwrap();
    deadlocks(server);
    block_on(server_is_killed(server)).unwrap();
}

async fn server_is_killed(server: &mut Postgres) {
    let driver = driver(&server.url());
    let mut session = driver.connect(0).await.unwrap();
    let select = session.prepare("SELECT 1", &[]).await.unwrap();
    server.kill();
    // The postmaster's children notice its death within moments, not at once.
    let error = loop {
        match session.execute(select, &[], &mut Discard).await {
            Ok(_) => sleep_until(now() + 20_000_000).await,
            Err(lost) => break lost,
        }
    };
    assert!(error.is_fatal(), "{error:?}");
    assert!(session.execute(select, &[], &mut Discard).await.unwrap_err().is_fatal());
    assert!(session.rollback().await.unwrap_err().is_fatal());
    let error = driver.connect(1).await.err().unwrap();
    assert_eq!(error.cause(), Cause::Unreachable, "{error}");
    server.restart().unwrap();
    let mut again = driver.connect(2).await.unwrap();
    assert_eq!(single(&mut again, "SELECT 2").await, "2");
}

fn cancel(server: &Postgres) {
    let token = RefCell::new(None);
    let is_canceled = Cell::new(false);
    let sleeper = async {
        let mut session = session(server).await;
        *token.borrow_mut() = Some(session.cancel_token());
        let canceled = run(&mut session, "SELECT pg_sleep(60)").await.unwrap_err();
        assert_eq!((canceled.sqlstate(), canceled.is_fatal()), ("57014", false));
        is_canceled.set(true);
        // A late request may hit this one instead.
        let next = run(&mut session, "SELECT 1").await;
        assert!(
            next.is_ok_and(|executed| executed == READ)
                || single(&mut session, "SELECT 1").await == "1"
        );
    };
    let canceler = async {
        while !is_canceled.get() {
            // Again until it hits: the first request may come before the statement has begun, or
            // the first look before the session has connected.
            sleep_until(now() + 50_000_000).await;
            let cancel_token: Option<CancelToken> = token.borrow().clone();
            if let Some(cancel_token) = cancel_token.filter(|_| !is_canceled.get()) {
                cancel_token.cancel().await.unwrap();
            }
        }
    };
    let tasks: [std::pin::Pin<Box<dyn Future<Output = ()> + '_>>; 2] =
        [Box::pin(sleeper), Box::pin(canceler)];
    run_all(tasks).unwrap();
}

/// A future that is dropped in mid-flight must not leave its answer to the next statement.
async fn query_is_abandoned(server: &Postgres) {
    let mut session = session(server).await;
    let sleeping = run(&mut session, "SELECT pg_sleep(60)");
    assert!(timeout(now() + 20_000_000, sleeping).await.is_err());
    let error = run(&mut session, "SELECT 1").await.unwrap_err();
    assert!(error.is_fatal(), "{error}");
}

async fn session_is_terminated(server: &Postgres) {
    let mut victim = session(server).await;
    let process = single(&mut victim, "SELECT pg_backend_pid()").await;
    let mut observer = session(server).await;
    let kill = format!("SELECT pg_terminate_backend({process}, 5000)");
    assert_eq!(single(&mut observer, &kill).await, "t");
    let error = run(&mut victim, "SELECT 1").await.unwrap_err();
    assert_eq!((error.sqlstate(), error.class()), ("57P01", ErrorClass::ConnectionLost));
    assert_eq!(error.cause(), Cause::Lost);
    assert!(run(&mut victim, "SELECT 1").await.unwrap_err().is_fatal());
}

async fn lock_timeouts_and_stale_snapshots(server: &Postgres) {
    let (mut one, mut two) = (session(server).await, session(server).await);
    run(&mut one, "CREATE TABLE l AS SELECT g id FROM generate_series(1, 2) g").await.unwrap();
    run(&mut one, "BEGIN; UPDATE l SET id = id WHERE id = 1").await.unwrap();
    run(&mut two, "SET lock_timeout = '20ms'").await.unwrap();
    let late = run(&mut two, "UPDATE l SET id = id").await.unwrap_err();
    assert_eq!((late.class(), late.sqlstate()), (ErrorClass::LockTimeout, "55P03"));

    run(&mut two, "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT * FROM l").await.unwrap();
    run(&mut one, "COMMIT").await.unwrap();
    let stale = run(&mut two, "UPDATE l SET id = id WHERE id = 1").await.unwrap_err();
    assert_eq!((stale.class(), stale.sqlstate()), (ErrorClass::Serialization, "40001"));
}

fn deadlocks(server: &Postgres) {
    let locked = Cell::new(0);
    let locked = &locked;
    let tasks = [(1, 2), (2, 1)].map(|(first, second)| async move {
        let mut session = session(server).await;
        run(&mut session, "SET deadlock_timeout = '50ms'; BEGIN").await.unwrap();
        let update_sql = |id| format!("UPDATE l SET id = id WHERE id = {id}");
        run(&mut session, &update_sql(first)).await.unwrap();
        locked.set(locked.get() + 1);
        while locked.get() < 2 {
            sleep_until(now() + 5_000_000).await;
        }
        let outcome = run(&mut session, &update_sql(second)).await.map_err(|error| error.class());
        session.rollback().await.unwrap();
        outcome
    });
    let outcomes = run_all(tasks).unwrap();
    assert!(outcomes.contains(&Err(ErrorClass::Deadlock)), "{outcomes:?}");
    assert!(outcomes.contains(&Ok(rows_changed(1))), "{outcomes:?}");
}
