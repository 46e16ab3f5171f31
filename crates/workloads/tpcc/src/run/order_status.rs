//! Order-Status (clause 2.6).

use super::inputs::OrderStatusInput;
use super::link::{Link, not_loaded};
use super::payment::{Namesakes, customer_number};
use super::statements::Sql;
use dyno_core::{AnswerRow, DbError, Discard, Outcome, Param, Rows, Session};

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

/// Makes one attempt; `end` is COMMIT or ROLLBACK.
pub(crate) async fn run<S: Session>(
    link: &mut Link<'_, S>,
    input: &OrderStatusInput,
    names: &mut Namesakes,
    end: Sql,
) -> Result<Outcome, DbError> {
    let mut rows = StatusRows::default();
    let place = (input.warehouse, input.district);
    link.begin(Sql::BeginReadOnly).await?;
    let id = customer_number(link, place, &input.who, names, &mut Discard).await?;
    let [w, d, c] = [place.0, place.1, id].map(Param::Int);
    link.send(Sql::CustomerStatus, &[w, d, c], &mut rows).await?;
    link.send(Sql::LastOrder, &[w, d, c, w, d, c], &mut rows).await?;
    link.land(&mut rows).await?;
    // Each customer has an order from the load on.
    let (true, Some(order)) = (rows.has_customer, rows.order) else {
        return Err(not_loaded("A customer or its last order"));
    };
    link.send(Sql::LinesOfOrder, &[w, d, Param::Int(order)], &mut rows).await?;
    link.end(end, &mut rows).await?;
    if rows.lines == 0 {
        return Err(not_loaded("A line of an order"));
    }
    Ok(Outcome::Committed)
}
