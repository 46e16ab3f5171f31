//! A ledger against the database: whether every order that was acknowledged is there as it was
//! entered, and what became of those whose commit was never answered (clause 3.5.3).

use crate::ledger::{LedgerOrder, Recorded, RecordedDistrict};
use dyno_core::{AdminSession, DbError};
use dyno_facts::{Message, say};
use dyno_load::doing;
use dyno_load::query::integers;
use std::collections::HashMap;

/// Lost orders that are listed one by one, and districts whose counts are wrong.
const LISTED: usize = 100;

/// Order numbers that one statement reads at most.
const NUMBERS_AT_ONCE: u32 = 20_000;

/// What is found in the place of an acknowledged order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Instead {
    /// No order has its number.
    Nothing,
    /// The order, but not all of its lines.
    Lines(u64),
    /// Another order has its number: this one was forgotten before that was entered.
    Other,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LostOrder {
    /// O_W_ID.
    pub warehouse: u32,
    /// O_D_ID.
    pub district: u32,
    pub order: LedgerOrder,
    pub instead: Instead,
}

impl LostOrder {
    /// `o_w_id 1, o_d_id 4, o_id 3105: there is no such order`.
    pub fn message(&self) -> Message {
        let LedgerOrder { number, lines, .. } = self.order;
        let order = format!("o_w_id {}, o_d_id {}, o_id {number}", self.warehouse, self.district);
        match self.instead {
            Instead::Nothing => say!(order_missing, order = order),
            Instead::Lines(found) => {
                say!(order_lines_missing, order = order, found = found, lines = lines)
            }
            Instead::Other => say!(order_replaced, order = order),
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settlement {
    pub acknowledged: u64,
    /// Acknowledged orders that are not there as they were entered.
    pub lost: u64,
    /// The first of them, by warehouse, district and number.
    pub listed: Vec<LostOrder>,
    /// Orders whose commit was sent and never answered.
    pub unknown: u64,
    /// Those of them that are there.
    pub committed: u64,
    /// By how much the districts' next order numbers grew since before the first run.
    pub grown: i64,
    /// By how much more they grew than these orders explain: others have entered orders, too.
    pub others: u64,
    /// A sentence for each district that grew by less than its orders, and for each order of
    /// unknown outcome that is there in part. The first ones.
    pub problems: Vec<String>,
}

impl Settlement {
    /// True when no acknowledged order is lost and all others are explained.
    pub fn is_durable(&self) -> bool {
        self.lost == 0 && self.problems.is_empty()
    }

    /// How acknowledged orders were looked for, and the first lost ones.
    pub fn evidence(&self) -> Message {
        const NAMED: usize = 3;
        let mut sentences = vec![say!(orders_looked_for)];
        if self.unknown > 0 {
            sentences.push(say!(orders_unanswered, n = self.unknown, there = self.committed));
        }
        if self.lost > 0 {
            let first: Vec<Message> =
                self.listed.iter().take(NAMED).map(LostOrder::message).collect();
            sentences.push(say!(orders_first_lost, orders = Message::joined(&first, "; ", "；")));
        }
        Message::sentences(&sentences)
    }

    /// Adds what was found on another server.
    pub(crate) fn add(&mut self, more: Settlement) {
        self.acknowledged += more.acknowledged;
        self.unknown += more.unknown;
        self.committed += more.committed;
        self.grown += more.grown;
        self.others += more.others;
        more.problems.into_iter().for_each(|problem| self.complain(problem));
        let listed = more.listed.len() as u64;
        more.listed.into_iter().for_each(|lost| self.lose(lost));
        self.lost += more.lost - listed;
    }

    fn lose(&mut self, lost: LostOrder) {
        self.lost += 1;
        if self.listed.len() < LISTED {
            self.listed.push(lost);
        }
    }

    fn complain(&mut self, problem: String) {
        if self.problems.len() < LISTED {
            self.problems.push(problem);
        }
    }
}

/// Holds a ledger against the database. Reads every district's orders in ranges. There must be no writers meanwhile.
/// `progress` gets the number of orders that were compared.
pub async fn settle(
    session: &mut AdminSession<'_>,
    recorded: &Recorded,
    progress: impl FnMut(u64),
) -> Result<Settlement, DbError> {
    settle_part(session, recorded, |_| true, progress).await
}

/// The same for the warehouses that `is_here` says are on the server of this session.
pub(crate) async fn settle_part(
    session: &mut AdminSession<'_>,
    recorded: &Recorded,
    is_here: impl Fn(u32) -> bool,
    mut progress: impl FnMut(u64),
) -> Result<Settlement, DbError> {
    let next = next_orders(session).await?;
    let mut settlement = Settlement::default();
    for (warehouse, district, books) in recorded.districts() {
        if !is_here(warehouse) {
            continue;
        }
        let place = (warehouse, district);
        let orders = books.acknowledged.iter().chain(&books.unknown);
        let mut numbers: Vec<u32> = orders.map(|order| order.number).collect();
        numbers.sort_unstable();
        let stored = stored_orders(session, place, &numbers).await?;
        compare(place, &books.acknowledged, &stored, &mut settlement);
        let committed = look_up(place, books, &stored, &mut settlement);
        progress(settlement.acknowledged);
        let grown = next.get(&place).copied().unwrap_or(0) - i64::from(books.before);
        settlement.grown += grown;
        let acknowledged = books.acknowledged.len() as u64;
        let explained = acknowledged + committed;
        settlement.others += u64::try_from(grown).unwrap_or(0).saturating_sub(explained);
        if u64::try_from(grown).unwrap_or(0) < explained {
            settlement.complain(format!(
                "The next order number of district {district} of warehouse {warehouse} grew by \
                 {grown}, but {acknowledged} orders were acknowledged, and {committed} of unknown \
                 outcome are there."
            ));
        }
    }
    Ok(settlement)
}

/// Compares acknowledged orders of a district, in the order of their numbers, with what is stored.
fn compare(
    (warehouse, district): (u32, u32),
    acknowledged: &[LedgerOrder],
    stored: &HashMap<u32, StoredOrder>,
    settlement: &mut Settlement,
) {
    let mut taken = None;
    for &order in acknowledged {
        settlement.acknowledged += 1;
        let instead = match stored.get(&order.number) {
            None => Instead::Nothing,
            // One row can't be two orders that were acknowledged under the same number.
            Some(_) if taken == Some(order.number) => Instead::Other,
            Some(row) if !row.is(order) => Instead::Other,
            Some(row) if row.found_lines != u64::from(order.lines) => {
                Instead::Lines(row.found_lines)
            }
            Some(_) => {
                taken = Some(order.number);
                continue;
            }
        };
        settlement.lose(LostOrder { warehouse, district, order, instead });
    }
}

/// Settles a district's orders of unknown outcome; returns how many of them are there.
fn look_up(
    place: (u32, u32),
    books: &RecordedDistrict,
    stored: &HashMap<u32, StoredOrder>,
    settlement: &mut Settlement,
) -> u64 {
    let mut committed = 0;
    let mut before = None;
    for &order in &books.unknown {
        settlement.unknown += 1;
        // Sent again with the same data: there is one of them at most.
        let is_again = before.replace(order) == Some(order);
        if is_again || books.acknowledged.binary_search(&order).is_ok() {
            continue;
        }
        let Some(row) = stored.get(&order.number).filter(|row| row.is(order)) else { continue };
        committed += 1;
        if row.found_lines != u64::from(order.lines) {
            settlement.complain(format!(
                "Order {} of district {} of warehouse {}, of unknown outcome, is there with {} of \
                 its {} lines.",
                order.number, place.1, place.0, row.found_lines, order.lines
            ));
        }
    }
    settlement.committed += committed;
    committed
}

/// An order as the database holds it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct StoredOrder {
    customer: i64,
    lines: i64,
    /// Rows of bmsql_order_line.
    found_lines: u64,
}

impl StoredOrder {
    /// O_C_ID and O_OL_CNT.
    pub(crate) fn identity(&self) -> (i64, i64) {
        (self.customer, self.lines)
    }

    fn is(&self, order: LedgerOrder) -> bool {
        self.identity() == (i64::from(order.customer), i64::from(order.lines))
    }
}

/// The orders of a district with these numbers, which are sorted; read in ranges, so that others may be among them.
pub(crate) async fn stored_orders(
    session: &mut AdminSession<'_>,
    (warehouse, district): (u32, u32),
    numbers: &[u32],
) -> Result<HashMap<u32, StoredOrder>, DbError> {
    doing(format!("looking for orders of district {district} of warehouse {warehouse}"));
    let mut orders: HashMap<u32, StoredOrder> = HashMap::new();
    let mut rest = numbers;
    while let Some(first) = rest.first() {
        let last = first.saturating_add(NUMBERS_AT_ONCE - 1);
        let chunk;
        (chunk, rest) = rest.split_at(rest.partition_point(|number| *number <= last));
        let last = chunk.last().unwrap_or(first);
        let sql = format!(
            "SELECT o_id, o_c_id, o_ol_cnt FROM bmsql_oorder WHERE o_w_id = {warehouse} AND o_d_id = \
             {district} AND o_id BETWEEN {first} AND {last}"
        );
        for row in integers(session, &sql, -1).await? {
            if let [number, customer, lines] = row[..] {
                orders.insert(number as u32, StoredOrder { customer, lines, found_lines: 0 });
            }
        }
        let sql = format!(
            "SELECT ol_o_id, count(*) FROM bmsql_order_line WHERE ol_w_id = {warehouse} AND ol_d_id = \
             {district} AND ol_o_id BETWEEN {first} AND {last} GROUP BY ol_o_id"
        );
        for row in integers(session, &sql, -1).await? {
            if let [number, count] = row[..]
                && let Some(order) = orders.get_mut(&(number as u32))
            {
                order.found_lines = count as u64;
            }
        }
    }
    Ok(orders)
}

/// The next order's number by warehouse and district.
async fn next_orders(session: &mut AdminSession<'_>) -> Result<HashMap<(u32, u32), i64>, DbError> {
    let sql = "SELECT d_w_id, d_id, d_next_o_id FROM bmsql_district";
    let rows = integers(session, sql, -1).await?;
    let next = |row: Vec<i64>| match row[..] {
        [warehouse, district, next] => Some(((warehouse as u32, district as u32), next)),
        _ => None,
    };
    Ok(rows.into_iter().filter_map(next).collect())
}
