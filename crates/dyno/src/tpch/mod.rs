//! `dyno tpch`: data, queries, load and tests of TPC-H, each as a verb of its own.

mod generate;
mod load;
mod qgen;
mod run;

use crate::Done;
use dyno_runner::failure::Failure;
use dyno_tpch::generate::check_scale;

pub(crate) const HELP: &str = "\
The results are derived from TPC-H and are not comparable with published TPC-H results.";

#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    /// Write the tables or the refresh sets as files, byte for byte as dbgen does.
    Gen(generate::Arguments),
    /// Print the 22 queries with parameters, as qgen does.
    Qgen(qgen::Arguments),
    /// Create the tables, stream the rows into them, make keys, indexes and statistics.
    Load(load::Arguments),
    /// Drop the tables.
    Drop(load::DropArguments),
    /// Execute Q1 to Q22 in order at each parallel degree, and check the answers.
    Run(run::RunArguments),
    /// Execute the power test: refresh functions around the queries of one stream.
    Power(run::PowerArguments),
    /// Execute the throughput test: several streams of queries at once.
    Throughput(run::ThroughputArguments),
    /// Execute pairs of refresh functions alone.
    Refresh(run::RefreshArguments),
}

pub(crate) fn main(command: &Command) -> Done {
    match command {
        Command::Gen(arguments) => generate::run(arguments),
        Command::Qgen(arguments) => qgen::run(arguments),
        Command::Load(arguments) => load::run(arguments),
        Command::Drop(arguments) => load::drop_tables(arguments),
        Command::Run(arguments) => run::run(arguments),
        Command::Power(arguments) => run::power(arguments),
        Command::Throughput(arguments) => run::throughput(arguments),
        Command::Refresh(arguments) => run::refresh(arguments),
    }
}

/// A scale factor of which consistent tables can be made.
fn usable_scale(scale: f64) -> Result<f64, Failure> {
    let usable = check_scale(scale).map(|()| scale);
    usable.map_err(|error| Failure::usage(error.to_string()).hinted(error.hint()))
}
