//! `dyno pgbench`: the drop-in front end for pgbench 15.
//!
//! Words become [`settings::Settings`] and scripts, these become an initialization or a trial; what
//! the trial says is printed in pgbench's shape. `dyno pgbench --help` says where dyno does better
//! than the original.

mod balances;
mod command_line;
mod connection;
mod figures;
mod follow;
mod getopt;
mod help;
mod initialize;
mod logs;
mod numbers;
mod open_files;
mod progress;
mod refusal;
mod report;
mod run;
mod scripts;
mod settings;
mod setup;

use command_line::Stop;
use dyno_runner::exit::Exit;
use dyno_runner::output::{self, Streams};
use dyno_runner::process_list;
use refusal::Refusal;
use scripts::Loader;
use std::ffi::OsString;
use std::process::ExitCode;

/// What runs are told that look for a version of pgbench.
const VERSION: &str = concat!("15.20 (dyno ", env!("CARGO_PKG_VERSION"), ")");

/// Does what pgbench would do with these arguments (without the program's name).
pub fn run(arguments: Vec<OsString>, streams: &'static dyn Streams) -> ExitCode {
    output::install(streams);
    let hidden = process_list::hide_values(&[]);
    let words: Vec<String> =
        arguments.iter().map(|argument| argument.to_string_lossy().into_owned()).collect();
    if let (Err(error), true) = (hidden, words.iter().any(|word| has_secret(word))) {
        output::talk(&format!(
            "pgbench: warning: the password can be seen in the process list: {error}"
        ));
    }
    match main_of(&words) {
        Ok(exit) => exit.into(),
        Err(refusal) => {
            output::talk_unended(&refusal.to_string());
            Exit::Failed.into()
        }
    }
}

/// True when a word may hold a password: a URI, or a connection string with the keyword.
fn has_secret(word: &str) -> bool {
    word.contains("://") || word.contains("password")
}

fn main_of(words: &[String]) -> Result<Exit, Refusal> {
    // As in pgbench, these words count in the first place only.
    match words.first().map(String::as_str) {
        Some("--help" | "-?") => {
            output::data(&help::text());
            return Ok(Exit::Done);
        }
        Some("--version" | "-V") => {
            output::data(&format!("pgbench (PostgreSQL) {VERSION}\n"));
            return Ok(Exit::Done);
        }
        _ => {}
    }
    let mut loader = Loader::default();
    let seed = std::env::var("PGBENCH_RANDOM_SEED").ok();
    let settings = match command_line::read(words, seed.as_deref(), &mut loader) {
        Ok(settings) => settings,
        Err(Stop::Refused(refusal)) => return Err(refusal),
        Err(Stop::List) => {
            output::talk(scripts::list().strip_suffix('\n').unwrap_or_default());
            return Ok(Exit::Done);
        }
        Err(Stop::Show(builtin)) => {
            let dyno_pgbench::script::Builtin { name, description, text } = builtin;
            output::talk(&format!("-- {name}: {description}\n{text}"));
            return Ok(Exit::Done);
        }
    };
    if settings.initialize {
        return initialize::run(&settings).map(|()| Exit::Done);
    }
    self::run::run(&settings, loader, words)
}
