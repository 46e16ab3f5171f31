//! TPC-H on real servers: answers at several degrees, a row that somebody changes, refresh functions,
//! engines held against each other.

use dyno_testkit::{MariaDb, Postgres, ProcessOutput, Scratch, dyno, only_run, server_or_skip};
use serde_json::Value;
use std::fs;
use std::path::Path;

/// Rows of all tables at scale factor 0.01.
const ROWS: &str = "86805";

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

fn list(value: &Value) -> &Vec<Value> {
    value.as_array().unwrap_or_else(|| panic!("{value} is no list"))
}

/// Runs `dyno tpch` with words that are separated by blanks, on a target.
fn tpch(folder: &Path, words: &str, url: &str) -> ProcessOutput {
    let mut arguments: Vec<&str> = ["tpch"].into_iter().chain(words.split(' ')).collect();
    arguments.extend(["--target", url]);
    dyno(folder, &arguments)
}

/// The record of a trial in the only run in `runs`.
fn trial(runs: &Path, number: u32) -> Value {
    let path = only_run(runs).expect("there is a run").join(format!("trials/{number}.json"));
    let text = fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_slice(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn last_line(output: &ProcessOutput) -> &str {
    output.stdout.lines().last().unwrap_or_default()
}

/// The numbers of the queries of a trial, in the order in which they ended.
fn numbers(trial: &Value) -> Vec<u64> {
    let queries = list(&trial["own"]["facts"]["queries"]);
    queries.iter().map(|query| query["query"].as_u64().expect("a number")).collect()
}

/// Checks that hold for every complete trial with queries.
fn adds_up(run: &Path, trial: &Value) {
    assert_eq!(trial["status"], "complete", "{trial:#}");
    let facts = &trial["own"]["facts"];
    let mut total_s = 0.0;
    for query in list(&facts["queries"]) {
        assert_eq!(query["outcome"], "answered", "{query:#}");
        assert_eq!(query["answer"]["verdict"], "passed", "{query:#}");
        total_s += number(&query["seconds"]);
        let plan = query["plan"]["file"].as_str().expect("a plan");
        let text = fs::read_to_string(run.join(plan)).expect("plans are stored");
        let tables = ["lineitem", "part", "orders", "customer"];
        assert!(tables.iter().any(|table| text.contains(table)), "{text}");
    }
    if facts["test"] == "queries" {
        assert_eq!(numbers(trial), (1..=22).collect::<Vec<_>>());
        assert!((number(&facts["metrics"]["total_s"]) - total_s).abs() < 1e-6, "{facts:#}");
    }
}

#[test]
fn postgres_answers_at_two_degrees_and_a_changed_row_is_named() {
    let name = "postgres_answers_at_two_degrees_and_a_changed_row_is_named";
    let server = server_or_skip!(Postgres, name);
    let (scratch, url) = (Scratch::new(), server.url());
    let folder = scratch.path();
    let loaded = tpch(folder, "load --scale 0.01 --sessions 2", &url);
    assert_eq!(loaded.code, 0, "{loaded}");
    let load_lines: Vec<&str> =
        loaded.stdout.lines().filter(|line| line.starts_with("load\t")).collect();
    assert!(load_lines.len() == 1 && load_lines[0].contains(ROWS), "{loaded}");

    let output = tpch(folder, "run --scale 0.01 --degree 0,2 --repeats 2", &url);
    assert_eq!(output.code, 0, "{output}");
    assert_eq!(last_line(&output), "answers: 22 of 22 correct", "{output}");
    let run = only_run(&folder.join("dyno-runs")).expect("there is a run");
    let mut degrees = Vec::new();
    for number in 1..=4 {
        let trial = trial(&folder.join("dyno-runs"), number);
        adds_up(&run, &trial);
        let degree = &trial["own"]["facts"]["degree"];
        let (requested, used) =
            (degree["asked"].as_u64(), degree["got"].as_u64().expect("plans tell"));
        match requested {
            Some(0) => assert_eq!(used, 0, "{degree:#}"),
            _ => assert!((1..=2).contains(&used), "{degree:#}"),
        }
        degrees.push(requested.expect("a degree"));
    }
    assert_ne!(degrees[0], degrees[1], "{degrees:?}: degrees alternate");
    assert_ne!(degrees[2], degrees[3], "{degrees:?}: degrees alternate");
    let paper = fs::read_to_string(run.join("paper.md")).expect("the paper was written");
    for words in ["Q22", "not a TPC result", "primary keys"] {
        assert!(paper.contains(words), "no `{words}` in the paper");
    }
    let leftover_sessions = "SELECT count(*) FROM pg_stat_activity WHERE datname = 'sbtest' AND pid <> \
                pg_backend_pid()";
    assert_eq!(server.sbtest(leftover_sessions).expect("an answer").trim(), "0");
    a_changed_row_is_named(folder, &server);
}

/// One unit more of one line: only the sums of Q1 know of it.
fn a_changed_row_is_named(folder: &Path, server: &Postgres) {
    let change_quantity = |by: &str| {
        let sql = format!(
            "UPDATE lineitem SET l_quantity = l_quantity {by} WHERE l_orderkey = 1 AND l_linenumber \
             = 1"
        );
        server.sbtest(&sql).expect("a change")
    };
    change_quantity("+ 1");
    let output = tpch(folder, "run --scale 0.01 --dir changed", &server.url());
    assert_eq!(output.code, 4, "{output}");
    assert_eq!(last_line(&output), "answers: 21 of 22 correct; wrong: Q1", "{output}");
    assert!(output.stdout.contains("Q1 at degree 0 differs from "), "{output}");
    let difference = "  Row 3: sum_qty is 742803.00 instead of 742802.00.";
    assert!(output.stdout.contains(difference), "{output}");
    let stored = trial(&folder.join("changed"), 1);
    assert_eq!(stored["checks"][0]["verdict"], "failed", "{stored:#}");
    let paper = only_run(&folder.join("changed")).expect("there is a run").join("paper.md");
    let paper = fs::read_to_string(paper).expect("the paper was written");
    assert!(paper.contains("742803.00"), "{paper}");
    change_quantity("- 1");
    let output = tpch(folder, "run --scale 0.01 --dir changed --new", &server.url());
    assert_eq!(output.code, 0, "{output}");
}

#[test]
fn mariadb_makes_power_and_throughput_and_has_no_degrees() {
    let name = "mariadb_makes_power_and_throughput_and_has_no_degrees";
    let server = server_or_skip!(MariaDb, name);
    let (scratch, url) = (Scratch::new(), server.url());
    let folder = scratch.path();
    let loaded = tpch(folder, "load --scale 0.01", &url);
    assert_eq!(loaded.code, 0, "{loaded}");
    let output = tpch(folder, "run --scale 0.01 --degree 0,4 --dir degrees", &url);
    assert_eq!(output.code, 0, "{output}");
    assert_eq!(last_line(&output), "answers: 22 of 22 correct", "{output}");
    assert!(output.stderr.contains("MariaDB executes each query in one thread"), "{output}");
    let run = only_run(&folder.join("degrees")).expect("there is a run");
    adds_up(&run, &trial(&folder.join("degrees"), 1));
    assert!(!run.join("trials/2.json").exists(), "no trial at a degree that there is not");

    for words in ["power", "throughput --streams 2"] {
        let words = format!("{words} --scale 0.01 --dir {}", &words[..5]);
        let output = tpch(folder, &words, &url);
        assert_eq!(output.code, 0, "{output}");
    }
    let [power, throughput] = ["power", "throu"].map(|tests| trial(&folder.join(tests), 1));
    let order = [14, 2, 9, 20, 6, 17, 18, 8, 21, 13, 3, 22, 16, 4, 11, 15, 1, 10, 19, 5, 7, 12];
    assert_eq!(numbers(&power), order);
    power_follows_from_its_times(&power["own"]["facts"]);
    let metrics = &throughput["own"]["facts"]["metrics"];
    let expected = 2.0 * 22.0 * 3600.0 * 0.01 / number(&metrics["total_s"]);
    let queries_per_hour = number(&metrics["throughput"]);
    assert!(
        (queries_per_hour / expected - 1.0).abs() < 0.01,
        "{queries_per_hour} is not about {expected}"
    );
    assert_eq!(list(&throughput["own"]["facts"]["queries"]).len(), 44);
    let pairs: Vec<(u64, u64)> = list(&throughput["own"]["facts"]["refreshes"])
        .iter()
        .map(|done| {
            (done["pair"].as_u64().expect("a pair"), done["function"].as_u64().expect("1, 2"))
        })
        .collect();
    assert_eq!(pairs, [(2, 1), (2, 2), (3, 1), (3, 2)]);
    two_runs_give_the_lower_composite(folder, &url);
    // 15 orders came and went with each pair.
    let orders = "SELECT COUNT(*) FROM sbtest.orders";
    assert_eq!(server.sql(orders).expect("an answer").trim(), "15000");
    let output = tpch(folder, "run --scale 0.01 --dir after", &url);
    assert!(!last_line(&output).contains("22 of 22"), "answers are not known: {output}");
    assert!(last_line(&output).ends_with("none compared"), "{output}");
}

/// Power and throughput twice, as one trial.
fn two_runs_give_the_lower_composite(folder: &Path, url: &str) {
    let words = "throughput --power --runs 2 --streams 1 --scale 0.01 --plans none --dir twice";
    let output = tpch(folder, words, url);
    assert_eq!(output.code, 0, "{output}");
    let trial = trial(&folder.join("twice"), 1);
    let facts = &trial["own"]["facts"];
    let pairs: Vec<u64> = list(&facts["refreshes"])
        .iter()
        .map(|done| done["pair"].as_u64().expect("a pair"))
        .collect();
    assert_eq!(pairs, [4, 4, 5, 5, 6, 6, 7, 7]);
    let queries = list(&facts["queries"]);
    assert_eq!(queries.len(), 88, "22 queries in two tests of two runs");
    let began: Vec<f64> = queries.iter().map(|query| number(&query["began_s"])).collect();
    // A begin is the end less the time that the query took: two clocks, of which a busy machine reads one later.
    let is_later = |two: &[f64]| two[1] > two[0] - 0.01;
    assert!(began.windows(2).all(is_later), "one test after the other: {began:?}");
    // From the stored times: the composites of both runs (clauses 5.4.1 to 5.4.3).
    let duration_s = |done: &Value| number(&done["seconds"]);
    let composite = |run: usize| {
        let query_times: Vec<f64> =
            queries[44 * run..44 * run + 22].iter().map(duration_s).collect();
        let longest = query_times.iter().copied().fold(0.0, f64::max);
        let refresh = list(&facts["refreshes"])[4 * run..4 * run + 2].iter().map(duration_s);
        let power_times = query_times.iter().map(|time| time.max(longest / 1000.0)).chain(refresh);
        let power = 36.0 / (power_times.map(f64::ln).sum::<f64>() / 24.0).exp();
        let span = |list: &[Value]| {
            let began = list.iter().map(|done| number(&done["began_s"])).fold(f64::MAX, f64::min);
            let ended = list.iter().map(|done| number(&done["began_s"]) + duration_s(done));
            (began, ended.fold(0.0, f64::max))
        };
        let (from, to) = span(&queries[44 * run + 22..44 * run + 44]);
        let (first, last) = span(&list(&facts["refreshes"])[4 * run + 2..4 * run + 4]);
        (power * 22.0 * 36.0 / (to.max(last) - from.min(first))).sqrt()
    };
    let (expected, reported) = (composite(0).min(composite(1)), number(&facts["metrics"]["qphh"]));
    assert!((reported / expected - 1.0).abs() < 1e-6, "{reported} is not {expected}: {facts:#}");
    assert!(output.stdout.contains("performance test"), "{output}");
}

/// Clause 5.4.1, from the stored times.
fn power_follows_from_its_times(facts: &Value) {
    let seconds = |list: &[Value]| list.iter().map(|done| number(&done["seconds"])).collect();
    let mut times: Vec<f64> = seconds(list(&facts["queries"]));
    let longest = times.iter().copied().fold(0.0, f64::max);
    times.iter_mut().for_each(|time| *time = time.max(longest / 1000.0));
    times.extend(seconds(list(&facts["refreshes"])) as Vec<f64>);
    assert_eq!(times.len(), 24, "{facts:#}");
    let mean = (times.iter().map(|time| time.ln()).sum::<f64>() / 24.0).exp();
    let expected = 3600.0 * 0.01 / mean;
    let power = number(&facts["metrics"]["power"]);
    assert!((power / expected - 1.0).abs() < 0.01, "{power} is not about {expected}");
}

/// At a size without stored answers, with values that qgen draws: what the second engine answers is
/// held against the first.
#[test]
fn two_engines_are_held_against_each_other() {
    let name = "two_engines_are_held_against_each_other";
    let postgres = server_or_skip!(Postgres, name);
    let mariadb = server_or_skip!(MariaDb, name);
    let scratch = Scratch::new();
    let folder = scratch.path();
    for url in [postgres.url(), mariadb.url()] {
        let loaded = tpch(folder, "load --scale 0.008 --no-foreign-keys", &url);
        assert_eq!(loaded.code, 0, "{loaded}");
    }
    let words =
        format!("run --scale 0.008 --parameters 101 --plans none --target one={}", postgres.url());
    let other_target = format!("other={}", mariadb.url());
    let output = tpch(folder, &words, &other_target);
    assert_eq!(output.code, 0, "{output}");
    let trials: Vec<Value> =
        (1..=2).map(|number| trial(&folder.join("dyno-runs"), number)).collect();
    let answer_verdicts = |trial: &Value| -> Vec<String> {
        let queries = list(&trial["own"]["facts"]["queries"]);
        queries.iter().map(|query| query["answer"]["verdict"].to_string()).collect()
    };
    assert!(
        answer_verdicts(&trials[1]).iter().all(|verdict| verdict == "\"passed\""),
        "{:#}",
        trials[1]
    );

    // A wrong engine is told from a right one.
    let second = if trials[1]["target"] == "one" { "postgres" } else { "mariadb" };
    let change = "UPDATE lineitem SET l_extendedprice = l_extendedprice + 5000";
    match second {
        "postgres" => postgres.sbtest(change),
        _ => mariadb.sql(&format!("USE sbtest; {change}")),
    }
    .expect("a change");
    let output = tpch(folder, &format!("{words} --dir changed"), &other_target);
    assert_eq!(output.code, 4, "{output}");
    assert!(!output.stdout.contains("wrong: Q1"), "which is right is not known: {output}");
    assert!(output.stdout.contains("unlike the answers of the target"), "{output}");

    // Rows that are gone since the load are named, whatever was executed first.
    let deleted = "DELETE FROM lineitem WHERE l_orderkey < 100";
    postgres.sbtest(deleted).expect("a change");
    let output = tpch(folder, &format!("{words} --dir deleted"), &other_target);
    assert_eq!(output.code, 4, "{output}");
    let checks = (1..=2).map(|number| trial(&folder.join("deleted"), number)).map(|trial| {
        let rows = list(&trial["checks"]).iter().find(|check| check["name"] == "rows").cloned();
        (trial["target"].clone(), rows.expect("a check of the rows")["verdict"].clone())
    });
    for (target, verdict) in checks {
        assert_eq!(verdict, if target == "one" { "failed" } else { "passed" }, "{target}");
    }
}
