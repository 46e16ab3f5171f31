//! Loads and runs TPC-C on any target, so that what it costs the client can be measured from
//! outside; `dyno-bench` does that alongside go-tpc.
//!
//! - `cost URL load WAREHOUSES SESSIONS`: the whole build: rows, keys, indexes, statistics, counting.
//! - `cost URL run WAREHOUSES SESSIONS SECONDS [loops=N]`: `bmsql-5.0` without pauses, on one
//!   loop by default.
//! - `cost URL check`: the conditions. `cost URL destroy`.
//!
//! A run doesn't ask the database what is loaded: the null server doesn't know.
#![expect(clippy::print_stdout, reason = "a measurement prints its result")]

use dyno_core::{AdminSession, Driver, Rng, SECOND, Session};
use dyno_drivers::TargetUrl;
use dyno_drivers::mysql::MysqlDriver;
use dyno_drivers::postgres::PostgresDriver;
use dyno_engine::{Control, TrialSpec, drive};
use dyno_load::Unobserved;
use dyno_reactor::block_on;
use dyno_tpcc::check::{Condition, Stage, check};
use dyno_tpcc::load::{TpccDatabase, TpccLoadOptions, destroy, load};
use dyno_tpcc::profile::BMSQL_5_0;
use dyno_tpcc::values::Constants;
use dyno_tpcc::{Tpcc, TpccOptions};
use rustix::time::{ClockId, clock_gettime};
use std::error::Error;

const USAGE: &str = "cost URL load WAREHOUSES SESSIONS | run WAREHOUSES SESSIONS SECONDS [loops=N] | \
                     check | destroy";

/// CPU time of this process in microseconds.
fn cpu_us() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 * 1e6 + time.tv_nsec as f64 / 1e3
}

fn measure_load<D: Driver>(driver: &D, words: &[&str]) -> Result<(), Box<dyn Error>> {
    let &[warehouses, sessions] = words else { return Err(USAGE.into()) };
    let options = TpccLoadOptions {
        sessions: sessions.parse()?,
        ..TpccLoadOptions::new(warehouses.parse()?)
    };
    let cpu = cpu_us();
    let rows = load(&driver.admin(), &options, &Unobserved)?.rows_loaded;
    println!("rows {rows}");
    println!("cpu_us_per_row {:.3}", (cpu_us() - cpu) / rows.max(1) as f64);
    Ok(())
}

fn measure_run<D: Driver>(driver: &D, words: &[&str]) -> Result<(), Box<dyn Error>> {
    let &[warehouses, sessions, seconds, ref loops @ ..] = words else { return Err(USAGE.into()) };
    let loops = match loops {
        [] => None,
        [loops] => loops.strip_prefix("loops=").ok_or(USAGE)?.parse().ok(),
        _ => return Err(USAGE.into()),
    };
    // As the load above draws them.
    let constants =
        Constants::for_load(&mut Rng::new(TpccLoadOptions::new(1).seed, "tpcc constants", 0));
    let loaded = TpccDatabase { warehouses: warehouses.parse()?, c_last: constants.c_last };
    let options = TpccOptions::new(BMSQL_5_0, &loaded, 1);
    let tpcc = Tpcc::new(options, &loaded, driver.dialect())?;
    let mut spec = TrialSpec::closed(sessions.parse()?);
    spec.loops = loops.or(Some(1));
    spec.duration = Some(seconds.parse::<u64>()? * SECOND);
    let cpu = cpu_us();
    let result = drive(&tpcc, driver, &spec, &Control::new(), &mut ())?;
    let counts = result.total.counts();
    let transactions = counts.committed + counts.rolled_back;
    println!("transactions {transactions}");
    println!("failed {}", counts.failed);
    println!("cpu_us_per_transaction {:.1}", (cpu_us() - cpu) / transactions.max(1) as f64);
    Ok(())
}

fn check_conditions<D: Driver>(driver: &D) -> Result<(), Box<dyn Error>> {
    let verdicts = block_on(async {
        let mut session = driver.connect(0).await?;
        let verdicts = check(&mut AdminSession::lent(&mut session), |condition: &Condition| {
            condition.applies(Stage::Used)
        })
        .await;
        session.close().await;
        verdicts
    })??;
    for verdict in verdicts.iter().filter(|verdict| !verdict.holds()) {
        println!("{} {} {:?}", verdict.condition.id, verdict.violations, verdict.keys);
    }
    println!("conditions {}", verdicts.len());
    println!("hold {}", verdicts.iter().filter(|verdict| verdict.holds()).count());
    Ok(())
}

fn execute_command<D: Driver>(driver: &D, words: &[&str]) -> Result<(), Box<dyn Error>> {
    match words {
        ["load", rest @ ..] => measure_load(driver, rest),
        ["run", rest @ ..] => measure_run(driver, rest),
        ["check"] => check_conditions(driver),
        ["destroy"] => Ok(destroy(&driver.admin(), &Unobserved).map(drop)?),
        _ => Err(USAGE.into()),
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let (&url, words) = words.split_first().ok_or(USAGE)?;
    let target: TargetUrl = url.parse()?;
    if url.starts_with("mysql") {
        execute_command(&MysqlDriver::new(&target)?, words)
    } else {
        execute_command(&PostgresDriver::new(&target)?, words)
    }
}
