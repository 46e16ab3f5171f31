//! Loads that are interrupted and continue.

use crate::sqlite::{assert_rows, driver};
use crate::support::{Failing, LoadLog, init, query_rows, steps};
use dyno_core::{DbError, Driver, ErrorClass};
use dyno_pgbench::init::{InitOptions, InitReport, initialize};
use dyno_testkit::Scratch;

fn options(scale: u32) -> InitOptions {
    InitOptions { scale, connections: 2, ..InitOptions::default() }
}

/// The report of an initialization that continues.
fn resumed(driver: &impl dyno_core::Driver, options: &InitOptions) -> InitReport {
    let options = InitOptions { resume: true, ..options.clone() };
    initialize(&driver.admin(), &options, &LoadLog::default()).unwrap()
}

#[test]
fn what_is_committed_is_kept_and_the_rest_is_loaded() {
    let scratch = Scratch::new();
    let driver = driver(&scratch);
    // Branches, tellers and two of five branches' accounts.
    let failing = Failing::new(&driver, 4..u32::MAX, DbError::lost("The server went away."));
    let error = initialize(&(&failing).admin(), &options(5), &LoadLog::default()).unwrap_err();
    let text = error.to_string();
    assert!(text.starts_with("step g (client-side generate): filling table pgbench_acc"), "{text}");
    assert!(error.hint().unwrap().contains("--resume"), "{:?}", error.hint());
    assert_eq!(query_rows(&driver, "select count(*) from pgbench_accounts"), ["200000"]);

    let report = resumed(&driver, &options(5));
    assert_eq!((report.loaded.rows_found, report.loaded.rows_loaded), (200_000, 300_000));
    assert_rows(&driver, 5);
    let indexes = "select count(*) from sqlite_master where type = 'index'";
    assert_eq!(query_rows(&driver, indexes), ["3"]);

    // Nothing was interrupted, so nothing is called resumed.
    let load_log = init(&driver, &InitOptions { resume: true, ..options(5) });
    let note = "Tables that exist are kept: only what they lack is loaded";
    assert_eq!(load_log.notes.lock().unwrap()[0], note);
    let report = resumed(&driver, &options(5));
    assert_eq!((report.loaded.rows_found, report.loaded.rows_loaded), (500_000, 0));
    assert_rows(&driver, 5);
}

#[test]
fn a_load_that_never_began_is_resumed_from_nothing() {
    let scratch = Scratch::new();
    let driver = driver(&scratch);
    let failing = Failing::new(&driver, 1..u32::MAX, DbError::lost("The server went away."));
    initialize(&(&failing).admin(), &options(2), &LoadLog::default()).unwrap_err();
    assert_eq!(query_rows(&driver, "select count(*) from pgbench_branches"), ["0"]);
    query_rows(&driver, "drop table pgbench_history");
    let report = resumed(&driver, &options(2));
    assert_eq!((report.loaded.rows_found, report.loaded.rows_loaded), (0, 200_000));
    assert_rows(&driver, 2);
}

#[test]
fn other_rows_than_the_options_make_are_refused() {
    let scratch = Scratch::new();
    let driver = driver(&scratch);
    init(&driver, &InitOptions { scale: 2, ..steps("dtg") });
    let assert_refused = |scale, words: &str| {
        let options = InitOptions { resume: true, ..options(scale) };
        let error = initialize(&driver.admin(), &options, &LoadLog::default()).unwrap_err();
        assert!(error.to_string().contains(words), "{error}");
        assert!(error.hint().unwrap().contains("without --resume"));
    };
    assert_refused(
        3,
        "table pgbench_branches has other rows than these options make: 2 instead of 3",
    );
    query_rows(&driver, "delete from pgbench_accounts where aid = 7");
    assert_refused(2, "99999 of branch 1, from 1 to 100000");
    query_rows(&driver, "update pgbench_accounts set bid = 9 where bid = 2");
    query_rows(&driver, "delete from pgbench_accounts where bid = 1");
    assert_refused(2, "scale 2: 100000 of branch 9");
}

#[test]
fn a_table_of_somebody_elses_is_refused_before_anything_is_created() {
    let scratch = Scratch::new();
    let driver = driver(&scratch);
    query_rows(&driver, "create table pgbench_accounts(AID int)");
    let options = InitOptions { resume: true, ..options(1) };
    let error = initialize(&driver.admin(), &options, &LoadLog::default()).unwrap_err();
    let words = "The table pgbench_accounts is not pgbench's (it has no column bid)";
    assert_eq!(error.to_string(), words);
    assert_eq!(error.hint(), Some("rename or drop it, or use another database"));
    assert_eq!(query_rows(&driver, "select name from sqlite_master"), ["pgbench_accounts"]);
}

#[test]
fn a_deadlock_is_tried_again_and_then_reported() {
    let scratch = Scratch::new();
    let driver = driver(&scratch);
    let deadlock = DbError::server(ErrorClass::Deadlock, 1213, *b"40001", "Deadlock found.");
    // The first four attempts at the third branch's accounts fail.
    let failing = Failing::new(&driver, 4..8, deadlock.clone());
    init(&&failing, &options(4));
    assert_eq!(failing.loads(), 2 + 4 + 4);
    assert_rows(&driver, 4);
    let failing = Failing::new(&driver, 3..u32::MAX, deadlock);
    let error = initialize(&(&failing).admin(), &options(3), &LoadLog::default()).unwrap_err();
    assert_eq!(failing.loads(), 3 + 5);
    assert_eq!(error.error.as_ref().unwrap().errno(), 1213);
}
