//! All comparisons.

use crate::bench::{Bench, CLIENT_CORE, NullWay, Steady};
use crate::child::Ended;
use crate::client::{Load, TABLE_ROWS, Way, Who};
use crate::null::Counted;
use crate::table::{Bar, Line};
use crate::{mariadb, postgres, say, tpcc, tpch, tpch_gen};
use serde_json::Value;
use std::process::Command;

const OPEN_LOOP_PER_S: u32 = 20_000;
/// Tables and sessions of a load.
pub(crate) const LOAD_TABLES: u32 = 4;
/// Rows of all these tables.
pub(crate) const LOAD_ROWS: u32 = LOAD_TABLES * TABLE_ROWS;

pub(crate) const SCALE: u32 = 50;
/// Sessions over which dyno makes pgbench's tables.
pub(crate) const INIT_CONNECTIONS: u32 = 2;

pub(crate) type Lines = Result<Vec<Line>, String>;
type Run = dyn Fn(&Bench, &str) -> Lines;

pub(crate) struct Comparison {
    /// For `--only`.
    pub(crate) name: String,
    /// dyno itself where it has no peer.
    peer: Who,
    run: Box<Run>,
}

impl Comparison {
    pub(crate) fn lines(&self, bench: &Bench) -> Lines {
        or_skip!(&self.name, bench.programs.find(self.peer));
        (self.run)(bench, &self.name)
    }
}

fn one(
    name: impl Into<String>,
    peer: Who,
    run: impl Fn(&Bench, &str) -> Lines + 'static,
) -> Comparison {
    Comparison { name: name.into(), peer, run: Box::new(run) }
}

/// Client CPU per statement on the null server.
fn cost(name: impl Into<String>, way: NullWay, load: Load, bar: Bar) -> Comparison {
    one(name, load.peer(), move |bench, name| {
        let pairs = bench.pairs(name, load.peer(), |who| {
            bench.steady(|seconds| Ok(bench.on_null(who, way, &load, seconds)?.0))
        })?;
        Ok(steady_lines(name, &load, &pairs, bar, Bar::None))
    })
}

/// Resident memory on the null server.
fn memory(name: &str, way: NullWay, load: Load, bar: Bar) -> Comparison {
    one(name, load.peer(), move |bench, name| {
        let pairs = bench.pairs(name, load.peer(), |who| {
            Ok(bench.on_null(who, way, &load, bench.short_seconds)?.1)
        })?;
        let what = format!("{name}: resident memory, {} connections, MiB", load.workers);
        Ok(vec![Line::of_pairs(what, &pairs, Ended::peak_mib, bar)])
    })
}

pub(crate) fn all() -> Vec<Comparison> {
    let mut all = against_sysbench();
    all.extend(against_pgbench());
    // The whole build has to be this many times as fast.
    for (database, bar) in [("postgres", 1.5), ("mariadb", 1.2)] {
        let name = |what: &str| format!("tpcc-{what}-{database}");
        all.push(one(name("build"), Who::GoTpc, move |bench, name| {
            tpcc::build(bench, name, database, bar)
        }));
        all.push(one(name("run"), Who::GoTpc, move |bench, name| tpcc::run(bench, name, database)));
    }
    for (name, way) in [("mysql", NullWay::MysqlSocket), ("postgres", NullWay::PostgresSocket)] {
        for flight in ["statement", "pipelined"] {
            let name = format!("tpcc-terminals-{name}-{flight}");
            all.push(one(name, Who::Dyno, move |bench, name| {
                tpcc::terminals(bench, name, way, flight)
            }));
        }
    }
    for (name, scale) in [("tpch-load", "1"), ("tpch-small-load", "0.1")] {
        all.push(one(name, Who::Dyno, move |bench, name| tpch::load(bench, name, scale)));
    }
    for threads in [1, 2] {
        all.push(one(format!("tpch-gen-{threads}"), Who::TpchgenCli, move |bench, name| {
            tpch_gen::files(bench, name, threads)
        }));
    }
    all
}

fn against_sysbench() -> Vec<Comparison> {
    use NullWay::{MysqlSocket, MysqlTcp, PostgresSocket, PostgresTcp};
    let (point, mixed) = ("oltp_point_select", "oltp_read_write");
    let mut all = Vec::new();
    for workers in [16, 64, 256] {
        let bar = |limit| if workers == 64 { Bar::Ratio(limit) } else { Bar::None };
        let load = || Load::closed(point, workers);
        all.push(cost(format!("mysql-unix-{workers}"), MysqlSocket, load(), bar(0.35)));
        all.push(cost(format!("mysql-tcp-{workers}"), MysqlTcp, load(), bar(0.5)));
    }
    let on_server = |name, test| {
        one(name, Who::Sysbench, move |bench, name| mariadb::run_test(bench, name, test))
    };
    all.extend([
        cost("mysql-unix-read-write-64", MysqlSocket, Load::closed(mixed, 64), Bar::None),
        cost("postgres-unix-64", PostgresSocket, Load::closed(point, 64), Bar::None),
        cost("postgres-tcp-64", PostgresTcp, Load::closed(point, 64), Bar::None),
        memory("memory", MysqlSocket, Load::closed(point, 1_000), Bar::Value(60.0)),
        one("open-loop", Who::Sysbench, open_loop),
        one("prepare-null", Who::Sysbench, prepare_null),
        on_server("mariadb-point", point),
        on_server("mariadb-read-write", mixed),
        one("prepare-mariadb", Who::Sysbench, mariadb::prepare),
    ]);
    all
}

fn against_pgbench() -> Vec<Comparison> {
    use NullWay::{PostgresSocket, PostgresTcp};
    let select = |protocol| Load::pgbench("select-only", protocol, 64);
    let mixed = || Load::pgbench("tpcb-like", "prepared", 64);
    let many = Load::pgbench("select-only", "prepared", 500);
    let on_server = |name, load: Load| {
        one(name, Who::Pgbench, move |bench, name| postgres::run_script(bench, name, &load))
    };
    vec![
        cost("pgbench-unix-64", PostgresSocket, select("prepared"), Bar::Ratio(0.7)),
        cost("pgbench-tcp-64", PostgresTcp, select("prepared"), Bar::Ratio(0.95)),
        cost("pgbench-unix-simple-64", PostgresSocket, select("simple"), Bar::None),
        cost("pgbench-unix-extended-64", PostgresSocket, select("extended"), Bar::None),
        cost("pgbench-unix-read-write-64", PostgresSocket, mixed(), Bar::Ratio(0.8)),
        memory("pgbench-memory", PostgresSocket, many, Bar::Ratio(2.0)),
        one("pgbench-init-null", Who::Pgbench, init_null),
        one("pgbench-init-postgres", Who::Pgbench, postgres::initialize),
        on_server("pgbench-postgres-simple", select("simple")),
        on_server("pgbench-postgres-extended", select("extended")),
        on_server("pgbench-postgres-prepared", select("prepared")),
        on_server("pgbench-postgres-read-write", mixed()),
    ]
}

fn open_loop(bench: &Bench, name: &str) -> Lines {
    let mut load = Load::closed("oltp_point_select", 64);
    load.rate_per_s = OPEN_LOOP_PER_S;
    let (mut p50, mut p99, mut p999) = (Vec::new(), Vec::new(), Vec::new());
    let (mut delivered, mut peer_delivered) = (Vec::new(), Vec::new());
    for round in 1..=bench.pairs {
        say(&format!("{name}: round {round} of {}", bench.pairs));
        let json = open_loop_once(bench, &load)?;
        let lateness = &json["lateness"];
        let number = |value: &Value| value.as_f64().ok_or("the JSON lacks a number");
        p50.push(number(&lateness["p50_us"])?);
        p99.push(number(&lateness["p99_us"])?);
        p999.push(number(&lateness["p999_us"])?);
        delivered.push(number(&json["counts"]["committed"])? / number(&json["offered"])?);
        let asked = f64::from(load.rate_per_s) * bench.seconds as f64;
        // sysbench ends with an error when it misses the rate by far: then there is no figure.
        if let Ok((cost, _)) =
            bench.on_null(Who::Sysbench, NullWay::MysqlSocket, &load, bench.seconds)
        {
            peer_delivered.push(cost.statements / asked);
        }
    }
    let what = |text: &str| format!("{name}: {OPEN_LOOP_PER_S} tx/s, {text}");
    Ok(vec![
        Line::of_values(what("lateness of starts, median, us"), &p50, Bar::None),
        Line::of_values(what("lateness of starts, p99, us"), &p99, Bar::Value(200.0)),
        Line::of_values(what("lateness of starts, p99.9, us"), &p999, Bar::None),
        Line::of_values(what("share delivered"), &delivered, Bar::None),
        Line::of_peer(what("share delivered"), &peer_delivered),
    ])
}

fn prepare_null(bench: &Bench, name: &str) -> Lines {
    let pairs = bench.pairs(name, Who::Sysbench, |who| {
        load_null(bench, who, NullWay::MysqlSocket, LOAD_ROWS, |way| {
            bench.programs.command(who, way, &loading(), "prepare", 0)
        })
    })?;
    Ok(prepare_lines(name, &pairs, Bar::None))
}

fn init_null(bench: &Bench, name: &str) -> Lines {
    let pairs = bench.pairs(name, Who::Pgbench, |who| {
        load_null(bench, who, NullWay::PostgresSocket, init_rows(), |way| {
            bench.programs.initialize(who, way, SCALE, INIT_CONNECTIONS)
        })
    })?;
    Ok(init_lines(name, &pairs, Bar::RatioAtLeast(1.3), Bar::Value(0.3)))
}

/// Has a client load `rows` rows into an empty null server.
fn load_null(
    bench: &Bench,
    who: Who,
    way: NullWay,
    rows: u32,
    command: impl FnOnce(&Way) -> Result<Command, String>,
) -> Result<Loading, String> {
    let null = bench.null(true)?;
    let ended = bench.run(command(&way.to(&null))?, Some(CLIENT_CORE))?;
    let Counted { rows: loaded, .. } = null.stop()?;
    if loaded != u64::from(rows) {
        return Err(format!("{who:?} loaded {loaded} rows instead of {rows}"));
    }
    Ok(Loading::new(rows, &ended))
}

pub(crate) fn loading() -> Load {
    let load = Load::closed("oltp_point_select", LOAD_TABLES);
    Load { tables: LOAD_TABLES, loops: 0, ..load }
}

/// Lines about throughput and CPU in the steady state.
pub(crate) fn steady_lines(
    name: &str,
    load: &Load,
    pairs: &[(Steady, Steady)],
    cpu_bar: Bar,
    rate_bar: Bar,
) -> Vec<Line> {
    let peer = format!("{:?}", load.peer()).to_lowercase();
    let what =
        |text| format!("{name}: {}, {} connections, {peer}, {text}", load.test, load.workers);
    vec![
        Line::of_pairs(what("client CPU us/query"), pairs, |one| one.cpu_us_per_statement, cpu_bar),
        Line::of_pairs(what("queries/s"), pairs, |one| one.statements_per_s, rate_bar),
    ]
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Loading {
    pub(crate) rows_per_s: f64,
    pub(crate) cpu_us_per_row: f64,
}

impl Loading {
    pub(crate) fn new(rows: u32, ended: &Ended) -> Self {
        let rows = f64::from(rows);
        Loading { rows_per_s: rows / ended.wall_s, cpu_us_per_row: ended.cpu_s * 1e6 / rows }
    }
}

/// Lines about sysbench's tables.
pub(crate) fn prepare_lines(name: &str, pairs: &[(Loading, Loading)], rate: Bar) -> Vec<Line> {
    let what = format!("{name}: {LOAD_TABLES} tables of {TABLE_ROWS} rows, {LOAD_TABLES} threads");
    loading_lines(&what, pairs, rate, Bar::Value(0.5))
}

/// Lines about pgbench's tables.
pub(crate) fn init_lines(
    name: &str,
    pairs: &[(Loading, Loading)],
    rate: Bar,
    cpu: Bar,
) -> Vec<Line> {
    let what = format!(
        "{name}: pgbench -i --init-steps=dtg at scale {SCALE}, dyno over {INIT_CONNECTIONS} connections"
    );
    loading_lines(&what, pairs, rate, cpu)
}

pub(crate) fn loading_lines(
    what: &str,
    pairs: &[(Loading, Loading)],
    rate: Bar,
    cpu: Bar,
) -> Vec<Line> {
    let cost = format!("{what}, client CPU us/row");
    vec![
        Line::of_pairs(format!("{what}, rows/s"), pairs, |one| one.rows_per_s, rate),
        Line::of_pairs(cost, pairs, |one| one.cpu_us_per_row, cpu),
    ]
}

/// Rows of all pgbench tables at the scale of the comparison; history is empty.
pub(crate) fn init_rows() -> u32 {
    let (accounts, tellers, branches) = (100_000, 10, 1);
    SCALE * (accounts + tellers + branches)
}

fn open_loop_once(bench: &Bench, load: &Load) -> Result<Value, String> {
    let null = bench.null(false)?;
    let way = NullWay::MysqlSocket.to(&null);
    let file = bench.scratch.file("open-loop.json");
    let mut command = bench.programs.command(Who::Dyno, &way, load, "run", bench.seconds)?;
    command.arg(format!("--json={}", file.display()));
    bench.run(command, Some(CLIENT_CORE))?;
    null.stop()?;
    let text = std::fs::read_to_string(&file).map_err(|error| error.to_string())?;
    serde_json::from_str(&text).map_err(|error| format!("the JSON of dyno: {error}"))
}
