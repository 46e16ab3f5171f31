//! Verdicts: comparisons of pairs of trials, gates, scaling, steadiness.
//!
//! A ratio is the pseudo-median of the pairs with its exact interval. What is proven follows from p, corrected (Holm)
//! for the comparisons of one experiment; metrics are judged in a fixed sequence. Trials that vary, and what the same
//! system differs from itself, are reported alongside and veto nothing; `veto` lists the checks that do. `dyno run` and
//! `dyno compare` take their exit codes from here: 0 passed, 3 inconclusive, 5 proven broken. In a search only
//! confirmed rates that were held each time are results. What is promised (5% of false positives, effects of 3% found)
//! is simulated: `crates/facts/src/statistics/README.md`.

mod comparisons;
mod digest;
mod gates;
mod levels;
mod steady;
pub(crate) mod veto;
mod words;

pub use comparisons::{continued_sessions, level_of_trial};
pub use digest::wrap_sentence;
pub use veto::veto_of_level;
pub use words::{aa, bounds, change, change_of_row, interval_of_change, ratio_of_row};

use super::checks::generator::stopped;
use crate::evidence::*;
use crate::families::KnownFamily;
use crate::format::{self, NumberFormat};
use comparisons::{ComparisonPlan, earlier, level_size, level_words};
use dyno_facts::statistics::gate::{
    Gate, GateFigure, GateReason, GateVerdict, JudgedGate, LEAST_TRIALS,
};
use dyno_facts::statistics::levels::{cheapest, components, needed};
use dyno_facts::statistics::ratio::{
    DEFAULT_MARGIN, FigureBound, Judging, LEAST_PAIRS, MOST_VARIATION, PairedRatio, unit_means,
};
use dyno_facts::statistics::steady::{Second, steady};
use dyno_facts::statistics::{
    ALPHA, Better, Metric, holm, mean, median, noise_floor, rank, scaling_peak,
};
use dyno_facts::{
    ComparisonFacts, EarlierSession, Environment, EventKind, ExperimentFacts, Lang, Message,
    NodeFacts, Purpose, Renewed, RunHeader, ServerFacts, SessionPairs, StopRule, TrialStatus,
    TrialSummary, earlier_pairs, say,
};
use dyno_store::RunData;
use std::collections::{BTreeMap, BTreeSet};
use veto::{STOPPED, explains_gate};
use words::{MAX_PAIRS, ratio};

/// Comparisons, scaling, steadiness, and the gates of the suites and `more_gates`.
pub fn judge(evidence: &Evidence, more_gates: &[String]) -> Verdicts {
    let comparisons = comparisons::compare_targets(evidence, more_gates);
    Verdicts {
        gates: gates::judge_gates(evidence, &comparisons, more_gates),
        comparisons,
        scaling: steady::scaling(evidence),
        steady: evidence
            .trials
            .iter()
            .filter_map(|trial| steady::steadiness(evidence, trial))
            .collect(),
    }
}

/// The ratio of two targets by one metric from the pairs of one comparison, which this rule has ended, and those of
/// `earlier` sessions. As many pairs as a `unit` has count as one.
fn paired_ratio(
    pairs: &[(&Trial, &Trial)],
    metric: Metric,
    stop: StopRule,
    (unit, earlier): (u32, &[Vec<(f64, f64)>]),
) -> Option<PairedRatio> {
    let values = pairs.iter().flat_map(|(a, b)| a.summary.paired_figures(&b.summary, metric, unit));
    let values: Vec<(u32, (f64, f64))> = values.collect();
    // Most pairs without any reads or writes have no ratio; the others alone would be a biased sample.
    let usable = values.iter().filter(|(_, (a, b))| *a > 0.0 && *b > 0.0).count();
    if metric.is_cost() && 2 * usable <= values.len() {
        return None;
    }
    let bounds =
        pairs.iter().map(|(a, b)| [a, b].map(|trial| figure_bound(&trial.summary, metric)));
    let ratio = PairedRatio::from_units(&values, judging(stop, unit))?;
    let ratio = match earlier {
        [] => ratio,
        earlier => ratio.continued(earlier, &unit_means(&values)),
    };
    Some(ratio.bounded(FigureBound::for_ratio(bounds)))
}

/// The number of the unit that a pair belongs to.
fn unit_number((a, _): &(&Trial, &Trial), unit: u32) -> u32 {
    a.summary.repeat.saturating_sub(1) / unit
}

/// The figures of the pairs of two trials, in the order of time; none unless both have one.
fn figures((a, b): &(&Trial, &Trial), metric: Metric) -> impl Iterator<Item = (f64, f64)> {
    a.summary.paired_figures(&b.summary, metric, 1).into_iter().map(|(_, pair)| pair)
}

impl Verdicts {
    /// All comparisons in one sentence; `None` if nothing is compared.
    pub fn sentence(&self) -> Option<Message> {
        words::summary_sentence(&self.comparisons)
    }

    /// Joint result of the gates: broken when one is proven broken, else inconclusive when one
    /// is. `None` without any gate.
    pub fn gate_result(&self) -> Option<GateResult> {
        self.gates.iter().map(|gate| gate.result).max()
    }

    /// A line for each gate, for the end of a run; empty if there is none.
    pub fn gates_text(&self, lang: Lang) -> String {
        self.gates.iter().map(|gate| words::gate(gate).line(lang) + "\n").collect()
    }

    /// A line for each comparison, for the end of a run; empty if nothing is compared.
    pub fn text(&self, lang: Lang) -> String {
        let texts = self.comparisons.iter().flat_map(|comparison| {
            let levels = comparison.levels.as_ref().map(|levels| &levels.words);
            [&comparison.sentence].into_iter().chain(levels)
        });
        texts.map(|text| text.line(lang) + "\n").collect()
    }
}
