//! `dyno paper`.

use super::{RUNS, find_run};
use crate::failure::Failure;
use crate::{Done, output};
use dyno_report::{Lang, Paper, PublishedRow, PublishedTable, ReportError};
use dyno_store::RunData;
use dyno_suite::{Plan, PublishedSeries};
use std::path::{Path, PathBuf};

/// The formats a paper can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Format {
    /// One file with charts that works offline.
    Html,
    /// Markdown.
    Md,
    /// A line per trial.
    Csv,
    /// Everything, with a schema version.
    Json,
}

/// All formats.
pub(crate) const ALL: [Format; 4] = [Format::Html, Format::Md, Format::Csv, Format::Json];

/// What `dyno paper` takes.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  dyno paper last                              write the last run's paper into its folder again
  dyno paper 2026-11-21T21 --format md         one format only
  dyno paper RUN_A RUN_B --out comparison      one paper of two runs

A run that was killed can be printed too: what was measured until then is in its folder.")]
pub(crate) struct Arguments {
    /// Runs: their folders, names, beginnings of names, or `last`.
    #[arg(required = true)]
    runs: Vec<String>,
    /// Formats to write.
    #[arg(long, value_delimiter = ',', default_value = "html,md,csv,json")]
    format: Vec<Format>,
    /// Folder to write to; the run's own folder unless given (required for several runs).
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
    /// Folder in which runs are kept.
    #[arg(long, value_name = "FOLDER", default_value = RUNS)]
    dir: PathBuf,
}

pub(crate) fn run(arguments: &Arguments) -> Done {
    let mut runs = Vec::new();
    for name in &arguments.runs {
        let data = dyno_store::read(&find_run(&arguments.dir, name)?)?;
        for warning in &data.warnings {
            output::talk(&format!("warning: {warning}"));
        }
        runs.push(data);
    }
    let out = match (&arguments.out, runs.as_slice()) {
        (Some(out), _) => out.clone(),
        (None, [run]) => run.path.clone(),
        (None, _) => {
            return Err(Failure::usage("A paper of several runs needs a folder of its own.")
                .with_hint("Name it with `--out FOLDER`."));
        }
    };
    for file in write_paper(&runs, &out, &arguments.format)? {
        output::data(&format!("{}\n", file.display()));
    }
    Ok(())
}

/// The paper of these runs, beside the published figures that their plans name.
pub(crate) fn paper_of(runs: &[RunData]) -> Paper {
    Paper::new(runs, &published_of(runs))
}

/// Writes `paper.*` into a folder; returns the files.
///
/// # Errors
/// When a file can't be written.
pub(crate) fn write_paper(
    runs: &[RunData],
    out: &Path,
    formats: &[Format],
) -> Result<Vec<PathBuf>, Failure> {
    let failed = |file: &Path, error: std::io::Error| {
        Failure::new(format!("{} can't be written: {error}.", file.display()))
            .with_hint("Make room or name another folder with `dyno paper RUN --out FOLDER`.")
    };
    std::fs::create_dir_all(out).map_err(|error| failed(out, error))?;
    let links = runs.iter().map(|run| way(out, &run.path)).collect();
    let paper = paper_of(runs).linked(links);
    let mut files = Vec::new();
    for format in formats {
        let (extension, text) = match format {
            Format::Html => ("html", paper.html(Lang::En)),
            Format::Md => ("md", paper.markdown(Lang::En)),
            Format::Csv => ("csv", Ok(paper.csv())),
            Format::Json => ("json", paper.json()),
        };
        let text = text.map_err(report_failure)?;
        let file = out.join(format!("paper.{extension}"));
        dyno_store::write_atomically(&file, text.as_bytes())?;
        files.push(file);
    }
    Ok(files)
}

/// The way from one folder to another, up to what they share and down again, with a slash at its
/// end; `None` where one of them can't be found or has no name in UTF-8.
fn way(from: &Path, to: &Path) -> Option<String> {
    let (from, to) = (from.canonicalize().ok()?, to.canonicalize().ok()?);
    let shared = from.components().zip(to.components()).take_while(|(a, b)| a == b).count();
    let up = from.components().skip(shared).map(|_| Some(".."));
    let down = to.components().skip(shared).map(|part| part.as_os_str().to_str());
    up.chain(down).map(|part| Some(format!("{}/", part?))).collect()
}

pub(crate) fn report_failure(error: ReportError) -> Failure {
    let failure = Failure::new(error.to_string());
    match error.hint() {
        Some(hint) => failure.with_hint(hint),
        None => failure,
    }
}

/// The published figures that the plans of these runs name.
pub(crate) fn published_of(runs: &[RunData]) -> Vec<PublishedTable> {
    runs.iter().flat_map(published).collect()
}

/// The published figures that a run's plan names.
pub(crate) fn published(run: &RunData) -> Vec<PublishedTable> {
    let Ok(plan) = serde_json::from_value::<Plan>(run.header.plan.clone()) else {
        return Vec::new();
    };
    plan.experiments
        .iter()
        .flat_map(|experiment| {
            experiment.published.iter().map(|series| table(&experiment.name, series))
        })
        .collect()
}

fn table(experiment: &str, series: &PublishedSeries) -> PublishedTable {
    let row = |row: &dyno_suite::PublishedRow| PublishedRow {
        label: row.label.clone(),
        number: row.number,
        conditions: row
            .conditions
            .iter()
            .map(|(name, value)| (name.clone(), value.to_string()))
            .collect(),
        metrics: row.metrics.clone(),
        targets: row.targets.clone(),
    };
    PublishedTable {
        experiment: experiment.to_owned(),
        title: series.title.clone(),
        source: series.source.clone(),
        method: series.method.clone(),
        note: series.note.clone(),
        rows: series.rows.iter().map(row).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_a_run_are_found_from_wherever_its_paper_stands() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        for name in ["runs/a b", "papers/x"] {
            std::fs::create_dir_all(at(name)).expect("made");
        }
        assert_eq!(way(&at("runs/a b"), &at("runs/a b")).as_deref(), Some(""));
        assert_eq!(way(&at("papers/x"), &at("runs/a b")).as_deref(), Some("../../runs/a b/"));
        assert_eq!(way(&at("papers"), &at("nowhere")), None);
    }
}
