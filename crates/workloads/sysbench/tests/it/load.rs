//! Preparing, resuming, checking and dropping data, on a database in memory.

use crate::support::{FakeDriver, LoadLog};
use dyno_core::{AdminSession, Dialect, Driver, Rng, Tally, Workload};
use dyno_load::{LoadError, LoadErrorKind};
use dyno_reactor::block_on;
use dyno_sysbench::check::{MissingRows, check_prepared, first_free_unique, preflight};
use dyno_sysbench::{
    Sysbench, SysbenchOptions, SysbenchTest, cleanup, prepare, prepare_with_statistics, prewarm,
};

const SEED: u64 = 42;

fn options(tables: u32, table_size: u32) -> SysbenchOptions {
    SysbenchOptions { tables, table_size, ..SysbenchOptions::new(SysbenchTest::ReadWrite) }
}

/// Each table has these ids, and texts of the usual lengths.
fn assert_loaded(driver: &FakeDriver, tables: usize, rows: i64) {
    let database = driver.database();
    assert_eq!(database.tables.len(), tables);
    for table in database.tables.values() {
        assert!(table.rows.keys().copied().eq(1..=rows));
        assert!(table.rows.values().all(|row| {
            let k: i64 = row[1].parse().unwrap();
            (1..=rows).contains(&k) && (row[2].len(), row[3].len()) == (119, 59)
        }));
    }
}

#[test]
fn prepare_fills_every_table() {
    let driver = FakeDriver::new(Dialect::Mysql);
    let load_log = LoadLog::default();
    let options = options(3, 45_000);
    let report = prepare(&driver.admin(), &options, 4, SEED, &load_log).unwrap();
    assert_eq!((report.tables, report.tables_complete), (3, 0));
    assert_eq!((report.rows.rows_loaded, report.rows.rows_found), (135_000, 0));
    assert_eq!(driver.database().bulk_loads, 9);
    assert_loaded(&driver, 3, 45_000);
    let lines = load_log.lines();
    for table in 1..=3 {
        let positions = [
            format!("creating sbtest{table}"),
            format!("inserting 45000 into sbtest{table}"),
            format!("index on sbtest{table}"),
        ]
        .map(|line| lines.iter().position(|logged| *logged == line).expect(&line));
        assert!(positions.is_sorted(), "{positions:?}");
    }
    let rows_done: u64 =
        lines.iter().filter_map(|l| l.strip_prefix("done ")?.parse::<u64>().ok()).sum();
    assert_eq!(rows_done, 135_000);
    assert!(lines.contains(&"planned 135000".to_owned()));
}

#[test]
fn the_number_of_sessions_does_not_change_the_data() {
    // One session, 7 sessions in one loop, 3 threads.
    let [expected, in_one_loop, in_threads] = [
        (FakeDriver::new(Dialect::Mysql), 1),
        (FakeDriver::new(Dialect::Mysql), 7),
        (FakeDriver::new(Dialect::Mysql).blocking(), 3),
    ]
    .map(|(driver, threads)| {
        prepare(&driver.admin(), &options(2, 50_000), threads, SEED, &LoadLog::default()).unwrap();
        let database = driver.database();
        database.tables.values().map(|table| table.rows.clone()).collect::<Vec<_>>()
    });
    assert!(expected == in_one_loop && expected == in_threads);
    assert!(expected[0] != expected[1], "tables differ");
}

#[test]
fn an_interrupted_load_is_continued() {
    let driver = FakeDriver::new(Dialect::Mysql);
    let options = options(2, 70_000);
    driver.database().bulk_loads_left = Some(5);
    let error = prepare(&driver.admin(), &options, 2, SEED, &LoadLog::default()).unwrap_err();
    assert!(error.to_string().contains("of table 'sbtest"), "{error}");
    assert!(error.hint().unwrap().contains("prepare again"), "{:?}", error.hint());
    let stored: usize = driver.database().tables.values().map(|table| table.rows.len()).sum();
    assert!(stored > 0);
    driver.database().bulk_loads_left = None;

    let report = prepare(&driver.admin(), &options, 2, SEED, &LoadLog::default()).unwrap();
    assert_eq!(report.rows.rows_found, stored as u64);
    assert_eq!(report.rows.rows_loaded + report.rows.rows_found, 140_000);
    assert_loaded(&driver, 2, 70_000);
    assert!(driver.database().tables["sbtest2"].indexes.contains("k_2"));

    let load_log = LoadLog::default();
    let report = prepare(&driver.admin(), &options, 2, SEED, &load_log).unwrap();
    assert_eq!((report.rows.rows_loaded, report.tables_complete), (0, 2));
    assert!(load_log.lines().contains(&"Table 'sbtest1' is already complete".to_owned()));
    assert!(!load_log.lines().iter().any(|line| line.starts_with("index")));
}

#[test]
fn a_load_that_ended_before_its_index_gets_the_index() {
    let driver = FakeDriver::new(Dialect::Mysql);
    let options = options(1, 30_000);
    prepare(&driver.admin(), &options, 1, SEED, &LoadLog::default()).unwrap();
    driver.database().tables.get_mut("sbtest1").unwrap().indexes.clear();
    let report = prepare(&driver.admin(), &options, 1, SEED, &LoadLog::default()).unwrap();
    assert_eq!((report.rows.rows_loaded, report.tables_complete), (0, 0));
    assert!(driver.database().tables["sbtest1"].indexes.contains("k_1"));
}

#[test]
fn a_table_of_other_contents_leaves_no_empty_ones() {
    let driver = FakeDriver::new(Dialect::Mysql);
    prepare(&driver.admin(), &options(2, 30_000), 1, SEED, &LoadLog::default()).unwrap();
    let error =
        prepare(&driver.admin(), &options(4, 20_000), 2, SEED, &LoadLog::default()).unwrap_err();
    assert!(error.to_string().contains("holds 30000 rows"), "{error}");
    let names: Vec<_> = driver.database().tables.keys().cloned().collect();
    assert_eq!(names, ["sbtest1", "sbtest2"]);
}

#[test]
fn a_deadlock_is_tried_again() {
    let driver = FakeDriver::new(Dialect::Mysql);
    driver.database().deadlocks = 3;
    prepare(&driver.admin(), &options(1, 30_000), 1, SEED, &LoadLog::default()).unwrap();
    assert_eq!(driver.database().bulk_loads, 5);
    driver.database().deadlocks = 100;
    let error =
        prepare(&driver.admin(), &options(2, 30_000), 1, SEED, &LoadLog::default()).unwrap_err();
    assert_eq!(error.error.as_ref().unwrap().errno(), 1213);
}

#[test]
fn a_table_with_other_contents_is_refused_with_a_remedy() {
    let refusal_remedy = |driver: &FakeDriver, options: &SysbenchOptions, part: &str| match prepare(
        &driver.admin(),
        options,
        2,
        SEED,
        &LoadLog::default(),
    )
    .unwrap_err()
    {
        LoadError { kind: LoadErrorKind::Data, problem, remedy, .. } => {
            assert!(problem.starts_with("table 'sbtest1' "), "{problem}");
            assert!(problem.contains(part), "{problem}");
            remedy.expect("a remedy")
        }
        other => panic!("{other}"),
    };
    let driver = FakeDriver::new(Dialect::Mysql);
    prepare(&driver.admin(), &options(1, 30_000), 1, SEED, &LoadLog::default()).unwrap();
    // Whatever chunk does not fit: all of the table counts, and its size is the remedy.
    for (asked, has) in [(25_000, "25000 rows"), (20_000, "20000 rows"), (1_000, "1000 rows")] {
        let holds = format!(
            "holds 30000 rows with ids from 1 to 30000, where this data set has {has} with ids from 1 to"
        );
        let hint = refusal_remedy(&driver, &options(1, asked), &holds);
        assert!(hint.contains(" --table-size=30000 "), "{hint}");
        assert!(hint.contains("cleanup"), "{hint}");
    }
    refusal_remedy(&driver, &options(1, 40_000), "holds 30000 rows");
    let other_size =
        SysbenchOptions { table_size: 1_000, ..SysbenchOptions::new(SysbenchTest::V05Oltp) };
    let hint = refusal_remedy(&driver, &other_size, "holds 30000 rows");
    assert!(hint.contains(" --oltp-table-size=30000 "), "{hint}");
    driver.database().tables.get_mut("sbtest1").unwrap().rows.remove(&7);
    let hint =
        refusal_remedy(&driver, &options(1, 30_000), "holds 29999 rows with ids from 1 to 30000");
    assert!(hint.contains("`cleanup`"), "{hint}");
    driver.database().tables.get_mut("sbtest1").unwrap().columns.pop();
    refusal_remedy(&driver, &options(1, 30_000), "other columns: it has id, k, c, this");
}

#[test]
fn tests_that_number_their_own_rows_get_empty_tables() {
    let driver = FakeDriver::new(Dialect::Mysql);
    let options = SysbenchOptions {
        auto_inc: false,
        tables: 2,
        ..SysbenchOptions::new(SysbenchTest::Insert)
    };
    let report = prepare(&driver.admin(), &options, 2, SEED, &LoadLog::default()).unwrap();
    assert_eq!((report.rows.rows_loaded, report.tables), (0, 2));
    assert!(driver.database().tables["sbtest2"].indexes.contains("k_2"));

    let driver = FakeDriver::new(Dialect::Mysql);
    let options = SysbenchOptions::new(SysbenchTest::BulkInsert);
    prepare(&driver.admin(), &options, 3, SEED, &LoadLog::default()).unwrap();
    let names: Vec<_> = driver.database().tables.keys().cloned().collect();
    assert_eq!(names, ["sbtest1", "sbtest2", "sbtest3"]);
    prepare(&driver.admin(), &options, 3, SEED, &LoadLog::default()).unwrap();
}

#[test]
fn what_was_loaded_for_trials_has_statistics_before_the_first() {
    assert_eq!(analyze_statements(Dialect::Postgres), ["ANALYZE sbtest1", "ANALYZE sbtest2"]);
    assert_eq!(analyze_statements(Dialect::Mysql), [""; 0], "InnoDB makes them while it is filled");
}

fn analyze_statements(dialect: Dialect) -> Vec<String> {
    let driver = FakeDriver::new(dialect);
    prepare_with_statistics(&driver.admin(), &options(2, 100), 2, SEED, &LoadLog::default())
        .unwrap();
    let database = driver.database();
    let texts = database.log.iter().map(|entry| entry.text.clone());
    let mut texts: Vec<String> = texts.filter(|text| text.starts_with("ANALYZE")).collect();
    texts.sort();
    texts
}

#[test]
fn cleanup_and_prewarm_meet_every_table() {
    let driver = FakeDriver::new(Dialect::Mysql);
    let options = options(3, 100);
    prepare(&driver.admin(), &options, 1, SEED, &LoadLog::default()).unwrap();
    let load_log = LoadLog::default();
    prewarm(&driver.admin(), &options, 2, &load_log).unwrap();
    assert_eq!(load_log.lines().len(), 3);
    let log = driver.database().log.iter().map(|entry| entry.text.clone()).collect::<Vec<_>>();
    let warm = "SELECT AVG(id) FROM (SELECT * FROM sbtest3 FORCE KEY (PRIMARY) LIMIT 100) t";
    assert!(log.contains(&warm.to_owned()));
    let load_log = LoadLog::default();
    cleanup(&driver.admin(), &options, 1, &load_log).unwrap();
    assert_eq!(load_log.lines(), ["dropping sbtest1", "dropping sbtest2", "dropping sbtest3"]);
    assert!(driver.database().tables.is_empty());
}

#[test]
fn preflight_names_what_is_missing_and_how_to_get_it() {
    let driver = FakeDriver::new(Dialect::Mysql);
    prepare(&driver.admin(), &options(8, 1_000), 1, SEED, &LoadLog::default()).unwrap();
    let check = |options: &SysbenchOptions, workers| {
        block_on(preflight(
            &mut AdminSession::lent(&mut driver.session()),
            options,
            workers,
            MissingRows::Refused,
        ))
        .unwrap()
    };
    assert_eq!(check(&options(8, 1_000), 4).unwrap(), Vec::<String>::new());
    let error = check(&options(10, 1_000), 4).unwrap_err();
    assert_eq!(error.to_string(), "table 'sbtest9' doesn't exist, nor does 1 other");
    assert_eq!(error.hint(), Some("run prepare with --tables=10"));
    let error = check(&options(8, 5_000), 4).unwrap_err();
    assert!(error.to_string().contains("80 of 100 ids"), "{error}");
    assert!(error.hint().unwrap().contains("--table-size=1000"), "{:?}", error.hint());
    assert_eq!(check(&options(8, 1_050), 4).unwrap().len(), 8);
    driver.database().tables.get_mut("sbtest3").unwrap().rows.clear();
    let result = check(&options(8, 1_000), 4);
    assert_eq!(result.unwrap_err().to_string(), "table 'sbtest3' is empty");
    let (mut session, all) = (driver.session(), options(8, 1_000));
    let notes =
        block_on(preflight(&mut AdminSession::lent(&mut session), &all, 4, MissingRows::Noted))
            .unwrap();
    assert_eq!(notes.unwrap(), ["Note that table 'sbtest3' is empty."]);
    let legacy = SysbenchOptions { tables: 9, ..SysbenchOptions::new(SysbenchTest::V05Oltp) };
    let error = check(&legacy, 4).unwrap_err();
    assert_eq!(error.hint(), Some("run prepare with --oltp-tables-count=9"));
}

#[test]
fn preflight_counts_prepared_statements() {
    let driver = FakeDriver::new(Dialect::Mysql);
    let mut options = options(32, 1_000);
    prepare(&driver.admin(), &options, 1, SEED, &LoadLog::default()).unwrap();
    let check = |options: &SysbenchOptions, workers| {
        block_on(check_prepared(&mut AdminSession::lent(&mut driver.session()), options, workers))
            .unwrap()
    };
    assert_eq!(options.prepared_statements(), 9 * 32 + 2);
    assert!(check(&options, 56).is_ok());
    let error = check(&options, 64).unwrap_err();
    assert!(error.to_string().contains("18560 prepared statements (290 each)"), "{error}");
    assert!(
        error.hint().unwrap().contains("max_prepared_stmt_count = 19000"),
        "{:?}",
        error.hint()
    );
    options.prepared = false;
    assert!(check(&options, 64).is_ok());
}

#[test]
fn the_next_run_of_inserts_goes_on_behind_the_last_one() {
    let driver = FakeDriver::new(Dialect::Mysql);
    let mut options = SysbenchOptions {
        auto_inc: false,
        tables: 2,
        ..SysbenchOptions::new(SysbenchTest::Insert)
    };
    prepare(&driver.admin(), &options, 1, SEED, &LoadLog::default()).unwrap();
    let mut session = driver.session();
    let insert = |session: &mut _, options: &SysbenchOptions, rows| {
        let test = Sysbench::new(options.clone(), Dialect::Mysql);
        block_on(async {
            let mut worker = test.open(session, 0, 1, Rng::new(1, "worker", 0)).await?;
            for _ in 0..rows {
                test.run(&mut worker, session, 0, 0, &mut Tally::default()).await?;
            }
            Ok::<_, dyno_core::DbError>(())
        })
        .unwrap()
    };
    insert(&mut session, &options, 5_000).unwrap();
    assert_eq!(insert(&mut session, &options, 1).unwrap_err().errno(), 1062);
    // A failed transaction leaves its number unused: rows are fewer than numbers.
    let first = *driver.database().tables["sbtest1"].rows.keys().next().unwrap();
    driver.database().tables.get_mut("sbtest1").unwrap().rows.remove(&first);
    options.unique_start =
        block_on(first_free_unique(&mut AdminSession::lent(&mut session), &options))
            .unwrap()
            .unwrap();
    assert_eq!(options.unique_start, 5_000);
    insert(&mut session, &options, 5_000).unwrap();
}
