//! Tables of others after `dyno bench`, and its messages when it fails.

use dyno_core::{AnswerTable, Driver, Session};
use dyno_drivers::sqlite::SqliteDriver;
use dyno_testkit::{MariaDb, Postgres, RunningDyno, Scratch, dyno, dyno_command, server_or_skip};
use std::io::Write;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;

/// Executes a statement in the database of the tests; its rows' first columns, sorted.
fn sql(folder: &Path, sql: &str) -> Vec<String> {
    let url = format!("sqlite:{}", folder.join("own.db").display());
    let target = url.parse().expect("a good URL");
    let driver = SqliteDriver::new(&target).expect("a driver");
    let answer = dyno_reactor::block_on(async {
        let mut session = driver.connect(0).await.expect("the database can be opened");
        let mut answer = AnswerTable::default();
        let result = session.query(sql, &mut answer).await.map(|_| answer);
        session.close().await;
        result
    });
    let answer = answer.expect("an event loop").expect("an answer");
    let first = answer.rows.into_iter().filter_map(|row| row.into_iter().next().flatten());
    let mut first: Vec<String> = first.collect();
    first.sort();
    first
}

fn names(folder: &Path) -> Vec<String> {
    sql(
        folder,
        "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite%'",
    )
}

/// They are refused, although the question was asked before they were there.
#[test]
fn tables_that_appear_while_a_bench_asks_are_kept() {
    let scratch = Scratch::new();
    let folder = scratch.path();
    let (mut answer, stdin) = UnixStream::pair().expect("a pair of sockets");
    let mut command = dyno_command(folder);
    command.args(["bench", "sqlite:own.db"]).stdin(OwnedFd::from(stdin));
    let mut running = RunningDyno::spawn(folder, command);
    running.wait_until("it asks", |it| it.stderr().contains("Begin? [y/N]"));
    sql(folder, "CREATE TABLE sbtest5 (own INT)");
    sql(folder, "CREATE TABLE orders (own INT)");
    answer.write_all(b"y\n").expect("dyno reads");
    let output = running.end();
    assert_eq!(output.code, 1, "{output}");
    // Only the existing table of TPC-H.
    let message = "a has tables with the names that are needed: orders, sbtest5.";
    assert!(output.stderr.contains(message), "{output}");
    assert_eq!(names(folder), ["orders", "sbtest5"]);
}

/// A load that is refused because of them ends the run.
#[test]
fn tables_that_appear_while_a_bench_runs_are_kept() {
    let scratch = Scratch::new();
    let folder = scratch.path();
    let bench = ["bench", "sqlite:own.db", "--yes", "--budget", "45s"];
    let mut running = RunningDyno::start(folder, &bench);
    running.wait_until("a trial has ended", |it| it.stderr().contains("16 workers"));
    sql(folder, "CREATE TABLE bmsql_item (own INT)");
    sql(folder, "INSERT INTO bmsql_item VALUES (7)");
    let second = dyno(folder, &bench);
    assert_eq!(second.code, 1, "{second}");
    assert!(second.stderr.contains("The same run is being executed"), "{second}");
    assert!(!second.stderr.contains("--new"), "{second}");
    let output = running.end();
    assert_eq!(output.code, 1, "{output}");
    assert!(output.stderr.contains("Table bmsql_item exists"), "{output}");
    assert!(!output.stderr.contains("has left tables"), "{output}");
    assert_eq!(names(folder), ["bmsql_item"]);
    assert_eq!(sql(folder, "SELECT own FROM bmsql_item"), ["7"]);
}

/// Its own tables are dropped, also if a load fails half-way.
#[test]
fn a_bench_whose_load_fails_leaves_no_table() {
    let scratch = Scratch::new();
    let folder = scratch.path();
    sql(folder, "CREATE VIEW k_3 AS SELECT 1");
    let output = dyno(folder, &["bench", "sqlite:own.db", "--yes", "--budget", "60s"]);
    assert_eq!(output.code, 1, "{output}");
    assert!(output.stderr.contains("creating index 'k_3'"), "{output}");
    assert_eq!(names(folder), ["k_3"]);
    let nothing = dyno(folder, &["bench", "sqlite:own.db", "--remove"]);
    assert_eq!(nothing.code, 0, "{nothing}");
    // Another folder knows nothing of what was left.
    let elsewhere = ["bench", "sqlite:own.db", "--remove", "--dir", "elsewhere"];
    let elsewhere = dyno(folder, &elsewhere);
    assert_eq!(elsewhere.code, 1, "{elsewhere}");
    let message = "There is no run of `dyno bench` in elsewhere.";
    assert!(elsewhere.stderr.contains(message), "{elsewhere}");
    assert!(elsewhere.stderr.contains("`--dir`"), "{elsewhere}");
}

#[test]
fn a_bench_whose_server_dies_says_what_it_leaves() {
    let mut server = server_or_skip!(Postgres, "a_bench_whose_server_dies_says_what_it_leaves");
    let scratch = Scratch::new();
    let folder = scratch.path();
    let url = server.url();
    let bench = ["bench", &url, "--yes", "--budget", "60s"];
    let mut running = RunningDyno::start(folder, &bench);
    running.wait_until("a trial has ended", |it| it.stderr().contains("16 workers"));
    server.kill();
    let output = running.end();
    assert_eq!(output.code, 1, "{output}");
    assert!(output.stderr.contains("has left tables on"), "{output}");
    assert!(output.stderr.contains("with `--remove` it only drops them"), "{output}");
    server.restart().expect("it starts again");
    // Its user has made one of them again.
    server.sbtest("COMMENT ON TABLE sbtest1 IS NULL").expect("it is there");
    let again = dyno(folder, &bench);
    assert_eq!(again.code, 1, "{again}");
    assert!(again.stderr.contains("that are needed: sbtest1."), "{again}");
    let removed = dyno(folder, &["bench", &url, "--remove", "--yes"]);
    assert_eq!(removed.code, 0, "{removed}");
    assert!(removed.stderr.contains("kept"), "{removed}");
    let tables = server.sbtest("SELECT tablename FROM pg_tables WHERE schemaname = 'public'");
    assert_eq!(tables.expect("tables").trim(), "sbtest1");
}

/// Nothing is loaded into one database under two names; settings of sessions may be compared on it, and databases of a
/// server.
fn assert_one_database_is_none_of_two(url: &str, other_url: &str, options: &str) {
    let scratch = Scratch::new();
    let folder = scratch.path();
    let renamed = url.replace("127.0.0.1", "localhost");
    assert_ne!(renamed, url);
    let two_names = dyno(folder, &["bench", url, &renamed, "--yes", "--budget", "30m"]);
    assert_eq!(two_names.code, 1, "{two_names}");
    assert!(two_names.stderr.contains("same database under two names"), "{two_names}");
    assert!(!two_names.stderr.contains("preparing"), "{two_names}");
    let suite = "[suite]\nname = \"two\"\n\n[target.a]\n\n[target.b]\n\n[[experiment]]\nname = \"ro\"\n\
                 workload = \"sysbench\"\ntest = \"oltp_read_only\"\nworkers = 1\nevents = 20\n\
                 options = { tables = 1, table_size = 100 }\n";
    std::fs::write(folder.join("two.toml"), suite).expect("a suite can be written");
    let run_pair = |b: &str| {
        let (a, b) = (format!("a={url}"), format!("b={b}"));
        dyno(folder, &["run", "two.toml", "--new", "--target", &a, "--target", &b])
    };
    assert_eq!(run_pair(&renamed).code, 1);
    for allowed in [other_url, &format!("{renamed}?{options}")] {
        run_pair(allowed).assert_judged();
    }
}

#[test]
fn a_database_of_postgres_under_two_names_is_one() {
    let server = server_or_skip!(Postgres, "a_database_of_postgres_under_two_names_is_one");
    server.sql("CREATE DATABASE other").expect("a database");
    let url = server.url();
    let other_url = url.replace("/sbtest", "/other");
    assert_one_database_is_none_of_two(&url, &other_url, "sslmode=disable");
}

#[test]
fn a_database_of_mariadb_under_two_names_is_one() {
    let server = server_or_skip!(MariaDb, "a_database_of_mariadb_under_two_names_is_one");
    server.sql("CREATE DATABASE other").expect("a database");
    let url = server.url();
    let other_url = url.replace("/sbtest", "/other");
    assert_one_database_is_none_of_two(&url, &other_url, "tls=disable");
}
