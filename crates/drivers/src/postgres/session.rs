//! Statements, pipelines and transactions on top of a link.
//!
//! Bulk load: `COPY ... FROM STDIN` in text format, or in binary format where the rows are written so.

use super::answers::unsendable;
use super::answers::{Expect, Prepared, Progress, Step};
use super::connect::CancelToken;
use super::link::{Link, Stop};
use crate::endless;
use dyno_core::{
    BulkMethod, BulkReport, DbError, DbResult, Dialect, Discard, ErrorClass, Executed,
    FlightAnswers, Nanos, Param, ParamType, Product, RowSource, Rows, Session, SessionProof,
    Statement, StatementTable, in_one_line,
};
use dyno_wire::Names;
use dyno_wire::postgres::backend::TransactionStatus;
use dyno_wire::postgres::frontend;
use dyno_wire::postgres::frontend::Execution;
use dyno_wire::postgres::row::{BinaryRows, HEADER, TRAILER};
use dyno_wire::postgres::types::{PostgresColumn, ValueFormat};
use dyno_wire::text_rows::TextRows;
use std::future::poll_fn;
use std::task::Poll;

/// One open connection to a server that speaks the PostgreSQL protocol.
///
/// Statements of one flight ([`Session::flush`]) share one implicit transaction up to a [`Session::queue_sync`], unless
/// they open their own: when one fails, the ones before it are undone although they were reported as executed.
#[derive(Debug)]
pub struct PostgresSession {
    link: Link,
    statements: StatementTable<Prepared>,
    /// Number of statements that were prepared without a name of the caller's.
    unnamed: u32,
    /// Messages that wait for `flush`, and their steps.
    flight: Vec<u8>,
    steps: Vec<Step>,
    product: Product,
    cancel: CancelToken,
}

impl PostgresSession {
    pub(super) fn new(link: Link, cancel: CancelToken) -> Self {
        let mut session = PostgresSession {
            link,
            statements: StatementTable::default(),
            unnamed: 0,
            flight: Vec::new(),
            steps: Vec::new(),
            product: Product { name: "PostgreSQL".to_owned(), version: String::new() },
            cancel,
        };
        let version = session.parameter("server_version").unwrap_or("unknown");
        session.product.version = in_one_line(version).into_owned();
        session
    }

    /// Cancels the statement of this session, from another task or loop.
    pub fn cancel_token(&self) -> CancelToken {
        self.cancel.clone()
    }

    /// A parameter that the server reports, as of the last answer: `server_version`, `in_hot_standby` or
    /// `default_transaction_read_only`, nothing else.
    pub fn parameter(&self, name: &str) -> Option<&str> {
        self.link.state.parameter(name)
    }

    async fn send_flight<R: Rows>(
        &mut self,
        rows: &mut R,
        results: &mut FlightAnswers,
    ) -> DbResult<()> {
        self.link.begin()?;
        self.queue_sync()?;
        let PostgresSession { link, statements, steps, flight, .. } = self;
        // Swapped buffers need no copy.
        std::mem::swap(&mut link.out, flight);
        let expect = Expect::Flight { statements, steps };
        link.exchange_long(expect, rows, |outcome| results.push(outcome)).await.map(drop)
    }
}

#[cold]
fn unknown_statement() -> DbError {
    DbError::protocol("The statement was not prepared by this session.")
        .with_class(ErrorClass::Other)
}

impl Session for PostgresSession {
    fn dialect(&self) -> Dialect {
        Dialect::Postgres
    }

    fn product(&self) -> &Product {
        &self.product
    }

    fn proof(&self) -> Option<SessionProof> {
        self.link.proof
    }

    fn is_set_by_target(&self, name: &str) -> bool {
        // Options are `-c NAME=VALUE`, `-cNAME=VALUE` or `--NAME=VALUE`.
        self.cancel.settings.startup.iter().any(|(key, value)| {
            let options = (key == "options").then(|| value.split([' ', '=']));
            std::iter::once(key.as_str()).chain(options.into_iter().flatten()).any(|word| {
                let word = word.trim_start_matches("-c").trim_start_matches('-');
                word.replace('-', "_").eq_ignore_ascii_case(name)
            })
        })
    }

    async fn prepare(&mut self, sql: &str, params: &[ParamType]) -> DbResult<Statement> {
        self.prepare_bytes(sql.as_bytes(), params, None).await
    }

    async fn prepare_bytes(
        &mut self,
        sql: &[u8],
        params: &[ParamType],
        name: Option<&str>,
    ) -> DbResult<Statement> {
        self.link.begin()?;
        // Never reused: the server keeps every statement that it could parse.
        self.unnamed += u32::from(name.is_none());
        let name = name.map_or_else(|| format!("dyno_{}", self.unnamed), str::to_owned);
        let out = &mut self.link.out;
        frontend::parse(out, &name, sql, params).map_err(unsendable)?;
        frontend::describe_statement(out, &name).map_err(unsendable)?;
        frontend::sync(out);
        let progress = self.link.exchange(Expect::Description, &mut Discard, |_| {}).await?;
        if let Some(error) = progress.error {
            return Err(error);
        }
        let state = &mut self.link.state;
        let columns = std::mem::take(&mut state.has_columns).then(|| {
            let columns = state.columns.iter().map(|column| PostgresColumn {
                format: ValueFormat::for_result(column.type_oid),
                ..*column
            });
            columns.collect::<Vec<_>>()
        });
        let names = match columns {
            Some(_) => state.names.clone(),
            None => Names::default(),
        };
        let execution = Execution::new(&name, params, columns.as_deref().unwrap_or_default());
        let execution = execution.map_err(unsendable)?;
        Ok(self.statements.add(Prepared { name: name.into(), execution, columns, names }))
    }

    async fn forget(&mut self, statement: Statement) -> DbResult<()> {
        self.link.begin()?;
        let prepared = self.statements.remove(statement).ok_or_else(unknown_statement)?;
        let out = &mut self.link.out;
        frontend::close_statement(out, &prepared.name).map_err(unsendable)?;
        frontend::sync(out);
        let progress = self.link.exchange(Expect::Description, &mut Discard, |_| {}).await?;
        progress.error.map_or(Ok(()), Err)
    }

    #[inline]
    async fn execute<R: Rows>(
        &mut self,
        statement: Statement,
        params: &[Param<'_>],
        rows: &mut R,
    ) -> DbResult<Executed> {
        self.link.begin()?;
        let PostgresSession { link, statements, .. } = self;
        let prepared = statements.get(statement).ok_or_else(unknown_statement)?;
        let has_rows = prepared.columns.is_some();
        prepared.execution.encode_synced(&mut link.out, params).map_err(unsendable)?;
        link.state.begin_flight();
        let send_result = link.transport.send_buffer(&mut link.out).await;
        if send_result.is_ok()
            && link.inbox.filled().is_empty()
            && let Some(executed) = poll_fn(|_| link.poll_plain::<R>(has_rows)).await?
        {
            return Ok(executed);
        }
        link.collect_one(send_result, statements, statement, rows).await
    }

    #[inline]
    fn give(&mut self, statement: Statement, params: &[Param<'_>]) -> DbResult<bool> {
        self.link.begin()?;
        if !self.link.takes() {
            return Ok(false);
        }
        let PostgresSession { link, statements, .. } = self;
        let prepared = statements.get(statement).ok_or_else(unknown_statement)?;
        prepared.execution.encode_synced(&mut link.out, params).map_err(unsendable)?;
        Ok(link.submit(statement, prepared.columns.is_some()))
    }

    #[inline]
    fn poll_submitted<R: Rows>(&mut self, _rows: &mut R) -> Poll<DbResult<Option<Executed>>> {
        self.link.poll_plain::<R>(self.link.state.submitted_has_rows)
    }

    async fn receive_submitted<R: Rows>(&mut self, rows: &mut R) -> DbResult<Executed> {
        let statement = self.link.state.submitted;
        self.link.collect_one(Ok(()), &self.statements, statement, rows).await
    }

    fn query<R: Rows>(
        &mut self,
        sql: &str,
        rows: &mut R,
    ) -> impl Future<Output = DbResult<Executed>> {
        self.query_bytes(sql.as_bytes(), rows)
    }

    async fn query_bytes<R: Rows>(&mut self, sql: &[u8], rows: &mut R) -> DbResult<Executed> {
        self.link.begin()?;
        frontend::query(&mut self.link.out, sql).map_err(unsendable)?;
        let mut sum = Executed::default();
        let exchange = self.link.exchange(Expect::Text, rows, |outcome: DbResult<Executed>| {
            if let Ok(executed) = outcome {
                sum.has_rows |= executed.has_rows;
                sum.rows += executed.rows;
                sum.affected = sum.affected.saturating_add(executed.affected);
            }
        });
        let progress = exchange
            .await
            .map_err(|error| endless::explain_overflow(error, rows, self.cancel.address(), sql))?;
        progress.error.map_or(Ok(sum), Err)
    }

    #[inline]
    async fn execute_once<R: Rows>(
        &mut self,
        sql: impl AsRef<[u8]>,
        params: &[Param<'_>],
        rows: &mut R,
    ) -> DbResult<Executed> {
        self.link.begin()?;
        let out = &mut self.link.out;
        frontend::execute_once(out, sql, params).map_err(unsendable)?;
        frontend::sync(out);
        let expect =
            Expect::Flight { statements: &self.statements, steps: &[Step::Once, Step::Sync] };
        let mut result = Ok(Executed::default());
        self.link.exchange(expect, rows, |outcome| result = outcome).await?;
        result
    }

    fn is_in_transaction(&self) -> bool {
        self.link.state.status != TransactionStatus::Idle
    }

    #[inline]
    fn queue(&mut self, statement: Statement, params: &[Param<'_>]) -> DbResult<()> {
        let prepared = self.statements.get(statement).ok_or_else(unknown_statement)?;
        prepared.execution.encode(&mut self.flight, params).map_err(unsendable)?;
        self.steps.push(Step::Prepared(statement));
        Ok(())
    }

    fn queue_once(&mut self, sql: impl AsRef<[u8]>, params: &[Param<'_>]) -> DbResult<()> {
        frontend::execute_once(&mut self.flight, sql, params).map_err(unsendable)?;
        self.steps.push(Step::Once);
        Ok(())
    }

    fn queue_sync(&mut self) -> DbResult<()> {
        if matches!(self.steps.last(), Some(Step::Prepared(_) | Step::Once)) {
            frontend::sync(&mut self.flight);
            self.steps.push(Step::Sync);
        }
        Ok(())
    }

    async fn flush<R: Rows>(&mut self, rows: &mut R, results: &mut FlightAnswers) -> DbResult<()> {
        if self.steps.is_empty() {
            return Ok(());
        }
        let flushed = self.send_flight(rows, results).await;
        self.steps.clear();
        self.flight.clear();
        flushed
    }

    async fn rollback(&mut self) -> DbResult<()> {
        self.steps.clear();
        self.flight.clear();
        self.link.begin()?;
        if self.link.state.status == TransactionStatus::Idle {
            return Ok(());
        }
        self.query("ROLLBACK", &mut Discard).await.map(drop)
    }

    async fn bulk_load(
        &mut self,
        table: &str,
        columns: &[&str],
        rows: &mut dyn RowSource,
    ) -> DbResult<BulkReport> {
        let rows = copy_in(&mut self.link, &copy_sql(table, columns), rows).await?;
        Ok(BulkReport { rows, method: BulkMethod::Copy, fallback: None })
    }

    async fn copy_in(&mut self, sql: &str, rows: &mut dyn RowSource) -> DbResult<u64> {
        copy_in(&mut self.link, sql, rows).await
    }

    #[inline]
    fn has_notice_lines(&self) -> bool {
        !self.link.state.notices.is_empty()
    }

    fn take_notice_lines(&mut self) -> Vec<String> {
        std::mem::take(&mut self.link.state.notices)
    }

    async fn unanswered(&mut self, sql: &str, within: Nanos) -> DbError {
        let Link { transport, inbox, .. } = &mut self.link;
        let is_answering = transport.is_sent_to(inbox).await;
        endless::unanswered(self.cancel.address(), sql, within, is_answering)
    }

    /// A busy server doesn't notice a closed connection.
    async fn cancel(self) {
        let _ = self.cancel.cancel().await;
    }

    async fn close(mut self) {
        if self.link.begin().is_ok() {
            frontend::terminate(&mut self.link.out);
            // The server notices the closed connection in any case.
            let _ = self.link.transport.send(&self.link.out).await;
        }
    }
}

/// Size of the pieces of rows: large enough for few system calls, small enough for the cache.
const PIECE_BYTES: usize = 128 * 1024;

pub(super) fn copy_sql(table: &str, columns: &[&str]) -> String {
    let columns =
        if columns.is_empty() { String::new() } else { format!(" ({})", columns.join(", ")) };
    format!("COPY {table}{columns} FROM STDIN")
}

/// Streams all rows into the COPY that `sql` begins; returns the number of rows that the server has stored.
pub(super) async fn copy_in(link: &mut Link, sql: &str, rows: &mut dyn RowSource) -> DbResult<u64> {
    link.begin()?;
    frontend::query(&mut link.out, sql).map_err(unsendable)?;
    link.state.begin_flight();
    let send_result = link.transport.send(&link.out).await;

    let mut progress = Progress::default();
    let mut stored = 0;
    let mut count_stored = |outcome: DbResult<dyno_core::Executed>| {
        stored = outcome.map_or(stored, |it| it.affected.saturating_add(stored));
    };
    let mut stop =
        link.collect(&mut progress, Expect::Text, &mut Discard, &mut count_stored).await?;
    send_result?;
    let is_wanted = stop == Stop::CopyIn;
    if is_wanted {
        stop = match stream(link, rows, &mut progress, &mut count_stored).await? {
            Some(stop) => stop,
            None => {
                link.collect(&mut progress, Expect::Text, &mut Discard, &mut count_stored).await?
            }
        };
    }
    match (progress.error, stop) {
        (Some(error), _) => Err(error),
        (None, Stop::Ready) if is_wanted => Ok(stored),
        (None, Stop::Ready) => Err(DbError::protocol(
            "The server did not ask for the rows of a COPY.",
        )
        .with_hint("no row was sent: what answers there, perhaps a proxy, does not know COPY")),
        (None, Stop::CopyIn) => {
            Err(DbError::protocol("The server asked for the rows of a COPY a second time."))
        }
    }
}

/// Sends the rows and the end of the copy. Stops early when the server has given up.
async fn stream(
    link: &mut Link,
    rows: &mut dyn RowSource,
    progress: &mut Progress,
    count_stored: &mut impl FnMut(DbResult<dyno_core::Executed>),
) -> DbResult<Option<Stop>> {
    let (mut has_more, mut is_first) = (true, true);
    while has_more {
        link.out.clear();
        let start = frontend::begin_copy_data(&mut link.out);
        has_more = if rows.is_binary() {
            binary_piece(&mut link.out, rows, is_first)
        } else {
            TextRows::new(&mut link.out).fill(rows, PIECE_BYTES)
        };
        is_first = false;
        // Fails only for a row of more than 1 GiB.
        frontend::end_copy_data(&mut link.out, start)
            .map_err(|error| unsendable(error).with_class(ErrorClass::ConnectionLost))?;
        if !has_more {
            frontend::copy_done(&mut link.out);
        }
        let send_result = link.transport.send_receiving(&link.out, &mut link.inbox).await;
        // Without waiting: the server's messages so far are enough.
        let received = link.transport.try_recv(&mut link.inbox);
        let stop = link.process_received(progress, Expect::Text, &mut Discard, count_stored)?;
        if stop.is_some() {
            return Ok(stop);
        }
        if let Err(lost) = send_result.and(received) {
            return Err(progress.error.take().filter(DbError::is_fatal).unwrap_or(lost));
        }
    }
    Ok(None)
}

/// Appends rows with what the format has before the first and after the last one.
fn binary_piece(out: &mut Vec<u8>, rows: &mut dyn RowSource, is_first: bool) -> bool {
    if is_first {
        out.extend_from_slice(&HEADER);
    }
    let has_more = BinaryRows::new(out).fill(rows, PIECE_BYTES);
    if !has_more {
        out.extend_from_slice(&TRAILER);
    }
    has_more
}
