//! The transactions: New-Order (clause 2.4), Payment (2.5) and how a customer is found by last name, Delivery (2.7):
//! the oldest order of each of ten districts, in one transaction; and those that only read: Order-Status (2.6) and
//! Stock-Level (2.8).

use super::link::{Link, Sql, not_loaded};
use super::terminal::{
    DeliveryInput, LineInput, NewOrderInput, OrderStatusInput, PaymentInput, StockLevelInput,
};
use crate::ledger::{Entry, LedgerOrder, LedgerPayment, LedgerWork};
use crate::profile::CustomerKey;
use crate::values::{Decimal, Short, read_scaled};
use crate::{DISTRICTS, LINES_MAX};
use dyno_core::{AnswerRow, DbError, Dialect, Discard, Outcome, Param, Rows, Session};

/// The first s_dist_xx in the row of stock.
const FIRST_DIST: usize = 2;

#[derive(Clone, Copy, Debug, Default)]
struct LineAnswer {
    price_cents: i64,
    stock_quantity: i64,
    dist_info: [u8; 24],
}

#[derive(Clone, Debug)]
struct NewOrderRows {
    dialect: Dialect,
    dist_column: usize,
    /// The number of the order, which the district has given out.
    order: Option<i64>,
    has_customer: bool,
    items: usize,
    stocks: usize,
    lines: [LineAnswer; LINES_MAX],
}

impl NewOrderRows {
    fn new(dialect: Dialect, district: i64) -> Self {
        let (order, has_customer, items, stocks, lines) = Default::default();
        let dist_column = FIRST_DIST + district as usize - 1;
        NewOrderRows { dialect, dist_column, order, has_customer, items, stocks, lines }
    }

    fn order_number(&self) -> Result<i64, DbError> {
        self.order.ok_or_else(|| not_loaded("The district of an order"))
    }
}

/// Answers are distinguished by their numbers of columns.
impl Rows for NewOrderRows {
    fn row<R: AnswerRow>(&mut self, row: &R) {
        match row.columns() {
            2 => self.order = row.int(1),
            4 => self.has_customer = true,
            3 if self.items < LINES_MAX => {
                let price = read_scaled(row, 0, 2, self.dialect);
                self.lines[self.items].price_cents = price.unwrap_or(0);
                self.items += 1;
            }
            12 if self.stocks < LINES_MAX => {
                let line = &mut self.lines[self.stocks];
                line.stock_quantity = row.int(0).unwrap_or(0);
                let dist = row.bytes(self.dist_column).unwrap_or_default();
                let length = dist.len().min(line.dist_info.len());
                line.dist_info[..length].copy_from_slice(&dist[..length]);
                self.stocks += 1;
            }
            _ => {}
        }
    }
}

/// A stock's quantity after an order (clause 2.4.2.2).
fn quantity_left(stock: i64, ordered: i64) -> i64 {
    if stock >= ordered + 10 { stock - ordered } else { stock - ordered + 91 }
}

pub(crate) async fn new_order<S: Session>(
    link: &mut Link<'_, S>,
    input: &NewOrderInput,
) -> Result<Outcome, DbError> {
    let mut rows = NewOrderRows::new(link.dialect, input.district);
    let NewOrderInput { warehouse, district, customer, .. } = *input;
    let place = [Param::Int(warehouse), Param::Int(district)];
    let customer = [place[0], place[1], Param::Int(customer)];
    link.begin(Sql::Begin).await?;
    link.send(Sql::LockDistrict, &place, &mut rows).await?;
    link.send(Sql::CustomerAndTax, &customer, &mut rows).await?;
    link.send(Sql::TakeOrderNumber, &place, &mut rows).await?;
    insert_order(link, input, &rows).await?;
    let valid = &input.lines[..input.count - usize::from(input.is_rolled_back)];
    for line in valid {
        link.send(Sql::Item, &[Param::Int(line.item)], &mut rows).await?;
        let stock = [Param::Int(line.supply_warehouse), Param::Int(line.item)];
        link.send(Sql::LockStock, &stock, &mut rows).await?;
    }
    if input.is_rolled_back {
        let unused = input.lines[input.count - 1].item;
        link.send(Sql::Item, &[Param::Int(unused)], &mut rows).await?;
    }
    if rows.items != valid.len() || rows.stocks != valid.len() {
        return Err(not_loaded("An item that was ordered, or its stock,"));
    }
    link.mark();
    write_lines(link, input, valid, &rows).await?;
    if input.is_rolled_back {
        // Clause 2.4.2.3: all the work is done before it is undone.
        link.end(Sql::Rollback).await?;
        return Ok(Outcome::RolledBack);
    }
    let (mut away, mut count) = ([(0, 0); LINES_MAX], 0);
    for line in valid.iter().filter(|line| line.supply_warehouse != warehouse) {
        away[count] = (line.supply_warehouse as u32, line.item as u32);
        count += 1;
    }
    let order = LedgerOrder {
        number: rows.order_number()? as u32,
        customer: input.customer as u16,
        lines: input.count as u8,
    };
    let work = LedgerWork::Order { order, away: away[..count].into() };
    let entry = Entry { warehouse: warehouse as u32, district: district as u32, work };
    link.commit(&entry).await?;
    Ok(Outcome::Committed)
}

async fn insert_order<S: Session>(
    link: &mut Link<'_, S>,
    input: &NewOrderInput,
    rows: &NewOrderRows,
) -> Result<(), DbError> {
    let order = rows.order_number()?;
    if !rows.has_customer {
        return Err(not_loaded("The customer of an order"));
    }
    let all_local =
        input.lines[..input.count].iter().all(|line| line.supply_warehouse == input.warehouse);
    let entered = input.entered.text();
    let number = [order, input.district, input.warehouse].map(Param::Int);
    let [o, d, w] = number;
    let [customer, count, all_local] =
        [input.customer, input.count as i64, i64::from(all_local)].map(Param::Int);
    let order = [o, d, w, customer, Param::Text(&entered), count, all_local];
    link.send(Sql::InsertOrder, &order, &mut Discard).await?;
    link.send(Sql::InsertNewOrder, &number, &mut Discard).await.map(drop)
}

/// The two batches: updates of stock, inserts of lines.
async fn write_lines<S: Session>(
    link: &mut Link<'_, S>,
    input: &NewOrderInput,
    lines: &[LineInput],
    rows: &NewOrderRows,
) -> Result<(), DbError> {
    let mut before: Option<(&LineInput, i64)> = None;
    for (line, answer) in lines.iter().zip(&rows.lines) {
        // An item that is ordered twice was read twice before either update.
        let stock = match before {
            Some((previous, remaining))
                if previous.item == line.item
                    && previous.supply_warehouse == line.supply_warehouse =>
            {
                remaining
            }
            _ => answer.stock_quantity,
        };
        let remaining = quantity_left(stock, line.quantity);
        before = Some((line, remaining));
        let is_remote = i64::from(line.supply_warehouse != input.warehouse);
        let update = [remaining, line.quantity, is_remote, line.supply_warehouse, line.item];
        link.queue(Sql::UpdateStock, &update.map(Param::Int))?;
    }
    link.land(&mut Discard).await?;
    link.check_hits("The stock of an order")?;
    let order = rows.order_number()?;
    for (line, answer) in lines.iter().zip(&rows.lines) {
        let amount = Decimal::cents(line.quantity * answer.price_cents);
        let [o, d, w] = [order, input.district, input.warehouse].map(Param::Int);
        let LineInput { number, item, supply_warehouse, quantity } = *line;
        let [number, item, supplier, quantity] =
            [number, item, supply_warehouse, quantity].map(Param::Int);
        let (amount, info) = (amount.param(link.dialect), Param::Text(&answer.dist_info));
        let insert = [o, d, w, number, item, supplier, quantity, amount, info];
        link.queue(Sql::InsertLine, &insert)?;
    }
    link.land(&mut Discard).await?;
    link.check_stored("A line of an order")
}

/// Customers of one district with the same last name: 3 on average, and rarely over 50.
const NAMESAKES: usize = 256;

/// The numbers of the customers with a last name.
#[derive(Debug)]
pub(crate) struct Namesakes(Vec<i64>);

impl Namesakes {
    pub(crate) fn new() -> Self {
        Namesakes(Vec::with_capacity(NAMESAKES))
    }

    /// The one in the middle, rounded up (clauses 2.5.2.2 and 2.6.2.2).
    fn middle(&self) -> Result<i64, DbError> {
        let at = self.0.len().div_ceil(2).checked_sub(1);
        at.map(|at| self.0[at]).ok_or_else(|| not_loaded("A customer's last name"))
    }
}

impl Rows for Namesakes {
    fn row<R: AnswerRow>(&mut self, row: &R) {
        self.0.extend(row.int(0));
    }
}

/// Finds out a customer's number; a name costs a statement.
pub(crate) async fn customer_number<S: Session>(
    link: &mut Link<'_, S>,
    (warehouse, district): (i64, i64),
    who: &CustomerKey,
    names: &mut Namesakes,
) -> Result<i64, DbError> {
    let name = match who {
        CustomerKey::Id(id) => return Ok(*id),
        CustomerKey::Name(_, name) => name,
    };
    names.0.clear();
    let params = [Param::Int(warehouse), Param::Int(district), Param::Text(name.get())];
    link.send(Sql::CustomersByName, &params, names).await?;
    names.middle()
}

/// Place of c_credit in the customer's answer.
const CREDIT: usize = 10;

const DATA_BYTES: usize = 500;

#[derive(Debug, Default)]
struct PaymentRows {
    /// District, then warehouse.
    names: [Short<10>; 2],
    addresses: usize,
    has_customer: bool,
    is_bad: bool,
    data: Short<DATA_BYTES>,
}

impl Rows for PaymentRows {
    fn row<R: AnswerRow>(&mut self, row: &R) {
        match row.columns() {
            6 => {
                if let Some(name) = self.names.get_mut(self.addresses) {
                    name.set(row.bytes(0).unwrap_or_default());
                }
                self.addresses += 1;
            }
            14 => {
                self.has_customer = true;
                self.is_bad = row.bytes(CREDIT) == Some(b"BC");
            }
            1 => self.data.set(row.bytes(0).unwrap_or_default()),
            _ => {}
        }
    }
}

/// Executes a Payment (clause 2.5).
pub(crate) async fn payment<S: Session>(
    link: &mut Link<'_, S>,
    input: &PaymentInput,
    names: &mut Namesakes,
) -> Result<Outcome, DbError> {
    let mut rows = PaymentRows::default();
    let amount = Decimal::cents(input.cents);
    let paid = amount.param(link.dialect);
    let [w, d] = [input.warehouse, input.district].map(Param::Int);
    link.begin(Sql::Begin).await?;
    link.send(Sql::PayDistrict, &[paid, w, d], &mut rows).await?;
    link.send(Sql::District, &[w, d], &mut rows).await?;
    link.send(Sql::PayWarehouse, &[paid, w], &mut rows).await?;
    link.send(Sql::Warehouse, &[w], &mut rows).await?;
    let home = (input.customer_warehouse, input.customer_district);
    let id = customer_number(link, home, &input.who, names).await?;
    let customer = [home.0, home.1, id].map(Param::Int);
    link.send(Sql::LockCustomer, &customer, &mut rows).await?;
    if rows.addresses != 2 || !rows.has_customer {
        return Err(not_loaded("The warehouse, district or customer of a payment"));
    }
    // By name, several customers answer or one: only the others have to hit.
    link.check_hits("The warehouse or district of a payment")?;
    let [c_w, c_d, c_id] = customer;
    if rows.is_bad {
        link.send(Sql::CustomerData, &customer, &mut rows).await?;
        let data = bad_credit_data(input, id, &rows.data);
        let update = [paid, paid, Param::Text(data.get()), c_w, c_d, c_id];
        link.send(Sql::PayBadCustomer, &update, &mut rows).await?;
    } else {
        link.send(Sql::PayCustomer, &[paid, paid, c_w, c_d, c_id], &mut rows).await?;
    }
    link.check_hits("The customer of a payment")?;
    let entered = input.entered.text();
    let data = history_data(&rows);
    let history = [c_id, c_d, c_w, d, w, Param::Text(&entered), paid, Param::Text(data.get())];
    link.send(Sql::InsertHistory, &history, &mut rows).await?;
    link.check_stored("The row of a payment in history")?;
    let payment = LedgerPayment {
        warehouse: input.customer_warehouse as u32,
        district: input.customer_district as u32,
        customer: id as u32,
        cents: input.cents as u32,
    };
    let entry = Entry {
        warehouse: input.warehouse as u32,
        district: input.district as u32,
        work: LedgerWork::Payment(payment),
    };
    link.commit(&entry).await?;
    Ok(Outcome::Committed)
}

/// Warehouse and district, with four spaces between them (clause 2.5.2.2).
fn history_data(rows: &PaymentRows) -> Short<24> {
    let [district, warehouse] = &rows.names;
    let mut data = Short::default();
    for part in [warehouse.get(), b"    ", district.get()] {
        data.push(part);
    }
    data
}

/// The payment in front of what was there, cut at 500 letters (clause 2.5.2.2).
fn bad_credit_data(
    input: &PaymentInput,
    customer: i64,
    before: &Short<DATA_BYTES>,
) -> Short<DATA_BYTES> {
    let mut data = Short::default();
    let PaymentInput { warehouse, district, customer_warehouse, customer_district, .. } = *input;
    let numbers = [customer, customer_district, customer_warehouse, district, warehouse];
    for number in numbers {
        data.push_int(number);
        data.push(b" ");
    }
    data.push_cents(input.cents);
    data.push(b" ");
    data.push(before.get());
    data
}

/// Most searches for an order after another session took it first. Under repeatable reads
/// the same order would be seen for ever.
const LOOKS_MAX: u32 = 8;

/// An answer of a single number.
struct Number {
    dialect: Dialect,
    is_sum: bool,
    value: Option<i64>,
}

impl Rows for Number {
    fn row<R: AnswerRow>(&mut self, row: &R) {
        self.value = if self.is_sum { read_scaled(row, 0, 2, self.dialect) } else { row.int(0) };
    }
}

/// Asks for a number; `None` without a row.
async fn query_number<S: Session>(
    link: &mut Link<'_, S>,
    sql: Sql,
    key: &[Param<'_>],
) -> Result<Option<i64>, DbError> {
    let is_sum = sql == Sql::SumOfLines;
    let mut number = Number { dialect: link.dialect, is_sum, value: None };
    link.send(sql, key, &mut number).await?;
    Ok(number.value)
}

/// Makes one attempt. Returns the number of districts without an order.
pub(crate) async fn delivery<S: Session>(
    link: &mut Link<'_, S>,
    input: &DeliveryInput,
) -> Result<u32, DbError> {
    link.begin(Sql::Begin).await?;
    let mut orders = 0;
    for district in 1..=i64::from(DISTRICTS) {
        if let Some(order) = take_oldest(link, input.warehouse, district).await? {
            deliver(link, input, district, order).await?;
            orders += 1;
        }
    }
    let work = LedgerWork::Delivery(u64::from(orders));
    link.commit(&Entry { warehouse: input.warehouse as u32, district: 1, work }).await?;
    Ok(DISTRICTS - orders)
}

/// Finds the oldest undelivered order of a district and takes it out of the queue.
async fn take_oldest<S: Session>(
    link: &mut Link<'_, S>,
    warehouse: i64,
    district: i64,
) -> Result<Option<i64>, DbError> {
    let [w, d] = [warehouse, district].map(Param::Int);
    for _ in 0..LOOKS_MAX {
        let oldest = query_number(link, Sql::OldestNewOrder, &[w, d]).await?;
        let Some(order) = oldest else {
            link.mark();
            return Ok(None);
        };
        let deleted =
            link.send(Sql::DeleteNewOrder, &[w, d, Param::Int(order)], &mut Discard).await?;
        link.mark();
        if deleted.affected > 0 {
            return Ok(Some(order));
        }
    }
    Err(taken_by_others())
}

#[cold]
fn taken_by_others() -> DbError {
    DbError::conflict("Delivery sees only an order that another session has delivered.")
}

/// Everything that delivers an order that was taken.
async fn deliver<S: Session>(
    link: &mut Link<'_, S>,
    input: &DeliveryInput,
    district: i64,
    order: i64,
) -> Result<(), DbError> {
    let key = [input.warehouse, district, order].map(Param::Int);
    let [w, d, o] = key;
    let entered = input.entered.text();
    link.send(Sql::SetCarrier, &[Param::Int(input.carrier), w, d, o], &mut Discard).await?;
    let customer = query_number(link, Sql::CustomerOfOrder, &key).await?.unwrap_or(0);
    link.send(Sql::DeliverLines, &[Param::Text(&entered), w, d, o], &mut Discard).await?;
    let cents = query_number(link, Sql::SumOfLines, &key).await?.unwrap_or(0);
    link.check_hits("An order of a delivery, or a line of it,")?;
    let sum = Decimal::cents(cents);
    let credit = [sum.param(link.dialect), w, d, Param::Int(customer)];
    link.send(Sql::CreditCustomer, &credit, &mut Discard).await?;
    link.check_hits("The customer of a delivery")
}

#[derive(Debug, Default)]
struct StatusRows {
    has_customer: bool,
    order: Option<i64>,
    lines: usize,
}

impl Rows for StatusRows {
    fn row<R: AnswerRow>(&mut self, row: &R) {
        match row.columns() {
            4 => self.has_customer = true,
            3 => self.order = row.int(0),
            5 => self.lines += 1,
            _ => {}
        }
    }
}

/// Makes one attempt at an Order-Status; `end` is COMMIT or ROLLBACK.
pub(crate) async fn order_status<S: Session>(
    link: &mut Link<'_, S>,
    input: &OrderStatusInput,
    names: &mut Namesakes,
    end: Sql,
) -> Result<Outcome, DbError> {
    let mut rows = StatusRows::default();
    let place = (input.warehouse, input.district);
    link.begin(Sql::BeginReadOnly).await?;
    let id = customer_number(link, place, &input.who, names).await?;
    let [w, d, c] = [place.0, place.1, id].map(Param::Int);
    link.send(Sql::CustomerStatus, &[w, d, c], &mut rows).await?;
    link.send(Sql::LastOrder, &[w, d, c, w, d, c], &mut rows).await?;
    // Each customer has an order from the load on.
    let (true, Some(order)) = (rows.has_customer, rows.order) else {
        return Err(not_loaded("A customer or its last order"));
    };
    link.send(Sql::LinesOfOrder, &[w, d, Param::Int(order)], &mut rows).await?;
    link.end(end).await?;
    if rows.lines == 0 {
        return Err(not_loaded("A line of an order"));
    }
    Ok(Outcome::Committed)
}

/// Makes one attempt at a Stock-Level; `end` is COMMIT or ROLLBACK.
pub(crate) async fn stock_level<S: Session>(
    link: &mut Link<'_, S>,
    input: &StockLevelInput,
    end: Sql,
) -> Result<Outcome, DbError> {
    let [w, d] = [input.warehouse, input.district].map(Param::Int);
    link.begin(Sql::BeginReadOnly).await?;
    let count = query_number(link, Sql::LowStock, &[w, Param::Int(input.threshold), w, d]).await?;
    link.end(end).await?;
    count.map(|_| Outcome::Committed).ok_or_else(|| not_loaded("The stock of a warehouse"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::values::Timestamp;

    #[test]
    fn stock_is_refilled_before_it_falls_below_ten() {
        for (stock, ordered, left) in [(100, 10, 90), (20, 10, 10), (19, 10, 100), (10, 1, 100)] {
            assert_eq!(quantity_left(stock, ordered), left);
        }
        for stock in 10..=100 {
            for ordered in 1..=10 {
                assert!((10..=100).contains(&quantity_left(stock, ordered)));
            }
        }
    }

    #[test]
    fn the_middle_is_rounded_up() {
        for (ids, middle) in
            [(vec![7], 7), (vec![7, 8], 7), (vec![7, 8, 9], 8), (vec![7, 8, 9, 10], 8)]
        {
            assert_eq!(Namesakes(ids).middle().unwrap(), middle);
        }
        assert!(Namesakes(Vec::new()).middle().is_err());
    }

    #[test]
    fn bad_credit_is_noted_in_front_and_cut() {
        let input = PaymentInput {
            warehouse: 3,
            district: 4,
            customer_warehouse: 5,
            customer_district: 6,
            who: CustomerKey::Id(7),
            cents: 123_456,
            entered: Timestamp(0),
        };
        let mut before = Short::default();
        before.set(&[b'x'; 500]);
        let data = bad_credit_data(&input, 7, &before);
        assert!(data.get().starts_with(b"7 6 5 4 3 1234.56 xxx"));
        assert_eq!(data.get().len(), 500);
    }
}
