//! Sessions that are replaced: after one transaction, after so many, or after an error.
//!
//! Asks the server what it had to read for a session that has done its work.

use super::{Begin, Worker, impatient, too_slow, unanswered};
use crate::record::FrameSink;
use dyno_core::{AnswerTable, DbError, Dialect, Driver, MILLISECOND, Nanos, Session, Workload};
use dyno_facts::TableScans;
use dyno_reactor::{now, timeout};

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
            self.lose_uncommitted();
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
        self.stats().connects += 1;
        self.stats().connecting += began - before;
        let due = if shared.spec.is_scheduled() { begin.due } else { began };
        Ok(Begin { due, began })
    }

    /// Whether a session with this error is replaced.
    pub(super) fn loses_session(&self, error: &DbError) -> bool {
        error.is_fatal() || self.shared.spec.errors.replace.contains(error)
    }

    /// Restores a clean session. False when the trial has ended before that; an error when the session can't be
    /// cleaned and must not be replaced.
    pub(super) async fn recover(&mut self, error: &DbError) -> Result<bool, DbError> {
        self.lose_uncommitted();
        if !self.loses_session(error)
            && let Some(session) = &mut self.session
        {
            // A server that refuses ROLLBACK leaves no clean state, but a new session is clean.
            let rolled_back = match self.shared.spec.answer_limit {
                None => session.rollback().await,
                Some(limit) => impatient(session.rollback(), limit).await,
            };
            let Err(error) = rolled_back else { return Ok(true) };
            self.local.recorder.borrow_mut().error(&error, now());
            if !self.shared.spec.errors.reconnect {
                return Err(error);
            }
        }
        self.session = None;
        Ok(self.reconnect().await)
    }

    async fn reconnect(&mut self) -> bool {
        let (mut pause, number) = (MILLISECOND, self.shared.number(self.id));
        let outage_max = self.shared.spec.errors.outage_max;
        let given_up_at = outage_max.map_or(Nanos::MAX, |limit| now().saturating_add(limit));
        for attempt in 0.. {
            if self.local.is_over(now()) {
                break;
            }
            let opened = async {
                let mut session = self.shared.reconnect(number, attempt).await?;
                self.shared.workload.reopen(&mut self.state, &mut session).await?;
                Ok::<_, DbError>(session)
            };
            let spec = self.shared.spec;
            let limit = spec.answer_limit.unwrap_or(spec.connect_limit).min(spec.connect_limit);
            let limit = now() + limit;
            let error = match timeout(limit.min(self.local.ends()), opened).await {
                Ok(Ok(session)) => {
                    self.session = Some(session);
                    self.local.recorder.borrow_mut().reconnected(now());
                    return true;
                }
                Ok(Err(error)) => error,
                Err(_) => match spec.answer_limit {
                    None => too_slow(spec),
                    Some(limit) => unanswered(limit),
                },
            };
            self.local.recorder.borrow_mut().error(&error, now());
            if now() >= given_up_at {
                self.shared.abort(error);
                return false;
            }
            self.local.wait_until(now() + pause).await;
            pause = (pause * 2).min(spec.errors.reconnect_pause_max);
        }
        false
    }
}

/// Sessions of a trial that are asked: all do the same, and a question takes time.
const ASKED: u32 = 16;
/// Multiple of the rows that a statement touches up to which planners scan with reason: tables of a few pages.
const EXCESS: u64 = 10;
/// The least number of rows that counts as a scan of a large table.
const ROWS_MIN: u64 = 1_000;

/// Counted by session: other clients do not matter. The answer itself is read by a scan of some hundred rows.
const MYSQL: &str =
    "SHOW SESSION STATUS WHERE Variable_name IN ('Handler_read_rnd_next', 'Questions')";
/// Counters that the session has not yet added to the statistics of the server, which it does once a second.
const POSTGRES: &str = "SELECT 'rows', sum(seq_tup_read) FROM pg_stat_xact_user_tables \
     UNION ALL SELECT 'scans', sum(seq_scan) FROM pg_stat_xact_user_tables";

impl<W: Workload, D: Driver, S: FrameSink> Worker<'_, W, D, S> {
    /// Returns scans that the statements of the workload do not explain. A server that refuses the question has none.
    pub(super) async fn table_scans(&self, session: &mut D::Session) -> Option<TableScans> {
        let touched = self.shared.workload.rows_touched().filter(|_| self.id < ASKED)?;
        let question = match session.dialect() {
            Dialect::Mysql => MYSQL,
            Dialect::Postgres if session.capabilities().server_views => POSTGRES,
            Dialect::Postgres | Dialect::Sqlite => return None,
        };
        let mut answer = AnswerTable::default();
        session.query(question, &mut answer).await.ok()?;
        let count = |row: usize| answer.rows.get(row)?.get(1)?.as_ref()?.parse().ok();
        let scans = TableScans { rows: count(0)?, statements: count(1)? };
        Some(scans).filter(|scans| scans.rows_each() > (EXCESS * touched).max(ROWS_MIN))
    }
}
