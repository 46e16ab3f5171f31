//! Protocols, and open connections.

use crate::{
    AdminDriver, Capabilities, DbError, DbResult, Dialect, Nanos, Param, ParamType, Product,
    SECOND, Shards, StatementKind, utf8_statement,
};
use std::future::poll_fn;
use std::task::Poll;

/// Opens sessions to a target. Shared by all loops.
pub trait Driver: Sync {
    type Session: Session;

    /// Opens a session. `number` counts the connections of this run from 0 and picks one of several hosts. Errors name
    /// host and port, never a password.
    fn connect(&self, number: u32) -> impl Future<Output = DbResult<Self::Session>>;

    /// Opens a session instead of a lost one of this number; `attempt` counts from 0. A target with several nodes may
    /// choose another node.
    fn reconnect(
        &self,
        number: u32,
        attempt: u32,
    ) -> impl Future<Output = DbResult<Self::Session>> {
        let _ = attempt;
        self.connect(number)
    }

    /// The dialect that the server speaks.
    fn dialect(&self) -> Dialect;

    /// Abilities of the databases behind this driver; a session knows them more exactly.
    fn capabilities(&self) -> &'static Capabilities {
        self.dialect().capabilities()
    }

    /// Returns true if a session blocks its thread (embedded databases): such sessions get a loop each.
    fn blocks(&self) -> bool {
        false
    }

    /// The place that the first session is opened to, in sentences.
    fn place(&self) -> String {
        "the server".to_owned()
    }

    /// The driver for sessions that load, look and check, which need the node that takes writes.
    fn primary(&self) -> &Self {
        self
    }

    /// This driver for what is not measured.
    fn admin(&self) -> AdminDriver<'_>
    where
        Self: Sized,
    {
        AdminDriver::new(self)
    }

    /// The shards behind its endpoint, each of them with a driver that reaches this one alone; `None` if none are
    /// known.
    fn shards(&self) -> Option<&Shards<Self>>
    where
        Self: Sized,
    {
        None
    }
}

/// A prepared statement: an index into the table of its session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Statement(pub u32);

/// The result of a statement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Executed {
    /// Set if the answer was a result set, even an empty one.
    pub has_rows: bool,
    pub rows: u64,
    /// Rows changed, as the server reports.
    pub affected: u64,
}

/// The results of one flight, in order.
pub type FlightAnswers = Vec<DbResult<Executed>>;

impl Executed {
    /// Kind of the statement, by its result.
    #[inline]
    pub fn kind(self) -> StatementKind {
        if self.has_rows {
            StatementKind::Read
        } else if self.affected > 0 {
            StatementKind::Write
        } else {
            StatementKind::Other
        }
    }
}

/// One row of an answer, still in the session's receive buffer.
pub trait AnswerRow {
    /// Number of columns.
    fn columns(&self) -> usize;
    fn is_null(&self, column: usize) -> bool;
    /// The value as an integer; `None` for NULL and other types.
    fn int(&self, column: usize) -> Option<i64>;
    /// The value as a number; `None` for NULL and other types.
    fn double(&self, column: usize) -> Option<f64>;
    /// The bytes of a text as received; `None` for NULL and for binary numbers.
    fn bytes(&self, column: usize) -> Option<&[u8]>;
    /// The value as text. Allocates: for set-up and checks.
    fn string(&self, column: usize) -> Option<String>;
}

/// The columns of one result set.
pub trait ColumnNames {
    /// Number of columns.
    fn count(&self) -> usize;
    /// The name of a column, from 0; empty if unknown.
    fn name(&self, column: usize) -> &str;
}

/// A driver's note of a column, by which it reads the values later.
pub type KeptColumn = [u8; 4];

/// Reads the first of rows that were kept as they came: hands on the number and the text of each value, `None` for
/// NULL. Returns the bytes of the row; `None` if they aren't such a row.
pub type ReadKeptRow = fn(
    rows: &[u8],
    columns: &[KeptColumn],
    hand_on: &mut dyn FnMut(usize, Option<&[u8]>),
) -> Option<usize>;

/// Receives the rows of an answer.
pub trait Rows {
    /// False when rows need only be counted: drivers then skip their decoding.
    const WANTED: bool = true;
    /// True if drivers have to decode column names and call [`Rows::columns`] and [`Rows::finish_statement`].
    const DESCRIBED: bool = false;
    /// A result set begins, before its first row and even if it has none.
    fn columns<C: ColumnNames>(&mut self, _columns: &C) {}
    /// One statement of the command has succeeded, with or without a result set. A MySQL procedure calls it for each
    /// result set and once more at its end.
    fn finish_statement(&mut self, _executed: Executed) {}
    /// Takes one row; it is valid only during the call.
    fn row<R: AnswerRow>(&mut self, row: &R);
    /// Set if rows are read later or not at all: drivers that can do so call [`Rows::kept_columns`] for each result
    /// set and [`Rows::kept_rows`] instead of [`Rows::row`].
    const KEPT: bool = false;
    fn kept_columns(&mut self, _columns: impl Iterator<Item = KeptColumn>, _read: ReadKeptRow) {}
    /// This many rows, one after the other, in the form that [`ReadKeptRow`] reads.
    fn kept_rows(&mut self, _rows: &[u8], _count: usize) {}
    /// Most bytes that are kept, once there were more: a session to a server then ends with an error. Asked
    /// after each receive.
    #[inline]
    fn overflow(&self) -> Option<usize> {
        None
    }
}

/// Counts rows and drops them.
#[derive(Clone, Copy, Debug, Default)]
pub struct Discard;

impl Rows for Discard {
    const WANTED: bool = false;
    #[inline]
    fn row<R: AnswerRow>(&mut self, _row: &R) {}
}

/// Keeps the first column of the last row, if it is an integer.
impl Rows for Option<i64> {
    #[inline]
    fn row<R: AnswerRow>(&mut self, row: &R) {
        *self = row.int(0);
    }
}

/// Keeps whole answers as text: for set-up, checks and statistics. Nothing is kept of one that is too large.
#[derive(Clone, Debug)]
pub struct AnswerTable {
    /// Rows of columns; `None` is NULL.
    pub rows: Vec<Vec<Option<String>>>,
    /// Size of all rows.
    bytes: usize,
    bytes_max: usize,
    /// Set if a larger answer ends the session.
    is_strict: bool,
}

impl Default for AnswerTable {
    fn default() -> Self {
        AnswerTable::up_to(Self::BYTES_MAX, true)
    }
}

impl Rows for AnswerTable {
    fn row<R: AnswerRow>(&mut self, row: &R) {
        if self.is_cut() {
            return;
        }
        let row: Vec<_> = (0..row.columns()).map(|column| row.string(column)).collect();
        self.bytes += row_heap_bytes(&row);
        self.rows.push(row);
        if self.is_cut() {
            self.rows = Vec::new();
        }
    }

    fn overflow(&self) -> Option<usize> {
        (self.is_cut() && self.is_strict).then_some(self.bytes_max)
    }
}

/// Bytes that a row takes, with what the allocator adds to each piece, and with the room that a growing list reserves.
fn row_heap_bytes(row: &[Option<String>]) -> usize {
    const ALLOCATOR_OVERHEAD: usize = 16;
    const MIN_TEXT_BYTES: usize = 32;
    let capacities = row.iter().flatten().map(String::capacity);
    let text_bytes: usize =
        capacities.map(|bytes| (bytes + ALLOCATOR_OVERHEAD).max(MIN_TEXT_BYTES)).sum();
    text_bytes + size_of_val(row) + ALLOCATOR_OVERHEAD + 2 * size_of::<Vec<Option<String>>>()
}

impl From<Vec<Vec<Option<String>>>> for AnswerTable {
    fn from(rows: Vec<Vec<Option<String>>>) -> Self {
        AnswerTable { rows, ..AnswerTable::default() }
    }
}

impl PartialEq for AnswerTable {
    fn eq(&self, other: &Self) -> bool {
        self.rows == other.rows
    }
}

impl Eq for AnswerTable {}

impl AnswerTable {
    /// Limit of answers to dyno's own questions, which are far smaller; a server that sends more is cut off, not
    /// believed.
    pub const BYTES_MAX: usize = 32 << 20;
    /// Limit of an answer to a workload's own query, as Q11 of TPC-H has at a scale of 300.
    pub const WORKLOAD_BYTES_MAX: usize = 64 << 20;
    /// Limit of a table of dyno's own.
    const OWN_BYTES_MAX: usize = 2 << 30;

    /// For the answer to a workload's own query, which may rightly be too large to be kept: its rows are counted then.
    pub fn for_workload() -> Self {
        AnswerTable::up_to(Self::WORKLOAD_BYTES_MAX, false)
    }

    /// For what dyno itself has written: a load of millions of pieces has noted each of them.
    pub fn for_own_table() -> Self {
        AnswerTable::up_to(Self::OWN_BYTES_MAX, true)
    }

    fn up_to(bytes_max: usize, is_strict: bool) -> Self {
        AnswerTable { rows: Vec::new(), bytes: 0, bytes_max, is_strict }
    }

    /// Returns true if there were more rows than are kept.
    pub fn is_cut(&self) -> bool {
        self.bytes > self.bytes_max
    }

    /// The value in the first row and column; `None` also for NULL.
    pub fn single(&self) -> Option<&str> {
        self.rows.first()?.first()?.as_deref()
    }
}

/// Writes the columns of one row in order.
pub trait RowWriter {
    /// Writes a whole number.
    fn int(&mut self, value: i64);
    /// Writes a number with decimals.
    fn double(&mut self, value: f64);
    /// Escaped as the format needs.
    fn text(&mut self, value: &[u8]);
    /// Writes NULL.
    fn null(&mut self);
}

/// Generates rows for a bulk load.
pub trait RowSource {
    /// True if texts are already in PostgreSQL's binary format, for a COPY in that format.
    fn is_binary(&self) -> bool {
        false
    }

    /// Writes the next row and returns true, or writes nothing and returns false at the end.
    fn next_row(&mut self, out: &mut dyn RowWriter) -> bool;

    /// Goes back to the first row: called when a server refuses one way of loading before its first row.
    fn restart(&mut self);
}

crate::named! {
    /// The way of rows into a table.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum BulkMethod {
        /// PostgreSQL `COPY ... FROM STDIN`.
        Copy = "COPY",
        /// MySQL `LOAD DATA LOCAL INFILE`, streamed.
        LoadData = "LOAD DATA LOCAL INFILE",
        /// `INSERT` with many rows per statement.
        MultiRowInsert = "multi-row INSERT",
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BulkReport {
    /// Stored rows, as the server reports.
    pub rows: u64,
    pub method: BulkMethod,
    /// Set when a faster method was not possible.
    pub fallback: Option<BulkFallback>,
}

/// A faster way of a bulk load that was not possible.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BulkFallback {
    /// For example `LOAD DATA LOCAL`.
    pub way: &'static str,
    /// The server's refusal; `None` if it lacks that way.
    pub refusal: Option<String>,
    /// The statement that allows it.
    pub remedy: Option<&'static str>,
}

/// The proofs that server and user gave each other when a session was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionProof {
    pub tls: Option<SessionTls>,
    /// The method of the log-in, in the protocol's words; `none` if the server asked for nothing.
    pub method: &'static str,
    /// PostgreSQL: the server's process that the session was promised. A pooler in between names a process it has made up.
    pub process: Option<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionTls {
    /// For example `TLS 1.3`.
    pub version: &'static str,
    /// The certificate has proven who the server is.
    pub is_verified: bool,
}

/// Interrupts the statement of a session of an embedded database. Called from another thread; does nothing between
/// statements.
pub type Interrupter = Box<dyn Fn() + Send + Sync>;

/// One open connection. Used by one worker at a time.
///
/// | to execute with | when |
/// |---|---|
/// | [`Session::query`], [`Session::query_bytes`] | A text is executed once, or has several statements: set-up, checks, simple protocols. |
/// | [`Session::execute_once`] | A text with parameters is executed once. |
/// | [`Session::prepare`], then [`Session::execute`] | The same statement is executed again and again, and its rows are read. |
/// | [`Session::execute_short`] | As before, but rows are only counted, or kept as they come. |
/// | [`Session::give`], [`Session::poll_submitted`], [`Session::receive_submitted`] | A transaction is one statement: the parts of [`Session::execute_short`], without a separate future. |
/// | [`Session::queue`], [`Session::queue_once`], [`Session::queue_sync`], then [`Session::flush`] | Several statements share one flight. |
/// | [`Session::bulk_load`], [`Session::copy_in`] | Rows are streamed into a table. |
///
/// `prepare`, `execute`, `query` and the pipeline calls are the hot path: they reuse the session's buffers and allocate
/// nothing once those have grown.
pub trait Session {
    /// The dialect that the server speaks.
    fn dialect(&self) -> Dialect;

    /// Name and version of the server.
    fn product(&self) -> &Product;

    /// `None` for embedded databases.
    fn proof(&self) -> Option<SessionProof> {
        None
    }

    /// Abilities of the database.
    fn capabilities(&self) -> &'static Capabilities {
        self.dialect().capabilities()
    }

    /// True if the target itself gives its sessions this setting, as `set.NAME` of a URL does.
    fn is_set_by_target(&self, _name: &str) -> bool {
        false
    }

    /// Prepares a statement with the dialect's own placeholders. A statement that the server can't prepare (MySQL error
    /// 1295) is sent as text on execution.
    fn prepare(
        &mut self,
        sql: &str,
        params: &[ParamType],
    ) -> impl Future<Output = DbResult<Statement>>;

    /// Like [`Session::prepare`], for a text in any encoding, and under this name if the protocol has names
    /// (PostgreSQL): the caller keeps them apart. The default refuses what is not UTF-8.
    fn prepare_bytes(
        &mut self,
        sql: &[u8],
        params: &[ParamType],
        _name: Option<&str>,
    ) -> impl Future<Output = DbResult<Statement>> {
        async move { self.prepare(utf8_statement(sql)?, params).await }
    }

    /// Closes a prepared statement, whose number may be given to another one. The default keeps it until the session
    /// ends.
    fn forget(&mut self, _statement: Statement) -> impl Future<Output = DbResult<()>> {
        async { Ok(()) }
    }

    /// Executes a prepared statement. Errors leave the session usable unless [`DbError::is_fatal`].
    fn execute<R: Rows>(
        &mut self,
        statement: Statement,
        params: &[Param<'_>],
        rows: &mut R,
    ) -> impl Future<Output = DbResult<Executed>>;

    /// Like [`Session::execute`], for rows that are only counted or kept as they come: most of them, on a way with
    /// fewer layers.
    #[inline]
    fn execute_short<R: Rows>(
        &mut self,
        statement: Statement,
        params: &[Param<'_>],
        rows: &mut R,
    ) -> impl Future<Output = DbResult<Executed>> {
        async move {
            let is_submitted = self.give(statement, params)?;
            let answer =
                if is_submitted { poll_fn(|_| self.poll_submitted(rows)).await? } else { None };
            match answer {
                Some(executed) => Ok(executed),
                None if is_submitted => self.receive_submitted(rows).await,
                None => self.execute(statement, params, rows).await,
            }
        }
    }

    /// Gives an execution to be sent with the next wait of the loop. False if that isn't possible, and then nothing
    /// has happened. Workloads whose transactions are a statement each do themselves what [`Session::execute_short`]
    /// does: a separate future would be made and moved for each.
    #[inline]
    fn give(&mut self, _statement: Statement, _params: &[Param<'_>]) -> DbResult<bool> {
        Ok(false)
    }

    /// Waits for the answer to what was given: the task that gave it must do so before it waits for anything else.
    /// `None` when the answer has come and can't be read at once: [`Session::receive_submitted`] reads it, and `rows` has
    /// nothing of it yet.
    #[inline]
    fn poll_submitted<R: Rows>(&mut self, _rows: &mut R) -> Poll<DbResult<Option<Executed>>> {
        Poll::Ready(Ok(None))
    }

    /// Reads the answer to what was given.
    fn receive_submitted<R: Rows>(
        &mut self,
        _rows: &mut R,
    ) -> impl Future<Output = DbResult<Executed>> {
        async { Err(DbError::unsupported("This session was not given a statement.")) }
    }

    /// Sends text as one command. The counts of several statements are summed, the rows of all delivered.
    fn query<R: Rows>(
        &mut self,
        sql: &str,
        rows: &mut R,
    ) -> impl Future<Output = DbResult<Executed>>;

    /// Like [`Session::query`], for a text in any encoding, which is sent unchanged. The default refuses what is not
    /// UTF-8.
    fn query_bytes<R: Rows>(
        &mut self,
        sql: &[u8],
        rows: &mut R,
    ) -> impl Future<Output = DbResult<Executed>> {
        async move { self.query(utf8_statement(sql)?, rows).await }
    }

    /// Returns true if a backslash in a quoted text begins an escape, as of the last answer.
    fn has_backslash_escapes(&self) -> bool {
        self.dialect() == Dialect::Mysql
    }

    /// Executes a statement once, in as few flights as the protocol allows; nothing of it stays on the server.
    /// Placeholders are the dialect's own, parameters are [`ParamType::Inferred`].
    fn execute_once<R: Rows>(
        &mut self,
        _sql: impl AsRef<[u8]>,
        _params: &[Param<'_>],
        _rows: &mut R,
    ) -> impl Future<Output = DbResult<Executed>> {
        async {
            Err(DbError::unsupported("This session can't execute a statement it has not prepared."))
        }
    }

    /// True between begin and end of an explicit transaction, failed or not, as of the last answer.
    fn is_in_transaction(&self) -> bool {
        false
    }

    /// Adds a one-time execution (see [`Session::execute_once`]) to the next flight, if the protocol can parse and
    /// execute in one.
    fn queue_once(&mut self, _sql: impl AsRef<[u8]>, _params: &[Param<'_>]) -> DbResult<()> {
        Err(DbError::unsupported("This protocol can't queue a statement that is not prepared."))
    }

    /// Ends the implicit transaction of the queue so far (PostgreSQL's Sync inside a flight).
    fn queue_sync(&mut self) -> DbResult<()> {
        Ok(())
    }

    /// Adds an execution to the next flight without sending it.
    fn queue(&mut self, statement: Statement, params: &[Param<'_>]) -> DbResult<()>;

    /// Sends all queued executions in one flight and appends their results to `results` in order. On PostgreSQL the
    /// flight ends with a Sync: after an error the rest up to the next [`Session::queue_sync`] is aborted, with the
    /// same SQLSTATE class. On MySQL each command is independent. Fails only when the connection is lost.
    fn flush<R: Rows>(
        &mut self,
        rows: &mut R,
        results: &mut FlightAnswers,
    ) -> impl Future<Output = DbResult<()>>;

    /// Brings the session out of a failed or open transaction.
    fn rollback(&mut self) -> impl Future<Output = DbResult<()>>;

    /// Streams rows into a table; all or nothing. An open transaction includes them, and must be rolled back after an
    /// error. `table` and `columns` are trusted SQL.
    fn bulk_load(
        &mut self,
        _table: &str,
        _columns: &[&str],
        _rows: &mut dyn RowSource,
    ) -> impl Future<Output = DbResult<BulkReport>> {
        async { Err(DbError::unsupported("This kind of session loads no tables.")) }
    }

    /// Streams rows as the answer to a COPY statement of the caller (`... FROM STDIN` in text format, or in binary
    /// format where the rows are), also inside an open transaction. Returns the number of stored rows. PostgreSQL only.
    fn copy_in(
        &mut self,
        _sql: &str,
        _rows: &mut dyn RowSource,
    ) -> impl Future<Output = DbResult<u64>> {
        async { Err(DbError::unsupported("This kind of session has no COPY.")) }
    }

    /// Returns true if [`Session::take_notice_lines`] has any.
    fn has_notice_lines(&self) -> bool {
        false
    }

    /// Notices and warnings since the last call, at most the first hundred, as the server's own client prints them
    /// (`NOTICE:  table "t" does not exist, skipping`).
    fn take_notice_lines(&mut self) -> Vec<String> {
        Vec::new()
    }

    /// Cancels the statement on the server, for a caller that waits no longer, and ends the session. The default only
    /// closes the connection.
    fn cancel(self) -> impl Future<Output = ()>
    where
        Self: Sized,
    {
        async { drop(self) }
    }

    /// The error of waiting for the answer to `sql`, which was given up after `within`: the server is silent, or
    /// its answer does not end.
    fn unanswered(&mut self, sql: &str, within: Nanos) -> impl Future<Output = DbError> {
        let text = format!("The answer to `{sql}` did not end within {} s.", within / SECOND);
        async { DbError::unreachable(text) }
    }

    /// Interrupts this session's statement from another thread, for sessions that block their own; `None` if a
    /// second session has to ask the server.
    fn interrupter(&self) -> Option<Interrupter> {
        None
    }

    /// Ends the session in order. The default closes the connection.
    fn close(self) -> impl Future<Output = ()>
    where
        Self: Sized,
    {
        async { drop(self) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Long;

    impl AnswerRow for Long {
        fn columns(&self) -> usize {
            1
        }
        fn is_null(&self, _column: usize) -> bool {
            false
        }
        fn int(&self, _column: usize) -> Option<i64> {
            None
        }
        fn double(&self, _column: usize) -> Option<f64> {
            None
        }
        fn bytes(&self, _column: usize) -> Option<&[u8]> {
            None
        }
        fn string(&self, _column: usize) -> Option<String> {
            Some("x".repeat(1 << 20))
        }
    }

    #[test]
    fn an_answer_without_end_is_cut() {
        let (question, workload) = (AnswerTable::default(), AnswerTable::for_workload());
        let bytes_max = Some(AnswerTable::BYTES_MAX);
        for (mut table, rows, overflow) in [(question, 31, bytes_max), (workload, 63, None)] {
            (0..rows).for_each(|_| table.row(&Long));
            assert!(!table.is_cut() && table.rows.len() == rows);
            (0..1_000).for_each(|_| table.row(&Long));
            assert!(table.is_cut() && table.rows.is_empty());
            assert_eq!(table.overflow(), overflow);
        }
    }

    #[test]
    fn what_short_rows_take_beside_their_texts_counts() {
        let row = vec![Some("1".to_owned()), None];
        assert!(row_heap_bytes(&row) >= 48 + 48 + 32, "{}", row_heap_bytes(&row));
    }
}
