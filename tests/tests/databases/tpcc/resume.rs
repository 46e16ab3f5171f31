//! Loads that are interrupted continue, and give the same database.

use super::whole_way::{assert_consistent, options};
use dyno_core::{AdminSession, AnswerTable, Driver, Session};
use dyno_drivers::mysql::MysqlDriver;
use dyno_drivers::postgres::PostgresDriver;
use dyno_drivers::sqlite::SqliteDriver;
use dyno_load::{LoadObserver, Unobserved};
use dyno_testkit::{MariaDb, Postgres, Scratch, server_or_skip, target, with_session};
use dyno_tpcc::check::Stage;
use dyno_tpcc::load::{TpccLoadOptions, load, loaded};
use dyno_tpcc::schema::KeyTime;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};

/// Rows after which the load is interrupted, of about 600,000.
const ENOUGH: u64 = 250_000;

/// Does something once enough rows are stored.
struct Interrupt<F> {
    rows: AtomicU64,
    action: F,
}

impl<F: Fn() + Sync> LoadObserver for Interrupt<F> {
    fn rows_done(&self, rows: u64) {
        let before = self.rows.fetch_add(rows, Ordering::Relaxed);
        if before < ENOUGH && before + rows >= ENOUGH {
            (self.action)();
        }
    }
}

fn interrupt<F: Fn() + Sync>(action: F) -> Interrupt<F> {
    Interrupt { rows: AtomicU64::new(0), action }
}

fn one_warehouse(keys: KeyTime) -> TpccLoadOptions {
    TpccLoadOptions { warehouses: 1, keys: Some(keys), ..options() }
}

/// Continues with the load that `interrupted` options began.
fn resume_load<D: Driver>(driver: &D, load_options: &TpccLoadOptions) {
    with_session(driver, async |session: &mut D::Session| {
        let error = loaded(&mut AdminSession::lent(session)).await.unwrap_err();
        assert!(error.to_string().contains("has not been completed"), "{error}");
    });
    let other_seed = TpccLoadOptions { seed: 6, ..load_options.clone() };
    let error = load(&driver.admin(), &other_seed, &Unobserved).unwrap_err();
    assert!(error.to_string().contains("unfinished load of 1 warehouse with seed 5"));
    let later = TpccLoadOptions { loaded_at: dyno_tpcc::Timestamp::now(), ..load_options.clone() };
    let report = load(&driver.admin(), &later, &Unobserved).unwrap();
    assert!(report.rows_found >= ENOUGH, "{report:?}");
    assert!(report.rows_loaded > 100_000, "{report:?}");
    assert_consistent(driver, Stage::Fresh);
    with_session(driver, async |session: &mut D::Session| {
        let mut times = AnswerTable::default();
        let sql = "SELECT count(DISTINCT h_date) FROM bmsql_history";
        session.query(sql, &mut times).await.unwrap();
        assert_eq!(times.single(), Some("1"), "the time of the first load goes on");
    });
}

#[test]
fn a_load_into_sqlite_goes_on() {
    let scratch = Scratch::new();
    let url = format!("sqlite:{}", scratch.file("resume.db").display());
    let driver = SqliteDriver::new(&target(&url)).unwrap();
    let load_options = one_warehouse(KeyTime::BeforeLoad);
    let broken = interrupt(|| panic!("the test ends the load here"));
    let ended = catch_unwind(AssertUnwindSafe(|| load(&driver.admin(), &load_options, &broken)));
    assert!(ended.is_err());
    resume_load(&driver, &load_options);
}

#[test]
fn a_load_into_mariadb_goes_on_after_kill_9_of_the_server() {
    let server = server_or_skip!(MariaDb, "a_load_into_mariadb_goes_on_after_kill_9_of_the_server");
    let driver = MysqlDriver::new(&target(&server.socket_url())).unwrap();
    let load_options = one_warehouse(KeyTime::AfterLoad);
    let server = std::sync::Mutex::new(server);
    let kill = interrupt(|| server.lock().unwrap().kill());
    let error = load(&driver.admin(), &load_options, &kill).unwrap_err();
    assert!(error.hint().is_some_and(|hint| hint.contains("build again")), "{error}");
    server.lock().unwrap().restart().unwrap();
    // What is loaded again is removed without a key.
    server.lock().unwrap().sql("SET GLOBAL sql_safe_updates = ON").unwrap();
    resume_load(&driver, &load_options);
}

#[test]
fn a_load_into_postgres_goes_on_after_kill_9_of_the_server() {
    let name = "a_load_into_postgres_goes_on_after_kill_9_of_the_server";
    let server = server_or_skip!(Postgres, name);
    let driver = PostgresDriver::new(&target(&server.socket_url())).unwrap();
    let load_options =
        TpccLoadOptions { foreign_keys: true, ..one_warehouse(KeyTime::PrimaryBeforeLoad) };
    let server = std::sync::Mutex::new(server);
    let kill = interrupt(|| server.lock().unwrap().kill());
    let error = load(&driver.admin(), &load_options, &kill).unwrap_err();
    assert!(error.hint().is_some_and(|hint| hint.contains("build again")), "{error}");
    server.lock().unwrap().restart().unwrap();
    resume_load(&driver, &load_options);
}
