//! Restarts and reloads before pairs, and runs that continue with them.

use dyno_facts::{Renewed, RunStatus};
use dyno_store::RunData;
use dyno_testkit::{RunningDyno, Scratch, dyno, is_stored, only_run};
use rustix::process::Signal;
use std::fs;
use std::path::Path;

/// Writes `s.toml`; commands of the targets note what is restarted.
fn suite(folder: &Path, keys: &str) {
    let target_table = |name: &str| {
        format!(
            "[target.{name}]\nurl = \"sqlite:{name}.db\"\nrestart = \"echo $DYNO_TARGET >> restarted\"\n"
        )
    };
    let text = format!(
        "[suite]\nname = \"s\"\nretry_starved = 0\n{}{}[[experiment]]\nname = \"e\"\nworkload = \"sysbench\"\n\
         test = \"oltp_point_select\"\noptions = {{ tables = 1, table_size = 100 }}\n{keys}\n",
        target_table("old"),
        target_table("new")
    );
    fs::write(folder.join("s.toml"), text).expect("a suite can be written");
}

fn restarted(folder: &Path) -> Vec<String> {
    let text = fs::read_to_string(folder.join("restarted")).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

fn data(folder: &Path) -> RunData {
    let path = only_run(&folder.join("dyno-runs")).expect("there is a run");
    dyno_store::read(&path).expect("a run")
}

/// The steps before which so much was renewed, of each target in order.
fn renewed_steps(run: &RunData, what: Renewed, target: &str) -> Vec<String> {
    let renewals = run
        .header
        .renewals
        .iter()
        .filter(|renewal| renewal.renewed == what && renewal.target == target);
    renewals
        .map(|renewal| renewal.step.split_once(&format!("{target}/")).expect("a step").1.to_owned())
        .collect()
}

#[test]
fn servers_are_restarted_and_data_reloaded_before_the_first_of_some_pairs() {
    let scratch = Scratch::new();
    let folder = scratch.path();
    suite(
        folder,
        "workers = [1, 2]\nevents = 20\nrestart_each = 2\nreload_each = 4\n\
         compare = { baseline = \"old\", candidates = \"new\", pairs = 6 }",
    );
    let output = dyno(folder, &["run", "s.toml"]);
    output.assert_judged();
    let run = data(folder);
    // Whole loads: eight pairs, at two levels.
    assert_eq!(run.trials.len(), 8 * 2 * 2);
    for target in ["old", "new"] {
        let starts = renewed_steps(&run, Renewed::Server, target);
        let repeats: Vec<&str> =
            starts.iter().filter_map(|id| Some(id.split_once("/repeat=")?.1)).collect();
        assert_eq!(repeats, ["1", "3", "5", "7"]);
        // What was just prepared is loaded.
        let loads = renewed_steps(&run, Renewed::Data, target);
        assert!(loads.len() == 1 && loads[0].ends_with("repeat=5"), "{loads:?}");
        assert_eq!(restarted(folder).iter().filter(|name| *name == target).count(), 4);
    }
}

#[test]
fn a_target_that_is_compared_with_itself_has_a_start_for_each_trial() {
    let scratch = Scratch::new();
    let folder = scratch.path();
    suite(
        folder,
        "workers = 1\nevents = 20\nrestart_each = \"pair\"\n\
         compare = { baseline = \"old\", aa = true, pairs = 3 }",
    );
    let output = dyno(folder, &["run", "s.toml"]);
    output.assert_judged();
    assert_eq!(restarted(folder), ["old"; 6]);
    // With a start for some pairs, both share it.
    fs::remove_file(folder.join("restarted")).expect("it was written");
    suite(
        folder,
        "workers = 1\nevents = 20\nrestart_each = 3\n\
         compare = { baseline = \"old\", aa = true, pairs = 3 }",
    );
    let output = dyno(folder, &["run", "s.toml"]);
    output.assert_judged();
    assert_eq!(restarted(folder), ["old"]);
}

#[test]
fn a_run_that_goes_on_renews_only_what_no_trial_has_used() {
    let scratch = Scratch::new();
    let folder = scratch.path();
    suite(
        folder,
        "workers = 1\nduration_s = 0.5\nrestart_each = 2\n\
         compare = { baseline = \"old\", candidates = \"new\", pairs = 4 }",
    );
    let command = ["run", "s.toml"];
    let mut running = RunningDyno::start(folder, &command);
    running.wait_until("three trials", |_| is_stored(folder, 3));
    running.signal(Signal::KILL);
    running.end();
    assert_eq!(restarted(folder).len(), 2);
    let output = dyno(folder, &command);
    output.assert_judged();
    assert!(output.stderr.contains("Resuming "), "{output}");
    let run = data(folder);
    assert_eq!(run.status(), RunStatus::Complete);
    assert_eq!(restarted(folder).len(), 4, "the second pair goes on with the first start");
    for target in ["old", "new"] {
        assert_eq!(renewed_steps(&run, Renewed::Server, target).len(), 2);
    }
}

#[test]
fn servers_that_nobody_can_restart_are_found_before_anything_is_done() {
    let scratch = Scratch::new();
    let folder = scratch.path();
    suite(folder, "workers = 1\nevents = 20\nrestart_each = \"pair\"\ntargets = \"old\"");
    let text = fs::read_to_string(folder.join("s.toml")).expect("a suite");
    let text = text.replace("restart = \"echo $DYNO_TARGET >> restarted\"\n", "");
    fs::write(folder.join("s.toml"), text).expect("a suite can be written");
    let output = dyno(folder, &["run", "s.toml"]);
    assert_eq!(output.code, 2, "{output}");
    assert!(output.stderr.contains("has not started the servers of the target old"), "{output}");
    assert!(output.stderr.contains("restart = \"COMMAND\""), "{output}");
    assert!(only_run(&folder.join("dyno-runs")).is_none());
}

#[test]
fn a_command_that_fails_ends_the_run() {
    let scratch = Scratch::new();
    let folder = scratch.path();
    suite(folder, "workers = 1\nevents = 20\nrestart_each = \"pair\"\ntargets = \"old\"");
    let text = fs::read_to_string(folder.join("s.toml")).expect("a suite");
    fs::write(folder.join("s.toml"), text.replace("echo $DYNO_TARGET >> restarted", "exit 7"))
        .expect("a suite can be written");
    let output = dyno(folder, &["run", "s.toml"]);
    assert_eq!(output.code, 1, "{output}");
    let message = "The command that restarts the server failed: exit status: 7.";
    assert!(output.stderr.contains(message), "{output}");
}
