//! `dyno tpch`: data, queries, load and tests of TPC-H, each as a verb of its own.

mod answers;

pub(crate) use answers::answers_check;

use crate::Done;
use crate::failure::{Failure, sentence};
use dyno_tpch::load::LoadError;

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

/// A loader's error with its remedy.
pub(crate) fn load_failure(error: &LoadError) -> Failure {
    let failure = Failure::new(sentence(&error.to_string()));
    match error.hint() {
        Some(hint) => failure.with_hint(hint),
        None => failure,
    }
}
