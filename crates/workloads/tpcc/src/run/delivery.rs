//! Delivery (clause 2.7): the oldest order of each of ten districts, in one transaction.

use super::link::Link;
use super::statements::Sql;
use super::terminal::DeliveryInput;
use crate::DISTRICTS;
use crate::ledger::{Entry, LedgerWork};
use crate::text::{Decimal, read_scaled};
use dyno_core::{AnswerRow, DbError, Dialect, Discard, Outcome, Param, Rows, Session};

/// How often an order that another session took first is looked for anew. Under repeatable reads
/// the same order would be seen for ever.
const LOOKS_MAX: u32 = 8;

/// An answer of a single number.
struct Number {
    dialect: Dialect,
    /// It is a sum of money.
    is_sum: bool,
    value: Option<i64>,
}

impl Rows for Number {
    fn row<R: AnswerRow>(&mut self, row: &R) {
        self.value = match self.is_sum {
            true => read_scaled(row, 0, 2, self.dialect),
            false => row.int(0),
        };
    }
}

/// Asks for a number; `None` without a row.
async fn ask<S: Session>(
    link: &mut Link<'_, S>,
    sql: Sql,
    key: &[Param<'_>],
) -> Result<Option<i64>, DbError> {
    let is_sum = sql == Sql::SumOfLines;
    let mut number = Number { dialect: link.dialect, is_sum, value: None };
    link.send(sql, key, &mut number).await?;
    Ok(number.value)
}

/// Makes one attempt. `delivered` gets the order delivered in each district; 0 where there was none.
pub(crate) async fn run<S: Session>(
    link: &mut Link<'_, S>,
    input: &DeliveryInput,
    delivered: &mut [i64; DISTRICTS as usize],
) -> Result<Outcome, DbError> {
    link.begin(Sql::Begin).await?;
    *delivered = [0; DISTRICTS as usize];
    let mut orders = 0;
    for (district, delivered) in (1..).zip(delivered.iter_mut()) {
        if let Some(order) = take_oldest(link, input.warehouse, district).await? {
            deliver(link, input, district, order).await?;
            *delivered = order;
            orders += 1;
        }
    }
    let work = LedgerWork::Delivery(orders);
    let entry = Entry { warehouse: input.warehouse as u32, district: 1, work };
    link.commit(&entry).await?;
    Ok(Outcome::Committed)
}

/// Finds the oldest undelivered order of a district and takes it out of the queue.
async fn take_oldest<S: Session>(
    link: &mut Link<'_, S>,
    warehouse: i64,
    district: i64,
) -> Result<Option<i64>, DbError> {
    let [w, d] = [warehouse, district].map(Param::Int);
    for _ in 0..LOOKS_MAX {
        let oldest = ask(link, Sql::OldestNewOrder, &[w, d]).await?;
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
    let customer = ask(link, Sql::CustomerOfOrder, &key).await?.unwrap_or(0);
    link.send(Sql::DeliverLines, &[Param::Text(&entered), w, d, o], &mut Discard).await?;
    let cents = ask(link, Sql::SumOfLines, &key).await?.unwrap_or(0);
    link.check_hits("An order of a delivery, or a line of it,")?;
    let sum = Decimal::cents(cents);
    let credit = [sum.param(link.dialect), w, d, Param::Int(customer)];
    link.send(Sql::CreditCustomer, &credit, &mut Discard).await?;
    link.check_hits("The customer of a delivery")
}
