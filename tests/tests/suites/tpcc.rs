//! TPC-C in suites on real databases: the white paper's suite at a thousandth of its size, loads that are
//! interrupted, data that somebody breaks.

use dyno_facts::Message;
use dyno_testkit::{
    MariaDb, Postgres, RunningDyno, Scratch, dyno, only_run, server_or_skip, wait_until,
};
use rustix::process::Signal;
use serde_json::Value;
use std::fs;
use std::path::Path;

fn count(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value} is no count"))
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

/// A message in English.
fn said(message: &Value) -> String {
    serde_json::from_value::<Message>(message.clone()).expect("a message").to_string()
}

/// The record of a trial in the only run in `runs`.
fn trial(runs: &Path, number: u32) -> Value {
    let path = only_run(runs).expect("there is a run").join(format!("trials/{number}.json"));
    let text = fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_slice(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn paper(runs: &Path) -> String {
    let run = only_run(runs).expect("there is a run");
    fs::read_to_string(run.join("paper.md")).expect("the paper was written")
}

/// A suite on one warehouse; `more` are further keys of its experiment.
fn small(folder: &Path, url: &str, test: &str, more: &str) {
    let text = format!(
        "[suite]\nname = \"small\"\n\n[target.main]\nurl = \"{url}\"\n\n[[experiment]]\nname = \"orders\"\n\
         workload = \"tpcc\"\ntest = \"{test}\"\n{more}\n"
    );
    fs::write(folder.join("small.toml"), text).expect("the suite can be written");
}

/// Checks that hold for every complete trial.
fn adds_up(trial: &Value) {
    assert_eq!(trial["status"], "complete", "{trial}");
    let facts = &trial["own"]["facts"];
    let ended = |name: &str, how: &str| {
        let kinds = trial["kinds"].as_array().expect("a list");
        let kind = kinds.iter().find(|kind| kind["name"] == name);
        count(&kind.expect("the kind")["counts"][how])
    };
    let committed = |name: &str| ended(name, "committed");
    let window_s = number(&trial["window_s"]);
    let per_minute = |count: u64| count as f64 * 60.0 / window_s;
    let (orders, rolled_back) = (committed("new_order"), ended("new_order", "rolled_back"));
    assert!((number(&facts["tpmc"]) - per_minute(orders + rolled_back)).abs() < 1e-6);
    assert!((number(&facts["tpmc_committed"]) - per_minute(orders)).abs() < 1e-6);
    let kinds = trial["kinds"].as_array().expect("a list");
    let deferred = kinds.iter().find(|kind| kind["name"] == "delivery_deferred");
    let deferred = deferred.map_or(0, |kind| count(&kind["counts"]["committed"]));
    // A Delivery counts once: when the terminal has queued it.
    let of_all = per_minute(count(&trial["counts"]["committed"]) + rolled_back - deferred);
    assert!((number(&facts["tpm_total"]) - of_all).abs() < 1e-6, "{facts}");
    assert!(count(&facts["orders_acknowledged"]) >= committed("new_order"));
    let checks = trial["checks"].as_array().expect("a list");
    let names: Vec<&str> = checks.iter().filter_map(|check| check["name"].as_str()).collect();
    assert_eq!(names, ["books", "audit", "conditions"]);
    assert!(checks.iter().all(|check| check["verdict"] == "passed"), "{checks:?}");
    let conditions = facts["conditions"].as_array().expect("a list");
    assert_eq!(conditions.len(), 23);
    for line in conditions {
        let must_hold = line["id"] != "C11";
        assert_eq!(line["after"].is_object(), must_hold, "{line}");
        assert!(!must_hold || line["after"]["verdict"] == "passed", "{line}");
    }
}

#[test]
fn the_white_paper_runs_at_a_thousandth_of_its_size() {
    let server = server_or_skip!(Postgres, "the_white_paper_runs_at_a_thousandth_of_its_size");
    let scratch = Scratch::new();
    let folder = scratch.path();
    let runs = folder.join("dyno-runs");
    let target = format!("other={}", server.url());
    let suite = "polardb-x-tpcc";
    let ran = dyno(folder, &["run", suite, "--target", &target, "--shrink", "0.001"]);
    assert_eq!(ran.code, 0, "{}", ran.all());
    let trial = trial(&runs, 1);
    adds_up(&trial);
    let facts = &trial["own"]["facts"];
    assert_eq!(facts["profile"], "bmsql-5.0");
    assert_eq!((&facts["isolation"], &facts["tpmc_limit"]), (&Value::Null, &Value::Null));
    for (name, expected) in
        [("warehouses", 1), ("warehouses_loaded", 1), ("terminals", 10), ("sessions", 10)]
    {
        assert_eq!(count(&facts[name]), expected, "{name}");
    }
    assert_eq!(facts["conditions"][0]["before"]["verdict"], "passed");
    let fresh = &facts["conditions"].as_array().expect("a list")[10];
    assert_eq!((&fresh["id"], &fresh["before"]["verdict"]), (&"C11".into(), &"passed".into()));
    let data = &trial["data"];
    assert_eq!(
        (count(&data["rows"]), &data["memory_setting"]),
        (100_000, &"shared_buffers".into())
    );
    assert!((50_000_000..300_000_000).contains(&count(&data["size_bytes"])), "{data}");
    // Everything was removed.
    let left = "SELECT count(*) FROM pg_class WHERE relname LIKE 'bmsql%'";
    assert_eq!(server.sbtest(left).expect("an answer").trim(), "0");
    let paper = paper(&runs);
    for words in ["65,735", "101,621", "tpmC", "not a TPC result"] {
        assert!(paper.contains(words), "no `{words}` in the paper");
    }
    // Its other targets have clauses that only a distributed database takes.
    let target = format!("standard={}", server.url());
    let refused = dyno(folder, &["run", suite, "--target", &target, "--shrink", "0.001"]);
    assert_eq!(refused.code, 1, "{}", refused.all());
    assert!(refused.stderr.contains("hint: The shard clauses are part of"), "{}", refused.all());
}

#[test]
fn broken_data_fail_the_run() {
    let server = server_or_skip!(Postgres, "broken_data_fail_the_run");
    let scratch = Scratch::new();
    let folder = scratch.path();
    let url = server.url();
    let more = "terminals = 4\nevents = 300\ncleanup = false\n";
    small(folder, &url, "bmsql-5.0", more);
    let ran = dyno(folder, &["run", "small.toml", "--dir", "good"]);
    assert_eq!(ran.code, 0, "{}", ran.all());
    adds_up(&trial(&folder.join("good"), 1));
    // From now on every other payment is missing in the history.
    server
        .sbtest(
            "CREATE FUNCTION forget() RETURNS trigger LANGUAGE plpgsql AS \
             'BEGIN IF NEW.h_c_id % 2 = 0 THEN DELETE FROM bmsql_history WHERE h_c_id = NEW.h_c_id \
             AND h_c_d_id = NEW.h_c_d_id AND h_date = NEW.h_date; END IF; RETURN NULL; END'; \
             CREATE TRIGGER forget AFTER INSERT ON bmsql_history FOR EACH ROW EXECUTE FUNCTION \
             forget()",
        )
        .expect("a trigger");
    let again = format!("{more}prepare = false\nrepeats = 2");
    small(folder, &url, "bmsql-5.0", &again);
    let ran = dyno(folder, &["run", "small.toml", "--dir", "bad"]);
    assert_eq!(ran.code, 4, "{}", ran.all());
    let bad = trial(&folder.join("bad"), 1);
    let check = |name: &str| {
        let checks = bad["checks"].as_array().expect("a list");
        let check = checks.iter().find(|check| check["name"] == name).expect("the check");
        (check["verdict"].clone(), said(&check["evidence"]))
    };
    let (verdict, evidence) = check("books");
    assert_eq!(verdict, "failed");
    assert!(evidence.starts_with("The rows of the history grew by "), "{evidence}");
    let (verdict, evidence) = check("conditions");
    assert_eq!(verdict, "failed");
    let c8 = "C8 is violated, 1 violation: w_id 1. Its rule: W_YTD is the sum of H_AMOUNT";
    for words in [c8, "C9 ", "X3 "] {
        assert!(evidence.contains(words), "no `{words}` in: {evidence}");
    }
    assert_eq!(check("audit").0, "passed", "what was executed was right");
    let c8 = bad["own"]["facts"]["conditions"].as_array().expect("a list");
    let c8 = c8.iter().find(|line| line["id"] == "C8").expect("the condition");
    assert_eq!(
        (&c8["before"]["verdict"], &c8["after"]["verdict"]),
        (&"passed".into(), &"failed".into())
    );
    // The second repeat is not measured on such data.
    let words =
        "error: orders on main: The database is not consistent before the trial. C8 is violated";
    assert!(ran.stderr.contains(words), "{}", ran.all());
    let run = only_run(&folder.join("bad")).expect("there is a run");
    assert!(!run.join("trials/2.json").exists());
    assert!(paper(&folder.join("bad")).contains("C8"));
    // Who doesn't check the conditions still has the books.
    small(folder, &url, "bmsql-5.0", &format!("{again}\noptions = {{ checks = \"none\" }}"));
    let ran = dyno(folder, &["run", "small.toml", "--dir", "unchecked"]);
    assert_eq!(ran.code, 4, "{}", ran.all());
    assert!(ran.stderr.contains("check books: failed"), "{}", ran.all());
    assert!(ran.stderr.contains("check conditions: not made"), "{}", ran.all());
    // More warehouses than there are.
    let options = "options = { warehouses = 3 }";
    small(folder, &url, "bmsql-5.0", &format!("{again}\n{options}"));
    let ran = dyno(folder, &["run", "small.toml", "--dir", "more"]);
    assert_eq!(ran.code, 1, "{}", ran.all());
    let words = "The run asks for 3 warehouses, and the database has 1.";
    assert!(ran.stderr.contains(words), "{}", ran.all());
    assert!(ran.stderr.contains("hint: Write `warehouses = 1`"), "{}", ran.all());
    checks_can_be_stopped(&server, folder, &again);
}

/// Ctrl-C while a condition takes for ever: the items are behind a view that sleeps.
fn checks_can_be_stopped(server: &Postgres, folder: &Path, more: &str) {
    server
        .sbtest(
            "ALTER TABLE bmsql_item RENAME TO items; CREATE VIEW bmsql_item AS SELECT items.* FROM \
             items, (SELECT pg_sleep(3600)) AS nap",
        )
        .expect("a view");
    small(folder, &server.url(), "bmsql-5.0", more);
    let mut checking = RunningDyno::start(folder, &["run", "small.toml", "--dir", "stopped"]);
    checking.wait_until("a condition that sleeps", |_| {
        let asleep = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'";
        // Parallel workers may sleep too.
        server.sbtest(asleep).is_ok_and(|sleepers| sleepers.trim() != "0")
    });
    checking.signal(Signal::INT);
    let ran = checking.end();
    assert_eq!(ran.code, 130, "{}", ran.all());
    assert!(ran.stderr.contains("error: The run was interrupted"), "{}", ran.all());
}

#[test]
fn an_interrupted_load_goes_on_and_limits_are_told_before_terminals_connect() {
    let name = "an_interrupted_load_goes_on_and_limits_are_told_before_terminals_connect";
    let server = server_or_skip!(MariaDb, name);
    let scratch = Scratch::new();
    let folder = scratch.path();
    let runs = folder.join("dyno-runs");
    // Ten terminals with a hundredth of their pauses on the same data, over four sessions.
    let spec = "cleanup = false\n\n[[experiment]]\nname = \"paced\"\nworkload = \"tpcc\"\n\
                test = \"spec\"\nprepare = false\nterminals = 10\nwarmup_s = 1\nduration_s = 5\n\
                options = { sessions = 4, keying_multiplier = 0.01, think_multiplier = 0.01 }\n";
    let more = "terminals = 4\nduration_s = 2\nwarmup_s = 0.5\noptions = { load_workers = 2 }";
    small(folder, &server.url(), "bmsql-5.0", &format!("{more}\n{spec}"));
    let mut loading = RunningDyno::start(folder, &["run", "small.toml"]);
    let stored = "SELECT COUNT(*) FROM sbtest.bmsql_order_line";
    wait_until("chunks that are stored", || {
        let rows = server.sql(stored).ok().and_then(|text| text.trim().parse::<u32>().ok());
        rows.is_some_and(|rows| rows >= 60_000)
    });
    loading.signal(Signal::KILL);
    loading.end();
    server.sql("SET GLOBAL max_prepared_stmt_count = 100").expect("a limit");
    let ran = dyno(folder, &["run", "small.toml"]);
    assert_eq!(ran.code, 1, "{}", ran.all());
    assert!(ran.stderr.contains("rows were there before"), "{}", ran.all());
    let words = "error: orders on main: 4 sessions need 128 prepared statements (32 each), but the \
                 server takes only ";
    assert!(ran.stderr.contains(words), "{}", ran.all());
    let hint = "hint: execute SET GLOBAL max_prepared_stmt_count = 1000 on the server";
    assert!(ran.stderr.contains(hint), "{}", ran.all());
    server.sql("SET GLOBAL max_prepared_stmt_count = 1000").expect("a limit");
    let ran = dyno(folder, &["run", "small.toml"]);
    assert_eq!(ran.code, 0, "{}", ran.all());
    let first = trial(&runs, 1);
    adds_up(&first);
    assert_eq!(first["own"]["facts"]["isolation"], "READ COMMITTED");
    assert_eq!(first["data"]["memory_setting"], "innodb_buffer_pool_size");
    let paced = trial(&runs, 2);
    adds_up(&paced);
    let facts = &paced["own"]["facts"];
    assert_eq!((count(&facts["terminals"]), count(&facts["sessions"])), (10, 4));
    assert_eq!(facts["profile"], "spec");
    let limit = number(&facts["tpmc_limit"]);
    assert!((1_200.0..1_300.0).contains(&limit), "a hundred times that of the pauses: {limit}");
    assert!(paced["lateness"].is_object(), "transactions have due times");
    // A hundredth of the keying time of Payment, which the engine has waited for.
    let payment = &facts["kinds"][1]["pauses"];
    assert!((number(&payment["keying_s"]) - 0.03).abs() < 1e-6, "{payment}");
    assert!(count(&payment["thinks"]) > 0 && number(&payment["think_s"]) > 0.0, "{payment}");
    assert_eq!(number(&payment["think_clause_s"]), 12.0);
    assert!(ran.stderr.contains("paced on main, 10 terminals over 4 sessions"), "{}", ran.all());
    // The tables are the run's own, also those that the killed process had made.
    let left = "SELECT COUNT(*) FROM information_schema.tables WHERE table_name LIKE 'bmsql%'";
    assert_eq!(server.sql(left).expect("an answer").trim(), "0");
}

#[test]
fn wrong_options_are_one_error_with_its_place() {
    let scratch = Scratch::new();
    let folder = scratch.path();
    let url = format!("sqlite:{}", folder.join("data.db").display());
    for (test, keys, words) in [
        ("bmsql-5.0", "options = { warehuoses = 2 }", "Did you mean `warehouses`?"),
        ("bmsql-5.0", "options = { warehouses = 0 }", "it takes a whole number from 1 to 60000"),
        ("bmsql-5.0", "options = { isolation = \"none\" }", "read-committed, repeatable-read"),
        ("bmsql-5.0", "options = { sessions = 4 }", "It is an option of `spec`."),
        ("bmsql-5.0", "options = { weights = { paymnet = 5 } }", "`weights.payment`?"),
        ("bmsql-5.0", "options = { weights = { new_order = 5 } }", "what the others leave of 100"),
        ("bmsql-5.0", "options = { weights = { payment = 90 } }", "add up to 102"),
        ("bmsql-5.0", "options = { shard = { sufix = \"x\" } }", "`shard.suffix`?"),
        ("bmsql-5.0", "options = { checks = true }", "none, after or before-and-after"),
        (
            "spec",
            "options = { terminal_warehouse_fixed = false }",
            "It is an option of `bmsql-5.0`",
        ),
        ("spec", "options = { think_multiplier = -1 }", "a number from 0 to 1000"),
        ("spec", "rate = 5", "have no rate"),
        ("bmsql-5.0", "workers = 11", "11 terminals are too many for warehouses = 1"),
    ] {
        let terminals = if keys.contains("workers") { "" } else { "terminals = 4\n" };
        small(folder, &url, test, &format!("{terminals}events = 10\n{keys}"));
        let ran = dyno(folder, &["run", "small.toml"]);
        assert_eq!(ran.code, 2, "{}", ran.all());
        assert!(ran.stderr.contains(words), "no `{words}`: {}", ran.all());
        assert!(ran.stderr.contains("--> small.toml:"), "{}", ran.all());
        assert!(!folder.join("dyno-runs").exists(), "nothing was begun");
    }
    small(
        folder,
        &url,
        "bmsql-5.0",
        "terminals = 4\nevents = 10\noptions = { foreign_keys = true }",
    );
    let ran = dyno(folder, &["run", "small.toml"]);
    assert_eq!(ran.code, 2, "{}", ran.all());
    assert!(ran.stderr.contains("SQLite can't add foreign keys"), "{}", ran.all());
    small(folder, &url, "bmsql-5.0", "terminals = 4\nevents = 10\nprepare = false");
    let ran = dyno(folder, &["run", "small.toml"]);
    assert_eq!(ran.code, 1, "{}", ran.all());
    assert!(ran.stderr.contains("nothing is loaded here."), "{}", ran.all());
    assert!(ran.stderr.contains("hint: Load the tables with the same options"), "{}", ran.all());
}
