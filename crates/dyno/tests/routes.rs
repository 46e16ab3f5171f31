//! `dyno run` on clusters of real servers: what the servers themselves counted on each node.

use dyno_core::{DbError, Driver, Session, Table};
use dyno_drivers::Target;
use dyno_drivers::mysql::MysqlDriver;
use dyno_drivers::postgres::PostgresDriver;
use dyno_tests::{Scratch, dyno, english_in_chinese_paper, only_run, peer, skipped};
use dyno_topology::{Cluster, Replication, Request, Silent, TopologyKind};
use serde_json::Value;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// A cluster that is taken down at the end, whatever becomes of the test.
struct Made {
    cluster: Cluster,
    folder: PathBuf,
}

impl Drop for Made {
    fn drop(&mut self) {
        let down = Cluster::down(&self.folder);
        assert!(down.is_ok() || std::thread::panicking(), "the cluster stays: {down:?}");
    }
}

impl Made {
    /// A primary, which is `n1`, and two read-only nodes.
    fn up(scratch: &Scratch, topology: TopologyKind) -> Made {
        let folder = scratch.file("cluster");
        let replication = Replication::Async;
        let request = Request { replicas: 2, replication, ..Request::new(&folder, topology) };
        let cluster = Cluster::up(&request, &mut Silent).expect("a cluster");
        Made { cluster, folder }
    }

    /// Asks a node, by its number from 1.
    fn ask(&self, node: usize, sql: &str) -> Result<u64, DbError> {
        let url = self.cluster.node_url(&format!("n{node}")).expect("a node");
        let target: Target = url.parse().expect("a URL");
        match self.cluster.state().topology {
            TopologyKind::Postgres => asked(&PostgresDriver::new(&target)?, sql),
            _ => asked(&MysqlDriver::new(&target)?, sql),
        }
    }

    /// How many reads of the table each node has executed since it began.
    fn reads(&self) -> [u64; 3] {
        let sql = match self.cluster.state().topology {
            TopologyKind::Postgres => {
                "SELECT coalesce(sum(idx_scan), 0) FROM pg_stat_user_tables WHERE relname = 'sbtest1'"
            }
            _ => {
                "SELECT variable_value FROM information_schema.global_status \
                 WHERE variable_name = 'Com_select'"
            }
        };
        [1, 2, 3].map(|node| self.ask(node, sql).expect("a count"))
    }

    /// Waits until the read-only nodes have all rows.
    fn has_caught_up(&self, rows: u64) {
        let since = Instant::now();
        let count = "SELECT count(*) FROM sbtest1";
        while [2, 3].iter().any(|node| self.ask(*node, count).ok() != Some(rows)) {
            assert!(since.elapsed() < Duration::from_secs(60), "the replicas lag");
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

fn asked<D: Driver>(driver: &D, sql: &str) -> Result<u64, DbError> {
    let asked = dyno_reactor::block_on(async {
        let mut session = driver.connect(0).await?;
        let mut table = Table::default();
        session.query(sql, &mut table).await?;
        session.close().await;
        Ok(table.single().and_then(|text| text.parse().ok()).expect("a number"))
    });
    asked.expect("a loop")
}

const ROWS: u64 = 1_000;

/// Runs one experiment, and says how many reads it has made on each node.
fn measured(scratch: &Scratch, made: &Made, route: &str, experiment: &str) -> ([u64; 3], Value) {
    let text = format!(
        "[suite]\nname = \"routes\"\nsample_servers = false\n[target.main]\nroute = \"{route}\"\n\
         [[experiment]]\nname = \"a\"\nworkload = \"sysbench\"\nthreads = 4\n{experiment}\n"
    );
    std::fs::write(scratch.file("routes.toml"), text).expect("written");
    let runs = scratch.file("runs");
    let _ = std::fs::remove_dir_all(&runs);
    let target = format!("main=cluster:{}", made.folder.display());
    let before = made.reads();
    let ran = dyno(scratch.path(), &["run", "routes.toml", "--dir", "runs", "--target", &target]);
    assert_eq!(ran.code, 0, "{experiment}\n{}", ran.all());
    // PostgreSQL counts a session's work when its process ends.
    std::thread::sleep(Duration::from_secs(1));
    let after = made.reads();
    let header = only_run(&runs).expect("a run").join("run.json");
    let header = std::fs::read_to_string(header).expect("a header");
    let password = made.cluster.account().expect("an account").password;
    assert!(!ran.all().contains(&password) && !header.contains(&password), "a password is shown");
    ([0, 1, 2].map(|node| after[node] - before[node]), serde_json::from_str(&header).expect("JSON"))
}

/// An experiment on the data that are there.
fn of(test: &str, events: u64, options: &str) -> String {
    format!(
        "test = \"{test}\"\nevents = {events}\nprepare = false\ncleanup = false\n\
         options = {{ tables = 1, table_size = {ROWS}{options} }}"
    )
}

fn the_servers_count_what_each_route_says(test: &str, topology: TopologyKind) {
    let scratch = Scratch::new();
    let made = Made::up(&scratch, topology);
    let load = of("oltp_point_select", 500, "").replace("prepare = false", "prepare = true");
    let (reads, header) = measured(&scratch, &made, "primary", &load);
    assert!(reads[0] >= 500, "{test}: {reads:?}");
    made.has_caught_up(ROWS);
    let target = &header["targets"][0];
    let nodes: Vec<(&str, &str)> = (0..3)
        .map(|node| &target["nodes"][node])
        .map(|node| (node["name"].as_str().unwrap_or(""), node["role"].as_str().unwrap_or("")))
        .collect();
    assert_eq!(nodes, [("n1", "primary"), ("n2", "read_only"), ("n3", "read_only")]);
    assert_eq!((&target["route"], &target["same_host"]), (&"primary".into(), &true.into()));

    // What dyno asks before and after a trial is far less than the trial itself.
    let few = |reads: u64| reads < 300;
    for mode in ["auto", "disable"] {
        let option = format!(", db_ps_mode = \"{mode}\"");
        let (reads, _) =
            measured(&scratch, &made, "spread", &of("oltp_point_select", 4_000, &option));
        assert!(few(reads[0]), "{test}: spread, {mode}: {reads:?}");
        assert!(reads[1].min(reads[2]) >= 500, "{test}: spread, {mode}: {reads:?}");
        assert!(reads[1] + reads[2] >= 4_000, "{test}: spread, {mode}: {reads:?}");

        // Transactions stay on the primary ...
        let (reads, _) = measured(&scratch, &made, "split", &of("oltp_read_write", 200, &option));
        assert!(few(reads[1]) && few(reads[2]), "{test}: transactions, {mode}: {reads:?}");
        // ... and without them, the 14 reads of each event go to the read-only nodes.
        let option = format!("{option}, skip_trx = true");
        let (reads, _) = measured(&scratch, &made, "split", &of("oltp_read_write", 200, &option));
        let sum = reads[1] + reads[2];
        assert!(sum >= 14 * 200, "{test}: split, {mode}: {reads:?}");
        assert!(reads[1].min(reads[2]) >= 14 * 20, "{test}: split, {mode}: {reads:?}");
    }

    // Each number of read-only nodes is a target of its own, on the same data.
    let series = format!("{}\nread_only = [1, 2, 8]", of("oltp_point_select", 4_000, ""));
    let (reads, header) = measured(&scratch, &made, "spread", &series);
    let run = only_run(&scratch.file("runs")).expect("a run");
    assert_eq!(english_in_chinese_paper(scratch.path(), &run), Vec::<String>::new());
    assert!(few(reads[0] / 2), "{test}: series: {reads:?}");
    assert!(reads[1] >= 4_500 && (500..4_000).contains(&reads[2]), "{test}: series: {reads:?}");
    let parts: Vec<(&str, &str, usize)> = header["targets"]
        .as_array()
        .expect("targets")
        .iter()
        .map(|target| {
            let text = |key: &str| target[key].as_str().unwrap_or("");
            (text("name"), text("part_of"), target["nodes"].as_array().map_or(0, Vec::len))
        })
        .collect();
    assert_eq!(parts, [("main", "", 3), ("main-ro1", "main", 2), ("main-ro2", "main", 3)]);
}

#[test]
fn mariadb_counts_what_each_route_says() {
    let test = "mariadb_counts_what_each_route_says";
    if peer("mariadbd").is_none() {
        return skipped(test, "MariaDB is not installed");
    }
    the_servers_count_what_each_route_says(test, TopologyKind::Mariadb);
}

#[test]
fn postgres_counts_what_each_route_says() {
    let test = "postgres_counts_what_each_route_says";
    if !std::path::Path::new("/usr/lib/postgresql").exists() && peer("postgres").is_none() {
        return skipped(test, "PostgreSQL is not installed");
    }
    the_servers_count_what_each_route_says(test, TopologyKind::Postgres);
}
