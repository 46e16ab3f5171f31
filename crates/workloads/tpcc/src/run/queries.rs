//! The transactions that only read: Order-Status (clause 2.6) and Stock-Level (clause 2.8).

use super::link::{Link, not_loaded};
use super::payment::{Namesakes, customer_number};
use super::statements::Sql;
use super::terminal::{OrderStatusInput, StockLevelInput};
use dyno_core::{AnswerRow, DbError, Outcome, Param, Rows, Session};

/// Columns of the answers.
const CUSTOMER_COLUMNS: usize = 4;
const ORDER_COLUMNS: usize = 3;
const LINE_COLUMNS: usize = 5;

#[derive(Debug, Default)]
struct StatusRows {
    has_customer: bool,
    order: Option<i64>,
    lines: usize,
}

impl Rows for StatusRows {
    fn row<R: AnswerRow>(&mut self, row: &R) {
        match row.columns() {
            CUSTOMER_COLUMNS => self.has_customer = true,
            ORDER_COLUMNS => self.order = row.int(0),
            LINE_COLUMNS => self.lines += 1,
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

#[derive(Debug, Default)]
struct Count(Option<i64>);

impl Rows for Count {
    fn row<R: AnswerRow>(&mut self, row: &R) {
        self.0 = row.int(0);
    }
}

/// Makes one attempt at a Stock-Level; `end` is COMMIT or ROLLBACK.
pub(crate) async fn stock_level<S: Session>(
    link: &mut Link<'_, S>,
    input: &StockLevelInput,
    end: Sql,
) -> Result<Outcome, DbError> {
    let mut count = Count::default();
    let [w, d] = [input.warehouse, input.district].map(Param::Int);
    link.begin(Sql::BeginReadOnly).await?;
    link.send(Sql::LowStock, &[w, Param::Int(input.threshold), w, d], &mut count).await?;
    link.end(end).await?;
    count.0.map(|_| Outcome::Committed).ok_or_else(|| not_loaded("The stock of a warehouse"))
}
