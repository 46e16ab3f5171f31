//! Terminals of the profile `spec`: their deferred deliveries.

use super::whole_way::{assert_consistent, snapshot};
use dyno_core::{AdminSession, AnswerTable, Driver, Session};
use dyno_drivers::mysql::MysqlDriver;
use dyno_drivers::sqlite::SqliteDriver;
use dyno_engine::{Control, TrialEnd, TrialSpec, drive};
use dyno_load::Unobserved;
use dyno_testkit::{MariaDb, Scratch, server_or_skip, target, with_session};
use dyno_tpcc::check::Stage;
use dyno_tpcc::load::{TpccLoadOptions, load, loaded};
use dyno_tpcc::profile::{SPEC, TpccTransaction};
use dyno_tpcc::{Timestamp, Tpcc, TpccOptions};
use std::path::Path;

/// The log's lines: warehouse, carrier and the orders by district.
fn logged(path: &Path) -> Vec<(u32, u32, Vec<Option<u32>>)> {
    let text = std::fs::read_to_string(path).unwrap();
    let mut lines = text.lines();
    assert!(
        lines.next().unwrap().starts_with("queued,began,ended,w_id,o_carrier_id,outcome,o_id_1")
    );
    lines
        .map(|line| {
            let cells: Vec<&str> = line.split(',').collect();
            let &[queued, began, ended, warehouse, carrier, outcome, ref orders @ ..] = &cells[..]
            else {
                panic!("{line}")
            };
            // A delivery may take less than the millisecond to which times are written.
            assert!(queued <= began && began <= ended, "{line}");
            assert_eq!((outcome, orders.len()), ("delivered", 10), "{line}");
            let orders = orders.iter().map(|order| order.parse().ok()).collect();
            (warehouse.parse().unwrap(), carrier.parse().unwrap(), orders)
        })
        .collect()
}

/// Two hundred times as fast as the specification's terminals.
fn whole_way<D: Driver>(driver: &D) {
    let load_options = TpccLoadOptions {
        seed: 5,
        loaded_at: Timestamp(1_700_000_000_000),
        ..TpccLoadOptions::new(1)
    };
    load(&driver.admin(), &load_options, &Unobserved).unwrap();
    let loaded = with_session(driver, async |session: &mut D::Session| {
        loaded(&mut AdminSession::lent(session)).await.unwrap()
    });
    let scratch = Scratch::new();
    let path = scratch.file("deliveries.csv");
    let options = TpccOptions {
        keying_multiplier: 0.005,
        think_multiplier: 0.005,
        delivery_log: Some(path.clone()),
        ..TpccOptions::new(SPEC, &loaded, 4)
    };
    let staff = options.staff(Some(3));
    let tpcc = Tpcc::new(options, &loaded, driver.dialect()).unwrap();
    let before = snapshot(driver);
    let spec = TrialSpec {
        terminals: staff.terminals,
        duration: None,
        events: Some(600),
        ..TrialSpec::closed(staff.workers)
    };
    let result = drive(&tpcc, driver, &spec, &Control::new(), &mut ()).unwrap();
    assert_eq!(result.ended, TrialEnd::Events, "{:?}", result.total.errors);
    assert_eq!(result.total.counts().failed, 0, "{:?}", result.total.errors);
    assert!(tpcc.reconcile(&before, &snapshot(driver)).is_empty());
    assert!(tpcc.audit().problems().is_empty());
    assert_consistent(driver, Stage::Used);

    assert_eq!(tpcc.delivery_log_error(), None);
    let log = logged(&path);
    let queued = result.total.kinds[TpccTransaction::Delivery.index()].counts.committed;
    assert_eq!(log.len() as u64, result.total.kinds[5].counts.committed);
    assert_eq!(queued, log.len() as u64 + tpcc.deliveries_left());
    let orders: usize = log.iter().map(|line| line.2.iter().flatten().count()).sum();
    assert_eq!(orders as u64, tpcc.delivered().acknowledged);
    assert!(orders >= 100, "{orders}");
    with_session(driver, async |session: &mut D::Session| {
        for (warehouse, carrier, orders) in &log {
            for (district, order) in (1..).zip(orders) {
                let order = order.expect("900 orders of each district wait");
                let sql = format!(
                    "SELECT o_carrier_id FROM bmsql_oorder WHERE o_w_id = {warehouse} AND o_d_id = \
                     {district} AND o_id = {order}"
                );
                let mut answer = AnswerTable::default();
                session.query(&sql, &mut answer).await.unwrap();
                assert_eq!(answer.rows, [[Some(carrier.to_string())]]);
            }
        }
    });
}

#[test]
fn sqlite_delivers_what_was_queued() {
    let scratch = Scratch::new();
    let url = format!("sqlite:{}", scratch.file("way.db").display());
    whole_way(&SqliteDriver::new(&target(&url)).unwrap());
}

#[test]
fn mariadb_delivers_what_was_queued() {
    let server = server_or_skip!(MariaDb, "mariadb_delivers_what_was_queued");
    whole_way(&MysqlDriver::new(&target(&server.socket_url())).unwrap());
}
