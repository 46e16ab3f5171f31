//! The refresh sets (2.5 to 2.7, 4.2.4): what RF1 inserts and RF2 deletes.
//!
//! dbgen's rows of set u are those that would follow the base data; their keys fill gaps that the
//! keys of the base data leave.

use super::cells::Cells;
use dyno_core::{RowSource, RowWriter};
use std::fmt;
use std::ops::Range;
use tpchgen::generators::{
    LineItemGenerator, LineItemGeneratorIterator, OrderGenerator, OrderGeneratorIterator,
};

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
    scale: f64,
    set: u32,
    /// Which of the set's orders, from 0.
    range: Range<i64>,
    numbers: Numbers,
    rows: Rows,
    cells: Cells,
}

enum Rows {
    Orders(OrderGeneratorIterator<'static>),
    Lines(LineItemGeneratorIterator<'static>),
}

impl RefreshRows {
    /// The new rows of orders of set `set`, 1 to [`SET_MAX`].
    pub fn orders(scale: f64, set: u32) -> RefreshRows {
        RefreshRows::new(scale, set, Rows::orders(scale, set))
    }

    /// The new rows of lineitem of set `set`, 1 to [`SET_MAX`].
    pub fn lines(scale: f64, set: u32) -> RefreshRows {
        RefreshRows::new(scale, set, Rows::lines(scale, set))
    }

    fn new(scale: f64, set: u32, rows: Rows) -> RefreshRows {
        let (range, numbers) = (0..orders(scale) as i64, Numbers::of(scale, set));
        RefreshRows { scale, set, range, numbers, rows, cells: Cells::new() }
    }

    /// Only the rows of these orders, counted from 0 within the set: an order and its lines have to
    /// go into one transaction (2.5.4), a set may go into several.
    #[must_use]
    pub fn of_orders(mut self, range: Range<u64>) -> RefreshRows {
        let end = orders(self.scale);
        self.range = range.start.min(end) as i64..range.end.min(end) as i64;
        self
    }
}

/// How the orders of a set are counted.
#[derive(Clone, Copy)]
struct Numbers {
    /// Orders of the stream of rows before the set.
    stream: i64,
    /// Orders of the sets before it.
    sets: i64,
}

impl Numbers {
    fn of(scale: f64, set: u32) -> Numbers {
        let sets = orders(scale) * u64::from(set.saturating_sub(1));
        Numbers { stream: orders_before(scale, set) as i64, sets: sets as i64 }
    }

    /// Where the order with this key in the stream is in the set, from 0.
    #[inline]
    fn place(self, key: i64) -> i64 {
        key / 32 * 8 + key % 8 - 1 - self.stream
    }

    #[inline]
    fn new_key(self, old: i64) -> i64 {
        key(self.sets + self.place(old) + 1, 1)
    }
}

impl Rows {
    fn part(set: u32) -> i32 {
        (SETS + set.clamp(1, SET_MAX)) as i32
    }

    fn orders(scale: f64, set: u32) -> Rows {
        Rows::Orders(OrderGenerator::new(scale, Rows::part(set), SETS as i32).iter())
    }

    fn lines(scale: f64, set: u32) -> Rows {
        Rows::Lines(LineItemGenerator::new(scale, Rows::part(set), SETS as i32).iter())
    }
}

impl RowSource for RefreshRows {
    fn next_row(&mut self, out: &mut dyn RowWriter) -> bool {
        let numbers = self.numbers;
        match &mut self.rows {
            Rows::Orders(rows) => {
                let mut rows =
                    rows.skip_while(|row| numbers.place(row.o_orderkey) < self.range.start);
                let Some(mut row) = rows.next() else { return false };
                if numbers.place(row.o_orderkey) >= self.range.end {
                    return false;
                }
                row.o_orderkey = numbers.new_key(row.o_orderkey);
                self.cells.order(&row, out);
            }
            Rows::Lines(rows) => {
                let mut rows =
                    rows.skip_while(|row| numbers.place(row.l_orderkey) < self.range.start);
                let Some(mut row) = rows.next() else { return false };
                if numbers.place(row.l_orderkey) >= self.range.end {
                    return false;
                }
                row.l_orderkey = numbers.new_key(row.l_orderkey);
                self.cells.lineitem(&row, out);
            }
        }
        true
    }

    fn restart(&mut self) {
        self.rows = match self.rows {
            Rows::Orders(_) => Rows::orders(self.scale, self.set),
            Rows::Lines(_) => Rows::lines(self.scale, self.set),
        };
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
