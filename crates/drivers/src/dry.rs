//! A driver that sends nothing: each statement is made, and has succeeded without an answer. It measures what the load
//! costs without I/O.

use dyno_core::{
    DbResult, Dialect, Driver, Executed, FlightAnswers, Param, ParamType, Product, Rows, Session,
    Statement,
};

#[derive(Clone, Copy, Debug)]
pub struct DryDriver {
    pub dialect: Dialect,
    /// Set for workloads that wait for nothing else: each session then has a loop, as no other would run on it.
    pub blocks: bool,
}

#[derive(Debug)]
pub struct DrySession {
    dialect: Dialect,
    product: Product,
    prepared: u32,
    queued: usize,
}

impl Driver for DryDriver {
    type Session = DrySession;

    async fn connect(&self, _number: u32) -> DbResult<DrySession> {
        let product = Product { name: "none".to_owned(), version: "dry run".to_owned() };
        Ok(DrySession { dialect: self.dialect, product, prepared: 0, queued: 0 })
    }

    fn dialect(&self) -> Dialect {
        self.dialect
    }

    fn blocks(&self) -> bool {
        self.blocks
    }
}

impl Session for DrySession {
    fn dialect(&self) -> Dialect {
        self.dialect
    }

    fn product(&self) -> &Product {
        &self.product
    }

    async fn prepare(&mut self, _sql: &str, _params: &[ParamType]) -> DbResult<Statement> {
        self.prepared += 1;
        Ok(Statement(self.prepared - 1))
    }

    #[inline]
    async fn execute<R: Rows>(
        &mut self,
        _statement: Statement,
        _params: &[Param<'_>],
        _rows: &mut R,
    ) -> DbResult<Executed> {
        Ok(Executed::default())
    }

    #[inline]
    async fn query<R: Rows>(&mut self, _sql: &str, _rows: &mut R) -> DbResult<Executed> {
        Ok(Executed::default())
    }

    #[inline]
    fn queue(&mut self, _statement: Statement, _params: &[Param<'_>]) -> DbResult<()> {
        self.queued += 1;
        Ok(())
    }

    async fn flush<R: Rows>(&mut self, _rows: &mut R, results: &mut FlightAnswers) -> DbResult<()> {
        results.extend((0..std::mem::take(&mut self.queued)).map(|_| Ok(Executed::default())));
        Ok(())
    }

    async fn rollback(&mut self) -> DbResult<()> {
        self.queued = 0;
        Ok(())
    }
}
