//! Loads and trials on clusters whose nodes end or hang in the middle.

use crate::mine::{Mine, ask_as_admin, up};
use dyno_testkit::{RunningDyno, commits, dyno, dyno_command, only_run};
use dyno_topology::{NodeProduct, TopologyKind};
use rustix::process::Signal;
use std::path::Path;

const RUN: [&str; 4] = ["run", "loads.toml", "--target", "main=cluster:c"];

fn write_suite(folder: &Path, duration_s: u32) {
    let suite = format!(
        "[suite]\nname = \"loads\"\n\n[target.main]\n\n[[experiment]]\nname = \"orders\"\nworkload = \"tpcc\"\n\
         test = \"bmsql-5.0\"\nterminals = 2\nwarmup_s = 0.5\nduration_s = {duration_s}\n\
         options = {{ warehouses = 1, load_workers = 2 }}\n"
    );
    std::fs::write(folder.join("loads.toml"), suite).expect("a file");
}

/// A load ends with the name of the node that is killed after it has said `begun`, and `mend` starts it again.
fn load_names(mine: &mut Mine, dead: &str, begun: &str, mend: impl FnOnce(&mut Mine)) {
    let folder = mine.scratch.path().to_owned();
    let mut running = RunningDyno::start(&folder, &RUN);
    running.wait_until("the load", |running| running.stderr().contains(begun));
    std::thread::sleep(std::time::Duration::from_millis(500));
    mine.cluster.kill(dead).expect("it runs");
    let output = running.end();
    assert_eq!(output.code, 1, "{output}");
    // On a slow machine a question before the load meets it, and says the same of the node.
    let error = output.stderr.lines().find(|line| line.starts_with("error: "));
    let error = error.filter(|error| error.contains(&format!("{dead} (")));
    let error = error.filter(|error| error.contains("orders on main: ")).unwrap_or_default();
    assert!(error.contains("is dead; its log "), "{output}");
    mend(mine);
}

/// Resumes the interrupted run to its end.
fn goes_on(mine: &Mine) {
    let output = dyno(mine.scratch.path(), &RUN);
    assert_eq!(output.code, 0, "{output}");
}

fn start(node: &str) -> impl FnOnce(&mut Mine) {
    move |mine| mine.cluster.start(node).expect("it starts again")
}

#[test]
fn a_load_names_the_server_that_died() {
    let mine = up("a_load_names_the_server_that_died", TopologyKind::Mariadb, |_| ());
    let Some(mut mine) = mine else { return };
    write_suite(mine.scratch.path(), 2);
    load_names(&mut mine, "n1", "target main", start("n1"));
    goes_on(&mine);
}

/// The proxy dies in the load, then a shard where it continues.
#[test]
fn a_load_names_the_proxy_and_the_shard_that_died() {
    let Some(mut mine) = sharded("a_load_names_the_proxy_and_the_shard_that_died") else { return };
    write_suite(mine.scratch.path(), 2);
    load_names(&mut mine, "endpoint", "target main", start("endpoint"));
    // What the endpoint wrote to all shards as this one died is missing on it: its copy of the configuration here.
    load_names(&mut mine, "n2", "rows go directly", |mine| {
        start("n2")(mine);
        ask_as_admin(&mine.cluster, "n2", "DELETE FROM bmsql_config");
    });
    goes_on(&mine);
    // The run has dropped its tables.
    a_load_by_another_rule_than_the_endpoint_s_is_refused(&mine);
}

/// Before more than the warehouses and their districts are stored.
fn a_load_by_another_rule_than_the_endpoint_s_is_refused(mine: &Mine) {
    write_suite(mine.scratch.path(), 2);
    let suite = mine.scratch.file("loads.toml");
    let text = std::fs::read_to_string(&suite).expect("a file");
    // The endpoint looks for warehouse 1 on n2.
    let rule = "[target.main]\nshard_rule = \"ranges 1, 2, 3\"\n";
    std::fs::write(&suite, text.replace("[target.main]\n", rule)).expect("a file");
    let output = dyno(mine.scratch.path(), &RUN);
    assert_eq!(output.code, 1, "{output}");
    let difference = "bmsql_warehouse, warehouse 1: the shard n1 has 1 row with the sums ";
    assert!(
        output.stderr.contains(difference) && output.stderr.contains("the endpoint finds no row."),
        "{output}"
    );
    assert_eq!(mine.sql("n1", "SELECT count(*) FROM bmsql_warehouse"), "1");
    assert_eq!(mine.sql("n1", "SELECT count(*) FROM bmsql_stock"), "0");
}

/// A trial ends with the name of the node that does not answer any more, long before its time, and can be repeated.
/// Acknowledged work is compared with the data: at once if the node comes back, else before the run continues.
fn trial_names(
    mine: &mut Mine,
    folder: &str,
    harm: impl FnOnce(&mut Mine),
    mend: impl FnOnce(&mut Mine),
    evidence: &str,
    comes_back: bool,
) {
    let folder = mine.scratch.file(folder);
    std::fs::create_dir(&folder).expect("a folder");
    write_suite(&folder, 3600);
    let target = format!("main={}", mine.url());
    let run = ["run", "loads.toml", "--target", &target];
    let mut mend = Some(mend);
    let mut command = dyno_command(&folder);
    // Six times as long it waits for a node, and a proxy takes its time to start.
    let patience_s = if comes_back { "15" } else { "2" };
    command.env("DYNO_TRIAL_PATIENCE_S", patience_s).args(run);
    let mut running = RunningDyno::spawn(&folder, command);
    running.wait_until("commits", |_| {
        only_run(&folder.join("dyno-runs"))
            .is_some_and(|run| commits(&run, 1).iter().any(|&count| count > 0))
    });
    harm(mine);
    running.wait_until("the node", |running| running.stderr().contains(" s for endpoint: "));
    if let Some(mend) = mend.take_if(|_| comes_back) {
        mend(mine);
    }
    let output = running.end();
    assert_eq!(output.code, 1, "{output}");
    let line = output.stderr.lines().find(|line| line.contains(": failed: "));
    let line = line.unwrap_or_else(|| panic!("{output}"));
    assert!(line.contains("failed: The trial was ended: endpoint "), "{output}");
    assert!(line.contains(evidence), "{output}");
    for check in ["books", "conditions", "ledger", "across-shards"] {
        let not_made = |line: &str| line.contains(check) && line.contains(": not made: ");
        let is_made = !output.stderr.lines().any(not_made);
        assert_eq!(is_made, comes_back, "{check}: {output}");
    }
    let by_hand = "trials/1.ledger --only ledger";
    assert_eq!(output.stderr.contains(by_hand), !comes_back, "{output}");
    assert_eq!(output.stderr.contains("tables dropped"), comes_back, "{output}");
    // Else the run is over, and nothing is owed.
    let Some(mend) = mend else { return };
    mend(mine);
    let mut again = RunningDyno::start(&folder, &run);
    let settled = "(trials/1.ledger): acknowledged ";
    again.wait_until("the next trial", |_| {
        only_run(&folder.join("dyno-runs"))
            .is_some_and(|run| commits(&run, 2).iter().any(|&count| count > 0))
    });
    assert!(again.stderr().contains(settled), "{}", again.stderr());
    again.signal(Signal::TERM);
    again.end();
}

fn sharded(test: &str) -> Option<Mine> {
    up(test, TopologyKind::Sharded, |request| request.endpoint = Some(NodeProduct::Shardingsphere))
}

#[test]
fn a_trial_names_the_proxy_that_died_and_the_one_that_hangs() {
    let test = "a_trial_names_the_proxy_that_died_and_the_one_that_hangs";
    let Some(mut mine) = sharded(test) else { return };
    let harm = |mine: &mut Mine| mine.cluster.kill("endpoint").expect("it runs");
    let mend = |mine: &mut Mine| mine.cluster.start("endpoint").expect("it starts again");
    trial_names(&mut mine, "died", harm, mend, "is dead; its log ", true);
    let harm = |mine: &mut Mine| mine.cluster.freeze("endpoint").expect("it runs");
    let mend = |mine: &mut Mine| mine.cluster.thaw("endpoint").expect("it is frozen");
    let evidence = "does not answer a new connection within";
    trial_names(&mut mine, "hangs", harm, mend, evidence, false);
}
