-- What each function gives that works on a database.
function say(name, ...)
   local all = {}
   for i = 1, select("#", ...) do
      local v = select(i, ...)
      all[i] = type(v) == "number" and string.format("%.14g", v) or tostring(v)
   end
   io.write("say " .. name .. ": " .. table.concat(all, " ") .. "\n")
end

local function rows(rs)
   local all = {}
   for i = 1, rs.nrows do
      local row = rs:fetch_row()
      local one = {}
      for c = 1, rs.nfields do one[c] = tostring(row[c]) end
      all[i] = table.concat(one, ",")
   end
   return table.concat(all, "|")
end

function prepare()
   local con = sysbench.sql.driver():connect()
   con:query("CREATE TABLE t (id INTEGER PRIMARY KEY, n BIGINT, c VARCHAR(40))")
   con:bulk_insert_init("INSERT INTO t (id, n, c) VALUES")
   for i = 1, 5 do con:bulk_insert_next(string.format("(%d, %d, 'c%d')", i, i * 10, i)) end
   con:bulk_insert_done()
   con:query("UPDATE t SET c = NULL WHERE id = 2")
   con:query("CREATE PROCEDURE p () BEGIN SELECT id, n FROM t WHERE id < 3 ORDER BY id; SELECT 7; END")
   con:disconnect()
end

function cleanup()
   local con = sysbench.sql.driver():connect()
   con:query("DROP TABLE t")
   con:query("DROP PROCEDURE p")
end

function thread_init()
   drv = sysbench.sql.driver()
   con = drv:connect()
end

function sysbench.hooks.sql_error_ignorable(err)
   say("ignorable?", err.sql_errno, err.sql_state, err.query, err.connection == con)
   return err.sql_errno == ignored
end

function sysbench.hooks.before_restart_event(err)
   say("restart", err.sql_errno, err.sql_state, err.errcode == sysbench.error.RESTART_EVENT)
   say("still open", con:query_row("SELECT n FROM t WHERE id = 3"))
   con:query("ROLLBACK")
end

local tries = 0
function event()
   say("driver", drv:name())
   local rs = con:query("SELECT id, n, c FROM t ORDER BY id")
   say("query", rs.nrows, rs.nfields, rows(rs))
   rs:free()
   local none = con:query("UPDATE t SET n = n WHERE id = 1")
   say("no rows", tostring(none), none == nil, none and "" or "false")
   say("query_row", con:query_row("SELECT count(*), 'x' FROM t"))
   local other = drv:connect()
   say("second connection", other:query_row("SELECT n FROM t WHERE id = 3"))
   local first = other:query("CALL p()")
   say("several results", first.nrows, first.nfields, rows(first))
   other:disconnect()
   local types = sysbench.sql.type
   local statement = con:prepare("UPDATE t SET n = ?, c = ? WHERE id = ?")
   local n, c, id = statement:bind_create(types.BIGINT), statement:bind_create(types.VARCHAR, 6), statement:bind_create(types.INT)
   statement:bind_param(n, c, id)
   for index, number in ipairs({ 9007199254740993LL, -9007199254740993LL, 1.75, -1.75 }) do
      n:set(number) c:set("longer than six") id:set(index)
      local none = statement:execute()
      say("execute", tostring(none), none == nil)
   end
   n:set(nil) c:set(nil) id:set(5)
   statement:execute()
   say("stored", rows(con:query("SELECT n, c FROM t ORDER BY id")))
   n:set(1) c:set_rand_str("##@@##@@") id:set(1)
   statement:execute()
   say("random text", rows(con:query("SELECT n, length(c) FROM t WHERE id = 1")))
   statement:close()
   for _, kind in ipairs({ "TINYINT", "SMALLINT", "INT", "BIGINT" }) do
      local typed = con:prepare("UPDATE t SET n = ? WHERE id = 5")
      local value = typed:bind_create(types[kind])
      typed:bind_param(value)
      value:set(100)
      typed:execute()
      say("typed", kind, con:query_row("SELECT n FROM t WHERE id = 5"))
      typed:close()
   end
   con:bulk_insert_init("INSERT INTO t (id) VALUES")
   for i = 11, 13 do con:bulk_insert_next("(" .. i .. ")") end
   con:bulk_insert_done()
   say("bulk", con:query_row("SELECT count(*) FROM t"))
   con:query("DELETE FROM t WHERE id > 10")
   say("error", (pcall(con.query, con, "SELECT nothing")))
   say("fields", con.sql_errno, con.sql_errmsg == nil)
   local errno = con.sql_errno
   con:prepare("SELECT 1"):close()
   say("fields", con.sql_errno, con.sql_errmsg == nil)
   con:query("SELECT 1")
   say("fields", con.sql_errno, con.sql_state == nil, con.sql_errmsg == nil)
   tries = tries + 1
   if tries == 1 then
      ignored = errno
      con:query("BEGIN")
      con:query("UPDATE t SET n = 333 WHERE id = 3")
      con:query("SELECT nothing")
   end
   say("after", tries)
end

function thread_done()
   con:disconnect()
   say("over", tries)
end
