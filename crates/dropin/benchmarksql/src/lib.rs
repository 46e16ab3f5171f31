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

pub use build::BenchmarksqlBuild;
pub use run::BenchmarksqlRun;

use dyno_runner::exit::exit_code;
use dyno_runner::failure::Failure;
use dyno_runner::output::{self, Streams};
use properties::Properties;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

#[derive(Debug)]
pub enum BenchmarksqlCommand {
    /// Create the tables, load them, make keys and indexes, count and analyze the rows.
    Build(BenchmarksqlBuild),
    /// Run the transactions and print what was measured.
    Run(BenchmarksqlRun),
    Destroy(PropertiesSource),
}

pub fn verb_of_script(name: &str) -> Option<&'static str> {
    match name {
        "runDatabaseBuild.sh" | "runLoader.sh" => Some("build"),
        "runBenchmark.sh" => Some("run"),
        "runDatabaseDestroy.sh" => Some("destroy"),
        _ => None,
    }
}

/// The file and what replaces its values.
#[derive(Debug)]
pub struct PropertiesSource {
    pub file: PathBuf,
    /// Keys, each followed by its value. Keys are understood whatever their case.
    pub overrides: Vec<String>,
}

impl PropertiesSource {
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
        Failure::usage(error)
            .with_hint("name a properties file of BenchmarkSQL, such as run/props.pg")
    })
}

pub fn run(command: &BenchmarksqlCommand, streams: &'static dyn Streams) -> ExitCode {
    output::install(streams);
    // While there is one thread: the system's time zone can't be asked for safely later.
    let clock = clock::WallClock::read();
    exit_code(match command {
        BenchmarksqlCommand::Build(options) => build::run(options).map(|()| 0),
        BenchmarksqlCommand::Run(options) => self::run::run(options, &clock),
        BenchmarksqlCommand::Destroy(source) => destroy::run(source).map(|()| 0),
    })
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
