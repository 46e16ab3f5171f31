//! The end of a run: tables, paper, checks, gates, and the exit code that follows.

use super::compare::judge_claims;
use super::paper::{Forms, paper_of, write_paper};
use crate::{Done, families};
use dyno_core::nearest;
use dyno_facts::RunStatus;
use dyno_report::{Call, Lang, PairedComparison, Paper, check_ids};
use dyno_runner::RunOutcome;
use dyno_runner::failure::Failure;
use dyno_runner::{output, signals};
use dyno_suite::Plan;
use std::path::Path;

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

/// How much is printed at the end of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EndLength {
    /// A sentence for each result, and what they are worth.
    Sentences,
    /// A screen: results, caveats in words, where the paper is, what to do next.
    Screen,
    /// Results, all checks with findings, verdicts.
    Short,
    /// All tables that a terminal has.
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
            _ => print_results(&paper, length),
        }
        if matches!(length, EndLength::Short | EndLength::Long) {
            output::data(&last);
        }
        truth = judge_truth(&paper);
        // Others measure what there is: a difference is no failure of theirs.
        let claims = || judge_claims(&paper, Lang::En, |of| of.stop.is_until_decided);
        judged = truth.clone().and_then(|()| claims());
        let is_regression = |of: &PairedComparison| {
            !of.is_aa && of.rows.first().is_some_and(|row| row.call == Call::Slower)
        };
        if judged.is_ok() && paper.verdicts.comparisons.iter().any(is_regression) {
            output::talk(
                "This run does not end with 5: without a gate it measures, and `dyno compare last` judges.",
            );
        }
        let tell = |file: &Path| {
            if length != EndLength::Screen {
                output::talk(&format!("written: {}", file.display()));
            }
        };
        write_paper(&runs, &outcome.path, &Forms::default(), tell)?;
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

/// What the terminal shows of a run's results.
pub(crate) fn print_results(paper: &Paper, length: EndLength) {
    output::data(&match length {
        EndLength::Long => paper.terminal(Lang::En),
        _ => paper.brief(Lang::En),
    });
    let told = [
        match length {
            EndLength::Screen => paper.checks_brief(Lang::En, MOST_CAVEATS),
            _ => paper.checks_text(Lang::En),
        },
        paper.verdicts.text(Lang::En),
        paper.verdicts.gates_text(Lang::En),
    ];
    for text in told.iter().filter(|text| !text.is_empty()) {
        output::data(&format!("\n{text}"));
    }
}

/// Where the paper of a run is, and what comes next.
pub(crate) fn next_steps(run: &Path) {
    let paper = run.join("paper.html");
    let paper = paper.canonicalize().unwrap_or(paper);
    output::data(&format!(
        "\nThe paper, for a browser: {}\nAll tables: dyno show last; suites for your own database: dyno suites; such as\n\
         dyno run rds-mysql-5.6 --target main=mysql://USER@HOST/DATABASE --shrink 0.001\n",
        paper.display()
    ));
}

/// Whether acknowledged work was lost, or a check that is denied has found something. Both come before gates:
/// figures that are not accepted prove nothing.
pub(crate) fn judge_truth(paper: &Paper) -> Done {
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
