//! The consistency conditions: the twelve of clause 3.3.2, and further ones for what those don't
//! see: stock, remote traffic, counters and amounts.

use crate::DISTRICTS;
use crate::messages as m;
use crate::values::{Decimal, read_scaled};
use dyno_core::{
    AdminDriver, AdminSession, AnswerRow, AnswerTable, Cause, DbError, Dialect, Discard,
    ErrorClass, Rows, is_shardingsphere,
};
use dyno_facts::{Message, MessageTexts, say};
use dyno_load::settings::adopt;
use dyno_load::{doing, goes_on, query};
use dyno_runner::databases;
use std::collections::HashMap;
use std::sync::LazyLock;

/// Violations that are listed by key.
const LISTED: usize = 10;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Loaded, and no transaction has run yet.
    Fresh,
    /// Any.
    Used,
}

/// The single number that a statement answers with.
async fn number(session: &mut AdminSession<'_>, sql: &str) -> Result<u64, DbError> {
    let count = query::number(session, sql).await?;
    count.ok_or_else(|| DbError::workload(format!("There was no answer to: {sql}")))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Condition {
    /// `C1` to `C12` of clause 3.3.2, `X1` and on for further ones.
    pub id: &'static str,
    pub rule: &'static MessageTexts,
    /// The columns that name a violation.
    pub keys: &'static str,
    /// The text after FROM that finds the violations.
    pub body: &'static str,
}

/// Names and texts of derived tables and conditions.
fn table() -> impl Iterator<Item = (&'static str, &'static str)> {
    include_str!("conditions.txt").lines().filter_map(|line| line.split_once(" | "))
}

/// The text of a derived table, by its name in bodies.
pub(crate) fn derived(name: &str) -> &'static str {
    table().find(|(known, _)| *known == name).map_or("", |(_, text)| text)
}

/// The rules of the conditions, in the order of their table.
const RULES: [&MessageTexts; 23] = [
    m::c1,
    m::c2,
    m::c3,
    m::c4,
    m::c5,
    m::c6,
    m::c7,
    m::c8,
    m::c9,
    m::c10,
    m::c11,
    m::c11b,
    m::c12,
    m::x1,
    m::x2,
    m::x3,
    m::x4,
    m::x5,
    m::x6,
    m::x7,
    m::x8,
    m::x9,
    m::x10,
];

/// All conditions.
pub static CONDITIONS: LazyLock<Vec<Condition>> = LazyLock::new(|| {
    let rows = table().filter_map(|(id, rest)| Some((id, rest.split_once(" | ")?)));
    let conditions = rows.zip(RULES);
    conditions.map(|((id, (keys, body)), rule)| Condition { id, rule, keys, body }).collect()
});

impl Condition {
    /// The condition, as a sentence.
    pub fn rule(&self) -> Message {
        Message::of(self.rule, [])
    }

    /// C11 holds for the initial population only.
    pub fn applies(&self, stage: Stage) -> bool {
        stage == Stage::Fresh || self.id != "C11"
    }

    fn violations_sql(&self) -> String {
        let derived = table().filter(|(name, _)| name.starts_with('{'));
        derived.fold(self.body.to_owned(), |body, (name, text)| body.replace(name, text))
    }

    /// Returns true if the condition joins rows of different warehouses: these can be compared apart.
    pub fn joins_warehouses(&self) -> bool {
        matches!(self.id, "C10" | "X1" | "X2" | "X3" | "X6" | "X10")
    }

    /// Checks the condition by one statement of the database.
    pub async fn verdict(
        &self,
        session: &mut AdminSession<'_>,
    ) -> Result<ConditionVerdict, DbError> {
        doing(format!("condition {}", self.id));
        self.find(session, &self.violations_sql()).await
    }

    /// Counts and lists what is found in `body`, the text after FROM.
    async fn find(
        &self,
        session: &mut AdminSession<'_>,
        body: &str,
    ) -> Result<ConditionVerdict, DbError> {
        let violations = number(session, &format!("SELECT count(*) FROM {body}")).await?;
        let mut verdict = ConditionVerdict { violations, ..ConditionVerdict::new(self) };
        if violations > 0 {
            let sql = format!("SELECT {} FROM {body} LIMIT {LISTED}", self.keys);
            let listed = query::answer(session, &sql).await?;
            verdict.keys = listed.rows.iter().map(|row| self.key(row)).collect();
        }
        Ok(verdict)
    }

    /// Checks the condition in a separate session. Reads whole tables. There must be no writers.
    ///
    /// Rows of different warehouses are brought together by one statement. If the database refuses
    /// that, or would only join rows of the same shard (`is_apart`), both sides are read and compared here.
    pub fn examine(
        &self,
        driver: &AdminDriver<'_>,
        is_apart: bool,
    ) -> Result<ConditionVerdict, DbError> {
        databases::run(databases::in_session(driver, async |session| {
            prepare(session).await?;
            let joins_within_shards = is_shardingsphere(&session.product().version);
            if self.joins_warehouses() && (is_apart || joins_within_shards) {
                return verdict_apart(session, self).await;
            }
            match self.verdict(session).await {
                Err(error) if self.joins_warehouses() && is_refusal(&error) => {
                    verdict_apart(session, self).await
                }
                verdict => verdict,
            }
        }))
    }

    /// `o_w_id 1, o_d_id 2`.
    fn key(&self, row: &[Option<String>]) -> String {
        let pairs = self.keys.split(", ").zip(row).map(|(name, value)| {
            // Without the name of a derived table.
            let name = name.rsplit('.').next().unwrap_or(name);
            format!("{name} {}", value.as_deref().unwrap_or("NULL"))
        });
        pairs.collect::<Vec<_>>().join(", ")
    }
}

/// Returns true if the database was reached and refused.
fn is_refusal(error: &DbError) -> bool {
    error.cause() == Cause::Server && error.class() == ErrorClass::Other
}

/// The violations of a condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConditionVerdict {
    pub condition: Condition,
    pub violations: u64,
    /// The first ones.
    pub keys: Vec<String>,
    /// Set if both sides of a join were compared here.
    pub is_apart: bool,
}

impl ConditionVerdict {
    fn new(condition: &Condition) -> Self {
        let (violations, keys) = Default::default();
        ConditionVerdict { condition: *condition, violations, keys, is_apart: false }
    }

    /// Counts a violation; the first few are kept with their keys.
    fn add(&mut self, key: &[Option<String>]) {
        self.violations += 1;
        if self.keys.len() < LISTED {
            self.keys.push(self.condition.key(key));
        }
    }

    /// Returns true if no violation was found.
    pub fn holds(&self) -> bool {
        self.violations == 0
    }

    /// `2 violations: d_w_id 1, d_id 4; d_w_id 1, d_id 5`.
    pub fn describe_violations(&self) -> Message {
        let (n, keys) = (self.violations, self.keys.join("; "));
        if self.keys.len() as u64 == n {
            say!(violations, n, keys)
        } else {
            say!(violations_and_more, n, keys)
        }
    }
}

/// A sentence for each condition that doesn't hold; `None` when all do.
pub fn violated<'a>(verdicts: impl IntoIterator<Item = &'a ConditionVerdict>) -> Option<Message> {
    let violated = verdicts.into_iter().filter(|verdict| !verdict.holds()).map(|verdict| {
        let Condition { id, .. } = verdict.condition;
        let rule = verdict.condition.rule();
        say!(condition_violated, id, rule, violations = verdict.describe_violations())
    });
    let violated: Vec<Message> = violated.collect();
    (!violated.is_empty()).then(|| Message::sentences(&violated))
}

/// Checks the conditions that are wanted, one after another. Reads the whole database: seconds per warehouse. There must
/// be no writers meanwhile.
pub async fn check(
    session: &mut AdminSession<'_>,
    is_wanted: impl Fn(&Condition) -> bool,
) -> Result<Vec<ConditionVerdict>, DbError> {
    prepare(session).await?;
    let mut verdicts = Vec::new();
    for condition in CONDITIONS.iter().filter(|condition| is_wanted(condition)) {
        verdicts.push(condition.verdict(session).await?);
    }
    Ok(verdicts)
}

/// Makes a session ready for [`Condition::verdict`]: MariaDB without statistics would join the derived
/// tables once per customer.
async fn prepare(session: &mut AdminSession<'_>) -> Result<(), DbError> {
    adopt(session).await?;
    if let Some(sql) = session.capabilities().materialize_derived {
        session.query(sql, &mut Discard).await?;
    }
    Ok(())
}

/// Items of one warehouse that are looked up by one statement.
const ITEMS_AT_ONCE: usize = 500;
/// Warehouses that are compared at a time: a million rows of stock.
const WAREHOUSES_AT_ONCE: u64 = 10;

/// Subjects, the sums that they are compared with, and the test for a violation.
type Comparison = (Subjects, &'static [Sums], fn(&[i64]) -> bool);

/// The verdict of a condition that joins rows of different warehouses, without that join: both sides are read by
/// separate statements, each of which a shard can answer for itself or group with the others, and are compared here,
/// some warehouses at a time.
async fn verdict_apart(
    session: &mut AdminSession<'_>,
    condition: &Condition,
) -> Result<ConditionVerdict, DbError> {
    let (subjects, sums, is_broken): Comparison = match condition.id {
        // C_BALANCE; SUM(OL_AMOUNT); SUM(H_AMOUNT).
        "C10" => (BALANCES, &[DELIVERED, PAID], |values| values[0] != values[1] - values[2]),
        // C_PAYMENT_CNT, C_YTD_PAYMENT; SUM(H_AMOUNT), rows of the history.
        "X3" => (PAYMENTS, &[PAID], |values| values[0] != values[3] || values[1] != values[2]),
        // S_YTD, S_ORDER_CNT, S_REMOTE_CNT; quantity, lines, remote lines.
        "X1" => (STOCK, &[SUPPLIED], |values| values[0] != values[3] || values[1] != values[4]),
        "X2" => (STOCK, &[SUPPLIED], |values| values[2] != values[5]),
        "X6" => return amounts(session, condition).await,
        _ => return dist_infos(session, condition).await,
    };
    compare(session, condition, subjects, sums, is_broken).await
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
    let mut verdict = ConditionVerdict { is_apart: true, ..ConditionVerdict::new(condition) };
    let mut away = Vec::new();
    for &(name, home, of_key, decimals) in rights {
        away.push(if home == of_key {
            HashMap::new()
        } else {
            let sql = statement(name, &format!("{home} <> {of_key}"));
            by_key(session, &sql, key.len(), decimals).await?
        });
    }
    let warehouses = number(session, "SELECT max(w_id) FROM bmsql_warehouse").await?;
    for first in (1..=warehouses).step_by(WAREHOUSES_AT_ONCE as usize) {
        let last = warehouses.min(first + WAREHOUSES_AT_ONCE - 1);
        let range: Vec<String> = (first..=last).map(|warehouse| warehouse.to_string()).collect();
        // A list: proxies may send a range to all shards, or refuse it.
        let range = format!("IN ({})", range.join(", "));
        let mut at_home = Vec::new();
        for &(name, home, of_key, decimals) in rights {
            let sql = statement(name, &format!("{home} {range} AND {home} = {of_key}"));
            at_home.push(by_key(session, &sql, key.len(), decimals).await?);
        }
        let sql =
            format!("SELECT {}, {values} FROM {table} WHERE {} {range}", key.join(", "), key[0]);
        let rows = numbers(session, &sql, key.len(), decimals).await?;
        for row in rows.chunks_exact(key.len() + decimals.len()) {
            let (key, values) = row.split_at(key.len());
            let mut all_values = values.to_vec();
            for (number, right) in rights.iter().enumerate() {
                let sums = [&at_home, &away].map(|side| side[number].get(key));
                all_values.extend(
                    (0..right.3.len())
                        .map(|at| sums.iter().flatten().map(|sums| sums[at]).sum::<i64>()),
                );
            }
            if is_broken(&all_values) {
                verdict.add(&key.iter().map(|value| Some(value.to_string())).collect::<Vec<_>>());
            }
        }
    }
    Ok(verdict)
}

/// The rows of an answer: values by their keys.
async fn by_key(
    session: &mut AdminSession<'_>,
    sql: &str,
    keys: usize,
    decimals: &[u32],
) -> Result<HashMap<Box<[i64]>, Box<[i64]>>, DbError> {
    let numbers = numbers(session, sql, keys, decimals).await?;
    let rows = numbers.chunks_exact(keys + decimals.len());
    Ok(rows.map(|row| (row[..keys].into(), row[keys..].into())).collect())
}

/// The rows of an answer one behind the other, as integers: columns of the key, and such with decimal places.
async fn numbers(
    session: &mut AdminSession<'_>,
    sql: &str,
    keys: usize,
    decimals: &[u32],
) -> Result<Vec<i64>, DbError> {
    let from = sql.split(" FROM ").nth(1).unwrap_or_default();
    doing(format!("reading {} for a comparison", from.split(' ').next().unwrap_or_default()));
    let (dialect, places) = (session.dialect(), [&vec![0; keys][..], decimals].concat());
    let mut rows = Numbers { places, dialect, cells: Vec::new(), wrong: None };
    session.query(sql, &mut rows).await?;
    match rows.wrong {
        None => Ok(rows.cells),
        Some(column) => {
            Err(DbError::workload(format!("Column {column} isn't a number, in: {sql}")))
        }
    }
}

struct Numbers {
    places: Vec<u32>,
    dialect: Dialect,
    cells: Vec<i64>,
    /// The number of a column that can't be used.
    wrong: Option<usize>,
}

impl Rows for Numbers {
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
/// at most, and compared with the catalog.
async fn amounts(
    session: &mut AdminSession<'_>,
    condition: &Condition,
) -> Result<ConditionVerdict, DbError> {
    let mut verdict = ConditionVerdict { is_apart: true, ..ConditionVerdict::new(condition) };
    let prices = by_key(session, "SELECT i_id, i_price FROM bmsql_item", 1, &[2]).await?;
    let sql = "SELECT ol_i_id, ol_quantity, ol_amount, count(*) FROM bmsql_order_line WHERE ol_o_id > 3000 \
               GROUP BY ol_i_id, ol_quantity, ol_amount";
    for row in numbers(session, sql, 2, &[2, 0]).await?.chunks_exact(4) {
        let &[item, quantity, cents, count] = row else { continue };
        // An item that does not exist has no price that could be wrong.
        if prices.get(&row[..1]).is_none_or(|price| quantity * price[0] == cents) {
            continue;
        }
        verdict.violations += count as u64;
        if verdict.keys.len() >= LISTED {
            continue;
        }
        let amount = match session.dialect() {
            Dialect::Sqlite => Decimal::new(cents, 0),
            _ => Decimal::cents(cents),
        };
        let body = format!(
            "bmsql_order_line WHERE ol_o_id > 3000 AND ol_i_id = {item} AND ol_quantity = {quantity} AND \
             ol_amount = {}",
            String::from_utf8_lossy(amount.text())
        );
        verdict.keys.extend(condition.find(session, &body).await?.keys);
    }
    verdict.keys.truncate(LISTED);
    Ok(verdict)
}

/// X10: lines that their own warehouse supplied are joined there; of the others, one in a hundred,
/// the stock is looked up.
async fn dist_infos(
    session: &mut AdminSession<'_>,
    condition: &Condition,
) -> Result<ConditionVerdict, DbError> {
    let local = format!("{} AND ol_supply_w_id = ol_w_id AND s_w_id = ol_w_id", condition.body);
    let local = condition.find(session, &local).await?;
    let mut verdict = ConditionVerdict { is_apart: true, ..local };
    let dists: Vec<String> = (1..=DISTRICTS).map(|number| format!("s_dist_{number:02}")).collect();
    let warehouses = number(session, "SELECT max(w_id) FROM bmsql_warehouse").await?;
    for warehouse in 1..=warehouses {
        let mut lines = AnswerTable::for_own_table();
        let sql = format!(
            "SELECT ol_supply_w_id, ol_i_id, ol_dist_info, ol_w_id, ol_d_id, ol_o_id, ol_number FROM \
             bmsql_order_line WHERE ol_w_id = {warehouse} AND ol_o_id > 3000 AND ol_supply_w_id <> ol_w_id"
        );
        session.query(&sql, &mut lines).await?;
        lines.rows.sort_unstable();
        for of_supplier in lines.rows.chunk_by(|one, next| one[0] == next[0]) {
            for chunk in of_supplier.chunks(ITEMS_AT_ONCE) {
                let items: Vec<&str> = chunk.iter().map(|line| trim_cell(&line[1])).collect();
                let sql = format!(
                    "SELECT s_i_id, {} FROM bmsql_stock WHERE s_w_id = {} AND s_i_id IN ({})",
                    dists.join(", "),
                    trim_cell(&chunk[0][0]),
                    items.join(", ")
                );
                let stock = query::answer(session, &sql).await?.rows.into_iter();
                let stock: HashMap<_, _> = stock.map(|row| (row[0].clone(), row)).collect();
                for line in chunk {
                    let district = trim_cell(&line[4]).parse().unwrap_or(0_usize);
                    let info = stock.get(&line[1]).and_then(|row| row.get(district));
                    if info.is_some_and(|info| trim_cell(info) != trim_cell(&line[2])) {
                        verdict.add(&line[3..]);
                    }
                }
            }
        }
    }
    Ok(verdict)
}

/// The text of a cell without the blanks that may fill a fixed-length column; empty for NULL.
fn trim_cell(cell: &Option<String>) -> &str {
    cell.as_deref().unwrap_or_default().trim_end()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_twelve_conditions_are_there_and_no_name_is_left_open() {
        assert_eq!(CONDITIONS.len(), RULES.len());
        for condition in CONDITIONS.iter() {
            let key = format!("tpcc.{}", condition.id.to_lowercase());
            assert_eq!(condition.rule.key, key);
        }
        for number in 1..=12 {
            let id = format!("C{number}");
            assert!(CONDITIONS.iter().any(|condition| condition.id == id), "{id}");
        }
        for condition in CONDITIONS.iter() {
            assert!(!condition.violations_sql().contains('{'), "{}", condition.id);
            assert!(condition.applies(Stage::Fresh));
            assert_eq!(condition.applies(Stage::Used), condition.id != "C11");
        }
    }

    #[test]
    fn violations_are_named_by_key() {
        let row = [Some("1".to_owned()), None];
        assert_eq!(CONDITIONS[1].key(&row), "d_w_id 1, d_id NULL");
        assert_eq!(CONDITIONS[2].key(&row), "no_w_id 1, no_d_id NULL");
    }

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
