//! `dyno pgbench`: the drop-in front end for pgbench 15.
//!
//! Words become [`options::Settings`] and scripts, these become an initialization or a trial; what
//! the trial says is printed in pgbench's shape. `dyno pgbench --help` says where dyno does better
//! than the original.

use command_line::Stop;
use dyno_core::{DbError, Dialect, ErrorOrigin, text_from_bytes};
use dyno_drivers::postgres::libpq_connection_failure;
use dyno_runner::failure::Exit;
use dyno_runner::front_end::{RunLevels, SweepLevel, parse_levels, sweep_words};
use dyno_runner::output::{self, Streams};
use dyno_runner::process_list;
use std::ffi::OsString;
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::process::ExitCode;

mod command_line;
mod follow;
mod initialize;
mod options;
mod report;
mod run;
mod scripts;
mod setup;

/// The version, for programs that look for that of pgbench.
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
    let exit = match scripts::paper_of_words(&words) {
        Ok(Some(levels)) => return run_levels(&levels),
        Ok(None) => run_command_line(&words),
        Err(refusal) => Err(refusal),
    };
    exit.unwrap_or_else(print_refusal).into()
}

fn print_refusal(refusal: Refusal) -> Exit {
    output::talk_unended(&refusal.to_string());
    Exit::Failed
}

/// Returns true if a word may hold a password: a URI, or a connection string with the keyword.
fn has_secret(word: &str) -> bool {
    word.contains("://") || word.contains("password")
}

fn run_command_line(words: &[String]) -> Result<Exit, Refusal> {
    let Some(levels) = parse_sweep(words) else { return run_single(words, None, &mut None) };
    if words.iter().any(|word| word.starts_with("--hdr")) {
        let message =
            "the file of --hdr holds one run: a list of clients would overwrite it for each";
        return Err(Refusal::error(message));
    }
    let mut level = 0;
    Ok(sweep_words(
        "clients",
        words,
        &levels.clients,
        |clients| levels.words(words, clients),
        |level_words, measured| {
            level += 1;
            run_single(level_words, Some(level), measured).unwrap_or_else(print_refusal)
        },
        |message| {
            print_refusal(Refusal::from(message));
        },
    ))
}

/// A list of clients.
struct Levels {
    /// The place of its word.
    at: usize,
    /// The text before the list in that word.
    before: &'static str,
    clients: Vec<u32>,
}

impl Levels {
    /// The words with one number instead of the list.
    fn words(&self, words: &[String], clients: u32) -> Vec<String> {
        let mut level_words = words.to_vec();
        level_words[self.at] = format!("{}{clients}", self.before);
        level_words
    }
}

fn parse_sweep(words: &[String]) -> Option<Levels> {
    (0..words.len()).rev().find_map(|at: usize| {
        let word = &words[at];
        let is_value = at > 0 && matches!(words[at - 1].as_str(), "-c" | "--client");
        let option = ["--client=", "-c"].into_iter().find(|option| word.starts_with(option));
        let before = option.or(is_value.then_some(""))?;
        Some(Levels { at, before, clients: parse_levels(&word[before.len()..])? })
    })
}

/// A command line with one number of clients: of a list, that at place `level`. A run leaves what it has `measured`.
fn run_single(
    words: &[String],
    level: Option<usize>,
    measured: &mut Option<SweepLevel>,
) -> Result<Exit, Refusal> {
    // As in pgbench, these words count in the first place only.
    match words.first().map(String::as_str) {
        Some("--help" | "-?") => {
            output::data(HELP);
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

/// The lines for standard error, as pgbench writes them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Refusal(String);

impl Refusal {
    /// `pgbench: error: ...`
    pub(super) fn error(message: impl fmt::Display) -> Self {
        Refusal(format!("pgbench: error: {message}\n"))
    }

    /// The refusal of a connection, in the words of libpq if the server is PostgreSQL.
    pub(super) fn unconnected(error: &DbError, dialect: Dialect) -> Self {
        if dialect == Dialect::Postgres
            && let Some(mut words) = libpq_connection_failure(error)
        {
            if let Some(detail) = error.detail.as_ref().filter(|_| error.is_from_server()) {
                words.push_str(&format!("\nDETAIL:  {detail}"));
            }
            let refusal = Refusal::error(words);
            // The last of several hosts may have failed for a reason of dyno's own.
            let hint = error.hint().filter(|_| error.origin == ErrorOrigin::Dyno);
            return refusal.with_any("hint", hint);
        }
        Refusal::error(error).with_any("hint", error.hint())
    }

    /// A complaint about the words themselves, with the advice that follows it.
    pub(super) fn words(complaint: impl fmt::Display) -> Self {
        Refusal(format!("pgbench: {complaint}\n")).with_advice()
    }

    /// Adds the hint at the help, which explains all options.
    pub(super) fn with_advice(self) -> Self {
        self.with("hint", "Try \"pgbench --help\" for more information.")
    }

    /// Adds a line of this kind: `detail`, `hint`, or a further `error`.
    pub(super) fn with(mut self, kind: &str, text: impl fmt::Display) -> Self {
        self.0.push_str(&format!("pgbench: {kind}: {text}\n"));
        self
    }

    /// Adds a line of this kind if there is a text.
    pub(super) fn with_any(self, kind: &str, text: Option<impl fmt::Display>) -> Self {
        match text {
            Some(text) => self.with(kind, text),
            None => self,
        }
    }

    pub(super) fn with_text(mut self, text: &str) -> Self {
        self.0.push_str(text);
        self
    }
}

/// All lines, each with its line end.
impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The options, as pgbench lays them out, and the differences.
const HELP: &str = include_str!("help.txt");

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_core::Address;

    /// The place of the list in these words, and its clients.
    fn sweep(words: &[&str]) -> Option<(usize, Vec<u32>)> {
        let words: Vec<String> = words.iter().map(|&word| word.to_owned()).collect();
        parse_sweep(&words).map(|levels| (levels.at, levels.clients))
    }

    #[test]
    fn a_list_of_clients_is_a_sweep() {
        assert_eq!(sweep(&["-T", "5", "-c", "1,2,4"]), Some((3, vec![1, 2, 4])));
        assert_eq!(sweep(&["-c1,8", "-T", "5"]), Some((0, vec![1, 8])));
        assert_eq!(sweep(&["--client=2,3"]), Some((0, vec![2, 3])));
        assert_eq!(sweep(&["-c", "8", "-D", "1,2"]), None);
        assert_eq!(sweep(&["-c", "1,0"]), None, "it is refused before the first run");
    }

    #[test]
    fn a_login_that_the_server_refuses_has_its_detail() {
        let at = Address::Tcp { host: "db".to_owned(), port: 1 };
        let error = DbError::login(0, *b"22023", "bad DateStyle").with_detail("No such word.");
        assert_eq!(
            Refusal::unconnected(&error.at(&at), Dialect::Postgres).to_string(),
            "pgbench: error: connection to server at \"db\", port 1 failed: FATAL:  bad DateStyle\n\
             DETAIL:  No such word.\n"
        );
    }
}
