//! The whole way on real databases: prepare, look, run every test, prewarm, clean up.

use dyno_core::{
    AdminSession, AnswerTable, DbError, Dialect, Driver, Outcome, Rng, Session, Tally, Workload,
};
use dyno_drivers::mysql::MysqlDriver;
use dyno_drivers::postgres::PostgresDriver;
use dyno_drivers::sqlite::SqliteDriver;
use dyno_load::{LoadObserver, Unobserved};
use dyno_sysbench::check::{MissingRows, first_free_unique, preflight};
use dyno_sysbench::{Sysbench, SysbenchOptions, SysbenchTest, cleanup, prepare, prewarm};
use dyno_testkit::{MariaDb, MySql, Postgres, Scratch, server_or_skip, target, with_session};
use std::sync::atomic::{AtomicU32, Ordering};

/// More than one chunk.
const ROWS: u32 = 21_000;
const WORKERS: u32 = 2;

/// Counts the tables that are prewarmed.
#[derive(Default)]
struct Prewarmed(AtomicU32);

impl LoadObserver for Prewarmed {
    fn prewarming_table(&self, _table: &str) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

fn single<D: Driver>(driver: &D, sql: &str) -> i64 {
    with_session(driver, async |session: &mut D::Session| {
        let mut answer = AnswerTable::default();
        session.query(sql, &mut answer).await.unwrap();
        answer.single().unwrap_or("0").parse().unwrap()
    })
}

/// Makes as many transactions with each worker and returns what they did.
fn run<D: Driver>(
    driver: &D,
    options: &SysbenchOptions,
    transactions: u32,
) -> Result<Tally, DbError> {
    run_seeded(driver, options, transactions, 77)
}

fn run_seeded<D: Driver>(
    driver: &D,
    options: &SysbenchOptions,
    transactions: u32,
    seed: u64,
) -> Result<Tally, DbError> {
    let test = Sysbench::new(options.clone(), driver.dialect());
    let mut total = Tally::default();
    for id in 0..WORKERS {
        let tally = with_session(driver, async |session: &mut D::Session| {
            let rng = Rng::new(seed, "worker", u64::from(id));
            let mut tally = Tally::default();
            let mut worker = test.open(session, id, WORKERS, rng).await?;
            for _ in 0..transactions {
                let outcome = test.run(&mut worker, session, 0, 0, &mut tally).await?;
                assert_eq!(outcome, Outcome::Committed);
            }
            test.finish(&mut worker, session, &mut tally).await?;
            Ok::<_, DbError>(tally)
        })?;
        total.add(&tally);
    }
    Ok(total)
}

pub(crate) fn whole_way<D: Driver>(driver: &D) {
    prepare_and_look(driver);
    run_the_usual_tables(driver);
    let tables = SysbenchOptions {
        tables: 2,
        table_size: ROWS,
        ..SysbenchOptions::new(SysbenchTest::ReadWrite)
    };
    let prewarmed = Prewarmed::default();
    prewarm(&driver.admin(), &tables, WORKERS, &prewarmed).unwrap();
    assert_eq!(prewarmed.0.into_inner(), 2);
    cleanup(&driver.admin(), &tables, WORKERS, &Unobserved).unwrap();
    run_the_old_scripts(driver);
    run_numbered_inserts(driver);
    run_bulk_insert(driver);
    run_without_primary_key(driver);
    let result = with_session(driver, async |session: &mut D::Session| {
        preflight(&mut AdminSession::lent(session), &tables, WORKERS, MissingRows::Refused).await
    });
    let error = result.unwrap_err();
    assert_eq!(error.to_string(), "table 'sbtest1' doesn't exist, nor does 1 other");
}

fn prepare_and_look<D: Driver>(driver: &D) {
    let options = SysbenchOptions {
        tables: 2,
        table_size: ROWS,
        ..SysbenchOptions::new(SysbenchTest::ReadWrite)
    };
    let report = prepare(&driver.admin(), &options, 3, 5, &Unobserved).unwrap();
    assert_eq!(report.rows.rows_loaded, 2 * u64::from(ROWS));
    assert!(report.rows.method.is_some());
    for table in ["sbtest1", "sbtest2"] {
        let (ids, row) = with_session(driver, async |session: &mut D::Session| {
            let (mut ids, mut row) = (AnswerTable::default(), AnswerTable::default());
            let sql = format!("SELECT COUNT(*), MIN(id), MAX(id) FROM {table}");
            session.query(&sql, &mut ids).await?;
            let sql = format!("SELECT c, pad FROM {table} WHERE id = {ROWS}");
            session.query(&sql, &mut row).await?;
            Ok::<_, DbError>((ids, row))
        })
        .unwrap();
        let rows = Some(ROWS.to_string());
        assert_eq!(ids.rows, [[rows.clone(), Some("1".to_owned()), rows]]);
        let text_length =
            |column: usize| row.rows[0][column].as_deref().map(|it| it.trim_end().len());
        assert_eq!((text_length(0), text_length(1)), (Some(119), Some(59)));
    }
    let again = prepare(&driver.admin(), &options, 3, 5, &Unobserved).unwrap();
    assert_eq!((again.rows.rows_loaded, again.tables_complete), (0, 2));
    let warnings = with_session(driver, async |session: &mut D::Session| {
        preflight(&mut AdminSession::lent(session), &options, WORKERS, MissingRows::Refused).await
    });
    assert_eq!(warnings.unwrap(), Vec::<String>::new());

    // A chunk that an interrupted load has not reached.
    single(driver, "SELECT 1");
    with_session(driver, async |session: &mut D::Session| {
        let sql = "DELETE FROM sbtest2 WHERE id > 20000";
        session.query(sql, &mut AnswerTable::default()).await.unwrap();
    });
    let resumed = prepare(&driver.admin(), &options, 3, 5, &Unobserved).unwrap();
    assert_eq!((resumed.rows.rows_loaded, resumed.tables_complete), (1_000, 1));
    let larger = SysbenchOptions { table_size: 2 * ROWS, ..options.clone() };
    let error = prepare(&driver.admin(), &larger, 3, 5, &Unobserved).unwrap_err();
    assert!(error.to_string().contains("holds 21000 rows"), "{error}");
    let small = with_session(driver, async |session: &mut D::Session| {
        preflight(&mut AdminSession::lent(session), &larger, WORKERS, MissingRows::Refused).await
    });
    assert!(small.unwrap_err().to_string().contains("50 of 100 ids"));
}

fn run_the_usual_tables<D: Driver>(driver: &D) {
    for (test, reads, writes, others) in [
        (SysbenchTest::PointSelect, 1, 0, 0),
        (SysbenchTest::ReadOnly, 14, 0, 2),
        (SysbenchTest::ReadWrite, 14, 4, 2),
        (SysbenchTest::WriteOnly, 0, 4, 2),
        (SysbenchTest::UpdateIndex, 0, 1, 0),
        (SysbenchTest::UpdateNonIndex, 0, 1, 0),
        (SysbenchTest::SelectRandomPoints, 1, 0, 0),
        (SysbenchTest::SelectRandomRanges, 1, 0, 0),
        (SysbenchTest::Insert, 0, 1, 0),
    ] {
        for prepared in [true, false] {
            let options = SysbenchOptions {
                tables: 2,
                table_size: ROWS,
                prepared,
                ..SysbenchOptions::new(test)
            };
            // MySQL counts no row as changed that is given the value it has.
            let tally = run_seeded(driver, &options, 5, u64::from(prepared)).unwrap();
            let per_transaction = |count: u64| count * 5 * u64::from(WORKERS);
            let counts = (tally.reads, tally.writes, tally.others, tally.misses);
            let expected =
                (per_transaction(reads), per_transaction(writes), per_transaction(others), 0);
            assert_eq!(counts, expected, "{} prepared: {prepared}", test.name());
        }
    }
    // The server numbered the new rows behind the loaded ones.
    let rows = "SELECT (SELECT COUNT(*) FROM sbtest1) + (SELECT COUNT(*) FROM sbtest2)";
    assert_eq!(single(driver, rows), i64::from(2 * ROWS + 20));
    // One worker's stream is repeated by its own second run: the same rows are deleted once.
    let delete = SysbenchOptions {
        tables: 2,
        table_size: ROWS,
        ..SysbenchOptions::new(SysbenchTest::Delete)
    };
    let first = run(driver, &delete, 20).unwrap();
    let second = run(driver, &delete, 20).unwrap();
    assert_eq!(first.writes + first.misses, 40);
    assert_eq!((second.writes, second.misses, second.others), (0, 40, 40));
    assert_eq!(single(driver, rows), i64::from(2 * ROWS + 20) - first.writes as i64);
}

fn run_the_old_scripts<D: Driver>(driver: &D) {
    let mut options = SysbenchOptions::new(SysbenchTest::V05Oltp);
    (options.tables, options.table_size) = (2, 1_000);
    prepare(&driver.admin(), &options, 2, 5, &Unobserved).unwrap();
    for test in SysbenchTest::ALL.into_iter().filter(|test| test.is_legacy()) {
        if test.is_bulk_insert() || test.is_select_random() {
            continue;
        }
        let tally = run(driver, &SysbenchOptions { test, ..options.clone() }, 3).unwrap();
        let statements = if test == options.test { 20 } else { 1 };
        assert_eq!(tally.statements(), 3 * u64::from(WORKERS) * statements, "{}", test.name());
    }
    cleanup(&driver.admin(), &options, 1, &Unobserved).unwrap();
    let keys = SysbenchOptions {
        table_size: 1_000,
        ..SysbenchOptions::new(SysbenchTest::V05SelectRandomPoints)
    };
    prepare(&driver.admin(), &keys, 1, 5, &Unobserved).unwrap();
    assert_eq!(single(driver, "SELECT COUNT(*) FROM sbtest WHERE k = id"), 1_000);
    assert_eq!(run(driver, &keys, 3).unwrap().reads, 6);
    cleanup(&driver.admin(), &keys, 1, &Unobserved).unwrap();
}

fn run_without_primary_key<D: Driver>(driver: &D) {
    let options = SysbenchOptions {
        table_size: 500,
        secondary: true,
        ..SysbenchOptions::new(SysbenchTest::ReadWrite)
    };
    prepare(&driver.admin(), &options, 1, 5, &Unobserved).unwrap();
    let again = prepare(&driver.admin(), &options, 1, 5, &Unobserved).unwrap();
    assert_eq!(again.tables_complete, 1, "its indexes are known again");
    assert_eq!(run(driver, &options, 3).unwrap().statements(), 120);
    prewarm(&driver.admin(), &options, 1, &Unobserved).unwrap();
    cleanup(&driver.admin(), &options, 1, &Unobserved).unwrap();
}

fn run_numbered_inserts<D: Driver>(driver: &D) {
    let mut options = SysbenchOptions {
        tables: 2,
        auto_inc: false,
        ..SysbenchOptions::new(SysbenchTest::Insert)
    };
    prepare(&driver.admin(), &options, 2, 5, &Unobserved).unwrap();
    for expected in [0, 100] {
        options.unique_start = with_session(driver, async |session: &mut D::Session| {
            first_free_unique(&mut AdminSession::lent(session), &options).await.unwrap()
        });
        assert_eq!(options.unique_start, expected);
        assert_eq!(run(driver, &options, 50).unwrap().writes, 100);
    }
    cleanup(&driver.admin(), &options, 1, &Unobserved).unwrap();
}

fn run_bulk_insert<D: Driver>(driver: &D) {
    let options = SysbenchOptions::new(SysbenchTest::BulkInsert);
    prepare(&driver.admin(), &options, WORKERS, 5, &Unobserved).unwrap();
    for round in 1..=2 {
        let tally = run(driver, &options, 50_000).unwrap();
        assert_eq!(tally.rows_written, 2 * 50_000);
        let highest = single(driver, "SELECT MAX(id) FROM sbtest2");
        assert_eq!(highest, 50_000 * round);
    }
    cleanup(&driver.admin(), &options, WORKERS, &Unobserved).unwrap();
}

#[test]
fn sqlite_goes_the_whole_way() {
    let scratch = Scratch::new();
    let url = format!("sqlite:{}", scratch.file("way.db").display());
    let driver = SqliteDriver::new(&target(&url)).unwrap();
    assert_eq!(driver.dialect(), Dialect::Sqlite);
    whole_way(&driver);
}

#[test]
fn mariadb_goes_the_whole_way() {
    let server = server_or_skip!(MariaDb, "mariadb_goes_the_whole_way");
    whole_way(&MysqlDriver::new(&target(&server.socket_url())).unwrap());
}

#[test]
fn mysql_goes_the_whole_way() {
    let server = server_or_skip!(MySql, "mysql_goes_the_whole_way");
    whole_way(&MysqlDriver::new(&target(&server.url())).unwrap());
}

#[test]
fn postgres_goes_the_whole_way() {
    let server = server_or_skip!(Postgres, "postgres_goes_the_whole_way");
    let driver = PostgresDriver::new(&target(&server.socket_url())).unwrap();
    whole_way(&driver);
}
