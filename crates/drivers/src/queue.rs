//! Shared by drivers without a wire: copied parameters of queued executions and rows, and checks of parameters.

use dyno_core::{DbError, DbResult, ErrorClass, Param, RowWriter, Statement};
use std::ops::Range;

/// A wrong use of a session, which continues.
#[cold]
pub(crate) fn misuse(message: String) -> DbError {
    DbError::server(ErrorClass::Other, 0, *b"00000", message)
}

pub(crate) fn check_placeholders(found: usize, given: usize, sql: &str) -> DbResult<()> {
    if found == given {
        return Ok(());
    }
    Err(misuse(format!("The statement has {found} placeholders for {given} parameters: {sql}")))
}

#[inline]
pub fn check_parameters(taken: usize, given: usize) -> DbResult<()> {
    if taken == given {
        return Ok(());
    }
    Err(misuse(format!("The statement takes {taken} parameters and was given {given}.")))
}

#[cold]
pub fn no_statement(statement: Statement) -> DbError {
    misuse(format!("This session has no statement {}.", statement.0))
}

/// Copied parameters, in reused buffers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Params {
    kept: Vec<CopiedParam>,
    texts: Vec<u8>,
}

/// A parameter whose text lies in [`Params::texts`].
#[derive(Clone, Copy, Debug)]
enum CopiedParam {
    Null,
    Int(i64),
    Double(f64),
    Text { start: usize, end: usize },
}

impl Params {
    /// Copies a parameter to the end.
    #[inline]
    pub(crate) fn push(&mut self, param: Param<'_>) {
        let copied = match param {
            Param::Null => CopiedParam::Null,
            Param::Int(value) => CopiedParam::Int(value),
            Param::Double(value) => CopiedParam::Double(value),
            Param::Text(text) => {
                let start = self.texts.len();
                self.texts.extend_from_slice(text);
                CopiedParam::Text { start, end: self.texts.len() }
            }
        };
        self.kept.push(copied);
    }

    /// Removes all parameters, keeping the memory.
    pub(crate) fn clear(&mut self) {
        self.kept.clear();
        self.texts.clear();
    }

    /// Number of parameters.
    pub(crate) fn len(&self) -> usize {
        self.kept.len()
    }

    /// The parameters in this range; none if it is out of bounds.
    pub(crate) fn range(&self, range: Range<usize>) -> impl ExactSizeIterator<Item = Param<'_>> {
        self.kept.get(range).unwrap_or_default().iter().map(|kept| match *kept {
            CopiedParam::Null => Param::Null,
            CopiedParam::Int(value) => Param::Int(value),
            CopiedParam::Double(value) => Param::Double(value),
            CopiedParam::Text { start, end } => Param::Text(&self.texts[start..end]),
        })
    }
}

/// Columns of rows, one after another.
impl RowWriter for Params {
    #[inline]
    fn int(&mut self, value: i64) {
        self.push(Param::Int(value));
    }

    #[inline]
    fn double(&mut self, value: f64) {
        self.push(Param::Double(value));
    }

    #[inline]
    fn text(&mut self, value: &[u8]) {
        self.push(Param::Text(value));
    }

    #[inline]
    fn null(&mut self) {
        self.push(Param::Null);
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Queued<'a> {
    Prepared(Statement),
    Once(&'a str),
}

#[derive(Clone, Debug, Default)]
pub struct Queue {
    executions: Vec<QueuedExecution>,
    params: Params,
    /// Concatenated texts of one-time executions.
    sql: String,
}

#[derive(Clone, Copy, Debug)]
struct QueuedExecution {
    /// `None` for the next text.
    statement: Option<Statement>,
    /// The end of its parameters.
    params_end: usize,
    /// The end of its text, or of the one before.
    sql_end: usize,
}

impl Queue {
    /// Queues an execution of a prepared statement.
    pub fn push(&mut self, statement: Statement, params: &[Param<'_>]) {
        self.add(Some(statement), params);
    }

    pub fn push_once(&mut self, sql: &str, params: &[Param<'_>]) {
        self.sql.push_str(sql);
        self.add(None, params);
    }

    /// Queues an execution; without a statement, of the text added last.
    fn add(&mut self, statement: Option<Statement>, params: &[Param<'_>]) {
        params.iter().for_each(|&param| self.params.push(param));
        let (params_end, sql_end) = (self.params.len(), self.sql.len());
        self.executions.push(QueuedExecution { statement, params_end, sql_end });
    }

    /// Removes all executions, keeping the memory.
    pub fn clear(&mut self) {
        self.executions.clear();
        self.params.clear();
        self.sql.clear();
    }

    /// The executions in their order, each with its parameters.
    pub fn iter(
        &self,
    ) -> impl Iterator<Item = (Queued<'_>, impl ExactSizeIterator<Item = Param<'_>>)> {
        let (mut params_at, mut sql_at) = (0, 0);
        self.executions.iter().map(move |&QueuedExecution { statement, params_end, sql_end }| {
            let params = std::mem::replace(&mut params_at, params_end)..params_end;
            let sql = std::mem::replace(&mut sql_at, sql_end)..sql_end;
            let queued = statement.map_or(Queued::Once(&self.sql[sql]), Queued::Prepared);
            (queued, self.params.range(params))
        })
    }
}

/// The calls of a [`dyno_core::Session`] that executes one statement at a time with its `run` and its `queue`. With
/// `.await` where `run` is asynchronous.
#[macro_export]
macro_rules! calls_of_queue {
    ($($wait:tt)*) => {
        async fn execute<R: Rows>(
            &mut self,
            statement: Statement,
            params: &[Param<'_>],
            rows: &mut R,
        ) -> DbResult<Executed> {
            self.run(Queued::Prepared(statement), params.iter().copied(), rows)$($wait)*
        }

        async fn execute_once<R: Rows>(
            &mut self,
            sql: impl AsRef<[u8]>,
            params: &[Param<'_>],
            rows: &mut R,
        ) -> DbResult<Executed> {
            let sql = dyno_core::utf8_statement(sql.as_ref())?;
            self.run(Queued::Once(sql), params.iter().copied(), rows)$($wait)*
        }

        fn queue_once(&mut self, sql: impl AsRef<[u8]>, params: &[Param<'_>]) -> DbResult<()> {
            self.queue.push_once(dyno_core::utf8_statement(sql.as_ref())?, params);
            Ok(())
        }

        async fn flush<R: Rows>(&mut self, rows: &mut R, results: &mut dyno_core::FlightAnswers) -> DbResult<()> {
            let queue = std::mem::take(&mut self.queue);
            for (queued, params) in queue.iter() {
                match self.run(queued, params, rows)$($wait)* {
                    Err(error) if error.is_fatal() => return Err(error),
                    answer => results.push(answer),
                }
            }
            self.queue = queue;
            self.queue.clear();
            Ok(())
        }
    };
}
