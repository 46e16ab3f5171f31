//! `dyno paper`.

use super::{RUNS, read_runs};
use crate::Done;
use crate::choice::{LANGUAGES, choice};
use dyno_facts::PublishedTable;
use dyno_report::{Lang, Paper, ReportError, Templates};
use dyno_runner::failure::Failure;
use dyno_runner::output;
use dyno_store::RunData;
use std::path::{Path, PathBuf};

/// The formats a paper can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Format {
    /// One file with charts that works offline.
    Html,
    /// For print, with bookmarks; its source `paper.typ` is written beside it.
    Pdf,
    /// The source of the PDF for typst.
    Typ,
    /// Markdown.
    Md,
    /// A line per trial.
    Csv,
    /// What was found, and all sections with their raw numbers; texts as keys and in English.
    Json,
}

#[derive(Debug)]
pub(crate) struct Forms {
    /// Formats in the order in which they are written.
    pub(crate) formats: Vec<Format>,
    pub(crate) languages: Vec<Lang>,
    /// dyno's own, or some of them replaced.
    pub(crate) templates: Templates,
}

impl Default for Forms {
    fn default() -> Self {
        Forms {
            formats: vec![Format::Html, Format::Md, Format::Csv, Format::Json],
            languages: vec![Lang::En],
            templates: Templates::default(),
        }
    }
}

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  dyno paper last                              write the last run's paper into its folder again
  dyno paper last --lang en,zh --format html,pdf   English and Chinese, to read and to print
  dyno paper 2026-11-21T21 --format md         one format only
  dyno paper RUN_A RUN_B --out comparison      one paper of two runs
  dyno paper last --template mine              with style.css, slots/after-summary.md ... of the folder `mine`
  dyno paper --schema > paper.schema.json      the JSON Schema of paper.json

The files are paper.html, paper.pdf and so on, in Chinese paper.zh.html. A run that was killed can be
printed too: what was measured until then is in its folder.")]
pub(crate) struct Arguments {
    /// Runs: their folders, names, beginnings of names, or `last`.
    #[arg(required_unless_present_any = ["schema", "templates"])]
    runs: Vec<String>,
    /// Formats to write.
    #[arg(long, value_delimiter = ',', default_value = "html,md,csv,json")]
    format: Vec<Format>,
    /// Languages to write.
    #[arg(long, value_delimiter = ',', default_value = "en", value_parser = choice(LANGUAGES))]
    lang: Vec<Lang>,
    /// Folder with a page, a style or a theme that replace dyno's own, and with text of your own:
    /// slots/after-summary.md stands behind the summary, slots/after-summary.zh.md in Chinese papers.
    #[arg(long, value_name = "FOLDER")]
    template: Option<PathBuf>,
    /// Folder to write to; the run's own folder unless given (required for several runs).
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
    /// Folder in which runs are kept.
    #[arg(long, value_name = "FOLDER", default_value = RUNS)]
    dir: PathBuf,
    /// Print the JSON Schema of `paper.json` and stop.
    #[arg(long, conflicts_with_all = ["runs", "templates"])]
    schema: bool,
    /// Write dyno's own templates into this folder, to begin one's own with, and stop.
    #[arg(long, value_name = "FOLDER", conflicts_with = "runs")]
    templates: Option<PathBuf>,
}

pub(crate) fn run(arguments: &Arguments) -> Done {
    if arguments.schema {
        output::data(&dyno_report::schema().map_err(report_failure)?);
        return Ok(());
    }
    if let Some(folder) = &arguments.templates {
        return write_templates(folder);
    }
    let runs = read_runs(&arguments.dir, &arguments.runs)?;
    let out = match (&arguments.out, runs.as_slice()) {
        (Some(out), _) => out.clone(),
        (None, [run]) => run.path.clone(),
        (None, _) => {
            return Err(Failure::usage("A paper of several runs needs a folder of its own.")
                .with_hint("Name it with `--out FOLDER`."));
        }
    };
    let forms = Forms {
        formats: arguments.format.clone(),
        languages: arguments.lang.clone(),
        templates: match &arguments.template {
            Some(folder) => Templates::of_folder(folder).map_err(report_failure)?,
            None => Templates::default(),
        },
    };
    write_paper(&runs, &out, &forms, |file| output::data(&format!("{}\n", file.display())))
}

fn write_templates(folder: &Path) -> Done {
    std::fs::create_dir_all(folder).map_err(|error| unwritable(folder, &error))?;
    for name in Templates::names() {
        let file = folder.join(name);
        if file.exists() {
            return Err(Failure::new(format!("{} exists already.", file.display()))
                .with_hint("Name a new folder: nothing is written over."));
        }
        let text = Templates::own(name).unwrap_or_default();
        dyno_store::write_atomically(&file, text.as_bytes())?;
        output::data(&format!("{}\n", file.display()));
    }
    Ok(())
}

fn unwritable(file: &Path, error: &std::io::Error) -> Failure {
    Failure::new(format!("{} can't be written: {error}.", file.display()))
        .with_hint("Make room or name another folder with `dyno paper RUN --out FOLDER`.")
}

/// The paper of these runs, beside the published figures that their plans name.
pub(crate) fn paper_of(runs: &[RunData]) -> Paper {
    Paper::new(runs, &published_of(runs))
}

/// Writes `paper.*` into a folder and tells each file as soon as it is there: should the PDF fail,
/// the others are written.
pub(crate) fn write_paper(
    runs: &[RunData],
    out: &Path,
    forms: &Forms,
    mut tell: impl FnMut(&Path),
) -> Result<(), Failure> {
    std::fs::create_dir_all(out).map_err(|error| unwritable(out, &error))?;
    let links = runs.iter().map(|run| way(out, &run.path)).collect();
    let paper = paper_of(runs).linked(links);
    let mut write = |lang: Option<Lang>, extension: &str, bytes: &[u8]| {
        let file = out.join(file_name(lang, extension));
        dyno_store::write_atomically(&file, bytes)?;
        tell(&file);
        Ok::<(), Failure>(())
    };
    let templates = &forms.templates;
    // A PDF may fail for lack of a compiler: it comes last.
    let (last, first): (Vec<Format>, Vec<Format>) =
        forms.formats.iter().partition(|format| **format == Format::Pdf);
    for format in first.into_iter().chain(last) {
        match format {
            Format::Csv => write(None, "csv", paper.csv().as_bytes())?,
            Format::Json => write(None, "json", paper.json().map_err(report_failure)?.as_bytes())?,
            _ => {}
        }
        for lang in forms.languages.iter().copied() {
            let text = match format {
                Format::Csv | Format::Json => continue,
                Format::Html => paper.html_with(templates, lang).map_err(report_failure)?,
                Format::Md => paper.markdown_with(templates, lang),
                Format::Typ | Format::Pdf => {
                    paper.typst_with(templates, lang).map_err(report_failure)?
                }
            };
            let extension = match format {
                Format::Html => "html",
                Format::Md => "md",
                _ => "typ",
            };
            write(Some(lang), extension, text.as_bytes())?;
            if format == Format::Pdf {
                write(Some(lang), "pdf", &dyno_pdf::compile(&text).map_err(report_failure)?)?;
            }
        }
    }
    Ok(())
}

/// `paper.html`, in Chinese `paper.zh.html`.
fn file_name(lang: Option<Lang>, extension: &str) -> String {
    match lang {
        None | Some(Lang::En) => format!("paper.{extension}"),
        Some(lang) => format!("paper.{}.{extension}", lang.code()),
    }
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
    Failure::new(error.to_string()).hinted(error.hint.as_deref())
}

pub(crate) fn published_of(runs: &[RunData]) -> Vec<PublishedTable> {
    runs.iter().flat_map(|run| run.header.published()).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_language_but_english_is_in_the_name() {
        assert_eq!(file_name(Some(Lang::Zh), "html"), "paper.zh.html");
        assert_eq!(file_name(Some(Lang::En), "pdf"), "paper.pdf");
        assert_eq!(file_name(None, "json"), "paper.json");
    }

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
