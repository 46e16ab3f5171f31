//! Faults in trials, on clusters of real servers: the primary is killed under load and a replica takes over.

use dyno_tests::{Ran, Scratch, dyno, english_in_chinese_paper, only_run, skipped};
use serde_json::Value;
use std::fs;
use std::path::Path;

/// A cluster that is taken down whatever comes of the test.
struct Cluster<'a>(&'a Path);

impl<'a> Cluster<'a> {
    fn up(folder: &'a Path, words: &[&str]) -> Self {
        let mut all = vec!["cluster", "up"];
        all.extend_from_slice(words);
        let up = dyno(folder, &all);
        assert_eq!(up.code, 0, "{}", up.all());
        Cluster(folder)
    }

    /// Roles and health of all nodes, in their order.
    fn nodes(&self) -> Vec<(String, String)> {
        let status = dyno(self.0, &["cluster", "status", "--json"]);
        let json: Value = serde_json::from_str(&status.stdout).expect("JSON");
        let nodes = json["nodes"].as_array().expect("nodes");
        let text = |node: &Value, key: &str| node[key].as_str().unwrap_or_default().to_owned();
        nodes.iter().map(|node| (text(node, "role"), text(node, "health"))).collect()
    }
}

impl Drop for Cluster<'_> {
    fn drop(&mut self) {
        let down = dyno(self.0, &["cluster", "down"]);
        if !std::thread::panicking() {
            assert_eq!(down.code, 0, "{}", down.all());
        }
    }
}

fn has(program: &str, test: &str) -> bool {
    let has = dyno_tests::peer(program).is_some();
    if !has {
        skipped(test, &format!("{program} is not installed"));
    }
    has
}

const TPCC: &str =
    "workload = \"tpcc\"\ntest = \"bmsql-5.0\"\noptions = { warehouses = 1 }\nterminals = 4\n";
const PGBENCH: &str =
    "workload = \"pgbench\"\ntest = \"tpcb-like\"\noptions = { scale = 1 }\nclients = 4\n";

/// Runs one trial of 12 s with a fault after 4 s; `fault` has its other keys.
fn run(folder: &Path, load: &str, fault: &str) -> (Ran, Value) {
    let text = format!(
        "[suite]\nname = \"f\"\n[target.main]\n[[experiment]]\nname = \"e\"\n{load}duration_s = 12\n\
         cleanup = false\n[experiment.fault]\nat_s = 4\n{fault}\n"
    );
    fs::write(folder.join("f.toml"), text).expect("a suite");
    let ran = dyno(folder, &["run", "f.toml", "--target", "main=cluster:dyno-cluster"]);
    let runs = folder.join("dyno-runs");
    let path = only_run(&runs).unwrap_or_else(|| panic!("no run: {}", ran.all()));
    let trial = fs::read_to_string(path.join("trials/1.json"))
        .unwrap_or_else(|error| panic!("{error}: {}", ran.all()));
    let events = fs::read_to_string(path.join("events.jsonl")).unwrap_or_default();
    assert!(events.contains("was "), "the fault is among the events: {events}");
    let shown = dyno(folder, &["show", path.to_str().expect("UTF-8")]);
    assert!(shown.all().contains("fault"), "{}", shown.all());
    assert_eq!(english_in_chinese_paper(folder, &path), Vec::<String>::new());
    (ran, serde_json::from_str(&trial).expect("JSON"))
}

/// What every fault with an heir has in common.
fn assert_taken_over(ran: &Ran, trial: &Value) {
    let fault = &trial["fault"];
    assert_eq!(trial["status"], "complete", "{trial}\n{}", ran.all());
    assert_eq!((&fault["node"], &fault["promoted"]), (&"n1".into(), &"n2".into()), "{fault}");
    // A replica may take over so quickly that the intervals show no time without a commit.
    let first = fault["first_success_after_s"].as_f64().expect("a first success");
    let noticed = fault["noticed_s"].as_f64().expect("the shortest outage to be noticed");
    assert!(first < 8.0 && noticed > 0.0, "{fault}");
    assert!(fault["acknowledged"].as_u64().expect("a count") > 0, "{fault}");
    assert!(!fault["errors"].as_array().expect("errors").is_empty(), "{fault}");
    let steps: Vec<&str> =
        fault["steps"].as_array().expect("steps").iter().filter_map(Value::as_str).collect();
    assert!(steps.iter().any(|step| step.contains("n2 takes writes")), "{steps:?}");
}

#[test]
fn a_semi_synchronous_pair_loses_no_order() {
    if !has("mariadbd", "a_semi_synchronous_pair_loses_no_order") {
        return;
    }
    let scratch = Scratch::new();
    let size = "innodb_buffer_pool_size=128M";
    let words = ["mariadb", "--set", size, "--replicas", "1", "--replication", "semi-sync"];
    let cluster = Cluster::up(scratch.path(), &words);
    let (ran, trial) = run(scratch.path(), TPCC, "action = \"kill\"\npromote = true");
    assert_taken_over(&ran, &trial);
    assert_eq!(trial["fault"]["lost"], 0, "{}", trial["fault"]);
    // The roles are what they were before.
    let up = |role: &str| (role.to_owned(), "up".to_owned());
    assert_eq!(cluster.nodes(), [up("primary"), up("read_only")], "{}", ran.all());
}

#[test]
fn an_asynchronous_pair_says_what_it_lost() {
    if !has("mariadbd", "an_asynchronous_pair_says_what_it_lost") {
        return;
    }
    let scratch = Scratch::new();
    let words = ["mariadb", "--set", "innodb_buffer_pool_size=128M", "--replicas", "1"];
    let cluster = Cluster::up(scratch.path(), &words);
    let (ran, trial) = run(scratch.path(), TPCC, "action = \"kill\"\npromote = true");
    assert_taken_over(&ran, &trial);
    // How much that is depends on the moment: that it is counted and told does not.
    let fault = &trial["fault"];
    let lost = fault["lost"].as_u64().expect("a count");
    assert!(lost <= fault["acknowledged"].as_u64().expect("a count"), "{fault}");
    let evidence = fault["evidence"].as_str().expect("a sentence");
    assert_eq!(evidence.contains("The first lost ones:"), lost > 0, "{fault}");
    let up = |role: &str| (role.to_owned(), "up".to_owned());
    assert_eq!(cluster.nodes(), [up("primary"), up("read_only")], "{}", ran.all());
}

#[test]
fn a_quorum_of_postgres_loses_no_payment() {
    let test = "a_quorum_of_postgres_loses_no_payment";
    if !Path::new("/usr/lib/postgresql").exists() && !has("postgres", test) {
        return;
    }
    let scratch = Scratch::new();
    let words = ["postgres", "--replicas", "2", "--replication", "quorum"];
    let _cluster = Cluster::up(scratch.path(), &words);
    let (ran, trial) = run(scratch.path(), PGBENCH, "action = \"kill\"\npromote = true");
    assert_taken_over(&ran, &trial);
    assert_eq!(trial["fault"]["lost"], 0, "{}", trial["fault"]);
}

#[test]
fn a_frozen_primary_is_given_up() {
    if !has("mariadbd", "a_frozen_primary_is_given_up") {
        return;
    }
    let scratch = Scratch::new();
    let words = ["mariadb", "--set", "innodb_buffer_pool_size=128M"];
    let _cluster = Cluster::up(scratch.path(), &words);
    let fault = "action = \"freeze\"\nheal_after_s = 3\nanswer_limit_s = 1";
    let (ran, trial) = run(scratch.path(), PGBENCH, fault);
    let fault = &trial["fault"];
    assert_eq!(trial["status"], "complete", "{trial}\n{}", ran.all());
    assert_eq!((&fault["promoted"], &fault["lost"]), (&Value::Null, &0.into()), "{fault}");
    let first = fault["first_success_after_s"].as_f64().expect("a first success");
    assert!((2.5..7.0).contains(&first), "the server is frozen for 3 s: {fault}");
    let errors = fault["errors"].to_string();
    assert!(errors.contains("no answer within 1 s"), "{errors}");
}

#[test]
fn a_fault_that_nobody_can_do_is_refused_before_anything_is_touched() {
    let scratch = Scratch::new();
    let suite = format!(
        "[suite]\nname = \"f\"\n[target.main]\nurl = \"sqlite:{{run}}/a.db\"\n[[experiment]]\nname = \"e\"\n\
         {PGBENCH}duration_s = 12\n[experiment.fault]\naction = \"kill\"\nat_s = 4\n"
    );
    fs::write(scratch.path().join("f.toml"), suite).expect("a suite");
    let ran = dyno(scratch.path(), &["run", "f.toml"]);
    assert_eq!(ran.code, 2, "{}", ran.all());
    let message = "dyno has not started the node main of the target main, so it can't kill it.";
    assert!(ran.stderr.contains(message), "{}", ran.all());
    assert!(only_run(&scratch.path().join("dyno-runs")).is_none(), "a folder is left");
}
