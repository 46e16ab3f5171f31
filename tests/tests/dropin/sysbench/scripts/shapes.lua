-- How many values each function returns, and their types. The second value of an assertion of the original is its text.
local function shape(v)
   if type(v) == "cdata" and v == nil then
      return "null"
   end
   local plain = { ["nil"] = "nil", boolean = tostring(v), number = "number", string = "string", ["function"] = "function" }
   return plain[type(v)] or "object"
end

local function shapes(...)
   local count = select("#", ...)
   if count == 2 and (...) == true then
      count = 1
   end
   local all = { count }
   for i = 1, count do
      all[i + 1] = shape((select(i, ...)))
   end
   return table.concat(all, " ")
end

local function say(name, ok, ...)
   io.write("say " .. name .. ": " .. (ok and "ok " .. shapes(...) or "error") .. "\n")
end

local function try(name, f, ...)
   say(name, pcall(f, ...))
end

local function legacy()
   try("db_disconnect unconnected", db_disconnect)
   try("db_bulk_insert_next unconnected", db_bulk_insert_next, "(1)")
   try("db_bulk_insert_done unconnected", db_bulk_insert_done)
   try("db_connect", db_connect)
   try("db_connect again", db_connect)
   try("db_query create", db_query, "CREATE TABLE shapes (id INTEGER PRIMARY KEY, c VARCHAR(20))")
   try("db_query insert", db_query, "INSERT INTO shapes VALUES (1, 'a')")
   try("db_query update", db_query, "UPDATE shapes SET c = 'b' WHERE id = 1")
   try("db_query update of nothing", db_query, "UPDATE shapes SET c = 'b' WHERE id = 99")
   try("db_query select", db_query, "SELECT id FROM shapes")
   try("db_query select of nothing", db_query, "SELECT id FROM shapes WHERE id = 99")
   try("db_query begin", db_query, "BEGIN")
   try("db_query commit", db_query, "COMMIT")
   try("db_query wrong", db_query, "SELECT nothing FROM shapes")
   try("db_query()", db_query)
   try("db_query(5)", db_query, 5)
   try("db_query({})", db_query, {})
   local rs = db_query("UPDATE shapes SET c = 'c' WHERE id = 1")
   io.write("say 0.5: " .. (rs and "printed" or "silent") .. "\n")
   try("db_bulk_insert_init", db_bulk_insert_init, "INSERT INTO shapes VALUES")
   try("db_bulk_insert_next", db_bulk_insert_next, "(2, 'x')")
   try("db_bulk_insert_done", db_bulk_insert_done)
   try("db_bulk_insert_init()", db_bulk_insert_init)
   local st
   try("db_prepare", function()
      st = db_prepare("SELECT id, c FROM shapes WHERE id = ?")
      return st
   end)
   try("db_prepare()", db_prepare)
   try("db_prepare wrong", db_prepare, "SELECT nothing FROM shapes")
   local values = { 1 }
   try("db_bind_param", db_bind_param, st, values)
   try("db_bind_param()", db_bind_param)
   try("db_bind_param(st)", db_bind_param, st)
   try("db_bind_param(st, 5)", db_bind_param, st, 5)
   try("db_bind_result", db_bind_result, st, { 1, "x" })
   try("db_execute", function()
      rs = db_execute(st)
      return rs
   end)
   try("db_execute()", db_execute)
   try("db_execute({})", db_execute, {})
   try("db_store_results", db_store_results, rs)
   try("db_free_results", db_free_results, rs)
   try("db_close", db_close, st)
   try("db_close()", db_close)
   try("db_close({})", db_close, {})
   st = db_prepare("UPDATE shapes SET c = ? WHERE id = ?")
   values = { "d", 1 }
   db_bind_param(st, values)
   try("db_execute update", db_execute, st)
   try("db_close update", db_close, st)
   try("db_disconnect", db_disconnect)
   try("db_disconnect twice", db_disconnect)
   try("db_query disconnected", db_query, "SELECT 1")
end

local function globals()
   for _, name in ipairs({
      "db_connect", "db_disconnect", "db_query", "db_bulk_insert_init", "db_bulk_insert_next", "db_bulk_insert_done",
      "db_prepare", "db_bind_param", "db_bind_result", "db_execute", "db_close", "db_store_results", "db_free_results",
      "db_print_value", "sb_rand", "sb_rand_uniform", "sb_rand_gaussian", "sb_rand_special", "sb_rand_str", "sb_rand_uniq",
      "sb_rnd", "sb_rand_pareto", "DB_ERROR_NONE", "DB_ERROR_RESTART_TRANSACTION", "DB_ERROR_DEADLOCK", "DB_ERROR_FAILED",
      "thread_id", "test", "db_driver", "mysql_table_engine", "myisam_max_rows", "num_threads", "threads", "time", "events",
      "max_time", "max_requests", "percentile", "histogram", "rand_type", "rate", "mysql_user", "mysql_db", "pgsql_db",
      "db_ps_mode", "oltp_tables_count",
   }) do
      say("global " .. name, true, _G[name])
   end
end

local function random()
   for _, name in ipairs({ "sb_rand", "sb_rand_uniform", "sb_rand_gaussian", "sb_rand_special" }) do
      try(name, _G[name], 1, 9)
      try(name .. "()", _G[name])
      try(name .. "(1)", _G[name], 1)
      try(name .. "('x', 1)", _G[name], "x", 1)
      try(name .. "(1.5, 9.5)", _G[name], 1.5, 9.5)
   end
   try("sb_rand_str", sb_rand_str, "##@@")
   try("sb_rand_str()", sb_rand_str)
   try("sb_rand_uniq", sb_rand_uniq, 1, 4294967295)
   try("sb_rand_uniq()", sb_rand_uniq)
   try("sb_rnd", sb_rnd)
   for _, name in ipairs({ "default", "uniform", "gaussian", "special", "pareto" }) do
      try("rand." .. name, sysbench.rand[name], 1, 9)
      try("rand." .. name .. "()", sysbench.rand[name])
   end
   try("rand.unique", sysbench.rand.unique)
   try("rand.uniform_double", sysbench.rand.uniform_double)
   try("rand.uniform_uint64", sysbench.rand.uniform_uint64)
   try("rand.string", sysbench.rand.string, "#")
   try("rand.string()", sysbench.rand.string)
end

-- On a connection without other statements: the original crashes where one follows a closed statement.
local function statements(con)
   local types = sysbench.sql.type
   local st = con:prepare("SELECT id, c FROM shapes WHERE id = ?")
   try("con:prepare()", con.prepare, con)
   try("con:prepare(5)", con.prepare, con, 5)
   try("bind_create()", st.bind_create, st)
   try("bind_create(0)", st.bind_create, st, 0)
   try("bind_create(99)", st.bind_create, st, 99)
   local id = st:bind_create(types.INT)
   try("bind_param", st.bind_param, st, id)
   try("set", id.set, id, 1)
   try("set nil", id.set, id, nil)
   try("set 'x'", id.set, id, "x")
   try("set {}", id.set, id, {})
   id:set(1)
   local rs
   try("execute", function()
      rs = st:execute()
      return rs
   end)
   try("nrows, nfields", function() return rs.nrows, rs.nfields, 0 end)
   try("free", rs.free, rs)
   try("close", st.close, st)
   st = con:prepare("UPDATE shapes SET c = ? WHERE id = ?")
   local c = st:bind_create(types.VARCHAR, 10)
   try("bind_param of two", st.bind_param, st, c, id)
   try("set_rand_str", c.set_rand_str, c, "###")
   try("set text", c.set, c, "x")
   try("execute update", st.execute, st)
   try("close update", st.close, st)
   st = con:prepare("UPDATE shapes SET c = 'n' WHERE id = 1")
   try("bind_param of none", st.bind_param, st)
   try("execute without parameters", st.execute, st)
   try("close", st.close, st)
end

local function modern()
   local driver = sysbench.sql.driver()
   try("driver:name", driver.name, driver)
   local con
   try("driver:connect", function()
      con = driver:connect()
      return con
   end)
   try("tostring", function() return tostring(driver), tostring(con), 0 end)
   try("con:query update", con.query, con, "UPDATE shapes SET c = 'e' WHERE id = 1")
   try("con:query update of nothing", con.query, con, "UPDATE shapes SET c = 'e' WHERE id = 99")
   local rs
   try("con:query select", function()
      rs = con:query("SELECT id, c FROM shapes WHERE id = 1")
      return rs
   end)
   try("fetch_row", rs.fetch_row, rs)
   try("fetch_row after the last", rs.fetch_row, rs)
   try("free", rs.free, rs)
   try("con:query select of nothing", con.query, con, "SELECT id FROM shapes WHERE id = 99")
   try("con:query_row", con.query_row, con, "SELECT id, c, 3 FROM shapes WHERE id = 1")
   try("con:query_row of NULL", con.query_row, con, "SELECT NULL, 1, NULL")
   try("con:query_row of nothing", con.query_row, con, "SELECT id, c FROM shapes WHERE id = 99")
   try("con:query_row update", con.query_row, con, "UPDATE shapes SET c = 'q' WHERE id = 1")
   for _, value in ipairs({ 5, {}, true }) do
      local _, problem = pcall(con.query, con, value)
      -- No statement was sent: the error is not the server's.
      io.write("say con:query(" .. type(value) .. ") asks: " .. tostring(tostring(problem):find("errno") ~= nil) .. "\n")
   end
   try("con:query()", con.query, con)
   try("con:query_row()", con.query_row, con)
   try("bulk_insert_init", con.bulk_insert_init, con, "INSERT INTO shapes VALUES")
   try("bulk_insert_next", con.bulk_insert_next, con, "(3, 'x')")
   try("bulk_insert_done", con.bulk_insert_done, con)
   try("bulk_insert_init()", con.bulk_insert_init, con)
   try("bulk_insert_next()", con.bulk_insert_next, con)
   statements(driver:connect())
   try("con:query wrong", con.query, con, "SELECT nothing FROM shapes")
   io.write("say error " .. tonumber(con.error) .. " " .. tonumber(con.sql_errno) .. "\n")
   con:query("SELECT 1")
   io.write("say error " .. tonumber(con.error) .. " " .. tonumber(con.sql_errno) .. "\n")
   con:query("DROP TABLE shapes")
   local other = driver:connect()
   try("con:disconnect", other.disconnect, other)
end

function event() end

function prepare()
   legacy()
   globals()
   random()
   modern()
   local histogram = sysbench.histogram.new(10, 1, 10)
   try("histogram:update", histogram.update, histogram, 1)
   try("command_defined", sysbench.cmdline.command_defined, "prepare")
   try("command_defined of none", sysbench.cmdline.command_defined, "nope")
end
