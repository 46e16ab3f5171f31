//! Terminals of the profile `spec`: their deferred deliveries.

use super::whole_way::{assert_consistent, snapshot};
use dyno_core::{AdminSession, Driver};
use dyno_drivers::mysql::MysqlDriver;
use dyno_drivers::sqlite::SqliteDriver;
use dyno_engine::{Control, TrialEnd, TrialSpec, drive};
use dyno_load::Unobserved;
use dyno_testkit::{MariaDb, Scratch, server_or_skip, target, with_session};
use dyno_tpcc::check::Stage;
use dyno_tpcc::load::{TpccLoadOptions, load, loaded};
use dyno_tpcc::profile::{SPEC, TpccTransaction};
use dyno_tpcc::{Timestamp, Tpcc, TpccOptions};

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
    let options = TpccOptions {
        keying_multiplier: 0.005,
        think_multiplier: 0.005,
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

    let count_committed = |kind: usize| result.total.kinds[kind].counts.committed;
    let queued = count_committed(TpccTransaction::Delivery.index());
    assert_eq!(queued, count_committed(5) + tpcc.deliveries_left());
    let delivered = tpcc.acknowledged().delivered.acknowledged;
    assert!(delivered >= 100, "{delivered}");
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
