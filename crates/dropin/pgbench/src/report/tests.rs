//! Reports that pgbench 15.20 printed are read into numbers and must come out again byte for byte.

use super::*;
use dyno_pgbench::script::QueryMode;

const ORIGINALS: [(&str, &str); 11] = [
    ("plain", include_str!("../../golden/reports/plain.txt")),
    ("seconds_per_command", include_str!("../../golden/reports/seconds_per_command.txt")),
    ("scripts_per_command", include_str!("../../golden/reports/scripts_per_command.txt")),
    ("rate_limit", include_str!("../../golden/reports/rate_limit.txt")),
    ("connect_each", include_str!("../../golden/reports/connect_each.txt")),
    ("scripts_rate_limit", include_str!("../../golden/reports/scripts_rate_limit.txt")),
    ("weight_zero", include_str!("../../golden/reports/weight_zero.txt")),
    ("nothing", include_str!("../../golden/reports/nothing.txt")),
    ("failures", include_str!("../../golden/reports/failures.txt")),
    ("scripts_failures", include_str!("../../golden/reports/scripts_failures.txt")),
    ("partitions", include_str!("../../golden/reports/partitions.txt")),
];

/// The part of a report about the whole run, or about one script.
struct Section<'a>(Vec<&'a str>);

impl Section<'_> {
    /// What follows a label, up to the next blank.
    fn word(&self, label: &str) -> Option<&str> {
        let rest = self
            .0
            .iter()
            .find_map(|line| line.strip_prefix(" - ").unwrap_or(line).strip_prefix(label))?;
        rest.split(' ').next()
    }

    fn number<N: std::str::FromStr>(&self, label: &str) -> Option<N> {
        self.word(label)?.parse().ok()
    }

    fn counts(&self, processed: u64) -> Counts {
        let count = |label: &str| self.number(label).unwrap_or(0);
        let failures = count("number of failed transactions: ");
        let deadlock_failures = count("number of deadlock failures: ");
        Counts {
            processed,
            skipped: count("number of transactions skipped: "),
            // Where they are not told apart, all are of one kind.
            serialization_failures: failures - deadlock_failures,
            deadlock_failures,
            other_failures: 0,
            retried: count("number of transactions retried: "),
            retries: count("total number of retries: "),
        }
    }

    fn latency(&self) -> Option<Latency> {
        let average_ms = self.number("latency average = ")?;
        Some(Latency { average_ms, stddev_ms: self.number("latency stddev = ").unwrap_or(0.0) })
    }

    fn commands(&self, has_retries: bool) -> Vec<Command> {
        let is_command = |line: &&&str| line.starts_with("    ");
        let command = |line: &&str| {
            let (mut rest, mut numbers) = (line.trim_start(), Vec::new());
            for _ in 0..if has_retries { 3 } else { 2 } {
                let (number, after) = rest.split_once(' ').expect("a number and more");
                numbers.push(number.parse::<f64>().expect("a number"));
                rest = after.trim_start();
            }
            Command {
                text: rest.to_owned(),
                average_ms: numbers[0],
                failures: numbers[1] as u64,
                retries: numbers.get(2).map_or(0, |&retries| retries as u64),
            }
        };
        self.0.iter().filter(is_command).map(command).collect()
    }
}

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

fn script(section: &Section<'_>, has_retries: bool) -> Script {
    let transactions = section.0.iter().find_map(|line| line.split_once(" transactions ("));
    let processed = transactions.and_then(|(before, _)| before.strip_prefix(" - ")?.parse().ok());
    let title = section.0[0].split_once(": ").map_or("", |(_, title)| title);
    Script {
        description: title.to_owned(),
        weight: section.number("weight: ").unwrap_or(1),
        counts: section.counts(processed.unwrap_or(0)),
        latency: section.latency(),
        commands: section.commands(has_retries),
    }
}

fn settings(run: &Section<'_>, text: &str) -> Settings {
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
    let counts = run.counts(processed.parse().expect("a number"));
    let settings = settings(&run, text);
    let lag = run.0.iter().find_map(|line| line.strip_prefix("rate limit schedule lag: avg "));
    let lag = lag.and_then(|line| line.strip_suffix(") ms")?.split_once(" (max "));
    let lag_ms = lag.and_then(|(avg, max)| Some((avg.parse().ok()?, max.parse().ok()?)));
    let late = run.0.iter().find_map(|line| line.split_once(" ms latency limit: "));
    let late = late.and_then(|(_, rest)| rest.split('/').next()?.parse().ok());
    let tps = run.number("tps = ").unwrap_or(0.0) + f64::from(nudge) * 1e-7;
    let mut scripts: Vec<Script> =
        parts.iter().map(|part| script(part, settings.max_tries != 1)).collect();
    if scripts.is_empty() {
        let mut only = script(&run, settings.max_tries != 1);
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
        counts,
        late: late.unwrap_or(0),
        latency: run.latency(),
        percentiles: &[],
        lag_ms: lag_ms.unwrap_or((0.0, 0.0)),
        connection_ms: average.or(run.number("initial connection time = ")).unwrap_or(0.0),
        seconds: counts.processed as f64 / tps,
        scripts: &scripts,
    }
    .to_string()
}

#[test]
fn reports_have_every_byte_of_the_originals() {
    for (name, text) in ORIGINALS {
        // Of nothing the original prints a share that is no number.
        let text = &text.replace("(NaN%)", "(0.000%)");
        // What is printed of tps is rounded: one of the values that it may have been fits all lines.
        let fits = (-5..=5).any(|nudge| printed_again(text, nudge) == *text);
        assert!(fits, "{name}: {}\n-- instead of\n{text}", printed_again(text, 0));
    }
}

/// Measured are 4.7 ms, without connecting.
#[test]
fn the_average_of_connect_each_has_the_connecting_in_it() {
    let script = Script { description: "x.sql".to_owned(), weight: 1, ..Script::default() };
    let printed = |other_failures, progress_s| {
        let settings = Settings { connect_each: true, clients: 2, progress_s, ..Settings::new(0) };
        Report {
            settings: &settings,
            tables: Tables { scale: 1, partitions: None },
            threads: 1,
            counts: Counts { processed: 100, other_failures, ..Counts::default() },
            late: 0,
            latency: Some(Latency { average_ms: 4.7, stddev_ms: 0.5 }),
            percentiles: &[],
            lag_ms: (0.0, 0.0),
            connection_ms: 13.0,
            seconds: 0.9,
            scripts: std::slice::from_ref(&script),
        }
        .to_string()
    };
    let text = printed(0, None);
    assert!(text.contains("\nlatency average = 18.000 ms\naverage connection time"), "{text}");
    let text = printed(20, None);
    assert!(text.contains("\nlatency average = 15.000 ms (including failures)\n"), "{text}");
    // The original measures where it has the deviation to print.
    assert!(printed(0, Some(1)).contains("\nlatency average = 4.700 ms\n"));
}

#[test]
fn percentiles_and_other_failures_are_lines_of_their_own() {
    let script = Script { description: "x.sql".to_owned(), weight: 1, ..Script::default() };
    let report = Report {
        settings: &Settings {
            failures_detailed: true,
            continue_on_error: true,
            transactions: Some(4),
            ..Settings::new(0)
        },
        tables: Tables { scale: 1, partitions: None },
        threads: 1,
        counts: Counts { processed: 3, other_failures: 1, ..Counts::default() },
        late: 0,
        latency: Some(Latency { average_ms: 1.5, stddev_ms: 0.5 }),
        percentiles: &[(50.0, 1.25), (99.9, 3.0)],
        lag_ms: (0.0, 0.0),
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
