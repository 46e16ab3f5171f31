//! What is compared.

use crate::bench::{Bench, CLIENT_CORE, NullWay, Steady};
use crate::child::{Ended, run};
use crate::client::{Load, TABLE_ROWS, Way, Who};
use crate::null::Counted;
use crate::table::{Bar, Line};
use crate::tpcc::Database;
use crate::{mariadb, postgres, say, tpcc, tpch, tpch_gen};
use serde_json::Value;

const OPEN_LOOP_PER_S: u32 = 20_000;
/// Tables and sessions of a load.
pub(crate) const LOAD_TABLES: u32 = 4;
/// Rows of all these tables.
pub(crate) const LOAD_ROWS: u32 = LOAD_TABLES * TABLE_ROWS;

pub(crate) const SCALE: u32 = 50;
/// Sessions over which dyno makes pgbench's tables.
pub(crate) const INIT_CONNECTIONS: u32 = 2;

pub(crate) struct Comparison {
    /// For `--only`.
    pub(crate) name: String,
    pub(crate) subject: Subject,
}

pub(crate) enum Subject {
    /// Client CPU per statement on the null server.
    Cpu {
        way: NullWay,
        load: Load,
        bar: Bar,
    },
    /// Resident memory on the null server.
    Memory {
        way: NullWay,
        load: Load,
        bar: Bar,
    },
    OpenLoop,
    PrepareNull,
    /// Throughput and client CPU on MariaDB.
    MariaDb {
        test: &'static str,
    },
    PrepareMariaDb,
    /// pgbench's tables into the null server.
    InitNull,
    /// pgbench's tables into PostgreSQL.
    InitPostgres,
    /// Throughput and client CPU of pgbench's scripts on PostgreSQL.
    Postgres {
        load: Load,
    },
    /// The whole build of TPC-C's tables.
    TpccBuild(Database),
    /// Client CPU per transaction of TPC-C, and memory.
    TpccRun(Database),
    /// Very many terminals of TPC-C with think times on the null server.
    TpccTerminals {
        way: NullWay,
        flight: &'static str,
    },
    TpchLoad {
        scale: &'static str,
    },
    /// The files of TPC-H's tables by so many threads.
    TpchGen {
        threads: u32,
    },
}

pub(crate) fn all() -> Vec<Comparison> {
    let mut all = against_sysbench();
    all.extend(against_pgbench());
    for database in [Database::Postgres, Database::MariaDb] {
        let name = database.name();
        all.push((format!("tpcc-build-{name}"), Subject::TpccBuild(database)));
        all.push((format!("tpcc-run-{name}"), Subject::TpccRun(database)));
    }
    for (name, way) in [("mysql", NullWay::MysqlSocket), ("postgres", NullWay::PostgresSocket)] {
        for flight in ["statement", "pipelined"] {
            let subject = Subject::TpccTerminals { way, flight };
            all.push((format!("tpcc-terminals-{name}-{flight}"), subject));
        }
    }
    for (name, scale) in [("tpch-load", "1"), ("tpch-small-load", "0.1")] {
        all.push((name.to_owned(), Subject::TpchLoad { scale }));
    }
    for threads in [1, 2] {
        all.push((format!("tpch-gen-{threads}"), Subject::TpchGen { threads }));
    }
    all.into_iter().map(|(name, subject)| Comparison { name, subject }).collect()
}

fn against_sysbench() -> Vec<(String, Subject)> {
    use NullWay::{MysqlSocket, MysqlTcp, PostgresSocket, PostgresTcp};
    let (point, mixed) = ("oltp_point_select", "oltp_read_write");
    let mut all = Vec::new();
    let mut cpu = |name: &str, way, test, workers, bar| {
        let load = Load::closed(test, workers);
        all.push((format!("{name}-{workers}"), Subject::Cpu { way, load, bar }));
    };
    for workers in [16, 64, 256] {
        let bar = |limit| if workers == 64 { Bar::Ratio(limit) } else { Bar::None };
        cpu("mysql-unix", MysqlSocket, point, workers, bar(0.35));
        cpu("mysql-tcp", MysqlTcp, point, workers, bar(0.5));
    }
    cpu("mysql-unix-read-write", MysqlSocket, mixed, 64, Bar::None);
    cpu("postgres-unix", PostgresSocket, point, 64, Bar::None);
    cpu("postgres-tcp", PostgresTcp, point, 64, Bar::None);
    let load = Load::closed(point, 1_000);
    let subjects = [
        ("memory", Subject::Memory { way: MysqlSocket, load, bar: Bar::Value(60.0) }),
        ("open-loop", Subject::OpenLoop),
        ("prepare-null", Subject::PrepareNull),
        ("mariadb-point", Subject::MariaDb { test: point }),
        ("mariadb-read-write", Subject::MariaDb { test: mixed }),
        ("prepare-mariadb", Subject::PrepareMariaDb),
    ];
    all.extend(subjects.map(|(name, subject)| (name.to_owned(), subject)));
    all
}

fn against_pgbench() -> Vec<(String, Subject)> {
    use NullWay::{PostgresSocket, PostgresTcp};
    let (select, mixed) = ("select-only", "tpcb-like");
    let select_by = |protocol| Load::pgbench(select, protocol, 64);
    let cpu = |way, load, bar| Subject::Cpu { way, load, bar };
    let on_server = |script, protocol| {
        let load = Load::pgbench(script, protocol, 64);
        Subject::Postgres { load }
    };
    let memory = Subject::Memory {
        way: PostgresSocket,
        load: Load::pgbench(select, "prepared", 500),
        bar: Bar::Ratio(2.0),
    };
    let mixed_load = Load::pgbench(mixed, "prepared", 64);
    [
        ("pgbench-unix-64", cpu(PostgresSocket, select_by("prepared"), Bar::Ratio(0.7))),
        ("pgbench-tcp-64", cpu(PostgresTcp, select_by("prepared"), Bar::Ratio(0.95))),
        ("pgbench-unix-simple-64", cpu(PostgresSocket, select_by("simple"), Bar::None)),
        ("pgbench-unix-extended-64", cpu(PostgresSocket, select_by("extended"), Bar::None)),
        ("pgbench-unix-read-write-64", cpu(PostgresSocket, mixed_load, Bar::Ratio(0.8))),
        ("pgbench-memory", memory),
        ("pgbench-init-null", Subject::InitNull),
        ("pgbench-init-postgres", Subject::InitPostgres),
        ("pgbench-postgres-simple", on_server(select, "simple")),
        ("pgbench-postgres-extended", on_server(select, "extended")),
        ("pgbench-postgres-prepared", on_server(select, "prepared")),
        ("pgbench-postgres-read-write", on_server(mixed, "prepared")),
    ]
    .map(|(name, subject)| (name.to_owned(), subject))
    .into()
}

impl Subject {
    /// Whom dyno is compared with; itself where it is alone.
    fn peer(&self) -> Who {
        match self {
            Subject::TpccTerminals { .. } | Subject::TpchLoad { .. } => Who::Dyno,
            Subject::Cpu { load, .. }
            | Subject::Memory { load, .. }
            | Subject::Postgres { load } => load.peer(),
            Subject::InitNull | Subject::InitPostgres => Who::Pgbench,
            Subject::OpenLoop
            | Subject::PrepareNull
            | Subject::MariaDb { .. }
            | Subject::PrepareMariaDb => Who::Sysbench,
            Subject::TpccBuild(_) | Subject::TpccRun(_) => Who::GoTpc,
            Subject::TpchGen { .. } => Who::TpchgenCli,
        }
    }
}

impl Comparison {
    pub(crate) fn lines(&self, bench: &Bench) -> Result<Vec<Line>, String> {
        if let Err(why) = bench.programs.find(self.subject.peer()) {
            return Ok(vec![Line::skipped(&self.name, &why)]);
        }
        match &self.subject {
            Subject::Cpu { way, load, bar } => self.cpu(bench, *way, load, *bar),
            Subject::Memory { way, load, bar } => self.memory(bench, *way, load, *bar),
            Subject::OpenLoop => self.open_loop(bench),
            Subject::PrepareNull => self.prepare_null(bench),
            Subject::MariaDb { test } => mariadb::run_test(bench, &self.name, test),
            Subject::PrepareMariaDb => mariadb::prepare(bench, &self.name),
            Subject::InitNull => self.init_null(bench),
            Subject::InitPostgres => postgres::initialize(bench, &self.name),
            Subject::Postgres { load } => postgres::run_script(bench, &self.name, load),
            Subject::TpccBuild(database) => tpcc::build(bench, &self.name, *database),
            Subject::TpccRun(database) => tpcc::run(bench, &self.name, *database),
            Subject::TpccTerminals { way, flight } => {
                tpcc::terminals(bench, &self.name, *way, flight)
            }
            Subject::TpchLoad { scale } => tpch::load(bench, &self.name, scale),
            Subject::TpchGen { threads } => tpch_gen::files(bench, &self.name, *threads),
        }
    }

    fn cpu(&self, bench: &Bench, way: NullWay, load: &Load, bar: Bar) -> Result<Vec<Line>, String> {
        let pairs = bench.pairs(&self.name, load.peer(), |who| {
            bench.steady(|seconds| Ok(bench.on_null(who, way, load, seconds)?.0))
        })?;
        Ok(steady_lines(&self.name, load, &pairs, bar, Bar::None))
    }

    fn memory(
        &self,
        bench: &Bench,
        way: NullWay,
        load: &Load,
        bar: Bar,
    ) -> Result<Vec<Line>, String> {
        let pairs = bench.pairs(&self.name, load.peer(), |who| {
            let (_, ended) = bench.on_null(who, way, load, bench.short_seconds)?;
            Ok(ended.peak_kib as f64 / 1024.0)
        })?;
        let what = format!("{}: resident memory, {} connections, MiB", self.name, load.workers);
        Ok(vec![Line::of_pairs(what, &pairs, bar)])
    }

    fn open_loop(&self, bench: &Bench) -> Result<Vec<Line>, String> {
        let mut load = Load::closed("oltp_point_select", 64);
        load.rate_per_s = OPEN_LOOP_PER_S;
        let (mut p50, mut p99, mut p999) = (Vec::new(), Vec::new(), Vec::new());
        let (mut delivered, mut peer_delivered) = (Vec::new(), Vec::new());
        for round in 1..=bench.pairs {
            say(&format!("{}: round {round} of {}", self.name, bench.pairs));
            let json = open_loop_once(bench, &load)?;
            let lateness = &json["lateness"];
            let number = |value: &Value| value.as_f64().ok_or("the JSON lacks a number");
            p50.push(number(&lateness["p50_us"])?);
            p99.push(number(&lateness["p99_us"])?);
            p999.push(number(&lateness["p999_us"])?);
            delivered.push(number(&json["counts"]["committed"])? / number(&json["offered"])?);
            let asked = f64::from(load.rate_per_s) * bench.seconds as f64;
            // sysbench ends with an error where it misses the rate by far: then there is no figure.
            if let Ok((cost, _)) =
                bench.on_null(Who::Sysbench, NullWay::MysqlSocket, &load, bench.seconds)
            {
                peer_delivered.push(cost.statements / asked);
            }
        }
        let what = |text: &str| format!("{}: {OPEN_LOOP_PER_S} tx/s, {text}", self.name);
        Ok(vec![
            Line::of_values(what("lateness of starts, median, us"), &p50, Bar::None),
            Line::of_values(what("lateness of starts, p99, us"), &p99, Bar::Value(200.0)),
            Line::of_values(what("lateness of starts, p99.9, us"), &p999, Bar::None),
            Line::of_values(what("share delivered"), &delivered, Bar::None),
            Line::of_peer(what("share delivered"), &peer_delivered),
        ])
    }

    fn prepare_null(&self, bench: &Bench) -> Result<Vec<Line>, String> {
        let pairs = bench.pairs(&self.name, Who::Sysbench, |who| {
            let null = bench.null(true)?;
            let way = Way::MysqlSocket(null.mysql_socket());
            let mut command = bench.programs.command(who, &way, &loading(), "prepare", 0)?;
            let ended = run(&mut command, Some(CLIENT_CORE), bench.scratch.path())?;
            let Counted { rows: loaded, .. } = null.stop()?;
            if loaded != u64::from(LOAD_ROWS) {
                return Err(format!("{who:?} loaded {loaded} rows instead of {LOAD_ROWS}"));
            }
            Ok(Loading::new(LOAD_ROWS, &ended))
        })?;
        Ok(prepare_lines(&self.name, &pairs, Bar::None))
    }

    fn init_null(&self, bench: &Bench) -> Result<Vec<Line>, String> {
        let pairs = bench.pairs(&self.name, Who::Pgbench, |who| {
            let null = bench.null(true)?;
            let way = NullWay::PostgresSocket.to(&null);
            let mut command = bench.programs.initialize(who, &way, SCALE, INIT_CONNECTIONS)?;
            let ended = run(&mut command, Some(CLIENT_CORE), bench.scratch.path())?;
            let Counted { rows: loaded, .. } = null.stop()?;
            if loaded != u64::from(init_rows()) {
                return Err(format!("{who:?} loaded {loaded} rows instead of {}", init_rows()));
            }
            Ok(Loading::new(init_rows(), &ended))
        })?;
        Ok(init_lines(&self.name, &pairs, Bar::RatioAtLeast(1.3), Bar::Value(0.3)))
    }
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
    let cpu = pairs.iter().map(|(a, b)| (a.cpu_us_per_statement, b.cpu_us_per_statement));
    let rate = pairs.iter().map(|(a, b)| (a.statements_per_s, b.statements_per_s));
    vec![
        Line::of_pairs(what("client CPU us/query"), &cpu.collect::<Vec<_>>(), cpu_bar),
        Line::of_pairs(what("queries/s"), &rate.collect::<Vec<_>>(), rate_bar),
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

/// Lines about loading sysbench's tables.
pub(crate) fn prepare_lines(name: &str, pairs: &[(Loading, Loading)], rate: Bar) -> Vec<Line> {
    let what = format!("{name}: {LOAD_TABLES} tables of {TABLE_ROWS} rows, {LOAD_TABLES} threads");
    loading_lines(&what, pairs, rate, Bar::Value(0.5))
}

/// Lines about loading pgbench's tables.
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
    let rates: Vec<_> = pairs.iter().map(|(a, b)| (a.rows_per_s, b.rows_per_s)).collect();
    let costs: Vec<_> = pairs.iter().map(|(a, b)| (a.cpu_us_per_row, b.cpu_us_per_row)).collect();
    vec![
        Line::of_pairs(format!("{what}, rows/s"), &rates, rate),
        Line::of_pairs(format!("{what}, client CPU us/row"), &costs, cpu),
    ]
}

/// Rows of all tables that pgbench makes at the scale of the comparison, history being empty.
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
    run(&mut command, Some(CLIENT_CORE), bench.scratch.path())?;
    null.stop()?;
    let text = std::fs::read_to_string(&file).map_err(|error| error.to_string())?;
    serde_json::from_str(&text).map_err(|error| format!("the JSON of dyno: {error}"))
}
