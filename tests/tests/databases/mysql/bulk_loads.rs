//! Bulk loads on a real MariaDB.

use super::support::{connect, query_rows, run, run_sql, text};
use dyno_core::{BulkMethod, Discard, ErrorClass, RowSource, RowWriter, Session};
use dyno_drivers::mysql::MysqlSession;
use dyno_testkit::{MariaDb, server_or_skip};

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
    fn next_row(&mut self, out: &mut dyn RowWriter) -> bool {
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
    let rows = query_rows(session, sql).await;
    assert_eq!([&rows[0][0], &rows[0][1], &rows[0][3]].map(|v| v.clone().unwrap()), expected);
    assert_eq!(rows[0][2].as_ref().unwrap().parse::<f64>().unwrap(), sum as f64 / 4.0);
    for (kind, wanted) in TEXTS.iter().enumerate() {
        let sql = format!("SELECT c, d FROM odd WHERE id = {}", kind + 7);
        let rows = query_rows(session, &sql).await;
        assert_eq!(rows[0][0].as_deref(), Some(*wanted));
    }
}

#[test]
fn bulk_loads() {
    let server = server_or_skip!(MariaDb, "bulk_loads");
    run(async {
        load_and_fall_back(&server.url()).await;
        refused_loads(&mut connect(&server.url()).await.unwrap()).await;
    });
}

/// Both ways of loading under two SQL modes. Leaves the table and LOAD DATA LOCAL allowed.
pub(crate) async fn load_and_fall_back(url: &str) {
    let mut session = connect(url).await.unwrap();
    let table = "CREATE TABLE odd (id INT PRIMARY KEY, k INT, c VARCHAR(100), d DOUBLE)
                 ENGINE=InnoDB CHARACTER SET utf8mb4";
    run_sql(&mut session, &["DROP TABLE IF EXISTS odd", table]).await;
    for mode in ["STRICT_TRANS_TABLES", "STRICT_TRANS_TABLES,NO_BACKSLASH_ESCAPES"] {
        for allowed in [false, true] {
            let sql = format!("SET GLOBAL local_infile={allowed}");
            run_sql(&mut session, &[&sql, "TRUNCATE odd"]).await;
            let mut session = connect(url).await.unwrap();
            run_sql(&mut session, &[&format!("SET sql_mode='{mode}'")]).await;
            one_load(&mut session, allowed).await;
        }
    }
}

async fn one_load(session: &mut MysqlSession, allowed: bool) {
    let count = 30_000;
    let mut rows = Odd::new(count);
    let report = session.bulk_load("odd", &COLUMNS, &mut rows).await.unwrap();
    assert_eq!(report.rows, count as u64);
    if allowed {
        assert_eq!((report.method, report.fallback), (BulkMethod::LoadData, None));
    } else {
        assert_eq!(report.method, BulkMethod::MultiRowInsert);
        let fallback = report.fallback.unwrap();
        let is_known =
            |text: &String| ["4166", "1148", "3948"].iter().any(|code| text.contains(code));
        assert!(fallback.refusal.as_ref().is_none_or(is_known), "{fallback:?}");
        assert_eq!(rows.restarts, 1);
    }
    check_odd_rows(session, count).await;
    let none = session.bulk_load("odd", &COLUMNS, &mut Odd::new(0)).await.unwrap();
    assert_eq!(none.rows, 0);
}

/// All or nothing: duplicates and text that does not fit undo the load.
pub(crate) async fn refused_loads(session: &mut MysqlSession) {
    run_sql(session, &["TRUNCATE odd"]).await;
    let mut rows = Odd { duplicate: true, ..Odd::new(10) };
    let error = session.bulk_load("odd", &COLUMNS, &mut rows).await.unwrap_err();
    assert_eq!((error.class(), error.errno()), (ErrorClass::Constraint, 1062), "{error}");
    assert_eq!(query_rows(session, "SELECT COUNT(*) FROM odd").await, [[text("0")]]);
    let error = session.bulk_load("nowhere", &COLUMNS, &mut Odd::new(1)).await.unwrap_err();
    assert_eq!(error.errno(), 1146);
    run_sql(session, &["ALTER TABLE odd MODIFY c VARCHAR(5)"]).await;
    let error = session.bulk_load("odd", &COLUMNS, &mut Odd::new(10_000)).await.unwrap_err();
    assert!(error.message().contains("undone"), "{error}");
    assert_eq!(query_rows(session, "SELECT COUNT(*) FROM odd").await, [[text("0")]]);
    // A statement of one's own that asks for a file gets none.
    let sql = "LOAD DATA LOCAL INFILE '/etc/hostname' INTO TABLE odd";
    let error = session.query(sql, &mut Discard).await.unwrap_err();
    assert_eq!((error.errno(), error.is_fatal()), (2068, false));
    assert!(error.message().contains("/etc/hostname"), "{error}");
    assert_eq!(query_rows(session, "SELECT COUNT(*) FROM odd").await, [[text("0")]]);
}
