//! `dyno benchmarksql`: the drop-in front end for BenchmarkSQL 5.0, which understands the properties
//! of 6 too.
//!
//! A file becomes [`properties::Properties`], these become [`settings`], and these a load, a trial or
//! a removal. The help texts say where dyno counts otherwise than the original.

mod build;
mod console;
mod properties;
mod results;
mod run;
mod settings;

pub use build::BenchmarksqlBuild;
pub use run::BenchmarksqlRun;

use dyno_load::Unobserved;
use dyno_runner::databases::reach_target;
use dyno_runner::failure::Failure;
use dyno_runner::failure::exit_code;
use dyno_runner::lock_tables;
use dyno_runner::output::{self, Streams};
use dyno_runner::progress::DroppedTables;
use dyno_tpcc::options::OFFER;
use properties::Properties;
use settings::Reader;
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
        let names = properties::key_names();
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
    let clock = console::WallClock::read();
    exit_code(match command {
        BenchmarksqlCommand::Build(options) => build::run(options).map(|()| 0),
        BenchmarksqlCommand::Run(options) => self::run::run(options, &clock),
        BenchmarksqlCommand::Destroy(source) => destroy(source).map(|()| 0),
    })
}

/// How `build` and `destroy` end.
type Done = Result<(), Failure>;

fn warn(warnings: &[String]) {
    for warning in warnings {
        output::talk(&format!("warning: {warning}"));
    }
}

/// `dyno benchmarksql destroy`.
fn destroy(source: &PropertiesSource) -> Done {
    let properties = source.read()?;
    let mut reader = Reader::new(&properties);
    let place = reader.place()?;
    warn(&reader.warnings);
    let target = place.target.to_string();
    let connection = reach_target(place.target, None)?;
    let _lock = lock_tables(&connection.database, OFFER.name, &Unobserved)?;
    let dropped = dyno_tpcc::load::destroy(&connection.database.admin(), &DroppedTables)?;
    output::talk(&match dropped.len() {
        0 => format!("{target} has no tables of BenchmarkSQL: nothing was dropped."),
        count => format!("{count} tables of {target} were dropped."),
    });
    Ok(())
}
