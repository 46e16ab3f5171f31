//! The sysbench family in suites.

use crate::check::{MissingRows, check_prepared, first_free_unique, preflight};
use crate::load::chunk_need;
use crate::{OFFER, SysbenchOptions, SysbenchTest, existing_tables, prepare_with_statistics};
use dyno_core::options::OptionError;
use dyno_engine::TrialSpec;
use dyno_facts::{DataFacts, ExperimentFacts, Message};
use dyno_load::default_sessions;
use dyno_load::settings::ServerNeed;
use dyno_report::NamedPaper;
use dyno_runner::databases::Database;
use dyno_runner::failure::Failure;
use dyno_runner::family::{
    DriveOn, Driven, Family, FamilyEntry, LoadOrder, Ready, UNPREPARED_HINT, ask, drive_on,
    footprint, load_failure, refused,
};
use dyno_suite::Plan;
use std::collections::BTreeSet;
use std::path::Path;

pub static FAMILY: FamilyEntry =
    FamilyEntry::new(OFFER, &[], |plan, planned| Ok(Box::new(SysbenchFamily::new(plan, planned)?)));

/// Its chapter of papers.
pub const PAPER: NamedPaper = NamedPaper {
    name: "sysbench",
    title: "sysbench OLTP",
    tests: &["sysbench", "oltp"],
    derived_from: &[],
    own_tables: &[],
};

/// SQLSTATE of a duplicate key, which PostgreSQL reports if two workers replace the same row: sysbench repeats the event.
pub const DUPLICATE_KEY: &str = "23505";

pub static DRIVE_ON: DriveOn<crate::Sysbench> = drive_on;

struct SysbenchFamily {
    options: SysbenchOptions,
    most_workers: u32,
}

impl SysbenchFamily {
    fn new(plan: &Plan, experiment: &ExperimentFacts) -> Result<Self, Failure> {
        let options = options(plan, experiment)?;
        let most_workers = experiment.workers.iter().max().copied().unwrap_or(1);
        Ok(SysbenchFamily { options, most_workers })
    }
}

impl Family for SysbenchFamily {
    fn warnings(&self) -> Vec<String> {
        self.options.warnings.clone()
    }

    fn writes(&self) -> bool {
        self.options.writes()
    }

    fn needs(&self) -> Vec<ServerNeed> {
        [self.options.trial_needs(), &[chunk_need(&self.options)]].concat()
    }

    fn load(&self, database: &Database, order: &LoadOrder<'_>) -> Result<Message, Failure> {
        let driver = &database.primary_admin();
        let sessions = match self.options.test.is_bulk_insert() {
            // bulk_insert has a table per worker.
            true => self.most_workers,
            false => default_sessions(),
        };
        let (options, observer) = (&self.options, order.observer);
        let report = prepare_with_statistics(driver, options, sessions, order.seed, observer)?;
        Ok(report.rows.sentence())
    }

    fn tables(&self) -> Vec<String> {
        self.options.table_names(self.most_workers)
    }

    fn existing(&self, database: &Database) -> Result<BTreeSet<String>, Failure> {
        let driver = &database.primary_admin();
        let existing = ask(driver, async |session| existing_tables(session).await)?;
        Ok(self.tables().into_iter().filter(|table| existing.contains(table)).collect())
    }
}

impl Driven for SysbenchFamily {
    type Workload = crate::Sysbench;
    type Before = ();
    type Kept = ();

    fn tune(&self, spec: &mut TrialSpec) {
        spec.reconnect_every = self.options.reconnect.into();
        spec.errors.retry.sqlstates.push(crate::DUPLICATE_KEY.to_owned());
    }

    fn look_before(
        &self,
        database: &Database,
        spec: &TrialSpec,
        _stem: &Path,
    ) -> Result<Ready<Self>, Failure> {
        let driver = &database.primary_admin();
        let mut options = self.options.clone();
        let (warnings, size) = ask(driver, async |session| {
            let workers = spec.all_workers();
            check_prepared(session, &options, workers).await?;
            let warnings = preflight(session, &options, workers, MissingRows::Refused).await;
            let warnings = warnings.map_err(|error| load_failure(&error, UNPREPARED_HINT))?;
            if options.test.is_insert() && !options.auto_inc {
                options.unique_start = first_free_unique(session, &options).await?;
            }
            Ok::<_, Failure>((warnings, footprint(session, "sbtest%").await?))
        })?;
        let tables = options.table_names(spec.all_workers()).len() as u64;
        let data = DataFacts {
            rows: tables * u64::from(options.table_size),
            hot_rows: None,
            access: Message::default(),
            size_bytes: size.size_bytes,
            memory_setting: size.memory_setting.to_owned(),
            memory_bytes: size.memory_bytes,
        };
        let test = options.test.name().to_owned();
        options.unique_part = (spec.share.generator, spec.share.generators.max(1));
        let workload = crate::Sysbench::new(options, driver.dialect());
        Ok(Ready { workload, before: (), test, data: Some(data), own: None, warnings })
    }

    fn part(
        &self,
        database: &Database,
        spec: &TrialSpec,
        stem: &Path,
    ) -> Result<crate::Sysbench, Failure> {
        self.look_before(database, spec, stem).map(|ready| ready.workload)
    }
}

/// The workload's own view of an experiment's options; errors point into the suite file.
fn options(plan: &Plan, experiment: &ExperimentFacts) -> Result<SysbenchOptions, Failure> {
    let no_test =
        || OptionError::experiment(format!("`{}` is no test of sysbench.", experiment.test), None);
    let pairs: Vec<(String, String)> =
        experiment.options.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
    let options = SysbenchTest::from_script(&experiment.test)
        .ok_or_else(no_test)
        .and_then(|test| SysbenchOptions::from_pairs(test, &pairs));
    options.map_err(|error| refused(plan, experiment, error))
}
