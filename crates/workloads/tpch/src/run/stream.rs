//! One stream: jobs that a session executes one after another.

use super::link::{Link, Opening, pages_read_so_far, unless_given_up};
use super::slot::{Slot, StopReason};
use crate::degree::Applied;
use crate::facts::{QueryFacts, QueryOutcome, RefreshFacts};
use crate::plans;
use crate::refresh::{self, RefreshPosition};
use dyno_core::{AdminSession, AnswerTable, DbError, Nanos, SECOND, Session};
use dyno_load::doing;
use dyno_reactor::{monotonic_now, unless};
use dyno_runner::databases::stopped;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender};

pub(super) enum Job {
    Query(Query),
    /// The next refresh function of the database.
    Refresh,
    /// A plan, not timed.
    Plan {
        query: u8,
        text: String,
        is_executed: bool,
    },
}

pub(super) struct Query {
    pub(super) query: u8,
    pub(super) parameters: Vec<String>,
    pub(super) text: String,
}

pub(super) struct Stream {
    /// The stream in results; 0 where there is one.
    pub(super) number: u32,
    pub(super) jobs: Vec<Job>,
    pub(super) scale: f64,
    /// Bound of each query and plan.
    pub(super) timeout: Option<Nanos>,
    /// Where the refresh functions go on.
    pub(super) position: RefreshPosition,
    /// Whether that has to be asked for: a refresh function has failed.
    pub(super) is_unsure: bool,
    /// Whether the pages that the server reads are counted around each query.
    pub(super) counts_pages: bool,
}

/// What a stream tells the thread that watches.
pub(super) enum News {
    /// The session is open, with this degree, and waits for the start; or it could not be opened.
    Ready(Result<Applied, DbError>),
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
            for job in std::mem::take(&mut stream.jobs) {
                if self.is_stopped.load(Ordering::Relaxed) {
                    break;
                }
                match job {
                    Job::Query(query) => self.query(&stream, query).await,
                    Job::Refresh => self.refresh(&mut stream).await,
                    Job::Plan { query, text, is_executed } => {
                        self.plan(&stream, query, &text, is_executed).await;
                    }
                }
            }
        }
        if let Some(link) = self.link.take()
            && let Some(problem) = link.close(self.slot).await
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
        let opened = unless(is_stopped, self.opening.open(self.number, self.slot)).await;
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
        self.slot.begin(bound.map(|bound| monotonic_now().saturating_add(bound)));
        // After the bound is known: who hears this looks when it is due.
        if let Some(news) = announced {
            self.tell(news);
        }
        let began = monotonic_now();
        let result = unless_given_up(self.slot, work(&mut link.session)).await;
        let ended = monotonic_now();
        let why = self.slot.end();
        self.link = match &result {
            Some(Ok(_)) if why.is_none() => Some(link),
            Some(Err(error)) if error.is_fatal() => {
                self.slot.arm(None);
                None
            }
            None => {
                link.abandon(self.slot).await;
                None
            }
            Some(_) => link.calm(self.slot).await,
        };
        let began_s = seconds(began - self.began);
        EndedStatement { result, why, began_s, seconds: seconds(ended - began) }
    }

    async fn query(&mut self, stream: &Stream, query: Query) {
        let mut facts = QueryFacts {
            query: query.query,
            stream: stream.number,
            parameters: query.parameters,
            ..QueryFacts::default()
        };
        let mut link = match self.link().await {
            Ok(link) => link,
            Err(error) => {
                facts.began_s = seconds(monotonic_now() - self.began);
                facts.outcome = QueryOutcome::Failed(error.to_string());
                return self.tell(News::Query(facts, AnswerTable::default()));
            }
        };
        let pages = match stream.counts_pages {
            true => pages_read_so_far(&mut link.session).await,
            false => None,
        };
        let mut table = AnswerTable::of_workload();
        let name = format!("Q{}", query.query);
        let sent = News::Sent { stream: stream.number, query: query.query };
        let ended = self
            .stoppable(link, stream.timeout, (name, Some(sent)), async |session| {
                session.query(&query.text, &mut table).await
            })
            .await;
        facts.began_s = ended.began_s;
        facts.ended_s = seconds(monotonic_now() - self.began);
        facts.outcome = ended.outcome();
        facts.seconds = match (&facts.outcome, stream.timeout) {
            (QueryOutcome::TimedOut, Some(bound)) => seconds(bound),
            _ => ended.seconds,
        };
        if let Some(Ok(executed)) = ended.result {
            facts.rows = executed.rows;
        }
        if let (Some(link), Some(before)) = (&mut self.link, pages) {
            let after = pages_read_so_far(&mut link.session).await;
            facts.pages_read = after.and_then(|after| after.checked_sub(before));
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

pub(super) fn seconds(nanos: Nanos) -> f64 {
    nanos as f64 / SECOND as f64
}
