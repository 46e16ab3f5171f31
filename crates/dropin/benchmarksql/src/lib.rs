//! `dyno benchmarksql`: the drop-in front end for BenchmarkSQL 5.0, which understands the properties
//! of 6 too.
//!
//! A file becomes [`properties::Properties`], these become [`settings`], and these a load, a trial or
//! a removal. [`keys`] says what each key is to dyno. The help texts say where dyno counts otherwise
//! than the original.

mod build;
mod clock;
mod console;
mod destroy;
mod follow;
mod keys;
mod properties;
mod report;
mod results;
mod run;
mod settings;
mod verdict;

use dyno_runner::failure::Failure;
use dyno_runner::output::{self, Streams};
use properties::Properties;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// What follows the help of the verb.
pub const HELP: &str = "\
Examples:
  dyno benchmarksql build props.pg                         runDatabaseBuild.sh props.pg
  dyno benchmarksql build props.pg warehouses 10           the same with another value
  dyno benchmarksql build props.pg fileLocation /data/     CSV files instead of a load
  dyno benchmarksql run props.pg                           runBenchmark.sh props.pg
  dyno benchmarksql destroy props.pg                       runDatabaseDestroy.sh props.pg

The names of the scripts are understood too: `dyno benchmarksql runBenchmark.sh props.pg`, or a link
to dyno with the name of a script.

A file may hold dyno's own URLs: conn=mysql://host/db, conn=postgres://host/db, or db=sqlite with
conn=sqlite:file. A password that the file doesn't have is looked for in ~/.pgpass or ~/.my.cnf,
and asked for at a terminal.";

/// What can be done.
#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// Create the tables, load them, make keys and indexes, count and analyze the rows.
    #[command(alias = "runDatabaseBuild.sh", alias = "runLoader.sh")]
    Build(build::Arguments),
    /// Run the transactions and print what was measured.
    #[command(alias = "runBenchmark.sh")]
    Run(run::Arguments),
    /// Drop the tables.
    #[command(alias = "runDatabaseDestroy.sh")]
    Destroy(destroy::Arguments),
}

/// The verb that a script of BenchmarkSQL stands for.
pub fn verb_of_script(name: &str) -> Option<&'static str> {
    match name {
        "runDatabaseBuild.sh" | "runLoader.sh" => Some("build"),
        "runBenchmark.sh" => Some("run"),
        "runDatabaseDestroy.sh" => Some("destroy"),
        _ => None,
    }
}

/// The file and what replaces its values.
#[derive(Debug, clap::Args)]
pub struct Source {
    /// A properties file of BenchmarkSQL.
    #[arg(value_name = "PROPS")]
    file: PathBuf,
    /// Values that replace those of the file; keys are understood whatever their case.
    #[arg(value_name = "KEY VALUE")]
    overrides: Vec<String>,
}

impl Source {
    /// Reads the file and replaces values.
    fn read(&self) -> Result<Properties, Failure> {
        let mut properties = open(&self.file)?;
        let names = keys::names();
        for pair in self.overrides.chunks(2) {
            match pair {
                [key, value] => properties.set(key, value, &names),
                _ => {
                    let key = pair.concat();
                    return Err(Failure::usage(format!("The key {key} has no value behind it."))
                        .with_hint("values follow their keys: build PROPS warehouses 10"));
                }
            }
        }
        Ok(properties)
    }
}

fn open(file: &Path) -> Result<Properties, Failure> {
    Properties::open(file).map_err(|error| {
        Failure::usage(error.to_string())
            .with_hint("name a properties file of BenchmarkSQL, such as run/props.pg")
    })
}

/// Does what a script of BenchmarkSQL would do.
pub fn run(command: &Command, streams: &'static dyn Streams) -> ExitCode {
    output::install(streams);
    // While there is one thread: the system's time zone can't be asked for safely later.
    let clock = clock::WallClock::read();
    let done = match command {
        Command::Build(arguments) => build::run(arguments).map(|()| 0),
        Command::Run(arguments) => self::run::run(arguments, &clock),
        Command::Destroy(arguments) => destroy::run(arguments).map(|()| 0),
    };
    match done {
        Ok(code) => ExitCode::from(code),
        Err(failure) => {
            output::error(&failure);
            ExitCode::from(failure.code)
        }
    }
}

/// How `build` and `destroy` end.
type Done = Result<(), Failure>;

fn warn(warnings: &[String]) {
    for warning in warnings {
        output::talk(&format!("warning: {warning}"));
    }
}

/// A value as it may be shown: without passwords.
fn shown(key: &str, value: &str) -> String {
    match key {
        "password" => "***********".to_owned(),
        "conn" => dyno_drivers::target::redact_url(value),
        _ => value.to_owned(),
    }
}
