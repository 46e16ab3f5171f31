//! Findings in the evidence: checks and verdicts.

pub mod checks;
pub mod fault;
pub mod verdict;

use crate::evidence::{Evidence, Judgment, Naming};
use dyno_facts::PublishedTable;
use dyno_store::RunData;

impl Judgment {
    /// Judges runs, alongside these published figures, with gates alongside those of the suites, judged in every
    /// experiment.
    pub fn from_runs(
        runs: &[RunData],
        published: &[PublishedTable],
        gates: &[String],
        naming: &Naming<'_>,
    ) -> Judgment {
        let evidence = Evidence::read(runs, published, naming);
        let verdicts = verdict::judge(&evidence, gates);
        let checks = checks::run_checks(&evidence, &verdicts, runs);
        let (evidence, mut verdicts) = checks::attach_check_numbers(evidence, verdicts, &checks);
        verdict::veto::apply(&mut verdicts, &checks);
        Judgment { evidence, verdicts, checks }
    }
}
