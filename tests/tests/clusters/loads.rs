//! Loads of clusters whose nodes end in the middle.

use crate::mine::up;
use dyno_testkit::{RunningDyno, dyno};
use dyno_topology::{EndpointKind, TopologyKind};

/// A load ends with the name of the node that was killed, and goes on once that runs again.
fn names_the_dead(test: &str, topology: TopologyKind, endpoint: Option<EndpointKind>, dead: &str) {
    let mine = up(test, topology, |request| request.endpoint = endpoint);
    let Some(mut mine) = mine else { return };
    let folder = mine.scratch.path().to_owned();
    let suite = "[suite]\nname = \"loads\"\n\n[target.main]\n\n[[experiment]]\nname = \"orders\"\nworkload = \"tpcc\"\n\
                 test = \"bmsql-5.0\"\nterminals = 2\nwarmup_s = 0.5\nduration_s = 2\n\
                 options = { warehouses = 1, load_workers = 2 }\n";
    std::fs::write(folder.join("loads.toml"), suite).expect("a file");
    let run = ["run", "loads.toml", "--target", "main=cluster:c"];
    let mut running = RunningDyno::start(&folder, &run);
    running.wait_until("the load", |running| running.stderr().contains("target main"));
    std::thread::sleep(std::time::Duration::from_millis(500));
    mine.cluster.kill(dead).expect("it runs");
    let ran = running.end();
    assert_eq!(ran.code, 1, "{}", ran.all());
    let named = format!("error: prepare orders on main: {dead} (");
    assert!(ran.stderr.contains(&named), "{}", ran.all());
    assert!(ran.stderr.contains("is dead; its log ends with"), "{}", ran.all());
    mine.cluster.start(dead).expect("it starts again");
    let ran = dyno(&folder, &run);
    assert_eq!(ran.code, 0, "{}", ran.all());
}

#[test]
fn a_load_names_the_server_that_died() {
    names_the_dead("a_load_names_the_server_that_died", TopologyKind::Mariadb, None, "n1");
}

#[test]
fn a_load_names_the_proxy_that_died() {
    let kind = Some(EndpointKind::Shardingsphere);
    names_the_dead("a_load_names_the_proxy_that_died", TopologyKind::Sharded, kind, "endpoint");
}

#[test]
fn a_load_names_the_shard_that_died() {
    let kind = Some(EndpointKind::Shardingsphere);
    names_the_dead("a_load_names_the_shard_that_died", TopologyKind::Sharded, kind, "n2");
}
