//! The workload: one statement, which reads one row.

use dyno_core::{
    AnswerRow, DbError, Outcome, Rng, Rows, Session, Statement, Tally, TransactionId,
    TransactionKind, WorkerId, Workload,
};
use std::sync::atomic::{AtomicU64, Ordering};

/// Asks for the number of the table.
pub(crate) struct Ping {
    kinds: [TransactionKind; 1],
    expected: i64,
    pub(crate) wrong: AtomicU64,
}

impl Ping {
    pub(crate) fn new(expected: u32) -> Self {
        let kinds = [TransactionKind { name: "ping".to_owned(), weight: 1 }];
        Ping { kinds, expected: expected.into(), wrong: AtomicU64::new(0) }
    }
}

/// The number of the last answer.
#[derive(Default)]
struct Number(Option<i64>);

impl Rows for Number {
    fn row<R: AnswerRow>(&mut self, row: &R) {
        self.0 = row.int(0);
    }
}

impl Workload for Ping {
    type Worker = Statement;
    type Terminal = ();

    fn transactions(&self) -> &[TransactionKind] {
        &self.kinds
    }

    async fn open<S: Session>(
        &self,
        session: &mut S,
        _id: WorkerId,
        _workers: u32,
        _rng: Rng,
    ) -> Result<Statement, DbError> {
        session.prepare("SELECT number FROM ping", &[]).await
    }

    async fn reopen<S: Session>(
        &self,
        worker: &mut Statement,
        session: &mut S,
    ) -> Result<(), DbError> {
        *worker = session.prepare("SELECT number FROM ping", &[]).await?;
        Ok(())
    }

    async fn run<S: Session>(
        &self,
        worker: &mut Statement,
        session: &mut S,
        _transaction: TransactionId,
        _attempt: u32,
        tally: &mut Tally,
    ) -> Result<Outcome, DbError> {
        let mut number = Number::default();
        tally.count(session.execute(*worker, &[], &mut number).await?);
        if number.0 != Some(self.expected) {
            self.wrong.fetch_add(1, Ordering::Relaxed);
        }
        Ok(Outcome::Committed)
    }
}
