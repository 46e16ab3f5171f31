//! Statements that scripts close, and errors that they catch.

use super::{Bench, SAYS, failure};
use dyno_engine::{ErrorPolicy, ErrorSet, TrialEnd, TrialSpec};

const IGNORES: &str = "function sysbench.hooks.sql_error_ignorable() return true end";

#[test]
fn errors_that_a_script_catches_are_counted_and_last_until_a_statement_succeeds() {
    for (hook, rethrown) in [("", ""), (IGNORES, ""), (IGNORES, "if tries == 2 then error(e) end")]
    {
        let bench = Bench::new(&format!(
            r#"{SAYS}{hook}
local tries = 0
function thread_init() con = sysbench.sql.driver():connect() end
function event()
   tries = tries + 1
   local ok, e = pcall(con.query, con, "nonsense")
   local errno, message = con.sql_errno, con.sql_errmsg
   con:prepare("SELECT 1"):close()
   {rethrown}
   assert(con.sql_errno == errno and errno ~= 0 and message)
   con:query("SELECT 1")
   say(con.sql_errno, tostring(con.sql_state), tostring(con.sql_errmsg), con.error)
end
"#
        ));
        let result = bench.events(3);
        assert_eq!(result.ended, TrialEnd::Events);
        assert_eq!(bench.lines(), ["0 nil nil 0"; 3]);
        let attempts = if rethrown.is_empty() { 3 } else { 4 };
        assert_eq!(result.total.errors.total(), attempts, "{rethrown}");
    }
}

#[test]
fn statements_of_the_event_that_ends_its_worker_are_counted() {
    let bench = Bench::new(
        "local n = 0\nfunction thread_init() con = sysbench.sql.driver():connect() end\n\
         function event() n = n + 1 con:query('SELECT 1') return n == 3 end",
    );
    let result = bench.events(10);
    assert_eq!((result.total.counts().committed, result.total.work().reads), (2, 3));
}

#[test]
fn closed_statements_are_closed_and_others_of_the_same_text_are_not() {
    let bench = Bench::new(&format!(
        r#"{SAYS}
function event()
   local con = sysbench.sql.driver():connect()
   local function prepared(text)
      local statement = con:prepare(text)
      local n = statement:bind_create(sysbench.sql.type.INT)
      statement:bind_param(n)
      n:set(2)
      return statement
   end
   local first, second = prepared("SELECT 1 + ?"), prepared("SELECT 1 + ?")
   first:close()
   first:close()
   for i = 1, 300 do
      local other = prepared("SELECT " .. i .. " * ?")
      assert(other:execute():fetch_row()[1] == tostring(2 * i))
      other:close()
   end
   say(second:execute():fetch_row()[1])
   say(tostring(pcall(first.execute, first)), select(2, pcall(function() first:execute() end)))
   say(select(2, pcall(function() first:bind_param() end)))
end
"#
    ));
    assert_eq!(bench.events(1).ended, TrialEnd::Events);
    let lines = bench.lines();
    assert_eq!((lines[0].as_str(), lines.len()), ("3", 3));
    let [execute, bind] = [&lines[1], &lines[2]];
    assert!(execute.starts_with("false ") && execute.contains("my.lua:"), "{execute}");
    assert!(execute.ends_with(": the statement is closed"), "{execute}");
    assert!(bind.ends_with(": the statement is closed"), "{bind}");
}

#[test]
fn values_in_a_text_are_those_of_a_prepared_statement() {
    for prepares in [true, false] {
        let mut bench = Bench::new(&format!(
            r#"{SAYS}
function event()
   local types = sysbench.sql.type
   local con = sysbench.sql.driver():connect()
   local statement = con:prepare("SELECT hex(?), ?")
   local text, number = statement:bind_create(types.VARCHAR), statement:bind_create(types.BIGINT)
   statement:bind_param(text, number)
   number:set(18446744073709551615ULL)
   for _, value in ipairs({{ "\\", "'", "\"", "\\'", "a\nb", "\0x", "\228" }}) do
      text:set(value)
      local row = statement:execute():fetch_row()
      say(row[1], row[2])
   end
end
"#
        ));
        bench.settings.prepares = prepares;
        assert_eq!(bench.events(1).ended, TrialEnd::Events);
        let texts = ["5C", "27", "22", "5C27", "610A62", "0078", "E4"];
        assert_eq!(bench.lines(), texts.map(|hex| format!("{hex} -1")));
    }
}

/// The output of a script with values sent as parameters, and as parts of a text.
fn in_both_modes(script: &str) -> [Vec<String>; 2] {
    [true, false].map(|prepares| {
        let mut bench = Bench::new(&format!("{SAYS}{script}"));
        bench.settings.prepares = prepares;
        assert_eq!(bench.events(1).ended, TrialEnd::Events);
        bench.lines()
    })
}

#[test]
fn a_parameter_has_a_first_value_and_a_longest_text() {
    let script = r#"
function event()
   local types = sysbench.sql.type
   local con = sysbench.sql.driver():connect()
   local statement = con:prepare("SELECT quote(?), quote(?), quote(?), quote(?), quote(?), length(?)")
   local whole, part = statement:bind_create(types.TINYINT), statement:bind_create(types.DOUBLE)
   local text, day = statement:bind_create(types.CHAR, 3), statement:bind_create(types.DATE)
   local null, drawn = statement:bind_create(types.INT), statement:bind_create(types.VARCHAR, 3)
   statement:bind_param(whole, part, text, day, null, drawn)
   null:set(nil) drawn:set_rand_str("@@##@@")
   local row = statement:execute():fetch_row()
   say(row[1], row[2], row[3], row[4], row[5], row[6])
end
"#;
    for lines in in_both_modes(script) {
        assert_eq!(lines, ["0 0.0 '' NULL NULL 3"]);
    }
}

#[test]
fn numbers_that_64_bits_do_not_hold_are_the_lowest_one() {
    let script = r#"
function event()
   local con = sysbench.sql.driver():connect()
   local statement = con:prepare("SELECT ?")
   local number = statement:bind_create(sysbench.sql.type.BIGINT)
   statement:bind_param(number)
   for _, value in ipairs({ 1e30, -1e30, 0/0, 2^64, -2^63, 2^63 + 2048 }) do
      number:set(value)
      say(statement:execute():fetch_row()[1])
   end
end
"#;
    let lowest = i64::MIN.to_string();
    // The last one keeps its bits.
    let expected = [&lowest; 5].into_iter().map(String::as_str).chain(["-9223372036854773760"]);
    let expected: Vec<&str> = expected.collect();
    for lines in in_both_modes(script) {
        assert_eq!(lines, expected);
    }
}

#[test]
fn a_statement_whose_parameters_are_not_bound_is_not_executed() {
    let script = r#"
function event()
   local con = sysbench.sql.driver():connect()
   local statement = con:prepare("SELECT ?")
   local ok, problem = pcall(statement.execute, statement)
   say(tostring(ok), problem:match("0 parameters were bound to a statement with 1 placeholders"))
end
"#;
    let expected = "false 0 parameters were bound to a statement with 1 placeholders";
    for lines in in_both_modes(script) {
        assert_eq!(lines, [expected]);
    }
}

#[test]
fn a_statement_that_can_not_be_prepared_has_an_error_in_the_originals_words() {
    for (driver, words) in [
        ("mysql", "my.lua:3: SQL API error, errno = 1, state = "),
        ("pgsql", "my.lua:3: SQL API error, errno = 1, state = "),
        ("sqlite", "my.lua:3: SQL error, errno = 1, state = "),
    ] {
        let mut bench = Bench::new(
            "function event()\n  local con = sysbench.sql.driver():connect()\n  con:prepare('nonsense')\nend",
        );
        bench.settings.driver = driver;
        match bench.events(1).ended {
            TrialEnd::Aborted(error) => {
                assert!(error.message().contains(words), "{error}");
                assert_eq!((error.statement.as_deref(), error.errno()), (Some("nonsense"), 1));
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn what_can_not_be_prepared_is_never_ignored_as_in_the_original() {
    for (driver, hook, attempts) in [
        ("mysql", "", 1),
        ("mysql", IGNORES, 1),
        ("pgsql", IGNORES, 1),
        ("sqlite", "", 3),
        ("sqlite", IGNORES, 3),
    ] {
        let mut bench = Bench::new(&format!(
            r#"{SAYS}{hook}
local tries = 0
function thread_init() con = sysbench.sql.driver():connect() end
function event()
   tries = tries + 1
   say(tries)
   if tries < 3 then con:prepare("nonsense") end
end
"#
        ));
        bench.settings.driver = driver;
        let retry = ErrorSet { all: true, ..ErrorSet::default() };
        let errors = ErrorPolicy { retry, ..ErrorPolicy::resilient() };
        let once = TrialSpec { events: Some(1), duration: None, ..TrialSpec::closed(1) };
        let result = bench.run(&TrialSpec { errors, ..once });
        let ended = matches!(result.ended, TrialEnd::Events);
        assert_eq!((bench.lines().len(), ended), (attempts, attempts == 3), "{driver} {hook}");
    }
}

#[test]
fn a_text_that_is_not_utf_8_is_refused_where_it_can_not_be_sent() {
    let words = "the text of a statement for this database must be UTF-8: bind other bytes";
    for call in ["query", "prepare"] {
        let bench = Bench::new(&format!(
            "function event() sysbench.sql.driver():connect():{call}(\"SELECT '\\228'\") end"
        ));
        let text = failure(&bench.events(1));
        assert!(text.contains(words) && text.contains("my.lua:1: "), "{text}");
    }
}
