//! Embedded DuckDB as a target: TPC-H where dyno is built with it, and a clear word where it isn't.

use dyno_testkit::{Ran, Scratch};
use std::fs;
use std::path::Path;

fn dyno(folder: &Path, words: &str) -> Ran {
    dyno_testkit::dyno(folder, &words.split(' ').collect::<Vec<_>>())
}

#[cfg(not(feature = "duckdb"))]
#[test]
fn a_dyno_without_duckdb_says_so() {
    let folder = Scratch::new();
    let ran = dyno(folder.path(), "tpch load --scale 0.01 --target duckdb:x.db");
    assert_eq!(ran.code, 1, "{ran:?}");
    let stderr = &ran.stderr;
    assert!(stderr.contains("this dyno was built without DuckDB"), "{stderr}");
    assert!(stderr.contains("hint: "), "{stderr}");
    assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 0);
}

#[cfg(feature = "duckdb")]
#[test]
fn duckdb_gives_the_right_answers_at_two_degrees() {
    let folder = Scratch::new();
    let folder = folder.path();
    let refused = dyno(folder, "tpch load --scale 0.01 --target duckdb:tpch.db");
    assert_eq!(refused.code, 2, "{refused:?}");
    assert!(refused.stderr.contains("--no-foreign-keys"), "{refused:?}");

    let load = "tpch load --scale 0.01 --sessions 2 --no-foreign-keys --target duckdb:tpch.db";
    let loaded = dyno(folder, load);
    assert_eq!(loaded.code, 0, "{}\n{}", loaded.stdout, loaded.stderr);
    assert!(loaded.stderr.contains("rows loaded by appender"), "{}", loaded.stderr);
    let ran = dyno(folder, "tpch run --scale 0.01 --degree 0,2 --target duckdb:tpch.db");
    let (stdout, stderr) = (&ran.stdout, &ran.stderr);
    assert_eq!(ran.code, 0, "{stdout}\n{stderr}");
    assert!(stdout.ends_with("answers: 22 of 22 correct\n"), "{stdout}\n{stderr}");
    let run = fs::read_dir(folder.join("dyno-runs")).expect("a run").next().expect("a run");
    let run = run.expect("a run").path();
    let degrees: Vec<String> = (1..=2)
        .map(|number| {
            let summary = fs::read_to_string(run.join(format!("trials/{number}.json")));
            let summary: serde_json::Value =
                serde_json::from_str(&summary.expect("a trial")).expect("JSON");
            assert_eq!(summary["status"], "complete", "{summary:#}");
            summary["own"]["facts"]["degree"]["statements"].to_string()
        })
        .collect();
    assert!(degrees.contains(&"[\"set threads = 2\"]".to_owned()), "{degrees:?}");
    assert!(degrees.contains(&"[\"set threads = 1\"]".to_owned()), "{degrees:?}");
    other_workloads_refuse_it(folder);
}

#[cfg(feature = "duckdb")]
fn other_workloads_refuse_it(folder: &Path) {
    for (workload, test) in
        [("sysbench", "oltp_read_only"), ("pgbench", "tpcb-like"), ("tpcc", "bmsql-5.0")]
    {
        let suite = format!(
            "[suite]\nname = \"other\"\n[target.duck]\nurl = \"duckdb:other.db\"\n[[experiment]]\n\
             name = \"one\"\nworkload = \"{workload}\"\ntest = \"{test}\"\nevents = 10\nworkers = 1\n"
        );
        fs::write(folder.join("other.toml"), suite).expect("the folder can be written");
        let ran = dyno(folder, "run other.toml");
        assert_eq!(ran.code, 2, "{ran:?}");
        let stderr = &ran.stderr;
        assert!(
            stderr.contains(&format!("`{workload}` is not made for an analytical database")),
            "{stderr}"
        );
        assert!(stderr.contains("hint: of all workloads, only tpch"), "{stderr}");
    }
}
