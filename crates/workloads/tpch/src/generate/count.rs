//! How many rows a table has, without making them.

use crate::random::{MODULUS, Stream};
use crate::schema::SchemaTable;
use tpchgen::generators::{
    CustomerGenerator, OrderGenerator, PartGenerator, PartSuppGenerator, SupplierGenerator,
};

/// Where the stream of line counts begins: column `O_LCNT`.
const LINE_COUNT_SEED: u64 = 1_434_868_289;
const LINES_MAX: u64 = 7;

/// The exact number of a table's rows; lineitem's is counted from the stream of line counts, which
/// takes 3 ms for each unit of the scale factor, and some seconds at the most.
pub fn row_count(table: SchemaTable, scale: f64) -> u64 {
    part_row_count(table, scale, 1, 1)
}

/// The number of a part and how many there are, as tpchgen counts them; `None` where the part has no rows.
pub(super) fn existing_part(table: SchemaTable, part: u32, parts: u32) -> Option<(i32, i32)> {
    let is_small = matches!(table, SchemaTable::Region | SchemaTable::Nation);
    let is_there = (1..=parts).contains(&part) && (part == 1 || !is_small);
    let (number, of) = (i32::try_from(part).ok()?, i32::try_from(parts).ok()?);
    is_there.then_some((number, of))
}

/// The rows of part `part` of `parts`, both from 1: what [`super::TableRows`] makes.
pub fn part_row_count(table: SchemaTable, scale: f64, part: u32, parts: u32) -> u64 {
    let Some((number, of)) = existing_part(table, part, parts) else { return 0 };
    let rows = match table {
        SchemaTable::Region => 5,
        SchemaTable::Nation => 25,
        SchemaTable::Supplier => SupplierGenerator::calculate_row_count(scale, number, of),
        SchemaTable::Part => PartGenerator::calculate_row_count(scale, number, of),
        SchemaTable::Partsupp => 4 * PartSuppGenerator::calculate_row_count(scale, number, of),
        SchemaTable::Customer => CustomerGenerator::calculate_row_count(scale, number, of),
        SchemaTable::Orders => OrderGenerator::calculate_row_count(scale, number, of),
        SchemaTable::Lineitem => {
            let whole = OrderGenerator::calculate_row_count(scale, 1, 1) as u64;
            let before = whole / u64::from(parts) * u64::from(part - 1);
            let orders = OrderGenerator::calculate_row_count(scale, number, of) as u64;
            return lines(before, orders);
        }
    };
    rows as u64
}

/// The lines of `orders` orders that come after the first `before`.
pub(super) fn lines(before: u64, orders: u64) -> u64 {
    // The generator walks through all numbers below its modulus: after a whole cycle the seven counts
    // of lines have come equally often.
    let cycle = MODULUS - 1;
    let mut stream = Stream::after(LINE_COUNT_SEED, before);
    let rest: u64 = (0..orders % cycle).map(|_| 1 + stream.draw() * LINES_MAX / MODULUS).sum();
    orders / cycle * (cycle * 4) + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lineitem_has_the_rows_that_the_specification_counts() {
        // Clause 4.2.5.
        assert_eq!(row_count(SchemaTable::Lineitem, 1.0), 6_001_215);
        assert_eq!(row_count(SchemaTable::Lineitem, 10.0), 59_986_052);
        assert_eq!(row_count(SchemaTable::Lineitem, 30.0), 179_998_372);
    }

    #[test]
    fn parts_add_up() {
        for table in SchemaTable::ALL {
            for (scale, parts) in [(0.01, 7), (0.1, 3), (1.0, 16)] {
                let sum: u64 =
                    (1..=parts).map(|part| part_row_count(table, scale, part, parts)).sum();
                assert_eq!(sum, row_count(table, scale), "{table:?} {scale} {parts}");
            }
        }
    }

    #[test]
    fn the_generator_repeats_itself_after_two_billion_orders() {
        assert_eq!(row_count(SchemaTable::Lineitem, 3000.0), 18_000_048_306);
    }
}
