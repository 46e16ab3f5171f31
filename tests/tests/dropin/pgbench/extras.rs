//! Features that the original lacks: other databases, results for programs, several hosts, ends that
//! can't be overlooked.

use super::support::{finish, ours};
use dyno_testkit::{
    MariaDb, Postgres, ProcessOutput, RunningDyno, Scratch, server_or_skip, wait_until,
};
use rustix::process::Signal;
use std::path::Path;
use std::process::Command;

const DATABASE: &str = "sqlite:bench.db";

fn run(folder: &Path, arguments: &[&str]) -> ProcessOutput {
    finish(&mut ours(folder, arguments))
}

/// A folder with pgbench's tables in an SQLite file and some scripts.
fn folder_with_tables(scale: &str) -> Scratch {
    let folder = Scratch::new();
    let output = run(folder.path(), &["-i", "-q", "-s", scale, DATABASE]);
    assert_eq!(output.code, 0, "{output}");
    let text = "\\set n random(1, 4)\n\\if :n = 4\nSELECT * FROM nosuch;\n\\endif\nSELECT 1;\n";
    std::fs::write(folder.file("bad.sql"), text).expect("a file");
    folder
}

#[test]
fn the_built_in_scripts_run_on_sqlite() {
    let folder = folder_with_tables("1");
    for mode in ["simple", "extended", "prepared"] {
        let arguments = [
            "-M",
            mode,
            "-c",
            "2",
            "-t",
            "10",
            "--max-tries=1000",
            "-b",
            "tp",
            "-b",
            "si",
            "-S",
            DATABASE,
        ];
        let output = run(folder.path(), &arguments);
        assert_eq!(output.code, 0, "{output}");
        assert!(output.stdout.contains(", server SQLite 3."), "{output}");
        let processed = "number of transactions actually processed: 20/20\n";
        assert!(output.stdout.contains(processed), "{output}");
        assert!(output.stdout.contains(&format!("query mode: {mode}\n")), "{output}");
    }
}

#[test]
fn the_built_in_scripts_run_on_mysql() {
    let server = server_or_skip!(MariaDb, "the_built_in_scripts_run_on_mysql");
    let folder = Scratch::new();
    let url = server.url();
    let output = run(folder.path(), &["-i", "-q", &url]);
    assert_eq!(output.code, 0, "{output}");
    assert!(output.stderr.contains("100000 of 100000 tuples (100%) done"), "{output}");
    for mode in ["simple", "prepared"] {
        let target = format!("--target={url}");
        let arguments = ["-M", mode, "-c", "2", "-t", "10", "--max-tries=100", "-r", &target];
        let output = run(folder.path(), &arguments);
        assert_eq!(output.code, 0, "{output}");
        assert!(output.stdout.contains("actually processed: 20/20\n"), "{output}");
        assert!(output.stdout.contains(", server MariaDB "), "{output}");
    }
    let history = server.sql("SELECT count(*) FROM sbtest.pgbench_history").expect("a count");
    assert_eq!(history.trim(), "20", "a run without -n empties the history before it begins");
}

#[test]
fn each_level_of_a_sweep_has_logs_of_its_own() {
    let folder = folder_with_tables("1");
    let arguments = ["-n", "-S", "-t", "5", "-c", "2,1,1", "-l", "--log-prefix=log", DATABASE];
    let output = run(folder.path(), &arguments);
    assert_eq!(output.code, 0, "{output}");
    let mut lines = [0; 3];
    for entry in std::fs::read_dir(folder.path()).expect("the folder").flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let Some((_, rest)) = name.split_once(".level") else { continue };
        assert!(name.starts_with("log."), "{name}");
        let level: usize = rest[..1].parse().expect("the place of a level");
        let text = std::fs::read_to_string(entry.path()).expect("a log");
        lines[level - 1] += text.lines().count();
    }
    assert_eq!(lines, [10, 5, 5], "{output}");
}

#[test]
fn what_a_sweep_refuses_has_nothing_on_standard_output() {
    let folder = Scratch::new();
    let output = run(folder.path(), &["-c", "1,2", "-t", "2", "-T", "2", DATABASE]);
    assert_eq!((output.code, output.stdout.as_str()), (1, ""), "{output}");
    assert!(output.stderr.contains("(-t) or a duration (-T), not both"), "{output}");
}

#[test]
fn results_come_as_percentiles_json_and_histograms() {
    let folder = folder_with_tables("1");
    let arguments = [
        "-n",
        "-S",
        "-c",
        "2",
        "-T",
        "2",
        "--warmup=1",
        "--percentiles=50,99.9",
        "--json=result.json",
        "--hdr=latency.hlog",
        DATABASE,
    ];
    let output = run(folder.path(), &arguments);
    assert_eq!(output.code, 0, "{output}");
    assert!(output.stdout.contains("\nlatency percentile 50 = "), "{output}");
    assert!(output.stdout.contains("\nlatency percentile 99.9 = "), "{output}");
    let text = std::fs::read_to_string(folder.file("result.json")).expect("the result");
    let json: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(json["program"], "dyno pgbench");
    assert_eq!(json["workers"], 2);
    assert_eq!(json["status"], "complete");
    assert!(json["percentiles_us"]["99.9"].as_f64().is_some_and(|us| us > 0.0), "{text}");
    let phases: Vec<_> = json["intervals"].as_array().expect("a list").iter().collect();
    assert!(phases.iter().any(|row| row["phase"] == "warm_up"), "{text}");
    let log = std::fs::read_to_string(folder.file("latency.hlog")).expect("the log");
    let lines = log.lines().filter(|line| line.starts_with("Tag=<builtin:_select_only>,"));
    assert!(lines.count() >= 2, "{log}");
    let processed = output
        .stdout
        .lines()
        .find_map(|line| line.strip_prefix("number of transactions actually processed: "));
    assert_eq!(json["counts"]["committed"].to_string(), processed.unwrap_or_default());
}

#[test]
fn a_result_that_can_not_be_written_leaves_the_report() {
    let folder = folder_with_tables("1");
    let output = run(folder.path(), &["-n", "-S", "--json=/dev/full", DATABASE]);
    assert_eq!(output.code, 1, "{output}");
    assert!(output.stdout.contains("\ntps = "), "{output}");
    let error = "pgbench: error: The file of --json can't be written: /dev/full: ";
    assert!(output.stderr.contains(error), "{output}");
}

#[test]
fn an_initialization_that_is_resumed_drops_nothing_and_says_so() {
    let folder = folder_with_tables("1");
    let output = run(folder.path(), &["-i", "--resume", DATABASE]);
    assert_eq!(output.code, 0, "{output}");
    assert!(!output.stderr.contains("drop"), "{output}");
    assert!(output.stderr.contains("Tables that exist are kept"), "{output}");
}

#[test]
fn a_host_that_does_not_exist_is_one_of_h_or_pghost() {
    let folder = Scratch::new();
    let output = run(folder.path(), &["-h", "nosuchhost.invalid", "-n", "-S", "db"]);
    assert_eq!(output.code, 1, "{output}");
    assert!(output.stderr.contains("hint: check the spelling of the host (-h, PGHOST"), "{output}");
}

/// The system refuses bytes of a file, as a full disk does. SQLite has small files of its own.
#[test]
fn a_log_that_can_not_be_written_is_a_failure() {
    let folder = folder_with_tables("1");
    let plain = ours(folder.path(), &["-n", "-S", "-t", "3000", "--log", DATABASE]);
    let mut limited = Command::new("sh");
    let limits = "trap '' XFSZ; ulimit -f 64; exec \"$@\"";
    limited.current_dir(folder.path()).args(["-c", limits, "sh"]);
    let output = finish(limited.arg(plain.get_program()).args(plain.get_args()));
    assert_eq!(output.code, 1, "{output}");
    assert!(output.stderr.contains("could not write logfile"), "{output}");
    assert!(output.stdout.contains("actually processed: 3000/3000"), "{output}");
}

#[test]
fn json_on_standard_output_is_alone_there() {
    let folder = folder_with_tables("1");
    let output = run(folder.path(), &["-n", "-S", "--json=-", DATABASE]);
    assert_eq!(output.code, 0, "{output}");
    let json: serde_json::Value =
        serde_json::from_str(&output.stdout).expect("JSON and nothing else");
    assert_eq!(json["counts"]["committed"], 10);
    assert!(output.stderr.contains("tps = "), "{output}");
}

#[test]
fn clients_that_stop_make_the_run_fail_visibly() {
    let folder = folder_with_tables("1");
    let arguments = ["-n", "-f", "bad.sql", "--random-seed=3", "-c", "2", "-t", "200", DATABASE];
    let output = run(folder.path(), &arguments);
    assert_eq!(output.code, 2, "{output}");
    let line = output.stderr.lines().find(|line| line.contains("clients stopped after an error"));
    let line = line.unwrap_or_else(|| panic!("{output}"));
    assert!(line.starts_with("pgbench: warning: 2 of 2 clients stopped"), "{line}");
    assert!(line.ends_with(" of 400 transactions were executed"), "{line}");
    let last = "pgbench: error: Run was aborted; the above results are incomplete.\n";
    assert!(output.stderr.ends_with(last), "{output}");
    assert_eq!(output.stderr.matches(" aborted in command ").count(), 2, "{output}");
}

/// The third transaction is left open: its client stops, and it counts as in pgbench 15.
#[test]
fn a_transaction_that_a_script_leaves_open_counts_and_ends_its_client() {
    let folder = folder_with_tables("1");
    let text = "\\set n :n + 1\nBEGIN;\nSELECT 1;\n\\if :n < 3\nEND;\n\\endif\n";
    std::fs::write(folder.file("open.sql"), text).expect("a file");
    let output = run(folder.path(), &["-n", "-f", "open.sql", "-D", "n=0", "-t", "5", DATABASE]);
    assert_eq!(output.code, 2, "{output}");
    let message = "pgbench: error: client 0 aborted: end of script reached without completing the last \
                transaction\n";
    assert!(output.stderr.contains(message), "{output}");
    let processed = "number of transactions actually processed: 3/5\n";
    assert!(output.stdout.contains(processed), "{output}");
}

#[test]
fn errors_can_end_everything_or_nothing() {
    let folder = folder_with_tables("1");
    let run_with = |option| {
        run(
            folder.path(),
            &["-n", "-f", "bad.sql", "-t", "50", option, "--failures-detailed", DATABASE],
        )
    };
    let output = run_with("--exit-on-abort");
    assert_eq!(output.code, 2, "{output}");
    assert!(output.stderr.contains("1 of 1 clients stopped"), "{output}");
    let output = run_with("--continue-on-error");
    assert_eq!(output.code, 0, "{output}");
    let get_number = |label: &str| -> u64 {
        let line = output.stdout.lines().find_map(|line| line.strip_prefix(label));
        let digits = line.unwrap_or_default().split([' ', '/']).next().unwrap_or_default();
        digits.parse().unwrap_or_else(|_| panic!("{label}: {output}"))
    };
    let failed = get_number("number of failed transactions: ");
    assert!(failed > 0, "{output}");
    assert_eq!(failed, get_number("number of other failures: "));
    assert_eq!(failed + get_number("number of transactions actually processed: "), 50);
}

#[test]
fn a_run_in_which_every_transaction_is_an_error_is_one_itself() {
    let folder = folder_with_tables("1");
    std::fs::write(folder.file("wrong.sql"), "SELEC 1;\n").expect("a file");
    let arguments = ["-n", "-t", "5", "-f", "wrong.sql", "--continue-on-error", DATABASE];
    let output = run(folder.path(), &arguments);
    assert_eq!(output.code, 1, "{output}");
    assert!(output.stdout.contains("number of failed transactions: 5 (100.000%)"), "{output}");
    assert_eq!(output.stderr.matches("No transaction succeeded").count(), 1, "{output}");
    assert!(output.stderr.contains("syntax error"), "{output}");
}

#[test]
fn a_run_in_which_nothing_was_executed_is_an_error() {
    let folder = folder_with_tables("1");
    let output = run(folder.path(), &["-n", "-S", "-R", "0.0001", "-T", "1", DATABASE]);
    assert_eq!(output.code, 1, "{output}");
    assert!(output.stdout.contains("actually processed: 0\n"), "{output}");
    assert!(output.stderr.contains("pgbench: error: No transaction was executed.\n"), "{output}");
}

#[test]
fn what_a_database_can_not_do_is_said_before_anything_is_touched() {
    let folder = Scratch::new();
    let output = run(folder.path(), &["-i", "--partitions=2", DATABASE]);
    assert_eq!(output.code, 1, "{output}");
    assert!(output.stderr.starts_with("pgbench: error: --partitions: SQLite has no "), "{output}");
    assert!(output.stderr.contains("pgbench: hint: "), "{output}");
    let output = run(folder.path(), &["-S", DATABASE]);
    assert_eq!(output.code, 1, "{output}");
    let start = "pgbench: error: could not count number of branches: ";
    assert!(output.stderr.starts_with(start), "{output}");
    assert!(output.stderr.contains("Perhaps you need to do initialization"), "{output}");
}

#[test]
fn an_interrupted_run_has_its_report() {
    let folder = folder_with_tables("1");
    let arguments = ["pgbench", "-n", "-S", "-T", "600", "-P", "1", DATABASE];
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143)] {
        let mut running = RunningDyno::start(folder.path(), &arguments);
        running.wait_until("a line of progress", |running| {
            running.stderr().contains("progress: 1.0 s")
        });
        running.signal(signal);
        let output = running.end();
        assert_eq!(output.code, code, "{}\n{}", output.stdout, output.stderr);
        assert!(output.stdout.contains("\ntps = "), "{}", output.stdout);
        assert!(output.stderr.contains("the above results are incomplete."), "{}", output.stderr);
    }
}

#[test]
fn a_client_that_sleeps_is_cut_after_ctrl_c() {
    let folder = folder_with_tables("1");
    std::fs::write(folder.file("sleep.sql"), "\\sleep 600 s\n").expect("a file");
    let arguments =
        ["pgbench", "-n", "-f", "sleep.sql", "-c", "2", "-T", "600", "-P", "1", DATABASE];
    let mut running = RunningDyno::start(folder.path(), &arguments);
    running.wait_until("progress", |running| running.stderr().contains("progress: 1.0 s"));
    running.signal(Signal::INT);
    let output = running.end();
    assert_eq!(output.code, 130, "{}\n{}", output.stdout, output.stderr);
    let cut = "pgbench: warning: 2 of 2 clients were cut off within a transaction";
    assert!(output.stderr.contains(cut), "{}", output.stderr);
    let longest = output.stderr.split_once("the longest took at least ").expect("a time").1;
    let longest_s: f64 = longest.split(' ').next().expect("a number").parse().expect("seconds");
    assert!(longest_s >= 1.0, "{}", output.stderr);
    assert!(
        output.stdout.contains("number of transactions actually processed: 0"),
        "{}",
        output.stdout
    );
}

#[test]
fn an_interrupted_initialization_of_sqlite_leaves_what_can_be_gone_on_with() {
    let folder = Scratch::new();
    let arguments = ["pgbench", "-i", "-q", "-s", "3000", "-j", "2", DATABASE];
    let mut running = RunningDyno::start(folder.path(), &arguments);
    let file_size = || std::fs::metadata(folder.file("bench.db")).map_or(0, |about| about.len());
    running.wait_until("rows", |_| file_size() > 20_000_000);
    running.signal(Signal::INT);
    let output = running.end();
    assert_eq!(output.code, 130, "{}\n{}", output.stdout, output.stderr);
    let end = "pgbench: error: canceled\npgbench: hint: run it again with --resume";
    assert!(output.stderr.contains(end), "{}", output.stderr);
}

#[test]
fn an_interrupted_initialization_stops_at_the_server_too() {
    let server = server_or_skip!(Postgres, "an_interrupted_initialization_stops_at_the_server_too");
    let folder = Scratch::new();
    let url = server.url();
    let hint = "pgbench: hint: run it again with --resume";
    // What is requested, what has to be seen before the signal, and whether rows are stored then.
    let cases = [
        (&["-I", "dtG", "-s", "3000"][..], "state = 'active' AND query LIKE 'insert into%'", false),
        (&["-s", "3000"], "state = 'active' AND query ILIKE 'copy %'", false),
        (&["-s", "3000", "-j", "3"], "state = 'active' AND query ILIKE 'copy %'", true),
    ];
    for (arguments, seen, is_stored) in cases {
        let words = [&["pgbench", "-i", "-q"], arguments, &[&url]].concat();
        let mut running = RunningDyno::start(folder.path(), &words);
        let other_sessions = "FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND \
                      backend_type = 'client backend'";
        running.wait_until("the load", |_| {
            let working = format!("SELECT count(*) > 0 {other_sessions} AND {seen}");
            let stored = "SELECT to_regclass('pgbench_accounts') IS NOT NULL AND \
                          pg_relation_size(to_regclass('pgbench_accounts')) > 100000000";
            server.sbtest(&working).is_ok_and(|answer| answer.trim() == "t")
                && (!is_stored || server.sbtest(stored).is_ok_and(|answer| answer.trim() == "t"))
        });
        running.signal(Signal::INT);
        let output = running.end();
        assert_eq!(output.code, 130, "{arguments:?}\n{}\n{}", output.stdout, output.stderr);
        assert!(output.stderr.contains("pgbench: error: canceled\n"), "{}", output.stderr);
        assert_eq!(output.stderr.contains(hint), is_stored, "{arguments:?}\n{}", output.stderr);
        wait_until("the end of the server's work", || {
            let remaining = format!("SELECT count(*) {other_sessions}");
            server.sbtest(&remaining).is_ok_and(|answer| answer.trim() == "0")
        });
        let torn = "SELECT count(*) FROM (SELECT 1 FROM pgbench_accounts GROUP BY bid \
                    HAVING count(*) <> 100000) AS torn";
        assert_eq!(server.sbtest(torn).expect("the tables").trim(), "0", "{arguments:?}");
    }
}

/// The letter é of LATIN1, whose code is 233.
const LATIN1: &[u8] =
    b"\\set n 232\nSELECT 1 / (ascii('\xe9') - :n);\nSELECT 1 / (ascii('\xe9') - 232);\n";

#[test]
fn statements_that_are_not_utf_8_are_sent_as_they_are() {
    let server = server_or_skip!(Postgres, "statements_that_are_not_utf_8_are_sent_as_they_are");
    let folder = Scratch::new();
    std::fs::write(folder.file("latin1.sql"), LATIN1).expect("a file");
    let url = server.url();
    let mut command = ours(folder.path(), &["-n", "-f", "latin1.sql", "-t", "2", &url]);
    let output = finish(command.env("PGCLIENTENCODING", "LATIN1"));
    assert_eq!(output.code, 0, "{output}");
    assert!(output.stdout.contains("actually processed: 2/2\n"), "{output}");
}

#[test]
fn sqlite_takes_statements_in_utf_8_only() {
    let folder = Scratch::new();
    std::fs::write(folder.file("latin1.sql"), LATIN1).expect("a file");
    for mode in ["simple", "extended", "prepared"] {
        let output = run(folder.path(), &["-n", "-M", mode, "-f", "latin1.sql", DATABASE]);
        assert_eq!(output.code, 2, "{output}");
        let message = "the text of a statement for this database must be UTF-8";
        assert!(output.stderr.contains(message), "{output}");
    }
}

#[test]
fn several_hosts_share_the_clients() {
    let server = server_or_skip!(Postgres, "several_hosts_share_the_clients");
    let folder = Scratch::new();
    server.sbtest("CREATE TABLE seen (by_socket bool)").expect("a table");
    std::fs::write(
        folder.file("seen.sql"),
        "INSERT INTO seen SELECT inet_client_addr() IS NULL;\n",
    )
    .expect("a file");
    let (socket, port) = (server.socket_folder.display(), server.port);
    // No one listens on the first of the hosts that are tried in order.
    let in_order = format!("host=127.0.0.1,127.0.0.1 port=1,{port}");
    let rotating = format!("host=127.0.0.1,{socket} port={port} load_balance_hosts=rotate");
    for (hosts, expected) in [(in_order, "f\t20"), (rotating, "f\t10\nt\t10")] {
        let name = format!("{hosts} user=postgres dbname=sbtest");
        let arguments = ["-n", "-f", "seen.sql", "-c", "4", "-t", "5", &name];
        let output = run(folder.path(), &arguments);
        assert_eq!(output.code, 0, "{output}");
        let counts = server.sbtest("SELECT by_socket, count(*) FROM seen GROUP BY 1 ORDER BY 1");
        assert_eq!(counts.expect("counts").trim(), expected, "{hosts}");
        server.sbtest("TRUNCATE seen").expect("an empty table");
    }
}

#[test]
fn a_server_that_is_full_is_named_with_the_client_that_it_refused() {
    let options = ["-c", "fsync=off", "-c", "max_connections=5"];
    let server = match Postgres::start_with(&options) {
        Ok(server) => server,
        Err(why) => {
            let test = "a_server_that_is_full_is_named_with_the_client_that_it_refused";
            return dyno_testkit::skipped(test, &why);
        }
    };
    let folder = Scratch::new();
    std::fs::write(folder.file("one.sql"), "SELECT 1;\n").expect("a file");
    let name = format!("postgres://postgres@127.0.0.1:{}/sbtest", server.port);
    let output = run(folder.path(), &["-n", "-f", "one.sql", "-c", "20", &name]);
    assert_eq!(output.code, 1, "{output}");
    let full = format!(
        "pgbench: error: connection to server at \"127.0.0.1\", port {} failed: FATAL:  sorry, too many \
         clients already\npgbench: error: could not create connection for client ",
        server.port
    );
    assert!(output.stderr.contains(&full), "{output}");
}

#[test]
fn balances_are_checked_where_that_is_asked_for() {
    let folder = folder_with_tables("1");
    let check = ["--check-balances", "-t", "20", DATABASE];
    let output = run(folder.path(), &check);
    assert_eq!(output.code, 0, "{}", output.stderr);
    let agree = "pgbench: balances agree: The sums of accounts, tellers, branches and history";
    assert!(output.stderr.contains(agree), "{}", output.stderr);
    // A script that books twice what it writes down.
    let script = "\\set d random(1, 9)\nBEGIN;\n\
        UPDATE pgbench_accounts SET abalance = abalance + :d WHERE aid = 1;\n\
        UPDATE pgbench_tellers SET tbalance = tbalance + :d WHERE tid <= 2;\nEND;\n";
    std::fs::write(folder.path().join("wrong.sql"), script).expect("a file");
    let output = run(folder.path(), &["-n", "-f", "wrong.sql", "--check-balances", DATABASE]);
    assert_eq!(output.code, 1, "{}", output.stderr);
    assert!(
        output.stderr.contains("pgbench: error: The balances don't agree."),
        "{}",
        output.stderr
    );
    // The report stands all the same.
    assert!(output.stdout.contains("number of transactions actually processed: 10/10"));
    let output = run(folder.path(), &["-n", "-S", "--check-balances", DATABASE]);
    assert_eq!(output.code, 1, "{}", output.stderr);
    assert!(output.stderr.contains("nothing to check"), "{}", output.stderr);
}
