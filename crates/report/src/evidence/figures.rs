//! The figures of a trial that comparisons and gates are about.

use super::points::SAMPLES_BEYOND;
use crate::families::{KnownFamily, is_pass};
use crate::text::Message;
use dyno_facts::{LatencySummary, TrialSummary, say};
use dyno_statistics::Metric;
use dyno_statistics::ratio::FigureBound;

/// Why [`figure_of`] has no figure of it above zero, in a few words.
pub(crate) fn why_no_figure(trial: &TrialSummary, metric: Metric) -> Message {
    match figure_of(trial, metric) {
        Some(_) => say!(figure_is_zero),
        None if metric.is_percentile() => say!(too_few_transactions_for_it),
        None => say!(it_has_no_such_figure),
    }
}

/// A figure of a trial; `None` where it has none: a percentile with fewer than ten samples beyond
/// it, a metric of another workload.
pub fn figure_of(trial: &TrialSummary, metric: Metric) -> Option<f64> {
    let latency = &trial.latency;
    let ms = |beyond: f64, of: fn(&LatencySummary) -> f64| {
        has_percentile(latency, beyond).then(|| of(latency) / 1e3)
    };
    let is_measured = trial.window_s > 0.0;
    match metric {
        Metric::Tps => (is_measured && !is_pass(trial)).then_some(trial.tps),
        Metric::Qps => (is_measured && !is_pass(trial)).then_some(trial.qps),
        Metric::Tpmc
        | Metric::TpmcCommitted
        | Metric::TotalS
        | Metric::GeometricMeanS
        | Metric::Qphh => KnownFamily::of(trial)?.figure(trial, metric),
        Metric::MeanMs => ms(SAMPLES_BEYOND, |latency| latency.mean_us),
        Metric::P50Ms => ms(0.5, |latency| latency.p50_us),
        Metric::P95Ms => ms(0.05, |latency| latency.p95_us),
        Metric::P99Ms => ms(0.01, |latency| latency.p99_us),
        Metric::P999Ms => ms(0.001, |latency| latency.p999_us),
        Metric::MaxMs => {
            (latency.count > 0 && latency.is_known(0.0)).then_some(latency.max_us / 1e3)
        }
        Metric::ServerCpuUs => {
            trial.server_cpu_us_per_transaction().filter(|_| is_measured && !is_pass(trial))
        }
        Metric::Errors => (trial.counts.started > 0).then(|| {
            let errors: u64 = trial.errors.iter().map(|error| error.count).sum();
            errors as f64 / trial.counts.started as f64
        }),
    }
}

/// What a figure is that was not measured to its end.
pub fn bound_of(trial: &TrialSummary, metric: Metric) -> Option<FigureBound> {
    KnownFamily::of(trial)?.bound(trial, metric)
}

/// True when enough samples lie beyond a percentile and those without a latency, which are slower than all, leave it
/// among the measured ones.
pub(crate) fn has_percentile(latency: &LatencySummary, beyond: f64) -> bool {
    latency.count as f64 * beyond >= SAMPLES_BEYOND && latency.is_known(beyond)
}

/// What comparisons of such trials judge, the one that decides first. Of what follows from another
/// (statements from transactions, in a closed loop the mean latency from the throughput) only one is
/// judged: every judgement costs the others some power.
pub fn judged_metrics(trial: &TrialSummary) -> &'static [Metric] {
    let own = KnownFamily::of(trial).and_then(|family| family.judged());
    own.unwrap_or(match trial.rate_per_s {
        Some(_) => &[Metric::P99Ms, Metric::P95Ms, Metric::P50Ms, Metric::ServerCpuUs],
        None => &[Metric::Tps, Metric::P95Ms, Metric::P99Ms, Metric::ServerCpuUs],
    })
}

/// The metric in words, with its unit.
pub(crate) fn metric_name(metric: Metric) -> Message {
    match metric {
        Metric::Tps => say!(transactions_per_second),
        Metric::Qps => say!(statements_per_second),
        Metric::Tpmc => Message::verbatim("tpmC"),
        Metric::TpmcCommitted => say!(new_orders_committed_per_minute),
        Metric::TotalS => say!(total_time_s),
        Metric::GeometricMeanS => say!(geometric_mean_s),
        Metric::Qphh => Message::verbatim("QphH"),
        Metric::MeanMs => say!(mean_latency_ms),
        Metric::P50Ms => say!(median_latency_ms),
        Metric::P95Ms => say!(n_95th_percentile_of_latency_ms),
        Metric::P99Ms => say!(n_99th_percentile_of_latency_ms),
        Metric::P999Ms => say!(n_99_9th_percentile_of_latency_ms),
        Metric::MaxMs => say!(largest_latency_ms),
        Metric::ServerCpuUs => say!(server_cpu_per_transaction_us),
        Metric::Errors => say!(errors_by_transactions_begun),
    }
}
