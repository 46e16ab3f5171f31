//! A line for each transaction: what a log is told, in blocks.
//!
//! Workers only note what happened. What becomes of it, text in a file say, is another thread's
//! work.

use dyno_core::{EndedTransaction, Nanos, Outcome, SECOND, TransactionId};
use std::fmt;
use std::sync::Arc;

/// One transaction that ended inside the measured window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogEntry {
    /// Its kind, an index into the workload's transactions.
    pub transaction: TransactionId,
    pub outcome: Outcome,
    /// Districts that a Delivery found without an order; 0 of other kinds.
    pub skipped: u32,
    /// When it was due; without a schedule the same as `began`.
    pub due: Nanos,
    /// When its first attempt began.
    pub began: Nanos,
    /// When its last attempt was answered.
    pub ended: Nanos,
}

/// Takes what workers have noted, from many threads.
pub trait TerminalLog: fmt::Debug + Send + Sync {
    /// Takes all entries out of `entries`, which are one worker's in the order of their ends, and
    /// leaves its capacity. Must not wait for a disk: a loop calls it.
    fn take(&self, entries: &mut Vec<LogEntry>);
}

/// Entries that a worker hands over at once.
const BLOCK: usize = 128;
/// How long an entry waits at most for others of its worker.
const AGE_MAX: Nanos = SECOND;

/// What one worker has noted and not yet handed over. Hands it over when it is dropped.
#[derive(Debug)]
pub(crate) struct WorkerLog {
    log: Arc<dyn TerminalLog>,
    entries: Vec<LogEntry>,
    handed_over: Nanos,
}

impl WorkerLog {
    pub(crate) fn new(log: &Arc<dyn TerminalLog>) -> Self {
        WorkerLog { log: Arc::clone(log), entries: Vec::with_capacity(BLOCK), handed_over: 0 }
    }

    #[inline]
    pub(crate) fn note(&mut self, ended: &EndedTransaction, skipped: u32) {
        if !ended.is_measured || ended.outcome == Outcome::Skipped {
            return;
        }
        let &EndedTransaction { transaction, outcome, due, began, ended, .. } = ended;
        self.entries.push(LogEntry { transaction, outcome, skipped, due, began, ended });
        if self.entries.len() == BLOCK || ended.saturating_sub(self.handed_over) > AGE_MAX {
            self.log.take(&mut self.entries);
            self.handed_over = ended;
        }
    }
}

impl Drop for WorkerLog {
    fn drop(&mut self) {
        if !self.entries.is_empty() {
            self.log.take(&mut self.entries);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    #[derive(Debug, Default)]
    struct Blocks(Mutex<Vec<Vec<LogEntry>>>);

    impl TerminalLog for Blocks {
        fn take(&self, entries: &mut Vec<LogEntry>) {
            self.0.lock().unwrap().push(std::mem::replace(entries, Vec::with_capacity(BLOCK)));
        }
    }

    fn ended(at: Nanos) -> EndedTransaction {
        EndedTransaction {
            transaction: 1,
            outcome: Outcome::Committed,
            due: at - 3,
            began: at - 2,
            ended: at,
            attempts: 1,
            is_measured: true,
        }
    }

    fn blocks(ends: impl IntoIterator<Item = EndedTransaction>) -> Vec<usize> {
        let blocks = Arc::new(Blocks::default());
        let mut worker = WorkerLog::new(&(blocks.clone() as Arc<dyn TerminalLog>));
        ends.into_iter().for_each(|ended| worker.note(&ended, 0));
        drop(worker);
        let blocks = blocks.0.lock().unwrap();
        blocks.iter().map(Vec::len).collect()
    }

    #[test]
    fn entries_are_handed_over_in_blocks_and_the_rest_at_the_end() {
        let ends = (0..300).map(|number| ended(10 + number));
        assert_eq!(blocks(ends), [128, 128, 44]);
        assert_eq!(blocks([]), [0; 0]);
    }

    #[test]
    fn a_slow_worker_is_not_a_second_behind() {
        let ends = [0, 4, 8, 12, 13].map(|tenths| ended(SECOND / 2 + tenths * SECOND / 10));
        assert_eq!(blocks(ends), [3, 2]);
    }

    #[test]
    fn only_what_counts_is_noted() {
        let late = EndedTransaction { is_measured: false, ..ended(10) };
        let skipped = EndedTransaction { outcome: Outcome::Skipped, ..ended(10) };
        assert_eq!(blocks([late, skipped, ended(10)]), [1]);
    }
}
