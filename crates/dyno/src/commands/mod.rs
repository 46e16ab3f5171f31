//! One file per verb.

pub(crate) mod bench;
pub(crate) mod calibrate;
pub(crate) mod check;
pub(crate) mod cluster;
pub(crate) mod compare;
pub(crate) mod continuing;
pub(crate) mod ending;
pub(crate) mod fleet;
pub(crate) mod generator;
pub(crate) mod help;
pub(crate) mod ls;
pub(crate) mod paper;
pub(crate) mod preview;
pub(crate) mod quickstart;
pub(crate) mod reproduce;
pub(crate) mod run;
pub(crate) mod serve;
pub(crate) mod show;
pub(crate) mod suites;

use dyno_runner::failure::Failure;
use dyno_runner::output;
use dyno_store::{RunData, RunEntry};
use std::path::{Path, PathBuf};

/// Where runs are kept unless told otherwise.
pub(crate) const RUNS: &str = "dyno-runs";

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
