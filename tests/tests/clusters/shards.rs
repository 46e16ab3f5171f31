//! Clusters whose nodes hold a part of the data each: TPC-C over them, and the coordinator of `sharded-postgres`.

use crate::mine::{Mine, up};
use crate::verbs::assert_nothing_is_left;
use dyno_testkit::{RunningDyno, commits, dyno, only_run};
use dyno_topology::{Cluster, Health, TopologyKind};
use rustix::process::Signal;
use serde_json::Value;
use std::path::{Path, PathBuf};

pub(crate) fn only_trial(folder: &Path) -> Value {
    let runs = std::fs::read_dir(folder.join("dyno-runs")).expect("runs");
    let runs: Vec<PathBuf> =
        runs.flatten().map(|entry| entry.path()).filter(|p| p.is_dir()).collect();
    assert_eq!(runs.len(), 1, "{runs:?}");
    let text = std::fs::read(runs[0].join("trials/1.json")).expect("a trial");
    serde_json::from_slice(&text).expect("JSON")
}

const SUITE: &str = r#"
[suite]
name = "sharded"

[target.main]

[[experiment]]
name = "orders"
workload = "tpcc"
test = "bmsql-5.0"
terminals = 4
warmup_s = 1
duration_s = 8
cleanup = false

[experiment.options]
warehouses = 2
load_workers = 2
"#;

/// Loads two warehouses, runs TPC-C and has it checked. Returns the names of the shards.
pub(crate) fn tpcc_is_consistent(mine: &Mine) -> Vec<String> {
    std::fs::write(mine.scratch.path().join("sharded.toml"), SUITE).expect("a file");
    let output = mine.dyno(&["run", "sharded.toml", "--target", &format!("main={}", mine.url())]);
    assert!(output.stderr.contains("No warehouse lies on n1, n4"), "{output}");
    let trial = only_trial(mine.scratch.path());
    assert_eq!(trial["status"], "complete", "{trial}");
    assert!(trial["counts"]["committed"].as_u64() > Some(0), "{}", trial["counts"]);
    let checks = trial["checks"].as_array().expect("a list");
    for name in
        ["books", "audit", "conditions", "shard-placement", "shard-conditions", "across-shards"]
    {
        let check = checks.iter().find(|check| check["name"] == name).expect("the check");
        assert_eq!(check["verdict"], "passed", "{check}");
    }
    // Both warehouses lie on shards of their own: all that is remote crosses them.
    let share = trial["own"]["facts"]["crossing_share"].as_f64();
    assert!(share.is_some_and(|share| (0.05..0.25).contains(&share)), "{share:?}");
    let conditions = trial["own"]["facts"]["conditions"].as_array().expect("a list");
    for line in conditions.iter().filter(|line| line["id"] != "C11") {
        assert_eq!(line["after"]["verdict"], "passed", "{line}");
    }
    let nodes = mine.cluster.nodes().iter().filter(|node| node.role == "shard");
    let shards: Vec<String> = nodes.map(|node| node.name.clone()).collect();
    assert_eq!(shards.len(), 4);
    shards
}

/// Kills a shard in the middle of a trial on the two warehouses that are there, and starts it again: what the ledger
/// says of transactions on several shards is what the shards' own counters say.
pub(crate) fn the_ledger_is_exact_after_a_shard_was_killed(mine: &Mine) {
    let fault =
        "[experiment.fault]\naction = \"kill\"\nnode = \"n2\"\nat_s = 3\nheal_after_s = 2\n";
    let suite = SUITE.replace("terminals = 4", "terminals = 16");
    let folder = mine.scratch.file("killed");
    std::fs::create_dir(&folder).expect("a folder");
    std::fs::write(folder.join("killed.toml"), format!("{suite}{fault}")).expect("a file");
    let target = format!("main={}", mine.url());
    let sum_of_shards = |sql: &str| -> i64 {
        ["n1", "n2", "n3", "n4"].iter().map(|node| mine.sql(node, sql).parse().unwrap_or(0)).sum()
    };
    let count_delivered = || {
        sum_of_shards("SELECT sum(d_next_o_id) FROM bmsql_district")
            - sum_of_shards("SELECT count(*) FROM bmsql_new_order")
    };
    let delivered_before = count_delivered();
    let output = dyno(&folder, &["run", "killed.toml", "--target", &target]);
    assert!(output.stderr.contains("already loaded: 2 warehouses"), "{output}");
    let trial = only_trial(&folder);
    let (fault, losses) = (&trial["fault"], &trial["fault"]["across_shards"]);
    // ShardingSphere-Proxy may answer with no row where a shard is away: a trial ends with that.
    let status = trial["status"].to_string();
    let is_untrue = status.contains("is not in the database as it was loaded");
    assert!(status == "\"complete\"" || is_untrue, "{trial}\n{output}");
    assert!(fault["steps"].to_string().contains("n2"), "{fault}");
    let get_count =
        |value: &Value, key: &str| value[key].as_u64().unwrap_or_else(|| panic!("{key}: {value}"));
    // Others than the shard's own terminals may continue; its own can't before it answers.
    assert!(fault["shard"].is_object(), "{fault}");
    let get_seconds = |key: &str| fault[key].as_f64().unwrap_or_else(|| panic!("{key}: {fault}"));
    assert!(get_seconds("heal_asked_at_s") <= get_seconds("healed_at_s"), "{fault}");
    let away_s =
        get_seconds("heal_asked_at_s") - get_seconds("at_s") - 2.0 * get_seconds("resolution_s");
    let own_s = fault["shard"]["first_success_after_s"].as_f64();
    let before = fault["shard"]["per_s_before"].as_f64().unwrap_or(0.0);
    // What chance explains is not an outage, and a trial that ended with the fault has seen none.
    let is_rare = is_untrue || before * away_s < 12.0;
    assert!(is_rare || own_s.is_none_or(|own_s| own_s >= away_s), "{fault}");
    assert!(
        get_count(fault, "acknowledged") > 0 && get_count(losses, "acknowledged") > 0,
        "{fault}"
    );
    assert!(get_count(losses, "in_doubt") <= get_count(losses, "branches_left"), "{losses}");
    // A payment moves the counter of its customer and writes a row of the history at home.
    let payments = sum_of_shards("SELECT sum(c_payment_cnt) FROM bmsql_customer");
    let written = sum_of_shards("SELECT count(*) FROM bmsql_history");
    let torn = get_count(losses, "half_done")
        + get_count(losses, "unknown_half_done")
        + get_count(losses, "in_doubt");
    assert!(payments.abs_diff(written) <= torn, "{payments} : {written}: {losses}");
    let checks = trial["checks"].as_array().expect("a list");
    let find_check =
        |name: &str| checks.iter().find(|check| check["name"] == name).expect("the check");
    // What the books lack is counted: also what was lost on a single shard. The proxy may commit a Delivery that it has
    // failed: then the shards hold what the books say.
    let books = find_check("books");
    let is_lost = torn + get_count(fault, "lost") > 0;
    let reports_delivered = || {
        let lines = books["evidence"]["joined"].as_array().expect("a list");
        let delivered = (count_delivered() - delivered_before).to_string();
        lines.iter().all(|line| line["args"]["what"]["key"] == "tpcc.books_delivered")
            && lines.iter().all(|line| line["args"]["found"] == delivered)
    };
    assert!(is_lost || books["verdict"] == "passed" || reports_delivered(), "{books} {trial}");
    let check = find_check("across-shards");
    let is_whole = torn + get_count(losses, "lost") == 0;
    assert_eq!(check["verdict"], if is_whole { "passed" } else { "failed" }, "{check}");
    let paper = std::fs::read_dir(folder.join("dyno-runs")).expect("runs").flatten();
    let paper = paper
        .map(|run| run.path().join("paper.md"))
        .find(|paper| paper.is_file())
        .expect("a paper");
    let paper = std::fs::read_to_string(paper).expect("a paper");
    assert!(paper.contains("whose rows lie on several shards"), "{paper}");
    assert!(is_whole || paper.contains("half done"), "{paper}");
}

#[test]
fn tpcc_over_four_postgres_shards_is_consistent_and_its_ledger_exact_after_a_kill() {
    let test = "tpcc_over_four_postgres_shards_is_consistent_and_its_ledger_exact_after_a_kill";
    let Some(mut mine) = up(test, TopologyKind::ShardedPostgres, |_| ()) else { return };
    let shards = tpcc_is_consistent(&mine);
    let trial = only_trial(mine.scratch.path());
    assert!(trial["notes"].to_string().contains("shards_without_warehouses"), "{trial}");
    let rows_written = |node: &str| trial["conditions"]["nodes"][node]["rows_written"].as_u64();
    assert!(rows_written("n2") > Some(0) && rows_written("n3") > Some(0), "{trial}");
    let count_rows = |table: &str| mine.count_rows(&shards, table);
    assert_eq!(count_rows("bmsql_warehouse"), [0, 1, 1, 0]);
    assert_eq!(count_rows("bmsql_stock"), [0, 100_000, 100_000, 0]);
    // Keys are the shards'.
    let keys = "SELECT count(*) FROM pg_constraint WHERE contype = 'p' AND conrelid::regclass::text LIKE 'bmsql_%'";
    assert_eq!(mine.number("n2", keys), 8);
    let printed = mine.dyno(&["check", &mine.node_url("endpoint")]).stdout;
    assert!(printed.contains("C12"), "{printed}");
    another_number_of_shards_is_refused(&mine);
    a_stop_in_the_checks_owes_a_look_at_the_ledger(&mine);
    a_shard_that_died_before_a_trial_is_named(&mut mine);
    the_ledger_is_exact_after_a_shard_was_killed(&mine);
}

/// A target that stands for two shards is not measured on four.
fn another_number_of_shards_is_refused(mine: &Mine) {
    let target = format!("shards-2={}", mine.url());
    let output = dyno(mine.scratch.path(), &["run", "polardb-x-tpcc", "--target", &target]);
    assert_eq!(output.code, 2, "{output}");
    let message = "The target `shards-2` represents 2 shards, and what was given has 4.";
    assert!(output.stderr.contains(message), "{output}");
    let up = ["cluster", "up", "sharded-postgres", "--transactions", "xa", "--dir", "another"];
    let output = dyno(mine.scratch.path(), &up);
    assert_eq!(output.code, 2, "{output}");
    assert!(output.stderr.contains("it has no XA"), "{output}");
}

/// The trial stays as it was measured, and the next run of the same command holds its ledger against the shards.
fn a_stop_in_the_checks_owes_a_look_at_the_ledger(mine: &Mine) {
    let folder = mine.scratch.file("stopped");
    std::fs::create_dir(&folder).expect("a folder");
    let suite = SUITE.replace("duration_s = 8", "duration_s = 3");
    std::fs::write(folder.join("stopped.toml"), suite).expect("a file");
    let run = ["run", "stopped.toml", "--target", &format!("main={}", mine.url())];
    let mut running = RunningDyno::start(&folder, &run);
    let runs = folder.join("dyno-runs");
    running.wait_until("the end of the window", |_| {
        only_run(&runs).is_some_and(|run| commits(&run, 1).len() >= 3)
    });
    running.signal(Signal::INT);
    let stopped = running.end();
    assert_eq!(stopped.code, 130, "{stopped}");
    let trial = only_trial(&folder);
    assert_eq!(trial["status"], "complete", "{trial}");
    assert!(trial["checks"].to_string().contains("not_made"), "{trial}");
    let output = dyno(&folder, &run);
    assert_eq!(output.code, 0, "{output}");
    let ledger_line = "acknowledged and no one had checked (trials/1.ledger): acknowledged ";
    let ledger_line =
        output.stderr.lines().find(|line| line.contains(ledger_line)).unwrap_or_default();
    assert!(ledger_line.contains(", lost 0. "), "{ledger_line}: {output}");
    assert!(!only_run(&runs).expect("a run").join("trials/2.json").exists(), "{output}");
}

/// Also where it died while the data were being checked, or their sessions opened.
fn a_shard_that_died_before_a_trial_is_named(mine: &mut Mine) {
    let folder = mine.scratch.path().to_owned();
    let run = ["run", "sharded.toml", "--target", &format!("main={}", mine.url())];
    let mut running = RunningDyno::start(&folder, &run);
    running.wait_until("the data", |running| running.stderr().contains("prepare orders on main: "));
    mine.cluster.kill("n2").expect("it runs");
    let output = running.end();
    assert_eq!(output.code, 1, "{output}");
    assert!(output.stderr.contains("n2 (PostgreSQL) is dead; its log "), "{output}");
    mine.cluster.start("n2").expect("it starts again");
}

/// The names of the shards that a query's plan reads.
fn read_by_plan(mine: &Mine, sql: &str) -> Vec<String> {
    let plan = mine.try_sql("endpoint", &format!("EXPLAIN (VERBOSE) {sql}")).expect("a plan");
    let lines = plan.rows.iter().filter_map(|row| row.first().cloned().flatten());
    let scans =
        lines.filter(|line| line.contains("Foreign Scan on") || line.contains("Foreign Update on"));
    let shard =
        |line: String| line.split_once("dyno_shards.t_").map(|(_, rest)| rest[..2].to_owned());
    let mut shards: Vec<String> = scans.filter_map(shard).collect();
    shards.dedup();
    shards
}

#[test]
fn a_coordinator_spreads_rows_by_their_number() {
    let test = "a_coordinator_spreads_rows_by_their_number";
    // No power of two: the hash of the partitions has to be the number itself.
    let started = up(test, TopologyKind::ShardedPostgres, |request| request.shards = Some(3));
    let Some(mut mine) = started else { return };
    mine.assert_up();
    let roles: Vec<String> = mine.roles().into_iter().map(|node| node.1).collect();
    assert_eq!(roles, ["shard", "shard", "shard", "endpoint"]);
    mine.sql("endpoint", "CREATE TABLE t(id int PRIMARY KEY, v text)");
    mine.sql("endpoint", "SELECT dyno_shards.distribute('t', 'id')");
    mine.sql("endpoint", "SELECT dyno_shards.add_key('t_v', 'CREATE INDEX t_v ON t(v)')");
    // Once more, as a load that continues does.
    mine.sql("endpoint", "SELECT dyno_shards.add_key('t_v', 'CREATE INDEX t_v ON t(v)')");
    mine.sql("endpoint", "INSERT INTO t SELECT n, 'x' FROM generate_series(1, 300) AS n");
    for (shard, rest) in [("n1", 0), ("n2", 1), ("n3", 2)] {
        assert_eq!(mine.sql(shard, "SELECT count(*) FROM t"), "100", "{shard}");
        assert_eq!(mine.sql(shard, "SELECT max(id % 3) FROM t"), rest.to_string(), "{shard}");
        assert_eq!(mine.sql(shard, "SELECT count(*) FROM pg_indexes WHERE tablename = 't'"), "2");
    }
    assert_eq!(read_by_plan(&mine, "SELECT v FROM t WHERE id = 8"), ["n3"]);
    assert_eq!(read_by_plan(&mine, "SELECT v FROM t WHERE id = 10::bigint FOR UPDATE"), ["n2"]);
    assert_eq!(read_by_plan(&mine, "UPDATE t SET v = 'y' WHERE id = 9"), ["n1"]);
    assert_eq!(read_by_plan(&mine, "SELECT count(*) FROM t"), ["n1", "n2", "n3"]);
    let twice = mine.try_sql("endpoint", "INSERT INTO t VALUES (8)").unwrap_err();
    assert_eq!(twice.sqlstate(), "23505", "the key of a shard: {twice}");
    let error = mine.try_sql("endpoint", "SELECT dyno_shards.on_shards('SELECT 1/0')").unwrap_err();
    assert!(error.to_string().contains("n1: division by zero"), "{error}");
    // What one shard holds is out of reach while that is down, and nothing else.
    mine.cluster.kill("n2").unwrap();
    assert!(mine.try_sql("endpoint", "SELECT v FROM t WHERE id = 10").is_err());
    assert_eq!(mine.sql("endpoint", "SELECT v FROM t WHERE id = 8"), "x");
    let healths: Vec<Health> = mine.cluster.status().iter().map(|node| node.health).collect();
    assert_eq!(healths, [Health::Up, Health::Down, Health::Up, Health::Up]);
    mine.cluster.start("n2").unwrap();
    mine.cluster.stop("endpoint").unwrap();
    mine.cluster.start("endpoint").unwrap();
    mine.assert_up();
    assert_eq!(mine.sql("endpoint", "SELECT v FROM t WHERE id = 10"), "x");
    mine.sql("endpoint", "DROP TABLE t");
    assert!(mine.try_sql("n1", "SELECT 1 FROM t").is_err(), "it went from the shards, too");
    let dir = mine.dir();
    Cluster::down(&dir).unwrap();
    assert_nothing_is_left(&dir);
}
