//! `dyno sysbench`: the drop-in front end for sysbench 1.0.20's database tests.
//!
//! Words become a [`command_line::CommandLine`], that becomes a trial; what the trial says is
//! printed in sysbench's shape. Where dyno counts differently from sysbench, the number is the
//! honest one and the label is kept; `dyno sysbench --help` says where.

mod command_line;
mod fatal;
mod intervals;
mod lua;
mod options;
mod report;
mod run;
mod target;

use command_line::{CommandLine, Script};
use dyno_core::nearest;
use dyno_lua::STANDARD_INPUT;
use dyno_runner::databases::Database;
use dyno_runner::failure::{Exit, Failure};
use dyno_runner::front_end::{RunLevels, SweepLevel, parse_levels, sweep_words};
use dyno_runner::output::{self, Streams};
use dyno_runner::process_list;
use dyno_sysbench::{SysbenchOptions, SysbenchTest};
use fatal::{Console, Level};
use options::{DbDriver, Settings};
use run::LoadCommand;
use std::ffi::OsString;
use std::io::{self, IsTerminal};
use std::process::ExitCode;

/// Options whose values must not be seen in the process list.
const SECRETS: [&str; 2] = ["mysql-password", "pgsql-password"];

const COMMANDS: [&str; 5] = ["prepare", "prewarm", "run", "cleanup", "help"];

/// The version that scripts look for.
const VERSION: &str = "sysbench 1.0.20";

/// The first line of most commands: the version, and the program that answers.
fn banner() -> String {
    format!("{VERSION} (using dyno {})\n", env!("CARGO_PKG_VERSION"))
}

/// Does what sysbench would do with these arguments (without the program's name). `--paper` has `run_levels` make it.
pub fn run(
    arguments: Vec<OsString>,
    streams: &'static dyn Streams,
    run_levels: RunLevels,
) -> ExitCode {
    output::install(streams);
    let hidden = process_list::hide_values(&SECRETS);
    let words: Vec<String> =
        arguments.iter().map(|argument| argument.to_string_lossy().into_owned()).collect();
    let has_secret = words.iter().any(|word| secret_option(word).is_some());
    if let (Err(error), true) = (hidden, has_secret) {
        output::talk(&format!("warning: the password can be seen in the process list: {error}"));
    }
    let exit = match target::paper_of_words(&words) {
        Ok(Some(levels)) => run_levels(&levels),
        Ok(None) => run_command_line(&words).into(),
        Err(refusal) => print_refusal(refusal).into(),
    };
    if dyno_drivers::has_used_fetched_key() {
        output::talk(
            "note: the password was sent without TLS, under a key that the server sent: somebody on the way could have \
             sent another; --mysql-ssl=REQUIRED or --mysql-server-public-key=FILE prevents that",
        );
    }
    exit
}

/// Prints why a command line can't be meant.
fn print_refusal(refusal: Failure) -> Exit {
    let mut console = Console::new(Settings::new().verbosity, false);
    console.notice(banner());
    console.complain(refusal.message);
    if let Some(hint) = refusal.hint {
        console.hint(hint);
    }
    Exit::Failed
}

/// The part of a word up to the equals sign, if a secret follows.
fn secret_option(word: &str) -> Option<&str> {
    let (option, _) = word.split_once('=')?;
    let name = option.strip_prefix("--")?.replace('_', "-");
    SECRETS.contains(&name.as_str()).then_some(option)
}

fn without_secrets(words: &[String]) -> Vec<String> {
    let masked = words.iter().map(|word| match secret_option(word) {
        Some(option) => format!("{option}=***"),
        None => word.clone(),
    });
    masked.collect()
}

fn run_command_line(words: &[String]) -> Exit {
    let Some((at, levels)) = parse_sweep(words) else { return run_single(words, &mut None) };
    let mut console = Console::new(Settings::new().verbosity, false);
    sweep_words(
        "threads",
        words,
        &levels,
        |threads| [&words[..at], &[format!("--threads={threads}")], &words[at + 1..]].concat(),
        run_single,
        |message| console.fatal(message),
    )
}

/// The place of a list of threads, and its numbers, where the command is `run`.
fn parse_sweep(words: &[String]) -> Option<(usize, Vec<u32>)> {
    let at = words.iter().rposition(|word| {
        let name = word.split_once('=').map(|(name, _)| name.replace('_', "-"));
        name.is_some_and(|name| name == "--threads" || name == "--num-threads")
    })?;
    let (_, list) = words[at].split_once('=')?;
    let is_run = words.iter().any(|word| word == "run");
    parse_levels(list).filter(|_| is_run).map(|levels| (at, levels))
}

/// A command line with one number of threads. A run leaves what it has `measured`.
fn run_single(words: &[String], measured: &mut Option<SweepLevel>) -> Exit {
    let mut line = match command_line::read(words) {
        Ok(line) => line,
        Err(refusal) => return print_refusal(refusal),
    };
    if line.script == Script::None && !io::stdin().is_terminal() {
        // As in the original, a script on standard input needs no name.
        line.script = Script::Lua(STANDARD_INPUT.to_owned());
    }
    let settings = &line.settings;
    let verbosity = if settings.debug { Level::Debug as u8 } else { settings.verbosity };
    let mut console = Console::new(verbosity, settings.json_to_stdout());
    if settings.help {
        console.text(Level::Fatal, options::general_help());
        return Exit::Done;
    }
    if settings.version {
        console.text(Level::Fatal, format_args!("{VERSION}\n"));
        return Exit::Done;
    }
    if let Some(extra) = &line.extra {
        console.complain(format_args!("Unrecognized command line argument: {extra}"));
        console.hint("options are written --name=value, with an equals sign");
        return Exit::Failed;
    }
    if settings.histogram && settings.percentile == 0 {
        console.fatal("--histogram cannot be used with --percentile=0");
        return Exit::Failed;
    }
    greet(&line, &mut console);
    let exit = match &line.script {
        Script::Lua(path) => lua::execute(path, &line, words, &mut console),
        _ => match resolve_test(&line, &mut console) {
            Some(test) => with_test(test, &line, words, &mut console),
            None => Exit::Failed,
        },
    };
    *measured = console.measured;
    exit
}

/// Prints the first lines: warnings about the command line, and the banner.
fn greet(line: &CommandLine, console: &mut Console) {
    if line.test_by_option {
        console.complain(
            "WARNING: the --test option is deprecated; name the test without any option.",
        );
    }
    for warning in &line.warnings {
        console.warning(warning);
    }
    let endless = line.settings.time_s == 0 && line.settings.events == 0;
    if endless && line.command.as_deref() == Some("run") {
        console.warning("Both event and time limits are disabled, running an endless test");
    }
    console.notice(banner());
}

/// The test that the command line names; `None` if it can't be run, which has been reported.
fn resolve_test(line: &CommandLine, console: &mut Console) -> Option<SysbenchTest> {
    match &line.script {
        Script::Test(test) => return Some(*test),
        Script::ParallelPrepare => return Some(SysbenchTest::V05Oltp),
        Script::None => {
            console.fatal("No test was named");
            console.hint(
                "dyno sysbench [options]... TEST prepare|run|cleanup; --help lists the tests, and - \
                 is a Lua script on standard input",
            );
        }
        Script::BuiltIn(name) => {
            console.fatal(format_args!(
                "'{name}' tests no database: it is outside of what dyno does; use sysbench for it"
            ));
        }
        // Executed before this is called.
        Script::Lua(_) => {}
        Script::Unknown(name) => {
            console.fatal(format_args!(
                "Cannot find benchmark '{name}': no such built-in test, file or module"
            ));
            let names = SysbenchTest::ALL.iter().map(|test| test.name());
            if let Some(name) = nearest(name, names) {
                console.hint(format_args!("did you mean {name}?"));
            } else if name.starts_with('-') {
                console.hint("options begin with two dashes: --name=value");
            }
        }
    }
    None
}

fn with_test(
    test: SysbenchTest,
    line: &CommandLine,
    words: &[String],
    console: &mut Console,
) -> Exit {
    let options = match SysbenchOptions::from_pairs(test, &line.pairs) {
        Ok(options) => options,
        Err(error) => {
            console.complain(command_line::refused_by_test(error).message);
            return Exit::Failed;
        }
    };
    for warning in &options.warnings {
        console.warning(warning);
    }
    let command = match (line.command.as_deref(), &line.script) {
        (Some("run"), Script::ParallelPrepare) => Some("prepare"),
        (command, _) => command,
    };
    let load_command = match command {
        Some("run") => None,
        Some("prepare") => Some(LoadCommand::Prepare),
        Some("prewarm" | "warmup") => Some(LoadCommand::Prewarm),
        Some("cleanup") => Some(LoadCommand::Cleanup),
        Some("help") => return print_help(test, console),
        Some(unknown) => return unknown_command(unknown, console),
        None => {
            let commands = COMMANDS.join(", ");
            console.fatal(format_args!("Command is required. Supported commands: {commands}"));
            return Exit::Failed;
        }
    };
    let settings = &line.settings;
    let command_line = without_secrets(words);
    let job = run::Job {
        settings,
        test: options.test.name().to_owned(),
        command_line: &command_line,
        reconnect_every: options.reconnect.into(),
        script: None,
    };
    if settings.is_dry() {
        if load_command.is_none() {
            return run::run(None, options, &job, console).unwrap_or_else(|exit| exit);
        }
        console.fatal("--mysql-dry-run is for the command run: nothing else is worth it");
        return Exit::Failed;
    }
    let may_create = load_command == Some(LoadCommand::Prepare);
    if settings.db_driver == DbDriver::Sqlite && !may_create && !settings.sqlite_db.exists() {
        let file = settings.sqlite_db.display();
        console.fatal(format_args!("There is no SQLite file {file} (--sqlite-db)"));
        console.hint("run prepare first, which makes it");
        return Exit::Failed;
    }
    match (opened(settings, console), load_command) {
        (None, _) => Exit::Failed,
        (Some(database), Some(command)) => {
            run::load(&database, command, settings, &options, console)
        }
        (Some(database), None) => {
            run::run(Some(&database), options, &job, console).unwrap_or_else(|exit| exit)
        }
    }
}

/// The database that the options name; `None` if it can't be opened, which has been reported.
fn opened(settings: &Settings, console: &mut Console) -> Option<Database> {
    let target = target::target(settings, |name| std::env::var(name).ok());
    match Database::open(&target) {
        Ok(database) => Some(database),
        Err(error) => {
            fatal::print(console, &error, fatal::Place::Command, settings.db_driver);
            None
        }
    }
}

fn print_help(test: SysbenchTest, console: &mut Console) -> Exit {
    match options::test_help(test) {
        Some(text) => {
            console.text(Level::Fatal, text);
            Exit::Done
        }
        None => {
            let name = test.name();
            console.complain(format_args!("'{name}' test does not implement the 'help' command."));
            Exit::Failed
        }
    }
}

fn unknown_command(command: &str, console: &mut Console) -> Exit {
    console.complain(format_args!("Unknown command: {command}"));
    match nearest(command, COMMANDS) {
        Some(name) => console.hint(format_args!("did you mean {name}?")),
        None => console.hint(format_args!("the commands are {}", COMMANDS.join(", "))),
    }
    Exit::Failed
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sweep(words: &[&str]) -> Option<(usize, Vec<u32>)> {
        parse_sweep(&words.iter().map(|&word| word.to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn a_list_of_threads_is_a_sweep_of_runs() {
        let words = ["--threads=8", "--num_threads=1,2,4", "oltp_read_only", "run"];
        assert_eq!(sweep(&words), Some((1, vec![1, 2, 4])));
        assert_eq!(sweep(&["--threads=1,2", "oltp_read_only", "prepare"]), None);
        assert_eq!(sweep(&["--threads=2", "oltp_read_only", "run"]), None);
    }

    #[test]
    fn stored_command_lines_have_no_password() {
        let words: Vec<String> =
            ["--mysql-password=a=b", "--pgsql_password=x", "--mysql-user=me", "run"]
                .map(str::to_owned)
                .to_vec();
        let expected = ["--mysql-password=***", "--pgsql_password=***", "--mysql-user=me", "run"];
        assert_eq!(without_secrets(&words), expected);
    }
}
