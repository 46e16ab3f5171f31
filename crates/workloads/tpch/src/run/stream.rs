//! One stream: jobs that a session executes one after another; which streams a test has; and the session itself, opened
//! with the degree set and closed with everything set back.

use super::watch::{LOOK, Slot, StopReason};
use super::{Plans, RunOptions, TpchTest};
use crate::degree::{Applied, DegreeRule};
use crate::facts::{QueryFacts, QueryOutcome, RefreshFacts};
use crate::parameters::{ParameterChoice, order, parameters};
use crate::plans;
use crate::queries::{LAST, Q15, text};
use crate::refresh::{self, RefreshPosition};
use dyno_core::{
    AdminDriver, AdminSession, AnswerTable, DbError, Dialect, Discard, Driver, Nanos, SECOND,
    Session,
};
use dyno_load::doing;
use dyno_load::query::answer;
use dyno_load::settings::adopt;
use dyno_reactor::{monotonic_now, now, timeout, unless};
use dyno_runner::databases::stopped;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender};

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
    /// The stream in results; 0 where there is one.
    number: u32,
    jobs: Vec<Job>,
    scale: f64,
    /// Bound of each query and plan.
    timeout: Option<Nanos>,
    /// Where the refresh functions go on.
    position: RefreshPosition,
    /// Whether that has to be asked for: a refresh function has failed.
    is_unsure: bool,
}

/// Queries that run while the refresh functions do are told apart by their streams, from 1; where
/// there is one, it is 0.
pub(super) fn streams(
    options: &RunOptions,
    dialect: Dialect,
    position: RefreshPosition,
) -> Vec<Stream> {
    let queries = |number: u32, order: &[u8]| {
        let query = |&query: &u8| {
            let parameters = parameters(query, options.scale, choice(options, number));
            let text = text(query, &parameters, dialect, Q15::Cte);
            Job::Query { query, parameters, text }
        };
        order.iter().map(query).collect()
    };
    let jobs = match options.test {
        TpchTest::Queries => queries(0, &std::array::from_fn::<u8, 22, _>(|at| at as u8 + 1)),
        TpchTest::Power { refresh } => {
            let refresh = || refresh.then_some(Job::Refresh);
            let queries: Vec<Job> = queries(0, &order(0));
            refresh().into_iter().chain(queries).chain(refresh()).collect()
        }
        TpchTest::Throughput { streams, refresh } => {
            let of_queries =
                |number| stream(options, position, number, queries(number, &order(number)));
            let of_refreshes = refresh.then(|| stream(options, position, 0, refreshes(streams)));
            return (1..=streams).map(of_queries).chain(of_refreshes).collect();
        }
        TpchTest::Refresh { pairs } => refreshes(pairs),
        // Its parts are executed one after the other, each with streams of its own.
        TpchTest::Performance { .. } => return Vec::new(),
    };
    vec![stream(options, position, 0, jobs)]
}

/// One pass that takes the plan of each query, with the parameters of the first stream.
pub(super) fn plans(options: &RunOptions, dialect: Dialect, position: RefreshPosition) -> Stream {
    let first = u32::from(matches!(options.test, TpchTest::Throughput { .. }));
    let is_executed = options.plans == Plans::Executed;
    let plan = |query| {
        let values = parameters(query, options.scale, choice(options, first));
        let text = text(query, &values, dialect, Q15::Cte);
        Job::Plan { query, text, is_executed }
    };
    stream(options, position, first, (1..=LAST).map(plan).collect())
}

/// What is left of a pair that was interrupted.
pub(super) fn rest_of_pair(options: &RunOptions, position: RefreshPosition) -> Stream {
    let left = if position.function == 1 { 2 } else { 1 };
    stream(options, position, 0, (0..left).map(|_| Job::Refresh).collect())
}

fn stream(options: &RunOptions, position: RefreshPosition, number: u32, jobs: Vec<Job>) -> Stream {
    Stream {
        number,
        jobs,
        scale: options.scale,
        timeout: options.timeout_s.map(|seconds| (seconds * SECOND as f64) as Nanos),
        position,
        is_unsure: false,
    }
}

fn refreshes(pairs: u32) -> Vec<Job> {
    (0..2 * pairs).map(|_| Job::Refresh).collect()
}

/// Seeds of streams follow that of the power test (clause 2.1.3.3).
fn choice(options: &RunOptions, stream: u32) -> ParameterChoice {
    match options.parameters {
        ParameterChoice::Default => ParameterChoice::Default,
        ParameterChoice::Seed(seed) => ParameterChoice::Seed(seed + u64::from(stream)),
    }
}

/// What a stream tells the thread that watches.
pub(super) enum News {
    /// The session is open, with this degree, and waits for the start; or it could not be opened.
    Ready(Result<Applied, DbError>),
    /// All sessions are open, and this is the time from which the times of the trial are counted.
    Started(Nanos),
    Sent {
        stream: u32,
        query: u8,
    },
    Query(QueryFacts, AnswerTable),
    Refresh(RefreshFacts),
    Plan {
        query: u8,
        text: String,
    },
    Note(String),
}

pub(super) struct Worker<'a> {
    pub(super) opening: &'a Opening<'a>,
    pub(super) slot: &'a Slot,
    pub(super) is_stopped: &'a AtomicBool,
    pub(super) news: Sender<News>,
    /// Number of the session, picks the host.
    pub(super) number: u32,
    pub(super) link: Option<Link<'a>>,
    pub(super) began: Nanos,
}

/// How a statement ended, and why it was stopped if it was.
struct EndedStatement<T> {
    result: Option<Result<T, DbError>>,
    why: Option<StopReason>,
    /// When it was sent, seconds from the begin of the trial.
    began_s: f64,
    seconds: f64,
}

impl<T> EndedStatement<T> {
    /// Where it ended by itself after all, the attempt to stop it came too late and does not count.
    fn outcome(&self) -> QueryOutcome {
        match (&self.result, self.why) {
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
    pub(super) async fn run(mut self, mut stream: Stream, start: Receiver<Option<Nanos>>) {
        match self.open().await {
            Ok(link) => {
                doing("waiting for the other sessions");
                self.tell(News::Ready(Ok(link.applied.clone())));
                self.link = Some(link);
            }
            Err(error) => return self.tell(News::Ready(Err(error))),
        }
        // Nothing else runs on this loop. Without a start another stream could not be opened.
        if let Ok(Some(began)) = start.recv() {
            self.began = began;
            let timeout = stream.timeout;
            for job in std::mem::take(&mut stream.jobs) {
                if self.is_stopped.load(Ordering::Relaxed) {
                    break;
                }
                match job {
                    Job::Query { query, parameters, text } => {
                        let stream = stream.number;
                        let facts = QueryFacts { query, stream, parameters, ..<_>::default() };
                        self.query(facts, timeout, &text).await;
                    }
                    Job::Refresh => self.refresh(&mut stream).await,
                    Job::Plan { query, text, is_executed } => {
                        self.plan(&stream, query, &text, is_executed).await;
                    }
                }
            }
        }
        if let Some(link) = self.link.take()
            && let Some(problem) = link.close().await
        {
            self.tell(News::Note(problem));
        }
    }

    /// The watching thread lives longer than the streams.
    fn tell(&self, news: News) {
        self.news.send(news).ok();
    }

    /// The session, opened again where it was lost.
    async fn link(&mut self) -> Result<Link<'a>, DbError> {
        match self.link.take() {
            Some(link) => Ok(link),
            None => self.open().await,
        }
    }

    /// A server that hangs may not even shake hands.
    async fn open(&self) -> Result<Link<'a>, DbError> {
        let is_stopped = || self.is_stopped.load(Ordering::Relaxed);
        let opened = unless(is_stopped, self.opening.open(self.number)).await;
        opened.unwrap_or_else(|| Err(stopped()))
    }

    /// Executes something that may be stopped, and has the session ready for the next job or gone.
    async fn stoppable<T>(
        &mut self,
        mut link: Link<'a>,
        bound: Option<Nanos>,
        (what, announced): (String, Option<News>),
        work: impl AsyncFnOnce(&mut AdminSession<'_>) -> Result<T, DbError>,
    ) -> EndedStatement<T> {
        doing(what);
        let due = bound.map(|bound| monotonic_now().saturating_add(bound));
        self.slot.begin(link.session.interrupter(), due);
        // After the bound is known: who hears this looks when it is due.
        if let Some(news) = announced {
            self.tell(news);
        }
        let began = monotonic_now();
        let Link { session, server_id, .. } = &mut link;
        let server_id = server_id.as_deref();
        let is_stopped = || self.is_stopped.load(Ordering::Relaxed);
        let stop = async |is_hard| {
            if let Some(id) = server_id {
                // A failed attempt is followed by others.
                self.opening.interrupt(self.number, id, is_hard).await.ok();
            }
        };
        let (result, why) = ended_or_stopped(work(session), due, is_stopped, stop).await;
        let ended = monotonic_now();
        let why = self.slot.end().or(why);
        self.link = match &result {
            Some(Ok(_)) if why.is_none() => Some(link),
            Some(Err(error)) if error.is_fatal() => None,
            None => {
                link.abandon().await;
                None
            }
            Some(_) => link.calm().await,
        };
        let began_s = seconds(began - self.began);
        EndedStatement { result, why, began_s, seconds: seconds(ended - began) }
    }

    async fn query(&mut self, mut facts: QueryFacts, timeout: Option<Nanos>, text: &str) {
        let link = match self.link().await {
            Ok(link) => link,
            Err(error) => {
                facts.began_s = seconds(monotonic_now() - self.began);
                facts.outcome = QueryOutcome::Failed(error.to_string());
                return self.tell(News::Query(facts, AnswerTable::default()));
            }
        };
        let mut table = AnswerTable::of_workload();
        let name = format!("Q{}", facts.query);
        let sent = News::Sent { stream: facts.stream, query: facts.query };
        let ended = self
            .stoppable(link, timeout, (name, Some(sent)), async |session| {
                session.query(text, &mut table).await
            })
            .await;
        facts.began_s = ended.began_s;
        facts.ended_s = seconds(monotonic_now() - self.began);
        facts.outcome = ended.outcome();
        facts.seconds = match (&facts.outcome, timeout) {
            (QueryOutcome::TimedOut, Some(bound)) => seconds(bound),
            _ => ended.seconds,
        };
        if let Some(Ok(executed)) = ended.result {
            facts.rows = executed.rows;
        }
        self.tell(News::Query(facts, table));
    }

    async fn refresh(&mut self, stream: &mut Stream) {
        let began_s = seconds(monotonic_now() - self.began);
        let mut facts = RefreshFacts { began_s, ..RefreshFacts::default() };
        let link = self.sure_link(stream).await;
        (facts.function, facts.pair) = (stream.position.function, stream.position.pair);
        match link {
            Ok(link) => {
                let name = format!("RF{}", facts.function);
                let position = &mut stream.position;
                let ended = self
                    .stoppable(link, None, (name, None), async |session| {
                        refresh::execute(session, stream.scale, position).await
                    })
                    .await;
                (facts.began_s, facts.seconds) = (ended.began_s, ended.seconds);
                facts.outcome = ended.outcome();
                match ended.result {
                    Some(Ok(rows)) => facts.rows = rows,
                    _ => stream.is_unsure = true,
                }
            }
            Err(error) => facts.outcome = QueryOutcome::Failed(error.to_string()),
        }
        self.tell(News::Refresh(facts));
    }

    /// The session, and where the refresh functions go on: a lost connection does not say whether
    /// its last transaction was committed.
    async fn sure_link(&mut self, stream: &mut Stream) -> Result<Link<'a>, DbError> {
        let mut link = self.link().await?;
        if stream.is_unsure {
            let pairs = stream.position.pair - 1;
            stream.position = refresh::position(&mut link.session, pairs).await?;
            stream.is_unsure = false;
        }
        Ok(link)
    }

    /// Asks for a plan in the ways that the product may know; one that takes too long to execute is
    /// estimated.
    async fn plan(&mut self, stream: &Stream, query: u8, text: &str, is_executed: bool) {
        let mut problem = String::new();
        for is_executed in [is_executed, false] {
            let Ok(link) = self.link().await else { return };
            let capabilities = link.session.capabilities();
            self.link = Some(link);
            for statement in plans::statements(capabilities, text, is_executed) {
                let Ok(link) = self.link().await else { return };
                let mut table = AnswerTable::default();
                let name = format!("the plan of Q{query}");
                let ended = self
                    .stoppable(link, stream.timeout, (name, None), async |session| {
                        session.query(&statement, &mut table).await
                    })
                    .await;
                match ended.outcome() {
                    QueryOutcome::Answered => {
                        let text = plans::text(capabilities.plan_form, &table);
                        return self.tell(News::Plan { query, text });
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
        self.tell(News::Note(format!("No plan of Q{query} could be taken: {problem}")));
    }
}

fn seconds(nanos: Nanos) -> f64 {
    nanos as f64 / SECOND as f64
}

/// Time that a server gets for what follows a statement that was stopped.
const AFTERWARDS: Nanos = 10 * SECOND;

/// Between two attempts to stop the same statement, and the time that each may take.
const RETRY: Nanos = 2 * SECOND;
/// Attempts after which the whole connection is to go.
const GENTLE_ATTEMPTS: u32 = 2;
/// How long the server gets to stop a statement before dyno waits no longer.
const PATIENCE: Nanos = 12 * SECOND;

/// Waits for a statement. One that passes its bound, or that the user does not want any more, is stopped; `interrupt` is
/// told if the connection is to go with it: it was asked politely before. `None` if it does not end in spite of that.
async fn ended_or_stopped<F: Future>(
    statement: F,
    due: Option<Nanos>,
    is_stopped: impl Fn() -> bool,
    interrupt: impl AsyncFn(bool),
) -> (Option<F::Output>, Option<StopReason>) {
    let mut statement = pin!(statement);
    let (mut why, mut attempts, mut given_up_at) = (None, 0, Nanos::MAX);
    loop {
        let look = now() + if why.is_some() { RETRY } else { LOOK };
        let until = due.filter(|_| why.is_none()).map_or(look, |due| look.min(due));
        match timeout(until, statement.as_mut()).await {
            Ok(output) => return (Some(output), why),
            Err(_) if now() >= given_up_at => return (None, why),
            Err(_) => {}
        }
        if why.is_none() {
            let is_due = due.is_some_and(|due| now() >= due);
            why = match is_stopped() {
                true => Some(StopReason::User),
                false => is_due.then_some(StopReason::Bound),
            };
            given_up_at = now() + PATIENCE;
        }
        if why.is_some() {
            interrupt(attempts >= GENTLE_ATTEMPTS).await;
            attempts += 1;
        }
    }
}

/// What sessions of one trial have in common.
pub(super) struct Opening<'a> {
    pub(super) driver: AdminDriver<'a>,
    pub(super) rule: Option<&'a DegreeRule>,
    pub(super) degree: u32,
}

pub(super) struct Link<'a> {
    session: AdminSession<'a>,
    /// The server's own number of the session; `None` of an embedded database.
    server_id: Option<String>,
    applied: Applied,
}

impl<'a> Opening<'a> {
    async fn open(&self, number: u32) -> Result<Link<'a>, DbError> {
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
            _ => Some(server_id(session).await?),
        };
        let applied = match self.rule {
            Some(rule) => rule.apply(session, self.degree).await?,
            None => Applied::default(),
        };
        Ok((server_id, applied))
    }

    /// Stops what a session is executing, by a second session to the same host.
    ///
    /// # Errors
    /// When the server can't be reached or refuses; also when the statement has ended by itself.
    async fn interrupt(&self, number: u32, id: &str, is_hard: bool) -> Result<(), DbError> {
        let sql = match (self.driver.dialect(), is_hard) {
            (Dialect::Mysql, false) => format!("kill query {id}"),
            (Dialect::Mysql, true) => format!("kill {id}"),
            (_, false) => format!("select pg_cancel_backend({id})"),
            (_, true) => format!("select pg_terminate_backend({id})"),
        };
        let ask = async {
            let mut session = self.driver.connect(number).await?;
            let done = session.query(&sql, &mut Discard).await.map(drop);
            session.close().await;
            done
        };
        let late = |_| Err(DbError::lost("The server did not take note of the request in time."));
        timeout(now() + RETRY, ask).await.unwrap_or_else(late)
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
    async fn close(mut self) -> Option<String> {
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
    async fn calm(mut self) -> Option<Self> {
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
        self.abandon().await;
        None
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

    /// The result of a statement, why and when it ended, and the attempts to stop it.
    type Stopped = (Option<()>, Option<StopReason>, Nanos, Vec<(Nanos, bool)>);

    /// Executes a statement of so many seconds.
    fn stopped(length_s: u64, bound_s: Option<u64>, user_stops_s: u64) -> Stopped {
        let attempts = RefCell::new(Vec::new());
        let task = async {
            let statement = sleep_until(length_s * SECOND);
            let is_stopped = || now() >= user_stops_s * SECOND;
            let interrupt = async |is_hard| attempts.borrow_mut().push((now() / SECOND, is_hard));
            let due = bound_s.map(|bound_s| bound_s * SECOND);
            let (result, why) = ended_or_stopped(statement, due, is_stopped, interrupt).await;
            (result, why, now() / SECOND)
        };
        let ended = Loop::new(Clock::Virtual, [task]).unwrap().finish().unwrap();
        let (result, why, at_s) = ended[0];
        (result, why, at_s, attempts.into_inner())
    }

    #[test]
    fn a_statement_is_stopped_at_its_bound_and_not_before() {
        assert_eq!(stopped(5, None, 99), (Some(()), None, 5, vec![]));
        assert_eq!(stopped(5, Some(6), 99), (Some(()), None, 5, vec![]));
        let at_bound = (Some(()), Some(StopReason::Bound), 7, vec![(6, false)]);
        assert_eq!(stopped(7, Some(6), 99), at_bound);
        assert_eq!(stopped(7, Some(6), 5).1, Some(StopReason::User));
    }

    #[test]
    fn attempts_become_harder_and_end() {
        let attempts = [(3, false), (5, false), (7, true), (9, true), (11, true), (13, true)];
        let ended = (None, Some(StopReason::User), 15, attempts.to_vec());
        assert_eq!(stopped(1_000, None, 3), ended);
    }
}
