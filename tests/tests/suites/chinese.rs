//! The Chinese paper of a run of all workloads, as they write it themselves.

use dyno_testkit::{Scratch, dyno, english_in_chinese_paper, only_run};
use std::fs;

const SUITE: &str = r#"
[suite]
name = "all"
[target.main]
url = "sqlite:{run}/all.db"

[[experiment]]
name = "sysbench"
workload = "sysbench"
test = "oltp_read_write"
options = { tables = 1, table_size = 200 }
workers = [1, 2]
events = 20
repeats = 2

[[experiment]]
name = "pgbench"
workload = "pgbench"
test = "tpcb-like"
options = { scale = 1 }
workers = 1
events = 20

[[experiment]]
name = "tpcc"
workload = "tpcc"
test = "bmsql-5.0"
options = { warehouses = 1 }
terminals = 1
events = 40

[[experiment]]
name = "tpch"
workload = "tpch"
test = "queries"
options = { scale = 0.01 }
"#;

#[test]
fn a_paper_of_all_workloads_is_chinese() {
    let scratch = Scratch::new();
    fs::write(scratch.file("all.toml"), SUITE).expect("a suite");
    let output = dyno(scratch.path(), &["run", "all.toml"]);
    assert_eq!(output.code, 0, "{output}");
    let run = only_run(&scratch.file("dyno-runs")).expect("a run");
    let english = english_in_chinese_paper(scratch.path(), &run);
    assert!(english.is_empty(), "{} without Chinese: {english:#?}", english.len());
}
