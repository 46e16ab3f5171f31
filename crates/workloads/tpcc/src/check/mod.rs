//! The consistency conditions: the twelve of clause 3.3.2, and further ones for what those don't
//! see: stock, remote traffic, counters and amounts.
//!
//! `apart`: those that join rows of different warehouses, compared without that join.

mod apart;

use crate::messages;
use dyno_core::{
    AdminDriver, AdminSession, Cause, DbError, Discard, ErrorClass, Session, is_shardingsphere,
};
use dyno_facts::{Message, MessageTexts, say};
use dyno_load::settings::adopt;
use dyno_load::{doing, query};
use dyno_runner::databases;
use dyno_runner::failure::sentence;

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
        apart::is_for(self)
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
            let verdict = apart::verdict(driver, self)?;
            return Ok(Examined { verdict, is_apart: true, refused: None });
        }
        let look = async |session: &mut AdminSession<'_>| self.verdict(session).await;
        match apart::in_session(driver, look) {
            Err(error) if self.is_refused(&error) => {
                let verdict = apart::verdict(driver, self)?;
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
}
