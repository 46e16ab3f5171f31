//! The rows against what dbgen writes.

use dyno_core::{RowSource, RowWriter};
use dyno_tpch::generate::refresh::{self, inserted};
use dyno_tpch::generate::{TpchRows, part_row_count, row_count};
use dyno_tpch::schema::SchemaTable;

/// A row as dbgen writes it, without its newline.
#[derive(Default)]
struct Line(String);

impl RowWriter for Line {
    fn int(&mut self, value: i64) {
        self.0 += &format!("{value}|");
    }
    fn double(&mut self, value: f64) {
        self.0 += &format!("{value}|");
    }
    fn text(&mut self, value: &[u8]) {
        self.0 += &format!("{}|", std::str::from_utf8(value).unwrap());
    }
    fn null(&mut self) {
        self.0 += "NULL|";
    }
}

fn read_lines(rows: &mut dyn RowSource) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = Line::default();
    while rows.next_row(&mut line) {
        lines.push(std::mem::take(&mut line.0));
    }
    lines
}

#[test]
fn rows_have_the_columns_of_their_table_and_restart() {
    for table in SchemaTable::ALL {
        let mut rows = TpchRows::for_part(table, 0.01, 1, 1);
        let all_lines = read_lines(&mut rows);
        assert_eq!(all_lines.len() as u64, row_count(table, 0.01), "{table:?}");
        for line in &all_lines {
            assert_eq!(line.matches('|').count(), table.columns().len(), "{line}");
        }
        rows.restart();
        assert_eq!(read_lines(&mut rows), all_lines, "{table:?}");
    }
}

#[test]
fn rows_are_those_of_tpchgens_own_format() {
    fn format_rows<T: std::fmt::Display>(rows: impl Iterator<Item = T>) -> Vec<String> {
        rows.map(|row| row.to_string()).collect()
    }
    fn table_lines(table: SchemaTable) -> Vec<String> {
        read_lines(&mut TpchRows::for_part(table, 0.01, 1, 1))
    }
    use tpchgen::generators as g;
    assert_eq!(
        table_lines(SchemaTable::Region),
        format_rows(g::RegionGenerator::new(0.01, 1, 1).iter())
    );
    assert_eq!(
        table_lines(SchemaTable::Nation),
        format_rows(g::NationGenerator::new(0.01, 1, 1).iter())
    );
    assert_eq!(
        table_lines(SchemaTable::Supplier),
        format_rows(g::SupplierGenerator::new(0.01, 1, 1).iter())
    );
    assert_eq!(
        table_lines(SchemaTable::Part),
        format_rows(g::PartGenerator::new(0.01, 1, 1).iter())
    );
    assert_eq!(
        table_lines(SchemaTable::Partsupp),
        format_rows(g::PartSuppGenerator::new(0.01, 1, 1).iter())
    );
    assert_eq!(
        table_lines(SchemaTable::Customer),
        format_rows(g::CustomerGenerator::new(0.01, 1, 1).iter())
    );
    assert_eq!(
        table_lines(SchemaTable::Orders),
        format_rows(g::OrderGenerator::new(0.01, 1, 1).iter())
    );
    assert_eq!(
        table_lines(SchemaTable::Lineitem),
        format_rows(g::LineItemGenerator::new(0.01, 1, 1).iter())
    );
}

#[test]
fn parts_one_after_another_are_the_table() {
    for table in SchemaTable::ALL {
        let whole_table = read_lines(&mut TpchRows::for_part(table, 0.011, 1, 1));
        let mut joined = Vec::new();
        for part in 1..=3 {
            let part_lines = read_lines(&mut TpchRows::for_part(table, 0.011, part, 3));
            assert_eq!(part_lines.len() as u64, part_row_count(table, 0.011, part, 3), "{table:?}");
            joined.extend(part_lines);
        }
        assert_eq!(joined, whole_table, "{table:?}");
        assert!(read_lines(&mut TpchRows::for_part(table, 0.011, 4, 3)).is_empty(), "{table:?}");
    }
}

#[test]
fn refresh_set_1_begins_as_dbgens() {
    let orders = read_lines(&mut inserted(SchemaTable::Orders, 1.0, 1, 0..u64::MAX));
    assert_eq!(orders.len(), 1500);
    assert!(orders[0].starts_with("9|12658|O|129872.68|1998-07-06|"), "{}", orders[0]);
    for (set, expected) in [(1, 5_822), (75, 5_913), (150, 6_006)] {
        assert_eq!(refresh::lines(1.0, set), expected, "set {set}");
        assert_eq!(
            read_lines(&mut inserted(SchemaTable::Lineitem, 1.0, set, 0..u64::MAX)).len() as u64,
            expected,
            "set {set}"
        );
    }
    let deleted: Vec<i64> = refresh::deleted_keys(1.0, 1).collect();
    assert_eq!(deleted.len(), 1500);
    assert_eq!(deleted[..9], [1, 2, 3, 4, 5, 6, 7, 32, 33]);
}

fn order_key(line: &str) -> i64 {
    line.split('|').next().unwrap().parse().unwrap()
}

#[test]
fn refresh_sets_meet_neither_the_base_data_nor_each_other() {
    // A scale factor whose orders a thousand sets don't divide evenly.
    let scale = 0.0111;
    let mut keys: Vec<i64> = read_lines(&mut TpchRows::for_part(SchemaTable::Orders, scale, 1, 1))
        .iter()
        .map(|line| order_key(line))
        .collect();
    let base = keys.clone();
    let mut deleted = Vec::new();
    for set in 1..=20 {
        let orders = read_lines(&mut inserted(SchemaTable::Orders, scale, set, 0..u64::MAX));
        assert_eq!(orders.len() as u64, refresh::orders(scale));
        let order_keys: Vec<i64> = orders.iter().map(|line| order_key(line)).collect();
        let mut line_keys: Vec<i64> =
            read_lines(&mut inserted(SchemaTable::Lineitem, scale, set, 0..u64::MAX))
                .iter()
                .map(|line| order_key(line))
                .collect();
        line_keys.dedup();
        assert_eq!(line_keys, order_keys, "every order has its lines");
        keys.extend(order_keys);
        deleted.extend(refresh::deleted_keys(scale, set));
    }
    let count = keys.len();
    keys.sort_unstable();
    keys.dedup();
    assert_eq!(keys.len(), count, "no key comes twice");
    assert_eq!(deleted, base[..deleted.len()], "what is deleted exists, from the first order on");
}

#[test]
fn a_refresh_set_in_pieces_is_the_set() {
    let count = refresh::orders(0.1);
    for table in [SchemaTable::Orders, SchemaTable::Lineitem] {
        let whole_set = read_lines(&mut inserted(table, 0.1, 3, 0..u64::MAX));
        let pieces = [0..1, 1..40, 40..count, count..count + 5];
        let joined: Vec<String> = pieces
            .into_iter()
            .flat_map(|piece| read_lines(&mut inserted(table, 0.1, 3, piece)))
            .collect();
        assert_eq!(joined, whole_set);
    }
}
