//! `dyno compare`.

use super::paper::{published_of, report_failure};
use super::{RUNS, read_runs};
use crate::Done;
use crate::choice::{LANGUAGES, choice};
use dyno_report::{Call, GateResult, Lang, PairOrder, Paper};
use dyno_runner::failure::Failure;
use dyno_runner::output;
use dyno_statistics::gate::Gate;
use dyno_statistics::ratio::LEAST_PAIRS;
use dyno_statistics::{ALPHA, rank};
use dyno_store::RunData;
use std::path::PathBuf;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  dyno compare RUN_A RUN_B                          what has changed from A to B?
  dyno compare RUN_A RUN_B --gate 'tps.ratio.low > 0.97' --gate 'p99_ms < 20'
  dyno compare last                                 the comparisons inside one run

Ratios are B by A, of the experiments, load levels and targets that both runs have. Two runs are not
interleaved, so what has drifted between them looks like a difference; `dyno run --compare A B` measures
both in pairs.

Exit codes: 0 fine, 1 failed, 2 wrong usage, 3 inconclusive, 5 a regression is proven. With --gate the
gates decide, else whether B is faster, slower or equivalent by the first metric of each comparison.")]
pub(crate) struct Arguments {
    /// One run or two: their folders, names, beginnings of names, or `last`.
    #[arg(required = true, num_args = 1..=2, value_name = "RUN")]
    runs: Vec<String>,
    /// A condition on the results, such as `tps.ratio.low > 0.97`.
    #[arg(long = "gate", value_name = "GATE")]
    gates: Vec<String>,
    /// Language of the output: en or zh.
    #[arg(long, value_name = "LANGUAGE", default_value = "en", value_parser = choice(LANGUAGES))]
    lang: Lang,
    /// Write the paper of the comparison into this folder too.
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
    /// Folder in which runs are kept.
    #[arg(long, value_name = "FOLDER", default_value = RUNS)]
    dir: PathBuf,
}

pub(crate) fn run(arguments: &Arguments) -> Done {
    refuse_mistakes(&arguments.gates)?;
    let runs = read_runs(&arguments.dir, &arguments.runs)?;
    let paper = paper(&runs, &arguments.gates);
    if let Some(out) = &arguments.out {
        std::fs::create_dir_all(out)
            .map_err(|error| Failure::new(format!("{} can't be made: {error}.", out.display())))?;
        for file in paper.write_all(out).map_err(report_failure)? {
            output::talk(&format!("written: {}", file.display()));
        }
    }
    tell(&paper, arguments.lang)
}

pub(crate) fn refuse_mistakes(gates: &[String]) -> Done {
    for gate in gates {
        gate.parse::<Gate>().map_err(|mistake| {
            Failure::usage(mistake.to_string()).with_hint(mistake.hint.clone())
        })?;
    }
    Ok(())
}

/// The paper of one run or two, with gates beside those of their suites.
pub(crate) fn paper(runs: &[RunData], gates: &[String]) -> Paper {
    Paper::gated(runs, &published_of(runs), gates)
}

/// Prints what a paper says of its targets, and judges it.
///
/// # Errors
/// Exit code 5 where a regression is proven, 3 where nothing is, 2 where nothing is compared.
pub(crate) fn tell(paper: &Paper, lang: Lang) -> Done {
    output::data(&paper.verdicts.text(lang));
    output::data(&paper.verdicts.gates_text(lang));
    let is_in_blocks = paper.verdicts.comparisons.iter().any(|of| of.order == PairOrder::Blocks);
    if is_in_blocks {
        output::talk(
            "warning: the trials were not interleaved: what has drifted between them looks like a difference.\nhint: `dyno run SUITE --compare A B` measures both in pairs.",
        );
    }
    match paper.verdicts.gate_result() {
        Some(_) => judge_gates(paper),
        None => judge_verdicts(paper),
    }
}

/// Whether the gates of a paper are kept.
///
/// # Errors
/// Exit code 5 where one is proven broken, 3 where one is inconclusive.
pub(crate) fn judge_gates(paper: &Paper) -> Done {
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
        .with_hint(remedy(paper))),
    }
}

fn judge_verdicts(paper: &Paper) -> Done {
    // What a system differs from itself counts only where nothing else is compared.
    let is_noise = paper.verdicts.comparisons.iter().all(|of| of.is_aa);
    let told = paper.verdicts.comparisons.iter().filter(|of| !of.is_aa || is_noise);
    let calls: Vec<Call> = told.filter_map(|of| Some(of.rows.first()?.call)).collect();
    if calls.is_empty() {
        return Err(Failure::usage("Nothing can be compared: no experiment and load level has complete trials of two targets under the same test, options and scripts.")
            .with_hint("Compare two runs of the same suite, or run one with `--compare A B`."));
    }
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
        return Err(failure.with_hint(remedy(paper)));
    }
    Ok(())
}

/// What would decide the comparisons that are open, computed from their pairs.
fn remedy(paper: &Paper) -> String {
    /// Beyond so many pairs longer windows are the better remedy.
    const MOST_PAIRS: usize = 100;
    let rows = paper.verdicts.comparisons.iter().filter_map(|of| of.rows.first());
    let needed = rows.filter(|row| row.call.is_undecided()).map(|row| match row.call {
        Call::TooFewPairs => LEAST_PAIRS,
        Call::Unproven => rank::least_count(ALPHA / paper.verdicts.comparisons.len() as f64),
        _ => row.pairs_needed.unwrap_or(usize::MAX),
    });
    match needed.max() {
        None => "More repeats narrow the interval of a value.".to_owned(),
        Some(pairs) if pairs <= MOST_PAIRS => {
            format!("About {pairs} pairs would decide it if trials vary as they did: `--pairs {pairs}`.")
        }
        Some(_) => "The trials vary so much that pairs alone don't help: longer windows, or a quieter machine for the load generator.".to_owned(),
    }
}
