//! What a run is worth: whether it counts, and the exit code.

use crate::failure::sentence;
use crate::signals;
use dyno_engine::{Ended, TrialResult};
use dyno_measure::{DataCheck, TpccFacts, Verdict};

/// Why a run can't be used, if so, and what a script is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Worth {
    /// Sentences.
    pub(super) problems: Vec<String>,
    pub(super) code: u8,
}

/// Judges a trial and the checks after it.
pub(super) fn worth(result: &TrialResult, checks: &[DataCheck]) -> Worth {
    let mut problems = Vec::new();
    let counts = result.total.counts();
    match &result.ended {
        Ended::Aborted(error) => {
            problems.push(format!("The run was aborted: {}", sentence(&error.to_string())));
        }
        _ if counts.failed > 0 => {
            problems.push(format!("{} transactions failed with an error.", counts.failed));
        }
        _ if counts.committed == 0 => problems.push("No transaction was committed.".to_owned()),
        _ => {}
    }
    let is_interrupted = result.ended == Ended::Interrupted;
    // Nothing is compared after Ctrl-C, and conditions and audit may be left out.
    let is_unknown = |check: &DataCheck| {
        check.verdict == Verdict::NotMade && check.name == TpccFacts::BOOKS && !is_interrupted
    };
    let unknown = checks.iter().filter(|check| is_unknown(check));
    problems
        .extend(unknown.map(|check| format!("The data could not be checked: {}", check.evidence)));
    let is_denied = checks.iter().any(|check| check.verdict == Verdict::Failed);
    let code = match (is_denied, is_interrupted) {
        (true, _) => 4,
        (false, true) => signals::exit_code(),
        (false, false) => u8::from(!problems.is_empty()),
    };
    let denied = checks.iter().filter(|check| check.verdict == Verdict::Failed);
    problems.extend(denied.map(|check| format!("The check {} failed.", check.name)));
    Worth { problems, code }
}
