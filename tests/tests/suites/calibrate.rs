//! `dyno calibrate --effects`: known effects on the null server and on real databases, in a few seconds. What is found
//! depends on the machine; that there is a table, and nothing else is left, does not.

use dyno_testkit::{
    MariaDb, Postgres, RunningDyno, Scratch, dyno, only_run, server_or_skip, wait_until,
};
use rustix::process::Signal;
use serde_json::Value;
use std::fs;
use std::path::Path;

fn kept(folder: &Path) -> Value {
    let file = folder.join(".local/state/dyno/calibration.json");
    let text = fs::read(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    serde_json::from_slice(&text).expect("JSON")
}

#[test]
fn known_effects_on_the_null_server_are_kept_and_stand_in_papers() {
    let scratch = Scratch::new();
    let folder = scratch.path();
    let ran = dyno(folder, &["calibrate", "--workers", "1", "--seconds", "0.2"]);
    assert_eq!(ran.code, 0, "{}", ran.all());
    let ran = dyno(folder, &["calibrate", "--effects", "10%,30%", "--budget", "6s"]);
    assert_eq!(ran.code, 0, "{}", ran.all());
    let head = ran.stdout.lines().next().expect("a table");
    assert!(head.starts_with("effect") && head.contains("95% interval"), "{head}");
    assert!(ran.stdout.contains("none"), "{}", ran.stdout);
    assert!(
        ran.stderr.contains("and none, on the null server: at most about 6 seconds"),
        "{}",
        ran.all()
    );
    let kept = kept(folder);
    let effects = kept["effects"].as_array().expect("effects");
    assert_eq!(effects.len(), 3, "{kept}");
    assert_eq!(
        (&effects[0]["effect"], &effects[0]["target"]),
        (&0.0.into(), &"null server".into())
    );
    assert!(effects.iter().all(|of| of["pairs"].as_u64() >= Some(1)), "{kept}");
    assert_eq!(
        kept["points"].as_array().map(Vec::len),
        Some(2),
        "what was known before stays: {kept}"
    );

    let text = "[suite]\nname = \"s\"\nretry_starved = 0\n[target.main]\nurl = \"sqlite:a.db\"\n[[experiment]]\nname = \"e\"\n\
                workload = \"sysbench\"\ntest = \"oltp_point_select\"\nworkers = [1]\nduration_s = 1\n\
                options = { tables = 1, table_size = 100 }\n";
    fs::write(folder.join("s.toml"), text).expect("a suite");
    let ran = dyno(folder, &["run", "s.toml"]);
    assert_eq!(ran.code, 0, "{}", ran.all());
    let run = only_run(&folder.join("dyno-runs")).expect("a run");
    let paper = fs::read_to_string(run.join("paper.md")).expect("a paper");
    assert!(paper.contains("Known effects injected on this machine"), "{paper}");
    let wrong = dyno(folder, &["calibrate", "--effects", "90%"]);
    assert_eq!(wrong.code, 2, "{}", wrong.all());
}

/// Known effects on a server, to the end and stopped; `tables` counts dyno's tables there.
fn on_a_server(url: &str, tables: &dyn Fn() -> String) {
    let scratch = Scratch::new();
    let folder = scratch.path();
    let on = ["calibrate", "--effects", "20%", "--target", url, "--budget"];
    let ran = dyno(folder, &[&on[..], &["4s"]].concat());
    assert_eq!(ran.code, 0, "{}", ran.all());
    let kept = kept(folder);
    let effects = kept["effects"].as_array().expect("effects");
    // Trials of a tenth of a second may be too short for the CPU time of a server.
    let of_throughput = effects.iter().filter(|of| of["metric"] == "tps").count();
    assert_eq!(of_throughput, 2, "{kept}");
    assert_eq!(tables(), "0");

    let mut running = RunningDyno::start(folder, &[&on[..], &["10m"]].concat());
    wait_until("the table", || tables() == "1");
    running.signal(Signal::INT);
    let ran = running.end();
    assert_eq!(ran.code, 130, "{}", ran.all());
    assert!(ran.stderr.contains("interrupted; nothing was kept"), "{}", ran.all());
    assert_eq!(tables(), "0", "{}", ran.all());
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
