//! Two servers that are measured at once: they get the same arrivals, and what a transaction costs each is compared.

use dyno_testkit::{MariaDb, Postgres, Scratch, dyno, only_run, server_or_skip};
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
                   pairs = \"8..24\" }";
    let keys = format!(
        "rate = 20\nwarmup_s = 0.5\nduration_s = 3\ninterval_s = 0.5\nprepare = false\ncleanup = false\n{compare}"
    );
    write_suite(folder, [&a, &b], &keys);
    let output = dyno(folder, &["run", "s.toml", "--dir", "runs"]);
    assert_eq!(output.code, 5, "{output}");
    let run = only_run(&folder.join("runs")).expect("a run");
    let trials = [1, 2].map(|number| json(&run.join(format!("trials/{number}.json"))));
    let targets: Vec<&Value> = trials.iter().map(|trial| &trial["target"]).collect();
    assert!(targets.contains(&&Value::from("a")) && targets.contains(&&Value::from("b")));
    assert_eq!(trials[0]["offered"], trials[1]["offered"], "they get the same arrivals");
    assert_eq!(trials[0]["rate_per_s"], 20.0);
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
    let rows = comparison["rows"].as_array().expect("rows");
    let wal = rows.iter().find(|row| row["metric"] == "server_log_bytes").expect("a row of WAL");
    assert!(wal["baseline"]["median"].as_f64().is_some_and(|bytes| bytes > 100.0), "{wal}");
    // A server that waits costs no CPU, and is not called equal.
    b.sbtest(
        "CREATE OR REPLACE FUNCTION waste() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(0.01); RETURN NEW; \
         END'",
    )
    .expect("a function");
    let compare =
        "compare = { baseline = \"a\", candidates = \"b\", design = \"together\", pairs = 10 }";
    let keys = format!(
        "rate = 20\nwarmup_s = 0.5\nduration_s = 3\ninterval_s = 0.5\nprepare = false\ncleanup = false\n{compare}"
    );
    write_suite(folder, [&a, &b], &keys);
    let waiting = dyno(folder, &["run", "s.toml", "--dir", "waiting"]);
    assert_eq!(waiting.code, 5, "{waiting}");
    let run = only_run(&folder.join("waiting")).expect("a run");
    let paper = json(&run.join("paper.json"));
    let rows = paper["verdicts"][0]["rows"].as_array().expect("rows");
    let latency = rows.iter().find(|row| row["metric"] == "mean_ms").expect("a row");
    assert_eq!(latency["call"], "slower", "{latency}");
}

/// Servers that are reached by several addresses have no process that dyno sees: they count the CPU of statements themselves.
#[test]
fn a_server_that_is_elsewhere_says_what_its_statements_cost() {
    let test = "a_server_that_is_elsewhere_says_what_its_statements_cost";
    let start_server = || MariaDb::start_with(&["--userstat=1"]);
    let (Ok(a), Ok(b)) = (start_server(), start_server()) else {
        return dyno_testkit::skipped(test, "MariaDB can't be started");
    };
    let scratch = Scratch::new();
    let folder = scratch.path();
    let targets: Vec<String> = [("a", &a), ("b", &b)]
        .into_iter()
        .map(|(name, server)| {
            let url = server.url();
            let place =
                url.split(['@', '/']).find(|part| part.contains("127.0.0.1")).expect("a host");
            format!("{name}={}", url.replace(place, &format!("{place},{place}")))
        })
        .collect();
    let text = "[suite]\nname = \"s\"\n[[experiment]]\nname = \"e\"\nworkload = \"sysbench\"\ntest = \"oltp_update_index\"\n\
                options = { tables = 1, table_size = 1000 }\nworkers = 2\nrate = 40\nwarmup_s = 0.5\nduration_s = 3\n\
                interval_s = 0.5\ncompare = { baseline = \"a\", candidates = \"b\", design = \"together\", pairs = 8 }\n";
    fs::write(folder.join("s.toml"), text).expect("a suite");
    let output = dyno(
        folder,
        &["run", "s.toml", "--dir", "runs", "--target", &targets[0], "--target", &targets[1]],
    );
    assert!([0, 3, 5].contains(&output.code), "{output}");
    let run = only_run(&folder.join("runs")).expect("a run");
    let paper = json(&run.join("paper.json"));
    let rows = paper["verdicts"][0]["rows"].as_array().expect("rows");
    assert_eq!(rows[0]["metric"], "server_statement_cpu_us", "{rows:?}");
    assert!(rows[0]["baseline"]["median"].as_f64().is_some_and(|us| us > 10.0), "{rows:?}");
    assert!(rows.iter().any(|row| row["metric"] == "server_log_bytes"), "{rows:?}");
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
    let output = dyno(folder, &["run", "s.toml", "--dir", "runs"]);
    assert_eq!(output.code, 1, "{output}");
    assert!(output.stderr.contains("pgbench_accounts"), "{output}");
}
