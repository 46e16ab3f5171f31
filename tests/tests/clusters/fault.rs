//! Faults in trials, on clusters of real servers: the primary is killed under load and a replica takes over.

use crate::mine::ask_as_admin;
use dyno_testkit::{
    ProcessOutput, RunningDyno, Scratch, commits, dyno, dyno_command, english_in_chinese_paper,
    only_run, query_url, skipped, wait_until,
};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

/// A cluster that is taken down whatever comes of the test.
struct Cluster<'a>(&'a Path);

impl<'a> Cluster<'a> {
    fn up(folder: &'a Path, words: &[&str]) -> Self {
        let mut arguments = vec!["cluster", "up"];
        arguments.extend_from_slice(words);
        let up = dyno(folder, &arguments);
        assert_eq!(up.code, 0, "{up}");
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

    fn open(&self) -> dyno_topology::Cluster {
        dyno_topology::Cluster::open(&self.0.join("dyno-cluster")).expect("a cluster")
    }

    /// The URL of a node, with the password of the load.
    fn url(&self, node: &str) -> String {
        self.open().node_url(node).expect("a node")
    }

    fn count(&self, node: &str, sql: &str) -> u64 {
        let answer =
            query_url(&self.url(node), sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
        answer.single().and_then(|text| text.parse().ok()).expect("a number")
    }
}

impl Drop for Cluster<'_> {
    fn drop(&mut self) {
        let down = dyno(self.0, &["cluster", "down"]);
        if !std::thread::panicking() {
            assert_eq!(down.code, 0, "{down}");
        }
    }
}

fn has_program(program: &str, test: &str) -> bool {
    let has = dyno_testkit::peer(program).is_some();
    if !has {
        skipped(test, &format!("{program} is not installed"));
    }
    has
}

const TPCC: &str =
    "workload = \"tpcc\"\ntest = \"bmsql-5.0\"\noptions = { warehouses = 1 }\nterminals = 4\n";
const PGBENCH: &str =
    "workload = \"pgbench\"\ntest = \"tpcb-like\"\noptions = { scale = 1 }\nworkers = 4\n";

/// A dyno that runs one trial with a fault.
struct Trial {
    folder: PathBuf,
    running: RunningDyno,
}

impl Trial {
    /// A trial of so many seconds with a fault after the others; `fault` has its other keys, `target` those of
    /// the target.
    fn start(folder: &Path, target: &str, load: &str, [s, at_s]: [u32; 2], fault: &str) -> Self {
        let text = format!(
            "[suite]\nname = \"f\"\n[target.main]\n{target}\n[[experiment]]\nname = \"e\"\n{load}\
             duration_s = {s}\ncleanup = false\n[experiment.fault]\nat_s = {at_s}\n{fault}\n"
        );
        fs::write(folder.join("f.toml"), text).expect("a suite");
        let cluster_target = ["--target", "main=cluster:dyno-cluster"];
        let target_words = if target.is_empty() { &cluster_target[..] } else { &[] };
        let words = [&["run", "f.toml"][..], target_words].concat();
        Trial { folder: folder.to_owned(), running: RunningDyno::start(folder, &words) }
    }

    fn path(&self) -> Option<PathBuf> {
        only_run(&self.folder.join("dyno-runs"))
    }

    fn events(&self) -> String {
        let file = self.path().map(|path| path.join("events.jsonl"));
        file.and_then(|file| fs::read_to_string(file).ok()).unwrap_or_default()
    }

    /// Waits until a tenth of a second of the window is measured.
    fn is_measured(&mut self) {
        let folder = self.folder.join("dyno-runs");
        let has_begun =
            |_: &RunningDyno| only_run(&folder).is_some_and(|run| !commits(&run, 1).is_empty());
        self.running.wait_until("the window", has_begun);
    }

    /// Waits until an event says that.
    fn says(&self, words: &str) {
        wait_until(words, || self.events().contains(words));
    }

    /// Waits for its end; what was stored of the trial, and the paper.
    fn end(mut self) -> (ProcessOutput, Value, String) {
        let output = self.running.end();
        let path = self.path().unwrap_or_else(|| panic!("no run: {output}"));
        let read_file = |file: &str| {
            let text = fs::read_to_string(path.join(file));
            text.unwrap_or_else(|error| panic!("{file}: {error}: {output}"))
        };
        let events = self.events();
        assert!(events.contains("was "), "the fault is among the events: {events}");
        let summary = dyno(&self.folder, &["show", path.to_str().expect("UTF-8")]);
        assert!(summary.to_string().contains("fault"), "{summary}");
        let english = english_in_chinese_paper(&self.folder, &path);
        assert!(english.is_empty(), "{english:?}\n{}\n{events}", read_file("trials/1.json"));
        let trial = serde_json::from_str(&read_file("trials/1.json")).expect("JSON");
        let paper = read_file("paper.md");
        (output, trial, paper)
    }
}

/// Runs one trial of 12 s with a fault after 4 s; `fault` has its other keys.
fn run(folder: &Path, load: &str, fault: &str) -> (ProcessOutput, Value) {
    let (output, trial, _) = Trial::start(folder, "", load, [12, 4], fault).end();
    (output, trial)
}

/// Checks that hold for every fault with a successor.
fn assert_taken_over(output: &ProcessOutput, trial: &Value) {
    let fault = &trial["fault"];
    assert_eq!(trial["status"], "complete", "{trial}\n{output}");
    assert_eq!((&fault["node"], &fault["promoted"]), (&"n1".into(), &"n2".into()), "{fault}");
    // A replica may take over so quickly that the intervals show no time without a commit.
    let first = fault["first_success_after_s"].as_f64().expect("a first success");
    let noticed = fault["noticed_s"].as_f64().expect("the shortest outage to be noticed");
    assert!(first >= 0.0 && noticed > 0.0, "{fault}");
    assert!(fault["acknowledged"].as_u64().expect("a count") > 0, "{fault}");
    assert!(!fault["errors"].as_array().expect("errors").is_empty(), "{fault}");
    let steps = fault["steps"].to_string();
    assert!(steps.contains("n2 takes writes"), "{steps}");
}

#[test]
fn a_semi_synchronous_pair_loses_no_order() {
    if !has_program("mariadbd", "a_semi_synchronous_pair_loses_no_order") {
        return;
    }
    let scratch = Scratch::new();
    let size = "innodb_buffer_pool_size=128M";
    let words = ["mariadb", "--set", size, "--replicas", "1", "--replication", "semi-sync"];
    let cluster = Cluster::up(scratch.path(), &words);
    let (output, trial) = run(scratch.path(), TPCC, "action = \"kill\"\npromote = true");
    assert_taken_over(&output, &trial);
    assert_eq!(trial["fault"]["lost"], 0, "{}", trial["fault"]);
    // The roles are what they were before.
    let up = |role: &str| (role.to_owned(), "up".to_owned());
    assert_eq!(cluster.nodes(), [up("primary"), up("read_only")], "{output}");
}

/// Losses as the servers themselves show them: `rows` are there after the trial, of which `before` were
/// there before it.
fn assert_lost(fault: &Value, paper: &str, [rows, before]: [u64; 2]) {
    let number = |key: &str| fault[key].as_u64().unwrap_or_else(|| panic!("{key}: {fault}"));
    let (acknowledged, lost) = (number("acknowledged"), number("lost"));
    assert!(lost > 0 && lost < acknowledged, "{fault}");
    // Commits that were never answered are known to no one but the server.
    let sentences = fault["evidence"]["joined"].as_array().expect("sentences");
    let unanswered = sentences.iter().find_map(|sentence| sentence["args"]["there"].as_u64());
    let unanswered = unanswered.unwrap_or(0);
    assert_eq!(
        rows - before,
        acknowledged - lost + unanswered,
        "{rows} rows, {before} before: {fault}"
    );
    let group_thousands = |count: u64| match count / 1000 {
        0 => count.to_string(),
        thousands => format!("{thousands},{:03}", count % 1000),
    };
    let sentence = format!(
        "{} of {} acknowledged transactions lost",
        group_thousands(lost),
        group_thousands(acknowledged)
    );
    assert!(paper.contains(&sentence), "{sentence}:\n{paper}");
    assert!(!paper.contains(" Capacity\n"), "a window with an outage is no capacity:\n{paper}");
}

#[test]
fn an_asynchronous_pair_loses_every_order_that_the_replica_had_not_received() {
    let test = "an_asynchronous_pair_loses_every_order_that_the_replica_had_not_received";
    if !has_program("mariadbd", test) {
        return;
    }
    let scratch = Scratch::new();
    let words = ["mariadb", "--set", "innodb_buffer_pool_size=128M", "--replicas", "1"];
    let cluster = Cluster::up(scratch.path(), &words);
    let fault = "action = \"kill\"\npromote = true";
    let mut trial = Trial::start(scratch.path(), "", TPCC, [12, 4], fault);
    trial.is_measured();
    // What is committed from here on until the primary is killed exists nowhere else.
    ask_as_admin(&cluster.open(), "n2", "STOP SLAVE IO_THREAD");
    let (output, trial, paper) = trial.end();
    assert_taken_over(&output, &trial);
    assert_eq!(output.code, 4, "{output}");
    assert!(output.stderr.contains("error: Acknowledged work was lost: trial 1: "), "{output}");
    let fault = &trial["fault"];
    let evidence = fault["evidence"].to_string();
    assert!(evidence.contains("The first lost ones:"), "{fault}");
    // Clause 1.2 of TPC-C: 3,000 orders in each of 10 districts of a warehouse.
    let orders = cluster.count("n1", "SELECT count(*) FROM bmsql_oorder");
    assert_lost(fault, &paper, [orders, 30_000]);
    // The roles are what they were before.
    let up = |role: &str| (role.to_owned(), "up".to_owned());
    assert_eq!(cluster.nodes(), [up("primary"), up("read_only")], "{output}");
}

#[test]
fn an_asynchronous_standby_loses_every_payment_that_it_had_not_received() {
    let test = "an_asynchronous_standby_loses_every_payment_that_it_had_not_received";
    if !Path::new("/usr/lib/postgresql").exists() && !has_program("postgres", test) {
        return;
    }
    let scratch = Scratch::new();
    let cluster = Cluster::up(scratch.path(), &["postgres", "--replicas", "1"]);
    let fault = "action = \"kill\"\npromote = true\nallow_lost = \"main\"";
    let mut trial = Trial::start(scratch.path(), "", PGBENCH, [14, 4], fault);
    trial.is_measured();
    // The file is written again when the standby is promoted.
    let file = scratch.file("dyno-cluster/n2/data/postgresql.conf");
    let mut settings = fs::File::options().append(true).open(file).expect("its configuration");
    writeln!(settings, "primary_conninfo = ''").expect("written");
    let pid = cluster.open().node("n2").expect("a node").pid;
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).expect("a process");
    kill_process(pid, Signal::HUP).expect("it reads its configuration");
    wait_until("the standby receives nothing", || {
        cluster.count("n2", "SELECT count(*) FROM pg_stat_wal_receiver") == 0
    });
    let (output, trial, paper) = trial.end();
    assert_taken_over(&output, &trial);
    assert_eq!(output.code, 0, "the suite expects a loss: {output}");
    let payments = cluster.count("n1", "SELECT count(*) FROM pgbench_history");
    assert_lost(&trial["fault"], &paper, [payments, 0]);
}

#[test]
fn a_quorum_of_postgres_loses_no_payment() {
    let test = "a_quorum_of_postgres_loses_no_payment";
    if !Path::new("/usr/lib/postgresql").exists() && !has_program("postgres", test) {
        return;
    }
    let scratch = Scratch::new();
    let words = ["postgres", "--replicas", "2", "--replication", "quorum"];
    let _cluster = Cluster::up(scratch.path(), &words);
    let (output, trial) = run(scratch.path(), PGBENCH, "action = \"kill\"\npromote = true");
    assert_taken_over(&output, &trial);
    assert_eq!(trial["fault"]["lost"], 0, "{}", trial["fault"]);
}

#[test]
fn a_frozen_primary_is_given_up() {
    if !has_program("mariadbd", "a_frozen_primary_is_given_up") {
        return;
    }
    let scratch = Scratch::new();
    let words = ["mariadb", "--set", "innodb_buffer_pool_size=128M"];
    let _cluster = Cluster::up(scratch.path(), &words);
    let fault = "action = \"freeze\"\nheal_after_s = 3\nanswer_limit_s = 1";
    let (output, trial) = run(scratch.path(), PGBENCH, fault);
    let fault = &trial["fault"];
    assert_eq!(trial["status"], "complete", "{trial}\n{output}");
    assert_eq!((&fault["promoted"], &fault["lost"]), (&Value::Null, &0.into()), "{fault}");
    let first = fault["first_success_after_s"].as_f64().expect("a first success");
    assert!(first > 2.5, "the server is frozen for 3 s: {fault}");
    let errors = fault["errors"].to_string();
    assert!(errors.contains("no answer within 1 s"), "{errors}");
}

/// The nodes of a target as a suite lists them: a cluster that dyno has not started.
fn node_list(cluster: &Cluster<'_>, [primary, read_only]: [&str; 2]) -> String {
    let node = |name: &str, role: &str| {
        format!("{{ name = \"{name}\", role = \"{role}\", url = \"{}\" }}", cluster.url(name))
    };
    format!("nodes = [{}, {}]", node(primary, "primary"), node(read_only, "read_only"))
}

/// Processes with this in their command line.
fn processes(words: &str) -> usize {
    let entries = fs::read_dir("/proc").expect("a process list").flatten();
    let lines = entries.filter_map(|entry| fs::read(entry.path().join("cmdline")).ok());
    lines.filter(|line| String::from_utf8_lossy(line).replace('\0', " ").contains(words)).count()
}

#[test]
fn commands_of_the_suite_treat_a_cluster_of_ones_own() {
    if !has_program("mariadbd", "commands_of_the_suite_treat_a_cluster_of_ones_own") {
        return;
    }
    let scratch = Scratch::new();
    let words = ["mariadb", "--set", "innodb_buffer_pool_size=64M", "--replicas", "1"];
    let cluster = Cluster::up(scratch.path(), &words);
    let program = dyno_command(scratch.path()).get_program().to_str().expect("UTF-8").to_owned();
    let fault = format!(
        "action = \"command\"\npromote = true\nheal_after_s = 2\ncommand = \"{program} cluster kill $DYNO_NODE\"\n\
         promote_command = \"sleep 0.5; {program} cluster promote $DYNO_PROMOTE\"\n\
         heal_command = \"{program} cluster rejoin $DYNO_NODE && echo $DYNO_TARGET > told\""
    );
    let target = node_list(&cluster, ["n1", "n2"]);
    // One worker: whoever applies what it has written keeps up.
    let load = PGBENCH.replace("workers = 4", "workers = 1");
    let (output, trial, paper) =
        Trial::start(scratch.path(), &target, &load, [24, 1], &fault).end();
    assert_taken_over(&output, &trial);
    let steps = trial["fault"]["steps"].to_string();
    for step in [
        "n1 was treated by the suite's command",
        "n2 was promoted",
        "n2 takes writes",
        "n1 was brought back by the suite's command",
    ] {
        assert!(steps.contains(step), "{step}: {steps}");
    }
    assert!(trial["fault"]["lost"].is_u64(), "{}", trial["fault"]);
    assert!(paper.contains("n1 treated by a command, n2 took over"), "{paper}");
    assert_eq!(fs::read_to_string(scratch.file("told")).expect("the command ran"), "main\n");
    assert!(output.stderr.contains("n2 is still the primary after the trial"), "{output}");
    let up = |role: &str| (role.to_owned(), "up".to_owned());
    assert_eq!(cluster.nodes(), [up("read_only"), up("primary")], "{output}");
    stops_a_command(&scratch, &node_list(&cluster, ["n2", "n1"]), &load);
}

/// Ctrl-C while a command runs that would take far too long.
fn stops_a_command(scratch: &Scratch, target: &str, load: &str) {
    fs::remove_dir_all(scratch.file("dyno-runs")).expect("a run");
    let sleep = format!("sleep 1{:06}", std::process::id());
    let fault = format!(
        "action = \"command\"\npromote = true\ncommand = \"true\"\npromote_command = \"{sleep} & {sleep}\""
    );
    let mut trial = Trial::start(scratch.path(), target, load, [60, 1], &fault);
    trial.says("n2 was treated by");
    wait_until("the command", || processes(&sleep) >= 2);
    trial.running.signal(Signal::INT);
    let output = trial.running.end();
    assert_eq!(output.code, 130, "{output}");
    let message = "n1 could not be promoted: The command that promotes n1 was killed, because the run was stopped";
    assert!(trial.events().contains(message), "{}", trial.events());
    wait_until("the end of what it has started", || processes(&sleep) == 0);
}

#[test]
fn a_primary_that_is_cut_off_is_reached_again() {
    let test = "a_primary_that_is_cut_off_is_reached_again";
    if !has_program("mariadbd", test) {
        return;
    }
    if !rustix::process::geteuid().is_root() {
        return skipped(test, "only root may make network namespaces");
    }
    let scratch = Scratch::new();
    let words = ["mariadb", "--isolated", "--set", "innodb_buffer_pool_size=64M"];
    let up = dyno(scratch.path(), &[&["cluster", "up"][..], &words[..]].concat());
    if up.code != 0 && up.stderr.contains("networks of their own need root's full rights") {
        return skipped(test, "network namespaces can't be made here");
    }
    assert_eq!(up.code, 0, "{up}");
    let _cluster = Cluster(scratch.path());
    let fault = "action = \"partition\"\nheal_after_s = 2\nanswer_limit_s = 1";
    let (output, trial, paper) = Trial::start(scratch.path(), "", PGBENCH, [14, 2], fault).end();
    let fault = &trial["fault"];
    assert_eq!(trial["status"], "complete", "{trial}\n{output}");
    assert_eq!((&fault["promoted"], &fault["lost"]), (&Value::Null, &0.into()), "{fault}");
    let first = fault["first_success_after_s"].as_f64().expect("a first success");
    assert!(first > 1.5, "it is cut off for 2 s: {fault}");
    let steps = fault["steps"].to_string();
    assert!(steps.contains("n1 was cut off from the network"), "{steps}");
    assert!(steps.contains("n1 is reached again"), "{steps}");
    assert!(!fault["errors"].as_array().expect("errors").is_empty(), "{fault}");
    assert!(paper.contains("n1 cut off from the network"), "{paper}");
}

#[test]
fn a_fault_that_nobody_can_do_is_refused_before_anything_is_touched() {
    let scratch = Scratch::new();
    let suite = format!(
        "[suite]\nname = \"f\"\n[target.main]\nurl = \"sqlite:{{run}}/a.db\"\n[[experiment]]\nname = \"e\"\n\
         {PGBENCH}duration_s = 12\n[experiment.fault]\naction = \"kill\"\nat_s = 4\n"
    );
    fs::write(scratch.path().join("f.toml"), suite).expect("a suite");
    let output = dyno(scratch.path(), &["run", "f.toml"]);
    assert_eq!(output.code, 2, "{output}");
    let message = "dyno has not started the node main of the target main, so it can't kill it.";
    assert!(output.stderr.contains(message), "{output}");
    assert!(only_run(&scratch.path().join("dyno-runs")).is_none(), "a folder is left");
}
