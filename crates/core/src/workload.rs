//! What is executed.

use crate::{DbError, Outcome, Rng, Session, Tally};

/// Number of a worker, from 0, unique over all loops of a trial.
pub type WorkerId = u32;

/// Index into [`Workload::transactions`].
pub type TransactionId = usize;

/// One kind of transaction of a workload.
#[derive(Clone, Debug, PartialEq)]
pub struct TransactionKind {
    /// The name in reports, such as `oltp_read_write` or `new_order`.
    pub name: String,
    /// Relative share of the mix. Kinds of weight 0 are never started.
    pub weight: u32,
}

/// A workload: data that all workers share, and the code of its transactions.
///
/// One worker lives on one loop, so the futures need not be `Send`. Nothing here may allocate in
/// the steady state of [`Workload::run`].
pub trait Workload: Sync {
    /// What one worker keeps between transactions: prepared statements, random stream, buffers.
    type Worker;

    /// The kinds of transactions, fixed for the life of the workload; never empty.
    fn transactions(&self) -> &[TransactionKind];

    /// Prepares a fresh session for worker `id` of `workers`. `rng` is that worker's stream.
    fn open<S: Session>(
        &self,
        session: &mut S,
        id: WorkerId,
        workers: u32,
        rng: Rng,
    ) -> impl Future<Output = Result<Self::Worker, DbError>>;

    /// Prepares a session that replaces a lost one. Keeps the worker's random stream.
    fn reopen<S: Session>(
        &self,
        worker: &mut Self::Worker,
        session: &mut S,
    ) -> impl Future<Output = Result<(), DbError>>;

    /// Makes one attempt at a transaction. `attempt` is 0 first and counts retries; a workload may
    /// draw fresh inputs for a retry (sysbench does) or repeat them (TPC-C does).
    /// What the attempt did is counted in `tally`, which the engine has cleared.
    ///
    /// # Errors
    /// The error that ended the attempt; the engine decides whether there is another one and has
    /// the session rolled back.
    fn run<S: Session>(
        &self,
        worker: &mut Self::Worker,
        session: &mut S,
        transaction: TransactionId,
        attempt: u32,
        tally: &mut Tally,
    ) -> impl Future<Output = Result<Outcome, DbError>>;

    /// Sends what the worker has held back, such as the last packet of a bulk insert. Called once
    /// per worker, after its last transaction, while its session is usable; what it does is
    /// counted in `tally`.
    ///
    /// # Errors
    /// When what was held back could not be stored.
    fn finish<S: Session>(
        &self,
        _worker: &mut Self::Worker,
        _session: &mut S,
        _tally: &mut Tally,
    ) -> impl Future<Output = Result<(), DbError>> {
        async { Ok(()) }
    }
}
