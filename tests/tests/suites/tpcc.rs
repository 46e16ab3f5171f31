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
fn english(message: &Value) -> String {
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
fn write_small_suite(folder: &Path, url: &str, test: &str, more: &str) {
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
    let count_ended = |name: &str, how: &str| {
        let kinds = trial["kinds"].as_array().expect("a list");
        let kind = kinds.iter().find(|kind| kind["name"] == name);
        count(&kind.expect("the kind")["counts"][how])
    };
    let count_committed = |name: &str| count_ended(name, "committed");
    let window_s = number(&trial["window_s"]);
    let per_minute = |count: u64| count as f64 * 60.0 / window_s;
    let (orders, rolled_back) =
        (count_committed("new_order"), count_ended("new_order", "rolled_back"));
    assert!((number(&facts["tpmc"]) - per_minute(orders + rolled_back)).abs() < 1e-6);
    assert!((number(&facts["tpmc_committed"]) - per_minute(orders)).abs() < 1e-6);
    let kinds = trial["kinds"].as_array().expect("a list");
    let deferred = kinds.iter().find(|kind| kind["name"] == "delivery_deferred");
    let deferred = deferred.map_or(0, |kind| count(&kind["counts"]["committed"]));
    // A Delivery counts once: when the terminal has queued it.
    let total_per_minute =
        per_minute(count(&trial["counts"]["committed"]) + rolled_back - deferred);
    assert!((number(&facts["tpm_total"]) - total_per_minute).abs() < 1e-6, "{facts}");
    assert!(count(&facts["orders_acknowledged"]) >= count_committed("new_order"));
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
    let output = dyno(folder, &["run", suite, "--target", &target, "--shrink", "0.001"]);
    assert_eq!(output.code, 0, "{output}");
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
    let leftover_tables = "SELECT count(*) FROM pg_class WHERE relname LIKE 'bmsql%'";
    assert_eq!(server.sbtest(leftover_tables).expect("an answer").trim(), "0");
    let paper = paper(&runs);
    for words in ["65,735", "101,621", "tpmC", "not a TPC result"] {
        assert!(paper.contains(words), "no `{words}` in the paper");
    }
    // Its other targets have clauses that only a distributed database takes.
    let target = format!("standard={}", server.url());
    let with_clauses = dyno(folder, &["run", suite, "--target", &target, "--shrink", "0.001"]);
    assert_eq!(with_clauses.code, 1, "{with_clauses}");
    assert!(with_clauses.stderr.contains("hint: The shard clauses are part of"), "{with_clauses}");
}

#[test]
fn broken_data_fail_the_run() {
    let server = server_or_skip!(Postgres, "broken_data_fail_the_run");
    let scratch = Scratch::new();
    let folder = scratch.path();
    let url = server.url();
    let keys = "terminals = 4\nevents = 300\ncleanup = false\n";
    write_small_suite(folder, &url, "bmsql-5.0", keys);
    let output = dyno(folder, &["run", "small.toml", "--dir", "good"]);
    assert_eq!(output.code, 0, "{output}");
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
    let again = format!("{keys}prepare = false\nrepeats = 2");
    write_small_suite(folder, &url, "bmsql-5.0", &again);
    let output = dyno(folder, &["run", "small.toml", "--dir", "bad"]);
    assert_eq!(output.code, 4, "{output}");
    let bad = trial(&folder.join("bad"), 1);
    let find_check = |name: &str| {
        let checks = bad["checks"].as_array().expect("a list");
        let check = checks.iter().find(|check| check["name"] == name).expect("the check");
        (check["verdict"].clone(), english(&check["evidence"]))
    };
    let (verdict, evidence) = find_check("books");
    assert_eq!(verdict, "failed");
    assert!(evidence.starts_with("The rows of the history grew by "), "{evidence}");
    let (verdict, evidence) = find_check("conditions");
    assert_eq!(verdict, "failed");
    let c8 = "C8 is violated, 1 violation: w_id 1. Its rule: W_YTD is the sum of H_AMOUNT";
    for words in [c8, "C9 ", "X3 "] {
        assert!(evidence.contains(words), "no `{words}` in: {evidence}");
    }
    assert_eq!(find_check("audit").0, "passed", "what was executed was right");
    let c8 = bad["own"]["facts"]["conditions"].as_array().expect("a list");
    let c8 = c8.iter().find(|line| line["id"] == "C8").expect("the condition");
    assert_eq!(
        (&c8["before"]["verdict"], &c8["after"]["verdict"]),
        (&"passed".into(), &"failed".into())
    );
    // The second repeat is not measured on such data.
    let words =
        "error: orders on main: The database is not consistent before the trial. C8 is violated";
    assert!(output.stderr.contains(words), "{output}");
    let run = only_run(&folder.join("bad")).expect("there is a run");
    assert!(!run.join("trials/2.json").exists());
    assert!(paper(&folder.join("bad")).contains("C8"));
    // Who doesn't check the conditions still has the books.
    write_small_suite(
        folder,
        &url,
        "bmsql-5.0",
        &format!("{again}\noptions = {{ checks = \"none\" }}"),
    );
    let output = dyno(folder, &["run", "small.toml", "--dir", "unchecked"]);
    assert_eq!(output.code, 4, "{output}");
    assert!(output.stderr.contains("check books: failed"), "{output}");
    assert!(output.stderr.contains("check conditions: not made"), "{output}");
    // More warehouses than there are.
    let options = "options = { warehouses = 3 }";
    write_small_suite(folder, &url, "bmsql-5.0", &format!("{again}\n{options}"));
    let output = dyno(folder, &["run", "small.toml", "--dir", "more"]);
    assert_eq!(output.code, 1, "{output}");
    let words = "The run asks for 3 warehouses, and the database has 1.";
    assert!(output.stderr.contains(words), "{output}");
    assert!(output.stderr.contains("hint: Write `warehouses = 1`"), "{output}");
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
    write_small_suite(folder, &server.url(), "bmsql-5.0", more);
    let mut checking = RunningDyno::start(folder, &["run", "small.toml", "--dir", "stopped"]);
    checking.wait_until("a condition that sleeps", |_| {
        let asleep = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'";
        // Parallel workers may sleep too.
        server.sbtest(asleep).is_ok_and(|sleepers| sleepers.trim() != "0")
    });
    checking.signal(Signal::INT);
    let output = checking.end();
    assert_eq!(output.code, 130, "{output}");
    assert!(output.stderr.contains("error: The run was interrupted"), "{output}");
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
    let keys = "terminals = 4\nduration_s = 2\nwarmup_s = 0.5\noptions = { load_workers = 2 }";
    write_small_suite(folder, &server.url(), "bmsql-5.0", &format!("{keys}\n{spec}"));
    let mut loading = RunningDyno::start(folder, &["run", "small.toml"]);
    let stored = "SELECT COUNT(*) FROM sbtest.bmsql_order_line";
    wait_until("chunks that are stored", || {
        let rows = server.sql(stored).ok().and_then(|text| text.trim().parse::<u32>().ok());
        rows.is_some_and(|rows| rows >= 60_000)
    });
    loading.signal(Signal::KILL);
    loading.end();
    server.sql("SET GLOBAL max_prepared_stmt_count = 100").expect("a limit");
    let output = dyno(folder, &["run", "small.toml"]);
    assert_eq!(output.code, 1, "{output}");
    assert!(output.stderr.contains("rows were there before"), "{output}");
    let words = "error: orders on main: 4 sessions need 128 prepared statements (32 each), but the \
                 server takes only ";
    assert!(output.stderr.contains(words), "{output}");
    let hint = "hint: execute SET GLOBAL max_prepared_stmt_count = 1000 on the server";
    assert!(output.stderr.contains(hint), "{output}");
    server.sql("SET GLOBAL max_prepared_stmt_count = 1000").expect("a limit");
    let output = dyno(folder, &["run", "small.toml"]);
    assert_eq!(output.code, 0, "{output}");
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
    assert!(output.stderr.contains("paced on main, 10 terminals over 4 sessions"), "{output}");
    // The tables are the run's own, also those that the killed process had made.
    let leftover_tables =
        "SELECT COUNT(*) FROM information_schema.tables WHERE table_name LIKE 'bmsql%'";
    assert_eq!(server.sql(leftover_tables).expect("an answer").trim(), "0");
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
        write_small_suite(folder, &url, test, &format!("{terminals}events = 10\n{keys}"));
        let output = dyno(folder, &["run", "small.toml"]);
        assert_eq!(output.code, 2, "{output}");
        assert!(output.stderr.contains(words), "no `{words}`: {output}");
        assert!(output.stderr.contains("--> small.toml:"), "{output}");
        assert!(!folder.join("dyno-runs").exists(), "nothing was begun");
    }
    write_small_suite(
        folder,
        &url,
        "bmsql-5.0",
        "terminals = 4\nevents = 10\noptions = { foreign_keys = true }",
    );
    let output = dyno(folder, &["run", "small.toml"]);
    assert_eq!(output.code, 2, "{output}");
    assert!(output.stderr.contains("SQLite can't add foreign keys"), "{output}");
    write_small_suite(folder, &url, "bmsql-5.0", "terminals = 4\nevents = 10\nprepare = false");
    let output = dyno(folder, &["run", "small.toml"]);
    assert_eq!(output.code, 1, "{output}");
    assert!(output.stderr.contains("nothing is loaded here."), "{output}");
    assert!(output.stderr.contains("hint: Load the tables with the same options"), "{output}");
}
