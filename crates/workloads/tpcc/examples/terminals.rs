//! The client's cost of a hundred thousand terminals over few sessions:
//! `cargo run --release -p dyno-tpcc --example terminals -- URL WAREHOUSES SESSIONS SECONDS`. Needs a server with so
//! many warehouses, or one that pretends to have them (bench/nullserver). Ten terminals a warehouse, keying and think
//! times of the specification.
#![expect(clippy::print_stdout, reason = "a measurement prints its result")]

use dyno_core::{Driver, SECOND, Workload};
use dyno_drivers::TargetUrl;
use dyno_drivers::mysql::MysqlDriver;
use dyno_drivers::postgres::PostgresDriver;
use dyno_engine::record::Latencies;
use dyno_engine::{Control, TrialSpec, drive};
use dyno_tpcc::load::TpccDatabase;
use dyno_tpcc::profile::{SPEC, TpccTransaction};
use dyno_tpcc::{Tpcc, TpccOptions};
use std::error::Error;

/// Most of this process' memory that was resident at once, in MB.
fn resident_mb() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: f64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1_024.0 / 1e6)
}

fn format_percentiles(latencies: Option<&Latencies>) -> String {
    let Some(latencies) = latencies else { return "not measured".to_owned() };
    let [p50, p90, p99, p99_9] =
        [50.0, 90.0, 99.0, 99.9].map(|percent| latencies.percentile(percent) as f64 / 1e6);
    let max = latencies.max() as f64 / 1e6;
    format!("p50 {p50:.3}, p90 {p90:.3}, p99 {p99:.3}, p99.9 {p99_9:.3}, max {max:.3} ms")
}

fn measure_terminals<D: Driver>(
    driver: &D,
    [warehouses, sessions, seconds]: [u32; 3],
) -> Result<(), Box<dyn Error>> {
    let loaded = TpccDatabase { warehouses, c_last: 100 };
    let options = TpccOptions::new(SPEC, &loaded, 1);
    let staff = options.staff(Some(sessions));
    let tpcc = Tpcc::new(options, &loaded, driver.dialect())?;
    let spec = TrialSpec {
        terminals: staff.terminals,
        duration: Some(u64::from(seconds) * SECOND),
        ..TrialSpec::closed(staff.workers)
    };
    let result = drive(&tpcc, driver, &spec, &Control::new(), &mut ())?;
    let window_s = result.length() as f64 / SECOND as f64;
    let counts = result.total.counts();
    let cpu_s = result.loops_cpu.iter().sum::<u64>() as f64 / 1e9;
    println!(
        "{} terminals over {} sessions for {window_s:.1} s, {:?}",
        staff.terminals.unwrap_or(0),
        staff.workers,
        result.ended
    );
    println!(
        "started {} ({:.0} a second), offered {}, failed {}, deliveries left {}",
        counts.started,
        counts.started as f64 / window_s,
        result.offered.unwrap_or(0),
        counts.failed,
        tpcc.deliveries_left()
    );
    for (kind, name) in
        result.total.kinds.iter().zip(tpcc.transactions().iter().map(|kind| &kind.name))
    {
        let minutes = window_s / 60.0;
        println!("  {name}: {:.0} a minute", kind.counts.committed as f64 / minutes);
    }
    let orders = result.total.kinds[TpccTransaction::NewOrder.index()].counts.committed;
    println!("tpmC per warehouse {:.2}", orders as f64 / (window_s / 60.0) / f64::from(warehouses));
    println!("audit: {:?}", tpcc.audit().problems());
    println!("late by {}", format_percentiles(result.total.lateness.as_ref()));
    println!("service {}", format_percentiles(result.total.service.as_ref()));
    println!("response {}", format_percentiles(Some(&result.total.latency())));
    println!(
        "{:.1}% of a core, {:.0} us of CPU per transaction, {:.0} MB resident at most",
        100.0 * cpu_s / window_s,
        cpu_s * 1e6 / counts.ended().max(1) as f64,
        resident_mb().unwrap_or(f64::NAN)
    );
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let usage = "usage: terminals URL WAREHOUSES SESSIONS SECONDS";
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [url, warehouses, sessions, seconds] = arguments.as_slice() else {
        return Err(usage.into());
    };
    let numbers = [warehouses.parse()?, sessions.parse()?, seconds.parse()?];
    let target: TargetUrl = url.parse()?;
    if url.starts_with("mysql") {
        measure_terminals(&MysqlDriver::new(&target)?, numbers)
    } else {
        measure_terminals(&PostgresDriver::new(&target)?, numbers)
    }
}
