//! One trial of TPC-H, stored query by query.

use super::answers::answers_check;
use super::cache::bring;
use crate::facts::{QueryFacts, QueryOutcome, RefreshFacts, TpchFacts};
use crate::options::TpchSettings;
use crate::run::{Answerer, PlanFile, RunOptions, TpchTest, TrialWatch, data, known_facts, run};
use dyno_core::Driver;
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
    let driver = database.primary_admin();
    let loaded = job.asks(|| {
        ask(&driver, async |session| {
            data(session, options.scale).await.map_err(|error| Failure::from(&error))
        })
    })?;
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
            own: Some(FamilyFacts::new(&known_facts(&asked, driver.dialect(), loaded.load))),
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
    let passes = match test {
        TpchTest::Queries | TpchTest::Power { .. } => 1,
        TpchTest::Throughput { streams, .. } => streams,
        TpchTest::Refresh { .. } => 0,
        TpchTest::Performance { streams, runs } => runs * (1 + streams),
    };
    22 * u64::from(passes) + 2 * u64::from(test.pairs())
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
