//! Whether everything is there: the cardinalities of clause 1.2.1.

use crate::schema::TpccTable;
use crate::{CUSTOMERS, DISTRICTS, FIRST_UNDELIVERED, ITEMS};
use dyno_core::{AdminSession, DbError};
use dyno_load::query::{pairs, whole};
use std::collections::HashMap;

/// Counts per warehouse, as the answer to a statement of warehouse and count.
async fn counts(session: &mut AdminSession<'_>, sql: &str) -> Result<HashMap<u32, u64>, DbError> {
    let pair = |(warehouse, count): (String, String)| Some((whole(&warehouse)?, whole(&count)?));
    Ok(pairs(session, sql).await?.into_iter().filter_map(pair).collect())
}

fn rows_per_warehouse(table: TpccTable) -> Option<u64> {
    let districts = u64::from(DISTRICTS);
    let customers = districts * u64::from(CUSTOMERS);
    match table {
        TpccTable::Item | TpccTable::OrderLine => None,
        TpccTable::Warehouse => Some(1),
        TpccTable::District => Some(districts),
        TpccTable::Customer | TpccTable::History | TpccTable::Order => Some(customers),
        TpccTable::NewOrder => Some(districts * u64::from(CUSTOMERS + 1 - FIRST_UNDELIVERED)),
        TpccTable::Stock => Some(u64::from(ITEMS)),
    }
}

/// Compares the rows of each table and warehouse with what a fresh load has; returns a sentence for
/// each difference, at most one for each table.
pub async fn cardinalities(
    session: &mut AdminSession<'_>,
    warehouses: u32,
) -> Result<Vec<String>, DbError> {
    let mut problems = Vec::new();
    let lines = counts(
        session,
        "SELECT o_w_id, sum(o_ol_cnt) FROM bmsql_oorder GROUP BY o_w_id ORDER BY o_w_id",
    )
    .await?;
    for table in TpccTable::ALL {
        let name = table.name();
        let sql = match table.warehouse_column() {
            None => format!("SELECT 1, count(*) FROM {name}"),
            Some(column) => format!("SELECT {column}, count(*) FROM {name} GROUP BY {column}"),
        };
        let found = counts(session, &sql).await?;
        problems.extend(table_difference(table, &found, warehouses, &lines));
    }
    Ok(problems)
}

/// How the rows of a table by warehouse differ from what a fresh load has, in a sentence. `lines` are those that the
/// orders say.
pub(super) fn table_difference(
    table: TpccTable,
    found: &HashMap<u32, u64>,
    warehouses: u32,
    lines: &HashMap<u32, u64>,
) -> Option<String> {
    let expected = match (table, rows_per_warehouse(table)) {
        (TpccTable::Item, _) => HashMap::from([(1, u64::from(ITEMS))]),
        (_, Some(rows)) => (1..=warehouses).map(|number| (number, rows)).collect(),
        (_, None) => lines.clone(),
    };
    difference(table.name(), found, &expected)
}

fn difference(
    table: &str,
    found: &HashMap<u32, u64>,
    expected: &HashMap<u32, u64>,
) -> Option<String> {
    let mut keys: Vec<u32> = found.keys().chain(expected.keys()).copied().collect();
    keys.sort_unstable();
    keys.dedup();
    let count = |counts: &HashMap<u32, u64>, key| counts.get(&key).copied().unwrap_or(0);
    let wrong: Vec<u32> =
        keys.into_iter().filter(|&key| count(found, key) != count(expected, key)).collect();
    let &first = wrong.first()?;
    let others = match wrong.len() - 1 {
        0 => String::new(),
        more => format!(", and {more} more warehouses differ"),
    };
    let place = if table == TpccTable::Item.name() {
        String::new()
    } else {
        format!(" of warehouse {first}")
    };
    Some(format!(
        "{table} has {} rows{place} instead of {}{others}",
        count(found, first),
        count(expected, first)
    ))
}
