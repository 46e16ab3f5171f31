//! The whole way on real databases: load, check, run both profiles, check again,
//! break each condition by hand.

use dyno_core::{AdminSession, AnswerTable, Discard, Driver, Session};
use dyno_drivers::mysql::MysqlDriver;
use dyno_drivers::postgres::PostgresDriver;
use dyno_drivers::sqlite::SqliteDriver;
use dyno_engine::{Control, TrialEnd, TrialSpec, drive};
use dyno_load::Unobserved;
use dyno_testkit::{
    MariaDb, MySql, Postgres, Scratch, server_or_skip, skipped, target, with_session,
};
use dyno_tpcc::check::{CONDITIONS, Stage, check};
use dyno_tpcc::ledger::LedgerFile;
use dyno_tpcc::load::{TpccLoadOptions, destroy, load, loaded};
use dyno_tpcc::profile::{BMSQL_5_0, Profile, SPEC};
use dyno_tpcc::schema::KeyTime;
use dyno_tpcc::settle::{Books, books};
use dyno_tpcc::{Timestamp, Tpcc, TpccOptions};
use std::path::Path;

/// Two, so that there is something remote.
pub(crate) const WAREHOUSES: u32 = 2;

pub(crate) fn options() -> TpccLoadOptions {
    TpccLoadOptions {
        seed: 5,
        loaded_at: Timestamp(1_700_000_000_000),
        ..TpccLoadOptions::new(WAREHOUSES)
    }
}

/// All conditions of a stage hold.
pub(crate) fn assert_consistent<D: Driver>(driver: &D, stage: Stage) {
    let verdicts = with_session(driver, async |session: &mut D::Session| {
        let session = &mut AdminSession::lent(session);
        check(session, |condition| condition.applies(stage)).await.unwrap()
    });
    let expected = CONDITIONS.iter().filter(|condition| condition.applies(stage)).count();
    assert_eq!(verdicts.len(), expected);
    for verdict in verdicts {
        let id = verdict.condition.id;
        assert!(verdict.holds(), "{id}: {} {:?}", verdict.violations, verdict.keys);
    }
}

/// Breaks a condition inside a transaction that is rolled back; it must be found there, by key.
fn assert_found<D: Driver>(driver: &D, id: &str, sql: &str, key: &str) {
    let condition = CONDITIONS.iter().find(|condition| condition.id == id).unwrap();
    with_session(driver, async |session: &mut D::Session| {
        session.query("BEGIN", &mut Discard).await.unwrap();
        let executed = session.query(sql, &mut Discard).await.unwrap();
        assert!(executed.affected > 0, "{id}: {sql}");
        let verdict = condition.verdict(&mut AdminSession::lent(session)).await.unwrap();
        session.query("ROLLBACK", &mut Discard).await.unwrap();
        assert!(verdict.violations > 0, "{id} does not find: {sql}");
        assert!(verdict.keys.iter().any(|found| found == key), "{id}: {:?}", verdict.keys);
    });
}

/// A way to break each condition, and the key that it must name. Order 3,001 is entered by the runs.
const BROKEN: [(&str, &str, &str); 23] = [
    ("C1", "UPDATE bmsql_warehouse SET w_ytd = w_ytd + 1 WHERE w_id = 2", "w_id 2"),
    (
        "C2",
        "UPDATE bmsql_district SET d_next_o_id = d_next_o_id + 1 WHERE d_w_id = 1 AND d_id = 3",
        "d_w_id 1, d_id 3",
    ),
    (
        "C2",
        "DELETE FROM bmsql_oorder WHERE o_w_id = 1 AND o_d_id = 4 AND o_id > 3000",
        "d_w_id 1, d_id 4",
    ),
    (
        "C3",
        "DELETE FROM bmsql_new_order WHERE no_w_id = 1 AND no_d_id = 2 AND no_o_id = 2950",
        "no_w_id 1, no_d_id 2",
    ),
    (
        "C4",
        "UPDATE bmsql_oorder SET o_ol_cnt = o_ol_cnt + 1 WHERE o_w_id = 1 AND o_d_id = 1 AND o_id \
         = 5",
        "o_w_id 1, o_d_id 1",
    ),
    (
        "C5",
        "UPDATE bmsql_oorder SET o_carrier_id = NULL WHERE o_w_id = 1 AND o_d_id = 1 AND o_id = 5",
        "o_w_id 1, o_d_id 1, o_id 5",
    ),
    (
        "C6",
        "DELETE FROM bmsql_order_line WHERE ol_w_id = 2 AND ol_d_id = 1 AND ol_o_id = 5 AND \
         ol_number = 2",
        "o_w_id 2, o_d_id 1, o_id 5",
    ),
    (
        "C7",
        "UPDATE bmsql_order_line SET ol_delivery_d = NULL WHERE ol_w_id = 1 AND ol_d_id = 1 AND \
         ol_o_id = 5 AND ol_number = 3",
        "ol_w_id 1, ol_d_id 1, ol_o_id 5, ol_number 3",
    ),
    ("C8", "UPDATE bmsql_history SET h_amount = h_amount + 1 WHERE hist_id = 7", "w_id 1"),
    (
        "C9",
        "UPDATE bmsql_history SET h_amount = h_amount + 1 WHERE hist_id = 3007",
        "d_w_id 1, d_id 2",
    ),
    (
        "C10",
        "UPDATE bmsql_customer SET c_balance = c_balance + 1 WHERE c_w_id = 1 AND c_d_id = 6 AND \
         c_id = 8",
        "c_w_id 1, c_d_id 6, c_id 8",
    ),
    (
        "C11b",
        "UPDATE bmsql_customer SET c_delivery_cnt = c_delivery_cnt + 1 WHERE c_w_id = 1 AND c_d_id \
         = 6 AND c_id = 8",
        "o_w_id 1, o_d_id 6",
    ),
    (
        "C12",
        "UPDATE bmsql_customer SET c_ytd_payment = c_ytd_payment - 1 WHERE c_w_id = 2 AND c_d_id = \
         6 AND c_id = 8",
        "c_w_id 2, c_d_id 6, c_id 8",
    ),
    (
        "X1",
        "UPDATE bmsql_stock SET s_ytd = s_ytd + 1 WHERE s_w_id = 2 AND s_i_id = 99",
        "s_w_id 2, s_i_id 99",
    ),
    (
        "X1",
        "UPDATE bmsql_stock SET s_order_cnt = s_order_cnt + 1 WHERE s_w_id = 2 AND s_i_id = 99",
        "s_w_id 2, s_i_id 99",
    ),
    (
        "X2",
        "UPDATE bmsql_stock SET s_remote_cnt = s_remote_cnt + 1 WHERE s_w_id = 2 AND s_i_id = 99",
        "s_w_id 2, s_i_id 99",
    ),
    (
        "X3",
        "UPDATE bmsql_customer SET c_payment_cnt = c_payment_cnt + 1 WHERE c_w_id = 1 AND c_d_id = \
         6 AND c_id = 8",
        "c_w_id 1, c_d_id 6, c_id 8",
    ),
    (
        "X4",
        "UPDATE bmsql_customer SET c_delivery_cnt = c_delivery_cnt + 1 WHERE c_w_id = 1 AND c_d_id \
         = 6 AND c_id = 8",
        "c_w_id 1, c_d_id 6, c_id 8",
    ),
    (
        "X5",
        "UPDATE bmsql_stock SET s_quantity = 101 WHERE s_w_id = 1 AND s_i_id = 99",
        "s_w_id 1, s_i_id 99",
    ),
    (
        "X6",
        "UPDATE bmsql_order_line SET ol_amount = ol_amount + 1 WHERE ol_w_id = 1 AND ol_d_id = 1 \
         AND ol_o_id = 3001 AND ol_number = 1",
        "ol_w_id 1, ol_d_id 1, ol_o_id 3001, ol_number 1",
    ),
    (
        "X7",
        "UPDATE bmsql_oorder SET o_all_local = 0 WHERE o_w_id = 1 AND o_d_id = 1 AND o_id = 5",
        "o_w_id 1, o_d_id 1, o_id 5",
    ),
    (
        "X8",
        "DELETE FROM bmsql_oorder WHERE o_w_id = 1 AND o_d_id = 1 AND o_id = 2950",
        "no_w_id 1, no_d_id 1, no_o_id 2950",
    ),
    (
        "X9",
        "DELETE FROM bmsql_oorder WHERE o_w_id = 1 AND o_d_id = 1 AND o_id = 2950",
        "ol_w_id 1, ol_d_id 1, ol_o_id 2950, ol_number 1",
    ),
];

fn break_all<D: Driver>(driver: &D) {
    for (id, sql, key) in BROKEN {
        assert_found(driver, id, sql, key);
    }
    let dist = "UPDATE bmsql_order_line SET ol_dist_info = 'another' WHERE ol_w_id = 1 AND ol_d_id \
                = 1 AND ol_o_id = 3001 AND ol_number = 2";
    assert_found(driver, "X10", dist, "ol_w_id 1, ol_d_id 1, ol_o_id 3001, ol_number 2");
    let is_covered = |id: &str| id == "C11" || id == "X10" || BROKEN.iter().any(|row| row.0 == id);
    assert!(CONDITIONS.iter().all(|condition| is_covered(condition.id)));
}

pub(crate) fn snapshot<D: Driver>(driver: &D) -> Books {
    with_session(driver, async |session: &mut D::Session| {
        books(&mut AdminSession::lent(session)).await.unwrap()
    })
}

/// Runs as many transactions and looks at everything that can be looked at.
/// Returns how many orders were acknowledged.
fn run<D: Driver>(driver: &D, profile: Profile, events: u64, seed: u64, ledger: &Path) -> u64 {
    let loaded = with_session(driver, async |session: &mut D::Session| {
        loaded(&mut AdminSession::lent(session)).await.unwrap()
    });
    let options = TpccOptions::new(profile, &loaded, seed);
    let before = snapshot(driver);
    let file = LedgerFile::open(ledger, "here", &loaded, seed, &before).unwrap();
    let tpcc = Tpcc::new(options, &loaded, driver.dialect()).unwrap().with_ledger(file);
    let mut spec = TrialSpec::closed(4);
    (spec.duration, spec.events, spec.seed) = (None, Some(events), seed);
    let result = drive(&tpcc, driver, &spec, &Control::new(), &mut ()).unwrap();
    assert_eq!(result.ended, TrialEnd::Events, "{:?}", result.total.errors);
    let counts = result.total.counts();
    assert_eq!(counts.failed, 0, "{:?}", result.total.errors);
    assert_eq!(counts.committed + counts.rolled_back, events);
    let after = snapshot(driver);
    assert!(tpcc.reconcile(&before, &after).is_empty());
    assert_eq!(tpcc.acknowledged().orders.unknown, 0);
    let audit = tpcc.audit();
    assert!(audit.problems().is_empty());
    assert_eq!(audit.orders, tpcc.acknowledged().orders.acknowledged + counts.rolled_back);
    // Books that do not fit are found.
    assert!(!tpcc.reconcile(&after, &after).is_empty());
    tpcc.ledger_file().unwrap().close().unwrap();
    tpcc.acknowledged().orders.acknowledged
}

/// `more` is done while the data are there and have been used.
fn whole_way<D: Driver>(driver: &D, load_options: &TpccLoadOptions, more: impl FnOnce()) {
    let report = load(&driver.admin(), load_options, &Unobserved).unwrap();
    // 100,000 items, and per warehouse 199,010 rows and about 300,000 lines.
    assert!((1_070_000..1_130_000).contains(&report.rows_loaded), "{report:?}");
    assert_eq!(report.rows_found, 0);
    assert!(load(&driver.admin(), load_options, &Unobserved).unwrap().was_complete);
    let other_options = TpccLoadOptions { warehouses: 3, ..load_options.clone() };
    let error = load(&driver.admin(), &other_options, &Unobserved).unwrap_err();
    assert!(error.to_string().starts_with("The tables hold 2 warehouses"), "{error}");
    assert_consistent(driver, Stage::Fresh);
    let undelivered = "DELETE FROM bmsql_new_order WHERE no_w_id = 2 AND no_d_id = 9 AND no_o_id = \
                       3000";
    assert_found(driver, "C11", undelivered, "o_w_id 2, o_d_id 9");

    let scratch = Scratch::new();
    let ledger = scratch.file("ledger");
    assert!(snapshot(driver).is_fresh());
    let orders = run(driver, BMSQL_5_0, 700, 1, &ledger) + run(driver, SPEC, 700, 2, &ledger);
    assert!(!snapshot(driver).is_fresh());
    assert_consistent(driver, Stage::Used);
    super::ledger::assert_ledger_proves(driver, &ledger, 2, orders);
    super::apart::assert_both_ways_agree(driver);
    more();
    break_all(driver);
    destroy(&driver.admin(), &Unobserved).unwrap();
    with_session(driver, async |session: &mut D::Session| {
        let error = loaded(&mut AdminSession::lent(session)).await.unwrap_err();
        assert!(error.to_string().contains("nothing is loaded here"), "{error}");
        let mut answer = AnswerTable::default();
        assert!(session.query("SELECT * FROM bmsql_item", &mut answer).await.is_err());
    });
}

#[test]
fn sqlite_goes_the_whole_way() {
    let scratch = Scratch::new();
    let url = format!("sqlite:{}", scratch.file("way.db").display());
    whole_way(&SqliteDriver::new(&target(&url)).unwrap(), &options(), || {});
}

#[test]
fn mariadb_goes_the_whole_way() {
    let server = server_or_skip!(MariaDb, "mariadb_goes_the_whole_way");
    let driver = MysqlDriver::new(&target(&server.socket_url())).unwrap();
    whole_way(&driver, &options(), || super::apart::is_used_when_joins_are_refused(&driver));
}

#[test]
fn postgres_goes_the_whole_way() {
    let server = server_or_skip!(Postgres, "postgres_goes_the_whole_way");
    let driver = PostgresDriver::new(&target(&server.socket_url())).unwrap();
    let options = TpccLoadOptions { keys: Some(KeyTime::AfterLoad), ..options() };
    whole_way(&driver, &options, || {});
}

/// One warehouse, on servers alongside those that the deep tests are made on.
fn short_way<D: Driver>(driver: &D) {
    let one_warehouse = TpccLoadOptions { warehouses: 1, ..options() };
    assert!(!load(&driver.admin(), &one_warehouse, &Unobserved).unwrap().was_complete);
    assert_consistent(driver, Stage::Fresh);
    let scratch = Scratch::new();
    let orders = run(driver, SPEC, 700, 2, &scratch.file("ledger"));
    assert!(orders > 100, "{orders} orders");
    assert_consistent(driver, Stage::Used);
    destroy(&driver.admin(), &Unobserved).unwrap();
}

#[test]
fn mysql_goes_a_short_way() {
    let server = server_or_skip!(MySql, "mysql_goes_a_short_way");
    short_way(&MysqlDriver::new(&target(&server.url())).unwrap());
}

#[test]
fn mariadb_11_8_goes_a_short_way() {
    match MariaDb::start_fetched() {
        Ok(server) => short_way(&MysqlDriver::new(&target(&server.url())).unwrap()),
        Err(why) => skipped("mariadb_11_8_goes_a_short_way", &why),
    }
}

#[test]
fn postgres_18_goes_a_short_way() {
    match Postgres::start_fetched() {
        Ok(server) => short_way(&PostgresDriver::new(&target(&server.url())).unwrap()),
        Err(why) => skipped("postgres_18_goes_a_short_way", &why),
    }
}
