//! The sysbench family in suites.

use super::{Assist, Done, Driven, Family, Job, Left, LoadOrder, Ready, assist, driven};
use crate::failure::{Failure, sentence};
use crate::progress::LoadProgress;
use dyno_core::{Driver, Session};
use dyno_engine::TrialSpec;
use dyno_reactor::block_on;
use dyno_suite::{OptionPart, Plan, PlannedExperiment};
use dyno_sysbench::check::{PreflightError, first_free_unique, preflight};
use dyno_sysbench::{OptionError, Options, Test, drop_tables, existing_tables};
use std::collections::BTreeSet;
use std::path::Path;

/// An experiment with a test of sysbench.
pub(crate) struct Sysbench {
    options: Options,
    most_workers: u32,
}

impl Family for Sysbench {
    const NAME: &'static str = "sysbench";

    fn new(plan: &Plan, experiment: &PlannedExperiment) -> Result<Self, Failure> {
        let options = options(plan, experiment)?;
        let most_workers = experiment.threads.iter().max().copied().unwrap_or(1);
        Ok(Sysbench { options, most_workers })
    }

    fn warnings(&self) -> Vec<String> {
        self.options.warnings.clone()
    }

    fn load<D: Driver>(&self, driver: &D, order: &LoadOrder<'_>) -> Result<String, Failure> {
        let sessions = match self.options.test.is_bulk_insert() {
            // bulk_insert has a table per worker.
            true => self.most_workers,
            false => super::load_sessions(),
        };
        dyno_sysbench::prepare(driver, &self.options, sessions, order.seed, order.observer)
            .map(|report| report.rows.sentence("rows"))
            .map_err(|error| load_failure(&error))
    }

    fn tables(&self) -> Vec<String> {
        self.options.table_names(self.most_workers)
    }

    fn existing<D: Driver>(&self, driver: &D) -> Result<BTreeSet<String>, Failure> {
        let existing = super::ask(driver, async |session| existing_tables(session).await)?;
        Ok(self.tables().into_iter().filter(|table| existing.contains(table)).collect())
    }

    fn remove<D: Driver>(
        &self,
        driver: &D,
        tables: &[String],
        observer: &LoadProgress,
    ) -> Result<(), Failure> {
        drop_tables(driver, tables, observer)
            .map_err(|error| super::drop_failure(load_failure(&error), error.db_error()))
    }

    fn trial<D: Driver>(&self, driver: &D, job: Job<'_>) -> Result<Done, Failure> {
        driven(self, driver, job)
    }

    fn takes_fleet(&self) -> Result<bool, Failure> {
        Ok(true)
    }

    fn assist<D: Driver>(&self, driver: &D, part: Assist<'_>) -> Result<Option<Left>, Failure> {
        assist::driven(self, driver, part)
    }
}

impl Driven for Sysbench {
    type Workload = dyno_sysbench::Sysbench;
    type Before = ();

    fn look_before<D: Driver>(
        &self,
        driver: &D,
        spec: &TrialSpec,
        _stem: &Path,
    ) -> Result<Ready<Self>, Failure> {
        let mut options = self.options.clone();
        let warnings = preflight_of(driver, &mut options, spec.all_workers())?;
        let test = options.test.name().to_owned();
        options.unique_part = (spec.share.generator, spec.share.generators.max(1));
        let workload = dyno_sysbench::Sysbench::new(options, driver.dialect());
        Ok(Ready { workload, before: (), test, data: None, tpcc: None, warnings })
    }

    fn part<D: Driver>(
        &self,
        driver: &D,
        spec: &TrialSpec,
        stem: &Path,
    ) -> Result<dyno_sysbench::Sysbench, Failure> {
        self.look_before(driver, spec, stem).map(|ready| ready.workload)
    }
}

/// Whether the test can run on this database; what the user should know.
fn preflight_of<D: Driver>(
    driver: &D,
    options: &mut Options,
    workers: u32,
) -> Result<Vec<String>, Failure> {
    let looked = block_on(async {
        let mut session = driver.connect(0).await?;
        let warnings = preflight(&mut session, options, workers).await?;
        if options.test.is_insert() && !options.auto_inc {
            options.unique_start = first_free_unique(&mut session, options).await?;
        }
        session.close().await;
        Ok::<_, PreflightError>(warnings)
    });
    let looked = looked.map_err(|error| Failure::new(format!("No event loop: {error}.")))?;
    looked.map_err(|error| match error {
        PreflightError::Db(error) => Failure::from(&error),
        PreflightError::Unfit { problem, hint } => Failure::new(sentence(&problem)).with_hint(hint),
        PreflightError::Unprepared { problem, .. } => {
            Failure::new(sentence(&problem)).with_hint(super::UNPREPARED_HINT)
        }
    })
}

/// A loader's error with its remedy.
pub(crate) fn load_failure(error: &dyno_load::LoadError) -> Failure {
    let failure = Failure::new(sentence(&error.to_string()));
    match error.hint() {
        Some(hint) => failure.with_hint(hint),
        None => failure,
    }
}

/// The workload's own view of an experiment's options; errors point into the suite file.
fn options(plan: &Plan, experiment: &PlannedExperiment) -> Result<Options, Failure> {
    let refuse = |message: String, hint: Option<String>| {
        Failure::from(plan.experiment_error(&experiment.name, message, hint))
    };
    let Some(test) = Test::from_script(&experiment.test) else {
        return Err(refuse(format!("`{}` is no test of sysbench.", experiment.test), None));
    };
    let pairs: Vec<(String, String)> = experiment
        .options
        .iter()
        .map(|option| (option.name.clone(), option.value.clone()))
        .collect();
    Options::from_pairs(test, &pairs).map_err(|error| {
        // In a suite options have no dashes, and it is a test that knows them.
        let (option, part, message, hint) = match &error {
            OptionError::Unknown { name, nearest, .. } => (
                name,
                OptionPart::Name,
                format!("The test `{}` has no option `{name}`.", experiment.test),
                nearest.as_ref().map(|name| format!("Did you mean `{name}`?")),
            ),
            OptionError::Value { name, value, expected } => (
                name,
                OptionPart::Value,
                format!("`{name}` can't be `{value}`: it takes {expected}."),
                None,
            ),
            OptionError::Conflict(text) => return refuse(text.clone(), error.hint()),
        };
        plan.option_error(&experiment.name, option, part, message, hint).into()
    })
}
