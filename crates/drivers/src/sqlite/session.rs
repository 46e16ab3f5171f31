//! One connection to a SQLite file and its prepared statements.

use super::row::{Bound, Names, SqliteRow};
use super::{bulk, translate};
use crate::calls_of_queue;
use crate::queue::{Queue, Queued, check_parameters, check_placeholders, no_statement};
use dyno_core::{
    BulkReport, DbResult, Dialect, Executed, Interrupter, Param, ParamType, Product, RowSource,
    Rows, Session, Statement, StatementTable,
};
use rusqlite::fallible_iterator::FallibleIterator;
use rusqlite::{Batch, Connection};

type Statements<'connection> = StatementTable<Prepared<'connection>>;

self_cell::self_cell!(
    /// A connection and its statements. rusqlite's own statement cache allocates on every use.
    struct Handle {
        owner: Connection,
        #[covariant]
        dependent: Statements,
    }
);

/// A prepared statement, and its counts, each of which would cost a call.
struct Prepared<'connection> {
    statement: rusqlite::Statement<'connection>,
    columns: usize,
    parameters: usize,
}

impl<'connection> Prepared<'connection> {
    fn new(connection: &'connection Connection, sql: &str) -> DbResult<Self> {
        let statement = connection.prepare(sql).map_err(translate)?;
        let (columns, parameters) = (statement.column_count(), statement.parameter_count());
        Ok(Prepared { statement, columns, parameters })
    }

    fn run<'a, R: Rows>(
        &mut self,
        connection: &Connection,
        params: impl ExactSizeIterator<Item = Param<'a>>,
        rows: &mut R,
    ) -> DbResult<Executed> {
        check_parameters(self.parameters, params.len())?;
        for (index, param) in params.enumerate() {
            self.statement.raw_bind_parameter(index + 1, Bound(param)).map_err(translate)?;
        }
        step(connection, &mut self.statement, self.columns, rows).map_err(translate)
    }
}

pub struct SqliteSession {
    handle: Handle,
    product: Product,
    queue: Queue,
}

impl std::fmt::Debug for SqliteSession {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SqliteSession").field("product", &self.product).finish_non_exhaustive()
    }
}

impl SqliteSession {
    pub(super) fn new(connection: Connection) -> Self {
        SqliteSession {
            handle: Handle::new(connection, |_| StatementTable::default()),
            product: Product { name: "SQLite".to_owned(), version: rusqlite::version().to_owned() },
            queue: Queue::default(),
        }
    }

    fn run<'a, R: Rows>(
        &mut self,
        what: Queued<'_>,
        params: impl ExactSizeIterator<Item = Param<'a>>,
        rows: &mut R,
    ) -> DbResult<Executed> {
        self.handle.with_dependent_mut(|connection, statements| match what {
            Queued::Prepared(statement) => match statements.get_mut(statement) {
                Some(prepared) => prepared.run(connection, params, rows),
                None => Err(no_statement(statement)),
            },
            Queued::Once(sql) => Prepared::new(connection, sql)?.run(connection, params, rows),
        })
    }
}

fn step<R: Rows>(
    connection: &Connection,
    statement: &mut rusqlite::Statement<'_>,
    columns: usize,
    rows: &mut R,
) -> rusqlite::Result<Executed> {
    let mut done = Executed { has_rows: columns > 0, rows: 0, affected: 0 };
    let changes_before = connection.total_changes();
    if R::DESCRIBED && done.has_rows {
        rows.columns(&Names(statement));
    }
    let mut answer = statement.raw_query();
    while let Some(row) = answer.next()? {
        done.rows += 1;
        if R::WANTED {
            rows.row(&SqliteRow { row, columns });
        }
    }
    // `changes` alone would be that of an earlier statement.
    if connection.total_changes() != changes_before {
        done.affected = connection.changes();
    }
    if R::DESCRIBED {
        rows.finish_statement(done);
    }
    Ok(done)
}

impl Session for SqliteSession {
    fn dialect(&self) -> Dialect {
        Dialect::Sqlite
    }

    fn product(&self) -> &Product {
        &self.product
    }

    async fn prepare(&mut self, sql: &str, params: &[ParamType]) -> DbResult<Statement> {
        self.handle.with_dependent_mut(|connection, statements| {
            let prepared = Prepared::new(connection, sql)?;
            check_placeholders(prepared.parameters, params.len(), sql)?;
            Ok(statements.add(prepared))
        })
    }

    async fn forget(&mut self, statement: Statement) -> DbResult<()> {
        self.handle.with_dependent_mut(|_, statements| drop(statements.remove(statement)));
        Ok(())
    }

    async fn query<R: Rows>(&mut self, sql: &str, rows: &mut R) -> DbResult<Executed> {
        let connection = self.handle.borrow_owner();
        let mut total = Executed::default();
        let mut batch = Batch::new(connection, sql);
        let mut run = || -> rusqlite::Result<()> {
            while let Some(mut statement) = batch.next()? {
                let columns = statement.column_count();
                let done = step(connection, &mut statement, columns, rows)?;
                total.has_rows |= done.has_rows;
                total.rows += done.rows;
                total.affected += done.affected;
            }
            Ok(())
        };
        run().map_err(translate)?;
        Ok(total)
    }

    fn is_in_transaction(&self) -> bool {
        !self.handle.borrow_owner().is_autocommit()
    }

    fn queue(&mut self, statement: Statement, params: &[Param<'_>]) -> DbResult<()> {
        self.queue.push(statement, params);
        Ok(())
    }

    async fn rollback(&mut self) -> DbResult<()> {
        self.queue.clear();
        let connection = self.handle.borrow_owner();
        // SQLite has rolled back after some errors; a second time would be an error.
        if connection.is_autocommit() {
            return Ok(());
        }
        connection.execute_batch("ROLLBACK").map_err(translate)
    }

    async fn bulk_load(
        &mut self,
        table: &str,
        columns: &[&str],
        rows: &mut dyn RowSource,
    ) -> DbResult<BulkReport> {
        bulk::load(self.handle.borrow_owner(), table, columns, rows)
    }

    fn interrupter(&self) -> Option<Interrupter> {
        let handle = self.handle.borrow_owner().get_interrupt_handle();
        Some(Box::new(move || handle.interrupt()))
    }

    calls_of_queue!();
}
