//! Loads and targets of people's own: statements, scripts, plans that are only shown, `dyno bench`.

use dyno_facts::{RunStatus, TrialStatus};
use dyno_testkit::{Scratch, dyno, only_run};
use std::fs;

const SUITE: &str = r#"
[suite]
name = "own"
[[experiment]]
name = "script"
workload = "lua"
script = "own.lua"
options = { rows = 50 }
workers = 2
events = 100
[[experiment]]
name = "mix"
statements = ["SELECT n FROM own WHERE id = :id @9", "UPDATE own SET n = n + 1 WHERE id = :id"]
parameters = { rows = 50, id = "uniform(1, rows)" }
workers = 2
events = 200
[[experiment]]
name = "pgbench"
workload = "pgbench"
test = "script"
options = { scripts = "own.sql" }
prepare = false
cleanup = false
workers = 1
events = 50
"#;

const SCRIPT: &str = r#"
sysbench.cmdline.options = { rows = {"rows", 10} }
function prepare()
   local con = sysbench.sql.driver():connect()
   con:query("CREATE TABLE own (id INTEGER PRIMARY KEY, n INT)")
   for i = 1, sysbench.opt.rows do con:query("INSERT INTO own VALUES (" .. i .. ", 0)") end
end
function thread_init() con = sysbench.sql.driver():connect() end
function event()
   con:query("SELECT n FROM own WHERE id = " .. sysbench.rand.uniform(1, sysbench.opt.rows))
end
"#;

#[test]
fn scripts_and_plain_statements_stand_in_one_suite() {
    let scratch = Scratch::new();
    let folder = scratch.path();
    for (name, text) in
        [("own.toml", SUITE), ("own.lua", SCRIPT), ("own.sql", "SELECT count(*) FROM own;\n")]
    {
        fs::write(folder.join(name), text).expect("a file");
    }
    let run = ["run", "own.toml", "--target", "mine=sqlite:{run}/own.db"];
    let shown = dyno(folder, &[&run[..], &["--plan"]].concat());
    assert_eq!(shown.code, 0, "{}", shown.all());
    assert!(shown.stdout.contains("2 workers, 200 transactions, repeat 1"), "{}", shown.all());
    assert!(!folder.join("dyno-runs").exists(), "nothing is executed");
    let ran = dyno(folder, &run);
    assert_eq!(ran.code, 0, "{}", ran.all());
    let path = only_run(&folder.join("dyno-runs")).expect("a run");
    let data = dyno_store::read(&path).expect("a run");
    assert_eq!(data.status(), RunStatus::Complete);
    let counted: Vec<u64> =
        data.trials.iter().map(|trial| trial.summary.counts.committed).collect();
    assert_eq!(counted, [100, 200, 50]);
    assert!(data.trials.iter().all(|trial| trial.summary.status == TrialStatus::Complete));
    let paper = fs::read_to_string(path.join("paper.html")).expect("a paper");
    assert!(paper.contains("sysbench.cmdline.options"), "the script stands in the paper");
}

#[test]
fn a_bench_does_nothing_before_it_is_allowed_to() {
    let scratch = Scratch::new();
    let folder = scratch.path();
    let asked = dyno(folder, &["bench", "sqlite:own.db"]);
    assert_eq!(asked.code, 1, "{}", asked.all());
    for told in ["these tables are created, and dropped in the end: sbtest1", "Begin? [y/N]"] {
        assert!(asked.stderr.contains(told), "{}", asked.all());
    }
    let short = dyno(folder, &["bench", "sqlite:own.db", "--budget", "5s", "--yes"]);
    assert!(short.stderr.contains("more than the budget of 5 s"), "{}", short.all());
    // A table that it would need.
    let prepare = ["sysbench", "--db-driver=sqlite", "--sqlite-db=own.db", "--table-size=10"];
    let made = dyno(folder, &[&prepare[..], &["oltp_read_only", "prepare"]].concat());
    assert_eq!(made.code, 0, "{}", made.all());
    let refused = dyno(folder, &["bench", "sqlite:own.db", "--yes"]);
    assert_eq!(refused.code, 1, "{}", refused.all());
    assert!(refused.stderr.contains("the names that are needed: sbtest1."), "{}", refused.all());
    assert!(!folder.join("dyno-runs").exists());
}

#[test]
fn a_list_of_threads_ends_with_one_table() {
    let scratch = Scratch::new();
    let folder = scratch.path();
    let of = |words: &[&str]| {
        let database = ["sysbench", "--db-driver=sqlite", "--sqlite-db=own.db", "--table-size=50"];
        dyno(folder, &[&database[..], words].concat())
    };
    assert_eq!(of(&["oltp_point_select", "prepare"]).code, 0);
    let swept = of(&["--threads=1,2", "--events=50", "--time=0", "oltp_point_select", "run"]);
    assert_eq!(swept.code, 0, "{}", swept.all());
    for threads in ["Number of threads: 1", "Number of threads: 2"] {
        assert!(swept.stdout.contains(threads), "{}", swept.all());
    }
    let table: Vec<&str> = swept.stdout.lines().rev().take(3).map(str::trim).collect();
    assert!(table[2].starts_with("threads") && table[0].starts_with("2 "), "{}", swept.all());
    let json = of(&["--threads=1,2", "--json=x.json", "oltp_point_select", "run"]);
    assert_eq!(json.code, 1, "{}", json.all());
    assert!(!folder.join("x.json").exists());
}
