//! `dyno benchmarksql`: the drop-in front end for BenchmarkSQL 5.0, which understands the properties
//! of 6 too.
//!
//! A file becomes [`properties::Properties`], these become [`settings`], and these a load, a trial or
//! a removal. The help texts say where dyno counts otherwise than the original.

mod properties;
mod results;
mod run;
mod settings;

pub use run::BenchmarksqlRun;

use dyno_core::Dialect;
use dyno_facts::format::whole;
use dyno_load::Unobserved;
use dyno_runner::databases::{ReachedDatabase, reach_target};
use dyno_runner::failure::Failure;
use dyno_runner::failure::exit_code;
use dyno_runner::output::{self, Streams};
use dyno_runner::progress::{DroppedTables, LoadProgress, follow_load};
use dyno_runner::{lock_tables, output::talk};
use dyno_tpcc::load::{LoadReport, TpccLoadOptions, load};
use dyno_tpcc::options::OFFER;
use dyno_tpcc::schema::{KeyTime, Shard};
use properties::{Properties, redacted};
use run::WallClock;
use settings::Reader;
use std::path::PathBuf;
use std::process::ExitCode;

/// A command with its arguments; the help texts of the command line explain them.
#[derive(Debug)]
pub enum BenchmarksqlCommand {
    Build(BenchmarksqlBuild),
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
    pub overrides: Vec<String>,
}

impl PropertiesSource {
    /// Reads the file and replaces values.
    fn read(&self) -> Result<Properties, Failure> {
        let mut properties = Properties::open(&self.file).map_err(|error| {
            Failure::usage(error)
                .with_hint("name a properties file of BenchmarkSQL, such as run/props.pg")
        })?;
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

#[derive(Debug)]
pub struct BenchmarksqlBuild {
    pub source: PropertiesSource,
    pub seed: u64,
    pub keys: Option<KeyTime>,
    pub foreign_keys: Option<bool>,
    pub shard: Option<String>,
    pub shard_item: Option<String>,
    pub shard_before: Option<String>,
    pub shard_after: Option<String>,
    pub shard_item_after: Option<String>,
}

pub fn run(command: &BenchmarksqlCommand, streams: &'static dyn Streams) -> ExitCode {
    output::install(streams);
    // While there is one thread: the system's time zone can't be asked for safely later.
    let clock = WallClock::read();
    exit_code(match command {
        BenchmarksqlCommand::Build(options) => build(options).map(|()| 0),
        BenchmarksqlCommand::Run(options) => self::run::run(options, &clock),
        BenchmarksqlCommand::Destroy(source) => destroy(source).map(|()| 0),
    })
}

/// How `build` and `destroy` end.
type Done = Result<(), Failure>;

fn warn(warnings: &[String]) {
    for warning in warnings {
        talk(&format!("warning: {warning}"));
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
    talk(&match dropped.len() {
        0 => format!("{target} has no tables of BenchmarkSQL: nothing was dropped."),
        count => format!("{count} tables of {target} were dropped."),
    });
    Ok(())
}

/// `dyno benchmarksql build`.
fn build(arguments: &BenchmarksqlBuild) -> Done {
    let properties = arguments.source.read()?;
    let mut reader = Reader::new(&properties);
    let place = reader.place()?;
    let load_workers = reader.load_workers()?;
    echo(&properties, load_workers);
    warn(&reader.warnings);
    let shard = shard(arguments)?;
    let usual = place.target.dialect == Dialect::Postgres && shard.is_none();
    let options = TpccLoadOptions {
        sessions: load_workers,
        seed: arguments.seed,
        keys: arguments.keys,
        foreign_keys: arguments.foreign_keys.unwrap_or(usual),
        shard,
        ..TpccLoadOptions::new(place.warehouses)
    };
    let ReachedDatabase { database, facts, .. } = reach_target(place.target, None)?;
    talk(&format!("{} {}", facts.product, facts.version));
    let _lock = lock_tables(&database, OFFER.name, &Unobserved)?;
    let load = |progress: &LoadProgress| load(&database.admin(), &options, progress);
    follow_load(load, load_summary).map(drop)
}

/// Prints the first lines of the original: every key that it reads.
fn echo(properties: &Properties, load_workers: u32) {
    let mut text = "Starting BenchmarkSQL LoadData\n\n".to_owned();
    let value = |key: &str| properties.get(key).map(|entry| redacted(key, &entry.value));
    for key in ["driver", "conn", "user", "password", "warehouses"] {
        text.extend(value(key).map(|value| format!("{key}={value}\n")));
    }
    let workers = format!(" - using default {load_workers}");
    for (key, otherwise) in [
        ("loadWorkers", workers.as_str()),
        ("fileLocation", ""),
        ("csvNullValue", " - using default 'NULL'"),
    ] {
        let undefined = || format!("{key} (not defined{otherwise})\n");
        text.push_str(&value(key).map_or_else(undefined, |value| format!("{key}={value}\n")));
    }
    text.push('\n');
    output::data(&text);
}

/// The clauses that the options make.
fn shard(arguments: &BenchmarksqlBuild) -> Result<Option<Shard>, Failure> {
    let mut shard = Shard::new();
    let mut set = |name: &str, text: &str| {
        shard.insert(name.to_owned(), text.to_owned());
    };
    match arguments.shard.as_deref() {
        None => {}
        Some("polardb-x") => {
            set("suffix", "dbpartition by hash({column})");
            set("item_suffix", "broadcast");
        }
        Some("citus") => {
            set("after", "SELECT create_distributed_table('{table}', '{column}')");
            set("item_after", "SELECT create_reference_table('{table}')");
        }
        Some(word) => match word.strip_prefix("hash:") {
            None => set("suffix", word),
            Some(parts) => {
                let parts = parts.parse::<u16>().ok().filter(|&parts| parts > 0);
                let parts = parts.ok_or_else(|| {
                    Failure::usage(format!("--shard {word} has no number of partitions."))
                        .with_hint("write --shard hash:16")
                })?;
                set("suffix", &format!("PARTITION BY HASH({{column}}) PARTITIONS {parts}"));
            }
        },
    }
    for (name, given) in [
        ("before", &arguments.shard_before),
        ("after", &arguments.shard_after),
        ("item_suffix", &arguments.shard_item),
        ("item_after", &arguments.shard_item_after),
    ] {
        if let Some(text) = given {
            set(name, text);
        }
    }
    Ok((!shard.is_empty()).then_some(shard))
}

fn load_summary(report: &LoadReport) -> String {
    if report.was_complete {
        return "nothing was missing; all rows are there as an earlier build stored them, whatever seed, keys \
                or clauses were asked for now"
            .to_owned();
    }
    let rows = |rows: u64| whole(rows as f64);
    let method = report.method.map_or(String::new(), |method| format!(" by {}", method.name()));
    let loaded =
        format!("{} rows loaded{method}, keys made, all rows counted", rows(report.rows_loaded));
    match report.rows_found {
        0 => loaded,
        found => format!("{} rows were there from an earlier build; {loaded}", rows(found)),
    }
}
