//! `dyno ls`.

use super::RUNS;
use crate::Done;
use dyno_facts::RunStatus;
use dyno_facts::text_table;
use dyno_runner::output;
use dyno_store::RunEntry;
use std::path::PathBuf;

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Folder in which runs are kept.
    #[arg(long, value_name = "FOLDER", default_value = RUNS)]
    dir: PathBuf,
}

pub(crate) fn run(arguments: &Arguments) -> Done {
    let entries = dyno_store::list(&arguments.dir)?;
    if entries.is_empty() {
        output::talk(&format!("There are no runs in {}.", arguments.dir.display()));
        return Ok(());
    }
    let rows: Vec<Vec<String>> = entries.iter().map(row).collect();
    output::data(&text_table(&["run", "status", "trials", "title"], &rows, |place| place >= 2));
    Ok(())
}

fn row(entry: &RunEntry) -> Vec<String> {
    let name = entry.path.file_name().map(|name| name.to_string_lossy().into_owned());
    let status = match entry.status() {
        Some(RunStatus::Running) => "running",
        Some(RunStatus::Complete) => "complete",
        Some(RunStatus::Interrupted) => "interrupted",
        Some(RunStatus::Failed(_)) => "failed",
        None => "unreadable",
    };
    vec![
        name.unwrap_or_default(),
        status.to_owned(),
        entry.trials_ended.to_string(),
        match &entry.header {
            Ok(header) => header.title.clone(),
            Err(error) => error.to_string(),
        },
    ]
}
