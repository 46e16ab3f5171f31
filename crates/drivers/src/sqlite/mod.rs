//! Embedded SQLite.
//!
//! The file is in WAL mode with `synchronous=NORMAL` unless the URL sets others: commits are atomic and survive a crash
//! of the program, but a power failure may lose the last ones. `synchronous=full` makes each commit durable. Foreign
//! keys are enforced, as in the other dialects. A session waits 5 seconds for a lock, or `busy_timeout_ms`, and blocks
//! its thread meanwhile.
//!
//! SQLite has one writer at a time. A transaction that reads first and writes later fails at once with error 517 when
//! another one has written in between, whatever the time limit. Workloads should therefore open transactions that write
//! with `BEGIN IMMEDIATE` on this dialect; a plain `BEGIN` stays one.

use std::path::{Path, PathBuf};
use std::time::Duration;

use dyno_core::{
    AnswerRow, BulkMethod, BulkReport, ColumnNames, DbError, DbResult, Dialect, Driver, ErrorClass,
    Executed, Interrupter, Param, ParamType, Product, RowSource, Rows, Session, Statement,
    StatementTable,
};
use rusqlite::fallible_iterator::FallibleIterator;
use rusqlite::types::{ToSqlOutput, Value, ValueRef};
use rusqlite::{Batch, Connection, Error, ErrorCode, OpenFlags};

use crate::calls_of_queue;
use crate::queue::{Params, Queue, Queued, check_parameters, check_placeholders, no_statement};
use crate::target::TargetUrl;

#[cfg(test)]
mod tests;

/// Default time limit for a lock.
const BUSY_TIMEOUT_MS: u64 = 5_000;

#[derive(Clone, Debug)]
pub struct SqliteDriver {
    path: PathBuf,
    busy_timeout_ms: u64,
    synchronous: String,
    journal: String,
}

impl SqliteDriver {
    /// Opens the file, creates it if it is missing, and sets its journal mode while it is unused.
    pub fn new(target: &TargetUrl) -> DbResult<Self> {
        let driver = SqliteDriver {
            path: target.database.clone().unwrap_or_default().into(),
            busy_timeout_ms: target.number("busy_timeout_ms").unwrap_or(BUSY_TIMEOUT_MS),
            synchronous: target.option("synchronous").unwrap_or("normal").to_owned(),
            journal: target.option("journal").unwrap_or("wal").to_owned(),
        };
        driver.open()?;
        Ok(driver)
    }

    /// Opens the database and sets its options.
    fn open(&self) -> DbResult<Connection> {
        let to_open_error = |error| opening(&self.path, &error);
        // No URI flag: the path is literal. No mutex: a session stays on one thread.
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
            | OpenFlags::SQLITE_OPEN_CREATE
            | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(&self.path, flags).map_err(to_open_error)?;
        connection
            .busy_timeout(Duration::from_millis(self.busy_timeout_ms))
            .map_err(to_open_error)?;
        let journal: String = connection
            .pragma_update_and_check(None, "journal_mode", &self.journal, |row| row.get(0))
            .map_err(to_open_error)?;
        if journal != self.journal {
            return Err(DbError::rejected(
                0,
                *b"00000",
                format!(
                    "The SQLite file {} keeps journal mode {journal} instead of {}.",
                    self.path.display(),
                    self.journal
                ),
            )
            .with_hint("close other programs that use the file; network file systems refuse WAL"));
        }
        connection.pragma_update(None, "synchronous", &self.synchronous).map_err(to_open_error)?;
        connection.pragma_update(None, "foreign_keys", true).map_err(to_open_error)?;
        Ok(connection)
    }
}

impl Driver for SqliteDriver {
    type Session = SqliteSession;

    async fn connect(&self, _number: u32) -> DbResult<SqliteSession> {
        Ok(SqliteSession::new(self.open()?))
    }

    fn dialect(&self) -> Dialect {
        Dialect::Sqlite
    }

    fn blocks(&self) -> bool {
        true
    }
}

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

    /// Binds the parameters and executes the statement.
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
    fn new(connection: Connection) -> Self {
        SqliteSession {
            handle: Handle::new(connection, |_| StatementTable::default()),
            product: Product { name: "SQLite".to_owned(), version: rusqlite::version().to_owned() },
            queue: Queue::default(),
        }
    }

    /// Executes a statement of the queue or of a call.
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

/// Steps through all rows of a statement.
fn step<R: Rows>(
    connection: &Connection,
    statement: &mut rusqlite::Statement<'_>,
    columns: usize,
    rows: &mut R,
) -> rusqlite::Result<Executed> {
    let mut executed = Executed { has_rows: columns > 0, rows: 0, affected: 0 };
    let changes_before = connection.total_changes();
    if R::DESCRIBED && executed.has_rows {
        rows.columns(&Names(statement));
    }
    let mut answer = statement.raw_query();
    while let Some(row) = answer.next()? {
        executed.rows += 1;
        if R::WANTED {
            rows.row(&SqliteRow { row, columns });
        }
    }
    // `changes` alone would be that of an earlier statement.
    if connection.total_changes() != changes_before {
        executed.affected = connection.changes();
    }
    if R::DESCRIBED {
        rows.finish_statement(executed);
    }
    Ok(executed)
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
        while let Some(mut statement) = batch.next().map_err(translate)? {
            let columns = statement.column_count();
            let executed = step(connection, &mut statement, columns, rows).map_err(translate)?;
            total.has_rows |= executed.has_rows;
            total.rows += executed.rows;
            total.affected += executed.affected;
        }
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
        load_rows(self.handle.borrow_owner(), table, columns, rows)
    }

    fn interrupter(&self) -> Option<Interrupter> {
        let handle = self.handle.borrow_owner().get_interrupt_handle();
        Some(Box::new(move || handle.interrupt()))
    }

    calls_of_queue!();
}

/// Extended code: a transaction that has read can't write after another one has written.
const BUSY_SNAPSHOT: i32 = 517;

/// `errno` is SQLite's extended result code.
#[cold]
fn translate(error: Error) -> DbError {
    let (failure, message) = match error {
        Error::SqliteFailure(failure, message) => (failure, message),
        Error::SqlInputError { error, msg, .. } => (error, Some(msg)),
        other => return DbError::server(ErrorClass::Other, 0, *b"00000", other.to_string()),
    };
    let (class, sqlstate) = match failure.code {
        ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => (ErrorClass::LockTimeout, *b"00000"),
        ErrorCode::ConstraintViolation => (ErrorClass::Constraint, *b"23000"),
        _ => (ErrorClass::Other, *b"00000"),
    };
    let message = message.unwrap_or_else(|| failure.to_string());
    let errno = failure.extended_code.unsigned_abs();
    let error = DbError::server(class, errno, sqlstate, message);
    match (failure.code, failure.extended_code) {
        (_, BUSY_SNAPSHOT) => error.with_hint("transactions that write should BEGIN IMMEDIATE"),
        (ErrorCode::DatabaseBusy, _) => {
            error.with_hint("raise busy_timeout_ms in the URL, or use fewer writers")
        }
        (ErrorCode::DiskFull, _) => error.with_hint("the disk is full"),
        _ => error,
    }
}

/// Explains why a database can't be opened.
#[cold]
fn opening(path: &Path, error: &Error) -> DbError {
    let place = path.display();
    match error.sqlite_error_code() {
        Some(ErrorCode::CannotOpen) => {
            DbError::unreachable(format!("The SQLite file {place} can't be opened: {error}."))
                .with_hint("the folder must exist, and this user must be allowed to write there")
        }
        Some(ErrorCode::NotADatabase) => {
            rejected(format!("The file {place} isn't an SQLite database."), error)
                .with_hint("name another file; a missing one is created")
        }
        Some(ErrorCode::ReadOnly) => {
            rejected(format!("The SQLite file {place} may only be read."), error)
                .with_hint("this user must be allowed to write to the file and its folder")
        }
        _ => rejected(format!("The SQLite file {place} can't be used: {error}."), error),
    }
}

/// A refusal with the error's extended code.
fn rejected(message: String, error: &Error) -> DbError {
    let code = error.sqlite_error().map_or(0, |failure| failure.extended_code.unsigned_abs());
    DbError::rejected(code, *b"00000", message)
}

struct Names<'a, 'c>(&'a rusqlite::Statement<'c>);

impl ColumnNames for Names<'_, '_> {
    fn count(&self) -> usize {
        self.0.column_count()
    }

    fn name(&self, column: usize) -> &str {
        self.0.column_name(column).unwrap_or("")
    }
}

struct SqliteRow<'a, 's> {
    row: &'a rusqlite::Row<'s>,
    columns: usize,
}

impl SqliteRow<'_, '_> {
    /// The value of a column; NULL if the row lacks the column.
    fn value(&self, column: usize) -> ValueRef<'_> {
        self.row.get_ref(column).unwrap_or(ValueRef::Null)
    }

    /// Reads a number from a text; `None` if it isn't one.
    fn parsed<T: std::str::FromStr>(text: &[u8]) -> Option<T> {
        std::str::from_utf8(text).ok()?.trim().parse().ok()
    }
}

/// A parameter that is bound without a copy.
struct Bound<'a>(Param<'a>);

impl rusqlite::ToSql for Bound<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(match self.0 {
            Param::Null => ToSqlOutput::Owned(Value::Null),
            Param::Int(value) => ToSqlOutput::Owned(Value::Integer(value)),
            Param::Double(value) => ToSqlOutput::Owned(Value::Real(value)),
            Param::Text(text) => ToSqlOutput::Borrowed(ValueRef::Text(text)),
        })
    }
}

impl AnswerRow for SqliteRow<'_, '_> {
    fn columns(&self) -> usize {
        self.columns
    }

    fn is_null(&self, column: usize) -> bool {
        self.value(column) == ValueRef::Null
    }

    fn bytes(&self, column: usize) -> Option<&[u8]> {
        match self.value(column) {
            ValueRef::Text(bytes) | ValueRef::Blob(bytes) => Some(bytes),
            _ => None,
        }
    }

    fn int(&self, column: usize) -> Option<i64> {
        match self.value(column) {
            ValueRef::Integer(value) => Some(value),
            ValueRef::Text(text) => Self::parsed(text),
            _ => None,
        }
    }

    fn double(&self, column: usize) -> Option<f64> {
        match self.value(column) {
            ValueRef::Integer(value) => Some(value as f64),
            ValueRef::Real(value) => Some(value),
            ValueRef::Text(text) => Self::parsed(text),
            _ => None,
        }
    }

    fn string(&self, column: usize) -> Option<String> {
        match self.value(column) {
            ValueRef::Null => None,
            ValueRef::Integer(value) => Some(value.to_string()),
            // Debug keeps the point of whole numbers, as SQLite's own shell does: `1.0`.
            ValueRef::Real(value) => Some(format!("{value:?}")),
            ValueRef::Text(bytes) | ValueRef::Blob(bytes) => {
                Some(String::from_utf8_lossy(bytes).into_owned())
            }
        }
    }
}

/// The savepoint that makes a load all or nothing, also inside an open transaction.
const UNIT: &str = "dyno_load";

/// Rows per INSERT. 50 take a quarter less CPU per row than single ones; 10 and 200 save less.
const BATCH_ROWS: usize = 50;
/// SQLite's limit on the parameters of one statement.
const PARAMS_MAX: usize = 32_766;

fn load_rows(
    connection: &Connection,
    table: &str,
    columns: &[&str],
    rows: &mut dyn RowSource,
) -> DbResult<BulkReport> {
    connection.execute_batch(&format!("SAVEPOINT {UNIT}")).map_err(translate)?;
    match insert_all(connection, table, columns, rows) {
        Ok(rows) => {
            connection.execute_batch(&format!("RELEASE {UNIT}")).map_err(translate)?;
            let method = BulkMethod::MultiRowInsert;
            Ok(BulkReport { rows, method, fallback: None })
        }
        Err(error) => {
            // The first error counts; a dead transaction has no savepoint any more.
            let _ = connection.execute_batch(&format!("ROLLBACK TO {UNIT}; RELEASE {UNIT}"));
            Err(translate(error))
        }
    }
}

fn insert_all(
    connection: &Connection,
    table: &str,
    columns: &[&str],
    rows: &mut dyn RowSource,
) -> rusqlite::Result<u64> {
    let width = columns.len();
    let batch_rows = (PARAMS_MAX / width.max(1)).clamp(1, BATCH_ROWS);
    let mut many = connection.prepare(&insert_sql(table, columns, batch_rows))?;
    // The columns of waiting rows, and their number.
    let (mut params, mut waiting) = (Params::default(), 0);
    let mut count = 0;
    while rows.next_row(&mut params) {
        waiting += 1;
        if params.len() != waiting * width {
            let row_width = params.len() - (waiting - 1) * width;
            return Err(rusqlite::Error::InvalidParameterCount(row_width, width));
        }
        if waiting == batch_rows {
            count += execute(&mut many, params.range(0..params.len()))?;
            params.clear();
            waiting = 0;
        }
    }
    let mut single = connection.prepare(&insert_sql(table, columns, 1))?;
    for row in 0..waiting {
        count += execute(&mut single, params.range(row * width..(row + 1) * width))?;
    }
    Ok(count)
}

/// Returns the statement that inserts this number of rows.
fn insert_sql(table: &str, columns: &[&str], rows: usize) -> String {
    let row = format!("({})", vec!["?"; columns.len()].join(", "));
    let rows = vec![row; rows].join(", ");
    format!("INSERT INTO {table} ({}) VALUES {rows}", columns.join(", "))
}

/// Inserts rows of bound parameters; returns their number.
fn execute<'a>(
    insert: &mut rusqlite::Statement<'_>,
    params: impl Iterator<Item = Param<'a>>,
) -> rusqlite::Result<u64> {
    for (index, param) in params.enumerate() {
        insert.raw_bind_parameter(index + 1, Bound(param))?;
    }
    Ok(insert.raw_execute()? as u64)
}
