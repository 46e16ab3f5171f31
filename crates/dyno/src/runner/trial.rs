//! One trial of a plan.

use super::{Runner, TrialName, summarise};
use crate::databases::{Database, with_driver};
use crate::failure::{Failure, sentence};
use crate::output;
use crate::progress::TrialProgress;
use crate::table::number;
use dyno_core::{Driver, Nanos, Session, Workload};
use dyno_engine::{Control, DriveError, Observer, TrialResult, TrialSpec, drive};
use dyno_measure::{Interval, ServerFacts, TrialStatus};
use dyno_reactor::block_on;
use dyno_store::{Moment, StoreError, TrialIdentity, TrialWriter};
use dyno_suite::{Step, Trial};
use dyno_sysbench::check::{PreflightError, first_free_unique, preflight};
use dyno_sysbench::{Options, Sysbench};
use std::collections::BTreeMap;

impl Runner<'_> {
    /// Runs one trial and stores it.
    pub(super) fn trial(&mut self, step: &Step, trial: &Trial) -> Result<TrialStatus, Failure> {
        let mut options = self.options(&step.experiment)?.clone();
        let spec = trial_spec(trial);
        let target = step.target.clone();
        // Fields are borrowed one by one: the writer keeps the run folder for itself.
        let database = &self
            .targets
            .get(&target)
            .ok_or_else(|| Failure::new(format!("The plan has no target {target}.")))?
            .database;
        let place = format!("{} on {target}", step.experiment);
        let warnings =
            with_driver!(database, driver => look_before(driver, &mut options, trial.threads))
                .map_err(|failure| failure.at(&place))?;
        for warning in &warnings {
            output::talk(&format!("warning: {}: {warning}", step.experiment));
        }
        let workload = with_driver!(database, driver => Sysbench::new(options, driver.dialect()));
        let kinds: Vec<String> =
            workload.transactions().iter().map(|kind| kind.name.clone()).collect();
        let test = workload.options().test.name().to_owned();
        let name = TrialName {
            step: step.id.clone(),
            experiment: step.experiment.clone(),
            target: target.clone(),
            test,
            repeat: trial.repeat,
            kinds,
        };
        let mut writer = self.run.begin_trial(identity(&name, &spec))?;
        let facts_before = node_facts(&target, database);
        writer.server(Moment::Before, &facts_before)?;
        let title = format!("{} on {target}, {} workers", name.experiment, spec.workers);
        let mut observer = StoringObserver {
            writer: &mut writer,
            progress: TrialProgress::new(&title, trial.warmup_s + trial.duration_s.unwrap_or(0.0)),
            warmup_s: trial.warmup_s,
            control: self.control,
            error: None,
        };
        let driven = with_driver!(database, driver =>
            drive(&workload, driver, &spec, self.control, &mut observer));
        let StoringObserver { progress, error, .. } = observer;
        let result = match driven {
            Ok(result) => result,
            Err(DriveError::Interrupted) => return Ok(TrialStatus::Interrupted),
            Err(error) => return Err(Failure::from(error).at(&place)),
        };
        if let Some(error) = error {
            return Err(error.into());
        }
        writer.server(Moment::After, &node_facts(&target, database))?;
        let summary = summarise(&name, &spec, &result);
        progress.finish(&headline(&summary.status, &result, summary.tps, summary.qps));
        let status = summary.status.clone();
        writer.finish(summary)?;
        Ok(status)
    }
}

/// Whether the test can run on this database; what the user should know.
fn look_before<D: Driver>(
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
        PreflightError::Unprepared { problem, .. } => Failure::new(sentence(&problem)).with_hint(
            "Leave `prepare = false` out of the suite, so that the run loads the tables itself, or \
             load them with the same options before.",
        ),
    })
}

fn trial_spec(trial: &Trial) -> TrialSpec {
    let nanos = |seconds: f64| (seconds * 1e9) as Nanos;
    TrialSpec {
        warmup: nanos(trial.warmup_s),
        duration: trial.duration_s.map(nanos),
        events: trial.events,
        rate_per_s: trial.rate,
        interval: nanos(trial.interval_s),
        seed: trial.seed,
        ..TrialSpec::closed(trial.threads)
    }
}

fn identity(name: &TrialName, spec: &TrialSpec) -> TrialIdentity {
    let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get() as u32);
    TrialIdentity {
        step: name.step.clone(),
        experiment: name.experiment.clone(),
        target: name.target.clone(),
        test: name.test.clone(),
        workers: spec.workers,
        repeat: name.repeat,
        rate_per_s: spec.rate_per_s,
        warmup_s: spec.warmup as f64 / 1e9,
        seed: spec.seed,
        loops: spec.loops.unwrap_or(cores).min(spec.workers),
        kinds: name.kinds.clone(),
        began_at: String::new(),
    }
}

/// What the server says now; when it can't be asked (it may have been killed), that is noted.
fn node_facts(target: &str, database: &Database) -> BTreeMap<String, ServerFacts> {
    let facts = database.facts().unwrap_or_else(|error| ServerFacts {
        not_readable: vec![error.to_string()],
        ..ServerFacts::default()
    });
    BTreeMap::from([(target.to_owned(), facts)])
}

fn headline(status: &TrialStatus, result: &TrialResult, tps: f64, qps: f64) -> String {
    let p95_ms = result.total.latency().percentile(95.0) as f64 / 1e6;
    let figures =
        format!("{} tx/s, {} statements/s, p95 {} ms", number(tps), number(qps), number(p95_ms));
    match status {
        TrialStatus::Complete => figures,
        TrialStatus::Interrupted => format!("interrupted; until then {figures}"),
        TrialStatus::Failed(why) => format!("failed: {why} Measured: {figures}"),
    }
}

/// Stores every interval as it comes and shows it.
struct StoringObserver<'a, 'run> {
    writer: &'a mut TrialWriter<'run>,
    progress: TrialProgress,
    warmup_s: f64,
    control: &'a Control,
    error: Option<StoreError>,
}

impl Observer for StoringObserver<'_, '_> {
    fn connected(&mut self, connected: u32, of: u32) {
        self.progress.connected(connected, of);
    }

    fn interval(&mut self, interval: &Interval) {
        self.progress.interval(interval, self.warmup_s);
        if self.error.is_some() {
            return;
        }
        if let Err(error) = self.writer.interval(interval) {
            output::talk("The run folder can't be written any more; the trial is being stopped.");
            self.error = Some(error);
            self.control.stop();
        }
    }
}
