//! What is loaded, and committed, at once.

use crate::schema::TpccTable;
use crate::{DISTRICTS, ITEMS};
use dyno_load::settings::{ServerNeed, load_needs};

/// Warehouses whose own rows, and those of their districts, are loaded together.
const WAREHOUSES_AT_ONCE: u32 = 1_000;
/// Items or stock of a warehouse that are loaded together. A constant, as all sizes here: an
/// interrupted load can only be continued with the same ones.
const ITEMS_AT_ONCE: u32 = 25_000;

/// Order lines of a district, 15 for each of its 3,000 orders, are the most rows; customers of five, with up to 700 bytes
/// in the logs of transactions, the most bytes.
pub(crate) const LOAD_NEEDS: [ServerNeed; 3] = load_needs(45_000, 15_000 * 700);

/// Tables with a few rows of each warehouse.
pub(crate) const HEADS: [TpccTable; 2] = [TpccTable::Warehouse, TpccTable::District];

/// Rows of one table that are stored together: about 30,000, so that no transaction is large.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Chunk {
    pub(crate) table: TpccTable,
    /// 0 of the tables that aren't loaded by warehouse: items, warehouses and districts.
    pub(crate) warehouse: u32,
    /// First item, district or, of warehouses and districts, warehouse.
    pub(crate) low: u32,
    /// The last one.
    pub(crate) high: u32,
}

impl Chunk {
    /// Its name in the table of what is done.
    pub(crate) fn name(&self) -> String {
        format!("{}.{}.{}", self.table.name(), self.warehouse, self.low)
    }

    /// Whether its rows are warehouses or districts.
    pub(crate) fn is_head(&self) -> bool {
        HEADS.contains(&self.table)
    }

    /// The number of this part of the items or of a stock.
    pub(crate) fn part(&self) -> u32 {
        (self.low - 1) / ITEMS_AT_ONCE
    }

    /// Removes the rows of a chunk that may have been stored without being noted as done.
    pub(crate) fn delete(&self) -> String {
        let (column, Chunk { table, warehouse, low, high }) = (self.range_column(), self);
        let own = match table.warehouse_column() {
            Some(of) if *warehouse > 0 => format!("{of} = {warehouse} AND "),
            _ => String::new(),
        };
        format!("DELETE FROM {} WHERE {own}{column} BETWEEN {low} AND {high}", table.name())
    }

    fn range_column(&self) -> &'static str {
        match self.table {
            TpccTable::Item => "i_id",
            TpccTable::Warehouse => "w_id",
            TpccTable::District => "d_w_id",
            TpccTable::Customer => "c_d_id",
            TpccTable::History => "h_d_id",
            TpccTable::Order => "o_d_id",
            TpccTable::NewOrder => "no_d_id",
            TpccTable::Stock => "s_i_id",
            TpccTable::OrderLine => "ol_d_id",
        }
    }
}

/// Chunks of 1..=last of so many each.
fn ranges(last: u32, at_once: u32) -> impl Iterator<Item = (u32, u32)> {
    (1..=last).step_by(at_once as usize).map(move |low| (low, last.min(low + at_once - 1)))
}

/// All chunks, warehouse after warehouse. Sessions take them in this order: inside a warehouse the
/// tables take turns, so that sessions meet in one table as late as possible.
pub(crate) fn all(warehouses: u32) -> Vec<Chunk> {
    let mut chunks = items();
    for (low, high) in ranges(warehouses, WAREHOUSES_AT_ONCE) {
        chunks.extend(heads(low, high));
    }
    chunks.extend(bodies(1..=warehouses));
    chunks
}

pub(crate) fn items() -> Vec<Chunk> {
    let part = |(low, high)| Chunk { table: TpccTable::Item, warehouse: 0, low, high };
    ranges(ITEMS, ITEMS_AT_ONCE).map(part).collect()
}

/// The chunks of some of the warehouses, without the items.
pub(crate) fn of_warehouses(warehouses: impl Iterator<Item = u32> + Clone) -> Vec<Chunk> {
    warehouses.clone().flat_map(|number| heads(number, number)).chain(bodies(warehouses)).collect()
}

/// The rows of the warehouses themselves, and those of their districts.
fn heads(low: u32, high: u32) -> [Chunk; 2] {
    HEADS.map(|table| Chunk { table, warehouse: 0, low, high })
}

fn bodies(warehouses: impl Iterator<Item = u32>) -> Vec<Chunk> {
    let mut chunks = Vec::new();
    for warehouse in warehouses {
        let parts = |table, last, at_once| {
            ranges(last, at_once).map(move |(low, high)| Chunk { table, warehouse, low, high })
        };
        let mut tables: Vec<Vec<Chunk>> = vec![
            parts(TpccTable::Stock, ITEMS, ITEMS_AT_ONCE).collect(),
            parts(TpccTable::OrderLine, DISTRICTS, 1).collect(),
            parts(TpccTable::Customer, DISTRICTS, 5).collect(),
            parts(TpccTable::History, DISTRICTS, DISTRICTS).collect(),
            parts(TpccTable::Order, DISTRICTS, DISTRICTS).collect(),
            parts(TpccTable::NewOrder, DISTRICTS, DISTRICTS).collect(),
        ];
        tables.iter_mut().for_each(|parts| parts.reverse());
        while tables.iter().any(|parts| !parts.is_empty()) {
            chunks.extend(tables.iter_mut().filter_map(Vec::pop));
        }
    }
    chunks
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::rows::{ChunkRows, Common, row_count};
    use crate::random::Constants;
    use crate::text::Timestamp;
    use dyno_core::{Dialect, RowSource, RowWriter, ShardMap, ShardRule};
    use std::collections::{BTreeMap, BTreeSet};

    #[derive(Default)]
    struct Kept(Vec<String>);

    impl RowWriter for Kept {
        fn int(&mut self, value: i64) {
            self.0.push(value.to_string());
        }
        fn double(&mut self, value: f64) {
            self.0.push(value.to_string());
        }
        fn text(&mut self, value: &[u8]) {
            self.0.push(String::from_utf8(value.to_vec()).unwrap());
        }
        fn null(&mut self) {
            self.0.push("NULL".to_owned());
        }
    }

    fn rows_of(chunk: Chunk, dialect: Dialect) -> Vec<Vec<String>> {
        let constants = Constants { c_last: 10, c_id: 20, i_id: 30 };
        let common = Common { seed: 7, dialect, loaded_at: Timestamp(0), constants };
        let mut source = ChunkRows::new(common, chunk);
        let mut rows = Vec::new();
        let mut row = Kept::default();
        while source.next_row(&mut row) {
            rows.push(std::mem::take(&mut row.0));
        }
        assert_eq!(rows.len() as u64, row_count(7, &chunk), "{chunk:?}");
        source.restart();
        assert!(source.next_row(&mut row));
        assert_eq!(row.0, rows[0], "a restart begins anew");
        rows
    }

    #[test]
    fn names_are_unique_and_fit_their_column() {
        let chunks = all(1_001);
        let names: BTreeSet<String> = chunks.iter().map(Chunk::name).collect();
        assert_eq!(names.len(), chunks.len());
        assert_eq!(chunks.len(), 4 + 4 + 1_001 * 19);
        assert!(names.iter().all(|name| name.len() <= 40));
    }

    #[test]
    fn shards_share_out_the_warehouses() {
        let rows = |chunks: &[Chunk]| chunks.iter().map(|chunk| row_count(7, chunk)).sum::<u64>();
        let map = ShardMap::new(ShardRule::Modulo, 3).unwrap();
        let shards = [0, 1, 2].map(|shard| {
            of_warehouses((1..=7).filter(|&warehouse: &u32| map.shard_of(warehouse) == shard))
        });
        let names: BTreeSet<String> = shards.iter().flatten().map(Chunk::name).collect();
        assert_eq!(names.len(), 7 * 21);
        assert!(shards[1].iter().all(|chunk| [1, 4, 7].contains(&chunk.warehouse.max(chunk.low))
            || chunk.warehouse > 0 && [1, 4, 7].contains(&chunk.warehouse)));
        assert_eq!(rows(&shards.concat()) + rows(&items()), rows(&all(7)));
    }

    #[test]
    fn a_warehouse_has_the_rows_of_the_clause() {
        let mut counts = BTreeMap::new();
        let mut lines = 0;
        for chunk in all(1) {
            let rows = rows_of(chunk, Dialect::Postgres);
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
        let chunk = Chunk { table: TpccTable::History, warehouse: 2, low: 10, high: 10 };
        let postgres = rows_of(chunk, Dialect::Postgres);
        assert_eq!(postgres[2][..6], ["57003", "3", "10", "2", "10", "2"]);
        assert_eq!(postgres[2][6..8], ["1970-01-01 00:00:00.000", "10.00"]);
        assert_eq!(rows_of(chunk, Dialect::Sqlite)[2][7], "1000");
    }

    #[test]
    fn customers_have_all_names_and_a_tenth_bad_credit() {
        let rows = rows_of(
            Chunk { table: TpccTable::Customer, warehouse: 1, low: 1, high: 5 },
            Dialect::Mysql,
        );
        assert_eq!(rows[0][5], "BARBARBAR");
        assert_eq!(rows[3_999][5], "EINGEINGEING");
        let bad = rows.iter().filter(|row| row[4] == "BC").count();
        // 1,500 expected, deviation 37.
        assert!((1_300..1_700).contains(&bad), "{bad}");
        assert!(rows.iter().all(|row| (300..=500).contains(&row[20].len())));
    }

    #[test]
    fn an_undone_chunk_is_removed_by_its_own_rows_only() {
        let stock = Chunk { table: TpccTable::Stock, warehouse: 3, low: 25_001, high: 50_000 };
        assert_eq!(
            stock.delete(),
            "DELETE FROM bmsql_stock WHERE s_w_id = 3 AND s_i_id BETWEEN 25001 AND 50000"
        );
        let districts = Chunk { table: TpccTable::District, warehouse: 0, low: 1, high: 7 };
        assert_eq!(districts.delete(), "DELETE FROM bmsql_district WHERE d_w_id BETWEEN 1 AND 7");
    }
}
