//! What was found in the evidence: checks, verdicts, published figures.

pub(crate) mod checks;
pub(crate) mod comparison;
pub(crate) mod fault;
pub(crate) mod published;
pub(crate) mod verdict;

use crate::evidence::{Edition, Evidence, Naming, Paper, distributions};
use dyno_facts::PublishedTable;
use dyno_store::RunData;

impl Paper {
    /// A paper about these runs, beside these published figures.
    pub fn new(runs: &[RunData], published: &[PublishedTable]) -> Paper {
        Paper::gated(runs, published, &[])
    }

    /// The same with gates beside those of the suites, judged in every experiment.
    pub fn gated(runs: &[RunData], published: &[PublishedTable], gates: &[String]) -> Paper {
        Paper::named(runs, published, gates, &Naming::default())
    }

    /// The same in the words of a publisher, with names of targets in one language.
    pub fn named(
        runs: &[RunData],
        published: &[PublishedTable],
        gates: &[String],
        naming: &Naming<'_>,
    ) -> Paper {
        let evidence = Evidence::read(runs, published, naming);
        let verdicts = verdict::judge(&evidence, gates);
        let checks = checks::make(&evidence, &verdicts, runs);
        let (evidence, mut verdicts) = checks::marked(evidence, verdicts, &checks);
        verdict::veto::apply(&mut verdicts, &checks);
        Paper {
            comparisons: comparison::comparisons(&evidence.experiments),
            beside: published::beside(&evidence),
            costs: published::costs(&evidence),
            distributions: distributions::distributions(&evidence, runs),
            edition: Edition::Full,
            evidence,
            verdicts,
            checks,
        }
    }
}
