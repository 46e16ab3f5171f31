//! On a MariaDB of one's own, alongside the original where that is installed.

use super::support::{command, number, shape};
use dyno_testkit::{
    MariaDb, ProcessOutput, RunningDyno, Scratch, peer, server_or_skip, skipped, wait_until,
};
use rustix::process::{Pid, Signal, kill_process};
use std::process::Command;
use std::time::Duration;

fn run_on(server: &MariaDb, arguments: &[&str]) -> ProcessOutput {
    let folder = Scratch::new();
    let socket = format!("--mysql-socket={}", server.socket.display());
    ProcessOutput::capture(command(folder.path(), &[&socket, "--mysql-user=root"]).args(arguments))
}

fn original(program: &str, server: &MariaDb, arguments: &[&str]) -> ProcessOutput {
    let socket = format!("--mysql-socket={}", server.socket.display());
    ProcessOutput::capture(
        Command::new(program).args([&socket, "--mysql-user=root"]).args(arguments),
    )
}

fn good(output: ProcessOutput) -> ProcessOutput {
    assert_eq!(output.code, 0, "{output}");
    output
}

/// The output without numbers, the banner and dyno's own line.
fn comparable(stdout: &str) -> String {
    let ignored = ["Random numbers distribution:", "sysbench 1.0.20"];
    let lines = stdout.lines().filter(|line| !ignored.iter().any(|start| line.starts_with(start)));
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
    let with_words = |more: &[&'static str]| [&test[..], more].concat();
    good(run_on(&server, &with_words(&["prepare"])));
    let run = with_words(&["--time=0", "--events=20", "run"]);
    let theirs = good(original(&program, &server, &run));
    let ours = good(run_on(&server, &run));
    assert_eq!(comparable(&ours.stdout), comparable(&theirs.stdout), "{ours}");
    for label in ["read:", "write:", "other:", "total:", "transactions:", "total number of events:"]
    {
        assert!((number(&ours, label) - number(&theirs, label)).abs() < 0.5, "{label} {ours}");
    }
    let theirs = good(original(&program, &server, &with_words(&["cleanup"])));
    good(original(&program, &server, &with_words(&["prepare"])));
    good(run_on(&server, &run));
    good(run_on(&server, &with_words(&["prewarm"])));
    let ours = good(run_on(&server, &with_words(&["cleanup"])));
    assert_eq!(comparable(&ours.stdout), comparable(&theirs.stdout));
}

#[test]
fn rolled_back_work_is_in_no_count() {
    let server = server_or_skip!(MariaDb, "rolled_back_work_is_in_no_count");
    let test = ["--table-size=20", "--threads=16", "--time=2", "oltp_read_write"];
    good(run_on(&server, &[&test[..], &["prepare"]].concat()));
    let output = good(run_on(&server, &[&test[..], &["--errors", "run"]].concat()));
    let transactions = number(&output, "transactions:");
    assert!(transactions > 0.0, "{output}");
    assert!((number(&output, "total:") - 20.0 * transactions).abs() < 0.5, "{output}");
    if number(&output, "ignored errors:") > 0.0 {
        assert!(output.stderr.contains("    deadlock        1213 (40001) "), "{output}");
        assert!(output.stderr.contains("attempts tried again:"), "{output}");
    }
}

#[test]
fn connections_are_replaced_and_compressed_on_demand() {
    let server = server_or_skip!(MariaDb, "connections_are_replaced_and_compressed_on_demand");
    let test = ["--table-size=100", "oltp_read_write"];
    good(run_on(&server, &[&test[..], &["--mysql-compression", "prepare"]].concat()));
    let count_connections = || {
        let answer = server.sql("SHOW GLOBAL STATUS LIKE 'Connections'").expect("a status");
        answer.split_whitespace().last().and_then(|n| n.parse::<u32>().ok()).expect("a number")
    };
    let before = count_connections();
    let run = ["--time=0", "--events=100", "--reconnect=10", "--mysql-compression=on", "run"];
    let output = good(run_on(&server, &[&test[..], &run].concat()));
    assert_eq!((number(&output, "transactions:"), number(&output, "reconnects:")), (100.0, 9.0));
    assert!(count_connections() - before >= 10, "{}", count_connections() - before);
}

#[test]
fn the_seed_governs_prepare() {
    let server = server_or_skip!(MariaDb, "the_seed_governs_prepare");
    let checksum = |seed: &str, threads: &str| {
        let (seed, threads) = (format!("--rand-seed={seed}"), format!("--threads={threads}"));
        let test = [&seed, &threads, "--table-size=2000", "oltp_read_write"];
        good(run_on(&server, &[&test[..], &["prepare"]].concat()));
        let sum = server.sql("CHECKSUM TABLE sbtest.sbtest1").expect("a checksum");
        good(run_on(&server, &[&test[..], &["cleanup"]].concat()));
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
            let output = run_on(&server, &[arguments, &["oltp_insert", test_command]].concat());
            assert_eq!(output.code, 1, "{output}");
            assert!(output.stdout.contains(fatal), "{output}");
            assert!(output.stderr.contains(hint), "{output}");
            assert!(!output.to_string().contains("wrong"), "{output}");
        }
    }
    good(run_on(&server, &["--table-size=100", "oltp_insert", "prepare"]));
    server.sql("SET GLOBAL max_connections = 10").expect("a limit");
    let output = run_on(&server, &["--table-size=100", "--threads=64", "oltp_point_select", "run"]);
    assert_eq!(output.code, 1, "{output}");
    assert!(output.stdout.contains("FATAL: error 1040: "), "{output}");
    assert!(output.stderr.contains("--threads"), "{output}");
}

#[test]
fn what_keeps_a_server_from_working_is_named() {
    let name = "what_keeps_a_server_from_working_is_named";
    let server = match MariaDb::start_with(&["--skip-ssl"]) {
        Ok(server) => server,
        Err(why) => return skipped(name, &why),
    };
    let sql = |text: &str| server.sql(text).expect("an answer");
    let host = "ALL ON sbtest.* TO app@'%', app@localhost, tls@'%', tls@localhost";
    sql(&format!(
        "CREATE USER app@'%', app@localhost; CREATE USER tls@'%', tls@localhost REQUIRE SSL; GRANT {host}"
    ));
    let run_as = |user: &str, more: &[&str], test_command: &str| {
        let test = ["--mysql-ignore-errors=all", "--table-size=100", "--time=1", "oltp_write_only"];
        run_on(&server, &[&[user], more, &test, &[test_command]].concat())
    };
    good(run_as("--mysql-user=app", &[], "prepare"));
    sql("SET GLOBAL read_only = 1");
    let output = run_as("--mysql-user=app", &[], "run");
    assert_eq!(output.code, 1, "{output}");
    assert!(output.stdout.contains("FATAL: No transaction was executed: "), "{output}");
    sql("SET GLOBAL read_only = 0; SET GLOBAL init_connect = 'SET nonsense = 1'");
    let output = run_as("--mysql-user=app", &[], "run");
    assert_eq!(output.code, 1, "{output}");
    assert!(output.stderr.contains("hint: correct the server's init_connect"), "{output}");
    sql("SET GLOBAL init_connect = ''");
    for (ssl, words) in [
        ("--mysql-ssl=PREFERRED", "the server offers no TLS"),
        ("--mysql-ssl=REQUIRED", "an account that need not encrypt"),
    ] {
        let output = run_as("--mysql-user=tls", &[ssl], "run");
        assert_eq!(output.code, 1, "{output}");
        assert!(output.stderr.contains(words), "{output}");
    }
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
    good(ProcessOutput::capture(command(folder.path(), &words).env("MYSQL_PWD", "sesame")));
    assert_eq!(
        ProcessOutput::capture(command(folder.path(), &words).env("MYSQL_PWD", "no")).code,
        1
    );
}

/// Waits until `sql` answers something.
fn wait_for(server: &MariaDb, sql: &str) {
    wait_until(sql, || !server.sql(sql).expect("an answer").trim().is_empty());
}

#[test]
fn a_forced_shutdown_cuts_what_hangs_and_ends_with_2() {
    let server = server_or_skip!(MariaDb, "a_forced_shutdown_cuts_what_hangs_and_ends_with_2");
    let test = ["--table-size=100", "oltp_update_index"];
    good(run_on(&server, &[&test[..], &["prepare"]].concat()));
    std::thread::scope(|scope| {
        let lock = "USE sbtest; BEGIN; UPDATE sbtest1 SET k = k; SELECT SLEEP(60)";
        let holder = scope.spawn(|| server.sql(lock));
        let sleeping =
            "SELECT id FROM information_schema.processlist WHERE info = 'SELECT SLEEP(60)'";
        wait_for(&server, sleeping);
        let run = [&test[..], &["--threads=2", "--time=1", "--forced-shutdown=1", "run"]].concat();
        let output = run_on(&server, &run);
        let sleeper = server.sql(sleeping).expect("the one that holds the locks");
        let _ = server.sql(&format!("KILL {}", sleeper.trim()));
        assert!(holder.join().is_ok());
        assert_eq!(output.code, 2, "{output}");
        assert!(output.stdout.contains("Forcing shutdown in 2 seconds\n"), "{output}");
        assert!(
            output
                .stdout
                .contains("FATAL: The --max-time limit has expired, forcing shutdown...\n"),
            "{output}"
        );
        let unfinished = "\nNumber of unfinished transactions on forced shutdown: 2\n";
        assert!(output.stdout.contains(unfinished), "{output}");
        let note =
            "    Transactions in flight at the end: 2, which are in no figure above. The longest";
        assert!(output.stderr.contains(note), "{output}");
        // Waiting for them belongs to the run, as in the original.
        assert!(number(&output, "total time:") >= 2.0, "{output}");
    });
}

/// Answers when more than a hundred statements have been executed since the server started.
const BUSY: &str = "SELECT 1 FROM information_schema.global_status \
                    WHERE variable_name = 'COM_STMT_EXECUTE' AND variable_value > 100";

/// An endless run on freshly prepared tables, with further options.
fn endless(server: &MariaDb, folder: &Scratch, options: &[&str]) -> RunningDyno {
    let test = ["--table-size=100", "--threads=2", "oltp_point_select"];
    good(run_on(server, &[&test[..], &["prepare"]].concat()));
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
    let output = run.end();
    assert_eq!(output.code, 1, "{output}");
    for words in [
        "FATAL: mysql_stmt_execute() returned error 2013 (Lost connection to server during query",
        "for query 'SELECT c FROM sbtest1 WHERE id=?'\n",
        "FATAL: `thread_run' function failed: SQL error, errno = 2013, state = 'HY000': Lost connection to",
    ] {
        assert!(output.stdout.contains(words), "{words} {output}");
    }
    assert!(output.stderr.contains("INCOMPLETE: measured until the error:\nSQL stat"), "{output}");
    let json = std::fs::read_to_string(folder.file("result.json")).expect("the result");
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert!(json["error"].is_string(), "{json}");
    assert!(!output.stdout.contains("SQL statistics:"), "{output}");
    assert!(output.stderr.contains("hint: with --mysql-ignore-errors="), "{output}");
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
    let output = run.end();
    assert_eq!(output.code, 130, "{output}");
    assert!((number(&output, "reconnects:") - 2.0).abs() < 0.5, "{output}");
    assert!(output.stderr.contains("    connection_lost "), "{output}");
    assert!((number(&output, "total:") - number(&output, "transactions:")).abs() < 0.5, "{output}");
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
    let output = run.end();
    assert_eq!(output.code, 130, "{output}");
    for words in [
        "Failed attempts to open lost connections again: ",
        "The last reason: The server at ",
        "No transaction has ended after the first ",
    ] {
        assert!(output.stderr.contains(words), "{words} {output}");
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
    good(run_on(&server, &[&test[..], &["prepare"]].concat()));
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
    let output = running.end();
    kill_process(server, Signal::CONT).expect("a signal");
    assert_eq!(output.code, 130, "{output}");
    assert!(number(&output, "transactions:") > 0.0, "{output}");
    let note = output.stderr.split_once("The longest latency was at least ").expect("a note").1;
    let longest_s: f64 = note.split(' ').next().expect("a number").parse().expect("seconds");
    assert!(longest_s >= 4.0, "{output}");
}

#[test]
fn rows_of_bulk_insert_are_its_transactions() {
    let server = server_or_skip!(MariaDb, "rows_of_bulk_insert_are_its_transactions");
    let test = ["--threads=2", "bulk_insert"];
    good(run_on(&server, &[&test[..], &["prepare"]].concat()));
    let run = [&test[..], &["--time=0", "--events=20000", "run"]].concat();
    let output = good(run_on(&server, &run));
    assert!((number(&output, "transactions:") - 20_000.0).abs() < 0.5, "{output}");
    let rows = server.sql(
        "SELECT (SELECT COUNT(*) FROM sbtest.sbtest1) + (SELECT COUNT(*) FROM sbtest.sbtest2)",
    );
    assert_eq!(rows.expect("two tables").trim(), "20000");
}
