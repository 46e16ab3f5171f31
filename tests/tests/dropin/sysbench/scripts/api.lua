#!/usr/bin/env sysbench
-- What each function gives that needs no database.
local ffi = require("ffi")
ffi.cdef [[
void sb_counter_inc(int, int);
uint64_t sb_counter_val(int, int);
int usleep(unsigned int);
unsigned int sleep(unsigned int);
]]
sysbench.cmdline.options = {
   flag = {"A switch", false}, other_flag = {"A switch that is on", true}, count = {"A number", 3},
   part = {"A fraction", 0.5}, word = {"A text", "x"}, empty = {"A text"}, list = {"A list", {"a", "b"}},
   size = {"A size", "1M", sysbench.cmdline.ARG_SIZE}, whole = {"An integer", 7, sysbench.cmdline.ARG_INT},
   checked = {"Always right", 2, sysbench.cmdline.ARG_INT, function() return true end},
}
function say(name, ...)
   local all = {}
   for i = 1, select("#", ...) do
      local v = select(i, ...)
      all[i] = type(v) == "number" and string.format("%.14g", v) or tostring(v)
   end
   -- In one piece: print writes the end of its line apart, and threads of the original meet there.
   io.write("say " .. name .. ": " .. table.concat(all, " ") .. "\n")
end
function own() say("own", sysbench.cmdline.command, sysbench.opt.count) end
sysbench.cmdline.commands = { own = {own}, many = {function() say("many", 1) end, sysbench.cmdline.PARALLEL_COMMAND} }

local function times(n, f, ...)
   local all = {}
   for i = 1, n do all[i] = f(...) end
   return unpack(all)
end

function init() state = "init" say("init", sysbench.tid, tostring(thread_id)) end
function thread_init(id) say("thread_init", id, sysbench.tid, tostring(state)) end
function thread_done(id) say("thread_done", id, tostring(state)) end
function done() say("done", state) end
function help() say("help", 1) sysbench.cmdline.print_test_options() end

function event(id)
   local opt, rand = sysbench.opt, sysbench.rand
   say("event", id, sysbench.tid, sysbench.version)
   say("cmdline", sysbench.cmdline.command, sysbench.cmdline.script_path, #sysbench.cmdline.argv > 3)
   say("defined", sysbench.cmdline.command_defined("own"), sysbench.cmdline.command_defined("none"))
   say("kinds", sysbench.cmdline.ARG_NULL, sysbench.cmdline.ARG_BOOL, sysbench.cmdline.ARG_INT, sysbench.cmdline.ARG_SIZE,
      sysbench.cmdline.ARG_DOUBLE, sysbench.cmdline.ARG_STRING, sysbench.cmdline.ARG_LIST, sysbench.cmdline.ARG_FILE,
      sysbench.cmdline.ARG_MAX)
   say("opt", opt.flag, opt.other_flag, opt.count, opt.part, opt.word, tostring(opt.empty), table.concat(opt.list, "+"),
      opt.size, opt.whole, opt.checked, opt.threads, opt.events, opt.time, opt.percentile, opt.rand_type, opt.db_ps_mode)
   say("types", type(opt.flag), type(opt.count), type(opt.word), type(opt.list), type(opt.size), type(opt.threads))
   say("default", times(5, rand.default, 1, 1000))
   say("uniform", times(5, rand.uniform, 1, 1000))
   say("gaussian", times(5, rand.gaussian, 1, 1000))
   say("special", times(5, rand.special, 1, 1000))
   say("pareto", times(5, rand.pareto, 1, 1000))
   say("uint64", times(3, rand.uniform_uint64))
   say("double", times(3, rand.uniform_double))
   say("string", rand.string("###-@@@ x#"), rand.string(""))
   say("unique", rand.unique() ~= rand.unique())
   say("legacy", sb_rand(1, 9), sb_rand_uniform(1, 9), sb_rand_gaussian(1, 9), sb_rand_special(1, 9), sb_rand_str("#@"))
   say("errors", sysbench.error.NONE, sysbench.error.RESTART_EVENT, sysbench.sql.error.NONE, sysbench.sql.error.IGNORABLE,
      sysbench.sql.error.FATAL)
   local kinds = sysbench.sql.type
   say("sql types", kinds.NONE, kinds.TINYINT, kinds.SMALLINT, kinds.INT, kinds.BIGINT, kinds.FLOAT, kinds.DOUBLE, kinds.TIME,
      kinds.DATE, kinds.DATETIME, kinds.TIMESTAMP, kinds.CHAR, kinds.VARCHAR)
   ffi.C.sb_counter_inc(sysbench.tid, ffi.C.SB_CNT_ERROR)
   say("counters", ffi.C.sb_counter_val(sysbench.tid, 4), ffi.C.sb_counter_val(sysbench.tid, 1), ffi.C.SB_CNT_TRX)
   say("usleep", ffi.C.usleep(10), ffi.C.sleep(0))
   local h = sysbench.histogram.new(20, 1, 100)
   for i = 1, 100 do h:update(i) end
   h:print()
   return false
end
