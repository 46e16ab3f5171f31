//! What a run is worth: whether it counts, and the exit code.

use dyno_core::ErrorClass;
use dyno_engine::{TrialEnd, TrialResult};
use dyno_facts::{CheckVerdict, DataCheck};
use dyno_runner::failure::sentence;
use dyno_runner::signals;
use dyno_tpcc::family::is_missing;

/// Why a run can't be used, if so, and what a script is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Worth {
    /// Sentences.
    pub(super) problems: Vec<String>,
    pub(super) code: u8,
}

/// Whether transactions failed for anything but a lost connection: a server that was restarted, or
/// another one that has taken over. Terminals connect again, and such a run has passed.
fn has_failures(result: &TrialResult) -> bool {
    let count = |classes: &[ErrorClass]| -> u64 {
        let errors = result.total.errors.0.iter();
        errors.filter(|error| classes.contains(&error.class)).map(|error| error.count).sum()
    };
    // Conflicts are only failures when all retries are used up; each lost connection failed once.
    count(&[ErrorClass::Other, ErrorClass::Constraint]) > 0
        || result.total.counts().failed > count(&[ErrorClass::ConnectionLost])
}

pub(super) fn worth(result: &TrialResult, checks: &[DataCheck]) -> Worth {
    let mut problems = Vec::new();
    let counts = result.total.counts();
    match &result.ended {
        TrialEnd::Aborted(error) => {
            problems.push(format!("The run was aborted: {}", sentence(&error.to_string())));
        }
        ended if ended.failure().is_some() => problems.extend(ended.failure()),
        _ if counts.failed > 0 && has_failures(result) => {
            problems.push(format!("{} transactions failed with an error.", counts.failed));
        }
        _ if counts.committed == 0 => problems.push("No transaction was committed.".to_owned()),
        _ => {}
    }
    let is_interrupted = result.ended == TrialEnd::Interrupted;
    // Nothing is compared after Ctrl-C.
    let unknown = checks.iter().filter(|check| is_missing(check) && !is_interrupted);
    problems
        .extend(unknown.map(|check| {
            format!("The check {} could not be made: {}", check.name, check.evidence)
        }));
    let is_denied = checks.iter().any(|check| check.verdict == CheckVerdict::Failed);
    let code = match (is_denied, is_interrupted) {
        (true, _) => 4,
        (false, true) => signals::exit_code(),
        (false, false) => u8::from(!problems.is_empty()),
    };
    let denied = checks.iter().filter(|check| check.verdict == CheckVerdict::Failed);
    problems.extend(denied.map(|check| format!("The check {} failed.", check.name)));
    Worth { problems, code }
}
