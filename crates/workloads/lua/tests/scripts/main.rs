//! Scripts on SQLite, from their files to the result of a trial.

use dyno_core::SECOND;
use dyno_drivers::{Database, TargetUrl};
use dyno_engine::record::{MeasuredInterval, Window};
use dyno_engine::{Control, Observer, TrialEnd, TrialResult, TrialSpec};
use dyno_lua::{
    CommandOutcome, LateError, LuaError, LuaScript, OptionValue, ReportStat, ScriptSettings, begin,
    drive, parallel, side_state,
};
use dyno_sysbench::RandomOptions;
use dyno_testkit::Scratch;

mod rules;
mod statements;

struct Bench {
    folder: Scratch,
    database: Database,
    script: LuaScript,
    settings: ScriptSettings,
}

impl Bench {
    fn new(text: &str) -> Self {
        let folder = Scratch::new();
        std::fs::write(folder.file("my.lua"), text).expect("a script");
        let file = folder.file("db").display().to_string();
        let target: TargetUrl = format!("sqlite:{file}").parse().expect("a target");
        let settings = ScriptSettings {
            driver: "sqlite",
            command: Some("run".to_owned()),
            words: Vec::new(),
            general: Vec::new(),
            given: Vec::new(),
            random: RandomOptions::default(),
            prepares: true,
            seed: 1,
            memory_max: 64 << 20,
            is_dry: false,
            prints_to_stderr: false,
        };
        let script =
            LuaScript::read(&folder.file("my.lua").display().to_string()).expect("a script");
        let database = Database::open(&target).expect("a database");
        Bench { folder, database, script, settings }
    }

    /// Runs a command of the script; returns the message of its error.
    fn command(&self, command: &str) -> Result<(), String> {
        self.run_command(command).map_err(|error| error.message)
    }

    fn run_command(&self, command: &str) -> Result<(), LuaError> {
        let command_name = Some(command.to_owned());
        let settings = ScriptSettings { command: command_name, ..self.settings.clone() };
        match begin(&self.database, &self.script, &settings, false).map_err(|error| error.error)? {
            CommandOutcome::Parallel => {
                parallel(&self.database, &self.script, &settings, 3, command, &|_| {})
            }
            _ => Ok(()),
        }
    }

    /// Runs a trial that must end without a late error.
    fn run(&self, spec: &TrialSpec) -> TrialResult {
        let (result, late_error) = self.try_run(spec);
        assert!(late_error.is_none(), "{late_error:?}");
        result
    }

    fn try_run(&self, spec: &TrialSpec) -> (TrialResult, Option<LateError>) {
        let control = Control::new();
        let (database, script, settings) = (&self.database, &self.script, &self.settings);
        let driven = drive(database, script, settings, spec, &control, &mut Silent);
        driven.expect("a trial that begins")
    }

    fn events(&self, events: u64) -> TrialResult {
        self.run(&TrialSpec { events: Some(events), duration: None, ..TrialSpec::closed(1) })
    }

    /// Lines that a script has written to the file `out` of its folder.
    fn lines(&self) -> Vec<String> {
        let text = std::fs::read_to_string(self.folder.file("out")).expect("lines");
        text.lines().map(str::to_owned).collect()
    }
}

struct Silent;

impl Observer for Silent {
    fn released(&mut self, _window: &Window) {}
    fn interval(&mut self, _interval: &MeasuredInterval) {}
}

/// A script that says what it does in the file `out` of its folder.
const SAYS: &str = r#"
local function say(...)
   local file = io.open(sysbench.cmdline.script_path:match(".*/") .. "out", "a")
   file:write(table.concat({...}, " ") .. "\n")
   file:close()
end
"#;

/// The error that has ended a trial.
fn failure(result: &TrialResult) -> String {
    match &result.ended {
        TrialEnd::Aborted(error) => error.to_string(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn statements_results_and_parameters_go_the_whole_way() {
    let mut bench = Bench::new(&format!(
        r#"{SAYS}
sysbench.cmdline.options = {{ rows = {{"Rows", 3}} }}
function prepare()
   local con = sysbench.sql.driver():connect()
   con:query("CREATE TABLE t (id INTEGER PRIMARY KEY, c TEXT)")
   con:bulk_insert_init("INSERT INTO t VALUES")
   for i = 1, sysbench.opt.rows do con:bulk_insert_next(string.format("(%d, 'c%d')", i, i)) end
   con:bulk_insert_done()
end
function thread_init()
   con = sysbench.sql.driver():connect()
   stmt = con:prepare("UPDATE t SET c = ? WHERE id = ?")
   text = stmt:bind_create(sysbench.sql.type.VARCHAR, 3)
   id = stmt:bind_create(sysbench.sql.type.INT)
   stmt:bind_param(text, id)
end
function event(tid)
   text:set("longer") id:set(2)
   stmt:execute()
   text:set(nil) id:set(3)
   stmt:execute()
   local rs = con:query("SELECT id, c FROM t ORDER BY id")
   say(tid, rs.nrows, rs.nfields)
   for i = 1, rs.nrows do local row = rs:fetch_row() say(row[1], tostring(row[2])) end
   say(con:query_row("SELECT count(*), 'x' FROM t"))
   local none = con:query("BEGIN")
   say(tostring(none), tostring(none == nil), tostring(stmt:execute() == nil), none.nrows, tostring(none:fetch_row()))
   say(tostring(con:query_row("SELECT 1 WHERE 0")))
   con:query("COMMIT")
end
function thread_done() say("done") con:disconnect() end
"#
    ));
    bench.settings.given = vec![("rows".to_owned(), Some("4".to_owned()))];
    bench.command("prepare").expect("a table");
    let result = bench.events(1);
    assert_eq!(result.ended, TrialEnd::Events);
    let none = "<sql_result> true true 0 nil";
    let expected = ["0 4 2", "1 c1", "2 lon", "3 nil", "4 c4", "4 x", none, "nil", "done"];
    assert_eq!(bench.lines(), expected);
    let work = result.total.work();
    assert_eq!((work.reads, work.writes, work.others), (3, 3, 2));
}

#[test]
fn a_result_has_its_size_until_the_next_statement_and_parameters_are_any_number() {
    let bench = Bench::new(&format!(
        r#"{SAYS}
function event()
   local con = sysbench.sql.driver():connect()
   local sum, nothing = con:prepare("SELECT " .. ("? + "):rep(9) .. "?"), con:prepare("SELECT 1")
   local params = {{}}
   for i = 1, 10 do params[i] = sum:bind_create(sysbench.sql.type.INT) end
   sum:bind_param(unpack(params))
   for i = 1, 10 do params[i]:set(i + 0.5) end
   local rs = sum:execute()
   say(rs.nrows, rs.nfields, rs:fetch_row()[1], tostring(rs:fetch_row()))
   params[1]:set(nil)
   sum:execute()
   say(rs.nrows, tostring(rs:fetch_row()[1]))
   rs:free()
   say(rs.nrows, tostring(rs:fetch_row()), tostring(rs.other))
   con:query("CREATE TABLE t (c TEXT)")
   say(rs.nrows, rs.nfields)
   con:query("SELECT c FROM t")
   say(rs.nrows, rs.nfields, nothing:execute():fetch_row()[1], rs.nrows)
   say(tostring(con:query_row("SELECT NULL")), select('#', con:query_row("SELECT 1, NULL, ''")))
   say(tostring((con:query_row("SELECT 1; SELECT 2, 3, 4, 5, 6, 7 WHERE 1 = 0"))))
   say(con:query_row("SELECT 1, 2, 3; SELECT 4"))
end
"#
    ));
    assert_eq!(bench.events(1).ended, TrialEnd::Events);
    let expected = ["1 1 55 nil", "1 nil", "1 nil nil", "0 0", "0 1 1 1", "nil 3", "1", "1 2 3"];
    assert_eq!(bench.lines(), expected);
}

#[test]
fn calls_without_a_connection_are_refused_at_their_lines() {
    let bench = Bench::new(&format!(
        r#"{SAYS}
local function saying(ok, problem) say(tostring(ok), problem) end
function event()
   local con = sysbench.sql.driver():connect()
   saying(pcall(sysbench.rand.uniform, 1, "x"))
   con:disconnect()
   saying(pcall(function() con:query("SELECT 1") end))
   saying(pcall(function() con.query("SELECT 1") end))
   con:bulk_insert_init("INSERT INTO t VALUES")
   con:bulk_insert_next("(1)")
   saying(pcall(function() con:bulk_insert_done() end))
end
"#
    ));
    assert_eq!(bench.events(1).ended, TrialEnd::Events);
    let lines = bench.lines();
    for (line, expected) in lines.iter().zip([
        "bad argument #2 to '?' (cannot convert 'string' to 'unsigned int')",
        "my.lua:13: the connection is closed",
        "my.lua:14: call it with a colon",
        "my.lua:17: the connection is closed",
    ]) {
        assert!(line.starts_with("false ") && line.contains(expected), "{line}");
    }
    assert_eq!(lines.len(), 4);
}

#[test]
fn an_ignored_error_begins_the_event_anew_after_the_hook() {
    let bench = Bench::new(&format!(
        r#"{SAYS}
local tries = 0
function thread_init() con = sysbench.sql.driver():connect() end
function sysbench.hooks.sql_error_ignorable(err) return err.sql_errmsg:match("no such table") ~= nil end
function sysbench.hooks.before_restart_event(err) say("restart", err.query) con:query("ROLLBACK") end
function event()
   tries = tries + 1
   con:query("BEGIN")
   say(tries)
   if tries < 3 then con:query("SELECT * FROM missing") end
   con:query("COMMIT")
end
"#
    ));
    let result = bench.events(1);
    assert_eq!(result.ended, TrialEnd::Events);
    let query = "restart SELECT * FROM missing";
    assert_eq!(bench.lines(), ["1", query, "2", query, "3"]);
    assert_eq!(result.total.counts().committed, 1);
}

#[test]
fn other_errors_end_the_run_with_file_and_line_and_can_be_caught() {
    let bench = Bench::new("\nfunction event()\n  local x = nil\n  x.y = 1\nend\n");
    let text = failure(&bench.events(1));
    assert!(text.contains("my.lua:4: attempt to index local 'x'"), "{text}");
    let bench = Bench::new(
        "function event()\n  con = con or sysbench.sql.driver():connect()\n  local ok, e = pcall(con.query, con, 'nonsense')\n  assert(not ok and e:match('SQL error'))\n  con:query('nonsense')\nend",
    );
    let text = failure(&bench.events(1));
    assert!(text.contains("my.lua:5: SQL error, errno = 1"), "{text}");
    let bench = Bench::new("x =");
    let error = bench.command("run").unwrap_err();
    assert!(error.contains("my.lua:1: unexpected symbol"), "{error}");
}

#[test]
fn endless_loops_and_memory_have_limits() {
    let bench = Bench::new("n = 0 function event() n = n + 1 while n == 3 do end end");
    let spec = TrialSpec {
        duration: Some(SECOND / 10),
        drain: SECOND / 2,
        finish_begun: true,
        ..TrialSpec::closed(1)
    };
    let (result, late_error) = bench.try_run(&spec);
    // The report is that of the events that have ended.
    assert_eq!((&result.ended, result.total.counts().committed), (&TrialEnd::Time, 2));
    let (function, error) = late_error.expect("an error");
    assert_eq!(function, "event");
    assert!(error.message.contains("still running long after --time was over"), "{error:?}");
    let mut bench = Bench::new(
        "function event() local t = {} while true do t[#t+1] = ('x'):rep(1000) .. #t end end",
    );
    bench.settings.memory_max = 8 << 20;
    let text = failure(&bench.events(1));
    assert!(text.contains("not enough memory"), "{text}");
}

#[test]
fn commands_options_and_what_is_refused() {
    let script = format!(
        r#"{SAYS}
sysbench.cmdline.options = {{ n = {{"N", 1}}, b = {{"B", false}}, l = {{"L", {{"a"}}}}, s = {{"S", "x"}} }}
sysbench.cmdline.commands = {{
   all = {{ function() say("tid", sysbench.tid) end, sysbench.cmdline.PARALLEL_COMMAND }},
   one = {{ function() say(sysbench.opt.n + 1, tostring(sysbench.opt.b), #sysbench.opt.l, sysbench.opt.s) end }},
   no = {{ function() return false end }},
}}
"#
    );
    let mut bench = Bench::new(&script);
    bench.command("all").expect("three workers");
    let mut threads = bench.lines();
    threads.sort_unstable();
    assert_eq!(threads, ["tid 0", "tid 1", "tid 2"]);
    let options = [("n", Some("41")), ("b", None), ("l", Some("x, y"))];
    bench.settings.given =
        options.map(|(name, value)| (name.to_owned(), value.map(str::to_owned))).to_vec();
    bench.command("one").expect("a command");
    assert_eq!(bench.lines().last().map(String::as_str), Some("42 true 2 x"));
    assert!(bench.command("no").unwrap_err().contains("returned false"));
    assert!(bench.command("wrong").unwrap_err().contains("Unknown command: wrong"));
    assert!(bench.command("run").unwrap_err().contains("cannot find the event() function"));
    assert!(bench.command("cleanup").unwrap_err().contains("does not implement the 'cleanup'"));
    for (name, value, refusal) in [
        ("n", Some("abc"), "--n=abc: the value must be a number"),
        ("bogus", Some("1"), "invalid option: --bogus=1"),
    ] {
        bench.settings.given = vec![(name.to_owned(), value.map(str::to_owned))];
        let error = bench.command("one").unwrap_err();
        assert!(error.contains(refusal), "{error}");
    }
}

#[test]
fn scripts_of_sysbench_0_5_run_as_they_are() {
    let mut bench = Bench::new(&format!(
        r#"{SAYS}
function prepare()
   db_connect()
   db_query("CREATE TABLE t (id INTEGER PRIMARY KEY, n INT)")
   db_bulk_insert_init("INSERT INTO t VALUES")
   for i = 1, oltp_table_size do db_bulk_insert_next("(" .. i .. ",0)") end
   db_bulk_insert_done()
end
function thread_init(id)
   assert(unknown_option == nil and id == thread_id)
   statement = db_prepare("UPDATE t SET n = ? WHERE id = ?")
   values = {{0, 0}}
   db_bind_param(statement, values)
end
function event(id)
   values[1], values[2] = 7, 3
   db_store_results(db_execute(statement))
   db_query("UPDATE t SET n = n + 1 WHERE id = 3")
end
function thread_done() db_close(statement) end
function done()
   db_connect()
   say(num_threads, mysql_host, DB_ERROR_FAILED)
   say(sysbench.sql.driver():connect():query_row("SELECT count(*), sum(n) FROM t"))
   db_disconnect()
end
"#
    ));
    bench.settings.given = vec![("oltp-table-size".to_owned(), Some("20".to_owned()))];
    bench.settings.general = vec![
        ("threads".to_owned(), OptionValue::Number(2.0)),
        ("mysql_host".to_owned(), OptionValue::List(vec!["a".to_owned(), "b".to_owned()])),
    ];
    bench.command("prepare").expect("a prepare");
    let result = bench.events(5);
    assert_eq!((&result.ended, result.total.work().writes), (&TrialEnd::Events, 10));
    side_state(&bench.database, &bench.script, &bench.settings, 0)
        .and_then(|mut state| state.step("done", ""))
        .expect("a done");
    assert_eq!(bench.lines(), ["2 a,b 2", "20 8"]);
}

#[test]
fn a_histogram_counts_where_the_originals_does() {
    let bench = Bench::new(&format!(
        r#"{SAYS}
function event() end
function done()
   print = say
   local histogram = sysbench.histogram.new(20, 1, 100)
   for i = 1, 100 do histogram:update(i) end
   for _, value in ipairs({{0.5, 1000, 50}}) do histogram:update(value) end
   histogram:print()
end
"#
    ));
    side_state(&bench.database, &bench.script, &bench.settings, 0)
        .and_then(|mut state| state.step("done", ""))
        .expect("a done");
    let lines = bench.lines();
    // Printed by sysbench 1.0.20.
    assert_eq!(lines[0], "       value  ------------- distribution ------------- count");
    assert_eq!(lines[1], "       1.000 |****                                     2");
    assert_eq!(lines[14], "      48.329 |***************************              13");
    assert_eq!(lines[16], "      78.476 |**************************************** 19");
    assert_eq!(
        (lines[17].as_str(), lines.len()),
        ("     100.000 |***************************              13", 18)
    );
}

/// A script with its own loop, as the original's is written.
const OWN_LOOP: &str = r#"
local ffi = require("ffi")
function thread_init() con = sysbench.sql.driver():connect() end
function event() error("not called") end
function thread_run(tid)
   local events = 0
   while ffi.C.sb_more_events(tid) do
      ffi.C.sb_event_start(tid)
      local ok, problem
      repeat
         ok, problem = pcall(work, events)
         if not ok and problem.errcode ~= sysbench.error.RESTART_EVENT then error(problem) end
      until ok
      ffi.C.sb_event_stop(tid)
      events = events + 1
   end
   say("over", events, tostring(ffi.C.sb_counter_val(tid, 3)))
end
function thread_done() say("done", con:query_row("SELECT 7")) end
"#;

#[test]
fn a_loop_of_the_scripts_own_gets_its_events() {
    let bench = Bench::new(&format!(
        r#"{SAYS}{OWN_LOOP}
local tries = 0
function sysbench.hooks.sql_error_ignorable() return true end
function work(n)
   if n == 2 and tries > 0 then con:query("ROLLBACK") end
   con:query("BEGIN")
   if n == 2 then tries = tries + 1 end
   con:query(n == 2 and tries < 3 and "SELECT * FROM missing" or "SELECT 1")
   con:query("COMMIT")
end
"#
    ));
    let result = bench.events(5);
    assert_eq!(result.ended, TrialEnd::Events);
    assert_eq!(bench.lines(), ["over 5 5ULL", "done 7"]);
    let counts = result.total.counts();
    assert_eq!((counts.committed, counts.retried, result.total.errors.total()), (5, 1, 2));
    // What has failed twice is wasted work, as everywhere; one ROLLBACK is of the attempt that went well, and one statement
    // of thread_done().
    assert_eq!(result.total.work().statements(), 17);
}

#[test]
fn a_loop_of_the_scripts_own_may_fail_and_leave() {
    let bench = Bench::new(&format!("{SAYS}{OWN_LOOP}\nfunction work() local x = nil x.y = 1 end"));
    let text = failure(&bench.events(5));
    assert!(text.contains("attempt to index local 'x'"), "{text}");
    let bench = Bench::new(&format!(
        "{SAYS}function event() end\nfunction thread_run() say('left') end\nfunction thread_done() say('done') end"
    ));
    let result = bench.events(5);
    assert_eq!((&result.ended, result.total.counts().committed), (&TrialEnd::Events, 0));
    assert_eq!(bench.lines(), ["left", "done"]);
}

#[test]
fn an_event_that_returns_something_ends_its_worker() {
    let bench = Bench::new(&format!(
        r#"{SAYS}
local n = 0
function event(tid) n = n + 1 return n == tid + 2 end
function thread_done(tid) say(tid, n) end
"#
    ));
    let spec = TrialSpec { duration: Some(60 * SECOND), ..TrialSpec::closed(3) };
    let result = bench.run(&spec);
    assert_eq!((&result.ended, result.total.counts().committed), (&TrialEnd::Events, 1 + 2 + 3));
    let mut lines = bench.lines();
    lines.sort();
    assert_eq!(lines, ["0 2", "1 3", "2 4"]);
}

#[test]
fn numbers_of_64_bits_keep_all_of_them() {
    let bench = Bench::new(&format!(
        r#"{SAYS}
function event()
   local con = sysbench.sql.driver():connect()
   con:query("CREATE TABLE t (id INTEGER PRIMARY KEY, n BIGINT)")
   local stmt = con:prepare("INSERT INTO t (n) VALUES (?)")
   local n = stmt:bind_create(sysbench.sql.type.BIGINT)
   stmt:bind_param(n)
   for _, v in ipairs({{ 9007199254740993LL, -9007199254740993LL, 18446744073709551615ULL, 2^53, 1.7, -1.7, "42" }}) do
      n:set(v)
      stmt:execute()
   end
   local rs = con:query("SELECT n FROM t ORDER BY id")
   for i = 1, rs.nrows do say(rs:fetch_row()[1]) end
   say(tostring(pcall(n.set, n, "x")))
end
"#
    ));
    assert_eq!(bench.events(1).ended, TrialEnd::Events);
    let expected = [
        "9007199254740993",
        "-9007199254740993",
        "-1",
        "9007199254740992",
        "1",
        "-1",
        "42",
        "false",
    ];
    assert_eq!(bench.lines(), expected);
}

#[test]
fn init_and_done_share_a_state_and_reports_are_the_originals() {
    let bench = Bench::new(&format!(
        r#"{SAYS}
print, io.write = say, say
function init() began = sysbench.sql.driver():connect() say("init", began:query_row("SELECT 5")) end
function done() say("done", began:query_row("SELECT 6")) end
function event() end
sysbench.hooks.report_intermediate = sysbench.report_json
sysbench.hooks.report_cumulative = function(stat)
   sysbench.report_csv(stat) sysbench.report_default(stat)
   say(stat.latency_min, stat.latency_max, stat.latency_avg, stat.latency_sum, stat.queue_length, stat.concurrency)
end
"#
    ));
    let mut bench = bench;
    bench.settings.general = vec![("percentile".to_owned(), OptionValue::Number(95.0))];
    let stat = ReportStat {
        threads_running: 2,
        time_interval_s: 2.0,
        time_total_s: 4.0,
        latency_percentile_s: 0.00152,
        events: 863,
        reads: 10,
        writes: 20,
        others: 30,
        errors: 3,
        reconnects: 1,
        queue: Some((15, 2)),
        latency_s: Some([0.5, 1.0, 0.75, 100.0]),
    };
    let mut state =
        side_state(&bench.database, &bench.script, &bench.settings, 0).expect("a state");
    state.step("init", "").expect("init");
    assert!(state.step("has", "report_intermediate").expect("looked").is_some());
    state.report("report_intermediate", &stat).expect("a report");
    state.report("report_intermediate", &stat).expect("a report");
    state.report("report_cumulative", &stat).expect("a report");
    state.step("done", "").expect("done");
    state.step("close", "").expect("closed");
    // Every byte as sysbench 1.0.20 prints it.
    let json = r#"  {
    "time":    4,
    "threads": 2,
    "tps": 431.50,
    "qps": {
      "total": 30.00,
      "reads": 5.00,
      "writes": 10.00,
      "other": 15.00
    },
    "latency": 1.52,
    "errors": 1.50,
    "reconnects": 0.50
  }"#;
    let csv = "4,2,431.50,30.00,5.00,10.00,15.00,1.52,1.50,0.50";
    let line = "[ 4s ] thds: 2 tps: 431.50 qps: 30.00 (r/w/o: 5.00/10.00/15.00) lat (ms,95%): 1.52 err/s 1.50 reconn/s: 0.50";
    let output = std::fs::read_to_string(bench.folder.file("out")).expect("lines");
    let expected = format!(
        "init 5\n[\n {json}\n,\n {json}\n{csv}\n{line}\n0.5 1 0.75 100 15 2\ndone 6\n\n]\n\n"
    );
    assert_eq!(output, expected);
}
