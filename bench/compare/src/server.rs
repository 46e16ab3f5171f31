//! Real servers, and comparisons on them.

use crate::bench::{Bench, CLIENT_CORE, SERVER_CORE};
use crate::child::pin;
use crate::client::{INIT_SCALE, Load, ServerAddress, TABLE_ROWS, Test, Who};
use crate::comparisons::{
    Bars, INIT_CONNECTIONS, LOAD_ROWS, LOAD_TABLES, Lines, Loading, init_lines, init_rows, loading,
    prepare_lines, steady_lines,
};
use crate::table::{Bar, Line};
use dyno_testkit::{MariaDb, Postgres};
use rustix::process::Pid;

/// Tables in memory and no waits for a disk: the server at its fastest.
pub(crate) const SETTINGS: [&str; 4] =
    ["--fsync=off", "--synchronous_commit=off", "--shared_buffers=1GB", "--max_wal_size=4GB"];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Transport {
    Unix,
    Tcp,
}

/// Cores of the programs next to a real server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cores {
    /// Client and server share all of them, as on the machine of a developer.
    Shared,
    /// The server has one and the client the other, as with a load generator of its own.
    Apart,
}

pub(crate) enum Server {
    Postgres(Postgres),
    MariaDb(MariaDb),
}

impl Server {
    pub(crate) fn start(database: &str) -> Result<Self, String> {
        Ok(match database {
            "postgres" => Server::Postgres(Postgres::start_with(&SETTINGS)?),
            _ => Server::MariaDb(MariaDb::start_with(&[
                "--innodb-flush-log-at-trx-commit=2",
                "--innodb-buffer-pool-size=1G",
                "--innodb-log-file-size=512M",
                "--local-infile=1",
                "--max-connections=1200",
            ])?),
        })
    }

    fn address(&self, transport: Transport) -> ServerAddress {
        match (self, transport) {
            (Server::Postgres(server), Transport::Unix) => {
                ServerAddress::Postgres(server.socket_folder.display().to_string(), server.port)
            }
            (Server::Postgres(server), Transport::Tcp) => {
                ServerAddress::Postgres("127.0.0.1".to_owned(), server.port)
            }
            (Server::MariaDb(server), Transport::Unix) => {
                ServerAddress::MysqlSocket(server.socket.clone())
            }
            (Server::MariaDb(server), Transport::Tcp) => ServerAddress::MysqlTcp(server.port),
        }
    }

    /// Keeps the server, and what it starts from now on, on its core.
    fn keep_apart(&self) -> Result<(), String> {
        let process = match self {
            Server::Postgres(server) => server.server.process(),
            Server::MariaDb(server) => server.server.process(),
        };
        let process = process.and_then(|number| Pid::from_raw(number as i32));
        pin(process.ok_or("the server has ended")?, SERVER_CORE)
    }
}

/// Throughput and client CPU of dyno, its peer and, if it knows the load, the bare loop.
pub(crate) fn run_load(
    bench: &Bench,
    name: &str,
    (transport, cores): (Transport, Cores),
    load: &Load,
    bars: Bars,
) -> Lines {
    let server = or_skip!(name, Server::start(load.database()));
    let address = server.address(transport);
    make_tables(bench, &address, load)?;
    let core = match cores {
        Cores::Shared => None,
        Cores::Apart => {
            server.keep_apart()?;
            Some(CLIENT_CORE)
        }
    };
    let rounds = bench.rounds(name, &load.programs(), |who| {
        bench.steady(|seconds| bench.on_server(who, &address, load, seconds, core))
    })?;
    Ok(steady_lines(name, load, &rounds, bars))
}

fn make_tables(bench: &Bench, address: &ServerAddress, load: &Load) -> Result<(), String> {
    let command = if matches!(load.test, Test::Pgbench { .. }) {
        // pgbench makes the tables for both.
        let mut make = bench.programs.initialize(Who::Pgbench, address, load.scale, 1)?;
        make.arg("--init-steps=dtgvp");
        make
    } else {
        bench.programs.command(Who::Dyno, address, load, "prepare", 0)?
    };
    bench.run(command, None).map(drop)
}

/// Throughput of dyno and its peer under loads of one kind, on one server.
pub(crate) fn run_levels(bench: &Bench, name: &str, transport: Transport, loads: &[Load]) -> Lines {
    let server = or_skip!(name, Server::start(loads[0].database()));
    let address = server.address(transport);
    make_tables(bench, &address, &loads[0])?;
    let lines = loads.iter().map(|load| {
        let (peer, workers) = (load.peer(), load.workers);
        let rounds = bench.pairs(&format!("{name}, {workers}"), peer, |who| {
            let cost = bench.on_server(who, &address, load, bench.seconds, None)?;
            Ok(cost.statements / load.statements() as f64 / bench.seconds as f64)
        })?;
        let label = format!("{name}: {workers} connections, beside {peer}, tx/s");
        Ok(Line::from_rounds(label, &rounds, |rate| *rate, Bar::RatioAtLeast(0.97)))
    });
    lines.collect()
}

pub(crate) fn prepare(bench: &Bench, name: &str) -> Lines {
    let server = or_skip!(name, MariaDb::start());
    let address = ServerAddress::MysqlSocket(server.socket.clone());
    let rounds = bench.pairs(name, Who::Sysbench, |who| {
        server.sql("DROP DATABASE sbtest; CREATE DATABASE sbtest")?;
        let command = bench.programs.command(who, &address, &loading(), "prepare", 0)?;
        let ended = bench.run(command, None)?;
        for table in 1..=LOAD_TABLES {
            let stored = server.sql(&format!("SELECT COUNT(*) FROM sbtest.sbtest{table}"))?;
            if stored.trim() != TABLE_ROWS.to_string() {
                return Err(format!("{who} left {} rows in sbtest{table}", stored.trim()));
            }
        }
        Ok(Loading::new(LOAD_ROWS, &ended))
    })?;
    Ok(prepare_lines(name, &rounds, Bar::RatioAtLeast(1.0)))
}

pub(crate) fn initialize(bench: &Bench, name: &str) -> Lines {
    let server = or_skip!(name, Postgres::start_with(&SETTINGS));
    let address = ServerAddress::Postgres(server.socket_folder.display().to_string(), server.port);
    let rounds = bench.pairs(name, Who::Pgbench, |who| {
        // The rows and pages of the other shall not cost this one.
        let tables = "pgbench_accounts, pgbench_tellers, pgbench_branches, pgbench_history";
        server.in_database("sbtest", &format!("DROP TABLE IF EXISTS {tables}"))?;
        server.sql("CHECKPOINT")?;
        let command = bench.programs.initialize(who, &address, INIT_SCALE, INIT_CONNECTIONS)?;
        let ended = bench.run(command, None)?;
        let count = "SELECT (SELECT count(*) FROM pgbench_accounts) + (SELECT count(*) FROM \
                     pgbench_tellers) + (SELECT count(*) FROM pgbench_branches)";
        let stored = server.in_database("sbtest", count)?;
        if stored.trim() != init_rows().to_string() {
            return Err(format!("{who} left {} rows", stored.trim()));
        }
        Ok(Loading::new(init_rows(), &ended))
    })?;
    Ok(init_lines(name, &rounds, Bar::None, Bar::Value(0.3)))
}
