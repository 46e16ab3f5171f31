//! The rows of a fresh database (clause 4.3.3.1), in chunks of about 30,000, each stored by one transaction.
//!
//! A row is a function of the seed, its table and its place: each district, and each part of stock and items, has a
//! random stream for itself. So a chunk can be made anywhere and at any time, and its rows counted without making them.

use crate::schema::TpccTable;
use crate::values::{self, Constants, stream};
use crate::values::{Decimal, Short, TIMESTAMP_BYTES, Timestamp};
use crate::{CUSTOMERS, DISTRICTS, FIRST_UNDELIVERED, ITEMS};
use dyno_core::{Dialect, Rng, RowSource, RowWriter};
use dyno_load::settings::{ServerNeed, load_needs};

/// Items, or rows of a warehouse's stock, in a chunk.
const ITEMS_AT_ONCE: u32 = 25_000;

/// Order lines of a district, 15 for each of its 3,000 orders, are the most rows; customers of five, with up to 700
/// bytes in the logs of transactions, the most bytes.
pub(crate) const LOAD_NEEDS: [ServerNeed; 3] = load_needs(45_000, 15_000 * 700);

/// Tables with a few rows of each warehouse. They are filled first.
pub(crate) const HEADS: [TpccTable; 2] = [TpccTable::Warehouse, TpccTable::District];
const BODIES: [TpccTable; 6] = [
    TpccTable::Stock,
    TpccTable::OrderLine,
    TpccTable::Customer,
    TpccTable::History,
    TpccTable::Order,
    TpccTable::NewOrder,
];

/// Rows of one table that are stored together, so that no transaction is large.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Chunk {
    pub(crate) table: TpccTable,
    /// 0 for items, which belong to no warehouse.
    pub(crate) warehouse: u32,
    /// The number of this part of the warehouse's rows, from 0.
    pub(crate) part: u32,
}

impl TpccTable {
    /// The division of a warehouse's rows into chunks: a column, its last value, and the number of its values in a
    /// chunk.
    fn division(self) -> (&'static str, u32, u32) {
        match self {
            TpccTable::Item => ("i_id", ITEMS, ITEMS_AT_ONCE),
            TpccTable::Stock => ("s_i_id", ITEMS, ITEMS_AT_ONCE),
            TpccTable::OrderLine => ("ol_d_id", DISTRICTS, 1),
            TpccTable::Customer => ("c_d_id", DISTRICTS, 5),
            TpccTable::History => ("h_d_id", DISTRICTS, DISTRICTS),
            TpccTable::Order => ("o_d_id", DISTRICTS, DISTRICTS),
            TpccTable::NewOrder => ("no_d_id", DISTRICTS, DISTRICTS),
            TpccTable::District => ("d_id", DISTRICTS, DISTRICTS),
            TpccTable::Warehouse => ("w_id", 1, 1),
        }
    }

    /// Conditions for the rows of each chunk of a warehouse; none if there is one chunk only.
    pub(crate) fn parts(self) -> Vec<String> {
        let (column, last, _) = self.division();
        let chunks = self.chunks(0);
        let ranges = chunks.map(|chunk| (chunk.first_row(), chunk.last_row()));
        let parts = ranges.filter(|range| *range != (1, last));
        parts.map(|(low, high)| format!("{column} BETWEEN {low} AND {high}")).collect()
    }

    /// The chunks of a warehouse; those of the catalog with warehouse 0.
    fn chunks(self, warehouse: u32) -> impl Iterator<Item = Chunk> {
        let (_, last, at_once) = self.division();
        (0..last.div_ceil(at_once)).map(move |part| Chunk { table: self, warehouse, part })
    }
}

impl Chunk {
    /// For example `bmsql_stock.1.0`.
    pub(crate) fn name(&self) -> String {
        format!("{}.{}.{}", self.table.name(), self.warehouse, self.part)
    }

    fn first_row(&self) -> u32 {
        self.part * self.table.division().2 + 1
    }

    fn last_row(&self) -> u32 {
        let (_, last, at_once) = self.table.division();
        last.min(self.first_row() + at_once - 1)
    }

    /// The statement that removes its rows.
    pub(crate) fn delete(&self) -> String {
        let warehouse = self.table.warehouse_column();
        let warehouse = warehouse.map(|column| format!("{column} = {}", self.warehouse));
        let part = self.table.parts().into_iter().nth(self.part as usize);
        let conditions: Vec<String> = warehouse.into_iter().chain(part).collect();
        format!("DELETE FROM {} WHERE {}", self.table.name(), conditions.join(" AND "))
    }

    /// True if each of its groups of rows has a random stream: those of orders and customers by district.
    fn has_groups(&self) -> bool {
        use TpccTable::{District, Item, Stock, Warehouse};
        !matches!(self.table, Item | Stock | Warehouse | District)
    }

    /// The number of its rows.
    pub(crate) fn rows(&self, seed: u64) -> u64 {
        let groups = u64::from(self.last_row() - self.first_row() + 1);
        match self.table {
            TpccTable::Customer | TpccTable::History | TpccTable::Order => {
                groups * u64::from(CUSTOMERS)
            }
            TpccTable::NewOrder => groups * u64::from(CUSTOMERS + 1 - FIRST_UNDELIVERED),
            TpccTable::OrderLine => (self.first_row()..=self.last_row())
                .map(|district| {
                    let mut counts = line_counts(seed, self.warehouse, district);
                    (0..CUSTOMERS).map(|_| u64::from(lines_of_next_order(&mut counts))).sum::<u64>()
                })
                .sum(),
            _ => groups,
        }
    }
}

pub(crate) fn item_chunks() -> Vec<Chunk> {
    TpccTable::Item.chunks(0).collect()
}

/// The chunks of some warehouses, without the items. Sessions take them in this order: inside a warehouse the
/// tables take turns, so that sessions meet in one table as late as possible.
pub(crate) fn warehouse_chunks(warehouses: impl Iterator<Item = u32> + Clone) -> Vec<Chunk> {
    let heads = warehouses
        .clone()
        .flat_map(|warehouse| HEADS.into_iter().flat_map(move |table| table.chunks(warehouse)));
    let bodies = warehouses.flat_map(|warehouse| {
        let mut chunks: Vec<Chunk> =
            BODIES.into_iter().flat_map(|table| table.chunks(warehouse)).collect();
        chunks.sort_by_key(|chunk| chunk.part);
        chunks
    });
    heads.chain(bodies).collect()
}

/// Parameters of all rows of a load.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RowParameters {
    pub(crate) seed: u64,
    pub(crate) dialect: Dialect,
    pub(crate) loaded_at: Timestamp,
    pub(crate) constants: Constants,
}

impl RowParameters {
    pub(crate) fn new(seed: u64, dialect: Dialect, loaded_at: Timestamp) -> Self {
        let constants = Constants::for_load(&mut Rng::new(seed, "tpcc constants", 0));
        RowParameters { seed, dialect, loaded_at, constants }
    }
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

    fn draw_orders(&mut self, seed: u64, warehouse: u32, district: u32) {
        let mut counts = line_counts(seed, warehouse, district);
        self.lines.fill_with(|| lines_of_next_order(&mut counts));
        let mut rng = stream(seed, "tpcc orders", warehouse, district);
        for (customer, number) in self.customers.iter_mut().zip(1..) {
            *customer = number;
        }
        values::shuffle(&mut self.customers, &mut rng);
        self.carriers.fill_with(|| rng.uniform(1, 10) as u8);
    }
}

/// The stream of a district's counts of lines: a separate one, so that the rows of a load can be
/// counted without making them.
fn line_counts(seed: u64, warehouse: u32, district: u32) -> Rng {
    stream(seed, "tpcc line counts", warehouse, district)
}

fn lines_of_next_order(counts: &mut Rng) -> u8 {
    counts.uniform(5, 15) as u8
}

pub(crate) struct ChunkRows {
    parameters: RowParameters,
    chunk: Chunk,
    /// The district whose rows are made, where each has a random stream.
    group: u32,
    number: u32,
    last_number: u32,
    line: u8,
    rng: Rng,
    orders: Orders,
    now: [u8; TIMESTAMP_BYTES],
    short: Short<50>,
    data: Short<500>,
}

impl ChunkRows {
    pub(crate) fn new(parameters: RowParameters, chunk: Chunk) -> Self {
        let mut rows = ChunkRows {
            parameters,
            chunk,
            group: 0,
            number: 0,
            last_number: 0,
            line: 0,
            rng: stream(0, "", 0, 0),
            orders: Orders::new(),
            now: parameters.loaded_at.text(),
            short: Short::default(),
            data: Short::default(),
        };
        rows.restart();
        rows
    }

    /// The first and the last number of a group.
    fn numbers(&self) -> (u32, u32) {
        match self.chunk.table {
            TpccTable::NewOrder => (FIRST_UNDELIVERED, CUSTOMERS),
            _ if self.chunk.has_groups() => (1, CUSTOMERS),
            _ => (self.chunk.first_row(), self.chunk.last_row()),
        }
    }

    fn begin_group(&mut self, group: u32) {
        self.group = group;
        (self.number, self.last_number) = self.numbers();
        self.line = 0;
        let (seed, warehouse) = (self.parameters.seed, self.chunk.warehouse);
        self.rng = match self.chunk.table {
            TpccTable::Item => stream(seed, "tpcc item", 0, self.chunk.part),
            TpccTable::Stock => stream(seed, "tpcc stock", warehouse, self.chunk.part),
            TpccTable::Warehouse => stream(seed, "tpcc warehouse", warehouse, 0),
            TpccTable::District => stream(seed, "tpcc district", warehouse, 0),
            TpccTable::Customer => stream(seed, "tpcc customer", warehouse, group),
            TpccTable::History => stream(seed, "tpcc history", warehouse, group),
            TpccTable::Order | TpccTable::NewOrder | TpccTable::OrderLine => {
                stream(seed, "tpcc order lines", warehouse, group)
            }
        };
        if matches!(self.chunk.table, TpccTable::Order | TpccTable::OrderLine) {
            self.orders.draw_orders(seed, warehouse, group);
        }
    }

    /// Goes to the next group when this one is used up. False at the end of the chunk.
    #[inline]
    fn is_at_row(&mut self) -> bool {
        if self.number <= self.last_number {
            return true;
        }
        if !self.chunk.has_groups() || self.group >= self.chunk.last_row() {
            return false;
        }
        self.begin_group(self.group + 1);
        true
    }

    #[inline]
    fn write_item(&mut self, out: &mut dyn RowWriter) {
        out.int(i64::from(self.number));
        values::letters(&mut self.short, 14, 24, &mut self.rng);
        out.text(self.short.get());
        let price = self.rng.uniform(100, 10_000) as i64;
        Decimal::cents(price).write(self.parameters.dialect, out);
        values::original_data(&mut self.short, &mut self.rng);
        out.text(self.short.get());
        out.int(self.rng.uniform(1, 10_000) as i64);
    }

    #[inline]
    fn write_stock(&mut self, out: &mut dyn RowWriter) {
        out.int(i64::from(self.chunk.warehouse));
        out.int(i64::from(self.number));
        out.int(self.rng.uniform(10, 100) as i64);
        for _ in ["s_ytd", "s_order_cnt", "s_remote_cnt"] {
            out.int(0);
        }
        values::original_data(&mut self.short, &mut self.rng);
        out.text(self.short.get());
        let mut dist = [0; 24];
        for _ in 0..DISTRICTS {
            values::fill(&mut dist, values::LETTERS, &mut self.rng);
            out.text(&dist);
        }
    }

    fn write_warehouse(&mut self, out: &mut dyn RowWriter) {
        out.int(i64::from(self.chunk.warehouse));
        Decimal::cents(30_000_000).write(self.parameters.dialect, out);
        self.write_tax(out);
        self.name_and_address(out);
    }

    fn write_district(&mut self, out: &mut dyn RowWriter) {
        out.int(i64::from(self.chunk.warehouse));
        out.int(i64::from(self.number));
        Decimal::cents(3_000_000).write(self.parameters.dialect, out);
        self.write_tax(out);
        out.int(i64::from(CUSTOMERS + 1));
        self.name_and_address(out);
    }

    fn write_tax(&mut self, out: &mut dyn RowWriter) {
        let tax = self.rng.uniform(0, 2_000) as i64;
        Decimal::new(tax, 4).write(self.parameters.dialect, out);
    }

    fn name_and_address(&mut self, out: &mut dyn RowWriter) {
        values::letters(&mut self.short, 6, 10, &mut self.rng);
        out.text(self.short.get());
        address(&mut self.short, &mut self.rng, out);
    }

    /// Warehouse, district and number.
    #[inline]
    fn key(&self, out: &mut dyn RowWriter) {
        for part in [self.chunk.warehouse, self.group, self.number] {
            out.int(i64::from(part));
        }
    }

    fn write_customer(&mut self, out: &mut dyn RowWriter) {
        let dialect = self.parameters.dialect;
        self.key(out);
        let rng = &mut self.rng;
        Decimal::new(rng.uniform(0, 5_000) as i64, 4).write(dialect, out);
        out.text(if rng.uniform(1, 10) == 1 { b"BC" } else { b"GC" });
        let name = match self.number {
            // Every name exists at least once in a district.
            number @ 1..=1_000 => u64::from(number - 1),
            _ => self.parameters.constants.last_name().sample(rng),
        };
        out.text(values::last_name(name).get());
        values::letters(&mut self.short, 8, 16, rng);
        out.text(self.short.get());
        Decimal::cents(5_000_000).write(dialect, out);
        Decimal::cents(-1_000).write(dialect, out);
        Decimal::cents(1_000).write(dialect, out);
        out.int(1);
        out.int(0);
        address(&mut self.short, rng, out);
        let mut phone = [0; 16];
        values::fill(&mut phone, values::DIGITS, rng);
        out.text(&phone);
        out.text(&self.now);
        out.text(b"OE");
        values::letters(&mut self.data, 300, 500, rng);
        out.text(self.data.get());
    }

    fn write_history(&mut self, out: &mut dyn RowWriter) {
        let (warehouse, district) = (i64::from(self.chunk.warehouse), i64::from(self.group));
        let customer = i64::from(self.number);
        let customers = i64::from(CUSTOMERS);
        let districts_before = (warehouse - 1) * i64::from(DISTRICTS) + district - 1;
        out.int(districts_before * customers + customer);
        for value in [customer, district, warehouse, district, warehouse] {
            out.int(value);
        }
        out.text(&self.now);
        Decimal::cents(1_000).write(self.parameters.dialect, out);
        values::letters(&mut self.short, 12, 24, &mut self.rng);
        out.text(self.short.get());
    }

    fn write_order(&mut self, out: &mut dyn RowWriter) {
        let at = self.number as usize - 1;
        self.key(out);
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

    #[inline]
    fn order_line(&mut self, out: &mut dyn RowWriter) {
        let dialect = self.parameters.dialect;
        self.line += 1;
        self.key(out);
        out.int(i64::from(self.line));
        out.int(self.rng.uniform(1, u64::from(crate::ITEMS)) as i64);
        if self.number < FIRST_UNDELIVERED {
            out.text(&self.now);
            Decimal::cents(0).write(dialect, out);
        } else {
            out.null();
            Decimal::cents(self.rng.uniform(1, 999_999) as i64).write(dialect, out);
        }
        out.int(i64::from(self.chunk.warehouse));
        out.int(5);
        let mut dist = [0; 24];
        values::fill(&mut dist, values::LETTERS, &mut self.rng);
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
            TpccTable::Stock => self.write_stock(out),
            TpccTable::Item => self.write_item(out),
            TpccTable::Warehouse => self.write_warehouse(out),
            TpccTable::District => self.write_district(out),
            TpccTable::Customer => self.write_customer(out),
            TpccTable::History => self.write_history(out),
            TpccTable::Order => self.write_order(out),
            TpccTable::NewOrder => self.key(out),
        }
        self.number += 1;
        true
    }

    fn restart(&mut self) {
        self.begin_group(self.chunk.first_row());
    }
}

/// Writes two streets, city, state and zip code.
fn address(line: &mut Short<50>, rng: &mut Rng, out: &mut dyn RowWriter) {
    for _ in ["street_1", "street_2", "city"] {
        values::letters(line, 10, 20, rng);
        out.text(line.get());
    }
    let mut state = [0; 2];
    values::fill(&mut state, values::CAPITALS, rng);
    out.text(&state);
    out.text(&values::zip(rng));
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_core::{ShardMap, ShardRule};
    use dyno_testkit::RecordedRow;
    use std::collections::{BTreeMap, BTreeSet};

    fn chunk_rows(chunk: Chunk, dialect: Dialect) -> Vec<Vec<String>> {
        let constants = Constants { c_last: 10, c_id: 20, i_id: 30 };
        let parameters = RowParameters { seed: 7, dialect, loaded_at: Timestamp(0), constants };
        let mut source = ChunkRows::new(parameters, chunk);
        let mut rows = Vec::new();
        let mut row = RecordedRow::default();
        while source.next_row(&mut row) {
            rows.push(std::mem::take(&mut row.0));
        }
        assert_eq!(rows.len() as u64, chunk.rows(7), "{chunk:?}");
        source.restart();
        assert!(source.next_row(&mut row));
        assert_eq!(row.0, rows[0], "a restart begins from the start");
        rows
    }

    #[test]
    fn names_are_unique() {
        let chunks = [item_chunks(), warehouse_chunks(1..=1_001)].concat();
        let names: BTreeSet<String> = chunks.iter().map(Chunk::name).collect();
        assert_eq!(names.len(), chunks.len());
        assert_eq!(chunks.len(), 4 + 1_001 * 21);
    }

    #[test]
    fn shards_share_out_the_warehouses() {
        let map = ShardMap::new(ShardRule::Modulo, 3).unwrap();
        let shards = [0, 1, 2].map(|shard| {
            warehouse_chunks((1..=7).filter(|&warehouse: &u32| map.shard_of(warehouse) == shard))
        });
        let names: BTreeSet<String> = shards.iter().flatten().map(Chunk::name).collect();
        assert_eq!(names.len(), 7 * 21);
        assert!(shards[1].iter().all(|chunk| [1, 4, 7].contains(&chunk.warehouse)));
        assert_eq!(shards.concat().len(), warehouse_chunks(1..=7).len());
    }

    #[test]
    fn a_warehouse_has_the_rows_of_the_clause() {
        let mut counts = BTreeMap::new();
        let mut lines = 0;
        for chunk in [item_chunks(), warehouse_chunks(1..=1)].concat() {
            let rows = chunk_rows(chunk, Dialect::Postgres);
            *counts.entry(chunk.table).or_insert(0) += rows.len();
            assert!(rows.iter().all(|row| row.len() == chunk.table.columns().len()));
            if chunk.table == TpccTable::Order {
                lines = rows.iter().map(|row| row[5].parse::<usize>().unwrap()).sum();
                let customers: BTreeSet<&String> =
                    rows[..3_000].iter().map(|row| &row[3]).collect();
                assert_eq!(customers.len(), 3_000, "a permutation");
                assert_eq!(rows.iter().filter(|row| row[4] == "NULL").count(), 9_000);
            }
        }
        assert_eq!(counts[&TpccTable::OrderLine], lines);
        assert!((297_000..303_000).contains(&lines), "{lines}");
        let expected = [
            (TpccTable::Item, 100_000),
            (TpccTable::Warehouse, 1),
            (TpccTable::District, 10),
            (TpccTable::Customer, 30_000),
            (TpccTable::History, 30_000),
            (TpccTable::Order, 30_000),
            (TpccTable::NewOrder, 9_000),
            (TpccTable::Stock, 100_000),
        ];
        for (table, count) in expected {
            assert_eq!(counts[&table], count, "{table:?}");
        }
    }

    #[test]
    fn money_is_decimal_and_on_sqlite_an_integer() {
        let chunk = Chunk { table: TpccTable::History, warehouse: 2, part: 0 };
        let postgres = chunk_rows(chunk, Dialect::Postgres);
        let row = 9 * 3_000 + 2;
        assert_eq!(postgres[row][..6], ["57003", "3", "10", "2", "10", "2"]);
        assert_eq!(postgres[row][6..8], ["1970-01-01 00:00:00.000", "10.00"]);
        assert_eq!(chunk_rows(chunk, Dialect::Sqlite)[row][7], "1000");
    }

    #[test]
    fn customers_have_all_names_and_a_tenth_bad_credit() {
        let rows =
            chunk_rows(Chunk { table: TpccTable::Customer, warehouse: 1, part: 0 }, Dialect::Mysql);
        assert_eq!(rows[0][5], "BARBARBAR");
        assert_eq!(rows[3_999][5], "EINGEINGEING");
        let bad = rows.iter().filter(|row| row[4] == "BC").count();
        // 1,500 expected, deviation 37.
        assert!((1_300..1_700).contains(&bad), "{bad}");
        assert!(rows.iter().all(|row| (300..=500).contains(&row[20].len())));
    }

    #[test]
    fn an_undone_chunk_is_removed_by_its_own_rows_only() {
        for (table, warehouse, part, rows) in [
            (
                TpccTable::Stock,
                3,
                1,
                "bmsql_stock WHERE s_w_id = 3 AND s_i_id BETWEEN 25001 AND 50000",
            ),
            (TpccTable::Item, 0, 3, "bmsql_item WHERE i_id BETWEEN 75001 AND 100000"),
            (TpccTable::District, 7, 0, "bmsql_district WHERE d_w_id = 7"),
        ] {
            let delete = Chunk { table, warehouse, part }.delete();
            assert_eq!(delete, format!("DELETE FROM {rows}"));
        }
    }
}
