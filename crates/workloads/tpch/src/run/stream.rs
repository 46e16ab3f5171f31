//! Streams: jobs that a session executes one after another, each stream in a separate thread; which streams a test has;
//! and the thread that watches over them. A session is opened with the degree set and closed with everything set back.

use super::{Plans, RunOptions, TpchTest};
use crate::degree::{Applied, DegreeRule};
use crate::facts::{QueryFacts, QueryOutcome, RefreshFacts};
use crate::parameters::{ParameterChoice, order, parameters};
use crate::plans;
use crate::queries::{LAST, Q15, text};
use crate::refresh::{self, RefreshPosition};
use dyno_core::{
    AdminDriver, AdminSession, AnswerTable, DbError, Dialect, Discard, Interrupter, MILLISECOND,
    Nanos, SECOND,
};
use dyno_load::query::answer;
use dyno_load::settings::adopt;
use dyno_load::{LoadError, doing, while_doing};
use dyno_reactor::{block_on, monotonic_now, now, timeout, unless};
use dyno_runner::databases::stopped;
use dyno_runner::failure::Failure;
use dyno_runner::watch::note_waiting;
use std::io;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Barrier, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::Duration;

enum Job {
    Query {
        query: u8,
        parameters: Vec<String>,
        text: String,
    },
    /// The next refresh function of the database.
    Refresh,
    /// A plan, not timed.
    Plan {
        query: u8,
        text: String,
        is_executed: bool,
    },
}

pub(super) struct Stream {
    /// The stream in results; 0 if there is one.
    number: u32,
    jobs: Vec<Job>,
    scale: f64,
    /// Bound of each query and plan.
    timeout: Option<Nanos>,
    /// Position at which the refresh functions continue.
    position: RefreshPosition,
    /// Set if the position has to be read again: a refresh function has failed.
    is_unsure: bool,
}

impl Stream {
    fn new(options: &RunOptions, position: RefreshPosition, number: u32, jobs: Vec<Job>) -> Stream {
        let timeout = options.timeout_s.map(|seconds| (seconds * SECOND as f64) as Nanos);
        Stream { number, jobs, scale: options.scale, timeout, position, is_unsure: false }
    }
}

/// Queries that run while the refresh functions do are distinguished by their streams, from 1; where
/// there is one, it is 0.
pub(super) fn plan_streams(
    options: &RunOptions,
    dialect: Dialect,
    position: RefreshPosition,
) -> Vec<Stream> {
    let jobs = match options.test {
        TpchTest::Queries => query_jobs(options, dialect, 0, &(1..=LAST).collect::<Vec<u8>>()),
        TpchTest::Power { refresh } => {
            let queries = query_jobs(options, dialect, 0, &order(0));
            let jobs = refresh.then_some(Job::Refresh).into_iter().chain(queries);
            jobs.chain(refresh.then_some(Job::Refresh)).collect()
        }
        TpchTest::Throughput { streams, refresh } => {
            let query_streams = (1..=streams).map(|number| {
                let jobs = query_jobs(options, dialect, number, &order(number));
                Stream::new(options, position, number, jobs)
            });
            let refresh_stream =
                refresh.then(|| Stream::new(options, position, 0, refresh_jobs(streams)));
            return query_streams.chain(refresh_stream).collect();
        }
        TpchTest::Refresh { pairs } => refresh_jobs(pairs),
        // Its parts are executed one after the other, each with its own streams.
        TpchTest::Performance { .. } => return Vec::new(),
    };
    vec![Stream::new(options, position, 0, jobs)]
}

/// The queries of stream `number` in this order, with the parameters that the stream draws.
fn query_jobs(options: &RunOptions, dialect: Dialect, number: u32, order: &[u8]) -> Vec<Job> {
    let jobs = order.iter().map(|&query| {
        let parameters = parameters(query, options.scale, parameter_choice(options, number));
        let text = text(query, &parameters, dialect, Q15::Cte);
        Job::Query { query, parameters, text }
    });
    jobs.collect()
}

/// Both functions of each pair.
fn refresh_jobs(pairs: u32) -> Vec<Job> {
    (0..2 * pairs).map(|_| Job::Refresh).collect()
}

/// One pass that takes the plan of each query, with the parameters of the first stream.
pub(super) fn explain_stream(
    options: &RunOptions,
    dialect: Dialect,
    position: RefreshPosition,
) -> Stream {
    let first = u32::from(matches!(options.test, TpchTest::Throughput { .. }));
    let is_executed = options.plans == Plans::Executed;
    let jobs = (1..=LAST).map(|query| {
        let values = parameters(query, options.scale, parameter_choice(options, first));
        let text = text(query, &values, dialect, Q15::Cte);
        Job::Plan { query, text, is_executed }
    });
    Stream::new(options, position, first, jobs.collect())
}

/// Seeds of streams follow that of the power test (clause 2.1.3.3).
fn parameter_choice(options: &RunOptions, stream: u32) -> ParameterChoice {
    match options.parameters {
        ParameterChoice::Default => ParameterChoice::Default,
        ParameterChoice::Seed(seed) => ParameterChoice::Seed(seed + u64::from(stream)),
    }
}

/// A stream's message to the thread that watches.
pub(super) enum StreamEvent {
    /// All sessions are open, and this is the time from which the times of the trial are counted, unless it had begun.
    Started(Nanos),
    Sent(u8),
    Query(QueryFacts, AnswerTable),
    Refresh(RefreshFacts),
    Plan {
        query: u8,
        text: String,
    },
    Note(String),
}

/// Interval between checks whether the user stops the trial, and whether a statement has to be stopped.
const CHECK_INTERVAL: Nanos = 50 * MILLISECOND;

/// Executes streams concurrently and calls `on_event` with what they report. Times are counted from `origin`, or from the
/// start: when all sessions are open. Returns the degree as it was set in a session, and whether the user has stopped
/// the trial.
///
/// # Errors
/// When a session can't be opened: then nothing was executed.
pub(super) fn execute(
    opening: &Opening<'_>,
    streams: Vec<Stream>,
    origin: Option<Nanos>,
    stop: &(dyn Fn() -> bool + Sync),
    on_event: &mut dyn FnMut(StreamEvent),
) -> Result<(Applied, bool), Failure> {
    let start = Start {
        opened: Barrier::new(streams.len()),
        applied: Mutex::new(Ok(Applied::default())),
        began: origin.map_or_else(OnceLock::new, OnceLock::from),
    };
    let is_stopped = Arc::new(AtomicBool::new(false));
    let (sender, receiver) = channel();
    let ended: io::Result<()> = thread::scope(|scope| {
        let mut threads = Vec::new();
        for (number, stream) in (0..).zip(streams) {
            let (start, is_stopped, events) = (&start, Arc::clone(&is_stopped), sender.clone());
            threads.push(scope.spawn(move || {
                let worker = Worker { opening, is_stopped, events, number, link: None, began: 0 };
                block_on(note_waiting("opening a session", worker.run(stream, start)))
            }));
        }
        drop(sender);
        loop {
            match receiver.recv_timeout(Duration::from_nanos(CHECK_INTERVAL)) {
                Ok(event) => on_event(event),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            if !is_stopped.load(Ordering::Relaxed) && stop() {
                is_stopped.store(true, Ordering::Relaxed);
            }
        }
        threads.into_iter().try_for_each(|thread| {
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    });
    ended.map_err(LoadError::from)?;
    let applied = start.applied.into_inner().unwrap_or_else(PoisonError::into_inner);
    let applied = applied.map_err(while_doing("opening a session"))?;
    Ok((applied, is_stopped.load(Ordering::Relaxed)))
}

/// The streams start when all sessions are open, and none when one is not.
struct Start {
    opened: Barrier,
    applied: Mutex<Result<Applied, DbError>>,
    began: OnceLock<Nanos>,
}

impl Start {
    /// Waits for the sessions of the other streams. Returns when the trial began; `None` if one could not be opened.
    fn wait(
        &self,
        session: Result<Applied, DbError>,
        events: &Sender<StreamEvent>,
    ) -> Option<Nanos> {
        {
            let mut applied = self.lock_applied();
            if applied.is_ok() {
                *applied = session;
            }
        }
        self.opened.wait();
        self.lock_applied().as_ref().ok()?;
        Some(*self.began.get_or_init(|| {
            let began = monotonic_now();
            events.send(StreamEvent::Started(began)).ok();
            began
        }))
    }

    fn lock_applied(&self) -> MutexGuard<'_, Result<Applied, DbError>> {
        self.applied.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Worker<'a> {
    opening: &'a Opening<'a>,
    is_stopped: Arc<AtomicBool>,
    events: Sender<StreamEvent>,
    /// Number of the session, picks the host.
    number: u32,
    link: Option<Link<'a>>,
    began: Nanos,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StopReason {
    /// Has passed its bound.
    Bound,
    /// The user has ended the trial.
    User,
}

/// End of a statement, and the reason if it was stopped.
struct EndedStatement<T> {
    result: Option<Result<T, DbError>>,
    reason: Option<StopReason>,
    /// When it was sent, seconds from the begin of the trial.
    began_s: f64,
    seconds: f64,
}

impl<T> EndedStatement<T> {
    /// Outcome. If it ended by itself after all, the attempt to stop it came too late and does not count.
    fn outcome(&self) -> QueryOutcome {
        match (&self.result, self.reason) {
            (Some(Ok(_)), _) => QueryOutcome::Answered,
            (_, Some(StopReason::Bound)) => QueryOutcome::TimedOut,
            (_, Some(StopReason::User)) => QueryOutcome::Interrupted,
            (Some(Err(error)), None) => QueryOutcome::Failed(error.to_string()),
            (None, None) => QueryOutcome::Failed("There was no answer.".to_owned()),
        }
    }
}

impl<'a> Worker<'a> {
    /// Opens the session, waits for the start, executes the jobs and closes the session with its
    /// settings as they were.
    async fn run(mut self, mut stream: Stream, start: &Start) {
        let opened = self.take_link().await;
        doing("waiting for the other sessions");
        let applied = opened.as_ref().map(|link| link.applied.clone()).map_err(DbError::clone);
        self.link = opened.ok();
        // Nothing else runs on this loop.
        if let Some(began) = start.wait(applied, &self.events) {
            self.began = began;
            for job in std::mem::take(&mut stream.jobs) {
                if self.is_stopped.load(Ordering::Relaxed) {
                    break;
                }
                match job {
                    Job::Query { query, parameters, text } => {
                        let Stream { number, timeout, .. } = stream;
                        let facts =
                            QueryFacts { query, stream: number, parameters, ..<_>::default() };
                        self.run_query(facts, timeout, &text).await;
                    }
                    Job::Refresh => self.run_refresh(&mut stream).await,
                    Job::Plan { query, text, is_executed } => {
                        self.plan(&stream, query, &text, is_executed).await;
                    }
                }
            }
        }
        if let Some(link) = self.link.take()
            && let Some(problem) = link.close().await
        {
            self.send(StreamEvent::Note(problem));
        }
    }

    /// The watching thread lives longer than the streams.
    fn send(&self, event: StreamEvent) {
        self.events.send(event).ok();
    }

    /// The session, opened again if there isn't one any more.
    async fn take_link(&mut self) -> Result<Link<'a>, DbError> {
        if let Some(link) = self.link.take() {
            return Ok(link);
        }
        // A server that hangs may not even shake hands.
        let opening = self.opening.open_link(self.number);
        let opened = unless(|| self.is_stopped.load(Ordering::Relaxed), opening).await;
        opened.unwrap_or_else(|| Err(stopped()))
    }

    /// Executes something that may be stopped, and has the session ready for the next job or gone.
    async fn run_stoppable<T>(
        &mut self,
        bound: Option<Nanos>,
        (activity, announcement): (String, Option<StreamEvent>),
        work: impl AsyncFnOnce(&mut AdminSession<'_>) -> Result<T, DbError>,
    ) -> EndedStatement<T> {
        doing(activity);
        let mut link = match self.take_link().await {
            Ok(link) => link,
            Err(error) => {
                let began_s = to_seconds(monotonic_now() - self.began);
                let result = Some(Err(error));
                return EndedStatement { result, reason: None, began_s, seconds: 0.0 };
            }
        };
        let due = bound.map(|bound| monotonic_now().saturating_add(bound));
        let interrupter = link.session.interrupter();
        let guard =
            interrupter.map(|end| spawn_interrupter(end, due, Arc::clone(&self.is_stopped)));
        announcement.into_iter().for_each(|event| self.send(event));
        let began = monotonic_now();
        let Link { session, server_id, .. } = &mut link;
        let server_id = server_id.as_deref();
        let (result, reason) = await_or_stop(
            work(session),
            due,
            || self.is_stopped.load(Ordering::Relaxed),
            async || {
                if let Some(id) = server_id {
                    // A failed attempt is followed by others.
                    self.opening.kill(self.number, id).await.ok();
                }
            },
        )
        .await;
        let ended = monotonic_now();
        let reason = guard.and_then(|guard| guard()).or(reason);
        let is_killed = reason.is_some() && server_id.is_some();
        match &result {
            None => link.abandon().await,
            Some(Ok(_)) if reason.is_none() => self.link = Some(link),
            // A late request to end the session may still be on its way.
            Some(_) if is_killed => {}
            Some(Err(error)) if error.is_fatal() => {}
            Some(_) => {
                let undone = timeout(monotonic_now() + AFTERWARDS, link.session.rollback()).await;
                self.link = matches!(undone, Ok(Ok(()))).then_some(link);
            }
        }
        let began_s = to_seconds(began - self.began);
        EndedStatement { result, reason, began_s, seconds: to_seconds(ended - began) }
    }

    async fn run_query(&mut self, mut facts: QueryFacts, timeout: Option<Nanos>, text: &str) {
        let mut table = AnswerTable::for_workload();
        let announcement = (format!("Q{}", facts.query), Some(StreamEvent::Sent(facts.query)));
        let ended =
            self.run_stoppable(timeout, announcement, async |session: &mut AdminSession<'_>| {
                session.query(text, &mut table).await
            });
        let ended = ended.await;
        facts.began_s = ended.began_s;
        facts.ended_s = to_seconds(monotonic_now() - self.began);
        facts.outcome = ended.outcome();
        facts.seconds = match (&facts.outcome, timeout) {
            (QueryOutcome::TimedOut, Some(bound)) => to_seconds(bound),
            _ => ended.seconds,
        };
        if let Some(Ok(executed)) = ended.result {
            facts.rows = executed.rows;
        }
        self.send(StreamEvent::Query(facts, table));
    }

    async fn run_refresh(&mut self, stream: &mut Stream) {
        let Stream { scale, position, is_unsure, .. } = stream;
        let mut at = *position;
        let name = format!("RF{}", at.function);
        let ended =
            self.run_stoppable(None, (name, None), async |session: &mut AdminSession<'_>| {
                // A lost connection does not say whether its last transaction was committed.
                if *is_unsure {
                    *position = refresh::position(session, position.pair - 1).await?;
                    at = *position;
                }
                refresh::execute(session, *scale, position).await
            });
        let ended = ended.await;
        let (outcome, rows) = (ended.outcome(), ended.result.and_then(Result::ok));
        stream.is_unsure = rows.is_none();
        self.send(StreamEvent::Refresh(RefreshFacts {
            function: at.function,
            pair: at.pair,
            began_s: ended.began_s,
            seconds: ended.seconds,
            rows: rows.unwrap_or(0),
            outcome,
        }));
    }

    /// Asks for a plan in the ways that the product may know; one that takes too long to execute is
    /// estimated.
    async fn plan(&mut self, stream: &Stream, query: u8, text: &str, is_executed: bool) {
        let mut problem = String::new();
        for is_executed in [is_executed, false] {
            let Ok(link) = self.take_link().await else { return };
            let capabilities = link.session.capabilities();
            self.link = Some(link);
            // The most detailed first: if a server does not know one, the next is tried.
            let executed = capabilities.explain_executed;
            for prefix in if is_executed { executed } else { capabilities.explain } {
                let statement = format!("{prefix} {text}");
                let mut table = AnswerTable::default();
                let name = format!("the plan of Q{query}");
                let ended = self.run_stoppable(
                    stream.timeout,
                    (name, None),
                    async |session: &mut AdminSession<'_>| {
                        session.query(&statement, &mut table).await
                    },
                );
                let ended = ended.await;
                match ended.outcome() {
                    QueryOutcome::Answered => {
                        let text = plans::render(capabilities.plan_form, &table);
                        return self.send(StreamEvent::Plan { query, text });
                    }
                    QueryOutcome::Interrupted => return,
                    QueryOutcome::TimedOut => {
                        problem = "its execution passed the bound".to_owned();
                        break;
                    }
                    QueryOutcome::Failed(error) => problem = error,
                }
            }
        }
        self.send(StreamEvent::Note(format!("No plan of Q{query} could be taken: {problem}")));
    }
}

fn to_seconds(nanos: Nanos) -> f64 {
    nanos as f64 / SECOND as f64
}

/// The reason to stop a statement at this time; `None` if there is none.
fn stop_reason(now: Nanos, due: Option<Nanos>, user_stops: bool) -> Option<StopReason> {
    let is_due = due.is_some_and(|due| now >= due);
    if user_stops { Some(StopReason::User) } else { is_due.then_some(StopReason::Bound) }
}

/// Interrupts the statement of an embedded database, which blocks its thread, from another thread: again and again, as
/// an attempt before its first step is lost. The returned function ends that, and says why it was interrupted.
fn spawn_interrupter(
    interrupt: Interrupter,
    due: Option<Nanos>,
    is_stopped: Arc<AtomicBool>,
) -> impl FnOnce() -> Option<StopReason> {
    let (ended, watched) = channel::<()>();
    let guard = thread::spawn(move || {
        let mut reason = None;
        loop {
            let now = monotonic_now();
            let next_check = due
                .filter(|due| *due > now)
                .map_or(now + CHECK_INTERVAL, |due| due.min(now + CHECK_INTERVAL));
            let waited = watched.recv_timeout(Duration::from_nanos(next_check - now));
            if waited != Err(RecvTimeoutError::Timeout) {
                return reason;
            }
            let user_stops = is_stopped.load(Ordering::Relaxed);
            reason = reason.or(stop_reason(monotonic_now(), due, user_stops));
            if reason.is_some() {
                interrupt();
            }
        }
    });
    move || {
        drop(ended);
        guard.join().unwrap_or_default()
    }
}

/// Time that a server gets for what follows a statement that was stopped.
const AFTERWARDS: Nanos = 10 * SECOND;
/// Between two attempts to stop the same statement, and the time that each may take.
const RETRY: Nanos = 2 * SECOND;
/// Attempts to stop a statement before dyno waits no longer.
const ATTEMPTS: u32 = 6;

/// Waits for a statement. One that passes its bound, or that the user does not want any more, is killed. `None` if it
/// does not end in spite of that.
async fn await_or_stop<F: Future>(
    statement: F,
    due: Option<Nanos>,
    is_stopped: impl Fn() -> bool,
    kill: impl AsyncFn(),
) -> (Option<F::Output>, Option<StopReason>) {
    let mut statement = pin!(statement);
    let reason = loop {
        let next_check = due.map_or(now() + CHECK_INTERVAL, |due| due.min(now() + CHECK_INTERVAL));
        if let Ok(output) = timeout(next_check, statement.as_mut()).await {
            return (Some(output), None);
        }
        if let Some(reason) = stop_reason(now(), due, is_stopped()) {
            break reason;
        }
    };
    for _ in 0..ATTEMPTS {
        kill().await;
        if let Ok(output) = timeout(now() + RETRY, statement.as_mut()).await {
            return (Some(output), Some(reason));
        }
    }
    (None, Some(reason))
}

/// Data that the sessions of one trial have in common.
pub(super) struct Opening<'a> {
    pub(super) driver: AdminDriver<'a>,
    pub(super) rule: Option<&'a DegreeRule>,
    pub(super) degree: u32,
}

struct Link<'a> {
    session: AdminSession<'a>,
    /// The server's own number of the session; `None` of an embedded database.
    server_id: Option<String>,
    applied: Applied,
}

impl<'a> Opening<'a> {
    async fn open_link(&self, number: u32) -> Result<Link<'a>, DbError> {
        let mut session = self.driver.connect(number).await?;
        match self.make_ready(&mut session).await {
            Ok((server_id, applied)) => Ok(Link { session, server_id, applied }),
            Err(error) => {
                session.close().await;
                Err(error)
            }
        }
    }

    async fn make_ready(
        &self,
        session: &mut AdminSession<'_>,
    ) -> Result<(Option<String>, Applied), DbError> {
        // Right answers are those to the texts as they are meant, in one format of days.
        adopt(session).await?;
        let server_id = match session.dialect() {
            Dialect::Sqlite => None,
            Dialect::Mysql => Some(answer(session, "select connection_id()").await?),
            Dialect::Postgres => Some(answer(session, "select pg_backend_pid()").await?),
        };
        let server_id = server_id.and_then(|table| table.single().map(str::to_owned));
        let applied = match self.rule {
            Some(rule) => rule.apply(session, self.degree).await?,
            None => Applied::default(),
        };
        Ok((server_id, applied))
    }

    /// Ends a session with what it is executing, by a second session to the same host.
    ///
    /// # Errors
    /// When the server can't be reached or refuses; also when the session has ended by itself.
    async fn kill(&self, number: u32, id: &str) -> Result<(), DbError> {
        let sql = match self.driver.dialect() {
            Dialect::Mysql => format!("kill {id}"),
            Dialect::Postgres | Dialect::Sqlite => format!("select pg_terminate_backend({id})"),
        };
        let terminate = async {
            let mut session = self.driver.connect(number).await?;
            let result = session.query(&sql, &mut Discard).await.map(drop);
            session.close().await;
            result
        };
        let ended = timeout(now() + RETRY, terminate).await;
        ended.unwrap_or_else(|_| {
            Err(DbError::lost("The server did not take note of the request in time."))
        })
    }
}

impl Link<'_> {
    /// Sets everything back and takes leave. Says in a sentence what could not be set back.
    async fn close(mut self) -> Option<String> {
        let closing = timeout(monotonic_now() + AFTERWARDS, async {
            self.session.rollback().await?;
            self.applied.restore(&mut self.session).await
        });
        let problem = match closing.await {
            Ok(Ok(())) => None,
            Ok(Err(error)) => Some(error.to_string()),
            Err(_) => Some("the server did not answer in time.".to_owned()),
        };
        self.session.close().await;
        problem.map(|error| {
            format!("The session's settings could not be set back before it was closed: {error}")
        })
    }

    /// Ends a session that does not answer any more.
    async fn abandon(self) {
        timeout(monotonic_now() + AFTERWARDS, self.session.cancel()).await.ok();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_reactor::{Clock, Loop, sleep_until};
    use std::cell::RefCell;
    use std::sync::atomic::AtomicU32;

    /// The result of a statement, why and when it ended, and the attempts to stop it.
    type Stopped = (Option<()>, Option<StopReason>, Nanos, Vec<Nanos>);

    /// Executes a statement that takes `length_s` seconds.
    fn stopped(length_s: u64, bound_s: Option<u64>, user_stops_s: u64) -> Stopped {
        let attempts = RefCell::new(Vec::new());
        let task = async {
            let statement = sleep_until(length_s * SECOND);
            let due = bound_s.map(|bound_s| bound_s * SECOND);
            let ended = await_or_stop(
                statement,
                due,
                || now() >= user_stops_s * SECOND,
                async || attempts.borrow_mut().push(now() / SECOND),
            );
            let (result, reason) = ended.await;
            (result, reason, now() / SECOND)
        };
        let ended = Loop::new(Clock::Virtual, [task]).unwrap().finish().unwrap();
        let (result, reason, at_s) = ended[0];
        (result, reason, at_s, attempts.into_inner())
    }

    #[test]
    fn a_statement_is_stopped_at_its_bound_and_not_before() {
        assert_eq!(stopped(5, None, 99), (Some(()), None, 5, vec![]));
        assert_eq!(stopped(5, Some(6), 99), (Some(()), None, 5, vec![]));
        let at_bound = (Some(()), Some(StopReason::Bound), 7, vec![6]);
        assert_eq!(stopped(7, Some(6), 99), at_bound);
        assert_eq!(stopped(7, Some(6), 5).1, Some(StopReason::User));
    }

    #[test]
    fn attempts_to_stop_a_statement_end() {
        let ended = (None, Some(StopReason::User), 15, vec![3, 5, 7, 9, 11, 13]);
        assert_eq!(stopped(1_000, None, 3), ended);
    }

    #[test]
    fn an_embedded_statement_is_interrupted_at_its_bound_and_by_the_user() {
        let attempts = Arc::new(AtomicU32::new(0));
        let guard = |due, is_stopped: &Arc<AtomicBool>| {
            let counter = Arc::clone(&attempts);
            let interrupt = Box::new(move || {
                counter.fetch_add(1, Ordering::Relaxed);
            });
            spawn_interrupter(interrupt, due, Arc::clone(is_stopped))
        };
        let count = || attempts.load(Ordering::Relaxed);
        let is_stopped = Arc::new(AtomicBool::new(false));
        assert_eq!(
            (guard(Some(Nanos::MAX), &is_stopped)(), count()),
            (None, 0),
            "before its bound"
        );
        assert_eq!((guard(None, &is_stopped)(), count()), (None, 0), "it has no bound");
        let bounded = guard(Some(monotonic_now()), &is_stopped);
        while count() < 2 {
            thread::yield_now();
        }
        assert_eq!(bounded(), Some(StopReason::Bound));
        let (before, user) = (count(), guard(None, &is_stopped));
        is_stopped.store(true, Ordering::Relaxed);
        while count() == before {
            thread::yield_now();
        }
        assert_eq!(user(), Some(StopReason::User));
    }
}
