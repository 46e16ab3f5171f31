//! The rows of the eight tables (clause 4.2), made by the crate tpchgen, which makes what dbgen makes.
//!
//! The first row of a process takes about 1.5 s of CPU and 300 MB of memory: the pool that all comments
//! are cut from. Threads share it, processes don't.

mod cells;
mod count;
pub mod files;
pub mod refresh;
mod scale;

pub use count::{part_row_count, row_count};
pub use scale::{SCALE_MAX, check_scale};

use crate::schema::SchemaTable;
use cells::Cells;
use dyno_core::{RowSource, RowWriter};
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
        let Some((number, of)) = count::existing_part(table, part, parts) else {
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
