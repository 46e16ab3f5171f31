//! `dyno run` on clusters of real servers: what the servers themselves counted on each node.

use crate::mine::{Mine, up_three};
use dyno_testkit::{Scratch, dyno, english_in_chinese_paper, only_run};
use dyno_topology::TopologyKind;
use serde_json::Value;

impl Mine {
    /// Number of reads of the table that each node has executed since it began.
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
        ["n1", "n2", "n3"].map(|node| self.number(node, sql))
    }

    /// Waits until the read-only nodes have all rows.
    fn has_caught_up(&self, rows: u64) {
        for node in ["n2", "n3"] {
            self.wait_for(node, "SELECT count(*) FROM sbtest1", &rows.to_string());
        }
    }

    /// PostgreSQL counts a session's work when its process ends: waits until no other session is left.
    fn sessions_have_ended(&self) {
        let other_sessions = "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend' \
                      AND pid <> pg_backend_pid()";
        if matches!(self.cluster.state().topology, TopologyKind::Postgres) {
            for node in ["n1", "n2", "n3"] {
                self.wait_for(node, other_sessions, "0");
            }
        }
    }
}

const ROWS: u64 = 1_000;

/// Runs one experiment, and says how many reads it has made on each node.
fn measure_reads(
    scratch: &Scratch,
    mine: &Mine,
    route: &str,
    experiment: &str,
) -> ([u64; 3], Value) {
    let text = format!(
        "[suite]\nname = \"routes\"\nsample_servers = false\n[target.main]\nroute = \"{route}\"\n\
         [[experiment]]\nname = \"a\"\nworkload = \"sysbench\"\nworkers = 4\n{experiment}\n"
    );
    std::fs::write(scratch.file("routes.toml"), text).expect("written");
    let runs = scratch.file("runs");
    let _ = std::fs::remove_dir_all(&runs);
    let target = format!("main={}", mine.url());
    let before = mine.reads();
    let output =
        dyno(scratch.path(), &["run", "routes.toml", "--dir", "runs", "--target", &target]);
    assert_eq!(output.code, 0, "{experiment}\n{output}");
    mine.sessions_have_ended();
    let after = mine.reads();
    let header = only_run(&runs).expect("a run").join("run.json");
    let header = std::fs::read_to_string(header).expect("a header");
    let password = mine.password();
    assert!(
        !output.to_string().contains(&password) && !header.contains(&password),
        "a password is shown"
    );
    ([0, 1, 2].map(|node| after[node] - before[node]), serde_json::from_str(&header).expect("JSON"))
}

/// An experiment on the data that are there.
fn experiment(test: &str, events: u64, options: &str) -> String {
    format!(
        "test = \"{test}\"\nevents = {events}\nprepare = false\ncleanup = false\n\
         options = {{ tables = 1, table_size = {ROWS}{options} }}"
    )
}

fn the_servers_count_what_each_route_says(test: &str, topology: TopologyKind) {
    let scratch = Scratch::new();
    let Some(mine) = up_three(test, topology) else { return };
    let load =
        experiment("oltp_point_select", 500, "").replace("prepare = false", "prepare = true");
    let (reads, header) = measure_reads(&scratch, &mine, "primary", &load);
    assert!(reads[0] >= 500, "{test}: {reads:?}");
    mine.has_caught_up(ROWS);
    let target = &header["targets"][0];
    let nodes: Vec<(&str, &str)> = (0..3)
        .map(|node| &target["nodes"][node])
        .map(|node| (node["name"].as_str().unwrap_or(""), node["role"].as_str().unwrap_or("")))
        .collect();
    assert_eq!(nodes, [("n1", "primary"), ("n2", "read_only"), ("n3", "read_only")]);
    assert_eq!((&target["route"], &target["same_host"]), (&"primary".into(), &true.into()));

    // What dyno asks before and after a trial is far less than the trial itself.
    let is_negligible = |reads: u64| reads < 300;
    for mode in ["auto", "disable"] {
        let option = format!(", db_ps_mode = \"{mode}\"");
        let (reads, _) = measure_reads(
            &scratch,
            &mine,
            "spread",
            &experiment("oltp_point_select", 4_000, &option),
        );
        assert!(is_negligible(reads[0]), "{test}: spread, {mode}: {reads:?}");
        assert!(reads[1].min(reads[2]) >= 500, "{test}: spread, {mode}: {reads:?}");
        assert!(reads[1] + reads[2] >= 4_000, "{test}: spread, {mode}: {reads:?}");

        // Transactions stay on the primary ...
        let (reads, _) =
            measure_reads(&scratch, &mine, "split", &experiment("oltp_read_write", 200, &option));
        assert!(
            is_negligible(reads[1]) && is_negligible(reads[2]),
            "{test}: transactions, {mode}: {reads:?}"
        );
        // ... and without them, the 14 reads of each event go to the read-only nodes.
        let option = format!("{option}, skip_trx = true");
        let (reads, _) =
            measure_reads(&scratch, &mine, "split", &experiment("oltp_read_write", 200, &option));
        let sum = reads[1] + reads[2];
        assert!(sum >= 14 * 200, "{test}: split, {mode}: {reads:?}");
        assert!(reads[1].min(reads[2]) >= 14 * 20, "{test}: split, {mode}: {reads:?}");
    }

    // Each number of read-only nodes is its own target, on the same data.
    let series = format!("{}\nread_only = [1, 2, 8]", experiment("oltp_point_select", 4_000, ""));
    let (reads, header) = measure_reads(&scratch, &mine, "spread", &series);
    let run = only_run(&scratch.file("runs")).expect("a run");
    assert_eq!(english_in_chinese_paper(scratch.path(), &run), Vec::<String>::new());
    assert!(is_negligible(reads[0] / 2), "{test}: series: {reads:?}");
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
    the_servers_count_what_each_route_says(test, TopologyKind::Mariadb);
}

/// A trial of 6 s on three nodes, of which `n2` is killed after 2 s; its summary.
fn run_with_killed_node(
    scratch: &Scratch,
    mine: &Mine,
    route: &str,
    test: &str,
    options: &str,
) -> Value {
    let text = format!(
        "[suite]\nname = \"gone\"\n[target.main]\nroute = \"{route}\"\n[[experiment]]\nname = \"a\"\n\
         workload = \"sysbench\"\ntest = \"{test}\"\nworkers = 4\nduration_s = 6\ncleanup = false\n\
         options = {{ tables = 1, table_size = {ROWS}{options} }}\n\
         [experiment.fault]\naction = \"kill\"\nnode = \"n2\"\nat_s = 2\n"
    );
    std::fs::write(scratch.file("gone.toml"), text).expect("written");
    let runs = scratch.file("runs");
    let _ = std::fs::remove_dir_all(&runs);
    let target = format!("main={}", mine.url());
    let output = dyno(scratch.path(), &["run", "gone.toml", "--dir", "runs", "--target", &target]);
    let run = only_run(&runs).unwrap_or_else(|| panic!("{output}"));
    let paper = std::fs::read_to_string(run.join("paper.md")).expect("a paper");
    assert!(paper.contains("n2 lost counters while away in a trial"), "{paper}");
    let trial = std::fs::read_to_string(run.join("trials/1.json")).expect("a trial");
    let trial: Value = serde_json::from_str(&trial).expect("JSON");
    assert_eq!(trial["status"], "complete", "{trial:#}\n{output}");
    trial
}

#[test]
fn workers_of_a_killed_read_only_node_go_on_at_the_other_one() {
    let test = "workers_of_a_killed_read_only_node";
    let scratch = Scratch::new();
    let Some(mine) = up_three(test, TopologyKind::Mariadb) else { return };
    for (route, load, options) in
        [("spread", "oltp_point_select", ""), ("split", "oltp_read_write", ", skip_trx = true")]
    {
        let trial = run_with_killed_node(&scratch, &mine, route, load, options);
        let parse_count =
            |value: &Value| value.as_u64().unwrap_or_else(|| panic!("{value}: {trial:#}"));
        // Two of the four workers read from n2. None of them waits until it is back, after the trial.
        assert_eq!(parse_count(&trial["counts"]["reconnects"]), 2, "{route}: {trial:#}");
        // Alongside, writes of two workers may meet.
        let errors = trial["errors"].as_array().expect("errors").iter();
        let lost_connections = errors.filter(|error| error["class"] == "connection_lost");
        assert_eq!(
            lost_connections.map(|error| parse_count(&error["count"])).sum::<u64>(),
            2,
            "{route}: {trial:#}"
        );
        assert_eq!(trial["fault"]["node"], "n2");
        let nodes = &trial["conditions"]["nodes"];
        assert_eq!(nodes["n2"]["reads"], Value::Null, "its counters began anew");
        let (all, other) =
            (parse_count(&trial["statements"]["reads"]), parse_count(&nodes["n3"]["reads"]));
        // Half of the reads of 2 s and all that came after.
        assert!(other as f64 > 0.5 * all as f64, "{route}: {other} of {all}: {trial:#}");
        let primary = parse_count(&nodes["n1"]["reads"]);
        assert!(primary < 100, "{route}: the primary executed {primary} reads: {trial:#}");
    }
}

#[test]
fn postgres_counts_what_each_route_says() {
    let test = "postgres_counts_what_each_route_says";
    the_servers_count_what_each_route_says(test, TopologyKind::Postgres);
}
