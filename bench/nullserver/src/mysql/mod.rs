//! The MySQL protocol, MariaDB's dialect of it.
//! Source: mariadb.com/kb/en/clientserver-protocol and dev.mysql.com/doc/dev/mysql-server.

mod answer;
mod execute;
mod login;

use crate::answers::Statement;
use crate::bulk::BulkRows;
use crate::counters::Kind;
use crate::protocol::{
    Checked, LOGIN_MAX, Lent, LoopState, MESSAGE_MAX, OUTPUT_MAX, ReadResult, expect_empty,
};
use answer::{Answer, Encoding};
use std::collections::HashMap;

const STATEMENTS_MAX: usize = 65_536;

mod capability {
    pub(super) const LONG_PASSWORD: u64 = 1;
    pub(super) const FOUND_ROWS: u64 = 1 << 1;
    pub(super) const LONG_FLAG: u64 = 1 << 2;
    pub(super) const CONNECT_WITH_DB: u64 = 1 << 3;
    pub(super) const COMPRESS: u64 = 1 << 5;
    pub(super) const LOCAL_FILES: u64 = 1 << 7;
    pub(super) const PROTOCOL_41: u64 = 1 << 9;
    pub(super) const SSL: u64 = 1 << 11;
    pub(super) const TRANSACTIONS: u64 = 1 << 13;
    pub(super) const SECURE_CONNECTION: u64 = 1 << 15;
    pub(super) const MULTI_STATEMENTS: u64 = 1 << 16;
    pub(super) const MULTI_RESULTS: u64 = 1 << 17;
    pub(super) const PS_MULTI_RESULTS: u64 = 1 << 18;
    pub(super) const PLUGIN_AUTH: u64 = 1 << 19;
    pub(super) const CONNECT_ATTRS: u64 = 1 << 20;
    pub(super) const PLUGIN_AUTH_LENENC: u64 = 1 << 21;
    pub(super) const DEPRECATE_EOF: u64 = 1 << 24;
    pub(super) const ZSTD: u64 = 1 << 26;
    pub(super) const QUERY_ATTRIBUTES: u64 = 1 << 27;
    /// Of MariaDB, whose own bits are above 32: a result may leave out known columns.
    pub(super) const CACHE_METADATA: u64 = 1 << 36;

    pub(super) const ANNOUNCED: u64 = FOUND_ROWS
        | LONG_FLAG
        | CONNECT_WITH_DB
        | LOCAL_FILES
        | PROTOCOL_41
        | TRANSACTIONS
        | SECURE_CONNECTION
        | MULTI_STATEMENTS
        | MULTI_RESULTS
        | PS_MULTI_RESULTS
        | PLUGIN_AUTH
        | CONNECT_ATTRS
        | PLUGIN_AUTH_LENENC
        | DEPRECATE_EOF
        | CACHE_METADATA;
    /// Bits that change the protocol and were not announced: a client may not set them.
    pub(super) const NEVER: u64 = COMPRESS | SSL | ZSTD | QUERY_ATTRIBUTES;
}

const IN_TRANSACTION: u16 = 1;
const AUTOCOMMIT: u16 = 2;
const MORE_RESULTS: u16 = 8;

struct Prepared {
    statement: Statement,
    /// Parameter types of the last execution that sent them.
    types: Vec<u8>,
    /// The client has seen the columns in an execution.
    columns_known: bool,
}

enum Phase {
    /// The greeting is out.
    Login,
    AuthSwitch,
    Command,
    Infile(BulkRows),
}

pub(crate) struct Connection {
    phase: Phase,
    id: u32,
    capabilities: u64,
    in_transaction: bool,
    statements: HashMap<u32, Prepared>,
    last_statement: u32,
    /// Sequence number of the next packet of the answer, and of the next packet expected.
    sequence: u8,
}

impl Connection {
    pub(crate) fn new(state: &mut LoopState) -> Self {
        Connection {
            phase: Phase::Login,
            id: state.connection_id(),
            capabilities: 0,
            in_transaction: false,
            statements: HashMap::new(),
            last_statement: 0,
            sequence: 1,
        }
    }

    /// Answers complete packets; adds their bytes to `consumed`.
    pub(crate) fn feed(
        &mut self,
        lent: &mut Lent<'_>,
        input: &[u8],
        consumed: &mut usize,
    ) -> Checked<ReadResult> {
        let is_known = matches!(self.phase, Phase::Command | Phase::Infile(_));
        let limit = if is_known { MESSAGE_MAX - 2 } else { LOGIN_MAX };
        while lent.out.len() < OUTPUT_MAX {
            let Some(([a, b, c, sequence], rest)) = input[*consumed..].split_first_chunk() else {
                return Ok(ReadResult::NeedsInput);
            };
            let length = u32::from_le_bytes([*a, *b, *c, 0]) as usize;
            if length > limit {
                return Err(format!("a packet of {length} bytes; at most {limit} are taken"));
            }
            let Some(payload) = rest.get(..length) else { return Ok(ReadResult::NeedsInput) };
            *consumed += 4 + length;
            if self.packet(lent, *sequence, payload)? == ReadResult::Close {
                return Ok(ReadResult::Close);
            }
        }
        Ok(ReadResult::Send)
    }

    fn packet(&mut self, lent: &mut Lent<'_>, sequence: u8, payload: &[u8]) -> Checked<ReadResult> {
        let expected = if matches!(self.phase, Phase::Command) { 0 } else { self.sequence };
        self.sequence = sequence.wrapping_add(1);
        if sequence != expected {
            return Err(format!("a packet is number {sequence} instead of {expected}"));
        }
        match &mut self.phase {
            Phase::Command => self.command(lent, payload),
            Phase::Infile(bulk) if !payload.is_empty() => {
                bulk.feed(payload)?;
                Ok(ReadResult::NeedsInput)
            }
            Phase::Infile(bulk) => {
                bulk.finish()?;
                let rows = bulk.rows;
                lent.cells.rows_loaded.add(rows);
                self.phase = Phase::Command;
                self.answer(lent.out, 0).ok(rows);
                Ok(ReadResult::NeedsInput)
            }
            Phase::Login | Phase::AuthSwitch => self.login(lent, payload),
        }
    }

    fn status(&self) -> u16 {
        if self.in_transaction { AUTOCOMMIT | IN_TRANSACTION } else { AUTOCOMMIT }
    }

    /// A writer that continues with the packet numbers.
    fn answer<'a>(&'a mut self, out: &'a mut Vec<u8>, more: u16) -> Answer<'a> {
        let status = self.status() | more;
        Answer { out, sequence: &mut self.sequence, capabilities: self.capabilities, status }
    }

    pub(crate) fn refuse(&mut self, violation: &str, out: &mut Vec<u8>) {
        // 1835 is ER_MALFORMED_PACKET.
        let message = format!("protocol violation: {violation}");
        self.answer(out, 0).error(1835, b"08S01", &message);
    }

    fn command(&mut self, lent: &mut Lent<'_>, payload: &[u8]) -> Checked<ReadResult> {
        let Some((&command, body)) = payload.split_first() else {
            return Err("a command packet is empty".into());
        };
        let cells = lent.cells;
        match command {
            0x17 => {
                cells.execute.add(1);
                self.execute(lent, body)?;
            }
            0x03 => {
                cells.query.add(1);
                self.query(lent, body)?;
            }
            0x16 => {
                cells.prepare.add(1);
                self.prepare(lent, body)?;
            }
            0x19 => {
                cells.close.add(1);
                let id = self.statement_id(body, "COM_STMT_CLOSE")?;
                self.statements.remove(&id);
            }
            0x1a => {
                cells.reset.add(1);
                self.statement_id(body, "COM_STMT_RESET")?;
                self.answer(lent.out, 0).ok(0);
            }
            0x01 => {
                expect_empty(body, "COM_QUIT")?;
                cells.quit.add(1);
                return Ok(ReadResult::Close);
            }
            0x02 => {
                cells.init_db.add(1);
                self.answer(lent.out, 0).ok(0);
            }
            0x0e => {
                expect_empty(body, "COM_PING")?;
                cells.ping.add(1);
                self.answer(lent.out, 0).ok(0);
            }
            0x1b => {
                cells.set_option.add(1);
                self.set_option(body)?;
                self.answer(lent.out, 0).end_of_rows();
            }
            0x1f => {
                expect_empty(body, "COM_RESET_CONNECTION")?;
                cells.reset.add(1);
                self.statements.clear();
                self.in_transaction = false;
                self.answer(lent.out, 0).ok(0);
            }
            _ => return Err(format!("command 0x{command:02x} is not answered")),
        }
        Ok(ReadResult::NeedsInput)
    }

    /// The statement that is all of `body`.
    fn statement_id(&self, body: &[u8], command: &str) -> Checked<u32> {
        let Ok(id) = body.try_into().map(u32::from_le_bytes) else {
            return Err(format!("{command} has {} bytes instead of 4", body.len()));
        };
        if self.statements.contains_key(&id) {
            Ok(id)
        } else {
            Err(format!("{command} names the unknown statement {id}"))
        }
    }

    fn set_option(&mut self, body: &[u8]) -> Checked<()> {
        match body {
            [0, 0] => self.capabilities |= capability::MULTI_STATEMENTS,
            [1, 0] => self.capabilities &= !capability::MULTI_STATEMENTS,
            _ => return Err("COM_SET_OPTION sets an option that does not exist".into()),
        }
        Ok(())
    }

    /// All statements of a text; each gets a result.
    fn query(&mut self, lent: &mut Lent<'_>, sql: &[u8]) -> Checked<()> {
        let mut statement = Statement::read(sql, 0, &mut lent.shared.shape)?;
        loop {
            if statement.params > 0 {
                return Err("a text query has a parameter mark".into());
            }
            let is_followed = statement.is_followed(sql);
            if is_followed && self.capabilities & capability::MULTI_STATEMENTS == 0 {
                return Err("several statements stand in one text, which was not negotiated".into());
            }
            self.statement(lent, sql, &statement, if is_followed { MORE_RESULTS } else { 0 });
            if !is_followed {
                return Ok(());
            }
            if matches!(self.phase, Phase::Infile(_)) {
                return Err("LOAD DATA is not the last statement of its text".into());
            }
            statement = Statement::read(sql, statement.end, &mut lent.shared.shape)?;
        }
    }

    /// Answers one statement of a text query.
    fn statement(&mut self, lent: &mut Lent<'_>, sql: &[u8], statement: &Statement, more: u16) {
        if self.is_refused(lent, statement, more) {
            return;
        }
        lent.count(statement);
        self.follow(statement.kind);
        if statement.kind == Kind::Load {
            if self.capabilities & capability::LOCAL_FILES == 0 {
                let message = "The client did not allow LOAD DATA LOCAL INFILE";
                return self.answer(lent.out, more).error(4166, b"HY000", message);
            }
            let (start, end) = statement.quoted;
            self.answer(lent.out, 0).infile(&sql[start..end]);
            self.phase = Phase::Infile(BulkRows::default());
        } else if statement.columns().is_empty() {
            self.answer(lent.out, more).ok(statement.affected);
        } else {
            let rows = statement.rows(lent.shared.is_empty);
            lent.cells.rows_sent.add(rows);
            let answer = self.answer(lent.out, more);
            answer.result(statement.columns(), rows, Encoding::Text, true);
        }
    }

    /// Answers an empty text and a query without a canned answer with an error.
    fn is_refused(&mut self, lent: &mut Lent<'_>, statement: &Statement, more: u16) -> bool {
        let (code, state, message) = if statement.kind == Kind::Empty {
            lent.count(statement);
            (1065, b"42000", "Query was empty".to_owned())
        } else if statement.is_unknown() {
            (1235, b"42000", lent.refuse_unknown())
        } else {
            return false;
        };
        self.answer(lent.out, more).error(code, state, &message);
        true
    }

    /// Transaction state after a statement.
    fn follow(&mut self, kind: Kind) {
        match kind {
            Kind::Begin => self.in_transaction = true,
            Kind::Commit | Kind::Rollback | Kind::Ddl => self.in_transaction = false,
            _ => {}
        }
    }

    fn prepare(&mut self, lent: &mut Lent<'_>, sql: &[u8]) -> Checked<()> {
        let statement = Statement::read_only_one(sql, &mut lent.shared.shape)?;
        if self.is_refused(lent, &statement, 0) {
            return Ok(());
        }
        let refusal = match statement.kind {
            Kind::Load => Some((1295, b"HY000", "LOAD DATA cannot be prepared")),
            _ if self.statements.len() >= STATEMENTS_MAX => {
                let message = "Can't create more than max_prepared_stmt_count statements";
                Some((1461, b"42000", message))
            }
            _ => None,
        };
        if let Some((code, state, message)) = refusal {
            self.answer(lent.out, 0).error(code, state, message);
            return Ok(());
        }
        self.last_statement += 1;
        let id = self.last_statement;
        self.answer(lent.out, 0).prepared(id, &statement);
        let prepared = Prepared { statement, types: Vec::new(), columns_known: false };
        self.statements.insert(id, prepared);
        Ok(())
    }

    fn execute(&mut self, lent: &mut Lent<'_>, body: &[u8]) -> Checked<()> {
        let Some((id, body)) = body.split_first_chunk() else {
            return Err("COM_STMT_EXECUTE ends inside the statement id".into());
        };
        let id = u32::from_le_bytes(*id);
        let Some(prepared) = self.statements.get_mut(&id) else {
            return Err(format!("COM_STMT_EXECUTE names the unknown statement {id}"));
        };
        let row_exists = execute::check(body, &prepared.statement, &mut prepared.types)?;
        let statement = prepared.statement;
        let with_columns = !std::mem::replace(&mut prepared.columns_known, true);
        lent.count(&statement);
        self.follow(statement.kind);
        if statement.columns().is_empty() {
            self.answer(lent.out, 0).ok(statement.affected);
        } else {
            let rows = if row_exists { statement.rows(lent.shared.is_empty) } else { 0 };
            lent.cells.rows_sent.add(rows);
            let answer = self.answer(lent.out, 0);
            answer.result(statement.columns(), rows, Encoding::Binary, with_columns);
        }
        Ok(())
    }
}
