//! The end of a timed run: each front end waits for the transactions in flight, as its original does, and counts them.

use crate::sysbench::support::{command, number};
use crate::{benchmarksql, pgbench};
use dyno_testkit::{
    MariaDb, Postgres, ProcessOutput, RunningDyno, Scratch, peer, server_or_skip, skipped,
    wait_until,
};
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

/// A row for each event, and a report by the script itself.
const SCRIPT: &str = "\
function thread_init() con = sysbench.sql.driver():connect() end
function event() con:query('INSERT INTO lua_rows VALUES (1)') end
function thread_done() con:disconnect() end
function sysbench.hooks.report_cumulative(stat)
  print(string.format('transactions: %d', stat.events))
  print(string.format('max: %.3f', stat.latency_max * 1000))
  print(string.format('total time: %.3f', stat.time_total))
end
";

fn sql(server: &MariaDb, text: &str) -> String {
    server.sql(text).unwrap_or_else(|error| panic!("{text}: {error}")).trim().to_owned()
}

fn count(server: &MariaDb, expression: &str) -> u64 {
    sql(server, &format!("SELECT {expression}")).parse().expect("a number")
}

fn signal(server: &MariaDb, signal: Signal) {
    let process = server.server.process().and_then(|pid| Pid::from_raw(pid as i32));
    kill_process(process.expect("it runs"), signal).expect("a signal");
}

/// Stops a server that works for all of these runs, lets it continue after the end of their time, and returns their
/// outputs and how long each of their workers has waited at least, in seconds.
fn stall(
    server: &MariaDb,
    time_s: u64,
    mut running: Vec<RunningDyno>,
) -> (Vec<ProcessOutput>, f64) {
    signal(server, Signal::STOP);
    // What was answered before has been followed by another statement then.
    std::thread::sleep(Duration::from_secs(1));
    let stopped = Instant::now();
    std::thread::sleep(Duration::from_secs(time_s));
    let stall_s = stopped.elapsed().as_secs_f64();
    signal(server, Signal::CONT);
    (running.iter_mut().map(RunningDyno::end).collect(), stall_s)
}

/// The number before `word`.
fn number_before(text: &str, word: &str) -> f64 {
    let word = text.split_once(word).unwrap_or_else(|| panic!("no {word}: {text}")).0;
    word.rsplit(' ').next().expect("a word").parse().unwrap_or_else(|_| panic!("{text}"))
}

fn start(folder: &Scratch, mut command: Command) -> RunningDyno {
    command.current_dir(folder.path());
    RunningDyno::spawn(folder.path(), command)
}

fn sysbench(folder: &Path, server: &MariaDb, words: &[&str]) -> Command {
    let socket = format!("--mysql-socket={}", server.socket.display());
    let mut command = command(folder, &[&socket, "--mysql-user=root"]);
    command.args(words);
    command
}

fn prepare(mut command: Command) {
    let output = ProcessOutput::capture(&mut command);
    assert_eq!(output.code, 0, "{output}");
}

#[test]
fn a_stall_beyond_the_end_is_in_the_latencies_of_sysbench_and_pgbench() {
    let name = "a_stall_beyond_the_end_is_in_the_latencies_of_sysbench_and_pgbench";
    let server = server_or_skip!(MariaDb, name);
    let folders = [Scratch::new(), Scratch::new(), Scratch::new()];
    let [test, script, clients] = &folders;
    fs::write(script.file("rows.lua"), SCRIPT).expect("a script");
    sql(&server, "CREATE TABLE sbtest.lua_rows (n INT) ENGINE = InnoDB");
    let insert = ["--threads=8", "--table-size=0", "--time=12", "oltp_insert"];
    prepare(sysbench(test.path(), &server, &[&insert[..], &["prepare"]].concat()));
    let url = server.url();
    prepare(pgbench::support::ours(clients.path(), &["-i", "-q", &url]));

    let json = ["--report-interval=1", "--json=result.json", "run"];
    let ours = sysbench(test.path(), &server, &[&insert[..], &json].concat());
    let lua = ["--threads=8", "--time=12", "./rows.lua", "run"];
    let lua = sysbench(script.path(), &server, &lua);
    let words = ["-n", "-N", "-c", "8", "-T", "12", "-l", "--percentiles=100", &url];
    let pgbench = pgbench::support::ours(clients.path(), &words);
    let running = vec![start(test, ours), start(script, lua), start(clients, pgbench)];
    let rows = "(SELECT COUNT(*) FROM sbtest.";
    let tables = ["sbtest1)", "lua_rows)", "pgbench_history)"].map(|name| format!("{rows}{name}"));
    wait_until("rows of all", || tables.iter().all(|expression| count(&server, expression) > 8));
    let (output, stall_s) = stall(&server, 12, running);

    for (output, rows) in output.iter().zip(&tables).take(2) {
        assert_eq!(output.code, 0, "{output}");
        assert!(number(output, "max:") >= stall_s * 1e3, "{stall_s} {output}");
        assert!(number(output, "total time:") >= stall_s, "{stall_s} {output}");
        assert_eq!(number(output, "transactions:") as u64, count(&server, rows), "{output}");
    }
    let stdout = &output[0].stdout;
    assert!(number(&output[0], "sum:") >= 8.0 * stall_s * 1e3, "all were in flight: {stdout}");
    let lines = stdout.lines().filter(|line| line.contains("s ] thds: 8 tps: "));
    assert!(lines.count() as f64 >= stall_s, "a line for each second of it: {stdout}");
    let text = fs::read_to_string(test.file("result.json")).expect("the result");
    let json: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    assert!(json["latency"]["max_us"].as_f64() >= Some(stall_s * 1e6), "{text}");
    assert_eq!(json["in_flight"], 0);

    let pgbench = output[2].clone().good();
    let slowest = pgbench.stdout.split_once("latency percentile 100 = ").expect("a percentile").1;
    assert!(number_before(slowest, " ms") >= stall_s * 1e3, "{stall_s} {slowest}");
    let log = fs::read_dir(clients.path()).expect("a folder").flatten();
    let mut log =
        log.filter(|entry| entry.file_name().to_string_lossy().starts_with("pgbench_log"));
    let log = fs::read_to_string(log.next().expect("a log").path()).expect("a log");
    let parse_latency = |line: &str| line.split(' ').nth(2).and_then(|us| us.parse::<f64>().ok());
    let stalled = log.lines().filter_map(parse_latency).filter(|&us| us >= stall_s * 1e6);
    assert_eq!(stalled.count(), 8, "the last of each client: {log}");
    assert_eq!(log.lines().count() as u64, count(&server, &tables[2]));
}

/// BenchmarkSQL's terminals finish their transactions after `runMins`, and are counted over the time that this took.
#[test]
fn a_stall_beyond_the_end_is_in_the_latencies_of_benchmarksql() {
    let name = "a_stall_beyond_the_end_is_in_the_latencies_of_benchmarksql";
    let server = server_or_skip!(MariaDb, name);
    let folder = Scratch::new();
    let first = format!(
        "db=mariadb\nuser=root\nconn=jdbc:mariadb://127.0.0.1:{}/sbtest\nresultDirectory=r",
        server.port
    );
    benchmarksql::support::properties(&folder, &first);
    benchmarksql::support::good(&folder, &["build", "props"]);
    let minute = ["runMins", "1", "runTxnsPerTerminal", "0"];
    let words = [&["benchmarksql", "run", "props"][..], &minute].concat();
    let running = RunningDyno::start(folder.path(), &words);
    let orders = "SUM(d_next_o_id - 3001) FROM sbtest.bmsql_district";
    wait_until("orders", || count(&server, orders) > 0);
    // The minute is as long unchanged: most of it leaves the machine to others, in shorter stalls than that at its end.
    for _ in 0..4 {
        signal(&server, Signal::STOP);
        std::thread::sleep(Duration::from_secs(9));
        signal(&server, Signal::CONT);
        std::thread::sleep(Duration::from_secs(1));
    }
    let (output, stall_s) = stall(&server, 22, vec![running]);
    let output = &output[0];
    assert_eq!(output.code, 0, "{output}");
    assert!(benchmarksql::support::check_closing(&output.stdout) > 0);

    let text = fs::read_to_string(folder.file("r/data/result.csv")).expect("a result");
    let lines: Vec<Vec<&str>> =
        text.lines().skip(1).map(|line| line.split(',').collect()).collect();
    let latency_ms = |line: &Vec<&str>| line[2].parse::<f64>().expect("milliseconds");
    let slowest = lines.iter().map(latency_ms).fold(0.0, f64::max);
    assert!(slowest >= stall_s * 1e3 - 1.0, "{stall_s} {slowest}");
    let is_stored = |line: &&Vec<&str>| line[4] == "NEW_ORDER" && line[5..] == ["0", "0", "0"];
    assert_eq!(lines.iter().filter(is_stored).count() as u64, count(&server, orders));
    let maximum = output.stderr.lines().find(|line| line.contains("in flight at the end"));
    assert!(maximum.is_some_and(|line| line.contains(", 0 in flight at the end")), "{output}");
}

#[test]
fn transactions_of_sysbench_are_the_rows_that_it_stored() {
    let name = "transactions_of_sysbench_are_the_rows_that_it_stored";
    let server = server_or_skip!(MariaDb, name);
    let original = peer("sysbench");
    if original.is_none() {
        skipped(name, "sysbench is not installed: dyno alone");
    }
    let folder = Scratch::new();
    fs::write(folder.file("rows.lua"), SCRIPT).expect("a script");
    sql(&server, "CREATE TABLE sbtest.lua_rows (n INT) ENGINE = InnoDB");
    let socket = format!("--mysql-socket={}", server.socket.display());
    let run_program = |program: Option<&String>, words: &[&str]| {
        let mut command = match program {
            Some(program) => Command::new(program),
            None => command(folder.path(), &[]),
        };
        command.current_dir(folder.path()).args([&socket, "--mysql-user=root", "--threads=8"]);
        ProcessOutput::capture(command.args(["--table-size=100", "--time=2"]).args(words)).good()
    };
    for program in [original.as_ref(), None] {
        if original.is_none() && program.is_some() {
            continue;
        }
        for test in ["oltp_insert", "bulk_insert"] {
            let _ = run_program(program, &[test, "prepare"]);
            let count_rows = || {
                let table = |n| format!("(SELECT COUNT(*) FROM sbtest.sbtest{n})");
                let tables = if test == "oltp_insert" { 1..=1 } else { 1..=8 };
                count(&server, &tables.map(table).collect::<Vec<_>>().join(" + "))
            };
            let loaded = count_rows();
            let output = run_program(program, &[test, "run"]);
            let transactions = number(&output, "transactions:") as u64;
            assert_eq!(count_rows() - loaded, transactions, "{program:?} {test} {output}");
            assert!(number(&output, "total time:") >= 2.0, "{output}");
            let _ = run_program(program, &[test, "cleanup"]);
        }
    }
    let script = ["--threads=8", "--time=2", "./rows.lua", "run"];
    let output = ProcessOutput::capture(&mut sysbench(folder.path(), &server, &script)).good();
    let rows = count(&server, "COUNT(*) FROM sbtest.lua_rows");
    assert_eq!(rows, number(&output, "transactions:") as u64, "{output}");
}

#[test]
fn transactions_of_pgbench_are_the_rows_that_it_stored() {
    let name = "transactions_of_pgbench_are_the_rows_that_it_stored";
    let server = server_or_skip!(Postgres, name);
    let folder = Scratch::new();
    let url = server.url();
    prepare(pgbench::support::ours(folder.path(), &["-i", "-q", &url]));
    let count_rows = || {
        let rows = server.sbtest("SELECT count(*) FROM pgbench_history").expect("a count");
        rows.trim().parse::<u64>().expect("a number")
    };
    let words = ["-n", "-c", "8", "-j", "2", "-T", "2", &url];
    let theirs = pgbench::support::original(folder.path(), &words);
    if theirs.is_none() {
        skipped(name, "pgbench is not installed: dyno alone");
    }
    let ours = pgbench::support::ours(folder.path(), &words);
    for mut command in theirs.into_iter().chain([ours]) {
        let before = count_rows();
        let output = ProcessOutput::capture(&mut command).good();
        let label = "number of transactions actually processed: ";
        let processed = output.stdout.lines().find_map(|line| line.strip_prefix(label));
        let processed: u64 = processed.and_then(|n| n.parse().ok()).expect("a number");
        assert_eq!(count_rows() - before, processed, "{output}");
    }
}
