//! The session of a stream: opened with the degree set, closed with everything set back.

use super::slot::{Slot, StopMethod};
use crate::degree::{Applied, DegreeRule};
use dyno_core::{
    AdminDriver, AdminSession, DbError, Dialect, Discard, Driver, Nanos, SECOND, Session,
};
use dyno_load::query::answer;
use dyno_load::settings::adopt;
use dyno_reactor::{monotonic_now, timeout};
use std::pin::pin;

/// Time that a server gets for what follows a statement that was stopped.
const AFTERWARDS: Nanos = 10 * SECOND;

/// How often a stream that waits for an answer looks whether it is to give up.
const LOOK: Nanos = SECOND;

/// What sessions of one trial have in common.
pub(super) struct Opening<'a> {
    pub(super) driver: AdminDriver<'a>,
    pub(super) rule: Option<&'a DegreeRule>,
    pub(super) degree: u32,
}

pub(super) struct Link<'a> {
    pub(super) session: AdminSession<'a>,
    pub(super) applied: Applied,
}

impl<'a> Opening<'a> {
    pub(super) async fn open(&self, number: u32, slot: &Slot) -> Result<Link<'a>, DbError> {
        let mut session = self.driver.connect(number).await?;
        match self.make_ready(number, &mut session, slot).await {
            Ok(applied) => Ok(Link { session, applied }),
            Err(error) => {
                session.close().await;
                Err(error)
            }
        }
    }

    async fn make_ready(
        &self,
        number: u32,
        session: &mut AdminSession<'_>,
        slot: &Slot,
    ) -> Result<Applied, DbError> {
        // Right answers are those to the texts as they are meant, in one format of days.
        adopt(session).await?;
        let way = match session.interrupter() {
            Some(interrupter) => StopMethod::Embedded(interrupter),
            None => StopMethod::Server { number, id: server_id(session).await? },
        };
        let applied = match self.rule {
            Some(rule) => rule.apply(session, self.degree).await?,
            None => Applied::default(),
        };
        slot.arm(Some(way));
        Ok(applied)
    }
}

async fn server_id(session: &mut AdminSession<'_>) -> Result<String, DbError> {
    let sql = match session.dialect() {
        Dialect::Mysql => "select connection_id()",
        Dialect::Postgres | Dialect::Sqlite => "select pg_backend_pid()",
    };
    answer(session, sql)
        .await?
        .single()
        .map(str::to_owned)
        .ok_or_else(|| DbError::protocol("The server does not say which number this session has."))
}

impl Link<'_> {
    /// Sets everything back and takes leave. Says in a sentence what could not be set back.
    pub(super) async fn close(mut self, slot: &Slot) -> Option<String> {
        slot.arm(None);
        let done = timeout(monotonic_now() + AFTERWARDS, async {
            self.session.rollback().await?;
            self.applied.restore(&mut self.session).await
        });
        let problem = match done.await {
            Ok(Ok(())) => None,
            Ok(Err(error)) => Some(error.to_string()),
            Err(_) => Some("the server did not answer in time.".to_owned()),
        };
        self.session.close().await;
        problem.map(|error| {
            format!("The session's settings could not be set back before it was closed: {error}")
        })
    }

    /// Makes sure that nothing of a stopped statement, and no late attempt to stop it, meets the
    /// next one. `None` when the session can't be used any more.
    pub(super) async fn calm(mut self, slot: &Slot) -> Option<Self> {
        let done = timeout(monotonic_now() + AFTERWARDS, async {
            // A request to stop that came too late hits this one.
            for _ in 0..2 {
                if let Err(error) = self.session.query("select 1", &mut Discard).await
                    && error.is_fatal()
                {
                    return Err(error);
                }
            }
            self.session.rollback().await
        });
        if matches!(done.await, Ok(Ok(()))) {
            return Some(self);
        }
        self.abandon(slot).await;
        None
    }

    /// Ends a session that does not answer any more.
    pub(super) async fn abandon(self, slot: &Slot) {
        slot.arm(None);
        timeout(monotonic_now() + AFTERWARDS, self.session.cancel()).await.ok();
    }
}

/// Waits for an answer until the slot says that there will be none.
pub(super) async fn unless_given_up<F: Future>(slot: &Slot, answer: F) -> Option<F::Output> {
    let mut answer = pin!(answer);
    loop {
        match timeout(monotonic_now() + LOOK, answer.as_mut()).await {
            Ok(output) => return Some(output),
            Err(_) if slot.is_given_up(monotonic_now()) => return None,
            Err(_) => {}
        }
    }
}

/// Stops what a session is executing.
///
/// # Errors
/// When the server can't be reached or refuses; also when the statement has ended by itself.
pub(super) async fn interrupt(
    driver: &AdminDriver<'_>,
    way: &StopMethod,
    is_hard: bool,
) -> Result<(), DbError> {
    let (number, id) = match way {
        StopMethod::Embedded(interrupter) => {
            interrupter();
            return Ok(());
        }
        StopMethod::Server { number, id } => (*number, id),
    };
    let sql = match (driver.dialect(), is_hard) {
        (Dialect::Mysql, false) => format!("kill query {id}"),
        (Dialect::Mysql, true) => format!("kill {id}"),
        (_, false) => format!("select pg_cancel_backend({id})"),
        (_, true) => format!("select pg_terminate_backend({id})"),
    };
    let ask = async {
        let mut session = driver.connect(number).await?;
        let done = session.query(&sql, &mut Discard).await.map(drop);
        session.close().await;
        done
    };
    let late = |_| Err(DbError::lost("The server did not take note of the request in time."));
    timeout(monotonic_now() + AFTERWARDS, ask).await.unwrap_or_else(late)
}

/// Pages that the whole server has read from its files so far; `None` where it does not say, or not
/// to this user. On PostgreSQL what its page cache lacked: the system may have had it.
pub(super) async fn pages_read_so_far(session: &mut AdminSession<'_>) -> Option<u64> {
    let sql = match session.dialect() {
        Dialect::Mysql => "show global status where variable_name = 'Innodb_pages_read'",
        Dialect::Postgres if session.capabilities().server_views => {
            // Sessions keep their counts for a second unless they are told to hand them over.
            let flush = "select pg_stat_force_next_flush()";
            answer(session, flush).await.ok()?;
            "select datname, blks_read from pg_stat_database where datname = current_database()"
        }
        Dialect::Postgres | Dialect::Sqlite => return None,
    };
    answer(session, sql).await.ok()?.rows.first()?.get(1)?.as_deref()?.parse().ok()
}
