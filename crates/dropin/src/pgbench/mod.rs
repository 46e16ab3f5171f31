//! `dyno pgbench`: the drop-in front end for pgbench 15.
//!
//! Words become [`options::Settings`] and scripts, these become an initialization or a trial; what
//! the trial says is printed in pgbench's shape. `dyno pgbench --help` says where dyno does better
//! than the original.

mod balances;
mod command_line;
mod connection;
mod follow;
mod getopt;
mod help;
mod initialize;
mod logs;
mod options;
mod paper;
mod refusal;
mod report;
mod run;
mod scripts;
mod setup;

use command_line::Stop;
use dyno_core::text_from_bytes;
use dyno_runner::failure::Exit;
use dyno_runner::front_end::RunLevels;
use dyno_runner::front_end::{SweepLevel, parse_levels, sweep_words};
use dyno_runner::output::{self, Streams};
use dyno_runner::process_list;
use refusal::Refusal;
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::process::ExitCode;

/// What runs are told that look for a version of pgbench.
const VERSION: &str = concat!("15.20 (dyno ", env!("CARGO_PKG_VERSION"), ")");

/// Does what pgbench would do with these arguments (without the program's name). `--paper` has `run_levels` make it.
pub fn run(
    arguments: Vec<OsString>,
    streams: &'static dyn Streams,
    run_levels: RunLevels,
) -> ExitCode {
    output::install(streams);
    let hidden = process_list::hide_values(&[]);
    let words: Vec<String> =
        arguments.iter().map(|argument| text_from_bytes(argument.as_bytes())).collect();
    if let (Err(error), true) = (hidden, words.iter().any(|word| has_secret(word))) {
        output::talk_lines(&format!(
            "pgbench: warning: the password can be seen in the process list: {error}"
        ));
    }
    let done = match paper::wanted(&words) {
        Ok(Some(levels)) => return run_levels(&levels),
        Ok(None) => main_of(&words),
        Err(refusal) => Err(refusal),
    };
    done.unwrap_or_else(refuse).into()
}

fn refuse(refusal: Refusal) -> Exit {
    output::talk_unended(&refusal.to_string());
    Exit::Failed
}

/// True when a word may hold a password: a URI, or a connection string with the keyword.
fn has_secret(word: &str) -> bool {
    word.contains("://") || word.contains("password")
}

fn main_of(words: &[String]) -> Result<Exit, Refusal> {
    let Some(levels) = sweep_of(words) else { return main_of_one(words, None, &mut None) };
    if words.iter().any(|word| word.starts_with("--hdr")) {
        let message =
            "the file of --hdr holds one run: a list of clients would write it anew for each";
        return Err(Refusal::error(message));
    }
    let mut level = 0;
    let run = |own: &[String], measured: &mut Option<SweepLevel>| {
        level += 1;
        main_of_one(own, Some(level), measured).unwrap_or_else(refuse)
    };
    let with = |clients| levels.words(words, clients);
    Ok(sweep_words("clients", words, &levels.clients, with, run, |message| {
        refuse(Refusal::from(message));
    }))
}

/// A list of clients.
#[derive(Debug, PartialEq)]
struct Levels {
    /// The place of its word.
    at: usize,
    clients: Vec<u32>,
}

impl Levels {
    /// The words with one number in place of the list.
    fn words(&self, words: &[String], clients: u32) -> Vec<String> {
        let mut own = words.to_vec();
        let word = &words[self.at];
        let (option, _) = word.split_at(word.len() - list_of(word).len());
        own[self.at] = format!("{option}{clients}");
        own
    }

    fn most(&self) -> u32 {
        self.clients.iter().max().copied().unwrap_or(1)
    }
}

fn sweep_of(words: &[String]) -> Option<Levels> {
    let of_word = |at: usize| {
        let is_value = at > 0 && matches!(words[at - 1].as_str(), "-c" | "--client");
        let is_whole = words[at].starts_with("-c") || words[at].starts_with("--client=");
        let levels = parse_levels(list_of(&words[at])).filter(|_| is_value || is_whole);
        levels.map(|clients| Levels { at, clients })
    };
    (0..words.len()).rev().find_map(of_word)
}

/// What stands behind the name of the option, if it stands there.
fn list_of(word: &str) -> &str {
    word.strip_prefix("--client=").or(word.strip_prefix("-c")).unwrap_or(word)
}

/// A command line with one number of clients: of a list, that at place `level`. A run leaves what it has `measured`.
fn main_of_one(
    words: &[String],
    level: Option<usize>,
    measured: &mut Option<SweepLevel>,
) -> Result<Exit, Refusal> {
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
    let seed = std::env::var("PGBENCH_RANDOM_SEED").ok();
    let (mut settings, loader) = match command_line::read(words, seed.as_deref()) {
        Ok(read) => read,
        Err(Stop::Refused(refusal)) => return Err(refusal),
        Err(Stop::List) => {
            output::talk_lines(scripts::list().strip_suffix('\n').unwrap_or_default());
            return Ok(Exit::Done);
        }
        Err(Stop::Show(builtin)) => {
            let dyno_pgbench::script::Builtin { name, description, text } = builtin;
            output::talk_lines(&format!("-- {name}: {description}\n{text}"));
            return Ok(Exit::Done);
        }
    };
    if settings.initialize {
        return initialize::run(&settings);
    }
    settings.log.level = level;
    let (exit, done) = self::run::run(&settings, loader, words)?;
    *measured = Some(done);
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
        let levels = |at, clients: &[u32]| Some(Levels { at, clients: clients.to_vec() });
        assert_eq!(sweep(&["-T", "5", "-c", "1,2,4"]), levels(3, &[1, 2, 4]));
        assert_eq!(sweep(&["-c1,8", "-T", "5"]), levels(0, &[1, 8]));
        assert_eq!(sweep(&["--client=2,3"]), levels(0, &[2, 3]));
        assert_eq!(sweep(&["-c", "8", "-D", "1,2"]), None);
        assert_eq!(sweep(&["-c", "1,0"]), None, "it is refused before the first run");
    }
}
