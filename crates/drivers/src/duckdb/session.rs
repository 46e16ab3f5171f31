//! One connection to a DuckDB file and its prepared statements.

use super::row::{Bound, DuckdbRow, Names};
use super::{CAPABILITIES, Instance, bulk, translate};
use crate::queue::{Queue, Queued, check_parameters, check_placeholders, no_statement};
use duckdb::Connection;
use dyno_core::{
    BulkReport, Capabilities, DbError, Dialect, Executed, Interrupter, Param, ParamType, Product,
    RowSource, Rows, Session, Statement,
};
use std::sync::Arc;

type Statements<'connection> = Vec<duckdb::Statement<'connection>>;

self_cell::self_cell!(
    /// A connection and the statements that borrow it.
    struct Handle {
        owner: Connection,
        #[covariant]
        dependent: Statements,
    }
);

pub struct DuckdbSession {
    handle: Handle,
    product: Product,
    queue: Queue,
    transaction: Transaction,
    /// Keeps the file open, and known as open, as long as this session lives. Dropped last.
    _instance: Arc<Instance>,
}

/// Whether an explicit transaction is open. DuckDB doesn't tell, so it is read from the commands
/// that went well.
#[derive(Clone, Copy, Debug, Default)]
struct Transaction {
    is_open: bool,
}

impl Transaction {
    /// Of a text with several commands, the last one counts.
    fn follow(&mut self, sql: &str) {
        for command in sql.split(';') {
            let word = command.split_whitespace().next().unwrap_or_default();
            match word.to_ascii_uppercase().as_str() {
                "BEGIN" | "START" => self.is_open = true,
                "COMMIT" | "END" | "ROLLBACK" | "ABORT" => self.is_open = false,
                _ => {}
            }
        }
    }
}

impl std::fmt::Debug for DuckdbSession {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DuckdbSession").field("product", &self.product).finish_non_exhaustive()
    }
}

impl DuckdbSession {
    pub(super) fn new(connection: Connection, instance: Arc<Instance>, version: String) -> Self {
        let version = version.trim_start_matches('v').to_owned();
        DuckdbSession {
            handle: Handle::new(connection, |_| Vec::new()),
            product: Product { name: "DuckDB".to_owned(), version },
            queue: Queue::default(),
            transaction: Transaction::default(),
            _instance: instance,
        }
    }

    fn run_once<'a, R: Rows>(
        &mut self,
        sql: &str,
        params: impl ExactSizeIterator<Item = Param<'a>>,
        rows: &mut R,
    ) -> Result<Executed, DbError> {
        let done = run_once(self.handle.borrow_owner(), sql, params, rows)?;
        self.transaction.follow(sql);
        Ok(done)
    }
}

fn run<'a, R: Rows>(
    handle: &mut Handle,
    statement: Statement,
    params: impl ExactSizeIterator<Item = Param<'a>>,
    rows: &mut R,
) -> Result<Executed, DbError> {
    handle.with_dependent_mut(|_, statements| {
        let Some(prepared) = statements.get_mut(statement.0 as usize) else {
            return Err(no_statement(statement));
        };
        execute(prepared, params, rows)
    })
}

fn run_once<'a, R: Rows>(
    connection: &Connection,
    sql: &str,
    params: impl ExactSizeIterator<Item = Param<'a>>,
    rows: &mut R,
) -> Result<Executed, DbError> {
    let mut statement = connection.prepare(sql).map_err(|error| translate(&error))?;
    execute(&mut statement, params, rows)
}

fn execute<'a, R: Rows>(
    statement: &mut duckdb::Statement<'_>,
    params: impl ExactSizeIterator<Item = Param<'a>>,
    rows: &mut R,
) -> Result<Executed, DbError> {
    check_parameters(statement.parameter_count(), params.len())?;
    for (index, param) in params.enumerate() {
        statement.raw_bind_parameter(index + 1, Bound(param)).map_err(|error| translate(&error))?;
    }
    step(statement, rows).map_err(|error| translate(&error))
}

/// Runs a statement whose parameters are bound.
fn step<R: Rows>(statement: &mut duckdb::Statement<'_>, rows: &mut R) -> duckdb::Result<Executed> {
    let affected = statement.raw_execute()? as u64;
    let columns = statement.column_count();
    let mut done = Executed { has_rows: columns > 0 && !is_report(statement), rows: 0, affected };
    if done.has_rows {
        if R::DESCRIBED {
            rows.columns(&Names(statement));
        }
        let mut answer = statement.raw_query();
        while let Some(row) = answer.next()? {
            done.rows += 1;
            if R::WANTED {
                rows.row(&DuckdbRow::new(row, columns));
            }
        }
    }
    if R::DESCRIBED {
        rows.done(done);
    }
    Ok(done)
}

/// True for the one column with which DuckDB answers statements that have no result set.
fn is_report(statement: &duckdb::Statement<'_>) -> bool {
    statement.column_count() == 1
        && statement.column_name(0).is_ok_and(|name| name == "Count" || name == "Success")
}

impl Session for DuckdbSession {
    fn dialect(&self) -> Dialect {
        Dialect::Postgres
    }

    fn product(&self) -> &Product {
        &self.product
    }

    fn capabilities(&self) -> &'static Capabilities {
        &CAPABILITIES
    }

    async fn prepare(&mut self, sql: &str, params: &[ParamType]) -> Result<Statement, DbError> {
        self.handle.with_dependent_mut(|connection, statements| {
            let statement = connection.prepare(sql).map_err(|error| translate(&error))?;
            check_placeholders(statement.parameter_count(), params.len(), sql)?;
            statements.push(statement);
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

    /// Of several statements, only the last one's rows and counts are delivered: the binding
    /// executes the others without telling.
    async fn query<R: Rows>(&mut self, sql: &str, rows: &mut R) -> Result<Executed, DbError> {
        self.run_once(sql, std::iter::empty(), rows)
    }

    async fn execute_once<R: Rows>(
        &mut self,
        sql: &str,
        params: &[Param<'_>],
        rows: &mut R,
    ) -> Result<Executed, DbError> {
        self.run_once(sql, params.iter().copied(), rows)
    }

    fn is_in_transaction(&self) -> bool {
        self.transaction.is_open
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
                Queued::Once(sql) => {
                    let done = run_once(self.handle.borrow_owner(), sql, params, rows);
                    if done.is_ok() {
                        self.transaction.follow(sql);
                    }
                    done
                }
            });
        }
        self.queue.clear();
        Ok(())
    }

    async fn rollback(&mut self) -> Result<(), DbError> {
        self.queue.clear();
        if !std::mem::take(&mut self.transaction).is_open {
            return Ok(());
        }
        self.handle.borrow_owner().execute_batch("ROLLBACK").map_err(|error| translate(&error))
    }

    async fn bulk_load<R: RowSource>(
        &mut self,
        table: &str,
        columns: &[&str],
        rows: &mut R,
    ) -> Result<BulkReport, DbError> {
        let connection = self.handle.borrow_owner();
        if self.transaction.is_open {
            return bulk::load(connection, table, columns, rows);
        }
        // The appender commits whenever its buffer is full, unless a transaction is open.
        let command = |sql: &str| connection.execute_batch(sql).map_err(|error| translate(&error));
        command("BEGIN")?;
        let loaded = bulk::load(connection, table, columns, rows);
        if loaded.is_ok() {
            command("COMMIT")?;
        } else {
            // The first error is the one to report.
            let _ = command("ROLLBACK");
        }
        loaded
    }

    fn interrupter(&self) -> Option<Interrupter> {
        let handle = self.handle.borrow_owner().interrupt_handle();
        Some(Box::new(move || handle.interrupt()))
    }

    async fn close(self) {}
}
