//! Stock-Level (clause 2.8).

use super::inputs::StockLevelInput;
use super::link::{Link, not_loaded};
use super::statements::Sql;
use dyno_core::{AnswerRow, DbError, Outcome, Param, Rows, Session};

#[derive(Debug, Default)]
struct Count(Option<i64>);

impl Rows for Count {
    fn row<R: AnswerRow>(&mut self, row: &R) {
        self.0 = row.int(0);
    }
}

/// Makes one attempt; `end` is COMMIT or ROLLBACK.
pub(crate) async fn run<S: Session>(
    link: &mut Link<'_, S>,
    input: &StockLevelInput,
    end: Sql,
) -> Result<Outcome, DbError> {
    let mut count = Count::default();
    let [w, d] = [input.warehouse, input.district].map(Param::Int);
    link.begin(Sql::BeginReadOnly).await?;
    link.send(Sql::LowStock, &[w, Param::Int(input.threshold), w, d], &mut count).await?;
    link.end(end, &mut count).await?;
    count.0.map(|_| Outcome::Committed).ok_or_else(|| not_loaded("The stock of a warehouse"))
}
