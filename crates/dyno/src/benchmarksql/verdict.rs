//! What a run is worth: the books and the conditions, before and after.

use crate::databases;
use crate::failure::{Failure, sentence};
use crate::signals;
use dyno_core::{Driver, Session};
use dyno_engine::{Ended, TrialResult};
use dyno_tpcc::Tpcc;
use dyno_tpcc::books::{Books, books};
use dyno_tpcc::check::{Stage, Verdict, check};

/// What is looked at before and after.
pub(super) struct Look {
    pub(super) books: Books,
    pub(super) violations: Vec<Verdict>,
}

/// The books, and the conditions that are violated.
pub(super) fn look<D: Driver>(driver: &D, with_conditions: bool) -> Result<Look, Failure> {
    let looked = databases::run(async {
        let mut session = driver.connect(0).await?;
        let books = books(&mut session).await?;
        let verdicts =
            if with_conditions { check(&mut session, Stage::Used).await? } else { Vec::new() };
        session.close().await;
        let violations = verdicts.into_iter().filter(|verdict| !verdict.holds()).collect();
        Ok(Look { books, violations })
    });
    looked.map_err(|error| Failure::from(&error).at("The data could not be checked"))
}

pub(super) fn violated(violations: &[Verdict], when: &str) -> Failure {
    let lines: Vec<String> = violations.iter().map(condition_line).collect();
    Failure::denied(format!("The database is not consistent {when}:\n{}", lines.join("\n")))
        .with_hint("destroy the database and build it again")
}

fn condition_line(verdict: &Verdict) -> String {
    let Verdict { condition, violations, keys } = verdict;
    let keys = keys.join("; ");
    format!(
        "condition {} is violated {violations} times: {} ({keys})",
        condition.id, condition.rule
    )
}

/// What a run is worth.
pub(super) struct Verdicts {
    /// For standard error.
    pub(super) lines: Vec<String>,
    /// Why the result can't be used.
    pub(super) why: Option<String>,
    pub(super) code: u8,
}

pub(super) fn verdict(
    workload: &Tpcc,
    result: &TrialResult,
    before: &Books,
    after: Result<Look, Failure>,
) -> Verdicts {
    let mut lines = Vec::new();
    let denied = match after {
        Ok(after) => {
            let problems = workload.reconcile(before, &after.books);
            if problems.is_empty() {
                lines
                    .push("reconciliation: the database holds what it has acknowledged".to_owned());
            }
            for problem in &problems {
                lines.push(format!("reconciliation: {}", sentence(problem)));
            }
            let violations: Vec<String> = after.violations.iter().map(condition_line).collect();
            lines.extend(violations.iter().cloned());
            problems.into_iter().chain(violations).next()
        }
        Err(failure) => {
            lines.push(format!("error: {}", failure.message));
            Some(failure.message)
        }
    };
    let counts = result.total.counts();
    let failed = match &result.ended {
        Ended::Aborted(error) => Some(format!("The run was aborted: {error}.")),
        _ if counts.failed > 0 => {
            Some(format!("{} transactions failed with an error.", counts.failed))
        }
        _ if counts.committed == 0 => Some("No transaction was committed.".to_owned()),
        _ => None,
    };
    lines.extend(failed.iter().map(|why| format!("error: {why}")));
    let code = match (&denied, &result.ended, &failed) {
        (Some(_), ..) => 4,
        (None, Ended::Interrupted, _) => signals::exit_code(),
        (None, _, Some(_)) => 1,
        (None, _, None) => 0,
    };
    Verdicts { lines, why: denied.or(failed), code }
}
