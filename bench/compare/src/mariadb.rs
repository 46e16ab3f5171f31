//! Comparisons on a real server, which shares the machine's cores with the client.

use crate::bench::Bench;
use crate::client::{Load, TABLE_ROWS, Way, Who};
use crate::comparisons::{
    LOAD_ROWS, LOAD_TABLES, Lines, Loading, loading, prepare_lines, steady_lines,
};
use crate::table::{Bar, Line};
use dyno_testkit::MariaDb;

const WORKERS: u32 = 64;

pub(crate) fn run_test(bench: &Bench, name: &str, test: &'static str) -> Lines {
    let server = or_skip!(name, MariaDb::start());
    let way = Way::MysqlSocket(server.socket.clone());
    let load = Load { loops: 0, ..Load::closed(test, WORKERS) };
    bench.run(bench.programs.command(Who::Dyno, &way, &load, "prepare", 0)?, None)?;
    let pairs = bench.pairs(name, Who::Sysbench, |who| {
        bench.steady(|seconds| bench.on_server(who, &way, &load, seconds))
    })?;
    Ok(steady_lines(name, &load, &pairs, Bar::None, Bar::None))
}

pub(crate) fn prepare(bench: &Bench, name: &str) -> Lines {
    let server = or_skip!(name, MariaDb::start());
    let way = Way::MysqlSocket(server.socket.clone());
    let pairs = bench.pairs(name, Who::Sysbench, |who| {
        server.sql("DROP DATABASE sbtest; CREATE DATABASE sbtest")?;
        let command = bench.programs.command(who, &way, &loading(), "prepare", 0)?;
        let ended = bench.run(command, None)?;
        for table in 1..=LOAD_TABLES {
            let stored = server.sql(&format!("SELECT COUNT(*) FROM sbtest.sbtest{table}"))?;
            if stored.trim() != TABLE_ROWS.to_string() {
                return Err(format!("{who:?} left {} rows in sbtest{table}", stored.trim()));
            }
        }
        Ok(Loading::new(LOAD_ROWS, &ended))
    })?;
    Ok(prepare_lines(name, &pairs, Bar::RatioAtLeast(1.0)))
}
