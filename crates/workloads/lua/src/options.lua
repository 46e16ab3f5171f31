-- `sysbench.cmdline.options`: the options that a script declares. Loaded after the prelude, with the same `host`.

local host = ...
local refuse = host.refuse
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
   if text == "" and (kind == ARG.ARG_INT or kind == ARG.ARG_DOUBLE or kind == ARG.ARG_SIZE) then
      return 0
   elseif kind == ARG.ARG_BOOL then
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

-- A default is given as it is, but for text that stands for another kind and for a number that stands for on or off.
local function default_of(option)
   local default = option.spec[2]
   if option.kind == ARG.ARG_BOOL and default == nil then
      return true
   elseif option.kind == ARG.ARG_STRING or option.kind == ARG.ARG_FILE then
      return default == nil and "" or tostring(default)
   elseif option.kind == ARG.ARG_LIST and type(default) ~= "string" then
      return default or {}
   elseif type(default) == "string" or option.kind == ARG.ARG_BOOL and type(default) == "number" then
      return (converted(tostring(default), option.kind))
   end
   return default == nil and 0 or default
end

-- Sets sysbench.opt from the words of the command line, a list of {name, value}. An error is a sentence.
function host.take_options(pairs_given)
   local declared = declared_options()
   for name, option in pairs(declared) do
      sysbench.opt[name] = default_of(option)
   end
   for _, given in ipairs(pairs_given) do
      local typed, text = given[1], given[2]
      local name = typed:gsub("%-", "_")
      local option = declared[name]
      if option then
         local value, expected = converted(text or "", option.kind)
         if value == nil or value == false and option.kind ~= ARG.ARG_BOOL then
            refuse("invalid option: --" .. typed .. "=" .. text .. ": the value must be " .. expected)
         end
         -- Given the name and the text, which the original has as C strings: `ffi.string` takes both.
         local validate = option.spec[4]
         if type(validate) == "function" and not validate(option.name, text or "") then
            refuse("invalid option: --" .. typed .. (text and "=" .. text or ""))
         end
         sysbench.opt[name] = value
      elseif cmdline.options ~= nil then
         refuse("invalid option: --" .. typed .. (text and "=" .. text or ""))
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
   for _, option in pairs(declared_options()) do
      local default = default_of(option)
      if option.kind == ARG.ARG_LIST then
         default = table.concat(default, ",")
      elseif option.kind == ARG.ARG_BOOL then
         default = default and "on" or "off"
      end
      local head = "--" .. option.name .. (FORMS[option.kind] or "")
      local written = option.spec[2]
      default = type(written) == "string" and written or default
      local shown = written ~= nil and tostring(default) ~= "" and " [" .. tostring(default) .. "]" or ""
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
   print(option_lines() .. "\n")
end
