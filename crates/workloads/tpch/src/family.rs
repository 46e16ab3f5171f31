//! TPC-H in suites.
//!
//! A trial isn't work of the engine, but one pass over the queries at one parallel degree. Every query that
//! ends is a line of `trials/<n>.executed.jsonl`, from which a trial that was killed is summarized. `dyno
//! tpch run`, `power`, `throughput` and `refresh` write a suite in memory and go the same way, so they can
//! be resumed and have papers.

use crate::degree::{DegreeRule, detect};
use crate::facts::{
    AnswerFacts, CacheFacts, LoadStep, QueryFacts, QueryOutcome, RefreshFacts, TpchFacts,
};
use crate::generate::row_count;
use crate::load::{TpchLoadReport, destroy_tables, load, needs};
use crate::options::{Cache, OFFER, TpchSettings};
use crate::paper::{ANSWERS, ROWS, answers_words};
use crate::run::{RunOptions, TpchTest, TrialWatch, data, known_facts, run};
use crate::schema::SchemaTable;
use crate::state;
use crate::warm::{as_found, emptied, warm};
use dyno_core::{AdminDriver, DbError};
use dyno_engine::Control;
use dyno_facts::{
    CheckVerdict, DataCheck, ExperimentFacts, FamilyFacts, Message, TrialIdentity, TrialStart,
    TrialStatus, TrialSummary, say,
};
use dyno_load::query;
use dyno_load::settings::{ServerNeed, adopt};
use dyno_reactor::{block_on, unless};
use dyno_runner::databases::{Database, in_session};
use dyno_runner::failure::{Failure, sentence};
use dyno_runner::family::{
    After, Family, FamilyEntry, Job, LoadOrder, Pass, PassWatch, ShellCommand, TrialDone, Trials,
    all_or_none, ask, drive_pass, drop_failure, given, load_failure, refused, run_command,
};
use dyno_runner::progress::LoadProgress;
use dyno_runner::watch::given_up;
use dyno_store::RunData;
use dyno_suite::Plan;
use std::collections::{BTreeMap, BTreeSet};

/// TPC-H, for the registry.
pub static FAMILY: FamilyEntry = FamilyEntry {
    last_words: answers_lines,
    ..FamilyEntry::new(OFFER, crate::CATALOG, |plan, planned| {
        Ok(Box::new(TpchFamily::new(plan, planned)?))
    })
};

/// The loader's own remedies speak of another command line.
const LOAD_REMEDY: &str = "Use another database, write the scale factor that is there into the suite, or remove the \
                           tables: `dyno tpch drop` removes those that dyno has loaded.";

/// An experiment with TPC-H.
struct TpchFamily {
    options: Box<TpchSettings>,
    degrees: Vec<u32>,
}

impl TpchFamily {
    fn new(plan: &Plan, experiment: &ExperimentFacts) -> Result<Self, Failure> {
        let options = TpchSettings::read(&experiment.test, given(experiment))
            .map_err(|error| refused(plan, experiment, error))?;
        Ok(TpchFamily { options: Box::new(options), degrees: experiment.degrees.clone() })
    }
}

impl Family for TpchFamily {
    fn writes(&self) -> bool {
        self.options.run.test != TpchTest::Queries
    }

    fn commands(&self) -> Vec<String> {
        match &self.options.cache {
            Cache::Cold(command) => vec![command.clone()],
            Cache::AsFound | Cache::Warm => Vec::new(),
        }
    }

    fn needs(&self) -> Vec<ServerNeed> {
        [&[ServerNeed::WHOLE_ANSWERS], &needs(self.options.load.scale)[1..]].concat()
    }

    fn fits(&self, database: &Database) -> Result<(), Failure> {
        let Some(degree) = self.degrees.iter().find(|degree| **degree > 0) else { return Ok(()) };
        let driver = &database.primary_admin();
        let (problem, hint) = match &self.options.run.rule {
            Some(rule) => (
                ask(driver, async |session| rule.objection(session).await)?,
                "Leave `degree_rule` out, and what fits the product is found.",
            ),
            None => (
                self.rule(driver)?.is_none().then(|| {
                    format!(
                        "It is not known how this product is asked for a parallel degree of \
                         {degree}."
                    )
                }),
                "Say it in the options: `degree_set = [\"SET name = {degree}\"]`; or ask for \
                 degree 0 only.",
            ),
        };
        problem.map_or(Ok(()), |problem| Err(Failure::new(problem).with_hint(hint)))
    }

    fn load(&self, database: &Database, order: &LoadOrder<'_>) -> Result<Message, Failure> {
        let driver = &database.primary_admin();
        load(driver, &self.options.load, order.observer)
            .map(|report| self.load_sentence(&report))
            .map_err(|error| load_failure(&error, LOAD_REMEDY))
    }

    fn tables(&self) -> Vec<String> {
        state::all_tables()
    }

    fn idle_tables(&self) -> Vec<&'static str> {
        state::OWN_TABLES.to_vec()
    }

    fn existing(&self, database: &Database) -> Result<BTreeSet<String>, Failure> {
        let driver = &database.primary_admin();
        let existing = ask(driver, async |session| state::tables(session).await)?;
        let tables = self.tables();
        let has_tables = tables.iter().any(|table| existing.contains(table));
        Ok(all_or_none(has_tables, tables))
    }

    fn remove(
        &self,
        database: &Database,
        tables: &[String],
        observer: &LoadProgress,
    ) -> Result<(), Failure> {
        let driver = &database.primary_admin();
        destroy_tables(driver, tables, false, observer).map(|_| ()).map_err(drop_failure)
    }
}

impl Trials for TpchFamily {
    fn trial(&self, database: &Database, job: Job<'_>) -> Result<TrialDone, Failure> {
        let degree = job.planned.degree.unwrap_or(0);
        if degree > 0
            && let Some(rule) = self.rule(&database.primary_admin())?
            && !rule.is_parallel()
        {
            return Ok(TrialDone::Skipped(rule.none.clone()));
        }
        run_trial(&self.options, database, job)
    }
}

impl TpchFamily {
    /// Rule for the degree of this database; `None` if no one knows one.
    fn rule(&self, driver: &AdminDriver<'_>) -> Result<Option<DegreeRule>, Failure> {
        if let Some(rule) = &self.options.run.rule {
            return Ok(Some(rule.clone()));
        }
        ask(driver, async |session| detect(session).await)
    }

    fn load_sentence(&self, report: &TpchLoadReport) -> Message {
        if report.rows.was_complete {
            return say!(tables_complete, scale = self.options.load.scale.to_string());
        }
        let seconds = report.load.seconds.map(|seconds| format!("{seconds:.1}"));
        let duration = seconds.map(|seconds| say!(all_steps_took, seconds));
        let parts: Vec<Message> = [report.rows.sentence()].into_iter().chain(duration).collect();
        Message::joined(&parts, ", ", "，")
    }
}

fn run_trial(
    options: &TpchSettings,
    database: &Database,
    job: Job<'_>,
) -> Result<TrialDone, Failure> {
    let (planned, target, control) = (job.planned, &job.step.target, job.control);
    let degree = planned.degree.unwrap_or(0);
    let driver = database.primary_admin();
    let loaded = job.asks(|| {
        ask(&driver, async |session| data(session, &options.run).await.map_err(Failure::from))
    })?;
    let cache = job.asks(|| prepare_cache(&database.admin(), target, &options.cache, control))?;
    let Some(cache) = cache else { return Ok(TrialDone::INTERRUPTED) };
    if control.is_stopped() {
        return Ok(TrialDone::INTERRUPTED);
    }
    let run_options = RunOptions {
        degree,
        parameters: options.parameters(planned.seed),
        answers: Some(job.folder("answers")),
        target: target.clone(),
        cache,
        ..options.run.clone()
    };
    let test = run_options.test;
    let pass = Pass {
        identity: TrialIdentity {
            test: test.name().to_owned(),
            workers: test.streams(),
            own: Some(FamilyFacts::new(&known_facts(&run_options, driver.dialect(), loaded))),
            ..TrialIdentity::default()
        },
        loops: test.sessions(),
        title: &format!("{} at degree {degree}", test.name()),
        length: test.length(),
    };
    drive_pass(database, job, pass, |watch| {
        let facts = run(&database.admin(), &run_options, watch, &|| {
            control.is_stopped() || given_up().is_some()
        })?;
        // Counting rows is not part of what the trial cost the server.
        watch.over();
        let rows = if control.is_stopped() {
            None
        } else {
            rows_check(&driver, &facts, options.run.trusts_data)?
        };
        Ok(move |start: TrialStart| {
            let mut measured = start.summary(trial_status(&facts, test, control));
            facts.set_totals(&mut measured);
            let checks = answers_check(&measured).into_iter().chain(rows).collect();
            let headline = Some(trial_headline(&measured));
            (measured, After { checks, headline, ..After::default() })
        })
    })
}

fn trial_status(facts: &TpchFacts, test: TpchTest, control: &Control) -> TrialStatus {
    let queries = facts.queries.iter().map(|query| (format!("Q{}", query.query), &query.outcome));
    let refreshes =
        facts.refreshes.iter().map(|refresh| (format!("RF{}", refresh.function), &refresh.outcome));
    let outcomes: Vec<(String, &QueryOutcome)> = queries.chain(refreshes).collect();
    let is_whole = outcomes.len() as u64 >= test.length();
    let is_interrupted = outcomes.iter().any(|(_, ended)| **ended == QueryOutcome::Interrupted);
    if is_interrupted || (control.is_stopped() && !is_whole) {
        return TrialStatus::Interrupted;
    }
    let mut failed = outcomes.into_iter().filter_map(|(name, outcome)| match outcome {
        QueryOutcome::Failed(why) => Some((name, sentence(why))),
        _ => None,
    });
    match (failed.next(), failed.count()) {
        (None, _) if is_whole => TrialStatus::Complete,
        (None, _) => TrialStatus::Failed(say!(queries_missing)),
        (Some((query, why)), 0) => TrialStatus::Failed(say!(query_failed, query, why)),
        (Some((query, why)), n) => TrialStatus::Failed(say!(queries_failed, query, why, n)),
    }
}

fn trial_headline(summary: &TrialSummary) -> String {
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
impl TrialWatch for PassWatch<'_> {
    fn started(&self) {
        PassWatch::started(self);
    }

    fn query(&self, facts: &QueryFacts) {
        self.ended("queries", facts, &format!("Q{} took {:.2} s", facts.query, facts.seconds));
    }

    fn refresh(&self, facts: &RefreshFacts) {
        self.ended(
            "refreshes",
            facts,
            &format!("RF{} took {:.2} s", facts.function, facts.seconds),
        );
    }

    fn plan(&self, query: u8, extension: &str, text: &str) -> String {
        // Plans are taken when all that is timed has ended.
        self.over();
        PassWatch::plan(
            self,
            &format!("q{query:02}.{extension}"),
            text,
            &format!("plan of Q{query}"),
        )
    }

    fn note(&self, text: &str) {
        PassWatch::note(self, text);
    }
}

/// The check that the tables still hold the rows that were loaded, or that tables of another program hold those of the
/// scale factor; `None` if that is not known or was changed by
/// refresh functions, and where a query was not answered: a table may not be readable. Made when all that is timed has
/// ended.
fn rows_check(
    driver: &AdminDriver<'_>,
    facts: &TpchFacts,
    trusts_data: bool,
) -> Result<Option<DataCheck>, Failure> {
    let is_known = facts.refreshes.is_empty()
        && facts.queries.iter().all(|query| query.outcome == QueryOutcome::Answered);
    let rows_of_step =
        |step: &'_ LoadStep| Some((step.name.strip_prefix("load/")?.to_owned(), step.rows));
    let loaded: Vec<(String, u64)> = match &facts.load {
        _ if !is_known => Vec::new(),
        Some(load) if load.refresh_pairs > 0 => Vec::new(),
        Some(load) => load.steps.iter().filter_map(rows_of_step).collect(),
        None if trusts_data => Vec::new(),
        None => SchemaTable::ALL
            .map(|table| (table.name().to_owned(), row_count(table, facts.scale)))
            .to_vec(),
    };
    if loaded.is_empty() {
        return Ok(None);
    }
    let mut differences = Vec::new();
    ask(driver, async |session| {
        for (table, rows) in &loaded {
            let sql = format!("SELECT COUNT(*) FROM {table}");
            let count: u64 = query::number(session, &sql).await?.unwrap_or(0);
            if count != *rows {
                differences.push(say!(
                    rows_differ,
                    table = table.as_str(),
                    found = count,
                    loaded = *rows
                ));
            }
        }
        Ok::<_, DbError>(())
    })?;
    let (verdict, evidence) = if differences.is_empty() {
        (CheckVerdict::Passed, say!(rows_as_loaded))
    } else {
        (CheckVerdict::Failed, Message::sentences(&differences))
    };
    Ok(Some(DataCheck { name: ROWS.to_owned(), verdict, evidence }))
}

/// The check of a trial's answers; `None` if it asked no queries.
fn answers_check(summary: &TrialSummary) -> Option<DataCheck> {
    let facts = summary.own::<TpchFacts>()?;
    let answers =
        facts.queries.iter().filter_map(|query| Some((query.query, query.answer.as_ref()?)));
    let passed = answers.clone().filter(|(_, answer)| answer.verdict == CheckVerdict::Passed);
    let failed = answers.filter(|(_, answer)| answer.verdict == CheckVerdict::Failed);
    let right = passed.count();
    let wrong = failed.map(|(query, answer): (u8, &AnswerFacts)| {
        let (query, differences) = (format!("Q{query}"), Message::sentences(&answer.differences));
        say!(answer_differs, query, against = &answer.against, differences)
    });
    let wrong: Vec<Message> = wrong.collect();
    let (executed, compared) = (facts.queries.len(), right + wrong.len());
    let share = match executed - compared {
        0 => say!(answers_right, right, compared),
        others => say!(answers_right_of_some, right, compared, others),
    };
    let (verdict, evidence) = match (compared, wrong.is_empty()) {
        (0, _) => (CheckVerdict::NotMade, not_compared_reason(facts, &summary.status)),
        (_, true) => (CheckVerdict::Passed, share),
        (_, false) => {
            let sentences: Vec<Message> = [share].into_iter().chain(wrong).collect();
            (CheckVerdict::Failed, Message::sentences(&sentences))
        }
    };
    (executed > 0).then(|| DataCheck { name: ANSWERS.to_owned(), verdict, evidence })
}

/// Reason why nothing was compared.
fn not_compared_reason(facts: &TpchFacts, status: &TrialStatus) -> Message {
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

/// The last line of a run, one for each experiment and target with queries, after the rows that
/// differ; empty if there are none.
fn answers_lines(data: &RunData) -> String {
    // A step that was executed again counts as it ended last.
    let last: BTreeMap<&str, &TrialSummary> =
        data.trials.iter().map(|trial| (trial.summary.step.as_str(), &trial.summary)).collect();
    let mut groups: BTreeMap<(&str, &str), Vec<&TpchFacts>> = BTreeMap::new();
    for summary in last.into_values() {
        if let Some(facts) = summary.own::<TpchFacts>().filter(|facts| !facts.queries.is_empty()) {
            let group = (summary.experiment.as_str(), summary.target.as_str());
            groups.entry(group).or_default().push(facts);
        }
    }
    let is_single_group = groups.len() == 1;
    let lines = groups.iter().map(|((experiment, target), trials)| {
        let scope =
            if is_single_group { String::new() } else { format!(" of {experiment} on {target}") };
        let text: String = trials.iter().map(|facts| differences(facts)).collect();
        text + &format!("answers{scope}: {}\n", answers_words(trials.iter().copied()))
    });
    lines.collect()
}

/// The rows that differ in the answers of a trial, in lines.
fn differences(facts: &TpchFacts) -> String {
    let mut text = String::new();
    for query in &facts.queries {
        if let Some(answer) = &query.answer
            && answer.verdict == CheckVerdict::Failed
        {
            let (number, degree) = (query.query, facts.degree.asked);
            text += &format!("Q{number} at degree {degree} differs from {}:\n", answer.against);
            answer.differences.iter().for_each(|line| text += &format!("  {line}\n"));
        }
    }
    text
}

/// Brings the caches into the state that is requested; `None` when the user has stopped it.
fn prepare_cache(
    driver: &AdminDriver<'_>,
    target: &str,
    cache: &Cache,
    control: &Control,
) -> Result<Option<CacheFacts>, Failure> {
    let outcome = block_on(async {
        match cache {
            Cache::AsFound => Ok(Some(as_found())),
            Cache::Warm => {
                let warmed = in_session(driver, async |session| {
                    adopt(session).await?;
                    warm(session).await
                });
                let warmed = unless(|| control.is_stopped(), warmed).await;
                warmed.transpose().map_err(Failure::from)
            }
            Cache::Cold(text) => {
                let (told, does, key) = (&[], "empties the caches".into(), "cold_command");
                let command = ShellCommand { target, told, text, does, key, limit: None };
                let timing = run_command(driver, &command, control).await?;
                Ok(timing.map(|timing| emptied(text, timing.ended_s, timing.back_s)))
            }
        }
    });
    outcome.map_err(|error| Failure::new(format!("No event loop: {error}.")))?
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::DegreeFacts;

    fn new_query(number: u8, verdict: Option<CheckVerdict>) -> QueryFacts {
        let differences = match verdict {
            Some(CheckVerdict::Failed) => vec!["Row 1: 2 instead of 1.".into()],
            _ => Vec::new(),
        };
        let against = "the reference at scale factor 1".into();
        let answer = verdict.map(|verdict| AnswerFacts { verdict, against, differences });
        QueryFacts { query: number, answer, ..QueryFacts::default() }
    }

    fn new_pass(degree: u32, verdict_of: impl Fn(u8) -> Option<CheckVerdict>) -> TpchFacts {
        let queries = (1..=22).map(|number| new_query(number, verdict_of(number))).collect();
        let degree = DegreeFacts { asked: degree, ..DegreeFacts::default() };
        TpchFacts { queries, degree, scale: 1.0, ..TpchFacts::default() }
    }

    fn answers_line(trials: &[&TpchFacts]) -> String {
        answers_words(trials.iter().copied()).to_string()
    }

    #[test]
    fn a_query_is_correct_when_no_execution_of_it_was_wrong() {
        let right = new_pass(0, |_| Some(CheckVerdict::Passed));
        assert_eq!(answers_line(&[&right]), "22 of 22 correct");
        let wrong = new_pass(2, |number| {
            Some(if number == 6 { CheckVerdict::Failed } else { CheckVerdict::Passed })
        });
        assert_eq!(answers_line(&[&right, &wrong]), "21 of 22 correct; wrong: Q6");
        let expected = "Q6 at degree 2 differs from the reference at scale factor 1:\n  Row 1: 2 \
                        instead of 1.\n";
        assert_eq!(differences(&wrong), expected);
    }

    #[test]
    fn a_trial_without_an_answer_is_not_said_to_lack_a_reference() {
        let mut facts = new_pass(0, |_| None);
        let reason = not_compared_reason(&facts, &TrialStatus::Interrupted);
        assert_eq!(reason.to_string(), "There are no reference answers to compare with.");
        facts.queries.truncate(1);
        facts.queries[0].outcome = QueryOutcome::Interrupted;
        let reason = not_compared_reason(&facts, &TrialStatus::Interrupted);
        assert_eq!(reason.to_string(), "The trial was interrupted before a query was answered.");
        facts.queries[0].outcome = QueryOutcome::TimedOut;
        let reason = not_compared_reason(&facts, &TrialStatus::Complete);
        assert_eq!(reason.to_string(), "No query was answered.");
    }
}
