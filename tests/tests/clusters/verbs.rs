//! `dyno cluster` as users meet it: what it prints, and that nothing is ever left behind.

use crate::mine::up;
use dyno_testkit::{RunningDyno, Scratch, dyno, skipped};
use dyno_topology::{Cluster, TopologyKind};
use rustix::process::Signal;
use std::fs;
use std::path::Path;

/// Small servers: what is tested here doesn't depend on their size.
const UP: [&str; 6] =
    ["cluster", "up", "mariadb", "--set", "innodb_buffer_pool_size=64M", "--replicas=1"];

/// Processes that work below a folder, or have it in their command line.
fn processes(dir: &Path) -> Vec<String> {
    let folder = dir.to_str().expect("UTF-8");
    let entries = fs::read_dir("/proc").expect("a process list").flatten();
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    numbers
        .filter(|&pid| pid != std::process::id())
        .filter_map(|pid| {
            let line = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
            let line = String::from_utf8_lossy(&line).replace('\0', " ");
            let works = fs::read_link(format!("/proc/{pid}/cwd"));
            let is_inside = works.is_ok_and(|works| works.starts_with(dir));
            (is_inside || line.contains(folder)).then(|| format!("{pid} {line}"))
        })
        .collect()
}

pub(crate) fn assert_nothing_is_left(dir: &Path) {
    assert!(!dir.exists(), "{} is left", dir.display());
    let remaining = processes(dir);
    assert!(remaining.is_empty(), "{remaining:?}");
}

fn has_mariadb(test: &str) -> bool {
    let has = dyno_testkit::peer("mariadbd").is_some();
    if !has {
        skipped(test, "mariadbd is not installed");
    }
    has
}

#[test]
fn a_cluster_lives_and_dies() {
    if !has_mariadb("a_cluster_lives_and_dies") {
        return;
    }
    let scratch = Scratch::new();
    let (folder, dir) = (scratch.path(), scratch.file("dyno-cluster"));
    let none = dyno(folder, &["cluster", "status"]);
    assert_eq!(none.code, 1, "{none}");
    assert!(none.stderr.contains("There is no cluster in dyno-cluster."), "{none}");
    assert!(none.stderr.contains("hint: `dyno cluster up` makes one"), "{none}");
    let up = dyno(folder, &UP);
    assert_eq!(up.code, 0, "{up}");
    assert!(up.stdout.contains("n1    primary    MariaDB  up"), "{up}");
    assert!(up.stdout.contains("n2    read_only  MariaDB  up"), "{up}");
    assert!(up.stderr.contains("Ready after "), "{up}");
    let again = dyno(folder, &UP);
    assert_eq!(again.code, 1, "{again}");
    assert!(again.stderr.contains("holds a cluster already."), "{again}");
    assert!(again.stderr.contains("hint: `dyno cluster down --dir"), "{again}");
    // Two words of JSON that scripts need, and no password anywhere.
    let status = dyno(folder, &["cluster", "status", "--json"]);
    assert_eq!(status.code, 0, "{status}");
    let json: serde_json::Value = serde_json::from_str(&status.stdout).expect("JSON");
    assert_eq!(json["nodes"][1]["health"], "up");
    assert!(json["nodes"][1]["lag_s"].as_f64().is_some_and(|lag_s| lag_s >= 0.0), "{json}");
    let file = json["password_file"].as_str().expect("a path");
    let password = fs::read_to_string(file).expect("the password");
    for text in [up.to_string(), status.to_string()] {
        assert!(!text.contains(password.trim()), "{text}");
    }
    let killed = dyno(folder, &["cluster", "kill", "n2"]);
    assert_eq!(killed.code, 0, "{killed}");
    let status = dyno(folder, &["cluster", "status"]);
    assert_eq!(status.code, 1, "{status}");
    assert!(status.stderr.contains("error: Node n2 is down: "), "{status}");
    let started = dyno(folder, &["cluster", "start", "n2"]);
    assert_eq!(started.code, 0, "{started}");
    assert!(!processes(&dir).is_empty());
    let down = dyno(folder, &["cluster", "down"]);
    assert_eq!(down.code, 0, "{down}");
    assert_nothing_is_left(&dir);
    let again = dyno(folder, &["cluster", "down"]);
    assert_eq!(again.code, 1, "{again}");
    assert!(again.stderr.contains("There is no cluster"), "{again}");
}

/// Output of `up` when each of its steps begins.
const STEPS: [&str; 3] =
    ["Making the data folders", "Starting the servers", "Starting replication"];

/// An `up` that has begun `step` and stands still, with its folder. A step may take no longer than it takes to
/// see that it began: an `up` that was ready by then is taken down, and another one is made.
fn up_stopped_in(step: &str) -> (Scratch, RunningDyno) {
    for _ in 0..20 {
        let scratch = Scratch::new();
        let mut up = RunningDyno::start(scratch.path(), &UP);
        up.wait_until(step, |up| up.stderr().contains(step));
        up.signal(Signal::STOP);
        if !up.stderr().contains("Ready after ") {
            return (scratch, up);
        }
        up.signal(Signal::CONT);
        assert_eq!(up.end().code, 0, "{}", up.stderr());
        let down = dyno(scratch.path(), &["cluster", "down"]);
        assert_eq!(down.code, 0, "{down}");
        assert_nothing_is_left(&scratch.file("dyno-cluster"));
    }
    panic!("20 times ready before {step:?} could be interrupted")
}

#[test]
fn an_interrupted_up_takes_everything_down() {
    if !has_mariadb("an_interrupted_up_takes_everything_down") {
        return;
    }
    for step in STEPS {
        let (scratch, mut up) = up_stopped_in(step);
        up.signal(Signal::INT);
        up.signal(Signal::CONT);
        let ended = up.end();
        assert_eq!(ended.code, 130, "{ended}");
        assert!(ended.stderr.contains("Stopped before the cluster was ready."), "{ended}");
        assert_nothing_is_left(&scratch.file("dyno-cluster"));
    }
}

#[test]
fn after_a_killed_up_down_finds_everything() {
    if !has_mariadb("after_a_killed_up_down_finds_everything") {
        return;
    }
    for step in STEPS {
        let (scratch, mut up) = up_stopped_in(step);
        let busy = dyno(scratch.path(), &["cluster", "down"]);
        assert_eq!(busy.code, 1, "{busy}");
        assert!(busy.stderr.contains("Another dyno is just making"), "{busy}");
        up.signal(Signal::KILL);
        up.end();
        let status = dyno(scratch.path(), &["cluster", "status"]);
        assert_eq!(status.code, 1, "{status}");
        assert!(status.stderr.contains("was never completed."), "{status}");
        let down = dyno(scratch.path(), &["cluster", "down"]);
        assert_eq!(down.code, 0, "{down}");
        assert_nothing_is_left(&scratch.file("dyno-cluster"));
    }
}

#[test]
fn what_cannot_be_is_said_before_anything_is_made() {
    let scratch = Scratch::new();
    for (arguments, message) in [
        (&["cluster", "up", "mariadb", "--replicas=9"][..], "at most 8 read-only nodes, not 9"),
        (&["cluster", "up", "mariadb", "--replication=semi-sync"], "has no semi-sync replication"),
        (&["cluster", "up", "postgres", "--endpoint=router"], "work in front of MySQL's protocol"),
        (&["cluster", "up", "sharded", "--replicas=1"], "Shards have no read-only nodes."),
        (&["cluster", "up", "sharded-postgres", "--shards=17"], "has 1 to 16 shards."),
        (&["cluster", "up", "sharded-postgres", "--endpoint=pgpool"], "is in front of its shards"),
        (&["cluster", "up", "postgres", "--shards=2"], "Only a sharded cluster has shards."),
    ] {
        let output = dyno(scratch.path(), arguments);
        assert_eq!(output.code, 1, "{output}");
        assert!(output.stderr.contains(message), "{output}");
        assert!(output.stderr.contains("\nhint: "), "{output}");
        assert_eq!(fs::read_dir(scratch.path()).expect("a folder").count(), 0);
    }
    let output = dyno(scratch.path(), &["cluster", "up", "mariadb", "--set", "max_connections"]);
    assert_eq!(output.code, 2, "{output}");
    assert!(output.stderr.contains("write NAME=VALUE"), "{output}");
}

/// Output of a run on a cluster with a node that was left frozen, or follows no other; `promote` leaves none such.
#[test]
fn an_old_primary_follows_and_a_node_left_frozen_is_named() {
    let name = "an_old_primary_follows_and_a_node_left_frozen_is_named";
    for topology in [TopologyKind::Mariadb, TopologyKind::Postgres] {
        let Some(mut mine) = up(name, topology, |request| request.replicas = 1) else { continue };
        let scratch = mine.scratch.path().to_owned();
        let run = || {
            let words = ["run", "failover", "--shrink=0.001", "--target=async=cluster:c"];
            dyno(&scratch, &words)
        };
        let promoted = mine.dyno(&["cluster", "promote", "n2", "--dir=c"]);
        assert!(promoted.stderr.contains("Node n1 follows it."), "{promoted}");
        mine.cluster = Cluster::open(&mine.dir()).expect("a cluster");
        mine.assert_up();
        assert_eq!(mine.roles()[0], ("n1".to_owned(), "read_only".to_owned()));
        mine.dyno(&["cluster", "freeze", "n1", "--dir=c"]);
        let output = run();
        assert!(output.stderr.contains("Node n1 is frozen"), "{output}");
        assert!(output.stderr.contains("hint: `dyno cluster thaw n1 --dir "), "{output}");
        mine.dyno(&["cluster", "thaw", "n1", "--dir=c"]);
        if topology == TopologyKind::Mariadb {
            mine.admin("n1", "STOP SLAVE");
            mine.admin("n1", "RESET SLAVE ALL");
            let output = run();
            assert!(output.stderr.contains("Node n1 follows nobody"), "{output}");
            assert!(output.stderr.contains("hint: `dyno cluster rejoin n1 --dir "), "{output}");
        }
        mine.cluster.kill("n2").unwrap();
        let promoted = mine.dyno(&["cluster", "promote", "n1", "--dir=c"]);
        assert!(
            promoted.stderr.contains("hint: n2 did not answer and follows no one"),
            "{promoted}"
        );
    }
}
