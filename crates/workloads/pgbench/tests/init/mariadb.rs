//! A real server of the MySQL protocol.

use crate::support::{Failing, LoadLog, init, query_rows, steps, with_session};
use dyno_core::{AdminSession, BulkMethod, DbError, Driver};
use dyno_drivers::mysql::MysqlDriver;
use dyno_pgbench::init::{
    InitOptions, TableInfo, initialize, table_info, vacuum_accounts, vacuum_before_run,
};
use dyno_testkit::{MariaDb, server_or_skip};

fn driver(mariadb: &MariaDb) -> MysqlDriver {
    MysqlDriver::new(&mariadb.url().parse().unwrap()).unwrap()
}

/// The rows that every way of loading has to make. MySQL gives a CHAR back without its blanks.
fn assert_rows(driver: &MysqlDriver, scale: i64) {
    let accounts = scale * 100_000;
    let sums = "count(*), sum(aid), min(aid), max(aid), sum(bid = (aid - 1) div 100000 + 1), \
                sum(abalance = 0), sum(filler = repeat(' ', 84))";
    assert_eq!(
        query_rows(driver, &format!("select {sums} from pgbench_accounts")),
        [format!(
            "{accounts}|{}|1|{accounts}|{accounts}|{accounts}|{accounts}",
            accounts * (accounts + 1) / 2
        )]
    );
    let tellers = "select count(*), count(distinct tid), min(tid), max(tid), sum(bid = (tid - 1) \
                   div 10 + 1), sum(tbalance), count(filler) from pgbench_tellers";
    let count = scale * 10;
    assert_eq!(query_rows(driver, tellers), [format!("{count}|{count}|1|{count}|{count}|0|0")]);
    let branches = "select count(*), count(distinct bid), min(bid), max(bid), sum(bbalance), \
                    count(filler) from pgbench_branches";
    assert_eq!(query_rows(driver, branches), [format!("{scale}|{scale}|1|{scale}|0|0")]);
    assert_eq!(query_rows(driver, "select count(*) from pgbench_history"), ["0"]);
}

/// The number of keys of this kind.
fn keys(driver: &MysqlDriver, kind: &str) -> String {
    let sql = format!(
        "select count(*) from information_schema.table_constraints where table_schema = 'sbtest' \
         and constraint_type = '{kind}'"
    );
    query_rows(driver, &sql).remove(0)
}

/// One server for all, because starting it takes longer than most of them.
#[test]
fn a_server_of_the_mysql_protocol_is_filled() {
    let mariadb = server_or_skip!(MariaDb, "a_server_of_the_mysql_protocol_is_filled");
    errors_name_the_step_and_the_remedy(&mariadb);
    the_history_is_emptied_before_a_run(&mariadb);
    a_load_goes_on_where_it_ended(&mariadb);
    all_ways_of_loading_make_the_same_rows(&mariadb);
}

fn all_ways_of_loading_make_the_same_rows(mariadb: &MariaDb) {
    let driver = driver(mariadb);
    init(&driver, &InitOptions { scale: 2, foreign_keys: true, ..InitOptions::default() });
    assert_rows(&driver, 2);
    assert_eq!(
        (keys(&driver, "PRIMARY KEY"), keys(&driver, "FOREIGN KEY")),
        ("3".into(), "5".into())
    );
    // Emptied and filled again, foreign keys in place.
    let parallel = InitOptions { scale: 3, connections: 3, ..steps("g") };
    let report = initialize(&driver.admin(), &parallel, &LoadLog::default()).unwrap();
    assert_eq!(
        (report.loaded.rows_loaded, report.loaded.method),
        (300_000, Some(BulkMethod::LoadData))
    );
    assert_rows(&driver, 3);
    let error = initialize(&driver.admin(), &steps("dtGvp"), &LoadLog::default()).unwrap_err();
    assert!(error.to_string().contains("step G"), "{error}");
    assert_rows(&driver, 3);

    mariadb.sql("set global local_infile = 0").unwrap();
    let load_log = LoadLog::default();
    let report = initialize(&driver.admin(), &steps("dtg"), &load_log).unwrap();
    assert_eq!(report.loaded.method, Some(BulkMethod::MultiRowInsert));
    assert!(load_log.notes.lock().unwrap()[0].contains("local_infile"));
    assert!(report.loaded.fallback_reason.unwrap().to_string().contains("local_infile"));
    assert_rows(&driver, 1);
}

fn the_history_is_emptied_before_a_run(mariadb: &MariaDb) {
    let driver = driver(mariadb);
    init(&driver, &InitOptions { scale: 2, ..InitOptions::default() });
    assert_rows(&driver, 2);
    let info =
        with_session(&driver, async |session| table_info(&mut AdminSession::lent(session)).await);
    let expected = TableInfo { scale: 2, partitions: 0, partition_method: None };
    assert_eq!(info.unwrap(), Some(expected));
    query_rows(&driver, "insert into pgbench_history (tid) values (1)");
    let errors = with_session(&driver, async |session| {
        let mut errors = vacuum_before_run(&mut AdminSession::lent(session)).await;
        errors.extend(vacuum_accounts(&mut AdminSession::lent(session)).await);
        errors
    });
    assert_eq!(errors, []);
    assert_eq!(query_rows(&driver, "select count(*) from pgbench_history"), ["0"]);
}

fn a_load_goes_on_where_it_ended(mariadb: &MariaDb) {
    let driver = driver(mariadb);
    let options =
        InitOptions { scale: 3, connections: 2, foreign_keys: true, ..InitOptions::default() };
    let failing = Failing::new(&driver, 4..u32::MAX, DbError::lost("The server went away."));
    let error = initialize(&(&failing).admin(), &options, &LoadLog::default()).unwrap_err();
    assert!(error.hint().unwrap().contains("--resume"), "{error}");
    let resume = InitOptions { resume: true, ..options };
    let report = initialize(&driver.admin(), &resume, &LoadLog::default()).unwrap();
    assert_eq!((report.loaded.rows_found, report.loaded.rows_loaded), (200_000, 100_000));
    assert_rows(&driver, 3);
    let report = initialize(&driver.admin(), &resume, &LoadLog::default()).unwrap();
    assert_eq!((report.loaded.rows_found, report.loaded.rows_loaded), (300_000, 0));
    assert_eq!(
        (keys(&driver, "PRIMARY KEY"), keys(&driver, "FOREIGN KEY")),
        ("3".into(), "5".into())
    );
}

fn errors_name_the_step_and_the_remedy(mariadb: &MariaDb) {
    let driver = driver(mariadb);
    for (letters, words, hint) in [
        ("g", "step g (client-side generate): emptying the tables", "step t"),
        ("v", "step v (vacuum): analyzing table pgbench_branches", "step t"),
        ("tt", "step t (create tables): creating table pgbench_history", "step d"),
        ("pp", "step p (primary keys)", "leave out step p"),
        ("dtf", "step f (foreign keys)", "before step f"),
    ] {
        let error = initialize(&driver.admin(), &steps(letters), &LoadLog::default()).unwrap_err();
        assert!(error.to_string().contains(words), "{error}");
        assert!(error.hint().is_some_and(|h| h.contains(hint)), "{error}: {:?}", error.hint());
    }
    mariadb.sql("create user poor@'%'; grant select on sbtest.* to poor@'%'").unwrap();
    let url = mariadb.url().replace("root@", "poor@");
    let poor = MysqlDriver::new(&url.parse().unwrap()).unwrap();
    let error = initialize(&poor.admin(), &steps("d"), &LoadLog::default()).unwrap_err();
    assert!(error.to_string().starts_with("step d (drop tables)"), "{error}");
    assert!(error.hint().unwrap().contains("may create"), "{error}: {:?}", error.hint());
}
