//! Types shared by the loop and the two protocols.

use crate::Config;
use crate::answers::Statement;
use crate::counters::{Cells, Kind, Notes};
use std::time::{Duration, Instant};

/// Largest message of either protocol that is taken as a whole.
pub(crate) const MESSAGE_MAX: usize = 16 * 1024 * 1024;
/// Largest message before the client is known.
pub(crate) const LOGIN_MAX: usize = 10_000;
/// Answers collected before they are sent, in bytes; one answer may exceed it.
pub(crate) const OUTPUT_MAX: usize = 256 * 1024;

/// The error describes a request against the protocol.
pub(crate) type Checked<T> = Result<T, String>;

/// The step after the reading of requests. `NeedsInput`: the rest is not a complete message. `Send`: enough was
/// answered for one send; call again after it. `Close`: after sending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReadResult {
    NeedsInput,
    Send,
    Close,
}

pub(crate) struct Lent<'a> {
    pub(crate) cells: &'a Cells,
    pub(crate) notes: &'a Notes,
    /// Answers that are not sent yet.
    pub(crate) out: &'a mut Vec<u8>,
    /// Delay of each answer.
    pub(crate) delay: Duration,
    pub(crate) shared: &'a mut LoopState,
}

impl Lent<'_> {
    /// Makes the answer late: a sleep would not be exact to a microsecond.
    #[inline]
    pub(crate) fn wait(&self) {
        if self.delay.is_zero() {
            return;
        }
        let start = Instant::now();
        while start.elapsed() < self.delay {
            std::hint::spin_loop();
        }
    }

    /// Counts an executed statement.
    #[inline]
    pub(crate) fn count(&self, statement: &Statement) {
        self.cells.statement(statement.kind);
        if statement.kind == Kind::Insert {
            self.cells.rows_inserted.add(statement.affected);
        }
    }

    /// Refuses a query that no canned answer fits; returns the message.
    #[cold]
    pub(crate) fn refuse_unknown(&self) -> String {
        self.cells.unknown.add(1);
        let shape = String::from_utf8_lossy(&self.shared.shape);
        format!("the null server has no canned answer to: {shape}")
    }
}

pub(crate) struct LoopState {
    /// No table is in the catalog.
    pub(crate) is_empty: bool,
    /// The shape of the text that is being read; reused, so that queries allocate nothing.
    pub(crate) shape: Vec<u8>,
    connection_ids: u32,
}

impl LoopState {
    /// `index` is the loop's number; connection ids of different loops differ.
    pub(crate) fn new(config: &Config, index: usize) -> Self {
        let connection_ids = (index as u32) << 24;
        LoopState { is_empty: config.is_empty, shape: Vec::new(), connection_ids }
    }

    pub(crate) fn connection_id(&mut self) -> u32 {
        self.connection_ids = self.connection_ids.wrapping_add(1);
        self.connection_ids
    }
}

/// Reads a message field by field. Every reader fails at the end of the message.
pub(crate) struct Fields<'a> {
    pub(crate) rest: &'a [u8],
}

impl<'a> Fields<'a> {
    pub(crate) fn new(message: &'a [u8]) -> Self {
        Fields { rest: message }
    }

    #[inline]
    pub(crate) fn bytes(&mut self, length: usize) -> Checked<&'a [u8]> {
        let (taken, rest) =
            self.rest.split_at_checked(length).ok_or_else(|| self.describe_short_input(length))?;
        self.rest = rest;
        Ok(taken)
    }

    #[inline]
    pub(crate) fn array<const N: usize>(&mut self) -> Checked<[u8; N]> {
        let (taken, rest) =
            self.rest.split_first_chunk().ok_or_else(|| self.describe_short_input(N))?;
        self.rest = rest;
        Ok(*taken)
    }

    #[cold]
    fn describe_short_input(&self, length: usize) -> String {
        let remaining = self.rest.len();
        format!("a field of {length} bytes stands where only {remaining} are left")
    }

    #[inline]
    pub(crate) fn u8(&mut self) -> Checked<u8> {
        self.array().map(|[byte]| byte)
    }

    /// Bytes up to a zero byte, which is consumed too.
    #[inline]
    pub(crate) fn until_zero(&mut self) -> Checked<&'a [u8]> {
        let Some(length) = self.rest.iter().position(|&byte| byte == 0) else {
            return Err("a text has no closing zero byte".into());
        };
        let text = &self.rest[..length];
        self.rest = &self.rest[length + 1..];
        Ok(text)
    }

    /// Fails if something is left.
    #[inline]
    pub(crate) fn finish(&self, message: &str) -> Checked<()> {
        expect_empty(self.rest, message)
    }
}

pub(crate) fn expect_empty(body: &[u8], message: &str) -> Checked<()> {
    if body.is_empty() {
        return Ok(());
    }
    Err(format!("{message} has {} trailing bytes", body.len()))
}
