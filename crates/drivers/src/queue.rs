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

/// Queued executions with copies of their parameters.
#[derive(Clone, Debug, Default)]
pub(crate) struct Queue {
    /// Each with the end of its parameters.
    executions: Vec<(Statement, usize)>,
    params: Params,
}

impl Queue {
    pub(crate) fn push(&mut self, statement: Statement, params: &[Param<'_>]) {
        params.iter().for_each(|&param| self.params.push(param));
        self.executions.push((statement, self.params.len()));
    }

    pub(crate) fn clear(&mut self) {
        self.executions.clear();
        self.params.clear();
    }

    /// The executions in order.
    pub(crate) fn iter(
        &self,
    ) -> impl Iterator<Item = (Statement, impl ExactSizeIterator<Item = Param<'_>>)> {
        let mut start = 0;
        self.executions.iter().map(move |&(statement, end)| {
            let range = std::mem::replace(&mut start, end)..end;
            (statement, self.params.range(range))
        })
    }
}
