//! Payment (clause 2.5), and how a customer is found by last name.

use super::link::{Link, not_loaded};
use super::statements::Sql;
use super::terminal::PaymentInput;
use crate::ledger::{Entry, LedgerPayment, LedgerWork};
use crate::profile::CustomerKey;
use crate::text::{Decimal, Short};
use dyno_core::{AnswerRow, DbError, Outcome, Param, Rows, Session};

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

/// Columns of the answers.
const ADDRESS_COLUMNS: usize = 6;
const CUSTOMER_COLUMNS: usize = 14;
const DATA_COLUMNS: usize = 1;
/// Where c_credit stands in the customer's answer.
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
            ADDRESS_COLUMNS => {
                if let Some(name) = self.names.get_mut(self.addresses) {
                    name.set(row.bytes(0).unwrap_or_default());
                }
                self.addresses += 1;
            }
            CUSTOMER_COLUMNS => {
                self.has_customer = true;
                self.is_bad = row.bytes(CREDIT) == Some(b"BC");
            }
            DATA_COLUMNS => self.data.set(row.bytes(0).unwrap_or_default()),
            _ => {}
        }
    }
}

pub(crate) async fn run<S: Session>(
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
    let entered = input.entered.text();
    let data = history_data(&rows);
    let history = [c_id, c_d, c_w, d, w, Param::Text(&entered), paid, Param::Text(data.get())];
    link.send(Sql::InsertHistory, &history, &mut rows).await?;
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
    link.check_hits("The customer of a payment")?;
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
    let numbers = [
        customer,
        input.customer_district,
        input.customer_warehouse,
        input.district,
        input.warehouse,
    ];
    for number in numbers {
        data.push_int(number);
        data.push(b" ");
    }
    data.push_cents(input.cents);
    data.push(b" ");
    data.push(before.get());
    data
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::Timestamp;

    #[test]
    fn the_middle_is_rounded_up() {
        let middle = |ids: &[i64]| Namesakes(ids.to_vec()).middle().unwrap();
        assert_eq!(middle(&[7]), 7);
        assert_eq!(middle(&[7, 8]), 7);
        assert_eq!(middle(&[7, 8, 9]), 8);
        assert_eq!(middle(&[7, 8, 9, 10]), 8);
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
