//! What is compared.

use crate::bench::{Bench, CLIENT_CORE, NullWay, Steady};
use crate::child::{Ended, run};
use crate::client::{Load, TABLE_ROWS, Way, Who};
use crate::null::Counted;
use crate::table::{Bar, Line};
use crate::{mariadb, say};
use serde_json::Value;

/// Transactions per second of the open loop.
const OPEN_LOOP_PER_S: u32 = 20_000;
/// Tables and sessions of a load.
pub(crate) const LOAD_TABLES: u32 = 4;
/// Rows of all these tables.
pub(crate) const LOAD_ROWS: u32 = LOAD_TABLES * TABLE_ROWS;

/// A group of lines of the table.
pub(crate) struct Comparison {
    /// For `--only`.
    pub(crate) name: String,
    pub(crate) subject: Subject,
}

pub(crate) enum Subject {
    /// Client CPU per statement on the null server.
    Cpu { way: NullWay, load: Load, peer: Who, bar: Bar },
    /// Resident memory with as many connections.
    Memory { workers: u32 },
    /// Lateness at a rate.
    OpenLoop,
    /// Loading into the null server.
    PrepareNull,
    /// Throughput and client CPU on MariaDB.
    MariaDb { test: &'static str },
    /// Loading into MariaDB.
    PrepareMariaDb,
}

/// All comparisons in the order of the table.
pub(crate) fn all() -> Vec<Comparison> {
    use NullWay::{MysqlSocket, MysqlTcp, PostgresSocket, PostgresTcp};
    use Who::{Pgbench, Sysbench};
    let mut all = Vec::new();
    let mut cpu = |name: &str, way, test, workers, peer, bar| {
        let (name, load) = (format!("{name}-{workers}"), Load::closed(test, workers));
        all.push(Comparison { name, subject: Subject::Cpu { way, load, peer, bar } });
    };
    let (point, mixed) = ("oltp_point_select", "oltp_read_write");
    for workers in [16, 64, 256] {
        let bar = |limit| if workers == 64 { Bar::Ratio(limit) } else { Bar::None };
        cpu("mysql-unix", MysqlSocket, point, workers, Sysbench, bar(0.35));
        cpu("mysql-tcp", MysqlTcp, point, workers, Sysbench, bar(0.5));
    }
    cpu("mysql-unix-read-write", MysqlSocket, mixed, 64, Sysbench, Bar::None);
    cpu("postgres-unix", PostgresSocket, point, 64, Sysbench, Bar::None);
    cpu("postgres-tcp", PostgresTcp, point, 64, Sysbench, Bar::None);
    cpu("pgbench-unix", PostgresSocket, point, 64, Pgbench, Bar::Ratio(0.7));
    cpu("pgbench-tcp", PostgresTcp, point, 64, Pgbench, Bar::Ratio(0.95));
    let subjects = [
        ("memory", Subject::Memory { workers: 1_000 }),
        ("open-loop", Subject::OpenLoop),
        ("prepare-null", Subject::PrepareNull),
        ("mariadb-point", Subject::MariaDb { test: point }),
        ("mariadb-read-write", Subject::MariaDb { test: mixed }),
        ("prepare-mariadb", Subject::PrepareMariaDb),
    ];
    all.extend(subjects.map(|(name, subject)| Comparison { name: name.to_owned(), subject }));
    all
}

impl Comparison {
    /// Measures.
    ///
    /// # Errors
    /// When a program fails or what it reports can't be right. A missing program or server is a
    /// line that says so.
    pub(crate) fn lines(&self, bench: &Bench) -> Result<Vec<Line>, String> {
        let peer = match self.subject {
            Subject::Cpu { peer, .. } => peer,
            _ => Who::Sysbench,
        };
        if let Err(why) = bench.programs.find(peer) {
            return Ok(vec![Line::skipped(&self.name, &why)]);
        }
        match &self.subject {
            Subject::Cpu { way, load, peer, bar } => self.cpu(bench, *way, load, *peer, *bar),
            Subject::Memory { workers } => self.memory(bench, *workers),
            Subject::OpenLoop => self.open_loop(bench),
            Subject::PrepareNull => self.prepare_null(bench),
            Subject::MariaDb { test } => mariadb::run_test(bench, &self.name, test),
            Subject::PrepareMariaDb => mariadb::prepare(bench, &self.name),
        }
    }

    fn cpu(
        &self,
        bench: &Bench,
        way: NullWay,
        load: &Load,
        peer: Who,
        bar: Bar,
    ) -> Result<Vec<Line>, String> {
        let pairs = bench.pairs(&self.name, peer, |who| {
            bench.steady(|seconds| Ok(bench.on_null(who, way, load, seconds)?.0))
        })?;
        Ok(steady_lines(&self.name, load, peer, &pairs, bar))
    }

    fn memory(&self, bench: &Bench, workers: u32) -> Result<Vec<Line>, String> {
        let load = Load::closed("oltp_point_select", workers);
        let pairs = bench.pairs(&self.name, Who::Sysbench, |who| {
            let (_, ended) =
                bench.on_null(who, NullWay::MysqlSocket, &load, bench.short_seconds)?;
            Ok(ended.peak_kib as f64 / 1024.0)
        })?;
        let what = format!("{}: resident memory, {workers} connections, MiB", self.name);
        Ok(vec![Line::of_pairs(what, &pairs, Bar::Value(60.0))])
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
}

/// The options of `prepare`.
pub(crate) fn loading() -> Load {
    let load = Load::closed("oltp_point_select", LOAD_TABLES);
    Load { tables: LOAD_TABLES, loops: 0, ..load }
}

/// Lines about throughput and CPU in the steady state.
pub(crate) fn steady_lines(
    name: &str,
    load: &Load,
    peer: Who,
    pairs: &[(Steady, Steady)],
    bar: Bar,
) -> Vec<Line> {
    let peer = format!("{peer:?}").to_lowercase();
    let what =
        |text| format!("{name}: {}, {} connections, {peer}, {text}", load.test, load.workers);
    let cpu = pairs.iter().map(|(a, b)| (a.cpu_us_per_statement, b.cpu_us_per_statement));
    let rate = pairs.iter().map(|(a, b)| (a.statements_per_s, b.statements_per_s));
    vec![
        Line::of_pairs(what("client CPU us/query"), &cpu.collect::<Vec<_>>(), bar),
        Line::of_pairs(what("queries/s"), &rate.collect::<Vec<_>>(), Bar::None),
    ]
}

/// What a `prepare` took.
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

/// Lines about loading.
pub(crate) fn prepare_lines(name: &str, pairs: &[(Loading, Loading)], rate: Bar) -> Vec<Line> {
    let what = |text| {
        format!("{name}: {LOAD_TABLES} tables of {TABLE_ROWS} rows, {LOAD_TABLES} threads, {text}")
    };
    let rows: Vec<_> = pairs.iter().map(|(a, b)| (a.rows_per_s, b.rows_per_s)).collect();
    let cpu: Vec<_> = pairs.iter().map(|(a, b)| (a.cpu_us_per_row, b.cpu_us_per_row)).collect();
    vec![
        Line::of_pairs(what("rows/s"), &rows, rate),
        Line::of_pairs(what("client CPU us/row"), &cpu, Bar::Value(0.5)),
    ]
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
