//! A paper in its forms, and what users may replace of them: the shell of the page, its style and script, the theme
//! of the PDF.

use crate::ReportError;
use crate::blocks::{Block, Drawing};
use crate::evidence::Paper;
use crate::svg::escape;
use crate::{sections, write};
use dyno_facts::{Colour, Lang, say};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

impl Paper {
    /// What it says and shows.
    pub fn blocks(&self, lang: Lang) -> Vec<Block> {
        sections::of_paper(self, lang)
    }

    /// A single file that works offline: charts are inline SVG, readable without JavaScript.
    ///
    /// # Errors
    /// When a template has a place that is not known; the message names template and line.
    pub fn html(&self, lang: Lang) -> Result<String, ReportError> {
        let templates = &self.templates;
        let own = self.own_styles();
        let style = format!("{}{}{own}", templates.text("style.css"), templates.text("chart.css"));
        templates.filled(
            "paper.html",
            &[
                ("title", &escape(&self.title.render(lang))),
                ("lang", if lang == Lang::Zh { "zh-CN" } else { lang.code() }),
                ("skip", &escape(&say!(skip_to_the_summary).render(lang))),
                ("style", &style),
                ("script", templates.text("script.js")),
                ("body", &write::html(&self.blocks(lang), lang)),
            ],
        )
    }

    /// The source of a PDF: needs the fonts `Noto Sans SC` and `Noto Sans Mono`, and no other file.
    ///
    /// # Errors
    /// When a template has a place that is not known; the message names template and line.
    pub fn typst(&self, lang: Lang) -> Result<String, ReportError> {
        let charts = self.chart_style().replace("svg ", "").replace("svg.", ".");
        let charts = charts.replace("var(--sans)", "'Noto Sans SC'");
        let mut colours = String::new();
        let own = self.own_colours().map(|(place, colour)| (format!("p{place}"), colour.hex()));
        for (name, value) in self.templates.colours().chain(own) {
            let _ = write!(colours, "{}: rgb({}), ", write::quoted(&name), write::quoted(&value));
        }
        // Who publishes it, for catalogues; what made it where nobody says so.
        let organisation = self.texts.organisation.message().render(lang);
        let authors = self.texts.authors.iter().chain([&organisation]);
        let authors: Vec<&str> =
            authors.map(String::as_str).filter(|name| !name.is_empty()).collect();
        let author = if authors.is_empty() { "dyno".to_owned() } else { authors.join(", ") };
        self.templates.filled(
            "paper.typ",
            &[
                ("title", &write::quoted(&self.title.render(lang))),
                ("author", &write::quoted(&author)),
                ("lang", lang.code()),
                ("region", if lang == Lang::Zh { "\"cn\"" } else { "none" }),
                ("style", &write::quoted(&charts)),
                ("colours", &colours),
                ("body", &write::typst(&self.blocks(lang), lang)),
            ],
        )
    }

    /// Text with tables.
    pub fn markdown(&self, lang: Lang) -> String {
        write::markdown(&self.blocks(lang), lang, &|_| None)
    }

    /// Text with tables, and with the files of [`Paper::charts`] in a folder beside it as images.
    pub fn markdown_with_images(&self, lang: Lang, folder: &str) -> String {
        let blocks = self.blocks(lang);
        let named = write::named_drawings(&blocks);
        let image = |drawing: &Drawing| {
            let own = named.iter().find(|(known, _)| std::ptr::eq(*known, drawing));
            own.map(|(_, name)| format!("{folder}/{name}.svg"))
        };
        write::markdown(&blocks, lang, &image)
    }

    /// The charts of the paper in their order as SVG files with the page's style: their names without extension
    /// (number in the paper and the section they stand in), and their texts.
    pub fn charts(&self, lang: Lang) -> Vec<(String, String)> {
        let fonts = variables(self.templates.text("style.css"));
        let sans = fonts.into_iter().find(|(name, _)| *name == "sans");
        let sans = sans.map_or("sans-serif", |(_, value)| value).replace('"', "'");
        let style = self.chart_style().replace("var(--sans)", &sans);
        let blocks = self.blocks(lang);
        let drawings = write::named_drawings(&blocks).into_iter();
        drawings.map(|(drawing, name)| (name, write::standalone(drawing, &style))).collect()
    }

    /// Its tables of results, for a terminal.
    pub fn terminal(&self, lang: Lang) -> String {
        write::terminal(&sections::for_terminal(self, lang), lang)
    }

    /// Its results in short, for a terminal: what was checked in a line each, in full only what is wrong.
    pub fn brief(&self, lang: Lang) -> String {
        write::terminal(&sections::brief(self), lang)
    }

    /// A line for each comparison; where nothing is compared, one for what each target has reached in each experiment.
    pub fn results_text(&self, lang: Lang) -> String {
        match self.verdicts.comparisons.is_empty() {
            true => sections::results_reached(self).iter().map(|it| it.line(lang) + "\n").collect(),
            false => self.verdicts.text(lang),
        }
    }

    /// Whether it is a rehearsal, and how many findings belong beside its figures.
    pub fn standing(&self, lang: Lang) -> String {
        sections::standing(self).line(lang)
    }

    /// Its tables of comparisons and gates, for a terminal.
    pub fn verdict_tables(&self, lang: Lang) -> String {
        write::terminal(&sections::of_verdicts(self, lang), lang)
    }

    /// Places of targets whose colour the publisher has chosen, with it.
    pub(crate) fn own_colours(&self) -> impl Iterator<Item = (usize, Colour)> {
        self.targets.iter().enumerate().filter_map(|(place, target)| {
            let own = self.texts.targets.get(&target.facts.name)?;
            Some((place, Colour::parse(&own.colour)?))
        })
    }

    /// Rules of a page for these colours, on white and on dark paper.
    fn own_styles(&self) -> String {
        let mut css = String::new();
        for (place, colour) in self.own_colours() {
            let (light, dark) = (colour.hex(), colour.on_dark().hex());
            let _ = writeln!(
                css,
                ":root {{ --p{place}: {light}; }} @media (prefers-color-scheme: dark) {{ :root {{ --p{place}: {dark}; }} }} \
                 @media print {{ :root {{ --p{place}: {light}; }} }} \
                 .p{place} {{ --c: var(--p{place}); }} svg .p{place} {{ color: var(--p{place}); }}"
            );
        }
        css
    }

    /// The style sheet of charts as they stand on white paper, without variables but for the font.
    fn chart_style(&self) -> String {
        let mut css = self.templates.text("chart.css").to_owned();
        for (name, value) in self.templates.colours() {
            css = css.replace(&format!("var(--{name})"), &value);
        }
        for (place, colour) in self.own_colours() {
            let _ = writeln!(css, "svg .p{place} {{ color: {}; }}", colour.hex());
        }
        css
    }
}

/// The variables of a style sheet's first rule: those of white paper.
fn variables(css: &str) -> Vec<(&str, &str)> {
    let rule = css.split('}').next().unwrap_or_default();
    let both = rule.split(['{', ';']).filter_map(|part| part.trim().strip_prefix("--"));
    let both = both.filter_map(|part| part.split_once(':'));
    both.map(|(name, value)| (name.trim(), value.trim())).collect()
}

macro_rules! own {
    ($($name:literal),* $(,)?) => {
        [$(($name, include_str!(concat!("../templates/", $name)))),*]
    };
}

const OWN: &[(&str, &str)] =
    &own!["paper.html", "style.css", "chart.css", "script.js", "paper.typ"];

/// The templates that a paper is written with: dyno's own, some of them replaced.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Templates {
    replaced: BTreeMap<String, String>,
}

impl Templates {
    /// dyno's own, replaced by the files of the same names in this folder.
    ///
    /// # Errors
    /// When the folder can't be read, or when a file in it is named like no template.
    pub fn of_folder(folder: &Path) -> Result<Templates, ReportError> {
        let failed = |path: &Path, error: std::io::Error| {
            let message = format!("{}, of `--template`, can't be read: {error}.", path.display());
            ReportError::new(message).with_hint(
                "Name a folder of text files; `dyno paper --templates FOLDER` writes dyno's own into a new one.",
            )
        };
        let mut replaced = BTreeMap::new();
        for entry in std::fs::read_dir(folder).map_err(|error| failed(folder, error))? {
            let path = entry.map_err(|error| failed(folder, error))?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if name.starts_with('.') {
                continue;
            }
            if Templates::own(&name).is_none() {
                let known: Vec<&str> = Templates::names().collect();
                let path = path.display();
                let message = format!("{path} is not named like a template, so it replaces none.");
                return Err(ReportError::new(message).with_hint(format!(
                    "Templates are {}; your own text goes to `[paper]` of the suite or of `--paper`.",
                    known.join(", ")
                )));
            }
            let text = std::fs::read_to_string(&path).map_err(|error| failed(&path, error))?;
            replaced.insert(name, text);
        }
        Ok(Templates { replaced })
    }

    /// The names of all templates.
    pub fn names() -> impl Iterator<Item = &'static str> {
        OWN.iter().map(|(name, _)| *name)
    }

    /// dyno's own template of this name, to begin one's own with.
    pub fn own(name: &str) -> Option<&'static str> {
        OWN.iter().find(|(own, _)| *own == name).map(|(_, text)| *text)
    }

    fn text(&self, name: &str) -> &str {
        let own = || Templates::own(name).unwrap_or_default();
        self.replaced.get(name).map_or_else(own, String::as_str)
    }

    /// Names and values of the colours of white paper.
    fn colours(&self) -> impl Iterator<Item = (String, String)> {
        let all = variables(self.text("style.css")).into_iter();
        let colours = all.filter(|(_, value)| value.starts_with('#'));
        colours.map(|(name, value)| (name.to_owned(), value.to_owned()))
    }

    /// A template with its places `{{ name }}` filled.
    ///
    /// # Errors
    /// When a place has a name that is not known; the message names template and line.
    fn filled(&self, name: &str, values: &[(&str, &str)]) -> Result<String, ReportError> {
        let text = self.text(name);
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(at) = rest.find("{{ ") {
            let inside = &rest[at + 3..];
            let end = inside.find(" }}").unwrap_or(inside.len());
            let wanted = &inside[..end];
            let Some((_, value)) = values.iter().find(|(known, _)| *known == wanted) else {
                let line = text[..text.len() - inside.len()].lines().count().max(1);
                let known: Vec<&str> = values.iter().map(|(name, _)| *name).collect();
                let error = ReportError::new(format!(
                    "The template {name}, line {line}, has the place `{wanted}`, which dyno can't fill."
                ));
                return Err(error.with_hint(format!("Its places are {}.", known.join(", "))));
            };
            out += &rest[..at];
            out += value;
            rest = inside.get(end + 3..).unwrap_or_default();
        }
        Ok(out + rest)
    }
}
