//! Conditions that join rows of different warehouses, without that join: for databases that are
//! sharded by warehouse and can't join over shards.
//!
//! Both sides are read by statements of their own, each of which a shard can answer for itself or
//! group with the others, and are compared here. Each side is read once, in the order of its key,
//! and only a few thousand rows of it are kept at a time, however many warehouses there are.

use super::stream::{MergedAnswer, merge};
use super::{Condition, ConditionVerdict, LISTED, derived, number, prepare};
use crate::DISTRICTS;
use dyno_core::{AdminDriver, AdminSession, AnswerRow, DbError, Rows, Session};
use dyno_runner::databases;
use std::collections::HashMap;

/// Items of one warehouse that are looked up by one statement.
const ITEMS_AT_ONCE: usize = 500;

/// True when the condition joins rows of different warehouses.
pub(super) fn is_for(condition: &Condition) -> bool {
    matches!(condition.id, "C10" | "X1" | "X2" | "X3" | "X6" | "X10")
}

/// The verdict of a condition for which [`is_for`] is true.
pub(super) fn verdict(
    driver: &AdminDriver<'_>,
    condition: &Condition,
) -> Result<ConditionVerdict, DbError> {
    match condition.id {
        // C_BALANCE; SUM(OL_AMOUNT); SUM(H_AMOUNT).
        "C10" => {
            compare(driver, condition, &customers("c_balance", &[2]), &[delivered(), paid()], {
                |values| values[0] != values[1] - values[2]
            })
        }
        // C_PAYMENT_CNT, C_YTD_PAYMENT; SUM(H_AMOUNT), rows of the history.
        "X3" => {
            let left = customers("c_payment_cnt, c_ytd_payment", &[0, 2]);
            compare(driver, condition, &left, &[paid()], |values| {
                values[0] != values[3] || values[1] != values[2]
            })
        }
        // S_YTD, S_ORDER_CNT, S_REMOTE_CNT; quantity, lines, remote lines.
        "X1" => compare(driver, condition, &stock(), &[supplied()], |values| {
            values[0] != values[3] || values[1] != values[4]
        }),
        "X2" => {
            compare(driver, condition, &stock(), &[supplied()], |values| values[2] != values[5])
        }
        "X6" => amounts(driver, condition),
        _ => dist_infos(driver, condition),
    }
}

fn customers(columns: &str, values: &'static [u32]) -> MergedAnswer {
    let sql = format!(
        "SELECT c_w_id, c_d_id, c_id, {columns} FROM bmsql_customer ORDER BY c_w_id, c_d_id, c_id"
    );
    MergedAnswer { sql, keys: 3, values }
}

fn stock() -> MergedAnswer {
    let sql = "SELECT s_w_id, s_i_id, s_ytd, s_order_cnt, s_remote_cnt FROM bmsql_stock ORDER BY \
               s_w_id, s_i_id";
    MergedAnswer { sql: sql.to_owned(), keys: 2, values: &[0, 0, 0] }
}

fn delivered() -> MergedAnswer {
    MergedAnswer { sql: ordered("{DL}"), keys: 3, values: &[2] }
}

fn paid() -> MergedAnswer {
    MergedAnswer { sql: ordered("{PY}"), keys: 3, values: &[2, 0] }
}

fn supplied() -> MergedAnswer {
    MergedAnswer { sql: ordered("{LI}"), keys: 2, values: &[0, 0, 0] }
}

/// A derived table as a statement of its own, in the order of its groups.
fn ordered(name: &str) -> String {
    let table = derived(name);
    let inner = table.trim_start_matches('(').strip_suffix(')').unwrap_or(table);
    let groups = inner.rsplit_once("GROUP BY ").map_or("", |(_, groups)| groups);
    format!("{inner} ORDER BY {groups}")
}

/// Compares row by row. `is_broken` gets the values of all sides, without the key.
fn compare(
    driver: &AdminDriver<'_>,
    condition: &Condition,
    left: &MergedAnswer,
    rights: &[MergedAnswer],
    is_broken: impl Fn(&[i64]) -> bool,
) -> Result<ConditionVerdict, DbError> {
    let mut verdict = ConditionVerdict { condition: *condition, violations: 0, keys: Vec::new() };
    merge(driver, left, rights, |row| {
        let (key, values) = row.split_at(left.keys);
        if is_broken(values) {
            verdict.violations += 1;
            if verdict.keys.len() < LISTED {
                let cells: Vec<Option<String>> =
                    key.iter().map(|number| Some(number.to_string())).collect();
                verdict.keys.push(condition.key(&cells));
            }
        }
    })?;
    Ok(verdict)
}

/// X6: the lines are counted by item, quantity and amount, of which a right database has a million
/// at most, and compared with the catalogue.
fn amounts(driver: &AdminDriver<'_>, condition: &Condition) -> Result<ConditionVerdict, DbError> {
    let lines = "SELECT ol_i_id, ol_quantity, ol_amount, count(*) FROM bmsql_order_line WHERE \
                 ol_o_id > 3000 GROUP BY ol_i_id, ol_quantity, ol_amount ORDER BY ol_i_id";
    let lines = MergedAnswer { sql: lines.to_owned(), keys: 1, values: &[0, 2, 0] };
    // An item that does not exist has no price that could be wrong.
    let items = "SELECT i_id, i_price, 1 FROM bmsql_item ORDER BY i_id";
    let items = MergedAnswer { sql: items.to_owned(), keys: 1, values: &[2, 0] };
    let mut violations = 0;
    let mut broken = Vec::new();
    // Several groups have one item: its price has to be kept for the next one.
    let mut price = (0, None);
    merge(driver, &lines, &[items], |row| {
        let &[item, quantity, cents, count, found, exists] = row else { return };
        if price.0 != item {
            price = (item, (exists > 0).then_some(found));
        }
        if price.1.is_some_and(|price| quantity * price != cents) {
            violations += count as u64;
            if broken.len() < LISTED {
                broken.push((item, quantity, cents));
            }
        }
    })?;
    let keys = in_session(driver, async |session: &mut AdminSession<'_>| {
        let mut keys = Vec::new();
        for &(item, quantity, cents) in &broken {
            let amount = crate::text::Decimal::new(cents, 2);
            let amount = match session.dialect() {
                dyno_core::Dialect::Sqlite => cents.to_string(),
                _ => String::from_utf8_lossy(amount.text()).into_owned(),
            };
            let body = format!(
                "bmsql_order_line WHERE ol_o_id > 3000 AND ol_i_id = {item} AND ol_quantity = \
                 {quantity} AND ol_amount = {amount}"
            );
            keys.extend(condition.list(session, &body).await?);
        }
        keys.truncate(LISTED);
        Ok(keys)
    })?;
    Ok(ConditionVerdict { condition: *condition, violations, keys })
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
fn dist_infos(
    driver: &AdminDriver<'_>,
    condition: &Condition,
) -> Result<ConditionVerdict, DbError> {
    in_session(driver, async |session: &mut AdminSession<'_>| {
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
    })
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
    fn derived_tables_are_read_in_the_order_of_their_groups() {
        let paid = paid().sql;
        assert!(paid.starts_with("SELECT h_c_w_id w, "), "{paid}");
        assert!(
            paid.ends_with(
                "GROUP BY h_c_w_id, h_c_d_id, h_c_id ORDER BY h_c_w_id, h_c_d_id, h_c_id"
            ),
            "{paid}"
        );
        assert!(delivered().sql.ends_with("ORDER BY o_w_id, o_d_id, o_c_id"));
        assert!(supplied().sql.ends_with("ORDER BY ol_supply_w_id, ol_i_id"));
    }
}
