//! Executes the tests: the queries in order, power, throughput, refresh functions.
//!
//! A trial is a few streams, each a thread with an event loop and its own session, and the
//! calling thread, which watches over them: it compares answers and tells the caller. Nothing of that
//! happens between two timed queries of a stream.

mod answers;
mod stream;

use crate::degree::{self, Applied, DegreeRule};
use crate::facts::{
    CacheFacts, DegreeFacts, PlanFacts, QueryFacts, QueryOutcome, RefreshFacts, TpchFacts, TpchLoad,
};
use crate::generate::row_count;
use crate::metrics::{lowest_run, metrics};
use crate::parameters::ParameterChoice;
use crate::plans;
use crate::queries::{Q15, Rewrite, rewrites};
use crate::refresh::{self, RefreshPosition, SET_MAX};
use crate::schema::SchemaTable;
use crate::state::{self, TpchTables};
use dyno_core::{AdminDriver, AdminSession, Dialect, Nanos};
use dyno_facts::{CheckVerdict, Message, say};
use dyno_load::{LoadError, while_doing};
use dyno_runner::failure::Failure;
use dyno_runner::family::ask;
use std::path::PathBuf;
use stream::{Opening, StreamEvent, execute};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum TpchTest {
    /// Q1 to Q22 in order in one session, each timed whole.
    #[default]
    Queries,
    /// RF1, the queries in order 0, RF2 (clause 5.3.3).
    Power {
        /// False leaves out the refresh functions, and with them the power metric.
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

/// Scale factors that the specification knows (clause 4.1.3.1).
const SCALES: [f64; 10] = [1.0, 10.0, 30.0, 100.0, 300.0, 1e3, 3e3, 1e4, 3e4, 1e5];

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

    /// Sessions that execute queries side by side, passes through the queries, pairs of refresh functions.
    fn extent(self) -> [u32; 3] {
        match self {
            TpchTest::Queries => [1, 1, 0],
            TpchTest::Power { refresh } => [1, 1, u32::from(refresh)],
            TpchTest::Throughput { streams, refresh } => {
                [streams, streams, if refresh { streams } else { 0 }]
            }
            TpchTest::Refresh { pairs } => [1, 0, pairs],
            TpchTest::Performance { streams, runs } => {
                [streams, runs * (1 + streams), runs * (1 + streams)]
            }
        }
    }

    /// Sessions that execute queries side by side.
    pub(crate) fn streams(self) -> u32 {
        self.extent()[0]
    }

    /// Sessions at once, each with a thread: the streams, and the one that refreshes alongside several.
    pub(crate) fn sessions(self) -> u32 {
        let is_apart = matches!(
            self,
            TpchTest::Throughput { refresh: true, .. } | TpchTest::Performance { .. }
        );
        self.streams() + u32::from(is_apart)
    }

    /// Queries and refresh functions that it executes.
    pub(crate) fn length(self) -> u64 {
        let [_, passes, pairs] = self.extent().map(u64::from);
        22 * passes + 2 * pairs
    }

    /// Pairs of refresh functions that it executes.
    pub(crate) fn pairs(self) -> u32 {
        self.extent()[2]
    }

    /// Fewest streams of a throughput test at a scale factor (clause 5.3.4, table 11).
    pub fn least_streams(scale: f64) -> u32 {
        2 + SCALES[1..].iter().filter(|step| scale >= **step).count() as u32
    }
}

/// The way in which plans are taken, in a separate pass after the timed one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Plans {
    #[default]
    Off,
    /// Estimates of the planner, without executing.
    Estimated,
    /// With an execution of each query where the product can, so that it reports workers and pages.
    Executed,
}

/// A trial as [`run`] executes it.
#[derive(Clone, Debug, Default)]
pub struct RunOptions {
    /// Scale factor that the database must hold.
    pub scale: f64,
    /// Tables of another program are measured whatever they hold.
    pub trusts_data: bool,
    pub test: TpchTest,
    /// Workers that may share a query; 0 is off.
    pub degree: u32,
    /// Rule that sets the degree; `None` detects the product.
    pub rule: Option<DegreeRule>,
    /// Parameters of the queries. A seed is that of the power test; the streams of a throughput test
    /// get those that follow it (clause 2.1.3.3).
    pub parameters: ParameterChoice,
    /// Seconds after which a query is canceled; `None` is not a bound.
    pub timeout_s: Option<f64>,
    pub plans: Plans,
    /// Folder in which the first trial of a run leaves its answers, for those at scales and
    /// parameters without stored answers; `None` keeps none.
    pub answers: Option<PathBuf>,
    /// The target, in the answers that it leaves.
    pub target: String,
    /// Preparation of the caches; goes into the result.
    pub cache: CacheFacts,
}

/// Follows a trial. Called from one thread, never between two timed queries of a stream.
pub trait TrialWatch {
    /// All sessions are open and the clock starts.
    fn started(&self) {}
    /// Called when a query goes to the server, before its answer.
    fn query_sent(&self, _query: u8) {}
    /// A query has ended and its answer, if there is something to hold it against, is compared.
    /// For what must survive a crash of dyno.
    fn query(&self, _facts: &QueryFacts) {}
    /// A refresh function has ended.
    fn refresh(&self, _facts: &RefreshFacts) {}
    /// A plan was taken, as the server wrote it; `extension` is `json` or `txt`. Returns the name of the file in the
    /// run folder that keeps it, empty when none does.
    fn plan(&self, _query: u8, _extension: &str, _text: &str) -> String {
        String::new()
    }
    /// Something the user should know, in one sentence.
    fn note(&self, _text: &str) {}
}

/// Executes one test at one degree and returns what happened. Queries that fail, pass the bound or
/// are interrupted by `stop` are in the result: an error means that the test could not begin.
///
/// `stop` is called about twenty times per second; once it returns true, the queries at work are
/// stopped on the server, sessions get their settings back, and what was measured is returned.
/// Blocks until everything has ended.
pub fn run(
    driver: &AdminDriver<'_>,
    options: &RunOptions,
    watch: &dyn TrialWatch,
    stop: &(dyn Fn() -> bool + Sync),
) -> Result<TpchFacts, Failure> {
    let mut trial = Trial { driver, watch, stop, began: None };
    match options.test {
        TpchTest::Performance { streams, runs } => trial.performance(options, [streams, runs]),
        _ => trial.run_test(options),
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
    /// Executes runs of a power test and, at once, a throughput test, until one has no metrics or the user stops. The
    /// run with the lower composite counts (chapter 5).
    fn performance(
        &mut self,
        options: &RunOptions,
        [streams, runs]: [u32; 2],
    ) -> Result<TpchFacts, Failure> {
        let power = TpchTest::Power { refresh: true };
        let throughput = TpchTest::Throughput { streams, refresh: true };
        let tests = [power, throughput].into_iter().cycle().take(2 * runs as usize);
        let (mut facts, mut results): (Option<TpchFacts>, _) = (None, Vec::new());
        for (number, test) in (1..).zip(tests) {
            if number > 1 && (self.stop)() {
                break;
            }
            // Between two parts nothing may happen, a pass for plans least of all.
            let plans = if number == 2 * runs { options.plans } else { Plans::Off };
            let mut part = self.run_test(&RunOptions { test, plans, ..options.clone() })?;
            let metrics = part.metrics.take();
            match &mut facts {
                None => facts = Some(part),
                Some(facts) => {
                    facts.queries.append(&mut part.queries);
                    facts.refreshes.append(&mut part.refreshes);
                    // The refresh functions of earlier parts are not departure from the specification.
                    facts.degree = part.degree;
                }
            }
            let Some(metrics) = metrics else { break };
            results.push(metrics);
        }
        let mut facts = facts.unwrap_or_default();
        facts.test = options.test.name().to_owned();
        facts.metrics = lowest_run(&results).filter(|_| results.len() == 2 * runs as usize);
        Ok(facts)
    }

    fn run_test(&mut self, options: &RunOptions) -> Result<TpchFacts, Failure> {
        let (driver, watch, dialect) = (self.driver, self.watch, self.driver.dialect());
        let before = ask(driver, async |session| prepare_test(session, options, watch).await)?;
        let rule = before.rule.as_ref();
        let opening = Opening { driver: *driver, rule, degree: options.degree };
        let mut facts = known_facts(options, dialect, before.load.clone());
        facts.deviations = deviations(options, &before);
        let state = data_state(options, before.position);
        let streams = stream::plan_streams(options, dialect, before.position);
        let (applied, is_stopped) =
            execute(&opening, streams, self.began, self.stop, &mut |event| match event {
                StreamEvent::Started(at) => {
                    self.began = Some(at);
                    watch.started();
                }
                StreamEvent::Sent(query) => watch.query_sent(query),
                StreamEvent::Query(mut query, table) => {
                    if query.outcome == QueryOutcome::Answered {
                        query.answer = answers::judge(options, state.as_deref(), &query, table);
                    }
                    watch.query(&query);
                    facts.queries.push(query);
                }
                StreamEvent::Refresh(refresh) => {
                    watch.refresh(&refresh);
                    facts.refreshes.push(refresh);
                }
                StreamEvent::Note(text) => watch.note(&text),
                StreamEvent::Plan { .. } => {}
            })?;
        let streams = match options.test {
            TpchTest::Throughput { streams, .. } => Some((streams, elapsed_s(&facts))),
            _ => None,
        };
        if options.test.length() > 2 * u64::from(options.test.pairs()) {
            let TpchFacts { queries, refreshes, .. } = &facts;
            facts.metrics = metrics(options.scale, streams, queries, refreshes);
        }
        if options.plans != Plans::Off && !is_stopped && !facts.queries.is_empty() {
            let streams = vec![stream::explain_stream(options, dialect, before.position)];
            let ended = execute(&opening, streams, None, self.stop, &mut |event| {
                on_plan_event(event, &mut facts, rule, watch)
            });
            // What was measured is not lost with the plans.
            if let Err(error) = ended {
                watch.note(&format!("No plans could be taken: {}", error.message));
            }
        }
        set_degree(&mut facts, rule, &applied);
        Ok(facts)
    }
}

/// Facts known before a test begins.
struct Before {
    /// `None` of tables that another program has loaded.
    load: Option<TpchLoad>,
    rule: Option<DegreeRule>,
    position: RefreshPosition,
}

/// The database's facts about its data, which must be whole and of this scale factor; `None` for tables that another
/// program has loaded.
pub(crate) async fn data(
    session: &mut AdminSession<'_>,
    options: &RunOptions,
) -> Result<Option<TpchLoad>, LoadError> {
    let scale = options.scale;
    let tables = state::find(session).await?;
    let actual_scale = tables.scale(session).await?;
    if let TpchTables::Foreign { .. } = tables {
        return match actual_scale {
            _ if options.test.pairs() > 0 => Err(LoadError::data(
                "Another program has loaded these tables: it is not known which refresh functions were applied.",
                "leave the refresh functions out (--no-refresh), or load with dyno tpch load",
            )),
            Some(actual_scale)
                if !options.trusts_data
                    && row_count(SchemaTable::Supplier, actual_scale)
                        != row_count(SchemaTable::Supplier, scale) =>
            {
                Err(LoadError::data(
                    format!(
                        "By their suppliers the tables have scale factor {actual_scale}, but {scale} is required."
                    ),
                    format!(
                        "ask for --scale {actual_scale}; --trust-data measures what is there, and the report says so"
                    ),
                ))
            }
            _ => Ok(None),
        };
    }
    match tables.complete()? {
        Some(loaded) if loaded.scale == scale => Ok(Some(loaded.load)),
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

/// Looks at the data, and completes what an interrupted trial has left of a pair of refresh functions, so that each
/// test begins between two.
async fn prepare_test(
    session: &mut AdminSession<'_>,
    options: &RunOptions,
    watch: &dyn TrialWatch,
) -> Result<Before, LoadError> {
    let mut load = data(session, options).await?;
    let asking = "asking for the product";
    let rule = match &options.rule {
        Some(rule) => {
            if let Some(problem) = rule.objection(session).await.map_err(while_doing(asking))? {
                let hint = "leave degree_rule out: the product is then detected";
                return Err(LoadError::data(problem, hint));
            }
            Some(rule.clone())
        }
        None => degree::detect(session).await.map_err(while_doing(asking))?,
    };
    let mut position = match &load {
        Some(load) => refresh::position(session, load.refresh_pairs)
            .await
            .map_err(while_doing("asking for the refresh functions applied"))?,
        None => RefreshPosition::first_of_pair(1),
    };
    let pairs = options.test.pairs();
    if options.test.length() == 0 || options.test.streams() == 0 {
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
    if pairs > 0 {
        crate::generate::prepare();
    }
    if pairs > 0 && !position.is_whole() {
        let name = format!("Pair {} of the refresh functions", position.pair);
        watch.note(&format!("{name} was interrupted earlier: it is completed first, untimed."));
        while !position.is_whole() {
            let result = refresh::execute(session, options.scale, &mut position).await;
            result.map_err(while_doing(format!("completing pair {}", position.pair)))?;
        }
        if let Some(load) = &mut load {
            load.refresh_pairs = position.pair - 1;
        }
    }
    Ok(Before { load, rule, position })
}

/// A plan belongs to all executions of its query in the trial.
fn on_plan_event(
    event: StreamEvent,
    facts: &mut TpchFacts,
    rule: Option<&DegreeRule>,
    watch: &dyn TrialWatch,
) {
    match event {
        StreamEvent::Plan { query, text } => {
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
        StreamEvent::Note(text) => watch.note(&text),
        _ => {}
    }
}

/// Facts known before a trial begins, also for one that is killed.
pub(crate) fn known_facts(
    options: &RunOptions,
    dialect: Dialect,
    load: Option<TpchLoad>,
) -> TpchFacts {
    TpchFacts {
        scale: options.scale,
        test: options.test.name().to_owned(),
        parameters: options.parameters.message(),
        degree: DegreeFacts { asked: options.degree, ..DegreeFacts::default() },
        cache: options.cache.clone(),
        timeout_s: options.timeout_s,
        load,
        rewrites: rewrites(dialect, Q15::Cte).iter().map(Rewrite::message).collect(),
        ..TpchFacts::default()
    }
}

/// Names the data that the queries see: pairs of refresh functions applied, and whether the first function of the next
/// one is. `None` while they change, and if an interrupted trial has left a pair incomplete.
fn data_state(options: &RunOptions, at: RefreshPosition) -> Option<String> {
    let pairs = at.pair - 1;
    match options.test {
        TpchTest::Throughput { refresh: true, .. } | TpchTest::Refresh { .. } => None,
        // The queries come between the two functions of a pair.
        TpchTest::Power { refresh: true } => Some(format!("{pairs}.1")),
        _ => at.is_whole().then(|| pairs.to_string()),
    }
}

/// Points in which the trial departs from the specification.
fn deviations(options: &RunOptions, before: &Before) -> Vec<Message> {
    let (test, scale, cache) = (options.test, options.scale, &options.cache);
    let is_test = matches!(test, TpchTest::Power { .. } | TpchTest::Throughput { .. });
    let is_warm = cache.state == "warm" && cache.verdict != Some(CheckVerdict::Failed);
    let is_parallel = before.rule.as_ref().is_some_and(DegreeRule::is_parallel);
    let (pairs, is_whole) = (before.position.pair - 1, before.position.is_whole());
    let remarks = [
        (!SCALES.contains(&scale)).then(|| say!(scale_not_specified, scale = scale.to_string())),
        (before.load.is_none()).then(|| {
            if options.trusts_data { say!(data_trusted) } else { say!(data_of_another_program) }
        }),
        (test == TpchTest::Queries).then(|| say!(queries_in_one_session)),
        (test == TpchTest::Power { refresh: false }).then(|| say!(power_without_refresh)),
        matches!(test, TpchTest::Throughput { refresh: false, .. })
            .then(|| say!(throughput_without_refresh)),
        (is_test && options.parameters == ParameterChoice::Default)
            .then(|| say!(validation_parameters)),
        is_warm.then(|| say!(caches_warmed)),
        (options.degree > 0 && is_parallel).then(|| say!(degree_per_session)),
        (is_whole && pairs > 0).then(|| say!(refreshed, pairs)),
        (!is_whole).then(|| say!(refreshed_in_part, pairs)),
    ];
    remarks.into_iter().flatten().collect()
}

/// From the first submission to the last answer (5.3.7.2).
fn elapsed_s(facts: &TpchFacts) -> f64 {
    let queries = facts.queries.iter().map(|query| match query.outcome {
        QueryOutcome::TimedOut => (query.began_s, query.ended_s.max(query.began_s + query.seconds)),
        _ => (query.began_s, query.began_s + query.seconds),
    });
    let refreshes =
        facts.refreshes.iter().map(|refresh| (refresh.began_s, refresh.began_s + refresh.seconds));
    let (began, ended): (Vec<f64>, Vec<f64>) = queries.chain(refreshes).unzip();
    ended.into_iter().fold(0.0, f64::max) - began.into_iter().fold(f64::INFINITY, f64::min)
}

/// Sets the requested and the reached degree.
fn set_degree(facts: &mut TpchFacts, rule: Option<&DegreeRule>, applied: &Applied) {
    let workers = facts.queries.iter().filter_map(|query| query.plan.as_ref()?.workers);
    let max_workers = workers.max();
    let degree = &mut facts.degree;
    degree.got = max_workers;
    degree.rule =
        rule.filter(|rule| rule.is_parallel()).map(|rule| rule.name.clone()).unwrap_or_default();
    degree.statements = applied.statements.clone();
    let remark = degree_remark(degree.asked, max_workers, rule);
    let parts: Vec<Message> = remark.into_iter().chain(applied.remarks.iter().cloned()).collect();
    degree.remark = (!parts.is_empty()).then(|| Message::sentences(&parts));
}

fn degree_remark(asked: u32, got: Option<u32>, rule: Option<&DegreeRule>) -> Option<Message> {
    match (rule, got) {
        (None, _) if asked > 0 => Some(say!(no_degree_rule)),
        (Some(rule), _) if asked > 0 && !rule.is_parallel() => Some(rule.none.clone()),
        (_, Some(0)) if asked > 0 => Some(say!(degree_without_effect, asked)),
        (_, Some(got)) if asked > 0 && got < asked => {
            Some(say!(fewer_workers_than_asked, asked, got))
        }
        (rule, Some(got)) if asked == 0 && got > rule.map_or(0, DegreeRule::workers_when_off) => {
            Some(say!(parallel_although_off, got))
        }
        _ => None,
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
        let remark_text =
            |asked, got, rule| degree_remark(asked, got, rule).unwrap_or_default().to_string();
        assert_eq!(
            remark_text(16, Some(2), Some(&postgres)),
            "Parallel workers asked for: 16; got: at most 2."
        );
        assert!(remark_text(2, Some(0), Some(&postgres)).ends_with("no effect."));
        assert_eq!(remark_text(2, Some(2), Some(&postgres)), "");
        assert_eq!(remark_text(0, Some(0), Some(&postgres)), "");
        assert!(
            remark_text(0, Some(1), Some(&postgres))
                .starts_with("Parallel execution was to be off")
        );
        let tidb = named("tidb").unwrap();
        assert_eq!(remark_text(0, Some(1), Some(&tidb)), "", "1 is how it is switched off");
        assert!(
            remark_text(0, Some(2), Some(&tidb)).starts_with("Parallel execution was to be off")
        );
        assert_eq!(remark_text(16, None, Some(&mariadb)), mariadb.none.to_string());
        assert_eq!(remark_text(0, None, Some(&mariadb)), "");
        assert!(remark_text(4, None, None).starts_with("No rule"));
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
}
