//! The scripts that a run executes: built-in ones by name, files, and their weights. `--paper`: the command line as a
//! suite.

use super::command_line::{self, Stop, long};
use super::options::Settings;
use super::setup::{reach, set_up};
use super::{Refusal, parse_sweep};
use dyno_core::text_to_bytes;
use dyno_pgbench::script::{Builtin, QueryMode, Script, builtins, find_builtin};
use dyno_runner::front_end::{LevelSuite, refusal};
use dyno_runner::output;
use serde_json::json;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// At most this many scripts are taken.
const SCRIPTS_MAX: usize = 128;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Source {
    Builtin(&'static Builtin),
    /// `-` is standard input.
    File(String),
}

/// The list of `-b list`.
pub(super) fn list() -> String {
    let mut text = "Available builtin scripts:\n".to_owned();
    for Builtin { name, description, .. } in builtins() {
        text.push_str(&format!("  {name:>13}: {description}\n"));
    }
    text.push('\n');
    text
}

/// The only built-in script whose name begins so.
pub(super) fn find(prefix: &str) -> Result<&'static Builtin, Refusal> {
    find_builtin(prefix).map_err(|complaint| Refusal::error(complaint).with_text(&list()))
}

/// `SCRIPT@WEIGHT`: the weight is what follows the last `@`, 1 if there is none.
pub(super) fn split_weight(text: &str) -> Result<(&str, u32), Refusal> {
    let Some((script, weight)) = text.rsplit_once('@') else { return Ok((text, 1)) };
    match long(weight) {
        (Some(number), "") if !weight.is_empty() => match u32::try_from(number) {
            Ok(number) if i32::try_from(number).is_ok() => Ok((script, number)),
            _ => Err(Refusal::error(format_args!(
                "weight specification out of range (0 .. {}): {number}",
                i32::MAX
            ))),
        },
        _ => Err(Refusal::error(format_args!("invalid weight specification: @{weight}"))),
    }
}

fn read_file(name: &str) -> Result<Vec<u8>, Refusal> {
    let mut text = Vec::new();
    let read = if name == "-" {
        io::stdin().lock().read_to_end(&mut text)
    } else {
        let mut file = File::open(OsStr::from_bytes(&text_to_bytes(name)))
            .map_err(|error| format!("could not open file \"{name}\": {}", words(&error)))?;
        file.read_to_end(&mut text)
    };
    read.map_err(|error| format!("could not read file \"{name}\": {}", words(&error)))?;
    Ok(text)
}

/// The system's words for an error, without the number that Rust adds.
pub(super) fn words(error: &io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or_default().to_owned()
}

#[derive(Debug)]
struct Loaded {
    description: String,
    text: Vec<u8>,
    weight: u32,
    script: Script,
}

impl Loaded {
    /// Returns the built-in script that this is, if any.
    fn builtin(&self) -> Option<&'static Builtin> {
        builtins().iter().find(|script| script.description == self.description)
    }
}

/// Scripts as a suite has them.
pub(super) struct TestOfScripts {
    pub(super) test: String,
    /// Each with its weight; none for a test of pgbench's own.
    pub(super) named: Vec<String>,
    pub(super) texts: Vec<(String, String)>,
}

#[derive(Debug, Default)]
pub(super) struct Loader {
    loaded: Vec<Loaded>,
    has_builtin: bool,
}

impl Loader {
    pub(super) fn into_scripts(self) -> Vec<(Script, u32)> {
        self.loaded.into_iter().map(|loaded| (loaded.script, loaded.weight)).collect()
    }

    /// Their test, names and texts in a suite.
    pub(super) fn to_suite(&self) -> Result<TestOfScripts, Refusal> {
        if let [loaded] = &self.loaded[..]
            && let Some(builtin) = loaded.builtin()
        {
            let test = builtin.name.to_owned();
            return Ok(TestOfScripts { test, named: Vec::new(), texts: Vec::new() });
        }
        let (mut named, mut texts) = (Vec::new(), Vec::new());
        for (number, loaded) in (1..).zip(&self.loaded) {
            let path = Path::new(&loaded.description);
            let file = match loaded.builtin() {
                Some(builtin) => builtin.name.into(),
                None => path.file_name().unwrap_or(path.as_os_str()).to_string_lossy(),
            };
            // Two may have the same name.
            let name = format!("{number}/{file}");
            let text = String::from_utf8(loaded.text.clone()).map_err(|_| {
                Refusal::error(format_args!("the script {file} is not UTF-8, as --paper needs it"))
            })?;
            named.push(format!("{name}@{}", loaded.weight));
            texts.push((name, text));
        }
        Ok(TestOfScripts { test: "script".to_owned(), named, texts })
    }

    /// Returns true if a built-in script is among them: these need pgbench's tables.
    pub(super) fn has_builtin(&self) -> bool {
        self.has_builtin
    }

    /// Adds a script with its weight; mistakes in its text are errors.
    pub(super) fn load(&mut self, source: &Source, weight: u32) -> Result<(), Refusal> {
        let (description, text) = match source {
            Source::Builtin(builtin) => (builtin.description, builtin.text.as_bytes().to_vec()),
            Source::File(name) => (name.as_str(), read_file(name)?),
        };
        self.has_builtin |= matches!(source, Source::Builtin(_));
        // The mode is known only when all options are; most mistakes don't depend on it.
        let script =
            Script::parse(&text, description, QueryMode::Simple).map_err(Refusal::error)?;
        if self.loaded.len() >= SCRIPTS_MAX {
            return Err(Refusal::error(format_args!(
                "at most {SCRIPTS_MAX} SQL scripts are allowed"
            )));
        }
        self.loaded.push(Loaded { description: description.to_owned(), text, weight, script });
        Ok(())
    }

    /// All options are read: scripts are sent in this mode.
    pub(super) fn complete(&mut self, mode: QueryMode) -> Result<(), Refusal> {
        if mode != QueryMode::Simple {
            for Loaded { description, text, script, .. } in &mut self.loaded {
                *script = Script::parse(text, description, mode).map_err(Refusal::error)?;
            }
        }
        Ok(())
    }

    /// Returns the number of scripts.
    pub(super) fn len(&self) -> usize {
        self.loaded.len()
    }

    pub(super) fn total_weight(&self) -> u64 {
        self.loaded.iter().map(|loaded| u64::from(loaded.weight)).sum()
    }
}

/// The suite that the words amount to; `None` if they ask for no paper, or can't be read.
///
/// # Errors
/// The words ask for something that a run with a paper can't do, or the database can't be reached.
pub(super) fn paper_of_words(words: &[String]) -> Result<Option<LevelSuite>, Refusal> {
    // A prefix of the option does not do: `--p` was another option's before.
    if !words.iter().any(|word| word == "--paper") {
        return Ok(None);
    }
    let sweep = parse_sweep(words);
    // The most clients allow the most threads.
    let widest_words = sweep.as_ref().and_then(|levels| {
        levels.clients.iter().max().map(|&clients| levels.words(words, clients))
    });
    let seed = std::env::var("PGBENCH_RANDOM_SEED").ok();
    let (settings, loader) =
        match command_line::read(widest_words.as_deref().unwrap_or(words), seed.as_deref()) {
            Ok(read) if read.0.paper => read,
            Err(Stop::Refused(refusal)) => return Err(refusal),
            _ => return Ok(None),
        };
    let workers = sweep.map_or_else(|| vec![settings.clients], |levels| levels.clients);
    let is_seeded = seed.is_some() || words.iter().any(|word| word.starts_with("--random-seed"));
    build_suite(&settings, loader, workers, is_seeded).map(Some)
}

fn build_suite(
    settings: &Settings,
    loader: Loader,
    workers: Vec<u32>,
    is_seeded: bool,
) -> Result<LevelSuite, Refusal> {
    if let Some((option, _)) = unsuited(settings).iter().find(|(_, is_given)| *is_given) {
        let (message, hint) = refusal(option);
        return Err(Refusal::error(message).with("hint", hint));
    }
    let Some(seconds) = settings.seconds else {
        return Err(Refusal::error("--paper needs the length of a run").with("hint", "give -T"));
    };
    let has_builtin = loader.has_builtin();
    let TestOfScripts { test, named, texts } = loader.to_suite()?;
    let opened = reach(settings, "setup")?;
    // Vacuuming is left to the trials.
    let probe_settings = Settings { vacuum: false, ..settings.clone() };
    let scale = set_up(&opened, &probe_settings, has_builtin)?.scale;
    let vacuum = match (settings.vacuum && has_builtin, settings.vacuum_accounts) {
        (true, true) => "all",
        (true, false) => "some",
        (false, _) => "none",
    };
    let options = [
        ("mode", settings.mode.name().to_owned()),
        ("jobs", settings.threads.to_string()),
        ("scale", scale.to_string()),
        ("vacuum", vacuum.to_owned()),
        ("check", settings.check_balances.to_string()),
    ];
    let mut options = Vec::from(options.map(|(name, value)| (name.to_owned(), value)));
    let mut defined: Vec<&str> = Vec::new();
    for (name, _) in settings.variables.iter().rev() {
        if !defined.contains(&name.as_str()) {
            let value = settings.variable(name).unwrap_or_default();
            options.push((format!("define.{name}"), value.to_owned()));
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
        // Unlike the other options, this one is a list.
        keys.push(("options.scripts", json!(named)));
    }
    Ok(LevelSuite {
        front_end: "pgbench",
        workload: "pgbench",
        test,
        target: opened.target,
        workers,
        keys,
        options,
        scripts: texts,
        seed: is_seeded.then_some(settings.seed),
    })
}

/// Options that measure otherwise than a suite does, or write what a run folder has its own place for.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_paper_has_no_place_for_is_refused() {
        for more in ["--max-tries=3", "-C", "-L 5", "-l", "--debug", "--continue-on-error"] {
            let line = format!("-n -S -T 1 --paper {more} sqlite:none.db");
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            let message = paper_of_words(&words).expect_err(&line).to_string();
            assert!(message.contains(" and --paper can't be given together"), "{message}");
            assert!(message.contains("whose folder has all intervals"), "{message}");
        }
    }
}
