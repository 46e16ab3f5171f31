//! All comparisons.

use crate::bench::{Bench, CLIENT_CORE, NullAddress, Steady};
use crate::child::Ended;
use crate::client::{INIT_SCALE, Load, ServerAddress, TABLE_ROWS, Who};
use crate::null::Counted;
use crate::server::{self, Cores, Transport};
use crate::table::{Bar, Line};
use crate::tpcc;
use crate::{log, tpch, tpch_gen};
use serde_json::Value;
use std::process::Command;

const OPEN_LOOP_PER_S: u32 = 20_000;
/// The most that dyno may cost, of the bare loop's client CPU.
const FLOOR_GOAL: f64 = 1.25;
/// Tables and sessions of a load.
pub(crate) const LOAD_TABLES: u32 = 4;
/// Rows of all these tables.
pub(crate) const LOAD_ROWS: u32 = LOAD_TABLES * TABLE_ROWS;

/// Sessions over which dyno makes pgbench's tables.
pub(crate) const INIT_CONNECTIONS: u32 = 2;

pub(crate) type Lines = Result<Vec<Line>, String>;
type Run = dyn Fn(&Bench, &str) -> Lines;

/// Parts of the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Section {
    Levels,
    Shared,
    Apart,
    Null,
    OpenLoop,
    Loading,
    Tpcc,
    Tpch,
}

impl Section {
    pub(crate) const ALL: [(Self, &'static str); 8] = [
        (
            Section::Levels,
            "dyno with its defaults beside the originals, on the cores of the server",
        ),
        (Section::Shared, "A real server that shares both cores with the client"),
        (Section::Apart, "A real server on its own core, the client on the other"),
        (Section::Null, "The null server on its own core: what a client costs and nothing else"),
        (Section::OpenLoop, "Open loop"),
        (Section::Loading, "Loading sysbench's and pgbench's tables"),
        (Section::Tpcc, "TPC-C"),
        (Section::Tpch, "TPC-H"),
    ];
}

pub(crate) struct Comparison {
    /// For `--only`.
    pub(crate) name: String,
    pub(crate) section: Section,
    /// The beginning of README's claim about the first line; the ratio and the peer follow.
    pub(crate) claim: Option<&'static str>,
    /// dyno itself where it has no peer.
    pub(crate) peer: Who,
    run: Box<Run>,
}

impl Comparison {
    pub(crate) fn lines(&self, bench: &Bench) -> Lines {
        or_skip!(&self.name, bench.programs.find(self.peer));
        (self.run)(bench, &self.name)
    }

    fn claiming(self, claim: &'static str) -> Self {
        Comparison { claim: Some(claim), ..self }
    }
}

/// Bars of client CPU and of throughput.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bars {
    cpu: Bar,
    rate: Bar,
}

const NO_BARS: Bars = Bars { cpu: Bar::None, rate: Bar::None };

fn comparison(
    section: Section,
    name: impl Into<String>,
    peer: Who,
    run: impl Fn(&Bench, &str) -> Lines + 'static,
) -> Comparison {
    Comparison { name: name.into(), section, claim: None, peer, run: Box::new(run) }
}

/// Client CPU per statement on the null server.
fn null(name: &str, address: NullAddress, load: Load, cpu: Bar) -> Comparison {
    comparison(Section::Null, format!("null-{name}"), load.peer(), move |bench, name| {
        let rounds = bench.rounds(name, &load.programs(), |who| {
            bench.steady(|seconds| Ok(bench.on_null(who, address, &load, seconds)?.0))
        })?;
        Ok(steady_lines(name, &load, &rounds, Bars { cpu, ..NO_BARS }))
    })
}

/// Client CPU per statement and throughput on a real server.
fn real(name: &str, cores: Cores, transport: Transport, load: Load, bars: Bars) -> Comparison {
    let (section, regime) = match cores {
        Cores::Shared => (Section::Shared, "shared"),
        Cores::Apart => (Section::Apart, "apart"),
    };
    comparison(section, format!("{regime}-{name}"), load.peer(), move |bench, name| {
        server::run_load(bench, name, (transport, cores), &load, bars)
    })
}

/// Resident memory on the null server.
fn memory(name: &str, address: NullAddress, load: Load, bar: Bar) -> Comparison {
    comparison(Section::Null, name, load.peer(), move |bench, name| {
        let rounds = bench.pairs(name, load.peer(), |who| {
            Ok(bench.on_null(who, address, &load, bench.short_seconds)?.1)
        })?;
        let (workers, peer) = (load.workers, load.peer());
        let label = |text| format!("{name}: {text}, {workers} connections, beside {peer}, MiB");
        let own_memory = label("memory of its own (RssAnon)");
        Ok(vec![
            Line::from_rounds(label("resident memory"), &rounds, Ended::peak_mib, bar),
            Line::from_rounds(own_memory, &rounds, Ended::own_mib, Bar::None),
        ])
    })
}

pub(crate) fn all() -> Vec<Comparison> {
    let mut comparisons = levels();
    comparisons.extend(on_real_servers());
    comparisons.extend(on_the_null_server());
    comparisons.push(comparison(Section::OpenLoop, "open-loop", Who::Sysbench, open_loop));
    comparisons.extend(loads());
    comparisons.extend(tpcc_and_tpch());
    comparisons
}

/// Throughput with dyno's default loops compared with sysbench, and with as many jobs as clients compared with pgbench.
fn levels() -> Vec<Comparison> {
    const LEVELS: [u32; 7] = [1, 2, 3, 4, 8, 16, 64];
    let mut comparisons = Vec::new();
    let mut add = |test: &str, load: fn(u32) -> Load| {
        for (transport, suffix) in [(Transport::Unix, "unix"), (Transport::Tcp, "tcp")] {
            let name = format!("levels-{test}-{suffix}");
            let loads = LEVELS.map(load).to_vec();
            comparisons.push(comparison(
                Section::Levels,
                name,
                loads[0].peer(),
                move |bench, name| server::run_levels(bench, name, transport, &loads),
            ));
        }
    };
    add("point-select", |workers| Load::closed("oltp_point_select", workers).by_default());
    add("read-only", |workers| Load::closed("oltp_read_only", workers).by_default());
    add("read-write", |workers| Load::closed("oltp_read_write", workers).by_default());
    add("select-only", |workers| Load::pgbench("select-only", "simple", workers).with_jobs());
    add("simple-update", |workers| Load::pgbench("simple-update", "simple", workers).with_jobs());
    comparisons
}

fn on_real_servers() -> Vec<Comparison> {
    use Cores::{Apart, Shared};
    use Transport::{Tcp, Unix};
    let (point, mixed) = ("oltp_point_select", "oltp_read_write");
    let select = |clients| Load::pgbench("select-only", "prepared", clients);
    let bars = |cpu, rate| Bars { cpu: Bar::Ratio(cpu), rate: Bar::RatioAtLeast(rate) };
    let cpu = |limit| Bars { cpu: Bar::Ratio(limit), ..NO_BARS };
    vec![
        real("postgres-unix-64", Shared, Unix, select(64), bars(0.7, 1.08)).claiming(
            "PostgreSQL and client on the same two cores, `-S -M prepared`, 64 connections, unix socket",
        ),
        real("postgres-tcp-64", Shared, Tcp, select(64), bars(0.75, 1.08))
            .claiming("the same by TCP"),
        real(
            "postgres-read-write-unix-64",
            Shared,
            Unix,
            Load::pgbench("tpcb-like", "prepared", 64).at_scale(50),
            cpu(0.72),
        )
        .claiming("the same server, `tpcb-like`, 64 connections, unix socket"),
        real("postgres-scale-50-unix-64", Shared, Unix, select(64).at_scale(50), NO_BARS)
            .claiming("the first with scale 50 instead of 10"),
        real("postgres-unix-1", Shared, Unix, select(1), NO_BARS),
        real("postgres-unix-16", Shared, Unix, select(16), NO_BARS),
        real("mariadb-unix-64", Shared, Unix, Load::closed(point, 64), cpu(0.58)).claiming(
            "MariaDB and client on the same two cores, `oltp_point_select`, 64 threads, unix socket",
        ),
        real("mariadb-tcp-64", Shared, Tcp, Load::closed(point, 64), cpu(0.66))
            .claiming("the same by TCP"),
        real(
            "mariadb-default-loops-unix-64",
            Shared,
            Unix,
            Load::closed(point, 64).by_default(),
            cpu(0.58),
        )
        .claiming("the same by unix socket, dyno with its default of one loop for each core"),
        real(
            "mariadb-default-loops-tcp-64",
            Shared,
            Tcp,
            Load::closed(point, 64).by_default(),
            cpu(0.66),
        ),
        real("mariadb-read-write-unix-64", Shared, Unix, Load::closed(mixed, 64), NO_BARS),
        real("mariadb-unix-1", Shared, Unix, Load::closed(point, 1), NO_BARS),
        real("mariadb-unix-16", Shared, Unix, Load::closed(point, 16), NO_BARS),
        real("postgres-unix-64", Apart, Unix, select(64), NO_BARS),
        real("postgres-tcp-64", Apart, Tcp, select(64), NO_BARS)
            .claiming("PostgreSQL on its own core, `-S -M prepared`, 64 connections, TCP"),
        real("mariadb-unix-64", Apart, Unix, Load::closed(point, 64), NO_BARS),
        real("mariadb-tcp-64", Apart, Tcp, Load::closed(point, 64), NO_BARS)
            .claiming("MariaDB on its own core, `oltp_point_select`, 64 threads, TCP"),
    ]
}

fn on_the_null_server() -> Vec<Comparison> {
    use NullAddress::{MysqlSocket, MysqlTcp, PostgresSocket, PostgresTcp};
    let (point, mixed) = ("oltp_point_select", "oltp_read_write");
    let select = |protocol| Load::pgbench("select-only", protocol, 64);
    let tpcb = Load::pgbench("tpcb-like", "prepared", 64);
    let many = Load::pgbench("select-only", "prepared", 500);
    vec![
        null("mysql-unix-64", MysqlSocket, Load::closed(point, 64), Bar::Ratio(0.36)),
        null("mysql-tcp-64", MysqlTcp, Load::closed(point, 64), Bar::Ratio(0.5)),
        null("mysql-unix-16", MysqlSocket, Load::closed(point, 16), Bar::None),
        null("mysql-unix-256", MysqlSocket, Load::closed(point, 256), Bar::None),
        null("mysql-read-write-unix-64", MysqlSocket, Load::closed(mixed, 64), Bar::None),
        null("postgres-unix-64", PostgresSocket, select("prepared"), Bar::Ratio(0.78)),
        null("postgres-tcp-64", PostgresTcp, select("prepared"), Bar::Ratio(0.88)),
        null("postgres-simple-unix-64", PostgresSocket, select("simple"), Bar::None),
        null("postgres-extended-unix-64", PostgresSocket, select("extended"), Bar::None),
        null("postgres-read-write-unix-64", PostgresSocket, tpcb, Bar::None),
        memory("memory-mysql", MysqlSocket, Load::closed(point, 1_000), Bar::Value(60.0)),
        memory("memory-postgres", PostgresSocket, many, Bar::Ratio(1.0)),
    ]
}

fn loads() -> Vec<Comparison> {
    vec![
        comparison(Section::Loading, "prepare-null", Who::Sysbench, prepare_null),
        comparison(Section::Loading, "prepare-mariadb", Who::Sysbench, server::prepare),
        comparison(Section::Loading, "init-null", Who::Pgbench, init_null),
        comparison(Section::Loading, "init-postgres", Who::Pgbench, server::initialize),
    ]
}

fn tpcc_and_tpch() -> Vec<Comparison> {
    let mut comparisons = Vec::new();
    // The whole build has to be this many times as fast; a transaction may cost this much of go-tpc's CPU.
    for (database, build, cost) in [("postgres", 1.5, 0.42), ("mariadb", 1.2, 0.48)] {
        let tpcc = |what: &str, run: Box<Run>| {
            comparison(Section::Tpcc, format!("tpcc-{what}-{database}"), Who::GoTpc, run)
        };
        comparisons.push(tpcc(
            "build",
            Box::new(move |bench, name| tpcc::build(bench, name, database, build)),
        ));
        let run = move |bench: &Bench, name: &str| tpcc::run(bench, name, database, cost);
        comparisons.push(tpcc("run", Box::new(run)));
    }
    for (name, address) in
        [("mysql", NullAddress::MysqlSocket), ("postgres", NullAddress::PostgresSocket)]
    {
        let name = format!("tpcc-terminals-{name}-statement");
        comparisons.push(comparison(Section::Tpcc, name, Who::Dyno, move |bench, name| {
            tpcc::terminals(bench, name, address)
        }));
    }
    for (name, scale) in [("tpch-load", "1"), ("tpch-small-load", "0.1")] {
        comparisons.push(comparison(Section::Tpch, name, Who::Dyno, move |bench, name| {
            tpch::load(bench, name, scale)
        }));
    }
    for threads in [1, 2] {
        let name = format!("tpch-gen-{threads}");
        comparisons.push(comparison(Section::Tpch, name, Who::TpchgenCli, move |bench, name| {
            tpch_gen::files(bench, name, threads)
        }));
    }
    comparisons
}

fn open_loop(bench: &Bench, name: &str) -> Lines {
    let mut load = Load::closed("oltp_point_select", 64);
    load.rate_per_s = OPEN_LOOP_PER_S;
    let mut late: [Vec<Vec<f64>>; 3] = Default::default();
    let (mut delivered, mut peer_delivered) = (Vec::new(), Vec::new());
    for round in 1..=bench.pairs {
        log(&format!("{name}: round {round} of {}", bench.pairs));
        bench.go_on()?;
        let json = open_loop_once(bench, &load)?;
        let floor = bare_open_loop(bench, &load)?;
        for (values, key) in late.iter_mut().zip(["p50_us", "p99_us", "p999_us"]) {
            values.push(vec![number(&json["lateness"][key])?, number(&floor[key])?]);
        }
        delivered.push(number(&json["counts"]["committed"])? / number(&json["offered"])?);
        let transactions_due = f64::from(load.rate_per_s) * bench.seconds as f64;
        // sysbench ends with an error when it misses the rate by far: then there is no figure.
        if let Ok((cost, _)) =
            bench.on_null(Who::Sysbench, NullAddress::MysqlSocket, &load, bench.seconds)
        {
            peer_delivered.push(cost.statements / transactions_due);
        }
    }
    let label = |text: &str| format!("{name}: {OPEN_LOOP_PER_S} tx/s, {text}");
    let lateness_line = |at: usize, text: &str, bar| {
        Line::beside_floor(label(&format!("lateness of starts, {text}, us")), &late[at], bar)
    };
    Ok(vec![
        lateness_line(0, "median", Bar::None),
        lateness_line(1, "p99", Bar::Value(60.0)),
        lateness_line(2, "p99.9", Bar::None),
        Line::from_values(label("share delivered, beside sysbench"), &delivered, Bar::None)
            .beside(&peer_delivered),
    ])
}

fn number(value: &Value) -> Result<f64, String> {
    value.as_f64().ok_or_else(|| "the JSON lacks a number".to_owned())
}

/// Lateness of the bare loop with the same requests.
fn bare_open_loop(bench: &Bench, load: &Load) -> Result<Value, String> {
    let null = bench.null(false)?;
    let address = NullAddress::MysqlSocket.resolve(&null);
    let mut command = bench.programs.floor(&address, load, bench.seconds);
    command.arg(format!("--starts={}", load.rate_per_s));
    let ended = bench.run(command, Some(CLIENT_CORE))?;
    null.stop()?;
    serde_json::from_str(&ended.output).map_err(|error| format!("the JSON of the floor: {error}"))
}

fn prepare_null(bench: &Bench, name: &str) -> Lines {
    let rounds = bench.pairs(name, Who::Sysbench, |who| {
        load_null(bench, who, NullAddress::MysqlSocket, LOAD_ROWS, |address| {
            bench.programs.command(who, address, &loading(), "prepare", 0)
        })
    })?;
    Ok(prepare_lines(name, &rounds, Bar::None))
}

fn init_null(bench: &Bench, name: &str) -> Lines {
    let rounds = bench.pairs(name, Who::Pgbench, |who| {
        load_null(bench, who, NullAddress::PostgresSocket, init_rows(), |address| {
            bench.programs.initialize(who, address, INIT_SCALE, INIT_CONNECTIONS)
        })
    })?;
    Ok(init_lines(name, &rounds, Bar::RatioAtLeast(1.3), Bar::Value(0.3)))
}

/// Has a client load `rows` rows into an empty null server.
fn load_null(
    bench: &Bench,
    who: Who,
    address: NullAddress,
    rows: u32,
    command: impl FnOnce(&ServerAddress) -> Result<Command, String>,
) -> Result<Loading, String> {
    let null = bench.null(true)?;
    let ended = bench.run(command(&address.resolve(&null))?, Some(CLIENT_CORE))?;
    let Counted { rows: loaded, .. } = null.stop()?;
    if loaded != u64::from(rows) {
        return Err(format!("{who} loaded {loaded} rows instead of {rows}"));
    }
    Ok(Loading::new(rows, &ended))
}

pub(crate) fn loading() -> Load {
    let load = Load::closed("oltp_point_select", LOAD_TABLES).by_default();
    Load { tables: LOAD_TABLES, ..load }
}

/// Lines about CPU and throughput in the steady state.
pub(crate) fn steady_lines(
    name: &str,
    load: &Load,
    rounds: &[Vec<Steady>],
    Bars { cpu, rate }: Bars,
) -> Vec<Line> {
    let peer = load.peer();
    let label = |text| {
        format!("{name}: {}, {} connections, beside {peer}, {text}", load.test, load.workers)
    };
    vec![
        Line::from_rounds(
            label("client CPU us/query"),
            rounds,
            |one| one.cpu_us_per_statement,
            cpu,
        )
        .near_floor(FLOOR_GOAL),
        Line::from_rounds(label("queries/s"), rounds, |one| one.statements_per_s, rate),
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
pub(crate) fn prepare_lines(name: &str, rounds: &[Vec<Loading>], rate: Bar) -> Vec<Line> {
    let label = format!(
        "{name}: {LOAD_TABLES} tables of {TABLE_ROWS} rows, {LOAD_TABLES} threads, beside sysbench"
    );
    loading_lines(&label, rounds, rate, Bar::Value(0.5))
}

/// Lines about pgbench's tables.
pub(crate) fn init_lines(name: &str, rounds: &[Vec<Loading>], rate: Bar, cpu: Bar) -> Vec<Line> {
    let label = format!(
        "{name}: pgbench -i --init-steps=dtg at scale {INIT_SCALE}, dyno over {INIT_CONNECTIONS} connections, beside pgbench"
    );
    loading_lines(&label, rounds, rate, cpu)
}

pub(crate) fn loading_lines(
    label: &str,
    rounds: &[Vec<Loading>],
    rate: Bar,
    cpu: Bar,
) -> Vec<Line> {
    let cost = format!("{label}, client CPU us/row");
    vec![
        Line::from_rounds(format!("{label}, rows/s"), rounds, |one| one.rows_per_s, rate),
        Line::from_rounds(cost, rounds, |one| one.cpu_us_per_row, cpu),
    ]
}

/// Rows of all pgbench tables at the scale of the comparison; history is empty.
pub(crate) fn init_rows() -> u32 {
    let (accounts, tellers, branches) = (100_000, 10, 1);
    INIT_SCALE * (accounts + tellers + branches)
}

fn open_loop_once(bench: &Bench, load: &Load) -> Result<Value, String> {
    let null = bench.null(false)?;
    let address = NullAddress::MysqlSocket.resolve(&null);
    let file = bench.scratch.file("open-loop.json");
    let mut command = bench.programs.command(Who::Dyno, &address, load, "run", bench.seconds)?;
    command.arg(format!("--json={}", file.display()));
    bench.run(command, Some(CLIENT_CORE))?;
    null.stop()?;
    let text = std::fs::read_to_string(&file).map_err(|error| error.to_string())?;
    serde_json::from_str(&text).map_err(|error| format!("the JSON of dyno: {error}"))
}
