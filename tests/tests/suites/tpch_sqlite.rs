//! TPC-H without a server: suites, caches, wrong answers and wrong words on SQLite.

use dyno_core::{AnswerTable, Discard, Driver, Session};
use dyno_drivers::sqlite::SqliteDriver;
use dyno_testkit::{ProcessOutput, Scratch, dyno, only_run};
use serde_json::Value;
use std::fs;
use std::path::Path;

const URL: &str = "sqlite:tpch.db";

/// Executes a statement on the database in the folder; its rows.
fn sql(folder: &Path, statement: &str) -> Vec<Vec<Option<String>>> {
    let target = format!("sqlite:{}", folder.join("tpch.db").display());
    let driver = SqliteDriver::new(&target.parse().expect("a good URL")).expect("a driver");
    let answer = dyno_reactor::block_on(async {
        let mut session = driver.connect(0).await.expect("the database can be opened");
        let mut answer = AnswerTable::default();
        session.query("PRAGMA busy_timeout = 10000", &mut Discard).await.expect("a setting");
        session.query(statement, &mut answer).await.expect("an answer");
        session.close().await;
        answer
    });
    answer.expect("an event loop").rows
}

/// The English of a stored message.
fn english(message: &Value) -> &str {
    message.as_str().or_else(|| message["en"].as_str()).expect("a message")
}

fn json(path: &Path) -> Value {
    let text = fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_slice(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn assert_ended(output: &ProcessOutput, code: i32, last_line: &str) {
    assert_eq!(output.code, code, "{output}");
    assert_eq!(output.stdout.lines().last(), Some(last_line), "{output}");
}

#[test]
fn a_suite_loads_measures_skips_and_drops() {
    let scratch = Scratch::new();
    let folder = scratch.path();
    let suite = format!(
        "[suite]\nname = \"own\"\n[target.main]\nurl = \"{URL}\"\n[[experiment]]\nname = \"q\"\n\
         workload = \"tpch\"\ntest = \"queries\"\ndegrees = [0, 4]\nrepeats = 2\ncleanup = false\n\
         options = {{ scale = 1, plans = \"estimated\" }}\n[[experiment]]\nname = \"p\"\n\
         workload = \"tpch\"\ntest = \"power\"\nprepare = false\n\
         options = {{ scale = 1, plans = \"none\" }}\n"
    );
    fs::write(folder.join("own.toml"), suite).expect("a suite can be written");
    let output = dyno(folder, &["run", "own.toml", "--shrink", "0.01", "--long"]);
    assert_eq!(output.code, 0, "{output}");
    // The first refresh function runs before the queries of a power test.
    for words in ["answers of p on main: none compared", "answers of q on main: 22 of 22 correct"] {
        assert!(output.stdout.lines().any(|line| line == words), "{output}");
    }
    let has_refresh = |function: &str| {
        let has_word = |line: &str| line.split_whitespace().any(|word| word == function);
        output.stdout.lines().any(|line| has_word(line) && line.ends_with("well"))
    };
    assert!(has_refresh("RF1") && has_refresh("RF2"), "{output}");
    let run = only_run(&folder.join("dyno-runs")).expect("there is a run");
    let header = json(&run.join("run.json"));
    let skipped = header["skipped"].as_object().expect("a table");
    let steps: Vec<&String> = skipped.keys().collect();
    assert_eq!(steps, ["q/main/degree=4/repeat=1", "q/main/degree=4/repeat=2"]);
    assert!(skipped.values().all(|why| english(why).contains("SQLite")));
    assert_eq!(header["status"], "complete");
    let power = json(&run.join("trials/3.json"));
    let facts = &power["own"]["facts"];
    assert_eq!((&facts["test"], &facts["scale"]), (&"power".into(), &0.01.into()));
    assert!(facts["metrics"]["power"].as_f64().is_some_and(|power| power > 0.0), "{facts:#}");
    assert_eq!(facts["refreshes"].as_array().map(Vec::len), Some(2));
    assert_eq!(facts["cache"]["state"], "as found");
    let evidence = english(&power["checks"][0]["evidence"]);
    assert!(evidence.contains("no refresh function"), "{evidence}");
    assert_eq!(power["counts"]["committed"], 24);
    assert!(power["generator"]["loops_cpu_s"].as_f64().is_some_and(|seconds| seconds > 0.0));
    let queries = json(&run.join("trials/1.json"));
    assert_eq!(queries["own"]["facts"]["cache"]["state"], "warm");
    assert_eq!(queries["generator"]["loops"], 1);
    assert!(run.join("trials/1.plans/q22.txt").is_file(), "plans are stored");
    assert!(!run.join("trials/3.plans").exists(), "none were asked for");
    let lines = fs::read_to_string(run.join("trials/3.executed.jsonl")).expect("lines");
    assert_eq!(lines.lines().count(), 24);
    let leftover_tables =
        sql(folder, "SELECT name FROM sqlite_master WHERE name NOT LIKE 'sqlite_%'");
    assert_eq!(
        leftover_tables,
        Vec::<Vec<Option<String>>>::new(),
        "the run drops what it has made"
    );
}

#[test]
fn answers_caches_and_mistakes_are_told() {
    let scratch = Scratch::new();
    let folder = scratch.path();
    let zero = ["tpch", "run", "--scale", "0", "--target", URL];
    assert_refused(folder, dyno(folder, &zero), &["The scale factor must be above 0", "hint: "]);
    let wrong = [
        (&["--cache", "cold"], ["no command empties the caches", "Add `cold_command`"]),
        (&["--parameters", "x"], ["`parameters` can't be `x`", "default, seed or a whole number"]),
        (&["--degree-rule", "postgre"], ["the name of a rule", "did you mean `postgres`?"]),
        (&["--degree", "0,5000"], ["`degrees` must be", "from 0 to 1024, but is 5000"]),
    ];
    for (words, expected) in wrong {
        assert_refused(folder, run(folder, words), &expected);
    }
    let output = run(folder, &[]);
    assert_eq!(output.code, 1, "{output}");
    assert!(output.stderr.contains("The database holds no tables of TPC-H."), "{output}");
    assert!(output.stderr.contains("dyno tpch load --scale 0.01"), "{output}");

    let loaded = dyno(folder, &["tpch", "load", "--scale", "0.01", "--target", URL]);
    assert_eq!(loaded.code, 0, "{loaded}");
    let other_scale =
        dyno(folder, &["tpch", "run", "--scale", "0.02", "--target", URL, "--dir", "other"]);
    assert_eq!(other_scale.code, 1, "{other_scale}");
    assert!(other_scale.stderr.contains("The tables have scale factor 0.01"), "{other_scale}");

    caches_are_emptied_by_a_command(folder);
    a_changed_row_is_named(folder);
}

/// Wrong usage, which leaves nothing behind.
fn assert_refused(folder: &Path, output: ProcessOutput, expected: &[&str]) {
    assert_eq!(output.code, 2, "{output}");
    for part in expected {
        assert!(output.stderr.contains(part), "no `{part}`: {output}");
    }
    assert!(!folder.join("dyno-runs").exists(), "{output}");
}

fn run(folder: &Path, more: &[&str]) -> ProcessOutput {
    dyno(folder, &[&["tpch", "run", "--scale", "0.01", "--target", URL], more].concat())
}

fn caches_are_emptied_by_a_command(folder: &Path) {
    let cold = "echo $DYNO_TARGET > emptied; echo emptied by hand";
    let words = ["--dir", "cold", "--cache", "cold", "--cold-command", cold, "--plans", "none"];
    let output = run(folder, &words);
    assert_ended(&output, 0, "answers: 22 of 22 correct");
    let is_data = output.stdout.lines().any(|line| line == "emptied by hand");
    assert!(!is_data, "what it says is no data: {output}");
    assert_eq!(fs::read_to_string(folder.join("emptied")).expect("it ran"), "target\n");
    let trial = json(&only_run(&folder.join("cold")).expect("a run").join("trials/1.json"));
    assert_eq!(trial["own"]["facts"]["cache"]["state"], "cold");
    assert!(english(&trial["own"]["facts"]["cache"]["evidence"][0]).contains(cold));
    let words = ["--dir", "broken", "--cache", "cold", "--cold-command", "exit 3"];
    let output = run(folder, &words);
    assert_eq!(output.code, 1, "{output}");
    assert!(output.stderr.contains("The command that empties the caches failed"), "{output}");
}

/// The tables of `dyno tpch load` without those in which dyno notes what it has loaded.
#[test]
fn tables_of_another_program_are_measured() {
    let scratch = Scratch::new();
    let folder = scratch.path();
    let loaded = dyno(folder, &["tpch", "load", "--scale", "0.01", "--target", URL]);
    assert_eq!(loaded.code, 0, "{loaded}");
    sql(folder, "DROP TABLE dyno_tpch");
    sql(folder, "DROP TABLE dyno_tpch_steps");
    let run_test = |verb: &str, more: &[&str]| {
        dyno(folder, &[&["tpch", verb, "--target", URL, "--plans", "none"], more].concat())
    };
    let read_trial =
        |dir: &str| json(&only_run(&folder.join(dir)).expect("a run").join("trials/1.json"));
    assert_ended(&run_test("run", &["--dir", "found"]), 0, "answers: 22 of 22 correct");
    let trial = read_trial("found");
    assert_eq!(trial["own"]["facts"]["scale"], 0.01);
    let is_disclosed = |trial: &Value, words: &str| {
        let deviations = trial["own"]["facts"]["deviations"].as_array().expect("a list");
        deviations.iter().any(|deviation| english(deviation).contains(words))
    };
    assert!(is_disclosed(&trial, "as many rows as the scale factor asks for"), "{trial:#}");
    let output = run_test("power", &["--dir", "power"]);
    assert_eq!(output.code, 1, "{output}");
    assert!(output.stderr.contains("--no-refresh"), "{output}");
    assert_ended(
        &run_test("power", &["--no-refresh", "--dir", "power2"]),
        0,
        "answers: 22 of 22 correct",
    );
    let output = run_test("run", &["--scale", "0.1", "--dir", "other"]);
    assert_eq!(output.code, 1, "{output}");
    assert!(output.stderr.contains("ask for --scale 0.01"), "{output}");
    let copy_row = |table: &str, key: &str, number: u32| {
        let copied = format!("CREATE TABLE copied AS SELECT * FROM {table} WHERE {key} = 7");
        sql(folder, &copied);
        sql(folder, &format!("UPDATE copied SET {key} = {number}"));
        sql(folder, &format!("INSERT INTO {table} SELECT * FROM copied"));
        sql(folder, "DROP TABLE copied");
    };
    copy_row("supplier", "s_suppkey", 101);
    let output = run_test("run", &["--scale", "0.01", "--dir", "short"]);
    assert_eq!(output.code, 1, "{output}");
    assert!(output.stderr.contains("scale factor 0.0101"), "{output}");
    copy_row("part", "p_partkey", 2001);
    let output = run_test("run", &["--scale", "0.01", "--trust-data", "--dir", "trusted"]);
    assert!([0, 4].contains(&output.code), "the answers are checked all the same: {output}");
    assert!(is_disclosed(&read_trial("trusted"), "was not checked"), "{output}");
}

fn a_changed_row_is_named(folder: &Path) {
    sql(folder, "UPDATE lineitem SET l_quantity = l_quantity + 1 WHERE l_orderkey = 1");
    let output = run(folder, &["--dir", "wrong"]);
    assert_eq!(output.code, 4, "{output}");
    let last = output.stdout.lines().last().unwrap_or_default();
    assert!(last.starts_with("answers: ") && last.contains("; wrong: Q1"), "{output}");
    assert!(output.stdout.contains("Q1 at degree 0 differs from "), "{output}");
    let trial = json(&only_run(&folder.join("wrong")).expect("a run").join("trials/1.json"));
    assert_eq!(trial["checks"][0]["verdict"], "failed");
}
