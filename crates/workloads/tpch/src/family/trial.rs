//! One trial of TPC-H, stored query by query.

use crate::facts::{CacheFacts, QueryFacts, QueryOutcome, RefreshFacts, TpchFacts};
use crate::options::{Cache, TpchSettings};
use crate::paper::{AnswerCount, answers_words};
use crate::run::{Answerer, PlanFile, RunOptions, TpchTest, TrialWatch, data, known_facts, run};
use crate::warm::{as_found, emptied, warm};
use dyno_core::{AdminDriver, Driver};
use dyno_engine::Control;
use dyno_facts::{
    CheckVerdict, DataCheck, FamilyFacts, Message, TrialIdentity, TrialStart, TrialStatus,
    TrialSummary, say,
};
use dyno_load::settings::adopt;
use dyno_reactor::{block_on, unless};
use dyno_runner::databases::{Database, in_session};
use dyno_runner::failure::{Failure, sentence};
use dyno_runner::family::{
    After, Job, Pass, PassWatch, ShellCommand, TrialDone, ask, drive_pass, run_command,
};
use dyno_runner::watch::given_up;
use dyno_store::RunData;
use std::collections::BTreeMap;

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

/// The check of a trial's answers; `None` where it asked no queries.
pub(super) fn answers_check(summary: &TrialSummary) -> Option<DataCheck> {
    let facts = summary.own::<TpchFacts>()?;
    let queries = &facts.queries;
    if queries.is_empty() {
        return None;
    }
    let of = |verdict: CheckVerdict| {
        queries.iter().filter(move |query| verdict_of(query) == Some(verdict))
    };
    let (right, wrong) =
        (of(CheckVerdict::Passed).count(), of(CheckVerdict::Failed).collect::<Vec<_>>());
    let compared = right + wrong.len();
    let (verdict, evidence) = match wrong.as_slice() {
        [] if compared == 0 => (CheckVerdict::NotMade, unknown(facts, &summary.status)),
        [] => (CheckVerdict::Passed, share(right, compared, queries.len())),
        wrong => {
            let mut sentences = vec![share(right, compared, queries.len())];
            sentences.extend(wrong.iter().filter_map(|query| differences(query)));
            (CheckVerdict::Failed, Message::sentences(&sentences))
        }
    };
    Some(DataCheck { name: "answers".to_owned(), verdict, evidence })
}

/// Why nothing was compared.
fn unknown(facts: &TpchFacts, status: &TrialStatus) -> Message {
    if facts.queries.iter().all(|query| query.outcome != QueryOutcome::Answered) {
        return match status {
            TrialStatus::Interrupted => say!(answers_interrupted),
            _ => say!(answers_missing),
        };
    }
    let was_refreshed = facts.load.as_ref().is_some_and(|load| load.refresh_pairs > 0);
    if was_refreshed || !facts.refreshes.is_empty() {
        say!(answers_unknown_after_refresh)
    } else {
        say!(answers_unknown)
    }
}

fn verdict_of(query: &QueryFacts) -> Option<CheckVerdict> {
    query.answer.as_ref().map(|answer| answer.verdict)
}

/// How many are right of how many.
fn share(right: usize, compared: usize, executed: usize) -> Message {
    match executed - compared {
        0 => say!(answers_right, right = right, compared = compared),
        others => say!(answers_right_of_some, right = right, compared = compared, others = others),
    }
}

fn differences(query: &QueryFacts) -> Option<Message> {
    let answer = query.answer.as_ref()?;
    let (name, differences) =
        (format!("Q{}", query.query), Message::sentences(&answer.differences));
    Some(say!(answer_differs, query = name, against = &answer.against, differences = differences))
}

/// Experiment and target of trials that are looked at together.
type Group<'a> = (&'a str, &'a str);

/// The last line of a run, one for each experiment and target with queries, after the rows that
/// differ; empty where there are none.
pub(super) fn answers_lines(data: &RunData) -> String {
    // A step that was executed again counts as it ended last.
    let last: BTreeMap<&str, &TrialSummary> =
        data.trials.iter().map(|trial| (trial.summary.step.as_str(), &trial.summary)).collect();
    let mut groups: BTreeMap<Group<'_>, Vec<&TpchFacts>> = BTreeMap::new();
    for summary in last.into_values() {
        if let Some(facts) = summary.own::<TpchFacts>().filter(|facts| !facts.queries.is_empty()) {
            let group = (summary.experiment.as_str(), summary.target.as_str());
            groups.entry(group).or_default().push(facts);
        }
    }
    let is_alone = groups.len() == 1;
    let lines = groups.iter().map(|((experiment, target), trials)| {
        let whose = if is_alone { String::new() } else { format!(" of {experiment} on {target}") };
        let mut text = String::new();
        for facts in trials {
            facts.queries.iter().for_each(|query| push_differences(&mut text, facts, query));
        }
        let count = AnswerCount::of(trials.iter().copied());
        text + &format!("answers{whose}: {}\n", answers_words(&count))
    });
    lines.collect()
}

fn push_differences(text: &mut String, facts: &TpchFacts, query: &QueryFacts) {
    let Some(answer) = &query.answer else { return };
    if answer.verdict != CheckVerdict::Failed {
        return;
    }
    let (number, degree) = (query.query, facts.degree.asked);
    text.push_str(&format!("Q{number} at degree {degree} differs from {}:\n", answer.against));
    answer.differences.iter().for_each(|difference| text.push_str(&format!("  {difference}\n")));
}

/// Brings the caches into the state that is asked for; `None` when the user has stopped it.
fn bring(
    driver: &AdminDriver<'_>,
    target: &str,
    cache: &Cache,
    control: &Control,
) -> Result<Option<CacheFacts>, Failure> {
    let brought = block_on(async {
        match cache {
            Cache::AsFound => Ok(Some(as_found())),
            Cache::Warm => match unless(
                || control.is_stopped(),
                in_session(driver, async |session| {
                    adopt(session).await?;
                    warm(session).await
                }),
            )
            .await
            {
                Some(warmed) => warmed.map(Some).map_err(|error| Failure::from(&error)),
                None => Ok(None),
            },
            Cache::Cold(command) => cooled(driver, target, command, control).await,
        }
    });
    brought.map_err(|error| Failure::new(format!("No event loop: {error}.")))?
}

async fn cooled(
    driver: &AdminDriver<'_>,
    target: &str,
    text: &str,
    control: &Control,
) -> Result<Option<CacheFacts>, Failure> {
    let (told, does, key) = (&[], "empties the caches".into(), "cold_command");
    let command = ShellCommand { target, told, text, does, key, limit: None };
    let took = run_command(driver, &command, control).await?;
    Ok(took.map(|took| emptied(text, took.ended_s, took.back_s)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::{AnswerFacts, DegreeFacts};

    fn query(number: u8, verdict: Option<CheckVerdict>) -> QueryFacts {
        let differences = match verdict {
            Some(CheckVerdict::Failed) => vec!["Row 1: 2 instead of 1.".into()],
            _ => Vec::new(),
        };
        let against = "the reference at scale factor 1".into();
        let answer = verdict.map(|verdict| AnswerFacts { verdict, against, differences });
        QueryFacts { query: number, answer, ..QueryFacts::default() }
    }

    fn pass(degree: u32, verdict_of: impl Fn(u8) -> Option<CheckVerdict>) -> TpchFacts {
        let queries = (1..=22).map(|number| query(number, verdict_of(number))).collect();
        let degree = DegreeFacts { asked: degree, ..DegreeFacts::default() };
        TpchFacts { queries, degree, ..TpchFacts::default() }
    }

    fn line(trials: &[&TpchFacts]) -> String {
        answers_words(&AnswerCount::of(trials.iter().copied())).to_string()
    }

    #[test]
    fn a_query_is_correct_when_no_execution_of_it_was_wrong() {
        let right = pass(0, |_| Some(CheckVerdict::Passed));
        assert_eq!(line(&[&right]), "22 of 22 correct");
        let wrong = pass(2, |number| {
            Some(if number == 6 { CheckVerdict::Failed } else { CheckVerdict::Passed })
        });
        assert_eq!(line(&[&right, &wrong]), "21 of 22 correct; wrong: Q6");
        let mut text = String::new();
        wrong.queries.iter().for_each(|query| push_differences(&mut text, &wrong, query));
        let expected = "Q6 at degree 2 differs from the reference at scale factor 1:\n  Row 1: 2 \
                        instead of 1.\n";
        assert_eq!(text, expected);
    }

    #[test]
    fn a_trial_without_an_answer_is_not_said_to_lack_a_reference() {
        let mut facts = pass(0, |_| None);
        let unknown = |facts: &TpchFacts, status: TrialStatus| unknown(facts, &status).to_string();
        let no_reference = "There are no reference answers to compare with.";
        assert_eq!(unknown(&facts, TrialStatus::Interrupted), no_reference);
        facts.queries.truncate(1);
        facts.queries[0].outcome = QueryOutcome::Interrupted;
        let interrupted = "The trial was interrupted before a query was answered.";
        assert_eq!(unknown(&facts, TrialStatus::Interrupted), interrupted);
        facts.queries[0].outcome = QueryOutcome::TimedOut;
        assert_eq!(unknown(&facts, TrialStatus::Complete), "No query was answered.");
    }
}
