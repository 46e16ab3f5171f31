//! `dyno reproduce`.

use super::compare;
use super::run::{Keeping, run_kept};
use super::runs::{RunsFolder, find_run};
use crate::{Done, families};
use dyno_facts::{ExperimentFacts, RunHeader, is_masked, mask_secrets};
use dyno_report::Lang;
use dyno_runner::databases::add_target;
use dyno_runner::failure::Failure;
use dyno_runner::family::experiment;
use dyno_runner::output;
use dyno_suite::{Overrides, Plan};
use std::path::Path;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  dyno reproduce last
  dyno reproduce 2026-11-21T21 --target main=mysql://root@10.0.0.7/db

The plan that is stored with the run is executed again: the same targets, data, load and random streams.
Then both runs are compared. They are not interleaved: what has drifted between them looks like a
difference. Passwords are taken from the places that `dyno run` names, or asked for.

Exit codes are those of `dyno run`, then those of `dyno compare`: 3 but for lost work and gates on values.")]
pub(crate) struct Arguments {
    /// A run: its folder, its name, the beginning of its name, or `last`.
    run: String,
    /// Execute it on another server.
    #[arg(long = "target", value_name = "NAME=URL")]
    targets: Vec<String>,
    #[command(flatten)]
    runs: RunsFolder,
    /// Begin anew even if there is an interrupted reproduction to go on with.
    #[arg(long)]
    new: bool,
    /// Run the commands of the shell that the stored plan holds; look at them first.
    #[arg(long)]
    allow_commands: bool,
}

pub(crate) fn run(arguments: &Arguments) -> Done {
    let first = find_run(&arguments.runs.dir, &arguments.run)?;
    let data = dyno_store::read(&first)?;
    let plan = plan_of(&data.header, &first)?;
    let mut given = Overrides::default();
    for target in &arguments.targets {
        add_target(&mut given, target)?;
    }
    let plan = plan.redirected(&given)?;
    for difference in differences(&data.header) {
        output::talk(&format!("note: {difference}"));
    }
    allow_commands(&plan, arguments.allow_commands)?;
    let name = first.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let keeping =
        Keeping { reproduces: Some(name), ..Keeping::of(&arguments.runs.dir, arguments.new) };
    let kept = run_kept(&plan, &keeping)?;
    // What failed or was interrupted is not compared; what gates and checks say of it is told last.
    if let Err(failure) = &kept.verdict
        && (failure.code == 1 || failure.code >= 128)
    {
        return kept.verdict;
    }
    let again = dyno_store::read(&kept.path)?;
    let runs = [data, again];
    let paper = compare::paper(&runs, &[]);
    let judged = compare::judge(&paper, &runs, Lang::En);
    let papers = [kept.path.join("paper.html")];
    let compared = judged.and_then(|judged| compare::tell(&paper, judged, Lang::En, &papers));
    kept.verdict.and(compared)
}

/// A run folder may come from anywhere, and its plan may hold commands of the shell.
fn allow_commands(plan: &Plan, are_allowed: bool) -> Done {
    let commands = commands(plan);
    if let Some(command) = commands.iter().find(|command| is_masked(command)) {
        let message = format!("The run has not stored the password of its command `{command}`.");
        return Err(Failure::usage(message).with_hint(
            "Run the suite itself; a command that takes its password from a file can be executed again.",
        ));
    }
    if commands.is_empty() || are_allowed {
        for command in commands {
            let command = mask_secrets(&command);
            output::talk(&format!("note: the plan runs a command of the shell here: {command}"));
        }
        return Ok(());
    }
    let told: Vec<String> =
        commands.iter().map(|command| format!("`{}`", mask_secrets(command))).collect();
    let message = format!(
        "The plan runs commands of the shell on this machine: {}. Nothing was executed.",
        told.join(", ")
    );
    Err(Failure::usage(message).with_hint("`--allow-commands` runs them."))
}

fn plan_of(header: &RunHeader, path: &Path) -> Result<Plan, Failure> {
    Plan::of_run(header).ok_or_else(|| {
        Failure::usage(format!("{} has no plan to execute again.", path.display()))
            .with_hint("A drop-in was run: its command stands in run.json as `command_line`.")
    })
}

/// The commands that the plan runs on this machine: whoever has got the run from somebody else should
/// see them.
pub(super) fn commands(plan: &Plan) -> Vec<String> {
    let of = |planned: &ExperimentFacts| {
        // Options that can't be read are not executed either.
        let family = experiment(families(), plan, planned);
        let of_family = family.map(|family| family.commands()).unwrap_or_default();
        planned.commands().map(str::to_owned).chain(of_family).collect::<Vec<_>>()
    };
    let restarts = plan.experiments.iter().any(|planned| planned.restart_each > 0);
    let restart = plan.targets.iter().filter_map(|target| target.restart.as_ref());
    let restart = restart.map(|command| command.expose().to_owned());
    let restart = restart.filter(|_| restarts);
    restart.chain(plan.experiments.iter().flat_map(of)).collect()
}

/// What is not as it was: it may be why results differ.
fn differences(header: &RunHeader) -> Vec<String> {
    let (then, now) = (&header.environment, &dyno_observe::environment());
    let differs = |what: &str, then: &str, now: &str| {
        (then != now && !then.is_empty())
            .then(|| format!("{what} was {then} in the first run and is {now} now."))
    };
    [
        differs("dyno", &then.dyno_version, &now.dyno_version),
        differs("The binary's checksum", &then.binary_sha256, &now.binary_sha256),
        differs("The CPU", &then.cpu_model, &now.cpu_model),
        differs("The kernel", &then.kernel, &now.kernel),
        differs("The way of the loops to their sockets", &then.loops_io, &now.loops_io),
    ]
    .into_iter()
    .flatten()
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_suite::Suite;

    #[test]
    fn commands_of_faults_are_seen() {
        let text = "[suite]\nname = 's'\n[target.main]\nurl = 'mysql://h/a'\n[[experiment]]\nname = 'e'\nworkload = \
                    'tpcc'\ntest = 'bmsql-5.0'\nworkers = 4\nduration_s = 60\nfault = { action = 'command', at_s = 5, \
                    command = 'a', heal_command = 'b', promote = 'n3', promote_command = 'c' }\n";
        let suite = Suite::parse("s.toml", text, &[dyno_tpcc::options::OFFER]).expect("a suite");
        let plan = Plan::build(&suite, &Overrides::default()).expect("a plan");
        assert_eq!(commands(&plan), ["a", "b", "c"]);
        assert!(allow_commands(&plan, false).is_err());
    }
}
