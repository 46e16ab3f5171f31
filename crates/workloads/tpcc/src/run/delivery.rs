//! Delivery (clause 2.7): the oldest order of each of ten districts, in one transaction.

use super::inputs::DeliveryInput;
use super::link::{FlightMode, Link};
use super::statements::Sql;
use crate::DISTRICTS;
use crate::ledger::{Entry, LedgerWork};
use crate::text::{Decimal, read_scaled};
use dyno_core::{AnswerRow, DbError, Dialect, Outcome, Param, Rows, Session};

/// How often an order that another session took first is looked for anew. Under repeatable reads
/// the same order would be seen for ever.
const LOOKS_MAX: u32 = 8;

const COUNT: usize = DISTRICTS as usize;

/// A short list without allocation.
#[derive(Clone, Copy)]
struct List<T> {
    items: [T; COUNT],
    length: usize,
}

impl<T: Copy + Default> List<T> {
    fn new() -> Self {
        List { items: [T::default(); COUNT], length: 0 }
    }

    fn push(&mut self, item: T) {
        self.items[self.length] = item;
        self.length += 1;
    }

    fn get(&self) -> &[T] {
        &self.items[..self.length]
    }
}

/// An order that this transaction delivers.
#[derive(Clone, Copy, Default)]
struct DeliveredOrder {
    district: i64,
    order: i64,
}

/// The answers: single numbers in the order of their statements.
struct DeliveryRows {
    dialect: Dialect,
    /// Every second number is a sum of money.
    has_sums: bool,
    numbers: [i64; 2 * COUNT],
    count: usize,
}

impl DeliveryRows {
    fn begin(&mut self, has_sums: bool) {
        self.has_sums = has_sums;
        self.count = 0;
    }
}

impl Rows for DeliveryRows {
    fn row<R: AnswerRow>(&mut self, row: &R) {
        let is_sum = self.has_sums && self.count % 2 == 1;
        let number = if is_sum { read_scaled(row, 0, 2, self.dialect) } else { row.int(0) };
        if let Some(slot) = self.numbers.get_mut(self.count) {
            *slot = number.unwrap_or(0);
        }
        self.count += 1;
    }
}

/// Makes one attempt. `delivered` gets the order delivered in each district; 0 where there was none.
pub(crate) async fn run<S: Session>(
    link: &mut Link<'_, S>,
    input: &DeliveryInput,
    delivered: &mut [i64; COUNT],
) -> Result<Outcome, DbError> {
    let mut rows =
        DeliveryRows { dialect: link.dialect, has_sums: false, numbers: [0; 2 * COUNT], count: 0 };
    link.begin(Sql::Begin).await?;
    // One district after another, or all of them in each flight.
    let at_once = match link.mode {
        FlightMode::Statement => 1,
        FlightMode::Pipelined => COUNT,
    };
    *delivered = [0; COUNT];
    let mut orders = 0;
    for first in (1..=COUNT).step_by(at_once) {
        let mut districts = List::new();
        (first..first + at_once).for_each(|district| districts.push(district as i64));
        let taken = take_oldest(link, input, districts, &mut rows).await?;
        book(link, input, taken.get(), &mut rows).await?;
        orders += taken.length as u64;
        taken.get().iter().for_each(|one| delivered[one.district as usize - 1] = one.order);
    }
    let entry = Entry {
        warehouse: input.warehouse as u32,
        district: 1,
        work: LedgerWork::Delivery(orders),
    };
    link.commit(&entry, &mut rows).await?;
    link.check_hits("The customer of a delivery")?;
    Ok(Outcome::Committed)
}

/// Finds the oldest undelivered order of each district and takes it out of the queue.
async fn take_oldest<S: Session>(
    link: &mut Link<'_, S>,
    input: &DeliveryInput,
    districts: List<i64>,
    rows: &mut DeliveryRows,
) -> Result<List<DeliveredOrder>, DbError> {
    let w = Param::Int(input.warehouse);
    let mut taken = List::new();
    let mut to_do = districts;
    for _ in 0..LOOKS_MAX {
        link.mark();
        rows.begin(false);
        for &district in to_do.get() {
            link.send(Sql::OldestNewOrder, &[w, Param::Int(district)], rows).await?;
        }
        link.land(rows).await?;
        let mut found = List::new();
        let mut numbers = rows.numbers.iter();
        for (&district, done) in to_do.get().iter().zip(&link.flight.done) {
            if done.rows > 0
                && let Some(&order) = numbers.next()
            {
                found.push(DeliveredOrder { district, order });
            }
        }
        link.mark();
        for &DeliveredOrder { district, order } in found.get() {
            let key = [w, Param::Int(district), Param::Int(order)];
            link.send(Sql::DeleteNewOrder, &key, rows).await?;
        }
        link.land(rows).await?;
        to_do = List::new();
        for (&one, done) in found.get().iter().zip(&link.flight.done) {
            if done.affected > 0 { taken.push(one) } else { to_do.push(one.district) }
        }
        if to_do.length == 0 {
            link.mark();
            return Ok(taken);
        }
    }
    Err(taken_by_others())
}

#[cold]
fn taken_by_others() -> DbError {
    DbError::conflict("Delivery sees only an order that another session has delivered.")
}

/// Everything that delivers the orders that were taken.
async fn book<S: Session>(
    link: &mut Link<'_, S>,
    input: &DeliveryInput,
    taken: &[DeliveredOrder],
    rows: &mut DeliveryRows,
) -> Result<(), DbError> {
    let w = Param::Int(input.warehouse);
    let entered = input.entered.text();
    rows.begin(true);
    for &DeliveredOrder { district, order } in taken {
        let [d, o] = [district, order].map(Param::Int);
        link.send(Sql::SetCarrier, &[Param::Int(input.carrier), w, d, o], rows).await?;
        link.send(Sql::CustomerOfOrder, &[w, d, o], rows).await?;
        link.send(Sql::DeliverLines, &[Param::Text(&entered), w, d, o], rows).await?;
        link.send(Sql::SumOfLines, &[w, d, o], rows).await?;
    }
    link.land(rows).await?;
    link.check_hits("An order of a delivery, or a line of it,")?;
    let (answers, dialect) = (rows.numbers, link.dialect);
    for (one, answer) in taken.iter().zip(answers.chunks(2)) {
        let &[customer, cents] = answer else { continue };
        let sum = Decimal::cents(cents);
        let [d, c] = [one.district, customer].map(Param::Int);
        link.send(Sql::CreditCustomer, &[sum.param(dialect), w, d, c], rows).await?;
    }
    match link.mode {
        FlightMode::Statement => link.check_hits("The customer of a delivery"),
        // Travels with the commit.
        FlightMode::Pipelined => Ok(()),
    }
}
