//! What interrupted runs of `dyno bench` have left on a database.

use super::all_families;
use crate::Done;
use dyno_facts::{RunHeader, RunStatus, SecretUrl, TableOrigin};
use dyno_load::{Unobserved, catalog};
use dyno_runner::databases::{Database, ReachedDatabase};
use dyno_runner::failure::Failure;
use dyno_runner::family::{ask, remove_tables};
use dyno_runner::lock_tables;
use dyno_runner::progress::LoadProgress;
use dyno_store::Run;
use dyno_suite::Plan;
use std::collections::{BTreeSet, HashSet};
use std::path::{Path, PathBuf};

/// Tables that a run has made on one database and has not dropped.
pub(super) struct Leftover {
    pub(super) run: PathBuf,
    header: RunHeader,
    /// How the run calls the target.
    target: String,
    pub(super) tables: Vec<String>,
}

/// What runs of `dyno bench` in `dir` that nobody executes any more have left on the database of `url`.
pub(super) fn on(dir: &Path, url: &SecretUrl) -> Result<Vec<Leftover>, Failure> {
    let mut all = Vec::new();
    for entry in dyno_store::list(dir)? {
        let is_left = matches!(entry.status(), Some(RunStatus::Interrupted | RunStatus::Failed(_)));
        let Ok(header) = entry.header else { continue };
        if header.suite != super::SUITE || !is_left {
            continue;
        }
        let here = header.targets.iter().filter(|target| target.url.redacted() == url.redacted());
        let names: Vec<String> = here.map(|target| target.name.clone()).collect();
        for target in names {
            let tables: Vec<String> = header.made(&target).map(str::to_owned).collect();
            if !tables.is_empty() {
                let (run, header) = (entry.path.clone(), header.clone());
                all.push(Leftover { run, header, target, tables });
            }
        }
    }
    Ok(all)
}

/// Whether `dir` holds a run of `dyno bench`.
pub(super) fn is_known(dir: &Path) -> Result<bool, Failure> {
    let of_bench = |header: &RunHeader| header.suite == super::SUITE;
    Ok(dyno_store::list(dir)?.iter().any(|entry| entry.header.as_ref().is_ok_and(of_bench)))
}

/// The tables of a database that have not the mark of a run.
pub(super) fn unmarked(
    database: &Database,
    header: &RunHeader,
) -> Result<HashSet<String>, Failure> {
    let mark = header.table_mark();
    ask(&database.primary_admin(), async |session| catalog::unmarked(session, &mark).await)
}

impl Leftover {
    /// Finds out which of them others have made by now, and leaves them out.
    pub(super) fn disown(&mut self, reached: &ReachedDatabase) -> Result<Vec<String>, Failure> {
        let unmarked = unmarked(&reached.database, &self.header)?;
        let others =
            self.tables.iter().filter(|table| unmarked.contains(*table)).cloned().collect();
        self.tables.retain(|table| !unmarked.contains(table));
        Ok(others)
    }

    /// Drops them. The run still goes on when its command is given again: it loads anew.
    pub(super) fn drop_from(&self, reached: &ReachedDatabase) -> Done {
        let mut run = Run::open(&self.run)?;
        if let Some(plan) = Plan::of_run(&self.header) {
            let planned = plan.experiments.iter();
            let workloads: BTreeSet<&str> =
                planned.map(|planned| planned.workload.as_str()).collect();
            let lock = |workload| lock_tables(&reached.database, workload, &Unobserved);
            let _locks = workloads.into_iter().map(lock).collect::<Result<Vec<_>, _>>()?;
            for family in all_families(&plan)? {
                let progress = LoadProgress::new("remove tables");
                remove_tables(&*family, &reached.database, &self.tables, &progress)?;
            }
        }
        run.update(|header| {
            let known = header.tables.entry(self.target.clone()).or_default();
            let origins = known.values_mut().filter(|origin| **origin == TableOrigin::Made);
            origins.for_each(|origin| *origin = TableOrigin::Dropped);
        })?;
        run.finish(RunStatus::Interrupted)?;
        Ok(())
    }
}
