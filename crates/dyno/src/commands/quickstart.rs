//! `dyno quickstart`.

use super::RUNS;
use super::ending::EndLength;
use super::run::{Keeping, run_suite};
use crate::Done;
use dyno_runner::output;
use dyno_suite::Overrides;
use std::path::PathBuf;

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Folder in which runs are kept.
    #[arg(long, value_name = "FOLDER", default_value = RUNS)]
    dir: PathBuf,
    /// Scale data and durations down to this share, above 0 and at most 1.
    #[arg(long, value_name = "F")]
    shrink: Option<f64>,
    /// Print every step and all tables, as `dyno run --long` does.
    #[arg(long)]
    long: bool,
}

pub(crate) fn run(arguments: &Arguments) -> Done {
    let overrides = Overrides { shrink: arguments.shrink, ..Overrides::default() };
    let keeping = Keeping::of(&arguments.dir, true);
    if arguments.long {
        return run_suite("quickstart", &overrides, &keeping);
    }
    output::be_brief();
    run_suite("quickstart", &overrides, &Keeping { length: EndLength::Screen, ..keeping })
}
