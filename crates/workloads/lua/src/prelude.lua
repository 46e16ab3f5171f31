-- The interface of sysbench 1.0.20 for scripts, and what executes a script's functions.
--
-- Loaded with `host`, a table of what Rust gives. Everything of a script is executed in one coroutine. What has to wait
-- yields a request (its name and arguments) to the worker's task, which resumes it with the answer.

local host = ...
local real_ffi -- set once a literal has made LuaJIT load it
local yield, running = coroutine.yield, coroutine.running
local script_coroutine

-- 64-bit numbers of `uniform_uint64`; the literal also loads LuaJIT's ffi.
local TWO_TO_32 = 4294967296ULL
real_ffi = package.loaded.ffi

local function ask(...)
   if running() ~= script_coroutine then
      error("dyno can't wait for a database inside a coroutine of the script's own", 3)
   end
   return yield(...)
end

local function fields(defined)
   return { __index = defined }
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
   rand = host.rand,
   sql = {
      error = { NONE = 0, IGNORABLE = 1, FATAL = 2 },
      type = {
         NONE = 0, TINYINT = 1, SMALLINT = 2, INT = 3, BIGINT = 4, FLOAT = 5, DOUBLE = 6, TIME = 7, DATE = 8,
         DATETIME = 9, TIMESTAMP = 10, CHAR = 11, VARCHAR = 12,
      },
   },
}
thread_id = host.tid

function sysbench.rand.uniform_uint64()
   local high, low = sysbench.rand.halves()
   return high * TWO_TO_32 + low
end

-- Options ------------------------------------------------------------------------------------------------------------

local cmdline, ARG = sysbench.cmdline, sysbench.cmdline

-- The kind of a declared option: its third field, or what its default shows.
local function kind_of(name, spec)
   local kind, default = spec[3], spec[2]
   if kind ~= nil then
      return kind
   elseif type(default) == "boolean" then
      return ARG.ARG_BOOL
   elseif type(default) == "number" then
      return ARG.ARG_DOUBLE
   elseif type(default) == "table" then
      return ARG.ARG_LIST
   elseif default == nil or type(default) == "string" then
      return ARG.ARG_STRING
   end
   error("the option '" .. name .. "' has a default of type " .. type(default), 0)
end

local SIZES = { K = 1024, M = 1024 ^ 2, G = 1024 ^ 3, T = 1024 ^ 4 }

-- Text of the command line as a value; the second result says what it must be.
local function converted(text, kind)
   if kind == ARG.ARG_BOOL then
      local values = { [""] = true, on = true, ["true"] = true, ["1"] = true, off = false, ["false"] = false, ["0"] = false }
      return values[text], "on or off"
   elseif kind == ARG.ARG_INT then
      local number = text:match("^[+-]?%d+$") and tonumber(text)
      return number, "a whole number"
   elseif kind == ARG.ARG_DOUBLE then
      return tonumber(text), "a number"
   elseif kind == ARG.ARG_SIZE then
      local digits, unit = text:match("^(%d+)([KMGTkmgt]?)$")
      return digits and tonumber(digits) * (SIZES[unit:upper()] or 1), "a number of bytes, with K, M, G or T after it"
   elseif kind == ARG.ARG_LIST then
      local list = {}
      for part in text:gmatch("[^,]+") do
         list[#list + 1] = part:match("^%s*(.-)%s*$")
      end
      return list
   end
   return text
end

local function declared_options()
   local declared = {}
   for name, spec in pairs(cmdline.options or {}) do
      if type(spec) ~= "table" then
         error("the option '" .. name .. "' must be a table: {text, default, kind}", 0)
      end
      declared[name:gsub("%-", "_")] = { name = name, spec = spec, kind = kind_of(name, spec) }
   end
   return declared
end

-- A default is given as it is, but for text that stands for a number.
local function default_of(option)
   local default = option.spec[2]
   if option.kind == ARG.ARG_BOOL and default == nil then
      return false
   elseif option.kind == ARG.ARG_STRING or option.kind == ARG.ARG_FILE then
      return default == nil and "" or tostring(default)
   elseif option.kind == ARG.ARG_LIST then
      return default or {}
   elseif type(default) == "string" then
      return (converted(default, option.kind))
   end
   return default == nil and 0 or default
end

-- Sets sysbench.opt from the words of the command line, a list of {name, value}. An error is a sentence.
local function take_options(pairs_given)
   local declared = declared_options()
   for name, option in pairs(declared) do
      sysbench.opt[name] = default_of(option)
   end
   for _, given in ipairs(pairs_given) do
      local typed, text = given[1], given[2]
      local name = typed:gsub("%-", "_")
      local option = declared[name]
      if option then
         if text == nil and option.kind ~= ARG.ARG_BOOL then
            error("invalid option: --" .. typed .. ": it needs a value", 0)
         end
         local value, expected = converted(text or "", option.kind)
         if value == nil or value == false and option.kind ~= ARG.ARG_BOOL then
            error("invalid option: --" .. typed .. "=" .. text .. ": the value must be " .. expected, 0)
         end
         local validate = option.spec[4]
         if type(validate) == "function" and validate(value) == false then
            error("invalid option: --" .. typed .. "=" .. tostring(text) .. ": the script refuses this value", 0)
         end
         sysbench.opt[name] = value
      elseif cmdline.options ~= nil then
         error("invalid option: --" .. typed .. (text and "=" .. text or ""), 0)
      else
         sysbench.opt[name] = text == nil and true or text
      end
   end
end

local FORMS = {
   [ARG.ARG_BOOL] = "[=on|off]", [ARG.ARG_INT] = "=N", [ARG.ARG_DOUBLE] = "=N", [ARG.ARG_SIZE] = "=SIZE",
   [ARG.ARG_STRING] = "=STRING", [ARG.ARG_LIST] = "=[LIST,...]", [ARG.ARG_FILE] = "=FILENAME",
}

local function option_lines()
   local lines, widest = {}, 0
   for name, option in pairs(declared_options()) do
      local default = default_of(option)
      if option.kind == ARG.ARG_LIST then
         default = table.concat(default, ",")
      elseif option.kind == ARG.ARG_BOOL then
         default = default and "on" or "off"
      end
      local head = "--" .. name .. (FORMS[option.kind] or "")
      local shown = tostring(default) ~= "" and " [" .. tostring(default) .. "]" or ""
      lines[#lines + 1] = { head, (option.spec[1] or "") .. shown }
      widest = math.max(widest, #head)
   end
   table.sort(lines, function(a, b) return a[1] < b[1] end)
   local out = {}
   for _, line in ipairs(lines) do
      out[#out + 1] = "  " .. line[1] .. (" "):rep(widest - #line[1] + 1) .. line[2]
   end
   return table.concat(out, "\n")
end

function cmdline.print_test_options()
   print(cmdline.script_path:match("[^/]*$") .. " options:")
   print(option_lines() .. "\n")
end

local BUILT_IN = { prepare = true, run = true, cleanup = true, help = true }

local function own_command(name)
   local command = cmdline.commands and cmdline.commands[name]
   return command, type(command) == "table" and command[1] or command
end

function cmdline.command_defined(name)
   local _, func = own_command(name)
   return type(func) == "function" or BUILT_IN[name] ~= nil and type(_G[name]) == "function"
end

-- Databases ----------------------------------------------------------------------------------------------------------

local driver, connection, statement, param = {}, {}, {}, {}
local driver_meta, connection_meta = fields(driver), fields(connection)
local statement_meta, param_meta = fields(statement), fields(param)
local the_driver = setmetatable({}, driver_meta)

function sysbench.sql.driver(name)
   if name ~= nil and name ~= host.driver then
      error("this run's --db-driver is " .. host.driver .. ": a second driver ('" .. tostring(name) .. "') is not supported", 2)
   end
   return the_driver
end

function driver.name()
   return host.driver
end

-- The description of the last error of this state, for before_restart_event.
local last_error

-- Raises what the answer to a request of `self` (a connection) says, at the line of the script.
local function fail(self, query, errno, state, message, ignorable)
   self.sql_errno, self.sql_state, self.sql_errmsg = errno, state, message
   local description = {
      connection = self, query = query, sql_errno = errno, sql_state = state, sql_errmsg = message,
   }
   local hook = sysbench.hooks.sql_error_ignorable
   if not ignorable and type(hook) == "function" and hook(description) then
      ignorable = true
   end
   if ignorable then
      self.error = sysbench.sql.error.IGNORABLE
      description.errcode = sysbench.error.RESTART_EVENT
      last_error = description
      error(description, 4)
   end
   self.error = sysbench.sql.error.FATAL
   error(string.format("SQL error, errno = %d, state = '%s': %s", errno, state, message), 4)
end

-- The result of an answer that went well, or an error.
local function checked(self, query, ok, ...)
   if not ok then
      fail(self, query, ...)
   end
   self.error = sysbench.sql.error.NONE
   return ...
end

local function open(self)
   if not self.number then
      error("the connection is closed", 3)
   end
   return self.number
end

function driver.connect()
   local self = setmetatable({ error = 0, sql_errno = 0, sql_state = "", sql_errmsg = "", driver = the_driver }, connection_meta)
   local ok, number, _, message = ask("connect")
   if not ok then
      error("connection creation failed: " .. message, 2)
   end
   self.number = number
   return self
end

function connection.disconnect(self)
   if self.number then
      ask("disconnect", self.number)
      self.number = nil
   end
end

function connection.reconnect(self)
   checked(self, nil, ask("reconnect", open(self)))
end

function connection.query(self, query)
   return (checked(self, query, ask("query", open(self), tostring(query))))
end

function connection.query_row(self, query)
   local result = checked(self, query, ask("query", open(self), tostring(query)))
   local row = result and result:fetch_row()
   if row then
      return unpack(row, 1, result.nfields)
   end
   return nil
end

-- Rows of a bulk insert become statements of at most this length, as in the original.
local PACKET_BYTES = 512 * 1024

function connection.bulk_insert_init(self, query)
   self.bulk = { head = query, length = #query, rows = {} }
end

local function flush(self, query)
   local bulk = self.bulk
   if #bulk.rows == 0 then
      return
   end
   local text = bulk.head .. " " .. table.concat(bulk.rows, ",")
   bulk.rows, bulk.length = {}, #bulk.head
   return checked(self, text, ask("query", open(self), text))
end

function connection.bulk_insert_next(self, row)
   local bulk = self.bulk
   if not bulk then
      error("bulk_insert_next without bulk_insert_init", 2)
   end
   if bulk.length + #row + 1 > PACKET_BYTES then
      flush(self)
   end
   bulk.rows[#bulk.rows + 1] = row
   bulk.length = bulk.length + #row + 1
end

function connection.bulk_insert_done(self)
   if self.bulk then
      flush(self)
      self.bulk = nil
   end
end

function connection.prepare(self, query)
   local number = checked(self, query, ask("prepare", open(self), query))
   return setmetatable({ connection = self, number = number, query = query, values = {} }, statement_meta)
end

function statement.bind_create(self, kind, max_length)
   if type(kind) ~= "number" or kind < 1 or kind > 12 then
      error("unknown type of a parameter: " .. tostring(kind), 2)
   end
   return setmetatable({ kind = kind, max_length = max_length }, param_meta)
end

function statement.bind_param(self, ...)
   self.params = { ... }
   local kinds = {}
   for index, bound in ipairs(self.params) do
      kinds[index] = bound.kind
   end
   checked(self.connection, self.query, ask("bind", self.number, kinds))
end

function statement.execute(self)
   local values, params = self.values, self.params or {}
   for index = 1, #params do
      values[index] = params[index].value
   end
   return (checked(self.connection, self.query, ask("execute", self.number, values, #params)))
end

function statement.close(self)
   self.params = nil
end

local TEXT = sysbench.sql.type.TIME

-- `set(nil)` is NULL.
function param.set(self, value)
   if value ~= nil then
      local is_text = self.kind >= TEXT
      if is_text then
         value = tostring(value)
         if self.max_length and #value > self.max_length then
            value = value:sub(1, self.max_length)
         end
      else
         local number = tonumber(value)
         if not number then
            error("a number is needed, not " .. tostring(value), 2)
         end
         value = number
         if self.kind <= sysbench.sql.type.BIGINT then
            value = number < 0 and math.ceil(number) or math.floor(number)
         end
      end
   end
   self.value = value
end

function param.set_rand_str(self, template)
   self.value = sysbench.rand.string(template)
end

-- What scripts declare by ffi ----------------------------------------------------------------------------------------

local rand = sysbench.rand
local function not_there(name)
   return function()
      error(name .. "() can't be called: dyno's README of Lua scripts says what to use instead", 2)
   end
end

local exported = {
   -- Other workers go on meanwhile.
   usleep = function(microseconds)
      ask("sleep", tonumber(microseconds))
      return 0
   end,
   sb_rand_default = rand.default, sb_rand_uniform = rand.uniform, sb_rand_gaussian = rand.gaussian,
   sb_rand_special = rand.special, sb_rand_pareto = rand.pareto, sb_rand_unique = rand.unique,
   sb_rand_uniform_double = rand.uniform_double, sb_rand_uniform_uint64 = rand.uniform_uint64,
}
for _, name in ipairs({ "sb_event_start", "sb_event_stop", "sb_more_events", "sb_counter_inc", "sb_counter_val" }) do
   exported[name] = not_there(name)
end
usleep = exported.usleep
package.loaded.ffi = setmetatable({
   C = setmetatable({}, {
      __index = function(_, name)
         return exported[name] or real_ffi.C[name]
      end,
   }),
}, { __index = real_ffi })

-- What 1.0.20 still has of 0.5's globals.
sb_rand, sb_rand_uniform, sb_rand_gaussian = rand.default, rand.uniform, rand.gaussian
sb_rand_special, sb_rand_str, sb_rand_uniq = rand.special, rand.string, rand.unique
function sb_rnd()
   return rand.uniform(0, 1073741823)
end

-- 0.5's functions, all on one connection, which is opened when it is needed. Tail calls, so that errors have the script's line.
DB_ERROR_NONE, DB_ERROR_RESTART_TRANSACTION, DB_ERROR_FAILED = 0, 1, 2
test = cmdline.script_path
mysql_table_engine = "innodb"

local old_connection
local function connected()
   old_connection = old_connection or driver.connect()
   return old_connection
end

function db_disconnect()
   if old_connection then
      old_connection:disconnect()
      old_connection = nil
   end
end

function db_connect()
   db_disconnect()
   connected()
end

function db_query(query)
   return connected():query(query)
end

function db_bulk_insert_init(query)
   return connected():bulk_insert_init(query)
end

function db_bulk_insert_next(row)
   return connected():bulk_insert_next(row)
end

function db_bulk_insert_done()
   return connected():bulk_insert_done()
end

function db_prepare(query)
   return connected():prepare(query)
end

-- Values are read from the table each time the statement is executed.
function db_bind_param(prepared, values)
   local bound = {}
   for index, value in ipairs(values) do
      local kind = type(value) == "number" and sysbench.sql.type.BIGINT or sysbench.sql.type.VARCHAR
      bound[index] = prepared:bind_create(kind)
   end
   prepared:bind_param(unpack(bound))
   prepared.bound_values = values
end

function db_execute(prepared)
   for index, bound in ipairs(prepared.bound_values and prepared.params or {}) do
      bound:set(prepared.bound_values[index])
   end
   return prepared:execute()
end

function db_bind_result()
end
db_store_results, db_free_results = db_bind_result, db_bind_result

function db_close(prepared)
   return prepared:close()
end

-- 0.5's options are globals: those that are given, and the general ones by its names.
local OLD_NAMES = { num_threads = "threads", max_time = "time", max_requests = "events", db_driver = "db_driver" }
local as_global = {}
for _, given in ipairs(host.given) do
   as_global[given[1]:gsub("%-", "_")] = given[2] == nil and true or given[2]
end
setmetatable(_G, {
   __index = function(_, name)
      local value = as_global[name]
      if value == nil and type(name) == "string" then
         local is_of_driver = name:match("^mysql_") or name:match("^pgsql_")
         value = sysbench.opt[OLD_NAMES[name] or is_of_driver and name]
      end
      -- 0.5 had no lists.
      return type(value) == "table" and table.concat(value, ",") or value
   end,
})

-- Histograms ---------------------------------------------------------------------------------------------------------

local histogram = {}
local histogram_meta = fields(histogram)
sysbench.histogram = {}

function sysbench.histogram.new(size, min, max)
   local deduct = math.log(min)
   local self = { size = size, deduct = deduct, mult = (size - 1) / (math.log(max) - deduct), counts = {} }
   return setmetatable(self, histogram_meta)
end

function histogram.update(self, value)
   local place = math.floor((math.log(value) - self.deduct) * self.mult + 0.5)
   place = math.max(0, math.min(place, self.size - 1))
   self.counts[place] = (self.counts[place] or 0) + 1
end

local STARS = 40

function histogram.print(self)
   local most = 0
   for _, count in pairs(self.counts) do
      most = math.max(most, count)
   end
   print("       value  ------------- distribution ------------- count")
   for place = 0, self.size - 1 do
      local count = self.counts[place]
      if count then
         local stars = ("*"):rep(math.floor(count * STARS / most + 0.5))
         print(string.format("%12.3f |%-40s %d", math.exp(place / self.mult + self.deduct), stars, count))
      end
   end
end

-- Executing ----------------------------------------------------------------------------------------------------------

local steps = {}

function steps.load(chunk)
   chunk()
   take_options(host.given)
   if type(thread_run) == "function" then
      error("a thread_run() of the script's own is not supported: write an event() function", 0)
   end
end

function steps.top()
end

-- How a command of the script's own is executed: "parallel" or "plain"; nil where there is none.
function steps.implements(name)
   local command, func = own_command(name)
   if type(func) == "function" then
      local is_parallel = type(command) == "table" and command[2] == cmdline.PARALLEL_COMMAND
      return is_parallel and "parallel" or "plain"
   elseif type(_G[name]) == "function" and BUILT_IN[name] then
      return "plain"
   end
end

-- How a command is executed: "parallel", "plain", "run", or an error.
function steps.look(name)
   local _, func = own_command(name)
   if type(func) == "function" then
      return steps.implements(name)
   elseif name == "run" then
      if type(event) ~= "function" then
         error("cannot find the event() function in " .. cmdline.script_path, 0)
      end
      local ignored = {}
      for _, hook in ipairs({ "report_intermediate", "report_cumulative" }) do
         if sysbench.hooks[hook] then
            ignored[#ignored + 1] = hook
         end
      end
      return "run", table.concat(ignored, ", ")
   elseif type(_G[name]) == "function" and BUILT_IN[name] then
      return "plain"
   elseif name == "help" and cmdline.options then
      return "options"
   elseif BUILT_IN[name] then
      error("'" .. cmdline.script_path:match("[^/]*$") .. "' test does not implement the '" .. name .. "' command.", 0)
   end
   error("Unknown command: " .. name, 0)
end

function steps.command(name)
   local _, func = own_command(name)
   if (func or _G[name])() == false then
      error("the command returned false", 0)
   end
end

function steps.options()
   cmdline.print_test_options()
end

local function optional(name)
   steps[name] = function()
      local func = _G[name]
      if type(func) == "function" then
         func(host.tid)
      end
   end
end
optional("init")
optional("done")
optional("thread_init")
optional("thread_done")

-- The original draws a number between two events of a thread.
local draw, has_drawn = sysbench.rand.uniform_uint64, false

function steps.event()
   if has_drawn then
      draw()
   end
   has_drawn = true
   event(host.tid)
end

-- Another attempt after an error that was ignored.
function steps.restart()
   local hook = sysbench.hooks.before_restart_event
   if type(hook) == "function" then
      hook(last_error)
   end
   event(host.tid)
end

local function caught(problem)
   if type(problem) == "table" and problem.errcode == sysbench.error.RESTART_EVENT then
      return problem
   end
   local text = problem
   if type(problem) ~= "string" then
      text = type(problem) == "userdata" and tostring(problem) or "(not a string)"
   end
   return { message = text, trace = host.traceback() }
end

local function ended(ok, first, second)
   if ok then
      return "done", first, second
   elseif type(first) == "string" then
      -- Where memory was short, Lua calls no handler.
      return "failed", first
   elseif first.errcode then
      return "restart"
   end
   return "failed", first.message, first.trace
end

-- The coroutine: executes one step after the other.
return function(name, argument)
   script_coroutine = running()
   while true do
      name, argument = yield(ended(xpcall(function() return steps[name](argument) end, caught)))
   end
end
