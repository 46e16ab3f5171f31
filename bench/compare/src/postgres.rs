//! Comparisons with pgbench on a real server, which shares the machine's cores with the client.

use crate::bench::Bench;
use crate::client::{Load, Way, Who};
use crate::comparisons::{
    INIT_CONNECTIONS, Lines, Loading, SCALE, init_lines, init_rows, steady_lines,
};
use crate::table::{Bar, Line};
use dyno_testkit::Postgres;

/// Tables in memory and no waits for a disk: the server at its fastest.
pub(crate) const SETTINGS: [&str; 4] =
    ["--fsync=off", "--synchronous_commit=off", "--shared_buffers=1GB", "--max_wal_size=4GB"];

fn way(server: &Postgres) -> Way {
    Way::Postgres(server.socket_folder.display().to_string(), server.port)
}

/// Throughput and client CPU of a pgbench script.
pub(crate) fn run_script(bench: &Bench, name: &str, load: &Load) -> Lines {
    let server = or_skip!(name, Postgres::start_with(&SETTINGS));
    let way = way(&server);
    // pgbench makes the tables for both.
    let mut make = bench.programs.initialize(Who::Pgbench, &way, SCALE, 1)?;
    make.arg("--init-steps=dtgvp");
    bench.run(make, None)?;
    let pairs = bench.pairs(name, load.peer(), |who| {
        bench.steady(|seconds| bench.on_server(who, &way, load, seconds))
    })?;
    Ok(steady_lines(name, load, &pairs, Bar::None, Bar::RatioAtLeast(1.0)))
}

pub(crate) fn initialize(bench: &Bench, name: &str) -> Lines {
    let server = or_skip!(name, Postgres::start_with(&SETTINGS));
    let pairs = bench.pairs(name, Who::Pgbench, |who| {
// The rows and pages of the other shall not cost this one.
        server.sbtest("DROP TABLE IF EXISTS pgbench_accounts, pgbench_tellers, pgbench_branches, pgbench_history")?;
        server.sql("CHECKPOINT")?;
let command = bench.programs.initialize(who, &way(&server), SCALE, INIT_CONNECTIONS)?;
let ended = bench.run(command, None)?;
        let count = "SELECT (SELECT count(*) FROM pgbench_accounts) + (SELECT count(*) FROM pgbench_tellers) + (SELECT count(*) FROM pgbench_branches)";
        let stored = server.sbtest(count)?;
        if stored.trim() != init_rows().to_string() {
            return Err(format!("{who:?} left {} rows", stored.trim()));
        }
        Ok(Loading::new(init_rows(), &ended))
    })?;
    Ok(init_lines(name, &pairs, Bar::None, Bar::Value(0.3)))
}
