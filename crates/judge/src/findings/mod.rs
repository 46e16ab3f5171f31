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
    pub fn of(
        runs: &[RunData],
        published: &[PublishedTable],
        gates: &[String],
        naming: &Naming<'_>,
    ) -> Judgment {
        let evidence = Evidence::read(runs, published, naming);
        let verdicts = verdict::judge(&evidence, gates);
        let checks = checks::make(&evidence, &verdicts, runs);
        let (evidence, mut verdicts) = checks::marked(evidence, verdicts, &checks);
        verdict::veto::apply(&mut verdicts, &checks);
        Judgment { evidence, verdicts, checks }
    }
}
