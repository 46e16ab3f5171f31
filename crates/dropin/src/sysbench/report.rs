//! The final report in sysbench's shape: the same labels, order and widths, because scripts parse them. What dyno
//! adds is a separate block after it, which parsers pass over: wasted work, errors by kind, statements that met
//! no row.

use super::options::Settings;
use dyno_core::{DbError, ErrorClass};
use dyno_engine::record::{ErrorCount, Frame, Latencies};
use dyno_engine::{TrialEnd, TrialResult, WorkerStats};
use dyno_facts::SeriesRow;
use dyno_lua::ReportStat;
use std::fmt::{self, Write as _};

/// Everything a full report states.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Figures {
    /// With latencies.
    pub(super) stat: ReportStat,
    /// False: the statements are left out.
    pub(super) uses_database: bool,
    /// Only after a forced shutdown.
    pub(super) unfinished: Option<u32>,
    /// Percent and milliseconds, in the order asked for. Without one, sysbench says so.
    pub(super) percentiles: Vec<(f64, f64)>,
    /// `--percentile=0`.
    pub(super) percentile_disabled: bool,
    pub(super) fairness: Fairness,
}

/// Spread of the work over the workers: mean and deviation of the population, of events and busy seconds.
pub(super) type Fairness = [(f64, f64); 2];

/// Returns mean and deviation of the threads' events and of their busy seconds.
pub(super) fn fairness(workers: &[WorkerStats]) -> Fairness {
    let events = workers.iter().map(|worker| worker.transactions as f64);
    let busy_s = workers.iter().map(|worker| worker.busy as f64 / 1e9);
    [mean_and_deviation(events), mean_and_deviation(busy_s)]
}

fn mean_and_deviation(values: impl ExactSizeIterator<Item = f64> + Clone) -> (f64, f64) {
    let count = values.len().max(1) as f64;
    let mean = values.clone().sum::<f64>() / count;
    let variance = values.map(|value| (value - mean).powi(2)).sum::<f64>() / count;
    (mean, variance.sqrt())
}

/// Errors of attempts as sysbench counts its "ignored errors": lost connections are counted as
/// reconnects instead.
pub(super) fn ignored_errors(frame: &Frame) -> u64 {
    let ignored = frame.errors.0.iter().filter(|error| error.class != ErrorClass::ConnectionLost);
    ignored.map(|error| error.count).sum()
}

/// Errors of attempts that were not ignored: of the kind that has ended the run.
pub(super) fn fatal_errors(frame: &Frame, fatal: &DbError) -> u64 {
    let fatal_errors = frame.errors.0.iter().filter(|error| {
        fatal.class() != ErrorClass::ConnectionLost
            && (error.class, error.errno) == (fatal.class(), fatal.errno())
            && error.sqlstate == fatal.sqlstate()
    });
    fatal_errors.map(|error| error.count).sum()
}

impl Figures {
    /// The figures of `frame`, and the percentiles that the settings ask for.
    pub(super) fn new(
        stat: ReportStat,
        frame: &Frame,
        Settings { percentile, percentiles: more, .. }: &Settings,
        fairness: Fairness,
    ) -> Self {
        let latency = frame.latency();
        let main = Some(f64::from(*percentile)).filter(|_| *percentile > 0);
        // In the order asked for, that of `--percentile` first unless the others name it.
        let first = main.filter(|main| !more.contains(main));
        let percentiles = first.into_iter().chain(more.iter().copied());
        let percentiles =
            percentiles.map(|percent| (percent, latency.percentile(percent) as f64 / 1e6));
        Figures {
            stat,
            uses_database: true,
            unfinished: None,
            percentiles: percentiles.collect(),
            percentile_disabled: main.is_none(),
            fairness,
        }
    }
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ReportStat { reads, writes, others, events, errors, reconnects, .. } = self.stat;
        let queries = reads + writes + others;
        if self.uses_database {
            writeln!(f, "SQL statistics:\n    queries performed:")?;
            for (label, count) in
                [("read:", reads), ("write:", writes), ("other:", others), ("total:", queries)]
            {
                writeln!(f, "        {label:<33}{count}")?;
            }
            for (label, count) in [
                ("transactions:", events),
                ("queries:", queries),
                ("ignored errors:", errors),
                ("reconnects:", reconnects),
            ] {
                let per_s = per_second(&self.stat, count);
                writeln!(f, "    {label:<37}{count:<6} ({per_s:.2} per sec.)")?;
            }
        }
        writeln!(f)?;
        if let Some(unfinished) = self.unfinished {
            writeln!(f, "Number of unfinished transactions on forced shutdown: {unfinished}\n")?;
        }
        let [min_ms, max_ms, avg_ms, sum_ms] =
            self.stat.latency_s.unwrap_or_default().map(|seconds| seconds * 1e3);
        writeln!(
            f,
            "General statistics:\n    total time:                          {:.4}s\n    total number of \
             events:              {events}\n\nLatency (ms):\n         min: {min_ms:>39.2}\n         avg: \
             {avg_ms:>39.2}\n         max: {max_ms:>39.2}",
            self.stat.time_total_s
        )?;
        if self.percentile_disabled {
            writeln!(f, "         percentile stats:               disabled")?;
        }
        for (percent, latency_ms) in &self.percentiles {
            writeln!(f, "{percent:>11}th percentile: {latency_ms:>27.2}")?;
        }
        let [(events_mean, events_stddev), (busy_mean_s, busy_stddev_s)] = self.fairness;
        writeln!(
            f,
            "         sum: {sum_ms:>39.2}\n\nThreads fairness:\n    events (avg/stddev):           \
             {events_mean:.4}/{events_stddev:.2}\n    execution time (avg/stddev):   \
             {busy_mean_s:.4}/{busy_stddev_s:.2}\n"
        )
    }
}

/// The rate of a count over the time of the figures.
pub(super) fn per_second(stat: &ReportStat, count: u64) -> f64 {
    if stat.time_interval_s > 0.0 { count as f64 / stat.time_interval_s } else { 0.0 }
}

const BUCKETS: usize = 1_024;
const LOWEST_MS: f64 = 0.001;
const HIGHEST_MS: f64 = 100_000.0;
const BAR: f64 = 40.0;

fn buckets_per_e() -> f64 {
    (BUCKETS - 1) as f64 / (HIGHEST_MS.ln() - LOWEST_MS.ln())
}

fn bucket_index(latency_ms: f64) -> usize {
    let index = ((latency_ms.ln() - LOWEST_MS.ln()) * buckets_per_e() + 0.5).floor();
    // A latency of 0 gives minus infinity.
    index.clamp(0.0, (BUCKETS - 1) as f64) as usize
}

fn bucket_value(bucket: usize) -> f64 {
    (bucket as f64 / buckets_per_e() + LOWEST_MS.ln()).exp()
}

fn fill_buckets(latencies: &Latencies) -> Vec<u64> {
    let mut buckets = vec![0; BUCKETS];
    let histogram = latencies.to_histogram();
    for cell in histogram.iter_recorded() {
        let latency_ns = histogram.median_equivalent(cell.value_iterated_to());
        buckets[bucket_index(latency_ns as f64 / 1e6)] += cell.count_at_value();
    }
    buckets
}

fn histogram_text(buckets: &[u64]) -> String {
    let mut text = String::from(
        "Latency histogram (values are in milliseconds)\n       \
         value  ------------- distribution ------------- count\n",
    );
    let highest = buckets.iter().copied().max().unwrap_or(0);
    for (bucket, &count) in buckets.iter().enumerate().filter(|(_, count)| **count > 0) {
        let stars = (count as f64 * BAR / highest as f64 + 0.5).floor() as usize;
        let bar = "*".repeat(stars);
        // Writing to a String can't fail.
        let _ = writeln!(text, "{:>12.3} |{bar:<40} {count}", bucket_value(bucket));
    }
    text.push_str(" \n");
    text
}

/// Returns the lines of `--histogram`.
pub(super) fn histogram(latencies: &Latencies) -> String {
    histogram_text(&fill_buckets(latencies))
}

/// Minimum length of an interval in seconds, with room for rounding.
const INTERVAL_S: f64 = 1.0 - 1e-6;

/// The time in which lost connections could not be reopened and nothing was executed: no count of the report has it.
pub(super) fn outage(result: &TrialResult, intervals: &[SeriesRow]) -> Option<String> {
    // Nothing answers, or a PostgreSQL that starts or stops.
    let refusals = result.total.errors.0.iter().filter(|error| {
        error.class == ErrorClass::ConnectionLost
            && matches!(error.sqlstate.as_str(), "08001" | "57P03")
    });
    let reason = refusals.clone().next_back()?.message.trim_end_matches('.');
    let attempts: u64 = refusals.map(|error| error.count).sum();
    let mut note = format!(
        "Failed attempts to open lost connections again: {attempts}, which are in no count above. \
         The last reason: {reason}."
    );
    let executed = intervals.iter().filter(|row| row.begins_s >= 0.0 && row.committed > 0);
    let until_s = executed.map(|row| row.begins_s + row.length_s).fold(0.0, f64::max);
    let total_s = result.length() as f64 / 1e9;
    if result.total.counts().committed == 0 {
        note.push_str(" No transaction was committed.");
    } else if total_s - until_s > INTERVAL_S {
        let _ = write!(
            note,
            " No transaction has ended after the first {until_s:.1} of {total_s:.1} seconds."
        );
    }
    Some(note)
}

/// The block after the report; empty if there is nothing to say. `errors` is `--errors`: the whole breakdown, also if
/// there were none. `more` are the notes of [`outage`] and of the script.
pub(super) fn notes_block(result: &TrialResult, errors: bool, more: &[String]) -> String {
    let mut out = if errors { error_breakdown(result) } else { String::new() };
    let notes = notes(result, errors, more);
    if !notes.is_empty() {
        let lines: String = notes.iter().map(|note| format!("    {note}\n")).collect();
        out.push_str(&format!("Notes:\n{lines}\n"));
    }
    out
}

fn error_breakdown(result: &TrialResult) -> String {
    let total = &result.total;
    let (counts, wasted) = (total.counts(), total.wasted());
    let mut out = String::from("Errors:\n");
    for ErrorCount { class, errno, sqlstate, count, message, .. } in &total.errors.0 {
        let code = match errno {
            0 => sqlstate.clone(),
            errno => format!("{errno} ({sqlstate})"),
        };
        out.push_str(&format!("    {:<15} {code:<16} {count:>10}  {message}\n", class.name()));
    }
    if total.errors.0.is_empty() {
        out.push_str("    none\n");
    }
    out.push_str("\nWasted work:\n");
    for (label, count) in [
        ("attempts tried again:", counts.retries),
        ("failed transactions:", counts.failed),
        ("transactions in flight at the end:", result.in_flight),
        ("read statements of failed attempts:", wasted.reads),
        ("write statements of failed attempts:", wasted.writes),
        ("other statements of failed attempts:", wasted.others),
    ] {
        out.push_str(&format!("    {label:<37}{count}\n"));
    }
    out + "\n"
}

/// Returns what the original's report doesn't show; `more` goes first.
fn notes(result: &TrialResult, errors: bool, more: &[String]) -> Vec<String> {
    let total = &result.total;
    let (work, wasted) = (total.work(), total.wasted());
    let mut notes = more.to_vec();
    notes.extend(result.scan_note());
    if work.misses > 0 {
        notes.push(format!(
            "Updates and deletes that met no row: {}, among the other statements, in transactions that count.",
            work.misses
        ));
    }
    let is_whole = !matches!(result.ended, TrialEnd::Aborted(_));
    if is_whole && result.in_flight > 0 {
        let longest_s = result.longest_in_flight as f64 / 1e9;
        notes.push(format!(
            "Transactions in flight at the end: {}, which are in no figure above. The longest latency was at least \
             {longest_s:.2} s.",
            result.in_flight
        ));
    }
    if wasted.statements() > 0 && !errors {
        notes.push(format!(
            "Statements of failed attempts: {}, which are in no count above; --errors shows them.",
            wasted.statements()
        ));
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_core::{DbError, ErrorClass, Tally};
    use dyno_engine::record::{Frame, Window};
    use dyno_facts::{GeneratorConditions, HostSample};

    /// Printed by sysbench 1.0.20 on a real run.
    const ORIGINAL: &str = include_str!("../../golden/sysbench/report.txt");

    #[test]
    fn the_error_that_ends_a_run_is_not_ignored() {
        let mut frame = Frame::new(1, false);
        let fatal = DbError::workload("my.lua:2: it failed");
        let ignored = DbError::server(ErrorClass::Deadlock, 1213, *b"40001", "Deadlock found");
        for error in [&ignored, &fatal, &ignored] {
            frame.errors.count(error);
        }
        assert_eq!((ignored_errors(&frame), fatal_errors(&frame, &fatal)), (3, 1));
        let error = DbError::lost("gone");
        frame.errors.count(&error);
        assert_eq!((ignored_errors(&frame), fatal_errors(&frame, &error)), (3, 0));
    }

    /// The number after a label of the original's report.
    fn after(label: &str) -> f64 {
        let start = ORIGINAL.find(label).expect(label) + label.len();
        let tail = ORIGINAL[start..].trim_start();
        let end = tail.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(tail.len());
        tail[..end].parse().expect(label)
    }

    fn pair(label: &str) -> (f64, f64) {
        let line = ORIGINAL.lines().find(|line| line.contains(label)).expect(label);
        let (mean, deviation) =
            line.rsplit(' ').next().and_then(|pair| pair.split_once('/')).expect(label);
        (mean.parse().expect(label), deviation.parse().expect(label))
    }

    #[test]
    fn the_report_has_every_byte_of_the_originals() {
        let (_, queries) = ORIGINAL.split_once("    queries:").expect("a line for queries");
        let (_, queries) = queries.split_once('(').expect("a rate");
        let (queries_per_s, _) = queries.split_once(' ').expect("a unit");
        let queries_per_s: f64 = queries_per_s.parse().expect("a number");
        let figures = Figures {
            stat: ReportStat {
                reads: after("read:") as u64,
                writes: after("write:") as u64,
                others: after("other:") as u64,
                events: after("transactions:") as u64,
                errors: after("ignored errors:") as u64,
                reconnects: after("reconnects:") as u64,
                time_interval_s: after("total:") / queries_per_s,
                time_total_s: after("total time:"),
                latency_s: Some(["min:", "max:", "avg:", "sum:"].map(|label| after(label) / 1e3)),
                ..ReportStat::default()
            },
            uses_database: true,
            unfinished: None,
            percentiles: vec![(95.0, after("95th percentile:"))],
            percentile_disabled: false,
            fairness: [pair("events (avg/stddev):"), pair("execution time (avg/stddev):")],
        };
        assert_eq!(figures.to_string(), ORIGINAL);
    }

    /// The lines of a report about percentiles.
    fn percentile_lines(percentile: u32, more: &[f64]) -> Vec<String> {
        let settings = Settings { percentile, percentiles: more.to_vec(), ..Settings::default() };
        let (stat, frame) = (ReportStat::default(), Frame::new(1, false));
        let text = Figures::new(stat, &frame, &settings, Fairness::default()).to_string();
        text.lines().filter(|line| line.contains("percentile")).map(str::to_owned).collect()
    }

    #[test]
    fn percentiles_are_in_the_order_asked_for_and_a_missing_one_is_reported() {
        assert_eq!(
            percentile_lines(95, &[50.0, 95.0, 99.9]),
            [
                "         50th percentile:                        0.00",
                "         95th percentile:                        0.00",
                "       99.9th percentile:                        0.00",
            ]
        );
        for (percentile, line) in [
            (0, "         percentile stats:               disabled"),
            (1, "          1th percentile:                        0.00"),
            (100, "        100th percentile:                        0.00"),
        ] {
            assert_eq!(percentile_lines(percentile, &[]), [line]);
        }
    }

    #[test]
    fn a_forced_shutdown_states_what_was_cut() {
        let figures = Figures { unfinished: Some(3), ..Figures::default() };
        let expected = "\nNumber of unfinished transactions on forced shutdown: 3\n\n\
                        General statistics:\n";
        assert!(figures.to_string().contains(expected), "{figures}");
    }

    #[test]
    fn fairness_is_the_populations() {
        let worker =
            |transactions, busy| WorkerStats { transactions, busy, ..WorkerStats::default() };
        let workers = [worker(2, 1_000_000_000), worker(4, 3_000_000_000)];
        assert_eq!(fairness(&workers), [(3.0, 1.0), (2.0, 1.0)]);
    }

    /// Printed by sysbench 1.0.20 on a real run.
    const HISTOGRAM: &str = include_str!("../../golden/sysbench/histogram.txt");

    #[test]
    fn the_histogram_has_every_byte_of_the_originals() {
        let mut buckets = vec![0; BUCKETS];
        for line in HISTOGRAM.lines().filter(|line| line.contains(" |")) {
            let words: Vec<&str> = line.split_whitespace().collect();
            let value: f64 = words[0].parse().expect(line);
            let count = words.last().and_then(|word| word.parse().ok()).expect(line);
            buckets[bucket_index(value)] = count;
        }
        assert_eq!(histogram_text(&buckets), HISTOGRAM);
    }

    #[test]
    fn latencies_beyond_the_ends_fall_into_the_outermost_buckets() {
        let mut latencies = Latencies::new();
        for latency in [0, 1, 200_000_000_000] {
            latencies.record(latency);
        }
        let buckets = fill_buckets(&latencies);
        assert_eq!((buckets[0], buckets[BUCKETS - 1]), (2, 1));
        assert_eq!(buckets.iter().sum::<u64>(), 3);
    }

    #[test]
    fn nothing_measured_is_an_empty_histogram() {
        assert_eq!(histogram(&Latencies::new()).lines().count(), 3);
    }

    fn result(total: Frame) -> TrialResult {
        TrialResult {
            late: 0,
            total,
            window: Window { released: 0, opens: 0, closes: 1, interval: 1 },
            connect: 0,
            ended: TrialEnd::Time,
            workers: Vec::new(),
            offered: None,
            in_flight: 0,
            longest_in_flight: 0,
            unfinished: 0,
            retired: 0,
            retired_transactions: 0,
            loops_cpu: Vec::new(),
            host: HostSample::default(),
            conditions: GeneratorConditions::default(),
        }
    }

    #[test]
    fn a_run_without_surprises_has_no_block() {
        let result = result(Frame::new(1, false));
        assert_eq!(notes_block(&result, false, &[]), "");
    }

    #[test]
    fn the_notes_name_what_a_stopped_run_left_in_flight() {
        let [none, two] = [0, 2].map(|in_flight| {
            let longest_in_flight = 8_028_000_000;
            let total = Frame::new(1, false);
            let result = TrialResult { in_flight, longest_in_flight, ..result(total) };
            notes_block(&result, false, &[])
        });
        assert_eq!(none, "");
        let line = "    Transactions in flight at the end: 2, which are in no figure above. The \
                    longest latency was at least 8.03 s.\n";
        assert!(two.contains(line), "{two}");
    }

    #[test]
    fn wasted_work_and_misses_are_said() {
        let mut total = Frame::new(1, false);
        total.kinds[0].wasted = Tally { reads: 14, writes: 3, ..Tally::default() };
        total.kinds[0].work = Tally { misses: 5, others: 5, ..Tally::default() };
        total.kinds[0].counts.retries = 2;
        let deadlock = DbError::server(ErrorClass::Deadlock, 1213, *b"40001", "Deadlock found");
        total.errors.count(&deadlock);
        total.errors.count(&deadlock);
        let mut result = result(total);
        let text = notes_block(&result, false, &[]);
        assert_eq!(
            text,
            "Notes:\n    Updates and deletes that met no row: 5, among the other statements, in \
             transactions that count.\n    Statements of failed attempts: 17, which are in no count \
             above; --errors shows them.\n\n"
        );
        result.in_flight = 2;
        let text = notes_block(&result, true, &[]);
        assert!(text.starts_with(
            "Errors:\n    deadlock        1213 (40001)              2  Deadlock found\n\nWasted work:\n"
        ), "{text}");
        assert!(text.contains("    read statements of failed attempts:  14\n"), "{text}");
        assert!(text.contains("    transactions in flight at the end:   2\n"), "{text}");
        assert!(!text.contains("--errors"), "{text}");
    }

    /// Intervals of a second, with what was committed in each.
    fn series(committed: [u64; 4]) -> [SeriesRow; 4] {
        let mut begins_s = -1.0;
        committed.map(|committed| {
            begins_s += 1.0;
            SeriesRow { begins_s, length_s: 1.0, committed, ..SeriesRow::default() }
        })
    }

    #[test]
    fn a_server_that_stays_away_is_reported_with_since_when() {
        let mut total = Frame::new(1, false);
        total.kinds[0].counts.committed = 9;
        total.errors.count(&DbError::lost("gone"));
        let mut away = result(total);
        away.window.closes = 4_000_000_000;
        let rows = series([4, 5, 0, 0]);
        assert_eq!(outage(&away, &rows), None);
        for _ in 0..3 {
            away.total.errors.count(&DbError::unreachable("Connection refused."));
        }
        let attempts = "Failed attempts to open lost connections again: 3, which are in no count \
                        above. The last reason: Connection refused.";
        let since =
            format!("{attempts} No transaction has ended after the first 2.0 of 4.0 seconds.");
        assert_eq!(outage(&away, &rows), Some(since.clone()));
        let notes = notes_block(&away, false, std::slice::from_ref(&since));
        assert_eq!(notes, format!("Notes:\n    {since}\n\n"));
        let back = series([4, 0, 0, 5]);
        assert_eq!(outage(&away, &back).as_deref(), Some(attempts));
        away.total.kinds[0].counts.committed = 0;
        let nothing = format!("{attempts} No transaction was committed.");
        assert_eq!(outage(&away, &[]), Some(nothing));
    }
}
