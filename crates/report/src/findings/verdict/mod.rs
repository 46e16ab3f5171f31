//! Which target is faster: comparisons of pairs of trials, gates, scaling, steadiness.
//!
//! Ratios are corrected (Holm) over all that a paper judges, held against the noise floor of an A/A
//! comparison, and refused under 4 pairs or above 5 % of variation. `dyno run` and `dyno compare` take
//! their exit codes from here: 0 passed, 3 inconclusive, 5 proven broken. Of a search only confirmed rates
//! that were held each time are results. The promises (5 % of false positives with drift, effects of 3 %
//! found) are kept by simulations in `crates/statistics/tests/simulated.rs`; where a half-width ends the
//! repetition, up to 8 % of comparisons of equal systems find a difference there.

mod comparisons;
mod gates;
mod pairs;
mod scaling;
mod steady;
mod words;

pub(crate) use words::{bounds, ratio};

use crate::evidence::{Evidence, GateResult, PairedComparison, Verdicts, figure_of};
use crate::text::{Lang, Message};
use dyno_facts::TrialSummary;
use dyno_statistics::{Metric, ratio::PairedRatio};

/// Comparisons, scaling, steadiness, and the gates of the suites and `more_gates`.
pub(crate) fn judge(evidence: &Evidence, more_gates: &[String]) -> Verdicts {
    let comparisons = comparisons::all(evidence);
    Verdicts {
        gates: gates::all(evidence, &comparisons, more_gates),
        comparisons,
        scaling: scaling::all(evidence),
        steady: evidence.trials.iter().filter_map(|trial| steady::of(evidence, trial)).collect(),
    }
}

/// The ratio of two targets by one metric from the pairs of one comparison.
fn ratio_of(pairs: &[(&TrialSummary, &TrialSummary)], metric: Metric) -> Option<PairedRatio> {
    let values: Vec<(f64, f64)> = pairs
        .iter()
        .filter_map(|(a, b)| Some((figure_of(a, metric)?, figure_of(b, metric)?)))
        .collect();
    PairedRatio::of(&values)
}

impl Verdicts {
    /// All comparisons in one sentence; `None` where nothing is compared.
    pub fn sentence(&self) -> Option<Message> {
        words::of_all(&self.comparisons)
    }

    /// How the gates stand together: broken when one is proven broken, else inconclusive when one
    /// is. `None` where there is no gate.
    pub fn gate_result(&self) -> Option<GateResult> {
        self.gates.iter().map(|gate| gate.result).max()
    }

    /// A line for each gate, for the end of a run; empty where there is none.
    pub fn gates_text(&self, lang: Lang) -> String {
        let line = |text: Message| text.render(lang) + "\n";
        self.gates.iter().map(|gate| line(words::gate(gate))).collect()
    }

    /// A line for each comparison, for the end of a run; empty where nothing is compared.
    pub fn text(&self, lang: Lang) -> String {
        let line = |of: &PairedComparison| of.sentence.render(lang) + "\n";
        self.comparisons.iter().map(line).collect()
    }
}
