//! The content of the database against the acknowledged work: the books by counts and sums, and a ledger order by
//! order: whether every order that was acknowledged is there as it was entered, and what became of those whose commit
//! was never answered (clause 3.5.3).

use crate::ledger::{Counted, Ledger, LedgerOrder, Recorded, RecordedDistrict};
use crate::values::parse_scaled;
use dyno_core::{AdminSession, DbError, Dialect};
use dyno_facts::{Message, say};
use dyno_load::doing;
use dyno_load::query::answer;
use std::collections::HashMap;

const BOOKS_LISTED: usize = 10;

/// The state of the database that transactions change, as far as it can be counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Books {
    /// Per warehouse and district: the next order's number, and the amount paid in cents.
    districts: HashMap<(u32, u32), (i64, i64)>,
    history_rows: i64,
    history_cents: i64,
    warehouse_cents: i64,
    undelivered: i64,
}

impl Books {
    /// Warehouse, district and the next order's number, in this order.
    pub(crate) fn next_orders(&self) -> Vec<(u32, u32, i64)> {
        let mut orders: Vec<_> =
            self.districts.iter().map(|(place, books)| (place.0, place.1, books.0)).collect();
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

    /// Returns true if no order was entered or delivered and nothing paid since the load.
    pub fn is_fresh(&self) -> bool {
        let districts = self.districts.len() as i64;
        let customers = i64::from(crate::CUSTOMERS);
        let first_free = customers + 1;
        self.history_rows == customers * districts
            && self.undelivered == (first_free - i64::from(crate::FIRST_UNDELIVERED)) * districts
            && self.districts.values().all(|&(next, _)| next == first_free)
    }
}

/// Reads a snapshot. Before and after a run, while no one writes.
pub async fn books(session: &mut AdminSession<'_>) -> Result<Books, DbError> {
    doing("reading the books");
    let mut books = Books::default();
    let districts = "SELECT d_w_id, d_id, d_next_o_id, d_ytd FROM bmsql_district";
    for [warehouse, district, next, cents] in rows(session, districts, [0, 0, 0, 2]).await? {
        books.districts.insert((warehouse as u32, district as u32), (next, cents));
    }
    // Bare sums: ShardingSphere-Proxy adds up those of the shards, but none inside of a function.
    let history = "SELECT count(*), sum(h_amount) FROM bmsql_history";
    let history = rows(session, history, [0, 2]).await?;
    [books.history_rows, books.history_cents] = history.first().copied().unwrap_or_default();
    let paid = rows(session, "SELECT sum(w_ytd) FROM bmsql_warehouse", [2]).await?;
    [books.warehouse_cents] = paid.first().copied().unwrap_or_default();
    let queued = rows(session, "SELECT count(*) FROM bmsql_new_order", [0]).await?;
    [books.undelivered] = queued.first().copied().unwrap_or_default();
    Ok(books)
}

/// The rows of an answer as integers, with as many decimal places as its columns have. NULL, the sum of nothing, is 0.
pub(crate) async fn rows<const N: usize>(
    session: &mut AdminSession<'_>,
    sql: &str,
    decimals: [u32; N],
) -> Result<Vec<[i64; N]>, DbError> {
    // SQLite's amounts are integers already.
    let is_scaled = session.dialect() == Dialect::Sqlite;
    let mut rows = Vec::new();
    for row in answer(session, sql).await?.rows {
        let mut numbers = [0; N];
        for ((number, cell), decimals) in numbers.iter_mut().zip(&row).zip(decimals) {
            let text = cell.as_deref().unwrap_or("0");
            let decimals = if is_scaled { 0 } else { decimals };
            *number = parse_scaled(text.as_bytes(), decimals)
                .ok_or_else(|| DbError::workload(format!("{text:?} isn't a number, in: {sql}")))?;
        }
        rows.push(numbers);
    }
    Ok(rows)
}

/// Compares the growth of the books with the ledger: a sentence for each of the first differences.
pub(crate) fn reconcile(ledger: &Ledger, before: &Books, after: &Books) -> Vec<Message> {
    let mut problems = Vec::new();
    for (index, books) in ledger.districts().enumerate() {
        let place = (index as u32 / crate::DISTRICTS + 1, index as u32 % crate::DISTRICTS + 1);
        let [(next_before, paid_before), (next_after, paid_after)] =
            [before, after].map(|books| books.districts.get(&place).copied().unwrap_or_default());
        let (warehouse, district) = (place.0.to_string(), place.1.to_string());
        let title = say!(books_orders_of_district, district = &district, warehouse = &warehouse);
        check_growth(title, next_after - next_before, books.orders, &mut problems);
        let title = say!(books_payments_of_district, district, warehouse);
        check_growth(title, paid_after - paid_before, books.paid_cents, &mut problems);
    }
    let total = ledger.total();
    let history = after.history_rows - before.history_rows;
    check_growth(say!(books_history_rows), history, total.payments, &mut problems);
    let history = after.history_cents - before.history_cents;
    check_growth(say!(books_history_amounts), history, total.paid_cents, &mut problems);
    let paid = after.warehouse_cents - before.warehouse_cents;
    check_growth(say!(books_warehouses), paid, total.paid_cents, &mut problems);
    // What left the queue is what came in less what it grew by.
    let [first_free_before, first_free_after] =
        [before, after].map(|books| books.districts.values().map(|(next, _)| next).sum::<i64>());
    let delivered = first_free_after - after.undelivered - first_free_before + before.undelivered;
    check_growth(say!(books_delivered), delivered, total.delivered, &mut problems);
    if problems.len() > BOOKS_LISTED {
        let unlisted = problems.len() - BOOKS_LISTED;
        problems.truncate(BOOKS_LISTED);
        problems.push(say!(books_more, n = unlisted));
    }
    problems
}

/// Adds a problem if a subject has not grown by what the ledger allows.
fn check_growth(subject: Message, grown: i64, counted: Counted, problems: &mut Vec<Message>) {
    let is_right = u64::try_from(grown).is_ok_and(|grown| counted.allows(grown));
    if !is_right {
        problems.push(say!(
            books_grew,
            what = subject,
            found = grown.to_string(),
            acknowledged = counted.acknowledged.to_string(),
            unknown = counted.unknown.to_string()
        ));
    }
}

/// Lost orders that are listed one by one, and districts whose counts are wrong.
const LISTED: usize = 100;

/// Order numbers that one statement reads at most.
const NUMBERS_AT_ONCE: u32 = 20_000;

/// The mismatch of an acknowledged order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OrderMismatch {
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
    pub instead: OrderMismatch,
}

impl LostOrder {
    /// `o_w_id 1, o_d_id 4, o_id 3105 does not exist`.
    pub fn message(&self) -> Message {
        let LedgerOrder { number, lines, .. } = self.order;
        let order = format!("o_w_id {}, o_d_id {}, o_id {number}", self.warehouse, self.district);
        match self.instead {
            OrderMismatch::Nothing => say!(order_missing, order),
            OrderMismatch::Lines(found) => {
                say!(order_lines_missing, order, found, lines)
            }
            OrderMismatch::Other => say!(order_replaced, order),
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
    /// The ones among them that are there.
    pub committed: u64,
    /// Amount by which the districts' next order numbers grew since before the first run.
    pub grown: i64,
    /// Amount by which more they grew than these orders explain: others have entered orders, too.
    pub others: u64,
    /// A sentence for each district that grew by less than its orders, and for each order of
    /// unknown outcome that is there in part. The first ones.
    pub problems: Vec<String>,
}

impl Settlement {
    /// Returns true if no acknowledged order is lost and all others are explained.
    pub fn is_durable(&self) -> bool {
        self.lost == 0 && self.problems.is_empty()
    }

    /// The search for acknowledged orders, and the first lost ones.
    pub fn evidence(&self) -> Message {
        const NAMED: usize = 3;
        let mut sentences = vec![say!(order_search_criteria)];
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
        more.problems.into_iter().for_each(|problem| self.add_problem(problem));
        let listed = more.listed.len() as u64;
        more.listed.into_iter().for_each(|lost| self.add_lost(lost));
        self.lost += more.lost - listed;
    }

    fn add_lost(&mut self, lost: LostOrder) {
        self.lost += 1;
        if self.listed.len() < LISTED {
            self.listed.push(lost);
        }
    }

    fn add_problem(&mut self, problem: String) {
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
    mut progress: impl FnMut(u64),
) -> Result<Settlement, DbError> {
    settle_part(
        session,
        recorded,
        |_| true,
        |settlement: &Settlement, _, _| {
            progress(settlement.acknowledged);
        },
    )
    .await
}

/// Orders of a district by their numbers.
pub(crate) type StoredOrders = HashMap<u32, StoredOrder>;

/// Like [`settle`], for the warehouses that `is_here` says are on the server of this session. `visit` gets what was
/// found so far, and the orders of each district.
pub(crate) async fn settle_part(
    session: &mut AdminSession<'_>,
    recorded: &Recorded,
    is_here: impl Fn(u32) -> bool,
    mut visit: impl FnMut(&Settlement, (u32, u32), &StoredOrders),
) -> Result<Settlement, DbError> {
    let sql = "SELECT d_w_id, d_id, d_next_o_id FROM bmsql_district";
    let next = rows(session, sql, [0, 0, 0]).await?.into_iter();
    let next: HashMap<(u32, u32), i64> =
        next.map(|[w, d, next]| ((w as u32, d as u32), next)).collect();
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
        visit(&settlement, place, &stored);
        let grown = next.get(&place).copied().unwrap_or(0) - i64::from(books.before);
        settlement.grown += grown;
        let acknowledged = books.acknowledged.len() as i64;
        let explained = acknowledged + committed as i64;
        settlement.others += u64::try_from(grown - explained).unwrap_or(0);
        if grown < explained {
            settlement.add_problem(format!(
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
    stored: &StoredOrders,
    settlement: &mut Settlement,
) {
    let mut last_match = None;
    for &order in acknowledged {
        settlement.acknowledged += 1;
        // One row can't be two orders that were acknowledged under the same number.
        let is_taken = last_match == Some(order.number);
        let instead = match stored.get(&order.number) {
            None => OrderMismatch::Nothing,
            Some(row) if is_taken || !row.matches_order(order) => OrderMismatch::Other,
            Some(row) if row.found_lines != u64::from(order.lines) => {
                OrderMismatch::Lines(row.found_lines)
            }
            Some(_) => {
                last_match = Some(order.number);
                continue;
            }
        };
        settlement.add_lost(LostOrder { warehouse, district, order, instead });
    }
}

/// Settles a district's orders of unknown outcome; returns how many of them are there.
fn look_up(
    (warehouse, district): (u32, u32),
    books: &RecordedDistrict,
    stored: &StoredOrders,
    settlement: &mut Settlement,
) -> u64 {
    settlement.unknown += books.unknown.len() as u64;
    // Sent again with the same data: there is one of them at most.
    let mut unknown = books.unknown.clone();
    unknown.dedup();
    unknown.retain(|order| books.acknowledged.binary_search(order).is_err());
    let mut committed = 0;
    for order in unknown {
        let Some(row) = stored.get(&order.number).filter(|row| row.matches_order(order)) else {
            continue;
        };
        committed += 1;
        if row.found_lines != u64::from(order.lines) {
            settlement.add_problem(format!(
                "Order {} of district {district} of warehouse {warehouse}, of unknown outcome, is there with {} of \
                 its {} lines.",
                order.number, row.found_lines, order.lines
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
    found_lines: u64,
}

impl StoredOrder {
    /// O_C_ID and O_OL_CNT.
    pub(crate) fn identity(&self) -> (i64, i64) {
        (self.customer, self.lines)
    }

    fn matches_order(&self, order: LedgerOrder) -> bool {
        self.identity() == (i64::from(order.customer), i64::from(order.lines))
    }
}

/// The orders of a district with these numbers, which are sorted; read in ranges, so that others may be among them.
async fn stored_orders(
    session: &mut AdminSession<'_>,
    (warehouse, district): (u32, u32),
    numbers: &[u32],
) -> Result<StoredOrders, DbError> {
    doing(format!("looking for orders of district {district} of warehouse {warehouse}"));
    let mut orders = StoredOrders::new();
    let mut remaining = numbers;
    while let Some(first) = remaining.first() {
        let last = first.saturating_add(NUMBERS_AT_ONCE - 1);
        let chunk;
        (chunk, remaining) =
            remaining.split_at(remaining.partition_point(|number| *number <= last));
        let last = chunk.last().unwrap_or(first);
        let sql = format!(
            "SELECT o_id, o_c_id, o_ol_cnt FROM bmsql_oorder WHERE o_w_id = {warehouse} AND o_d_id = \
             {district} AND o_id BETWEEN {first} AND {last}"
        );
        for [number, customer, lines] in rows(session, &sql, [0, 0, 0]).await? {
            orders.insert(number as u32, StoredOrder { customer, lines, found_lines: 0 });
        }
        let sql = format!(
            "SELECT ol_o_id, count(*) FROM bmsql_order_line WHERE ol_w_id = {warehouse} AND ol_d_id = \
             {district} AND ol_o_id BETWEEN {first} AND {last} GROUP BY ol_o_id"
        );
        for [number, count] in rows(session, &sql, [0, 0]).await? {
            if let Some(order) = orders.get_mut(&(number as u32)) {
                order.found_lines = count as u64;
            }
        }
    }
    Ok(orders)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::{Entry, LedgerPayment, LedgerWork, Step};

    fn new_entry(work: LedgerWork<'static>) -> Entry<'static> {
        Entry { warehouse: 1, district: 4, work }
    }

    fn order_entry() -> Entry<'static> {
        let order = LedgerOrder { number: 3_001, customer: 1, lines: 5 };
        new_entry(LedgerWork::Order { order, away: (&[]).into() })
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
        for entry in [
            order_entry(),
            new_entry(LedgerWork::Payment(payment)),
            new_entry(LedgerWork::Delivery(10)),
        ] {
            ledger.record(Step::Sent, &entry).unwrap();
            ledger.record(Step::Acknowledged, &entry).unwrap();
        }
        let exact = books_after(3_002, 500, 1, 8_991);
        assert_eq!(reconcile(&ledger, &before, &exact), Vec::<Message>::new());
        let with_loss = books_after(3_001, 500, 1, 8_990);
        let problems = reconcile(&ledger, &before, &with_loss);
        assert_eq!(
            problems,
            ["The orders of district 4 of warehouse 1 grew by 0, and 1 were acknowledged, 0 of \
              unknown outcome."]
        );
        let with_surplus = books_after(3_003, 500, 1, 8_992);
        assert_eq!(reconcile(&ledger, &before, &with_surplus).len(), 1);
        ledger.record(Step::Sent, &order_entry()).unwrap();
        assert_eq!(reconcile(&ledger, &before, &with_surplus), Vec::<Message>::new());
        let unpaid = books_after(3_002, 400, 0, 8_991);
        assert_eq!(reconcile(&ledger, &before, &unpaid).len(), 4, "district, rows, two sums");
        let undelivered = books_after(3_002, 500, 1, 9_001);
        assert_eq!(reconcile(&ledger, &before, &undelivered).len(), 1);
    }

    impl Books {
        /// Books in which each district of `warehouses` has the same next order.
        pub(crate) fn at(warehouses: u32, next: i64) -> Self {
            let places = (1..=warehouses).flat_map(|w| (1..=crate::DISTRICTS).map(move |d| (w, d)));
            Books {
                districts: places.map(|place| (place, (next, 0))).collect(),
                ..Books::default()
            }
        }

        /// Sets the next order of a district.
        pub(crate) fn set(&mut self, warehouse: u32, district: u32, next: i64) {
            self.districts.insert((warehouse, district), (next, 0));
        }
    }
}
