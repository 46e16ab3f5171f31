//! Conditions that join rows of different warehouses, without that join: for databases that are
//! sharded by warehouse and can't join over shards.
//!
//! Both sides are read by statements of their own, each of which a shard can answer for itself or
//! group with the others, and are compared here: some warehouses at a time, with what others have done to them, one row in
//! a hundred or in seven, read before.

use super::{Condition, ConditionVerdict, LISTED, derived, number, prepare};
use crate::DISTRICTS;
use crate::values::{Decimal, read_scaled};
use dyno_core::{AdminDriver, AdminSession, AnswerRow, DbError, Dialect, Rows, Session};
use dyno_load::{doing, goes_on};
use dyno_runner::databases;
use std::collections::HashMap;

/// Items of one warehouse that are looked up by one statement.
const ITEMS_AT_ONCE: usize = 500;
/// Warehouses that are compared at a time: a million rows of stock.
const WAREHOUSES_AT_ONCE: u64 = 10;

/// True when the condition joins rows of different warehouses.
pub(super) fn is_for(condition: &Condition) -> bool {
    matches!(condition.id, "C10" | "X1" | "X2" | "X3" | "X6" | "X10")
}

/// The verdict of a condition for which [`is_for`] is true.
pub(super) fn verdict(
    driver: &AdminDriver<'_>,
    condition: &Condition,
) -> Result<ConditionVerdict, DbError> {
    let compared = |left, rights: &[Sums], is_broken: fn(&[i64]) -> bool| {
        in_session(driver, async |session| {
            compare(session, condition, left, rights, is_broken).await
        })
    };
    match condition.id {
        // C_BALANCE; SUM(OL_AMOUNT); SUM(H_AMOUNT).
        "C10" => compared(BALANCES, &[DELIVERED, PAID], |it| it[0] != it[1] - it[2]),
        // C_PAYMENT_CNT, C_YTD_PAYMENT; SUM(H_AMOUNT), rows of the history.
        "X3" => compared(PAYMENTS, &[PAID], |it| it[0] != it[3] || it[1] != it[2]),
        // S_YTD, S_ORDER_CNT, S_REMOTE_CNT; quantity, lines, remote lines.
        "X1" => compared(STOCK, &[SUPPLIED], |it| it[0] != it[3] || it[1] != it[4]),
        "X2" => compared(STOCK, &[SUPPLIED], |it| it[2] != it[5]),
        "X6" => in_session(driver, async |session| amounts(session, condition).await),
        _ => in_session(driver, async |session| dist_infos(session, condition).await),
    }
}

/// Rows that a condition is about: table, columns of the key, which begin with the warehouse, and values with their decimal
/// places.
type Subjects = (&'static str, &'static [&'static str], &'static str, &'static [u32]);

const CUSTOMER_KEY: &[&str] = &["c_w_id", "c_d_id", "c_id"];
const BALANCES: Subjects = ("bmsql_customer", CUSTOMER_KEY, "c_balance", &[2]);
const PAYMENTS: Subjects =
    ("bmsql_customer", CUSTOMER_KEY, "c_payment_cnt, c_ytd_payment", &[0, 2]);
const STOCK: Subjects =
    ("bmsql_stock", &["s_w_id", "s_i_id"], "s_ytd, s_order_cnt, s_remote_cnt", &[0, 0, 0]);

/// Sums by the same key: the name of a derived table, the warehouse of its rows, that of the key, and decimal places.
type Sums = (&'static str, &'static str, &'static str, &'static [u32]);

const DELIVERED: Sums = ("{DL}", "o_w_id", "o_w_id", &[2]);
const PAID: Sums = ("{PY}", "h_w_id", "h_c_w_id", &[2, 0]);
const SUPPLIED: Sums = ("{LI}", "ol_w_id", "ol_supply_w_id", &[0, 0, 0]);

/// The statement that reads some rows of a derived table.
fn statement(name: &str, wanted: &str) -> String {
    let table = derived(name);
    let inner = table.trim_start_matches('(').strip_suffix(')').unwrap_or(table);
    let (rows, groups) = inner.rsplit_once(" GROUP BY ").unwrap_or((inner, ""));
    let word = if rows.contains(" WHERE ") { "AND" } else { "WHERE" };
    format!("{rows} {word} {wanted} GROUP BY {groups}")
}

/// Compares row by row. `is_broken` gets the values of all sides, without the key; 0 if a side has no row.
async fn compare(
    session: &mut AdminSession<'_>,
    condition: &Condition,
    (table, key, values, decimals): Subjects,
    rights: &[Sums],
    is_broken: fn(&[i64]) -> bool,
) -> Result<ConditionVerdict, DbError> {
    let keys = key.len();
    let places = |decimals: &[u32]| [vec![0; keys], decimals.to_vec()].concat();
    let mut away = Vec::new();
    for &(name, home, of_key, decimals) in rights {
        away.push(match home == of_key {
            true => HashMap::new(),
            false => {
                let sql = statement(name, &format!("{home} <> {of_key}"));
                by_key(numbers(session, &sql, &places(decimals)).await?, keys, decimals.len())
            }
        });
    }
    let mut verdict = ConditionVerdict { condition: *condition, violations: 0, keys: Vec::new() };
    let warehouses = number(session, "SELECT max(w_id) FROM bmsql_warehouse").await?;
    for first in (1..=warehouses).step_by(WAREHOUSES_AT_ONCE as usize) {
        let last = warehouses.min(first + WAREHOUSES_AT_ONCE - 1);
        let range: Vec<String> = (first..=last).map(|it| it.to_string()).collect();
        // A list: proxies may send a range to all shards, or refuse it.
        let range = format!("IN ({})", range.join(", "));
        let mut at_home = Vec::new();
        for &(name, home, of_key, decimals) in rights {
            let sql = statement(name, &format!("{home} {range} AND {home} = {of_key}"));
            let sums = numbers(session, &sql, &places(decimals)).await?;
            at_home.push(by_key(sums, keys, decimals.len()));
        }
        let sql =
            format!("SELECT {}, {values} FROM {table} WHERE {} {range}", key.join(", "), key[0]);
        let rows = numbers(session, &sql, &places(decimals)).await?;
        for row in rows.chunks_exact(keys + decimals.len()) {
            let mut all = row[keys..].to_vec();
            for (number, right) in rights.iter().enumerate() {
                let sums = [&at_home, &away].map(|side| side[number].get(&row[..keys]));
                let sum = |at: usize| sums.iter().flatten().map(|sums| sums[at]).sum::<i64>();
                all.extend((0..right.3.len()).map(sum));
            }
            if is_broken(&all) {
                verdict.violations += 1;
                if verdict.keys.len() < LISTED {
                    let cells: Vec<_> = row[..keys].iter().map(|it| Some(it.to_string())).collect();
                    verdict.keys.push(condition.key(&cells));
                }
            }
        }
    }
    Ok(verdict)
}

/// Values by their keys.
fn by_key(numbers: Vec<i64>, keys: usize, values: usize) -> HashMap<Box<[i64]>, Box<[i64]>> {
    let rows = numbers.chunks_exact(keys + values);
    rows.map(|row| (row[..keys].into(), row[keys..].into())).collect()
}

/// The rows of an answer one behind the other, as integers: each column has a number of decimal places.
async fn numbers(
    session: &mut AdminSession<'_>,
    sql: &str,
    places: &[u32],
) -> Result<Vec<i64>, DbError> {
    let from = sql.split(" FROM ").nth(1).unwrap_or_default();
    doing(format!("reading {} for a comparison", from.split(' ').next().unwrap_or_default()));
    let dialect = session.dialect();
    let mut rows = Numbers { places, dialect, cells: Vec::new(), wrong: None };
    session.query(sql, &mut rows).await?;
    match rows.wrong {
        None => Ok(rows.cells),
        Some(column) => Err(DbError::workload(format!("Column {column} is no number, in: {sql}"))),
    }
}

struct Numbers<'a> {
    places: &'a [u32],
    dialect: Dialect,
    cells: Vec<i64>,
    /// The number of a column that can't be used.
    wrong: Option<usize>,
}

impl Rows for Numbers<'_> {
    fn row<R: AnswerRow>(&mut self, row: &R) {
        // Keys are never NULL; ShardingSphere-Proxy makes one such row of groups when there are none.
        if row.is_null(0) {
            return;
        }
        for (column, &decimals) in self.places.iter().enumerate() {
            let cell = read_scaled(row, column, decimals, self.dialect);
            self.wrong = self.wrong.or(cell.is_none().then_some(column + 1));
            self.cells.push(cell.unwrap_or(0));
        }
        if self.cells.len() & 0xffff < self.places.len() {
            goes_on();
        }
    }
}

/// X6: the lines are counted by item, quantity and amount, of which a right database has a million
/// at most, and compared with the catalogue.
async fn amounts(
    session: &mut AdminSession<'_>,
    condition: &Condition,
) -> Result<ConditionVerdict, DbError> {
    let items = numbers(session, "SELECT i_id, i_price FROM bmsql_item", &[0, 2]).await?;
    let prices = by_key(items, 1, 1);
    let sql = "SELECT ol_i_id, ol_quantity, ol_amount, count(*) FROM bmsql_order_line WHERE ol_o_id > 3000 \
               GROUP BY ol_i_id, ol_quantity, ol_amount";
    let mut verdict = ConditionVerdict { condition: *condition, violations: 0, keys: Vec::new() };
    for row in numbers(session, sql, &[0, 0, 2, 0]).await?.chunks_exact(4) {
        let &[item, quantity, cents, count] = row else { continue };
        // An item that does not exist has no price that could be wrong.
        if prices.get(&row[..1]).is_none_or(|price| quantity * price[0] == cents) {
            continue;
        }
        verdict.violations += count as u64;
        if verdict.keys.len() < LISTED {
            let amount = Decimal::cents(cents);
            let amount = match session.dialect() {
                Dialect::Sqlite => cents.to_string(),
                _ => String::from_utf8_lossy(amount.text()).into_owned(),
            };
            let body = format!(
                "bmsql_order_line WHERE ol_o_id > 3000 AND ol_i_id = {item} AND ol_quantity = {quantity} AND \
                 ol_amount = {amount}"
            );
            verdict.keys.extend(condition.list(session, &body).await?);
        }
    }
    verdict.keys.truncate(LISTED);
    Ok(verdict)
}

/// A line that another warehouse supplied: where it is from, which one it is, and OL_DIST_INFO.
struct RemoteLine {
    supply_warehouse: i64,
    item: i64,
    key: [i64; 4],
    info: Vec<u8>,
}

/// X10: lines that their own warehouse supplied are joined there; of the others, one in a hundred,
/// the stock is looked up.
async fn dist_infos(
    session: &mut AdminSession<'_>,
    condition: &Condition,
) -> Result<ConditionVerdict, DbError> {
    let local = format!("{} AND ol_supply_w_id = ol_w_id AND s_w_id = ol_w_id", condition.body);
    let mut violations = number(session, &format!("SELECT count(*) FROM {local}")).await?;
    let mut keys = match violations {
        0 => Vec::new(),
        _ => condition.list(session, &local).await?,
    };
    let warehouses = number(session, "SELECT max(w_id) FROM bmsql_warehouse").await?;
    for warehouse in 1..=warehouses {
        let mut lines = RemoteLines::default();
        let sql = format!(
            "SELECT ol_supply_w_id, ol_i_id, ol_w_id, ol_d_id, ol_o_id, ol_number, \
                 ol_dist_info FROM bmsql_order_line WHERE ol_w_id = {warehouse} AND ol_o_id > 3000 \
                 AND ol_supply_w_id <> ol_w_id"
        );
        session.query(&sql, &mut lines).await?;
        let broken = compare_remote(session, lines.0).await?;
        violations += broken.len() as u64;
        let cells = |key: &[i64; 4]| key.map(|number| Some(number.to_string()));
        keys.extend(broken.iter().map(|key| condition.key(&cells(key))));
        keys.truncate(LISTED);
    }
    Ok(ConditionVerdict { condition: *condition, violations, keys })
}

/// The keys of lines whose OL_DIST_INFO isn't the stock's.
async fn compare_remote(
    session: &mut AdminSession<'_>,
    mut lines: Vec<RemoteLine>,
) -> Result<Vec<[i64; 4]>, DbError> {
    lines.sort_by_key(|line| (line.supply_warehouse, line.item, line.key));
    let dists: Vec<String> = (1..=DISTRICTS).map(|number| format!("s_dist_{number:02}")).collect();
    let mut broken = Vec::new();
    for of_warehouse in lines.chunk_by(|one, next| one.supply_warehouse == next.supply_warehouse) {
        for chunk in of_warehouse.chunks(ITEMS_AT_ONCE) {
            let items: Vec<String> = chunk.iter().map(|line| line.item.to_string()).collect();
            let mut infos = DistInfos::default();
            let sql = format!(
                "SELECT s_i_id, {} FROM bmsql_stock WHERE s_w_id = {} AND s_i_id IN ({})",
                dists.join(", "),
                chunk[0].supply_warehouse,
                items.join(", ")
            );
            session.query(&sql, &mut infos).await?;
            let is_broken = |line: &&RemoteLine| {
                let [_, district, ..] = line.key;
                let stock = infos.0.get(&line.item);
                stock.is_some_and(|infos| infos.get(district as usize - 1) != Some(&line.info))
            };
            broken.extend(chunk.iter().filter(is_broken).map(|line| line.key));
        }
    }
    Ok(broken)
}

/// Text of a row, without the blanks that fixed-length columns may be filled with.
fn text<R: AnswerRow>(row: &R, column: usize) -> Vec<u8> {
    row.bytes(column).unwrap_or_default().trim_ascii_end().to_vec()
}

#[derive(Default)]
struct RemoteLines(Vec<RemoteLine>);

impl Rows for RemoteLines {
    fn row<R: AnswerRow>(&mut self, row: &R) {
        let cell = |column| row.int(column).unwrap_or(0);
        self.0.push(RemoteLine {
            supply_warehouse: cell(0),
            item: cell(1),
            key: [2, 3, 4, 5].map(cell),
            info: text(row, 6),
        });
    }
}

/// S_DIST_01 to S_DIST_10 by item.
#[derive(Default)]
struct DistInfos(HashMap<i64, Vec<Vec<u8>>>);

impl Rows for DistInfos {
    fn row<R: AnswerRow>(&mut self, row: &R) {
        let infos = (1..=DISTRICTS as usize).map(|column| text(row, column)).collect();
        self.0.insert(row.int(0).unwrap_or(0), infos);
    }
}

pub(super) fn in_session<T>(
    driver: &AdminDriver<'_>,
    work: impl AsyncFnOnce(&mut AdminSession<'_>) -> Result<T, DbError>,
) -> Result<T, DbError> {
    databases::run(databases::in_session(driver, async |session| {
        prepare(session).await?;
        work(session).await
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn derived_tables_are_read_in_parts() {
        assert_eq!(
            statement(PAID.0, "h_w_id <> h_c_w_id"),
            "SELECT h_c_w_id w, h_c_d_id d, h_c_id c, sum(h_amount) h, count(*) n FROM bmsql_history WHERE h_w_id <> \
             h_c_w_id GROUP BY h_c_w_id, h_c_d_id, h_c_id"
        );
        let delivered = statement(DELIVERED.0, "o_w_id = 1");
        let end = "WHERE ol_delivery_d IS NOT NULL AND o_w_id = 1 GROUP BY o_w_id, o_d_id, o_c_id";
        assert!(delivered.ends_with(end), "{delivered}");
        let supplied = statement(SUPPLIED.0, "ol_w_id = 1");
        let end = "WHERE ol_o_id > 3000 AND ol_w_id = 1 GROUP BY ol_supply_w_id, ol_i_id";
        assert!(supplied.ends_with(end), "{supplied}");
    }
}
