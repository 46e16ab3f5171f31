//! The watcher of nodes: work without progress says what it waits for, looks at the nodes, and ends if one is lost.
//!
//! Sessions note their work, and since when, in an [`Activity`]: by [`doing`] within them, or by [`Activity::moved`]
//! where only the end of transactions counts. [`watched`] has a thread look at that.

use crate::query::answer_if_any;
use crate::{LoadError, LoadObserver, while_doing};
use dyno_core::{
    AdminDriver, AdminSession, BulkReport, Cause, DbError, DbResult, Dialect, Interrupter, Nanos,
    NodeHealth, NodeSight, RowSource, RowWriter, SECOND,
};
use dyno_reactor::{Elapsed, block_on, monotonic_now, now, timeout, unless};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::future::poll_fn;
use std::pin::pin;
use std::rc::Rc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, TryRecvError};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Time limits of a load's waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StallTimeouts {
    /// Without progress, before it says so and looks at the nodes; a node that is out of memory ends it then.
    pub says_after: Nanos,
    /// Without progress, before a node that does not answer or has no memory left ends it.
    pub gives_up_after: Nanos,
    /// A new connection, and what it asks.
    pub answer_within: Nanos,
}

impl Default for StallTimeouts {
    /// Says it after 30 s, gives up after a minute. `DYNO_LOAD_PATIENCE_S` changes the first, and the others with it.
    fn default() -> Self {
        let nanos = std::env::var("DYNO_LOAD_PATIENCE_S").ok().and_then(parse_seconds);
        StallTimeouts::saying_after(nanos.unwrap_or(30 * SECOND))
    }
}

fn parse_seconds(text: String) -> Option<Nanos> {
    let number = text.parse::<f64>().ok().filter(|&number| number >= 0.1)?;
    Some((number * SECOND as f64) as Nanos)
}

impl StallTimeouts {
    pub fn saying_after(says_after: Nanos) -> Self {
        let answer_within = (5 * SECOND).min(says_after);
        StallTimeouts { says_after, gives_up_after: 2 * says_after, answer_within }
    }

    /// Limits of a trial: no one waits for longer than half a minute for a server that will not come back.
    pub fn for_trial() -> Self {
        let nanos = std::env::var("DYNO_TRIAL_PATIENCE_S").ok().and_then(parse_seconds);
        StallTimeouts::saying_after(nanos.unwrap_or(10 * SECOND))
    }

    /// Time without progress until the next look at the nodes, if one has begun after `idle`: a server that hangs takes
    /// all the time of a look, and work is given up when its time is over, not a look later.
    fn next_look(&self, idle: Nanos) -> Nanos {
        let last = self.gives_up_after - self.answer_within;
        let looks = [last, self.gives_up_after].into_iter().find(|next| *next > idle);
        looks.unwrap_or((2 * idle).min(idle + 4 * self.says_after))
    }

    /// The node for which work without progress for `idle` had better end.
    fn find_lost<'a>(&self, idle: Nanos, sights: &'a [NodeSight]) -> Option<&'a NodeSight> {
        let lost_sights = sights.iter().filter(|sight| match sight.health {
            NodeHealth::Works => false,
            NodeHealth::Stuck => idle >= self.gives_up_after,
            NodeHealth::OutOfMemory => idle >= self.says_after,
            NodeHealth::Dead => true,
        });
        lost_sights.max_by_key(|sight| sight.health)
    }
}

/// Interval of a watcher's looks for a canceled load and for nodes that are alive.
const LOOK: Duration = Duration::from_millis(250);
/// The hint where work has ended because of a node.
pub const LOST_NODE_REMEDY: &str = "look at the node and start it again (of a cluster of dyno: `dyno cluster start NODE`), then give the \
                      same command: what is stored is kept";

/// A node for which work is given up.
#[derive(Clone, Debug)]
pub struct LostNode {
    pub sight: NodeSight,
    /// Time without progress of the work.
    pub idle: Nanos,
    /// The error as a sentence without its full stop, perhaps with lines of a log.
    pub problem: String,
}

/// Longest time after the loss of a connection in which the process behind it may still be seen.
const DIES_WITHIN: Duration = Duration::from_secs(1);

/// Returns the node that `lost` finds. While the process behind the connection `may_die`, `lost` is called for up to a second;
/// `None` if it finds nothing until then.
pub fn await_loss(
    lost: impl Fn() -> Option<NodeSight>,
    may_die: impl Fn() -> bool,
) -> Option<NodeSight> {
    let began = Instant::now();
    loop {
        let node = lost();
        if node.is_some() || !may_die() || began.elapsed() >= DIES_WITHIN {
            return node;
        }
        thread::sleep(DIES_WITHIN / 20);
    }
}

/// Does `work`, whose sessions note in `activity` what they do, while a thread alongside it says where nothing
/// continues, and `look` then looks at the nodes. If one of them is lost, [`Activity::verdict`] says so, and no one
/// shall wait. Without a thread the work is not watched.
pub fn watched<T>(
    activity: &Activity,
    observer: &dyn LoadObserver,
    look: impl Fn() -> Vec<NodeSight> + Sync,
    work: impl FnOnce() -> T,
) -> T {
    activity.moved();
    let look = &look;
    thread::scope(|scope| {
        let (_alive, ended) = mpsc::channel();
        let watcher = thread::Builder::new().name("watcher".to_owned());
        let _ = watcher.spawn_scoped(scope, move || watch(look, observer, activity, &ended));
        work()
    })
}

/// Watches the sessions until `ended` is closed.
fn watch(
    look: &dyn Fn() -> Vec<NodeSight>,
    observer: &dyn LoadObserver,
    activity: &Activity,
    ended: &Receiver<()>,
) {
    let patience = observer.patience();
    let step = LOOK.min(Duration::from_nanos(patience.says_after / 4));
    let mut due = patience.says_after;
    while ended.recv_timeout(step) == Err(RecvTimeoutError::Timeout) {
        if observer.is_canceled() || activity.verdict().is_some() {
            activity.interrupt();
            continue;
        }
        let idle = activity.idle();
        // A look takes a while, in which a session may give up: the note names what was waited for before.
        let mut waits = activity.waits();
        if idle < patience.says_after && due > patience.says_after {
            observer.note(&format!("{} continues", observer.work()));
            due = patience.says_after;
        }
        let sights = match observer.lost_node() {
            Some(node) => vec![node],
            None if idle >= due => {
                due = patience.next_look(idle);
                let sights = look();
                observer.note(&stall_text(idle, &waits, &sights));
                sights
            }
            None => continue,
        };
        // The look was a part of the wait, in which work may have continued or ended.
        if ended.try_recv() == Err(TryRecvError::Disconnected) {
            return;
        }
        let idle = if activity.is_at_work() { activity.idle() } else { idle };
        if let Some(node) = patience.find_lost(idle, &sights) {
            let still = activity.waits();
            if !still.is_empty() {
                waits = still;
            }
            let problem = problem(node, idle, &patience, (observer.work(), &waits));
            let verdict =
                activity.verdict.get_or_init(|| LostNode { sight: node.clone(), idle, problem });
            observer.give_up(verdict);
        }
    }
}

/// The nodes that are known, else the way to the target.
pub(crate) fn look_at_all(driver: &AdminDriver<'_>, observer: &dyn LoadObserver) -> Vec<NodeSight> {
    let sights = observer.nodes();
    if sights.is_empty() && !driver.blocks() {
        let within = observer.patience().answer_within;
        vec![look_at(driver, &driver.place(), within, || observer.is_canceled())]
    } else {
        sights
    }
}

/// Asks a server on a separate connection what its sessions do; no one waits for that once `is_over`.
pub fn look_at(
    driver: &AdminDriver<'_>,
    name: &str,
    answer_within: Nanos,
    is_over: impl Fn() -> bool,
) -> NodeSight {
    let answer = block_on(async {
        let ask = async {
            let mut session = driver.connect(0).await?;
            let listed = busy(&mut session).await;
            session.close().await;
            Ok::<_, DbError>(listed)
        };
        unless(is_over, timeout(now() + answer_within, ask)).await
    });
    let (health, evidence) = match answer {
        Ok(Some(answer)) => health_from_answer(answer, answer_within),
        Ok(None) => (NodeHealth::Works, "was not asked to the end".to_owned()),
        Err(error) => (NodeHealth::Works, format!("could not be queried: {error}")),
    };
    NodeSight { name: name.to_owned(), health, evidence }
}

/// The state of a server after an attempt to connect and to query it.
fn health_from_answer(
    answer: Result<DbResult<DbResult<String>>, Elapsed>,
    answer_within: Nanos,
) -> (NodeHealth, String) {
    match answer {
        Ok(Ok(Ok(listed))) => (NodeHealth::Works, format!("answers a new connection{listed}")),
        Ok(Ok(Err(error)) | Err(error)) if error.cause() == Cause::Rejected => {
            (NodeHealth::Works, format!("answers, and refuses a new connection: {error}"))
        }
        Ok(Ok(Err(error))) => {
            let error = error.to_string();
            let reason = error.trim_end_matches('.');
            (
                NodeHealth::Stuck,
                format!("takes a new connection, and answers nothing sound: {reason}"),
            )
        }
        Ok(Err(error)) => (NodeHealth::Stuck, format!("takes no new connection: {error}")),
        Err(Elapsed) => {
            let within_s = answer_within as f64 / SECOND as f64;
            (NodeHealth::Stuck, format!("does not answer a new connection within {within_s} s"))
        }
    }
}

/// The statement that the sessions of a server have executed for the longest time, as far as it tells.
///
/// # Errors
/// The session is lost.
async fn busy(session: &mut AdminSession<'_>) -> DbResult<String> {
    let sql = match session.dialect() {
        Dialect::Mysql => {
            "SELECT time, left(info, 60) FROM information_schema.processlist WHERE command <> 'Sleep' \
             AND info IS NOT NULL AND id <> connection_id() ORDER BY time DESC LIMIT 1"
        }
        Dialect::Postgres => {
            "SELECT floor(extract(epoch FROM clock_timestamp() - query_start)), left(query, 60) \
             FROM pg_stat_activity WHERE state <> 'idle' AND pid <> pg_backend_pid() \
             AND backend_type = 'client backend' ORDER BY query_start LIMIT 1"
        }
        Dialect::Sqlite => return Ok(String::new()),
    };
    let longest = answer_if_any(session, sql).await?.unwrap_or_default().rows.pop();
    Ok(match longest.as_deref() {
        Some([Some(seconds), Some(statement)]) => {
            format!(", and has executed `{}` for {seconds} s", statement.escape_debug())
        }
        _ => String::new(),
    })
}

fn stall_text(idle: Nanos, waits: &str, sights: &[NodeSight]) -> String {
    let mut text = format!("no progress for {} s", idle / SECOND);
    if !waits.is_empty() {
        text.push_str(&format!("; {waits}"));
    }
    for sight in sights {
        text.push_str(&format!("\n  {} {}", sight.name, sight.evidence));
    }
    text
}

/// `waits` is what the sessions of `work` wait for.
fn problem(
    node: &NodeSight,
    idle: Nanos,
    patience: &StallTimeouts,
    (work, waits): (&str, &str),
) -> String {
    let NodeSight { name, health, evidence } = node;
    let waits = if waits.is_empty() { String::new() } else { format!(": {waits}") };
    let idle_s = idle / SECOND;
    let since = match health {
        NodeHealth::Dead => String::new(),
        _ => format!(", and {work} made no progress for {idle_s} s{waits}"),
    };
    let bound = match health {
        NodeHealth::Stuck => {
            format!(" (it waits {} s for such a node)", patience.gives_up_after / SECOND)
        }
        _ => String::new(),
    };
    format!("{name} {evidence}{since}{bound}")
}

/// Rows between two notes of [`bulk_load`]: a note takes longer than some rows.
const NOTED_ROWS: u64 = 64;
/// Sessions that [`Activity::waits`] names.
const NAMED: usize = 4;

/// Sessions and their work. Made for the sessions of a load; others are added by [`Activity::with_session`].
#[derive(Default)]
pub struct Activity {
    /// Keys are the numbers of the sessions.
    sessions: Mutex<BTreeMap<u32, SessionWork>>,
    /// On [`monotonic_now`].
    moved_at: AtomicU64,
    next_number: AtomicU32,
    verdict: OnceLock<LostNode>,
}

struct SessionWork {
    what: String,
    since: Nanos,
    /// Interrupter of a session that blocks its thread.
    interrupter: Option<Interrupter>,
}

impl Activity {
    fn lock_sessions(&self) -> MutexGuard<'_, BTreeMap<u32, SessionWork>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes what session `number` does from now on; that is progress.
    pub fn note(&self, number: u32, what: String) {
        let since = monotonic_now();
        self.moved_at.store(since, Ordering::Relaxed);
        let mut sessions = self.lock_sessions();
        let interrupter = sessions.remove(&number).and_then(|before| before.interrupter);
        sessions.insert(number, SessionWork { what, since, interrupter });
    }

    /// Notes that what is done continues.
    pub fn moved(&self) {
        self.moved_at.store(monotonic_now(), Ordering::Relaxed);
    }

    fn is_at_work(&self) -> bool {
        !self.lock_sessions().is_empty()
    }

    /// Time without progress of the awaited work.
    fn idle(&self) -> Nanos {
        if !self.is_at_work() {
            return 0;
        }
        monotonic_now().saturating_sub(self.moved_at.load(Ordering::Relaxed))
    }

    /// The reason why no one waits any more although no one has canceled the work.
    pub fn verdict(&self) -> Option<&LostNode> {
        self.verdict.get()
    }

    /// Does `work` as one more session, which begins with `what`; [`doing`] within it notes what follows.
    pub async fn with_session<F: Future>(self: &Arc<Self>, what: &str, work: F) -> F::Output {
        struct Seat<'a>(&'a Activity, u32);
        impl Drop for Seat<'_> {
            fn drop(&mut self) {
                self.0.remove_session(self.1);
            }
        }
        let number = self.next_number.fetch_add(1, Ordering::Relaxed);
        let _seat = Seat(self, number);
        self.note(number, what.to_owned());
        in_session(self, number, work).await
    }

    pub(crate) fn remove_session(&self, number: u32) {
        self.lock_sessions().remove(&number);
    }

    /// Ends the statements of sessions that block their threads.
    fn interrupt(&self) {
        self.lock_sessions()
            .values()
            .filter_map(|doing| doing.interrupter.as_ref())
            .for_each(|end| end());
    }

    /// Pending waits, the longest first: `session 3: loading the rows stock.7 (31 s)`.
    fn waits(&self) -> String {
        let sessions = self.lock_sessions();
        // Read with the lock held: what sessions noted is older.
        let now = monotonic_now();
        let mut waiting: Vec<_> = sessions.iter().collect();
        waiting.sort_by_key(|(_, doing)| doing.since);
        let waits = waiting.iter().map(|(number, doing)| {
            format!("session {number}: {} ({} s)", doing.what, (now - doing.since) / SECOND)
        });
        let unnamed = waiting.len().saturating_sub(NAMED);
        let unnamed = (unnamed > 0).then(|| format!("{unnamed} more"));
        waits.take(NAMED).chain(unnamed).collect::<Vec<_>>().join(", ")
    }
}

/// The session that is being polled on this thread.
struct PolledSession {
    activity: Arc<Activity>,
    number: u32,
}

thread_local! {
    static CURRENT_SESSION: RefCell<Option<Rc<PolledSession>>> = const { RefCell::new(None) };
}

/// Calls `report` with the session that is being polled, if there is one.
fn with_current(report: impl FnOnce(&PolledSession)) {
    CURRENT_SESSION.with_borrow(|session| session.as_deref().map(report));
}

/// Lets [`doing`] within `work` know which session it speaks of.
pub(crate) async fn in_session<F: Future>(
    activity: &Arc<Activity>,
    number: u32,
    work: F,
) -> F::Output {
    let session = Rc::new(PolledSession { activity: Arc::clone(activity), number });
    let mut work = pin!(work);
    poll_fn(|context| {
        let outside = CURRENT_SESSION.replace(Some(Rc::clone(&session)));
        let polled = work.as_mut().poll(context);
        CURRENT_SESSION.set(outside);
        polled
    })
    .await
}

/// Notes what this session of a load does from now on, such as `creating table region`; that is progress.
pub fn doing(what: impl Into<String>) {
    with_current(|session| session.activity.note(session.number, what.into()));
}

/// Notes that this session is open, so that what it executes can be ended.
pub fn opened(session: &AdminSession<'_>) {
    with_current(|polled| {
        if let Some(work) = polled.activity.lock_sessions().get_mut(&polled.number) {
            work.interrupter = session.interrupter();
        }
    });
}

/// Notes that what this session does continues.
pub fn goes_on() {
    with_current(|session| session.activity.moved());
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

/// Passes the rows on; each that is taken is progress.
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
            goes_on();
        }
        self.rows.next_row(out)
    }

    fn restart(&mut self) {
        self.rows.restart();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn new_sight(health: NodeHealth) -> NodeSight {
        NodeSight { name: "n1".to_owned(), health, evidence: "says so".to_owned() }
    }

    #[test]
    fn a_load_ends_at_once_with_a_dead_node_and_later_with_others() {
        let patience = StallTimeouts::saying_after(30 * SECOND);
        let cases = [
            (NodeHealth::Dead, [true, true, true]),
            (NodeHealth::OutOfMemory, [false, true, true]),
            (NodeHealth::Stuck, [false, false, true]),
            (NodeHealth::Works, [false, false, false]),
        ];
        for (health, expected) in cases {
            let sights = [new_sight(health)];
            let ends =
                [0, 30, 60].map(|idle_s| patience.find_lost(idle_s * SECOND, &sights).is_some());
            assert_eq!(ends, expected, "{health:?}");
        }
    }

    #[test]
    fn the_last_looks_end_and_begin_when_a_node_is_given_up() {
        let patience = StallTimeouts::saying_after(30 * SECOND);
        let mut looks = vec![30 * SECOND];
        for at in 0..3 {
            looks.push(patience.next_look(looks[at]));
        }
        assert_eq!(looks[1] + patience.answer_within, patience.gives_up_after);
        assert_eq!(looks[2..], [60 * SECOND, 120 * SECOND]);
    }

    #[test]
    fn the_text_of_a_stall_omits_what_is_missing() {
        let sights = [new_sight(NodeHealth::Works)];
        assert_eq!(stall_text(31 * SECOND, "", &sights), "no progress for 31 s\n  n1 says so");
        assert_eq!(
            stall_text(31 * SECOND, "session 0: COMMIT (31 s)", &[]),
            "no progress for 31 s; session 0: COMMIT (31 s)"
        );
    }

    #[test]
    fn the_worst_node_is_named() {
        let sights = [new_sight(NodeHealth::Stuck), new_sight(NodeHealth::Dead)];
        let worst = StallTimeouts::saying_after(30 * SECOND)
            .find_lost(200 * SECOND, &sights)
            .expect("one is dead");
        assert_eq!(worst.health, NodeHealth::Dead);
        assert_eq!(
            problem(
                worst,
                SECOND,
                &StallTimeouts::saying_after(30 * SECOND),
                ("the load", "session 0: COMMIT")
            ),
            "n1 says so"
        );
        let patience = StallTimeouts::saying_after(30 * SECOND);
        for (waits, shown) in [("", ""), ("session 0: COMMIT", ": session 0: COMMIT")] {
            assert_eq!(
                problem(&sights[0], 200 * SECOND, &patience, ("the load", waits)),
                format!(
                    "n1 says so, and the load made no progress for 200 s{shown} (it waits 60 s for \
                     such a node)"
                )
            );
        }
    }
}
