//! What was measured as facts of a run folder.

use crate::{ErrorCount, ErrorTable, Frame, Latencies, MeasuredInterval, Phase};
use dyno_core::{Nanos, Tally};
use dyno_facts::{
    ErrorSummary, KindSummary, LatencySummary, SeriesRow, StatementCounts, TrialSummary,
};

impl From<&Latencies> for LatencySummary {
    fn from(latencies: &Latencies) -> Self {
        let at = |percent| latencies.percentile(percent) as f64 / 1e3;
        LatencySummary {
            count: latencies.count(),
            min_us: latencies.min() as f64 / 1e3,
            mean_us: latencies.mean() / 1e3,
            p50_us: at(50.0),
            p90_us: at(90.0),
            p95_us: at(95.0),
            p99_us: at(99.0),
            p999_us: at(99.9),
            max_us: latencies.max() as f64 / 1e3,
            sum_us: latencies.sum() as f64 / 1e3,
        }
    }
}

pub fn statement_counts(tally: Tally) -> StatementCounts {
    StatementCounts {
        reads: tally.reads,
        writes: tally.writes,
        others: tally.others,
        rows_read: tally.rows_read,
        rows_written: tally.rows_written,
        misses: tally.misses,
    }
}

pub(crate) fn error_summaries(table: &ErrorTable) -> Vec<ErrorSummary> {
    let summary = |error: &ErrorCount| ErrorSummary {
        class: error.class.name().to_owned(),
        errno: error.errno,
        sqlstate: error.sqlstate.clone(),
        message: error.message.clone().into(),
        count: error.count,
    };
    table.0.iter().map(summary).collect()
}

impl From<&MeasuredInterval> for SeriesRow {
    fn from(interval: &MeasuredInterval) -> Self {
        let counts = interval.frame.counts();
        let work = interval.frame.work();
        let latency = LatencySummary::from(&interval.frame.latency());
        let per_s =
            |n: u64| if interval.length_s > 0.0 { n as f64 / interval.length_s } else { 0.0 };
        SeriesRow {
            begins_s: interval.begins_s,
            length_s: interval.length_s,
            phase: match interval.phase {
                Phase::WarmUp => "warm_up".to_owned(),
                Phase::Measured => "measured".to_owned(),
            },
            started: counts.started,
            committed: counts.committed,
            rolled_back: counts.rolled_back,
            failed: counts.failed,
            skipped: counts.skipped,
            retries: counts.retries,
            reconnects: counts.reconnects,
            errors: interval.frame.errors.total(),
            reads: work.reads,
            writes: work.writes,
            others: work.others,
            wasted: interval.frame.wasted().statements(),
            tps: per_s(counts.committed),
            qps: per_s(work.statements()),
            mean_us: latency.mean_us,
            p50_us: latency.p50_us,
            p95_us: latency.p95_us,
            p99_us: latency.p99_us,
            max_us: latency.max_us,
            loops_cpu_s: interval.frame.cpu_ns as f64 / 1e9,
            host_cpu_share: interval.host.cpu_share,
            host_steal_share: interval.host.steal_share,
            committed_by_kind: match interval.frame.kinds.as_slice() {
                [_] => Vec::new(),
                kinds => kinds.iter().map(|kind| kind.counts.committed).collect(),
            },
        }
    }
}

/// Fills in what follows from a trial's total frame and the window's length.
pub fn set_totals(summary: &mut TrialSummary, total: &Frame, names: &[String], window: Nanos) {
    let seconds = (window as f64 / 1e9).max(1e-9);
    summary.window_s = window as f64 / 1e9;
    summary.counts = total.counts();
    summary.in_flight = summary.counts.in_flight();
    summary.statements = statement_counts(total.work());
    summary.wasted = statement_counts(total.wasted());
    summary.tps = summary.counts.committed as f64 / seconds;
    summary.qps = summary.statements.total() as f64 / seconds;
    summary.latency = (&total.latency()).into();
    summary.service = total.service.as_ref().map(LatencySummary::from);
    summary.lateness = total.lateness.as_ref().map(LatencySummary::from);
    summary.errors = error_summaries(&total.errors);
    summary.kinds = names
        .iter()
        .zip(&total.kinds)
        .map(|(name, kind)| KindSummary {
            name: name.clone(),
            counts: kind.counts,
            statements: statement_counts(kind.work),
            latency: (&kind.latency).into(),
        })
        .collect();
    let statements = summary.statements.total() + summary.wasted.total();
    summary.generator.loops_cpu_s = total.cpu_ns as f64 / 1e9;
    summary.generator.cpu_us_per_statement =
        if statements == 0 { 0.0 } else { total.cpu_ns as f64 / 1e3 / statements as f64 };
}
