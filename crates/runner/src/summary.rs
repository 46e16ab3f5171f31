//! From what the engine gives back to what is stored.

use crate::failure::{sentence, with_statement};
use dyno_core::Workload;
use dyno_engine::{TrialEnd, TrialResult, TrialSpec, WorkerStats};
use dyno_facts::format::short;
use dyno_facts::{
    Conditions, ErrorSummary, GeneratorSummary, Message, TrialIdentity, TrialStatus, TrialSummary,
    say,
};
use dyno_reactor::monotonic_now;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// The identity of a trial as far as the order to the engine says it.
pub fn identity(test: impl Into<String>, spec: &TrialSpec) -> TrialIdentity {
    TrialIdentity {
        test: test.into(),
        workers: spec.workers,
        repeat: 1,
        rate_per_s: spec.rate_per_s,
        warmup_s: spec.warmup as f64 / 1e9,
        seed: spec.seed,
        ..TrialIdentity::default()
    }
}

/// The names of the kinds of transactions of a workload.
pub fn kinds<W: Workload>(workload: &W) -> Vec<String> {
    workload.transactions().iter().map(|kind| kind.name.clone()).collect()
}

/// Sums up a trial that the engine has measured. With `may_miss_rate` it is complete at a rate that was missed, too.
pub fn summarize(
    identity: TrialIdentity,
    kinds: &[String],
    spec: &TrialSpec,
    result: &TrialResult,
    may_miss_rate: bool,
) -> TrialSummary {
    let mut summary = TrialSummary {
        started_at: started_at(result),
        connect_s: result.connect as f64 / 1e9,
        offered: result.offered,
        generator: generator_summary(result),
        scans: result.scans(),
        notes: trial_notes(spec, result, may_miss_rate),
        conditions: Conditions { generator: result.conditions.clone(), ..Conditions::default() },
        ..identity.summary(trial_status(spec, result, may_miss_rate))
    };
    dyno_engine::record::set_totals(&mut summary, &result.total, kinds, result.length());
    let longest_us = result.longest_in_flight as f64 / 1e3;
    if longest_us > summary.latency.max_us {
        summary.latency.max_us = longest_us;
        summary.notes.push(say!(longest_in_flight, seconds = short(longest_us / 1e6)));
    }
    summary
}

fn trial_status(spec: &TrialSpec, result: &TrialResult, may_miss_rate: bool) -> TrialStatus {
    if let Some(reason) = result.ended.failure() {
        let reason = match &result.ended {
            TrialEnd::Aborted(error) => with_statement(&reason, error),
            _ => sentence(&reason),
        };
        return TrialStatus::Failed(reason.into());
    }
    if result.ended == TrialEnd::Interrupted {
        return TrialStatus::Interrupted;
    }
    if let (Some(missed), false) = (missed(spec, result), may_miss_rate) {
        return TrialStatus::Failed(missed);
    }
    if result.total.counts().committed == 0 {
        return TrialStatus::Failed(dyno_store::no_commit());
    }
    TrialStatus::Complete
}

/// The missing table, because of which a trial does not measure its workload, however many errors its workers survive.
pub(crate) fn missing_table(errors: &[ErrorSummary]) -> Option<Message> {
    let error = errors.iter().find(|error| {
        // PostgreSQL, MySQL and SQLite.
        matches!(error.sqlstate.as_str(), "42P01" | "42S02")
            || error.errno == 1146
            || error.message.to_string().contains("no such table")
    })?;
    Some(say!(table_missing, why = crate::failure::sentence(&error.message.to_string())))
}

/// The missed rate, in a sentence. Random arrivals come faster or slower than planned, and the share
/// is one of those that came.
fn missed(spec: &TrialSpec, result: &TrialResult) -> Option<Message> {
    let (share, rate) = (result.missed_rate()?, spec.rate_per_s?);
    let due = result.offered? as f64 / (result.length().max(1) as f64 / 1e9);
    let share = format!("{:.1}", share * 100.0);
    Some(say!(rate_missed, share, due = short(due), rate = rate.to_string()))
}

fn trial_notes(spec: &TrialSpec, result: &TrialResult, may_miss_rate: bool) -> Vec<Message> {
    let mut notes: Vec<Message> =
        missed(spec, result).into_iter().filter(|_| may_miss_rate).collect();
    if result.unfinished > 0 {
        notes.push(say!(unfinished_cut, n = result.unfinished));
    }
    let work = result.total.work();
    if work.misses > 0 {
        notes.push(say!(writes_met_no_row, n = work.misses));
    }
    notes
}

fn started_at(result: &TrialResult) -> String {
    let ago = monotonic_now().saturating_sub(result.window.opens);
    let opened = OffsetDateTime::now_utc() - std::time::Duration::from_nanos(ago);
    let opened = opened.replace_nanosecond(0).unwrap_or(opened);
    opened.format(&Rfc3339).unwrap_or_default()
}

fn generator_summary(result: &TrialResult) -> GeneratorSummary {
    let window = result.length().max(1) as f64;
    let busiest = result.loops_cpu.iter().max().copied().unwrap_or(0) as f64 / window;
    let (transactions_mean, transactions_stddev) =
        mean_stddev(&result.workers, |worker| worker.transactions as f64);
    let (busy_mean, busy_stddev) = mean_stddev(&result.workers, |worker| worker.busy as f64 / 1e9);
    GeneratorSummary {
        loops: result.loops_cpu.len() as u32,
        busiest_loop_share: busiest,
        resident_mib: resident_mib(),
        host: result.host,
        worker_transactions_mean: transactions_mean,
        worker_transactions_stddev: transactions_stddev,
        worker_busy_s_mean: busy_mean,
        worker_busy_s_stddev: busy_stddev,
        ..GeneratorSummary::default()
    }
}

fn mean_stddev(workers: &[WorkerStats], value: impl Fn(&WorkerStats) -> f64) -> (f64, f64) {
    let count = workers.len().max(1) as f64;
    let mean = workers.iter().map(&value).sum::<f64>() / count;
    let variance = workers.iter().map(|worker| (value(worker) - mean).powi(2)).sum::<f64>() / count;
    (mean, variance.sqrt())
}

/// Resident memory of this process; 0 where `/proc` doesn't say.
pub(crate) fn resident_mib() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))
        .and_then(|rest| rest.split_whitespace().next()?.parse::<f64>().ok())
        .map_or(0.0, |kib| kib / 1024.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_core::DbError;
    use dyno_engine::Joined;
    use dyno_engine::record::Window;
    use dyno_facts::Counts;

    #[test]
    fn a_table_that_is_missing_is_seen_in_each_dialect() {
        fn error_summary(errno: u32, sqlstate: &str, message: &'static str) -> ErrorSummary {
            ErrorSummary {
                class: "other".to_owned(),
                errno,
                sqlstate: sqlstate.to_owned(),
                message: message.into(),
                count: 1,
            }
        }
        let deadlock = error_summary(1213, "40001", "Deadlock found");
        assert_eq!(missing_table(std::slice::from_ref(&deadlock)), None);
        for missing in [
            error_summary(0, "42P01", "relation \"sbtest1\" does not exist"),
            error_summary(1146, "42S02", "Table 'd.sbtest1' doesn't exist"),
            error_summary(1, "00000", "no such table: sbtest1"),
        ] {
            let message = missing_table(&[deadlock.clone(), missing]).expect("a table").to_string();
            assert!(message.contains("sbtest1"), "{message}");
        }
    }

    #[test]
    fn a_miscounted_trial_has_failed_and_keeps_its_counts() {
        let window = Window { released: 0, opens: 0, closes: 1, interval: 1 };
        let result = Joined::new(window, 1, 1, false).lose(0, DbError::lost("gone"));
        let mut result = result.expect("a result");
        let counts = Counts { started: 5, committed: 3, ..Counts::default() };
        result.total.kinds[0].counts = counts;
        result.ended = TrialEnd::Miscounted { started: 5, ended: 3, in_flight: 1 };
        let (spec, kinds) = (TrialSpec::closed(1), ["one".to_owned()]);
        let summary = summarize(identity("one", &spec), &kinds, &spec, &result, false);
        let reason = "5 transactions were started, but 3 ended and 1 were in flight: the load generator has miscounted.";
        assert_eq!(summary.status, TrialStatus::Failed(reason.into()));
        assert_eq!(summary.kinds[0].counts, counts);
    }

    #[test]
    fn the_longest_transaction_in_flight_at_the_end_is_the_maximum() {
        let window = Window { released: 0, opens: 0, closes: 1, interval: 1 };
        let mut generators = Joined::new(window, 1, 1, false);
        let mut result = generators.lose(0, DbError::lost("no answer")).expect("a result");
        result.total.kinds[0].latency.record(33_000_000);
        let (spec, kinds) = (TrialSpec::closed(1), ["one".to_owned()]);
        result.longest_in_flight = 20_000_000;
        let unchanged = summarize(identity("one", &spec), &kinds, &spec, &result, false);
        assert!((33e3..34e3).contains(&unchanged.latency.max_us), "{:?}", unchanged.latency);
        assert!(unchanged.notes.is_empty());
        result.longest_in_flight = 8_028_000_000;
        let stalled = summarize(identity("one", &spec), &kinds, &spec, &result, false);
        assert_eq!(stalled.latency.max_us, 8_028_000.0);
        assert_eq!(stalled.latency.p99_us, unchanged.latency.p99_us);
        let note = stalled.notes[0].to_string();
        assert!(
            note.starts_with(
                "A transaction in flight at the end of the window took at least 8.03 s"
            ),
            "{note}"
        );
    }

    #[test]
    fn a_missed_rate_is_a_share_of_what_became_due() {
        let window = Window { released: 0, opens: 0, closes: 1, interval: 1 };
        let result = Joined::new(window, 1, 1, false).lose(0, DbError::lost("gone"));
        let mut result = result.expect("a result");
        (result.ended, result.offered, result.in_flight) = (TrialEnd::Time, Some(540), 0);
        (result.window.opens, result.window.closes) = (0, 10_000_000_000);
        let counts = Counts { started: 500, committed: 500, ..Counts::default() };
        result.total.kinds[0].counts = counts;
        let spec = TrialSpec { rate_per_s: Some(50.0), ..TrialSpec::closed(1) };
        let summary = summarize(identity("one", &spec), &["one".to_owned()], &spec, &result, false);
        let TrialStatus::Failed(why) = &summary.status else { panic!("{:?}", summary.status) };
        assert_eq!(
            why.to_string(),
            "Only 92.6% of the transactions due in the window were done: 54.0 per second were due, at a planned rate \
             of 50."
        );
        assert_eq!(short(summary.tps), "50.0", "0.926 times 54.0");
    }
}
