//! Each load generator on a read-only node of its own, and what a load generator's own user lets it reach.

use super::{READS, Stage, json, members};
use crate::mine::{Mine, up_three};
use dyno_testkit::{Nats, RunningDyno, dyno, dyno_command, server_or_skip};
use dyno_topology::TopologyKind;
use serde_json::Value;
use std::fs;
use std::path::Path;

/// Prepared statements that each node has executed: only the load has any.
fn executed(mine: &Mine) -> [u64; 3] {
    let sql = "SELECT variable_value FROM information_schema.global_status \
               WHERE variable_name = 'Com_stmt_execute'";
    ["n1", "n2", "n3"].map(|node| mine.number(node, sql))
}

/// Host and port of a node.
fn address(mine: &Mine, node: usize) -> String {
    let node = mine.cluster.node(&format!("n{node}")).expect("a node");
    format!("{}:{}", node.host, node.port)
}

/// A load generator that may reach one address.
fn generator(folder: &Path, nats: &str, name: &str, only: &str, password: &str) -> RunningDyno {
    fs::create_dir_all(folder).expect("made");
    let mut command = dyno_command(folder);
    command.args(["generator", "--nats", nats, "--name", name, "--only-hosts", only]);
    command.env("DYNO_PASSWORD_MAIN", password);
    let mut running = RunningDyno::spawn(folder, command);
    running.wait_until("a load generator", |running| running.stderr().contains("waiting for work"));
    running
}

#[test]
fn each_load_generator_drives_a_node_of_its_own_and_reaches_no_other() {
    let test = "a node for each load generator";
    let nats = server_or_skip!(Nats, test);
    let mut stage = Stage::new(&nats.url(""), &[]);
    let Some(mine) = up_three(test, TopologyKind::Mariadb) else { return };
    let password = mine.password();
    for (name, node) in [("a", 2), ("b", 3)] {
        let folder = stage.scratch.file(name);
        let only = address(&mine, node);
        stage.generators.push(generator(&folder, &stage.nats, name, &only, &password));
    }
    let suite = READS.replace("[target.main]", "[target.main]\nroute = \"spread\"");
    let suite = stage.suite(&suite.replace("duration_s = 3", "duration_s = 2"));
    let before = executed(&mine);
    let cluster = mine.url();
    let output = stage.run(&suite, &cluster, &[]);
    assert_eq!(output.code, 0, "{output}");
    let after = executed(&mine);
    let run = stage.only_run();
    let trial = json(&run.join("trials/1.json"));
    let members = members(&trial);
    let field_values =
        |field: &str| -> Vec<&Value> { members.iter().map(|one| &one[field]).collect() };
    assert_eq!(field_values("nodes"), [&serde_json::json!(["n2"]), &serde_json::json!(["n3"])]);
    assert_eq!(field_values("workers"), [3, 2]);
    assert_eq!(after[0], before[0], "nobody makes load on the primary");
    for (member, node) in members.iter().zip(1..) {
        let (counted, statements) =
            (after[node] - before[node], member["statements"].as_u64().unwrap_or(0));
        let allowed = (counted / 1000).max(5);
        assert!(
            statements > 0 && statements <= counted && counted - statements <= allowed,
            "{statements} of {counted} on n{}",
            node + 1
        );
    }
    let path = run.display().to_string();
    let paper = dyno(stage.scratch.path(), &["paper", &path, "--format", "md", "--out", "p"]);
    assert_eq!(paper.code, 0, "{paper}");
    let paper = fs::read_to_string(stage.scratch.file("p/paper.md")).expect("a paper");
    for text in [
        "Each load generator drove its own read-only node, and no other. The servers' own counts of \
         reads agree with that to ",
        "| n2 | 3 |",
        "| n3 | 2 |",
    ] {
        assert!(paper.contains(text), "{text}: {paper}");
    }
    refused_elsewhere(&stage, &mine, &suite);
    let stored = fs::read_to_string(run.join("run.json")).expect("read");
    let generator_logs: String = stage.generators.iter().map(RunningDyno::stderr).collect();
    assert!(
        !(stored + &output.to_string() + &generator_logs).contains(&password),
        "a password is shown"
    );
}

/// The primary is no one's to drive here.
fn refused_elsewhere(stage: &Stage, mine: &Mine, suite: &str) {
    let before = executed(mine);
    let cluster = mine.url();
    let text = fs::read_to_string(suite).expect("read");
    let suite = stage.suite(&text.replace("spread", "primary"));
    let output = stage.run(&suite, &cluster, &["--dir", "elsewhere"]);
    assert_eq!(output.code, 1, "{output}");
    let place = address(mine, 1);
    let reason = format!(
        "The load generator may not reach {place}: its user has started it with --only-hosts and has not \
         named this address."
    );
    assert!(
        output.stderr.contains("target main: load generator ") && output.stderr.contains(&reason),
        "{output}"
    );
    assert_eq!(executed(mine), before, "nothing was executed, nor loaded before");
}
