//! A session that may have a second node for reads.

use super::class::{Class, classify};
use dyno_core::{
    BulkReport, Capabilities, DbError, DbResult, Dialect, Discard, Executed, FlightAnswers,
    Interrupter, Nanos, Param, ParamType, Product, RowSource, Rows, Session, SessionProof,
    Statement, StatementTable,
};
use std::task::Poll;

/// On one node, or on the node that takes writes and on one for reads.
///
/// With two, a transaction stays on the node where it began, as the servers' answers show. Outside of transactions,
/// reads and begins of read-only transactions go to the reader, everything else to the other one. A flight of queued
/// statements stays together, on the node that takes writes unless it begins or continues a read-only transaction.
#[derive(Debug)]
pub struct RoutedSession<S> {
    main: S,
    read_side: Option<Box<ReadSession<S>>>,
}

#[derive(Debug)]
struct ReadSession<S> {
    reader: S,
    statements: StatementTable<Slot>,
    /// The session has something on the node that takes writes that the reader lacks.
    is_pinned: bool,
    flight: Flight,
}

/// A prepared statement on both nodes.
#[derive(Clone, Copy, Debug)]
struct Slot {
    class: Class,
    main: Statement,
    /// `None` for changes of data.
    reader: Option<Statement>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Flight {
    #[default]
    Empty,
    Main,
    Reader,
    /// First to the reader, until a transaction ended there, then to the other one.
    Both,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Seat {
    Main,
    Reader,
    Both,
}

impl<S: Session> ReadSession<S> {
    /// Returns the session that executes a statement of a class: the one with an open transaction; else the main one
    /// once a statement has pinned it, for good; else the one of the class. `Both`: it is executed on both.
    #[inline]
    fn seat(&mut self, class: Class, main: &S) -> Seat {
        self.is_pinned |= class == Class::Pin;
        if main.is_in_transaction() {
            Seat::Main
        } else if self.reader.is_in_transaction() {
            Seat::Reader
        } else {
            match class {
                _ if self.is_pinned => Seat::Main,
                Class::Read | Class::BeginReadOnly => Seat::Reader,
                Class::Both => Seat::Both,
                Class::End | Class::Pin | Class::Write | Class::Other => Seat::Main,
            }
        }
    }

    /// Returns true if the next statement of a flight goes to the reader.
    fn queues_at_reader(&mut self, class: Class, main: &S) -> bool {
        if self.flight == Flight::Empty {
            let seat = self.seat(class, main);
            let begins = seat == Seat::Reader && class == Class::BeginReadOnly;
            let is_readers = self.reader.is_in_transaction() || begins;
            self.flight = if is_readers { Flight::Reader } else { Flight::Main };
        }
        let at_reader = self.flight == Flight::Reader;
        if at_reader && class == Class::End {
            self.flight = Flight::Both;
        }
        at_reader
    }

    /// The statement on both nodes; fails if it belongs to another session.
    fn slot(&self, statement: Statement) -> DbResult<Slot> {
        let slot = self.statements.get(statement).copied();
        slot.ok_or_else(|| DbError::unsupported("The statement is not one of this session."))
    }
}

impl Slot {
    fn at_reader(self) -> DbResult<Statement> {
        self.reader.ok_or_else(|| {
            DbError::unsupported("A transaction that was begun as read-only can't change data.")
        })
    }
}

impl<S: Session> RoutedSession<S> {
    /// A session on one node.
    pub(super) fn on(main: S) -> Self {
        RoutedSession { main, read_side: None }
    }

    /// A session that reads from another node.
    pub(super) fn split(main: S, reader: S) -> Self {
        let read_side = ReadSession {
            reader,
            statements: StatementTable::default(),
            is_pinned: false,
            flight: Flight::default(),
        };
        RoutedSession { main, read_side: Some(Box::new(read_side)) }
    }

    /// The session for a text. Texts for both nodes are executed on the reader before.
    async fn seat_of_text(&mut self, sql: &[u8]) -> DbResult<&mut S> {
        let Some(read_side) = &mut self.read_side else { return Ok(&mut self.main) };
        match read_side.seat(classify(sql, self.main.dialect()), &self.main) {
            Seat::Main => Ok(&mut self.main),
            Seat::Reader => Ok(&mut read_side.reader),
            Seat::Both => {
                read_side.reader.query_bytes(sql, &mut Discard).await?;
                Ok(&mut self.main)
            }
        }
    }

    #[inline]
    async fn seat_of_statement(
        &mut self,
        statement: Statement,
        params: &[Param<'_>],
    ) -> DbResult<(&mut S, Statement)> {
        let Some(read_side) = &mut self.read_side else { return Ok((&mut self.main, statement)) };
        let slot = read_side.slot(statement)?;
        match read_side.seat(slot.class, &self.main) {
            Seat::Main => Ok((&mut self.main, slot.main)),
            Seat::Reader => Ok((&mut read_side.reader, slot.at_reader()?)),
            Seat::Both => {
                read_side.reader.execute(slot.at_reader()?, params, &mut Discard).await?;
                Ok((&mut self.main, slot.main))
            }
        }
    }

    fn queue_of_text(&mut self, sql: &[u8]) -> &mut S {
        let Some(read_side) = &mut self.read_side else { return &mut self.main };
        let class = classify(sql, self.main.dialect());
        if read_side.queues_at_reader(class, &self.main) {
            &mut read_side.reader
        } else {
            &mut self.main
        }
    }
}

impl<S: Session> Session for RoutedSession<S> {
    fn dialect(&self) -> Dialect {
        self.main.dialect()
    }

    fn product(&self) -> &Product {
        self.main.product()
    }

    fn proof(&self) -> Option<SessionProof> {
        self.main.proof()
    }

    fn capabilities(&self) -> &'static Capabilities {
        self.main.capabilities()
    }

    fn is_set_by_target(&self, name: &str) -> bool {
        self.main.is_set_by_target(name)
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
        let main = self.main.prepare_bytes(sql, params, name).await?;
        let Some(read_side) = &mut self.read_side else { return Ok(main) };
        let class = classify(sql, self.main.dialect());
        let reader = match class {
            Class::Write | Class::Pin => None,
            Class::Other => match read_side.reader.prepare_bytes(sql, params, name).await {
                Err(error) if error.is_fatal() => return Err(error),
                // It may need something of the other node, and is executed there.
                prepared => prepared.ok(),
            },
            _ => Some(read_side.reader.prepare_bytes(sql, params, name).await?),
        };
        Ok(read_side.statements.add(Slot { class, main, reader }))
    }

    async fn forget(&mut self, statement: Statement) -> DbResult<()> {
        let Some(read_side) = &mut self.read_side else { return self.main.forget(statement).await };
        let slot = read_side.slot(statement)?;
        read_side.statements.remove(statement);
        if let Some(at_reader) = slot.reader {
            read_side.reader.forget(at_reader).await?;
        }
        self.main.forget(slot.main).await
    }

    #[inline]
    async fn execute<R: Rows>(
        &mut self,
        statement: Statement,
        params: &[Param<'_>],
        rows: &mut R,
    ) -> DbResult<Executed> {
        let (session, statement) = match self.read_side {
            None => (&mut self.main, statement),
            Some(_) => self.seat_of_statement(statement, params).await?,
        };
        session.execute(statement, params, rows).await
    }

    #[inline]
    fn give(&mut self, statement: Statement, params: &[Param<'_>]) -> DbResult<bool> {
        match self.read_side {
            None => self.main.give(statement, params),
            Some(_) => Ok(false),
        }
    }

    #[inline]
    fn poll_submitted<R: Rows>(&mut self, rows: &mut R) -> Poll<DbResult<Option<Executed>>> {
        self.main.poll_submitted(rows)
    }

    async fn receive_submitted<R: Rows>(&mut self, rows: &mut R) -> DbResult<Executed> {
        self.main.receive_submitted(rows).await
    }

    #[inline]
    async fn query<R: Rows>(&mut self, sql: &str, rows: &mut R) -> DbResult<Executed> {
        let session = match self.read_side {
            None => &mut self.main,
            Some(_) => self.seat_of_text(sql.as_bytes()).await?,
        };
        session.query(sql, rows).await
    }

    #[inline]
    async fn query_bytes<R: Rows>(&mut self, sql: &[u8], rows: &mut R) -> DbResult<Executed> {
        let session = match self.read_side {
            None => &mut self.main,
            Some(_) => self.seat_of_text(sql).await?,
        };
        session.query_bytes(sql, rows).await
    }

    fn has_backslash_escapes(&self) -> bool {
        self.main.has_backslash_escapes()
    }

    async fn execute_once<R: Rows>(
        &mut self,
        sql: impl AsRef<[u8]>,
        params: &[Param<'_>],
        rows: &mut R,
    ) -> DbResult<Executed> {
        let session = match self.read_side {
            None => &mut self.main,
            Some(_) => self.seat_of_text(sql.as_ref()).await?,
        };
        session.execute_once(sql, params, rows).await
    }

    #[inline]
    fn is_in_transaction(&self) -> bool {
        self.main.is_in_transaction()
            || self.read_side.as_ref().is_some_and(|read_side| read_side.reader.is_in_transaction())
    }

    fn queue_once(&mut self, sql: impl AsRef<[u8]>, params: &[Param<'_>]) -> DbResult<()> {
        self.queue_of_text(sql.as_ref()).queue_once(sql, params)
    }

    fn queue_sync(&mut self) -> DbResult<()> {
        match &mut self.read_side {
            Some(read_side) if read_side.flight == Flight::Reader => read_side.reader.queue_sync(),
            _ => self.main.queue_sync(),
        }
    }

    #[inline]
    fn queue(&mut self, statement: Statement, params: &[Param<'_>]) -> DbResult<()> {
        let Some(read_side) = &mut self.read_side else {
            return self.main.queue(statement, params);
        };
        let slot = read_side.slot(statement)?;
        if read_side.queues_at_reader(slot.class, &self.main) {
            read_side.reader.queue(slot.at_reader()?, params)
        } else {
            self.main.queue(slot.main, params)
        }
    }

    async fn flush<R: Rows>(&mut self, rows: &mut R, results: &mut FlightAnswers) -> DbResult<()> {
        let flight = match &mut self.read_side {
            Some(read_side) => std::mem::take(&mut read_side.flight),
            None => Flight::Main,
        };
        if let (Some(read_side), Flight::Reader | Flight::Both) = (&mut self.read_side, flight) {
            read_side.reader.flush(rows, results).await?;
        }
        if flight == Flight::Reader {
            return Ok(());
        }
        self.main.flush(rows, results).await
    }

    async fn rollback(&mut self) -> DbResult<()> {
        if let Some(read_side) = &mut self.read_side {
            // Queued statements must not be sent with the next flight.
            let is_queued = matches!(read_side.flight, Flight::Reader | Flight::Both);
            read_side.flight = Flight::Empty;
            if is_queued || read_side.reader.is_in_transaction() {
                read_side.reader.rollback().await?;
            }
        }
        self.main.rollback().await
    }

    async fn bulk_load(
        &mut self,
        table: &str,
        columns: &[&str],
        rows: &mut dyn RowSource,
    ) -> DbResult<BulkReport> {
        self.main.bulk_load(table, columns, rows).await
    }

    async fn copy_in(&mut self, sql: &str, rows: &mut dyn RowSource) -> DbResult<u64> {
        self.main.copy_in(sql, rows).await
    }

    #[inline]
    fn has_notice_lines(&self) -> bool {
        self.main.has_notice_lines()
            || self.read_side.as_ref().is_some_and(|read_side| read_side.reader.has_notice_lines())
    }

    fn take_notice_lines(&mut self) -> Vec<String> {
        let mut lines = self.main.take_notice_lines();
        if let Some(read_side) = &mut self.read_side {
            lines.extend(read_side.reader.take_notice_lines());
        }
        lines
    }

    async fn unanswered(&mut self, sql: &str, within: Nanos) -> DbError {
        self.main.unanswered(sql, within).await
    }

    async fn cancel(self) {
        if let Some(read_side) = self.read_side {
            read_side.reader.cancel().await;
        }
        self.main.cancel().await;
    }

    fn interrupter(&self) -> Option<Interrupter> {
        self.main.interrupter()
    }

    async fn close(self) {
        if let Some(read_side) = self.read_side {
            read_side.reader.close().await;
        }
        self.main.close().await;
    }
}
