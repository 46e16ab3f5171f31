//! The end of a transaction, and its statements.

use crate::ErrorClass;

/// The end of a transaction, after all its retries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The server acknowledged the commit (or the last autocommitted statement).
    Committed,
    /// Rolled back by the workload's profile (TPC-C's 1 % of New-Orders).
    RolledBack,
    /// Given up with an error of this class.
    Failed(ErrorClass),
    /// Not executed, as the profile allows (a late Delivery, an exhausted data set).
    Skipped,
}

/// The kind of a statement as sysbench counts it: a result set is a read, changed rows are a write, everything else
/// (BEGIN, COMMIT, an UPDATE of no row) is other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatementKind {
    Read,
    Write,
    Other,
}

/// Statements and rows of one attempt at a transaction. The engine adds it to the committed or to the wasted work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    pub reads: u64,
    pub writes: u64,
    pub others: u64,
    pub rows_read: u64,
    pub rows_written: u64,
    /// Statements that changed no row but should have.
    pub misses: u64,
    /// Set if a session that the workload has opened itself is within a transaction.
    pub is_open: bool,
}

impl Tally {
    #[inline]
    pub fn count(&mut self, done: crate::Executed) {
        match done.kind() {
            StatementKind::Read => self.reads += 1,
            StatementKind::Write => self.writes += 1,
            StatementKind::Other => self.others += 1,
        }
        // What a server claims may be anything.
        self.rows_read = self.rows_read.saturating_add(done.rows);
        self.rows_written = self.rows_written.saturating_add(done.affected);
    }

    #[inline]
    pub fn statements(&self) -> u64 {
        self.reads.saturating_add(self.writes).saturating_add(self.others)
    }

    #[inline]
    pub fn add(&mut self, more: &Tally) {
        self.reads += more.reads;
        self.writes += more.writes;
        self.others += more.others;
        self.rows_read = self.rows_read.saturating_add(more.rows_read);
        self.rows_written = self.rows_written.saturating_add(more.rows_written);
        self.misses += more.misses;
    }
}

/// One parameter of an execution, borrowed from the worker.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Param<'a> {
    Null,
    /// MySQL BIGINT, PostgreSQL int8.
    Int(i64),
    Double(f64),
    /// In the encoding of the session (MySQL VARCHAR, PostgreSQL varchar).
    Text(&'a [u8]),
}

/// The declared type of a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParamType {
    /// MySQL BIGINT, PostgreSQL int8 (OID 20).
    Int,
    /// MySQL DOUBLE, PostgreSQL float8 (OID 701).
    Double,
    /// MySQL VARCHAR, PostgreSQL varchar (OID 1043).
    Text,
    /// Left to the server: PostgreSQL OID 0 with values as text, as pgbench and psql do. MySQL and SQLite take the type
    /// of each value.
    Inferred,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Executed;

    #[test]
    fn claims_of_a_server_do_not_wrap() {
        let mut tally = Tally::default();
        for _ in 0..2 {
            tally.count(Executed { has_rows: false, rows: 1, affected: u64::MAX });
        }
        let other = tally;
        tally.add(&other);
        assert_eq!((tally.writes, tally.rows_read, tally.rows_written), (4, 4, u64::MAX));
    }
}
