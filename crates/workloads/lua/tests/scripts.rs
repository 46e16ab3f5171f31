//! Scripts on SQLite, from their files to the result of a trial.

use dyno_core::SECOND;
use dyno_drivers::{Database, TargetUrl};
use dyno_engine::{Control, Observer, TrialEnd, TrialResult, TrialSpec};
use dyno_lua::{CommandKind, LuaScript, OptionValue, ScriptSettings, drive, look, once, parallel};
use dyno_record::{MeasuredInterval, Window};
use dyno_sysbench::RandomOptions;
use dyno_testkit::Scratch;

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
        };
        let script =
            LuaScript::read(&folder.file("my.lua").display().to_string()).expect("a script");
        let database = Database::open(&target).expect("a database");
        Bench { folder, database, script, settings }
    }

    fn command(&self, command: &str) -> Result<(), String> {
        let kind = look(&self.database, &self.script, &self.settings, command);
        let ended = match kind.map_err(|error| error.message)? {
            CommandKind::Parallel => {
                parallel(&self.database, &self.script, &self.settings, 3, command)
            }
            _ => once(&self.database, &self.script, &self.settings, "command", command),
        };
        ended.map_err(|error| error.message)
    }

    fn run(&self, spec: &TrialSpec) -> TrialResult {
        let control = Control::new();
        drive(&self.database, &self.script, &self.settings, spec, &control, &mut Silent)
            .expect("a trial that begins")
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
   say(tostring(con:query("BEGIN")), tostring(con:query_row("SELECT 1 WHERE 0")))
   con:query("COMMIT")
end
function thread_done() say("done") con:disconnect() end
"#
    ));
    bench.settings.given = vec![("rows".to_owned(), Some("4".to_owned()))];
    bench.command("prepare").expect("a table");
    let result = bench.events(1);
    assert_eq!(result.ended, TrialEnd::Events);
    let expected = ["0 4 2", "1 c1", "2 lon", "3 nil", "4 c4", "4 x", "nil nil", "done"];
    assert_eq!(bench.lines(), expected);
    let done = result.total.work();
    assert_eq!((done.reads, done.writes, done.others), (3, 2, 2));
}

#[test]
fn an_ignored_error_begins_the_event_anew_after_the_hook() {
    let bench = Bench::new(&format!(
        r#"{SAYS}
local tries = 0
function thread_init() con = sysbench.sql.driver():connect() end
function sysbench.hooks.sql_error_ignorable(err) return err.sql_errmsg:match("no such table") ~= nil end
function sysbench.hooks.before_restart_event(err) say("restart", err.query) end
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
    let bench = Bench::new("function event() while true do end end");
    let spec = TrialSpec { duration: Some(SECOND / 10), ..TrialSpec::closed(1) };
    let text = failure(&bench.run(&spec));
    assert!(text.contains("still computing when --time was over"), "{text}");
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
    assert_eq!(bench.lines(), ["tid 0", "tid 1", "tid 2"]);
    let given = [("n", Some("41")), ("b", None), ("l", Some("x, y"))];
    bench.settings.given =
        given.map(|(name, value)| (name.to_owned(), value.map(str::to_owned))).to_vec();
    bench.command("one").expect("a command");
    assert_eq!(bench.lines().last().map(String::as_str), Some("42 true 2 x"));
    assert!(bench.command("no").unwrap_err().contains("returned false"));
    assert!(bench.command("wrong").unwrap_err().contains("Unknown command: wrong"));
    assert!(bench.command("run").unwrap_err().contains("cannot find the event() function"));
    assert!(bench.command("cleanup").unwrap_err().contains("does not implement the 'cleanup'"));
    for (name, value, refusal) in [
        ("n", Some("abc"), "--n=abc: the value must be a number"),
        ("s", None, "--s: it needs a value"),
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
    once(&bench.database, &bench.script, &bench.settings, "done", "run").expect("a done");
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
    once(&bench.database, &bench.script, &bench.settings, "done", "run").expect("a done");
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
