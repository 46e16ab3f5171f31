//! What the sessions of a load do, and when something came of it last.

use crate::{LoadError, while_doing};
use dyno_core::{
    AdminSession, BulkReport, Interrupter, Nanos, RowSource, RowWriter, SECOND, Session,
};
use dyno_reactor::monotonic_now;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::future::poll_fn;
use std::pin::pin;
use std::rc::Rc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// Rows between two notes of [`bulk_load`]: a note takes longer than some rows.
const NOTED_ROWS: u64 = 64;
/// Sessions that [`Activity::waits`] names.
const NAMED: usize = 4;

/// Who does what. Made for the sessions of a load; others are added by [`Activity::with_session`].
#[derive(Default)]
pub struct Activity {
    /// By the numbers of the sessions.
    sessions: Mutex<BTreeMap<u32, Doing>>,
    /// On [`monotonic_now`].
    moved_at: AtomicU64,
    rows_sent: AtomicU64,
    next_number: AtomicU32,
    /// Why the load must end although nobody has canceled it: what is wrong, and a remedy.
    pub(crate) verdict: OnceLock<(String, String)>,
}

struct Doing {
    what: String,
    since: Nanos,
    /// Of a session that blocks its thread.
    interrupter: Option<Interrupter>,
}

impl Activity {
    fn sessions(&self) -> MutexGuard<'_, BTreeMap<u32, Doing>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, number: u32, what: String) {
        let since = monotonic_now();
        self.moved_at.store(since, Ordering::Relaxed);
        let mut sessions = self.sessions();
        let interrupter = sessions.remove(&number).and_then(|before| before.interrupter);
        sessions.insert(number, Doing { what, since, interrupter });
    }

    pub(crate) fn moved(&self) {
        self.moved_at.store(monotonic_now(), Ordering::Relaxed);
    }

    /// How long nothing has come of what is waited for.
    pub(crate) fn idle(&self) -> Nanos {
        if self.sessions().is_empty() {
            return 0;
        }
        monotonic_now().saturating_sub(self.moved_at.load(Ordering::Relaxed))
    }

    /// Why nobody waits any more: what is wrong, and a remedy.
    pub fn verdict(&self) -> Option<(&str, &str)> {
        self.verdict.get().map(|(problem, remedy)| (problem.as_str(), remedy.as_str()))
    }

    /// Does `work` as one more session, which begins with `what`; [`doing`] within it notes what follows.
    pub async fn with_session<F: Future>(self: &Arc<Self>, what: &str, work: F) -> F::Output {
        struct Seat<'a>(&'a Activity, u32);
        impl Drop for Seat<'_> {
            fn drop(&mut self) {
                self.0.left(self.1);
            }
        }
        let number = self.next_number.fetch_add(1, Ordering::Relaxed);
        let _seat = Seat(self, number);
        self.note(number, what.to_owned());
        noted(self, number, work).await
    }

    /// Rows that servers have taken, committed or not.
    pub(crate) fn rows_sent(&self) -> u64 {
        self.rows_sent.load(Ordering::Relaxed)
    }

    pub(crate) fn opened(&self, number: u32, session: &AdminSession<'_>) {
        if let Some(doing) = self.sessions().get_mut(&number) {
            doing.interrupter = session.interrupter();
        }
    }

    pub(crate) fn left(&self, number: u32) {
        self.sessions().remove(&number);
    }

    /// Ends the statements of sessions that block their threads.
    pub(crate) fn interrupt(&self) {
        self.sessions()
            .values()
            .filter_map(|doing| doing.interrupter.as_ref())
            .for_each(|end| end());
    }

    /// What is waited for, the longest first: `session 3: loading the rows stock.7 (31 s)`.
    pub(crate) fn waits(&self) -> String {
        let sessions = self.sessions();
        // Read with the lock held: what sessions noted is older.
        let now = monotonic_now();
        let mut waiting: Vec<_> = sessions.iter().collect();
        waiting.sort_by_key(|(_, doing)| doing.since);
        let told = waiting.iter().take(NAMED).map(|(number, doing)| {
            format!("session {number}: {} ({} s)", doing.what, (now - doing.since) / SECOND)
        });
        let mut told: Vec<String> = told.collect();
        match waiting.len().saturating_sub(NAMED) {
            0 => {}
            more => told.push(format!("{more} more")),
        }
        told.join(", ")
    }
}

/// The session that is being polled on this thread.
struct PolledSession {
    activity: Arc<Activity>,
    number: u32,
}

thread_local! {
    static HERE: RefCell<Option<Rc<PolledSession>>> = const { RefCell::new(None) };
}

/// Lets [`doing`] within `work` know which session it speaks of.
pub(crate) async fn noted<F: Future>(activity: &Arc<Activity>, number: u32, work: F) -> F::Output {
    let here = Rc::new(PolledSession { activity: Arc::clone(activity), number });
    let mut work = pin!(work);
    poll_fn(|context| {
        let outside = HERE.replace(Some(Rc::clone(&here)));
        let polled = work.as_mut().poll(context);
        HERE.set(outside);
        polled
    })
    .await
}

/// Notes what this session of a load does from now on, such as `creating table region`; that is progress.
pub fn doing(what: impl Into<String>) {
    HERE.with_borrow(|here| {
        if let Some(here) = here {
            here.activity.note(here.number, what.into());
        }
    });
}

/// Notes that what this session does goes on.
pub fn goes_on() {
    HERE.with_borrow(|here| {
        if let Some(here) = here {
            here.activity.moved();
        }
    });
}

/// Streams rows into a table, see [`Session::bulk_load`], and notes what the session does, and each row that is taken.
pub async fn bulk_load(
    session: &mut AdminSession<'_>,
    what: &str,
    table: &str,
    columns: &[&str],
    rows: &mut dyn RowSource,
) -> Result<BulkReport, LoadError> {
    doing(what);
    session.bulk_load(table, columns, &mut noting(rows)).await.map_err(while_doing(what))
}

/// The same rows; each that is taken is progress.
pub fn noting(rows: &mut dyn RowSource) -> impl RowSource + '_ {
    NotedRows { rows, unnoted: 0 }
}

struct NotedRows<'a> {
    rows: &'a mut dyn RowSource,
    unnoted: u64,
}

impl RowSource for NotedRows<'_> {
    fn is_binary(&self) -> bool {
        self.rows.is_binary()
    }

    #[inline]
    fn next_row(&mut self, out: &mut dyn RowWriter) -> bool {
        self.unnoted += 1;
        if self.unnoted == NOTED_ROWS {
            self.unnoted = 0;
            HERE.with_borrow(|here| {
                if let Some(here) = here {
                    here.activity.rows_sent.fetch_add(NOTED_ROWS, Ordering::Relaxed);
                    here.activity.moved();
                }
            });
        }
        self.rows.next_row(out)
    }

    fn restart(&mut self) {
        self.rows.restart();
    }
}
