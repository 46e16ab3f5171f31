//! Executes a plan step by step and keeps everything in the run folder.

pub(crate) mod facts;
mod summary;
mod trial;

pub(crate) use summary::{TrialName, summarise};

use crate::databases::{Database, Reached, reach, with_driver};
use crate::failure::Failure;
use crate::output;
use crate::progress::LoadProgress;
use dyno_engine::Control;
use dyno_measure::TrialStatus;
use dyno_store::{Event, EventKind, Run, RunStatus};
use dyno_suite::{Action, OptionPart, Plan, PlannedExperiment, Step};
use dyno_sysbench::{LoadReport, OptionError, Options, Test};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// How a run ended.
pub(crate) struct Outcome {
    /// Its folder.
    pub(crate) path: PathBuf,
    /// Complete, interrupted or failed.
    pub(crate) status: RunStatus,
    /// What ended the run early, with its remedy.
    pub(crate) failure: Option<Failure>,
}

/// Executes what is left of `plan` in `run`.
///
/// # Errors
/// When the run folder can't be written or a target can't be reached: nothing was executed then. What
/// goes wrong later is in the outcome.
pub(crate) fn execute(plan: &Plan, run: Run, control: &Control) -> Result<Outcome, Failure> {
    let mut runner =
        Runner { plan, run, control, targets: BTreeMap::new(), tests: BTreeMap::new() };
    if let Err(failure) = runner.look_ahead() {
        // Nothing was touched: a wrong password leaves no folder behind.
        if runner.run.is_untouched() {
            runner.run.discard()?;
        } else {
            runner.run.finish(RunStatus::Interrupted)?;
        }
        return Err(failure);
    }
    let (status, failure) = match runner.steps() {
        Ok(status) => (status, None),
        Err(failure) => {
            runner.run.event(Event::new(EventKind::Note, failure.message.clone()))?;
            (RunStatus::Failed(failure.message.clone()), Some(failure))
        }
    };
    let path = runner.run.finish(status.clone())?;
    Ok(Outcome { path, status, failure })
}

struct Runner<'a> {
    plan: &'a Plan,
    run: Run,
    control: &'a Control,
    targets: BTreeMap<String, Reached>,
    /// Validated workload options by experiment.
    tests: BTreeMap<String, Options>,
}

impl Runner<'_> {
    /// Everything that can be found wrong before anything is executed.
    fn look_ahead(&mut self) -> Result<(), Failure> {
        for experiment in &self.plan.experiments {
            let options = workload_options(self.plan, experiment)?;
            for warning in &options.warnings {
                output::talk(&format!("warning: {}: {warning}", experiment.name));
            }
            self.tests.insert(experiment.name.clone(), options);
        }
        self.reach_targets()
    }

    fn steps(&mut self) -> Result<RunStatus, Failure> {
        let done: BTreeSet<String> = self
            .plan
            .steps
            .iter()
            .filter(|step| self.run.is_complete(&step.id))
            .map(|step| step.id.clone())
            .collect();
        let mut failed = 0;
        for step in self.plan.remaining(&done) {
            if self.control.is_stopped() {
                return Ok(RunStatus::Interrupted);
            }
            match &step.action {
                Action::Prepare => self.prepare(step)?,
                Action::Cleanup => self.cleanup(step)?,
                Action::Trial(trial) => match self.trial(step, trial)? {
                    TrialStatus::Complete => {}
                    TrialStatus::Interrupted => return Ok(RunStatus::Interrupted),
                    TrialStatus::Failed(_) => failed += 1,
                },
            }
        }
        Ok(match failed {
            0 => RunStatus::Complete,
            1 => RunStatus::Failed("One trial failed; its summary says why.".to_owned()),
            _ => RunStatus::Failed(format!("{failed} trials failed; their summaries say why.")),
        })
    }

    /// Connects to every target once, before anything is touched.
    fn reach_targets(&mut self) -> Result<(), Failure> {
        for target in &self.plan.targets {
            let url = target.url_in(self.run.path());
            let place = format!("target {}", target.name);
            let reached =
                reach(&target.name, url.expose()).map_err(|failure| failure.at(&place))?;
            output::talk(&format!(
                "target {}: {} {}",
                target.name, reached.facts.product, reached.facts.version
            ));
            self.targets.insert(target.name.clone(), reached);
        }
        let facts = facts::targets(self.plan, &self.targets, self.run.path());
        self.run.update(|header| header.targets = facts)?;
        Ok(())
    }

    fn options(&self, experiment: &str) -> Result<&Options, Failure> {
        self.tests
            .get(experiment)
            .ok_or_else(|| Failure::new(format!("The plan has no experiment {experiment}.")))
    }

    fn database(&self, target: &str) -> Result<&Database, Failure> {
        self.targets
            .get(target)
            .map(|reached| &reached.database)
            .ok_or_else(|| Failure::new(format!("The plan has no target {target}.")))
    }

    fn most_workers(&self, experiment: &str) -> u32 {
        let planned = self.plan.experiment(experiment);
        planned.and_then(|planned| planned.threads.iter().max().copied()).unwrap_or(1)
    }

    fn prepare(&mut self, step: &Step) -> Result<(), Failure> {
        let options = self.options(&step.experiment)?;
        let observer =
            LoadProgress::new(&format!("prepare {} on {}", step.experiment, step.target));
        let cores = std::thread::available_parallelism().map_or(2, |cores| cores.get() as u32);
        let sessions = match options.test.is_bulk_insert() {
            // bulk_insert has a table per worker.
            true => self.most_workers(&step.experiment),
            false => (2 * cores).clamp(2, 16),
        };
        let seed = self.plan.seed;
        let database = self.database(&step.target)?;
        let report = with_driver!(database, driver =>
            dyno_sysbench::prepare(driver, options, sessions, seed, &observer))
        .map_err(|error| {
            load_failure(&error).at(&format!("prepare {} on {}", step.experiment, step.target))
        })?;
        let told = load_sentence(&report);
        observer.finish(&told);
        let note = format!("prepare of {} on {}: {told}", step.experiment, step.target);
        self.run.event(Event::new(EventKind::Note, note))?;
        Ok(())
    }

    fn cleanup(&mut self, step: &Step) -> Result<(), Failure> {
        let options = self.options(&step.experiment)?;
        let observer =
            LoadProgress::new(&format!("cleanup {} on {}", step.experiment, step.target));
        let workers = self.most_workers(&step.experiment);
        let database = self.database(&step.target)?;
        with_driver!(database, driver => dyno_sysbench::cleanup(driver, options, workers, &observer))
            .map_err(|error| load_failure(&error))?;
        observer.finish("tables dropped");
        Ok(())
    }
}

/// What a load did, in words.
fn load_sentence(report: &LoadReport) -> String {
    let mut text = match report.method {
        Some(method) => format!("{} rows by {}", report.rows_loaded, method.name()),
        None => "nothing had to be loaded".to_owned(),
    };
    if report.rows_found > 0 {
        text.push_str(&format!(", {} rows were there before", report.rows_found));
    }
    if let Some(reason) = &report.fallback_reason {
        text.push_str(&format!("; no faster way: {reason}"));
    }
    text
}

/// A loader's error with its remedy.
pub(crate) fn load_failure(error: &dyno_sysbench::LoadError) -> Failure {
    let failure = Failure::new(crate::failure::sentence(&error.to_string()));
    match error.hint() {
        Some(hint) => failure.with_hint(hint),
        None => failure,
    }
}

/// The workload's own view of an experiment's options; errors point into the suite file.
pub(crate) fn workload_options(
    plan: &Plan,
    experiment: &PlannedExperiment,
) -> Result<Options, Failure> {
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
