//! Helpers that the front ends of original tools share.
//!
//! - Several numbers of workers in one command line, such as `1,2,4`: each is its own run, and a table ends them.
//! - `--json`: the result for programs.
//! - `--paper`: the command line as a suite, which is run as any other and leaves a paper.

use crate::failure::Exit;
use crate::output::{self, StreamWriter};
use dyno_core::harmless_json;
use dyno_drivers::TargetUrl;
use dyno_engine::TrialResult;
use dyno_engine::record::Frame;
use dyno_facts::format::{grouped, ms, short};
use dyno_facts::{SeriesRow, TrialStatus, TrialSummary, text_table};
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Measurements of a run at one number of workers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SweepLevel {
    workers: u32,
    tps: f64,
    qps: f64,
    /// Mean and 95th percentile; `None` if nothing was measured.
    latencies_us: Option<[f64; 2]>,
    errors: u64,
}

impl SweepLevel {
    pub fn from_result(workers: u32, result: &TrialResult) -> Self {
        let (frame, latency) = (&result.total, result.total.latency());
        let work = frame.work();
        let seconds = (result.length() as f64 / 1e9).max(1e-9);
        SweepLevel {
            workers,
            tps: frame.counts().committed as f64 / seconds,
            qps: (work.reads + work.writes + work.others) as f64 / seconds,
            latencies_us: (latency.count() > 0)
                .then(|| [latency.mean() / 1e3, latency.percentile(95.0) as f64 / 1e3]),
            errors: frame.errors.total(),
        }
    }
}

/// The numbers of a list such as `1,2,4`, each at least 1; `None` if there is only one, or something else.
pub fn parse_levels(text: &str) -> Option<Vec<u32>> {
    let numbers = text.split(',').map(|text| text.trim().parse().ok());
    let levels: Option<Vec<u32>> =
        numbers.map(|number| number.filter(|&number| number > 0)).collect();
    levels.filter(|levels| levels.len() > 1)
}

/// Executes a run for each level until one fails. `run` leaves what it has measured; the text is a table of that,
/// without a run that was cut off, and empty if nothing was measured.
fn sweep(
    what: &str,
    levels: &[u32],
    mut run: impl FnMut(u32, &mut Option<SweepLevel>) -> Exit,
) -> (Exit, String) {
    let mut measured = Vec::new();
    let mut exit = Exit::Done;
    for (index, &level) in levels.iter().enumerate() {
        let mut level_result = None;
        exit = run(level, &mut level_result);
        // A run that was cut off is not in the table.
        measured.extend(level_result.filter(|_| exit != Exit::Interrupted));
        if exit != Exit::Done {
            let remaining: Vec<String> = levels[index + 1..].iter().map(u32::to_string).collect();
            if !remaining.is_empty() {
                output::talk(&format!("Not run: {what} {}.", remaining.join(", ")));
            }
            break;
        }
    }
    let table = if measured.is_empty() { String::new() } else { format_table(what, &measured) };
    (exit, table)
}

/// Executes a command line for each level until one fails, and prints the table. `words_of` has a level instead of the
/// list. `refuse` prints that `--json`, one file for one result, can't be had.
pub fn sweep_words(
    what: &str,
    words: &[String],
    levels: &[u32],
    words_of: impl Fn(u32) -> Vec<String>,
    mut run: impl FnMut(&[String], &mut Option<SweepLevel>) -> Exit,
    refuse: impl FnOnce(String),
) -> Exit {
    if words.iter().any(|word| word == "--json" || word.starts_with("--json=")) {
        refuse(format!("--json has room for one result: give one number of {what}, or --paper"));
        return Exit::Failed;
    }
    let (exit, table) = sweep(what, levels, |level, measured| run(&words_of(level), measured));
    output::data(&table);
    exit
}

fn format_table(what: &str, levels: &[SweepLevel]) -> String {
    let rows = levels.iter().map(|level| {
        let [mean, p95] =
            level.latencies_us.map_or(["–"; 2].map(str::to_owned), |latencies| latencies.map(ms));
        vec![
            level.workers.to_string(),
            short(level.tps),
            short(level.qps),
            mean,
            p95,
            grouped(level.errors),
        ]
    });
    let rows: Vec<Vec<String>> = rows.collect();
    let titles =
        [what, "transactions/s", "statements/s", "mean, ms", "95th percentile, ms", "errors"];
    format!("\n{}", text_table(&titles, &rows, |_| true))
}

/// Destination of the result. Opened before the run, so that a folder that can't be written to is found
/// before the time is spent; what is there stays until there is a result.
pub struct JsonFile {
    program: &'static str,
    path: PathBuf,
    /// `None` is stdout.
    file: Option<File>,
    is_new: bool,
}

#[derive(Serialize)]
struct Document<'a> {
    program: &'static str,
    version: &'static str,
    /// Text as typed, passwords replaced.
    command_line: &'a [String],
    /// Percentiles of the latency asked for, in microseconds.
    percentiles_us: BTreeMap<String, f64>,
    /// Reason why the run is incomplete.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    #[serde(flatten)]
    summary: TrialSummary,
    /// One entry per interval, warm-up included.
    intervals: Vec<SeriesRow>,
}

impl JsonFile {
    /// Creates the file for a result of `program`; `-` is stdout.
    pub fn create(program: &'static str, path: &Path) -> Result<Self, String> {
        let mut json = JsonFile { program, path: path.to_owned(), file: None, is_new: false };
        if path.as_os_str() != "-" {
            json.is_new = !path.exists();
            let opened = File::options().write(true).create(true).truncate(false).open(path);
            json.file = Some(opened.map_err(|error| {
                format!("The file of --json can't be made: {}: {error}", path.display())
            })?);
        }
        Ok(json)
    }

    /// Writes the result, with these percentiles of the latency.
    pub fn write(
        mut self,
        command_line: &[String],
        summary: TrialSummary,
        total: &Frame,
        percentiles: &[f64],
        intervals: Vec<SeriesRow>,
    ) -> Result<(), String> {
        let latency = total.latency();
        let error = match &summary.status {
            TrialStatus::Failed(why) => Some(why.to_string()),
            _ => None,
        };
        let percentiles_us = percentiles
            .iter()
            .map(|percent| (percent.to_string(), latency.percentile(*percent) as f64 / 1e3));
        let document = Document {
            program: self.program,
            version: env!("CARGO_PKG_VERSION"),
            command_line,
            percentiles_us: percentiles_us.collect(),
            error,
            summary,
            intervals,
        };
        self.write_document(&document).map_err(|error| {
            format!("The file of --json can't be written: {}: {error}", self.path.display())
        })
    }

    fn write_document(&mut self, document: &Document<'_>) -> io::Result<()> {
        let text = harmless_json(&serde_json::to_string_pretty(document)?) + "\n";
        match &mut self.file {
            None => StreamWriter::Data.write_all(text.as_bytes()),
            Some(file) => {
                // A pipe has no length to set.
                if file.metadata()?.is_file() {
                    file.set_len(0)?;
                }
                self.is_new = false;
                file.write_all(text.as_bytes())
            }
        }
    }
}

/// A run that did not begin leaves no empty file.
impl Drop for JsonFile {
    fn drop(&mut self) {
        if self.is_new {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// Name of the target of such a suite.
pub const TARGET: &str = "main";

/// Runs the suite that a command line amounts to. Papers are none of the drop-ins' business.
pub type RunLevels = fn(&LevelSuite) -> ExitCode;

/// A command line as a suite: one experiment on tables that are there, with a trial for each number of workers.
#[derive(Clone, Debug)]
pub struct LevelSuite {
    /// The front end, which is the name of the suite.
    pub front_end: &'static str,
    pub workload: &'static str,
    pub test: String,
    pub target: TargetUrl,
    pub workers: Vec<u32>,
    /// Other keys of the experiment, as the suite format has them.
    pub keys: Vec<(&'static str, Value)>,
    /// The options of the test; a name with a dot is a key of a table.
    pub options: Vec<(String, String)>,
    /// Names and texts of its scripts.
    pub scripts: Vec<(String, String)>,
    pub seed: Option<u64>,
}

impl LevelSuite {
    /// The suite in its file format.
    pub fn text(&self) -> String {
        let mut experiment = json!({
            "name": plain_name(&self.test),
            "title": self.test,
            "workload": self.workload,
            "workers": self.workers,
            "prepare": false,
            "cleanup": false,
        });
        // A script of Lua is its own key.
        let test = (self.workload != "lua").then(|| ("test".to_owned(), json!(self.test)));
        let keys = self.keys.iter().map(|(key, value)| ((*key).to_owned(), value.clone()));
        let options = self.options.iter();
        let options = options.map(|(name, value)| (format!("options.{name}"), json!(value)));
        for (name, value) in test.into_iter().chain(keys).chain(options) {
            let place = name.split('.').fold(&mut experiment, |table, part| &mut table[part]);
            *place = value;
        }
        let name = format!("{}-{}", self.front_end, plain_name(&self.test));
        let title = format!("{}: {}", self.front_end, self.test);
        let suite = json!({"name": name, "title": title});
        // All of it has a form in TOML.
        toml::to_string(&json!({"suite": suite, "experiment": [experiment]})).unwrap_or_default()
    }
}

/// The refusal of what a run that leaves a paper has no place for.
pub fn refusal(option: &str) -> (String, &'static str) {
    (
        format!("{option} and --paper can't be given together"),
        "leave one of them out: a run with --paper is one of `dyno run`, whose folder has all intervals, histograms and results",
    )
}

/// A text as the name of a suite or an experiment.
fn plain_name(text: &str) -> String {
    let letters = text.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' });
    let name: String = letters.collect();
    let name = name.trim_matches('-').to_owned();
    if name.is_empty() { "script".to_owned() } else { name }
}

/// Percentiles above 0 and up to 100, with commas, in the order given and each of them once.
///
/// # Errors
/// Reads percentiles; an error completes the words "the value must be".
pub fn percentiles(value: &str) -> Result<Vec<f64>, String> {
    let mut percentiles: Vec<f64> = Vec::new();
    for part in value.split(',').map(str::trim).filter(|part| !part.is_empty()) {
        let percent: f64 =
            part.parse().ok().filter(|percent| *percent > 0.0 && *percent <= 100.0).ok_or(
                "a list of numbers above 0 and up to 100, with commas, such as 50,95,99.9",
            )?;
        if !percentiles.contains(&percent) {
            percentiles.push(percent);
        }
    }
    Ok(percentiles)
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_core::offer::WorkloadOffer;
    use dyno_suite::{Overrides, Plan, Suite};

    #[test]
    fn a_list_is_a_sweep() {
        assert_eq!(parse_levels("1,2, 4"), Some(vec![1, 2, 4]));
        for other in ["8", "", "1,x", "1,"] {
            assert_eq!(parse_levels(other), None, "{other}");
        }
    }

    #[test]
    fn a_sweep_ends_with_its_first_failure() {
        fn new_level(workers: u32) -> SweepLevel {
            SweepLevel {
                workers,
                tps: 1_000.0 * f64::from(workers),
                qps: 20_000.0,
                latencies_us: (workers == 1).then_some([1_500.0, 2_000.0]),
                errors: 3,
            }
        }
        let mut executed = Vec::new();
        let (exit, table) = sweep("threads", &[1, 2, 4], |workers, measured| {
            executed.push(workers);
            *measured = Some(new_level(workers));
            if workers == 1 { Exit::Done } else { Exit::Failed }
        });
        assert_eq!((exit, executed), (Exit::Failed, vec![1, 2]));
        let lines: Vec<&str> = table.trim().lines().map(str::trim).collect();
        assert_eq!(lines.len(), 3, "{table}");
        assert!(lines[0].starts_with("threads") && lines[1].starts_with('1'), "{table}");
        assert!(lines[1].contains("20,000") && lines[1].contains("1.50"), "{table}");
        assert_eq!(lines[2].matches('–').count(), 2, "no latency was measured: {table}");
        let (exit, table) = sweep("threads", &[1, 2, 4], |workers, measured| {
            *measured = Some(new_level(workers));
            if workers == 1 { Exit::Done } else { Exit::Interrupted }
        });
        assert_eq!(exit, Exit::Interrupted);
        assert_eq!(table.trim().lines().count(), 2, "the second run was cut off: {table}");
        let nothing = sweep("threads", &[1, 2], |_, _| Exit::Failed);
        assert_eq!(nothing, (Exit::Failed, String::new()), "a table of nothing");
    }

    const OFFER: WorkloadOffer = WorkloadOffer {
        name: "w",
        tests: &[dyno_core::offer::TestOffer { name: "mix", size: None }],
        levels: dyno_core::offer::Levels::Workers,
        workers_alias: None,
        options: Vec::new,
        has_stages: true,
        pace: dyno_core::offer::UsualPace::loading(1.0),
    };

    #[test]
    fn a_command_line_is_a_suite() {
        let text = "-- \"x\" \u{7f}\n".to_owned();
        let suite = LevelSuite {
            front_end: "pgbench",
            workload: "w",
            test: "mix".to_owned(),
            target: "sqlite:x.db".parse().expect("a URL"),
            workers: vec![1, 4],
            keys: vec![("duration_s", 2.into()), ("percentiles", vec![95].into())],
            options: vec![("odd".to_owned(), text.clone())],
            scripts: Vec::new(),
            seed: Some(7),
        };
        let read = Suite::parse("", &suite.text(), &[OFFER]).expect("a suite");
        let url = dyno_facts::SecretUrl::new(suite.target.reveal().reveal());
        let overrides =
            Overrides { targets: vec![(TARGET.to_owned(), url)], ..Overrides::default() };
        let plan = Plan::build(&read, &overrides).expect("a plan");
        let experiment = &plan.experiments[0];
        assert_eq!((experiment.workers.as_slice(), experiment.prepare), (&[1, 4][..], false));
        assert_eq!(experiment.options.get("odd"), Some(&text));
        assert_eq!(plan.steps.len(), 2, "{:?}", plan.steps);
    }

    #[test]
    fn names_are_plain() {
        assert_eq!(plain_name("oltp_read_only"), "oltp-read-only");
        assert_eq!(plain_name("<builtin: x>"), "builtin--x");
        assert_eq!(plain_name("./"), "script");
    }

    #[test]
    fn percentiles_are_above_0_and_up_to_100() {
        assert_eq!(percentiles("50,99.9, 50"), Ok(vec![50.0, 99.9]));
        for wrong in ["0", "101", "nan", "x"] {
            assert!(percentiles(wrong).is_err(), "{wrong}");
        }
    }
}
