//! One open connection.

use std::task::Poll;

use dyno_core::{
    Address, AnswerTable, BulkFallback, BulkMethod, BulkReport, Capabilities, DbError, DbResult,
    Dialect, Discard, ErrorClass, Executed, FlightAnswers, Nanos, Param, ParamType, Product,
    RowSource, Rows, Session, SessionProof, Statement, StatementTable, is_shardingsphere,
};
use dyno_wire::mysql::answer::{STATUS_IN_TRANSACTION, STATUS_NO_BACKSLASH_ESCAPES};
use dyno_wire::mysql::packet::classify;
use dyno_wire::mysql::packet::{HEADER_BYTES, begin_packet, finish_packet};
use dyno_wire::mysql::row::InsertRows;
use dyno_wire::mysql::statement::{
    COM_QUERY, COM_QUIT, COM_STMT_CLOSE, COM_STMT_PREPARE, PrepareStep, WrongParamCount,
    push_command,
};
use dyno_wire::mysql::{Definitions, Encoding, PrepareAnswer, Prepared};
use dyno_wire::text_rows::TextRows;

use super::channel::{Channel, Reply, SubmittedExecution, malformed_error};
use crate::endless;

/// ER_UNSUPPORTED_PS.
const CANNOT_BE_PREPARED: u32 = 1295;

/// Commands sent before any of their answers is read. Both queues of the sockets hold at least this much, so that
/// sending never waits for a server that waits for a reader.
const WINDOW_BYTES: usize = 64 << 10;

#[derive(Debug)]
pub struct MysqlSession {
    pub(super) channel: Channel,
    statements: StatementTable<Slot>,
    /// Columns of answers to text.
    pub(super) definitions: Definitions,
    flight: Vec<Queued>,
    product: Product,
    /// Both sides can do LOAD DATA LOCAL.
    pub(super) local_files: bool,
    /// The method with which the user has logged in.
    method: &'static str,
    address: Address,
    /// Names and values of variables that the target's URL sets.
    pub(super) variables: Vec<(String, String)>,
}

#[derive(Debug)]
enum Slot {
    Prepared(Prepared),
    /// Can't be prepared; sent as text.
    Text(Box<[u8]>),
}

/// A command in `out` that waits to be sent.
#[derive(Clone, Copy, Debug)]
struct Queued {
    statement: Statement,
    /// Sequence number of the answer's first packet.
    sequence: u8,
    /// Its end in `out`.
    end: usize,
}

impl MysqlSession {
    pub(super) fn new(
        channel: Channel,
        product: Product,
        local_files: bool,
        method: &'static str,
        address: &Address,
    ) -> Self {
        MysqlSession {
            channel,
            statements: StatementTable::default(),
            definitions: Definitions::default(),
            flight: Vec::new(),
            product,
            local_files,
            method,
            address: address.clone(),
            variables: Vec::new(),
        }
    }

    /// Begins a command; fails if queued executions have not been sent.
    #[inline]
    fn begin(&mut self) -> DbResult<()> {
        if self.channel.idle && !self.flight.is_empty() {
            return Err(misuse_error("queued executions must be flushed before the next command"));
        }
        self.channel.begin()
    }

    async fn send_query<R: Rows>(&mut self, sql: &[u8], rows: &mut R) -> DbResult<Executed> {
        self.begin()?;
        let sequence = push_command(&mut self.channel.out, COM_QUERY, sql);
        self.channel.exchange(Encoding::Text, sequence, &mut self.definitions, rows).await
    }

    /// Sends a PREPARE; returns the statement's number, its placeholders and its columns.
    async fn send_prepare(&mut self, sql: &[u8]) -> DbResult<(u32, u16, Definitions)> {
        self.begin()?;
        let channel = &mut self.channel;
        let sequence = push_command(&mut channel.out, COM_STMT_PREPARE, sql);
        let mut answer = PrepareAnswer::new(channel.deprecate_eof, sequence);
        channel.idle = false;
        let delivery = channel.transport.send(&channel.out).await;
        loop {
            let (taken, step) = answer.scan(channel.inbox.filled()).map_err(malformed_error)?;
            channel.inbox.consume(taken);
            match step {
                PrepareStep::More => channel.transport.recv(&mut channel.inbox).await?,
                PrepareStep::Done { id, params, definitions } => {
                    channel.idle = true;
                    return delivery.map(|()| (id, params, definitions));
                }
                PrepareStep::Failed(error) => {
                    let error = error.into_db_error();
                    channel.idle = !error.is_fatal();
                    return Err(error);
                }
            }
        }
    }
}

const MARIADB: Capabilities = Capabilities {
    domain_gtids: true,
    materialize_derived: Some("SET SESSION optimizer_switch = 'split_materialized=off'"),
    explain: &["explain format=json", "explain"],
    ..Capabilities::MYSQL
};

impl Session for MysqlSession {
    fn dialect(&self) -> Dialect {
        Dialect::Mysql
    }

    fn product(&self) -> &Product {
        &self.product
    }

    fn proof(&self) -> Option<SessionProof> {
        Some(SessionProof { tls: self.channel.transport.tls(), method: self.method, process: None })
    }

    fn capabilities(&self) -> &'static Capabilities {
        if self.product.name == "MariaDB" { &MARIADB } else { &Capabilities::MYSQL }
    }

    fn is_set_by_target(&self, name: &str) -> bool {
        self.variables.iter().any(|(variable, _)| variable.eq_ignore_ascii_case(name))
    }

    async fn prepare(&mut self, sql: &str, params: &[ParamType]) -> DbResult<Statement> {
        self.prepare_bytes(sql.as_bytes(), params, None).await
    }

    async fn prepare_bytes(
        &mut self,
        sql: &[u8],
        params: &[ParamType],
        _name: Option<&str>,
    ) -> DbResult<Statement> {
        match self.send_prepare(sql).await {
            Ok((_, count, _)) if usize::from(count) != params.len() => {
                let count = WrongParamCount { expected: count.into(), given: params.len() };
                Err(wrong_count(count).with_detail(String::from_utf8_lossy(sql)))
            }
            Ok((id, _, definitions)) => {
                Ok(self.statements.add(Slot::Prepared(Prepared::new(id, params, definitions))))
            }
            Err(error) if error.errno() == CANNOT_BE_PREPARED && params.is_empty() => {
                Ok(self.statements.add(Slot::Text(sql.into())))
            }
            Err(error) => Err(error),
        }
    }

    async fn forget(&mut self, statement: Statement) -> DbResult<()> {
        self.begin()?;
        match self.statements.remove(statement).ok_or_else(unknown_statement)? {
            Slot::Prepared(prepared) => {
                let channel = &mut self.channel;
                prepared.encode_close(&mut channel.out);
                channel.idle = false;
                channel.transport.send(&channel.out).await?;
                channel.idle = true;
                Ok(())
            }
            Slot::Text(_) => Ok(()),
        }
    }

    #[inline]
    async fn execute<R: Rows>(
        &mut self,
        statement: Statement,
        params: &[Param<'_>],
        rows: &mut R,
    ) -> DbResult<Executed> {
        self.begin()?;
        let slot = self.statements.get_mut(statement).ok_or_else(unknown_statement)?;
        let out = &mut self.channel.out;
        match slot {
            Slot::Prepared(prepared) => {
                let sequence = prepared.encode(params, out).map_err(wrong_count)?;
                let definitions = &mut prepared.definitions;
                let answer = self.channel.exchange(Encoding::Binary, sequence, definitions, rows);
                let answer = answer.await;
                if answer.is_err() {
                    prepared.forget_types();
                }
                answer
            }
            Slot::Text(sql) => {
                no_params(params)?;
                let sequence = push_command(out, COM_QUERY, sql);
                self.channel.exchange(Encoding::Text, sequence, &mut self.definitions, rows).await
            }
        }
    }

    #[inline]
    fn give(&mut self, statement: Statement, params: &[Param<'_>]) -> DbResult<bool> {
        self.begin()?;
        let slot = self.statements.get_mut(statement).ok_or_else(unknown_statement)?;
        let Slot::Prepared(prepared) = slot else { return Ok(false) };
        if !self.channel.takes() {
            return Ok(false);
        }
        let sequence = prepared.encode(params, &mut self.channel.out).map_err(wrong_count)?;
        let is_submitted = self.channel.submit(SubmittedExecution { statement, sequence });
        if !is_submitted {
            // What is encoded once more must not lack them.
            prepared.forget_types();
        }
        Ok(is_submitted)
    }

    #[inline]
    fn poll_submitted<R: Rows>(&mut self, rows: &mut R) -> Poll<DbResult<Option<Executed>>> {
        let statement = self.channel.submitted.statement;
        let definitions = match R::KEPT.then(|| self.statements.get_mut(statement)).flatten() {
            Some(Slot::Prepared(prepared)) => Some(&mut prepared.definitions),
            _ => None,
        };
        self.channel.poll_submitted(definitions, rows)
    }

    async fn receive_submitted<R: Rows>(&mut self, rows: &mut R) -> DbResult<Executed> {
        let statement = self.channel.submitted.statement;
        let slot = self.statements.get_mut(statement).ok_or_else(unknown_statement)?;
        let Slot::Prepared(prepared) = slot else { return Err(unknown_statement()) };
        let definitions = &mut prepared.definitions;
        let answer = self.channel.receive_submitted(Encoding::Binary, definitions, rows).await;
        if answer.is_err() {
            prepared.forget_types();
        }
        answer
    }

    fn query<R: Rows>(
        &mut self,
        sql: &str,
        rows: &mut R,
    ) -> impl Future<Output = DbResult<Executed>> {
        self.query_bytes(sql.as_bytes(), rows)
    }

    async fn query_bytes<R: Rows>(&mut self, sql: &[u8], rows: &mut R) -> DbResult<Executed> {
        let answered = self.send_query(sql, rows).await;
        answered.map_err(|error| endless::explain_overflow(error, rows, &self.address, sql))
    }

    fn has_backslash_escapes(&self) -> bool {
        self.channel.answer.status() & STATUS_NO_BACKSLASH_ESCAPES == 0
    }

    /// Two round trips: the server numbers the statement before it can be executed.
    async fn execute_once<R: Rows>(
        &mut self,
        sql: impl AsRef<[u8]>,
        params: &[Param<'_>],
        rows: &mut R,
    ) -> DbResult<Executed> {
        let sql = sql.as_ref();
        let (id, count, definitions) = match self.send_prepare(sql).await {
            Err(error) if error.errno() == CANNOT_BE_PREPARED && params.is_empty() => {
                return self.send_query(sql, rows).await;
            }
            answer => answer?,
        };
        self.begin()?;
        let mut prepared = Prepared::new(id, &vec![ParamType::Inferred; count.into()], definitions);
        let out = &mut self.channel.out;
        let sequence = prepared.encode(params, out);
        // Closing has no answer, so it goes along with the execution, or alone.
        push_command(out, COM_STMT_CLOSE, &id.to_le_bytes());
        match sequence {
            Ok(sequence) => {
                let definitions = &mut prepared.definitions;
                self.channel.exchange(Encoding::Binary, sequence, definitions, rows).await
            }
            Err(count) => {
                self.channel.transport.send(&self.channel.out).await?;
                Err(wrong_count(count).with_detail(String::from_utf8_lossy(sql)))
            }
        }
    }

    fn is_in_transaction(&self) -> bool {
        self.channel.answer.status() & STATUS_IN_TRANSACTION != 0
    }

    #[inline]
    fn queue(&mut self, statement: Statement, params: &[Param<'_>]) -> DbResult<()> {
        if self.flight.is_empty() {
            self.channel.begin()?;
        }
        self.channel.check_idle()?;
        let slot = self.statements.get_mut(statement).ok_or_else(unknown_statement)?;
        let out = &mut self.channel.out;
        let sequence = match slot {
            Slot::Prepared(prepared) => prepared.encode(params, out).map_err(wrong_count)?,
            Slot::Text(sql) => {
                no_params(params)?;
                push_command(out, COM_QUERY, sql)
            }
        };
        self.flight.push(Queued { statement, sequence, end: out.len() });
        Ok(())
    }

    async fn flush<R: Rows>(&mut self, rows: &mut R, results: &mut FlightAnswers) -> DbResult<()> {
        self.channel.check_idle()?;
        let mut sent_bytes = 0;
        let MysqlSession { channel, statements, definitions, flight, .. } = self;
        for number in 0..flight.len() {
            let queued = flight[number];
            channel.idle = false;
            let mut delivery = Ok(());
            if queued.end > sent_bytes {
                let fitting = flight[number..]
                    .iter()
                    .take_while(|later| later.end <= sent_bytes + WINDOW_BYTES);
                let end = fitting.last().unwrap_or(&queued).end;
                delivery = channel.transport.send(&channel.out[sent_bytes..end]).await;
                sent_bytes = end;
            }
            channel.is_ahead = sent_bytes > queued.end;
            let answer = match statements.get_mut(queued.statement).ok_or_else(unknown_statement)? {
                Slot::Prepared(prepared) => {
                    channel.answer.begin(Encoding::Binary, queued.sequence);
                    let answer = channel.receive(&mut prepared.definitions, rows).await;
                    if answer.is_err() {
                        prepared.forget_types();
                    }
                    answer
                }
                Slot::Text(_) => {
                    channel.answer.begin(Encoding::Text, queued.sequence);
                    channel.receive(definitions, rows).await
                }
            };
            match answer.and_then(|executed| delivery.map(|()| executed)) {
                Err(error) if error.is_fatal() => {
                    flight.clear();
                    return Err(error);
                }
                answer => results.push(answer),
            }
        }
        flight.clear();
        Ok(())
    }

    async fn rollback(&mut self) -> DbResult<()> {
        self.flight.clear();
        self.send_query(b"ROLLBACK", &mut Discard).await.map(|_| ())
    }

    async fn bulk_load(
        &mut self,
        table: &str,
        columns: &[&str],
        rows: &mut dyn RowSource,
    ) -> DbResult<BulkReport> {
        load_rows(self, table, columns, rows).await
    }

    async fn unanswered(&mut self, sql: &str, within: Nanos) -> DbError {
        let Channel { transport, inbox, .. } = &mut self.channel;
        let is_answering = transport.is_sent_to(inbox).await;
        endless::unanswered(&self.address, sql, within, is_answering)
    }

    async fn close(mut self) {
        if self.channel.begin().is_ok() {
            push_command(&mut self.channel.out, COM_QUIT, b"");
            let _ = self.channel.transport.send(&self.channel.out).await;
        }
    }
}

#[cold]
fn misuse_error(what: &str) -> DbError {
    DbError::server(ErrorClass::Other, 0, *b"HY010", format!("Wrong use of a session: {what}."))
}

#[cold]
fn unknown_statement() -> DbError {
    misuse_error("the statement was not prepared on this session")
}

#[cold]
fn wrong_count(count: WrongParamCount) -> DbError {
    misuse_error(&format!(
        "the statement has {} placeholders, but {} parameters were given",
        count.expected, count.given
    ))
}

fn no_params(params: &[Param<'_>]) -> DbResult<()> {
    if params.is_empty() {
        return Ok(());
    }
    Err(wrong_count(WrongParamCount { expected: 0, given: params.len() }))
}

/// The name of the virtual file.
const FILE: &str = "dyno";
/// Size of the packets of a load: large enough for few system calls, small enough for the processor's cache.
const CHUNK_BYTES: usize = 128 << 10;
/// Size of an INSERT statement, unless the server's limit is lower.
const INSERT_BYTES: usize = 512 << 10;
/// Size of an INSERT statement for a proxy that parses statements into trees: ShardingSphere-Proxy 5.1.0 takes some kilobytes of heap for
/// each literal, and 512 KiB from eight sessions exceed its gigabyte. About 100 rows of a stock table.
const PROXY_INSERT_BYTES: usize = 32 << 10;

/// Loads rows as part of the open transaction, or in a new one.
async fn load_rows(
    session: &mut MysqlSession,
    table: &str,
    columns: &[&str],
    rows: &mut dyn RowSource,
) -> DbResult<BulkReport> {
    if session.is_in_transaction() {
        return load_by_any_way(session, table, columns, rows).await;
    }
    session.query("START TRANSACTION", &mut Discard).await?;
    let loaded = match load_by_any_way(session, table, columns, rows).await {
        Ok(report) => session.query("COMMIT", &mut Discard).await.map(|_| report),
        Err(error) => Err(error),
    };
    if let Err(error) = &loaded
        && !error.is_fatal()
    {
        session.rollback().await?;
    }
    loaded
}

async fn load_by_any_way(
    session: &mut MysqlSession,
    table: &str,
    columns: &[&str],
    rows: &mut dyn RowSource,
) -> DbResult<BulkReport> {
    let packet_bytes = packet_bytes(session).await?;
    let refusal = if session.local_files {
        let chunk_bytes = packet_bytes.min(CHUNK_BYTES);
        match load_data(session, table, columns, rows, chunk_bytes).await {
            Ok(rows) => {
                return Ok(BulkReport { rows, method: BulkMethod::LoadData, fallback: None });
            }
            Err(error) if is_forbidden(&error) => Some(error.to_string()),
            Err(error) => return Err(error),
        }
    } else {
        None
    };
    rows.restart();
    let most_bytes = if is_proxy(session) { PROXY_INSERT_BYTES } else { INSERT_BYTES };
    let stored = insert_rows(session, table, columns, rows, packet_bytes.min(most_bytes)).await?;
    // A proxy would have to pass the rows on; ShardingSphere doesn't.
    let remedy = (!is_proxy(session)).then_some("SET GLOBAL local_infile=1");
    Ok(BulkReport {
        rows: stored,
        method: BulkMethod::MultiRowInsert,
        fallback: Some(BulkFallback { way: "LOAD DATA LOCAL", refusal, remedy }),
    })
}

/// Half of the longest packet that the server takes: the last row may exceed a limit by its own length.
async fn packet_bytes(session: &mut MysqlSession) -> DbResult<usize> {
    let mut limit = AnswerTable::default();
    session.query("SELECT @@max_allowed_packet", &mut limit).await?;
    Ok(limit.single().and_then(|text| text.parse::<usize>().ok()).unwrap_or(1 << 20) / 2)
}

/// Returns true for ShardingSphere-Proxy, by the version that it reports; other proxies aren't recognized.
fn is_proxy(session: &MysqlSession) -> bool {
    is_shardingsphere(&session.product().version)
}

/// Refusals before the first row: ER_NOT_ALLOWED_COMMAND (MySQL 5.7, MariaDB up to 10.4), ER_NOT_SUPPORTED_YET
/// (proxies), ER_CLIENT_LOCAL_FILES_DISABLED (MySQL 8), ER_LOAD_INFILE_CAPABILITY_DISABLED (MariaDB 10.5 and later).
fn is_forbidden(error: &DbError) -> bool {
    matches!(error.errno(), 1148 | 1235 | 3948 | 4166)
}

fn column_list(columns: &[&str]) -> String {
    if columns.is_empty() { String::new() } else { format!(" ({})", columns.join(", ")) }
}

async fn load_data(
    session: &mut MysqlSession,
    table: &str,
    columns: &[&str],
    rows: &mut dyn RowSource,
    chunk_bytes: usize,
) -> DbResult<u64> {
    // Literal tab and newline, whose meaning no SQL mode changes.
    let escape = if session.has_backslash_escapes() { r"\\" } else { r"\" };
    let list = column_list(columns);
    let sql = format!(
        "LOAD DATA LOCAL INFILE '{FILE}' INTO TABLE {table} CHARACTER SET utf8mb4 FIELDS \
         TERMINATED BY '\t' ESCAPED BY '{escape}' LINES TERMINATED BY '\n'{list}"
    );
    let channel = &mut session.channel;
    channel.begin()?;
    let sequence = push_command(&mut channel.out, COM_QUERY, sql.as_bytes());
    channel.idle = false;
    channel.transport.send(&channel.out).await?;
    channel.answer.begin(Encoding::Text, sequence);
    match channel.reply(&mut session.definitions, &mut Discard).await? {
        Reply::FileRequest(name) if name == FILE.as_bytes() => {}
        Reply::FileRequest(name) => {
            let refusal = channel.refuse_file(&name, &mut session.definitions, &mut Discard).await;
            // The statement names another file: this server gets no second one.
            return Err(refusal.with_class(ErrorClass::ConnectionLost));
        }
        Reply::Done(_) => {
            return Err(DbError::protocol("The server did not ask for the rows of LOAD DATA."));
        }
    }
    let (mut more, mut delivery) = (true, Ok(()));
    while more && delivery.is_ok() {
        channel.out.clear();
        let start = begin_packet(&mut channel.out);
        more = TextRows::new(&mut channel.out).fill(rows, chunk_bytes);
        // An empty packet would end the file; it comes last.
        if channel.out.len() > HEADER_BYTES {
            let sequence = channel.answer.next_sequence();
            let next = finish_packet(&mut channel.out, start, sequence);
            channel.answer.continue_at(next);
            delivery = channel.transport.send(&channel.out).await;
        }
    }
    if delivery.is_ok() {
        channel.push_empty_packet();
        delivery = channel.transport.send(&channel.out).await;
    }
    let executed = channel.receive(&mut session.definitions, &mut Discard).await?;
    delivery?;
    check_warnings(session, table).await?;
    Ok(executed.affected)
}

async fn insert_rows(
    session: &mut MysqlSession,
    table: &str,
    columns: &[&str],
    rows: &mut dyn RowSource,
    limit_bytes: usize,
) -> DbResult<u64> {
    let head = format!("INSERT INTO {table}{} VALUES ", column_list(columns));
    let escapes = session.has_backslash_escapes();
    let (mut stored, mut more) = (0_u64, true);
    while more {
        session.channel.begin()?;
        let out = &mut session.channel.out;
        let start = begin_packet(out);
        out.push(COM_QUERY);
        out.extend_from_slice(head.as_bytes());
        let count;
        (count, more) = InsertRows::new(out, escapes).fill(rows, limit_bytes);
        if count == 0 {
            break;
        }
        let sequence = finish_packet(out, start, 0);
        let (channel, definitions) = (&mut session.channel, &mut session.definitions);
        let executed: Executed =
            channel.exchange(Encoding::Text, sequence, definitions, &mut Discard).await?;
        check_warnings(session, table).await?;
        stored = stored.saturating_add(executed.affected);
    }
    Ok(stored)
}

/// LOAD DATA LOCAL warns of duplicates, truncated texts and bad numbers: such a load has failed.
async fn check_warnings(session: &mut MysqlSession, table: &str) -> DbResult<()> {
    let count = session.channel.answer.warnings();
    if count == 0 {
        return Ok(());
    }
    let mut warnings = AnswerTable::default();
    session.query("SHOW WARNINGS LIMIT 1", &mut warnings).await?;
    let mut first = warnings.rows.into_iter().flatten().flatten();
    let level = first.next().unwrap_or_else(|| "Warning".to_owned());
    let code: u16 = first.next().and_then(|code| code.parse().ok()).unwrap_or(0);
    let message = first.next().unwrap_or_else(|| "unknown".to_owned());
    // Warnings have no SQLSTATE; class 23 holds duplicates and missing parents.
    let state = if matches!(code, 1062 | 1452 | 1048 | 1586) { *b"23000" } else { *b"HY000" };
    Err(DbError::server(
        classify(code, &state),
        u32::from(code),
        state,
        format!("The load into {table} gave {count} warnings and was undone. {level}: {message}."),
    ))
}
