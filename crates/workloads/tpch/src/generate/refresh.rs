//! The refresh sets (2.5 to 2.7, 4.2.4): what RF1 inserts and RF2 deletes.
//!
//! dbgen's rows of set u are those that would follow the base data; their keys fill gaps that the
//! keys of the base data leave.

use super::{Cells, Rows};
use crate::schema::SchemaTable;
use dyno_core::{RowSource, RowWriter};
use std::fmt;
use std::ops::Range;
use tpchgen::generators::{LineItemGenerator, OrderGenerator};

/// The number of the last set: set 1000 would end where no base orders are left to delete.
pub const SET_MAX: u32 = 999;

/// A set is a thousandth of the base data (2.5.3: 1500 orders for each unit of the scale factor).
const SETS: u32 = 1000;

/// The orders that RF1 inserts, and as many does RF2 delete.
pub fn orders(scale: f64) -> u64 {
    OrderGenerator::calculate_row_count(scale, 1, SETS as i32) as u64
}

/// The lines of the orders that RF1 inserts with set `set` (1 to [`SET_MAX`]).
pub fn lines(scale: f64, set: u32) -> u64 {
    super::lines(orders_before(scale, set), orders(scale))
}

/// The keys of the orders that RF2 deletes, with their lines, in order.
pub fn deleted_keys(scale: f64, set: u32) -> impl Iterator<Item = i64> {
    deleted_orders(scale, set).map(|order| key(order as i64, 0))
}

/// The orders that RF2 deletes, counted from 1.
fn deleted_orders(scale: f64, set: u32) -> Range<u64> {
    let orders = orders(scale);
    let first = orders * u64::from(set.saturating_sub(1)) + 1;
    first..first + orders
}

/// The orders in the stream of rows before those of the set.
fn orders_before(scale: f64, set: u32) -> u64 {
    orders(scale) * u64::from(SETS + set.saturating_sub(1))
}

/// The key of an order, counted from 1: of every 32 keys the base data has the first eight, what RF1
/// inserts the next.
fn key(order: i64, eighth: i64) -> i64 {
    (order / 8 * 4 + eighth) * 8 + order % 8
}

/// Rows that RF1 inserts: those of orders, or those of lineitem.
pub struct RefreshRows {
    table: SchemaTable,
    scale: f64,
    set: u32,
    /// Which of the set's orders, from 0.
    range: Range<i64>,
    rows: Rows,
    cells: Cells,
}

impl RefreshRows {
    /// The new rows of orders of set `set`, 1 to [`SET_MAX`].
    pub fn orders(scale: f64, set: u32) -> RefreshRows {
        RefreshRows::new(SchemaTable::Orders, scale, set, 0..u64::MAX)
    }

    /// The new rows of lineitem of set `set`, 1 to [`SET_MAX`].
    pub fn lines(scale: f64, set: u32) -> RefreshRows {
        RefreshRows::new(SchemaTable::Lineitem, scale, set, 0..u64::MAX)
    }

    fn new(table: SchemaTable, scale: f64, set: u32, range: Range<u64>) -> RefreshRows {
        let end = orders(scale);
        let range = range.start.min(end) as i64..range.end.min(end) as i64;
        let rows = new_rows(table, scale, set, range.clone());
        RefreshRows { table, scale, set, range, rows, cells: Cells::new() }
    }

    /// Only the rows of these orders, counted from 0 within the set: an order and its lines have to
    /// go into one transaction (2.5.4), a set may go into several.
    #[must_use]
    pub fn of_orders(self, range: Range<u64>) -> RefreshRows {
        RefreshRows::new(self.table, self.scale, self.set, range)
    }
}

fn new_rows(table: SchemaTable, scale: f64, set: u32, range: Range<i64>) -> Rows {
    let (part, parts) = ((SETS + set.clamp(1, SET_MAX)) as i32, SETS as i32);
    let (of_stream, of_sets) =
        (orders_before(scale, set) as i64, (deleted_orders(scale, set).start - 1) as i64);
    // Where the order with this key in the stream of rows is in the set, from 0.
    let place = move |old: i64| old / 32 * 8 + old % 8 - 1 - of_stream;
    let new_key = move |old: i64| key(of_sets + place(old) + 1, 1);
    let Range { start, end } = range;
    if table == SchemaTable::Orders {
        let rows = OrderGenerator::new(scale, part, parts).iter();
        let rows = rows.skip_while(move |row| place(row.o_orderkey) < start);
        super::rows(
            rows.take_while(move |row| place(row.o_orderkey) < end),
            move |cells, mut row, out| {
                row.o_orderkey = new_key(row.o_orderkey);
                cells.order(row, out);
            },
        )
    } else {
        let rows = LineItemGenerator::new(scale, part, parts).iter();
        let rows = rows.skip_while(move |row| place(row.l_orderkey) < start);
        super::rows(
            rows.take_while(move |row| place(row.l_orderkey) < end),
            move |cells, mut row, out| {
                row.l_orderkey = new_key(row.l_orderkey);
                cells.lineitem(row, out);
            },
        )
    }
}

impl RowSource for RefreshRows {
    fn next_row(&mut self, out: &mut dyn RowWriter) -> bool {
        (self.rows)(&mut self.cells, out)
    }

    fn restart(&mut self) {
        self.rows = new_rows(self.table, self.scale, self.set, self.range.clone());
    }
}

impl fmt::Debug for RefreshRows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RefreshRows(set {}, scale {}, orders {:?})", self.set, self.scale, self.range)
    }
}

/// The keys of [`deleted_keys`] as rows of one column.
#[derive(Debug)]
pub(super) struct DeletedKeys {
    scale: f64,
    set: u32,
    orders: Range<u64>,
}

impl DeletedKeys {
    pub(super) fn new(scale: f64, set: u32) -> DeletedKeys {
        DeletedKeys { scale, set, orders: deleted_orders(scale, set) }
    }
}

impl RowSource for DeletedKeys {
    fn next_row(&mut self, out: &mut dyn RowWriter) -> bool {
        let order = self.orders.next();
        if let Some(order) = order {
            out.int(key(order as i64, 0));
        }
        order.is_some()
    }

    fn restart(&mut self) {
        self.orders = deleted_orders(self.scale, self.set);
    }
}
