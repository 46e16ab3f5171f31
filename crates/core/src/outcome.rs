//! How a transaction ended and what it did.

use crate::ErrorClass;

/// How one transaction ended, after all its retries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The server acknowledged the commit (or the last autocommitted statement).
    Committed,
    /// Rolled back because the workload's profile asks for it (TPC-C's 1 % of New-Orders).
    RolledBack,
    /// Gave up with an error of this class.
    Failed(ErrorClass),
    /// Not executed, as the profile allows (a late Delivery, an exhausted data set).
    Skipped,
}

/// What a statement turned out to be, counted as sysbench counts: a result set is a read, changed
/// rows are a write, everything else (BEGIN, COMMIT, an UPDATE of no row) is other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatementKind {
    /// The answer was a result set.
    Read,
    /// Rows were changed.
    Write,
    /// Neither.
    Other,
}

/// What one attempt at a transaction did. The engine adds it to the committed or to the wasted
/// work, depending on how the attempt ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Statements answered with a result set.
    pub reads: u64,
    /// Statements that changed at least one row.
    pub writes: u64,
    /// All other statements.
    pub others: u64,
    /// Rows received.
    pub rows_read: u64,
    /// Rows changed.
    pub rows_written: u64,
    /// Statements that were expected to change a row and changed none.
    pub misses: u64,
}

impl Tally {
    /// Counts one answered statement.
    #[inline]
    pub fn count(&mut self, done: crate::Executed) {
        match done.kind() {
            StatementKind::Read => self.reads += 1,
            StatementKind::Write => self.writes += 1,
            StatementKind::Other => self.others += 1,
        }
        self.rows_read += done.rows;
        self.rows_written += done.affected;
    }

    /// All statements, of whatever kind.
    #[inline]
    pub fn statements(&self) -> u64 {
        self.reads + self.writes + self.others
    }

    /// Adds another tally to this one.
    #[inline]
    pub fn add(&mut self, more: &Tally) {
        self.reads += more.reads;
        self.writes += more.writes;
        self.others += more.others;
        self.rows_read += more.rows_read;
        self.rows_written += more.rows_written;
        self.misses += more.misses;
    }
}
