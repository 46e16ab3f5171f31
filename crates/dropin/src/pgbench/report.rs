//! The report at the end of a run, in pgbench 15's shape: plain numbers in, text out.

use super::options::{Length, Settings};
use super::setup::Tables;
use dyno_engine::TrialResult;
use dyno_pgbench::run::{PgBench, ScriptStatistics};
use std::fmt::{self, Write};

pub(super) struct ReportedScript {
    pub(super) description: String,
    pub(super) weight: u32,
    pub(super) statistics: ScriptStatistics,
    /// The first lines of its commands, if these are to be reported; else empty.
    pub(super) commands: Vec<String>,
}

pub(super) struct Report<'a> {
    pub(super) settings: &'a Settings,
    pub(super) tables: Tables,
    /// Loops of the run.
    pub(super) threads: u32,
    pub(super) total: &'a ScriptStatistics,
    /// Processed transactions that took longer than `-L`.
    pub(super) late: u64,
    /// Percent and milliseconds of each percentile that was requested.
    pub(super) percentiles: Vec<(f64, f64)>,
    /// Initial, or with `-C` on average.
    pub(super) connection_ms: f64,
    /// Length of the run, connecting left out unless `-C`.
    pub(super) seconds: f64,
    pub(super) scripts: &'a [ReportedScript],
}

/// A share in percent; of nothing it is 0, where pgbench prints `NaN`.
fn percent(part: u64, whole: u64) -> f64 {
    100.0 * part as f64 / whole.max(1) as f64
}

/// A line `LABEL: N (P%)`.
fn share(f: &mut impl Write, label: &str, part: u64, whole: u64) -> fmt::Result {
    writeln!(f, "{label}: {part} ({:.3}%)", percent(part, whole))
}

/// The lines about failed and repeated transactions; `prefix` goes before each.
fn failures(
    f: &mut impl Write,
    prefix: &str,
    counts: &ScriptStatistics,
    settings: &Settings,
) -> fmt::Result {
    let (is_detailed, has_tries) = (settings.failures_detailed, settings.max_tries != 1);
    for (is_shown, label, part) in [
        (true, "failed transactions", counts.failed()),
        (is_detailed, "serialization failures", counts.serialization_failures),
        (is_detailed, "deadlock failures", counts.deadlock_failures),
        (is_detailed && settings.continue_on_error, "other failures", counts.other_failures),
        (has_tries, "transactions retried", counts.retried),
    ] {
        if is_shown {
            share(f, &format!("{prefix}number of {label}"), part, counts.total())?;
        }
    }
    if has_tries {
        writeln!(f, "{prefix}total number of retries: {}", counts.retries)?;
    }
    Ok(())
}

impl Report<'_> {
    /// Returns this number of transactions per second of the measured time.
    fn tps(&self, processed: u64) -> f64 {
        processed as f64 / self.seconds
    }

    fn write_head(&self, f: &mut impl Write) -> fmt::Result {
        let description = match self.scripts {
            [only] => only.description.as_str(),
            _ => "multiple scripts",
        };
        writeln!(f, "transaction type: {description}\nscaling factor: {}", self.tables.scale)?;
        if let Some((method, number)) = self.tables.partitions {
            writeln!(f, "partition method: {method}\npartitions: {number}")?;
        }
        let Settings { mode, clients, max_tries, .. } = self.settings;
        writeln!(f, "query mode: {}", mode.name())?;
        writeln!(f, "number of clients: {clients}\nnumber of threads: {}", self.threads)?;
        if *max_tries > 0 {
            writeln!(f, "maximum number of tries: {max_tries}")?;
        }
        let processed = self.total.processed();
        match self.settings.length() {
            Length::Transactions(each) => {
                let total = u64::from(each) * u64::from(*clients);
                writeln!(f, "number of transactions per client: {each}")?;
                writeln!(f, "number of transactions actually processed: {processed}/{total}")
            }
            Length::Seconds(seconds) => {
                writeln!(f, "duration: {seconds} s")?;
                writeln!(f, "number of transactions actually processed: {processed}")
            }
        }
    }

    fn write_times(&self, f: &mut impl Write) -> fmt::Result {
        let Report { settings, total: counts, .. } = self;
        if settings.skips() {
            share(f, "number of transactions skipped", counts.skipped, counts.total())?;
        }
        if settings.late_limit_us > 0 {
            let late_percent = percent(self.late, counts.processed());
            let limit_ms = settings.late_limit_us as f64 / 1000.0;
            let (late, processed) = (self.late, counts.processed());
            writeln!(
                f,
                "number of transactions above the {limit_ms:.1} ms latency limit: \
                 {late}/{processed} ({late_percent:.3}%)"
            )?;
        }
        let is_computed = settings.connect_each || counts.failed() > 0;
        if is_computed && !settings.has_deviation() {
            // Not measured, so that connecting is part of it, as it is of tps, and so are failures.
            let client_seconds = f64::from(settings.clients) * self.seconds;
            let average_ms = 1_000.0 * client_seconds / counts.total() as f64;
            let note = if counts.failed() > 0 { " (including failures)" } else { "" };
            writeln!(f, "latency average = {average_ms:.3} ms{note}")?;
        } else if counts.processed() > 0 {
            writeln!(f, "latency average = {:.3} ms", counts.latency.mean_ns() / 1e6)?;
            if settings.has_deviation() {
                writeln!(f, "latency stddev = {:.3} ms", counts.latency.stddev_ns() / 1e6)?;
            }
        }
        for (percent, latency_ms) in &self.percentiles {
            writeln!(f, "latency percentile {percent} = {latency_ms:.3} ms")?;
        }
        if settings.rate_per_s.is_some() {
            let (average, max) = (counts.lag.mean_ns() / 1e6, counts.lag.max_ns as f64 / 1e6);
            writeln!(f, "rate limit schedule lag: avg {average:.3} (max {max:.3}) ms")?;
        }
        let (label, note) = if settings.connect_each {
            ("average connection time", "including reconnection times")
        } else {
            ("initial connection time", "without initial connection time")
        };
        writeln!(f, "{label} = {:.3} ms", self.connection_ms)?;
        writeln!(f, "tps = {:.6} ({note})", self.tps(counts.processed()))
    }

    fn write_script(
        &self,
        f: &mut impl Write,
        number: usize,
        script: &ReportedScript,
    ) -> fmt::Result {
        let ReportedScript { statistics: counts, weight, .. } = script;
        let weights: u64 = self.scripts.iter().map(|script| u64::from(script.weight)).sum();
        writeln!(f, "SQL script {number}: {}", script.description)?;
        let target = percent(u64::from(*weight), weights);
        writeln!(f, " - weight: {weight} (targets {target:.1}% of total)")?;
        writeln!(
            f,
            " - {} transactions ({:.1}% of total, tps = {:.6})",
            counts.processed(),
            percent(counts.processed(), self.total.processed()),
            self.tps(counts.processed())
        )?;
        failures(f, " - ", counts, self.settings)?;
        if self.settings.skips() && counts.total() > 0 {
            share(f, " - number of transactions skipped", counts.skipped, counts.total())?;
        }
        if counts.processed() > 0 {
            writeln!(f, " - latency average = {:.3} ms", counts.latency.mean_ns() / 1e6)?;
            writeln!(f, " - latency stddev = {:.3} ms", counts.latency.stddev_ns() / 1e6)?;
        }
        Ok(())
    }

    fn write_commands(
        &self,
        f: &mut impl Write,
        prefix: &str,
        script: &ReportedScript,
    ) -> fmt::Result {
        let has_retries = self.settings.max_tries != 1;
        let columns = if has_retries { ", failures and retries" } else { " and failures" };
        writeln!(f, "{prefix}statement latencies in milliseconds{columns}:")?;
        for (text, command) in script.commands.iter().zip(&script.statistics.commands) {
            let average_ms = command.latency.mean_ns() / 1e6;
            write!(f, "   {average_ms:>11.3}  {:>10}", command.failures)?;
            if has_retries {
                write!(f, "  {:>10}", command.retries)?;
            }
            writeln!(f, "  {text}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Report<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write_head(f)?;
        failures(f, "", self.total, self.settings)?;
        // What follows has no meaning when nothing was executed.
        if self.total.processed() + self.total.skipped == 0 {
            return Ok(());
        }
        self.write_times(f)?;
        let per_script = self.scripts.len() > 1;
        for (index, script) in self.scripts.iter().enumerate() {
            if per_script {
                self.write_script(f, index + 1, script)?;
            }
            if self.settings.report_per_command {
                let prefix = if per_script { " - " } else { "" };
                self.write_commands(f, prefix, script)?;
            }
        }
        Ok(())
    }
}

/// Returns the statistics of each script; with those of its commands if `per_command`.
pub(super) fn scripts(workload: &PgBench, per_command: bool) -> Vec<ReportedScript> {
    let statistics = workload.statistics().scripts;
    let scripts = workload.options.scripts.iter().zip(statistics);
    let reported = scripts.map(|((script, weight), statistics)| {
        let lines = script.commands.iter().map(|command| command.first_line.clone());
        let commands = if per_command { lines.collect() } else { Vec::new() };
        let description = script.description.clone();
        ReportedScript { description, weight: *weight, statistics, commands }
    });
    reported.collect()
}

impl<'a> Report<'a> {
    /// The report of a trial. `late` are the processed transactions that took longer than `-L`.
    pub(super) fn new(
        settings: &'a Settings,
        tables: Tables,
        result: &TrialResult,
        (total, scripts): (&'a ScriptStatistics, &'a [ReportedScript]),
        late: u64,
    ) -> Self {
        let connects: u64 = result.workers.iter().map(|worker| worker.connects).sum();
        let connecting: u64 = result.workers.iter().map(|worker| worker.connecting).sum();
        let connection_ns = if settings.connect_each {
            connecting as f64 / connects.max(1) as f64
        } else {
            result.connect as f64
        };
        let latency = result.total.latency();
        let percentiles = settings.percentiles.iter();
        let percentiles =
            percentiles.map(|&percent| (percent, latency.percentile(percent) as f64 / 1e6));
        Report {
            settings,
            tables,
            threads: result.loops_cpu.len() as u32,
            total,
            late,
            percentiles: percentiles.collect(),
            connection_ms: connection_ns / 1e6,
            seconds: result.length() as f64 / 1e9,
            scripts,
        }
    }
}

#[cfg(test)]
mod tests {
    //! Reports that pgbench 15.20 printed are read into numbers and must come out again byte for byte.

    use super::*;
    use dyno_pgbench::run::{CommandStatistics, Latency};
    use dyno_pgbench::script::QueryMode;

    const ORIGINALS: [(&str, &str); 11] = [
        ("plain", include_str!("../../golden/pgbench/reports/plain.txt")),
        (
            "seconds_per_command",
            include_str!("../../golden/pgbench/reports/seconds_per_command.txt"),
        ),
        (
            "scripts_per_command",
            include_str!("../../golden/pgbench/reports/scripts_per_command.txt"),
        ),
        ("rate_limit", include_str!("../../golden/pgbench/reports/rate_limit.txt")),
        ("connect_each", include_str!("../../golden/pgbench/reports/connect_each.txt")),
        ("scripts_rate_limit", include_str!("../../golden/pgbench/reports/scripts_rate_limit.txt")),
        ("weight_zero", include_str!("../../golden/pgbench/reports/weight_zero.txt")),
        ("nothing", include_str!("../../golden/pgbench/reports/nothing.txt")),
        ("failures", include_str!("../../golden/pgbench/reports/failures.txt")),
        ("scripts_failures", include_str!("../../golden/pgbench/reports/scripts_failures.txt")),
        ("partitions", include_str!("../../golden/pgbench/reports/partitions.txt")),
    ];

    /// Latencies of this number, mean and deviation in milliseconds.
    fn latency(count: u64, average_ms: f64, stddev_ms: f64) -> Latency {
        let (average, stddev) = (average_ms * 1e6, stddev_ms * 1e6);
        Latency {
            count,
            sum_ns: average.round() as u128 * u128::from(count),
            sum_squares: (average * average + stddev * stddev) * count as f64,
            ..Latency::default()
        }
    }

    /// The part of a report about the whole run, or about one script.
    struct Section<'a>(Vec<&'a str>);

    impl Section<'_> {
        /// The text after a label, up to the next blank.
        fn word(&self, label: &str) -> Option<&str> {
            let value = self
                .0
                .iter()
                .find_map(|line| line.strip_prefix(" - ").unwrap_or(line).strip_prefix(label))?;
            value.split(' ').next()
        }

        /// The number after a label; `None` if it is missing.
        fn number<N: std::str::FromStr>(&self, label: &str) -> Option<N> {
            self.word(label)?.parse().ok()
        }

        /// The count after a label; 0 if it is missing.
        fn count(&self, label: &str) -> u64 {
            self.number(label).unwrap_or(0)
        }

        /// The statistics that the lines of the section report.
        fn statistics(&self, processed: u64) -> ScriptStatistics {
            let failures = self.count("number of failed transactions: ");
            let deadlock_failures = self.count("number of deadlock failures: ");
            let [average_ms, stddev_ms] = ["latency average = ", "latency stddev = "]
                .map(|label| self.number(label).unwrap_or(0.0));
            ScriptStatistics {
                latency: latency(processed, average_ms, stddev_ms),
                skipped: self.count("number of transactions skipped: "),
                // If they are not told apart, all are of one kind.
                serialization_failures: failures - deadlock_failures,
                deadlock_failures,
                retried: self.count("number of transactions retried: "),
                retries: self.count("total number of retries: "),
                ..ScriptStatistics::default()
            }
        }

        /// The first lines of the commands, with their statistics.
        fn commands(&self, has_retries: bool) -> Vec<(String, CommandStatistics)> {
            let commands = self.0.iter().filter(|line| line.starts_with("    "));
            let reported = commands.map(|line| {
                let (mut rest, mut numbers) = (line.trim_start(), Vec::new());
                for _ in 0..if has_retries { 3 } else { 2 } {
                    let (number, after) = rest.split_once(' ').expect("a number and more");
                    numbers.push(number.parse::<f64>().expect("a number"));
                    rest = after.trim_start();
                }
                let statistics = CommandStatistics {
                    latency: latency(1, numbers[0], 0.0),
                    failures: numbers[1] as u64,
                    retries: numbers.get(2).map_or(0, |&retries| retries as u64),
                };
                (rest.to_owned(), statistics)
            });
            reported.collect()
        }
    }

    /// The part about the whole run, and those about scripts.
    fn sections(text: &str) -> (Section<'_>, Vec<Section<'_>>) {
        let mut parts = vec![Vec::new()];
        for line in text.lines() {
            if line.starts_with("SQL script ") {
                parts.push(Vec::new());
            }
            parts.last_mut().expect("at least one part").push(line);
        }
        let mut parts = parts.into_iter().map(Section);
        (parts.next().expect("the run's part"), parts.collect())
    }

    fn parse_script(section: &Section<'_>, has_retries: bool) -> ReportedScript {
        let transactions = section.0.iter().find_map(|line| line.split_once(" transactions ("));
        let processed =
            transactions.and_then(|(before, _)| before.strip_prefix(" - ")?.parse().ok());
        let title = section.0[0].split_once(": ").map_or("", |(_, title)| title);
        let mut statistics = section.statistics(processed.unwrap_or(0));
        let (texts, commands) = section.commands(has_retries).into_iter().unzip();
        statistics.commands = commands;
        ReportedScript {
            description: title.to_owned(),
            weight: section.number("weight: ").unwrap_or(1),
            statistics,
            commands: texts,
        }
    }

    fn parse_settings(run: &Section<'_>, text: &str) -> Settings {
        let mode =
            QueryMode::ALL.into_iter().find(|mode| run.word("query mode: ") == Some(mode.name()));
        let limit = run.0.iter().find_map(|line| line.split_once("transactions above the "));
        let limit_ms = limit.and_then(|(_, rest)| rest.split(' ').next()?.parse::<f64>().ok());
        Settings {
            connect_each: text.contains("average connection time"),
            rate_per_s: text.contains("rate limit schedule lag").then_some(1.0),
            late_limit_us: limit_ms.map_or(0, |ms| (ms * 1000.0) as u64),
            progress_s: run.word("latency stddev = ").map(|_| 1),
            max_tries: run.number("maximum number of tries: ").unwrap_or(0),
            failures_detailed: text.contains("number of deadlock failures"),
            report_per_command: text.contains("statement latencies"),
            mode: mode.expect("a mode"),
            clients: run.number("number of clients: ").expect("clients"),
            seconds: run.number("duration: "),
            transactions: run.number("number of transactions per client: "),
            ..Settings::new(0)
        }
    }

    /// The report whose text this is; tps is `nudge` tenths of its last digit above what is printed.
    fn printed_again(text: &str, nudge: i32) -> String {
        let (run, parts) = sections(text);
        let processed: String = run
            .word("number of transactions actually processed: ")
            .map_or_else(String::new, |word| word.split('/').next().unwrap_or_default().to_owned());
        let mut total = run.statistics(processed.parse().expect("a number"));
        let settings = parse_settings(&run, text);
        let lag = run.0.iter().find_map(|line| line.strip_prefix("rate limit schedule lag: avg "));
        let lag = lag.and_then(|line| line.strip_suffix(") ms")?.split_once(" (max "));
        if let Some((average, max)) = lag {
            total.lag = latency(1, average.parse().expect("a number"), 0.0);
            total.lag.max_ns = (max.parse::<f64>().expect("a number") * 1e6).round() as u64;
        }
        let late = run.0.iter().find_map(|line| line.split_once(" ms latency limit: "));
        let late = late.and_then(|(_, rest)| rest.split('/').next()?.parse().ok());
        let tps = run.number("tps = ").unwrap_or(0.0) + f64::from(nudge) * 1e-7;
        let mut scripts: Vec<ReportedScript> =
            parts.iter().map(|part| parse_script(part, settings.max_tries != 1)).collect();
        if scripts.is_empty() {
            let mut only = parse_script(&run, settings.max_tries != 1);
            only.description = run.0[0].split_once(": ").map_or("", |(_, title)| title).to_owned();
            scripts.push(only);
        }
        let average = run.number("average connection time = ");
        Report {
            settings: &settings,
            tables: Tables {
                scale: run.number("scaling factor: ").expect("a scale"),
                partitions: run.number("partitions: ").map(|number| ("range", number)),
            },
            threads: run.number("number of threads: ").expect("threads"),
            total: &total,
            late: late.unwrap_or(0),
            percentiles: Vec::new(),
            connection_ms: average.or(run.number("initial connection time = ")).unwrap_or(0.0),
            seconds: total.processed() as f64 / tps,
            scripts: &scripts,
        }
        .to_string()
    }

    #[test]
    fn reports_have_every_byte_of_the_originals() {
        for (name, text) in ORIGINALS {
            // For nothing at all the original prints a share that is not a number.
            let text = &text.replace("(NaN%)", "(0.000%)");
            // What is printed of tps is rounded: one of the values that it may have been fits all lines.
            let fits = (-5..=5).any(|nudge| printed_again(text, nudge) == *text);
            assert!(fits, "{name}: {}\n-- instead of\n{text}", printed_again(text, 0));
        }
    }

    /// Measured are 4.7 ms, without connecting.
    #[test]
    fn the_average_of_connect_each_has_the_connecting_in_it() {
        let script = parse_script(&Section(vec!["SQL script 1: x.sql"]), false);
        for (other_failures, progress_s, average) in [
            (0, None, "\nlatency average = 18.000 ms\naverage connection time"),
            (20, None, "\nlatency average = 15.000 ms (including failures)\n"),
            // The original measures if it has the deviation to print.
            (0, Some(1), "\nlatency average = 4.700 ms\n"),
        ] {
            let settings =
                Settings { connect_each: true, clients: 2, progress_s, ..Settings::new(0) };
            let report = Report {
                settings: &settings,
                tables: Tables { scale: 1, partitions: None },
                threads: 1,
                total: &ScriptStatistics {
                    latency: latency(100, 4.7, 0.5),
                    other_failures,
                    ..ScriptStatistics::default()
                },
                late: 0,
                percentiles: Vec::new(),
                connection_ms: 13.0,
                seconds: 0.9,
                scripts: std::slice::from_ref(&script),
            };
            let text = report.to_string();
            assert!(text.contains(average), "{text}");
        }
    }

    #[test]
    fn percentiles_and_other_failures_are_lines_of_their_own() {
        let script = parse_script(&Section(vec!["SQL script 1: x.sql"]), false);
        let report = Report {
            settings: &Settings {
                failures_detailed: true,
                continue_on_error: true,
                transactions: Some(4),
                ..Settings::new(0)
            },
            tables: Tables { scale: 1, partitions: None },
            threads: 1,
            total: &ScriptStatistics {
                latency: latency(3, 1.5, 0.5),
                other_failures: 1,
                ..ScriptStatistics::default()
            },
            late: 0,
            percentiles: vec![(50.0, 1.25), (99.9, 3.0)],
            connection_ms: 2.0,
            seconds: 1.0,
            scripts: &[script],
        };
        let text = report.to_string();
        let end = "\
number of transactions actually processed: 3/4
number of failed transactions: 1 (25.000%)
number of serialization failures: 0 (0.000%)
number of deadlock failures: 0 (0.000%)
number of other failures: 1 (25.000%)
latency average = 250.000 ms (including failures)
latency percentile 50 = 1.250 ms
latency percentile 99.9 = 3.000 ms
initial connection time = 2.000 ms
tps = 3.000000 (without initial connection time)
";
        assert!(text.ends_with(end), "{text}");
    }
}
