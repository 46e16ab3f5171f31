//! The output of a run: the console's lines as log4j writes them in BenchmarkSQL, and dyno's additions.

use super::run::RunVerdict;
use dyno_core::{MILLISECOND, Nanos, in_one_line};
use dyno_engine::TrialResult;
use dyno_engine::record::Frame;
use dyno_facts::format::short;
use dyno_facts::text_table;
use dyno_facts::{DataCheck, KindSummary, Lang, TrialSummary};
use dyno_reactor::monotonic_now;
use dyno_runner::output;
use dyno_tpcc::facts::{TpccFacts, TpccKind};
use dyno_tpcc::profile::TpccTransaction;
use std::path::Path;
use time::{Duration, OffsetDateTime, UtcOffset};

/// Tells local time of any moment of the run.
#[derive(Clone, Copy, Debug)]
pub(super) struct WallClock {
    /// When the clock of the loops was 0, in local time.
    zero: OffsetDateTime,
}

impl WallClock {
    /// Reads both clocks. To be called before there are other threads: with them the zone can't be
    /// read, and times are UTC.
    pub(super) fn read() -> Self {
        let offset = UtcOffset::current_local_offset().unwrap_or(UtcOffset::UTC);
        let now = OffsetDateTime::now_utc().to_offset(offset);
        WallClock { zero: now - Duration::nanoseconds(monotonic_now() as i64) }
    }

    /// Local time at a moment of the loops' clock.
    pub(super) fn at(&self, moment: Nanos) -> OffsetDateTime {
        self.zero + Duration::nanoseconds(moment as i64)
    }

    pub(super) fn now(&self) -> OffsetDateTime {
        self.at(monotonic_now())
    }
}

pub(super) struct Console<'a> {
    clock: &'a WallClock,
    /// Lines are talk where standard output is for something else.
    to_stderr: bool,
    thread: &'static str,
    /// Bytes of the running average that stand on the terminal.
    shown: usize,
}

impl<'a> Console<'a> {
    pub(super) fn new(clock: &'a WallClock, to_stderr: bool) -> Self {
        Console { clock, to_stderr, thread: "main", shown: 0 }
    }

    /// From now on, lines are those of the thread that ends a run.
    pub(super) fn end(&mut self) {
        self.thread = "Thread-1";
        if self.shown > 0 {
            self.put("\n");
            self.shown = 0;
        }
    }

    pub(super) fn line(&self, text: &str) {
        let at = line_time(self.clock.now());
        self.put(&format!("{at} [{}] INFO   jTPCC : Term-00, {text}\n", self.thread));
    }

    fn put(&self, text: &str) {
        if self.to_stderr {
            output::talk_lines(text.trim_end_matches('\n'));
        } else {
            output::data(text);
        }
    }

    /// True when stdout is a terminal: a file gets no running average.
    pub(super) fn is_watched(&self) -> bool {
        !self.to_stderr && output::is_watched()
    }

    pub(super) fn running(&mut self, text: &str) {
        output::redraw(std::mem::replace(&mut self.shown, text.len()), text);
    }
}

/// The line that the original shows once a second: transactions per minute since the begin and within the last interval,
/// and the memory of this process, now and at most.
pub(super) fn running_average(average: f64, current: u64, (used, most): (u64, u64)) -> String {
    format!(
        "Term-00, Running Average tpmTOTAL: {average:.2}    Current tpmTOTAL: {current}    Memory Usage: \
         {used}MB / {most}MB          "
    )
}

/// Memory of this process, now and at most, MB; 0 where the system doesn't say.
pub(super) fn memory_mb() -> (u64, u64) {
    let status = std::fs::read_to_string(Path::new("/proc/self/status")).unwrap_or_default();
    let of = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        let kib = line.and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok());
        kib.unwrap_or(0) / 1_024
    };
    (of("VmRSS:"), of("VmHWM:"))
}

/// The time of a line: `19:34:45,042`.
fn line_time(at: OffsetDateTime) -> String {
    let (hour, minute, second, ms) = at.to_hms_milli();
    format!("{hour:02}:{minute:02}:{second:02},{ms:03}")
}

/// Begin or end of a session: `2026-11-21 19:34:45`.
pub(super) fn session_time(at: OffsetDateTime) -> String {
    let ((year, month, day), (hour, minute, second)) = (at.to_calendar_date(), at.to_hms());
    format!("{year:04}-{:02}-{day:02} {hour:02}:{minute:02}:{second:02}", u8::from(month))
}

/// A rate per minute of the closing lines: cut to two decimals, not rounded.
pub(super) fn per_minute(count: u64, elapsed_ms: u64) -> String {
    let hundredths = u128::from(count) * 6_000_000 / u128::from(elapsed_ms.max(1));
    format!("{}.{:02}", hundredths / 100, hundredths % 100)
}

/// Committed transactions. The terminal's part of a Delivery is its count: kinds beyond the five are
/// parts of these.
pub(super) fn committed(frame: &Frame) -> u64 {
    frame.kinds.iter().take(TpccTransaction::ALL.len()).map(|kind| kind.counts.committed).sum()
}

/// The closing lines, byte for byte. tpmC counts the New-Orders that are rolled back for an unused item, as the original
/// does; what the others count is acknowledged commits.
pub(super) fn print_closing(console: &Console<'_>, clock: &WallClock, result: &TrialResult) {
    let orders = result
        .total
        .kinds
        .get(TpccTransaction::NewOrder.index())
        .map_or(0, |kind| kind.counts.committed + kind.counts.rolled_back);
    let total = committed(&result.total);
    let elapsed_ms = result.length() / MILLISECOND;
    let begin = session_time(clock.at(result.window.opens));
    let end = session_time(clock.at(result.window.closes));
    console.line("");
    console.line("");
    console.line(&format!("Measured tpmC (NewOrders) = {}", per_minute(orders, elapsed_ms)));
    console.line(&format!("Measured tpmTOTAL = {}", per_minute(total, elapsed_ms)));
    console.line(&format!("Session Start     = {begin}"));
    console.line(&format!("Session End       = {end}"));
    console.line(&format!("Transaction Count = {total}"));
}

/// The conditions of the run, and the results of each kind of transaction.
pub(super) fn run_details(summary: &TrialSummary, facts: &TpccFacts) -> String {
    let isolation = facts.isolation.as_deref().unwrap_or("the server's own");
    let mut text = format!(
        "profile {}, isolation {isolation}, {} {}, {} terminals over {} sessions, {} s\n",
        facts.profile,
        facts.warehouses,
        if facts.warehouses == 1 { "warehouse" } else { "warehouses" },
        facts.terminals,
        facts.sessions,
        short(summary.window_s),
    );
    text.push_str(&kinds(summary, facts));
    let counts = &summary.counts;
    text.push_str(&format!(
        "{} retries, {} reconnects, {} in flight at the end; New-Orders of unknown outcome: {}\n",
        counts.retries, counts.reconnects, summary.in_flight, facts.orders_unknown
    ));
    if let Some(limit) = facts.tpmc_limit {
        let share = 100.0 * facts.tpmc / limit;
        text.push_str(&format!(
            "tpmC is {share:.1} % of the {} that keying and think times allow\n",
            short(limit)
        ));
    }
    for error in &summary.errors {
        let (count, class, message) = (error.count, &error.class, error.message.line(Lang::En));
        text.push_str(&format!("{count} x {class} {}: {message}\n", error.sqlstate));
    }
    if let Some(lateness) = &summary.lateness {
        let p99_ms = lateness.p99_us / 1e3;
        text.push_str(&format!("99 % of the transactions began at most {p99_ms:.1} ms late\n"));
    }
    for note in &summary.notes {
        text.push_str(&format!("{}\n", note.line(Lang::En)));
    }
    text.push_str("This is TPC-C-like: not comparable with published TPC results.");
    text
}

/// The results of the checks, and reasons not to use the run, if any.
pub(super) fn check_lines(summary: &TrialSummary, verdict: &RunVerdict) -> String {
    let check = |check: &DataCheck| {
        let evidence = check.evidence.line(Lang::En);
        format!("check {}: {}: {evidence}", check.name, check.verdict.name())
    };
    let problem = |problem: &String| format!("error: {}", in_one_line(problem));
    let lines = summary.checks.iter().map(check).chain(verdict.problems.iter().map(problem));
    lines.collect::<Vec<_>>().join("\n")
}

fn kinds(summary: &TrialSummary, facts: &TpccFacts) -> String {
    let header = [
        "transaction",
        "committed",
        "rolled back",
        "failed",
        "p50 ms",
        "p90 ms",
        "p99 ms",
        "max ms",
        "limit p90 ms",
        "",
    ];
    let row = |(kind, held): (&KindSummary, &TpccKind)| {
        let limit_us = held.limit_p90_s * 1e6;
        let verdict = match kind.latency.count {
            0 => "-",
            _ if kind.latency.p90_us <= limit_us => "kept",
            _ => "exceeded",
        };
        let counts = [kind.counts.committed, kind.counts.rolled_back, kind.counts.failed];
        let latency = &kind.latency;
        let times_us = [latency.p50_us, latency.p90_us, latency.p99_us, latency.max_us, limit_us];
        let mut row = vec![kind.name.clone()];
        row.extend(counts.map(|count| count.to_string()));
        row.extend(times_us.map(|us| short(us / 1e3)));
        row.push(verdict.to_owned());
        row
    };
    let rows: Vec<_> = summary.kinds.iter().zip(&facts.kinds).map(row).collect();
    text_table(&header, &rows, |place| place >= 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_as_the_original_does() {
        let at = OffsetDateTime::from_unix_timestamp_nanos(1_795_289_685_042_900_000);
        let at = at.expect("a point in time");
        assert_eq!(line_time(at), "19:34:45,042");
        assert_eq!(session_time(at), "2026-11-21 19:34:45");
    }

    #[test]
    fn rates_are_cut_to_two_decimals() {
        assert_eq!(per_minute(19_392, 60_110), "19356.51");
        assert_eq!(per_minute(1, 7_000), "8.57");
        assert_eq!(per_minute(2, 3_000), "40.00");
        assert_eq!(per_minute(7, 0), "420000.00");
    }

    #[test]
    fn the_running_average_has_the_originals_shape() {
        assert_eq!(
            running_average(1_234.567, 1_200, (12, 34)),
            "Term-00, Running Average tpmTOTAL: 1234.57    Current tpmTOTAL: 1200    Memory \
             Usage: 12MB / 34MB          "
        );
    }
}
