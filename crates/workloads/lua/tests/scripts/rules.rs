//! Actions of scripts as in the original: restart an event, execute files that ask the database, name its objects.

use super::{Bench, SAYS, failure};
use dyno_core::{Cause, DbError, ErrorClass};
use dyno_engine::TrialEnd;
use dyno_facts::{GeneratorSummary, LatencySummary};

#[test]
fn a_script_begins_its_event_anew_without_an_error_of_a_database() {
    let bench = Bench::new(&format!(
        r#"{SAYS}
local tries = 0
function thread_init() con = sysbench.sql.driver():connect() end
function sysbench.hooks.before_restart_event(err) say("restart", err.why) con:query("ROLLBACK") end
function event()
   tries = tries + 1
   con:query("BEGIN")
   -- What is caught is not the reason.
   pcall(con.query, con, "nonsense")
   say(tries)
   if tries < 3 then error({{ errcode = sysbench.error.RESTART_EVENT, why = tries }}) end
   con:query("COMMIT")
end
"#
    ));
    let result = bench.events(1);
    assert_eq!(result.ended, TrialEnd::Events);
    assert_eq!(bench.lines(), ["1", "restart 1", "2", "restart 2", "3"]);
    let counts = result.total.counts();
    // Each attempt has caught an error. As in the original a restart of the script's own is none.
    assert_eq!((counts.committed, counts.retries, result.total.errors.total()), (1, 0, 3));
    let mut errors = result.total.errors.0.iter();
    let has_restart = errors.any(|error| error.message.contains("RESTART_EVENT"));
    assert!(!has_restart, "{:?}", result.total.errors);
}

#[test]
fn a_hook_may_commit_what_an_attempt_has_left_open() {
    let bench = Bench::new(&format!(
        r#"{SAYS}
local tries = 0
function thread_init()
   con = sysbench.sql.driver():connect()
   con:query("CREATE TABLE t (n INT)")
end
function sysbench.hooks.before_restart_event() con:query("COMMIT") end
function event()
   tries = tries + 1
   con:query("BEGIN")
   con:query("INSERT INTO t VALUES (" .. tries .. ")")
   if tries < 3 then error({{ errcode = sysbench.error.RESTART_EVENT }}) end
   con:query("COMMIT")
   say(con:query_row("SELECT count(*), max(n) FROM t"))
end
"#
    ));
    assert_eq!(bench.events(1).ended, TrialEnd::Events);
    assert_eq!(bench.lines(), ["3 3"]);
}

#[test]
fn a_transaction_goes_on_after_an_error_that_is_ignored() {
    let bench = Bench::new(&format!(
        r#"{SAYS}
local tries = 0
function sysbench.hooks.sql_error_ignorable(err) return err.sql_errmsg:match("UNIQUE") ~= nil end
function thread_init()
   con = sysbench.sql.driver():connect()
   con:query("CREATE TABLE t (id INTEGER PRIMARY KEY)")
   con:query("BEGIN")
end
function event()
   tries = tries + 1
   con:query("INSERT INTO t VALUES (" .. tries .. ")")
   if tries < 3 then con:query("INSERT INTO t VALUES (1)") end
end
function thread_done()
   con:query("COMMIT")
   say(tries, con:query_row("SELECT count(*) FROM t"))
end
"#
    ));
    assert_eq!(bench.events(1).ended, TrialEnd::Events);
    assert_eq!(bench.lines(), ["3 3"]);
}

#[test]
fn a_loop_of_the_scripts_own_that_ends_with_a_restart_ends_the_run() {
    let begin = "thread_run() has ended with sysbench.error.RESTART_EVENT, which a loop of the \
                 script's own catches itself";
    let own_restart = run_failing("error({ errcode = sysbench.error.RESTART_EVENT })");
    assert_eq!(own_restart, begin);
    let database_error = run_failing("sysbench.sql.driver():connect():query('nonsense')");
    assert!(database_error.starts_with(&format!("{begin}: ")), "{database_error}");
    assert!(database_error.contains("nonsense"), "{database_error}");
}

/// The error of a run with this `thread_run()`.
fn run_failing(work: &str) -> String {
    let bench = Bench::new(&format!(
        "function sysbench.hooks.sql_error_ignorable() return true end\n\
         function event() end\nfunction thread_run(tid)\n  {work}\nend"
    ));
    failure(&bench.events(2))
}

#[test]
fn files_that_are_executed_may_ask_the_database() {
    let bench = Bench::new(&format!(
        r#"{SAYS}
local folder = sysbench.cmdline.script_path:match(".*/")
local function said(...) return (select(2, pcall(...))) end
function thread_init() con = sysbench.sql.driver():connect() end
function event()
   say(require("asks"), tostring(require("asks") == package.loaded.asks))
   say(dofile(folder .. "asks.lua"))
   package.preload.own = function(name) say("own", name, con:query_row("SELECT 7")) end
   say(tostring(require("own")), tostring(package.loaded.own))
   table.insert(package.loaders, 2, function(name)
      return name == con:query_row("SELECT 'found'") and function(...) return (...) end or "\n\tno " .. name
   end)
   say(require("found"))
   say(said(require, "again"))
   say(said(require, "again"))
   say(said(require, "nowhere"):match("^module 'nowhere' not found:\n\tno field[^\n]*\n\tno nowhere\n\tno file") and "nowhere")
   say(said(function() require("nowhere") end):match("my.lua:%d+: module 'nowhere' not found:"))
   say(said(require, "bad"):match("^error loading module 'bad' from file '.-bad.lua':\n\t.-bad.lua:1: unexpected symbol") and "bad")
   say(said(dofile, folder .. "nothing.lua"):match("^cannot open"))
end
"#
    ));
    let asks = "return con:query_row('SELECT 41 + 1')";
    let again = "local again = require('again') return again";
    for (name, text) in [("asks.lua", asks), ("again.lua", again), ("bad.lua", "x = =")] {
        std::fs::write(bench.folder.file(name), text).expect("a file");
    }
    let result = bench.events(1);
    assert_eq!(result.ended, TrialEnd::Events);
    let lines = bench.lines();
    assert_eq!(lines[..5], ["42 true", "42", "own own 7", "true true", "found"]);
    let looped = "again.lua:1: loop or previous error loading module 'again'";
    assert!(lines[5].ends_with(looped), "{lines:?}");
    assert_eq!(lines[6], "loop or previous error loading module 'again'");
    assert_eq!(lines[7], "nowhere");
    assert!(lines[8].starts_with("my.lua:"), "{lines:?}");
    assert_eq!(lines[9..], ["bad", "cannot open"]);
}

#[test]
fn statements_are_executed_where_lua_can_not_yield() {
    let bench = Bench::new(&format!(
        r#"{SAYS}
ffi.cdef "void qsort(void *, size_t, size_t, int (*)(const int *, const int *));"
function event()
   local con = sysbench.sql.driver():connect()
   con:query("CREATE TABLE t (id INTEGER, n INTEGER)")
   local function add(id) con:query("INSERT INTO t VALUES (" .. id .. ", 0)") end
   local count = con:prepare("SELECT COUNT(*) FROM t")
   -- In a handler, below functions of C, in callbacks of ffi.
   xpcall(function() con:query("BEGIN") add(1) con:query("nonsense") end, function() con:query("ROLLBACK") end)
   say("handler", con:query_row("SELECT COUNT(*) FROM t"))
   local text = ("a b"):gsub("%w", function(name) add(2) return (con:query_row("SELECT '" .. name .. "' || '!'")) end)
   say("gsub", text)
   table.sort({{ 2, 1 }}, function(a, b) usleep(1000) say("sort", count:execute():fetch_row()[1]) return a < b end)
   local numbers = ffi.new("int[2]", 2, 1)
   ffi.C.qsort(numbers, 2, 4, function(a, b) add(3) return a[0] - b[0] end)
   say("qsort", numbers[0], numbers[1], con:query_row("SELECT COUNT(*) FROM t"))
   -- In coroutines of its own.
   local function ids()
      return coroutine.wrap(function()
         local rows = con:query("SELECT DISTINCT id FROM t ORDER BY id")
         for _ = 1, rows.nrows do coroutine.yield(rows:fetch_row()[1]) end
         local other = sysbench.sql.driver():connect()
         local one = other:prepare("SELECT ?")
         local value = one:bind_create(sysbench.sql.type.INT)
         one:bind_param(value)
         value:set(41)
         coroutine.yield(one:execute():fetch_row()[1])
         other:disconnect()
      end)
   end
   for id in ids() do say("id", id) end
   local ok, problem = pcall(coroutine.wrap(function() con:query("nonsense") end))
   say(tostring(ok), problem:match("my.lua:%d+: SQL error, errno = 1"))
   say(tostring(coroutine.running()), type(coroutine.wrap(coroutine.running)()))
   -- In finalizers.
   local proxy = newproxy(true)
   getmetatable(proxy).__gc = function() add(4) end
   local data = ffi.gc(ffi.new("int[1]"), function() add(5) end)
   proxy, data = nil, nil
   collectgarbage() collectgarbage()
   say("finalizers", con:query_row("SELECT COUNT(*), MAX(id) FROM t"))
end
"#
    ));
    let result = bench.events(1);
    assert_eq!(result.ended, TrialEnd::Events);
    let expected = [
        "handler 0",
        "gsub a! b!",
        "sort 2",
        "qsort 1 2 3",
        "id 2",
        "id 3",
        "id 41",
        "false my.lua:38: SQL error, errno = 1",
        "nil thread",
        "finalizers 5 5",
    ];
    assert_eq!(bench.lines(), expected);
    // One of them was rolled back.
    assert_eq!(result.total.work().writes, 6);
}

#[test]
fn an_error_of_a_finalizer_ends_the_run() {
    for set in ["getmetatable(newproxy(true)).__gc = f", "ffi.gc(ffi.new('int[1]'), f)"] {
        let bench = Bench::new(&format!(
            "local function f() error('bad') end function event() {set} collectgarbage() collectgarbage() end"
        ));
        let text = failure(&bench.events(1));
        assert!(text.contains("my.lua:1: bad"), "{text}");
    }
    // No database is left to ask when the state is closed.
    let bench = Bench::new(
        "function event() con = sysbench.sql.driver():connect() p = newproxy(true) \
         getmetatable(p).__gc = function() con:query('SELECT 1') end end",
    );
    assert_eq!(bench.events(1).ended, TrialEnd::Events);
}

#[test]
fn a_loop_of_the_scripts_own_stops_its_events_itself() {
    let bench = Bench::new(
        "function thread_run() coroutine.wrap(function() ffi.C.sb_event_start(0) ffi.C.sb_event_stop(0) end)() end \
         function event() end",
    );
    let text = failure(&bench.events(1));
    assert!(text.contains("sb_event_stop() must be called by thread_run() itself"), "{text}");
}

#[test]
fn objects_have_the_originals_names_and_numbers_take_truth_values() {
    let bench = Bench::new(&format!(
        r#"{SAYS}
function event()
   local driver = sysbench.sql.driver()
   local con = driver:connect()
   local stmt = con:prepare("SELECT ?, ?")
   local whole = stmt:bind_create(sysbench.sql.type.INT)
   local part = stmt:bind_create(sysbench.sql.type.DOUBLE)
   stmt:bind_param(whole, part)
   say(tostring(driver), tostring(con), tostring(stmt), tostring(whole))
   whole:set(true) part:set(false)
   local row = stmt:execute():fetch_row()
   say(row[1] + 0, row[2] + 0)
end
"#
    ));
    assert_eq!(bench.events(1).ended, TrialEnd::Events);
    assert_eq!(bench.lines(), ["<sql_driver> <sql_connection> <sql_statement> <sql_param>", "1 0"]);
}

#[test]
fn a_failing_statement_is_named_with_its_codes_if_it_is_the_reason() {
    let nonsense = abort_error("con:query('nonsense')");
    assert_eq!((nonsense.statement.as_deref(), nonsense.errno()), (Some("nonsense"), 1));
    assert!(!nonsense.to_string().contains("(error 1)"), "said twice: {nonsense}");
    let insert = "con:query('INSERT INTO t VALUES (1)')";
    let twice = abort_error(&format!(
        "con:query('CREATE TABLE t (id INTEGER PRIMARY KEY)') {insert} {insert}"
    ));
    assert_eq!((twice.class(), twice.sqlstate()), (ErrorClass::Constraint, "23000"));
    assert_eq!(twice.cause(), Cause::Workload, "it ends the run");
    let hook = "function sysbench.hooks.sql_error_ignorable() error('hook') end";
    let hook_error = abort_error(&format!("{hook} con:query('nonsense')"));
    assert_eq!((hook_error.statement.as_deref(), hook_error.errno()), (Some("nonsense"), 1));
    let text = hook_error.to_string();
    let words = "hook; the hook was called for: SQL error, errno = 1";
    assert!(text.contains(words) && text.contains("near \"nonsense\""), "{text}");
    let script_error = abort_error("pcall(con.query, con, 'nonsense') error('mine')");
    assert_eq!(
        (script_error.statement.as_deref(), script_error.errno(), script_error.sqlstate()),
        (None, 0, "00000")
    );
}

/// The error that ends a trial whose event does this work.
fn abort_error(work: &str) -> DbError {
    let bench = Bench::new(&format!(
        "function event()\n  local con = sysbench.sql.driver():connect()\n  {work}\nend"
    ));
    match bench.events(1).ended {
        TrialEnd::Aborted(error) => error,
        other => panic!("{other:?}"),
    }
}

/// The head of a known TPC-C script, and what others take for granted.
#[test]
fn scripts_find_the_declarations_and_globals_of_the_original() {
    let bench = Bench::new(&format!(
        r#"{SAYS}
ffi.cdef("int usleep(int);")
ffi = require("ffi")
ffi.cdef[[void sb_counter_inc(int, sb_counter_type);]]
function event()
   ffi.C.sb_counter_inc(sysbench.tid, ffi.C.SB_CNT_READ)
   local text = ffi.new("char[4]")
   ffi.C.sb_rand_str("ab#", text)
   say(tostring(ffi.string(text, 3):match("^ab%d$") ~= nil), mysql_table_engine, myisam_max_rows)
   local ok, trace = xpcall(function() error("oops") end, debug.traceback)
   say(tostring(ok), trace:match("oops"), trace:match("stack traceback"), tostring(debug.sethook))
   local unique = sb_rand_uniq(1000, 4294967295)
   say(tostring(unique >= 1000), tostring(sb_rnd() < 4294967296))
end
"#
    ));
    assert_eq!(bench.events(1).ended, TrialEnd::Events);
    assert_eq!(
        bench.lines(),
        ["true innodb 1000000", "false oops stack traceback nil", "true true"]
    );
}

#[test]
fn the_top_level_is_executed_once_in_each_state() {
    let text = format!("{SAYS}\nsay('top')\nfunction prepare() say('prepare') end");
    let bench = Bench::new(&text);
    bench.command("prepare").expect("it is prepared");
    assert_eq!(bench.lines(), ["top", "prepare"]);
}

#[test]
fn a_traceback_names_the_files_of_its_functions() {
    let bench = Bench::new("function prepare() sysbench.report_csv({}) end");
    let error = bench.run_command("prepare").expect_err("there are no figures");
    assert!(error.message.starts_with("sysbench/reports.lua:"), "{}", error.message);
    for place in ["sysbench/reports.lua:", "my.lua:1:", "sysbench/prelude.lua:"] {
        assert!(error.trace.contains(place), "{}", error.trace);
    }
}

/// Loops in whose window of a second answers waited this long on average, and the share of it that they computed.
fn generator(loops: u32, wait_s: f64, busy: f64) -> GeneratorSummary {
    let loop_queue = LatencySummary { mean_us: wait_s * 1e6, ..LatencySummary::default() };
    GeneratorSummary {
        loops,
        loops_cpu_s: busy * f64::from(loops),
        loop_queue: Some(loop_queue),
        ..GeneratorSummary::default()
    }
}

#[test]
fn a_function_that_blocks_is_said_where_its_loop_has_other_workers() {
    let bench = Bench::new("function event() os.execute('sleep 1') end");
    let (one, two) = (generator(1, 0.0, 0.0), generator(2, 0.0, 0.0));
    assert_eq!(bench.script.held_up(2, &one, 1.0), None);
    assert_eq!(bench.events(1).ended, TrialEnd::Events);
    let warning = bench.script.held_up(2, &one, 1.0).unwrap_or_default();
    assert!(warning.contains("kept its loop for ") && warning.contains("--loops=2"), "{warning}");
    assert_eq!(bench.script.held_up(2, &two, 1.0), None);
}

#[test]
fn short_pauses_are_said_where_answers_wait_for_loops_that_do_nothing() {
    let bench = Bench::new("function event() end");
    let held_up =
        |workers, wait_s, busy| bench.script.held_up(workers, &generator(2, wait_s, busy), 1.0);
    let warning = held_up(16, 0.36, 0.02).unwrap_or_default();
    assert!(warning.contains("without computing") && warning.contains("--loops=16"), "{warning}");
    assert_eq!(held_up(16, 0.001, 0.02), None);
    assert_eq!(held_up(16, 0.36, 0.9), None, "the loop is busy");
    assert_eq!(held_up(2, 0.36, 0.02), None);
}

#[test]
fn short_pauses_are_said_where_no_database_is_asked() {
    let bench = Bench::new("function event() os.execute('sleep 0.05') end");
    assert_eq!(bench.events(60).ended, TrialEnd::Events);
    let warning = bench.script.held_up(2, &generator(1, 0.0, 0.01), 3.0);
    assert!(warning.is_some_and(|warning| warning.contains("--loops=2")));
}

#[test]
fn two_statements_of_one_text_have_types_of_their_own() {
    let bench = Bench::new(&format!(
        r#"{SAYS}
function thread_init() con = sysbench.sql.driver():connect() end
function event()
   local one, other = con:prepare("SELECT ?"), con:prepare("SELECT ?")
   local whole = one:bind_create(sysbench.sql.type.INT)
   local fraction = other:bind_create(sysbench.sql.type.DOUBLE)
   one:bind_param(whole)
   other:bind_param(fraction)
   whole:set(7.9)
   fraction:set(1.5)
   say(one:execute():fetch_row()[1])
   say(other:execute():fetch_row()[1])
end
"#
    ));
    assert_eq!(bench.events(1).ended, TrialEnd::Events);
    assert_eq!(bench.lines(), ["7", "1.5"]);
}
