//! A database that isn't there: what remains is the workload's own cost.

use dyno_core::{
    BulkMethod, BulkReport, DbError, Dialect, Driver, Executed, LONGEST_INT, Param, ParamType,
    Product, RowSource, RowWriter, Rows, Session, Statement, write_int,
};

/// A session that answers every statement at once with one changed row, takes every loaded row as
/// text, as COPY and LOAD DATA want it, and forgets it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sink(pub(crate) Dialect);

impl Driver for Sink {
    type Session = Sink;

    async fn connect(&self, _number: u32) -> Result<Sink, DbError> {
        Ok(*self)
    }

    fn dialect(&self) -> Dialect {
        self.0
    }
}

/// Text lines in a buffer that is emptied when it is full.
struct Lines {
    bytes: Vec<u8>,
    total: usize,
}

impl RowWriter for Lines {
    fn int(&mut self, value: i64) {
        let mut text = [0; LONGEST_INT];
        let at = write_int(&mut text, value);
        self.bytes.extend_from_slice(&text[at..]);
        self.bytes.push(b'\t');
    }
    fn double(&mut self, _value: f64) {}
    fn text(&mut self, value: &[u8]) {
        self.bytes.extend_from_slice(value);
        self.bytes.push(b'\t');
    }
    fn null(&mut self) {}
}

impl Session for Sink {
    fn dialect(&self) -> Dialect {
        self.0
    }

    fn product(&self) -> &Product {
        unreachable!("the loader does not ask for the product")
    }

    async fn prepare(&mut self, _sql: &str, _params: &[ParamType]) -> Result<Statement, DbError> {
        Ok(Statement(0))
    }

    async fn execute<R: Rows>(
        &mut self,
        _statement: Statement,
        _params: &[Param<'_>],
        _rows: &mut R,
    ) -> Result<Executed, DbError> {
        Ok(Executed { has_rows: false, rows: 0, affected: 1 })
    }

    async fn query<R: Rows>(&mut self, _sql: &str, _rows: &mut R) -> Result<Executed, DbError> {
        Ok(Executed { has_rows: false, rows: 0, affected: 1 })
    }

    fn queue(&mut self, _statement: Statement, _params: &[Param<'_>]) -> Result<(), DbError> {
        Ok(())
    }

    async fn flush<R: Rows>(
        &mut self,
        _rows: &mut R,
        _results: &mut Vec<Result<Executed, DbError>>,
    ) -> Result<(), DbError> {
        Ok(())
    }

    async fn rollback(&mut self) -> Result<(), DbError> {
        Ok(())
    }

    async fn bulk_load(
        &mut self,
        _table: &str,
        _columns: &[&str],
        rows: &mut dyn RowSource,
    ) -> Result<BulkReport, DbError> {
        let mut lines = Lines { bytes: Vec::with_capacity(65_536), total: 0 };
        let mut count = 0;
        while rows.next_row(&mut lines) {
            count += 1;
            if lines.bytes.len() > 60_000 {
                lines.total += std::hint::black_box(&lines.bytes).len();
                lines.bytes.clear();
            }
        }
        Ok(BulkReport { rows: count, method: BulkMethod::LoadData, fallback: None })
    }

    async fn close(self) {}
}
