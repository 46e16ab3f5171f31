//! The consistency conditions: the twelve of clause 3.3.2, and further ones for what those don't
//! see: stock, remote traffic, counters and amounts.

use crate::values::{Decimal, read_scaled};
use crate::{DISTRICTS, messages};
use dyno_core::{
    AdminDriver, AdminSession, AnswerRow, Cause, DbError, Dialect, Discard, ErrorClass, Rows,
    Session, is_shardingsphere,
};
use dyno_facts::{Message, MessageTexts, say};
use dyno_load::settings::adopt;
use dyno_load::{doing, goes_on, query};
use dyno_runner::databases;
use dyno_runner::failure::sentence;
use std::collections::HashMap;

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

/// Derived tables by the names that stand for them in bodies. No WITH: MySQL 5.7 lacks it. Where all of a join is in one
/// warehouse, its columns keep their own names: ShardingSphere-Proxy fails at others.
const DERIVED: [(&str, &str); 6] = [
    // The amounts of delivered lines by customer.
    (
        "{DL}",
        "(SELECT o_w_id, o_d_id, o_c_id, sum(ol_amount) a FROM bmsql_oorder JOIN \
         bmsql_order_line ON ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id WHERE \
         ol_delivery_d IS NOT NULL GROUP BY o_w_id, o_d_id, o_c_id)",
    ),
    // Payments by customer.
    (
        "{PY}",
        "(SELECT h_c_w_id w, h_c_d_id d, h_c_id c, sum(h_amount) h, count(*) n FROM \
         bmsql_history GROUP BY h_c_w_id, h_c_d_id, h_c_id)",
    ),
    // Lines of transactions by stock row.
    (
        "{LI}",
        "(SELECT ol_supply_w_id w, ol_i_id i, sum(ol_quantity) q, count(*) n, sum(CASE WHEN \
         ol_supply_w_id <> ol_w_id THEN 1 ELSE 0 END) r FROM bmsql_order_line WHERE ol_o_id > \
         3000 GROUP BY ol_supply_w_id, ol_i_id)",
    ),
    // Orders by district.
    (
        "{OO}",
        "(SELECT o_w_id, o_d_id, max(o_id) mx, count(*) n, sum(o_ol_cnt) s FROM bmsql_oorder \
         GROUP BY o_w_id, o_d_id)",
    ),
    // Undelivered orders by district.
    (
        "{NN}",
        "(SELECT no_w_id, no_d_id, max(no_o_id) mx, min(no_o_id) mn, count(*) n FROM \
         bmsql_new_order GROUP BY no_w_id, no_d_id)",
    ),
    // Lines by order.
    (
        "{OL}",
        "(SELECT ol_w_id, ol_d_id, ol_o_id, count(*) n, sum(CASE WHEN ol_supply_w_id <> \
         ol_w_id THEN 1 ELSE 0 END) r FROM bmsql_order_line GROUP BY ol_w_id, ol_d_id, ol_o_id)",
    ),
];

pub(crate) fn derived(name: &str) -> &'static str {
    DERIVED.iter().find(|(known, _)| *known == name).map_or("", |(_, table)| table)
}

/// Makes the table of the conditions: name, message, keys and what follows FROM.
macro_rules! conditions {
    ($($id:ident $rule:ident $keys:literal $body:literal)*) => {
        /// All conditions.
        pub const CONDITIONS: [Condition; [$(stringify!($id)),*].len()] = [$(Condition {
            id: stringify!($id),
            rule: messages::$rule,
            keys: $keys,
            body: $body,
        }),*];
    };
}

conditions! {
    C1 condition_c1 "w_id"
        "bmsql_warehouse LEFT JOIN (SELECT d_w_id, sum(d_ytd) s FROM bmsql_district GROUP BY \
         d_w_id) t ON d_w_id = w_id WHERE s IS NULL OR w_ytd <> s"
    C2 condition_c2 "d_w_id, d_id"
        "bmsql_district LEFT JOIN {OO} o ON o_w_id = d_w_id AND o_d_id = d_id LEFT JOIN {NN} n ON \
         no_w_id = d_w_id AND no_d_id = d_id WHERE o.mx IS NULL OR d_next_o_id - 1 <> o.mx OR \
         n.mx <> o.mx"
    C3 condition_c3 "no_w_id, no_d_id"
        "{NN} t WHERE mx - mn + 1 <> n"
    C4 condition_c4 "o_w_id, o_d_id"
        "{OO} o LEFT JOIN (SELECT ol_w_id, ol_d_id, count(*) k FROM bmsql_order_line GROUP BY \
         ol_w_id, ol_d_id) l ON ol_w_id = o_w_id AND ol_d_id = o_d_id WHERE k IS NULL OR s <> k"
    C5 condition_c5 "o_w_id, o_d_id, o_id"
        "bmsql_oorder LEFT JOIN bmsql_new_order ON no_w_id = o_w_id AND no_d_id = o_d_id AND \
         no_o_id = o_id WHERE (o_carrier_id IS NULL) <> (no_o_id IS NOT NULL)"
    C6 condition_c6 "o_w_id, o_d_id, o_id"
        "bmsql_oorder LEFT JOIN {OL} l ON ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = \
         o_id WHERE o_ol_cnt <> coalesce(n, 0)"
    C7 condition_c7 "ol_w_id, ol_d_id, ol_o_id, ol_number"
        "bmsql_order_line JOIN bmsql_oorder ON o_w_id = ol_w_id AND o_d_id = ol_d_id AND o_id = \
         ol_o_id WHERE (ol_delivery_d IS NULL) <> (o_carrier_id IS NULL)"
    C8 condition_c8 "w_id"
        "bmsql_warehouse LEFT JOIN (SELECT h_w_id, sum(h_amount) s FROM bmsql_history GROUP BY \
         h_w_id) t ON h_w_id = w_id WHERE s IS NULL OR w_ytd <> s"
    C9 condition_c9 "d_w_id, d_id"
        "bmsql_district LEFT JOIN (SELECT h_w_id, h_d_id, sum(h_amount) s FROM bmsql_history \
         GROUP BY h_w_id, h_d_id) t ON h_w_id = d_w_id AND h_d_id = d_id WHERE s IS NULL OR d_ytd \
         <> s"
    C10 condition_c10 "c_w_id, c_d_id, c_id"
        "bmsql_customer LEFT JOIN {DL} x ON o_w_id = c_w_id AND o_d_id = c_d_id AND o_c_id = c_id \
         LEFT JOIN {PY} p ON p.w = c_w_id AND p.d = c_d_id AND p.c = c_id WHERE c_balance <> \
         coalesce(a, 0) - coalesce(h, 0)"
    C11 condition_c11 "o_w_id, o_d_id"
        "{OO} o LEFT JOIN {NN} n ON no_w_id = o_w_id AND no_d_id = o_d_id WHERE o.n - \
         coalesce(n.n, 0) <> 2100"
    C11b condition_c11b "o_w_id, o_d_id"
        "{OO} o LEFT JOIN {NN} n ON no_w_id = o_w_id AND no_d_id = o_d_id JOIN (SELECT c_w_id, \
         c_d_id, sum(c_delivery_cnt) k FROM bmsql_customer GROUP BY c_w_id, c_d_id) c ON c_w_id = \
         o_w_id AND c_d_id = o_d_id WHERE o.n - coalesce(n.n, 0) <> 2100 + k"
    C12 condition_c12 "c_w_id, c_d_id, c_id"
        "bmsql_customer LEFT JOIN {DL} x ON o_w_id = c_w_id AND o_d_id = c_d_id AND o_c_id = c_id \
         WHERE c_balance + c_ytd_payment <> coalesce(a, 0)"
    X1 condition_x1 "s_w_id, s_i_id"
        "bmsql_stock LEFT JOIN {LI} t ON w = s_w_id AND i = s_i_id WHERE s_ytd <> coalesce(q, 0) \
         OR s_order_cnt <> coalesce(n, 0)"
    X2 condition_x2 "s_w_id, s_i_id"
        "bmsql_stock LEFT JOIN {LI} t ON w = s_w_id AND i = s_i_id WHERE s_remote_cnt <> \
         coalesce(r, 0)"
    X3 condition_x3 "c_w_id, c_d_id, c_id"
        "bmsql_customer LEFT JOIN {PY} p ON w = c_w_id AND d = c_d_id AND c = c_id WHERE \
         c_payment_cnt <> coalesce(n, 0) OR c_ytd_payment <> coalesce(h, 0)"
    X4 condition_x4 "c_w_id, c_d_id, c_id"
        "bmsql_customer LEFT JOIN (SELECT o_w_id, o_d_id, o_c_id, count(*) n FROM bmsql_oorder \
         WHERE o_carrier_id IS NOT NULL AND o_id > 2100 GROUP BY o_w_id, o_d_id, o_c_id) t ON \
         o_w_id = c_w_id AND o_d_id = c_d_id AND o_c_id = c_id WHERE c_delivery_cnt <> \
         coalesce(n, 0)"
    X5 condition_x5 "s_w_id, s_i_id"
        "bmsql_stock WHERE s_quantity NOT BETWEEN 10 AND 100"
    X6 condition_x6 "ol_w_id, ol_d_id, ol_o_id, ol_number"
        "bmsql_order_line JOIN bmsql_item ON i_id = ol_i_id WHERE ol_o_id > 3000 AND ol_amount <> \
         ol_quantity * i_price"
    X7 condition_x7 "o_w_id, o_d_id, o_id"
        "bmsql_oorder JOIN {OL} l ON ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id \
         WHERE (o_all_local = 1) <> (r = 0)"
    X8 condition_x8 "no_w_id, no_d_id, no_o_id"
        "bmsql_new_order LEFT JOIN bmsql_oorder ON o_w_id = no_w_id AND o_d_id = no_d_id AND o_id \
         = no_o_id WHERE o_id IS NULL"
    X9 condition_x9 "ol_w_id, ol_d_id, ol_o_id, ol_number"
        "bmsql_order_line LEFT JOIN bmsql_oorder ON o_w_id = ol_w_id AND o_d_id = ol_d_id AND \
         o_id = ol_o_id WHERE o_id IS NULL"
    X10 condition_x10 "ol_w_id, ol_d_id, ol_o_id, ol_number"
        "bmsql_order_line JOIN bmsql_stock ON s_w_id = ol_supply_w_id AND s_i_id = ol_i_id WHERE \
         ol_o_id > 3000 AND ol_dist_info <> CASE ol_d_id WHEN 1 THEN s_dist_01 WHEN 2 THEN \
         s_dist_02 WHEN 3 THEN s_dist_03 WHEN 4 THEN s_dist_04 WHEN 5 THEN s_dist_05 WHEN 6 THEN \
         s_dist_06 WHEN 7 THEN s_dist_07 WHEN 8 THEN s_dist_08 WHEN 9 THEN s_dist_09 ELSE \
         s_dist_10 END"
}

impl Condition {
    pub fn rule(&self) -> Message {
        Message::of(self.rule, [])
    }

    /// C11 holds for the initial population only.
    pub fn applies(&self, stage: Stage) -> bool {
        stage == Stage::Fresh || self.id != "C11"
    }

    fn violations(&self) -> String {
        let mut body = self.body.to_owned();
        for (name, table) in DERIVED {
            body = body.replace(name, table);
        }
        body
    }

    /// True when the condition joins rows of different warehouses: those that [`Mode::Apart`]
    /// looks at in another way.
    pub fn joins_warehouses(&self) -> bool {
        matches!(self.id, "C10" | "X1" | "X2" | "X3" | "X6" | "X10")
    }

    /// True when the database could be asked and refused, and [`Mode::Apart`] can do without it.
    pub fn is_refused(&self, error: &DbError) -> bool {
        let is_refusal = error.cause() == Cause::Server && error.class() == ErrorClass::Other;
        is_refusal && self.joins_warehouses()
    }

    pub fn count_sql(&self) -> String {
        format!("SELECT count(*) FROM {}", self.violations())
    }

    /// Looks whether the condition holds.
    pub async fn verdict(
        &self,
        session: &mut AdminSession<'_>,
    ) -> Result<ConditionVerdict, DbError> {
        doing(format!("condition {}", self.id));
        let count = number(session, &self.count_sql()).await?;
        let keys = match count {
            0 => Vec::new(),
            _ => self.list(session, &self.violations()).await?,
        };
        Ok(ConditionVerdict { condition: *self, violations: count, keys })
    }

    /// The first keys of what follows FROM in `body`.
    async fn list(
        &self,
        session: &mut AdminSession<'_>,
        body: &str,
    ) -> Result<Vec<String>, DbError> {
        let sql = format!("SELECT {} FROM {body} LIMIT {LISTED}", self.keys);
        let listed = query::answer(session, &sql).await?;
        Ok(listed.rows.iter().map(|row| self.key(row)).collect())
    }

    /// Looks whether the condition holds, on sessions of its own. Reads whole tables. Nobody may
    /// write meanwhile.
    pub fn examine(&self, driver: &AdminDriver<'_>, mode: Mode) -> Result<Examined, DbError> {
        if mode == Mode::Apart && self.joins_warehouses() {
            let verdict = verdict_apart(driver, self)?;
            return Ok(Examined { verdict, is_apart: true, refused: None });
        }
        let look = async |session: &mut AdminSession<'_>| self.verdict(session).await;
        match in_session(driver, look) {
            Err(error) if self.is_refused(&error) => {
                let verdict = verdict_apart(driver, self)?;
                Ok(Examined { verdict, is_apart: true, refused: Some(error) })
            }
            verdict => Ok(Examined { verdict: verdict?, is_apart: false, refused: None }),
        }
    }

    /// `o_w_id 1, o_d_id 2`.
    fn key(&self, row: &[Option<String>]) -> String {
        let pair = |(name, value): (&str, &Option<String>)| {
            // Without the name of a derived table.
            let name = name.rsplit('.').next().unwrap_or(name);
            format!("{name} {}", value.as_deref().unwrap_or("NULL"))
        };
        self.keys.split(", ").zip(row).map(pair).collect::<Vec<_>>().join(", ")
    }
}

/// True where the server joins the rows of each shard with those of the same shard only, and says nothing
/// of it: conditions that join rows of different warehouses need [`Mode::Apart`].
pub fn joins_within_shards(version: &str) -> bool {
    is_shardingsphere(version)
}

/// Where rows of different warehouses are brought together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// In the database, by one statement; if it refuses that, here.
    Joined,
    /// Here: both sides are read in the order of their keys and compared as they come.
    Apart,
}

impl Mode {
    /// The mode that suits a server.
    pub fn usual(driver: &AdminDriver<'_>) -> Result<Self, DbError> {
        databases::run(databases::in_session(driver, async |session| {
            let is_apart = joins_within_shards(&session.product().version);
            Ok(if is_apart { Mode::Apart } else { Mode::Joined })
        }))
    }
}

/// What came of looking at a condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Examined {
    /// The verdict: the same whichever way was taken.
    pub verdict: ConditionVerdict,
    /// True when both sides were compared here.
    pub is_apart: bool,
    /// Why, when nobody had asked for that: what the database said to the joined statement.
    pub refused: Option<DbError>,
}

impl Examined {
    /// Says that the database refused the join, if so.
    pub fn refusal_note(&self) -> Option<String> {
        let (id, refusal) = (self.verdict.condition.id, self.refused.as_ref()?);
        let why = sentence(&refusal.to_string());
        Some(format!(
            "note: {id}: the database refused to join rows of different warehouses, so they are compared here: {why}"
        ))
    }
}

/// Whether a condition holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConditionVerdict {
    pub condition: Condition,
    pub violations: u64,
    pub keys: Vec<String>,
}

impl ConditionVerdict {
    pub fn holds(&self) -> bool {
        self.violations == 0
    }

    /// `2 violations: d_w_id 1, d_id 4; d_w_id 1, d_id 5`.
    pub fn counted(&self) -> Message {
        let (n, keys) = (self.violations, self.keys.join("; "));
        match self.keys.len() as u64 == n {
            true => say!(violations, n = n, keys = keys),
            false => say!(violations_and_more, n = n, keys = keys),
        }
    }
}

/// A sentence for each condition that doesn't hold; `None` when all do.
pub fn violated<'a>(verdicts: impl IntoIterator<Item = &'a ConditionVerdict>) -> Option<Message> {
    let violated = verdicts.into_iter().filter(|verdict| !verdict.holds()).map(|verdict| {
        let Condition { id, .. } = verdict.condition;
        let rule = verdict.condition.rule();
        say!(condition_violated, id = id, rule = rule, violations = verdict.counted())
    });
    let violated: Vec<Message> = violated.collect();
    (!violated.is_empty()).then(|| Message::sentences(&violated))
}

/// Checks all conditions of a stage, one after another. Reads the whole database: seconds per
/// warehouse. There must be no writers meanwhile.
pub async fn check(
    session: &mut AdminSession<'_>,
    stage: Stage,
) -> Result<Vec<ConditionVerdict>, DbError> {
    check_some(session, |condition| condition.applies(stage)).await
}

/// Checks the conditions that are wanted, one after another.
pub(crate) async fn check_some(
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
pub(crate) async fn prepare(session: &mut AdminSession<'_>) -> Result<(), DbError> {
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

/// The verdict of a condition that joins rows of different warehouses, without that join: both sides are read by statements
/// of their own, each of which a shard can answer for itself or group with the others, and are compared here, some
/// warehouses at a time.
fn verdict_apart(
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

fn in_session<T>(
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
    fn all_twelve_conditions_are_there_and_no_name_is_left_open() {
        for number in 1..=12 {
            let id = format!("C{number}");
            assert!(CONDITIONS.iter().any(|condition| condition.id == id), "{id}");
        }
        for condition in &CONDITIONS {
            assert!(!condition.count_sql().contains('{'), "{}", condition.id);
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
