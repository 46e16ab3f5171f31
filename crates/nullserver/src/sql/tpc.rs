//! Values of the columns of TPC schemas, by the name behind a letter or two of the table (`d_tax`, `ol_amount`).

use super::names::lowered;
use super::plan::Value;

const LAST_NAME: &[u8] = b"BARBARBAR";
const WORD: &[u8] = b"abcdefghijkl";
/// 24 letters: the description of a stock at a district.
const DIST: &[u8] = b"abcdefghijklmnopqrstuvwx";
const DATA: &[u8] = b"abcdefghijklmnopqrstuvwxyzabcdefghijklmn";

/// The value of a column by the lower case of its name.
pub(super) fn column_value(lower: &[u8]) -> Option<Value> {
    let prefix = lower.iter().position(|&byte| byte == b'_')?;
    if !(1..=2).contains(&prefix) {
        return None;
    }
    Some(match &lower[prefix + 1..] {
        b"tax" | b"discount" => Value::Decimal(1_250, 4),
        b"price" | b"amount" | b"ytd" | b"ytd_payment" => Value::Decimal(1_250, 2),
        b"balance" => Value::Decimal(-1_000, 2),
        b"credit_lim" => Value::Decimal(5_000_000, 2),
        b"next_o_id" => Value::Int(3_001),
        b"o_id" => Value::Int(2_101),
        b"quantity" => Value::Int(50),
        b"ol_cnt" => Value::Int(10),
        b"id" | b"w_id" | b"d_id" | b"c_id" | b"i_id" | b"c_w_id" | b"c_d_id" | b"supply_w_id"
        | b"carrier_id" | b"number" | b"all_local" | b"order_cnt" | b"remote_cnt"
        | b"payment_cnt" | b"delivery_cnt" | b"im_id" => Value::Int(1),
        b"entry_d" | b"delivery_d" | b"since" | b"date" => Value::Timestamp,
        b"last" => Value::Text(LAST_NAME),
        b"first" | b"name" | b"street_1" | b"street_2" | b"city" => Value::Text(WORD),
        b"data" => Value::Text(DATA),
        b"credit" => Value::Char(b"GC"),
        b"middle" => Value::Char(b"OE"),
        b"state" => Value::Char(b"CA"),
        b"zip" => Value::Char(b"123411111"),
        b"phone" => Value::Char(b"1234567890123456"),
        b"dist_info" => Value::Char(DIST),
        rest if rest.starts_with(b"dist_") => Value::Char(DIST),
        _ => return None,
    })
}

/// The highest value of a key. TPC-C orders items that don't exist (clause 2.4.1.5).
pub(super) fn last_key(name: &[u8]) -> Option<i64> {
    lowered(name, |lower| (lower == b"i_id").then_some(100_000))
}

/// Rows that a statement finds when it orders a table by part of its key: customers of one name, lines of one order.
pub(super) fn rows_in_order(table: &[u8]) -> u64 {
    lowered(table, |lower| match lower {
        _ if lower.ends_with(b"order_line") => 10,
        _ if lower.ends_with(b"customer") => 3,
        _ => 1,
    })
}
