//! The cost of filling the tables of a server:
//! `cargo bench -p dyno-pgbench --bench init -- URL SCALE CONNECTIONS`. Only steps d, t and g.
#![expect(clippy::print_stdout, reason = "a benchmark prints its result")]

use dyno_core::{Dialect, Driver};
use dyno_drivers::mysql::MysqlDriver;
use dyno_drivers::postgres::PostgresDriver;
use dyno_drivers::sqlite::SqliteDriver;
use dyno_drivers::target::TargetUrl;
use dyno_load::Unobserved;
use dyno_pgbench::init::{InitOptions, InitStep, initialize};
use rustix::time::{ClockId, clock_gettime};

/// CPU time of this process in nanoseconds.
fn cpu_ns() -> i64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}

fn measure<D: Driver>(driver: &D, options: &InitOptions) {
    let start = cpu_ns();
    let report =
        initialize(&driver.admin(), options, &Unobserved).expect("the database takes the rows");
    let rows = report.loaded.rows_loaded as f64;
    let cpu_us = (cpu_ns() - start) as f64 / 1e3 / rows;
    let load = report.steps.iter().find(|(step, _)| *step == InitStep::ClientData);
    let seconds = load.map_or(f64::NAN, |(_, elapsed)| elapsed.as_secs_f64());
    let (connections, per_s) = (report.connections, rows / seconds);
    println!("{connections} connections: {per_s:.0} rows per s, {cpu_us:.3} us of CPU per row");
}

fn main() {
    let mut arguments = std::env::args().skip(1).filter(|argument| argument != "--bench");
    let Some(url) = arguments.next() else {
        println!("skipped: give URL SCALE CONNECTIONS after --");
        return;
    };
    let [scale, connections] =
        std::array::from_fn(|_| arguments.next().and_then(|text| text.parse().ok()).unwrap_or(1));
    let steps = InitStep::parse_all("dtg").expect("these are letters of steps");
    let options = InitOptions { steps, scale, connections, ..InitOptions::default() };
    let target: TargetUrl = url.parse().expect("a URL of a target");
    match target.dialect {
        Dialect::Postgres => measure(&PostgresDriver::new(&target).expect("a driver"), &options),
        Dialect::Mysql => measure(&MysqlDriver::new(&target).expect("a driver"), &options),
        Dialect::Sqlite => measure(&SqliteDriver::new(&target).expect("a driver"), &options),
    }
}
