//! `--paper`: the command line as a suite.

use super::command_line::{self, Stop};
use super::connection::reach;
use super::refusal::Refusal;
use super::scripts::{Loader, TestOfScripts};
use super::settings::Settings;
use super::setup::set_up;
use super::sweep_of;
use dyno_runner::level_suite::{LevelSuite, refusal};
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
    let mut loader = Loader::default();
    let seed = std::env::var("PGBENCH_RANDOM_SEED").ok();
    let read = command_line::read(own.as_deref().unwrap_or(words), seed.as_deref(), &mut loader);
    let settings = match read {
        Ok(settings) if settings.paper => settings,
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
    for (option, is_given) in unsuited(settings) {
        if is_given {
            let (message, hint) = refusal(option);
            return Err(Refusal::error(message).with_hint(hint));
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

/// What is measured otherwise than a suite measures, or goes where a run folder has its own place.
fn unsuited(settings: &Settings) -> [(&'static str, bool); 9] {
    [
        ("-t", settings.transactions.is_some()),
        ("-C", settings.connect_each),
        ("-L", settings.late_limit_us > 0),
        ("-l", settings.log.wanted),
        ("-d", settings.debug),
        ("--max-tries", settings.max_tries != 1),
        ("--exit-on-abort", settings.exit_on_abort),
        ("--continue-on-error", settings.continue_on_error),
        ("--json or --hdr", settings.json.is_some() || settings.hdr.is_some()),
    ]
}
