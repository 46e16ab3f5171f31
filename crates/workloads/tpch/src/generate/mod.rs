//! The rows of the eight tables (clause 4.2), made by the crate tpchgen, which makes what dbgen makes.
//!
//! The first row of a process takes about 1.5 s of CPU and 300 MB of memory: the pool that all comments
//! are cut from. Threads share it, processes don't.

mod cells;
pub mod files;
pub mod refresh;

use crate::random::{MODULUS, Stream};
use crate::schema::SchemaTable;
use cells::Cells;
use dyno_core::{RowSource, RowWriter};
use dyno_load::LoadError;
use std::fmt;
use tpchgen::generators::{
    CustomerGenerator, CustomerGeneratorIterator, LineItemGenerator, LineItemGeneratorIterator,
    NationGenerator, NationGeneratorIterator, OrderGenerator, OrderGeneratorIterator,
    PartGenerator, PartGeneratorIterator, PartSuppGenerator, PartSuppGeneratorIterator,
    RegionGenerator, RegionGeneratorIterator, SupplierGenerator, SupplierGeneratorIterator,
};
use tpchgen::text::TextPool;

/// One part of a table's rows, in dbgen's order. Money is written as text (`-999.99`), days as
/// `1992-01-01`, `l_quantity` as a whole number.
pub struct TableRows {
    table: SchemaTable,
    scale: f64,
    part: u32,
    parts: u32,
    rows: Rows,
    cells: Cells,
}

enum Rows {
    Region(RegionGeneratorIterator<'static>),
    Nation(NationGeneratorIterator<'static>),
    Supplier(SupplierGeneratorIterator<'static>),
    Part(PartGeneratorIterator<'static>),
    Partsupp(PartSuppGeneratorIterator<'static>),
    Customer(CustomerGeneratorIterator<'static>),
    Orders(OrderGeneratorIterator<'static>),
    Lineitem(LineItemGeneratorIterator<'static>),
    None,
}

impl TableRows {
    /// The rows of part `part` of `parts` (both from 1): the parts one after another are the whole
    /// table. Region and nation are in part 1, a part beyond `parts` is empty. `scale` is one that
    /// [`check_scale`] accepts. Makes the pool of text if no one has.
    pub fn new(table: SchemaTable, scale: f64, part: u32, parts: u32) -> TableRows {
        let rows = Rows::new(table, scale, part, parts);
        TableRows { table, scale, part, parts, rows, cells: Cells::new() }
    }
}

impl Rows {
    fn new(table: SchemaTable, scale: f64, part: u32, parts: u32) -> Rows {
        let Some((number, of)) = existing_part(table, part, parts) else {
            return Rows::None;
        };
        match table {
            SchemaTable::Region => Rows::Region(RegionGenerator::new(scale, 1, 1).iter()),
            SchemaTable::Nation => Rows::Nation(NationGenerator::new(scale, 1, 1).iter()),
            SchemaTable::Supplier => {
                Rows::Supplier(SupplierGenerator::new(scale, number, of).iter())
            }
            SchemaTable::Part => Rows::Part(PartGenerator::new(scale, number, of).iter()),
            SchemaTable::Partsupp => {
                Rows::Partsupp(PartSuppGenerator::new(scale, number, of).iter())
            }
            SchemaTable::Customer => {
                Rows::Customer(CustomerGenerator::new(scale, number, of).iter())
            }
            SchemaTable::Orders => Rows::Orders(OrderGenerator::new(scale, number, of).iter()),
            SchemaTable::Lineitem => {
                Rows::Lineitem(LineItemGenerator::new(scale, number, of).iter())
            }
        }
    }
}

impl RowSource for TableRows {
    #[inline]
    fn next_row(&mut self, out: &mut dyn RowWriter) -> bool {
        let cells = &mut self.cells;
        match &mut self.rows {
            Rows::Lineitem(rows) => rows.next().map(|row| cells.lineitem(&row, out)),
            Rows::Orders(rows) => rows.next().map(|row| cells.order(&row, out)),
            Rows::Partsupp(rows) => rows.next().map(|row| cells.partsupp(&row, out)),
            Rows::Part(rows) => rows.next().map(|row| cells.part(&row, out)),
            Rows::Customer(rows) => rows.next().map(|row| cells.customer(&row, out)),
            Rows::Supplier(rows) => rows.next().map(|row| cells.supplier(&row, out)),
            Rows::Nation(rows) => rows.next().map(|row| cells.nation(&row, out)),
            Rows::Region(rows) => rows.next().map(|row| cells.region(&row, out)),
            Rows::None => None,
        }
        .is_some()
    }

    fn restart(&mut self) {
        self.rows = Rows::new(self.table, self.scale, self.part, self.parts);
    }
}

impl fmt::Debug for TableRows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (part, parts) = (self.part, self.parts);
        write!(f, "TableRows({}, scale {}, part {part}/{parts})", self.table.name(), self.scale)
    }
}

/// Makes the pool of text now, so that what is timed afterwards does not pay for it.
pub fn prepare() {
    TextPool::get_or_init_default();
}

/// Where the stream of line counts begins: column `O_LCNT`.
const LINE_COUNT_SEED: u64 = 1_434_868_289;
const LINES_MAX: u64 = 7;

/// The exact number of a table's rows; lineitem's is counted from the stream of line counts, which
/// takes 3 ms for each unit of the scale factor, and some seconds at the most.
pub fn row_count(table: SchemaTable, scale: f64) -> u64 {
    part_row_count(table, scale, 1, 1)
}

/// The number of a part and how many there are, as tpchgen counts them; `None` where the part has no rows.
fn existing_part(table: SchemaTable, part: u32, parts: u32) -> Option<(i32, i32)> {
    let is_small = matches!(table, SchemaTable::Region | SchemaTable::Nation);
    let is_there = (1..=parts).contains(&part) && (part == 1 || !is_small);
    let (number, of) = (i32::try_from(part).ok()?, i32::try_from(parts).ok()?);
    is_there.then_some((number, of))
}

/// The rows of part `part` of `parts`, both from 1: what [`TableRows`] makes.
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
fn lines(before: u64, orders: u64) -> u64 {
    // The generator walks through all numbers below its modulus: after a whole cycle the seven counts
    // of lines have come equally often.
    let cycle = MODULUS - 1;
    let mut stream = Stream::after(LINE_COUNT_SEED, before);
    let rest: u64 = (0..orders % cycle).map(|_| 1 + stream.draw() * LINES_MAX / MODULUS).sum();
    orders / cycle * (cycle * 4) + rest
}

/// The largest scale factor of clause 4.1.3.1.
pub const SCALE_MAX: f64 = 100_000.0;

/// Accepts a scale factor of which consistent tables can be made: fractions too, also above 1.
pub fn check_scale(scale: f64) -> Result<(), LoadError> {
    if !(scale > 0.0 && scale <= SCALE_MAX) {
        return Err(LoadError::data(
            format!("The scale factor must be above 0 and at most {SCALE_MAX}, not {scale}."),
            "Use 1 for the smallest official size, 0.01 for a trial.",
        ));
    }
    if suppliers_differ(scale) {
        return Ok(());
    }
    let from = (scale * 1000.0).floor() as u32 + 1;
    let next = (from..).map(|thousandths| f64::from(thousandths) / 1000.0);
    let next = next.into_iter().find(|next| suppliers_differ(*next)).unwrap_or(SCALE_MAX);
    Err(LoadError::data(
        format!(
            "The scale factor {scale} is too small: some parts would have a supplier twice, which \
             the primary key of partsupp forbids."
        ),
        format!("The next greater one that works is {next}."),
    ))
}

/// Whether the four suppliers of every part differ. Clause 4.2.3: supplier i of part p is
/// (p + i * (S/4 + (p-1)/S)) mod S + 1, and p reaches 20 S.
fn suppliers_differ(scale: f64) -> bool {
    let suppliers = SupplierGenerator::calculate_row_count(scale, 1, 1);
    let parts = tpchgen::generators::PartGenerator::calculate_row_count(scale, 1, 1);
    if suppliers < 4 {
        return false;
    }
    let laps = 0..=(parts - 1) / suppliers;
    let mut steps = laps.map(|lap| suppliers / 4 + lap);
    steps.all(|step| (1..=3).all(|times| times * step % suppliers != 0))
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

    #[test]
    fn the_usual_sizes_are_accepted() {
        for scale in [0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 1.5, 10.0, 1000.0, SCALE_MAX] {
            assert!(check_scale(scale).is_ok(), "{scale}");
        }
    }

    #[test]
    fn sizes_without_a_database_are_refused() {
        for scale in [0.0, -1.0, f64::NAN, f64::INFINITY, 100_000.5] {
            let error = check_scale(scale).expect_err("out of range").to_string();
            assert!(error.contains("must be above 0"), "{error}");
        }
        // 10 suppliers: with a step of 5 the third supplier is the first.
        let error = check_scale(0.001).expect_err("too small");
        let next = error.hint().and_then(|hint| hint.trim_end_matches('.').rsplit(' ').next());
        assert!(check_scale(next.and_then(|next| next.parse().ok()).expect("a number")).is_ok());
    }
}
