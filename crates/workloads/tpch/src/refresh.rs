//! The refresh functions (clauses 2.5 to 2.7): RF1 inserts new orders and their lines, RF2 deletes as
//! many old ones.
//!
//! A pair is executed in transactions of [`ORDERS_EACH`] orders and their lines (2.5.4 asks for an
//! order and its lines in one). Each transaction notes in the database how far the pair has come, so
//! that an interrupted one continues from there, and no set is applied twice.

use crate::generate::refresh;
use crate::schema::SchemaTable;
use crate::state::{begin, fact, note_refresh_pair, set_fact};
use dyno_core::{AdminSession, DbError, Dialect, Discard, RowSource};
use dyno_wire::mysql::row::InsertRows;
use serde::{Deserialize, Serialize};

pub use crate::generate::refresh::SET_MAX;

/// Orders that one transaction inserts or deletes.
const ORDERS_EACH: u64 = 100;

/// Name of the database's record of the progress of a pair.
const POSITION: &str = "refresh_position";

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefreshPosition {
    /// Number of the pair, from 1.
    pub pair: u32,
    /// 1 inserts, 2 deletes.
    pub function: u8,
    /// Orders of this function that are done.
    pub orders: u64,
}

impl RefreshPosition {
    /// The first function of a pair, nothing of it done.
    pub fn first_of_pair(pair: u32) -> RefreshPosition {
        RefreshPosition { pair, function: 1, orders: 0 }
    }

    /// Returns true if the database is between two pairs.
    pub fn is_whole(self) -> bool {
        self == RefreshPosition::first_of_pair(self.pair)
    }

    fn next_function(self) -> RefreshPosition {
        match self.function {
            1 => RefreshPosition { function: 2, orders: 0, ..self },
            _ => RefreshPosition::first_of_pair(self.pair + 1),
        }
    }
}

/// The position in a database to which `pairs` pairs were applied.
pub async fn position(
    session: &mut AdminSession<'_>,
    pairs: u32,
) -> Result<RefreshPosition, DbError> {
    Ok(fact(session, POSITION).await?.unwrap_or(RefreshPosition::first_of_pair(pairs + 1)))
}

/// Executes the function at a position to its end and returns the rows that it inserted or deleted.
/// `at` follows what is committed, also when it fails.
///
/// # Errors
/// Errors of the session; the transaction at work is rolled back by the caller or the server.
pub async fn execute(
    session: &mut AdminSession<'_>,
    scale: f64,
    at: &mut RefreshPosition,
) -> Result<u64, DbError> {
    let (function, end) = (*at, refresh::orders(scale));
    let mut rows = 0;
    loop {
        let upto = (at.orders + ORDERS_EACH).min(end);
        let after =
            if upto == end { at.next_function() } else { RefreshPosition { orders: upto, ..*at } };
        let begin = begin(session.dialect());
        session.query(begin, &mut Discard).await?;
        if at.orders < upto {
            rows += apply_orders(session, scale, function, at.orders..upto).await?;
        }
        set_fact(session, POSITION, &after).await?;
        if after.is_whole() {
            note_refresh_pair(session, function.pair).await?;
        }
        session.query("commit", &mut Discard).await?;
        *at = after;
        if upto == end {
            return Ok(rows);
        }
    }
}

/// Inserts or deletes some of the orders of a function, with their lines.
async fn apply_orders(
    session: &mut AdminSession<'_>,
    scale: f64,
    RefreshPosition { pair, function, .. }: RefreshPosition,
    range: std::ops::Range<u64>,
) -> Result<u64, DbError> {
    let expected_orders = range.end - range.start;
    let statements = match function {
        1 => [SchemaTable::Lineitem, SchemaTable::Orders].map(|table| {
            let mut rows = refresh::inserted(table, scale, pair, range.clone());
            insert_statement(session.dialect(), table, &mut rows)
        }),
        _ => {
            let keys = refresh::deleted_keys(scale, pair).skip(range.start as usize);
            let keys: Vec<String> =
                keys.take(expected_orders as usize).map(|key| key.to_string()).collect();
            let keys = keys.join(",");
            [
                format!("delete from lineitem where l_orderkey in ({keys})"),
                format!("delete from orders where o_orderkey in ({keys})"),
            ]
        }
    };
    let mut affected = [0; 2];
    // Orders come before their lines, and go after them.
    for place in if function == 1 { [1, 0] } else { [0, 1] } {
        affected[place] = session.query(&statements[place], &mut Discard).await?.affected;
    }
    let [lines, orders] = affected;
    check_effect(
        orders,
        expected_orders,
        lines,
        if function == 1 { "inserted" } else { "deleted" },
    )?;
    Ok(lines + orders)
}

/// A function that meets other data than it was made for must not count as executed: it would be
/// faster than the right one. Every order has a line at least (clause 4.2.3).
fn check_effect(orders: u64, expected_orders: u64, lines: u64, done: &str) -> Result<(), DbError> {
    if orders == expected_orders && lines >= orders {
        return Ok(());
    }
    Err(DbError::workload(format!(
        "{orders} orders with {lines} lines were {done} where {expected_orders} orders had to be: the data are \
         not those of the load."
    ))
    .with_hint("Drop the data and load them again."))
}

fn insert_statement(dialect: Dialect, table: SchemaTable, source: &mut dyn RowSource) -> String {
    let columns: Vec<&str> = table.columns().iter().map(|(name, _)| *name).collect();
    let head = format!("insert into {} ({}) values ", table.name(), columns.join(","));
    let mut sql = head.into_bytes();
    InsertRows::new(&mut sql, dialect == Dialect::Mysql).fill(source, usize::MAX);
    String::from_utf8_lossy(&sql).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_core::RowWriter;

    #[test]
    fn a_position_goes_through_both_functions_of_each_pair() {
        let first = RefreshPosition::first_of_pair(1);
        assert!(first.is_whole());
        let second = first.next_function();
        assert_eq!(second, RefreshPosition { pair: 1, function: 2, orders: 0 });
        assert!(!second.is_whole() && second.next_function() == RefreshPosition::first_of_pair(2));
    }

    #[test]
    fn a_function_without_its_effect_is_an_error() {
        assert!(check_effect(100, 100, 400, "deleted").is_ok());
        let error = check_effect(0, 100, 0, "deleted").unwrap_err();
        let text = "0 orders with 0 lines were deleted where 100 orders had to be: the data are not \
                    those of the load.";
        assert_eq!(error.message(), text);
        assert!(check_effect(100, 100, 99, "inserted").is_err());
    }

    #[test]
    fn rows_become_one_statement() {
        struct Two(u8);
        impl RowSource for Two {
            fn next_row(&mut self, out: &mut dyn RowWriter) -> bool {
                self.0 += 1;
                out_if(self.0 <= 2, out)
            }
            fn restart(&mut self) {
                self.0 = 0;
            }
        }
        fn out_if(is_row: bool, out: &mut dyn RowWriter) -> bool {
            if is_row {
                out.int(-1);
                out.text(br"it's \ x");
                out.null();
            }
            is_row
        }
        let sql = insert_statement(Dialect::Mysql, SchemaTable::Region, &mut Two(0));
        let head = "insert into region (r_regionkey,r_name,r_comment) values ";
        assert_eq!(sql, format!("{head}(-1,'it''s \\\\ x',NULL),(-1,'it''s \\\\ x',NULL)"));
        let sql = insert_statement(Dialect::Postgres, SchemaTable::Region, &mut Two(1));
        assert_eq!(sql, format!("{head}(-1,'it''s \\ x',NULL)"));
    }
}
