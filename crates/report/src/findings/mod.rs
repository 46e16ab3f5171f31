//! What was found in the evidence: checks, verdicts, published figures.

pub(crate) mod checks;
pub(crate) mod comparison;
pub(crate) mod fault;
pub(crate) mod published;
pub(crate) mod verdict;

use crate::evidence::{Paper, distributions};
use dyno_facts::PublishedTable;
use dyno_store::RunData;

impl Paper {
    /// A paper about these runs, beside these published figures.
    pub fn new(runs: &[RunData], published: &[PublishedTable]) -> Paper {
        Paper::gated(runs, published, &[])
    }

    /// The same with gates beside those of the suites, judged in every experiment.
    pub fn gated(runs: &[RunData], published: &[PublishedTable], gates: &[String]) -> Paper {
        let mut paper = Paper::gathered(runs, published);
        verdict::make(&mut paper, gates);
        checks::make(&mut paper, runs);
        // With the numbers of the checks that the points have now.
        paper.comparisons = comparison::comparisons(&paper.experiments);
        paper.beside = published::beside(&paper);
        paper.costs = published::costs(&paper);
        paper.distributions = distributions::distributions(&paper, runs);
        paper
    }
}
