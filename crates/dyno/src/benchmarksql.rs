//! The command line of `dyno benchmarksql`.

use crate::choice;
use crate::terminal::TerminalStreams;
use clap::{Args, Subcommand};
use dyno_dropin::benchmarksql::{
    BenchmarksqlBuild, BenchmarksqlCommand, BenchmarksqlRun, PropertiesSource,
};
use dyno_tpcc::Isolation;
use dyno_tpcc::options::CheckTime;
use dyno_tpcc::profile::{BMSQL_5_0, Profile, SPEC};
use dyno_tpcc::schema::KeyTime;
use std::path::PathBuf;
use std::process::ExitCode;

pub(crate) const HELP: &str = "\
Examples:
  dyno benchmarksql build props.pg                         runDatabaseBuild.sh props.pg
  dyno benchmarksql build props.pg warehouses 10           the same with another value
  dyno benchmarksql run props.pg                           runBenchmark.sh props.pg
  dyno benchmarksql destroy props.pg                       runDatabaseDestroy.sh props.pg

The names of the scripts are understood too: `dyno benchmarksql runBenchmark.sh props.pg`, or a link
to dyno with the name of a script.

A file may hold dyno's own URLs: conn=mysql://host/db, conn=postgres://host/db, or db=sqlite with
conn=sqlite:file. A password that the file doesn't have is looked for in ~/.pgpass or ~/.my.cnf,
and asked for at a terminal.";

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Create the tables, load them, make keys and indexes, count and analyze the rows.
    #[command(alias = "runDatabaseBuild.sh", alias = "runLoader.sh")]
    Build(BenchmarksqlBuildArguments),
    /// Run the transactions and print what was measured.
    #[command(alias = "runBenchmark.sh")]
    Run(BenchmarksqlRunArguments),
    /// Drop the tables.
    #[command(alias = "runDatabaseDestroy.sh")]
    #[command(after_help = "\
Drops the tables of BenchmarkSQL, also those that an interrupted build has left. Tables that are not
there are no error.

Examples:
  dyno benchmarksql destroy props.pg")]
    Destroy(SourceArguments),
}

pub(crate) fn run(command: Command) -> ExitCode {
    let command = match command {
        Command::Build(arguments) => BenchmarksqlCommand::Build(arguments.into()),
        Command::Run(arguments) => BenchmarksqlCommand::Run(arguments.into()),
        Command::Destroy(source) => BenchmarksqlCommand::Destroy(source.into()),
    };
    dyno_dropin::benchmarksql::run(&command, &TerminalStreams)
}

#[derive(Debug, Args)]
pub(crate) struct SourceArguments {
    /// A properties file of BenchmarkSQL.
    #[arg(value_name = "PROPS")]
    file: PathBuf,
    /// Values that replace those of the file; keys are understood whatever their case.
    #[arg(value_name = "KEY VALUE")]
    overrides: Vec<String>,
}

impl From<SourceArguments> for PropertiesSource {
    fn from(SourceArguments { file, overrides }: SourceArguments) -> Self {
        PropertiesSource { file, overrides }
    }
}

#[derive(Debug, Args)]
#[command(after_help = "\
A build that was interrupted goes on when the same command is given again: what is stored is kept.

Shard clauses are templates: {table} and {column} stand for a table and its warehouse column. Words
for --shard that stand for templates:
  polardb-x   dbpartition by hash({column}), and broadcast for the items
  citus       create_distributed_table, and create_reference_table for the items
  hash:N      PARTITION BY HASH({column}) PARTITIONS N

Examples:
  dyno benchmarksql build props.pg
  dyno benchmarksql build props.my warehouses 100 loadWorkers 16
  dyno benchmarksql build props.my --shard polardb-x")]
pub(crate) struct BenchmarksqlBuildArguments {
    #[command(flatten)]
    source: SourceArguments,
    /// Seed of all rows: the same seed gives the same rows.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// When keys and indexes are made: before or after the rows, or primary keys before and indexes
    /// after them. Default: primary-before on MySQL and SQLite, after on PostgreSQL.
    #[arg(long, value_parser = choice(KEYS))]
    keys: Option<KeyTime>,
    /// Whether foreign keys are made, after the rows. Default: as BenchmarkSQL, on PostgreSQL only
    /// (not with --shard).
    #[arg(long, value_name = "true|false", num_args = 0..=1, default_missing_value = "true", require_equals = true)]
    foreign_keys: Option<bool>,
    /// How tables are spread by warehouse: a clause behind CREATE TABLE, or a word for one.
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

impl From<BenchmarksqlBuildArguments> for BenchmarksqlBuild {
    fn from(arguments: BenchmarksqlBuildArguments) -> Self {
        BenchmarksqlBuild {
            source: arguments.source.into(),
            seed: arguments.seed,
            keys: arguments.keys,
            foreign_keys: arguments.foreign_keys,
            shard: arguments.shard,
            shard_item: arguments.shard_item,
            shard_before: arguments.shard_before,
            shard_after: arguments.shard_after,
            shard_item_after: arguments.shard_item_after,
        }
    }
}

#[derive(Debug, Args)]
#[command(after_help = "\
Better than the original:
  tpmC counts New-Orders whose commit was acknowledged and those that are rolled back as the specification
  asks (1 %); failed transactions are told apart, and so are commits that were sent and never answered.
  tpmTOTAL and the transaction count are of acknowledged commits alone.
  What the database holds afterwards is compared with what was acknowledged, and the consistency
  conditions are checked: a difference ends with exit code 4.
  limitTxnsPerMin is a schedule with even gaps: a transaction that has to wait for the one before it
  has the waiting in its latency. A limit below the number of terminals is kept.
  runMins begins when all terminals are connected, and is kept to the millisecond.
  Values of the file can be replaced here too, as with build.

A file with keys of BenchmarkSQL 6 (sutThreads, keyingTimeMultiplier, rampupMins ...) runs the profile
`spec`: keying and think times, ten terminals a warehouse over sutThreads sessions; another one runs
`bmsql-5.0`.

Exit codes: 0 all is right; 1 failed, or transactions failed with an error other than a lost
connection; 2 wrong usage; 4 the database does not hold what it has acknowledged, violates a
condition, or the audit finds that something else was run than was meant; 130 stopped with Ctrl-C,
143 by SIGTERM: the closing lines of what was measured until then are printed.

Examples:
  dyno benchmarksql run props.pg
  dyno benchmarksql run props.my terminals 64 runMins 5
  dyno benchmarksql run props.pg --isolation repeatable-read --json result.json
  dyno benchmarksql run props.pg --ledger orders.ledger      then, after a crash or a failover:
  dyno check postgres://bench@db1/bench --ledger orders.ledger")]
pub(crate) struct BenchmarksqlRunArguments {
    #[command(flatten)]
    source: SourceArguments,
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
    /// When the consistency conditions are checked. They read all tables.
    #[arg(long, value_parser = choice(CHECKS), default_value = "after")]
    checks: CheckTime,
    /// Record every order durably, from before its commit is sent, for `dyno check --ledger FILE`.
    #[arg(long, value_name = "FILE")]
    ledger: Option<PathBuf>,
    /// Write the result as JSON; `-` is standard output, where the console then gives way.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

impl From<BenchmarksqlRunArguments> for BenchmarksqlRun {
    fn from(arguments: BenchmarksqlRunArguments) -> Self {
        BenchmarksqlRun {
            source: arguments.source.into(),
            isolation: arguments.isolation,
            seed: arguments.seed,
            profile: arguments.profile,
            checks: arguments.checks,
            ledger: arguments.ledger,
            json: arguments.json,
        }
    }
}

const KEYS: &[(&str, KeyTime)] = &[
    ("before", KeyTime::BeforeLoad),
    ("primary-before", KeyTime::PrimaryBeforeLoad),
    ("after", KeyTime::AfterLoad),
];

const ISOLATIONS: &[(&str, Isolation)] = &[
    ("server", Isolation::ServerDefault),
    ("read-committed", Isolation::ReadCommitted),
    ("repeatable-read", Isolation::RepeatableRead),
    ("serializable", Isolation::Serializable),
];

const PROFILES: &[(&str, &Profile)] = &[("bmsql-5.0", &BMSQL_5_0), ("spec", &SPEC)];

const CHECKS: &[(&str, CheckTime)] =
    &[("none", CheckTime::Never), ("after", CheckTime::After), ("both", CheckTime::BeforeAndAfter)];
