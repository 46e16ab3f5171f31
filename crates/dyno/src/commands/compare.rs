//! `dyno compare`.

use super::paper::{published_of, report_failure};
use super::runs::{RunsFolder, read_runs};
use crate::Done;
use crate::{LANGUAGES, choice};
use dyno_facts::TrialStatus;
use dyno_report::{Call, GateResult, Lang, PairedComparison, Paper};
use dyno_runner::failure::Failure;
use dyno_runner::output;
use dyno_statistics::gate::Gate;
use dyno_store::{RunData, TrialData};
use std::collections::BTreeSet;
use std::path::PathBuf;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  dyno compare RUN_A RUN_B                          what has changed from A to B?
  dyno compare RUN_A RUN_B --gate 'tps.ratio.low > 0.97' --gate 'p99_ms < 20'
  dyno compare last                                 the comparisons inside one run
  dyno compare last --long                          with tables, checks and sentences

Ratios are B by A, of the experiments, load levels and targets that both runs have. Two runs are not
interleaved: what has drifted between them looks like a difference, so no ratio of two runs is a verdict, and
they end with 3; `dyno run --compare A B` measures both in pairs. At most 15 lines are printed: who is
compared, a line for each metric of each comparison (direction, ratio with its 95 % interval, medians,
deviations of the trials, pairs), the statement or kind of transaction whose mean latency changed most, which
checks forbid the claim, gates, and what the exit code means. Decided metrics come first, even where
throughput is undecided: the line of another metric then says how throughput stands.

Exit codes: 0 fine, 1 failed, 2 wrong usage or nothing to compare, 3 inconclusive, 4 acknowledged work was
lost or a denied check has found something, 5 a regression is proven. With --gate the gates decide, else
whether B is faster, slower or equivalent by the first metric of each comparison.")]
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
        return Err(same_run(a));
    }
    let paper = paper(&runs, &arguments.gates);
    let judged = judge(&paper, &runs, arguments.lang)?;
    let mut papers: Vec<PathBuf> = Vec::new();
    if let Some(out) = &arguments.out {
        std::fs::create_dir_all(out).map_err(|error| {
            Failure::new(format!("The folder {} can't be made: {error}.", out.display()))
                .with_hint("Name another folder with `--out FOLDER`.")
        })?;
        papers.extend(paper.write_all(out).map_err(report_failure)?.into_iter().next());
    } else {
        let own = runs.iter().map(|run| run.path.join("paper.html"));
        papers.extend(own.filter(|path| path.is_file()));
    }
    if arguments.long {
        let said = [
            paper.verdict_tables(arguments.lang),
            paper.checks_text(arguments.lang),
            paper.verdicts.text(arguments.lang),
        ];
        said.iter()
            .filter(|text| !text.is_empty())
            .for_each(|text| output::data(&format!("{text}\n")));
    }
    tell(&paper, judged, arguments.lang, &papers)
}

fn same_run(run: &RunData) -> Failure {
    let name = run.path.file_name().unwrap_or_default().to_string_lossy();
    Failure::usage(format!("These are the same run, {name}: it has nothing to be compared with."))
        .with_hint("`dyno compare RUN` compares the targets inside one run.")
}

pub(crate) fn refuse_mistakes(gates: &[String]) -> Done {
    for gate in gates {
        gate.parse::<Gate>().map_err(|mistake| {
            Failure::usage(mistake.to_string()).with_hint(mistake.hint.clone())
        })?;
    }
    Ok(())
}

/// The paper of one run or two, with gates in place of those of their suites, if there are any.
pub(crate) fn paper(runs: &[RunData], gates: &[String]) -> Paper {
    Paper::gated(runs, &published_of(runs), gates)
}

/// How two runs, or the targets of one, stand: the outer error is that there is nothing to compare.
///
/// # Errors
/// Exit code 4 where acknowledged work was lost or a denied check has found something, 5 where a regression is
/// proven, 3 where nothing is.
pub(crate) fn judge(paper: &Paper, runs: &[RunData], lang: Lang) -> Result<Done, Failure> {
    let truth = super::ending::judge_truth(paper);
    let has_gate = paper.verdicts.gates.iter().any(|gate| gate.count > 0);
    let is_compared = paper.verdicts.comparisons.iter().any(|of| !of.rows.is_empty());
    if truth.is_ok() && !has_gate && !is_compared {
        return Err(nothing_in_common(runs));
    }
    if truth.is_ok() && !has_gate && paper.is_rehearsal() {
        let code = GateResult::Inconclusive.exit_code();
        return Ok(Err(Failure::with_code(code, "A rehearsal proves nothing.")
            .with_hint("Give the run more time, or leave out --shrink.")));
    }
    Ok(truth.and_then(|()| judge_claims(paper, lang, |_| true)))
}

/// How gates stand, and where there are none, those comparisons that `counts` names.
///
/// # Errors
/// Exit code 5 where a gate is proven broken or a candidate proven slower, 3 where that is open.
pub(crate) fn judge_claims(
    paper: &Paper,
    lang: Lang,
    counts: fn(&PairedComparison) -> bool,
) -> Done {
    match paper.verdicts.gate_result() {
        Some(_) => judge_gates(paper, lang),
        None => judge_verdicts(paper, lang, counts),
    }
}

/// Prints the lines of a comparison that was judged so.
///
/// # Errors
/// Those of the judgement.
pub(crate) fn tell(paper: &Paper, judged: Done, lang: Lang, papers: &[PathBuf]) -> Done {
    let code = judged.as_ref().map_or_else(|failure| failure.code, |()| 0);
    let papers: Vec<String> = papers.iter().map(|path| path.display().to_string()).collect();
    output::data(&paper.digest(lang, code, &papers));
    judged
}

/// Why there is nothing to compare, by what the runs have measured.
fn nothing_in_common(runs: &[RunData]) -> Failure {
    let measured = |run: &RunData| -> BTreeSet<String> {
        let complete = |trial: &&TrialData| trial.summary.status == TrialStatus::Complete;
        run.trials.iter().filter(complete).map(|trial| trial.summary.experiment.clone()).collect()
    };
    let told = |run: &RunData, all: &BTreeSet<String>| {
        let name = run.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let names: Vec<&str> = all.iter().map(String::as_str).collect();
        match names.is_empty() {
            true => format!("{name} has no complete trial"),
            false => format!("{name} has measured {}", names.join(", ")),
        }
    };
    let all: Vec<BTreeSet<String>> = runs.iter().map(measured).collect();
    let each: Vec<String> = runs.iter().zip(&all).map(|(run, own)| told(run, own)).collect();
    let why = match all.as_slice() {
        [a, b] if a.is_disjoint(b) => "They share no experiment.",
        [_, _] => "What they share differs in test, options, scripts or load levels.",
        _ => "It compares no two targets.",
    };
    Failure::usage(format!("Nothing can be compared: {}. {why}", each.join(", ")))
        .with_hint(
            "Compare two runs of the same suite with the same options, or measure two targets in one run: \
             `dyno run SUITE --compare A B`.",
        )
}

fn judge_gates(paper: &Paper, lang: Lang) -> Done {
    let count = |result: GateResult| {
        paper.verdicts.gates.iter().filter(|gate| gate.result == result).count()
    };
    let of = paper.verdicts.gates.len();
    match paper.verdicts.gate_result() {
        None | Some(GateResult::Pass) => Ok(()),
        Some(GateResult::Broken) => Err(Failure::with_code(
            GateResult::Broken.exit_code(),
            format!("{} of {of} gates are proven broken.", count(GateResult::Broken)),
        )),
        Some(GateResult::Inconclusive) => Err(Failure::with_code(
            GateResult::Inconclusive.exit_code(),
            format!("{} of {of} gates are inconclusive.", count(GateResult::Inconclusive)),
        )
        .with_hint(paper.verdicts.remedy().render(lang))),
    }
}

fn judge_verdicts(paper: &Paper, lang: Lang, counts: fn(&PairedComparison) -> bool) -> Done {
    let all = || paper.verdicts.comparisons.iter().filter(|of| counts(of));
    // What a system differs from itself counts only where nothing else is compared.
    let is_noise = all().all(|of| of.is_aa);
    let told = all().filter(|of| !of.is_aa || is_noise);
    // A load level without a pair that counts is undecided too.
    let call = |of: &PairedComparison| of.rows.first().map_or(Call::TooFewPairs, |row| row.call);
    let calls: Vec<Call> = told.map(call).collect();
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
