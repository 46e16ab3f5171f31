//! On a MariaDB of one's own, alongside the original where that is installed.

use super::support::{command, number, shape};
use dyno_testkit::{MariaDb, Ran, RunningDyno, Scratch, peer, server_or_skip, skipped, wait_until};
use rustix::process::{Pid, Signal, kill_process};
use std::process::Command;
use std::time::Duration;

fn on(server: &MariaDb, arguments: &[&str]) -> Ran {
    let folder = Scratch::new();
    let socket = format!("--mysql-socket={}", server.socket.display());
    Ran::of(command(folder.path(), &[&socket, "--mysql-user=root"]).args(arguments))
}

fn original(program: &str, server: &MariaDb, arguments: &[&str]) -> Ran {
    let socket = format!("--mysql-socket={}", server.socket.display());
    Ran::of(Command::new(program).args([&socket, "--mysql-user=root"]).args(arguments))
}

fn good(ran: Ran) -> Ran {
    assert_eq!(ran.code, 0, "{}", ran.all());
    ran
}

/// The output without numbers, the banner and dyno's own line.
fn comparable(stdout: &str) -> String {
    let own = ["Random numbers distribution:", "sysbench 1.0.20"];
    let lines = stdout.lines().filter(|line| !own.iter().any(|own| line.starts_with(own)));
    shape(&lines.collect::<Vec<_>>().join("\n"))
}

#[test]
fn the_original_and_dyno_understand_each_others_tables_and_print_the_same() {
    let name = "the_original_and_dyno_understand_each_others_tables_and_print_the_same";
    let server = server_or_skip!(MariaDb, name);
    let Some(program) = peer("sysbench") else {
        return skipped(name, "sysbench is not installed");
    };
    let test = ["--tables=2", "--table-size=1000", "oltp_read_write"];
    let with = |more: &[&'static str]| [&test[..], more].concat();
    good(on(&server, &with(&["prepare"])));
    let run = with(&["--time=0", "--events=20", "run"]);
    let theirs = good(original(&program, &server, &run));
    let ours = good(on(&server, &run));
    assert_eq!(comparable(&ours.stdout), comparable(&theirs.stdout), "{}", ours.all());
    for label in ["read:", "write:", "other:", "total:", "transactions:", "total number of events:"]
    {
        assert!(
            (number(&ours, label) - number(&theirs, label)).abs() < 0.5,
            "{label} {}",
            ours.all()
        );
    }
    let theirs = good(original(&program, &server, &with(&["cleanup"])));
    good(original(&program, &server, &with(&["prepare"])));
    good(on(&server, &run));
    good(on(&server, &with(&["prewarm"])));
    let ours = good(on(&server, &with(&["cleanup"])));
    assert_eq!(comparable(&ours.stdout), comparable(&theirs.stdout));
}

#[test]
fn rolled_back_work_is_in_no_count() {
    let server = server_or_skip!(MariaDb, "rolled_back_work_is_in_no_count");
    let test = ["--table-size=20", "--threads=16", "--time=2", "oltp_read_write"];
    good(on(&server, &[&test[..], &["prepare"]].concat()));
    let ran = good(on(&server, &[&test[..], &["--errors", "run"]].concat()));
    let transactions = number(&ran, "transactions:");
    assert!(transactions > 0.0, "{}", ran.all());
    assert!((number(&ran, "total:") - 20.0 * transactions).abs() < 0.5, "{}", ran.all());
    if number(&ran, "ignored errors:") > 0.0 {
        assert!(ran.stderr.contains("    deadlock        1213 (40001) "), "{}", ran.all());
        assert!(ran.stderr.contains("attempts tried again:"), "{}", ran.all());
    }
}

#[test]
fn connections_are_replaced_and_compressed_on_demand() {
    let server = server_or_skip!(MariaDb, "connections_are_replaced_and_compressed_on_demand");
    let test = ["--table-size=100", "oltp_read_write"];
    good(on(&server, &[&test[..], &["--mysql-compression", "prepare"]].concat()));
    let connections = || {
        let answer = server.sql("SHOW GLOBAL STATUS LIKE 'Connections'").expect("a status");
        answer.split_whitespace().last().and_then(|n| n.parse::<u32>().ok()).expect("a number")
    };
    let before = connections();
    let run = ["--time=0", "--events=100", "--reconnect=10", "--mysql-compression=on", "run"];
    let ran = good(on(&server, &[&test[..], &run].concat()));
    assert_eq!((number(&ran, "transactions:"), number(&ran, "reconnects:")), (100.0, 9.0));
    assert!(connections() - before >= 10, "{}", connections() - before);
}

#[test]
fn the_seed_governs_prepare() {
    let server = server_or_skip!(MariaDb, "the_seed_governs_prepare");
    let checksum = |seed: &str, threads: &str| {
        let (seed, threads) = (format!("--rand-seed={seed}"), format!("--threads={threads}"));
        let test = [&seed, &threads, "--table-size=2000", "oltp_read_write"];
        good(on(&server, &[&test[..], &["prepare"]].concat()));
        let sum = server.sql("CHECKSUM TABLE sbtest.sbtest1").expect("a checksum");
        good(on(&server, &[&test[..], &["cleanup"]].concat()));
        sum
    };
    let first = checksum("5", "1");
    assert_eq!(first, checksum("5", "3"));
    assert_ne!(first, checksum("6", "1"));
}

#[test]
fn log_in_errors_name_the_way_out() {
    let server = server_or_skip!(MariaDb, "log_in_errors_name_the_way_out");
    for (arguments, fatal, hint) in [
        (&["--mysql-password=wrong"][..], "FATAL: error 1045: Access denied", "--mysql-password"),
        (&["--mysql-db=nowhere"], "FATAL: error 1049: Unknown database 'nowhere'", "--mysql-db"),
    ] {
        for test_command in ["run", "prepare"] {
            let ran = on(&server, &[arguments, &["oltp_insert", test_command]].concat());
            assert_eq!(ran.code, 1, "{}", ran.all());
            assert!(ran.stdout.contains(fatal), "{}", ran.all());
            assert!(ran.stderr.contains(hint), "{}", ran.all());
            assert!(!ran.all().contains("wrong"), "{}", ran.all());
        }
    }
    good(on(&server, &["--table-size=100", "oltp_insert", "prepare"]));
    server.sql("SET GLOBAL max_connections = 10").expect("a limit");
    let ran = on(&server, &["--table-size=100", "--threads=64", "oltp_point_select", "run"]);
    assert_eq!(ran.code, 1, "{}", ran.all());
    assert!(ran.stdout.contains("FATAL: error 1040: "), "{}", ran.all());
    assert!(ran.stderr.contains("--threads"), "{}", ran.all());
}

#[test]
fn the_password_comes_from_the_environment_too() {
    let server = server_or_skip!(MariaDb, "the_password_comes_from_the_environment_too");
    server
        .sql("CREATE USER ali IDENTIFIED BY 'sesame'; GRANT ALL ON sbtest.* TO ali")
        .expect("a user");
    let folder = Scratch::new();
    let port = format!("--mysql-port={}", server.port);
    let words = ["--mysql-host=127.0.0.1", &port, "--mysql-user=ali", "oltp_insert", "cleanup"];
    good(Ran::of(command(folder.path(), &words).env("MYSQL_PWD", "sesame")));
    assert_eq!(Ran::of(command(folder.path(), &words).env("MYSQL_PWD", "no")).code, 1);
}

/// Waits until `sql` answers something.
fn wait_for(server: &MariaDb, sql: &str) {
    wait_until(sql, || !server.sql(sql).expect("an answer").trim().is_empty());
}

#[test]
fn a_forced_shutdown_cuts_what_hangs_and_ends_with_2() {
    let server = server_or_skip!(MariaDb, "a_forced_shutdown_cuts_what_hangs_and_ends_with_2");
    let test = ["--table-size=100", "oltp_update_index"];
    good(on(&server, &[&test[..], &["prepare"]].concat()));
    std::thread::scope(|scope| {
        let lock = "USE sbtest; BEGIN; UPDATE sbtest1 SET k = k; SELECT SLEEP(60)";
        let holder = scope.spawn(|| server.sql(lock));
        let sleeping =
            "SELECT id FROM information_schema.processlist WHERE info = 'SELECT SLEEP(60)'";
        wait_for(&server, sleeping);
        let run = [&test[..], &["--threads=2", "--time=1", "--forced-shutdown=1", "run"]].concat();
        let ran = on(&server, &run);
        let sleeper = server.sql(sleeping).expect("the one that holds the locks");
        let _ = server.sql(&format!("KILL {}", sleeper.trim()));
        assert!(holder.join().is_ok());
        assert_eq!(ran.code, 2, "{}", ran.all());
        assert!(ran.stdout.contains("Forcing shutdown in 2 seconds\n"), "{}", ran.all());
        assert!(
            ran.stdout.contains("FATAL: The --max-time limit has expired, forcing shutdown...\n"),
            "{}",
            ran.all()
        );
        let unfinished = "\nNumber of unfinished transactions on forced shutdown: 2\n";
        assert!(ran.stdout.contains(unfinished), "{}", ran.all());
        let note =
            "    Transactions in flight at the end: 2, which are in no figure above. The longest";
        assert!(ran.stderr.contains(note), "{}", ran.all());
        // Waiting for them belongs to the run, as in the original.
        assert!(number(&ran, "total time:") >= 2.0, "{}", ran.all());
    });
}

/// Answers when more than a hundred statements have been executed since the server started.
const BUSY: &str = "SELECT 1 FROM information_schema.global_status \
                    WHERE variable_name = 'COM_STMT_EXECUTE' AND variable_value > 100";

/// An endless run on freshly prepared tables, with further options.
fn endless(server: &MariaDb, folder: &Scratch, options: &[&str]) -> RunningDyno {
    let test = ["--table-size=100", "--threads=2", "oltp_point_select"];
    good(on(server, &[&test[..], &["prepare"]].concat()));
    let socket = format!("--mysql-socket={}", server.socket.display());
    let mut run = command(folder.path(), &[&socket, "--mysql-user=root", "--time=600"]);
    run.args(options).args(test).arg("run");
    let run = RunningDyno::spawn(folder.path(), run);
    wait_for(server, BUSY);
    run
}

#[test]
fn a_server_that_dies_ends_the_run_with_its_reason() {
    let mut server = server_or_skip!(MariaDb, "a_server_that_dies_ends_the_run_with_its_reason");
    let folder = Scratch::new();
    let mut run = endless(&server, &folder, &["--json=result.json"]);
    server.kill();
    let ran = run.end();
    assert_eq!(ran.code, 1, "{}", ran.all());
    for words in [
        "FATAL: mysql_stmt_execute() returned error 2013 (Lost connection to server during query",
        "for query 'SELECT c FROM sbtest1 WHERE id=?'\n",
        "FATAL: `thread_run' function failed: SQL error, errno = 2013, state = 'HY000': Lost connection to",
    ] {
        assert!(ran.stdout.contains(words), "{words} {}", ran.all());
    }
    assert!(
        ran.stderr.contains("INCOMPLETE: measured until the error:\nSQL stat"),
        "{}",
        ran.all()
    );
    let json = std::fs::read_to_string(folder.file("result.json")).expect("the result");
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert!(json["error"].is_string(), "{json}");
    assert!(!ran.stdout.contains("SQL statistics:"), "{}", ran.all());
    assert!(ran.stderr.contains("hint: with --mysql-ignore-errors="), "{}", ran.all());
}

#[test]
fn a_server_that_comes_back_is_connected_to_again_when_asked_for() {
    let name = "a_server_that_comes_back_is_connected_to_again_when_asked_for";
    let mut server = server_or_skip!(MariaDb, name);
    let folder = Scratch::new();
    let options = ["--mysql-ignore-errors=1213,2013", "--errors", "--report-interval=1"];
    let mut run = endless(&server, &folder, &options);
    server.kill();
    server.restart().expect("the server starts again");
    // Each of the two connects again when its own pause is over.
    run.wait_until("two reconnects", |run| {
        let lines = run.stdout();
        let reconnects = lines.lines().filter_map(|line| line.split("reconn/s: ").nth(1));
        reconnects.flat_map(|rate| rate.trim().parse::<f64>()).sum::<f64>() > 1.5
    });
    run.signal(Signal::INT);
    let ran = run.end();
    assert_eq!(ran.code, 130, "{}", ran.all());
    assert!((number(&ran, "reconnects:") - 2.0).abs() < 0.5, "{}", ran.all());
    assert!(ran.stderr.contains("    connection_lost "), "{}", ran.all());
    assert!((number(&ran, "total:") - number(&ran, "transactions:")).abs() < 0.5, "{}", ran.all());
}

#[test]
fn a_server_that_never_comes_back_is_said_at_the_end() {
    let mut server = server_or_skip!(MariaDb, "a_server_that_never_comes_back_is_said_at_the_end");
    let folder = Scratch::new();
    let options = ["--mysql-ignore-errors=all", "--json=result.json"];
    let mut run = endless(&server, &folder, &options);
    server.kill();
    // With a whole second in which nothing is executed.
    std::thread::sleep(Duration::from_secs(3));
    run.signal(Signal::INT);
    let ran = run.end();
    assert_eq!(ran.code, 130, "{}", ran.all());
    for words in [
        "Failed attempts to open lost connections again: ",
        "The last reason: The server at ",
        "No transaction has ended after the first ",
    ] {
        assert!(ran.stderr.contains(words), "{words} {}", ran.all());
    }
    let json = std::fs::read_to_string(folder.file("result.json")).expect("the result");
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert!(json["notes"].to_string().contains("No transaction has ended after"), "{json}");
}

#[test]
fn a_server_that_hangs_beyond_the_end_does_not_keep_the_report() {
    let name = "a_server_that_hangs_beyond_the_end_does_not_keep_the_report";
    let server = server_or_skip!(MariaDb, name);
    let folder = Scratch::new();
    let test = ["--table-size=1000", "--threads=2", "--time=2", "oltp_read_write"];
    good(on(&server, &[&test[..], &["prepare"]].concat()));
    let socket = format!("--mysql-socket={}", server.socket.display());
    let mut run = command(folder.path(), &[&socket, "--mysql-user=root"]);
    run.args(test).arg("run");
    let mut running = RunningDyno::spawn(folder.path(), run);
    wait_for(&server, BUSY);
    let server =
        server.server.process().and_then(|pid| Pid::from_raw(pid as i32)).expect("it runs");
    kill_process(server, Signal::STOP).expect("a signal");
    // sysbench waits for the begun transactions after its time.
    std::thread::sleep(Duration::from_secs(4));
    running.signal(Signal::INT);
    let ran = running.end();
    kill_process(server, Signal::CONT).expect("a signal");
    assert_eq!(ran.code, 130, "{}", ran.all());
    assert!(number(&ran, "transactions:") > 0.0, "{}", ran.all());
    let note = ran.stderr.split_once("The longest latency was at least ").expect("a note").1;
    let longest_s: f64 = note.split(' ').next().expect("a number").parse().expect("seconds");
    assert!(longest_s >= 4.0, "{}", ran.all());
}

#[test]
fn rows_of_bulk_insert_are_its_transactions() {
    let server = server_or_skip!(MariaDb, "rows_of_bulk_insert_are_its_transactions");
    let test = ["--threads=2", "bulk_insert"];
    good(on(&server, &[&test[..], &["prepare"]].concat()));
    let run = [&test[..], &["--time=0", "--events=20000", "run"]].concat();
    let ran = good(on(&server, &run));
    assert!((number(&ran, "transactions:") - 20_000.0).abs() < 0.5, "{}", ran.all());
    let rows = server.sql(
        "SELECT (SELECT COUNT(*) FROM sbtest.sbtest1) + (SELECT COUNT(*) FROM sbtest.sbtest2)",
    );
    assert_eq!(rows.expect("two tables").trim(), "20000");
}
