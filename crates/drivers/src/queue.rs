//! Copies of parameters for later: executions that wait for the next flight, rows that wait for
//! their statement. For drivers without a wire.

use dyno_core::{Param, Statement};
use std::ops::Range;

/// Copied parameters, in buffers that are reused.
#[derive(Clone, Debug, Default)]
pub(crate) struct Params {
    kept: Vec<Kept>,
    texts: Vec<u8>,
}

/// A parameter whose text lies in [`Params::texts`].
#[derive(Clone, Copy, Debug)]
enum Kept {
    Null,
    Int(i64),
    Double(f64),
    Text { start: usize, end: usize },
}

impl Params {
    #[inline]
    pub(crate) fn push(&mut self, param: Param<'_>) {
        let kept = match param {
            Param::Null => Kept::Null,
            Param::Int(value) => Kept::Int(value),
            Param::Double(value) => Kept::Double(value),
            Param::Text(text) => {
                let start = self.texts.len();
                self.texts.extend_from_slice(text);
                Kept::Text { start, end: self.texts.len() }
            }
        };
        self.kept.push(kept);
    }

    pub(crate) fn clear(&mut self) {
        self.kept.clear();
        self.texts.clear();
    }

    pub(crate) fn len(&self) -> usize {
        self.kept.len()
    }

    /// Parameters by their numbers; none where there are none.
    pub(crate) fn range(&self, range: Range<usize>) -> impl ExactSizeIterator<Item = Param<'_>> {
        self.kept.get(range).unwrap_or_default().iter().map(|kept| match *kept {
            Kept::Null => Param::Null,
            Kept::Int(value) => Param::Int(value),
            Kept::Double(value) => Param::Double(value),
            Kept::Text { start, end } => Param::Text(&self.texts[start..end]),
        })
    }
}

/// What a queued execution executes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Queued<'a> {
    Prepared(Statement),
    /// Text that is executed once.
    Once(&'a str),
}

/// Queued executions with copies of their parameters.
#[derive(Clone, Debug, Default)]
pub(crate) struct Queue {
    executions: Vec<Execution>,
    params: Params,
    /// The texts that are executed once, one after the other.
    sql: String,
}

#[derive(Clone, Copy, Debug)]
struct Execution {
    /// `None` for the next text.
    statement: Option<Statement>,
    /// Where its parameters end.
    params_end: usize,
    /// Where its text ends, or that of an earlier one.
    sql_end: usize,
}

impl Queue {
    pub(crate) fn push(&mut self, statement: Statement, params: &[Param<'_>]) {
        self.add(Some(statement), params);
    }

    pub(crate) fn push_once(&mut self, sql: &str, params: &[Param<'_>]) {
        self.sql.push_str(sql);
        self.add(None, params);
    }

    fn add(&mut self, statement: Option<Statement>, params: &[Param<'_>]) {
        params.iter().for_each(|&param| self.params.push(param));
        let (params_end, sql_end) = (self.params.len(), self.sql.len());
        self.executions.push(Execution { statement, params_end, sql_end });
    }

    pub(crate) fn clear(&mut self) {
        self.executions.clear();
        self.params.clear();
        self.sql.clear();
    }

    /// The executions in order.
    pub(crate) fn iter(
        &self,
    ) -> impl Iterator<Item = (Queued<'_>, impl ExactSizeIterator<Item = Param<'_>>)> {
        let (mut params_at, mut sql_at) = (0, 0);
        self.executions.iter().map(move |&Execution { statement, params_end, sql_end }| {
            let params = std::mem::replace(&mut params_at, params_end)..params_end;
            let sql = std::mem::replace(&mut sql_at, sql_end)..sql_end;
            let queued = statement.map_or(Queued::Once(&self.sql[sql]), Queued::Prepared);
            (queued, self.params.range(params))
        })
    }
}
