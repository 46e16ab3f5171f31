//! Two servers that are measured at once: they get the same arrivals, and what a transaction costs each is compared.

use dyno_testkit::{Postgres, Scratch, dyno, only_run, server_or_skip};
use serde_json::Value;
use std::fs;
use std::path::Path;

fn json(path: &Path) -> Value {
    let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{path:?}: {error}"));
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{path:?}: {error}"))
}

fn write_suite(folder: &Path, [a, b]: [&Postgres; 2], keys: &str) {
    let text = format!(
        "[suite]\nname = \"s\"\n[target.a]\nurl = \"{}\"\n[target.b]\nurl = \"{}\"\n[[experiment]]\nname = \"e\"\n\
         workload = \"pgbench\"\ntest = \"simple-update\"\nworkers = 2\n{keys}\n",
        a.url(),
        b.url()
    );
    fs::write(folder.join("s.toml"), text).expect("a suite");
}

#[test]
fn a_server_that_needs_more_cpu_for_the_same_arrivals_is_found() {
    let test = "a_server_that_needs_more_cpu_for_the_same_arrivals_is_found";
    let (a, b) = (server_or_skip!(Postgres, test), server_or_skip!(Postgres, test));
    let scratch = Scratch::new();
    let folder = scratch.path();
    write_suite(folder, [&a, &b], "events = 1\ncleanup = false");
    assert_eq!(dyno(folder, &["run", "s.toml", "--dir", "load"]).code, 0);
    b.sbtest(
        "CREATE FUNCTION waste() RETURNS trigger LANGUAGE plpgsql AS 'DECLARE i int; BEGIN FOR i IN 1..5000 LOOP \
         PERFORM 1; END LOOP; RETURN NEW; END'; CREATE TRIGGER waste AFTER UPDATE ON pgbench_accounts FOR EACH ROW \
         EXECUTE FUNCTION waste()",
    )
    .expect("a trigger");
    let compare = "compare = { baseline = \"a\", candidates = \"b\", design = \"together\", until_decided = true, \
                   pairs = \"24..96\" }";
    let keys = format!(
        "rate = 20\nwarmup_s = 0.5\nduration_s = 12\ninterval_s = 0.5\nprepare = false\ncleanup = false\n{compare}"
    );
    write_suite(folder, [&a, &b], &keys);
    let ran = dyno(folder, &["run", "s.toml", "--dir", "runs"]);
    assert_eq!(ran.code, 5, "{}", ran.all());
    let run = only_run(&folder.join("runs")).expect("a run");
    let both = [1, 2].map(|number| json(&run.join(format!("trials/{number}.json"))));
    let targets: Vec<&Value> = both.iter().map(|trial| &trial["target"]).collect();
    assert!(targets.contains(&&Value::from("a")) && targets.contains(&&Value::from("b")));
    assert_eq!(both[0]["offered"], both[1]["offered"], "they get the same arrivals");
    assert_eq!(both[0]["rate_per_s"], 20.0);
    assert!(
        both.iter().all(|trial| trial["intervals"].as_array().is_some_and(|of| of.len() == 24))
    );
    let paper = json(&run.join("paper.json"));
    let comparison = &paper["verdicts"][0];
    assert_eq!(comparison["order"], "together", "{comparison}");
    let row = &comparison["rows"][0];
    assert_eq!(
        (&row["metric"], &row["call"]),
        (&"server_cpu_us".into(), &"slower".into()),
        "{row}"
    );
    assert!(row["ratio"].as_f64().is_some_and(|ratio| ratio > 2.0), "{row}");
    // A server that waits costs no CPU, and is not called equal.
    b.sbtest(
        "CREATE OR REPLACE FUNCTION waste() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(0.01); RETURN NEW; \
         END'",
    )
    .expect("a function");
    let compare =
        "compare = { baseline = \"a\", candidates = \"b\", design = \"together\", pairs = 40 }";
    let keys = format!(
        "rate = 20\nwarmup_s = 0.5\nduration_s = 20\ninterval_s = 0.5\nprepare = false\ncleanup = false\n{compare}"
    );
    write_suite(folder, [&a, &b], &keys);
    let waiting = dyno(folder, &["run", "s.toml", "--dir", "waiting"]);
    assert_eq!(waiting.code, 5, "{}", waiting.all());
    let run = only_run(&folder.join("waiting")).expect("a run");
    let paper = json(&run.join("paper.json"));
    let rows = paper["verdicts"][0]["rows"].as_array().expect("rows");
    let latency = rows.iter().find(|row| row["metric"] == "mean_ms").expect("a row");
    assert_eq!(latency["call"], "slower", "{latency}");
}

#[test]
fn what_is_missing_on_one_side_ends_the_trials_of_both() {
    let test = "what_is_missing_on_one_side_ends_the_trials_of_both";
    let (a, b) = (server_or_skip!(Postgres, test), server_or_skip!(Postgres, test));
    let scratch = Scratch::new();
    let folder = scratch.path();
    write_suite(folder, [&a, &b], "events = 1\ncleanup = false");
    assert_eq!(dyno(folder, &["run", "s.toml", "--dir", "load"]).code, 0);
    b.sbtest("DROP TABLE pgbench_accounts").expect("dropped");
    let compare = "compare = { baseline = \"a\", candidates = \"b\", design = \"together\" }";
    let keys = format!("rate = 20\nduration_s = 4\nprepare = false\ncleanup = false\n{compare}");
    write_suite(folder, [&a, &b], &keys);
    let ran = dyno(folder, &["run", "s.toml", "--dir", "runs"]);
    assert_eq!(ran.code, 1, "{}", ran.all());
    assert!(ran.stderr.contains("pgbench_accounts"), "{}", ran.all());
}
