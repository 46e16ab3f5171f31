//! The sysbench family in suites.

use crate::check::{MissingRows, check_prepared, first_free_unique, preflight};
use crate::load::chunk_need;
use crate::{OFFER, SysbenchOptions, SysbenchTest, find_option, prepare_with_statistics};
use dyno_core::options::OptionError;
use dyno_engine::TrialSpec;
use dyno_facts::{DataFacts, ExperimentFacts, Message};
use dyno_load::default_sessions;
use dyno_load::settings::ServerNeed;
use dyno_report::{Experiment, NamedPaper};
use dyno_runner::databases::Database;
use dyno_runner::failure::Failure;
use dyno_runner::family::{
    DriveOn, Driven, Family, FamilyEntry, LoadOrder, Ready, UNPREPARED_HINT, ask, drive_on,
    footprint, load_failure, refused,
};
use dyno_suite::Plan;
use std::path::Path;

pub static FAMILY: FamilyEntry =
    FamilyEntry::new(OFFER, &[], |plan, planned| Ok(Box::new(SysbenchFamily::new(plan, planned)?)));

/// Its chapter of papers.
pub const PAPER: NamedPaper = NamedPaper {
    tests: &["sysbench", "oltp"],
    statements,
    ..NamedPaper::new("sysbench", "sysbench OLTP")
};

/// Statements of a transaction. Missing options have their defaults; options unknown to the test change no statement.
fn statements(experiment: &Experiment, test: &str, _kind: &str) -> Option<f64> {
    experiment.test.strip_prefix("sysbench ")?;
    let test = SysbenchTest::from_script(test)?;
    let options = experiment.options.iter();
    let known_options = options.filter(|(name, _)| find_option(test, name).is_some());
    let pairs: Vec<_> = known_options.map(|(name, value)| (name.clone(), value.clone())).collect();
    SysbenchOptions::from_pairs(test, &pairs).ok()?.statements()
}

/// SQLSTATE of a duplicate key, which PostgreSQL reports if two workers replace the same row: sysbench repeats the
/// event.
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
        // bulk_insert has a table per worker.
        let is_bulk_insert = self.options.test.is_bulk_insert();
        let sessions = if is_bulk_insert { self.most_workers } else { default_sessions() };
        let (options, observer) = (&self.options, order.observer);
        let report = prepare_with_statistics(driver, options, sessions, order.seed, observer)?;
        Ok(report.rows.sentence())
    }

    fn tables(&self) -> Vec<String> {
        self.options.table_names(self.most_workers)
    }
}

impl Driven for SysbenchFamily {
    type Workload = crate::Sysbench;
    type Before = ();
    type Kept = ();

    fn takes_fleet(&self) -> Result<bool, Failure> {
        Ok(true)
    }

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
}

/// The workload's own view of an experiment's options; errors point into the suite file.
fn options(plan: &Plan, experiment: &ExperimentFacts) -> Result<SysbenchOptions, Failure> {
    let pairs: Vec<(String, String)> =
        experiment.options.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
    let test = SysbenchTest::from_script(&experiment.test).ok_or_else(|| {
        OptionError::experiment(format!("`{}` isn't a test of sysbench.", experiment.test), None)
    });
    let options = test.and_then(|test| SysbenchOptions::from_pairs(test, &pairs));
    options.map_err(|error| refused(plan, experiment, error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn statements_follow_from_the_options() {
        assert_eq!(count_statements("oltp_read_only", &[]), Some(16.0));
        assert_eq!(
            count_statements("oltp_read_only", &[("range_selects", "0"), ("skip-trx", "1")]),
            Some(10.0)
        );
        assert_eq!(count_statements("oltp_write_only", &[]), Some(6.0));
        assert_eq!(
            count_statements("oltp_read_write", &[("threads", "of its command line")]),
            Some(20.0)
        );
        assert_eq!(
            count_statements("oltp", &[("oltp-read-only", "on"), ("oltp-sum-ranges", "0")]),
            Some(15.0)
        );
        assert_eq!(count_statements("oltp", &[("oltp-write-only", "on")]), Some(6.0));
        assert_eq!(
            count_statements("oltp", &[("oltp-write-only", "on"), ("oltp-skip-trx", "on")]),
            Some(4.0)
        );
        let counts = [("point_selects", "3"), ("delete_inserts", "2")];
        assert_eq!(count_statements("oltp_read_write", &counts), Some(15.0));
        let counts = [("index_updates", "4"), ("non_index_updates", "0")];
        assert_eq!(count_statements("oltp_write_only", &counts), Some(8.0));
        let counts = [("index_updates", "3"), ("non_index_updates", "5")];
        assert_eq!(count_statements("oltp_update_index", &counts), Some(3.0));
        assert_eq!(count_statements("oltp_update_non_index", &counts), Some(5.0));
        let single = "oltp_point_select oltp_insert oltp_delete oltp_simple select insert delete update_index \
                      update_non_index select_random_points select_random_ranges";
        for test in single.split(' ') {
            assert_eq!(count_statements(test, &[]), Some(1.0), "{test}");
        }
        assert_eq!(count_statements("bulk_insert", &[]), None);
        let pgbench = Experiment { test: "pgbench x".to_owned(), ..Experiment::default() };
        assert_eq!(statements(&pgbench, "oltp_read_only", ""), None);
    }

    fn count_statements(test: &str, options: &[(&str, &str)]) -> Option<f64> {
        let options = options.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let options: BTreeMap<String, String> = options.collect();
        let facts = ExperimentFacts { options, ..ExperimentFacts::default() };
        let test_name = format!("sysbench {test}");
        statements(&Experiment { test: test_name, facts, ..Experiment::default() }, test, test)
    }
}
