-- Functions of LuaJIT in Lua. `dofile` and `require`: what a file does at its top level may wait for a database, which
-- nothing below a function of C can. `print`: in one piece, so that lines of workers on several threads stay whole.
-- Loaded after the prelude.

local out = io.stdout

function print(...)
   local texts = { ... }
   -- The global of that moment, as in LuaJIT.
   for i = 1, select("#", ...) do texts[i] = tostring(texts[i]) end
   out:write(table.concat(texts, "\t") .. "\n")
end

local package, loaded = package, package.loaded
local error, ipairs, loadfile, pcall, select, tostring, type = error, ipairs, loadfile, pcall, select, tostring, type

function dofile(name)
   local chunk, problem = loadfile(name)
   if not chunk then
      error(problem, 0)
   end
   return chunk()
end

-- Stands for a module while it is loaded, and after it has failed. No table: `module()` would take that for the module.
local function loading()
end

-- Errors have the line that called `require`, or none.
local function loader_of(name)
   local loaders = package.loaders
   if type(loaders) ~= "table" then
      error("'package.loaders' must be a table", 3)
   end
   local tried = ""
   for _, look in ipairs(loaders) do
      local ok, found = pcall(look, name)
      if not ok then
         error(found, 0)
      elseif type(found) == "function" then
         return found
      elseif type(found) == "string" or type(found) == "number" then
         tried = tried .. found
      end
   end
   error("module '" .. name .. "' not found:" .. tried, 3)
end

function require(...)
   local name = ...
   if type(name) == "number" then
      name = tostring(name)
   elseif type(name) ~= "string" then
      local got = select("#", ...) == 0 and "no value" or type(name)
      error("bad argument #1 to 'require' (string expected, got " .. got .. ")", 2)
   end
   if loaded[name] == loading then
      error("loop or previous error loading module '" .. name .. "'", 2)
   elseif loaded[name] then
      return loaded[name]
   end
   local load = loader_of(name)
   loaded[name] = loading
   local result = load(name)
   if result ~= nil then
      loaded[name] = result
   elseif loaded[name] == loading then
      loaded[name] = true
   end
   return loaded[name]
end
