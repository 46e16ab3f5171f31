//! The family as a [`Workload`].

use crate::bulk_insert::{self, BulkWorker};
use crate::oltp::{Oltp, OltpWorker};
use crate::options::SysbenchOptions;
use crate::statements::{RandomKeys, RandomKeysWorker};
use dyno_core::{
    DbError, Dialect, Discard, Outcome, Rng, Session, Tally, TransactionId, TransactionKind,
    WorkerId, Workload,
};
use std::future::poll_fn;

/// One test of the sysbench family on one dialect.
#[derive(Debug)]
pub struct Sysbench {
    options: SysbenchOptions,
    kinds: [TransactionKind; 1],
    script: Script,
}

#[derive(Debug)]
enum Script {
    Oltp(Box<Oltp>),
    RandomKeys(RandomKeys),
    BulkInsert,
}

#[derive(Debug)]
pub struct SysbenchWorker(State);

#[derive(Debug)]
enum State {
    Oltp(Box<OltpWorker>),
    RandomKeys(RandomKeysWorker),
    BulkInsert(BulkWorker),
}

impl Sysbench {
    /// The test that `options` describe, for sessions of `dialect`.
    pub fn new(options: SysbenchOptions, dialect: Dialect) -> Self {
        let script = if options.test.is_bulk_insert() {
            Script::BulkInsert
        } else if options.test.is_select_random() {
            Script::RandomKeys(RandomKeys::new(&options))
        } else {
            Script::Oltp(Box::new(Oltp::new(&options, dialect)))
        };
        let kinds = [TransactionKind { name: options.test.name().to_owned(), weight: 1 }];
        Sysbench { options, kinds, script }
    }
}

impl Workload for Sysbench {
    type Worker = SysbenchWorker;
    type Terminal = ();

    fn transactions(&self) -> &[TransactionKind] {
        &self.kinds
    }

    fn rows_touched(&self) -> Option<u64> {
        let SysbenchOptions { range_size, random_points, number_of_ranges, delta, .. } =
            self.options;
        Some(u64::from(range_size.max(random_points).max(number_of_ranges.saturating_mul(delta))))
    }

    async fn open<S: Session>(
        &self,
        session: &mut S,
        id: WorkerId,
        workers: u32,
        rng: Rng,
    ) -> Result<SysbenchWorker, DbError> {
        let options = &self.options;
        Ok(SysbenchWorker(match &self.script {
            Script::Oltp(oltp) => State::Oltp(Box::new(oltp.open(session, options, rng).await?)),
            Script::RandomKeys(keys) => {
                State::RandomKeys(keys.open(session, options, id, workers, rng).await?)
            }
            Script::BulkInsert => State::BulkInsert(bulk_insert::open(session, options, id).await?),
        }))
    }

    async fn reopen<S: Session>(
        &self,
        worker: &mut SysbenchWorker,
        session: &mut S,
    ) -> Result<(), DbError> {
        match (&self.script, &mut worker.0) {
            (Script::Oltp(oltp), State::Oltp(worker)) => oltp.reopen(worker, session).await,
            (Script::RandomKeys(keys), State::RandomKeys(worker)) => {
                keys.reopen(worker, session).await
            }
            (_, State::BulkInsert(worker)) => bulk_insert::reopen(worker, session).await,
            (_, State::Oltp(_) | State::RandomKeys(_)) => Err(foreign_worker()),
        }
    }

    #[inline]
    fn run<S: Session>(
        &self,
        worker: &mut SysbenchWorker,
        session: &mut S,
        _transaction: TransactionId,
        _attempt: u32,
        tally: &mut Tally,
    ) -> impl Future<Output = Result<Outcome, DbError>> {
        self.execute(worker, session, tally)
    }

    async fn finish<S: Session>(
        &self,
        worker: &mut SysbenchWorker,
        session: &mut S,
        tally: &mut Tally,
    ) -> Result<(), DbError> {
        match &mut worker.0 {
            State::BulkInsert(worker) => bulk_insert::finish(worker, session, tally).await,
            State::Oltp(_) | State::RandomKeys(_) => Ok(()),
        }
    }
}

impl Sysbench {
    /// The usual statements are executed here: a separate future would be moved, empty or not, for each transaction.
    async fn execute<S: Session>(
        &self,
        worker: &mut SysbenchWorker,
        session: &mut S,
        tally: &mut Tally,
    ) -> Result<Outcome, DbError> {
        let (Script::Oltp(oltp), State::Oltp(worker)) = (&self.script, &mut worker.0) else {
            return self.execute_other(worker, session, tally).await;
        };
        let OltpWorker { draws, statements } = &mut **worker;
        let mut cursor = oltp.begin(draws);
        // Asked apart, so that no call of `next` is made for the end alone.
        while !oltp.is_over(&cursor) {
            let Some(kind) = oltp.next(draws, &mut cursor) else { break };
            let mut submitted = match oltp.only_id(kind, &cursor) {
                Some(id) => statements.submit(session, kind, cursor.table, &[id]),
                None => {
                    let (params, some) = oltp.params(kind, draws, &cursor);
                    statements.submit(session, kind, cursor.table, &params[some])
                }
            };
            let mut answer = None;
            if let Ok(true) = submitted {
                match poll_fn(|_| session.poll_submitted(&mut Discard)).await {
                    Ok(read) => answer = read,
                    Err(error) => submitted = Err(error),
                }
            }
            let executed = match answer {
                Some(executed) => executed,
                None => {
                    let (params, some) = oltp.params(kind, draws, &cursor);
                    let (templates, params) = (&oltp.templates, &params[some]);
                    statements
                        .execute(session, templates, kind, cursor.table, params, submitted)
                        .await?
                }
            };
            tally.count(executed);
            tally.misses += u64::from(executed.affected == 0 && kind.is_change());
        }
        Ok(Outcome::Committed)
    }

    async fn execute_other<S: Session>(
        &self,
        worker: &mut SysbenchWorker,
        session: &mut S,
        tally: &mut Tally,
    ) -> Result<Outcome, DbError> {
        match (&self.script, &mut worker.0) {
            (Script::RandomKeys(keys), State::RandomKeys(worker)) => {
                keys.run(worker, session, tally).await
            }
            (_, State::BulkInsert(worker)) => bulk_insert::run(worker, session, tally).await,
            (_, State::Oltp(_) | State::RandomKeys(_)) => Err(foreign_worker()),
        }
    }
}

/// A mistake of the caller; the connection is not to be used any further.
fn foreign_worker() -> DbError {
    DbError::protocol("a worker of another test was given to this workload")
}
