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
use dyno_runner::sweep::{self, JsonList, SweepLevel};
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
    let Some((at, levels)) = sweep_of(words) else { return main_of_one(words, &mut None) };
    if words.iter().any(|word| word.starts_with("--hdr")) {
        let message =
            "the file of --hdr holds one run: a list of clients would write it anew for each";
        return Err(Refusal::error(message));
    }
    let mut json = JsonList::of(words)?;
    let mut refused = None;
    let (exit, table) = sweep::sweep("clients", &levels, |clients, measured| {
        let mut own = words.to_vec();
        let (option, _) = words[at].split_at(words[at].len() - list_of(&words[at]).len());
        own[at] = format!("{option}{clients}");
        if let Some(json) = &json {
            json.redirect(&mut own);
        }
        let exit = main_of_one(&own, measured);
        let taken = json.as_mut().map_or(Ok(()), JsonList::take).map_err(Refusal::from);
        exit.and_then(|exit| taken.map(|()| exit)).unwrap_or_else(|refusal| {
            refused = Some(refusal);
            Exit::Failed
        })
    });
    output::data(&table);
    refused.map_or(Ok(exit), Err)
}

/// The place of a list of clients, and its numbers.
fn sweep_of(words: &[String]) -> Option<(usize, Vec<u32>)> {
    let of_word = |at: usize| {
        let is_value = at > 0 && matches!(words[at - 1].as_str(), "-c" | "--client");
        let is_whole = words[at].starts_with("-c") || words[at].starts_with("--client=");
        let levels = sweep::levels(list_of(&words[at])).filter(|_| is_value || is_whole);
        levels.map(|levels| (at, levels))
    };
    (0..words.len()).rev().find_map(of_word)
}

/// What stands behind the name of the option, if it stands there.
fn list_of(word: &str) -> &str {
    word.strip_prefix("--client=").or(word.strip_prefix("-c")).unwrap_or(word)
}

/// A command line with one number of clients. A run leaves what it has `measured`.
fn main_of_one(words: &[String], measured: &mut Option<SweepLevel>) -> Result<Exit, Refusal> {
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
    let (exit, level) = self::run::run(&settings, loader, words)?;
    *measured = Some(level);
    Ok(exit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_clients_is_a_sweep() {
        let sweep = |words: &[&str]| {
            sweep_of(&words.iter().map(|&word| word.to_owned()).collect::<Vec<_>>())
        };
        assert_eq!(sweep(&["-T", "5", "-c", "1,2,4"]), Some((3, vec![1, 2, 4])));
        assert_eq!(sweep(&["-c1,8", "-T", "5"]), Some((0, vec![1, 8])));
        assert_eq!(sweep(&["--client=2,3"]), Some((0, vec![2, 3])));
        assert_eq!(sweep(&["-c", "8", "-D", "1,2"]), None);
    }
}
