//! `dyno compare` and `dyno reproduce`, and the end of a run: tables, paper, checks, gates, and the exit code that
//! follows.

use super::paper::{Forms, build_paper, published_tables, write_paper};
use super::run::{RunSettings, run_and_store};
use super::runs::{RunsFolder, find_run, read_runs};
use crate::{CommandResult, LANGUAGES, choice, families};
use dyno_core::nearest;
use dyno_facts::statistics::gate::Gate;
use dyno_facts::{RunHeader, RunStatus, is_masked, mask_secrets};
use dyno_report::{Call, GateResult, Lang, Naming, PairedComparison, Paper, check_ids};
use dyno_runner::databases::add_target;
use dyno_runner::failure::Failure;
use dyno_runner::family::experiment;
use dyno_runner::{RunOutcome, output, signals};
use dyno_store::RunData;
use dyno_suite::{Overrides, Plan};
use std::path::{Path, PathBuf};

#[derive(Debug, clap::Args)]
#[command(after_help = include_str!("../../help/compare.txt").trim_ascii_end())]
pub(crate) struct Arguments {
    /// One run or two: their folders, names, beginnings of names, or `last`.
    #[arg(required = true, num_args = 1..=2, value_name = "RUN")]
    runs: Vec<String>,
    /// A condition on the results, such as `tps.ratio.low > 0.97`; takes the place of the run's own.
    #[arg(long = "gate", value_name = "GATE")]
    gates: Vec<String>,
    /// Print everything: tables, checks and a sentence for each comparison.
    #[arg(long)]
    long: bool,
    /// Language of the output: en or zh.
    #[arg(long, value_name = "LANGUAGE", default_value = "en", value_parser = choice(LANGUAGES))]
    lang: Lang,
    /// Write the paper of the comparison into this folder too.
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
    #[command(flatten)]
    folder: RunsFolder,
}

/// Executes `dyno compare`.
pub(crate) fn run(arguments: &Arguments) -> CommandResult {
    refuse_mistakes(&arguments.gates)?;
    let runs = read_runs(&arguments.folder.dir, &arguments.runs)?;
    if let [a, b] = runs.as_slice()
        && std::fs::canonicalize(&a.path).ok() == std::fs::canonicalize(&b.path).ok()
    {
        let name = a.path.file_name().unwrap_or_default().to_string_lossy();
        let message =
            format!("These are the same run, {name}: it has nothing to be compared with.");
        return Err(Failure::usage(message)
            .with_hint("`dyno compare RUN` compares the targets inside one run."));
    }
    let paper = paper_with_gates(&runs, &arguments.gates);
    let verdict = judge(&paper, &runs, arguments.lang)?;
    let mut papers: Vec<PathBuf> = Vec::new();
    if let Some(out) = &arguments.out {
        let forms = Forms { gates: arguments.gates.clone(), ..Forms::default() };
        write_paper(&runs, out, &forms, |file| papers.push(file.to_owned()))?;
        papers.retain(|file| file.ends_with("paper.html"));
    } else {
        let stored_papers = runs.iter().map(|run| run.path.join("paper.html"));
        papers.extend(stored_papers.filter(|path| path.is_file()));
    }
    if arguments.long {
        let texts = [
            paper.verdict_tables(arguments.lang),
            paper.checks_text(arguments.lang),
            paper.verdicts.text(arguments.lang),
        ];
        texts
            .iter()
            .filter(|text| !text.is_empty())
            .for_each(|text| output::data(&format!("{text}\n")));
    }
    print_digest(&paper, verdict, arguments.lang, &papers)
}

pub(crate) fn refuse_mistakes(gates: &[String]) -> CommandResult {
    for gate in gates {
        gate.parse::<Gate>().map_err(|mistake| {
            Failure::usage(mistake.to_string()).with_hint(mistake.hint.clone())
        })?;
    }
    Ok(())
}

/// The paper of one run or two, with gates instead of those of their suites, if there are any.
fn paper_with_gates(runs: &[RunData], gates: &[String]) -> Paper {
    Paper::named(runs, &published_tables(runs), gates, &Naming::default())
}

/// Judges two runs, or the targets of one: the outer error is that there is nothing to compare.
///
/// # Errors
/// Exit code 4 if acknowledged work was lost or a denied check has found something, 5 if a regression is proven, 3 if
/// nothing is.
fn judge(paper: &Paper, runs: &[RunData], lang: Lang) -> Result<CommandResult, Failure> {
    let truth = judge_truth(paper);
    let has_gate = paper.verdicts.gates.iter().any(|gate| gate.count > 0);
    let is_compared = paper.verdicts.comparisons.iter().any(|pair| !pair.rows.is_empty());
    if truth.is_ok() && !has_gate && !is_compared {
        return Err(nothing_in_common(runs.len()));
    }
    Ok(truth.and_then(|()| judge_claims(paper, lang, |_| true)))
}

/// Judges the gates; if there are none, the comparisons that were requested. A run that asks nothing passes.
///
/// # Errors
/// Exit code 5 if a gate is proven broken or a candidate proven slower, 3 if that is open.
fn judge_claims(
    paper: &Paper,
    lang: Lang,
    is_requested: fn(&PairedComparison) -> bool,
) -> CommandResult {
    if paper.verdicts.gate_result().is_some() {
        return judge_gates(paper, lang);
    }
    if paper.is_rehearsal() && paper.verdicts.comparisons.iter().any(is_requested) {
        let code = GateResult::Inconclusive.exit_code();
        return Err(Failure::with_code(code, "A rehearsal proves nothing.")
            .with_hint("Give the run more time, or leave out --shrink."));
    }
    judge_verdicts(paper, lang, is_requested)
}

/// Prints the lines of a comparison with this verdict, and returns it.
fn print_digest(
    paper: &Paper,
    verdict: CommandResult,
    lang: Lang,
    papers: &[PathBuf],
) -> CommandResult {
    let code = verdict.as_ref().map_or_else(|failure| failure.code, |()| 0);
    let papers: Vec<String> = papers.iter().map(|path| path.display().to_string()).collect();
    output::data(&paper.digest(lang, code, &papers));
    verdict
}

/// The reason why there is nothing to compare.
fn nothing_in_common(runs: usize) -> Failure {
    let reason = match runs {
        1 => "it compares no two targets, or has no complete trial of both",
        _ => {
            "the runs share no measured experiment with the same test, options, scripts and load levels"
        }
    };
    Failure::usage(format!("Nothing can be compared: {reason}.")).with_hint(
        "Compare two runs of the same suite with the same options, or measure two targets in one run: \
         `dyno run SUITE --compare A B`.",
    )
}

fn judge_gates(paper: &Paper, lang: Lang) -> CommandResult {
    let (result, state) = match paper.verdicts.gate_result() {
        None | Some(GateResult::Pass) => return Ok(()),
        Some(result @ GateResult::Broken) => (result, "proven broken"),
        Some(result @ GateResult::Inconclusive) => (result, "inconclusive"),
    };
    let gates = &paper.verdicts.gates;
    let count = gates.iter().filter(|gate| gate.result == result).count();
    let message = format!("{count} of {} gates are {state}.", gates.len());
    let failure = Failure::with_code(result.exit_code(), message);
    if result == GateResult::Broken {
        return Err(failure);
    }
    Err(failure.with_hint(paper.verdicts.remedy().render(lang)))
}

fn judge_verdicts(
    paper: &Paper,
    lang: Lang,
    is_requested: fn(&PairedComparison) -> bool,
) -> CommandResult {
    let comparisons = paper.verdicts.comparisons.iter().filter(|pair| is_requested(pair));
    // A/A comparisons count only if there is no other comparison.
    let is_noise = comparisons.clone().all(|pair| pair.is_aa);
    let counting = comparisons.filter(|pair| !pair.is_aa || is_noise);
    let calls: Vec<Call> = counting.map(PairedComparison::call).collect();
    let slower = calls.iter().filter(|call| **call == Call::Slower).count();
    let undecided = calls.iter().filter(|call| call.is_undecided()).count();
    if slower > 0 {
        let message = format!("A regression is proven in {slower} of {} comparisons.", calls.len());
        return Err(Failure::with_code(GateResult::Broken.exit_code(), message));
    }
    if undecided > 0 {
        let message = format!("{undecided} of {} comparisons are undecided.", calls.len());
        let failure = Failure::with_code(GateResult::Inconclusive.exit_code(), message);
        return Err(failure.with_hint(paper.verdicts.remedy().render(lang)));
    }
    Ok(())
}

pub(crate) fn refuse_unknown_checks(plan: &Plan) -> CommandResult {
    let known_ids = check_ids();
    for id in plan.denied.iter().chain(&plan.allowed) {
        if known_ids.contains(&id.as_str()) {
            continue;
        }
        let hint = match nearest(id, known_ids.iter().copied()) {
            Some(near) => format!("Did you mean `{near}`?"),
            None => "The table of checks in any paper names them all.".to_owned(),
        };
        return Err(plan.check_error(id, format!("There is no check `{id}`."), Some(hint)).into());
    }
    Ok(())
}

/// Length of the output at the end of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum EndLength {
    /// Nothing: the verb prints the verdict itself.
    Verdict,
    /// The answer, what could change it, where the paper is.
    #[default]
    Answer,
    /// Like `Answer`, with room for the results of many tests.
    Screen,
    /// All tables that a terminal has.
    Long,
}

impl EndLength {
    /// Maximum number of lines before those on where the paper is, of 25 in all, or 40 for `Screen`; `None` if nothing
    /// or everything is printed.
    fn max_lines(self) -> Option<usize> {
        match self {
            EndLength::Answer => Some(21),
            EndLength::Screen => Some(34),
            EndLength::Verdict | EndLength::Long => None,
        }
    }
}

/// More targets have no line with their addresses.
const MAX_ADDRESSES: usize = 3;

/// Writes the paper, prints the end of the run, and judges it.
pub(crate) fn report(
    outcome: RunOutcome,
    length: EndLength,
    is_bench: bool,
) -> Result<CommandResult, Failure> {
    let data = dyno_store::read(&outcome.path)?;
    let last_words: String = families().iter().map(|family| (family.last_words)(&data)).collect();
    let (mut truth, mut judged) = (Ok(()), Ok(()));
    if !data.trials.is_empty() {
        let runs = [data];
        let paper = build_paper(&runs);
        if length == EndLength::Long {
            print_results(&paper);
        } else if let Some(max_lines) = length.max_lines() {
            output::data(&paper.ending(Lang::En, max_lines));
        }
        truth = judge_truth(&paper);
        // `dyno bench` reports how fast databases are; no result of it is a failure.
        if !is_bench {
            judged = truth.clone().and_then(|()| {
                judge_claims(&paper, Lang::En, |comparison| comparison.stop.pairs_most > 0)
            });
        }
        write_paper(&runs, &outcome.path, &Forms::default(), |file| {
            if length == EndLength::Long {
                output::talk(&format!("written: {}", file.display()));
            }
        })?;
        if length.max_lines().is_some() {
            print_places(&paper, &runs[0], &outcome.path);
        }
        if length != EndLength::Verdict {
            output::data(&last_words);
        }
    }
    if let Some(failure) = outcome.failure {
        return Ok(Err(failure));
    }
    Ok(match outcome.status {
        RunStatus::Complete => judged,
        RunStatus::Failed(why) if outcome.denied > 0 => Err(Failure::denied(why.to_string())),
        RunStatus::Failed(why) => truth.and(Err(Failure::new(why.to_string()))),
        RunStatus::Interrupted | RunStatus::Running => {
            let message = "The run was interrupted; what was loaded and measured is kept.";
            let failure = if signals::has_come() {
                Failure::interrupted(message)
            } else {
                Failure::new(message)
            };
            Err(failure.with_hint("The same command goes on with it."))
        }
    })
}

/// Prints the addresses of the targets, and where the paper and all checks are.
fn print_places(paper: &Paper, run: &RunData, folder: &Path) {
    let targets = &run.header.targets;
    let mut lines = String::from("\n");
    if targets.len() <= MAX_ADDRESSES {
        let addresses: Vec<String> = targets
            .iter()
            .map(|target| format!("{} is {}", target.name, target.url.redacted()))
            .collect();
        lines += &format!("{}.\n", addresses.join(", "));
    }
    let checks = paper.checks_sentence().line(Lang::En);
    lines += &format!("Paper: {}\n{checks}\n", folder.join("paper.html").display());
    output::data(&lines);
}

/// Prints all tables, checks and verdicts of a run.
pub(crate) fn print_results(paper: &Paper) {
    let texts = [
        paper.terminal(Lang::En),
        paper.checks_text(Lang::En),
        paper.verdicts.text(Lang::En),
        paper.verdicts.gates_text(Lang::En),
    ];
    let texts: Vec<String> = texts.into_iter().filter(|text| !text.is_empty()).collect();
    output::data(&texts.join("\n"));
}

/// Prints what to do next.
pub(crate) fn next_steps() {
    output::data(
        "Suites for your own database: dyno suites; such as\n\
         dyno run rds-mysql-5.6 --target main=mysql://USER@HOST/DATABASE --shrink 0.001\n",
    );
}

/// Checks that no acknowledged work was lost and that no denied check has found something. Both come before gates:
/// figures that are not accepted prove nothing.
fn judge_truth(paper: &Paper) -> CommandResult {
    let findings = paper.lost_work();
    if let Some(first) = findings.first() {
        let suffix = match findings.len() {
            1 => String::new(),
            count => format!(" ({} further findings)", count - 1),
        };
        let message = format!("Acknowledged work was lost: {}{suffix}.", first.render(Lang::En));
        return Err(Failure::denied(message).with_hint(
            "Where that is the expected answer, the fault says `allow_lost = true` or names the targets.",
        ));
    }
    let denied = paper.denied();
    if denied.is_empty() {
        return Ok(());
    }
    let ids: Vec<&str> = denied.iter().map(|check| check.id).collect();
    Err(Failure::denied(format!("Denied checks have found something: {}.", ids.join(", ")))
        .with_hint("The paper says what and what to do; `--allow ID` accepts a finding."))
}

#[derive(Debug, clap::Args)]
#[command(after_help = include_str!("../../help/reproduce.txt").trim_ascii_end())]
pub(crate) struct ReproduceArguments {
    /// A run: its folder, its name, the beginning of its name, or `last`.
    run: String,
    /// Execute it on another server.
    #[arg(long = "target", value_name = "NAME=URL")]
    targets: Vec<String>,
    #[command(flatten)]
    runs: RunsFolder,
    /// Begin again even if there is an interrupted reproduction to continue with.
    #[arg(long)]
    new: bool,
    /// Run the commands of the shell that the stored plan holds; look at them first.
    #[arg(long)]
    allow_commands: bool,
}

/// Executes `dyno reproduce`.
pub(crate) fn reproduce(arguments: &ReproduceArguments) -> CommandResult {
    let first = find_run(&arguments.runs.dir, &arguments.run)?;
    let data = dyno_store::read(&first)?;
    let plan = stored_plan(&data.header, &first)?;
    let mut overrides = Overrides::default();
    for target in &arguments.targets {
        add_target(&mut overrides, target)?;
    }
    let plan = plan.redirected(&overrides)?;
    for change in environment_changes(&data.header) {
        output::talk(&format!("note: {change}"));
    }
    allow_commands(&plan, arguments.allow_commands)?;
    let name = first.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let (dir, new) = (arguments.runs.dir.clone(), arguments.new);
    let settings = RunSettings { dir, new, reproduces: Some(name), ..RunSettings::default() };
    let stored = run_and_store(&plan, &settings)?;
    // What failed or was interrupted is not compared; the findings of gates and checks are reported last.
    if let Err(failure) = &stored.verdict
        && (failure.code == 1 || failure.code >= 128)
    {
        return stored.verdict;
    }
    let reproduction = dyno_store::read(&stored.path)?;
    let runs = [data, reproduction];
    let paper = paper_with_gates(&runs, &[]);
    let verdict = judge(&paper, &runs, Lang::En);
    let papers = [stored.path.join("paper.html")];
    let compared = verdict.and_then(|verdict| print_digest(&paper, verdict, Lang::En, &papers));
    stored.verdict.and(compared)
}

/// A run folder may come from anywhere, and its plan may hold commands of the shell.
fn allow_commands(plan: &Plan, are_allowed: bool) -> CommandResult {
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
    let quoted: Vec<String> =
        commands.iter().map(|command| format!("`{}`", mask_secrets(command))).collect();
    let message = format!(
        "The plan runs commands of the shell on this machine: {}. Nothing was executed.",
        quoted.join(", ")
    );
    Err(Failure::usage(message).with_hint("`--allow-commands` runs them."))
}

fn stored_plan(header: &RunHeader, path: &Path) -> Result<Plan, Failure> {
    Plan::from_header(header).ok_or_else(|| {
        Failure::usage(format!("{} has no plan to execute again.", path.display()))
            .with_hint("A drop-in was run: its command is in run.json as `command_line`.")
    })
}

/// The commands that the plan runs on this machine: whoever has got the run from somebody else should
/// see them.
pub(super) fn commands(plan: &Plan) -> Vec<String> {
    let experiment_commands = plan.experiments.iter().flat_map(|planned| {
        // Options that can't be read are not executed either.
        let family = experiment(families(), plan, planned);
        let family_commands = family.map(|family| family.commands()).unwrap_or_default();
        planned.commands().map(str::to_owned).chain(family_commands).collect::<Vec<_>>()
    });
    let restarts = plan.experiments.iter().any(|planned| planned.restart_each > 0);
    let restart = plan.targets.iter().filter_map(|target| target.restart.as_ref());
    let restart = restart.map(|command| command.expose().to_owned());
    let restart = restart.filter(|_| restarts);
    restart.chain(experiment_commands).collect()
}

/// The facts of this machine and program that an earlier run had otherwise, in sentences: they may be why results
/// differ.
pub(super) fn environment_changes(header: &RunHeader) -> Vec<String> {
    let (earlier, current) = (&header.environment, &dyno_observe::environment());
    let facts = [
        ("The host", &earlier.host, &current.host),
        ("dyno", &earlier.dyno_version, &current.dyno_version),
        ("The binary's checksum", &earlier.binary_sha256, &current.binary_sha256),
        ("The CPU", &earlier.cpu_model, &current.cpu_model),
        ("The kernel", &earlier.kernel, &current.kernel),
        ("The way of the loops to their sockets", &earlier.loops_io, &current.loops_io),
    ];
    let changed =
        facts.iter().filter(|(_, earlier, current)| earlier != current && !earlier.is_empty());
    changed
        .map(|(name, earlier, current)| {
            format!("{name} was {earlier} in the first run and is {current} now.")
        })
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
