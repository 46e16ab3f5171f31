-- What a script's options come to, and what its functions are given.

local cmdline = sysbench.cmdline
cmdline.options = {
   on_off = { "A switch without a default", nil, cmdline.ARG_BOOL },
   ["a-dash"] = { "A name with a dash", "x" },
   number = { "A number", 3 },
   off = { "A switch", false },
   whole = { "A number without a default", nil, cmdline.ARG_INT },
   word = { "A text without a default", nil, cmdline.ARG_STRING },
   list = { "A list", { 1, 2 } },
   part = { "A fraction", 1.5 },
}

function prepare()
   print("say argv", cmdline.argv[-1], type(cmdline.argv[0]), cmdline.argv[1])
   for _, name in ipairs({ "on_off", "a-dash", "a_dash", "number", "off", "whole", "word", "list", "part" }) do
      local value = sysbench.opt[name]
      print("say", name, type(value), type(value) == "table" and #value or tostring(value))
   end
end

local function says(name)
   _G[name] = function(...) print("say", name, select("#", ...), ...) end
end
says("init")
says("thread_init")
says("event")
says("thread_done")
says("done")
