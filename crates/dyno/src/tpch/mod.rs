//! `dyno tpch`: data, queries, load and tests of TPC-H, each as a verb of its own.

mod answers;
mod load;

pub(crate) use answers::answers_check;
pub(crate) use load::load_failure;

use crate::Done;

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
}

/// Does one of the verbs.
pub(crate) fn main(command: &Command) -> Done {
    match command {
        Command::Load(arguments) => load::run(arguments),
        Command::Drop(arguments) => load::drop_tables(arguments),
    }
}
