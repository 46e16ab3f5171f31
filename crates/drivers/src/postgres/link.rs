//! One connection: sends flights and collects their answers.

use super::answers::{Expect, Prepared, Progress, Step};
use super::answers::{broken, notice_line, server_error};
use crate::endless::too_large;
use crate::net::{Inbox, Transport};
use dyno_core::{
    DbError, DbResult, ErrorClass, Executed, Rows, SessionProof, Statement, StatementTable,
};
use dyno_wire::postgres::backend::{self, TransactionStatus};
use dyno_wire::postgres::frame::{self, BODY_LIMIT_BYTES, HEADER_BYTES, MessageHeader, tag};
use dyno_wire::postgres::row::{CellSpot, data_row};
use dyno_wire::postgres::types::PostgresColumn;
use dyno_wire::postgres::{WireError, frontend};
use dyno_wire::{Names, server_text};
use std::task::{Poll, ready};

/// Longest message of the server after the log-in.
pub(super) const MESSAGE_BYTES: usize = BODY_LIMIT_BYTES + HEADER_BYTES;

/// Longest message before: a stranger must not fill memory or the screen.
const LOGIN_BYTES: usize = 64 << 10;

/// Later notices are dropped.
const NOTICE_LIMIT: usize = 100;
/// The parameters that the driver asks for. The other dozen that a server reports would cost each session a kilobyte.
const KEPT_PARAMETERS: [&str; 3] =
    ["server_version", "in_hot_standby", "default_transaction_read_only"];

/// `Ready`: the server has answered everything. `CopyIn`: it wants rows of a COPY.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    Ready,
    CopyIn,
}

#[derive(Debug)]
pub(super) struct Link {
    pub(super) transport: Transport,
    pub(super) inbox: Inbox,
    pub(super) out: Vec<u8>,
    pub(super) state: State,
    pub(super) proof: Option<SessionProof>,
}

#[derive(Debug)]
pub(super) struct State {
    /// False from the begin of a flight until the server is ready again.
    usable: bool,
    pub(super) status: TransactionStatus,
    /// The columns announced last.
    pub(super) columns: Vec<PostgresColumn>,
    /// Their names, if wanted.
    pub(super) names: Names,
    /// False when the statement has no result set.
    pub(super) has_columns: bool,
    /// The statement that was submitted last, and whether it has one.
    pub(super) submitted: Statement,
    pub(super) submitted_has_rows: bool,
    cells: Vec<CellSpot>,
    pub(super) notices: Vec<String>,
    /// Values of [`KEPT_PARAMETERS`].
    parameters: [Option<String>; KEPT_PARAMETERS.len()],
}

impl Link {
    pub(super) fn new(transport: Transport) -> Self {
        Link {
            transport,
            inbox: Inbox::new(LOGIN_BYTES),
            out: Vec::with_capacity(512),
            proof: None,
            state: State {
                usable: true,
                status: TransactionStatus::Idle,
                columns: Vec::new(),
                names: Names::default(),
                has_columns: false,
                submitted: Statement(u32::MAX),
                submitted_has_rows: false,
                cells: Vec::new(),
                notices: Vec::new(),
                parameters: Default::default(),
            },
        }
    }

    /// Empties the send buffer; fails if the connection is unusable.
    #[inline]
    pub(super) fn begin(&mut self) -> DbResult<()> {
        if !self.state.usable {
            return Err(unusable_error());
        }
        self.out.clear();
        Ok(())
    }

    /// Sends `out` and collects the answers until the server is ready. `done` gets the outcome of each execution, or of
    /// each command of a text. Fails only when the session ends.
    #[inline]
    pub(super) async fn exchange<R: Rows>(
        &mut self,
        expect: Expect<'_>,
        rows: &mut R,
        done: impl FnMut(DbResult<Executed>),
    ) -> DbResult<Progress> {
        self.state.begin_flight();
        let send_result = self.transport.send_buffer(&mut self.out).await;
        self.collect_all(send_result, expect, rows, done).await
    }

    /// Returns true if [`Link::submit`] may take something.
    #[inline]
    pub(super) fn takes(&self) -> bool {
        self.transport.exchanges() && self.inbox.filled().is_empty()
    }

    /// Submits `out`, one execution of this prepared statement, to be sent with the next wait; false if it can't be.
    #[inline]
    pub(super) fn submit(&mut self, statement: Statement, has_rows: bool) -> bool {
        let is_submitted = self.transport.try_exchange(&mut self.out);
        if is_submitted {
            self.state.begin_flight();
            (self.state.submitted, self.state.submitted_has_rows) = (statement, has_rows);
        }
        is_submitted
    }

    /// Waits for the answer to one execution of a prepared statement, which has been sent or submitted. `None` when it is
    /// not one that can be read at once, or when its rows are more than counted; then [`Link::collect_one`] has to read
    /// it.
    #[inline]
    pub(super) fn poll_plain<R: Rows>(
        &mut self,
        has_rows: bool,
    ) -> Poll<DbResult<Option<Executed>>> {
        if R::WANTED || R::DESCRIBED {
            self.transport.sends();
            return Poll::Ready(Ok(None));
        }
        let answer = self
            .transport
            .poll_read(&mut self.inbox, |received| backend::plain_answer(received, has_rows));
        let Some(answer) = ready!(answer)? else {
            return Poll::Ready(Ok(None));
        };
        self.state.status = answer.status;
        self.state.usable = true;
        let executed = Executed { has_rows, rows: answer.rows, affected: answer.affected };
        Poll::Ready(Ok(Some(executed)))
    }

    /// The answer to one execution of a prepared statement.
    pub(super) async fn collect_one<R: Rows>(
        &mut self,
        sent: DbResult<()>,
        statements: &StatementTable<Prepared>,
        statement: Statement,
        rows: &mut R,
    ) -> DbResult<Executed> {
        let steps = &[Step::Prepared(statement), Step::Sync];
        let expect = Expect::Flight { statements, steps };
        let mut result = Ok(Executed::default());
        self.collect_all(sent, expect, rows, |outcome| result = outcome).await?;
        result
    }

    /// Like [`Link::exchange`], for flights of any length: receives while it sends.
    pub(super) async fn exchange_long<R: Rows>(
        &mut self,
        expect: Expect<'_>,
        rows: &mut R,
        done: impl FnMut(DbResult<Executed>),
    ) -> DbResult<Progress> {
        self.state.begin_flight();
        let send_result = self.transport.send_receiving(&self.out, &mut self.inbox).await;
        self.collect_all(send_result, expect, rows, done).await
    }

    #[inline]
    async fn collect_all<R: Rows>(
        &mut self,
        sent: DbResult<()>,
        expect: Expect<'_>,
        rows: &mut R,
        mut done: impl FnMut(DbResult<Executed>),
    ) -> DbResult<Progress> {
        let mut progress = Progress::default();
        // A server that ends the session sends its reason before: the answer is read even if the flight could not be
        // sent.
        while self.collect(&mut progress, expect, rows, &mut done).await? == Stop::CopyIn {
            self.refuse_copy(&mut progress, expect).await?;
        }
        sent?;
        Ok(progress)
    }

    /// Receives and takes answers until the server is ready or wants rows.
    #[inline]
    pub(super) async fn collect<R: Rows>(
        &mut self,
        progress: &mut Progress,
        expect: Expect<'_>,
        rows: &mut R,
        done: &mut impl FnMut(DbResult<Executed>),
    ) -> DbResult<Stop> {
        loop {
            let stop = self.process_received(progress, expect, rows, done)?;
            if let Some(kept_bytes) = rows.overflow() {
                return Err(too_large(kept_bytes));
            }
            if let Some(stop) = stop {
                return Ok(stop);
            }
            if let Err(lost) = self.transport.recv(&mut self.inbox).await {
                // The server's reason is more exact than the broken connection.
                return Err(progress.error.take().filter(DbError::is_fatal).unwrap_or(lost));
            }
        }
    }

    /// Processes the messages that have arrived.
    #[inline]
    pub(super) fn process_received<R: Rows>(
        &mut self,
        progress: &mut Progress,
        expect: Expect<'_>,
        rows: &mut R,
        done: &mut impl FnMut(DbResult<Executed>),
    ) -> DbResult<Option<Stop>> {
        let bytes = self.inbox.filled();
        let mut at = progress.skip.min(bytes.len());
        progress.skip -= at;
        let mut stop = None;
        let mut needed = 0;
        while stop.is_none() {
            let Some(header) = frame::header(&bytes[at..]).map_err(broken)? else { break };
            let MessageHeader { tag, body_len } = header;
            let body_at = at + HEADER_BYTES;
            if tag == tag::DATA_ROW && !R::WANTED {
                progress.rows += 1;
                let end = (body_at + body_len).min(bytes.len());
                progress.skip = body_at + body_len - end;
                at = end;
                continue;
            }
            let Some(body) = bytes.get(body_at..body_at + body_len) else {
                needed = HEADER_BYTES + body_len;
                break;
            };
            at = body_at + body_len;
            stop = self.state.message(tag, body, progress, expect, rows, done).map_err(broken)?;
        }
        self.inbox.consume(at);
        if needed > 0 {
            self.inbox.reserve(needed)?;
        }
        Ok(stop)
    }

    /// Waits for a whole message and takes it out of the inbox, for the log-in.
    pub(super) async fn message(&mut self) -> DbResult<(u8, Vec<u8>)> {
        loop {
            let received = self.inbox.filled();
            if let Some(frame) = frame::next_frame(received).map_err(broken)? {
                let (len, message) = (frame.wire_len(), (frame.tag, frame.body.to_vec()));
                self.inbox.consume(len);
                return Ok(message);
            }
            if let Some(header) = frame::header(received).map_err(broken)? {
                self.inbox.reserve(HEADER_BYTES + header.body_len)?;
            }
            self.transport.recv(&mut self.inbox).await?;
        }
    }

    /// Refuses COPY FROM STDIN in ordinary statements.
    #[cold]
    async fn refuse_copy(&mut self, progress: &mut Progress, expect: Expect<'_>) -> DbResult<()> {
        if let Expect::Flight { steps, .. } = expect
            && !progress.is_last(steps)
        {
            return Err(copy_in_flight());
        }
        // Before the server's own error, which would be about a canceled statement.
        progress.fail(copy_refused());
        self.out.clear();
        frontend::copy_fail(&mut self.out, "only a bulk load can copy rows").map_err(broken)?;
        if let Expect::Flight { .. } = expect {
            // The copy has swallowed the Sync of the flight.
            frontend::sync(&mut self.out);
        }
        self.transport.send(&self.out).await
    }
}

impl State {
    /// The last value that the server has reported for a parameter.
    pub(super) fn parameter(&self, name: &str) -> Option<&str> {
        let at = KEPT_PARAMETERS.iter().position(|kept| *kept == name)?;
        self.parameters[at].as_deref()
    }

    /// The session is unusable until the server is ready again.
    #[inline]
    pub(super) fn begin_flight(&mut self) {
        self.usable = false;
        self.has_columns = false;
    }

    /// Takes one message of the server; returns a reason to stop, if it is one.
    #[inline]
    fn message<R: Rows>(
        &mut self,
        tag: u8,
        body: &[u8],
        progress: &mut Progress,
        expect: Expect<'_>,
        rows: &mut R,
        done: &mut impl FnMut(DbResult<Executed>),
    ) -> Result<Option<Stop>, WireError> {
        match tag {
            tag::BIND_COMPLETE => {
                if R::DESCRIBED
                    && let Some(prepared) = progress.prepared(expect)
                    && prepared.columns.is_some()
                {
                    rows.columns(&prepared.names);
                }
            }
            tag::PARSE_COMPLETE | tag::CLOSE_COMPLETE => {}
            tag::DATA_ROW => {
                let columns = match progress.prepared(expect) {
                    Some(prepared) => prepared.columns.as_deref(),
                    None => self.has_columns.then_some(&self.columns[..]),
                };
                let columns =
                    columns.ok_or(WireError("a row came from a statement without a result set"))?;
                progress.rows += 1;
                rows.row(&data_row(body, columns, &mut self.cells)?);
            }
            tag::COMMAND_COMPLETE | tag::EMPTY_QUERY => {
                self.complete_command(tag, body, progress, expect, rows, done)?;
            }
            tag::READY => {
                self.status = backend::ready(body)?;
                self.usable = match expect {
                    Expect::Flight { steps, .. } => progress.record_sync(steps, done)?,
                    Expect::Text | Expect::Description => true,
                };
                return Ok(self.usable.then_some(Stop::Ready));
            }
            tag::ROW_DESCRIPTION | tag::NO_DATA | tag::PARAMETER_DESCRIPTION => {
                self.describe_columns(tag, body, progress, expect, rows)?;
            }
            tag::ERROR => progress.fail(server_error(&backend::report(body)?)),
            tag::COPY_IN => return Ok(Some(Stop::CopyIn)),
            // COPY TO STDOUT ends with CommandComplete as usual.
            tag::COPY_OUT => progress.is_copy = true,
            tag::COPY_DATA | tag::COPY_DONE => {}
            _ => self.aside(tag, body)?,
        }
        Ok(None)
    }

    /// Messages that may come at any time.
    #[cold]
    pub(super) fn aside(&mut self, tag: u8, body: &[u8]) -> Result<(), WireError> {
        match tag {
            tag::NOTICE if self.notices.len() < NOTICE_LIMIT => {
                self.notices.push(notice_line(&backend::report(body)?));
            }
            tag::PARAMETER_STATUS => {
                let (name, value) = backend::parameter_status(body)?;
                if let Some(at) = KEPT_PARAMETERS.iter().position(|kept| kept.as_bytes() == name) {
                    self.parameters[at] = Some(server_text(value));
                }
            }
            tag::NOTICE | tag::NOTIFICATION => {}
            _ => return Err(WireError("a message came that has no place here")),
        }
        Ok(())
    }

    #[inline]
    fn complete_command<R: Rows>(
        &mut self,
        tag: u8,
        body: &[u8],
        progress: &mut Progress,
        expect: Expect<'_>,
        rows: &mut R,
        done: &mut impl FnMut(DbResult<Executed>),
    ) -> Result<(), WireError> {
        let has_rows = match progress.prepared(expect) {
            Some(prepared) => prepared.columns.is_some(),
            None => std::mem::take(&mut self.has_columns),
        };
        let affected = match tag {
            tag::COMMAND_COMPLETE => backend::rows_changed(body, has_rows)?,
            _ => 0,
        };
        let executed = Executed { has_rows, rows: std::mem::take(&mut progress.rows), affected };
        let outcome = if std::mem::take(&mut progress.is_copy) {
            Err(copy_refused())
        } else {
            if R::DESCRIBED {
                rows.finish_statement(executed);
            }
            Ok(executed)
        };
        match (expect, outcome) {
            (Expect::Flight { steps, .. }, outcome) => {
                progress.record_answer(steps, outcome, done)?
            }
            (Expect::Text | Expect::Description, Ok(executed)) => done(Ok(executed)),
            (Expect::Text | Expect::Description, Err(error)) => progress.fail(error),
        }
        Ok(())
    }

    #[inline]
    fn describe_columns<R: Rows>(
        &mut self,
        tag: u8,
        body: &[u8],
        progress: &mut Progress,
        expect: Expect<'_>,
        rows: &mut R,
    ) -> Result<(), WireError> {
        if tag == tag::PARAMETER_DESCRIPTION || progress.prepared(expect).is_some() {
            // The server compares the number of parameters in each execution. The columns of the preparation count: it
            // refuses a statement with changed columns.
        } else if tag == tag::NO_DATA {
            self.has_columns = false;
        } else {
            self.has_columns = true;
            let is_named = R::DESCRIBED || matches!(expect, Expect::Description);
            if R::WANTED || is_named {
                let names = is_named.then_some(&mut self.names);
                backend::row_description(body, &mut self.columns, names)?;
            }
            if R::DESCRIBED {
                rows.columns(&self.names);
            }
        }
        Ok(())
    }
}

#[cold]
fn copy_refused() -> DbError {
    let message = "COPY FROM STDIN and COPY TO STDOUT can't be executed as statements.";
    DbError::client_copy(ErrorClass::Other, message)
        .with_hint("COPY to or from a file or program of the server is possible")
}

/// The rest of a flight has ended a COPY, which no one can repair.
#[cold]
fn copy_in_flight() -> DbError {
    let message = "COPY FROM STDIN was sent together with other statements.";
    DbError::client_copy(ErrorClass::ConnectionLost, message)
        .with_hint("COPY FROM STDIN and COPY TO STDOUT can't be executed as statements")
}

#[cold]
fn unusable_error() -> DbError {
    DbError::lost(
        "The session can't be used any more: an earlier exchange with the server did not come to its end.",
    )
}
