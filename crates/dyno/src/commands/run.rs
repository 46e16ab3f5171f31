//! `dyno run`.

use super::RUNS;
use super::paper::{ALL, write_paper};
use super::serve::{self, LISTEN};
use crate::failure::Failure;
use crate::progress::human_time;
use crate::runner::{self, facts};
use crate::{Done, output, signals, tpch};
use dyno_engine::Control;
use dyno_measure::TrialStatus;
use dyno_store::{Run, RunHeader, RunStatus};
use dyno_suite::{Action, Overrides, Plan, SecretUrl, Step, Suite};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What `dyno run` takes.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  dyno run quickstart
  dyno run rds-mysql-5.6 --target 'rds.mysql.s3.large=mysql://root@127.0.0.1/sbtest' --shrink 0.001
  dyno run my-suite.toml --seed 7

Passwords are taken from the URL, from DYNO_PASSWORD_NAME (NAME: the target's name in capitals), from
~/.pgpass or ~/.my.cnf, or asked for. A run that was interrupted goes on when the same command is
given again; --new begins another one.")]
pub(crate) struct Arguments {
    /// A suite file, or the name of a bundled suite.
    suite: String,
    /// Set or replace the URL of a target of the suite.
    #[arg(long = "target", value_name = "NAME=URL")]
    targets: Vec<String>,
    /// Scale data and durations down to this share, above 0 and at most 1.
    #[arg(long, value_name = "F")]
    shrink: Option<f64>,
    /// Cap every number of threads.
    #[arg(long, value_name = "N")]
    max_threads: Option<u32>,
    /// Replace the suite's seed.
    #[arg(long)]
    seed: Option<u64>,
    /// Folder in which runs are kept.
    #[arg(long, value_name = "FOLDER", default_value = RUNS)]
    dir: PathBuf,
    /// Begin a new run even if there is an interrupted one to go on with.
    #[arg(long)]
    new: bool,
    /// Serve a page on which the run can be watched, as `dyno serve` does; on a free port of this
    /// machine unless an address is given.
    #[arg(long, value_name = "ADDRESS:PORT", num_args = 0..=1, require_equals = true, default_missing_value = LISTEN)]
    serve: Option<String>,
}

pub(crate) fn run(arguments: &Arguments) -> Done {
    let mut overrides = Overrides {
        shrink: arguments.shrink,
        max_threads: arguments.max_threads,
        seed: arguments.seed,
        ..Overrides::default()
    };
    for target in &arguments.targets {
        overrides.add_target(target).map_err(|problem| Failure::usage(problem.to_string()))?;
    }
    let listen = arguments.serve.as_deref();
    let _page = listen.map(|listen| serve::beside(&arguments.dir, listen)).transpose()?;
    run_suite(&arguments.suite, &overrides, &arguments.dir, arguments.new)
}

/// Runs a suite to its end and prints the results.
pub(crate) fn run_suite(suite: &str, overrides: &Overrides, dir: &Path, new: bool) -> Done {
    let suite = Suite::open(suite)?;
    let plan = Plan::build(&suite, overrides)?;
    run_plan(&plan, dir, new)
}

/// Executes a plan to its end and prints the results.
pub(crate) fn run_plan(plan: &Plan, dir: &Path, new: bool) -> Done {
    for experiment in &plan.experiments {
        runner::Experiment::new(plan, experiment)?;
    }
    for note in &plan.notes {
        output::talk(&format!("note: {note}"));
    }
    // Before there is a folder: whoever interrupts from here on is told what became of the run.
    let control = Arc::new(Control::new());
    signals::stop_on_interrupt(Arc::clone(&control))
        .map_err(|error| Failure::new(format!("Signals can't be handled: {error}.")))?;
    let run = open_run(plan, dir, new)?;
    let outcome = runner::execute(plan, run, &control)?;
    report(&outcome.path)?;
    if let Some(failure) = outcome.failure {
        return Err(failure);
    }
    match outcome.status {
        RunStatus::Complete => Ok(()),
        RunStatus::Failed(why) if outcome.denied > 0 => Err(Failure::denied(why)),
        RunStatus::Failed(why) => Err(Failure::new(why)),
        RunStatus::Interrupted | RunStatus::Running => {
            Err(Failure::new("The run was interrupted; what was measured is in its folder.")
                .with_hint("The same command goes on with it."))
        }
    }
}

/// The interrupted run of the same plan, or a new one.
fn open_run(plan: &Plan, dir: &Path, new: bool) -> Result<Run, Failure> {
    if !new && let Some(path) = unfinished(plan, dir)? {
        output::talk(&format!("Going on with {}.", path.display()));
        return Ok(Run::open(&path)?);
    }
    let steps = match plan.steps.len() {
        1 => "1 step".to_owned(),
        count => format!("{count} steps"),
    };
    let about = human_time(plan.estimated_s);
    output::talk(&format!("{}: {steps}, about {about}.", plan.suite.title));
    let mut header = RunHeader::new(&plan.suite.name, command_line(), plan.seed);
    header.title.clone_from(&plan.suite.title);
    header.plan = serde_json::to_value(plan)
        .map_err(|error| Failure::new(format!("The plan can't be stored: {error}.")))?;
    header.experiments = facts::experiments(plan);
    Ok(Run::create(dir, header)?)
}

fn unfinished(plan: &Plan, dir: &Path) -> Result<Option<PathBuf>, Failure> {
    for entry in dyno_store::list(dir)?.iter().rev() {
        let same = entry.header.as_ref().is_ok_and(|header| header.plan["hash"] == *plan.hash);
        let goes_on = same
            && match entry.status() {
                Some(RunStatus::Interrupted) => true,
                Some(RunStatus::Failed(_)) => ended_early(plan, &entry.path)?,
                _ => false,
            };
        if goes_on {
            return Ok(Some(entry.path.clone()));
        }
    }
    Ok(None)
}

/// Whether a run that failed has trials that were never made, such as those after the death of a
/// server. Where each of them was made, some with a bad end, a new run begins.
fn ended_early(plan: &Plan, path: &Path) -> Result<bool, Failure> {
    let data = dyno_store::read(path)?;
    let was_made = |step: &Step| {
        data.trials.iter().any(|trial| {
            trial.summary.step == step.id && trial.summary.status != TrialStatus::Interrupted
        })
    };
    let mut trials = plan.steps.iter().filter(|step| matches!(step.action, Action::Trial(_)));
    Ok(trials.any(|step| !was_made(step)))
}

/// The command as it was given, passwords in URLs masked.
fn command_line() -> Vec<String> {
    let redacted = |argument: String| match argument.split_once('=') {
        Some((name, url)) if url.contains("://") => {
            format!("{name}={}", SecretUrl::new(url).redacted())
        }
        _ => argument,
    };
    std::env::args().map(redacted).collect()
}

/// Writes the paper and prints the tables.
fn report(path: &Path) -> Done {
    let data = dyno_store::read(path)?;
    output::data(&super::show::tables(&data));
    output::data(&tpch::answers_lines(&data));
    if data.trials.is_empty() {
        return Ok(());
    }
    for file in write_paper(&[data], path, &ALL)? {
        output::talk(&format!("written: {}", file.display()));
    }
    Ok(())
}
