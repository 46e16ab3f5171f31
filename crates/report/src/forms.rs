//! A paper in its forms.

use crate::ReportError;
use crate::blocks::{Block, Drawing};
use crate::evidence::Paper;
use crate::svg::escape;
use crate::templates::Templates;
use crate::text::Lang;
use crate::{sections, write};
use dyno_facts::Colour;
use dyno_store::write_atomically;
use std::fmt::Write;
use std::path::{Path, PathBuf};

impl Paper {
    /// What it says and shows, with the user's own text in its slots.
    pub fn blocks(&self, templates: &Templates, lang: Lang) -> Vec<Block> {
        sections::of_paper(self, lang, |name| templates.slot(name, lang))
    }

    /// A single file that works offline: charts are inline SVG, readable without JavaScript.
    ///
    /// # Errors
    /// When a template has a place that is not known; the message names template and line.
    pub fn html_with(&self, templates: &Templates, lang: Lang) -> Result<String, ReportError> {
        let own = self.own_styles();
        let style = format!("{}{}{own}", templates.text("style.css"), templates.text("chart.css"));
        templates.filled(
            "paper.html",
            &[
                ("title", &escape(&self.title.render(lang))),
                ("lang", if lang == Lang::Zh { "zh-CN" } else { lang.code() }),
                ("skip", &escape(&dyno_facts::say!(skip_to_the_summary).render(lang))),
                ("style", &style),
                ("script", templates.text("script.js")),
                ("body", &write::html(&self.blocks(templates, lang), lang)),
            ],
        )
    }

    /// The same with dyno's own templates.
    ///
    /// # Errors
    /// Never, but for a mistake in these.
    pub fn html(&self, lang: Lang) -> Result<String, ReportError> {
        self.html_with(&Templates::default(), lang)
    }

    /// The source of a PDF: needs the fonts `Noto Sans SC` and `Noto Sans Mono`, and no other file.
    ///
    /// # Errors
    /// When a template has a place that is not known; the message names template and line.
    pub fn typst_with(&self, templates: &Templates, lang: Lang) -> Result<String, ReportError> {
        let charts = self.chart_style(templates).replace("svg ", "").replace("svg.", ".");
        let charts = charts.replace("var(--sans)", "'Noto Sans SC'");
        let mut known = String::new();
        let own = self.own_colours().map(|(place, colour)| (format!("p{place}"), colour.hex()));
        let of_sheet = variables(templates.text("style.css")).into_iter();
        let of_sheet = of_sheet.filter(|(_, value)| value.starts_with('#'));
        let of_sheet = of_sheet.map(|(name, value)| (name.to_owned(), value.to_owned()));
        for (name, value) in of_sheet.chain(own) {
            let _ = write!(known, "{}: rgb({}), ", write::quoted(&name), write::quoted(&value));
        }
        templates.filled(
            "paper.typ",
            &[
                ("title", &write::quoted(&self.title.render(lang))),
                ("author", &write::quoted(&self.author(lang))),
                ("lang", lang.code()),
                ("region", if lang == Lang::Zh { "\"cn\"" } else { "none" }),
                ("style", &write::quoted(&charts)),
                ("colours", &known),
                ("body", &write::typst(&self.blocks(templates, lang), lang)),
            ],
        )
    }

    /// Who publishes it, for catalogues; what made it where nobody says so.
    fn author(&self, lang: Lang) -> String {
        let organisation = self.texts.organisation.message().render(lang);
        let all = self.texts.authors.iter().chain([&organisation]);
        let known: Vec<&str> = all.map(String::as_str).filter(|name| !name.is_empty()).collect();
        if known.is_empty() { "dyno".to_owned() } else { known.join(", ") }
    }

    /// The same with dyno's own templates.
    ///
    /// # Errors
    /// Never, but for a mistake in these.
    pub fn typst(&self, lang: Lang) -> Result<String, ReportError> {
        self.typst_with(&Templates::default(), lang)
    }

    /// The same as text with tables.
    pub fn markdown(&self, lang: Lang) -> String {
        self.markdown_with(&Templates::default(), lang)
    }

    /// The same with the user's own text in its slots.
    pub fn markdown_with(&self, templates: &Templates, lang: Lang) -> String {
        write::markdown(&self.blocks(templates, lang), lang, &|_| None)
    }

    /// The same with the files of [`Paper::charts`] as images: those of a folder beside it, with this extension.
    pub fn markdown_with_images(
        &self,
        templates: &Templates,
        lang: Lang,
        folder: &str,
        extension: &str,
    ) -> String {
        let blocks = self.blocks(templates, lang);
        let named = write::named_drawings(&blocks);
        let image = |drawing: &Drawing| {
            let own = named.iter().find(|(known, _)| std::ptr::eq(*known, drawing));
            own.map(|(_, name)| format!("{folder}/{name}.{extension}"))
        };
        write::markdown(&blocks, lang, &image)
    }

    /// Its tables of results, for a terminal.
    pub fn terminal(&self, lang: Lang) -> String {
        write::terminal(&sections::for_terminal(self, lang), lang)
    }

    /// Its results in short, for a terminal: what was checked in a line each, in full only what is wrong.
    pub fn brief(&self, lang: Lang) -> String {
        write::terminal(&sections::at_the_end(self), lang)
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

    /// Writes `paper.html`, `paper.md`, `paper.csv`, `paper.json` and the publisher's logo into `dir`; returns their
    /// paths in this order.
    ///
    /// # Errors
    /// When one can't be rendered or written.
    pub fn write_all(&self, dir: &Path) -> Result<Vec<PathBuf>, ReportError> {
        let texts = [
            ("html", self.html(Lang::En)?),
            ("md", self.markdown(Lang::En)),
            ("csv", self.csv()),
            ("json", self.json()?),
        ];
        let named = |(extension, text): (&str, String)| (format!("paper.{extension}"), text.into());
        let mut files: Vec<(String, Vec<u8>)> = texts.map(named).into();
        files.extend(self.logo());
        let write = |(name, bytes): &(String, Vec<u8>)| {
            let path = dir.join(name);
            write_atomically(&path, bytes).map_err(|error| {
                let failed = ReportError::new(error.message);
                error.hint.map_or(failed.clone(), |hint| failed.with_hint(hint))
            })?;
            Ok(path)
        };
        files.iter().map(write).collect()
    }
}

impl Paper {
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
    pub(crate) fn chart_style(&self, templates: &Templates) -> String {
        let mut css = templates.text("chart.css").to_owned();
        for (name, value) in variables(templates.text("style.css")) {
            if value.starts_with('#') {
                css = css.replace(&format!("var(--{name})"), value);
            }
        }
        for (place, colour) in self.own_colours() {
            let _ = writeln!(css, "svg .p{place} {{ color: {}; }}", colour.hex());
        }
        css
    }
}

/// The variables of a style sheet's first rule: those of white paper.
pub(crate) fn variables(css: &str) -> Vec<(&str, &str)> {
    let rule = css.split('}').next().unwrap_or_default();
    let both = rule.split(['{', ';']).filter_map(|part| part.trim().strip_prefix("--"));
    let both = both.filter_map(|part| part.split_once(':'));
    both.map(|(name, value)| (name.trim(), value.trim())).collect()
}
