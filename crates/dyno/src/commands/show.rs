//! `dyno show`.

use super::ending::{EndLength, print_results};
use super::paper::paper_of;
use super::{RUNS, find_run};
use crate::Done;
use dyno_runner::output;
use std::path::PathBuf;

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// A run: its folder, its name, the beginning of its name, or `last`.
    #[arg(default_value = "last")]
    run: String,
    /// Folder in which runs are kept.
    #[arg(long, value_name = "FOLDER", default_value = RUNS)]
    dir: PathBuf,
}

pub(crate) fn run(arguments: &Arguments) -> Done {
    let data = dyno_store::read(&find_run(&arguments.dir, &arguments.run)?)?;
    for warning in &data.warnings {
        output::talk(&format!("warning: {warning}"));
    }
    // Columns of notes have the numbers of the checks, which follow.
    print_results(&paper_of(&[data]), EndLength::Long);
    Ok(())
}
