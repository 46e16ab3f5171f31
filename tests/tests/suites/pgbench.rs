//! pgbench in suites, on a real PostgreSQL: the white paper's suite at a thousandth of its size, and books
//! that somebody else falsifies.

use dyno_testkit::{MariaDb, Postgres, Scratch, dyno, only_run, server_or_skip};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

fn json(path: &Path) -> Value {
    let text = fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_slice(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn count(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value} is no count"))
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

fn the_run(folder: &Path) -> PathBuf {
    only_run(&folder.join("dyno-runs")).expect("there is a run")
}

#[test]
fn the_white_paper_runs_at_a_thousandth_of_its_size() {
    let server = server_or_skip!(Postgres, "the_white_paper_runs_at_a_thousandth_of_its_size");
    let scratch = Scratch::new();
    let folder = scratch.path();
    let target = format!("x4-medium={}", server.url());
    let suite = "polardb-oracle-pgbench";
    let output = dyno(folder, &["run", suite, "--target", &target, "--shrink", "0.001"]);
    assert_eq!(output.code, 0, "{output}");
    let run = the_run(folder);
    let trials: Vec<Value> =
        (1..=4).map(|number| json(&run.join(format!("trials/{number}.json")))).collect();
    for (trial, (share, writes)) in
        trials.iter().zip([(0.5, false), (1.0, false), (0.5, true), (1.0, true)])
    {
        assert_eq!((&trial["status"], count(&trial["workers"])), (&Value::from("complete"), 8));
        let data = &trial["data"];
        assert_eq!(count(&data["rows"]), 100_000);
        assert_eq!(number(&data["hot_rows"]) / 100_000.0, share);
        // 100,000 accounts of some 130 bytes, and their index.
        assert!((13_000_000..30_000_000).contains(&count(&data["size_bytes"])), "{data}");
        assert_eq!(data["memory_setting"], "shared_buffers");
        assert_eq!(count(&data["memory_bytes"]), 128 << 20);
        let committed = count(&trial["counts"]["committed"]);
        let statements = trial["statement_latencies"].as_array().expect("a list");
        assert_eq!(statements.len(), if writes { 7 } else { 1 });
        for statement in statements {
            assert_eq!(count(&statement["count"]), committed, "{statement}");
            let [min, mean, max] =
                ["min_us", "mean_us", "max_us"].map(|name| number(&statement[name]));
            assert!(0.0 < min && min <= mean && mean <= max, "{statement}");
        }
        let checks = trial["checks"].as_array().expect("a list");
        assert_eq!(checks.len(), usize::from(writes));
        assert!(checks.iter().all(|check| check["verdict"] == "passed"), "{checks:?}");
        // SELECT; INSERT, SELECT and UPDATE: five of the seven statements.
        let statements = &trial["statements"];
        let data_statements = count(&statements["reads"]) + count(&statements["writes"]);
        assert_eq!(data_statements, committed * if writes { 5 } else { 1 });
    }
    // Everything was removed.
    let tables = "SELECT count(*) FROM pg_tables WHERE tablename LIKE 'pgbench%'";
    assert_eq!(server.sbtest(tables).expect("an answer").trim(), "0");
    let paper = fs::read_to_string(run.join("paper.md")).expect("the paper was written");
    for words in [
        "Measured and published: POLARDB for Oracle",
        "read-only, QPS: measured",
        "34,386",
        "18,242",
        "68% of all draws fall into the middle 10% of the range",
        "UPDATE pgbench_branches SET bbalance = bbalance + :delta WHERE bid = :bid;",
        "Checks of the data after each trial",
    ] {
        assert!(paper.contains(words), "no `{words}` in the paper");
    }
    let summary = dyno(folder, &["show"]);
    assert_eq!(summary.code, 0, "{summary}");
    for words in ["INSERT INTO pgbench_history", "Data to memory", "balances  passed"] {
        assert!(summary.stdout.contains(words), "no `{words}` in: {summary}");
    }
}

/// A suite on tables of scale 1; `more` are further keys of its experiment.
fn write_small_suite(folder: &Path, url: &str, test: &str, more: &str) {
    let text = format!(
        "[suite]\nname = \"small\"\n\n[target.main]\nurl = \"{url}\"\n\n[[experiment]]\nname = \"pay\"\n\
         workload = \"pgbench\"\ntest = \"{test}\"\nworkers = 4\nevents = 200\n{more}\n"
    );
    fs::write(folder.join("small.toml"), text).expect("the suite can be written");
}

/// Others are in flight then, and their commits are answered to no one.
#[test]
fn an_error_of_one_worker_loses_no_commit_of_the_others() {
    let server = server_or_skip!(Postgres, "an_error_of_one_worker_loses_no_commit_of_the_others");
    let scratch = Scratch::new();
    let folder = scratch.path();
    write_small_suite(folder, &server.url(), "tpcb-like", "cleanup = false");
    assert_eq!(dyno(folder, &["run", "small.toml", "--dir", "good"]).code, 0);
    server
        .sbtest(
            "CREATE SEQUENCE payments; CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS \
             'BEGIN IF nextval(''payments'') % 30 = 0 THEN RAISE EXCEPTION ''enough''; END IF; RETURN NEW; END'; \
             CREATE TRIGGER refuse BEFORE UPDATE ON pgbench_accounts FOR EACH ROW EXECUTE FUNCTION refuse()",
        )
        .expect("a trigger");
    for (number, warm_up) in ["", "warmup_s = 60\n"].repeat(3).into_iter().enumerate() {
        let keys = format!("{warm_up}prepare = false\ncleanup = false");
        write_small_suite(folder, &server.url(), "tpcb-like", &keys);
        let output = dyno(folder, &["run", "small.toml", "--dir", &format!("bad{number}")]);
        assert_eq!(output.code, 1, "{output}");
        assert!(output.stderr.contains("enough"), "{output}");
        assert!(!output.stderr.contains("check balances: failed"), "{output}");
    }
}

#[test]
fn falsified_books_fail_the_run() {
    let server = server_or_skip!(Postgres, "falsified_books_fail_the_run");
    let scratch = Scratch::new();
    let folder = scratch.path();
    write_small_suite(folder, &server.url(), "tpcb-like", "cleanup = false");
    let output = dyno(folder, &["run", "small.toml", "--dir", "good"]);
    assert_eq!(output.code, 0, "{output}");
    assert!(output.stderr.contains("check balances: passed:"), "{output}");
    // From now on every teller gets 1 too much.
    server
        .sbtest(
            "CREATE FUNCTION falsify() RETURNS trigger LANGUAGE plpgsql AS \
             'BEGIN NEW.tbalance := NEW.tbalance + 1; RETURN NEW; END'; \
             CREATE TRIGGER falsify BEFORE UPDATE ON pgbench_tellers FOR EACH ROW EXECUTE FUNCTION falsify()",
        )
        .expect("a trigger");
    write_small_suite(folder, &server.url(), "tpcb-like", "prepare = false\ncleanup = false");
    let output = dyno(folder, &["run", "small.toml", "--dir", "bad"]);
    assert_eq!(output.code, 4, "{output}");
    assert!(
        output.stderr.contains("check balances: failed: The sums changed by different"),
        "{output}"
    );
    let run = only_run(&folder.join("bad")).expect("there is a run");
    let trial = json(&run.join("trials/1.json"));
    assert_eq!(trial["checks"][0]["verdict"], "failed");
    assert!(trial["status"]["failed"]["en"].as_str().is_some_and(|why| why.contains("tellers by")));
    let paper = fs::read_to_string(run.join("paper.md")).expect("the paper was written");
    assert!(
        paper.contains("**FAILED**") && paper.contains("work was lost, invented or done twice")
    );
    // Tellers are not business of simple-update; what is not checked can't fail.
    write_small_suite(folder, &server.url(), "simple-update", "prepare = false\ncleanup = false");
    assert_eq!(dyno(folder, &["run", "small.toml", "--dir", "simple"]).code, 0);
    let keys = "prepare = false\noptions = { check = false }";
    write_small_suite(folder, &server.url(), "tpcb-like", keys);
    assert_eq!(dyno(folder, &["run", "small.toml", "--dir", "unchecked"]).code, 0);
}

#[test]
fn wrong_options_and_scripts_are_one_error_with_its_place() {
    let scratch = Scratch::new();
    let folder = scratch.path();
    let url = format!("sqlite:{}", folder.join("data.db").display());
    fs::write(folder.join("bad.sql"), "\\set aid 1 +\nSELECT 1;\n").expect("a script");
    for (test, options, words, place) in [
        (
            "select-only",
            "mode = \"fast\"",
            "it takes simple, extended or prepared",
            "small.toml:13:20",
        ),
        ("select-only", "scael = 2", "Did you mean `scale`?", "small.toml:13:13"),
        ("script", "scripts = \"bad.sql\"", "bad.sql:1: syntax error", "small.toml:13:23"),
        ("script", "scripts = \"none.sql\"", "none.sql can't be read", "small.toml:13:23"),
    ] {
        write_small_suite(folder, &url, test, &format!("options = {{ {options} }}"));
        let output = dyno(folder, &["run", "small.toml"]);
        assert_eq!(output.code, 2, "{output}");
        assert!(output.stderr.contains(words) && output.stderr.contains(place), "{output}");
        assert!(!folder.join("dyno-runs").exists(), "nothing was begun");
    }
    // Tables of another scale are refused before a trial.
    write_small_suite(folder, &url, "select-only", "cleanup = false");
    assert_eq!(dyno(folder, &["run", "small.toml", "--dir", "one"]).code, 0);
    write_small_suite(folder, &url, "select-only", "prepare = false\noptions = { scale = 2 }");
    let output = dyno(folder, &["run", "small.toml", "--dir", "two"]);
    assert_eq!(output.code, 1, "{output}");
    assert!(output.stderr.contains("The tables have scale 1, but the suite says 2."), "{output}");
}

#[test]
fn what_a_dialect_can_not_do_is_said_before_anything_is_touched() {
    let name = "what_a_dialect_can_not_do_is_said_before_anything_is_touched";
    let server = server_or_skip!(MariaDb, name);
    let scratch = Scratch::new();
    let folder = scratch.path();
    let pipeline = "\\startpipeline\nSELECT 1;\n\\endpipeline\n";
    fs::write(folder.join("pipe.sql"), pipeline).expect("a script");
    let options = "options = { scripts = \"pipe.sql\", mode = \"extended\" }";
    write_small_suite(folder, &server.url(), "script", options);
    let output = dyno(folder, &["run", "small.toml"]);
    assert_eq!(output.code, 1, "{output}");
    assert!(
        output.stderr.contains("error: pay on main: script \"pipe.sql\" uses a pipeline"),
        "{output}"
    );
    assert!(fs::read_dir(folder.join("dyno-runs")).is_ok_and(|mut runs| runs.next().is_none()));
    assert!(!output.stderr.contains("prepare pay"), "{output}");
    // The same on what it can do, with its books.
    write_small_suite(
        folder,
        &server.url(),
        "tpcb-like",
        "options = { mode = \"prepared\", vacuum = \"some\" }",
    );
    let output = dyno(folder, &["run", "small.toml"]);
    assert_eq!(output.code, 0, "{output}");
    assert!(
        output.stderr.contains("check balances: passed: The sums of accounts, tellers"),
        "{output}"
    );
}
