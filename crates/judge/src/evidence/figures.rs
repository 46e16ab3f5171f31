//! The figures of a trial that comparisons and gates are about.

use crate::families::KnownFamily;
use crate::text::Message;
use dyno_facts::{TrialSummary, say};
use dyno_statistics::Metric;
use dyno_statistics::ratio::FigureBound;

/// Why [`figure_of`] has no figure of it above zero, in a few words.
pub fn why_no_figure(trial: &TrialSummary, metric: Metric) -> Message {
    match figure_of(trial, metric) {
        Some(_) => say!(figure_is_zero),
        None if metric.percentile().is_some() => say!(too_few_transactions_for_it),
        None => say!(it_has_no_such_figure),
    }
}

/// As [`TrialSummary::figure`].
pub fn figure_of(trial: &TrialSummary, metric: Metric) -> Option<f64> {
    trial.figure(metric)
}

/// What a figure is that was not measured to its end.
pub fn bound_of(trial: &TrialSummary, metric: Metric) -> Option<FigureBound> {
    KnownFamily::of(trial)?.bound(trial, metric)
}

/// What comparisons of such trials judge, the one that decides first, and what a transaction costs. Of what follows from
/// another (statements from transactions, in a closed loop the mean latency from the throughput) only one is judged:
/// every judgement costs the others some power.
pub fn judged_metrics(trial: &TrialSummary) -> Vec<Metric> {
    let own = KnownFamily::of(trial).and_then(|family| family.judged());
    let first = own.unwrap_or(match trial.rate_per_s {
        Some(_) => &[Metric::P99Ms, Metric::P95Ms, Metric::P50Ms],
        None => &[Metric::Tps, Metric::P95Ms, Metric::P99Ms],
    });
    first.iter().copied().chain(Metric::costs()).collect()
}
