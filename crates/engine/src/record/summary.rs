//! What was measured as facts of a run folder.

use super::{ErrorCount, ErrorTable, Frame, Latencies, MeasuredInterval, Phase};
use dyno_core::{Nanos, Tally};
use dyno_facts::{
    AwaitedArrivals, ErrorSummary, KindSummary, LatencySummary, SeriesRow, StatementCounts,
    TrialSummary,
};

impl From<&Latencies> for LatencySummary {
    fn from(latencies: &Latencies) -> Self {
        summarised(latencies, 0)
    }
}

/// `missing` more, without a latency, are slower than all others.
fn summarised(latencies: &Latencies, missing: u64) -> LatencySummary {
    let count = latencies.count();
    let all = (count + missing) as f64 / count.max(1) as f64;
    let at = |percent: f64| latencies.percentile((percent * all).min(100.0)) as f64 / 1e3;
    LatencySummary {
        count,
        missing,
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
    let latency = total.latency();
    // Arrivals of before the window that ended in it stand for those that were in flight at its end.
    let missing = summary.offered.map_or(0, |offered| offered.saturating_sub(latency.count()));
    summary.latency = summarised(&latency, missing);
    summary.service = total.service.as_ref().map(LatencySummary::from);
    summary.lateness = total.lateness.as_ref().map(LatencySummary::from);
    summary.generator.loop_queue =
        total.loop_queue.as_ref().filter(|queue| queue.count() > 0).map(LatencySummary::from);
    summary.generator.awaited = total.lateness.as_ref().map(|_| AwaitedArrivals {
        count: total.awaited.arrivals,
        late: total.awaited.late,
        latest_us: total.awaited.latest as f64 / 1e3,
    });
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrivals_without_a_latency_are_slower_than_all_others() {
        let mut total = Frame::new(1, true);
        (1..=990).for_each(|us| total.kinds[0].latency.record(us * 1_000));
        let summary = |offered| {
            let mut summary = TrialSummary { offered, ..TrialSummary::default() };
            set_totals(&mut summary, &total, &[], 1_000_000_000);
            summary.latency
        };
        let complete = summary(Some(980));
        assert_eq!((complete.missing, complete), (0, summary(None)));
        let missing = summary(Some(1_000));
        assert_eq!((missing.count, missing.missing), (990, 10));
        // The 500th of 1,000, not the 495th of 990.
        assert!((missing.p50_us - 500.0).abs() < 2.0, "{missing:?}");
        assert!((missing.p95_us - 950.0).abs() < 2.0 && missing.p95_us > complete.p95_us);
        assert!(missing.is_known(0.05) && missing.is_known(0.01) && !missing.is_known(0.001));
        assert!(complete.is_known(0.0));
    }
}
