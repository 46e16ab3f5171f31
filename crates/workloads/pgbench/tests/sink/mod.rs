//! A database that isn't there: what remains is the workload's own cost.

use dyno_core::{
    AnswerRow, BulkReport, ColumnNames, DbError, Dialect, Executed, Param, ParamType, Product,
    RowSource, Rows, Session, Statement,
};

/// A session that answers at once, with one row where somebody wants it.
pub(crate) struct Sink {
    dialect: Dialect,
    queued: usize,
}

struct OneRow;

impl AnswerRow for OneRow {
    fn columns(&self) -> usize {
        2
    }
    fn is_null(&self, _column: usize) -> bool {
        false
    }
    fn int(&self, _column: usize) -> Option<i64> {
        Some(17)
    }
    fn double(&self, _column: usize) -> Option<f64> {
        Some(17.0)
    }
    fn bytes(&self, column: usize) -> Option<&[u8]> {
        (column == 0).then_some(b"some text")
    }
    fn string(&self, _column: usize) -> Option<String> {
        None
    }
}

impl ColumnNames for OneRow {
    fn count(&self) -> usize {
        2
    }
    fn name(&self, column: usize) -> &str {
        ["first", "second"][column]
    }
}

impl Sink {
    pub(crate) fn new(dialect: Dialect) -> Self {
        Sink { dialect, queued: 0 }
    }

    fn answer<R: Rows>(&self, rows: &mut R) -> Executed {
        let executed = Executed { has_rows: true, rows: 1, affected: 0 };
        if R::DESCRIBED {
            rows.columns(&OneRow);
        }
        if R::WANTED {
            rows.row(&OneRow);
        }
        if R::DESCRIBED {
            rows.finish_statement(executed);
        }
        executed
    }
}

impl Session for Sink {
    fn dialect(&self) -> Dialect {
        self.dialect
    }
    fn product(&self) -> &Product {
        unreachable!("scripts don't ask for the product")
    }
    async fn prepare(&mut self, _sql: &str, _params: &[ParamType]) -> Result<Statement, DbError> {
        Ok(Statement(0))
    }
    async fn execute<R: Rows>(
        &mut self,
        _statement: Statement,
        _params: &[Param<'_>],
        rows: &mut R,
    ) -> Result<Executed, DbError> {
        Ok(self.answer(rows))
    }
    async fn query<R: Rows>(&mut self, _sql: &str, rows: &mut R) -> Result<Executed, DbError> {
        Ok(self.answer(rows))
    }
    async fn execute_once<R: Rows>(
        &mut self,
        _sql: impl AsRef<[u8]>,
        _params: &[Param<'_>],
        rows: &mut R,
    ) -> Result<Executed, DbError> {
        Ok(self.answer(rows))
    }
    fn queue_once(&mut self, _sql: impl AsRef<[u8]>, _params: &[Param<'_>]) -> Result<(), DbError> {
        self.queued += 1;
        Ok(())
    }
    fn queue(&mut self, _statement: Statement, _params: &[Param<'_>]) -> Result<(), DbError> {
        self.queued += 1;
        Ok(())
    }
    async fn flush<R: Rows>(
        &mut self,
        rows: &mut R,
        results: &mut Vec<Result<Executed, DbError>>,
    ) -> Result<(), DbError> {
        for _ in 0..std::mem::take(&mut self.queued) {
            results.push(Ok(self.answer(rows)));
        }
        Ok(())
    }
    async fn rollback(&mut self) -> Result<(), DbError> {
        Ok(())
    }
    async fn bulk_load(
        &mut self,
        _table: &str,
        _columns: &[&str],
        _rows: &mut dyn RowSource,
    ) -> Result<BulkReport, DbError> {
        unreachable!("scripts don't load")
    }
    async fn close(self) {}
}
