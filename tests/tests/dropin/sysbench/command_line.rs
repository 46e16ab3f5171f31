//! Everything that needs no database.

use super::support::{command, number, sysbench};
use dyno_testkit::{ProcessOutput, Scratch, skipped};
use std::net::TcpListener;
use std::path::Path;
use std::process::Command;

fn run(arguments: &[&str]) -> ProcessOutput {
    sysbench(Scratch::new().path(), arguments)
}

#[test]
fn version_and_help_go_to_stdout_and_end_with_0() {
    let version = run(&["--version"]);
    assert_eq!(version.code, 0);
    assert_eq!(version.stdout, "sysbench 1.0.20\n");
    let help = run(&["--help", "oltp_read_write", "run"]);
    assert_eq!((help.code, help.stderr.as_str()), (0, ""));
    assert!(help.stdout.starts_with("Usage:\n"), "{}", help.stdout);
    let help = run(&["oltp_read_write", "help"]);
    assert_eq!(help.code, 0);
    assert!(help.stdout.contains("\n\noltp_read_write options:\n  --auto_inc"), "{}", help.stdout);
}

#[test]
fn the_binary_is_sysbench_when_it_is_called_so() {
    let folder = Scratch::new();
    let link = folder.file("sysbench");
    std::os::unix::fs::symlink(dyno_testkit::dyno_path(), &link).expect("a link");
    let output = ProcessOutput::capture(Command::new(&link).arg("--version"));
    assert_eq!(output.stdout, "sysbench 1.0.20\n");
    let output = ProcessOutput::capture(Command::new(&link).args([
        "--threads=2",
        "oltp_read_write",
        "runn",
    ]));
    assert_eq!(output.code, 1);
    assert_eq!(output.stderr, "Unknown command: runn\nhint: did you mean run?\n");
}

/// Arguments, and what stdout or stderr must contain. All end with exit code 1.
#[test]
fn mistakes_are_one_clear_error_each() {
    for (arguments, stdout, stderr) in [
        (&["--foo=1", "oltp_read_write", "run"][..], "", "invalid option: --foo=1\nhint: "),
        (&["--tabels=4", "oltp_read_write", "run"], "", "hint: did you mean --tables?\n"),
        (&["--threads=abc", "oltp_read_write", "run"], "", "invalid option: --threads=abc: "),
        (&["--tables=abc", "oltp_read_write", "run"], "", "invalid option: --tables=abc: "),
        (&["--threads", "4", "oltp_read_write", "run"], "", "--threads=VALUE, with an equals sign"),
        (&["cpu", "run", "a", "b"], "", "Unrecognized command line argument: a\n"),
        (&["oltp_read_write"], "FATAL: Command is required. Supported commands: prepare, ", ""),
        (&["nothing", "run"], "FATAL: Cannot find benchmark 'nothing': no such built-in test", ""),
        (&["oltp_readonly", "run"], "FATAL: Cannot find", "hint: did you mean oltp_read_only?\n"),
        (&["cpu", "run"], "FATAL: 'cpu' tests no database: ", ""),
        (&["--percentile=200", "oltp_insert", "run"], "", "--percentile=200: the value must be"),
        (
            &["--percentile=0", "--histogram", "oltp_insert", "run"],
            "FATAL: --histogram cannot be used with --percentile=0",
            "",
        ),
        (&["--mysql-dry-run", "oltp_insert", "prepare"], "FATAL: --mysql-dry-run is for", ""),
        (
            &["--mysql-compression-algorithms=lz4", "oltp_insert", "run"],
            "",
            "the value must be zlib",
        ),
        (&["bulk_insert", "help"], "", "'bulk_insert' test does not implement the 'help' command."),
        (&["--config-file=/nowhere", "oltp_insert", "run"], "", "/nowhere: "),
        (
            &["--oltp-read-only=on", "--oltp-write-only=on", "tests/db/oltp.lua", "run"],
            "",
            "exclude each other",
        ),
    ] {
        let output = run(arguments);
        assert_eq!(output.code, 1, "{arguments:?}: {output}");
        assert!(output.stdout.contains(stdout), "{arguments:?}: {output}");
        assert!(output.stderr.contains(stderr), "{arguments:?}: {output}");
    }
}

/// Like the original: all of them count as others.
#[test]
fn a_dry_run_makes_and_counts_statements_without_a_server() {
    let nowhere = ["--mysql-dry-run", "--mysql-host=host.invalid", "--threads=2", "--reconnect=10"];
    for (length, at_least) in [("--events=1000", 1_000.0), ("--time=1", 10_000.0)] {
        let test = [length, if length == "--time=1" { "--events=0" } else { "--time=0" }];
        let output = run(&[&nowhere[..], &test, &["oltp_read_write", "run"]].concat());
        assert_eq!(output.code, 0, "{output}");
        let transactions = number(&output, "transactions:");
        assert!(transactions >= at_least, "{output}");
        assert_eq!((number(&output, "read:"), number(&output, "write:")), (0.0, 0.0), "{output}");
        assert!((number(&output, "other:") - 20.0 * transactions).abs() < 0.5, "{output}");
        let reconnects = number(&output, "reconnects:");
        assert!((reconnects - transactions / 10.0).abs() <= 2.0, "{output}");
    }
}

/// A user's own script that only selects, whatever it is called.
const SELECTS: &str = "function thread_init() con = sysbench.sql.driver():connect() end\n\
                       function event() con:query('SELECT count(*) FROM sbtest1') end\n";

#[test]
fn a_script_of_ones_own_is_executed_and_no_built_in_test_of_its_name() {
    let folder = Scratch::new();
    let run_sysbench = |words: &[&str]| {
        let size = ["--db-driver=sqlite", "--table-size=100", "--events=50"];
        sysbench(folder.path(), &[&size, words].concat())
    };
    let prepared = run_sysbench(&["oltp_read_write", "prepare"]);
    assert_eq!(prepared.code, 0, "{prepared}");
    let database_bytes = || std::fs::read(folder.file("sbtest.db")).expect("a database");
    let before = database_bytes();
    let assert_selects = |words: &[&str]| {
        let output = run_sysbench(words);
        assert_eq!(output.code, 0, "{output}");
        assert!((number(&output, "read:") - 50.0).abs() < 0.5, "{output}");
    };
    for name in ["delete.lua", "oltp_delete.lua", "mine.lua", "parallel_prepare.lua"] {
        std::fs::write(folder.file(name), SELECTS).expect("a file");
        let path = format!("./{name}");
        assert_selects(&[&path, "run"]);
        let cleanup = run_sysbench(&[&path, "cleanup"]);
        assert_eq!(cleanup.code, 1, "{cleanup}");
        let expected = format!("'{name}' test does not implement the 'cleanup' command.\n");
        assert_eq!(cleanup.stderr, expected, "{cleanup}");
    }
    // sysbench finds it by its name alone, too.
    assert_selects(&["oltp_delete", "run"]);
    assert!(database_bytes() == before, "the database is as it was");
    for name in ["oltp_delete.lua", "delete.lua"] {
        std::fs::remove_file(folder.file(name)).expect("a file");
    }
    // The installed script would load this one.
    std::fs::write(folder.file("oltp_common.lua"), "error('edited')\n").expect("a file");
    let insert = run_sysbench(&["oltp_insert", "run"]);
    assert_eq!(insert.code, 1, "{insert}");
    assert!(database_bytes() == before, "the database is as it was");
    std::fs::remove_file(folder.file("oltp_common.lua")).expect("a file");
    let output = run_sysbench(&["oltp_delete", "run"]);
    assert_eq!(output.code, 0, "{output}");
    assert!(database_bytes() != before, "a test deletes");
}

#[test]
fn an_edited_module_is_found_where_the_script_would_find_it() {
    let (folder, modules) = (Scratch::new(), Scratch::new());
    let search = format!("{}/?.lua;;", modules.path().display());
    let run_sysbench = |words: &[&str]| {
        let size = ["--db-driver=sqlite", "--table-size=100"];
        ProcessOutput::capture(command(folder.path(), &size).env("LUA_PATH", &search).args(words))
    };
    let prepared = run_sysbench(&["oltp_read_write", "prepare"]);
    assert_eq!(prepared.code, 0, "{prepared}");
    let database_bytes = || std::fs::read(folder.file("sbtest.db")).expect("a database");
    let before = database_bytes();
    std::fs::write(modules.file("oltp_common.lua"), "error('edited')\n").expect("a file");
    for script in ["oltp_read_write", "/usr/share/sysbench/oltp_read_write.lua"] {
        let cleanup = run_sysbench(&[script, "cleanup"]);
        assert_eq!(cleanup.code, 1, "{cleanup}");
    }
    assert!(database_bytes() == before, "the database is as it was");
    std::fs::remove_file(modules.file("oltp_common.lua")).expect("a file");
    let mine = "function cleanup() print('mine') end\n";
    std::fs::write(modules.file("oltp_read_write.lua"), mine).expect("a file");
    let cleanup = run_sysbench(&["oltp_read_write", "cleanup"]);
    assert_eq!(cleanup.code, 0, "{cleanup}");
    assert!(cleanup.stdout.contains("mine\n"), "{cleanup}");
    assert!(database_bytes() == before, "the database is as it was");
}

#[test]
fn an_unchanged_script_means_its_test_wherever_it_is() {
    let installed = Path::new("/usr/share/sysbench/oltp_delete.lua");
    if !installed.exists() {
        let test = "an_unchanged_script_means_its_test_wherever_it_is";
        return skipped(test, "sysbench's scripts are not in /usr/share/sysbench");
    }
    let folder = Scratch::new();
    let copy = folder.file("mine.lua");
    std::fs::copy(installed, &copy).expect("a copy");
    let run_script = |script: &str, command: &str| {
        let words = ["--db-driver=sqlite", "--table-size=100", "--events=50", script, command];
        sysbench(folder.path(), &words)
    };
    assert_eq!(run_script("./mine.lua", "prepare").code, 0);
    for script in [&installed.display().to_string(), "./mine.lua", "mine", "oltp_delete.lua"] {
        let output = run_script(script, "run");
        assert_eq!(output.code, 0, "{script}: {output}");
        assert!(
            (number(&output, "write:") + number(&output, "other:") - 50.0).abs() < 0.5,
            "{output}"
        );
    }
    let original = std::fs::read_to_string(installed).expect("UTF-8");
    std::fs::write(&copy, format!("{original}print('x')\n")).expect("written");
    let edited = run_script("./mine.lua", "run");
    assert!(edited.stdout.contains("\nx\n"), "{edited}");
}

#[test]
fn nobody_listens_on_a_closed_port() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = listener.local_addr().expect("its address").port();
    drop(listener);
    let option = format!("--mysql-port={port}");
    for test_command in ["run", "prepare", "prewarm", "cleanup"] {
        let output =
            run(&["--mysql-host=127.0.0.1", &option, "--threads=2", "oltp_insert", test_command]);
        assert_eq!(output.code, 1, "{output}");
        let expected = format!(
            "FATAL: unable to connect to MySQL server on host '127.0.0.1', port {port}, aborting...\n\
             FATAL: error 2002: "
        );
        assert!(output.stdout.contains(&expected), "{output}");
        assert!(output.stderr.contains("hint: "), "{output}");
    }
}

/// A server that accepts and says nothing holds the program in its log-in, so its process list entry
/// can be read at leisure.
#[test]
fn passwords_are_wiped_from_the_process_list() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = format!("--mysql-port={}", listener.local_addr().expect("its address").port());
    let folder = Scratch::new();
    let arguments = [
        "--mysql-host=127.0.0.1",
        &port,
        "--mysql_password=sesame1",
        "--pgsql-password=sesame2",
        "--mysql-user=alibaba",
        "oltp_insert",
        "run",
    ];
    let mut child = command(folder.path(), &arguments)
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .spawn()
        .expect("the program can be started");
    let connection = listener.accept().expect("the program connects");
    let command_line = std::fs::read(format!("/proc/{}/cmdline", child.id()));
    let ended = child.kill().and_then(|()| child.wait());
    drop(connection);
    assert!(ended.is_ok());
    let command_line =
        String::from_utf8_lossy(&command_line.expect("the process list")).replace('\0', " ");
    assert!(!command_line.contains("sesame"), "{command_line}");
    assert!(
        command_line.contains("--mysql_password=xxxxxxx --pgsql-password=xxxxxxx "),
        "{command_line}"
    );
    assert!(command_line.contains("--mysql-user=alibaba "), "{command_line}");
}

#[test]
fn workers_that_are_not_ready_in_time_end_with_2() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = format!("--mysql-port={}", listener.local_addr().expect("its address").port());
    let output =
        run(&["--mysql-host=127.0.0.1", &port, "--thread-init-timeout=1", "oltp_insert", "run"]);
    assert_eq!(output.code, 2, "{output}");
    assert!(output.stdout.contains("within 1 seconds (--thread-init-timeout)"), "{output}");
}
