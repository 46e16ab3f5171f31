//! A run drops the tables that it has made, and no others.

use dyno_core::{AdminSession, Driver, Session};
use dyno_drivers::sqlite::SqliteDriver;
use dyno_testkit::{
    MariaDb, Postgres, ProcessOutput, RunningDyno, Scratch, commits, dyno, only_run, server_or_skip,
};
use rustix::process::Signal;
use std::fs;
use std::path::Path;

const KEPT: &str = "kept: this run has not made the tables";
const PGBENCH: [&str; 4] =
    ["pgbench_accounts", "pgbench_branches", "pgbench_history", "pgbench_tellers"];

fn url(folder: &Path) -> String {
    format!("sqlite:{}", folder.join("data.db").display())
}

/// The tables in the database, sorted.
fn tables(folder: &Path) -> Vec<String> {
    let target = url(folder).parse().expect("a good URL");
    let driver = SqliteDriver::new(&target).expect("a driver");
    let listed = dyno_reactor::block_on(async {
        let mut session = driver.connect(0).await.expect("the database can be opened");
        let listed = dyno_sysbench::existing_tables(&mut AdminSession::lent(&mut session)).await;
        session.close().await;
        listed
    });
    let listed = listed.expect("an event loop").expect("an answer");
    let mut tables: Vec<String> =
        listed.into_iter().filter(|name| !name.starts_with("sqlite_")).collect();
    tables.sort();
    tables
}

/// Writes a suite of one experiment; `more` are further keys of it.
fn suite(folder: &Path, workload: &str, test: &str, more: &str) {
    let text = format!(
        "[suite]\nname = \"own\"\n\n[target.main]\nurl = \"{}\"\n\n[[experiment]]\nname = \"rw\"\n\
         workload = \"{workload}\"\ntest = \"{test}\"\nworkers = 1\n{more}\n",
        url(folder)
    );
    fs::write(folder.join("own.toml"), text).expect("a suite can be written");
}

fn pgbench(folder: &Path, more: &str) {
    suite(folder, "pgbench", "tpcb-like", more);
}

fn sysbench(folder: &Path, tables: u32, more: &str) {
    let options = format!("options = {{ tables = {tables}, table_size = 1000 }}\n{more}");
    suite(folder, "sysbench", "oltp_read_write", &options);
}

/// A run that ends well, in its own folder.
fn run(folder: &Path, dir: &str) -> ProcessOutput {
    let output = dyno(folder, &["run", "own.toml", "--dir", dir]);
    assert_eq!(output.code, 0, "{output}");
    output
}

fn paper(folder: &Path, dir: &str) -> String {
    let run = only_run(&folder.join(dir)).expect("there is a run");
    fs::read_to_string(run.join("paper.html")).expect("the paper was written")
}

/// Runs on what other runs have left: everything survives, also where nothing is prepared.
fn others_tables_survive(folder: &Path, write: impl Fn(&str), names: &[&str]) {
    write("events = 20\ncleanup = false");
    let output = run(folder, "made");
    assert!(!output.stderr.contains("tables that exist are kept"), "there is none: {output}");
    assert_eq!(tables(folder), names);
    write("events = 20");
    let output = run(folder, "found");
    assert!(output.stderr.contains("data were found, not loaded by this run"), "{output}");
    assert!(output.stderr.contains(KEPT) && !output.stderr.contains("dropped"), "{output}");
    assert!(paper(folder, "found").contains("data were found, not loaded by this run"));
    assert_eq!(tables(folder), names);
    write("events = 20\nprepare = false");
    let output = run(folder, "unprepared");
    assert!(output.stderr.contains(KEPT) && !output.stderr.contains("dropped"), "{output}");
    assert_eq!(tables(folder), names);
}

fn own_tables_are_dropped(folder: &Path) {
    let output = run(folder, "own");
    assert!(output.stderr.contains("tables dropped"), "{output}");
    assert!(!output.stderr.contains("kept:") && !output.stderr.contains("were found"), "{output}");
    assert_eq!(tables(folder), Vec::<String>::new());
}

/// Kills a run of `own.toml` when `is_so`, then continues with it.
fn killed_and_gone_on_with(folder: &Path, what: &str, is_so: impl Fn(&Path) -> bool) {
    let arguments = ["run", "own.toml", "--dir", "runs"];
    let mut running = RunningDyno::start(folder, &arguments);
    running.wait_until(what, |_| only_run(&folder.join("runs")).is_some_and(|run| is_so(&run)));
    running.signal(Signal::KILL);
    assert_eq!(running.end().code, -1);
    assert!(!tables(folder).is_empty(), "killed while there were tables");
    let output = run(folder, "runs");
    assert!(output.stderr.contains("Resuming "), "{output}");
    assert!(output.stderr.contains("tables dropped"), "{output}");
    assert!(!output.stderr.contains("were found"), "{output}");
    assert_eq!(tables(folder), Vec::<String>::new());
}

/// Longer than the schema, so rows are being stored.
fn is_loading(folder: &Path) -> bool {
    fs::metadata(folder.join("data.db")).is_ok_and(|file| file.len() > 100_000)
}

fn is_measuring(run: &Path) -> bool {
    commits(run, 1).iter().sum::<u64>() > 0
}

#[test]
fn tables_of_pgbench_that_were_there_survive() {
    let scratch = Scratch::new();
    let folder = scratch.path();
    others_tables_survive(folder, |more| pgbench(folder, more), &PGBENCH);
}

#[test]
fn tables_of_sysbench_that_were_there_survive() {
    let scratch = Scratch::new();
    let folder = scratch.path();
    others_tables_survive(folder, |more| sysbench(folder, 2, more), &["sbtest1", "sbtest2"]);
    // The run makes, and drops, only the missing part of a larger data set.
    sysbench(folder, 3, "events = 20");
    let output = run(folder, "larger");
    let message = "dropped: sbtest3; kept: sbtest1, sbtest2, not made by this run";
    assert!(output.stderr.contains(message), "{output}");
    assert_eq!(tables(folder), ["sbtest1", "sbtest2"]);
}

#[test]
fn a_runs_own_tables_are_dropped() {
    for write in [
        |folder: &Path| pgbench(folder, "events = 20"),
        |folder: &Path| {
            sysbench(folder, 2, "events = 20");
        },
    ] {
        let scratch = Scratch::new();
        write(scratch.path());
        own_tables_are_dropped(scratch.path());
    }
}

#[test]
fn what_an_interrupted_run_of_pgbench_has_loaded_is_dropped() {
    let scratch = Scratch::new();
    let folder = scratch.path();
    pgbench(folder, "events = 20\noptions = { scale = 4 }");
    killed_and_gone_on_with(folder, "rows", |_| is_loading(folder));
    let scratch = Scratch::new();
    let folder = scratch.path();
    pgbench(folder, "duration_s = 3");
    killed_and_gone_on_with(folder, "commits", is_measuring);
}

#[test]
fn what_an_interrupted_run_of_sysbench_has_loaded_is_dropped() {
    let scratch = Scratch::new();
    let folder = scratch.path();
    let options = "options = { tables = 4, table_size = 100000 }\nevents = 20";
    suite(folder, "sysbench", "oltp_read_write", options);
    killed_and_gone_on_with(folder, "rows", |_| is_loading(folder));
    let scratch = Scratch::new();
    let folder = scratch.path();
    sysbench(folder, 2, "duration_s = 3");
    killed_and_gone_on_with(folder, "commits", is_measuring);
}

/// A run is killed, and its user makes one of its tables again.
fn a_table_made_anew_is_kept(url: &str, query: impl Fn(&str) -> String, unmark: &str, list: &str) {
    let scratch = Scratch::new();
    let folder = scratch.path();
    sysbench(folder, 2, "duration_s = 3");
    let text = fs::read_to_string(folder.join("own.toml")).expect("the suite");
    let text = text.replace(&self::url(folder), url);
    fs::write(folder.join("own.toml"), text).expect("a suite can be written");
    let arguments = ["run", "own.toml", "--dir", "runs"];
    let mut running = RunningDyno::start(folder, &arguments);
    running.wait_until("commits", |_| {
        only_run(&folder.join("runs")).is_some_and(|run| is_measuring(&run))
    });
    running.signal(Signal::KILL);
    running.end();
    query(unmark);
    let output = dyno(folder, &arguments);
    let words = "dropped: sbtest2; kept: sbtest1, not made by this run";
    assert!(output.stderr.contains(words), "{output}");
    assert_eq!(query(list).trim(), "sbtest1");
}

#[test]
fn a_table_that_its_user_has_made_anew_is_kept() {
    let server = server_or_skip!(Postgres, "a_table_that_its_user_has_made_anew_is_kept");
    let query = |sql: &str| server.sbtest(sql).expect("an answer");
    let list = "SELECT tablename FROM pg_tables WHERE tablename LIKE 'sbtest%'";
    a_table_made_anew_is_kept(&server.url(), query, "COMMENT ON TABLE sbtest1 IS NULL", list);
}

#[test]
fn a_table_of_mariadb_that_its_user_has_made_anew_is_kept() {
    let server = server_or_skip!(MariaDb, "a_table_of_mariadb_that_its_user_has_made_anew_is_kept");
    let query = |sql: &str| server.sql(sql).expect("an answer");
    let list = "SHOW TABLES IN sbtest LIKE 'sbtest%'";
    let unmark = "ALTER TABLE sbtest.sbtest1 COMMENT = ''";
    a_table_made_anew_is_kept(&server.url(), query, unmark, list);
}

#[test]
fn a_table_that_others_build_on_is_not_dropped_with_them() {
    let name = "a_table_that_others_build_on_is_not_dropped_with_them";
    let server = server_or_skip!(Postgres, name);
    let scratch = Scratch::new();
    let folder = scratch.path();
    let write_suite = |workload: &str, test: &str, more: &str| {
        suite(folder, workload, test, &format!("duration_s = 2\n{more}"));
        let text = fs::read_to_string(folder.join("own.toml")).expect("the suite");
        let text = text.replace(&url(folder), &server.url());
        fs::write(folder.join("own.toml"), text).expect("a suite can be written");
    };
    for (workload, test, table) in
        [("pgbench", "tpcb-like", "pgbench_accounts"), ("sysbench", "oltp_read_only", "sbtest1")]
    {
        write_suite(workload, test, "");
        let mut running = RunningDyno::start(folder, &["run", "own.toml", "--dir", workload]);
        running.wait_until("commits", |_| {
            only_run(&folder.join(workload)).is_some_and(|run| is_measuring(&run))
        });
        server.sbtest(&format!("CREATE VIEW mine AS SELECT * FROM {table}")).expect("a view");
        let output = running.end();
        assert_eq!(output.code, 1, "{output}");
        assert!(!output.stderr.contains("CASCADE"), "{output}");
        for words in [
            "view mine depends on table",
            "hint: Something that dyno has not made depends on the tables",
        ] {
            assert!(output.stderr.contains(words), "no `{words}` in {output}");
        }
        server.sbtest("DROP VIEW mine").expect("the view was kept");
    }
}

#[test]
fn a_run_that_could_make_no_table_names_none() {
    let server = server_or_skip!(Postgres, "a_run_that_could_make_no_table_names_none");
    let scratch = Scratch::new();
    let folder = scratch.path();
    sysbench(folder, 2, "events = 20\ncleanup = false");
    let text = fs::read_to_string(folder.join("own.toml")).expect("the suite");
    let text = text.replace(&url(folder), &server.url());
    fs::write(folder.join("own.toml"), text).expect("a suite can be written");
    let run_suite = |dir| {
        let output = dyno(folder, &["run", "own.toml", "--dir", dir]);
        assert_eq!(output.code, 1, "{output}");
        output.stderr.lines().find(|line| line.contains("are left on")).map(str::to_owned)
    };
    server.sql("ALTER DATABASE sbtest SET search_path = pg_catalog").expect("a setting");
    assert_eq!(run_suite("refused"), None);
    // The second table can't be made.
    server.sql("ALTER DATABASE sbtest RESET search_path").expect("a setting");
    server.sbtest("CREATE TYPE sbtest2 AS (id int)").expect("a type");
    let note = "note: tables that this run has made are left on main: sbtest1";
    assert_eq!(run_suite("stopped").as_deref(), Some(note));
}

/// Tables that the original has made are used as they are, or refused; a load of dyno's own continues. `sql` is the
/// server's own client, `unmark` the statement that takes a table its mark, `drop` the one that drops its index.
fn assert_adds_nothing_to_foreign_tables(
    url: &str,
    connection: &[&str],
    exists: &str,
    sql: &dyn Fn(&str) -> Result<String, String>,
    [unmark, drop]: [&str; 2],
) {
    let scratch = Scratch::new();
    let folder = scratch.path();
    let run_prepare = |size: &str, code: i32| {
        let words = ["sysbench", size, "oltp_read_only", "prepare"];
        let output = dyno(folder, &[&words[..2], connection, &words[2..]].concat());
        assert_eq!(output.code, code, "{output}");
        output
    };
    let count_rows = || sql("SELECT count(*) FROM sbtest1").map(|text| text.trim().to_owned());
    run_prepare("--table-size=20000", 0);
    run_prepare("--table-size=40000", 0);
    assert_eq!(count_rows().as_deref(), Ok("40000"), "its own load goes on");
    let run_suite = |size: u32, code: i32| {
        let suite = format!(
            "[suite]\nname = \"own\"\n\n[target.main]\nurl = \"{url}\"\n\n[[experiment]]\nname = \"ro\"\n\
             workload = \"sysbench\"\ntest = \"oltp_read_only\"\nworkers = 1\nevents = 20\n\
             options = {{ tables = 1, table_size = {size} }}\n"
        );
        fs::write(folder.join("own.toml"), suite).expect("a suite can be written");
        let output = dyno(folder, &["run", "own.toml"]);
        assert_eq!(output.code, code, "{output}");
        output.stderr
    };
    sql(drop).expect("an index less");
    let stderr = run_suite(40_000, 0);
    assert!(
        stderr.contains("lacked keys or indexes, which were made: k_1; data were found"),
        "{stderr}"
    );
    sql(unmark).expect("a comment");
    run_prepare("--table-size=40000", 0);
    let larger = run_prepare("--table-size=60000", 1);
    assert!(larger.to_string().contains(exists), "{larger}");
    assert_eq!(count_rows().as_deref(), Ok("40000"));
    for (size, code) in [(60_000, 1), (40_000, 0)] {
        let stderr = run_suite(size, code);
        let words = if code == 1 { "--table-size=40000" } else { KEPT };
        assert!(stderr.contains(words), "{stderr}");
        assert_eq!(count_rows().as_deref(), Ok("40000"));
    }
    sql(drop).expect("an index less");
    let stderr = run_suite(40_000, 1);
    assert!(
        stderr.contains("index k_1 is missing (a view has none): make it by `CREATE"),
        "{stderr}"
    );
    assert!(!stderr.contains("--table-size"), "{stderr}");
    sql("ALTER TABLE sbtest1 RENAME TO t").expect("another name");
    sql("CREATE VIEW sbtest1 AS SELECT * FROM t").expect("a view");
    let stderr = run_suite(40_000, 1);
    assert!(stderr.contains(exists) && stderr.contains("a view has none"), "{stderr}");
}

#[test]
fn nothing_is_added_to_foreign_tables_of_postgres() {
    let server = server_or_skip!(Postgres, "nothing_is_added_to_foreign_tables_of_postgres");
    let port = format!("--pgsql-port={}", server.port);
    let connection = ["--db-driver=pgsql", "--pgsql-user=postgres", &port];
    let connection = [&connection[..], &["--pgsql-host=127.0.0.1"]].concat();
    let change = ["COMMENT ON TABLE sbtest1 IS NULL", "DROP INDEX k_1"];
    let exists = "relation \"sbtest1\" already exists";
    let sql = |sql: &str| server.sbtest(sql);
    assert_adds_nothing_to_foreign_tables(&server.url(), &connection, exists, &sql, change);
}

#[test]
fn nothing_is_added_to_foreign_tables_of_mariadb() {
    let server = server_or_skip!(MariaDb, "nothing_is_added_to_foreign_tables_of_mariadb");
    let port = format!("--mysql-port={}", server.port);
    let connection = ["--db-driver=mysql", "--mysql-user=root", "--mysql-host=127.0.0.1", &port];
    let change = ["ALTER TABLE sbtest1 COMMENT = ''", "DROP INDEX k_1 ON sbtest1"];
    let sql = |sql: &str| server.sql(&format!("USE sbtest; {sql}"));
    let exists = "Table 'sbtest1' already exists";
    assert_adds_nothing_to_foreign_tables(&server.url(), &connection, exists, &sql, change);
}
