//! The dyno binary: verbs, drop-in front ends, progress and the words of errors. Only this crate
//! prints.

/// The verbs.
mod commands {
    pub(crate) mod archive;
    pub(crate) mod bench;
    pub(crate) mod calibrate;
    pub(crate) mod check;
    pub(crate) mod ci;
    pub(crate) mod cluster;
    pub(crate) mod compare;
    pub(crate) mod fleet;
    pub(crate) mod help;
    pub(crate) mod paper;
    pub(crate) mod run;
    pub(crate) mod runs;
    pub(crate) mod suites;
}
pub mod families;
mod pdf;
mod terminal;
mod tpch;

use clap::{Parser, Subcommand};
use dyno_core::harmless_json;
use dyno_core::offer::WorkloadOffer;
use dyno_dropin::{benchmarksql, choice, pgbench, sysbench};
use dyno_reactor::{IoChoice, choose_io};
use dyno_report::{FamilyPapers, Lang};
use dyno_runner::failure::{Failure, exit_code};
use dyno_runner::family::Families;
use dyno_runner::{output, process_list};
use serde::Serialize;
use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::process::ExitCode;
use std::sync::OnceLock;
use terminal::TerminalStreams;

/// Puts a database on the dynamometer: prepares the data, drives the load, checks that the numbers
/// are right and prints the paper.
#[derive(Debug, Parser)]
#[command(name = "dyno", version, propagate_version = true, arg_required_else_help = true)]
#[command(disable_help_subcommand = true)]
#[command(after_help = include_str!("../help/dyno.txt").trim_ascii_end())]
struct CommandLine {
    /// Backend by which the event loops receive and send.
    #[arg(long, global = true, hide = true, value_name = "WAY")]
    io: Option<IoChoice>,
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Load, measure, check and write a paper on embedded SQLite, without a server.
    Quickstart(commands::run::QuickstartArguments),
    /// Measure one or two databases with a load of each kind, within ten minutes.
    Bench(commands::bench::BenchArguments),
    /// Compare two builds or databases for a pipeline, in minutes: exit code 0, 3 or 5, a summary, JUnit and JSON.
    Ci(commands::ci::Arguments),
    /// Run a suite (a TOML file or the name of a bundled one), or continue its interrupted run.
    Run(Box<commands::run::Arguments>),
    /// List the bundled suites: what each needs and how long it takes.
    Suites(commands::suites::Arguments),
    /// Execute the plan of a run again and compare both runs.
    Reproduce(commands::compare::ReproduceArguments),
    /// Write the paper of one or several runs.
    Paper(Box<commands::paper::Arguments>),
    /// Report which of two targets or runs is faster, by how much and how certainly, and judge gates.
    Compare(commands::compare::Arguments),
    /// Make load for runs on other machines: a member of a fleet.
    Generator(commands::fleet::GeneratorArguments),
    /// Make the key of a fleet, or list its load generators.
    #[command(subcommand, after_help = commands::fleet::HELP)]
    Fleet(commands::fleet::FleetCommand),
    /// Measure how much load this machine can make, against a server that does nothing.
    Calibrate(commands::calibrate::Arguments),
    /// List the runs.
    Ls(commands::runs::ListArguments),
    /// Remove the folders of runs; the tables of their databases stay.
    Rm(commands::runs::RemoveArguments),
    /// Write a run into one file, for others to verify and import.
    Export(commands::archive::ExportArguments),
    /// Unpack an exported run into the folder of runs.
    Import(commands::archive::ImportArguments),
    /// Check that an exported run is unchanged, and that its paper follows from its trials.
    Verify(commands::archive::VerifyArguments),
    /// Serve a page of the current run and of all runs, for a browser.
    Serve(commands::runs::ServeArguments),
    /// Show the results of one run on the terminal.
    Show(commands::runs::ShowArguments),
    /// Check the data of TPC-C or pgbench, and that no acknowledged order of a ledger is lost.
    Check(commands::check::Arguments),
    /// Run the OLTP tests of sysbench with its command line (1.0.20 and 0.5).
    #[command(disable_help_flag = true, disable_version_flag = true)]
    Sysbench {
        /// Everything sysbench would get.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<OsString>,
    },
    /// Run pgbench with its command line (15, and additions of later versions), on any database.
    #[command(disable_help_flag = true, disable_version_flag = true)]
    Pgbench {
        /// Everything pgbench would get.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<OsString>,
    },
    /// Run TPC-C by a properties file of BenchmarkSQL 5.0 or 6.
    #[command(subcommand, after_help = benchmarksql::HELP)]
    Benchmarksql(benchmarksql::BenchmarksqlCommand),
    /// Explain a verb, or list the options of a workload in suites.
    Help(commands::help::Arguments),
    /// Print the completion script of a shell.
    Completion(commands::help::Shell),
    /// Write the manual pages of all verbs, for packages.
    #[command(hide = true)]
    Man(commands::help::ManualPages),
    /// Start, inspect and remove local clusters of real servers.
    #[command(subcommand, after_help = commands::cluster::HELP)]
    Cluster(commands::cluster::Command),
    /// TPC-H: generate, load, run the 22 queries and compare their answers with the reference.
    #[command(subcommand, after_help = tpch::HELP)]
    Tpch(tpch::Command),
}

static FAMILIES: OnceLock<Families> = OnceLock::new();

/// Returns the families of workloads that the program was started with.
fn families() -> Families {
    FAMILIES.get().copied().unwrap_or(&[])
}

/// The workloads that suites can name.
fn offers() -> Vec<WorkloadOffer> {
    dyno_runner::family::offers(families())
}

fn register_catalogs(families: Families) {
    let catalogs = [
        dyno_fleet::CATALOG,
        dyno_load::CATALOG,
        dyno_observe::CATALOG,
        dyno_judge::CATALOG,
        dyno_report::CATALOG,
        dyno_runner::CATALOG,
        dyno_store::CATALOG,
        dyno_suite::CATALOG,
    ];
    dyno_facts::register(&catalogs);
    let catalogs: Vec<_> = families.iter().map(|family| family.catalog).collect();
    dyno_facts::register(&catalogs);
}

/// Prints all of the version. Clap ends at the first of these two options.
fn print_build(arguments: &[OsString]) -> Option<ExitCode> {
    let [_, version, verbose] = arguments else { return None };
    let is_verbose_version = (version == "--version" || version == "-V") && verbose == "--verbose";
    is_verbose_version.then(|| {
        output::data(&commands::help::describe_build());
        ExitCode::SUCCESS
    })
}

/// Runs as the original where the program was called by its name.
fn run_drop_in(program: &OsStr, arguments: &[OsString]) -> Option<ExitCode> {
    let run = match program.to_str()? {
        "sysbench" => sysbench::run,
        "pgbench" => pgbench::run,
        _ => return None,
    };
    Some(match choose_io_backend(None) {
        Err(failure) => exit_code(Err(failure)),
        Ok(()) => run(arguments[1..].to_vec(), &TerminalStreams, commands::run::run_levels),
    })
}

/// The whole program, with these families of workloads and what papers say of them.
pub fn main(families: Families, papers: FamilyPapers) -> ExitCode {
    let _ = FAMILIES.set(families);
    dyno_report::register(papers);
    register_catalogs(families);
    let arguments: Vec<OsString> = std::env::args_os().collect();
    let program = arguments.first().and_then(|name| Path::new(name).file_name());
    terminal::hide_secrets(&arguments);
    output::install(&TerminalStreams);
    let drop_in = program.and_then(|name| run_drop_in(name, &arguments));
    if let Some(code) = drop_in.or_else(|| print_build(&arguments)) {
        return code;
    }
    let hidden = process_list::hide_values(&[]);
    if let (Err(error), true) = (hidden, arguments.iter().any(may_be_secret)) {
        output::talk(&format!(
            "warning: a password on the command line can be seen in the process list: {error}"
        ));
    }
    let script =
        program.and_then(OsStr::to_str).filter(|name| benchmarksql::SCRIPTS.contains(name));
    let command_line = match script {
        Some(verb) => {
            let words = ["dyno", "benchmarksql", verb].map(OsString::from);
            CommandLine::try_parse_from(words.into_iter().chain(arguments.iter().skip(1).cloned()))
        }
        None => CommandLine::try_parse_from(&arguments),
    };
    let command_line = match command_line {
        Ok(command_line) => command_line,
        // Not by clap's own hand: it quotes arguments.
        Err(error) if error.use_stderr() => {
            output::talk_unended(&error.render().to_string());
            return ExitCode::from(2);
        }
        Err(help) => help.exit(),
    };
    if let Err(failure) = choose_io_backend(command_line.io) {
        return exit_code(Err(failure));
    }
    let result = match command_line.verb {
        Verb::Quickstart(arguments) => commands::run::quickstart(&arguments),
        Verb::Bench(arguments) => commands::bench::run(&arguments),
        Verb::Ci(arguments) => commands::ci::run(&arguments),
        Verb::Run(arguments) => commands::run::run(&arguments),
        Verb::Suites(arguments) => commands::suites::run(&arguments),
        Verb::Reproduce(arguments) => commands::compare::reproduce(&arguments),
        Verb::Paper(arguments) => commands::paper::run(&arguments),
        Verb::Compare(arguments) => commands::compare::run(&arguments),
        Verb::Calibrate(arguments) => commands::calibrate::run(&arguments),
        Verb::Generator(arguments) => commands::fleet::run_generator(&arguments),
        Verb::Fleet(command) => commands::fleet::run(&command),
        Verb::Ls(arguments) => commands::runs::list(&arguments),
        Verb::Rm(arguments) => commands::runs::remove(&arguments),
        Verb::Export(arguments) => commands::archive::export(&arguments),
        Verb::Import(arguments) => commands::archive::import(&arguments),
        Verb::Verify(arguments) => commands::archive::verify(&arguments),
        Verb::Serve(arguments) => commands::runs::serve(&arguments),
        Verb::Show(arguments) => commands::runs::show(&arguments),
        Verb::Check(arguments) => commands::check::run(&arguments),
        Verb::Help(arguments) => commands::help::run(&arguments),
        Verb::Completion(arguments) => commands::help::complete(&arguments),
        Verb::Man(arguments) => commands::help::write_manual_pages(&arguments),
        Verb::Cluster(command) => commands::cluster::run(&command),
        Verb::Tpch(command) => tpch::main(&command),
        Verb::Sysbench { arguments } => {
            return sysbench::run(arguments, &TerminalStreams, commands::run::run_levels);
        }
        Verb::Pgbench { arguments } => {
            return pgbench::run(arguments, &TerminalStreams, commands::run::run_levels);
        }
        Verb::Benchmarksql(command) => return benchmarksql::run(&command, &TerminalStreams),
    };
    exit_code(result.map(|()| 0))
}

fn may_be_secret(argument: &OsString) -> bool {
    argument.to_string_lossy().contains("://") || argument.eq_ignore_ascii_case("password")
}

/// Chooses how loops receive and send: by the option, else by the environment.
fn choose_io_backend(option: Option<IoChoice>) -> CommandResult {
    let by_environment = IoChoice::from_environment().map_err(Failure::usage)?;
    // `auto` is decided by the first loop: verbs without one have no use for a ring.
    let Some(choice) = option.or(by_environment) else { return Ok(()) };
    choose_io(choice).map_err(|error| {
        Failure::usage(format!("io_uring can't be used here: {error}."))
            .with_hint("leave `--io uring` out, or let the container call io_uring_setup")
    })
}

type CommandResult = Result<(), Failure>;

/// The value of an environment variable, unless it is empty.
fn env_variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// A document as JSON for people and programs.
fn pretty(document: &impl Serialize) -> Result<String, Failure> {
    let text = serde_json::to_string_pretty(document);
    let text = text.map_err(|error| Failure::new(format!("No JSON can be made: {error}.")))?;
    Ok(harmless_json(&text) + "\n")
}

/// The languages of papers.
const LANGUAGES: [(&str, Lang); 2] = [("en", Lang::En), ("zh", Lang::Zh)];
