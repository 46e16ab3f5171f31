//! One command out, one answer in.

use crate::endless::too_large;
use crate::net::{Inbox, Transport};
use dyno_core::{Cause, DbError, DbResult, ErrorClass, ErrorParts, Executed, Rows, Statement};
use dyno_wire::mysql::packet::{HEADER_BYTES, begin_packet, finish_packet};
use dyno_wire::mysql::{Answer, AnswerStep, CapabilityFlags, Definitions, Encoding, Malformed};
use std::task::{Poll, ready};

/// The longest packet with its header, and some room: the limit of an inbox. Longer payloads are joined elsewhere.
const INBOX_BYTES: usize = 17 << 20;
/// Larger buffers are freed before the next command.
const KEEP_BYTES: usize = 1 << 20;
/// CR_SERVER_GONE_ERROR, by which MySQL's client library says that a command could not be sent.
const SERVER_GONE: u32 = 2006;
/// CR_LOAD_DATA_LOCAL_INFILE_REJECTED, with which MySQL's client library refuses files.
const FILE_REJECTED: u32 = 2068;

#[derive(Debug)]
pub(super) struct Channel {
    pub(super) transport: Transport,
    pub(super) inbox: Inbox,
    pub(super) out: Vec<u8>,
    pub(super) answer: Answer,
    pub(super) deprecate_eof: bool,
    /// False from the sending of a command until its answer is complete, and for good after an abandoned call or a lost
    /// connection.
    pub(super) idle: bool,
    /// The execution that was submitted last.
    pub(super) submitted: SubmittedExecution,
    /// More commands are on their way behind the one whose answer is awaited: a server that asks for a file takes them
    /// for it.
    pub(super) is_ahead: bool,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct SubmittedExecution {
    pub(super) statement: Statement,
    /// Sequence number of the first packet of the answer.
    pub(super) sequence: u8,
}

#[derive(Debug)]
pub(super) enum Reply {
    Done(Executed),
    /// The server asks for this file first.
    FileRequest(Vec<u8>),
}

impl Channel {
    pub(super) fn new(transport: Transport, capabilities: CapabilityFlags, status: u16) -> Self {
        let deprecate_eof = capabilities.has(CapabilityFlags::DEPRECATE_EOF);
        let mut answer =
            Answer::new(deprecate_eof, capabilities.has(CapabilityFlags::CACHE_METADATA));
        if capabilities.has(CapabilityFlags::COMPRESS) {
            answer.allow_any_sequence();
        }
        answer.set_status(status);
        Channel {
            transport,
            inbox: Inbox::new(INBOX_BYTES),
            out: Vec::with_capacity(512),
            answer,
            deprecate_eof,
            idle: true,
            submitted: SubmittedExecution { statement: Statement(u32::MAX), sequence: 0 },
            is_ahead: false,
        }
    }

    /// Checks that no answer is outstanding, and empties the send buffer.
    #[inline]
    pub(super) fn begin(&mut self) -> DbResult<()> {
        self.check_idle()?;
        self.out.clear();
        if self.out.capacity() > KEEP_BYTES {
            self.out = Vec::with_capacity(512);
        }
        Ok(())
    }

    #[inline]
    pub(super) fn check_idle(&self) -> DbResult<()> {
        if self.idle { Ok(()) } else { Err(abandoned_error()) }
    }

    /// Sends `out` and awaits the answer, which starts with packet `sequence`. A server that ends the session says why
    /// before: its answer is read also where not all could be sent.
    #[inline]
    pub(super) async fn exchange<R: Rows>(
        &mut self,
        encoding: Encoding,
        sequence: u8,
        definitions: &mut Definitions,
        rows: &mut R,
    ) -> DbResult<Executed> {
        self.idle = false;
        let delivery = self.transport.send_buffer(&mut self.out).await;
        self.answer.begin(encoding, sequence);
        let answer = self.receive(definitions, rows).await;
        let executed = answer.map_err(|error| self.explain_loss(error, delivery.is_ok()))?;
        delivery.map(|()| executed)
    }

    /// Tells a command that could not be sent from one that was sent without an answer.
    #[cold]
    fn explain_loss(&self, error: DbError, is_sent: bool) -> DbError {
        let is_lost = error.cause() == Cause::Lost && !error.is_from_server();
        if is_lost && (!is_sent || self.transport.has_unsent()) {
            to_gone_error(error)
        } else {
            error
        }
    }

    /// Returns true if [`Channel::submit`] may take something.
    #[inline]
    pub(super) fn takes(&self) -> bool {
        self.transport.exchanges() && self.inbox.filled().is_empty()
    }

    /// Submits `out`, one execution, to be sent with the next wait; false if it can't be.
    #[inline]
    pub(super) fn submit(&mut self, execution: SubmittedExecution) -> bool {
        let is_submitted = self.transport.try_exchange(&mut self.out);
        if is_submitted {
            self.idle = false;
            self.submitted = execution;
        }
        is_submitted
    }

    /// Waits for the answer to what was submitted. `None` when it is not one that can be read at once; then
    /// [`Channel::receive_submitted`] has to read it.
    #[inline]
    pub(super) fn poll_submitted<R: Rows>(
        &mut self,
        mut definitions: Option<&mut Definitions>,
        rows: &mut R,
    ) -> Poll<DbResult<Option<Executed>>> {
        let Channel {
            transport,
            inbox,
            answer,
            submitted: SubmittedExecution { sequence, .. },
            ..
        } = self;
        let read =
            |received: &[u8]| answer.plain(received, *sequence, definitions.as_deref_mut(), rows);
        let executed = ready!(transport.poll_read(inbox, read));
        let executed = executed.map_err(|error| self.explain_loss(error, true))?;
        self.idle = executed.is_some();
        Poll::Ready(Ok(executed))
    }

    pub(super) async fn receive_submitted<R: Rows>(
        &mut self,
        encoding: Encoding,
        definitions: &mut Definitions,
        rows: &mut R,
    ) -> DbResult<Executed> {
        self.answer.begin(encoding, self.submitted.sequence);
        self.receive(definitions, rows).await
    }

    /// Awaits the rest of an answer; refuses a request for a file.
    #[inline]
    pub(super) async fn receive<R: Rows>(
        &mut self,
        definitions: &mut Definitions,
        rows: &mut R,
    ) -> DbResult<Executed> {
        match self.reply(definitions, rows).await? {
            Reply::Done(executed) => Ok(executed),
            Reply::FileRequest(name) => {
                Err(Box::pin(self.refuse_file(&name, definitions, rows)).await)
            }
        }
    }

    /// Awaits the end of an answer, or a request for a file.
    #[inline]
    pub(super) async fn reply<R: Rows>(
        &mut self,
        definitions: &mut Definitions,
        rows: &mut R,
    ) -> DbResult<Reply> {
        loop {
            if self.inbox.filled().is_empty() {
                self.transport.recv(&mut self.inbox).await?;
            }
            let scanned = self.answer.scan(self.inbox.filled(), definitions, rows);
            let (taken, step) = scanned.map_err(malformed_error)?;
            self.inbox.consume(taken);
            if let Some(kept_bytes) = rows.overflow() {
                return Err(too_large(kept_bytes));
            }
            match step {
                AnswerStep::Done(executed) => {
                    self.idle = true;
                    return Ok(Reply::Done(executed));
                }
                AnswerStep::More if self.inbox.filled().is_empty() => {}
                AnswerStep::More => self.transport.recv(&mut self.inbox).await?,
                AnswerStep::Failed(error) => {
                    let error = error.into_db_error();
                    self.idle = !error.is_fatal();
                    return Err(error);
                }
                AnswerStep::FileRequest(name) => return Ok(Reply::FileRequest(name)),
            }
        }
    }

    /// Sends an empty file to a server that asks for one without a load, and reports that as an error.
    #[cold]
    pub(super) async fn refuse_file<R: Rows>(
        &mut self,
        name: &[u8],
        definitions: &mut Definitions,
        rows: &mut R,
    ) -> DbError {
        self.push_empty_packet();
        if let Err(error) = self.transport.send(&self.out).await {
            return error;
        }
        let name = String::from_utf8_lossy(name);
        let refusal = DbError::server(
            ErrorClass::Other,
            FILE_REJECTED,
            *b"HY000",
            format!(
                "The server asked for the local file `{name}`, which was refused: statements of scripts and of one's \
                 own can't load local files (LOAD DATA LOCAL)."
            ),
        )
        .with_hint("load the data by INSERT; if no statement asks for a file, do not trust this server");
        match self.reply(definitions, rows).await {
            Err(error) if error.is_fatal() => error,
            // After the server's answer the session is in step again.
            Ok(Reply::Done(_)) | Err(_) if !self.is_ahead => refusal,
            // A second request ends the session.
            _ => {
                self.idle = false;
                refusal.with_class(ErrorClass::ConnectionLost)
            }
        }
    }

    /// Puts the empty packet that ends a file into `out`.
    pub(super) fn push_empty_packet(&mut self) {
        self.out.clear();
        let start = begin_packet(&mut self.out);
        debug_assert_eq!(self.out.len(), HEADER_BYTES);
        let next = finish_packet(&mut self.out, start, self.answer.next_sequence());
        self.answer.continue_at(next);
    }
}

#[cold]
fn abandoned_error() -> DbError {
    to_gone_error(DbError::lost(
        "An earlier statement has lost the connection, or its answer was given up.",
    ))
}

fn to_gone_error(error: DbError) -> DbError {
    ErrorParts { errno: SERVER_GONE, ..(*error).clone() }.into()
}

#[cold]
pub(super) fn malformed_error(error: Malformed) -> DbError {
    let text = error.to_string();
    let mut letters = text.chars();
    let first = letters.next().map(|c| c.to_ascii_uppercase()).unwrap_or_default();
    DbError::protocol(format!("{first}{}.", letters.as_str()))
}
