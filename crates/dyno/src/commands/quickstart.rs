//! `dyno quickstart`.

use super::RUNS;
use super::run::{Keeping, run_suite};
use crate::Done;
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
}

pub(crate) fn run(arguments: &Arguments) -> Done {
    let overrides = Overrides { shrink: arguments.shrink, ..Overrides::default() };
    run_suite("quickstart", &overrides, &Keeping::of(&arguments.dir, true))
}
