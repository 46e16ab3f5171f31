//! What the database holds, against what it has acknowledged.

use crate::ledger::{Counted, Ledger};
use crate::text::parse_scaled;
use dyno_core::{AdminSession, DbError, Dialect, Session};
use dyno_facts::{Message, say};
use dyno_load::doing;
use dyno_load::query::answer;
use std::collections::HashMap;

const LISTED: usize = 10;

/// The state of the database that transactions change, as far as it can be counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Books {
    /// By warehouse and district: the next order's number, and the amount paid in cents.
    districts: HashMap<(u32, u32), (i64, i64)>,
    history_rows: i64,
    history_cents: i64,
    warehouse_cents: i64,
    undelivered: i64,
}

impl Books {
    /// Warehouse, district and the next order's number, in this order.
    pub(crate) fn next_orders(&self) -> Vec<(u32, u32, i64)> {
        let next = |(place, books): (&(u32, u32), &(i64, i64))| (place.0, place.1, books.0);
        let mut orders: Vec<_> = self.districts.iter().map(next).collect();
        orders.sort_unstable();
        orders
    }

    /// Adds those of another server with other warehouses.
    pub(crate) fn add(&mut self, more: &Books) {
        self.districts.extend(&more.districts);
        self.history_rows += more.history_rows;
        self.history_cents += more.history_cents;
        self.warehouse_cents += more.warehouse_cents;
        self.undelivered += more.undelivered;
    }

    pub(crate) fn history_grew_by(&self, before: &Books) -> u64 {
        u64::try_from(self.history_rows - before.history_rows).unwrap_or(0)
    }

    /// True when no order was entered or delivered and nothing paid since the load.
    pub fn is_fresh(&self) -> bool {
        let districts = self.districts.len() as i64;
        let customers = i64::from(crate::CUSTOMERS);
        let first_free = customers + 1;
        self.history_rows == customers * districts
            && self.undelivered == (first_free - i64::from(crate::FIRST_UNDELIVERED)) * districts
            && self.districts.values().all(|&(next, _)| next == first_free)
    }
}

/// Reads a snapshot. Before and after a run, while nobody writes.
pub async fn books(session: &mut AdminSession<'_>) -> Result<Books, DbError> {
    doing("reading the books");
    let districts = "SELECT d_w_id, d_id, d_next_o_id, d_ytd FROM bmsql_district";
    let mut books = Books::default();
    for row in rows(session, districts, &[0, 0, 0, 2]).await? {
        if let [warehouse, district, next, cents] = row[..] {
            books.districts.insert((warehouse as u32, district as u32), (next, cents));
        }
    }
    // Bare sums: ShardingSphere-Proxy adds up those of the shards, but none that stands inside of a function.
    let history = "SELECT count(*), sum(h_amount) FROM bmsql_history";
    let history = rows(session, history, &[0, 2]).await?;
    (books.history_rows, books.history_cents) =
        history.first().map_or((0, 0), |row| (row[0], row[1]));
    let paid = rows(session, "SELECT sum(w_ytd) FROM bmsql_warehouse", &[2]).await?;
    books.warehouse_cents = paid.first().map_or(0, |row| row[0]);
    let queued = rows(session, "SELECT count(*) FROM bmsql_new_order", &[0]).await?;
    books.undelivered = queued.first().map_or(0, |row| row[0]);
    Ok(books)
}

/// The rows of an answer as integers, with as many decimal places as its columns have. NULL, the sum of nothing, is 0.
pub(crate) async fn rows(
    session: &mut AdminSession<'_>,
    sql: &str,
    decimals: &[u32],
) -> Result<Vec<Vec<i64>>, DbError> {
    // SQLite's amounts are integers already.
    let is_scaled = session.dialect() == Dialect::Sqlite;
    let answer = answer(session, sql).await?;
    let number = |(cell, &decimals): (&Option<String>, &u32)| {
        let text = cell.as_deref().unwrap_or("0");
        let decimals = if is_scaled { 0 } else { decimals };
        parse_scaled(text.as_bytes(), decimals)
            .ok_or_else(|| DbError::workload(format!("{text:?} is no number, in: {sql}")))
    };
    answer.rows.iter().map(|row| row.iter().zip(decimals).map(number).collect()).collect()
}

pub(crate) fn reconcile(ledger: &Ledger, before: &Books, after: &Books) -> Vec<Message> {
    let mut problems = Vec::new();
    let mut wrong = |what: Message, found: i64, counted: Counted| {
        let is_right = u64::try_from(found).is_ok_and(|found| counted.allows(found));
        if !is_right {
            let acknowledged = counted.acknowledged.to_string();
            let (found, unknown) = (found.to_string(), counted.unknown.to_string());
            problems.push(say!(
                books_grew,
                what = what,
                found = found,
                acknowledged = acknowledged,
                unknown = unknown
            ));
        }
    };
    for index in 0..ledger.districts() {
        let place = (index as u32 / crate::DISTRICTS + 1, index as u32 % crate::DISTRICTS + 1);
        let (next_before, paid_before) = before.districts.get(&place).copied().unwrap_or_default();
        let (next_after, paid_after) = after.districts.get(&place).copied().unwrap_or_default();
        let (warehouse, district) = (place.0.to_string(), place.1.to_string());
        let orders = say!(books_orders_of_district, district = &district, warehouse = &warehouse);
        let payments = say!(books_payments_of_district, district = district, warehouse = warehouse);
        let books = ledger.district(index);
        wrong(orders, next_after - next_before, books.orders);
        let paid = paid_after - paid_before;
        wrong(payments, paid, books.paid_cents);
    }
    let total = ledger.total();
    let history = after.history_rows - before.history_rows;
    wrong(say!(books_history_rows), history, total.payments);
    let history = after.history_cents - before.history_cents;
    wrong(say!(books_history_amounts), history, total.paid_cents);
    let paid = after.warehouse_cents - before.warehouse_cents;
    wrong(say!(books_warehouses), paid, total.paid_cents);
    // What left the queue is what came in less what it grew by.
    let came: i64 = after
        .districts
        .iter()
        .map(|(place, after)| after.0 - before.districts.get(place).map_or(0, |before| before.0))
        .sum();
    let left = came - (after.undelivered - before.undelivered);
    wrong(say!(books_delivered), left, ledger.delivered());
    if problems.len() > LISTED {
        let more = problems.len() - LISTED;
        problems.truncate(LISTED);
        problems.push(say!(books_more, n = more));
    }
    problems
}

#[cfg(test)]
impl Books {
    /// Each district of so many warehouses has the same next order.
    pub(crate) fn at(warehouses: u32, next: i64) -> Self {
        let places = (1..=warehouses).flat_map(|w| (1..=crate::DISTRICTS).map(move |d| (w, d)));
        Books { districts: places.map(|place| (place, (next, 0))).collect(), ..Books::default() }
    }

    pub(crate) fn set(&mut self, warehouse: u32, district: u32, next: i64) {
        self.districts.insert((warehouse, district), (next, 0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::{Entry, LedgerOrder, LedgerPayment, LedgerWork};

    fn entry(work: LedgerWork<'static>) -> Entry<'static> {
        Entry { warehouse: 1, district: 4, work }
    }

    fn order() -> Entry<'static> {
        let order = LedgerOrder { number: 3_001, customer: 1, lines: 5 };
        entry(LedgerWork::Order { order, away: (&[]).into() })
    }

    fn books_after(next: i64, cents: i64, payments: i64, undelivered: i64) -> Books {
        let mut districts = HashMap::new();
        for district in 1..=10 {
            let value = if district == 4 { (next, cents) } else { (3_001, 0) };
            districts.insert((1, district), value);
        }
        Books {
            districts,
            history_rows: payments,
            history_cents: cents,
            warehouse_cents: cents,
            undelivered,
        }
    }

    #[test]
    fn books_are_fresh_until_an_order_a_payment_or_a_delivery() {
        assert!(books_after(3_001, 0, 30_000, 9_000).is_fresh());
        assert!(!books_after(3_002, 0, 30_000, 9_001).is_fresh());
        assert!(!books_after(3_001, 1, 30_001, 9_000).is_fresh());
        assert!(!books_after(3_001, 0, 30_000, 8_990).is_fresh());
    }

    #[test]
    fn acknowledged_and_unknown_outcomes_explain_what_is_found() {
        let before = books_after(3_001, 0, 0, 9_000);
        let ledger = Ledger::new(1);
        let payment = LedgerPayment { cents: 500, ..LedgerPayment::default() };
        for entry in [order(), entry(LedgerWork::Payment(payment)), entry(LedgerWork::Delivery(10))]
        {
            ledger.note_sending(&entry).unwrap();
            ledger.note_acknowledgement(&entry).unwrap();
        }
        let exact = books_after(3_002, 500, 1, 8_991);
        assert_eq!(reconcile(&ledger, &before, &exact), Vec::<Message>::new());
        let lost = books_after(3_001, 500, 1, 8_990);
        let problems = reconcile(&ledger, &before, &lost);
        assert_eq!(
            problems,
            ["The orders of district 4 of warehouse 1 grew by 0, and 1 were acknowledged, 0 of \
              unknown outcome."]
        );
        let more = books_after(3_003, 500, 1, 8_992);
        assert_eq!(reconcile(&ledger, &before, &more).len(), 1);
        ledger.note_sending(&order()).unwrap();
        assert_eq!(reconcile(&ledger, &before, &more), Vec::<Message>::new());
        let unpaid = books_after(3_002, 400, 0, 8_991);
        assert_eq!(reconcile(&ledger, &before, &unpaid).len(), 4, "district, rows, two sums");
        let undelivered = books_after(3_002, 500, 1, 9_001);
        assert_eq!(reconcile(&ledger, &before, &undelivered).len(), 1);
    }
}
