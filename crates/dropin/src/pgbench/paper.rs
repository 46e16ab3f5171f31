//! `--paper`: the command line as a suite.

use super::command_line::{self, Stop};
use super::connection::reach;
use super::options::Settings;
use super::refusal::Refusal;
use super::scripts::{Loader, TestOfScripts};
use super::setup::set_up;
use super::sweep_of;
use dyno_runner::front_end::{LevelSuite, refusal};
use dyno_runner::output;
use serde_json::json;

/// The suite that the words amount to; `None` where they ask for no paper, or can't be read.
///
/// # Errors
/// They ask for something that a run with a paper can't do, or the database can't be reached.
pub(super) fn wanted(words: &[String]) -> Result<Option<LevelSuite>, Refusal> {
    // A prefix of the option does not do: `--p` was another option's before.
    if !words.iter().any(|word| word == "--paper") {
        return Ok(None);
    }
    let sweep = sweep_of(words);
    // The most clients allow the most threads.
    let own = sweep.as_ref().map(|levels| levels.words(words, levels.most()));
    let seed = std::env::var("PGBENCH_RANDOM_SEED").ok();
    let (settings, loader) =
        match command_line::read(own.as_deref().unwrap_or(words), seed.as_deref()) {
            Ok(read) if read.0.paper => read,
            Err(Stop::Refused(refusal)) => return Err(refusal),
            _ => return Ok(None),
        };
    let workers = sweep.map_or_else(|| vec![settings.clients], |levels| levels.clients);
    let is_seeded = seed.is_some() || words.iter().any(|word| word.starts_with("--random-seed"));
    suite_of(&settings, loader, workers, is_seeded).map(Some)
}

fn suite_of(
    settings: &Settings,
    loader: Loader,
    workers: Vec<u32>,
    is_seeded: bool,
) -> Result<LevelSuite, Refusal> {
    for (option, is_given, hint) in unsuited(settings) {
        if is_given {
            let (message, whole_folder) = refusal(option);
            return Err(Refusal::error(message).with_hint(hint.unwrap_or(whole_folder)));
        }
    }
    let Some(seconds) = settings.seconds else {
        return Err(Refusal::error("--paper needs the length of a run").with_hint("give -T"));
    };
    let has_builtin = loader.has_builtin();
    let TestOfScripts { test, named, texts } = loader.to_suite()?;
    let reached = reach(settings, "setup")?;
    // Vacuuming is left to the trials.
    let look = Settings { vacuum: false, ..settings.clone() };
    let scale = set_up(&reached, &look, &loader.into_scripts(), has_builtin)?.scale;
    let vacuum = match (settings.vacuum && has_builtin, settings.vacuum_accounts) {
        (true, true) => "all",
        (true, false) => "some",
        (false, _) => "none",
    };
    let option = |name: &str, value: String| (name.to_owned(), value);
    let mut options = vec![
        option("mode", settings.mode.name().to_owned()),
        option("jobs", settings.threads.to_string()),
        option("scale", scale.to_string()),
        option("vacuum", vacuum.to_owned()),
        option("check", settings.check_balances.to_string()),
    ];
    let mut defined: Vec<&str> = Vec::new();
    for (name, _) in settings.variables.iter().rev() {
        if !defined.contains(&name.as_str()) {
            let value = settings.variable(name).unwrap_or_default();
            options.push(option(&format!("define.{name}"), value.to_owned()));
            defined.push(name);
        }
    }
    let mut keys = vec![("duration_s", json!(seconds)), ("warmup_s", json!(settings.warmup_s))];
    keys.extend(settings.rate_per_s.map(|rate| ("rate", json!(rate))));
    keys.extend(settings.progress_s.map(|seconds| ("interval_s", json!(seconds))));
    if settings.progress_s.is_some() {
        output::talk_lines(
            "pgbench: -P prints no lines with --paper: it sets the intervals of the paper's charts",
        );
    }
    if !named.is_empty() {
        // Beside the other options: a list.
        keys.push(("options.scripts", json!(named)));
    }
    Ok(LevelSuite {
        front_end: "pgbench",
        workload: "pgbench",
        test,
        target: reached.target,
        workers,
        keys,
        options,
        scripts: texts,
        seed: is_seeded.then_some(settings.seed),
    })
}

/// What is measured otherwise than a suite measures, or goes where a run folder has its own place. With a hint where
/// that of all front ends says too little.
fn unsuited(settings: &Settings) -> [(&'static str, bool, Option<&'static str>); 9] {
    let conflicts = "leave it out: with --paper a transaction is tried up to 10 times more after a \
                     conflict, and the paper counts these retries";
    let errors = "leave it out: with --paper a transaction that violates a constraint or keeps \
                  conflicting is counted as failed, and any other error ends the run";
    [
        ("-t", settings.transactions.is_some(), Some("give the length of the run instead: -T")),
        (
            "-C",
            settings.connect_each,
            Some("leave one of them out: with --paper each client keeps its connection"),
        ),
        (
            "-L",
            settings.late_limit_us > 0,
            Some("leave it out: the paper has the percentiles of the latency"),
        ),
        ("-l", settings.log.wanted, None),
        ("-d", settings.debug, Some("leave it out: with --paper nothing is printed for debugging")),
        ("--max-tries", settings.max_tries != 1, Some(conflicts)),
        ("--exit-on-abort", settings.exit_on_abort, Some(errors)),
        ("--continue-on-error", settings.continue_on_error, Some(errors)),
        ("--json or --hdr", settings.json.is_some() || settings.hdr.is_some(), None),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_paper_has_no_place_for_is_refused_with_a_hint_of_its_own() {
        for (more, hint) in [
            ("--max-tries=3", "is tried up to 10 times more"),
            ("-C", "keeps its connection"),
            ("-L 5", "percentiles of the latency"),
            ("-l", "whose folder has all intervals"),
        ] {
            let line = format!("-n -S -T 1 --paper {more} sqlite:none.db");
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            let refused = wanted(&words).expect_err(&line).to_string();
            assert!(refused.contains(" and --paper can't be given together"), "{refused}");
            assert!(refused.contains(hint), "{refused}");
        }
    }
}
