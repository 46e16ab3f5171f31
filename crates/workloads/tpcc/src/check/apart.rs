//! Conditions that join rows of different warehouses, without that join: for databases that are
//! sharded by warehouse and can't join over shards.
//!
//! Both sides are read by statements of their own, each of which a shard can answer for itself or
//! group with the others, and are compared here. Each side is read once, in the order of its key,
//! and only a few thousand rows of it are kept at a time, however many warehouses there are.
//!
//! A session pushes its rows, and two answers that are merged do not come equally fast: each one has
//! a thread that waits when it is too far ahead, and the server behind it waits with it.

use super::{Condition, ConditionVerdict, LISTED, derived, number, prepare};
use crate::DISTRICTS;
use crate::values::{Decimal, read_scaled};
use dyno_core::{AdminDriver, AdminSession, AnswerRow, DbError, Dialect, Driver, Rows, Session};
use dyno_load::goes_on;
use dyno_reactor::block_on;
use dyno_runner::databases::{self, stopped};
use dyno_runner::signals::unless_stopped;
use dyno_runner::watch::noted;
use std::cell::Cell;
use std::cmp::Ordering;
use std::collections::HashMap;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::task::Poll;
use std::thread::Scope;

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
            let amount = Decimal::new(cents, 2);
            let amount = match session.dialect() {
                Dialect::Sqlite => cents.to_string(),
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

/// Rows that travel together between threads.
const BATCH_ROWS: usize = 4_096;
const BATCHES_AHEAD: usize = 4;

/// One of the answers that are merged: rows in the order of their keys, which are integers.
#[derive(Clone, Debug)]
struct MergedAnswer {
    sql: String,
    /// The columns of the key come first.
    keys: usize,
    /// The decimal places of the values behind them.
    values: &'static [u32],
}

/// Rows in one piece, and what ended the answer.
type Batch = Result<Vec<i64>, DbError>;

/// The reader's end of an answer.
struct Stream {
    batches: Receiver<Batch>,
    batch: Vec<i64>,
    at: usize,
    keys: usize,
    width: usize,
}

impl Stream {
    /// Begins to read on a thread of its own. `number` is that of the connection.
    fn start<'scope>(
        scope: &'scope Scope<'scope, '_>,
        driver: &'scope AdminDriver<'scope>,
        number: u32,
        side: &MergedAnswer,
    ) -> Self {
        let (sender, batches) = sync_channel(BATCHES_AHEAD);
        let (keys, width) = (side.keys, side.keys + side.values.len());
        let side = side.clone();
        scope.spawn(move || {
            let from = side.sql.split(" FROM ").nth(1).unwrap_or_default();
            let table: String = from.chars().take_while(|&char| char != ' ').collect();
            let what = format!("reading {table} for a comparison");
            let read = noted(&what, unless_stopped(read(driver, number, &side, &sender)));
            let ended = match block_on(read) {
                Ok(ended) => ended.unwrap_or_else(|| Err(stopped())),
                Err(error) => Err(DbError::unreachable(error.to_string())),
            };
            if let Err(error) = ended {
                // Nobody listens any more when another answer has failed first.
                let _ = sender.send(Err(error));
            }
        });
        Stream { batches, batch: Vec::new(), at: 0, keys, width }
    }

    /// The row that is next: key and values. `None` at the end.
    fn peek(&mut self) -> Result<Option<&[i64]>, DbError> {
        while self.at >= self.batch.len() {
            match self.batches.recv() {
                Ok(batch) => (self.batch, self.at) = (batch?, 0),
                Err(_) => return Ok(None),
            }
        }
        Ok(Some(&self.batch[self.at..self.at + self.width]))
    }

    fn skip(&mut self) {
        self.at += self.width;
    }

    /// Takes all rows with this key and adds up their values; rows with smaller keys are left
    /// behind.
    fn take(&mut self, key: &[i64], values: &mut [i64]) -> Result<(), DbError> {
        let keys = self.keys;
        while let Some(row) = self.peek()? {
            match row[..keys].cmp(key) {
                Ordering::Greater => break,
                Ordering::Less => {}
                Ordering::Equal => {
                    values.iter_mut().zip(&row[keys..]).for_each(|(sum, value)| *sum += value);
                }
            }
            self.skip();
        }
        Ok(())
    }
}

/// Joins answers by the key of the first one, whose rows are all kept: `each` gets its row with the
/// sums of the others' values behind it, 0 where there are none.
fn merge(
    driver: &AdminDriver<'_>,
    left: &MergedAnswer,
    rights: &[MergedAnswer],
    mut each: impl FnMut(&[i64]),
) -> Result<(), DbError> {
    std::thread::scope(|scope| {
        let mut left_stream = Stream::start(scope, driver, 0, left);
        let mut streams: Vec<Stream> = (1..)
            .zip(rights)
            .map(|(number, side)| Stream::start(scope, driver, number, side))
            .collect();
        let mut joined = Vec::new();
        while let Some(row) = left_stream.peek()? {
            joined.clear();
            joined.extend_from_slice(row);
            left_stream.skip();
            for (stream, side) in streams.iter_mut().zip(rights) {
                let begin = joined.len();
                joined.resize(begin + side.values.len(), 0);
                let (row, values) = joined.split_at_mut(begin);
                stream.take(&row[..left.keys], values)?;
            }
            each(&joined);
        }
        // The rest has no row to be joined with, but an error behind it must not be missed.
        for stream in &mut streams {
            while stream.peek()?.is_some() {
                stream.skip();
            }
        }
        Ok(())
    })
}

async fn read(
    driver: &AdminDriver<'_>,
    number: u32,
    side: &MergedAnswer,
    sender: &SyncSender<Batch>,
) -> Result<(), DbError> {
    let mut session = driver.connect(number).await?;
    prepare(&mut session).await?;
    let is_over = Cell::new(false);
    let mut rows = Forward {
        side,
        dialect: session.dialect(),
        sender,
        batch: Vec::new(),
        last: Vec::new(),
        error: None,
        is_over: &is_over,
    };
    {
        let mut query = pin!(session.query(&side.sql, &mut rows));
        // A reader that nobody listens to any more leaves the rest of the answer unread.
        let read = poll_fn(|context| match is_over.get() {
            true => Poll::Ready(Ok(())),
            false => query.as_mut().poll(context).map(|read| read.map(drop)),
        });
        read.await?;
    }
    if is_over.get() {
        return rows.error.map_or(Ok(()), Err);
    }
    rows.send();
    session.close().await;
    Ok(())
}

/// Sends rows on, as integers.
struct Forward<'a> {
    side: &'a MergedAnswer,
    dialect: Dialect,
    sender: &'a SyncSender<Batch>,
    batch: Vec<i64>,
    last: Vec<i64>,
    error: Option<DbError>,
    /// The receiver is gone, or a row can't be used.
    is_over: &'a Cell<bool>,
}

impl Forward<'_> {
    fn send(&mut self) {
        goes_on();
        if self.sender.send(Ok(std::mem::take(&mut self.batch))).is_err() {
            self.is_over.set(true);
        }
    }

    fn fail(&mut self, what: &str) {
        self.error = Some(DbError::workload(format!("{what}, in: {}", self.side.sql)));
        self.is_over.set(true);
    }
}

impl Rows for Forward<'_> {
    fn row<R: AnswerRow>(&mut self, row: &R) {
        if self.is_over.get() {
            return;
        }
        // Keys are never NULL; ShardingSphere-Proxy makes one such row of groups when there are none.
        if row.is_null(0) {
            return;
        }
        let begin = self.batch.len();
        let places = std::iter::repeat_n(&0, self.side.keys).chain(self.side.values);
        for (column, &decimals) in places.enumerate() {
            match read_scaled(row, column, decimals, self.dialect) {
                Some(value) => self.batch.push(value),
                None => return self.fail(&format!("Column {} is no number", column + 1)),
            }
        }
        // A database that can't sort over its shards would make the comparison worthless.
        let key = &self.batch[begin..begin + self.side.keys];
        if self.last.as_slice() > key {
            return self.fail("The rows do not come in the order that was asked for");
        }
        self.last.clear();
        self.last.extend_from_slice(key);
        if self.batch.len() >= BATCH_ROWS * (self.side.keys + self.side.values.len()) {
            self.send();
        }
    }
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
