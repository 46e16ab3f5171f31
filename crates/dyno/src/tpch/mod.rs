//! `dyno tpch`: data, queries, load and tests of TPC-H, each as a verb of its own.

use crate::Done;

/// What follows the help of the verb.
pub(crate) const HELP: &str = "\
The results are derived from TPC-H and are not comparable with published TPC-H results.";

/// What can be done.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {}

/// Does one of the verbs.
pub(crate) fn main(command: &Command) -> Done {
    match *command {}
}
