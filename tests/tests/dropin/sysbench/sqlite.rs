//! The whole way on embedded SQLite: always there.

use super::support::{command, number, report, shape, sysbench};
use dyno_testkit::{ProcessOutput, RunningDyno, Scratch};
use rustix::process::Signal;
use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};

const REPORT: &str = include_str!("../../../../crates/dropin/golden/sysbench/report.txt");

/// A folder with the tables of the tests below.
fn prepared(tables: &str, rows: &str) -> Scratch {
    let folder = Scratch::new();
    let tables = format!("--tables={tables}");
    let rows = format!("--table-size={rows}");
    let output = sysbench(
        folder.path(),
        &["--db-driver=sqlite", &tables, &rows, "oltp_read_write", "prepare"],
    );
    assert_eq!(output.code, 0, "{output}");
    folder
}

fn run_in(folder: &Scratch, arguments: &[&str]) -> ProcessOutput {
    ProcessOutput::capture(command(folder.path(), &["--db-driver=sqlite"]).args(arguments))
}

#[test]
fn prepare_run_cleanup() {
    let folder = Scratch::new();
    let tables = ["--tables=2", "--table_size=500", "oltp_read_write"];
    let prepare = ProcessOutput::capture(
        command(folder.path(), &["--db-driver=sqlite"]).args(tables).arg("prepare"),
    );
    assert_eq!(prepare.code, 0, "{prepare}");
    for line in [
        "Creating table 'sbtest1'...",
        "Creating table 'sbtest2'...",
        "Inserting 500 records into 'sbtest1'",
        "Inserting 500 records into 'sbtest2'",
        "Creating a secondary index on 'sbtest1'...",
        "Creating a secondary index on 'sbtest2'...",
    ] {
        assert_eq!(prepare.stdout.lines().filter(|l| *l == line).count(), 1, "{prepare}");
    }
    let run = ProcessOutput::capture(
        command(folder.path(), &["--db-driver=sqlite", "--time=0", "--events=60", "--threads=2"])
            .args(tables)
            .arg("run"),
    );
    assert_eq!(run.code, 0, "{run}");
    assert_eq!(shape(report(&run)), shape(REPORT), "{run}");
    // 14 reads, 4 writes and 2 others each, whatever had to be tried again.
    for (label, count) in [
        ("read:", 840.0),
        ("write:", 240.0),
        ("other:", 120.0),
        ("total:", 1200.0),
        ("transactions:", 60.0),
        ("queries:", 1200.0),
        ("total number of events:", 60.0),
    ] {
        assert!((number(&run, label) - count).abs() < 0.5, "{label} {run}");
    }
    assert!(number(&run, "min:") <= number(&run, "95th percentile:"), "{run}");
    assert!(number(&run, "95th percentile:") <= number(&run, "max:"), "{run}");
    let cleanup = ProcessOutput::capture(
        command(folder.path(), &["--db-driver=sqlite"]).args(tables).arg("cleanup"),
    );
    let (_, lines) = cleanup.stdout.split_once("\n\n").expect("a banner");
    assert_eq!(lines, "Dropping table 'sbtest1'...\nDropping table 'sbtest2'...\n");
    let run = ProcessOutput::capture(
        command(folder.path(), &["--db-driver=sqlite"]).args(tables).arg("run"),
    );
    assert_eq!(run.code, 1, "{run}");
    assert!(run.stdout.contains("FATAL: table 'sbtest1' doesn't exist"), "{run}");
    assert!(run.stderr.contains("hint: run prepare "), "{run}");
}

#[test]
fn a_file_that_is_missing_is_made_by_prepare_alone() {
    let folder = Scratch::new();
    for command in ["run", "cleanup", "prewarm"] {
        let output = run_in(&folder, &["--sqlite-db=t.db", "oltp_read_only", command]);
        assert_eq!(output.code, 1, "{output}");
        assert!(output.stdout.contains("FATAL: There is no SQLite file t.db"), "{output}");
        assert!(output.stderr.contains("hint: run prepare first"), "{output}");
        assert!(!folder.file("t.db").exists());
    }
}

#[test]
fn interval_lines_percentiles_histogram_and_json() {
    let folder = prepared("1", "500");
    let output = run_in(
        &folder,
        &[
            "--table-size=500",
            "--time=2",
            "--report-interval=1",
            "--percentiles=50,99.9",
            "--histogram",
            "--errors",
            "--json=result.json",
            "oltp_point_select",
            "run",
        ],
    );
    assert_eq!(output.code, 0, "{output}");
    let lines: Vec<&str> = output.stdout.lines().filter(|line| line.starts_with("[ ")).collect();
    assert_eq!(lines.len(), 2, "{output}");
    assert!(lines[0].starts_with("[ 1s ] thds: 1 tps: "), "{}", lines[0]);
    let original = include_str!("../../../../crates/dropin/golden/sysbench/intervals.txt");
    let original = original.lines().next().expect("a line");
    assert_eq!(shape(lines[1]), shape(original));
    assert!(output.stdout.contains("Latency histogram (values are in milliseconds)\n"));
    assert!(output.stdout.contains("\n         50th percentile: "), "{output}");
    assert!(output.stdout.contains("\n       99.9th percentile: "), "{output}");
    assert!(output.stderr.contains("Errors:\n    none\n"), "{output}");
    let json = std::fs::read_to_string(folder.file("result.json")).expect("the result");
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(json["counts"]["committed"].as_f64(), Some(number(&output, "transactions:")));
    assert_eq!(json["test"], "oltp_point_select");
    // The last one is what remained to be done after two seconds.
    let intervals = json["intervals"].as_array().expect("a list");
    let interval_length_s = |at: usize| intervals[at]["length_s"].as_f64();
    assert_eq!((interval_length_s(0), interval_length_s(1)), (Some(1.0), Some(1.0)), "{json}");
    let committed = intervals.iter().filter_map(|row| row["committed"].as_u64()).sum::<u64>();
    assert_eq!(json["counts"]["committed"], committed);
    let p50_ms = json["percentiles_us"]["50"].as_f64().expect("a percentile") / 1e3;
    assert!((p50_ms - number(&output, "50th percentile:")).abs() <= 0.005, "{p50_ms} {output}");
}

#[test]
fn json_on_stdout_is_nothing_but_json() {
    let folder = prepared("1", "100");
    let output = run_in(
        &folder,
        &["--table-size=100", "--events=5", "--json=-", "oltp_point_select", "run"],
    );
    assert_eq!(output.code, 0, "{output}");
    let json: serde_json::Value = serde_json::from_str(&output.stdout).expect("JSON");
    assert_eq!(json["counts"]["committed"], 5);
    assert!(output.stderr.contains("SQL statistics:"), "{output}");
    std::fs::write(folder.file("old.json"), "old").expect("a file");
    for file in ["old.json", "new.json"] {
        let output =
            run_in(&folder, &["--tables=9", &format!("--json={file}"), "oltp_point_select", "run"]);
        assert_eq!(output.code, 1, "{output}");
    }
    let old = std::fs::read_to_string(folder.file("old.json"));
    assert_eq!(old.expect("a failed start leaves it alone"), "old");
    assert!(!folder.file("new.json").exists());
    let output = run_in(&folder, &["--json=/nowhere/x", "oltp_point_select", "run"]);
    assert_eq!(output.code, 1);
    assert!(
        output.stdout.contains("FATAL: The file of --json can't be made: /nowhere/x"),
        "{output}"
    );
}

#[test]
fn verbosity_0_is_silent_when_all_is_well() {
    let folder = prepared("1", "100");
    let arguments = ["--verbosity=0", "--table-size=100", "--events=5", "oltp_read_only", "run"];
    let output = run_in(&folder, &arguments);
    assert_eq!((output.code, output.stdout.as_str(), output.stderr.as_str()), (0, "", ""));
}

#[test]
fn a_rate_that_can_not_be_kept_ends_with_1_after_the_report() {
    let folder = prepared("1", "500");
    // No machine does ten million of these transactions per second.
    let output = run_in(
        &folder,
        &["--table-size=500", "--rate=10000000", "--time=1", "oltp_read_only", "run"],
    );
    assert_eq!(output.code, 1, "{output}");
    let (report, end) = output.stdout.split_once("Threads fairness:").expect("a report");
    assert!(report.contains("SQL statistics:"), "{output}");
    assert!(end.contains("FATAL: Only "), "{output}");
    assert!(end.contains("--rate=10000000"), "{output}");
}

#[test]
fn deletes_that_meet_no_row_are_said() {
    let folder = prepared("1", "100");
    // 100 rows, 400 deletes: at least 300 of them meet none.
    let output = run_in(
        &folder,
        &["--table-size=100", "--events=400", "--rand-type=uniform", "oltp_delete", "run"],
    );
    assert_eq!(output.code, 0, "{output}");
    let note = output.stderr.lines().find(|line| line.contains("met no row")).expect("a note");
    let misses: f64 =
        note.split([':', ',']).nth(1).and_then(|n| n.trim().parse().ok()).expect(note);
    assert!(misses >= 300.0, "{note}");
    assert!((number(&output, "write:") + misses - 400.0).abs() < 0.5, "{output}");
}

#[test]
fn ctrl_c_prints_the_report_and_ends_with_130() {
    let folder = prepared("1", "500");
    let mut child =
        command(folder.path(), &["--db-driver=sqlite", "--table-size=500", "--time=600"])
            .args(["oltp_point_select", "run"])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the program can be started");
    let mut lines = BufReader::new(child.stdout.take().expect("a pipe"));
    let mut line = String::new();
    while line != "Threads started!\n" {
        line.clear();
        assert!(lines.read_line(&mut line).expect("a line") > 0, "it ended before it began");
    }
    let process = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(process, rustix::process::Signal::INT).expect("a signal");
    let mut report = String::new();
    lines.read_to_string(&mut report).expect("the report");
    assert_eq!(child.wait().expect("an end").code(), Some(130), "{report}");
    assert!(report.contains("SQL statistics:") && report.contains("Threads fairness:"), "{report}");
}

/// A shell without job control ignores SIGINT in what it starts in the background.
#[test]
fn ctrl_c_that_is_ignored_from_the_start_stops_nothing() {
    let folder = prepared("1", "500");
    let words = ["--db-driver=sqlite", "--table-size=500", "--time=2", "oltp_point_select", "run"];
    let direct = command(folder.path(), &words);
    let mut shell = Command::new("sh");
    shell
        .args(["-c", "trap '' INT; exec \"$0\" \"$@\""])
        .arg(direct.get_program())
        .args(direct.get_args())
        .envs(direct.get_envs().filter_map(|(name, value)| Some((name, value?))))
        .current_dir(folder.path())
        .stdin(Stdio::null());
    let mut running = RunningDyno::spawn(folder.path(), shell);
    running.wait_until("the run", |running| running.stdout().contains("Threads started!"));
    running.signal(Signal::INT);
    let output = running.end();
    assert_eq!(output.code, 0, "{output}");
    assert!(number(&output, "total time:") > 1.9, "{output}");
}

#[test]
fn old_command_lines_work_and_their_mistakes_are_said() {
    let folder = Scratch::new();
    let words = ["--test=tests/db/oltp.lua", "--oltp-tables-count=2", "--oltp-table-size=200"];
    let prepare = run_in(&folder, &[words[0], words[1], words[2], "prepare"]);
    assert_eq!(prepare.code, 0, "{prepare}");
    assert!(prepare.stderr.contains("WARNING: the --test option is deprecated"), "{prepare}");
    let run = run_in(
        &folder,
        &[
            words[0],
            words[1],
            words[2],
            "--num-threads=2",
            "--max-requests=20",
            "--max-time=0",
            "--oltp-table-count=9",
            "--oltp-read-only=1",
            "run",
        ],
    );
    assert_eq!(run.code, 0, "{run}");
    assert!((number(&run, "transactions:") - 20.0).abs() < 0.5, "{run}");
    assert!(number(&run, "write:") > 0.0, "--oltp-read-only=1 is not read-only: {run}");
    for warning in [
        "WARNING: --num-threads is deprecated, use --threads instead\n",
        "did you mean --oltp-tables-count?",
        "--oltp-read-only=1",
    ] {
        assert!(run.stdout.contains(warning), "{warning} {run}");
    }
}
