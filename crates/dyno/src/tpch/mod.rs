//! `dyno tpch`: data, queries, load and tests of TPC-H, each as a verb of its own.

mod answers;
mod load;

pub(crate) use answers::answers_check;
pub(crate) use load::load_failure;
mod generate;
mod qgen;

use crate::Done;
use crate::failure::Failure;
use dyno_tpch::generate::check_scale;

/// What follows the help of the verb.
pub(crate) const HELP: &str = "\
The results are derived from TPC-H and are not comparable with published TPC-H results.";

/// What can be done.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    /// Create the tables, stream the rows into them, make keys, indexes and statistics.
    Load(load::Arguments),
    /// Drop the tables.
    Drop(load::DropArguments),
    /// Write the tables or the refresh sets as files, byte for byte as dbgen does.
    Gen(generate::Arguments),
    /// Print the 22 queries with parameters, as qgen does.
    Qgen(qgen::Arguments),
}

/// Does one of the verbs.
pub(crate) fn main(command: &Command) -> Done {
    match command {
        Command::Load(arguments) => load::run(arguments),
        Command::Drop(arguments) => load::drop_tables(arguments),
        Command::Gen(arguments) => generate::run(arguments),
        Command::Qgen(arguments) => qgen::run(arguments),
    }
}

/// A scale factor of which consistent tables can be made.
fn usable_scale(scale: f64) -> Result<f64, Failure> {
    match check_scale(scale) {
        Ok(()) => Ok(scale),
        Err(error) => Err(Failure::usage(error.to_string()).with_hint(error.hint())),
    }
}
