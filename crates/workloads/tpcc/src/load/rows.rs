//! The rows of a fresh database (clause 4.3.3.1).
//!
//! What a row holds depends only on the seed, its table and its place: each district, and each part
//! of stock and items, has a stream of its own.

use super::chunks::Chunk;
use crate::random::{self, Constants, stream};
use crate::schema::TpccTable;
use crate::text::{Decimal, Short, TIMESTAMP_BYTES, Timestamp};
use crate::{CUSTOMERS, DISTRICTS, FIRST_UNDELIVERED};
use dyno_core::{Dialect, Rng, RowSource, RowWriter};

#[derive(Clone, Copy, Debug)]
pub(crate) struct Common {
    pub(crate) seed: u64,
    pub(crate) dialect: Dialect,
    pub(crate) loaded_at: Timestamp,
    pub(crate) constants: Constants,
}

/// The orders of one district: what the tables of orders and of lines must agree on.
#[derive(Debug)]
struct Orders {
    /// A permutation of the customers (O_C_ID).
    customers: Vec<u16>,
    lines: Vec<u8>,
    carriers: Vec<u8>,
}

impl Orders {
    fn new() -> Self {
        let count = CUSTOMERS as usize;
        Orders { customers: vec![0; count], lines: vec![0; count], carriers: vec![0; count] }
    }

    fn draw(&mut self, seed: u64, warehouse: u32, district: u32) {
        let mut counts = line_counts(seed, warehouse, district);
        self.lines.fill_with(|| lines_of_next_order(&mut counts));
        let mut rng = stream(seed, "tpcc orders", warehouse, district);
        for (customer, number) in self.customers.iter_mut().zip(1..) {
            *customer = number;
        }
        random::shuffle(&mut self.customers, &mut rng);
        self.carriers.fill_with(|| rng.uniform(1, 10) as u8);
    }
}

/// The stream of a district's counts of lines: one of its own, so that the rows of a load can be
/// counted without making them.
fn line_counts(seed: u64, warehouse: u32, district: u32) -> Rng {
    stream(seed, "tpcc line counts", warehouse, district)
}

fn lines_of_next_order(counts: &mut Rng) -> u8 {
    counts.uniform(5, 15) as u8
}

pub(crate) fn row_count(seed: u64, chunk: &Chunk) -> u64 {
    let groups = u64::from(chunk.high - chunk.low + 1);
    match chunk.table {
        TpccTable::Item | TpccTable::Stock | TpccTable::Warehouse => groups,
        TpccTable::District => groups * u64::from(DISTRICTS),
        TpccTable::Customer | TpccTable::History | TpccTable::Order => {
            groups * u64::from(CUSTOMERS)
        }
        TpccTable::NewOrder => groups * u64::from(CUSTOMERS + 1 - FIRST_UNDELIVERED),
        TpccTable::OrderLine => {
            let lines = |district| {
                let mut counts = line_counts(seed, chunk.warehouse, district);
                (0..CUSTOMERS).map(|_| u64::from(lines_of_next_order(&mut counts))).sum::<u64>()
            };
            (chunk.low..=chunk.high).map(lines).sum()
        }
    }
}

pub(crate) struct ChunkRows {
    common: Common,
    chunk: Chunk,
    /// The group of rows with a stream of its own: a district, a warehouse, or a part of the items.
    group: u32,
    number: u32,
    line: u8,
    rng: Rng,
    orders: Orders,
    now: [u8; TIMESTAMP_BYTES],
    short: Short<50>,
    data: Short<500>,
}

impl ChunkRows {
    pub(crate) fn new(common: Common, chunk: Chunk) -> Self {
        let mut rows = ChunkRows {
            common,
            chunk,
            group: 0,
            number: 0,
            line: 0,
            rng: stream(0, "", 0, 0),
            orders: Orders::new(),
            now: common.loaded_at.text(),
            short: Short::default(),
            data: Short::default(),
        };
        rows.restart();
        rows
    }

    fn first_number(&self) -> u32 {
        match self.chunk.table {
            TpccTable::Item | TpccTable::Stock => self.chunk.low,
            TpccTable::NewOrder => FIRST_UNDELIVERED,
            _ => 1,
        }
    }

    fn last_number(&self) -> u32 {
        match self.chunk.table {
            TpccTable::Item | TpccTable::Stock => self.chunk.high,
            TpccTable::Warehouse => 1,
            TpccTable::District => DISTRICTS,
            _ => CUSTOMERS,
        }
    }

    fn begin_group(&mut self, group: u32) {
        self.group = group;
        self.number = self.first_number();
        self.line = 0;
        let (seed, warehouse) = (self.common.seed, self.chunk.warehouse);
        self.rng = match self.chunk.table {
            TpccTable::Item => stream(seed, "tpcc item", 0, self.chunk.part()),
            TpccTable::Stock => stream(seed, "tpcc stock", warehouse, self.chunk.part()),
            TpccTable::Warehouse => stream(seed, "tpcc warehouse", group, 0),
            TpccTable::District => stream(seed, "tpcc district", group, 0),
            TpccTable::Customer => stream(seed, "tpcc customer", warehouse, group),
            TpccTable::History => stream(seed, "tpcc history", warehouse, group),
            TpccTable::Order | TpccTable::NewOrder | TpccTable::OrderLine => {
                stream(seed, "tpcc order lines", warehouse, group)
            }
        };
        if matches!(self.chunk.table, TpccTable::Order | TpccTable::OrderLine) {
            self.orders.draw(seed, warehouse, group);
        }
    }

    /// Goes to the next group when this one is used up. False at the end of the chunk.
    #[inline]
    fn is_at_row(&mut self) -> bool {
        if self.number <= self.last_number() {
            return true;
        }
        if matches!(self.chunk.table, TpccTable::Item | TpccTable::Stock)
            || self.group >= self.chunk.high
        {
            return false;
        }
        self.begin_group(self.group + 1);
        true
    }

    #[inline]
    fn item(&mut self, out: &mut dyn RowWriter) {
        out.int(i64::from(self.number));
        random::letters(&mut self.short, 14, 24, &mut self.rng);
        out.text(self.short.get());
        let price = self.rng.uniform(100, 10_000) as i64;
        Decimal::cents(price).write(self.common.dialect, out);
        random::original_data(&mut self.short, &mut self.rng);
        out.text(self.short.get());
        out.int(self.rng.uniform(1, 10_000) as i64);
    }

    #[inline]
    fn stock(&mut self, out: &mut dyn RowWriter) {
        out.int(i64::from(self.chunk.warehouse));
        out.int(i64::from(self.number));
        out.int(self.rng.uniform(10, 100) as i64);
        for _ in ["s_ytd", "s_order_cnt", "s_remote_cnt"] {
            out.int(0);
        }
        random::original_data(&mut self.short, &mut self.rng);
        out.text(self.short.get());
        let mut dist = [0; 24];
        for _ in 0..DISTRICTS {
            random::fill_letters(&mut dist, &mut self.rng);
            out.text(&dist);
        }
    }

    fn warehouse(&mut self, out: &mut dyn RowWriter) {
        let dialect = self.common.dialect;
        out.int(i64::from(self.group));
        Decimal::cents(30_000_000).write(dialect, out);
        Decimal::new(self.rng.uniform(0, 2_000) as i64, 4).write(dialect, out);
        random::letters(&mut self.short, 6, 10, &mut self.rng);
        out.text(self.short.get());
        address(&mut self.short, &mut self.rng, out);
    }

    fn district(&mut self, out: &mut dyn RowWriter) {
        let dialect = self.common.dialect;
        out.int(i64::from(self.group));
        out.int(i64::from(self.number));
        Decimal::cents(3_000_000).write(dialect, out);
        Decimal::new(self.rng.uniform(0, 2_000) as i64, 4).write(dialect, out);
        out.int(i64::from(CUSTOMERS + 1));
        random::letters(&mut self.short, 6, 10, &mut self.rng);
        out.text(self.short.get());
        address(&mut self.short, &mut self.rng, out);
    }

    fn customer(&mut self, out: &mut dyn RowWriter) {
        let dialect = self.common.dialect;
        let rng = &mut self.rng;
        out.int(i64::from(self.chunk.warehouse));
        out.int(i64::from(self.group));
        out.int(i64::from(self.number));
        Decimal::new(rng.uniform(0, 5_000) as i64, 4).write(dialect, out);
        out.text(if rng.uniform(1, 10) == 1 { b"BC" } else { b"GC" });
        let name = match self.number {
            // Every name exists at least once in a district.
            number @ 1..=1_000 => u64::from(number - 1),
            _ => self.common.constants.last_name().draw(rng),
        };
        out.text(random::last_name(name).get());
        random::letters(&mut self.short, 8, 16, rng);
        out.text(self.short.get());
        Decimal::cents(5_000_000).write(dialect, out);
        Decimal::cents(-1_000).write(dialect, out);
        Decimal::cents(1_000).write(dialect, out);
        out.int(1);
        out.int(0);
        address(&mut self.short, rng, out);
        let mut phone = [0; 16];
        random::fill_digits(&mut phone, rng);
        out.text(&phone);
        out.text(&self.now);
        out.text(b"OE");
        random::letters(&mut self.data, 300, 500, rng);
        out.text(self.data.get());
    }

    fn history(&mut self, out: &mut dyn RowWriter) {
        let (warehouse, district) = (i64::from(self.chunk.warehouse), i64::from(self.group));
        let customer = i64::from(self.number);
        let customers = i64::from(CUSTOMERS);
        let districts_before = (warehouse - 1) * i64::from(DISTRICTS) + district - 1;
        out.int(districts_before * customers + customer);
        for value in [customer, district, warehouse, district, warehouse] {
            out.int(value);
        }
        out.text(&self.now);
        Decimal::cents(1_000).write(self.common.dialect, out);
        random::letters(&mut self.short, 12, 24, &mut self.rng);
        out.text(self.short.get());
    }

    fn order(&mut self, out: &mut dyn RowWriter) {
        let at = self.number as usize - 1;
        out.int(i64::from(self.chunk.warehouse));
        out.int(i64::from(self.group));
        out.int(i64::from(self.number));
        out.int(i64::from(self.orders.customers[at]));
        if self.number < FIRST_UNDELIVERED {
            out.int(i64::from(self.orders.carriers[at]));
        } else {
            out.null();
        }
        out.int(i64::from(self.orders.lines[at]));
        out.int(1);
        out.text(&self.now);
    }

    fn new_order(&mut self, out: &mut dyn RowWriter) {
        out.int(i64::from(self.chunk.warehouse));
        out.int(i64::from(self.group));
        out.int(i64::from(self.number));
    }

    #[inline]
    fn order_line(&mut self, out: &mut dyn RowWriter) {
        let dialect = self.common.dialect;
        self.line += 1;
        let warehouse = i64::from(self.chunk.warehouse);
        out.int(warehouse);
        out.int(i64::from(self.group));
        out.int(i64::from(self.number));
        out.int(i64::from(self.line));
        out.int(self.rng.uniform(1, u64::from(crate::ITEMS)) as i64);
        if self.number < FIRST_UNDELIVERED {
            out.text(&self.now);
            Decimal::cents(0).write(dialect, out);
        } else {
            out.null();
            Decimal::cents(self.rng.uniform(1, 999_999) as i64).write(dialect, out);
        }
        out.int(warehouse);
        out.int(5);
        let mut dist = [0; 24];
        random::fill_letters(&mut dist, &mut self.rng);
        out.text(&dist);
        if self.line == self.orders.lines[self.number as usize - 1] {
            self.line = 0;
            self.number += 1;
        }
    }
}

impl RowSource for ChunkRows {
    #[inline]
    fn next_row(&mut self, out: &mut dyn RowWriter) -> bool {
        if !self.is_at_row() {
            return false;
        }
        match self.chunk.table {
            // An order has several rows here.
            TpccTable::OrderLine => {
                self.order_line(out);
                return true;
            }
            TpccTable::Stock => self.stock(out),
            TpccTable::Item => self.item(out),
            TpccTable::Warehouse => self.warehouse(out),
            TpccTable::District => self.district(out),
            TpccTable::Customer => self.customer(out),
            TpccTable::History => self.history(out),
            TpccTable::Order => self.order(out),
            TpccTable::NewOrder => self.new_order(out),
        }
        self.number += 1;
        true
    }

    fn restart(&mut self) {
        self.begin_group(self.chunk.low);
    }
}

/// Writes two streets, city, state and zip code.
fn address(line: &mut Short<50>, rng: &mut Rng, out: &mut dyn RowWriter) {
    for _ in ["street_1", "street_2", "city"] {
        random::letters(line, 10, 20, rng);
        out.text(line.get());
    }
    let mut state = [0; 2];
    random::fill_capitals(&mut state, rng);
    out.text(&state);
    out.text(&random::zip(rng));
}
