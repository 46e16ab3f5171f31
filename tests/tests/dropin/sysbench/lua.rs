//! Scripts of users' own on real servers, alongside the original.

use super::support::{command, number, offline_command, shape};
use dyno_testkit::{MariaDb, Postgres, ProcessOutput, Scratch, peer, server_or_skip, skipped};
use std::fs::File;
use std::path::Path;
use std::process::Command;

const INSTALLED: &str = "/usr/share/sysbench";
const RUN: [&str; 6] =
    ["--tables=2", "--table-size=500", "--threads=1", "--events=8", "--time=0", "--rand-seed=7"];

/// A folder with the read-write test of Debian's package as somebody has edited it, or why there is none.
fn edited() -> Result<Scratch, String> {
    let folder = Scratch::new();
    for name in ["oltp_common.lua", "oltp_read_write.lua"] {
        let text = std::fs::read_to_string(Path::new(INSTALLED).join(name))
            .map_err(|_| format!("{name} is not in {INSTALLED}"))?;
        let edited = format!("{text}\nlocal edited = true\n");
        std::fs::write(folder.file(name), edited).map_err(|error| error.to_string())?;
    }
    Ok(folder)
}

fn dyno(folder: &Scratch, connection: &[&str], what: &str) -> ProcessOutput {
    let output = ProcessOutput::capture(
        command(folder.path(), connection).args(RUN).args(["./oltp_read_write.lua", what]),
    );
    assert_eq!(output.code, 0, "{output}");
    output
}

/// Executed statements of the general log, without what the clients ask on their own account.
fn statements(log: &Path) -> Vec<String> {
    let text = String::from_utf8_lossy(&std::fs::read(log).expect("a log")).into_owned();
    text.lines()
        .filter_map(|line| line.split_once("Execute\t"))
        .map(|(_, statement)| statement.to_owned())
        .collect()
}

#[test]
fn an_edited_script_sends_mariadb_what_the_original_sends() {
    let name = "an_edited_script_sends_mariadb_what_the_original_sends";
    let server = server_or_skip!(MariaDb, name);
    let (folder, program) = match (edited(), peer("sysbench")) {
        (Ok(folder), Some(program)) => (folder, program),
        (Err(why), _) => return skipped(name, &why),
        (_, None) => return skipped(name, "sysbench is not installed"),
    };
    let socket = format!("--mysql-socket={}", server.socket.display());
    let connection = [socket.as_str(), "--mysql-user=root"];
    let prepared = dyno(&folder, &connection, "prepare");
    assert!(prepared.stdout.contains("Inserting 500 records into 'sbtest2'"), "{prepared}");
    let log_statements = |file: &str, run: &dyn Fn()| {
        // The server writes it into the folder of its data.
        let set = format!("SET GLOBAL general_log_file = '{file}'; SET GLOBAL general_log = 1");
        server.sql(&set).expect("a log");
        run();
        server.sql("SET GLOBAL general_log = 0").expect("no log");
        let data = server.sql("SELECT @@datadir").expect("a folder");
        statements(&Path::new(data.trim()).join(file))
    };
    let ours = log_statements("dyno.log", &|| {
        let output = dyno(&folder, &connection, "run");
        assert!((number(&output, "read:") - 8.0 * 14.0).abs() < 0.5, "{output}");
    });
    // Row for row as it was: the original changes the same rows in the same way.
    dyno(&folder, &connection, "cleanup");
    dyno(&folder, &connection, "prepare");
    let theirs = log_statements("original.log", &|| {
        let mut original = Command::new(&program);
        original.current_dir(folder.path()).args(connection).args(RUN);
        assert_eq!(ProcessOutput::capture(original.args(["./oltp_read_write.lua", "run"])).code, 0);
    });
    assert_eq!(ours.len(), 8 * 20, "{ours:?}");
    assert_eq!(ours, theirs);
}

pub(super) fn postgres_options(server: &Postgres) -> [String; 5] {
    let port = server.port.to_string();
    let options = [
        ("db-driver", "pgsql"),
        ("pgsql-host", "127.0.0.1"),
        ("pgsql-port", &port),
        ("pgsql-user", "postgres"),
        ("pgsql-db", "sbtest"),
    ];
    options.map(|(name, value)| format!("--{name}={value}"))
}

#[test]
fn an_edited_script_runs_on_postgres() {
    let name = "an_edited_script_runs_on_postgres";
    let server = server_or_skip!(Postgres, name);
    let folder = match edited() {
        Ok(folder) => folder,
        Err(why) => return skipped(name, &why),
    };
    let connection = postgres_options(&server);
    let connection = connection.each_ref().map(String::as_str);
    dyno(&folder, &connection, "prepare");
    let output = dyno(&folder, &connection, "run");
    assert!((number(&output, "write:") - 8.0 * 4.0).abs() < 0.5, "{output}");
    dyno(&folder, &connection, "cleanup");
}

const API: &str = include_str!("scripts/api.lua");
const OPTIONS: &str = include_str!("scripts/options.lua");
const SQL: &str = include_str!("scripts/sql.lua");
const SHAPES: &str = include_str!("scripts/shapes.lua");

/// Output of the scripts above, and the bars of their histograms.
fn printed_lines(output: &ProcessOutput) -> Vec<String> {
    let is_printed = |line: &&str| line.starts_with("say") || line.contains(" |*");
    output.stdout.lines().filter(is_printed).map(str::to_owned).collect()
}

/// Output of a script before and after the begin of the events.
fn around_start(output: &ProcessOutput) -> Option<[Vec<String>; 2]> {
    let (before, after) = output.stdout.split_once("Threads started!")?;
    let script_lines = |text: &str| {
        text.lines().filter(|line| line.starts_with("say")).map(str::to_owned).collect()
    };
    Some([script_lines(before), script_lines(after)])
}

#[test]
fn each_function_gives_what_the_originals_gives() {
    let name = "each_function_gives_what_the_originals_gives";
    let Some(program) = peer("sysbench") else {
        return skipped(name, "sysbench is not installed");
    };
    let folder = Scratch::new();
    std::fs::write(folder.file("api.lua"), API).expect("a script");
    let run_options = [
        "--rand-seed=7",
        "--events=2",
        "--time=0",
        "--flag",
        "--other-flag=off",
        "--count=4",
        "--part=0.25",
        "--word=y",
        "--list=p,q",
        "--size=2K",
        "--whole=8",
        "--checked=5",
        "--rand-type=uniform",
    ];
    let special = ["--rand-seed=12345", "--events=1", "--time=0"];
    let many = ["--threads=2"];
    for (options, command, code, lines) in [
        (&run_options[..], "run", 0, 2 * 35),
        (&special[..], "run", 0, 35),
        (&run_options[..], "own", 0, 1),
        (&many[..], "many", 0, 2),
        (&[][..], "help", 0, 1),
        (&["--unknown=1"][..], "own", 1, 0),
        (&[][..], "nonsense", 1, 0),
    ] {
        let words = [options, &["./api.lua", command]].concat();
        let ours = ProcessOutput::capture(offline_command(&folder).args(&words));
        let theirs =
            ProcessOutput::capture(Command::new(&program).current_dir(folder.path()).args(&words));
        assert_eq!((ours.code, theirs.code), (code, code), "{words:?}\n{ours}");
        assert_eq!(printed_lines(&ours), printed_lines(&theirs), "{words:?}");
        assert_eq!(around_start(&ours), around_start(&theirs), "{words:?}");
        assert!(printed_lines(&ours).len() >= lines, "{words:?}\n{ours}");
        if command != "run" {
            let below_banner = |output: &ProcessOutput| {
                output.stdout.split_once('\n').map(|(_, text)| text.to_owned())
            };
            assert_eq!(below_banner(&ours), below_banner(&theirs), "{words:?}");
        }
    }
}

/// Also empty and missing values, names with dashes, and the arguments of functions.
#[test]
fn options_come_to_what_the_originals_come_to() {
    let name = "options_come_to_what_the_originals_come_to";
    let Some(program) = peer("sysbench") else {
        return skipped(name, "sysbench is not installed");
    };
    let folder = Scratch::new();
    std::fs::write(folder.file("o.lua"), OPTIONS).expect("a script");
    for words in [
        &["prepare"][..],
        &["prepare", "--on-off", "--a-dash=q", "--off=on", "--number=", "--word=", "--list=a,b"],
        &["prepare", "--on_off=off", "--number", "--whole", "--word", "--list="],
        &["help"],
        &["run", "--events=2"],
    ] {
        let words = [&["./o.lua"], words].concat();
        let ours = ProcessOutput::capture(offline_command(&folder).args(&words));
        let theirs =
            ProcessOutput::capture(Command::new(&program).current_dir(folder.path()).args(&words));
        assert_eq!((ours.code, theirs.code), (0, 0), "{words:?}\n{ours}");
        let relevant_lines = |output: &ProcessOutput| {
            if words.contains(&"help") {
                output.stdout.split_once('\n').map(|(_, text)| vec![text.to_owned()])
            } else {
                Some(printed_lines(output))
            }
        };
        assert_eq!(relevant_lines(&ours), relevant_lines(&theirs), "{words:?}");
    }
}

#[test]
fn a_script_refuses_values_of_its_options() {
    let name = "a_script_refuses_values_of_its_options";
    let Some(program) = peer("sysbench") else {
        return skipped(name, "sysbench is not installed");
    };
    let folder = Scratch::new();
    let script = "sysbench.cmdline.options = {\n\
                  n = {'x', '1', sysbench.cmdline.ARG_STRING, function(n, v) return false end}}\n\
                  function event() return true end";
    std::fs::write(folder.file("v.lua"), script).expect("a script");
    let words = ["--n=bad", "./v.lua", "run"];
    let ours = ProcessOutput::capture(offline_command(&folder).args(words));
    let theirs =
        ProcessOutput::capture(Command::new(&program).current_dir(folder.path()).args(words));
    assert_eq!((ours.code, theirs.code), (1, 1), "{ours}");
    assert_eq!(ours.stderr, theirs.stderr);
}

#[test]
fn databases_answer_scripts_as_in_the_original() {
    let name = "databases_answer_scripts_as_in_the_original";
    let server = server_or_skip!(MariaDb, name);
    let Some(program) = peer("sysbench") else {
        return skipped(name, "sysbench is not installed");
    };
    let folder = Scratch::new();
    std::fs::write(folder.file("sql.lua"), SQL).expect("a script");
    let socket = format!("--mysql-socket={}", server.socket.display());
    let options = ["--events=1", "--time=0", "--rand-seed=7", "./sql.lua"];
    let run_whole = |run: &dyn Fn(&str) -> ProcessOutput| {
        assert_eq!(run("prepare").code, 0);
        let output = run("run");
        assert_eq!((output.code, run("cleanup").code), (0, 0), "{output}");
        output
    };
    let ours = run_whole(&|what| {
        let connection = [socket.as_str(), "--mysql-user=root"];
        ProcessOutput::capture(command(folder.path(), &connection).args(options).arg(what))
    });
    let theirs = run_whole(&|what| {
        let mut original = Command::new(&program);
        original.current_dir(folder.path()).args([&socket, "--mysql-user=root"]);
        ProcessOutput::capture(original.args(options).arg(what))
    });
    assert_eq!(printed_lines(&ours), printed_lines(&theirs), "{ours}");
    assert!(printed_lines(&ours).len() > 30, "{ours}");
    let ignored_errors = |output: &ProcessOutput| number(output, "ignored errors:");
    assert!((ignored_errors(&ours) - ignored_errors(&theirs)).abs() < 0.5, "{ours}");
    assert!((ignored_errors(&ours) - 3.0).abs() < 0.5, "{ours}");
}

const COUNTS: &str = r#"
sysbench.cmdline.options = { again = { "Reconnect in each event", false } }
function thread_init()
   con = sysbench.sql.driver():connect()
end
function event()
   con:query("SELECT 1")
   if sysbench.opt.again then con:reconnect() end
   pcall(con.query, con, "SELECT none")
end
function thread_done()
   con:query("SELECT 2")
   con:query("SET @a = 3")
   con:disconnect()
end
"#;

/// Statements of `thread_done`, sessions that a script opens again, errors that it catches, and calls without a server.
#[test]
fn scripts_are_counted_as_in_the_original() {
    let name = "scripts_are_counted_as_in_the_original";
    let server = server_or_skip!(MariaDb, name);
    let Some(program) = peer("sysbench") else {
        return skipped(name, "sysbench is not installed");
    };
    let folder = Scratch::new();
    std::fs::write(folder.file("counts.lua"), COUNTS).expect("a script");
    let socket = format!("--mysql-socket={}", server.socket.display());
    let nowhere = ["--mysql-dry-run", "--mysql-host=nosuchhost.invalid"];
    let read_counts = |output: &ProcessOutput| {
        assert_eq!(output.code, 0, "{output}");
        ["read:", "other:", "ignored errors:", "reconnects:"].map(|label| number(output, label))
    };
    for (connection, expected) in [
        (&[socket.as_str(), "--mysql-user=root"][..], [6.0, 2.0, 4.0]),
        (&nowhere, [0.0, 12.0, 0.0]),
    ] {
        let words = ["--threads=2", "--events=4", "--time=0", "./counts.lua", "run"];
        let ours = ProcessOutput::capture(command(folder.path(), connection).args(words));
        let mut original = Command::new(&program);
        let theirs = ProcessOutput::capture(
            original.current_dir(folder.path()).args(connection).args(words),
        );
        let [read, other, ignored] = expected;
        assert_eq!(read_counts(&ours), [read, other, ignored, 0.0], "{ours}");
        assert_eq!(read_counts(&ours), read_counts(&theirs), "{theirs}");
        // Debian's build of the original crashes when it reconnects.
        let again =
            ProcessOutput::capture(command(folder.path(), connection).args(words).arg("--again"));
        assert_eq!(read_counts(&again), [read, other, ignored, 4.0], "{again}");
    }
}

#[test]
fn a_script_may_catch_that_a_host_is_unknown() {
    let name = "a_script_may_catch_that_a_host_is_unknown";
    let Some(program) = peer("sysbench") else {
        return skipped(name, "sysbench is not installed");
    };
    let folder = Scratch::new();
    let script = "function prepare()\n\
                  local driver = sysbench.sql.driver()\n\
                  local ok, problem = pcall(driver.connect, driver)\n\
                  print('say', ok, problem:match('connection creation failed'))\n\
                  end";
    std::fs::write(folder.file("c.lua"), script).expect("a script");
    for host in ["--mysql-host", "--db-driver=pgsql --pgsql-host"] {
        let host = format!("{host}=nosuchhost.invalid");
        let words: Vec<&str> = host.split(' ').chain(["./c.lua", "prepare"]).collect();
        let ours = ProcessOutput::capture(offline_command(&folder).args(&words));
        let theirs =
            ProcessOutput::capture(Command::new(&program).current_dir(folder.path()).args(&words));
        assert_eq!((ours.code, theirs.code), (0, 0), "{ours}\n{theirs}");
        assert_eq!(printed_lines(&ours), ["say\tfalse\tconnection creation failed"], "{ours}");
        assert_eq!(printed_lines(&ours), printed_lines(&theirs), "{theirs}");
    }
}

/// Number and types of the values that each function returns, or that it fails.
fn compare_shapes(name: &str, connection: &[&str]) {
    let Some(program) = peer("sysbench") else {
        return skipped(name, "sysbench is not installed");
    };
    let folder = Scratch::new();
    std::fs::write(folder.file("shapes.lua"), SHAPES).expect("a script");
    let words = ["./shapes.lua", "prepare"];
    let ours = ProcessOutput::capture(command(folder.path(), connection).args(words));
    let mut original = Command::new(program);
    let theirs =
        ProcessOutput::capture(original.current_dir(folder.path()).args(connection).args(words));
    assert_eq!((ours.code, theirs.code), (0, 0), "{ours}\n{theirs}");
    assert_eq!(printed_lines(&ours), printed_lines(&theirs), "{ours}");
    assert!(printed_lines(&ours).len() > 90, "{ours}");
    for line in ["say db_query update: ok 0", "say 0.5: silent", "say con:query update: ok 1 null"]
    {
        assert!(printed_lines(&ours).iter().any(|own| own == line), "{ours}");
    }
}

#[test]
fn functions_return_on_mariadb_what_the_originals_return() {
    let name = "functions_return_on_mariadb_what_the_originals_return";
    let server = server_or_skip!(MariaDb, name);
    let socket = format!("--mysql-socket={}", server.socket.display());
    compare_shapes(name, &[&socket, "--mysql-user=root"]);
}

#[test]
fn functions_return_on_postgres_what_the_originals_return() {
    let name = "functions_return_on_postgres_what_the_originals_return";
    let server = server_or_skip!(Postgres, name);
    compare_shapes(name, &postgres_options(&server).each_ref().map(String::as_str));
}

/// Says what the server has got of values in a text, in each mode, and of bytes that are not UTF-8.
fn quoting(select: &str, modes: &[&str], latin1: &str, bytes: &str) -> String {
    let modes: Vec<String> = modes.iter().map(|mode| format!("{mode:?}")).collect();
    format!(
        r#"
function event()
   local types = sysbench.sql.type
   local con = sysbench.sql.driver():connect()
   local statement = con:prepare("{select}")
   local text, number = statement:bind_create(types.VARCHAR), statement:bind_create(types.BIGINT)
   statement:bind_param(text, number)
   number:set(18446744073709551615ULL)
   for _, mode in ipairs({{ {} }}) do
      con:query(mode)
      for _, value in ipairs({{ "\\", "'", "\"", "\\'", "a\nb", sysbench.opt.zero and "\0x" or nil }}) do
         text:set(value)
         local row = statement:execute():fetch_row()
         print("say", row[1]:lower(), row[2])
      end
   end
   con:query("{latin1}")
   print("say", (con:query_row("{bytes}"):lower()))
end
sysbench.cmdline.options = {{ zero = {{ "A zero byte", false }} }}
"#,
        modes.join(", ")
    )
}

/// The values, as it says them; not every server takes the last one.
const QUOTED: [&str; 6] = ["5c", "27", "22", "5c27", "610a62", "0078"];

fn in_each_mode(modes: &[&str], values: &[&str], bytes: &str) -> Vec<String> {
    let line = |hex: &&str| format!("say\t{hex}\t18446744073709551615");
    let mut lines: Vec<String> = modes.iter().flat_map(|_| values.iter().map(line)).collect();
    lines.push(format!("say\t{bytes}"));
    lines
}

fn quoted(folder: &Scratch, connection: &[&str]) -> Vec<String> {
    let run = ["--events=1", "--time=0", "--db-ps-mode=disable", "./quoting.lua", "run"];
    let output = ProcessOutput::capture(command(folder.path(), connection).args(run));
    assert_eq!(output.code, 0, "{output}");
    printed_lines(&output)
}

#[test]
fn values_in_a_text_arrive_at_mariadb_in_each_mode() {
    let name = "values_in_a_text_arrive_at_mariadb_in_each_mode";
    let server = server_or_skip!(MariaDb, name);
    let folder = Scratch::new();
    // The first one leaves the mode as it was after the log-in.
    let modes = ["DO 1", "SET sql_mode = ''", "SET sql_mode = 'NO_BACKSLASH_ESCAPES'"];
    let script = quoting("SELECT HEX(?), ?", &modes, "SET NAMES latin1", "SELECT HEX('\\228')");
    std::fs::write(folder.file("quoting.lua"), script).expect("a script");
    let socket = format!("--mysql-socket={}", server.socket.display());
    let expected = in_each_mode(&modes, &QUOTED, "e4");
    for global in ["", "NO_BACKSLASH_ESCAPES"] {
        server.sql(&format!("SET GLOBAL sql_mode = '{global}'")).expect("a mode");
        let connection = [socket.as_str(), "--mysql-user=root", "--zero"];
        assert_eq!(quoted(&folder, &connection), expected, "{global}");
    }
}

#[test]
fn values_in_a_text_arrive_at_postgres_in_each_mode() {
    let name = "values_in_a_text_arrive_at_postgres_in_each_mode";
    let server = server_or_skip!(Postgres, name);
    let folder = Scratch::new();
    let modes = ["SET standard_conforming_strings = on", "SET standard_conforming_strings = off"];
    let script = quoting(
        "SELECT encode(convert_to(?, 'UTF8'), 'hex'), ?::numeric",
        &modes,
        "SET client_encoding = latin1",
        "SELECT encode(convert_to('\\228', 'UTF8'), 'hex')",
    );
    std::fs::write(folder.file("quoting.lua"), script).expect("a script");
    let connection = postgres_options(&server);
    let connection = connection.each_ref().map(String::as_str);
    assert_eq!(quoted(&folder, &connection), in_each_mode(&modes, &QUOTED[..5], "c3a4"));
}

/// Prepares a new text in each event, and closes it.
const CLOSES: &str = r#"
function thread_init() con = sysbench.sql.driver():connect() n = 0 end
function event()
   n = n + 1
   local statement = con:prepare("SELECT " .. n .. " + ?")
   local one = statement:bind_create(sysbench.sql.type.INT)
   statement:bind_param(one)
   one:set(1)
   assert(statement:execute():fetch_row()[1] == tostring(n + 1))
   statement:close()
end
"#;

#[test]
fn a_script_that_closes_its_statements_does_not_run_into_the_servers_limit() {
    let name = "a_script_that_closes_its_statements_does_not_run_into_the_servers_limit";
    let server = server_or_skip!(MariaDb, name);
    server.sql("SET GLOBAL max_prepared_stmt_count = 100").expect("a limit");
    let folder = Scratch::new();
    std::fs::write(folder.file("closes.lua"), CLOSES).expect("a script");
    let socket = format!("--mysql-socket={}", server.socket.display());
    let connection = [socket.as_str(), "--mysql-user=root"];
    let run = ["--events=500", "--time=0", "./closes.lua", "run"];
    let output = ProcessOutput::capture(command(folder.path(), &connection).args(run));
    assert_eq!(output.code, 0, "{output}");
    assert!((number(&output, "read:") - 500.0).abs() < 0.5, "{output}");
}

#[test]
fn without_a_command_only_the_top_level_is_executed() {
    let folder = Scratch::new();
    let script = "print('top', sysbench.cmdline.command)\nfunction event() print('event') end";
    std::fs::write(folder.file("t.lua"), script).expect("a script");
    let output = ProcessOutput::capture(offline_command(&folder).args(["--time=1", "./t.lua"]));
    assert_eq!(output.code, 0, "{output}");
    assert!(output.stdout.ends_with("\ntop\tnil\n"), "{output}");
    if let Some(program) = peer("sysbench") {
        let theirs =
            ProcessOutput::capture(Command::new(program).current_dir(folder.path()).arg("./t.lua"));
        assert!(theirs.stdout.ends_with("\ntop\tnil\n"), "{theirs}");
    }
}

#[test]
fn a_scripts_own_report_comes_after_the_histogram_as_in_the_original() {
    let folder = Scratch::new();
    let script = "function event() end\n\
                  function sysbench.hooks.report_cumulative() print('own report') end";
    std::fs::write(folder.file("t.lua"), script).expect("a script");
    let words = ["--events=3", "--time=0", "--histogram", "./t.lua", "run"];
    let expected = ["Latency histogram (values are in milliseconds)", "own report"];
    let report_lines = |output: &ProcessOutput| {
        let is_shown = |line: &&str| expected.contains(line) || line.starts_with("Latency (ms)");
        output.stdout.lines().filter(is_shown).map(str::to_owned).collect::<Vec<String>>()
    };
    let output = ProcessOutput::capture(offline_command(&folder).args(words));
    assert_eq!(output.code, 0, "{output}");
    assert_eq!(report_lines(&output), expected, "{output}");
    if let Some(program) = peer("sysbench") {
        let theirs =
            ProcessOutput::capture(Command::new(program).current_dir(folder.path()).args(words));
        assert_eq!(report_lines(&theirs), expected, "{theirs}");
    }
}

#[test]
fn a_script_on_standard_input_is_executed_by_each_worker() {
    let folder = Scratch::new();
    let script = "function thread_init() print('worker', sysbench.tid) end\n\
                  function check() error('no') end\n\
                  function event() end\n\
                  sysbench.cmdline.commands = {check = {check}}\n";
    std::fs::write(folder.file("t.lua"), script).expect("a script");
    for name in ["-", "/dev/stdin"] {
        let run_on_stdin = |words: &[&str]| {
            let mut run = offline_command(&folder);
            run.stdin(File::open(folder.file("t.lua")).expect("a script"));
            ProcessOutput::capture(run.args(words))
        };
        let output = run_on_stdin(&["--threads=2", "--time=0", "--events=9", name, "run"]);
        assert_eq!(output.code, 0, "{output}");
        for worker in ["worker\t0\n", "worker\t1\n"] {
            assert!(output.stdout.contains(worker), "{output}");
        }
        let swept = run_on_stdin(&["--threads=1,2", "--time=0", "--events=9", name, "run"]);
        assert_eq!(swept.stdout.matches("worker\t0\n").count(), 2, "{swept}");
        let failed = run_on_stdin(&[name, "check"]);
        assert_eq!(failed.code, 1, "{failed}");
        assert!(failed.to_string().contains("stdin:2: no"), "{failed}");
        let unknown = run_on_stdin(&[name, "cleanup"]);
        assert!(unknown.stderr.contains("'stdin' test does not implement"), "{unknown}");
    }
    // Without a name of a test, as in the original, only the top level is executed.
    std::fs::write(folder.file("p.lua"), "print(6 * 7)").expect("a script");
    let mut unnamed = offline_command(&folder);
    unnamed.stdin(File::open(folder.file("p.lua")).expect("a script"));
    let output = ProcessOutput::capture(&mut unnamed);
    assert_eq!(output.code, 0, "{output}");
    assert!(output.stdout.ends_with("\n\n42\n"), "{output}");
}

#[test]
fn a_restart_of_the_scripts_own_is_no_error_as_in_the_original() {
    let folder = Scratch::new();
    let script = "local n = 0\n\
                  function thread_init() con = sysbench.sql.driver():connect() end\n\
                  function event()\n  n = n + 1\n  con:query('SELECT 1')\n\
                  if n % 3 == 0 then error({errcode = sysbench.error.RESTART_EVENT}) end\nend";
    std::fs::write(folder.file("t.lua"), script).expect("a script");
    let connection = ["--db-driver=sqlite", "--sqlite-db=t.db"];
    let words = ["--events=6", "--time=0", "--json=t.json", "./t.lua", "run"];
    let output = ProcessOutput::capture(command(folder.path(), &connection).args(words));
    assert_eq!(output.code, 0, "{output}");
    assert!(number(&output, "ignored errors:") < 0.5, "{output}");
    let json = std::fs::read_to_string(folder.file("t.json")).expect("the result");
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert!(json["errors"].as_array().is_none_or(Vec::is_empty), "{json}");
    assert_eq!(json["counts"]["committed"], 6);
    assert_eq!(json["counts"]["retries"], 0);
}

#[test]
fn a_script_that_holds_up_its_loop_is_a_note_unless_each_worker_has_one() {
    let folder = Scratch::new();
    std::fs::write(folder.file("t.lua"), "function event() os.execute('sleep 1') end")
        .expect("a script");
    for (loops, is_said) in [("--loops=1", true), ("--loops=2", false)] {
        let words = ["--threads=2", "--events=2", "--time=0", "--json=t.json", loops];
        let output =
            ProcessOutput::capture(offline_command(&folder).args(words).args(["./t.lua", "run"]));
        assert_eq!(output.code, 0, "{output}");
        let json = std::fs::read_to_string(folder.file("t.json")).expect("the result");
        for said in [&output.stderr, &json] {
            assert_eq!(said.contains("dyno sysbench --loops=2"), is_said, "{said}\n{output}");
        }
    }
}

#[test]
fn lines_of_workers_on_several_threads_stay_whole() {
    let folder = Scratch::new();
    let script = "function event() print('this', nil, 1, 'that') end";
    std::fs::write(folder.file("t.lua"), script).expect("a script");
    let words = ["--threads=2", "--loops=2", "--events=20000", "--time=0", "./t.lua", "run"];
    let output = ProcessOutput::capture(offline_command(&folder).args(words));
    assert_eq!(output.code, 0, "{}", output.stderr);
    let whole_lines = output.stdout.lines().filter(|line| *line == "this\tnil\t1\tthat").count();
    assert_eq!(whole_lines, 20_000);
}

#[test]
fn what_a_script_prints_is_not_in_the_json_on_stdout() {
    let folder = Scratch::new();
    let script = "print('printed', nil, 1)\nio.write('written\\n')\nio.stdout:write('direct\\n')\n\
                  function event() end";
    std::fs::write(folder.file("t.lua"), script).expect("a script");
    let words = ["--events=2", "--time=0", "--json=-", "./t.lua", "run"];
    let output = ProcessOutput::capture(offline_command(&folder).args(words));
    assert_eq!(output.code, 0, "{output}");
    let json: serde_json::Value = serde_json::from_str(&output.stdout).expect("nothing but JSON");
    assert_eq!(json["counts"]["committed"], 2);
    for line in ["printed\tnil\t1", "written", "direct"] {
        assert!(output.stderr.lines().any(|said| said == line), "{line}: {output}");
    }
}

#[test]
fn a_script_is_given_old_names_and_its_password_which_goes_nowhere_else() {
    let folder = Scratch::new();
    let script = "local opt = sysbench.opt\n\
                  assert(opt.mysql_password == 'h1dd3n' and opt.pgsql_password == '')\n\
                  assert(opt.num_threads == 3 and opt.max_time == 7 and opt.max_requests == 5)\n\
                  function event() error('broken') end";
    std::fs::write(folder.file("t.lua"), script).expect("a script");
    let options = ["--mysql-password=h1dd3n", "--threads=3", "--time=7", "--events=5", "--debug"];
    let output = ProcessOutput::capture(offline_command(&folder).args(options).args([
        "--json=t.json",
        "./t.lua",
        "run",
    ]));
    assert_eq!(output.code, 1, "{output}");
    assert!(output.to_string().contains("broken"), "{output}");
    let json = std::fs::read_to_string(folder.file("t.json")).expect("the result");
    for said in [output.to_string(), json] {
        assert!(!said.contains("h1dd3n"), "{said}");
    }
}

/// The original's thread for reports has the number after those of the workers.
#[test]
fn a_hook_of_reports_knows_its_number_and_an_empty_queue() {
    let folder = Scratch::new();
    let script = "local ffi = require('ffi')\nffi.cdef('int usleep(unsigned int);')\n\
                  function event() ffi.C.usleep(1000) end\n\
                  sysbench.hooks.report_intermediate = function(stat)\n\
                  print('say', sysbench.tid, stat.queue_length, stat.concurrency)\nend";
    std::fs::write(folder.file("t.lua"), script).expect("a script");
    let words = ["--threads=3", "--time=2", "--report-interval=1", "./t.lua", "run"];
    let ours = ProcessOutput::capture(offline_command(&folder).args(words));
    assert_eq!(printed_lines(&ours).first().map(String::as_str), Some("say\t3\t0\t0"), "{ours}");
    if let Some(program) = peer("sysbench") {
        let theirs =
            ProcessOutput::capture(Command::new(program).current_dir(folder.path()).args(words));
        assert_eq!(printed_lines(&ours).first(), printed_lines(&theirs).first(), "{theirs}");
    }
}

/// A script without a database, which prints its own reports.
const REPORTS: &str = r#"
local ffi = require("ffi")
ffi.cdef("int usleep(unsigned int);")
function event() ffi.C.usleep(1000) end
"#;

/// The output after the start of a run: labels, their order and lines. The original writes a separate line if lines
/// without a time come twice, and does not complain of a rate that a busy machine has missed.
fn below_start(output: &ProcessOutput) -> Vec<String> {
    let (_, text) = output.stdout.split_once("Threads started!").expect("a start");
    let shapes = text.lines().map(|line| shape(line).trim().to_owned());
    let is_ignored = |line: &String| line.starts_with("(last message") || is_missed_rate(line);
    shapes.filter(|line| !line.is_empty() && !is_ignored(line)).collect()
}

fn is_missed_rate(line: &str) -> bool {
    line.starts_with("FATAL: Only") && line.contains("--rate=")
}

#[test]
fn reports_have_the_originals_shape_without_a_database_and_by_hooks() {
    let name = "reports_have_the_originals_shape_without_a_database_and_by_hooks";
    let Some(program) = peer("sysbench") else {
        return skipped(name, "sysbench is not installed");
    };
    let folder = Scratch::new();
    let hooks = |name: &str| {
        format!(
            "{REPORTS}sysbench.hooks.report_intermediate = sysbench.report_{name}\n\
             sysbench.hooks.report_cumulative = sysbench.report_{name}\n"
        )
    };
    // One interval each, even if the machine halts for seconds; all at once, as they sleep nearly all the time.
    let compare = |script: &str, rate: &str| {
        let words = ["--threads=2", "--time=12", "--report-interval=8", rate, script, "run"];
        let mut original = Command::new(&program);
        original.current_dir(folder.path()).args(words);
        let original = std::thread::spawn(move || ProcessOutput::capture(&mut original));
        let ours = ProcessOutput::capture(offline_command(&folder).args(words));
        let theirs = original.join().expect("a run");
        let is_missed = ours.stdout.lines().any(is_missed_rate);
        assert_eq!((ours.code, theirs.code), (i32::from(is_missed), 0), "{ours}");
        let (ours_below, theirs_below) = (below_start(&ours), below_start(&theirs));
        assert_eq!(ours_below, theirs_below, "{ours}\n{theirs}");
    };
    std::thread::scope(|scope| {
        let scripts = [REPORTS.to_owned(), hooks("json"), hooks("csv"), hooks("default")];
        for (number, text) in scripts.iter().enumerate() {
            let script = format!("./reports{number}.lua");
            std::fs::write(folder.file(&script), text).expect("a script");
            for rate in ["--rate=0", "--rate=100"] {
                let (script, compare) = (script.clone(), &compare);
                scope.spawn(move || compare(&script, rate));
            }
        }
    });
}
