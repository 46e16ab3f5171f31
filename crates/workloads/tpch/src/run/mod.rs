//! Executes the tests: the queries in order, power, throughput, refresh functions.
//!
//! A trial is a few streams, each a thread with an event loop and a session of its own, and the
//! calling thread, which watches over them: it stops what passes its bound, compares answers and
//! tells the caller. Nothing of that happens between two timed queries of a stream.

mod answers;
mod facts;
mod link;
mod options;
mod performance;
mod plan;
mod qphh;
mod slot;
mod stream;
mod watch;

pub use options::{PlanFile, Plans, RunOptions, TpchTest, TrialWatch, Unwatched};

use crate::degree::{self, DegreeRule};
use crate::facts::{PlanFacts, QueryOutcome, TpchFacts};
use crate::plans;
use crate::refresh::{self, RefreshPosition, SET_MAX};
use crate::state::{TpchDatabase, loaded};
pub use answers::Answerer;
use answers::Answers;
use dyno_core::{AdminDriver, AdminSession, Driver, Session};
use dyno_load::settings::adopt;
use dyno_load::{LoadError, while_doing};
use dyno_reactor::block_on;
use dyno_runner::signals::unless_stopped;
use dyno_runner::watch::noted;
pub(crate) use facts::known_facts;
use link::Opening;
use qphh::LastPower;
use stream::News;

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
    if let TpchTest::Performance { streams, runs } = options.test {
        return performance::run(driver, options, [streams, runs], watch, stop);
    }
    let mut before = look(driver, options)?;
    let rule = before.rule.clone();
    let rule = rule.as_ref();
    let opening = Opening { driver: *driver, rule, degree: options.degree };
    if options.test.refreshes() {
        crate::generate::prepare();
        complete_pair(&opening, options, &mut before, watch, stop)?;
    }
    let before = before;
    let mut facts = known_facts(options, driver.dialect(), before.loaded.load.clone());
    facts.deviations = facts::deviations(options, &before);
    let answers = Answers {
        scale: options.scale,
        state: facts::data_state(options, &before),
        is_default: options.parameters == crate::parameters::ParameterChoice::Default,
        folder: options.answers.as_deref(),
        who: &options.who,
    };
    let mut started = false;
    let (applied, is_stopped) = watch::execute(
        &opening,
        plan::streams(options, driver.dialect(), &before),
        stop,
        &mut |news| {
            if !std::mem::replace(&mut started, true) {
                watch.started();
            }
            hear(news, &mut facts, &answers, watch);
        },
    )?;
    facts::end(&mut facts, options);
    qphh::add(&mut facts, options, before.last_power, before.position);
    if matches!(options.test, TpchTest::Power { refresh: true })
        && let Ok(Some(Err(error))) = block_on(unless_stopped(qphh::remember(driver, &facts)))
    {
        watch.note(&format!("The database could not be told of its power test: {error}"));
    }
    if options.plans != Plans::Off && !is_stopped && !facts.queries.is_empty() {
        let streams = vec![plan::plans(options, driver.dialect(), &before)];
        let mut hear = |news| hear_plan(news, &mut facts, rule, watch);
        // What was measured is not lost with the plans.
        if let Err(error) = watch::execute(&opening, streams, stop, &mut hear) {
            watch.note(&format!("No plans could be taken: {error}"));
        }
    }
    facts::degree(&mut facts, rule, &applied);
    Ok(facts)
}

/// Executes what an interrupted trial has left of a pair, so that each test begins between two.
fn complete_pair(
    opening: &Opening<'_>,
    options: &RunOptions,
    before: &mut Before,
    watch: &dyn TrialWatch,
    stop: &(dyn Fn() -> bool + Sync),
) -> Result<(), LoadError> {
    let (pair, function) = (before.position.pair, before.position.function);
    if before.position.is_whole() {
        return Ok(());
    }
    watch.note(&format!(
        "Pair {pair} of the refresh functions was interrupted earlier: it is completed first, \
         untimed."
    ));
    let rest = plan::rest_of_pair(options, before);
    let mut problem = None;
    watch::execute(opening, vec![rest], stop, &mut |news| match news {
        News::Refresh(done) if done.outcome != QueryOutcome::Answered => {
            problem = Some(match done.outcome {
                QueryOutcome::Failed(error) => error,
                _ => "it was interrupted again.".to_owned(),
            });
        }
        News::Note(text) => watch.note(&text),
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

/// What is known before a trial begins.
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
    let last_power = qphh::last_power(session).await;
    let last_power = last_power.map_err(while_doing("asking for the last power test"))?;
    Ok(Before { loaded, rule, position, last_power })
}

fn hear(news: News, facts: &mut TpchFacts, answers: &Answers<'_>, watch: &dyn TrialWatch) {
    match news {
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
    }
}

/// A plan belongs to all executions of its query in the trial.
fn hear_plan(news: News, facts: &mut TpchFacts, rule: Option<&DegreeRule>, watch: &dyn TrialWatch) {
    match news {
        News::Plan { query, text } => {
            let extension = plans::extension(&text);
            let plan = PlanFacts {
                file: watch.plan(PlanFile { query, extension, text: &text }),
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
