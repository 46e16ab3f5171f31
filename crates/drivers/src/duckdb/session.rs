//! One connection to a DuckDB file and its prepared statements.

use super::row::{Bound, DuckdbRow, Names};
use super::{CAPABILITIES, Instance, bulk, translate};
use crate::queue::{
    Queue, Queued, calls_of_queue, check_parameters, check_placeholders, no_statement,
};
use duckdb::Connection;
use dyno_core::{
    BulkReport, Capabilities, DbResult, Dialect, Executed, Interrupter, Param, ParamType, Product,
    RowSource, Rows, Session, Statement, StatementTable,
};
use std::sync::Arc;

type Statements<'connection> = StatementTable<duckdb::Statement<'connection>>;

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
    /// Read from successful commands, as DuckDB doesn't report it.
    is_in_transaction: bool,
    /// Keeps the file open as long as this session. Dropped last.
    _instance: Arc<Instance>,
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
            handle: Handle::new(connection, |_| StatementTable::default()),
            product: Product { name: "DuckDB".to_owned(), version },
            queue: Queue::default(),
            is_in_transaction: false,
            _instance: instance,
        }
    }

    fn run<'a, R: Rows>(
        &mut self,
        what: Queued<'_>,
        params: impl ExactSizeIterator<Item = Param<'a>>,
        rows: &mut R,
    ) -> DbResult<Executed> {
        let done = self.handle.with_dependent_mut(|connection, statements| match what {
            Queued::Prepared(statement) => match statements.get_mut(statement) {
                Some(prepared) => execute(prepared, params, rows),
                None => Err(no_statement(statement)),
            },
            Queued::Once(sql) => {
                execute(&mut connection.prepare(sql).map_err(translate)?, params, rows)
            }
        })?;
        if let Queued::Once(sql) = what {
            self.follow(sql);
        }
        Ok(done)
    }

    /// The last of several commands counts.
    fn follow(&mut self, sql: &str) {
        for command in sql.split(';') {
            let word = command.split_whitespace().next().unwrap_or_default();
            match word.to_ascii_uppercase().as_str() {
                "BEGIN" | "START" => self.is_in_transaction = true,
                "COMMIT" | "END" | "ROLLBACK" | "ABORT" => self.is_in_transaction = false,
                _ => {}
            }
        }
    }
}

fn execute<'a, R: Rows>(
    statement: &mut duckdb::Statement<'_>,
    params: impl ExactSizeIterator<Item = Param<'a>>,
    rows: &mut R,
) -> DbResult<Executed> {
    check_parameters(statement.parameter_count(), params.len())?;
    for (index, param) in params.enumerate() {
        statement.raw_bind_parameter(index + 1, Bound(param)).map_err(translate)?;
    }
    step(statement, rows).map_err(translate)
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
                rows.row(&DuckdbRow { row, columns });
            }
        }
    }
    if R::DESCRIBED {
        rows.done(done);
    }
    Ok(done)
}

/// True for the only column of DuckDB's answers without a result set.
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

    async fn prepare(&mut self, sql: &str, params: &[ParamType]) -> DbResult<Statement> {
        self.handle.with_dependent_mut(|connection, statements| {
            let statement = connection.prepare(sql).map_err(translate)?;
            check_placeholders(statement.parameter_count(), params.len(), sql)?;
            Ok(statements.add(statement))
        })
    }

    async fn forget(&mut self, statement: Statement) -> DbResult<()> {
        self.handle.with_dependent_mut(|_, statements| drop(statements.remove(statement)));
        Ok(())
    }

    /// Delivers rows and counts of the last of several statements: the binding executes the others silently.
    async fn query<R: Rows>(&mut self, sql: &str, rows: &mut R) -> DbResult<Executed> {
        self.run(Queued::Once(sql), std::iter::empty(), rows)
    }

    fn is_in_transaction(&self) -> bool {
        self.is_in_transaction
    }

    fn queue(&mut self, statement: Statement, params: &[Param<'_>]) -> DbResult<()> {
        self.queue.push(statement, params);
        Ok(())
    }

    async fn rollback(&mut self) -> DbResult<()> {
        self.queue.clear();
        if !std::mem::take(&mut self.is_in_transaction) {
            return Ok(());
        }
        self.handle.borrow_owner().execute_batch("ROLLBACK").map_err(translate)
    }

    async fn bulk_load(
        &mut self,
        table: &str,
        columns: &[&str],
        rows: &mut dyn RowSource,
    ) -> DbResult<BulkReport> {
        let connection = self.handle.borrow_owner();
        if self.is_in_transaction {
            return bulk::load(connection, table, columns, rows);
        }
        // The appender commits whenever its buffer is full, unless a transaction is open.
        let command = |sql: &str| connection.execute_batch(sql).map_err(translate);
        command("BEGIN")?;
        let loaded = bulk::load(connection, table, columns, rows);
        if loaded.is_ok() {
            command("COMMIT")?;
        } else {
            // The first error counts.
            let _ = command("ROLLBACK");
        }
        loaded
    }

    fn interrupter(&self) -> Option<Interrupter> {
        let handle = self.handle.borrow_owner().interrupt_handle();
        Some(Box::new(move || handle.interrupt()))
    }

    calls_of_queue!();
}
