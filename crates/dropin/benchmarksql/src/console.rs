//! The lines of the console, as log4j writes them in BenchmarkSQL.

use super::clock::WallClock;
use dyno_runner::output;
use std::path::Path;
use time::OffsetDateTime;

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

    /// True when somebody watches: a running average in a file would only be in the way.
    pub(super) fn is_watched(&self) -> bool {
        !self.to_stderr && output::is_watched()
    }

    pub(super) fn running(&mut self, text: &str) {
        output::redraw(std::mem::replace(&mut self.shown, text.len()), text);
    }
}

/// What the original shows once a second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Running {
    /// Transactions per minute since the begin.
    pub(super) average: f64,
    /// The same within the last interval.
    pub(super) current: u64,
    /// Memory of this process, now and at most, MB.
    pub(super) memory_mb: (u64, u64),
}

impl Running {
    pub(super) fn text(&self) -> String {
        let (used, most) = self.memory_mb;
        format!(
            "Term-00, Running Average tpmTOTAL: {:.2}    Current tpmTOTAL: {}    Memory Usage: \
             {used}MB / {most}MB          ",
            self.average, self.current
        )
    }
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
        let running = Running { average: 1_234.567, current: 1_200, memory_mb: (12, 34) };
        assert_eq!(
            running.text(),
            "Term-00, Running Average tpmTOTAL: 1234.57    Current tpmTOTAL: 1200    Memory \
             Usage: 12MB / 34MB          "
        );
    }
}
