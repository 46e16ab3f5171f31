//! The PostgreSQL protocol, version 3.0. Source: postgresql.org/docs/15/protocol.html.

mod answer;
mod extended;
mod login;

use crate::answers::Statement;
use crate::bulk::BulkRows;
use crate::counters::Kind;
use crate::protocol::{
    Checked, LOGIN_MAX, Lent, LoopState, MESSAGE_MAX, OUTPUT_MAX, ReadResult, expect_empty,
};
use extended::Extended;

enum Phase {
    /// Before the startup packet, which has no type byte.
    Startup,
    Ready,
    /// `is_extended`: started by Execute. Sync and Flush are ignored until it ends, and a Sync must follow.
    CopyIn {
        bulk: BulkRows,
        is_extended: bool,
    },
}

pub(crate) struct Connection {
    phase: Phase,
    id: u32,
    in_transaction: bool,
    extended: Extended,
}

impl Connection {
    pub(crate) fn new(state: &mut LoopState) -> Self {
        Connection {
            phase: Phase::Startup,
            id: state.connection_id(),
            in_transaction: false,
            extended: Extended::default(),
        }
    }

    /// Answers complete messages; adds their bytes to `consumed`.
    pub(crate) fn feed(
        &mut self,
        lent: &mut Lent<'_>,
        input: &[u8],
        consumed: &mut usize,
    ) -> Checked<ReadResult> {
        while lent.out.len() < OUTPUT_MAX {
            let remaining = &input[*consumed..];
            let next = if matches!(self.phase, Phase::Startup) {
                let Some(body) = message_body(remaining, 0, LOGIN_MAX)? else {
                    return Ok(ReadResult::NeedsInput);
                };
                *consumed += 4 + body.len();
                self.startup(lent, body)?
            } else {
                let Some(body) = message_body(remaining, 1, MESSAGE_MAX)? else {
                    return Ok(ReadResult::NeedsInput);
                };
                *consumed += 5 + body.len();
                self.message(lent, remaining[0], body)?
            };
            if next == ReadResult::Close {
                return Ok(ReadResult::Close);
            }
        }
        Ok(ReadResult::Send)
    }

    fn message(&mut self, lent: &mut Lent<'_>, kind: u8, body: &[u8]) -> Checked<ReadResult> {
        match &mut self.phase {
            Phase::CopyIn { bulk, .. } if kind == b'd' => {
                bulk.feed(body)?;
                Ok(ReadResult::NeedsInput)
            }
            Phase::CopyIn { .. } => self.copy_control(lent, kind, body),
            // The rest of a batch that has failed.
            _ if self.extended.has_failed && kind != b'S' => Ok(ReadResult::NeedsInput),
            _ => self.request(lent, kind, body),
        }
    }

    fn request(&mut self, lent: &mut Lent<'_>, kind: u8, body: &[u8]) -> Checked<ReadResult> {
        let cells = lent.cells;
        match kind {
            b'B' => {
                cells.bind.add(1);
                self.extended.bind(body, lent.shared.is_empty)?;
                answer::empty(lent.out, b'2');
            }
            b'D' => {
                cells.describe.add(1);
                self.extended.describe(body, lent.out)?;
            }
            b'E' => {
                cells.execute.add(1);
                self.execute(lent, body)?;
            }
            b'S' => {
                expect_empty(body, "Sync")?;
                cells.sync.add(1);
                self.extended.synced(self.in_transaction);
                answer::ready(lent.out, self.in_transaction);
            }
            b'Q' => {
                cells.query.add(1);
                self.query(lent, body)?;
            }
            b'P' => {
                cells.prepare.add(1);
                let statement = self.extended.parse(&mut lent.shared.shape, body)?;
                if statement.is_unknown() {
                    self.extended.has_failed = true;
                    refuse_unknown(lent);
                } else {
                    answer::empty(lent.out, b'1');
                }
            }
            b'C' => {
                cells.close.add(1);
                self.extended.close(body)?;
                answer::empty(lent.out, b'3');
            }
            b'H' => {
                expect_empty(body, "Flush")?;
                cells.flush.add(1);
            }
            b'X' => {
                expect_empty(body, "Terminate")?;
                cells.quit.add(1);
                return Ok(ReadResult::Close);
            }
            _ => return Err(unexpected(kind)),
        }
        Ok(ReadResult::NeedsInput)
    }

    /// All statements of a text; each gets an answer, and one ReadyForQuery ends them.
    fn query(&mut self, lent: &mut Lent<'_>, body: &[u8]) -> Checked<()> {
        self.extended.expect_no_batch()?;
        let Some((0, sql)) = body.split_last() else {
            return Err("a Query message has no closing zero byte".into());
        };
        if sql.contains(&0) {
            return Err("a Query message has trailing bytes".into());
        }
        self.extended.forget_unnamed();
        let (mut start, mut count) = (0, 0u32);
        loop {
            let statement = Statement::read(sql, start, &mut lent.shared.shape)?;
            if statement.params > 0 {
                return Err("a Query message has a parameter".into());
            }
            if statement.kind == Kind::Empty {
                break;
            }
            if statement.is_unknown() {
                refuse_unknown(lent);
                answer::ready(lent.out, self.in_transaction);
                return Ok(());
            }
            count += 1;
            start = statement.end;
            lent.count(&statement);
            self.follow(statement.kind);
            if statement.kind == Kind::Load {
                if statement.is_followed(sql) {
                    return Err("COPY is not the last statement of its text".into());
                }
                answer::copy_in(lent.out);
                self.phase = Phase::CopyIn { bulk: BulkRows::default(), is_extended: false };
                return Ok(());
            }
            let mut rows = statement.affected;
            if !statement.columns().is_empty() {
                rows = statement.rows(lent.shared.is_empty);
                answer::row_description(lent.out, statement.columns(), 0);
                answer::rows(lent.out, statement.columns(), 0, rows);
                lent.cells.rows_sent.add(rows);
            }
            answer::complete(lent.out, statement.tag, rows);
        }
        if count == 0 {
            lent.cells.statement(Kind::Empty);
            answer::empty(lent.out, b'I');
        }
        answer::ready(lent.out, self.in_transaction);
        Ok(())
    }

    fn execute(&mut self, lent: &mut Lent<'_>, body: &[u8]) -> Checked<()> {
        let (portal, rows_max) = self.extended.portal_to_execute(body)?;
        let statement = portal.statement;
        if !portal.started {
            portal.started = true;
            lent.count(&statement);
            if statement.kind == Kind::Load {
                answer::copy_in(lent.out);
                self.phase = Phase::CopyIn { bulk: BulkRows::default(), is_extended: true };
                return Ok(());
            }
        }
        if statement.kind == Kind::Empty {
            answer::empty(lent.out, b'I');
        } else if statement.columns().is_empty() {
            answer::complete(lent.out, statement.tag, statement.affected);
        } else {
            let rows =
                if rows_max == 0 { portal.rows_left } else { portal.rows_left.min(rows_max) };
            portal.rows_left -= rows;
            lent.cells.rows_sent.add(rows);
            answer::rows(lent.out, statement.columns(), portal.formats, rows);
            if portal.rows_left > 0 {
                answer::empty(lent.out, b's');
            } else {
                answer::complete(lent.out, statement.tag, rows);
            }
        }
        self.follow(statement.kind);
        Ok(())
    }

    /// Transaction state after a statement.
    fn follow(&mut self, kind: Kind) {
        match kind {
            Kind::Begin => self.in_transaction = true,
            Kind::Commit | Kind::Rollback => self.in_transaction = false,
            _ => {}
        }
    }

    /// Anything but data while a COPY runs.
    fn copy_control(&mut self, lent: &mut Lent<'_>, kind: u8, body: &[u8]) -> Checked<ReadResult> {
        let Phase::CopyIn { bulk, is_extended } = &mut self.phase else {
            return Err(unexpected(kind));
        };
        let is_extended = *is_extended;
        match kind {
            b'S' | b'H' if is_extended => {
                return expect_empty(body, "Sync").map(|()| ReadResult::NeedsInput);
            }
            b'c' => {
                expect_empty(body, "CopyDone")?;
                bulk.finish()?;
                lent.cells.rows_loaded.add(bulk.rows);
                answer::complete(lent.out, "COPY ", bulk.rows);
            }
            b'f' => {
                let Some((0, reason)) = body.split_last() else {
                    return Err("CopyFail has no closing zero byte".into());
                };
                let reason = String::from_utf8_lossy(reason);
                let message = format!("COPY from stdin failed: {reason}");
                answer::error(lent.out, "ERROR", b"57014", &message);
                self.extended.has_failed = is_extended;
            }
            _ => return Err(unexpected(kind)),
        }
        self.phase = Phase::Ready;
        if !is_extended {
            answer::ready(lent.out, self.in_transaction);
        }
        Ok(ReadResult::NeedsInput)
    }
}

/// The body of the message at the start of `input`; its length stands at `at` and counts itself.
fn message_body(input: &[u8], at: usize, limit: usize) -> Checked<Option<&[u8]>> {
    let Some((length, rest)) = input.get(at..).and_then(|rest| rest.split_first_chunk()) else {
        return Ok(None);
    };
    let length = i32::from_be_bytes(*length);
    match usize::try_from(length) {
        Ok(length) if (4..=limit).contains(&length) => Ok(rest.get(..length - 4)),
        _ => Err(format!("a message of length {length}; 4 to {limit} are taken")),
    }
}

fn unexpected(kind: u8) -> String {
    format!("a message of type '{}' is not expected here", kind.escape_ascii())
}

fn refuse_unknown(lent: &mut Lent<'_>) {
    let message = lent.refuse_unknown();
    answer::error(lent.out, "ERROR", b"0A000", &message);
}

pub(crate) fn refuse(violation: &str, out: &mut Vec<u8>) {
    answer::error(out, "FATAL", b"08P01", &format!("protocol violation: {violation}"));
}
