//! Executes the tests: the queries in order, power, throughput, refresh functions.
//!
//! A trial is a few streams, each a thread with an event loop and a session of its own, and the
//! calling thread, which watches over them: it stops what passes its bound, compares answers and
//! tells the caller. Nothing of that happens between two timed queries of a stream.

mod answers;
mod stream;
mod watch;

use crate::degree::{self, Applied, DegreeRule};
use crate::facts::{
    CacheFacts, DegreeFacts, PlanFacts, QueryFacts, QueryOutcome, RefreshFacts, TpchFacts, TpchLoad,
};
use crate::metrics::{lowest_run, metrics, qphh, qphh_formula};
use crate::parameters::ParameterChoice;
use crate::plans;
use crate::queries::{Q15, Rewrite, rewrites};
use crate::refresh::{self, RefreshPosition, SET_MAX};
use crate::state::{TpchDatabase, fact, loaded, set_fact};
pub use answers::Answerer;
use answers::Answers;
use dyno_core::{AdminDriver, AdminSession, DbError, Dialect, Driver, Nanos, Session};
use dyno_facts::{CheckVerdict, Message, say};
use dyno_load::settings::adopt;
use dyno_load::{LoadError, while_doing};
use dyno_reactor::block_on;
use dyno_runner::signals::unless_stopped;
use dyno_runner::watch::noted;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use stream::{News, Opening};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum TpchTest {
    /// Q1 to Q22 in order in one session, each timed whole.
    #[default]
    Queries,
    /// RF1, the queries in order 0, RF2 (clause 5.3.3).
    Power {
        /// False leaves the refresh functions out: there is no power metric then.
        refresh: bool,
    },
    /// Several streams of queries at once, and one that executes a pair of refresh functions for
    /// each of them (clause 5.3.4).
    Throughput {
        /// Streams of queries, from 1.
        streams: u32,
        /// False leaves the refresh stream out.
        refresh: bool,
    },
    /// Pairs of refresh functions alone.
    Refresh { pairs: u32 },
    /// Runs of a power test and, at once, a throughput test, both with refresh functions; the run with the lower
    /// composite counts (chapter 5).
    Performance {
        /// Streams of queries of each throughput test, from 1.
        streams: u32,
        /// Runs, from 1; the specification has 2.
        runs: u32,
    },
}

impl TpchTest {
    /// The name in results: `queries`, `power`, `throughput`, `refresh` or `performance`.
    pub fn name(self) -> &'static str {
        match self {
            TpchTest::Queries => "queries",
            TpchTest::Power { .. } => "power",
            TpchTest::Throughput { .. } => "throughput",
            TpchTest::Refresh { .. } => "refresh",
            TpchTest::Performance { .. } => "performance",
        }
    }

    /// Sessions that execute queries side by side.
    pub(crate) fn streams(self) -> u32 {
        match self {
            TpchTest::Throughput { streams, .. } | TpchTest::Performance { streams, .. } => streams,
            TpchTest::Queries | TpchTest::Power { .. } | TpchTest::Refresh { .. } => 1,
        }
    }

    /// Sessions at once, each with a thread: the streams, and the one that refreshes beside several.
    pub(crate) fn sessions(self) -> u32 {
        let is_apart = match self {
            TpchTest::Throughput { refresh, .. } => refresh,
            TpchTest::Performance { .. } => true,
            _ => false,
        };
        self.streams() + u32::from(is_apart)
    }

    /// Queries and refresh functions that it executes.
    pub(crate) fn length(self) -> u64 {
        let passes = match self {
            TpchTest::Refresh { .. } => 0,
            TpchTest::Performance { streams, runs } => runs * (1 + streams),
            _ => self.streams(),
        };
        22 * u64::from(passes) + 2 * u64::from(self.pairs())
    }

    /// Whether it executes refresh functions.
    pub fn refreshes(self) -> bool {
        self.pairs() > 0
    }

    /// Pairs of refresh functions that it executes.
    pub fn pairs(self) -> u32 {
        match self {
            TpchTest::Power { refresh: true } => 1,
            TpchTest::Throughput { streams, refresh: true } => streams,
            TpchTest::Refresh { pairs } => pairs,
            TpchTest::Performance { streams, runs } => runs * (1 + streams),
            _ => 0,
        }
    }

    /// Fewest streams of a throughput test at a scale factor (clause 5.3.4, table 11).
    pub fn least_streams(scale: f64) -> u32 {
        let steps = [10.0, 30.0, 100.0, 300.0, 1e3, 3e3, 1e4, 3e4, 1e5];
        2 + steps.iter().filter(|step| scale >= **step).count() as u32
    }
}

/// Whether plans are taken, in a separate pass after the timed one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Plans {
    /// None.
    #[default]
    Off,
    /// As the planner estimates, without executing.
    Estimated,
    /// With an execution of each query where the product can, so that workers and pages are told.
    Executed,
}

/// A trial as [`run`] executes it.
#[derive(Clone, Debug, Default)]
pub struct RunOptions {
    /// Scale factor that the database must hold.
    pub scale: f64,
    pub test: TpchTest,
    /// Workers that may share a query; 0 is off.
    pub degree: u32,
    /// How the degree is set; `None` detects the product.
    pub rule: Option<DegreeRule>,
    /// Parameters of the queries. A seed is that of the power test; the streams of a throughput test
    /// get those that follow it (clause 2.1.3.3).
    pub parameters: ParameterChoice,
    /// Seconds after which a query is cancelled; `None` is no bound.
    pub timeout_s: Option<f64>,
    pub plans: Plans,
    /// Folder in which the first trial of a run leaves its answers, for those at scales and
    /// parameters without stored answers; `None` keeps none.
    pub answers: Option<PathBuf>,
    pub who: Answerer,
    /// What was done to the caches before; goes into the result.
    pub cache: CacheFacts,
}

/// Follows a trial. Called from one thread, never between two timed queries of a stream.
pub trait TrialWatch {
    /// All sessions are open and the clock starts.
    fn started(&self) {}
    /// A query is sent. `stream` is 0 where there is one.
    fn sent(&self, _stream: u32, _query: u8) {}
    /// A query has ended and its answer, where there is something to hold it against, is compared.
    /// For what must survive a crash of dyno.
    fn query(&self, _facts: &QueryFacts) {}
    /// A refresh function has ended.
    fn refresh(&self, _facts: &RefreshFacts) {}
    /// A plan was taken, as the server wrote it; `extension` is `json` or `txt`. Returns the name of the file in the run
    /// folder that keeps it, empty when none does.
    fn plan(&self, _query: u8, _extension: &str, _text: &str) -> String {
        String::new()
    }
    /// Something the user should know, in one sentence.
    fn note(&self, _text: &str) {}
}

#[derive(Clone, Copy, Debug, Default)]
pub struct Unwatched;

impl TrialWatch for Unwatched {}

/// Executes one test at one degree and returns what happened. Queries that fail, pass the bound or
/// are interrupted by `stop` are in the result: an error means that the test could not begin.
///
/// `stop` is asked about twenty times per second; once it says true, the queries at work are
/// cancelled on the server, sessions get their settings back, and what was measured is returned.
/// Blocks until everything has ended.
pub fn run(
    driver: &AdminDriver<'_>,
    options: &RunOptions,
    watch: &dyn TrialWatch,
    stop: &(dyn Fn() -> bool + Sync),
) -> Result<TpchFacts, LoadError> {
    let mut trial = Trial { driver, watch, stop, began: None };
    match options.test {
        TpchTest::Performance { streams, runs } => trial.performance(options, [streams, runs]),
        _ => trial.test(options),
    }
}

/// Shared by the tests of a trial: a performance test has several.
struct Trial<'a> {
    driver: &'a AdminDriver<'a>,
    watch: &'a dyn TrialWatch,
    stop: &'a (dyn Fn() -> bool + Sync),
    /// When the first test began, from which all times are counted.
    began: Option<Nanos>,
}

impl Trial<'_> {
    /// Executes runs of a power test and, at once, a throughput test, until one has no metrics or the user stops. The run
    /// with the lower composite counts (chapter 5).
    fn performance(
        &mut self,
        options: &RunOptions,
        [streams, runs]: [u32; 2],
    ) -> Result<TpchFacts, LoadError> {
        let power = TpchTest::Power { refresh: true };
        let throughput = TpchTest::Throughput { streams, refresh: true };
        let tests = [power, throughput].into_iter().cycle().take(2 * runs as usize);
        let (mut whole, mut all): (Option<TpchFacts>, _) = (None, Vec::new());
        for (number, test) in (1..).zip(tests) {
            if number > 1 && (self.stop)() {
                break;
            }
            // Between two parts nothing may happen, a pass for plans least of all.
            let plans = if number == 2 * runs { options.plans } else { Plans::Off };
            let mut part = self.test(&RunOptions { test, plans, ..options.clone() })?;
            let metrics = part.metrics.take();
            match &mut whole {
                None => whole = Some(part),
                Some(whole) => {
                    whole.queries.append(&mut part.queries);
                    whole.refreshes.append(&mut part.refreshes);
                    // The refresh functions of earlier parts are no departure from the specification.
                    whole.degree = part.degree;
                }
            }
            let Some(metrics) = metrics else { break };
            all.push(metrics);
        }
        let mut whole = whole.unwrap_or_default();
        whole.test = options.test.name().to_owned();
        whole.metrics = lowest_run(&all).filter(|_| all.len() == 2 * runs as usize);
        Ok(whole)
    }

    fn test(&mut self, options: &RunOptions) -> Result<TpchFacts, LoadError> {
        let mut before = look(self.driver, options)?;
        let rule = before.rule.clone();
        let rule = rule.as_ref();
        let opening = Opening { driver: *self.driver, rule, degree: options.degree };
        if options.test.refreshes() {
            crate::generate::prepare();
            self.complete_pair(&opening, options, &mut before)?;
        }
        let (driver, watch, dialect) = (self.driver, self.watch, self.driver.dialect());
        let mut facts = known_facts(options, dialect, before.loaded.load.clone());
        facts.deviations = deviations(options, &before);
        let answers = Answers {
            scale: options.scale,
            state: data_state(options, before.position),
            is_default: options.parameters == ParameterChoice::Default,
            folder: options.answers.as_deref(),
            who: &options.who,
        };
        let streams = stream::streams(options, dialect, before.position);
        let origin = self.began;
        let (applied, is_stopped) =
            watch::execute(&opening, streams, origin, self.stop, &mut |news| match news {
                News::Started(at) => {
                    if self.began.replace(origin.unwrap_or(at)).is_none() {
                        watch.started();
                    }
                }
                News::Sent { stream, query } => watch.sent(stream, query),
                News::Query(mut query, table) => {
                    if query.outcome == QueryOutcome::Answered {
                        query.answer = answers.judge(&query, table);
                    }
                    watch.query(&query);
                    facts.queries.push(query);
                }
                News::Refresh(refresh) => {
                    watch.refresh(&refresh);
                    facts.refreshes.push(refresh);
                }
                News::Note(text) => watch.note(&text),
                News::Ready(_) | News::Plan { .. } => {}
            })?;
        let streams = match options.test {
            TpchTest::Throughput { streams, .. } => Some((streams, elapsed_s(&facts))),
            _ => None,
        };
        if options.test.length() > 2 * u64::from(options.test.pairs()) {
            let TpchFacts { queries, refreshes, .. } = &facts;
            facts.metrics = metrics(options.scale, streams, queries, refreshes);
        }
        add_qphh(&mut facts, options, &before);
        if matches!(options.test, TpchTest::Power { refresh: true })
            && let Ok(Some(Err(error))) = block_on(unless_stopped(note_power(driver, &facts)))
        {
            watch.note(&format!("The database could not be told of its power test: {error}"));
        }
        if options.plans != Plans::Off && !is_stopped && !facts.queries.is_empty() {
            let streams = vec![stream::plans(options, dialect, before.position)];
            let mut hear = |news| hear_plan(news, &mut facts, rule, watch);
            // What was measured is not lost with the plans.
            if let Err(error) = watch::execute(&opening, streams, None, self.stop, &mut hear) {
                watch.note(&format!("No plans could be taken: {error}"));
            }
        }
        set_degree(&mut facts, rule, &applied);
        Ok(facts)
    }

    /// Executes what an interrupted trial has left of a pair, so that each test begins between two.
    fn complete_pair(
        &self,
        opening: &Opening<'_>,
        options: &RunOptions,
        before: &mut Before,
    ) -> Result<(), LoadError> {
        let RefreshPosition { pair, function, .. } = before.position;
        if before.position.is_whole() {
            return Ok(());
        }
        self.watch.note(&format!(
            "Pair {pair} of the refresh functions was interrupted earlier: it is completed first, \
             untimed."
        ));
        let rest = vec![stream::rest_of_pair(options, before.position)];
        let mut problem = None;
        watch::execute(opening, rest, None, self.stop, &mut |news| match news {
            News::Refresh(done) if done.outcome != QueryOutcome::Answered => {
                problem = Some(match done.outcome {
                    QueryOutcome::Failed(error) => error,
                    _ => "it was interrupted again.".to_owned(),
                });
            }
            News::Note(text) => self.watch.note(&text),
            _ => {}
        })?;
        if let Some(problem) = problem {
            return Err(LoadError::data(
                format!(
                    "RF{function} of pair {pair}, which was interrupted earlier, can't be completed: \
                     {problem}"
                ),
                "drop the data and load them again if this remains",
            ));
        }
        before.position = RefreshPosition::start_of(pair + 1);
        before.loaded.load.refresh_pairs = pair;
        Ok(())
    }
}

/// What is known before a test begins.
struct Before {
    loaded: TpchDatabase,
    rule: Option<DegreeRule>,
    position: RefreshPosition,
    last_power: Option<LastPower>,
}

fn look(driver: &AdminDriver<'_>, options: &RunOptions) -> Result<Before, LoadError> {
    let looked = block_on(noted(
        "looking at the data",
        unless_stopped(async {
            let connected = driver.connect(0).await;
            let mut session = connected.map_err(while_doing("connecting to the database"))?;
            adopt(&mut session).await.map_err(while_doing("setting up the session"))?;
            let before = look_with(&mut session, options).await;
            session.close().await;
            before
        }),
    ));
    looked.map_err(LoadError::Loop)?.unwrap_or(Err(LoadError::Canceled { hint: None }))
}

/// What the database says of its data, which must be whole and of this scale factor.
pub(crate) async fn data(
    session: &mut AdminSession<'_>,
    scale: f64,
) -> Result<TpchDatabase, LoadError> {
    match loaded(session).await? {
        Some(loaded) if loaded.scale == scale => Ok(loaded),
        Some(loaded) => Err(LoadError::data(
            format!("The tables have scale factor {}, but {scale} is required.", loaded.scale),
            format!("ask for --scale {}, or load again", loaded.scale),
        )),
        None => Err(LoadError::data("The database holds no tables of TPC-H.", load_hint(scale))),
    }
}

fn load_hint(scale: f64) -> String {
    format!(
        "load the data: dyno tpch load --scale {scale}; a suite does it itself where `prepare = \
         false` is left out"
    )
}

async fn look_with(
    session: &mut AdminSession<'_>,
    options: &RunOptions,
) -> Result<Before, LoadError> {
    let loaded = data(session, options.scale).await?;
    let rule = match &options.rule {
        Some(rule) => match rule.objection(session).await {
            Ok(None) => Some(rule.clone()),
            Ok(Some(problem)) => {
                let hint = "leave degree_rule out: the product is then detected";
                return Err(LoadError::data(problem, hint));
            }
            Err(error) => return Err(while_doing("asking for the product")(error)),
        },
        None => degree::detect(session).await.map_err(while_doing("asking for the product"))?,
    };
    let position = refresh::position(session, loaded.load.refresh_pairs).await;
    let position = position.map_err(while_doing("asking for the refresh functions applied"))?;
    let pairs = options.test.pairs();
    if matches!(
        options.test,
        TpchTest::Throughput { streams: 0, .. } | TpchTest::Refresh { pairs: 0 }
    ) {
        let problem = "The test has nothing to execute.";
        return Err(LoadError::data(problem, "ask for 1 stream or pair at least"));
    }
    if position.pair.saturating_add(pairs) > SET_MAX + 1 {
        let problem = format!(
            "{} pairs of refresh functions were applied to this database, and no more than \
             {SET_MAX} exist: {pairs} more can't be.",
            position.pair - 1
        );
        return Err(LoadError::data(problem, load_hint(options.scale)));
    }
    let last_power = fact(session, POWER).await;
    let last_power = last_power.map_err(while_doing("asking for the last power test"))?;
    Ok(Before { loaded, rule, position, last_power })
}

/// A plan belongs to all executions of its query in the trial.
fn hear_plan(news: News, facts: &mut TpchFacts, rule: Option<&DegreeRule>, watch: &dyn TrialWatch) {
    match news {
        News::Plan { query, text } => {
            let extension = plans::extension(&text);
            let plan = PlanFacts {
                file: watch.plan(query, extension, &text),
                shape: plans::shape(&text),
                workers: rule.and_then(|rule| rule.workers(&text)),
            };
            for execution in facts.queries.iter_mut().filter(|facts| facts.query == query) {
                execution.plan = Some(plan.clone());
            }
        }
        News::Note(text) => watch.note(&text),
        _ => {}
    }
}

/// Scale factors that the specification knows (clause 4.1.3.1).
const SCALES: [f64; 10] = [1.0, 10.0, 30.0, 100.0, 300.0, 1e3, 3e3, 1e4, 3e4, 1e5];

/// What is known before a trial begins, also of one that is killed.
pub(crate) fn known_facts(options: &RunOptions, dialect: Dialect, load: TpchLoad) -> TpchFacts {
    TpchFacts {
        scale: options.scale,
        test: options.test.name().to_owned(),
        parameters: options.parameters.message(),
        degree: DegreeFacts { asked: options.degree, ..DegreeFacts::default() },
        cache: options.cache.clone(),
        timeout_s: options.timeout_s,
        load: Some(load),
        rewrites: rewrites(dialect, Q15::Cte).iter().map(Rewrite::message).collect(),
        ..TpchFacts::default()
    }
}

/// Names the data that the queries see: pairs of refresh functions applied, and what of the next one
/// is. `None` while they change.
fn data_state(options: &RunOptions, at: RefreshPosition) -> Option<String> {
    let pairs = at.pair - 1;
    match options.test {
        TpchTest::Throughput { refresh: true, .. } | TpchTest::Refresh { .. } => None,
        // The queries come between the two functions of a pair.
        TpchTest::Power { refresh: true } => Some(format!("{pairs}.1")),
        _ if at.is_whole() => Some(pairs.to_string()),
        _ if at.orders == 0 => Some(format!("{pairs}.1")),
        _ => Some(format!("{pairs}.{}.{}", at.function, at.orders)),
    }
}

/// In what the trial departs from the specification.
fn deviations(options: &RunOptions, before: &Before) -> Vec<Message> {
    let mut deviations = Vec::new();
    let mut add = |message| deviations.push(message);
    if !SCALES.contains(&options.scale) {
        add(say!(scale_not_specified, scale = options.scale.to_string()));
    }
    match options.test {
        TpchTest::Queries => add(say!(queries_in_one_session)),
        TpchTest::Power { refresh: false } => add(say!(power_without_refresh)),
        TpchTest::Throughput { streams, refresh } => {
            if !refresh {
                add(say!(throughput_without_refresh));
            }
            let least = TpchTest::least_streams(options.scale);
            if streams < least {
                add(say!(too_few_streams, streams = streams, least = least));
            }
        }
        _ => {}
    }
    let is_test = matches!(options.test, TpchTest::Power { .. } | TpchTest::Throughput { .. });
    if is_test && options.parameters == ParameterChoice::Default {
        add(say!(validation_parameters));
    }
    if options.cache.state == "warm" && options.cache.verdict != Some(CheckVerdict::Failed) {
        add(say!(caches_warmed));
    }
    if options.degree > 0 && before.rule.as_ref().is_some_and(DegreeRule::is_parallel) {
        add(say!(degree_per_session));
    }
    let pairs = before.position.pair - 1;
    if !before.position.is_whole() || pairs > 0 {
        add(match before.position.is_whole() {
            true => say!(refreshed, pairs = pairs),
            false => say!(refreshed_in_part, pairs = pairs),
        });
    }
    deviations
}

/// From the first submission to the last answer (5.3.7.2).
fn elapsed_s(facts: &TpchFacts) -> f64 {
    let queries = facts.queries.iter().map(|query| {
        let seconds = if query.outcome == QueryOutcome::TimedOut {
            query.seconds.max(query.ended_s - query.began_s)
        } else {
            query.seconds
        };
        (query.began_s, seconds)
    });
    let refreshes = facts.refreshes.iter().map(|refresh| (refresh.began_s, refresh.seconds));
    let spans = queries.chain(refreshes);
    let (began, ended) = spans.fold((f64::INFINITY, 0.0), |(began, ended), (at, seconds)| {
        (f64::min(began, at), f64::max(ended, at + seconds))
    });
    ended - began
}

/// Which degree was asked for, and which there was.
fn set_degree(facts: &mut TpchFacts, rule: Option<&DegreeRule>, applied: &Applied) {
    let workers = facts.queries.iter().filter_map(|query| query.plan.as_ref()?.workers);
    let got = workers.max();
    let degree = &mut facts.degree;
    degree.got = got;
    degree.rule =
        rule.filter(|rule| rule.is_parallel()).map(|rule| rule.name.clone()).unwrap_or_default();
    degree.statements = applied.statements.clone();
    let remark = remark(degree.asked, got, rule);
    let parts: Vec<Message> = remark.into_iter().chain(applied.remarks.iter().cloned()).collect();
    degree.remark = (!parts.is_empty()).then(|| Message::sentences(&parts));
}

fn remark(asked: u32, got: Option<u32>, rule: Option<&DegreeRule>) -> Option<Message> {
    match (rule, got) {
        (None, _) if asked > 0 => Some(say!(no_degree_rule)),
        (Some(rule), _) if asked > 0 && !rule.is_parallel() => Some(rule.none.clone()),
        (_, Some(0)) if asked > 0 => Some(say!(degree_without_effect, asked = asked)),
        (_, Some(got)) if asked > 0 && got < asked => {
            Some(say!(fewer_workers_than_asked, asked = asked, got = got))
        }
        (rule, Some(got)) if asked == 0 && got > rule.map_or(0, DegreeRule::workers_when_off) => {
            Some(say!(parallel_although_off, got = got))
        }
        _ => None,
    }
}

/// The name under which the database keeps its last whole power test for a throughput test that follows it, maybe in a
/// trial of another run of dyno.
const POWER: &str = "power";

/// A power test: its metric, its degree and its pair of refresh functions.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
struct LastPower {
    power: f64,
    degree: u32,
    pair: u32,
}

/// Remembers a whole power test in the database.
async fn note_power(driver: &AdminDriver<'_>, facts: &TpchFacts) -> Result<(), DbError> {
    // Of a query that was given up only a bound is known: a composite would be none.
    let whole = facts.metrics.as_ref().filter(|metrics| metrics.penalised.is_empty());
    let power = whole.and_then(|metrics| metrics.power);
    let (Some(power), Some(refresh)) = (power, facts.refreshes.first()) else { return Ok(()) };
    let last = LastPower { power, degree: facts.degree.asked, pair: refresh.pair };
    let mut session = driver.connect(0).await?;
    adopt(&mut session).await?;
    let noted = set_fact(&mut session, POWER, &last).await;
    session.close().await;
    noted
}

impl LastPower {
    /// True for a throughput test at `position`: it is the second half of the same run (clause 5.4.3).
    fn is_followed_by(self, options: &RunOptions, position: RefreshPosition) -> bool {
        matches!(options.test, TpchTest::Throughput { refresh: true, .. })
            && self.degree == options.degree
            && position == RefreshPosition::start_of(self.pair + 1)
    }
}

/// Adds the composite to a throughput test that follows a power test at once.
fn add_qphh(facts: &mut TpchFacts, options: &RunOptions, before: &Before) {
    let last = before.last_power.filter(|last| last.is_followed_by(options, before.position));
    if let Some(LastPower { power, .. }) = last
        && let Some(metrics) = &mut facts.metrics
        && let Some(throughput) = metrics.throughput
    {
        metrics.qphh = Some(qphh(power, throughput));
        metrics.formulas.push(qphh_formula(power, throughput));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::degree::named;

    #[test]
    fn a_degree_without_effect_is_remarked() {
        let postgres = named("postgres").unwrap();
        let mariadb = named("mariadb").unwrap();
        let said = |asked, got, rule| remark(asked, got, rule).unwrap_or_default().to_string();
        assert_eq!(
            said(16, Some(2), Some(&postgres)),
            "Parallel workers asked for: 16; got: at most 2."
        );
        assert!(said(2, Some(0), Some(&postgres)).ends_with("no effect."));
        assert_eq!(said(2, Some(2), Some(&postgres)), "");
        assert_eq!(said(0, Some(0), Some(&postgres)), "");
        assert!(said(0, Some(1), Some(&postgres)).starts_with("Parallel execution was to be off"));
        let tidb = named("tidb").unwrap();
        assert_eq!(said(0, Some(1), Some(&tidb)), "", "1 is how it is switched off");
        assert!(said(0, Some(2), Some(&tidb)).starts_with("Parallel execution was to be off"));
        assert_eq!(said(16, None, Some(&mariadb)), mariadb.none.to_string());
        assert_eq!(said(0, None, Some(&mariadb)), "");
        assert!(said(4, None, None).starts_with("No rule"));
    }

    #[test]
    fn the_span_of_a_throughput_test_has_its_refresh_stream() {
        let query =
            |began_s, seconds| crate::facts::QueryFacts { began_s, seconds, ..<_>::default() };
        let refresh = crate::facts::RefreshFacts { began_s: 0.5, seconds: 9.0, ..<_>::default() };
        let facts = TpchFacts {
            queries: vec![query(1.0, 2.0), query(3.0, 4.0)],
            refreshes: vec![refresh],
            ..TpchFacts::default()
        };
        assert!((elapsed_s(&facts) - 9.0).abs() < 1e-12);
        let mut late = query(5.0, 2.0);
        late.outcome = QueryOutcome::TimedOut;
        late.ended_s = 12.0;
        let facts = TpchFacts { queries: vec![query(1.0, 2.0), late], ..TpchFacts::default() };
        assert!((elapsed_s(&facts) - 11.0).abs() < 1e-12, "until the server had stopped it");
    }

    #[test]
    fn only_the_throughput_test_that_follows_at_once_has_the_composite() {
        let last = LastPower { power: 100.5, degree: 2, pair: 1 };
        let follows = |degree, refresh, pair| {
            let test = TpchTest::Throughput { streams: 2, refresh };
            let options = RunOptions { degree, test, ..RunOptions::default() };
            last.is_followed_by(&options, RefreshPosition::start_of(pair))
        };
        assert!(follows(2, true, 2));
        assert!(!follows(2, true, 4), "not at once");
        assert!(!follows(0, true, 2), "other degree");
        assert!(!follows(2, false, 2), "no refresh");
    }
}
