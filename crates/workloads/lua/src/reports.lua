-- What a script prints itself: histograms, and the reports that its hooks may name. Loaded after the prelude, with the
-- same `host`.

local host = ...

local function fields(defined)
   return { __index = defined }
end

-- Histograms ---------------------------------------------------------------------------------------------------------

local histogram = {}
local histogram_meta = fields(histogram)
sysbench.histogram = {}

function sysbench.histogram.new(size, min, max)
   local deduct = math.log(min)
   local self = { size = size, deduct = deduct, mult = (size - 1) / (math.log(max) - deduct), counts = {} }
   return setmetatable(self, histogram_meta)
end

-- The original draws a number for the part of its histogram that counts.
local draw = sysbench.rand.uniform_double

function histogram.update(self, value)
   draw()
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

-- Reports ------------------------------------------------------------------------------------------------------------

-- All lines and fields are those of 1.0.20.
function sysbench.report_default(stat)
   local seconds = stat.time_interval
   print(string.format(
      "[ %.0fs ] thds: %u tps: %4.2f qps: %4.2f (r/w/o: %4.2f/%4.2f/%4.2f) lat (ms,%u%%): %4.2f err/s %4.2f reconn/s: %4.2f",
      stat.time_total, stat.threads_running, stat.events / seconds, (stat.reads + stat.writes + stat.other) / seconds,
      stat.reads / seconds, stat.writes / seconds, stat.other / seconds, sysbench.opt.percentile,
      stat.latency_pct * 1000, stat.errors / seconds, stat.reconnects / seconds
   ))
end

function sysbench.report_csv(stat)
   local seconds = stat.time_interval
   print(string.format(
      "%.0f,%u,%4.2f,%4.2f,%4.2f,%4.2f,%4.2f,%4.2f,%4.2f,%4.2f",
      stat.time_total, stat.threads_running, stat.events / seconds, (stat.reads + stat.writes + stat.other) / seconds,
      stat.reads / seconds, stat.writes / seconds, stat.other / seconds, stat.latency_pct * 1000,
      stat.errors / seconds, stat.reconnects / seconds
   ))
end

local JSON = [[
  {
    "time": %4.0f,
    "threads": %u,
    "tps": %4.2f,
    "qps": {
      "total": %4.2f,
      "reads": %4.2f,
      "writes": %4.2f,
      "other": %4.2f
    },
    "latency": %4.2f,
    "errors": %4.2f,
    "reconnects": %4.2f
  }]]

local has_json = false

function sysbench.report_json(stat)
   local seconds = stat.time_interval
   io.write(has_json and ",\n" or "[\n", string.format(
      JSON, stat.time_total, stat.threads_running, stat.events / seconds,
      (stat.reads + stat.writes + stat.other) / seconds, stat.reads / seconds, stat.writes / seconds,
      stat.other / seconds, stat.latency_pct * 1000, stat.errors / seconds, stat.reconnects / seconds
   ))
   has_json = true
end

-- A list of JSON ends with the state that has begun it.
function host.close_reports()
   if has_json then
      io.write("\n]\n")
      has_json = false
   end
end
