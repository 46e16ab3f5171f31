//! Helpers that the tests of the initialization share.

use dyno_core::{
    AnswerTable, BulkReport, DbError, Dialect, Driver, Executed, Param, ParamType, Product,
    RowSource, Rows, Session, Statement,
};
use dyno_load::LoadObserver;
use dyno_pgbench::init::{InitOptions, InitStep, initialize};
use dyno_reactor::block_on;
use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

/// Keeps what an initialization tells.
#[derive(Default)]
pub(crate) struct LoadLog {
    pub(crate) lines: Mutex<Vec<String>>,
    pub(crate) notes: Mutex<Vec<String>>,
    pub(crate) rows_planned: Mutex<Vec<u64>>,
    /// Rows of each call.
    pub(crate) rows_done: Mutex<Vec<u64>>,
}

impl LoadObserver for LoadLog {
    fn line(&self, text: &str) {
        self.lines.lock().unwrap().push(text.to_owned());
    }
    fn rows_planned(&self, rows: u64) {
        self.rows_planned.lock().unwrap().push(rows);
    }
    fn rows_done(&self, rows: u64) {
        self.rows_done.lock().unwrap().push(rows);
    }
    fn note(&self, text: &str) {
        self.notes.lock().unwrap().push(text.to_owned());
    }
}

/// Options with these steps.
pub(crate) fn steps(letters: &str) -> InitOptions {
    InitOptions { steps: InitStep::parse_all(letters).unwrap(), ..InitOptions::default() }
}

/// Initializes; the test fails when that fails.
pub(crate) fn init<D: Driver>(driver: &D, options: &InitOptions) -> LoadLog {
    let load_log = LoadLog::default();
    if let Err(error) = initialize(&driver.admin(), options, &load_log) {
        panic!("{error}; hint: {:?}", error.hint());
    }
    load_log
}

/// Does something with one session.
pub(crate) fn with_session<D: Driver, T>(
    driver: &D,
    work: impl AsyncFn(&mut D::Session) -> T,
) -> T {
    block_on(async {
        let mut session = driver.connect(0).await.unwrap();
        let result = work(&mut session).await;
        session.close().await;
        result
    })
    .unwrap()
}

/// Runs one statement and returns its answer, columns joined by `|`.
pub(crate) fn query_rows<D: Driver>(driver: &D, sql: &str) -> Vec<String> {
    with_session(driver, async |session: &mut D::Session| {
        let mut answer = AnswerTable::default();
        session.query(sql, &mut answer).await.unwrap();
        let rows = answer.rows.into_iter().map(|row| {
            let cells = row.into_iter().map(|cell| cell.unwrap_or_else(|| "NULL".to_owned()));
            cells.collect::<Vec<_>>().join("|")
        });
        rows.collect()
    })
}

/// A driver whose bulk loads of a certain range of numbers end with `error`, their rows not
/// stored. All its sessions count together.
pub(crate) struct Failing<'a, D> {
    inner: &'a D,
    /// Numbers of the loads that fail, from 0.
    bad: Range<u32>,
    loads: AtomicU32,
    error: DbError,
}

impl<'a, D: Driver> Failing<'a, D> {
    pub(crate) fn new(inner: &'a D, bad: Range<u32>, error: DbError) -> Self {
        Failing { inner, bad, loads: AtomicU32::new(0), error }
    }

    /// Loads that were tried.
    pub(crate) fn loads(&self) -> u32 {
        self.loads.load(Ordering::Relaxed)
    }
}

impl<'a, D: Driver> Driver for &'a Failing<'_, D> {
    type Session = FailingSession<'a, D::Session>;

    async fn connect(&self, number: u32) -> Result<Self::Session, DbError> {
        let inner = self.inner.connect(number).await?;
        Ok(FailingSession { inner, bad: &self.bad, loads: &self.loads, error: &self.error })
    }

    fn dialect(&self) -> Dialect {
        self.inner.dialect()
    }

    fn blocks(&self) -> bool {
        self.inner.blocks()
    }
}

pub(crate) struct FailingSession<'a, S> {
    inner: S,
    bad: &'a Range<u32>,
    loads: &'a AtomicU32,
    error: &'a DbError,
}

impl<S: Session> Session for FailingSession<'_, S> {
    fn dialect(&self) -> Dialect {
        self.inner.dialect()
    }

    fn product(&self) -> &Product {
        self.inner.product()
    }

    async fn prepare(&mut self, sql: &str, params: &[ParamType]) -> Result<Statement, DbError> {
        self.inner.prepare(sql, params).await
    }

    async fn execute<R: Rows>(
        &mut self,
        statement: Statement,
        params: &[Param<'_>],
        rows: &mut R,
    ) -> Result<Executed, DbError> {
        self.inner.execute(statement, params, rows).await
    }

    async fn query<R: Rows>(&mut self, sql: &str, rows: &mut R) -> Result<Executed, DbError> {
        self.inner.query(sql, rows).await
    }

    fn queue(&mut self, statement: Statement, params: &[Param<'_>]) -> Result<(), DbError> {
        self.inner.queue(statement, params)
    }

    async fn flush<R: Rows>(
        &mut self,
        rows: &mut R,
        results: &mut Vec<Result<Executed, DbError>>,
    ) -> Result<(), DbError> {
        self.inner.flush(rows, results).await
    }

    async fn rollback(&mut self) -> Result<(), DbError> {
        self.inner.rollback().await
    }

    async fn bulk_load(
        &mut self,
        table: &str,
        columns: &[&str],
        rows: &mut dyn RowSource,
    ) -> Result<BulkReport, DbError> {
        if self.bad.contains(&self.loads.fetch_add(1, Ordering::Relaxed)) {
            return Err(self.error.clone());
        }
        self.inner.bulk_load(table, columns, rows).await
    }

    async fn copy_in(&mut self, sql: &str, rows: &mut dyn RowSource) -> Result<u64, DbError> {
        self.inner.copy_in(sql, rows).await
    }

    async fn close(self) {
        self.inner.close().await;
    }
}
