//! Loads into real databases: whole, interrupted, changed behind the loader's back.

use dyno_core::{AdminSession, Dialect, Discard, Driver, Session};
use dyno_drivers::mysql::MysqlDriver;
use dyno_drivers::postgres::PostgresDriver;
use dyno_drivers::sqlite::SqliteDriver;
use dyno_facts::CheckVerdict;
use dyno_facts::Message;
use dyno_load::LoadObserver;
use dyno_testkit::{
    MariaDb, Postgres, Scratch, number, server_or_skip, skipped, target, with_session,
};
use dyno_tpch::generate::row_count;
use dyno_tpch::load::{LoadError, TpchLoadOptions, TpchLoadReport, TpchStep, destroy, load};
use dyno_tpch::schema::SchemaTable;
use dyno_tpch::state::{TpchDatabase, loaded, note_refresh_pair};
use dyno_tpch::warm::warm;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// Small, and yet with more than one piece of lineitem.
const SCALE: f64 = 0.03;

fn options() -> TpchLoadOptions {
    TpchLoadOptions { sessions: 3, ..TpchLoadOptions::new(SCALE) }
}

fn state<D: Driver>(driver: &D) -> Result<Option<TpchDatabase>, LoadError> {
    with_session(driver, async |session: &mut D::Session| {
        loaded(&mut AdminSession::lent(session)).await
    })
}

fn all_rows() -> u64 {
    SchemaTable::ALL.into_iter().map(|table| row_count(table, SCALE)).sum()
}

/// Keys in the catalog: primary keys, foreign keys, secondary indexes.
fn keys<D: Driver>(driver: &D) -> [u64; 3] {
    let counts: [&str; 3] = match driver.dialect() {
        Dialect::Mysql => [
            "SELECT count(*) FROM information_schema.table_constraints WHERE table_schema = \
             DATABASE() AND constraint_type = 'PRIMARY KEY' AND table_name NOT LIKE 'dyno%'",
            "SELECT count(*) FROM information_schema.table_constraints WHERE table_schema = \
             DATABASE() AND constraint_type = 'FOREIGN KEY'",
            "SELECT count(DISTINCT table_name, index_name) FROM information_schema.statistics \
             WHERE table_schema = DATABASE() AND index_name LIKE 'i\\_%'",
        ],
        Dialect::Postgres => [
            "SELECT count(*) FROM pg_constraint WHERE contype = 'p' AND conname NOT LIKE 'dyno%' \
             AND connamespace = 'public'::regnamespace",
            "SELECT count(*) FROM pg_constraint WHERE contype = 'f' AND convalidated",
            "SELECT count(*) FROM pg_indexes WHERE indexname LIKE 'i\\_%'",
        ],
        // The keys of six tables are their row numbers.
        Dialect::Sqlite => [
            "SELECT 6 + count(*) FROM sqlite_master WHERE type = 'index' AND name LIKE '%\\_pkey' \
             ESCAPE '\\'",
            "SELECT count(*) FROM (SELECT DISTINCT m.name, k.id FROM sqlite_master m JOIN \
             pragma_foreign_key_list(m.name) k)",
            "SELECT count(*) FROM sqlite_master WHERE type = 'index' AND name LIKE 'i\\_%' ESCAPE \
             '\\'",
        ],
    };
    counts.map(|sql| number(driver, sql))
}

/// Reads all into memory; the verdict, and what it is based on.
fn warmed<D: Driver>(driver: &D) -> (Option<CheckVerdict>, String) {
    let facts = with_session(driver, async |session: &mut D::Session| {
        warm(&mut AdminSession::lent(session)).await.unwrap()
    });
    assert_eq!(facts.state, "warm");
    (facts.verdict, Message::joined(&facts.evidence, "\n", "\n").to_string())
}

/// A complete database is as it must be, is left alone, and can be dropped.
fn assert_complete<D: Driver>(driver: &D) {
    assert_eq!(keys(driver), [8, 10, 14]);
    for table in SchemaTable::ALL {
        let stored = number(driver, &format!("SELECT count(*) FROM {}", table.name()));
        assert_eq!(stored, row_count(table, SCALE), "{table:?}");
    }
    let again = load(&driver.admin(), &options(), &Marking).unwrap();
    assert!(again.rows.was_complete && again.is_complete, "{again:?}");
    let other_scale = TpchLoadOptions { scale: 0.02, ..options() };
    let error = load(&driver.admin(), &other_scale, &Marking).unwrap_err();
    let text = "scale factor 0.03 with foreign keys and with secondary indexes is loaded, and \
                scale factor 0.02";
    assert!(error.to_string().contains(text), "{error}");

    let (verdict, evidence) = warmed(driver);
    assert_eq!(verdict, Some(CheckVerdict::Passed), "{evidence}");
    let before = state(driver).unwrap().unwrap();
    assert_eq!((before.scale, before.foreign_keys, before.indexes), (SCALE, true, true));
    assert_eq!(before.load.refresh_pairs, 0);
    assert!(before.load.finished_at.ends_with('Z'), "{before:?}");
    // A row of lineitem has at least its 100 bytes of values.
    assert!(before.load.size_bytes.unwrap() > row_count(SchemaTable::Lineitem, SCALE) * 100);
    let step_rows = |name: &str| {
        let step = before.load.steps.iter().find(|step| step.name == name);
        step.unwrap_or_else(|| panic!("no step {name}: {before:?}")).rows
    };
    assert_eq!(step_rows("load"), all_rows());
    assert_eq!(step_rows("load/lineitem"), row_count(SchemaTable::Lineitem, SCALE));
    for name in ["create", "primary-keys/lineitem", "foreign-keys/orders", "indexes", "analyze"] {
        assert_eq!(step_rows(name), 0);
    }
    with_session(driver, async |session: &mut D::Session| {
        note_refresh_pair(&mut AdminSession::lent(session), 3).await.unwrap();
    });
    assert_eq!(state(driver).unwrap().unwrap().load.refresh_pairs, 3);

    let dropped = destroy(&driver.admin(), false, &Marking).unwrap();
    assert_eq!(dropped.len(), 10, "{dropped:?}");
    assert_eq!(state(driver).unwrap(), None);
    assert_eq!(destroy(&driver.admin(), false, &Marking).unwrap(), Vec::<String>::new());
}

/// Marks tables, as loads of the program do.
struct Marking;

impl LoadObserver for Marking {
    fn table_mark(&self) -> Option<&str> {
        Some("dyno load")
    }
}

/// Interrupts a load once enough rows are stored.
struct Interrupt<F> {
    rows: AtomicU64,
    action: F,
}

impl<F: Fn() + Sync> LoadObserver for Interrupt<F> {
    fn table_mark(&self) -> Option<&str> {
        Marking.table_mark()
    }

    fn rows_done(&self, rows: u64) {
        let enough = all_rows() / 3;
        let before = self.rows.fetch_add(rows, Ordering::Relaxed);
        if before < enough && before + rows >= enough {
            (self.action)();
        }
    }
}

fn interrupt<F: Fn() + Sync>(action: F) -> Interrupt<F> {
    Interrupt { rows: AtomicU64::new(0), action }
}

/// Continues with an interrupted load; the rows that were missing.
fn resume_load<D: Driver>(driver: &D) -> u64 {
    let error = state(driver).unwrap_err();
    assert!(error.to_string().contains("has not been completed"), "{error}");
    let other_keys = TpchLoadOptions { foreign_keys: false, ..options() };
    let error = load(&driver.admin(), &other_keys, &Marking).unwrap_err();
    assert!(error.to_string().contains("without foreign keys"), "{error}");
    let report = load(&driver.admin(), &options(), &Marking).unwrap();
    assert!(report.rows.rows_found >= all_rows() / 3, "{report:?}");
    assert_eq!(report.rows.rows_loaded + report.rows.rows_found, all_rows());
    assert_eq!(state(driver).unwrap().unwrap().load.attempts, 2);
    assert_complete(driver);
    report.rows.rows_loaded
}

/// A row that changes between two steps is found at the end.
fn assert_changes_are_found<D: Driver>(driver: &D, sql: &str, complaint: &str) {
    let begin = TpchLoadOptions {
        steps: vec![TpchStep::Create, TpchStep::Load],
        scale: 0.01,
        foreign_keys: false,
        ..options()
    };
    let report = load(&driver.admin(), &begin, &Marking).unwrap();
    assert!(!report.is_complete && report.load.finished_at.is_empty(), "{report:?}");
    with_session(driver, async |session: &mut D::Session| {
        let executed = session.query(sql, &mut Discard).await.unwrap();
        assert_eq!(executed.affected, 1, "{sql}");
    });
    let all_steps = TpchLoadOptions { steps: TpchStep::ALL.to_vec(), ..begin };
    let error = load(&driver.admin(), &all_steps, &Marking).unwrap_err();
    assert!(error.to_string().contains(complaint), "{error}");
    destroy(&driver.admin(), false, &Marking).unwrap();
}

fn sqlite(scratch: &Scratch) -> SqliteDriver {
    let url = format!("sqlite:{}", scratch.file("tpch.db").display());
    SqliteDriver::new(&target(&url)).unwrap()
}

#[test]
fn a_load_into_sqlite_that_was_interrupted_goes_on() {
    let scratch = Scratch::new();
    let driver = sqlite(&scratch);
    let broken = interrupt(|| panic!("the test ends the load here"));
    let ended = catch_unwind(AssertUnwindSafe(|| load(&driver.admin(), &options(), &broken)));
    assert!(ended.is_err());
    assert!(resume_load(&driver) > 0, "nothing was missing");
}

#[test]
fn steps_of_sqlite_come_in_order_and_changes_in_between_are_found() {
    let scratch = Scratch::new();
    let driver = sqlite(&scratch);
    let indexes = TpchLoadOptions { steps: vec![TpchStep::Create, TpchStep::Indexes], ..options() };
    let error = load(&driver.admin(), &indexes, &Marking).unwrap_err();
    let text = "The step indexes can't be done before the step load, which was not asked for.";
    assert_eq!(error.to_string(), text);
    destroy(&driver.admin(), false, &Marking).unwrap();
    let price = "UPDATE orders SET o_totalprice = o_totalprice + 0.01 WHERE o_orderkey = 7";
    assert_changes_are_found(&driver, price, "column o_totalprice");
    let text = "UPDATE nation SET n_comment = n_comment || 'x' WHERE n_nationkey = 7";
    assert_changes_are_found(&driver, text, "column n_comment");
    let row = "DELETE FROM lineitem WHERE l_orderkey = 1 AND l_linenumber = 2";
    assert_changes_are_found(&driver, row, "rows, and 60175 were sent");
}

#[test]
fn tables_of_others_are_left_alone() {
    let scratch = Scratch::new();
    let driver = sqlite(&scratch);
    with_session(&driver, async |session| {
        session.query("CREATE TABLE orders (o_orderkey integer)", &mut Discard).await.unwrap();
    });
    let error = load(&driver.admin(), &options(), &Marking).unwrap_err();
    assert!(error.to_string().starts_with("Table orders exists, but dyno_tpch"), "{error}");
    assert!(error.hint().is_some_and(|hint| hint.contains("yourself")), "{error}");
    let error = destroy(&driver.admin(), false, &Marking).unwrap_err();
    assert!(error.to_string().starts_with("The table orders was not loaded by dyno"), "{error}");
    assert_eq!(number(&driver, "SELECT count(*) FROM orders"), 0);
    assert_eq!(destroy(&driver.admin(), true, &Marking).unwrap(), ["orders"]);
    let too_small = TpchLoadOptions { scale: 0.0, ..options() };
    assert!(load(&driver.admin(), &too_small, &Marking).unwrap_err().hint().is_some());
}

#[test]
fn a_load_into_mariadb_goes_on_after_kill_9_of_the_server() {
    let server = server_or_skip!(MariaDb, "a_load_into_mariadb_goes_on_after_kill_9_of_the_server");
    let driver = MysqlDriver::new(&target(&server.socket_url())).unwrap();
    let day = "UPDATE lineitem SET l_shipdate = l_shipdate + interval 1 day WHERE l_orderkey = 1 \
               AND l_linenumber = 2";
    assert_changes_are_found(&driver, day, "column l_shipdate");
    let server = Mutex::new(server);
    let kill = interrupt(|| server.lock().unwrap().kill());
    let error = load(&driver.admin(), &options(), &kill).unwrap_err();
    assert!(error.hint().is_some_and(|hint| hint.contains("load again")), "{error}");
    server.lock().unwrap().restart().unwrap();
    // The server may have stored all rows before it died.
    resume_load(&driver);
}

#[test]
fn a_load_into_postgres_goes_on_after_kill_9_of_the_server() {
    let name = "a_load_into_postgres_goes_on_after_kill_9_of_the_server";
    let server = server_or_skip!(Postgres, name);
    let driver = PostgresDriver::new(&target(&server.socket_url())).unwrap();
    let day = "UPDATE lineitem SET l_shipdate = l_shipdate + 1 WHERE l_orderkey = 1 AND \
               l_linenumber = 2";
    assert_changes_are_found(&driver, day, "column l_shipdate");
    let server = Mutex::new(server);
    let kill = interrupt(|| server.lock().unwrap().kill());
    let error = load(&driver.admin(), &options(), &kill).unwrap_err();
    assert!(error.hint().is_some_and(|hint| hint.contains("load again")), "{error}");
    server.lock().unwrap().restart().unwrap();
    // The server may have stored all rows before it died.
    resume_load(&driver);
}

fn sum_of_steps_s(report: &TpchLoadReport) -> f64 {
    let steps = report.load.steps.iter().filter(|step| !step.name.contains('/'));
    steps.map(|step| step.seconds).sum()
}

/// Pages that are not marked make each index-only scan read the table.
#[test]
fn a_load_into_postgres_leaves_all_pages_visible_and_a_panic_ends_it() {
    let name = "a_load_into_postgres_leaves_all_pages_visible_and_a_panic_ends_it";
    let server = match Postgres::start_undisturbed() {
        Ok(server) => server,
        Err(why) => return skipped(name, &why),
    };
    let driver = PostgresDriver::new(&target(&server.socket_url())).unwrap();
    let broken = interrupt(|| panic!("the test ends the load here"));
    let ended = catch_unwind(AssertUnwindSafe(|| load(&driver.admin(), &options(), &broken)));
    assert!(ended.is_err(), "the other sessions don't wait for what the lost one did");
    let report = load(&driver.admin(), &options(), &Marking).unwrap();
    assert!(report.load.seconds.unwrap() <= sum_of_steps_s(&report) + 0.001, "{report:?}");
    // Sessions that extend a large table at once leave pages that never hold a row, which VACUUM does not mark.
    let hidden = "SELECT count(*) FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace \
                  AND relname NOT LIKE 'dyno%' AND relallvisible < relpages - CASE WHEN relpages > 500 THEN 64 ELSE 0 END";
    assert_eq!(number(&driver, hidden), 0);
    destroy(&driver.admin(), false, &Marking).unwrap();
    let serial = TpchLoadOptions { serial: true, ..options() };
    let report = load(&driver.admin(), &serial, &Marking).unwrap();
    let apart_s = report.load.seconds.unwrap() - sum_of_steps_s(&report);
    assert!(apart_s.abs() < 0.001, "no step overlaps another: {report:?}");
    assert_complete(&driver);
}

/// A load of a little more than a server is given memory for.
fn small_options() -> TpchLoadOptions {
    TpchLoadOptions { scale: 0.01, foreign_keys: false, warm_up: true, ..options() }
}

fn assert_cold<D: Driver>(driver: &D, place: &str) {
    let report = load(&driver.admin(), &small_options(), &Marking).unwrap();
    assert_eq!(report.load.steps.last().unwrap().name, "warm-up");
    assert_eq!(state(driver).unwrap().unwrap().load.steps, report.load.steps);
    let (verdict, evidence) = warmed(driver);
    assert_eq!(verdict, Some(CheckVerdict::Failed), "{evidence}");
    assert!(evidence.contains(place), "{evidence}");
}

#[test]
fn a_warm_up_of_postgres_that_does_not_fit_is_seen() {
    let name = "a_warm_up_of_postgres_that_does_not_fit_is_seen";
    let server = match Postgres::start_with(&["-c", "fsync=off", "-c", "shared_buffers=4MB"]) {
        Ok(server) => server,
        Err(why) => return dyno_testkit::skipped(name, &why),
    };
    let driver = PostgresDriver::new(&target(&server.socket_url())).unwrap();
    assert_cold(&driver, "The server has 4 MB of shared buffers");
}

/// The server does not look: that would take most of the load's time.
#[test]
fn a_row_without_its_parent_is_found_on_mariadb() {
    let server = server_or_skip!(MariaDb, "a_row_without_its_parent_is_found_on_mariadb");
    let driver = MysqlDriver::new(&target(&server.url())).unwrap();
    let steps = vec![TpchStep::Create, TpchStep::Load, TpchStep::PrimaryKeys];
    let begin = TpchLoadOptions { steps, scale: 0.01, ..options() };
    load(&driver.admin(), &begin, &Marking).unwrap();
    server.sql("UPDATE sbtest.nation SET n_regionkey = 77 WHERE n_nationkey = 7").unwrap();
    let all_steps = TpchLoadOptions { steps: TpchStep::ALL.to_vec(), ..begin };
    for _ in 0..2 {
        // Also where the key exists by now.
        let error = load(&driver.admin(), &all_steps, &Marking).unwrap_err().to_string();
        let text = "Table nation refers to the row 77 of table region, which does not exist.";
        assert!(error.contains(text), "{error}");
    }
}

#[test]
fn a_warm_up_of_mariadb_that_does_not_fit_is_seen() {
    let name = "a_warm_up_of_mariadb_that_does_not_fit_is_seen";
    let server = match MariaDb::start_with(&["--innodb-buffer-pool-size=6M"]) {
        Ok(server) => server,
        Err(why) => return dyno_testkit::skipped(name, &why),
    };
    let driver = MysqlDriver::new(&target(&server.socket_url())).unwrap();
    assert_cold(&driver, "of table lineitem are in memory");
}
