//! Lines of `--report-interval` and reports of `--report-checkpoints`, from intervals that are as
//! long as the greatest common divisor of all times asked for.

use super::fatal::Console;
use super::options::Settings;
use super::report::{Fairness, Figures, fairness, ignored_errors, per_second};
use dyno_core::{Nanos, SECOND};
use dyno_engine::record::{Frame, MeasuredInterval, Phase};
use dyno_engine::{DueArrivals, WorkerStats};
use dyno_lua::ReportStat;

/// Reports that a script prints itself. Each is false if it does not: then they are those of the original.
pub(super) trait ReportHooks {
    /// Reports an interval.
    fn intermediate(&mut self, stat: &ReportStat) -> bool;
    /// Reports a checkpoint. As in the original, its heading is printed before what a script prints.
    fn checkpoint(&mut self, heading: &str, stat: &ReportStat) -> bool;
    /// Reports the end of the run.
    fn last(&mut self, stat: &ReportStat) -> bool;
    /// Prints errors of hooks since the last call. As in the original the run continues, and its exit code stays.
    fn print_failures(&mut self, console: &mut Console);
}

/// The figures of `frame`, which covers `length_s` seconds until `at_s`, for a script.
pub(super) fn report_stat(
    frame: &Frame,
    length_s: f64,
    at_s: f64,
    threads_running: u32,
    percentile: u32,
) -> ReportStat {
    let (counts, work, latency) = (frame.counts(), frame.work(), frame.latency());
    let percentile = match percentile {
        0 => 0,
        percent => latency.percentile(f64::from(percent)),
    };
    ReportStat {
        threads_running,
        time_interval_s: length_s,
        time_total_s: at_s,
        latency_percentile_s: percentile as f64 / 1e9,
        events: counts.committed,
        reads: work.reads,
        writes: work.writes,
        others: work.others,
        errors: ignored_errors(frame),
        reconnects: counts.reconnects,
        queue: None,
        latency_s: None,
    }
}

/// Adds the latencies that reports of a whole run, or since its last checkpoint, have.
pub(super) fn with_latency(stat: ReportStat, frame: &Frame) -> ReportStat {
    let latency = frame.latency();
    let [least, greatest, sum] = [latency.min(), latency.max(), latency.sum() as Nanos];
    let latency_ns = [least as f64, greatest as f64, latency.mean(), sum as f64];
    ReportStat { latency_s: Some(latency_ns.map(|ns| ns / 1e9)), ..stat }
}

/// A line of `--report-interval`, with this percentile of the latency. Without a database there are no statements.
fn line(stat: &ReportStat, percentile: u32, is_csv: bool, uses_database: bool) -> String {
    let (at_s, workers) = (stat.time_total_s, stat.threads_running);
    let latency_ms = stat.latency_percentile_s * 1e3;
    let statements = stat.reads + stat.writes + stat.others;
    let [tps, qps, reads, writes, others, errors, reconnects] = [
        stat.events,
        statements,
        stat.reads,
        stat.writes,
        stat.others,
        stat.errors,
        stat.reconnects,
    ]
    .map(|count| per_second(stat, count));
    match (is_csv, uses_database) {
        (true, _) => format!(
            "{at_s:.0},{workers},{tps:.2},{qps:.2},{reads:.2},{writes:.2},{others:.2},{latency_ms:.2},\
             {errors:.2},{reconnects:.2}\n"
        ),
        (false, true) => format!(
            "[ {at_s:.0}s ] thds: {workers} tps: {tps:.2} qps: {qps:.2} (r/w/o: \
             {reads:.2}/{writes:.2}/{others:.2}) lat (ms,{percentile}%): {latency_ms:.2} err/s: \
             {errors:.2} reconn/s: {reconnects:.2}\n"
        ),
        (false, false) => format!(
            "[ {at_s:.0}s ] thds: {workers} eps: {tps:.2} lat (ms,{percentile}%): {latency_ms:.2}\n"
        ),
    }
}

/// The sum of frames since some point in time, and its seconds.
type FramesSince = (Frame, f64);

/// Turns intervals into sysbench's intermediate reports.
pub(super) struct Intervals<'a> {
    settings: &'a Settings,
    line: FramesSince,
    checkpoint: FramesSince,
    has_checkpoint: bool,
    in_flight: i64,
    /// With a rate: what has come due, of which `started` have begun since the release.
    pub(super) arrivals: Option<DueArrivals>,
    started: u64,
    /// The sums of all workers at the end of the interval that comes next, and at the last checkpoint.
    pub(super) workers: Vec<WorkerStats>,
    workers_before: Vec<WorkerStats>,
    /// False: there are no statements to speak of.
    pub(super) uses_database: bool,
}

impl<'a> Intervals<'a> {
    pub(super) fn new(settings: &'a Settings) -> Self {
        let frame = Frame::new(1, settings.rate_per_s > 0);
        Intervals {
            settings,
            line: (frame.clone(), 0.0),
            checkpoint: (frame, 0.0),
            has_checkpoint: false,
            in_flight: 0,
            arrivals: None,
            started: 0,
            workers: Vec::new(),
            workers_before: Vec::new(),
            uses_database: true,
        }
    }

    /// The length that intervals must have so that all reports end at one: a second when none was
    /// asked for, so that a result as JSON has a series.
    pub(super) fn length(settings: &Settings) -> Nanos {
        let times = [settings.report_interval_s]
            .into_iter()
            .chain(settings.report_checkpoints_s.iter().copied());
        match times.fold(0, greatest_common_divisor) {
            0 => SECOND,
            seconds => seconds.saturating_mul(SECOND),
        }
    }

    /// Takes the next interval and returns what is to be printed, if anything. `is_complete` is false for an interval
    /// that a stop cut short: it becomes part of the next report, and never has a separate one.
    pub(super) fn add_interval(
        &mut self,
        interval: &MeasuredInterval,
        is_complete: bool,
        mut hooks: Option<&mut (dyn ReportHooks + '_)>,
    ) -> String {
        let counts = interval.frame.counts();
        if interval.phase == Phase::WarmUp {
            // What is in flight at the opening of the window counts as started there.
            self.started += counts.ended();
            return String::new();
        }
        self.started += counts.started;
        self.in_flight += counts.started as i64 - counts.ended() as i64;
        for (frame, seconds) in [&mut self.line, &mut self.checkpoint] {
            frame.add(&interval.frame);
            *seconds += interval.length_s;
        }
        if !is_complete {
            return String::new();
        }
        let at_s = interval.begins_s + interval.length_s;
        let mut text = String::new();
        if is_multiple(at_s, self.settings.report_interval_s) {
            let waiting = self.waiting(at_s);
            let running = self.in_flight.max(0) as u64;
            let queue = Some(waiting.map_or((0, 0), |waiting| (waiting, running)));
            let stat = ReportStat { queue, ..self.stat(&self.line, at_s) };
            if !hooks.as_mut().is_some_and(|hooks| hooks.intermediate(&stat)) {
                text.push_str(&self.print_line(&stat, waiting));
            }
            self.line.0.clear();
            self.line.1 = 0.0;
        }
        let mut checkpoints = self.settings.report_checkpoints_s.iter();
        if checkpoints.any(|s| (at_s - *s as f64).abs() < 1e-6) {
            let stat = self.stat(&self.checkpoint, at_s);
            let stat = with_latency(stat, &self.checkpoint.0);
            let heading = format!("[ {at_s:.0}s ] Checkpoint report:\n");
            if !hooks.as_mut().is_some_and(|hooks| hooks.checkpoint(&heading, &stat)) {
                text.push_str(&heading);
                text.push_str(&self.print_checkpoint(stat));
            }
            self.checkpoint.0.clear();
            self.checkpoint.1 = 0.0;
            self.has_checkpoint = true;
            self.workers_before.clone_from(&self.workers);
        }
        text
    }

    /// Returns the statistics of what was measured since a line or a checkpoint.
    fn stat(&self, since: &FramesSince, at_s: f64) -> ReportStat {
        let Settings { threads, percentile, .. } = *self.settings;
        report_stat(&since.0, since.1, at_s, threads, percentile)
    }

    fn print_line(&self, stat: &ReportStat, waiting: Option<u64>) -> String {
        let Settings { percentile, reports_csv, .. } = *self.settings;
        let mut text = line(stat, percentile, reports_csv, self.uses_database);
        if let Some(waiting) = waiting.filter(|_| !reports_csv) {
            let comma = if self.uses_database { "," } else { "" };
            let (at_s, running) = (stat.time_total_s, self.in_flight.max(0));
            text.push_str(&format!(
                "[ {at_s:.0}s ] queue length: {waiting}{comma} concurrency: {running}\n"
            ));
        }
        text
    }

    /// Events that are due and have not begun; `None` without a rate.
    fn waiting(&mut self, at_s: f64) -> Option<u64> {
        let since_release_s = self.settings.warmup_s as f64 + at_s;
        let due = self.arrivals.as_mut()?.count_due((since_release_s * 1e9) as Nanos);
        Some(due.saturating_sub(self.started))
    }

    fn print_checkpoint(&self, stat: ReportStat) -> String {
        let fairness = self.fairness(&self.workers);
        let figures = Figures::new(stat, &self.checkpoint.0, self.settings, fairness);
        Figures { uses_database: self.uses_database, ..figures }.to_string()
    }

    /// Fairness since the last checkpoint, from the sums of all workers now.
    pub(super) fn fairness(&self, workers: &[WorkerStats]) -> Fairness {
        let none = WorkerStats::default();
        let before = self.workers_before.iter().chain(std::iter::repeat(&none));
        let since = workers.iter().zip(before).map(|(now, before)| WorkerStats {
            transactions: now.transactions - before.transactions,
            busy: now.busy - before.busy,
            ..WorkerStats::default()
        });
        fairness(&since.collect::<Vec<_>>())
    }

    /// The frames since the last checkpoint, if there was one.
    pub(super) fn since_checkpoint(&self) -> Option<(&Frame, f64)> {
        self.has_checkpoint.then_some((&self.checkpoint.0, self.checkpoint.1))
    }
}

fn greatest_common_divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { greatest_common_divisor(b, a % b) }
}

fn is_multiple(at_s: f64, step_s: u64) -> bool {
    if step_s == 0 {
        return false;
    }
    let steps = at_s / step_s as f64;
    (steps - steps.round()).abs() < 1e-6
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_core::Tally;
    use dyno_engine::TrialSpec;
    use dyno_facts::HostSample;

    #[test]
    fn lines_have_every_byte_of_the_originals() {
        for original in include_str!("../../golden/sysbench/intervals.txt").lines() {
            let numbers: Vec<f64> = original
                .replace("r/w/o", "")
                .split(|c: char| !c.is_ascii_digit() && c != '.')
                .filter_map(|word| word.parse().ok())
                .collect();
            // Rates have two decimals, each rounded for itself: the sum is that of what was cut.
            let counts: Vec<u64> =
                numbers.iter().map(|number| (number * 1000.0).round() as u64).collect();
            let cut = (counts[4] + counts[5] + counts[6]).saturating_sub(counts[3]) * 4 / 10;
            let stat = ReportStat {
                time_total_s: numbers[0],
                threads_running: numbers[1] as u32,
                time_interval_s: 1000.0,
                events: counts[2],
                reads: counts[4] - cut,
                writes: counts[5],
                others: counts[6] - cut,
                latency_percentile_s: numbers[8] / 1e3,
                errors: counts[9],
                reconnects: counts[10],
                ..ReportStat::default()
            };
            let ours = line(&stat, numbers[7] as u32, false, true);
            assert_eq!(ours.trim_end(), original);
        }
    }

    #[test]
    fn csv_has_ten_columns() {
        let (time_total_s, time_interval_s) = (3.0, 2.0);
        let stat = ReportStat {
            time_total_s,
            time_interval_s,
            threads_running: 2,
            events: 3,
            ..ReportStat::default()
        };
        assert_eq!(line(&stat, 95, true, true), "3,2,1.50,0.00,0.00,0.00,0.00,0.00,0.00,0.00\n");
    }

    fn interval(index: u32, committed: u64) -> MeasuredInterval {
        let mut frame = Frame::new(1, false);
        let kind = &mut frame.kinds[0];
        kind.counts.started = committed;
        kind.counts.committed = committed;
        kind.work = Tally { reads: committed, ..Tally::default() };
        for _ in 0..committed {
            kind.latency.record(1_000_000);
        }
        MeasuredInterval {
            phase: Phase::Measured,
            index,
            begins_s: f64::from(index) * 5.0,
            length_s: 5.0,
            frame,
            host: HostSample::default(),
        }
    }

    fn worker_stats(transactions: u64, busy_s: u64) -> WorkerStats {
        WorkerStats { transactions, busy: busy_s * SECOND, ..WorkerStats::default() }
    }

    #[test]
    fn intervals_add_up_to_lines_and_checkpoints() {
        let mut settings = Settings::new();
        settings.report_interval_s = 10;
        settings.report_checkpoints_s = vec![15];
        assert_eq!(Intervals::length(&settings), 5 * SECOND);
        let mut intervals = Intervals::new(&settings);
        assert_eq!(intervals.add_interval(&interval(0, 10), true, None), "");
        let printed = intervals.add_interval(&interval(1, 20), true, None);
        assert!(printed.starts_with("[ 10s ] thds: 1 tps: 3.00 qps: 3.00 "), "{printed}");
        intervals.workers = vec![worker_stats(20, 1), worker_stats(40, 3)];
        let report = intervals.add_interval(&interval(2, 30), true, None);
        assert!(report.starts_with("[ 15s ] Checkpoint report:\nSQL statistics:\n"), "{report}");
        assert!(report.contains("    transactions:                        60     (4.00 per sec.)"));
        assert!(report.contains("    total time:                          15.0000s"));
        assert!(report.contains("    events (avg/stddev):           30.0000/10.00\n"), "{report}");
        let last = intervals.fairness(&[worker_stats(30, 2), worker_stats(70, 5)]);
        assert_eq!(last, [(20.0, 10.0), (1.5, 0.5)]);
        let printed = intervals.add_interval(&interval(3, 40), true, None);
        assert!(printed.starts_with("[ 20s ] thds: 1 tps: 7.00 "), "{printed}");
        let (frame, seconds) = intervals.since_checkpoint().expect("there was a checkpoint");
        assert_eq!((frame.counts().committed, seconds as u64), (40, 5));
    }

    /// Keeps what a script would get.
    struct RecordedStats(Vec<ReportStat>);

    impl ReportHooks for RecordedStats {
        fn intermediate(&mut self, stat: &ReportStat) -> bool {
            self.0.push(*stat);
            true
        }

        fn checkpoint(&mut self, heading: &str, stat: &ReportStat) -> bool {
            assert_eq!(heading, "[ 5s ] Checkpoint report:\n");
            self.0.push(*stat);
            true
        }

        fn last(&mut self, _stat: &ReportStat) -> bool {
            false
        }

        fn print_failures(&mut self, _console: &mut Console) {}
    }

    #[test]
    fn a_script_gets_an_empty_queue_where_there_is_no_rate() {
        let mut settings = Settings::new();
        settings.report_interval_s = 5;
        let mut hooks = RecordedStats(Vec::new());
        let text = Intervals::new(&settings).add_interval(&interval(0, 10), true, Some(&mut hooks));
        assert_eq!(text, "");
        assert_eq!(hooks.0.iter().map(|stat| stat.queue).collect::<Vec<_>>(), [Some((0, 0))]);
    }

    #[test]
    fn a_script_that_reports_checkpoints_gets_the_threads_that_run() {
        let mut settings = Settings::new();
        settings.report_checkpoints_s = vec![5];
        settings.threads = 3;
        let mut hooks = RecordedStats(Vec::new());
        let text = Intervals::new(&settings).add_interval(&interval(0, 10), true, Some(&mut hooks));
        assert_eq!(text, "");
        assert_eq!(hooks.0.iter().map(|stat| stat.threads_running).collect::<Vec<_>>(), [3]);
    }

    #[test]
    fn the_queue_holds_what_is_due_and_has_not_begun() {
        let mut settings = Settings::new();
        settings.report_interval_s = 5;
        settings.warmup_s = 5;
        let spec = TrialSpec { rate_per_s: Some(100.0), ..TrialSpec::closed(1) };
        let mut intervals =
            Intervals { arrivals: DueArrivals::new(&spec), ..Intervals::new(&settings) };
        let warm_up = MeasuredInterval { phase: Phase::WarmUp, begins_s: -5.0, ..interval(0, 30) };
        assert_eq!(intervals.add_interval(&warm_up, true, None), "");
        for (index, committed, seconds, begun) in [(0, 10, 10, 40), (1, 20, 15, 60)] {
            let due = DueArrivals::new(&spec).unwrap().count_due(seconds * SECOND);
            let text = intervals.add_interval(&interval(index, committed), true, None);
            let tail = text.split_once("queue length: ").expect("a queue").1;
            let queued = tail.split_once(',').expect("its end").0;
            assert_eq!(queued.parse::<u64>(), Ok(due - begun));
        }
    }

    #[test]
    fn a_cut_interval_is_no_line() {
        let mut settings = Settings::new();
        settings.report_interval_s = 5;
        let mut intervals = Intervals::new(&settings);
        assert_eq!(intervals.add_interval(&interval(0, 10), false, None), "");
    }

    #[test]
    fn without_any_report_intervals_are_a_second() {
        assert_eq!(Intervals::length(&Settings::new()), SECOND);
    }
}
