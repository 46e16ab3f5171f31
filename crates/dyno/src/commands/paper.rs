//! `dyno paper`.

use super::runs::{RunsFolder, read_runs};
use crate::{CommandResult, LANGUAGES, choice};
use dyno_facts::{PaperTexts, PublishedTable};
use dyno_report::{Edition, Lang, Naming, Paper};
use dyno_runner::failure::Failure;
use dyno_runner::output;
use dyno_store::RunData;
use std::path::{Path, PathBuf};

/// The formats a paper can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Format {
    /// One file with charts that works offline.
    Html,
    /// For print, with bookmarks; its source `paper.typ` is written alongside it.
    Pdf,
    /// The source of the PDF for typst.
    Typ,
    /// Markdown.
    Md,
    /// A line per trial.
    Csv,
    /// Findings, and all sections with their raw numbers; texts as keys and in English.
    Json,
}

#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Forms {
    /// Formats to write.
    #[arg(
        long = "format",
        value_name = "FORMAT",
        value_delimiter = ',',
        default_value = "html,md,csv,json"
    )]
    pub(crate) formats: Vec<Format>,
    /// Editions to write: the full one, and a short one without appendix, settings and resource use
    /// (paper.short.html).
    #[arg(long = "edition", value_name = "EDITION", value_delimiter = ',', default_value = "full", value_parser = choice(EDITIONS))]
    pub(crate) editions: Vec<Edition>,
    /// Write each chart into the folder charts (charts.zh) as an SVG file, too; the Markdown shows them.
    #[arg(long = "charts")]
    pub(crate) has_charts: bool,
    /// Languages to write.
    #[arg(long = "lang", value_name = "LANG", value_delimiter = ',', default_value = "en", value_parser = choice(LANGUAGES))]
    pub(crate) languages: Vec<Lang>,
    /// The publisher's, instead of those of the suite.
    #[arg(skip)]
    pub(crate) texts: Option<PaperTexts>,
    /// Gates in addition to those of the suites.
    #[arg(skip)]
    pub(crate) gates: Vec<String>,
}

impl Forms {
    /// Returns true if papers are written in this format.
    fn has(&self, format: Format) -> bool {
        self.formats.contains(&format)
    }
}

const EDITIONS: [(&str, Edition); 2] = [("full", Edition::Full), ("short", Edition::Short)];

impl Default for Forms {
    fn default() -> Self {
        Forms {
            formats: vec![Format::Html, Format::Md, Format::Csv, Format::Json],
            languages: vec![Lang::En],
            texts: None,
            editions: vec![Edition::Full],
            gates: Vec::new(),
            has_charts: false,
        }
    }
}

#[derive(Debug, clap::Args)]
#[command(after_help = include_str!("../../help/paper.txt").trim_ascii_end())]
pub(crate) struct Arguments {
    /// Runs: their folders, names, beginnings of names, or `last`.
    #[arg(required_unless_present = "schema")]
    runs: Vec<String>,
    #[command(flatten)]
    forms: Forms,
    /// File with the publisher's texts, names and facts of targets: the keys of `[paper]` in a suite (`dyno help
    /// suite`), instead of those that the suite has.
    #[arg(long, value_name = "FILE.toml")]
    paper: Option<PathBuf>,
    /// Folder to write to; the run's own folder unless given (required for several runs).
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
    #[command(flatten)]
    folder: RunsFolder,
    /// Print the JSON Schema of `paper.json` and stop.
    #[arg(long, conflicts_with = "runs")]
    schema: bool,
}

/// Executes `dyno paper`.
pub(crate) fn run(arguments: &Arguments) -> CommandResult {
    if arguments.schema {
        output::data(dyno_report::SCHEMA);
        return Ok(());
    }
    let runs = read_runs(&arguments.folder.dir, &arguments.runs)?;
    let out = match (&arguments.out, runs.as_slice()) {
        (Some(out), _) => out.clone(),
        (None, [run]) => run.path.clone(),
        (None, _) => {
            return Err(Failure::usage("A paper of several runs needs its own folder.")
                .with_hint("Name it with `--out FOLDER`."));
        }
    };
    let mut forms = arguments.forms.clone();
    forms.texts =
        arguments.paper.as_deref().map(|file| read_publication(file, &runs)).transpose()?;
    write_paper(&runs, &out, &forms, |file| output::data(&format!("{}\n", file.display())))
}

fn read_publication(file: &Path, runs: &[RunData]) -> Result<PaperTexts, Failure> {
    let text = std::fs::read_to_string(file).map_err(|error| {
        Failure::new(format!("The file of `--paper`, {}, can't be read: {error}.", file.display()))
            .with_hint("It is a TOML file with the keys of `[paper]`: see `dyno help suite`.")
    })?;
    let texts = dyno_suite::publication(&file.to_string_lossy(), &text)?;
    let targets = runs.iter().flat_map(|run| &run.header.targets);
    let targets: Vec<&str> = targets.map(|target| target.name.as_str()).collect();
    let mut names = texts.order.iter().chain(texts.targets.keys());
    match names.find(|name| !targets.contains(&name.as_str())) {
        None => Ok(texts),
        Some(name) => {
            let message =
                format!("{} names the target `{name}`, which no run has.", file.display());
            Err(Failure::usage(message)
                .with_hint(format!("The runs have: {}.", targets.join(", "))))
        }
    }
}

fn write_failure(file: &Path, error: &std::io::Error) -> Failure {
    Failure::new(format!("{} can't be written: {error}.", file.display()))
        .with_hint("Make room there, or name another folder: `dyno paper RUN --out FOLDER`.")
}

/// The paper of these runs, alongside the published figures that their plans name.
pub(crate) fn build_paper(runs: &[RunData]) -> Paper {
    Paper::new(runs, &published_tables(runs))
}

/// Writes `paper.*` into a folder and tells each file as soon as it is there: should the PDF fail,
/// the others are written.
pub(crate) fn write_paper(
    runs: &[RunData],
    out: &Path,
    forms: &Forms,
    mut on_written: impl FnMut(&Path),
) -> Result<(), Failure> {
    std::fs::create_dir_all(out).map_err(|error| write_failure(out, &error))?;
    let links: Vec<Option<String>> = runs.iter().map(|run| relative_path(out, &run.path)).collect();
    // Names of targets have a language.
    let make_paper = |lang: Lang, by_product: bool| {
        let naming = Naming { texts: forms.texts.as_ref(), lang, by_product };
        Paper::named(runs, &published_tables(runs), &forms.gates, &naming).linked(links.clone())
    };
    let mut write = |name: &str, bytes: &[u8]| {
        let file = out.join(name);
        let folder = file.parent().unwrap_or(out);
        std::fs::create_dir_all(folder).map_err(|error| write_failure(folder, &error))?;
        dyno_store::write_atomically(&file, bytes)?;
        on_written(&file);
        Ok::<(), Failure>(())
    };
    if forms.has(Format::Csv) || forms.has(Format::Json) {
        // Programs know targets by their names.
        let paper = make_paper(Lang::En, false);
        if forms.has(Format::Csv) {
            write("paper.csv", paper.csv().as_bytes())?;
        }
        if forms.has(Format::Json) {
            write("paper.json", paper.json()?.as_bytes())?;
        }
    }
    // PDF may fail for lack of a compiler: it comes last.
    let mut sources = Vec::new();
    for lang in forms.languages.iter().copied() {
        let mut paper = make_paper(lang, true);
        for edition in forms.editions.iter().copied() {
            paper = paper.in_edition(edition);
            if forms.has(Format::Html) {
                write(&file_name(lang, edition, "html"), paper.html(lang).as_bytes())?;
            }
            if forms.has(Format::Md) {
                let text = if forms.has_charts && edition == Edition::Full {
                    paper.markdown_with_images(lang, &charts_folder(lang))
                } else {
                    paper.markdown(lang)
                };
                write(&file_name(lang, edition, "md"), text.as_bytes())?;
                paper.logo().map_or(Ok(()), |(name, bytes)| write(&name, &bytes))?;
            }
            if forms.has(Format::Typ) || forms.has(Format::Pdf) {
                let text = paper.typst(lang);
                write(&file_name(lang, edition, "typ"), text.as_bytes())?;
                sources.push((file_name(lang, edition, "pdf"), text));
            }
        }
        if forms.has_charts {
            let charts = paper.in_edition(Edition::Full).charts(lang);
            charts.iter().try_for_each(|(name, svg)| {
                write(&format!("{}/{name}.svg", charts_folder(lang)), svg.as_bytes())
            })?;
        }
    }
    for (name, text) in sources.iter().filter(|_| forms.has(Format::Pdf)) {
        write(name, &crate::pdf::compile(text)?)?;
    }
    Ok(())
}

/// `charts`, in Chinese `charts.zh`.
fn charts_folder(lang: Lang) -> String {
    format!("charts{}", suffix(lang))
}

/// `paper.html`, in Chinese `paper.zh.html`, of the short edition `paper.short.html`.
fn file_name(lang: Lang, edition: Edition, extension: &str) -> String {
    let edition = if edition == Edition::Short { ".short" } else { "" };
    format!("paper{edition}{}.{extension}", suffix(lang))
}

/// Returns the part of a file's name that stands for the language; empty for English.
fn suffix(lang: Lang) -> String {
    if lang == Lang::En { String::new() } else { format!(".{}", lang.code()) }
}

/// The relative path from one folder to another, up to what they share and down again, with a slash at its
/// end; `None` if one of them can't be found or has no name in UTF-8.
fn relative_path(from: &Path, to: &Path) -> Option<String> {
    let (from, to) = (from.canonicalize().ok()?, to.canonicalize().ok()?);
    let shared = from.components().zip(to.components()).take_while(|(a, b)| a == b).count();
    let up = from.components().skip(shared).map(|_| Some(".."));
    let down = to.components().skip(shared).map(|part| part.as_os_str().to_str());
    up.chain(down).map(|part| Some(format!("{}/", part?))).collect()
}

pub(crate) fn published_tables(runs: &[RunData]) -> Vec<PublishedTable> {
    runs.iter().flat_map(|run| run.header.published()).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_language_but_english_is_in_the_name() {
        assert_eq!(file_name(Lang::Zh, Edition::Full, "html"), "paper.zh.html");
        assert_eq!(file_name(Lang::En, Edition::Full, "pdf"), "paper.pdf");
        assert_eq!(file_name(Lang::Zh, Edition::Short, "pdf"), "paper.short.zh.pdf");
    }

    #[test]
    fn files_of_a_run_are_found_from_wherever_its_paper_stands() {
        let folder = tempfile::tempdir().expect("a folder");
        for name in ["runs/a b", "papers/x"] {
            std::fs::create_dir_all(folder.path().join(name)).expect("made");
        }
        for (from, to, expected) in [
            ("runs/a b", "runs/a b", Some("")),
            ("papers/x", "runs/a b", Some("../../runs/a b/")),
            ("papers", "nowhere", None),
        ] {
            let path = relative_path(&folder.path().join(from), &folder.path().join(to));
            assert_eq!(path.as_deref(), expected);
        }
    }
}
