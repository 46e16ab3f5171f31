//! TPC-C when something breaks in the middle of a run: connections that are cut, a database that
//! refuses to write, a server and a dyno that are killed. No acknowledged order may be lost, and one
//! that is taken away by hand must be missed.

use crate::tiny_disk::TinyDisk;
use dyno_testkit::{
    MariaDb, Postgres, ProcessOutput, RunningDyno, Scratch, commits, dyno, only_run,
    server_or_skip, skipped, wait_until,
};
use rustix::process::Signal;
use serde_json::Value;
use std::cell::RefCell;
use std::fs;
use std::path::Path;

/// A server that can be broken.
struct Server<'a> {
    /// Lines of the properties.
    properties: String,
    url: String,
    sql: &'a dyn Fn(&str) -> String,
    read_only: &'a dyn Fn(bool),
    /// Statements, each of which cuts a connection of a terminal.
    cut: &'a dyn Fn(),
    kill: &'a dyn Fn(),
    restart: &'a dyn Fn() -> bool,
    /// Number of dyno's sessions.
    sessions: &'a dyn Fn() -> u64,
}

/// Warehouse, district and number of each order that the ledger has as acknowledged.
fn acknowledged(folder: &Path) -> Vec<[u32; 3]> {
    let text = fs::read_to_string(folder.join("ledger")).unwrap_or_default();
    let parse_order = |line: &str| {
        let numbers: Vec<u32> =
            line.strip_prefix("a ")?.split(' ').filter_map(|word| word.parse().ok()).collect();
        Some([*numbers.first()?, *numbers.get(1)?, *numbers.get(2)?])
    };
    text.lines().filter_map(parse_order).collect()
}

/// Starts a run with a ledger and waits until it has entered some orders.
fn start(folder: &Path) -> RunningDyno {
    let before = acknowledged(folder).len();
    let words = ["benchmarksql", "run", "props", "--ledger", "ledger", "--checks", "none"];
    let options = ["--json", "result.json"];
    let mut running = RunningDyno::start(folder, &[&words[..], &options[..]].concat());
    running.wait_until("orders", |_| acknowledged(folder).len() > before + 20);
    running
}

fn check(folder: &Path, url: &str, more: &[&str]) -> ProcessOutput {
    dyno(folder, &[&["check", url, "--ledger", "ledger"], more].concat())
}

/// Nothing is lost; returns what the check says of the ledger.
fn nothing_is_lost(folder: &Path, url: &str) -> Value {
    let output = check(folder, url, &["--only", "ledger,C1,C2,C3", "--json"]);
    assert_eq!(output.code, 0, "{}\n{}", output.stdout, output.stderr);
    let report: Value = serde_json::from_str(&output.stdout).expect("JSON");
    let ledger = &report["ledger"];
    assert_eq!(ledger["acknowledged"], acknowledged(folder).len(), "{ledger:#}");
    assert_eq!((&ledger["lost"], &ledger["holds"]), (&0.into(), &true.into()), "{ledger:#}");
    let conditions = report["conditions"].as_array().expect("a list");
    assert_eq!(conditions.len(), 3);
    assert!(conditions.iter().all(|condition| condition["holds"] == true), "{conditions:?}");
    ledger.clone()
}

fn result(folder: &Path) -> Value {
    let text = fs::read(folder.join("result.json")).expect("the result was written");
    serde_json::from_slice(&text).expect("JSON")
}

fn goes_through_everything(server: &Server<'_>) {
    let scratch = Scratch::new();
    let folder = scratch.path();
    let properties = format!(
        "{}\nwarehouses=1\nloadWorkers=2\nterminals=4\nrunTxnsPerTerminal=500\nrunMins=0\n\
         limitTxnsPerMin=0\n",
        server.properties
    );
    fs::write(folder.join("props"), properties).expect("the folder can be written");
    let build = dyno(folder, &["benchmarksql", "build", "props"]);
    assert_eq!(build.code, 0, "{}\n{}", build.stdout, build.stderr);

    connections_are_cut(folder, server);
    writes_are_refused(folder, server);
    the_server_is_killed(folder, server);
    dyno_is_killed(folder, server);
    orders_are_taken_away(folder, server);
}

fn connections_are_cut(folder: &Path, server: &Server<'_>) {
    let mut running = start(folder);
    (server.cut)();
    let output = running.end();
    assert_eq!(output.code, 0, "{}\n{}", output.stdout, output.stderr);
    let result = result(folder);
    let counts = &result["counts"];
    assert!(counts["reconnects"].as_u64() >= Some(1), "{result:#}");
    nothing_is_lost(folder, &server.url);
}

fn writes_are_refused(folder: &Path, server: &Server<'_>) {
    let mut running = start(folder);
    (server.read_only)(true);
    let output = running.end();
    (server.read_only)(false);
    assert_eq!(output.code, 1, "{}\n{}", output.stdout, output.stderr);
    assert!(output.stderr.contains("transactions failed with an error"), "{}", output.stderr);
    assert!(output.stderr.contains("read-only"), "the error is shown: {}", output.stderr);
    nothing_is_lost(folder, &server.url);
}

fn the_server_is_killed(folder: &Path, server: &Server<'_>) {
    let mut running = start(folder);
    (server.kill)();
    let before = acknowledged(folder).len();
    wait_until("the server to come back", || (server.restart)());
    running.wait_until("the run to go on", |_| acknowledged(folder).len() > before + 20);
    let output = running.end();
    assert_eq!(output.code, 0, "{}\n{}", output.stdout, output.stderr);
    nothing_is_lost(folder, &server.url);
}

fn dyno_is_killed(folder: &Path, server: &Server<'_>) {
    let mut running = start(folder);
    running.signal(Signal::KILL);
    assert_eq!(running.end().code, -1);
    wait_until("its sessions to end", || (server.sessions)() == 0);
    let ledger = nothing_is_lost(folder, &server.url);
    assert_eq!((&ledger["runs"], &ledger["ended"]), (&4.into(), &false.into()));
}

fn orders_are_taken_away(folder: &Path, server: &Server<'_>) {
    let orders = acknowledged(folder);
    let deleted = [orders[0], orders[orders.len() - 1]];
    for [w, d, o] in deleted {
        for (table, prefix) in
            [("bmsql_order_line", "ol_"), ("bmsql_new_order", "no_"), ("bmsql_oorder", "")]
        {
            (server.sql)(&format!(
                "DELETE FROM {table} WHERE {0}w_id = {w} AND {0}d_id = {d} AND {prefix}o_id = {o}",
                if prefix.is_empty() { "o_" } else { prefix }
            ));
        }
    }
    let output = check(folder, &server.url, &[]);
    assert_eq!(output.code, 4, "{}\n{}", output.stdout, output.stderr);
    for [w, d, o] in deleted {
        let line = format!("lost: o_w_id {w}, o_d_id {d}, o_id {o} does not exist");
        assert!(output.stdout.contains(&line), "{line}\n{}", output.stdout);
    }
    assert!(output.stderr.contains("error: 2 acknowledged orders are lost."), "{}", output.stderr);
    // Stock was taken for what is not there any more.
    assert!(output.stdout.contains("X1 is violated by: s_w_id 1, s_i_id "), "{}", output.stdout);
    let json = check(folder, &server.url, &["--only", "ledger", "--json"]);
    let report: Value = serde_json::from_str(&json.stdout).expect("JSON");
    assert_eq!((json.code, &report["ledger"]["lost"]), (4, &2.into()));
    // Such a ledger is not gone on with in silence, and a database without it is not gone on with.
    let without_ledger = dyno(folder, &["benchmarksql", "run", "props", "--checks", "both"]);
    assert_eq!(without_ledger.code, 4, "{}\n{}", without_ledger.stdout, without_ledger.stderr);
}

#[test]
fn mariadb_keeps_what_it_acknowledged() {
    // While it becomes read-only, commits wait for locks and locks for commits.
    let options = ["--innodb-flush-log-at-trx-commit=1", "--innodb-lock-wait-timeout=5"];
    let server = match MariaDb::start_with(&options) {
        Ok(server) => server,
        Err(why) => return skipped("mariadb_keeps_what_it_acknowledged", &why),
    };
    let port = server.port;
    let server = RefCell::new(server);
    let run_sql = |text: &str| {
        let answer = server.borrow().sql(text);
        answer.unwrap_or_else(|error| panic!("{text}: {error}"))
    };
    // Read-only does not hold for root.
    run_sql("CREATE USER bench@'%' IDENTIFIED BY 'geheim'; GRANT ALL ON sbtest.* TO bench@'%'");
    let sessions = "FROM information_schema.processlist WHERE user = 'bench'";
    goes_through_everything(&Server {
        properties: format!(
            "db=mariadb\nconn=jdbc:mariadb://127.0.0.1:{port}/sbtest\nuser=bench\npassword=geheim"
        ),
        url: format!("mysql://bench:geheim@127.0.0.1:{port}/sbtest"),
        sql: &|text| run_sql(&text.replace("FROM bmsql", "FROM sbtest.bmsql")),
        read_only: &|on| drop(run_sql(&format!("SET GLOBAL read_only = {}", u8::from(on)))),
        cut: &|| {
            for id in run_sql(&format!("SELECT id {sessions}")).lines() {
                // It may have ended by itself.
                let _ = server.borrow().sql(&format!("KILL {id}"));
            }
        },
        kill: &|| server.borrow_mut().kill(),
        restart: &|| server.borrow_mut().restart().is_ok(),
        sessions: &|| {
            run_sql(&format!("SELECT count(*) {sessions}")).trim().parse().expect("a number")
        },
    });
}

#[test]
fn postgres_keeps_what_it_acknowledged() {
    let server = match Postgres::start_with(&["-c", "fsync=on"]) {
        Ok(server) => server,
        Err(why) => return skipped("postgres_keeps_what_it_acknowledged", &why),
    };
    let (port, url) = (server.port, server.url());
    let server = RefCell::new(server);
    let run_sql = |text: &str| {
        let answer = server.borrow().sbtest(text);
        answer.unwrap_or_else(|error| panic!("{text}: {error}"))
    };
    let sessions = "FROM pg_stat_activity WHERE datname = 'sbtest' AND pid <> pg_backend_pid()";
    goes_through_everything(&Server {
        properties: format!(
            "db=postgres\nconn=jdbc:postgresql://127.0.0.1:{port}/sbtest\nuser=postgres"
        ),
        url,
        sql: &|text| run_sql(text),
        read_only: &|on| {
            run_sql(if on {
                "ALTER SYSTEM SET default_transaction_read_only = on"
            } else {
                "ALTER SYSTEM RESET default_transaction_read_only"
            });
            run_sql("SELECT pg_reload_conf()");
        },
        cut: &|| drop(run_sql(&format!("SELECT pg_terminate_backend(pid) {sessions}"))),
        kill: &|| server.borrow_mut().kill(),
        restart: &|| server.borrow_mut().restart().is_ok(),
        sessions: &|| {
            run_sql(&format!("SELECT count(*) {sessions}")).trim().parse().expect("a number")
        },
    });
}

#[test]
fn a_server_that_dies_unasked_fails_its_trial() {
    let mut server = match Postgres::start_with(&["-c", "fsync=on"]) {
        Ok(server) => server,
        Err(why) => return skipped("a_server_that_dies_unasked_fails_its_trial", &why),
    };
    let scratch = Scratch::new();
    let folder = scratch.path();
    let suite = format!(
        "[suite]\nname = \"dies\"\n[target.main]\nurl = \"{}\"\n[[experiment]]\nname = \"e\"\nworkload = \
         \"pgbench\"\ntest = \"tpcb-like\"\noptions = {{ scale = 1 }}\nworkers = 2\nwarmup_s = 0\nduration_s = \
         8\n",
        server.url()
    );
    fs::write(folder.join("dies.toml"), suite).expect("the folder can be written");
    let mut running = RunningDyno::start(folder, &["run", "dies.toml"]);
    let runs = folder.join("dyno-runs");
    running.wait_until("a commit", |_| {
        only_run(&runs).is_some_and(|run| commits(&run, 1).iter().any(|&count| count > 0))
    });
    server.kill();
    wait_until("the server to come back", || server.restart().is_ok());
    let output = running.end();
    assert_eq!(output.code, 1, "{output}");
    let message =
        "failed: The server main was unavailable in the trial, and no fault was planned: ";
    assert!(output.stderr.contains(message), "{output}");
    let trial = fs::read(only_run(&runs).expect("a run").join("trials/1.json")).expect("a trial");
    let trial: Value = serde_json::from_slice(&trial).expect("JSON");
    assert!(trial["status"]["failed"].is_object(), "so it is made again: {trial:#}");
    assert!(trial["counts"]["committed"].as_u64() > Some(0), "{trial:#}");
}

#[test]
fn a_ledger_that_can_not_be_written_ends_the_run() {
    let scratch = Scratch::new();
    let folder = scratch.path();
    let properties = "db=sqlite\nconn=sqlite:tpcc.db\nuser=-\nwarehouses=1\nterminals=1\n\
                      runTxnsPerTerminal=20\nrunMins=0\n";
    fs::write(folder.join("props"), properties).expect("the folder can be written");
    let build = dyno(folder, &["benchmarksql", "build", "props"]);
    assert_eq!(build.code, 0, "{}\n{}", build.stdout, build.stderr);
    let run_with_ledger = |ledger: &str| {
        let words = ["benchmarksql", "run", "props", "--checks", "none", "--ledger", ledger];
        dyno(folder, &words)
    };
    for (ledger, words) in [
        ("/dev/full", "No space left on device"),
        ("no/such/folder/ledger", "No such file or directory"),
        ("props", "isn't a ledger"),
    ] {
        let output = run_with_ledger(ledger);
        assert_eq!(output.code, 1, "{}\n{}", output.stdout, output.stderr);
        let errors = output.stderr.lines().filter(|line| line.starts_with("error:"));
        assert_eq!(errors.count(), 1, "{}", output.stderr);
        assert!(output.stderr.contains(words), "{}", output.stderr);
    }
    // Nothing was entered, and the ledger that can be written agrees.
    assert_eq!(run_with_ledger("ledger").code, 0);
    let output = check(folder, "sqlite:tpcc.db", &[]);
    assert_eq!(output.code, 0, "{}\n{}", output.stdout, output.stderr);
    assert!(output.stdout.contains("TPC-C, 1 warehouse, used since its load"), "{}", output.stdout);
    let apart = dyno(folder, &["check", "sqlite:tpcc.db", "--driver-side", "--only", "c10,X1,X6"]);
    assert_eq!(apart.code, 0, "{}\n{}", apart.stdout, apart.stderr);

    a_disk_becomes_full(folder);

    fs::write(folder.join("empty.db"), "").expect("an empty database");
    let mistakes: [(&[&str], &str); 7] = [
        (&["sqlite:tpcc.db", "--only", "C11"], "Nothing was checked: C11 is for a database as"),
        (&["sqlite:tpcc.db", "--only", "C13"], "There is no condition `C13`."),
        (&["sqlite:tpcc.db", "--only", "ledger"], "`--only ledger` needs a ledger."),
        (&["sqlite:tpcc.db", "--ledger", "props"], "isn't a ledger"),
        (&["sqlite:tpcc.db", "--ledger", "nowhere"], "No such file or directory"),
        (&["sqlite:empty.db"], "There is nothing here that dyno can check"),
        (&["sqlite:no.db"], "There is no file no.db that could be checked."),
    ];
    for (words, complaint) in mistakes {
        let output = dyno(folder, &[&["check"], words].concat());
        assert!([1, 2].contains(&output.code), "{words:?}: {}\n{}", output.code, output.stderr);
        assert!(output.stderr.contains(complaint), "{words:?}: {}", output.stderr);
        assert_eq!(output.stdout, "", "{words:?}");
    }
}

/// In the middle of a run: it ends, and what was committed until then is in the ledger.
fn a_disk_becomes_full(folder: &Path) {
    let tiny = match TinyDisk::mount(folder.join("tiny"), "4k") {
        Ok(tiny) => tiny,
        Err(why) => return skipped("a_disk_becomes_full", &why),
    };
    let words = ["benchmarksql", "run", "props", "runTxnsPerTerminal", "2000", "--checks", "none"];
    let output = dyno(folder, &[&words[..], &["--ledger", "tiny/ledger"]].concat());
    assert_eq!(output.code, 1, "{}\n{}", output.stdout, output.stderr);
    let errors: Vec<&str> =
        output.stderr.lines().filter(|line| line.starts_with("error:")).collect();
    assert_eq!(errors.len(), 1, "{}", output.stderr);
    let words = "The ledger tiny/ledger can't be written any more: No space left on device";
    assert!(errors[0].contains(words), "{}", output.stderr);
    assert!(output.stderr.contains("hint: Free some space there"), "{}", output.stderr);
    let checked = dyno(
        folder,
        &["check", "sqlite:tpcc.db", "--ledger", "tiny/ledger", "--only", "ledger", "--json"],
    );
    assert_eq!(checked.code, 0, "{}\n{}", checked.stdout, checked.stderr);
    let report: Value = serde_json::from_str(&checked.stdout).expect("JSON");
    assert!(report["ledger"]["acknowledged"].as_u64() > Some(20), "{report:#}");
    drop(tiny);
}

#[test]
fn pgbench_is_checked_too() {
    let server = server_or_skip!(Postgres, "pgbench_is_checked_too");
    let scratch = Scratch::new();
    let (folder, url) = (scratch.path(), server.url());
    let load = dyno(folder, &["pgbench", "-i", "-q", &url]);
    assert_eq!(load.code, 0, "{}", load.stderr);
    let run = dyno(folder, &["pgbench", "-t", "50", "-c", "2", &url]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    let output = dyno(folder, &["check", &url]);
    assert_eq!(output.code, 0, "{}\n{}", output.stdout, output.stderr);
    assert!(output.stdout.contains("in 100 rows"), "{}", output.stdout);
    server
        .sbtest("UPDATE pgbench_tellers SET tbalance = tbalance + 1 WHERE tid = 1")
        .expect("it is");
    let broken = dyno(folder, &["check", &url]);
    assert_eq!(broken.code, 4, "{}\n{}", broken.stdout, broken.stderr);
    assert!(broken.stderr.contains("Condition balances is violated"), "{}", broken.stderr);
    let ledger = dyno(folder, &["check", &url, "--only", "C1"]);
    assert_eq!(ledger.code, 2, "{}", ledger.stderr);
}
