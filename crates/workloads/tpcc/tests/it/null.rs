//! All transactions against the null server, which measures what a client costs:
//! it must answer everything as a database would, as far as a client can tell.

use dyno_core::Driver;
use dyno_drivers::mysql::MysqlDriver;
use dyno_drivers::postgres::PostgresDriver;
use dyno_engine::{Control, TrialSpec, drive};
use dyno_nullserver::{Config, start};
use dyno_testkit::target;
use dyno_tpcc::load::TpccDatabase;
use dyno_tpcc::profile::BMSQL_5_0;
use dyno_tpcc::{Tpcc, TpccOptions};

const WORKERS: u32 = 8;
const EACH: u64 = 250;

fn all_answered<D: Driver>(driver: &D) {
    let loaded = TpccDatabase { warehouses: 3, c_last: 100 };

    let options = TpccOptions::new(BMSQL_5_0, &loaded, 1);
    let tpcc = Tpcc::new(options, &loaded, driver.dialect()).unwrap();
    let mut spec = TrialSpec::closed(WORKERS);
    (spec.duration, spec.events_per_worker) = (None, Some(EACH));
    let result = drive(&tpcc, driver, &spec, &Control::new(), &mut ()).unwrap();
    let counts = result.total.counts();
    assert_eq!((counts.failed, counts.skipped), (0, 0));
    assert_eq!(counts.committed + counts.rolled_back, u64::from(WORKERS) * EACH);
    assert!(counts.rolled_back > 0, "an unused item is not found");
    let books = tpcc.acknowledged();
    assert!(books.orders.acknowledged > 0 && books.payments.acknowledged > 0);
    assert!(tpcc.acknowledged().delivered.acknowledged > 0);
}

#[test]
fn the_null_server_answers_all_transactions() {
    let config = Config { mysql_port: Some(0), postgres_port: Some(0), ..Config::default() };
    let handle = start(config).unwrap();
    let mysql = format!("mysql://t@127.0.0.1:{}/db", handle.config.mysql_port.unwrap());
    all_answered(&MysqlDriver::new(&target(&mysql)).unwrap());
    let postgres = format!("postgres://t@127.0.0.1:{}/db", handle.config.postgres_port.unwrap());
    all_answered(&PostgresDriver::new(&target(&postgres)).unwrap());
    let report = handle.stop().unwrap();
    assert_eq!(report.violations, [""; 0]);
}
