//! `dyno calibrate --effects`: known effects on the null server and on real databases, in a few seconds. What is found
//! depends on the machine; that there is a table, and nothing else is left, does not.

use dyno_testkit::{
    MariaDb, Postgres, RunningDyno, Scratch, dyno, only_run, server_or_skip, wait_until,
};
use rustix::process::Signal;
use serde_json::Value;
use std::fs;
use std::path::Path;

fn read_calibration(folder: &Path) -> Value {
    let file = folder.join(".local/state/dyno/calibration.json");
    let text = fs::read(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    serde_json::from_slice(&text).expect("JSON")
}

#[test]
fn known_effects_on_the_null_server_are_kept_and_stand_in_papers() {
    let scratch = Scratch::new();
    let folder = scratch.path();
    let output = dyno(folder, &["calibrate", "--workers", "1", "--seconds", "0.2"]);
    assert_eq!(output.code, 0, "{output}");
    let output = dyno(folder, &["calibrate", "--effects", "10%,30%", "--budget", "6s"]);
    assert_eq!(output.code, 0, "{output}");
    let head = output.stdout.lines().next().expect("a table");
    assert!(head.starts_with("effect") && head.contains("95% interval"), "{head}");
    assert!(output.stdout.contains("none"), "{}", output.stdout);
    assert!(
        output.stderr.contains("and none, on the null server: at most about 6 seconds"),
        "{output}"
    );
    let calibration = read_calibration(folder);
    let effects = calibration["effects"].as_array().expect("effects");
    assert_eq!(effects.len(), 3, "{calibration}");
    assert_eq!(
        (&effects[0]["effect"], &effects[0]["target"]),
        (&0.0.into(), &"null server".into())
    );
    assert!(effects.iter().all(|effect| effect["pairs"].as_u64() >= Some(1)), "{calibration}");
    assert_eq!(
        calibration["points"].as_array().map(Vec::len),
        Some(2),
        "what was known before stays: {calibration}"
    );

    let text = "[suite]\nname = \"s\"\nretry_starved = 0\n[target.main]\nurl = \"sqlite:a.db\"\n[[experiment]]\nname = \"e\"\n\
                workload = \"sysbench\"\ntest = \"oltp_point_select\"\nworkers = [1]\nduration_s = 1\n\
                options = { tables = 1, table_size = 100 }\n";
    fs::write(folder.join("s.toml"), text).expect("a suite");
    let output = dyno(folder, &["run", "s.toml"]);
    assert_eq!(output.code, 0, "{output}");
    let run = only_run(&folder.join("dyno-runs")).expect("a run");
    let paper = fs::read_to_string(run.join("paper.md")).expect("a paper");
    assert!(paper.contains("Known effects injected on this machine"), "{paper}");
    let wrong = dyno(folder, &["calibrate", "--effects", "90%"]);
    assert_eq!(wrong.code, 2, "{wrong}");
}

/// Known effects on a server, to the end and stopped; `tables` counts dyno's tables there.
fn on_a_server(url: &str, tables: &dyn Fn() -> String) {
    let scratch = Scratch::new();
    let folder = scratch.path();
    let command = ["calibrate", "--effects", "20%", "--target", url, "--budget"];
    let output = dyno(folder, &[&command[..], &["4s"]].concat());
    assert_eq!(output.code, 0, "{output}");
    let calibration = read_calibration(folder);
    let effects = calibration["effects"].as_array().expect("effects");
    // Trials of a tenth of a second may be too short for the CPU time of a server.
    let throughput_effects = effects.iter().filter(|effect| effect["metric"] == "tps").count();
    assert_eq!(throughput_effects, 2, "{calibration}");
    assert_eq!(tables(), "0");

    let mut running = RunningDyno::start(folder, &[&command[..], &["10m"]].concat());
    wait_until("the table", || tables() == "1");
    running.signal(Signal::INT);
    let output = running.end();
    assert_eq!(output.code, 130, "{output}");
    assert!(output.stderr.contains("interrupted; nothing was kept"), "{output}");
    assert_eq!(tables(), "0", "{output}");
}

const TABLES: &str =
    "SELECT count(*) FROM information_schema.tables WHERE table_name = 'dyno_calibrate'";

#[test]
fn known_effects_on_mariadb_leave_nothing() {
    let server = server_or_skip!(MariaDb, "known_effects_on_mariadb_leave_nothing");
    on_a_server(&server.url(), &|| server.sql(TABLES).expect("an answer").trim().to_owned());
}

#[test]
fn known_effects_on_postgres_leave_nothing() {
    let server = server_or_skip!(Postgres, "known_effects_on_postgres_leave_nothing");
    on_a_server(&server.url(), &|| server.sbtest(TABLES).expect("an answer").trim().to_owned());
}
