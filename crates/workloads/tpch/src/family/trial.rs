//! One trial of TPC-H, stored query by query.

use super::answers::answers_check;
use super::cache::bring;
use crate::facts::{DegreeFacts, QueryFacts, QueryOutcome, RefreshFacts, TpchFacts};
use crate::load::LoadError;
use crate::options::TpchSettings;
use crate::run::{Answerer, PlanFile, RunOptions, TpchTest, TrialWatch, run};
use crate::state::{TpchDatabase, loaded};
use dyno_core::AdminDriver;
use dyno_engine::Control;
use dyno_facts::{FamilyFacts, TrialIdentity, TrialStart, TrialStatus, TrialSummary, say};
use dyno_runner::databases::Database;
use dyno_runner::failure::{Failure, sentence};
use dyno_runner::family::{After, Job, Pass, PassWatch, TrialDone, ask, drive_pass};
use dyno_runner::watch::given_up;

pub(super) fn trial(
    options: &TpchSettings,
    database: &Database,
    job: Job<'_>,
) -> Result<TrialDone, Failure> {
    let (planned, target, control) = (job.planned, &job.step.target, job.control);
    let degree = planned.degree.unwrap_or(0);
    let loaded = job.asks(|| look(&database.primary_admin(), options.scale))?;
    let cache = job.asks(|| bring(&database.admin(), target, &options.cache, control))?;
    let Some(cache) = cache else { return Ok(TrialDone::INTERRUPTED) };
    if control.is_stopped() {
        return Ok(TrialDone::INTERRUPTED);
    }
    let asked = RunOptions {
        scale: options.scale,
        test: options.test,
        degree,
        rule: options.rule.clone(),
        parameters: options.parameters(planned.seed),
        timeout_s: options.timeout_s,
        plans: options.plans,
        answers: Some(job.run.path().join("answers")),
        who: Answerer { target: target.clone(), degree },
        cache,
    };
    let test = asked.test;
    let pass = Pass {
        identity: TrialIdentity {
            test: test.name().to_owned(),
            workers: streams(test),
            own: Some(FamilyFacts::new(&known(&asked, loaded))),
            ..TrialIdentity::default()
        },
        loops: sessions(test),
        title: &format!("{} at degree {degree}", test.name()),
        length: length(test),
    };
    drive_pass(database, job, pass, |watch| {
        let facts = run(&database.admin(), &asked, &Storing(watch), &|| {
            control.is_stopped() || given_up().is_some()
        })?;
        Ok(move |start: TrialStart| {
            let mut measured = start.summary(status(&facts, test, control));
            facts.set_totals(&mut measured);
            let checks = answers_check(&measured).into_iter().collect();
            let headline = Some(headline(&measured));
            (measured, After { checks, headline, ..After::default() })
        })
    })
}

fn look(driver: &AdminDriver<'_>, scale: f64) -> Result<TpchDatabase, Failure> {
    let found = ask(driver, async |session| {
        loaded(session).await.map_err(|error| match &error {
            LoadError::Data { .. } => Failure::from(&error).with_hint(unprepared(scale)),
            _ => Failure::from(&error),
        })
    })?;
    match found {
        Some(loaded) if loaded.scale == scale => Ok(loaded),
        Some(loaded) => Err(Failure::new(say!(
            tables_of_other_scale,
            found = loaded.scale.to_string(),
            wanted = scale.to_string()
        ))
        .with_hint(format!("Ask for scale {}, or load other tables.", loaded.scale))),
        None => Err(Failure::new(say!(tables_missing)).with_hint(unprepared(scale))),
    }
}

/// The remedy for tables that are missing or not complete.
fn unprepared(scale: f64) -> String {
    format!(
        "Load them with `dyno tpch load --scale {scale}`; a suite does it itself where \
         `prepare = false` is left out."
    )
}

fn streams(test: TpchTest) -> u32 {
    match test {
        TpchTest::Throughput { streams, .. } | TpchTest::Performance { streams, .. } => streams,
        TpchTest::Queries | TpchTest::Power { .. } | TpchTest::Refresh { .. } => 1,
    }
}

/// Sessions at once, each with a thread: the streams, and the one that refreshes.
fn sessions(test: TpchTest) -> u32 {
    match test {
        TpchTest::Throughput { streams, refresh } => streams + u32::from(refresh),
        TpchTest::Performance { streams, .. } => streams + 1,
        TpchTest::Queries | TpchTest::Power { .. } | TpchTest::Refresh { .. } => 1,
    }
}

/// Queries and refresh functions of a test.
fn length(test: TpchTest) -> u64 {
    match test {
        TpchTest::Queries => 22,
        TpchTest::Power { refresh } => 22 + 2 * u64::from(refresh),
        TpchTest::Throughput { streams, refresh } => {
            u64::from(streams) * (22 + 2 * u64::from(refresh))
        }
        TpchTest::Refresh { pairs } => 2 * u64::from(pairs),
        TpchTest::Performance { streams, runs } => 24 * u64::from(runs) * (1 + u64::from(streams)),
    }
}

/// What is known before the trial begins: for a trial that is killed.
fn known(asked: &RunOptions, found: TpchDatabase) -> TpchFacts {
    TpchFacts {
        scale: asked.scale,
        test: asked.test.name().to_owned(),
        parameters: asked.parameters.message(),
        degree: DegreeFacts { asked: asked.degree, ..DegreeFacts::default() },
        cache: asked.cache.clone(),
        timeout_s: asked.timeout_s,
        load: Some(found.load),
        ..TpchFacts::default()
    }
}

fn status(facts: &TpchFacts, test: TpchTest, control: &Control) -> TrialStatus {
    let outcomes: Vec<&QueryOutcome> = facts
        .queries
        .iter()
        .map(|query| &query.outcome)
        .chain(facts.refreshes.iter().map(|refresh| &refresh.outcome))
        .collect();
    let is_whole = outcomes.len() as u64 >= length(test);
    if outcomes.contains(&&QueryOutcome::Interrupted) || (control.is_stopped() && !is_whole) {
        return TrialStatus::Interrupted;
    }
    let queries = facts.queries.iter().map(|query| (format!("Q{}", query.query), &query.outcome));
    let refreshes =
        facts.refreshes.iter().map(|refresh| (format!("RF{}", refresh.function), &refresh.outcome));
    let failed: Vec<(String, String)> = queries
        .chain(refreshes)
        .filter_map(|(name, outcome)| match outcome {
            QueryOutcome::Failed(why) => Some((name, sentence(why))),
            _ => None,
        })
        .collect();
    match failed.as_slice() {
        [] if is_whole => TrialStatus::Complete,
        [] => TrialStatus::Failed(say!(queries_missing)),
        [(query, why)] => TrialStatus::Failed(say!(query_failed, query = query, why = why)),
        [(query, why), more @ ..] => {
            let n = more.len();
            TrialStatus::Failed(say!(queries_failed, query = query, why = why, n = n))
        }
    }
}

fn headline(summary: &TrialSummary) -> String {
    let Some(facts) = summary.own::<TpchFacts>() else { return String::new() };
    let answered = summary.counts.committed;
    let mut text = match &facts.metrics {
        Some(metrics) => format!(
            "{answered} executed, {:.2} s in all, geometric mean {:.3} s",
            metrics.total_s, metrics.geometric_mean_s
        ),
        None => format!("{answered} executed in {:.2} s", summary.window_s),
    };
    if let Some(remark) = &facts.degree.remark {
        text.push_str(&format!("; {}", remark.to_string().trim_end_matches('.')));
    }
    text
}

/// Tells what has ended.
struct Storing<'a, 'w, 'run>(&'a PassWatch<'w, 'run>);

impl TrialWatch for Storing<'_, '_, '_> {
    fn started(&self) {
        self.0.started();
    }

    fn query(&self, facts: &QueryFacts) {
        let what = format!("Q{} took {:.2} s", facts.query, facts.seconds);
        self.0.ended("queries", facts, &what);
    }

    fn refresh(&self, facts: &RefreshFacts) {
        let what = format!("RF{} took {:.2} s", facts.function, facts.seconds);
        self.0.ended("refreshes", facts, &what);
    }

    fn plan(&self, plan: PlanFile<'_>) -> String {
        // Plans are taken when all that is timed has ended.
        self.0.over();
        let name = format!("q{:02}.{}", plan.query, plan.extension);
        self.0.plan(&name, plan.text, &format!("plan of Q{}", plan.query))
    }

    fn note(&self, text: &str) {
        self.0.note(text);
    }
}
