//! `dyno benchmarksql`: the drop-in front end for BenchmarkSQL 5.0, which understands the properties
//! of 6 too.
//!
//! A file becomes [`properties::Properties`], these become [`settings`], and these a load, a trial or
//! a removal. The help texts say where dyno counts otherwise than the original.

mod properties;
mod results;
mod run;
mod settings;

use crate::choice;
use clap::{Args, Subcommand};
use dyno_core::Dialect;
use dyno_facts::format::whole;
use dyno_load::Unobserved;
use dyno_runner::databases::{ReachedDatabase, reach_target};
use dyno_runner::failure::{Failure, exit_code};
use dyno_runner::lock_tables;
use dyno_runner::output::{self, Streams, talk};
use dyno_runner::progress::{DroppedTables, follow_load};
use dyno_tpcc::Isolation;
use dyno_tpcc::load::{LoadReport, TpccLoadOptions, load};
use dyno_tpcc::options::{CheckTime, OFFER};
use dyno_tpcc::profile::{BMSQL_5_0, Profile, SPEC};
use dyno_tpcc::schema::{KeyTime, Shard};
use properties::{Properties, redacted};
use run::WallClock;
use settings::Reader;
use std::path::PathBuf;
use std::process::ExitCode;

/// The text after the help of the verb.
pub const HELP: &str = include_str!("verb.txt").trim_ascii_end();

/// A command with its arguments.
#[derive(Debug, Subcommand)]
pub enum BenchmarksqlCommand {
    /// Create the tables, load them, make keys and indexes, count and analyze the rows.
    #[command(alias = "runDatabaseBuild.sh", alias = "runLoader.sh")]
    Build(BenchmarksqlBuild),
    /// Run the transactions and print what was measured.
    #[command(alias = "runBenchmark.sh")]
    Run(BenchmarksqlRun),
    /// Drop the tables.
    #[command(alias = "runDatabaseDestroy.sh")]
    #[command(after_help = "\
Drops the tables of BenchmarkSQL, also those that an interrupted build has left. Missing tables
aren't an error.

Examples:
  dyno benchmarksql destroy props.pg")]
    Destroy(PropertiesSource),
}

/// The scripts of BenchmarkSQL, which are other names of the commands.
pub const SCRIPTS: [&str; 4] =
    ["runDatabaseBuild.sh", "runLoader.sh", "runBenchmark.sh", "runDatabaseDestroy.sh"];

/// The file and what replaces its values.
#[derive(Debug, Args)]
pub struct PropertiesSource {
    /// A properties file of BenchmarkSQL.
    #[arg(value_name = "PROPS")]
    file: PathBuf,
    /// Values that replace those of the file; keys are understood whatever their case.
    #[arg(value_name = "KEY VALUE")]
    overrides: Vec<String>,
}

impl PropertiesSource {
    /// Reads the file and replaces values.
    fn read(&self) -> Result<Properties, Failure> {
        let mut properties = Properties::open(&self.file).map_err(|error| {
            Failure::usage(error)
                .with_hint("name a properties file of BenchmarkSQL, such as run/props.pg")
        })?;
        for pair in self.overrides.chunks(2) {
            match pair {
                [key, value] => properties.set(key, value),
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

#[derive(Debug, Args)]
#[command(after_help = include_str!("build.txt").trim_ascii_end())]
pub struct BenchmarksqlBuild {
    #[command(flatten)]
    source: PropertiesSource,
    /// Seed of all rows: the same seed gives the same rows.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// When keys and indexes are made: before or after the rows, or primary keys before and indexes
    /// after them. Default: primary-before on MySQL and SQLite, after on PostgreSQL.
    #[arg(long, value_parser = choice(KEYS))]
    keys: Option<KeyTime>,
    /// Make foreign keys, after the rows. Default: as BenchmarkSQL, on PostgreSQL only
    /// (not with --shard).
    #[arg(long, value_name = "true|false", num_args = 0..=1, default_missing_value = "true", require_equals = true)]
    foreign_keys: Option<bool>,
    /// Spread tables by warehouse: a clause behind CREATE TABLE, or a word for one.
    #[arg(long, value_name = "CLAUSE|WORD")]
    shard: Option<String>,
    /// The clause behind CREATE TABLE of the items, which every shard reads.
    #[arg(long, value_name = "CLAUSE")]
    shard_item: Option<String>,
    /// A statement before each CREATE TABLE of a table that is spread.
    #[arg(long, value_name = "SQL")]
    shard_before: Option<String>,
    /// A statement after each CREATE TABLE of a table that is spread.
    #[arg(long, value_name = "SQL")]
    shard_after: Option<String>,
    /// A statement after CREATE TABLE of the items.
    #[arg(long, value_name = "SQL")]
    shard_item_after: Option<String>,
}

#[derive(Debug, Args)]
#[command(after_help = include_str!("run.txt").trim_ascii_end())]
pub struct BenchmarksqlRun {
    #[command(flatten)]
    source: PropertiesSource,
    /// The isolation that sessions ask for. Default: READ COMMITTED on MySQL, elsewhere the
    /// server's own.
    #[arg(long, value_parser = choice(ISOLATIONS))]
    isolation: Option<Isolation>,
    /// Seed of all that is random; drawn and printed unless given.
    #[arg(long)]
    seed: Option<u64>,
    /// Run a profile that the file does not ask for.
    #[arg(long, value_parser = choice(PROFILES))]
    profile: Option<&'static Profile>,
    /// When the consistency conditions are checked; without it after a run at up to 100 warehouses, as that reads all
    /// tables.
    #[arg(long, value_parser = choice(CHECKS))]
    checks: Option<CheckTime>,
    /// Record every order durably, from before its commit is sent, for `dyno check --ledger FILE`.
    #[arg(long, value_name = "FILE")]
    ledger: Option<PathBuf>,
    /// Write the result as JSON; `-` is standard output, where the console then gives way.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

const KEYS: [(&str, KeyTime); 3] = [
    ("before", KeyTime::BeforeLoad),
    ("primary-before", KeyTime::PrimaryBeforeLoad),
    ("after", KeyTime::AfterLoad),
];

const ISOLATIONS: [(&str, Isolation); 4] = [
    ("server", Isolation::ServerDefault),
    ("read-committed", Isolation::ReadCommitted),
    ("repeatable-read", Isolation::RepeatableRead),
    ("serializable", Isolation::Serializable),
];

const PROFILES: [(&str, &Profile); 2] = [("bmsql-5.0", &BMSQL_5_0), ("spec", &SPEC)];

const CHECKS: [(&str, CheckTime); 3] =
    [("none", CheckTime::Never), ("after", CheckTime::After), ("both", CheckTime::BeforeAndAfter)];

/// Executes a command of `dyno benchmarksql` and returns the program's exit code.
pub fn run(command: &BenchmarksqlCommand, streams: &'static dyn Streams) -> ExitCode {
    output::install(streams);
    // While there is one thread: the system's time zone can't be read safely later.
    let clock = WallClock::read();
    exit_code(match command {
        BenchmarksqlCommand::Build(options) => build(options).map(|()| 0),
        BenchmarksqlCommand::Run(options) => self::run::run(options, &clock),
        BenchmarksqlCommand::Destroy(source) => destroy(source).map(|()| 0),
    })
}

fn warn(warnings: &[String]) {
    for warning in warnings {
        talk(&format!("warning: {warning}"));
    }
}

/// `dyno benchmarksql destroy`.
fn destroy(source: &PropertiesSource) -> Result<(), Failure> {
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
fn build(arguments: &BenchmarksqlBuild) -> Result<(), Failure> {
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
    follow_load(|progress| load(&database.admin(), &options, progress), load_summary).map(drop)
}

/// Prints the first lines of the original: every key that it reads.
fn echo(properties: &Properties, load_workers: u32) {
    let mut text = "Starting BenchmarkSQL LoadData\n\n".to_owned();
    for key in ["driver", "conn", "user", "password", "warehouses"] {
        text.extend(property_line(properties, key));
    }
    let workers = format!(" - using default {load_workers}");
    for (key, otherwise) in [
        ("loadWorkers", workers.as_str()),
        ("fileLocation", ""),
        ("csvNullValue", " - using default 'NULL'"),
    ] {
        let line = property_line(properties, key);
        text.push_str(&line.unwrap_or_else(|| format!("{key} (not defined{otherwise})\n")));
    }
    text.push('\n');
    output::data(&text);
}

/// Returns the line of a property with its password masked; `None` if the file doesn't set it.
fn property_line(properties: &Properties, key: &str) -> Option<String> {
    properties.get(key).map(|entry| format!("{key}={}\n", redacted(key, &entry.value)))
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
    for (name, option) in [
        ("before", &arguments.shard_before),
        ("after", &arguments.shard_after),
        ("item_suffix", &arguments.shard_item),
        ("item_after", &arguments.shard_item_after),
    ] {
        if let Some(text) = option {
            set(name, text);
        }
    }
    Ok((!shard.is_empty()).then_some(shard))
}

fn load_summary(report: &LoadReport) -> String {
    if report.was_complete {
        return "nothing was missing; all rows are there as an earlier build stored them, whatever seed, keys \
                or clauses were requested now"
            .to_owned();
    }
    let method = report.method.map_or(String::new(), |method| format!(" by {}", method.name()));
    let rows = whole(report.rows_loaded as f64);
    let loaded = format!("{rows} rows loaded{method}, keys made, all rows counted");
    match report.rows_found {
        0 => loaded,
        found => format!("{} rows were there from an earlier build; {loaded}", whole(found as f64)),
    }
}
