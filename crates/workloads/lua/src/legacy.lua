-- What 1.0.20 still has of 0.5's interface, and what 0.5 had beside it. Loaded after the prelude, with the same `host`.

local host = ...
local rand, cmdline = sysbench.rand, sysbench.cmdline
local driver = host.the_driver

-- What 1.0.20 still has of 0.5's globals.
sb_rand, sb_rand_uniform, sb_rand_gaussian = rand.default, rand.uniform, rand.gaussian
sb_rand_special, sb_rand_str = rand.special, rand.string
function sb_rnd()
   return tonumber(rand.uniform_uint64() % 4294967296ULL)
end

-- As in the original, which draws until a number lies between the two.
function sb_rand_uniq(low, high)
   low, high = low or 0, high or 4294967295
   local drawn
   repeat
      drawn = rand.unique()
   until drawn >= low and drawn <= high
   return drawn
end

-- 0.5's functions, all on one connection, which is opened when it is needed. As in the original they give no rows.
DB_ERROR_NONE, DB_ERROR_RESTART_TRANSACTION, DB_ERROR_FAILED = 0, 1, 2
test = cmdline.script_path

local old_connection
local function connected()
   if not old_connection then
      host.use_database()
      old_connection = driver.connect()
   end
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
   connected():query(query)
end

for _, step in ipairs({ "init", "next", "done" }) do
   _G["db_bulk_insert_" .. step] = function(text)
      local connection = step == "init" and connected() or old_connection or host.raise("Uninitialized database connection")
      connection["bulk_insert_" .. step](connection, text)
   end
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

-- Of a statement without rows, too.
local RESULT = {}

function db_execute(prepared)
   for index, bound in ipairs(prepared.bound_values and prepared[2] or {}) do
      bound:set(prepared.bound_values[index])
   end
   prepared:execute()
   return RESULT
end

function db_bind_result()
end
db_store_results, db_free_results = db_bind_result, db_bind_result

function db_close(prepared)
   prepared:close()
end

-- Of general options 1.0.20 still has 0.5's names.
local opt = sysbench.opt
opt.num_threads, opt.max_time, opt.max_requests = opt.threads, opt.time, opt.events

-- 0.5's options are globals: those that are given and, of a script that declares none, the general ones.
local as_global = { mysql_table_engine = "innodb", myisam_max_rows = 1000000 }
for _, given in ipairs(host.given) do
   as_global[given[1]:gsub("%-", "_")] = given[2] == nil and true or given[2]
end
setmetatable(_G, {
   __index = function(_, name)
      local value = as_global[name]
      if value == nil and cmdline.options == nil then
         value = opt[name]
      end
      -- 0.5 had no lists.
      return type(value) == "table" and table.concat(value, ",") or value
   end,
})
