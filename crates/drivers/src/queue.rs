//! Executions that wait for the next flight, for drivers without a wire.

use dyno_core::{Param, Statement};

/// Queued executions with copies of their parameters, in buffers that are reused.
#[derive(Clone, Debug, Default)]
pub(crate) struct Queue {
    executions: Vec<(Statement, usize)>,
    params: Vec<Kept>,
    texts: Vec<u8>,
}

/// A parameter whose text lies in [`Queue::texts`].
#[derive(Clone, Copy, Debug)]
enum Kept {
    Null,
    Int(i64),
    Double(f64),
    Text { start: usize, end: usize },
}

impl Queue {
    pub(crate) fn push(&mut self, statement: Statement, params: &[Param<'_>]) {
        for param in params {
            let kept = match *param {
                Param::Null => Kept::Null,
                Param::Int(value) => Kept::Int(value),
                Param::Double(value) => Kept::Double(value),
                Param::Text(text) => {
                    let start = self.texts.len();
                    self.texts.extend_from_slice(text);
                    Kept::Text { start, end: self.texts.len() }
                }
            };
            self.params.push(kept);
        }
        self.executions.push((statement, params.len()));
    }

    pub(crate) fn clear(&mut self) {
        self.executions.clear();
        self.params.clear();
        self.texts.clear();
    }

    /// The executions in order.
    pub(crate) fn iter(
        &self,
    ) -> impl Iterator<Item = (Statement, impl ExactSizeIterator<Item = Param<'_>>)> {
        let mut rest = self.params.as_slice();
        self.executions.iter().map(move |&(statement, count)| {
            let (mine, others) = rest.split_at(count);
            rest = others;
            (statement, mine.iter().map(|kept| self.param(*kept)))
        })
    }

    fn param(&self, kept: Kept) -> Param<'_> {
        match kept {
            Kept::Null => Param::Null,
            Kept::Int(value) => Param::Int(value),
            Kept::Double(value) => Param::Double(value),
            Kept::Text { start, end } => Param::Text(&self.texts[start..end]),
        }
    }
}
