//! What is executed.

use crate::{DbError, Nanos, Outcome, Rng, Session, Tally};

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

/// One transaction that is over, as the engine saw it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended {
    /// Which kind it was.
    pub transaction: TransactionId,
    /// How it ended.
    pub outcome: Outcome,
    /// When the schedule wanted it; without a schedule the same as `began`.
    pub due: Nanos,
    /// When its first attempt began.
    pub began: Nanos,
    /// When its last attempt was answered, or when it was skipped.
    pub ended: Nanos,
    /// Attempts made; 0 when it was skipped because it was late.
    pub attempts: u32,
    /// True when it counts: it ended inside the measured window.
    pub is_measured: bool,
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

    /// Picks the next transaction. `None` leaves it to the engine, which draws by weight from a
    /// stream of its own.
    #[inline]
    fn choose(&self, _worker: &mut Self::Worker) -> Option<TransactionId> {
        None
    }

    /// Is told of each transaction that is over, whether it counts or not: for logs and for
    /// statistics of the workload's own.
    #[inline]
    fn ended(&self, _worker: &mut Self::Worker, _ended: &Ended) {}

    /// Takes the worker back when it will run nothing any more, with the error that ended it before
    /// the others, if any.
    fn retire(&self, _worker: Self::Worker, _error: Option<&DbError>) {}

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
