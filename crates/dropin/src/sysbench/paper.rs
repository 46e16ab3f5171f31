//! `--paper`: the command line as a suite.

use super::command_line::{CommandLine, Script};
use super::{sweep_of, target};
use dyno_runner::failure::Failure;
use dyno_runner::front_end::{LevelSuite, refusal};
use dyno_runner::output;
use std::fs;
use std::path::Path;

/// What is measured otherwise than a suite measures, or goes where a run folder has its own place.
const UNSUITED: [&str; 9] = [
    "mysql-dry-run",
    "forced-shutdown",
    "report-checkpoints",
    "json",
    "loops",
    "lua-memory",
    "mysql-ignore-errors",
    "pgsql-ignore-errors",
    "debug",
];

/// The suite that the words amount to; `None` where they ask for no paper, or can't be read.
///
/// # Errors
/// They ask for something that a run with a paper can't do.
pub(super) fn wanted(words: &[String]) -> Result<Option<LevelSuite>, Failure> {
    let (mut own, mut workers) = (words.to_vec(), None);
    if let Some((at, levels)) = sweep_of(words) {
        own[at] = format!("--threads={}", levels[0]);
        workers = Some(levels);
    }
    let Ok(line) = super::command_line::read(&own) else { return Ok(None) };
    if !line.settings.paper || line.settings.help || line.settings.version {
        return Ok(None);
    }
    let workers = workers.unwrap_or_else(|| vec![line.settings.threads]);
    suite_of(&line, workers).map(Some)
}

fn suite_of(line: &CommandLine, workers: Vec<u32>) -> Result<LevelSuite, Failure> {
    let settings = &line.settings;
    if line.command.as_deref() != Some("run") {
        return Err(Failure::new("--paper is for the command run").with_hint("leave it out"));
    }
    if let Some((option, _)) = line.given.iter().find(|(name, _)| UNSUITED.contains(name)) {
        let (message, hint) = refusal(&format!("--{option}"));
        return Err(Failure::new(message).with_hint(hint));
    }
    if settings.time_s == 0 && settings.events == 0 {
        let message = "--paper needs an end: both event and time limits are disabled";
        return Err(Failure::new(message).with_hint("give --time or --events"));
    }
    let mut suite = LevelSuite {
        front_end: "sysbench",
        workload: "sysbench",
        test: String::new(),
        target: target::target(settings, |name| std::env::var(name).ok()),
        workers,
        keys: vec![("warmup_s", settings.warmup_s.into())],
        options: line.pairs.clone(),
        scripts: Vec::new(),
        seed: Some(settings.rand_seed).filter(|seed| *seed > 0),
    };
    let limits = [
        ("duration_s", settings.time_s),
        ("events", settings.events),
        ("rate", settings.rate_per_s),
        ("interval_s", settings.report_interval_s),
        ("percentiles", settings.percentile.into()),
    ];
    suite.keys.extend(limits.iter().filter(|(_, n)| *n > 0).map(|&(key, n)| (key, n.into())));
    match &line.script {
        Script::Test(test) => suite.test = test.name().to_owned(),
        Script::Lua(path) if path != dyno_lua::STANDARD_INPUT => {
            let unread = |error| Failure::new(format!("{path} can't be read: {error}"));
            let text = fs::read_to_string(path).map_err(unread)?;
            if text.contains("report_intermediate") || text.contains("report_cumulative") {
                output::talk(
                    "note: --paper does not call a script's hooks for reports: the paper has the \
                     figures.",
                );
            }
            let file = Path::new(path).file_name().unwrap_or_default().to_string_lossy();
            suite.workload = "lua";
            suite.test = file.into_owned();
            suite.keys.push(("script", format!("{path}@1").into()));
            suite.scripts.push((path.clone(), text));
            let value = |value: &Option<String>| value.clone().unwrap_or_else(|| "on".to_owned());
            suite.options =
                line.script_options.iter().map(|(name, of)| (name.clone(), value(of))).collect();
        }
        _ => {
            let message = "--paper needs a test of a database, or the file of a script";
            return Err(Failure::new(message).with_hint("--help lists the tests"));
        }
    }
    // A later option replaces an earlier one; a suite has each once.
    let mut given: Vec<(String, String)> = Vec::new();
    for (name, value) in suite.options {
        let name = name.replace('-', "_");
        given.retain(|(known, _)| *known != name);
        given.push((name, value));
    }
    suite.options = given;
    Ok(suite)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    fn wanted(line: &str) -> Result<Option<LevelSuite>, Failure> {
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        super::wanted(&words)
    }

    #[test]
    fn a_command_line_is_a_suite_of_its_levels() {
        let line = "--threads=1,2,4 --time=5 --rate=10 --table-size=7 --table_size=9 --rand-seed=3 \
                    --mysql-host=db1 --mysql-password=a/b oltp_read_only run --paper";
        let suite = wanted(line).expect("a suite").expect("a paper");
        assert_eq!(
            (suite.workers, suite.seed, &*suite.test),
            (vec![1, 2, 4], Some(3), "oltp_read_only")
        );
        assert_eq!(suite.options, [("table_size".to_owned(), "9".to_owned())]);
        assert!(suite.keys.contains(&("rate", Value::from(10))), "{:?}", suite.keys);
        assert!(suite.target.reveal().reveal().contains("sbtest:a%2Fb@db1:3306/sbtest"));
        assert!(wanted("--threads=1,2 oltp_read_only run").expect("none").is_none());
    }

    #[test]
    fn what_a_paper_has_no_place_for_is_refused() {
        for (line, said) in [
            ("--json=x oltp_read_only run --paper", "--json and --paper"),
            ("--time=0 oltp_read_only run --paper", "needs an end"),
            ("oltp_read_only prepare --paper", "command run"),
            ("cpu run --paper", "a test of a database"),
        ] {
            let refused = wanted(line).expect_err(line);
            assert!(refused.message.to_string().contains(said), "{line}: {}", refused.message);
        }
    }
}
