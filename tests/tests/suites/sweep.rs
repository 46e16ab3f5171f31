//! No false E: each bundled suite and each front end, as small as they get, on plain servers and on local clusters. A
//! finding that says a trial is not usable would be false, and so would be a failure.
//!
//! Ignored, as it takes minutes for each server: `cargo test -p dyno-tests --test suites -- --ignored sweep
//! --nocapture`. `DYNO_SWEEP_ONLY=dyno` sweeps those whose names begin with this.

#![expect(clippy::print_stdout, reason = "a sweep prints what it finds")]

use dyno_testkit::{
    MariaDb, MySql, Postgres, ProcessOutput, Scratch, dyno, only_run, server_or_skip, skipped,
};
use dyno_topology::{Cluster, Replication, Request, TopologyKind};
use serde_json::Value;
use std::any::Any;
use std::fs;
use std::path::Path;
use std::time::Instant;

/// Checks that find pauses of the machine, not faults of dyno: a disturbed case is repeated.
const MACHINE_CHECKS: [&str; 2] = ["generator-stopped", "suspended"];
const ATTEMPTS: u32 = 4;

/// The least that a suite's `--shrink` allows; a fault needs time to be recovered from.
const SHRINK: &str = "0.0001";
const SHRINK_WITH_FAULT: &str = "0.05";
/// The size that the suite names for a rehearsal: with fewer rows its writers wait for each other's deadlocks, which
/// takes PostgreSQL longer than a trial lasts.
const SHRINK_WITH_WRITERS: &str = "0.001";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ServerKind {
    MariaDb,
    MySql,
    Postgres,
}

/// A server or a cluster.
struct Place {
    kind: ServerKind,
    is_cluster: bool,
    /// As a suite's target.
    target: String,
    /// URL of the server that takes writes: `scheme://user:password@host:port/database`.
    url: String,
    /// Lives as long as the place.
    _server: Box<dyn Any>,
}

/// A cluster, taken down when it is dropped.
struct Up(Scratch);

impl Drop for Up {
    fn drop(&mut self) {
        let _ = Cluster::down(&self.0.file("c"));
    }
}

impl Place {
    fn plain(kind: ServerKind) -> Result<Self, String> {
        let (url, server): (String, Box<dyn Any>) = match kind {
            ServerKind::MariaDb => MariaDb::start().map(|it| (it.url(), Box::new(it) as _))?,
            ServerKind::MySql => MySql::start().map(|it| (it.url(), Box::new(it) as _))?,
            ServerKind::Postgres => Postgres::start().map(|it| (it.url(), Box::new(it) as _))?,
        };
        Ok(Place { kind, is_cluster: false, target: url.clone(), url, _server: server })
    }

    /// A primary with two read-only nodes, one of which has each commit before it is acknowledged.
    fn cluster(kind: ServerKind) -> Result<Self, String> {
        let (topology, replication, settings): (_, _, &[(&str, &str)]) = match kind {
            // The time-out is that of the suite `failover`.
            ServerKind::MariaDb => (
                TopologyKind::Mariadb,
                Replication::SemiSync,
                &[("innodb_buffer_pool_size", "64M"), ("rpl_semi_sync_master_timeout", "3600000")],
            ),
            ServerKind::MySql => {
                let settings = &[("innodb_buffer_pool_size", "64M")];
                (TopologyKind::Mysql, Replication::SemiSync, settings)
            }
            ServerKind::Postgres => {
                (TopologyKind::Postgres, Replication::Quorum, &[("shared_buffers", "64MB")])
            }
        };
        let up = Up(Scratch::new());
        let mut request = Request::new(up.0.file("c"), topology);
        (request.replicas, request.replication) = (2, replication);
        let owned_settings =
            settings.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        request.settings.extend(owned_settings);
        if kind == ServerKind::MySql {
            request.software = Some(MySql::folder()?);
        }
        let cluster = match Cluster::up(&request, &mut |_| ()) {
            Ok(cluster) => cluster,
            Err(error) if error.message.contains("not installed") => return Err(error.to_string()),
            Err(error) => panic!("{error}"),
        };
        let target = format!("cluster:{}", up.0.file("c").display());
        let url = cluster.node_url("n1").expect("a primary");
        Ok(Place { kind, is_cluster: true, target, url, _server: Box::new(up) })
    }

    /// User, password, host, port and database.
    fn parts(&self) -> [&str; 5] {
        let authority = self.url.split_once("://").expect("a scheme").1;
        let (account, address) = authority.split_once('@').expect("an account");
        let (user, password) = account.split_once(':').unwrap_or((account, ""));
        let (host, port_and_database) = address.split_once(':').expect("a port");
        let (port, database) = port_and_database.split_once('/').expect("a database");
        [user, password, host, port, database]
    }

    fn suites(&self) -> Vec<Case> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../suites");
        let files = fs::read_dir(folder).expect("the suites").map(|entry| entry.expect("a file"));
        let names = files
            .filter_map(|file| Some(file.file_name().to_str()?.strip_suffix(".toml")?.to_owned()));
        let mut names: Vec<String> = names.collect();
        names.sort();
        names.into_iter().filter_map(|name| self.suite(name)).collect()
    }

    /// A run of a suite with the targets that fit; one that isn't named here has any target.
    fn suite(&self, name: String) -> Option<Case> {
        let targets: Result<&[&str], &str> = match (name.as_str(), self.is_cluster) {
            ("quickstart", _) => Err("its SQLite is its own, and a sweep by itself"),
            ("failover", false) => Err("it kills a node of a cluster"),
            ("failover", true) if self.kind == ServerKind::Postgres => Ok(&["quorum"]),
            ("failover", true) => Ok(&["semi-sync"]),
            ("polardb-2018", false) => Ok(&["cluster"]),
            ("polardb-2018", true) => Ok(&["cluster", "nodes"]),
            ("polardb-mysql-oltp", false) => Ok(&["main", "polardb-8-0"]),
            ("polardb-mysql-oltp", true) => Ok(&["main", "rds-8-0"]),
            ("polardb-mysql-scaleout", false) => Ok(&["v8-0-n1"]),
            ("polardb-mysql-scaleout", true) => Ok(&["cluster"]),
            ("polardb-mysql-tpch", _) => Ok(&["other"]),
            // Its other targets are shards.
            ("polardb-x-tpcc", _) => Ok(&["other"]),
            ("polardb-oracle-pgbench", _) => Ok(&["x4-medium"]),
            _ => Ok(&["main"]),
        };
        match targets {
            Ok(targets) => Some(run_case(name, targets, &self.target)),
            Err(why) => {
                println!("{name} is left out: {why}");
                None
            }
        }
    }

    fn front_ends(&self) -> Vec<Case> {
        let url = self.url.as_str();
        let [user, password, host, port, database] = self.parts();
        let (driver, db) = match self.kind {
            ServerKind::Postgres => ("pgsql", "postgres"),
            _ => ("mysql", "mysql"),
        };
        let sysbench = format!(
            "sysbench --db-driver={driver} --{driver}-host={host} --{driver}-port={port} --{driver}-user={user} \
             --{driver}-password={password} --{driver}-db={database} --table-size=1000 --threads=2 --time=1 oltp_read_write"
        );
        let properties = format!(
            "db={db}\nconn={db}://{host}:{port}/{database}\nuser={user}\npassword={password}\nwarehouses=1\n\
             loadWorkers=2\nterminals=2\nrunTxnsPerTerminal=100\nrunMins=0\nlimitTxnsPerMin=0\n\
             terminalWarehouseFixed=true\nnewOrderWeight=45\npaymentWeight=43\norderStatusWeight=4\n\
             deliveryWeight=4\nstockLevelWeight=4\n"
        );
        let tpch = format!("--scale 0.01 --target {url}");
        let case = |name: &str, lines: &[String]| Case {
            name: format!("dyno {name}"),
            lines: lines.to_vec(),
            properties: properties.clone(),
        };
        vec![
            case(
                "sysbench",
                &["prepare", "run --paper", "cleanup"].map(|it| format!("{sysbench} {it}")),
            ),
            case(
                "pgbench",
                &["-i -q", "-c 2 -T 1 --paper", "-i -I d"]
                    .map(|it| format!("pgbench {it} --target {url}")),
            ),
            case(
                "benchmarksql",
                &["build", "run", "destroy"].map(|it| format!("benchmarksql {it} props")),
            ),
            case(
                "tpch",
                &[
                    format!("tpch load {tpch}"),
                    format!("tpch run {tpch}"),
                    format!("tpch drop --target {url}"),
                ],
            ),
            case("bench", &[format!("bench {url} --yes --budget 60s")]),
        ]
    }
}

/// A suite on the same database by the name of each of these targets.
fn run_case(name: String, targets: &[&str], url: &str) -> Case {
    let shrink = match name.as_str() {
        "failover" => SHRINK_WITH_FAULT,
        "polardb-mysql-oltp" => SHRINK_WITH_WRITERS,
        _ => SHRINK,
    };
    let targets = targets.iter().map(|target| format!(" --target {target}={url}"));
    let line =
        format!("run {name} --shrink {shrink} --max-workers 4{}", targets.collect::<String>());
    Case { name, lines: vec![line], properties: String::new() }
}

/// Command lines of dyno that are executed one after the other.
struct Case {
    name: String,
    lines: Vec<String>,
    /// Text of the file `props`.
    properties: String,
}

impl Case {
    /// Returns what is wrong; prints what was found.
    fn sweep(&self, place: &str) -> Option<String> {
        for attempt in 1.. {
            let (folder, begun) = (Scratch::new(), Instant::now());
            fs::write(folder.file("props"), &self.properties).expect("a file");
            let output: Vec<ProcessOutput> = self
                .lines
                .iter()
                .map(|line| dyno(folder.path(), &line.split(' ').collect::<Vec<_>>()))
                .collect();
            let [errors, caveats] = ["E", "W"].map(|level| findings(&folder, level));
            let failed = output.iter().find(|output| ![0, 3].contains(&output.code));
            let ids: Vec<&str> = caveats.iter().map(|(id, _)| id.as_str()).collect();
            println!(
                "{} on {place}: {:.0} s, E {errors:?}, W {}",
                self.name,
                begun.elapsed().as_secs_f64(),
                ids.join(" ")
            );
            let is_machine_check =
                |(id, _): &(String, String)| MACHINE_CHECKS.contains(&id.as_str());
            if failed.is_none() && errors.is_empty() {
                break;
            }
            if failed.is_some() || attempt == ATTEMPTS || !errors.iter().all(is_machine_check) {
                let output = failed.map(ProcessOutput::to_string).unwrap_or_default();
                return Some(format!("{} on {place}: {errors:?}\n{output}", self.name));
            }
        }
        None
    }
}

/// The checks of a level that found something in the run of this folder, and what they found.
fn findings(folder: &Scratch, level: &str) -> Vec<(String, String)> {
    let Some(run) = only_run(&folder.file("dyno-runs")) else { return Vec::new() };
    let Ok(text) = fs::read_to_string(run.join("paper.json")) else { return Vec::new() };
    let paper: Value = serde_json::from_str(&text).expect("JSON");
    let checks = paper["checks"].as_array().expect("checks").iter();
    let firing = checks.filter(|check| {
        check["level"] == level && check["findings"].as_array().is_some_and(|all| !all.is_empty())
    });
    firing
        .map(|check| {
            (check["id"].as_str().expect("an id").to_owned(), check["findings"].to_string())
        })
        .collect()
}

fn sweep(place: &str, cases: &[Case]) {
    let only = std::env::var("DYNO_SWEEP_ONLY").unwrap_or_default();
    let cases = cases.iter().filter(|case| case.name.starts_with(&only));
    let wrong: Vec<String> = cases.filter_map(|case| case.sweep(place)).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

fn sweep_all(test: &str, place: Result<Place, String>) {
    match place {
        Ok(place) => {
            let cases: Vec<Case> = place.suites().into_iter().chain(place.front_ends()).collect();
            sweep(test, &cases);
        }
        Err(why) => skipped(test, &why),
    }
}

/// A sweep for each of these places.
macro_rules! sweeps {
    ($($name:ident: $place:expr,)+) => {
        $(
            #[test]
            #[ignore = "takes minutes"]
            fn $name() {
                sweep_all(stringify!($name), $place);
            }
        )+
    };
}

sweeps! {
    sweep_of_mariadb: Place::plain(ServerKind::MariaDb),
    sweep_of_mysql: Place::plain(ServerKind::MySql),
    sweep_of_postgres: Place::plain(ServerKind::Postgres),
    sweep_of_a_mariadb_cluster: Place::cluster(ServerKind::MariaDb),
    sweep_of_a_mysql_cluster: Place::cluster(ServerKind::MySql),
    sweep_of_a_postgres_cluster: Place::cluster(ServerKind::Postgres),
}

#[test]
#[ignore = "takes a minute"]
fn sweep_of_quickstart() {
    sweep("SQLite", &[run_case("quickstart".to_owned(), &[], "")]);
}

/// PostgreSQL refuses the second of two workers that replace the same row. sysbench repeats such an event.
#[test]
fn events_that_replace_the_same_row_are_repeated() {
    let server = server_or_skip!(Postgres, "events_that_replace_the_same_row_are_repeated");
    let script = "function thread_init() con = sysbench.sql.driver():connect() end\n\
                  function event()\n  local id = sysbench.rand.uniform(1, 50)\n  con:query('BEGIN')\n\
                  con:query('DELETE FROM sbtest1 WHERE id = ' .. id)\n\
                  con:query('INSERT INTO sbtest1 (id, k, c, pad) VALUES (' .. id .. ', 1, 1, 1)')\n\
                  con:query('COMMIT')\nend\n";
    for (workload, load) in [
        (
            "sysbench",
            "test = \"oltp_write_only\"\noptions = { table_size = 100, rand_type = \"uniform\" }",
        ),
        ("lua", "script = \"replace.lua\"\nprepare = false"),
    ] {
        let folder = Scratch::new();
        fs::write(folder.file("replace.lua"), script).expect("a script");
        let text = format!(
            "[suite]\nname = \"s\"\n[[experiment]]\nname = \"e\"\nworkload = \"{workload}\"\n{load}\n\
             cleanup = false\nworkers = 4\nevents = 4000\n"
        );
        fs::write(folder.file("s.toml"), text).expect("a suite");
        let target = format!("main={}", server.url());
        let output = dyno(folder.path(), &["run", "s.toml", "--target", &target]).good();
        let run = only_run(&folder.file("dyno-runs")).expect("a run");
        let trial = &dyno_store::read(&run).expect("it can be read").trials[0].summary;
        let has_conflicts = trial.errors.iter().any(|error| error.sqlstate == "23505");
        assert!(has_conflicts && trial.counts.failed == 0, "{:?}\n{output}", trial.errors);
    }
}
