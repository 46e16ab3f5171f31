//! Workloads: the code of transactions.

use crate::{DbError, Nanos, Outcome, Rng, Session, Statement, Tally};

/// Number of a worker, from 0, unique over all loops of a trial.
pub type WorkerId = u32;

/// Index into [`Workload::transactions`].
pub type TransactionId = usize;

#[derive(Clone, Debug, PartialEq)]
pub struct TransactionKind {
    /// For example `oltp_read_write` or `new_order`.
    pub name: String,
    /// Relative share of the mix. Kinds of weight 0 are never picked; a [`DeferredTransaction`] may be one.
    pub weight: u32,
}

/// One finished transaction, as the engine saw it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndedTransaction {
    pub transaction: TransactionId,
    pub outcome: Outcome,
    /// The time of the schedule; without a schedule the same as `began`.
    pub due: Nanos,
    /// The begin of its first attempt.
    pub began: Nanos,
    /// The answer to its last attempt, or the time when it was skipped.
    pub ended: Nanos,
    /// 0 when it was skipped because it was late.
    pub attempts: u32,
    /// Set if it ended inside the measured window.
    pub is_measured: bool,
}

/// The next transaction of a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TerminalPlan {
    pub transaction: TransactionId,
    /// Time from the end of its last transaction, or from the start of the trial.
    pub pause: Nanos,
}

/// Work that a transaction of a terminal leaves for later: due at once, executed by the next free session, for no
/// terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeferredTransaction {
    pub transaction: TransactionId,
    /// Known to the workload.
    pub ticket: u64,
}

/// Data that all workers share, and the code of their transactions.
///
/// One worker lives on one loop, so the futures need not be `Send`. Nothing may allocate in the steady state of
/// [`Workload::run`].
pub trait Workload: Sync {
    /// Kept between transactions: prepared statements, random stream, buffers.
    type Worker;

    /// Kept between the transactions of a terminal: a user with pauses. A trial may have hundreds of thousands, so its
    /// size counts. `()` where the workload has no terminals.
    type Terminal: Send;

    /// The kinds of transactions, fixed for the life of the workload; never empty.
    fn transactions(&self) -> &[TransactionKind];

    /// The largest number of rows that one of its statements has to read; `None` if the user wrote the statements.
    fn rows_touched(&self) -> Option<u64> {
        None
    }

    /// Prepares a fresh session for worker `id` of `workers`.
    fn open<S: Session>(
        &self,
        session: &mut S,
        id: WorkerId,
        workers: u32,
        rng: Rng,
    ) -> impl Future<Output = Result<Self::Worker, DbError>>;

    /// Prepares a session that replaces a lost one.
    fn reopen<S: Session>(
        &self,
        worker: &mut Self::Worker,
        session: &mut S,
    ) -> impl Future<Output = Result<(), DbError>>;

    /// Makes one attempt at a transaction. `attempt` counts retries from 0; a retry may draw fresh inputs (sysbench) or
    /// repeat them (TPC-C). Counts its statements in `tally`, which the engine has cleared. After an error the engine
    /// decides about a retry and has the session rolled back, unless [`Workload::rolls_back`] says no.
    fn run<S: Session>(
        &self,
        worker: &mut Self::Worker,
        session: &mut S,
        transaction: TransactionId,
        attempt: u32,
        tally: &mut Tally,
    ) -> impl Future<Output = Result<Outcome, DbError>>;

    /// Returns true if the session is rolled back between an attempt that ended with `error` and the next one. If not,
    /// an open transaction continues with the next attempt.
    #[inline]
    fn rolls_back(&self, _error: &DbError) -> bool {
        true
    }

    /// Picks the next transaction. `None`: the engine draws by weight from its own stream.
    #[inline]
    fn choose(&self, _worker: &mut Self::Worker) -> Option<TransactionId> {
        None
    }

    /// Returns true for a worker that begins nothing more by its own decision. The trial is over when all have ended.
    #[inline]
    fn has_ended(&self, _worker: &Self::Worker) -> bool {
        false
    }

    /// Reason for a worker to leave after the transaction that has just ended, which counts. Asked after each one.
    #[inline]
    fn leaves(&self, _worker: &mut Self::Worker) -> Option<DbError> {
        None
    }

    /// Called after each transaction, measured or not: for logs and for the workload's own statistics.
    #[inline]
    fn ended(&self, _worker: &mut Self::Worker, _ended: &EndedTransaction) {}

    /// Takes back a worker that runs nothing any more, with the error that ended it early, if any.
    fn retire(&self, _worker: Self::Worker, _error: Option<&DbError>) {}

    /// Sends the rest of the worker's data, such as the last packet of a bulk insert. Called once per worker after its
    /// last transaction, while its session is usable.
    fn finish<S: Session>(
        &self,
        _worker: &mut Self::Worker,
        _session: &mut S,
        _tally: &mut Tally,
    ) -> impl Future<Output = Result<(), DbError>> {
        async { Ok(()) }
    }

    /// Makes terminal `terminal` (from 0, unique over all loops) with its first plan, which may depend on `rng` only,
    /// not on sessions and loops. `None`: this workload has no terminals.
    fn seat(&self, _terminal: u32, _rng: Rng) -> Option<(Self::Terminal, TerminalPlan)> {
        None
    }

    /// The next plan of a terminal after the end of its last transaction, successful or not.
    #[inline]
    fn plan(&self, _terminal: &mut Self::Terminal) -> TerminalPlan {
        TerminalPlan { transaction: 0, pause: 0 }
    }

    /// Swaps a terminal with the one in the worker that executes its transaction. Called before the first attempt, and
    /// again after the end of the transaction.
    #[inline]
    fn swap(&self, _worker: &mut Self::Worker, _terminal: &mut Self::Terminal) {}

    /// Work that a terminal's transaction leaves for later. Called once after each.
    #[inline]
    fn errand(&self, _worker: &mut Self::Worker) -> Option<DeferredTransaction> {
        None
    }

    /// Announces the worker's next transaction: an errand with this ticket, left at `left`.
    #[inline]
    fn take_errand(&self, _worker: &mut Self::Worker, _ticket: u64, _left: Nanos) {}
}

/// Prepared statements by their numbers, which are given again once they are free.
#[derive(Debug)]
pub struct StatementTable<T> {
    slots: Vec<Option<T>>,
    free: Vec<u32>,
}

impl<T> Default for StatementTable<T> {
    fn default() -> Self {
        StatementTable { slots: Vec::new(), free: Vec::new() }
    }
}

impl<T> StatementTable<T> {
    /// Keeps a prepared statement; returns its number.
    pub fn add(&mut self, prepared: T) -> Statement {
        if let Some(number) = self.free.pop() {
            self.slots[number as usize] = Some(prepared);
            return Statement(number);
        }
        self.slots.push(Some(prepared));
        Statement(self.slots.len() as u32 - 1)
    }

    /// The statement with this number, unless it was removed.
    #[inline]
    pub fn get(&self, statement: Statement) -> Option<&T> {
        self.slots.get(statement.0 as usize)?.as_ref()
    }

    #[inline]
    pub fn get_mut(&mut self, statement: Statement) -> Option<&mut T> {
        self.slots.get_mut(statement.0 as usize)?.as_mut()
    }

    /// Takes a statement out; `None` if there is none of this number.
    pub fn remove(&mut self, statement: Statement) -> Option<T> {
        let removed = self.slots.get_mut(statement.0 as usize)?.take()?;
        self.free.push(statement.0);
        Some(removed)
    }

    pub fn all_mut(&mut self) -> impl Iterator<Item = (Statement, &mut T)> {
        let numbered = self.slots.iter_mut().enumerate();
        numbered.filter_map(|(number, slot)| Some((Statement(number as u32), slot.as_mut()?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_given_again_once_it_is_free() {
        let mut table = StatementTable::default();
        let (first, second) = (table.add('a'), table.add('b'));
        assert_eq!(table.remove(first), Some('a'));
        assert_eq!((table.remove(first), table.get(first)), (None, None));
        assert_eq!(table.remove(Statement(7)), None);
        assert_eq!((table.add('c'), table.add('d')), (first, Statement(2)));
        assert_eq!(table.get(first), Some(&'c'));
        assert_eq!(table.get_mut(second), Some(&mut 'b'));
        let entries: Vec<_> =
            table.all_mut().map(|(statement, letter)| (statement.0, *letter)).collect();
        assert_eq!(entries, [(0, 'c'), (1, 'b'), (2, 'd')]);
    }
}
