//! New-Order (clause 2.4).

use super::link::{Link, not_loaded};
use super::statements::Sql;
use super::terminal::{LINES_MAX, LineInput, NewOrderInput};
use crate::ledger::{Entry, LedgerOrder, LedgerWork};
use crate::text::{Decimal, read_scaled};
use dyno_core::{AnswerRow, DbError, Dialect, Discard, Outcome, Param, Rows, Session};

/// Columns of the answers, by which they are told apart.
const DISTRICT_COLUMNS: usize = 2;
const CUSTOMER_COLUMNS: usize = 4;
const ITEM_COLUMNS: usize = 3;
const STOCK_COLUMNS: usize = 12;
/// The first s_dist_xx in the row of stock.
const FIRST_DIST: usize = 2;

#[derive(Clone, Copy, Debug, Default)]
struct LineAnswer {
    price_cents: i64,
    stock_quantity: i64,
    dist_info: [u8; 24],
    /// Both the item's and the stock's data hold `ORIGINAL` (clause 2.4.2.2).
    is_brand: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct NewOrderRows {
    dialect: Dialect,
    dist_column: usize,
    district: Option<(i64, i64)>,
    customer: Option<(i64, i64)>,
    items: usize,
    stocks: usize,
    lines: [LineAnswer; LINES_MAX],
}

impl NewOrderRows {
    fn new(dialect: Dialect, district: i64) -> Self {
        NewOrderRows {
            dialect,
            dist_column: FIRST_DIST + district as usize - 1,
            district: None,
            customer: None,
            items: 0,
            stocks: 0,
            lines: [LineAnswer::default(); LINES_MAX],
        }
    }

    fn is_original<R: AnswerRow>(row: &R, column: usize) -> bool {
        row.bytes(column).is_some_and(|data| data.windows(8).any(|part| part == b"ORIGINAL"))
    }
}

impl Rows for NewOrderRows {
    fn row<R: AnswerRow>(&mut self, row: &R) {
        let dialect = self.dialect;
        match row.columns() {
            DISTRICT_COLUMNS => {
                self.district = read_scaled(row, 0, 4, dialect).zip(row.int(1));
            }
            CUSTOMER_COLUMNS => {
                let rates = read_scaled(row, 0, 4, dialect).zip(read_scaled(row, 3, 4, dialect));
                self.customer = rates;
            }
            ITEM_COLUMNS if self.items < LINES_MAX => {
                let line = &mut self.lines[self.items];
                line.price_cents = read_scaled(row, 0, 2, dialect).unwrap_or(0);
                line.is_brand = Self::is_original(row, 2);
                self.items += 1;
            }
            STOCK_COLUMNS if self.stocks < LINES_MAX => {
                let line = &mut self.lines[self.stocks];
                line.stock_quantity = row.int(0).unwrap_or(0);
                line.is_brand &= Self::is_original(row, 1);
                let dist = row.bytes(self.dist_column).unwrap_or_default();
                let length = dist.len().min(line.dist_info.len());
                line.dist_info[..length].copy_from_slice(&dist[..length]);
                self.stocks += 1;
            }
            _ => {}
        }
    }
}

/// What the terminal shows of an order (clause 2.4.3.3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OrderShown {
    pub order: i64,
    /// The total in cents, with discount and taxes.
    pub total_cents: i64,
    pub brand_lines: u32,
}

/// A stock's quantity after an order (clause 2.4.2.2).
fn quantity_left(stock: i64, ordered: i64) -> i64 {
    if stock >= ordered + 10 { stock - ordered } else { stock - ordered + 91 }
}

/// The sum of the lines with the customer's discount and the taxes (clause 2.4.2.2), rounded to
/// cents. Rates are in ten-thousandths.
fn total_cents(lines_cents: i64, discount: i64, taxes: i64) -> i64 {
    const ONE: i64 = 10_000;
    (lines_cents * (ONE - discount) * (ONE + taxes) + ONE * ONE / 2) / (ONE * ONE)
}

pub(crate) async fn run<S: Session>(
    link: &mut Link<'_, S>,
    input: &NewOrderInput,
    shown: &mut OrderShown,
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
        link.check_hits("The stock of an order")?;
        link.end(Sql::Rollback).await?;
        return Ok(Outcome::RolledBack);
    }
    let (mut away, mut count) = ([(0, 0); LINES_MAX], 0);
    for line in valid.iter().filter(|line| line.supply_warehouse != warehouse) {
        away[count] = (line.supply_warehouse as u32, line.item as u32);
        count += 1;
    }
    let order = identity(&rows, input)?;
    let work = LedgerWork::Order { order, away: away[..count].into() };
    let entry = Entry { warehouse: warehouse as u32, district: district as u32, work };
    link.commit(&entry).await?;
    link.check_hits("The stock of an order")?;
    *shown = show(&rows, valid);
    Ok(Outcome::Committed)
}

/// What tells the order from all others, in the ledger.
fn identity(rows: &NewOrderRows, input: &NewOrderInput) -> Result<LedgerOrder, DbError> {
    let (_, number) = district_of(rows)?;
    Ok(LedgerOrder {
        number: number as u32,
        customer: input.customer as u16,
        lines: input.count as u8,
    })
}

/// The district's answer: its tax and the number of the order.
fn district_of(rows: &NewOrderRows) -> Result<(i64, i64), DbError> {
    rows.district.ok_or_else(|| not_loaded("The district of an order"))
}

async fn insert_order<S: Session>(
    link: &mut Link<'_, S>,
    input: &NewOrderInput,
    rows: &NewOrderRows,
) -> Result<(), DbError> {
    let (_, order) = district_of(rows)?;
    if rows.customer.is_none() {
        return Err(not_loaded("The customer of an order"));
    }
    let is_local = |line: &LineInput| line.supply_warehouse == input.warehouse;
    let all_local = input.lines[..input.count].iter().all(is_local);
    let entered = input.entered.text();
    let number = [order, input.district, input.warehouse].map(Param::Int);
    let [o_id, o_d_id, o_w_id] = number;
    let order = [
        o_id,
        o_d_id,
        o_w_id,
        Param::Int(input.customer),
        Param::Text(&entered),
        Param::Int(input.count as i64),
        Param::Int(i64::from(all_local)),
    ];
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
        let stock_key = |line: &LineInput| (line.supply_warehouse, line.item);
        // An item that is ordered twice was read twice before either update.
        let stock = match before {
            Some((same, left)) if stock_key(same) == stock_key(line) => left,
            _ => answer.stock_quantity,
        };
        let left = quantity_left(stock, line.quantity);
        before = Some((line, left));
        let is_remote = i64::from(line.supply_warehouse != input.warehouse);
        let update = [left, line.quantity, is_remote, line.supply_warehouse, line.item];
        link.queue(Sql::UpdateStock, &update.map(Param::Int))?;
    }
    link.land(&mut Discard).await?;
    let (_, order) = district_of(rows)?;
    for (line, answer) in lines.iter().zip(&rows.lines) {
        let amount = Decimal::cents(line.quantity * answer.price_cents);
        let insert = [
            Param::Int(order),
            Param::Int(input.district),
            Param::Int(input.warehouse),
            Param::Int(line.number),
            Param::Int(line.item),
            Param::Int(line.supply_warehouse),
            Param::Int(line.quantity),
            amount.param(link.dialect),
            Param::Text(&answer.dist_info),
        ];
        link.queue(Sql::InsertLine, &insert)?;
    }
    link.land(&mut Discard).await
}

fn show(rows: &NewOrderRows, lines: &[LineInput]) -> OrderShown {
    let (district_tax, order) = rows.district.unwrap_or_default();
    let (discount, warehouse_tax) = rows.customer.unwrap_or_default();
    let answers = &rows.lines[..lines.len()];
    let sum = lines.iter().zip(answers).map(|(line, answer)| line.quantity * answer.price_cents);
    OrderShown {
        order,
        total_cents: total_cents(sum.sum(), discount, district_tax + warehouse_tax),
        brand_lines: answers.iter().filter(|answer| answer.is_brand).count() as u32,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn a_total_has_discount_and_both_taxes() {
        // 1,000.00 less 10 %, plus 20 % and 5 %: 1,125.00.
        assert_eq!(total_cents(100_000, 1_000, 2_500), 112_500);
        assert_eq!(total_cents(1, 0, 0), 1);
        // 15 lines of 10 items for 100.00 do not overflow.
        assert_eq!(total_cents(1_500_000, 0, 4_000), 2_100_000);
    }
}
