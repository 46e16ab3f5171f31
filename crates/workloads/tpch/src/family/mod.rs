//! TPC-H in suites.
//!
//! A trial is no work of the engine, but one pass over the queries at one parallel degree. Every query that
//! ends is a line of `trials/<n>.executed.jsonl`, from which a trial that was killed is summarised. `dyno
//! tpch run`, `power`, `throughput` and `refresh` write a suite in memory and go the same way, so they can
//! be resumed and have papers.

mod trial;

use crate::degree::{DegreeRule, detect};
use crate::load::{LoadError, TpchLoadOptions, TpchLoadReport, destroy_of, load, needs};
use crate::options::{Cache, OFFER, TpchSettings};
use crate::run::TpchTest;
use crate::state;
use dyno_core::{AdminDriver, Driver};
use dyno_facts::{ExperimentFacts, Message, say};
use dyno_load::default_sessions;
use dyno_load::settings::ServerNeed;
use dyno_runner::databases::Database;
use dyno_runner::failure::Failure;
use dyno_runner::family::{
    Family, FamilyEntry, Job, LoadOrder, TrialDone, Trials, all_or_none, ask, drop_failure, given,
    load_failure, refused,
};
use dyno_runner::progress::LoadProgress;
use dyno_suite::Plan;
use std::collections::BTreeSet;
use trial::answers_lines;

/// TPC-H, for the registry.
pub static FAMILY: FamilyEntry = FamilyEntry {
    last_words: answers_lines,
    ..FamilyEntry::new(OFFER, crate::CATALOGUE, |plan, planned| {
        Ok(Box::new(TpchFamily::new(plan, planned)?))
    })
};

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
        self.options.test != TpchTest::Queries
    }

    fn commands(&self) -> Vec<String> {
        match &self.options.cache {
            Cache::Cold(command) => vec![command.clone()],
            Cache::AsFound | Cache::Warm => Vec::new(),
        }
    }

    fn needs(&self) -> Vec<ServerNeed> {
        [&[ServerNeed::WHOLE_ANSWERS], &needs(self.options.scale)[1..]].concat()
    }

    fn fits(&self, database: &Database) -> Result<(), Failure> {
        let driver = &database.primary_admin();
        let Some(degree) = self.degrees.iter().find(|degree| **degree > 0) else { return Ok(()) };
        match self.rule(driver)? {
            Some(rule) if rule.fits(driver.dialect()) => Ok(()),
            Some(rule) => Err(Failure::new(format!(
                "The rule `{}` sets the degree of {}, which this database is not.",
                rule.name, rule.product
            ))
            .with_hint("Leave `degree_rule` out, and what fits the product is found.")),
            None => Err(Failure::new(format!(
                "It is not known how this product is asked for a parallel degree of {degree}."
            ))
            .with_hint(
                "Say it in the options: `degree_set = [\"SET name = {degree}\"]`; or ask for \
                 degree 0 only.",
            )),
        }
    }

    fn load(&self, database: &Database, order: &LoadOrder<'_>) -> Result<Message, Failure> {
        let driver = &database.primary_admin();
        load(driver, &self.load_options(order), order.observer)
            .map(|report| self.load_sentence(&report))
            .map_err(|error| suite_failure(&error))
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
        let is_there = tables.iter().any(|table| existing.contains(table));
        Ok(all_or_none(is_there, tables))
    }

    fn remove(
        &self,
        database: &Database,
        tables: &[String],
        observer: &LoadProgress,
    ) -> Result<(), Failure> {
        let driver = &database.primary_admin();
        destroy_of(driver, tables, false, observer).map(|_| ()).map_err(drop_failure)
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
        trial::trial(&self.options, database, job)
    }
}

impl TpchFamily {
    /// How this database is told its degree; `None` where nobody knows.
    fn rule(&self, driver: &AdminDriver<'_>) -> Result<Option<DegreeRule>, Failure> {
        if let Some(rule) = &self.options.rule {
            return Ok(Some(rule.clone()));
        }
        ask(driver, async |session| detect(session).await)
    }

    fn load_options(&self, order: &LoadOrder<'_>) -> TpchLoadOptions {
        let options = &self.options;
        TpchLoadOptions {
            sessions: options.load_sessions.unwrap_or_else(default_sessions),
            foreign_keys: options.foreign_keys.unwrap_or(true),
            indexes: options.indexes,
            serial: options.serial,
            same_host: order.same_host,
            force: options.force,
            ..TpchLoadOptions::new(options.scale)
        }
    }

    fn load_sentence(&self, report: &TpchLoadReport) -> Message {
        let scale = self.options.scale;
        if report.rows.was_complete {
            return say!(tables_complete, scale = scale.to_string());
        }
        let steps = report.load.steps.iter().filter(|step| !step.name.contains('/'));
        let steps = steps.map(|step| format!("{} {:.1} s", step.name, step.seconds).into());
        let all = report
            .load
            .seconds
            .map(|seconds| say!(all_steps_took, seconds = format!("{seconds:.1}")));
        let parts: Vec<Message> =
            [report.rows.sentence()].into_iter().chain(steps).chain(all).collect();
        Message::joined(&parts, ", ", "，")
    }
}

/// The loader's own remedies speak of another command line.
fn suite_failure(error: &LoadError) -> Failure {
    let failure = load_failure(
        error,
        "Use another database, write the scale factor that is there into the suite, or remove the tables: `dyno tpch \
         drop` removes those that dyno has loaded.",
    );
    match error {
        LoadError::Room { .. } => failure.with_hint(
            "Lower `scale`, make room, or set `force = true` if the estimate is wrong here.",
        ),
        _ => failure,
    }
}
