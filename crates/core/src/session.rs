//! How a protocol is spoken, and one open connection.

use crate::{Capabilities, DbError, DbResult, Dialect, Param, ParamType, Product, StatementKind};

/// Opens sessions to a target. Shared by all loops.
pub trait Driver: Sync {
    /// The sessions this driver opens.
    type Session: Session;

    /// Opens a session. `number` counts the connections of this run from 0 and picks the host
    /// where a list of hosts was given (hosts rotate).
    ///
    /// # Errors
    /// Unreachable or rejected; the message names host and port, never a password.
    fn connect(&self, number: u32) -> impl Future<Output = DbResult<Self::Session>>;

    /// Opens a session in place of one of this number that was lost; `attempt` counts the attempts at it
    /// from 0. A target with several nodes may find it another node than the one that is gone.
    ///
    /// # Errors
    /// As [`Driver::connect`].
    fn reconnect(
        &self,
        number: u32,
        attempt: u32,
    ) -> impl Future<Output = DbResult<Self::Session>> {
        let _ = attempt;
        self.connect(number)
    }

    /// The SQL dialect spoken.
    fn dialect(&self) -> Dialect;

    /// What the databases that are reached this way can do; a session knows it more exactly.
    fn capabilities(&self) -> &'static Capabilities {
        self.dialect().capabilities()
    }

    /// True when a session blocks its thread (embedded databases): such sessions get a loop each.
    fn blocks(&self) -> bool {
        false
    }

    /// The driver for sessions that load, look and check, which need the node that takes writes
    /// wherever the load goes. The same one where a target has one node.
    fn primary(&self) -> &Self {
        self
    }
}

/// A prepared statement of one session: an index into that session's own table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Statement(pub u32);

/// What one executed statement did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Executed {
    /// True when the answer was a result set, even an empty one.
    pub has_rows: bool,
    /// Rows received.
    pub rows: u64,
    /// Rows changed, as the server says.
    pub affected: u64,
}

/// What became of the executions of one flight, in their order.
pub type FlightAnswers = Vec<DbResult<Executed>>;

impl Executed {
    /// Counted as sysbench counts it.
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
pub trait Row {
    /// Number of columns.
    fn columns(&self) -> usize;
    /// True for SQL NULL.
    fn is_null(&self, column: usize) -> bool;
    /// The value as an integer; `None` for NULL or what is no integer.
    fn int(&self, column: usize) -> Option<i64>;
    /// The value as a number; `None` for NULL or what is no number.
    fn double(&self, column: usize) -> Option<f64>;
    /// The bytes of a text value as received; `None` for NULL and for binary numbers.
    fn bytes(&self, column: usize) -> Option<&[u8]>;
    /// The value as the server would print it. Allocates: for set-up and checks.
    fn string(&self, column: usize) -> Option<String>;
}

/// The names of the columns of one result set.
pub trait Columns {
    /// Number of columns.
    fn count(&self) -> usize;
    /// The name of a column, from 0; empty where there is none.
    fn name(&self, column: usize) -> &str;
}

/// Receives the rows of an answer.
pub trait Rows {
    /// False when rows need only be counted: drivers then skip their decoding.
    const WANTED: bool = true;
    /// True when [`Rows::columns`] and [`Rows::done`] are to be called: what needs them pays for
    /// the names, nobody else.
    const DESCRIBED: bool = false;
    /// A result set begins, before its first row and even if it has none.
    fn columns<C: Columns>(&mut self, _columns: &C) {}
    /// One statement of the command is complete, with or without a result set. Not called for
    /// a statement that failed; of a MySQL procedure, called for each result set and once more at
    /// its end.
    fn done(&mut self, _executed: Executed) {}
    /// Called for each row in order.
    fn row<R: Row>(&mut self, row: &R);
}

/// Counts rows and drops them.
#[derive(Clone, Copy, Debug, Default)]
pub struct Discard;

impl Rows for Discard {
    const WANTED: bool = false;
    #[inline]
    fn row<R: Row>(&mut self, _row: &R) {}
}

/// Keeps whole answers as text. For set-up, checks and statistics, not for the hot path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Table {
    /// Rows of columns; `None` is NULL.
    pub rows: Vec<Vec<Option<String>>>,
}

impl Rows for Table {
    fn row<R: Row>(&mut self, row: &R) {
        self.rows.push((0..row.columns()).map(|column| row.string(column)).collect());
    }
}

impl Table {
    /// The value in the first row and column, if there is one and it isn't NULL.
    pub fn single(&self) -> Option<&str> {
        self.rows.first()?.first()?.as_deref()
    }
}

/// Writes the columns of one row in the order of the column list.
pub trait RowWriter {
    /// An integer.
    fn int(&mut self, value: i64);
    /// A double-precision number.
    fn double(&mut self, value: f64);
    /// Text; escaped as the format needs.
    fn text(&mut self, value: &[u8]);
    /// SQL NULL.
    fn null(&mut self);
}

/// Generates rows for a bulk load.
pub trait RowSource {
    /// Writes the next row and returns true, or writes nothing and returns false at the end.
    fn next_row<W: RowWriter>(&mut self, out: &mut W) -> bool;

    /// Goes back to the first row: asked for when a server forbids one way of loading before it
    /// has taken a row, and the next way is tried.
    fn restart(&mut self);
}

/// How rows got into a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BulkMethod {
    /// PostgreSQL `COPY ... FROM STDIN`.
    Copy,
    /// MySQL `LOAD DATA LOCAL INFILE`, streamed.
    LoadData,
    /// `INSERT` with many rows per statement.
    MultiRowInsert,
    /// DuckDB's appender.
    Appender,
}

impl BulkMethod {
    /// The name shown to users.
    pub fn name(self) -> &'static str {
        match self {
            BulkMethod::Copy => "COPY",
            BulkMethod::LoadData => "LOAD DATA LOCAL INFILE",
            BulkMethod::MultiRowInsert => "multi-row INSERT",
            BulkMethod::Appender => "appender",
        }
    }
}

/// What a bulk load did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BulkReport {
    /// Rows that the server says it stored.
    pub rows: u64,
    /// How they got there.
    pub method: BulkMethod,
    /// Why a faster method was not used.
    pub fallback: Option<BulkFallback>,
}

/// Why a bulk load did not go a faster way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BulkFallback {
    /// Such as `LOAD DATA LOCAL`.
    pub way: &'static str,
    /// The server's refusal; `None` where it does not offer that way.
    pub refusal: Option<String>,
    /// The statement that allows it.
    pub remedy: Option<&'static str>,
}

/// Has a session of an embedded database give up the statement that it is executing. Called from
/// another thread; does nothing while no statement is executed.
pub type Interrupter = Box<dyn Fn() + Send + Sync>;

/// One open connection. Used by one worker at a time.
///
/// `prepare`, `execute`, `query` and the pipeline calls are the hot path: they reuse the
/// session's buffers and allocate nothing once those have grown to their working size.
pub trait Session {
    /// The SQL dialect spoken.
    fn dialect(&self) -> Dialect;

    /// Product and version of the server behind this session.
    fn product(&self) -> &Product;

    /// What the database behind this session can do.
    fn capabilities(&self) -> &'static Capabilities {
        self.dialect().capabilities()
    }

    /// Prepares a statement with the dialect's own placeholders. A statement that the server can't
    /// prepare (MySQL error 1295) is kept as text and sent as such on execution.
    fn prepare(
        &mut self,
        sql: &str,
        params: &[ParamType],
    ) -> impl Future<Output = DbResult<Statement>>;

    /// Executes a prepared statement. Errors leave the session usable unless
    /// [`DbError::is_fatal`].
    fn execute<R: Rows>(
        &mut self,
        statement: Statement,
        params: &[Param<'_>],
        rows: &mut R,
    ) -> impl Future<Output = DbResult<Executed>>;

    /// Sends text as one command. With several statements inside, the counts are summed and rows
    /// of all result sets are delivered.
    fn query<R: Rows>(
        &mut self,
        sql: &str,
        rows: &mut R,
    ) -> impl Future<Output = DbResult<Executed>>;

    /// Executes a statement once: parsed, bound, described and executed in as few flights as the
    /// protocol allows, and nothing of it stays on the server. Placeholders are the dialect's own,
    /// the types of the parameters are inferred as by [`ParamType::Inferred`].
    ///
    /// # Errors
    /// As [`Session::execute`]; also when this kind of session has no such way.
    fn execute_once<R: Rows>(
        &mut self,
        _sql: &str,
        _params: &[Param<'_>],
        _rows: &mut R,
    ) -> impl Future<Output = DbResult<Executed>> {
        async {
            Err(DbError::unsupported("This session can't execute a statement it has not prepared."))
        }
    }

    /// True between the begin of an explicit transaction and its end, failed or not, as of the
    /// last answer.
    fn is_in_transaction(&self) -> bool {
        false
    }

    /// Adds a one-time execution (see [`Session::execute_once`]) to the next flight.
    ///
    /// # Errors
    /// When the protocol can't parse and execute in one flight.
    fn queue_once(&mut self, _sql: &str, _params: &[Param<'_>]) -> DbResult<()> {
        Err(DbError::unsupported("This protocol can't queue a statement that is not prepared."))
    }

    /// Ends the implicit transaction of what is queued so far (PostgreSQL's Sync inside a flight):
    /// what follows stands on its own. Nothing to do where each command stands alone.
    ///
    /// # Errors
    /// None that a queue of usual size meets.
    fn queue_sync(&mut self) -> DbResult<()> {
        Ok(())
    }

    /// Adds an execution to the next flight without sending it.
    fn queue(&mut self, statement: Statement, params: &[Param<'_>]) -> DbResult<()>;

    /// Sends all queued executions in one flight and awaits all answers, appended to `results` in
    /// order. On PostgreSQL the flight ends with a Sync, so after an error the rest of the flight,
    /// or what was queued before the next [`Session::queue_sync`], reports the same SQLSTATE class
    /// as aborted; on MySQL each command stands alone.
    ///
    /// # Errors
    /// Only when the connection is lost; errors of statements are in `results`.
    fn flush<R: Rows>(
        &mut self,
        rows: &mut R,
        results: &mut FlightAnswers,
    ) -> impl Future<Output = DbResult<()>>;

    /// Brings the session out of a failed or open transaction. Called by the engine after a failed
    /// attempt, outside the hot path.
    fn rollback(&mut self) -> impl Future<Output = DbResult<()>>;

    /// Streams rows into a table; all or nothing. Within an open transaction they are part of it, and
    /// after an error it has to be rolled back. `table` and `columns` are trusted SQL.
    fn bulk_load<R: RowSource>(
        &mut self,
        table: &str,
        columns: &[&str],
        rows: &mut R,
    ) -> impl Future<Output = DbResult<BulkReport>>;

    /// Streams rows as the answer to a COPY statement in the caller's own words (`... FROM STDIN`
    /// in text format): options such as FREEZE, and COPY inside an open transaction. Returns how
    /// many rows the server says it stored. PostgreSQL only.
    ///
    /// # Errors
    /// As [`Session::bulk_load`]; also when this kind of session has no such way.
    fn copy_in<R: RowSource>(
        &mut self,
        _sql: &str,
        _rows: &mut R,
    ) -> impl Future<Output = DbResult<u64>> {
        async { Err(DbError::unsupported("This kind of session has no COPY.")) }
    }

    /// Notices and warnings since the last call, at most the first hundred, as the server's own
    /// client prints them (`NOTICE:  table "t" does not exist, skipping`).
    fn take_notice_lines(&mut self) -> Vec<String> {
        Vec::new()
    }

    /// Has the server give up what this session is executing, for a caller that has stopped waiting
    /// for it, and ends the session. Closing the connection is all that is done by default; errors
    /// do not matter any more.
    fn cancel(self) -> impl Future<Output = ()>
    where
        Self: Sized,
    {
        async { drop(self) }
    }

    /// What stops this session's statement from another thread, for sessions that block their own;
    /// `None` where a second session has to ask the server.
    fn interrupter(&self) -> Option<Interrupter> {
        None
    }

    /// Takes leave politely; errors do not matter any more.
    fn close(self) -> impl Future<Output = ()>;
}
