//! `dyno compare` and `dyno reproduce`, and the end of a run: tables, paper, checks, gates, and the exit code that
//! follows.

use super::paper::{Forms, paper_of, published_of, write_paper};
use super::run::{Keeping, run_kept};
use super::runs::{RunsFolder, find_run, read_runs};
use crate::{Done, LANGUAGES, choice, families};
use dyno_core::nearest;
use dyno_facts::statistics::gate::Gate;
use dyno_facts::{ExperimentFacts, RunHeader, RunStatus, is_masked, mask_secrets};
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

pub(crate) fn run(arguments: &Arguments) -> Done {
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
    let paper = paper(&runs, &arguments.gates);
    let verdict = judge(&paper, &runs, arguments.lang)?;
    let mut papers: Vec<PathBuf> = Vec::new();
    if let Some(out) = &arguments.out {
        let forms = Forms { gates: arguments.gates.clone(), ..Forms::default() };
        write_paper(&runs, out, &forms, |file| papers.push(file.to_owned()))?;
        papers.retain(|file| file.ends_with("paper.html"));
    } else {
        let own = runs.iter().map(|run| run.path.join("paper.html"));
        papers.extend(own.filter(|path| path.is_file()));
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

pub(crate) fn refuse_mistakes(gates: &[String]) -> Done {
    for gate in gates {
        gate.parse::<Gate>().map_err(|mistake| {
            Failure::usage(mistake.to_string()).with_hint(mistake.hint.clone())
        })?;
    }
    Ok(())
}

/// The paper of one run or two, with gates instead of those of their suites, if there are any.
fn paper(runs: &[RunData], gates: &[String]) -> Paper {
    Paper::named(runs, &published_of(runs), gates, &Naming::default())
}

/// Judges two runs, or the targets of one: the outer error is that there is nothing to compare.
///
/// # Errors
/// Exit code 4 where acknowledged work was lost or a denied check has found something, 5 where a regression is
/// proven, 3 where nothing is.
fn judge(paper: &Paper, runs: &[RunData], lang: Lang) -> Result<Done, Failure> {
    let truth = judge_truth(paper);
    let has_gate = paper.verdicts.gates.iter().any(|gate| gate.count > 0);
    let is_compared = paper.verdicts.comparisons.iter().any(|of| !of.rows.is_empty());
    if truth.is_ok() && !has_gate && !is_compared {
        return Err(nothing_in_common(runs.len()));
    }
    Ok(truth.and_then(|()| judge_claims(paper, lang, |_| true)))
}

/// Judges the gates; if there are none, the comparisons that were requested. A run that asks nothing passes.
///
/// # Errors
/// Exit code 5 where a gate is proven broken or a candidate proven slower, 3 where that is open.
fn judge_claims(paper: &Paper, lang: Lang, is_asked: fn(&PairedComparison) -> bool) -> Done {
    if paper.verdicts.gate_result().is_some() {
        return judge_gates(paper, lang);
    }
    if paper.is_rehearsal() && paper.verdicts.comparisons.iter().any(is_asked) {
        let code = GateResult::Inconclusive.exit_code();
        return Err(Failure::with_code(code, "A rehearsal proves nothing.")
            .with_hint("Give the run more time, or leave out --shrink."));
    }
    judge_verdicts(paper, lang, is_asked)
}

/// Prints the lines of a comparison with this verdict, and returns it.
fn print_digest(paper: &Paper, verdict: Done, lang: Lang, papers: &[PathBuf]) -> Done {
    let code = verdict.as_ref().map_or_else(|failure| failure.code, |()| 0);
    let papers: Vec<String> = papers.iter().map(|path| path.display().to_string()).collect();
    output::data(&paper.digest(lang, code, &papers));
    verdict
}

/// The reason why there is nothing to compare.
fn nothing_in_common(runs: usize) -> Failure {
    let why = match runs {
        1 => "it compares no two targets, or has no complete trial of both",
        _ => {
            "the runs share no measured experiment with the same test, options, scripts and load levels"
        }
    };
    Failure::usage(format!("Nothing can be compared: {why}.")).with_hint(
        "Compare two runs of the same suite with the same options, or measure two targets in one run: \
         `dyno run SUITE --compare A B`.",
    )
}

fn judge_gates(paper: &Paper, lang: Lang) -> Done {
    let gates = &paper.verdicts.gates;
    let failure = |result: GateResult, state: &str| {
        let count = gates.iter().filter(|gate| gate.result == result).count();
        let message = format!("{count} of {} gates are {state}.", gates.len());
        Failure::with_code(result.exit_code(), message)
    };
    match paper.verdicts.gate_result() {
        None | Some(GateResult::Pass) => Ok(()),
        Some(GateResult::Broken) => Err(failure(GateResult::Broken, "proven broken")),
        Some(GateResult::Inconclusive) => Err(failure(GateResult::Inconclusive, "inconclusive")
            .with_hint(paper.verdicts.remedy().render(lang))),
    }
}

fn judge_verdicts(paper: &Paper, lang: Lang, is_asked: fn(&PairedComparison) -> bool) -> Done {
    let all = || paper.verdicts.comparisons.iter().filter(|of| is_asked(of));
    // A/A comparisons count only if there is no other comparison.
    let is_noise = all().all(|of| of.is_aa);
    let counting = all().filter(|of| !of.is_aa || is_noise);
    let calls: Vec<Call> = counting.map(PairedComparison::call).collect();
    let count = |is: fn(Call) -> bool| calls.iter().filter(|call| is(**call)).count();
    let slower = count(|call| call == Call::Slower);
    let undecided = count(Call::is_undecided);
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

pub(crate) fn refuse_unknown_checks(plan: &Plan) -> Done {
    let known = check_ids();
    for id in plan.denied.iter().chain(&plan.allowed) {
        if known.contains(&id.as_str()) {
            continue;
        }
        let hint = match nearest(id, known.iter().copied()) {
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
    /// Nothing: the verb tells the verdict itself.
    Verdict,
    /// A sentence for each result, and what they are worth.
    Sentences,
    /// A screen: results, caveats in words, where the paper is, what to do next.
    Screen,
    /// Results, all checks with findings, verdicts.
    Short,
    /// All tables that a terminal has.
    #[default]
    Long,
}

/// Caveats that have a line on a screen.
const MOST_CAVEATS: usize = 3;

/// Writes the paper, prints tables, checks and gates, and says how the run is to be judged.
pub(crate) fn report(outcome: RunOutcome, length: EndLength) -> Result<Done, Failure> {
    let data = dyno_store::read(&outcome.path)?;
    // The last word of the output.
    let last: String = families().iter().map(|family| (family.last_words)(&data)).collect();
    let (mut truth, mut judged) = (Ok(()), Ok(()));
    if !data.trials.is_empty() {
        let runs = [data];
        let paper = paper_of(&runs);
        match length {
            EndLength::Sentences => {
                let named: Vec<String> = runs[0]
                    .header
                    .targets
                    .iter()
                    .map(|target| format!("{} is {}", target.name, target.url.redacted()))
                    .collect();
                // Who reads the first line only must not take a rehearsal's figures for results.
                output::data(&format!("{} {}.\n", paper.standing(Lang::En), named.join(", ")));
                output::data(&paper.results_text(Lang::En));
                let file = outcome.path.join("paper.html");
                output::data(&format!("The paper: {}\n", file.display()));
            }
            EndLength::Verdict => {}
            _ => print_results(&paper, length),
        }
        if matches!(length, EndLength::Short | EndLength::Long) {
            output::data(&last);
        }
        truth = judge_truth(&paper);
        // `dyno bench` reports how fast databases are; no result of it is a failure.
        if length != EndLength::Sentences {
            let is_planned = |of: &PairedComparison| of.stop.pairs_most > 0;
            judged = truth.clone().and_then(|()| judge_claims(&paper, Lang::En, is_planned));
        }
        let announce = |file: &Path| {
            if !matches!(length, EndLength::Screen | EndLength::Verdict) {
                output::talk(&format!("written: {}", file.display()));
            }
        };
        write_paper(&runs, &outcome.path, &Forms::default(), announce)?;
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
            let failure = match signals::has_come() {
                true => Failure::interrupted(message),
                false => Failure::new(message),
            };
            Err(failure.with_hint("The same command goes on with it."))
        }
    })
}

/// Prints the results of a run on the terminal.
pub(crate) fn print_results(paper: &Paper, length: EndLength) {
    output::data(&match length {
        EndLength::Long => paper.terminal(Lang::En),
        _ => paper.brief(Lang::En),
    });
    let texts = [
        match length {
            EndLength::Screen => paper.checks_brief(Lang::En, MOST_CAVEATS),
            _ => paper.checks_text(Lang::En),
        },
        paper.verdicts.text(Lang::En),
        paper.verdicts.gates_text(Lang::En),
    ];
    for text in texts.iter().filter(|text| !text.is_empty()) {
        output::data(&format!("\n{text}"));
    }
}

/// Prints the place of a run's paper, and what to do next.
pub(crate) fn next_steps(run: &Path) {
    let paper = run.join("paper.html");
    let paper = paper.canonicalize().unwrap_or(paper);
    output::data(&format!(
        "\nThe paper, for a browser: {}\nAll tables: dyno show last; suites for your own database: dyno suites; such as\n\
         dyno run rds-mysql-5.6 --target main=mysql://USER@HOST/DATABASE --shrink 0.001\n",
        paper.display()
    ));
}

/// Checks that no acknowledged work was lost and that no denied check has found something. Both come before gates:
/// figures that are not accepted prove nothing.
fn judge_truth(paper: &Paper) -> Done {
    let lost = paper.lost_work();
    if let Some(first) = lost.first() {
        let more = match lost.len() {
            1 => String::new(),
            all => format!(" ({} further findings)", all - 1),
        };
        let message = format!("Acknowledged work was lost: {}{more}.", first.render(Lang::En));
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

pub(crate) fn reproduce(arguments: &ReproduceArguments) -> Done {
    let first = find_run(&arguments.runs.dir, &arguments.run)?;
    let data = dyno_store::read(&first)?;
    let plan = plan_of(&data.header, &first)?;
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
    let keeping = Keeping { dir, new, reproduces: Some(name), ..Keeping::default() };
    let stored = run_kept(&plan, &keeping)?;
    // What failed or was interrupted is not compared; what gates and checks say of it is told last.
    if let Err(failure) = &stored.verdict
        && (failure.code == 1 || failure.code >= 128)
    {
        return stored.verdict;
    }
    let again = dyno_store::read(&stored.path)?;
    let runs = [data, again];
    let paper = self::paper(&runs, &[]);
    let verdict = judge(&paper, &runs, Lang::En);
    let papers = [stored.path.join("paper.html")];
    let compared = verdict.and_then(|verdict| print_digest(&paper, verdict, Lang::En, &papers));
    stored.verdict.and(compared)
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
    let quoted: Vec<String> =
        commands.iter().map(|command| format!("`{}`", mask_secrets(command))).collect();
    let message = format!(
        "The plan runs commands of the shell on this machine: {}. Nothing was executed.",
        quoted.join(", ")
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
    let commands_of = |planned: &ExperimentFacts| {
        // Options that can't be read are not executed either.
        let family = experiment(families(), plan, planned);
        let family_commands = family.map(|family| family.commands()).unwrap_or_default();
        planned.commands().map(str::to_owned).chain(family_commands).collect::<Vec<_>>()
    };
    let restarts = plan.experiments.iter().any(|planned| planned.restart_each > 0);
    let restart = plan.targets.iter().filter_map(|target| target.restart.as_ref());
    let restart = restart.map(|command| command.expose().to_owned());
    let restart = restart.filter(|_| restarts);
    restart.chain(plan.experiments.iter().flat_map(commands_of)).collect()
}

/// The facts of this machine and program that an earlier run had otherwise, in sentences: they may be why results
/// differ.
pub(super) fn environment_changes(header: &RunHeader) -> Vec<String> {
    let (then, now) = (&header.environment, &dyno_observe::environment());
    let facts = [
        ("The host", &then.host, &now.host),
        ("dyno", &then.dyno_version, &now.dyno_version),
        ("The binary's checksum", &then.binary_sha256, &now.binary_sha256),
        ("The CPU", &then.cpu_model, &now.cpu_model),
        ("The kernel", &then.kernel, &now.kernel),
        ("The way of the loops to their sockets", &then.loops_io, &now.loops_io),
    ];
    let changed = facts.iter().filter(|(_, then, now)| then != now && !then.is_empty());
    let sentence = |(name, then, now): &(&str, &String, &String)| {
        format!("{name} was {then} in the first run and is {now} now.")
    };
    changed.map(sentence).collect()
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
