//! Sessions that are replaced after one transaction, or after so many.

use super::{Begin, Worker, too_slow};
use dyno_core::{DbError, Driver, Session, Workload};
use dyno_reactor::{now, timeout};
use dyno_record::FrameSink;

impl<W: Workload, D: Driver, S: FrameSink> Worker<'_, W, D, S> {
    /// Replaces the session where it has had all its transactions.
    pub(super) async fn renewed(&mut self, begin: Begin) -> Result<Begin, DbError> {
        let every = self.shared.spec.reconnect_every;
        if every == 0 {
            return self.connect_for_one(begin).await;
        }
        if self.on_session == every {
            self.connect_for_one(begin).await?;
            self.local.recorder.borrow_mut().reconnected(now());
            self.on_session = 0;
        }
        self.on_session += 1;
        // As in sysbench, connecting is a part of the event.
        Ok(begin)
    }

    /// Replaces the session by one for a single transaction, which begins once it is connected.
    async fn connect_for_one(&mut self, begin: Begin) -> Result<Begin, DbError> {
        if let Some(session) = self.session.take() {
            session.close().await;
        }
        let before = now();
        let shared = self.shared;
        let connect = async {
            let mut session = shared.reconnect(shared.number(self.id), 0).await?;
            shared.workload.reopen(&mut self.state, &mut session).await?;
            Ok::<_, DbError>(session)
        };
        let session = timeout(before + shared.spec.connect_limit, connect).await;
        self.session = Some(session.unwrap_or_else(|_| Err(too_slow(shared.spec)))?);
        let began = now();
        let stats = &mut self.local.stats.borrow_mut()[(self.id - self.local.first) as usize];
        stats.connects += 1;
        stats.connecting += began - before;
        let due = if shared.spec.is_scheduled() { begin.due } else { began };
        Ok(Begin { due, began })
    }
}
