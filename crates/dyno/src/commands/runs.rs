//! Which runs there are: `dyno ls`, `dyno show`, and how verbs find one.

use super::ending::{EndLength, print_results};
use super::paper::paper_of;
use crate::Done;
use dyno_facts::{RunStatus, text_table};
use dyno_runner::failure::Failure;
use dyno_runner::output;
use dyno_store::{RunData, RunEntry};
use std::path::{Path, PathBuf};

/// Where runs are kept unless told otherwise.
pub(crate) const RUNS: &str = "dyno-runs";

/// The option of all verbs that read or write runs.
#[derive(Debug, clap::Args)]
pub(crate) struct RunsFolder {
    /// Folder in which runs are kept.
    #[arg(long, value_name = "FOLDER", default_value = RUNS)]
    pub(crate) dir: PathBuf,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ShowArguments {
    /// A run: its folder, its name, the beginning of its name, or `last`.
    #[arg(default_value = "last")]
    run: String,
    #[command(flatten)]
    runs: RunsFolder,
}

/// `dyno ls`.
pub(crate) fn list(RunsFolder { dir }: &RunsFolder) -> Done {
    let entries = dyno_store::list(dir)?;
    if entries.is_empty() {
        output::talk(&format!("There are no runs in {}.", dir.display()));
        return Ok(());
    }
    let rows: Vec<Vec<String>> = entries.iter().map(row).collect();
    output::data(&text_table(&["run", "status", "trials", "title"], &rows, |place| place >= 2));
    Ok(())
}

/// `dyno show`.
pub(crate) fn show(arguments: &ShowArguments) -> Done {
    let runs = read_runs(&arguments.runs.dir, std::slice::from_ref(&arguments.run))?;
    // Columns of notes have the numbers of the checks, which follow.
    print_results(&paper_of(&runs), EndLength::Long);
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

pub(crate) fn read_runs(runs: &Path, names: &[String]) -> Result<Vec<RunData>, Failure> {
    let read = |name: &String| {
        let data = dyno_store::read(&find_run(runs, name)?)?;
        for warning in &data.warnings {
            output::talk(&format!("warning: {warning}"));
        }
        Ok(data)
    };
    names.iter().map(read).collect()
}

/// Finds a run by its path, by its name inside `runs`, by the beginning of that, or as `last`.
///
/// # Errors
/// When there is none, or more than one begins like that.
pub(crate) fn find_run(runs: &Path, name: &str) -> Result<PathBuf, Failure> {
    let path = Path::new(name);
    if path.join("run.json").is_file() {
        return Ok(path.to_owned());
    }
    if runs.join(name).join("run.json").is_file() {
        return Ok(runs.join(name));
    }
    let entries = dyno_store::list(runs)?;
    let folder = |entry: &RunEntry| {
        entry.path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
    };
    let mut found: Vec<&RunEntry> = match name {
        "last" => entries.iter().max_by_key(|entry| folder(entry)).into_iter().collect(),
        _ => entries.iter().filter(|entry| folder(entry).starts_with(name)).collect(),
    };
    match (found.pop(), found.len()) {
        (Some(entry), 0) => Ok(entry.path.clone()),
        (Some(_), _) => Err(Failure::usage(format!("Several runs begin with `{name}`."))
            .with_hint("Give more of the name; `dyno ls` lists them all.")),
        (None, _) if entries.is_empty() => {
            Err(Failure::usage(format!("There is no run `{name}`: {} has none.", runs.display()))
                .with_hint("`dyno quickstart` makes one; `--dir` names another folder of runs."))
        }
        (None, _) => {
            Err(Failure::usage(format!("There is no run `{name}` in {}.", runs.display()))
                .with_hint("`dyno ls` lists the runs; `--dir` names another folder of runs."))
        }
    }
}
