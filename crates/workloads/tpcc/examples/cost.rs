//! What loading and running costs the client, on a database of one's own:
//! `cargo run --release -p dyno-tpcc --example cost -- URL [WAREHOUSES] [SESSIONS] [SECONDS]`.
//! Loads, runs both flight modes without pauses, checks, and removes everything again.
#![expect(clippy::print_stdout, reason = "a measurement prints its result")]

use dyno_core::{Driver, SECOND, Session, Unobserved};
use dyno_drivers::Target;
use dyno_drivers::mysql::MysqlDriver;
use dyno_drivers::postgres::PostgresDriver;
use dyno_engine::{Control, TrialSpec, drive};
use dyno_reactor::block_on;
use dyno_tpcc::check::{Stage, check};
use dyno_tpcc::load::{LoadOptions, destroy, load, loaded};
use dyno_tpcc::profile::BMSQL_5_0;
use dyno_tpcc::{FlightMode, Tpcc, TpccOptions};
use rustix::time::{ClockId, clock_gettime};
use std::error::Error;
use std::time::Instant;

/// CPU time of this process in microseconds.
fn cpu_us() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 * 1e6 + time.tv_nsec as f64 / 1e3
}

fn measure<D: Driver>(driver: &D, arguments: &[u32]) -> Result<(), Box<dyn Error>> {
    let argument = |at: usize, usual| arguments.get(at).copied().unwrap_or(usual);
    let (warehouses, sessions, seconds) = (argument(0, 1), argument(1, 4), argument(2, 10));
    let (cpu, begin) = (cpu_us(), Instant::now());
    let options = LoadOptions { sessions, ..LoadOptions::new(warehouses) };
    let report = load(driver, &options, &Unobserved)?;
    let (cpu, rows) = (cpu_us() - cpu, report.rows_loaded);
    println!(
        "load: {rows} rows in {:.1} s, {:.3} us of client CPU per row",
        begin.elapsed().as_secs_f64(),
        cpu / rows.max(1) as f64
    );
    let found = block_on(async {
        let mut session = driver.connect(0).await?;
        let found = loaded(&mut session).await;
        session.close().await;
        Ok::<_, dyno_core::DbError>(found)
    })???;
    for flight in [FlightMode::Statement, FlightMode::Pipelined] {
        let options = TpccOptions { flight, ..TpccOptions::new(BMSQL_5_0, &found, 1) };
        let tpcc = Tpcc::new(options, &found, driver.dialect())?;
        let mut spec = TrialSpec::closed(sessions);
        spec.duration = Some(u64::from(seconds) * SECOND);
        let cpu = cpu_us();
        let result = drive(&tpcc, driver, &spec, &Control::new(), &mut ())?;
        let counts = result.total.counts();
        let done = counts.committed + counts.rolled_back;
        let orders = tpcc.acknowledged().orders.acknowledged;
        println!(
            "{}: {done} transactions, {orders} new orders, {:.0} us of client CPU per transaction, \
             {} failed",
            flight.name(),
            (cpu_us() - cpu) / done.max(1) as f64,
            counts.failed
        );
    }
    let verdicts = block_on(async {
        let mut session = driver.connect(0).await?;
        let verdicts = check(&mut session, Stage::Used).await;
        session.close().await;
        verdicts
    })??;
    println!(
        "{} of {} conditions hold",
        verdicts.iter().filter(|v| v.holds()).count(),
        verdicts.len()
    );
    destroy(driver, &Unobserved)?;
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let url = arguments.next().ok_or("the URL of an empty database is needed")?;
    let numbers: Vec<u32> = arguments.map(|text| text.parse()).collect::<Result<_, _>>()?;
    let target: Target = url.parse()?;
    if url.starts_with("mysql") {
        measure(&MysqlDriver::new(&target)?, &numbers)
    } else {
        measure(&PostgresDriver::new(&target)?, &numbers)
    }
}
