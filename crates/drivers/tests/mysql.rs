//! MySQL sessions against a real MariaDB.

#[path = "mysql/support.rs"]
mod support;

use dyno_core::{
    BulkMethod, Cause, Discard, Driver, ErrorClass, Executed, Param, ParamType, Row, RowSource,
    RowWriter, Rows, Session, Table,
};
use dyno_drivers::mysql::MysqlSession;
use dyno_tests::{MariaDb, server_or_skip, skipped};
use support::{allocations, connect, driver, run};

fn text(value: &str) -> Option<String> {
    Some(value.to_owned())
}

async fn ask(session: &mut MysqlSession, sql: &str) -> Vec<Vec<Option<String>>> {
    let mut table = Table::default();
    session.query(sql, &mut table).await.unwrap();
    table.rows
}

async fn run_sql(session: &mut MysqlSession, statements: &[&str]) {
    for sql in statements {
        session.query(sql, &mut Discard).await.unwrap();
    }
}

/// Keeps the numbers of the first column.
#[derive(Default)]
struct Ints(Vec<Option<i64>>);

impl Rows for Ints {
    fn row<R: Row>(&mut self, row: &R) {
        self.0.push(row.int(0));
    }
}

#[test]
fn statements() {
    let server = match MariaDb::start_with(&["--max-allowed-packet=64M"]) {
        Ok(server) => server,
        Err(why) => return skipped("statements", &why),
    };
    let sizes = [(1 << 24) - 20, (1 << 24) - 1, 1 << 24, 20_000_000, 2 * ((1 << 24) - 1)];
    run(async {
        for url in [server.url(), server.socket_url()] {
            let mut session = connect(&url).await.unwrap();
            assert_eq!(session.product().name, "MariaDB");
            assert!(!session.product().version.starts_with("5.5.5-"));
            prepared_values(&mut session).await;
            several_results(&mut session).await;
            text_only_statements(&mut session).await;
            errors(&mut session).await;
            flights(&mut session).await;
            big_packets(&mut session, &sizes).await;
            session.close().await;
        }
        session_variables(&server).await;
        an_abandoned_call(&server).await;
        kill_query(&server).await;
        no_allocations(&server).await;
    });
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
    let done = session
        .execute(
            insert,
            &[Param::Int(i64::MIN), Param::Double(0.5), Param::Text("Zürich 🎈".as_bytes())],
            &mut Discard,
        )
        .await
        .unwrap();
    assert_eq!(done, Executed { has_rows: false, rows: 0, affected: 1 });
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
    let rest = ["2026-02-28 01:02:03.456", "-1.50", "254", "-26:03:04", "0.1", "2026-02-28"];
    let select = session.prepare("SELECT * FROM v", &[]).await.unwrap();
    // Twice: the second answer has no column definitions.
    for _ in 0..2 {
        let mut binary = Table::default();
        let done = session.execute(select, &[], &mut binary).await.unwrap();
        assert_eq!(done, Executed { has_rows: true, rows: 3, affected: 0 });
        for (row, first) in binary.rows.iter().zip(&expected) {
            assert_eq!(row[..3], first[..]);
            assert!(row[3..].iter().zip(rest).all(|(value, rest)| value.as_deref() == Some(rest)));
        }
        assert_eq!(ask(session, "SELECT * FROM v").await, binary.rows);
        let counted = session.execute(select, &[], &mut Discard).await.unwrap();
        assert_eq!(counted, done);
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

async fn several_results(session: &mut MysqlSession) {
    let mut table = Table::default();
    let sql = "SELECT 1 UNION SELECT 2; UPDATE v SET a=1 WHERE a=-7; SELECT 'x'";
    let done = session.query(sql, &mut table).await.unwrap();
    assert_eq!(done, Executed { has_rows: true, rows: 3, affected: 1 });
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
        let mut table = Table::default();
        let done = session.execute(call, &[], &mut table).await.unwrap();
        assert_eq!((done.has_rows, done.rows), (true, 2));
        assert_eq!(table.rows, [vec![text("1"), text("2")], vec![text("three")]]);
    }
    let error = session.query("SELECT 1; SELECT * FROM nowhere; SELECT 2", &mut Discard).await;
    assert_eq!(error.unwrap_err().errno(), 1146);
    assert_eq!(ask(session, "SELECT 3").await, [[text("3")]]);
}

/// Error 1295: what can't be prepared is sent as text.
async fn text_only_statements(session: &mut MysqlSession) {
    let lock = session.prepare("PREPARE x FROM 'SELECT 1'", &[]).await.unwrap();
    session.execute(lock, &[], &mut Discard).await.unwrap();
    assert_eq!(ask(session, "EXECUTE x").await, [[text("1")]]);
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
    assert_eq!(ask(session, "SELECT COUNT(*) FROM u").await, [[text("2")]]);
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

async fn big_packets(session: &mut MysqlSession, sizes: &[usize]) {
    let sum = session.prepare("SELECT LENGTH(?), 'end'", &[ParamType::Text]).await.unwrap();
    for &size in sizes {
        let long = vec![b'z'; size];
        let mut ints = Ints::default();
        session.execute(sum, &[Param::Text(&long)], &mut ints).await.unwrap();
        assert_eq!(ints.0, [Some(size as i64)]);
        let sql = format!("SELECT REPEAT('z', {size}) UNION ALL SELECT 'end'");
        let rows = ask(session, &sql).await;
        assert_eq!(rows[0][0].as_ref().map(String::len), Some(size));
        assert_eq!(rows[1][0], text("end"));
        let counted = session.query(&sql, &mut Discard).await.unwrap();
        assert_eq!(counted.rows, 2);
    }
}

async fn session_variables(server: &MariaDb) {
    let url = format!("{}?set.sort_buffer_size=1048576&set.sql_mode=ANSI", server.url());
    let mut session = connect(&url).await.unwrap();
    let rows =
        ask(&mut session, "SELECT @@sort_buffer_size, @@sql_mode, @@character_set_client").await;
    assert_eq!(rows[0][0], text("1048576"));
    assert!(rows[0][1].as_ref().unwrap().contains("ANSI"));
    assert_eq!(rows[0][2], text("utf8mb4"));
    let url = format!("{}?set.no_such_variable=1", server.url());
    let error = connect(&url).await.unwrap_err();
    assert_eq!((error.cause(), error.errno()), (Cause::Rejected, 1193));
    assert!(error.message().contains("no_such_variable") && error.hint().is_some());
}

/// A call that was dropped half-way leaves a session that says so, and does not answer the next
/// call with the earlier one's rows.
async fn an_abandoned_call(server: &MariaDb) {
    let mut session = connect(&server.url()).await.unwrap();
    let due = dyno_reactor::now() + 50 * dyno_core::MILLISECOND;
    let mut rows = Discard;
    let slow = session.query("SELECT SLEEP(1)", &mut rows);
    assert!(dyno_reactor::timeout(due, slow).await.is_err());
    let error = session.query("SELECT 1", &mut Discard).await.unwrap_err();
    assert_eq!(error.class(), ErrorClass::ConnectionLost);
    assert!(session.rollback().await.is_err());
}

async fn kill_query(server: &MariaDb) {
    let driver = driver(&server.url());
    let mut session = driver.connect(0).await.unwrap();
    let id = session.connection_id();
    let mut rows = Ints::default();
    let answer = {
        let mut slow = std::pin::pin!(session.query("SELECT SLEEP(100)", &mut rows));
        let due = dyno_reactor::now() + 300 * dyno_core::MILLISECOND;
        assert!(dyno_reactor::timeout(due, slow.as_mut()).await.is_err());
        driver.kill_query(0, id).await.unwrap();
        slow.await
    };
    // SLEEP answers 1 when it was interrupted, or fails, which leaves the session usable.
    match answer {
        Ok(_) => assert_eq!(rows.0, [Some(1)]),
        Err(error) => assert_eq!((error.errno(), error.class()), (1317, ErrorClass::Other)),
    }
    assert_eq!(ask(&mut session, "SELECT 5").await, [[text("5")]]);
    assert_eq!(driver.kill_query(0, u32::MAX).await.unwrap_err().errno(), 1094);
}

async fn no_allocations(server: &MariaDb) {
    let mut session = connect(&server.socket_url()).await.unwrap();
    let select = session.prepare("SELECT ?, 'abc'", &[ParamType::Int]).await.unwrap();
    let mut total = 0;
    let mut results = Vec::new();
    for round in 0..3 {
        let before = allocations();
        for id in 0..100 {
            session.execute(select, &[Param::Int(id)], &mut Discard).await.unwrap();
            let mut sum = Sum::default();
            session.execute(select, &[Param::Int(id)], &mut sum).await.unwrap();
            total += sum.0;
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
    fn row<R: Row>(&mut self, row: &R) {
        self.0 += row.int(0).unwrap_or(0);
    }
}

#[test]
fn accounts() {
    let certificates = match support::Certificates::make() {
        Ok(certificates) => certificates,
        Err(why) => return skipped("accounts", &why),
    };
    let mut options = certificates.server_options();
    options.extend(["--max-connections=20", "--max-allowed-packet=64M"].map(str::to_owned));
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    let server = match MariaDb::start_with(&options) {
        Ok(server) => server,
        Err(why) => return skipped("accounts", &why),
    };
    server
        .sql(
            "CREATE USER native@'%' IDENTIFIED BY 'pass wörd';
             CREATE USER secure@'%' IDENTIFIED BY 'x' REQUIRE SSL;
             GRANT ALL ON sbtest.* TO native@'%', secure@'%'",
        )
        .unwrap();
    run(async {
        let at =
            |user: &str, rest: &str| format!("mysql://{user}@127.0.0.1:{}/{rest}", server.port);
        let native = "native:pass%20w%C3%B6rd";
        let mut session = connect(&at(native, "sbtest?tls=disable")).await.unwrap();
        assert_eq!(session.tls_description(), None);
        assert_eq!(ask(&mut session, "SELECT CURRENT_USER()").await, [[text("native@%")]]);
        let sql = "SELECT attr_value FROM performance_schema.session_connect_attrs \
                   WHERE attr_name='program_name' LIMIT 1";
        let attributes = server.sql("SELECT @@performance_schema").unwrap();
        if attributes.trim() == "1" {
            assert_eq!(ask(&mut session, sql).await, [[text("dyno")]]);
        }

        let wrong = connect(&at("native:hunter2", "sbtest")).await.unwrap_err();
        assert_eq!((wrong.cause(), wrong.errno()), (Cause::Rejected, 1045));
        assert!(wrong.hint().unwrap().contains("check user and password"));
        assert!(!format!("{wrong:?}{wrong}{:?}", wrong.hint()).contains("hunter2"));
        let none = connect(&at("native", "sbtest")).await.unwrap_err();
        assert!(none.hint().unwrap().contains("no password was given"));
        let unknown = connect(&at("root", "nowhere")).await.unwrap_err();
        assert_eq!((unknown.cause(), unknown.errno()), (Cause::Rejected, 1049));
        assert!(unknown.hint().unwrap().contains("CREATE DATABASE"));
        let url = format!("mysql://root@127.0.0.1:{}/", dyno_tests::free_port());
        let port = connect(&url).await.unwrap_err();
        assert_eq!(port.cause(), Cause::Unreachable);

        tls(&certificates, &at).await;
        ed25519(&server, &at).await;
        too_many_connections(&at("root", "sbtest?tls=disable")).await;
    });
}

async fn tls(certificates: &support::Certificates, at: &impl Fn(&str, &str) -> String) {
    let ca = certificates.ca();
    for mode in ["prefer", "require", "verify-ca", "verify-full"] {
        let options = if mode.starts_with("verify") { format!("&ca={ca}") } else { String::new() };
        let url = at("secure:x", &format!("sbtest?tls={mode}{options}"));
        let mut session = connect(&url).await.unwrap();
        assert!(session.tls_description().is_some(), "{mode}");
        let rows = ask(&mut session, "SHOW STATUS LIKE 'Ssl_cipher'").await;
        assert_ne!(rows[0][1], text(""), "{mode}");
        big_packets(&mut session, &[if mode == "require" { 20_000_000 } else { 100_000 }]).await;
    }
    let refused = connect(&at("secure:x", "sbtest?tls=disable")).await.unwrap_err();
    assert_eq!(refused.cause(), Cause::Rejected);
    let untrusted = connect(&at("secure:x", "sbtest?tls=verify-ca")).await.unwrap_err();
    assert_eq!(untrusted.cause(), Cause::Rejected, "{untrusted}");
    let other = certificates.other_ca();
    let url = at("secure:x", &format!("sbtest?tls=verify-full&ca={other}"));
    assert_eq!(connect(&url).await.unwrap_err().cause(), Cause::Rejected);
}

async fn ed25519(server: &MariaDb, at: &impl Fn(&str, &str) -> String) {
    if let Err(why) = server.sql("INSTALL SONAME 'auth_ed25519'") {
        return skipped("ed25519", &why);
    }
    server
        .sql("CREATE USER ed@'%' IDENTIFIED VIA ed25519 USING PASSWORD('secret'); GRANT ALL ON sbtest.* TO ed@'%'")
        .unwrap();
    let mut session = connect(&at("ed:secret", "sbtest?tls=disable")).await.unwrap();
    assert_eq!(ask(&mut session, "SELECT CURRENT_USER()").await, [[text("ed@%")]]);
    assert_eq!(connect(&at("ed:wrong", "sbtest")).await.unwrap_err().errno(), 1045);
}

async fn too_many_connections(url: &str) {
    let mut open = Vec::new();
    let error = loop {
        assert!(open.len() < 40, "the server's limit is 20");
        match connect(url).await {
            Ok(session) => open.push(session),
            Err(error) => break error,
        }
    };
    assert_eq!((error.cause(), error.errno()), (Cause::Rejected, 1040));
    assert!(error.hint().unwrap().contains("max_connections"));
}

/// Rows with everything that is hard to write: `count` of them, made on the fly.
struct Odd {
    next: i64,
    count: i64,
    restarts: u32,
    duplicate: bool,
}

const TEXTS: [&str; 6] =
    ["plain", "tab\there", "line\nbreak\r", r"back\slash \N \.", "it's \"quoted\"", "Zürich 🎈"];

impl Odd {
    fn new(count: i64) -> Self {
        Odd { next: 0, count, restarts: 0, duplicate: false }
    }
}

impl RowSource for Odd {
    fn next_row<W: RowWriter>(&mut self, out: &mut W) -> bool {
        if self.next == self.count {
            return false;
        }
        let id = if self.duplicate { 5 } else { self.next };
        out.int(id);
        out.int(-self.next);
        match self.next % 7 {
            6 => out.null(),
            kind => out.text(TEXTS[kind as usize].as_bytes()),
        }
        out.double(self.next as f64 / 4.0);
        self.next += 1;
        true
    }

    fn restart(&mut self) {
        self.next = 0;
        self.restarts += 1;
    }
}

const COLUMNS: [&str; 4] = ["id", "k", "c", "d"];

async fn check_odd_rows(session: &mut MysqlSession, count: i64) {
    let sql = "SELECT COUNT(*), SUM(k), SUM(d), SUM(c IS NULL), MIN(id), MAX(id) FROM odd";
    let sum = count * (count - 1) / 2;
    let nulls = count / 7;
    let expected = [count.to_string(), (-sum).to_string(), nulls.to_string()];
    let rows = ask(session, sql).await;
    assert_eq!([&rows[0][0], &rows[0][1], &rows[0][3]].map(|v| v.clone().unwrap()), expected);
    assert_eq!(rows[0][2].as_ref().unwrap().parse::<f64>().unwrap(), sum as f64 / 4.0);
    for (kind, wanted) in TEXTS.iter().enumerate() {
        let sql = format!("SELECT c, d FROM odd WHERE id = {}", kind + 7);
        let rows = ask(session, &sql).await;
        assert_eq!(rows[0][0].as_deref(), Some(*wanted));
    }
}

#[test]
fn bulk_loads() {
    let server = server_or_skip!(MariaDb, "bulk_loads");
    run(async {
        let mut session = connect(&server.url()).await.unwrap();
        let table = "CREATE TABLE odd (id INT PRIMARY KEY, k INT, c VARCHAR(100), d DOUBLE)
                     ENGINE=InnoDB CHARACTER SET utf8mb4";
        run_sql(&mut session, &[table]).await;
        for mode in ["STRICT_TRANS_TABLES", "STRICT_TRANS_TABLES,NO_BACKSLASH_ESCAPES"] {
            for allowed in [true, false] {
                let sql = format!("SET GLOBAL local_infile={allowed}");
                run_sql(&mut session, &[&sql, "TRUNCATE odd"]).await;
                let mut session = connect(&server.url()).await.unwrap();
                run_sql(&mut session, &[&format!("SET sql_mode='{mode}'")]).await;
                one_load(&mut session, allowed).await;
            }
        }
        run_sql(&mut session, &["SET GLOBAL local_infile=1"]).await;
        let mut session = connect(&server.url()).await.unwrap();
        refused_loads(&mut session).await;
    });
}

async fn one_load(session: &mut MysqlSession, allowed: bool) {
    let count = 30_000;
    let mut rows = Odd::new(count);
    let report = session.bulk_load("odd", &COLUMNS, &mut rows).await.unwrap();
    assert_eq!(report.rows, count as u64);
    if allowed {
        assert_eq!((report.method, report.fallback_reason), (BulkMethod::LoadData, None));
    } else {
        assert_eq!(report.method, BulkMethod::MultiRowInsert);
        let reason = report.fallback_reason.unwrap();
        assert!(reason.contains("4166") || reason.contains("1148"), "{reason}");
        assert_eq!(rows.restarts, 1);
    }
    check_odd_rows(session, count).await;
    let none = session.bulk_load("odd", &COLUMNS, &mut Odd::new(0)).await.unwrap();
    assert_eq!(none.rows, 0);
}

/// All or nothing: duplicates and text that does not fit undo the load.
async fn refused_loads(session: &mut MysqlSession) {
    run_sql(session, &["TRUNCATE odd"]).await;
    let mut rows = Odd { duplicate: true, ..Odd::new(10) };
    let error = session.bulk_load("odd", &COLUMNS, &mut rows).await.unwrap_err();
    assert_eq!((error.class(), error.errno()), (ErrorClass::Constraint, 1062), "{error}");
    assert_eq!(ask(session, "SELECT COUNT(*) FROM odd").await, [[text("0")]]);
    let error = session.bulk_load("nowhere", &COLUMNS, &mut Odd::new(1)).await.unwrap_err();
    assert_eq!(error.errno(), 1146);
    run_sql(session, &["ALTER TABLE odd MODIFY c VARCHAR(5)"]).await;
    let error = session.bulk_load("odd", &COLUMNS, &mut Odd::new(10_000)).await.unwrap_err();
    assert!(error.message().contains("undone"), "{error}");
    assert_eq!(ask(session, "SELECT COUNT(*) FROM odd").await, [[text("0")]]);
    // A statement of one's own that asks for a file gets none.
    let sql = "LOAD DATA LOCAL INFILE '/etc/hostname' INTO TABLE odd";
    let error = session.query(sql, &mut Discard).await.unwrap_err();
    assert_eq!(error.cause(), Cause::Protocol);
    assert!(error.message().contains("/etc/hostname"), "{error}");
    assert_eq!(ask(session, "SELECT COUNT(*) FROM odd").await, [[text("0")]]);
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
        let mut lost = None;
        for _ in 0..200 {
            match session.execute(prepared, &[], &mut Discard).await {
                Err(error) => {
                    lost = Some(error);
                    break;
                }
                Ok(_) => {
                    let due = dyno_reactor::now() + 20 * dyno_core::MILLISECOND;
                    dyno_reactor::sleep_until(due).await;
                }
            }
        }
        assert_eq!(lost.unwrap().class(), ErrorClass::ConnectionLost);
        assert!(session.execute(prepared, &[], &mut Discard).await.unwrap_err().is_fatal());
    });
}
