//! Scripts that fail, alongside the original.

use super::lua::postgres_options;
use super::support::{command, offline_command};
use dyno_testkit::{MariaDb, Postgres, ProcessOutput, Scratch, peer, server_or_skip, skipped};
use std::process::Command;

/// The text after `FATAL: ` on stdout.
fn parse_fatal_lines(output: &ProcessOutput) -> Vec<String> {
    let lines = output.stdout.lines().filter_map(|line| line.strip_prefix("FATAL: "));
    lines.map(str::to_owned).collect()
}

#[test]
fn a_statement_that_can_not_be_prepared_is_fatal_in_the_originals_words() {
    let name = "a_statement_that_can_not_be_prepared_is_fatal_in_the_originals_words";
    let server = server_or_skip!(MariaDb, name);
    let Some(program) = peer("sysbench") else {
        return skipped(name, "sysbench is not installed");
    };
    let folder = Scratch::new();
    let script = "function event()\n  local con = sysbench.sql.driver():connect()\n\
                  con:prepare('SELECT * FROM missing WHERE id = ?')\nend";
    std::fs::write(folder.file("t.lua"), script).expect("a script");
    let socket = format!("--mysql-socket={}", server.socket.display());
    let connection = [socket.as_str(), "--mysql-user=root"];
    let words = ["--events=1", "--time=9", "./t.lua", "run"];
    let ours = ProcessOutput::capture(command(folder.path(), &connection).args(words));
    let mut original = Command::new(program);
    let theirs =
        ProcessOutput::capture(original.current_dir(folder.path()).args(connection).args(words));
    assert_eq!((ours.code, theirs.code), (1, 1), "{ours}");
    assert_eq!(parse_fatal_lines(&ours), parse_fatal_lines(&theirs), "{theirs}");
    assert_eq!(parse_fatal_lines(&ours)[0], "mysql_stmt_prepare() failed", "{ours}");
}

#[test]
fn a_statement_that_postgres_can_not_prepare_is_fatal_in_the_originals_words() {
    let name = "a_statement_that_postgres_can_not_prepare_is_fatal_in_the_originals_words";
    let server = server_or_skip!(Postgres, name);
    let folder = Scratch::new();
    let connection = postgres_options(&server);
    let connection = connection.each_ref().map(String::as_str);
    let words = ["--events=1", "--time=9", "./t.lua", "run"];
    let run_ours = |script: &str| {
        std::fs::write(folder.file("t.lua"), script).expect("a script");
        ProcessOutput::capture(command(folder.path(), &connection).args(words))
    };
    let expected_lines = |line: u32| {
        [
            "PQprepare() failed: ERROR:  relation \"missing\" does not exist".to_owned(),
            format!("`thread_run' function failed: ./t.lua:{line}: SQL API error"),
        ]
    };
    // The original continues after this one, and crashes.
    let bound = run_ours(
        "function event()\n  local con = sysbench.sql.driver():connect()\n\
         local statement = con:prepare('SELECT * FROM missing WHERE id = ?')\n\
         statement:bind_param(statement:bind_create(sysbench.sql.type.INT))\nend",
    );
    assert_eq!(
        (bound.code, &parse_fatal_lines(&bound)[..]),
        (1, &expected_lines(4)[..]),
        "{bound}"
    );
    let plain = run_ours(
        "function event()\n  local con = sysbench.sql.driver():connect()\n\
         con:prepare('SELECT * FROM missing')\nend",
    );
    assert_eq!(
        (plain.code, &parse_fatal_lines(&plain)[..]),
        (1, &expected_lines(3)[..]),
        "{plain}"
    );
    let Some(program) = peer("sysbench") else {
        return skipped(name, "sysbench is not installed");
    };
    let mut original = Command::new(program);
    let theirs =
        ProcessOutput::capture(original.current_dir(folder.path()).args(connection).args(words));
    assert_eq!(
        (theirs.code, parse_fatal_lines(&theirs)),
        (1, parse_fatal_lines(&plain)),
        "{theirs}"
    );
}

#[test]
fn a_broken_script_is_fatal_on_stdout_as_in_the_original() {
    let folder = Scratch::new();
    for (script, command, lines) in [
        ("function event( x y", "run", &["./t.lua:1: ')' expected near 'y'"][..]),
        ("error('top')", "run", &["./t.lua:1: top"]),
        ("x = 1", "run", &["cannot find the event() function in t.lua"]),
        (
            "function event() error('own') end",
            "run",
            &["`thread_run' function failed: ./t.lua:1: own"],
        ),
        (
            "function prepare() error('own') end",
            "prepare",
            &["`prepare' function failed: ./t.lua:1: own"],
        ),
        (
            "sysbench.cmdline.commands = { prepare = { function() error('own') end } }",
            "prepare",
            &["`sysbench.cmdline.call_command' function failed: ./t.lua:1: own"],
        ),
        // What is wrong with the words goes to stderr.
        ("x = 1", "prepare", &[]),
        ("x = 1", "nonsense", &[]),
    ] {
        std::fs::write(folder.file("t.lua"), script).expect("a script");
        let words = ["--events=1", "--time=9", "./t.lua", command];
        let ours = ProcessOutput::capture(offline_command(&folder).args(words));
        assert_eq!(ours.code, 1, "{ours}");
        assert_eq!(parse_fatal_lines(&ours), lines, "{ours}");
        if let Some(program) = peer("sysbench") {
            let theirs = ProcessOutput::capture(
                Command::new(program).current_dir(folder.path()).args(words),
            );
            assert_eq!(parse_fatal_lines(&theirs), parse_fatal_lines(&ours), "{theirs}");
            assert!(ours.stderr.starts_with(&theirs.stderr), "{ours}");
        }
    }
}

#[test]
fn what_runs_after_a_failure_is_what_runs_in_the_original() {
    const NAME: &str = "what_runs_after_a_failure_is_what_runs_in_the_original";
    let folder = Scratch::new();
    let hooks =
        "function thread_done() print('thread_done') end\nfunction done() print('done') end\n";
    let failing = "function thread_init() error('own') end\nfunction event() end\n";
    let unopened =
        "function thread_init()\nsysbench.sql.driver():connect() end\nfunction event() end\n";
    let later = "function event() error('own') end\n";
    for (script, printed, fatal_line) in [
        (failing, &[][..], "`thread_init' function failed: ./t.lua:1: own"),
        (unopened, &[], "`thread_init' function failed: ./t.lua:2: connection creation failed"),
        (later, &["done"], "`thread_run' function failed: ./t.lua:1: own"),
        ("function event() end\n", &["thread_done", "done"], ""),
    ] {
        std::fs::write(folder.file("t.lua"), script.to_owned() + hooks).expect("a script");
        let words = ["--mysql-socket=/missing", "--events=1", "--time=9", "./t.lua", "run"];
        let run_script = |program: &mut Command| {
            let output = ProcessOutput::capture(program.current_dir(folder.path()).args(words));
            let is_hook = |line: &&str| line.ends_with("done");
            let printed: Vec<_> =
                output.stdout.lines().filter(is_hook).map(str::to_owned).collect();
            (printed, parse_fatal_lines(&output), output.to_string())
        };
        let (hooks, lines, all) = run_script(&mut offline_command(&folder));
        assert_eq!(hooks, printed, "{all}");
        assert!(fatal_line.is_empty() || lines.iter().any(|line| line == fatal_line), "{all}");
        match peer("sysbench") {
            Some(program) => {
                let (their_hooks, theirs, all) = run_script(&mut Command::new(program));
                assert_eq!((hooks, lines), (their_hooks, theirs), "{all}");
            }
            None => skipped(NAME, "sysbench is not installed"),
        }
    }
}

#[test]
fn an_error_of_thread_done_takes_no_report_away() {
    let folder = Scratch::new();
    let script = "function event() end\nfunction thread_done() error('own') end\n\
                  function done() print('done') end";
    std::fs::write(folder.file("t.lua"), script).expect("a script");
    let words = ["--events=9", "--threads=2", "--time=9", "./t.lua", "run"];
    let ours = ProcessOutput::capture(offline_command(&folder).args(words));
    let fatal_lines = ["`thread_done' function failed: ./t.lua:2: own"];
    assert_eq!(
        (ours.code, &parse_fatal_lines(&ours)[..]),
        (1, &fatal_lines.map(str::to_owned)[..]),
        "{ours}"
    );
    // One worker's error keeps no other one from its events.
    for line in ["    total number of events:              9", "done"] {
        assert!(ours.stdout.lines().any(|own| own == line), "{ours}");
    }
    assert!(!ours.to_string().contains("INCOMPLETE"), "{ours}");
}

#[test]
fn a_script_that_restarts_fails_or_needs_memory_says_what_the_original_says() {
    let folder = Scratch::new();
    let run_script = |script: &str, words: &[&str]| {
        std::fs::write(folder.file("t.lua"), script).expect("a script");
        ProcessOutput::capture(offline_command(&folder).args(words).args([
            "--events=6",
            "--time=0",
            "./t.lua",
            "run",
        ]))
    };
    let restarts = "local n = 0\n\
                    sysbench.hooks.before_restart_event = function(e) print('anew', e.errcode) end\n\
                    function event()\n  n = n + 1\n\
                    if n % 3 == 0 then error({errcode = sysbench.error.RESTART_EVENT}) end\nend";
    let anew = run_script(restarts, &[]);
    assert_eq!(anew.code, 0, "{anew}");
    // Two of eight attempts, as in the original.
    assert_eq!(anew.stdout.matches("anew\t1").count(), 2, "{anew}");
    let fails = "local con\nfunction thread_init() con = sysbench.sql.driver():connect() end\n\
                 local n = 0\nfunction event()\n  n = n + 1\n  con:query('SELECT 1')\n\
                 if n == 4 then con:query('SELECT * FROM missing') end\nend";
    let failed = run_script(fails, &["--db-driver=sqlite", "--sqlite-db=t.db"]);
    assert_eq!(failed.code, 1, "{failed}");
    let text = failed.to_string();
    assert!(text.contains("FATAL: failed query was: SELECT * FROM missing"), "{text}");
    assert!(text.contains("INCOMPLETE"), "{text}");
    assert!(
        text.contains("    Statements of failed attempts: 1, which are in no count above"),
        "{text}"
    );
    let ignored = text.lines().find(|line| line.contains("ignored errors:")).unwrap_or_default();
    assert_eq!(ignored.split_whitespace().nth(2), Some("0"), "{text}");
    let large =
        "function event() local t = {} while true do t[#t + 1] = ('x'):rep(1000) .. #t end end";
    let short = run_script(large, &["--lua-memory=8M"]);
    assert!(short.to_string().contains("not enough memory"), "{short}");
    assert!(short.to_string().contains("--lua-memory bounds"), "{short}");
}

#[test]
fn a_script_that_fails_has_the_codes_of_its_statement_in_the_json() {
    let folder = Scratch::new();
    let script = "function event()\n\
                  sysbench.sql.driver():connect():query('SELECT * FROM missing')\nend";
    std::fs::write(folder.file("t.lua"), script).expect("a script");
    let connection = ["--db-driver=sqlite", "--sqlite-db=t.db"];
    let words = ["--events=2", "--time=0", "--json=t.json", "./t.lua", "run"];
    let output = ProcessOutput::capture(command(folder.path(), &connection).args(words));
    assert_eq!(output.code, 1, "{output}");
    let json = std::fs::read_to_string(folder.file("t.json")).expect("the result");
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(json["errors"][0]["errno"], 1, "{json}");
}

#[test]
fn a_result_that_can_not_be_written_leaves_the_report() {
    let folder = Scratch::new();
    std::fs::write(folder.file("t.lua"), "function event() end").expect("a script");
    let words = ["--events=9", "--time=9", "--json=/dev/full", "./t.lua", "run"];
    let output = ProcessOutput::capture(offline_command(&folder).args(words));
    assert_eq!(output.code, 1, "{output}");
    assert!(output.stdout.contains("    total number of events:              9\n"), "{output}");
    assert!(output.to_string().contains("/dev/full"), "{output}");
}

#[test]
fn a_loop_of_the_scripts_own_that_ends_with_a_restart_says_what_to_do() {
    let folder = Scratch::new();
    let script = "function event() end\n\
                  function thread_run() error({errcode = sysbench.error.RESTART_EVENT}) end";
    std::fs::write(folder.file("t.lua"), script).expect("a script");
    let output = ProcessOutput::capture(offline_command(&folder).args([
        "--events=2",
        "--time=0",
        "./t.lua",
        "run",
    ]));
    assert_eq!(output.code, 1, "{output}");
    let text = output.to_string();
    assert!(text.contains("FATAL: `thread_run' function failed: thread_run() has ended"), "{text}");
    assert!(text.contains("hint: call event() by pcall()"), "{text}");
}

/// Statements where LuaJIT can't yield, and connections that are lost before and within statements.
const IN_PLACE: &str = r#"
function event()
   local con, other = sysbench.sql.driver():connect(), sysbench.sql.driver():connect()
   other:query("CREATE TABLE IF NOT EXISTS in_place (id INT) ENGINE=InnoDB")
   local function fail() con:query("BEGIN") con:query("INSERT INTO in_place VALUES (1)") con:query("nonsense") end
   print("say", xpcall(fail, function() con:query("ROLLBACK") return "handled" end))
   local numbers = coroutine.wrap(function() for i = 1, 3 do coroutine.yield((con:query_row("SELECT SLEEP(0.01)+" .. i))) end end)
   print("say", numbers(), numbers(), numbers(), coroutine.running())
   print("say", (("a b"):gsub("%w", function(name) return (con:query_row("SELECT '" .. name .. "!'")) end)))
   getmetatable(newproxy(true)).__gc = function() other:query("INSERT INTO in_place VALUES (2)") end
   collectgarbage() collectgarbage()
   print("say", other:query_row("SELECT COUNT(*), MAX(id) FROM in_place"))
   other:query("KILL " .. con:query_row("SELECT CONNECTION_ID()"))
   os.execute("sleep 0.3")
   for _ = 1, 2 do pcall(con.query, con, "SELECT 1") print("say", con.sql_errno) end
   other:query("DROP TABLE in_place")
   return true
end
"#;

#[test]
fn statements_are_executed_and_fail_where_the_originals_do() {
    let name = "statements_are_executed_and_fail_where_the_originals_do";
    let server = server_or_skip!(MariaDb, name);
    let folder = Scratch::new();
    std::fs::write(folder.file("t.lua"), IN_PLACE).expect("a script");
    let socket = format!("--mysql-socket={}", server.socket.display());
    let connection = [socket.as_str(), "--mysql-user=root", "--mysql-db=mysql"];
    let run = |program: &mut Command| {
        let output = ProcessOutput::capture(program.args(["--time=9", "./t.lua", "run"]));
        assert_eq!(output.code, 0, "{output}");
        let lines = output.stdout.lines().filter(|line| line.starts_with("say"));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    let expected = [
        "say\tfalse\thandled",
        "say\t1\t2\t3\tnil",
        "say\ta! b!",
        "say\t1\t2",
        "say\t2006",
        "say\t2006",
    ];
    for io in ["epoll", "uring"] {
        assert_eq!(run(command(folder.path(), &connection).env("DYNO_IO", io)), expected, "{io}");
    }
    match peer("sysbench") {
        Some(program) => {
            let mut original = Command::new(program);
            assert_eq!(run(original.current_dir(folder.path()).args(connection)), expected);
        }
        None => skipped(name, "sysbench is not installed"),
    }
}
