//! The refresh sets (2.5 to 2.7, 4.2.4): what RF1 inserts and RF2 deletes.
//!
//! dbgen's rows of set u are those that would follow the base data; their keys fill gaps that the
//! keys of the base data leave.

use super::{Rows, TpchRows, make_rows};
use crate::schema::SchemaTable;
use std::ops::Range;
use tpchgen::generators::{LineItemGenerator, OrderGenerator};

/// The number of the last set: for set 1000 there would be too few base orders to delete.
pub const SET_MAX: u32 = 999;

/// A set is a thousandth of the base data (2.5.3: 1500 orders for each unit of the scale factor).
const SETS: u32 = 1000;

/// The orders that RF1 inserts, and as many does RF2 delete.
pub fn orders(scale: f64) -> u64 {
    OrderGenerator::calculate_row_count(scale, 1, SETS as i32) as u64
}

/// The lines of the orders that RF1 inserts with set `set` (1 to [`SET_MAX`]).
pub fn lines(scale: f64, set: u32) -> u64 {
    super::count_lines(orders_before(scale, set), orders(scale))
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

/// The rows of orders or of lineitem that RF1 inserts with set `set` (1 to [`SET_MAX`]), of these orders only, counted from
/// 0 within the set: an order and its lines have to go into one transaction (2.5.4), a set may go into several.
pub fn inserted(table: SchemaTable, scale: f64, set: u32, orders: Range<u64>) -> TpchRows {
    let end = self::orders(scale);
    let range = orders.start.min(end) as i64..orders.end.min(end) as i64;
    TpchRows::new(move || new_rows(table, scale, set, range.clone()))
}

/// The keys of [`deleted_keys`] as rows of one column.
pub(super) fn deleted(scale: f64, set: u32) -> TpchRows {
    TpchRows::new(move || make_rows(deleted_keys(scale, set), |_, key, out| out.int(key)))
}

fn new_rows(table: SchemaTable, scale: f64, set: u32, range: Range<i64>) -> Rows {
    let (part, parts) = ((SETS + set.clamp(1, SET_MAX)) as i32, SETS as i32);
    let (orders_before, deleted_before) =
        (orders_before(scale, set) as i64, (deleted_orders(scale, set).start - 1) as i64);
    // Place of the order with this key of the stream of rows in the set, from 0.
    let place = move |old: i64| old / 32 * 8 + old % 8 - 1 - orders_before;
    let Range { start, end } = range;
    if table == SchemaTable::Orders {
        let all_orders = OrderGenerator::new(scale, part, parts).iter();
        let set_orders = all_orders.skip_while(move |row| place(row.o_orderkey) < start);
        make_rows(
            set_orders.take_while(move |row| place(row.o_orderkey) < end),
            move |cells, mut row, out| {
                row.o_orderkey = key(deleted_before + place(row.o_orderkey) + 1, 1);
                cells.write_order(row, out);
            },
        )
    } else {
        let all_lines = LineItemGenerator::new(scale, part, parts).iter();
        let set_lines = all_lines.skip_while(move |row| place(row.l_orderkey) < start);
        make_rows(
            set_lines.take_while(move |row| place(row.l_orderkey) < end),
            move |cells, mut row, out| {
                row.l_orderkey = key(deleted_before + place(row.l_orderkey) + 1, 1);
                cells.write_lineitem(row, out);
            },
        )
    }
}
