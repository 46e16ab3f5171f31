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
    /// Relative share of the mix. Kinds of weight 0 are never picked; an [`Errand`] may be one.
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

/// What a terminal does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// What it starts.
    pub transaction: TransactionId,
    /// How long after the end of its last transaction that is due; for the first one after the
    /// start of the trial.
    pub pause: Nanos,
}

/// Work that a transaction of a terminal has left for later: due at once, executed by the next
/// free session, for no terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Errand {
    /// What is to be executed.
    pub transaction: TransactionId,
    /// What the workload needs to know about it.
    pub ticket: u64,
}

/// A workload: data that all workers share, and the code of its transactions.
///
/// One worker lives on one loop, so the futures need not be `Send`. Nothing here may allocate in
/// the steady state of [`Workload::run`].
pub trait Workload: Sync {
    /// What one worker keeps between transactions: prepared statements, random stream, buffers.
    type Worker;

    /// What one terminal keeps between transactions, where a trial has terminals: users with pauses,
    /// many more than sessions. `()` where the workload has none. Its size counts: there may be
    /// hundreds of thousands.
    type Terminal;

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

    /// Makes terminal number `terminal` (from 0, unique over all loops) and says what it does first.
    /// What it does depends on `rng`, its own stream, only: not on sessions and loops.
    /// `None` when this workload has no terminals.
    fn seat(&self, _terminal: u32, _rng: Rng) -> Option<(Self::Terminal, Plan)> {
        None
    }

    /// What a terminal does next. Its last transaction is over, done or failed.
    #[inline]
    fn plan(&self, _terminal: &mut Self::Terminal) -> Plan {
        Plan { transaction: 0, pause: 0 }
    }

    /// Puts a terminal into the worker that executes its transaction: swaps it with what the worker
    /// holds. Called before the first attempt, and again after the end of the transaction.
    #[inline]
    fn swap(&self, _worker: &mut Self::Worker, _terminal: &mut Self::Terminal) {}

    /// What a terminal's transaction that has just ended leaves for later. Asked once for each.
    #[inline]
    fn errand(&self, _worker: &mut Self::Worker) -> Option<Errand> {
        None
    }

    /// The worker's next transaction is an errand, left at `left`, with this ticket.
    #[inline]
    fn take_errand(&self, _worker: &mut Self::Worker, _ticket: u64, _left: Nanos) {}
}
