#!/usr/bin/env sysbench
-- TPC-C-like load for measuring clients: the five transactions of TPC-C 5.11 in the statements of one session each, without
-- keying and think times. Not comparable with TPC results.
--
-- Statements that change rows are prepared. Those whose values the script needs are text, as sysbench 1.0.20 can't fetch
-- rows of prepared ones. Money is in cents, as its DOUBLE parameters arrive as 0 with MariaDB's client library.

sysbench.cmdline.options = {
   warehouses = {"Warehouses", 4}, items = {"Items, and rows of stock in a warehouse", 10000},
   customers = {"Customers in a district", 300},
}

local DISTRICTS = 10
local NAMES = { "BAR", "OUGHT", "ABLE", "PRI", "PRES", "ESE", "ANTI", "CALLY", "ATION", "EING" }
local random = sysbench.rand.uniform
local opt -- known once the options have been read

local function last_name(number)
   local digits = { math.floor(number / 100) % 10, math.floor(number / 10) % 10, number % 10 }
   return NAMES[digits[1] + 1] .. NAMES[digits[2] + 1] .. NAMES[digits[3] + 1]
end

-- NURand of clause 2.1.6, with C = 7.
local function nurand(a, low, high)
   return (bit.bor(random(0, a), random(low, high)) + 7) % (high - low + 1) + low
end

local TABLES = {
   "warehouse (w_id INT PRIMARY KEY, w_ytd BIGINT, w_tax INT, w_name VARCHAR(10), w_zip CHAR(9))",
   "district (d_w_id INT, d_id INT, d_ytd BIGINT, d_tax INT, d_next_o_id INT, d_name VARCHAR(10), PRIMARY KEY (d_w_id, d_id))",
   "customer (c_w_id INT, c_d_id INT, c_id INT, c_last VARCHAR(16), c_first VARCHAR(16), c_credit CHAR(2), c_discount INT, " ..
      "c_balance BIGINT, c_ytd_payment BIGINT, c_payment_cnt INT, c_delivery_cnt INT, c_data VARCHAR(500), " ..
      "PRIMARY KEY (c_w_id, c_d_id, c_id), KEY (c_w_id, c_d_id, c_last, c_first))",
   "history (h_c_id INT, h_c_d_id INT, h_c_w_id INT, h_d_id INT, h_w_id INT, h_amount BIGINT, h_data VARCHAR(24))",
   "new_order (no_w_id INT, no_d_id INT, no_o_id INT, PRIMARY KEY (no_w_id, no_d_id, no_o_id))",
   "oorder (o_w_id INT, o_d_id INT, o_id INT, o_c_id INT, o_carrier_id INT, o_ol_cnt INT, " ..
      "PRIMARY KEY (o_w_id, o_d_id, o_id), KEY (o_w_id, o_d_id, o_c_id, o_id))",
   "order_line (ol_w_id INT, ol_d_id INT, ol_o_id INT, ol_number INT, ol_i_id INT, ol_supply_w_id INT, ol_quantity INT, " ..
      "ol_amount BIGINT, ol_delivered INT, ol_dist_info CHAR(24), PRIMARY KEY (ol_w_id, ol_d_id, ol_o_id, ol_number))",
   "item (i_id INT PRIMARY KEY, i_price INT, i_name VARCHAR(24), i_data VARCHAR(50))",
   "stock (s_w_id INT, s_i_id INT, s_quantity INT, s_ytd BIGINT, s_order_cnt INT, s_remote_cnt INT, s_dist CHAR(24), " ..
      "s_data VARCHAR(50), PRIMARY KEY (s_w_id, s_i_id))",
}

local function fill(con, name, count, row)
   con:bulk_insert_init("INSERT INTO " .. name .. " VALUES")
   for number = 1, count do con:bulk_insert_next(row(number)) end
   con:bulk_insert_done()
end

local function load_warehouse(con, w)
   local text = sysbench.rand.string
   con:query(string.format("INSERT INTO warehouse VALUES (%d, 30000000, %d, '%s', '%s')", w, random(0, 2000), text("@@@@@@@@"), text("####11111")))
   fill(con, "stock", opt.items, function(i)
      return string.format("(%d, %d, %d, 0, 0, 0, '%s', '%s')", w, i, random(10, 100), text("@@@@@@@@@@@@@@@@@@@@@@@@"), text("@@@@@@@@@@@@@@@@@@@@@@@@@@@@"))
   end)
   for d = 1, DISTRICTS do
      con:query(string.format("INSERT INTO district VALUES (%d, %d, 3000000, %d, %d, '%s')", w, d, random(0, 2000), opt.customers + 1, text("@@@@@@@@")))
      fill(con, "customer", opt.customers, function(c)
         return string.format("(%d, %d, %d, '%s', '%s', '%s', %d, -1000, 1000, 1, 0, '%s')", w, d, c, last_name((c - 1) % 1000), text("@@@@@@@@"),
            random(1, 10) == 1 and "BC" or "GC", random(0, 5000), text(("@"):rep(300)))
      end)
      local undelivered = math.floor(opt.customers * 0.7)
      fill(con, "oorder", opt.customers, function(o) return string.format("(%d, %d, %d, %d, %s, 10)", w, d, o, o, o <= undelivered and "5" or "NULL") end)
      fill(con, "new_order", opt.customers - undelivered, function(o) return string.format("(%d, %d, %d)", w, d, o + undelivered) end)
      fill(con, "order_line", opt.customers * 10, function(n)
         return string.format("(%d, %d, %d, %d, %d, %d, 5, %d, 0, '%s')", w, d, math.floor((n - 1) / 10) + 1, (n - 1) % 10 + 1, random(1, opt.items), w,
            random(1, 999999), text("@@@@@@@@@@@@@@@@@@@@@@@@"))
      end)
   end
end

function prepare()
   opt = sysbench.opt
   local con = sysbench.sql.driver():connect()
   for _, definition in ipairs(TABLES) do con:query("CREATE TABLE " .. definition) end
   fill(con, "item", opt.items, function(i)
      return string.format("(%d, %d, '%s', '%s')", i, random(100, 10000), sysbench.rand.string("@@@@@@@@@@@@@@"), sysbench.rand.string(("@"):rep(30)))
   end)
   for w = 1, opt.warehouses do load_warehouse(con, w) end
end

function cleanup()
   local con = sysbench.sql.driver():connect()
   for _, definition in ipairs(TABLES) do con:query("DROP TABLE IF EXISTS " .. definition:match("^%w+_?%w*")) end
end

-- A prepared statement with parameters of these kinds: `i` a number, or the length of a text.
local function prepared(text, ...)
   local statement, params = con:prepare(text), {}
   for index, kind in ipairs({ ... }) do
      local is_number = kind == "i"
      params[index] = statement:bind_create(is_number and sysbench.sql.type.BIGINT or sysbench.sql.type.VARCHAR, not is_number and kind or nil)
   end
   statement:bind_param(unpack(params))
   return function(...)
      for index = 1, #params do params[index]:set((select(index, ...))) end
      return statement:execute()
   end
end

local P = {}

function thread_init()
   opt = sysbench.opt
   con = sysbench.sql.driver():connect()
   P.begin, P.commit, P.rollback = prepared("BEGIN"), prepared("COMMIT"), prepared("ROLLBACK")
   P.next_order = prepared("UPDATE district SET d_next_o_id = d_next_o_id + 1 WHERE d_w_id = ? AND d_id = ?", "i", "i")
   P.order = prepared("INSERT INTO oorder VALUES (?, ?, ?, ?, NULL, ?)", "i", "i", "i", "i", "i")
   P.new_order = prepared("INSERT INTO new_order VALUES (?, ?, ?)", "i", "i", "i")
   P.stock = prepared(
      "UPDATE stock SET s_quantity = ?, s_ytd = s_ytd + ?, s_order_cnt = s_order_cnt + 1, s_remote_cnt = s_remote_cnt + ? WHERE s_w_id = ? AND s_i_id = ?",
      "i", "i", "i", "i", "i")
   P.line = prepared("INSERT INTO order_line VALUES (?, ?, ?, ?, ?, ?, ?, ?, NULL, ?)", "i", "i", "i", "i", "i", "i", "i", "i", 24)
   P.district_paid = prepared("UPDATE district SET d_ytd = d_ytd + ? WHERE d_w_id = ? AND d_id = ?", "i", "i", "i")
   P.warehouse_paid = prepared("UPDATE warehouse SET w_ytd = w_ytd + ? WHERE w_id = ?", "i", "i")
   P.customer_pays = prepared(
      "UPDATE customer SET c_balance = c_balance - ?, c_ytd_payment = c_ytd_payment + ?, c_payment_cnt = c_payment_cnt + 1 " ..
      "WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?", "i", "i", "i", "i", "i")
   P.customer_data = prepared("UPDATE customer SET c_data = ? WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?", 500, "i", "i", "i")
   P.history = prepared("INSERT INTO history VALUES (?, ?, ?, ?, ?, ?, ?)", "i", "i", "i", "i", "i", "i", 24)
   P.last_lines = prepared("SELECT ol_i_id, ol_supply_w_id, ol_quantity, ol_amount FROM order_line WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id = ?", "i", "i", "i")
   P.take = prepared("DELETE FROM new_order WHERE no_w_id = ? AND no_d_id = ? AND no_o_id = ?", "i", "i", "i")
   P.carrier = prepared("UPDATE oorder SET o_carrier_id = ? WHERE o_w_id = ? AND o_d_id = ? AND o_id = ?", "i", "i", "i", "i")
   P.delivered = prepared("UPDATE order_line SET ol_delivered = 1 WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id = ?", "i", "i", "i")
   P.credit = prepared(
      "UPDATE customer SET c_balance = c_balance + ?, c_delivery_cnt = c_delivery_cnt + 1 WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?", "i", "i", "i", "i")
   P.low_stock = prepared(
      "SELECT count(DISTINCT s_i_id) FROM order_line JOIN stock ON s_w_id = ol_w_id AND s_i_id = ol_i_id WHERE ol_w_id = ? AND ol_d_id = ? " ..
      "AND ol_o_id BETWEEN ? AND ? AND s_quantity < ?", "i", "i", "i", "i", "i")
end

-- The values of the first row, if there is one: the original's `query_row` fails where there is none.
local function row(text, ...)
   local found = con:query(string.format(text, ...))
   if found.nrows > 0 then return unpack(found:fetch_row(), 1, found.nfields) end
end

local function other_warehouse(w)
   if opt.warehouses == 1 then return w end
   local other = random(1, opt.warehouses - 1)
   return other >= w and other + 1 or other
end

local function new_order(w, d)
   local c = nurand(1023, 1, opt.customers)
   local is_wrong = random(1, 100) == 1
   local lines = {}
   for number = 1, random(5, 15) do
      local supply = random(1, 100) == 1 and other_warehouse(w) or w
      lines[number] = { supply, nurand(8191, 1, opt.items), random(1, 10) }
   end
   if is_wrong then lines[#lines][2] = opt.items + 1 end
   table.sort(lines, function(a, b) return a[1] < b[1] or a[1] == b[1] and a[2] < b[2] end)
   P.begin()
   local _, o = row("SELECT d_tax, d_next_o_id FROM district WHERE d_w_id = %d AND d_id = %d FOR UPDATE", w, d)
   row("SELECT c_discount, c_last, c_credit, w_tax FROM customer JOIN warehouse ON w_id = c_w_id WHERE c_w_id = %d AND c_d_id = %d AND c_id = %d", w, d, c)
   o = tonumber(o)
   P.next_order(w, d)
   P.order(w, d, o, c, #lines)
   P.new_order(w, d, o)
   for number, line in ipairs(lines) do
      local supply, i, quantity = line[1], line[2], line[3]
      local price = row("SELECT i_price, i_name, i_data FROM item WHERE i_id = %d", i)
      if price == nil then
         P.rollback()
         return
      end
      local in_stock, info = row("SELECT s_quantity, s_dist, s_data FROM stock WHERE s_w_id = %d AND s_i_id = %d FOR UPDATE", supply, i)
      local left = tonumber(in_stock) - quantity
      P.stock(left >= 10 and left or left + 91, quantity, supply == w and 0 or 1, supply, i)
      P.line(w, d, o, number, i, supply, quantity, quantity * tonumber(price), info)
   end
   P.commit()
end

-- The middle one of the customers of a name (clause 2.5.2.2), or one by number.
local function customer(w, d)
   if random(1, 100) > 60 then return nurand(1023, 1, opt.customers) end
   local name = last_name(nurand(255, 0, math.min(999, opt.customers - 1)))
   local found = con:query(string.format("SELECT c_id FROM customer WHERE c_w_id = %d AND c_d_id = %d AND c_last = '%s' ORDER BY c_first", w, d, name))
   local c
   for _ = 1, math.ceil(found.nrows / 2) do c = found:fetch_row()[1] end
   return tonumber(c or 1)
end

local function payment(w, d)
   local is_home = random(1, 100) <= 85
   local c_w, c_d = is_home and w or other_warehouse(w), is_home and d or random(1, DISTRICTS)
   local amount = random(100, 500000)
   P.begin()
   P.district_paid(amount, w, d)
   local d_name = row("SELECT d_name FROM district WHERE d_w_id = %d AND d_id = %d", w, d)
   P.warehouse_paid(amount, w)
   local w_name = row("SELECT w_name FROM warehouse WHERE w_id = %d", w)
   local c = customer(c_w, c_d)
   local credit = row("SELECT c_credit, c_balance FROM customer WHERE c_w_id = %d AND c_d_id = %d AND c_id = %d FOR UPDATE", c_w, c_d, c)
   P.customer_pays(amount, amount, c_w, c_d, c)
   if credit == "BC" then
      local data = row("SELECT c_data FROM customer WHERE c_w_id = %d AND c_d_id = %d AND c_id = %d", c_w, c_d, c)
      P.customer_data(string.format("%d %d %d %d %d %d | %s", c, c_d, c_w, d, w, amount, data):sub(1, 500), c_w, c_d, c)
   end
   P.history(c, c_d, c_w, d, w, amount, w_name .. "    " .. d_name)
   P.commit()
end

local function order_status(w, d)
   P.begin()
   local c = customer(w, d)
   row("SELECT c_balance, c_first, c_last FROM customer WHERE c_w_id = %d AND c_d_id = %d AND c_id = %d", w, d, c)
   local o = row("SELECT o_id FROM oorder WHERE o_w_id = %d AND o_d_id = %d AND o_c_id = %d ORDER BY o_id DESC LIMIT 1", w, d, c)
   if o then P.last_lines(w, d, tonumber(o)) end
   P.commit()
end

local function delivery(w)
   local carrier = random(1, 10)
   P.begin()
   for d = 1, DISTRICTS do
      local o = row("SELECT no_o_id FROM new_order WHERE no_w_id = %d AND no_d_id = %d ORDER BY no_o_id LIMIT 1 FOR UPDATE", w, d)
      if o then
         o = tonumber(o)
         P.take(w, d, o)
         P.carrier(carrier, w, d, o)
         local c = row("SELECT o_c_id FROM oorder WHERE o_w_id = %d AND o_d_id = %d AND o_id = %d", w, d, o)
         P.delivered(w, d, o)
         local sum = row("SELECT sum(ol_amount) FROM order_line WHERE ol_w_id = %d AND ol_d_id = %d AND ol_o_id = %d", w, d, o)
         P.credit(tonumber(sum), w, d, tonumber(c))
      end
   end
   P.commit()
end

local function stock_level(w, d)
   P.begin()
   local o = tonumber((row("SELECT d_next_o_id FROM district WHERE d_w_id = %d AND d_id = %d", w, d)))
   P.low_stock(w, d, o - 20, o - 1, random(10, 20))
   P.commit()
end

function event(tid)
   local w, d = tid % opt.warehouses + 1, random(1, DISTRICTS)
   local share = random(1, 100)
   if share <= 45 then
      new_order(w, d)
   elseif share <= 88 then
      payment(w, d)
   elseif share <= 92 then
      order_status(w, d)
   elseif share <= 96 then
      delivery(w)
   else
      stock_level(w, d)
   end
end

function sysbench.hooks.before_restart_event()
   P.rollback()
end
