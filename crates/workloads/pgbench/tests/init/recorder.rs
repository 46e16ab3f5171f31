//! A session that keeps what it receives.

use dyno_core::{
    BulkMethod, BulkReport, Capabilities, DbError, Dialect, Driver, Executed, Param, ParamType,
    Product, RowSource, RowWriter, Rows, Session, Statement,
};
use std::sync::{Arc, Mutex};

/// A PostgreSQL that isn't there: keeps the statements and swallows rows.
#[derive(Clone)]
pub(crate) struct Recorder {
    version: &'static str,
    pub(crate) log: Arc<Mutex<Vec<String>>>,
}

impl Recorder {
    pub(crate) fn new(version: &'static str) -> Self {
        Recorder { version, log: Arc::default() }
    }
}

impl Driver for Recorder {
    type Session = RecordingSession;

    async fn connect(&self, _number: u32) -> Result<RecordingSession, DbError> {
        let product = Product { name: "PostgreSQL".into(), version: self.version.into() };
        Ok(RecordingSession { log: self.log.clone(), product })
    }

    fn dialect(&self) -> Dialect {
        Dialect::Postgres
    }
}

pub(crate) struct RecordingSession {
    log: Arc<Mutex<Vec<String>>>,
    product: Product,
}

/// Takes rows and forgets them.
struct NullWriter;

impl RowWriter for NullWriter {
    fn int(&mut self, _value: i64) {}
    fn double(&mut self, _value: f64) {}
    fn text(&mut self, _value: &[u8]) {}
    fn null(&mut self) {}
}

impl Session for RecordingSession {
    fn dialect(&self) -> Dialect {
        Dialect::Postgres
    }

    fn product(&self) -> &Product {
        &self.product
    }

    /// Has no settings that a load could ask for.
    fn capabilities(&self) -> &'static Capabilities {
        const BARE: Capabilities = Capabilities { server_views: false, ..Capabilities::POSTGRES };
        &BARE
    }

    async fn prepare(&mut self, _sql: &str, _params: &[ParamType]) -> Result<Statement, DbError> {
        unreachable!("an initialization prepares nothing")
    }

    async fn execute<R: Rows>(
        &mut self,
        _statement: Statement,
        _params: &[Param<'_>],
        _rows: &mut R,
    ) -> Result<Executed, DbError> {
        unreachable!("an initialization prepares nothing")
    }

    async fn query<R: Rows>(&mut self, sql: &str, _rows: &mut R) -> Result<Executed, DbError> {
        self.log.lock().unwrap().push(sql.to_owned());
        Ok(Executed::default())
    }

    fn queue(&mut self, _statement: Statement, _params: &[Param<'_>]) -> Result<(), DbError> {
        unreachable!("an initialization prepares nothing")
    }

    async fn flush<R: Rows>(
        &mut self,
        _rows: &mut R,
        _results: &mut Vec<Result<Executed, DbError>>,
    ) -> Result<(), DbError> {
        unreachable!("an initialization prepares nothing")
    }

    async fn rollback(&mut self) -> Result<(), DbError> {
        Ok(())
    }

    async fn bulk_load(
        &mut self,
        table: &str,
        columns: &[&str],
        rows: &mut dyn RowSource,
    ) -> Result<BulkReport, DbError> {
        let sql = format!("COPY {table} ({}) FROM STDIN", columns.join(", "));
        let rows = self.copy_in(&sql, rows).await?;
        Ok(BulkReport { rows, method: BulkMethod::Copy, fallback: None })
    }

    async fn copy_in(&mut self, sql: &str, rows: &mut dyn RowSource) -> Result<u64, DbError> {
        self.log.lock().unwrap().push(sql.to_owned());
        let mut count = 0;
        while rows.next_row(&mut NullWriter) {
            count += 1;
        }
        Ok(count)
    }

    async fn close(self) {}
}
