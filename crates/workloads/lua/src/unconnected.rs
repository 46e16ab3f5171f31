//! What the engine drives a script on: sessions that are connected to nothing. A script opens its connections itself,
//! where it needs any.

use dyno_core::{
    BulkReport, DbError, DbResult, Dialect, Driver, Executed, FlightAnswers, Param, ParamType,
    Product, RowSource, Rows, Session, Statement,
};

pub(crate) struct Unconnected {
    dialect: Dialect,
    blocks: bool,
    product: Product,
}

impl Unconnected {
    /// In place of `driver`: with as many loops.
    pub(crate) fn instead_of<D: Driver>(driver: &D) -> Self {
        let product = Product { name: String::new(), version: String::new() };
        Unconnected { dialect: driver.dialect(), blocks: driver.blocks(), product }
    }
}

impl Driver for Unconnected {
    type Session = NoSession;

    async fn connect(&self, _number: u32) -> DbResult<NoSession> {
        Ok(NoSession { dialect: self.dialect, product: self.product.clone() })
    }

    fn dialect(&self) -> Dialect {
        self.dialect
    }

    fn blocks(&self) -> bool {
        self.blocks
    }
}

pub(crate) struct NoSession {
    dialect: Dialect,
    product: Product,
}

#[cold]
fn unconnected() -> DbError {
    DbError::workload("the session of a script's worker is connected to nothing")
}

impl Session for NoSession {
    fn dialect(&self) -> Dialect {
        self.dialect
    }

    fn product(&self) -> &Product {
        &self.product
    }

    async fn prepare(&mut self, _sql: &str, _params: &[ParamType]) -> DbResult<Statement> {
        Err(unconnected())
    }

    async fn execute<R: Rows>(
        &mut self,
        _statement: Statement,
        _params: &[Param<'_>],
        _rows: &mut R,
    ) -> DbResult<Executed> {
        Err(unconnected())
    }

    async fn query<R: Rows>(&mut self, _sql: &str, _rows: &mut R) -> DbResult<Executed> {
        Err(unconnected())
    }

    fn queue(&mut self, _statement: Statement, _params: &[Param<'_>]) -> DbResult<()> {
        Err(unconnected())
    }

    async fn flush<R: Rows>(
        &mut self,
        _rows: &mut R,
        _results: &mut FlightAnswers,
    ) -> DbResult<()> {
        Err(unconnected())
    }

    async fn rollback(&mut self) -> DbResult<()> {
        Ok(())
    }

    async fn bulk_load(
        &mut self,
        _table: &str,
        _columns: &[&str],
        _rows: &mut dyn RowSource,
    ) -> DbResult<BulkReport> {
        Err(unconnected())
    }

    async fn close(self) {}
}
