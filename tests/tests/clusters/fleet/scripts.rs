//! A sysbench script of the user's own travels with the plan.

use super::{Stage, json, members, sum};
use dyno_testkit::{MariaDb, Nats, server_or_skip, skipped};
use std::fs;

const SUITE: &str = r#"
[suite]
name = "fleet"
title = "Fleet"
sample_servers = false
retry_starved = 0
[target.main]
[[experiment]]
name = "own"
workload = "lua"
script = "own.lua"
commands = ["double"]
options = { rows = 20 }
workers = [4]
events = 100
cleanup = true
"#;

/// Each worker writes rows under its own number; `init` and `done` are executed by who coordinates.
const SCRIPT: &str = r#"
sysbench.cmdline.options = { rows = {"rows", 10} }
sysbench.cmdline.commands = { double = { function()
   sysbench.sql.driver():connect():query("INSERT INTO own SELECT id + 1000, 0 FROM own")
end } }
function prepare()
   local con = sysbench.sql.driver():connect()
   con:query("CREATE TABLE own (id INTEGER PRIMARY KEY, n INT)")
   for i = 1, sysbench.opt.rows do con:query("INSERT INTO own VALUES (" .. i .. ", 0)") end
   con:query("CREATE TABLE seen (tid INT, id BIGINT UNIQUE)")
end
function init() sysbench.sql.driver():connect():query("INSERT INTO seen VALUES (-1, -1)") end
function done() sysbench.sql.driver():connect():query("INSERT INTO seen VALUES (-2, -2)") end
function thread_init() con = sysbench.sql.driver():connect() end
function event(tid)
   con:query("INSERT INTO seen VALUES (" .. tid .. ", " .. sysbench.rand.unique() .. ")")
end
function cleanup() sysbench.sql.driver():connect():query("DROP TABLE own") end
"#;

#[test]
fn a_script_travels_with_the_plan_where_load_generators_allow_it() {
    let name = "a_script_travels_with_the_plan_where_load_generators_allow_it";
    let server = server_or_skip!(MariaDb, name);
    let nats = match Nats::start() {
        Ok(nats) => nats,
        Err(why) => return skipped(name, &why),
    };
    let mut stage = Stage::new(&nats.url(""), &[]);
    stage.add_with("a", &["--allow-scripts"]);
    stage.add_with("b", &["--allow-scripts"]);
    fs::write(stage.scratch.file("own.lua"), SCRIPT).expect("a script");
    let output = stage.run(&stage.suite(SUITE), &server.url(), &[]);
    assert_eq!(output.code, 0, "{output}");
    let run = stage.only_run();
    let trial = json(&run.join("trials/1.json"));
    assert_eq!(sum(members(&trial), "committed"), 100);
    // Numbers of workers and unique numbers are those of one trial; init and done came once.
    let database = server.url();
    let database = database.rsplit('/').next().and_then(|name| name.split('?').next());
    let query =
        format!("SELECT count(*), count(DISTINCT tid) FROM {}.seen", database.expect("a name"));
    let counts = server.sql(&query).expect("rows");
    assert_eq!(counts.split_whitespace().collect::<Vec<_>>(), ["102", "6"], "{counts}");
    let plan = fs::read_to_string(run.join("run.json")).expect("a header");
    assert!(plan.contains("\"sha256\""), "the hash of the script stands in the run folder");

    let mut sealed = Stage::new(&nats.url(""), &[]);
    sealed.add("c");
    drop(stage);
    fs::write(sealed.scratch.file("own.lua"), SCRIPT).expect("a script");
    server.sql(&format!("DROP TABLE {}.seen", database.expect("a name"))).expect("dropped");
    let sealed_run = sealed.run(&sealed.suite(SUITE), &server.url(), &[]);
    assert_ne!(sealed_run.code, 0, "{sealed_run}");
    assert!(sealed_run.to_string().contains("may not execute Lua scripts"), "{sealed_run}");
    assert!(sealed_run.to_string().contains("--allow-scripts"), "{sealed_run}");
}
