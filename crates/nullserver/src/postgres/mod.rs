//! The PostgreSQL protocol, version 3.0. Source: postgresql.org/docs/15/protocol.html.

mod answer;
mod extended;
mod login;

use crate::bulk::BulkRows;
use crate::counters::Kind;
use crate::protocol::{
    Checked, LOGIN_MAX, Lent, LoopState, MESSAGE_MAX, OUTPUT_MAX, ReadResult, expect_empty,
};
use crate::sql::{Dialect, Plan, parse};
use extended::Extended;

enum Phase {
    /// Before the startup packet, which has no type byte.
    Startup,
    Password,
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
    salt: [u8; 4],
    user: Vec<u8>,
    in_transaction: bool,
    extended: Extended,
}

impl Connection {
    pub(crate) fn new(state: &mut LoopState) -> Self {
        Connection {
            phase: Phase::Startup,
            id: state.connection_id(),
            salt: state.salt(),
            user: Vec::new(),
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
            let rest = &input[*consumed..];
            let next = if matches!(self.phase, Phase::Startup) {
                let Some(body) = body_of(rest, 0, LOGIN_MAX)? else {
                    return Ok(ReadResult::NeedsInput);
                };
                *consumed += 4 + body.len();
                self.startup(lent, body)?
            } else {
                let known = !matches!(self.phase, Phase::Password);
                let limit = if known { MESSAGE_MAX } else { LOGIN_MAX };
                let Some(body) = body_of(rest, 1, limit)? else {
                    return Ok(ReadResult::NeedsInput);
                };
                *consumed += 5 + body.len();
                self.message(lent, rest[0], body)?
            };
            if next == ReadResult::Close {
                return Ok(ReadResult::Close);
            }
        }
        Ok(ReadResult::Send)
    }

    fn message(&mut self, lent: &mut Lent<'_>, kind: u8, body: &[u8]) -> Checked<ReadResult> {
        match &mut self.phase {
            Phase::Ready => self.request(lent, kind, body),
            Phase::CopyIn { bulk, .. } if kind == b'd' => {
                bulk.feed(body)?;
                Ok(ReadResult::NeedsInput)
            }
            Phase::CopyIn { .. } => self.copy_control(lent, kind, body),
            Phase::Password | Phase::Startup => self.password(lent, kind, body),
        }
    }

    fn request(&mut self, lent: &mut Lent<'_>, kind: u8, body: &[u8]) -> Checked<ReadResult> {
        let cells = lent.cells;
        match kind {
            b'B' => {
                cells.bind.add(1);
                self.extended.bind(body)?;
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
                self.extended.parse(&mut lent.shared.postgres_plans, body)?;
                answer::empty(lent.out, b'1');
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
        let mut plan = std::mem::take(&mut lent.shared.plan);
        let result = self.statements_of(lent, sql, &mut plan);
        lent.shared.plan = plan;
        result
    }

    fn statements_of(&mut self, lent: &mut Lent<'_>, sql: &[u8], plan: &mut Plan) -> Checked<()> {
        let (mut start, mut count) = (0, 0u32);
        loop {
            parse(sql, start, Dialect::Postgres, plan)?;
            if !plan.params.is_empty() {
                return Err("a Query message has a parameter".into());
            }
            if plan.kind == Kind::Empty {
                break;
            }
            count += 1;
            start = plan.end;
            lent.count(plan);
            self.follow(plan.kind);
            if let Some(load) = &plan.load {
                answer::copy_in(lent.out, load);
                self.phase = Phase::CopyIn { bulk: BulkRows::new(load), is_extended: false };
                let mut rest = Plan::default();
                parse(sql, start, Dialect::Postgres, &mut rest)?;
                if rest.kind != Kind::Empty {
                    return Err("COPY is not the last statement of its text".into());
                }
                return Ok(());
            }
            let mut rows = plan.affected;
            if !plan.columns.is_empty() {
                rows = lent.shared.row_count(sql, plan);
                answer::row_description(lent.out, sql, &plan.columns, 0);
                answer::rows(lent.out, sql, &plan.columns, 0, rows);
                lent.cells.rows_sent.add(rows);
            }
            answer::complete(lent.out, sql, plan, rows);
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
        let statement = std::rc::Rc::clone(&portal.statement);
        let (sql, plan) = (&statement.sql[..], &statement.plan);
        if !portal.started {
            portal.started = true;
            lent.count(plan);
            if let Some(load) = &plan.load {
                answer::copy_in(lent.out, load);
                self.phase = Phase::CopyIn { bulk: BulkRows::new(load), is_extended: true };
                return Ok(());
            }
        }
        if plan.kind == Kind::Empty {
            answer::empty(lent.out, b'I');
        } else if plan.columns.is_empty() {
            answer::complete(lent.out, sql, plan, plan.affected);
        } else {
            let rows =
                if rows_max == 0 { portal.rows_left } else { portal.rows_left.min(rows_max) };
            portal.rows_left -= rows;
            lent.cells.rows_sent.add(rows);
            answer::rows(lent.out, sql, &plan.columns, portal.formats, rows);
            if portal.rows_left > 0 {
                answer::empty(lent.out, b's');
            } else {
                answer::complete(lent.out, sql, plan, rows);
            }
        }
        self.follow(plan.kind);
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
                answer::copied(lent.out, bulk.rows);
            }
            b'f' => {
                let Some((0, reason)) = body.split_last() else {
                    return Err("CopyFail has no closing zero byte".into());
                };
                let reason = String::from_utf8_lossy(reason);
                let message = format!("COPY from stdin failed: {reason}");
                answer::error(lent.out, "ERROR", b"57014", &message);
                self.extended.fail(is_extended);
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
fn body_of(input: &[u8], at: usize, limit: usize) -> Checked<Option<&[u8]>> {
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

pub(crate) fn refuse(violation: &str, out: &mut Vec<u8>) {
    answer::error(out, "FATAL", b"08P01", &format!("protocol violation: {violation}"));
}
