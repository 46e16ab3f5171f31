//! Embedded SQLite.

use crate::support::{LoadLog, init, query_rows, steps, with_session};
use dyno_core::AdminSession;
use dyno_core::Driver;
use dyno_drivers::sqlite::SqliteDriver;
use dyno_pgbench::init::{
    InitOptions, TableInfo, initialize, is_missing_table, table_info, vacuum_accounts,
    vacuum_before_run,
};
use dyno_testkit::Scratch;

pub(crate) fn driver(scratch: &Scratch) -> SqliteDriver {
    let url = format!("sqlite:{}", scratch.file("bench.db").display());
    SqliteDriver::new(&url.parse().unwrap()).unwrap()
}

/// The rows that every way of loading has to make.
pub(crate) fn assert_rows(driver: &SqliteDriver, scale: i64) {
    let accounts = scale * 100_000;
    let sums = "count(*), sum(aid), min(aid), max(aid), sum(bid = (aid - 1) / 100000 + 1), \
                sum(abalance = 0), sum(length(filler) = 84 and trim(filler) = '')";
    assert_eq!(
        query_rows(driver, &format!("select {sums} from pgbench_accounts")),
        [format!(
            "{accounts}|{}|1|{accounts}|{accounts}|{accounts}|{accounts}",
            accounts * (accounts + 1) / 2
        )]
    );
    let tellers = "select count(*), count(distinct tid), min(tid), max(tid), sum(bid = (tid - 1) \
                   / 10 + 1), sum(tbalance), count(filler) from pgbench_tellers";
    let count = scale * 10;
    assert_eq!(query_rows(driver, tellers), [format!("{count}|{count}|1|{count}|{count}|0|0")]);
    let branches = "select count(*), count(distinct bid), min(bid), max(bid), sum(bbalance), \
                    count(filler) from pgbench_branches";
    assert_eq!(query_rows(driver, branches), [format!("{scale}|{scale}|1|{scale}|0|0")]);
    assert_eq!(query_rows(driver, "select count(*) from pgbench_history"), ["0"]);
}

#[test]
fn all_ways_of_loading_make_the_same_rows() {
    let scratch = Scratch::new();
    let driver = driver(&scratch);
    init(&driver, &InitOptions { scale: 2, ..InitOptions::default() });
    assert_rows(&driver, 2);
    let unique = "select count(*) from sqlite_master where type = 'index' and sql like \
                  'create unique index%'";
    assert_eq!(query_rows(&driver, unique), ["3"]);
    init(&driver, &InitOptions { scale: 1, ..steps("dtgvp") });
    assert_rows(&driver, 1);
    let load_log = init(&driver, &InitOptions { scale: 2, connections: 4, ..steps("g") });
    assert_rows(&driver, 2);
    assert!(load_log.notes.lock().unwrap()[0].contains("one writer"));
}

#[test]
fn a_run_can_ask_about_the_tables() {
    let scratch = Scratch::new();
    let driver = driver(&scratch);
    let info = || {
        with_session(&driver, async |session| table_info(&mut AdminSession::lent(session)).await)
    };
    let missing = info().unwrap_err();
    assert!(is_missing_table(&missing), "{missing}");
    init(&driver, &InitOptions { scale: 3, ..steps("tg") });
    let expected = TableInfo { scale: 3, partitions: 0, partition_method: None };
    assert_eq!(info().unwrap(), Some(expected));
    query_rows(&driver, "insert into pgbench_history (tid) values (1)");
    let errors = with_session(&driver, async |session| {
        let mut errors = vacuum_before_run(&mut AdminSession::lent(session)).await;
        errors.extend(vacuum_accounts(&mut AdminSession::lent(session)).await);
        errors
    });
    assert_eq!(errors, []);
    assert_eq!(query_rows(&driver, "select count(*) from pgbench_history"), ["0"]);
    query_rows(&driver, "drop table pgbench_accounts");
    assert_eq!(info().unwrap(), None);
}

#[test]
fn what_sqlite_has_not_is_refused_before_anything_is_touched() {
    let scratch = Scratch::new();
    let driver = driver(&scratch);
    let cases = [
        (InitOptions { partitions: 2, ..InitOptions::default() }, "--partitions"),
        (InitOptions { foreign_keys: true, ..InitOptions::default() }, "--foreign-keys"),
        (InitOptions { fillfactor: 90, ..InitOptions::default() }, "--fillfactor"),
        (InitOptions { unlogged: true, ..InitOptions::default() }, "--unlogged-tables"),
        (InitOptions { tablespace: Some("t".into()), ..InitOptions::default() }, "--tablespace"),
        (
            InitOptions { index_tablespace: Some("t".into()), ..InitOptions::default() },
            "--index-tablespace",
        ),
        (InitOptions { resume: true, ..steps("dtGp") }, "step G"),
        (steps("dtG"), "step G"),
    ];
    for (options, word) in cases {
        let error = initialize(&driver.admin(), &options, &LoadLog::default()).unwrap_err();
        assert!(error.to_string().contains(word), "{error}");
        assert!(error.hint().unwrap().contains(word.trim_start_matches("step G")), "{error}");
    }
    assert_eq!(query_rows(&driver, "select count(*) from sqlite_master"), ["0"]);
}
