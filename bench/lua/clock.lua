#!/usr/bin/env sysbench
-- How long answers are on their way, by the clock of the server that sends them: `clock_ns()` of dyno-nullserver is
-- CLOCK_MONOTONIC of the moment at which it writes the answer. Each thread leaves a file with its waits in ns.

local ffi = require("ffi")
ffi.cdef [[
typedef struct { long tv_sec; long tv_nsec; } moment;
int clock_gettime(int clock, moment *at);
]]
local CLOCK_MONOTONIC = 1

sysbench.cmdline.options = {
   waits = { "Prefix of the files with the waits of each thread", "waits." },
   skip = { "First events of each thread that are left out", 300 },
}

local connection, moment, waits, events

function thread_init()
   connection = sysbench.sql.driver():connect()
   moment, waits, events = ffi.new("moment"), {}, 0
end

function event()
   local sent_ns = connection:query_row("SELECT clock_ns()")
   ffi.C.clock_gettime(CLOCK_MONOTONIC, moment)
   events = events + 1
   if events > sysbench.opt.skip then
      waits[#waits + 1] = tonumber(moment.tv_sec) * 1e9 + tonumber(moment.tv_nsec) - tonumber(sent_ns)
   end
end

function thread_done()
   local file = assert(io.open(sysbench.opt.waits .. sysbench.tid, "w"))
   for _, wait in ipairs(waits) do
      file:write(("%d\n"):format(wait))
   end
   file:close()
   connection:disconnect()
end
