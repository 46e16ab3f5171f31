//! The front ends on small data, and whether the database holds what they say.

use super::{Expected, Place};
use dyno_core::Dialect;
use dyno_testkit::{ProcessOutput, dyno};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    SysbenchPrepare,
    SysbenchRun,
    /// A Lua script with transactions.
    SysbenchScript,
    PgbenchInit,
    PgbenchRun,
    /// A script of the user's own, which writes outside of transactions.
    PgbenchScript,
    Build,
    BuildWithForeignKeys,
    TpccRun,
    TpchLoad,
    TpchRun,
    Bench,
}

/// Executes a step. A problem is what differs from the expected.
pub(super) fn expect(place: &Place, step: Step, expected: Expected) -> Result<(), String> {
    let tables_before = place.count("tables", "1 = 1");
    let (output, problem) = execute(place, step);
    let report = format!("{}\n{output}", problem.clone().unwrap_or_default());
    match expected {
        Expected::Right if output.code == 0 && problem.is_none() => Ok(()),
        Expected::Honest if output.code != 0 || problem.is_none() => Ok(()),
        Expected::Refused(words)
            if output.code != 0 && output.to_string().to_lowercase().contains(words) =>
        {
            match place.count("tables", "1 = 1") - tables_before {
                0 => Ok(()),
                tables => Err(format!("{tables} tables were made: {report}")),
            }
        }
        _ => Err(report),
    }
}

/// The output of a step, and a mistake in the database if it ended well.
fn execute(place: &Place, step: Step) -> (ProcessOutput, Option<String>) {
    match step {
        Step::SysbenchPrepare => checked(sysbench(place, &["oltp_read_write", "prepare"]), || {
            same(place, "rows", "SELECT count(*) FROM sbtest1", 1_000)?;
            same(place, "ids", "SELECT max(id) FROM sbtest1", 1_000)?;
            has_keys(place, "sbtest1", &["id"])
        }),
        Step::SysbenchRun => sysbench_run(place),
        Step::SysbenchScript => sysbench_script(place),
        Step::PgbenchInit => checked(pgbench(place, &["-i", "-q"]), || {
            same(place, "accounts", "SELECT count(*) FROM pgbench_accounts", 100_000)?;
            same(place, "tellers", "SELECT count(*) FROM pgbench_tellers", 10)?;
            for (table, key) in [("accounts", "aid"), ("tellers", "tid"), ("branches", "bid")] {
                has_keys(place, &format!("pgbench_{table}"), &[key])?;
            }
            has_engine(place, "pgbench_%")
        }),
        Step::PgbenchRun => pgbench_run(place),
        Step::PgbenchScript => pgbench_script(place),
        Step::Build => checked(benchmarksql(place, &["build", "props"]), || {
            check_build(place, if place.dialect == Dialect::Postgres { 10 } else { 0 })
        }),
        Step::BuildWithForeignKeys => {
            let build = ["build", "props", "--foreign-keys=true"];
            checked(benchmarksql(place, &build), || check_build(place, 10))
        }
        Step::TpccRun => tpcc_run(place),
        Step::TpchLoad => {
            let load = ["tpch", "load", "--scale", "0.01", "--target"];
            checked(dyno(place.folder.path(), &[&load[..], &[&place.url()]].concat()), || {
                same(place, "lineitem", "SELECT count(*) FROM lineitem", 60_175)?;
                has_keys(place, "lineitem", &["l_orderkey", "l_linenumber"])?;
                has_keys(place, "partsupp", &["ps_partkey", "ps_suppkey"])?;
                has_foreign_keys(place, "NOT LIKE 'bmsql%'", 10)?;
                has_engine(place, "%")
            })
        }
        Step::TpchRun => {
            let run = ["tpch", "run", "--scale", "0.01", "--plans", "none", "--target"];
            let output = dyno(place.folder.path(), &[&run[..], &[&place.url()]].concat());
            let is_whole = output.stdout.contains("answers: 22 of 22 correct");
            let problem =
                (output.code == 0 && !is_whole).then(|| "not all answers are right".to_owned());
            (output, problem)
        }
        Step::Bench => bench(place),
    }
}

fn checked(
    output: ProcessOutput,
    check: impl FnOnce() -> Result<(), String>,
) -> (ProcessOutput, Option<String>) {
    let problem = if output.code == 0 { check().err() } else { None };
    (output, problem)
}

fn same(place: &Place, name: &str, sql: &str, expected: i64) -> Result<(), String> {
    match place.number(sql) {
        number if number == expected => Ok(()),
        number => Err(format!("{name}: {number} instead of {expected}")),
    }
}

fn same_count(place: &Place, catalog: &str, condition: &str, expected: i64) -> Result<(), String> {
    match place.count(catalog, condition) {
        count if count == expected => Ok(()),
        count => Err(format!("{catalog} with {condition}: {count} instead of {expected}")),
    }
}

/// The primary key of a table has exactly these columns.
fn has_keys(place: &Place, table: &str, columns: &[&str]) -> Result<(), String> {
    let names: Vec<String> = columns.iter().map(|name| format!("'{name}'")).collect();
    let is_primary = match place.dialect {
        Dialect::Postgres => format!("constraint_name = '{table}_pkey'"),
        _ => "constraint_name = 'PRIMARY'".to_owned(),
    };
    let key = format!("table_name = '{table}' AND {is_primary}");
    same_count(place, "key_column_usage", &key, columns.len() as i64)?;
    let expected_columns = format!("{key} AND column_name IN ({})", names.join(", "));
    same_count(place, "key_column_usage", &expected_columns, columns.len() as i64)
}

/// The foreign keys of tables whose names fulfil a condition.
fn has_foreign_keys(place: &Place, tables: &str, expected: i64) -> Result<(), String> {
    let keys = format!("constraint_type = 'FOREIGN KEY' AND table_name {tables}");
    same_count(place, "table_constraints", &keys, expected)
}

/// MySQL's tables of these names can be rolled back.
fn has_engine(place: &Place, pattern: &str) -> Result<(), String> {
    match place.dialect {
        Dialect::Postgres => Ok(()),
        _ => {
            let condition = format!("table_name LIKE '{pattern}' AND engine <> 'InnoDB'");
            same_count(place, "tables", &condition, 0)
        }
    }
}

fn sysbench(place: &Place, words: &[&str]) -> ProcessOutput {
    let kind = match place.dialect {
        Dialect::Postgres => "pgsql",
        _ => "mysql",
    };
    let mut command = vec!["sysbench".to_owned(), format!("--db-driver={kind}")];
    let format_option =
        |name: &str, value: &dyn std::fmt::Display| format!("--{kind}-{name}={value}");
    command.extend([
        format_option("host", &"127.0.0.1"),
        format_option("port", &place.port),
        format_option("user", &"app"),
        format_option("db", &place.database),
    ]);
    command.extend(["--table-size=1000", "--threads=2"].map(str::to_owned));
    command.extend(words.iter().map(|&word| word.to_owned()));
    let words: Vec<&str> = command.iter().map(String::as_str).collect();
    dyno(place.folder.path(), &words)
}

/// Each event of these tests leaves a known trace.
fn sysbench_run(place: &Place) -> (ProcessOutput, Option<String>) {
    let (rows, sum) = ("SELECT count(*) FROM sbtest1", "SELECT sum(k) FROM sbtest1");
    let (rows_before, sum_before) = (place.number(rows), place.number(sum));
    let run_test = |test| sysbench(place, &[test, "--events=100", "--time=0", "run"]);
    let updates = run_test("oltp_update_index");
    let updates = checked(updates, || same(place, "sum(k)", sum, sum_before + 100));
    if updates.0.code != 0 || updates.1.is_some() {
        return updates;
    }
    let rows_after = rows_before + 100;
    let inserts = checked(run_test("oltp_insert"), || same(place, "rows", rows, rows_after));
    if inserts.0.code != 0 || inserts.1.is_some() {
        return inserts;
    }
    checked(run_test("oltp_read_write"), || same(place, "rows", rows, rows_after))
}

fn sysbench_script(place: &Place) -> (ProcessOutput, Option<String>) {
    let script = "function event() db_query('BEGIN') \
                  db_query('UPDATE sbtest1 SET k = k + 1 WHERE id = ' .. sysbench.tid + 1) db_query('COMMIT') end";
    std::fs::write(place.folder.file("script.lua"), script).expect("a file");
    let sum = "SELECT sum(k) FROM sbtest1";
    let before = place.number(sum);
    let output = sysbench(place, &["script.lua", "--events=100", "--time=0", "run"]);
    checked(output, || same(place, "sum(k)", sum, before + 100))
}

fn pgbench(place: &Place, words: &[&str]) -> ProcessOutput {
    let url = place.url();
    dyno(place.folder.path(), &[&["pgbench"], words, &[url.as_str()]].concat())
}

/// A client that meets others may give some transactions up, and says how many it has made.
fn pgbench_run(place: &Place) -> (ProcessOutput, Option<String>) {
    let tables = [("accounts", "a"), ("tellers", "t"), ("branches", "b")];
    let balances = tables
        .map(|(table, column)| format!("SELECT sum({column}balance) FROM pgbench_{table}"))
        .map(|sum| (place.number(&sum), sum));
    let output = pgbench(place, &["-c", "2", "-t", "50"]);
    let transactions = output.stdout.split_once("actually processed: ").and_then(|(_, text)| {
        text.split(|letter: char| !letter.is_ascii_digit()).next()?.parse().ok()
    });
    checked(output, || {
        // The history begins with each run.
        let rows = transactions.filter(|count| *count > 0).ok_or("no transaction was made")?;
        same(place, "history", "SELECT count(*) FROM pgbench_history", rows)?;
        let paid = place.number("SELECT sum(delta) FROM pgbench_history");
        for (before, sum) in &balances {
            same(place, sum, sum, before + paid)?;
        }
        Ok(())
    })
}

fn pgbench_script(place: &Place) -> (ProcessOutput, Option<String>) {
    let script = "UPDATE pgbench_branches SET bbalance = bbalance + 1 WHERE bid = 1;";
    std::fs::write(place.folder.file("script.sql"), script).expect("a file");
    let sum = "SELECT sum(bbalance) FROM pgbench_branches";
    let before = place.number(sum);
    checked(pgbench(place, &["-n", "-f", "script.sql", "-c", "2", "-t", "50"]), || {
        same(place, "bbalance", sum, before + 100)
    })
}

/// Executes a command on the file `props`.
fn benchmarksql(place: &Place, words: &[&str]) -> ProcessOutput {
    let (port, database) = (place.port, &place.database);
    let connection = match place.dialect {
        Dialect::Postgres => format!(
            "db=postgres\ndriver=org.postgresql.Driver\nuser=app\npassword=\n\
             conn=jdbc:postgresql://127.0.0.1:{port}/{database}\n"
        ),
        _ => format!(
            "db=mysql\ndriver=com.mysql.cj.jdbc.Driver\nuser=app\npassword=\n\
             conn=jdbc:mysql://127.0.0.1:{port}/{database}\n"
        ),
    };
    let properties = "warehouses=1\nloadWorkers=2\nterminals=2\nrunTxnsPerTerminal=20\nrunMins=0\n\
                limitTxnsPerMin=0\nterminalWarehouseFixed=true\nnewOrderWeight=45\npaymentWeight=43\n\
                orderStatusWeight=4\ndeliveryWeight=4\nstockLevelWeight=4\n";
    std::fs::write(place.folder.file("props"), format!("{connection}{properties}"))
        .expect("a file");
    dyno(place.folder.path(), &[&["benchmarksql"], words].concat())
}

fn check_build(place: &Place, foreign_keys: i64) -> Result<(), String> {
    for (table, rows) in [("item", 100_000), ("stock", 100_000), ("oorder", 30_000)] {
        same(place, table, &format!("SELECT count(*) FROM bmsql_{table}"), rows)?;
    }
    has_keys(place, "bmsql_stock", &["s_w_id", "s_i_id"])?;
    has_keys(place, "bmsql_history", &["hist_id"])?;
    has_foreign_keys(place, "LIKE 'bmsql%'", foreign_keys)?;
    has_engine(place, "bmsql%")
}

/// The books of clause 3.3.2: orders are numbered without gaps, and payments are where they belong.
fn tpcc_run(place: &Place) -> (ProcessOutput, Option<String>) {
    let before = place.number("SELECT count(*) FROM bmsql_oorder");
    checked(benchmarksql(place, &["run", "props"]), || {
        let orders = place.number("SELECT count(*) FROM bmsql_oorder");
        if orders <= before {
            return Err("no order was stored".to_owned());
        }
        same(place, "numbers", "SELECT sum(d_next_o_id - 1) FROM bmsql_district", orders)?;
        let paid = place.number("SELECT sum(h_amount) * 100 FROM bmsql_history");
        same(place, "w_ytd", "SELECT sum(w_ytd) * 100 FROM bmsql_warehouse", paid)?;
        same(place, "d_ytd", "SELECT sum(d_ytd) * 100 FROM bmsql_district", paid)
    })
}

/// sysbench's transactions, TPC-C and TPC-H; without the tables of other steps.
fn bench(place: &Place) -> (ProcessOutput, Option<String>) {
    let bench = ["bench", &place.url(), "--yes", "--budget", "60s"];
    checked(dyno(place.folder.path(), &bench), || {
        same_count(place, "tables", "1 = 1", 0)?;
        let runs = std::fs::read_dir(place.folder.file("dyno-runs")).expect("a folder of runs");
        let papers = runs.filter_map(|run| {
            std::fs::read_to_string(run.expect("a run").path().join("paper.json")).ok()
        });
        let papers: Vec<serde_json::Value> =
            papers.map(|text| serde_json::from_str(&text).expect("JSON")).collect();
        let [paper] = &papers[..] else { return Err(format!("{} papers", papers.len())) };
        let checks = paper["checks"].as_array().expect("checks");
        let mut findings = checks.iter().filter(|check| {
            CONTRADICTIONS.contains(&check["id"].as_str().unwrap_or_default())
                && check["findings"].as_array().is_some_and(|findings| !findings.is_empty())
        });
        findings.next().map_or(Ok(()), |check| Err(check.to_string()))
    })
}

/// The checks that the data or the server contradict a trial.
const CONTRADICTIONS: [&str; 5] =
    ["data", "adds-up", "commits-missing", "statements-per-transaction", "table-scans"];
