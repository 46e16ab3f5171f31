//! Statements that scripts close, and errors that they catch.

use super::{Bench, SAYS};
use dyno_engine::TrialEnd;

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
