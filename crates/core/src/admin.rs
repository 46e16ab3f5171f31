//! Sessions and drivers for everything that is not measured: loads, observations, checks, locks.
//!
//! Workloads and the engine are compiled once for each driver, because a trial must not pay for dynamic dispatch. Cold
//! code is compiled once: it takes an [`AdminDriver`] or an [`AdminSession`], which any [`Driver`] gives.

use crate::{
    AnswerRow, BulkReport, Capabilities, ColumnNames, DbError, DbResult, Dialect, Driver, Executed,
    Interrupter, Nanos, Param, ParamType, Product, RowSource, Rows, Session, SessionProof,
    ShardNode, Shards, Statement,
};
use std::ops::{Deref, DerefMut};
use std::pin::Pin;

type Pending<'a, T> = Pin<Box<dyn Future<Output = T> + 'a>>;
type Answer<'a, T> = Pending<'a, DbResult<T>>;

/// Opens [`AdminSession`]s as the driver behind it opens its own.
#[derive(Clone, Copy)]
pub struct AdminDriver<'a>(&'a dyn DynDriver);

impl<'a> AdminDriver<'a> {
    pub(crate) fn new<D: Driver>(driver: &'a D) -> Self {
        AdminDriver(driver)
    }

    /// Like [`Driver::connect`].
    pub async fn connect(&self, number: u32) -> DbResult<AdminSession<'a>> {
        self.0.connect(number).await
    }

    /// The shards behind its endpoint; `None` if none are known.
    pub fn shards(&self) -> Option<Shards<AdminDriver<'a>>> {
        self.0.shards()
    }
}

impl<'a> Deref for AdminDriver<'a> {
    type Target = dyn DynDriver + 'a;

    fn deref(&self) -> &Self::Target {
        self.0
    }
}

/// A session of any protocol: each call is dispatched at run time and allocates.
pub struct AdminSession<'a>(SessionHandle<'a>);

enum SessionHandle<'a> {
    Owned(Box<dyn DynSession + 'a>),
    Lent(&'a mut (dyn DynSession + 'a)),
}

impl<'a> AdminSession<'a> {
    /// Lends a worker's session to code that is not measured. It stays open.
    pub fn lent<S: Session>(session: &'a mut S) -> Self {
        AdminSession(SessionHandle::Lent(session))
    }

    /// Like [`Session::cancel`].
    pub async fn cancel(self) {
        if let SessionHandle::Owned(session) = self.0 {
            session.end_session(true).await;
        }
    }

    /// Like [`Session::close`].
    pub async fn close(self) {
        if let SessionHandle::Owned(session) = self.0 {
            session.end_session(false).await;
        }
    }
}

impl<'a> Deref for AdminSession<'a> {
    type Target = dyn DynSession + 'a;

    fn deref(&self) -> &Self::Target {
        match &self.0 {
            SessionHandle::Owned(session) => &**session,
            SessionHandle::Lent(session) => &**session,
        }
    }
}

impl DerefMut for AdminSession<'_> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        match &mut self.0 {
            SessionHandle::Owned(session) => &mut **session,
            SessionHandle::Lent(session) => &mut **session,
        }
    }
}

/// [`Driver`] as an object.
pub trait DynDriver: Sync {
    fn connect(&self, number: u32) -> Answer<'_, AdminSession<'_>>;
    fn dialect(&self) -> Dialect;
    fn capabilities(&self) -> &'static Capabilities;
    fn blocks(&self) -> bool;
    fn place(&self) -> String;
    fn shards(&self) -> Option<Shards<AdminDriver<'_>>>;
}

impl<D: Driver> DynDriver for D {
    fn connect(&self, number: u32) -> Answer<'_, AdminSession<'_>> {
        Box::pin(async move {
            let session = Driver::connect(self, number).await?;
            Ok(AdminSession(SessionHandle::Owned(Box::new(session))))
        })
    }

    fn dialect(&self) -> Dialect {
        Driver::dialect(self)
    }

    fn capabilities(&self) -> &'static Capabilities {
        Driver::capabilities(self)
    }

    fn blocks(&self) -> bool {
        Driver::blocks(self)
    }

    fn place(&self) -> String {
        Driver::place(self)
    }

    fn shards(&self) -> Option<Shards<AdminDriver<'_>>> {
        let Shards { nodes, map } = Driver::shards(self)?;
        let mut admin = Vec::new();
        for node in nodes {
            admin.push(ShardNode { name: node.name.clone(), driver: node.driver.admin() });
        }
        Some(Shards { nodes: admin, map: map.clone() })
    }
}

/// [`Session`] as an object.
pub trait DynSession {
    fn dialect(&self) -> Dialect;
    fn product(&self) -> &Product;
    fn proof(&self) -> Option<SessionProof>;
    fn capabilities(&self) -> &'static Capabilities;
    fn is_set_by_target(&self, name: &str) -> bool;
    fn interrupter(&self) -> Option<Interrupter>;
    fn take_notice_lines(&mut self) -> Vec<String>;
    fn prepare<'a>(&'a mut self, sql: &'a str, params: &'a [ParamType]) -> Answer<'a, Statement>;
    fn execute<'a>(
        &'a mut self,
        statement: Statement,
        params: &'a [Param<'a>],
        rows: &'a mut dyn DynRows,
    ) -> Answer<'a, Executed>;
    fn query<'a>(&'a mut self, sql: &'a str, rows: &'a mut dyn DynRows) -> Answer<'a, Executed>;
    fn rollback(&mut self) -> Answer<'_, ()>;
    fn bulk_load<'a>(
        &'a mut self,
        table: &'a str,
        columns: &'a [&'a str],
        rows: &'a mut dyn RowSource,
    ) -> Answer<'a, BulkReport>;
    fn copy_in<'a>(&'a mut self, sql: &'a str, rows: &'a mut dyn RowSource) -> Answer<'a, u64>;
    fn unanswered<'a>(&'a mut self, sql: &'a str, within: Nanos) -> Pending<'a, DbError>;
    /// Closes it in order, or cancels its statement.
    fn end_session<'a>(self: Box<Self>, is_canceled: bool) -> Pending<'a, ()>
    where
        Self: 'a;
}

impl<S: Session> DynSession for S {
    fn dialect(&self) -> Dialect {
        Session::dialect(self)
    }

    fn product(&self) -> &Product {
        Session::product(self)
    }

    fn proof(&self) -> Option<SessionProof> {
        Session::proof(self)
    }

    fn capabilities(&self) -> &'static Capabilities {
        Session::capabilities(self)
    }

    fn is_set_by_target(&self, name: &str) -> bool {
        Session::is_set_by_target(self, name)
    }

    fn interrupter(&self) -> Option<Interrupter> {
        Session::interrupter(self)
    }

    fn take_notice_lines(&mut self) -> Vec<String> {
        Session::take_notice_lines(self)
    }

    fn prepare<'a>(&'a mut self, sql: &'a str, params: &'a [ParamType]) -> Answer<'a, Statement> {
        Box::pin(Session::prepare(self, sql, params))
    }

    fn execute<'a>(
        &'a mut self,
        statement: Statement,
        params: &'a [Param<'a>],
        rows: &'a mut dyn DynRows,
    ) -> Answer<'a, Executed> {
        Box::pin(
            async move { Session::execute(self, statement, params, &mut Forwarded(rows)).await },
        )
    }

    fn query<'a>(&'a mut self, sql: &'a str, rows: &'a mut dyn DynRows) -> Answer<'a, Executed> {
        Box::pin(async move { Session::query(self, sql, &mut Forwarded(rows)).await })
    }

    fn rollback(&mut self) -> Answer<'_, ()> {
        Box::pin(Session::rollback(self))
    }

    fn bulk_load<'a>(
        &'a mut self,
        table: &'a str,
        columns: &'a [&'a str],
        rows: &'a mut dyn RowSource,
    ) -> Answer<'a, BulkReport> {
        Box::pin(Session::bulk_load(self, table, columns, rows))
    }

    fn copy_in<'a>(&'a mut self, sql: &'a str, rows: &'a mut dyn RowSource) -> Answer<'a, u64> {
        Box::pin(Session::copy_in(self, sql, rows))
    }

    fn unanswered<'a>(&'a mut self, sql: &'a str, within: Nanos) -> Pending<'a, DbError> {
        Box::pin(Session::unanswered(self, sql, within))
    }

    fn end_session<'a>(self: Box<Self>, is_canceled: bool) -> Pending<'a, ()>
    where
        Self: 'a,
    {
        if is_canceled { Box::pin(Session::cancel(*self)) } else { Box::pin(Session::close(*self)) }
    }
}

/// [`Rows`] as an object.
pub trait DynRows {
    fn columns(&mut self, columns: &dyn ColumnNames);
    fn finish_statement(&mut self, executed: Executed);
    fn row(&mut self, row: &dyn AnswerRow);
    fn overflow(&self) -> Option<usize>;
}

impl<R: Rows> DynRows for R {
    fn columns(&mut self, columns: &dyn ColumnNames) {
        Rows::columns(self, &columns);
    }

    fn finish_statement(&mut self, executed: Executed) {
        Rows::finish_statement(self, executed);
    }

    fn row(&mut self, row: &dyn AnswerRow) {
        Rows::row(self, &row);
    }

    fn overflow(&self) -> Option<usize> {
        Rows::overflow(self)
    }
}

struct Forwarded<'a>(&'a mut dyn DynRows);

impl Rows for Forwarded<'_> {
    const DESCRIBED: bool = true;

    fn columns<C: ColumnNames>(&mut self, columns: &C) {
        self.0.columns(columns);
    }

    fn finish_statement(&mut self, executed: Executed) {
        self.0.finish_statement(executed);
    }

    fn row<R: AnswerRow>(&mut self, row: &R) {
        self.0.row(row);
    }

    fn overflow(&self) -> Option<usize> {
        self.0.overflow()
    }
}

impl ColumnNames for &dyn ColumnNames {
    fn count(&self) -> usize {
        (**self).count()
    }

    fn name(&self, column: usize) -> &str {
        (**self).name(column)
    }
}

impl AnswerRow for &dyn AnswerRow {
    fn columns(&self) -> usize {
        (**self).columns()
    }

    fn is_null(&self, column: usize) -> bool {
        (**self).is_null(column)
    }

    fn int(&self, column: usize) -> Option<i64> {
        (**self).int(column)
    }

    fn double(&self, column: usize) -> Option<f64> {
        (**self).double(column)
    }

    fn bytes(&self, column: usize) -> Option<&[u8]> {
        (**self).bytes(column)
    }

    fn string(&self, column: usize) -> Option<String> {
        (**self).string(column)
    }
}
