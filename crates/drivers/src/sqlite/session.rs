//! One connection to a SQLite file and its prepared statements.

use super::row::{Bound, Names, SqliteRow};
use super::{bulk, translate};
use crate::queue::{Queue, Queued, check_parameters, check_placeholders, no_statement};
use dyno_core::{
    BulkReport, DbError, Dialect, Executed, Interrupter, Param, ParamType, Product, RowSource,
    Rows, Session, Statement,
};
use rusqlite::fallible_iterator::FallibleIterator;
use rusqlite::{Batch, Connection};

type Statements<'connection> = Vec<Prepared<'connection>>;

self_cell::self_cell!(
    /// A connection and the statements that borrow it. rusqlite's own statement cache would do
    /// without this, but allocates on every use.
    struct Handle {
        owner: Connection,
        #[covariant]
        dependent: Statements,
    }
);

/// A prepared statement, and its counts, which cost a call each to ask for.
struct Prepared<'connection> {
    statement: rusqlite::Statement<'connection>,
    columns: usize,
    parameters: usize,
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
            handle: Handle::new(connection, |_| Vec::new()),
            product: Product { name: "SQLite".to_owned(), version: rusqlite::version().to_owned() },
            queue: Queue::default(),
        }
    }
}

fn run<'a, R: Rows>(
    handle: &mut Handle,
    statement: Statement,
    params: impl ExactSizeIterator<Item = Param<'a>>,
    rows: &mut R,
) -> Result<Executed, DbError> {
    handle.with_dependent_mut(|connection, statements| {
        let Some(prepared) = statements.get_mut(statement.0 as usize) else {
            return Err(no_statement(statement));
        };
        bind(&mut prepared.statement, prepared.parameters, params)?;
        step(connection, &mut prepared.statement, prepared.columns, rows)
            .map_err(|error| translate(&error))
    })
}

fn run_once<'a, R: Rows>(
    connection: &Connection,
    sql: &str,
    params: impl ExactSizeIterator<Item = Param<'a>>,
    rows: &mut R,
) -> Result<Executed, DbError> {
    let mut statement = connection.prepare(sql).map_err(|error| translate(&error))?;
    let (columns, parameters) = (statement.column_count(), statement.parameter_count());
    bind(&mut statement, parameters, params)?;
    step(connection, &mut statement, columns, rows).map_err(|error| translate(&error))
}

fn bind<'a>(
    statement: &mut rusqlite::Statement<'_>,
    parameters: usize,
    params: impl ExactSizeIterator<Item = Param<'a>>,
) -> Result<(), DbError> {
    check_parameters(parameters, params.len())?;
    for (index, param) in params.enumerate() {
        statement.raw_bind_parameter(index + 1, Bound(param)).map_err(|error| translate(&error))?;
    }
    Ok(())
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
            rows.row(&SqliteRow::new(row, columns));
        }
    }
    // `changes` alone would be an earlier statement's after one that changes nothing.
    if connection.total_changes() != changes_before {
        done.affected = connection.changes();
    }
    if R::DESCRIBED {
        rows.done(done);
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

    async fn prepare(&mut self, sql: &str, params: &[ParamType]) -> Result<Statement, DbError> {
        self.handle.with_dependent_mut(|connection, statements| {
            let statement = connection.prepare(sql).map_err(|error| translate(&error))?;
            let (columns, parameters) = (statement.column_count(), statement.parameter_count());
            check_placeholders(parameters, params.len(), sql)?;
            statements.push(Prepared { statement, columns, parameters });
            Ok(Statement((statements.len() - 1) as u32))
        })
    }

    async fn execute<R: Rows>(
        &mut self,
        statement: Statement,
        params: &[Param<'_>],
        rows: &mut R,
    ) -> Result<Executed, DbError> {
        run(&mut self.handle, statement, params.iter().copied(), rows)
    }

    async fn query<R: Rows>(&mut self, sql: &str, rows: &mut R) -> Result<Executed, DbError> {
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
        run().map_err(|error| translate(&error))?;
        Ok(total)
    }

    async fn execute_once<R: Rows>(
        &mut self,
        sql: &str,
        params: &[Param<'_>],
        rows: &mut R,
    ) -> Result<Executed, DbError> {
        run_once(self.handle.borrow_owner(), sql, params.iter().copied(), rows)
    }

    fn is_in_transaction(&self) -> bool {
        !self.handle.borrow_owner().is_autocommit()
    }

    fn queue_once(&mut self, sql: &str, params: &[Param<'_>]) -> Result<(), DbError> {
        self.queue.push_once(sql, params);
        Ok(())
    }

    fn queue(&mut self, statement: Statement, params: &[Param<'_>]) -> Result<(), DbError> {
        self.queue.push(statement, params);
        Ok(())
    }

    async fn flush<R: Rows>(
        &mut self,
        rows: &mut R,
        results: &mut Vec<Result<Executed, DbError>>,
    ) -> Result<(), DbError> {
        for (queued, params) in self.queue.iter() {
            results.push(match queued {
                Queued::Prepared(statement) => run(&mut self.handle, statement, params, rows),
                Queued::Once(sql) => run_once(self.handle.borrow_owner(), sql, params, rows),
            });
        }
        self.queue.clear();
        Ok(())
    }

    async fn rollback(&mut self) -> Result<(), DbError> {
        self.queue.clear();
        let connection = self.handle.borrow_owner();
        // SQLite itself has rolled back after some errors; a second time would be one more.
        if connection.is_autocommit() {
            return Ok(());
        }
        connection.execute_batch("ROLLBACK").map_err(|error| translate(&error))
    }

    async fn bulk_load<R: RowSource>(
        &mut self,
        table: &str,
        columns: &[&str],
        rows: &mut R,
    ) -> Result<BulkReport, DbError> {
        bulk::load(self.handle.borrow_owner(), table, columns, rows)
    }

    fn interrupter(&self) -> Option<Interrupter> {
        let handle = self.handle.borrow_owner().get_interrupt_handle();
        Some(Box::new(move || handle.interrupt()))
    }

    async fn close(self) {}
}
