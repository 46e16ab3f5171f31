-- The interface of sysbench 1.0.20 for scripts, and what executes a script's functions.
--
-- Loaded with `host`, a table of what Rust gives. Everything of a script is executed in one coroutine. What has to wait
-- yields a request (its name and arguments) to the worker's task, which resumes it with the answer; `host.query` and
-- `host.execute` yield themselves. Where LuaJIT can't yield to the task, the request is answered in place. What a query passes through reads few fields, and those by number: each is a miss of
-- the processor's caches, as other workers have had their turn meanwhile. For the same reason objects have the methods
-- that queries are made of as fields of their own: LuaJIT finds one of a metatable by a call of C.

local host = ...
local real_ffi = package.loaded.ffi -- loaded by LuaJIT itself, as it has read `0ULL` in this file
local yield, running, isyieldable, type = coroutine.yield, coroutine.running, coroutine.isyieldable, type
local raise = host.raise
local script_coroutine

-- What is yielded first, and how `Request` in machine.rs calls it.
local DONE, LAST, RESTART, FAILED = 0, 1, 2, 3
local CONNECT, DISCONNECT, RECONNECT, PREPARE, BIND = 4, 5, 6, 8, 9
local REFUSED, CLOSE, SLEEP, STOPPED, IGNORED = 7, 10, 11, 12, 13
-- Steps that are resumed by a number: an event, and one that begins anew.
local EVENT, AGAIN = 1, 2

-- In a thread_run() of the script's own: whether it is one, and whether the run is over.
local has_own_loop, is_over = false, false

local function ask(...)
   if running() == script_coroutine and isyieldable() then
      return yield(...)
   end
   return host.answer_in_place(...)
end

-- As in the original, whose functions are in no coroutine.
function coroutine.running()
   local thread = running()
   return thread ~= script_coroutine and thread or nil
end

-- An error that leaves a finalizer ends LuaJIT (issue 1445): here it is kept, and the step that it happens in fails.
local problem_of_finalizer

local function guard(finalizer)
   return finalizer ~= nil and function(object)
      local ok, problem = pcall(finalizer, object)
      if not ok then
         problem_of_finalizer = problem_of_finalizer or problem
      end
   end or nil
end

local new_proxy = newproxy
function newproxy(kind)
   local proxy = new_proxy(kind)
   if kind == true then
      setmetatable(getmetatable(proxy), {
         __newindex = function(meta, name, value) rawset(meta, name, name == "__gc" and guard(value) or value) end,
      })
   end
   return proxy
end

-- Ends a command with a sentence of sysbench's own: about the words of the command line, or about the script.
local function refuse(text, is_of_script)
   error({ refusal = text, is_of_script = is_of_script }, 0)
end
host.refuse = refuse

local function fields(defined, shown)
   return { __index = defined, __tostring = function() return shown end }
end

sysbench = {
   tid = host.tid,
   version = "1.0.20",
   version_string = "sysbench 1.0.20",
   opt = host.opt,
   hooks = {},
   error = { NONE = 0, RESTART_EVENT = 1 },
   cmdline = {
      ARG_NULL = 0, ARG_BOOL = 1, ARG_INT = 2, ARG_SIZE = 3, ARG_DOUBLE = 4, ARG_STRING = 5, ARG_LIST = 6, ARG_FILE = 7,
      ARG_MAX = 8, PARALLEL_COMMAND = true,
      argv = host.argv, command = host.command, script_path = host.script_path,
   },
   rand = {},
   sql = {
      error = { NONE = 0, IGNORABLE = 1, FATAL = 2 },
      type = {
         NONE = 0, TINYINT = 1, SMALLINT = 2, INT = 3, BIGINT = 4, FLOAT = 5, DOUBLE = 6, TIME = 7, DATE = 8,
         DATETIME = 9, TIMESTAMP = 10, CHAR = 11, VARCHAR = 12,
      },
   },
}
sysbench.cmdline.argv[0] = "sysbench"
local tid = host.tid
thread_id = tid

-- Called by ffi, as in the original: compiled code calls them directly, if their arguments are no userdata.
local rand, shared = sysbench.rand, real_ffi.cast("void *", host.shared)
for _, name in ipairs({ "uniform", "gaussian", "special", "pareto", "zipfian", "default" }) do
   local draw = real_ffi.cast("uint32_t (*)(uint32_t, uint32_t, void *)", host.draws[name])
   rand[name] = function(low, high) return draw(low, high, shared) end
end
local unique = real_ffi.cast("uint32_t (*)(void *)", host.draws.unique)
local unit = real_ffi.cast("double (*)(void *)", host.draws.unit)
local bits = real_ffi.cast("uint64_t (*)(void *)", host.draws.bits)
local fill = real_ffi.cast("void (*)(void *, const char *, size_t, void *)", host.draws.fill)
function rand.unique() return unique(shared) end
function rand.uniform_double() return unit(shared) end
function rand.uniform_uint64() return bits(shared) end

local buffer, room = real_ffi.new("uint8_t[?]", 256), 256
function rand.string(template)
   local length = #template
   if length > room then
      buffer, room = real_ffi.new("uint8_t[?]", length), length
   end
   fill(shared, template, length, buffer)
   return real_ffi.string(buffer, length)
end

-- A text of a random length, at least 1, of letters from `0` to `z`.
function rand.varstring(least, most)
   assert(least <= most and most > 0)
   local letters = {}
   for index = 1, rand.uniform(math.max(least, 1), most) do
      letters[index] = string.char(rand.uniform(48, 122))
   end
   return table.concat(letters)
end

-- Commands -----------------------------------------------------------------------------------------------------------

local cmdline = sysbench.cmdline
local BUILT_IN = { prepare = true, run = true, cleanup = true, help = true }

local function own_command(name)
   local command = cmdline.commands and cmdline.commands[name]
   return command, type(command) == "table" and command[1] or command
end

function cmdline.command_defined(name)
   local _, func = own_command(name)
   return type(func) == "function"
end

-- Databases ----------------------------------------------------------------------------------------------------------

local driver, connection, statement, param = {}, {}, {}, {}
local driver_meta, connection_meta = fields(driver, "<sql_driver>"), fields(connection, "<sql_connection>")
local statement_meta, param_meta = fields(statement, "<sql_statement>"), fields(param, "<sql_param>")
local the_driver = setmetatable({}, driver_meta)

host.the_driver = the_driver

function sysbench.sql.driver(name)
   host.use_database()
   if name ~= nil and name ~= host.driver then
      raise("this run's --db-driver is " .. host.driver .. ": a second driver ('" .. tostring(name) .. "') is not supported")
   end
   return the_driver
end

function driver.name()
   return host.driver
end

-- The last error after which an event can begin anew, for before_restart_event.
local last_error

local function succeeded(self)
   self.error, self.sql_errno, self.sql_state, self.sql_errmsg = 0, 0, nil, nil
end

-- Raises the error that a request of `self` (a connection) was answered with. `kind` is the original's name for an error
-- that is not an error of SQL: it ignores none of these, and asks no hook.
local function fail(kind, self, query, errno, state, message, ignorable)
   ignorable = ignorable and not kind
   self.sql_errno, self.sql_state, self.sql_errmsg = errno, state, message
   -- As in the original, an error that only a hook ignores stays a fatal one here.
   self.error = ignorable and sysbench.sql.error.IGNORABLE or sysbench.sql.error.FATAL
   local description = {
      connection = self, query = query, sql_errno = errno, sql_state = state, sql_errmsg = message,
   }
   local function said()
      return string.format("%s, errno = %d, state = '%s': %s", kind or "SQL error", errno, state, message)
   end
   local hook = sysbench.hooks.sql_error_ignorable
   if not kind and not ignorable and type(hook) == "function" then
      local ok, answer = pcall(hook, description)
      if not ok then
         -- The cause must not be lost behind the hook's own failure.
         error(type(answer) == "string" and answer .. "; the hook was called for: " .. said() or answer, 0)
      end
      ignorable = answer and true or false
   end
   -- Where the script has the loop, the engine sees the error here: it counts it, and cleans the session.
   if ignorable and has_own_loop then
      ignorable = ask(IGNORED)
   end
   if ignorable then
      description.errcode = sysbench.error.RESTART_EVENT
      last_error = description
      error(description)
   end
   raise(said())
end

-- The result of a connection: as in the original the same for all of its statements, replaced by the next one.
local fetch, free = host.fetch, host.free
local result = {
   fetch_row = function(self) return fetch(self.number) end,
   free = function(self) return free(self.number) end,
}
local result_meta = {
   __index = function(self, name)
      if name == "nrows" then
         return (host.size(self.number))
      elseif name == "nfields" then
         return (select(2, host.size(self.number)))
      end
   end,
   __tostring = function() return "<sql_result>" end,
}

-- In place of a result where a statement has no result set: as in the original a null pointer, which equals nil.
local no_result = real_ffi.new(real_ffi.typeof("$ *", real_ffi.metatype("struct { int unused; }", {
   __index = { nrows = 0, nfields = 0, fetch_row = function() return nil end, free = function() end },
   __tostring = result_meta.__tostring,
})))

-- The answer to a request, if that has not failed. `kind` is as in `fail`.
local function checked(kind, self, query, ok, answer, state, message, ignorable)
   if not ok then
      fail(kind, self, query, answer, state, message, ignorable)
   end
   return answer
end

-- The answer of a statement that did not just go well: its error, or true and its result after an earlier error.
local function settled(self, query, errno, state, message, ignorable)
   if errno ~= true then
      fail(nil, self, query, errno, state, message, ignorable)
   end
   succeeded(self)
   return state
end

-- A connection's fields: its number, its result, the result of a statement without one.
local function open(self)
   return self[1] or raise("the connection is closed")
end
function driver.connect()
   local self = setmetatable({
      error = 0, sql_errno = 0, driver = the_driver,
      query = connection.query, query_row = connection.query_row,
   }, connection_meta)
   local ok, number, _, message = ask(CONNECT)
   if not ok then
      raise("connection creation failed: " .. message)
   end
   local rows = setmetatable({ number = number, fetch_row = result.fetch_row, free = result.free }, result_meta)
   self[1], self[2], self[3] = number, rows, no_result
   return self
end

function connection.disconnect(self)
   if self[1] then
      ask(DISCONNECT, self[1])
      self[1] = nil
   end
   return true
end

function connection.reconnect(self)
   checked(nil, self, nil, ask(RECONNECT, open(self)))
   return true
end

local query_and_wait, first_row = host.query, host.first_row

function connection.query(self, query)
   local answer, errno, state, message, ignorable = query_and_wait(self, query)
   if answer then
      return answer
   end
   return (settled(self, query, errno, state, message, ignorable))
end

function connection.query_row(self, query)
   local answer, errno, state, message, ignorable = query_and_wait(self, query)
   if not answer then
      settled(self, query, errno, state, message, ignorable)
   end
   return first_row(self[1])
end

-- Rows of a bulk insert become statements of at most this length, as in the original.
local PACKET_BYTES = 512 * 1024

local function check_text(query)
   return type(query) == "string" or raise("a statement must be a text")
end

function connection.bulk_insert_init(self, query)
   check_text(query)
   self.bulk = { head = query, length = #query, rows = {} }
   return true
end

local function flush(self)
   local bulk = self.bulk
   if #bulk.rows == 0 then
      return
   end
   local text = bulk.head .. " " .. table.concat(bulk.rows, ",")
   bulk.rows, bulk.length = {}, #bulk.head
   local answer, errno, state, message, ignorable = query_and_wait(self, text)
   if not answer then
      settled(self, text, errno, state, message, ignorable)
   end
end

function connection.bulk_insert_next(self, row)
   local bulk = self.bulk
   if not bulk then
      raise("bulk_insert_next without bulk_insert_init")
   end
   if bulk.length + #row + 1 > PACKET_BYTES then
      flush(self)
   end
   bulk.rows[#bulk.rows + 1] = row
   bulk.length = bulk.length + #row + 1
   return true
end

function connection.bulk_insert_done(self)
   if self.bulk then
      flush(self)
      self.bulk = nil
   end
   return true
end

-- What the original calls an error of preparing: of MySQL by `prepare`, of PostgreSQL also by `bind_param`.
local PREPARING = host.driver ~= "sqlite" and "SQL API error" or nil
local BINDING = host.driver == "pgsql" and PREPARING or nil

-- A statement's fields: its number, its parameters, their number, the two results of its connection.
function connection.prepare(self, query)
   check_text(query)
   local number = checked(PREPARING, self, query, ask(PREPARE, open(self), query))
   return setmetatable(
      { number, nil, 0, self[2], no_result, connection = self, query = query, execute = statement.execute },
      statement_meta)
end

local TEXT, CHAR, BIGINT = sysbench.sql.type.TIME, sysbench.sql.type.CHAR, sysbench.sql.type.BIGINT

-- A parameter's fields: its value, its type, the length of a text. As in the original it is 0 or empty until it is set.
function statement.bind_create(self, kind, max_length)
   if type(kind) ~= "number" or kind < 1 or kind > 12 then
      raise("unknown type of a parameter: " .. tostring(kind))
   end
   local first = kind < TEXT and 0 or kind >= CHAR and "" or nil
   return setmetatable({ first, kind, max_length, set = param.set, set_rand_str = param.set_rand_str }, param_meta)
end

function statement.bind_param(self, ...)
   self[2], self[3] = { ... }, select("#", ...)
   local kinds = {}
   for index, bound in ipairs(self[2]) do
      kinds[index] = bound[2]
   end
   local number = self[1] or raise("the statement is closed")
   checked(BINDING, self.connection, self.query, ask(BIND, number, kinds))
   return self[3] > 0 and 0 or nil
end

local execute_and_wait = host.execute

function statement.execute(self)
   local answer, errno, state, message, ignorable = execute_and_wait(self)
   if answer then
      return answer
   end
   return (settled(self.connection, self.query, errno, state, message, ignorable))
end

function statement.close(self)
   local number = self[1]
   if number then
      self[1], self[2], self[3] = nil, nil, 0
      ask(CLOSE, number)
   end
   return 0
end

local function cut(self, text)
   local most = self[3]
   return most and #text > most and text:sub(1, most) or text
end

-- `set(nil)` is NULL. Fractions of integers are cut off when they are sent.
param.set = host.setter(TEXT, function(self, value)
   local kind = self[2]
   if value == nil then
      self[1] = nil
   elseif kind >= TEXT then
      self[1] = cut(self, tostring(value))
   elseif type(value) == "boolean" then
      -- As C converts it.
      self[1] = value and 1 or 0
   elseif type(value) == "cdata" and kind <= BIGINT then
      -- Lua's numbers have 53 bits: the digits keep all 64.
      local whole = real_ffi.istype("uint64_t", value) and value or real_ffi.cast("int64_t", value)
      self[1] = tostring(whole):gsub("U?LL$", "")
   else
      self[1] = tonumber(value) or raise("a number is needed, not " .. tostring(value))
   end
end)

local random_string = rand.string

function param.set_rand_str(self, template)
   self[1] = cut(self, random_string(template))
end

-- What scripts declare by ffi ----------------------------------------------------------------------------------------

local exported = {
   -- Other workers go on meanwhile.
   usleep = function(microseconds) ask(SLEEP, tonumber(microseconds)) return 0 end,
   sleep = function(seconds) ask(SLEEP, tonumber(seconds) * 1e6) return 0 end,
   sb_rand_default = rand.default, sb_rand_uniform = rand.uniform, sb_rand_gaussian = rand.gaussian,
   sb_rand_special = rand.special, sb_rand_pareto = rand.pareto, sb_rand_zipfian = rand.zipfian, sb_rand_unique = rand.unique,
   sb_rand_uniform_double = rand.uniform_double, sb_rand_uniform_uint64 = rand.uniform_uint64,
   sb_rand_str = function(template, text)
      template = real_ffi.string(template)
      fill(shared, template, #template, text)
   end,
   -- For a thread_run() of the script's own. An event begins when the worker's task goes on with it.
   sb_more_events = function()
      is_over = is_over or host.is_late()
      return not is_over
   end,
   sb_event_start = function() end,
   sb_event_stop = function()
      if has_own_loop then
         is_over = not ask(STOPPED)
      end
   end,
   sb_counter_inc = function(_, kind)
      host.count(tonumber(kind))
   end,
   sb_counter_val = function(_, kind)
      return host.counted(tonumber(kind)) + 0ULL
   end,
}
-- As the original declares them: scripts declare functions with this type.
real_ffi.cdef([[
typedef enum {
   SB_CNT_OTHER, SB_CNT_READ, SB_CNT_WRITE, SB_CNT_TRX, SB_CNT_ERROR, SB_CNT_RECONNECT, SB_CNT_MAX
} sb_counter_type;
]])
usleep = exported.usleep
package.loaded.ffi = setmetatable({
   C = setmetatable({}, {
      __index = function(_, name)
         return exported[name] or real_ffi.C[name]
      end,
   }),
   gc = function(object, finalizer) return real_ffi.gc(object, guard(finalizer)) end,
   metatype = function(kind, meta)
      meta.__gc = guard(meta.__gc)
      return real_ffi.metatype(kind, meta)
   end,
}, { __index = real_ffi })
-- The original leaves it as a global too.
ffi = package.loaded.ffi

-- Executing ----------------------------------------------------------------------------------------------------------

local steps = {}

function steps.load(chunk)
   chunk()
   host.take_options(host.given)
end

function steps.top()
end

-- How a command of the script's own is executed: "parallel", "plain" or, by its global function, "global"; nil where
-- there is none.
function steps.implements(name)
   local command, func = own_command(name)
   if type(func) == "function" then
      local is_parallel = type(command) == "table" and command[2] == cmdline.PARALLEL_COMMAND
      return is_parallel and "parallel" or "plain"
   elseif type(_G[name]) == "function" and BUILT_IN[name] then
      return "global"
   end
end

-- How a command is executed: as above, "run", "options", or an error.
function steps.look(name)
   local _, func = own_command(name)
   local file = cmdline.script_path:match("[^/]*$")
   if name == "run" and type(func) ~= "function" then
      if type(event) ~= "function" then
         refuse("cannot find the event() function in " .. file, true)
      end
      return "run"
   end
   local way = steps.implements(name)
   if way == nil and name == "help" and cmdline.options then
      return "options"
   elseif way == nil and BUILT_IN[name] then
      refuse("'" .. file .. "' test does not implement the '" .. name .. "' command.")
   end
   return way or refuse("Unknown command: " .. name)
end

function steps.command(name)
   local _, func = own_command(name)
   if (func or _G[name])() == false then
      error("the command returned false", 0)
   end
end

function steps.options()
   print(cmdline.script_path:match("[^/]*$") .. " options:")
   cmdline.print_test_options()
end

local function optional(name, ...)
   local arguments = { ... }
   steps[name] = function()
      local func = _G[name]
      if type(func) == "function" then
         func(unpack(arguments))
      end
   end
end
optional("init")
optional("done")
optional("thread_init", tid)
optional("thread_done", tid)

-- Whether the run calls a hook of the script: "yes" or nothing.
function steps.has(hook)
   return type(sysbench.hooks[hook]) == "function" and "yes" or nil
end

function steps.report(hook)
   sysbench.hooks[hook](host.stat())
end

function steps.close()
   host.close_reports()
end

-- True if the worker executes events of its own accord.
function steps.has_own_loop()
   return type(thread_run) == "function" and "yes" or nil
end

local UNCAUGHT =
   "thread_run() has ended with sysbench.error.RESTART_EVENT, which a loop of the script's own catches itself"

-- A thread_run() of the script's own gets its events one after the other, by `sb_more_events`.
function steps.thread_run()
   has_own_loop = true
   thread_run(tid)
   has_own_loop = false
end

local function event_step()
   return event(tid)
end

-- Another attempt after an error that was ignored.
local function restart_step()
   local hook = sysbench.hooks.before_restart_event
   if type(hook) == "function" then
      hook(last_error)
   end
   return event(tid)
end

local function caught(problem)
   if type(problem) == "table" and problem.errcode == sysbench.error.RESTART_EVENT then
      if not has_own_loop then
         return problem
      end
      -- As in the original: only the loop that this one replaces begins events anew.
      local reason = problem.sql_errmsg and ": " .. tostring(problem.sql_errmsg) or ""
      return { message = UNCAUGHT .. reason, trace = host.traceback() }
   end
   if type(problem) == "table" and problem.refusal then
      return problem
   end
   local text = problem
   if type(problem) ~= "string" then
      text = type(problem) == "userdata" and tostring(problem) or "(not a string)"
   end
   return { message = text, trace = host.traceback() }
end

local function failed(problem)
   if type(problem) == "string" then
      -- Where memory was short, Lua calls no handler.
      return FAILED, problem
   elseif problem.errcode then
      -- One that is not of a database is the script's own.
      local is_own = problem ~= last_error
      last_error = problem
      return RESTART, is_own
   elseif problem.refusal then
      return problem.is_of_script and FAILED or REFUSED, problem.refusal
   end
   return FAILED, problem.message, problem.trace
end

-- An event that returns something ends its worker, as in the original.
local function event_ended(ok, result)
   if problem_of_finalizer then
      ok, result, problem_of_finalizer = false, caught(problem_of_finalizer), nil
   end
   if not ok then
      return failed(result)
   end
   return result and LAST or DONE
end

local function ended(ok, first)
   if problem_of_finalizer then
      ok, first, problem_of_finalizer = false, caught(problem_of_finalizer), nil
   end
   if not ok then
      return failed(first)
   end
   return DONE, first
end

-- The coroutine: executes one step after the other.
return function(step, argument)
   script_coroutine = running()
   while true do
      if step == EVENT then
         step, argument = yield(event_ended(xpcall(event_step, caught)))
      elseif step == AGAIN then
         step, argument = yield(event_ended(xpcall(restart_step, caught)))
      else
         local func = steps[step]
         step, argument = yield(ended(xpcall(function() return func(argument) end, caught)))
      end
   end
end
