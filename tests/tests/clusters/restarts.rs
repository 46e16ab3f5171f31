//! Servers of `dyno cluster` that are restarted before pairs.

use dyno_facts::{Renewed, RunStatus};
use dyno_testkit::{RunningDyno, Scratch, dyno, is_stored, only_run, skipped};
use rustix::process::Signal;
use std::fs;

/// A primary with a replica is restarted before each second pair, in a run that is killed and continues.
#[test]
fn clusters_are_restarted_before_pairs() {
    if dyno_testkit::peer("postgres").is_none() && dyno_testkit::peer("initdb").is_none() {
        return skipped("clusters_are_restarted_before_pairs", "PostgreSQL is not installed");
    }
    let scratch = Scratch::new();
    let folder = scratch.path();
    let up = dyno(folder, &["cluster", "up", "postgres", "--replicas=1"]);
    assert_eq!(up.code, 0, "{up}");
    let cluster = dyno_topology::Cluster::open(&folder.join("dyno-cluster")).expect("a cluster");
    let node_pids = || -> Vec<u32> {
        let cluster =
            dyno_topology::Cluster::open(&folder.join("dyno-cluster")).expect("a cluster");
        cluster.nodes().iter().map(|node| node.pid).collect()
    };
    let before = node_pids();
    let text = "[suite]\nname = \"r\"\n[target.main]\n[[experiment]]\nname = \"e\"\nworkload = \"sysbench\"\n\
                test = \"oltp_point_select\"\noptions = { tables = 1, table_size = 100 }\nworkers = 2\n\
                duration_s = 0.5\nrestart_each = 2\n\
                compare = { baseline = \"main\", aa = true, pairs = 4 }\n\
                retry_starved = 0\n";
    fs::write(folder.join("r.toml"), text).expect("a suite");
    let command = ["run", "r.toml", "--target", "main=cluster:dyno-cluster"];
    let mut running = RunningDyno::start(folder, &command);
    running.wait_until("three trials", |_| is_stored(folder, 3));
    running.signal(Signal::KILL);
    running.end();
    let first = node_pids();
    assert!(before.iter().zip(&first).all(|(old, new)| old != new), "{before:?}, {first:?}");
    // As if it had been killed in the middle of a restart.
    let mut cluster = cluster;
    cluster = dyno_topology::Cluster::open(cluster.folder()).expect("a cluster");
    let last = cluster.nodes().last().expect("a node").name.clone();
    cluster.stop(&last).expect("it stops");
    let output = dyno(folder, &command);
    output.assert_judged();
    assert!(output.stderr.contains("was restarted before a pair"), "{output}");
    let path = only_run(&folder.join("dyno-runs")).expect("a run");
    let run = dyno_store::read(&path).expect("a run");
    assert_eq!(run.status(), RunStatus::Complete);
    let renewals = &run.header.renewals;
    assert!(renewals.iter().all(|of| of.renewed == Renewed::Server && of.target == "main"));
    assert_eq!(renewals.len(), 2, "{renewals:?}");
    assert!(renewals.iter().all(|of| of.took_s > 0.0));
    assert!(node_pids().iter().zip(&first).all(|(old, new)| old != new));
    let paper = fs::read_to_string(path.join("paper.md")).expect("a paper");
    for words in ["before every 2 pairs", "starts of the servers", "count as 2"] {
        assert!(paper.contains(words), "no `{words}` in the paper");
    }
    let long = dyno(folder, &["compare", "last", "--long"]);
    assert!(long.stdout.contains("One of each takes"), "{long}");
    let down = dyno(folder, &["cluster", "down"]);
    assert_eq!(down.code, 0, "{down}");
}
