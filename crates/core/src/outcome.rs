//! The end of a transaction, and its statements.

use crate::ErrorClass;

/// The end of a transaction, after all its retries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The server acknowledged the commit (or the last autocommitted statement).
    Committed,
    /// Rolled back by the workload's profile (TPC-C's 1% of New-Orders).
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
    /// Reads that returned no row; `reads` counts them too.
    pub empty_reads: u64,
    /// Statements that changed no row but should have.
    pub misses: u64,
    /// Errors that the workload has dealt with itself.
    pub handled_errors: u64,
    /// Sessions that the workload has opened again itself.
    pub reconnects: u64,
    /// Set if a session that the workload has opened itself is within a transaction.
    pub is_open: bool,
}

impl Tally {
    /// Counts an executed statement by its kind.
    #[inline]
    pub fn count(&mut self, done: crate::Executed) {
        match done.kind() {
            StatementKind::Read => {
                self.reads += 1;
                self.empty_reads += u64::from(done.rows == 0);
            }
            StatementKind::Write => self.writes += 1,
            StatementKind::Other => self.others += 1,
        }
        // What a server claims may be anything.
        self.rows_read = self.rows_read.saturating_add(done.rows);
        self.rows_written = self.rows_written.saturating_add(done.affected);
    }

    /// Counts a statement of somebody else's, whose text says whether it should have changed rows.
    #[inline]
    pub fn count_text(&mut self, done: crate::Executed, text: &[u8]) {
        self.count(done);
        if done.kind() == StatementKind::Other {
            let word = text.trim_ascii_start().get(..6).unwrap_or_default();
            let is_change =
                word.eq_ignore_ascii_case(b"UPDATE") || word.eq_ignore_ascii_case(b"DELETE");
            self.misses += u64::from(is_change);
        }
    }

    /// Number of statements of all kinds.
    #[inline]
    pub fn statements(&self) -> u64 {
        self.reads.saturating_add(self.writes).saturating_add(self.others)
    }

    /// Adds the counts of another tally.
    #[inline]
    pub fn add(&mut self, more: &Tally) {
        self.reads += more.reads;
        self.writes += more.writes;
        self.others += more.others;
        self.rows_read = self.rows_read.saturating_add(more.rows_read);
        self.rows_written = self.rows_written.saturating_add(more.rows_written);
        self.empty_reads += more.empty_reads;
        self.misses += more.misses;
        self.handled_errors += more.handled_errors;
        self.reconnects += more.reconnects;
    }
}

/// One parameter of an execution, borrowed from the worker.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Param<'a> {
    Null,
    /// MySQL BIGINT, PostgreSQL int8.
    Int(i64),
    Double(f64),
    /// Text in the encoding of the session (MySQL VARCHAR, PostgreSQL varchar).
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
    fn statements_that_met_no_row_are_counted_by_their_text() {
        let mut tally = Tally::default();
        for text in [" update t SET n = 1", "DELETE FROM t", "COMMIT", "INSERT INTO t SELECT 1"] {
            tally.count_text(Executed::default(), text.as_bytes());
        }
        for rows in [0, 1] {
            let executed = Executed { has_rows: true, rows, affected: 0 };
            tally.count_text(executed, b"UPDATE t SET n = 1 RETURNING n");
        }
        assert_eq!((tally.others, tally.misses, tally.reads, tally.empty_reads), (4, 2, 2, 1));
    }

    #[test]
    fn claims_of_a_server_do_not_wrap() {
        let mut tally = Tally::default();
        for _ in 0..2 {
            tally.count(Executed { has_rows: false, rows: 1, affected: u64::MAX });
        }
        let copy = tally;
        tally.add(&copy);
        assert_eq!((tally.writes, tally.rows_read, tally.rows_written), (4, 4, u64::MAX));
    }
}
